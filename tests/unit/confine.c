/* confine: a child gives up what a node gives up, then tries it. */
#include "run/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"
#include "unit.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

enum { SKIPPED = 99 };

/* A directory that is given, one that is not, and a file in each. */
struct two {
    char inside[SCRATCH_PATH_SIZE];
    char outside[SCRATCH_PATH_SIZE];
    char inside_file[SCRATCH_PATH_SIZE];
    char outside_file[SCRATCH_PATH_SIZE];
};

static void make_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, "x", 1) == 1);
    close(fd);
}

static void two_make(struct two *two, const char *directory) {
    assert_int_equal(mkdir(scratch_path(directory, "inside", two->inside), 0700), 0);
    assert_int_equal(mkdir(scratch_path(directory, "outside", two->outside), 0700), 0);
    make_file(scratch_path(two->inside, "file", two->inside_file));
    make_file(scratch_path(two->outside, "file", two->outside_file));
}

/* Which line of a child failed is its status: 0 none, and it does not return into the tests of its parent. */
#define EXPECT(condition)             \
    do {                              \
        if (!(condition)) {           \
            _exit(__LINE__ % 90 + 1); \
        }                             \
    } while (0)

static int run_child(void (*work)(const struct two *two), const struct two *two) {
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        work(two);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static struct confine_state confined(const struct two *two, bool is_strict) {
    static struct confine confine; /* of a child, which does this once */
    struct confine_state state;
    confine.is_strict = is_strict;
    confine_add_written(&confine, two->inside);
    confine_add_written(&confine, "/there/is/no/such/place");
    EXPECT(confine_process(&confine, &state, NULL) == ERR_OK);
    EXPECT(state.has_no_new_privileges);
    return state;
}

static bool is_refused(long result) {
    return result == -1 && errno == EPERM;
}

static void *no_work(void *context) {
    return context;
}

static void try_calls(const struct two *two) {
    char *const arguments[] = {(char *)"true", NULL};
    pthread_t thread;
    if (!confined(two, false).has_calls) {
        _exit(SKIPPED);
    }
    EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
    if (!IS_SANITIZED) {
        EXPECT(is_refused(execve("/bin/true", arguments, arguments + 1)));
        EXPECT(is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)));
        EXPECT(is_refused(fork()));
        EXPECT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
    }
    EXPECT(is_refused(unshare(CLONE_NEWUSER)));
    EXPECT(is_refused(syscall(SYS_clone, CLONE_NEWUSER | CLONE_THREAD, NULL, NULL, NULL, 0)));
    EXPECT(is_refused(syscall(SYS_bpf, 0, NULL, 0)));
    EXPECT(is_refused(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0)));
    EXPECT(is_refused(syscall(SYS_io_uring_setup, 1, NULL)));
    EXPECT(is_refused(syscall(SYS_userfaultfd, 0)));
    EXPECT(is_refused(syscall(SYS_keyctl, 0, 0)));
    EXPECT(is_refused(syscall(SYS_mount, "a", "/", "tmpfs", 0, NULL)));
    EXPECT(is_refused(chroot("/")));
    EXPECT(is_refused(socket(AF_PACKET, SOCK_RAW, 0)));
    EXPECT(is_refused(socket(AF_ALG, SOCK_SEQPACKET, 0)));
    EXPECT(socket(AF_INET, SOCK_STREAM, 0) >= 0);
    EXPECT(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    EXPECT(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
    EXPECT(pthread_create(&thread, NULL, no_work, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static bool is_denied(long result) {
    return result == -1 && errno == EACCES;
}

/* In both kinds: what a node does inside it can go on doing; outside nothing changes. */
static void try_writes(const struct two *two) {
    char other[SCRATCH_PATH_SIZE];
    char below[SCRATCH_PATH_SIZE];
    EXPECT(is_denied(open(two->outside_file, O_WRONLY | O_CLOEXEC)));
    EXPECT(is_denied(truncate(two->outside_file, 0)));
    EXPECT(is_denied(open(scratch_path(two->outside, "new", other), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)));
    EXPECT(is_denied(unlink(two->outside_file)));
    EXPECT(is_denied(mkdir(scratch_path(two->outside, "below", other), 0700)));
    EXPECT(rename(two->inside_file, scratch_path(two->outside, "new", other)) == -1);
    EXPECT(mkdir(scratch_path(two->inside, "below", below), 0700) == 0);
    EXPECT(rename(two->inside_file, scratch_path(below, "file", other)) == 0);
    EXPECT(link(other, two->inside_file) == 0 && truncate(other, 0) == 0 && unlink(other) == 0);
    EXPECT(open(two->inside, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) >= 0);
    EXPECT(open("/dev/null", O_WRONLY | O_CLOEXEC) >= 0);
    EXPECT(rmdir(below) == 0);
}

static void try_files(const struct two *two) {
    if (confined(two, false).files != CONFINE_FILES_WRITES) {
        _exit(SKIPPED);
    }
    try_writes(two);
    EXPECT(open(two->outside_file, O_RDONLY | O_CLOEXEC) >= 0);
}

static void try_strict(const struct two *two) {
    if (confined(two, true).files != CONFINE_FILES_STRICT) {
        _exit(SKIPPED);
    }
    try_writes(two);
    EXPECT(is_denied(open(two->outside_file, O_RDONLY | O_CLOEXEC)));
    EXPECT(is_denied(open(two->outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    EXPECT(is_denied(open("/etc/passwd", O_RDONLY | O_CLOEXEC)));
    EXPECT(open(two->inside_file, O_RDONLY | O_CLOEXEC) >= 0);
    EXPECT(open("/proc/self/statm", O_RDONLY | O_CLOEXEC) >= 0);
    EXPECT(open("/dev/urandom", O_RDONLY | O_CLOEXEC) >= 0);
}

static void check_child(const char *directory, void (*work)(const struct two *two)) {
    struct two two;
    two_make(&two, directory);
    int status = run_child(work, &two);
    if (status == SKIPPED) {
        skip(); /* not with this kernel */
    }
    assert_int_equal(status, 0);
}

static void test_calls_are_refused(void **state) {
    check_child(*state, try_calls);
}

static void test_nothing_is_written_outside(void **state) {
    check_child(*state, try_files);
}

static void test_strictly_nothing_is_read_outside(void **state) {
    check_child(*state, try_strict);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls_are_refused, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(test_nothing_is_written_outside, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(test_strictly_nothing_is_read_outside, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
