#include "node/together.h"

#include <sodium.h>
#include <stdlib.h>

#include "net/datagram.h"
#include "node/together_state.h"

enum {
    MANY_PLACES = 1024,
    MANY_PLACES_US = 2000000,
    ASK_MS = 5000,
    SETTLED_BEATS = 2 /* quiet seconds before the crawl looks through its URLs */
};

static void say(const struct together *together, const char *sentence) {
    if (together->config.note != NULL) {
        together->config.note(together->config.context, sentence);
    }
}

/* ---- making ---- */

static void on_jobs(void *context) {
    const struct together *together = context;
    if (together->config.jobs_changed != NULL) {
        together->config.jobs_changed(together->config.context);
    }
}

static void on_note(void *context, const char *sentence) {
    say(context, sentence);
}

struct together *together_new(const struct together_config *config) {
    struct together *together = calloc(1, sizeof *together);
    if (together == NULL) {
        return NULL;
    }
    together->config = *config;
    pthread_mutex_init(&together->lock, NULL);
    struct decrees_config decrees = {
        .directory = config->directory, .note = on_note, .changed = on_jobs, .context = together};
    struct group_driver_config group_driver = {
        .directory = config->directory,
        .period_us = config->groups.period_us,
        .silence_us = config->groups.silence_us,
        .probe_size = config->groups.probe_size,
        .clock = config->clock,
        .note = on_note,
        .context = together,
    };
    together->decrees = decrees_new(&decrees);
    together->group_driver = group_driver_new(&group_driver);
    if (together->decrees == NULL || together->group_driver == NULL) {
        together_free(together);
        return NULL;
    }
    return together;
}

void together_free(struct together *together) {
    together_free_mirrors(together);
    together_free_crowd(together);
    if (together->copies != NULL) {
        copies_free(together->copies);
    }
    if (together->captures != NULL) {
        captures_free(together->captures);
    }
    if (together->service != NULL) {
        ring_reader_service_free(together->service);
    }
    if (together->host_leases != NULL) {
        host_leases_free(together->host_leases);
    }
    public_urls_free(together->public_urls);
    if (together->peer_rpc != NULL) {
        peer_rpc_free(together->peer_rpc);
    }
    if (together->group_driver != NULL) {
        group_driver_free(together->group_driver);
    }
    routing_free(together->routing);
    holders_free(together->holders);
    if (together->decrees != NULL) {
        decrees_free(together->decrees);
    }
    pthread_mutex_destroy(&together->lock);
    free(together);
}

/* ---- the ring's loop ---- */

/* To look at all known places takes milliseconds where they are many: less often then. */
static void on_news(void *shared, const struct ring *ring) {
    struct together *together = shared;
    struct crowd_driver *crowd_driver = together_crowd_driver(together);
    if (crowd_driver != NULL) {
        together_begin_crowd(together);
        crowd_driver_news(crowd_driver, ring);
    }
    uint64_t now_us = clock_monotonic_us(together->config.clock);
    if (ring_known_count(ring) > MANY_PLACES && now_us < together->updated_at_us + MANY_PLACES_US) {
        return;
    }
    together->updated_at_us = now_us;
    pthread_mutex_lock(&together->lock);
    size_t copies = together->charter.replicas;
    pthread_mutex_unlock(&together->lock);
    holders_update(together->holders, ring, copies);
}

static void on_charter(void *shared, const struct charter *charter, const uint8_t ring[RING_CHARTER_SIZE]) {
    struct together *together = shared;
    pthread_mutex_lock(&together->lock);
    together->has_charter = true;
    together->charter = *charter;
    memcpy(together->ring_id, ring, sizeof together->ring_id);
    pthread_mutex_unlock(&together->lock);
    decrees_set_charter(together->decrees, charter, ring);
    routing_set_rules(together->routing, (enum place_mapping)charter->mapping, charter->witnesses);
    routing_set_scope(together->routing, charter);
}

static void on_datagram(void *shared, const struct datagram_message *message) {
    struct together *together = shared;
    if (message->kind == DATAGRAM_LINKS && together->is_begun) {
        link_sender_receive(together->link_sender, &message->from, message->bytes);
    }
    if (message->kind == DATAGRAM_CROWD && together_crowd_driver(together) != NULL) {
        crowd_driver_receive(together->crowd_driver, message);
    }
}

static void on_wake(void *shared, enum transport_user user) {
    struct together *together = shared;
    if (user == TRANSPORT_GROUPS) {
        group_driver_wake(together->group_driver);
    } else {
        crowd_driver_wake(together->crowd_driver);
    }
}

void together_listen(struct together *together, struct transport_config *config) {
    config->news = on_news;
    config->charter = on_charter;
    config->datagram = on_datagram;
    config->group = together_on_group;
    config->wake = on_wake;
    config->shared = together;
}

enum err together_set_transport(struct together *together, struct transport *transport) {
    together->transport = transport;
    together->holders = holders_new(transport);
    together->routing = together->holders != NULL ? routing_new(together->holders) : NULL;
    return together->routing == NULL ? ERR_MEMORY : ERR_OK;
}

/* ---- beginning ---- */

static bool admits(void *context, const struct peer *peer) {
    struct together *together = context;
    return transport_admits(together->transport, peer) ||
           group_driver_is_member(together->group_driver, peer) || together_hears(together, peer);
}

/* A member of a group need not be one of the ring, and the other way round. Collections may be for others,
 * too. */
static bool serves(void *context, const struct peer *peer, enum peer_rpc_service service) {
    struct together *together = context;
    bool is_for_groups = service == PEER_RPC_PROBE || service == PEER_RPC_MIRROR;
    bool is_of_group = is_for_groups && group_driver_is_member(together->group_driver, peer);
    return is_of_group || (service != PEER_RPC_PROBE && transport_admits(together->transport, peer)) ||
           (service == PEER_RPC_MIRROR && together_hears(together, peer));
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    const struct together *together = context;
    transport_blame(together->transport, peer, sentence);
}

static void meet(void *context, const struct peer *peer) {
    const struct together *together = context;
    bool is_of_group = group_driver_is_member(together->group_driver, peer);
    if (!is_of_group || transport_admits(together->transport, peer)) {
        transport_greet(together->transport, peer);
    }
}

static enum route_verdict ask_route(void *context, struct bytes url, uint8_t ret_place[ROUTE_PLACE_SIZE]) {
    struct together *together = context;
    return routing_ask(together->routing, url, ret_place);
}

static bool allows(void *context, struct bytes url) {
    struct together *together = context;
    return routing_allows(together->routing, url);
}

static bool wants_own(void *context) {
    struct together *together = context;
    return routing_has_witnesses(together->routing);
}

enum err together_make_peer_rpc(struct together *together, struct err_detail *detail) {
    struct peer_rpc *peer_rpc;
    if (together->peer_rpc != NULL) {
        return ERR_OK;
    }
    bool is_open = transport_address(together->transport, &together->self.address);
    ASSERT(is_open);
    memcpy(together->self.key, transport_identity(together->transport)->key, PEER_KEY_SIZE);
    struct peer_rpc_config config = {
        .identity = transport_identity(together->transport),
        .clock = together->config.clock,
        .address = together->self.address,
        .held = transport_held(together->transport),
        .upload_rate = together->config.upload_rate,
        .download_rate = together->config.download_rate,
        .reads_rate = together->config.reads_rate,
        .admits = admits,
        .serves = serves,
        .meet = meet,
        .blame = blame,
        .context = together,
    };
    enum err err = peer_rpc_new(&config, &peer_rpc, detail);
    if (err == ERR_OK) {
        together->peer_rpc = peer_rpc;
    }
    return err;
}

enum err together_start_peer_rpc(struct together *together, struct err_detail *detail) {
    enum err err = together->is_peer_rpc_started ? ERR_OK : peer_rpc_start(together->peer_rpc, detail);
    together->is_peer_rpc_started = err == ERR_OK;
    return err;
}

/* What lives in a ring. */
static enum err prepare_ring(struct together *together, struct err_detail *detail) {
    enum err err = together_make_peer_rpc(together, detail);
    if (err != ERR_OK) {
        return err;
    }
    peer_rpc_serve(together->peer_rpc, PEER_RPC_DECREES, decrees_answer, together->decrees);
    struct host_leases_config host_leases = {
        .peer_rpc = together->peer_rpc,
        .self = together->self,
        .homes = host_leases_homes_of(together->holders),
        .clock = together->config.clock,
    };
    together->route = (struct route){.ask = ask_route,
                                     .allows = allows,
                                     .outgoing = together_on_outgoing,
                                     .wants_own = wants_own,
                                     .context = together};
    together->guest = ring_reader_new(together->config.directory);
    if (together->guest == NULL) {
        return ERR_MEMORY;
    }
    instance_set_guest(together->config.instance, together->guest);
    struct public_urls_config public_urls = {
        .peer_rpc = together->peer_rpc,
        .identity = transport_identity(together->transport),
        .own = together->config.public_origin,
        .clock = together->config.clock,
        .blame = blame,
        .context = together,
    };
    together->public_urls = public_urls_new(&public_urls);
    if (together->public_urls == NULL) {
        return ERR_MEMORY;
    }
    return host_leases_new(&host_leases, &together->host_leases, detail);
}

enum err together_prepare(struct together *together, struct err_detail *detail) {
    together->has_ring = transport_has_ring(together->transport);
    enum err err = together->has_ring ? prepare_ring(together, detail) : ERR_OK;
    err = err == ERR_OK ? together_prepare_groups(together, detail) : err;
    return err == ERR_OK ? together_prepare_mirrors(together, detail) : err;
}

static void attach(void *shared, uv_loop_t *loop, struct crawler *crawler) {
    struct together *together = shared;
    host_leases_attach(together->host_leases, loop, crawler);
}

static void detach(void *shared) {
    struct together *together = shared;
    host_leases_detach(together->host_leases);
}

void together_share_crawl(struct together *together, struct crawl_loop_config *config) {
    if (!together->has_ring) {
        return;
    }
    config->route = &together->route;
    config->permits = host_leases_permits(together->host_leases);
    config->identity = transport_identity(together->transport);
    config->attach = attach;
    config->detach = detach;
    config->shared = together;
}

void together_set_access(struct together *together, struct access *access) {
    together->access = access;
}

void together_set_crawl_loop(struct together *together, struct crawl_loop *crawl_loop) {
    together->crawl_loop = crawl_loop;
}

static enum err find_holders(void *context, const uint8_t place[RINGKEY_PLACE_SIZE],
                             struct peer out[RING_READER_HOLDERS_MAX], size_t *ret_count) {
    const struct together *together = context;
    struct holders_arc arc;
    enum err err = holders_find(together->holders, ring_id_read(place), &arc);
    if (err == ERR_OK) {
        memcpy(out, arc.peers, arc.count * sizeof *out);
        *ret_count = arc.count;
    }
    return err;
}

static size_t find_all(void *context, struct peer *out, size_t peers_max) {
    const struct together *together = context;
    return holders_all(together->holders, out, peers_max);
}

static bool is_current(void *context, const uint8_t place[RINGKEY_PLACE_SIZE]) {
    const struct together *together = context;
    return copies_is_compared(together->copies, ring_id_read(place)) ||
           copies_has_everything(together->copies);
}

static bool has_any(void *context, const uint8_t place[RINGKEY_PLACE_SIZE]) {
    const struct together *together = context;
    struct ringkey first;
    return copies_find_first(together->copies, place, INT64_MIN, &first) == ERR_OK;
}

static bool has_everything(void *context) {
    const struct together *together = context;
    return copies_has_everything(together->copies);
}

static enum err find_surt(void *context, const struct ringkey *key, struct buf *out) {
    const struct together *together = context;
    return copies_find_surt(together->copies, key, out);
}

static bool may_copy(void *context, const struct peer *peer) {
    const struct together *together = context;
    return copies_may_copy(together->copies, peer);
}

/* Of a capture: whoever reads or keeps it, what its giver says that he has is worth nothing for a while. */
static void blame_giver(void *context, const struct peer *peer, const char *sentence) {
    const struct together *together = context;
    copies_distrust(together->copies, peer);
    transport_blame(together->transport, peer, sentence);
}

static enum err begin_copies(struct together *together, uint8_t mapping, struct err_detail *detail) {
    struct copies_config copies = {
        .directory = together->config.directory,
        .instance = together->config.instance,
        .peer_rpc = together->peer_rpc,
        .ring = copies_ring_of_holders(together->holders),
        .mapping = mapping,
        .grace_us = together->config.copies.grace_us,
        .compare_interval_us = together->config.copies.compare_us,
        .challenge_interval_us = 2 * together->config.copies.compare_us,
        .scrub_period_us = together->config.copies.scrub_us,
        .keeps_everything = together->config.copies.keeps_everything,
        .has_slow_lines = together->config.upload_rate > 0 || together->config.download_rate > 0,
        .keeps_but_of = transport_identity(together->transport)->key,
        .seed = randombytes_random(),
        .clock = together->config.clock,
        .blame = blame,
        .note = on_note,
        .context = together,
    };
    struct captures_config captures = {
        .instance = together->config.instance,
        .peer_rpc = together->peer_rpc,
        .scratch_directory = together->config.directory,
        .mapping = mapping,
        .find_surt = find_surt,
        .may_copy = may_copy,
        .blame = blame_giver,
        .context = together,
    };
    enum err err = copies_new(&copies, &together->copies, detail);
    if (err != ERR_OK) {
        return err;
    }
    together->captures = captures_new(&captures);
    return together->captures == NULL ? ERR_MEMORY : ERR_OK;
}

static enum err begin_reading(struct together *together, uint8_t mapping) {
    struct ring_reader_service_config service = {
        .instance = together->config.instance,
        .peer_rpc = together->peer_rpc,
        .mapping = mapping,
        .is_current = is_current,
        .context = together,
    };
    struct ring_reader_config backend = {
        .peer_rpc = together->peer_rpc,
        .captures = together->captures,
        .offers = together->offers,
        .obtain = together->crowd_reader,
        .mapping = mapping,
        .find_holders = find_holders,
        .find_all = find_all,
        .is_current = is_current,
        .has_any = has_any,
        .has_everything = has_everything,
        .blame = blame,
        .context = together,
    };
    memcpy(backend.self, together->self.key, PEER_KEY_SIZE);
    together->service = ring_reader_service_new(&service);
    if (together->service == NULL) {
        return ERR_MEMORY;
    }
    ring_reader_begin(together->guest, &backend);
    return ERR_OK;
}

static enum err begin(struct together *together, const struct charter *charter, struct err_detail *detail) {
    struct link_sender_config link_sender = {
        .self = together->self,
        .holders_count =
            charter->replicas < LINK_RELAY_HOLDERS_MAX ? charter->replicas : LINK_RELAY_HOLDERS_MAX,
        .seed = randombytes_random(),
        .clock = together->config.clock,
        .table = &together_links,
        .context = together,
    };
    enum err err = begin_copies(together, charter->mapping, detail);
    if (err == ERR_OK) {
        together_make_crowd(together, charter->mapping);
        err = begin_reading(together, charter->mapping);
    }
    err = err == ERR_OK ? link_sender_start(&link_sender, &together->link_sender) : err;
    err = err == ERR_OK ? together_start_peer_rpc(together, detail) : err;
    err = err == ERR_OK ? copies_start(together->copies, together->captures, detail) : err;
    return err;
}

static void begin_if_possible(struct together *together) {
    struct err_detail detail = {0};
    struct charter *charter = malloc(sizeof *charter);
    if (charter == NULL) {
        return;
    }
    pthread_mutex_lock(&together->lock);
    bool has_charter = together->has_charter;
    *charter = together->charter;
    pthread_mutex_unlock(&together->lock);
    if (has_charter && !together->is_told) {
        enum err err = begin(together, charter, &detail);
        together->is_begun = err == ERR_OK;
        together->is_told = true;
        if (err != ERR_OK) {
            say(together, err_detail_text(&detail, err));
        } else {
            (void)transport_post(together->transport, together_begin_crowd,
                                 together); /* else with its news */
        }
    }
    free(charter);
}

/* ---- decrees travel ---- */

struct gossip {
    struct together *together;
    struct peer peer;
    struct buf question;
};

static void on_decrees(void *context, enum err err, struct bytes answer) {
    struct gossip *gossip = context;
    struct together *together = gossip->together;
    struct err_detail detail = {0};
    if (err == ERR_OK && decrees_take_answer(together->decrees, answer, &detail) != ERR_OK) {
        transport_blame(together->transport, &gossip->peer, "gives decrees that are none");
    }
    buf_done(&gossip->question);
    free(gossip);
}

static void ask_for_decrees(void *context) {
    struct gossip *gossip = context;
    decrees_put_question(gossip->together->decrees, &gossip->question);
    enum err err = peer_rpc_call(gossip->together->peer_rpc, &gossip->peer, PEER_RPC_DECREES,
                                 buf_bytes(&gossip->question), ASK_MS, on_decrees, gossip);
    if (err != ERR_OK) {
        on_decrees(gossip, err, bytes_of(NULL, 0));
    }
}

/* One node, at random, every second: news is everywhere after some log2 of their number. */
static void gossip(struct together *together) {
    struct peer *peers = malloc(HOLDERS_ALL_MAX * sizeof *peers);
    size_t count = peers != NULL ? holders_all(together->holders, peers, HOLDERS_ALL_MAX) : 0;
    count = count < HOLDERS_ALL_MAX ? count : HOLDERS_ALL_MAX;
    const uint8_t *self = transport_identity(together->transport)->key;
    size_t index = count > 0 ? randombytes_uniform((uint32_t)count) : 0;
    struct gossip *talk =
        count > 0 && memcmp(peers[index].key, self, PEER_KEY_SIZE) != 0 ? calloc(1, sizeof *talk) : NULL;
    if (talk != NULL) {
        talk->together = together;
        talk->peer = peers[index];
        buf_init(&talk->question, PEER_RPC_QUESTION_SIZE_MAX);
        if (peer_rpc_post(together->peer_rpc, ask_for_decrees, talk) != ERR_OK) {
            on_decrees(talk, ERR_CANCELLED, bytes_of(NULL, 0));
        }
    }
    free(peers);
}

static void recall(void *context, struct jobs *jobs) {
    (void)context;
    if (jobs != NULL) {
        jobs_recall(jobs);
    }
}

/* Others came or went: when it is quiet again, the crawl looks whose its URLs are now. */
static void watch_ring(struct together *together) {
    uint64_t generation = holders_generation(together->holders);
    together->settling_count = generation == together->seen_generation ? together->settling_count + 1 : 0;
    together->seen_generation = generation;
    if (generation != together->generation && together->settling_count >= SETTLED_BEATS) {
        together->generation = generation;
        crawl_loop_post(together->crawl_loop, recall, NULL);
    }
}

void together_beat(struct together *together) {
    decrees_beat(together->decrees);
    together_beat_groups(together);
    together_beat_mirrors(together);
    together_beat_deposits(together);
    if (!together->has_ring) {
        return;
    }
    if (!together->is_begun) {
        begin_if_possible(together);
    }
    if (together->is_begun) {
        if (together_crowd_driver(together) != NULL) {
            together_beat_crowd(together);
        }
        together_look_at_jobs(together);
        watch_ring(together);
        gossip(together);
    }
}

void together_stop(struct together *together) {
    group_driver_stop(together->group_driver);
    together_stop_crowd(together);
    link_sender_stop(together->link_sender);
    if (together->peer_rpc != NULL) {
        peer_rpc_stop(together->peer_rpc);
    }
    together_stop_mirrors(together);
    together_stop_deposits(together);
    if (together->guest != NULL) {
        ring_reader_end(together->guest);
    }
    if (together->copies != NULL) {
        copies_stop(together->copies);
    }
}

static void put_links(const struct link_relay_counters *links, struct buf *out) {
    buf_put_format(
        out,
        ",\"links\":{\"sent\":%ju,\"sent_size\":%ju,\"datagrams\":%ju,\"repeated\":%ju,\"done\":%ju,"
        "\"known\":%ju,\"silent\":%ju,",
        (uintmax_t)links->offered_count, (uintmax_t)links->sent_size, (uintmax_t)links->sent_count,
        (uintmax_t)links->repeated_count, (uintmax_t)links->done_count, (uintmax_t)links->known_count,
        (uintmax_t)links->silent_count);
    buf_put_format(out, "\"received\":%ju,\"accepted\":%ju,\"busy\":%ju,\"malformed\":%ju,\"flood\":%ju}",
                   (uintmax_t)links->received_count, (uintmax_t)links->accepted_count,
                   (uintmax_t)links->busy_count, (uintmax_t)links->malformed_count,
                   (uintmax_t)links->flood_count);
}

void together_put(struct together *together, struct buf *out) {
    struct peer_rpc_stat stat = {0};
    if (together->peer_rpc != NULL) {
        peer_rpc_stat(together->peer_rpc, &stat);
    }
    buf_put_format(
        out,
        "{\"streams\":%u,\"asked\":%ju,\"failed\":%ju,\"answered\":%ju,\"refused\":%ju,\"reads\":%ju,"
        "\"busy\":%ju,\"sent_size\":%ju,\"received_size\":%ju,\"decrees\":",
        stat.streams_count, (uintmax_t)stat.questions_count, (uintmax_t)stat.failed_count,
        (uintmax_t)stat.answers_count, (uintmax_t)stat.refused_count, (uintmax_t)stat.reads_count,
        (uintmax_t)stat.shed_count, (uintmax_t)stat.sent_size, (uintmax_t)stat.received_size);
    decrees_put_json(together->decrees, out);
    if (together->is_begun) {
        struct link_relay_counters links = link_sender_counters(together->link_sender);
        struct host_leases_stat leases;
        host_leases_stat(together->host_leases, &leases);
        buf_put_format(out, ",\"leases\":{\"lent\":%ju,\"borrowed\":%ju,\"refused\":%ju,\"lost\":%ju}",
                       (uintmax_t)leases.lent_count, (uintmax_t)leases.borrowed_count,
                       (uintmax_t)leases.refused_count, (uintmax_t)leases.lost_count);
        put_links(&links, out);
        buf_put_string(out, ",\"keeping\":");
        copies_put_json(together->copies, out);
    }
    buf_put_byte(out, '}');
}
