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
    struct backend_table table;
    pthread_mutex_t lock; /* of the holding: held while a share of it is taken */
    struct mirrored_holding *holding;
    pthread_rwlock_t rules_lock;
    struct access_rules *rules;
    _Atomic size_t rules_count;
};

struct session_mirrored {
    struct local_session local; /* first: it is read as any volume is */
    struct mirrored_holding *holding;
};

static struct backend_mirrored *mirrored(struct backend *backend) {
    return (struct backend_mirrored *)backend;
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
    bool is_stale = here->holding != from->holding && from->local.cursors_count == 0;
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
    access_rules_free(old);
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
    struct mirrored_holding *holding = backend_mirrored_hold(backend);
    if (holding == NULL) {
        return ERR_NOT_FOUND;
    }
    struct session_mirrored *session = calloc(1, sizeof *session);
    if (session == NULL) {
        mirrored_release(holding);
        return ERR_MEMORY;
    }
    local_session_init(&session->local, backend, mirrored_volume(holding));
    session->holding = holding;
    *ret_session = &session->local.session;
    return ERR_OK;
}

static void close_session(struct backend_session *generic) {
    struct session_mirrored *session = (struct session_mirrored *)generic;
    ASSERT(session->local.cursors_count == 0);
    local_session_done(&session->local);
    mirrored_release(session->holding);
    free(session);
}

/* What is excluded here must not hide the same capture of another backend. */
static enum err next_capture(struct backend_cursor *cursor, struct capture *ret_capture,
                             struct err_detail *detail) {
    struct backend *backend = cursor->session->backend;
    enum err err;
    do {
        err = backend_local_table.captures_next(cursor, ret_capture, detail);
    } while (err == ERR_OK &&
             backend_mirrored_check(backend, ret_capture->surt, ret_capture->time_us) == ACCESS_EXCLUDE);
    return err;
}

/* ---- */

static void close_backend(struct backend *generic) {
    struct backend_mirrored *backend = mirrored(generic);
    mirrored_release(backend->holding);
    access_rules_free(backend->rules);
    pthread_rwlock_destroy(&backend->rules_lock);
    pthread_mutex_destroy(&backend->lock);
    free(backend);
}

struct backend *backend_mirrored_new(void) {
    struct backend_mirrored *backend = calloc(1, sizeof *backend);
    if (backend == NULL) {
        return NULL;
    }
    backend->table = (struct backend_table){
        .close = close_backend,
        .session_open = open_session,
        .session_close = close_session,
        .get = backend_local_table.get,
        .get_record = backend_local_table.get_record,
        .get_request = backend_local_table.get_request,
        .find_block = backend_local_table.find_block,
        .captures_open = backend_local_table.captures_open,
        .captures_next = next_capture,
        .blocks_open = backend_local_table.blocks_open,
        .blocks_next = backend_local_table.blocks_next,
        .cursor_close = backend_local_table.cursor_close,
        .stat = backend_local_table.stat,
    };
    backend->backend.table = &backend->table;
    pthread_mutex_init(&backend->lock, NULL);
    pthread_rwlock_init(&backend->rules_lock, NULL);
    return &backend->backend;
}
