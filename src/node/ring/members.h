/*
 * members - which keys were members of this node's ring, and when (protocol/ring/roll.h); and by that, which
 * captures the ring takes.
 *
 *      gate ── a HELLO was good ──> members_note() ──┐
 *      PEER_RPC_ROLL, of a random member ────────────┴── checked ──> the roll ──> DIR/ring/members
 *      members_judge(key, time) <── archive pages, lists, captures that come        └ unknown: asked for
 *
 * A key that nobody can show a membership of counts as a stranger's; the roll asks others for it, at once and
 * then less and less often. Any thread, if nothing else is said; nobody waits for more than the table.
 */
#ifndef MNEMON_NODE_RING_MEMBERS_H
#define MNEMON_NODE_RING_MEMBERS_H

#include "base/clock.h"
#include "net/identity.h"
#include "node/rpc/peer_rpc.h"
#include "protocol/ring/import_rule.h"
#include "protocol/ring/roll.h"

struct members;

enum members_verdict { MEMBERS_NO_RING, MEMBERS_MEMBER, MEMBERS_STRANGER };

/* Reads DIR/ring/members. NULL: out of memory. */
struct members *members_new(const char *directory, const struct clock *clock);
void members_free(struct members *members); /* may be NULL */

/* Before this nobody is judged. */
void members_set_charter(struct members *members, const struct charter *charter,
                         const uint8_t ring[CHARTER_ID_SIZE]);

/* The key of a node that has shown this membership; checked here again. */
void members_note(struct members *members, const uint8_t key[PEER_KEY_SIZE],
                  const struct membership *membership);

/* start: roll_start() of the key. */
enum members_verdict members_judge(struct members *members, uint64_t start, int64_t time_us);

/* Was or is it a member at any time? */
enum members_verdict members_judge_ever(struct members *members, uint64_t start);

/* Who may import: the decree of the ring (protocol/ring/decree.h). */
void members_set_rule(struct members *members, enum import_rule rule);
enum import_rule members_rule(struct members *members);

/* A newcomer has not heard the decrees of its ring yet: until it has, it copies nothing. What it refused
 * would count as something that it need not have, though it may be taken a moment later. */
void members_await_rule(struct members *members, bool is_awaited);
bool members_knows_rule(struct members *members);

/* What is known of a capture that another node gives, or lists. */
struct members_claim {
    int64_t time_us;
    bool is_signed; /* it has a signature that is right, by this key */
    uint64_t signer;
    bool is_imported; /* likewise a statement of an importer */
    uint64_t importer;
    bool is_importer_hidden; /* it is not known whose statement that is */
    bool is_in_scope;        /* of the charter */
};

/*
 * Does the ring take it? Not if its time has not come, by more than MEMBERSHIP_CLOCK_SLACK_S; and, if no
 * member has fetched it, not if it is out of scope or the rule of imports excludes it. A sentence if not,
 * else NULL.
 */
const char *members_refuse(struct members *members, const struct members_claim *claim);

/* Counts up when something that was refused may be taken now, or the other way round. */
uint64_t members_generation(struct members *members);

/* ---- asking others; one thread ---- */

/* PEER_RPC_ROLL; the thread of peer_rpc. */
peer_rpc_handler members_answer;

/* Replace *question. False: nothing is to be asked now. */
bool members_next_question(struct members *members, struct buf *question);

/* ERR_INVALID: the peer is to be blamed. */
enum err members_take_answer(struct members *members, struct bytes answer,
                             struct err_detail *detail) MUST_CHECK;

/* Every second or so, a thread that may wait for the disk: write what is new. */
void members_beat(struct members *members);

/* How many memberships are known. */
size_t members_count(struct members *members);

#endif
