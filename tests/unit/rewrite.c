/* rewrite - HTML: what becomes of each element, whole and in pieces. */
#include "web/rewrite/rewrite.h"

#include <stdio.h>

#include "allocations.h"
#include "rewrite-fixture.h"

static void expect(const char *input, const char *want) {
    fixture_expect(REWRITE_HTML, input, want);
}

static void stays(const char *input) {
    expect(input, input);
}

static void links_lead_to_pages(void **state) {
    (void)state;
    expect("<a href=x>", "<a href=\"/w/1mp_/http://h/d/x\">");
    expect("<A HREF = ' ../y?a=1&amp;b=2#z '>", "<A HREF = '/w/1mp_/http://h/y?a=1&amp;b=2#z'>");
    expect("<area href=//o/x>", "<area href=\"/w/1mp_/http://o/x\">");
    expect("<a href=\"https://o\">", "<a href=\"/w/1mp_/https://o/\">");
    expect("<form action=\"?\">", "<form action=\"/w/1mp_/http://h/d/p?\">");
    expect("<input formaction=a><button formaction=b>",
           "<input formaction=\"/w/1mp_/http://h/d/a\"><button formaction=\"/w/1mp_/http://h/d/b\">");
    expect("<q cite=a><del cite=b><img longdesc=c>",
           "<q cite=\"/w/1mp_/http://h/d/a\"><del cite=\"/w/1mp_/http://h/d/b\">"
           "<img longdesc=\"/w/1mp_/http://h/d/c\">");
    expect("<a href=ws://h/s>", "<a href=\"/w/1mp_/ws://h/s\">");
}

static void what_leads_nowhere_stays(void **state) {
    (void)state;
    stays("<a href=#top><a href=' #x'><a href=''><a href><a><a href=mailto:a@b><a href=tel:1>"
          "<a href=data:,x><a href=blob:http://a/b><a href=about:blank><a href=ftp://a/b><a href=http://>"
          "<a href='http://a b/'><img src=data:image/png;base64,xx><use href='#a'>");
    stays("<a href=/w/1mp_/http://h/d/x><a href=/w/20200102/https://o/>");
    expect("<a href=/w/2020/x><a href=/w/x>",
           "<a href=\"/w/1mp_/http://h/w/2020/x\"><a href=\"/w/1mp_/http://h/w/x\">");
    stays("<applet code=a archive=b><div data-src=c data-srcset='d 1x' data-bg='url(e)'>");
    stays("<script type='application/ld+json'>{\"url\":\"http://h/\"}</script>"
          "<script type=text/template><a href=x></script><textarea><a href=x></textarea>"
          "<title><a href=x></title><!--<a href=x>--><!--[if IE]><a href=x><![endif]-->");
}

static void images_frames_and_media_have_their_modifiers(void **state) {
    (void)state;
    expect("<img src=a srcset='b 1x, c,d 2x,,e'>",
           "<img src=\"/w/1im_/http://h/d/a\" srcset='/w/1im_/http://h/d/b 1x, /w/1im_/http://h/d/c,d 2x,,"
           "/w/1im_/http://h/d/e'>");
    expect("<picture><source srcset='f 100w'></picture>",
           "<picture><source srcset='/w/1im_/http://h/d/f 100w'></picture>");
    expect("<video src=a poster=b><source src=c><track src=d></video><audio src=e>",
           "<video src=\"/w/1oe_/http://h/d/a\" poster=\"/w/1im_/http://h/d/b\">"
           "<source src=\"/w/1oe_/http://h/d/c\"><track src=\"/w/1oe_/http://h/d/d\"></video>"
           "<audio src=\"/w/1oe_/http://h/d/e\">");
    expect("<iframe src=a></iframe><frame src=b><embed src=c><object data=d><input type=image src=e>",
           "<iframe src=\"/w/1if_/http://h/d/a\"></iframe><frame src=\"/w/1fr_/http://h/d/b\">"
           "<embed src=\"/w/1oe_/http://h/d/c\"><object data=\"/w/1oe_/http://h/d/d\">"
           "<input type=image src=\"/w/1im_/http://h/d/e\">");
    expect("<body background=a><svg><image xlink:href=b /><use href='c#d'/></svg>",
           "<body background=\"/w/1im_/http://h/d/a\"><svg><image xlink:href=\"/w/1im_/http://h/d/b\" />"
           "<use href='/w/1oe_/http://h/d/c#d'/></svg>");
    expect("<noscript><img src=a></noscript>", "<noscript><img src=\"/w/1im_/http://h/d/a\"></noscript>");
    expect("<html manifest=a>", "<html manifest=\"/w/1oe_/http://h/d/a\">");
}

static void scripts_and_links_have_their_modifiers(void **state) {
    (void)state;
    expect("<script src=a></script><script src=b type=module></script>",
           "<script src=\"/w/1js_/http://h/d/a\"></script>"
           "<script src=\"/w/1esm_/http://h/d/b\" type=module></script>");
    expect("<link href=a rel='alternate STYLESHEET'>",
           "<link href=\"/w/1cs_/http://h/d/a\" rel='alternate STYLESHEET'>");
    expect("<link rel=icon href=a><link rel=canonical href=b>",
           "<link rel=icon href=\"/w/1oe_/http://h/d/a\"><link rel=canonical href=\"/w/1oe_/http://h/d/b\">");
    expect("<link rel=modulepreload href=a>", "<link rel=modulepreload href=\"/w/1esm_/http://h/d/a\">");
    expect("<link rel=preload as=script href=a><link rel=preload as=style href=b><link rel=preload as=font "
           "href=c>"
           "<link rel=preload as=image imagesrcset='d 1x'>",
           "<link rel=preload as=script href=\"/w/1js_/http://h/d/a\">"
           "<link rel=preload as=style href=\"/w/1cs_/http://h/d/b\">"
           "<link rel=preload as=font href=\"/w/1oe_/http://h/d/c\">"
           "<link rel=preload as=image imagesrcset='/w/1im_/http://h/d/d 1x'>");
}

static void a_base_counts_for_what_follows(void **state) {
    (void)state;
    expect("<a href=x><base href=/b/><a href=x><base href=/c/><a href=x>",
           "<a href=\"/w/1mp_/http://h/d/x\"><base href=\"/w/1mp_/http://h/b/\"><a "
           "href=\"/w/1mp_/http://h/b/x\">"
           "<base href=\"/w/1mp_/http://h/c/\"><a href=\"/w/1mp_/http://h/b/x\">");
    expect("<base href=data:,x><a href=x>", "<base href=data:,x><a href=\"/w/1mp_/http://h/d/x\">");
}

static void what_would_stop_the_page_goes(void **state) {
    (void)state;
    expect("<script integrity='sha256-x' nonce=1 integrity=y></script>", "<script   ></script>");
    expect("<a ping=x href=#y>", "<a  href=#y>");
    expect("<script integrity=\"x\"async></script>", "<script async></script>");
    expect("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\">",
           "<meta data-http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\">");
    stays("<meta http-equiv=content-type content='text/html'><meta name=x content=http://h/>");
    expect("<img crossorigin=use-credentials><img crossorigin><img crossorigin=anonymous>",
           "<img crossorigin=\"anonymous\"><img crossorigin><img crossorigin=anonymous>");
    expect("<a target=_top><area target='_parent'><form target=x><base target=\"_blank\"><input "
           "formtarget=_TOP>",
           "<a target=\"_self\"><area target='_self'><form target=\"_self\"><base target=\"_self\">"
           "<input formtarget=\"_self\">");
    stays("<a target=_self><a target=''><a target><div target=x>");
}

static void a_refresh_leads_to_a_page(void **state) {
    (void)state;
    expect("<meta http-equiv=Refresh content='5; URL=x'>",
           "<meta http-equiv=Refresh content='5; URL=/w/1mp_/http://h/d/x'>");
    expect("<meta content=\"0;url='it%27s&amp;b'\" http-equiv=refresh>",
           "<meta content=\"0;url='/w/1mp_/http://h/d/it%27s&amp;b'\" http-equiv=refresh>");
    stays("<meta http-equiv=refresh content=5><meta content='0;url=x'>");
}

static void values_are_decoded_and_escaped(void **state) {
    (void)state;
    expect("<a href='it&#39;s?a=1&b=2&quot;'>", "<a href='/w/1mp_/http://h/d/it&#39;s?a=1&amp;b=2%22'>");
    expect("<a href=\"it's\">", "<a href=\"/w/1mp_/http://h/d/it's\">");
    expect("<a href=it's&#x2f;>", "<a href=\"/w/1mp_/http://h/d/it's/\">");
    expect("<a href=x/>", "<a href=\"/w/1mp_/http://h/d/x/\">");
    expect("<a href=\"\n x \n y \">", "<a href=\"/w/1mp_/http://h/d/x%20%20y\">");
    expect("<a href='\xc3\xa4?\xc3\xa4#\xc3\xa4'>", "<a href='/w/1mp_/http://h/d/%C3%A4?%C3%A4#%C3%A4'>");
    expect("<a href=x href=y>", "<a href=\"/w/1mp_/http://h/d/x\" href=y>");
}

static void styles_and_scripts_in_a_page_are_rewritten(void **state) {
    (void)state;
    expect("<style>a{b:url(c)}</style>", "<style>a{b:url(/w/1oe_/http://h/d/c)}</style>");
    stays("<style type=text/less>a{b:url(c)}</style>");
    expect("<p style=\"a:url('b');c:url(&quot;d&quot;)\">",
           "<p style=\"a:url('/w/1oe_/http://h/d/b');c:url(&quot;/w/1oe_/http://h/d/d&quot;)\">");
    stays("<p style='color:red &amp; x'>");
    expect("<script>a = location</script>b = location", "<script>a = __mnemon_location</script>b = location");
    expect("<script type=module>import '/a'</script>",
           "<script type=module>import '/w/1esm_/http://h/a'</script>");
    expect("<p onclick='location=\"x\"' once=location>",
           "<p onclick='__mnemon_location=\"x\"' once=location>");
    expect("<p onclick=\"a &amp;&amp; f('&eacute;')\" onload=\"a&&location('\xc3\xa9&quot;')\">",
           "<p onclick=\"a &amp;&amp; f('&eacute;')\" "
           "onload=\"a&amp;&amp;__mnemon_location('\xc3\xa9&quot;')\">");
    expect("<a href=' JavaScript:void location'>", "<a href=' JavaScript:void __mnemon_location'>");
    expect("<script>import('x')</script>", "<script>__mnemon_import(\"http://h/d/p?q\")('x')</script>");
    expect("<script>a='</scr'+'ipt>'</script><a href=x>",
           "<script>a='</scr'+'ipt>'</script><a href=\"/w/1mp_/http://h/d/x\">");
    expect("<svg><style>a{b:url(c&amp;d)}</style><script>a&amp;&amp;location</script></svg>",
           "<svg><style>a{b:url(/w/1oe_/http://h/d/c&amp;d)}</style>"
           "<script>a&amp;&amp;__mnemon_location</script></svg>");
}

static void import_maps_are_rewritten(void **state) {
    (void)state;
    expect("<script type=importmap>{\"imports\":{\"a\":\"./x.js\",\"/b/\":\"https://o/b/\"},"
           "\"scopes\":{\"/s/\":{\"c\":\"d\"}},\"integrity\":{\"/e\":\"f\"}}</script>",
           "<script type=importmap>{\"imports\":{\"a\":\"/w/1esm_/http://h/d/x.js\","
           "\"/w/1esm_/http://h/b/\":\"/w/1esm_/https://o/b/\"},"
           "\"scopes\":{\"/w/1esm_/http://h/s/\":{\"c\":\"d\"}},\"integrity\":{\"/e\":\"f\"}}</script>");
    stays("<script type=importmap>{\"imports\":{\"a\":\"\\u002fx\"</script><script type=importmap></script>");
}

static void documents_in_attributes_are_rewritten(void **state) {
    (void)state;
    expect("<iframe srcdoc='<a href=\"x\">&lt;img src=y>'>",
           "<iframe srcdoc='<a href=\"/w/1mp_/http://h/d/x\"><img src=\"/w/1im_/http://h/d/y\">'>");
    expect("<base href=/b/><iframe srcdoc=\"<iframe srcdoc='<a href=x>'>\">",
           "<base href=\"/w/1mp_/http://h/b/\"><iframe srcdoc=\"<iframe srcdoc='<a "
           "href=&quot;/w/1mp_/http://h/b/x&quot;>'>\">");
    stays("<iframe srcdoc='<p>&eacute;&amp;'></iframe>");
}

static void expect_inserted(enum rewrite_format format, const char *input, const char *want) {
    struct fixture_document document = {format, "text/html;charset=utf-8", "<S>"};
    fixture_expect_document(&document, bytes_of_string(input), bytes_of_string(want));
}

static void the_script_is_inserted_before_all_others(void **state) {
    (void)state;
    expect_inserted(REWRITE_HTML, "<!DOCTYPE html> <!-- x -->\n<html>\n <head>\n<meta charset=utf-8><script>",
                    "<!DOCTYPE html> <!-- x -->\n<html>\n <head>\n<S><meta charset=utf-8><script>");
    expect_inserted(REWRITE_HTML, "  text", "  <S>text");
    expect_inserted(REWRITE_HTML, "\xef\xbb\xbf x", "\xef\xbb\xbf <S>x");
    expect_inserted(REWRITE_HTML, "<head></head>", "<head><S></head>");
    expect_inserted(REWRITE_HTML, "<frameset>", "<S><frameset>");
    expect_inserted(REWRITE_HTML, "", "<S>");
    expect_inserted(REWRITE_HTML, "<img src=x", "<S><img src=x");
    expect_inserted(REWRITE_HTML, "<p><iframe srcdoc='<p>'>", "<S><p><iframe srcdoc='<S><p>'>");
    expect_inserted(REWRITE_XML, "<?xml version='1.0'?><html xmlns='x'><head><title/></head></html>",
                    "<?xml version='1.0'?><html xmlns='x'><head><S><title/></head></html>");
    expect_inserted(REWRITE_XML, "<svg><script/></svg>", "<svg><script/></svg>");
}

static void other_encodings_stay(void **state) {
    (void)state;
    struct fixture_document latin = {REWRITE_HTML, "text/html", ""};
    struct fixture_document japanese = {REWRITE_HTML, "text/html;charset=shift_jis", ""};
    fixture_expect_document(&latin, BYTES("\xe4<a href='\xe4?\xe4'><p title='\xe4'>"),
                            BYTES("\xe4<a href='/w/1mp_/http://h/d/%C3%A4?%E4'><p title='\xe4'>"));
    fixture_expect_document(&latin, BYTES("<p onclick='location=\"\xe4\"'>"),
                            BYTES("<p onclick='__mnemon_location=\"&#xe4;\"'>"));
    fixture_expect_document(&latin, BYTES("<style>\xe4{a:url(\xe4)}</style>"),
                            BYTES("<style>\xe4{a:url(/w/1oe_/http://h/d/%C3%A4)}</style>"));
    fixture_expect_document(&japanese, BYTES("<a href='\x82\xa0'>\x83\x5c"),
                            BYTES("<a href='/w/1mp_/http://h/d/%E3%81%82'>\x83\x5c"));
}

static void wide_encodings_become_utf8(void **state) {
    (void)state;
    struct fixture_document wide = {REWRITE_HTML, "text/html;charset=utf-16le", ""};
    fixture_expect_document(&wide, BYTES("<\0a\0 \0h\0r\0e\0f\0=\0\xe4\0>\0\xe4\0"),
                            BYTES("<a href=\"/w/1mp_/http://h/d/%C3%A4\">\xc3\xa4"));
}

static void expect_charset(const char *type, struct bytes input, const char *want) {
    struct rewrite *rewrite = rewrite_new();
    struct buf out;
    buf_init(&out, FIXTURE_TEXT_SIZE_MAX);
    struct fixture_document document = {REWRITE_HTML, type, ""};
    const char *charset = fixture_rewrite(rewrite, &document, input, SIZE_MAX / 2, &out);
    assert_string_equal(charset == NULL ? "none" : charset, want);
    buf_done(&out);
    rewrite_free(rewrite);
}

static void the_charset_is_the_declared_one(void **state) {
    (void)state;
    expect_charset("text/html", BYTES("x"), "none");
    expect_charset("text/html; charset=latin1", BYTES("<meta charset=utf-8>"), "windows-1252");
    expect_charset("text/html", BYTES("<meta charset=koi8-r>"), "KOI8-R");
    expect_charset("text/html", BYTES("\xef\xbb\xbfx"), "UTF-8");
    expect_charset("text/html", BYTES("\xff\xfex\0"), "UTF-8");
    expect_charset("text/html;charset=iso-2022-jp", BYTES("x"), "UTF-8");
}

static enum err refuse(void *context, struct bytes piece) {
    (void)piece;
    *(unsigned *)context += 1;
    return ERR_CLOSED;
}

static void the_sink_ends_a_document(void **state) {
    (void)state;
    struct rewrite *rewrite = rewrite_new();
    struct url url;
    unsigned count = 0;
    url_init(&url);
    assert_int_equal(url_parse(&url, BYTES(FIXTURE_URL), NULL, NULL), ERR_OK);
    struct rewrite_place place = {
        .prefix = BYTES("/w/"), .timestamp = BYTES("1"), .url = &url, .format = REWRITE_HTML};
    rewrite_start(rewrite, &place, refuse, &count);
    static uint8_t page[100000];
    memset(page, 'x', sizeof page);
    assert_int_equal(rewrite_feed(rewrite, bytes_of(page, sizeof page)), ERR_CLOSED);
    assert_int_equal(rewrite_feed(rewrite, bytes_of(page, sizeof page)), ERR_CLOSED);
    assert_int_equal(rewrite_finish(rewrite), ERR_CLOSED);
    assert_int_equal(count, 1);
    url_done(&url);
    rewrite_free(rewrite);
}

static enum err count_size(void *context, struct bytes piece) {
    *(size_t *)context += piece.size;
    return ERR_OK;
}

/* Everything that takes memory, byte by byte; what came out, or ERR_MEMORY. */
static enum err rewrite_page(struct rewrite *rewrite, const struct url *url, size_t *ret_size) {
    struct bytes page =
        BYTES("<a href='a&amp;b'><a href='\xe9?\xe9'><p style='x:url(y\xe9)' onclick=location>"
              "<script type=module>import '/x'; import('y')</script><style>a{b:url(\xe9)}</style>"
              "<script type=importmap>{\"imports\":{\"a\":\"/b\"}}</script>"
              "<iframe srcdoc='<a href=c>'><base href=/b>");
    struct rewrite_place place = {.prefix = BYTES("/w/"),
                                  .timestamp = BYTES("1"),
                                  .url = url,
                                  .content_type = BYTES("text/html"),
                                  .format = REWRITE_HTML,
                                  .insert = BYTES("<S>")};
    *ret_size = 0;
    rewrite_start(rewrite, &place, count_size, ret_size);
    enum err err = ERR_OK;
    for (size_t i = 0; i < page.size && err == ERR_OK; i++) {
        err = rewrite_feed(rewrite, bytes_slice(page, i, i + 1));
    }
    return err == ERR_OK ? rewrite_finish(rewrite) : err;
}

static void memory_that_runs_out_is_reported_and_survived(void **state) {
    (void)state;
    struct url url;
    url_init(&url);
    assert_int_equal(url_parse(&url, BYTES(FIXTURE_URL), NULL, NULL), ERR_OK);
    struct rewrite *whole = rewrite_new();
    size_t whole_size;
    assert_int_equal(rewrite_page(whole, &url, &whole_size), ERR_OK);
    bool was_clean = false;
    for (size_t failing = 0; !was_clean; failing++) {
        allocations_left = failing;
        struct rewrite *rewrite = rewrite_new();
        size_t size = 0;
        enum err err = rewrite == NULL ? ERR_MEMORY : rewrite_page(rewrite, &url, &size);
        allocations_left = SIZE_MAX;
        assert_true(err == ERR_OK || err == ERR_MEMORY);
        was_clean = err == ERR_OK;
        assert_true(!was_clean || size == whole_size);
        rewrite_free(rewrite);
        assert_true(failing < 1000);
    }
    rewrite_free(whole);
    url_done(&url);
}

static void the_second_page_takes_no_memory(void **state) {
    (void)state;
    struct url url;
    url_init(&url);
    assert_int_equal(url_parse(&url, BYTES(FIXTURE_URL), NULL, NULL), ERR_OK);
    struct rewrite *rewrite = rewrite_new();
    size_t size;
    assert_int_equal(rewrite_page(rewrite, &url, &size), ERR_OK);
    size_t before = allocations_count;
    assert_int_equal(rewrite_page(rewrite, &url, &size), ERR_OK);
    assert_int_equal(allocations_count, before);
    rewrite_free(rewrite);
    url_done(&url);
}

static void references_are_resolved_or_left_alone(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"x", "/w/1if_/http://h/d/x"},
        {"//o/x#y", "/w/1if_/http://o/x#y"},
        {"#x", "#x"},
        {"", ""},
        {"mailto:a@b", "mailto:a@b"},
        {"/w/1if_/http://o/", "/w/1if_/http://o/"},
        {"http://[x", "http://[x"},
        {"?", "/w/1if_/http://h/d/p?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char input[64];
        char want[64];
        snprintf(input, sizeof input, "<iframe src=\"%s\">", cases[i][0]);
        snprintf(want, sizeof want, "<iframe src=\"%s\">", cases[i][1]);
        fixture_expect(REWRITE_HTML, input, want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_lead_to_pages),
        cmocka_unit_test(what_leads_nowhere_stays),
        cmocka_unit_test(images_frames_and_media_have_their_modifiers),
        cmocka_unit_test(scripts_and_links_have_their_modifiers),
        cmocka_unit_test(a_base_counts_for_what_follows),
        cmocka_unit_test(what_would_stop_the_page_goes),
        cmocka_unit_test(a_refresh_leads_to_a_page),
        cmocka_unit_test(values_are_decoded_and_escaped),
        cmocka_unit_test(styles_and_scripts_in_a_page_are_rewritten),
        cmocka_unit_test(import_maps_are_rewritten),
        cmocka_unit_test(documents_in_attributes_are_rewritten),
        cmocka_unit_test(the_script_is_inserted_before_all_others),
        cmocka_unit_test(other_encodings_stay),
        cmocka_unit_test(wide_encodings_become_utf8),
        cmocka_unit_test(the_charset_is_the_declared_one),
        cmocka_unit_test(the_sink_ends_a_document),
        cmocka_unit_test(memory_that_runs_out_is_reported_and_survived),
        cmocka_unit_test(the_second_page_takes_no_memory),
        cmocka_unit_test(references_are_resolved_or_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
