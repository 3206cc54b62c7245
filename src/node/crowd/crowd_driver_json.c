/* What people want to know of it. */
#include "base/json.h"
#include "net/identity.h"
#include "node/crowd/crowd_driver_state.h"

static const char *const kinds[] = {[CROWD_CYCLON] = "cyclon", [CROWD_PROOFS] = "proofs"};
static const char *const parts[CROWD_PARTS_COUNT] = {
    [CROWD_FULL] = "full",
    [CROWD_QUERY_ONLY] = "query-only",
    [CROWD_TUNNEL] = "tunnel",
    [CROWD_MUTE] = "mute",
};

static void put_counters(const struct crowd_counters *counters, const struct crowd_driver_totals *totals,
                         uint64_t open_count, uint64_t waiting_count, struct json *json) {
    json_open(json, "shuffles");
    JSON_COUNTS(json, {"begun", counters->shuffles_count}, {"answered", counters->shuffled_count},
                {"rejected", counters->rejected_count}, {"silent", counters->silent_count},
                {"served", counters->served_count}, {"joins", counters->joins_count},
                {"rejoins", totals->rejoins_count});
    json_close(json);
    json_open(json, "searches");
    JSON_COUNTS(json, {"begun", counters->searches_count}, {"found", counters->found_count},
                {"lost", counters->lost_count}, {"absent", counters->absent_count},
                {"tries", counters->tries_count}, {"open", open_count}, {"waiting", waiting_count},
                {"wanted", totals->finds_count}, {"shared", totals->shared_count},
                {"refused", totals->refused_count}, {"timeouts", totals->timeouts_count});
    json_close(json);
    json_open(json, "queries");
    JSON_COUNTS(json, {"received", counters->queries_count}, {"repeats", counters->repeats_count},
                {"limited", counters->limited_count}, {"crowded_out", counters->crowded_out_count},
                {"fruitless", counters->fruitless_count}, {"hits", counters->hits_count},
                {"forwarded", counters->forwarded_count}, {"reselected", counters->reselected_count},
                {"relayed", counters->relayed_count});
    json_close(json);
    json_open(json, "messages");
    JSON_COUNTS(json, {"received", counters->received_count}, {"malformed", counters->malformed_count},
                {"foreign", counters->foreign_count}, {"unasked", counters->unasked_count},
                {"blamed", counters->blamed_count});
    json_close(json);
}

static void put_neighbour(const struct crowd_neighbour *neighbour, struct json *json) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    json_open(json, NULL);
    json_text(json, "address", address_format(&neighbour->peer.address, address));
    json_text(json, "key", identity_key_format(neighbour->peer.key, key));
    json_count(json, "age", neighbour->age);
    json_close(json);
}

/* The lock is held, as below. */
static uint64_t open_count(const struct crowd_driver *crowd_driver) {
    uint64_t count = 0;
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        count += crowd_driver->searches[i].state != CROWD_DRIVER_FREE;
    }
    return count;
}

static void put_view(const struct crowd_driver *crowd_driver, struct json *json) {
    const struct crowd_config *config = &crowd_driver->config.crowd;
    unsigned view_size = config->view_size > 0 ? config->view_size : CROWD_DRIVER_VIEW_SIZE;
    size_t count = crowd_driver->neighbours_count;
    json_text(json, "state", count == 0 ? "joining" : count < view_size / 4u ? "alone" : "part");
    json_text(json, "overlay", kinds[config->kind]);
    json_text(json, "part", parts[config->part]);
    JSON_COUNTS(json, {"view_size", view_size},
                {"fanout", config->fanout > 0 ? config->fanout : CROWD_DRIVER_FANOUT});
    json_open_list(json, "view");
    for (size_t i = 0; i < count; i++) {
        put_neighbour(&crowd_driver->neighbours[i], json);
    }
    json_close(json);
    JSON_COUNTS(json, {"contacts", crowd_driver->contacts_count},
                {"distrusted", crowd_driver->totals.distrusted_count});
}

void crowd_driver_put(struct crowd_driver *crowd_driver, struct json *json) {
    pthread_mutex_lock(&crowd_driver->lock);
    put_view(crowd_driver, json);
    put_counters(&crowd_driver->counters, &crowd_driver->totals, open_count(crowd_driver),
                 crowd_driver->waiting_count, json);
    pthread_mutex_unlock(&crowd_driver->lock);
}

void crowd_driver_view(struct crowd_driver *crowd_driver, struct arena *arena, struct crowd_view *view) {
    const struct crowd_config *config = &crowd_driver->config.crowd;
    pthread_mutex_lock(&crowd_driver->lock);
    const struct crowd_counters *counters = &crowd_driver->counters;
    *view = (struct crowd_view){
        .overlay = kinds[config->kind],
        .part = parts[config->part],
        .view_size = config->view_size > 0 ? config->view_size : CROWD_DRIVER_VIEW_SIZE,
        .neighbours = arena_take_array(arena, crowd_driver->neighbours_count, sizeof *view->neighbours),
        .searches_count = counters->searches_count,
        .found_count = counters->found_count,
        .lost_count = counters->lost_count,
        .queries_count = counters->queries_count,
        .hits_count = counters->hits_count,
        .forwarded_count = counters->forwarded_count,
        .limited_count = counters->limited_count,
        .shuffled_count = counters->shuffled_count,
        .served_count = counters->served_count,
        .silent_count = counters->silent_count,
    };
    for (size_t i = 0; view->neighbours != NULL && i < crowd_driver->neighbours_count; i++) {
        char address[ADDRESS_TEXT_SIZE_MAX];
        const struct peer *peer = &crowd_driver->neighbours[i].peer;
        view->neighbours[view->neighbours_count++] =
            arena_text(arena, address_format(&peer->address, address));
    }
    pthread_mutex_unlock(&crowd_driver->lock);
}
