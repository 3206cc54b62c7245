/*
 * backend_deposit - an archive of somebody else that is kept here, as a shelf only to read from.
 *
 *      shelf ──> holding ──> a volume (store/volume/volume.h: a deposit) with its index
 *                   │
 *      session ─────┘        each holds what it found when it was opened
 *
 * A holding that only grew is extended in place, as volumes are. One that was made anew, since the owner has
 * compacted his segments, replaces the one before; that one stays as it is for the sessions that have it, and
 * is closed when the last of them has ended. So a reader sees one or the other and no mixture.
 * backend_deposit_is_stale() tells who may begin anew.
 *
 * The access rules of the owner are part of the shelf: what he excludes is not in it. What he blocks, readers
 * find by backend_deposit_check().
 */
#ifndef MNEMON_STORE_BACKEND_BACKEND_DEPOSIT_H
#define MNEMON_STORE_BACKEND_BACKEND_DEPOSIT_H

#include "store/access/access_rules.h"
#include "store/backend/backend.h"
#include "store/volume/volume.h"

/* Empty at first. For instance_add_deposit(), which closes it. NULL: out of memory. */
struct backend *backend_deposit_new(void);

struct deposit_holding;

/*
 * A holding of a shelf that backend_local_open() gave for a deposit, with nobody but the caller; NULL: out of
 * memory, and the shelf is closed. mark: a number by which others know whether they have seen it before.
 */
struct deposit_holding *deposit_holding_new(struct backend *take_local, uint64_t mark);
void deposit_release(struct deposit_holding *holding); /* NULL: nothing happens */

struct volume *deposit_volume(const struct deposit_holding *holding);
uint64_t deposit_mark(const struct deposit_holding *holding);

/* Readers who begin from now on have this one; NULL: they find nothing. The caller's share is taken. */
void backend_deposit_replace(struct backend *backend, struct deposit_holding *take_holding);

/* What it has now, to be released; NULL where it is empty. */
struct deposit_holding *backend_deposit_hold(struct backend *backend);

/* From now on. NULL: none. */
void backend_deposit_set_rules(struct backend *backend, struct access_rules *take_rules);
enum access_verdict backend_deposit_check(struct backend *backend, struct bytes surt, int64_t time_us);

/* Has the shelf another holding than the session, and the session no cursor? Then close it. */
bool backend_deposit_is_stale(const struct backend_session *session);

#endif
