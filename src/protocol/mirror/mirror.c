#include "protocol/mirror/mirror_state.h"

static const uint64_t SECOND_US = 1000000;

enum { UNTOLD_MAX = 6 /* then it has to ask */ };

const char *const mirror_phases[] = {"current", "gathering", "fetching", "applying"};

/* ---- life ---- */

static uint64_t mirror_or_default(uint64_t value, uint64_t fallback) {
    return value > 0 ? value : fallback;
}

static struct mirror_config mirror_complete(const struct mirror_config *config) {
    struct mirror_config full = *config;
    full.sources_max = (uint16_t)mirror_or_default(config->sources_max, 64);
    full.batches_max = (uint16_t)mirror_or_default(config->batches_max, 64);
    full.batch_size_min = (uint32_t)mirror_or_default(config->batch_size_min, 256 << 10);
    full.batch_size_max = (uint32_t)mirror_or_default(config->batch_size_max, 32 << 20);
    full.batch_us = mirror_or_default(config->batch_us, 4 * SECOND_US);
    full.gather_us = mirror_or_default(config->gather_us, 60 * SECOND_US);
    full.ask_us = mirror_or_default(config->ask_us, 600 * SECOND_US);
    full.retry_us = mirror_or_default(config->retry_us, 5 * SECOND_US);
    full.bar_us = mirror_or_default(config->bar_us, 1800 * SECOND_US);
    full.look_us = mirror_or_default(config->look_us, SECOND_US / 5);
    full.need_us = mirror_or_default(config->need_us, 10 * SECOND_US);
    full.held = NULL;
    return full;
}

size_t mirror_size(const struct mirror_config *config) {
    struct mirror_config full = mirror_complete(config);
    return sizeof(struct mirror) + full.sources_max * sizeof(struct mirror_neighbour) +
           full.batches_max * sizeof(struct mirror_batch);
}

struct mirror *mirror_init(void *memory, const struct mirror_config *config, uint64_t now_us) {
    struct mirror *mirror = memory;
    memset(memory, 0, mirror_size(config));
    mirror->config = mirror_complete(config);
    ASSERT(mirror->config.batch_size_min <= mirror->config.batch_size_max &&
           mirror->config.batch_size_max <= INT32_MAX);
    mirror->neighbours = (struct mirror_neighbour *)(mirror + 1);
    mirror->batches = (struct mirror_batch *)(mirror->neighbours + mirror->config.sources_max);
    mirror->gather_until_us = now_us;
    prng_init(&mirror->prng, mirror->config.seed);
    if (config->held != NULL) {
        mirror->has_held = true;
        mirror->held = *config->held;
    }
    return mirror;
}

uint64_t mirror_backoff_us(struct mirror *mirror, uint32_t failed_count) {
    return prng_spread(&mirror->prng,
                       retry_doubled_us(mirror->config.retry_us, failed_count, mirror->config.ask_us));
}

/* ---- sources ---- */

struct mirror_neighbour *mirror_find(const struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        if (memcmp(mirror->neighbours[i].source.peer.key, key, PEER_KEY_SIZE) == 0) {
            return &mirror->neighbours[i];
        }
    }
    return NULL;
}

static void remove_unlisted(struct mirror *mirror) {
    size_t kept = 0;
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        if (mirror->neighbours[i].is_listed) {
            mirror->neighbours[i].is_listed = false;
            mirror->neighbours[kept++] = mirror->neighbours[i];
        }
    }
    mirror->neighbours_count = kept;
}

void mirror_set_sources(struct mirror *mirror, const struct mirror_source *sources, size_t count,
                        uint64_t now_us) {
    for (size_t i = 0; i < count; i++) {
        struct mirror_neighbour *known = mirror_find(mirror, sources[i].peer.key);
        if (known != NULL) {
            known->is_listed = true;
        }
    }
    remove_unlisted(mirror);
    for (size_t i = 0; i < count; i++) {
        struct mirror_neighbour *neighbour = mirror_find(mirror, sources[i].peer.key);
        if (neighbour == NULL && mirror->neighbours_count < mirror->config.sources_max) {
            neighbour = &mirror->neighbours[mirror->neighbours_count++];
            *neighbour = (struct mirror_neighbour){
                .ask.due_us = now_us, .tell.due_us = now_us, .offered_size = MIRROR_OFFERS_ALL};
        }
        if (neighbour != NULL) {
            neighbour->source = sources[i];
        }
    }
}

/* Nothing that it said counts any more. */
void mirror_bar(struct mirror *mirror, struct mirror_neighbour *neighbour, uint64_t now_us) {
    neighbour->barred_until_us = now_us + mirror->config.bar_us;
    neighbour->ask.due_us = neighbour->barred_until_us;
    neighbour->has_version = false;
    if (neighbour->batch != 0) {
        neighbour->cancelled = neighbour->batch;
        neighbour->batch = 0;
    }
    mirror->counters.barred_count++;
}

/* ---- what is heard ---- */

static bool is_bad(const struct mirror *mirror, const struct version *version) {
    for (size_t i = 0; i < mirror->bad_count && i < MIRROR_BAD_MAX; i++) {
        if (version_compare(version, &mirror->bad[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_of_this(const struct mirror *mirror, const struct version *version) {
    return memcmp(version->publisher, mirror->config.publisher, PEER_KEY_SIZE) == 0 &&
           strcmp(version->name, mirror->config.name) == 0;
}

/* What one source has told and was checked, another may tell without costing a check again. */
static bool is_checked(const struct mirror *mirror, struct bytes statement, struct version *ret_version) {
    const struct version *newest = mirror_newest(mirror);
    uint8_t memory[VERSION_SIZE_MAX];
    if (newest == NULL || !bytes_equal(version_write(newest, memory), statement)) {
        return false;
    }
    *ret_version = *newest;
    return true;
}

static void gather(struct mirror *mirror, uint64_t wait_us, uint64_t now_us) {
    mirror->phase = MIRROR_GATHERING;
    mirror->gather_until_us = now_us + wait_us;
}

static enum mirror_verdict take_version(struct mirror *mirror, struct mirror_neighbour *neighbour,
                                        const struct version *version, uint64_t now_us) {
    const struct version *newest = mirror_newest(mirror);
    bool is_newest = newest == NULL || version_compare(version, newest) > 0;
    int against_held = mirror->has_held ? version_compare(version, &mirror->held) : 1;
    mirror->counters.doubled_count +=
        against_held != 0 && mirror->has_held && version->number == mirror->held.number;
    neighbour->has_version = true;
    neighbour->lacks_target = false;
    neighbour->version = *version;
    if (is_bad(mirror, version)) {
        return MIRROR_BAD;
    }
    if (against_held <= 0) {
        neighbour->is_told = against_held == 0;
        return against_held == 0 ? MIRROR_KNOWN : MIRROR_BEHIND;
    }
    if (mirror->phase == MIRROR_CURRENT && !mirror->config.is_master) {
        gather(mirror, mirror->config.gather_us, now_us);
    }
    return is_newest ? MIRROR_NEWER : MIRROR_KNOWN;
}

enum mirror_verdict mirror_hear(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE],
                                struct bytes statement, uint64_t now_us) {
    struct mirror_neighbour *neighbour = mirror_find(mirror, key);
    struct version version;
    mirror->counters.heard_count++;
    if (neighbour == NULL || mirror_is_barred(neighbour, now_us)) {
        return MIRROR_IGNORED;
    }
    neighbour->ask.tries_count = 0;
    if (!is_checked(mirror, statement, &version)) {
        enum err err = version_read(statement, mirror->config.verify, &version, NULL);
        if (err == ERR_UNSUPPORTED) {
            return MIRROR_IGNORED; /* it runs a later program */
        }
        if (err != ERR_OK || !is_of_this(mirror, &version)) {
            mirror_bar(mirror, neighbour, now_us);
            return err == ERR_OK ? MIRROR_FOREIGN : MIRROR_FORGED;
        }
    }
    if (neighbour->has_version && version_compare(&version, &neighbour->version) < 0) {
        mirror_bar(mirror, neighbour, now_us);
        return MIRROR_REPLAYED;
    }
    return take_version(mirror, neighbour, &version, now_us);
}

void mirror_answered(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE], enum err err, uint64_t now_us) {
    struct mirror_neighbour *neighbour = mirror_find(mirror, key);
    if (neighbour == NULL || mirror_is_barred(neighbour, now_us)) {
        return;
    }
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        neighbour->ask.due_us = now_us + mirror_backoff_us(mirror, neighbour->ask.tries_count++);
        return;
    }
    neighbour->ask.tries_count = 0;
    if (err == ERR_NOT_FOUND) {
        neighbour->has_version = false;
    } else if (mirror->has_held &&
               (!neighbour->has_version || version_compare(&neighbour->version, &mirror->held) < 0)) {
        neighbour->has_version = true; /* unless a notification of a newer one has overtaken the answer */
        neighbour->version = mirror->held;
    }
}

/* ---- versions ---- */

/* All that do not have it are told. */
static void announce(struct mirror *mirror, uint64_t now_us) {
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        mirror->neighbours[i].is_told = false;
        mirror->neighbours[i].tell = (struct retry){.due_us = now_us};
    }
}

static void hold(struct mirror *mirror, const struct version *version, uint64_t now_us) {
    mirror->held = *version;
    mirror->has_held = true;
    announce(mirror, now_us);
}

void mirror_share(struct mirror *mirror, uint64_t now_us) {
    if (mirror->phase == MIRROR_FETCHING && !mirror->is_shared) {
        mirror->is_shared = true;
        announce(mirror, now_us);
    }
}

void mirror_publish(struct mirror *mirror, const struct version *version, uint64_t now_us) {
    ASSERT(mirror->config.is_master && is_of_this(mirror, version));
    ASSERT(!mirror->has_held || version_compare(version, &mirror->held) > 0);
    hold(mirror, version, now_us);
}

/* The newest that somebody has, we have not, and that is worth a try; NULL: none. */
static const struct version *mirror_find_target(const struct mirror *mirror, uint64_t now_us) {
    const struct version *found = NULL;
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        const struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        const struct version *version = &neighbour->version;
        if (!neighbour->has_version || mirror_is_barred(neighbour, now_us) ||
            (mirror->has_held && version_compare(version, &mirror->held) <= 0) || is_bad(mirror, version) ||
            (neighbour->lacks_target && version_compare(version, &mirror->target) == 0)) {
            continue;
        }
        if (found == NULL || version_compare(version, found) > 0) {
            found = version;
        }
    }
    return found;
}

static bool mirror_begin(struct mirror *mirror, uint64_t now_us, struct mirror_task *ret_task) {
    const struct version *found = mirror_find_target(mirror, now_us);
    mirror_drop_batches(mirror);
    if (found == NULL) {
        mirror->phase = MIRROR_CURRENT;
        return false;
    }
    mirror->target = *found;
    mirror->phase = MIRROR_FETCHING;
    mirror->wanted_size = 0;
    mirror->is_all_wanted = false;
    mirror->is_shared = false;
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        mirror->neighbours[i].lacks_target = false;
    }
    mirror_forget_offers(mirror, now_us);
    mirror->counters.begun_count++;
    *ret_task = (struct mirror_task){
        .kind = MIRROR_BEGIN,
        .source = mirror_best(mirror, now_us)->source.peer,
        .candidates_count = (uint32_t)mirror_candidates(mirror, now_us),
    };
    return true;
}

void mirror_applied(struct mirror *mirror, enum err err, uint64_t now_us) {
    ASSERT(mirror->phase == MIRROR_APPLYING);
    if (err == ERR_OK) {
        hold(mirror, &mirror->target, now_us);
        mirror->counters.applied_count++;
        mirror->unapplied_count = 0;
    } else if (err == ERR_MISMATCH || err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT ||
               err == ERR_UNSUPPORTED) {
        mirror->bad[mirror->bad_count++ % MIRROR_BAD_MAX] = mirror->target;
        mirror->unapplied_count = 0;
    } else {
        gather(mirror, mirror_backoff_us(mirror, mirror->unapplied_count++), now_us);
        return;
    }
    mirror->phase = MIRROR_CURRENT;
    if (mirror_find_target(mirror, now_us) != NULL) {
        gather(mirror, 0, now_us); /* it came meanwhile, and has waited long enough */
    }
}

/* ---- what to do ---- */

static bool next_cancel(struct mirror *mirror, struct mirror_task *ret_task) {
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        if (neighbour->cancelled != 0) {
            *ret_task = (struct mirror_task){
                .kind = MIRROR_CANCEL, .source = neighbour->source.peer, .batch = neighbour->cancelled};
            neighbour->cancelled = 0;
            return true;
        }
    }
    return false;
}

static bool next_of_version(struct mirror *mirror, uint64_t now_us, struct mirror_task *ret_task) {
    if (mirror->phase == MIRROR_GATHERING && now_us >= mirror->gather_until_us) {
        return mirror_begin(mirror, now_us, ret_task);
    }
    if (mirror->phase != MIRROR_FETCHING) {
        return false;
    }
    if (mirror->is_all_wanted && mirror->wanted_size == 0 && mirror->batches_count == 0) {
        mirror->phase = MIRROR_APPLYING;
        *ret_task = (struct mirror_task){.kind = MIRROR_APPLY};
        return true;
    }
    if (mirror_candidates(mirror, now_us) == 0) {
        return mirror_begin(mirror, now_us, ret_task);
    }
    return mirror_next_look(mirror, now_us, ret_task) || mirror_next_fetch(mirror, now_us, ret_task);
}

static bool needs_telling(const struct mirror *mirror, const struct mirror_neighbour *neighbour) {
    const struct version *ours = mirror->is_shared ? mirror_target(mirror) : NULL;
    ours = ours != NULL ? ours : mirror_held(mirror);
    return ours != NULL && !neighbour->is_told && neighbour->tell.tries_count < UNTOLD_MAX &&
           (!neighbour->has_version || version_compare(&neighbour->version, ours) < 0);
}

static bool next_of_source(struct mirror *mirror, struct mirror_neighbour *neighbour, uint64_t now_us,
                           struct mirror_task *ret_task) {
    if (mirror_is_barred(neighbour, now_us)) {
        return false;
    }
    if (needs_telling(mirror, neighbour) && retry_is_due(&neighbour->tell, now_us)) {
        neighbour->is_told = true;
        neighbour->tell.due_us = now_us + mirror->config.retry_us; /* whatever it says meanwhile */
        *ret_task = (struct mirror_task){.kind = MIRROR_NOTIFY, .source = neighbour->source.peer};
        return true;
    }
    if (retry_is_due(&neighbour->ask, now_us)) {
        neighbour->ask.due_us = now_us + prng_spread(&mirror->prng, mirror->config.ask_us);
        *ret_task = (struct mirror_task){.kind = MIRROR_ASK, .source = neighbour->source.peer};
        return true;
    }
    return false;
}

bool mirror_next(struct mirror *mirror, uint64_t now_us, struct mirror_task *ret_task) {
    if (next_cancel(mirror, ret_task) || next_of_version(mirror, now_us, ret_task) ||
        next_cancel(mirror, ret_task)) { /* giving a version up leaves something to cancel */
        return true;
    }
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        if (next_of_source(mirror, &mirror->neighbours[i], now_us, ret_task)) {
            return true;
        }
    }
    return false;
}

uint64_t mirror_wake_at(struct mirror *mirror, uint64_t now_us) {
    uint64_t at_us = mirror->phase == MIRROR_GATHERING ? mirror->gather_until_us : STEP_NEVER_US;
    if (mirror->phase == MIRROR_FETCHING) {
        at_us = mirror_fetch_wake_at(mirror, now_us);
    }
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        const struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        at_us = neighbour->ask.due_us < at_us ? neighbour->ask.due_us : at_us;
        if (!mirror_is_barred(neighbour, now_us) && needs_telling(mirror, neighbour)) {
            at_us = neighbour->tell.due_us < at_us ? neighbour->tell.due_us : at_us;
        }
    }
    return at_us;
}

void mirror_told(struct mirror *mirror, const uint8_t key[PEER_KEY_SIZE], enum err err, uint64_t now_us) {
    struct mirror_neighbour *neighbour = mirror_find(mirror, key);
    if (neighbour == NULL) {
        return;
    }
    if (err == ERR_OK) {
        neighbour->tell.tries_count = 0;
        return;
    }
    neighbour->is_told = false;
    neighbour->tell.due_us = now_us + mirror_backoff_us(mirror, neighbour->tell.tries_count++);
}

/* ---- what people want to know ---- */

enum mirror_phase mirror_phase(const struct mirror *mirror) {
    return mirror->phase;
}

const struct version *mirror_held(const struct mirror *mirror) {
    return mirror->has_held ? &mirror->held : NULL;
}

const struct version *mirror_target(const struct mirror *mirror) {
    return mirror->phase == MIRROR_FETCHING || mirror->phase == MIRROR_APPLYING ? &mirror->target : NULL;
}

const struct version *mirror_newest(const struct mirror *mirror) {
    const struct version *newest = mirror_held(mirror);
    for (size_t i = 0; i < mirror->neighbours_count; i++) {
        const struct mirror_neighbour *neighbour = &mirror->neighbours[i];
        if (neighbour->has_version && (newest == NULL || version_compare(&neighbour->version, newest) > 0)) {
            newest = &neighbour->version;
        }
    }
    return newest;
}

const struct mirror_counters *mirror_counters(const struct mirror *mirror) {
    return &mirror->counters;
}

size_t mirror_sources_count(const struct mirror *mirror) {
    return mirror->neighbours_count;
}

void mirror_source_at(const struct mirror *mirror, size_t index, uint64_t now_us,
                      struct mirror_source_status *ret_status) {
    ASSERT(index < mirror->neighbours_count);
    const struct mirror_neighbour *neighbour = &mirror->neighbours[index];
    *ret_status = (struct mirror_source_status){
        .source = neighbour->source,
        .number = neighbour->has_version ? neighbour->version.number : 0,
        .is_barred = mirror_is_barred(neighbour, now_us),
        .is_fetching = neighbour->batch != 0,
        .fetched_size = neighbour->fetched_size,
        .failed_count = neighbour->fetch.tries_count,
    };
    if (neighbour->rate > 0) {
        ret_status->source.bandwidth = neighbour->rate;
    }
}
