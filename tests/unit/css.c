/* css - the URLs of style sheets, fed whole and byte by byte. */
#include "web/html/css.h"

#include "unit.h"

enum { TEXT_SIZE_MAX = 1 << 24 };

static void put_token(struct buf *out, const struct css_token *token) {
    static const char quotes[] = {' ', '\'', '"'};
    if (token->kind != CSS_REFERENCE && token->kind != CSS_IMPORT) {
        return;
    }
    buf_put_string(out, token->kind == CSS_IMPORT ? "@" : "");
    buf_put_byte(out, (uint8_t)quotes[token->quote]);
    css_decode(out, token->source);
    buf_put_byte(out, '|');
}

/* The references as "quote value |"; the sources of all tokens must be the input. */
static void scan(struct bytes input, size_t piece_size, struct buf *references) {
    struct css css;
    struct css_token token;
    struct buf source;
    buf_init(&source, TEXT_SIZE_MAX);
    css_init(&css);
    css_start(&css);
    for (size_t from = 0; from < input.size; from += piece_size) {
        size_t to = input.size - from < piece_size ? input.size : from + piece_size;
        css_feed(&css, bytes_slice(input, from, to));
        while (css_next(&css, &token)) {
            assert_int_equal(token.offset, source.size);
            buf_put(&source, token.source);
            put_token(references, &token);
        }
    }
    css_end(&css);
    token.kind = CSS_OTHER;
    while (css_next(&css, &token)) {
        assert_int_equal(token.offset, source.size);
        buf_put(&source, token.source);
        put_token(references, &token);
    }
    assert_int_equal(token.kind, CSS_END);
    assert_int_equal(css_err(&css), ERR_OK);
    assert_bytes_equal(buf_bytes(&source), input);
    css_done(&css);
    buf_done(&source);
}

static void expect(const char *input, const char *references) {
    static const size_t piece_sizes[] = {TEXT_SIZE_MAX, 1, 2, 3, 7};
    for (size_t i = 0; i < sizeof piece_sizes / sizeof *piece_sizes; i++) {
        struct buf found;
        buf_init(&found, TEXT_SIZE_MAX);
        scan(bytes_of_string(input), piece_sizes[i], &found);
        if (!bytes_equal(buf_bytes(&found), bytes_of_string(references))) {
            fail_msg("%s\n  in pieces of %zu: %s\n  not %s", input, piece_sizes[i], buf_string(&found),
                     references);
        }
        buf_done(&found);
    }
}

static void finds_both_forms_of_url(void **state) {
    (void)state;
    expect("a{background:url(x.png)}", " x.png|");
    expect("a{background:url( x.png )}", " x.png|");
    expect("a{background:url(\n\t'x.png'\n)}", "'x.png|");
    expect("a{background:URL(\"x y(z).png\") no-repeat}", "\"x y(z).png|");
    expect("@font-face{src:url(a.woff2)format('woff2'),url(b.woff)}", " a.woff2| b.woff|");
    expect("a{b:url(x),url(y),url(z)}", " x| y| z|");
    expect("a{b:src('x')}", "'x|");
    expect("a{b:url()url('')url(  )}", "");
}

static void finds_imports_of_both_forms(void **state) {
    (void)state;
    expect("@import 'a.css';@IMPORT\"b.css\" screen;", "@'a.css|@\"b.css|");
    expect("@import url(a.css);@import url('b.css') layer('x');", "@ a.css|@'b.css|");
    expect("@import/**/url( \"a\" );a{b:url(c)}", "@\"a| c|");
    expect("@import;a{b:'c'}", "");
    expect("@import 'a' supports(background:url(b))", "@'a| b|");
    expect("@\\69mport 'a'", "@'a|");
}

static void finds_strings_of_image_sets_only(void **state) {
    (void)state;
    expect("a{b:image-set('1.png' 1x, \"2.png\" 2x type('image/png'))}", "'1.png|\"2.png|");
    expect("a{b:-webkit-image-set(url(1.png) 1x)}", " 1.png|");
    expect("a{content:'x';b:foo('y')}a::after{content:\"url(z)\"}", "");
    expect("a{b:image-set((('x')))}", "");
}

static void leaves_namespaces_alone(void **state) {
    (void)state;
    expect("@namespace url(http://www.w3.org/1999/xhtml);a{b:url(c)}", " c|");
    expect("@namespace svg 'http://www.w3.org/2000/svg';", "");
    expect("@namespace svg url(\"http://www.w3.org/2000/svg\");", "");
    expect("@charset 'utf-8';", "");
}

static void resolves_escapes(void **state) {
    (void)state;
    expect("a{b:url(a\\)b\\28 c\\\\.png)}", " a)b(c\\.png|");
    expect("a{b:\\75 rl(x)}", " x|");
    expect("a{b:u\\000072l(x)}", " x|");
    expect("a{b:\\55\\52\\4c('x')}", "'x|");
    expect("a{b:url('a\\\nb\\'c\\22 d')}", "'ab'c\"d|");
    expect("a{b:url('a\\41\r\nb')}", "'aAb|");
    expect("a{b:url(\\0 \\d800 \\ffffff x)}", " \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx|");
    expect("a{b:url(\\e9 t\xc3\xa9)}", " \xc3\xa9t\xc3\xa9|");
}

static void passes_over_comments_and_strings(void **state) {
    (void)state;
    expect("/* url(a) */a{b:url(c)/* 'd */}", " c|");
    expect("/**/url(a)/***/url(b)/*/url(c)*/url(d)", " a| b| d|");
    expect("'/*'url(a)'*/'url(b)", " a| b|");
    expect("/* never closed url(a)", "");
    expect("a{b:url(/*x*/)}", " /*x*/|");
    expect("a/url(b)", " b|");
}

static void bad_urls_and_bad_strings_end_where_the_standard_says(void **state) {
    (void)state;
    expect("a{b:url(x y)}c{d:url(z)}", " z|");
    expect("a{b:url(x'y)}c{d:url(z)}", " z|");
    expect("a{b:url(x\\)y z)}c{d:url(w)}", " w|");
    expect("a{b:url(x(y)}c{d:url(z)}", " z|");
    expect("a{b:url(x\\\ny)url(z)}", " z|");
    expect("a{b:url('x\ny')}", "");
    expect("a{b:url('x' 'y')}", "'x|");
    expect("a{b:'x\n;c:url(d)}", " d|");
    expect("a{b:url(\x01)}c{d:url(e)}", " e|");
}

static void a_name_is_a_function_only_where_it_is_a_name(void **state) {
    (void)state;
    expect("a{b:1url(x)}", "");
    expect("a{b:1.5url(x)}", "");
    expect("a{b:1.url(x)}", " x|");
    expect("a{b:#url(x)}", "");
    expect("a{b:-url(x) --url(y) myurl(z) url (w)}", "");
    expect("a{b:@url(x)}", "");
    expect("a{b:\xc3\xa9url(x)}", "");
}

static void the_end_of_the_input_ends_a_value(void **state) {
    (void)state;
    expect("a{b:url(x", " x|");
    expect("a{b:url(x ", " x|");
    expect("a{b:url('x", "'x|");
    expect("@import 'x", "@'x|");
    expect("a{b:url(x\\", " x|");
    expect("a{b:url(", "");
    expect("a{b:ur", "");
    expect("", "");
    expect("a/", "");
    expect("\\", "");
    expect("@", "");
}

static void parentheses_that_nobody_closes_end_with_the_rule(void **state) {
    (void)state;
    expect("a{b:image-set('x' 1x}c{content:'y'}", "'x|");
    expect("a{b:((((}c{d:url('y')}", "'y|");
}

/* Before, value, after. */
static void expect_long(size_t size, const char *before, const char *after, bool is_found) {
    static const size_t piece_sizes[] = {TEXT_SIZE_MAX, 1000, 1};
    struct buf input;
    buf_init(&input, TEXT_SIZE_MAX);
    buf_put_string(&input, before);
    for (size_t i = 0; i < size; i++) {
        buf_put_byte(&input, 'x');
    }
    buf_put_string(&input, after);
    for (size_t i = 0; i < sizeof piece_sizes / sizeof *piece_sizes; i++) {
        struct buf found;
        buf_init(&found, TEXT_SIZE_MAX);
        scan(buf_bytes(&input), piece_sizes[i], &found);
        assert_int_equal(found.size, is_found ? size + 2 + 3 : 3);
        assert_true(bytes_ends_with(buf_bytes(&found), BYTES(" y|")));
        buf_done(&found);
    }
    buf_done(&input);
}

static void values_have_a_limit_however_they_arrive(void **state) {
    (void)state;
    expect_long(CSS_VALUE_SIZE_MAX, "a{b:url(", ")}c{d:url(y)}", true);
    expect_long(CSS_VALUE_SIZE_MAX + 1, "a{b:url(", ")}c{d:url(y)}", false);
    expect_long(CSS_VALUE_SIZE_MAX, "a{b:url('", "')}c{d:url(y)}", true);
    expect_long(CSS_VALUE_SIZE_MAX + 1, "a{b:url('", "')}c{d:url(y)}", false);
    expect_long(CSS_VALUE_SIZE_MAX * 4, "a{b:'", "'}c{d:url(y)}", false);
    expect_long(CSS_NAME_SIZE_MAX * 4, "a{b:", "('z')}c{d:url(y)}", false);
    expect_long(CSS_NAME_SIZE_MAX * 4, "a{b:@", "\\\n('z')}c{d:url(y)}", false);
    expect_long(CSS_NAME_SIZE_MAX * 4, "a{b:#\\78", "('z')}c{d:url(y)}", false);
    expect_long(CSS_VALUE_SIZE_MAX * 2, "/*", "*/c{d:url(y)}", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_both_forms_of_url),
        cmocka_unit_test(finds_imports_of_both_forms),
        cmocka_unit_test(finds_strings_of_image_sets_only),
        cmocka_unit_test(leaves_namespaces_alone),
        cmocka_unit_test(resolves_escapes),
        cmocka_unit_test(passes_over_comments_and_strings),
        cmocka_unit_test(bad_urls_and_bad_strings_end_where_the_standard_says),
        cmocka_unit_test(a_name_is_a_function_only_where_it_is_a_name),
        cmocka_unit_test(the_end_of_the_input_ends_a_value),
        cmocka_unit_test(parentheses_that_nobody_closes_end_with_the_rule),
        cmocka_unit_test(values_have_a_limit_however_they_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
