/* What people want to know of it. */
#include <stdlib.h>

#include "base/json.h"
#include "node/copies/copies_state.h"
#include "node/transport/ring_json.h"

enum { MEMBERS_SHOWN_MAX = 32 };

static uint64_t seconds_since(uint64_t now_us, uint64_t at_us) {
    return at_us > 0 && now_us > at_us ? (now_us - at_us) / 1000000 : 0;
}

static void copies_put_member(struct json *json, const struct copy_plan_member_status *member,
                              uint64_t now_us) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    json_open(json, NULL);
    json_text(json, "address", address_format(&member->peer.address, address));
    json_bool(json, "away", member->is_away);
    json_bool(json, "full", member->is_full);
    json_bool(json, "false", member->is_false);
    json_bool(json, "spare", member->is_spare);
    json_bool(json, "complete", member->is_complete && !member->is_unproven);
    if (member->compared_at_us > 0) {
        json_count(json, "compared_s", seconds_since(now_us, member->compared_at_us));
    }
    JSON_COUNTS(json, {"missing_here", member->missing_here_count},
                {"missing_there", member->missing_there_count}, {"silent", member->silent_count},
                {"failed", member->failed_count});
    json_close(json);
}

/* By how many live copies there are, at least: the first number is that of one copy. */
static void put_at_least(struct json *json, const struct copies_tally *arc) {
    json_open_list(json, "at_least");
    for (size_t i = 1; i <= CHARTER_REPLICAS_MAX && (i == 1 || arc->at_least[i] > 0); i++) {
        json_count(json, NULL, arc->at_least[i]);
    }
    json_close(json);
}

/* Of all arcs together. */
static void copies_put_sums(struct json *json, const struct ring_view_stored *stat,
                            const struct copies_tally *arcs, size_t count, uint64_t left_s) {
    struct copies_tally sum = {.keys_count = 0};
    for (size_t i = 0; i < count; i++) {
        sum.keys_count += arcs[i].keys_count;
        for (size_t copies = 1; copies <= CHARTER_REPLICAS_MAX; copies++) {
            sum.at_least[copies] += arcs[i].at_least[copies];
        }
    }
    JSON_COUNTS(json, {"arcs_keys", sum.keys_count}, {"unconfirmed_own", stat->unconfirmed_own_count});
    put_at_least(json, &sum);
    if (left_s > 0) {
        json_count(json, "left_s", left_s);
    }
}

/* The lock is held. */
static void put_piece(const struct copies *copies, size_t index, const struct copies_tally *arc,
                      uint64_t now_us, struct json *json) {
    const struct copy_plan_piece_status *piece = &arc->piece;
    char id[RING_JSON_ID_SIZE];
    json_open(json, NULL);
    json_text(json, "from", ring_json_format_id(piece->from, id));
    json_text(json, "to", ring_json_format_id(piece->to, id));
    json_text(json, "level", copy_plan_levels[piece->level]);
    JSON_COUNTS(json, {"copies", piece->copies_count}, {"away", piece->away_count},
                {"missing", piece->missing_count}, {"keys", arc->keys_count}, {"coming", arc->coming_count},
                {"unconfirmed", arc->unconfirmed_count});
    json_bool(json, "doubted", piece->is_doubted);
    put_at_least(json, arc);
    if (piece->repairing_since_us > 0) {
        json_count(json, "repairing_s", seconds_since(now_us, piece->repairing_since_us));
        if (piece->estimate_s > 0) {
            json_count(json, "left_s", piece->estimate_s);
        }
    }
    json_open_list(json, "members");
    for (size_t i = 0; i < piece->members_count && i < MEMBERS_SHOWN_MAX; i++) {
        struct copy_plan_member_status member;
        copy_plan_member(replicator_plan(copies->replicator), index, i, &member);
        copies_put_member(json, &member, now_us);
    }
    json_close(json);
    json_close(json);
}

static void put_stat(struct json *json, const struct ring_view_stored *stat) {
    JSON_COUNTS(json, {"keys", stat->keys_count}, {"wanted", stat->wanted_count},
                {"compared", stat->compared_count}, {"compared_by", stat->compared_by_count},
                {"offered", stat->offered_count}, {"fetches", stat->fetches_count},
                {"fetched", stat->fetched_count}, {"fetched_about", stat->fetched_about_count},
                {"fetched_size", stat->fetched_size}, {"refused", stat->refused_count},
                {"challenged", stat->challenged_count}, {"full_synced", stat->toured_count},
                {"toured", stat->toured_count}, {"handed_on", stat->handed_on_count},
                {"caught", stat->caught_count}, {"released", stat->released_count},
                {"damaged", stat->damaged_count}, {"repaired", stat->repaired_count});
    json_count(json, "unconfirmed", stat->unconfirmed_count);
    json_bool(json, "checking", stat->is_checking);
    json_bool(json, "full", stat->is_full);
    json_bool(json, "fed", stat->is_fed);
}

/* Can this node be stopped without a capture being the last of its kind? If enough other nodes are up. */
static bool is_all_whole(const struct ring_view_stored *stat, const struct copies_tally *arcs, size_t count) {
    bool is_whole = count > 0 && stat->is_fed && !stat->is_checking && stat->unconfirmed_count == 0 &&
                    stat->wanted_count == 0 && stat->damaged_count == 0;
    for (size_t i = 0; i < count && is_whole; i++) {
        is_whole = arcs[i].piece.level == COPY_PLAN_WHOLE;
    }
    return is_whole;
}

/* The lock is held. */
static void put_full_sync(const struct copies *copies, struct json *json) {
    static const char *const names[] = {"full_sync", "tour"}; /* now and in 0.1 */
    const struct full_sync *full_sync = replicator_full_sync(copies->replicator);
    json_text(json, "keep", copies->config.keeps_everything ? "everything" : "arc");
    for (size_t i = 0; copies->config.keeps_everything && i < sizeof names / sizeof *names; i++) {
        json_open(json, names[i]);
        JSON_COUNTS(json, {"rounds", full_sync->rounds_count}, {"arcs", full_sync->last.stops_count},
                    {"missing", full_sync->last.missing_count}, {"silent", full_sync->last.silent_count},
                    {"done", full_sync->now.stops_count});
        json_bool(json, "whole", full_sync_is_whole(full_sync, copies_now_us(copies)));
        json_close(json);
    }
}

void copies_put_json(struct copies *copies, struct json *json, const char *name) {
    struct ring_view_stored stat;
    struct copies_tally *arcs;
    uint64_t now_us = copies_now_us(copies);
    copies_stat(copies, &stat);
    size_t count = copies_tally(copies, &arcs);
    json_open(json, name);
    json_bool(json, "whole", is_all_whole(&stat, arcs, count));
    put_stat(json, &stat);
    copies_put_sums(json, &stat, arcs, count, copies_tally_left_s(copies));
    pthread_mutex_lock(&copies->lock);
    put_full_sync(copies, json);
    json_count(json, "claims", copy_plan_claims_count(replicator_plan(copies->replicator)));
    json_open_list(json, "arcs");
    for (size_t i = 0; i < count && i < copy_plan_pieces_count(replicator_plan(copies->replicator)); i++) {
        put_piece(copies, i, &arcs[i], now_us, json);
    }
    pthread_mutex_unlock(&copies->lock);
    json_close(json);
    json_close(json);
    free(arcs);
}

/* ---- for pages; the lock is held ---- */

static void view_members(const struct copies *copies, size_t index, size_t count, struct arena *arena,
                         struct ring_view_arc *arc) {
    struct ring_view_member *members = arena_take_array(arena, count, sizeof *members);
    for (size_t i = 0; members != NULL && i < count; i++) {
        char address[ADDRESS_TEXT_SIZE_MAX];
        struct copy_plan_member_status member;
        copy_plan_member(replicator_plan(copies->replicator), index, i, &member);
        members[arc->members_count++] = (struct ring_view_member){
            .address = arena_text(arena, address_format(&member.peer.address, address)),
            .is_false = member.is_false,
            .is_away = member.is_away,
            .is_full = member.is_full,
            .is_spare = member.is_spare,
            .is_complete = member.is_complete,
            .is_compared = member.compared_at_us > 0,
        };
    }
    arc->members = members;
}

static void view_at_least(const struct copies_tally *tally, struct arena *arena, struct ring_view_arc *arc) {
    uint64_t *at_least = arena_take_array(arena, CHARTER_REPLICAS_MAX, sizeof *at_least);
    size_t count = 0;
    while (at_least != NULL && count < CHARTER_REPLICAS_MAX &&
           (count == 0 || tally->at_least[count + 1] > 0)) {
        at_least[count] = tally->at_least[count + 1];
        count++;
    }
    arc->at_least = at_least;
    arc->at_least_count = count;
}

static void view_arc(const struct copies *copies, size_t index, const struct copies_tally *tally,
                     struct arena *arena, struct ring_view_arc *arc) {
    static const enum ring_view_level levels[] = {[COPY_PLAN_WHOLE] = RING_VIEW_WHOLE,
                                                  [COPY_PLAN_FRESH] = RING_VIEW_FRESH,
                                                  [COPY_PLAN_AWAY] = RING_VIEW_AWAY,
                                                  [COPY_PLAN_LOW] = RING_VIEW_LOW};
    struct copy_plan_piece_status piece = tally->piece;
    size_t copies_wanted = copies->config.ring.copies(copies->config.ring.context);
    char id[RING_JSON_ID_SIZE];
    uint64_t way = piece.to.high - piece.from.high;
    *arc = (struct ring_view_arc){
        .to = arena_text(arena, ring_json_format_id(piece.to, id)),
        .share = way > 0 ? (double)way / 0x1p64 : 1,
        .level = levels[piece.level],
        .copies_count = piece.copies_count,
        .keys_count = tally->keys_count,
        .enough_count = copies_wanted <= CHARTER_REPLICAS_MAX ? tally->at_least[copies_wanted] : 0,
        .missing_count = piece.missing_count,
        .is_doubted = piece.is_doubted,
        .is_repairing = piece.repairing_since_us > 0,
        .repairing_s = seconds_since(copies_now_us(copies), piece.repairing_since_us),
        .left_s = piece.repairing_since_us > 0 ? piece.estimate_s : 0,
    };
    size_t count = piece.members_count < MEMBERS_SHOWN_MAX ? piece.members_count : MEMBERS_SHOWN_MAX;
    view_members(copies, index, count, arena, arc);
    view_at_least(tally, arena, arc);
}

void copies_view(struct copies *copies, struct arena *arena, struct ring_view_copies *ret_view) {
    struct ring_view_stored stat;
    struct copies_tally *tallies;
    copies_stat(copies, &stat);
    size_t tallies_count = copies_tally(copies, &tallies);
    uint64_t left_s = copies_tally_left_s(copies);
    pthread_mutex_lock(&copies->lock);
    const struct full_sync *full_sync = replicator_full_sync(copies->replicator);
    size_t count = copy_plan_pieces_count(replicator_plan(copies->replicator));
    count = count < tallies_count ? count : tallies_count;
    struct ring_view_arc *arcs = arena_take_array(arena, count, sizeof *arcs);
    count = arcs != NULL ? count : 0;
    *ret_view = (struct ring_view_copies){
        .stored = stat,
        .keeps_everything = copies->config.keeps_everything,
        .rounds_count = full_sync->rounds_count,
        .stops_count = full_sync->last.stops_count,
        .missing_count = full_sync->last.missing_count,
        .silent_count = full_sync->last.silent_count,
        .left_s = left_s,
        .arcs = arcs,
        .arcs_count = count,
    };
    for (size_t i = 0; i < count; i++) {
        view_arc(copies, i, &tallies[i], arena, &arcs[i]);
    }
    pthread_mutex_unlock(&copies->lock);
    free(tallies);
}
