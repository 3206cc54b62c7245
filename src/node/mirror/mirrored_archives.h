/*
 * mirrored_archives - archives of other nodes that this one subscribes to, indexed and served beside its own.
 *
 *      DIR/collections/NAME/
 *          current -> trees/NUMBER    kept up to date by mirroring; with volumes/V/ in it, it is an archive
 *          deposit/
 *              state.json             which version is indexed, and under which numbers
 *              V-MARK/                the index of a volume (store/index/index.h)
 *
 * A thread of its own looks every second which version is there. It reads the owner's access rules, then the
 * segments that are new, and hands them to the instance (store/backend/backend_mirrored.h), from where
 * replay, CDX and search have them. If the segments only grew, the index is gone on with; if the owner
 * has compacted them, a new one is made, and readers have the old one meanwhile.
 *
 * Nothing of it is trusted (store/volume/volume.h: mirrored volumes). A version with rules that cannot be
 * read, or that is absurd, is refused: what was there before stays. Records that are damaged are left out.
 * Both are told, and the publisher is blamed.
 *
 * A crash is gone on from: the index knows its position. After "mnemon mirror unsubscribe" the archive is
 * gone for readers within a second, and its index with it. Decision 0013.
 */
#ifndef MNEMON_NODE_MIRROR_MIRRORED_ARCHIVES_H
#define MNEMON_NODE_MIRROR_MIRRORED_ARCHIVES_H

#include "base/clock.h"
#include "base/json.h"
#include "base/peer.h"
#include "store/instance/instance.h"

struct mirrored_archives;

/* Both outlive it. */
struct mirrored_archives_config {
    const char *directory; /* of the data */
    struct instance *instance;
    const struct clock *clock;
    void (*note)(void *context, const char *sentence);
    /* The publisher has signed nonsense. */
    void (*blame)(void *context, const uint8_t publisher[PEER_KEY_SIZE], const char *sentence);
    void *context;
};

enum err mirrored_archives_start(const struct mirrored_archives_config *config,
                                 struct mirrored_archives **ret_mirrored_archives,
                                 struct err_detail *detail) MUST_CHECK;

/* What was being read is gone on with the next time. The instance keeps what it has. */
void mirrored_archives_stop(struct mirrored_archives *take_mirrored_archives);

/* Any thread: append what there is of a collection as a member "archive" of /api/v1/mirrors (docs/api.md). */
void mirrored_archives_put(struct mirrored_archives *archives, const char *name, struct json *json);

#endif
