#include "sim/world/disk.h"

#include "unit.h"

enum { SEEDS_COUNT = 200, CONTENTS_SIZE_MAX = 8192 };

static const struct disk_dials kind = {0};
static const struct disk_dials loses_all = {
    .write_lost_ppm = 1000000, .write_torn_ppm = 0, .entry_lost_ppm = 1000000};
static const struct disk_dials tears_all = {.write_torn_ppm = 1000000};
static const struct disk_dials coin = {
    .write_lost_ppm = 500000, .write_torn_ppm = 500000, .entry_lost_ppm = 500000};

static uint32_t open_file(struct disk *disk, const char *name) {
    uint32_t handle;
    assert_int_equal(disk_open(disk, name, DISK_CREATE, &handle), ERR_OK);
    return handle;
}

/* A file with durable contents and a durable name. */
static uint32_t make_durable(struct disk *disk, const char *name, struct bytes contents) {
    uint32_t handle = open_file(disk, name);
    assert_int_equal(disk_write(disk, handle, 0, contents), ERR_OK);
    assert_int_equal(disk_sync(disk, handle), ERR_OK);
    assert_int_equal(disk_sync_directory(disk, ""), ERR_OK);
    return handle;
}

static bool exists(struct disk *disk, const char *name) {
    uint32_t handle;
    enum err err = disk_open(disk, name, 0, &handle);
    disk_close(disk, handle);
    return err == ERR_OK;
}

static struct bytes read_file(struct disk *disk, const char *name, uint8_t out[CONTENTS_SIZE_MAX]) {
    uint32_t handle;
    size_t size;
    assert_int_equal(disk_open(disk, name, 0, &handle), ERR_OK);
    assert_int_equal(disk_read(disk, handle, 0, out, CONTENTS_SIZE_MAX, &size), ERR_OK);
    disk_close(disk, handle);
    return bytes_of(out, size);
}

static void assert_contents(struct disk *disk, const char *name, struct bytes expected) {
    uint8_t memory[CONTENTS_SIZE_MAX];
    assert_bytes_equal(read_file(disk, name, memory), expected);
}

static void keeps_synced_bytes_and_loses_others(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &loses_all, 1);
    uint32_t handle = make_durable(&disk, "a", BYTES("durable"));
    assert_int_equal(disk_write(&disk, handle, 0, BYTES("DUR")), ERR_OK);
    assert_contents(&disk, "a", BYTES("DURable"));
    assert_int_equal(disk_crash(&disk), ERR_OK);
    assert_contents(&disk, "a", BYTES("durable"));
    disk_done(&disk);
}

static void tears_a_write_at_sectors_only(void **state) {
    (void)state;
    unsigned torn_count = 0;
    for (uint64_t seed = 0; seed < SEEDS_COUNT; seed++) {
        struct disk disk;
        disk_init(&disk, &tears_all, seed);
        uint8_t memory[4 * FILE_SECTOR_SIZE];
        memset(memory, 'o', sizeof memory);
        uint32_t handle = make_durable(&disk, "a", bytes_of(memory, sizeof memory));
        memset(memory, 'n', sizeof memory);
        assert_int_equal(disk_write(&disk, handle, 0, bytes_of(memory, sizeof memory)), ERR_OK);
        assert_int_equal(disk_crash(&disk), ERR_OK);
        uint8_t found[CONTENTS_SIZE_MAX];
        assert_int_equal(read_file(&disk, "a", found).size, sizeof memory);
        unsigned new_count = 0;
        for (unsigned i = 0; i < sizeof memory; i++) {
            assert_int_equal(found[i], found[i / FILE_SECTOR_SIZE * FILE_SECTOR_SIZE]);
            new_count += i % FILE_SECTOR_SIZE == 0 && found[i] == 'n';
        }
        torn_count += new_count > 0 && new_count < 4;
        disk_done(&disk);
    }
    assert_in_range(torn_count, SEEDS_COUNT / 2, SEEDS_COUNT); /* 7 of 8 expected */
}

static void may_keep_a_later_write_without_an_earlier_one(void **state) {
    (void)state;
    unsigned outcomes = 0; /* bit: first survived + 2 * second survived */
    for (uint64_t seed = 0; seed < SEEDS_COUNT; seed++) {
        struct disk disk;
        disk_init(&disk, &coin, seed);
        uint32_t handle = make_durable(&disk, "a", BYTES("--"));
        assert_int_equal(disk_write(&disk, handle, 0, BYTES("1")), ERR_OK);
        assert_int_equal(disk_write(&disk, handle, 1, BYTES("2")), ERR_OK);
        assert_int_equal(disk_crash(&disk), ERR_OK);
        uint8_t found[CONTENTS_SIZE_MAX];
        assert_int_equal(read_file(&disk, "a", found).size, 2);
        outcomes |= 1u << ((found[0] == '1') + 2 * (found[1] == '2'));
        disk_done(&disk);
    }
    assert_int_equal(outcomes, 15);
}

static void may_keep_the_length_of_a_lost_append_with_zeros(void **state) {
    (void)state;
    bool has_kept_length = false;
    bool has_lost_length = false;
    for (uint64_t seed = 0; seed < SEEDS_COUNT; seed++) {
        struct disk disk;
        disk_init(&disk, &loses_all, seed);
        uint32_t handle = make_durable(&disk, "a", BYTES("x"));
        assert_int_equal(disk_append(&disk, handle, BYTES("yz")), ERR_OK);
        assert_int_equal(disk_crash(&disk), ERR_OK);
        uint8_t found[CONTENTS_SIZE_MAX];
        struct bytes contents = read_file(&disk, "a", found);
        has_kept_length |= bytes_equal(contents, BYTES("x\0\0"));
        has_lost_length |= bytes_equal(contents, BYTES("x"));
        disk_done(&disk);
    }
    assert_true(has_kept_length && has_lost_length);
}

static void loses_an_unsynced_truncation(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &loses_all, 1);
    uint32_t handle = make_durable(&disk, "a", BYTES("long"));
    assert_int_equal(disk_truncate(&disk, handle, 1), ERR_OK);
    assert_contents(&disk, "a", BYTES("l"));
    assert_int_equal(disk_crash(&disk), ERR_OK);
    assert_contents(&disk, "a", BYTES("long"));
    disk_done(&disk);
}

static void loses_names_until_the_directory_is_synced(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &loses_all, 1);
    make_durable(&disk, "old", BYTES("1"));
    make_durable(&disk, "doomed", BYTES("2"));
    open_file(&disk, "created");
    assert_int_equal(disk_rename(&disk, "old", "new"), ERR_OK);
    assert_int_equal(disk_unlink(&disk, "doomed"), ERR_OK);
    assert_true(exists(&disk, "created") && exists(&disk, "new") && !exists(&disk, "doomed"));
    assert_int_equal(disk_sync_directory(&disk, "elsewhere"), ERR_OK);
    assert_int_equal(disk_crash(&disk), ERR_OK);
    assert_true(!exists(&disk, "created") && !exists(&disk, "new"));
    assert_contents(&disk, "old", BYTES("1"));
    assert_contents(&disk, "doomed", BYTES("2"));
    assert_int_equal(disk_rename(&disk, "old", "new"), ERR_OK);
    assert_int_equal(disk_sync_directory(&disk, ""), ERR_OK);
    assert_int_equal(disk_crash(&disk), ERR_OK);
    assert_true(!exists(&disk, "old"));
    assert_contents(&disk, "new", BYTES("1"));
    disk_done(&disk);
}

static void renames_over_a_file_all_or_nothing(void **state) {
    (void)state;
    unsigned replaced_count = 0;
    for (uint64_t seed = 0; seed < SEEDS_COUNT; seed++) {
        struct disk disk;
        disk_init(&disk, &coin, seed);
        make_durable(&disk, "a", BYTES("old"));
        make_durable(&disk, "b", BYTES("new"));
        assert_int_equal(disk_rename(&disk, "b", "a"), ERR_OK);
        assert_int_equal(disk_crash(&disk), ERR_OK);
        bool is_replaced = !exists(&disk, "b");
        assert_contents(&disk, "a", is_replaced ? BYTES("new") : BYTES("old"));
        replaced_count += is_replaced;
        disk_done(&disk);
    }
    assert_in_range(replaced_count, SEEDS_COUNT / 4, SEEDS_COUNT * 3 / 4);
}

static void keeps_an_unlinked_file_readable_while_open(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &kind, 1);
    uint32_t handle = make_durable(&disk, "a", BYTES("still here"));
    assert_int_equal(disk_unlink(&disk, "a"), ERR_OK);
    assert_int_equal(disk_sync_directory(&disk, ""), ERR_OK);
    uint8_t found[16];
    size_t size;
    assert_int_equal(disk_read(&disk, handle, 6, found, sizeof found, &size), ERR_OK);
    assert_bytes_equal(bytes_of(found, size), BYTES("here"));
    assert_int_equal(disk.used_size, 10);
    disk_close(&disk, handle);
    assert_int_equal(disk.used_size, 0);
    disk_done(&disk);
}

static void refuses_handles_from_before_a_crash(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &kind, 1);
    uint32_t before = make_durable(&disk, "a", BYTES("1"));
    assert_int_equal(disk_crash(&disk), ERR_OK);
    uint32_t after = open_file(&disk, "a");
    assert_int_equal(disk_write(&disk, before, 0, BYTES("2")), ERR_CLOSED);
    assert_int_equal(disk_write(&disk, after, 0, BYTES("2")), ERR_OK);
    disk_close(&disk, before);
    assert_int_equal(disk_sync(&disk, after), ERR_OK);
    disk_done(&disk);
}

static void says_when_it_is_full_and_changes_nothing(void **state) {
    (void)state;
    struct disk_dials small = {.capacity_size = 10};
    struct disk disk;
    disk_init(&disk, &small, 1);
    uint32_t handle = make_durable(&disk, "a", BYTES("12345678"));
    assert_int_equal(disk_append(&disk, handle, BYTES("90+")), ERR_NO_SPACE);
    assert_contents(&disk, "a", BYTES("12345678"));
    assert_int_equal(disk_append(&disk, handle, BYTES("90")), ERR_OK);
    assert_int_equal(disk_write(&disk, handle, 0, BYTES("overwriting fits")), ERR_NO_SPACE);
    assert_int_equal(disk_write(&disk, handle, 0, BYTES("over")), ERR_OK);
    assert_int_equal(disk_truncate(&disk, handle, 2), ERR_OK);
    assert_int_equal(disk_append(&disk, handle, BYTES("12345678")), ERR_OK);
    assert_int_equal(disk_truncate(&disk, handle, 0), ERR_OK);
    disk.is_full = true;
    assert_int_equal(disk_append(&disk, handle, BYTES("1")), ERR_NO_SPACE);
    disk.is_full = false;
    assert_int_equal(disk_append(&disk, handle, BYTES("1")), ERR_OK);
    disk_done(&disk);
}

static void fails_the_nth_changing_call_once(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &kind, 1);
    uint32_t handle = make_durable(&disk, "a", BYTES("0"));
    disk_fail_after(&disk, 2, ERR_IO);
    assert_int_equal(disk_write(&disk, handle, 0, BYTES("1")), ERR_OK);
    assert_int_equal(disk_write(&disk, handle, 0, BYTES("2")), ERR_IO);
    assert_int_equal(disk_write(&disk, handle, 1, BYTES("3")), ERR_OK);
    assert_contents(&disk, "a", BYTES("13"));
    assert_int_equal(disk.counters.failed_count, 1);
    disk_done(&disk);
}

static void fails_calls_as_often_as_the_dial_says(void **state) {
    (void)state;
    struct disk_dials dials = kind;
    struct disk disk;
    disk_init(&disk, &dials, 1);
    uint32_t handle = make_durable(&disk, "a", BYTES("0"));
    dials.error_ppm = 300000;
    unsigned failed_count = 0;
    for (unsigned i = 0; i < 1000; i++) {
        failed_count += disk_write(&disk, handle, 0, BYTES("1")) == ERR_IO;
    }
    assert_in_range(failed_count, 250, 350);
    disk_done(&disk);
}

static void rots_one_bit_in_chosen_sectors(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &kind, 1);
    uint8_t zeros[16 * FILE_SECTOR_SIZE] = {0};
    make_durable(&disk, "a", bytes_of(zeros, sizeof zeros));
    assert_int_equal(disk_rot(&disk, 0), 0);
    size_t flips_count = disk_rot(&disk, 500000);
    assert_in_range(flips_count, 1, 15);
    uint8_t found[CONTENTS_SIZE_MAX];
    struct bytes contents = read_file(&disk, "a", found);
    size_t bits_count = 0;
    for (size_t i = 0; i < contents.size; i++) {
        bits_count += (size_t)__builtin_popcount(contents.data[i]);
    }
    assert_int_equal(bits_count, flips_count);
    disk_done(&disk);
}

static void lists_one_directory_in_order(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &kind, 1);
    static const char *const names[] = {"v/0/b", "v/0/a", "v/1/c", "top", "v/0/c/d"};
    for (size_t i = 0; i < 5; i++) {
        open_file(&disk, names[i]);
    }
    uint32_t cursor = 0;
    const char *name;
    assert_true(disk_list(&disk, "v/0", &cursor, &name));
    assert_string_equal(name, "v/0/a");
    assert_true(disk_list(&disk, "v/0", &cursor, &name));
    assert_string_equal(name, "v/0/b");
    assert_false(disk_list(&disk, "v/0", &cursor, &name));
    disk_done(&disk);
}

static void opens_as_the_flags_say(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &kind, 1);
    uint32_t handle;
    assert_int_equal(disk_open(&disk, "a", 0, &handle), ERR_NOT_FOUND);
    make_durable(&disk, "a", BYTES("1"));
    assert_int_equal(disk_open(&disk, "a", DISK_CREATE | DISK_EXCLUSIVE, &handle), ERR_EXISTS);
    assert_int_equal(disk_open(&disk, "a", DISK_TRUNCATE, &handle), ERR_OK);
    assert_contents(&disk, "a", BYTES(""));
    assert_int_equal(disk_unlink(&disk, "b"), ERR_NOT_FOUND);
    assert_int_equal(disk_rename(&disk, "b", "c"), ERR_NOT_FOUND);
    disk_done(&disk);
}

static void keeps_unsynced_changes_within_a_limit(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &loses_all, 1);
    uint32_t handle = make_durable(&disk, "a", BYTES("0"));
    for (unsigned i = 0; i < 10 * FILE_CHANGES_MAX; i++) {
        assert_int_equal(disk_append(&disk, handle, BYTES("x")), ERR_OK);
        assert_in_range(disk.inodes[0].file.changes_count, 1, FILE_CHANGES_MAX);
    }
    for (unsigned i = 0; i < 2 * DISK_ENTRY_CHANGES_MAX; i++) {
        assert_int_equal(disk_rename(&disk, i % 2 == 0 ? "a" : "b", i % 2 == 0 ? "b" : "a"), ERR_OK);
        assert_in_range(disk.entry_changes_count, 1, DISK_ENTRY_CHANGES_MAX);
    }
    disk_done(&disk);
}

static void is_empty_after_it_was_wiped(void **state) {
    (void)state;
    struct disk disk;
    disk_init(&disk, &kind, 1);
    make_durable(&disk, "a", BYTES("1"));
    open_file(&disk, "b");
    disk_wipe(&disk);
    assert_true(!exists(&disk, "a") && !exists(&disk, "b"));
    make_durable(&disk, "a", BYTES("2"));
    assert_contents(&disk, "a", BYTES("2"));
    disk_done(&disk);
}

/* Random calls on the disk and on a plain array; a crash that loses nothing changes nothing. */
static void reads_what_was_written_last(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS_COUNT; seed++) {
        struct disk disk;
        disk_init(&disk, &kind, seed);
        struct prng prng;
        prng_init(&prng, seed);
        uint8_t model[CONTENTS_SIZE_MAX] = {0};
        size_t model_size = 0;
        uint32_t handle = make_durable(&disk, "a", BYTES(""));
        for (unsigned i = 0; i < 100; i++) {
            size_t offset = prng_below(&prng, CONTENTS_SIZE_MAX / 2);
            size_t size = prng_below(&prng, CONTENTS_SIZE_MAX / 2);
            uint64_t choice = prng_below(&prng, 10);
            if (choice < 6) {
                prng_fill(&prng, model + offset, size);
                assert_int_equal(disk_write(&disk, handle, offset, bytes_of(model + offset, size)), ERR_OK);
                model_size = offset + size > model_size ? offset + size : model_size;
            } else if (choice < 8) {
                if (offset < model_size) {
                    memset(model + offset, 0, model_size - offset);
                }
                assert_int_equal(disk_truncate(&disk, handle, offset), ERR_OK);
                model_size = offset;
            } else if (choice == 8) {
                assert_int_equal(disk_sync(&disk, handle), ERR_OK);
            } else {
                assert_int_equal(disk_crash(&disk), ERR_OK);
                handle = open_file(&disk, "a");
            }
            assert_contents(&disk, "a", bytes_of(model, model_size));
            assert_int_equal(disk.used_size, model_size);
        }
        disk_done(&disk);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_synced_bytes_and_loses_others),
        cmocka_unit_test(tears_a_write_at_sectors_only),
        cmocka_unit_test(may_keep_a_later_write_without_an_earlier_one),
        cmocka_unit_test(may_keep_the_length_of_a_lost_append_with_zeros),
        cmocka_unit_test(loses_an_unsynced_truncation),
        cmocka_unit_test(loses_names_until_the_directory_is_synced),
        cmocka_unit_test(renames_over_a_file_all_or_nothing),
        cmocka_unit_test(keeps_an_unlinked_file_readable_while_open),
        cmocka_unit_test(refuses_handles_from_before_a_crash),
        cmocka_unit_test(says_when_it_is_full_and_changes_nothing),
        cmocka_unit_test(fails_the_nth_changing_call_once),
        cmocka_unit_test(fails_calls_as_often_as_the_dial_says),
        cmocka_unit_test(rots_one_bit_in_chosen_sectors),
        cmocka_unit_test(lists_one_directory_in_order),
        cmocka_unit_test(opens_as_the_flags_say),
        cmocka_unit_test(keeps_unsynced_changes_within_a_limit),
        cmocka_unit_test(is_empty_after_it_was_wiped),
        cmocka_unit_test(reads_what_was_written_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
