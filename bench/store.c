/*
 * store - a volume against one file per document in 256 x 256 directories, on the same disk in the same run.
 *
 *      bench-store [documents (20000)] [section …]
 *
 * Documents come from corpus.h and lie in memory before anything is timed. Everything happens in a directory
 * that is made below $TMPDIR, or else below the current one, and removed at the end; /tmp in memory would
 * measure nothing. "Durable" means the same on both sides: when the call returns, the document survives the
 * end of the machine. A file needs fdatasync() for its bytes and fsync() of its directory for its name; on
 * ext4 the first happens to write the name too, so files are also measured without the second. Runs against
 * the clock stop after SECONDS_MAX: rates are what counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zdict.h>
#include <zlib.h>
#include <zstd.h>

#include "base/hex.h"
#include "bench.h"
#include "corpus.h"
#include "store/volume.h"

enum {
    SEED = 1,
    DOCUMENTS_COUNT = 20000,
    PATH_SIZE_MAX = 512,
    THREADS_MAX = 256,
    LARGE_COUNT = 96,
    LARGE_SIZE = 8 << 20,
    TRAINING_COUNT = 1000,
    DICTIONARY_SIZE = 112 << 10,
    TABLE_COUNT = 3000,
    DETECTION_ROUNDS = 5,
};
static const double SECONDS_MAX = 2;
static const int64_t TIME_US = 1700000000000000;

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-store: %s failed: %s\n", what, strerror(errno));
        exit(1);
    }
}

/* ---- documents in memory ---- */

struct set {
    struct bytes *bodies;
    bool *are_pages;
    size_t count;
    uint64_t size;
};

static struct set set_new(size_t count) {
    struct set set = {.bodies = calloc(count, sizeof *set.bodies), .are_pages = calloc(count, 1)};
    must(set.bodies != NULL && set.are_pages != NULL, "calloc");
    return set;
}

static void set_add(struct set *set, struct bytes body, bool is_page) {
    set->are_pages[set->count] = is_page;
    set->bodies[set->count++] = body;
    set->size += body.size;
}

/* All documents; those that are new; and the pages among the new ones. They share the bodies. */
struct sets {
    struct set all;
    struct set originals;
    struct set pages;
};

static struct sets make_sets(const struct corpus *corpus, size_t count) {
    struct sets sets = {set_new(count), set_new(count), set_new(count)};
    struct buf buf;
    buf_init(&buf, CORPUS_DOCUMENT_SIZE_MAX);
    for (size_t i = 0; i < count; i++) {
        uint64_t original = corpus_original(corpus, i);
        bool is_page = corpus_is_page(corpus, i);
        if (original != i) {
            set_add(&sets.all, sets.all.bodies[original], is_page);
            continue;
        }
        buf_clear(&buf);
        corpus_put_document(corpus, i, &buf);
        uint8_t *body = malloc(buf.size);
        must(body != NULL, "malloc");
        memcpy(body, buf.data, buf.size);
        set_add(&sets.all, bytes_of(body, buf.size), is_page);
        set_add(&sets.originals, bytes_of(body, buf.size), is_page);
        if (is_page) {
            set_add(&sets.pages, bytes_of(body, buf.size), is_page);
        }
    }
    buf_done(&buf);
    return sets;
}

/* ---- places on disk ---- */

static char scratch[PATH_SIZE_MAX / 2];

static void path_of(char out[PATH_SIZE_MAX], const char *name) {
    snprintf(out, PATH_SIZE_MAX, "%s/%s", scratch, name);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *ftw) {
    (void)status;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void remove_place(const char *name) {
    char path[PATH_SIZE_MAX];
    path_of(path, name);
    nftw(path, remove_one, 64, FTW_DEPTH | FTW_PHYS);
}

static void remove_scratch(void) {
    if (scratch[0] != '\0') {
        nftw(scratch, remove_one, 64, FTW_DEPTH | FTW_PHYS);
    }
}

static void make_scratch(void) {
    const char *parent = getenv("TMPDIR");
    char path[sizeof scratch];
    snprintf(path, sizeof path, "%s/bench-store-XXXXXX", parent == NULL ? "." : parent);
    must(mkdtemp(path) != NULL, "making a directory");
    char *whole = realpath(path, NULL);
    must(whole != NULL && strlen(whole) < sizeof scratch, "finding the directory");
    strcpy(scratch, whole);
    free(whole);
    must(atexit(remove_scratch) == 0, "atexit");
}

/* A volume in a directory of its own. */
struct place {
    struct vfs_posix vfs;
    char root[PATH_SIZE_MAX];
    char index[PATH_SIZE_MAX + 16];
    struct volume_config config;
    struct volume_recovery recovery;
    struct volume *volume;
};

static void fill_random(void *context, void *out, size_t size) {
    (void)context;
    must(getrandom(out, size, 0) == (ssize_t)size, "getrandom");
}

static void place_open(struct place *place, const char *name, enum pack_framing framing) {
    path_of(place->root, name);
    snprintf(place->index, sizeof place->index, "%s/index", place->root);
    must(vfs_posix_init(&place->vfs, place->root, NULL) == ERR_OK, "vfs_posix_init");
    place->config = (struct volume_config){
        .vfs = &place->vfs.vfs,
        .directory = "volume",
        .index_directory = place->index,
        .framing = framing,
        .random = {fill_random, NULL},
    };
    struct err_detail detail = {0};
    enum err err = volume_open(&place->config, &place->volume, &place->recovery, &detail);
    if (err != ERR_OK) {
        fprintf(stderr, "%s\n", err_detail_text(&detail, err));
        exit(1);
    }
}

static void place_close(struct place *place) {
    volume_close(place->volume);
    vfs_posix_done(&place->vfs);
}

/* Nothing that other runs left unwritten disturbs the next. */
static void settle(void) {
    sync();
}

/* ---- many threads, one clock ---- */

struct job {
    /* Documents from the iterator until false; a worker sets up what is its own first. */
    void (*work)(struct job *job, unsigned thread);
    unsigned threads;
    size_t count;
    double seconds_max;
    pthread_barrier_t barrier;
    atomic_size_t next;
    atomic_size_t done;
    double until_s;
    double cpu_us; /* per document, of the last run: less noisy than the clock on a shared machine */

    struct place *place;
    const struct set *set;
    enum store_mode mode;
    uint64_t stamp;         /* 0: documents as they are */
    unsigned duplicates_pc; /* of a stamped run: so many documents stay as they are */
    struct stored *stored;  /* of each document; may be NULL */
    const char *files;      /* directory of files, instead of a place */
    bool syncs;
    bool syncs_directory;
    bool is_http;
};

struct start {
    struct job *job;
    unsigned thread;
};

static void *run_thread(void *context) {
    struct start *start = context;
    start->job->work(start->job, start->thread);
    return NULL;
}

/* Called by a worker before its first and after its last document. */
static void meet(struct job *job) {
    pthread_barrier_wait(&job->barrier);
}

static bool next_document(struct job *job, size_t *ret_i) {
    *ret_i = atomic_fetch_add(&job->next, 1);
    return *ret_i < job->count && ((*ret_i & 15) != 0 || bench_now_s() < job->until_s);
}

/* Of all threads, the volume's own ones too. */
static double cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* Documents per second. */
static double run(struct job *job) {
    pthread_t threads[THREADS_MAX];
    struct start starts[THREADS_MAX];
    job->next = 0;
    job->done = 0;
    pthread_barrier_init(&job->barrier, NULL, job->threads + 1);
    for (unsigned i = 0; i < job->threads; i++) {
        starts[i] = (struct start){job, i};
        must(pthread_create(&threads[i], NULL, run_thread, &starts[i]) == 0, "pthread_create");
    }
    double start_s = bench_now_s();
    job->until_s = start_s + (job->seconds_max > 0 ? job->seconds_max : 1e9);
    meet(job);
    start_s = bench_now_s();
    double start_cpu_s = cpu_s();
    meet(job);
    double taken_s = bench_now_s() - start_s;
    job->cpu_us = (cpu_s() - start_cpu_s) / (double)(job->done > 0 ? job->done : 1) * 1e6;
    for (unsigned i = 0; i < job->threads; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&job->barrier);
    return (double)job->done / taken_s;
}

/* ---- the volume's side ---- */

static struct bytes stamped(const struct job *job, size_t i, uint8_t *copy) {
    struct bytes body = job->set->bodies[i % job->set->count];
    if (job->stamp == 0 || i % 100 * 37 % 100 < job->duplicates_pc) {
        return body;
    }
    memcpy(copy, body.data, body.size);
    corpus_stamp(copy, body.size, job->stamp);
    return bytes_of(copy, body.size);
}

static void work_put(struct job *job, unsigned thread) {
    (void)thread;
    static const char head[] = "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\n"
                               "Cache-Control: max-age=600\r\nConnection: close\r\n\r\n";
    struct volume_writer *writer = volume_writer_new(job->place->volume);
    uint8_t *copy = malloc(CORPUS_DOCUMENT_SIZE_MAX);
    must(writer != NULL && copy != NULL, "volume_writer_new");
    meet(job);
    size_t done = 0;
    for (size_t i; next_document(job, &i); done++) {
        char url[64];
        int url_size = snprintf(url, sizeof url, "https://www.example%zu.org/page/%zu.html", i % 500, i);
        bool is_page = job->set->are_pages[i % job->set->count];
        struct document document = {
            .url = bytes_of(url, (size_t)url_size),
            .time_us = TIME_US + (int64_t)i,
            .head = job->is_http ? bytes_of_string(head) : bytes_of(NULL, 0),
            .body = stamped(job, i, copy),
            .content_type = is_page ? BYTES("text/html") : BYTES("image/jpeg"),
        };
        struct stored stored;
        struct err_detail detail = {0};
        enum err err = volume_put(writer, &document, job->mode, &stored, &detail);
        if (err != ERR_OK) {
            fprintf(stderr, "bench-store: %s\n", err_detail_text(&detail, err));
            exit(1);
        }
        if (job->stored != NULL) {
            job->stored[i] = stored;
        }
    }
    job->done += done;
    meet(job);
    volume_writer_free(writer);
    free(copy);
}

static void work_get(struct job *job, unsigned thread) {
    struct volume_reader *reader = volume_reader_new(job->place->volume);
    must(reader != NULL, "volume_reader_new");
    struct prng prng;
    prng_init_stream(&prng, SEED, thread);
    meet(job);
    size_t done = 0;
    for (size_t i; next_document(job, &i); done++) {
        size_t wanted = prng_below(&prng, job->set->count);
        struct bytes document;
        enum err err = volume_get(reader, &job->stored[wanted].key, &document, NULL);
        must(err == ERR_OK && document.size == job->set->bodies[wanted].size, "volume_get");
    }
    job->done += done;
    meet(job);
    volume_reader_free(reader);
}

static void work_remove(struct job *job, unsigned thread) {
    (void)thread;
    struct volume_writer *writer = volume_writer_new(job->place->volume);
    must(writer != NULL, "volume_writer_new");
    meet(job);
    size_t done = 0;
    for (size_t i; next_document(job, &i); done++) {
        must(volume_remove(writer, &job->stored[i].key, NULL) == ERR_OK, "volume_remove");
    }
    job->done += done;
    meet(job);
    volume_writer_free(writer);
}

/* ---- one file per document ---- */

/* Made by the first section that needs them. */
static void make_directories(const char *name) {
    char path[PATH_SIZE_MAX];
    path_of(path, name);
    if (mkdir(path, 0700) != 0) {
        must(errno == EEXIST, "mkdir");
        return;
    }
    size_t size = strlen(path);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(path + size, sizeof path - size, "/%02x", i);
        must(mkdir(path, 0700) == 0, "mkdir");
        for (unsigned j = 0; j < 256; j++) {
            snprintf(path + size + 3, sizeof path - size - 3, "/%02x", j);
            must(mkdir(path, 0700) == 0, "mkdir");
        }
    }
}

/* The name is a mixed number; a real archive would have to hash the document for it. */
static size_t file_path(const struct job *job, size_t i, char path[PATH_SIZE_MAX]) {
    uint64_t name = prng_mix(i + 1);
    int size = snprintf(path, PATH_SIZE_MAX, "%s/%s/%02x/%02x", scratch, job->files, (unsigned)(name & 255),
                        (unsigned)(name >> 8 & 255));
    snprintf(path + size, PATH_SIZE_MAX - (size_t)size, "/%012jx", (uintmax_t)(name >> 16));
    return (size_t)size;
}

static void work_file_put(struct job *job, unsigned thread) {
    (void)thread;
    meet(job);
    size_t done = 0;
    for (size_t i; next_document(job, &i); done++) {
        char path[PATH_SIZE_MAX];
        size_t directory_size = file_path(job, i, path);
        struct bytes body = job->set->bodies[i];
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        must(fd >= 0 && write(fd, body.data, body.size) == (ssize_t)body.size, "writing a file");
        must(!job->syncs || fdatasync(fd) == 0, "fdatasync");
        close(fd);
        if (job->syncs_directory) {
            path[directory_size] = '\0';
            fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            must(fd >= 0 && fsync(fd) == 0, "fsync of a directory");
            close(fd);
        }
    }
    job->done += done;
    meet(job);
}

static void work_file_get(struct job *job, unsigned thread) {
    uint8_t *body = malloc(CORPUS_DOCUMENT_SIZE_MAX);
    must(body != NULL, "malloc");
    struct prng prng;
    prng_init_stream(&prng, SEED, thread);
    meet(job);
    size_t done = 0;
    for (size_t i; next_document(job, &i); done++) {
        size_t wanted = prng_below(&prng, job->set->count);
        char path[PATH_SIZE_MAX];
        file_path(job, wanted, path);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        must(fd >= 0 && read(fd, body, CORPUS_DOCUMENT_SIZE_MAX) == (ssize_t)job->set->bodies[wanted].size,
             "reading a file");
        close(fd);
    }
    job->done += done;
    meet(job);
    free(body);
}

static void work_file_remove(struct job *job, unsigned thread) {
    (void)thread;
    meet(job);
    size_t done = 0;
    for (size_t i; next_document(job, &i); done++) {
        char path[PATH_SIZE_MAX];
        size_t directory_size = file_path(job, i, path);
        must(unlink(path) == 0, "unlink");
        path[directory_size] = '\0';
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(fd >= 0 && fsync(fd) == 0, "fsync of a directory");
        close(fd);
    }
    job->done += done;
    meet(job);
}

/* ---- sections ---- */

static double put_fresh(const struct set *set, unsigned threads, bool is_http, double *ret_duplicates,
                        double *ret_cpu_us) {
    struct place place;
    settle();
    place_open(&place, "fresh", PACK_ZSTD);
    struct job job = {.work = work_put,
                      .threads = threads,
                      .count = set->count,
                      .place = &place,
                      .set = set,
                      .is_http = is_http,
                      .seconds_max = SECONDS_MAX};
    double rate = run(&job);
    if (ret_cpu_us != NULL) {
        *ret_cpu_us = job.cpu_us;
    }
    if (ret_duplicates != NULL) {
        job.count = job.done;
        *ret_duplicates = run(&job);
    }
    place_close(&place);
    remove_place("fresh");
    return rate;
}

static double put_files(const struct set *set, unsigned threads, bool syncs_directory) {
    settle();
    struct job job = {.work = work_file_put,
                      .threads = threads,
                      .count = set->count,
                      .set = set,
                      .files = "files",
                      .syncs = true,
                      .syncs_directory = syncs_directory,
                      .seconds_max = SECONDS_MAX};
    double rate = run(&job);
    settle();
    for (size_t i = 0; i < set->count; i++) {
        char path[PATH_SIZE_MAX];
        file_path(&job, i, path);
        unlink(path);
    }
    return rate;
}

static void bench_put(const struct sets *sets) {
    static const unsigned threads[] = {1, 16, 64};
    printf("\nstore, durable: %zu new documents of %.1f KB on average\n", sets->originals.count,
           (double)sets->originals.size / (double)sets->originals.count / 1e3);
    make_directories("files");
    for (size_t i = 0; i < 3; i++) {
        char what[80];
        double minimal = put_files(&sets->originals, threads[i], false);
        double files = put_files(&sets->originals, threads[i], true);
        double duplicates = 0;
        double volume = put_fresh(&sets->originals, threads[i], false, &duplicates, NULL);
        snprintf(what, sizeof what, "files, fdatasync, %u writers", threads[i]);
        bench_row(what, minimal, "docs/s", 0);
        snprintf(what, sizeof what, "files, fdatasync + directory, %u writers", threads[i]);
        bench_row(what, files, "docs/s", 0);
        snprintf(what, sizeof what, "volume, %u writers%s", threads[i], i == 2 ? " (target 8x)" : "");
        bench_row(what, volume, "docs/s", volume / files);
        snprintf(what, sizeof what, "duplicates vs new%s", i == 2 ? " (target 3x)" : "");
        bench_row(what, duplicates, "docs/s", duplicates / volume);
    }
    double pages_duplicates = 0;
    double pages_cpu_us = 0;
    double pages = put_fresh(&sets->pages, 64, false, &pages_duplicates, &pages_cpu_us);
    bench_row("volume, pages only, 64 writers", pages, "docs/s", 0);
    bench_row("processor time of that", pages_cpu_us, "us/doc", 0);
    bench_row("duplicates vs new", pages_duplicates, "docs/s", pages_duplicates / pages);
    bench_row("pages as HTTP responses (two digests)", put_fresh(&sets->pages, 64, true, NULL, NULL),
              "docs/s", 0);
    bench_row("volume, 25 % duplicates, 64 writers", put_fresh(&sets->all, 64, false, NULL, NULL), "docs/s",
              0);
}

/* The disk alone: the same bytes in calls of the same size, synced as often as a group would be. */
static double write_sequentially(const uint8_t *data) {
    char path[PATH_SIZE_MAX];
    path_of(path, "sequential");
    settle();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    must(fd >= 0, "open");
    double start_s = bench_now_s();
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        must(write(fd, data + i * 4096, LARGE_SIZE) == LARGE_SIZE, "write");
        must(i % 8 != 7 || fdatasync(fd) == 0, "fdatasync");
    }
    double taken_s = bench_now_s() - start_s;
    close(fd);
    unlink(path);
    return (double)LARGE_COUNT * LARGE_SIZE / taken_s / 1e6;
}

static void bench_large(void) {
    size_t size = LARGE_SIZE + (size_t)LARGE_COUNT * 4096;
    uint8_t *data = malloc(size);
    must(data != NULL, "malloc");
    struct prng prng;
    prng_init(&prng, SEED);
    prng_fill(&prng, data, size);
    struct set set = set_new(LARGE_COUNT);
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        set_add(&set, bytes_of(data + i * 4096, LARGE_SIZE), false);
    }
    double disk = 0;
    double volume = 0;
    for (int round = 0; round < 2; round++) {
        double disk_now = write_sequentially(data);
        double volume_now = put_fresh(&set, 8, false, NULL, NULL) * LARGE_SIZE / 1e6;
        disk = disk_now > disk ? disk_now : disk;
        volume = volume_now > volume ? volume_now : volume;
    }
    printf("\nlarge documents: %d of 8 MiB, incompressible\n", LARGE_COUNT);
    bench_row("disk, sequential, a sync every 64 MiB", disk, "MB/s", 0);
    bench_row("volume, 8 writers (target 0.5x)", volume, "MB/s", volume / disk);
    free(data);
}

static int compare_doubles(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void bench_modes(const struct sets *sets) {
    static const char *const names[] = {"regular", "compare", "force-new"};
    struct place place;
    settle();
    place_open(&place, "modes", PACK_ZSTD);
    struct job job = {
        .work = work_put, .threads = 64, .count = TABLE_COUNT, .place = &place, .set = &sets->pages};
    job.count = job.count < sets->pages.count ? job.count : sets->pages.count;
    run(&job);
    printf("\nmodes: %zu pages each, 64 writers, documents/s at a share of duplicates of\n%-12s", job.count,
           "");
    for (unsigned share = 0; share <= 100; share += 20) {
        printf(" %8u %%", share);
    }
    printf("\n");
    for (unsigned mode = STORE_REGULAR; mode <= STORE_FORCE_NEW; mode++) {
        printf("%-12s", names[mode]);
        for (unsigned share = 0; share <= 100; share += 20) {
            job.mode = (enum store_mode)mode;
            job.duplicates_pc = share;
            job.stamp++;
            printf(" %10.0f", run(&job));
            fflush(stdout);
        }
        printf("\n");
    }
    /* The clock's noise is larger than the difference, so: processor time, alternating, the middle ratio. */
    double ratios[DETECTION_ROUNDS];
    double regular_us = 0;
    job.duplicates_pc = 0;
    for (size_t i = 0; i < DETECTION_ROUNDS; i++) {
        job.mode = STORE_FORCE_NEW;
        job.stamp++;
        run(&job);
        double force_new_us = job.cpu_us;
        job.mode = STORE_REGULAR;
        job.stamp++;
        run(&job);
        regular_us = job.cpu_us;
        ratios[i] = force_new_us / regular_us;
    }
    qsort(ratios, DETECTION_ROUNDS, sizeof *ratios, compare_doubles);
    bench_row("detection, force-new/regular (target 0.97x)", regular_us, "us/doc",
              ratios[DETECTION_ROUNDS / 2]);
    place_close(&place);
    remove_place("modes");
}

static bool drop_caches(void) {
    sync();
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    bool is_dropped = fd >= 0 && write(fd, "3", 1) == 1;
    if (fd >= 0) {
        close(fd);
    }
    return is_dropped;
}

static void bench_get(const struct sets *sets) {
    static const unsigned threads[] = {1, 2, 8};
    const struct set *pages = &sets->pages;
    struct place place;
    struct stored *stored = calloc(pages->count, sizeof *stored);
    must(stored != NULL, "calloc");
    place_open(&place, "read", PACK_ZSTD);
    struct job fill = {.work = work_put,
                       .threads = 64,
                       .count = pages->count,
                       .place = &place,
                       .set = pages,
                       .stored = stored};
    run(&fill);
    make_directories("files");
    struct job job = {.work = work_file_put,
                      .threads = 8,
                      .count = pages->count,
                      .set = pages,
                      .files = "files",
                      .place = &place,
                      .stored = stored};
    run(&job);
    printf("\nretrieve, %zu pages of %.1f KB, at random\n", pages->count,
           (double)pages->size / (double)pages->count / 1e3);
    bool is_cold = false;
    for (int temperature = 0; temperature < 2; temperature++) {
        for (size_t i = 0; i < 3; i++) {
            char what[80];
            job.threads = threads[i];
            job.count = is_cold ? pages->count / 2 : SIZE_MAX / 2;
            job.seconds_max = 1.5;
            if (is_cold) {
                place_close(&place);
                drop_caches();
            }
            job.work = work_file_get;
            double files = run(&job);
            if (is_cold) {
                drop_caches();
                place_open(&place, "read", PACK_ZSTD);
            }
            job.work = work_get;
            double volume = run(&job);
            const char *state = is_cold ? "cold" : "cached";
            snprintf(what, sizeof what, "files, %s, %u readers", state, threads[i]);
            bench_row(what, files, "docs/s", 0);
            snprintf(what, sizeof what, "volume, %s, %u readers%s", state, threads[i],
                     is_cold  ? " (target 1.8x)"
                     : i == 1 ? " (100,000/s)"
                              : "");
            bench_row(what, volume, "docs/s", volume / files);
            if (!is_cold && i == 1) {
                bench_row("processor time of that", job.cpu_us, "us/doc", 0);
            }
        }
        if (!is_cold && !drop_caches()) {
            printf("cold: not measured, /proc/sys/vm/drop_caches cannot be written here\n");
            break;
        }
        is_cold = true;
    }
    settle();
    job.work = work_file_remove;
    job.threads = 64;
    job.count = pages->count;
    job.seconds_max = SECONDS_MAX;
    double files = run(&job);
    bench_row("delete files, directory synced, 64 threads", files, "docs/s", 0);
    size_t half = pages->count / 2;
    job.work = work_remove;
    job.count = half;
    double volume = run(&job);
    bench_row("delete, 64 threads (target 50,000/s)", volume, "docs/s", volume / files);
    bench_row("processor time of that", job.cpu_us, "us/doc", 0);
    job.stored = stored + half;
    job.count = pages->count - half;
    job.threads = THREADS_MAX;
    volume = run(&job);
    bench_row("delete, 256 threads", volume, "docs/s", volume / files);
    place_close(&place);
    remove_place("read");
    free(stored);
}

static size_t gzip_size(struct bytes body, uint8_t *out, size_t out_size) {
    z_stream stream = {0};
    must(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflateInit2");
    stream.next_in = (uint8_t *)(uintptr_t)body.data;
    stream.avail_in = (uInt)body.size;
    stream.next_out = out;
    stream.avail_out = (uInt)out_size;
    must(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
    deflateEnd(&stream);
    return stream.total_out;
}

static ZSTD_CDict *train(const struct set *pages) {
    struct buf samples;
    size_t sizes[TRAINING_COUNT];
    buf_init(&samples, (size_t)TRAINING_COUNT * CORPUS_DOCUMENT_SIZE_MAX);
    for (size_t i = 0; i < TRAINING_COUNT; i++) {
        buf_put(&samples, pages->bodies[i]);
        sizes[i] = pages->bodies[i].size;
    }
    uint8_t *dictionary = malloc(DICTIONARY_SIZE);
    must(dictionary != NULL && samples.err == ERR_OK, "malloc");
    size_t size = ZDICT_trainFromBuffer(dictionary, DICTIONARY_SIZE, samples.data, sizes, TRAINING_COUNT);
    must(!ZDICT_isError(size), "ZDICT_trainFromBuffer");
    ZSTD_CDict *prepared = ZSTD_createCDict(dictionary, size, 3);
    free(dictionary);
    buf_done(&samples);
    return prepared;
}

static void space_row(const char *what, uint64_t size, size_t count, uint64_t baseline) {
    bench_row(what, (double)size / (double)count, "bytes", (double)size / (double)baseline);
}

/* Bytes of a page: the body alone compressed in three ways, and all that the volume keeps for it. */
static void bench_space(const struct sets *sets) {
    if (sets->pages.count < 2 * TRAINING_COUNT) {
        printf("\nspace: not measured, it needs %d pages\n", 2 * TRAINING_COUNT);
        return;
    }
    struct set rest = {.bodies = sets->pages.bodies + TRAINING_COUNT,
                       .are_pages = sets->pages.are_pages,
                       .count = sets->pages.count - TRAINING_COUNT};
    rest.count = rest.count < 5000 ? rest.count : 5000;
    ZSTD_CDict *dictionary = train(&sets->pages);
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    uint8_t *out = malloc(CORPUS_DOCUMENT_SIZE_MAX);
    must(dictionary != NULL && zstd != NULL && out != NULL, "malloc");
    uint64_t gzip = 0;
    uint64_t plain = 0;
    uint64_t trained = 0;
    for (size_t i = 0; i < rest.count; i++) {
        struct bytes body = rest.bodies[i];
        rest.size += body.size;
        gzip += gzip_size(body, out, CORPUS_DOCUMENT_SIZE_MAX);
        plain += ZSTD_compressCCtx(zstd, out, CORPUS_DOCUMENT_SIZE_MAX, body.data, body.size, 3);
        trained +=
            ZSTD_compress_usingCDict(zstd, out, CORPUS_DOCUMENT_SIZE_MAX, body.data, body.size, dictionary);
    }
    struct place place;
    place_open(&place, "space", PACK_ZSTD);
    struct job job = {.work = work_put, .threads = 16, .count = rest.count, .place = &place, .set = &rest};
    run(&job);
    struct volume_stat stat;
    volume_stat(place.volume, &stat);
    place_close(&place);
    remove_place("space");
    printf("\nspace: %zu pages, against gzip -6\n", rest.count);
    space_row("as they are", rest.size, rest.count, gzip);
    space_row("gzip -6, body alone", gzip, rest.count, gzip);
    space_row("zstd -3, body alone", plain, rest.count, gzip);
    space_row("zstd -3, dictionary of 1,000 others", trained, rest.count, gzip);
    space_row("volume, whole records (target 0.75x)", stat.size, rest.count, gzip);
    ZSTD_freeCDict(dictionary);
    ZSTD_freeCCtx(zstd);
    free(out);
}

static void copy_directory(const char *from, const char *to) {
    char command[4 * PATH_SIZE_MAX];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", to, from, to);
    must(system(command) == 0, "cp");
}

static double rebuild_s(struct place *place) {
    place_close(place);
    must(vfs_posix_init(&place->vfs, place->root, NULL) == ERR_OK, "vfs_posix_init");
    double start_s = bench_now_s();
    must(volume_rebuild(&place->config, &place->volume, &place->recovery, NULL) == ERR_OK, "volume_rebuild");
    return bench_now_s() - start_s;
}

/* What a machine's crash may take from the index: half of the documents were entered after its last flush. */
static void bench_stale_index(const struct sets *sets) {
    struct place place;
    char old_index[PATH_SIZE_MAX];
    path_of(old_index, "old-index");
    place_open(&place, "recovery", PACK_ZSTD);
    struct job job = {.work = work_put,
                      .threads = 64,
                      .count = sets->originals.count / 2,
                      .place = &place,
                      .set = &sets->originals};
    run(&job);
    place_close(&place);
    copy_directory(place.index, old_index);
    place_open(&place, "recovery", PACK_ZSTD);
    job.stamp = 1;
    run(&job);
    place_close(&place);
    copy_directory(old_index, place.index);
    double start_s = bench_now_s();
    place_open(&place, "recovery", PACK_ZSTD);
    double taken_s = bench_now_s() - start_s;
    printf("open, index %ju documents behind: %.2f s (target 5 s)\n", (uintmax_t)place.recovery.records_count,
           taken_s);
    place_close(&place);
    remove_place("recovery");
}

static void bench_reindex(const struct sets *sets) {
    static const struct {
        enum pack_framing framing;
        const char *name;
    } framings[] = {{PACK_PLAIN, "plain"}, {PACK_GZIP, "gzip"}, {PACK_ZSTD, "zstd"}};
    for (size_t i = 0; i < 3; i++) {
        struct place place;
        place_open(&place, "recovery", framings[i].framing);
        struct job job = {.work = work_put,
                          .threads = 64,
                          .count = sets->originals.count,
                          .place = &place,
                          .set = &sets->originals,
                          .seconds_max = 2 * SECONDS_MAX};
        run(&job);
        double taken_s = rebuild_s(&place);
        struct volume_stat stat;
        volume_stat(place.volume, &stat);
        double size = (double)sets->originals.size * (double)job.done / (double)sets->originals.count;
        char what[80];
        snprintf(what, sizeof what, "reindex, %s, of what is in it%s", framings[i].name,
                 i == 0 ? " (target 300)" : "");
        bench_row(what, size / taken_s / 1e6, "MB/s", 0);
        snprintf(what, sizeof what, "reindex, %s, of the file", framings[i].name);
        bench_row(what, (double)stat.size / taken_s / 1e6, "MB/s", 0);
        place_close(&place);
        remove_place("recovery");
    }
}

static void bench_recovery(const struct sets *sets) {
    printf("\nrecovery, %zu documents\n", sets->originals.count);
    bench_stale_index(sets);
    bench_reindex(sets);
}

static void bench_large_section(const struct sets *sets) {
    (void)sets;
    bench_large();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(const struct sets *sets);
    } sections[] = {
        {"put", bench_put}, {"large", bench_large_section}, {"modes", bench_modes},
        {"get", bench_get}, {"space", bench_space},         {"recovery", bench_recovery},
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : DOCUMENTS_COUNT;
    if (count < 100) {
        fprintf(stderr, "usage: bench-store [documents] [put|large|modes|get|space|recovery …]\n");
        return 2;
    }
    static struct corpus corpus;
    make_scratch();
    corpus_init(&corpus, SEED);
    struct sets sets = make_sets(&corpus, count);
    printf("%zu documents: %zu new of %.0f MB, %zu of them pages\n", sets.all.count, sets.originals.count,
           (double)sets.originals.size / 1e6, sets.pages.count);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        bool is_wanted = argc <= 2;
        for (int j = 2; j < argc; j++) {
            is_wanted = is_wanted || strcmp(argv[j], sections[i].name) == 0;
        }
        if (is_wanted) {
            sections[i].run(&sets);
        }
    }
    corpus_done(&corpus);
    return 0;
}
