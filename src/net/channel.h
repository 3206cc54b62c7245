/*
 * channel - what stands between the contents of a stream and its socket: TLS, or the handshake of programs up
 * to 0.2. No I/O.
 *
 *      contents ── channel_put ──> output ── socket ──> channel_take ──> contents
 *
 *      CHANNEL_TLS     tls.h
 *      CHANNEL_FIRST   handshake.h, then frame.h
 *
 * The one that connects chooses; the other sees in the first byte which it is. After each call the caller
 * takes what is in *output, in that order. docs/protocol/transport.md.
 */
#ifndef MNEMON_NET_CHANNEL_H
#define MNEMON_NET_CHANNEL_H

#include "base/buf.h"
#include "net/identity.h"
#include "net/tls.h"

enum {
    CHANNEL_INPUT_SIZE_MIN = 4096, /* of a caller's buffer: what tls_take or the handshake leave must fit */
    CHANNEL_CONTENTS_SIZE_MAX = UINT16_MAX, /* at once */
};

enum channel_kind { CHANNEL_UNKNOWN, CHANNEL_TLS, CHANNEL_FIRST };

struct channel_config {
    const struct identity *identity; /* borrowed */
    struct tls_context *tls;         /* NULL: CHANNEL_FIRST only */
};

enum channel_verdict {
    CHANNEL_PART, /* more must come first */
    CHANNEL_OPEN, /* the handshake is over: channel_peer() is who is there */
    CHANNEL_DATA, /* *ret_contents, perhaps none */
    CHANNEL_END,  /* the other side has said everything; *ret_contents may hold its last words */
    CHANNEL_BAD,  /* channel_err() says why */
};

struct channel;

/* We connect, to this key or with zeros to whoever is there: its first message is in *output then. */
enum err channel_connect(const struct channel_config *config, enum channel_kind kind,
                         const uint8_t expected[PEER_KEY_SIZE], struct buf *output,
                         struct channel **ret_channel) MUST_CHECK;

/* Somebody has connected to us. */
enum err channel_accept(const struct channel_config *config, struct buf *output,
                        struct channel **ret_channel) MUST_CHECK;
void channel_free(struct channel *channel);

/* The next thing in the input. out: CHANNEL_CONTENTS_SIZE_MAX; may be NULL before CHANNEL_OPEN. */
enum channel_verdict channel_take(struct channel *channel, struct bytes input, uint8_t *out, size_t *ret_used,
                                  struct bytes *ret_contents);

/* After CHANNEL_OPEN; is_last: we have said everything with it. */
enum err channel_put(struct channel *channel, struct bytes contents, bool is_last) MUST_CHECK;

enum channel_kind channel_kind(const struct channel *channel);
const uint8_t *channel_peer(const struct channel *channel);
uint16_t channel_version(const struct channel *channel); /* see tls_version() */
enum err channel_err(const struct channel *channel);

#endif
