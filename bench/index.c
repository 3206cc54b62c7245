/*
 * The index against a sorted CDXJ file with binary search, which is what pywb reads.
 *
 * N captures (argument, 1,000,000) as two crawls make them: three quarters are first captures of URLs, one
 * quarter are payloads that were there already, four in five of them of the same URL. URLs have words, ids,
 * capitals, queries, "www." as in a crawl's frontier; SURTs are made by surt_put(); times have random
 * microseconds; signatures are random. The other side searches as pywb does, by reading blocks of 8 KiB, but
 * in C and without parsing the JSON of what it finds.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/prng.h"
#include "base/utc.h"
#include "bench.h"
#include "store/index/index.h"
#include "store/index/index_batch.h"
#include "store/index/index_cursor.h"
#include "store/kv/kv.h"
#include "urls.h"
#include "web/url/canon.h"
#include "web/url/surt.h"
#include "web/url/url.h"

enum { BATCH_COUNT = 100, LOOKUPS_COUNT = 100000, ROUNDS = 3, CDXJ_BLOCK_SIZE = 8192 };
static const size_t TEXT_SIZE_MAX = (size_t)1 << 36;

struct corpus {
    struct capture *captures;
    struct block *blocks; /* one of each first capture */
    size_t count;
    size_t first_count; /* captures of a payload that is new; then come those of the same URL … */
    size_t same_count;  /* … and then those of other URLs */
    struct buf text;
    double cdxj_line_size;
};

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-index: %s failed\n", what);
        exit(1);
    }
}

/* ---- captures as they come ---- */

/* Offsets of slices whose buffer still moves; finish_slices() turns them into pointers. */
static struct bytes offset_slice(size_t from, size_t to) {
    return (struct bytes){(const uint8_t *)from, to - from};
}

static void make_url(struct corpus *corpus, struct prng *prng, struct capture *capture, uint64_t number) {
    static const char *const mimes[] = {"text/html",  "text/html",     "text/html", "image/jpeg",
                                        "image/jpeg", "image/png",     "text/css",  "application/javascript",
                                        "font/woff2", "video/x-ms-wmv"};
    struct url url;
    struct canon canon;
    struct buf text;
    url_init(&url);
    canon_init(&canon);
    buf_init(&text, URL_SIZE_MAX);
    urls_put(&text, prng, corpus->count, number);
    must(url_parse(&url, buf_bytes(&text), NULL, NULL) == ERR_OK, "url_parse");
    must(canon_run(&canon, url_href(&url), NULL) == ERR_OK, "canon_run");
    size_t start = corpus->text.size;
    buf_put(&corpus->text, url_href(&url));
    size_t middle = corpus->text.size;
    surt_put(&corpus->text, &canon);
    capture->url = offset_slice(start, middle);
    capture->surt = offset_slice(middle, corpus->text.size);
    capture->mime = bytes_of_string(mimes[prng_below(prng, sizeof mimes / sizeof *mimes)]);
    buf_done(&text);
    canon_done(&canon);
    url_done(&url);
}

static void make_capture(struct corpus *corpus, size_t i) {
    struct capture *capture = &corpus->captures[i];
    struct prng prng;
    prng_init_stream(&prng, 1, i);
    if (i < corpus->first_count) {
        make_url(corpus, &prng, capture, i);
        capture->status = prng_chance_ppm(&prng, 850000) ? 200 : prng_chance_ppm(&prng, 600000) ? 301 : 404;
        prng_fill(&prng, capture->digest, sizeof capture->digest);
        capture->location.length = (uint32_t)(500 + prng_exponential(&prng, 12000));
        return;
    }
    *capture = corpus->captures[prng_below(&prng, corpus->first_count)];
    capture->flags = CAPTURE_REVISIT;
    capture->location.length = (uint32_t)(400 + prng_below(&prng, 200));
    if (i >= corpus->first_count + corpus->same_count) {
        make_url(corpus, &prng, capture, i);
    }
}

static void finish_slices(struct corpus *corpus) {
    for (size_t i = 0; i < corpus->count; i++) {
        struct capture *capture = &corpus->captures[i];
        capture->url.data = corpus->text.data + (size_t)capture->url.data;
        capture->surt.data = corpus->text.data + (size_t)capture->surt.data;
    }
}

static void make_corpus(struct corpus *corpus, size_t count) {
    *corpus = (struct corpus){.count = count, .first_count = count * 3 / 4};
    corpus->same_count = (count - corpus->first_count) * 4 / 5;
    corpus->captures = calloc(count, sizeof *corpus->captures);
    corpus->blocks = calloc(corpus->first_count, sizeof *corpus->blocks);
    must(corpus->captures != NULL && corpus->blocks != NULL, "calloc");
    buf_init(&corpus->text, TEXT_SIZE_MAX);
    struct prng prng;
    prng_init(&prng, 2);
    struct location end = {.segment = 1};
    int64_t time_us = INT64_C(1767225600) * 1000000; /* 2026-01-01 */
    for (size_t i = 0; i < count; i++) {
        struct capture *capture = &corpus->captures[i];
        make_capture(corpus, i);
        time_us += (int64_t)prng_exponential(&prng, 30000);
        capture->time_us = time_us;
        capture->location.segment = end.segment;
        capture->location.offset = end.offset;
        end.offset += capture->location.length;
        if (end.offset > (uint64_t)1 << 30) {
            end = (struct location){.segment = end.segment + 1};
        }
        if (i < corpus->first_count) {
            corpus->blocks[i] = (struct block){
                .location = capture->location,
                .size = capture->location.length * UINT64_C(3),
                .references = 1,
                .records_count = 1,
            };
        }
    }
    must(corpus->text.err == ERR_OK, "the text of the corpus");
    finish_slices(corpus);
}

/* ---- the index ---- */

static struct index *open_index(const char *directory) {
    struct index *index = NULL;
    struct err_detail detail = {0};
    if (index_open(directory, &index, &detail) != ERR_OK) {
        fprintf(stderr, "bench-index: %s\n", detail.text);
        exit(1);
    }
    return index;
}

struct parts {
    bool captures;
    bool blocks;
};

/* Seconds taken. */
static double insert(struct index *index, const struct corpus *corpus, size_t from, size_t to,
                     struct parts parts) {
    double start_s = bench_now_s();
    struct index_batch *batch = index_batch_new();
    for (size_t i = from; i < to; i++) {
        const struct capture *capture = &corpus->captures[i];
        if (parts.captures) {
            index_batch_put_capture(batch, capture);
        }
        if (parts.blocks && i < corpus->first_count) {
            index_batch_put_block(batch, capture->digest, 0, &corpus->blocks[i]);
        }
        if ((i + 1) % BATCH_COUNT == 0 || i + 1 == to) {
            struct index_segment segment = {.size = capture->location.offset, .records_count = (uint32_t)i};
            struct index_position position = {capture->location.segment, capture->location.offset};
            index_batch_put_segment(batch, position.segment, &segment);
            index_batch_set_position(batch, &position);
            must(index_commit(index, batch, NULL) == ERR_OK, "index_commit");
        }
    }
    must(kv_sync(index_kv(index), NULL) == ERR_OK, "kv_sync");
    index_batch_free(batch);
    return bench_now_s() - start_s;
}

static double disk_size(struct index *index) {
    struct index_counts counts;
    must(kv_compact(index_kv(index), NULL) == ERR_OK, "kv_compact");
    index_counts(index, &counts);
    return (double)counts.disk_size;
}

static void print_size(const char *what, double size, double ratio) {
    printf("%-44s %14.1f %-10s", what, size, "bytes");
    printf(ratio > 0 ? " %6.2fx\n" : "\n", ratio);
}

/* What each kind of entry adds to the files, merged after each kind. */
static void measure_layout(const char *directory, const struct corpus *corpus) {
    struct index *index = open_index(directory);
    size_t first = corpus->first_count;
    size_t same = first + corpus->same_count;
    insert(index, corpus, 0, first, (struct parts){.blocks = true});
    double blocks = disk_size(index);
    insert(index, corpus, 0, first, (struct parts){.captures = true});
    double captures = disk_size(index);
    insert(index, corpus, first, same, (struct parts){.captures = true});
    double same_url = disk_size(index);
    insert(index, corpus, same, corpus->count, (struct parts){.captures = true});
    double other_url = disk_size(index);
    index_close(index);
    print_size("disk: a block", blocks / (double)first, 0);
    print_size("disk: a first capture", (captures - blocks) / (double)first, 0);
    print_size("disk: a duplicate of the same URL", (same_url - captures) / (double)(same - first), 0);
    print_size("disk: a duplicate of another URL", (other_url - same_url) / (double)(corpus->count - same),
               0);
    double duplicate = (other_url - captures) / (double)(corpus->count - first);
    print_size("disk: a duplicate, 4 to 1", duplicate, 0);
    print_size("disk: a capture, all of them", (other_url - blocks) / (double)corpus->count,
               corpus->cdxj_line_size * (double)corpus->count / (other_url - blocks));
    print_size("disk: a capture with its block", other_url / (double)corpus->count, 0);
    print_size("disk: a line of CDXJ", corpus->cdxj_line_size, 1);
    must(index_destroy(directory, NULL) == ERR_OK, "index_destroy");
}

/* Keys put and found; the sum keeps the work from being optimised away. */
static size_t find_blocks(struct index *index, const struct corpus *corpus, uint8_t change) {
    size_t found = 0;
    struct prng prng;
    prng_init(&prng, 3);
    for (int i = 0; i < LOOKUPS_COUNT; i++) {
        uint8_t digest[KEY_DIGEST_SIZE];
        struct block block;
        memcpy(digest, corpus->captures[prng_below(&prng, corpus->first_count)].digest, sizeof digest);
        digest[KEY_DIGEST_SIZE - 1] ^= change;
        found += index_find_block(index, digest, 0, &block) == ERR_OK;
    }
    return found;
}

static size_t find_newest(struct index *index, const struct corpus *corpus, const char *suffix) {
    size_t found = 0;
    struct prng prng;
    struct buf surt, from, to;
    buf_init(&surt, URL_SIZE_MAX);
    buf_init(&from, INDEX_SURT_SIZE_MAX);
    buf_init(&to, INDEX_SURT_SIZE_MAX);
    prng_init(&prng, 4);
    for (int i = 0; i < LOOKUPS_COUNT; i++) {
        struct index_cursor *cursor = NULL;
        struct capture capture;
        buf_clear(&surt);
        buf_clear(&from);
        buf_clear(&to);
        buf_put(&surt, corpus->captures[prng_below(&prng, corpus->count)].surt);
        buf_put_string(&surt, suffix);
        index_put_capture_prefix(&from, buf_bytes(&surt), INT64_MIN);
        index_put_capture_prefix(&to, buf_bytes(&surt), INT64_MAX);
        must(index_cursor_open(index, buf_bytes(&from), buf_bytes(&to), true, &cursor) == ERR_OK, "cursor");
        found += index_cursor_next(cursor, &capture) == ERR_OK;
        index_cursor_close(cursor);
    }
    buf_done(&surt);
    buf_done(&from);
    buf_done(&to);
    return found;
}

static size_t scan(struct index *index, struct bytes from, struct bytes to) {
    struct index_cursor *cursor = NULL;
    struct capture capture;
    size_t count = 0;
    must(index_cursor_open(index, from, to, false, &cursor) == ERR_OK, "cursor");
    while (index_cursor_next(cursor, &capture) == ERR_OK) {
        count++;
    }
    index_cursor_close(cursor);
    return count;
}

/* ---- the sorted file ---- */

struct cdxj {
    int fd;
    size_t size;
};

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void put_line(struct buf *out, const struct capture *capture) {
    char digits[UTC_DIGITS_SIZE];
    char digest[2 * KEY_DIGEST_SIZE + 1];
    utc_format_digits(capture->time_us, digits);
    hex_encode(bytes_of(capture->digest, KEY_DIGEST_SIZE), digest);
    buf_put(out, capture->surt);
    buf_put_format(out, " %s {\"url\": \"", digits);
    buf_put(out, capture->url);
    buf_put_format(out, "\", \"mime\": \"%.*s\", \"status\": \"%u\", \"digest\": \"sha256:%s\", ",
                   BYTES_ARG(capture->mime), capture->status, digest);
    buf_put_format(out, "\"length\": \"%u\", \"offset\": \"%llu\", \"filename\": \"%08u.warc.gz\"}\n",
                   capture->location.length, (unsigned long long)capture->location.offset,
                   capture->location.segment);
    buf_put_byte(out, '\0');
}

static void write_cdxj(const char *path, struct corpus *corpus) {
    struct buf text;
    size_t *starts = calloc(corpus->count, sizeof *starts);
    const char **lines = calloc(corpus->count, sizeof *lines);
    FILE *file = fopen(path, "w");
    must(starts != NULL && lines != NULL && file != NULL, "the sorted file");
    buf_init(&text, TEXT_SIZE_MAX);
    for (size_t i = 0; i < corpus->count; i++) {
        starts[i] = text.size;
        put_line(&text, &corpus->captures[i]);
    }
    must(text.err == ERR_OK, "the text of the sorted file");
    for (size_t i = 0; i < corpus->count; i++) {
        lines[i] = (const char *)text.data + starts[i];
    }
    qsort(lines, corpus->count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < corpus->count; i++) {
        fputs(lines[i], file);
    }
    corpus->cdxj_line_size = (double)ftell(file) / (double)corpus->count;
    must(fclose(file) == 0, "the sorted file");
    buf_done(&text);
    free(starts);
    free(lines);
}

/* The lines that begin in `count` blocks from this one on; the last one may be cut. */
static struct bytes read_lines(const struct cdxj *cdxj, size_t block, size_t count,
                               char text[2 * CDXJ_BLOCK_SIZE]) {
    ssize_t size = pread(cdxj->fd, text, count * CDXJ_BLOCK_SIZE, (off_t)(block * CDXJ_BLOCK_SIZE));
    must(size >= 0, "pread");
    struct bytes bytes = bytes_of(text, (size_t)size);
    size_t skip = block == 0 ? 0 : bytes_find_byte(bytes, '\n') + 1;
    return bytes_skip(bytes, skip < bytes.size ? skip : bytes.size);
}

/* The last line of the SURT's; its captures are assumed to fit into two blocks, which they do here. */
static bool cdxj_newest(const struct cdxj *cdxj, struct bytes key) {
    char text[2 * CDXJ_BLOCK_SIZE];
    size_t low = 0;
    size_t high = cdxj->size / CDXJ_BLOCK_SIZE + 1;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        struct bytes lines = read_lines(cdxj, middle, 1, text);
        bool is_behind = lines.size > 0 && /* no line begins in the last block, perhaps */
                         bytes_compare(key, bytes_slice(lines, 0, bytes_find_byte(lines, '\n'))) > 0;
        if (is_behind) {
            low = middle;
        } else {
            high = middle;
        }
    }
    struct bytes rest = read_lines(cdxj, low, 2, text);
    struct bytes line;
    bool is_found = false;
    while (bytes_split(&rest, '\n', &line) && bytes_compare(line, key) < 0) {
    }
    for (; bytes_starts_with(line, key); is_found = true) {
        if (!bytes_split(&rest, '\n', &line)) {
            return true;
        }
    }
    return is_found;
}

static size_t find_newest_cdxj(const struct cdxj *cdxj, const struct corpus *corpus, const char *suffix) {
    size_t found = 0;
    struct prng prng;
    struct buf key;
    buf_init(&key, URL_SIZE_MAX);
    prng_init(&prng, 4);
    for (int i = 0; i < LOOKUPS_COUNT; i++) {
        buf_clear(&key);
        buf_put(&key, corpus->captures[prng_below(&prng, corpus->count)].surt);
        buf_put_string(&key, suffix);
        buf_put_byte(&key, ' ');
        found += cdxj_newest(cdxj, buf_bytes(&key));
    }
    buf_done(&key);
    return found;
}

/* ---- measuring ---- */

static double memory_size(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    must(file != NULL && fscanf(file, "%*d %ld", &pages) == 1, "/proc/self/statm");
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

enum row { BLOCK_HIT, BLOCK_MISS, NEWEST_HIT, NEWEST_MISS, CDXJ_HIT, CDXJ_MISS, SCAN_PREFIX, SCAN_ALL, ROWS };

/* Things done, of which it is told how many there were. */
static size_t run_row(enum row row, struct index *index, const struct cdxj *cdxj,
                      const struct corpus *corpus) {
    switch (row) {
    case BLOCK_HIT:
        must(find_blocks(index, corpus, 0) == LOOKUPS_COUNT, "index_find_block");
        return LOOKUPS_COUNT;
    case BLOCK_MISS:
        must(find_blocks(index, corpus, 1) == 0, "missing a block");
        return LOOKUPS_COUNT;
    case NEWEST_HIT:
        must(find_newest(index, corpus, "") == LOOKUPS_COUNT, "finding the newest");
        return LOOKUPS_COUNT;
    case NEWEST_MISS:
        must(find_newest(index, corpus, "-") == 0, "missing a SURT");
        return LOOKUPS_COUNT;
    case CDXJ_HIT:
        must(find_newest_cdxj(cdxj, corpus, "") == LOOKUPS_COUNT, "finding a line");
        return LOOKUPS_COUNT;
    case CDXJ_MISS:
        must(find_newest_cdxj(cdxj, corpus, "-") == 0, "missing a line");
        return LOOKUPS_COUNT;
    case SCAN_PREFIX:
        return scan(index, BYTES("org,"), BYTES("org,\xff"));
    case SCAN_ALL:
    case ROWS:
        break;
    }
    return scan(index, BYTES(""), BYTES(""));
}

static void measure_reading(struct index *index, const struct cdxj *cdxj, const struct corpus *corpus) {
    double best[ROWS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        for (enum row row = 0; row < ROWS; row++) {
            double start_s = bench_now_s();
            double rate = (double)run_row(row, index, cdxj, corpus) / (bench_now_s() - start_s);
            best[row] = rate > best[row] ? rate : best[row];
        }
    }
    bench_row("find a block, hit", best[BLOCK_HIT], "lookups/s", 0);
    bench_row("find a block, miss", best[BLOCK_MISS], "lookups/s", 0);
    bench_row("newest capture of a SURT, hit", best[NEWEST_HIT], "lookups/s",
              best[NEWEST_HIT] / best[CDXJ_HIT]);
    bench_row("newest capture of a SURT, miss", best[NEWEST_MISS], "lookups/s",
              best[NEWEST_MISS] / best[CDXJ_MISS]);
    bench_row("newest line of a SURT, sorted CDXJ, hit", best[CDXJ_HIT], "lookups/s", 1);
    bench_row("newest line of a SURT, sorted CDXJ, miss", best[CDXJ_MISS], "lookups/s", 1);
    bench_row("walk all of \"org,\"", best[SCAN_PREFIX], "captures/s", 0);
    bench_row("walk everything", best[SCAN_ALL], "captures/s", 0);
}

static struct cdxj open_cdxj(const char *path) {
    struct stat status;
    struct cdxj cdxj = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
    must(cdxj.fd >= 0 && fstat(cdxj.fd, &status) == 0, path);
    cdxj.size = (size_t)status.st_size;
    return cdxj;
}

static void measure_speed(const char *directory, const char *path, const struct corpus *corpus) {
    double before = memory_size();
    struct index *index = open_index(directory);
    double taken_s = insert(index, corpus, 0, corpus->count, (struct parts){true, true});
    bench_row("insert, batches of 100, with blocks", (double)corpus->count / taken_s, "captures/s", 0);
    index_close(index);
    double start_s = bench_now_s();
    index = open_index(directory);
    printf("%-44s %14.0f ms\n", "open again, with the log of the newest", (bench_now_s() - start_s) * 1000);
    struct cdxj cdxj = open_cdxj(path);
    measure_reading(index, &cdxj, corpus);
    close(cdxj.fd);
    struct index_counts counts;
    index_counts(index, &counts);
    printf("%-44s %14.0f MiB, of which RocksDB counts %.0f\n", "memory of the process, grown by",
           (memory_size() - before) / (1 << 20), (double)counts.memory_size / (1 << 20));
    index_close(index);
    must(index_destroy(directory, NULL) == ERR_OK, "index_destroy");
}

int main(int count, char **arguments) {
    size_t captures_count = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000;
    must(captures_count >= 1000, "a count of at least 1000");
    const char *parent = getenv("TMPDIR");
    char directory[4096];
    char index_path[4200];
    char cdxj_path[4200];
    snprintf(directory, sizeof directory, "%s/mnemon-bench-XXXXXX", parent != NULL ? parent : "/tmp");
    must(mkdtemp(directory) != NULL, "mkdtemp");
    snprintf(index_path, sizeof index_path, "%s/index", directory);
    snprintf(cdxj_path, sizeof cdxj_path, "%s/index.cdxj", directory);
    static struct corpus corpus;
    make_corpus(&corpus, captures_count);
    printf("%zu captures, %zu of them duplicates; URL and SURT have %zu bytes on average\n", corpus.count,
           corpus.count - corpus.first_count, corpus.text.size / corpus.count / 2);
    write_cdxj(cdxj_path, &corpus);
    measure_speed(index_path, cdxj_path, &corpus);
    measure_layout(index_path, &corpus);
    unlink(cdxj_path);
    rmdir(directory);
    buf_done(&corpus.text);
    free(corpus.captures);
    free(corpus.blocks);
    return 0;
}
