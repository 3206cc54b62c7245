#include "crawl/rules/pace.h"

#include "base/retry.h"
#include "base/utc.h"

static const uint64_t SECOND_US = 1000000;

const struct pace_config pace_defaults = {
    .factor = 4,
    .delay_min_us = UINT64_C(500000),
    .delay_max_us = UINT64_C(30) * 1000000,
    .crawl_delay_max_us = UINT64_C(60) * 1000000,
    .retry_after_max_us = UINT64_C(3600) * 1000000,
    .backoff_min_us = UINT64_C(2) * 1000000,
    .backoff_max_us = UINT64_C(600) * 1000000,
    .absent_us = UINT64_C(1000000),
    .failures_max = 5,
    .address_transfers_max = 8,
    .address_delay_us = 50000,
};

enum { BACKOFF_LEVEL_MAX = 32 };

void pace_init(struct pace *pace) {
    *pace = (struct pace){.reason = PACE_READY};
}

void pace_set_crawl_delay(struct pace *pace, const struct pace_config *config, uint64_t crawl_delay_us) {
    pace->is_crawl_delay_cut = crawl_delay_us > config->crawl_delay_max_us;
    pace->crawl_delay_us = pace->is_crawl_delay_cut ? config->crawl_delay_max_us : crawl_delay_us;
}

static bool is_at_once(const struct pace_config *config) {
    return config->has_delay && config->delay_us == 0;
}

static uint64_t clamp(uint64_t value, uint64_t min, uint64_t max) {
    return value < min ? min : value > max ? max : value;
}

static uint64_t saturating_add(uint64_t a, uint64_t b) {
    return a <= UINT64_MAX - 1 - b ? a + b : UINT64_MAX - 1; /* UINT64_MAX itself means dead */
}

/* The largest wait wins, with its reason. */
static void wait_at_least(struct pace *pace, uint64_t until_us, enum pace_reason reason) {
    if (until_us > pace->next_us) {
        pace->next_us = until_us;
        pace->reason = reason;
    }
}

/* What the host gets between two requests when all is well. */
static void wait_usual(struct pace *pace, const struct pace_config *config, uint64_t now_us) {
    uint64_t wanted_us = config->factor * pace->answer_us;
    if (config->has_delay) {
        wait_at_least(pace, saturating_add(now_us, config->delay_us), PACE_DELAY);
    } else {
        uint64_t delay_us = clamp(wanted_us, config->delay_min_us, config->delay_max_us);
        bool is_slow = delay_us > config->delay_min_us;
        wait_at_least(pace, saturating_add(now_us, delay_us), is_slow ? PACE_SLOW : PACE_DELAY);
    }
    if (!is_at_once(config)) {
        wait_at_least(pace, saturating_add(now_us, pace->crawl_delay_us), PACE_CRAWL_DELAY);
    }
}

static uint64_t backoff_us(const struct pace *pace, const struct pace_config *config) {
    return pace->bad_count == 0
               ? 0
               : retry_doubled_us(config->backoff_min_us, pace->bad_count - 1u, config->backoff_max_us);
}

static void back_off(struct pace *pace, const struct pace_config *config, uint64_t now_us,
                     enum pace_reason reason) {
    if (pace->bad_count < BACKOFF_LEVEL_MAX) {
        pace->bad_count++;
    }
    wait_at_least(pace, saturating_add(now_us, backoff_us(pace, config)), reason);
}

/* A single slow page shall not slow down all; a quarter of each answer counts. */
static void pace_learn(struct pace *pace, uint64_t duration_us) {
    uint64_t bounded_us = duration_us < 600 * SECOND_US ? duration_us : 600 * SECOND_US;
    pace->answer_us = pace->answer_us == 0 ? bounded_us : (3 * pace->answer_us + bounded_us) / 4;
}

static void pace_fail(struct pace *pace, const struct pace_config *config, bool is_absent, uint64_t now_us) {
    if (pace->failures_count < UINT16_MAX) {
        pace->failures_count++;
    }
    if (config->failures_max > 0 && pace->failures_count >= config->failures_max) {
        pace->next_us = UINT64_MAX;
        pace->reason = PACE_DEAD;
        return;
    }
    if (!is_absent) {
        back_off(pace, config, now_us, PACE_FAILURES);
    } else if (pace->failures_count == 1) {
        wait_at_least(pace, saturating_add(now_us, config->absent_us), PACE_FAILURES);
    }
}

/* Requests that are too many, and servers or gateways that cannot answer. Others, 500 too, are about a page.
 */
static bool is_overload(uint16_t status) {
    return status == 429 || status == 502 || status == 503 || status == 504 ||
           (status >= 520 && status <= 524);
}

static void overload(struct pace *pace, const struct pace_config *config, const struct pace_answer *answer,
                     uint64_t now_us, int64_t wall_us) {
    pace->last_status = answer->status;
    uint64_t asked_us;
    bool may_ask = answer->status == 429 || answer->status == 503;
    if (may_ask && pace_read_retry_after(answer->retry_after, wall_us, &asked_us)) {
        uint64_t wait_us = asked_us < config->retry_after_max_us ? asked_us : config->retry_after_max_us;
        wait_at_least(pace, saturating_add(now_us, wait_us), PACE_RETRY_AFTER);
    }
    back_off(pace, config, now_us, PACE_BACKOFF);
}

void pace_finish(struct pace *pace, const struct pace_config *config, const struct pace_answer *answer,
                 uint64_t now_us, int64_t wall_us) {
    if (pace_is_dead(pace)) {
        return; /* an answer of a transfer that was still under way */
    }
    if (pace->next_us <= now_us) {
        pace->reason = PACE_READY; /* that wait is over; what follows sets another */
    }
    if (answer->status == 0) {
        pace_fail(pace, config, answer->is_absent, now_us);
    } else {
        pace->failures_count = 0;
        pace_learn(pace, answer->duration_us);
        if (is_overload(answer->status)) {
            overload(pace, config, answer, now_us, wall_us);
        } else if (pace->bad_count > 0) {
            pace->bad_count /= 2; /* back to full speed by steps */
            wait_at_least(pace, saturating_add(now_us, backoff_us(pace, config)), PACE_BACKOFF);
        }
    }
    if (!pace_is_dead(pace)) {
        wait_usual(pace, config, now_us);
    }
}

void pace_wait_for_robots(struct pace *pace, const struct pace_config *config, uint64_t now_us) {
    if (pace_is_dead(pace)) {
        return;
    }
    pace->is_robots_waiting = true;
    uint64_t wait_us = backoff_us(pace, config);
    wait_at_least(pace, saturating_add(now_us, wait_us > 0 ? wait_us : config->backoff_min_us), PACE_ROBOTS);
}

void pace_got_robots(struct pace *pace) {
    pace->is_robots_waiting = false;
}

/* ---- lent to others ---- */

/* The least that the rules ask for, however fast the host answers. */
static uint64_t least_delay_us(const struct pace *pace, const struct pace_config *config) {
    uint64_t delay_us = config->has_delay ? config->delay_us : config->delay_min_us;
    bool is_asked_for_more = !is_at_once(config) && pace->crawl_delay_us > delay_us;
    return is_asked_for_more ? pace->crawl_delay_us : delay_us;
}

uint64_t pace_delay_us(const struct pace *pace, const struct pace_config *config) {
    uint64_t least_us = least_delay_us(pace, config);
    uint64_t usual_us = clamp(config->factor * pace->answer_us, config->delay_min_us, config->delay_max_us);
    return !config->has_delay && usual_us > least_us ? usual_us : least_us;
}

void pace_guess_asked(struct pace *pace, const struct pace_config *config, uint64_t now_us) {
    if (!pace_is_dead(pace)) {
        wait_usual(pace, config, now_us);
    }
}

void pace_take_back(struct pace *pace, const struct pace_config *config, const struct pace *returned,
                    uint32_t requests_count, uint64_t from_us, uint64_t now_us) {
    if (pace_is_dead(pace)) {
        return;
    }
    if (requests_count > 0) {
        pace->answer_us = returned->answer_us;
        pace->bad_count = returned->bad_count < BACKOFF_LEVEL_MAX ? returned->bad_count : BACKOFF_LEVEL_MAX;
        pace->last_status = returned->last_status;
        bool is_last_chance = config->failures_max > 0 && returned->failures_count >= config->failures_max;
        pace->failures_count =
            is_last_chance ? (uint16_t)(config->failures_max - 1) : returned->failures_count;
    }
    if (pace->next_us <= now_us) {
        pace->reason = PACE_READY;
    }
    bool was_dead = pace_is_dead(returned);
    enum pace_reason reason = was_dead                         ? PACE_FAILURES
                              : returned->reason == PACE_READY ? PACE_DELAY
                                                               : returned->reason;
    uint64_t most_us = saturating_add(now_us, config->retry_after_max_us);
    uint64_t next_us = was_dead ? saturating_add(now_us, backoff_us(pace, config)) : returned->next_us;
    wait_at_least(pace, next_us < most_us ? next_us : most_us, reason);
    wait_at_least(pace, saturating_add(from_us, requests_count * least_delay_us(pace, config)), PACE_DELAY);
}

/* ---- why ---- */

enum pace_reason pace_why(const struct pace *pace, uint64_t now_us) {
    if (pace_is_dead(pace) || pace->next_us > now_us) {
        bool is_robots = pace->is_robots_waiting && !pace_is_dead(pace) && pace->reason != PACE_RETRY_AFTER;
        return is_robots ? PACE_ROBOTS : pace->reason;
    }
    return PACE_READY;
}

/* "4.2 s" */
static void put_seconds(struct buf *out, uint64_t us) {
    buf_put_format(out, us % SECOND_US == 0 ? "%.0f s" : "%.1f s", (double)us / 1e6);
}

static void put_until(const struct pace *pace, uint64_t now_us, int64_t local_us, struct buf *out) {
    struct utc utc;
    int64_t until_us = local_us + (int64_t)(pace->next_us - now_us);
    utc_split(until_us > UTC_MAX_US ? UTC_MAX_US : until_us, &utc);
    buf_put_format(out, " until %02u:%02u", utc.hour, utc.minute);
}

void pace_put_why(const struct pace *pace, uint64_t now_us, int64_t local_us, struct buf *out) {
    static const char *const words[PACE_REASONS_COUNT] = {
        [PACE_READY] = "ready",
        [PACE_DELAY] = "delay between requests",
        [PACE_SLOW] = "slow: ",
        [PACE_CRAWL_DELAY] = "Crawl-delay ",
        [PACE_RETRY_AFTER] = "Retry-After",
        [PACE_BACKOFF] = "backing off",
        [PACE_ROBOTS] = "robots.txt unreachable",
    };
    enum pace_reason reason = pace_why(pace, now_us);
    buf_put_string(out, words[reason] != NULL ? words[reason] : "");
    if (reason == PACE_SLOW) {
        put_seconds(out, pace->answer_us);
        buf_put_string(out, " per answer");
    } else if (reason == PACE_CRAWL_DELAY) {
        put_seconds(out, pace->crawl_delay_us);
        buf_put_string(out, pace->is_crawl_delay_cut ? " (it asks for more)" : "");
    } else if (reason == PACE_FAILURES) {
        buf_put_format(out, "no connection, %u in a row", pace->failures_count);
    } else if (reason == PACE_DEAD) {
        buf_put_format(out, "given up after %u failed connections", pace->failures_count);
    }
    if (reason == PACE_BACKOFF && pace->last_status != 0) {
        buf_put_format(out, " after %u", pace->last_status);
    }
    if (reason == PACE_BACKOFF || reason == PACE_RETRY_AFTER) {
        put_until(pace, now_us, local_us, out);
    }
}

bool pace_read_retry_after(struct bytes value, int64_t wall_us, uint64_t *ret_us) {
    struct bytes text = bytes_trim(value);
    size_t digits = 0;
    while (digits < text.size && byte_is_digit(text.data[digits])) {
        digits++;
    }
    if (digits > 0 && digits == text.size) {
        uint64_t seconds = 0;
        bool is_small = bytes_to_u64(text, UINT32_MAX, &seconds);
        *ret_us = (is_small ? seconds : UINT32_MAX) * SECOND_US;
        return true;
    }
    int64_t time_us;
    if (!utc_parse_http(text, &time_us)) {
        return false;
    }
    *ret_us = time_us > wall_us ? (uint64_t)(time_us - wall_us) : 0;
    return true;
}

/* ---- IP addresses ---- */

enum { ADDRESSES_RESERVED = 64, IP_SIZE = 16 };

enum err pace_addresses_init(struct pace_addresses *addresses, uint64_t hash_seed) {
    map_init(&addresses->map, IP_SIZE, sizeof(struct pace_address), PACE_ADDRESSES_MAX, hash_seed);
    enum err err = map_reserve(&addresses->map, ADDRESSES_RESERVED);
    if (err != ERR_OK) {
        map_done(&addresses->map);
    }
    return err;
}

void pace_addresses_done(struct pace_addresses *addresses) {
    map_done(&addresses->map);
}

static void forget_idle(struct pace_addresses *addresses, uint64_t now_us) {
    size_t cursor = 0;
    struct bytes key;
    void *value;
    while (map_next(&addresses->map, &cursor, &key, &value)) {
        const struct pace_address *address = value;
        if (address->running_count == 0 && address->next_us <= now_us) {
            map_remove(&addresses->map, key);
        }
    }
}

/* Room for one more: those at rest are forgotten before the table grows. */
static bool pace_make_room(struct pace_addresses *addresses, uint64_t now_us) {
    struct map *map = &addresses->map;
    if (map->count < map->entries_max) {
        return true;
    }
    forget_idle(addresses, now_us);
    bool is_crowded = 4 * map->count > 3 * map->entries_max;
    size_t wanted = 2 * map->entries_max < PACE_ADDRESSES_MAX ? 2 * map->entries_max : PACE_ADDRESSES_MAX;
    enum err err = is_crowded ? map_reserve(map, wanted) : ERR_OK;
    return err == ERR_OK && map->count < map->entries_max;
}

bool pace_address_start(struct pace_addresses *addresses, const struct pace_config *config,
                        const uint8_t ip[16], uint64_t now_us, uint64_t *ret_next_us) {
    struct bytes key = bytes_of(ip, IP_SIZE);
    struct pace_address *address = map_get(&addresses->map, key);
    if (address == NULL) {
        address = pace_make_room(addresses, now_us) ? map_put(&addresses->map, key) : NULL;
        if (address == NULL) {
            return true;
        }
    }
    uint32_t transfers_max = config->address_transfers_max;
    if (transfers_max > 0 && address->running_count >= transfers_max) {
        *ret_next_us = UINT64_MAX;
        return false;
    }
    if (address->next_us > now_us) {
        *ret_next_us = address->next_us;
        return false;
    }
    address->running_count++;
    address->next_us = is_at_once(config) ? now_us : saturating_add(now_us, config->address_delay_us);
    return true;
}

void pace_address_end(struct pace_addresses *addresses, const uint8_t ip[16]) {
    struct pace_address *address = map_get(&addresses->map, bytes_of(ip, IP_SIZE));
    if (address != NULL && address->running_count > 0) {
        address->running_count--;
    }
}

/* ---- on its way to another node ---- */

static const uint64_t WAIT_MAX_US = UINT64_C(1) << 42; /* some weeks */
static const uint64_t ANSWER_MAX_US = UINT64_C(1) << 32;
enum { LEVEL_MAX = 255, STATUS_MAX = 999, FAILURES_MAX = UINT16_MAX };
enum { FLAG_CRAWL_DELAY_CUT = 1, FLAG_ROBOTS_WAITING = 2, FLAGS_ALL = 3 };

static uint64_t at_most(uint64_t value, uint64_t max) {
    return value < max ? value : max;
}

void pace_write(const struct pace *pace, uint64_t now_us, struct wire_writer *writer) {
    bool has_wait = !pace_is_dead(pace) && pace->next_us > now_us;
    wire_write_u8(writer, (uint8_t)pace->reason);
    wire_write_u8(writer, (uint8_t)((pace->is_crawl_delay_cut ? FLAG_CRAWL_DELAY_CUT : 0) |
                                    (pace->is_robots_waiting ? FLAG_ROBOTS_WAITING : 0)));
    wire_write_varint(writer, has_wait ? at_most(pace->next_us - now_us, WAIT_MAX_US) : 0);
    wire_write_varint(writer, at_most(pace->answer_us, ANSWER_MAX_US));
    wire_write_varint(writer, at_most(pace->crawl_delay_us, WAIT_MAX_US));
    wire_write_u8(writer, (uint8_t)at_most(pace->bad_count, LEVEL_MAX));
    wire_write_varint(writer, pace->failures_count);
    wire_write_varint(writer, at_most(pace->last_status, STATUS_MAX));
}

void pace_read(struct wire_reader *reader, uint64_t now_us, struct pace *ret_pace) {
    uint8_t reason = wire_read_u8_max(reader, PACE_REASONS_COUNT - 1);
    uint8_t flags = wire_read_u8_max(reader, FLAGS_ALL);
    uint64_t wait_us = wire_read_varint(reader, WAIT_MAX_US);
    wire_read_check(reader, reason != PACE_DEAD || wait_us == 0, "a wait of a dead host");
    uint64_t answer_us = wire_read_varint(reader, ANSWER_MAX_US);
    uint64_t crawl_delay_us = wire_read_varint(reader, WAIT_MAX_US);
    uint8_t bad_count = wire_read_u8(reader);
    uint64_t failures_count = wire_read_varint(reader, FAILURES_MAX);
    uint64_t last_status = wire_read_varint(reader, STATUS_MAX);
    *ret_pace = (struct pace){
        .next_us = reason == PACE_DEAD ? UINT64_MAX : now_us + wait_us,
        .answer_us = answer_us,
        .crawl_delay_us = crawl_delay_us,
        .bad_count = bad_count,
        .failures_count = (uint16_t)failures_count,
        .last_status = (uint16_t)last_status,
        .is_crawl_delay_cut = (flags & FLAG_CRAWL_DELAY_CUT) != 0,
        .is_robots_waiting = (flags & FLAG_ROBOTS_WAITING) != 0,
        .reason = (enum pace_reason)reason,
    };
}
