/*
 * The frontier against what simple crawlers do: a table of URLs in SQLite, and RocksDB with a get for every
 * link and a put for every change.
 *
 * A crawl of COUNT URLs (argument, 1,000,000) on 200 hosts without a network: every URL that is taken is
 * finished at once, with 36 links of which one is new; a tenth of all waits at any time. CPU time is that of
 * the whole process, RocksDB's threads included, without the making of the links, which is measured before.
 * The others crawl less of it, since their cost only grows.
 */
#include <ftw.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/prng.h"
#include "bench.h"
#include "crawl/frontier/frontier.h"
#include "crawl/frontier/frontier_state.h"

enum {
    HOSTS_COUNT = 200,
    LINKS_COUNT = 36,
    BACKLOG_SHARE = 10, /* one in so many URLs waits at any time: more than the windows hold */
    URL_SIZE = 128,
    OTHERS_COUNT = 30000, /* URLs that the other ways crawl */
    PACED_COUNT = 100000,
    TOGETHER_COUNT = 100, /* URLs in a transaction of SQLite */
    PARTS = 10,
};

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-frontier: %s failed\n", what);
        exit(1);
    }
}

static double cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6 +
           (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6;
}

/* "VmRSS" or "VmHWM" of this process in bytes. */
static double process_memory(const char *name) {
    char line[256];
    double size = 0;
    FILE *file = fopen("/proc/self/status", "r");
    must(file != NULL, "/proc/self/status");
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            size = strtod(line + strlen(name) + 1, NULL) * 1024;
        }
    }
    fclose(file);
    return size;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_tree(const char *path) {
    must(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "removing the directory");
}

/* ---- the web ---- */

struct web {
    uint64_t known_count; /* pages below it have been linked to */
    uint64_t count;
    struct prng prng;
    char urls[LINKS_COUNT][URL_SIZE];
    struct frontier_link links[LINKS_COUNT];
};

static void put_digits(char *out, uint64_t value, size_t count) {
    for (size_t i = count; i > 0; i--, value /= 10) {
        out[i - 1] = (char)('0' + value % 10);
    }
}

/* By hand: 36 calls of snprintf would cost as much as what is measured. */
static struct frontier_link make_link(char out[URL_SIZE], uint64_t page) {
    static const char text[] = "https://www.site-000.org/articles/2026/some-words-of-a-title-000000000.html";
    enum { HOST_FROM = 8, HOST_SIZE = 16, HOST_DIGITS = 17, PAGE_DIGITS = 61 };
    memcpy(out, text, sizeof text);
    put_digits(out + HOST_DIGITS, prng_mix(page) % HOSTS_COUNT, 3);
    put_digits(out + PAGE_DIGITS, page, 9);
    return (struct frontier_link){
        .url = bytes_of(out, sizeof text - 1),
        .host = bytes_of(out + HOST_FROM, HOST_SIZE),
        .depth = (uint16_t)(page * 20 / (page + 100000)), /* grows as in a crawl */
        .priority = page % 3 == 0 ? FRONTIER_EMBED : FRONTIER_PAGE,
    };
}

static void make_links(struct web *web) {
    for (size_t i = 0; i < LINKS_COUNT; i++) {
        bool is_new = i == 0 && web->known_count < web->count;
        uint64_t page = is_new ? web->known_count++ : prng_below(&web->prng, web->known_count);
        web->links[i] = make_link(web->urls[i], page);
    }
}

static void web_init(struct web *web, uint64_t count) {
    *web = (struct web){.known_count = count / BACKLOG_SHARE, .count = count};
    prng_init(&web->prng, 1);
}

/* Not more URLs per second than the rate, as with a network; 0: as many as will go. */
static void keep_pace(double start_s, uint64_t done, uint64_t rate) {
    if (rate == 0 || done % 10 != 0) {
        return;
    }
    double wait_s = start_s + (double)done / (double)rate - bench_now_s();
    if (wait_s > 0) {
        usleep((useconds_t)(wait_s * 1e6));
    }
}

/* Seconds that the links of so many pages, and the waiting between them, take. */
static double links_cost_s(uint64_t count, uint64_t rate) {
    static struct web web;
    enum { SAMPLE = 20000 };
    web_init(&web, SAMPLE * BACKLOG_SHARE);
    double start_s = bench_now_s();
    double start_cpu_s = cpu_s();
    for (uint64_t i = 0; i < SAMPLE; i++) {
        make_links(&web);
        keep_pace(start_s, i, rate);
    }
    return (cpu_s() - start_cpu_s) / SAMPLE * (double)count;
}

/* ---- the frontier ---- */

struct crawl {
    struct frontier *frontier;
    struct frontier_lane *ready[FRONTIER_LANES_MAX];
    size_t ready_count;
    _Atomic bool is_awake;
};

static void on_wake(void *context) {
    atomic_store(&((struct crawl *)context)->is_awake, true);
}

static void on_ready(void *context, struct frontier_lane *lane) {
    struct crawl *crawl = context;
    must(crawl->ready_count < FRONTIER_LANES_MAX, "room for lanes");
    crawl->ready[crawl->ready_count++] = lane;
}

static void drop(struct crawl *crawl, struct frontier_lane *lane) {
    for (size_t i = 0; i < crawl->ready_count; i++) {
        if (crawl->ready[i] == lane) {
            crawl->ready[i] = crawl->ready[--crawl->ready_count];
            return;
        }
    }
}

static void on_gone(void *context, struct frontier_lane *lane) {
    drop(context, lane);
}

static void open_crawl(struct crawl *crawl, const char *directory) {
    struct err_detail detail = {0};
    struct frontier_config config = {
        .directory = directory, .wake = on_wake, .ready = on_ready, .gone = on_gone, .context = crawl};
    crawl->ready_count = 0;
    if (frontier_open(&config, &crawl->frontier, &detail) != ERR_OK) {
        fprintf(stderr, "bench-frontier: %s\n", detail.text);
        exit(1);
    }
}

/* As a loop would: poll when asked, take while there is room on the way to the disk. NULL at the end. */
static struct frontier_url *take(struct crawl *crawl) {
    static size_t turn;
    for (;;) {
        if (atomic_exchange(&crawl->is_awake, false)) {
            frontier_poll(crawl->frontier);
        }
        if (crawl->ready_count > 0 && !frontier_is_behind(crawl->frontier)) {
            struct frontier_lane *lane = crawl->ready[turn++ % crawl->ready_count];
            struct frontier_url *url = frontier_take(lane);
            if (url != NULL) {
                return url;
            }
            drop(crawl, lane);
        } else if (frontier_is_empty(crawl->frontier)) {
            return NULL;
        } else {
            usleep(200);
        }
    }
}

static void add_pages(struct crawl *crawl, uint64_t from, uint64_t to) {
    char url[URL_SIZE];
    for (uint64_t i = from; i < to; i++) {
        struct frontier_link link = make_link(url, i);
        while (i % 1000 == 0 && frontier_is_behind(crawl->frontier)) {
            usleep(1000);
        }
        frontier_add(crawl->frontier, &link, 1, NULL);
    }
}

struct result {
    double wall_s;
    double cpu_s;
    double part_cpu_s[PARTS]; /* each tenth of the URLs */
    double part_wall_s[PARTS];
};

static struct result crawl_frontier(const char *directory, uint64_t count, uint64_t rate) {
    static struct web web;
    static struct crawl crawl;
    struct result result = {0};
    double links_s = links_cost_s(count, rate);
    web_init(&web, count);
    open_crawl(&crawl, directory);
    add_pages(&crawl, 0, web.known_count);
    double start_s = bench_now_s();
    double start_cpu_s = cpu_s();
    double part_s = start_s;
    double part_cpu_s = start_cpu_s;
    uint64_t done = 0;
    for (struct frontier_url *url; (url = take(&crawl)) != NULL;) {
        struct frontier_outcome outcome = {
            .state = FRONTIER_DONE,
            .status = 200,
            .time_us = (int64_t)(1767225600000000 + done),
            .etag = BYTES("\"5e8b-60a1b2c3d4e5f\""),
            .last_modified = BYTES("Thu, 01 Jan 2026 00:00:00 GMT"),
            .has_digest = true,
        };
        prng_fill(&web.prng, outcome.digest, sizeof outcome.digest);
        make_links(&web);
        frontier_finish(crawl.frontier, url, &outcome, web.links, LINKS_COUNT);
        keep_pace(start_s, done, rate);
        if (++done % (count / PARTS) == 0) {
            result.part_wall_s[done / (count / PARTS) - 1] = bench_now_s() - part_s;
            result.part_cpu_s[done / (count / PARTS) - 1] = cpu_s() - part_cpu_s - links_s / PARTS;
            part_s = bench_now_s();
            part_cpu_s = cpu_s();
        }
    }
    must(done == count, "crawling all of it");
    frontier_close(crawl.frontier);
    result.wall_s = bench_now_s() - start_s;
    result.cpu_s = cpu_s() - start_cpu_s - links_s;
    return result;
}

/* ---- SQLite ---- */

static void run_sql(sqlite3 *sqlite, const char *text) {
    must(sqlite3_exec(sqlite, text, NULL, NULL, NULL) == SQLITE_OK, text);
}

static sqlite3_stmt *prepare(sqlite3 *sqlite, const char *text) {
    sqlite3_stmt *statement = NULL;
    must(sqlite3_prepare_v2(sqlite, text, -1, &statement, NULL) == SQLITE_OK, text);
    return statement;
}

static void insert_url(sqlite3_stmt *insert, const struct frontier_link *link) {
    sqlite3_bind_text(insert, 1, (const char *)link->url.data, (int)link->url.size, SQLITE_STATIC);
    sqlite3_bind_text(insert, 2, (const char *)link->host.data, (int)link->host.size, SQLITE_STATIC);
    sqlite3_bind_int(insert, 3, (int)link->priority * 65536 + link->depth);
    must(sqlite3_step(insert) == SQLITE_DONE, "inserting");
    sqlite3_reset(insert);
}

static struct result crawl_sqlite(const char *path, uint64_t count) {
    static struct web web;
    sqlite3 *sqlite = NULL;
    double links_s = links_cost_s(count, 0);
    web_init(&web, count);
    must(sqlite3_open(path, &sqlite) == SQLITE_OK, "opening SQLite");
    run_sql(sqlite, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                    "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT UNIQUE, host TEXT, rank INTEGER,"
                    " state INTEGER, status INTEGER, time INTEGER, etag TEXT, modified TEXT, signature BLOB);"
                    "CREATE INDEX waiting ON urls(rank, id) WHERE state = 0;");
    sqlite3_stmt *insert =
        prepare(sqlite, "INSERT OR IGNORE INTO urls(url, host, rank, state) VALUES(?, ?, ?, 0)");
    sqlite3_stmt *next = prepare(sqlite, "SELECT id FROM urls WHERE state = 0 ORDER BY rank, id LIMIT 1");
    sqlite3_stmt *update =
        prepare(sqlite, "UPDATE urls SET state = 1, status = 200, time = ?, etag = ?, modified = ?,"
                        " signature = ? WHERE id = ?");
    double start_s = bench_now_s();
    double start_cpu_s = cpu_s();
    run_sql(sqlite, "BEGIN");
    for (uint64_t i = 0; i < count / BACKLOG_SHARE; i++) {
        struct frontier_link link = make_link(web.urls[0], i);
        insert_url(insert, &link);
    }
    for (uint64_t i = 0; i < count; i++) {
        uint8_t digest[KEY_DIGEST_SIZE];
        must(sqlite3_step(next) == SQLITE_ROW, "a next URL");
        int64_t id = sqlite3_column_int64(next, 0);
        sqlite3_reset(next);
        prng_fill(&web.prng, digest, sizeof digest);
        make_links(&web);
        sqlite3_bind_int64(update, 1, (int64_t)i);
        sqlite3_bind_text(update, 2, "\"5e8b-60a1b2c3d4e5f\"", -1, SQLITE_STATIC);
        sqlite3_bind_text(update, 3, "Thu, 01 Jan 2026 00:00:00 GMT", -1, SQLITE_STATIC);
        sqlite3_bind_blob(update, 4, digest, sizeof digest, SQLITE_STATIC);
        sqlite3_bind_int64(update, 5, id);
        must(sqlite3_step(update) == SQLITE_DONE, "updating");
        sqlite3_reset(update);
        for (size_t j = 0; j < LINKS_COUNT; j++) {
            insert_url(insert, &web.links[j]);
        }
        if (i % TOGETHER_COUNT == TOGETHER_COUNT - 1) {
            run_sql(sqlite, "COMMIT; BEGIN");
        }
    }
    run_sql(sqlite, "COMMIT");
    sqlite3_finalize(insert);
    sqlite3_finalize(next);
    sqlite3_finalize(update);
    sqlite3_close(sqlite);
    return (struct result){.wall_s = bench_now_s() - start_s, .cpu_s = cpu_s() - start_cpu_s - links_s};
}

/* ---- RocksDB, one operation after the other ---- */

static void put_one(struct kv *kv, struct bytes key, struct bytes value) {
    must(kv_put(kv, 0, key, value, NULL) == ERR_OK, "a put");
}

/* u<url> holds what is known, q<number> what waits, as it came. */
static void add_one(struct kv *kv, const struct frontier_link *link, uint64_t number) {
    static struct buf value;
    uint8_t key[URL_SIZE + 1] = {'u'};
    if (value.size_max == 0) {
        buf_init(&value, 1 << 16);
    }
    memcpy(key + 1, link->url.data, link->url.size);
    struct bytes known = bytes_of(key, link->url.size + 1);
    if (kv_copy(kv, 0, known, &value, NULL) == ERR_OK) {
        return;
    }
    put_one(kv, known, BYTES("waiting"));
    uint8_t queue[16];
    int size = snprintf((char *)queue, sizeof queue, "q%010u", (unsigned)number);
    put_one(kv, bytes_of(queue, (size_t)size), link->url);
}

static struct result crawl_rocksdb(const char *directory, uint64_t count) {
    static struct web web;
    struct kv *kv = kv_new(directory, &frontier_kv_options);
    struct kv_batch removal;
    double links_s = links_cost_s(count, 0);
    web_init(&web, count);
    must(kv != NULL && kv_open(kv, NULL) == ERR_OK, "opening RocksDB");
    kv_batch_init(&removal);
    double start_s = bench_now_s();
    double start_cpu_s = cpu_s();
    uint64_t number = 0;
    uint8_t queue[16] = "q"; /* where the last one was: removed ones are not passed over again and again */
    size_t queue_size = 1;
    for (uint64_t i = 0; i < count / BACKLOG_SHARE; i++) {
        struct frontier_link link = make_link(web.urls[0], i);
        add_one(kv, &link, number++);
    }
    for (uint64_t i = 0; i < count; i++) {
        struct kv_iterator iterator;
        uint8_t known[URL_SIZE + 1] = {'u'};
        uint8_t record[100];
        must(kv_iterator_init(&iterator, kv, 0, KV_WALK, bytes_of(queue, queue_size), BYTES("r"), false) ==
                 ERR_OK,
             "an iterator");
        must(kv_iterator_next(&iterator, NULL) == ERR_OK, "a next URL");
        size_t size = iterator.value.size;
        memcpy(known + 1, iterator.value.data, size);
        memcpy(queue, iterator.key.data, iterator.key.size);
        queue_size = iterator.key.size;
        kv_iterator_done(&iterator);
        kv_batch_clear(&removal);
        kv_batch_remove(&removal, 0, bytes_of(queue, queue_size));
        must(kv_write(kv, &removal, NULL) == ERR_OK, "a removal");
        prng_fill(&web.prng, record, sizeof record);
        put_one(kv, bytes_of(known, size + 1), bytes_of(record, sizeof record));
        make_links(&web);
        for (size_t j = 0; j < LINKS_COUNT; j++) {
            add_one(kv, &web.links[j], number++);
        }
    }
    kv_batch_done(&removal);
    kv_free(kv);
    return (struct result){.wall_s = bench_now_s() - start_s, .cpu_s = cpu_s() - start_cpu_s - links_s};
}

/* ---- memory and opening ---- */

static void print_memory(const char *directory, uint64_t count) {
    static struct crawl crawl;
    double before = process_memory("VmRSS");
    double start_s = bench_now_s();
    double start_cpu_s = cpu_s();
    open_crawl(&crawl, directory);
    struct frontier_stat stat;
    frontier_stat(crawl.frontier, &stat);
    printf("%-44s %14.2f s (%.2f s CPU) for %llu known, %llu waiting\n", "opening", bench_now_s() - start_s,
           cpu_s() - start_cpu_s, (unsigned long long)stat.known_count,
           (unsigned long long)stat.waiting_count);
    double n = (double)count;
    printf("%-44s %14.1f bytes by its own count, %.1f of the process\n", "memory of a known URL",
           (double)stat.memory_size / n, (process_memory("VmRSS") - before) / n);
    frontier_close(crawl.frontier);
}

static void grow(const char *directory, uint64_t from, uint64_t to) {
    static struct crawl crawl;
    struct frontier_stat stat;
    double start_s = bench_now_s();
    double start_cpu_s = cpu_s();
    open_crawl(&crawl, directory);
    add_pages(&crawl, from, to);
    frontier_stat(crawl.frontier, &stat);
    frontier_close(crawl.frontier);
    double added = (double)(to - from);
    bench_row("frontier: URLs added", added / (bench_now_s() - start_s), "URLs/s", 0);
    printf("%-44s %14.2f us CPU; %.1f bytes each while growing\n", "frontier: a URL added",
           (cpu_s() - start_cpu_s) / added * 1e6, (double)stat.memory_size / (double)to);
}

static void print_row(const char *what, struct result result, uint64_t count, const struct result *base,
                      uint64_t base_count) {
    double rate = (double)count / result.wall_s;
    double base_rate = (double)base_count / base->wall_s;
    bench_row(what, rate, "URLs/s", base_rate / rate);
    printf("%-44s %14.2f us CPU     %6.2fx\n", "", result.cpu_s / (double)count * 1e6,
           (result.cpu_s / (double)count) / (base->cpu_s / (double)base_count));
}

int main(int arguments_count, char **arguments) {
    uint64_t count = arguments_count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000;
    uint64_t known_count = arguments_count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    char parent[] = "/tmp/mnemon-bench-frontier-XXXXXX";
    char directory[64];
    char other[64];
    must(count >= OTHERS_COUNT && mkdtemp(parent) != NULL, "a directory");
    snprintf(directory, sizeof directory, "%s/frontier", parent);
    snprintf(other, sizeof other, "%s/small", parent);
    struct result small = crawl_frontier(other, OTHERS_COUNT, 0);
    print_row("frontier, the first 30,000", small, OTHERS_COUNT, &small, OTHERS_COUNT);
    snprintf(other, sizeof other, "%s/sqlite", parent);
    print_row("SQLite, 100 URLs a transaction", crawl_sqlite(other, OTHERS_COUNT), OTHERS_COUNT, &small,
              OTHERS_COUNT);
    snprintf(other, sizeof other, "%s/rocksdb", parent);
    print_row("RocksDB, get and put for each", crawl_rocksdb(other, OTHERS_COUNT), OTHERS_COUNT, &small,
              OTHERS_COUNT);
    snprintf(other, sizeof other, "%s/paced", parent);
    print_row("frontier, at 10,000 a second", crawl_frontier(other, PACED_COUNT, 10000), PACED_COUNT, &small,
              OTHERS_COUNT);
    struct result result = crawl_frontier(directory, count, 0);
    print_row("frontier, all", result, count, &small, OTHERS_COUNT);
    for (size_t i = 0; i < PARTS; i += PARTS - 1) {
        double part = (double)count / PARTS;
        printf("%-44s %14.0f URLs/s, %.2f us CPU\n",
               i == 0 ? "frontier, first tenth" : "frontier, last tenth", part / result.part_wall_s[i],
               result.part_cpu_s[i] / part * 1e6);
    }
    print_memory(directory, count);
    if (known_count > count) {
        grow(directory, count, known_count);
        print_memory(directory, known_count);
    }
    printf("%-44s %14.1f MB\n", "peak of the process", process_memory("VmHWM") / 1e6);
    remove_tree(parent);
    return 0;
}
