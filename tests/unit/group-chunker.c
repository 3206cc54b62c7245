/* chunker: cuts depend on content alone, so what has not changed is not sent. */
#include "protocol/mirror/chunker.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/prng.h"
#include "base/sha256.h"
#include "unit.h"

enum { DATA_SIZE = 10 << 20, CHUNKS_MAX = DATA_SIZE / CHUNKER_SIZE_MIN + 1 };

struct cuts {
    size_t count;
    size_t ends[CHUNKS_MAX];
};

static uint8_t *make_data(size_t size, uint64_t seed) {
    uint8_t *data = malloc(size);
    struct prng prng;
    assert_non_null(data);
    prng_init(&prng, seed);
    prng_fill(&prng, data, size);
    return data;
}

/* Cut the bytes, which come in pieces of at most piece_size. */
static void cut(struct bytes bytes, size_t piece_size, struct cuts *cuts) {
    struct chunker chunker;
    size_t at = 0;
    cuts->count = 0;
    chunker_init(&chunker);
    while (at < bytes.size) {
        size_t left = bytes.size - at < piece_size ? bytes.size - at : piece_size;
        bool is_end;
        size_t taken = chunker_take(&chunker, bytes_slice(bytes, at, at + left), &is_end);
        assert_true(taken > 0 && taken <= left);
        assert_true(is_end || taken == left);
        at += taken;
        if (is_end || at == bytes.size) {
            assert_true(cuts->count < CHUNKS_MAX);
            cuts->ends[cuts->count++] = at;
        }
    }
}

static void pieces_do_not_matter(void **state) {
    (void)state;
    uint8_t *data = make_data(DATA_SIZE, 1);
    static const size_t pieces[] = {1, 63, 4096, 65537, 1 << 20};
    struct cuts whole;
    struct cuts pieced;
    cut(bytes_of(data, DATA_SIZE), DATA_SIZE, &whole);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        cut(bytes_of(data, DATA_SIZE), pieces[i], &pieced);
        assert_int_equal(pieced.count, whole.count);
        assert_memory_equal(pieced.ends, whole.ends, whole.count * sizeof *whole.ends);
    }
    free(data);
}

static void sizes_are_within_their_bounds(void **state) {
    (void)state;
    uint8_t *data = make_data(DATA_SIZE, 2);
    memset(data + (4 << 20), 0, 2 << 20); /* what never changes has to end, too */
    struct cuts cuts;
    cut(bytes_of(data, DATA_SIZE), DATA_SIZE, &cuts);
    size_t before = 0;
    for (size_t i = 0; i < cuts.count; i++) {
        size_t size = cuts.ends[i] - before;
        assert_true(size <= CHUNKER_SIZE_MAX);
        assert_true(size >= CHUNKER_SIZE_MIN || i + 1 == cuts.count);
        before = cuts.ends[i];
    }
    free(data);
}

static void the_mean_is_64_kib(void **state) {
    (void)state;
    uint8_t *data = make_data(DATA_SIZE, 3);
    struct cuts cuts;
    cut(bytes_of(data, DATA_SIZE), DATA_SIZE, &cuts);
    assert_in_range(DATA_SIZE / cuts.count, 52 << 10, 76 << 10);
    free(data);
}

/* Bytes of chunks of the new data that the old does not have. */
static size_t size_changed(struct bytes before, struct bytes after) {
    struct cuts old;
    struct cuts new;
    struct map known;
    struct sha256 sha256;
    uint8_t digest[SHA256_SIZE];
    size_t changed = 0;
    cut(before, before.size, &old);
    cut(after, after.size, &new);
    map_init(&known, SHA256_SIZE, 0, CHUNKS_MAX, 1);
    assert_int_equal(map_reserve(&known, CHUNKS_MAX), ERR_OK);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    for (size_t i = 0; i < old.count; i++) {
        size_t from = i == 0 ? 0 : old.ends[i - 1];
        sha256_digest(&sha256, bytes_slice(before, from, old.ends[i]), digest);
        assert_non_null(map_put(&known, bytes_of(digest, SHA256_SIZE)));
    }
    for (size_t i = 0; i < new.count; i++) {
        size_t from = i == 0 ? 0 : new.ends[i - 1];
        sha256_digest(&sha256, bytes_slice(after, from, new.ends[i]), digest);
        changed += map_get(&known, bytes_of(digest, SHA256_SIZE)) == NULL ? new.ends[i] - from : 0;
    }
    sha256_done(&sha256);
    map_done(&known);
    return changed;
}

static void an_inserted_byte_changes_what_is_around_it(void **state) {
    (void)state;
    uint8_t *before = make_data(DATA_SIZE, 4);
    uint8_t *after = malloc(DATA_SIZE + 1);
    assert_non_null(after);
    static const size_t places[] = {0, 1, 100000, DATA_SIZE / 2, DATA_SIZE - 10};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t at = places[i];
        memcpy(after, before, at);
        after[at] = 'x';
        memcpy(after + at + 1, before + at, DATA_SIZE - at);
        size_t changed = size_changed(bytes_of(before, DATA_SIZE), bytes_of(after, DATA_SIZE + 1));
        assert_in_range(changed, 1, 4 * CHUNKER_SIZE_MAX);
    }
    free(before);
    free(after);
}

static void appending_changes_the_end_alone(void **state) {
    (void)state;
    uint8_t *data = make_data(DATA_SIZE, 5);
    size_t changed = size_changed(bytes_of(data, DATA_SIZE - 1000), bytes_of(data, DATA_SIZE));
    assert_in_range(changed, 1, CHUNKER_SIZE_MAX + 1000);
    free(data);
}

/* As docs/formats/collection.md has it, without any thought of speed. */
static bool ends_behind(const uint64_t gear[256], const uint8_t *chunk, size_t size) {
    uint64_t hash = 0;
    if (size < CHUNKER_SIZE_MIN) {
        return false;
    }
    for (size_t i = size - 64; i < size; i++) {
        hash = hash * 2 + gear[chunk[i]];
    }
    uint64_t bits = size <= 52 << 10 ? hash >> 46 & 0x3ffff : hash >> 50 & 0x3fff;
    return bits == 0 || size == CHUNKER_SIZE_MAX;
}

/* The cuts are part of the format: other ones would send everything anew. */
static void cuts_are_those_of_the_format(void **state) {
    (void)state;
    enum { SIZE = 1 << 20 };
    uint8_t *data = make_data(SIZE, 6);
    memset(data + SIZE / 2, 7, SIZE / 2); /* up to the largest size */
    uint64_t gear[256];
    struct cuts cuts;
    size_t start = 0;
    size_t count = 0;
    for (uint64_t i = 0; i < 256; i++) {
        gear[i] = prng_mix(UINT64_C(0x6d6e656d6f6e2031) + 256 * i);
    }
    cut(bytes_of(data, SIZE), SIZE, &cuts);
    for (size_t at = 1; at <= SIZE; at++) {
        if (ends_behind(gear, data + start, at - start) || at == SIZE) {
            assert_int_equal(cuts.ends[count++], at);
            start = at;
        }
    }
    assert_int_equal(cuts.count, count);
    assert_int_equal(cuts.ends[0], 57576);
    assert_true(gear[1] == UINT64_C(0x385f80144e808ea7));
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(sizes_are_within_their_bounds),
        cmocka_unit_test(the_mean_is_64_kib),
        cmocka_unit_test(an_inserted_byte_changes_what_is_around_it),
        cmocka_unit_test(appending_changes_the_end_alone),
        cmocka_unit_test(cuts_are_those_of_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
