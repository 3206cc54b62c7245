#include "node/node.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/admin/token.h"
#include "node/admin/twins_merger.h"
#include "node/admin_api.h"
#include "node/copies/disk_room.h"
#include "node/crawl/crawl_loop.h"
#include "node/node_file.h"
#include "node/proxy/proxy.h"
#include "node/ring_services.h"
#include "node/versions/dialects.h"
#include "replay/routes.h"
#include "replay/survey/survey.h"
#include "replay/volumes/volume_service.h"
#include "replay/wayback/rewritten.h"

enum {
    GRACE_MS = 300,
    NODE_ROUTES_MAX = VOLUME_SERVICE_ROUTES_COUNT + ROUTES_MAX,
    NOTE_SIZE_MAX = 512,
    RING_HTTP_THREADS = 32, /* some of them wait for other nodes: node/reading/ring_reader.h */
};

struct node {
    struct node_config config; /* with its defaults filled in */
    struct token token;
    size_t volumes_count;
    struct volume_service *volumes;
    struct access *access;
    struct archive *archive;
    struct survey *survey;
    struct rewritten *rewritten;
    struct search *search;
    struct dialects *dialects; /* what other nodes speak */
    struct transport *transport;
    struct ring_services *ring_services;
    struct crawl_loop *crawl_loop;
    struct save_requests *save_requests;
    _Atomic(struct monitor *) monitor; /* the crawl's thread asks for it */
    struct twins_merger *twins_merger;
    struct admin_api work;
    struct admin *admin;
    struct admin_pages admin_pages;
    struct replay replay;
    struct http_route routes[NODE_ROUTES_MAX];
    size_t routes_count;
    struct http_server *http;
    struct proxy *proxy; /* NULL: none */
    struct disk_room *disk_room;
    bool has_file;
};

/* ---- what it tells ---- */

static void node_note(void *context, const char *sentence) {
    const struct node *node = context;
    if (node->config.note != NULL) {
        node->config.note(node->config.context, sentence);
    }
}

static void note_search(void *context, const char *name, const char *sentence) {
    char text[NOTE_SIZE_MAX];
    snprintf(text, sizeof text, "%s: %s", name, sentence);
    node_note(context, text);
}

/* A save may be over, or a charter has come. */
static void hurry(void *context) {
    struct node *node = context;
    struct monitor *monitor = node->monitor;
    if (monitor != NULL) {
        monitor_hurry(monitor);
    }
}

/* Saves come and go without a line each. */
static void node_tell(void *context, const char *name, const char *sentence) {
    const struct node *node = context;
    if (node->config.tell != NULL && !save_requests_is_name(bytes_of_string(name))) {
        node->config.tell(node->config.context, name, sentence);
    }
}

/* ---- starting ---- */

/* The local ones: those behind other servers are offered there. */
static enum err offer_volumes(struct node *node, const struct node_config *config) {
    size_t count = instance_volumes_count(config->instance);
    struct volume_service_volume *volumes = calloc(count + 1, sizeof *volumes);
    if (volumes == NULL) {
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        struct instance_volume volume;
        instance_volume(config->instance, i, &volume);
        if (volume.volume != NULL) {
            volumes[node->volumes_count++] =
                (struct volume_service_volume){.number = volume.number, .volume = volume.volume};
        }
    }
    struct volume_service_config service = {
        .volumes = volumes,
        .volumes_count = node->volumes_count,
        .token = node->token.text,
        .scratch_directory = config->directory,
        .instance = config->instance,
    };
    node->volumes = volume_service_new(&service);
    free(volumes);
    return node->volumes == NULL ? ERR_MEMORY : ERR_OK;
}

static enum err open_archive(struct node *node, struct err_detail *detail) {
    const struct node_config *config = &node->config;
    enum err err = access_open(config->directory, config->clock, node_note, node, &node->access, detail);
    if (err != ERR_OK) {
        return err;
    }
    ring_services_set_access(node->ring_services, node->access);
    struct archive_config archive = {
        .instance = config->instance,
        .access = node->access,
        .scratch_directory = config->directory,
        .parsers = config->parsers,
        .parses_short = config->settings->node_parse_short,
        .trusts_fetched_only = config->settings->archive_trust == SETTINGS_TRUST_MEMBERS,
        .judge = ring_services_judge,
        .admits = ring_services_admits_listed,
        .context = node->ring_services,
    };
    node->archive = archive_new(&archive);
    if (node->archive == NULL) {
        return ERR_MEMORY;
    }
    struct survey_config survey = {.archive = node->archive, .clock = config->clock};
    err = survey_start(&survey, &node->survey, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct search_config search = {
        .is_enabled = config->settings->search_enabled,
        .directory = config->directory,
        .instance = config->instance,
        .parsers = config->parsers,
        .clock = config->clock,
        .tell = note_search,
        .context = node,
    };
    err = search_start(&search, &node->search, detail);
    if (err == ERR_OK) {
        ring_services_set_search(node->ring_services, node->search, node->archive);
    }
    return err;
}

static void look_at_jobs(void *context) {
    const struct node *node = context;
    if (node->crawl_loop != NULL) {
        crawl_loop_look(node->crawl_loop);
    }
}

/* What this node says that it speaks. */
static enum err make_dialects(struct node *node, struct err_detail *detail) {
    const struct node_config *config = &node->config;
    struct dialect own = dialect_of_program;
    bool is_first_only = config->settings->ring_protocol == SETTINGS_PROTOCOL_FIRST;
    bool is_hello_only = config->settings->ring_protocol == SETTINGS_PROTOCOL_HELLO;
    own.highest = is_first_only ? DIALECT_VERSION_FIRST : own.highest;
    own.lowest = is_hello_only ? DIALECT_VERSION_HELLO : own.lowest;
    if (!config->settings->search_enabled) {
        own.features &= ~(UINT64_C(1) << DIALECT_SEARCH);
    }
    if (!settings_make_relay(config->settings)) {
        own.features &= ~(UINT64_C(1) << DIALECT_RELAY);
    }
    if (config->program != NULL) {
        snprintf(own.program, sizeof own.program, "%s", config->program);
    }
    struct bytes site = config->settings->ring_site;
    if (site.size > 0 && !dialect_site_is_valid(site)) {
        return err_set(detail, ERR_INVALID,
                       "the name of a site has 1 to %d letters, digits, '.', '-', '+', '~' or '_'",
                       DIALECT_SITE_SIZE_MAX);
    }
    snprintf(own.site, sizeof own.site, "%.*s", BYTES_ARG(site));
    node->dialects = dialects_new(&own, config->clock);
    return node->dialects == NULL ? ERR_MEMORY : ERR_OK;
}

/* Before the archive: the ring is part of what it shows. */
static enum err make_ring_services(struct node *node, struct err_detail *detail) {
    const struct node_config *config = &node->config;
    enum err err = make_dialects(node, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct ring_services_config ring_services = {
        .directory = config->directory,
        .instance = config->instance,
        .settings = config->settings,
        .limit = config->mirror_limit,
        .upload_limit = config->mirror_upload_limit,
        .dialects = node->dialects,
        .clock = config->clock,
        .note = node_note,
        .jobs_changed = look_at_jobs,
        .context = node,
    };
    node->ring_services = ring_services_new(&ring_services);
    return node->ring_services == NULL ? ERR_MEMORY : ERR_OK;
}

static enum err start_ring(struct node *node, struct err_detail *detail) {
    const struct node_config *config = &node->config;
    struct transport_config transport = {
        .directory = config->directory,
        .address = config->ring,
        .public = config->ring_public,
        .second = config->ring_second,
        .join = config->ring_join,
        .token = config->ring_token,
        .is_light = config->settings->ring_capacity == 0,
        .vnodes_count = (uint8_t)(config->settings->ring_capacity > 0 ? config->settings->ring_capacity : 1),
        .first_vnode = (uint8_t)config->settings->ring_first_place,
        .nameservers = settings_text(config->settings->crawl_nameservers),
        .dialects = node->dialects,
        .clock = config->clock,
        .note = node_note,
        .changed = hurry,
        .context = node,
    };
    enum err err = transport_new(&transport, &node->transport, detail);
    if (err == ERR_OK) {
        err = ring_services_set_transport(node->ring_services, node->transport);
    }
    err = err == ERR_OK ? transport_start(node->transport, detail) : err;
    return err == ERR_OK ? ring_services_prepare(node->ring_services, detail) : err;
}

static enum err start_disk_room(struct node *node) {
    const struct node_config *config = &node->config;
    struct disk_room_config disk_room = {
        .instance = config->instance,
        .note = node_note,
        .context = node,
    };
    return disk_room_start(&disk_room, &node->disk_room);
}

static enum err start_crawl(struct node *node, struct err_detail *detail) {
    const struct node_config *config = &node->config;
    struct crawl_loop_config crawl_loop = {
        .directory = config->directory,
        .instance = config->instance,
        .allows_private = config->settings->crawl_allow_private,
        .allows_private_shared = config->settings->crawl_allow_private_ring,
        .user_agent = settings_text(config->settings->crawl_user_agent),
        .connections_max = (size_t)config->settings->crawl_connections,
        .frontier_memory_max = config->settings->crawl_frontier_memory,
        .nameservers = settings_text(config->settings->crawl_nameservers),
        .parsers = config->parsers,
        .clock = config->clock,
        .tell = node_tell,
        .changed = hurry,
        .context = node,
    };
    ring_services_share_crawl(node->ring_services, &crawl_loop);
    enum err err = crawl_loop_start(&crawl_loop, &node->crawl_loop, detail);
    if (err != ERR_OK) {
        return err;
    }
    ring_services_set_crawl_loop(node->ring_services, node->crawl_loop);
    struct save_requests_config save_requests = {
        .directory = config->directory,
        .crawl_loop = node->crawl_loop,
        .archive = node->archive,
        .clock = config->clock,
    };
    return save_requests_new(&save_requests, &node->save_requests, detail);
}

static void beat(void *context) {
    const struct node *node = context;
    save_requests_step(node->save_requests);
    transport_beat(node->transport);
    ring_services_beat(node->ring_services);
}

_Static_assert((int)REPLAY_NODE_KEY_SIZE == (int)IDENTITY_TEXT_SIZE, "a key as text");

/* What the routes of HTTP need: permissions, actions, knowledge. */
static enum err open_admin_pages(struct node *node) {
    const struct node_config *config = &node->config;
    const struct settings *settings = config->settings;
    const char *title = settings_text(settings->archive_title);
    title = title != NULL ? title : "mnemon";
    struct admin_config admin = {
        .token = node->token.text,
        .hosts = settings->http_hosts,
        .is_loopback = address_is_loopback(&config->http),
        .reads_need_login = settings->http_reads == SETTINGS_READS_TOKEN,
        .rate = settings->http_rate,
        .clock = config->clock,
    };
    node->admin = admin_new(&admin);
    if (node->admin == NULL) {
        return ERR_MEMORY;
    }
    node->work = (struct admin_api){.directory = config->directory,
                                    .crawl_loop = node->crawl_loop,
                                    .save_requests = node->save_requests,
                                    .transport = node->transport,
                                    .port_mapper = config->port_mapper,
                                    .services = node->ring_services};
    enum err err = crowd_lookups_start(ring_services_crowd(node->ring_services), node->access,
                                       &node->work.crowd_lookups);
    if (err != ERR_OK) {
        return err;
    }
    node->admin_pages =
        (struct admin_pages){.table = &admin_api_table, .context = &node->work, .admin = node->admin};
    if (settings->http_cache > 0 && (node->rewritten = rewritten_new(settings->http_cache)) == NULL) {
        return ERR_MEMORY;
    }
    node->replay = (struct replay){
        .archive = node->archive,
        .rewritten = node->rewritten,
        .search = node->search,
        .survey = node->survey,
        .admin_pages = &node->admin_pages,
        .clock = config->clock,
        .title = title,
        .lead = settings->ring_redirect ? ring_services_lead : NULL,
        .lead_context = node->ring_services,
        .count_ring = ring_services_count,
        .search_ring = ring_services_search,
        .tell = node_note,
        .tell_context = node,
    };
    identity_key_format(transport_identity(node->transport)->key, node->replay.node_key);
    volume_service_routes(node->volumes, node->routes);
    node->routes_count = VOLUME_SERVICE_ROUTES_COUNT;
    node->routes_count += routes_fill(&node->replay, node->routes + node->routes_count);
    struct monitor_config monitor = {
        .sources =
            {
                .instance = config->instance,
                .crawl_loop = node->crawl_loop,
                .routes_count = node->routes_count,
                .admin = node->admin,
                .search = node->search,
                .has_confined_calls = config->confined.has_calls,
                .confined_files = config->confined.files,
                .parsers = config->parsers,
                .rewritten = node->rewritten,
                .clock = config->clock,
            },
        .title = title,
        .routes = node->routes,
        .beat = beat,
        .context = node,
    };
    node->work.monitor = monitor_new(&monitor);
    node->monitor = node->work.monitor;
    return node->work.monitor == NULL ? ERR_MEMORY : ERR_OK;
}

/* Reading goes on without node.json; commands then cannot find the node, and say that it is busy. */
static enum err node_go_on_unnamed(struct node *node, enum err why) {
    node_file_remove(node->config.directory); /* it is of an earlier node */
    node_note(node, why == ERR_NO_SPACE
                        ? "no space left on the disk: commands cannot find this node until it is restarted"
                        : "its directory may not be written to: commands cannot find this node");
    return ERR_OK;
}

static enum err start_http(struct node *node, struct err_detail *detail) {
    const struct node_config *config = &node->config;
    struct http_server_config http = {
        .address = config->http,
        .routes = node->routes,
        .routes_count = node->routes_count,
        .scratch_directory = config->directory,
        .threads_count = transport_has_ring(node->transport) ? RING_HTTP_THREADS : 0,
        .connections_max = (unsigned)config->settings->http_connections,
        .request_timeout_ms = (uint32_t)(config->settings->http_timeout_us / 1000),
        .clock = config->clock,
        .check = admin_check,
        .check_context = node->admin,
    };
    enum err err = http_server_start(&http, &node->http, detail);
    if (err == ERR_OK && http_server_connections_max(node->http) < http.connections_max) {
        char text[160];
        snprintf(text, sizeof text,
                 "http.connections is %u, but the limit of open files (ulimit -n) allows %u connections",
                 http.connections_max, http_server_connections_max(node->http));
        node_note(node, text);
    }
    if (err == ERR_OK) {
        err = monitor_run(node->work.monitor, node->http);
    }
    if (err == ERR_OK) {
        err = twins_merger_start(config->instance, node_note, node, &node->twins_merger);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct address address;
    http_server_address(node->http, &address);
    err = node_file_write(config->directory, &address, clock_wall_us(config->clock), detail);
    node->has_file = err == ERR_OK;
    return err == ERR_NO_SPACE || err == ERR_PERMISSION ? node_go_on_unnamed(node, err) : err;
}

/* Last: it must know where the node's own pages are. */
static enum err start_proxy(struct node *node, struct err_detail *detail) {
    const struct node_config *config = &node->config;
    const struct settings *settings = config->settings;
    struct proxy_config proxy = {
        .directory = config->directory,
        .listen = config->proxy,
        .timeout_us = settings->proxy_timeout_us,
        .intercepts = settings->proxy_intercept,
        .archives = settings->proxy_archive,
        .allows_private = settings->crawl_allow_private,
        .nameservers = settings_text(settings->crawl_nameservers),
        .archive = node->archive,
        .access = node->access,
        .reads_need_login = settings->http_reads == SETTINGS_READS_TOKEN,
        .crowd = ring_services_crowd(node->ring_services),
        .transport = node->transport,
        .clock = config->clock,
        .note = node_note,
        .context = node,
    };
    http_server_address(node->http, &proxy.http);
    return config->has_proxy ? proxy_start(&proxy, &node->proxy, detail) : ERR_OK;
}

/* What has been started, in an order in which nobody uses what is gone. */
static void close_node(struct node *node) {
    if (node->has_file) {
        node_file_remove(node->config.directory);
    }
    twins_merger_stop(node->twins_merger);
    if (node->monitor != NULL) {
        monitor_rest(node->monitor);
    }
    disk_room_stop(node->disk_room);
    if (node->ring_services != NULL) {
        ring_services_stop(node->ring_services); /* requests that wait for another node get their answer */
    }
    if (node->transport != NULL) {
        transport_stop(node->transport); /* and those that wait for the ring */
    }
    if (node->crawl_loop != NULL) {
        crawl_loop_end(node->crawl_loop);
    }
    if (node->work.crowd_lookups != NULL) {
        crowd_lookups_stop(node->work.crowd_lookups); /* and those for the crowd */
    }
    if (node->proxy != NULL) {
        proxy_stop(node->proxy);
    }
    if (node->http != NULL) {
        http_server_stop(node->http, GRACE_MS);
    }
    crowd_lookups_free(node->work.crowd_lookups);
    if (node->crawl_loop != NULL) {
        crawl_loop_stop(node->crawl_loop);
    }
    if (node->transport != NULL) {
        transport_free(node->transport);
    }
    if (node->save_requests != NULL) {
        save_requests_free(node->save_requests);
    }
    if (node->monitor != NULL) {
        monitor_free(node->monitor);
    }
    if (node->admin != NULL) {
        admin_free(node->admin);
    }
    search_stop(node->search);
    if (node->survey != NULL) {
        survey_stop(node->survey);
    }
    if (node->archive != NULL) {
        archive_free(node->archive);
    }
    rewritten_free(node->rewritten);
    if (node->ring_services != NULL) {
        ring_services_free(node->ring_services);
    }
    dialects_free(node->dialects);
    if (node->access != NULL) {
        access_close(node->access);
    }
    if (node->volumes != NULL) {
        volume_service_free(node->volumes);
    }
    free(node);
}

enum err node_start(const struct node_config *config, struct node **ret_node, struct err_detail *detail) {
    struct node *node = calloc(1, sizeof *node);
    if (node == NULL) {
        return ERR_MEMORY;
    }
    node->config = *config;
    node->config.clock = config->clock != NULL ? config->clock : &clock_system;
    fetch_raise_descriptors_limit();
    enum err err = token_load(&node->token, config->directory, detail);
    if (err == ERR_OK) {
        err = offer_volumes(node, config);
    }
    if (err == ERR_OK) {
        err = make_ring_services(node, detail);
    }
    if (err == ERR_OK) {
        err = open_archive(node, detail);
    }
    if (err == ERR_OK) {
        err = start_ring(node, detail);
    }
    if (err == ERR_OK) {
        err = start_disk_room(node);
    }
    if (err == ERR_OK) {
        err = start_crawl(node, detail);
    }
    if (err == ERR_OK) {
        err = open_admin_pages(node);
    }
    if (err == ERR_OK) {
        err = start_http(node, detail);
    }
    if (err == ERR_OK) {
        err = start_proxy(node, detail);
    }
    if (err != ERR_OK) {
        close_node(node);
        return err;
    }
    *ret_node = node;
    return ERR_OK;
}

void node_stop(struct node *node) {
    close_node(node);
}

void node_http_address(const struct node *node, struct address *ret_address) {
    http_server_address(node->http, ret_address);
}

bool node_proxy_address(const struct node *node, struct address *ret_address) {
    if (node->proxy != NULL) {
        proxy_address(node->proxy, ret_address);
    }
    return node->proxy != NULL;
}

const char *node_token_path(const struct node *node) {
    return node->token.path;
}

const char *node_token(const struct node *node) {
    return node->token.text;
}

size_t node_volumes_count(const struct node *node) {
    return node->volumes_count;
}

bool node_has_ring(const struct node *node) {
    return transport_has_ring(node->transport);
}

bool node_is_light(const struct node *node) {
    return transport_is_light(node->transport);
}

bool node_ring_address(const struct node *node, struct address *ret_address) {
    return transport_address(node->transport, ret_address);
}

static sigset_t stop_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    return signals;
}

void node_take_signals(void) {
    sigset_t signals = stop_signals();
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int node_await_signal(uint64_t time_us) {
    sigset_t signals = stop_signals();
    struct timespec time = {.tv_sec = (time_t)(time_us / 1000000),
                            .tv_nsec = (long)(time_us % 1000000 * 1000)};
    int number = sigtimedwait(&signals, NULL, &time);
    return number > 0 ? number : 0;
}
