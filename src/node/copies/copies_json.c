/* What people want to know of it. */
#include <inttypes.h>

#include "node/copies/copies_state.h"
#include "node/transport/ring_json.h"

enum { MEMBERS_SHOWN_MAX = 32 };

static uint64_t seconds_since(uint64_t now_us, uint64_t at_us) {
    return at_us > 0 && now_us > at_us ? (now_us - at_us) / 1000000 : 0;
}

static void put_bool(struct buf *out, const char *name, bool value) {
    buf_put_format(out, ",\"%s\":%s", name, value ? "true" : "false");
}

static void put_member(struct buf *out, const struct copy_plan_member_status *member, uint64_t now_us) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    buf_put_format(out, "{\"address\":\"%s\"", address_format(&member->peer.address, address));
    put_bool(out, "away", member->is_away);
    put_bool(out, "full", member->is_full);
    put_bool(out, "false", member->is_false);
    put_bool(out, "spare", member->is_spare);
    put_bool(out, "complete", member->is_complete);
    if (member->compared_at_us > 0) {
        buf_put_format(out, ",\"compared_s\":%" PRIu64, seconds_since(now_us, member->compared_at_us));
    }
    buf_put_format(out,
                   ",\"missing_here\":%" PRIu64 ",\"missing_there\":%" PRIu64 ",\"silent\":%" PRIu32
                   ",\"failed\":%" PRIu32 "}",
                   member->missing_here_count, member->missing_there_count, member->silent_count,
                   member->failed_count);
}

/* The lock is held. */
static void put_piece(const struct copies *copies, size_t index, uint64_t now_us, struct buf *out) {
    struct copy_plan_piece_status piece;
    char from[RING_JSON_ID_SIZE];
    char to[RING_JSON_ID_SIZE];
    copy_plan_piece(copies->copy_plan, index, &piece);
    buf_put_format(out,
                   "{\"from\":\"%s\",\"to\":\"%s\",\"level\":\"%s\",\"copies\":%" PRIu32 ",\"away\":%" PRIu32
                   ",\"missing\":%" PRIu64,
                   ring_json_format_id(piece.from, from), ring_json_format_id(piece.to, to),
                   copy_plan_levels[piece.level], piece.copies_count, piece.away_count, piece.missing_count);
    if (piece.repairing_since_us > 0) {
        buf_put_format(out, ",\"repairing_s\":%" PRIu64, seconds_since(now_us, piece.repairing_since_us));
        if (piece.estimate_s > 0) {
            buf_put_format(out, ",\"left_s\":%" PRIu64, piece.estimate_s);
        }
    }
    buf_put_string(out, ",\"members\":[");
    for (size_t i = 0; i < piece.members_count && i < MEMBERS_SHOWN_MAX; i++) {
        struct copy_plan_member_status member;
        copy_plan_member(copies->copy_plan, index, i, &member);
        buf_put_string(out, i > 0 ? "," : "");
        put_member(out, &member, now_us);
    }
    buf_put_string(out, "]}");
}

static void put_stat(struct buf *out, const struct copies_stat *stat) {
    buf_put_format(out,
                   "\"keys\":%" PRIu64 ",\"wanted\":%" PRIu64 ",\"compared\":%" PRIu64
                   ",\"compared_by\":%" PRIu64 ",\"offered\":%" PRIu64,
                   stat->keys_count, stat->wanted_count, stat->compared_count, stat->compared_by_count,
                   stat->offered_count);
    buf_put_format(out,
                   ",\"fetched\":%" PRIu64 ",\"fetched_about\":%" PRIu64 ",\"fetched_size\":%" PRIu64
                   ",\"refused\":%" PRIu64 ",\"challenged\":%" PRIu64,
                   stat->fetched_count, stat->fetched_about_count, stat->fetched_size, stat->refused_count,
                   stat->challenged_count);
    buf_put_format(out, ",\"toured\":%" PRIu64 ",\"handed_on\":%" PRIu64, stat->toured_count,
                   stat->handed_on_count);
    buf_put_format(out, ",\"caught\":%" PRIu64 ",\"released\":%" PRIu64 ",\"repaired\":%" PRIu64,
                   stat->caught_count, stat->released_count, stat->repaired_count);
    put_bool(out, "full", stat->is_full);
    put_bool(out, "fed", stat->is_fed);
}

void copies_put_json(struct copies *copies, struct buf *out) {
    struct copies_stat stat;
    uint64_t now_us = copies_now_us(copies);
    copies_stat(copies, &stat);
    buf_put_byte(out, '{');
    put_stat(out, &stat);
    pthread_mutex_lock(&copies->lock);
    copies_full_sync_put_json(copies, out);
    buf_put_format(out, ",\"claims\":%zu,\"arcs\":[", copy_plan_claims_count(copies->copy_plan));
    for (size_t i = 0; i < copy_plan_pieces_count(copies->copy_plan); i++) {
        buf_put_string(out, i > 0 ? "," : "");
        put_piece(copies, i, now_us, out);
    }
    pthread_mutex_unlock(&copies->lock);
    buf_put_string(out, "]}");
}
