/* search-code: questions and answers of a search over the ring, and what is no answer. */
#include "protocol/search/search_code.h"

#include "node/search/search_put.h"
#include "unit.h"

static struct search_code_question some_question(void) {
    return (struct search_code_question){.words = BYTES("grey \"heron\" -cat"),
                                         .host = BYTES("example.org"),
                                         .from_us = INT64_MIN,
                                         .to_us = 5,
                                         .count = SEARCH_CODE_RESULTS_MAX};
}

static void a_question_comes_back_as_it_was(void **state) {
    (void)state;
    struct search_code_question question = some_question();
    struct search_code_question read;
    struct buf out;
    buf_init(&out, SEARCH_CODE_QUESTION_SIZE_MAX);
    assert_int_equal(search_put_question(&out, &question), ERR_OK);
    assert_int_equal(search_code_read_question(buf_bytes(&out), &read, NULL), ERR_OK);
    assert_bytes_equal(read.words, question.words);
    assert_bytes_equal(read.host, question.host);
    assert_true(read.from_us == INT64_MIN && read.to_us == 5 && read.count == SEARCH_CODE_RESULTS_MAX);
    for (size_t size = 0; size < out.size; size++) {
        assert_int_not_equal(search_code_read_question(bytes_of(out.data, size), &read, NULL), ERR_OK);
    }
    buf_done(&out);
}

static void a_question_beyond_its_bounds_is_none(void **state) {
    (void)state;
    struct search_code_question read;
    struct buf out;
    for (int i = 0; i < 3; i++) {
        struct search_code_question question = some_question();
        static uint8_t words[SEARCH_CODE_WORDS_SIZE_MAX + 1];
        question.count = i == 0 ? 0 : i == 1 ? SEARCH_CODE_RESULTS_MAX + 1 : 1;
        question.words = i == 2 ? bytes_of(words, sizeof words) : question.words;
        buf_init(&out, SEARCH_CODE_QUESTION_SIZE_MAX);
        assert_int_equal(search_put_question(&out, &question), ERR_OK);
        assert_int_not_equal(search_code_read_question(buf_bytes(&out), &read, NULL), ERR_OK);
        buf_done(&out);
    }
}

/* ---- answers ---- */

static const struct search_code_arc arcs[2] = {{{1, 2}, {3, 4}}, {{5, 6}, {UINT64_MAX, 0}}};

static struct search_code_result some_result(uint64_t score) {
    return (struct search_code_result){.url = BYTES("http://a.example/"),
                                       .title = BYTES("Caf\xc3\xa9"),
                                       .language = BYTES("en"),
                                       .snippet = BYTES("a \2heron\3 stands"),
                                       .time_us = -7,
                                       .digest = {1, 2, 3},
                                       .score = score};
}

/* An answer with two arcs and these results. */
static void put_answer(struct buf *out, const struct search_code_result *results, uint32_t count) {
    struct search_code_head head = {
        .has_more = true, .left_count = 9, .documents_count = 100, .arcs_count = 2, .results_count = count};
    buf_init(out, SEARCH_CODE_ANSWER_SIZE_MAX);
    assert_int_equal(search_put_head(out, &head, arcs), ERR_OK);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(search_put_result(out, &results[i]), ERR_OK);
    }
}

static void an_answer_comes_back_as_it_was(void **state) {
    (void)state;
    struct search_code_result results[2] = {some_result(2000000), some_result(2000000)};
    struct search_code_reader reader;
    struct search_code_head head;
    struct search_code_arc arc;
    struct search_code_result result;
    struct buf out;
    put_answer(&out, results, 2);
    assert_int_equal(search_code_check_answer(buf_bytes(&out), NULL), ERR_OK);
    assert_true(search_code_read_head(&reader, buf_bytes(&out), &head));
    assert_true(head.has_more && !head.has_everything && !head.lacks_volumes);
    assert_true(head.left_count == 9 && head.documents_count == 100 && head.results_count == 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(search_code_next_arc(&reader, &arc));
        assert_true(ring_id_equal(arc.from, arcs[i].from) && ring_id_equal(arc.to, arcs[i].to));
    }
    assert_false(search_code_next_arc(&reader, &arc));
    for (size_t i = 0; i < 2; i++) {
        assert_true(search_code_next_result(&reader, &result));
        assert_bytes_equal(result.url, results[i].url);
        assert_bytes_equal(result.title, results[i].title);
        assert_bytes_equal(result.snippet, results[i].snippet);
        assert_true(result.time_us == -7 && result.score == 2000000 && result.digest[2] == 3);
    }
    assert_false(search_code_next_result(&reader, &result));
    for (size_t size = 0; size < out.size; size++) {
        assert_int_not_equal(search_code_check_answer(bytes_of(out.data, size), NULL), ERR_OK);
    }
    buf_put_byte(&out, 0);
    assert_int_equal(search_code_check_answer(buf_bytes(&out), NULL), ERR_INVALID);
    buf_done(&out);
}

static void expect_refused(const struct search_code_result *results, uint32_t count) {
    struct buf out;
    put_answer(&out, results, count);
    assert_int_not_equal(search_code_check_answer(buf_bytes(&out), NULL), ERR_OK);
    buf_done(&out);
}

static void false_answers_are_refused(void **state) {
    (void)state;
    struct search_code_result rising[2] = {some_result(1), some_result(2)};
    struct search_code_result bad = some_result(SEARCH_CODE_SCORE_MAX + 1);
    expect_refused(rising, 2);
    expect_refused(&bad, 1);
    const struct bytes texts[] = {BYTES("an\x1b[31mescape"), BYTES("\xff"), BYTES("a\nline"),
                                  BYTES("\2open"),           BYTES("\3"),   BYTES("\2\2a\3\3")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bad = some_result(1);
        bad.snippet = texts[i];
        expect_refused(&bad, 1);
        bad = some_result(1);
        bad.title = texts[i];
        expect_refused(&bad, 1);
        bad = some_result(1);
        bad.url = texts[i];
        expect_refused(&bad, 1);
    }
    bad = some_result(1);
    bad.title = BYTES("\2marked\3"); /* only snippets are */
    expect_refused(&bad, 1);
    bad.title = bad.url;
    bad.url = bytes_of(NULL, 0);
    expect_refused(&bad, 1);
}

static void expect_text(struct bytes text, size_t size_max, bool keeps_marks, struct bytes expected) {
    struct buf out;
    buf_init(&out, 1 << 10);
    search_put_text(&out, text, size_max, keeps_marks);
    assert_bytes_equal(buf_bytes(&out), expected);
    buf_done(&out);
}

static void any_text_is_made_fit_for_an_answer(void **state) {
    (void)state;
    expect_text(BYTES("a\x1b[0m\n\xff\xc3\xa9"), 100, false, BYTES("a [0m \xc3\xa9"));
    expect_text(BYTES("a\xc3\xa9z"), 2, false, BYTES("a"));
    expect_text(BYTES("\2one\3 \2two"), 100, true, BYTES("\2one\3 \2two\3"));
    expect_text(BYTES("\3\2a\2b\3"), 100, true, BYTES(" \2a b\3"));
    expect_text(BYTES("\2one\3"), 100, false, BYTES(" one "));
    expect_text(BYTES("\2abcdef"), 4, true, BYTES("\2ab\3"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_comes_back_as_it_was),
        cmocka_unit_test(a_question_beyond_its_bounds_is_none),
        cmocka_unit_test(an_answer_comes_back_as_it_was),
        cmocka_unit_test(false_answers_are_refused),
        cmocka_unit_test(any_text_is_made_fit_for_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
