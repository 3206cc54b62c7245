/* access: which rule decides, what a line may say, and files that change under their readers. */
#include "store/access/access.h"
#include "clock-manual.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "await.h"
#include "base/buf.h"
#include "base/utc.h"
#include "scratch.h"
#include "store/access/access_line.h"
#include "store/access/access_rules.h"
#include "unit.h"

enum { MANY = UNIT_IS_SANITIZED ? 20000 : 200000 };

static int64_t at(const char *digits) {
    int64_t time_us;
    assert_true(utc_parse_digits(bytes_of_string(digits), false, &time_us));
    return time_us;
}

static struct access_rules *rules_of(const char *text) {
    struct err_detail detail = {0};
    struct access_rules *rules = access_rules_new();
    assert_non_null(rules);
    if (access_rules_add(rules, bytes_of_string(text), &detail) != ERR_OK) {
        fail_msg("line %u: %s", detail.line, detail.text);
    }
    assert_int_equal(access_rules_seal(rules), ERR_OK);
    return rules;
}

static enum access_verdict ask_at(const char *text, const char *surt, const char *time) {
    struct access_rules *rules = rules_of(text);
    enum access_verdict verdict =
        access_rules_check(rules, bytes_of_string(surt), at(time), at("20260601000000"));
    access_rules_free(rules);
    return verdict;
}

static enum access_verdict ask(const char *text, const char *surt) {
    return ask_at(text, surt, "2020");
}

static void the_longest_rule_decides(void **state) {
    (void)state;
    static const char text[] = "org,example)/ - {\"access\": \"block\"}\n"
                               "org,example)/a/b - {\"access\": \"allow\"}\n"
                               "org,example)/a - {\"access\": \"exclude\"}\r\n"
                               "\n"
                               "# of nobody\n"
                               "com, - {\"access\": \"exclude\", \"url\": \"com,\", \"comment\": \"x\"}";
    assert_int_equal(ask(text, "org,example)/"), ACCESS_BLOCK);
    assert_int_equal(ask(text, "org,example)/x"), ACCESS_BLOCK);
    assert_int_equal(ask(text, "org,example)/a"), ACCESS_EXCLUDE);
    assert_int_equal(ask(text, "org,example)/a/a"), ACCESS_EXCLUDE);
    assert_int_equal(ask(text, "org,example)/a/b/c"), ACCESS_ALLOW);
    assert_int_equal(ask(text, "org,example)/a/c"), ACCESS_EXCLUDE);
    assert_int_equal(ask(text, "org,example)/zzz"), ACCESS_BLOCK);
    assert_int_equal(ask(text, "org,examplf)/"), ACCESS_ALLOW);
    assert_int_equal(ask(text, "com,any,where)/x"), ACCESS_EXCLUDE);
    assert_int_equal(ask(text, "com)/"), ACCESS_ALLOW);
    assert_int_equal(ask("", "org,example)/"), ACCESS_ALLOW);
}

static void exact_rules_are_of_one_url(void **state) {
    (void)state;
    static const char text[] = "org,example)/a### - {\"access\": \"allow\"}\n"
                               "org,example)/a - {\"access\": \"block\"}\n"
                               "org,example)/b### - {\"access\": \"exclude\"}\n";
    assert_int_equal(ask(text, "org,example)/a"), ACCESS_ALLOW);
    assert_int_equal(ask(text, "org,example)/a/"), ACCESS_BLOCK);
    assert_int_equal(ask(text, "org,example)/b"), ACCESS_EXCLUDE);
    assert_int_equal(ask(text, "org,example)/bb"), ACCESS_ALLOW);
}

static void stars_stand_for_hosts(void **state) {
    (void)state;
    static const char *const all[] = {"* - {\"access\":\"block\"}", "*, - {\"access\":\"block\"}"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ask(all[i], "org,example)/"), ACCESS_BLOCK);
        assert_int_equal(ask(all[i], "dns:example.org"), ACCESS_BLOCK);
    }
    static const char some[] = "org,example,* - {\"access\":\"block\"}\norg,x)/a* - {\"access\":\"block\"}";
    assert_int_equal(ask(some, "org,example,sub)/"), ACCESS_BLOCK);
    assert_int_equal(ask(some, "org,example)/"), ACCESS_ALLOW);
    assert_int_equal(ask(some, "org,x)/ab"), ACCESS_ALLOW); /* a path may have stars of its own */
    assert_int_equal(ask(some, "org,x)/a*b"), ACCESS_BLOCK);
}

static void the_first_of_two_equal_rules_decides(void **state) {
    (void)state;
    assert_int_equal(ask("org,a) - {\"access\":\"block\"}\norg,a) - {\"access\":\"allow\"}", "org,a)/"),
                     ACCESS_BLOCK);
    assert_int_equal(
        ask("org,a) - {\"access\":\"allow\",\"user\":\"staff\"}\norg,a) - {\"access\":\"block\"}", "org,a)/"),
        ACCESS_BLOCK);
    assert_int_equal(ask("org,a) - {\"access\":\"block\",\"user\":\"\"}", "org,a)/"), ACCESS_BLOCK);
}

static void rules_may_be_of_a_time(void **state) {
    (void)state;
    static const char text[] =
        "org,a)/x - {\"access\":\"exclude\",\"after\":\"2019\",\"before\":\"2021-06-30\"}\n"
        "org,a)/x - {\"access\":\"block\",\"before\":2010}\n"
        "org,a)/ - {\"access\":\"block\",\"after\":\"20250101000000\"}\n";
    assert_int_equal(ask_at(text, "org,a)/x", "20191231235959"), ACCESS_ALLOW);
    assert_int_equal(ask_at(text, "org,a)/x", "20200101000000"), ACCESS_EXCLUDE);
    assert_int_equal(ask_at(text, "org,a)/x", "20210630235959"), ACCESS_EXCLUDE);
    assert_int_equal(ask_at(text, "org,a)/x", "20210701000000"), ACCESS_ALLOW);
    assert_int_equal(ask_at(text, "org,a)/x", "2009"), ACCESS_BLOCK);
    assert_int_equal(ask_at(text, "org,a)/x", "20250101000001"), ACCESS_BLOCK); /* of the shorter one */
}

static bool covers(const char *name, const char *time, const char *capture) {
    char text[128];
    snprintf(text, sizeof text, "org,a)/ - {\"access\":\"exclude\",\"%s\":\"%s\"}\n", name, time);
    return ask_at(text, "org,a)/", capture) == ACCESS_EXCLUDE;
}

/* As in pywb: what is not written to the second stands for its end. */
static void short_times_stand_for_their_end(void **state) {
    (void)state;
    static const struct {
        const char *time;
        const char *last; /* before it */
        const char *next; /* after it */
    } times[] = {
        {"2", "29991231235959", "30000101000000"},
        {"202", "20291231235959", "20300101000000"},
        {"2020", "20201231235959", "20210101000000"},
        {"20201", "20201231235959", "20210101000000"},
        {"202002", "20200229235959", "20200301000000"},
        {"2020022", "20200229235959", "20200301000000"},
        {"20200228", "20200228235959", "20200229000000"},
        {"2020022823", "20200228235959", "20200229000000"},
        {"202002282359", "20200228235959", "20200229000000"},
        {"2020022823595", "20200228235959", "20200229000000"},
        {"20200228235959", "20200228235958", "20200229000000"},
        {"2020-02", "20200229235959", "20200301000000"},
        {"2020-02-28", "20200228235959", "20200229000000"},
        {"2020-02-28T23:59Z", "20200228235959", "20200229000000"},
        {"2020-02-29T00:59+01:00", "20200228235959", "20200229000000"},
        {"2020-02-28T23:59:59Z", "20200228235958", "20200229000000"},
    };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        assert_true(covers("before", times[i].time, times[i].last));
        assert_false(covers("before", times[i].time, times[i].next));
        assert_false(covers("after", times[i].time, times[i].last));
        assert_true(covers("after", times[i].time, times[i].next));
    }
    assert_false(covers("before", "20200228235959", "20200228235959"));
    assert_false(covers("after", "20200228235959", "20200228235959"));
}

static void rules_may_be_of_an_age(void **state) {
    (void)state;
    static const char newer[] = "org,a) - {\"access\":\"block\",\"newer\":{\"years\":1,\"months\":3}}";
    assert_int_equal(ask_at(newer, "org,a)/", "20250302"), ACCESS_BLOCK);
    assert_int_equal(ask_at(newer, "org,a)/", "20250301"), ACCESS_ALLOW);
    static const char older[] = "org,a) - {\"access\":\"block\",\"older\":{\"weeks\":1,\"days\":3}}";
    assert_int_equal(ask_at(older, "org,a)/", "20260521"), ACCESS_BLOCK);
    assert_int_equal(ask_at(older, "org,a)/", "20260522"), ACCESS_ALLOW);
    static const char ever[] = "org,a) - {\"access\":\"block\",\"newer\":{\"years\":9999,\"days\":9999}}";
    assert_int_equal(ask_at(ever, "org,a)/", "1996"), ACCESS_BLOCK);
}

static void lines_that_are_not_understood_are_refused(void **state) {
    (void)state;
    static const char *const lines[] = {
        "org,example)/",
        "org,example)/ {\"access\":\"block\"}",
        "org,example)/ 2020 {\"access\":\"block\"}",
        "org,example)/ - ",
        "org,example)/ - \"block\"",
        "org,example)/ - {\"access\":\"block\"",
        "org,example)/ - {\"access\":\"block\"} x",
        "org,example)/ - {}",
        "org,example)/ - {\"access\":\"deny\"}",
        "org,example)/ - {\"access\":null}",
        "org,example)/ - {\"access\":\"allow\",\"access\":\"block\"}",
        "org,example)/ - {\"access\":\"allow\",\"ip\":\"127.0.0.1\"}",
        "org,example)/ - {\"access\":\"block\",\"before\":\"soon\"}",
        "org,example)/ - {\"access\":\"block\",\"before\":-1}",
        "org,example)/ - {\"access\":\"block\",\"newer\":\"1 year\"}",
        "org,example)/ - {\"access\":\"block\",\"newer\":{}}",
        "org,example)/ - {\"access\":\"block\",\"older\":{\"hours\":1}}",
        "org,example)/ - {\"access\":\"block\",\"older\":{\"days\":-1}}",
        "http://example.org/ - {\"access\":\"block\"}",
        "### - {\"access\":\"block\"}x",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct access_line line;
        struct err_detail detail = {0};
        if (access_line_parse(&line, bytes_of_string(lines[i]), &detail) != ERR_INVALID) {
            fail_msg("taken: %s", lines[i]);
        }
        assert_int_not_equal(detail.text[0], '\0');
    }
}

/* ---- files ---- */

struct fixture {
    void *directory;
    struct clock_manual clock;
    struct access *access;
    char told[512];
    int told_count;
};

static void note(void *context, const char *sentence) {
    struct fixture *fixture = context;
    snprintf(fixture->told, sizeof fixture->told, "%s", sentence);
    fixture->told_count++;
}

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL || scratch_make(&fixture->directory) != 0) {
        return -1;
    }
    clock_manual_init(&fixture->clock, clock_wall_us(&clock_system) + INT64_C(3600000000));
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    if (fixture->access != NULL) {
        access_close(fixture->access);
    }
    int result = scratch_remove(&fixture->directory);
    free(fixture);
    return result;
}

static void write_file(struct fixture *fixture, const char *name, const char *text) {
    char path[SCRATCH_PATH_SIZE];
    FILE *file = fopen(scratch_path(fixture->directory, name, path), "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static enum err start(struct fixture *fixture, struct err_detail *detail) {
    return access_open(fixture->directory, &fixture->clock.clock, note, fixture, &fixture->access, detail);
}

static enum access_verdict check(struct fixture *fixture, const char *surt) {
    return access_check(fixture->access, bytes_of_string(surt), at("2020"));
}

static void changed_files_count_after_a_second(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    assert_int_equal(start(fixture, NULL), ERR_OK);
    assert_false(access_has_rules(fixture->access));
    assert_int_equal(mkdir(scratch_path(fixture->directory, "access", path), 0777), 0);
    write_file(fixture, "access.aclj", "org,a) - {\"access\":\"block\"}\n");
    write_file(fixture, "access/2.aclj", "org,b) - {\"access\":\"allow\"}\n");
    write_file(fixture, "access/1.aclj", "org,b) - {\"access\":\"exclude\"}\n");
    write_file(fixture, "access/1.aclj.old", "org,c) - {\"access\":\"exclude\"}\n");
    assert_int_equal(check(fixture, "org,a)/"), ACCESS_ALLOW); /* not yet */
    clock_manual_advance(&fixture->clock, 1000000);
    assert_true(access_has_rules(fixture->access));
    assert_int_equal(check(fixture, "org,a)/"), ACCESS_BLOCK);
    assert_int_equal(check(fixture, "org,b)/"), ACCESS_EXCLUDE);
    assert_int_equal(check(fixture, "org,c)/"), ACCESS_ALLOW);
    assert_int_equal(unlink(scratch_path(fixture->directory, "access/1.aclj", path)), 0);
    clock_manual_advance(&fixture->clock, 1000000);
    assert_int_equal(check(fixture, "org,b)/"), ACCESS_ALLOW);
    assert_int_equal(fixture->told_count, 0);
}

static void wrong_lines_leave_the_rules_as_they_were(void **state) {
    struct fixture *fixture = *state;
    write_file(fixture, "access.aclj", "org,a) - {\"access\":\"block\"}\n");
    assert_int_equal(start(fixture, NULL), ERR_OK);
    write_file(fixture, "access.aclj", "\norg,b) - {\"access\":\"block\"}\norg,c) - {\"acess\":\"block\"}\n");
    for (int i = 0; i < 3; i++) {
        clock_manual_advance(&fixture->clock, 1000000);
        assert_int_equal(check(fixture, "org,a)/"), ACCESS_BLOCK);
        assert_int_equal(check(fixture, "org,b)/"), ACCESS_ALLOW);
    }
    assert_int_equal(fixture->told_count, 1);
    assert_non_null(strstr(fixture->told, "access.aclj:3: "));
    write_file(fixture, "access.aclj", "org,b) - {\"access\":\"block\"}\n");
    clock_manual_advance(&fixture->clock, 1000000);
    assert_int_equal(check(fixture, "org,a)/"), ACCESS_ALLOW);
    assert_int_equal(check(fixture, "org,b)/"), ACCESS_BLOCK);
}

static void wrong_lines_are_an_error_at_the_start(void **state) {
    struct fixture *fixture = *state;
    struct err_detail detail = {0};
    write_file(fixture, "access.aclj", "org,a) - {\"access\":\"blocked\"}\n");
    assert_int_equal(start(fixture, &detail), ERR_INVALID);
    assert_non_null(strstr(detail.text, "access.aclj:1: "));
}

/* A file may be written again within the tick of the file system's clock, with the same size. */
static void files_that_just_changed_are_read_once_more(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    struct stat before;
    fixture->clock.wall_now_us = clock_wall_us(&clock_system);
    write_file(fixture, "access.aclj", "org,a) - {\"access\":\"block\"}\n");
    scratch_path(fixture->directory, "access.aclj", path);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(start(fixture, NULL), ERR_OK);
    write_file(fixture, "access.aclj", "org,b) - {\"access\":\"block\"}\n");
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    clock_manual_advance(&fixture->clock, 1000000);
    assert_int_equal(check(fixture, "org,b)/"), ACCESS_BLOCK);
}

/* ---- threads ---- */

struct crowd {
    struct access *access;
    atomic_bool is_over;
    atomic_int wrong_count;
};

/* Either all of the old rules or all of the new ones. */
static void *keep_asking(void *context) {
    struct crowd *crowd = context;
    while (!atomic_load(&crowd->is_over)) {
        enum access_verdict verdict = access_check(crowd->access, BYTES("org,a)/x"), 0);
        atomic_fetch_add(&crowd->wrong_count, verdict == ACCESS_ALLOW);
    }
    return NULL;
}

static void readers_always_see_whole_rules(void **state) {
    struct fixture *fixture = *state;
    struct clock fast = clock_system;
    char path[SCRATCH_PATH_SIZE];
    char temporary[SCRATCH_PATH_SIZE];
    pthread_t threads[4];
    scratch_path(fixture->directory, "access.aclj", path);
    scratch_path(fixture->directory, "access.tmp", temporary);
    write_file(fixture, "access.aclj", "org,a) - {\"access\":\"block\"}\n");
    assert_int_equal(access_open(fixture->directory, &fast, note, fixture, &fixture->access, NULL), ERR_OK);
    struct crowd crowd = {.access = fixture->access};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, keep_asking, &crowd), 0);
    }
    enum access_verdict wanted = ACCESS_EXCLUDE;
    write_file(fixture, "access.tmp", "org,a)/x - {\"access\":\"exclude\"}\n");
    assert_int_equal(rename(temporary, path), 0);
    await_that(access_check(fixture->access, BYTES("org,a)/x"), 0) == wanted);
    atomic_store(&crowd.is_over, true);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(crowd.wrong_count, 0);
}

/* Every rule decides for its own URLs, however many there are. */
static void many_rules_are_told_apart(void **state) {
    (void)state;
    struct buf text;
    buf_init(&text, (size_t)64 << 20);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t number = (uint32_t)(i * UINT64_C(7919) % MANY);
        buf_put_format(&text, "org,host%u)/ - {\"access\":\"%s\"}\n", number,
                       number % 2 == 0 ? "block" : "exclude");
    }
    struct access_rules *rules = rules_of(buf_string(&text));
    for (uint32_t i = 0; i < MANY; i++) {
        char surt[64];
        snprintf(surt, sizeof surt, "org,host%u)/page", i);
        assert_int_equal(access_rules_check(rules, bytes_of_string(surt), 0, 0),
                         i % 2 == 0 ? ACCESS_BLOCK : ACCESS_EXCLUDE);
        snprintf(surt, sizeof surt, "org,host%u,sub)/page", i);
        assert_int_equal(access_rules_check(rules, bytes_of_string(surt), 0, 0), ACCESS_ALLOW);
    }
    access_rules_free(rules);
    buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_rule_decides),
        cmocka_unit_test(exact_rules_are_of_one_url),
        cmocka_unit_test(stars_stand_for_hosts),
        cmocka_unit_test(the_first_of_two_equal_rules_decides),
        cmocka_unit_test(rules_may_be_of_a_time),
        cmocka_unit_test(short_times_stand_for_their_end),
        cmocka_unit_test(rules_may_be_of_an_age),
        cmocka_unit_test(lines_that_are_not_understood_are_refused),
        cmocka_unit_test_setup_teardown(changed_files_count_after_a_second, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_lines_leave_the_rules_as_they_were, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_lines_are_an_error_at_the_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_just_changed_are_read_once_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(readers_always_see_whole_rules, set_up, tear_down),
        cmocka_unit_test(many_rules_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
