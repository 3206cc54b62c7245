/* Links packed and read again; hostile bytes; the vectors of docs/protocol/links.md. */
#include "protocol/links/links_code.h"
#include "protocol/links/links_state.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "sim/experiments/urls.h"
#include "unit.h"

enum {
    ROUNDS = 200,
    LINKS_MAX = 64,
    DOCUMENT_SIZE_MAX = 1 << 18,
    AROUND_SIZE = 60 + 28,
    OFFER_HEAD_SIZE = 3
};

static const uint8_t job[LINKS_CODE_JOB_SIZE] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static struct links_code *code;

static int start(void **state) {
    (void)state;
    code = links_code_new();
    return code == NULL ? -1 : 0;
}

static int stop(void **state) {
    (void)state;
    links_code_free(code);
    return 0;
}

static bool has(const struct links_code_link *links, size_t count, struct bytes url) {
    for (size_t i = 0; i < count; i++) {
        if (bytes_equal(links[i].url, url)) {
            return true;
        }
    }
    return false;
}

/* Returns how many bytes they took. */
static size_t check_way(enum links_code_way way, struct links_code_link *links, size_t count) {
    static uint8_t memory[1 << 17];
    struct links_code_batch batch;
    size_t size = links_code_write(code, way, job, links, count, memory, sizeof memory);
    assert_true(size > 0);
    assert_null(links_code_read(code, bytes_of(memory, size), &batch));
    assert_int_equal(batch.count, count);
    assert_memory_equal(batch.job, job, sizeof job);
    for (size_t i = 0; i < count; i++) {
        assert_bytes_equal(batch.links[i].url, links[i].url);
        assert_int_equal(batch.links[i].depth, links[i].depth);
        assert_int_equal(batch.links[i].priority, links[i].priority);
        assert_true(i == 0 || bytes_compare(links[i - 1].url, links[i].url) < 0);
    }
    return size;
}

static void check_round_trip(struct links_code_link *links, size_t count) {
    check_way(LINKS_CODE_BY_MODEL, links, count);
    check_way(LINKS_CODE_BY_TABLE, links, count);
}

/* Made-up links, at most so many bytes each with all that is around them. */
static void check_size(enum links_code_way way, size_t links_count, size_t size_max) {
    struct urls urls;
    static uint8_t text[LINKS_MAX][URLS_SIZE_MAX];
    size_t sent_size = 0;
    size_t urls_size = 0;
    assert_true(urls_init(&urls, 3, 20000));
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct links_code_link links[LINKS_MAX];
        for (size_t count = 0; count < links_count;) {
            size_t size = urls_next(&urls, text[count]);
            if (!has(links, count, bytes_of(text[count], size))) {
                links[count] = (struct links_code_link){.url = bytes_of(text[count], size),
                                                        .depth = (uint16_t)(1 + round % 4),
                                                        .priority = (uint8_t)(round % 3)};
                urls_size += size;
                count++;
            }
        }
        sent_size += check_way(way, links, links_count) + OFFER_HEAD_SIZE + AROUND_SIZE;
    }
    urls_done(&urls);
    print_message("# %.1f characters, %.2f bytes a link\n", (double)urls_size / ROUNDS / (double)links_count,
                  (double)sent_size / ROUNDS / (double)links_count);
    assert_true(sent_size <= size_max * links_count * ROUNDS);
}

static void ten_links_fit_in_a_small_datagram(void **state) {
    (void)state;
    check_size(LINKS_CODE_BY_MODEL, 10, 27);
}

static void full_datagrams_are_small_by_the_table_too(void **state) {
    (void)state;
    check_size(LINKS_CODE_BY_TABLE, 32, 23);
    check_size(LINKS_CODE_BY_TABLE, LINKS_MAX, 21);
}

static void unusual_links_survive(void **state) {
    (void)state;
    static uint8_t longest[LINKS_CODE_URL_SIZE_MAX];
    memset(longest, 'z', sizeof longest);
    memcpy(longest, "http://", 7);
    struct links_code_link links[] = {
        {.url = BYTES("!")},
        {.url = BYTES("~~~~~"), .depth = 65535, .priority = 3},
        {.url = BYTES("http://a/"), .depth = 30},
        {.url = BYTES("http://a/b"), .depth = 31},
        {.url = BYTES("http://a/bc"), .depth = 32},
        {.url = BYTES("http://xn--bcher-kva.example/%E2%82%AC?q=%22&r={}|\\^`")},
        {.url = bytes_of(longest, sizeof longest)},
        {.url = bytes_of(longest, sizeof longest - 1)},
        {.url = bytes_of(longest, 300)},
        {.url = bytes_of(longest, 127)},
        {.url = bytes_of(longest, 128)},
    };
    check_round_trip(links, sizeof links / sizeof links[0]);
    assert_false(links_code_takes(BYTES("")));
    assert_false(links_code_takes(BYTES("http://a b/")));
    assert_false(links_code_takes(BYTES("http://\xc3\xa4/")));
    assert_true(links_code_takes(links[10].url));
}

/* Random bytes as characters: the worst that there is to pack. */
static void noise_survives(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 9);
    for (unsigned round = 0; round < ROUNDS / 4; round++) {
        static uint8_t text[LINKS_MAX][200];
        struct links_code_link links[LINKS_MAX];
        size_t count = 1 + prng_below(&prng, LINKS_MAX);
        for (size_t i = 0; i < count; i++) {
            size_t size = 1 + prng_below(&prng, 200);
            for (size_t j = 0; j < size; j++) {
                text[i][j] = (uint8_t)prng_between(&prng, 0x21, 0x7e);
            }
            text[i][0] = (uint8_t)(0x21 + i); /* none twice */
            links[i] =
                (struct links_code_link){.url = bytes_of(text[i], size), .depth = (uint16_t)prng_u64(&prng)};
        }
        check_round_trip(links, count);
    }
}

/* Of a thousand pages of one host each costs next to nothing; the reader is still paid for its work. */
static void pages_of_one_host_cost_little(void **state) {
    (void)state;
    static char text[LINKS_CODE_LINKS_MAX][64];
    struct links_code_link links[LINKS_CODE_LINKS_MAX];
    for (size_t i = 0; i < LINKS_CODE_LINKS_MAX; i++) {
        snprintf(text[i], sizeof text[i], "https://www.example.org/archive/page/%04zu/", i);
        links[i] = (struct links_code_link){.url = bytes_of_string(text[i]), .depth = 2, .priority = 2};
    }
    assert_true(check_way(LINKS_CODE_BY_MODEL, links, LINKS_CODE_LINKS_MAX) < 2 * LINKS_CODE_LINKS_MAX);
    assert_true(check_way(LINKS_CODE_BY_TABLE, links, LINKS_CODE_LINKS_MAX) < 3 * LINKS_CODE_LINKS_MAX);
}

static void check_room(enum links_code_way way) {
    struct links_code_link links[] = {{.url = BYTES("https://q8z.example/x7Kp")},
                                      {.url = BYTES("http://b.example/")}};
    uint8_t memory[256];
    size_t size = links_code_write(code, way, job, links, 2, memory, sizeof memory);
    assert_true(size > 0);
    for (size_t room = 0; room < size; room++) {
        assert_int_equal(links_code_write(code, way, job, links, 2, memory, room), 0);
    }
    assert_int_equal(links_code_write(code, way, job, links, 2, memory, size), size);
}

static void what_does_not_fit_is_not_written(void **state) {
    (void)state;
    check_room(LINKS_CODE_BY_MODEL);
    check_room(LINKS_CODE_BY_TABLE);
}

/* Whatever comes, the reader ends, and what it takes for links are some. */
static void hostile_bytes_are_bounded(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 5);
    uint8_t bytes[1100];
    size_t refused_count = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct links_code_batch batch;
        size_t size = prng_below(&prng, sizeof bytes + 1);
        prng_fill(&prng, bytes, size);
        if (size > 18) {
            bytes[16] = (uint8_t)prng_between(&prng, 1, 100);
            if (round % 3 == 0) { /* by the table */
                bytes[17] = bytes[16];
                bytes[16] = 0;
            }
        }
        if (round % 8 == 0 && size > 18) {
            memset(bytes + 17, round % 16 == 0 ? 0 : 255, size - 17);
        }
        const char *wrong = links_code_read(code, bytes_of(bytes, size), &batch);
        refused_count += wrong != NULL;
        for (size_t i = 0; wrong == NULL && i < batch.count; i++) {
            assert_true(links_code_takes(batch.links[i].url));
        }
    }
    assert_true(refused_count > ROUNDS / 2);
}

/* ---- vectors ---- */

/* "way: bytes = URLs" */
static void check_vector(struct bytes line) {
    struct bytes urls = line;
    struct bytes name;
    assert_true(bytes_split(&urls, ':', &name));
    bool is_by_table = bytes_equal(name, BYTES("table"));
    assert_true(is_by_table || bytes_equal(name, BYTES("model")));
    struct bytes expected;
    assert_true(bytes_split(&urls, '=', &expected));
    struct links_code_link links[16];
    size_t count = 0;
    struct bytes url;
    expected = bytes_trim(expected);
    while (bytes_split(&urls, ' ', &url)) {
        if (url.size > 0) {
            links[count] =
                (struct links_code_link){.url = url, .depth = (uint16_t)(count + 1), .priority = 2};
            count++;
        }
    }
    uint8_t memory[1100];
    char text[2 * sizeof memory + 1];
    enum links_code_way way = is_by_table ? LINKS_CODE_BY_TABLE : LINKS_CODE_BY_MODEL;
    size_t size = links_code_write(code, way, job, links, count, memory, sizeof memory);
    assert_true(size > 0);
    hex_encode(bytes_of(memory, size), text);
    assert_bytes_equal(bytes_of(text, 2 * size), expected);
    check_round_trip(links, count);
}

static void the_document_says_the_same(void **state) {
    (void)state;
    static char document[DOCUMENT_SIZE_MAX];
    FILE *file = fopen(MNEMON_SOURCE_ROOT "/docs/protocol/links.md", "r");
    assert_non_null(file);
    struct bytes rest = {(const uint8_t *)document, fread(document, 1, sizeof document, file)};
    fclose(file);
    struct bytes fence = BYTES("```links\n");
    size_t at = bytes_find(rest, fence);
    assert_true(at < rest.size);
    rest = bytes_skip(rest, at + fence.size);
    rest = bytes_slice(rest, 0, bytes_find(rest, BYTES("```")));
    size_t count = 0;
    struct bytes line;
    while (bytes_split(&rest, '\n', &line)) {
        if (line.size > 0) {
            check_vector(line);
            count++;
        }
    }
    assert_true(count >= 6);
}

/* The text is part of the protocol. */
static void the_text_is_that_of_the_document(void **state) {
    (void)state;
    struct sha256 sha256;
    uint8_t digest[SHA256_SIZE];
    char text[2 * SHA256_SIZE + 1];
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_start(&sha256);
    for (size_t i = 0; i < links_text_count; i++) {
        sha256_update(&sha256, bytes_of_string(links_text[i]));
        sha256_update(&sha256, BYTES("\n"));
    }
    sha256_finish(&sha256, digest);
    sha256_done(&sha256);
    hex_encode(bytes_of(digest, sizeof digest), text);
    static char document[DOCUMENT_SIZE_MAX];
    FILE *file = fopen(MNEMON_SOURCE_ROOT "/docs/protocol/links.md", "r");
    assert_non_null(file);
    struct bytes all = {(const uint8_t *)document, fread(document, 1, sizeof document, file)};
    fclose(file);
    print_message("# text: %s\n", text);
    assert_true(bytes_find(all, bytes_of(text, 2 * sizeof digest)) < all.size);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_links_fit_in_a_small_datagram),
        cmocka_unit_test(full_datagrams_are_small_by_the_table_too),
        cmocka_unit_test(unusual_links_survive),
        cmocka_unit_test(noise_survives),
        cmocka_unit_test(pages_of_one_host_cost_little),
        cmocka_unit_test(what_does_not_fit_is_not_written),
        cmocka_unit_test(hostile_bytes_are_bounded),
        cmocka_unit_test(the_document_says_the_same),
        cmocka_unit_test(the_text_is_that_of_the_document),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
