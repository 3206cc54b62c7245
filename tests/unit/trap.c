#include "crawl/rules/trap.h"

#include <stdio.h>

#include "base/prng.h"
#include "unit.h"

static const int64_t NOW_US = INT64_C(1767322800) * 1000000; /* 2026-01-02 */

static void parse(struct url *url, const char *text) {
    if (url_parse(url, bytes_of_string(text), NULL, NULL) != ERR_OK) {
        fail_msg("%s is no URL", text);
    }
}

static enum trap_reason check_host(struct trap_host *host, const char *text) {
    struct url url;
    url_init(&url);
    parse(&url, text);
    enum trap_reason reason = trap_check(&trap_defaults, host, &url, 3, NOW_US);
    url_done(&url);
    return reason;
}

/* On a host of which nothing is known. */
static enum trap_reason check(const char *text) {
    struct trap_host host;
    trap_host_init(&host);
    enum trap_reason reason = check_host(&host, text);
    struct url url;
    url_init(&url);
    parse(&url, text);
    assert_int_equal(trap_check_url(&trap_defaults, &url, 3, NOW_US), reason);
    url_done(&url);
    return reason;
}

static void honest_shapes_pass(void **state) {
    (void)state;
    static const char *const urls[] = {
        /* blogs and news */
        "https://blog.example/2024/03/15/how-we-did-it/",
        "https://blog.example/2019/12/",
        "https://blog.example/2026/12/31/preview",
        "https://news.example/articles/2003-07-09/economy",
        "https://news.example/world-europe-67890123",
        "https://blog.example/tag/c/page/47/",
        "https://blog.example/archive/1998/",
        /* history, newspapers, museums */
        "https://paper.example/lccn/sn83030214/1905-03-12/ed-1/seq-5/",
        "https://museum.example/objects/1848/03/",
        "https://history.example/events/1914-07-28",
        "https://archive.example/issue/1789/07/14/page/3",
        "https://census.example/search?year=1850&state=ny",
        "https://db.example/list?date=1900-01-01",
        /* wikis */
        "https://wiki.example/wiki/1984_(novel)",
        "https://wiki.example/w/index.php?title=Main_Page&action=history&offset=20240101000000&limit=500",
        "https://wiki.example/wiki/Category:Living_people?from=A&until=B",
        "https://wiki.example/wiki/2112_(album)",
        "https://wiki.example/wiki/Tora!_Tora!_Tora!",
        /* shops */
        "https://shop.example/c/shoes/men/running?color=red&size=42&sort=price&page=3",
        "https://shop.example/p/4021-11-12/screwdriver",
        "https://shop.example/products/2100/12",
        "https://shop.example/item?id=550e8400-e29b-41d4-a716-446655440000",
        "https://shop.example/search?f[]=a&f[]=b&f[]=c&f[]=d&f[]=e&f[]=f&f[]=g",
        /* documentation, code, packages */
        "https://docs.example/en/stable/api/v2.0/reference/classes/foo.bar.baz/",
        "https://docs.example/javase/8/docs/api/java/util/concurrent/atomic/package-summary.html",
        "https://git.example/foo/foo/tree/main/src/foo/foo/foo.c",
        "https://repo.example/maven2/junit/junit/4.12/junit-4.12.pom",
        "https://repo.example/maven2/org/apache/commons/commons-io/commons-io/2.4/",
        "https://deb.example/pool/main/g/gcc-12/gcc-12_12.2.0-14_amd64.deb",
        "https://ftp.example/pub/linux/kernel/v6.x/incr/patch-6.1.9-10.xz",
        "https://pkg.example/a/a/a/aaa.tar.gz",
        /* maps, media, hashes */
        "https://tile.example/0/0/0.png",
        "https://tile.example/tiles/11/11/11/11.png",
        "https://tile.example/12/2200/1343.png",
        "https://img.example/thumb/a/aa/Aardvark.jpg/220px-Aardvark.jpg",
        "https://cdn.example/aa/aa/aaffee0011223344.css?v=20260101",
        "https://cdn.example/images/w_300,h_200/v1678886400/sample.jpg",
        /* forums and mail */
        "https://forum.example/viewtopic.php?f=12&t=34567&start=120",
        "https://forum.example/showthread.php?t=1234&page=99&pp=20&s=1",
        "https://slash.example/story.pl?sid=24/01/02/0344211",
        "https://lists.example/pipermail/dev/2026-January/thread.html",
        /* calendars within reason */
        "https://town.example/calendar/2026/05/",
        "https://town.example/events/2027-12-24/",
        "https://town.example/kalender?jahr=2025&monat=11&tag=2",
        "https://town.example/kalender?jahr=25&monat=11",
        "https://town.example/calendar.php?date=20260315",
        "https://town.example/calendar/1999-05",
        "https://stats.example/projections?year=2050",
        "https://job.example/valid/0000-00-00/x",
    };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        enum trap_reason reason = check(urls[i]);
        if (reason != TRAP_NONE) {
            fail_msg("%s is cut: %s", urls[i], trap_reason_name(reason));
        }
    }
}

static void traps_are_cut(void **state) {
    (void)state;
    static const struct {
        const char *url;
        enum trap_reason reason;
    } cases[] = {
        {"http://a.example/news/news/news/x", TRAP_REPETITION},
        {"http://a.example/x/en/about/en/about/en/about/y", TRAP_REPETITION},
        {"http://a.example/css/img/css/img/css/img", TRAP_REPETITION},
        {"http://a.example/1/2/3/4/1/2/3/4/1/2/3/4/1/2/3/4/1/2/3/4/1/2/3/4/1/2/3/4", TRAP_REPETITION},
        {"http://a.example/foo/a/foo/b/foo/c/foo/d/foo/e/foo", TRAP_REPETITION},
        {"http://a.example/0/0/0/0/0/0/0", TRAP_REPETITION},
        {"http://a.example/?a=1&a=1&a=1&a=1&a=1&a=1", TRAP_REPETITION},
        {"http://a.example/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z/1/2/3/4/5", TRAP_SEGMENTS},
        {"http://a.example/2031/05/07/", TRAP_CALENDAR},
        {"http://a.example/day-2041-05-07.html", TRAP_CALENDAR},
        {"http://a.example/calendar/2029-01", TRAP_CALENDAR},
        {"http://a.example/events/month/2035-11/", TRAP_CALENDAR},
        {"http://a.example/Kalender/2044/3", TRAP_CALENDAR},
        {"http://a.example/cal?year=2036&month=4", TRAP_CALENDAR},
        {"http://a.example/cal?month=4&year=10403", TRAP_CALENDAR},
        {"http://a.example/cal?year=1802&month=4", TRAP_CALENDAR},
        {"http://a.example/calendar?date=19010203", TRAP_CALENDAR},
        {"http://a.example/events?date=20990203", TRAP_CALENDAR},
        {"http://a.example/calendar?ym=203001", TRAP_CALENDAR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum trap_reason reason = check(cases[i].url);
        if (reason != cases[i].reason) {
            fail_msg("%s: %s", cases[i].url, trap_reason_name(reason));
        }
    }
    char url[5000];
    memset(url, 'a', sizeof url);
    memcpy(url, "http://a.example/", 17);
    url[4096] = '\0';
    assert_int_equal(check(url), TRAP_NONE);
    url[4096] = 'a';
    url[4097] = '\0';
    assert_int_equal(check(url), TRAP_URL_LENGTH);
}

static void depth_is_cut(void **state) {
    (void)state;
    struct url url;
    url_init(&url);
    parse(&url, "http://a.example/x");
    assert_int_equal(trap_check_url(&trap_defaults, &url, trap_defaults.depth_max, NOW_US), TRAP_NONE);
    assert_int_equal(trap_check_url(&trap_defaults, &url, trap_defaults.depth_max + 1, NOW_US), TRAP_DEPTH);
    url_done(&url);
}

static void a_rule_can_be_switched_off(void **state) {
    (void)state;
    struct trap_config off = {0};
    static const char *const urls[] = {
        "http://a.example/news/news/news/news/news/news/news",
        "http://a.example/?a=1&a=1&a=1&a=1&a=1&a=1",
        "http://a.example/calendar/2099/05/07/",
    };
    struct url url;
    struct trap_host host;
    url_init(&url);
    trap_host_init(&host);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        parse(&url, urls[i]);
        assert_int_equal(trap_check(&off, &host, &url, 9999, NOW_US), TRAP_NONE);
        assert_false(trap_is_soft_404(&off, &host, &url, BYTES("12345678")));
    }
    url_done(&url);
}

/* A wiki or a forum has as many as it likes; a filter does not. */
static void combinations_of_arguments_are_bounded(void **state) {
    (void)state;
    struct trap_host host;
    char text[256];
    trap_host_init(&host);
    for (int i = 0; i < 40000; i++) {
        snprintf(text, sizeof text, "http://a.example/index.php?title=Page_%d&oldid=%d", i, i * 7);
        assert_int_equal(check_host(&host, text), TRAP_NONE);
    }
    int passed = 0;
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "http://a.example/shop?color=%d&size=%d&sort=%d&view=%d&page=%d", i % 10,
                 i % 7, i % 4, i % 3, i);
        enum trap_reason reason = check_host(&host, text);
        assert_true(reason == TRAP_NONE || reason == TRAP_QUERY);
        passed += reason == TRAP_NONE ? 1 : 0;
    }
    assert_int_equal(passed, 1000);
    /* Other paths are not affected, however many there are. */
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "http://a.example/p%d?a=1&b=2&c=3&d=4&e=5", i);
        assert_int_equal(check_host(&host, text), TRAP_NONE);
    }
    assert_int_equal(check_host(&host, "http://a.example/shop?a=1&b=2&c=3&d=4&e=5"), TRAP_QUERY);
}

/* With more paths than entries the count of each is never too high. */
static void many_paths_are_never_overcounted(void **state) {
    (void)state;
    struct trap_host host;
    struct prng prng;
    char text[256];
    trap_host_init(&host);
    prng_init(&prng, 4);
    for (int i = 0; i < 100000; i++) {
        int path = (int)prng_below(&prng, 2000); /* 50 URLs each, weight 100: far below the limit */
        snprintf(text, sizeof text, "http://a.example/p%d?a=1&b=2&c=3&d=4&e=%d", path, i);
        assert_int_equal(check_host(&host, text), TRAP_NONE);
    }
}

static void session_ids_of_one_page_are_bounded(void **state) {
    (void)state;
    struct trap_host host;
    char text[256];
    trap_host_init(&host);
    int passed = 0;
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "http://a.example/cart.php?PHPSESSID=%032x&item=3",
                 (unsigned)i * 2654435761u);
        enum trap_reason reason = check_host(&host, text);
        assert_true(reason == TRAP_NONE || reason == TRAP_SESSION);
        passed += reason == TRAP_NONE ? 1 : 0;
    }
    assert_int_equal(passed, (int)trap_defaults.sessions_max);
    snprintf(text, sizeof text, "http://a.example/cart.php?PHPSESSID=%032x&item=3", 2 * 2654435761u);
    assert_int_equal(check_host(&host, text), TRAP_NONE); /* the id that is in use */
    /* Other pages of the same session pass. */
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text,
                 "http://a.example/cart.php?PHPSESSID=0123456789abcdef0123456789abcdef&item=%d", i + 100);
        assert_int_equal(check_host(&host, text), TRAP_NONE);
    }
    /* In the path, too. */
    trap_host_init(&host);
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "http://a.example/x.do;jsessionid=%032x?a=b", (unsigned)i * 2654435761u);
        assert_int_equal(check_host(&host, text), i < 3 ? TRAP_NONE : TRAP_SESSION);
    }
}

static void a_calendar_has_a_budget(void **state) {
    (void)state;
    struct trap_config config = trap_defaults;
    config.calendar_urls_max = 100;
    struct trap_host host;
    struct url url;
    char text[128];
    url_init(&url);
    trap_host_init(&host);
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof text, "http://a.example/calendar/%d/%02d/day", 2010 + i / 12, i % 12 + 1);
        parse(&url, text);
        assert_int_equal(trap_check(&config, &host, &url, 1, NOW_US), i < 100 ? TRAP_NONE : TRAP_CALENDAR);
    }
    parse(&url, "http://a.example/2020/05/06/a-post");
    assert_int_equal(trap_check(&config, &host, &url, 1, NOW_US), TRAP_NONE);
    url_done(&url);
}

static bool soft_404(struct trap_host *host, const char *text, uint64_t signature) {
    struct url url;
    url_init(&url);
    parse(&url, text);
    bool is_soft = trap_is_soft_404(&trap_defaults, host, &url, bytes_of(&signature, sizeof signature));
    url_done(&url);
    return is_soft;
}

static void identical_content_in_many_directories(void **state) {
    (void)state;
    struct trap_host host;
    char text[128];
    trap_host_init(&host);
    int directories = 0;
    for (bool is_soft = false; !is_soft; directories++) {
        assert_true(directories < 20);
        snprintf(text, sizeof text, "http://a.example/d%d/x/", directories);
        is_soft = soft_404(&host, text, 77);
        /* Pages with content of their own in between change nothing. */
        for (int i = 0; i < 100; i++) {
            char other[128];
            snprintf(other, sizeof other, "http://a.example/o%d/%d/", directories, i);
            assert_false(soft_404(&host, other, prng_mix((uint64_t)(directories * 1000 + i + 1))));
        }
    }
    assert_true(directories >= 10);
    assert_true(soft_404(&host, "http://a.example/yet/another/", 77));
    assert_false(soft_404(&host, "http://a.example/yet/another/", 78));
    /* Many times in one directory is a matter of the query. */
    trap_host_init(&host);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "http://a.example/one/page%d?x", i);
        assert_false(soft_404(&host, text, 5));
    }
}

static void state_survives(void **state) {
    (void)state;
    struct trap_host host;
    struct trap_host again;
    struct buf out;
    buf_init(&out, TRAP_HOST_SIZE_MAX);
    trap_host_init(&host);
    for (int i = 0; i < 10; i++) {
        char text[128];
        snprintf(text, sizeof text, "http://a.example/events/2026-05-%02d?sid=%032x", i + 1,
                 (unsigned)i * 77777u);
        check_host(&host, text);
        soft_404(&host, text, prng_mix((uint64_t)i + 1));
    }
    assert_int_equal(trap_host_put(&host, &out), ERR_OK);
    assert_int_equal(trap_host_read(&again, buf_bytes(&out)), ERR_OK);
    assert_memory_equal(host.paths, again.paths, sizeof host.paths);
    assert_memory_equal(host.sessions, again.sessions, sizeof host.sessions);
    assert_memory_equal(host.contents, again.contents, sizeof host.contents);
    assert_int_equal(host.calendar_urls_count, again.calendar_urls_count);
    assert_true(host.calendar_urls_count > 0);
    for (size_t size = 0; size < out.size; size += 97) {
        assert_int_equal(trap_host_read(&again, bytes_slice(buf_bytes(&out), 0, size)), ERR_INVALID);
    }
    out.data[0] ^= 1;
    assert_int_equal(trap_host_read(&again, buf_bytes(&out)), ERR_INVALID);
    memset(out.data + 1, 0xff, out.size - 1);
    out.data[0] ^= 1;
    assert_int_equal(trap_host_read(&again, buf_bytes(&out)), ERR_INVALID);
    buf_done(&out);
}

static void every_reason_has_words(void **state) {
    (void)state;
    for (int i = 0; i < TRAP_REASONS_COUNT; i++) {
        assert_true(strlen(trap_reason_name((enum trap_reason)i)) > 3);
        assert_true(strlen(trap_reason_text((enum trap_reason)i)) > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honest_shapes_pass),
        cmocka_unit_test(traps_are_cut),
        cmocka_unit_test(depth_is_cut),
        cmocka_unit_test(a_rule_can_be_switched_off),
        cmocka_unit_test(combinations_of_arguments_are_bounded),
        cmocka_unit_test(many_paths_are_never_overcounted),
        cmocka_unit_test(session_ids_of_one_page_are_bounded),
        cmocka_unit_test(a_calendar_has_a_budget),
        cmocka_unit_test(identical_content_in_many_directories),
        cmocka_unit_test(state_survives),
        cmocka_unit_test(every_reason_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
