/* index-damage - what the index makes of crashes, of damaged files, of other processes and of full disks. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/prng.h"
#include "index-fixture.h"
#include "store/index/index_batch.h"
#include "store/index/index_cursor.h"
#include "store/kv/kv.h"
#include "unit.h"

/*
 * Run this program again to do one thing with the index, and return how it ended. A mere fork would be
 * without the threads that RocksDB believes to have.
 */
static int run_elsewhere(struct fixture *fixture, const char *deed) {
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test-index-damage", deed, fixture->directory, NULL);
        _exit(99);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void commit_and_die(struct fixture *fixture, bool does_compact) {
    close_index(fixture);
    int status = run_elsewhere(fixture, does_compact ? "compact" : "commit");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Commit, maybe with sorted files for the first half of it, and end without closing. */
static void child_commits(struct fixture *fixture, bool does_compact) {
    open_index(fixture);
    for (uint32_t i = 1; i <= BATCHES_COUNT; i++) {
        put_batch(fixture, i);
        if (does_compact && i == BATCHES_COUNT / 2) {
            compact(fixture);
        }
    }
    kill(getpid(), SIGKILL);
}

/* Commit more than RocksDB keeps in memory, so that it writes sorted files, and end without closing. */
static void child_overflows(struct fixture *fixture) {
    static char url[INDEX_URL_SIZE_MAX];
    struct index_counts counts = {0};
    struct prng prng;
    prng_init(&prng, 1);
    prng_fill(&prng, url, sizeof url); /* does not compress */
    open_index(fixture);
    for (uint32_t number = 1; counts.disk_size < 1 << 20; number++) {
        for (int64_t i = 0; i < BATCH_COUNT; i++) {
            struct capture capture = capture_of("a", i, number);
            capture.url = bytes_of(url, sizeof url);
            index_batch_put_capture(fixture->batch, &capture);
        }
        index_batch_set_position(fixture->batch, &(struct index_position){number, 0});
        commit(fixture);
        index_counts(fixture->index, &counts);
    }
    kill(getpid(), SIGKILL);
}

/* The error as exit status, 99 where the detail does not name the lock. */
static int child_opens(struct fixture *fixture, bool does_destroy) {
    struct err_detail detail = {0};
    enum err err = does_destroy ? index_destroy(fixture->directory, &detail)
                                : index_open(fixture->directory, &fixture->index, &detail);
    return err == ERR_OK || strstr(detail.text, "LOCK") != NULL ? -err : 99;
}

/* Commit until the log may not grow any more. Status 0 where all behaved as it should then. */
static int child_fills(struct fixture *fixture) {
    struct err_detail detail = {0};
    enum err err = ERR_OK;
    uint32_t count = 0;
    open_index(fixture);
    signal(SIGXFSZ, SIG_IGN); /* the write shall fail instead */
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, 1 << 20}) != 0) {
        return 1;
    }
    while (err == ERR_OK) {
        for (int64_t i = 0; i < BATCH_COUNT; i++) {
            put(fixture, "a", i, count + 1);
        }
        index_batch_set_position(fixture->batch, &(struct index_position){count + 1, 0});
        err = index_commit(fixture->index, fixture->batch, &detail);
        count += err == ERR_OK;
    }
    bool is_well = err == ERR_LIMIT && strstr(detail.text, "File too large") != NULL;
    is_well = is_well && index_commit(fixture->index, fixture->batch, NULL) == ERR_LIMIT;
    is_well = is_well && kv_sync(index_kv(fixture->index), NULL) == ERR_LIMIT;
    is_well = is_well && kv_compact(index_kv(fixture->index), NULL) == ERR_LIMIT;
    is_well = is_well && count > 0 && assert_whole_batches(fixture) == count;
    close_index(fixture);
    return is_well ? 0 : 1;
}

static enum err commit_one(struct fixture *fixture, uint32_t number) {
    for (int64_t i = 0; i < BATCH_COUNT; i++) {
        put(fixture, "a", i, number);
    }
    index_batch_set_position(fixture->batch, &(struct index_position){number, 0});
    enum err err = index_commit(fixture->index, fixture->batch, NULL);
    index_batch_clear(fixture->batch);
    return err;
}

/* Commit until files may not grow any more, then give room again. Status 0 where the index goes on. */
static int child_mends(struct fixture *fixture) {
    struct rlimit less = {1 << 20, RLIM_INFINITY};
    struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};
    uint32_t count = 0;
    open_index(fixture);
    signal(SIGXFSZ, SIG_IGN);
    bool is_well = index_mend(fixture->index, NULL) == ERR_OK; /* nothing to do */
    is_well = is_well && setrlimit(RLIMIT_FSIZE, &less) == 0;
    while (commit_one(fixture, count + 1) == ERR_OK) {
        count++;
    }
    is_well = is_well && index_mend(fixture->index, NULL) == ERR_LIMIT; /* there is no room yet */
    is_well = is_well && assert_whole_batches(fixture) == count;
    is_well = is_well && setrlimit(RLIMIT_FSIZE, &more) == 0;
    struct index_cursor *cursor = walk(fixture, BYTES(""), BYTES(""), false);
    is_well = is_well && index_mend(fixture->index, NULL) == ERR_LIMIT; /* somebody is inside */
    index_cursor_close(cursor);
    is_well = is_well && index_mend(fixture->index, NULL) == ERR_OK;
    is_well = is_well && assert_whole_batches(fixture) == count;
    for (uint32_t end = count + 5; is_well && count < end; count++) {
        is_well = commit_one(fixture, count + 1) == ERR_OK;
    }
    is_well = is_well && assert_whole_batches(fixture) == count;
    close_index(fixture);
    open_index(fixture);
    is_well = is_well && assert_whole_batches(fixture) == count;
    close_index(fixture);
    return is_well ? 0 : 1;
}

static int child(const char *deed, const char *directory) {
    static struct fixture fixture;
    snprintf(fixture.directory, sizeof fixture.directory, "%s", directory);
    if (strcmp(deed, "commit") == 0 || strcmp(deed, "compact") == 0) {
        child_commits(&fixture, strcmp(deed, "compact") == 0);
    }
    if (strcmp(deed, "overflow") == 0) {
        child_overflows(&fixture);
    }
    if (strcmp(deed, "fill") == 0) {
        return child_fills(&fixture);
    }
    if (strcmp(deed, "mend") == 0) {
        return child_mends(&fixture);
    }
    return child_opens(&fixture, strcmp(deed, "destroy") == 0);
}

/* ---- the end of a process, of a machine ---- */

static void commits_survive_the_end_of_the_process(void **state) {
    struct fixture *fixture = *state;
    commit_and_die(fixture, false);
    open_index(fixture);
    assert_int_equal(assert_whole_batches(fixture), BATCHES_COUNT);
    assert_int_equal(kv_sync(index_kv(fixture->index), NULL), ERR_OK);
}

/* The path of the last file, by name, that ends so. False where there is none. */
static bool find_file(struct fixture *fixture, const char *end, char out[SCRATCH_PATH_SIZE]) {
    char best[256] = "";
    DIR *directory = opendir(fixture->directory);
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (bytes_ends_with(bytes_of_string(entry->d_name), bytes_of_string(end)) &&
            strcmp(entry->d_name, best) > 0) {
            snprintf(best, sizeof best, "%s", entry->d_name);
        }
    }
    closedir(directory);
    scratch_path(fixture->directory, best, out);
    return best[0] != '\0';
}

static off_t file_size(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_size;
}

static void copy_file(const char *from, const char *to) {
    char command[3 * SCRATCH_PATH_SIZE];
    snprintf(command, sizeof command, "cp -r '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

/* As a crash of the machine may leave it: the log ends anywhere. */
static void a_log_that_is_cut_leaves_whole_batches(void **state) {
    struct fixture *fixture = *state;
    char whole[SCRATCH_PATH_SIZE];
    char log[SCRATCH_PATH_SIZE];
    uint32_t last = BATCHES_COUNT;
    commit_and_die(fixture, true);
    copy_file(fixture->directory, scratch_path(fixture->parent, "whole", whole));
    assert_true(find_file(fixture, ".log", log));
    for (off_t size = file_size(log); size > 0; size = size * 3 / 4) {
        assert_int_equal(index_destroy(fixture->directory, NULL), ERR_OK);
        copy_file(whole, fixture->directory);
        assert_int_equal(truncate(log, size), 0);
        open_index(fixture);
        uint32_t count = assert_whole_batches(fixture);
        assert_true(count <= last && count >= BATCHES_COUNT / 2);
        last = count;
        close_index(fixture);
    }
    assert_int_equal(last, BATCHES_COUNT / 2);
}

/* As if nothing had ever been synced but what RocksDB synced of its own accord. */
static void a_log_that_is_lost_never_leaves_the_position_ahead(void **state) {
    struct fixture *fixture = *state;
    char log[SCRATCH_PATH_SIZE];
    close_index(fixture);
    int status = run_elsewhere(fixture, "overflow");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (find_file(fixture, ".log", log)) {
        assert_int_equal(unlink(log), 0);
    }
    open_index(fixture);
    assert_true(assert_whole_batches(fixture) > 0);
}

/* ---- damage ---- */

/* Put bytes past the index, as damage that RocksDB's checksums miss. */
static void put_raw(struct fixture *fixture, enum index_family family, struct bytes key, struct bytes value) {
    close_index(fixture);
    struct kv *kv = kv_new(fixture->directory, &index_kv_options);
    assert_int_equal(kv_open(kv, NULL), ERR_OK);
    assert_int_equal(kv_put(kv, family, key, value, NULL), ERR_OK);
    kv_free(kv);
}

static void damaged_values_are_corrupt(void **state) {
    struct fixture *fixture = *state;
    struct block block = block_of(77);
    struct index_segment segment = {.size = 77};
    struct index_position position = {77, 77};
    put_raw(fixture, INDEX_FAMILY_BLOCKS, bytes_of(low, sizeof low), BYTES("\xff\xff"));
    open_index(fixture);
    put_raw(fixture, INDEX_FAMILY_SEGMENTS, BYTES("\0\0\0\7"), BYTES("\1\1\1 and more"));
    open_index(fixture);
    put_raw(fixture, INDEX_FAMILY_META, BYTES("position"), BYTES(""));
    open_index(fixture);
    assert_int_equal(index_find_block(fixture->index, low, 0, &block), ERR_CORRUPT);
    assert_int_equal(index_find_segment(fixture->index, 7, &segment), ERR_CORRUPT);
    assert_int_equal(index_position(fixture->index, &position), ERR_CORRUPT);
    assert_true(block.size == 77 && segment.size == 77 && position.segment == 77);
}

static void a_damaged_capture_ends_the_walk(void **state) {
    struct fixture *fixture = *state;
    struct capture capture;
    put(fixture, "a", 1, 1);
    put(fixture, "c", 1, 1);
    commit(fixture);
    const struct {
        struct bytes key, value;
    } entries[] = {
        {BYTES("b"), BYTES("no zero byte")},
        {BYTES("b\0short"), BYTES("")},
        {BYTES("b\0"
               "\x0e\xe0\0\0\0\0\0\0\1\1\1\1"),
         BYTES("\0\0")},
        {BYTES("b\0"
               "\xff\xff\xff\xff\xff\xff\xff\xff\1\1\1\1"),
         BYTES("")},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        put_raw(fixture, INDEX_FAMILY_CAPTURES, entries[i].key, entries[i].value);
        open_index(fixture);
        struct index_cursor *cursor = walk(fixture, entries[i].key, BYTES(""), false);
        memset(&capture, 0x5a, sizeof capture);
        assert_int_equal(index_cursor_next(cursor, &capture), ERR_CORRUPT);
        assert_int_equal(capture.status, 0x5a5a);
        assert_int_equal(index_cursor_next(cursor, &capture), ERR_CORRUPT); /* no endless loop over damage */
        index_cursor_close(cursor);
    }
}

static void a_damaged_block_ends_the_walk(void **state) {
    struct fixture *fixture = *state;
    struct index_cursor *cursor = NULL;
    uint8_t digest[KEY_DIGEST_SIZE] = {77};
    uint16_t number = 77;
    struct block block = block_of(77);
    put_raw(fixture, INDEX_FAMILY_BLOCKS, BYTES("short"), BYTES("\1\1\1\1\1\1"));
    open_index(fixture);
    assert_int_equal(index_blocks_open(fixture->index, &cursor), ERR_OK);
    assert_int_equal(index_blocks_next(cursor, digest, &number, &block), ERR_CORRUPT);
    assert_int_equal(index_blocks_next(cursor, digest, &number, &block), ERR_CORRUPT);
    assert_true(digest[0] == 77 && number == 77 && block.size == 77);
    index_cursor_close(cursor);
}

static void another_format_is_a_mismatch(void **state) {
    struct fixture *fixture = *state;
    struct index *index = NULL;
    struct err_detail detail = {0};
    put_raw(fixture, INDEX_FAMILY_META, BYTES("format"), BYTES("\xc8"));
    assert_int_equal(index_open(fixture->directory, &index, &detail), ERR_MISMATCH);
    assert_non_null(strstr(detail.text, "200"));
    assert_null(index);
    fixture->index = NULL;
}

static void a_damaged_format_is_corrupt(void **state) {
    struct fixture *fixture = *state;
    struct index *index = NULL;
    put_raw(fixture, INDEX_FAMILY_META, BYTES("format"), BYTES(""));
    assert_int_equal(index_open(fixture->directory, &index, NULL), ERR_CORRUPT);
    assert_null(index);
}

/* Files of sorted entries, and nothing in the log. */
static void make_files(struct fixture *fixture) {
    for (int64_t i = 0; i < 3000; i++) {
        struct block block = block_of(1);
        put(fixture, "a", i, prng_mix((uint64_t)i));
        index_batch_put_block(fixture->batch, low, (uint16_t)i, &block);
    }
    commit(fixture);
    compact(fixture);
    close_index(fixture);
}

static void assert_opens_corrupt(struct fixture *fixture, const char *reason) {
    struct index *index = NULL;
    struct err_detail detail = {0};
    assert_int_equal(index_open(fixture->directory, &index, &detail), ERR_CORRUPT);
    assert_int_equal(detail.err, ERR_CORRUPT);
    if (strstr(detail.text, reason) == NULL) {
        fail_msg("\"%s\" does not mention \"%s\"", detail.text, reason);
    }
    assert_null(index);
}

static void a_missing_file_is_corrupt(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    make_files(fixture);
    assert_true(find_file(fixture, ".sst", path));
    assert_int_equal(unlink(path), 0);
    assert_opens_corrupt(fixture, "No such file");
}

static void a_truncated_file_is_corrupt(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    make_files(fixture);
    assert_true(find_file(fixture, ".sst", path));
    assert_int_equal(truncate(path, file_size(path) / 2), 0);
    assert_opens_corrupt(fixture, ".sst");
}

static void flip(const char *path, off_t offset) {
    uint8_t byte = 0;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, offset) == 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static void a_damaged_manifest_is_corrupt(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    make_files(fixture);
    scratch_path(fixture->directory, "CURRENT", path);
    FILE *file = fopen(path, "r");
    char name[64] = "";
    assert_non_null(file);
    assert_non_null(fgets(name, sizeof name, file));
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    flip(scratch_path(fixture->directory, name, path), 20);
    assert_opens_corrupt(fixture, "Corruption");
    assert_int_equal(unlink(path), 0);
    assert_opens_corrupt(fixture, "MANIFEST");
}

/* Whatever byte of a file is wrong: opening or reading says so, or every entry is as it was. */
static void a_flipped_byte_is_never_believed(void **state) {
    struct fixture *fixture = *state;
    char whole[SCRATCH_PATH_SIZE];
    char path[SCRATCH_PATH_SIZE];
    size_t corrupt_count = 0;
    make_files(fixture);
    copy_file(fixture->directory, scratch_path(fixture->parent, "whole", whole));
    assert_true(find_file(fixture, ".sst", path));
    off_t size = file_size(path);
    for (off_t offset = 0; offset < size; offset += size / 40) {
        flip(path, offset);
        struct index *index = NULL;
        enum err err = index_open(fixture->directory, &index, NULL);
        for (uint16_t i = 0; err == ERR_OK && i < 3000; i++) {
            struct block block;
            err = index_find_block(index, low, i, &block);
        }
        struct index_cursor *cursor = NULL;
        struct capture capture;
        if (err == ERR_OK && index_cursor_open(index, BYTES(""), BYTES(""), false, &cursor) == ERR_OK) {
            for (int64_t i = 0; i < 3000 && err == ERR_OK; i++) {
                err = index_cursor_next(cursor, &capture);
                assert_true(err != ERR_OK || capture.time_us == i);
            }
            index_cursor_close(cursor);
        }
        assert_true(err == ERR_OK || err == ERR_CORRUPT);
        corrupt_count += err == ERR_CORRUPT;
        if (index != NULL) {
            index_close(index);
        }
        flip(path, offset);
    }
    assert_true(corrupt_count > 10);
}

static void a_damaged_index_can_be_destroyed_and_made_anew(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    make_files(fixture);
    assert_true(find_file(fixture, ".sst", path));
    assert_int_equal(unlink(path), 0);
    assert_opens_corrupt(fixture, "No such file");
    assert_int_equal(index_destroy(fixture->directory, NULL), ERR_OK);
    assert_int_equal(access(fixture->directory, F_OK), -1);
    assert_int_equal(index_destroy(fixture->directory, NULL), ERR_OK);
    open_index(fixture);
    assert_int_equal(count_all(fixture), 0);
    assert_whole_batches(fixture);
}

static void a_missing_table_of_contents_is_corrupt(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    make_files(fixture);
    assert_int_equal(unlink(scratch_path(fixture->directory, "CURRENT", path)), 0);
    assert_opens_corrupt(fixture, "creating a new Db");
}

/* ---- errors ---- */

static enum err try_elsewhere(struct fixture *fixture, const char *deed) {
    int status = run_elsewhere(fixture, deed);
    assert_true(WIFEXITED(status));
    return (enum err) - WEXITSTATUS(status);
}

static void an_open_index_is_busy_for_others(void **state) {
    struct fixture *fixture = *state;
    struct index *index = NULL;
    put(fixture, "a", 1, 1);
    commit(fixture);
    assert_int_equal(try_elsewhere(fixture, "open"), ERR_BUSY);
    assert_int_equal(try_elsewhere(fixture, "destroy"), ERR_BUSY);
    assert_int_equal(index_open(fixture->directory, &index, NULL), ERR_BUSY);
    assert_int_equal(index_destroy(fixture->directory, NULL), ERR_BUSY);
    assert_null(index);
    assert_int_equal(count_all(fixture), 1);
    close_index(fixture);
    assert_int_equal(try_elsewhere(fixture, "open"), ERR_OK);
    open_index(fixture);
}

static void a_place_that_is_not_there_is_not_found(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    struct index *index = NULL;
    struct err_detail detail = {0};
    assert_int_equal(index_open(scratch_path(fixture->parent, "no/index", path), &index, &detail),
                     ERR_NOT_FOUND);
    assert_non_null(strstr(detail.text, path));
    scratch_path(fixture->parent, "file", path);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    assert_int_equal(index_open(path, &index, &detail), ERR_NOT_FOUND);
    assert_non_null(strstr(detail.text, path));
    assert_null(index);
}

static void after_a_failed_write_it_still_reads(void **state) {
    struct fixture *fixture = *state;
    close_index(fixture);
    int status = run_elsewhere(fixture, "fill");
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    open_index(fixture);
    uint32_t count = assert_whole_batches(fixture);
    assert_true(count > 0);
    put_batch(fixture, count + 1);
    assert_int_equal(assert_whole_batches(fixture), count + 1);
}

static void goes_on_in_place_when_there_is_room_again(void **state) {
    struct fixture *fixture = *state;
    close_index(fixture);
    int status = run_elsewhere(fixture, "mend");
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(int count, char **arguments) {
    if (count == 3) {
        return child(arguments[1], arguments[2]);
    }
    const struct CMUnitTest tests[] = {
        TEST(commits_survive_the_end_of_the_process),
        TEST(a_log_that_is_cut_leaves_whole_batches),
        TEST(a_log_that_is_lost_never_leaves_the_position_ahead),
        TEST(damaged_values_are_corrupt),
        TEST(a_damaged_capture_ends_the_walk),
        TEST(a_damaged_block_ends_the_walk),
        TEST(another_format_is_a_mismatch),
        TEST(a_damaged_format_is_corrupt),
        TEST(a_missing_file_is_corrupt),
        TEST(a_truncated_file_is_corrupt),
        TEST(a_damaged_manifest_is_corrupt),
        TEST(a_flipped_byte_is_never_believed),
        TEST(a_damaged_index_can_be_destroyed_and_made_anew),
        TEST(a_missing_table_of_contents_is_corrupt),
        TEST(an_open_index_is_busy_for_others),
        TEST(a_place_that_is_not_there_is_not_found),
        TEST(after_a_failed_write_it_still_reads),
        TEST(goes_on_in_place_when_there_is_room_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
