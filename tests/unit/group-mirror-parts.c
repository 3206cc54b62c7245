/* mirror: sources that have a part of a version, and an origin that withholds what others have by now. */
#include <stdlib.h>

#include "protocol/mirror/mirror.h"
#include "unit.h"

enum { SOURCES_COUNT = 3, MB = 1 << 20 };
static const uint64_t SECOND_US = 1000000;

struct fixture {
    struct mirror *mirror;
    struct mirror_source sources[SOURCES_COUNT]; /* the first one is the quickest: the origin */
    uint64_t now_us;
};

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[VERSION_SIGNATURE_SIZE]) {
    (void)signer;
    (void)context;
    assert_true(message.size > 0);
    memset(out, 1, VERSION_SIGNATURE_SIZE);
}

static bool believe(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                    const uint8_t signature[VERSION_SIGNATURE_SIZE]) {
    (void)context;
    return key[0] == 0 && message.size > 0 && signature[0] == 1;
}

/* Everybody has version 1, it has begun, and 100 MB of it are wanted. */
static void begin(struct fixture *fixture, unsigned sources_count) {
    struct version version = {.name = "films", .number = 1, .root = {.size = 100}};
    uint8_t memory[VERSION_SIZE_MAX];
    struct mirror_task task;
    version_sign(&version, sign, NULL);
    mirror_set_sources(fixture->mirror, fixture->sources, sources_count, fixture->now_us);
    for (unsigned i = 0; i < sources_count; i++) {
        mirror_hear(fixture->mirror, fixture->sources[i].peer.key, version_write(&version, memory),
                    fixture->now_us);
    }
    fixture->now_us += 60 * SECOND_US;
    do {
        assert_true(mirror_next(fixture->mirror, fixture->now_us, &task));
    } while (task.kind == MIRROR_ASK);
    assert_int_equal(task.kind, MIRROR_BEGIN);
    mirror_set_wanted(fixture->mirror, 100 * MB, true);
}

static int setup(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct mirror_config config = {.name = "films", .verify = believe, .seed = 7};
    assert_non_null(fixture);
    fixture->now_us = 1000 * SECOND_US;
    for (uint8_t i = 0; i < SOURCES_COUNT; i++) {
        fixture->sources[i].peer.address = address_ipv4(10, 0, 0, i, 7070);
        memset(fixture->sources[i].peer.key, i + 1, PEER_KEY_SIZE);
        fixture->sources[i].bandwidth = (uint64_t)(10 - i) * MB;
        fixture->sources[i].delay_us = 20000;
    }
    void *memory = malloc(mirror_size(&config));
    assert_non_null(memory);
    fixture->mirror = mirror_init(memory, &config, fixture->now_us);
    *state = fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    free(fixture->mirror);
    free(fixture);
    return 0;
}

static void offer(struct fixture *fixture, unsigned source, uint64_t size, uint64_t withheld_size,
                  bool is_whole) {
    mirror_set_offer(fixture->mirror, fixture->sources[source].peer.key, size, withheld_size, is_whole);
}

static void looked(struct fixture *fixture, const struct mirror_task *task) {
    mirror_looked(fixture->mirror, task->source.key, fixture->now_us);
}

/* The next task that is none of asking for versions. */
static bool next(struct fixture *fixture, struct mirror_task *task) {
    bool is_one;
    do {
        is_one = mirror_next(fixture->mirror, fixture->now_us, task);
    } while (is_one && task->kind == MIRROR_ASK);
    if (!is_one) {
        assert_true(mirror_wake_at(fixture->mirror, fixture->now_us) > fixture->now_us);
    }
    return is_one;
}

static struct mirror_task expect(struct fixture *fixture, enum mirror_task_kind kind, unsigned source) {
    struct mirror_task task;
    assert_true(next(fixture, &task));
    assert_int_equal(task.kind, kind);
    assert_int_equal(task.source.key[0], source + 1);
    return task;
}

static void expect_nothing(struct fixture *fixture) {
    struct mirror_task task;
    assert_false(next(fixture, &task));
}

static void came(struct fixture *fixture, const struct mirror_task *task, uint64_t size) {
    mirror_fetched(fixture->mirror, task->batch, task->source.key, ERR_OK, size, fixture->now_us);
}

static void who_has_a_part_is_asked_for_that_part(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    offer(fixture, 0, 0, 0, false);
    offer(fixture, 1, 3 * MB, 0, false);
    struct mirror_task look = expect(fixture, MIRROR_LOOK, 0); /* of the other it is known */
    struct mirror_task fetch = expect(fixture, MIRROR_FETCH, 1);
    assert_int_equal(fetch.size, 3 * MB);
    expect_nothing(fixture);
    offer(fixture, 0, 5 * MB, 0, false);
    looked(fixture, &look);
    assert_int_equal(expect(fixture, MIRROR_FETCH, 0).size, 5 * MB);
    expect_nothing(fixture);
}

static void who_has_nothing_new_is_looked_at_less_often(void **state) {
    struct fixture *fixture = *state;
    struct mirror_task task;
    unsigned count = 0;
    begin(fixture, 1);
    offer(fixture, 0, 0, 0, false);
    uint64_t end_us = fixture->now_us + 20 * SECOND_US;
    while (fixture->now_us < end_us) {
        while (next(fixture, &task)) {
            assert_int_equal(task.kind, MIRROR_LOOK);
            looked(fixture, &task);
            count++;
        }
        fixture->now_us = mirror_wake_at(fixture->mirror, fixture->now_us);
    }
    assert_in_range(count, 9, 18); /* at 0, 0.2, 0.6, 1.4 s, then every two seconds */
}

static void what_is_withheld_is_taken_when_nothing_else_comes(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    offer(fixture, 0, 0, 50 * MB, true);
    offer(fixture, 1, 0, 0, true);
    expect_nothing(fixture);
    fixture->now_us += 10 * SECOND_US - 1;
    expect_nothing(fixture);
    fixture->now_us += 1;
    struct mirror_task task = expect(fixture, MIRROR_FETCH, 0);
    assert_true(task.is_needed && task.size <= 4 * MB);
    expect_nothing(fixture);
    came(fixture, &task, task.size);
    task = expect(fixture, MIRROR_FETCH, 0); /* at once: nobody else has given anything */
    assert_true(task.is_needed);
    came(fixture, &task, task.size);
    offer(fixture, 1, MB, 0, true);
    task = expect(fixture, MIRROR_FETCH, 1);
    assert_false(task.is_needed);
    came(fixture, &task, MB);
    offer(fixture, 1, 0, 0, true);
    expect_nothing(fixture); /* the need is over */
    fixture->now_us += 10 * SECOND_US;
    assert_true(expect(fixture, MIRROR_FETCH, 0).is_needed);
    assert_int_equal(mirror_counters(fixture->mirror)->needed_count, 3);
}

static void nothing_is_withheld_from_who_knows_nobody_else(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 1);
    offer(fixture, 0, 0, 50 * MB, true);
    assert_true(expect(fixture, MIRROR_FETCH, 0).is_needed);
}

static void others_may_still_say_that_they_have_it(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 1);
    mirror_set_sources(fixture->mirror, fixture->sources, 2, fixture->now_us);
    offer(fixture, 0, 0, 50 * MB, true);
    fixture->now_us += 5 * SECOND_US - 1; /* half as long as where they say so */
    expect_nothing(fixture);
    fixture->now_us += 1;
    assert_true(expect(fixture, MIRROR_FETCH, 0).is_needed);
}

static void others_are_not_waited_for_where_that_saves_little(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 1);
    mirror_set_sources(fixture->mirror, fixture->sources, 2, fixture->now_us);
    mirror_set_wanted(fixture->mirror, MB, true);
    offer(fixture, 0, 0, MB, true);
    fixture->now_us += 900 * 1000; /* eight times (20 ms + 1 MB at 10 MB/s) */
    expect_nothing(fixture);
    fixture->now_us += 100 * 1000;
    assert_true(expect(fixture, MIRROR_FETCH, 0).is_needed);
}

static void a_batch_of_a_part_may_bring_less(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    offer(fixture, 0, 10 * MB, 0, true);
    offer(fixture, 1, 0, 0, true);
    struct mirror_task task = expect(fixture, MIRROR_FETCH, 0);
    came(fixture, &task, 0); /* it said of each piece that others have it */
    mirror_set_wanted(fixture->mirror, 100 * MB, true);
    offer(fixture, 0, 0, 10 * MB, true);
    expect_nothing(fixture);
    assert_int_equal(mirror_counters(fixture->mirror)->again_count, 0);
}

static void others_are_told_before_all_has_come(void **state) {
    struct fixture *fixture = *state;
    struct mirror_task task;
    begin(fixture, 1);
    offer(fixture, 0, 0, 0, true);
    mirror_set_sources(fixture->mirror, fixture->sources, 2, fixture->now_us);
    offer(fixture, 1, 0, 0, true);
    expect_nothing(fixture);
    mirror_share(fixture->mirror, fixture->now_us);
    expect(fixture, MIRROR_NOTIFY, 1); /* the other one told us */
    mirror_told(fixture->mirror, fixture->sources[1].peer.key, ERR_OK, fixture->now_us);
    mirror_share(fixture->mirror, fixture->now_us);
    expect_nothing(fixture);
    mirror_set_wanted(fixture->mirror, 0, true);
    assert_true(next(fixture, &task));
    assert_int_equal(task.kind, MIRROR_APPLY);
    fixture->now_us += 60 * SECOND_US;
    mirror_applied(fixture->mirror, ERR_OK, fixture->now_us);
    expect(fixture, MIRROR_NOTIFY, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_has_a_part_is_asked_for_that_part, setup, teardown),
        cmocka_unit_test_setup_teardown(who_has_nothing_new_is_looked_at_less_often, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_withheld_is_taken_when_nothing_else_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_withheld_from_who_knows_nobody_else, setup, teardown),
        cmocka_unit_test_setup_teardown(others_may_still_say_that_they_have_it, setup, teardown),
        cmocka_unit_test_setup_teardown(others_are_not_waited_for_where_that_saves_little, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_of_a_part_may_bring_less, setup, teardown),
        cmocka_unit_test_setup_teardown(others_are_told_before_all_has_come, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
