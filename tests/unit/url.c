#include "web/url/url.h"

#include "allocations.h"
#include "unit.h"
#include "web/url/canon.h"
#include "web/url/domain.h"
#include "web/url/percent.h"
#include "web/url/punycode.h"
#include "web/url/surt.h"
#include "web/url/uts46.h"

static void parse(struct url *url, const char *text) {
    struct err_detail detail = {.text = ""};
    if (url_parse(url, bytes_of_string(text), NULL, &detail) != ERR_OK) {
        fail_msg("%s: %s", text, detail.text);
    }
}

static void gives_every_part(void **state) {
    (void)state;
    struct url url;
    url_init(&url);
    parse(&url, "HTTPS://user:pa%20ss@EXAMPLE.com:8443/a/../b?q=1#frag");
    assert_bytes_equal(url_href(&url), BYTES("https://user:pa%20ss@example.com:8443/b?q=1#frag"));
    assert_bytes_equal(url_scheme(&url), BYTES("https"));
    assert_bytes_equal(url_username(&url), BYTES("user"));
    assert_bytes_equal(url_password(&url), BYTES("pa%20ss"));
    assert_bytes_equal(url_host(&url), BYTES("example.com"));
    assert_int_equal(url.port, 8443);
    assert_bytes_equal(url_path(&url), BYTES("/b"));
    assert_bytes_equal(url_query(&url), BYTES("q=1"));
    assert_bytes_equal(url_fragment(&url), BYTES("frag"));
    assert_true(url_is_special(&url));
    assert_true(url_is_web(&url));
    url_done(&url);
}

static void tells_an_absent_part_from_an_empty_one(void **state) {
    (void)state;
    struct url url;
    url_init(&url);
    parse(&url, "http://a/");
    assert_false(url_has_query(&url));
    assert_false(url_has_fragment(&url));
    parse(&url, "http://a/?#");
    assert_true(url_has_query(&url));
    assert_true(url_has_fragment(&url));
    assert_int_equal(url_query(&url).size, 0);
    assert_int_equal(url_fragment(&url).size, 0);
    url_done(&url);
}

/* Every part of a URL without userinfo is as if it had been parsed without. */
static void removes_user_and_password(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"http://user:secret@example.org:81/a/b?q=1#f", "http://example.org:81/a/b?q=1#f"},
        {"https://user@example.org", "https://example.org/"},
        {"https://:secret@[2001:db8::1]/?#", "https://[2001:db8::1]/?#"},
        {"http://a@b:c@d@host/x@y", "http://host/x@y"},
        {"http://@host/", "http://host/"},
        {"http://:@host/", "http://host/"},
        {"http://host/a@b", "http://host/a@b"},
        {"other://user:secret@host", "other://host"},
        {"mailto:user@host", "mailto:user@host"},
        {"file:///user:x@host", "file:///user:x@host"},
    };
    struct url url;
    struct url plain;
    url_init(&url);
    url_init(&plain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        parse(&url, cases[i][0]);
        parse(&plain, cases[i][1]);
        url_remove_userinfo(&url);
        assert_false(url_has_userinfo(&url));
        assert_bytes_equal(url_href(&url), bytes_of_string(cases[i][1]));
        assert_bytes_equal(url_scheme(&url), url_scheme(&plain));
        assert_bytes_equal(url_host(&url), url_host(&plain));
        assert_bytes_equal(url_path(&url), url_path(&plain));
        assert_bytes_equal(url_query(&url), url_query(&plain));
        assert_bytes_equal(url_fragment(&url), url_fragment(&plain));
        assert_int_equal(url_has_query(&url), url_has_query(&plain));
        assert_int_equal(url_has_fragment(&url), url_has_fragment(&plain));
        assert_int_equal(url.port, plain.port);
    }
    assert_true(url_href_has_userinfo(BYTES("http://user:secret@example.org/")));
    assert_true(url_href_has_userinfo(BYTES("https://user@example.org:81/")));
    assert_false(url_href_has_userinfo(BYTES("http://example.org:81/user@x")));
    assert_false(url_href_has_userinfo(BYTES("http:")));
    assert_false(url_href_has_userinfo(BYTES("")));
    parse(&url, "http://user:secret@example.org/a/b");
    url_remove_userinfo(&url);
    assert_int_equal(url_parse(&plain, BYTES("c?d"), &url, NULL), ERR_OK);
    assert_bytes_equal(url_href(&plain), BYTES("http://example.org/a/c?d"));
    url_done(&plain);
    url_done(&url);
}

static void shows_no_password_of_a_broken_url(void **state) {
    (void)state;
    assert_bytes_equal(url_text_without_userinfo(BYTES("http://u:a/b@c@host:x/")), BYTES("host:x/"));
    assert_bytes_equal(url_text_without_userinfo(BYTES("u@")), BYTES(""));
    assert_bytes_equal(url_text_without_userinfo(BYTES("host:x/")), BYTES("host:x/"));
    assert_bytes_equal(url_text_without_userinfo(BYTES("")), BYTES(""));
}

static void knows_kinds_of_hosts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *host;
        enum url_host_type type;
    } cases[] = {
        {"http://example.org/", "example.org", URL_HOST_DOMAIN},
        {"http://0x7f.1/", "127.0.0.1", URL_HOST_IPV4},
        {"http://[1:0:0:2:0:0:0:3]/", "[1:0:0:2::3]", URL_HOST_IPV6},
        {"http://[::ffff:1.2.3.4]/", "[::ffff:102:304]", URL_HOST_IPV6},
        {"foo://Ex%41mple/", "Ex%41mple", URL_HOST_OPAQUE},
        {"file:///etc/passwd", "", URL_HOST_EMPTY},
        {"mailto:a@b", "", URL_HOST_NONE},
    };
    struct url url;
    url_init(&url);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(&url, cases[i].text);
        assert_bytes_equal(url_host(&url), bytes_of_string(cases[i].host));
        assert_int_equal(url.host_type, cases[i].type);
    }
    url_done(&url);
}

static void knows_default_ports(void **state) {
    (void)state;
    struct url url;
    url_init(&url);
    parse(&url, "http://a:80/");
    assert_int_equal(url.port, URL_PORT_NONE);
    assert_int_equal(url_port_or_default(&url), 80);
    parse(&url, "https://a:80/");
    assert_int_equal(url_port_or_default(&url), 80);
    parse(&url, "wss://a/");
    assert_int_equal(url_port_or_default(&url), 443);
    parse(&url, "foo://a/");
    assert_int_equal(url_port_or_default(&url), URL_PORT_NONE);
    url_done(&url);
}

static void serialises_origins(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *origin;
    } cases[] = {
        {"https://user@example.org:8080/x", "https://example.org:8080"},
        {"http://example.org:80/x", "http://example.org"},
        {"blob:https://example.org/uuid", "https://example.org"},
        {"blob:ftp://example.org/uuid", "null"},
        {"file:///x", "null"},
        {"data:x", "null"},
    };
    struct url url;
    struct buf origin;
    url_init(&url);
    buf_init(&origin, 256);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(&url, cases[i].text);
        buf_clear(&origin);
        assert_int_equal(url_put_origin(&url, &origin), ERR_OK);
        assert_bytes_equal(buf_bytes(&origin), bytes_of_string(cases[i].origin));
    }
    buf_done(&origin);
    url_done(&url);
}

/* The examples of RFC 3986, section 5.4, where the URL standard agrees with it. */
static void resolves_references_against_a_base(void **state) {
    (void)state;
    static const struct {
        const char *reference;
        const char *href;
    } cases[] = {
        {"g:h", "g:h"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g/"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q#s"},
        {"g#s", "http://a/b/c/g#s"},
        {";x", "http://a/b/c/;x"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../../../g", "http://a/g"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"%2e%2E/g", "http://a/b/g"},
        {"\\\\g\\h", "http://g/h"},
        {"http:g", "http://a/b/c/g"},
    };
    struct url base;
    struct url url;
    url_init(&base);
    url_init(&url);
    parse(&base, "http://a/b/c/d;p?q");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(url_parse(&url, bytes_of_string(cases[i].reference), &base, NULL), ERR_OK);
        assert_bytes_equal(url_href(&url), bytes_of_string(cases[i].href));
    }
    url_done(&url);
    url_done(&base);
}

static void says_where_and_why_it_failed(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
        const char *reason;
    } cases[] = {
        {"", 0, "a URL without a scheme needs a base"},
        {"/path", 0, "a URL without a scheme needs a base"},
        {"http://", 7, "the host is missing"},
        {"http://u@/x", 9, "the host is missing"},
        {"http://a:8x/", 10, "the port is not a number"},
        {"  http://a:8x/", 12, "the port is not a number"},
        {"ht\ntp://\ta:8x/", 12, "the port is not a number"},
        {"http://a:99999/", 9, "the port is above 65535"},
        {"http://1.2.3.4.5/", 7, "the IPv4 address has more than four numbers"},
        {"http://1.2.3.256/", 7, "a number of the IPv4 address is too large"},
        {"http://[::1/", 7, "the IPv6 address has no closing bracket"},
        {"http://[1:2]/", 8, "the IPv6 address has less than eight pieces"},
        {"http://[1::2::3]/", 8, "the IPv6 address has two \"::\""},
        {"http://a<b/", 8, "a host may not contain '<'"},
        {"foo://a<b/", 7, "a host may not contain '<'"},
        {"http://a%00/", 7, "a host may not contain the byte 0x00"},
        {"http://\xff/", 7, "the domain is not UTF-8"},
        {"http://\xc2\xad/", 7, "nothing is left of the domain"},
        {"http://xn--0.\xc3\x9f/", 7, "a label of the domain is not valid punycode"},
        {"http://\xd9\x8a"
         "a/",
         7, "a label of the domain mixes writing directions"},
    };
    struct url url;
    url_init(&url);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err_detail detail;
        assert_int_equal(url_parse(&url, bytes_of_string(cases[i].text), NULL, &detail), ERR_INVALID);
        assert_string_equal(detail.text, cases[i].reason);
        assert_int_equal(detail.offset, cases[i].offset);
    }
    url_done(&url);
}

static void is_empty_after_a_failure(void **state) {
    (void)state;
    struct url url;
    url_init(&url);
    parse(&url, "http://u:p@a:8/b?c#d");
    assert_int_equal(url_parse(&url, BYTES("http://a:b"), NULL, NULL), ERR_INVALID);
    assert_int_equal(url_href(&url).size, 0);
    assert_int_equal(url_scheme(&url).size, 0);
    assert_int_equal(url_host(&url).size, 0);
    assert_int_equal(url_path(&url).size, 0);
    assert_int_equal(url.port, URL_PORT_NONE);
    url_done(&url);
}

static void reads_bytes_that_are_not_utf8_as_the_replacement_character(void **state) {
    (void)state;
    struct url url;
    url_init(&url);
    parse(&url, "http://a/\xff/\xe2\x82?\xc3#\xf0\x9f");
    assert_bytes_equal(url_href(&url), BYTES("http://a/%EF%BF%BD/%EF%BF%BD?%EF%BF%BD#%EF%BF%BD"));
    url_done(&url);
}

static void refuses_input_and_hrefs_above_the_limit(void **state) {
    (void)state;
    static uint8_t text[URL_SIZE_MAX + 1];
    memset(text, 'a', sizeof text);
    memcpy(text, "http://a/", 9);
    struct url url;
    struct err_detail detail;
    url_init(&url);
    assert_int_equal(url_parse(&url, bytes_of(text, sizeof text), NULL, &detail), ERR_LIMIT);
    assert_int_equal(url_parse(&url, bytes_of(text, URL_SIZE_MAX), NULL, NULL), ERR_OK);
    assert_int_equal(url_href(&url).size, URL_SIZE_MAX);
    text[100] = ' '; /* becomes %20: two bytes more */
    assert_int_equal(url_parse(&url, bytes_of(text, URL_SIZE_MAX), NULL, &detail), ERR_LIMIT);
    assert_int_equal(url_href(&url).size, 0);
    assert_true(detail.text[0] != '\0');
    url_done(&url);
}

/* Punycode is quadratic: a hostile page must not buy seconds with 64 KiB. */
static void refuses_endless_international_domains(void **state) {
    (void)state;
    struct buf text;
    struct url url;
    buf_init(&text, URL_SIZE_MAX);
    url_init(&url);
    buf_put_string(&text, "http://");
    for (unsigned i = 0; i < 4096; i++) {
        buf_put_string(&text, "\xe4\xb8\xad");
    }
    struct err_detail detail;
    assert_int_equal(url_parse(&url, buf_bytes(&text), NULL, &detail), ERR_INVALID);
    assert_string_equal(detail.text, "the international domain is too long");
    url_done(&url);
    buf_done(&text);
}

static const char *const usual_urls[] = {
    "https://www.example.com/",
    "https://en.wikipedia.org/wiki/Web_archiving?action=history&limit=500#footer",
    "http://cdn.example.net:8080/assets/js/app.3f2a9c.min.js?v=1.2.3",
    "https://user:secret@example.org/a/../b/./c%20d",
    "https://example.org/caf\xc3\xa9?q=\xe2\x82\xac",
    "http://192.168.0.1/",
    "http://[2001:db8::1]/x",
    "mailto:someone@example.org",
};

static void allocates_nothing_for_usual_urls_when_used_again(void **state) {
    (void)state;
    struct url url;
    struct canon canon;
    struct buf surt;
    url_init(&url);
    canon_init(&canon);
    buf_init(&surt, 4096);
    size_t before = 0;
    for (int round = 0; round < 2; round++) {
        before = allocations_count; /* the first round warms up */
        for (size_t i = 0; i < sizeof usual_urls / sizeof *usual_urls; i++) {
            parse(&url, usual_urls[i]);
            assert_int_equal(canon_run(&canon, url_href(&url), NULL), ERR_OK);
            buf_clear(&surt);
            assert_int_equal(surt_put(&surt, &canon), ERR_OK);
        }
    }
    assert_int_equal(allocations_count, before);
    buf_done(&surt);
    canon_done(&canon);
    url_done(&url);
}

/* Fail the first, second, third … allocation until a run needs no more. */
static void survives_every_failed_allocation(void **state) {
    (void)state;
    static const char *const texts[] = {
        "http://b\xc3\xbc"
        "cher.xn--bcher-kva.example/\t x?b=2&a=1#c",
        "http://%41.example/?z&y&x&w&v&u&t&s&r&q&p&o&n&m&l&k&j&i&h&g&f&e&d&c&b&a&9&8&7&6&5&4&3&2&1&0",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        enum err err = ERR_MEMORY;
        size_t failures = 0;
        for (; err == ERR_MEMORY; failures++) {
            struct url base;
            struct url url;
            struct canon canon;
            struct err_detail detail = {.err = ERR_OK};
            url_init(&base);
            url_init(&url);
            canon_init(&canon);
            parse(&base, "http://example.org/a/b?c#d");
            allocations_left = failures;
            err = url_parse(&url, BYTES("../e"), &base, &detail);
            if (err == ERR_OK) {
                err = url_parse(&url, bytes_of_string(texts[i]), NULL, &detail);
            }
            assert_int_equal(detail.err, err);
            if (err == ERR_OK) {
                err = canon_run(&canon, bytes_of_string(texts[i]), NULL);
            }
            allocations_left = SIZE_MAX;
            canon_done(&canon);
            url_done(&url);
            url_done(&base);
        }
        assert_int_equal(err, ERR_OK);
        assert_true(failures > 2);
    }
}

static void finds_the_registrable_domain(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *domain;
    } cases[] = {
        {"http://www.fool.com/", "fool.com"},
        {"http://www.images.amazon.co.uk/", "amazon.co.uk"},
        {"http://amazon.co.uk./", "amazon.co.uk."},
        {"http://co.uk/", ""},
        {"http://me.github.io/", "me.github.io"},
        {"http://localhost/", ""},
        {"http://127.0.0.1/", ""},
        {"http://[::1]/", ""},
        {"http://www.b\xc3\xbc"
         "cher.example.\xe4\xb8\xad\xe5\x9b\xbd/",
         "example.xn--fiqs8s"},
        {"mailto:a@b.org", ""},
    };
    struct url url;
    url_init(&url);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(&url, cases[i].text);
        assert_bytes_equal(domain_registrable(&url), bytes_of_string(cases[i].domain));
    }
    url_done(&url);
}

/* RFC 3492, section 7.1: (A) Arabic, (D) Czech, (L) Japanese with digits and capitals. */
static void encodes_and_decodes_punycode(void **state) {
    (void)state;
    static const struct {
        uint32_t label[24];
        size_t count;
        const char *ascii;
    } cases[] = {
        {{0x644, 0x64a, 0x647, 0x645, 0x627, 0x628, 0x62a, 0x643, 0x644, 0x645, 0x648, 0x634, 0x639, 0x631,
          0x628, 0x64a, 0x61f},
         17,
         "egbpdaj6bu4bxfgehfvwxn"},
        {{'P', 'r', 'o', 0x10d, 'p', 'r',  'o',   's', 't', 0x11b, 'n',
          'e', 'm', 'l', 'u',   'v', 0xed, 0x10d, 'e', 's', 'k',   'y'},
         22,
         "Proprostnemluvesky-uyb24dma41a"},
        {{'3', 0x5e74, 'B', 0x7d44, 0x91d1, 0x516b, 0x5148, 0x751f}, 8, "3B-ww4c5e180e575a65lsy2b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out;
        buf_init(&out, 256);
        assert_int_equal(punycode_encode(&out, cases[i].label, cases[i].count), ERR_OK);
        assert_bytes_equal(buf_bytes(&out), bytes_of_string(cases[i].ascii));
        uint32_t label[64];
        size_t count;
        assert_int_equal(punycode_decode(buf_bytes(&out), label, &count), ERR_OK);
        assert_int_equal(count, cases[i].count);
        assert_memory_equal(label, cases[i].label, count * sizeof *label);
        buf_done(&out);
    }
}

static void refuses_broken_punycode(void **state) {
    (void)state;
    static const char *const broken[] = {"0", "99999999", "-\xff", "!"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        uint32_t label[16];
        size_t count;
        assert_int_equal(punycode_decode(bytes_of_string(broken[i]), label, &count), ERR_INVALID);
    }
}

/* What the mapping gives must be valid itself, or a domain would change each time it is read. */
static void idna_mapping_is_stable_for_every_code_point(void **state) {
    (void)state;
    size_t valid_count = 0;
    for (uint32_t code_point = 0; code_point <= 0x10ffff; code_point++) {
        if (code_point >= 0xd800 && code_point <= 0xdfff) {
            continue;
        }
        uint32_t mapped[UTS46_MAPPED_MAX];
        size_t count;
        if (!uts46_map(code_point, mapped, &count)) {
            continue;
        }
        valid_count++;
        for (size_t i = 0; i < count; i++) {
            uint32_t again[UTS46_MAPPED_MAX];
            size_t again_count;
            assert_true(uts46_map(mapped[i], again, &again_count));
            assert_int_equal(again_count, 1);
            assert_int_equal(again[0], mapped[i]);
        }
    }
    assert_true(valid_count > 140000); /* all that Unicode 14 assigns, less controls and private use */
}

/* The sets spelled out as the standard does, each from the one before. */
static void percent_encode_sets_are_those_of_the_standard(void **state) {
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        int c = (int)byte;
        bool control = byte < 0x20 || byte > 0x7e;
        bool fragment = control || (byte != 0 && strchr(" \"<>`", c) != NULL);
        bool query = control || (byte != 0 && strchr(" \"#<>", c) != NULL);
        bool path = query || (byte != 0 && strchr("?^`{}", c) != NULL);
        bool userinfo = path || (byte != 0 && strchr("/:;=@[\\]|", c) != NULL);
        bool not_host = byte == 0 || strchr("\t\n\r #/:<>?@[\\]^|", c) != NULL;
        bool not_domain = not_host || byte < 0x20 || byte == '%' || byte == 0x7f;
        assert_int_equal(percent_in_set((uint8_t)byte, PERCENT_CONTROL), control);
        assert_int_equal(percent_in_set((uint8_t)byte, PERCENT_FRAGMENT), fragment);
        assert_int_equal(percent_in_set((uint8_t)byte, PERCENT_QUERY), query);
        assert_int_equal(percent_in_set((uint8_t)byte, PERCENT_SPECIAL_QUERY), query || byte == '\'');
        assert_int_equal(percent_in_set((uint8_t)byte, PERCENT_PATH), path);
        assert_int_equal(percent_in_set((uint8_t)byte, PERCENT_USERINFO), userinfo);
        assert_int_equal(percent_in_set((uint8_t)byte, PERCENT_NOT_HOST), not_host);
        assert_int_equal(percent_in_set((uint8_t)byte, PERCENT_NOT_DOMAIN), not_domain);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_every_part),
        cmocka_unit_test(tells_an_absent_part_from_an_empty_one),
        cmocka_unit_test(removes_user_and_password),
        cmocka_unit_test(shows_no_password_of_a_broken_url),
        cmocka_unit_test(knows_kinds_of_hosts),
        cmocka_unit_test(knows_default_ports),
        cmocka_unit_test(serialises_origins),
        cmocka_unit_test(resolves_references_against_a_base),
        cmocka_unit_test(says_where_and_why_it_failed),
        cmocka_unit_test(is_empty_after_a_failure),
        cmocka_unit_test(reads_bytes_that_are_not_utf8_as_the_replacement_character),
        cmocka_unit_test(refuses_input_and_hrefs_above_the_limit),
        cmocka_unit_test(refuses_endless_international_domains),
        cmocka_unit_test(allocates_nothing_for_usual_urls_when_used_again),
        cmocka_unit_test(survives_every_failed_allocation),
        cmocka_unit_test(finds_the_registrable_domain),
        cmocka_unit_test(encodes_and_decodes_punycode),
        cmocka_unit_test(refuses_broken_punycode),
        cmocka_unit_test(idna_mapping_is_stable_for_every_code_point),
        cmocka_unit_test(percent_encode_sets_are_those_of_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
