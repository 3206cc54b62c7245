#include "crawl/rules/robots.h"

#include <stdio.h>
#include <stdlib.h>

#include "allocations.h"
#include "unit.h"

/* Is the path allowed for "mnemon" by this file? */
static bool allows(const char *text, const char *path) {
    struct robots robots;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    assert_int_equal(robots_parse(&robots, bytes_of_string(text), BYTES("mnemon")), ERR_OK);
    bool is_allowed = robots_check(&robots, bytes_of_string(path), NULL);
    robots_done(&robots);
    return is_allowed;
}

/* One rule that disallows; is the path denied by it? */
static bool rule_matches(const char *pattern, const char *path) {
    char text[512];
    snprintf(text, sizeof text, "User-agent: *\nDisallow: %s\n", pattern);
    return !allows(text, path);
}

static void longest_match_decides(void **state) {
    (void)state;
    const char *text = "User-agent: *\nDisallow: /a/\nAllow: /a/b\nDisallow: /a/b/c\n";
    assert_true(allows(text, "/"));
    assert_false(allows(text, "/a/"));
    assert_false(allows(text, "/a/x"));
    assert_true(allows(text, "/a/b"));
    assert_true(allows(text, "/a/b/x"));
    assert_false(allows(text, "/a/b/c/d"));
    /* Whatever the order in the file. */
    const char *other = "User-agent: *\nDisallow: /a/b/c\nAllow: /a/b\nDisallow: /a/\n";
    assert_true(allows(other, "/a/b/x"));
    assert_false(allows(other, "/a/b/c"));
    /* Octets count, wildcards among them. */
    assert_false(allows("User-agent: *\nAllow: /page\nDisallow: /*.html\n", "/page.html"));
    assert_true(allows("User-agent: *\nAllow: /page.h\nDisallow: /*.ht\n", "/page.html"));
    assert_true(allows("User-agent: *\nAllow: /$\nDisallow: /\n", "/"));
    assert_false(allows("User-agent: *\nAllow: /a\nDisallow: /a$\n", "/a"));
    assert_false(allows("User-agent: *\nAllow: /$\nDisallow: /\n", "/page"));
}

static void allow_wins_a_tie(void **state) {
    (void)state;
    assert_true(allows("User-agent: *\nDisallow: /page\nAllow: /page\n", "/page"));
    assert_true(allows("User-agent: *\nAllow: /page\nDisallow: /page\n", "/page"));
    assert_true(allows("User-agent: *\nDisallow: /*.ph\nAllow: /page\n", "/page.php5"));
}

static void paths_match_from_their_start(void **state) {
    (void)state;
    assert_true(rule_matches("/fish", "/fish"));
    assert_true(rule_matches("/fish", "/fish.html"));
    assert_true(rule_matches("/fish", "/fishheads/yummy.html"));
    assert_true(rule_matches("/fish", "/fish.php?id=anything"));
    assert_false(rule_matches("/fish", "/Fish.asp"));
    assert_false(rule_matches("/fish", "/catfish"));
    assert_false(rule_matches("/fish", "/?id=fish"));
    assert_false(rule_matches("/fish/", "/fish"));
    assert_true(rule_matches("/fish/", "/fish/?id=1"));
    assert_false(rule_matches("fish", "/fish"));
}

static void wildcards_and_ends(void **state) {
    (void)state;
    assert_true(rule_matches("/fish*", "/fishheads"));
    assert_true(rule_matches("/*.php", "/folder/filename.php?parameters"));
    assert_true(rule_matches("/*.php", "/filename.php/"));
    assert_false(rule_matches("/*.php", "/windows.PHP"));
    assert_true(rule_matches("/*.php$", "/folder/filename.php"));
    assert_false(rule_matches("/*.php$", "/filename.php?parameters"));
    assert_false(rule_matches("/*.php$", "/filename.php5"));
    assert_true(rule_matches("/*.php$", "/a.php/b.php"));
    assert_true(rule_matches("/fish*.php", "/fishheads/catfish.php?parameters"));
    assert_false(rule_matches("/fish*.php", "/Fish.PHP"));
    assert_true(rule_matches("*/x", "/a/x"));
    assert_true(rule_matches("/**a***b$", "/zzazzb"));
    assert_true(rule_matches("/a*$", "/abc"));
    assert_true(rule_matches("/*", "/"));
    assert_true(rule_matches("/a$", "/a"));
    assert_false(rule_matches("/a$", "/ab"));
    /* A '$' elsewhere is a '$'. */
    assert_true(rule_matches("/a$b", "/a$bc"));
    assert_false(rule_matches("/a$b", "/ab"));
    /* Pieces may not overlap. */
    assert_false(rule_matches("/aba*aba$", "/aba"));
    assert_false(rule_matches("/*ab*ba$", "/aba"));
}

static void special_characters_by_their_escapes(void **state) {
    (void)state;
    assert_true(rule_matches("/file-with-a-%2A.html", "/file-with-a-*.html"));
    assert_false(rule_matches("/file-with-a-%2A.html", "/file-with-a-b.html"));
    assert_true(rule_matches("/foo-%24", "/foo-$bar"));
    assert_true(rule_matches("/foo-%24$", "/foo-%24"));
}

/* The examples of RFC 9309, 2.2.2, both ways round. */
static void escapes_are_compared_normalised(void **state) {
    (void)state;
    static const char *const equal[][2] = {
        {"/foo/bar?baz=quz", "/foo/bar?baz=quz"},
        {"/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"},
        {"/foo/bar/\xe3\x83\x84", "/foo/bar/%E3%83%84"},
        {"/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"},
        {"/foo/bar/%62%61%7A", "/foo/bar/baz"},
        {"/%7Ejoe/index.html", "/~joe/index.html"},
        {"/a%3cd.html", "/a%3Cd.html"},
        {"/a<b", "/a%3Cb"},
        {"/100%", "/100%25"},
    };
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
        assert_true(rule_matches(equal[i][0], equal[i][1]));
        assert_true(rule_matches(equal[i][1], equal[i][0]));
    }
    /* A slash that is escaped in a path is no slash. */
    assert_false(rule_matches("/a%2Fb", "/a/b"));
    assert_false(rule_matches("/a/b", "/a%2Fb"));
    assert_true(rule_matches("/a%2fb", "/a%2Fb"));
    /* In a query behind a star both spellings match too. */
    assert_true(rule_matches("/*to=https%3A%2F%2F", "/go?to=https%3A%2F%2Fx"));
    assert_true(rule_matches("/*/private", "/x?back=/private"));
    assert_true(rule_matches("/*?*to=https://", "/go?a&to=https%3A%2F%2Fx"));
    /* '&' and '=' separate arguments and stay apart from their escapes. */
    assert_false(rule_matches("/x?a=b&c", "/x?a=b%26c"));
}

static void groups_of_one_agent_merge(void **state) {
    (void)state;
    const char *text = "User-agent: mnemon\nDisallow: /a\n\nUser-agent: other\nDisallow: /b\n\n"
                       "User-agent: MNEMON\nDisallow: /c\n\nUser-agent: *\nDisallow: /d\n";
    assert_false(allows(text, "/a"));
    assert_true(allows(text, "/b"));
    assert_false(allows(text, "/c"));
    assert_true(allows(text, "/d")); /* "*" is for those without a group of their own */
    const char *stars =
        "User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: *\nDisallow: /c\n";
    assert_false(allows(stars, "/a"));
    assert_true(allows(stars, "/b"));
    assert_false(allows(stars, "/c"));
}

static void several_agents_share_a_group(void **state) {
    (void)state;
    const char *text =
        "User-agent: a\nUser-agent: mnemon\n# a comment\n\nSitemap: http://x/s\nUser-agent: b\n"
        "Disallow: /x\nUser-agent: c\nDisallow: /y\n";
    assert_false(allows(text, "/x"));
    assert_true(allows(text, "/y"));
    /* Empty lines separate nothing: both agents share the rule. */
    assert_false(allows("User-agent: mnemon\n\nUser-agent: *\nDisallow: /\n", "/x"));
    assert_true(allows("User-agent: mnemon\nDisallow:\n\nUser-agent: *\nDisallow: /\n", "/x"));
}

static void product_tokens_are_compared_whole(void **state) {
    (void)state;
    assert_false(allows("User-agent: Mnemon/2.0 (x)\nDisallow: /\n", "/x"));
    assert_false(allows("User-agent: mNEMON\nDisallow: /\n", "/x"));
    assert_true(allows("User-agent: mnemon-images\nDisallow: /\n", "/x"));
    assert_true(allows("User-agent: mnem\nDisallow: /\n", "/x"));
    assert_true(allows("User-agent: notmnemon\nDisallow: /\n", "/x"));
    assert_false(allows("User-agent: * # all\nDisallow: /\n", "/x"));
    assert_false(allows("User-agent: * baz\nDisallow: /\n", "/x"));
    assert_true(allows("User-agent: *bot\nDisallow: /\n", "/x"));
    assert_true(allows("User-agent:\nDisallow: /\n", "/x"));

    struct robots robots;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    assert_int_equal(robots_parse(&robots, BYTES("User-agent: FooBot\nDisallow: /\n"),
                                  BYTES("foobot/1.0 (+http://example.org)")),
                     ERR_OK);
    assert_false(robots_check(&robots, BYTES("/"), NULL));
    robots_done(&robots);
}

static void rules_before_any_group_are_ignored(void **state) {
    (void)state;
    assert_true(allows("Disallow: /\nUser-agent: *\nDisallow: /a\n", "/x"));
    assert_false(allows("Disallow: /\nUser-agent: *\nDisallow: /a\n", "/a"));
}

static void any_line_ends_and_a_bom(void **state) {
    (void)state;
    assert_false(allows("\xef\xbb\xbfUser-agent: *\rDisallow: /a\r\rDisallow: /b", "/b"));
    assert_false(allows("User-agent: *\r\nDisallow: /a\r\n", "/a"));
    assert_false(allows("\n\n  User-agent :  *  \n\tDisallow\t:\t/a\t# why\n", "/a"));

    struct robots robots;
    struct robots_verdict verdict;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    struct bytes text = BYTES("# 1\r\n# 2\r\nUser-agent: *\rDisallow: /three#x\n\nDisallow:/six ");
    assert_int_equal(robots_parse(&robots, text, BYTES("mnemon")), ERR_OK);
    assert_false(robots_check(&robots, BYTES("/three"), &verdict));
    assert_int_equal(verdict.line, 4);
    assert_bytes_equal(verdict.text, BYTES("Disallow: /three"));
    assert_bytes_equal(verdict.agent, BYTES("*"));
    assert_false(robots_check(&robots, BYTES("/six"), &verdict));
    assert_int_equal(verdict.line, 6);
    robots_done(&robots);
}

static void errors_are_tolerated(void **state) {
    (void)state;
    assert_false(allows("User-agent *\nDisallow /a\n", "/a"));
    assert_false(allows("useragent: *\nDissallow: /a\n", "/a"));
    assert_false(allows("<html>\nUser-agent: *\nfoo\n::\nNoindex: /b\nDisallow: /a\n", "/a"));
    assert_true(allows("User-agent: *\nDisallow:\n", "/a"));
    assert_true(allows("User-agent: *\nDisallow: # /a\n", "/a"));
    assert_true(allows("", "/a"));
    assert_true(allows("User-agent: *", "/a"));
}

static void itself_is_always_allowed(void **state) {
    (void)state;
    struct robots robots;
    struct robots_verdict verdict;
    robots_init(&robots, ROBOTS_ALLOW_NOTHING);
    assert_true(robots_check(&robots, BYTES("/robots.txt"), &verdict));
    assert_int_equal(verdict.reason, ROBOTS_ITSELF);
    assert_true(allows("User-agent: *\nDisallow: /\n", "/robots.txt"));
    assert_false(allows("User-agent: *\nDisallow: /\n", "/robots.txt.bak"));
    robots_done(&robots);
}

static void status_decides(void **state) {
    (void)state;
    assert_int_equal(robots_from_status(200), ROBOTS_OBEY);
    assert_int_equal(robots_from_status(204), ROBOTS_OBEY);
    assert_int_equal(robots_from_status(301), ROBOTS_ALLOW_ALL);
    assert_int_equal(robots_from_status(403), ROBOTS_ALLOW_ALL);
    assert_int_equal(robots_from_status(404), ROBOTS_ALLOW_ALL);
    assert_int_equal(robots_from_status(500), ROBOTS_ALLOW_NOTHING);
    assert_int_equal(robots_from_status(503), ROBOTS_ALLOW_NOTHING);
    assert_int_equal(robots_from_status(0), ROBOTS_ALLOW_NOTHING);
    struct robots robots;
    struct robots_verdict verdict;
    robots_init(&robots, ROBOTS_ALLOW_NOTHING);
    assert_false(robots_check(&robots, BYTES("/"), &verdict));
    assert_int_equal(verdict.reason, ROBOTS_BY_ALLOW_NOTHING);
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    assert_true(robots_check(&robots, BYTES("/"), &verdict));
    assert_int_equal(verdict.reason, ROBOTS_BY_ALLOW_ALL);
}

static void verdicts_name_line_text_and_agent(void **state) {
    (void)state;
    struct robots robots;
    struct robots_verdict verdict;
    char sentence[ROBOTS_SENTENCE_SIZE_MAX];
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    struct bytes text =
        BYTES("User-agent: *\nDisallow: /\n\nUser-agent: MnEmon\nAllow: /a%20b\nDisallow: /a\n");
    assert_int_equal(robots_parse(&robots, text, BYTES("mnemon")), ERR_OK);
    assert_true(robots.names_agent);
    assert_true(robots_check(&robots, BYTES("/a%20b/c"), &verdict));
    assert_int_equal(verdict.reason, ROBOTS_BY_RULE);
    assert_int_equal(verdict.line, 5);
    assert_bytes_equal(verdict.text, BYTES("Allow: /a%20b"));
    assert_bytes_equal(verdict.agent, BYTES("MnEmon"));
    assert_string_equal(robots_explain(&verdict, sentence),
                        "line 5 of robots.txt, \"Allow: /a%20b\" for \"MnEmon\", decides");
    assert_true(robots_check(&robots, BYTES("/b"), &verdict));
    assert_int_equal(verdict.reason, ROBOTS_NO_RULE);
    assert_int_equal(verdict.line, 0);
    robots_done(&robots);
}

static void crawl_delay_and_sitemaps(void **state) {
    (void)state;
    static const struct {
        const char *value;
        uint64_t us;
    } delays[] = {
        {"10", 10000000},   {"0.5", 500000},  {"2,25", 2250000},
        {"1.5 s", 1500000}, {"x", 0},         {"", 0},
        {"-3", 0},          {"0.0000001", 0}, {"99999999999999999999", UINT64_C(86400000000)},
    };
    struct robots robots;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "User-agent: x\nCrawl-delay: 77\nDisallow: /\nUser-agent: *\nCrawl-delay: %s\n",
                 delays[i].value);
        assert_int_equal(robots_parse(&robots, bytes_of_string(text), BYTES("mnemon")), ERR_OK);
        assert_int_equal(robots.crawl_delay_us, delays[i].us);
    }
    struct bytes text =
        BYTES("Sitemap: https://a/1.xml\nUser-agent: x\nSITEMAP: https://a/2.xml?a=b:c\nsitemap:\n");
    assert_int_equal(robots_parse(&robots, text, BYTES("mnemon")), ERR_OK);
    assert_int_equal(robots.sitemaps_count, 2);
    assert_bytes_equal(robots_sitemap(&robots, 0), BYTES("https://a/1.xml"));
    assert_bytes_equal(robots_sitemap(&robots, 1), BYTES("https://a/2.xml?a=b:c"));
    robots_done(&robots);
}

/* Lines up to 512 KiB count, later ones do not, and none is cut in two. */
static void large_files_are_read_up_to_the_limit(void **state) {
    (void)state;
    size_t size = 600 << 10;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, '#', size);
    memcpy(text, "User-agent: *\n#", 15);
    for (size_t i = 1000; i < size; i += 100) {
        text[i] = '\n';
    }
    size_t early = (500 << 10) - 300;
    memcpy(text + early, "\nDisallow: /early\n", 18);
    size_t late = ROBOTS_TEXT_SIZE_MAX - 12;
    memcpy(text + late, "\nDisallow: /late\n", 17); /* the limit is behind "Disallow: /" */
    struct robots robots;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    assert_int_equal(robots_parse(&robots, bytes_of(text, size), BYTES("mnemon")), ERR_OK);
    assert_true(robots.is_cut);
    assert_int_equal(robots.rules_count, 1);
    assert_false(robots_check(&robots, BYTES("/early"), NULL));
    assert_true(robots_check(&robots, BYTES("/late"), NULL));
    /* Somebody else cut it there. */
    assert_int_equal(robots_parse(&robots, bytes_of(text, ROBOTS_TEXT_SIZE_MAX), BYTES("mnemon")), ERR_OK);
    assert_int_equal(robots.rules_count, 1);
    robots_done(&robots);
    free(text);
}

/* Would take for ever if stars were tried one against the other. */
static void hostile_patterns_take_linear_time(void **state) {
    (void)state;
    size_t size = 400 << 10;
    char *text = malloc(size);
    assert_non_null(text);
    memcpy(text, "User-agent: *\nDisallow: /", 25);
    for (size_t i = 25; i < size; i++) {
        text[i] = i % 2 == 0 ? 'a' : '*';
    }
    text[size - 2] = 'b';
    text[size - 1] = '$';
    char path[16000];
    memset(path, 'a', sizeof path);
    path[0] = '/';
    struct robots robots;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    assert_int_equal(robots_parse(&robots, bytes_of(text, size), BYTES("mnemon")), ERR_OK);
    for (int i = 0; i < 100; i++) {
        assert_true(robots_check(&robots, bytes_of(path, sizeof path), NULL));
    }
    /* A long piece that nearly fits everywhere. */
    memset(text + 25, 'a', 8000);
    text[25] = '*';
    memcpy(text + 8025, "b\n", 2);
    assert_int_equal(robots_parse(&robots, bytes_of(text, 8027), BYTES("mnemon")), ERR_OK);
    for (int i = 0; i < 100; i++) {
        assert_true(robots_check(&robots, bytes_of(path, sizeof path), NULL));
    }
    robots_done(&robots);
    free(text);
}

/* Tens of thousands of rules that are each quick but together not. */
static void too_many_wildcards_mean_no(void **state) {
    (void)state;
    size_t size = 0;
    char *text = malloc(ROBOTS_TEXT_SIZE_MAX);
    assert_non_null(text);
    size += (size_t)sprintf(text, "User-agent: *\n");
    for (int i = 0; size < ROBOTS_TEXT_SIZE_MAX - 100; i++) {
        size += (size_t)sprintf(text + size, "Allow:/*x%x\n", (unsigned)i);
    }
    char path[4000];
    memset(path, 'y', sizeof path);
    path[0] = '/';
    struct robots robots;
    struct robots_verdict verdict;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    assert_int_equal(robots_parse(&robots, bytes_of(text, size), BYTES("mnemon")), ERR_OK);
    assert_true(robots.rules_count > 30000);
    assert_false(robots_check(&robots, bytes_of(path, sizeof path), &verdict));
    assert_int_equal(verdict.reason, ROBOTS_TOO_COMPLEX);
    assert_true(robots_check(&robots, bytes_of(path, 60), &verdict)); /* usual paths are no trouble */
    assert_int_equal(verdict.reason, ROBOTS_NO_RULE);
    robots_done(&robots);
    free(text);
}

static void paths_of_any_length(void **state) {
    (void)state;
    size_t size = 64 << 10;
    char *path = malloc(size);
    assert_non_null(path);
    memset(path, '*', size); /* each becomes three */
    path[0] = '/';
    path[size - 1] = 'z';
    struct robots robots;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    assert_int_equal(
        robots_parse(&robots, BYTES("User-agent: *\nDisallow: /*z$\nDisallow: /%2a%2A\n"), BYTES("x")),
        ERR_OK);
    struct robots_verdict verdict;
    assert_false(robots_check(&robots, bytes_of(path, size), &verdict));
    assert_int_equal(verdict.line, 3);
    assert_true(robots_check(&robots, bytes_of(NULL, 0), NULL));
    robots_done(&robots);
    free(path);
}

static void one_allocation_and_none_for_a_check(void **state) {
    (void)state;
    struct robots robots;
    robots_init(&robots, ROBOTS_ALLOW_ALL);
    struct bytes text = BYTES("User-agent: *\nDisallow: /a\nAllow: /a/b?x=%2f\nSitemap: http://a/s\n");
    size_t before = allocations_count;
    assert_int_equal(robots_parse(&robots, text, BYTES("mnemon")), ERR_OK);
    assert_int_equal(allocations_count - before, 1);
    before = allocations_count;
    assert_false(robots_check(&robots, BYTES("/a?b"), NULL));
    assert_int_equal(allocations_count - before, 0);
    allocations_left = 0;
    assert_int_equal(robots_parse(&robots, text, BYTES("mnemon")), ERR_MEMORY);
    allocations_left = SIZE_MAX;
    assert_false(robots_check(&robots, BYTES("/b"), NULL)); /* it allows nothing then */
    robots_done(&robots);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_match_decides),
        cmocka_unit_test(allow_wins_a_tie),
        cmocka_unit_test(paths_match_from_their_start),
        cmocka_unit_test(wildcards_and_ends),
        cmocka_unit_test(special_characters_by_their_escapes),
        cmocka_unit_test(escapes_are_compared_normalised),
        cmocka_unit_test(groups_of_one_agent_merge),
        cmocka_unit_test(several_agents_share_a_group),
        cmocka_unit_test(product_tokens_are_compared_whole),
        cmocka_unit_test(rules_before_any_group_are_ignored),
        cmocka_unit_test(any_line_ends_and_a_bom),
        cmocka_unit_test(errors_are_tolerated),
        cmocka_unit_test(itself_is_always_allowed),
        cmocka_unit_test(status_decides),
        cmocka_unit_test(verdicts_name_line_text_and_agent),
        cmocka_unit_test(crawl_delay_and_sitemaps),
        cmocka_unit_test(large_files_are_read_up_to_the_limit),
        cmocka_unit_test(hostile_patterns_take_linear_time),
        cmocka_unit_test(too_many_wildcards_mean_no),
        cmocka_unit_test(paths_of_any_length),
        cmocka_unit_test(one_allocation_and_none_for_a_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
