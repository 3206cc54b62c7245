#include "store/volume/volume_writer.h"

/* What a document without a type is, here and in the WARC record. */
#define DEFAULT_TYPE "application/octet-stream"

/* The payload's digest and size, from its bytes. Reads the head on the way. */
static void compute_sum(struct volume_writer *writer, struct volume_plan *plan) {
    struct bytes pieces[2] = {plan->document->head, plan->document->body};
    struct bytes part;
    sha256_start(&writer->sha256);
    for (size_t i = 0; i < 2; i++) {
        while (payload_next(&writer->payload, &pieces[i], &part)) {
            sha256_update(&writer->sha256, part);
            plan->payload_size += part.size;
        }
    }
    if (payload_finish(&writer->payload, &part)) {
        sha256_update(&writer->sha256, part);
        plan->payload_size += part.size;
    }
    sha256_finish(&writer->sha256, plan->sha256);
}

/* They are known: only the head is read, which may reach into the body where it has no end of its own. */
static void take_sum(struct volume_writer *writer, struct volume_plan *plan) {
    struct bytes pieces[2] = {plan->document->head, plan->document->body};
    struct bytes part;
    for (size_t i = 0; i < 2 && !writer->payload.is_in_body; i++) {
        payload_next(&writer->payload, &pieces[i], &part);
    }
    if (!writer->payload.is_in_body) {
        payload_finish(&writer->payload, &part);
    }
    memcpy(plan->sha256, plan->document->sum->digest, sizeof plan->sha256);
    plan->payload_size = plan->document->sum->size;
}

/* Signature, size, type and status. */
static void study(struct volume_writer *writer, struct volume_plan *plan) {
    const struct document *document = plan->document;
    bool is_http = document->head.size > 0;
    payload_start(&writer->payload, is_http);
    if (document->sum != NULL) {
        take_sum(writer, plan);
    } else {
        compute_sum(writer, plan);
    }
    volume_shorten(writer->volume, plan->sha256, plan->digest);
    plan->status = is_http ? writer->payload.head.status : 0;
    struct bytes plain_type = document->content_type.size > 0 ? document->content_type : BYTES(DEFAULT_TYPE);
    plan->mime =
        http_mime(is_http ? fields_get(&writer->payload.head.fields, BYTES("Content-Type")) : plain_type);
}

/* Do the stored bytes equal the document's payload? */
static enum err compare(struct volume_writer *writer, const struct volume_plan *plan, bool *ret_is_equal,
                        struct err_detail *detail) {
    struct key key = {.number = plan->number};
    memcpy(key.digest, plan->digest, sizeof key.digest);
    struct bytes stored;
    enum err err = volume_get(writer->reader, &key, &stored, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes pieces[2] = {plan->document->head, plan->document->body};
    struct bytes part;
    bool is_equal = true;
    payload_start(&writer->payload, plan->document->head.size > 0);
    for (size_t i = 0; i < 2; i++) {
        while (payload_next(&writer->payload, &pieces[i], &part)) {
            is_equal = is_equal && bytes_starts_with(stored, part);
            stored = is_equal ? bytes_skip(stored, part.size) : stored;
        }
    }
    if (payload_finish(&writer->payload, &part)) {
        is_equal = is_equal && bytes_equal(stored, part);
        stored = is_equal ? bytes_skip(stored, part.size) : stored;
    }
    *ret_is_equal = is_equal && stored.size == 0;
    return ERR_OK;
}

/* Is the block that was found the document, by the rules of the mode? */
static enum err is_same(struct volume_writer *writer, const struct volume_plan *plan, bool *ret_is_same,
                        struct err_detail *detail) {
    const struct block *block = &plan->look.block;
    bool is_live = block->references > 0 && block->location.segment != 0;
    bool may_be = is_live && plan->mode != STORE_FORCE_NEW && block->size == plan->payload_size;
    *ret_is_same = may_be && plan->mode == STORE_REGULAR;
    if (!may_be || plan->mode == STORE_REGULAR) {
        return ERR_OK;
    }
    enum err err = compare(writer, plan, ret_is_same, detail);
    return err == ERR_CORRUPT ? ERR_OK : err; /* a damaged block is no reason to lose a new document */
}

/* The block as it is; all zero and ERR_NOT_FOUND where there is none. */
static enum err look_at(struct volume *volume, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
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
static enum err choose_block(struct volume_writer *writer, struct volume_plan *plan,
                             struct err_detail *detail) {
    plan->look.generation = changes_now(&writer->volume->changes);
    for (plan->number = 0; plan->number < UINT16_MAX; plan->number++) {
        enum err err = look_at(writer->volume, plan->digest, plan->number, &plan->look.block);
        plan->look.is_there = err == ERR_OK;
        if (err == ERR_NOT_FOUND && plan->document->is_body_left_out) {
            return err_set(detail, err, "there is no document of this digest and size");
        }
        if (err == ERR_NOT_FOUND) {
            return ERR_OK;
        }
        if (err == ERR_OK) {
            err = is_same(writer, plan, &plan->is_duplicate, detail);
        }
        if (err != ERR_OK || plan->is_duplicate) {
            return err;
        }
    }
    return err_set(detail, ERR_LIMIT, "65,535 blocks have this digest");
}

static enum err check_document(const struct document *document, enum store_mode mode,
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

enum err volume_make_plan(struct volume_writer *writer, const struct document *document, enum store_mode mode,
                          struct volume_plan *ret_plan, struct err_detail *detail) {
    enum err err = check_document(document, mode, detail);
    if (err != ERR_OK) {
        return err;
    }
    *ret_plan = (struct volume_plan){.document = document, .mode = mode};
    study(writer, ret_plan);
    return choose_block(writer, ret_plan, detail);
}

enum err volume_plan_again(struct volume_writer *writer, const struct document *document,
                           const struct key *key, struct volume_plan *ret_plan, struct err_detail *detail) {
    enum err err = check_document(document, STORE_REGULAR, detail);
    if (err != ERR_OK) {
        return err;
    }
    *ret_plan = (struct volume_plan){.document = document, .mode = STORE_REGULAR, .number = key->number};
    study(writer, ret_plan);
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
