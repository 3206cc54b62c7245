#include <stdlib.h>

#include "store/volume/volume_writer.h"
#include "warc/request_key.h"
#include "web/type/mime_type.h"
#include "web/url/url.h"

/* What a document without a type is, here and in the WARC record. */
#define DEFAULT_TYPE "application/octet-stream"

/*
 * The payload's digest and size; its head is read on the way. If they are known only the head is read, which
 * may reach into the body where it has no end of its own.
 */
static void writer_find_sum(struct volume_writer *writer, const struct document *document,
                            struct document_sum *ret_sum) {
    struct payload *payload = &writer->hasher.payload;
    if (document->sum == NULL) {
        document_hasher_run(&writer->hasher, document, ret_sum);
        return;
    }
    struct bytes pieces[2] = {document->head, document->body};
    struct bytes part;
    payload_start(payload, document->head.size > 0);
    for (size_t i = 0; i < 2 && !payload->is_in_body; i++) {
        payload_next(payload, &pieces[i], &part);
    }
    if (!payload->is_in_body) {
        payload_finish(payload, &part);
    }
    *ret_sum = *document->sum;
}

/* Digest, size, type and status. */
static void writer_study(struct volume_writer *writer, struct volume_plan *plan) {
    const struct document *document = plan->document;
    bool is_http = document->head.size > 0;
    struct document_sum sum;
    writer_find_sum(writer, document, &sum);
    memcpy(plan->sha256, sum.digest, sizeof plan->sha256);
    plan->payload_size = sum.size;
    volume_shorten(writer->volume, plan->sha256, plan->digest);
    plan->status = is_http ? writer->hasher.payload.head.status : 0;
    if (is_http) {
        (void)http_type(&writer->hasher.payload.head.fields, &plan->type);
    } else {
        struct bytes type = document->content_type.size > 0 ? document->content_type : BYTES(DEFAULT_TYPE);
        (void)mime_type_extract(&plan->type, type);
    }
}

/* Do the stored bytes equal the document's payload? */
static enum err writer_compare(struct volume_writer *writer, const struct volume_plan *plan,
                               bool *ret_is_equal, struct err_detail *detail) {
    struct key key = {.number = plan->number};
    memcpy(key.digest, plan->digest, sizeof key.digest);
    struct bytes stored;
    enum err err = volume_get(writer->reader, &key, &stored, detail);
    if (err != ERR_OK) {
        return err;
    }
    *ret_is_equal = document_hasher_equals(&writer->hasher, plan->document, stored);
    return ERR_OK;
}

/* Is the block that was found the document, by the rules of the mode? */
static enum err writer_is_same(struct volume_writer *writer, const struct volume_plan *plan,
                               bool *ret_is_same, struct err_detail *detail) {
    const struct block *block = &plan->look.block;
    bool is_live = block->references > 0 && block->location.segment != 0;
    bool may_be = is_live && plan->mode != STORE_FORCE_NEW && block->size == plan->payload_size;
    *ret_is_same = may_be && plan->mode == STORE_REGULAR;
    if (!may_be || plan->mode == STORE_REGULAR) {
        return ERR_OK;
    }
    enum err err = writer_compare(writer, plan, ret_is_same, detail);
    return err == ERR_CORRUPT ? ERR_OK : err; /* a damaged block is no reason to lose a new document */
}

/* The block as it is; all zero and ERR_NOT_FOUND if there is none. */
static enum err writer_look_at(struct volume *volume, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                               struct block *ret_block) {
    if (number == 0 && block_cache_find(volume->blocks, digest, ret_block)) {
        return ERR_OK;
    }
    enum err err = index_probe_block(volume->index, digest, number, ret_block);
    if (err == ERR_NOT_FOUND) {
        *ret_block = (struct block){0};
    }
    return err;
}

/*
 * Which block is it? The first live one of this digest that is the same by the rules of the mode, else the
 * first number that was never used.
 */
static enum err writer_choose_block(struct volume_writer *writer, struct volume_plan *plan,
                                    struct err_detail *detail) {
    plan->look.generation = changes_now(&writer->volume->changes);
    for (plan->number = 0; plan->number < UINT16_MAX; plan->number++) {
        enum err err = writer_look_at(writer->volume, plan->digest, plan->number, &plan->look.block);
        plan->look.is_there = err == ERR_OK;
        if (err == ERR_NOT_FOUND && plan->document->is_body_left_out) {
            return err_set(detail, err, "there is no document of this digest and size");
        }
        if (err == ERR_NOT_FOUND) {
            return ERR_OK;
        }
        if (err == ERR_OK) {
            err = writer_is_same(writer, plan, &plan->is_duplicate, detail);
        }
        if (err != ERR_OK || plan->is_duplicate) {
            return err;
        }
    }
    return err_set(detail, ERR_LIMIT, "65,535 blocks have this digest");
}

static enum err writer_check_document(const struct document *document, enum store_mode mode,
                                      struct err_detail *detail) {
    uint64_t size = document->head.size + document->body.size + document->request.size;
    if (size > VOLUME_DOCUMENT_SIZE_MAX) {
        return err_set(detail, ERR_LIMIT, "documents above %ju bytes are not stored",
                       (uintmax_t)VOLUME_DOCUMENT_SIZE_MAX);
    }
    bool is_sound = document->sum != NULL && document->body.size == 0 && mode == STORE_REGULAR;
    if (document->is_body_left_out && !is_sound) {
        return err_set(detail, ERR_INVALID, "a body is left out only in regular mode and with its digest");
    }
    if (document->is_not_modified && !document->is_body_left_out) {
        return err_set(detail, ERR_INVALID, "what was not modified has no body of its own");
    }
    return ERR_OK;
}

/* ERR_NOT_FOUND if the body is left out and it is no duplicate. */
static enum err volume_make_plan(struct volume_writer *writer, const struct document *document,
                                 enum store_mode mode, struct volume_plan *ret_plan,
                                 struct err_detail *detail) {
    enum err err = writer_check_document(document, mode, detail);
    if (err != ERR_OK) {
        return err;
    }
    *ret_plan = (struct volume_plan){.document = document, .mode = mode};
    writer_study(writer, ret_plan);
    return writer_choose_block(writer, ret_plan, detail);
}

enum err volume_plan_again(struct volume_writer *writer, const struct document *document,
                           const struct key *key, struct volume_plan *ret_plan, struct err_detail *detail) {
    enum err err = writer_check_document(document, STORE_REGULAR, detail);
    if (err != ERR_OK) {
        return err;
    }
    *ret_plan = (struct volume_plan){.document = document, .mode = STORE_REGULAR, .number = key->number};
    writer_study(writer, ret_plan);
    if (memcmp(ret_plan->digest, key->digest, sizeof key->digest) != 0) {
        return err_set(detail, ERR_MISMATCH, "the document is not the one of this digest");
    }
    struct volume_look *look = &ret_plan->look;
    look->generation = changes_now(&writer->volume->changes);
    err = index_probe_block(writer->volume->index, key->digest, key->number, &look->block);
    look->is_there = err == ERR_OK;
    if (err == ERR_NOT_FOUND || (err == ERR_OK && look->block.references <= 0)) {
        return err_set(detail, ERR_NOT_FOUND, "there is no such document");
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}

enum { TRIES_MAX = 16 };

struct volume_writer *volume_writer_new(struct volume *volume) {
    struct volume_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        return NULL;
    }
    writer->volume = volume;
    writer->reader = volume_reader_new(volume);
    canon_init(&writer->canon);
    buf_init(&writer->surt, URL_SIZE_MAX + 16);
    buf_init(&writer->request_key, REQUEST_KEY_TEXT_SIZE_MAX);
    buf_init(&writer->url, URL_SIZE_MAX + 16);
    buf_init(&writer->origin, ORIGINS_URI_SIZE_MAX);
    if (document_hasher_init(&writer->hasher) != ERR_OK || writer->reader == NULL) {
        volume_writer_free(writer);
        return NULL;
    }
    return writer;
}

void volume_writer_free(struct volume_writer *writer) {
    if (writer == NULL) {
        return;
    }
    volume_reader_free(writer->reader);
    document_hasher_done(&writer->hasher);
    canon_done(&writer->canon);
    buf_done(&writer->surt);
    buf_done(&writer->request_key);
    buf_done(&writer->url);
    buf_done(&writer->origin);
    free(writer);
}

/* An item that is not queued, filled. */
static enum err writer_fill(struct volume_writer *writer, const struct document *document,
                            enum store_mode mode, struct volume_item *item, struct err_detail *detail) {
    struct volume_plan plan;
    enum err err = volume_make_plan(writer, document, mode, &plan, detail);
    if (err == ERR_OK) {
        err = volume_encode(writer, &plan, item, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    item->look = plan.look;
    item->accepts_twin = mode == STORE_REGULAR;
    item->stored = (struct stored){
        .key = {.volume = writer->volume->config.number, .number = plan.number},
        .is_duplicate = plan.is_duplicate,
        .document_size = plan.payload_size,
    };
    memcpy(item->stored.key.digest, plan.digest, sizeof plan.digest);
    return ERR_OK;
}

/* A filled item, for the caller to queue. ERR_BUSY: something has changed meanwhile, try again. */
static enum err writer_prepare(struct volume_writer *writer, const struct document *document,
                               enum store_mode mode, struct volume_item **ret_item,
                               struct err_detail *detail) {
    enum err err = volume_refuses(writer->volume, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct volume_item *item;
    err = volume_take_item(writer->volume, &item, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = writer_fill(writer, document, mode, item, detail);
    if (err == ERR_CORRUPT && document->is_body_left_out) {
        err = ERR_NOT_FOUND; /* what it would be a duplicate of is damaged: bring the body */
    } else if (err == ERR_CORRUPT && mode != STORE_FORCE_NEW) {
        volume_free_item(writer->volume, item);
        return writer_prepare(writer, document, STORE_FORCE_NEW, ret_item,
                              detail); /* … then this one is kept */
    }
    if (err != ERR_OK) {
        volume_free_item(writer->volume, item);
        return err;
    }
    *ret_item = item;
    return ERR_OK;
}

enum err volume_put(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                    struct stored *ret_stored, struct err_detail *detail) {
    enum err err = ERR_BUSY;
    for (unsigned i = 0; i < TRIES_MAX && err == ERR_BUSY; i++) {
        struct volume_item *item = NULL;
        err = writer_prepare(writer, document, mode, &item, detail);
        if (err == ERR_BUSY) {
            continue;
        }
        if (err != ERR_OK) {
            return err;
        }
        err = volume_run_item(writer->volume, item, ret_stored);
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}

static void writer_submit(struct volume_writer *writer, struct volume_item *item, volume_done *done,
                          void *context) {
    item->done = done;
    item->context = context;
    volume_queue_item(writer->volume, item);
}

enum err volume_submit(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                       volume_done *done, void *context, struct err_detail *detail) {
    enum err err = ERR_BUSY;
    struct volume_item *item = NULL;
    for (unsigned i = 0; i < TRIES_MAX && err == ERR_BUSY; i++) {
        err = writer_prepare(writer, document, mode, &item, detail);
    }
    if (err == ERR_OK) {
        writer_submit(writer, item, done, context);
    }
    return err;
}

/* Look first, here and not in the committer: there many wait. */
static enum err writer_prepare_deletion(struct volume_writer *writer, const struct key *key,
                                        struct volume_item **ret_item, struct err_detail *detail) {
    struct volume *volume = writer->volume;
    struct volume_look look = {.generation = changes_now(&volume->changes)};
    enum err err = volume_refuses(volume, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = index_find_block(volume->index, key->digest, key->number, &look.block);
    look.is_there = err == ERR_OK;
    if (err == ERR_NOT_FOUND || (err == ERR_OK && look.block.references <= 0)) {
        return err_set(detail, ERR_NOT_FOUND, "there is no such document");
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    struct volume_item *item;
    err = volume_take_item(volume, &item, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = volume_encode_deletion(writer, key, item, detail);
    if (err != ERR_OK) {
        volume_free_item(volume, item);
        return err_set(detail, err, "%s", err_text(err));
    }
    item->look = look;
    item->accepts_twin = false;
    *ret_item = item;
    return ERR_OK;
}

enum err volume_remove(struct volume_writer *writer, const struct key *key, struct err_detail *detail) {
    struct volume_item *item = NULL;
    enum err err = writer_prepare_deletion(writer, key, &item, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = volume_run_item(writer->volume, item, NULL);
    err = err == ERR_BUSY ? ERR_NOT_FOUND : err; /* no live block of that key any more */
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}

enum err volume_submit_remove(struct volume_writer *writer, const struct key *key, volume_done *done,
                              void *context, struct err_detail *detail) {
    struct volume_item *item = NULL;
    enum err err = writer_prepare_deletion(writer, key, &item, detail);
    if (err == ERR_OK) {
        writer_submit(writer, item, done, context);
    }
    return err;
}
