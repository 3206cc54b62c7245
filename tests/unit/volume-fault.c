/*
 * volume: every call to the disk fails once, on real files: whatever the caller was told is so afterwards.
 * And a disk that is really full: the volume goes on when there is room again.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "await.h"
#include "base/prng.h"
#include "store/volume/compact.h"
#include "store/volume/verify.h"
#include "volume-fixture.h"

/* ---- a file system whose n-th change fails ---- */

enum { HANDLES_MAX = 1024 };
enum failure { FAILURE_IO, FAILURE_NO_SPACE, FAILURE_SHORT_WRITE, FAILURES_COUNT };

struct faulty {
    struct vfs vfs; /* first */
    struct vfs *real;
    uint64_t countdown; /* changes until the one that fails; 0: none does */
    enum failure failure;
    bool has_failed;
    uint64_t synced_sizes[HANDLES_MAX]; /* by handle: what a failed sync leaves of a file */
    pthread_mutex_t lock;
};

static struct vfs *real_of(struct vfs *vfs) {
    return ((struct faulty *)vfs)->real;
}

/* Is it this call's turn to fail? */
static enum err strike(struct vfs *vfs) {
    struct faulty *faulty = (struct faulty *)vfs;
    pthread_mutex_lock(&faulty->lock);
    bool fails = faulty->countdown > 0 && --faulty->countdown == 0;
    faulty->has_failed = faulty->has_failed || fails;
    pthread_mutex_unlock(&faulty->lock);
    if (!fails) {
        return ERR_OK;
    }
    return faulty->failure == FAILURE_IO ? ERR_IO : ERR_NO_SPACE;
}

static enum err faulty_open(struct vfs *vfs, const char *path, unsigned flags, int64_t *ret_handle) {
    struct faulty *faulty = (struct faulty *)vfs;
    const struct vfs_table *table = faulty->real->table;
    enum err err = flags & VFS_CREATE ? strike(vfs) : ERR_OK;
    err = err == ERR_OK ? table->open(faulty->real, path, flags, ret_handle) : err;
    return err == ERR_OK ? table->size(faulty->real, *ret_handle, &faulty->synced_sizes[*ret_handle]) : err;
}

static void faulty_close(struct vfs *vfs, int64_t handle) {
    real_of(vfs)->table->close(real_of(vfs), handle);
}

static enum err faulty_read(struct vfs *vfs, int64_t handle, uint64_t offset, void *out, size_t size,
                            size_t *ret_size) {
    return real_of(vfs)->table->read(real_of(vfs), handle, offset, out, size, ret_size);
}

static enum err faulty_write(struct vfs *vfs, int64_t handle, uint64_t offset, struct bytes bytes) {
    enum err err = strike(vfs);
    if (err == ERR_OK || ((struct faulty *)vfs)->failure == FAILURE_SHORT_WRITE) {
        struct bytes part = err == ERR_OK ? bytes : bytes_slice(bytes, 0, bytes.size * 2 / 3);
        enum err written = real_of(vfs)->table->write(real_of(vfs), handle, offset, part);
        return err == ERR_OK ? written : err;
    }
    return err;
}

static enum err faulty_truncate(struct vfs *vfs, int64_t handle, uint64_t size) {
    enum err err = strike(vfs);
    return err == ERR_OK ? real_of(vfs)->table->truncate(real_of(vfs), handle, size) : err;
}

/* After a failed sync the system may drop what it could not write: here it does. */
static enum err faulty_sync(struct vfs *vfs, int64_t handle) {
    struct faulty *faulty = (struct faulty *)vfs;
    const struct vfs_table *table = faulty->real->table;
    assert_in_range(handle, 0, HANDLES_MAX - 1);
    enum err err = strike(vfs);
    if (err != ERR_OK) {
        assert_int_equal(table->truncate(faulty->real, handle, faulty->synced_sizes[handle]), ERR_OK);
        return err;
    }
    err = table->sync(faulty->real, handle);
    return err == ERR_OK ? table->size(faulty->real, handle, &faulty->synced_sizes[handle]) : err;
}

static enum err faulty_size(struct vfs *vfs, int64_t handle, uint64_t *ret_size) {
    return real_of(vfs)->table->size(real_of(vfs), handle, ret_size);
}

static enum err faulty_rename(struct vfs *vfs, const char *old_path, const char *new_path) {
    enum err err = strike(vfs);
    return err == ERR_OK ? vfs_rename(real_of(vfs), old_path, new_path) : err;
}

static enum err faulty_unlink(struct vfs *vfs, const char *path) {
    enum err err = strike(vfs);
    return err == ERR_OK ? vfs_unlink(real_of(vfs), path) : err;
}

static enum err faulty_make_directory(struct vfs *vfs, const char *path) {
    enum err err = strike(vfs);
    return err == ERR_OK ? vfs_make_directory(real_of(vfs), path) : err;
}

static enum err faulty_sync_directory(struct vfs *vfs, const char *path) {
    enum err err = strike(vfs);
    return err == ERR_OK ? vfs_sync_directory(real_of(vfs), path) : err;
}

static enum err faulty_list(struct vfs *vfs, const char *path, vfs_visit *visit, void *context) {
    return vfs_list(real_of(vfs), path, visit, context);
}

static enum err faulty_lock(struct vfs *vfs, const char *path, int64_t *ret_handle) {
    return real_of(vfs)->table->lock(real_of(vfs), path, ret_handle);
}

static enum err faulty_free_size(struct vfs *vfs, const char *path, uint64_t *ret_size) {
    return vfs_free_size(real_of(vfs), path, ret_size);
}

static const struct vfs_table faulty_table = {
    .open = faulty_open,
    .close = faulty_close,
    .read = faulty_read,
    .write = faulty_write,
    .truncate = faulty_truncate,
    .sync = faulty_sync,
    .size = faulty_size,
    .rename = faulty_rename,
    .unlink = faulty_unlink,
    .make_directory = faulty_make_directory,
    .sync_directory = faulty_sync_directory,
    .list = faulty_list,
    .lock = faulty_lock,
    .free_size = faulty_free_size,
};

/* ---- what somebody does with a volume ---- */

enum { DOCUMENTS_COUNT = 8, BODY_SIZE = 3000, SEGMENT_SIZE = 8000 };

/* What the caller was told of each document. */
enum promise { PROMISE_NONE, PROMISE_KEPT, PROMISE_GONE, PROMISE_OPEN /* a removal failed: either */ };

struct story {
    struct key keys[DOCUMENTS_COUNT];
    enum promise promises[DOCUMENTS_COUNT];
};

static struct bytes body_of(size_t i, uint8_t body[BODY_SIZE]) {
    struct prng prng;
    prng_init(&prng, i + 1);
    prng_fill(&prng, body, BODY_SIZE);
    return bytes_of(body, BODY_SIZE);
}

static void put_one(struct volume_writer *writer, struct story *story, size_t i) {
    uint8_t body[BODY_SIZE];
    struct stored stored;
    struct document document = {
        .url = BYTES("http://example.org/"),
        .time_us = (int64_t)i,
        .body = body_of(i, body),
        .content_type = BYTES("image/png"),
    };
    if (volume_put(writer, &document, STORE_REGULAR, &stored, NULL) == ERR_OK) {
        story->keys[i] = stored.key;
        story->promises[i] = PROMISE_KEPT;
    }
}

static enum err remove_capture(struct volume_writer *writer, const struct key *key, size_t i) {
    struct capture capture = {
        .surt = BYTES("org,example)/"), .url = BYTES("http://example.org/"), .time_us = (int64_t)i};
    memcpy(capture.digest, key->digest, sizeof capture.digest);
    return volume_remove_capture(writer, &capture, NULL);
}

/* By its only reference, or by its only capture. */
static void remove_one(struct volume_writer *writer, struct story *story, size_t i) {
    if (story->promises[i] == PROMISE_KEPT) {
        enum err err = i % 2 == 0 ? volume_remove(writer, &story->keys[i], NULL)
                                  : remove_capture(writer, &story->keys[i], i);
        story->promises[i] = err == ERR_OK ? PROMISE_GONE : PROMISE_OPEN;
    }
}

/* Several segments, a dictionary is not wanted, some documents removed, their bytes given back. */
static void tell(struct fixture *fixture, struct story *story) {
    struct volume *volume;
    struct compact_report report;
    for (int part = 0; part < 2; part++) {
        if (volume_open(&fixture->config, &volume, &fixture->recovery, NULL) != ERR_OK) {
            continue;
        }
        struct volume_writer *writer = volume_writer_new(volume);
        assert_non_null(writer);
        for (size_t i = 0; i < DOCUMENTS_COUNT / 2; i++) {
            put_one(writer, story, (size_t)part * DOCUMENTS_COUNT / 2 + i);
        }
        remove_one(writer, story, 1);
        remove_one(writer, story, (size_t)part * DOCUMENTS_COUNT / 2 + 2);
        enum err err = compact_volume(volume, 10, &report, NULL);
        (void)err; /* whether it worked or not, nothing may be lost */
        volume_writer_free(writer);
        volume_close(volume);
    }
}

static void expect_told(struct fixture *fixture, const struct story *story, uint64_t number) {
    uint8_t body[BODY_SIZE];
    for (size_t i = 0; i < DOCUMENTS_COUNT; i++) {
        struct bytes found;
        if (story->promises[i] == PROMISE_NONE) {
            continue;
        }
        enum err err = volume_get(fixture->reader, &story->keys[i], &found, NULL);
        bool is_there = err == ERR_OK && bytes_equal(found, body_of(i, body));
        bool is_gone = err == ERR_NOT_FOUND;
        bool is_kept = story->promises[i] == PROMISE_KEPT   ? is_there
                       : story->promises[i] == PROMISE_GONE ? is_gone
                                                            : is_there || is_gone;
        if (!is_kept) {
            fail_msg("change %ju failed; document %zu, promise %d: %s", (uintmax_t)number, i,
                     story->promises[i], err_text(err));
        }
    }
    struct verify_observer observer = {0};
    struct verify_report report;
    assert_int_equal(verify_volume(fixture->volume, &observer, &report, NULL), ERR_OK);
    if (report.damaged_count + report.lost_count > 0) {
        fail_msg("change %ju failed; %ju damaged, %ju lost", (uintmax_t)number,
                 (uintmax_t)report.damaged_count, (uintmax_t)report.lost_count);
    }
}

static void empty_root(const struct fixture *fixture) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s/volumes %s/index", fixture->root, fixture->root);
    assert_int_equal(system(command), 0);
}

/* The story with a failing change, then what is left of it on a healthy disk. False: it ended before. */
static bool run_story(struct fixture *fixture, uint64_t number, enum failure failure) {
    struct faulty faulty = {
        .vfs = {&faulty_table}, .real = &fixture->vfs.vfs, .countdown = number, .failure = failure};
    struct story story = {0};
    pthread_mutex_init(&faulty.lock, NULL);
    empty_root(fixture);
    fixture->config.vfs = &faulty.vfs;
    tell(fixture, &story);
    fixture->config.vfs = &fixture->vfs.vfs;
    open_volume(fixture);
    expect_told(fixture, &story, number);
    if (number % 5 == 0) { /* takes as long as all the rest */
        rebuild(fixture);
        expect_told(fixture, &story, number);
    }
    close_volume(fixture);
    pthread_mutex_destroy(&faulty.lock);
    return faulty.has_failed;
}

static void any_failing_change_of_real_files_is_survived(void **state) {
    struct fixture *fixture = *state;
    close_volume(fixture);
    fixture->config.segment_size_max = SEGMENT_SIZE;
    for (enum failure failure = 0; failure < FAILURES_COUNT; failure++) {
        uint64_t number = 1;
        while (run_story(fixture, number, failure)) {
            number += IS_SANITIZED ? 4 : 1;
            assert_true(number < 1000);
        }
        assert_true(number > 40); /* it really went through the story */
    }
    open_volume(fixture);
}

/* ---- a full disk ---- */

enum { FULL_SKIPPED = 77, FULL_COUNT_MAX = 20000, SMALL_MIB = 24 };

static bool mount_small(const char *path, bool is_mounted, unsigned size_mib) {
    char options[32];
    snprintf(options, sizeof options, "size=%um", size_mib);
    return mount("tmpfs", path, "tmpfs", is_mounted ? MS_REMOUNT : 0, options) == 0;
}

static enum err put_number(struct fixture *fixture, uint32_t number, struct stored *ret_stored) {
    char url[64];
    int size = snprintf(url, sizeof url, "http://example.org/%u/a-rather-long-name", number);
    struct document document = {
        .url = bytes_of(url, (size_t)size), .body = bytes_of(&number, sizeof number), .time_us = 1};
    return volume_put(fixture->writer, &document, STORE_REGULAR, ret_stored, NULL);
}

static bool has_all(struct fixture *fixture, const struct key *keys, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct bytes found;
        if (volume_get(fixture->reader, &keys[i], &found, NULL) != ERR_OK || found.size != sizeof i ||
            memcmp(found.data, &i, sizeof i) != 0) {
            return false;
        }
    }
    return true;
}

/* With the index on a file system of a few megabytes of its own. */
static int fill_the_index(struct fixture *fixture) {
    static struct key keys[FULL_COUNT_MAX];
    struct stored stored;
    uint32_t count = 0;
    enum err err = ERR_OK;
    open_volume(fixture);
    /* What RocksDB has not reserved is taken from it: its log then fails to grow within some records. */
    char path[128];
    snprintf(path, sizeof path, "%s/filler", fixture->index);
    FILE *filler = fopen(path, "w");
    setvbuf(filler, NULL, _IONBF, 0);
    for (char kib[1024] = {0}; fwrite(kib, sizeof kib, 1, filler) == 1;) {
    }
    fclose(filler);
    for (; count < FULL_COUNT_MAX && err == ERR_OK; count += err == ERR_OK) {
        err = put_number(fixture, count, &stored);
        keys[count] = err == ERR_OK ? stored.key : keys[count];
    }
    bool is_well = err == ERR_NO_SPACE && has_all(fixture, keys, count); /* refused, and serves on */
    is_well = is_well && put_number(fixture, count, &stored) == ERR_NO_SPACE;
    is_well = is_well && mount_small(fixture->index, true, 256);
    unsigned turns_count = 0;
    do { /* it tries once a second */
        err = put_number(fixture, count, &stored);
    } while (err != ERR_OK && await_turn(&turns_count));
    is_well = is_well && err == ERR_OK;
    keys[count++] = stored.key;
    is_well = is_well && has_all(fixture, keys, count);
    reopen(fixture);
    is_well = is_well && has_all(fixture, keys, count) && !fixture->recovery.is_rebuilt;
    close_volume(fixture);
    return is_well ? 0 : 1;
}

/* In a process of its own, so that nobody else ever sees the small file system. */
static int child(const char *root) {
    struct fixture fixture = {0};
    snprintf(fixture.root, sizeof fixture.root, "%s", root);
    prepare_config(&fixture);
    if (mkdir(fixture.index, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        !mount_small(fixture.index, false, SMALL_MIB)) {
        return FULL_SKIPPED;
    }
    return fill_the_index(&fixture);
}

static void goes_on_when_the_disk_of_the_index_has_room_again(void **state) {
    struct fixture *fixture = *state;
    close_volume(fixture);
    empty_root(fixture);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test-volume-fault", fixture->root, NULL);
        _exit(99);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    empty_root(fixture);
    open_volume(fixture);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == FULL_SKIPPED) {
        skip(); /* mounting is not permitted here */
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int arguments_count, char **arguments) {
    if (arguments_count > 1) {
        return child(arguments[1]);
    }
    const struct CMUnitTest tests[] = {
        TEST(any_failing_change_of_real_files_is_survived),
        TEST(goes_on_when_the_disk_of_the_index_has_room_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
