#include "node/node.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "node/crawling.h"
#include "node/status_page.h"
#include "node/token.h"
#include "replay/http_server.h"
#include "replay/volume_service.h"

enum { GRACE_MS = 5000, ROUTES_COUNT = 2 + VOLUME_SERVICE_ROUTES_COUNT, STATUS_OK = 200 };

struct node {
    struct token token;
    size_t volumes_count;
    struct volume_service *volumes;
    struct status_page *page;
    struct http_route routes[ROUTES_COUNT];
    struct http_server *http;
    struct crawling *crawling;
};

static void answer_health(struct http_request *request) {
    http_answer(request, STATUS_OK, "text/plain; charset=utf-8", BYTES("ok\n"));
}

/* A connection and an index file are a descriptor each; the usual 1,024 are soon used up. */
static void raise_descriptors_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

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
    };
    node->volumes = volume_service_new(&service);
    free(volumes);
    return node->volumes == NULL ? ERR_MEMORY : ERR_OK;
}

static enum err start_http(struct node *node, const struct node_config *config, struct err_detail *detail) {
    node->routes[0] = (struct http_route){.method = "GET", .path = "/health", .answer = answer_health};
    node->page = status_page_new(config->instance, config->directory);
    if (node->page == NULL) {
        return ERR_MEMORY;
    }
    node->routes[1] = status_page_route(node->page);
    volume_service_routes(node->volumes, node->routes + 2);
    struct http_server_config http = {
        .address = config->http,
        .routes = node->routes,
        .routes_count = ROUTES_COUNT,
        .scratch_directory = config->directory,
        .connections_max = config->connections_max,
        .request_timeout_ms = config->request_timeout_ms,
        .clock = config->clock,
    };
    return http_server_start(&http, &node->http, detail);
}

static enum err start_crawl(struct node *node, const struct node_config *config, struct err_detail *detail) {
    struct crawling_config crawling = {
        .directory = config->directory,
        .instance = config->instance,
        .allows_private = config->crawl_allows_private,
        .user_agent = config->crawl_user_agent,
        .connections_max = config->crawl_connections_max,
        .nameservers = config->crawl_nameservers,
        .clock = config->clock != NULL ? config->clock : &clock_system,
        .tell = config->tell,
        .context = config->context,
    };
    return crawling_start(&crawling, &node->crawling, detail);
}

enum err node_start(const struct node_config *config, struct node **ret_node, struct err_detail *detail) {
    struct node *node = calloc(1, sizeof *node);
    if (node == NULL) {
        return ERR_MEMORY;
    }
    raise_descriptors_limit();
    enum err err = token_load(&node->token, config->directory, detail);
    if (err == ERR_OK) {
        err = offer_volumes(node, config);
    }
    if (err == ERR_OK) {
        err = start_http(node, config, detail);
    }
    if (err == ERR_OK) {
        err = start_crawl(node, config, detail);
    }
    if (err != ERR_OK) {
        if (node->http != NULL) {
            http_server_stop(node->http, 0);
        }
        if (node->page != NULL) {
            status_page_free(node->page);
        }
        if (node->volumes != NULL) {
            volume_service_free(node->volumes);
        }
        free(node);
        return err;
    }
    *ret_node = node;
    return ERR_OK;
}

void node_stop(struct node *node) {
    crawling_stop(node->crawling);
    http_server_stop(node->http, GRACE_MS);
    status_page_free(node->page);
    volume_service_free(node->volumes);
    free(node);
}

void node_http_address(const struct node *node, struct address *ret_address) {
    http_server_address(node->http, ret_address);
}

const char *node_token_path(const struct node *node) {
    return node->token.path;
}

size_t node_volumes_count(const struct node *node) {
    return node->volumes_count;
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

int node_await_signal(void) {
    sigset_t signals = stop_signals();
    int number = 0;
    while (sigwait(&signals, &number) != 0) {
    }
    return number;
}
