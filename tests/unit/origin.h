/*
 * origin - a web server for tests, on the loop of the test and on loopback: one answer to every request, or
 * what the test says to each.
 */
#ifndef MNEMON_TESTS_ORIGIN_H
#define MNEMON_TESTS_ORIGIN_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { ORIGIN_CLIENTS_MAX = 64, ORIGIN_REQUEST_SIZE_MAX = 8192 };

struct origin_client {
    uv_tcp_t tcp; /* first: libuv gives us this */
    struct origin *origin;
    bool is_used;
    size_t size;
    char request[ORIGIN_REQUEST_SIZE_MAX];
};

struct origin {
    uv_tcp_t listener;
    const char *answer; /* NULL: silence */
    bool closes;        /* after each answer */
    /* Where it is set: the answer to a request, good until the next one. */
    const char *(*respond)(void *context, const char *request);
    void *context;
    uint16_t port;
    unsigned connections_count;
    unsigned requests_count;
    struct origin_client clients[ORIGIN_CLIENTS_MAX];
};

static inline void origin_on_closed(uv_handle_t *handle) {
    ((struct origin_client *)(void *)handle)->is_used = false;
}

static inline void origin_drop(struct origin_client *client) {
    if (!uv_is_closing((uv_handle_t *)&client->tcp)) {
        uv_close((uv_handle_t *)&client->tcp, origin_on_closed);
    }
}

static inline void origin_give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buf) {
    struct origin_client *client = (struct origin_client *)(void *)handle;
    (void)size;
    *buf = uv_buf_init(client->request + client->size, (unsigned)(sizeof client->request - client->size - 1));
}

static inline void origin_on_bytes(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    struct origin_client *client = (struct origin_client *)(void *)stream;
    struct origin *origin = client->origin;
    (void)buf;
    if (got < 0) {
        origin_drop(client);
        return;
    }
    client->size += (size_t)got;
    client->request[client->size] = '\0';
    if (strstr(client->request, "\r\n\r\n") == NULL) {
        return;
    }
    client->size = 0;
    origin->requests_count++;
    const char *answer =
        origin->respond != NULL ? origin->respond(origin->context, client->request) : origin->answer;
    if (answer != NULL) {
        uv_buf_t out = uv_buf_init((char *)(uintptr_t)answer, (unsigned)strlen(answer));
        uv_try_write(stream, &out, 1);
        if (origin->closes) {
            origin_drop(client);
        }
    }
}

static inline void origin_on_client(uv_stream_t *listener, int status) {
    struct origin *origin = listener->data;
    size_t i = 0;
    while (i < ORIGIN_CLIENTS_MAX && origin->clients[i].is_used) {
        i++;
    }
    if (status != 0 || i == ORIGIN_CLIENTS_MAX) {
        abort();
    }
    struct origin_client *client = &origin->clients[i];
    client->is_used = true;
    client->origin = origin;
    client->size = 0;
    uv_tcp_init(listener->loop, &client->tcp);
    uv_unref((uv_handle_t *)&client->tcp);
    if (uv_accept(listener, (uv_stream_t *)&client->tcp) != 0 ||
        uv_read_start((uv_stream_t *)&client->tcp, origin_give_buffer, origin_on_bytes) != 0) {
        abort();
    }
    origin->connections_count++;
}

static inline void origin_open(struct origin *origin, uv_loop_t *loop, const char *answer) {
    struct sockaddr_in address;
    int size = sizeof address;
    memset(origin, 0, sizeof *origin);
    origin->answer = answer;
    uv_ip4_addr("127.0.0.1", 0, &address);
    if (uv_tcp_init(loop, &origin->listener) != 0 ||
        uv_tcp_bind(&origin->listener, (const struct sockaddr *)&address, 0) != 0 ||
        uv_listen((uv_stream_t *)&origin->listener, 128, origin_on_client) != 0 ||
        uv_tcp_getsockname(&origin->listener, (struct sockaddr *)&address, &size) != 0) {
        abort();
    }
    origin->listener.data = origin;
    origin->port = ntohs(address.sin_port);
    uv_unref((uv_handle_t *)&origin->listener);
}

static inline void origin_close(struct origin *origin) {
    uv_close((uv_handle_t *)&origin->listener, NULL);
    for (size_t i = 0; i < ORIGIN_CLIENTS_MAX; i++) {
        if (origin->clients[i].is_used) {
            origin_drop(&origin->clients[i]);
        }
    }
}

#endif
