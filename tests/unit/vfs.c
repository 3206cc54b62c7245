#include "store/disk/vfs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "scratch.h"
#include "unit.h"

struct fixture {
    char *root;
    struct vfs_posix posix;
    struct vfs *vfs;
};

static int make(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    void *root = NULL;
    if (fixture == NULL || scratch_make(&root) != 0) {
        return -1;
    }
    fixture->root = root;
    fixture->vfs = &fixture->posix.vfs;
    *state = fixture;
    return vfs_posix_init(&fixture->posix, fixture->root, NULL) == ERR_OK ? 0 : -1;
}

static int destroy(void **state) {
    struct fixture *fixture = *state;
    void *root = fixture->root;
    vfs_posix_done(&fixture->posix);
    free(fixture);
    return scratch_remove(&root);
}

static void write_file(struct vfs *vfs, const char *path, struct bytes bytes) {
    struct vfs_file file = {0};
    assert_int_equal(vfs_open(vfs, path, VFS_WRITE | VFS_CREATE, &file), ERR_OK);
    assert_int_equal(vfs_write(&file, 0, bytes), ERR_OK);
    vfs_close(&file);
}

static void assert_file(struct vfs *vfs, const char *path, struct bytes expected) {
    struct vfs_file file = {0};
    char text[256];
    size_t size = 0;
    assert_int_equal(vfs_open(vfs, path, 0, &file), ERR_OK);
    assert_int_equal(vfs_read(&file, 0, text, sizeof text, &size), ERR_OK);
    vfs_close(&file);
    assert_bytes_equal(bytes_of(text, size), expected);
}

/* ---- files ---- */

static void what_is_written_is_read_at_its_offset(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    char text[4];
    size_t size = 0;
    assert_int_equal(vfs_open(fixture->vfs, "a", VFS_WRITE | VFS_CREATE, &file), ERR_OK);
    assert_int_equal(vfs_write(&file, 0, BYTES("0123456789")), ERR_OK);
    assert_int_equal(vfs_write(&file, 4, BYTES("xy")), ERR_OK);
    assert_int_equal(vfs_sync(&file), ERR_OK);
    assert_int_equal(vfs_read(&file, 3, text, 4, &size), ERR_OK);
    assert_bytes_equal(bytes_of(text, size), BYTES("3xy6"));
    vfs_close(&file);
    assert_file(fixture->vfs, "a", BYTES("0123xy6789"));
}

static void reading_is_short_only_at_the_end(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    char text[8];
    size_t size = 99;
    write_file(fixture->vfs, "a", BYTES("01234"));
    assert_int_equal(vfs_open(fixture->vfs, "a", 0, &file), ERR_OK);
    assert_int_equal(vfs_read(&file, 3, text, sizeof text, &size), ERR_OK);
    assert_bytes_equal(bytes_of(text, size), BYTES("34"));
    assert_int_equal(vfs_read(&file, 5, text, sizeof text, &size), ERR_OK);
    assert_int_equal(size, 0);
    assert_int_equal(vfs_read(&file, 500, text, sizeof text, &size), ERR_OK);
    assert_int_equal(size, 0);
    vfs_close(&file);
}

static void a_gap_reads_as_zeros(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    assert_int_equal(vfs_open(fixture->vfs, "a", VFS_WRITE | VFS_CREATE, &file), ERR_OK);
    assert_int_equal(vfs_write(&file, 3, BYTES("x")), ERR_OK);
    vfs_close(&file);
    assert_file(fixture->vfs, "a", BYTES("\0\0\0x"));
}

static void truncate_cuts_and_extends(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    uint64_t size = 0;
    write_file(fixture->vfs, "a", BYTES("01234"));
    assert_int_equal(vfs_open(fixture->vfs, "a", VFS_WRITE, &file), ERR_OK);
    assert_int_equal(vfs_truncate(&file, 2), ERR_OK);
    assert_int_equal(vfs_size(&file, &size), ERR_OK);
    assert_int_equal(size, 2);
    assert_int_equal(vfs_truncate(&file, 4), ERR_OK);
    vfs_close(&file);
    assert_file(fixture->vfs, "a", BYTES("01\0\0"));
}

static void open_without_create_wants_an_existing_file(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {.vfs = NULL, .handle = 77};
    assert_int_equal(vfs_open(fixture->vfs, "a", 0, &file), ERR_NOT_FOUND);
    assert_int_equal(vfs_open(fixture->vfs, "a", VFS_WRITE, &file), ERR_NOT_FOUND);
    assert_int_equal(vfs_open(fixture->vfs, "no/a", VFS_WRITE | VFS_CREATE, &file), ERR_NOT_FOUND);
    assert_null(file.vfs);
    assert_int_equal(file.handle, 77);
}

static void exclusive_wants_a_new_file(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    unsigned flags = VFS_WRITE | VFS_CREATE | VFS_EXCLUSIVE;
    assert_int_equal(vfs_open(fixture->vfs, "a", flags, &file), ERR_OK);
    vfs_close(&file);
    assert_int_equal(vfs_open(fixture->vfs, "a", flags, &file), ERR_EXISTS);
}

static void opening_again_keeps_what_is_there(void **state) {
    struct fixture *fixture = *state;
    write_file(fixture->vfs, "a", BYTES("01234"));
    write_file(fixture->vfs, "a", BYTES("x"));
    assert_file(fixture->vfs, "a", BYTES("x1234"));
}

static void writing_a_file_opened_for_reading_fails(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    write_file(fixture->vfs, "a", BYTES("01234"));
    assert_int_equal(vfs_open(fixture->vfs, "a", 0, &file), ERR_OK);
    assert_int_not_equal(vfs_write(&file, 0, BYTES("x")), ERR_OK);
    assert_int_not_equal(vfs_truncate(&file, 0), ERR_OK);
    vfs_close(&file);
    assert_file(fixture->vfs, "a", BYTES("01234"));
}

static void a_closed_file_is_marked(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    assert_int_equal(vfs_open(fixture->vfs, "a", VFS_WRITE | VFS_CREATE, &file), ERR_OK);
    vfs_close(&file);
    assert_null(file.vfs);
}

/* ---- names ---- */

static void rename_replaces_its_target(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    assert_int_equal(vfs_make_directory(fixture->vfs, "d"), ERR_OK);
    write_file(fixture->vfs, "a", BYTES("new"));
    write_file(fixture->vfs, "d/b", BYTES("older"));
    assert_int_equal(vfs_rename(fixture->vfs, "a", "d/b"), ERR_OK);
    assert_int_equal(vfs_sync_directory(fixture->vfs, "d"), ERR_OK);
    assert_int_equal(vfs_sync_directory(fixture->vfs, ""), ERR_OK);
    assert_file(fixture->vfs, "d/b", BYTES("new"));
    assert_int_equal(vfs_open(fixture->vfs, "a", 0, &file), ERR_NOT_FOUND);
    assert_int_equal(vfs_rename(fixture->vfs, "a", "d/b"), ERR_NOT_FOUND);
}

static void unlinked_files_are_gone(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    write_file(fixture->vfs, "a", BYTES("x"));
    assert_int_equal(vfs_unlink(fixture->vfs, "a"), ERR_OK);
    assert_int_equal(vfs_unlink(fixture->vfs, "a"), ERR_NOT_FOUND);
    assert_int_equal(vfs_open(fixture->vfs, "a", 0, &file), ERR_NOT_FOUND);
}

static void directories_are_made_with_those_above(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(vfs_make_directory(fixture->vfs, "a/b/c"), ERR_OK);
    write_file(fixture->vfs, "a/b/c/file", BYTES("x"));
    assert_int_equal(vfs_make_directory(fixture->vfs, "a/b/c"), ERR_OK);
    assert_int_equal(vfs_make_directory(fixture->vfs, "a/b/d/"), ERR_OK);
    assert_int_equal(vfs_make_directory(fixture->vfs, "s"), ERR_OK); /* a name of one letter */
    assert_int_equal(vfs_make_directory(fixture->vfs, ""), ERR_OK);  /* the root itself */
    assert_file(fixture->vfs, "a/b/c/file", BYTES("x"));
}

static void a_file_is_no_directory(void **state) {
    struct fixture *fixture = *state;
    write_file(fixture->vfs, "a", BYTES("x"));
    assert_int_equal(vfs_make_directory(fixture->vfs, "a/b"), ERR_NOT_FOUND);
    assert_int_equal(vfs_sync_directory(fixture->vfs, "a"), ERR_NOT_FOUND);
}

static void a_path_that_is_too_long_is_a_limit(void **state) {
    struct fixture *fixture = *state;
    char path[6000];
    struct vfs_file file = {0};
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(vfs_make_directory(fixture->vfs, path), ERR_LIMIT);
    assert_int_equal(vfs_open(fixture->vfs, path, VFS_WRITE | VFS_CREATE, &file), ERR_LIMIT);
    path[300] = '\0'; /* longer than any name may be, short as a path */
    assert_int_equal(vfs_make_directory(fixture->vfs, path), ERR_LIMIT);
}

/* ---- directories ---- */

struct names {
    size_t count;
    char names[8][16];
};

static void collect(void *context, const char *name) {
    struct names *names = context;
    assert_true(names->count < 8);
    snprintf(names->names[names->count++], sizeof names->names[0], "%s", name);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

static void list_tells_every_name_once(void **state) {
    struct fixture *fixture = *state;
    struct names names = {0};
    assert_int_equal(vfs_make_directory(fixture->vfs, "d/sub"), ERR_OK);
    write_file(fixture->vfs, "d/b", BYTES("x"));
    write_file(fixture->vfs, "d/.hidden", BYTES("x"));
    assert_int_equal(vfs_list(fixture->vfs, "d", collect, &names), ERR_OK);
    qsort(names.names, names.count, sizeof names.names[0], compare_names);
    assert_int_equal(names.count, 3);
    assert_string_equal(names.names[0], ".hidden");
    assert_string_equal(names.names[1], "b");
    assert_string_equal(names.names[2], "sub");
}

static void list_of_the_root_and_of_nothing(void **state) {
    struct fixture *fixture = *state;
    struct names names = {0};
    assert_int_equal(vfs_list(fixture->vfs, "", collect, &names), ERR_OK);
    assert_int_equal(names.count, 0);
    assert_int_equal(vfs_list(fixture->vfs, "none", collect, &names), ERR_NOT_FOUND);
    write_file(fixture->vfs, "a", BYTES("x"));
    assert_int_equal(vfs_list(fixture->vfs, "a", collect, &names), ERR_NOT_FOUND);
    assert_int_equal(names.count, 0);
    assert_int_equal(vfs_list(fixture->vfs, "", collect, &names), ERR_OK);
    assert_int_equal(names.count, 1);
}

static void free_size_is_what_the_disk_has(void **state) {
    struct fixture *fixture = *state;
    uint64_t size = 0;
    assert_int_equal(vfs_free_size(fixture->vfs, "", &size), ERR_OK);
    assert_true(size > 0);
    size = 7;
    assert_int_equal(vfs_free_size(fixture->vfs, "none", &size), ERR_NOT_FOUND);
    assert_int_equal(size, 7);
}

/* ---- locks ---- */

/* What a process of its own gets when it tries to lock the file. */
static enum err lock_elsewhere(struct fixture *fixture) {
    pid_t child = fork();
    if (child == 0) {
        struct vfs_file file = {0};
        _exit(-vfs_lock(fixture->vfs, "lock", &file));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (enum err) - WEXITSTATUS(status);
}

static void a_lock_keeps_other_processes_out(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    assert_int_equal(vfs_lock(fixture->vfs, "lock", &file), ERR_OK);
    assert_int_equal(lock_elsewhere(fixture), ERR_BUSY);
    vfs_close(&file);
    assert_int_equal(lock_elsewhere(fixture), ERR_OK);
}

static void a_lock_keeps_this_process_out_too(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    struct vfs_file second = {.handle = 77};
    assert_int_equal(vfs_lock(fixture->vfs, "lock", &file), ERR_OK);
    assert_int_equal(vfs_lock(fixture->vfs, "lock", &second), ERR_BUSY);
    assert_int_equal(second.handle, 77);
    vfs_close(&file);
}

static void the_end_of_a_process_frees_its_lock(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    assert_int_equal(lock_elsewhere(fixture), ERR_OK); /* ends without closing */
    assert_int_equal(vfs_lock(fixture->vfs, "lock", &file), ERR_OK);
    vfs_close(&file);
}

static void a_lock_to_read_is_shared_with_readers_and_keeps_writers_out(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    struct vfs_file second = {0};
    struct vfs_file third = {.handle = 77};
    assert_int_equal(vfs_lock_to_read(fixture->vfs, "lock", &file), ERR_NOT_FOUND);
    assert_int_equal(vfs_lock(fixture->vfs, "lock", &file), ERR_OK);
    assert_int_equal(vfs_lock_to_read(fixture->vfs, "lock", &third), ERR_BUSY);
    vfs_close(&file);
    assert_int_equal(vfs_lock_to_read(fixture->vfs, "lock", &file), ERR_OK);
    assert_int_equal(vfs_lock_to_read(fixture->vfs, "lock", &second), ERR_OK);
    vfs_close(&file);
    assert_int_equal(vfs_lock(fixture->vfs, "lock", &third), ERR_BUSY);
    assert_int_equal(third.handle, 77);
    vfs_close(&second);
}

static void a_lock_in_no_directory_is_not_found(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    assert_int_equal(vfs_lock(fixture->vfs, "no/lock", &file), ERR_NOT_FOUND);
}

/* ---- roots ---- */

static void a_root_is_made_with_those_above(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    struct vfs_posix posix;
    assert_int_equal(vfs_posix_init(&posix, scratch_path(fixture->root, "x/y", path), NULL), ERR_OK);
    write_file(&posix.vfs, "a", BYTES("x"));
    vfs_posix_done(&posix);
    assert_int_equal(posix.root_fd, -1);
    assert_file(fixture->vfs, "x/y/a", BYTES("x"));
}

static void a_file_as_root_is_refused_with_its_name(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    struct err_detail detail = {0};
    struct vfs_posix posix = {.root_fd = 77};
    write_file(fixture->vfs, "a", BYTES("x"));
    assert_int_equal(vfs_posix_init(&posix, scratch_path(fixture->root, "a", path), &detail), ERR_NOT_FOUND);
    assert_int_equal(posix.root_fd, 77);
    assert_int_equal(detail.err, ERR_NOT_FOUND);
    assert_non_null(strstr(detail.text, path));
}

static void paths_stay_with_the_root_when_the_process_moves(void **state) {
    struct fixture *fixture = *state;
    char before[SCRATCH_PATH_SIZE];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir("/"), 0);
    write_file(fixture->vfs, "a", BYTES("x"));
    assert_int_equal(chdir(before), 0);
    assert_file(fixture->vfs, "a", BYTES("x"));
}

static void what_is_forbidden_is_permission(void **state) {
    struct fixture *fixture = *state;
    struct vfs_file file = {0};
    enum { NOBODY = 65534 };
    uid_t user = geteuid();
    assert_int_equal(vfs_make_directory(fixture->vfs, "d"), ERR_OK);
    assert_int_equal(fchmod(fixture->posix.root_fd, 0755), 0);
    assert_int_equal(fchmodat(fixture->posix.root_fd, "d", 0555, 0), 0);
    assert_int_equal(seteuid(user == 0 ? NOBODY : user), 0); /* root may do anything */
    enum err open_err = vfs_open(fixture->vfs, "d/a", VFS_WRITE | VFS_CREATE, &file);
    enum err make_err = vfs_make_directory(fixture->vfs, "d/e");
    assert_int_equal(seteuid(user), 0);
    assert_int_equal(open_err, ERR_PERMISSION);
    assert_int_equal(make_err, ERR_PERMISSION);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_at_its_offset),
        TEST(reading_is_short_only_at_the_end),
        TEST(a_gap_reads_as_zeros),
        TEST(truncate_cuts_and_extends),
        TEST(open_without_create_wants_an_existing_file),
        TEST(exclusive_wants_a_new_file),
        TEST(opening_again_keeps_what_is_there),
        TEST(writing_a_file_opened_for_reading_fails),
        TEST(a_closed_file_is_marked),
        TEST(rename_replaces_its_target),
        TEST(unlinked_files_are_gone),
        TEST(directories_are_made_with_those_above),
        TEST(a_file_is_no_directory),
        TEST(a_path_that_is_too_long_is_a_limit),
        TEST(list_tells_every_name_once),
        TEST(list_of_the_root_and_of_nothing),
        TEST(free_size_is_what_the_disk_has),
        TEST(a_lock_keeps_other_processes_out),
        TEST(a_lock_keeps_this_process_out_too),
        TEST(the_end_of_a_process_frees_its_lock),
        TEST(a_lock_to_read_is_shared_with_readers_and_keeps_writers_out),
        TEST(a_lock_in_no_directory_is_not_found),
        TEST(a_root_is_made_with_those_above),
        TEST(a_file_as_root_is_refused_with_its_name),
        TEST(paths_stay_with_the_root_when_the_process_moves),
        TEST(what_is_forbidden_is_permission),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
