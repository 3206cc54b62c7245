#include "store/keyset/keyset_feed.h"

#include <stdlib.h>

#include "store/index/index_cursor.h"
#include "store/volume/follow.h"

struct feed_volume {
    uint16_t number;
    const struct index *index;
    struct follow *follow;
};

struct keyset_feed {
    struct keyset *keyset;
    struct instance *instance;
    struct instance_session *session;
    struct feed_volume *volumes;
    size_t volumes_count;
    bool is_placed;           /* the follows are where the set is */
    keyset_feed_added *added; /* NULL: nobody wants to know */
    void *added_context;
    struct buf from;
    struct buf to;
};

/* ---- captures whose document may have gone ---- */

/* What ails the store is no reason to throw the set away. */
static enum err feed_of_the_store(enum err err) {
    return err == ERR_CORRUPT || err == ERR_MISMATCH ? ERR_IO : err;
}

static enum err feed_check(struct keyset_feed *feed, const struct capture *capture, bool *ret_is_alive) {
    enum err err = instance_check(feed->session, capture);
    *ret_is_alive = err == ERR_OK;
    return err == ERR_NOT_FOUND ? ERR_OK : feed_of_the_store(err);
}

/* Is there a live capture of this SURT, time and digest in the volume? */
static enum err feed_look_in_volume(struct keyset_feed *feed, const struct feed_volume *volume,
                                    const struct ringkey *key, bool *ret_is_alive) {
    struct index_cursor *cursor;
    struct capture capture;
    enum err err =
        index_cursor_open(volume->index, buf_bytes(&feed->from), buf_bytes(&feed->to), false, &cursor);
    if (err != ERR_OK) {
        return feed_of_the_store(err);
    }
    while (!*ret_is_alive && (err = index_cursor_next(cursor, &capture)) == ERR_OK) {
        if (memcmp(capture.digest, ringkey_digest(key), RINGKEY_DIGEST_SIZE) != 0) {
            continue;
        }
        capture.volume = volume->number;
        err = feed_check(feed, &capture, ret_is_alive);
        if (err != ERR_OK) {
            break;
        }
    }
    index_cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : feed_of_the_store(err);
}

static enum err feed_look_for_capture(struct keyset_feed *feed, const struct ringkey *key,
                                      bool *ret_is_alive) {
    struct keyset_entry entry;
    *ret_is_alive = false;
    enum err err = keyset_find(feed->keyset, key, &entry);
    if (err != ERR_OK) {
        return err == ERR_NOT_FOUND ? ERR_CORRUPT : err; /* the digest names it */
    }
    int64_t time_us = ringkey_time_us(key);
    buf_clear(&feed->from);
    buf_clear(&feed->to);
    index_put_capture_prefix(&feed->from, entry.surt, time_us);
    index_put_capture_prefix(&feed->to, entry.surt, time_us + 1);
    if (feed->from.err != ERR_OK || feed->to.err != ERR_OK) {
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < feed->volumes_count && err == ERR_OK && !*ret_is_alive; i++) {
        err = feed_look_in_volume(feed, &feed->volumes[i], key, ret_is_alive);
    }
    return err;
}

/* A reference was dropped. If it was the last one, all captures of the document go. */
static enum err feed_take_deletion(struct keyset_feed *feed, const struct feed_volume *volume,
                                   const struct ledger_entry *entry, struct err_detail *detail) {
    struct capture capture = {.volume = volume->number, .block_number = entry->number};
    struct key located;
    struct block block;
    memcpy(capture.digest, entry->digest, sizeof capture.digest);
    if (instance_locate(feed->session, &capture, &located, &block, NULL) != ERR_NOT_FOUND) {
        return ERR_OK;
    }
    enum err err = keyset_commit(feed->keyset, detail); /* what was put just now is looked for too */
    struct ringkey key;
    struct ringkey *behind = NULL;
    while (err == ERR_OK) {
        bool is_alive;
        err = keyset_find_digest(feed->keyset, entry->digest, behind, &key);
        behind = &key;
        if (err == ERR_NOT_FOUND) {
            return ERR_OK;
        }
        err = err == ERR_OK ? feed_look_for_capture(feed, &key, &is_alive) : err;
        if (err == ERR_OK && !is_alive) {
            err = keyset_remove(feed->keyset, &key, detail);
        }
    }
    return err;
}

/* A capture was removed: no other of the same key may be there. */
static enum err feed_take_removal(struct keyset_feed *feed, const struct feed_volume *volume,
                                  const struct ledger_entry *entry, struct err_detail *detail) {
    struct capture capture = ledger_capture(entry);
    capture.volume = volume->number;
    struct ringkey key = keyset_key(feed->keyset, &capture);
    bool contains = false;
    bool is_alive = false;
    enum err err = keyset_commit(feed->keyset, detail); /* what was put just now is looked for too */
    err = err == ERR_OK ? keyset_contains(feed->keyset, &key, &contains) : err;
    if (err == ERR_OK && contains) {
        err = feed_look_for_capture(feed, &key, &is_alive);
    }
    return err == ERR_OK && contains && !is_alive ? keyset_remove(feed->keyset, &key, detail) : err;
}

/* ---- records ---- */

static enum err feed_enter(struct keyset_feed *feed, const struct capture *capture,
                           struct err_detail *detail) {
    struct ringkey key;
    bool is_known = true;
    enum err err = ERR_OK;
    if (feed->added != NULL) {
        key = keyset_key(feed->keyset, capture);
        err = keyset_contains(feed->keyset, &key, &is_known);
    }
    err = err == ERR_OK ? keyset_put(feed->keyset, capture, detail) : err;
    if (err == ERR_OK && !is_known) {
        feed->added(feed->added_context, &key);
    }
    return err;
}

static enum err feed_take_capture(struct keyset_feed *feed, const struct feed_volume *volume,
                                  const struct ledger_entry *entry, struct err_detail *detail) {
    struct capture capture = ledger_capture(entry);
    capture.volume = volume->number;
    bool is_alive = true;
    enum err err = ERR_OK;
    if (index_can_hold(&capture)) { /* a record may stay when its capture is removed, for others */
        err = feed_of_the_store(index_has_capture(volume->index, &capture, &is_alive));
    }
    if (err == ERR_OK && is_alive) {
        err = feed_check(feed, &capture, &is_alive);
    }
    if (err != ERR_OK) {
        return err_set(detail, err, "a capture cannot be looked up: %s", err_text(err));
    }
    return is_alive ? feed_enter(feed, &capture, detail) : ERR_OK; /* else it was removed since */
}

static enum err feed_take_record(struct keyset_feed *feed, const struct feed_volume *volume,
                                 const struct ledger_entry *entry, struct err_detail *detail) {
    if (entry->kind == LEDGER_DELETION) {
        return feed_take_deletion(feed, volume, entry, detail);
    }
    if (entry->kind == LEDGER_OTHER || entry->surt.size == 0) {
        return ERR_OK;
    }
    if (entry->kind == LEDGER_REMOVAL) {
        return feed_take_removal(feed, volume, entry, detail);
    }
    return feed_take_capture(feed, volume, entry, detail);
}

/* Adds what it took to *count. */
static enum err feed_read_volume(struct keyset_feed *feed, const struct feed_volume *volume,
                                 size_t records_max, size_t *count, struct err_detail *detail) {
    struct ledger_entry entry;
    enum err err = ERR_OK;
    size_t before = *count;
    while (*count < records_max && (err = follow_next(volume->follow, &entry, detail)) == ERR_OK) {
        err = feed_take_record(feed, volume, &entry, detail);
        if (err != ERR_OK) {
            break;
        }
        ++*count;
    }
    follow_pause(volume->follow);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    if (*count > before) {
        struct index_position position = follow_position(volume->follow);
        keyset_set_position(feed->keyset, volume->number, &position);
    }
    return ERR_OK;
}

/* ---- positions ---- */

/* A volume that is down is still one of the archive's; one that is not named any more has taken its captures
 * along. */
static enum err feed_check_volumes(struct keyset_feed *feed, struct err_detail *detail) {
    uint16_t number = 0;
    enum err err;
    for (uint32_t from = 0; from <= UINT16_MAX; from = number + UINT32_C(1)) {
        err = keyset_find_volume(feed->keyset, (uint16_t)from, &number);
        if (err != ERR_OK) {
            return err == ERR_NOT_FOUND ? ERR_OK : err;
        }
        if (instance_find_volume(feed->instance, number) == instance_volumes_count(feed->instance)) {
            return err_set(detail, ERR_MISMATCH, "volume %u is no longer one of the archive's", number);
        }
    }
    return ERR_OK;
}

static enum err feed_place_follows(struct keyset_feed *feed, struct err_detail *detail) {
    enum err err = feed_check_volumes(feed, detail);
    for (size_t i = 0; i < feed->volumes_count && err == ERR_OK; i++) {
        struct index_position position;
        err = keyset_position(feed->keyset, feed->volumes[i].number, &position);
        if (err == ERR_OK) {
            follow_seek(feed->volumes[i].follow, &position);
        }
    }
    feed->is_placed = err == ERR_OK;
    return err;
}

static enum err feed_run_batch(struct keyset_feed *feed, size_t records_max, size_t *ret_count,
                               struct err_detail *detail) {
    size_t count = 0;
    enum err err = feed->is_placed ? ERR_OK : feed_place_follows(feed, detail);
    for (size_t i = 0; i < feed->volumes_count && err == ERR_OK; i++) {
        err = feed_read_volume(feed, &feed->volumes[i], records_max, &count, detail);
    }
    err = err == ERR_OK && count > 0 ? keyset_commit(feed->keyset, detail) : err;
    *ret_count = count;
    return err;
}

enum err keyset_feed_run(struct keyset_feed *feed, size_t records_max, bool *ret_has_more,
                         struct err_detail *detail) {
    size_t count = 0;
    struct err_detail first = {0};
    enum err err = feed_run_batch(feed, records_max, &count, &first);
    if (err == ERR_OK) {
        *ret_has_more = count >= records_max;
        return ERR_OK;
    }
    feed->is_placed = false;
    if (err == ERR_CORRUPT || err == ERR_MISMATCH) {
        *ret_has_more = true;
        return keyset_clear(feed->keyset, detail);
    }
    enum err mended = keyset_mend(feed->keyset, detail); /* as it was committed last */
    return mended != ERR_OK ? mended : err_set(detail, err, "%s", err_detail_text(&first, err));
}

/* ---- begin and end ---- */

static bool feed_add_volumes(struct keyset_feed *feed) {
    size_t count = instance_volumes_count(feed->instance);
    feed->volumes = calloc(count + 1, sizeof *feed->volumes);
    for (size_t i = 0; i < count && feed->volumes != NULL; i++) {
        struct instance_volume volume;
        instance_volume(feed->instance, i, &volume);
        if (volume.volume == NULL) {
            continue; /* remote, or down */
        }
        struct feed_volume *added = &feed->volumes[feed->volumes_count];
        *added = (struct feed_volume){
            .number = volume.number,
            .index = volume_index(volume.volume),
            .follow = follow_new(volume.volume),
        };
        if (added->follow == NULL) {
            return false;
        }
        feed->volumes_count++;
    }
    return feed->volumes != NULL;
}

struct keyset_feed *keyset_feed_new(struct keyset *keyset, struct instance *instance) {
    struct keyset_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) {
        return NULL;
    }
    feed->keyset = keyset;
    feed->instance = instance;
    buf_init(&feed->from, 2 * INDEX_SURT_SIZE_MAX);
    buf_init(&feed->to, 2 * INDEX_SURT_SIZE_MAX);
    feed->session = instance_session_new(instance);
    if (feed->session == NULL || !feed_add_volumes(feed)) {
        keyset_feed_free(feed);
        return NULL;
    }
    return feed;
}

void keyset_feed_listen(struct keyset_feed *feed, keyset_feed_added *added, void *context) {
    feed->added = added;
    feed->added_context = context;
}

void keyset_feed_free(struct keyset_feed *feed) {
    for (size_t i = 0; i < feed->volumes_count; i++) {
        follow_free(feed->volumes[i].follow);
    }
    free(feed->volumes);
    instance_session_free(feed->session);
    buf_done(&feed->from);
    buf_done(&feed->to);
    free(feed);
}
