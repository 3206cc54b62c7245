#include "base/nearest.h"

#include "unit.h"

#define SIXTEEN "abcdefghijklmnop"

static const char *const commands[] = {"delay", "depth", "user_agent", "concurrency", "exclude", NULL};

static const char *suggest(const char *typed, const char *const *known) {
    struct nearest nearest;
    nearest_init(&nearest, bytes_of_string(typed));
    for (; *known != NULL; known++) {
        nearest_offer(&nearest, *known);
    }
    return nearest.best;
}

static void suggests_the_word_that_was_meant(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"dely", "delay"},    /* a letter missing */
        {"dellay", "delay"},  /* one too many */
        {"delxy", "delay"},   /* a wrong one */
        {"edlay", "delay"},   /* two swapped */
        {"delya", "delay"},   /* two swapped, at the end */
        {"DELAY", "delay"},   /* case */
        {"DLEAY", "delay"},   /* case and swap */
        {"excl", "exclude"},  /* cut off */
        {"us", "user_agent"}, /* cut off to two letters */
        {"user-agent", "user_agent"},
        {"useragent", "user_agent"},
        {"cncurency", "concurrency"}, /* 2 of 11 */
        {"cnurrenzy", "concurrency"}, /* 3 of 11 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *word = suggest(rows[i][0], commands);
        assert_non_null(word);
        assert_string_equal(word, rows[i][1]);
    }
}

static void suggests_nothing_where_no_word_is_near(void **state) {
    (void)state;
    static const char *const rows[] = {"",          "d",          "xyz",   "dxlxy",
                                       "cnurrenzx", "delayed_by", "agent", "edlya" /* two swaps of 5 */};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (suggest(rows[i], commands) != NULL) {
            fail_msg("\"%s\" became \"%s\"", rows[i], suggest(rows[i], commands));
        }
    }
    const char *const none[] = {NULL};
    assert_null(suggest("delay", none));
}

static void a_third_of_the_letters_may_differ_and_always_one(void **state) {
    (void)state;
    const char *const six[] = {"filter", NULL};
    assert_string_equal(suggest("xilxer", six), "filter");
    assert_null(suggest("xilxex", six));
    const char *const two[] = {"no", NULL};
    assert_string_equal(suggest("mo", two), "no");
    assert_null(suggest("mu", two));
}

static void prefers_the_nearer_and_then_the_first(void **state) {
    (void)state;
    const char *const far_first[] = {"crawler_delay", "crawler_delays", NULL};
    assert_string_equal(suggest("crawler_delayz", far_first), "crawler_delay");
    const char *const near_last[] = {"crawler_relayxs", "crawler_relay", NULL};
    assert_string_equal(suggest("crawler_delay", near_last), "crawler_relay");
    const char *const equal[] = {"bat", "cat", NULL};
    assert_string_equal(suggest("aat", equal), "bat");
}

static void takes_words_up_to_48_bytes(void **state) {
    (void)state;
    const char *const longest[] = {SIXTEEN SIXTEEN SIXTEEN, NULL};
    assert_string_equal(suggest("x" SIXTEEN SIXTEEN "abcdefghijklmno", longest), longest[0]);
    const char *const too_long[] = {SIXTEEN SIXTEEN SIXTEEN "q", NULL};
    assert_null(suggest(SIXTEEN SIXTEEN SIXTEEN, too_long));
    assert_null(suggest(SIXTEEN SIXTEEN SIXTEEN "x", longest));
}

static void hint_completes_a_sentence(void **state) {
    (void)state;
    char hint[NEAREST_HINT_SIZE];
    struct nearest nearest;
    nearest_init(&nearest, BYTES("dept"));
    assert_ptr_equal(nearest_hint(&nearest, "--", hint), hint);
    assert_string_equal(hint, "");
    nearest_offer(&nearest, "depth");
    assert_string_equal(nearest_hint(&nearest, "--", hint), "; did you mean --depth?");
    assert_string_equal(nearest_hint(&nearest, "", hint), "; did you mean depth?");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suggests_the_word_that_was_meant),
        cmocka_unit_test(suggests_nothing_where_no_word_is_near),
        cmocka_unit_test(a_third_of_the_letters_may_differ_and_always_one),
        cmocka_unit_test(prefers_the_nearer_and_then_the_first),
        cmocka_unit_test(takes_words_up_to_48_bytes),
        cmocka_unit_test(hint_completes_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
