/*
 * volume_writers - the threads that take in documents from other processes, behind those that serve readers.
 *
 *      server's thread ── suspends, hands over ──> [ queue ] ──> writer: unpack, hash, compress ──> committer
 *             └── answers <──────────────────────── resumed, when it is durable ─────────────────────┘
 *
 * To take in a document is a hundred times the work of finding one, and waits where the disk is slow: in a
 * thread of the server it would be in the way of all readers that this thread serves. These give way to them.
 *
 * The queue needs no bound of its own: a request waits in it, and the server bounds those.
 */
#ifndef MNEMON_REPLAY_VOLUMES_VOLUME_WRITERS_H
#define MNEMON_REPLAY_VOLUMES_VOLUME_WRITERS_H

#include "replay/volumes/volume_call.h"

struct volume_writers;

/* NULL: out of memory, or of threads. */
struct volume_writers *volume_writers_new(void);

/* When no request is left. */
void volume_writers_free(struct volume_writers *writers); /* may be NULL */

/* volume_call_take_in() of it, in one of the threads. Its request is suspended. */
void volume_writers_add(struct volume_writers *writers, struct volume_call *call);

#endif
