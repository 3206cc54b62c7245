/* deposits: an archive of somebody else, only read, that grows, is compacted, is damaged, and goes. */
#include <fcntl.h>
#include <stdio.h>

#include "instance-fixture.h"
#include "store/backend/backend_local.h"
#include "store/backend/backend_mirrored.h"
#include "store/volume/follow.h"

enum { NUMBER = INSTANCE_MIRRORED_NUMBER, DISK = 0 };

/* The files of the owner's first volume, as a version of a collection has them; an older one may be there. */
static void publish(struct fixture *fixture, unsigned version) {
    char command[4 * SCRATCH_PATH_SIZE];
    snprintf(command, sizeof command, "mkdir -p '%s/trees/%u' && cp '%s'/*.warc.* '%s/trees/%u/'",
             (char *)fixture->root, version, fixture->disks[DISK], (char *)fixture->root, version);
    assert_int_equal(system(command), 0);
}

static const char *tree(unsigned version, char out[32]) {
    snprintf(out, 32, "trees/%u", version);
    return out;
}

static enum err try_open(struct fixture *fixture, unsigned version, const char *index,
                         struct backend **ret_backend, struct volume_recovery *ret_recovery) {
    char directory[32];
    char path[SCRATCH_PATH_SIZE];
    struct backend_local_config config = {
        .volume = {.number = NUMBER},
        .path = fixture->root,
        .index = scratch_path(fixture->root, index, path),
        .mirrored = tree(version, directory),
    };
    struct err_detail detail = {0};
    return backend_local_open(&config, ret_backend, ret_recovery, &detail);
}

static struct backend *open_mirrored(struct fixture *fixture, unsigned version, const char *index,
                                     struct volume_recovery *ret_recovery) {
    struct backend *backend = NULL;
    assert_int_equal(try_open(fixture, version, index, &backend, ret_recovery), ERR_OK);
    return backend;
}

static void close_mirrored(struct backend *backend) {
    backend->table->close(backend);
}

static bool grows(struct fixture *fixture, unsigned old, unsigned new) {
    char before[32];
    char after[32];
    struct vfs_posix vfs;
    bool is_grown = false;
    assert_int_equal(vfs_posix_init(&vfs, fixture->root, NULL), ERR_OK);
    assert_int_equal(volume_is_grown(&vfs.vfs, tree(old, before), tree(new, after), &is_grown), ERR_OK);
    vfs_posix_done(&vfs);
    return is_grown;
}

static size_t count(struct instance_session *session) {
    struct merge *merge;
    struct capture capture;
    size_t found = 0;
    assert_int_equal(merge_open(session, bytes_of(NULL, 0), bytes_of(NULL, 0), false, &merge, NULL), ERR_OK);
    while (merge_next(merge, &capture, NULL) == ERR_OK) {
        found++;
    }
    merge_close(merge);
    return found;
}

static void path_of_segment(struct fixture *fixture, unsigned version, char out[SCRATCH_PATH_SIZE]) {
    char name[64];
    snprintf(name, sizeof name, "trees/%u/00000001.warc.zst", version);
    scratch_path(fixture->root, name, out);
}

static long size_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return (long)status.st_size;
}

/* ---- */

static void only_what_is_new_is_read(void **state) {
    struct fixture *fixture = *state;
    struct volume_recovery recovery;
    char directory[32];
    fixture_capture(fixture, "http://a.example/", 1, "one", 0);
    fixture_capture(fixture, "http://b.example/", 2, "one", 0); /* a revisit */
    publish(fixture, 1);
    struct backend *backend = open_mirrored(fixture, 1, "made", &recovery);
    assert_int_equal(recovery.records_count, 2);
    fixture_capture(fixture, "http://c.example/", 3, "two", 0);
    publish(fixture, 2);
    assert_true(grows(fixture, 1, 2));
    assert_false(grows(fixture, 2, 1));
    assert_int_equal(volume_extend(backend_local_volume(backend), tree(2, directory), &recovery, NULL),
                     ERR_OK);
    assert_int_equal(recovery.records_count, 1);
    assert_int_equal(recovery.damaged_count, 0);
    close_mirrored(backend);
    backend = open_mirrored(fixture, 2, "made", &recovery); /* it knows how far it has come */
    assert_int_equal(recovery.records_count, 0);
    close_mirrored(backend);
}

static void a_crash_in_the_middle_is_gone_on_from(void **state) {
    struct fixture *fixture = *state;
    struct volume_recovery recovery;
    fixture_capture(fixture, "http://a.example/", 1, "one", 0);
    publish(fixture, 1);
    close_mirrored(open_mirrored(fixture, 1, "made", &recovery));
    fixture_capture(fixture, "http://b.example/", 2, "two", 0);
    publish(fixture, 2); /* and now the index of version 1 is opened with the files of version 2 */
    close_mirrored(open_mirrored(fixture, 2, "made", &recovery));
    assert_int_equal(recovery.records_count, 1);
    assert_false(recovery.is_rebuilt);
}

static void a_torn_end_is_left_and_gone_on_with(void **state) {
    struct fixture *fixture = *state;
    struct volume_recovery recovery;
    char directory[32];
    char torn[SCRATCH_PATH_SIZE];
    char whole[SCRATCH_PATH_SIZE];
    fixture_capture(fixture, "http://a.example/", 1, "one", 0);
    fixture_capture(fixture, "http://b.example/", 2, "two", 0);
    publish(fixture, 1);
    publish(fixture, 2);
    path_of_segment(fixture, 1, torn);
    path_of_segment(fixture, 2, whole);
    assert_int_equal(truncate(torn, size_of(torn) - 5), 0);
    struct backend *backend = open_mirrored(fixture, 1, "made", &recovery);
    assert_int_equal(recovery.records_count, 1);
    assert_int_equal(recovery.damaged_count, 0);
    assert_int_equal(size_of(torn), size_of(whole) - 5); /* it is another's: nothing is cut */
    assert_true(grows(fixture, 1, 2));
    assert_int_equal(volume_extend(backend_local_volume(backend), tree(2, directory), &recovery, NULL),
                     ERR_OK);
    assert_int_equal(recovery.records_count, 1);
    close_mirrored(backend);
}

/* To another value, whatever it is: records have random names, and any byte may be any. */
static void change_byte(const char *path, long offset) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    int value = fgetc(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_not_equal(fputc(value ^ 1, file), EOF);
    assert_int_equal(fclose(file), 0);
}

static void what_was_compacted_or_is_another_has_not_grown(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    fixture_capture(fixture, "http://a.example/", 1, "one", 0);
    publish(fixture, 1);
    publish(fixture, 2);
    path_of_segment(fixture, 2, path);
    change_byte(path, size_of(path) - 3);
    assert_false(grows(fixture, 1, 2));
    publish(fixture, 3);
    path_of_segment(fixture, 3, path);
    char moved[SCRATCH_PATH_SIZE];
    assert_int_equal(rename(path, scratch_path(fixture->root, "trees/3/00000001-1.warc.zst", moved)), 0);
    assert_false(grows(fixture, 1, 3));
}

/* ---- in an instance ---- */

static void readers_have_one_state_or_the_other(void **state) {
    struct fixture *fixture = *state;
    struct volume_recovery recovery;
    struct backend *mirrored = backend_mirrored_new();
    fixture_capture(fixture, "http://a.example/", 1, "one", 0);
    fixture_capture(fixture, "http://b.example/", 2, "two", 0);
    publish(fixture, 1);
    fixture_capture(fixture, "http://c.example/", 3, "three", 0);
    publish(fixture, 2);
    instance_add_mirrored(fixture->instance, NUMBER, "papers@key", mirrored);
    backend_mirrored_replace(mirrored,
                             mirrored_holding_new(open_mirrored(fixture, 1, "first", &recovery), 1));
    assert_int_equal(count(fixture->session), 3); /* only what is its own */
    struct instance_session *reader = instance_session_new(fixture->instance);
    instance_session_set_mirrored(reader, true);
    assert_int_equal(count(reader), 3); /* each once */

    struct merge *merge;
    struct capture capture;
    assert_int_equal(merge_open(reader, bytes_of(NULL, 0), bytes_of(NULL, 0), true, &merge, NULL), ERR_OK);
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_OK);
    backend_mirrored_replace(mirrored,
                             mirrored_holding_new(open_mirrored(fixture, 2, "second", &recovery), 2));
    instance_session_set_mirrored(reader, true); /* in the middle of a walk: it stays as it is */
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_OK);
    merge_close(merge);
    instance_session_set_mirrored(reader, true);
    assert_int_equal(count(reader), 3);
    backend_mirrored_replace(mirrored, NULL);
    instance_session_set_mirrored(reader, true);
    assert_int_equal(count(reader), 3);
    instance_session_free(reader);
}

/* The owner's own volume is emptied, so that what is found is the deposit's. */
static void open_alone(struct fixture *fixture, struct fixture *other, void *root) {
    *other = (struct fixture){.root = root};
    static char directory[SCRATCH_PATH_SIZE];
    other->config = (struct instance_config){.directory = scratch_path(fixture->root, "other", directory)};
    fixture_open(other);
}

static void rules_of_the_owner_count(void **state) {
    struct fixture *fixture = *state;
    struct fixture other;
    struct volume_recovery recovery;
    struct backend *mirrored = backend_mirrored_new();
    struct capture capture;
    struct key key;
    struct block block;
    struct merge *merge;
    fixture_capture(fixture, "http://a.example/", 1, "one", 0);
    fixture_capture(fixture, "http://b.example/", 2, "one", 0); /* a revisit */
    publish(fixture, 1);
    open_alone(fixture, &other, fixture->root);
    instance_add_mirrored(other.instance, NUMBER, "papers@key", mirrored);
    backend_mirrored_replace(mirrored,
                             mirrored_holding_new(open_mirrored(fixture, 1, "first", &recovery), 1));
    assert_int_equal(count(other.session), 0);
    assert_false(instance_session_sees(other.session, NUMBER));
    instance_session_set_mirrored(other.session, true);
    assert_true(instance_session_sees(other.session, NUMBER));
    assert_int_equal(count(other.session), 2);
    struct access_rules *rules = access_rules_new();
    assert_int_equal(access_rules_add(rules,
                                      BYTES("example,a)/ - {\"access\": \"exclude\"}\n"
                                            "example,b)/ - {\"access\": \"block\"}\n"),
                                      NULL),
                     ERR_OK);
    assert_int_equal(access_rules_seal(rules), ERR_OK);
    backend_mirrored_set_rules(mirrored, rules);
    assert_int_equal(count(other.session), 1); /* what is excluded is not there */
    assert_int_equal(merge_open(other.session, bytes_of(NULL, 0), bytes_of(NULL, 0), false, &merge, NULL),
                     ERR_OK);
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_OK);
    assert_int_equal(capture.volume, NUMBER);
    assert_int_equal(backend_mirrored_check(mirrored, capture.surt, capture.time_us), ACCESS_BLOCK);
    assert_int_equal(instance_locate(other.session, &capture, &key, &block, NULL), ERR_OK);
    assert_int_equal(key.volume, NUMBER);
    merge_close(merge);
    instance_session_set_mirrored(other.session, false);
    fixture_close(&other);
}

/* ---- nonsense ---- */

static void put_record(FILE *file, const char *url, const char *date, const char *digest, long size,
                       const char *body) {
    fprintf(file,
            "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: "
            "<urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
            "WARC-Target-URI: %s\r\nWARC-Date: %s\r\n%s%s%sContent-Type: text/plain\r\nContent-Length: "
            "%ld\r\n\r\n"
            "%s\r\n\r\n",
            url, date, digest[0] != '\0' ? "WARC-Payload-Digest: " : "", digest,
            digest[0] != '\0' ? "\r\n" : "", size, body);
}

static void nonsense_is_left_out_with_a_reason(void **state) {
    static const char wrong[] = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    struct fixture *fixture = *state;
    struct volume_recovery recovery;
    char path[SCRATCH_PATH_SIZE];
    assert_int_equal(mkdir(scratch_path(fixture->root, "trees", path), 0777), 0);
    assert_int_equal(mkdir(scratch_path(fixture->root, "trees/1", path), 0777), 0);
    FILE *file = fopen(scratch_path(fixture->root, "trees/1/00000001.warc", path), "wb");
    put_record(file, "http://a.example/", "2026-01-01T00:00:00Z", "", 3, "one");
    put_record(file, "http://b.example/", "2026-01-01T00:00:00Z", wrong, 3, "two");
    put_record(file, "http://c.example/", "9998-01-01T00:00:00Z", "", 5, "three");
    fputs("no record at all\r\n\r\n", file);
    put_record(file, "http://e.example/", "2026-01-01T00:00:00Z", "", 4, "five");
    fclose(file);
    struct backend *backend = open_mirrored(fixture, 1, "made", &recovery);
    assert_int_equal(recovery.records_count, 2);
    assert_int_equal(recovery.damaged_count, 3);
    assert_string_equal(recovery.damage, "a document that its digest does not fit");
    struct follow *follow = follow_new(backend_local_volume(backend)); /* nor is it given to who follows */
    struct ledger_entry entry;
    assert_int_equal(follow_next(follow, &entry, NULL), ERR_OK);
    assert_int_equal(follow_next(follow, &entry, NULL), ERR_OK);
    assert_true(bytes_equal(entry.url, BYTES("http://e.example/")));
    assert_int_equal(follow_next(follow, &entry, NULL), ERR_NOT_FOUND);
    follow_free(follow);
    close_mirrored(backend);
    /* A segment that is none is left out as a whole, and a name that is none is not looked at. */
    file = fopen(scratch_path(fixture->root, "trees/1/00000002.warc.zst", path), "wb");
    fwrite("\x5d\x2a\x4d\x18\xff\xff\xff\xff", 1, 8, file);
    fclose(file);
    fclose(fopen(
        scratch_path(fixture->root, "trees/1/0000000000000000000000000000000000000000000003.warc.zst", path),
        "wb"));
    backend = open_mirrored(fixture, 1, "again", &recovery);
    assert_int_equal(recovery.records_count, 2);
    close_mirrored(backend);
}

static void what_is_absurd_is_refused_as_a_whole(void **state) {
    struct fixture *fixture = *state;
    struct volume_recovery recovery;
    struct backend *backend;
    char path[SCRATCH_PATH_SIZE];
    assert_int_equal(mkdir(scratch_path(fixture->root, "trees", path), 0777), 0);
    assert_int_equal(mkdir(scratch_path(fixture->root, "trees/1", path), 0777), 0);
    FILE *file = fopen(scratch_path(fixture->root, "trees/1/00000001.warc", path), "wb");
    put_record(file, "http://d.example/", "2026-01-01T00:00:00Z", "", 5000000000, "four");
    fclose(file);
    assert_int_equal(try_open(fixture, 1, "made", &backend, &recovery), ERR_LIMIT);
}

static void is_cancelled_when_it_must_end(void **state) {
    struct fixture *fixture = *state;
    struct volume_recovery recovery;
    struct backend *backend;
    char path[SCRATCH_PATH_SIZE];
    static const atomic_bool is_cancelled = true;
    fixture_capture(fixture, "http://a.example/", 1, "one", 0);
    publish(fixture, 1);
    struct backend_local_config config = {
        .volume = {.number = NUMBER, .is_cancelled = &is_cancelled},
        .path = fixture->root,
        .index = scratch_path(fixture->root, "made", path),
        .mirrored = "trees/1",
    };
    assert_int_equal(backend_local_open(&config, &backend, &recovery, NULL), ERR_CANCELLED);
    close_mirrored(open_mirrored(fixture, 1, "made", &recovery));
    assert_int_equal(recovery.records_count, 1);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(only_what_is_new_is_read),
        WITH_FIXTURE(a_crash_in_the_middle_is_gone_on_from),
        WITH_FIXTURE(a_torn_end_is_left_and_gone_on_with),
        WITH_FIXTURE(what_was_compacted_or_is_another_has_not_grown),
        WITH_FIXTURE(readers_have_one_state_or_the_other),
        WITH_FIXTURE(rules_of_the_owner_count),
        WITH_FIXTURE(nonsense_is_left_out_with_a_reason),
        WITH_FIXTURE(what_is_absurd_is_refused_as_a_whole),
        WITH_FIXTURE(is_cancelled_when_it_must_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
