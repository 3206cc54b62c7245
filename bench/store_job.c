#include "store.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t TIME_US = 1700000000000000;

/* ---- documents in memory ---- */

struct set set_new(size_t count) {
    struct set set = {.bodies = calloc(count, sizeof *set.bodies), .are_pages = calloc(count, 1)};
    must(set.bodies != NULL && set.are_pages != NULL, "calloc");
    return set;
}

void set_add(struct set *set, struct bytes body, bool is_page) {
    set->are_pages[set->count] = is_page;
    set->bodies[set->count++] = body;
    set->size += body.size;
}

struct sets sets_make(const struct corpus *corpus, size_t count) {
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

static char root[PATH_SIZE_MAX / 2];

void place_path(char out[PATH_SIZE_MAX], const char *name) {
    snprintf(out, PATH_SIZE_MAX, "%s/%s", root, name);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *ftw) {
    (void)status;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void place_remove(const char *name) {
    char path[PATH_SIZE_MAX];
    place_path(path, name);
    nftw(path, remove_one, 64, FTW_DEPTH | FTW_PHYS);
}

static void place_remove_root(void) {
    if (root[0] != '\0') {
        nftw(root, remove_one, 64, FTW_DEPTH | FTW_PHYS);
    }
}

void place_make_root(void) {
    const char *parent = getenv("TMPDIR");
    char path[sizeof root];
    snprintf(path, sizeof path, "%s/bench-store-XXXXXX", parent == NULL ? "." : parent);
    must(mkdtemp(path) != NULL, "making a directory");
    char *whole = realpath(path, NULL);
    must(whole != NULL && strlen(whole) < sizeof root, "finding the directory");
    strcpy(root, whole);
    free(whole);
    must(atexit(place_remove_root) == 0, "atexit");
}

static void fill_random(void *context, void *out, size_t size) {
    (void)context;
    must(getrandom(out, size, 0) == (ssize_t)size, "getrandom");
}

void place_open(struct place *place, const char *name, enum pack_framing framing) {
    place_path(place->root, name);
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

void place_close(struct place *place) {
    volume_close(place->volume);
    vfs_posix_done(&place->vfs);
}

void place_settle(void) {
    sync();
}

bool place_drop_caches(void) {
    sync();
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    bool is_dropped = fd >= 0 && write(fd, "3", 1) == 1;
    if (fd >= 0) {
        close(fd);
    }
    return is_dropped;
}

/* ---- many threads, one clock ---- */

struct start {
    struct job *job;
    unsigned thread;
};

static void *run_thread(void *context) {
    struct start *start = context;
    start->job->work(start->job, start->thread);
    return NULL;
}

void job_meet(struct job *job) {
    pthread_barrier_wait(&job->barrier);
}

bool job_next(struct job *job, size_t *ret_i) {
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

double job_run(struct job *job) {
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
    job_meet(job);
    start_s = bench_now_s();
    double start_cpu_s = cpu_s();
    job_meet(job);
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

/* Document i of the job, as a crawler would hand it in. */
struct made {
    struct document document;
    char url[64];
};

static void make_document(const struct job *job, size_t i, uint8_t *copy, struct made *made) {
    static const char head[] = "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\n"
                               "Cache-Control: max-age=600\r\nConnection: close\r\n\r\n";
    int url_size = snprintf(made->url, sizeof made->url, "https://www.example%zu.org/page%u/%zu.html",
                            i % 500, job->copy, i);
    bool is_page = job->set->are_pages[i % job->set->count];
    made->document = (struct document){
        .url = bytes_of(made->url, (size_t)url_size),
        .time_us = TIME_US + (int64_t)i,
        .head = job->is_http ? bytes_of_string(head) : bytes_of(NULL, 0),
        .body = stamped(job, i, copy),
        .content_type = is_page ? BYTES("text/html") : BYTES("image/jpeg"),
    };
}

static void must_store(enum err err, const struct err_detail *detail) {
    if (err != ERR_OK) {
        fprintf(stderr, "bench-store: %s\n", err_detail_text(detail, err));
        exit(1);
    }
}

void work_put(struct job *job, unsigned thread) {
    (void)thread;
    struct volume_writer *writer = volume_writer_new(job->place->volume);
    uint8_t *copy = malloc(CORPUS_DOCUMENT_SIZE_MAX);
    must(writer != NULL && copy != NULL, "volume_writer_new");
    job_meet(job);
    size_t done = 0;
    for (size_t i; job_next(job, &i); done++) {
        struct made made;
        struct stored stored;
        struct err_detail detail = {0};
        make_document(job, i, copy, &made);
        must_store(volume_put(writer, &made.document, job->mode, &stored, &detail), &detail);
        if (job->stored != NULL) {
            job->stored[i] = stored;
        }
    }
    job->done += done;
    job_meet(job);
    volume_writer_free(writer);
    free(copy);
}

static void count_stored(void *context, enum err err, const struct stored *stored) {
    (void)stored;
    must_store(err, NULL);
    atomic_fetch_add(&((struct job *)context)->done, 1);
}

/* Told of each document when it is durable, without waiting for it before the next: as import and crawler do.
 */
void work_submit(struct job *job, unsigned thread) {
    (void)thread;
    struct volume_writer *writer = volume_writer_new(job->place->volume);
    uint8_t *copy = malloc(CORPUS_DOCUMENT_SIZE_MAX);
    must(writer != NULL && copy != NULL, "volume_writer_new");
    job_meet(job);
    for (size_t i; job_next(job, &i);) {
        struct made made;
        struct err_detail detail = {0};
        make_document(job, i, copy, &made);
        must_store(volume_submit(writer, &made.document, job->mode, count_stored, job, &detail), &detail);
    }
    volume_drain(job->place->volume);
    job_meet(job);
    volume_writer_free(writer);
    free(copy);
}

void work_get(struct job *job, unsigned thread) {
    struct volume_reader *reader = volume_reader_new(job->place->volume);
    must(reader != NULL, "volume_reader_new");
    struct prng prng;
    prng_init_stream(&prng, SEED, thread);
    job_meet(job);
    size_t done = 0;
    for (size_t i; job_next(job, &i); done++) {
        size_t wanted = prng_below(&prng, job->set->count);
        struct bytes document;
        enum err err = volume_get(reader, &job->stored[wanted].key, &document, NULL);
        must(err == ERR_OK && document.size == job->set->bodies[wanted].size, "volume_get");
    }
    job->done += done;
    job_meet(job);
    volume_reader_free(reader);
}

void work_remove(struct job *job, unsigned thread) {
    (void)thread;
    struct volume_writer *writer = volume_writer_new(job->place->volume);
    must(writer != NULL, "volume_writer_new");
    job_meet(job);
    size_t done = 0;
    for (size_t i; job_next(job, &i); done++) {
        must(volume_remove(writer, &job->stored[i].key, NULL) == ERR_OK, "volume_remove");
    }
    job->done += done;
    job_meet(job);
    volume_writer_free(writer);
}
