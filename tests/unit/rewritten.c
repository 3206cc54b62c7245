/* Documents as they were rewritten: what is found, what makes room, and what is not kept. */
#include "replay/wayback/rewritten.h"

#include <stdlib.h>

#include "unit.h"

enum { MEMORY_MAX = 1 << 20 };

struct fixture {
    struct rewritten *rewritten;
    struct scratch document;
    uint8_t note[PARSE_NOTE_SIZE_MAX];
    size_t note_size;
};

static void begin(struct fixture *fixture, uint64_t size_max) {
    fixture->rewritten = rewritten_new(size_max);
    assert_non_null(fixture->rewritten);
    scratch_init(&fixture->document, "/tmp", MEMORY_MAX, MEMORY_MAX);
}

static void end(struct fixture *fixture) {
    scratch_done(&fixture->document);
    rewritten_free(fixture->rewritten);
}

static const uint8_t *key_of(unsigned number) {
    static uint8_t key[SHA256_SIZE];
    memset(key, 0, sizeof key);
    memcpy(key, &number, sizeof number);
    return key;
}

static bool find(struct fixture *fixture, unsigned number) {
    scratch_clear(&fixture->document);
    return rewritten_find(fixture->rewritten, key_of(number), fixture->note, &fixture->note_size,
                          &fixture->document);
}

static struct rewritten_stat stat_of(const struct fixture *fixture) {
    struct rewritten_stat stat;
    rewritten_stat(fixture->rewritten, &stat);
    return stat;
}

static void what_was_kept_is_found_with_its_note(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture, 1 << 20);
    assert_false(find(&fixture, 1));
    rewritten_keep(fixture.rewritten, key_of(1), BYTES("note"), BYTES("document"));
    rewritten_keep(fixture.rewritten, key_of(2), BYTES("only a note"), BYTES(""));
    rewritten_keep(fixture.rewritten, key_of(1), BYTES("the same"), BYTES("once more")); /* the first stays */
    assert_true(find(&fixture, 1));
    assert_bytes_equal(bytes_of(fixture.note, fixture.note_size), BYTES("note"));
    assert_bytes_equal(buf_bytes(&fixture.document.memory), BYTES("document"));
    assert_true(find(&fixture, 2));
    assert_int_equal(fixture.document.size, 0);
    assert_bytes_equal(bytes_of(fixture.note, fixture.note_size), BYTES("only a note"));
    assert_false(find(&fixture, 3));
    struct rewritten_stat stat = stat_of(&fixture);
    assert_true(stat.count == 2 && stat.asked_count == 4 && stat.found_count == 2);
    end(&fixture);
}

static void the_least_recently_used_makes_room(void **state) {
    (void)state;
    enum { SIZE_MAX_ = 256 << 10, COUNT = 200, DOCUMENT_SIZE = 10000 };
    struct fixture fixture;
    uint8_t *document = calloc(1, DOCUMENT_SIZE);
    assert_non_null(document);
    begin(&fixture, SIZE_MAX_);
    for (unsigned i = 0; i < COUNT; i++) {
        memset(document, (int)i, DOCUMENT_SIZE);
        rewritten_keep(fixture.rewritten, key_of(i), BYTES("note"), bytes_of(document, DOCUMENT_SIZE - i));
        assert_true(find(&fixture, 0)); /* is used all the time */
        assert_true(stat_of(&fixture).size <= SIZE_MAX_);
    }
    unsigned found_count = 0;
    for (unsigned i = 1; i < COUNT; i++) {
        bool is_found = find(&fixture, i);
        found_count += is_found;
        assert_true(is_found || i < COUNT - 20); /* the newest are there */
        assert_true(!is_found || (fixture.document.size == DOCUMENT_SIZE - i &&
                                  fixture.document.memory.data[0] == (uint8_t)i));
    }
    assert_in_range(found_count, 20, 25);
    assert_int_equal(stat_of(&fixture).count, found_count + 1);
    free(document);
    end(&fixture);
}

static void small_ones_do_not_outgrow_the_table(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture, 100 << 10);
    for (unsigned i = 0; i < 1000; i++) {
        rewritten_keep(fixture.rewritten, key_of(i), BYTES("n"), BYTES("d"));
        assert_true(find(&fixture, i));
    }
    assert_in_range(stat_of(&fixture).count, 20, 30);
    end(&fixture);
}

static void what_is_too_large_is_not_kept(void **state) {
    (void)state;
    struct fixture fixture;
    uint8_t *document = calloc(1, REWRITTEN_DOCUMENT_SIZE_MAX + 1);
    assert_non_null(document);
    begin(&fixture, 16 << 20);
    rewritten_keep(fixture.rewritten, key_of(1), BYTES(""), bytes_of(document, REWRITTEN_DOCUMENT_SIZE_MAX));
    rewritten_keep(fixture.rewritten, key_of(2), BYTES(""),
                   bytes_of(document, REWRITTEN_DOCUMENT_SIZE_MAX + 1));
    assert_true(find(&fixture, 1));
    assert_false(find(&fixture, 2));
    end(&fixture);
    begin(&fixture, 1000);
    rewritten_keep(fixture.rewritten, key_of(1), BYTES(""), bytes_of(document, 2000));
    assert_false(find(&fixture, 1));
    end(&fixture);
    free(document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_kept_is_found_with_its_note),
        cmocka_unit_test(the_least_recently_used_makes_room),
        cmocka_unit_test(small_ones_do_not_outgrow_the_table),
        cmocka_unit_test(what_is_too_large_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
