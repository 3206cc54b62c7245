/*
 * tls - TLS 1.3 between two nodes that know each other by their Ed25519 keys (certificate.h). No I/O: bytes
 * of the other side go in, bytes for it come out.
 *
 *      tls_new ── tls_begin ──> output       ┐ until tls_take() says TLS_OPEN
 *      bytes that came ── tls_take ──> output ┘
 *      tls_put, tls_finish ──> output           tls_take ──> contents, TLS_END
 *
 * Both sides show a certificate, and each checks the other's by certificate_check() alone: no authority, no
 * host name. The one that connects knows whom it wants and says who it is only after the other has proved
 * that. Keys are agreed by X25519 for each stream, so that nobody who steals a node's key later reads what
 * was recorded. There are no tickets, no resumption and no early data: nothing that was sent once can be sent
 * again. ALPN says which versions of the protocol the two speak.
 *
 * A tls_context holds the certificate, which is made anew every day. It and all that is made of it belong to
 * one thread. docs/protocol/transport.md.
 */
#ifndef MNEMON_NET_TLS_H
#define MNEMON_NET_TLS_H

#include "base/buf.h"
#include "base/clock.h"
#include "net/identity.h"

struct tls_context;
struct tls;

enum {
    TLS_FIRST_BYTE = 0x16,           /* of every handshake of TLS */
    TLS_CONTENTS_SIZE_MAX = 1 << 14, /* of one record */
    TLS_RECORD_SIZE_MAX = TLS_CONTENTS_SIZE_MAX + 256 + 5,
    TLS_HANDSHAKE_SIZE_MAX = 8 << 10, /* what a side may send before it is let in; ours send below 2 KiB */
    TLS_VERSIONS_MAX = 16,            /* that are offered at once */
};

/* 0 or NULL stands for the default in parentheses. */
struct tls_config {
    const struct identity *identity; /* borrowed */
    const struct clock *clock;       /* (clock_system) of certificates */
    uint16_t lowest;                 /* (1) versions of the protocol that are offered by ALPN */
    uint16_t highest;                /* (lowest) */
    uint64_t rekey_size;             /* (16 GiB) after so much the sender takes its next key */
};

enum err tls_context_new(const struct tls_config *config, struct tls_context **ret_context,
                         struct err_detail *detail) MUST_CHECK;

/* Not before all that was made of it is gone. */
void tls_context_free(struct tls_context *context);

/* expected: whom we connect to, zeros: whoever is there. NULL: we were connected to. Output goes to *output.
 */
enum err tls_new(struct tls_context *context, const uint8_t *expected, struct buf *output,
                 struct tls **ret_tls) MUST_CHECK;
void tls_free(struct tls *tls);

enum tls_verdict {
    TLS_PART, /* more must come first */
    TLS_OPEN, /* the handshake is over: tls_peer() is who is there */
    TLS_DATA, /* *ret_contents, at least one byte */
    TLS_END,  /* the other side has said everything */
    TLS_BAD,  /* tls_err() says why */
};

/* The one that connects: the first message. */
enum tls_verdict tls_begin(struct tls *tls);

/*
 * The next thing in the input; *ret_used bytes of it are done with. Contents are decrypted into out
 * (TLS_CONTENTS_SIZE_MAX). Go on with the rest until TLS_PART; then all of the input is done with.
 */
enum tls_verdict tls_take(struct tls *tls, struct bytes input, uint8_t *out, size_t *ret_used,
                          struct bytes *ret_contents);

/* After TLS_OPEN. ERR_MEMORY, ERR_LIMIT: the output has no room. */
enum err tls_put(struct tls *tls, struct bytes contents) MUST_CHECK;
enum err tls_finish(struct tls *tls) MUST_CHECK;

const uint8_t *tls_peer(const struct tls *tls);

/* The highest version of the protocol that both offered; 0: there is none, only hellos may be said. */
uint16_t tls_version(const struct tls *tls);

/*
 * ERR_MISMATCH: another node is there, or we are. ERR_PERMISSION: it has not proved its key; ERR_REFUSED: it
 * says that we have not, or does not want us; ERR_UNSUPPORTED: not our protocol; ERR_LIMIT, ERR_MEMORY,
 * ERR_INVALID.
 */
enum err tls_err(const struct tls *tls);

#endif
