/*
 * warc - writing and reading WARC files, against the loop that one writes first: a new zlib stream for every
 * record, and against the usual commands.
 *
 * Pages of about 12 KB, made of words and tags. Both sides compute both digests when they write; when they
 * read, mnemon parses headers and HTTP heads and makes index entries, the others only decompress. MB are
 * those of unpacked records.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "../tests/unit/cdxj-indexer.h"
#include "base/prng.h"
#include "base/sha256.h"
#include "bench.h"
#include "warc/warc_check.h"
#include "warc/warc_writer.h"

enum {
    PAGES = 2000,
    PAGE_SIZE = 12 << 10,
    WORDS = 4000,
    ROUNDS = 3,
    FILE_SIZE_MAX = 256 << 20,
    OUT_SIZE = 1 << 20,
};

static const char http_head[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: nginx\r\n\r\n";

struct bench {
    struct buf pages[PAGES];
    struct buf files[3]; /* as mnemon wrote them, by framing */
    struct buf naive[3]; /* as the loops did */
    struct prng prng;
    struct sha256 sha256;
    uint8_t *out;
    size_t unpacked_size;
};

static void check(bool is_good, const char *what) {
    if (!is_good) {
        fprintf(stderr, "bench-warc: %s failed\n", what);
        exit(1);
    }
}

/* Frequent words are short, as in languages. */
static void put_word(struct buf *page, struct prng *prng) {
    uint64_t rank = prng_below(prng, prng_between(prng, 1, WORDS));
    for (uint64_t left = rank + 7; left > 0; left /= 11) {
        buf_put_byte(page, (uint8_t)('a' + (rank * 7 + left) % 26));
    }
}

static void make_page(struct buf *page, struct prng *prng) {
    buf_init(page, 2 * PAGE_SIZE);
    buf_put_string(page, "<!doctype html><html><head><meta charset=\"utf-8\"><title>");
    put_word(page, prng);
    buf_put_string(page, "</title><link rel=\"stylesheet\" href=\"/style.css\"></head><body>\n");
    while (page->size < PAGE_SIZE) {
        buf_put_string(page, "<div class=\"paragraph\"><p>");
        for (uint64_t words = prng_between(prng, 10, 60); words > 0; words--) {
            put_word(page, prng);
            buf_put_byte(page, ' ');
        }
        buf_put_format(page, "<a href=\"/page/%llu.html\">", (unsigned long long)prng_below(prng, 100000));
        put_word(page, prng);
        buf_put_string(page, "</a></p></div>\n");
    }
    buf_put_string(page, "</body></html>\n");
    check(page->err == ERR_OK, "making pages");
}

static void fill(void *context, void *out, size_t size) {
    prng_fill(context, out, size);
}

static double write_mnemon(struct bench *bench, enum pack_framing framing) {
    struct buf *file = &bench->files[framing];
    struct sink_buf sink;
    struct warc_writer *writer = malloc(sizeof *writer);
    struct pack_options options = {.framing = framing};
    buf_clear(file);
    sink_buf_init(&sink, file);
    check(writer != NULL &&
              warc_writer_init(writer, &sink.sink, 0, &options,
                               (struct warc_random){.fill = fill, .context = &bench->prng}) == ERR_OK,
          "the writer");
    double start = bench_now_s();
    for (size_t i = 0; i < PAGES; i++) {
        struct warc_written written;
        struct warc_draft draft = {.type = WARC_TYPE_RESPONSE,
                                   .date_us = (int64_t)i * 1000000,
                                   .target_uri = BYTES("http://www.example.org/some/page.html"),
                                   .ip_address = BYTES("192.0.2.1"),
                                   .head = bytes_of_string(http_head),
                                   .body = buf_bytes(&bench->pages[i])};
        check(warc_writer_put(writer, &draft, &written, NULL) == ERR_OK, "writing");
    }
    double seconds = bench_now_s() - start;
    warc_writer_done(writer);
    free(writer);
    return seconds;
}

static void naive_gzip(struct bench *bench, struct bytes record, struct buf *file) {
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)record.data,
                       .avail_in = (uInt)record.size,
                       .next_out = bench->out,
                       .avail_out = OUT_SIZE};
    check(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflateInit2");
    check(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
    buf_put(file, bytes_of(bench->out, stream.total_out));
    deflateEnd(&stream);
}

/* Headers by printf, digests at once, a new stream per record. */
static double write_naive(struct bench *bench, enum pack_framing framing) {
    struct buf *file = &bench->naive[framing];
    struct buf record;
    buf_init(&record, OUT_SIZE);
    buf_clear(file);
    double start = bench_now_s();
    for (size_t i = 0; i < PAGES; i++) {
        uint8_t digests[2][SHA256_SIZE];
        struct bytes page = buf_bytes(&bench->pages[i]);
        buf_clear(&record);
        buf_put_string(&record, http_head);
        buf_put(&record, page);
        sha256_digest(&bench->sha256, buf_bytes(&record), digests[0]);
        sha256_digest(&bench->sha256, page, digests[1]);
        buf_clear(&record);
        buf_put_format(&record, "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: %s\r\n",
                       "http://www.example.org/");
        for (size_t d = 0; d < 2; d++) {
            buf_put_string(&record, "WARC-Digest: sha256:");
            for (size_t b = 0; b < SHA256_SIZE; b++) {
                buf_put_format(&record, "%02x", digests[d][b]);
            }
        }
        buf_put_format(&record, "\r\nContent-Length: %zu\r\n\r\n%s", page.size + sizeof http_head - 1,
                       http_head);
        buf_put(&record, page);
        buf_put_string(&record, "\r\n\r\n");
        if (framing == PACK_GZIP) {
            naive_gzip(bench, buf_bytes(&record), file);
        } else if (framing == PACK_ZSTD) {
            size_t size = ZSTD_compress(bench->out, OUT_SIZE, record.data, record.size, 3);
            check(!ZSTD_isError(size), "ZSTD_compress");
            buf_put(file, bytes_of(bench->out, size));
        } else {
            buf_put(file, buf_bytes(&record));
        }
    }
    double seconds = bench_now_s() - start;
    check(file->err == ERR_OK, "the naive loop");
    buf_done(&record);
    return seconds;
}

static double read_index(struct bench *bench, enum pack_framing framing) {
    struct cdxj_indexer *indexer = malloc(sizeof *indexer);
    struct source_memory memory;
    struct buf line;
    size_t count = 0;
    buf_init(&line, 1 << 20);
    check(indexer != NULL && cdxj_indexer_init(indexer, NULL) == ERR_OK, "the indexer");
    source_memory_init(&memory, buf_bytes(&bench->files[framing]));
    cdxj_indexer_open(indexer, &memory.source, BYTES("bench.warc"));
    double start = bench_now_s();
    for (bool found = true; found;) {
        check(cdxj_indexer_next(indexer, &found, NULL) == ERR_OK, "indexing");
        buf_clear(&line);
        count += found && cdxj_put(&line, &indexer->entry) == ERR_OK;
    }
    double seconds = bench_now_s() - start;
    check(count == PAGES, "finding all pages");
    cdxj_indexer_done(indexer);
    free(indexer);
    buf_done(&line);
    return seconds;
}

/* As `verify` does it: every byte, both digests. */
static double read_verify(struct bench *bench, enum pack_framing framing) {
    struct warc_reader *reader = malloc(sizeof *reader);
    struct warc_check *digests = malloc(sizeof *digests);
    struct source_memory memory;
    check(reader != NULL && digests != NULL && warc_reader_init(reader, NULL) == ERR_OK &&
              warc_check_init(digests) == ERR_OK,
          "the reader");
    source_memory_init(&memory, buf_bytes(&bench->files[framing]));
    warc_reader_open(reader, &memory.source);
    double start = bench_now_s();
    for (bool found = true; found;) {
        check(warc_reader_next(reader, &found, NULL) == ERR_OK, "reading");
        if (!found) {
            break;
        }
        struct bytes piece;
        warc_check_start(digests, &reader->record);
        do {
            check(warc_reader_read(reader, &piece, NULL) == ERR_OK, "reading");
            warc_check_feed(digests, piece);
        } while (piece.size > 0);
        warc_check_finish(digests);
        check(digests->block == WARC_CHECK_EQUAL && digests->payload == WARC_CHECK_EQUAL, "the check");
    }
    double seconds = bench_now_s() - start;
    warc_reader_done(reader);
    warc_check_done(digests);
    free(reader);
    free(digests);
    return seconds;
}

/* Only decompress, a new stream per member. */
static double read_naive_gzip(struct bench *bench) {
    struct bytes rest = buf_bytes(&bench->files[PACK_GZIP]);
    double start = bench_now_s();
    while (rest.size > 0) {
        z_stream stream = {.next_in = (uint8_t *)(uintptr_t)rest.data,
                           .avail_in = (uInt)rest.size,
                           .next_out = bench->out,
                           .avail_out = OUT_SIZE};
        check(inflateInit2(&stream, 15 + 16) == Z_OK && inflate(&stream, Z_FINISH) == Z_STREAM_END,
              "inflate");
        rest = bytes_skip(rest, stream.total_in);
        inflateEnd(&stream);
    }
    return bench_now_s() - start;
}

static double read_naive_zstd(struct bench *bench) {
    struct bytes rest = buf_bytes(&bench->files[PACK_ZSTD]);
    double start = bench_now_s();
    while (rest.size > 0) {
        size_t size = ZSTD_findFrameCompressedSize(rest.data, rest.size);
        check(!ZSTD_isError(size) && !ZSTD_isError(ZSTD_decompress(bench->out, OUT_SIZE, rest.data, size)),
              "ZSTD_decompress");
        rest = bytes_skip(rest, size);
    }
    return bench_now_s() - start;
}

/* The command as people use it, on a file; 0 where it is not installed. */
static double read_command(struct bench *bench, enum pack_framing framing, const char *command) {
    char path[] = "/tmp/bench-warc-XXXXXX";
    char line[256];
    int descriptor = mkstemp(path);
    struct sink_file sink;
    check(descriptor >= 0, "a temporary file");
    sink_file_init(&sink, descriptor);
    check(sink_append(&sink.sink, buf_bytes(&bench->files[framing]), NULL) == ERR_OK, "a temporary file");
    close(descriptor);
    snprintf(line, sizeof line, "%s <%s >/dev/null 2>&1", command, path);
    double start = bench_now_s();
    int status = system(line);
    double seconds = bench_now_s() - start;
    unlink(path);
    return status == 0 ? seconds : 0;
}

static double least(double best, double seconds) {
    return best == 0 || seconds < best ? seconds : best;
}

static void bench_write(struct bench *bench) {
    static const char *const names[] = {"plain", "gzip -6", "zstd -3"};
    for (int framing = PACK_PLAIN; framing <= PACK_ZSTD; framing++) {
        double ours = 0;
        double naive = 0;
        char what[64];
        for (int round = 0; round < ROUNDS; round++) {
            naive = least(naive, write_naive(bench, (enum pack_framing)framing));
            ours = least(ours, write_mnemon(bench, (enum pack_framing)framing));
        }
        snprintf(what, sizeof what, "write %s: new stream per record", names[framing]);
        bench_row(what, PAGES / naive, "records/s", 0);
        snprintf(what, sizeof what, "write %s: mnemon", names[framing]);
        bench_row(what, PAGES / ours, "records/s", naive / ours);
        printf("    size: %.3f of the naive one\n",
               (double)bench->files[framing].size / (double)bench->naive[framing].size);
    }
}

static void bench_read(struct bench *bench, enum pack_framing framing, const char *name,
                       double (*naive)(struct bench *), const char *command) {
    double index = 0;
    double verify = 0;
    double loop = 0;
    double piped = 0;
    char what[64];
    double megabytes = (double)bench->unpacked_size / 1e6;
    for (int round = 0; round < ROUNDS; round++) {
        loop = naive == NULL ? 0 : least(loop, naive(bench));
        piped = least(piped, read_command(bench, framing, command));
        index = least(index, read_index(bench, framing));
        verify = least(verify, read_verify(bench, framing));
    }
    if (piped > 0) {
        snprintf(what, sizeof what, "read %s: %s", name, command);
        bench_row(what, megabytes / piped, "MB/s", 0);
    }
    if (loop > 0) {
        snprintf(what, sizeof what, "read %s: new stream per record", name);
        bench_row(what, megabytes / loop, "MB/s", 0);
    }
    snprintf(what, sizeof what, "read %s: mnemon, CDXJ index", name);
    bench_row(what, megabytes / index, "MB/s", loop / index);
    snprintf(what, sizeof what, "read %s: mnemon, both digests verified", name);
    bench_row(what, megabytes / verify, "MB/s", 0); /* nobody else hashes */
}

int main(void) {
    struct bench *bench = calloc(1, sizeof *bench);
    check(bench != NULL && (bench->out = malloc(OUT_SIZE)) != NULL && sha256_init(&bench->sha256) == ERR_OK,
          "memory");
    prng_init(&bench->prng, 1);
    for (size_t i = 0; i < PAGES; i++) {
        make_page(&bench->pages[i], &bench->prng);
    }
    for (size_t i = 0; i < 3; i++) {
        buf_init(&bench->files[i], FILE_SIZE_MAX);
        buf_init(&bench->naive[i], FILE_SIZE_MAX);
    }
    bench_write(bench);
    bench->unpacked_size = bench->files[PACK_PLAIN].size;
    bench_read(bench, PACK_PLAIN, "plain", NULL, "cat");
    bench_read(bench, PACK_GZIP, "gzip", read_naive_gzip, "gzip -dc");
    bench_read(bench, PACK_ZSTD, "zstd", read_naive_zstd, "zstd -dc");
    for (size_t i = 0; i < PAGES; i++) {
        buf_done(&bench->pages[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        buf_done(&bench->files[i]);
        buf_done(&bench->naive[i]);
    }
    sha256_done(&bench->sha256);
    free(bench->out);
    free(bench);
    return 0;
}
