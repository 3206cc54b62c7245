/* Searches of other threads: brought to the loop, shared by threads that wish for the same, waited for. */

#include "node/crowd/crowd_driver_state.h"
#include "node/transport/transport.h"

static const uint64_t LINGER_US_MIN = 50000; /* for further hits after the first */

void crowd_driver_done_searches(struct crowd_driver *driver) {
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        ASSERT(driver->searches[i].users_count == 0);
    }
}

void crowd_driver_stop(struct crowd_driver *driver) {
    pthread_mutex_lock(&driver->lock);
    driver->is_stopped = true;
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        bell_ring(&driver->searches[i].changed);
    }
    pthread_mutex_unlock(&driver->lock);
}

/* ---- the loop ---- */

/* The next thing that another thread wants, as an event with its bytes in memory; false: nothing. */
static bool next_want(struct crowd_driver *driver, struct event *event,
                      uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    *event = (struct event){.kind = EVENT_COMMAND};
    if (driver->drops_count > 0) {
        event->code = CROWD_DROP;
        event->bytes = crowd_write_contacts(&driver->drops[--driver->drops_count], 1, memory);
        return true;
    }
    if (driver->looked_count > 0) {
        const struct crowd_driver_looked *looked = &driver->looked[--driver->looked_count];
        event->code = looked->finding_size > 0 ? CROWD_HAVE : CROWD_HAVE_NOT;
        event->number = looked->number;
        memcpy(memory, looked->finding, looked->finding_size);
        event->bytes = bytes_of(memory, looked->finding_size);
        return true;
    }
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        struct crowd_driver_search *search = &driver->searches[i];
        event->number = search->number;
        if (search->state == CROWD_DRIVER_NEW) {
            search->state = CROWD_DRIVER_OPEN;
            event->code = CROWD_FIND;
            memcpy(memory, search->wish, search->wish_size);
            event->bytes = bytes_of(memory, search->wish_size);
            return true;
        }
        if (search->state == CROWD_DRIVER_OPEN && search->discounts_count > 0) {
            search->discounts_count--;
            event->code = CROWD_DISCOUNT;
            return true;
        }
        if (search->state == CROWD_DRIVER_LEFT) {
            search->state = CROWD_DRIVER_FREE;
            event->code = CROWD_ENOUGH;
            return true;
        }
    }
    return false;
}

void crowd_driver_take_wants(struct crowd_driver *driver) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct event event;
    bool is_there = driver->crowd != NULL && !driver->is_stopped;
    driver->has_wants = false;
    while (is_there) {
        pthread_mutex_lock(&driver->lock);
        is_there = next_want(driver, &event, memory);
        pthread_mutex_unlock(&driver->lock);
        if (is_there) {
            crowd_driver_step(driver, &event);
        }
    }
}

static void find_run(void *context) {
    crowd_driver_take_wants(context);
}

void crowd_driver_call_loop(struct crowd_driver *driver) {
    (void)transport_post(driver->config.transport, find_run, driver);
}

static struct crowd_driver_search *find_open(struct crowd_driver *driver, uint64_t number) {
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        struct crowd_driver_search *search = &driver->searches[i];
        if (search->state == CROWD_DRIVER_OPEN && search->number == number) {
            return search;
        }
    }
    return NULL;
}

static void add_hit(struct crowd_driver *driver, struct crowd_driver_search *search,
                    const struct peer *holder, uint8_t hops_count, struct bytes finding) {
    bool is_wanted = search->hits_count < CROWD_DRIVER_HITS_MAX;
    for (size_t i = 0; i < search->hits_count && is_wanted; i++) {
        is_wanted = !address_equal(&search->hits[i].holder.address, &holder->address);
    }
    if (!is_wanted) {
        return;
    }
    struct crowd_driver_hit *hit = &search->hits[search->hits_count++];
    hit->holder = *holder;
    hit->hops_count = hops_count;
    hit->contents_size = finding.size;
    memcpy(hit->contents, finding.data, finding.size);
    search->first_at_us = search->first_at_us > 0 ? search->first_at_us : crowd_driver_now_us(driver);
    bell_ring(&search->changed);
}

void crowd_driver_on_found(struct crowd_driver *driver, struct bytes bytes) {
    struct wire_reader reader;
    struct peer holder;
    struct wish_finding findings[WISH_FINDINGS_MAX];
    size_t count;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    uint8_t hops_count = wire_read_u8(&reader);
    peer_read(&reader, PEER_TAGGED, &holder);
    struct bytes finding = wire_read_bytes(&reader, wire_reader_left(&reader));
    bool is_sound = reader.err == ERR_OK && finding.size <= CROWD_FINDING_SIZE_MAX &&
                    wish_read_findings(finding, findings, &count) &&
                    memcmp(holder.key, driver->crowd_config.self.key, PEER_KEY_SIZE) != 0;
    pthread_mutex_lock(&driver->lock);
    struct crowd_driver_search *search = find_open(driver, number);
    if (search != NULL) {
        bool counts = is_sound && !crowd_driver_distrusts(driver, &holder);
        if (counts) {
            add_hit(driver, search, &holder, hops_count, finding);
        } else {
            search->is_spoiled = true;
            search->discounts_count++;
            driver->has_wants = true;
        }
    }
    pthread_mutex_unlock(&driver->lock);
}

/* The crowd took a search for done, and then all nodes that had answered turned out to be liars. */
void crowd_driver_repeat_spoiled(struct crowd_driver *driver) {
    uint8_t ttl;
    pthread_mutex_lock(&driver->lock);
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        struct crowd_driver_search *search = &driver->searches[i];
        bool is_in_vain = search->state == CROWD_DRIVER_OPEN && search->is_spoiled &&
                          search->hits_count == 0 && !crowd_is_searching(driver->crowd, search->number, &ttl);
        if (is_in_vain && search->repeats_count < CROWD_DRIVER_REPEATS_MAX) {
            search->state = CROWD_DRIVER_NEW;
            search->number = ++driver->numbers_count;
            search->repeats_count++;
            search->discounts_count = 0;
            search->is_spoiled = false;
        } else if (is_in_vain) {
            search->state = CROWD_DRIVER_OVER;
            search->lost = ERR_NOT_FOUND;
            bell_ring(&search->changed);
        }
    }
    pthread_mutex_unlock(&driver->lock);
}

void crowd_driver_on_lost(struct crowd_driver *driver, struct bytes bytes) {
    struct wire_reader reader;
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    bool is_alone = crowd_neighbours(driver->crowd, view) == 0;
    pthread_mutex_lock(&driver->lock);
    struct crowd_driver_search *search = find_open(driver, number);
    if (search != NULL) {
        search->state = CROWD_DRIVER_OVER;
        search->lost = is_alone ? ERR_UNREACHABLE : ERR_NOT_FOUND;
        bell_ring(&search->changed);
    }
    pthread_mutex_unlock(&driver->lock);
}

/* ---- any thread; the lock is held ---- */

static bool is_shareable(const struct crowd_driver_search *search, struct bytes wish) {
    return search->users_count > 0 && bytes_equal(bytes_of(search->wish, search->wish_size), wish);
}

/* That of others, or a new one; NULL: too many. */
static struct crowd_driver_search *find_enter(struct crowd_driver *driver, struct bytes wish) {
    struct crowd_driver_search *free_one = NULL;
    if (driver->waiting_count >= CROWD_DRIVER_WAITING_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        struct crowd_driver_search *search = &driver->searches[i];
        if (is_shareable(search, wish)) {
            driver->totals.shared_count++;
            return search;
        }
        if (search->state == CROWD_DRIVER_FREE) {
            free_one = search;
        }
    }
    if (free_one != NULL) {
        free_one->state = CROWD_DRIVER_NEW;
        free_one->number = ++driver->numbers_count;
        free_one->repeats_count = 0;
        free_one->discounts_count = 0;
        free_one->is_spoiled = false;
        free_one->begun_at_us = crowd_driver_now_us(driver);
        free_one->first_at_us = 0;
        free_one->hits_count = 0;
        free_one->wish_size = wish.size;
        memcpy(free_one->wish, wish.data, wish.size);
        crowd_driver_call_loop(driver);
    }
    return free_one;
}

static void find_leave(struct crowd_driver *driver, struct crowd_driver_search *search) {
    driver->waiting_count--;
    search->users_count--;
    if (search->users_count > 0) {
        return;
    }
    bool is_searched_for = search->state == CROWD_DRIVER_OPEN;
    search->state = is_searched_for ? CROWD_DRIVER_LEFT : CROWD_DRIVER_FREE;
    if (is_searched_for) {
        crowd_driver_call_loop(driver);
    }
}

static void wait_until(struct crowd_driver *driver, struct crowd_driver_search *search, uint64_t wait_us) {
    uint64_t until_us = clock_monotonic_us(&clock_system) + wait_us;
    (void)bell_await(&search->changed, &driver->lock, until_us);
}

/* The first hit may be a far one, or one that is gone: others may follow soon. */
static uint64_t linger_until_us(const struct crowd_driver_search *search) {
    uint64_t half_us = (search->first_at_us - search->begun_at_us) / 2;
    return search->first_at_us + (half_us > LINGER_US_MIN ? half_us : LINGER_US_MIN);
}

static enum err await(struct crowd_driver *driver, struct crowd_driver_search *search, uint64_t deadline_us,
                      size_t hits_wanted) {
    while (!driver->is_stopped) {
        uint64_t now = crowd_driver_now_us(driver);
        uint64_t until_us = deadline_us;
        if (search->hits_count > 0) {
            uint64_t linger_us = linger_until_us(search);
            until_us = linger_us < until_us ? linger_us : until_us;
            if (search->hits_count >= hits_wanted || search->state == CROWD_DRIVER_OVER || now >= until_us) {
                return ERR_OK;
            }
        } else if (search->state == CROWD_DRIVER_OVER) {
            return search->lost;
        } else if (now >= until_us) {
            return ERR_TIMEOUT;
        }
        wait_until(driver, search, until_us - now);
    }
    return ERR_CANCELLED;
}

bool crowd_driver_read_hit(struct crowd_driver_hit *hit) {
    size_t findings_count = 0;
    bool is_sound =
        wish_read_findings(bytes_of(hit->contents, hit->contents_size), hit->findings, &findings_count);
    hit->findings_count = (uint8_t)findings_count;
    return is_sound;
}

static size_t copy_hits(const struct crowd_driver_search *search, size_t hits_max,
                        struct crowd_driver_hit *out) {
    size_t count = 0;
    for (size_t i = 0; i < search->hits_count && count < hits_max; i++) {
        out[count] = search->hits[i];
        count += crowd_driver_read_hit(&out[count]);
    }
    return count;
}

/* A light member's: hits of nodes that are not trusted are passed over here. */
static enum err find_elsewhere(struct crowd_driver *driver, struct bytes wish, uint32_t timeout_ms,
                               size_t hits_wanted, struct crowd_driver_hit *out, size_t *ret_count) {
    const struct crowd_driver_config *config = &driver->config;
    size_t count = 0;
    size_t found_count = 0;
    enum err err = driver->is_stopped
                       ? ERR_CANCELLED
                       : config->search(config->context, wish, timeout_ms, hits_wanted, out, &found_count);
    pthread_mutex_lock(&driver->lock);
    for (size_t i = 0; err == ERR_OK && i < found_count; i++) {
        if (!crowd_driver_distrusts(driver, &out[i].holder)) {
            out[count] = out[i];
            count += crowd_driver_read_hit(&out[count]); /* what it borrows is its own */
        }
    }
    driver->totals.finds_count++;
    driver->totals.timeouts_count += err == ERR_TIMEOUT;
    driver->totals.refused_count += err == ERR_BUSY;
    driver->counters.searches_count++;
    driver->counters.found_count += count > 0;
    driver->counters.lost_count += count == 0;
    pthread_mutex_unlock(&driver->lock);
    *ret_count = count;
    return err == ERR_OK && count == 0 ? ERR_NOT_FOUND : err;
}

enum err crowd_driver_find(struct crowd_driver *driver, const struct wish *wish, uint32_t timeout_ms,
                           size_t hits_wanted, struct crowd_driver_hit *out, size_t *ret_count) {
    uint8_t memory[CROWD_WISH_SIZE_MAX];
    ASSERT(hits_wanted > 0 && hits_wanted <= CROWD_DRIVER_HITS_MAX);
    struct bytes bytes = wish_write(wish, memory);
    if (driver->config.search != NULL) {
        return find_elsewhere(driver, bytes, timeout_ms, hits_wanted, out, ret_count);
    }
    if (!driver->is_begun) {
        return ERR_UNREACHABLE;
    }
    uint64_t deadline_us = crowd_driver_now_us(driver) + timeout_ms * UINT64_C(1000);
    pthread_mutex_lock(&driver->lock);
    driver->totals.finds_count++;
    struct crowd_driver_search *search = find_enter(driver, bytes);
    enum err err = ERR_BUSY;
    if (search != NULL) {
        search->users_count++;
        driver->waiting_count++;
        err = await(driver, search, deadline_us, hits_wanted);
        if (err == ERR_OK) {
            *ret_count = copy_hits(search, hits_wanted, out);
        }
        find_leave(driver, search);
    }
    driver->totals.timeouts_count += err == ERR_TIMEOUT;
    driver->totals.refused_count += err == ERR_BUSY;
    pthread_mutex_unlock(&driver->lock);
    return err;
}

/* ---- what is looked for later ---- */

/* Where too many answers wait, this one is lost, as on the way. */
void crowd_driver_looked(struct crowd_driver *driver, uint64_t number, struct bytes finding) {
    ASSERT(finding.size <= CROWD_FINDING_SIZE_MAX);
    pthread_mutex_lock(&driver->lock);
    if (driver->looked_count < CROWD_DRIVER_LOOKS_MAX) {
        struct crowd_driver_looked *looked = &driver->looked[driver->looked_count++];
        looked->number = number;
        looked->finding_size = finding.size;
        memcpy(looked->finding, finding.data, finding.size);
    }
    pthread_mutex_unlock(&driver->lock);
    crowd_driver_call_loop(driver);
}
