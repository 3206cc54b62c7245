#include "crawl/rules/scope.h"

#include <stdio.h>

#include "allocations.h"
#include "unit.h"

/* A scope with its seeds, and one URL to ask about. */
struct fixture {
    struct scope scope;
    struct url url;
    struct scope_verdict verdict;
};

static void parse(struct url *url, const char *text) {
    if (url_parse(url, bytes_of_string(text), NULL, NULL) != ERR_OK) {
        fail_msg("%s is no URL", text);
    }
}

static void start(struct fixture *fixture, enum scope_type type, const char *seed) {
    struct scope_config config = {.type = type, .depth_max = SCOPE_DEPTH_ANY, .hash_seed = 7};
    scope_init(&fixture->scope, &config);
    url_init(&fixture->url);
    parse(&fixture->url, seed);
    assert_int_equal(scope_add_seed(&fixture->scope, &fixture->url), ERR_OK);
}

static void end(struct fixture *fixture) {
    scope_done(&fixture->scope);
    url_done(&fixture->url);
}

static enum scope_reason check_from(struct fixture *fixture, const char *url, enum scope_via via,
                                    uint16_t depth) {
    parse(&fixture->url, url);
    bool is_in = scope_check(&fixture->scope, &fixture->url, via, depth, &fixture->verdict);
    assert_true(is_in == fixture->verdict.is_in);
    assert_true(is_in == (fixture->verdict.reason <= SCOPE_IN_REDIRECT));
    return fixture->verdict.reason;
}

static enum scope_reason check(struct fixture *fixture, const char *url) {
    return check_from(fixture, url, SCOPE_VIA_PAGE, 0);
}

static void page_is_the_page_and_its_objects(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_PAGE, "https://example.org/a/b.html");
    assert_int_equal(check_from(&f, "https://example.org/a/b.html", SCOPE_VIA_SEED, 0), SCOPE_IN_SEED);
    assert_int_equal(f.verdict.depth, 0);
    assert_int_equal(check(&f, "https://example.org/a/c.html"), SCOPE_OUT_PAGE);
    assert_int_equal(check_from(&f, "https://cdn.example.net/x.css", SCOPE_VIA_EMBED, 0), SCOPE_IN_EMBED);
    /* What the style embeds, and where that redirects to. */
    uint16_t style = f.verdict.depth;
    assert_int_equal(check_from(&f, "https://fonts.example.com/f.woff2", SCOPE_VIA_EMBED, style),
                     SCOPE_IN_EMBED);
    uint16_t font = f.verdict.depth;
    assert_int_equal(scope_depth_embeds(font), 2);
    assert_int_equal(check_from(&f, "https://other.example/f.woff2", SCOPE_VIA_REDIRECT, font),
                     SCOPE_IN_EMBED);
    /* Links in an embedded frame lead out as those of a page do. */
    assert_int_equal(check_from(&f, "https://cdn.example.net/page", SCOPE_VIA_PAGE, style), SCOPE_OUT_PAGE);
    end(&f);
}

static void prefix_is_the_directory_of_the_seed(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_PREFIX, "https://example.org/docs/v2/index.html?x#y");
    assert_int_equal(check(&f, "https://example.org/docs/v2/"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "https://example.org/docs/v2/a/b/c"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "http://www.example.org/docs/v2/x?y"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "https://example.org/docs/v2"), SCOPE_OUT_PREFIX);
    assert_int_equal(check(&f, "https://example.org/docs/v20/x"), SCOPE_OUT_PREFIX);
    assert_int_equal(check(&f, "https://example.org/docs/"), SCOPE_OUT_PREFIX);
    assert_int_equal(check(&f, "https://example.net/docs/v2/"), SCOPE_OUT_PREFIX);
    assert_int_equal(check_from(&f, "https://example.net/i.png", SCOPE_VIA_EMBED, 0), SCOPE_IN_EMBED);
    end(&f);
    start(&f, SCOPE_PREFIX, "https://example.org");
    assert_int_equal(check(&f, "https://example.org/anything"), SCOPE_IN_PAGE);
    end(&f);
}

static void host_is_http_and_https_with_and_without_www(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_HOST, "http://www.example.org/a");
    assert_int_equal(check(&f, "http://www.example.org/"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "https://example.org/x"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "https://sub.example.org/"), SCOPE_OUT_HOST);
    assert_int_equal(check(&f, "https://example.org:8443/"), SCOPE_OUT_HOST);
    assert_int_equal(check(&f, "https://example.org.evil.example/"), SCOPE_OUT_HOST);
    assert_int_equal(check(&f, "ftp://example.org/"), SCOPE_OUT_NOT_WEB);
    end(&f);
    start(&f, SCOPE_HOST, "http://127.0.0.1:8080/");
    assert_int_equal(check(&f, "http://127.0.0.1:8080/x"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "http://127.0.0.2:8080/x"), SCOPE_OUT_HOST);
    assert_int_equal(check(&f, "http://127.0.0.1:8081/x"), SCOPE_OUT_HOST);
    assert_int_equal(check(&f, "http://127.0.0.1/x"), SCOPE_OUT_HOST);
    end(&f);
}

static void domain_is_what_somebody_registered(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_DOMAIN, "http://www.example.co.uk/a");
    assert_int_equal(check(&f, "http://example.co.uk/"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "https://a.b.example.co.uk:444/"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "https://other.co.uk/"), SCOPE_OUT_DOMAIN);
    assert_int_equal(check(&f, "https://notexample.co.uk/"), SCOPE_OUT_DOMAIN);
    assert_int_equal(check(&f, "http://10.0.0.1/"), SCOPE_OUT_DOMAIN);
    end(&f);
    start(&f, SCOPE_DOMAIN, "http://me.github.io/"); /* each user is an owner */
    assert_int_equal(check(&f, "http://x.me.github.io/"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "http://you.github.io/"), SCOPE_OUT_DOMAIN);
    end(&f);
    start(&f, SCOPE_DOMAIN, "http://localhost:8080/"); /* no domain: the host is all there is */
    assert_int_equal(check(&f, "http://localhost:8080/x"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "http://other.localhost:8080/x"), SCOPE_OUT_DOMAIN);
    end(&f);
}

/* A suffix that somebody rents out below a registered domain belongs to its tenants. */
static void domains_below_private_suffixes_are_others(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_DOMAIN, "http://www.amazonaws.com/");
    assert_int_equal(check(&f, "http://docs.amazonaws.com/"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "http://tenant.s3.amazonaws.com/"), SCOPE_OUT_DOMAIN);
    end(&f);
}

static void any_is_all(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_ANY, "http://a.example/");
    assert_int_equal(check(&f, "http://b.example/"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "mailto:a@b.example"), SCOPE_OUT_NOT_WEB);
    end(&f);
}

static void depth_counts_page_links(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_HOST, "http://a.example/");
    f.scope.config.depth_max = 2;
    assert_int_equal(check(&f, "http://a.example/1"), SCOPE_IN_PAGE);
    uint16_t one = f.verdict.depth;
    assert_int_equal(scope_depth_pages(one), 1);
    assert_int_equal(check_from(&f, "http://a.example/2", SCOPE_VIA_PAGE, one), SCOPE_IN_PAGE);
    uint16_t two = f.verdict.depth;
    assert_int_equal(check_from(&f, "http://a.example/3", SCOPE_VIA_PAGE, two), SCOPE_OUT_DEPTH);
    assert_int_equal(check_from(&f, "http://b.example/i.png", SCOPE_VIA_EMBED, two), SCOPE_IN_EMBED);
    assert_int_equal(check_from(&f, "http://a.example/4", SCOPE_VIA_REDIRECT, two), SCOPE_IN_PAGE);
    assert_int_equal(scope_depth_pages(f.verdict.depth), 2);
    f.scope.config.depth_max = 0;
    assert_int_equal(check(&f, "http://a.example/1"), SCOPE_OUT_DEPTH);
    end(&f);
}

/* Further pages are later; what belongs to a page comes with it. */
static void depth_is_ordered_and_sticks(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_HOST, "http://a.example/");
    uint16_t depth = 0;
    for (unsigned i = 1; i < 600; i++) {
        assert_int_equal(check_from(&f, "http://a.example/n", SCOPE_VIA_PAGE, depth), SCOPE_IN_PAGE);
        assert_true(f.verdict.depth >= depth);
        depth = f.verdict.depth;
        assert_int_equal(scope_depth_pages(depth), i < 511 ? i : 511);
    }
    end(&f);
}

static void chains_end(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_HOST, "http://a.example/");
    uint16_t depth = 0;
    unsigned redirects = 0;
    while (check_from(&f, "http://a.example/r", SCOPE_VIA_REDIRECT, depth) == SCOPE_IN_REDIRECT) {
        depth = f.verdict.depth;
        redirects++;
    }
    assert_int_equal(f.verdict.reason, SCOPE_OUT_REDIRECTS);
    assert_int_equal(redirects, SCOPE_REDIRECTS_MAX);
    unsigned embeds = 0;
    for (depth = 0; check_from(&f, "http://b.example/f", SCOPE_VIA_EMBED, depth) == SCOPE_IN_EMBED;) {
        depth = f.verdict.depth;
        embeds++;
    }
    assert_int_equal(f.verdict.reason, SCOPE_OUT_EMBEDS);
    assert_int_equal(embeds, SCOPE_EMBEDS_MAX);
    end(&f);
}

static void a_seed_may_redirect_anywhere(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_HOST, "http://example.org/");
    assert_int_equal(check(&f, "https://www.example.net/start"), SCOPE_OUT_HOST);
    assert_int_equal(check_from(&f, "https://www.example.net/start", SCOPE_VIA_REDIRECT, 0),
                     SCOPE_IN_REDIRECT);
    assert_true(scope_depth_is_seed(f.verdict.depth));
    assert_int_equal(scope_add_seed(&f.scope, &f.url), ERR_OK);
    assert_int_equal(check(&f, "https://example.net/other"), SCOPE_IN_PAGE);
    /* A page that is none may not. */
    assert_int_equal(check(&f, "http://example.org/x"), SCOPE_IN_PAGE);
    uint16_t depth = f.verdict.depth;
    assert_false(scope_depth_is_seed(depth));
    assert_int_equal(check_from(&f, "https://elsewhere.example/", SCOPE_VIA_REDIRECT, depth), SCOPE_OUT_HOST);
    assert_int_equal(check_from(&f, "https://elsewhere.example/", SCOPE_VIA_REFRESH, depth), SCOPE_OUT_HOST);
    end(&f);
}

static void patterns_exclude_all_and_include_pages(void **state) {
    (void)state;
    struct pattern_list include;
    struct pattern_list exclude;
    pattern_list_init(&include);
    pattern_list_init(&exclude);
    assert_int_equal(pattern_list_add(&include, BYTES("*/blog/*"), NULL), ERR_OK);
    assert_int_equal(pattern_list_add(&exclude, BYTES("*.zip"), NULL), ERR_OK);
    assert_int_equal(pattern_list_add(&exclude, BYTES("re:[?&]print=1"), NULL), ERR_OK);
    struct fixture f;
    start(&f, SCOPE_HOST, "http://a.example/");
    f.scope.config.include = &include;
    f.scope.config.exclude = &exclude;
    assert_int_equal(check_from(&f, "http://a.example/", SCOPE_VIA_SEED, 0), SCOPE_IN_SEED);
    assert_int_equal(check(&f, "http://a.example/blog/1"), SCOPE_IN_PAGE);
    assert_int_equal(check(&f, "http://a.example/about"), SCOPE_OUT_NOT_INCLUDED);
    assert_int_equal(check_from(&f, "http://a.example/i.png", SCOPE_VIA_EMBED, 0), SCOPE_IN_EMBED);
    assert_int_equal(check_from(&f, "http://a.example/i.zip", SCOPE_VIA_EMBED, 0), SCOPE_OUT_EXCLUDED);
    assert_int_equal(check_from(&f, "http://a.example/i.zip#part", SCOPE_VIA_EMBED, 0), SCOPE_OUT_EXCLUDED);
    assert_int_equal(check_from(&f, "http://a.example/s?print=1", SCOPE_VIA_SEED, 0), SCOPE_OUT_EXCLUDED);
    assert_int_equal(f.verdict.pattern_index, 1);
    struct buf sentence;
    buf_init(&sentence, 1000);
    scope_explain(&f.scope, &f.verdict, &sentence);
    assert_bytes_equal(buf_bytes(&sentence), BYTES("it matches the exclude pattern \"re:[?&]print=1\""));
    buf_done(&sentence);
    end(&f);
    pattern_list_done(&include);
    pattern_list_done(&exclude);
}

static void forms_and_guesses_on_request(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_HOST, "http://a.example/");
    assert_int_equal(check_from(&f, "http://a.example/search", SCOPE_VIA_FORM, 0), SCOPE_OUT_FORM);
    assert_int_equal(check_from(&f, "http://a.example/next", SCOPE_VIA_GUESS, 0), SCOPE_OUT_GUESS);
    /* A lazy image is an object of the page, wherever it lies. */
    assert_int_equal(check_from(&f, "http://cdn.example/lazy.JPG?w=3", SCOPE_VIA_GUESS, 0), SCOPE_IN_EMBED);
    f.scope.config.follows_forms = f.scope.config.follows_guesses = true;
    assert_int_equal(check_from(&f, "http://a.example/search", SCOPE_VIA_FORM, 0), SCOPE_IN_PAGE);
    assert_int_equal(check_from(&f, "http://a.example/next", SCOPE_VIA_GUESS, 0), SCOPE_IN_PAGE);
    assert_int_equal(check_from(&f, "http://b.example/next", SCOPE_VIA_GUESS, 0), SCOPE_OUT_HOST);
    assert_int_equal(check_from(&f, "http://a.example/deep", SCOPE_VIA_SITEMAP, 99 << 7), SCOPE_IN_PAGE);
    assert_int_equal(scope_depth_pages(f.verdict.depth), 1);
    end(&f);
}

static void every_reason_has_words(void **state) {
    (void)state;
    struct scope scope = {0};
    for (int i = 0; i < SCOPE_REASONS_COUNT; i++) {
        struct scope_verdict verdict = {.reason = (enum scope_reason)i, .pattern_index = PATTERN_NONE};
        struct buf sentence;
        buf_init(&sentence, 1000);
        scope_explain(&scope, &verdict, &sentence);
        assert_true(sentence.size > 10);
        buf_done(&sentence);
    }
}

static void thousands_of_seeds_and_no_allocation(void **state) {
    (void)state;
    struct fixture f;
    start(&f, SCOPE_DOMAIN, "http://example.org/");
    char text[64];
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "http://www.host%d.example.com%d.net/", i, i);
        parse(&f.url, text);
        assert_int_equal(scope_add_seed(&f.scope, &f.url), ERR_OK);
        assert_int_equal(scope_add_seed(&f.scope, &f.url), ERR_OK); /* again */
    }
    parse(&f.url, "http://some.sub.example.com4321.net/");
    size_t before = allocations_count;
    assert_true(scope_check(&f.scope, &f.url, SCOPE_VIA_PAGE, 0, &f.verdict));
    assert_int_equal(allocations_count - before, 0);
    parse(&f.url, "http://some.sub.example.com5000.net/");
    assert_false(scope_check(&f.scope, &f.url, SCOPE_VIA_PAGE, 0, &f.verdict));
    end(&f);
}

static void fails_cleanly_without_memory(void **state) {
    (void)state;
    struct scope_config config = {.type = SCOPE_HOST};
    struct scope scope;
    struct url url;
    url_init(&url);
    parse(&url, "http://a.example/");
    scope_init(&scope, &config);
    allocations_left = 0;
    assert_int_equal(scope_add_seed(&scope, &url), ERR_MEMORY);
    allocations_left = SIZE_MAX;
    assert_int_equal(scope.places.count, 0);
    scope_done(&scope);
    url_done(&url);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_is_the_page_and_its_objects),
        cmocka_unit_test(prefix_is_the_directory_of_the_seed),
        cmocka_unit_test(host_is_http_and_https_with_and_without_www),
        cmocka_unit_test(domain_is_what_somebody_registered),
        cmocka_unit_test(domains_below_private_suffixes_are_others),
        cmocka_unit_test(any_is_all),
        cmocka_unit_test(depth_counts_page_links),
        cmocka_unit_test(depth_is_ordered_and_sticks),
        cmocka_unit_test(chains_end),
        cmocka_unit_test(a_seed_may_redirect_anywhere),
        cmocka_unit_test(patterns_exclude_all_and_include_pages),
        cmocka_unit_test(forms_and_guesses_on_request),
        cmocka_unit_test(every_reason_has_words),
        cmocka_unit_test(thousands_of_seeds_and_no_allocation),
        cmocka_unit_test(fails_cleanly_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
