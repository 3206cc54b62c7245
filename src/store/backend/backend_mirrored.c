#include "store/backend/backend_mirrored.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/backend/backend_local.h"

struct mirrored_holding {
    struct backend *local;
    uint64_t mark;
    atomic_uint holders_count;
};

struct backend_mirrored {
    struct backend backend; /* first */
    pthread_mutex_t lock;   /* of the holding: held while a share of it is taken */
    struct mirrored_holding *holding;
    pthread_rwlock_t rules_lock;
    struct access_rules *rules;
    _Atomic size_t rules_count;
};

struct session_mirrored {
    struct backend_session session;   /* first */
    struct mirrored_holding *holding; /* NULL: there was none */
    struct backend_session *local;    /* of it */
    unsigned cursors_count;
};

struct cursor_mirrored {
    struct backend_cursor cursor; /* first */
    struct backend_cursor *local; /* NULL: there is nothing */
};

static struct backend_mirrored *mirrored(struct backend *backend) {
    return (struct backend_mirrored *)backend;
}

static struct session_mirrored *session_of(struct backend_session *session) {
    return (struct session_mirrored *)session;
}

/* ---- holdings ---- */

struct mirrored_holding *mirrored_holding_new(struct backend *take_local, uint64_t mark) {
    struct mirrored_holding *holding = malloc(sizeof *holding);
    if (holding == NULL) {
        take_local->table->close(take_local);
        return NULL;
    }
    *holding = (struct mirrored_holding){.local = take_local, .mark = mark, .holders_count = 1};
    return holding;
}

void mirrored_release(struct mirrored_holding *holding) {
    if (holding != NULL && atomic_fetch_sub(&holding->holders_count, 1) == 1) {
        holding->local->table->close(holding->local);
        free(holding);
    }
}

struct volume *mirrored_volume(const struct mirrored_holding *holding) {
    return backend_local_volume(holding->local);
}

uint64_t mirrored_mark(const struct mirrored_holding *holding) {
    return holding->mark;
}

void backend_mirrored_replace(struct backend *backend, struct mirrored_holding *take_holding) {
    struct backend_mirrored *here = mirrored(backend);
    if (take_holding != NULL) {
        take_holding->local->number = backend->number;
    }
    pthread_mutex_lock(&here->lock);
    struct mirrored_holding *old = here->holding;
    here->holding = take_holding;
    pthread_mutex_unlock(&here->lock);
    mirrored_release(old);
}

struct mirrored_holding *backend_mirrored_hold(struct backend *backend) {
    struct backend_mirrored *here = mirrored(backend);
    pthread_mutex_lock(&here->lock);
    struct mirrored_holding *holding = here->holding;
    if (holding != NULL) {
        atomic_fetch_add(&holding->holders_count, 1);
    }
    pthread_mutex_unlock(&here->lock);
    return holding;
}

bool backend_mirrored_is_stale(const struct backend_session *session) {
    const struct session_mirrored *from = (const struct session_mirrored *)session;
    struct backend_mirrored *here = mirrored(session->backend);
    pthread_mutex_lock(&here->lock);
    bool is_stale = here->holding != from->holding && from->cursors_count == 0;
    pthread_mutex_unlock(&here->lock);
    return is_stale;
}

/* ---- rules ---- */

void backend_mirrored_set_rules(struct backend *backend, struct access_rules *take_rules) {
    struct backend_mirrored *here = mirrored(backend);
    pthread_rwlock_wrlock(&here->rules_lock);
    struct access_rules *old = here->rules;
    here->rules = take_rules;
    here->rules_count = take_rules != NULL ? access_rules_count(take_rules) : 0;
    pthread_rwlock_unlock(&here->rules_lock);
    if (old != NULL) {
        access_rules_free(old);
    }
}

enum access_verdict backend_mirrored_check(struct backend *backend, struct bytes surt, int64_t time_us) {
    struct backend_mirrored *here = mirrored(backend);
    enum access_verdict verdict = ACCESS_ALLOW;
    if (here->rules_count == 0) {
        return verdict;
    }
    int64_t now_us = clock_wall_us(&clock_system);
    pthread_rwlock_rdlock(&here->rules_lock);
    if (here->rules != NULL) {
        verdict = access_rules_check(here->rules, surt, time_us, now_us);
    }
    pthread_rwlock_unlock(&here->rules_lock);
    return verdict;
}

/* ---- sessions ---- */

static enum err open_session(struct backend *backend, struct backend_session **ret_session) {
    struct session_mirrored *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return ERR_MEMORY;
    }
    session->session.backend = backend;
    session->holding = backend_mirrored_hold(backend);
    if (session->holding != NULL) {
        struct backend *local = session->holding->local;
        enum err err = local->table->session_open(local, &session->local);
        if (err != ERR_OK) {
            mirrored_release(session->holding);
            free(session);
            return err;
        }
    }
    *ret_session = &session->session;
    return ERR_OK;
}

static void close_session(struct backend_session *generic) {
    struct session_mirrored *session = session_of(generic);
    ASSERT(session->cursors_count == 0);
    if (session->local != NULL) {
        session->local->backend->table->session_close(session->local);
    }
    mirrored_release(session->holding);
    free(session);
}

/* ---- reading ---- */

static enum err missing(struct err_detail *detail) {
    return err_set(detail, ERR_NOT_FOUND, "the collection is not here any more");
}

static enum err get(struct backend_session *session, const struct key *key, struct bytes *ret_document,
                    struct err_detail *detail) {
    struct backend_session *local = session_of(session)->local;
    return local != NULL ? local->backend->table->get(local, key, ret_document, detail) : missing(detail);
}

static enum err get_record(struct backend_session *session, const struct location *location,
                           struct bytes *ret_record, struct err_detail *detail) {
    struct backend_session *local = session_of(session)->local;
    return local != NULL ? local->backend->table->get_record(local, location, ret_record, detail)
                         : missing(detail);
}

static enum err get_request(struct backend_session *session, const struct location *location,
                            struct bytes *ret_request, struct err_detail *detail) {
    struct backend_session *local = session_of(session)->local;
    return local != NULL ? local->backend->table->get_request(local, location, ret_request, detail)
                         : missing(detail);
}

static enum err find_block(struct backend_session *session, const uint8_t digest[KEY_DIGEST_SIZE],
                           uint16_t number, struct block *ret_block, struct err_detail *detail) {
    struct backend_session *local = session_of(session)->local;
    return local != NULL ? local->backend->table->find_block(local, digest, number, ret_block, detail)
                         : missing(detail);
}

static enum err stat_holding(struct backend_session *session, struct volume_stat *ret_stat,
                             struct err_detail *detail) {
    struct backend_session *local = session_of(session)->local;
    if (local == NULL) {
        *ret_stat = (struct volume_stat){0};
        return ERR_OK;
    }
    return local->backend->table->stat(local, ret_stat, detail);
}

/* ---- walking ---- */

static enum err make_cursor(struct backend_session *session, enum err err, struct backend_cursor *local,
                            struct backend_cursor **ret_cursor) {
    if (err != ERR_OK) {
        return err;
    }
    struct cursor_mirrored *cursor = malloc(sizeof *cursor);
    if (cursor == NULL) {
        if (local != NULL) {
            local->session->backend->table->cursor_close(local);
        }
        return ERR_MEMORY;
    }
    *cursor = (struct cursor_mirrored){.cursor = {.session = session}, .local = local};
    session_of(session)->cursors_count++;
    *ret_cursor = &cursor->cursor;
    return ERR_OK;
}

static enum err open_captures(struct backend_session *session, struct bytes from, struct bytes to,
                              bool in_reverse, struct backend_cursor **ret_cursor,
                              struct err_detail *detail) {
    struct backend_session *local = session_of(session)->local;
    struct backend_cursor *walk = NULL;
    enum err err = ERR_OK;
    if (local != NULL) {
        err = local->backend->table->captures_open(local, from, to, in_reverse, &walk, detail);
    }
    return make_cursor(session, err, walk, ret_cursor);
}

/* What is excluded here must not hide the same capture of another backend. */
static enum err next_capture(struct backend_cursor *generic, struct capture *ret_capture,
                             struct err_detail *detail) {
    struct backend_cursor *local = ((struct cursor_mirrored *)generic)->local;
    struct backend *backend = generic->session->backend;
    enum err err = local != NULL ? ERR_OK : ERR_NOT_FOUND;
    bool is_excluded = true;
    while (err == ERR_OK && is_excluded) {
        err = local->session->backend->table->captures_next(local, ret_capture, detail);
        is_excluded = err == ERR_OK && backend_mirrored_check(backend, ret_capture->surt,
                                                              ret_capture->time_us) == ACCESS_EXCLUDE;
    }
    return err;
}

static enum err open_blocks(struct backend_session *session, struct bytes from,
                            struct backend_cursor **ret_cursor, struct err_detail *detail) {
    struct backend_session *local = session_of(session)->local;
    struct backend_cursor *walk = NULL;
    enum err err = ERR_OK;
    if (local != NULL) {
        err = local->backend->table->blocks_open(local, from, &walk, detail);
    }
    return make_cursor(session, err, walk, ret_cursor);
}

static enum err next_block(struct backend_cursor *generic, struct key *ret_key, struct block *ret_block,
                           struct err_detail *detail) {
    struct backend_cursor *local = ((struct cursor_mirrored *)generic)->local;
    return local != NULL ? local->session->backend->table->blocks_next(local, ret_key, ret_block, detail)
                         : ERR_NOT_FOUND;
}

static void close_cursor(struct backend_cursor *generic) {
    struct cursor_mirrored *cursor = (struct cursor_mirrored *)generic;
    if (cursor->local != NULL) {
        cursor->local->session->backend->table->cursor_close(cursor->local);
    }
    session_of(generic->session)->cursors_count--;
    free(cursor);
}

/* ---- */

static void close_backend(struct backend *generic) {
    struct backend_mirrored *backend = mirrored(generic);
    mirrored_release(backend->holding);
    if (backend->rules != NULL) {
        access_rules_free(backend->rules);
    }
    pthread_rwlock_destroy(&backend->rules_lock);
    pthread_mutex_destroy(&backend->lock);
    free(backend);
}

static const struct backend_table mirrored_table = {
    .close = close_backend,
    .session_open = open_session,
    .session_close = close_session,
    .get = get,
    .get_record = get_record,
    .get_request = get_request,
    .find_block = find_block,
    .captures_open = open_captures,
    .captures_next = next_capture,
    .blocks_open = open_blocks,
    .blocks_next = next_block,
    .cursor_close = close_cursor,
    .stat = stat_holding,
};

struct backend *backend_mirrored_new(void) {
    struct backend_mirrored *backend = calloc(1, sizeof *backend);
    if (backend == NULL) {
        return NULL;
    }
    backend->backend.table = &mirrored_table;
    pthread_mutex_init(&backend->lock, NULL);
    pthread_rwlock_init(&backend->rules_lock, NULL);
    return &backend->backend;
}
