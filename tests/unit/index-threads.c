/* index-threads - many threads read while one writes. */
#include <pthread.h>
#include <stdatomic.h>

#include "index-fixture.h"
#include "store/index/index_cursor.h"
#include "unit.h"

const char *__tsan_default_suppressions(void);

/*
 * RocksDB is not built for the thread sanitizer, which sees its copies and allocations but not its atomics.
 * Memory that C++ allocated is therefore left out; ours is watched.
 */
const char *__tsan_default_suppressions(void) {
    return "called_from_lib:librocksdb.so\n"
           "called_from_lib:libstdc++.so\n"
           "race:operator new\n"
           "race:operator delete\n";
}

struct race {
    struct fixture *fixture;
    _Atomic uint32_t written; /* batches */
    _Atomic bool is_over;
    _Atomic uint32_t failures_count;
};

/* A walk sees whole batches, and no fewer than were written before it began. */
static void *read_all_the_time(void *argument) {
    struct race *race = argument;
    const struct index *index = race->fixture->index;
    while (!atomic_load(&race->is_over)) {
        uint32_t before = atomic_load(&race->written);
        struct index_cursor *cursor = NULL;
        struct index_position position = {0};
        struct capture capture;
        uint32_t count = 0;
        enum err err = index_cursor_open(index, BYTES(""), BYTES(""), before % 2 == 0, &cursor);
        while (err == ERR_OK && index_cursor_next(cursor, &capture) == ERR_OK) {
            count++;
        }
        index_cursor_close(cursor);
        bool is_well = count % BATCH_COUNT == 0 && count / BATCH_COUNT >= before &&
                       index_position(index, &position) == ERR_OK && position.segment >= before;
        atomic_fetch_add(&race->failures_count, !is_well);
    }
    return NULL;
}

static void readers_see_whole_batches_while_a_writer_writes(void **state) {
    struct fixture *fixture = *state;
    struct race race = {.fixture = fixture};
    pthread_t readers[3];
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, read_all_the_time, &race), 0);
    }
    for (uint32_t i = 1; i <= 300; i++) {
        put_batch(fixture, i);
        atomic_store(&race.written, i);
        if (i % 100 == 0) {
            compact(fixture);
        }
    }
    atomic_store(&race.is_over, true);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&race.failures_count), 0);
    assert_int_equal(assert_whole_batches(fixture), 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(readers_see_whole_batches_while_a_writer_writes, make, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
