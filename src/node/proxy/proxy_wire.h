/*
 * proxy_wire - one TCP connection of the proxy, with or without TLS: bytes in, bytes out, both bounded.
 *
 *      in    what has come and nobody has taken; when it is full the socket is not read
 *      out   what waits for the socket; proxy_wire_room() says how much more may be written
 *
 * The owner is woken from the loop whenever something may have changed: it is open, there are bytes, there is
 * room, it has ended or failed. No function of this file wakes from within itself, so the owner looks at all
 * its wires, does what can be done, and waits. All of it is the loop's thread's.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_WIRE_H
#define MNEMON_NODE_PROXY_PROXY_WIRE_H

#include <openssl/ssl.h>
#include <uv.h>

#include "base/address.h"
#include "base/buf.h"

enum {
    PROXY_WIRE_IN_SIZE = 64 << 10,
    PROXY_WIRE_OUT_SIZE = 256 << 10, /* heads may go above it */
};

struct proxy_wire {
    /* For the owner to read. */
    struct buf in;
    bool is_open;      /* connected, and TLS agreed on */
    bool is_ended;     /* no more bytes will come */
    bool is_cut;       /* of TLS: it ended without saying so */
    enum err err;      /* it is of no use any more */
    bool is_untrusted; /* its certificate is not valid */
    uint64_t moved;    /* bytes, in both directions */
    char reason[160];  /* of err */

    /* Its own. */
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    uv_shutdown_t shutdown;
    SSL *tls; /* NULL: none */
    bool is_connected;
    bool is_reading;
    bool is_finishing; /* nothing more will be written */
    bool is_shut;      /* and the socket was told */
    bool is_closed;
    struct buf raw; /* of TLS: what the socket gave */
    struct buf out;
    struct buf sending; /* in the socket's hands where not empty */
    void (*wake)(void *context);
    void *context;
};

/* NULL: out of memory. */
struct proxy_wire *proxy_wire_new(uv_loop_t *loop, void (*wake)(void *context), void *context);

/* It is gone for the owner; its memory goes later. May be NULL. */
void proxy_wire_close(struct proxy_wire *wire);

void proxy_wire_accept(struct proxy_wire *wire, uv_stream_t *listener);
void proxy_wire_connect(struct proxy_wire *wire, const struct address *address);

/* From now on with TLS: what is written, and what has come and was not taken. It is open again when both
 * agree. tls: set to accept or to connect. */
void proxy_wire_secure(struct proxy_wire *wire, SSL *take_tls);

/* The first bytes of `in` are done with. */
void proxy_wire_take(struct proxy_wire *wire, size_t size);

/* Fails only with the wire itself. */
void proxy_wire_write(struct proxy_wire *wire, struct bytes bytes);
size_t proxy_wire_room(const struct proxy_wire *wire);
bool proxy_wire_is_drained(const struct proxy_wire *wire);

/* Nothing more will be written; the other side is told so when all is sent. */
void proxy_wire_finish(struct proxy_wire *wire);

#endif
