/* The part of mirror that decides which batch comes from which source. */
#include "protocol/mirror/mirror_state.h"

static const uint64_t SECOND_US = 1000000;
static const uint64_t UNKNOWN_RATE = 256 << 10; /* bytes a second: small first batches, soon measured */
static const uint64_t UNKNOWN_DELAY_US = 100000;
static const uint64_t LATE_US = 2000000; /* beyond LATE_FACTOR times what was expected */

static const uint64_t RATE_MAX = UINT64_C(1) << 40; /* products with a second in microseconds fit 64 bits */

static const uint64_t LOOK_US_MAX = 2000000;
static const uint64_t NEEDED_SIZE_MAX = 4 << 20; /* then it is seen whether others give something by now */

static const uint64_t ALONE_US_MIN = 500000;

enum {
    LATE_FACTOR = 3,
    ALONE_FACTOR = 8, /* times as long as the source that withholds it would take, if only that one is known
                         to have it */
    ALONE_PART = 2,   /* of need_us, at most */
};

/* ---- sources ---- */

static uint64_t rate_of(const struct mirror_neighbour *neighbour) {
    uint64_t rate = neighbour->rate > 0 ? neighbour->rate : neighbour->source.bandwidth;
    rate = rate > 0 ? rate : UNKNOWN_RATE;
    return rate < RATE_MAX ? rate : RATE_MAX;
}

static uint64_t duration_us(uint64_t size, uint64_t rate) {
    uint64_t seconds = size / rate;
    return seconds > INT32_MAX ? INT32_MAX * SECOND_US : seconds * SECOND_US + size % rate * SECOND_US / rate;
}

static uint64_t mirror_expected_us(const struct mirror_neighbour *neighbour, uint64_t size) {
    uint64_t delay_us = neighbour->source.delay_us > 0 ? neighbour->source.delay_us : UNKNOWN_DELAY_US;
    return delay_us + duration_us(size, rate_of(neighbour));
}

/* May it be asked for the target, now or when it is idle again? */
static bool mirror_is_candidate(const struct mirror *mirror, const struct mirror_neighbour *neighbour,
                                uint64_t now_us) {
    return neighbour->has_version && !neighbour->lacks_target && !mirror_is_barred(neighbour, now_us) &&
           version_compare(&neighbour->version, &mirror->target) >= 0;
}

size_t mirror_candidates(const struct mirror *mirror, uint64_t now_us) {
    size_t count = 0;
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        count += mirror_is_candidate(mirror, &mirror->neighbours[i], now_us);
    }
    return count;
}

static bool is_idle(const struct mirror_neighbour *neighbour, uint64_t now_us) {
    return neighbour->batch == 0 && retry_is_due(&neighbour->fetch, now_us);
}

static uint64_t size_left(const struct mirror *mirror) {
    uint64_t size = mirror->wanted_size;
    for (size_t i = 0; i < mirror->batches_count; i++) {
        size += mirror->batches[i].size;
    }
    return size;
}

enum choice { ANY, IDLE, IDLE_THAT_OFFERS, IDLE_THAT_WITHHOLDS };

static bool is_eligible(const struct mirror *mirror, const struct mirror_neighbour *neighbour,
                        enum choice choice, uint64_t now_us) {
    return mirror_is_candidate(mirror, neighbour, now_us) && (choice == ANY || is_idle(neighbour, now_us)) &&
           (choice != IDLE_THAT_OFFERS || neighbour->offered_size > 0) &&
           (choice != IDLE_THAT_WITHHOLDS || neighbour->withheld_size > 0);
}

/* The quickest of the candidates for what is left, or a large batch of it; NULL: none. */
static struct mirror_neighbour *find_best(const struct mirror *mirror, enum choice choice, uint64_t now_us) {
    struct mirror_neighbour *best = NULL;
    uint64_t best_us = UINT64_MAX;
    uint64_t size = size_left(mirror);
    size = size < mirror->config.batch_size_max ? size : mirror->config.batch_size_max;
    size = size > mirror->config.batch_size_min ? size : mirror->config.batch_size_min;
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        uint64_t cost_us = mirror_expected_us(neighbour, size);
        if (is_eligible(mirror, neighbour, choice, now_us) && cost_us < best_us) {
            best = neighbour;
            best_us = cost_us;
        }
    }
    return best;
}

struct mirror_neighbour *mirror_best(const struct mirror *mirror, uint64_t now_us) {
    return find_best(mirror, ANY, now_us);
}

/* ---- batches ---- */

static struct mirror_batch *find_batch(const struct mirror *mirror, uint64_t number) {
    for (size_t i = 0; i < mirror->batches_count; i++) {
        if (mirror->batches[i].number == number) {
            return &mirror->batches[i];
        }
    }
    return NULL;
}

static size_t count_holders(const struct mirror *mirror, uint64_t number) {
    size_t count = 0;
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        count += mirror->neighbours[i].batch == number;
    }
    return count;
}

/* A source that still works on it need not go on. */
static void cancel(struct mirror *mirror, uint64_t number) {
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        if (neighbour->batch == number) {
            neighbour->batch = 0;
            neighbour->cancelled = number;
        }
    }
}

static void remove_batch(struct mirror *mirror, struct mirror_batch *batch) {
    cancel(mirror, batch->number);
    *batch = mirror->batches[--mirror->batches_count];
}

void mirror_drop_batches(struct mirror *mirror) {
    while (mirror->batches_count > 0) {
        remove_batch(mirror, &mirror->batches[mirror->batches_count - 1]);
    }
}

static uint64_t late_at(const struct mirror_neighbour *neighbour) {
    return neighbour->started_us + LATE_FACTOR * neighbour->expected_us + LATE_US;
}

/* Bytes a second that come from those at work, as far as they do. */
static uint64_t rate_at_work(const struct mirror *mirror, uint64_t now_us) {
    uint64_t rate = 0;
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        const struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        rate += neighbour->batch != 0 && now_us < late_at(neighbour) ? rate_of(neighbour) : 0;
    }
    return rate < RATE_MAX ? rate : RATE_MAX;
}

/* Would it be through with a small batch before the others are through with everything? */
static bool is_worth_it(const struct mirror *mirror, const struct mirror_neighbour *neighbour,
                        uint64_t now_us) {
    uint64_t rate = rate_at_work(mirror, now_us);
    return rate == 0 || mirror_expected_us(neighbour, mirror->config.batch_size_min) <
                            duration_us(size_left(mirror), rate);
}

/* What takes batch_us, but no more than its share of what is left, so that all end at about the same time. */
static uint64_t batch_size(const struct mirror *mirror, const struct mirror_neighbour *neighbour,
                           uint64_t now_us) {
    const struct mirror_config *config = &mirror->config;
    uint64_t rate = rate_of(neighbour);
    uint64_t share_us = duration_us(size_left(mirror), rate + rate_at_work(mirror, now_us));
    uint64_t time_us = share_us < config->batch_us ? share_us : config->batch_us;
    uint64_t size = time_us / 1000 * (rate / 1000 + 1);
    size = size < config->batch_size_max ? size : config->batch_size_max;
    size = size > config->batch_size_min ? size : config->batch_size_min;
    return size < mirror->wanted_size ? size : mirror->wanted_size;
}

static void fetch_give(struct mirror *mirror, struct mirror_neighbour *neighbour,
                       const struct mirror_batch *batch, bool is_again, uint64_t now_us,
                       struct mirror_task *ret_task) {
    neighbour->batch = batch->number;
    neighbour->started_us = now_us;
    neighbour->expected_us = mirror_expected_us(neighbour, batch->size);
    if (mirror->config.limit != NULL) {
        mirror_limit_take(mirror->config.limit, batch->size, now_us);
    }
    *ret_task = (struct mirror_task){
        .kind = MIRROR_FETCH,
        .source = neighbour->source.peer,
        .batch = batch->number,
        .is_again = is_again,
        .is_needed = batch->is_needed,
        .size = batch->size,
        .expected_us = neighbour->expected_us,
        .candidates_count = (uint32_t)mirror_candidates(mirror, now_us),
    };
}

static struct mirror_batch *find_waiting(const struct mirror *mirror) {
    for (size_t i = 0; i < mirror->batches_count; i++) {
        if (count_holders(mirror, mirror->batches[i].number) == 0) {
            return &mirror->batches[i];
        }
    }
    return NULL;
}

static struct mirror_batch *find_late(const struct mirror *mirror, uint64_t now_us) {
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        const struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        if (neighbour->batch != 0 && now_us >= late_at(neighbour) &&
            count_holders(mirror, neighbour->batch) == 1) {
            return find_batch(mirror, neighbour->batch);
        }
    }
    return NULL;
}

static struct mirror_batch *make_batch(struct mirror *mirror, uint64_t size, uint64_t limit_left) {
    if (size > limit_left) {
        size = limit_left > mirror->config.batch_size_min ? limit_left : mirror->config.batch_size_min;
    }
    size = size < mirror->wanted_size ? size : mirror->wanted_size;
    struct mirror_batch *batch = &mirror->batches[mirror->batches_count++];
    *batch = (struct mirror_batch){.number = ++mirror->batch_number, .size = size};
    mirror->wanted_size -= size;
    mirror->counters.batches_count++;
    return batch;
}

/* A batch that failed with another, or that is late, from one more. */
static bool next_again(struct mirror *mirror, struct mirror_batch *batch, struct mirror_neighbour *neighbour,
                       uint64_t *counter, uint64_t now_us, struct mirror_task *ret_task) {
    if (batch == NULL || neighbour == NULL) {
        return false;
    }
    (*counter)++;
    fetch_give(mirror, neighbour, batch, true, now_us, ret_task);
    return true;
}

static bool next_new(struct mirror *mirror, uint64_t limit_left, uint64_t now_us,
                     struct mirror_task *ret_task) {
    struct mirror_neighbour *neighbour = find_best(mirror, IDLE_THAT_OFFERS, now_us);
    if (neighbour == NULL || !is_worth_it(mirror, neighbour, now_us)) {
        return false;
    }
    uint64_t size = batch_size(mirror, neighbour, now_us);
    size = size < neighbour->offered_size ? size : neighbour->offered_size;
    fetch_give(mirror, neighbour, make_batch(mirror, size, limit_left), false, now_us, ret_task);
    return true;
}

/* How long others that have said nothing yet are waited for: longer if more is saved by it. */
static uint64_t alone_us(const struct mirror *mirror, uint64_t now_us) {
    const struct mirror_neighbour *best = find_best(mirror, ANY, now_us);
    uint64_t wait_us = ALONE_FACTOR * mirror_expected_us(best, size_left(mirror));
    uint64_t wait_us_max = mirror->config.need_us / ALONE_PART;
    wait_us = wait_us > ALONE_US_MIN ? wait_us : ALONE_US_MIN;
    return wait_us < wait_us_max ? wait_us : wait_us_max;
}

/* Others that might have it are waited for, those that say so for long. */
static uint64_t need_at(const struct mirror *mirror, uint64_t now_us) {
    if (mirror->neighbours_count <= 1 || mirror->is_in_need) {
        return now_us;
    }
    bool is_alone = mirror_candidates(mirror, now_us) == 1;
    return mirror->progress_us + (is_alone ? alone_us(mirror, now_us) : mirror->config.need_us);
}

/* Nobody offers anything, but somebody withholds it. */
static bool next_needed(struct mirror *mirror, uint64_t limit_left, uint64_t now_us,
                        struct mirror_task *ret_task) {
    struct mirror_neighbour *neighbour = find_best(mirror, IDLE_THAT_WITHHOLDS, now_us);
    if (neighbour == NULL || rate_at_work(mirror, now_us) > 0 || now_us < need_at(mirror, now_us)) {
        return false;
    }
    mirror->is_in_need = true;
    uint64_t size = batch_size(mirror, neighbour, now_us);
    size = size < neighbour->withheld_size ? size : neighbour->withheld_size;
    size = size < NEEDED_SIZE_MAX ? size : NEEDED_SIZE_MAX;
    mirror->counters.needed_count++;
    struct mirror_batch *batch = make_batch(mirror, size, limit_left);
    batch->is_needed = true;
    fetch_give(mirror, neighbour, batch, false, now_us, ret_task);
    return true;
}

bool mirror_next_fetch(struct mirror *mirror, uint64_t now_us, struct mirror_task *ret_task) {
    struct mirror_limit *limit = mirror->config.limit;
    uint64_t limit_left = limit == NULL ? MIRROR_LIMIT_NONE : mirror_limit_left(limit, now_us);
    struct mirror_neighbour *idle = find_best(mirror, IDLE, now_us);
    if (idle == NULL || limit_left == 0) {
        return false;
    }
    if (is_worth_it(mirror, idle, now_us) &&
        next_again(mirror, find_waiting(mirror), idle, &mirror->counters.again_count, now_us, ret_task)) {
        return true;
    }
    if (mirror->wanted_size > 0 && mirror->batches_count < mirror->config.batches_max &&
        (next_new(mirror, limit_left, now_us, ret_task) ||
         next_needed(mirror, limit_left, now_us, ret_task))) {
        return true;
    }
    return next_again(mirror, find_late(mirror, now_us), idle, &mirror->counters.late_count, now_us,
                      ret_task);
}

static void note_earlier(uint64_t *at_us, uint64_t other_us, uint64_t now_us) {
    if (other_us > now_us && other_us < *at_us) {
        *at_us = other_us;
    }
}

/* What is due already was found to be of no use by mirror_next(): only what is to come can change that. */
uint64_t mirror_fetch_wake_at(struct mirror *mirror, uint64_t now_us) {
    uint64_t at_us = STEP_NEVER_US;
    if (mirror->config.limit != NULL) {
        note_earlier(&at_us, mirror_limit_wake_at(mirror->config.limit, now_us), now_us);
    }
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        const struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        note_earlier(&at_us, neighbour->fetch.due_us, now_us);
        if (neighbour->is_part) {
            note_earlier(&at_us, neighbour->look.due_us, now_us);
        }
        if (neighbour->withheld_size > 0) {
            note_earlier(&at_us, need_at(mirror, now_us), now_us);
        }
        if (neighbour->batch != 0) {
            note_earlier(&at_us, late_at(neighbour), now_us);
        }
    }
    return at_us;
}

/* ---- what they have ---- */

void mirror_forget_offers(struct mirror *mirror, uint64_t now_us) {
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        neighbour->offered_size = MIRROR_OFFERS_ALL;
        neighbour->withheld_size = 0;
        neighbour->is_part = neighbour->is_looked_at = false;
        neighbour->look = (struct retry){0};
    }
    mirror->is_in_need = false;
    mirror->progress_us = now_us;
}

void mirror_set_offer(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE], uint64_t size,
                      uint64_t withheld_size, bool is_whole) {
    struct mirror_neighbour *neighbour = mirror_find(mirror, key);
    if (neighbour != NULL && mirror->phase == MIRROR_FETCHING) {
        neighbour->offered_size = size;
        neighbour->withheld_size = withheld_size;
        neighbour->is_part = !is_whole;
    }
}

bool mirror_next_look(struct mirror *mirror, uint64_t now_us, struct mirror_task *ret_task) {
    for (size_t i = 0; i < mirror->neighbours_count && mirror->wanted_size > 0; i++) {
        struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        if (neighbour->is_part && neighbour->offered_size == 0 && !neighbour->is_looked_at &&
            retry_is_due(&neighbour->look, now_us) && is_eligible(mirror, neighbour, IDLE, now_us)) {
            neighbour->is_looked_at = true;
            *ret_task = (struct mirror_task){.kind = MIRROR_LOOK, .source = neighbour->source.peer};
            return true;
        }
    }
    return false;
}

void mirror_looked(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE], uint64_t now_us) {
    struct mirror_neighbour *neighbour = mirror_find(mirror, key);
    if (neighbour == NULL || !neighbour->is_looked_at) {
        return;
    }
    uint64_t wait_us = retry_doubled_us(mirror->config.look_us, neighbour->look.tries_count, LOOK_US_MAX);
    neighbour->is_looked_at = false;
    neighbour->look.tries_count += wait_us < LOOK_US_MAX; /* until something comes from it */
    neighbour->look.due_us = now_us + prng_spread(&mirror->prng, wait_us);
}

/* ---- how it went ---- */

void mirror_set_wanted(struct mirror *mirror, uint64_t size, bool is_all) {
    if (mirror->phase == MIRROR_FETCHING) {
        mirror->wanted_size = size;
        mirror->is_all_wanted = is_all;
    }
}

/* Small batches measure the delay, not the bandwidth. */
static void measure(const struct mirror *mirror, struct mirror_neighbour *neighbour, uint64_t size,
                    uint64_t now_us) {
    if (size < mirror->config.batch_size_min) {
        return;
    }
    uint64_t passed_us = now_us - neighbour->started_us;
    passed_us -= passed_us > neighbour->source.delay_us ? neighbour->source.delay_us : 0;
    uint64_t rate = size * 1000 / (passed_us / 1000 + 1) + 1;
    bool is_first = neighbour->rate == 0 && neighbour->source.bandwidth == 0;
    neighbour->rate = is_first ? rate : (3 * rate_of(neighbour) + rate) / 4;
}

static void take_failure(struct mirror *mirror, struct mirror_neighbour *neighbour, enum err err,
                         uint64_t now_us) {
    switch (err) {
    case ERR_MISMATCH:
    case ERR_INVALID:
    case ERR_TRUNCATED:
    case ERR_LIMIT:
    case ERR_CORRUPT:
        mirror_bar(mirror, neighbour, now_us);
        break;
    case ERR_NOT_FOUND:
        neighbour->lacks_target = true;
        break;
    case ERR_BUSY:
        neighbour->fetch.due_us = now_us + mirror_backoff_us(mirror, 0);
        break;
    default:
        neighbour->fetch.due_us = now_us + mirror_backoff_us(mirror, neighbour->fetch.tries_count++);
        break;
    }
}

void mirror_fetched(struct mirror *mirror, uint64_t batch, const uint8_t key[PEER_KEY_SIZE], enum err err,
                    uint64_t size, uint64_t now_us) {
    struct mirror_neighbour *neighbour = mirror_find(mirror, key);
    if (neighbour == NULL || batch == 0 || neighbour->batch != batch) {
        return; /* it was given up meanwhile */
    }
    neighbour->batch = 0;
    neighbour->fetched_size += size;
    mirror->counters.fetched_size += size;
    if (size > 0) {
        mirror->progress_us = now_us;
        neighbour->look.tries_count = 0;
        mirror->is_in_need = mirror->is_in_need && find_batch(mirror, batch)->is_needed;
    }
    if (err != ERR_OK) {
        take_failure(mirror, neighbour, err, now_us);
        return;
    }
    neighbour->fetch.tries_count = 0;
    measure(mirror, neighbour, size, now_us);
    remove_batch(mirror, find_batch(mirror, batch));
}
