#include "store/index/ledger.h"

#include "store/index/index_batch.h"
#include "store/index/index_cursor.h"

/* As in the index: digest, then number. */
struct ledger_block_key {
    uint8_t bytes[KEY_DIGEST_SIZE + 2];
};

static struct ledger_block_key ledger_block_key(const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number) {
    struct ledger_block_key key;
    memcpy(key.bytes, digest, KEY_DIGEST_SIZE);
    key.bytes[KEY_DIGEST_SIZE] = (uint8_t)(number >> 8);
    key.bytes[KEY_DIGEST_SIZE + 1] = (uint8_t)number;
    return key;
}

enum err ledger_init(struct ledger *ledger, struct index *index) {
    *ledger = (struct ledger){.index = index, .batch = index_batch_new()};
    map_init(&ledger->blocks, sizeof(struct ledger_block_key), sizeof(struct block), LEDGER_CHANGES_MAX, 1);
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

bool ledger_find_change(const struct ledger *ledger, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                        struct block *ret_block) {
    struct ledger_block_key key = ledger_block_key(digest, number);
    const struct block *changed = map_get(&ledger->blocks, bytes_of(key.bytes, sizeof key.bytes));
    if (changed != NULL) {
        *ret_block = *changed;
    }
    return changed != NULL;
}

enum err ledger_find(const struct ledger *ledger, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                     struct block *ret_block) {
    return ledger_find_change(ledger, digest, number, ret_block)
               ? ERR_OK
               : index_probe_block(ledger->index, digest, number, ret_block);
}

/* The segment's books, open for change. NULL and *ret_err where that fails. */
static struct index_segment *ledger_open_segment(struct ledger *ledger, uint32_t number, enum err *ret_err) {
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

static enum err ledger_count_record(struct ledger *ledger, const struct location *location) {
    enum err err = ERR_OK;
    struct index_segment *segment = ledger_open_segment(ledger, location->segment, &err);
    if (segment == NULL) {
        return err;
    }
    uint64_t end = location->offset + location->length;
    segment->records_count++;
    segment->size = segment->size > end ? segment->size : end;
    return ERR_OK;
}

static bool ledger_knows_segment(const struct ledger *ledger, uint32_t number) {
    struct index_segment segment;
    return map_get(&ledger->segments, bytes_of(&number, sizeof number)) != NULL ||
           index_find_segment(ledger->index, number, &segment) == ERR_OK;
}

/* A damaged record may be one of a segment that is no more: compaction has not moved what it could not read.
 */
static enum err ledger_count_dead(struct ledger *ledger, const struct location *location) {
    enum err err = ERR_OK;
    if (!ledger_knows_segment(ledger, location->segment)) {
        return ERR_OK;
    }
    struct index_segment *segment = ledger_open_segment(ledger, location->segment, &err);
    if (segment == NULL) {
        return err;
    }
    segment->dead_size += location->length;
    return ERR_OK;
}

enum err ledger_set_block(struct ledger *ledger, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                          const struct block *block) {
    struct ledger_block_key key = ledger_block_key(digest, number);
    enum err err = map_reserve(&ledger->blocks, ledger->blocks.count + 1);
    if (err == ERR_OK) {
        *(struct block *)map_put(&ledger->blocks, bytes_of(key.bytes, sizeof key.bytes)) = *block;
    }
    return err;
}

static bool ledger_is_same_place(const struct location *a, const struct location *b) {
    return a->segment == b->segment && a->offset == b->offset;
}

/* The capture of the entry as it would be at another place; false if the index does not hold such. */
static bool ledger_capture_at(const struct ledger_entry *entry, const struct location *location,
                              struct capture *ret_capture) {
    *ret_capture = ledger_capture(entry);
    ret_capture->location = *location;
    return entry->surt.size > 0 && index_can_hold(ret_capture);
}

/* Is the record that the entry mends counted? By its capture, or as the location of its block. */
static enum err ledger_find_mended(const struct ledger *ledger, const struct ledger_entry *entry,
                                   const struct block *block, bool *ret_is_counted) {
    struct capture capture;
    if (!entry->is_bare && ledger_capture_at(entry, &entry->mends, &capture)) {
        return index_has_capture(ledger->index, &capture, ret_is_counted);
    }
    *ret_is_counted = ledger_is_same_place(&block->location, &entry->mends);
    return ERR_OK;
}

enum err ledger_check(const struct ledger *ledger, const struct ledger_entry *entry,
                      const struct block *before) {
    bool looks_at_captures = entry->kind == LEDGER_REMOVAL || entry->mends.segment != 0;
    if (looks_at_captures && entry->surt.size > 0 &&
        index_batch_has_captures(ledger->batch, entry->surt, entry->time_us)) {
        return ERR_BUSY;
    }
    if (entry->mends.segment == 0) {
        return ERR_OK;
    }
    bool is_counted = false;
    enum err err = ledger_find_mended(ledger, entry, before, &is_counted);
    return err == ERR_OK && !is_counted ? ERR_BUSY : err;
}

enum err ledger_is_counted(const struct ledger *ledger, const struct ledger_entry *entry,
                           const struct block *block, bool *ret_is_counted) {
    struct capture capture;
    *ret_is_counted = !entry->is_bare;
    bool are_all = block->references >= 0 && (uint32_t)block->references == block->records_count;
    if (entry->is_bare || are_all || !ledger_capture_at(entry, &entry->location, &capture)) {
        return ERR_OK;
    }
    return index_has_capture(ledger->index, &capture, ret_is_counted);
}

/* ---- what an entry does ---- */

/* The record it mends is nobody's from now on. */
static enum err ledger_forget_mended(struct ledger *ledger, const struct ledger_entry *entry,
                                     const struct block *block) {
    struct capture capture;
    if (!entry->is_bare && ledger_capture_at(entry, &entry->mends, &capture)) {
        index_batch_remove_capture(ledger->batch, &capture);
    }
    if (!ledger_knows_segment(ledger, entry->mends.segment)) {
        return ERR_OK;
    }
    index_batch_put_mended(ledger->batch, &entry->mends);
    bool is_replaced =
        entry->kind == LEDGER_ORIGINAL && ledger_is_same_place(&block->location, &entry->mends);
    return is_replaced ? ERR_OK
                       : ledger_count_dead(ledger, &entry->mends); /* else ledger_set_original() counts it */
}

/* How a stored record counts. */
static enum err ledger_count_stored(struct ledger *ledger, const struct ledger_entry *entry,
                                    struct block *block) {
    bool is_counted = false;
    if (entry->mends.segment != 0) {
        enum err err = ledger_find_mended(ledger, entry, block, &is_counted);
        if (err == ERR_OK) {
            err = ledger_forget_mended(ledger, entry, block);
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    block->references += entry->is_bare || is_counted ? 0 : 1;
    block->records_count += is_counted && !entry->is_bare ? 0 : 1;
    return ERR_OK;
}

static enum err ledger_set_original(struct ledger *ledger, const struct ledger_entry *entry,
                                    struct block *block) {
    struct location replaced = block->location; /* two writers brought the same document at once, or it was
                                                   damaged: the later record counts */
    block->location = entry->location;
    block->size = entry->size;
    block->origin_time_us = entry->time_us;
    block->origin_uri_hash = entry->uri_hash;
    return replaced.segment != 0 ? ledger_count_dead(ledger, &replaced) : ERR_OK;
}

/* What the entry does to its block. */
static enum err ledger_change_block(struct ledger *ledger, const struct ledger_entry *entry,
                                    struct block block) {
    bool was_live = block.references > 0;
    enum err err = ERR_OK;
    if (entry->kind == LEDGER_DELETION) {
        block.references--;
    } else {
        err = ledger_count_stored(ledger, entry, &block);
    }
    bool is_dead_now = was_live && block.references <= 0 && block.location.segment != 0;
    if (err == ERR_OK && entry->kind == LEDGER_ORIGINAL) {
        err = ledger_set_original(ledger, entry, &block);
    } else if (err == ERR_OK && is_dead_now) {
        err = ledger_count_dead(ledger, &block.location);
    }
    return err == ERR_OK ? ledger_set_block(ledger, entry->digest, entry->number, &block) : err;
}

/* ---- removals ---- */

static bool ledger_is_removed_by(const struct ledger_entry *entry, const struct capture *capture) {
    return capture->block_number == entry->number && bytes_equal(capture->url, entry->url) &&
           memcmp(capture->digest, entry->digest, KEY_DIGEST_SIZE) == 0;
}

/* The next compaction rewrites the segment, however little of it is dead. */
static enum err ledger_mark_purged(struct ledger *ledger, uint32_t number) {
    enum err err = ERR_OK;
    if (!ledger_knows_segment(ledger, number)) {
        return ERR_OK;
    }
    struct index_segment *segment = ledger_open_segment(ledger, number, &err);
    if (segment != NULL) {
        segment->has_purged = true;
    }
    return err;
}

/* Original records that are not the block's location were counted as dead when they were replaced. */
static enum err ledger_remove_one(struct ledger *ledger, const struct ledger_entry *entry,
                                  const struct capture *capture, struct block *block) {
    enum err err = entry->is_purge ? ledger_mark_purged(ledger, capture->location.segment) : ERR_OK;
    index_batch_remove_capture(ledger->batch, capture);
    block->references--;
    return err == ERR_OK && (capture->flags & CAPTURE_REVISIT) != 0
               ? ledger_count_dead(ledger, &capture->location)
               : err;
}

/* The document may lie where a capture was that has been removed before; and the removal names the URL. */
static enum err ledger_purge_rest(struct ledger *ledger, const struct ledger_entry *entry,
                                  const struct block *block) {
    enum err err = ledger_mark_purged(ledger, entry->location.segment);
    return err == ERR_OK && block->references <= 0 && block->location.segment != 0
               ? ledger_mark_purged(ledger, block->location.segment)
               : err;
}

static enum err ledger_remove_captures(struct ledger *ledger, const struct ledger_entry *entry,
                                       struct block block) {
    struct index_cursor *cursor;
    struct capture capture;
    int32_t references = block.references;
    enum err err = index_cursor_open_time(ledger->index, entry->surt, entry->time_us, &cursor);
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && (err = index_cursor_next(cursor, &capture)) == ERR_OK) {
        err = ledger_is_removed_by(entry, &capture) ? ledger_remove_one(ledger, entry, &capture, &block)
                                                    : ERR_OK;
    }
    index_cursor_close(cursor);
    err = err == ERR_NOT_FOUND ? ERR_OK : err; /* the end of the walk */
    if (err != ERR_OK || block.references == references) {
        return err;
    }
    if (references > 0 && block.references <= 0 && block.location.segment != 0) {
        err = ledger_count_dead(ledger, &block.location);
    }
    err = err == ERR_OK && entry->is_purge ? ledger_purge_rest(ledger, entry, &block) : err;
    return err == ERR_OK ? ledger_set_block(ledger, entry->digest, entry->number, &block) : err;
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
        .visit_s = entry->visit_s,
        .signer = entry->signer,
        .voucher = entry->voucher,
    };
    memcpy(capture.digest, entry->digest, sizeof capture.digest);
    return capture;
}

static void ledger_put_capture(struct ledger *ledger, const struct ledger_entry *entry) {
    struct capture capture = ledger_capture(entry);
    if (index_can_hold(&capture)) { /* else it is in the segments and found by its content key alone */
        index_batch_put_capture(ledger->batch, &capture);
    }
}

enum err ledger_apply(struct ledger *ledger, const struct ledger_entry *entry) {
    struct block before = {0};
    if (entry->kind != LEDGER_OTHER) {
        enum err err = ledger_find(ledger, entry->digest, entry->number, &before);
        if (err != ERR_OK && err != ERR_NOT_FOUND) {
            return err;
        }
    }
    return ledger_apply_to(ledger, entry, &before);
}

enum err ledger_apply_to(struct ledger *ledger, const struct ledger_entry *entry,
                         const struct block *before) {
    enum err err = ledger_count_record(ledger, &entry->location);
    if (err != ERR_OK || entry->kind == LEDGER_OTHER) {
        return err;
    }
    if (entry->kind == LEDGER_REMOVAL) {
        return ledger_remove_captures(ledger, entry, *before);
    }
    err = ledger_change_block(ledger, entry, *before);
    if (err == ERR_OK && entry->surt.size > 0 && entry->kind != LEDGER_DELETION) {
        ledger_put_capture(ledger, entry);
    }
    return err;
}

enum err ledger_commit(struct ledger *ledger, const struct index_position *position,
                       struct err_detail *detail) {
    struct bytes key;
    void *value;
    size_t cursor = 0;
    while (map_next(&ledger->blocks, &cursor, &key, &value)) {
        uint16_t number = (uint16_t)(key.data[KEY_DIGEST_SIZE] << 8 | key.data[KEY_DIGEST_SIZE + 1]);
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
