/* links - what is reported of each kind of document, whole and in pieces. */
#include "web/html/links.h"

#include <time.h>

#include "allocations.h"
#include "unit.h"

enum { TEXT_SIZE_MAX = 1 << 26, HOSTILE_SIZE = UNIT_IS_SANITIZED ? 1 << 20 : 10 << 20 };

static const char base_text[] = "http://h.example/d/page?q#f";

static const struct links_options everything = {.forms = true, .guesses = true};

/* One line per link: "kind element attribute url". */
static void put_link(void *context, const struct link *link) {
    struct buf *out = context;
    buf_put_format(out, "%s %s %s ", link_kind_name(link->kind), link->element, link->attribute);
    static const char host[] = "http://h.example";
    struct bytes href = link->href;
    if (bytes_starts_with(href, bytes_of_string(host))) {
        href = bytes_skip(href, sizeof host - 1); /* for short tests */
    }
    buf_put(out, href);
    buf_put_byte(out, '\n');
}

static void scan(struct links *links, const char *type, struct bytes input, size_t piece_size,
                 const struct links_options *options, struct buf *out) {
    struct url base;
    url_init(&base);
    assert_int_equal(url_parse(&base, bytes_of_string(base_text), NULL, NULL), ERR_OK);
    links_start(links, bytes_of_string(type), &base, options, put_link, out);
    for (size_t from = 0; from < input.size; from += piece_size) {
        size_t to = input.size - from < piece_size ? input.size : from + piece_size;
        assert_int_equal(links_feed(links, bytes_slice(input, from, to)), ERR_OK);
    }
    assert_int_equal(links_finish(links), ERR_OK);
    url_done(&base);
}

static void expect_bytes(const char *type, struct bytes input, const struct links_options *options,
                         const char *want) {
    static const size_t piece_sizes[] = {SIZE_MAX / 2, 1, 7};
    struct links *links = links_new();
    struct buf found;
    buf_init(&found, TEXT_SIZE_MAX);
    for (size_t i = 0; i < sizeof piece_sizes / sizeof *piece_sizes; i++) {
        buf_clear(&found);
        scan(links, type, input, piece_sizes[i], options, &found);
        if (!bytes_equal(buf_bytes(&found), bytes_of_string(want))) {
            fail_msg("%.*s\nin pieces of %zu:\n%s\nnot\n%s", BYTES_ARG(input), piece_sizes[i],
                     buf_string(&found), want);
        }
    }
    buf_done(&found);
    links_free(links);
}

static void expect(const char *type, const char *input, const char *want) {
    expect_bytes(type, bytes_of_string(input), NULL, want);
}

static void expect_html(const char *input, const char *want) {
    expect("text/html;charset=utf-8", input, want);
}

static void expect_with_options(const char *type, const char *input, const char *want) {
    expect_bytes(type, bytes_of_string(input), &everything, want);
}

static void anchors_and_areas_are_pages(void **state) {
    (void)state;
    expect_html("<a href=x>", "page a href /d/x\n");
    expect_html("<A HREF = ' ../y?a=1&amp;b=2#z '><area href=/w>",
                "page a href /y?a=1&b=2\npage area href /w\n");
    expect_html("<svg><a xlink:href=x></a></svg>", "page a xlink:href /d/x\n");
    expect_html("<a href=//other.example/x><a href=https://a.example>", "page a href http://other.example/x\n"
                                                                        "page a href https://a.example/\n");
}

static void what_is_not_fetched_is_left_out(void **state) {
    (void)state;
    expect_html(
        "<a href='javascript:x()'><a href=mailto:a@b><a href=data:,x><a href=blob:http://a/b><a "
        "href=about:blank>"
        "<a href=tel:1><a href=ftp://a/b><a href='java\nscript:x'><a href=''><a><a href=#top><a href=' #x'>"
        "<a href=http://><a href='http://a b/'><img src=data:image/png;base64,xx>",
        "");
}

static void a_url_is_reported_once_per_kind(void **state) {
    (void)state;
    expect_html("<a href=x><a href=x#1><a href=./x><img src=x><img src=/d/x><a href=y>",
                "page a href /d/x\nembed img src /d/x\npage a href /d/y\n");
}

static void images_and_their_sets_are_embedded(void **state) {
    (void)state;
    expect_html("<img src=a srcset='b 1x, c,d 2x,, e'>", "embed img src /d/a\nembed img srcset /d/b\n"
                                                         "embed img srcset /d/c,d\nembed img srcset /d/e\n");
    expect_html("<picture><source srcset='f 100w,g(x,y) 2x, h (a,b), i'><img></picture>",
                "embed source srcset /d/f\nembed source srcset /d/g(x,y)\nembed source srcset /d/h\n"
                "embed source srcset /d/i\n");
    expect_html("<img src=a lowsrc=b longdesc=c>",
                "page img longdesc /d/c\nembed img lowsrc /d/b\nembed img src /d/a\n");
    expect_html("<input type=image src=a><input type=text src=b><IMAGE src=c>",
                "embed input src /d/a\nembed image src /d/c\n");
    expect_html("<body background=a><td background=b><div background=c>",
                "embed body background /d/a\nembed td background /d/b\n");
}

static void lazy_images_are_embedded(void **state) {
    (void)state;
    expect_html("<img src=data:, data-src=a data-srcset='b 1x'>",
                "embed img data-src /d/a\nembed img data-srcset /d/b\n");
    expect_html(
        "<div data-src=c.jpg data-bg='url(d.jpg)' data-original=/e/f.png data-lazy=true data-background=red>",
        "embed * data-bg /d/d.jpg\nembed * data-original /e/f.png\nembed * data-src /d/c.jpg\n");
}

static void media_frames_scripts_and_objects_are_embedded(void **state) {
    (void)state;
    expect_html("<video src=a poster=b><source src=c><track src=d></video><audio src=e>",
                "embed video poster /d/b\nembed video src /d/a\nembed source src /d/c\nembed track src /d/d\n"
                "embed audio src /d/e\n");
    expect_html("<script src=a></script><iframe src=b></iframe><frame src=c><embed src=d><object data=e>",
                "embed script src /d/a\nembed iframe src /d/b\nembed frame src /d/c\nembed embed src /d/d\n"
                "embed object data /d/e\n");
    expect_html("<svg><image href=a /><use xlink:href='b#c'/><use href='#c'/><feImage href=d></svg>",
                "embed image href /d/a\nembed use xlink:href /d/b\nembed feimage href /d/d\n");
}

static void the_rel_of_a_link_decides(void **state) {
    (void)state;
    expect_html("<link rel=stylesheet href=a><link rel='Shortcut ICON' href=b><link rel=manifest href=c>"
                "<link rel=preload as=font href=d><link rel='alternate stylesheet' href=e>",
                "embed link href /d/a\nembed link href /d/b\nembed link href /d/c\nembed link href /d/d\n"
                "embed link href /d/e\n");
    expect_html("<link rel=next href=a><link rel=canonical href=b><link rel=alternate "
                "type=application/rss+xml href=c>",
                "page link href /d/a\npage link href /d/b\npage link href /d/c\n");
    expect_html("<link rel=dns-prefetch href=//a><link rel=preconnect href=//b><link rel=pingback "
                "href=c><link href=d>"
                "<link rel='' href=e>",
                "");
    expect_html("<link rel=prefetch href=a><link rel=prefetch as=script href=b>",
                "page link href /d/a\nembed link href /d/b\n");
    expect_html("<link rel=preload as=image imagesrcset='a 1x, b 2x'>",
                "embed link imagesrcset /d/a\nembed link imagesrcset /d/b\n");
}

static void the_first_base_counts_from_where_it_stands(void **state) {
    (void)state;
    expect_html("<a href=a><base target=x><base href=/b/><a href=a><base href=/c/><a href=a2>",
                "page a href /d/a\npage a href /b/a\npage a href /b/a2\n");
    expect_html("<base href='http://'><base href=/c/><a href=a>", "page a href /d/a\n");
    expect_html("<base href=data:,x><a href=a>", "page a href /d/a\n");
    expect_html("<base href=http://other.example/x/y><a href=z>", "page a href http://other.example/x/z\n");
}

static void refreshes_lead_somewhere(void **state) {
    (void)state;
    expect_html("<meta http-equiv=Refresh content='0; url=a'>", "refresh meta content /d/a\n");
    expect_html("<meta http-equiv=refresh content='5;URL=\"b\" x'>", "refresh meta content /d/b\n");
    expect_html("<meta http-equiv=refresh content='5, c'>", "refresh meta content /d/c\n");
    expect_html("<meta http-equiv=refresh content='.5 url = d'>", "refresh meta content /d/d\n");
    expect_html("<meta http-equiv=refresh content=5><meta http-equiv=refresh content=';url=x'><meta "
                "content='0;url=y'>"
                "<meta http-equiv=refresh content='x;url=z'><meta http-equiv=refresh>"
                "<meta http-equiv=refresh content='5url=w'>",
                "");
}

static void forms_only_where_asked_for_and_only_get(void **state) {
    (void)state;
    const char *input = "<form action=a></form><form method=POST action=b></form><form method=get action=c>"
                        "<button formaction=d><input formaction=e formmethod=post><form>";
    expect_html(input, "");
    expect_with_options("text/html", input,
                        "form form action /d/a\nform form action /d/c\nform button formaction /d/d\n");
}

static void styles_in_elements_and_attributes(void **state) {
    (void)state;
    expect_html("<style>@import 'a';b{c:url(d)}</style><style type=text/css>@import url(e)</style>"
                "<style type=text/x>@import 'f'</style>",
                "embed style @import /d/a\nembed style url /d/d\nembed style @import /d/e\n");
    expect_html("<p style='background:url(&quot;a&#39;b&quot;)'>", "embed * style /d/a'b\n");
    expect_html("<svg><style>a{b:url(c)}<![CDATA[d{e:url(f)}]]></style></svg>",
                "embed style url /d/c\nembed style url /d/f\n");
    expect_html("<style>a{b:url(c", "embed style url /d/c\n");
}

static void what_scripts_would_not_see_is_seen(void **state) {
    (void)state;
    expect_html("<noscript><img src=a></noscript><template><img src=b></template>",
                "embed img src /d/a\nembed img src /d/b\n");
    expect_html("<!-- <a href=a> --><title><a href=b></title><textarea><a href=c></textarea><script>'<a "
                "href=d>'</script>",
                "");
}

static void documents_in_attributes_are_looked_at(void **state) {
    (void)state;
    expect_html("<iframe srcdoc='<a href=a?x=1&amp;amp;y=2><img src=&quot;b&quot;>'></iframe><a href=c>"
                "<iframe srcdoc='<style>x{y:url(d)}'></iframe><iframe srcdoc='<script><a href=e>'></iframe>",
                "page a href /d/c\npage a href /d/a?x=1&y=2\nembed img src /d/b\nembed style url /d/d\n");
}

static void guesses_only_where_asked_for(void **state) {
    (void)state;
    const char *input =
        "<script>var a = \"https://a.example/x\", b = '/api\\/items.json', c = 'text/html', "
        "d='\\u002fe/f.png';"
        "/* 'g.js' don't */ // 'h.js'\nlet i = `j/k.css`, l = \"m n.js\", o = 'p.js</script>"
        "<script type=application/ld+json>{\"url\": \"http:\\/\\/b.example\\/y\", \"n\": \"z\"}</script>"
        "<meta property=og:image content=q.png>";
    expect_html(input, "");
    expect_with_options("text/html;charset=utf-8", input,
                        "guess script text https://a.example/x\nguess script text /api/items.json\n"
                        "guess script text /e/f.png\nguess script text /d/j/k.css\n"
                        "guess script text http://b.example/y\nguess meta content /d/q.png\n");
}

static void style_sheets_have_links(void **state) {
    (void)state;
    expect("text/css", "@import 'a';b{c:url(\"d\\26 e\")}", "embed  @import /d/a\nembed  url /d/d&e\n");
}

static void svg_and_other_xml_have_links(void **state) {
    (void)state;
    expect("image/svg+xml",
           "<?xml version='1.0'?><?xml-stylesheet type='text/css' href=\"a.css?x&amp;y\"?><svg><a "
           "xlink:href='b'/>"
           "<image href='c'/><style>d{e:url(f)}</style><script href='g'/><use href='h'/></svg>",
           "embed ?xml-stylesheet href /d/a.css?x&y\npage a xlink:href /d/b\nembed image href /d/c\n"
           "embed style url /d/f\nembed script href /d/g\nembed use href /d/h\n");
    expect("application/xhtml+xml", "<html><script src='a'/><title/><a href='b'/></html>",
           "embed script src /d/a\npage a href /d/b\n");
}

static void feeds_have_links(void **state) {
    (void)state;
    expect("application/rss+xml",
           "<rss><channel><link>http://h.example/1</link><image><url>/2</url></image><item><guid>/3</guid>"
           "<guid isPermaLink='false'>/no</guid><enclosure url='4'/><media:content "
           "url='5'/><comments>/c</comments>"
           "<description>&lt;a href=\"6\"&gt;&lt;img src='7'&gt;</description>"
           "<content:encoded><![CDATA[<p><a href=\"8\"><script>]]></content:encoded><description>&lt;a "
           "href=9&gt;"
           "</description></item></channel></rss>",
           "page link text /1\nembed url text /2\npage guid text /3\nembed enclosure url /d/4\n"
           "embed media:content url /d/5\npage comments text /c\npage a href /d/6\nembed img src /d/7\npage "
           "a href /d/8\n"
           "page a href /d/9\n");
    expect("application/atom+xml",
           "<feed><link href='a'/><link rel='self' href='b'/><entry><link rel='enclosure' href='c'/>"
           "<content type='html'>&lt;img src=d></content><content src='e'/></entry></feed>",
           "page link href /d/a\npage link href /d/b\nembed link href /d/c\nembed content src /d/e\nembed "
           "img src /d/d\n");
}

static void manifests_and_playlists_have_links(void **state) {
    (void)state;
    expect("application/manifest+json",
           "{\"name\":\"x.png\",\"start_url\":\"/"
           "a\",\"icons\":[{\"src\":\"b.png\",\"sizes\":\"1x1\"},{\"src\" : \"c.png\"}]}",
           "page  text /a\nembed  text /d/b.png\nembed  text /d/c.png\n");
    expect("application/vnd.apple.mpegurl",
           "#EXTM3U\r\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\r\n#EXTINF:4,\r\na.ts\r\n\nhttp://h.example/b.ts",
           "embed  URI /d/k\nembed  text /d/a.ts\nembed  text /b.ts\n");
    expect("application/json", "{\"a\":\"http://a.example/b\"}", "");
    expect_with_options("application/json", "{\"a\":\"http://a.example/b\"}",
                        "guess  text http://a.example/b\n");
    expect_with_options("text/javascript", "x('a/b.js')", "guess  text /d/a/b.js\n");
}

static void the_first_bytes_decide_where_the_type_does_not(void **state) {
    (void)state;
    expect("", "\xef\xbb\xbf\n<!doctype HTML><a href=x>", "page a href /d/x\n");
    expect("", "<?xml version='1.0'?><rss><link>x</link>", "page link text /d/x\n");
    expect("", "#EXTM3U\na\n", "embed  text /d/a\n");
    expect("", "plain <a href=x>", "");
    expect("image/png", "<html><a href=x>", "");
    expect("text/plain", "<html><a href=x>", "");
    assert_int_equal(links_format_of(BYTES("TEXT/HTML ; charset=x")), LINKS_HTML);
    assert_int_equal(links_format_of(BYTES("image/jpeg")), LINKS_NONE);
    assert_int_equal(links_format_of((struct bytes){NULL, 0}), LINKS_UNKNOWN);
}

static void urls_are_read_in_the_encoding_of_the_page(void **state) {
    (void)state;
    expect("text/html", "<a href='\xe9?\xe9'>", "page a href /d/%C3%A9?%E9\n"); /* windows-1252 by default */
    expect("text/html;charset=utf-8", "<a href='\xc3\xa9?\xc3\xa9'>", "page a href /d/%C3%A9?%C3%A9\n");
    expect("text/html", "<meta charset=utf-8><a href='\xc3\xa9?\xc3\xa9'>", "page a href /d/%C3%A9?%C3%A9\n");
    expect("text/html;charset=koi8-r", "<a href='\xc1?\xc1&#1073;#\xc1'>", "page a href /d/%D0%B0?%C1%C2\n");
    expect("text/html;charset=shift_jis", "<a href='\x83\x5c?\x83\x5c'>",
           "page a href /d/%E3%82%BD?%83%5C\n");
    expect("text/html;charset=iso-8859-2", "<a href='?&#9731;'>", "page a href /d/page?%26%239731%3B\n");
    expect("text/css;charset=windows-1251", "a{b:url('\xe4?\xe4')}", "embed  url /d/%D0%B4?%E4\n");
    expect_bytes("text/html", BYTES("\xff\xfe<\0a\0 \0h\0r\0e\0f\0=\0\xe9\0?\0\xe9\0>\0"), NULL,
                 "page a href /d/%C3%A9?%C3%A9\n");
    expect_bytes("text/html;charset=utf-16be", BYTES("\0<\0a\0 \0h\0r\0e\0f\0=\0x\0>"), NULL,
                 "page a href /d/x\n");
    expect("text/html;charset=iso-2022-jp", "\x1b$B<\"\x1b(B<a href=x>\x1b$B<%\x1b(B", "page a href /d/x\n");
    expect("application/xml", "<?xml version='1.0' encoding='iso-8859-1'?><a href='\xe9'/>",
           "page a href /d/%C3%A9\n");
}

static void header_fields_have_links(void **state) {
    (void)state;
    struct links *links = links_new();
    struct url base;
    struct buf found;
    buf_init(&found, TEXT_SIZE_MAX);
    url_init(&base);
    assert_int_equal(url_parse(&base, bytes_of_string(base_text), NULL, NULL), ERR_OK);
    links_start(links, BYTES("image/png"), &base, NULL, put_link, &found);
    links_header(links, BYTES("Link"),
                 BYTES("<a,b>; rel=preload; as=style, <c>; title=\"x, <y>; rel=next\"; REL = \"next prev\" "
                       ",<d>;rel=preconnect,"
                       "<e>; anchor=\"#x\"; rel=next, <f>, <g;rel=next"));
    links_header(links, BYTES("refresh"), BYTES("0;url=/r"));
    links_header(links, BYTES("Server"), BYTES("<x>; rel=next"));
    assert_int_equal(links_feed(links, BYTES("body")), ERR_OK);
    assert_int_equal(links_finish(links), ERR_OK);
    assert_bytes_equal(buf_bytes(&found),
                       BYTES("embed  header /d/a,b\npage  header /d/c\nrefresh  header /r\n"));
    url_done(&base);
    buf_done(&found);
    links_free(links);
}

struct offsets {
    struct bytes input;
    size_t count;
};

static void check_offset(void *context, const struct link *link) {
    struct offsets *offsets = context;
    struct bytes text = bytes_skip(offsets->input, link->offset);
    assert_true(bytes_starts_with(text, BYTES("HERE")));
    offsets->count++;
}

static void offsets_point_to_the_text(void **state) {
    (void)state;
    struct offsets offsets = {.input =
                                  BYTES("<p>text &amp; text<a href=\"HERE1\"><img src=HERE2><style>a{b:url( "
                                        "'HERE3')}</style><p style='HERE:url(HERE4)'>"
                                        "<script>x='HERE/5.js'</script>")};
    struct links *links = links_new();
    struct url base;
    url_init(&base);
    assert_int_equal(url_parse(&base, bytes_of_string(base_text), NULL, NULL), ERR_OK);
    for (size_t piece = 1; piece < 200; piece += 9) {
        links_start(links, BYTES("text/html"), &base, &everything, check_offset, &offsets);
        for (struct bytes rest = offsets.input; rest.size > 0;) {
            size_t size = rest.size < piece ? rest.size : piece;
            assert_int_equal(links_feed(links, bytes_slice(rest, 0, size)), ERR_OK);
            rest = bytes_skip(rest, size);
        }
        offsets.count = 0;
        assert_int_equal(links_finish(links), ERR_OK);
        assert_int_equal(offsets.count, 5);
    }
    url_done(&base);
    links_free(links);
}

static void count_link(void *context, const struct link *link) {
    (void)link;
    ++*(size_t *)context;
}

static void usual_pages_allocate_nothing(void **state) {
    (void)state;
    struct buf page;
    buf_init(&page, TEXT_SIZE_MAX);
    buf_put_string(
        &page, "<!DOCTYPE html><meta charset=utf-8><title>x</title><style>@import 'a';b{c:url(d)}</style>");
    for (int i = 0; i < 200; i++) {
        buf_put_format(
            &page, "<p style='background:url(&quot;%d.png&quot;)'>text <a href=\"/x/%d?a=1&amp;b=2\">x</a>",
            i, i);
    }
    struct links *links = links_new();
    struct url base;
    url_init(&base);
    assert_int_equal(url_parse(&base, bytes_of_string(base_text), NULL, NULL), ERR_OK);
    for (int round = 0; round < 4; round++) {
        size_t before = allocations_count;
        size_t count = 0;
        links_start(links, BYTES("text/html"), &base, &everything, count_link, &count);
        for (struct bytes rest = buf_bytes(&page); rest.size > 0;) {
            size_t size = rest.size < 1000 ? rest.size : 1000;
            assert_int_equal(links_feed(links, bytes_slice(rest, 0, size)), ERR_OK);
            rest = bytes_skip(rest, size);
        }
        assert_int_equal(links_finish(links), ERR_OK);
        assert_int_equal(count, 402);
        assert_true(round == 0 || allocations_count == before);
    }
    url_done(&base);
    links_free(links);
    buf_done(&page);
}

static void memory_that_runs_out_is_reported_and_survived(void **state) {
    (void)state;
    struct bytes page =
        BYTES("<a href='a&amp;b'><a href='\xe9'><p style='x:url(y)'><iframe srcdoc='<a href=c>'>");
    struct url base;
    url_init(&base);
    assert_int_equal(url_parse(&base, bytes_of_string(base_text), NULL, NULL), ERR_OK);
    bool was_clean = false;
    for (size_t failing = 0; !was_clean; failing++) {
        struct links *links = links_new();
        size_t count = 0;
        allocations_left = failing;
        links_start(links, BYTES("text/html"), &base, &everything, count_link, &count);
        enum err err = ERR_OK;
        for (size_t i = 0; i < page.size && err == ERR_OK; i++) {
            err = links_feed(links, bytes_slice(page, i, i + 1));
        }
        err = err == ERR_OK ? links_finish(links) : err;
        allocations_left = SIZE_MAX;
        assert_true(err == ERR_OK || err == ERR_MEMORY);
        was_clean = err == ERR_OK && count == 4;
        links_free(links);
        assert_true(failing < 1000);
    }
    url_done(&base);
}

static double seconds_for(struct links *links, const char *type, const char *start, const char *text,
                          size_t size) {
    struct buf input;
    struct url base;
    size_t count = 0;
    buf_init(&input, TEXT_SIZE_MAX);
    buf_put_string(&input, start);
    while (input.size < size) {
        buf_put_string(&input, text);
    }
    url_init(&base);
    assert_int_equal(url_parse(&base, bytes_of_string(base_text), NULL, NULL), ERR_OK);
    clock_t begin = clock();
    links_start(links, bytes_of_string(type), &base, &everything, count_link, &count);
    for (struct bytes rest = buf_bytes(&input); rest.size > 0;) {
        size_t piece = rest.size < 16384 ? rest.size : 16384;
        assert_int_equal(links_feed(links, bytes_slice(rest, 0, piece)), ERR_OK);
        rest = bytes_skip(rest, piece);
    }
    assert_int_equal(links_finish(links), ERR_OK);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    url_done(&base);
    buf_done(&input);
    return seconds;
}

/* Four times the input takes about four times as long, not sixteen times. */
static void hostile_documents_take_linear_time(void **state) {
    (void)state;
    static const struct {
        const char *type;
        const char *start;
        const char *text;
    } inputs[] = {
        {"text/html", "", "<"},
        {"text/html", "", "<a "},
        {"text/html", "", "<a href=\"x"},
        {"text/html", "", "<!-- <!-- "},
        {"text/html", "", "<a href=x>"},
        {"text/html", "<img srcset=\"", ","},
        {"text/html", "<img srcset=\"", "a,"},
        {"text/html", "", "<img srcset=',,,,(,,,,'>"},
        {"text/html", "", "<svg><title>"},
        {"text/html", "<style>", "url("},
        {"text/html", "<style>", "url(\\"},
        {"text/html", "", "<p style='(((((((('>"},
        {"text/html", "", "<iframe srcdoc='<a href=x>'>"},
        {"text/html", "<script>", "<!--<script>"},
        {"text/html", "<script>", "'\\u002f"},
        {"text/html;charset=utf-16", "", "<a href=x>"},
        {"text/html;charset=iso-2022-jp", "", "\x1b$B"},
        {"text/html;charset=gbk", "", "<a href='\x81\x40?\x81'>"},
        {"application/rss+xml", "", "<description>&lt;"},
        {"application/rss+xml", "", "<link><![CDATA[x"},
        {"text/css", "", "a{b:url(\"x\ny\")"},
        {"text/css", "", "@import"},
        {"text/css", "", "\\"},
        {"application/json", "", "\"a\\\""},
        {"application/vnd.apple.mpegurl", "", "#URI="},
    };
    struct links *links = links_new();
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        double small = seconds_for(links, inputs[i].type, inputs[i].start, inputs[i].text, HOSTILE_SIZE / 4);
        double large = seconds_for(links, inputs[i].type, inputs[i].start, inputs[i].text, HOSTILE_SIZE);
        if (large > 1.0 && large > 10 * small) {
            fail_msg("%d bytes of \"%s\": %.2f s, a quarter of them: %.2f s", HOSTILE_SIZE, inputs[i].text,
                     large, small);
        }
    }
    links_free(links);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anchors_and_areas_are_pages),
        cmocka_unit_test(what_is_not_fetched_is_left_out),
        cmocka_unit_test(a_url_is_reported_once_per_kind),
        cmocka_unit_test(images_and_their_sets_are_embedded),
        cmocka_unit_test(lazy_images_are_embedded),
        cmocka_unit_test(media_frames_scripts_and_objects_are_embedded),
        cmocka_unit_test(the_rel_of_a_link_decides),
        cmocka_unit_test(the_first_base_counts_from_where_it_stands),
        cmocka_unit_test(refreshes_lead_somewhere),
        cmocka_unit_test(forms_only_where_asked_for_and_only_get),
        cmocka_unit_test(styles_in_elements_and_attributes),
        cmocka_unit_test(what_scripts_would_not_see_is_seen),
        cmocka_unit_test(documents_in_attributes_are_looked_at),
        cmocka_unit_test(guesses_only_where_asked_for),
        cmocka_unit_test(style_sheets_have_links),
        cmocka_unit_test(svg_and_other_xml_have_links),
        cmocka_unit_test(feeds_have_links),
        cmocka_unit_test(manifests_and_playlists_have_links),
        cmocka_unit_test(the_first_bytes_decide_where_the_type_does_not),
        cmocka_unit_test(urls_are_read_in_the_encoding_of_the_page),
        cmocka_unit_test(header_fields_have_links),
        cmocka_unit_test(offsets_point_to_the_text),
        cmocka_unit_test(usual_pages_allocate_nothing),
        cmocka_unit_test(memory_that_runs_out_is_reported_and_survived),
        cmocka_unit_test(hostile_documents_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
