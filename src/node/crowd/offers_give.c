/* The service: a capture that this node offers, described, and its payload in pieces; or who took it. */
#include "node/crowd/offers_state.h"

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
static enum err check(struct offers *offers, const struct offers_file *file) {
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

static enum err give(struct offers *offers, const struct captures_question *question, struct buf *out,
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
    err = check(offers, &file);
    if (err == ERR_OK) {
        err = cut_piece(offers, &file, question, &answer, ret_size);
    }
    offers_file_close(&file);
    return err == ERR_OK ? captures_code_put_answer(out, &answer) : err;
}

/* Is it here, and may he have it? If not, *ret_answer says so. */
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
    err = give(offers, &question, out, &size);
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
