#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/lru.h"
#include "net/socket_address.h"
#include "net/stream_state.h"

enum {
    STREAMS_MAX_DEFAULT = 256,
    STREAMS_PER_ADDRESS_MAX_DEFAULT = 32,
    HANDSHAKES_MAX_DEFAULT = 64,
    HANDSHAKES_PER_ADDRESS_MAX_DEFAULT = 8,
    BACKLOG = 128,
    ADDRESSES_MAX = 4096,
};

static const struct bucket_rate address_rate_default = {.per_second = 20, .burst = 64};
static const struct bucket_rate total_rate_default = {.per_second = 500, .burst = 500};

struct stream_server {
    uv_tcp_t listener;
    struct stream_server_config config;
    struct address address;
    struct stream_server_stats stats;
    struct stream *streams; /* all that count, open or not */
    struct lru rates;       /* network: struct bucket */
    struct bucket total;
};

/* An address that comes too often does not use up what is there for all. */
static bool is_within_rate(struct stream_server *server, const struct address *from) {
    uint8_t network[SOCKET_ADDRESS_NETWORK_SIZE];
    uint64_t now_us = uv_hrtime() / 1000;
    socket_address_network(from, network);
    struct bucket *bucket = lru_find(&server->rates, network);
    if (bucket == NULL) {
        bucket = lru_add(&server->rates, network);
    }
    return bucket_take(bucket, server->config.address_rate, now_us) &&
           bucket_take(&server->total, server->config.total_rate, now_us);
}

/* At most a few hundred streams: walking them costs less than a handshake. */
static bool has_room(const struct stream_server *server, const struct address *from) {
    const struct stream_server_config *config = &server->config;
    uint32_t all = 0;
    uint32_t all_handshakes = 0;
    uint32_t same = 0;
    uint32_t same_handshakes = 0;
    for (const struct stream *stream = server->streams; stream != NULL; stream = stream->next) {
        bool is_same = socket_address_is_same_network(&stream->peer.address, from);
        bool is_handshake = stream->phase != STREAM_OPEN;
        all++;
        all_handshakes += is_handshake;
        same += is_same;
        same_handshakes += is_same && is_handshake;
    }
    return all < config->streams_max && all_handshakes < config->handshakes_max &&
           same < config->streams_per_address_max && same_handshakes < config->handshakes_per_address_max;
}

static void add(struct stream_server *server, struct stream *stream) {
    stream->server = server;
    stream->next = server->streams;
    if (stream->next != NULL) {
        stream->next->previous = stream;
    }
    server->streams = stream;
}

void stream_server_gone(struct stream_server *server, struct stream *stream) {
    server->stats.failed += stream->events.on_closed == NULL;
    *(stream->previous == NULL ? &server->streams : &stream->previous->next) = stream->next;
    if (stream->next != NULL) {
        stream->next->previous = stream->previous;
    }
    stream->server = NULL;
}

void stream_server_opened(struct stream_server *server, struct stream *stream) {
    server->stats.opened++;
    server->config.on_stream(server->config.context, stream);
}

static void on_connection(uv_stream_t *listener, int status) {
    struct stream_server *server = listener->data;
    struct sockaddr_storage name;
    int name_size = sizeof name;
    struct stream *stream;
    if (status != 0 || stream_new(&server->config.stream, &stream) != ERR_OK) {
        return;
    }
    if (uv_accept(listener, (uv_stream_t *)&stream->tcp) != 0 ||
        uv_tcp_getpeername(&stream->tcp, (struct sockaddr *)&name, &name_size) != 0 ||
        !socket_address_get((struct sockaddr *)&name, &stream->peer.address)) {
        stream_free(stream);
        return;
    }
    server->stats.accepted++;
    if (!has_room(server, &stream->peer.address) || !is_within_rate(server, &stream->peer.address)) {
        server->stats.turned_away++;
        stream_free(stream);
        return;
    }
    add(server, stream);
    stream_begin(stream, STREAM_WAITS_FOR_HELLO);
}

static void on_closed(uv_handle_t *handle) {
    struct stream_server *server = handle->data;
    lru_done(&server->rates);
    free(server);
}

static uint32_t or_default(uint32_t value, uint32_t standard) {
    return value > 0 ? value : standard;
}

/* What 0 stands for. */
static void complete(struct stream_server_config *config) {
    config->streams_max = or_default(config->streams_max, STREAMS_MAX_DEFAULT);
    config->streams_per_address_max =
        or_default(config->streams_per_address_max, STREAMS_PER_ADDRESS_MAX_DEFAULT);
    config->handshakes_max = or_default(config->handshakes_max, HANDSHAKES_MAX_DEFAULT);
    config->handshakes_per_address_max =
        or_default(config->handshakes_per_address_max, HANDSHAKES_PER_ADDRESS_MAX_DEFAULT);
    config->address_rate = config->address_rate.burst > 0 ? config->address_rate : address_rate_default;
    config->total_rate = config->total_rate.burst > 0 ? config->total_rate : total_rate_default;
}

/* What was held is used, but stays its owner's: this is another descriptor of the same socket. */
static int open_held(struct stream_server *server, int held) {
    int fd = fcntl(held, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return uv_translate_sys_error(errno);
    }
    /* As uv_tcp_bind() does, but only now that it is bound: else connections that have ended keep the port
     * from who starts again with it. */
    int yes = 1;
    int status = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0
                     ? uv_tcp_open(&server->listener, fd)
                     : uv_translate_sys_error(errno);
    if (status != 0) {
        close(fd);
    }
    return status;
}

static enum err listen_socket(struct stream_server *server, struct err_detail *detail) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    struct sockaddr_storage name;
    int name_size = sizeof name;
    const struct stream_server_config *config = &server->config;
    int status = config->held != NULL
                     ? open_held(server, *config->held)
                     : uv_tcp_bind(&server->listener, socket_address_put(&config->address, &name), 0);
    if (status == 0) {
        status = uv_listen((uv_stream_t *)&server->listener, BACKLOG, on_connection);
    }
    if (status == 0) {
        status = uv_tcp_getsockname(&server->listener, (struct sockaddr *)&name, &name_size);
    }
    if (status != 0 || !socket_address_get((struct sockaddr *)&name, &server->address)) {
        return err_set(detail, err_from_errno(-status), "cannot listen at %s: %s",
                       address_format(&config->address, text), uv_strerror(status));
    }
    return ERR_OK;
}

enum err stream_server_new(const struct stream_server_config *config, struct stream_server **ret_server,
                           struct err_detail *detail) {
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    struct stream_server *server = calloc(1, sizeof *server);
    if (server == NULL || lru_init(&server->rates, SOCKET_ADDRESS_NETWORK_SIZE, sizeof(struct bucket),
                                   ADDRESSES_MAX, seed) != ERR_OK) {
        free(server);
        return err_set(detail, ERR_MEMORY, "no memory for the stream server");
    }
    server->config = *config;
    complete(&server->config);
    int status = uv_tcp_init(config->stream.loop, &server->listener);
    ASSERT(status == 0); /* without a family it makes no socket */
    server->listener.data = server;
    enum err err = listen_socket(server, detail);
    if (err != ERR_OK) {
        uv_close((uv_handle_t *)&server->listener, on_closed);
        return err;
    }
    *ret_server = server;
    return ERR_OK;
}

void stream_server_free(struct stream_server *server) {
    if (server == NULL) {
        return;
    }
    struct stream *next;
    for (struct stream *stream = server->streams; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->phase == STREAM_OPEN) {
            stream->server = NULL;
        } else {
            stream_free(stream);
        }
    }
    uv_close((uv_handle_t *)&server->listener, on_closed);
}

struct address stream_server_address(const struct stream_server *server) {
    return server->address;
}

const struct stream_server_stats *stream_server_stats(const struct stream_server *server) {
    return &server->stats;
}
