/*
 * backend_mirrored - a read-only backend for another node's archive that is kept here.
 *
 *      backend ──> holding ──> a volume (store/volume/volume.h: a mirrored volume) with its index
 *                     │
 *      session ───────┘        each holds what it found when it was opened
 *
 * A holding that only grew is extended in place, as volumes are. One that was made anew, because the owner
 * has compacted its segments, replaces the one before; that one stays as it is for the sessions that hold it,
 * and is closed when the last of them has ended. So a reader sees one or the other and no mixture.
 * backend_mirrored_is_stale() tells which sessions may be opened again.
 *
 * The access rules of the owner are part of the backend: captures that the owner excludes are not in it.
 * Readers ask backend_mirrored_check() for those that it blocks.
 */
#ifndef MNEMON_STORE_BACKEND_BACKEND_MIRRORED_H
#define MNEMON_STORE_BACKEND_BACKEND_MIRRORED_H

#include "store/access/access_rules.h"
#include "store/backend/backend.h"
#include "store/volume/volume.h"

/* Empty at first. For instance_add_mirrored(), which closes it. NULL: out of memory. */
struct backend *backend_mirrored_new(void);

struct mirrored_holding;

/*
 * A holding of a backend that backend_local_open() gave for a mirrored archive, held by the caller alone;
 * NULL: out of memory, and the backend is closed. mark: a number by which others know whether they have seen
 * it before.
 */
struct mirrored_holding *mirrored_holding_new(struct backend *take_local, uint64_t mark);
void mirrored_release(struct mirrored_holding *holding); /* NULL: nothing happens */

struct volume *mirrored_volume(const struct mirrored_holding *holding);
uint64_t mirrored_mark(const struct mirrored_holding *holding);

/* Readers that begin from now on have this one; NULL: they find nothing. The caller's share is taken. */
void backend_mirrored_replace(struct backend *backend, struct mirrored_holding *take_holding);

/* What it has now, to be released; NULL if it is empty. */
struct mirrored_holding *backend_mirrored_hold(struct backend *backend);

/* From now on. NULL: none. */
void backend_mirrored_set_rules(struct backend *backend, struct access_rules *take_rules);
enum access_verdict backend_mirrored_check(struct backend *backend, struct bytes surt, int64_t time_us);

/* Has the backend another holding than the session, and the session no cursor? Then close it. */
bool backend_mirrored_is_stale(const struct backend_session *session);

#endif
