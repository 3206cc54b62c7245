/*
 * ringing - the ring on a real node: its socket, its clock, its files.
 *
 *      EVENT_MESSAGE <── gate.h <── net/datagram.h <── UDP          on the node's loop (crawling.h)
 *      ACTION_SEND  ──> gate.h ──> net/datagram.h ──> UDP
 *      notices      ──> the copy that others read, every second and after each change of an arc
 *      files (ring_files.h) are read and written by ringing_beat(), on another thread: the loop never waits
 *
 * A node is in a ring where its data directory has a charter, or where it is told to join: then it asks the
 * contact for the charter first, checks the founder's signature, and keeps it. From then on it comes back by
 * itself, by the peers it remembers. A charter that changes on the disk ("mnemon ring amend") is taken at
 * once.
 *
 * Leaving is stopping: the ring finds out as it does when a node crashes.
 */
#ifndef MNEMON_NODE_RINGING_H
#define MNEMON_NODE_RINGING_H

#include <uv.h>

#include "base/address.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

struct ringing;

enum { RINGING_PORT = 7070 };

/* 0 or NULL stands for the default in parentheses. Texts outlive it. */
struct ringing_config {
    const char *directory; /* of the data */
    struct address
        address;          /* as others reach it; the wildcard: the one of the route to others; port 0: any */
    const char *join;     /* HOST[:PORT]; (nobody) */
    const char *token;    /* of "mnemon ring invite"; (none) */
    uint8_t places_count; /* (1) */
    uint8_t first_place;  /* index; nodes behind one address need different ones */
    const char *nameservers; /* (those of the system) */
    const struct clock *clock;
    void (*note)(void *context, const char *sentence); /* any thread */
    void *context;
};

/* ERR_INVALID: the token, or the name of the contact; the errors of net/identity.h and ring_files.h. */
enum err ringing_new(const struct ringing_config *config, struct ringing **ret_ringing,
                     struct err_detail *detail) MUST_CHECK;

/* When the loop is over. What is to be kept is written. */
void ringing_free(struct ringing *ringing);

/* ---- the loop's thread, or before it runs ---- */

/* ERR_BUSY where the port is taken. */
enum err ringing_attach(struct ringing *ringing, uv_loop_t *loop, struct err_detail *detail) MUST_CHECK;

/* The loop then ends by itself. Nothing happens where it is not attached. */
void ringing_detach(struct ringing *ringing);

/* ---- any thread ---- */

/* Every second or so, one thread: files. */
void ringing_beat(struct ringing *ringing);

/* Append what /api/v1/ring says (docs/api.md), as of a second ago at most. */
void ringing_put(struct ringing *ringing, struct buf *out);

/* Where its socket is bound, once attached. False: it is in no ring. */
bool ringing_address(struct ringing *ringing, struct address *ret_address);

#endif
