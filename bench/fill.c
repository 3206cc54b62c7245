/*
 * fill captures DIR COUNT LIST          - an archive of many small captures, for lookups
 * fill pages DIR COUNT LIST FILES       - an archive of pages of 12 KB; FILES gets the same as files, for a
 * web server to compare with
 * fill more DIR COUNT LIST              - an archive of other pages of 12 KB
 *
 * Captures are those of bench/index.c: three quarters have a payload of their own, one quarter that of an
 * earlier one, four in five of these under its URL. LIST gets a line "timestamp url" for up to 100,000 of
 * them (all of them captures of HTML pages), evenly chosen.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/utc.h"
#include "corpus.h"
#include "store/instance/instance.h"
#include "urls.h"
#include "web/url/url.h"

enum {
    THREADS_COUNT = 2,
    LIST_COUNT_MAX = 100000,
    PATH_SIZE_MAX = 4096,
    SEED = 5,
    SECOND_US = 1000000,
    MORE_FIRST = 100000000, /* pages of "fill more" are numbered from here on */
};
static const int64_t FIRST_TIME_US = INT64_C(1500000000) * SECOND_US;

struct fill {
    struct instance *instance;
    bool wants_pages;
    const char *files; /* NULL: none */
    uint64_t first;    /* number of the first page */
    uint64_t count;
    FILE *list;
    struct corpus corpus;
    atomic_uint_fast64_t failed_count;
};

struct worker {
    struct fill *fill;
    uint64_t number;
    pthread_t thread;
    struct buf url;
    struct buf body;
    struct buf head;
};

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "fill: %s failed\n", what);
        exit(1);
    }
}

static void done(void *context, enum err err, const struct stored *stored) {
    (void)stored;
    struct fill *fill = context;
    if (err != ERR_OK) {
        atomic_fetch_add(&fill->failed_count, 1);
    }
}

/* A capture is one of the time of its number; the payload may be an earlier one's. */
static int64_t time_of(uint64_t i) {
    return FIRST_TIME_US + (int64_t)i * SECOND_US;
}

static void make_capture(struct worker *worker, uint64_t i) {
    uint64_t count = worker->fill->count;
    uint64_t first_count = count - count / 4;
    uint64_t same_count = (count - first_count) * 4 / 5;
    struct prng prng;
    prng_init_stream(&prng, SEED, i);
    uint64_t original = i < first_count ? i : prng_below(&prng, first_count);
    uint64_t of_url = i < first_count + same_count ? original : i;
    struct prng of_prng;
    prng_init_stream(&of_prng, SEED + 1, of_url);
    urls_put(&worker->url, &of_prng, count, of_url);
    buf_put_format(&worker->body, "<!DOCTYPE html><title>%ju</title><p>This is page %ju.\n",
                   (uintmax_t)original, (uintmax_t)original);
}

static void write_file(const struct worker *worker, uint64_t i) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/%ju", worker->fill->files, (uintmax_t)(i / 1000));
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%ju/p%ju.html", worker->fill->files, (uintmax_t)(i / 1000), (uintmax_t)i);
    FILE *file = fopen(path, "w");
    must(file != NULL && fwrite(worker->body.data, 1, worker->body.size, file) == worker->body.size &&
             fclose(file) == 0,
         "writing a file");
}

static void make_page(struct worker *worker, uint64_t i) {
    buf_put_format(&worker->url, "http://pages.example/%ju/p%ju.html", (uintmax_t)(i / 1000), (uintmax_t)i);
    corpus_put_page(&worker->fill->corpus, i, &worker->body);
    if (worker->fill->files != NULL) {
        write_file(worker, i);
    }
}

static void submit(struct worker *worker, struct instance_session *session, uint64_t i) {
    struct fill *fill = worker->fill;
    buf_clear(&worker->url);
    buf_clear(&worker->body);
    buf_clear(&worker->head);
    if (fill->wants_pages) {
        make_page(worker, fill->first + i);
    } else {
        make_capture(worker, i);
    }
    buf_put_format(&worker->head,
                   "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/html; charset=utf-8\r\n"
                   "Content-Length: %zu\r\n\r\n",
                   worker->body.size);
    struct document document = {
        .url = buf_bytes(&worker->url),
        .time_us = time_of(i),
        .head = buf_bytes(&worker->head),
        .body = buf_bytes(&worker->body),
    };
    must(instance_submit(session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, done, fill, NULL) == ERR_OK,
         "storing");
    uint64_t step = fill->count / LIST_COUNT_MAX + 1;
    if (i % step == 0) {
        char digits[UTC_DIGITS_SIZE];
        flockfile(fill->list);
        fprintf(fill->list, "%s %.*s\n", utc_format_digits(time_of(i), digits), BYTES_ARG(document.url));
        funlockfile(fill->list);
    }
}

static void *work(void *context) {
    struct worker *worker = context;
    struct instance_session *session = instance_session_new(worker->fill->instance);
    must(session != NULL, "memory");
    buf_init(&worker->url, URL_SIZE_MAX);
    buf_init(&worker->body, CORPUS_DOCUMENT_SIZE_MAX);
    buf_init(&worker->head, 1 << 12);
    for (uint64_t i = worker->number; i < worker->fill->count; i += THREADS_COUNT) {
        submit(worker, session, i);
    }
    buf_done(&worker->url);
    buf_done(&worker->body);
    buf_done(&worker->head);
    instance_session_free(session);
    return NULL;
}

int main(int argc, char **argv) {
    bool has_files = argc == 6 && strcmp(argv[1], "pages") == 0;
    bool wants_more = argc == 5 && strcmp(argv[1], "more") == 0;
    if (!has_files && !wants_more && !(argc == 5 && strcmp(argv[1], "captures") == 0)) {
        fprintf(stderr, "usage: fill captures DIR COUNT LIST\n       fill pages DIR COUNT LIST FILES\n"
                        "       fill more DIR COUNT LIST\n");
        return 2;
    }
    static struct fill fill;
    fill.count = strtoull(argv[3], NULL, 10);
    fill.list = fopen(argv[4], "w");
    fill.wants_pages = has_files || wants_more;
    fill.files = has_files ? argv[5] : NULL;
    fill.first = wants_more ? MORE_FIRST : 0;
    must(fill.list != NULL, "opening the list");
    corpus_init(&fill.corpus, SEED);
    struct instance_config config = {.directory = argv[2]};
    must(instance_open(&config, &fill.instance, NULL) == ERR_OK, "opening the archive");
    static struct worker workers[THREADS_COUNT];
    for (uint64_t i = 0; i < THREADS_COUNT; i++) {
        workers[i] = (struct worker){.fill = &fill, .number = i};
        must(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "a thread");
    }
    for (uint64_t i = 0; i < THREADS_COUNT; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    instance_drain(fill.instance);
    must(atomic_load(&fill.failed_count) == 0, "storing");
    instance_close(fill.instance);
    corpus_done(&fill.corpus);
    return fclose(fill.list) == 0 ? 0 : 1;
}
