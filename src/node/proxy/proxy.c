#include "node/proxy/proxy.h"

#include <sodium.h>
#include <stdlib.h>

#include "net/socket_address.h"
#include "node/proxy/proxy_state.h"

enum { BACKLOG = 128, TICK_US = 100000 };

static const uint64_t timeout_us_default = 3000000;

/* ---- the loop ---- */

static void proxy_tick(void *context) {
    struct proxy *proxy = context;
    struct proxy_connection *next;
    for (struct proxy_connection *each = proxy->connections; each != NULL; each = next) {
        next = each->next;
        proxy_connection_tick(each);
    }
    if (proxy->connections == NULL) {
        loop_timer_stop(&proxy->tick);
    }
}

static void on_connection(uv_stream_t *listener, int status) {
    struct proxy *proxy = listener->data;
    if (status != 0) {
        return;
    }
    proxy_connection_open(proxy, listener);
    if (!loop_timer_is_set(&proxy->tick)) {
        loop_timer_set(&proxy->tick, TICK_US, TICK_US);
    }
}

static void proxy_end(void *context) {
    struct proxy *proxy = context;
    while (proxy->connections != NULL) {
        proxy_connection_free(proxy->connections);
    }
    uv_close((uv_handle_t *)&proxy->listener, NULL);
    if (proxy->dns != NULL) {
        dns_free(proxy->dns);
    }
}

/* ---- starting ---- */

static enum err open_listener(struct proxy *proxy, struct err_detail *detail) {
    struct sockaddr_storage storage;
    char text[ADDRESS_TEXT_SIZE_MAX];
    int size = sizeof storage;
    const struct address *address = &proxy->config.listen;
    int status = uv_tcp_bind(&proxy->listener, socket_address_put(address, &storage), 0);
    if (status == 0) {
        status = uv_listen((uv_stream_t *)&proxy->listener, BACKLOG, on_connection);
    }
    if (status == 0) {
        status = uv_tcp_getsockname(&proxy->listener, (struct sockaddr *)&storage, &size);
    }
    if (status != 0 || !socket_address_get((struct sockaddr *)&storage, &proxy->bound)) {
        return err_set(detail, status == UV_EADDRINUSE ? ERR_BUSY : ERR_SYSTEM, "the proxy at %s: %s",
                       address_format(address, text), uv_strerror(status));
    }
    return ERR_OK;
}

static enum err open_parts(struct proxy *proxy, struct err_detail *detail) {
    const struct proxy_config *config = &proxy->config;
    struct dns_config dns = {.loop = &proxy->loop.uv, .nameservers = config->nameservers};
    enum err err = proxy_head_init(&proxy->head);
    if (err == ERR_OK) {
        err = open_listener(proxy, detail);
    }
    if (err == ERR_OK) {
        err = dns_new(&dns, &proxy->dns, detail);
    }
    if (err == ERR_OK && config->intercepts) {
        err = proxy_authority_open(config->directory, config->clock, &proxy->authority, detail);
    }
    if (err == ERR_OK) {
        err = proxy_jobs_start(config, &proxy->loop, proxy_exchange_looked, &proxy->jobs, detail);
    }
    if (err == ERR_OK && loop_start(&proxy->loop, "proxy", PRIORITY_USUAL) != ERR_OK) {
        err = err_set(detail, ERR_SYSTEM, "no thread for the proxy");
    }
    return err;
}

enum err proxy_start(const struct proxy_config *config, struct proxy **ret_proxy, struct err_detail *detail) {
    uint64_t seed;
    struct proxy *proxy = calloc(1, sizeof *proxy);
    enum err err = proxy != NULL ? loop_init(&proxy->loop, 0) : ERR_MEMORY;
    if (err != ERR_OK) {
        free(proxy);
        return err;
    }
    randombytes_buf(&seed, sizeof seed);
    proxy->config = *config;
    proxy->config.clock = config->clock != NULL ? config->clock : &clock_system;
    proxy->config.timeout_us = config->timeout_us > 0 ? config->timeout_us : timeout_us_default;
    standing_init(&proxy->standing, proxy->silences, PROXY_SILENCES_MAX, seed);
    proxy->is_private = address_is_loopback(&config->listen);
    uv_tcp_init(&proxy->loop.uv, &proxy->listener);
    proxy->listener.data = proxy;
    loop_timer_init(&proxy->loop, &proxy->tick, proxy_tick, proxy);
    err = open_parts(proxy, detail);
    if (err != ERR_OK) {
        proxy_stop(proxy);
        return err;
    }
    *ret_proxy = proxy;
    return ERR_OK;
}

void proxy_stop(struct proxy *proxy) {
    if (proxy->jobs != NULL) {
        proxy_jobs_stop(proxy->jobs);
    }
    loop_stop(&proxy->loop, proxy_end, proxy);
    if (proxy->jobs != NULL) {
        proxy_jobs_free(proxy->jobs);
    }
    proxy_authority_free(proxy->authority);
    proxy_head_done(&proxy->head);
    free(proxy);
}

void proxy_address(const struct proxy *proxy, struct address *ret_address) {
    *ret_address = proxy->bound;
}
