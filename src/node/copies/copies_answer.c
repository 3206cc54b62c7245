/* Answers to other nodes, on the thread of peer_rpc. */
#include "node/copies/copies_state.h"
#include "protocol/copies/reconcile_message.h"

static enum err answer_compare(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    struct copies *copies = context;
    struct ring_id arc_from;
    struct ring_id arc_to;
    struct bytes said = {0};
    const char *sentence = NULL;
    bool is_equal = false;
    enum err err = buf_reserve(answer, RECONCILE_MESSAGE_SIZE_MAX);
    if (err != ERR_OK) {
        return err;
    }
    pthread_mutex_lock(&copies->keys_lock);
    struct ringkey_set set = keyset_set(copies->keyset);
    err =
        replicator_answer_comparison(&set, question, answer->data + answer->size, RECONCILE_MESSAGE_SIZE_MAX,
                                     &arc_from, &arc_to, &is_equal, &said, &sentence, detail);
    pthread_mutex_unlock(&copies->keys_lock);
    if (sentence != NULL) {
        copies_blame(copies, from, sentence);
    }
    if (err != ERR_OK) {
        return err;
    }
    answer->size += said.size;
    pthread_mutex_lock(&copies->lock);
    replicator_hear_comparison(copies->replicator, from, arc_from, arc_to, is_equal, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return ERR_OK;
}

static enum err answer_put_bits(struct buf *answer, const uint8_t *values, size_t count, unsigned width) {
    struct wire_writer writer;
    enum err err = buf_reserve(answer, count);
    if (err == ERR_OK) {
        wire_writer_init(&writer, answer->data + answer->size, count);
        copies_put_bits(&writer, values, count, width);
        answer->size += writer.size;
    }
    return err;
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
    if (keys.count > 0 && copies_is_full(copies)) {
        pthread_mutex_lock(&copies->lock);
        replicator_refuse_offer(copies->replicator, from, &keys);
        pthread_mutex_unlock(&copies->lock);
        return err_set(detail, ERR_NO_SPACE, "the disk is full");
    }
    for (size_t i = 0; i < keys.count && err == ERR_OK; i++) {
        struct ringkey key = copies_keys_at(&keys, i);
        err = replicator_judge(&copies->world, &key, &wishes[i]);
    }
    if (err != ERR_OK) {
        return err;
    }
    pthread_mutex_lock(&copies->lock);
    replicator_hear_offer(copies->replicator, from, &keys, wishes, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    copies_wake(copies);
    return answer_put_bits(answer, wishes, keys.count, 2);
}

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
    for (size_t i = 0; i < keys.count; i++) {
        struct ringkey key = copies_keys_at(&keys, i);
        err = copies->world.find_key(copies->world.disk, &key);
        if (err != ERR_OK && err != ERR_NOT_FOUND) {
            return err;
        }
        values[i] = err == ERR_OK;
    }
    return answer_put_bits(answer, values, keys.count, 1);
}

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

static enum err answer_follow(void *context, const struct peer *from, struct bytes question,
                              struct buf *answer, struct err_detail *detail) {
    struct copies *copies = context;
    (void)answer;
    if (question.size > 0) {
        copies_blame(copies, from, "wants to follow with bytes left over");
        return err_set(detail, ERR_INVALID, "bytes left over");
    }
    pthread_mutex_lock(&copies->lock);
    bool is_added = replicator_hear_follower(copies->replicator, from, copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return is_added ? ERR_OK : err_set(detail, ERR_BUSY, "too many follow this node already");
}

void copies_serve(struct copies *copies) {
    struct peer_rpc *peer_rpc = copies->config.peer_rpc;
    peer_rpc_serve(peer_rpc, PEER_RPC_COMPARE, answer_compare, copies);
    peer_rpc_serve(peer_rpc, PEER_RPC_OFFER, answer_offer, copies);
    peer_rpc_serve(peer_rpc, PEER_RPC_CONFIRM, answer_confirm, copies);
    peer_rpc_serve(peer_rpc, PEER_RPC_PROVE, answer_prove, copies);
    peer_rpc_serve(peer_rpc, PEER_RPC_FOLLOW, answer_follow, copies);
}
