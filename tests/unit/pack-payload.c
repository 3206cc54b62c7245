/* squeeze: what shrinks is packed, what does not is left, and nobody's frame takes more than it says. */
#include "store/remote/pack_payload.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/prng.h"
#include "unit.h"

enum { LARGE_SIZE = 5 << 20 };

struct fixture {
    struct pack_payload pack_payload;
    struct scratch packed;
    struct scratch plain;
    uint8_t *memory; /* LARGE_SIZE */
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    scratch_init(&fixture->packed, "/tmp", SCRATCH_MEMORY_MAX, UINT64_MAX);
    scratch_init(&fixture->plain, "/tmp", SCRATCH_MEMORY_MAX, UINT64_MAX);
    fixture->memory = malloc(LARGE_SIZE);
    *state = fixture;
    return fixture->memory == NULL || pack_payload_init(&fixture->pack_payload) != ERR_OK ? -1 : 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    pack_payload_done(&fixture->pack_payload);
    scratch_done(&fixture->packed);
    scratch_done(&fixture->plain);
    free(fixture->memory);
    free(fixture);
    return 0;
}

static struct bytes text(struct fixture *fixture, size_t size) {
    for (size_t i = 0; i < size; i++) {
        fixture->memory[i] = (uint8_t) "<p>every page says this</p>\n"[(i + i / 977) % 28];
    }
    return bytes_of(fixture->memory, size);
}

static struct bytes noise(struct fixture *fixture, size_t size) {
    struct prng prng;
    prng_init(&prng, size);
    prng_fill(&prng, fixture->memory, size);
    return bytes_of(fixture->memory, size);
}

static struct bytes bytes_in(struct scratch *scratch) {
    struct bytes bytes = {NULL, 0};
    assert_int_equal(scratch_bytes(scratch, &bytes), ERR_OK);
    return bytes;
}

static bool put(struct fixture *fixture, struct bytes document) {
    bool is_packed = false;
    scratch_clear(&fixture->packed);
    assert_int_equal(pack_payload_put(&fixture->pack_payload, document, &fixture->packed, &is_packed),
                     ERR_OK);
    return is_packed;
}

static enum err unpack(struct fixture *fixture, struct bytes frame, uint64_t size_max) {
    scratch_clear(&fixture->plain);
    return pack_payload_unpack(&fixture->pack_payload, frame, size_max, &fixture->plain, NULL);
}

static void packs_text_of_any_size_and_gives_it_back(void **state) {
    struct fixture *fixture = *state;
    static const size_t sizes[] = {256, 4000, 12000, 16385, 262144, 262145, LARGE_SIZE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct bytes document = text(fixture, sizes[i]);
        assert_true(put(fixture, document));
        assert_true(fixture->packed.size < document.size / 2);
        assert_int_equal(unpack(fixture, bytes_in(&fixture->packed), document.size), ERR_OK);
        assert_true(bytes_equal(bytes_in(&fixture->plain), document));
    }
}

static void leaves_what_does_not_shrink(void **state) {
    struct fixture *fixture = *state;
    static const size_t sizes[] = {0, 1, 255, 256, 16384, 32768, 262145, LARGE_SIZE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct bytes document = noise(fixture, sizes[i]);
        assert_false(put(fixture, document));
        assert_true(bytes_equal(bytes_in(&fixture->packed), document));
    }
}

static void refuses_frames_above_the_bound_before_unpacking(void **state) {
    struct fixture *fixture = *state;
    assert_true(put(fixture, text(fixture, LARGE_SIZE)));
    assert_int_equal(unpack(fixture, bytes_in(&fixture->packed), LARGE_SIZE - 1), ERR_LIMIT);
    assert_int_equal(fixture->plain.size, 0);
}

static void refuses_damaged_cut_and_foreign_frames(void **state) {
    struct fixture *fixture = *state;
    static const size_t sizes[] = {12000, LARGE_SIZE};
    for (size_t i = 0; i < 2; i++) {
        struct bytes document = text(fixture, sizes[i]);
        assert_true(put(fixture, document));
        struct bytes frame = bytes_in(&fixture->packed);
        uint8_t *copy = malloc(frame.size + 1);
        memcpy(copy, frame.data, frame.size);
        assert_int_not_equal(unpack(fixture, bytes_of(copy, frame.size - 1), sizes[i]), ERR_OK);
        copy[frame.size] = 0;
        assert_int_equal(unpack(fixture, bytes_of(copy, frame.size + 1), sizes[i]), ERR_INVALID);
        copy[frame.size / 2] ^= 0x40;
        assert_int_not_equal(unpack(fixture, bytes_of(copy, frame.size), sizes[i]), ERR_OK);
        assert_int_equal(unpack(fixture, bytes_of(copy, 0), sizes[i]), ERR_INVALID);
        free(copy);
    }
    assert_int_equal(unpack(fixture, BYTES("<html>no frame at all</html>"), 1000), ERR_INVALID);
}

/* A frame without its size: an honest packer writes it. */
static void refuses_frames_that_do_not_say_their_size(void **state) {
    struct fixture *fixture = *state;
    struct bytes document = text(fixture, 5000);
    uint8_t frame[8192];
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    size_t size = ZSTD_compress2(context, frame, sizeof frame, document.data, document.size);
    ZSTD_freeCCtx(context);
    assert_false(ZSTD_isError(size));
    assert_int_equal(unpack(fixture, bytes_of(frame, size), 5000), ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packs_text_of_any_size_and_gives_it_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_what_does_not_shrink, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_frames_above_the_bound_before_unpacking, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_damaged_cut_and_foreign_frames, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_frames_that_do_not_say_their_size, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
