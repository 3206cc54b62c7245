/*
 * How many copies there are of how many captures, in the arcs of this node; it counts itself.
 *
 * Of each member it is known how many captures it lacks, not which: those that the last comparison found
 * missing, and those that it has yet to confirm. If members lack m captures in all, at most m / j captures
 * are lacked by j of them or more. So what is said of copies is a lower bound, and exact if nothing is
 * missing.
 */
#include <stdlib.h>

#include "node/copies/copies_state.h"
#include "protocol/copies/reconcile_arc.h"

struct tally_context {
    const struct copy_plan *copy_plan;
    struct copies_tally *arcs;
};

static void count_coming(void *context, const struct ringkey *key) {
    struct tally_context *tally = context;
    size_t index;
    if (copy_plan_find(tally->copy_plan, ring_id_read(key->bytes), &index)) {
        tally->arcs[index].coming_count++;
    }
}

static void count_unconfirmed(void *context, const struct ringkey *key, const struct peer *peer) {
    struct tally_context *tally = context;
    size_t index;
    (void)peer;
    if (copy_plan_find(tally->copy_plan, ring_id_read(key->bytes), &index)) {
        tally->arcs[index].unconfirmed_count++;
    }
}

static uint64_t tally_keys(const struct ringkey_set *set, const struct copy_plan_piece_status *piece) {
    struct reconcile_arc arc;
    struct ringkey_sum sum = {0};
    ring_id_write(piece->from, arc.from);
    ring_id_write(piece->to, arc.to);
    struct reconcile_position start = reconcile_arc_start(&arc);
    struct reconcile_position end = reconcile_arc_end(&arc);
    return reconcile_arc_sum(set, &start, &end, &sum) == ERR_OK ? sum.count : 0;
}

/* A member of which nothing is known has none of it. */
static void tally_copies(const struct copy_plan *copy_plan, size_t index, struct copies_tally *arc) {
    uint64_t lacked_count = arc->unconfirmed_count;
    size_t members_count = 0;
    for (size_t i = 0; i < arc->piece.members_count; i++) {
        struct copy_plan_member_status member;
        copy_plan_member(copy_plan, index, i, &member);
        bool counts = !member.is_spare && !member.is_away && !member.is_full && !member.is_false &&
                      member.compared_at_us > 0 && !member.is_unproven && member.silent_count == 0;
        members_count += counts;
        lacked_count += counts ? member.missing_there_count : 0;
    }
    arc->at_least[1] = arc->keys_count;
    for (size_t copies = 2; copies <= members_count + 1 && copies <= CHARTER_REPLICAS_MAX; copies++) {
        uint64_t fewer_count = lacked_count / (members_count + 2 - copies);
        arc->at_least[copies] = fewer_count < arc->keys_count ? arc->keys_count - fewer_count : 0;
    }
}

void copies_tally_pace(struct copies *copies) {
    struct replicator_status status;
    uint64_t now_us = copies_now_us(copies);
    pthread_mutex_lock(&copies->lock);
    replicator_status(copies->replicator, &status);
    copies_left_note(&copies->confirming, status.counts.confirmed_count,
                     status.unconfirmed_count + status.unconfirmed_own_count > 0, now_us);
    copies_left_note(&copies->coming, status.counts.fetched_count, status.wanted_count > 0, now_us);
    pthread_mutex_unlock(&copies->lock);
}

uint64_t copies_tally_left_s(struct copies *copies) {
    struct replicator_status status;
    uint64_t now_us = copies_now_us(copies);
    pthread_mutex_lock(&copies->lock);
    replicator_status(copies->replicator, &status);
    uint64_t unconfirmed_count = (uint64_t)status.unconfirmed_count + status.unconfirmed_own_count;
    uint64_t confirming_s = copies_left_s(&copies->confirming, unconfirmed_count, now_us);
    uint64_t coming_s = copies_left_s(&copies->coming, status.wanted_count, now_us);
    pthread_mutex_unlock(&copies->lock);
    bool is_known =
        (confirming_s > 0 || unconfirmed_count == 0) && (coming_s > 0 || status.wanted_count == 0);
    return !is_known ? 0 : confirming_s > coming_s ? confirming_s : coming_s;
}

size_t copies_tally(struct copies *copies, struct copies_tally **ret_arcs) {
    pthread_mutex_lock(&copies->lock);
    const struct copy_plan *copy_plan = replicator_plan(copies->replicator);
    struct replicator_status status;
    replicator_status(copies->replicator, &status);
    size_t count = copy_plan_pieces_count(copy_plan);
    struct copies_tally *arcs = calloc(count > 0 ? count : 1, sizeof *arcs);
    struct tally_context tally = {copy_plan, arcs};
    count = arcs != NULL ? count : 0;
    if (count > 0) {
        custody_each_own(replicator_custody(copies->replicator), count_unconfirmed, &tally);
        transfer_each(replicator_transfer(copies->replicator), count_coming, &tally);
    }
    for (size_t i = 0; i < count; i++) {
        copy_plan_piece(copy_plan, i, &arcs[i].piece);
        arcs[i].keys_count = tally_keys(&copies->world.keys, &arcs[i].piece);
        tally_copies(copy_plan, i, &arcs[i]);
        bool is_fresh = arcs[i].unconfirmed_count > 0 || arcs[i].coming_count > 0 || !status.is_fed;
        if (arcs[i].piece.level == COPY_PLAN_WHOLE && is_fresh) {
            arcs[i].piece.level = COPY_PLAN_FRESH;
        }
    }
    pthread_mutex_unlock(&copies->lock);
    *ret_arcs = arcs;
    return count;
}
