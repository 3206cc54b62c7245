/* What people want to know of it. */
#include <inttypes.h>

#include "net/identity.h"
#include "node/crowd/crowd_driver_state.h"

static const char *const kinds[] = {[CROWD_CYCLON] = "cyclon", [CROWD_PROOFS] = "proofs"};
static const char *const parts[CROWD_PARTS_COUNT] = {
    [CROWD_FULL] = "full",
    [CROWD_QUERY_ONLY] = "query-only",
    [CROWD_TUNNEL] = "tunnel",
    [CROWD_MUTE] = "mute",
};

struct number {
    const char *name;
    uint64_t value;
};

static void put_numbers(struct buf *out, const char *name, const struct number *numbers, size_t count) {
    buf_put_format(out, ",\"%s\":{", name);
    for (size_t i = 0; i < count; i++) {
        buf_put_format(out, "%s\"%s\":%" PRIu64, i > 0 ? "," : "", numbers[i].name, numbers[i].value);
    }
    buf_put_byte(out, '}');
}

static void put_overlay(const struct crowd_counters *counters, const struct crowd_driver_totals *totals,
                        struct buf *out) {
    const struct number numbers[] = {
        {"begun", counters->shuffles_count},    {"answered", counters->shuffled_count},
        {"rejected", counters->rejected_count}, {"silent", counters->silent_count},
        {"served", counters->served_count},     {"joins", counters->joins_count},
        {"rejoins", totals->rejoins_count},
    };
    put_numbers(out, "shuffles", numbers, sizeof numbers / sizeof *numbers);
}

static void put_messages(const struct crowd_counters *counters, struct buf *out) {
    const struct number numbers[] = {
        {"received", counters->received_count}, {"malformed", counters->malformed_count},
        {"foreign", counters->foreign_count},   {"unasked", counters->unasked_count},
        {"blamed", counters->blamed_count},
    };
    put_numbers(out, "messages", numbers, sizeof numbers / sizeof *numbers);
}

static void put_searches(const struct crowd_counters *counters, const struct crowd_driver_totals *totals,
                         uint64_t open_count, uint64_t waiting_count, struct buf *out) {
    const struct number numbers[] = {
        {"begun", counters->searches_count},  {"found", counters->found_count},
        {"lost", counters->lost_count},       {"absent", counters->absent_count},
        {"tries", counters->tries_count},     {"open", open_count},
        {"waiting", waiting_count},           {"wanted", totals->finds_count},
        {"shared", totals->shared_count},     {"refused", totals->refused_count},
        {"timeouts", totals->timeouts_count},
    };
    put_numbers(out, "searches", numbers, sizeof numbers / sizeof *numbers);
}

static void put_queries(const struct crowd_counters *counters, struct buf *out) {
    const struct number numbers[] = {
        {"received", counters->queries_count},    {"repeats", counters->repeats_count},
        {"limited", counters->limited_count},     {"crowded_out", counters->crowded_out_count},
        {"fruitless", counters->fruitless_count}, {"hits", counters->hits_count},
        {"forwarded", counters->forwarded_count}, {"reselected", counters->reselected_count},
        {"relayed", counters->relayed_count},
    };
    put_numbers(out, "queries", numbers, sizeof numbers / sizeof *numbers);
}

static void put_neighbour(const struct crowd_neighbour *neighbour, struct buf *out) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    buf_put_format(out, "{\"address\":\"%s\",\"key\":\"%s\",\"age\":%" PRIu32 "}",
                   address_format(&neighbour->peer.address, address),
                   identity_key_format(neighbour->peer.key, key), neighbour->age);
}

/* The lock is held, as below. */
static uint64_t open_count(const struct crowd_driver *crowd_driver) {
    uint64_t count = 0;
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        count += crowd_driver->searches[i].state != CROWD_DRIVER_FREE;
    }
    return count;
}

static void put_view(const struct crowd_driver *crowd_driver, struct buf *out) {
    const struct crowd_config *config = &crowd_driver->config.crowd;
    unsigned view_size = config->view_size > 0 ? config->view_size : CROWD_DRIVER_VIEW_SIZE;
    size_t count = crowd_driver->neighbours_count;
    buf_put_format(out, "\"state\":\"%s\",\"overlay\":\"%s\",\"part\":\"%s\",\"view_size\":%u,\"fanout\":%u",
                   count == 0               ? "joining"
                   : count < view_size / 4u ? "alone"
                                            : "part",
                   kinds[config->kind], parts[config->part], view_size,
                   config->fanout > 0 ? config->fanout : CROWD_DRIVER_FANOUT);
    buf_put_string(out, ",\"view\":[");
    for (size_t i = 0; i < count; i++) {
        buf_put_string(out, i > 0 ? "," : "");
        put_neighbour(&crowd_driver->neighbours[i], out);
    }
    buf_put_format(out, "],\"contacts\":%zu,\"distrusted\":%" PRIu64, crowd_driver->contacts_count,
                   crowd_driver->totals.distrusted_count);
}

void crowd_driver_put(struct crowd_driver *crowd_driver, struct buf *out) {
    pthread_mutex_lock(&crowd_driver->lock);
    put_view(crowd_driver, out);
    put_overlay(&crowd_driver->counters, &crowd_driver->totals, out);
    put_searches(&crowd_driver->counters, &crowd_driver->totals, open_count(crowd_driver),
                 crowd_driver->waiting_count, out);
    put_queries(&crowd_driver->counters, out);
    put_messages(&crowd_driver->counters, out);
    pthread_mutex_unlock(&crowd_driver->lock);
}
