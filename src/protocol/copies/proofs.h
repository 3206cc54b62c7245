/*
 * proofs - which nodes have proved to this one that they hold what they should, and for how long they have
 * been up to prove it. Pure.
 *
 *      challenge   met ──── met ──── met   silence   met ── failed      met ──── met
 *      proved           ──────────────                                      ────────
 *
 * The time between two challenges that a node met counts if they were no longer than some intervals apart and
 * no challenge between them failed or had no answer. So it is less than the time that the node was up, never
 * more. Of PROOFS_MAX nodes; the one that was challenged longest ago makes room.
 */
#ifndef MNEMON_PROTOCOL_COPIES_PROOFS_H
#define MNEMON_PROTOCOL_COPIES_PROOFS_H

#include "base/err.h"
#include "base/peer.h"

enum { PROOFS_MAX = 128 };

struct proof {
    uint8_t key[PEER_KEY_SIZE];
    uint64_t met_at_us; /* the last one, if nothing else came after it; 0: something did */
    uint64_t asked_at_us;
    uint64_t proved_us;
    uint64_t met_count;
    uint64_t failed_count;
};

struct proofs {
    struct proof items[PROOFS_MAX];
    size_t count;
    uint64_t gap_us_max;
};

void proofs_init(struct proofs *proofs, uint64_t gap_us_max);

/* How a challenge ended: ERR_OK; ERR_MISMATCH, ERR_CORRUPT: it failed; else there was no answer, or the node
 * does not have the capture, which may be on its way to it: neither met nor failed. */
void proofs_note(struct proofs *proofs, const struct peer *peer, enum err err, uint64_t now_us);

#endif
