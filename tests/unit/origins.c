/* origins: the URI of a record by its place, until newer ones need the room. */
#include "store/volume/origins.h"

#include <stdio.h>

#include "unit.h"

static struct location location_of(uint64_t i) {
    return (struct location){.segment = 256 + (uint32_t)(i % 3), .offset = 100 * i, .length = 10};
}

static struct bytes uri_of(uint64_t i, char out[64]) {
    int size = snprintf(out, 64, "https://example.org/%ju", (uintmax_t)i);
    return bytes_of(out, (size_t)size);
}

static void add(struct origins *origins, uint64_t i) {
    char text[64];
    struct location location = location_of(i);
    origins_add(origins, &location, uri_of(i, text));
}

/* What is found is right. */
static bool has(struct origins *origins, uint64_t i) {
    char text[64];
    struct location location = location_of(i);
    struct buf uri;
    buf_init(&uri, ORIGINS_URI_SIZE_MAX);
    bool is_found = origins_find(origins, &location, &uri);
    if (is_found) {
        assert_bytes_equal(buf_bytes(&uri), uri_of(i, text));
    }
    buf_done(&uri);
    return is_found;
}

static void finds_the_uri_of_a_place(void **state) {
    struct origins *origins = origins_new();
    struct location elsewhere = location_of(1);
    struct buf uri;
    (void)state;
    assert_non_null(origins);
    assert_false(has(origins, 0));
    add(origins, 0);
    add(origins, 1);
    add(origins, 0);
    assert_true(has(origins, 0));
    assert_true(has(origins, 1));
    assert_false(has(origins, 2));
    elsewhere.segment++;
    buf_init(&uri, ORIGINS_URI_SIZE_MAX);
    assert_false(origins_find(origins, &elsewhere, &uri));
    buf_done(&uri);
    origins_free(origins);
}

/* Far more than there is room for: places first, then text. */
static void only_the_newest_are_kept(void **state) {
    enum { COUNT = 1000000, NEW_COUNT = 10000 };
    struct origins *origins = origins_new();
    size_t found_count = 0;
    (void)state;
    for (uint64_t i = 0; i < COUNT; i++) {
        add(origins, i);
        assert_true(has(origins, i));
    }
    for (uint64_t i = COUNT - NEW_COUNT; i < COUNT; i++) {
        found_count += has(origins, i);
    }
    assert_true(found_count > NEW_COUNT * 99 / 100);
    assert_false(has(origins, 0));
    for (uint64_t i = 0; i < COUNT; i += 1000) {
        has(origins, i); /* whatever is left of the old ones is whole */
    }
    origins_free(origins);
}

static void long_ones_push_out_the_others(void **state) {
    static uint8_t text[ORIGINS_URI_SIZE_MAX + 1];
    struct origins *origins = origins_new();
    struct buf uri;
    (void)state;
    memset(text, 'a', sizeof text);
    buf_init(&uri, ORIGINS_URI_SIZE_MAX);
    add(origins, 0);
    for (uint64_t i = 1; i <= ORIGINS_TEXT_SIZE / 1000 + 1; i++) {
        struct location location = location_of(i);
        origins_add(origins, &location, bytes_of(text, 1000));
        assert_true(origins_find(origins, &location, &uri));
        assert_bytes_equal(buf_bytes(&uri), bytes_of(text, 1000));
    }
    assert_false(has(origins, 0));
    struct location location = location_of(1 << 20);
    origins_add(origins, &location, bytes_of(text, sizeof text));
    assert_false(origins_find(origins, &location, &uri));
    buf_done(&uri);
    origins_free(origins);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_uri_of_a_place),
        cmocka_unit_test(only_the_newest_are_kept),
        cmocka_unit_test(long_ones_push_out_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
