/* url-href: whatever the text, the short way says what url_parse() says. */
#include "web/url/url_href.h"

#include "base/prng.h"
#include "unit.h"

static bool is_same(const struct url *a, const struct url *b) {
    return bytes_equal(url_href(a), url_href(b)) && bytes_equal(url_scheme(a), url_scheme(b)) &&
           bytes_equal(url_username(a), url_username(b)) && bytes_equal(url_password(a), url_password(b)) &&
           bytes_equal(url_host(a), url_host(b)) && a->host.from == b->host.from &&
           a->path.from == b->path.from && bytes_equal(url_path(a), url_path(b)) &&
           bytes_equal(url_query(a), url_query(b)) && a->query.from == b->query.from &&
           a->fragment.from == b->fragment.from && a->port == b->port && a->scheme_type == b->scheme_type &&
           a->host_type == b->host_type && a->path_is_opaque == b->path_is_opaque;
}

static void check(struct bytes text) {
    struct url expected;
    struct url found;
    url_init(&expected);
    url_init(&found);
    enum err err = url_parse(&expected, text, NULL, NULL);
    enum err found_err = url_parse_href(&found, text);
    if (found_err != err || (err == ERR_OK && !is_same(&expected, &found))) {
        fail_msg("\"%.*s\": %s", BYTES_ARG(text), err == ERR_OK ? "other parts" : err_name(found_err));
    }
    url_done(&expected);
    url_done(&found);
}

static void says_what_the_long_way_says(void **state) {
    static const char *const texts[] = {
        "http://example.org/",
        "https://example.org:8080/a/b.html?c=d&e",
        "http://example.org:80/",
        "https://example.org:443/",
        "http://127.0.0.1:8080/p/1.html",
        "http://1.2.3/",
        "http://1.2.3.4.5/",
        "http://01.2.3.4/",
        "http://256.1.1.1/",
        "http://0x7f.0.0.1/",
        "http://a.b.1/",
        "http://a.0x1/",
        "http://xn--nxasmq6b/",
        "http://a--b.org/",
        "http://-a.org/",
        "http://a-.org/",
        "http://a..org/",
        "http://a.org./",
        "http://.org/",
        "http://a.org",
        "http://a.org?q",
        "http://user@a.org/",
        "http://user:word@a.org/x",
        "http://a.org/@b",
        "http://a.org/a/../b",
        "http://a.org/./b",
        "http://a.org/%2e%2E/b",
        "http://a.org/.hidden",
        "http://a.org/a%zz",
        "http://a.org/a b",
        "http://a.org/?a b",
        "http://a.org/?it's",
        "http://a.org/it's",
        "http://a.org/a?b?c",
        "http://a.org/a#b",
        "http://a.org/?",
        "http://a.org/a^b|c`{d}\"<e>",
        "http://a.org/\xc3\xbc",
        "HTTP://A.ORG/",
        "http://a.org\\b",
        "http:///a.org/",
        "http:/a.org/",
        "http://a.org:/",
        "http://a.org:0/",
        "http://a.org:00080/",
        "http://a.org:65536/",
        "http://[::1]/",
        "ftp://a.org/",
        "mailto:x",
        "",
        "http://",
        "http://a.org:8080",
        " http://a.org/",
        "http://a.org/a\tb",
        "http://a_b.org/",
        "http://a%41.org/",
        "http://www.example.co.uk/x;y=z",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check(bytes_of_string(texts[i]));
    }
    struct prng prng;
    prng_init(&prng, 4);
    static const uint8_t alphabet[] = "ab.-/:?#@%2eE0189xn\\ '\"[]_&=\xc3";
    for (size_t i = 0; i < 200000; i++) { /* and what they become with some bytes changed */
        uint8_t text[64];
        const char *from = texts[prng_below(&prng, sizeof texts / sizeof texts[0])];
        size_t size = strlen(from) < sizeof text ? strlen(from) : sizeof text;
        memcpy(text, from, size);
        for (size_t k = 0; k < 1 + prng_below(&prng, 3) && size > 8; k++) {
            text[7 + prng_below(&prng, size - 7)] = alphabet[prng_below(&prng, sizeof alphabet - 1)];
        }
        check(bytes_of(text, size));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_the_long_way_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
