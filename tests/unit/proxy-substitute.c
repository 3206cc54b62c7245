/* proxy-substitute: what of a capture may reach a browser that believes to be at the origin. */
#include "node/proxy/proxy_substitute.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

static void an_origin_is_scheme_host_and_port(void **state) {
    static const struct {
        const char *a;
        const char *b;
        bool is_same;
    } cases[] = {
        {"http://a.example/x", "http://a.example/y?z", true},
        {"http://a.example/", "http://A.example:80/", true},
        {"https://a.example:443/", "https://a.example/", true},
        {"http://a.example/", "https://a.example/", false},
        {"http://a.example/", "http://a.example:8080/", false},
        {"http://a.example/", "http://www.a.example/", false},
        {"http://a.example/", "http://a.example.evil.example/", false},
        {"https://a.example:80/", "http://a.example:80/", false},
        {"http://a.example/", "not a URL", false},
        {"data:text/html,a", "data:text/html,b", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            proxy_substitute_is_same_origin(bytes_of_string(cases[i].a), bytes_of_string(cases[i].b)),
            cases[i].is_same);
    }
}

static void scripts_are_refused_by_their_type(void **state) {
    static const struct {
        const char *type;
        bool is_refused;
    } cases[] = {
        {"text/html", false},
        {"TEXT/JavaScript", true},
        {"application/x-javascript; a=b", true},
        {"application/json", false},
        {"application/ecmascript", true},
        {"text/javascript1.5", true},
        {";,text/javascript", true},
        {"text/html; x=javascript", false},
        {"application/wasm", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct proxy_substitute substitute = {.status = 200, .url = BYTES("http://a.example/x")};
        (void)mime_type_extract(&substitute.type, bytes_of_string(cases[i].type));
        const char *refusal = proxy_substitute_refusal(&substitute, BYTES("http://a.example/x"));
        assert_int_equal(refusal != NULL, cases[i].is_refused);
        assert_non_null(proxy_substitute_refusal(&substitute, BYTES("https://a.example/x")));
    }
}

/* In the pages, "^" is where the mark goes. */
static void the_mark_cannot_be_hidden_by_what_a_page_begins_with(void **state) {
    static const char *const pages[] = {
        "<!doctype html><html><head><title>t</title></head><body class='a>b'>^text",
        "<!DOCTYPE html>^<p>no body",
        "^no doctype",
        "^",
        "<!-- <body> --><html><body>^x",
        "<!doctype html><title><body></title><script>'<body>'</script><body onload=x>^",
        "<!doctype html>^<title>never closed",
        "<!doctype html>^<!-- never closed <body>",
        "\xef\xbb\xbf^<p>mark of the byte order",
        "<frameset><frame src=a></frameset>",
    };
    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        char page[200];
        const char *place = strchr(pages[i], '^');
        size_t before = place != NULL ? (size_t)(place - pages[i]) : strlen(pages[i]);
        snprintf(page, sizeof page, "%.*s%s", (int)before, pages[i], place != NULL ? place + 1 : "");
        struct proxy_substitute substitute = {.type = {.essence = "text/html"}};
        size_t found = proxy_substitute_find_place(&substitute, bytes_of_string(page));
        assert_int_equal(found, place != NULL ? before : SIZE_MAX);
    }
    struct proxy_substitute wide = {0};
    assert_true(mime_type_extract(&wide.type, BYTES("text/html; charset=utf-16le")));
    assert_int_equal(proxy_substitute_find_place(&wide, BYTES("<body>")), SIZE_MAX);
}

/* Whatever a capture says, no line of the head begins with a name that is not ours. */
static void a_head_has_only_known_fields(void **state) {
    struct buf out;
    struct proxy_substitute substitute = {
        .status = 200,
        .source = "archive",
    };
    (void)state;
    (void)mime_type_extract(&substitute.type, BYTES("text/html\r\nSet-Cookie: a=b; charset=x y"));
    buf_init(&out, 4096);
    struct proxy_substitute_form form = {.size = 5};
    proxy_substitute_put_head(&out, &substitute, &form);
    assert_non_null(strstr(buf_string(&out), "Content-Type: application/octet-stream\r\n"));
    assert_null(strstr(buf_string(&out), "Set-Cookie"));
    assert_non_null(strstr(buf_string(&out), "Content-Security-Policy: sandbox"));
    assert_null(strstr(buf_string(&out), "allow-same-origin"));
    assert_null(strstr(buf_string(&out), "allow-scripts"));
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_origin_is_scheme_host_and_port),
        cmocka_unit_test(scripts_are_refused_by_their_type),
        cmocka_unit_test(the_mark_cannot_be_hidden_by_what_a_page_begins_with),
        cmocka_unit_test(a_head_has_only_known_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
