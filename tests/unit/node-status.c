/* node_status: one struct, shown as JSON and for Prometheus. */
#include "replay/admin/node_status.h"

#include <jansson.h>
#include <string.h>

#include "replay/admin/metrics.h"
#include "unit.h"

struct fixture {
    struct node_status status;
    struct node_status_volume volumes[2];
    struct node_status_sentence sentence;
    struct buf out;
};

static void begin(struct fixture *fixture) {
    *fixture = (struct fixture){
        .volumes = {{.volume = {.number = 1, .place = "/a"},
                     .has_stat = true,
                     .stat = {.captures_count = 7},
                     .has_disk = true,
                     .free_size = 9},
                    {.volume = {.number = 2, .place = "http://b/", .is_remote = true, .err = ERR_NO_SPACE}}},
        .sentence = {.about = "example.org", .text = "said \"429\""},
        .status = {.title = "An archive",
                   .numbers = {{"uptime_seconds", 1.25, 1},
                               {"crawl.jobs", 3, 0},
                               {"crawl.documents", 12345678901, 0},
                               {"store.bytes", 4503599627370497, 0},
                               {"process.cpu_seconds", 0, 2}},
                   .numbers_count = 5,
                   .hold = "flowing",
                   .volumes_count = 2,
                   .waiting_count = 1,
                   .pages = {{.name = BYTES("web"),
                              .stat = {.statuses = {[2] = 5},
                                       .delays = {1, 3, [HTTP_DELAYS_COUNT] = 1},
                                       .delay_sum_us = 500000}}},
                   .pages_count = 1},
    };
    fixture->status.volumes = fixture->volumes;
    fixture->status.waiting = &fixture->sentence;
    strcpy(fixture->volumes[1].volume.reason, "its disk is full");
    buf_init(&fixture->out, 1 << 16);
}

static const json_t *member(const json_t *object, const char *section, const char *name) {
    return json_object_get(json_object_get(object, section), name);
}

static void every_number_stands_where_its_path_says(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    node_status_put(&fixture.status, &fixture.out);
    json_t *parsed = json_loadb((const char *)fixture.out.data, fixture.out.size, 0, NULL);
    assert_non_null(parsed);
    assert_true(json_is_real(json_object_get(parsed, "uptime_seconds")));
    assert_int_equal(json_integer_value(member(parsed, "crawl", "jobs")), 3);
    assert_int_equal(json_integer_value(member(parsed, "store", "bytes")), 4503599627370497);
    assert_true(json_is_real(member(parsed, "process", "cpu_seconds")));
    assert_true(json_is_false(member(parsed, "search", "enabled")));
    assert_null(member(parsed, "search", "error"));
    const json_t *waiting = json_array_get(member(parsed, "crawl", "waiting"), 0);
    assert_string_equal(json_string_value(json_object_get(waiting, "why")), "said \"429\"");
    json_decref(parsed);
    buf_done(&fixture.out);
}

static void a_volume_says_what_is_known_of_it(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    node_status_put(&fixture.status, &fixture.out);
    json_t *parsed = json_loadb((const char *)fixture.out.data, fixture.out.size, 0, NULL);
    const json_t *good = json_array_get(member(parsed, "store", "volumes"), 0);
    const json_t *bad = json_array_get(member(parsed, "store", "volumes"), 1);
    assert_string_equal(json_string_value(json_object_get(good, "state")), "up");
    assert_int_equal(json_integer_value(json_object_get(good, "captures")), 7);
    assert_string_equal(json_string_value(json_object_get(bad, "state")), "full");
    assert_string_equal(json_string_value(json_object_get(bad, "reason")), "its disk is full");
    assert_null(json_object_get(bad, "captures"));
    assert_null(json_object_get(bad, "free_bytes"));
    json_decref(parsed);
    buf_done(&fixture.out);
}

static void prometheus_gets_the_same_numbers(void **state) {
    (void)state;
    static const char *const lines[] = {
        "\nmnemon_crawl_jobs 3\n",
        "# TYPE mnemon_crawl_documents_total counter\nmnemon_crawl_documents_total 12345678901\n",
        "\nmnemon_process_cpu_seconds_total 0.00\n",
        "\nmnemon_volume_up{volume=\"1\"} 1\nmnemon_volume_up{volume=\"2\"} 0\n",
        "\nmnemon_volume_captures{volume=\"1\"} 7\n# HELP",
        "\nmnemon_http_answers_total{page=\"web\",status=\"2xx\"} 5\n# HELP",
        "# TYPE mnemon_http_answer_seconds histogram\n",
        "\nmnemon_http_answer_seconds_bucket{page=\"web\",le=\"0.0001\"} 1\n",
        "_bucket{page=\"web\",le=\"+Inf\"} 5\n",
        "mnemon_http_answer_seconds_sum{page=\"web\"} 0.500000\n",
        "mnemon_http_answer_seconds_count{page=\"web\"} 5\n",
    };
    struct fixture fixture;
    begin(&fixture);
    metrics_put(&fixture.status, &fixture.out);
    const char *text = buf_string(&fixture.out);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (strstr(text, lines[i]) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", lines[i], text);
        }
    }
    assert_null(strstr(text, "mnemon_search")); /* a number that is not there is not 0 */
    buf_done(&fixture.out);
}

static void rows_are_written_metric_by_metric_with_labels_escaped(void **state) {
    static const struct metrics_column columns[] = {{"thing_size", "How large."},
                                                    {"thing_used_total", "How often."}};
    static const struct metrics_row rows[] = {{.label = "a\"b\\c\nd", .values = {1, 2}},
                                              {.label = "", .values = {3, UINT64_MAX}}};
    struct buf out;
    (void)state;
    buf_init(&out, 4096);
    metrics_put_rows(&out, "thing", columns, 2, rows, 0);
    assert_int_equal(out.size, 0); /* a name without a sample would be no metric */
    metrics_put_rows(&out, "thing", columns, 2, rows, 2);
    assert_string_equal(buf_string(&out), "# HELP mnemon_thing_size How large.\n"
                                          "# TYPE mnemon_thing_size gauge\n"
                                          "mnemon_thing_size{thing=\"a\\\"b\\\\c\\nd\"} 1\n"
                                          "mnemon_thing_size{thing=\"\"} 3\n"
                                          "# HELP mnemon_thing_used_total How often.\n"
                                          "# TYPE mnemon_thing_used_total counter\n"
                                          "mnemon_thing_used_total{thing=\"a\\\"b\\\\c\\nd\"} 2\n"
                                          "mnemon_thing_used_total{thing=\"\"} 18446744073709551615\n");
    buf_done(&out);
}

static void a_node_in_no_ring_says_nothing_of_one(void **state) {
    struct ring_view ring = {.text = NULL};
    struct buf out;
    (void)state;
    buf_init(&out, 1 << 16);
    metrics_put_ring(&ring, &out);
    assert_int_equal(out.size, 0);
    ring = (struct ring_view){.text = "joining", .nodes_count = 1};
    metrics_put_ring(&ring, &out);
    const char *text = buf_string(&out);
    assert_non_null(strstr(text, "\nmnemon_ring_member 0\n"));
    assert_null(strstr(text, "mnemon_ring_captures ")); /* not begun: what is not known is not 0 */
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_stands_where_its_path_says),
        cmocka_unit_test(a_volume_says_what_is_known_of_it),
        cmocka_unit_test(prometheus_gets_the_same_numbers),
        cmocka_unit_test(rows_are_written_metric_by_metric_with_labels_escaped),
        cmocka_unit_test(a_node_in_no_ring_says_nothing_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
