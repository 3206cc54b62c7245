/* collection: what is published can be fetched piece by piece, survives a crash, and is switched to at once.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "clock-manual.h"
#include "node/mirror/collection.h"
#include "node/mirror/collection_places.h"
#include "node/mirror/collection_publish.h"
#include "scratch.h"
#include "unit.h"

enum { LARGE_SIZE = 1500000, WANTED_MAX = 1000, PATH_SIZE = SCRATCH_PATH_SIZE + 256 };

/* A publisher and a subscriber, and the directory that is published. */
struct fixture {
    char *root;
    char source[PATH_SIZE];
    char publisher_data[PATH_SIZE];
    char subscriber_data[PATH_SIZE];
    struct identity identity;
    struct clock_manual clock;
    struct collection *publisher;
    struct collection *subscriber;
    struct manifest_ref wanted[WANTED_MAX];
    uint32_t places[WANTED_MAX];
    size_t wanted_count;
    uint8_t memory[CHUNKER_SIZE_MAX];
};

/* ---- files ---- */

static const char *in(const char *directory, const char *name) {
    static char path[2 * PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *path, struct bytes contents) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(contents.data, 1, contents.size, file), contents.size);
    assert_int_equal(fclose(file), 0);
}

static struct bytes noise(uint8_t *memory, size_t size, uint32_t seed) {
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        memory[i] = (uint8_t)(seed >> 24);
    }
    return bytes_of(memory, size);
}

static void write_large(const struct fixture *fixture, const char *name, uint32_t seed) {
    uint8_t *memory = malloc(LARGE_SIZE);
    assert_non_null(memory);
    write_file(in(fixture->source, name), noise(memory, LARGE_SIZE, seed));
    free(memory);
}

static bool holds(const struct fixture *fixture, const char *name, const char *contents) {
    char found[256] = "";
    char path[PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/collections/papers/current", fixture->subscriber_data);
    FILE *file = fopen(in(path, name), "r");
    if (file == NULL) {
        return false;
    }
    size_t size = fread(found, 1, sizeof found - 1, file);
    fclose(file);
    return size == strlen(contents) && memcmp(found, contents, size) == 0;
}

/* ---- the two ---- */

static struct collection_publish_result publish(struct fixture *fixture) {
    struct collection_publish_config config = {
        .directory = fixture->publisher_data,
        .identity = &fixture->identity,
        .name = "papers",
        .source = fixture->source,
        .clock = &fixture->clock.clock,
    };
    struct collection_publish_result result;
    struct err_detail detail = {0};
    clock_manual_advance(&fixture->clock, 10000000);
    enum err err = collection_publish(&config, &result, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    return result;
}

static void open_publisher(struct fixture *fixture) {
    struct collection_setup setup;
    assert_int_equal(collection_setup_read(fixture->publisher_data, "papers", &setup, NULL), ERR_OK);
    assert_int_equal(collection_open(fixture->publisher_data, &setup, &fixture->publisher, NULL), ERR_OK);
}

static void open_subscriber(struct fixture *fixture) {
    struct collection_setup setup = {.name = "papers", .has_publisher = true};
    memcpy(setup.publisher, fixture->identity.key, PEER_KEY_SIZE);
    collection_close(fixture->subscriber);
    assert_int_equal(collection_setup_write(fixture->subscriber_data, &setup, NULL), ERR_OK);
    assert_int_equal(collection_open(fixture->subscriber_data, &setup, &fixture->subscriber, NULL), ERR_OK);
}

/* What is missing, and whether that is all. */
static bool want(struct fixture *fixture) {
    struct collection_wants wants = {.refs = fixture->wanted, .places = fixture->places, .max = WANTED_MAX};
    assert_int_equal(collection_want(fixture->subscriber, &wants), ERR_OK);
    fixture->wanted_count = wants.count;
    return wants.is_all;
}

static void take(struct fixture *fixture, const struct manifest_ref *ref) {
    size_t size;
    assert_int_equal(collection_give(fixture->publisher, ref->digest, fixture->memory, &size), ERR_OK);
    assert_int_equal(collection_take(fixture->subscriber, ref, bytes_of(fixture->memory, size)), ERR_OK);
}

/* Until nothing is missing; how many bytes of content came. */
static uint64_t fetch(struct fixture *fixture) {
    uint64_t content = 0;
    for (unsigned round = 0; round < 10; round++) {
        bool is_all = want(fixture);
        for (size_t i = 0; i < fixture->wanted_count; i++) {
            take(fixture, &fixture->wanted[i]);
            content += is_all ? fixture->wanted[i].size : 0;
        }
        if (is_all && fixture->wanted_count == 0) {
            return content;
        }
    }
    fail_msg("something is always missing");
    return 0;
}

static enum err apply(struct fixture *fixture, struct collection_tree_stat *ret_stat) {
    return collection_apply(fixture->subscriber, ret_stat, NULL);
}

/* The next version, from the directory as it is now. */
static uint64_t update(struct fixture *fixture, struct collection_tree_stat *ret_stat) {
    struct version version = publish(fixture).version;
    (void)collection_look(fixture->publisher, NULL);
    assert_int_equal(collection_begin(fixture->subscriber, &version, NULL), ERR_OK);
    uint64_t content = fetch(fixture);
    assert_int_equal(apply(fixture, ret_stat), ERR_OK);
    assert_int_equal(collection_held(fixture->subscriber)->number, version.number);
    return content;
}

static int setup(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (scratch_make((void **)&fixture->root) != 0 || identity_random(&fixture->identity) != ERR_OK) {
        return -1;
    }
    snprintf(fixture->source, sizeof fixture->source, "%s/source", fixture->root);
    snprintf(fixture->publisher_data, sizeof fixture->publisher_data, "%s/a", fixture->root);
    snprintf(fixture->subscriber_data, sizeof fixture->subscriber_data, "%s/b", fixture->root);
    clock_manual_init(&fixture->clock, clock_wall_us(&clock_system));
    mkdir(fixture->source, 0755);
    mkdir(in(fixture->source, "d"), 0755);
    write_file(in(fixture->source, "d/small"), BYTES("small"));
    write_file(in(fixture->source, "empty"), BYTES(""));
    write_large(fixture, "large", 1);
    *state = fixture;
    publish(fixture);
    open_publisher(fixture);
    open_subscriber(fixture);
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    collection_close(fixture->publisher);
    collection_close(fixture->subscriber);
    identity_done(&fixture->identity);
    int result = scratch_remove((void **)&fixture->root);
    free(fixture);
    return result;
}

/* ---- behaviour ---- */

static void a_version_comes_and_the_next_costs_what_changed(void **state) {
    struct fixture *fixture = *state;
    struct collection_tree_stat stat;
    write_file(in(fixture->source, "new"), BYTES("one"));
    assert_int_equal(update(fixture, &stat), LARGE_SIZE + 5 + 3);
    assert_int_equal(stat.written_count, 4);
    assert_true(holds(fixture, "new", "one"));

    write_file(in(fixture->source, "new"), BYTES("other"));
    char from[PATH_SIZE + 64];
    snprintf(from, sizeof from, "%s/large", fixture->source);
    assert_int_equal(rename(from, in(fixture->source, "d/moved")), 0);
    assert_int_equal(update(fixture, &stat), 5);
    assert_int_equal(stat.written_count, 1);
    assert_int_equal(stat.linked_count, 3); /* the renamed one, too */
    assert_true(holds(fixture, "new", "other"));
    assert_false(holds(fixture, "large", ""));
}

static void nothing_new_is_no_version(void **state) {
    struct fixture *fixture = *state;
    struct collection_publish_result result = publish(fixture);
    assert_false(result.is_new);
    assert_int_equal(result.version.number, 1);
    assert_int_equal(result.stat.read_count, 0); /* the clock is past the files' changes */
}

/* What a power failure leaves of files whose names and sizes got to the disk. */
static void publishing_mends_a_manifest_of_zeros(void **state) {
    struct fixture *fixture = *state;
    struct collection_tree_stat stat;
    char path[PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/collections/papers/nodes", fixture->publisher_data);
    DIR *nodes = opendir(path);
    assert_non_null(nodes);
    const struct dirent *item;
    while ((item = readdir(nodes)) != NULL) {
        struct stat file;
        assert_int_equal(fstatat(dirfd(nodes), item->d_name, &file, 0), 0);
        int opened = item->d_name[0] != '.' ? openat(dirfd(nodes), item->d_name, O_WRONLY) : -1;
        assert_true(opened < 0 || (ftruncate(opened, 0) == 0 && ftruncate(opened, file.st_size) == 0));
        if (opened >= 0) {
            close(opened);
        }
    }
    closedir(nodes);
    assert_false(publish(fixture).is_new);
    assert_int_equal(update(fixture, &stat), LARGE_SIZE + 5);
    assert_true(holds(fixture, "d/small", "small"));
}

static void what_came_survives_a_crash(void **state) {
    struct fixture *fixture = *state;
    struct collection_tree_stat stat;
    struct version version = *collection_held(fixture->publisher);
    assert_int_equal(collection_begin(fixture->subscriber, &version, NULL), ERR_OK);
    while (!want(fixture)) {
        for (size_t i = 0; i < fixture->wanted_count; i++) {
            take(fixture, &fixture->wanted[i]);
        }
    }
    size_t all = fixture->wanted_count;
    assert_true(all > 5);
    for (size_t i = 0; i < 5; i++) {
        take(fixture, &fixture->wanted[i]);
    }
    char pack[PATH_SIZE + 64];
    snprintf(pack, sizeof pack, "%s/collections/papers/staging/pack", fixture->subscriber_data);
    struct stat file;
    assert_int_equal(lstat(pack, &file), 0);
    assert_int_equal(truncate(pack, file.st_size - 7), 0); /* the last one is torn */
    open_subscriber(fixture);
    assert_int_equal(collection_staged(fixture->subscriber)->number, 1);
    assert_true(want(fixture));
    assert_int_equal(fixture->wanted_count, all - 4);
    fetch(fixture);
    assert_int_equal(apply(fixture, &stat), ERR_OK);
    assert_true(holds(fixture, "d/small", "small"));
}

static void the_link_of_readers_is_mended(void **state) {
    struct fixture *fixture = *state;
    struct collection_tree_stat stat;
    char current[PATH_SIZE + 64];
    write_file(in(fixture->source, "new"), BYTES("one"));
    update(fixture, &stat);
    snprintf(current, sizeof current, "%s/collections/papers/current", fixture->subscriber_data);
    assert_int_equal(unlink(current), 0);
    assert_int_equal(symlink("trees/1", current), 0);
    open_subscriber(fixture);
    assert_true(holds(fixture, "new", "one"));
}

static void wrong_bytes_are_refused(void **state) {
    struct fixture *fixture = *state;
    struct version version = *collection_held(fixture->publisher);
    assert_int_equal(collection_begin(fixture->subscriber, &version, NULL), ERR_OK);
    assert_false(want(fixture));
    struct manifest_ref ref = fixture->wanted[0];
    memset(fixture->memory, 1, sizeof fixture->memory);
    assert_int_equal(collection_take(fixture->subscriber, &ref, bytes_of(fixture->memory, ref.size)),
                     ERR_MISMATCH);
    assert_int_equal(collection_take(fixture->subscriber, &ref, bytes_of(fixture->memory, ref.size - 1)),
                     ERR_MISMATCH);
    assert_false(want(fixture)); /* it has not come */
    assert_memory_equal(fixture->wanted[0].digest, ref.digest, SHA256_SIZE);
}

static void a_changed_file_is_not_given(void **state) {
    struct fixture *fixture = *state;
    struct sha256 sha256;
    uint8_t digest[SHA256_SIZE];
    size_t size;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, BYTES("small"), digest);
    sha256_done(&sha256);
    assert_int_equal(collection_give(fixture->publisher, digest, fixture->memory, &size), ERR_OK);
    assert_int_equal(size, 5);
    write_file(in(fixture->source, "d/small"), BYTES("smull"));
    assert_int_equal(collection_give(fixture->publisher, digest, fixture->memory, &size), ERR_NOT_FOUND);
}

static void a_link_in_the_place_of_a_directory_is_not_followed(void **state) {
    struct fixture *fixture = *state;
    struct sha256 sha256;
    uint8_t digest[SHA256_SIZE];
    size_t size;
    char directory[PATH_SIZE + 8];
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, BYTES("small"), digest);
    sha256_done(&sha256);
    snprintf(directory, sizeof directory, "%s/d", fixture->source);
    assert_int_equal(rename(directory, in(fixture->source, "elsewhere")), 0);
    assert_int_equal(symlink("elsewhere", directory), 0);
    assert_int_equal(collection_give(fixture->publisher, digest, fixture->memory, &size), ERR_NOT_FOUND);
}

static void a_lost_file_of_the_old_version_is_fetched_again(void **state) {
    struct fixture *fixture = *state;
    struct collection_tree_stat stat;
    char large[PATH_SIZE + 64];
    write_file(in(fixture->source, "new"), BYTES("one"));
    update(fixture, &stat);
    snprintf(large, sizeof large, "%s/collections/papers/current/large", fixture->subscriber_data);
    assert_int_equal(unlink(large), 0);
    write_file(in(fixture->source, "new"), BYTES("two"));
    struct version version = publish(fixture).version;
    (void)collection_look(fixture->publisher, NULL);
    assert_int_equal(collection_begin(fixture->subscriber, &version, NULL), ERR_OK);
    assert_int_equal(fetch(fixture), 3);
    assert_int_equal(apply(fixture, &stat), ERR_NOT_FOUND);
    assert_int_equal(fetch(fixture), LARGE_SIZE);
    assert_int_equal(apply(fixture, &stat), ERR_OK);
    assert_true(holds(fixture, "new", "two"));
}

/* What came is not hashed again piece by piece: the file is, as a whole. */
static void a_damaged_pack_is_noticed_and_fetched_again(void **state) {
    struct fixture *fixture = *state;
    struct collection_tree_stat stat;
    struct version version = *collection_held(fixture->publisher);
    char pack[PATH_SIZE + 64];
    assert_int_equal(collection_begin(fixture->subscriber, &version, NULL), ERR_OK);
    assert_int_equal(fetch(fixture), LARGE_SIZE + 5);
    snprintf(pack, sizeof pack, "%s/collections/papers/staging/pack", fixture->subscriber_data);
    int file = open(pack, O_WRONLY);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, "damage", 6, LARGE_SIZE / 2), 6);
    close(file);
    assert_int_equal(apply(fixture, &stat), ERR_NOT_FOUND);
    assert_in_range(fetch(fixture), 1, 2 * CHUNKER_SIZE_MAX);
    assert_int_equal(apply(fixture, &stat), ERR_OK);
    assert_true(holds(fixture, "d/small", "small"));
}

static void chunks_are_numbered_in_the_order_of_the_manifest(void **state) {
    struct fixture *fixture = *state;
    struct version version = *collection_held(fixture->publisher);
    assert_int_equal(collection_begin(fixture->subscriber, &version, NULL), ERR_OK);
    while (!want(fixture)) {
        for (size_t i = 0; i < fixture->wanted_count; i++) {
            take(fixture, &fixture->wanted[i]);
        }
    }
    size_t all = fixture->wanted_count;
    for (size_t i = 0; i < all; i++) {
        assert_int_equal(fixture->places[i], i);
    }
    take(fixture, &fixture->wanted[0]);
    take(fixture, &fixture->wanted[2]);
    assert_true(want(fixture));
    assert_int_equal(fixture->wanted_count, all - 2);
    assert_int_equal(fixture->places[0], 1); /* the others keep their numbers */
    assert_int_equal(fixture->places[1], 3);
    assert_false(collection_lists(fixture->subscriber, fixture->wanted[0].digest));
    assert_true(collection_lists(fixture->publisher, fixture->wanted[0].digest));
    assert_true(collection_stages(fixture->subscriber, version.root.digest));
    assert_false(collection_stages(fixture->publisher, version.root.digest));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_version_comes_and_the_next_costs_what_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_new_is_no_version, setup, teardown),
        cmocka_unit_test_setup_teardown(publishing_mends_a_manifest_of_zeros, setup, teardown),
        cmocka_unit_test_setup_teardown(what_came_survives_a_crash, setup, teardown),
        cmocka_unit_test_setup_teardown(the_link_of_readers_is_mended, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_bytes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_changed_file_is_not_given, setup, teardown),
        cmocka_unit_test_setup_teardown(a_link_in_the_place_of_a_directory_is_not_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_file_of_the_old_version_is_fetched_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_pack_is_noticed_and_fetched_again, setup, teardown),
        cmocka_unit_test_setup_teardown(chunks_are_numbered_in_the_order_of_the_manifest, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
