/* mirror, mirror_limit: driven by hand, what a replica does next. Signatures are a sum, as in the simulator.
 */
#include "protocol/mirror/mirror.h"

#include <stdlib.h>

#include "unit.h"

enum { SOURCES_COUNT = 4, MB = 1 << 20 };
static const uint64_t SECOND_US = 1000000;
static const uint64_t MINUTE_US = 60 * 1000000;

static const uint8_t publisher[PEER_KEY_SIZE] = {'p'};

/* ---- versions ---- */

static void make_signature(const void *signer, const char *context, struct bytes message,
                           uint8_t out[VERSION_SIGNATURE_SIZE]) {
    const uint8_t *key = signer;
    (void)context;
    memset(out, key[0], VERSION_SIGNATURE_SIZE);
    for (size_t i = 0; i < message.size; i++) {
        out[i % VERSION_SIGNATURE_SIZE] ^= message.data[i];
    }
}

static bool verify(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                   const uint8_t signature[VERSION_SIGNATURE_SIZE]) {
    uint8_t made[VERSION_SIGNATURE_SIZE];
    make_signature(key, context, message, made);
    return memcmp(made, signature, sizeof made) == 0;
}

static struct version version_of(uint64_t number) {
    struct version version = {.name = "films", .number = number, .root = {.size = 100}};
    memcpy(version.publisher, publisher, PEER_KEY_SIZE);
    version.root.digest[0] = (uint8_t)number;
    version_sign(&version, make_signature, publisher);
    return version;
}

/* ---- a replica with four sources: 10, 5, 1 and 0.1 MB a second ---- */

struct fixture {
    struct mirror_config config;
    struct mirror *mirror;
    struct mirror_source sources[SOURCES_COUNT];
    struct mirror_limit limit;
    uint64_t now_us;
};

static void begin_life(struct fixture *fixture) {
    free(fixture->mirror);
    void *memory = malloc(mirror_size(&fixture->config));
    assert_non_null(memory);
    fixture->mirror = mirror_init(memory, &fixture->config, fixture->now_us);
    mirror_set_sources(fixture->mirror, fixture->sources, SOURCES_COUNT, fixture->now_us);
}

static int setup(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->now_us = 1000 * SECOND_US;
    fixture->config = (struct mirror_config){.name = "films", .verify = verify, .seed = 7};
    memcpy(fixture->config.publisher, publisher, PEER_KEY_SIZE);
    static const uint64_t rates[SOURCES_COUNT] = {10 * MB, 5 * MB, MB, MB / 10};
    for (uint8_t i = 0; i < SOURCES_COUNT; i++) {
        fixture->sources[i].peer.address = address_ipv4(10, 0, 0, i, 7070);
        memset(fixture->sources[i].peer.key, i + 1, PEER_KEY_SIZE);
        fixture->sources[i].bandwidth = rates[i];
        fixture->sources[i].delay_us = 20000;
    }
    begin_life(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    free(fixture->mirror);
    free(fixture);
    return 0;
}

static unsigned index_of(const struct peer *peer) {
    return peer->key[0] - 1U;
}

static const uint8_t *key_of(const struct fixture *fixture, unsigned source) {
    return fixture->sources[source].peer.key;
}

static enum mirror_verdict hear(struct fixture *fixture, unsigned source, uint64_t number) {
    struct version version = version_of(number);
    uint8_t memory[VERSION_SIZE_MAX];
    return mirror_hear(fixture->mirror, key_of(fixture, source), version_write(&version, memory),
                       fixture->now_us);
}

/* The next task that is none of asking and telling: those are done on the way. */
static bool next(struct fixture *fixture, struct mirror_task *task) {
    for (unsigned i = 0; i < 100; i++) {
        if (!mirror_next(fixture->mirror, fixture->now_us, task)) {
            assert_true(mirror_wake_at(fixture->mirror, fixture->now_us) > fixture->now_us);
            return false;
        }
        if (task->kind != MIRROR_ASK && task->kind != MIRROR_NOTIFY) {
            return true;
        }
    }
    fail_msg("it asks and tells without end");
    return false;
}

static struct mirror_task expect(struct fixture *fixture, enum mirror_task_kind kind) {
    struct mirror_task task;
    assert_true(next(fixture, &task));
    assert_int_equal(task.kind, kind);
    return task;
}

static struct mirror_task expect_of(struct fixture *fixture, enum mirror_task_kind kind, unsigned source) {
    struct mirror_task task = expect(fixture, kind);
    assert_int_equal(index_of(&task.source), source);
    return task;
}

static void expect_nothing(struct fixture *fixture) {
    struct mirror_task task;
    assert_false(next(fixture, &task));
}

static void fetched(struct fixture *fixture, const struct mirror_task *task, enum err err) {
    mirror_fetched(fixture->mirror, task->batch, task->source.key, err, err == ERR_OK ? task->size : 0,
                   fixture->now_us);
}

/* These sources have version 1, and it has begun. */
static void begin(struct fixture *fixture, unsigned sources_count) {
    for (unsigned i = 0; i < sources_count; i++) {
        assert_int_not_equal(hear(fixture, i, 1), MIRROR_FORGED);
    }
    fixture->now_us += MINUTE_US;
    expect(fixture, MIRROR_BEGIN);
}

/* ---- gathering ---- */

static void the_best_source_of_a_minute_comes_first(void **state) {
    struct fixture *fixture = *state;
    expect_nothing(fixture);
    assert_int_equal(hear(fixture, 3, 1), MIRROR_NEWER); /* the slowest is the first to tell */
    assert_int_equal(mirror_phase(fixture->mirror), MIRROR_GATHERING);
    fixture->now_us += MINUTE_US - 1;
    assert_int_equal(hear(fixture, 1, 1), MIRROR_KNOWN);
    expect_nothing(fixture);
    assert_true(mirror_wake_at(fixture->mirror, fixture->now_us) <= fixture->now_us + 1);
    fixture->now_us += 1;
    struct mirror_task task = expect_of(fixture, MIRROR_BEGIN, 1);
    assert_int_equal(task.candidates_count, 2);
    assert_int_equal(mirror_target(fixture->mirror)->number, 1);
    mirror_set_wanted(fixture->mirror, 100, false);
    task = expect_of(fixture, MIRROR_FETCH, 1);
    assert_int_equal(task.size, 100);
    assert_false(task.is_again);
}

static void the_newest_of_those_heard_is_taken(void **state) {
    struct fixture *fixture = *state;
    hear(fixture, 0, 3);
    hear(fixture, 2, 5);
    hear(fixture, 1, 4);
    fixture->now_us += MINUTE_US;
    expect_of(fixture, MIRROR_BEGIN, 2);
    assert_int_equal(mirror_target(fixture->mirror)->number, 5);
    assert_int_equal(mirror_newest(fixture->mirror)->number, 5);
}

static void all_sources_are_asked_now_and_again(void **state) {
    struct fixture *fixture = *state;
    unsigned asked[SOURCES_COUNT] = {0};
    struct mirror_task task;
    for (unsigned i = 0; i < 4000; i++) {
        while (mirror_next(fixture->mirror, fixture->now_us, &task)) {
            assert_int_equal(task.kind, MIRROR_ASK);
            unsigned source = index_of(&task.source);
            asked[source]++;
            mirror_answered(fixture->mirror, task.source.key, source == 0 ? ERR_NOT_FOUND : ERR_TIMEOUT,
                            fixture->now_us);
        }
        uint64_t wake_us = mirror_wake_at(fixture->mirror, fixture->now_us);
        assert_true(wake_us > fixture->now_us);
        fixture->now_us = wake_us;
        if (fixture->now_us > 4600 * SECOND_US) {
            break;
        }
    }
    assert_in_range(asked[0], 5, 9);   /* in an hour, every ten minutes */
    assert_in_range(asked[1], 10, 20); /* the silent ones a few times more, but less and less */
}

/* ---- fetching ---- */

static void what_all_have_comes_from_several_in_fitting_batches(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 4);
    mirror_set_wanted(fixture->mirror, 1000 * MB, true);
    uint64_t sizes[SOURCES_COUNT];
    for (unsigned i = 0; i < SOURCES_COUNT; i++) {
        sizes[i] = expect_of(fixture, MIRROR_FETCH, i).size;
    }
    expect_nothing(fixture);
    assert_true(sizes[0] == 32 * MB && sizes[1] < 21 * MB && sizes[1] > 19 * MB);
    assert_true(sizes[2] < 5 * MB && sizes[3] < MB);
}

/* Beside 16 MB a second, 20 MB take 1.3 s; the slowest would need 2.5 s for the least it can get. */
static void a_slow_source_is_left_out_where_it_would_be_last(void **state) {
    struct fixture *fixture = *state;
    fixture->config.batch_size_max = 4 * MB;
    begin_life(fixture);
    begin(fixture, 4);
    mirror_set_wanted(fixture->mirror, 20 * MB, true);
    for (unsigned i = 0; i < 3; i++) {
        expect_of(fixture, MIRROR_FETCH, i);
    }
    expect_nothing(fixture);
    mirror_set_wanted(fixture->mirror, 60 * MB, true);
    expect_of(fixture, MIRROR_FETCH, 3);
}

static void a_slow_source_helps_where_a_fast_one_is_stuck(void **state) {
    struct fixture *fixture = *state;
    fixture->config.batch_size_max = 4 * MB;
    begin_life(fixture);
    hear(fixture, 0, 1);
    hear(fixture, 3, 1);
    fixture->now_us += MINUTE_US;
    expect_of(fixture, MIRROR_BEGIN, 0);
    mirror_set_wanted(fixture->mirror, 20 * MB, true);
    expect_of(fixture, MIRROR_FETCH, 0);
    expect_nothing(fixture);
    fixture->now_us = mirror_wake_at(fixture->mirror, fixture->now_us);
    assert_false(expect_of(fixture, MIRROR_FETCH, 3).is_again); /* new work first */
}

static uint64_t bandwidth_of(const struct fixture *fixture, size_t source) {
    struct mirror_source_status status;
    mirror_source_at(fixture->mirror, source, fixture->now_us, &status);
    return status.source.bandwidth;
}

static void sources_are_measured_by_what_they_deliver(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    mirror_set_wanted(fixture->mirror, 1000, false);
    struct mirror_task task = expect_of(fixture, MIRROR_FETCH, 0);
    fixture->now_us += SECOND_US;
    fetched(fixture, &task, ERR_OK);
    assert_int_equal(bandwidth_of(fixture, 0), 10 * MB); /* too little to tell */
    for (unsigned i = 0; i < 12; i++) {                  /* in truth it is slow */
        mirror_set_wanted(fixture->mirror, 4 * MB, false);
        task = expect(fixture, MIRROR_FETCH);
        if (index_of(&task.source) != 0) {
            break;
        }
        fixture->now_us += task.size * SECOND_US / MB + 20000;
        fetched(fixture, &task, ERR_OK);
    }
    assert_int_equal(index_of(&task.source), 1); /* the other one is the best now */
    assert_in_range(bandwidth_of(fixture, 0), MB, 5 * MB);
}

static void the_update_ends_and_the_others_are_told(void **state) {
    struct fixture *fixture = *state;
    struct mirror_task task;
    begin(fixture, 2);
    mirror_set_wanted(fixture->mirror, 1000, false); /* a node of the manifest: what it brings is not known */
    struct mirror_task one = expect_of(fixture, MIRROR_FETCH, 0);
    fetched(fixture, &one, ERR_OK);
    expect_nothing(fixture);
    mirror_set_wanted(fixture->mirror, 0, true);
    expect(fixture, MIRROR_APPLY);
    assert_null(mirror_held(fixture->mirror));
    mirror_applied(fixture->mirror, ERR_OK, fixture->now_us);
    assert_int_equal(mirror_held(fixture->mirror)->number, 1);
    unsigned told = 0;
    while (mirror_next(fixture->mirror, fixture->now_us, &task)) {
        assert_int_equal(task.kind, MIRROR_NOTIFY);
        assert_true(index_of(&task.source) >= 2); /* those who had it know */
        mirror_told(fixture->mirror, task.source.key, ERR_OK, fixture->now_us);
        told++;
    }
    assert_int_equal(told, 2);
    assert_int_equal(hear(fixture, 2, 1), MIRROR_KNOWN);
    assert_int_equal(mirror_phase(fixture->mirror), MIRROR_CURRENT);
}

static void who_is_behind_is_told_once_in_a_while(void **state) {
    struct fixture *fixture = *state;
    struct version held = version_of(5);
    struct mirror_task task;
    unsigned told = 0;
    fixture->config.held = &held;
    begin_life(fixture);
    for (unsigned i = 0; i < 1000; i++) { /* in ten seconds */
        fixture->now_us += SECOND_US / 100;
        assert_int_equal(hear(fixture, 0, 4), MIRROR_BEHIND);
        while (mirror_next(fixture->mirror, fixture->now_us, &task)) {
            told += task.kind == MIRROR_NOTIFY && index_of(&task.source) == 0;
        }
    }
    assert_in_range(told, 2, 3);
}

static void who_could_not_be_told_is_told_later(void **state) {
    struct fixture *fixture = *state;
    struct version version = version_of(3);
    struct mirror_task task;
    unsigned told = 0;
    fixture->config.is_master = true;
    begin_life(fixture);
    mirror_publish(fixture->mirror, &version, fixture->now_us);
    for (unsigned i = 0; i < 100; i++) {
        while (mirror_next(fixture->mirror, fixture->now_us, &task)) {
            if (task.kind == MIRROR_NOTIFY) {
                told += index_of(&task.source) == 0;
                mirror_told(fixture->mirror, task.source.key, ERR_TIMEOUT, fixture->now_us);
            }
        }
        fixture->now_us = mirror_wake_at(fixture->mirror, fixture->now_us);
    }
    assert_int_equal(told, 6); /* then it is up to it to ask */
    assert_int_equal(hear(fixture, 0, 2), MIRROR_BEHIND);
    assert_int_equal(hear(fixture, 1, 9), MIRROR_NEWER); /* the master itself fetches nothing */
    fixture->now_us += 10 * MINUTE_US;
    expect_nothing(fixture);
}

/* ---- failures ---- */

static void the_next_source_takes_over(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    mirror_set_wanted(fixture->mirror, 1000, true);
    struct mirror_task task = expect_of(fixture, MIRROR_FETCH, 0);
    fetched(fixture, &task, ERR_CLOSED);
    struct mirror_task again = expect_of(fixture, MIRROR_FETCH, 1);
    assert_true(again.is_again && again.batch == task.batch);
    fetched(fixture, &again, ERR_TIMEOUT);
    expect_nothing(fixture);
    uint64_t wake_us = mirror_wake_at(fixture->mirror, fixture->now_us);
    assert_true(wake_us <= fixture->now_us + 10 * SECOND_US);
    fixture->now_us = wake_us;
    task = expect(fixture, MIRROR_FETCH);
    fetched(fixture, &task, ERR_OK);
    expect(fixture, MIRROR_APPLY);
    assert_int_equal(mirror_counters(fixture->mirror)->again_count, 2);
}

static void a_source_that_left_is_replaced(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    mirror_set_wanted(fixture->mirror, 1000, true);
    struct mirror_task task = expect_of(fixture, MIRROR_FETCH, 0);
    mirror_set_sources(fixture->mirror, fixture->sources + 1, 3, fixture->now_us);
    struct mirror_task again = expect_of(fixture, MIRROR_FETCH, 1);
    assert_int_equal(again.batch, task.batch);
    fetched(fixture, &task, ERR_OK); /* late news of one who is gone */
    expect_nothing(fixture);
    mirror_set_sources(fixture->mirror, fixture->sources + 2, 2, fixture->now_us); /* nobody has it now */
    expect_nothing(fixture);
    assert_null(mirror_target(fixture->mirror));
    mirror_set_wanted(fixture->mirror, 1000, true);
    expect_nothing(fixture);
}

static void a_false_source_is_barred_and_not_heard(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    mirror_set_wanted(fixture->mirror, 1000, true);
    struct mirror_task task = expect_of(fixture, MIRROR_FETCH, 0);
    fetched(fixture, &task, ERR_MISMATCH);
    assert_int_equal(mirror_counters(fixture->mirror)->barred_count, 1);
    assert_int_equal(hear(fixture, 0, 2), MIRROR_IGNORED);
    task = expect_of(fixture, MIRROR_FETCH, 1);
    struct mirror_source_status status;
    mirror_source_at(fixture->mirror, 0, fixture->now_us, &status);
    assert_true(status.is_barred && !status.is_fetching);
    fixture->now_us += 30 * MINUTE_US;
    assert_int_equal(hear(fixture, 0, 1), MIRROR_KNOWN);
}

static void a_busy_source_is_asked_soon(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 1);
    mirror_set_wanted(fixture->mirror, 1000, true);
    for (unsigned i = 0; i < 20; i++) {
        struct mirror_task task = expect_of(fixture, MIRROR_FETCH, 0);
        fetched(fixture, &task, ERR_BUSY);
        expect_nothing(fixture);
        uint64_t wake_us = mirror_wake_at(fixture->mirror, fixture->now_us);
        assert_true(wake_us <= fixture->now_us + 10 * SECOND_US);
        fixture->now_us = wake_us;
    }
}

static void a_late_batch_is_given_to_one_more(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 3);
    mirror_set_wanted(fixture->mirror, MB, true);
    struct mirror_task late = expect_of(fixture, MIRROR_FETCH, 0);
    expect_nothing(fixture);
    fixture->now_us = mirror_wake_at(fixture->mirror, fixture->now_us);
    struct mirror_task other = expect_of(fixture, MIRROR_FETCH, 1);
    assert_true(other.batch == late.batch && other.is_again);
    expect_nothing(fixture); /* two are enough */
    fetched(fixture, &other, ERR_OK);
    struct mirror_task cancel = expect_of(fixture, MIRROR_CANCEL, 0);
    assert_int_equal(cancel.batch, late.batch);
    expect(fixture, MIRROR_APPLY);
    fetched(fixture, &late, ERR_CANCELLED); /* of no interest any more */
    assert_int_equal(mirror_counters(fixture->mirror)->late_count, 1);
}

static void a_stuck_source_does_not_hold_up_the_rest(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    mirror_set_wanted(fixture->mirror, 100 * MB, true);
    struct mirror_task stuck = expect_of(fixture, MIRROR_FETCH, 0);
    unsigned done = 0;
    struct mirror_task task;
    while (next(fixture, &task) && task.kind == MIRROR_FETCH) {
        assert_int_equal(index_of(&task.source), 1);
        fixture->now_us += task.expected_us;
        fetched(fixture, &task, ERR_OK);
        assert_true(++done < 100);
    }
    if (task.kind != MIRROR_CANCEL) {
        fixture->now_us = mirror_wake_at(fixture->mirror, fixture->now_us);
        task = expect_of(fixture, MIRROR_FETCH, 1);
        assert_int_equal(task.batch, stuck.batch);
        fetched(fixture, &task, ERR_OK);
        task = expect(fixture, MIRROR_CANCEL);
    }
    assert_int_equal(task.batch, stuck.batch);
    expect(fixture, MIRROR_APPLY);
}

static void what_a_source_lacks_others_have(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    mirror_set_wanted(fixture->mirror, 1000, true);
    struct mirror_task task = expect_of(fixture, MIRROR_FETCH, 0);
    fetched(fixture, &task, ERR_NOT_FOUND);
    task = expect_of(fixture, MIRROR_FETCH, 1);
    assert_int_equal(hear(fixture, 0, 2), MIRROR_NEWER);
    fetched(fixture, &task, ERR_NOT_FOUND);
    task = expect_of(fixture, MIRROR_FETCH, 0); /* who has a newer one may have this, too */
    fetched(fixture, &task, ERR_NOT_FOUND);
    expect_of(fixture, MIRROR_BEGIN, 0); /* nobody has it: the newer one then, without waiting */
    assert_int_equal(mirror_target(fixture->mirror)->number, 2);
}

static void a_version_under_way_is_finished_first(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    mirror_set_wanted(fixture->mirror, 1000, true);
    struct mirror_task task = expect_of(fixture, MIRROR_FETCH, 0);
    assert_int_equal(hear(fixture, 1, 2), MIRROR_NEWER);
    assert_int_equal(mirror_target(fixture->mirror)->number, 1);
    fetched(fixture, &task, ERR_OK);
    expect(fixture, MIRROR_APPLY);
    mirror_applied(fixture->mirror, ERR_OK, fixture->now_us);
    expect_of(fixture, MIRROR_BEGIN, 1);
    assert_int_equal(mirror_held(fixture->mirror)->number, 1);
    assert_int_equal(mirror_target(fixture->mirror)->number, 2);
}

static void apply(struct fixture *fixture, enum err err) {
    mirror_set_wanted(fixture->mirror, 0, true);
    expect(fixture, MIRROR_APPLY);
    mirror_applied(fixture->mirror, err, fixture->now_us);
}

static void a_bad_version_is_not_tried_again(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    apply(fixture, ERR_INVALID);
    assert_int_equal(hear(fixture, 1, 1), MIRROR_BAD);
    fixture->now_us += 2 * MINUTE_US;
    expect_nothing(fixture);
    assert_null(mirror_held(fixture->mirror));
    assert_int_equal(hear(fixture, 1, 2), MIRROR_NEWER);
    fixture->now_us += MINUTE_US;
    expect(fixture, MIRROR_BEGIN);
}

static void a_full_disk_is_tried_again(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 1);
    apply(fixture, ERR_NO_SPACE);
    expect_nothing(fixture);
    fixture->now_us += MINUTE_US;
    expect(fixture, MIRROR_BEGIN);
    assert_int_equal(mirror_target(fixture->mirror)->number, 1);
}

/* ---- lies ---- */

static void only_the_publisher_makes_versions(void **state) {
    struct fixture *fixture = *state;
    struct version forged = version_of(9);
    struct version other = version_of(9);
    struct version named = version_of(9);
    uint8_t memory[VERSION_SIZE_MAX];
    forged.number = 10;
    memset(other.publisher, 'q', PEER_KEY_SIZE);
    version_sign(&other, make_signature, other.publisher);
    named.name[0] = 'g';
    version_sign(&named, make_signature, publisher);
    assert_int_equal(
        mirror_hear(fixture->mirror, key_of(fixture, 0), version_write(&forged, memory), fixture->now_us),
        MIRROR_FORGED);
    assert_int_equal(
        mirror_hear(fixture->mirror, key_of(fixture, 1), version_write(&other, memory), fixture->now_us),
        MIRROR_FOREIGN);
    assert_int_equal(
        mirror_hear(fixture->mirror, key_of(fixture, 2), version_write(&named, memory), fixture->now_us),
        MIRROR_FOREIGN);
    assert_int_equal(mirror_hear(fixture->mirror, key_of(fixture, 3), BYTES("hello"), fixture->now_us),
                     MIRROR_FORGED);
    assert_int_equal(mirror_hear(fixture->mirror, publisher, BYTES("hello"), fixture->now_us),
                     MIRROR_IGNORED); /* no neighbour */
    assert_int_equal(mirror_counters(fixture->mirror)->barred_count, 4);
    assert_null(mirror_newest(fixture->mirror));
    fixture->now_us += 10 * MINUTE_US;
    expect_nothing(fixture);
}

static void an_old_version_is_not_taken_for_a_new_one(void **state) {
    struct fixture *fixture = *state;
    struct version held = version_of(5);
    fixture->config.held = &held;
    begin_life(fixture);
    assert_int_equal(hear(fixture, 0, 5), MIRROR_KNOWN);
    assert_int_equal(hear(fixture, 1, 4), MIRROR_BEHIND); /* it may be: we tell it */
    assert_int_equal(hear(fixture, 2, 6), MIRROR_NEWER);
    assert_int_equal(hear(fixture, 2, 4), MIRROR_REPLAYED);
    assert_int_equal(hear(fixture, 0, 4), MIRROR_REPLAYED);
    fixture->now_us += MINUTE_US;
    expect_nothing(fixture); /* what the barred one said of version 6 does not count either */
    assert_int_equal(mirror_held(fixture->mirror)->number, 5);
    assert_int_equal(mirror_phase(fixture->mirror), MIRROR_CURRENT);
}

static void a_barred_source_loses_its_batch(void **state) {
    struct fixture *fixture = *state;
    begin(fixture, 2);
    assert_int_equal(hear(fixture, 0, 3), MIRROR_NEWER);
    mirror_set_wanted(fixture->mirror, 1000, true);
    struct mirror_task task = expect_of(fixture, MIRROR_FETCH, 0);
    assert_int_equal(hear(fixture, 0, 1), MIRROR_REPLAYED);
    assert_int_equal(expect_of(fixture, MIRROR_CANCEL, 0).batch, task.batch);
    assert_int_equal(expect_of(fixture, MIRROR_FETCH, 1).batch, task.batch);
}

static void two_versions_of_one_number_end_as_one(void **state) {
    struct fixture *fixture = *state;
    struct version held = version_of(5);
    struct version later = version_of(5);
    uint8_t memory[VERSION_SIZE_MAX];
    later.time_us = 1;
    later.root.digest[0] = 77;
    version_sign(&later, make_signature, publisher);
    fixture->config.held = &held;
    begin_life(fixture);
    assert_int_equal(
        mirror_hear(fixture->mirror, key_of(fixture, 0), version_write(&later, memory), fixture->now_us),
        MIRROR_NEWER);
    assert_int_equal(mirror_counters(fixture->mirror)->doubled_count, 1);
}

/* ---- bounds ---- */

static void more_sources_than_fit_are_left_out(void **state) {
    struct fixture *fixture = *state;
    fixture->config.sources_max = 2;
    fixture->config.batches_max = 1;
    begin_life(fixture);
    assert_int_equal(mirror_sources_count(fixture->mirror), 2);
    begin(fixture, 2);
    mirror_set_wanted(fixture->mirror, 1000 * MB, true);
    expect_of(fixture, MIRROR_FETCH, 0);
    expect_nothing(fixture); /* one batch at a time */
}

/* ---- limits ---- */

static void a_limit_spreads_batches_over_time(void **state) {
    struct fixture *fixture = *state;
    mirror_limit_init(&fixture->limit, MB, fixture->now_us);
    fixture->config.limit = &fixture->limit;
    begin_life(fixture);
    begin(fixture, 2);
    uint64_t start_us = fixture->now_us;
    uint64_t left = 20 * MB;
    uint64_t got = 0;
    struct mirror_task task;
    mirror_set_wanted(fixture->mirror, left, true);
    for (unsigned i = 0; i < 1000 && got < 20 * MB; i++) {
        if (next(fixture, &task)) {
            assert_int_equal(task.kind, MIRROR_FETCH);
            fetched(fixture, &task, ERR_OK);
            got += task.size;
            left -= task.is_again ? 0 : task.size;
            mirror_set_wanted(fixture->mirror, left, true);
        } else {
            fixture->now_us = mirror_wake_at(fixture->mirror, fixture->now_us);
        }
    }
    assert_int_equal(got, 20 * MB);
    assert_in_range((fixture->now_us - start_us) / SECOND_US, 17, 21);
}

static void windows_follow_the_clock_on_the_wall(void **state) {
    (void)state;
    struct mirror_limit limit;
    uint64_t now_us = 5 * SECOND_US;
    mirror_limit_init(&limit, 1000, now_us);
    assert_true(mirror_limit_add_window(&limit, (struct mirror_window){22 * 60, 6 * 60, MIRROR_LIMIT_NONE}));
    assert_true(mirror_limit_add_window(&limit, (struct mirror_window){12 * 60, 13 * 60, 0}));
    assert_false(mirror_limit_add_window(&limit, (struct mirror_window){60, 60, 0}));
    assert_false(mirror_limit_add_window(&limit, (struct mirror_window){1440, 60, 0}));
    mirror_limit_set_clock(&limit, 5 * 60 * MINUTE_US, now_us); /* it is five in the morning */
    assert_true(mirror_limit_left(&limit, now_us) == MIRROR_LIMIT_NONE);
    now_us += 60 * MINUTE_US; /* six: two seconds' worth at once */
    assert_int_equal(mirror_limit_left(&limit, now_us), 2000);
    mirror_limit_take(&limit, 5000, now_us); /* three seconds are owed */
    assert_int_equal(mirror_limit_left(&limit, now_us), 0);
    assert_in_range(mirror_limit_wake_at(&limit, now_us), now_us + 3 * SECOND_US, now_us + 4 * SECOND_US);
    now_us += 4 * SECOND_US;
    assert_int_equal(mirror_limit_left(&limit, now_us), 1000);
    now_us += 6 * 60 * MINUTE_US; /* noon */
    assert_int_equal(mirror_limit_left(&limit, now_us), 0);
    assert_int_equal(mirror_limit_wake_at(&limit, now_us), now_us + 60 * MINUTE_US - 4 * SECOND_US);
    now_us += 10 * 60 * MINUTE_US; /* ten in the evening */
    assert_true(mirror_limit_left(&limit, now_us) == MIRROR_LIMIT_NONE);
    now_us += 3 * 60 * MINUTE_US; /* and past midnight */
    assert_true(mirror_limit_left(&limit, now_us) == MIRROR_LIMIT_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_source_of_a_minute_comes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(the_newest_of_those_heard_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(all_sources_are_asked_now_and_again, setup, teardown),
        cmocka_unit_test_setup_teardown(what_all_have_comes_from_several_in_fitting_batches, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_source_is_left_out_where_it_would_be_last, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_source_helps_where_a_fast_one_is_stuck, setup, teardown),
        cmocka_unit_test_setup_teardown(sources_are_measured_by_what_they_deliver, setup, teardown),
        cmocka_unit_test_setup_teardown(the_update_ends_and_the_others_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_behind_is_told_once_in_a_while, setup, teardown),
        cmocka_unit_test_setup_teardown(who_could_not_be_told_is_told_later, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_source_takes_over, setup, teardown),
        cmocka_unit_test_setup_teardown(a_source_that_left_is_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(a_false_source_is_barred_and_not_heard, setup, teardown),
        cmocka_unit_test_setup_teardown(a_busy_source_is_asked_soon, setup, teardown),
        cmocka_unit_test_setup_teardown(a_late_batch_is_given_to_one_more, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stuck_source_does_not_hold_up_the_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_source_lacks_others_have, setup, teardown),
        cmocka_unit_test_setup_teardown(a_version_under_way_is_finished_first, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_version_is_not_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(only_the_publisher_makes_versions, setup, teardown),
        cmocka_unit_test_setup_teardown(an_old_version_is_not_taken_for_a_new_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_barred_source_loses_its_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(two_versions_of_one_number_end_as_one, setup, teardown),
        cmocka_unit_test_setup_teardown(more_sources_than_fit_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_limit_spreads_batches_over_time, setup, teardown),
        cmocka_unit_test(windows_follow_the_clock_on_the_wall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
