/*
 * warc-data - the files of others: every one reads, or is refused for the right reason at the right place.
 *
 * The data is not part of the project (see MNEMON_TEST_DATA).
 */
#include "cdxj-indexer.h"
#include "warc-fixture.h"

enum { PATH_SIZE_MAX = 4096 };

/* Traces as fixture_trace() makes them: what the file holds, in order. */
static const struct {
    const char *name;
    const char *trace;
} files[] = {
    {"20130729-heritrix-original.warc.gz", "0+13526 response -=\n"},
    {"20130729-heritrix-revisit-with-http-headers.warc.gz", "0+521 revisit ->\n"},
    {"20141124-heritrix-server-not-modified.warc.gz", "0+321 revisit ->\n"},
    {"20141129-heritrix-original.warc.gz", "0+13810 response -=\n"},
    {"20141129-heritrix-revisit-with-http-headers-and-new-warc-headers.warc.gz", "0+628 revisit ->\n"},
    /* lengths -1, -1 and "abc" */
    {"bad.arc", "! invalid 58\n"
                "! invalid 198\n"
                "202+60 response --\n"
                "! invalid 326\n"},
    /* one gzip member for all; the revisit states a wrong block digest */
    {"example-bad-non-chunked.warc.gz", "0+0 warcinfo --\n"
                                        "0+0 warcinfo --\n"
                                        "0+0 response ==\n"
                                        "0+0 request --\n"
                                        "0+0 revisit !>\n"
                                        "0+0 request --\n"},
    /* one gzip member for all */
    {"example-bad.warc.gz.bad", "0+0 warcinfo --\n"
                                "0+0 response -=\n"
                                "0+0 request --\n"
                                "0+0 revisit ->\n"
                                "0+0 request --\n"
                                "0+0 response -=\n"},
    /* digests in base64; the first payload digest has a 1, which base32 has not */
    {"example-digest.warc", "0+922 request =~\n"
                            "922+918 request ==\n"
                            "1840+918 request ==\n"
                            "2758+914 request ==\n"},
    /* the payload digest is of the chunked body */
    {"example-iana.org-chunked.warc", "0+405 warcinfo --\n"
                                      "405+7974 response ==\n"
                                      "8379+452 request =-\n"},
    {"example-resource.warc.gz", "0+361 warcinfo --\n"
                                 "361+441 warcinfo --\n"
                                 "802+977 resource ==\n"},
    /* digest in hexadecimal */
    {"example-space-in-target-uri.warc.gz", "0+241 warcinfo --\n"
                                            "241+342 resource =-\n"},
    /* 12 bytes shorter than its line says */
    {"example-space-in-url.arc", "0+151 warcinfo --\n"
                                 "! truncated 151\n"},
    /* Content-Length is 2 too small */
    {"example-trunc.warc", "0+488 warcinfo --\n"
                           "488+709 warcinfo --\n"
                           "1197+1363 response !!\n"
                           "! invalid 2560\n"
                           "2566+804 request --\n"},
    /* <> around URIs */
    {"example-wget-bad-target-uri.warc.gz", "0+410 warcinfo =-\n"
                                            "410+414 request =-\n"
                                            "824+1154 response ==\n"
                                            "1978+317 metadata =-\n"
                                            "2295+386 resource =-\n"
                                            "2681+586 resource =-\n"},
    /* a record in three members; its block digest is wrong */
    {"example-wrong-chunks.warc.gz", "0+1130 response !=\n"
                                     "1130+445 request ==\n"},
    {"example.arc", "0+151 warcinfo --\n"
                    "151+1657 response --\n"},
    {"example.arc.gz", "0+171 warcinfo --\n"
                       "171+856 response --\n"},
    {"example.warc", "0+488 warcinfo --\n"
                     "488+709 warcinfo --\n"
                     "1197+1369 response ==\n"
                     "2566+804 request --\n"
                     "3370+946 revisit =>\n"
                     "4316+804 request --\n"},
    {"example.warc.gz", "0+353 warcinfo --\n"
                        "353+431 warcinfo --\n"
                        "784+1228 response ==\n"
                        "2012+609 request ==\n"
                        "2621+586 revisit =>\n"
                        "3207+609 request ==\n"},
    {"post-test.warc.gz", "0+720 response ==\n"
                          "720+476 request =-\n"
                          "1196+723 response ==\n"
                          "1919+476 request =-\n"
                          "2395+723 response ==\n"
                          "3118+475 request =-\n"},
};

static const char *data_path(const char *name, char path[PATH_SIZE_MAX]) {
    const char *data = getenv("MNEMON_TEST_DATA");
    if (data == NULL) {
        snprintf(path, PATH_SIZE_MAX, MNEMON_SOURCE_ROOT "/../shared/data/warc/%s", name);
    } else {
        snprintf(path, PATH_SIZE_MAX, "%s/warc/%s", data, name);
    }
    return path;
}

/* Skips the test where there is no data. */
static void open_data(struct source_file *file, const char *name) {
    char path[PATH_SIZE_MAX];
    struct err_detail detail;
    if (source_file_open(file, data_path(name, path), &detail) != ERR_OK) {
        print_message("skipped: no test data (%s)\n", detail.text);
        skip();
    }
}

static void every_file_reads_or_is_refused_for_its_reason(void **state) {
    (void)state;
    struct buf trace;
    struct source_file file;
    buf_init(&trace, 1 << 20);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        open_data(&file, files[i].name);
        buf_clear(&trace);
        fixture_trace(&file.source, NULL, &trace);
        source_file_done(&file);
        if (strcmp(buf_string(&trace), files[i].trace) != 0) {
            fail_msg("%s:\n%s", files[i].name, buf_string(&trace));
        }
    }
    buf_done(&trace);
}

static void iana_has_the_records_it_has(void **state) {
    (void)state;
    struct buf trace;
    struct source_file file;
    buf_init(&trace, 1 << 20);
    open_data(&file, "iana.warc.gz");
    fixture_trace(&file.source, NULL, &trace);
    source_file_done(&file);
    static const struct {
        const char *what;
        size_t count;
    } expected[] = {
        {" warcinfo --\n", 1}, {" response -=\n", 48}, {" revisit ->\n", 123}, {" request --\n", 171},
        {"\n", 343},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        size_t count = 0;
        for (const char *at = buf_string(&trace); (at = strstr(at, expected[i].what)) != NULL; at++) {
            count++;
        }
        assert_int_equal(count, expected[i].count);
    }
    buf_done(&trace);
}

static int compare_lines(const void *a, const void *b) {
    const struct bytes *left = a;
    const struct bytes *right = b;
    return bytes_compare(*left, *right);
}

/* Sort the lines of the text in place, as an index is sorted. */
static void sort_lines(struct buf *text, struct bytes *lines, size_t lines_max, size_t *ret_count) {
    struct bytes rest = buf_bytes(text);
    size_t count = 0;
    struct bytes line;
    while (bytes_split(&rest, '\n', &line)) {
        if (line.size > 0) {
            assert_true(count < lines_max);
            lines[count++] = line;
        }
    }
    qsort(lines, count, sizeof *lines, compare_lines);
    *ret_count = count;
}

static void read_text(const char *name, struct buf *out) {
    struct source_file file;
    uint8_t piece[4096];
    size_t got = 0;
    open_data(&file, name);
    do {
        assert_int_equal(source_read(&file.source, piece, sizeof piece, &got, NULL), ERR_OK);
        buf_put(out, bytes_of(piece, got));
    } while (got > 0);
    source_file_done(&file);
}

static void index_file(const char *name, struct buf *out) {
    struct cdxj_indexer *indexer = malloc(sizeof *indexer);
    struct source_file file;
    struct err_detail detail;
    open_data(&file, name);
    assert_non_null(indexer);
    assert_int_equal(cdxj_indexer_init(indexer, NULL), ERR_OK);
    cdxj_indexer_open(indexer, &file.source, bytes_of_string(name));
    for (bool found = true; found;) {
        assert_int_equal(cdxj_indexer_next(indexer, &found, &detail), ERR_OK);
        if (found) {
            assert_int_equal(cdxj_put(out, &indexer->entry), ERR_OK);
        }
    }
    cdxj_indexer_done(indexer);
    free(indexer);
    source_file_done(&file);
}

/* Not one difference, so there is no list of exceptions. */
static void iana_indexes_to_the_very_lines_of_its_cdxj(void **state) {
    (void)state;
    enum { LINES_MAX = 400 };
    static struct bytes got_lines[LINES_MAX];
    static struct bytes wanted_lines[LINES_MAX];
    size_t got_count;
    size_t wanted_count;
    struct buf got;
    struct buf wanted;
    buf_init(&got, 1 << 20);
    buf_init(&wanted, 1 << 20);
    read_text("iana.cdxj", &wanted);
    index_file("iana.warc.gz", &got);
    sort_lines(&got, got_lines, LINES_MAX, &got_count);
    sort_lines(&wanted, wanted_lines, LINES_MAX, &wanted_count);
    assert_int_equal(got_count, wanted_count);
    for (size_t i = 0; i < wanted_count; i++) {
        assert_bytes_equal(got_lines[i], wanted_lines[i]);
    }
    buf_done(&got);
    buf_done(&wanted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_reads_or_is_refused_for_its_reason),
        cmocka_unit_test(iana_has_the_records_it_has),
        cmocka_unit_test(iana_indexes_to_the_very_lines_of_its_cdxj),
    };
    return cmocka_run_group_tests_name("warc-data", tests, NULL, NULL);
}
