/* rewrite-text - style sheets, XML, playlists, what a document is taken for, and hostile ones of all kinds.
 */
#include <time.h>

#include "rewrite-fixture.h"

enum { HOSTILE_SIZE = UNIT_IS_SANITIZED ? 1 << 17 : 1 << 20 };

static void style_sheets_are_rewritten(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"@import 'a'; @import url(b) screen;",
         "@import '/w/1cs_/http://h/d/a'; @import url(/w/1cs_/http://h/d/b) screen;"},
        {"a{b:url( \"c d\" );e:URL(f)}",
         "a{b:url( \"/w/1oe_/http://h/d/c%20d\" );e:URL(/w/1oe_/http://h/d/f)}"},
        {"a{b:image-set('c' 1x, url(d) 2x)}",
         "a{b:image-set('/w/1oe_/http://h/d/c' 1x, url(/w/1oe_/http://h/d/d) 2x)}"},
        {"@font-face{src:url(a.woff)}", "@font-face{src:url(/w/1oe_/http://h/d/a.woff)}"},
        {"a{b:url(it\\'s\\)?\\5c x)}", "a{b:url(/w/1oe_/http://h/d/it\\'s\\)?\\\\x)}"},
        {"a{b:url('it\\'s')}", "a{b:url('/w/1oe_/http://h/d/it\\'s')}"},
        {"a{b:url(#c);d:url(data:,x);e:url()} /* url(x) */ f::after{content:'url(x)'} @namespace 'http://x'",
         "a{b:url(#c);d:url(data:,x);e:url()} /* url(x) */ f::after{content:'url(x)'} @namespace 'http://x'"},
        {"a{b:url(x", "a{b:url(/w/1oe_/http://h/d/x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture_expect(REWRITE_CSS, cases[i][0], cases[i][1]);
    }
}

static void xml_is_rewritten_and_stays_well_formed(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"<?xml version='1.0'?><?xml-stylesheet href='a?b&amp;c' type='text/xsl'?>",
         "<?xml version='1.0'?><?xml-stylesheet href='/w/1cs_/http://h/d/a?b&amp;c' type='text/xsl'?>"},
        {"<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>"
         "<image xlink:href='a&amp;b'/><use href='#c'/></svg>",
         "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>"
         "<image xlink:href='/w/1im_/http://h/d/a&amp;b'/><use href='#c'/></svg>"},
        {"<style>a{b:url(c)}</style><style><![CDATA[d{e:url('f&g')}]]></style>",
         "<style>a{b:url(/w/1oe_/http://h/d/c)}</style>"
         "<style><![CDATA[d{e:url('/w/1oe_/http://h/d/f&g')}]]></style>"},
        {"<script>a &lt; location</script><script><![CDATA[a < location]]></script>",
         "<script>a &lt; __mnemon_location</script><script><![CDATA[a < __mnemon_location]]></script>"},
        {"<rss><link>http://o/?a&amp;b</link><url><![CDATA[/x?a&b]]></url><guid>/x</guid><enclosure "
         "url='y'/></rss>",
         "<rss><link>/w/1mp_/http://o/?a&amp;b</link><url><![CDATA[/w/1mp_/http://h/x?a&b]]></url><guid>/x</"
         "guid>"
         "<enclosure url='/w/1oe_/http://h/d/y'/></rss>"},
        {"<link> \n </link><link/>text<link href='a'/>",
         "<link> \n </link><link/>text<link href='/w/1mp_/http://h/d/a'/>"},
        {"<xsl:include href='a.xsl'/><h:a href='b'/><svg:image href='c'/>",
         "<xsl:include href='/w/1oe_/http://h/d/a.xsl'/><h:a href='/w/1mp_/http://h/d/b'/>"
         "<svg:image href='/w/1im_/http://h/d/c'/>"},
        {"<p onclick=\"a &lt; location\" style='a:url(\"b\")'/>",
         "<p onclick=\"a &lt; __mnemon_location\" style='a:url(\"/w/1oe_/http://h/d/b\")'/>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture_expect(REWRITE_XML, cases[i][0], cases[i][1]);
    }
}

static void playlists_are_rewritten(void **state) {
    (void)state;
    fixture_expect(
        REWRITE_HLS,
        "#EXTM3U\r\n#EXT-X-KEY:METHOD=AES-128,URI=\"https://o/k\",IV=0x1\r\na.ts\r\n/b.ts\r\n"
        "http://o/c.ts?x\n#EXT-X-MAP:URI=\"d\"\n\nskd://x\n#http://o/",
        "#EXTM3U\r\n#EXT-X-KEY:METHOD=AES-128,URI=\"/w/1oe_/https://o/k\",IV=0x1\r\na.ts\r\n"
        "/w/1oe_/http://h/b.ts\r\n/w/1oe_/http://o/c.ts?x\n#EXT-X-MAP:URI=\"d\"\n\nskd://x\n#http://o/");
    fixture_expect(
        REWRITE_DASH,
        "<MPD xmlns='urn:x'><BaseURL>https://o/v/</BaseURL><BaseURL>v/</BaseURL><Location> /m </Location>"
        "<SegmentTemplate initialization='/i' media='m-$Number$.mp4'/><SegmentURL media='http://o/s'/>",
        "<MPD xmlns='urn:x'><BaseURL>/w/1oe_/https://o/v/</BaseURL><BaseURL>v/</BaseURL>"
        "<Location>/w/1oe_/http://h/m</Location><SegmentTemplate initialization='/w/1oe_/http://h/i' "
        "media='m-$Number$.mp4'/><SegmentURL media='/w/1oe_/http://o/s'/>");
}

static void json_and_everything_else_passes(void **state) {
    (void)state;
    fixture_expect(REWRITE_JSON, "{\"url\":\"http://h/\"}", "{\"url\":\"http://h/\"}");
    fixture_expect(REWRITE_AS_IS, "<a href=x>", "<a href=x>");
}

static void the_type_and_what_was_asked_for_decide(void **state) {
    (void)state;
    static const struct {
        const char *type;
        enum rewrite_modifier modifier;
        const char *head;
        enum rewrite_format want;
    } cases[] = {
        {"text/html; charset=x", REWRITE_PAGE, "", REWRITE_HTML},
        {"text/html", REWRITE_RAW, "<html>", REWRITE_AS_IS},
        {"text/html", REWRITE_SCRIPT, " var a", REWRITE_CLASSIC_SCRIPT},
        {"text/html", REWRITE_SCRIPT, "\n<html>", REWRITE_HTML},
        {"text/html", REWRITE_PAGE, "\x89PNG\r\n", REWRITE_AS_IS},
        {"text/html", REWRITE_STYLE, "a{}", REWRITE_CSS},
        {"application/xhtml+xml", REWRITE_PAGE, "", REWRITE_XML},
        {"image/svg+xml", REWRITE_IMAGE, "<svg", REWRITE_XML},
        {"image/png", REWRITE_PAGE, "<html>", REWRITE_AS_IS},
        {"font/woff2", REWRITE_OBJECT, "", REWRITE_AS_IS},
        {"text/css", REWRITE_STYLE, "", REWRITE_CSS},
        {"TEXT/JavaScript", REWRITE_SCRIPT, "", REWRITE_CLASSIC_SCRIPT},
        {"application/javascript", REWRITE_MODULE, "", REWRITE_MODULE_SCRIPT},
        {"text/plain", REWRITE_MODULE, "a", REWRITE_MODULE_SCRIPT},
        {"text/plain", REWRITE_WORKER, "a", REWRITE_CLASSIC_SCRIPT},
        {"text/plain", REWRITE_PAGE, "<html>", REWRITE_AS_IS},
        {"text/plain", REWRITE_OBJECT, "#EXTM3U\n", REWRITE_HLS},
        {"application/json", REWRITE_PAGE, "{}", REWRITE_JSON},
        {"application/json", REWRITE_SCRIPT, "{}", REWRITE_JSON},
        {"application/json", REWRITE_SCRIPT, "f({})", REWRITE_CLASSIC_SCRIPT},
        {"application/vnd.apple.mpegurl", REWRITE_OBJECT, "", REWRITE_HLS},
        {"application/dash+xml", REWRITE_OBJECT, "", REWRITE_DASH},
        {"application/xml", REWRITE_OBJECT, "<?xml version='1.0'?>\n<MPD>", REWRITE_DASH},
        {"", REWRITE_PAGE, "<!DOCTYPE html>", REWRITE_HTML},
        {"", REWRITE_PAGE, "\0\1\2", REWRITE_AS_IS},
        {"", REWRITE_SCRIPT, "var a", REWRITE_CLASSIC_SCRIPT},
        {"application/octet-stream", REWRITE_OBJECT, "x", REWRITE_AS_IS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum rewrite_format format = rewrite_format_of(bytes_of_string(cases[i].type), cases[i].modifier,
                                                       bytes_of_string(cases[i].head));
        if (format != cases[i].want) {
            fail_msg("%s as %s, \"%s\": %d", cases[i].type, rewrite_modifier_name(cases[i].modifier),
                     cases[i].head, format);
        }
    }
}

static void modifiers_have_names(void **state) {
    (void)state;
    for (int i = 0; i < REWRITE_MODIFIERS_COUNT; i++) {
        const char *name = rewrite_modifier_name((enum rewrite_modifier)i);
        assert_int_equal(rewrite_modifier_of(bytes_of_string(name)), i);
    }
    assert_int_equal(rewrite_modifier_of(BYTES("")), REWRITE_PAGE);
    assert_int_equal(rewrite_modifier_of(BYTES("xx_")), REWRITE_PAGE);
}

/*
 * Hostile input
 */

struct sizes {
    uint64_t size;
};

static enum err count_size(void *context, struct bytes piece) {
    ((struct sizes *)context)->size += piece.size;
    return ERR_OK;
}

/* The seconds that a document of this start and then this text, repeated up to the size, takes. */
static double run(struct rewrite *rewrite, enum rewrite_format format, const char *start, const char *text,
                  size_t size) {
    struct buf input;
    struct url url;
    struct sizes sizes = {0};
    buf_init(&input, FIXTURE_TEXT_SIZE_MAX);
    buf_put_string(&input, start);
    while (input.size < size) {
        buf_put_string(&input, text);
    }
    url_init(&url);
    assert_int_equal(url_parse(&url, BYTES(FIXTURE_URL), NULL, NULL), ERR_OK);
    struct rewrite_place place = {.prefix = BYTES("/w/"),
                                  .timestamp = BYTES("1"),
                                  .url = &url,
                                  .format = format,
                                  .insert = BYTES("<S>")};
    clock_t begin = clock();
    rewrite_start(rewrite, &place, count_size, &sizes);
    for (struct bytes rest = buf_bytes(&input); rest.size > 0;) {
        size_t piece = rest.size < 16384 ? rest.size : 16384;
        assert_int_equal(rewrite_feed(rewrite, bytes_slice(rest, 0, piece)), ERR_OK);
        rest = bytes_skip(rest, piece);
    }
    assert_int_equal(rewrite_finish(rewrite), ERR_OK);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    assert_true(sizes.size >= input.size - input.size / 2);
    url_done(&url);
    buf_done(&input);
    return seconds;
}

/* Four times the input takes about four times as long, not sixteen times. */
static void hostile_documents_take_linear_time(void **state) {
    (void)state;
    static const struct {
        enum rewrite_format format;
        const char *start;
        const char *text;
    } inputs[] = {
        {REWRITE_HTML, "", "<"},
        {REWRITE_HTML, "", "<a "},
        {REWRITE_HTML, "<a ", "onclick=location "},
        {REWRITE_HTML, "<a href=\"", "&amp;"},
        {REWRITE_HTML, "", "<a href=x>"},
        {REWRITE_HTML, "", "<svg><style>"},
        {REWRITE_HTML, "<img srcset=\"", "a,"},
        {REWRITE_HTML, "<img srcset=\"", "a 1x,"},
        {REWRITE_HTML, "<iframe srcdoc=\"", "<iframe srcdoc='"},
        {REWRITE_HTML, "<iframe srcdoc=\"", "<a href=x>"},
        {REWRITE_HTML, "<script type=importmap>", "{\"\\"},
        {REWRITE_HTML, "<p style=\"", "url(x)"},
        {REWRITE_CSS, "", "url("},
        {REWRITE_CSS, "", "url(\\"},
        {REWRITE_XML, "", "<?"},
        {REWRITE_XML, "", "<link>&amp;"},
        {REWRITE_XML, "<script>", "&lt;location<![CDATA["},
        {REWRITE_CLASSIC_SCRIPT, "", "location "},
        {REWRITE_CLASSIC_SCRIPT, "", "location/**/"},
        {REWRITE_CLASSIC_SCRIPT, "", "top==/*"},
        {REWRITE_CLASSIC_SCRIPT, "", "{"},
        {REWRITE_CLASSIC_SCRIPT, "", "`${"},
        {REWRITE_CLASSIC_SCRIPT, "", "/["},
        {REWRITE_CLASSIC_SCRIPT, "", "\\u{"},
        {REWRITE_CLASSIC_SCRIPT, "", "import("},
        {REWRITE_MODULE_SCRIPT, "", "export{location}"},
        {REWRITE_MODULE_SCRIPT, "", "import'/"},
        {REWRITE_MODULE_SCRIPT, "", "import.meta.url "},
        {REWRITE_HLS, "", "#URI=\""},
        {REWRITE_HLS, "", "/\n"},
    };
    struct rewrite *rewrite = rewrite_new();
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        double small = run(rewrite, inputs[i].format, inputs[i].start, inputs[i].text, HOSTILE_SIZE / 4);
        double large = run(rewrite, inputs[i].format, inputs[i].start, inputs[i].text, HOSTILE_SIZE);
        if (large > small * 10 + 0.25) {
            fail_msg("%s: %.3f s for a quarter, %.3f s for all", inputs[i].text, small, large);
        }
    }
    rewrite_free(rewrite);
}

/* A long base and many short references do not make a small page a huge one. */
static void growth_is_bounded(void **state) {
    (void)state;
    struct buf input;
    struct buf want;
    buf_init(&input, 1 << 20);
    buf_put_string(&input, "<base href='/");
    for (int i = 0; i < 10000; i++) {
        buf_put_string(&input, "x");
    }
    buf_init(&want, 1 << 20);
    buf_put_string(&want, "<base href='/w/1mp_/http://h/");
    buf_put(&want, bytes_skip(buf_bytes(&input), strlen("<base href='/")));
    buf_put_string(&input, "/'><a href=x><a href=/y>");
    buf_put_string(&want, "/'><a href=x><a href=\"/w/1mp_/http://h/y\">");
    struct fixture_document document = {REWRITE_HTML, "", ""};
    fixture_expect_document(&document, buf_bytes(&input), buf_bytes(&want));
    buf_done(&want);
    buf_done(&input);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(style_sheets_are_rewritten),
        cmocka_unit_test(xml_is_rewritten_and_stays_well_formed),
        cmocka_unit_test(playlists_are_rewritten),
        cmocka_unit_test(json_and_everything_else_passes),
        cmocka_unit_test(the_type_and_what_was_asked_for_decide),
        cmocka_unit_test(modifiers_have_names),
        cmocka_unit_test(hostile_documents_take_linear_time),
        cmocka_unit_test(growth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
