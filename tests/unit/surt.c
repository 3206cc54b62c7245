/*
 * surt - canonical form and SURT. Expected values marked "IA" are those of the tests of internetarchive/surt.
 */
#include "web/url/surt.h"
#include "unit.h"
#include "web/url/url.h"

#define ID32 "0123456789abcdefghijklemopqrstuv"
#define ID24 "4hqa0555fwsecu455xqckv45"

struct vector {
    const char *url;
    const char *canonical;
    const char *surt;
};

static void check(const struct vector *vector) {
    struct canon canon;
    struct buf surt;
    canon_init(&canon);
    buf_init(&surt, 1 << 20);
    struct err_detail detail = {.text = ""};
    if (canon_run(&canon, bytes_of_string(vector->url), &detail) != ERR_OK) {
        fail_msg("%s: %s", vector->url, detail.text);
    }
    assert_bytes_equal(canon_url(&canon), bytes_of_string(vector->canonical));
    assert_int_equal(surt_put(&surt, &canon), ERR_OK);
    assert_bytes_equal(buf_bytes(&surt), bytes_of_string(vector->surt));
    buf_done(&surt);
    canon_done(&canon);
}

#define CHECK_ALL(vectors)                                             \
    for (size_t i = 0; i < sizeof(vectors) / sizeof *(vectors); i++) { \
        check(&(vectors)[i]);                                          \
    }

static void drops_what_does_not_name_the_page(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"http://www.Example.org:80/B/?b=2&a=1#x", "http://example.org/b?a=1&b=2", "org,example)/b?a=1&b=2"},
        {"http://www.archive.org/", "http://archive.org/", "org,archive)/"},        /* IA */
        {"http://archive.org/goo/?", "http://archive.org/goo", "org,archive)/goo"}, /* IA */
        {"https://user:pass@archive.org/", "https://archive.org/", "org,archive)/"},
        {"http://www34.archive.org/", "http://archive.org/", "org,archive)/"},       /* IA */
        {"http://www2.www2foo.com/", "http://www2foo.com/", "com,www2foo)/"},        /* IA */
        {"http://www2foo.com/", "http://www2foo.com/", "com,www2foo)/"},             /* IA */
        {"http://www.evil.com/blah#frag", "http://evil.com/blah", "com,evil)/blah"}, /* IA */
        {"http://evil.com/foo#bar#baz", "http://evil.com/foo", "com,evil)/foo"},     /* IA */
    };
    CHECK_ALL(vectors);
}

static void keeps_ports_that_are_not_the_default(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"http://example.org:8080/", "http://example.org:8080/", "org,example:8080)/"},
        {"https://www.archive.org:80/", "https://archive.org:80/", "org,archive:80)/"},  /* IA */
        {"http://www.archive.org:443/", "http://archive.org:443/", "org,archive:443)/"}, /* IA */
        {"https://www.archive.org:443/", "https://archive.org/", "org,archive)/"},       /* IA */
        {"http://example.org:/x", "http://example.org/x", "org,example)/x"},             /* IA */
        {"http://example.org:0080/x", "http://example.org/x", "org,example)/x"},
    };
    CHECK_ALL(vectors);
}

static void sorts_arguments_by_name_then_value(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"http://a.org/?b&a", "http://a.org/?a&b", "org,a)/?a&b"},                   /* IA */
        {"http://a.org/?a=2&b&a=1", "http://a.org/?a=1&a=2&b", "org,a)/?a=1&a=2&b"}, /* IA */
        {"http://a.org/?b=b&a=b&b=a&a=a", "http://a.org/?a=a&a=b&b=a&b=b",
         "org,a)/?a=a&a=b&b=a&b=b"},                                  /* IA */
        {"http://a.org/?a=1&", "http://a.org/?&a=1", "org,a)/?&a=1"}, /* IA */
        {"http://a.org/?a=&a", "http://a.org/?a&a=", "org,a)/?a&a="},
        {"http://a.org/?a1=x&a=x", "http://a.org/?a=x&a1=x", "org,a)/?a=x&a1=x"},
        {"http://a.org/?a=b=c&a=b", "http://a.org/?a=b&a=b=c", "org,a)/?a=b&a=b=c"},
        {"http://a.org/q?r?s", "http://a.org/q?r?s", "org,a)/q?r?s"}, /* IA */
    };
    CHECK_ALL(vectors);
}

static void sorts_more_arguments_than_fit_on_the_stack(void **state) {
    (void)state;
    struct buf url;
    buf_init(&url, 4096);
    buf_put_string(&url, "http://a.org/?");
    for (int i = 99; i >= 10; i--) {
        buf_put_format(&url, "a%d=%d%s", i, i, i > 10 ? "&" : "");
    }
    struct canon canon;
    canon_init(&canon);
    assert_int_equal(canon_run(&canon, buf_bytes(&url), NULL), ERR_OK);
    assert_true(bytes_starts_with(canon_url(&canon), BYTES("http://a.org/?a10=10&a11=11&a12=12")));
    assert_true(bytes_ends_with(canon_url(&canon), BYTES("&a98=98&a99=99")));
    assert_int_equal(canon_url(&canon).size, url.size);
    canon_done(&canon);
    buf_done(&url);
}

static void unescapes_repeatedly_and_escapes_once(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"http://host/%25%32%35", "http://host/%25", "host)/%25"},                      /* IA */
        {"http://host/%25%32%35%25%32%35", "http://host/%25%25", "host)/%25%25"},       /* IA */
        {"http://host/%2525252525252525", "http://host/%25", "host)/%25"},              /* IA */
        {"http://host/asdf%25%32%35asd", "http://host/asdf%25asd", "host)/asdf%25asd"}, /* IA */
        {"http://host/%%%25%32%35asd%%", "http://host/%25%25%25asd%25%25",
         "host)/%25%25%25asd%25%25"},                                                /* IA */
        {"http://host.com/ab%23cd", "http://host.com/ab%23cd", "com,host)/ab%23cd"}, /* IA */
        {"http://host/a b", "http://host/a%20b", "host)/a%20b"},
        {"http://host/\xc3\xa9", "http://host/%c3%a9", "host)/%c3%a9"},
        {"http://host/%C3%A9", "http://host/%c3%a9", "host)/%c3%a9"},
        {"http://host%23.com/%257Ea%2521b%2540c%2523d%2524e%25f%255E00%252611%252A22%252833%252944_55%252B",
         "http://host%23.com/~a!b@c%23d$e%25f^00&11*22(33)44_55+",
         "com,host%23)/~a!b@c%23d$e%25f^00&11*22(33)44_55+"}, /* IA */
        {"http://visit.webhosting.yahoo.com/visit.gif?&r=http%3A//web.archive.org/web/20090517140029/http%3A/"
         "/"
         "anthonystewarthead.electric-chi.com/&b=Netscape%205.0%20%28Windows%3B%20en-US%29&s=1366x768&o=Win32"
         "&c=24&j=true&v=1.2",
         "http://visit.webhosting.yahoo.com/visit.gif?&b=netscape%205.0%20(windows;%20en-us)&c=24&j=true&o="
         "win32&r=http://web.archive.org/web/20090517140029/http://anthonystewarthead.electric-chi.com/&s="
         "1366x768&v=1.2",
         "com,yahoo,webhosting,visit)/visit.gif?&b=netscape%205.0%20(windows;%20en-us)&c=24&j=true&o=win32&r="
         "http://web.archive.org/web/20090517140029/http://anthonystewarthead.electric-chi.com/&s=1366x768&v="
         "1.2"}, /* IA */
    };
    CHECK_ALL(vectors);
}

static void normalises_hosts(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"http://www.GOOgle.com/", "http://google.com/", "com,google)/"},    /* IA */
        {"http://www.google.com.../", "http://google.com/", "com,google)/"}, /* IA */
        {"http://a..b.org/", "http://a.b.org/", "org,b,a)/"},
        {"B\xc3\xbc"
         "cher.ch:8080",
         "http://xn--bcher-kva.ch:8080/", "ch,xn--bcher-kva:8080)/"}, /* IA */
        {"\xe2\x98\x83.com", "http://xn--n3h.com/", "com,xn--n3h)/"}, /* IA */
        {"http://%E2%98%83.com/", "http://xn--n3h.com/", "com,xn--n3h)/"},
        {"http://fa\xc3\x9f.de/", "http://xn--fa-hia.de/", "de,xn--fa-hia)/"},
        {"http://\x01\xc2\x80.com/", "http://%01%c2%80.com/", "com,%01%c2%80)/"}, /* IA */
        {"http://www.t%EF%BF%BD%04.82.net/", "http://t%ef%bf%bd%04.82.net/",
         "net,82,t%ef%bf%bd%04)/"},                                                            /* IA */
        {"http:// leadingspace.com/", "http://%20leadingspace.com/", "com,%20leadingspace)/"}, /* IA */
    };
    CHECK_ALL(vectors);
}

static void writes_addresses_in_one_notation(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"http://127.0.0.1/", "http://127.0.0.1/", "1,0,0,127)/"},
        {"http://3279880203/blah", "http://195.127.0.11/blah", "11,0,127,195)/blah"}, /* IA */
        {"http://017.0.0.1/", "http://15.0.0.1/", "1,0,0,15)/"},                      /* IA */
        {"http://10.0.258/", "http://10.0.1.2/", "2,1,0,10)/"},                       /* IA */
        {"http://1.2.3.256/", "http://1.2.3.256/", "256,3,2,1)/"},                    /* IA */
        {"http://39024579298/", "http://22.11.210.226/", "226,210,11,22)/"},          /* IA */
        {"http://%31%36%38%2e%31%38%38%2e%39%39%2e%32%36/%2E%73%65%63%75%72%65/%77%77%77%2E%65%62%61%79/",
         "http://168.188.99.26/.secure/www.ebay", "26,99,188,168)/.secure/www.ebay"}, /* IA */
        {"http://0x7f.1/", "http://127.0.0.1/", "1,0,0,127)/"},
        {"http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/", "[2001:db8::1]:8080)/"},
    };
    CHECK_ALL(vectors);
}

static void normalises_paths(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"http://a.org", "http://a.org/", "org,a)/"},
        {"http://a.org?x", "http://a.org/?x", "org,a)/?x"},
        {"http://a.org/blah/..", "http://a.org/", "org,a)/"}, /* IA */
        {"http://a.org/b/./c/../d", "http://a.org/b/d", "org,a)/b/d"},
        {"http://a.org//two?more//slashes", "http://a.org/two?more//slashes",
         "org,a)/two?more//slashes"}, /* IA */
        {"http://a.org/../b", "http://a.org/../b", "org,a)/../b"},
        {"http://a.org/BIG/", "http://a.org/big", "org,a)/big"},   /* IA */
        {"http://a.org/foo;", "http://a.org/foo;", "org,a)/foo;"}, /* IA */
        {"http://a.org/photos/36050182@N05/", "http://a.org/photos/36050182@n05",
         "org,a)/photos/36050182@n05"},
    };
    CHECK_ALL(vectors);
}

static void strips_session_ids(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"http://a.org/?jsessionid=" ID32, "http://a.org/", "org,a)/"},
        {"http://a.org/?jsessionid=" ID32 "0", "http://a.org/?jsessionid=" ID32 "0",
         "org,a)/?jsessionid=" ID32 "0"},
        {"http://a.org/?JSESSIONID=" ID32 "&x=y", "http://a.org/?x=y", "org,a)/?x=y"},
        {"http://a.org/?one=two&jsessionid=" ID32 "&x=y", "http://a.org/?one=two&x=y", "org,a)/?one=two&x=y"},
        {"http://a.org/?one=two&phpsessid=" ID32, "http://a.org/?&one=two", "org,a)/?&one=two"},
        {"http://archive.org/index.php?PHPSESSID=" ID32 "&action=profile;u=4221",
         "http://archive.org/index.php?action=profile;u=4221",
         "org,archive)/index.php?action=profile;u=4221"},
        {"http://a.org/?aspsessionidABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&x=y", "http://a.org/?x=y",
         "org,a)/?x=y"},
        {"http://a.org/?sid=9682993c8daa2c5497996114facdc805&jsessionid=" ID32, "http://a.org/", "org,a)/"},
        {"http://a.org/?CFID=14475712&CFTOKEN=2D89F5AF-3048-2957-DA4EE4B6B13661AB&r=468710288378&m=forgotten",
         "http://a.org/?m=forgotten&r=468710288378", "org,a)/?m=forgotten&r=468710288378"},
        {"http://a.org/?CFTOKEN=1&x=1&CFID=2", "http://a.org/?x=1", "org,a)/?x=1"}, /* adjacent once sorted */
        {"http://a.org/(S(" ID24 "))/mileg.aspx", "http://a.org/mileg.aspx", "org,a)/mileg.aspx"},
        {"http://a.org/(" ID24 ")/mileg.aspx", "http://a.org/mileg.aspx", "org,a)/mileg.aspx"},
        {"http://a.org/(a(" ID24 ")S(" ID24 ")f(" ID24 "))/mileg.aspx?page=sessionschedules",
         "http://a.org/mileg.aspx?page=sessionschedules", "org,a)/mileg.aspx?page=sessionschedules"},
        {"http://a.org/(" ID24 ")/mileg.html", "http://a.org/(" ID24 ")/mileg.html",
         "org,a)/(" ID24 ")/mileg.html"},
    };
    CHECK_ALL(vectors);
}

static void leaves_urls_without_host_in_place(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"dns:www.archive.org", "dns:www.archive.org", "dns:www.archive.org"},          /* IA */
        {"mailto:foo@example.com", "mailto:foo@example.com", "mailto:foo@example.com"}, /* IA */
        {"urn:some:id", "urn:some:id", "urn:some:id"},                                  /* pywb */
        {"warcinfo:foo.warc.gz", "warcinfo:foo.warc.gz", "warcinfo:foo.warc.gz"},       /* IA */
        {"tel:123456", "tel:123456", "tel:123456"},
        {"file:///etc/X", "file:/etc/x", "file:/etc/x"},
    };
    CHECK_ALL(vectors);
}

static void reads_what_people_and_old_indexes_write(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"www.google.com", "http://google.com/", "com,google)/"},                            /* IA */
        {"  http://www.google.com/  ", "http://google.com/", "com,google)/"},                /* IA */
        {"http://a.org/foo\tbar\rbaz\n2", "http://a.org/foobarbaz2", "org,a)/foobarbaz2"},   /* IA */
        {"http:////////////////www.vikings.com", "http://vikings.com/", "com,vikings)/"},    /* IA */
        {"http://https://order.1and1.com", "https://order.1and1.com/", "com,1and1,order)/"}, /* IA */
        {"whois://whois.isoc.org.il/shaveh.co.il", "whois://whois.isoc.org.il/shaveh.co.il",
         "il,org,isoc,whois)/shaveh.co.il"}, /* IA */
        {"example.org:8080/x", "http://example.org:8080/x", "org,example:8080)/x"},
        {"localhost:8080", "http://localhost:8080/", "localhost:8080)/"},
    };
    CHECK_ALL(vectors);
}

/* Each of these changes again in a second pass of IA's rules. */
static void goes_on_until_nothing_changes(void **state) {
    (void)state;
    static const struct vector vectors[] = {
        {"http://www.www.a.org/", "http://a.org/", "org,a)/"},
        {"http://a.org/x/%3Fz&b", "http://a.org/x?b&z", "org,a)/x?b&z"},
        {"http://a.org/?sid=" ID32 "&sid=" ID32, "http://a.org/", "org,a)/"},
        {"http://www.1/", "http://0.0.0.1/", "1,0,0,0)/"},
        {"http://a.org%2Fb/", "http://a.org/b", "org,a)/b"},
        {"localhost:8080%3Fx", "http://localhost:8080/?x", "localhost:8080)/?x"}, /* found by fuzzing */
    };
    CHECK_ALL(vectors);
}

static void says_why_there_is_no_canonical_form(void **state) {
    (void)state;
    static const struct {
        const char *url;
        const char *reason;
    } cases[] = {
        {"", "the host is missing"},
        {"http://", "the host is missing"},
        {"http:///?x", "the host is missing"},
        {"http://../", "the host is missing"},
        {"http://a.org:http/", "the port is not a number"},
        {"http://a.org:65536/", "the port is above 65535"},
    };
    struct canon canon;
    canon_init(&canon);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err_detail detail;
        assert_int_equal(canon_run(&canon, bytes_of_string(cases[i].url), &detail), ERR_INVALID);
        assert_string_equal(detail.text, cases[i].reason);
        assert_int_equal(canon_url(&canon).size, 0);
    }
    canon_done(&canon);
}

static void refuses_text_and_forms_above_the_limit(void **state) {
    (void)state;
    static uint8_t text[URL_SIZE_MAX + 1];
    memset(text, 'a', sizeof text);
    memcpy(text, "http://a/", 9);
    struct canon canon;
    canon_init(&canon);
    assert_int_equal(canon_run(&canon, bytes_of(text, URL_SIZE_MAX + 1), NULL), ERR_LIMIT);
    assert_int_equal(canon_run(&canon, bytes_of(text, URL_SIZE_MAX), NULL), ERR_OK);
    assert_int_equal(canon_url(&canon).size, URL_SIZE_MAX);
    memset(text + 9, 0xff, sizeof text - 9); /* each becomes three bytes */
    assert_int_equal(canon_run(&canon, bytes_of(text, URL_SIZE_MAX), NULL), ERR_LIMIT);
    assert_int_equal(canon_run(&canon, bytes_of(text, URL_SIZE_MAX / 3), NULL), ERR_OK);
    canon_done(&canon);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drops_what_does_not_name_the_page),
        cmocka_unit_test(keeps_ports_that_are_not_the_default),
        cmocka_unit_test(sorts_arguments_by_name_then_value),
        cmocka_unit_test(sorts_more_arguments_than_fit_on_the_stack),
        cmocka_unit_test(unescapes_repeatedly_and_escapes_once),
        cmocka_unit_test(normalises_hosts),
        cmocka_unit_test(writes_addresses_in_one_notation),
        cmocka_unit_test(normalises_paths),
        cmocka_unit_test(strips_session_ids),
        cmocka_unit_test(leaves_urls_without_host_in_place),
        cmocka_unit_test(reads_what_people_and_old_indexes_write),
        cmocka_unit_test(goes_on_until_nothing_changes),
        cmocka_unit_test(says_why_there_is_no_canonical_form),
        cmocka_unit_test(refuses_text_and_forms_above_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
