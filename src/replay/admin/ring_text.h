/*
 * ring_text - what the nodes of a ring do together, in words: the same sentences on the dashboard and, by way
 * of /api/v1/ring (docs/api.md), in "mnemon ring status".
 *
 * Plain text, not escaped for HTML: it holds names and reasons that other nodes have chosen.
 */
#ifndef MNEMON_REPLAY_ADMIN_RING_TEXT_H
#define MNEMON_REPLAY_ADMIN_RING_TEXT_H

#include "base/buf.h"
#include "replay/admin/ring_view.h"

enum ring_text {
    RING_TEXT_COPIES, /* how much is here, and how many copies there are */
    RING_TEXT_REPAIR, /* what is missing, and for how long yet */
    RING_TEXT_CHECKS, /* challenges, damage, surplus */
    RING_TEXT_LINKS,
    RING_TEXT_HOSTS,
    RING_TEXT_BYTES,
    RING_TEXT_DECREES,
    RING_TEXT_SITES,
    RING_TEXT_RELAY, /* of a light member, or this node as one of others */
    RING_TEXT_COUNT
};

/* "keeping", "repair" …: of a line; lower case. */
extern const char *const ring_text_names[];

/* Is anything missing, on its way or not confirmed yet? *ret_left_s: for how long yet; 0: not known. */
bool ring_text_is_missing(const struct ring_view *ring, uint64_t *ret_left_s);

/* Append the sentence, without an end; nothing if there is nothing to say. */
void ring_text_put(enum ring_text which, const struct ring_view *ring, struct buf *out);

/* An arc's repair: "for 5 s, about 20 s left"; nothing if nothing is repaired. */
void ring_text_put_arc_repair(const struct ring_view_arc *arc, struct buf *out);

/* A node by what it says of itself: "here"; "away"; "says nothing", ever; "not heard yet". */
const char *ring_text_node(const struct ring_view_node *node);

/* All that it says, in a sentence: "here, 3 s ago: 222 captures, …". */
void ring_text_put_node(const struct ring_view_node *node, struct buf *out);

/* How far a job is, in the whole ring. unreported_count: nodes of which no report is known. */
void ring_text_put_job(const struct ring_view_job *job, uint64_t unreported_count, struct buf *out);

/* "0.2 s ahead"; "in time" below half a second. */
void ring_text_put_clock(const struct ring_view_node *node, struct buf *out);

/* A member of an arc, by the worst that is to be said of it: "away", "full" … "complete". */
const char *ring_text_member(const struct ring_view_member *member);

#endif
