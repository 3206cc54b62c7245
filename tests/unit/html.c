/* html - what html-data.c does not cover: places in the source, limits, foreign content, hostile input. */
#include "web/html/html.h"

#include <time.h>

#include "allocations.h"
#include "unit.h"
#include "web/html/tree.h"

enum { TEXT_SIZE_MAX = 1 << 26, HOSTILE_SIZE = UNIT_IS_SANITIZED ? 1 << 20 : 10 << 20 };

static const char *const kind_names[] = {
    [HTML_TEXT] = "text",
    [HTML_START_TAG] = "start",
    [HTML_END_TAG] = "end",
    [HTML_COMMENT] = "comment",
    [HTML_DOCTYPE] = "doctype",
    [HTML_SKIPPED] = "skipped",
    [HTML_END] = "",
};

static void put_token(struct buf *out, const struct html_token *token) {
    if (token->kind == HTML_END) {
        return;
    }
    buf_put_format(out, "%s:", kind_names[token->kind]);
    bool is_tag = token->kind == HTML_START_TAG || token->kind == HTML_END_TAG;
    bool has_text = token->kind == HTML_TEXT || token->kind == HTML_COMMENT;
    struct bytes text = is_tag ? token->name : has_text ? token->text : token->source;
    html_decode(out, text, is_tag ? HTML_DECODING_NAME : has_text ? token->decoding : HTML_DECODE_NOTHING);
    buf_put_byte(out, '|');
}

/* All tokens as text, with the models that the tree of elements gives; adjacent text may be in parts. */
static void tokenize(struct bytes input, size_t piece_size, struct buf *out) {
    static struct html html;
    static struct tree tree;
    struct html_token token;
    uint64_t offset = 0;
    html_init(&html);
    tree_init(&tree);
    html_start(&html);
    bool has_ended = false;
    for (size_t from = 0; !has_ended; from += piece_size) {
        size_t left = from < input.size ? input.size - from : 0;
        if (left > 0) {
            html_feed(&html, bytes_slice(input, from, from + (left < piece_size ? left : piece_size)));
        } else {
            html_end(&html);
            has_ended = true;
        }
        while (html_next(&html, &token)) {
            assert_int_equal(token.offset, offset);
            assert_true(bytes_equal(token.source, bytes_slice(input, offset, offset + token.source.size)));
            offset += token.source.size;
            put_token(out, &token);
            if (token.kind == HTML_START_TAG || token.kind == HTML_END_TAG) {
                tree_tag(&tree, &html, &token);
            }
        }
    }
    assert_int_equal(html_err(&html), ERR_OK);
    assert_int_equal(offset, input.size);
    html_done(&html);
}

static void expect(const char *input, const char *tokens) {
    struct buf found;
    buf_init(&found, TEXT_SIZE_MAX);
    tokenize(bytes_of_string(input), SIZE_MAX / 2, &found);
    assert_bytes_equal(buf_bytes(&found), bytes_of_string(tokens));
    buf_done(&found);
}

static void tag_of(struct html *html, struct html_token *token, const char *input) {
    html_init(html);
    html_start(html);
    html_feed(html, bytes_of_string(input));
    assert_true(html_next(html, token));
    assert_int_equal(token->kind, HTML_START_TAG);
}

static void attributes_have_their_places_and_quotes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const char *value;
        enum html_quote quote;
    } want[] = {
        {"href", "a b", HTML_DOUBLE_QUOTED}, {"SRC", "c&amp;d", HTML_SINGLE_QUOTED},
        {"x", "y/z", HTML_UNQUOTED},         {"checked", "", HTML_NO_VALUE},
        {"empty", "", HTML_DOUBLE_QUOTED},   {"none", "", HTML_NO_VALUE},
        {"=odd", "1", HTML_UNQUOTED},        {"last", "\n", HTML_SINGLE_QUOTED},
    };
    static struct html html;
    struct html_token token;
    tag_of(&html, &token,
           "<IMG href=\"a b\"SRC = 'c&amp;d' x=y/z checked empty=\"\" none/=odd=1 last='\n'/>");
    assert_bytes_equal(token.name, BYTES("IMG"));
    assert_true(token.name_key == html_key(BYTES("img")));
    assert_true(token.is_self_closing);
    assert_int_equal(token.attributes_count, sizeof want / sizeof *want);
    for (size_t i = 0; i < token.attributes_count; i++) {
        const struct html_attribute *attribute = &token.attributes[i];
        assert_bytes_equal(html_attribute_name(&token, attribute), bytes_of_string(want[i].name));
        assert_bytes_equal(html_attribute_value(&token, attribute), bytes_of_string(want[i].value));
        assert_int_equal(attribute->quote, want[i].quote);
        assert_true(attribute->name_key == html_key(bytes_of_string(want[i].name)));
    }
    html_done(&html);
}

static void only_the_first_of_a_name_counts(void **state) {
    (void)state;
    static struct html html;
    struct html_token token;
    tag_of(&html, &token, "<a href=1 HREF=2 data-something-long=3 DATA-something-LONG=4 b>");
    static const bool want[] = {false, true, false, true, false};
    assert_int_equal(token.attributes_count, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct html_attribute *attribute = &token.attributes[i];
        bool is_repeated = html_find_attribute(&token, html_attribute_name(&token, attribute)) != attribute;
        assert_int_equal(is_repeated, want[i]);
    }
    html_done(&html);
}

static void elements_decide_how_their_text_is_read(void **state) {
    (void)state;
    expect("<title>a<b>&lt;</title><b>", "start:title|text:a<b><|end:title|start:b|");
    expect("<style><a></style><a>", "start:style|text:<a>|end:style|start:a|");
    expect("<script>'</a><!--<script></script>-->'</SCRIPT ><a>",
           "start:script|text:'</a><!--<script></script>-->'|end:script|start:a|");
    expect("<plaintext></plaintext><a>", "start:plaintext|text:</plaintext><a>|");
    expect("<noscript><img></noscript>", "start:noscript|start:img|end:noscript|");
    expect("<textarea><a></textareax></textarea\n>", "start:textarea|text:<a></textareax>|end:textarea|");
    expect("<iframe><a></iframe><xmp><a></xmp>",
           "start:iframe|text:<a>|end:iframe|start:xmp|text:<a>|end:xmp|");
}

static void foreign_content_has_its_own_rules(void **state) {
    (void)state;
    expect(
        "<svg><style><a></style><![CDATA[<b>]]></svg><style><a></style>",
        "start:svg|start:style|start:a|end:style|skipped:<![CDATA[|text:<b>|skipped:]]>|end:svg|start:style|"
        "text:<a>|end:style|");
    expect("<![CDATA[x]]>", "comment:[CDATA[x]]|");
    expect("<svg><title><style><a></style></title><style><a></style></svg>",
           "start:svg|start:title|start:style|text:<a>|end:style|end:title|start:style|start:a|end:style|end:"
           "svg|");
    expect("<svg><foreignObject><title><a></title></foreignObject><title><a>",
           "start:svg|start:foreignobject|start:title|text:<a>|end:title|end:foreignobject|start:title|start:"
           "a|");
    expect("<svg><path/><div><title><a></title>",
           "start:svg|start:path|start:div|start:title|text:<a>|end:title|");
    expect("<svg/><title><a></title>", "start:svg|start:title|text:<a>|end:title|");
    expect("<math><mi><style><a></style></mi><style><a>",
           "start:math|start:mi|start:style|text:<a>|end:style|end:mi|start:style|start:a|");
    expect("<math><annotation-xml><style><a></style></annotation-xml>",
           "start:math|start:annotation-xml|start:style|start:a|end:style|end:annotation-xml|");
    expect("<math><annotation-xml encoding=TEXT/html><style><a></style></annotation-xml>",
           "start:math|start:annotation-xml|start:style|text:<a>|end:style|end:annotation-xml|");
    expect("<svg><font><style><a></style><font color=x><style><a>",
           "start:svg|start:font|start:style|start:a|end:style|start:font|start:style|text:<a>|");
    expect("<svg></p><style><a>", "start:svg|end:p|start:style|text:<a>|");
}

static void sparse_tokens_leave_out_what_nobody_wants(void **state) {
    (void)state;
    static struct html html;
    struct html_token token;
    struct buf found;
    buf_init(&found, TEXT_SIZE_MAX);
    html_init(&html);
    html_start(&html);
    html_set_sparse(&html, true);
    html_feed(&html, BYTES("a<b>c</b>d < e</i x='>'><img>&amp;</p><!--f--></x-y><br></"));
    html_end(&html);
    while (html_next(&html, &token)) {
        if (token.kind == HTML_START_TAG || token.kind == HTML_COMMENT) {
            put_token(&found, &token);
        }
    }
    assert_bytes_equal(buf_bytes(&found), BYTES("start:b|start:img|comment:f|start:br|"));
    html_done(&html);
    buf_done(&found);
}

/*
 * Limits
 */

static void put_repeated(struct buf *out, const char *text, size_t size) {
    while (out->size < size) {
        buf_put_string(out, text);
    }
}

/* The tokens must not depend on the pieces, but for text and comments, which may be in more parts. */
static void check_pieces(struct bytes input) {
    static const size_t piece_sizes[] = {65536, 1021, 1};
    struct buf want;
    struct buf got;
    buf_init(&want, TEXT_SIZE_MAX);
    buf_init(&got, TEXT_SIZE_MAX);
    tokenize(input, SIZE_MAX / 2, &want);
    for (size_t i = 0; i < sizeof piece_sizes / sizeof *piece_sizes; i++) {
        buf_clear(&got);
        tokenize(input, piece_sizes[i], &got);
        struct bytes rest_want = buf_bytes(&want);
        struct bytes rest_got = buf_bytes(&got);
        struct bytes part;
        while (bytes_split(&rest_want, '|', &part)) {
            if (bytes_starts_with(part, BYTES("start:")) || bytes_starts_with(part, BYTES("end:"))) {
                size_t at = bytes_find(rest_got, part);
                assert_true(at < rest_got.size);
                rest_got = bytes_skip(rest_got, at + part.size);
            }
        }
        size_t at = bytes_find(rest_got, BYTES("start:"));
        assert_int_equal(at, rest_got.size);
    }
    buf_done(&got);
    buf_done(&want);
}

static void of_a_tag_too_long_its_start_is_reported(void **state) {
    (void)state;
    struct buf input;
    buf_init(&input, TEXT_SIZE_MAX);
    buf_put_string(&input, "<script first=1 src=\"");
    put_repeated(&input, "x", HTML_TAG_SIZE_MAX + 5000);
    buf_put_string(&input, "'>\" last='>'></b></script><i>");
    static struct html html;
    struct html_token token;
    html_init(&html);
    html_start(&html);
    html_feed(&html, buf_bytes(&input));
    assert_true(html_next(&html, &token));
    assert_int_equal(token.kind, HTML_START_TAG);
    assert_true(token.is_cut);
    assert_int_equal(token.source.size, HTML_TAG_SIZE_MAX);
    assert_int_equal(token.attributes_count, 1);
    html_done(&html);
    struct buf found;
    buf_init(&found, TEXT_SIZE_MAX);
    tokenize(buf_bytes(&input), SIZE_MAX / 2, &found);
    assert_true(bytes_ends_with(buf_bytes(&found), BYTES("'>\" last='>'>|text:</b>|end:script|start:i|")));
    buf_done(&found);
    check_pieces(buf_bytes(&input));
    buf_done(&input);
}

static void a_tag_of_the_largest_size_is_whole(void **state) {
    (void)state;
    struct buf input;
    buf_init(&input, TEXT_SIZE_MAX);
    buf_put_string(&input, "<a href=\"");
    put_repeated(&input, "x", HTML_TAG_SIZE_MAX - 2);
    buf_put_string(&input, "\"><b>");
    static struct html html;
    struct html_token token;
    html_init(&html);
    html_start(&html);
    html_feed(&html, buf_bytes(&input));
    assert_true(html_next(&html, &token));
    assert_false(token.is_cut);
    assert_int_equal(token.attributes_count, 1);
    html_done(&html);
    check_pieces(buf_bytes(&input));
    buf_done(&input);
}

static void other_limits_lose_no_byte(void **state) {
    (void)state;
    static const struct {
        const char *start;
        const char *middle;
        const char *end;
    } inputs[] = {
        {"<!DOCTYPE html ", "x", "><a>"},
        {"<!--", "x-", "--><a>"},
        {"<!", "<", "><a>"},
        {"<a ", "b ", "><c>"},
        {"&#", "0", "65;<a>"},
        {"<", "a", "><b>"},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        struct buf input;
        buf_init(&input, TEXT_SIZE_MAX);
        buf_put_string(&input, inputs[i].start);
        put_repeated(&input, inputs[i].middle, HTML_TAG_SIZE_MAX + 3000);
        buf_put_string(&input, inputs[i].end);
        check_pieces(buf_bytes(&input));
        buf_done(&input);
    }
}

static void attributes_have_a_limit(void **state) {
    (void)state;
    struct buf input;
    buf_init(&input, TEXT_SIZE_MAX);
    buf_put_string(&input, "<a");
    for (size_t i = 0; i < HTML_ATTRIBUTES_MAX + 10; i++) {
        buf_put_format(&input, " a%zu=%zu", i, i);
    }
    buf_put_string(&input, ">");
    static struct html html;
    struct html_token token;
    tag_of(&html, &token, buf_string(&input));
    assert_int_equal(token.attributes_count, HTML_ATTRIBUTES_MAX);
    assert_bytes_equal(html_attribute_value(&token, &token.attributes[HTML_ATTRIBUTES_MAX - 1]),
                       BYTES("255"));
    assert_false(token.is_cut);
    html_done(&html);
    buf_done(&input);
}

/* Time must grow like the size: four times as much input, not sixteen times the processor time. */
static double seconds_for(const char *text, size_t size) {
    struct buf input;
    buf_init(&input, TEXT_SIZE_MAX);
    put_repeated(&input, text, size);
    static struct html html;
    struct html_token token;
    html_init(&html);
    html_start(&html);
    clock_t start = clock();
    for (struct bytes rest = buf_bytes(&input); rest.size > 0;) {
        size_t piece = rest.size < 16384 ? rest.size : 16384;
        html_feed(&html, bytes_slice(rest, 0, piece));
        while (html_next(&html, &token)) {
        }
        rest = bytes_skip(rest, piece);
    }
    html_end(&html);
    while (html_next(&html, &token)) {
    }
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    html_done(&html);
    buf_done(&input);
    return seconds;
}

static void hostile_input_takes_linear_time(void **state) {
    (void)state;
    static const char *const texts[] = {
        "<", "<a ", "<a b='", "<!--", "<!-",        "</", "<a b=c d=e ",
        "&", "&#",  "&amp",   "]]",   "<!DOCTYPE ", "\r", "<?",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double small = seconds_for(texts[i], HOSTILE_SIZE / 4);
        double large = seconds_for(texts[i], HOSTILE_SIZE);
        if (large > 1.0 && large > 10 * small) {
            fail_msg("%d bytes of \"%s\": %.2f s, a quarter of them: %.2f s", HOSTILE_SIZE, texts[i], large,
                     small);
        }
    }
}

static void memory_that_runs_out_is_reported(void **state) {
    (void)state;
    static struct html html;
    struct html_token token;
    html_init(&html);
    html_start(&html);
    html_feed(&html, BYTES("text<a href="));
    allocations_left = 0;
    while (html_next(&html, &token)) {
    }
    allocations_left = SIZE_MAX;
    assert_int_equal(html_err(&html), ERR_MEMORY);
    html_done(&html);
}

static void a_whole_page_takes_no_memory(void **state) {
    (void)state;
    static struct html html;
    struct html_token token;
    html_init(&html);
    size_t before = allocations_count;
    for (int i = 0; i < 3; i++) {
        html_start(&html);
        html_feed(
            &html,
            BYTES("<!DOCTYPE html><title>x</title><p class=y>z &amp; z</p><!-- c --><script>1</script>"));
        html_end(&html);
        while (html_next(&html, &token)) {
        }
    }
    assert_int_equal(allocations_count, before);
    html_done(&html);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_have_their_places_and_quotes),
        cmocka_unit_test(only_the_first_of_a_name_counts),
        cmocka_unit_test(elements_decide_how_their_text_is_read),
        cmocka_unit_test(foreign_content_has_its_own_rules),
        cmocka_unit_test(sparse_tokens_leave_out_what_nobody_wants),
        cmocka_unit_test(of_a_tag_too_long_its_start_is_reported),
        cmocka_unit_test(a_tag_of_the_largest_size_is_whole),
        cmocka_unit_test(other_limits_lose_no_byte),
        cmocka_unit_test(attributes_have_a_limit),
        cmocka_unit_test(hostile_input_takes_linear_time),
        cmocka_unit_test(memory_that_runs_out_is_reported),
        cmocka_unit_test(a_whole_page_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
