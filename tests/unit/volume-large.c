/* volume: documents larger than memory should be come back whole, and take little memory on their way. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/prng.h"
#include "base/scratch.h"
#include "base/sha256.h"
#include "store/volume/compact.h"
#include "store/volume/verify.h"
#include "volume-fixture.h"

enum {
    LARGE_SIZE = 17 << 20, /* above all that the volume keeps in memory */
    HUGE_SIZE = 128 << 20,
    PIECE_SIZE = 1 << 20,
    ANONYMOUS_SIZE_MAX = 64 << 20,
};

/* Append `size` bytes that compress, or do not. */
static void fill(struct scratch *scratch, uint64_t size, bool is_compressible) {
    uint8_t *piece = malloc(PIECE_SIZE);
    struct prng prng;
    prng_init(&prng, size);
    for (uint64_t done = 0; done < size; done += PIECE_SIZE) {
        prng_fill(&prng, piece, PIECE_SIZE);
        for (size_t i = 0; is_compressible && i < PIECE_SIZE; i++) {
            piece[i] = (uint8_t)('a' + piece[i] % 4);
        }
        size_t part = size - done < PIECE_SIZE ? (size_t)(size - done) : PIECE_SIZE;
        assert_int_equal(scratch_put(scratch, bytes_of(piece, part)), ERR_OK);
    }
    free(piece);
}

static struct stored put_large(struct fixture *fixture, struct scratch *body, struct bytes head) {
    struct document document = {
        .url = BYTES("http://example.org/large"),
        .time_us = 1000000,
        .head = head,
        .content_type = BYTES("text/plain"),
    };
    struct stored stored = {0};
    struct err_detail detail = {0};
    assert_int_equal(scratch_bytes(body, &document.body), ERR_OK);
    enum err err = volume_put(fixture->writer, &document, STORE_REGULAR, &stored, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    return stored;
}

static void expect_same(struct fixture *fixture, const struct key *key, struct scratch *body) {
    struct bytes found;
    struct bytes wanted;
    struct err_detail detail = {0};
    enum err err = volume_get(fixture->reader, key, &found, &detail);
    if (err != ERR_OK) {
        fail_msg("%s", err_detail_text(&detail, err));
    }
    assert_int_equal(scratch_bytes(body, &wanted), ERR_OK);
    assert_int_equal(found.size, wanted.size);
    assert_int_equal(memcmp(found.data, wanted.data, found.size), 0);
}

/* A thread that may not be kept for long learns that it is large, without its bytes; others get them. */
static void expect_not_brief(struct fixture *fixture, const struct stored *stored) {
    struct bytes record;
    const struct location *location = &stored->location;
    assert_int_equal(volume_get_brief_record(fixture->reader, location, &record, NULL), ERR_LIMIT);
    assert_int_equal(volume_get_record(fixture->reader, location, &record, NULL), ERR_OK);
    assert_true(record.size > LARGE_SIZE);
}

static void expect_clean(struct fixture *fixture) {
    struct verify_observer observer = {0};
    struct verify_report report;
    assert_int_equal(verify_volume(fixture->volume, &observer, &report, NULL), ERR_OK);
    assert_int_equal(report.damaged_count + report.lost_count, 0);
}

static void use_framing(struct fixture *fixture, enum pack_framing framing) {
    close_volume(fixture);
    fixture->config.framing = framing;
    open_volume(fixture);
}

static void large_documents_read_back_in_all_framings(void **state) {
    struct fixture *fixture = *state;
    static const enum pack_framing framings[] = {PACK_ZSTD, PACK_GZIP, PACK_PLAIN};
    struct scratch bodies[3][2];
    struct key keys[3][2];
    for (size_t i = 0; i < 3; i++) {
        use_framing(fixture, framings[i]);
        for (size_t j = 0; j < 2; j++) {
            scratch_init(&bodies[i][j], fixture->root, SCRATCH_MEMORY_MAX, HUGE_SIZE);
            fill(&bodies[i][j], LARGE_SIZE + i, j == 1);
            struct stored stored = put_large(fixture, &bodies[i][j], bytes_of(NULL, 0));
            keys[i][j] = stored.key;
            expect_same(fixture, &keys[i][j], &bodies[i][j]);
            expect_not_brief(fixture, &stored);
            put(fixture, BYTES("small"), STORE_FORCE_NEW);
        }
    }
    expect_clean(fixture);
    rebuild(fixture);
    assert_int_equal(fixture->recovery.damaged_count, 0);
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 2; j++) {
            expect_same(fixture, &keys[i][j], &bodies[i][j]);
            scratch_done(&bodies[i][j]);
        }
    }
}

static void a_large_document_in_chunks_is_put_together(void **state) {
    struct fixture *fixture = *state;
    struct scratch body;
    struct scratch chunks;
    uint8_t *piece = malloc(PIECE_SIZE);
    scratch_init(&body, fixture->root, SCRATCH_MEMORY_MAX, HUGE_SIZE);
    scratch_init(&chunks, fixture->root, SCRATCH_MEMORY_MAX, HUGE_SIZE);
    fill(&body, LARGE_SIZE, true);
    for (uint64_t at = 0; at < LARGE_SIZE; at += PIECE_SIZE) {
        assert_int_equal(scratch_read(&body, at, piece, PIECE_SIZE), ERR_OK);
        scratch_put(&chunks, BYTES("100000\r\n"));
        scratch_put(&chunks, bytes_of(piece, PIECE_SIZE));
        scratch_put(&chunks, BYTES("\r\n"));
    }
    assert_int_equal(scratch_put(&chunks, BYTES("0\r\n\r\n")), ERR_OK);
    struct key key =
        put_large(fixture, &chunks, BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")).key;
    expect_same(fixture, &key, &body);
    struct stored twin = put_large(fixture, &body, bytes_of(NULL, 0));
    assert_true(twin.is_duplicate);
    assert_memory_equal(&twin.key, &key, sizeof key);
    scratch_done(&body);
    scratch_done(&chunks);
    free(piece);
}

static void a_flipped_bit_of_a_large_document_is_never_returned_as_good(void **state) {
    struct fixture *fixture = *state;
    static const enum pack_framing framings[] = {PACK_ZSTD, PACK_GZIP, PACK_PLAIN};
    for (size_t i = 0; i < 3; i++) {
        struct scratch body;
        use_framing(fixture, framings[i]);
        scratch_init(&body, fixture->root, SCRATCH_MEMORY_MAX, HUGE_SIZE);
        fill(&body, LARGE_SIZE + i, i == 1);
        struct stored stored = put_large(fixture, &body, bytes_of(NULL, 0));
        char path[128];
        newest_segment(fixture, path);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        uint8_t byte;
        off_t at = (off_t)(stored.location.offset + stored.location.length - 1000);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        struct bytes found;
        assert_int_equal(volume_get(fixture->reader, &stored.key, &found, NULL), ERR_CORRUPT);
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        expect_same(fixture, &stored.key, &body);
        scratch_done(&body);
    }
}

/* ---- memory ---- */

struct watch {
    atomic_bool is_stopping;
    atomic_size_t peak;
};

/* Of this process: what the kernel cannot drop. */
static size_t anonymous_size(void) {
    char line[256];
    size_t size = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "RssAnon: %zu kB", &size) == 1) {
            break;
        }
    }
    fclose(file);
    return size * 1024;
}

static void *watch_memory(void *context) {
    struct watch *watch = context;
    while (!watch->is_stopping) {
        size_t size = anonymous_size();
        watch->peak = size > watch->peak ? size : watch->peak;
        usleep(1000); /* between two looks, as long as the work takes */
    }
    return NULL;
}

/* Store, read, verify, compact and rebuild: all that ever touches a document. */
static void handle_huge(struct fixture *fixture, struct scratch *body) {
    struct compact_report report;
    struct stored removed = put(fixture, BYTES("removed"), STORE_REGULAR);
    struct stored stored = put_large(fixture, body, BYTES("HTTP/1.1 200 OK\r\n\r\n"));
    expect_same(fixture, &stored.key, body);
    assert_int_equal(volume_remove(fixture->writer, &removed.key, NULL), ERR_OK);
    assert_int_equal(compact_volume(fixture->volume, 0, &report, NULL), ERR_OK);
    assert_int_equal(report.segments_count, 1);
    expect_clean(fixture);
    rebuild(fixture);
    expect_same(fixture, &stored.key, body);
}

static void memory_does_not_grow_with_a_document(void **state) {
    struct fixture *fixture = *state;
    if (IS_SANITIZED) {
        skip(); /* it would measure the sanitizer */
    }
    struct watch watch = {0};
    struct scratch body;
    pthread_t thread;
    scratch_init(&body, fixture->root, SCRATCH_MEMORY_MAX, HUGE_SIZE);
    fill(&body, HUGE_SIZE, false);
    size_t before = anonymous_size();
    assert_int_equal(pthread_create(&thread, NULL, watch_memory, &watch), 0);
    handle_huge(fixture, &body);
    watch.is_stopping = true;
    pthread_join(thread, NULL);
    assert_in_range(watch.peak, before, before + ANONYMOUS_SIZE_MAX);
    scratch_done(&body);
}

/* However many read at once: what is too much for the disk is refused, and can be read later. */
static void readers_share_the_room_for_files(void **state) {
    struct fixture *fixture = *state;
    struct scratch_budget budget;
    struct scratch body;
    struct bytes found;
    scratch_budget_init(&budget, LARGE_SIZE + LARGE_SIZE / 2);
    fixture->config.scratch_budget = &budget;
    reopen(fixture);
    scratch_init(&body, fixture->root, SCRATCH_MEMORY_MAX, HUGE_SIZE);
    fill(&body, LARGE_SIZE, true);
    struct key key = put_large(fixture, &body, bytes_of(NULL, 0)).key;
    struct volume_reader *other = volume_reader_new(fixture->volume);
    assert_non_null(other);
    assert_int_equal(volume_get(other, &key, &found, NULL), ERR_OK);
    assert_int_equal(volume_get(fixture->reader, &key, &found, NULL), ERR_BUSY);
    volume_reader_free(other);
    expect_same(fixture, &key, &body);
    close_volume(fixture);
    assert_int_equal(atomic_load(&budget.size), 0);
    fixture->config.scratch_budget = NULL;
    open_volume(fixture);
    scratch_done(&body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(large_documents_read_back_in_all_framings),
        TEST(a_large_document_in_chunks_is_put_together),
        TEST(a_flipped_bit_of_a_large_document_is_never_returned_as_good),
        TEST(memory_does_not_grow_with_a_document),
        TEST(readers_share_the_room_for_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
