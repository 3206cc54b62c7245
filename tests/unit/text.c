#include "web/html/text.h"

#include <stdlib.h>

#include "allocations.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "unit.h"

static struct text *read_bytes(const char *type, struct bytes page, size_t piece_size) {
    struct text *text = text_new();
    assert_non_null(text);
    text_start(text, bytes_of_string(type));
    for (size_t from = 0; from < page.size; from += piece_size) {
        size_t to = page.size - from < piece_size ? page.size : from + piece_size;
        assert_int_equal(text_feed(text, bytes_slice(page, from, to)), ERR_OK);
    }
    assert_int_equal(text_finish(text), ERR_OK);
    return text;
}

/* The body of the page, however it is cut. */
static void expect_body(const char *type, struct bytes page, const char *body) {
    for (size_t piece_size = 1; piece_size <= page.size; piece_size = piece_size * 3 + 1) {
        struct text *text = read_bytes(type, page, piece_size);
        assert_bytes_equal(text_part(text, TEXT_BODY), bytes_of_string(body));
        text_free(text);
    }
}

static void expect(const char *page, const char *body) {
    expect_body("text/html; charset=utf-8", bytes_of_string(page), body);
}

static void title_text_language_and_description_are_told_apart(void **state) {
    (void)state;
    struct text *text = read_bytes("text/html",
                                   BYTES("<!DOCTYPE html><html lang=en-GB><head><meta charset=utf-8>"
                                         "<meta name=Description content=' Old &amp; new '>"
                                         "<title> A\n title &lt;b&gt; </title></head>"
                                         "<body><h1>Heading</h1><p>First.<p>Second.</body></html>"),
                                   7);
    assert_bytes_equal(text_part(text, TEXT_TITLE), BYTES("A title <b>"));
    assert_bytes_equal(text_part(text, TEXT_BODY), BYTES("Heading First. Second."));
    assert_bytes_equal(text_part(text, TEXT_DESCRIPTION), BYTES("Old & new"));
    assert_bytes_equal(text_part(text, TEXT_LANGUAGE), BYTES("en-GB"));
    text_free(text);
}

static void og_description_counts_where_there_is_no_other(void **state) {
    (void)state;
    struct text *text = read_bytes("text/html", BYTES("<meta property=og:description content=one>"), 99);
    assert_bytes_equal(text_part(text, TEXT_DESCRIPTION), BYTES("one"));
    text_free(text);
    text = read_bytes("text/html",
                      BYTES("<meta property=og:description content=one><meta name=description content=two>"
                            "<meta property=og:description content=three>"),
                      99);
    assert_bytes_equal(text_part(text, TEXT_DESCRIPTION), BYTES("two"));
    text_free(text);
}

static void words_go_on_through_elements_in_a_line_and_end_at_others(void **state) {
    (void)state;
    expect("H<sub>2</sub>O and <b>b</b>old", "H2O and bold");
    expect("<div>one</div><div>two</div>three<br>four<td>five", "one two three four five");
    expect("a<!-- c -->b c<wbr>d", "ab cd");
    expect(" \t a \r\n\f b&nbsp;&nbsp;c &#32; d ", "a b c d");
    expect("hyphen&shy;ation", "hyphenation");
    expect("a\x01\x02\x03z\x7fy", "a z y");
}

static void what_nobody_reads_is_left_out(void **state) {
    (void)state;
    expect("a<script>b('</div>')</script>c", "a c");
    expect("a<style>b{}</style>c<template><p>d<template>e</template>f</template>g", "a c g");
    expect("a<noscript><img src=x>b</noscript>c<iframe>d</iframe>e", "a c e");
    expect("a<svg><title>b</title><text>c</text></svg>d<svg/>e", "a d e");
    expect("a<select><option>b<option>c</select>d", "a d");
    expect("a<div hidden>b<div>c</div>d</div>e", "a e");
    expect("a<span style='color: red; DISPLAY :\n none'>b</span>c", "ac");
    expect("a<span style='display:block;none'>b</span>c", "abc");
    expect("a<input hidden>b<p hidden>c<p>d", "a b d");
    expect("<body style='display:none'>a", "a");
    expect("a<div hidden>b", "a");
}

static void svg_titles_are_not_the_pages(void **state) {
    (void)state;
    struct text *text = read_bytes(
        "text/html", BYTES("<title></title><svg><title>icon</title></svg><title>Real</title>x"), 5);
    assert_bytes_equal(text_part(text, TEXT_TITLE), BYTES("Real"));
    assert_bytes_equal(text_part(text, TEXT_BODY), BYTES("x"));
    text_free(text);
}

static void encodings_become_utf8(void **state) {
    (void)state;
    expect_body("text/html", BYTES("na\xefve"), "na\xc3\xafve");
    expect_body("text/html; charset=shift_jis", BYTES("<p>\x93\xfa\x96\x7b</p>"), "日本");
    expect_body("text/html", BYTES("<meta charset=koi8-r>\xc4\xc1"), "да");
    expect_body("text/html", BYTES("\xff\xfe<\0p\0>\0\xe4\0"), "ä");
    expect_body("text/html; charset=utf-8", BYTES("a\xff z\xe2\x82"), "a\xef\xbf\xbd z\xef\xbf\xbd");
    expect_body("text/html; charset=utf-8", BYTES("\xef\xbb\xbf\xe2\x82\xac"), "€");
}

static void xhtml_ends_elements_as_xml_does(void **state) {
    (void)state;
    expect_body("application/xhtml+xml",
                BYTES("<html><title/><script src='x' />read<style>p{}</style><![CDATA[ <this> ]]></html>"),
                "read <this>");
}

static void all_of_it_is_bounded(void **state) {
    (void)state;
    struct buf page;
    buf_init(&page, 8 << 20);
    buf_put_string(&page, "<html lang=");
    for (int i = 0; i < 50; i++) {
        buf_put_string(&page, "en-");
    }
    buf_put_string(&page, "><title>");
    for (int i = 0; i < 1000; i++) {
        buf_put_string(&page, "äöü");
    }
    buf_put_string(&page, "</title>");
    for (int i = 0; i < 400000; i++) {
        buf_put_string(&page, "x日 ");
    }
    struct text *text = read_bytes("text/html; charset=utf-8", buf_bytes(&page), 65536);
    assert_true(text_is_full(text));
    assert_true(text_part(text, TEXT_BODY).size <= TEXT_BODY_SIZE_MAX &&
                text_part(text, TEXT_BODY).size > TEXT_BODY_SIZE_MAX - 8);
    assert_int_equal(text_part(text, TEXT_TITLE).size, TEXT_TITLE_SIZE_MAX);
    assert_true(utf8_is_valid(text_part(text, TEXT_BODY)) && utf8_is_valid(text_part(text, TEXT_TITLE)));
    assert_int_equal(text_part(text, TEXT_LANGUAGE).size, 0);
    text_free(text);
    buf_done(&page);
}

static void a_text_can_be_used_again(void **state) {
    (void)state;
    struct text *text = read_bytes("text/html", BYTES("<title>one</title><div hidden>two"), 3);
    text_start(text, BYTES("text/html"));
    assert_int_equal(text_feed(text, BYTES("<p>three")), ERR_OK);
    assert_int_equal(text_finish(text), ERR_OK);
    assert_int_equal(text_part(text, TEXT_TITLE).size, 0);
    assert_bytes_equal(text_part(text, TEXT_BODY), BYTES("three"));
    text_free(text);
}

static void the_lack_of_memory_is_said(void **state) {
    (void)state;
    struct bytes page = BYTES("<title>a</title><p>b &amp; c</p><meta name=description content='d'>");
    bool was_whole = false;
    for (size_t left = 0; !was_whole && left < 100; left++) {
        allocations_left = left;
        struct text *text = text_new();
        if (text != NULL) {
            text_start(text, BYTES("text/html"));
            enum err err = text_feed(text, page);
            err = err == ERR_OK ? text_finish(text) : err;
            assert_true(err == ERR_OK || err == ERR_MEMORY);
            was_whole = err == ERR_OK;
            allocations_left = SIZE_MAX;
            assert_true(!was_whole || bytes_equal(text_part(text, TEXT_BODY), BYTES("b & c")));
            text_free(text);
        }
        allocations_left = SIZE_MAX;
    }
    assert_true(was_whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(title_text_language_and_description_are_told_apart),
        cmocka_unit_test(og_description_counts_where_there_is_no_other),
        cmocka_unit_test(words_go_on_through_elements_in_a_line_and_end_at_others),
        cmocka_unit_test(what_nobody_reads_is_left_out),
        cmocka_unit_test(svg_titles_are_not_the_pages),
        cmocka_unit_test(encodings_become_utf8),
        cmocka_unit_test(xhtml_ends_elements_as_xml_does),
        cmocka_unit_test(all_of_it_is_bounded),
        cmocka_unit_test(a_text_can_be_used_again),
        cmocka_unit_test(the_lack_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
