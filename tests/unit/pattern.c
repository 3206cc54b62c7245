#include "crawl/rules/pattern.h"

#include <stdio.h>
#include <stdlib.h>

#include "allocations.h"
#include "unit.h"

static bool glob(const char *pattern, const char *text) {
    return pattern_glob(bytes_of_string(pattern), bytes_of_string(text));
}

static void add(struct pattern_list *list, const char *text) {
    struct err_detail detail = {0};
    if (pattern_list_add(list, bytes_of_string(text), &detail) != ERR_OK) {
        fail_msg("%s: %s", text, detail.text);
    }
}

static bool matches(const char *pattern, const char *url) {
    struct pattern_list list;
    pattern_list_init(&list);
    add(&list, pattern);
    int index = pattern_list_find(&list, bytes_of_string(url));
    pattern_list_done(&list);
    return index == 0;
}

static void globs_match_all_of_the_text(void **state) {
    (void)state;
    assert_true(glob("abc", "abc"));
    assert_false(glob("abc", "abcd"));
    assert_false(glob("abc", "ab"));
    assert_true(glob("*", ""));
    assert_true(glob("*", "anything"));
    assert_true(glob("a*c", "abbc"));
    assert_false(glob("a*c", "abbd"));
    assert_true(glob("a?c", "abc"));
    assert_false(glob("a?c", "ac"));
    assert_true(glob("*a*b*", "xxaxxbxx"));
    assert_true(glob("a**", "a"));
    assert_true(glob("*ab", "aab"));
    assert_true(glob("", ""));
    assert_false(glob("", "a"));
    assert_true(glob("a\\*b", "a*b"));
    assert_false(glob("a\\*b", "axb"));
    assert_true(glob("a\\?b", "a?b"));
    assert_false(glob("a\\?b", "axb"));
    assert_true(glob("a\\", "a\\"));
    assert_true(glob("*.pdf", "http://a/b.pdf"));
}

static void patterns_are_compared_with_whole_urls(void **state) {
    (void)state;
    assert_true(matches("https://example.org/private/*", "https://example.org/private/x?y"));
    assert_false(matches("https://example.org/private/*", "http://example.org/private/x"));
    assert_true(matches("example.org/private/*", "http://example.org/private/x"));
    assert_true(matches("example.org/private/*", "https://example.org/private/x"));
    assert_false(matches("example.org/private/*", "https://www.example.org/private/x"));
    assert_true(matches("*.example.org/*", "https://www.example.org/private/x"));
    assert_true(matches("*/search?*", "https://a/search?q=1"));
    assert_true(matches("*://a/*", "https://a/x"));
}

static void regular_expressions_match_anywhere(void **state) {
    (void)state;
    assert_true(matches("re:/20[0-9]{2}/", "https://a/2024/x"));
    assert_false(matches("re:/20[0-9]{2}/$", "https://a/2024/x"));
    assert_true(matches("re:[?&]print=", "https://a/x?b&print=1"));
    assert_true(matches("re:^https://a/(b|c)$", "https://a/c"));
    /* The URL need not end with a zero byte. */
    struct pattern_list list;
    pattern_list_init(&list);
    add(&list, "re:b$");
    assert_int_equal(pattern_list_find(&list, bytes_of("http://a/bc", 10)), 0);
    assert_int_equal(pattern_list_find(&list, bytes_of("http://a/bc", 11)), PATTERN_NONE);
    pattern_list_done(&list);
}

static void the_first_that_matches_is_named(void **state) {
    (void)state;
    struct pattern_list list;
    pattern_list_init(&list);
    assert_int_equal(pattern_list_find(&list, BYTES("http://a/")), PATTERN_NONE);
    for (int i = 0; i < 20; i++) {
        char text[32];
        snprintf(text, sizeof text, "http://a/%d*", i);
        add(&list, text);
    }
    assert_int_equal(pattern_list_find(&list, BYTES("http://a/19")), 1);
    assert_int_equal(pattern_list_find(&list, BYTES("http://a/7x")), 7);
    assert_bytes_equal(pattern_list_text(&list, 7), BYTES("http://a/7*"));
    pattern_list_done(&list);
}

static void refuses(const char *text, enum err expected) {
    struct pattern_list list;
    struct err_detail detail = {0};
    pattern_list_init(&list);
    assert_int_equal(pattern_list_add(&list, bytes_of_string(text), &detail), expected);
    assert_true(detail.text[0] != '\0');
    assert_int_equal(list.count, 0);
    pattern_list_done(&list);
}

static void what_could_take_for_ever_is_refused(void **state) {
    (void)state;
    refuses("", ERR_INVALID);
    refuses("re:(", ERR_INVALID);
    refuses("re:[a", ERR_INVALID);
    refuses("re:(a*)\\1", ERR_INVALID);
    refuses("re:((a{100}){100}){100}", ERR_INVALID);
    refuses("re:a{1,30000}", ERR_INVALID);
    assert_true(matches("re:\\{9999999\\}", "http://a/{9999999}"));
    static char long_text[PATTERN_SIZE_MAX + 2];
    memset(long_text, 'a', PATTERN_SIZE_MAX + 1);
    refuses(long_text, ERR_LIMIT);
    struct pattern_list list;
    pattern_list_init(&list);
    assert_int_equal(pattern_list_add(&list, BYTES("a\0b"), NULL), ERR_INVALID);
    pattern_list_done(&list);
}

static void long_urls_match_nothing(void **state) {
    (void)state;
    struct pattern_list list;
    pattern_list_init(&list);
    add(&list, "*");
    static char url[PATTERN_URL_SIZE_MAX + 1];
    memset(url, 'a', sizeof url);
    assert_int_equal(pattern_list_find(&list, bytes_of(url, sizeof url - 1)), 0);
    assert_int_equal(pattern_list_find(&list, bytes_of(url, sizeof url)), PATTERN_NONE);
    pattern_list_done(&list);
}

/* Many stars that could be cut in many ways: a matcher that tries them all would never end. */
static void hostile_globs_end(void **state) {
    (void)state;
    static char pattern[1001];
    static char text[PATTERN_URL_SIZE_MAX];
    for (size_t i = 0; i < sizeof pattern - 1; i += 2) {
        pattern[i] = 'a';
        pattern[i + 1] = '*';
    }
    pattern[sizeof pattern - 1] = 'b';
    memset(text, 'a', sizeof text);
    assert_false(pattern_glob(bytes_of(pattern, sizeof pattern), bytes_of(text, sizeof text)));
}

static void fails_cleanly_without_memory(void **state) {
    (void)state;
    struct pattern_list list;
    pattern_list_init(&list);
    allocations_left = 0;
    assert_int_equal(pattern_list_add(&list, BYTES("a*"), NULL), ERR_MEMORY);
    allocations_left = SIZE_MAX;
    assert_int_equal(list.count, 0);
    add(&list, "a*");
    pattern_list_done(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_match_all_of_the_text),
        cmocka_unit_test(patterns_are_compared_with_whole_urls),
        cmocka_unit_test(regular_expressions_match_anywhere),
        cmocka_unit_test(the_first_that_matches_is_named),
        cmocka_unit_test(what_could_take_for_ever_is_refused),
        cmocka_unit_test(long_urls_match_nothing),
        cmocka_unit_test(hostile_globs_end),
        cmocka_unit_test(fails_cleanly_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
