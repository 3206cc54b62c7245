#include "run/bell.h"
#include "store/index/index_cursor.h"
#include "store/volume/volume_record.h"
#include "store/volume/volume_writer.h"
#include "warc/request_key.h"
#include "web/url/surt.h"

enum { TRIES_MAX = 16 };

static bool mend_is_same_capture(const struct capture *a, const struct capture *b) {
    return a->block_number == b->block_number && bytes_equal(a->url, b->url) &&
           memcmp(a->digest, b->digest, KEY_DIGEST_SIZE) == 0;
}

/* ---- removal ---- */

/* ERR_NOT_FOUND if no such capture is in the index. */
static enum err mend_look_for_capture(const struct volume *volume, const struct capture *capture) {
    struct index_cursor *cursor;
    struct capture found;
    enum err err = index_cursor_open_time(volume->index, capture->surt, capture->time_us, &cursor);
    if (err != ERR_OK) {
        return err;
    }
    while ((err = index_cursor_next(cursor, &found)) == ERR_OK && !mend_is_same_capture(&found, capture)) {
    }
    index_cursor_close(cursor);
    return err;
}

static enum err mend_prepare_removal(struct volume_writer *writer, const struct capture *capture,
                                     bool is_purge, struct volume_item **ret_item,
                                     struct err_detail *detail) {
    struct volume *volume = writer->volume;
    struct volume_look look = {.generation = changes_now(&volume->changes), .is_there = true};
    enum err err = volume_refuses(volume, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = index_find_block(volume->index, capture->digest, capture->block_number, &look.block);
    if (err == ERR_OK) {
        err = look.block.references > 0 ? mend_look_for_capture(volume, capture) : ERR_NOT_FOUND;
    }
    if (err != ERR_OK) {
        return err_set(detail, err, err == ERR_NOT_FOUND ? "there is no such capture" : "%s", err_text(err));
    }
    struct volume_item *item;
    err = volume_take_item(volume, &item, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = volume_encode_removal(writer, capture, is_purge, item, detail);
    if (err != ERR_OK) {
        volume_free_item(volume, item);
        return err;
    }
    item->look = look;
    item->accepts_twin = false;
    *ret_item = item;
    return ERR_OK;
}

enum err volume_remove_capture(struct volume_writer *writer, const struct capture *capture,
                               struct err_detail *detail) {
    enum err err = ERR_BUSY;
    for (unsigned i = 0; i < TRIES_MAX && err == ERR_BUSY; i++) {
        struct volume_item *item = NULL;
        err = mend_prepare_removal(writer, capture, false, &item, detail);
        if (err != ERR_OK) {
            return err;
        }
        err = volume_run_item(writer->volume, item, NULL);
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_text(err));
}

/* ---- purge ---- */

/* Nobody asks for a capture of it: the record is bare. */
static const char mend_nowhere[] = "about:blank";

/* The document of the block once more, in a record that says nothing of the capture. ERR_BUSY: look again. */
static enum err mend_move_document(struct volume_writer *writer, const struct key *key,
                                   const struct location *location, struct err_detail *detail) {
    struct volume *volume = writer->volume;
    struct document document = {.url = bytes_of_string(mend_nowhere),
                                .time_us = clock_wall_us(volume->config.clock)};
    struct volume_plan plan;
    struct volume_item *item;
    enum err err = volume_get(writer->reader, key, &document.body, detail);
    err = err == ERR_OK ? volume_plan_again(writer, &document, key, &plan, detail) : err;
    if (err != ERR_OK) {
        return err;
    }
    const struct location *now = &plan.look.block.location;
    if (now->segment != location->segment || now->offset != location->offset) {
        return ERR_OK; /* another record holds it by now */
    }
    plan.is_bare = true;
    err = volume_take_item(volume, &item, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = volume_encode(writer, &plan, item, detail);
    if (err != ERR_OK) {
        volume_free_item(volume, item);
        return err;
    }
    item->look = plan.look;
    item->accepts_twin = false;
    return volume_run_item(volume, item, NULL);
}

/* Before the removal and not after it: a crash in between must not leave the record for ever. */
static enum err mend_free_record(struct volume_writer *writer, const struct capture *capture,
                                 struct err_detail *detail) {
    struct key key = {.number = capture->block_number};
    struct block block;
    enum err err = ERR_BUSY;
    memcpy(key.digest, capture->digest, sizeof key.digest);
    for (unsigned i = 0; i < TRIES_MAX && err == ERR_BUSY; i++) {
        err = index_find_block(writer->volume->index, key.digest, key.number, &block);
        bool is_shared = err == ERR_OK && block.references > 1 &&
                         block.location.segment == capture->location.segment &&
                         block.location.offset == capture->location.offset;
        if (!is_shared) {
            return err == ERR_NOT_FOUND ? ERR_OK : err;
        }
        err = mend_move_document(writer, &key, &capture->location, detail);
    }
    return err == ERR_CORRUPT || err == ERR_NOT_FOUND ? ERR_OK : err; /* nothing that others could read */
}

enum err volume_submit_purge(struct volume_writer *writer, const struct capture *capture, volume_done *done,
                             void *context, struct err_detail *detail) {
    struct volume_item *item = NULL;
    enum err err = volume_refuses(writer->volume, detail);
    err = err == ERR_OK ? mend_free_record(writer, capture, detail) : err;
    err = err == ERR_OK ? mend_prepare_removal(writer, capture, true, &item, detail) : err;
    if (err == ERR_OK) {
        item->done = done;
        item->context = context;
        volume_queue_item(writer->volume, item);
    }
    return err;
}

/* Removals that are under way. */
struct purging {
    pthread_mutex_t lock;
    struct bell ended;
    size_t open_count; /* lock, as the next two */
    size_t purged_count;
    enum err err;
};

static void purging_end(void *context, enum err err, const struct stored *stored) {
    struct purging *purging = context;
    (void)stored;
    pthread_mutex_lock(&purging->lock);
    purging->purged_count += err == ERR_OK;
    if (err != ERR_OK && err != ERR_BUSY) { /* busy: another removal was quicker; whoever walks looks again */
        purging->err = err;
    }
    if (--purging->open_count == 0) {
        bell_ring(&purging->ended);
    }
    pthread_mutex_unlock(&purging->lock);
}

enum err volume_purge(struct volume_writer *writer, const struct capture *captures, size_t count,
                      size_t *ret_count, struct err_detail *detail) {
    struct purging purging = {.lock = PTHREAD_MUTEX_INITIALIZER, .open_count = 1};
    enum err err = ERR_OK;
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        pthread_mutex_lock(&purging.lock);
        purging.open_count++;
        pthread_mutex_unlock(&purging.lock);
        err = volume_submit_purge(writer, &captures[i], purging_end, &purging, detail);
        if (err != ERR_OK) {
            purging_end(&purging, ERR_BUSY, NULL); /* it was not queued */
        }
        err = err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    pthread_mutex_lock(&purging.lock);
    purging.open_count--;
    while (purging.open_count > 0) {
        (void)bell_await(&purging.ended, &purging.lock, BELL_NEVER_US);
    }
    pthread_mutex_unlock(&purging.lock);
    pthread_mutex_destroy(&purging.lock);
    *ret_count = purging.purged_count;
    if (err == ERR_OK && purging.err != ERR_OK) {
        err = err_set(detail, purging.err, "%s", err_text(purging.err));
    }
    return err;
}

/* ---- repair ---- */

/* The first capture of this document whose record is not sound; segment 0: none. */
static enum err mend_find_damaged_capture(struct volume_writer *writer, const struct volume_plan *plan,
                                          struct location *ret_location, struct err_detail *detail) {
    const struct document *document = plan->document;
    struct index_cursor *cursor;
    struct capture wanted = {.block_number = plan->number};
    struct capture found;
    bool is_sound = true;
    *ret_location = (struct location){0};
    if (document->url.size == 0) {
        return ERR_OK;
    }
    memcpy(wanted.digest, plan->digest, sizeof wanted.digest);
    buf_clear(&writer->surt);
    buf_clear(&writer->url);
    enum err err = request_key_put_url(&writer->url, document->url, document->request);
    wanted.url = buf_bytes(&writer->url);
    err = err == ERR_OK ? canon_run(&writer->canon, wanted.url, detail) : err;
    err = err == ERR_OK ? surt_put(&writer->surt, &writer->canon) : err;
    if (err == ERR_OK) {
        err = index_cursor_open_time(writer->volume->index, buf_bytes(&writer->surt), document->time_us,
                                     &cursor);
    }
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && is_sound && (err = index_cursor_next(cursor, &found)) == ERR_OK) {
        if (mend_is_same_capture(&found, &wanted)) {
            err = volume_check_record(writer->reader, &found.location, &is_sound);
        }
    }
    if (err == ERR_OK && !is_sound) {
        *ret_location = found.location;
    }
    index_cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Was the record of the block stored without a URL, so that it is no capture? */
static bool mend_is_plain_block(struct volume_writer *writer, const struct volume_plan *plan) {
    char urn[VOLUME_URN_SIZE];
    const struct block *block = &plan->look.block;
    return block->location.segment != 0 &&
           block->origin_uri_hash == volume_hash_uri(&writer->hasher.sha256, volume_urn(plan->sha256, urn));
}

/* Is the document readable, here or where the caller says? */
static enum err mend_check_block(struct volume_writer *writer, const struct volume_plan *plan,
                                 bool is_elsewhere, bool *ret_is_sound) {
    const struct location *location = &plan->look.block.location;
    *ret_is_sound = is_elsewhere;
    if (is_elsewhere || location->segment == 0) {
        return ERR_OK;
    }
    return volume_check_record(writer->reader, location, ret_is_sound);
}

/* What has to be written? *ret_is_needed: anything at all. The document may lose its URL on the way. */
static enum err mend_plan_repair(struct volume_writer *writer, const struct key *key,
                                 struct document *document, bool is_elsewhere, struct volume_plan *plan,
                                 bool *ret_is_needed, struct err_detail *detail) {
    bool is_sound = true;
    struct location damaged = {0};
    enum err err = volume_plan_again(writer, document, key, plan, detail);
    if (err == ERR_OK) {
        err = mend_find_damaged_capture(writer, plan, &damaged, detail);
    }
    if (err == ERR_OK) {
        err = mend_check_block(writer, plan, is_elsewhere, &is_sound);
    }
    if (err != ERR_OK) {
        return err;
    }
    *ret_is_needed = damaged.segment != 0 || !is_sound;
    plan->is_duplicate = is_sound && plan->look.block.location.segment != 0;
    if (*ret_is_needed && document->is_body_left_out && !plan->is_duplicate) {
        return err_set(detail, ERR_NOT_FOUND, "the document is damaged too: its body is needed");
    }
    plan->mends = damaged;
    if (damaged.segment == 0) {
        bool is_plain = mend_is_plain_block(writer, plan);
        plan->mends = plan->look.block.location;
        plan->is_bare = !is_plain;
        document->url = is_plain ? bytes_of(NULL, 0) : document->url;
    }
    return ERR_OK;
}

/* One record. ERR_BUSY: look again. */
static enum err mend_repair_once(struct volume_writer *writer, const struct key *key,
                                 struct document document, bool is_elsewhere, bool *ret_is_needed,
                                 struct err_detail *detail) {
    struct volume *volume = writer->volume;
    struct volume_plan plan;
    struct volume_item *item;
    enum err err = volume_take_item(volume, &item, detail);
    if (err != ERR_OK) {
        return err;
    }
    *ret_is_needed = false;
    err = mend_plan_repair(writer, key, &document, is_elsewhere, &plan, ret_is_needed, detail);
    if (err == ERR_OK && *ret_is_needed) {
        err = volume_encode(writer, &plan, item, detail);
    }
    if (err != ERR_OK || !*ret_is_needed) {
        volume_free_item(volume, item);
        return err;
    }
    item->look = plan.look;
    item->accepts_twin = false;
    return volume_run_item(volume, item, NULL);
}

enum err volume_repair(struct volume_writer *writer, const struct key *key, const struct document *document,
                       bool is_elsewhere, bool *ret_is_repaired, struct err_detail *detail) {
    struct document whole = *document;
    bool is_needed = true;
    bool is_repaired = false;
    enum err err = volume_refuses(writer->volume, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (!whole.is_body_left_out) {
        whole.sum = NULL; /* from elsewhere: nobody's word is taken for it */
    }
    for (unsigned i = 0; i < TRIES_MAX && is_needed; i++) {
        err = mend_repair_once(writer, key, whole, is_elsewhere, &is_needed, detail);
        if (err != ERR_OK && err != ERR_BUSY) {
            return err;
        }
        is_repaired = is_repaired || (is_needed && err == ERR_OK);
    }
    if (is_needed) {
        return err_set(detail, ERR_BUSY, "what was written again is damaged, or changes all the time");
    }
    *ret_is_repaired = is_repaired;
    return ERR_OK;
}
