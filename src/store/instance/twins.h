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
 * that cannot be read, or whose copies differ, stays where it is.
 */
enum err twins_merge(struct instance *instance, uint64_t *ret_moved_count,
                     struct err_detail *detail) MUST_CHECK;

#endif
