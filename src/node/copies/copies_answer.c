/* Answers to other nodes, on the thread of peer_rpc. */
#include "node/copies/copies_state.h"

/* ---- comparison ---- */

/* One sum for the whole arc, and nothing to say about it? */
static bool is_all_equal(struct bytes question, struct bytes answer) {
    return question.size > 0 && question.data[0] == (RECONCILE_SUM << 6 | RECONCILE_POSITION_SIZE) &&
           answer.size == 1 && answer.data[0] == (RECONCILE_SKIP << 6 | RECONCILE_POSITION_SIZE);
}

/* If the node is the primary of the end of that arc, as far as we know, we keep the arc for it. */
static void take_claim(struct copies *copies, const struct peer *from, struct ring_id arc_from,
                       struct ring_id arc_to, bool is_equal) {
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc;
    if (!ring->know(ring->context, arc_to, &arc) || arc.count == 0 || !peer_same_key(&arc.peers[0], from)) {
        return;
    }
    pthread_mutex_lock(&copies->lock);
    copy_plan_claim(copies->copy_plan, &arc.peers[0], arc_from, arc_to, is_equal, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
}

static enum err answer_compare(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    struct copies *copies = context;
    struct ring_id arc_from;
    struct ring_id arc_to;
    struct bytes message;
    enum err err = copies_read_arc(question, &arc_from, &arc_to, &message, detail);
    if (err != ERR_OK) {
        copies_blame(copies, from, "asks for a comparison of no arc");
        return err;
    }
    if (ring_id_equal(arc_from, arc_to)) {
        return err_set(detail, ERR_INVALID, "an arc that is the whole ring has nobody to be compared with");
    }
    err = buf_reserve(answer, RECONCILE_MESSAGE_SIZE_MAX);
    if (err != ERR_OK) {
        return err;
    }
    struct reconcile_arc arc;
    struct bytes said;
    ring_id_write(arc_from, arc.from);
    ring_id_write(arc_to, arc.to);
    pthread_mutex_lock(&copies->keys_lock);
    struct ringkey_set set = keyset_set(copies->keyset);
    err = reconcile_answer(&arc, &set, message, answer->data + answer->size, RECONCILE_MESSAGE_SIZE_MAX,
                           &said, detail);
    pthread_mutex_unlock(&copies->keys_lock);
    if (err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT) {
        copies_blame(copies, from, "compares with messages that break the rules");
    }
    if (err != ERR_OK) {
        return err;
    }
    answer->size += said.size;
    take_claim(copies, from, arc_from, arc_to, is_all_equal(message, said));
    pthread_mutex_lock(&copies->lock);
    copy_plan_hear(copies->copy_plan, from, copies_now_us(copies));
    primary_watch_hear(&copies->primary_watch, from, copies_now_us(copies));
    copies->stat.compared_by_count++;
    pthread_mutex_unlock(&copies->lock);
    return ERR_OK;
}

/* ---- offers ---- */

/* Shall we take the offer? Yes if we are a holder, or if the other node is one: it is the primary, or sees to
 * what the primary neglects (protocol/copies/primary_watch.h), and wants a copy here. *ret_giver: the address
 * at which it is reached, which an incoming stream does not show. */
static bool is_ours(struct copies *copies, const struct peer *from, struct ring_id place,
                    struct holders_arc *arc, struct peer *ret_giver) {
    const struct holders_source *ring = &copies->config.ring;
    bool is_known = arc->count > 0 && ring_id_is_owned(arc->from, place, arc->to);
    if (!is_known && !ring->know(ring->context, place, arc)) {
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

/* What the set says alone. keys_lock is held. */
static enum err answer_judge(struct copies *copies, const struct ringkey *key, uint8_t *ret_wish) {
    bool has_it = false;
    struct ringkey same;
    enum err err = keyset_contains(copies->keyset, key, &has_it);
    if (err != ERR_OK || has_it) {
        *ret_wish = COPIES_HAS;
        return err;
    }
    err = keyset_find_digest(copies->keyset, ringkey_digest(key), NULL, &same);
    *ret_wish = err == ERR_OK ? COPIES_WANTS_ABOUT : COPIES_WANTS;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

static enum err judge_all(struct copies *copies, const struct peer *from, const struct copies_keys *keys,
                          uint8_t *wishes) {
    struct holders_arc arc = {.count = 0};
    for (size_t i = 0; i < keys->count; i++) {
        struct ringkey key = copies_keys_at(keys, i);
        struct peer giver;
        pthread_mutex_lock(&copies->keys_lock);
        enum err err = answer_judge(copies, &key, &wishes[i]);
        pthread_mutex_unlock(&copies->keys_lock);
        if (err != ERR_OK) {
            return err;
        }
        pthread_mutex_lock(&copies->lock);
        if (copies_is_deleted(copies, &key)) {
            wishes[i] = COPIES_HAS; /* it need not come; "not now" would keep back all that is behind it */
        }
        pthread_mutex_unlock(&copies->lock);
        if (wishes[i] == COPIES_HAS) {
            continue;
        }
        bool is_wanted = is_ours(copies, from, copies_place_of(&key), &arc, &giver);
        pthread_mutex_lock(&copies->lock);
        if (!is_wanted || !copies_want(copies, TRANSFER_ORDER_OFFERED, &key, &giver)) {
            wishes[i] = COPIES_NOT_NOW;
        }
        pthread_mutex_unlock(&copies->lock);
    }
    return ERR_OK;
}

/* What there is no room for does not come: readers here must ask others for it. */
static void doubt_all(struct copies *copies, const struct peer *from, const struct copies_keys *keys) {
    pthread_mutex_lock(&copies->lock);
    for (size_t i = 0; i < keys->count; i++) {
        struct ringkey key = copies_keys_at(keys, i);
        copy_plan_doubt(copies->copy_plan, copies_place_of(&key), from);
    }
    pthread_mutex_unlock(&copies->lock);
}

static enum err answer_offer(void *context, const struct peer *from, struct bytes question,
                             struct buf *answer, struct err_detail *detail) {
    struct copies *copies = context;
    struct copies_keys keys;
    uint8_t wishes[COPIES_KEYS_MAX];
    enum err err = copies_read_keys(question, &keys, detail);
    if (err != ERR_OK) {
        copies_blame(copies, from, "offers what are no keys");
        return err;
    }
    if (keys.count == 0) {
        copies_touch_all(copies, from); /* something has changed there */
        copies_wake(copies);
        return ERR_OK;
    }
    if (copies_is_full(copies)) {
        doubt_all(copies, from, &keys);
        return err_set(detail, ERR_NO_SPACE, "the disk is full");
    }
    err = judge_all(copies, from, &keys, wishes);
    if (err != ERR_OK) {
        return err;
    }
    copies_put_bits(answer, wishes, keys.count, 2);
    copies_wake(copies);
    return answer->err;
}

/* ---- confirmations ---- */

static enum err answer_confirm(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    struct copies *copies = context;
    struct copies_keys keys;
    uint8_t values[COPIES_KEYS_MAX];
    enum err err = copies_read_keys(question, &keys, detail);
    if (err != ERR_OK) {
        copies_blame(copies, from, "asks about what are no keys");
        return err;
    }
    for (size_t i = 0; i < keys.count && err == ERR_OK; i++) {
        struct ringkey key = copies_keys_at(&keys, i);
        bool has_it = false;
        pthread_mutex_lock(&copies->keys_lock);
        err = keyset_contains(copies->keyset, &key, &has_it);
        pthread_mutex_unlock(&copies->keys_lock);
        values[i] = has_it;
    }
    if (err == ERR_OK) {
        copies_put_bits(answer, values, keys.count, 1);
    }
    return err == ERR_OK ? answer->err : err;
}

/* ---- challenges ---- */

static enum err answer_prove(void *context, const struct peer *from, struct bytes question,
                             struct buf *answer, struct err_detail *detail) {
    struct copies *copies = context;
    struct copies_challenge challenge;
    struct bytes payload;
    uint8_t proof[COPIES_PROOF_SIZE];
    enum err err = copies_read_challenge(question, &challenge, detail);
    if (err != ERR_OK) {
        copies_blame(copies, from, "challenges with what is no challenge");
        return err;
    }
    err = copies_read_payload(copies, &copies->answering, &challenge.key, &payload, detail);
    if (err == ERR_CORRUPT) {
        copies_report_damage(copies, &challenge.key);
    }
    if (err != ERR_OK) {
        return err;
    }
    copies_prove(&copies->answering.sha256, &challenge, payload, proof);
    return buf_put(answer, bytes_of(proof, sizeof proof));
}

void copies_serve(struct copies *copies) {
    struct peer_rpc *peer_rpc = copies->config.peer_rpc;
    peer_rpc_serve(peer_rpc, PEER_RPC_COMPARE, answer_compare, copies);
    peer_rpc_serve(peer_rpc, PEER_RPC_OFFER, answer_offer, copies);
    peer_rpc_serve(peer_rpc, PEER_RPC_CONFIRM, answer_confirm, copies);
    peer_rpc_serve(peer_rpc, PEER_RPC_PROVE, answer_prove, copies);
    peer_rpc_serve(peer_rpc, PEER_RPC_FOLLOW, copies_answer_follow, copies);
}
