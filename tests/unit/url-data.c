/*
 * url-data - url/ against data made by others: every case of the web-platform-tests urltestdata.json and
 * toascii.json, and every key of an index that pywb made.
 *
 * The data is not part of the project (see MNEMON_TEST_DATA). Cases that we fail on purpose stand in
 * url-exceptions.txt with their reason; one that passes again must leave that file.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "exceptions.h"
#include "unit.h"
#include "web/url/canon.h"
#include "web/url/surt.h"
#include "web/url/url.h"

enum { PATH_SIZE_MAX = 4096, LINE_SIZE_MAX = 4096, REPORT_SIZE_MAX = 1 << 16 };

struct run {
    const char *file;
    struct exceptions exceptions;
    struct buf failures; /* one line each */
    size_t cases_count;
};

/* Note the outcome of one case; `what` is NULL where it passed. */
static void report(struct run *run, struct bytes input, const char *what, struct bytes want,
                   struct bytes got) {
    run->cases_count++;
    struct buf key;
    buf_init(&key, REPORT_SIZE_MAX);
    buf_put_format(&key, "%s\t", run->file);
    json_quote(&key, input);
    if (what != NULL && !exceptions_expect(&run->exceptions, buf_bytes(&key))) {
        buf_put_format(&run->failures, "  %.*s: %s is \"%.*s\", not \"%.*s\"\n", BYTES_ARG(buf_bytes(&key)),
                       what, BYTES_ARG(got), BYTES_ARG(want));
    }
    buf_done(&key);
}

static struct bytes text_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return bytes_of(json_string_value(value), json_string_length(value));
}

/* Compare a part with a member of the case; *what becomes the name where they differ. */
static void compare(const json_t *expected, const char *name, struct bytes got, const char **what,
                    struct bytes *ret_want, struct bytes *ret_got) {
    struct bytes want = text_of(expected, name);
    if (*what == NULL && !bytes_equal(want, got)) {
        *what = name;
        *ret_want = want;
        *ret_got = got;
    }
}

/* The members of a case are those of JavaScript's URL: with the ':', '?' and '#' that delimit them. */
static void compare_parts(struct run *run, const struct url *url, const json_t *expected) {
    struct buf text;
    buf_init(&text, REPORT_SIZE_MAX * 4);
    size_t ends[7]; /* parts that are built, one after the other, in text */
    buf_put(&text, url_scheme(url));
    buf_put_byte(&text, ':');
    ends[0] = text.size;
    buf_put(&text, url_host(url));
    size_t port_start = text.size;
    if (url->port != URL_PORT_NONE) {
        buf_put_format(&text, ":%d", url->port);
        port_start++;
    }
    ends[1] = text.size;
    if (url_query(url).size > 0) {
        buf_put_byte(&text, '?');
        buf_put(&text, url_query(url));
    }
    ends[2] = text.size;
    if (url_fragment(url).size > 0) {
        buf_put_byte(&text, '#');
        buf_put(&text, url_fragment(url));
    }
    ends[3] = text.size;
    url_put_origin(url, &text);
    assert_int_equal(text.err, ERR_OK);
    struct bytes built = buf_bytes(&text);
    const char *what = NULL;
    struct bytes want = {NULL, 0};
    struct bytes got = {NULL, 0};
    compare(expected, "href", url_href(url), &what, &want, &got);
    compare(expected, "protocol", bytes_slice(built, 0, ends[0]), &what, &want, &got);
    compare(expected, "username", url_username(url), &what, &want, &got);
    compare(expected, "password", url_password(url), &what, &want, &got);
    compare(expected, "host", bytes_slice(built, ends[0], ends[1]), &what, &want, &got);
    compare(expected, "hostname", url_host(url), &what, &want, &got);
    compare(expected, "port", bytes_slice(built, port_start, ends[1]), &what, &want, &got);
    compare(expected, "pathname", url_path(url), &what, &want, &got);
    compare(expected, "search", bytes_slice(built, ends[1], ends[2]), &what, &want, &got);
    compare(expected, "hash", bytes_slice(built, ends[2], ends[3]), &what, &want, &got);
    if (json_object_get(expected, "origin") != NULL) {
        compare(expected, "origin", bytes_slice(built, ends[3], text.size), &what, &want, &got);
    }
    report(run, text_of(expected, "input"), what, want, got);
    buf_done(&text);
}

/* The href of a URL is its own href. */
static void check_href_is_stable(const struct url *url) {
    struct url again;
    url_init(&again);
    assert_int_equal(url_parse(&again, url_href(url), NULL, NULL), ERR_OK);
    assert_bytes_equal(url_href(&again), url_href(url));
    url_done(&again);
}

static void run_url_case(struct run *run, const json_t *expected) {
    struct bytes input = text_of(expected, "input");
    struct url base;
    struct url url;
    url_init(&base);
    url_init(&url);
    bool has_base = json_is_string(json_object_get(expected, "base"));
    enum err err = ERR_OK;
    struct err_detail detail = {.text = ""};
    if (has_base) {
        err = url_parse(&base, text_of(expected, "base"), NULL, &detail);
    }
    if (err == ERR_OK) {
        err = url_parse(&url, input, has_base ? &base : NULL, &detail);
    }
    bool must_fail = json_is_true(json_object_get(expected, "failure"));
    if (err != ERR_OK) {
        assert_true(detail.text[0] != '\0');
        assert_true(detail.offset <= input.size);
        report(run, input, must_fail ? NULL : "the result", text_of(expected, "href"),
               bytes_of_string(detail.text));
    } else if (must_fail) {
        report(run, input, "the result", BYTES("failure"), url_href(&url));
    } else {
        compare_parts(run, &url, expected);
        check_href_is_stable(&url);
    }
    url_done(&url);
    url_done(&base);
}

/* Domain to ASCII is seen through the host of an https: URL, as web-platform-tests does it. */
static void run_toascii_case(struct run *run, const json_t *expected) {
    struct bytes input = text_of(expected, "input");
    struct buf text;
    buf_init(&text, URL_SIZE_MAX);
    buf_put_string(&text, "https://");
    buf_put(&text, input);
    buf_put_string(&text, "/x");
    struct url url;
    url_init(&url);
    bool must_fail = json_is_null(json_object_get(expected, "output"));
    enum err err = url_parse(&url, buf_bytes(&text), NULL, NULL);
    struct bytes want = must_fail ? (struct bytes){NULL, 0} : text_of(expected, "output");
    bool passed = (err != ERR_OK) == must_fail && (must_fail || bytes_equal(url_host(&url), want));
    report(run, input, passed ? NULL : "the host", want, url_host(&url));
    url_done(&url);
    buf_done(&text);
}

static void data_path(char path[PATH_SIZE_MAX], const char *file) {
    const char *folder = getenv("MNEMON_TEST_DATA");
    folder = folder != NULL ? folder : MNEMON_SOURCE_ROOT "/../shared/data";
    snprintf(path, PATH_SIZE_MAX, "%s/%s", folder, file);
}

static json_t *load_cases(const char *file) {
    char path[PATH_SIZE_MAX];
    data_path(path, file);
    json_t *cases = json_load_file(path, JSON_ALLOW_NUL, NULL);
    if (cases == NULL) {
        print_message("# skipped: no test data\n");
        skip();
    }
    return cases;
}

static void run_file(const char *file, void (*run_case)(struct run *run, const json_t *expected)) {
    json_t *cases = load_cases(file);
    struct run run = {.file = file};
    buf_init(&run.failures, REPORT_SIZE_MAX);
    exceptions_read(&run.exceptions, "url-exceptions.txt");
    size_t index;
    const json_t *expected;
    json_array_foreach(cases, index, expected) {
        if (json_is_object(expected)) {
            run_case(&run, expected);
        }
    }
    exceptions_put_unused(&run.exceptions, file, &run.failures);
    print_message("# %s: %zu cases\n", file, run.cases_count);
    if (run.failures.size > 0) {
        print_error("%s", buf_string(&run.failures));
        fail();
    }
    buf_done(&run.failures);
    json_decref(cases);
}

static void parses_every_case_of_urltestdata(void **state) {
    (void)state;
    run_file("url/urltestdata.json", run_url_case);
}

static void converts_every_domain_of_toascii(void **state) {
    (void)state;
    run_file("url/toascii.json", run_toascii_case);
}

/* canonical(canonical(x)) is canonical(x), and both have one SURT. */
static void check_canon_is_stable(struct bytes text) {
    struct canon first;
    struct canon second;
    struct buf keys[2];
    canon_init(&first);
    canon_init(&second);
    buf_init(&keys[0], REPORT_SIZE_MAX);
    buf_init(&keys[1], REPORT_SIZE_MAX);
    struct err_detail detail = {.text = ""};
    if (canon_run(&first, text, &detail) == ERR_OK) {
        assert_int_equal(canon_run(&second, canon_url(&first), NULL), ERR_OK);
        assert_bytes_equal(canon_url(&second), canon_url(&first));
        surt_put(&keys[0], &first);
        surt_put(&keys[1], &second);
        assert_bytes_equal(buf_bytes(&keys[0]), buf_bytes(&keys[1]));
    } else {
        assert_true(detail.text[0] != '\0');
    }
    buf_done(&keys[0]);
    buf_done(&keys[1]);
    canon_done(&first);
    canon_done(&second);
}

static void canonical_form_is_stable_on_urltestdata(void **state) {
    (void)state;
    json_t *cases = load_cases("url/urltestdata.json");
    size_t index;
    const json_t *expected;
    json_array_foreach(cases, index, expected) {
        if (json_is_object(expected)) {
            check_canon_is_stable(text_of(expected, "input"));
            check_canon_is_stable(text_of(expected, "href"));
        }
    }
    json_decref(cases);
}

/* "SURT timestamp {json}": the url in the JSON must give the SURT, as it stands and as url_parse() has it. */
static void check_index_line(struct bytes line) {
    struct bytes rest = line;
    struct bytes key;
    struct bytes timestamp;
    assert_true(bytes_split(&rest, ' ', &key) && bytes_split(&rest, ' ', &timestamp));
    json_t *members = json_loadb((const char *)rest.data, rest.size, 0, NULL);
    assert_non_null(members);
    struct url url;
    struct canon canon;
    struct buf got;
    url_init(&url);
    canon_init(&canon);
    buf_init(&got, REPORT_SIZE_MAX);
    assert_int_equal(url_parse(&url, text_of(members, "url"), NULL, NULL), ERR_OK);
    const struct bytes texts[] = {text_of(members, "url"), url_href(&url)};
    for (size_t i = 0; i < 2; i++) {
        buf_clear(&got);
        assert_int_equal(canon_run(&canon, texts[i], NULL), ERR_OK);
        surt_put(&got, &canon);
        assert_bytes_equal(buf_bytes(&got), key);
    }
    buf_done(&got);
    canon_done(&canon);
    url_done(&url);
    json_decref(members);
}

static void agrees_with_every_key_of_an_index_by_pywb(void **state) {
    (void)state;
    char path[PATH_SIZE_MAX];
    data_path(path, "warc/iana.cdxj");
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        print_message("# skipped: no test data\n");
        skip();
    }
    char line[LINE_SIZE_MAX];
    size_t lines_count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        check_index_line(bytes_trim(bytes_of_string(line)));
        lines_count++;
    }
    fclose(file);
    print_message("# iana.cdxj: %zu lines\n", lines_count);
    assert_true(lines_count > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_every_case_of_urltestdata),
        cmocka_unit_test(converts_every_domain_of_toascii),
        cmocka_unit_test(canonical_form_is_stable_on_urltestdata),
        cmocka_unit_test(agrees_with_every_key_of_an_index_by_pywb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
