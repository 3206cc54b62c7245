#include "node/ring_services.h"

#include <sodium.h>
#include <stdlib.h>

#include "net/datagram.h"
#include "node/ring_services_state.h"
#include "node/transport/ring_files.h"
#include "replay/admin/ring_text.h"
#include "store/access/access.h"
#include "store/keyset/position.h"

enum {
    SENTENCE_SIZE_MAX = 4096,
    MANY_PLACES = 1024,
    MANY_PLACES_US = 2000000,
    LEADS_MAX = 2,    /* holders that are asked: waiting for more would take as long as fetching */
    SETTLED_BEATS = 2 /* quiet seconds before the crawl looks through its URLs */
};

void ring_services_note(void *context, const char *sentence) {
    const struct ring_services *ring_services = context;
    if (ring_services->config.note != NULL) {
        ring_services->config.note(ring_services->config.context, sentence);
    }
}

void ring_services_blame(void *context, const struct peer *peer, const char *sentence) {
    const struct ring_services *ring_services = context;
    transport_blame(ring_services->transport, peer, sentence);
}

static void services_refuse(void *context, const struct peer *peer, const char *reason) {
    const struct ring_services *ring_services = context;
    transport_refuse(ring_services->transport, peer, reason);
}

/* ---- making ---- */

static void on_jobs(void *context) {
    const struct ring_services *ring_services = context;
    if (ring_services->config.jobs_changed != NULL) {
        ring_services->config.jobs_changed(ring_services->config.context);
    }
}

/* The beat's thread. */
static enum err on_rules(void *context, struct err_detail *detail) {
    const struct ring_services *ring_services = context;
    struct access *access = ring_services->access;
    return access == NULL ? err_set(detail, ERR_BUSY, "the node has not read its access rules yet")
                          : access_reload(access, detail);
}

/* The deletions' thread. */
static void on_deleted(void *context) {
    const struct ring_services *ring_services = context;
    decrees_look_again(ring_services->decrees);
    if (ring_services->is_begun) {
        copies_wake(ring_services->copies); /* the keys go as well */
    }
}

struct ring_services *ring_services_new(const struct ring_services_config *config) {
    struct ring_services *ring_services = calloc(1, sizeof *ring_services);
    if (ring_services == NULL) {
        return NULL;
    }
    ring_services->config = *config;
    pthread_mutex_init(&ring_services->lock, NULL);
    struct deletions_config deletions = {.directory = config->directory,
                                         .instance = config->instance,
                                         .clock = config->clock,
                                         .note = ring_services_note,
                                         .applied = on_deleted,
                                         .context = ring_services};
    ring_services->deletions = deletions_new(&deletions);
    struct decrees_config decrees = {.directory = config->directory,
                                     .clock = config->clock,
                                     .note = ring_services_note,
                                     .changed = on_jobs,
                                     .reload = on_rules,
                                     .dialects = config->dialects,
                                     .deletions = ring_services->deletions,
                                     .context = ring_services};
    struct group_driver_config group_driver = {
        .directory = config->directory,
        .period_us = config->settings->group_period_us,
        .silence_us = config->settings->group_silence_us,
        .clock = config->clock,
        .note = ring_services_note,
        .context = ring_services,
    };
    ring_services->decrees = decrees_new(&decrees);
    ring_services->acts = acts_new(&(struct acts_config){.directory = config->directory,
                                                         .clock = config->clock,
                                                         .note = ring_services_note,
                                                         .context = ring_services});
    ring_services->members = members_new(config->directory, config->clock);
    ring_services->group_driver = group_driver_new(&group_driver);
    if (ring_services->decrees == NULL || ring_services->acts == NULL || ring_services->members == NULL ||
        ring_services->group_driver == NULL || ring_services->deletions == NULL) {
        ring_services_free(ring_services);
        return NULL;
    }
    return ring_services;
}

void ring_services_free(struct ring_services *ring_services) {
    if (ring_services->mirror_driver != NULL) {
        mirror_driver_free(ring_services->mirror_driver);
    }
    ring_services_free_crowd(ring_services);
    ring_services_free_search(ring_services);
    link_sender_free(ring_services->link_sender);
    if (ring_services->copies != NULL) {
        copies_free(ring_services->copies);
    }
    if (ring_services->captures != NULL) {
        captures_free(ring_services->captures);
    }
    if (ring_services->service != NULL) {
        ring_reader_service_free(ring_services->service);
    }
    if (ring_services->host_leases != NULL) {
        host_leases_free(ring_services->host_leases);
    }
    public_urls_free(ring_services->public_urls);
    if (ring_services->peer_rpc != NULL) {
        peer_rpc_free(ring_services->peer_rpc);
    }
    if (ring_services->group_driver != NULL) {
        group_driver_free(ring_services->group_driver);
    }
    reports_free(ring_services->reports);
    routing_free(ring_services->routing);
    holders_free(ring_services->holders);
    sites_free(ring_services->sites);
    acts_free(ring_services->acts);
    decrees_free(ring_services->decrees);
    deletions_free(ring_services->deletions);
    members_free(ring_services->members);
    pthread_mutex_destroy(&ring_services->lock);
    free(ring_services);
}

/* ---- the ring's loop ---- */

/* Looking at all known virtual nodes takes milliseconds if they are many: less often then. */
static void on_news(void *shared, const struct ring *ring) {
    struct ring_services *ring_services = shared;
    uint64_t now_us = clock_monotonic_us(ring_services->config.clock);
    if (ring_known_count(ring) > MANY_PLACES && now_us < ring_services->updated_at_us + MANY_PLACES_US) {
        return;
    }
    ring_services->updated_at_us = now_us;
    pthread_mutex_lock(&ring_services->lock);
    size_t copies = ring_services->charter.replicas;
    pthread_mutex_unlock(&ring_services->lock);
    holders_update(ring_services->holders, ring, copies);
}

static void on_charter(void *shared, const struct charter *charter, const uint8_t ring[RING_CHARTER_SIZE]) {
    struct ring_services *ring_services = shared;
    pthread_mutex_lock(&ring_services->lock);
    ring_services->has_charter = true;
    ring_services->charter = *charter;
    memcpy(ring_services->ring_id, ring, sizeof ring_services->ring_id);
    pthread_mutex_unlock(&ring_services->lock);
    decrees_set_self(ring_services->decrees, transport_identity(ring_services->transport));
    decrees_set_charter(ring_services->decrees, charter, ring);
    acts_set_charter(ring_services->acts, charter, ring);
    members_set_charter(ring_services->members, charter, ring);
    routing_set_rules(ring_services->routing, (enum position_mapping)charter->mapping, charter->witnesses);
    routing_set_scope(ring_services->routing, charter);
}

static void on_member(void *shared, const uint8_t key[PEER_KEY_SIZE], const struct membership *membership) {
    struct ring_services *ring_services = shared;
    members_note(ring_services->members, key, membership);
}

enum err ring_services_set_transport(struct ring_services *ring_services, struct transport *transport) {
    struct transport_tenant tenant = {
        .news = on_news, .charter = on_charter, .member = on_member, .context = ring_services};
    ring_services->transport = transport;
    ring_services->is_light = transport_is_light(transport);
    if (ring_services->is_light) {
        decrees_set_light(ring_services->decrees);
    }
    transport_add(transport, &tenant);
    ring_services_add_links(ring_services);
    ring_services_add_crowd(ring_services);
    ring_services_add_groups(ring_services);
    ring_services->holders = holders_new(transport);
    if (ring_services->holders != NULL && ring_services->config.dialects != NULL) {
        ring_services->sites = sites_new(ring_services->config.dialects);
        holders_set_sites(ring_services->holders, ring_services->sites);
    }
    ring_services->routing = ring_services->holders != NULL ? routing_new(ring_services->holders) : NULL;
    return ring_services->routing == NULL ? ERR_MEMORY : ERR_OK;
}

/* ---- beginning ---- */

static bool admits(void *context, const struct peer *peer) {
    struct ring_services *ring_services = context;
    return transport_admits(ring_services->transport, peer) ||
           group_driver_is_member(ring_services->group_driver, peer) ||
           ring_services_hears(ring_services, peer);
}

/* What a light member answers, over streams that it has opened: which decrees there are; and to its relay,
 * what it has read. It has no copies, no hosts and no public pages. */
static bool services_is_light(struct ring_services *ring_services, const struct peer *peer,
                              enum peer_rpc_service service) {
    bool is_for_relay = service == PEER_RPC_HAND || service == PEER_RPC_RELAYED;
    return service == PEER_RPC_DECREES || service == PEER_RPC_IN_FORCE ||
           (is_for_relay && ring_services->relayed != NULL && relayed_is_relay(ring_services->relayed, peer));
}

/* A member of a group need not be one of the ring, and the other way round. Collections may be for others,
 * too. */
static bool serves(void *context, const struct peer *peer, enum peer_rpc_service service) {
    struct ring_services *ring_services = context;
    bool is_for_groups = service == PEER_RPC_PROBE || service == PEER_RPC_MIRROR;
    if (ring_services->is_light && !is_for_groups && !services_is_light(ring_services, peer, service)) {
        return false;
    }
    bool is_of_group = is_for_groups && group_driver_is_member(ring_services->group_driver, peer);
    return is_of_group || (service != PEER_RPC_PROBE && transport_admits(ring_services->transport, peer)) ||
           (service == PEER_RPC_MIRROR && ring_services_hears(ring_services, peer));
}

static void meet(void *context, const struct peer *peer) {
    const struct ring_services *ring_services = context;
    bool is_of_group = group_driver_is_member(ring_services->group_driver, peer);
    if (!is_of_group || transport_admits(ring_services->transport, peer)) {
        transport_greet(ring_services->transport, peer);
    }
}

static enum route_verdict ask_route(void *context, struct bytes url, uint8_t ret_place[ROUTE_POSITION_SIZE]) {
    struct ring_services *ring_services = context;
    return routing_ask(ring_services->routing, url, ret_place);
}

static bool allows(void *context, struct bytes url) {
    struct ring_services *ring_services = context;
    return routing_allows(ring_services->routing, url);
}

static bool wants_own(void *context) {
    struct ring_services *ring_services = context;
    return routing_has_witnesses(ring_services->routing);
}

enum err ring_services_make_peer_rpc(struct ring_services *ring_services, struct err_detail *detail) {
    const struct settings *settings = ring_services->config.settings;
    struct peer_rpc *peer_rpc;
    if (ring_services->peer_rpc != NULL) {
        return ERR_OK;
    }
    bool is_open = transport_address(ring_services->transport, &ring_services->self.address);
    ASSERT(is_open);
    memcpy(ring_services->self.key, transport_identity(ring_services->transport)->key, PEER_KEY_SIZE);
    struct peer_rpc_config config = {
        .identity = transport_identity(ring_services->transport),
        .clock = ring_services->config.clock,
        .address = transport_listening(ring_services->transport),
        .public = ring_services->self.address,
        .is_outbound = ring_services->is_light,
        .held = transport_held(ring_services->transport),
        .upload_rate = settings->ring_upload,
        .download_rate = settings->ring_download,
        .reads_rate = (uint32_t)settings->ring_requests,
        .admits = admits,
        .serves = serves,
        .meet = meet,
        .dialects = ring_services->config.dialects,
        .refuse = services_refuse,
        .blame = ring_services_blame,
        .context = ring_services,
    };
    enum err err = peer_rpc_new(&config, &peer_rpc, detail);
    if (err == ERR_OK) {
        ring_services->peer_rpc = peer_rpc;
    }
    return err;
}

enum err ring_services_start_peer_rpc(struct ring_services *ring_services, struct err_detail *detail) {
    enum err err =
        ring_services->is_peer_rpc_started ? ERR_OK : peer_rpc_start(ring_services->peer_rpc, detail);
    ring_services->is_peer_rpc_started = err == ERR_OK;
    return err;
}

/* A founder whom nobody has joined is alone: what it has is all that there is. */
static bool services_expect_others(const struct ring_services *ring_services) {
    const char *directory = ring_services->config.directory;
    struct charter *charter = malloc(sizeof *charter);
    struct peer *peers = malloc(RING_FILES_PEERS_MAX * sizeof *peers);
    uint8_t *memory = malloc(CHARTER_SIZE_MAX);
    struct bytes encoded;
    bool is_ready = charter != NULL && peers != NULL && memory != NULL;
    enum err err =
        is_ready ? ring_files_read_charter(directory, charter, memory, &encoded, NULL) : ERR_MEMORY;
    bool is_alone = err == ERR_NOT_FOUND;
    if (err == ERR_OK) {
        const uint8_t *self = transport_identity(ring_services->transport)->key;
        is_alone = charter_is_steward(charter, self) && ring_files_read_peers(directory, peers) == 0;
    }
    free(memory);
    free(peers);
    free(charter);
    return !is_alone;
}

/* What lives in a ring. */
static enum err prepare_ring(struct ring_services *ring_services, struct err_detail *detail) {
    enum err err = ring_services_make_peer_rpc(ring_services, detail);
    if (err != ERR_OK) {
        return err;
    }
    peer_rpc_serve(ring_services->peer_rpc, PEER_RPC_DECREES, decrees_answer, ring_services->decrees);
    peer_rpc_serve(ring_services->peer_rpc, PEER_RPC_ACTS, acts_answer, ring_services->acts);
    peer_rpc_serve(ring_services->peer_rpc, PEER_RPC_IN_FORCE, decrees_answer_in_force,
                   ring_services->decrees);
    peer_rpc_serve(ring_services->peer_rpc, PEER_RPC_ROLL, members_answer, ring_services->members);
    struct host_leases_config host_leases = {
        .peer_rpc = ring_services->peer_rpc,
        .self = ring_services->self,
        .homes = holders_source(ring_services->holders),
        .clock = ring_services->config.clock,
    };
    ring_services->route = (struct route){.ask = ask_route,
                                          .allows = allows,
                                          .outgoing = ring_services_on_outgoing,
                                          .wants_own = wants_own,
                                          .context = ring_services};
    ring_services->guest = ring_reader_new(ring_services->config.directory,
                                           instance_reading_budget(ring_services->config.instance));
    if (ring_services->guest == NULL) {
        return ERR_MEMORY;
    }
    ring_services->expects_others = services_expect_others(ring_services);
    if (ring_services->expects_others) {
        ring_reader_expect(ring_services->guest);
    }
    instance_set_guest(ring_services->config.instance, ring_services->guest);
    struct public_urls_config public_urls = {
        .peer_rpc = ring_services->peer_rpc,
        .identity = transport_identity(ring_services->transport),
        .own = settings_text(ring_services->config.settings->http_public),
        .clock = ring_services->config.clock,
        .blame = ring_services_blame,
        .context = ring_services,
    };
    ring_services->public_urls = public_urls_new(&public_urls);
    if (ring_services->public_urls == NULL) {
        return ERR_MEMORY;
    }
    return host_leases_new(&host_leases, &ring_services->host_leases, detail);
}

enum err ring_services_prepare(struct ring_services *ring_services, struct err_detail *detail) {
    ring_services->has_ring = transport_has_ring(ring_services->transport);
    enum err err = ring_services->has_ring ? prepare_ring(ring_services, detail) : ERR_OK;
    err = err == ERR_OK && ring_services->has_ring ? deletions_start(ring_services->deletions) : err;
    err = err == ERR_OK ? ring_services_prepare_groups(ring_services, detail) : err;
    return err == ERR_OK ? ring_services_prepare_mirrors(ring_services, detail) : err;
}

void ring_services_share_crawl(struct ring_services *ring_services, struct crawl_loop_config *config) {
    if (!ring_services->has_ring) {
        return;
    }
    config->identity = transport_identity(ring_services->transport);
    if (ring_services->is_light) {
        return; /* jobs of its own are its own: nobody shares them */
    }
    config->route = &ring_services->route;
    config->permits = host_leases_permits(ring_services->host_leases);
    config->attach = host_leases_attach;
    config->detach = host_leases_detach;
    config->shared = ring_services->host_leases;
}

void ring_services_set_access(struct ring_services *ring_services, struct access *access) {
    ring_services->access = access;
}

void ring_services_set_crawl_loop(struct ring_services *ring_services, struct crawl_loop *crawl_loop) {
    ring_services->crawl_loop = crawl_loop;
}

static enum err find_holders(void *context, const uint8_t place[RINGKEY_POSITION_SIZE],
                             struct peer out[RING_READER_HOLDERS_MAX], size_t *ret_count) {
    const struct ring_services *ring_services = context;
    struct holders_arc arc;
    enum err err = holders_find_soon(ring_services->holders, ring_id_read(place), &arc);
    if (err == ERR_OK) {
        memcpy(out, arc.peers, arc.count * sizeof *out);
        *ret_count = arc.count;
    }
    return err;
}

static bool is_in_ring(void *context) {
    const struct ring_services *ring_services = context;
    return holders_copies(ring_services->holders) > 0 || !ring_services->expects_others;
}

static size_t find_all(void *context, struct peer *out, size_t peers_max) {
    const struct ring_services *ring_services = context;
    return holders_all(ring_services->holders, out, peers_max);
}

static bool is_current(void *context, const uint8_t place[RINGKEY_POSITION_SIZE]) {
    const struct ring_services *ring_services = context;
    bool has_all = copies_is_compared(ring_services->copies, ring_id_read(place)) ||
                   copies_has_everything(ring_services->copies);
    return has_all && !copies_expects(ring_services->copies, ring_id_read(place));
}

static bool has_any(void *context, const uint8_t place[RINGKEY_POSITION_SIZE]) {
    const struct ring_services *ring_services = context;
    struct ringkey first;
    return copies_find_first(ring_services->copies, place, INT64_MIN, &first) == ERR_OK;
}

static bool has_everything(void *context) {
    const struct ring_services *ring_services = context;
    return copies_has_everything(ring_services->copies);
}

enum err ring_services_find_surt(void *context, const struct ringkey *key, struct buf *out) {
    const struct ring_services *ring_services = context;
    return copies_find_surt(ring_services->copies, key, out);
}

static bool may_copy(void *context, const struct peer *peer) {
    const struct ring_services *ring_services = context;
    return copies_may_copy(ring_services->copies, peer);
}

/* A false capture, read or copied: for a while, what its giver says it has counts for nothing. */
static void blame_giver(void *context, const struct peer *peer, const char *sentence) {
    const struct ring_services *ring_services = context;
    copies_distrust(ring_services->copies, peer);
    transport_blame(ring_services->transport, peer, sentence);
}

/* A capture that another node gives: does the ring take it? Any thread. */
static bool services_refuses(void *context, const struct captured *captured) {
    struct ring_services *ring_services = context;
    struct members_claim claim = {
        .time_us = captured->document.time_us,
        .is_signed = captured->is_signed,
        .signer = captured->is_signed ? roll_start(captured->signer) : 0,
        .is_imported = captured->is_imported,
        .importer = captured->is_imported ? roll_start(captured->importer) : 0,
        .is_in_scope = routing_allows(ring_services->routing, captured->document.url),
    };
    return members_refuse(ring_services->members, &claim) != NULL;
}

static uint64_t services_verdicts(void *context) {
    const struct ring_services *ring_services = context;
    return members_generation(ring_services->members);
}

static bool may_take(void *context) {
    const struct ring_services *ring_services = context;
    return members_knows_rule(ring_services->members);
}

static bool may_offer(void *context) {
    const struct ring_services *ring_services = context;
    return ring_services->may_offer;
}

static enum err begin_copies(struct ring_services *ring_services, uint8_t mapping,
                             struct err_detail *detail) {
    const struct settings *settings = ring_services->config.settings;
    struct copies_config copies = {
        .directory = ring_services->config.directory,
        .instance = ring_services->config.instance,
        .peer_rpc = ring_services->peer_rpc,
        .ring = holders_source(ring_services->holders),
        .mapping = mapping,
        .grace_us = settings->ring_grace_us,
        .compare_interval_us = settings->ring_compare_us,
        .challenge_interval_us = 2 * settings->ring_compare_us,
        .scrub_period_us = settings->ring_scrub_us,
        .keeps_everything = settings->ring_keep == SETTINGS_KEEP_EVERYTHING,
        .has_slow_lines = settings->ring_upload > 0 || settings->ring_download > 0,
        .keeps_own = settings->ring_keep == SETTINGS_KEEP_OWN,
        .keeps_but_of = transport_identity(ring_services->transport)->key,
        .seed = randombytes_random(),
        .clock = ring_services->config.clock,
        .may_offer = may_offer,
        .may_take = may_take,
        .verdicts = services_verdicts,
        .blame = ring_services_blame,
        .note = ring_services_note,
        .context = ring_services,
    };
    ring_services_look_at_absence(ring_services);
    struct captures_config captures = {
        .instance = ring_services->config.instance,
        .peer_rpc = ring_services->peer_rpc,
        .scratch_directory = ring_services->config.directory,
        .dialects = ring_services->config.dialects,
        .mapping = mapping,
        .find_surt = ring_services_find_surt,
        .may_copy = may_copy,
        .refuses = services_refuses,
        .blame = blame_giver,
        .context = ring_services,
    };
    enum err err = copies_new(&copies, &ring_services->copies, detail);
    if (err != ERR_OK) {
        return err;
    }
    ring_services->captures = captures_new(&captures);
    return ring_services->captures == NULL ? ERR_MEMORY : ERR_OK;
}

static enum err begin_reading(struct ring_services *ring_services, uint8_t mapping) {
    struct ring_reader_service_config service = {
        .instance = ring_services->config.instance,
        .peer_rpc = ring_services->peer_rpc,
        .dialects = ring_services->config.dialects,
        .mapping = mapping,
        .is_current = is_current,
        .context = ring_services,
    };
    struct ring_reader_config backend = {
        .peer_rpc = ring_services->peer_rpc,
        .captures = ring_services->captures,
        .offers = ring_services->offers,
        .obtain = ring_services->crowd_reader,
        .mapping = mapping,
        .find_holders = find_holders,
        .is_in_ring = is_in_ring,
        .find_all = find_all,
        .is_current = is_current,
        .has_any = has_any,
        .has_everything = has_everything,
        .blame = ring_services_blame,
        .context = ring_services,
    };
    memcpy(backend.self, ring_services->self.key, PEER_KEY_SIZE);
    ring_services->service = ring_reader_service_new(&service);
    if (ring_services->service == NULL) {
        return ERR_MEMORY;
    }
    ring_reader_begin(ring_services->guest, &backend);
    return ERR_OK;
}

static enum err services_begin(struct ring_services *ring_services, const struct charter *charter,
                               struct err_detail *detail) {
    struct link_sender_config link_sender = {
        .self = ring_services->self,
        .holders_count =
            charter->replicas < LINK_RELAY_HOLDERS_MAX ? charter->replicas : LINK_RELAY_HOLDERS_MAX,
        .seed = randombytes_random(),
        .clock = ring_services->config.clock,
        .table = &ring_services_links,
        .context = ring_services,
    };
    enum err err = begin_copies(ring_services, charter->mapping, detail);
    if (err == ERR_OK) {
        ring_services_make_crowd(ring_services, charter->mapping);
        err = begin_reading(ring_services, charter->mapping);
    }
    err = err == ERR_OK ? ring_services_begin_search(ring_services) : err;
    bool is_light = ring_services->is_light; /* then these are not started: no copies, no links, no report */
    err = err == ERR_OK && !is_light ? ring_services_make_reports(ring_services) : err;
    err = err == ERR_OK && !is_light ? link_sender_start(&link_sender, &ring_services->link_sender) : err;
    err = err == ERR_OK ? ring_services_start_peer_rpc(ring_services, detail) : err;
    err = err == ERR_OK ? ring_services_start_relayed(ring_services, detail) : err;
    if (err == ERR_OK && !is_light) {
        err = copies_start(ring_services->copies, ring_services->captures, detail);
    }
    return err;
}

static void begin_if_possible(struct ring_services *ring_services) {
    struct err_detail detail = {0};
    struct charter *charter = malloc(sizeof *charter);
    if (charter == NULL) {
        return;
    }
    pthread_mutex_lock(&ring_services->lock);
    bool has_charter = ring_services->has_charter;
    *charter = ring_services->charter;
    pthread_mutex_unlock(&ring_services->lock);
    if (has_charter && !ring_services->is_told) {
        enum err err = services_begin(ring_services, charter, &detail);
        ring_services->is_begun = err == ERR_OK;
        ring_services_share_crowd(ring_services);
        ring_services->is_told = true;
        if (err != ERR_OK) {
            ring_services_note(ring_services, err_detail_text(&detail, err));
        } else {
            (void)transport_post(ring_services->transport, ring_services_begin_crowd,
                                 ring_services); /* else with its news */
        }
    }
    free(charter);
}

static void recall(void *context, struct jobs *jobs) {
    (void)context;
    if (jobs != NULL) {
        jobs_recall(jobs);
    }
}

/* Others came or went: when it is quiet again, the crawl looks whose its URLs are now. */
static void watch_ring(struct ring_services *ring_services) {
    uint64_t generation = holders_generation(ring_services->holders);
    ring_services->settling_count =
        generation == ring_services->seen_generation ? ring_services->settling_count + 1 : 0;
    ring_services->seen_generation = generation;
    if (generation != ring_services->generation && ring_services->settling_count >= SETTLED_BEATS) {
        ring_services->generation = generation;
        crawl_loop_post(ring_services->crawl_loop, recall, NULL);
    }
}

void ring_services_beat(struct ring_services *ring_services) {
    bool was_heard = ring_services->has_heard;
    acts_beat(ring_services->acts);
    decrees_beat(ring_services->decrees);
    members_set_rule(ring_services->members, decrees_import_rule(ring_services->decrees));
    members_beat(ring_services->members);
    uint64_t verdicts = members_generation(ring_services->members);
    bool is_judged_anew = verdicts != ring_services->verdicts;
    ring_services->verdicts = verdicts;
    ring_services_beat_groups(ring_services);
    ring_services_beat_mirrors(ring_services);
    ring_services_beat_mirrored(ring_services);
    if (!ring_services->has_ring) {
        return;
    }
    if (!ring_services->is_begun) {
        begin_if_possible(ring_services);
    }
    if (ring_services->is_begun) {
        if (ring_services_crowd_driver(ring_services) != NULL) {
            ring_services_beat_crowd(ring_services);
        }
        if (!ring_services->is_light) {
            if (is_judged_anew) {
                copies_wake(ring_services->copies); /* what was refused may be taken now */
            }
            ring_services_look_at_jobs(ring_services);
            watch_ring(ring_services);
            ring_services_beat_reports(ring_services);
        }
        ring_services_beat_search(ring_services);
        ring_services_beat_absence(ring_services, was_heard);
        ring_services_beat_decrees(ring_services);
    }
}

void ring_services_stop(struct ring_services *ring_services) {
    deletions_stop(ring_services->deletions);
    group_driver_stop(ring_services->group_driver);
    ring_services_stop_crowd(ring_services);
    link_sender_stop(ring_services->link_sender);
    if (ring_services->peer_rpc != NULL) {
        peer_rpc_stop(ring_services->peer_rpc);
    }
    ring_services_stop_relays(ring_services);
    if (ring_services->mirror_driver != NULL) {
        mirror_driver_stop(ring_services->mirror_driver);
    }
    ring_services_stop_mirrored(ring_services);
    ring_services_stop_search(ring_services);
    if (ring_services->guest != NULL) {
        ring_reader_end(ring_services->guest);
    }
    if (ring_services->copies != NULL) {
        copies_stop(ring_services->copies);
    }
}

bool ring_services_count(void *context, uint64_t *ret_count) {
    struct ring_services *ring_services = context;
    struct peer peers[2];
    if (!ring_services->is_begun || ring_services->is_light ||
        holders_all(ring_services->holders, peers, 2) < 2 || copies_has_everything(ring_services->copies)) {
        return false;
    }
    *ret_count = 0;
    (void)copies_estimate(ring_services->copies, ret_count);
    return true;
}

enum archive_membership ring_services_judge(void *context, uint64_t voucher, int64_t time_us) {
    const struct ring_services *ring_services = context;
    switch (members_judge(ring_services->members, voucher, time_us)) {
    case MEMBERS_NO_RING:
        break;
    case MEMBERS_MEMBER:
        return ARCHIVE_MEMBER;
    case MEMBERS_STRANGER:
        return ARCHIVE_STRANGER;
    }
    return ARCHIVE_MEMBERSHIP_UNKNOWN;
}

/* A node of an earlier release does not say who vouches: whoever opens the capture will see. */
bool ring_services_admits_listed(void *context, const struct capture *capture) {
    struct ring_services *ring_services = context;
    if (!capture_has_voucher(capture)) {
        return true;
    }
    bool is_signed = (capture->flags & CAPTURE_SIGNED) != 0;
    struct members_claim claim = {
        .time_us = capture->time_us,
        .is_signed = is_signed,
        .signer = capture->voucher,
        .is_imported = (capture->flags & CAPTURE_IMPORTED) != 0,
        .importer = capture->voucher,
        .is_importer_hidden = is_signed, /* of one that has both words the list names the signer only */
        .is_in_scope = routing_allows(ring_services->routing, capture->url),
    };
    return members_refuse(ring_services->members, &claim) == NULL;
}

/* Readers are led to the node that is responsible if its operator wants that (ring.redirect). */
bool ring_services_lead(void *context, struct bytes surt, struct buf *out) {
    struct ring_services *ring_services = context;
    uint8_t place[RINGKEY_POSITION_SIZE];
    char text[PUBLIC_URLS_TEXT_SIZE];
    struct holders_arc arc;
    struct sha256 sha256;
    if (!ring_services->is_begun || sha256_init(&sha256) != ERR_OK) {
        return false;
    }
    pthread_mutex_lock(&ring_services->lock);
    enum position_mapping mapping = (enum position_mapping)ring_services->charter.mapping;
    pthread_mutex_unlock(&ring_services->lock);
    position_of_surt(&sha256, surt, mapping, place);
    sha256_done(&sha256);
    enum err err = holders_find_soon(ring_services->holders, ring_id_read(place), &arc);
    if (err != ERR_OK || arc.self_rank >= 0) {
        return false; /* a responsible node leads nobody away */
    }
    for (size_t i = 0; i < arc.count && i < LEADS_MAX; i++) {
        if (public_urls_find(ring_services->public_urls, &arc.peers[i], text)) {
            buf_put_string(out, text);
            return out->err == ERR_OK;
        }
    }
    return false;
}

static void services_put_links(const struct link_relay_counters *links, struct json *json) {
    json_open(json, "links");
    JSON_COUNTS(json, {"sent", links->offered_count}, {"sent_size", links->sent_size},
                {"datagrams", links->sent_count}, {"repeated", links->repeated_count},
                {"done", links->done_count}, {"known", links->known_count}, {"silent", links->silent_count},
                {"received", links->received_count}, {"accepted", links->accepted_count},
                {"new", links->new_count}, {"busy", links->busy_count}, {"malformed", links->malformed_count},
                {"flood", links->flood_count});
    json_close(json);
}

static void services_put_sentences(const struct ring_view *view, struct json *json) {
    struct buf sentence;
    buf_init(&sentence, SENTENCE_SIZE_MAX);
    json_open(json, "sentences");
    for (int i = 0; i < RING_TEXT_COUNT; i++) {
        buf_clear(&sentence);
        ring_text_put((enum ring_text)i, view, &sentence);
        if (sentence.size > 0) {
            json_bytes(json, ring_text_names[i], buf_bytes(&sentence));
        }
    }
    json_close(json);
    buf_done(&sentence);
}

static void services_put_sites(const struct ring_view *view, struct json *json) {
    json_open(json, "sites");
    json_bool(json, "used", view->sites_are_used);
    JSON_COUNTS(json, {"captures", view->sites_captures_count}, {"at_one_site", view->sites_alone_count});
    json_open_list(json, "list");
    for (size_t i = 0; i < view->sites_count; i++) {
        json_open(json, NULL);
        json_text(json, "name", view->sites[i].name);
        JSON_COUNTS(json, {"nodes", view->sites[i].nodes_count}, {"captures", view->sites[i].captures_count});
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

static void services_put(struct ring_services *ring_services, const struct ring_view *view, struct json *json,
                         const char *name, const char *copies_name) {
    const struct ring_view_rpc *rpc = &view->rpc;
    const struct ring_view_leases *leases = &view->leases;
    json_open(json, name);
    JSON_COUNTS(json, {"streams", rpc->streams_count}, {"asked", rpc->questions_count},
                {"failed", rpc->failed_count}, {"answered", rpc->answers_count},
                {"refused", rpc->refused_count}, {"reads", rpc->reads_count}, {"busy", rpc->shed_count},
                {"sent_size", rpc->sent_size}, {"received_size", rpc->received_size},
                {"streams_without_tls", rpc->first_count}, {"streams_given_up", rpc->weak_count});
    decrees_put_json(ring_services->decrees, json);
    acts_put_json(ring_services->acts, json);
    if (view->is_begun) {
        struct link_relay_counters links = link_sender_counters(ring_services->link_sender);
        json_open(json, "leases");
        JSON_COUNTS(json, {"lent", leases->lent_count}, {"borrowed", leases->borrowed_count},
                    {"refused", leases->refused_count}, {"lost", leases->lost_count});
        json_close(json);
        services_put_links(&links, json);
        copies_put_json(ring_services->copies, json, copies_name);
    }
    services_put_sites(view, json);
    services_put_sentences(view, json);
    json_close(json);
}

void ring_services_put(struct ring_services *ring_services, const struct ring_view *view, struct json *json) {
    if (view->is_begun) {
        ring_services_put_reports(view, json);
    }
    services_put(ring_services, view, json, "services", "copies");
    services_put(ring_services, view, json, "together", "keeping"); /* in 0.1 */
}

void ring_services_put_metrics(struct ring_services *ring_services, struct buf *out) {
    ring_services_put_crowd_metrics(ring_services, out);
    group_driver_put_metrics(ring_services->group_driver, out);
    mirror_driver_put_metrics(ring_services->mirror_driver, out);
}

void ring_services_view(struct ring_services *ring_services, struct arena *arena, struct ring_view *view) {
    if (ring_services->peer_rpc != NULL) {
        peer_rpc_stat(ring_services->peer_rpc, &view->rpc);
    }
    decrees_view(ring_services->decrees, arena, view);
    view->nodes_count = ring_services->holders != NULL ? holders_all(ring_services->holders, NULL, 0) : 0;
    view->is_light = ring_services->is_light;
    view->is_begun = ring_services->is_begun && !ring_services->is_light;
    if (view->is_begun) {
        struct link_relay_counters links = link_sender_counters(ring_services->link_sender);
        host_leases_stat(ring_services->host_leases, &view->leases);
        view->links_sent_count = links.offered_count;
        view->links_sent_size = links.sent_size;
        view->links_accepted_count = links.accepted_count;
        view->links_new_count = links.new_count;
        view->links_silent_count = links.silent_count;
        view->links_malformed_count = links.malformed_count;
        view->links_flood_count = links.flood_count;
        copies_view(ring_services->copies, arena, &view->copies);
        ring_services_view_reports(ring_services, arena, view);
    }
    ring_services_view_relays(ring_services, arena, view);
    if (ring_services->sites != NULL) {
        sites_view(ring_services->sites, arena, view);
    }
}
