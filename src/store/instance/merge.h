/*
 * merge - a walk over the captures of all volumes of an instance, in one order.
 *
 * The order is that of the index (SURT, time), then volume, then location; or exactly the reverse. Each
 * volume gives its captures in order; the walk holds one of each and hands out the least. A volume that is
 * down, or fails on the way, is left out: merge_is_partial() then says so, and instance_session_absent()
 * which one. What the guest of the instance or a mirrored volume has and a volume too (SURT, time and digest)
 * is given once, from the lowest number.
 *
 * Belongs to its session's thread and ends before the session; a session may have several.
 */
#ifndef MNEMON_STORE_INSTANCE_MERGE_H
#define MNEMON_STORE_INSTANCE_MERGE_H

#include "store/instance/instance.h"

struct merge;

/* Captures whose key lies in [from, to), as index_cursor_open(). The slices are borrowed for the call. */
enum err merge_open(struct instance_session *session, struct bytes from, struct bytes to, bool in_reverse,
                    struct merge **ret_merge, struct err_detail *detail) MUST_CHECK;

/* ERR_NOT_FOUND at the end. *ret_capture borrows from the walk until the next call. An error stays. */
enum err merge_next(struct merge *merge, struct capture *ret_capture, struct err_detail *detail) MUST_CHECK;
void merge_close(struct merge *merge);

/* Were there volumes that could not be asked, or not to their end? */
bool merge_is_partial(const struct merge *merge);

#endif
