#include "replay/pages/pages_diff.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/prng.h"
#include "parse/parse_lines.h"
#include "unit.h"

/* "=one -two +TWO": what the diff says, a line each. */
static void put_script(struct buf *out, const struct pages_diff *diff) {
    static const char marks[] = {'=', '-', '+'};
    for (size_t i = 0; i < diff->lines_count; i++) {
        buf_put_string(out, i == 0 ? "" : " ");
        buf_put_byte(out, (uint8_t)marks[diff->lines[i].kind]);
        buf_put(out, diff->lines[i].text);
    }
}

static void assert_script(const char *a, const char *b, const char *script) {
    struct pages_diff diff;
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(pages_diff_init(&diff, bytes_of_string(a), bytes_of_string(b)), ERR_OK);
    put_script(&out, &diff);
    assert_bytes_equal(buf_bytes(&out), bytes_of_string(script));
    assert_false(diff.is_coarse || diff.is_cut);
    pages_diff_done(&diff);
    buf_done(&out);
}

static void tells_what_was_removed_and_added(void **state) {
    (void)state;
    assert_script("", "", "");
    assert_script("one\n", "one", "=one");
    assert_script("one\r\ntwo", "one\ntwo\n", "=one =two");
    assert_script("one\ntwo\nthree", "one\nTWO\nthree", "=one -two +TWO =three");
    assert_script("", "one\ntwo", "+one +two");
    assert_script("one\ntwo", "", "-one -two");
    assert_script("a\nb\nc", "b\nc\nd", "-a =b =c +d");
    assert_script("a\nb", "c\nd", "-a -b +c +d");
    assert_script("x\n\nx", "x\nx", "=x - =x");
}

/* ---- against the textbook: the longest common subsequence by dynamic programming ---- */

enum { SMALL_MAX = 12 };

static size_t common_count(const char *a, size_t a_count, const char *b, size_t b_count) {
    size_t table[SMALL_MAX + 1][SMALL_MAX + 1] = {{0}};
    for (size_t i = 1; i <= a_count; i++) {
        for (size_t k = 1; k <= b_count; k++) {
            size_t up = table[i - 1][k];
            size_t left = table[i][k - 1];
            table[i][k] = a[i - 1] == b[k - 1] ? table[i - 1][k - 1] + 1 : up > left ? up : left;
        }
    }
    return table[a_count][b_count];
}

static size_t make_text(struct prng *prng, char letters[SMALL_MAX], struct buf *out) {
    size_t count = (size_t)prng_below(prng, SMALL_MAX + 1);
    buf_clear(out);
    for (size_t i = 0; i < count; i++) {
        letters[i] = (char)('a' + (char)prng_below(prng, 3));
        buf_put_format(out, "%c\n", letters[i]);
    }
    return count;
}

/* The lines without what was added are a, without what was removed b. */
static void assert_leads_from(const struct pages_diff *diff, const char *a, size_t a_count, const char *b,
                              size_t b_count) {
    size_t x = 0;
    size_t y = 0;
    for (size_t i = 0; i < diff->lines_count; i++) {
        const struct pages_diff_line *line = &diff->lines[i];
        if (line->kind != PAGES_DIFF_ADDED) {
            assert_true(x < a_count && line->text.data[0] == (uint8_t)a[x]);
            x++;
        }
        if (line->kind != PAGES_DIFF_REMOVED) {
            assert_true(y < b_count && line->text.data[0] == (uint8_t)b[y]);
            y++;
        }
    }
    assert_int_equal(x, a_count);
    assert_int_equal(y, b_count);
}

static void is_the_shortest_for_any_texts(void **state) {
    (void)state;
    struct prng prng;
    struct buf a_text;
    struct buf b_text;
    prng_init(&prng, 5);
    buf_init(&a_text, 1024);
    buf_init(&b_text, 1024);
    for (size_t round = 0; round < 2000; round++) {
        char a[SMALL_MAX];
        char b[SMALL_MAX];
        size_t a_count = make_text(&prng, a, &a_text);
        size_t b_count = make_text(&prng, b, &b_text);
        struct pages_diff diff;
        assert_int_equal(pages_diff_init(&diff, buf_bytes(&a_text), buf_bytes(&b_text)), ERR_OK);
        assert_leads_from(&diff, a, a_count, b, b_count);
        size_t common = common_count(a, a_count, b, b_count);
        assert_int_equal(diff.removed_count, a_count - common);
        assert_int_equal(diff.added_count, b_count - common);
        pages_diff_done(&diff);
    }
    buf_done(&a_text);
    buf_done(&b_text);
}

/* ---- bounds ---- */

static void put_numbers(struct buf *out, size_t from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        buf_put_format(out, "%zu\n", from + i);
    }
}

static void many_differences_are_told_coarsely(void **state) {
    (void)state;
    struct buf a;
    struct buf b;
    struct pages_diff diff;
    buf_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    buf_put_string(&a, "first\n");
    put_numbers(&a, 0, PAGES_DIFF_EDITS_MAX);
    buf_put_string(&b, "first\n");
    put_numbers(&b, 1000000, PAGES_DIFF_EDITS_MAX);
    assert_int_equal(pages_diff_init(&diff, buf_bytes(&a), buf_bytes(&b)), ERR_OK);
    assert_true(diff.is_coarse);
    assert_int_equal(diff.removed_count, PAGES_DIFF_EDITS_MAX);
    assert_int_equal(diff.added_count, PAGES_DIFF_EDITS_MAX);
    assert_int_equal(diff.lines[0].kind, PAGES_DIFF_SAME);
    pages_diff_done(&diff);
    buf_done(&a);
    buf_done(&b);
}

static void lines_above_the_maximum_are_left_out(void **state) {
    (void)state;
    struct buf a;
    struct pages_diff diff;
    buf_init(&a, 1 << 20);
    put_numbers(&a, 0, PAGES_DIFF_LINES_MAX + 5);
    assert_int_equal(pages_diff_init(&diff, buf_bytes(&a), buf_bytes(&a)), ERR_OK);
    assert_true(diff.is_cut && !diff.is_coarse);
    assert_int_equal(diff.lines_count, PAGES_DIFF_LINES_MAX);
    pages_diff_done(&diff);
    buf_done(&a);
}

/* ---- the lines of a page ---- */

static void a_page_is_read_line_by_line(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 4096);
    enum err err = parse_lines_put(
        &out,
        BYTES("<!doctype html><title>A &amp; B</title><style>p{}</style><h1>Big\n <b>bold</b>,\n text</h1>"
              "<script>var x = '<p>no</p>'</script><p>one<br>two<ul><li>three <a>link</a><li>four</ul>"
              "<p>   <p>end"));
    assert_int_equal(err, ERR_OK);
    assert_bytes_equal(buf_bytes(&out), BYTES("A & B\nBig bold, text\none\ntwo\nthree link\nfour\nend\n"));
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_was_removed_and_added),
        cmocka_unit_test(is_the_shortest_for_any_texts),
        cmocka_unit_test(many_differences_are_told_coarsely),
        cmocka_unit_test(lines_above_the_maximum_are_left_out),
        cmocka_unit_test(a_page_is_read_line_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
