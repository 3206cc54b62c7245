#include "store/instance/purge.h"

#include <stdlib.h>

#include "base/arena.h"
#include "store/instance/instance_state.h"

enum {
    TEXT_SIZE_MAX =
        512 << 10, /* of the captures of a batch, but for the last: a request to a volume server */
    TEXT_MEMORY_MAX = 2 << 20,
    KEY_SIZE_MAX = 2 * INDEX_SURT_SIZE_MAX,
    FAILURES_MAX = 8, /* batches in a row of which nothing went */
};

struct purge {
    struct instance_session *session;
    const struct purge_config *config;
    size_t deletion_index; /* that is walked */
    struct buf from;       /* the range of the index */
    struct buf to;
    struct buf next;       /* where the batch behind this one begins; empty: there is none */
    struct capture *batch; /* BACKEND_PURGE_MAX; their texts are in the arena */
    size_t batch_count;
    size_t batch_size;
    struct arena arena;
    unsigned failures_count;
    uint64_t count;
};

/* Two deletions may mean one capture: it counts for the first of them. */
static bool purge_is_meant(const struct purge *purge, const struct capture *capture) {
    const struct purge_config *config = purge->config;
    if (config->is_wanted != NULL && !config->is_wanted(capture)) {
        return false;
    }
    for (size_t i = 0; i < purge->deletion_index; i++) {
        if (deletion_covers(&config->deletions[i], capture->surt, capture->url, capture->time_us)) {
            return false;
        }
    }
    return deletion_covers(&config->deletions[purge->deletion_index], capture->surt, capture->url,
                           capture->time_us);
}

static enum err purge_keep(struct purge *purge, const struct capture *capture) {
    struct capture *kept = &purge->batch[purge->batch_count];
    *kept = *capture;
    kept->surt = arena_copy(&purge->arena, capture->surt);
    kept->url = arena_copy(&purge->arena, capture->url);
    kept->mime = arena_copy(&purge->arena, capture->mime);
    if (kept->surt.data == NULL || kept->url.data == NULL || kept->mime.data == NULL) {
        return ERR_MEMORY;
    }
    purge->batch_count++;
    purge->batch_size += capture->surt.size + capture->url.size;
    return ERR_OK;
}

static bool purge_is_full(const struct purge *purge) {
    return purge->batch_count == BACKEND_PURGE_MAX || purge->batch_size >= TEXT_SIZE_MAX;
}

/* Two captures of one SURT and time cannot go together (ledger_check()): the other goes with the next batch.
 */
static bool purge_is_beside(const struct purge *purge, const struct capture *capture) {
    const struct capture *last = purge->batch_count > 0 ? &purge->batch[purge->batch_count - 1] : NULL;
    return last != NULL && last->time_us == capture->time_us && bytes_equal(last->surt, capture->surt);
}

/* The next batch begins here, unless it begins before: what has gone by then is not found again. */
static void purge_resume_at(struct purge *purge, const struct capture *capture) {
    if (purge->next.size == 0) {
        index_put_capture_prefix(&purge->next, capture->surt, capture->time_us);
    }
}

/* One batch of the range into memory. ERR_NOT_FOUND: its end was reached. */
static enum err purge_collect(struct purge *purge, struct backend_session *backend, uint16_t volume,
                              struct err_detail *detail) {
    const struct backend_table *table = backend->backend->table;
    struct backend_cursor *cursor;
    struct capture capture;
    purge->batch_count = 0;
    purge->batch_size = 0;
    buf_clear(&purge->next);
    arena_reset(&purge->arena);
    enum err err =
        table->captures_open(backend, buf_bytes(&purge->from), buf_bytes(&purge->to), false, &cursor, detail);
    if (err != ERR_OK) {
        return err;
    }
    while (err == ERR_OK && !purge_is_full(purge) &&
           (err = table->captures_next(cursor, &capture, detail)) == ERR_OK) {
        capture.volume = volume;
        if (!purge_is_meant(purge, &capture)) {
            continue;
        }
        if (purge_is_beside(purge, &capture)) {
            purge_resume_at(purge, &capture);
            continue;
        }
        err = purge_keep(purge, &capture);
        if (err == ERR_OK && purge_is_full(purge)) {
            purge_resume_at(purge, &capture);
        }
    }
    table->cursor_close(cursor);
    return err;
}

static enum err purge_remove(struct purge *purge, struct backend_session *backend,
                             struct err_detail *detail) {
    const struct backend_table *table = backend->backend->table;
    size_t gone_count = 0;
    if (table->purge == NULL) {
        return err_set(detail, ERR_UNSUPPORTED, "what others keep is only read from here");
    }
    enum err err = table->purge(backend, purge->batch, purge->batch_count, &gone_count, detail);
    purge->count += gone_count;
    purge->failures_count = gone_count > 0 ? 0 : purge->failures_count + 1;
    return err == ERR_OK && purge->failures_count == FAILURES_MAX
               ? err_set(detail, ERR_BUSY, "captures that are to be deleted change all the time")
               : err;
}

static enum err purge_end_batch(struct purge *purge, struct backend_session *backend,
                                struct err_detail *detail) {
    const struct purge_config *config = purge->config;
    for (size_t i = 0; i < purge->batch_count && config->each != NULL; i++) {
        config->each(config->context, &purge->batch[i]);
    }
    enum err err = purge->batch_count > 0 ? purge_remove(purge, backend, detail) : ERR_OK;
    buf_clear(&purge->from);
    buf_put(&purge->from, buf_bytes(&purge->next));
    return err == ERR_OK ? purge->from.err : err;
}

/* A walk without batches for what is only counted: nothing goes, so nothing tells where to go on. */
static enum err purge_count_on(struct purge *purge, struct backend_session *backend, uint16_t volume,
                               struct err_detail *detail) {
    const struct backend_table *table = backend->backend->table;
    const struct purge_config *config = purge->config;
    struct backend_cursor *cursor;
    struct capture capture;
    enum err err =
        table->captures_open(backend, buf_bytes(&purge->from), buf_bytes(&purge->to), false, &cursor, detail);
    if (err != ERR_OK) {
        return err;
    }
    while ((err = table->captures_next(cursor, &capture, detail)) == ERR_OK) {
        capture.volume = volume;
        if (purge_is_meant(purge, &capture)) {
            purge->count++;
            if (config->each != NULL) {
                config->each(config->context, &capture);
            }
        }
        if (config->is_stopping != NULL && config->is_stopping(config->context)) {
            err = ERR_CANCELLED;
            break;
        }
    }
    table->cursor_close(cursor);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

static enum err purge_volume(struct purge *purge, size_t index, struct err_detail *detail) {
    const struct purge_config *config = purge->config;
    uint16_t number = purge->session->instance->slots[index].config->number;
    struct backend_session *backend;
    enum err err = instance_reach(purge->session, index, &backend, detail);
    if (err == ERR_OK && config->is_dry) {
        return purge_count_on(purge, backend, number, detail);
    }
    bool is_last = false;
    while (err == ERR_OK && !is_last) {
        if (config->is_stopping != NULL && config->is_stopping(config->context)) {
            return ERR_CANCELLED;
        }
        err = purge_collect(purge, backend, number, detail);
        is_last = purge->next.size == 0;
        err = err == ERR_NOT_FOUND ? ERR_OK : err;
        err = err == ERR_OK ? purge_end_batch(purge, backend, detail) : err;
    }
    return instance_note(purge->session->instance, index, err, detail);
}

/* ---- ranges ---- */

/* All SURTs that begin so. */
static void purge_set_prefix(struct purge *purge, struct bytes key) {
    buf_clear(&purge->from);
    buf_clear(&purge->to);
    buf_put(&purge->from, key);
    buf_put(&purge->to, key);
    buf_put_byte(&purge->to, 0xff); /* above every SURT */
}

static void purge_set_exact(struct purge *purge, const struct deletion *deletion) {
    buf_clear(&purge->from);
    buf_clear(&purge->to);
    index_put_capture_prefix(&purge->from, deletion->key, deletion->from_us);
    index_put_capture_prefix(&purge->to, deletion->key,
                             deletion->to_us < INT64_MAX ? deletion->to_us + 1 : INT64_MAX);
}

/*
 * The method and body of a request are arguments among the others of a URL, and all of them are sorted: such
 * captures are anywhere behind the "?". False: there is no such range.
 */
static bool purge_set_range(struct purge *purge, const struct deletion *deletion, unsigned number) {
    size_t end = bytes_find_byte(deletion->key, '?');
    bool has_arguments = end < deletion->key.size;
    if (number == 0 && deletion->is_exact && !has_arguments) {
        purge_set_exact(purge, deletion);
    } else if (number == 0 && !has_arguments) {
        purge_set_prefix(purge, deletion->key);
    } else if (number == 0 || (number == 1 && deletion->is_exact && !has_arguments)) {
        struct bytes path = bytes_slice(deletion->key, 0, end);
        purge_set_prefix(purge, path);
        purge->to.size--;
        buf_put_byte(&purge->from, '?');
        buf_put_string(&purge->to, "?\xff");
    } else {
        return false;
    }
    return true;
}

static enum err purge_walk(struct purge *purge, struct err_detail *detail) {
    const struct purge_config *config = purge->config;
    size_t volumes_count = purge->session->instance->slots_count;
    enum err err = ERR_OK;
    for (size_t i = 0; i < config->deletions_count; i++) {
        purge->deletion_index = i;
        for (size_t volume = 0; volume < volumes_count; volume++) {
            for (unsigned range = 0; purge_set_range(purge, &config->deletions[i], range); range++) {
                err = purge->from.err == ERR_OK ? purge->to.err : purge->from.err;
                err = err == ERR_OK ? purge_volume(purge, volume, detail) : err;
                if (err != ERR_OK) {
                    return err;
                }
            }
        }
    }
    return ERR_OK;
}

enum err purge_run(struct instance_session *session, const struct purge_config *config, uint64_t *ret_count,
                   struct err_detail *detail) {
    struct purge purge = {
        .session = session,
        .config = config,
        .batch = calloc(BACKEND_PURGE_MAX, sizeof *purge.batch),
    };
    arena_init(&purge.arena, TEXT_MEMORY_MAX);
    buf_init(&purge.from, KEY_SIZE_MAX);
    buf_init(&purge.to, KEY_SIZE_MAX);
    buf_init(&purge.next, KEY_SIZE_MAX);
    enum err err = purge.batch == NULL ? ERR_MEMORY : purge_walk(&purge, detail);
    *ret_count = purge.count;
    free(purge.batch);
    arena_done(&purge.arena);
    buf_done(&purge.from);
    buf_done(&purge.to);
    buf_done(&purge.next);
    return err;
}
