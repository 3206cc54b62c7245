#include "store/ledger.h"

/* As in the index: signature, then number. */
struct block_key {
    uint8_t bytes[KEY_SIGNATURE_SIZE + 2];
};

static struct block_key block_key(const uint8_t signature[KEY_SIGNATURE_SIZE], uint16_t number) {
    struct block_key key;
    memcpy(key.bytes, signature, KEY_SIGNATURE_SIZE);
    key.bytes[KEY_SIGNATURE_SIZE] = (uint8_t)(number >> 8);
    key.bytes[KEY_SIGNATURE_SIZE + 1] = (uint8_t)number;
    return key;
}

enum err ledger_init(struct ledger *ledger, struct index *index) {
    *ledger = (struct ledger){.index = index, .batch = index_batch_new(index)};
    map_init(&ledger->blocks, sizeof(struct block_key), sizeof(struct block), LEDGER_CHANGES_MAX, 1);
    map_init(&ledger->segments, sizeof(uint32_t), sizeof(struct index_segment), LEDGER_CHANGES_MAX, 1);
    return ledger->batch == NULL ? ERR_MEMORY : ERR_OK;
}

void ledger_done(struct ledger *ledger) {
    map_done(&ledger->blocks);
    map_done(&ledger->segments);
    if (ledger->batch != NULL) {
        index_batch_free(ledger->batch);
        ledger->batch = NULL;
    }
}

bool ledger_find_change(const struct ledger *ledger, const uint8_t signature[KEY_SIGNATURE_SIZE],
                        uint16_t number, struct block *ret_block) {
    struct block_key key = block_key(signature, number);
    const struct block *changed = map_get(&ledger->blocks, bytes_of(key.bytes, sizeof key.bytes));
    if (changed != NULL) {
        *ret_block = *changed;
    }
    return changed != NULL;
}

enum err ledger_find(const struct ledger *ledger, const uint8_t signature[KEY_SIGNATURE_SIZE],
                     uint16_t number, struct block *ret_block) {
    return ledger_find_change(ledger, signature, number, ret_block)
               ? ERR_OK
               : index_find_block(ledger->index, signature, number, ret_block);
}

/* The segment's books, open for change. NULL and *ret_err where that fails. */
static struct index_segment *open_segment(struct ledger *ledger, uint32_t number, enum err *ret_err) {
    struct bytes key = bytes_of(&number, sizeof number);
    struct index_segment *segment = map_get(&ledger->segments, key);
    if (segment != NULL) {
        return segment;
    }
    struct index_segment found = {0};
    enum err err = index_find_segment(ledger->index, number, &found);
    if (err == ERR_OK || err == ERR_NOT_FOUND) {
        err = map_reserve(&ledger->segments, ledger->segments.count + 1);
    }
    if (err != ERR_OK) {
        *ret_err = err;
        return NULL;
    }
    segment = map_put(&ledger->segments, key);
    *segment = found;
    return segment;
}

static enum err count_record(struct ledger *ledger, const struct location *location) {
    enum err err = ERR_OK;
    struct index_segment *segment = open_segment(ledger, location->segment, &err);
    if (segment == NULL) {
        return err;
    }
    uint64_t end = location->offset + location->length;
    segment->records_count++;
    segment->size = segment->size > end ? segment->size : end;
    return ERR_OK;
}

static enum err count_dead(struct ledger *ledger, const struct location *location) {
    enum err err = ERR_OK;
    struct index_segment *segment = open_segment(ledger, location->segment, &err);
    if (segment == NULL) {
        return err;
    }
    segment->dead_size += location->length;
    return ERR_OK;
}

enum err ledger_set_block(struct ledger *ledger, const uint8_t signature[KEY_SIGNATURE_SIZE], uint16_t number,
                          const struct block *block) {
    struct block_key key = block_key(signature, number);
    enum err err = map_reserve(&ledger->blocks, ledger->blocks.count + 1);
    if (err == ERR_OK) {
        *(struct block *)map_put(&ledger->blocks, bytes_of(key.bytes, sizeof key.bytes)) = *block;
    }
    return err;
}

/* What the entry does to its block. */
static enum err change_block(struct ledger *ledger, const struct ledger_entry *entry, struct block block) {
    bool was_live = block.references > 0;
    block.references += entry->kind == LEDGER_DELETION ? -1 : 1;
    block.records_count += entry->kind == LEDGER_DELETION ? 0 : 1;
    struct location replaced = {0};
    if (entry->kind == LEDGER_ORIGINAL) {
        replaced =
            block.location; /* two writers brought the same document at once: the later record counts */
        block.location = entry->location;
        block.size = entry->size;
        block.origin_time_us = entry->time_us;
        block.origin_uri_hash = entry->uri_hash;
    }
    enum err err = ledger_set_block(ledger, entry->signature, entry->number, &block);
    if (err != ERR_OK) {
        return err;
    }
    if (replaced.segment != 0) {
        return count_dead(ledger, &replaced);
    }
    bool is_dead_now = was_live && block.references <= 0 && block.location.segment != 0;
    return is_dead_now ? count_dead(ledger, &block.location) : ERR_OK;
}

struct capture ledger_capture(const struct ledger_entry *entry) {
    struct capture capture = {
        .surt = entry->surt,
        .time_us = entry->time_us,
        .location = entry->location,
        .url = entry->url,
        .mime = entry->mime,
        .status = entry->status,
        .flags = entry->flags,
        .block_number = entry->number,
    };
    memcpy(capture.signature, entry->signature, sizeof capture.signature);
    return capture;
}

static void put_capture(struct ledger *ledger, const struct ledger_entry *entry) {
    struct capture capture = ledger_capture(entry);
    if (index_can_hold(&capture)) { /* else it is in the segments and found by its content key alone */
        index_batch_put_capture(ledger->batch, &capture);
    }
}

enum err ledger_apply(struct ledger *ledger, const struct ledger_entry *entry) {
    struct block before = {0};
    if (entry->kind != LEDGER_OTHER) {
        enum err err = ledger_find(ledger, entry->signature, entry->number, &before);
        if (err != ERR_OK && err != ERR_NOT_FOUND) {
            return err;
        }
    }
    return ledger_apply_to(ledger, entry, &before);
}

enum err ledger_apply_to(struct ledger *ledger, const struct ledger_entry *entry,
                         const struct block *before) {
    enum err err = count_record(ledger, &entry->location);
    if (err != ERR_OK || entry->kind == LEDGER_OTHER) {
        return err;
    }
    err = change_block(ledger, entry, *before);
    if (err == ERR_OK && entry->surt.size > 0 && entry->kind != LEDGER_DELETION) {
        put_capture(ledger, entry);
    }
    return err;
}

enum err ledger_commit(struct ledger *ledger, const struct index_position *position,
                       struct err_detail *detail) {
    struct bytes key;
    void *value;
    size_t cursor = 0;
    while (map_next(&ledger->blocks, &cursor, &key, &value)) {
        uint16_t number = (uint16_t)(key.data[KEY_SIGNATURE_SIZE] << 8 | key.data[KEY_SIGNATURE_SIZE + 1]);
        index_batch_put_block(ledger->batch, key.data, number, value);
    }
    cursor = 0;
    while (map_next(&ledger->segments, &cursor, &key, &value)) {
        uint32_t number;
        memcpy(&number, key.data, sizeof number);
        index_batch_put_segment(ledger->batch, number, value);
    }
    index_batch_set_position(ledger->batch, position);
    enum err err = index_commit(ledger->index, ledger->batch, detail);
    ledger_abort(ledger); /* nothing is left of it, whether it worked or not */
    return err;
}

void ledger_abort(struct ledger *ledger) {
    index_batch_clear(ledger->batch);
    if (ledger->blocks.count > LEDGER_CHANGES_FULL) {
        map_done(&ledger->blocks); /* the memory of one compaction is not kept for ever */
    }
    map_clear(&ledger->blocks);
    map_clear(&ledger->segments);
}
