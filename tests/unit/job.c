#include "crawl/engine/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "crawl/fetch/logins.h"
#include "unit.h"

enum { ARENA_SIZE = 1 << 20 };

static struct job job_of(struct arena *arena, const char *seeds) {
    struct job job = {.depth = JOB_DEPTH_ANY, .period_us = 1000000};
    struct err_detail detail;
    assert_int_equal(job_add_seeds(&job, bytes_of_string(seeds), arena, &detail), ERR_OK);
    return job;
}

static void seeds_are_normalised(void **state) {
    (void)state;
    struct arena arena;
    arena_init(&arena, ARENA_SIZE);
    struct job job = job_of(&arena, "# list\n\nEXAMPLE.org\n  http://a.example/x#y \r\n//b.example/z?q\n");
    assert_int_equal(job.seeds.count, 3);
    assert_bytes_equal(job.seeds.items[0], BYTES("https://example.org/"));
    assert_bytes_equal(job.seeds.items[1], BYTES("http://a.example/x"));
    assert_bytes_equal(job.seeds.items[2], BYTES("https://b.example/z?q"));
    arena_done(&arena);
}

static void seeds_have_no_user_and_no_password(void **state) {
    (void)state;
    char names[2][JOB_NAME_SIZE_MAX];
    struct arena arena;
    struct logins logins;
    struct err_detail detail = {0};
    struct bytes text = BYTES("http://user:hushhush@a.example/x\nhttp://a.example/y\n");
    arena_init(&arena, ARENA_SIZE);
    logins_init(&logins);
    struct job dropped = job_of(&arena, "http://user:hushhush@a.example/x\nhttp://a.example/y\n");
    struct job taken = {.depth = JOB_DEPTH_ANY};
    struct job refused = {0};
    assert_int_equal(job_add_seeds_of_person(&taken, text, &logins, &arena, &detail), ERR_OK);
    assert_int_equal(logins.count, 1);
    assert_bytes_equal(dropped.seeds.items[0], BYTES("http://a.example/x"));
    assert_bytes_equal(taken.seeds.items[0], BYTES("http://a.example/x"));
    job_name(&dropped, names[0]);
    job_name(&taken, names[1]);
    assert_string_equal(names[0], names[1]);
    assert_int_equal(job_add_seeds_of_person(&refused, text, NULL, &arena, &detail), ERR_INVALID);
    assert_null(strstr(detail.text, "hushhush"));
    assert_non_null(strstr(detail.text, "mnemon archive"));
    assert_int_equal(job_add_seeds(&refused, BYTES("http://user:hush/hush@a:x/"), &arena, &detail),
                     ERR_INVALID);
    assert_null(strstr(detail.text, "hush"));
    logins_done(&logins);
    arena_done(&arena);
}

static void what_is_no_web_url_is_refused_with_its_line(void **state) {
    (void)state;
    static const char *const bad[] = {"ok.example\nftp://x/", "ok.example\nhttp://",
                                      "ok.example\nhttp://a b/"};
    for (size_t i = 0; i < 3; i++) {
        struct arena arena;
        struct job job = {0};
        struct err_detail detail = {0};
        arena_init(&arena, ARENA_SIZE);
        assert_int_equal(job_add_seeds(&job, bytes_of_string(bad[i]), &arena, &detail), ERR_INVALID);
        assert_int_equal(detail.line, 2);
        arena_done(&arena);
    }
}

static void the_name_follows_from_what_belongs_to_the_job(void **state) {
    (void)state;
    char names[5][JOB_NAME_SIZE_MAX];
    struct arena arena;
    arena_init(&arena, ARENA_SIZE);
    struct job job = job_of(&arena, "https://www.example.org/a");
    job_name(&job, names[0]);
    job.urls_max = 7; /* how far a run goes is not part of it */
    job_name(&job, names[1]);
    assert_string_equal(names[0], names[1]);
    assert_true(bytes_starts_with(bytes_of_string(names[0]), BYTES("www.example.org-")));
    assert_true(job_name_is_valid(bytes_of_string(names[0])));
    job.scope = 3;
    job_name(&job, names[2]);
    job.depth = 3;
    job_name(&job, names[3]);
    struct bytes pattern = BYTES("*.pdf");
    job.exclude = (struct config_list){.items = &pattern, .count = 1};
    job_name(&job, names[4]);
    for (size_t i = 2; i < 5; i++) {
        assert_string_not_equal(names[i], names[i - 1]);
    }
    struct job long_job =
        job_of(&arena, "https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbb"
                       "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.example/");
    job_name(&long_job, names[0]);
    assert_true(job_name_is_valid(bytes_of_string(names[0])));
    struct job odd = job_of(&arena, "http://[::1]:8080/");
    job_name(&odd, names[0]);
    assert_true(job_name_is_valid(bytes_of_string(names[0])));
    arena_done(&arena);
}

static void names_that_lead_elsewhere_are_not_valid(void **state) {
    (void)state;
    static const char *const bad[] = {"", ".", "..", ".hidden", "a/b", "A", "a b", "a\\b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(job_name_is_valid(bytes_of_string(bad[i])));
    }
}

static void what_is_written_is_read_back(void **state) {
    (void)state;
    char directory[] = "/tmp/mnemon-job-XXXXXX";
    char path[64];
    struct arena arena;
    struct job back;
    struct err_detail detail = {0};
    arena_init(&arena, ARENA_SIZE);
    assert_non_null(mkdtemp(directory));
    struct job job = job_of(&arena, "https://example.org/\nhttps://example.net/x");
    struct bytes patterns[] = {BYTES("https://example.org/a\"b\\*"), BYTES("re:^x#y")};
    job.include = (struct config_list){.items = patterns, .count = 2};
    job.scope = 4;
    job.depth = 12;
    job.has_delay = true;
    job.delay_us = 1500;
    job.urls_max = 10;
    job.bytes_max = 11;
    job.time_max_us = 12;
    job.body_size_max = 13;
    job.host_urls_max = 14;
    job.domain_urls_max = 15;
    job.period_us = 3600000000;
    job.revisit = JOB_REVISIT_ADAPTIVE;
    job.ignores_robots = job.skips_sitemaps = job.follows_forms = job.follows_guesses = job.is_paused = true;
    assert_int_equal(job_write(&job, directory, &detail), ERR_OK);
    assert_int_equal(job_write(&job, directory, &detail), ERR_OK);
    assert_int_equal(job_read(&back, directory, &arena, &detail), ERR_OK);
    assert_int_equal(back.seeds.count, 2);
    assert_bytes_equal(back.seeds.items[1], job.seeds.items[1]);
    assert_int_equal(back.include.count, 2);
    assert_bytes_equal(back.include.items[0], patterns[0]);
    assert_bytes_equal(back.include.items[1], patterns[1]);
    assert_int_equal(back.exclude.count, 0);
    job.seeds = back.seeds;
    job.include = back.include;
    job.exclude = back.exclude;
    assert_memory_equal(&job.scope, &back.scope, sizeof job.scope);
    assert_true(back.depth == 12 && back.has_delay && back.delay_us == 1500 && back.urls_max == 10 &&
                back.bytes_max == 11 && back.time_max_us == 12 && back.body_size_max == 13 &&
                back.host_urls_max == 14 && back.domain_urls_max == 15 && back.period_us == 3600000000 &&
                back.revisit == JOB_REVISIT_ADAPTIVE && back.ignores_robots && back.skips_sitemaps &&
                back.follows_forms && back.follows_guesses && back.is_paused);
    snprintf(path, sizeof path, "%s/job.conf", directory);
    unlink(path);
    assert_int_equal(job_read(&back, directory, &arena, &detail), ERR_NOT_FOUND);
    snprintf(path, sizeof path, "%s/seeds", directory);
    unlink(path);
    rmdir(directory);
    arena_done(&arena);
}

static void a_mistake_in_the_file_is_told(void **state) {
    (void)state;
    static const char *const bad[] = {"scope = world", "delay = soon", "deep = 3", "period = 0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena;
        struct job job;
        struct err_detail detail = {0};
        arena_init(&arena, ARENA_SIZE);
        assert_int_equal(job_parse(&job, bytes_of_string(bad[i]), &arena, &detail), ERR_INVALID);
        assert_true(detail.text[0] != '\0');
        arena_done(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_are_normalised),
        cmocka_unit_test(seeds_have_no_user_and_no_password),
        cmocka_unit_test(what_is_no_web_url_is_refused_with_its_line),
        cmocka_unit_test(the_name_follows_from_what_belongs_to_the_job),
        cmocka_unit_test(names_that_lead_elsewhere_are_not_valid),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_mistake_in_the_file_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
