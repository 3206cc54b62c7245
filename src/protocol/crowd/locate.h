/*
 * locate - LocateObject: our own searches, and the queries of others that pass through here.
 *
 *      ours     FIND ─ remembered as absent: LOST
 *                    ─ query with a new id, TTL t, to f random neighbours ─ HIT: FOUND, again and again
 *                    ─ nothing after t * T: t + 1, up to ttl_last ─ then LOST, and remembered
 *      others'  QUERY ─ ACK ─ too often, seen before: dropped
 *                     ─ waits for its turn: those first whose wish many neighbours have sent lately
 *                     ─ ASKED ─ HAVE: HIT to the node it came from
 *                             ─ HAVE_NOT: TTL left: on to f random neighbours, not back
 *      HIT      of a query that we sent on, from a node that we sent it to: back to the one it came from
 *
 * TTL: a node that begins a query or passes it on decrements it first and sends only what is not negative, as
 * the paper has it. So a search with TTL 1 reaches the neighbours, one with TTL t goes t hops far, and what
 * is on the wire is the number of hops that are left to go behind the receiver.
 *
 * T: a try with TTL t is waited for t * T. In the paper's the object comes directly, here a HIT comes back
 * the way the query went; so T stands for a hop there, a hop back and the look into a store. A finding for an
 * earlier try counts as long as the search is open. After the first no further try is made, and the search
 * ends with the time of the try that is under way; unless the owner discounts what was found.
 *
 * A neighbour that does not acknowledge within ack_us is replaced by another one, twice at most, and is
 * dropped from the view (overlay_drop()) if it was silent for the second time.
 *
 * Floods are bounded on every side: a bucket for each neighbour, one for all; a TTL cap; a bound on the
 * findings that go back for one query (8, of one neighbour 3); and wishes that went through here often
 * without any finding are only looked for here and not sent on, but for one in eight, until one is found or
 * absent_us has passed. The queries that wait never push out our own: they are remembered only when their
 * turn has come.
 */
#ifndef MNEMON_PROTOCOL_CROWD_LOCATE_H
#define MNEMON_PROTOCOL_CROWD_LOCATE_H

#include "protocol/crowd/crowd_message.h"

enum { LOCATE_FINDINGS_MAX = 8 };

/* All configs here: with the defaults filled in. */

/* How many actions one step appends at most. */
size_t locate_actions_max(const struct crowd_config *config);
void locate_init(struct crowd *crowd); /* crowd->secret is set */

void locate_find(struct crowd *crowd, uint64_t number, struct bytes wish);
void locate_enough(struct crowd *crowd, uint64_t number);
void locate_discount(struct crowd *crowd, uint64_t number);
void locate_have(struct crowd *crowd, uint64_t number, struct bytes finding); /* empty: no */
void locate_receive(struct crowd *crowd, const struct event *event, const struct crowd_message *message);
bool locate_is_searching(const struct crowd *crowd, uint64_t number, uint8_t *ret_ttl);

/* What is due; wakes for the next. At the end of every step: queries that came are worked on here. */
void locate_tick(struct crowd *crowd);

#endif
