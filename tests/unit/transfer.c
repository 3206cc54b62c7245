/* transfer: many captures under way, as many as each line bears; nobody waits for another giver. */
#include "protocol/copies/transfer.h"

#include <stdlib.h>

#include "base/prng.h"
#include "unit.h"

enum { GIVERS_MAX = 8, OPEN_MAX = 80, KEYS_MAX = 40000 };
static const uint64_t MILLISECOND = 1000;
static const uint64_t SECOND = 1000000;
static const uint64_t SILENT = UINT64_MAX; /* a rate: nothing ever comes */

/* A giver and the line to it. */
struct line {
    struct peer peer;
    uint64_t delay_us; /* there and back */
    uint64_t rate;     /* bytes a second; 0: any */
    uint64_t free_us;  /* when what it has sent is through */
    bool is_old;
    uint64_t given_size;
    uint64_t done_us;     /* when the last of its keys came */
    uint32_t largest;     /* window */
    uint64_t late_us_max; /* that an answer waited in the line */
};

struct flight {
    bool is_used;
    uint64_t at_us;
    enum transfer_line line;
    uint64_t size;
    size_t giver;
    uint32_t given_count;
    struct transfer_question question;
};

/* Keys n of giver n % lines_count; here[] says what has come. */
struct world {
    struct transfer *transfer;
    uint64_t now_us;
    struct line lines[GIVERS_MAX];
    size_t lines_count;
    struct flight flights[OPEN_MAX];
    uint32_t capture_size;
    uint32_t same_digest_from; /* keys from here on have one payload */
    bool has_same_payload;
    uint8_t here[KEYS_MAX];
    uint32_t here_count;
    uint32_t twice_count;
    uint32_t about_count;
};

static struct ringkey key_of(const struct world *world, uint32_t n) {
    struct ringkey key = {.bytes = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), 1}};
    uint32_t digest = n >= world->same_digest_from ? UINT32_MAX : n;
    memcpy(key.bytes + RINGKEY_POSITION_SIZE + RINGKEY_TIME_SIZE, &digest, sizeof digest);
    return key;
}

static uint32_t number_of(const struct ringkey *key) {
    return key->bytes[0] + ((uint32_t)key->bytes[1] << 8) + ((uint32_t)key->bytes[2] << 16);
}

static bool has_key(void *context, const struct ringkey *key) {
    struct world *world = context;
    return world->here[number_of(key)] > 0;
}

static bool has_payload(void *context, const struct ringkey *key) {
    struct world *world = context;
    return number_of(key) >= world->same_digest_from && world->has_same_payload;
}

static void world_init(struct world *world, const struct transfer_config *config, size_t lines_count) {
    memset(world, 0, sizeof *world);
    void *memory = malloc(transfer_size(config));
    assert_non_null(memory);
    world->transfer = transfer_init(memory, config);
    world->lines_count = lines_count;
    world->capture_size = 3000;
    world->same_digest_from = UINT32_MAX;
    world->now_us = 5 * SECOND;
    for (size_t i = 0; i < lines_count; i++) {
        world->lines[i].peer = (struct peer){.address = address_ipv4(192, 0, 2, (uint8_t)(i + 1), 7070),
                                             .key = {(uint8_t)(i + 1)}};
    }
}

static void world_done(struct world *world) {
    free(world->transfer);
}

static bool want(struct world *world, uint32_t n, size_t giver) {
    struct ringkey key = key_of(world, n);
    return transfer_want(world->transfer, TRANSFER_ORDER_OWN, &key, &world->lines[giver].peer);
}

static size_t line_of(const struct world *world, const struct peer *peer) {
    size_t i = 0;
    while (!peer_equal(&world->lines[i].peer, peer)) {
        i++;
    }
    return i;
}

/* The answer is on its way: so many captures as fit, when the line has carried them. */
static void send(struct world *world, const struct transfer_question *question) {
    size_t i = 0;
    while (world->flights[i].is_used) {
        i++;
    }
    struct flight *flight = &world->flights[i];
    *flight = (struct flight){.is_used = true, .question = *question};
    flight->giver = line_of(world, &question->giver);
    struct line *line = &world->lines[flight->giver];
    if (line->rate == SILENT) {
        flight->at_us = world->now_us + 10 * SECOND;
        flight->line = TRANSFER_SILENT;
        return;
    }
    if (line->is_old && !question->is_alone) {
        flight->at_us = world->now_us + line->delay_us;
        flight->line = TRANSFER_UNSUPPORTED;
        return;
    }
    uint32_t room = question->is_alone ? 1 : question->size_max / world->capture_size;
    flight->given_count = room < question->count ? room : question->count;
    for (uint32_t j = 0; j < flight->given_count; j++) {
        flight->size += question->is_about[j] ? 300 : world->capture_size;
    }
    uint64_t from_us = world->now_us + line->delay_us / 2;
    from_us = line->free_us > from_us ? line->free_us : from_us;
    line->free_us = from_us + (line->rate > 0 ? flight->size * SECOND / line->rate : 0);
    flight->at_us = line->free_us + line->delay_us / 2;
    uint64_t late_us = flight->at_us - world->now_us - line->delay_us;
    line->late_us_max = late_us > line->late_us_max ? late_us : line->late_us_max;
    flight->line = TRANSFER_CAME;
}

static void land(struct world *world, struct flight *flight) {
    struct line *line = &world->lines[flight->giver];
    const struct transfer_question *question = &flight->question;
    flight->is_used = false;
    transfer_answered(world->transfer, question->id, flight->line, flight->size, world->now_us);
    for (uint32_t i = 0; i < question->count; i++) {
        enum transfer_outcome outcome = flight->line == TRANSFER_UNSUPPORTED ? TRANSFER_LATER
                                        : flight->line != TRANSFER_CAME      ? TRANSFER_NOT_GIVEN
                                        : i < flight->given_count            ? TRANSFER_STORED
                                                                             : TRANSFER_LATER;
        if (outcome == TRANSFER_STORED) {
            uint32_t n = number_of(&question->keys[i]);
            world->twice_count += world->here[n] > 0;
            world->here_count += world->here[n] == 0;
            world->here[n] = 1;
            world->about_count += question->is_about[i];
            world->has_same_payload = world->has_same_payload || n >= world->same_digest_from;
            line->done_us = world->now_us;
        }
        transfer_settle(world->transfer, question->items[i], outcome, world->now_us);
    }
    line->given_size += flight->size;
    uint32_t window = transfer_window(world->transfer, &line->peer);
    line->largest = window > line->largest ? window : line->largest;
}

static struct flight *next_flight(struct world *world) {
    struct flight *next = NULL;
    for (size_t i = 0; i < OPEN_MAX; i++) {
        struct flight *flight = &world->flights[i];
        if (flight->is_used && (next == NULL || flight->at_us < next->at_us)) {
            next = flight;
        }
    }
    return next;
}

/* Until nothing is wanted, or the time is over. Returns how long it took. */
static uint64_t run(struct world *world, uint64_t time_us) {
    uint64_t from_us = world->now_us;
    struct transfer_set set = {has_key, has_payload, world};
    struct transfer_question question;
    while (transfer_status(world->transfer).wanted_count > 0 && world->now_us < from_us + time_us) {
        while (transfer_next(world->transfer, &set, world->now_us, &question)) {
            assert_in_range(question.count, 1, TRANSFER_KEYS_MAX);
            send(world, &question);
        }
        struct flight *flight = next_flight(world);
        uint64_t wake_us = transfer_wake_at(world->transfer, world->now_us);
        if (flight != NULL && flight->at_us <= wake_us) {
            world->now_us = flight->at_us;
            land(world, flight);
        } else if (wake_us != UINT64_MAX) {
            assert_true(wake_us > world->now_us || flight == NULL);
            world->now_us = wake_us > world->now_us ? wake_us : world->now_us + 1;
        } else {
            break;
        }
    }
    assert_true(transfer_check(world->transfer));
    return world->now_us - from_us;
}

static struct world *world_new(const struct transfer_config *config, size_t lines_count) {
    struct world *world = malloc(sizeof *world);
    assert_non_null(world);
    world_init(world, config, lines_count);
    return world;
}

static void world_free(struct world *world) {
    world_done(world);
    free(world);
}

/* Issue: 36 captures a second at 100 ms, one capture a question. */
static void a_long_line_is_filled(void **state) {
    struct world *world = world_new(&(struct transfer_config){0}, 1);
    (void)state;
    world->lines[0].delay_us = 100 * MILLISECOND;
    for (uint32_t n = 0; n < 3000; n++) {
        assert_true(want(world, n, 0));
    }
    uint64_t took_us = run(world, 60 * SECOND);
    assert_int_equal(world->here_count, 3000);
    assert_true(took_us < 1500 * MILLISECOND); /* 2,000 captures a second and more */
    world_free(world);
}

/* Whoever reads meanwhile must ask others. */
static void what_has_not_come_is_known_by_its_place(void **state) {
    struct world *world = world_new(&(struct transfer_config){0}, 2);
    struct ringkey keys[] = {key_of(world, 0), key_of(world, 1), key_of(world, 2)};
    (void)state;
    assert_true(want(world, 0, 0));
    assert_true(want(world, 0, 1)); /* two have it */
    assert_true(want(world, 1, 0));
    assert_true(transfer_may_want(world->transfer, keys[0].bytes));
    assert_true(transfer_may_want(world->transfer, keys[1].bytes));
    assert_false(transfer_may_want(world->transfer, keys[2].bytes));
    (void)run(world, 60 * SECOND);
    assert_false(transfer_may_want(world->transfer, keys[0].bytes));
    assert_false(transfer_may_want(world->transfer, keys[1].bytes));
    world_free(world);
}

/* 10 Mbit/s are used to four fifths, and a reader's answer waits half a second at most behind copies. */
static void a_narrow_line_is_filled_but_not_flooded(void **state) {
    struct world *world = world_new(&(struct transfer_config){0}, 1);
    (void)state;
    world->lines[0].delay_us = 100 * MILLISECOND;
    world->lines[0].rate = 1250000;
    for (uint32_t n = 0; n < 10000; n++) {
        assert_true(want(world, n, 0));
    }
    uint64_t took_us = run(world, 120 * SECOND);
    assert_int_equal(world->here_count, 10000);
    assert_true(took_us < 30 * SECOND); /* 24 s are the least */
    assert_true(world->lines[0].late_us_max < 600 * MILLISECOND);
    world_free(world);
}

static void a_line_of_a_megabit_is_used(void **state) {
    struct world *world = world_new(&(struct transfer_config){0}, 1);
    (void)state;
    world->lines[0].delay_us = 50 * MILLISECOND;
    world->lines[0].rate = 125000;
    for (uint32_t n = 0; n < 1000; n++) {
        assert_true(want(world, n, 0));
    }
    uint64_t took_us = run(world, 120 * SECOND);
    assert_int_equal(world->here_count, 1000);
    assert_true(took_us < 30 * SECOND); /* 24 s are the least */
    world_free(world);
}

static void a_silent_giver_delays_nobody(void **state) {
    struct world *world = world_new(&(struct transfer_config){0}, 3);
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        world->lines[i].delay_us = 100 * MILLISECOND;
    }
    world->lines[0].rate = SILENT;
    for (uint32_t n = 0; n < 9000; n++) {
        assert_true(want(world, n, n % 3));
    }
    run(world, 4 * SECOND);
    assert_int_equal(world->here_count, 6000);
    assert_true(world->lines[1].done_us < 8 * SECOND && world->lines[2].done_us < 8 * SECOND);
    world_free(world);
}

/* What a silent giver was asked for comes from another one that has it, long before it is given up. */
static void what_two_have_comes_from_the_one_that_answers(void **state) {
    struct world *world = world_new(&(struct transfer_config){0}, 2);
    (void)state;
    world->lines[1].delay_us = 100 * MILLISECOND;
    world->lines[0].rate = SILENT;
    for (uint32_t n = 0; n < 1000; n++) {
        assert_true(want(world, n, 0));
        assert_true(want(world, n, 1));
    }
    run(world, 3 * SECOND);
    assert_int_equal(world->here_count, 1000);
    world_free(world);
}

static void a_silent_giver_is_given_up_in_the_end(void **state) {
    struct world *world = world_new(&(struct transfer_config){0}, 1);
    (void)state;
    world->lines[0].rate = SILENT;
    for (uint32_t n = 0; n < 200; n++) {
        assert_true(want(world, n, 0));
    }
    run(world, 1000 * SECOND);
    assert_int_equal(transfer_status(world->transfer).wanted_count, 0);
    assert_int_equal(world->here_count, 0);
    world_free(world);
}

static void equal_payloads_come_once(void **state) {
    struct world *world = world_new(&(struct transfer_config){0}, 1);
    (void)state;
    world->lines[0].delay_us = 100 * MILLISECOND;
    world->same_digest_from = 100;
    for (uint32_t n = 0; n < 2000; n++) {
        assert_true(want(world, n, 0));
    }
    uint64_t took_us = run(world, 60 * SECOND);
    assert_int_equal(world->here_count, 2000);
    assert_int_equal(world->about_count, 1899);
    assert_true(took_us < 2 * SECOND);
    world_free(world);
}

static void a_giver_of_an_earlier_version_is_asked_one_by_one(void **state) {
    struct world *world = world_new(&(struct transfer_config){0}, 2);
    (void)state;
    world->lines[0].delay_us = world->lines[1].delay_us = 10 * MILLISECOND;
    world->lines[0].is_old = true;
    for (uint32_t n = 0; n < 200; n++) {
        assert_true(want(world, n, n % 2));
    }
    run(world, 60 * SECOND);
    assert_int_equal(world->here_count, 200);
    assert_int_equal(world->twice_count, 0);
    world_free(world);
}

static void what_is_wanted_is_bounded_and_never_twice_of_one_giver(void **state) {
    struct world *world = world_new(&(struct transfer_config){.wanted_max = 64}, 1);
    (void)state;
    for (uint32_t n = 0; n < 32; n++) {
        assert_true(want(world, n, 0));
        assert_true(want(world, n, 0));
    }
    assert_false(want(world, 32, 0)); /* the other half is for what others offer */
    assert_int_equal(transfer_status(world->transfer).wanted_count, 32);
    run(world, 10 * SECOND);
    assert_int_equal(world->here_count, 32);
    assert_true(want(world, 32, 0));
    world_free(world);
}

/* Lines and losses drawn by lot: everything comes or is given up, and the lists hold together. */
static void whatever_the_lines_do_everything_ends(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct prng prng;
        prng_init(&prng, seed);
        struct transfer_config config = {.wanted_max = 4096, .has_slow_lines = prng_below(&prng, 3) == 0};
        size_t count = 1 + (size_t)prng_below(&prng, GIVERS_MAX);
        struct world *world = world_new(&config, count);
        world->same_digest_from = (uint32_t)prng_below(&prng, 2000);
        world->capture_size = 200 + (uint32_t)prng_below(&prng, 30000);
        for (size_t i = 0; i < count; i++) {
            world->lines[i].delay_us = prng_below(&prng, SECOND);
            world->lines[i].rate = prng_below(&prng, 4) == 0 ? SILENT : 10000 + prng_below(&prng, 10000000);
            world->lines[i].is_old = prng_below(&prng, 5) == 0;
        }
        bool is_there = false; /* any that gives something */
        for (size_t i = 0; i < count; i++) {
            is_there = is_there || world->lines[i].rate != SILENT;
        }
        for (uint32_t n = 0; n < 1000; n++) {
            for (size_t i = 0; i < count; i++) {
                want(world, n, i);
            }
        }
        run(world, 100000 * SECOND);
        assert_int_equal(transfer_status(world->transfer).wanted_count, 0);
        assert_true(!is_there || world->here_count > 0);
        world_free(world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_line_is_filled),
        cmocka_unit_test(what_has_not_come_is_known_by_its_place),
        cmocka_unit_test(a_narrow_line_is_filled_but_not_flooded),
        cmocka_unit_test(a_line_of_a_megabit_is_used),
        cmocka_unit_test(a_silent_giver_delays_nobody),
        cmocka_unit_test(what_two_have_comes_from_the_one_that_answers),
        cmocka_unit_test(a_silent_giver_is_given_up_in_the_end),
        cmocka_unit_test(equal_payloads_come_once),
        cmocka_unit_test(a_giver_of_an_earlier_version_is_asked_one_by_one),
        cmocka_unit_test(what_is_wanted_is_bounded_and_never_twice_of_one_giver),
        cmocka_unit_test(whatever_the_lines_do_everything_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
