/* Searches of other threads: brought to the loop, shared by those who wish for the same, waited for. */
#include <time.h>

#include "node/crowd/crowding_state.h"
#include "node/transport/ringing.h"

static const uint64_t US_PER_S = 1000000;
static const uint64_t LINGER_US_MIN = 50000; /* for further hits after the first */

void crowding_init_searches(struct crowding *crowding) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    for (size_t i = 0; i < CROWDING_SEARCHES_MAX; i++) {
        pthread_cond_init(&crowding->searches[i].changed, &attributes);
    }
    pthread_condattr_destroy(&attributes);
}

void crowding_done_searches(struct crowding *crowding) {
    for (size_t i = 0; i < CROWDING_SEARCHES_MAX; i++) {
        ASSERT(crowding->searches[i].users_count == 0);
        pthread_cond_destroy(&crowding->searches[i].changed);
    }
}

void crowding_stop(struct crowding *crowding) {
    pthread_mutex_lock(&crowding->lock);
    crowding->is_stopped = true;
    for (size_t i = 0; i < CROWDING_SEARCHES_MAX; i++) {
        pthread_cond_broadcast(&crowding->searches[i].changed);
    }
    pthread_mutex_unlock(&crowding->lock);
}

/* ---- the loop ---- */

/* The next thing that another thread wants, as an event with its bytes in memory; false: nothing. */
static bool next_want(struct crowding *crowding, struct event *event, uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    *event = (struct event){.kind = EVENT_COMMAND};
    if (crowding->drops_count > 0) {
        event->code = CROWD_DROP;
        event->bytes = crowd_write_contacts(&crowding->drops[--crowding->drops_count], 1, memory);
        return true;
    }
    if (crowding->looked_count > 0) {
        const struct crowding_looked *looked = &crowding->looked[--crowding->looked_count];
        event->code = looked->finding_size > 0 ? CROWD_HAVE : CROWD_HAVE_NOT;
        event->number = looked->number;
        memcpy(memory, looked->finding, looked->finding_size);
        event->bytes = bytes_of(memory, looked->finding_size);
        return true;
    }
    for (size_t i = 0; i < CROWDING_SEARCHES_MAX; i++) {
        struct crowding_search *search = &crowding->searches[i];
        event->number = search->number;
        if (search->state == CROWDING_NEW) {
            search->state = CROWDING_OPEN;
            event->code = CROWD_FIND;
            memcpy(memory, search->wish, search->wish_size);
            event->bytes = bytes_of(memory, search->wish_size);
            return true;
        }
        if (search->state == CROWDING_OPEN && search->discounts_count > 0) {
            search->discounts_count--;
            event->code = CROWD_DISCOUNT;
            return true;
        }
        if (search->state == CROWDING_LEFT) {
            search->state = CROWDING_FREE;
            event->code = CROWD_ENOUGH;
            return true;
        }
    }
    return false;
}

void crowding_take_wants(struct crowding *crowding) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct event event;
    bool is_there = crowding->crowd != NULL && !crowding->is_stopped;
    crowding->has_wants = false;
    while (is_there) {
        pthread_mutex_lock(&crowding->lock);
        is_there = next_want(crowding, &event, memory);
        pthread_mutex_unlock(&crowding->lock);
        if (is_there) {
            crowding_step(crowding, &event);
        }
    }
}

static void run(void *context) {
    crowding_take_wants(context);
}

/* Where the ring has no time for it now, the next news of the ring finds it. */
static void call_loop(struct crowding *crowding) {
    (void)ringing_post(crowding->config.ringing, run, crowding);
}

static struct crowding_search *find_open(struct crowding *crowding, uint64_t number) {
    for (size_t i = 0; i < CROWDING_SEARCHES_MAX; i++) {
        struct crowding_search *search = &crowding->searches[i];
        if (search->state == CROWDING_OPEN && search->number == number) {
            return search;
        }
    }
    return NULL;
}

static void add_hit(struct crowding *crowding, struct crowding_search *search, const struct peer *holder,
                    uint8_t hops_count, struct bytes finding) {
    bool is_wanted = search->hits_count < CROWDING_HITS_MAX;
    for (size_t i = 0; i < search->hits_count && is_wanted; i++) {
        is_wanted = !address_equal(&search->hits[i].holder.address, &holder->address);
    }
    if (!is_wanted) {
        return;
    }
    struct crowding_raw_hit *hit = &search->hits[search->hits_count++];
    *hit =
        (struct crowding_raw_hit){.holder = *holder, .hops_count = hops_count, .contents_size = finding.size};
    memcpy(hit->contents, finding.data, finding.size);
    search->first_at_us = search->first_at_us > 0 ? search->first_at_us : crowding_now_us(crowding);
    pthread_cond_broadcast(&search->changed);
}

void crowding_on_found(struct crowding *crowding, struct bytes bytes) {
    struct wire_reader reader;
    struct peer holder;
    struct wish_finding findings[WISH_FINDINGS_MAX];
    size_t count;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    uint8_t hops_count = wire_read_u8(&reader);
    crowd_read_peer(&reader, &holder);
    struct bytes finding = wire_read_bytes(&reader, wire_reader_left(&reader));
    bool is_sound = reader.err == ERR_OK && finding.size <= CROWD_FINDING_SIZE_MAX &&
                    wish_read_findings(finding, findings, &count) &&
                    memcmp(holder.key, crowding->crowd_config.self.key, PEER_KEY_SIZE) != 0;
    pthread_mutex_lock(&crowding->lock);
    struct crowding_search *search = find_open(crowding, number);
    if (search != NULL) {
        bool counts = is_sound && !crowding_distrusts(crowding, &holder);
        if (counts) {
            add_hit(crowding, search, &holder, hops_count, finding);
        } else {
            search->is_spoiled = true;
            search->discounts_count++;
            crowding->has_wants = true;
        }
    }
    pthread_mutex_unlock(&crowding->lock);
}

/* The crowd took a search for done, and then all who had answered turned out to be liars. */
void crowding_repeat_spoiled(struct crowding *crowding) {
    uint8_t ttl;
    pthread_mutex_lock(&crowding->lock);
    for (size_t i = 0; i < CROWDING_SEARCHES_MAX; i++) {
        struct crowding_search *search = &crowding->searches[i];
        bool is_in_vain = search->state == CROWDING_OPEN && search->is_spoiled && search->hits_count == 0 &&
                          !crowd_is_searching(crowding->crowd, search->number, &ttl);
        if (is_in_vain && search->repeats_count < CROWDING_REPEATS_MAX) {
            search->state = CROWDING_NEW;
            search->number = ++crowding->numbers_count;
            search->repeats_count++;
            search->discounts_count = 0;
            search->is_spoiled = false;
        } else if (is_in_vain) {
            search->state = CROWDING_OVER;
            search->lost = ERR_NOT_FOUND;
            pthread_cond_broadcast(&search->changed);
        }
    }
    pthread_mutex_unlock(&crowding->lock);
}

void crowding_on_lost(struct crowding *crowding, struct bytes bytes) {
    struct wire_reader reader;
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    bool is_alone = crowd_neighbours(crowding->crowd, view) == 0;
    pthread_mutex_lock(&crowding->lock);
    struct crowding_search *search = find_open(crowding, number);
    if (search != NULL) {
        search->state = CROWDING_OVER;
        search->lost = is_alone ? ERR_UNREACHABLE : ERR_NOT_FOUND;
        pthread_cond_broadcast(&search->changed);
    }
    pthread_mutex_unlock(&crowding->lock);
}

/* ---- any thread; the lock is held ---- */

static bool is_shareable(const struct crowding_search *search, struct bytes wish) {
    return search->users_count > 0 && bytes_equal(bytes_of(search->wish, search->wish_size), wish);
}

/* That of others, or a new one; NULL: too many. */
static struct crowding_search *enter(struct crowding *crowding, struct bytes wish) {
    struct crowding_search *free_one = NULL;
    if (crowding->waiting_count >= CROWDING_WAITING_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < CROWDING_SEARCHES_MAX; i++) {
        struct crowding_search *search = &crowding->searches[i];
        if (is_shareable(search, wish)) {
            crowding->totals.shared_count++;
            return search;
        }
        if (search->state == CROWDING_FREE) {
            free_one = search;
        }
    }
    if (free_one != NULL) {
        free_one->state = CROWDING_NEW;
        free_one->number = ++crowding->numbers_count;
        free_one->repeats_count = 0;
        free_one->discounts_count = 0;
        free_one->is_spoiled = false;
        free_one->begun_at_us = crowding_now_us(crowding);
        free_one->first_at_us = 0;
        free_one->hits_count = 0;
        free_one->wish_size = wish.size;
        memcpy(free_one->wish, wish.data, wish.size);
        call_loop(crowding);
    }
    return free_one;
}

static void leave(struct crowding *crowding, struct crowding_search *search) {
    crowding->waiting_count--;
    search->users_count--;
    if (search->users_count > 0) {
        return;
    }
    bool is_searched_for = search->state == CROWDING_OPEN;
    search->state = is_searched_for ? CROWDING_LEFT : CROWDING_FREE;
    if (is_searched_for) {
        call_loop(crowding);
    }
}

static void wait_until(struct crowding *crowding, struct crowding_search *search, uint64_t wait_us) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t nanoseconds = (uint64_t)until.tv_nsec + wait_us % US_PER_S * 1000;
    until.tv_sec += (time_t)(wait_us / US_PER_S + nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_cond_timedwait(&search->changed, &crowding->lock, &until);
}

/* The first hit may be a far one, or one that is gone: others may follow soon. */
static uint64_t linger_until_us(const struct crowding_search *search) {
    uint64_t half_us = (search->first_at_us - search->begun_at_us) / 2;
    return search->first_at_us + (half_us > LINGER_US_MIN ? half_us : LINGER_US_MIN);
}

static enum err await(struct crowding *crowding, struct crowding_search *search, uint64_t deadline_us,
                      size_t hits_wanted) {
    while (!crowding->is_stopped) {
        uint64_t now = crowding_now_us(crowding);
        uint64_t until_us = deadline_us;
        if (search->hits_count > 0) {
            uint64_t linger_us = linger_until_us(search);
            until_us = linger_us < until_us ? linger_us : until_us;
            if (search->hits_count >= hits_wanted || search->state == CROWDING_OVER || now >= until_us) {
                return ERR_OK;
            }
        } else if (search->state == CROWDING_OVER) {
            return search->lost;
        } else if (now >= until_us) {
            return ERR_TIMEOUT;
        }
        wait_until(crowding, search, until_us - now);
    }
    return ERR_CANCELLED;
}

static size_t copy_hits(const struct crowding_search *search, size_t hits_max, struct crowding_hit *out) {
    size_t count = 0;
    for (size_t i = 0; i < search->hits_count && count < hits_max; i++) {
        const struct crowding_raw_hit *raw = &search->hits[i];
        struct crowding_hit *hit = &out[count];
        size_t findings_count = 0;
        hit->holder = raw->holder;
        hit->hops_count = raw->hops_count;
        hit->contents_size = raw->contents_size;
        memcpy(hit->contents, raw->contents, raw->contents_size);
        if (wish_read_findings(bytes_of(hit->contents, hit->contents_size), hit->findings, &findings_count)) {
            hit->findings_count = (uint8_t)findings_count;
            count++;
        }
    }
    return count;
}

enum err crowding_find(struct crowding *crowding, const struct wish *wish, uint32_t timeout_ms,
                       size_t hits_wanted, struct crowding_hit *out, size_t *ret_count) {
    uint8_t memory[CROWD_WISH_SIZE_MAX];
    ASSERT(hits_wanted > 0 && hits_wanted <= CROWDING_HITS_MAX);
    if (!crowding->is_begun) {
        return ERR_UNREACHABLE;
    }
    struct bytes bytes = wish_write(wish, memory);
    uint64_t deadline_us = crowding_now_us(crowding) + timeout_ms * UINT64_C(1000);
    pthread_mutex_lock(&crowding->lock);
    crowding->totals.finds_count++;
    struct crowding_search *search = enter(crowding, bytes);
    enum err err = ERR_BUSY;
    if (search != NULL) {
        search->users_count++;
        crowding->waiting_count++;
        err = await(crowding, search, deadline_us, hits_wanted);
        if (err == ERR_OK) {
            *ret_count = copy_hits(search, hits_wanted, out);
        }
        leave(crowding, search);
    }
    crowding->totals.timeouts_count += err == ERR_TIMEOUT;
    crowding->totals.refused_count += err == ERR_BUSY;
    pthread_mutex_unlock(&crowding->lock);
    return err;
}

/* ---- what is looked for later ---- */

/* Where too many answers wait, this one is lost, as on the way. */
void crowding_looked(struct crowding *crowding, uint64_t number, struct bytes finding) {
    ASSERT(finding.size <= CROWD_FINDING_SIZE_MAX);
    pthread_mutex_lock(&crowding->lock);
    if (crowding->looked_count < CROWDING_LOOKS_MAX) {
        struct crowding_looked *looked = &crowding->looked[crowding->looked_count++];
        looked->number = number;
        looked->finding_size = finding.size;
        memcpy(looked->finding, finding.data, finding.size);
    }
    pthread_mutex_unlock(&crowding->lock);
    call_loop(crowding);
}
