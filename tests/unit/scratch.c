/* scratch: few bytes stay in memory, many go to a file that has no name, and both read back the same. */
#include "scratch.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/scratch.h"
#include "unit.h"

enum { MEMORY_MAX = 4096, SIZE_MAX_ = 1 << 20 };

/* Names in the directory, without "." and "..". */
static unsigned names_count(const char *directory) {
    DIR *list = opendir(directory);
    unsigned count = 0;
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        count += entry->d_name[0] != '.';
    }
    closedir(list);
    return count;
}

static struct bytes pattern(uint8_t *out, size_t from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        out[i] = (uint8_t)((from + i) * 7 / 3);
    }
    return bytes_of(out, size);
}

static void expect_pattern(struct scratch *scratch, size_t size) {
    static uint8_t wanted[SIZE_MAX_];
    uint8_t part[100];
    struct bytes all;
    assert_int_equal(scratch->size, size);
    assert_int_equal(scratch_bytes(scratch, &all), ERR_OK);
    assert_int_equal(all.size, size);
    assert_memory_equal(all.data, pattern(wanted, 0, size).data, size);
    size_t at = size > sizeof part ? size - sizeof part : 0;
    assert_int_equal(scratch_read(scratch, at, part, size - at), ERR_OK);
    assert_memory_equal(part, wanted + at, size - at);
}

static void reads_back_what_was_put_in_memory_and_in_a_file(void **state) {
    struct scratch scratch;
    uint8_t piece[1000];
    scratch_init(&scratch, *state, MEMORY_MAX, SIZE_MAX_);
    for (int round = 0; round < 2; round++) {
        for (size_t size = 0; size < 20000; size += sizeof piece) {
            assert_int_equal(scratch_put(&scratch, pattern(piece, size, sizeof piece)), ERR_OK);
            assert_int_equal(scratch_is_in_memory(&scratch), size + sizeof piece <= MEMORY_MAX);
            expect_pattern(&scratch, size + sizeof piece); /* mapped anew each time it has grown */
        }
        assert_int_equal(names_count(*state), 0);
        scratch_clear(&scratch);
        assert_true(scratch_is_in_memory(&scratch));
        struct bytes nothing;
        assert_int_equal(scratch_bytes(&scratch, &nothing), ERR_OK);
        assert_int_equal(nothing.size, 0);
    }
    scratch_done(&scratch);
}

static void one_large_put_goes_to_the_file_at_once(void **state) {
    static uint8_t all[SIZE_MAX_];
    struct scratch scratch;
    scratch_init(&scratch, *state, MEMORY_MAX, SIZE_MAX_);
    assert_int_equal(scratch_put(&scratch, pattern(all, 0, sizeof all)), ERR_OK);
    assert_false(scratch_is_in_memory(&scratch));
    expect_pattern(&scratch, sizeof all);
    scratch_done(&scratch);
}

static void its_limit_holds_and_sticks(void **state) {
    uint8_t piece[3000];
    struct scratch scratch;
    struct bytes all;
    scratch_init(&scratch, *state, MEMORY_MAX, 5000);
    assert_int_equal(scratch_put(&scratch, pattern(piece, 0, sizeof piece)), ERR_OK);
    assert_int_equal(scratch_put(&scratch, pattern(piece, 0, sizeof piece)), ERR_LIMIT);
    assert_int_equal(scratch_put(&scratch, BYTES("a")), ERR_LIMIT);
    assert_int_equal(scratch_bytes(&scratch, &all), ERR_LIMIT);
    scratch_clear(&scratch);
    assert_int_equal(scratch_put(&scratch, BYTES("a")), ERR_OK);
    scratch_done(&scratch);
}

static void an_empty_one_needs_no_directory(void **state) {
    char path[SCRATCH_PATH_SIZE];
    uint8_t piece[MEMORY_MAX + 1];
    struct scratch scratch;
    scratch_init(&scratch, scratch_path(*state, "missing", path), MEMORY_MAX, SIZE_MAX_);
    assert_int_equal(scratch_put(&scratch, BYTES("a")), ERR_OK);
    assert_int_equal(scratch_put(&scratch, pattern(piece, 0, sizeof piece)), ERR_NOT_FOUND);
    scratch_done(&scratch);
}

static void a_file_that_cannot_grow_is_an_error(void **state) {
    uint8_t piece[MEMORY_MAX];
    struct scratch scratch;
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit less = {.rlim_cur = 3 * MEMORY_MAX, .rlim_max = before.rlim_max};
    scratch_init(&scratch, *state, MEMORY_MAX, SIZE_MAX_);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    enum err err = ERR_OK;
    unsigned puts_count = 0;
    while (err == ERR_OK && puts_count < 10) {
        err = scratch_put(&scratch, pattern(piece, 0, sizeof piece));
        puts_count++;
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(puts_count, 4);
    assert_int_not_equal(err, ERR_OK);
    assert_int_equal(scratch_put(&scratch, BYTES("a")), err);
    scratch_done(&scratch);
}

static void takes_records_as_a_sink(void **state) {
    struct scratch scratch;
    struct scratch_sink sink;
    scratch_init(&scratch, *state, 4, 8);
    scratch_sink_init(&sink, &scratch);
    struct err_detail detail = {0};
    assert_int_equal(sink_append(&sink.sink, BYTES("1234"), &detail), ERR_OK);
    assert_int_equal(sink_append(&sink.sink, BYTES("5678"), &detail), ERR_OK);
    assert_int_equal(sink_append(&sink.sink, BYTES("9"), &detail), ERR_LIMIT);
    assert_int_equal(detail.offset, 8);
    scratch_done(&scratch);
}

/* Memory is free; files of all scratches together are not, and what one gives back another may take. */
static void files_share_a_budget(void **state) {
    struct scratch_budget budget;
    struct scratch scratches[2];
    uint8_t piece[8000];
    scratch_budget_init(&budget, 20000);
    for (size_t i = 0; i < 2; i++) {
        scratch_init(&scratches[i], *state, MEMORY_MAX, SIZE_MAX_);
        scratch_set_budget(&scratches[i], &budget);
        assert_int_equal(scratch_put(&scratches[i], pattern(piece, 0, 1000)), ERR_OK);
    }
    assert_int_equal(atomic_load(&budget.size), 0);
    assert_int_equal(scratch_put(&scratches[0], pattern(piece, 1000, sizeof piece)), ERR_OK);
    assert_int_equal(atomic_load(&budget.size), 9000);
    assert_int_equal(scratch_put(&scratches[1], pattern(piece, 1000, sizeof piece)), ERR_OK);
    assert_int_equal(scratch_put(&scratches[1], pattern(piece, 9000, sizeof piece)), ERR_BUSY);
    scratch_clear(&scratches[0]);
    assert_int_equal(atomic_load(&budget.size), 9000);
    scratch_clear(&scratches[1]);
    assert_int_equal(atomic_load(&budget.size), 0);
    assert_int_equal(scratch_put(&scratches[1], pattern(piece, 0, sizeof piece)), ERR_OK);
    expect_pattern(&scratches[1], sizeof piece);
    scratch_done(&scratches[0]);
    scratch_done(&scratches[1]);
    assert_int_equal(atomic_load(&budget.size), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(reads_back_what_was_put_in_memory_and_in_a_file),
        TEST(one_large_put_goes_to_the_file_at_once),
        TEST(its_limit_holds_and_sticks),
        TEST(an_empty_one_needs_no_directory),
        TEST(a_file_that_cannot_grow_is_an_error),
        TEST(takes_records_as_a_sink),
        TEST(files_share_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
