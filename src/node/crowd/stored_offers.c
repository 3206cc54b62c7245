#include "node/crowd/stored_offers.h"

#include <stdlib.h>

#include "protocol/ring/charter.h"
#include "run/pool.h"

enum { WAITING_MAX = 64 };

struct stored_offers_wish {
    struct stored_offers *stored;
    struct pool_job job;
    uint64_t number;
    size_t size;
    uint8_t bytes[CROWD_WISH_SIZE_MAX];
};

struct stored_offers {
    struct stored_offers_config config;
    struct captures *captures;
    struct captures_session *session;
    struct pool pool; /* of one thread */
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

static bool can_be_found(const struct stored_offers *stored, const struct wish *wish) {
    return wish->kind == WISH_DIGEST ||
           (wish->kind == WISH_URL && stored->config.captures.mapping == CHARTER_BY_URL);
}

_Static_assert((int)WISH_HASH_SIZE == (int)RINGKEY_POSITION_SIZE, "both begin the SHA-256 of the SURT");

static bool stored_find(struct copies *copies, struct bytes bytes, struct ringkey *ret_key) {
    struct wish wish;
    if (!wish_read(bytes, &wish)) {
        return false;
    }
    return wish.kind == WISH_DIGEST ? copies_find_digest(copies, wish.digest, ret_key) == ERR_OK
                                    : find_url(copies, &wish, ret_key);
}

/* It is checked as what comes from others is: what rotted on the disk is not handed on. */
static bool stored_offer(struct stored_offers *stored, const struct ringkey *key) {
    struct bytes description;
    struct bytes payload;
    struct captured captured;
    enum err err = captures_read_own(stored->captures, key, &description, &payload, NULL);
    err = err == ERR_OK ? captures_open(stored->session, key, description, payload, &captured, NULL) : err;
    if (err == ERR_OK) {
        offers_put(stored->config.offers, key, &captured, captured.surt, bytes_of(NULL, 0));
    }
    return err == ERR_OK;
}

static void stored_offers_run(void *context, size_t seat) {
    struct stored_offers_wish *waiting = context;
    struct stored_offers *stored = waiting->stored;
    (void)seat;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    struct bytes wish = bytes_of(waiting->bytes, waiting->size);
    struct ringkey key;
    bool is_offered = stored_find(stored->config.copies, wish, &key) && stored_offer(stored, &key);
    size_t size = is_offered ? offers_have(stored->config.offers, wish, memory) : 0;
    stored->config.looked(stored->config.context, waiting->number, bytes_of(memory, size));
    free(waiting);
}

/* ---- life ---- */

enum err stored_offers_start(const struct stored_offers_config *config,
                             struct stored_offers **ret_stored_offers) {
    struct pool_config pool = {
        .name = "stored-offers", .threads_max = 1, .jobs_max = WAITING_MAX, .cancelled = free};
    struct stored_offers *stored = calloc(1, sizeof *stored);
    if (stored == NULL) {
        return ERR_MEMORY;
    }
    stored->config = *config;
    stored->captures = captures_new(&config->captures);
    stored->session = stored->captures != NULL ? captures_session_new(stored->captures) : NULL;
    enum err err = stored->session != NULL ? pool_start(&stored->pool, &pool) : ERR_MEMORY;
    if (err != ERR_OK) {
        stored_offers_free(stored);
        return err;
    }
    *ret_stored_offers = stored;
    return ERR_OK;
}

void stored_offers_stop(struct stored_offers *stored) {
    pool_stop(&stored->pool);
}

void stored_offers_free(struct stored_offers *stored) {
    stored_offers_stop(stored);
    captures_session_free(stored->session);
    if (stored->captures != NULL) {
        captures_free(stored->captures);
    }
    free(stored);
}

bool stored_offers_look(struct stored_offers *stored, uint64_t number, struct bytes bytes) {
    struct wish wish;
    if (!wish_read(bytes, &wish) || !can_be_found(stored, &wish)) {
        return false;
    }
    struct stored_offers_wish *waiting = malloc(sizeof *waiting);
    if (waiting == NULL) {
        return false;
    }
    *waiting = (struct stored_offers_wish){.stored = stored, .number = number, .size = bytes.size};
    waiting->job = (struct pool_job){.run = stored_offers_run, .context = waiting};
    memcpy(waiting->bytes, bytes.data, bytes.size);
    bool is_taken = pool_try(&stored->pool, &waiting->job);
    if (!is_taken) {
        free(waiting);
    }
    return is_taken;
}
