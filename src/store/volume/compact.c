#include "store/volume/compact.h"

#include <stdlib.h>

#include "base/arena.h"
#include "store/index/index_batch.h"
#include "store/volume/quota.h"
#include "store/volume/volume_record.h"
#include "store/volume/volume_state.h"

enum {
    COPY_SIZE = 1 << 20,
    MOVES_MAX = 1 << 24,
    TEXT_SIZE_MAX = 1 << 30, /* SURTs of one segment's captures */
    PURGED_ONLY = 101,       /* percent: no segment has so much that is dead */
};

/* One record of the old segment, and what becomes of it. */
struct move {
    struct ledger_entry entry; /* its slices are in the arena */
    bool is_kept;
    uint64_t new_offset;
};

struct compact {
    struct volume *volume;
    struct segment *old;
    struct segment *new;
    uint64_t old_size;
    bool has_mended; /* damaged records that others have replaced */
    struct move *moves;
    size_t moves_count;
    size_t moves_max;
    struct arena arena;
    struct buf out; /* on its way to the new file */
    struct buf frame;
    struct volume_scan scan;
    bool has_kept; /* the record before, to which a request belongs */
    struct compact_report *report;
};

/* ---- step 1 ---- */

static enum err compact_flush_out(struct compact *compact) {
    enum err err = vfs_write(&compact->new->file, compact->new->size, buf_bytes(&compact->out));
    compact->new->size += compact->out.size;
    buf_clear(&compact->out);
    return err;
}

/* Copy bytes of the old file as they are; gives the place in the new one. */
static enum err compact_copy_range(struct compact *compact, uint64_t offset, uint64_t size,
                                   uint64_t *ret_offset) {
    *ret_offset = compact->new->size + compact->out.size;
    while (size > 0) {
        struct location piece = {.offset = offset, .length = (uint32_t)(size < COPY_SIZE ? size : COPY_SIZE)};
        buf_clear(&compact->frame);
        enum err err = segment_read(compact->old, &piece, &compact->frame);
        if (err == ERR_OK) {
            err = buf_put(&compact->out, buf_bytes(&compact->frame));
        }
        if (err == ERR_OK && compact->out.size >= COPY_SIZE) {
            err = compact_flush_out(compact);
        }
        if (err != ERR_OK) {
            return err;
        }
        offset += piece.length;
        size -= piece.length;
    }
    return ERR_OK;
}

static bool compact_same_location(const struct location *a, const struct location *b) {
    return a->segment == b->segment && a->offset == b->offset;
}

/* What a stored record of the old segment counts for. */
struct standing {
    bool is_counted; /* among the references of its block */
    bool is_mended;  /* another counts in its stead, among the records too */
};

static bool compact_is_mended(const struct compact *compact, const struct location *location) {
    struct location mended;
    return compact->has_mended &&
           index_find_mended(compact->volume->index, location->segment, location->offset, &mended) ==
               ERR_OK &&
           mended.offset == location->offset;
}

/* A record that was mended reads well after all where only its digest says that it is false. */
static enum err compact_find_standing(const struct compact *compact, const struct ledger_entry *entry,
                                      const struct block *block, struct standing *ret_standing) {
    struct standing standing = {.is_mended = compact_is_mended(compact, &entry->location)};
    enum err err = ERR_OK;
    struct capture capture = ledger_capture(entry);
    if (!standing.is_mended) {
        err = ledger_is_counted(&compact->volume->ledger, entry, block, &standing.is_counted);
    } else if (entry->surt.size > 0 && index_can_hold(&capture)) {
        err = index_has_capture(compact->volume->index, &capture, &standing.is_counted);
    }
    *ret_standing = standing;
    return err;
}

static enum err compact_see_mended(struct compact *compact) {
    struct location mended;
    enum err err = index_find_mended(compact->volume->index, compact->old->number, 0, &mended);
    compact->has_mended = err == ERR_OK;
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Is some record left that it must cancel? One of a capture concerns only those that do not count. */
static bool compact_is_deletion_needed(const struct ledger_entry *entry, const struct block *block) {
    bool is_alive = block->references > 0;
    if (entry->kind == LEDGER_DELETION) {
        return is_alive || block->records_count > 0;
    }
    return block->records_count > (is_alive ? (uint32_t)block->references : 0);
}

/* Is the record still needed? follows_kept: the record before it was, to which a request belongs. */
static enum err compact_decide(struct compact *compact, const struct ledger_entry *entry, enum warc_type type,
                               bool follows_kept, bool *ret_is_kept) {
    if (entry->kind == LEDGER_OTHER) {
        *ret_is_kept = type == WARC_TYPE_REQUEST ? follows_kept : type != WARC_TYPE_WARCINFO;
        return ERR_OK;
    }
    struct block block = {0};
    struct standing standing = {0};
    enum err err = index_probe_block(compact->volume->index, entry->digest, entry->number, &block);
    if (err == ERR_OK || err == ERR_NOT_FOUND) {
        err = compact_find_standing(compact, entry, &block, &standing);
    }
    if (err != ERR_OK) {
        return err;
    }
    bool is_deletion = entry->kind == LEDGER_DELETION || entry->kind == LEDGER_REMOVAL;
    bool is_stored_needed = block.references > 0 &&
                            (standing.is_counted || compact_same_location(&block.location, &entry->location));
    *ret_is_kept = is_deletion ? compact_is_deletion_needed(entry, &block) : is_stored_needed;
    return ERR_OK;
}

static enum err compact_add_move(struct compact *compact, const struct ledger_entry *entry, bool is_kept,
                                 uint64_t new_offset) {
    if (compact->moves_count == compact->moves_max) {
        size_t grown = compact->moves_max == 0 ? 1024 : compact->moves_max * 2;
        struct move *moves = grown > MOVES_MAX ? NULL : reallocarray(compact->moves, grown, sizeof *moves);
        if (moves == NULL) {
            return grown > MOVES_MAX ? ERR_LIMIT : ERR_MEMORY;
        }
        compact->moves = moves;
        compact->moves_max = grown;
    }
    struct move *move = &compact->moves[compact->moves_count++];
    *move = (struct move){.entry = *entry, .is_kept = is_kept, .new_offset = new_offset};
    move->entry.surt = arena_copy(&compact->arena, entry->surt);
    move->entry.url = arena_copy(&compact->arena, entry->url);
    move->entry.mime = arena_copy(&compact->arena, entry->mime);
    return move->entry.mime.data == NULL ? ERR_MEMORY : ERR_OK;
}

static enum err compact_copy_record(void *context, struct warc_reader *reader, struct err_detail *detail) {
    struct compact *compact = context;
    struct ledger_entry entry;
    enum warc_type type = reader->record.type;
    enum err err = volume_scan_record(&compact->scan, reader, compact->old->number, &entry, detail);
    if (err != ERR_OK) {
        return err;
    }
    bool is_kept = false;
    uint64_t new_offset = 0;
    err = compact_decide(compact, &entry, type, compact->has_kept, &is_kept);
    if (err == ERR_OK && is_kept) {
        err = compact_copy_range(compact, entry.location.offset, entry.location.length, &new_offset);
    }
    compact->has_kept = is_kept;
    return err == ERR_OK ? compact_add_move(compact, &entry, is_kept, new_offset) : err;
}

/*
 * Damage is copied as it is, all but the records that others have replaced: perhaps a better tool can read it
 * one day.
 */
static enum err compact_copy_damage(void *context, uint64_t from, uint64_t end,
                                    const struct err_detail *reason) {
    struct compact *compact = context;
    uint64_t unused;
    (void)reason;
    while (from < end) {
        struct location mended;
        enum err err = index_find_mended(compact->volume->index, compact->old->number, from, &mended);
        bool is_in_range = err == ERR_OK && mended.offset < end;
        if (err != ERR_OK && err != ERR_NOT_FOUND) {
            return err;
        }
        err = compact_copy_range(compact, from, (is_in_range ? mended.offset : end) - from, &unused);
        if (err != ERR_OK || !is_in_range) {
            return err;
        }
        from = mended.offset + mended.length;
    }
    return ERR_OK;
}

static enum err compact_copy_live(struct compact *compact, struct err_detail *detail) {
    static const struct segment_visitor visitor = {.record = compact_copy_record,
                                                   .damage = compact_copy_damage};
    struct segment_reader reader;
    enum err err = volume_scan_init(&compact->scan, compact->volume);
    err = err == ERR_OK ? compact_see_mended(compact) : err;
    err = err == ERR_OK ? segment_reader_open(&reader, compact->old, 0, compact->old_size, detail) : err;
    if (err == ERR_OK) {
        err = segment_reader_walk(&reader, UINT64_MAX, &visitor, compact, detail);
        segment_reader_done(&reader);
    }
    volume_scan_done(&compact->scan);
    return err == ERR_OK ? compact_flush_out(compact) : err;
}

/* ---- step 3 ---- */

/* The record goes, and with it what it counted for. */
static void compact_discount(const struct ledger_entry *entry, struct standing standing,
                             struct block *block) {
    if (entry->kind == LEDGER_DELETION) {
        block->references++;
    } else if (standing.is_counted) {
        block->references--;
        block->records_count--;
    } else if (entry->kind != LEDGER_REMOVAL && !standing.is_mended) {
        block->records_count--;
    }
    if (compact_same_location(&block->location, &entry->location)) {
        block->location = (struct location){0};
    }
}

static enum err compact_set_block(struct compact *compact, struct index_batch *batch,
                                  const struct ledger_entry *entry, const struct block *block) {
    enum err err = ledger_set_block(&compact->volume->ledger, entry->digest, entry->number, block);
    bool is_forgotten = block->references == 0 && block->records_count == 0;
    if (err == ERR_OK && is_forgotten) {
        index_batch_remove_block(batch, entry->digest, entry->number);
    } else if (err == ERR_OK) {
        index_batch_put_block(batch, entry->digest, entry->number, block);
    }
    return err;
}

static void compact_move_capture(const struct compact *compact, struct index_batch *batch,
                                 const struct move *move) {
    struct capture capture = ledger_capture(&move->entry);
    if (move->entry.surt.size == 0 || !index_can_hold(&capture)) {
        return; /* it never was in the index */
    }
    index_batch_remove_capture(batch, &capture);
    if (move->is_kept) {
        capture.location.segment = compact->new->number;
        capture.location.offset = move->new_offset;
        index_batch_put_capture(batch, &capture);
    }
}

/* The block as it is now: it may have changed since the copy was made, but not come back to life. */
static enum err compact_move_entry(struct compact *compact, struct index_batch *batch,
                                   const struct move *move) {
    const struct ledger_entry *entry = &move->entry;
    struct ledger *ledger = &compact->volume->ledger;
    bool is_stored = entry->kind == LEDGER_ORIGINAL || entry->kind == LEDGER_REVISIT;
    struct standing standing = {0};
    struct block block = {0};
    enum err err = ledger_find(ledger, entry->digest, entry->number, &block);
    bool is_there = err == ERR_OK;
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    if (is_stored) {
        err = compact_find_standing(compact, entry, &block, &standing);
        if (err != ERR_OK) {
            return err;
        }
    }
    if (standing.is_counted) {
        compact_move_capture(compact, batch, move);
    }
    if (!is_there || (move->is_kept && !compact_same_location(&block.location, &entry->location))) {
        return ERR_OK; /* a revisit or a deletion: the block lies elsewhere */
    }
    if (move->is_kept) {
        block.location.segment = compact->new->number;
        block.location.offset = move->new_offset;
    } else {
        compact_discount(entry, standing, &block);
    }
    return compact_set_block(compact, batch, entry, &block);
}

/* They are of the old segment, whose records are dropped or lie elsewhere now. */
static enum err compact_forget_mended(const struct compact *compact, struct index_batch *batch) {
    struct location mended = {0};
    enum err err;
    for (uint64_t from = 0;
         (err = index_find_mended(compact->volume->index, compact->old->number, from, &mended)) == ERR_OK;) {
        index_batch_remove_mended(batch, &mended);
        from = mended.offset + 1;
    }
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Where the old segment was the last that was indexed, the new one is. */
static enum err compact_move_position(const struct compact *compact, struct index_batch *batch) {
    struct index_position position;
    enum err err = index_position(compact->volume->index, &position);
    if (err == ERR_OK && position.segment == compact->old->number) {
        position = (struct index_position){.segment = compact->new->number, .offset = compact->new->size};
        index_batch_set_position(batch, &position);
    }
    return err;
}

/*
 * Deletions were kept for records that this compaction has dropped with them: the next one need not keep
 * them.
 */
static enum err compact_count_idle(const struct compact *compact, struct index_segment *segment) {
    for (size_t i = 0; i < compact->moves_count; i++) {
        const struct ledger_entry *entry = &compact->moves[i].entry;
        struct block block = {0};
        if (!compact->moves[i].is_kept || (entry->kind != LEDGER_DELETION && entry->kind != LEDGER_REMOVAL)) {
            continue;
        }
        enum err err = ledger_find(&compact->volume->ledger, entry->digest, entry->number, &block);
        if (err != ERR_OK && err != ERR_NOT_FOUND) {
            return err;
        }
        bool is_idle = !compact_is_deletion_needed(entry, &block);
        segment->dead_size += is_idle ? entry->location.length : 0;
        segment->has_purged = segment->has_purged || (is_idle && entry->is_purge);
    }
    return ERR_OK;
}

static enum err compact_fill_batch(struct compact *compact, struct index_batch *batch) {
    struct index_segment segment = {.size = compact->new->size};
    enum err err = compact_see_mended(compact);
    if (err != ERR_OK) {
        return err;
    }
    for (size_t i = 0; i < compact->moves_count; i++) {
        const struct move *move = &compact->moves[i];
        segment.records_count += move->is_kept;
        compact->report->kept_count += move->is_kept;
        compact->report->dropped_count += !move->is_kept;
        if (move->entry.kind == LEDGER_OTHER) {
            continue;
        }
        err = compact_move_entry(compact, batch, move);
        if (err != ERR_OK) {
            return err;
        }
    }
    err = compact_forget_mended(compact, batch);
    err = err == ERR_OK ? compact_count_idle(compact, &segment) : err;
    if (err != ERR_OK) {
        return err;
    }
    index_batch_remove_segment(batch, compact->old->number);
    index_batch_put_segment(batch, compact->new->number, &segment);
    return compact_move_position(compact, batch);
}

/* The committer waits: what the ledger says is what the index will say. */
static enum err compact_move_entries(struct compact *compact, struct err_detail *detail) {
    struct volume *volume = compact->volume;
    struct index_batch *batch = index_batch_new();
    if (batch == NULL) {
        return ERR_MEMORY;
    }
    pthread_mutex_lock(&volume->ledger_lock);
    enum err err = compact_fill_batch(compact, batch);
    if (err == ERR_OK) {
        err = index_commit(volume->index, batch, detail);
    }
    if (err == ERR_OK) {
        block_cache_clear(volume->blocks);
        changes_note_all(&volume->changes);
        changes_advance(&volume->changes);
    }
    ledger_abort(&volume->ledger);
    pthread_mutex_unlock(&volume->ledger_lock);
    index_batch_free(batch);
    return err;
}

/* ---- one segment, all segments ---- */

static enum err compact_segment(struct compact *compact, struct err_detail *detail) {
    struct volume *volume = compact->volume;
    struct segment *old = compact->old;
    struct bytes dictionary = old->has_dictionary ? buf_bytes(&old->dictionary_raw) : bytes_of(NULL, 0);
    if (old->number % SEGMENT_GENERATIONS == SEGMENT_GENERATIONS - 1) {
        return ERR_OK; /* compacted 255 times: it stays as it is */
    }
    enum err err =
        volume_start_segment(volume, old->number + 1, old->framing, dictionary, &compact->new, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = compact_copy_live(compact, detail);
    if (err != ERR_OK) {
        volume_drop_segment(volume, compact->new);
        return err;
    }
    err = volume_publish_segment(volume, compact->new, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = compact_move_entries(compact, detail);
    struct segment *obsolete = err == ERR_OK ? old : compact->new;
    if (err == ERR_OK) {
        compact->report->segments_count++;
        compact->report->freed_size += compact->old_size - compact->new->size;
    }
    volume_release(old);
    compact->old = NULL;
    volume_remove_segment(volume, obsolete);
    return err;
}

static enum err compact_number(struct volume *volume, uint32_t number, struct compact_report *report,
                               struct err_detail *detail) {
    struct compact compact = {.volume = volume, .report = report};
    arena_init(&compact.arena, TEXT_SIZE_MAX);
    buf_init(&compact.out, 4 * COPY_SIZE);
    buf_init(&compact.frame, 2 * COPY_SIZE);
    enum err err = volume_hold(volume, number, &compact.old);
    if (err == ERR_OK) {
        err = vfs_size(&compact.old->file, &compact.old_size);
        if (err == ERR_OK) {
            err = compact_segment(&compact, detail);
        }
        if (compact.old != NULL) {
            volume_release(compact.old);
        }
    }
    free(compact.moves);
    arena_done(&compact.arena);
    buf_done(&compact.out);
    buf_done(&compact.frame);
    return err;
}

static bool compact_is_worth_it(const struct index_segment *segment, unsigned dead_percent) {
    return segment->has_purged ||
           (segment->dead_size > 0 && segment->dead_size * 100 >= segment->size * dead_percent);
}

/* What is left of it is there twice for a while. */
static bool compact_fits(const struct volume *volume, const struct index_segment *segment) {
    uint64_t left_size = segment->size > segment->dead_size ? segment->size - segment->dead_size : 0;
    return !quota_is_set(volume->config.quota) || quota_admits(volume->config.quota, left_size, true);
}

/* The next segment after this number, but the newest, that is worth it; 0 if there is none. */
static uint32_t compact_next_candidate(struct volume *volume, uint32_t after, unsigned dead_percent) {
    uint32_t found = 0;
    pthread_mutex_lock(&volume->lock);
    const struct segment *active = volume->active;
    pthread_mutex_unlock(&volume->lock);
    pthread_rwlock_rdlock(&volume->segments_lock);
    for (size_t i = 0; found == 0 && i + 1 < volume->segments_count; i++) {
        uint32_t number = volume->segments[i]->number;
        struct index_segment entry;
        if (number <= after || volume->segments[i] == active ||
            index_find_segment(volume->index, number, &entry) != ERR_OK) {
            continue;
        }
        found = compact_is_worth_it(&entry, dead_percent) && compact_fits(volume, &entry) ? number : 0;
    }
    pthread_rwlock_unlock(&volume->segments_lock);
    return found;
}

/* The newest segment is still written to; where it too is worth it, the next one begins now. */
static void compact_retire_newest(struct volume *volume, unsigned dead_percent) {
    struct index_position position;
    struct index_segment entry;
    if (index_position(volume->index, &position) == ERR_OK &&
        index_find_segment(volume->index, position.segment, &entry) == ERR_OK &&
        compact_is_worth_it(&entry, dead_percent)) {
        volume_roll(volume);
    }
}

static enum err compact_pass(struct volume *volume, unsigned dead_percent, const atomic_bool *is_stopping,
                             struct compact_report *report, struct err_detail *detail) {
    uint32_t number = 0;
    compact_retire_newest(volume, dead_percent);
    while (!atomic_load(is_stopping) &&
           (number = compact_next_candidate(volume, number, dead_percent)) != 0) {
        enum err err = compact_number(volume, number, report, detail);
        volume_measure(volume);
        if (err != ERR_OK) {
            return err;
        }
        number = segment_next_number(number) - 1; /* not the new generation of the same place */
    }
    return ERR_OK;
}

/* The second time only what was purged: a removal names the URL, and is needed until its records have gone.
 */
enum err compact_some(struct volume *volume, unsigned dead_percent, const atomic_bool *is_stopping,
                      struct compact_report *ret_report, struct err_detail *detail) {
    struct compact_report report = {0};
    enum err err = volume_refuses(volume, detail);
    err = err == ERR_OK ? compact_pass(volume, dead_percent, is_stopping, &report, detail) : err;
    err = err == ERR_OK ? compact_pass(volume, PURGED_ONLY, is_stopping, &report, detail) : err;
    if (err == ERR_OK) {
        *ret_report = report;
    }
    return err;
}

enum err compact_volume(struct volume *volume, unsigned dead_percent, struct compact_report *ret_report,
                        struct err_detail *detail) {
    const atomic_bool is_stopping = false;
    enum err err = compact_some(volume, dead_percent, &is_stopping, ret_report, detail);
    return err == ERR_OK ? index_forget(volume->index, detail) : err;
}
