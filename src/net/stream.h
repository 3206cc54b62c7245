/*
 * stream - an encrypted connection with one peer, for what is too large for datagrams. TCP, on the loop.
 *
 *      stream_connect ── TCP ── handshake ── on_open ── contents both ways ── on_closed
 *      stream_server  ── accept, limits ── handshake ── on_stream ── …
 *
 * How it is encrypted: channel.h. It is TLS 1.3, or what programs up to 0.2 speak.
 *
 * Bounds: output that the peer does not take is kept up to output_size_max, then stream_write() says
 * ERR_BUSY and on_room() tells when to go on; input is held back by stream_pause(), through TCP to the
 * sender; more than received_bytes_max ends the stream. A peer that does not finish the handshake in
 * handshake_ms, or for idle_ms neither completes a record nor takes a byte that waits for it, is cut off. A
 * stream holds about 200 KiB, and only after its handshake.
 *
 * The end. Each side says stream_finish() when it has said everything. on_finish(): the other side has. When
 * both have, on_closed(ERR_OK). Everything else is an error and told apart:
 *
 *      ERR_TRUNCATED    the connection ended although the peer had not finished
 *      ERR_CLOSED       it had, but did not wait for us; or it went away in the handshake
 *      ERR_INVALID      forged or broken bytes; ERR_UNSUPPORTED: another version; ERR_MISMATCH: another peer
 *      ERR_PERMISSION   the peer has not proved its key; ERR_REFUSED: nobody listens, or the peer says no
 *      ERR_TIMEOUT, ERR_LIMIT, ERR_MEMORY, ERR_UNREACHABLE
 *
 * After on_closed() the stream is gone. Callbacks may call any function here, stream_free() too. All
 * functions belong to the loop's thread. docs/protocol/transport.md.
 */
#ifndef MNEMON_NET_STREAM_H
#define MNEMON_NET_STREAM_H

#include <uv.h>

#include "base/bucket.h"
#include "net/channel.h"

struct stream;
struct stream_server;

/* 0 stands for the default in parentheses. */
struct stream_config {
    uv_loop_t *loop;
    const struct identity *identity; /* borrowed while there are streams */
    struct tls_context *tls;         /* likewise; NULL: in the way of programs up to 0.2 only */
    enum channel_kind kind;          /* (TLS if there is a context) of stream_connect() */
    uint64_t handshake_ms;           /* (10 s) with connecting */
    uint64_t idle_ms;                /* (60 s) */
    size_t output_size_max;          /* (1 MiB) */
    uint64_t received_bytes_max;     /* (no bound) contents of one stream */
};

/* All but on_closed may be NULL. */
struct stream_events {
    void (*on_open)(void *context, struct stream *stream);                     /* of stream_connect() only */
    void (*on_data)(void *context, struct stream *stream, struct bytes bytes); /* borrowed for the call */
    void (*on_room)(void *context, struct stream *stream);
    void (*on_finish)(void *context, struct stream *stream);
    void (*on_closed)(void *context, struct stream *stream, enum err err);
};

/* Connect to the peer; with a key of zeros to whoever is there. Nothing is called from inside this call. */
enum err stream_connect(const struct stream_config *config, const struct peer *peer,
                        const struct stream_events *events, void *context,
                        struct stream **ret_stream) MUST_CHECK;

/* The node on the other side; its key is proved once the stream is open. */
const struct peer *stream_peer(const struct stream *stream);

/* How it is encrypted. And of an open one in TLS, the version that both offered; 0: none. */
enum channel_kind stream_kind(const struct stream *stream);
uint16_t stream_version(const struct stream *stream);

/* All or nothing, at most output_size_max. ERR_BUSY: no room yet; ERR_CLOSED: not open, or finished. */
enum err stream_write(struct stream *stream, struct bytes bytes) MUST_CHECK;

/* We have said everything. */
void stream_finish(struct stream *stream);

/* Hold the other side's data back, or let it come again: on_data() may then be called at once. */
void stream_pause(struct stream *stream, bool is_paused);

/* Cut it off. on_closed() is not called. */
void stream_free(struct stream *stream);

/* 0 stands for the default in parentheses. An address is an IPv4 address or an IPv6 /64. */
struct stream_server_config {
    struct stream_config stream;
    struct address address;              /* to listen at; port 0: any */
    const int *held;                     /* (none) a socket bound there already (held_port.h), borrowed */
    uint32_t streams_max;                /* (256) */
    uint32_t streams_per_address_max;    /* (32) */
    uint32_t handshakes_max;             /* (64) not yet open */
    uint32_t handshakes_per_address_max; /* (8) */
    struct bucket_rate address_rate;     /* (20 a second, 64 at once) connections of one address */
    struct bucket_rate total_rate; /* (200 a second, 500 at once): a handshake of TLS costs some 1.2 ms */
    /* A peer has opened a stream: say who gets its events with stream_own(), or free it. */
    void (*on_stream)(void *context, struct stream *stream);
    void *context;
};

struct stream_server_stats {
    uint64_t accepted;
    uint64_t turned_away; /* by a limit */
    uint64_t failed;      /* in the handshake */
    uint64_t opened;
};

enum err stream_server_new(const struct stream_server_config *config, struct stream_server **ret_server,
                           struct err_detail *detail) MUST_CHECK;

/* Ends the handshakes; streams that were handed out live on. The memory goes when the loop has run. */
void stream_server_free(struct stream_server *server);

struct address stream_server_address(const struct stream_server *server);
const struct stream_server_stats *stream_server_stats(const struct stream_server *server);

void stream_own(struct stream *stream, const struct stream_events *events, void *context);

#endif
