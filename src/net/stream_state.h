/* stream_state - what stream.c, stream_server.c share. */
#ifndef MNEMON_NET_STREAM_STATE_H
#define MNEMON_NET_STREAM_STATE_H

#include "net/frame.h"
#include "net/handshake.h"
#include "net/stream.h"

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

/* A stream whose socket is not connected yet. */
enum err stream_new(const struct stream_config *config, struct stream **ret_stream) MUST_CHECK;

/* The socket is connected: the handshake begins. */
void stream_begin(struct stream *stream, enum stream_phase phase);

/* The server's part. */
void stream_server_opened(struct stream_server *server, struct stream *stream);
void stream_server_gone(struct stream_server *server, struct stream *stream);

#endif
