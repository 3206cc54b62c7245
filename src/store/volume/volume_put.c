#include <stdlib.h>

#include "store/volume/volume_writer.h"
#include "web/url/url.h"

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
    buf_init(&writer->origin, ORIGINS_URI_SIZE_MAX);
    if (payload_init(&writer->payload) != ERR_OK || sha256_init(&writer->sha256) != ERR_OK ||
        writer->reader == NULL) {
        volume_writer_free(writer);
        return NULL;
    }
    return writer;
}

void volume_writer_free(struct volume_writer *writer) {
    if (writer->reader != NULL) {
        volume_reader_free(writer->reader);
    }
    payload_done(&writer->payload);
    sha256_done(&writer->sha256);
    canon_done(&writer->canon);
    buf_done(&writer->surt);
    buf_done(&writer->origin);
    free(writer);
}

/* An item that is not queued, filled. */
static enum err fill(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                     struct volume_item *item, struct err_detail *detail) {
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
static enum err prepare(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                        struct volume_item **ret_item, struct err_detail *detail) {
    struct volume_item *item = volume_take_item(writer->volume);
    enum err err = fill(writer, document, mode, item, detail);
    if (err == ERR_CORRUPT && document->is_body_left_out) {
        err = ERR_NOT_FOUND; /* what it would be a duplicate of is damaged: bring the body */
    } else if (err == ERR_CORRUPT && mode != STORE_FORCE_NEW) {
        volume_free_item(writer->volume, item);
        return prepare(writer, document, STORE_FORCE_NEW, ret_item, detail); /* … then this one is kept */
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
        err = prepare(writer, document, mode, &item, detail);
        if (err == ERR_BUSY) {
            continue;
        }
        if (err != ERR_OK) {
            return err;
        }
        volume_queue_item(writer->volume, item);
        volume_await_item(item);
        err = item->err;
        *ret_stored = err == ERR_OK ? item->stored : *ret_stored;
        volume_free_item(writer->volume, item);
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}

static void submit(struct volume_writer *writer, struct volume_item *item, volume_done *done, void *context) {
    item->done = done;
    item->context = context;
    volume_queue_item(writer->volume, item);
}

enum err volume_submit(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                       volume_done *done, void *context, struct err_detail *detail) {
    enum err err = ERR_BUSY;
    struct volume_item *item = NULL;
    for (unsigned i = 0; i < TRIES_MAX && err == ERR_BUSY; i++) {
        err = prepare(writer, document, mode, &item, detail);
    }
    if (err == ERR_OK) {
        submit(writer, item, done, context);
    }
    return err;
}

/* Look first, here and not in the committer: there many wait. */
static enum err prepare_deletion(struct volume_writer *writer, const struct key *key,
                                 struct volume_item **ret_item, struct err_detail *detail) {
    struct volume *volume = writer->volume;
    struct volume_look look = {.generation = changes_now(&volume->changes)};
    enum err err = index_find_block(volume->index, key->digest, key->number, &look.block);
    look.is_there = err == ERR_OK;
    if (err == ERR_NOT_FOUND || (err == ERR_OK && look.block.references <= 0)) {
        return err_set(detail, ERR_NOT_FOUND, "there is no such document");
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    struct volume_item *item = volume_take_item(volume);
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
    enum err err = prepare_deletion(writer, key, &item, detail);
    if (err != ERR_OK) {
        return err;
    }
    volume_queue_item(writer->volume, item);
    volume_await_item(item);
    err = item->err == ERR_BUSY ? ERR_NOT_FOUND : item->err; /* no live block of that key any more */
    volume_free_item(writer->volume, item);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}

enum err volume_submit_remove(struct volume_writer *writer, const struct key *key, volume_done *done,
                              void *context, struct err_detail *detail) {
    struct volume_item *item = NULL;
    enum err err = prepare_deletion(writer, key, &item, detail);
    if (err == ERR_OK) {
        submit(writer, item, done, context);
    }
    return err;
}
