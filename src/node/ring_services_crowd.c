/* The crowd as a part of what the nodes of a ring do together: decision 0012. */
#include <stdio.h>

#include "base/json.h"
#include "base/utc.h"
#include "net/datagram.h"
#include "node/ring_services_state.h"
#include "replay/admin/metrics.h"
#include "replay/admin/ring_text.h"
#include "replay/site/fill.h"
#include "store/access/access.h"

enum { HOT_MAX = 20, HOT_SIZE_MAX = 4 << 20, RELAY_SENTENCE_SIZE_MAX = 512 };

/* ---- making ---- */

/*
 * Does this signer vouch for a capture? We do, and members that we know. To be admitted is not enough in an
 * open ring: anybody with a fresh key is.
 */
static bool trusts(void *context, const uint8_t signer[PEER_KEY_SIZE]) {
    struct ring_services *ring_services = context;
    struct peer peer = {0};
    memcpy(peer.key, signer, PEER_KEY_SIZE);
    pthread_mutex_lock(&ring_services->lock);
    bool is_open = ring_services->charter.is_open;
    bool is_removed = charter_is_removed(&ring_services->charter, signer);
    pthread_mutex_unlock(&ring_services->lock);
    if (memcmp(signer, ring_services->self.key, PEER_KEY_SIZE) == 0) {
        return true;
    }
    bool has_shown = !is_open && transport_admits(ring_services->transport, &peer);
    return !is_removed && (has_shown || holders_have_key(ring_services->holders, signer));
}

static size_t have(void *context, struct bytes wish, uint8_t *memory) {
    const struct ring_services *ring_services = context;
    return offers_have(ring_services->offers, wish, memory);
}

/* A SURT alone does not say which of its arguments are the body of a request that was no GET: what is deleted
 * at its path goes, with all methods. */
static bool crowd_is_deleted(const struct ring_services *ring_services, struct bytes surt, int64_t time_us) {
    struct instance *instance = ring_services->config.instance;
    struct bytes path = bytes_slice(surt, 0, bytes_find_byte(surt, '?'));
    bool has_method = bytes_find(surt, BYTES("__wb_method=")) < surt.size;
    return instance_is_deleted(instance, surt, BYTES(""), time_us) ||
           (has_method && instance_is_deleted(instance, path, BYTES(""), time_us));
}

/* Without rules, which is most often, there is nothing to look up. */
static bool crowd_is_hidden(void *context, struct bytes surt, int64_t time_us) {
    const struct ring_services *ring_services = context;
    struct access *access = ring_services->access;
    if (crowd_is_deleted(ring_services, surt, time_us)) {
        return true;
    }
    return access != NULL && access_has_rules(access) && access_check(access, surt, time_us) != ACCESS_ALLOW;
}

static enum err make_offers(struct ring_services *ring_services, struct err_detail *detail) {
    const struct settings *settings = ring_services->config.settings;
    struct offers_config offers = {
        .directory = ring_services->config.directory,
        .peer_rpc = ring_services->peer_rpc,
        .size_max = settings->crowd_cache,
        .is_closed = settings->crowd_part == CROWD_QUERY_ONLY || settings->crowd_part == CROWD_MUTE,
        .is_hidden = crowd_is_hidden,
        .context = ring_services,
        .clock = ring_services->config.clock,
    };
    enum err err = offers_new(&offers, &ring_services->offers, detail);
    if (err == ERR_OK) {
        offers_load(ring_services->offers);
    }
    return err;
}

static bool look_stored(void *context, uint64_t number, struct bytes wish) {
    const struct ring_services *ring_services = context;
    return ring_services->stored_offers != NULL &&
           stored_offers_look(ring_services->stored_offers, number, wish);
}

/* What is on the disk here, else what light members have. */
static bool crowd_look(void *context, uint64_t number, struct bytes wish) {
    const struct ring_services *ring_services = context;
    return look_stored(context, number, wish) ||
           (ring_services->relay != NULL && relay_look(ring_services->relay, number, wish));
}

/* A light member's. */
static enum err crowd_search(void *context, struct bytes wish, uint32_t timeout_ms, size_t hits_wanted,
                             struct crowd_driver_hit *out, size_t *ret_count) {
    const struct ring_services *ring_services = context;
    return ring_services->relayed == NULL
               ? ERR_UNREACHABLE
               : relayed_find(ring_services->relayed, wish, timeout_ms, hits_wanted, out, ret_count);
}

static enum err make_crowd_driver(struct ring_services *ring_services) {
    const struct settings *settings = ring_services->config.settings;
    bool may_look = settings->crowd_offers == SETTINGS_OFFERS_KEPT || settings_make_relay(settings);
    struct crowd_driver_config crowd_driver = {
        .directory = ring_services->config.directory,
        .transport = ring_services->transport,
        .crowd =
            {
                .part = (enum crowd_part)settings->crowd_part,
                .shuffle_us = settings->crowd_shuffle_us,
            },
        .clock = ring_services->config.clock,
        .have = have,
        .look = may_look ? crowd_look : NULL,
        .search = ring_services->is_light ? crowd_search : NULL,
        .blame = ring_services_blame,
        .context = ring_services,
    };
    ring_services->crowd_driver = crowd_driver_new(&crowd_driver);
    return ring_services->crowd_driver == NULL ? ERR_MEMORY : ERR_OK;
}

static enum err make_crowd_reader(struct ring_services *ring_services) {
    struct crowd_reader_config crowd_reader = {
        .crowd_driver = ring_services->crowd_driver,
        .offers = ring_services->offers,
        .captures = ring_services->captures,
        .peer_rpc = ring_services->peer_rpc,
        .trusts = trusts,
        .blame = ring_services_blame,
        .context = ring_services,
    };
    ring_services->crowd_reader = crowd_reader_new(&crowd_reader);
    return ring_services->crowd_reader == NULL ? ERR_MEMORY : ERR_OK;
}

static size_t relays_list(void *context, struct peer *out, size_t peers_max) {
    const struct ring_services *ring_services = context;
    return holders_all(ring_services->holders, out, peers_max);
}

/* A member is a relay, a light member has one. */
static enum err make_relays(struct ring_services *ring_services) {
    const struct settings *settings = ring_services->config.settings;
    struct relay_config relay = {
        .self = ring_services->self,
        .members_max = settings->crowd_relay,
        .peer_rpc = ring_services->peer_rpc,
        .crowd_driver = ring_services->crowd_driver,
        .offers = ring_services->offers,
        .captures = ring_services->captures,
        .trusts = trusts,
        .blame = ring_services_blame,
        .look = look_stored,
        .context = ring_services,
        .clock = ring_services->config.clock,
    };
    struct relayed_config relayed = {
        .peer_rpc = ring_services->peer_rpc,
        .dialects = ring_services->config.dialects,
        .offers = ring_services->offers,
        .list = relays_list,
        .note = ring_services_note,
        .context = ring_services,
        .clock = ring_services->config.clock,
    };
    if (ring_services->is_light) {
        return relayed.dialects != NULL ? relayed_new(&relayed, &ring_services->relayed) : ERR_OK;
    }
    return settings_make_relay(settings) ? relay_new(&relay, &ring_services->relay) : ERR_OK;
}

static void on_looked(void *context, uint64_t number, struct bytes finding) {
    const struct ring_services *ring_services = context;
    if (!relay_looked(ring_services->relay, number)) {
        crowd_driver_looked(ring_services->crowd_driver, number, finding);
    }
}

static enum err make_stored_offers(struct ring_services *ring_services, uint8_t mapping) {
    struct stored_offers_config stored_offers = {
        .copies = ring_services->copies,
        .offers = ring_services->offers,
        .captures =
            {
                .instance = ring_services->config.instance,
                .scratch_directory = ring_services->config.directory,
                .mapping = mapping,
                .find_surt = ring_services_find_surt,
                .context = ring_services,
            },
        .looked = on_looked,
        .context = ring_services,
    };
    return ring_services->config.settings->crowd_offers == SETTINGS_OFFERS_KEPT
               ? stored_offers_start(&stored_offers, &ring_services->stored_offers)
               : ERR_OK;
}

void ring_services_make_crowd(struct ring_services *ring_services, uint8_t mapping) {
    struct err_detail detail = {0};
    if (!ring_services->config.settings->crowd_enabled) {
        return;
    }
    enum err err = make_offers(ring_services, &detail);
    err = err == ERR_OK ? make_crowd_driver(ring_services) : err;
    if (!ring_services->is_light) {
        err = err == ERR_OK ? make_stored_offers(ring_services, mapping) : err;
    }
    err = err == ERR_OK ? make_relays(ring_services) : err;
    err = err == ERR_OK ? make_crowd_reader(ring_services) : err;
    if (err != ERR_OK && ring_services->config.note != NULL) {
        char sentence[ERR_TEXT_SIZE_MAX + 32];
        snprintf(sentence, sizeof sentence, "without the crowd: %s", err_detail_text(&detail, err));
        ring_services->config.note(ring_services->config.context, sentence);
    }
}

void ring_services_beat_crowd(struct ring_services *ring_services) {
    crowd_driver_beat(ring_services->crowd_driver);
    if (ring_services->access != NULL && access_has_rules(ring_services->access)) {
        offers_review(ring_services->offers);
    }
}

enum err ring_services_start_relayed(struct ring_services *ring_services, struct err_detail *detail) {
    return ring_services->relayed != NULL ? relayed_start(ring_services->relayed, detail) : ERR_OK;
}

void ring_services_stop_relays(struct ring_services *ring_services) {
    relay_stop(ring_services->relay);
    relayed_stop(ring_services->relayed);
}

void ring_services_stop_crowd(struct ring_services *ring_services) {
    relayed_cancel(ring_services->relayed);
    if (ring_services->crowd_driver != NULL) {
        crowd_driver_stop(ring_services->crowd_driver);
    }
    if (ring_services->stored_offers != NULL) {
        stored_offers_stop(ring_services->stored_offers);
    }
}

void ring_services_free_crowd(struct ring_services *ring_services) {
    relay_free(ring_services->relay);
    relayed_free(ring_services->relayed);
    if (ring_services->stored_offers != NULL) {
        stored_offers_free(ring_services->stored_offers);
    }
    if (ring_services->crowd_reader != NULL) {
        crowd_reader_free(ring_services->crowd_reader);
    }
    if (ring_services->crowd_driver != NULL) {
        crowd_driver_free(ring_services->crowd_driver);
    }
    if (ring_services->offers != NULL) {
        offers_free(ring_services->offers);
    }
}

/* ---- the ring's loop ---- */

void ring_services_begin_crowd(void *context) {
    struct ring_services *ring_services = context;
    uint8_t ring[CROWD_NETWORK_SIZE];
    if (!ring_services->is_light && ring_services_crowd_driver(ring_services) != NULL) {
        pthread_mutex_lock(&ring_services->lock);
        memcpy(ring, ring_services->ring_id, sizeof ring);
        pthread_mutex_unlock(&ring_services->lock);
        crowd_driver_begin(ring_services->crowd_driver, &ring_services->self, ring);
    }
}

/* ---- any thread ---- */

static bool has_crowd(const struct ring_services *ring_services) {
    return ring_services->is_begun && ring_services->crowd_reader != NULL; /* the last one that is made */
}

struct crowd_driver *ring_services_crowd_driver(struct ring_services *ring_services) {
    return has_crowd(ring_services) ? ring_services->crowd_driver : NULL;
}

void ring_services_share_crowd(struct ring_services *ring_services) {
    if (has_crowd(ring_services)) {
        ring_services->crowd.offers = ring_services->offers;
        ring_services->crowd.reader = ring_services->crowd_reader;
    }
}

const struct crowd_parts *ring_services_crowd(const struct ring_services *ring_services) {
    return &ring_services->crowd;
}

static void crowd_put_hot(struct offers *offers, struct json *json) {
    struct arena arena;
    struct offers_wanted *hot;
    arena_init(&arena, HOT_SIZE_MAX);
    size_t count = offers_hot(offers, HOT_MAX, &arena, &hot);
    json_open_list(json, "hot");
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL);
        json_bytes(json, "url", hot[i].url);
        json_bytes(json, "title", hot[i].title);
        json_timestamp(json, "timestamp", hot[i].time_us);
        JSON_COUNTS(json, {"size", hot[i].size}, {"asked", hot[i].asked_count},
                    {"given", hot[i].given_count});
        json_close(json);
    }
    json_close(json);
    arena_done(&arena);
}

static void put_offers(struct ring_services *ring_services, struct json *json) {
    struct offers_stat offers;
    struct crowd_reader_stat obtained;
    offers_stat(ring_services->offers, &offers);
    crowd_reader_stat(ring_services->crowd_reader, &obtained);
    json_open(json, "offers");
    JSON_COUNTS(json, {"count", offers.count}, {"size", offers.size}, {"given", offers.given_count},
                {"given_size", offers.given_size}, {"referred", offers.referred_count});
    json_close(json);
    json_open(json, "obtained");
    JSON_COUNTS(json, {"wanted", obtained.wanted_count}, {"own", obtained.own_count},
                {"count", obtained.obtained_count}, {"size", obtained.obtained_size},
                {"lost", obtained.lost_count}, {"false", obtained.false_count});
    json_close(json);
    crowd_put_hot(ring_services->offers, json);
}

static void put_relays(struct ring_services *ring_services, struct json *json) {
    if (ring_services->relay != NULL) {
        struct relay_stat stat;
        relay_stat(ring_services->relay, &stat);
        json_open(json, "relay");
        JSON_COUNTS(json, {"light_members", stat.members_count}, {"light_members_max", stat.members_max},
                    {"searches", stat.searches_count}, {"wishes", stat.wishes_count},
                    {"taken", stat.taken_count}, {"refused", stat.refused_count});
        json_close(json);
    }
    if (ring_services->relayed != NULL) {
        struct relayed_stat stat;
        char address[ADDRESS_TEXT_SIZE_MAX];
        char since[UTC_RFC3339_SIZE];
        relayed_stat(ring_services->relayed, &stat);
        json_open(json, "relayed");
        json_text(json, "relay", stat.has_relay ? address_format(&stat.relay.address, address) : NULL);
        json_text(json, "since", stat.has_relay ? utc_format_rfc3339(stat.since_us, since) : NULL);
        json_text(json, "why_none", stat.has_relay ? NULL : stat.why_none);
        JSON_COUNTS(json, {"relays", stat.changes_count}, {"searches", stat.searches_count},
                    {"wishes", stat.wishes_count});
        json_close(json);
    }
}

void ring_services_view_relays(struct ring_services *ring_services, struct arena *arena,
                               struct ring_view *view) {
    if (!has_crowd(ring_services)) {
        return;
    }
    if (ring_services->relay != NULL) {
        struct relay_stat stat;
        relay_stat(ring_services->relay, &stat);
        view->relay_members_count = stat.members_count;
        view->relay_members_max = stat.members_max;
    }
    if (ring_services->relayed != NULL) {
        struct relayed_stat stat;
        char text[ADDRESS_TEXT_SIZE_MAX];
        relayed_stat(ring_services->relayed, &stat);
        view->relay = stat.has_relay ? arena_text(arena, address_format(&stat.relay.address, text)) : NULL;
        view->relay_since_us = stat.since_us;
        view->relay_why_none = stat.why_none;
    }
}

void ring_services_put_crowd(struct ring_services *ring_services, struct buf *out) {
    struct json json;
    json_begin(&json, out);
    json_count(&json, "version", 1);
    if (has_crowd(ring_services)) {
        crowd_driver_put(ring_services->crowd_driver, &json);
        put_relays(ring_services, &json);
        put_offers(ring_services, &json);
    } else {
        json_text(&json, "state", "none");
    }
    json_end(&json);
}

void ring_services_put_crowd_metrics(struct ring_services *ring_services, struct buf *out) {
    struct offers_stat offers;
    struct crowd_reader_stat obtained;
    if (!has_crowd(ring_services)) {
        return;
    }
    crowd_driver_put_metrics(ring_services->crowd_driver, out);
    offers_stat(ring_services->offers, &offers);
    crowd_reader_stat(ring_services->crowd_reader, &obtained);
    METRICS_PUT(
        out, {"crowd_offers", "Captures that this node hands on.", offers.count},
        {"crowd_offers_bytes", "Bytes of these captures.", offers.size},
        {"crowd_given_total", "Captures that were given to other nodes.", offers.given_count},
        {"crowd_given_bytes_total", "Bytes of the captures that were given.", offers.given_size},
        {"crowd_referred_total", "Askers that were sent to nodes that took a capture.",
         offers.referred_count},
        {"crowd_wanted_total", "Captures that readers here wanted of the crowd.", obtained.wanted_count},
        {"crowd_obtained_total", "Captures that came from other nodes.", obtained.obtained_count},
        {"crowd_obtained_bytes_total", "Bytes of the captures that came.", obtained.obtained_size},
        {"crowd_missed_total", "Captures that no node gave.", obtained.lost_count},
        {"crowd_false_total", "Nodes that gave something false.", obtained.false_count});
}

static void show_facts(const struct ring_services *ring_services, const struct crowd_counters *crowd,
                       struct sheet *sheet) {
    struct offers_stat offers;
    struct crowd_reader_stat obtained;
    offers_stat(ring_services->offers, &offers);
    crowd_reader_stat(ring_services->crowd_reader, &obtained);
    FILL(
        sheet,
        "<dl class=facts>\n<dt>Searches of this node</dt><dd>{count} begun, {count} found, {count} without "
        "success</dd>\n<dt>Queries of others</dt><dd>{count} received, {count} answered, {count} copies sent "
        "on, {count} refused as too many from one node</dd>\n<dt>Handed on</dt><dd>{count} captures, {size}; "
        "{count} times sent to other nodes that have it</dd>\n<dt>Offered</dt><dd>{count} captures that were "
        "read here, {size}</dd>\n<dt>Obtained</dt><dd>{count} captures, {size}; {count} refused as "
        "false</dd>\n<dt>Shuffles</dt><dd>{count} of ours, {count} of others, {count} neighbours dropped as "
        "silent</dd>\n</dl>\n",
        {.number = crowd->searches_count}, {.number = crowd->found_count}, {.number = crowd->lost_count},
        {.number = crowd->queries_count}, {.number = crowd->hits_count}, {.number = crowd->forwarded_count},
        {.number = crowd->limited_count}, {.number = offers.given_count}, {.number = offers.given_size},
        {.number = offers.referred_count}, {.number = offers.count}, {.number = offers.size},
        {.number = obtained.obtained_count}, {.number = obtained.obtained_size},
        {.number = obtained.false_count}, {.number = crowd->shuffled_count}, {.number = crowd->served_count},
        {.number = crowd->silent_count});
}

static void show_relay(struct ring_services *ring_services, struct arena *arena, struct sheet *sheet) {
    struct ring_view view = {.is_light = true};
    struct buf text;
    buf_init(&text, RELAY_SENTENCE_SIZE_MAX);
    ring_services_view_relays(ring_services, arena, &view);
    ring_text_put(RING_TEXT_RELAY, &view, &text);
    FILL(sheet, "<p>A light member takes part in the crowd through a relay: {text}.\n",
         {.text = buf_bytes(&text)});
    buf_done(&text);
}

void ring_services_show_crowd(struct ring_services *ring_services, struct arena *arena, struct sheet *sheet) {
    struct crowd_counters counters;
    struct offers_wanted *hot;
    if (!has_crowd(ring_services)) {
        return;
    }
    sheet_html(sheet, "<h2 id=crowd>Crowd</h2>\n<section id=crowd-live>\n"); /* web/ring.js reads it again */
    if (ring_services->is_light) {
        show_relay(ring_services, arena, sheet);
    }
    crowd_driver_show(ring_services->crowd_driver, sheet, &counters);
    show_facts(ring_services, &counters, sheet);
    size_t count = offers_hot(ring_services->offers, HOT_MAX, arena, &hot);
    sheet_html(sheet, "<h3>Wanted most</h3>\n");
    sheet_table_begin(sheet, "Captures that others asked this node for most");
    sheet_html(sheet, "<thead><tr><th class=grow>URL<th class=number>Asked for<th class=number>Given<th "
                      "class=number>Size\n<tbody>");
    for (size_t i = 0; i < count; i++) {
        FILL(sheet, "<tr><td>{text}<td class=number>{count}<td class=number>{count}<td class=number>{size}\n",
             {.text = hot[i].url}, {.number = hot[i].asked_count}, {.number = hot[i].given_count},
             {.number = hot[i].size});
    }
    sheet_table_end(sheet);
    sheet_html(sheet, "</section>\n");
}

/* ---- the transport ---- */

static void crowd_receive(void *context, const struct datagram_message *message) {
    struct ring_services *ring_services = context;
    if (ring_services_crowd_driver(ring_services) != NULL) {
        crowd_driver_receive(ring_services->crowd_driver, message);
    }
}

static void crowd_wake(void *context) {
    struct ring_services *ring_services = context;
    crowd_driver_wake(ring_services->crowd_driver);
}

static void crowd_news(void *context, const struct ring *ring) {
    struct ring_services *ring_services = context;
    if (ring_services_crowd_driver(ring_services) != NULL) {
        ring_services_begin_crowd(ring_services);
        crowd_driver_news(ring_services->crowd_driver, ring);
    }
}

void ring_services_add_crowd(struct ring_services *ring_services) {
    struct transport_tenant tenant = {
        .kind = DATAGRAM_CROWD,
        .is_for_members = true,
        .receive = crowd_receive,
        .wake = crowd_wake,
        .news = crowd_news,
        .context = ring_services,
    };
    transport_add(ring_services->transport, &tenant);
}
