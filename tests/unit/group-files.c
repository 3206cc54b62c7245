/* group_files: what people want of a group, and what the node knows, on real files: whole, damaged, missing.
 */
#include "node/group/group_files.h"

#include <sys/stat.h>

#include "base/whole_file.h"
#include "net/identity.h"
#include "scratch.h"
#include "unit.h"

static struct group_wish sample(void) {
    struct group_wish wish;
    memset(&wish, 0, sizeof wish);
    snprintf(wish.name, sizeof wish.name, "national.libraries_2-x");
    memset(wish.rules.founder, 7, PEER_KEY_SIZE);
    wish.rules.admission = GROUP_ADMISSION_INVITE;
    wish.rules.generator = TOPOLOGY_TREE;
    wish.rules.k = 3;
    wish.contact = address_ipv4(192, 0, 2, 1, 7070);
    snprintf(wish.token, sizeof wish.token, "abc234");
    for (int i = 0; i < 3; i++) {
        uint8_t key[PEER_KEY_SIZE];
        memset(key, i + 1, sizeof key);
        assert_int_equal(group_keys_list_add(i == 0 ? &wish.refused : &wish.approved, key), ERR_OK);
    }
    wish.neighbours_count = 1;
    wish.neighbours[0].address = address_ipv4(192, 0, 2, 9, 7071);
    memset(wish.neighbours[0].key, 9, PEER_KEY_SIZE);
    wish.is_leaving = true;
    return wish;
}

static void write_text(const char *directory, const char *file, const char *text) {
    char path[SCRATCH_PATH_SIZE];
    char groups[SCRATCH_PATH_SIZE];
    mkdir(scratch_path(directory, "groups", groups), 0700);
    scratch_path(groups, file, path);
    assert_int_equal(whole_file_replace(path, bytes_of_string(text), 0600, NULL), ERR_OK);
}

static void a_wish_comes_back_as_it_was(void **state) {
    const char *directory = *state;
    struct group_wish wish = sample();
    struct group_wish read;
    char names[4][GROUP_FILES_NAME_SIZE_MAX];
    memset(&read, 0xff, sizeof read);
    assert_int_equal(group_files_list(directory, names, 4), 0);
    assert_int_equal(group_files_write_wish(directory, &wish, NULL), ERR_OK);
    assert_int_equal(group_files_read_wish(directory, wish.name, &read, NULL), ERR_OK);
    assert_memory_equal(&read, &wish, sizeof wish);
    assert_int_equal(group_files_list(directory, names, 4), 1);
    assert_string_equal(names[0], wish.name);
}

static void only_groups_are_listed_in_order_and_within_bounds(void **state) {
    const char *directory = *state;
    char names[4][GROUP_FILES_NAME_SIZE_MAX];
    char path[SCRATCH_PATH_SIZE];
    write_text(directory, "b.group", "");
    write_text(directory, "a.group", "");
    write_text(directory, "a.state", "");
    write_text(directory, ".group", "");
    write_text(directory, "sp ace.group", "");
    write_text(directory, "tmp.group.1234", "");
    assert_int_equal(group_files_list(directory, names, 4), 2);
    assert_string_equal(names[0], "a");
    assert_string_equal(names[1], "b");
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "c%d.group", i);
        write_text(directory, path, "");
    }
    assert_int_equal(group_files_list(directory, names, 4), 4);
}

static void a_damaged_wish_is_named(void **state) {
    const char *directory = *state;
    static const char *const texts[] = {
        "",                                         /* of nobody */
        "founder = abc\n",                          /* no key */
        "contact = 192.0.2.1\n",                    /* without a port */
        "contact = example.org:7070\n",             /* a name */
        "contact = \"192.0.2.1:7070\"\nk = 0\n",    /* out of range */
        "contact = \"192.0.2.1:7070\"\nk = 9\n",    /* likewise */
        "contact = \"192.0.2.1:7070\"\nwhat = 1\n", /* unknown */
        "contact = \"192.0.2.1:7070\"\napproved = me\n",
        "neighbour = \"192.0.2.1:7070\"\n", /* without a key */
        "\xff\xfe",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct group_wish wish = {.is_leaving = true};
        struct err_detail detail = {0};
        write_text(directory, "a.group", texts[i]);
        assert_int_equal(group_files_read_wish(directory, "a", &wish, &detail), ERR_INVALID);
        assert_non_null(strstr(detail.text, "a.group"));
        assert_true(wish.is_leaving); /* untouched */
    }
    struct group_wish wish;
    assert_int_equal(group_files_read_wish(directory, "b", &wish, NULL), ERR_NOT_FOUND);
}

static void a_state_comes_back_or_counts_as_none(void **state) {
    const char *directory = *state;
    static struct group_state_file written;
    static struct group_state_file read;
    char path[SCRATCH_PATH_SIZE];
    char groups[SCRATCH_PATH_SIZE];
    struct buf bytes;
    written.rules = sample().rules;
    written.document_size = GROUP_FILES_DOCUMENT_SIZE_MAX;
    memset(written.document, 0x5a, sizeof written.document);
    assert_false(group_files_read_state(directory, "a", &read));
    assert_int_equal(group_files_write_state(directory, "a", &written, NULL), ERR_OK);
    assert_true(group_files_read_state(directory, "a", &read));
    assert_memory_equal(&read.rules, &written.rules, sizeof read.rules);
    assert_int_equal(read.document_size, written.document_size);
    assert_memory_equal(read.document, written.document, read.document_size);

    scratch_path(scratch_path(directory, "groups", groups), "a.state", path);
    buf_init(&bytes, 1 << 20);
    assert_int_equal(whole_file_read(path, &bytes, NULL), ERR_OK);
    for (size_t size = 0; size < bytes.size; size += size < 48 ? 1 : 4096) {
        assert_int_equal(whole_file_replace(path, bytes_of(bytes.data, size), 0600, NULL), ERR_OK);
        assert_false(group_files_read_state(directory, "a", &read));
    }
    bytes.data[0] ^= 1;
    assert_int_equal(whole_file_replace(path, buf_bytes(&bytes), 0600, NULL), ERR_OK);
    assert_false(group_files_read_state(directory, "a", &read));
    buf_done(&bytes);
}

static void what_was_left_is_removed(void **state) {
    const char *directory = *state;
    struct group_wish wish = sample();
    static struct group_state_file known;
    char names[4][GROUP_FILES_NAME_SIZE_MAX];
    assert_int_equal(group_files_write_wish(directory, &wish, NULL), ERR_OK);
    assert_int_equal(group_files_write_state(directory, wish.name, &known, NULL), ERR_OK);
    assert_int_equal(group_files_remove(directory, wish.name, NULL), ERR_OK);
    assert_int_equal(group_files_list(directory, names, 4), 0);
    assert_false(group_files_read_state(directory, wish.name, &known));
    assert_int_equal(group_files_remove(directory, wish.name, NULL), ERR_OK); /* gone is gone */
}

static void keys_are_there_once_and_bounded(void **state) {
    struct group_keys_list list = {0};
    struct group_keys_list empty = {0};
    uint8_t key[PEER_KEY_SIZE] = {0};
    (void)state;
    for (int i = 0; i < GROUP_FILES_KEYS_MAX; i++) {
        key[0] = (uint8_t)(i + 1);
        assert_int_equal(group_keys_list_add(&list, key), ERR_OK);
        assert_int_equal(group_keys_list_add(&list, key), ERR_EXISTS);
    }
    key[0] = 0xff;
    assert_int_equal(group_keys_list_add(&list, key), ERR_LIMIT);
    for (int i = GROUP_FILES_KEYS_MAX; i > 0; i--) {
        key[0] = (uint8_t)i;
        assert_true(group_keys_list_has(&list, key));
        group_keys_list_remove(&list, key);
        assert_false(group_keys_list_has(&list, key));
    }
    assert_memory_equal(&list, &empty, sizeof list); /* nothing is left behind what is used */
}

/* The same group has the same id on every node: a change of this breaks all groups. */
static void the_id_follows_from_founder_and_name(void **state) {
    struct sha256 sha256;
    uint8_t founder[PEER_KEY_SIZE];
    uint8_t id[GROUP_ID_SIZE];
    uint8_t other[GROUP_ID_SIZE];
    static const uint8_t expected[GROUP_ID_SIZE] = {0xc9, 0xfe, 0xe8, 0xe7, 0xb1, 0xfd, 0xc9, 0x0e,
                                                    0x0c, 0x5b, 0x72, 0x43, 0x86, 0x07, 0xc2, 0x1b};
    (void)state;
    memset(founder, 7, sizeof founder);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    group_files_id(BYTES("lib"), founder, &sha256, id);
    assert_memory_equal(id, expected, sizeof id);
    group_files_id(BYTES("lic"), founder, &sha256, other);
    assert_memory_not_equal(id, other, sizeof id);
    founder[0] ^= 1;
    group_files_id(BYTES("lib"), founder, &sha256, other);
    assert_memory_not_equal(id, other, sizeof id);
    sha256_done(&sha256);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wish_comes_back_as_it_was, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(only_groups_are_listed_in_order_and_within_bounds, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_damaged_wish_is_named, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_state_comes_back_or_counts_as_none, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(what_was_left_is_removed, scratch_make, scratch_remove),
        cmocka_unit_test(keys_are_there_once_and_bounded),
        cmocka_unit_test(the_id_follows_from_founder_and_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
