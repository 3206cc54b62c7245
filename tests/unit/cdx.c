/* cdx: parameters, filters, and answers that are made piece by piece, over three volumes. */
#include "clock-manual.h"
#include "replay/cdx/cdx_answer.h"

#include "base/prng.h"
#include "instance-fixture.h"

enum { CAPTURES_COUNT = 900, MINUTE_US = 60000000, TEXT_SIZE_MAX = 4 << 20 };

/* ---- parameters ---- */

static enum err parse(struct cdx_query *query, enum cdx_dialect dialect, const char *text) {
    struct err_detail detail = {0};
    enum err err = cdx_query_parse(query, dialect, bytes_of_string(text), &detail);
    assert_int_equal(err == ERR_OK, detail.text[0] == '\0');
    return err;
}

static void parameters_have_defaults(void **state) {
    (void)state;
    struct cdx_query query;
    assert_int_equal(parse(&query, CDX_ARCHIVE_ORG, "url=a"), ERR_OK);
    assert_int_equal(query.shown_count, 7);
    assert_int_equal(query.output, CDX_TEXT);
    assert_int_equal(query.limit, CDX_LINES_MAX);
    assert_int_equal(query.sort, CDX_FORWARD);
    cdx_query_done(&query);
    assert_int_equal(parse(&query, CDX_PYWB, "url=a&unknown=1&&=x"), ERR_OK);
    assert_int_equal(query.output, CDX_CDXJ);
    assert_int_equal(query.shown[query.shown_count - 1], CDX_VOUCHER);
    assert_int_equal(query.shown[query.shown_count - 5], CDX_ID); /* lines with names have it */
    cdx_query_done(&query);
    assert_int_equal(parse(&query, CDX_PYWB, "url=a&output=text"), ERR_OK);
    assert_int_equal(query.shown_count, CDX_ACCESS + 1); /* by their place: as they always were */
    cdx_query_done(&query);
    assert_int_equal(parse(&query, CDX_ARCHIVE_ORG, "url=a&output=json"), ERR_OK);
    assert_int_equal(query.shown_count, 7);
    cdx_query_done(&query);
    assert_int_equal(parse(&query, CDX_PYWB, "url=a&trust=members"), ERR_OK);
    assert_int_equal(query.trust, ARCHIVE_TRUST_MEMBERS);
    cdx_query_done(&query);
    assert_int_equal(parse(&query, CDX_PYWB, "url=a&trust=some"), ERR_INVALID);
    cdx_query_done(&query);
    assert_int_equal(parse(&query, CDX_PYWB, ""), ERR_INVALID);
    assert_int_equal(parse(&query, CDX_PYWB, "&"), ERR_INVALID);
}

static void values_are_decoded(void **state) {
    (void)state;
    struct cdx_query query;
    assert_int_equal(parse(&query, CDX_ARCHIVE_ORG, "url=http%3A%2F%2fa%2F%3Fx%3D1%26y%3D%zz+%&limit=%32"),
                     ERR_OK);
    assert_bytes_equal(query.url, BYTES("http://a/?x=1&y=%zz %"));
    assert_int_equal(query.limit, 2);
    cdx_query_done(&query);
}

static void limits_may_be_negative_in_one_dialect(void **state) {
    (void)state;
    struct cdx_query query;
    assert_int_equal(parse(&query, CDX_ARCHIVE_ORG, "url=a&limit=-5"), ERR_OK);
    assert_true(query.is_of_last);
    assert_int_equal(query.limit, 5);
    cdx_query_done(&query);
    assert_int_equal(parse(&query, CDX_PYWB, "url=a&limit=-5"), ERR_INVALID);
    assert_int_equal(parse(&query, CDX_ARCHIVE_ORG, "url=a&limit=--5"), ERR_INVALID);
    assert_int_equal(parse(&query, CDX_ARCHIVE_ORG, "url=a&limit=99999999999999"), ERR_OK);
    assert_int_equal(query.limit, CDX_LINES_MAX);
    cdx_query_done(&query);
}

/* ---- filters ---- */

static bool passes(enum cdx_dialect dialect, const char *text, const char *value) {
    struct cdx_filter filter;
    struct cdx_line line;
    struct err_detail detail = {0};
    bool result = false;
    memset(&line, 0, sizeof line);
    cdx_line_init(&line, NULL, false);
    line.values[CDX_MIMETYPE] = bytes_of_string(value);
    assert_int_equal(cdx_filter_init(&filter, dialect, bytes_of_string(text), &detail), ERR_OK);
    assert_int_equal(cdx_filter_run(&filter, &line, &result, &detail), ERR_OK);
    cdx_filter_done(&filter);
    cdx_line_done(&line);
    return result;
}

static void filters_of_both_dialects(void **state) {
    (void)state;
    assert_true(passes(CDX_ARCHIVE_ORG, "mimetype:text/html", "text/html"));
    assert_false(passes(CDX_ARCHIVE_ORG, "mimetype:text", "text/html"));
    assert_true(passes(CDX_ARCHIVE_ORG, "mimetype:text.*", "text/html"));
    assert_false(passes(CDX_ARCHIVE_ORG, "!mime:t.*l", "text/html"));
    assert_true(passes(CDX_ARCHIVE_ORG, "3:t(e|f)xt/(html|xml)", "text/html"));
    assert_true(passes(CDX_ARCHIVE_ORG, "m:(t)ex\\1/html", "text/html"));
    assert_true(passes(CDX_ARCHIVE_ORG, "mimetype:-", ""));
    assert_true(passes(CDX_ARCHIVE_ORG, "- - - text/h.*", "text/html"));
    assert_true(passes(CDX_PYWB, "mime:ext/", "text/html"));
    assert_true(passes(CDX_PYWB, "mime:", "text/html"));
    assert_false(passes(CDX_PYWB, "=mime:ext/", "text/html"));
    assert_true(passes(CDX_PYWB, "!=mime:ext/", "text/html"));
    assert_true(passes(CDX_PYWB, "~mime:te", "text/html"));
    assert_false(passes(CDX_PYWB, "~mime:ext", "text/html"));
    assert_false(passes(CDX_PYWB, "mime:.*", "text/html"));
}

static void regular_expressions_have_bounds(void **state) {
    (void)state;
    struct cdx_filter filter;
    struct cdx_line line;
    struct err_detail detail = {0};
    bool result = false;
    char value[200];
    memset(&line, 0, sizeof line);
    memset(value, 'a', sizeof value);
    cdx_line_init(&line, NULL, false);
    line.values[CDX_ORIGINAL] = bytes_of(value, sizeof value);
    assert_int_equal(cdx_filter_init(&filter, CDX_ARCHIVE_ORG, BYTES("original:(a|aa)+[bc]"), &detail),
                     ERR_OK);
    assert_int_equal(cdx_filter_run(&filter, &line, &result, &detail), ERR_LIMIT);
    cdx_filter_done(&filter);
    cdx_line_done(&line);
}

/* ---- answers ---- */

struct world {
    struct fixture fixture;
    struct archive *archive;
    struct clock_manual clock;
    struct buf text; /* of the last answer */
};

static int set_up(void **state) {
    void *fixture;
    struct world *world = calloc(1, sizeof *world);
    if (world == NULL || fixture_set_up(&fixture) != 0) {
        return -1;
    }
    world->fixture = *(struct fixture *)fixture;
    free(fixture);
    struct prng prng;
    prng_init(&prng, 7);
    for (int i = 0; i < CAPTURES_COUNT; i++) {
        char url[64];
        char body[64];
        snprintf(url, sizeof url, "http://example.org/%d", i % 90);
        snprintf(body, sizeof body, "%d", i % 210);
        fixture_capture(&world->fixture, url, (int64_t)prng_below(&prng, 40), body, fixture_numbers[i % 3]);
    }
    world->archive = archive_new(&(struct archive_config){.instance = world->fixture.instance,
                                                          .scratch_directory = world->fixture.root});
    clock_manual_init(&world->clock, 0);
    buf_init(&world->text, TEXT_SIZE_MAX);
    *state = world;
    return world->archive == NULL ? -1 : 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    archive_free(world->archive);
    buf_done(&world->text);
    fixture_close(&world->fixture);
    int result = scratch_remove(&world->fixture.root);
    free(world);
    return result;
}

/* All of the answer; so many calls at most. With late_us, the clock goes on by so much after the first. */
static enum err ask(struct world *world, const char *query, uint64_t late_us) {
    struct cdx_answer *answer;
    struct err_detail detail = {0};
    bool is_json;
    buf_clear(&world->text);
    enum err err =
        cdx_answer_new(world->archive, &world->clock.clock, CDX_ARCHIVE_ORG, bytes_of_string(query),
                       BYTES("http://localhost"), &answer, &is_json, &detail);
    if (err != ERR_OK) {
        return err;
    }
    for (int i = 0; i < CAPTURES_COUNT && err == ERR_OK && !cdx_answer_is_over(answer); i++) {
        err = cdx_answer_work(answer, &detail);
        struct bytes bytes = cdx_answer_bytes(answer);
        buf_put(&world->text, bytes);
        cdx_answer_consume(answer, bytes.size);
        clock_manual_advance(&world->clock, late_us);
    }
    assert_true(err != ERR_OK || cdx_answer_is_over(answer));
    cdx_answer_free(answer);
    return err;
}

static size_t count_lines(struct bytes text) {
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) {
        count += text.data[i] == '\n';
    }
    return count;
}

static void volumes_are_one_list(void **state) {
    struct world *world = *state;
    assert_int_equal(ask(world, "url=*&fl=urlkey,timestamp", 0), ERR_OK);
    assert_int_equal(count_lines(buf_bytes(&world->text)), CAPTURES_COUNT);
    struct bytes rest = buf_bytes(&world->text);
    struct bytes before = BYTES("");
    struct bytes line;
    while (bytes_split(&rest, '\n', &line) && line.size > 0) {
        assert_true(bytes_compare(before, line) <= 0);
        before = line;
    }
}

/* Resume until there is no key; the lines without the keys go to *out. */
static void resume(struct world *world, const char *query, uint64_t late_us, struct buf *out) {
    char text[1024];
    snprintf(text, sizeof text, "%s&showResumeKey=true", query);
    for (int i = 0; i < CAPTURES_COUNT + 1; i++) {
        assert_int_equal(ask(world, text, late_us), ERR_OK);
        struct bytes all = buf_bytes(&world->text);
        size_t end = bytes_starts_with(all, BYTES("\n")) ? 0 : bytes_find(all, BYTES("\n\n"));
        bool is_last = end == all.size;
        buf_put(out, bytes_slice(all, 0, is_last ? end : end == 0 ? 0 : end + 1));
        if (is_last) {
            return;
        }
        struct bytes key = bytes_trim(bytes_skip(all, end));
        snprintf(text, sizeof text, "%s&showResumeKey=true&resumeKey=%.*s", query, BYTES_ARG(key));
    }
    fail_msg("it does not end");
}

static void resumed_lists_equal_whole_ones(void **state) {
    struct world *world = *state;
    static const char *const queries[] = {
        "url=*",
        "url=*&sort=reverse",
        "url=*&collapse=urlkey",
        "url=*&collapse=digest&collapse=timestamp:13&sort=reverse",
        "url=*&collapse=timestamp:13&collapse=urlkey:16",
        "url=*&filter=original:.*7",
    };
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        struct buf whole;
        struct buf parts;
        char query[256];
        buf_init(&whole, TEXT_SIZE_MAX);
        buf_init(&parts, TEXT_SIZE_MAX);
        assert_int_equal(ask(world, queries[i], 0), ERR_OK);
        buf_put(&whole, buf_bytes(&world->text));
        snprintf(query, sizeof query, "%s&limit=7", queries[i]);
        resume(world, query, 0, &parts);
        assert_int_equal(whole.size, parts.size);
        assert_memory_equal(whole.data, parts.data, whole.size);
        buf_done(&whole);
        buf_done(&parts);
    }
}

/* An answer that takes too long ends with its key, where there may be one; nothing is lost. */
static void late_answers_can_be_resumed(void **state) {
    struct world *world = *state;
    struct buf whole;
    struct buf parts;
    buf_init(&whole, TEXT_SIZE_MAX);
    buf_init(&parts, TEXT_SIZE_MAX);
    assert_int_equal(ask(world, "url=*&collapse=digest", 0), ERR_OK);
    buf_put(&whole, buf_bytes(&world->text));
    resume(world, "url=*&collapse=digest", 2 * (uint64_t)MINUTE_US, &parts);
    assert_int_equal(whole.size, parts.size);
    assert_memory_equal(whole.data, parts.data, whole.size);
    buf_done(&whole);
    buf_done(&parts);
    assert_int_equal(ask(world, "url=*", 2 * (uint64_t)MINUTE_US), ERR_TIMEOUT);
    assert_int_equal(ask(world, "url=example.org/1", 2 * (uint64_t)MINUTE_US), ERR_OK);
}

static void pieces_are_bounded(void **state) {
    struct world *world = *state;
    struct cdx_answer *answer;
    bool is_json;
    size_t pieces_count = 0;
    assert_int_equal(cdx_answer_new(world->archive, &clock_system, CDX_PYWB, BYTES("url=*"),
                                    BYTES("http://localhost"), &answer, &is_json, NULL),
                     ERR_OK);
    while (!cdx_answer_is_over(answer)) {
        assert_int_equal(cdx_answer_work(answer, NULL), ERR_OK);
        size_t size = cdx_answer_bytes(answer).size;
        assert_true(size < 64 << 10);
        cdx_answer_consume(answer, size);
        pieces_count++;
    }
    assert_true(pieces_count > 3);
    cdx_answer_free(answer);
}

static void the_archive_may_be_asked_by_itself(void **state) {
    struct world *world = *state;
    assert_int_equal(ask(world, "url=example.org/1&limit=-1", 0), ERR_OK);
    assert_int_equal(count_lines(buf_bytes(&world->text)), 1);
    assert_int_equal(ask(world, "url=*&limit=-899", 0), ERR_OK);
    assert_int_equal(count_lines(buf_bytes(&world->text)), CAPTURES_COUNT - 1);
    assert_int_equal(ask(world, "url=*&showNumPages=1&pageSize=100", 0), ERR_OK);
    assert_bytes_equal(buf_bytes(&world->text), BYTES("9\n"));
    assert_int_equal(ask(world, "url=http://", 0), ERR_INVALID);
    assert_int_equal(ask(world, "url=*&resumeKey=x", 0), ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_have_defaults),
        cmocka_unit_test(values_are_decoded),
        cmocka_unit_test(limits_may_be_negative_in_one_dialect),
        cmocka_unit_test(filters_of_both_dialects),
        cmocka_unit_test(regular_expressions_have_bounds),
        cmocka_unit_test(volumes_are_one_list),
        cmocka_unit_test(resumed_lists_equal_whole_ones),
        cmocka_unit_test(late_answers_can_be_resumed),
        cmocka_unit_test(pieces_are_bounded),
        cmocka_unit_test(the_archive_may_be_asked_by_itself),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
