#include "store/kv/kv.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "await.h"
#include "scratch.h"
#include "unit.h"

enum { PLAIN, WORDS };

/* Up to and with the first slash. */
static size_t prefix_size(struct bytes key) {
    size_t index = bytes_find_byte(key, '/');
    return index == key.size ? 0 : index + 1;
}

static const struct kv_family families[] = {
    [PLAIN] = {.name = "default", .write_buffer_size = 1 << 20, .page_size = 4 << 10, .has_filter = true},
    [WORDS] = {.name = "words",
               .write_buffer_size = 1 << 20,
               .page_size = 4 << 10,
               .compression = KV_LZ4_ZSTD,
               .has_filter = true,
               .prefix_size = prefix_size,
               .prefix_name = "test.word"},
};

static const struct kv_options levels = {
    .families = families, .families_count = 2, .cache_size = 1 << 20, .open_files_max = 64};

static const struct kv_family run = {.name = "default",
                                     .write_buffer_size = 1 << 20,
                                     .page_size = 8 << 10,
                                     .compression = KV_LZ4,
                                     .is_in_runs = true,
                                     .has_filter = true,
                                     .has_memory_filter = true};

static const struct kv_options runs = {.families = &run,
                                       .families_count = 1,
                                       .cache_size = 1 << 20,
                                       .open_files_max = 64,
                                       .asks_for_room = true};

struct fixture {
    void *parent;
    char directory[SCRATCH_PATH_SIZE];
    struct kv *kv;
    struct kv_batch batch;
    struct buf text;
};

static int make(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (scratch_make(&fixture->parent) != 0) {
        return -1;
    }
    scratch_path(fixture->parent, "kv", fixture->directory);
    fixture->kv = kv_new(fixture->directory, &levels);
    kv_batch_init(&fixture->batch);
    buf_init(&fixture->text, 1 << 20);
    *state = fixture;
    return kv_open(fixture->kv, NULL);
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    if (fixture->kv != NULL) {
        kv_free(fixture->kv);
    }
    kv_batch_done(&fixture->batch);
    buf_done(&fixture->text);
    int result = scratch_remove(&fixture->parent);
    free(fixture);
    return result;
}

static void put(struct fixture *fixture, size_t family, const char *key, const char *value) {
    kv_batch_put(&fixture->batch, family, bytes_of_string(key), bytes_of_string(value));
}

static void write_all(struct fixture *fixture) {
    assert_int_equal(kv_write(fixture->kv, &fixture->batch, NULL), ERR_OK);
    kv_batch_clear(&fixture->batch);
}

/* "=value", or the name of the error. */
static const char *get(struct fixture *fixture, size_t family, const char *key) {
    struct kv_value value;
    enum err err = kv_get(fixture->kv, family, bytes_of_string(key), KV_GET, &value);
    buf_clear(&fixture->text);
    if (err != ERR_OK) {
        return err_name(err);
    }
    buf_put_format(&fixture->text, "=%.*s", BYTES_ARG(value.bytes));
    kv_value_done(&value);
    return buf_string(&fixture->text);
}

/* "key=value " for each, and the error that ended it unless it was the end. */
static const char *walk(struct fixture *fixture, size_t family, enum kv_walk kind, const char *from,
                        const char *to, bool in_reverse) {
    struct kv_iterator iterator;
    enum err err = kv_iterator_init(&iterator, fixture->kv, family, kind, bytes_of_string(from),
                                    bytes_of_string(to), in_reverse);
    assert_int_equal(err, ERR_OK);
    buf_clear(&fixture->text);
    while ((err = kv_iterator_next(&iterator, NULL)) == ERR_OK) {
        buf_put_format(&fixture->text, "%.*s=%.*s ", BYTES_ARG(iterator.key), BYTES_ARG(iterator.value));
    }
    assert_int_equal(kv_iterator_next(&iterator, NULL), err); /* it stays */
    assert_int_equal(err, ERR_NOT_FOUND);
    kv_iterator_done(&iterator);
    return buf_string(&fixture->text);
}

/* ---- batches ---- */

/* The changes as text: "+key=value", "-key" of a removal, "!key" of the one put. */
static const char *changes(struct kv_batch *batch, struct buf *text) {
    static const char signs[] = {'+', '-', '!'};
    kv_batch_sort(batch);
    buf_clear(text);
    for (size_t i = 0; i < batch->count; i++) {
        const struct kv_change *change = &batch->changes[i];
        buf_put_format(text, "%u%c%.*s=%.*s ", change->family, signs[change->kind],
                       BYTES_ARG(kv_batch_key(batch, change)), BYTES_ARG(kv_batch_value(batch, change)));
    }
    return buf_string(text);
}

static void a_batch_is_in_the_order_of_families_and_keys(void **state) {
    struct fixture *fixture = *state;
    put(fixture, WORDS, "a", "0");
    put(fixture, PLAIN, "b", "1");
    put(fixture, PLAIN, "longer-than-eight-2", "2");
    put(fixture, PLAIN, "longer-than-eight-1", "3");
    put(fixture, PLAIN, "a", "");
    put(fixture, PLAIN, "ab", "5");
    for (int i = 0; i < 2; i++) { /* still there */
        assert_string_equal(changes(&fixture->batch, &fixture->text),
                            "0+a= 0+ab=5 0+b=1 0+longer-than-eight-1=3 0+longer-than-eight-2=2 1+a=0 ");
    }
    assert_true(kv_batch_size(&fixture->batch) > 40);
    kv_batch_clear(&fixture->batch);
    assert_int_equal(kv_batch_size(&fixture->batch), 0);
    assert_string_equal(changes(&fixture->batch, &fixture->text), "");
}

static void a_batch_holds_only_what_remains_of_a_key(void **state) {
    struct fixture *fixture = *state;
    struct kv_batch *batch = &fixture->batch;
    put(fixture, PLAIN, "twice", "1");
    put(fixture, PLAIN, "came-and-went", "2");
    put(fixture, PLAIN, "twice", "3");
    put(fixture, WORDS, "twice", "of another family");
    kv_batch_remove_once(batch, PLAIN, BYTES("went"));
    kv_batch_remove_once(batch, PLAIN, BYTES("came-and-went"));
    kv_batch_remove_once(batch, PLAIN, BYTES("again"));
    put(fixture, PLAIN, "again", "4");
    kv_batch_remove_once(batch, PLAIN, BYTES("went-for-good"));
    put(fixture, PLAIN, "went-for-good", "5");
    kv_batch_remove_once(batch, PLAIN, BYTES("went-for-good"));
    for (int i = 0; i < 2; i++) {
        assert_string_equal(changes(batch, &fixture->text),
                            "0!again= 0+again=4 0+twice=3 0!went= 0!went-for-good= "
                            "1+twice=of another family ");
    }
}

static void a_removal_goes_whatever_came_before(void **state) {
    struct fixture *fixture = *state;
    kv_batch_remove(&fixture->batch, PLAIN, BYTES("a"));
    put(fixture, PLAIN, "b", "1");
    kv_batch_remove(&fixture->batch, PLAIN, BYTES("b")); /* there may be an older one */
    kv_batch_remove(&fixture->batch, PLAIN, BYTES("c"));
    put(fixture, PLAIN, "c", "2");
    assert_string_equal(changes(&fixture->batch, &fixture->text), "0-a= 0-b= 0+c=2 ");
}

static void a_batch_knows_its_prefixes(void **state) {
    struct fixture *fixture = *state;
    put(fixture, WORDS, "word/1", "");
    kv_batch_remove(&fixture->batch, WORDS, BYTES("longer-than-eight/1"));
    assert_true(kv_batch_has_prefix(&fixture->batch, WORDS, BYTES("word/")));
    assert_true(kv_batch_has_prefix(&fixture->batch, WORDS, BYTES("word/1")));
    assert_true(kv_batch_has_prefix(&fixture->batch, WORDS, BYTES("longer-than-eight/")));
    assert_true(kv_batch_has_prefix(&fixture->batch, WORDS, BYTES("")));
    assert_false(kv_batch_has_prefix(&fixture->batch, WORDS, BYTES("longer-than-eight/2")));
    assert_false(kv_batch_has_prefix(&fixture->batch, WORDS, BYTES("word/11")));
    assert_false(kv_batch_has_prefix(&fixture->batch, PLAIN, BYTES("word/")));
}

/* ---- entries ---- */

static void what_is_written_is_found(void **state) {
    struct fixture *fixture = *state;
    put(fixture, PLAIN, "a", "1");
    put(fixture, WORDS, "a", "2");
    put(fixture, PLAIN, "empty", "");
    assert_string_equal(get(fixture, PLAIN, "a"), "not_found");
    write_all(fixture);
    assert_string_equal(get(fixture, PLAIN, "a"), "=1");
    assert_string_equal(get(fixture, WORDS, "a"), "=2");
    assert_string_equal(get(fixture, PLAIN, "empty"), "=");
    kv_batch_remove(&fixture->batch, PLAIN, BYTES("a"));
    kv_batch_remove_once(&fixture->batch, WORDS, BYTES("a"));
    write_all(fixture);
    assert_string_equal(get(fixture, PLAIN, "a"), "not_found");
    assert_string_equal(get(fixture, WORDS, "a"), "not_found");
    assert_int_equal(kv_put(fixture->kv, PLAIN, BYTES("a"), BYTES("3"), NULL), ERR_OK);
    assert_int_equal(kv_copy(fixture->kv, PLAIN, BYTES("a"), &fixture->text, NULL), ERR_OK);
    assert_bytes_equal(buf_bytes(&fixture->text), BYTES("3"));
    assert_int_equal(kv_copy(fixture->kv, PLAIN, BYTES("a"), NULL, NULL), ERR_OK);
    assert_int_equal(kv_copy(fixture->kv, WORDS, BYTES("a"), NULL, NULL), ERR_NOT_FOUND);
}

static void a_value_outlives_the_database(void **state) {
    struct fixture *fixture = *state;
    struct kv_value value;
    assert_int_equal(kv_put(fixture->kv, PLAIN, BYTES("a"), BYTES("1"), NULL), ERR_OK);
    assert_int_equal(kv_get(fixture->kv, PLAIN, BYTES("a"), KV_GET_ONCE, &value), ERR_OK);
    kv_close(fixture->kv);
    assert_false(kv_is_open(fixture->kv));
    assert_bytes_equal(value.bytes, BYTES("1"));
    kv_value_done(&value);
    assert_string_equal(get(fixture, PLAIN, "a"), "io");
    put(fixture, PLAIN, "b", "2");
    assert_int_equal(kv_write(fixture->kv, &fixture->batch, NULL), ERR_IO);
    assert_int_equal(kv_sync(fixture->kv, NULL), ERR_IO);
    assert_int_equal(kv_open(fixture->kv, NULL), ERR_OK);
    write_all(fixture);
    assert_string_equal(get(fixture, PLAIN, "a"), "=1");
    assert_string_equal(get(fixture, PLAIN, "b"), "=2");
}

static void walks_lie_between_their_bounds(void **state) {
    static const enum kv_walk kinds[] = {KV_WALK, KV_WALK_ONCE, KV_WALK_ALL};
    struct fixture *fixture = *state;
    for (const char *c = "abcd"; *c != '\0'; c++) {
        kv_batch_put(&fixture->batch, WORDS, bytes_of(c, 1), BYTES("1"));
    }
    write_all(fixture);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_string_equal(walk(fixture, WORDS, kinds[i], "", "", false), "a=1 b=1 c=1 d=1 ");
        assert_string_equal(walk(fixture, WORDS, kinds[i], "", "", true), "d=1 c=1 b=1 a=1 ");
        assert_string_equal(walk(fixture, WORDS, kinds[i], "b", "d", false), "b=1 c=1 ");
        assert_string_equal(walk(fixture, WORDS, kinds[i], "b", "d", true), "c=1 b=1 ");
        assert_string_equal(walk(fixture, WORDS, kinds[i], "bb", "", false), "c=1 d=1 ");
        assert_string_equal(walk(fixture, WORDS, kinds[i], "e", "", false), "");
        assert_string_equal(walk(fixture, PLAIN, kinds[i], "", "", true), "");
    }
}

static void walks_over_a_prefix_end_with_it(void **state) {
    struct fixture *fixture = *state;
    put(fixture, WORDS, "a/1", "1");
    put(fixture, WORDS, "a/2", "2");
    put(fixture, WORDS, "a/3", "3");
    put(fixture, WORDS, "b/1", "4");
    write_all(fixture);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(walk(fixture, WORDS, KV_WALK_PREFIX, "a/", "a0", false), "a/1=1 a/2=2 a/3=3 ");
        assert_string_equal(walk(fixture, WORDS, KV_WALK_PREFIX, "a/2", "a/3", false), "a/2=2 ");
        assert_string_equal(walk(fixture, WORDS, KV_WALK_PREFIX, "a/2", "a/9", true), "a/3=3 a/2=2 ");
        assert_string_equal(walk(fixture, WORDS, KV_WALK_PREFIX, "c/", "c0", false), "");
        if (i == 0) {
            assert_int_equal(kv_compact(fixture->kv, NULL), ERR_OK);
        }
        kv_settle(fixture->kv); /* without iterators that wait */
    }
    assert_string_equal(walk(fixture, WORDS, KV_WALK_PREFIX, "a/3", "a0", false), "a/3=3 ");
    put(fixture, WORDS, "a/4", "5"); /* an iterator that was used before does not know it */
    write_all(fixture);
    assert_string_equal(walk(fixture, WORDS, KV_WALK_PREFIX, "a/3", "a0", false), "a/3=3 a/4=5 ");
}

static void an_iterator_can_be_sent_anywhere(void **state) {
    struct fixture *fixture = *state;
    struct kv_iterator iterator;
    put(fixture, PLAIN, "a", "1");
    put(fixture, PLAIN, "c", "2");
    write_all(fixture);
    assert_int_equal(
        kv_iterator_init(&iterator, fixture->kv, PLAIN, KV_WALK_ONCE, BYTES(""), BYTES(""), false), ERR_OK);
    assert_int_equal(kv_iterator_seek(&iterator, BYTES("b"), NULL), ERR_OK);
    assert_bytes_equal(iterator.key, BYTES("c"));
    assert_int_equal(kv_iterator_seek(&iterator, BYTES("d"), NULL), ERR_NOT_FOUND);
    assert_int_equal(kv_iterator_next(&iterator, NULL), ERR_NOT_FOUND);
    assert_int_equal(kv_iterator_seek(&iterator, BYTES("a"), NULL), ERR_OK);
    assert_int_equal(kv_iterator_next(&iterator, NULL), ERR_OK);
    assert_bytes_equal(iterator.value, BYTES("2"));
    kv_iterator_done(&iterator);
}

/* ---- opening and closing ---- */

struct closing {
    struct kv *kv;
    atomic_bool is_closed;
};

static void *close_it(void *argument) {
    struct closing *closing = argument;
    kv_close(closing->kv);
    atomic_store(&closing->is_closed, true);
    return NULL;
}

static void closing_waits_for_iterators(void **state) {
    struct fixture *fixture = *state;
    struct closing closing = {.kv = fixture->kv};
    struct kv_iterator iterator;
    pthread_t thread;
    put(fixture, PLAIN, "a", "1");
    write_all(fixture);
    assert_int_equal(kv_iterator_init(&iterator, fixture->kv, PLAIN, KV_WALK, BYTES(""), BYTES(""), false),
                     ERR_OK);
    assert_int_equal(pthread_create(&thread, NULL, close_it, &closing), 0);
    for (int i = 0; i < 20000; i++) { /* whoever has an iterator may look things up */
        assert_string_equal(get(fixture, PLAIN, "a"), "=1");
    }
    assert_int_equal(kv_iterator_next(&iterator, NULL), ERR_OK);
    assert_false(atomic_load(&closing.is_closed));
    kv_iterator_done(&iterator);
    pthread_join(thread, NULL);
    assert_false(kv_is_open(fixture->kv));
}

static void a_database_is_busy_for_others(void **state) {
    struct fixture *fixture = *state;
    struct kv *other = kv_new(fixture->directory, &levels);
    struct err_detail detail = {0};
    assert_int_equal(kv_open(other, &detail), ERR_BUSY);
    assert_int_equal(detail.err, ERR_BUSY);
    kv_free(other);
}

static void a_database_of_runs_is_destroyed_and_made_anew(void **state) {
    struct fixture *fixture = *state;
    kv_free(fixture->kv);
    assert_int_equal(kv_destroy(fixture->directory, NULL), ERR_OK);
    assert_int_equal(kv_destroy(fixture->directory, NULL), ERR_OK);
    fixture->kv = kv_new(fixture->directory, &runs);
    assert_int_equal(kv_open(fixture->kv, NULL), ERR_OK);
    assert_string_equal(walk(fixture, 0, KV_WALK_ALL, "", "", false), "");
    put(fixture, 0, "a", "1");
    write_all(fixture);
    assert_int_equal(kv_sync(fixture->kv, NULL), ERR_OK);
    kv_close(fixture->kv);
    assert_int_equal(kv_open(fixture->kv, NULL), ERR_OK);
    assert_string_equal(get(fixture, 0, "a"), "=1");
    kv_free(fixture->kv);
    fixture->kv = kv_new("/nonexistent/directory", &runs);
    struct err_detail detail = {0};
    assert_int_equal(kv_open(fixture->kv, &detail), ERR_NOT_FOUND);
    assert_non_null(strstr(detail.text, "/nonexistent/directory"));
}

/* ---- a disk that refuses ---- */

/* Write until it fails. */
static enum err fill(struct fixture *fixture) {
    static uint8_t value[1 << 16];
    enum err err = ERR_OK;
    for (int i = 0; i < 1000 && err == ERR_OK; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        kv_batch_put(&fixture->batch, PLAIN, bytes_of_string(key), bytes_of(value, sizeof value));
        err = kv_write(fixture->kv, &fixture->batch, NULL);
        kv_batch_clear(&fixture->batch);
    }
    return err;
}

static void set_file_size_max(rlim_t size) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void after_a_failed_write_it_reads_until_it_is_mended(void **state) {
    struct fixture *fixture = *state;
    struct kv_iterator iterator;
    struct err_detail detail = {0};
    signal(SIGXFSZ, SIG_IGN); /* the write shall fail instead */
    put(fixture, PLAIN, "a", "1");
    write_all(fixture);
    assert_int_equal(kv_mend(fixture->kv, NULL), ERR_OK); /* nothing to do */
    set_file_size_max(1 << 20);
    assert_int_equal(fill(fixture), ERR_LIMIT);
    put(fixture, PLAIN, "b", "2");
    assert_int_equal(kv_write(fixture->kv, &fixture->batch, &detail), ERR_LIMIT);
    assert_non_null(strstr(detail.text, "earlier write"));
    assert_int_equal(kv_sync(fixture->kv, NULL), ERR_LIMIT);
    assert_int_equal(kv_compact(fixture->kv, NULL), ERR_LIMIT);
    assert_string_equal(get(fixture, PLAIN, "a"), "=1");
    assert_int_equal(kv_mend(fixture->kv, NULL), ERR_LIMIT); /* there is no room yet */
    set_file_size_max(RLIM_INFINITY);
    assert_int_equal(kv_iterator_init(&iterator, fixture->kv, PLAIN, KV_WALK, BYTES(""), BYTES(""), false),
                     ERR_OK);
    assert_int_equal(kv_mend(fixture->kv, NULL), ERR_LIMIT); /* somebody is inside */
    kv_iterator_done(&iterator);
    assert_int_equal(kv_mend(fixture->kv, NULL), ERR_OK);
    write_all(fixture);
    assert_string_equal(get(fixture, PLAIN, "a"), "=1");
    assert_string_equal(get(fixture, PLAIN, "b"), "=2");
    kv_stop_writes(fixture->kv, ERR_MISMATCH);
    assert_int_equal(kv_put(fixture->kv, PLAIN, BYTES("c"), BYTES("3"), NULL), ERR_MISMATCH);
    assert_int_equal(kv_mend(fixture->kv, NULL), ERR_MISMATCH); /* it was mended this very second */
    assert_string_equal(get(fixture, PLAIN, "c"), "not_found");
}

static void without_room_it_does_not_open(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    struct kv *kv = kv_new(scratch_path(fixture->parent, "other", path), &runs);
    signal(SIGXFSZ, SIG_IGN);
    set_file_size_max(4 << 20);
    assert_int_equal(kv_open(kv, NULL), ERR_LIMIT);
    set_file_size_max(RLIM_INFINITY);
    assert_int_equal(kv_open(kv, NULL), ERR_OK);
    kv_free(kv);
}

/* RocksDB ends the process when the disk refuses the lines of its own log: they have room already. */
static void its_own_log_has_room(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    struct stat status;
    int fd = open(scratch_path(fixture->parent, "probe", path), O_WRONLY | O_CREAT, 0600);
    bool can_reserve = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1 << 16) == 0;
    close(fd);
    if (!can_reserve) {
        skip();
    }
    assert_int_equal(stat(scratch_path(fixture->directory, "LOG", path), &status), 0);
    assert_in_range(status.st_size, 0, (1 << 16) - 1);
    assert_true(status.st_blocks * 512 >= 1 << 18);
}

static void messages_become_errors(void **state) {
    (void)state;
    static const struct {
        const char *message;
        enum err err;
    } cases[] = {
        {"IO error: No space left on device: While appending to file: /x/000004.log: No space left on device",
         ERR_NO_SPACE},
        {"IO error: While pwrite to file at offset 4: /x/1.sst: Disk quota exceeded", ERR_NO_SPACE},
        {"IO error: While lock file: /x/LOCK: Resource temporarily unavailable", ERR_BUSY},
        {"IO error: While open a file for appending: /x/LOG: Permission denied", ERR_PERMISSION},
        {"IO error: While open a file for appending: /x/LOG: Too many open files", ERR_FILES},
        {"Invalid argument: Found options incompatible with filesystem: IO error: x: Input/output error",
         ERR_IO},
        {"Invalid argument: Direct I/O is not supported by the specified DB.", ERR_IO},
        {"IO error: While appending to file: /x/000004.log: File too large", ERR_LIMIT},
        {"IO error: While fsync: /Permission denied/x: Input/output error", ERR_IO},
        {"IO error: No such file or directory: While open a file: /x/9.sst: No such file or directory",
         ERR_CORRUPT},
        {"Corruption: block checksum mismatch: stored = 1, computed = 2 in /x/9.sst offset 0 size 9",
         ERR_CORRUPT},
        {"Invalid argument: Column families not opened: future", ERR_CORRUPT},
        {"Corruption: IO error: Permission denied\n", ERR_PERMISSION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(kv_err_of_message(bytes_of_string(cases[i].message)), cases[i].err);
    }
}

/* ---- at rest ---- */

static void put_numbers(struct fixture *fixture, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        kv_batch_put(&fixture->batch, PLAIN, bytes_of(&i, sizeof i), bytes_of(&i, sizeof i));
    }
    write_all(fixture);
}

static void a_settled_database_has_every_entry_once(void **state) {
    enum { COUNT = 100 };
    struct fixture *fixture = *state;
    put_numbers(fixture, COUNT);
    assert_int_equal(kv_compact(fixture->kv, NULL), ERR_OK);
    put_numbers(fixture, COUNT);
    assert_int_equal(kv_flush(fixture->kv, NULL), ERR_OK);
    assert_int_equal(kv_stat(fixture->kv).entries_count[PLAIN], 2 * COUNT);
    kv_settle(fixture->kv);
    await_that(kv_stat(fixture->kv).entries_count[PLAIN] == COUNT);
}

static void what_is_removed_leaves_the_files_when_it_is_forgotten(void **state) {
    enum { COUNT = 100, LEFT = 40 };
    struct fixture *fixture = *state;
    put_numbers(fixture, COUNT);
    put(fixture, WORDS, "a", "1");
    assert_int_equal(kv_compact(fixture->kv, NULL), ERR_OK);
    for (uint32_t i = LEFT; i < COUNT; i++) {
        kv_batch_remove(&fixture->batch, PLAIN, bytes_of(&i, sizeof i));
    }
    write_all(fixture);
    assert_int_equal(kv_flush(fixture->kv, NULL), ERR_OK);
    uint64_t before = kv_stat(fixture->kv).disk_size;
    assert_int_equal(kv_forget(fixture->kv, NULL), ERR_OK);
    assert_int_equal(kv_stat(fixture->kv).entries_count[PLAIN], LEFT);
    uint64_t after = kv_stat(fixture->kv).disk_size;
    assert_true(after < before);
    assert_int_equal(kv_forget(fixture->kv, NULL), ERR_OK);
    assert_int_equal(kv_stat(fixture->kv).disk_size, after);
    assert_string_equal(get(fixture, WORDS, "a"), "=1");
}

static void what_is_read_once_leaves_the_cache_as_it_is(void **state) {
    enum { COUNT = 10000 };
    struct fixture *fixture = *state;
    struct kv_value value;
    put_numbers(fixture, COUNT);
    assert_int_equal(kv_compact(fixture->kv, NULL), ERR_OK);
    kv_set_cache_size(fixture->kv, 0); /* it is empty now */
    kv_set_cache_size(fixture->kv, 16 << 20);
    uint64_t sizes[3] = {kv_stat(fixture->kv).cache_size};
    for (int kind = KV_GET_ONCE, step = 1; kind >= KV_GET; kind--, step++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            assert_int_equal(
                kv_get(fixture->kv, PLAIN, bytes_of(&i, sizeof i), (enum kv_get_kind)kind, &value), ERR_OK);
            kv_value_done(&value);
        }
        sizes[step] = kv_stat(fixture->kv).cache_size;
    }
    assert_in_range(sizes[1] - sizes[0], 1, (sizes[2] - sizes[1]) / 4); /* filters, no pages */
    struct kv_stat stat = kv_stat(fixture->kv);
    assert_true(stat.disk_size > COUNT && stat.memory_size > stat.cache_size);
    assert_int_equal(stat.entries_count[PLAIN], COUNT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_batch_is_in_the_order_of_families_and_keys),
        TEST(a_batch_holds_only_what_remains_of_a_key),
        TEST(a_removal_goes_whatever_came_before),
        TEST(a_batch_knows_its_prefixes),
        TEST(what_is_written_is_found),
        TEST(a_value_outlives_the_database),
        TEST(walks_lie_between_their_bounds),
        TEST(walks_over_a_prefix_end_with_it),
        TEST(an_iterator_can_be_sent_anywhere),
        TEST(closing_waits_for_iterators),
        TEST(a_database_is_busy_for_others),
        TEST(a_database_of_runs_is_destroyed_and_made_anew),
        TEST(after_a_failed_write_it_reads_until_it_is_mended),
        TEST(without_room_it_does_not_open),
        TEST(its_own_log_has_room),
        TEST(messages_become_errors),
        TEST(a_settled_database_has_every_entry_once),
        TEST(what_is_removed_leaves_the_files_when_it_is_forgotten),
        TEST(what_is_read_once_leaves_the_cache_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
