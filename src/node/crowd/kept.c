#include "node/crowd/kept.h"

#include <pthread.h>
#include <stdlib.h>

#include "protocol/ring/charter.h"
#include "run/thread.h"

enum { WAITING_MAX = 64 };

struct kept_wish {
    uint64_t number;
    size_t size;
    uint8_t bytes[CROWD_WISH_SIZE_MAX];
};

struct kept {
    struct kept_config config;
    struct captures *captures;
    struct captures_session *session;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopping;                     /* lock, as below */
    struct kept_wish wishes[WAITING_MAX]; /* a circle */
    size_t first;
    size_t count;
};

/* ---- looking ---- */

static bool is_better(const struct wish *wish, const struct ringkey *key, const struct ringkey *best) {
    int64_t time_us = ringkey_time_us(key);
    return wish_takes_time(wish, time_us) &&
           (best == NULL || wish_prefers(wish, time_us, ringkey_time_us(best)));
}

/* The best one is the last before a time, or the first from it on. */
static bool find_url(struct copies *copies, const struct wish *wish, struct ringkey *ret_key) {
    int64_t bound_us = INT64_MAX;
    struct ringkey key;
    bool is_found = false;
    if (wish->time == WISH_NEAREST) {
        bound_us = wish->from_us;
    } else if (wish->time == WISH_BETWEEN && wish->to_us < INT64_MAX) {
        bound_us = wish->to_us + 1;
    }
    if (copies_find_last(copies, wish->hash, bound_us, &key) == ERR_OK && is_better(wish, &key, NULL)) {
        *ret_key = key;
        is_found = true;
    }
    bool may_be_later = wish->time == WISH_NEAREST;
    if (may_be_later && copies_find_first(copies, wish->hash, bound_us, &key) == ERR_OK &&
        is_better(wish, &key, is_found ? ret_key : NULL)) {
        *ret_key = key;
        is_found = true;
    }
    return is_found;
}

static bool can_be_found(const struct kept *kept, const struct wish *wish) {
    return wish->kind == WISH_DIGEST ||
           (wish->kind == WISH_URL && kept->config.captures.mapping == CHARTER_BY_URL);
}

_Static_assert((int)WISH_HASH_SIZE == (int)RINGKEY_PLACE_SIZE, "both begin the SHA-256 of the SURT");

static bool find(struct copies *copies, struct bytes bytes, struct ringkey *ret_key) {
    struct wish wish;
    if (!wish_read(bytes, &wish)) {
        return false;
    }
    return wish.kind == WISH_DIGEST ? copies_find_digest(copies, wish.digest, ret_key) == ERR_OK
                                    : find_url(copies, &wish, ret_key);
}

/* It is checked as what comes from others is: what rotted on the disk is not handed on. */
static bool offer(struct kept *kept, const struct ringkey *key) {
    struct bytes description;
    struct bytes payload;
    struct captured captured;
    enum err err = captures_read_own(kept->captures, key, &description, &payload, NULL);
    err = err == ERR_OK ? captures_open(kept->session, key, description, payload, &captured, NULL) : err;
    if (err == ERR_OK) {
        offers_put(kept->config.offers, key, &captured, captured.surt, bytes_of(NULL, 0));
    }
    return err == ERR_OK;
}

static void look(struct kept *kept, const struct kept_wish *waiting) {
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    struct bytes wish = bytes_of(waiting->bytes, waiting->size);
    struct ringkey key;
    bool is_offered = find(kept->config.copies, wish, &key) && offer(kept, &key);
    size_t size = is_offered ? offers_have(kept->config.offers, wish, memory) : 0;
    kept->config.looked(kept->config.context, waiting->number, bytes_of(memory, size));
}

static bool next_wish(struct kept *kept, struct kept_wish *ret_wish) {
    pthread_mutex_lock(&kept->lock);
    while (kept->count == 0 && !kept->is_stopping) {
        pthread_cond_wait(&kept->changed, &kept->lock);
    }
    bool is_there = !kept->is_stopping;
    if (is_there) {
        *ret_wish = kept->wishes[kept->first];
        kept->first = (kept->first + 1) % WAITING_MAX;
        kept->count--;
    }
    pthread_mutex_unlock(&kept->lock);
    return is_there;
}

static void *run(void *context) {
    struct kept *kept = context;
    struct kept_wish wish;
    while (next_wish(kept, &wish)) {
        look(kept, &wish);
    }
    return NULL;
}

/* ---- life ---- */

enum err kept_start(const struct kept_config *config, struct kept **ret_kept) {
    struct kept *kept = calloc(1, sizeof *kept);
    if (kept == NULL) {
        return ERR_MEMORY;
    }
    kept->config = *config;
    pthread_mutex_init(&kept->lock, NULL);
    pthread_cond_init(&kept->changed, NULL);
    kept->captures = captures_new(&config->captures);
    kept->session = kept->captures != NULL ? captures_session_new(kept->captures) : NULL;
    kept->has_thread = kept->session != NULL && thread_start(&kept->thread, "kept", run, kept) == 0;
    if (!kept->has_thread) {
        enum err err = kept->session == NULL ? ERR_MEMORY : ERR_SYSTEM;
        kept_free(kept);
        return err;
    }
    *ret_kept = kept;
    return ERR_OK;
}

void kept_stop(struct kept *kept) {
    pthread_mutex_lock(&kept->lock);
    kept->is_stopping = true;
    pthread_cond_signal(&kept->changed);
    pthread_mutex_unlock(&kept->lock);
    if (kept->has_thread) {
        pthread_join(kept->thread, NULL);
        kept->has_thread = false;
    }
}

void kept_free(struct kept *kept) {
    kept_stop(kept);
    if (kept->session != NULL) {
        captures_session_free(kept->session);
    }
    if (kept->captures != NULL) {
        captures_free(kept->captures);
    }
    pthread_mutex_destroy(&kept->lock);
    pthread_cond_destroy(&kept->changed);
    free(kept);
}

bool kept_look(struct kept *kept, uint64_t number, struct bytes bytes) {
    struct wish wish;
    if (!wish_read(bytes, &wish) || !can_be_found(kept, &wish)) {
        return false;
    }
    pthread_mutex_lock(&kept->lock);
    bool is_taken = kept->count < WAITING_MAX && !kept->is_stopping;
    if (is_taken) {
        struct kept_wish *waiting = &kept->wishes[(kept->first + kept->count++) % WAITING_MAX];
        waiting->number = number;
        waiting->size = bytes.size;
        memcpy(waiting->bytes, bytes.data, bytes.size);
        pthread_cond_signal(&kept->changed);
    }
    pthread_mutex_unlock(&kept->lock);
    return is_taken;
}
