/* Questions of other nodes: what they say of themselves, and what is answered. */
#include "protocol/copies/reconcile.h"
#include "protocol/copies/replicator_state.h"

/* ---- comparison ---- */

/* One sum for the whole arc, and nothing to say about it? */
static bool answer_is_equal(struct bytes question, struct bytes answer) {
    return question.size > 0 && question.data[0] == (RECONCILE_SUM << 6 | RECONCILE_POSITION_SIZE) &&
           answer.size == 1 && answer.data[0] == (RECONCILE_SKIP << 6 | RECONCILE_POSITION_SIZE);
}

enum err replicator_answer_comparison(const struct ringkey_set *keys, struct bytes question, void *memory,
                                      size_t size_max, struct ring_id *ret_from, struct ring_id *ret_to,
                                      bool *ret_is_equal, struct bytes *ret_answer, const char **ret_sentence,
                                      struct err_detail *detail) {
    struct bytes message;
    struct reconcile_arc arc;
    *ret_sentence = NULL;
    enum err err = copies_read_arc(question, ret_from, ret_to, &message, detail);
    if (err != ERR_OK) {
        *ret_sentence = "asks for a comparison of no arc";
        return err;
    }
    if (ring_id_equal(*ret_from, *ret_to)) {
        return err_set(detail, ERR_INVALID, "an arc that is the whole ring has nobody to be compared with");
    }
    ring_id_write(*ret_from, arc.from);
    ring_id_write(*ret_to, arc.to);
    err = reconcile_answer(&arc, keys, message, memory, size_max, ret_answer, detail);
    if (err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT) {
        *ret_sentence = "compares with messages that break the rules";
    }
    *ret_is_equal = err == ERR_OK && answer_is_equal(message, *ret_answer);
    return err;
}

void replicator_hear_comparison(struct replicator *replicator, const struct peer *from,
                                struct ring_id arc_from, struct ring_id arc_to, bool is_equal,
                                uint64_t now_us) {
    const struct replicator_world *world = &replicator->world;
    struct holders_arc arc;
    /* If the node is the primary of the end of that arc, as far as we know, we keep the arc for it. */
    if (world->know(world->ring, arc_to, &arc) && arc.count > 0 && peer_same_key(&arc.peers[0], from)) {
        copy_plan_claim(replicator->copy_plan, &arc.peers[0], arc_from, arc_to, is_equal, now_us);
    }
    copy_plan_hear(replicator->copy_plan, from, now_us);
    primary_watch_hear(&replicator->primary_watch, from, now_us);
    replicator->counts.compared_by_count++;
}

/* ---- offers ---- */

enum err replicator_judge(const struct replicator_world *world, const struct ringkey *key,
                          uint8_t *ret_wish) {
    enum err err = world->find_key(world->disk, key);
    if (err != ERR_NOT_FOUND) {
        *ret_wish = COPIES_HAS;
        return err;
    }
    err = world->find_payload(world->disk, key);
    *ret_wish = err == ERR_OK ? COPIES_WANTS_ABOUT : COPIES_WANTS;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Shall we take the offer? Yes if we are a holder, or if the other node is one: it is the primary, or sees to
 * what the primary neglects (protocol/copies/primary_watch.h), and wants a copy here. *ret_giver: the address
 * at which it is reached, which an incoming stream does not show. */
static bool answer_is_ours(const struct replicator_world *world, const struct peer *from,
                           struct ring_id place, struct holders_arc *arc, struct peer *ret_giver) {
    bool is_known = arc->count > 0 && ring_id_is_owned(arc->from, place, arc->to);
    if (!is_known && !world->know(world->ring, place, arc)) {
        arc->count = 0;
        return false;
    }
    bool is_wanted = arc->self_rank >= 0;
    *ret_giver = *from;
    for (size_t i = 0; i < arc->count; i++) {
        if (peer_same_key(&arc->peers[i], from)) {
            *ret_giver = arc->peers[i];
            is_wanted = true;
        }
    }
    return is_wanted;
}

void replicator_hear_offer(struct replicator *replicator, const struct peer *from,
                           const struct copies_keys *keys, uint8_t *wishes, uint64_t now_us) {
    struct holders_arc arc = {.count = 0};
    replicator->is_full = replicator->is_full && keys->count == 0;
    if (keys->count == 0) {
        replicator_touch_all(replicator, from, now_us);
    }
    for (size_t i = 0; i < keys->count; i++) {
        struct ringkey key = copies_keys_at(keys, i);
        struct peer giver;
        if (replicator_is_deleted(replicator, &key)) {
            wishes[i] = COPIES_HAS; /* it need not come; "not now" would keep back all that is behind it */
        } else if (wishes[i] != COPIES_HAS &&
                   !answer_is_ours(&replicator->world, from, replicator_place(&key), &arc, &giver)) {
            wishes[i] = COPIES_NOT_NOW;
        } else if (wishes[i] != COPIES_HAS &&
                   !replicator_want(replicator, TRANSFER_ORDER_OFFERED, &key, &giver)) {
            wishes[i] = COPIES_NOT_NOW; /* too many are wanted */
            copy_plan_doubt(replicator->copy_plan, replicator_place(&key), from);
        }
    }
}

/* What there is no room for does not come: readers here must ask others for it. */
void replicator_refuse_offer(struct replicator *replicator, const struct peer *from,
                             const struct copies_keys *keys) {
    replicator->is_full = true;
    for (size_t i = 0; i < keys->count; i++) {
        struct ringkey key = copies_keys_at(keys, i);
        copy_plan_doubt(replicator->copy_plan, replicator_place(&key), from);
    }
}
