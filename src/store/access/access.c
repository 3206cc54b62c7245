#include "store/access/access.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/access/access_files.h"
#include "store/access/access_rules.h"

enum {
    LOOK_EVERY_US = 1000000,
    /* File systems date changes by a clock that ticks: what was changed so lately may change once more
     * without a new date. */
    SETTLED_US = 2000000,
    LOOK_SIZE_MAX = ACCESS_FILES_MAX * 8192,
};

struct access {
    const char *directory;
    const struct clock *clock;
    access_tell *tell;
    void *context;

    pthread_rwlock_t lock;      /* of rules; held while one capture is checked */
    struct access_rules *rules; /* what is in force */
    _Atomic(size_t) rules_count;
    _Atomic(uint64_t) look_at_us; /* when the files are due */

    /* For the thread that looks at the files; the others do not wait for it. */
    pthread_mutex_t looking;
    struct buf seen;              /* what the rules were read from */
    bool is_settled;              /* the files were at rest when they were read */
    enum err err;                 /* of reading them */
    char told[ERR_TEXT_SIZE_MAX]; /* what was wrong last, to say it once */
};

/* ---- reading ---- */

static void access_put_in_force(struct access *access, struct access_rules *rules) {
    pthread_rwlock_wrlock(&access->lock);
    struct access_rules *old = access->rules;
    access->rules = rules;
    atomic_store(&access->rules_count, access_rules_count(rules));
    pthread_rwlock_unlock(&access->lock);
    access_rules_free(old);
}

/* Look before reading: a change in between is seen the next time. */
static enum err access_refresh(struct access *access, struct err_detail *detail) {
    struct buf look;
    int64_t newest_us;
    buf_init(&look, LOOK_SIZE_MAX);
    enum err err = access_files_look(access->directory, &look, &newest_us, detail);
    bool is_same = access->is_settled && bytes_equal(buf_bytes(&look), buf_bytes(&access->seen));
    if (err != ERR_OK || is_same) {
        buf_done(&look);
        bool is_wrong_still = err == ERR_OK && access->err != ERR_OK;
        return is_wrong_still ? err_set(detail, access->err, "%s", access->told) : err;
    }
    buf_done(&access->seen);
    access->seen = look;
    access->is_settled = newest_us < clock_wall_us(access->clock) - SETTLED_US;
    struct access_rules *rules;
    err = access_files_load(access->directory, &rules, detail);
    if (err == ERR_OK) {
        access_put_in_force(access, rules);
    }
    access->err = err;
    return err;
}

static void access_tell_once(struct access *access, enum err err, const struct err_detail *detail) {
    const char *text = err == ERR_OK ? "" : err_detail_text(detail, err);
    if (strcmp(text, access->told) == 0) {
        return;
    }
    snprintf(access->told, sizeof access->told, "%s", text);
    if (err != ERR_OK && access->tell != NULL) {
        char sentence[ERR_TEXT_SIZE_MAX + 64];
        snprintf(sentence, sizeof sentence, "access rules: %s; the rules before stay in force", text);
        access->tell(access->context, sentence);
    }
}

/* Whoever looks has locked `looking`. */
static enum err access_look(struct access *access, struct err_detail *detail) {
    enum err err = access_refresh(access, detail);
    access_tell_once(access, err, detail);
    atomic_store(&access->look_at_us, clock_monotonic_us(access->clock) + LOOK_EVERY_US);
    return err;
}

static void access_refresh_if_due(struct access *access) {
    uint64_t now_us = clock_monotonic_us(access->clock);
    if (now_us < atomic_load_explicit(&access->look_at_us, memory_order_relaxed) ||
        pthread_mutex_trylock(&access->looking) != 0) {
        return;
    }
    if (now_us >= atomic_load(&access->look_at_us)) {
        struct err_detail detail = {0};
        (void)access_look(access, &detail); /* it was told */
    }
    pthread_mutex_unlock(&access->looking);
}

/* ---- the interface ---- */

enum err access_open(const char *directory, const struct clock *clock, access_tell *tell, void *context,
                     struct access **ret_access, struct err_detail *detail) {
    struct access *access = calloc(1, sizeof *access);
    if (access == NULL) {
        return ERR_MEMORY;
    }
    access->directory = directory;
    access->clock = clock;
    access->tell = tell;
    access->context = context;
    /* Without this, readers that follow each other closely would keep new rules out for ever. */
    pthread_rwlockattr_t kind;
    pthread_rwlockattr_init(&kind);
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&access->lock, &kind);
    pthread_rwlockattr_destroy(&kind);
    pthread_mutex_init(&access->looking, NULL);
    buf_init(&access->seen, LOOK_SIZE_MAX);
    enum err err = access_refresh(access, detail);
    atomic_store(&access->look_at_us, clock_monotonic_us(clock) + LOOK_EVERY_US);
    if (err != ERR_OK) {
        access_close(access);
        return err;
    }
    *ret_access = access;
    return ERR_OK;
}

void access_close(struct access *access) {
    access_rules_free(access->rules);
    buf_done(&access->seen);
    pthread_rwlock_destroy(&access->lock);
    pthread_mutex_destroy(&access->looking);
    free(access);
}

enum err access_reload(struct access *access, struct err_detail *detail) {
    struct err_detail own = {0};
    pthread_mutex_lock(&access->looking);
    enum err err = access_look(access, &own);
    pthread_mutex_unlock(&access->looking);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s", err_detail_text(&own, err));
}

enum access_verdict access_check(struct access *access, struct bytes surt, int64_t time_us) {
    if (!access_has_rules(access)) {
        return ACCESS_ALLOW;
    }
    int64_t now_us = clock_wall_us(access->clock);
    pthread_rwlock_rdlock(&access->lock);
    enum access_verdict verdict = access_rules_check(access->rules, surt, time_us, now_us);
    pthread_rwlock_unlock(&access->lock);
    return verdict;
}

bool access_has_rules(struct access *access) {
    access_refresh_if_due(access);
    return atomic_load_explicit(&access->rules_count, memory_order_relaxed) > 0;
}
