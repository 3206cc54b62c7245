#include "crawl/rules/pattern.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

/* Signs that PCRE2 and glibc read differently: old job files mean what they meant. */
static void regular_expressions_are_those_of_posix(void **state) {
    (void)state;
    assert_true(matches("re:[[:digit:]]+[[:alpha:]]", "http://a/1b"));
    assert_false(matches("re:[[:upper:]]", "http://a/1b"));
    assert_true(matches("re:^http://a/[\\d]$", "http://a/d")); /* in brackets: '\\' or d */
    assert_false(matches("re:^http://a/[\\d]$", "http://a/7"));
    assert_true(matches("re:^http://a/\\d$", "http://a/d"));
    assert_false(matches("re:^http://a/\\d$", "http://a/7"));
    assert_true(matches("re:^http://a/[]x]$", "http://a/]"));
    assert_true(matches("re:^http://a/[^]x]$", "http://a/y"));
    assert_false(matches("re:^http://a/[^]x]$", "http://a/]"));
    assert_true(matches("re:[a\\]", "http://a/"));
    assert_true(matches("re:\\<foo\\>", "http://a/foo/b"));
    assert_false(matches("re:\\<foo\\>", "http://a/foot/b"));
    assert_true(matches("re:\\.pdf$", "http://a/b.pdf"));
    assert_false(matches("re:\\.pdf$", "http://a/b.pdf\n"));
    assert_true(matches("re:a.b", "http://x/a\nb"));
    assert_true(matches("re:x\\?y{2,3}z{", "http://a/x?yyz{"));
    assert_true(matches("re:(|a)b", "http://a/b"));
    assert_true(matches("re:\\w\\W\\s\\S", "http://a/ab/ c"));
    refuses("re:(?i)abc", ERR_INVALID);
    refuses("re:(*ACCEPT)", ERR_INVALID);
    refuses("re:a*+b", ERR_INVALID);
    refuses("re:a**", ERR_INVALID);
    assert_true(matches("re:\\(?abc", "http://a/abc"));
}

static uint64_t cpu_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Each for URLs of 2 KiB, for which a pattern without a bound would take seconds to years. "[XY]" and not
 * "X", without which PCRE2 need not begin. */
static void hostile_regular_expressions_end(void **state) {
    static const char *const hostile[] = {
        "re:^.*[aceg].{60}[XY]",
        "re:(a|aa)*[XY]",
        "re:(a*)*[XY]",
        "re:.*.*.*.*[XY]",
        "re:[^XY]*[^XY]*[^XY]*[XY]",
        "re:(.*a){20}[XY]",
        "re:(a?){30}a{30}[XY]",
        "re:a[^XY]*[XY]",
        "re:(a|b|ab|ba|aab)*$[XY]",
        "re:((a+)b?)+[XY]",
        "re:(x|[aceg].{60})+[XY]",
    };
    static uint8_t url[2048];
    (void)state;
    memset(url, 'a', sizeof url);
    memcpy(url, "http://a/", 9);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct pattern_list list;
        pattern_list_init(&list);
        add(&list, hostile[i]);
        size_t before = mallinfo2().uordblks;
        uint64_t begin_us = cpu_us();
        for (int n = 0; n < 20; n++) {
            assert_int_equal(pattern_list_find(&list, bytes_of(url, sizeof url)), PATTERN_NONE);
        }
        uint64_t each_us = (cpu_us() - begin_us) / 20;
        print_message("%-24s %6ju us a URL, %ju times at its bound\n", hostile[i], (uintmax_t)each_us,
                      (uintmax_t)pattern_list_limited(&list));
        assert_in_range(each_us, 0, 200000);
        assert_in_range(mallinfo2().uordblks - before, 0, 4096); /* nothing is kept */
        pattern_list_done(&list);
    }
}

static void a_match_beyond_its_bound_is_none_and_counted(void **state) {
    static uint8_t url[4096];
    struct pattern_list list;
    (void)state;
    memset(url, 'a', sizeof url);
    url[sizeof url - 1] = 'X';
    pattern_list_init(&list);
    add(&list, "re:(a|aa)*Y|X$");
    assert_int_equal(pattern_list_limited(&list), 0);
    assert_int_equal(pattern_list_find(&list, BYTES("http://b/X")), 0);
    assert_int_equal(pattern_list_limited(&list), 0);
    assert_int_equal(pattern_list_find(&list, bytes_of(url, sizeof url)), PATTERN_NONE);
    assert_int_equal(pattern_list_limited(&list), 1);
    pattern_list_done(&list);
}

/* What people write, over long URLs: never at its bound. */
static void usual_regular_expressions_stay_within_their_bounds(void **state) {
    static const char *const usual[] = {
        "re:/20[0-9]{2}/.+[?&]print=",
        "re:[?&](utm_[a-z]+|sid|session)=",
        "re:^https?://([a-z0-9-]+\\.)*example\\.org/",
        "re:\\.(jpg|png|gif)$",
        "re:^.*/calendar/.*$",
        "re:(/[^/]+)\\?.*",
        "re:^https://a(/[a-z]+)*/print$",
    };
    static char url[8192];
    (void)state;
    size_t size = (size_t)snprintf(url, sizeof url, "https://a/2024/");
    while (size < sizeof url - 64) {
        size += (size_t)snprintf(url + size, sizeof url - size, "section/page-%zu/", size);
    }
    struct pattern_list list;
    pattern_list_init(&list);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        add(&list, usual[i]);
        pattern_list_find(&list, bytes_of(url, size));
        pattern_list_find(&list, BYTES("https://www.example.org/2024/a?b=c&print=1"));
    }
    assert_int_equal(pattern_list_limited(&list), 0);
    pattern_list_done(&list);
}

static void expressions_are_not_too_large_together(void **state) {
    struct pattern_list list;
    char text[64];
    enum err err = ERR_OK;
    (void)state;
    pattern_list_init(&list);
    for (unsigned i = 0; err == ERR_OK && i < PATTERNS_MAX; i++) {
        snprintf(text, sizeof text, "re:([a-%c%u]x){900}", (char)('b' + i % 20), i);
        err = pattern_list_add(&list, bytes_of_string(text), NULL);
    }
    assert_int_equal(err, ERR_LIMIT);
    assert_in_range(list.code_size, 1, PATTERNS_CODE_SIZE_MAX);
    pattern_list_done(&list);
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
        cmocka_unit_test(regular_expressions_are_those_of_posix),
        cmocka_unit_test(hostile_regular_expressions_end),
        cmocka_unit_test(a_match_beyond_its_bound_is_none_and_counted),
        cmocka_unit_test(usual_regular_expressions_stay_within_their_bounds),
        cmocka_unit_test(expressions_are_not_too_large_together),
        cmocka_unit_test(fails_cleanly_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
