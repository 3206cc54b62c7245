#include "run/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define CONFINE_IS_SANITIZED 1
#endif
#endif
#ifndef CONFINE_IS_SANITIZED
#define CONFINE_IS_SANITIZED 0
#endif

void confine_add_written(struct confine *confine, const char *path) {
    if (confine->written_count < CONFINE_PLACES_MAX) {
        confine->written[confine->written_count++] = path;
    }
}

void confine_add_read(struct confine *confine, const char *path) {
    if (confine->read_count < CONFINE_PLACES_MAX) {
        confine->read[confine->read_count++] = path;
    }
}

static enum err confine_fail(const char *what, int number, struct err_detail *detail) {
    enum err err = number == ENOMEM ? ERR_MEMORY : ERR_IO;
    return err_set(detail, err, "cannot confine the process: %s: %s (node.confine = no does without)", what,
                   strerror(number));
}

/* ---- files ---- */

/*
 * As linux/landlock.h of newer kernels has them: the headers of the machine that builds may be older than the
 * kernel that runs it.
 */
struct landlock_rules {
    uint64_t files;
    uint64_t net;
    uint64_t scopes;
};

struct landlock_place {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

enum {
    LANDLOCK_VERSION = 1, /* flag: which version is it? */
    LANDLOCK_BENEATH = 1, /* a rule for a directory and all below it */
    LANDLOCK_EXECUTE = 1 << 0,
    LANDLOCK_WRITE_FILE = 1 << 1,
    LANDLOCK_READ_FILE = 1 << 2,
    LANDLOCK_READ_DIRECTORY = 1 << 3,
    LANDLOCK_CHANGES = 0x1ff << 4, /* removing and making entries of all kinds */
    LANDLOCK_REFER = 1 << 13,      /* from one directory into another; version 2 */
    LANDLOCK_TRUNCATE = 1 << 14,   /* version 3 */
    LANDLOCK_SCOPE_ALL = 3,        /* no signals and no abstract sockets to processes outside; version 6 */
    LANDLOCK_READING = LANDLOCK_READ_FILE | LANDLOCK_READ_DIRECTORY,
    LANDLOCK_WRITING = LANDLOCK_WRITE_FILE | LANDLOCK_CHANGES | LANDLOCK_REFER | LANDLOCK_TRUNCATE,
    LANDLOCK_OF_FILES = LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE, /* not of directories */
};

/* What the C library, OpenSSL, c-ares and RocksDB read. */
static const char *const confine_read_always[] = {
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/localtime",
    "/etc/networks",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/svc.conf",
    "/etc/ld.so.cache",
    "/etc/pki",
    "/lib",
    "/lib64",
    "/proc/self",
    "/proc/meminfo",
    "/proc/sys/vm",
    "/run/systemd/resolve",
    "/sys/dev/block",
    "/sys/block",
    "/sys/devices",
    "/usr/lib",
    "/usr/share",
    "/usr/local/lib",
    "/dev/urandom",
    "/dev/random",
    "/dev/null",
    "/dev/zero",
    "/sys/fs/cgroup",
    "/proc/cpuinfo",
};

static enum err landlock_allow(int rules, const char *path, uint64_t allowed, struct err_detail *detail) {
    struct stat status;
    int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0) {
        bool is_nothing = errno == ENOENT || errno == ENOTDIR || errno == EACCES; /* nothing to be allowed */
        return is_nothing ? ERR_OK : confine_fail(path, errno, detail);
    }
    bool is_directory = fstat(place, &status) == 0 && S_ISDIR(status.st_mode);
    struct landlock_place rule = {
        .allowed = is_directory ? allowed : allowed & LANDLOCK_OF_FILES,
        .parent = place,
    };
    long failed =
        rule.allowed == 0 ? 0 : syscall(SYS_landlock_add_rule, rules, LANDLOCK_BENEATH, &rule, UINT32_C(0));
    int number = errno;
    close(place);
    return failed == 0 ? ERR_OK : confine_fail(path, number, detail);
}

static enum err landlock_allow_all(int rules, const struct confine *confine, uint64_t handled,
                                   struct err_detail *detail) {
    enum err err = landlock_allow(rules, "/dev/null", handled & LANDLOCK_OF_FILES, detail);
    for (size_t i = 0; err == ERR_OK && i < confine->written_count; i++) {
        err = landlock_allow(rules, confine->written[i], handled & (LANDLOCK_READING | LANDLOCK_WRITING),
                             detail);
    }
    for (size_t i = 0; err == ERR_OK && i < confine->read_count; i++) {
        err = landlock_allow(rules, confine->read[i], handled & LANDLOCK_READING, detail);
    }
    for (size_t i = 0; err == ERR_OK && i < sizeof confine_read_always / sizeof confine_read_always[0]; i++) {
        err = landlock_allow(rules, confine_read_always[i], handled & LANDLOCK_READING, detail);
    }
    return err;
}

/* The first version forbids every rename from one directory into another, which a store cannot do without. */
static enum err confine_files(const struct confine *confine, enum confine_files *ret_files,
                              struct err_detail *detail) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_VERSION);
    if (version < 2) {
        *ret_files = CONFINE_FILES_ALL;
        return ERR_OK;
    }
    uint64_t handled = LANDLOCK_EXECUTE | LANDLOCK_WRITING | (confine->is_strict ? LANDLOCK_READING : 0);
    handled &= version < 3 ? ~(uint64_t)LANDLOCK_TRUNCATE : UINT64_MAX;
    handled &= CONFINE_IS_SANITIZED ? ~(uint64_t)LANDLOCK_EXECUTE : UINT64_MAX;
    struct landlock_rules attributes = {.files = handled, .scopes = version < 6 ? 0 : LANDLOCK_SCOPE_ALL};
    size_t size = version < 6 ? sizeof attributes.files : sizeof attributes;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, UINT32_C(0));
    if (rules < 0) {
        return confine_fail("Landlock", errno, detail);
    }
    enum err err = landlock_allow_all(rules, confine, handled, detail);
    if (err == ERR_OK && syscall(SYS_landlock_restrict_self, rules, UINT32_C(0)) != 0) {
        err = confine_fail("Landlock", errno, detail);
    }
    close(rules);
    if (err == ERR_OK) {
        *ret_files = confine->is_strict ? CONFINE_FILES_STRICT : CONFINE_FILES_WRITES;
    }
    return err;
}

/* ---- system calls ---- */

/* What no part of a node does, and no library of it. */
static const int confine_refused[] = {
    SCMP_SYS(acct),
    SCMP_SYS(add_key),
    SCMP_SYS(bpf),
    SCMP_SYS(chroot),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(clock_settime),
    SCMP_SYS(delete_module),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(finit_module),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fspick),
    SCMP_SYS(init_module),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(ioperm),
    SCMP_SYS(iopl),
    SCMP_SYS(kcmp),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(kexec_load),
    SCMP_SYS(keyctl),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
    SCMP_SYS(modify_ldt),
    SCMP_SYS(mount),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(move_mount),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(open_tree),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(personality),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(pivot_root),
    SCMP_SYS(process_madvise),
    SCMP_SYS(quotactl),
    SCMP_SYS(quotactl_fd),
    SCMP_SYS(reboot),
    SCMP_SYS(request_key),
    SCMP_SYS(setdomainname),
    SCMP_SYS(sethostname),
    SCMP_SYS(setns),
    SCMP_SYS(settimeofday),
    SCMP_SYS(swapoff),
    SCMP_SYS(swapon),
    SCMP_SYS(syslog),
    SCMP_SYS(umount2),
    SCMP_SYS(unshare),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(vhangup),
};

/* A sanitizer forks and traces for its report of leaks, and executes a program that finds names. */
static const int confine_refused_unless_sanitized[] = {
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(fork),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(ptrace),
    SCMP_SYS(vfork),
};

static const uint64_t confine_namespaces[] = {CLONE_NEWCGROUP, CLONE_NEWIPC,  CLONE_NEWNET, CLONE_NEWNS,
                                              CLONE_NEWPID,    CLONE_NEWUSER, CLONE_NEWUTS};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static int refuse_calls(scmp_filter_ctx filter, const int *calls, size_t count) {
    int failed = 0;
    for (size_t i = 0; failed == 0 && i < count; i++) {
        failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
        failed = failed == -EDOM ? 0 : failed; /* this architecture has no such call */
    }
    return failed;
}

/* Only IP, local sockets, and netlink, through which the C library learns of addresses. */
static int refuse_sockets(scmp_filter_ctx filter) {
    int failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                                  SCMP_A0(SCMP_CMP_GT, (uint64_t)AF_NETLINK, 0));
    for (uint64_t family = 0; failed == 0 && family < AF_NETLINK; family++) {
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6) {
            failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                                      SCMP_A0(SCMP_CMP_EQ, family, 0));
        }
    }
    return failed;
}

/*
 * Threads, and neither processes nor namespaces. The flags of clone3() lie in memory, where no filter sees
 * them: it is said not to exist, and the C library takes clone().
 */
static int refuse_clones(scmp_filter_ctx filter) {
    int failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    for (size_t i = 0; failed == 0 && i < COUNT_OF(confine_namespaces); i++) {
        uint64_t flag = confine_namespaces[i];
        failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
    }
    if (failed == 0 && !CONFINE_IS_SANITIZED) {
        failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, (uint64_t)CLONE_THREAD, UINT64_C(0)));
    }
    return failed;
}

/* Without the brake on speculation that older kernels couple with a filter: our code is no guest's. */
static int fill_filter(scmp_filter_ctx filter) {
    int failed = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
    failed = failed == 0 ? refuse_calls(filter, confine_refused, COUNT_OF(confine_refused)) : failed;
    if (failed == 0 && !CONFINE_IS_SANITIZED) {
        failed = refuse_calls(filter, confine_refused_unless_sanitized,
                              COUNT_OF(confine_refused_unless_sanitized));
    }
    failed = failed == 0 ? refuse_sockets(filter) : failed;
    failed = failed == 0 ? refuse_clones(filter) : failed;
    if (failed == 0) { /* of more speed only: older libraries and kernels need not know them */
        (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
        (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    }
    return failed;
}

/* ---- processes that only compute ---- */

/* Landlock without a single rule. What the kernel does not have is left out: seccomp refuses it anyway. */
static enum err confine_no_files(struct err_detail *detail) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_VERSION);
    if (version < 2 || CONFINE_IS_SANITIZED) {
        return ERR_OK;
    }
    uint64_t handled = LANDLOCK_EXECUTE | LANDLOCK_WRITING | LANDLOCK_READING;
    handled &= version < 3 ? ~(uint64_t)LANDLOCK_TRUNCATE : UINT64_MAX;
    struct landlock_rules attributes = {.files = handled, .scopes = version < 6 ? 0 : LANDLOCK_SCOPE_ALL};
    size_t size = version < 6 ? sizeof attributes.files : sizeof attributes;
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, UINT32_C(0));
    bool is_done = rules >= 0 && syscall(SYS_landlock_restrict_self, rules, UINT32_C(0)) == 0;
    int number = errno;
    if (rules >= 0) {
        close(rules);
    }
    return is_done ? ERR_OK : confine_fail("Landlock", number, detail);
}

/* Memory, waiting, ending; the clock is read without a call on most machines. */
static const int confine_computing[] = {
    SCMP_SYS(brk),          SCMP_SYS(clock_gettime),   SCMP_SYS(exit),
    SCMP_SYS(exit_group),   SCMP_SYS(futex),           SCMP_SYS(getpid),
    SCMP_SYS(gettid),       SCMP_SYS(madvise),         SCMP_SYS(mremap),
    SCMP_SYS(munmap),       SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(sched_yield),
};

/* The calls with conditions: memory that is of no file and cannot be executed; signals to itself, for
 * abort(). */
static int allow_computing(scmp_filter_ctx filter) {
    int failed = 0;
    for (size_t i = 0; failed == 0 && i < COUNT_OF(confine_computing); i++) {
        failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, confine_computing[i], 0);
    }
    failed =
        failed != 0
            ? failed
            : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
                               SCMP_A2(SCMP_CMP_MASKED_EQ, (uint64_t)PROT_EXEC, UINT64_C(0)),
                               SCMP_A3(SCMP_CMP_MASKED_EQ, (uint64_t)MAP_ANONYMOUS, (uint64_t)MAP_ANONYMOUS));
    failed = failed != 0 ? failed
                         : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                                            SCMP_A2(SCMP_CMP_MASKED_EQ, (uint64_t)PROT_EXEC, UINT64_C(0)));
    return failed != 0 ? failed
                       : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                          SCMP_A0(SCMP_CMP_EQ, (uint64_t)getpid(), 0));
}

static enum err confine_to_computing(struct err_detail *detail) {
    if (CONFINE_IS_SANITIZED || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) {
        return ERR_OK;
    }
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (filter == NULL) {
        return ERR_MEMORY;
    }
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    int failed = allow_computing(filter);
    failed = failed == 0 ? seccomp_load(filter) : failed;
    seccomp_release(filter);
    return failed == 0 ? ERR_OK : confine_fail("seccomp", -failed, detail);
}

enum err confine_parser_host(struct err_detail *detail) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        (!CONFINE_IS_SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)) {
        return confine_fail("no new privileges", errno, detail);
    }
    return confine_no_files(detail);
}

enum err confine_parser(struct err_detail *detail) {
    enum err err = confine_parser_host(detail);
    if (err != ERR_OK || CONFINE_IS_SANITIZED) {
        return err;
    }
    static const struct {
        __rlimit_resource_t resource;
        rlim_t most;
    } limits[] = {{RLIMIT_AS, CONFINE_PARSER_MEMORY_MAX},
                  {RLIMIT_CORE, 0},
                  {RLIMIT_FSIZE, 0},
                  {RLIMIT_MEMLOCK, 0},
                  {RLIMIT_NOFILE, 0}};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct rlimit limit = {.rlim_cur = limits[i].most, .rlim_max = limits[i].most};
        if (setrlimit(limits[i].resource, &limit) != 0) {
            return confine_fail("limits", errno, detail);
        }
    }
    if (close_range(0, ~0U, 0) != 0) {
        return confine_fail("descriptors", errno, detail);
    }
    return confine_to_computing(detail);
}

/* ---- the node ---- */

static enum err confine_calls(bool *ret_has_calls, struct err_detail *detail) {
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) {
        *ret_has_calls = false; /* a kernel without it */
        return ERR_OK;
    }
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL) {
        return ERR_MEMORY;
    }
    int failed = fill_filter(filter);
    failed = failed == 0 ? seccomp_load(filter) : failed;
    seccomp_release(filter);
    if (failed != 0) {
        return confine_fail("seccomp", -failed, detail);
    }
    *ret_has_calls = true;
    return ERR_OK;
}

enum err confine_process(const struct confine *confine, struct confine_state *ret_state,
                         struct err_detail *detail) {
    struct confine_state state = {0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return confine_fail("no new privileges", errno, detail);
    }
    state.has_no_new_privileges = true;
    if (!CONFINE_IS_SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return confine_fail("no core files", errno, detail);
    }
    enum err err = confine_files(confine, &state.files, detail);
    err = err == ERR_OK ? confine_calls(&state.has_calls, detail) : err;
    if (err == ERR_OK) {
        *ret_state = state;
    }
    return err;
}
