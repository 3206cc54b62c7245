#include <zdict.h>
#include <zlib.h>
#include <zstd.h>

#include "store.h"

enum { TRAINING_COUNT = 1000, DICTIONARY_SIZE = 112 << 10 };

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

/* Pages until the volume has its dictionary: the rest of the archive is what counts. */
static size_t start_count(const struct set *pages) {
    return pages->count < TRAINING_COUNT ? pages->count : TRAINING_COUNT;
}

static void train_volume(struct place *place, const struct set *pages, struct volume_stat *ret_stat) {
    struct job job = {
        .work = work_put, .threads = 16, .count = start_count(pages), .place = place, .set = pages};
    job_run(&job);
    volume_stat(place->volume, ret_stat);
    while (ret_stat->segments_count < 2) { /* the second one begins with the dictionary */
        struct job one = {.work = work_put, .threads = 1, .count = 1, .place = place, .set = pages};
        job_run(&one);
        volume_stat(place->volume, ret_stat);
    }
}

/* Bytes of a page: the body alone compressed in three ways, and all that the volume keeps for it. */
void bench_space(const struct sets *sets) {
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
    struct volume_stat start;
    struct volume_stat stat;
    train_volume(&place, &sets->pages, &start);
    struct job job = {.work = work_put, .threads = 16, .count = rest.count, .place = &place, .set = &rest};
    job_run(&job);
    volume_stat(place.volume, &stat);
    place_close(&place);
    place_remove("space");
    printf("\nspace: %zu pages, against gzip -6\n", rest.count);
    space_row("as they are", rest.size, rest.count, gzip);
    space_row("gzip -6, body alone", gzip, rest.count, gzip);
    space_row("zstd -3, body alone", plain, rest.count, gzip);
    space_row("zstd -3, dictionary of 1,000 others", trained, rest.count, gzip);
    space_row("volume, whole records (target 0.75x)", stat.size - start.size, rest.count, gzip);
    printf("the first %zu pages, before there was a dictionary, took %.0f bytes each\n",
           start_count(&sets->pages), (double)start.size / (double)start_count(&sets->pages));
    ZSTD_freeCDict(dictionary);
    ZSTD_freeCCtx(zstd);
    free(out);
}
