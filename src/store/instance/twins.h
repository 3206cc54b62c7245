/*
 * twins - documents that lie on more than one volume.
 *
 * While a volume is down nobody can say what it holds, so a document of it may be stored once more elsewhere.
 * When it is back, the copies are found by a walk over the documents of all volumes at once, in the order of
 * their digests, and merged: one of them stays, on the volume that its digest falls to where that has one,
 * and the captures of the others are stored there, as the revisits that they would have been, and removed
 * where they were. The bytes come back with a compaction.
 *
 * Only captures move. A plain document is known by its key, which names its volume: it stays where it is, and
 * so does a copy that other machines have. Both copies are read and compared before one is given up. If it is
 * cut off, a capture may be on both volumes; the next run removes the second.
 *
 * Whoever stores a new document while a volume is down leaves the file DIR/unmerged, so that nobody walks
 * over an archive in which there can be none. It goes with the first merge that sees all volumes. Archives
 * and volumes may be in use meanwhile: a capture that others remove at the same time just stays unmoved.
 */
#ifndef MNEMON_STORE_INSTANCE_TWINS_H
#define MNEMON_STORE_INSTANCE_TWINS_H

#include "store/instance/instance.h"

struct twins_stat {
    uint64_t documents_count; /* that lie on more than one volume */
    uint64_t size;            /* of the copies beyond the first */
    bool is_cut;              /* there may be more: not all were looked at */
};

/* Looks at so many documents at most. Volumes that are down are left out. */
enum err twins_count(struct instance_session *session, uint64_t documents_max, struct twins_stat *ret_stat,
                     struct err_detail *detail) MUST_CHECK;

/*
 * Merge them, on the volumes of this machine that are up. *ret_moved_count: captures that moved. A capture
 * that cannot be read, or whose copies differ, stays where it is. goes_on: asked often; false ends it with
 * ERR_CANCELLED, and the next run goes on. NULL: to the end.
 */
enum err twins_merge(struct instance *instance, bool (*goes_on)(void *context), void *context,
                     uint64_t *ret_moved_count, struct err_detail *detail) MUST_CHECK;

/* A new document is stored while a volume does not answer. Any thread. */
void twins_mark(struct instance *instance);

/* Is it worth it: was something stored while a volume was down, and are all up now, as far as is known? */
bool twins_are_due(struct instance *instance);

#endif
