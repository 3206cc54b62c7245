/*
 * inject - makes one call of a running mnemon fail: an allocation, a call for a file, a thread, a socket.
 *
 * Loaded in front of the C library (LD_PRELOAD). A point is a kind of call and the chain of return addresses
 * inside the program that leads to it (allocations of a library in one such chain are one point). All points
 * that a process passes are counted in a table: a file that INJECT_TABLE names, mapped before anything is
 * confined. injector.py, which starts the process, reads the table and writes the order for a failure into
 * it, at any time.
 *
 * Allocations fail if the program asks for them itself, or has a library ask that is written in C and can say
 * that there was no memory. RocksDB and the C++ library cannot: for memory and threads that they do not get
 * they throw, and the process ends. Their files do fail.
 */
#undef _FILE_OFFSET_BITS /* here open() and open64() are two functions, as in the C library */
#undef _FORTIFY_SOURCE   /* and none of them has a second body */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

enum {
    FRAMES_MAX = 40,        /* of the program, in a chain */
    WALK_MAX = 120,         /* frames of everything */
    LIBRARY_FRAMES_MAX = 3, /* that tell calls inside of a library apart */
    POINTS_MAX = 1 << 15,   /* a power of two */
    MODULES_MAX = 128,
    NAME_SIZE = 24,
    LIBRARY_SIZE = 24,
    NUMBER_SHORT = 1000, /* instead of an errno: half of the bytes */
};

/* What a failure that stays extends to. injector.py has the same order. */
enum kind { MEMORY, MAP, OPEN, READ, WRITE, SYNC, NAME, SIZE, STAT, THREAD, SOCKET };

struct point {
    _Atomic uint64_t hash; /* 0: free */
    _Atomic uint64_t count;
    uint32_t kind;
    _Atomic uint32_t frames_count;
    char name[NAME_SIZE];        /* of the function */
    char library[LIBRARY_SIZE];  /* that called it; empty: the program itself */
    uint64_t frames[FRAMES_MAX]; /* offsets in the program; innermost first */
};

struct table {
    _Atomic uint64_t base;   /* where the program was loaded */
    _Atomic uint64_t target; /* hash of the point that fails; 0: none */
    _Atomic uint32_t nth;    /* its first, second … time from now */
    _Atomic uint32_t number; /* errno */
    _Atomic uint32_t stays;  /* all calls that the same trouble would meet fail from then on */
    _Atomic uint32_t fired;  /* how many have failed */
    _Atomic uint32_t lost;   /* points without room */
    uint32_t filler;
    struct point points[POINTS_MAX];
};

enum owner { OF_PROGRAM, OF_LIBC, OF_CXX, OF_INJECTOR, OF_OTHER };

struct module {
    uintptr_t start;
    uintptr_t end;
    enum owner owner;
    char name[LIBRARY_SIZE];
};

static struct table *table;
static struct module modules[MODULES_MAX];
static size_t modules_count;
static uintptr_t program_base;
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

/* ---- the chain ---- */

static enum owner owner_of_name(const char *base) {
    if (base[0] == '\0') {
        return OF_PROGRAM;
    }
    if (strncmp(base, "libc.so", 7) == 0 || strncmp(base, "ld-linux", 8) == 0 ||
        strncmp(base, "libasan", 7) == 0) {
        return OF_LIBC;
    }
    if (strncmp(base, "librocksdb", 10) == 0 || strncmp(base, "libstdc++", 9) == 0) {
        return OF_CXX;
    }
    return strstr(base, "inject") != NULL ? OF_INJECTOR : OF_OTHER;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    (void)context;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash == NULL ? info->dlpi_name : slash + 1;
    enum owner owner = owner_of_name(name);
    if (owner == OF_PROGRAM && modules_count > 0) {
        owner = OF_OTHER; /* the vDSO has no name either */
    }
    for (int i = 0; i < info->dlpi_phnum && modules_count < MODULES_MAX; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0) {
            uintptr_t start = info->dlpi_addr + header->p_vaddr;
            modules[modules_count] =
                (struct module){.start = start, .end = start + header->p_memsz, .owner = owner};
            strncpy(modules[modules_count++].name, name, LIBRARY_SIZE - 1);
        }
    }
    if (owner == OF_PROGRAM) {
        program_base = info->dlpi_addr;
    }
    return 0;
}

static const struct module *module_of(uintptr_t address) {
    static const struct module other = {.owner = OF_OTHER, .name = "?"}; /* loaded later */
    for (size_t i = 0; i < modules_count; i++) {
        if (address >= modules[i].start && address < modules[i].end) {
            return &modules[i];
        }
    }
    return &other;
}

struct walk {
    uint64_t frames[FRAMES_MAX]; /* of the program */
    uint64_t library[LIBRARY_FRAMES_MAX];
    size_t frames_count;
    size_t library_count;
    size_t walked_count;
    const struct module *caller; /* the first that is neither the injector nor the C library */
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *argument) {
    struct walk *walk = argument;
    uintptr_t address = _Unwind_GetIP(context);
    const struct module *module = module_of(address);
    enum owner owner = module->owner;
    if (walk->caller == NULL && owner != OF_LIBC && owner != OF_INJECTOR) {
        walk->caller = module;
    }
    if (owner == OF_PROGRAM && walk->frames_count < FRAMES_MAX) {
        walk->frames[walk->frames_count++] = address - program_base;
    } else if ((owner == OF_CXX || owner == OF_OTHER) && walk->frames_count == 0 &&
               walk->library_count < LIBRARY_FRAMES_MAX) {
        walk->library[walk->library_count++] = address & 0xfff; /* the rest is where it was loaded */
    }
    return ++walk->walked_count < WALK_MAX ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    return (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15) ^ (hash >> 29);
}

static uint64_t hash_of(const struct walk *walk, enum kind kind, const char *name) {
    uint64_t hash = mix(UINT64_C(1469598103934665603), (uint64_t)kind);
    for (const char *at = name; *at != '\0'; at++) {
        hash = mix(hash, (uint8_t)*at);
    }
    for (size_t i = 0; i < walk->library_count && kind != MEMORY; i++) {
        hash = mix(hash, walk->library[i]);
    }
    for (size_t i = 0; i < walk->frames_count; i++) {
        hash = mix(hash, walk->frames[i]);
    }
    return hash == 0 ? 1 : hash;
}

/* ---- the table ---- */

static void count_point(uint64_t hash, enum kind kind, const char *name, const struct walk *walk) {
    for (size_t i = 0, at = hash % POINTS_MAX; i < POINTS_MAX; i++, at = (at + 1) % POINTS_MAX) {
        struct point *point = &table->points[at];
        uint64_t free_hash = 0;
        if (atomic_compare_exchange_strong(&point->hash, &free_hash, hash)) {
            point->kind = kind;
            strncpy(point->name, name, NAME_SIZE - 1);
            memcpy(point->library, walk->caller == NULL ? "?" : walk->caller->name,
                   walk->caller == NULL ? 2 : LIBRARY_SIZE);
            memcpy(point->frames, walk->frames, walk->frames_count * sizeof walk->frames[0]);
            atomic_store(&point->frames_count, (uint32_t)walk->frames_count);
        } else if (free_hash != hash) {
            continue;
        }
        atomic_fetch_add(&point->count, 1);
        return;
    }
    atomic_fetch_add(&table->lost, 1);
}

/* Does the trouble that this errno stands for meet calls of that kind too? */
static bool extends_to(uint32_t number, enum kind kind) {
    switch (number) {
    case ENOMEM:
        return kind == MEMORY || kind == MAP;
    case ENOSPC:
    case EDQUOT:
        return kind == WRITE || kind == SIZE;
    case EMFILE:
        return kind == OPEN; /* who cannot connect waits: that is no answer to be looked at */
    case EIO:
        return kind == READ || kind == WRITE || kind == SYNC || kind == SIZE;
    case EAGAIN:
        return kind == THREAD;
    default:
        return false;
    }
}

/* 0: go on; else the errno to fail with. */
static int inject_by(enum kind kind, const char *name, const void *caller) {
    if (table == NULL || is_inside || (kind == MEMORY && module_of((uintptr_t)caller)->owner == OF_CXX)) {
        return 0;
    }
    int kept = errno;
    struct walk walk = {.frames_count = 0};
    is_inside = true;
    _Unwind_Backtrace(on_frame, &walk);
    is_inside = false;
    errno = kept;
    bool throws = walk.caller != NULL && walk.caller->owner == OF_CXX;
    if ((kind == MEMORY && (walk.frames_count == 0 || throws)) || (kind == THREAD && throws)) {
        return 0;
    }
    uint64_t hash = hash_of(&walk, kind, name);
    count_point(hash, kind, name, &walk);
    uint32_t number = atomic_load(&table->number);
    bool has_fired = atomic_load(&table->fired) > 0;
    bool fails = has_fired && atomic_load(&table->stays) != 0 && extends_to(number, kind);
    if (!fails && !has_fired && hash == atomic_load(&table->target)) {
        fails = atomic_fetch_sub(&table->nth, 1) == 1;
    }
    if (!fails) {
        return 0;
    }
    atomic_fetch_add(&table->fired, 1);
    return (int)number;
}

/* A macro because only the function that was called knows who called it. */
#define inject(kind, name) inject_by(kind, name, __builtin_return_address(0))

static void *next(const char *name) {
    bool was_inside = is_inside;
    is_inside = true;
    void *found = dlsym(RTLD_NEXT, name);
    is_inside = was_inside;
    return found;
}

/* The function behind this one, as a pointer of its type. */
#define REAL(name)                                     \
    static __typeof__(name) *real_##name;              \
    if (real_##name == NULL) {                         \
        real_##name = (__typeof__(name) *)next(#name); \
    }

/* Return `failed` if the call is to fail. */
#define FAIL(kind, name, failed)          \
    do {                                  \
        int number_ = inject(kind, name); \
        if (number_ != 0) {               \
            errno = number_;              \
            return failed;                \
        }                                 \
    } while (0)

__attribute__((constructor)) static void inject_start(void) {
    const char *path = getenv("INJECT_TABLE");
    int file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    dl_iterate_phdr(add_module, NULL);
    void *mapped = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) {
        table = mapped;
        atomic_store(&table->base, program_base);
    }
}

/* ---- memory ---- */

void *malloc(size_t size) {
    REAL(malloc)
    FAIL(MEMORY, "malloc", NULL);
    return real_malloc(size);
}

void *calloc(size_t count, size_t size) {
    REAL(calloc)
    FAIL(MEMORY, "calloc", NULL);
    return real_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    REAL(realloc)
    FAIL(MEMORY, "realloc", NULL);
    return real_realloc(memory, size);
}

void *reallocarray(void *memory, size_t count, size_t size) {
    REAL(reallocarray)
    FAIL(MEMORY, "reallocarray", NULL);
    return real_reallocarray(memory, count, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    REAL(aligned_alloc)
    FAIL(MEMORY, "aligned_alloc", NULL);
    return real_aligned_alloc(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    REAL(posix_memalign)
    int number = inject(MEMORY, "posix_memalign");
    return number != 0 ? number : real_posix_memalign(memory, alignment, size);
}

void *mmap64(void *address, size_t size, int protection, int flags, int file, off64_t offset) {
    REAL(mmap64)
    FAIL(MAP, "mmap", MAP_FAILED);
    return real_mmap64(address, size, protection, flags, file, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context) {
    REAL(pthread_create)
    int number = inject(THREAD, "pthread_create");
    return number != 0 ? number : real_pthread_create(thread, attributes, run, context);
}

/* ---- opening ---- */

static mode_t mode_of(int flags, va_list arguments) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

/* parameters: before the flags; passed: the same, as they go on. */
#define OPEN_FUNCTION(name, parameters, passed)                          \
    int name(EACH parameters, int flags, ...) {                          \
        REAL(name)                                                       \
        va_list arguments;                                               \
        va_start(arguments, flags);                                      \
        mode_t mode = mode_of(flags, arguments);                         \
        va_end(arguments);                                               \
        FAIL(OPEN, (flags & O_CREAT) != 0 ? "open-create" : "open", -1); \
        return real_##name(EACH passed, flags, mode);                    \
    }

#define EACH(...) __VA_ARGS__
OPEN_FUNCTION(open, (const char *path), (path))
OPEN_FUNCTION(open64, (const char *path), (path))
OPEN_FUNCTION(openat, (int directory, const char *path), (directory, path))
OPEN_FUNCTION(openat64, (int directory, const char *path), (directory, path))

FILE *fopen(const char *path, const char *mode) {
    REAL(fopen)
    FAIL(OPEN, "fopen", NULL);
    return real_fopen(path, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    REAL(fopen64)
    FAIL(OPEN, "fopen", NULL);
    return real_fopen64(path, mode);
}

FILE *fdopen(int file, const char *mode) {
    REAL(fdopen)
    FAIL(MEMORY, "fdopen", NULL);
    return real_fdopen(file, mode);
}

DIR *opendir(const char *path) {
    REAL(opendir)
    FAIL(OPEN, "opendir", NULL);
    return real_opendir(path);
}

DIR *fdopendir(int file) {
    REAL(fdopendir)
    FAIL(MEMORY, "fdopendir", NULL);
    return real_fdopendir(file);
}

int mkostemp64(char *path, int flags) {
    REAL(mkostemp64)
    FAIL(OPEN, "mkostemp", -1);
    return real_mkostemp64(path, flags);
}

int socket(int domain, int type, int protocol) {
    REAL(socket)
    FAIL(SOCKET, "socket", -1);
    return real_socket(domain, type, protocol);
}

int accept4(int server, struct sockaddr *restrict address, socklen_t *restrict size, int flags) {
    REAL(accept4)
    FAIL(SOCKET, "accept4", -1);
    return real_accept4(server, address, size, flags);
}

int eventfd(unsigned value, int flags) {
    REAL(eventfd)
    FAIL(SOCKET, "eventfd", -1);
    return real_eventfd(value, flags);
}

int epoll_create1(int flags);
int epoll_create1(int flags) {
    REAL(epoll_create1)
    FAIL(SOCKET, "epoll_create1", -1);
    return real_epoll_create1(flags);
}

int pipe2(int ends[2], int flags) {
    REAL(pipe2)
    FAIL(SOCKET, "pipe2", -1);
    return real_pipe2(ends, flags);
}

/* ---- reading and writing ---- */

/* Sockets and pipes have peers: other tests' matter. What is said about a failure is to be read. */
static bool is_file(int file) {
    struct stat status;
    bool was_inside = is_inside;
    int kept = errno;
    is_inside = true;
    bool is = table != NULL && file != STDERR_FILENO && fstat(file, &status) == 0 &&
              (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
    is_inside = was_inside;
    errno = kept;
    return is;
}

/* Let *size be what is to be read or written now; false: the call fails. */
static bool passes(enum kind kind, const char *name, int file, size_t *size) {
    int number = is_file(file) ? inject(kind, name) : 0;
    if (number == NUMBER_SHORT) {
        *size = *size > 1 ? *size / 2 : *size;
        return true;
    }
    errno = number != 0 ? number : errno;
    return number == 0;
}

ssize_t read(int file, void *out, size_t size) {
    REAL(read)
    return passes(READ, "read", file, &size) ? real_read(file, out, size) : -1;
}

ssize_t pread(int file, void *out, size_t size, off_t offset) {
    REAL(pread)
    return passes(READ, "pread", file, &size) ? real_pread(file, out, size, offset) : -1;
}

ssize_t pread64(int file, void *out, size_t size, off64_t offset) {
    REAL(pread64)
    return passes(READ, "pread", file, &size) ? real_pread64(file, out, size, offset) : -1;
}

ssize_t write(int file, const void *bytes, size_t size) {
    REAL(write)
    return passes(WRITE, "write", file, &size) ? real_write(file, bytes, size) : -1;
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
    REAL(pwrite)
    return passes(WRITE, "pwrite", file, &size) ? real_pwrite(file, bytes, size, offset) : -1;
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset) {
    REAL(pwrite64)
    return passes(WRITE, "pwrite", file, &size) ? real_pwrite64(file, bytes, size, offset) : -1;
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
    REAL(pwritev64)
    size_t first = parts[0].iov_len;
    if (!passes(WRITE, "pwritev", file, &first)) {
        return -1;
    }
    struct iovec part = {parts[0].iov_base, first};
    return first < parts[0].iov_len ? real_pwritev64(file, &part, 1, offset)
                                    : real_pwritev64(file, parts, count, offset);
}

size_t fwrite(const void *restrict bytes, size_t size, size_t count, FILE *restrict file) {
    REAL(fwrite)
    int number = is_file(fileno(file)) ? inject(WRITE, "fwrite") : 0;
    if (number != 0 && number != NUMBER_SHORT) {
        file->_flags |= 0x20; /* _IO_ERR_SEEN: what ferror() looks at */
        errno = number;
        return 0;
    }
    return real_fwrite(bytes, size, count, file);
}

size_t fread(void *restrict out, size_t size, size_t count, FILE *restrict file) {
    REAL(fread)
    int number = is_file(fileno(file)) ? inject(READ, "fread") : 0;
    if (number != 0 && number != NUMBER_SHORT) {
        file->_flags |= 0x20;
        errno = number;
        return 0;
    }
    return real_fread(out, size, count, file);
}

char *fgets(char *restrict out, int size, FILE *restrict file) {
    REAL(fgets)
    int number = is_file(fileno(file)) ? inject(READ, "fgets") : 0;
    if (number != 0 && number != NUMBER_SHORT) {
        file->_flags |= 0x20;
        errno = number;
        return NULL;
    }
    return real_fgets(out, size, file);
}

int fflush(FILE *file) {
    REAL(fflush)
    int number = file != NULL && is_file(fileno(file)) ? inject(WRITE, "fflush") : 0;
    if (number != 0 && number != NUMBER_SHORT) {
        file->_flags |= 0x20;
        errno = number;
        return EOF;
    }
    return real_fflush(file);
}

int fclose(FILE *file) {
    REAL(fclose)
    int number = is_file(fileno(file)) ? inject(WRITE, "fclose") : 0;
    int result = real_fclose(file);
    if (number != 0 && number != NUMBER_SHORT) {
        errno = number;
        return EOF;
    }
    return result;
}

struct dirent64 *readdir64(DIR *directory) {
    REAL(readdir64)
    FAIL(READ, "readdir", NULL);
    return real_readdir64(directory);
}

/* ---- names, sizes and what is durable ---- */

#define CALL_1(kind, name, type) \
    int name(type a) {           \
        REAL(name)               \
        FAIL(kind, #name, -1);   \
        return real_##name(a);   \
    }

#define CALL_2(kind, name, type_a, type_b) \
    int name(type_a a, type_b b) {         \
        REAL(name)                         \
        FAIL(kind, #name, -1);             \
        return real_##name(a, b);          \
    }

#define CALL_3(kind, name, type_a, type_b, type_c) \
    int name(type_a a, type_b b, type_c c) {       \
        REAL(name)                                 \
        FAIL(kind, #name, -1);                     \
        return real_##name(a, b, c);               \
    }

#define CALL_4(kind, name, type_a, type_b, type_c, type_d) \
    int name(type_a a, type_b b, type_c c, type_d d) {     \
        REAL(name)                                         \
        FAIL(kind, #name, -1);                             \
        return real_##name(a, b, c, d);                    \
    }

CALL_1(SYNC, fsync, int)
CALL_1(SYNC, fdatasync, int)
CALL_1(SYNC, syncfs, int)
CALL_2(NAME, rename, const char *, const char *)
CALL_4(NAME, renameat, int, const char *, int, const char *)
CALL_2(NAME, link, const char *, const char *)
CALL_3(NAME, symlinkat, const char *, int, const char *)
CALL_1(NAME, unlink, const char *)
CALL_3(NAME, unlinkat, int, const char *, int)
CALL_1(NAME, rmdir, const char *)
CALL_2(NAME, mkdir, const char *, mode_t)
CALL_3(NAME, mkdirat, int, const char *, mode_t)
CALL_2(NAME, flock, int, int)
CALL_2(SIZE, ftruncate, int, off_t)
CALL_2(SIZE, ftruncate64, int, off64_t)
CALL_4(SIZE, fallocate, int, int, off_t, off_t)
CALL_4(SIZE, fallocate64, int, int, off64_t, off64_t)
CALL_2(STAT, stat64, const char *, struct stat64 *)
CALL_2(STAT, lstat64, const char *, struct stat64 *)
CALL_2(STAT, fstat64, int, struct stat64 *)
CALL_4(STAT, fstatat64, int, const char *, struct stat64 *, int)
CALL_2(STAT, statvfs64, const char *, struct statvfs64 *)
CALL_2(STAT, fstatvfs64, int, struct statvfs64 *)
CALL_2(STAT, stat, const char *, struct stat *)
CALL_2(STAT, fstat, int, struct stat *)

int linkat(int a, const char *from, int b, const char *to, int flags) {
    REAL(linkat)
    FAIL(NAME, "linkat", -1);
    return real_linkat(a, from, b, to, flags);
}

int posix_fallocate64(int file, off64_t offset, off64_t size) {
    REAL(posix_fallocate64)
    int number = inject(SIZE, "posix_fallocate");
    return number != 0 ? number : real_posix_fallocate64(file, offset, size);
}
