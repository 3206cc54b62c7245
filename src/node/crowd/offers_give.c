/* The service: a capture that this node offers, described, and its payload in pieces; or the nodes that took
 * it. */
#include <stdlib.h>

#include "node/crowd/offers_state.h"

/*
 * ---- takers: which nodes are given a capture, and which are sent to others ----
 *
 * A node counts from its first piece on: whole while it is taking, then with what it got of it. So four nodes
 * that each take a quarter count as one, and a burst of first pieces cannot let more in than are meant to be.
 */

enum { REPEATS_MAX = 3 /* so often one node may take one capture in gives_us */ };
static const uint64_t TAKING_US = 300000;   /* between two pieces */
static const uint64_t NAMED_US = 600000000; /* after that, the taker may have it no longer */

static struct offers_taker *give_find(const struct offer *offer, const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t i = 0; offer->takers != NULL && i < offer->takers->count; i++) {
        if (memcmp(offer->takers->takers[i].key, key, PEER_KEY_SIZE) == 0) {
            return &offer->takers->takers[i];
        }
    }
    return NULL;
}

static uint64_t weight_of(const struct offer *offer) {
    return offer->sum.size > 0 ? offer->sum.size : 1;
}

/*
 * What was given counts less and less, until gives_us have passed: then one more node is let in every now and
 * then, not four at once. The takers may hand nothing on, and nobody would get it for so long.
 */
static uint64_t taken_weight(const struct offers *offers, const struct offer *offer, uint64_t now_us) {
    uint64_t gives_us = offers->config.gives_us;
    double sum = 0;
    for (size_t i = 0; offer->takers != NULL && i < offer->takers->count; i++) {
        const struct offers_taker *taker = &offer->takers->takers[i];
        uint64_t age_us = now_us - taker->since_us;
        bool is_taking = !taker->is_done && now_us - taker->last_us < TAKING_US;
        bool is_whole = taker->is_done || taker->given_size > weight_of(offer);
        double weight = (double)(is_taking || is_whole ? weight_of(offer) : taker->given_size);
        double left = age_us < gives_us ? (double)(gives_us - age_us) / (double)gives_us : 0;
        sum += is_taking ? weight : weight * left;
    }
    return (uint64_t)sum;
}

static bool offers_may_take(struct offers *offers, struct offer *offer, const uint8_t key[PEER_KEY_SIZE]) {
    uint64_t now_us = offers_now_us(offers);
    const struct offers_taker *taker = give_find(offer, key);
    bool is_recent = taker != NULL && (now_us - taker->since_us < offers->config.gives_us ||
                                       now_us - taker->last_us < TAKING_US);
    if (is_recent) {
        return taker->given_size < REPEATS_MAX * weight_of(offer);
    }
    return taken_weight(offers, offer, now_us) + weight_of(offer) <=
           offers->config.gives_max * weight_of(offer);
}

/* ---- notes ---- */

/* Nobody is to be sent to an address on a stranger's word: it must be the one that the stranger comes from.
 */
static struct address reached_at(const struct peer *from, const struct address *claimed) {
    struct address address = from->address;
    bool is_his = memcmp(claimed->ip, from->address.ip, sizeof claimed->ip) == 0 ||
                  (address_is_loopback(claimed) && address_is_loopback(&from->address));
    if (is_his) {
        return *claimed;
    }
    address.port = 0;
    return address;
}

/* A new one, if need be in place of the first. NULL: no memory. */
static struct offers_taker *give_add(struct offer *offer, const uint8_t key[PEER_KEY_SIZE]) {
    if (offer->takers == NULL && (offer->takers = calloc(1, sizeof *offer->takers)) == NULL) {
        return NULL;
    }
    struct offers_takers *takers = offer->takers;
    struct offers_taker *taker = &takers->takers[0];
    if (takers->count < OFFERS_TAKERS_MAX) {
        taker = &takers->takers[takers->count++];
    } else {
        for (size_t i = 1; i < takers->count; i++) {
            taker = takers->takers[i].since_us < taker->since_us ? &takers->takers[i] : taker;
        }
    }
    *taker = (struct offers_taker){0};
    memcpy(taker->key, key, PEER_KEY_SIZE);
    return taker;
}

static void offers_note_taken(struct offers *offers, struct offer *offer, const struct peer *from,
                              const struct address *claimed, uint64_t offset, size_t size) {
    uint64_t now_us = offers_now_us(offers);
    struct offers_taker *taker = give_find(offer, from->key);
    bool is_new = taker == NULL;
    taker = is_new ? give_add(offer, from->key) : taker;
    if (taker == NULL) {
        return;
    }
    bool is_begun_anew =
        now_us - taker->since_us >= offers->config.gives_us && now_us - taker->last_us >= TAKING_US;
    if (is_new || is_begun_anew) {
        taker->since_us = now_us;
        taker->given_size = 0;
        taker->is_done = false;
        offers_index_use(offers, offer, true);
    }
    taker->last_us = now_us;
    taker->given_size += size;
    taker->address = reached_at(from, claimed);
    offers->stat.given_size += size;
    if (offset + size == offer->sum.size && !taker->is_done) {
        taker->is_done = true;
        offer->given_count++;
        offers->stat.given_count++;
    }
}

/* ---- naming ---- */

/* Each referral begins with another one, so that not all go to the same. */
static void offers_name_takers(struct offers *offers, struct offer *offer, const uint8_t key[PEER_KEY_SIZE],
                               struct captures_answer *answer) {
    struct offers_takers *takers = offer->takers;
    uint64_t now_us = offers_now_us(offers);
    offers->stat.referred_count++;
    offers_index_use(offers, offer, true);
    *answer = (struct captures_answer){.is_referral = true};
    if (takers == NULL) {
        return;
    }
    uint32_t turn = takers->turn++;
    for (size_t pass = 0; pass < 2; pass++) { /* nodes that have it, then nodes that are taking it */
        for (size_t i = 0; i < takers->count && answer->peers_count < CAPTURES_CODE_PEERS_MAX; i++) {
            const struct offers_taker *taker = &takers->takers[(turn + i) % takers->count];
            bool is_named = taker->is_done == (pass == 0) && taker->address.port != 0 &&
                            now_us - taker->last_us < NAMED_US && memcmp(taker->key, key, PEER_KEY_SIZE) != 0;
            if (is_named) {
                struct peer *peer = &answer->peers[answer->peers_count++];
                peer->address = taker->address;
                memcpy(peer->key, taker->key, PEER_KEY_SIZE);
            }
        }
    }
}

/* Where the file is damaged, it is not offered any more. */
void offers_forget(struct offers *offers, const struct ringkey *key) {
    pthread_mutex_lock(&offers->lock);
    struct offer *offer = offers_index_find(offers, key);
    if (offer != NULL) {
        offers_index_remove(offers, offer);
    }
    pthread_mutex_unlock(&offers->lock);
    offers_file_remove(offers->directory, key);
}

/* The payload is checked once, and again where its file has changed. */
static enum err give_check(struct offers *offers, const struct offers_file *file) {
    struct document_sum sum = {0};
    bool is_checked = false;
    pthread_mutex_lock(&offers->lock);
    struct offer *offer = offers_index_find(offers, &file->head.key);
    if (offer != NULL) {
        is_checked = offer->is_checked && offer->changed_at_ns == file->changed_at_ns;
        sum = offer->sum;
    }
    pthread_mutex_unlock(&offers->lock);
    if (offer == NULL) {
        return ERR_NOT_FOUND;
    }
    if (is_checked) {
        return ERR_OK;
    }
    enum err err = sum.size == file->head.payload_size
                       ? offers_file_check(file, &offers->give_sha256, sum.digest)
                       : ERR_CORRUPT;
    pthread_mutex_lock(&offers->lock);
    offer = err == ERR_OK ? offers_index_find(offers, &file->head.key) : NULL;
    if (offer != NULL) {
        offer->is_checked = true;
        offer->changed_at_ns = file->changed_at_ns;
    }
    pthread_mutex_unlock(&offers->lock);
    return err;
}

/* The part that was asked for; with a description in front, as much of it as fits. */
static enum err cut_piece(struct offers *offers, const struct offers_file *file,
                          const struct captures_question *question, struct captures_answer *answer,
                          size_t *ret_size) {
    size_t room = PEER_RPC_PIECE_SIZE_MAX - answer->description.size;
    size_t size = question->size_max < room ? question->size_max : room;
    uint64_t left = question->offset < answer->size ? answer->size - question->offset : 0;
    size = left < size ? (size_t)left : size;
    *ret_size = size;
    scratch_clear(&offers->give_packed);
    buf_clear(&offers->give_piece);
    if (size == 0) {
        return ERR_OK;
    }
    enum err err = buf_reserve(&offers->give_piece, size);
    if (err == ERR_OK) {
        err = offers_file_read(file, question->offset, offers->give_piece.data, size);
    }
    if (err != ERR_OK) {
        return err;
    }
    offers->give_piece.size = size;
    err = pack_payload_put(&offers->give_pack_payload, buf_bytes(&offers->give_piece), &offers->give_packed,
                           &answer->is_packed);
    return err == ERR_OK ? scratch_bytes(&offers->give_packed, &answer->piece) : err;
}

static enum err give_give(struct offers *offers, const struct captures_question *question, struct buf *out,
                          size_t *ret_size) {
    struct offers_file file;
    enum err err = offers_file_open(&file, offers->directory, &question->key, &offers->give_sha256,
                                    &offers->give_text, offers->config.object_size_max);
    if (err != ERR_OK) {
        return err;
    }
    struct captures_answer answer = {.is_there = true, .size = file.head.payload_size};
    if (question->wants_description) {
        answer.description = file.head.description;
    }
    err = give_check(offers, &file);
    if (err == ERR_OK) {
        err = cut_piece(offers, &file, question, &answer, ret_size);
    }
    offers_file_close(&file);
    return err == ERR_OK ? captures_code_put_answer(out, &answer) : err;
}

/* Is it here, and may the peer have it? If not, *ret_answer says so. */
static bool is_for_him(struct offers *offers, const struct ringkey *key, const struct peer *from,
                       struct captures_answer *ret_answer) {
    *ret_answer = (struct captures_answer){0};
    if (offers->config.is_closed) {
        return false;
    }
    pthread_mutex_lock(&offers->lock);
    struct offer *offer = offers_index_find(offers, key);
    bool is_his = offer != NULL && offers_may_take(offers, offer, from->key);
    if (offer != NULL && !is_his) {
        offers_name_takers(offers, offer, from->key, ret_answer);
    }
    pthread_mutex_unlock(&offers->lock);
    return is_his;
}

/* It counts as what readers ask; a further piece is not refused. */
static enum err begin_read(struct offers *offers, const struct peer *from,
                           const struct captures_question *question, struct err_detail *detail) {
    enum peer_rpc_read read = question->wants_description ? PEER_RPC_READ_CAPTURE : PEER_RPC_READ_ON;
    return offers->config.peer_rpc != NULL ? peer_rpc_begin_read(offers->config.peer_rpc, from, read, detail)
                                           : ERR_OK;
}

static void note_given(struct offers *offers, const struct peer *from,
                       const struct captures_question *question, size_t size) {
    pthread_mutex_lock(&offers->lock);
    struct offer *offer = offers_index_find(offers, &question->key);
    if (offer != NULL && question->size_max > 0) {
        offers_note_taken(offers, offer, from, &question->address, question->offset, size);
    }
    pthread_mutex_unlock(&offers->lock);
}

enum err offers_give(void *context, const struct peer *from, struct bytes in, struct buf *out,
                     struct err_detail *detail) {
    struct offers *offers = context;
    struct captures_question question;
    struct captures_answer answer;
    size_t size = 0;
    enum err err = captures_code_read_question(in, &question, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (!is_for_him(offers, &question.key, from, &answer)) {
        return captures_code_put_answer(out, &answer);
    }
    err = begin_read(offers, from, &question, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = give_give(offers, &question, out, &size);
    if (err == ERR_CORRUPT || err == ERR_NOT_FOUND) {
        offers_forget(offers, &question.key);
        return captures_code_put_answer(out, &answer);
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "an offer cannot be read: %s", err_text(err));
    }
    note_given(offers, from, &question, size);
    return ERR_OK;
}
