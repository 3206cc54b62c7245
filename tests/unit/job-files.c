/* job-files: jobs as files, and wishes for them in JSON. */
#include "node/crawl/job_files.h"

#include <jansson.h>
#include <sys/stat.h>

#include "node/node_file.h"
#include "scratch.h"
#include "unit.h"

static void a_job_is_added_listed_paused_and_removed(void **state) {
    char name[JOB_NAME_SIZE_MAX];
    struct err_detail detail = {0};
    struct arena arena;
    struct job_view *jobs;
    struct job_files_live live = {0};
    struct bytes wish =
        BYTES("{\"urls\":\"https://example.org/\\n\\nhttps://b.example/\",\"scope\":\"page\","
              "\"period\":\"2 h\",\"depth\":3,\"exclude\":[\"*.zip\",\"a\\\\\\\"b\"],\"forms\":true}");
    arena_init(&arena, 1 << 20);
    assert_int_equal(job_files_add(*state, wish, name, &detail), ERR_OK);
    assert_int_equal(job_files_list(*state, &live, &arena, &jobs), 1);
    assert_string_equal(jobs[0].name, name);
    assert_string_equal(jobs[0].state, "new");
    assert_string_equal(jobs[0].scope, "page");
    assert_int_equal(jobs[0].depth, 3);
    assert_int_equal(jobs[0].period_s, 7200);
    assert_int_equal(jobs[0].seeds_count, 2);
    assert_bytes_equal(jobs[0].seeds[1], BYTES("https://b.example/"));
    assert_int_equal(job_files_pause(*state, bytes_of_string(name), true, &detail), ERR_OK);
    assert_int_equal(job_files_list(*state, &live, &arena, &jobs), 1);
    assert_string_equal(jobs[0].state, "paused");
    assert_int_equal(job_files_remove(*state, bytes_of_string(name), &detail), ERR_OK);
    assert_int_equal(job_files_remove(*state, bytes_of_string(name), &detail), ERR_NOT_FOUND);
    assert_int_equal(job_files_list(*state, &live, &arena, &jobs), 0);
    arena_done(&arena);
}

static void write_state(const char *directory, const char *name, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/jobs/%s/state.json", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* All members of an object, in JSON that a stranger's parser takes. */
static void expect_json(const struct job_view *job, const char *name, int stored) {
    struct buf out;
    struct json json;
    buf_init(&out, 1 << 16);
    json_init(&json, &out);
    job_view_put(job, &json);
    json_t *object = json_loadb((const char *)out.data, out.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "job")), name);
    assert_int_equal(json_integer_value(json_object_get(object, "stored")), stored);
    assert_int_equal(json_integer_value(json_object_get(object, "seeds_count")), 1);
    json_decref(object);
    buf_done(&out);
}

static void what_the_crawl_says_wins_over_the_file(void **state) {
    char name[JOB_NAME_SIZE_MAX];
    struct err_detail detail = {0};
    struct arena arena;
    struct job_view job;
    struct job_progress progress[2] = {
        {.name = "other"}, {.state = CAMPAIGN_RUNNING, .stored_count = 7, .text = BYTES("{\"stored\":7}")}};
    struct job_files_live live = {progress, 2};
    arena_init(&arena, 1 << 20);
    assert_int_equal(job_files_add(*state, BYTES("{\"url\":\"example.org\"}"), name, &detail), ERR_OK);
    write_state(*state, name, "{\"job\":\"x\",\"state\":\"complete\",\"stored\":5,\"known\":9}");
    assert_int_equal(job_files_get(*state, bytes_of_string(name), &live, &arena, &job, &detail), ERR_OK);
    assert_string_equal(job.state, "complete");
    assert_int_equal(job.known_count, 9);
    expect_json(&job, name, 5);
    snprintf(progress[1].name, sizeof progress[1].name, "%s", name);
    assert_int_equal(job_files_get(*state, bytes_of_string(name), &live, &arena, &job, &detail), ERR_OK);
    assert_string_equal(job.state, "running");
    expect_json(&job, name, 7);
    assert_int_equal(job_files_get(*state, BYTES("../x"), &live, &arena, &job, &detail), ERR_NOT_FOUND);
    arena_done(&arena);
}

static void a_wish_that_is_wrong_names_its_key(void **state) {
    (void)state;
    static const struct {
        const char *wish;
        const char *word;
    } cases[] = {
        {"", "JSON"},
        {"nonsense", "JSON"},
        {"[]", "object"},
        {"{}", "URL"},
        {"{\"url\":\"https://a.example/\",\"scope\":\"world\"}", "scope: "},
        {"{\"url\":\"https://a.example/\",\"speed\":1}", "speed"},
        {"{\"url\":\"https://a.example/\",\"scope\":null}", "scope"},
        {"{\"url\":\"https://a.example/\",\"depth\":1.5}", "depth"},
        {"{\"url\":\"https://a.example/\",\"period\":\"x\\nscope = any\"}", "period"},
        {"{\"url\":\"https://a.example/\",\"[x]\\nscope\":1}", "setting"},
        {"{\"url\":\"https://a.example/\",\"include\":\"re:((\"}", "include: "},
        {"{\"urls\":[[\"https://a.example/\"]]}", "urls"},
        {"{\"url\":\"ftp://b.example/\"}", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena;
        struct job job;
        struct err_detail detail = {0};
        arena_init(&arena, 1 << 20);
        if (job_wish_read(bytes_of_string(cases[i].wish), &arena, &job, &detail) != ERR_INVALID ||
            strstr(detail.text, cases[i].word) == NULL) {
            fail_msg("%s: %s", cases[i].wish, detail.text);
        }
        arena_done(&arena);
    }
}

static void the_file_of_a_node_tells_where_it_is(void **state) {
    struct node_file file;
    struct err_detail detail = {0};
    struct address any = address_ipv4(0, 0, 0, 0, 8080);
    struct address here = address_ipv4(127, 0, 0, 2, 99);
    assert_int_equal(node_file_read(*state, &file, &detail), ERR_NOT_FOUND);
    assert_int_equal(node_file_write(*state, &any, 1700000000000000, &detail), ERR_OK);
    assert_int_equal(node_file_read(*state, &file, &detail), ERR_OK);
    assert_string_equal(file.url, "http://127.0.0.1:8080");
    assert_int_equal(file.pid, getpid());
    assert_int_equal(file.started_us, 1700000000000000);
    assert_int_equal(node_file_write(*state, &here, 1, &detail), ERR_OK);
    assert_int_equal(node_file_read(*state, &file, &detail), ERR_OK);
    assert_string_equal(file.url, "http://127.0.0.2:99");
    node_file_remove(*state);
    assert_int_equal(node_file_read(*state, &file, &detail), ERR_NOT_FOUND);
    assert_int_equal(node_file_write("/nowhere/at/all", &here, 1, &detail), ERR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_is_added_listed_paused_and_removed, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(what_the_crawl_says_wins_over_the_file, scratch_make, scratch_remove),
        cmocka_unit_test(a_wish_that_is_wrong_names_its_key),
        cmocka_unit_test_setup_teardown(the_file_of_a_node_tells_where_it_is, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
