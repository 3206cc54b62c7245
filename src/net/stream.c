#include "net/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/frame.h"
#include "net/handshake.h"
#include "net/lru.h"
#include "net/socket_address.h"

enum { STREAM_INPUT_SIZE = 2 * FRAME_WHOLE_SIZE_MAX }; /* a whole frame fits behind the rest of another */

enum stream_phase {
    STREAM_CONNECTING,
    STREAM_WAITS_FOR_HELLO,
    STREAM_WAITS_FOR_ANSWER,
    STREAM_WAITS_FOR_CONFIRM,
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
    bool is_reading;  /* taking frames apart: not again from inside a callback */
    bool is_finished; /* by us */
    bool is_full;     /* the owner waits for on_room() */
    uint8_t handles_count;
    size_t output_size;
    uint64_t received_bytes;
    struct handshake handshake;
    struct frame_writer writer;
    struct frame_reader reader;
    uint8_t *input; /* STREAM_INPUT_SIZE; until the stream is open, `small` */
    size_t input_size;
    uint8_t *contents; /* of one frame */
    uint8_t small[HANDSHAKE_SIZE];
};

enum { HANDSHAKE_MS_DEFAULT = 10000, IDLE_MS_DEFAULT = 60000, OUTPUT_SIZE_MAX_DEFAULT = 1 << 20 };

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
    uint8_t bytes[];
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
    sodium_memzero(stream, sizeof *stream);
    free(stream);
}

static void close_handles(struct stream *stream) {
    stream->phase = STREAM_DEAD;
    handshake_done(&stream->handshake);
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
    if (stream->is_finished && stream->reader.is_finished && stream->output_size == 0) {
        stream_end(stream, ERR_OK);
    }
}

static void on_written(uv_write_t *write, int status) {
    struct output *output = (struct output *)(void *)write;
    struct stream *stream = write->data;
    stream->output_size -= output->size;
    free(output);
    if (stream->phase == STREAM_DEAD) {
        return;
    }
    if (status != 0) {
        stream_end(stream, stream->reader.is_finished ? ERR_CLOSED : ERR_TRUNCATED);
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

static struct output *output_new(size_t size) {
    struct output *output = malloc(sizeof *output + size);
    if (output != NULL) {
        output->size = size;
    }
    return output;
}

/* Takes the output over, also if it fails. */
static enum err put_output(struct stream *stream, struct output *take_output) {
    uv_buf_t buffer = uv_buf_init((char *)take_output->bytes, (unsigned)take_output->size);
    take_output->write.data = stream;
    int status = uv_write(&take_output->write, (uv_stream_t *)&stream->tcp, &buffer, 1, on_written);
    if (status != 0) {
        free(take_output);
        return ERR_CLOSED;
    }
    stream->output_size += take_output->size;
    return ERR_OK;
}

static enum err put_bytes(struct stream *stream, struct bytes first, struct bytes second) {
    struct output *output = output_new(first.size + second.size);
    if (output == NULL) {
        return ERR_MEMORY;
    }
    if (first.size > 0) {
        memcpy(output->bytes, first.data, first.size);
    }
    if (second.size > 0) {
        memcpy(output->bytes + first.size, second.data, second.size);
    }
    return put_output(stream, output);
}

static enum err put_frames(struct stream *stream, struct bytes bytes, bool is_last) {
    size_t frames_count = bytes.size / FRAME_CONTENTS_SIZE_MAX + 1;
    struct output *output = output_new(bytes.size + frames_count * (FRAME_SIZE_SIZE + FRAME_OVERHEAD));
    if (output == NULL) {
        return ERR_MEMORY;
    }
    size_t size = 0;
    do {
        size_t part = bytes.size < FRAME_CONTENTS_SIZE_MAX ? bytes.size : FRAME_CONTENTS_SIZE_MAX;
        size += frame_write(&stream->writer, bytes_slice(bytes, 0, part), is_last, output->bytes + size);
        bytes = bytes_skip(bytes, part);
    } while (bytes.size > 0);
    ASSERT(size <= output->size);
    output->size = size;
    return put_output(stream, output);
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
    return bytes.size == 0 ? ERR_OK : put_frames(stream, bytes, false);
}

void stream_finish(struct stream *stream) {
    if (stream->phase != STREAM_OPEN || stream->is_finished) {
        return;
    }
    stream->is_finished = true;
    /* If even this fails, the idle time ends the stream: no callback from inside here. */
    (void)put_frames(stream, bytes_of(NULL, 0), true);
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
    if (stream->phase == STREAM_OPEN && stream->reader.is_finished) {
        if (stream->events.on_finish != NULL) {
            stream->events.on_finish(stream->context, stream);
        }
    }
}

static void drop_input(struct stream *stream, size_t count) {
    stream->input_size -= count;
    memmove(stream->input, stream->input + count, stream->input_size);
}

static void read_frames(struct stream *stream) {
    enum frame_verdict verdict = FRAME_WHOLE;
    size_t offset = 0;
    stream->is_reading = true;
    while (stream->phase == STREAM_OPEN && !stream->is_paused && verdict == FRAME_WHOLE) {
        struct bytes input = bytes_of(stream->input + offset, stream->input_size - offset);
        struct bytes contents;
        size_t used;
        verdict = frame_read(&stream->reader, input, stream->contents, &used, &contents);
        offset += used;
        if (verdict == FRAME_WHOLE) {
            stream_deliver(stream, contents);
        }
    }
    stream->is_reading = false;
    if (stream->phase != STREAM_OPEN) {
        return;
    }
    drop_input(stream, offset);
    if (verdict == FRAME_BAD) {
        stream_end(stream, ERR_INVALID);
        return;
    }
    end_if_both_finished(stream);
}

/* The handshake is over: buffers for frames, and the beginning of ours. */
static enum err open_frames(struct stream *stream, const struct handshake_result *result,
                            struct bytes first) {
    uint8_t header[FRAME_HEADER_SIZE];
    uint8_t *input = malloc(STREAM_INPUT_SIZE);
    stream->contents = malloc(FRAME_CONTENTS_SIZE_MAX);
    if (input == NULL || stream->contents == NULL) {
        free(input);
        return ERR_MEMORY;
    }
    memcpy(input, stream->input, stream->input_size);
    stream->input = input;
    memcpy(stream->peer.key, result->peer, PEER_KEY_SIZE);
    frame_writer_init(&stream->writer, result->sending, header);
    frame_reader_init(&stream->reader, result->receiving);
    enum err err = put_bytes(stream, first, bytes_of(header, sizeof header));
    if (err == ERR_OK) {
        stream->phase = STREAM_OPEN;
        note_progress(stream);
    }
    return err;
}

static enum err take_hello(struct stream *stream) {
    uint8_t secret[32];
    struct bytes answer;
    randombytes_buf(secret, sizeof secret);
    enum err err = handshake_answer(&stream->handshake, stream->config.identity, secret,
                                    bytes_of(stream->input, HANDSHAKE_HELLO_SIZE), &answer);
    sodium_memzero(secret, sizeof secret);
    if (err != ERR_OK) {
        return err;
    }
    drop_input(stream, HANDSHAKE_HELLO_SIZE);
    stream->phase = STREAM_WAITS_FOR_CONFIRM;
    return put_bytes(stream, answer, bytes_of(NULL, 0));
}

static enum err stream_take_answer(struct stream *stream) {
    struct handshake_result result;
    struct bytes confirm;
    enum err err = handshake_confirm(&stream->handshake, stream->config.identity, stream->peer.key,
                                     bytes_of(stream->input, HANDSHAKE_ANSWER_SIZE), &result, &confirm);
    if (err != ERR_OK) {
        return err;
    }
    drop_input(stream, HANDSHAKE_ANSWER_SIZE);
    err = open_frames(stream, &result, confirm);
    sodium_memzero(&result, sizeof result);
    if (err == ERR_OK && stream->events.on_open != NULL) {
        stream->events.on_open(stream->context, stream);
    }
    return err;
}

static enum err take_confirm(struct stream *stream) {
    struct handshake_result result;
    enum err err = handshake_accept(&stream->handshake, stream->config.identity,
                                    bytes_of(stream->input, HANDSHAKE_CONFIRM_SIZE), &result);
    if (err != ERR_OK) {
        return err;
    }
    drop_input(stream, HANDSHAKE_CONFIRM_SIZE);
    err = open_frames(stream, &result, bytes_of(NULL, 0));
    sodium_memzero(&result, sizeof result);
    if (err == ERR_OK) {
        stream_server_opened(stream->server, stream);
    }
    return err;
}

static size_t wanted_size(const struct stream *stream) {
    switch (stream->phase) {
    case STREAM_WAITS_FOR_HELLO:
        return HANDSHAKE_HELLO_SIZE;
    case STREAM_WAITS_FOR_ANSWER:
        return HANDSHAKE_ANSWER_SIZE;
    default:
        return HANDSHAKE_CONFIRM_SIZE;
    }
}

/* One message after the other; whatever is behind the last one is frames. */
static void read_handshake(struct stream *stream) {
    while (stream->phase < STREAM_OPEN && stream->input_size >= wanted_size(stream)) {
        enum err err = stream->phase == STREAM_WAITS_FOR_HELLO    ? take_hello(stream)
                       : stream->phase == STREAM_WAITS_FOR_ANSWER ? stream_take_answer(stream)
                                                                  : take_confirm(stream);
        if (err != ERR_OK) {
            stream_end(stream, err);
        }
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
        stream_end(stream, is_handshake || stream->reader.is_finished ? ERR_CLOSED : ERR_TRUNCATED);
        return;
    }
    stream->input_size += (size_t)size;
    if (stream->phase < STREAM_OPEN) {
        read_handshake(stream);
    }
    if (stream->phase == STREAM_OPEN) {
        read_frames(stream);
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
        read_frames(stream);
    }
}

/* The socket is connected: the handshake begins. */
static void stream_begin(struct stream *stream, enum stream_phase phase) {
    uint8_t secret[32];
    enum err err = ERR_OK;
    stream->phase = phase;
    (void)uv_tcp_nodelay(&stream->tcp, 1);
    if (phase == STREAM_WAITS_FOR_ANSWER) {
        randombytes_buf(secret, sizeof secret);
        err = put_bytes(stream, handshake_hello(&stream->handshake, secret), bytes_of(NULL, 0));
        sodium_memzero(secret, sizeof secret);
    }
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
    stream_begin(stream, STREAM_WAITS_FOR_ANSWER);
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
    stream->input = stream->small;
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
static const struct bucket_rate total_rate_default = {.per_second = 500, .burst = 500};

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
    stream_begin(stream, STREAM_WAITS_FOR_HELLO);
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
