/*
 * depositing - archives of other nodes that this one subscribes to, indexed and served beside its own.
 *
 *      DIR/collections/NAME/
 *          current -> trees/NUMBER    kept up to date by mirroring; with volumes/V/ in it, it is an archive
 *          deposit/
 *              state.json             which version is indexed, and under which numbers
 *              V-MARK/                the index of a volume (store/index/index.h)
 *
 * A thread of its own looks every second which version is there. It reads the owner's access rules, then the
 * segments that are new, and hands them to the instance (store/backend/backend_deposit.h), from where replay,
 * CDX and search have them. Where the segments only grew, the index is gone on with; where the owner has
 * compacted them, a new one is made, and readers have the old one meanwhile.
 *
 * Nothing of it is trusted (store/volume/volume.h: deposits). A version with rules that cannot be read, or
 * that is absurd, is refused: what was there before stays. Records that are damaged are left out. Both are
 * told, and the publisher is blamed.
 *
 * A crash is gone on from: the index knows its position. After "mnemon mirror unsubscribe" the archive is
 * gone for readers within a second, and its index with it. Decision 0013.
 */
#ifndef MNEMON_NODE_MIRROR_DEPOSITING_H
#define MNEMON_NODE_MIRROR_DEPOSITING_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/peer.h"
#include "store/instance/instance.h"

struct depositing;

/* Both outlive it. */
struct depositing_config {
    const char *directory; /* of the data */
    struct instance *instance;
    const struct clock *clock;
    void (*note)(void *context, const char *sentence);
    /* He has signed nonsense. */
    void (*blame)(void *context, const uint8_t publisher[PEER_KEY_SIZE], const char *sentence);
    void *context;
};

enum err depositing_start(const struct depositing_config *config, struct depositing **ret_depositing,
                          struct err_detail *detail) MUST_CHECK;

/* What was being read is gone on with the next time. The instance keeps what it has. */
void depositing_stop(struct depositing *take_depositing);

/* Any thread: append what there is of a collection as a member "archive" of /api/v1/mirrors (docs/api.md). */
void depositing_put(struct depositing *depositing, const char *name, struct buf *out);

#endif
