#include <stdlib.h>

#include "store/backend/backend_local.h"
#include "store/index/index_code.h"
#include "store/instance/instance_state.h"

/* How a question to a volume ended: one that did not answer is remembered. */
static enum err instance_end_read(struct instance_session *session, size_t index, enum err err,
                                  struct err_detail *detail) {
    if (instance_is_trouble(err)) {
        instance_miss(session, index, NULL);
    }
    return instance_note(session->instance, index, err, detail);
}

enum err instance_get(struct instance_session *session, const struct key *key, struct bytes *ret_document,
                      struct err_detail *detail) {
    struct backend_session *backend;
    size_t index;
    enum err err = instance_reach_volume(session, key->volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend->backend->table->get(backend, key, ret_document, detail);
    return instance_end_read(session, index, err, detail);
}

enum err instance_get_record(struct instance_session *session, uint16_t volume,
                             const struct location *location, struct bytes *ret_record,
                             struct err_detail *detail) {
    struct backend_session *backend;
    size_t index;
    enum err err = instance_reach_volume(session, volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (session->is_brief && backend->backend->table->is_far) {
        return ERR_LIMIT;
    }
    backend->is_brief = session->is_brief;
    err = backend->backend->table->get_record(backend, location, ret_record, detail);
    return instance_end_read(session, index, err, detail);
}

enum err instance_get_request(struct instance_session *session, uint16_t volume,
                              const struct location *location, struct bytes *ret_request,
                              struct err_detail *detail) {
    struct backend_session *backend;
    size_t index;
    enum err err = instance_reach_volume(session, volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend->backend->table->get_request(backend, location, ret_request, detail);
    return instance_end_read(session, index, err, detail);
}

/* ---- blocks ---- */

/* With references, on this volume; also one whose document is elsewhere. */
static enum err instance_find_on(struct instance_session *session, size_t index, const struct key *key,
                                 struct block *ret_block, struct err_detail *detail) {
    struct backend_session *backend;
    enum err err = instance_reach(session, index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend->backend->table->find_block(backend, key->digest, key->number, ret_block, detail);
    return instance_end_read(session, index, err, detail);
}

enum err instance_find_block(struct instance_session *session, const struct key *key, struct block *ret_block,
                             struct err_detail *detail) {
    struct block block;
    size_t index = instance_find_slot(session, key->volume);
    if (index == session->slots_count) {
        return err_set(detail, ERR_NOT_FOUND, "there is no volume %u", key->volume);
    }
    enum err err = instance_find_on(session, index, key, &block, detail);
    if (err == ERR_OK && block.location.segment == 0) {
        return ERR_NOT_FOUND;
    }
    if (err == ERR_OK) {
        *ret_block = block;
    }
    return err;
}

/* Documents of a mirrored volume are looked for in it and its like, those of others never in a mirrored
 * volume. */
static bool instance_is_akin(const struct instance *instance, uint16_t number, uint16_t other) {
    if (!instance_is_mirrored(number) || !instance_is_mirrored(other)) {
        return !instance_is_mirrored(number) && !instance_is_mirrored(other);
    }
    return strcmp(instance_mirrored_origin(instance, number), instance_mirrored_origin(instance, other)) == 0;
}

/*
 * On any volume but the one to leave out, of the kind of key->volume. That some are down is an error only
 * if no other has it.
 */
static enum err instance_find_elsewhere(struct instance_session *session, size_t left_out_index,
                                        struct key *key, struct block *ret_block, struct err_detail *detail) {
    const struct instance *instance = session->instance;
    enum err outcome = ERR_NOT_FOUND;
    for (size_t i = 0; i < session->slots_count; i++) {
        struct block block;
        if (i == left_out_index || !instance_reads(session, i) ||
            !instance_is_akin(instance, key->volume, instance->slots[i].config->number)) {
            continue;
        }
        enum err err = instance_find_on(session, i, key, &block, detail);
        if (err == ERR_OK && block.location.segment != 0) {
            key->volume = instance->slots[i].config->number;
            *ret_block = block;
            return ERR_OK;
        }
        outcome = err == ERR_OK || err == ERR_NOT_FOUND ? outcome : err;
    }
    return outcome;
}

enum err instance_find_digest(struct instance_session *session, const uint8_t digest[KEY_DIGEST_SIZE],
                              uint16_t number, struct key *ret_key, struct block *ret_block,
                              struct err_detail *detail) {
    struct key key = {.number = number};
    memcpy(key.digest, digest, sizeof key.digest);
    enum err err = instance_find_elsewhere(session, SIZE_MAX, &key, ret_block, detail);
    if (err == ERR_OK) {
        *ret_key = key;
    }
    return err;
}

enum err instance_locate(struct instance_session *session, const struct capture *capture, struct key *ret_key,
                         struct block *ret_block, struct err_detail *detail) {
    struct key key = {.volume = capture->volume, .number = capture->block_number};
    struct block block;
    size_t index = instance_find_slot(session, capture->volume);
    ASSERT(index < session->slots_count); /* captures come from here */
    memcpy(key.digest, capture->digest, sizeof key.digest);
    enum err err = instance_find_on(session, index, &key, &block, detail);
    if (err == ERR_OK && block.location.segment == 0) {
        err = instance_find_elsewhere(session, index, &key, &block, detail);
    }
    if (err == ERR_OK) {
        *ret_key = key;
        *ret_block = block;
    }
    return err;
}

/* A volume server does not say. */
static bool instance_may_have_removed(const struct instance *instance) {
    for (size_t i = 0; i < instance->slots_count; i++) {
        const struct instance_slot *slot = &instance->slots[i];
        bool is_local = slot->backend != NULL && slot->config->url == NULL;
        if (!is_local || index_has_dead(volume_index(backend_local_volume(slot->backend)))) {
            return true;
        }
    }
    return false;
}

enum err instance_check(struct instance_session *session, const struct capture *capture) {
    if (!instance_is_mirrored(capture->volume) && !instance_may_have_removed(session->instance)) {
        return ERR_OK;
    }
    struct block block;
    struct key key;
    enum err err = instance_locate(session, capture, &key, &block, NULL);
    return err == ERR_UNREACHABLE || err == ERR_TIMEOUT || err == ERR_CLOSED ? ERR_OK : err;
}

/* ---- all documents ---- */

struct instance_blocks {
    struct instance_session *session;
    size_t index; /* of the volume that is walked */
    struct backend_cursor *cursor;
    uint8_t from[INDEX_CODE_BLOCK_KEY_SIZE_MAX + 1]; /* where the walk over this volume begins */
    size_t from_size;
};

enum err instance_blocks_open(struct instance_session *session, const struct key *behind,
                              struct instance_blocks **ret_blocks, struct err_detail *detail) {
    struct instance_blocks *blocks = calloc(1, sizeof *blocks);
    if (blocks == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    blocks->session = session;
    if (behind != NULL) {
        blocks->index = instance_find_volume(session->instance, behind->volume);
        blocks->from_size =
            index_code_block_key(blocks->from, behind->digest, behind->number).size + 1; /* a zero */
    }
    *ret_blocks = blocks;
    return ERR_OK;
}

static void instance_close_cursor(struct instance_blocks *blocks) {
    if (blocks->cursor != NULL) {
        blocks->cursor->session->backend->table->cursor_close(blocks->cursor);
        blocks->cursor = NULL;
    }
}

/* The next of the volume that is walked. ERR_NOT_FOUND at its end. */
static enum err instance_step(struct instance_blocks *blocks, struct key *ret_key, struct block *ret_block,
                              struct err_detail *detail) {
    struct backend_session *backend;
    enum err err = instance_reach(blocks->session, blocks->index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    const struct backend_table *table = backend->backend->table;
    if (blocks->cursor == NULL) {
        err = table->blocks_open(backend, bytes_of(blocks->from, blocks->from_size), &blocks->cursor, detail);
    }
    struct block block = {0};
    while (err == ERR_OK && block.location.segment == 0) {
        err = table->blocks_next(blocks->cursor, ret_key, &block, detail);
    }
    if (err == ERR_OK) {
        *ret_block = block;
    }
    return instance_end_read(blocks->session, blocks->index, err, detail);
}

enum err instance_blocks_next(struct instance_blocks *blocks, struct key *ret_key, struct block *ret_block,
                              struct err_detail *detail) {
    while (blocks->index < blocks->session->instance->slots_count) {
        enum err err = instance_step(blocks, ret_key, ret_block, detail);
        if (err != ERR_NOT_FOUND && !instance_is_trouble(err)) {
            return err;
        }
        instance_close_cursor(blocks);
        blocks->from_size = 0;
        blocks->index++;
    }
    return ERR_NOT_FOUND;
}

void instance_blocks_close(struct instance_blocks *blocks) {
    instance_close_cursor(blocks);
    free(blocks);
}
