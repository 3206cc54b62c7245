#include "net/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/lru.h"
#include "net/channel.h"
#include "net/frame.h"
#include "net/socket_address.h"

enum {
    STREAM_INPUT_SIZE = 2 * FRAME_WHOLE_SIZE_MAX, /* a whole frame fits behind the rest of another */
    STREAM_SMALL_SIZE = 1024,                     /* until then: a message of the first handshake has 144 */
};

enum stream_phase {
    STREAM_CONNECTING,
    STREAM_SHAKES_HANDS,
    STREAM_OPEN,
    STREAM_DEAD, /* the handles are closing */
};

struct stream {
    uv_tcp_t tcp;
    uv_timer_t timer; /* the end of the handshake, or of patience */
    uv_connect_t connect;
    struct stream_config config;
    struct stream_events events;
    void *context;
    struct stream_server *server; /* counts us; NULL: we connected, or it has gone */
    struct stream *next;          /* of the server */
    struct stream *previous;
    struct peer peer;
    enum stream_phase phase;
    bool is_paused;
    bool is_reading;  /* taking the input apart: not again from inside a callback */
    bool is_finished; /* by us */
    bool has_finish;  /* by the other side */
    bool is_full;     /* the owner waits for on_room() */
    uint8_t handles_count;
    size_t output_size; /* on its way into the socket */
    uint64_t received_bytes;
    struct channel *channel;
    struct buf pending; /* what the channel has to say and the socket was not given yet */
    uint8_t *input;     /* STREAM_INPUT_SIZE; until the stream is open, `small` */
    size_t input_size;
    uint8_t *contents; /* CHANNEL_CONTENTS_SIZE_MAX, once the stream is open */
    uint8_t small[STREAM_SMALL_SIZE];
};

enum {
    HANDSHAKE_MS_DEFAULT = 10000,
    IDLE_MS_DEFAULT = 60000,
    OUTPUT_SIZE_MAX_DEFAULT = 1 << 20,
    OUTPUT_OVERHEAD_MAX = 4096, /* of a handshake; of contents it is less than an eighth */
};

struct stream_server {
    uv_tcp_t listener;
    struct stream_server_config config;
    struct address address;
    struct stream_server_stats stats;
    struct stream *streams; /* all that count, open or not */
    struct lru rates;       /* network: struct bucket */
    struct bucket total;
};

/* Bytes on their way into the socket. */
struct output {
    uv_write_t write;
    size_t size;
    uint8_t *bytes;
};

static void stream_server_gone(struct stream_server *server, struct stream *stream) {
    server->stats.failed += stream->events.on_closed == NULL;
    *(stream->previous == NULL ? &server->streams : &stream->previous->next) = stream->next;
    if (stream->next != NULL) {
        stream->next->previous = stream->previous;
    }
    stream->server = NULL;
}

/* The server's part. */
static void stream_server_opened(struct stream_server *server, struct stream *stream) {
    server->stats.opened++;
    server->config.on_stream(server->config.context, stream);
}

static void on_handle_closed(uv_handle_t *handle) {
    struct stream *stream = handle->data;
    stream->handles_count--;
    if (stream->handles_count > 0) {
        return;
    }
    if (stream->input != stream->small) {
        free(stream->input);
    }
    free(stream->contents);
    channel_free(stream->channel);
    buf_done(&stream->pending);
    free(stream);
}

static void close_handles(struct stream *stream) {
    stream->phase = STREAM_DEAD;
    if (stream->server != NULL) {
        stream_server_gone(stream->server, stream);
    }
    uv_close((uv_handle_t *)&stream->tcp, on_handle_closed);
    uv_close((uv_handle_t *)&stream->timer, on_handle_closed);
}

/* Close; tells the owner, or the server while there is no owner. */
static void stream_end(struct stream *stream, enum err err) {
    if (stream->phase == STREAM_DEAD) {
        return;
    }
    close_handles(stream);
    if (stream->events.on_closed != NULL) {
        stream->events.on_closed(stream->context, stream, err);
    }
}

void stream_free(struct stream *stream) {
    if (stream != NULL && stream->phase != STREAM_DEAD) {
        close_handles(stream);
    }
}

/* What the owner does not feed or take is no fault of the peer's. */
static void stream_on_timer(uv_timer_t *timer) {
    struct stream *stream = timer->data;
    bool is_our_turn = stream->phase == STREAM_OPEN && stream->is_paused && stream->output_size == 0;
    if (!is_our_turn) {
        stream_end(stream, ERR_TIMEOUT);
    }
}

static void note_progress(struct stream *stream) {
    (void)uv_timer_start(&stream->timer, stream_on_timer, stream->config.idle_ms, stream->config.idle_ms);
}

static void end_if_both_finished(struct stream *stream) {
    if (stream->is_finished && stream->has_finish && stream->output_size == 0) {
        stream_end(stream, ERR_OK);
    }
}

static void on_written(uv_write_t *write, int status) {
    struct output *output = (struct output *)(void *)write;
    struct stream *stream = write->data;
    stream->output_size -= output->size;
    free(output->bytes);
    free(output);
    if (stream->phase == STREAM_DEAD) {
        return;
    }
    if (status != 0) {
        bool is_handshake = stream->phase != STREAM_OPEN;
        stream_end(stream, is_handshake || stream->has_finish ? ERR_CLOSED : ERR_TRUNCATED);
        return;
    }
    if (stream->phase != STREAM_OPEN) {
        return;
    }
    note_progress(stream);
    if (stream->is_full && stream->output_size <= stream->config.output_size_max / 2) {
        stream->is_full = false;
        if (stream->events.on_room != NULL) {
            stream->events.on_room(stream->context, stream);
        }
    }
    if (stream->phase == STREAM_OPEN) {
        end_if_both_finished(stream);
    }
}

/* Hand what the channel has to say to the socket, with its memory. */
static enum err stream_flush(struct stream *stream) {
    if (stream->pending.err != ERR_OK || stream->pending.size == 0) {
        return stream->pending.err;
    }
    struct output *output = malloc(sizeof *output);
    if (output == NULL) {
        return ERR_MEMORY;
    }
    output->size = stream->pending.size;
    output->bytes = stream->pending.data;
    output->write.data = stream;
    buf_init(&stream->pending, stream->pending.size_max);
    uv_buf_t buffer = uv_buf_init((char *)output->bytes, (unsigned)output->size);
    if (uv_write(&output->write, (uv_stream_t *)&stream->tcp, &buffer, 1, on_written) != 0) {
        free(output->bytes);
        free(output);
        return ERR_CLOSED;
    }
    stream->output_size += output->size;
    return ERR_OK;
}

static enum err stream_put(struct stream *stream, struct bytes bytes, bool is_last) {
    enum err err = channel_put(stream->channel, bytes, is_last);
    return err == ERR_OK ? stream_flush(stream) : err;
}

enum err stream_write(struct stream *stream, struct bytes bytes) {
    ASSERT(bytes.size <= stream->config.output_size_max);
    if (stream->phase != STREAM_OPEN || stream->is_finished) {
        return ERR_CLOSED;
    }
    if (stream->output_size + bytes.size > stream->config.output_size_max && stream->output_size > 0) {
        stream->is_full = true;
        return ERR_BUSY;
    }
    return bytes.size == 0 ? ERR_OK : stream_put(stream, bytes, false);
}

void stream_finish(struct stream *stream) {
    if (stream->phase != STREAM_OPEN || stream->is_finished) {
        return;
    }
    stream->is_finished = true;
    /* If even this fails, the idle time ends the stream: no callback from inside here. */
    (void)stream_put(stream, bytes_of(NULL, 0), true);
}

static void stream_deliver(struct stream *stream, struct bytes contents) {
    note_progress(stream);
    stream->received_bytes += contents.size;
    if (stream->received_bytes > stream->config.received_bytes_max) {
        stream_end(stream, ERR_LIMIT);
        return;
    }
    if (contents.size > 0 && stream->events.on_data != NULL) {
        stream->events.on_data(stream->context, stream, contents);
    }
}

static void stream_take_finish(struct stream *stream, struct bytes contents) {
    stream->has_finish = true;
    stream_deliver(stream, contents);
    if (stream->phase == STREAM_OPEN && stream->events.on_finish != NULL) {
        stream->events.on_finish(stream->context, stream);
    }
}

static void drop_input(struct stream *stream, size_t count) {
    stream->input_size -= count;
    memmove(stream->input, stream->input + count, stream->input_size);
}

/* The handshake is over: buffers for contents, and the owner hears of it. */
static void stream_opened(struct stream *stream) {
    uint8_t *input = malloc(STREAM_INPUT_SIZE);
    stream->contents = malloc(CHANNEL_CONTENTS_SIZE_MAX);
    if (input == NULL || stream->contents == NULL) {
        free(input);
        stream_end(stream, ERR_MEMORY);
        return;
    }
    memcpy(input, stream->input, stream->input_size);
    stream->input = input;
    memcpy(stream->peer.key, channel_peer(stream->channel), PEER_KEY_SIZE);
    stream->phase = STREAM_OPEN;
    note_progress(stream);
    if (stream->server != NULL) {
        stream_server_opened(stream->server, stream);
    } else if (stream->events.on_open != NULL) {
        stream->events.on_open(stream->context, stream);
    }
}

/* What the other side did wrong is told it, if that needs no waiting. */
static void stream_refuse(struct stream *stream) {
    uv_buf_t buffer = uv_buf_init((char *)stream->pending.data, (unsigned)stream->pending.size);
    if (stream->pending.size > 0 && stream->output_size == 0) {
        (void)uv_try_write((uv_stream_t *)&stream->tcp, &buffer, 1);
    }
    stream_end(stream, channel_err(stream->channel));
}

static void stream_handle(struct stream *stream, enum channel_verdict verdict, struct bytes contents) {
    if (verdict == CHANNEL_BAD) {
        stream_refuse(stream);
        return;
    }
    enum err err = stream_flush(stream);
    if (err != ERR_OK) {
        stream_end(stream, err);
        return;
    }
    switch (verdict) {
    case CHANNEL_OPEN:
        stream_opened(stream);
        break;
    case CHANNEL_DATA:
        stream_deliver(stream, contents);
        break;
    case CHANNEL_END:
        stream_take_finish(stream, contents);
        break;
    default:
        break;
    }
}

static bool stream_may_read(const struct stream *stream) {
    return (stream->phase == STREAM_SHAKES_HANDS || stream->phase == STREAM_OPEN) && !stream->is_paused;
}

/* A step of the handshake may have nothing to tell its caller, and yet leave input for the next one. */
static void read_input(struct stream *stream) {
    enum channel_verdict verdict;
    size_t offset = 0;
    size_t used;
    stream->is_reading = true;
    do {
        struct bytes input = bytes_of(stream->input + offset, stream->input_size - offset);
        struct bytes contents;
        verdict = channel_take(stream->channel, input, stream->contents, &used, &contents);
        offset += used;
        if (verdict == CHANNEL_OPEN) {
            drop_input(stream, offset);
            offset = 0;
        }
        stream_handle(stream, verdict, contents);
    } while (stream_may_read(stream) &&
             (verdict != CHANNEL_PART || (used > 0 && offset < stream->input_size)));
    stream->is_reading = false;
    if (stream->phase == STREAM_DEAD) {
        return;
    }
    drop_input(stream, offset);
    if (stream->phase == STREAM_OPEN) {
        end_if_both_finished(stream);
    }
}

static void on_room_for_input(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    struct stream *stream = handle->data;
    size_t capacity = stream->input == stream->small ? sizeof stream->small : STREAM_INPUT_SIZE;
    (void)suggested;
    *buffer =
        uv_buf_init((char *)stream->input + stream->input_size, (unsigned)(capacity - stream->input_size));
}

static void on_input(uv_stream_t *handle, ssize_t size, const uv_buf_t *buffer) {
    struct stream *stream = handle->data;
    (void)buffer;
    if (size < 0) {
        bool is_handshake = stream->phase != STREAM_OPEN;
        stream_end(stream, is_handshake || stream->has_finish ? ERR_CLOSED : ERR_TRUNCATED);
        return;
    }
    stream->input_size += (size_t)size;
    if (stream_may_read(stream)) {
        read_input(stream);
    }
}

void stream_pause(struct stream *stream, bool is_paused) {
    if (stream->phase != STREAM_OPEN || stream->is_paused == is_paused) {
        return;
    }
    stream->is_paused = is_paused;
    if (is_paused) {
        uv_read_stop((uv_stream_t *)&stream->tcp);
        return;
    }
    note_progress(stream);
    if (uv_read_start((uv_stream_t *)&stream->tcp, on_room_for_input, on_input) != 0) {
        stream_end(stream, ERR_CLOSED);
    } else if (!stream->is_reading) {
        read_input(stream);
    }
}

static enum err stream_make_channel(struct stream *stream, bool is_connecting) {
    const struct stream_config *config = &stream->config;
    struct channel_config channel = {.identity = config->identity, .tls = config->tls};
    if (!is_connecting) {
        return channel_accept(&channel, &stream->pending, &stream->channel);
    }
    enum err err =
        channel_connect(&channel, config->kind, stream->peer.key, &stream->pending, &stream->channel);
    return err == ERR_OK ? stream_flush(stream) : err;
}

/* The socket is connected: the handshake begins. */
static void stream_begin(struct stream *stream, bool is_connecting) {
    stream->phase = STREAM_SHAKES_HANDS;
    (void)uv_tcp_nodelay(&stream->tcp, 1);
    enum err err = stream_make_channel(stream, is_connecting);
    if (err == ERR_OK && uv_read_start((uv_stream_t *)&stream->tcp, on_room_for_input, on_input) != 0) {
        err = ERR_CLOSED;
    }
    if (err != ERR_OK) {
        stream_end(stream, err);
    }
}

static void on_connected(uv_connect_t *connect, int status) {
    struct stream *stream = connect->data;
    if (stream->phase == STREAM_DEAD) {
        return;
    }
    if (status != 0) {
        stream_end(stream, status == UV_ECONNREFUSED ? ERR_REFUSED : ERR_UNREACHABLE);
        return;
    }
    stream_begin(stream, true);
}

/* A stream whose socket is not connected yet. */
static enum err stream_new(const struct stream_config *config, struct stream **ret_stream) {
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        return ERR_MEMORY;
    }
    struct stream_config *mine = &stream->config;
    *mine = *config;
    mine->handshake_ms = mine->handshake_ms > 0 ? mine->handshake_ms : HANDSHAKE_MS_DEFAULT;
    mine->idle_ms = mine->idle_ms > 0 ? mine->idle_ms : IDLE_MS_DEFAULT;
    mine->output_size_max = mine->output_size_max > 0 ? mine->output_size_max : OUTPUT_SIZE_MAX_DEFAULT;
    mine->received_bytes_max = mine->received_bytes_max > 0 ? mine->received_bytes_max : UINT64_MAX;
    if (mine->kind == CHANNEL_UNKNOWN) {
        mine->kind = mine->tls != NULL ? CHANNEL_TLS : CHANNEL_FIRST;
    }
    stream->input = stream->small;
    buf_init(&stream->pending, mine->output_size_max + mine->output_size_max / 8 + OUTPUT_OVERHEAD_MAX);
    stream->tcp.data = stream->timer.data = stream->connect.data = stream;
    int status = uv_tcp_init(config->loop, &stream->tcp);
    ASSERT(status == 0); /* without a family it makes no socket */
    uv_timer_init(config->loop, &stream->timer);
    stream->handles_count = 2;
    (void)uv_timer_start(&stream->timer, stream_on_timer, mine->handshake_ms, 0);
    *ret_stream = stream;
    return ERR_OK;
}

enum err stream_connect(const struct stream_config *config, const struct peer *peer,
                        const struct stream_events *events, void *context, struct stream **ret_stream) {
    struct sockaddr_storage name;
    struct stream *stream;
    enum err err = stream_new(config, &stream);
    if (err != ERR_OK) {
        return err;
    }
    stream->peer = *peer;
    if (uv_tcp_connect(&stream->connect, &stream->tcp, socket_address_put(&peer->address, &name),
                       on_connected) != 0) {
        stream_free(stream);
        return ERR_UNREACHABLE;
    }
    stream->events = *events;
    stream->context = context;
    *ret_stream = stream;
    return ERR_OK;
}

const struct peer *stream_peer(const struct stream *stream) {
    return &stream->peer;
}

enum channel_kind stream_kind(const struct stream *stream) {
    return stream->channel != NULL ? channel_kind(stream->channel) : stream->config.kind;
}

uint16_t stream_version(const struct stream *stream) {
    return channel_version(stream->channel);
}

void stream_own(struct stream *stream, const struct stream_events *events, void *context) {
    stream->events = *events;
    stream->context = context;
}

enum {
    STREAMS_MAX_DEFAULT = 256,
    STREAMS_PER_ADDRESS_MAX_DEFAULT = 32,
    HANDSHAKES_MAX_DEFAULT = 64,
    HANDSHAKES_PER_ADDRESS_MAX_DEFAULT = 8,
    BACKLOG = 128,
    ADDRESSES_MAX = 4096,
};

static const struct bucket_rate address_rate_default = {.per_second = 20, .burst = 64};
static const struct bucket_rate total_rate_default = {.per_second = 200, .burst = 500};

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

static void stream_add(struct stream_server *server, struct stream *stream) {
    stream->server = server;
    stream->next = server->streams;
    if (stream->next != NULL) {
        stream->next->previous = stream;
    }
    server->streams = stream;
}

static void stream_on_connection(uv_stream_t *listener, int status) {
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
    stream_add(server, stream);
    stream_begin(stream, false);
}

static void stream_on_closed(uv_handle_t *handle) {
    struct stream_server *server = handle->data;
    lru_done(&server->rates);
    free(server);
}

static uint32_t stream_or_default(uint32_t value, uint32_t standard) {
    return value > 0 ? value : standard;
}

/* What 0 stands for. */
static void stream_complete(struct stream_server_config *config) {
    config->streams_max = stream_or_default(config->streams_max, STREAMS_MAX_DEFAULT);
    config->streams_per_address_max =
        stream_or_default(config->streams_per_address_max, STREAMS_PER_ADDRESS_MAX_DEFAULT);
    config->handshakes_max = stream_or_default(config->handshakes_max, HANDSHAKES_MAX_DEFAULT);
    config->handshakes_per_address_max =
        stream_or_default(config->handshakes_per_address_max, HANDSHAKES_PER_ADDRESS_MAX_DEFAULT);
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
     * from a node that starts again with it. */
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
        status = uv_listen((uv_stream_t *)&server->listener, BACKLOG, stream_on_connection);
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
    struct stream_server *server = calloc(1, sizeof *server);
    if (server == NULL || lru_init(&server->rates, SOCKET_ADDRESS_NETWORK_SIZE, sizeof(struct bucket),
                                   ADDRESSES_MAX) != ERR_OK) {
        free(server);
        return err_set(detail, ERR_MEMORY, "no memory for the stream server");
    }
    server->config = *config;
    stream_complete(&server->config);
    int status = uv_tcp_init(config->stream.loop, &server->listener);
    ASSERT(status == 0); /* without a family it makes no socket */
    server->listener.data = server;
    enum err err = listen_socket(server, detail);
    if (err != ERR_OK) {
        uv_close((uv_handle_t *)&server->listener, stream_on_closed);
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
    uv_close((uv_handle_t *)&server->listener, stream_on_closed);
}

struct address stream_server_address(const struct stream_server *server) {
    return server->address;
}

const struct stream_server_stats *stream_server_stats(const struct stream_server *server) {
    return &server->stats;
}
