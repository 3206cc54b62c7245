/* dictionary - when a volume gets its dictionaries, and when it does not. */
#include "store/volume/dictionary.h"

#include <stdio.h>

#include "await.h"
#include "base/prng.h"
#include "unit.h"
#include "warc/zdict.h"

enum { PAGES_COUNT = 3000, PAGE_SIZE = 2000, SIZE_MAX_OUT = 1 << 20 };

struct volume {
    struct dictionary dictionary;
    struct buf out;
    struct prng prng;
};

static void start_volume(struct volume *volume, struct bytes present) {
    *volume = (struct volume){0};
    dictionary_init(&volume->dictionary, true, present);
    buf_init(&volume->out, SIZE_MAX_OUT);
    prng_init(&volume->prng, 1);
}

static void stop_volume(struct volume *volume) {
    dictionary_done(&volume->dictionary);
    buf_done(&volume->out);
}

static void offer_pages(struct volume *volume, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        char page[PAGE_SIZE + 64];
        size_t size = 0;
        while (size < PAGE_SIZE) {
            static const char *const words[] = {"archive ", "of ", "the ", "web ", "keeps ", "what "};
            size += (size_t)snprintf(page + size, sizeof page - size, "%s<p class=%ju>",
                                     words[prng_below(&volume->prng, 6)],
                                     (uintmax_t)prng_below(&volume->prng, 100));
        }
        struct bytes part = bytes_of(page, size);
        dictionary_offer(&volume->dictionary, &part, 1, DICTIONARY_PAGE);
    }
}

static void offer_visits(struct volume *volume, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        char visit[256];
        snprintf(visit, sizeof visit,
                 "WARC-Type: revisit\r\nWARC-Target-URI: https://example.org/%ju\r\n\r\n",
                 (uintmax_t)prng_below(&volume->prng, 10000));
        struct bytes part = bytes_of_string(visit);
        dictionary_offer(&volume->dictionary, &part, 1, DICTIONARY_VISIT);
    }
}

static bool has_taken(struct volume *volume) {
    return dictionary_take(&volume->dictionary, &volume->out);
}

static enum dictionary_state state_of(const struct volume *volume) {
    return atomic_load(&volume->dictionary.state);
}

/* Up to the first dictionary. */
static void train_first(struct volume *volume) {
    start_volume(volume, bytes_of(NULL, 0));
    offer_pages(volume, PAGES_COUNT);
    assert_int_equal(state_of(volume), DICTIONARY_FULL);
    await_that(has_taken(volume));
    assert_int_equal(state_of(volume), DICTIONARY_COLLECTING);
}

static void check_is_dictionary(struct bytes dictionary) {
    struct zdict zdict;
    assert_int_equal(zdict_init(&zdict, dictionary, 3, NULL), ERR_OK);
    assert_int_not_equal(zdict.id, 0);
    zdict_done(&zdict);
}

static void a_second_one_is_made_of_visits(void **state) {
    (void)state;
    struct volume volume;
    train_first(&volume);
    check_is_dictionary(buf_bytes(&volume.out));
    assert_true(bytes_find(buf_bytes(&volume.out), BYTES("https://example.org/")) == volume.out.size);
    offer_visits(&volume, DICTIONARY_VISITS_WANTED - 1);
    offer_pages(&volume, DICTIONARY_OTHERS_MAX + 1);
    assert_int_equal(state_of(&volume), DICTIONARY_COLLECTING);
    offer_visits(&volume, 1);
    assert_int_equal(state_of(&volume), DICTIONARY_FULL);
    await_that(has_taken(&volume));
    check_is_dictionary(buf_bytes(&volume.out));
    assert_true(volume.out.size <= DICTIONARY_SIZE);
    assert_true(bytes_find(buf_bytes(&volume.out), BYTES("https://example.org/")) < volume.out.size);
    assert_int_equal(state_of(&volume), DICTIONARY_TAKEN);
    stop_volume(&volume);
}

static void pages_among_which_visits_are_few_keep_theirs(void **state) {
    (void)state;
    struct volume volume;
    train_first(&volume);
    for (unsigned i = 0; i < 4; i++) {
        offer_visits(&volume, DICTIONARY_VISITS_WANTED - 1);
        offer_pages(&volume, DICTIONARY_VISITS_WANTED);
        assert_int_equal(state_of(&volume), DICTIONARY_COLLECTING);
        assert_int_equal(volume.dictionary.samples_count, 0);
    }
    stop_volume(&volume);
}

static void an_archive_that_has_one_is_not_given_another(void **state) {
    (void)state;
    struct volume volume;
    struct volume again;
    train_first(&volume);
    start_volume(&again, buf_bytes(&volume.out)); /* opened again with the first: it can have a second */
    assert_int_equal(state_of(&again), DICTIONARY_COLLECTING);
    offer_visits(&again, DICTIONARY_VISITS_WANTED);
    await_that(has_taken(&again));
    stop_volume(&volume);
    start_volume(&volume, buf_bytes(&again.out));
    assert_int_equal(state_of(&volume), DICTIONARY_TAKEN);
    stop_volume(&again);
    stop_volume(&volume);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_one_is_made_of_visits),
        cmocka_unit_test(pages_among_which_visits_are_few_keep_theirs),
        cmocka_unit_test(an_archive_that_has_one_is_not_given_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
