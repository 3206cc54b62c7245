/* instance: volumes that are down, full or in other hands make trouble only for what they hold. */
#include <dirent.h>

#include "instance-fixture.h"
#include "store/instance/instance_state.h"

/* ---- volumes that do not open ---- */

static void hide_disk(struct fixture *fixture, size_t index) {
    char hidden[SCRATCH_PATH_SIZE];
    fixture_close(fixture);
    assert_int_equal(rename(fixture->disks[index], scratch_path(fixture->root, "hidden", hidden)), 0);
    fixture_open(fixture);
}

static void bring_back(struct fixture *fixture, size_t index) {
    char hidden[SCRATCH_PATH_SIZE];
    fixture_close(fixture);
    assert_int_equal(rename(scratch_path(fixture->root, "hidden", hidden), fixture->disks[index]), 0);
    fixture_open(fixture);
}

static void a_missing_disk_takes_only_its_own_documents_away(void **state) {
    struct fixture *fixture = *state;
    struct stored here = fixture_put(fixture, "here", 0);
    struct stored away = fixture_capture(fixture, "http://example.org/away", 1, "away", 3);
    fixture_capture(fixture, "http://example.org/here", 1, "page", 7);
    hide_disk(fixture, 1);

    struct instance_volume volume;
    instance_volume(fixture->instance, 1, &volume);
    assert_null(volume.backend);
    assert_int_equal(volume.err, ERR_NOT_FOUND);
    assert_non_null(strstr(volume.reason, "there is no directory"));
    assert_int_equal(access(fixture->disks[1], F_OK), -1); /* nothing was made in place of the disk */

    fixture_expect(fixture, &here.key, "here");
    struct bytes found;
    struct err_detail detail = {0};
    assert_int_equal(instance_get(fixture->session, &away.key, &found, &detail), ERR_UNREACHABLE);
    assert_non_null(strstr(detail.text, "volume 3 is down: there is no directory"));
    assert_int_equal(instance_remove(fixture->session, &away.key, NULL), ERR_UNREACHABLE);

    struct merge *merge;
    struct capture capture;
    assert_int_equal(merge_open(fixture->session, BYTES(""), BYTES(""), false, &merge, NULL), ERR_OK);
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_OK);
    assert_bytes_equal(capture.surt, BYTES("org,example)/here"));
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_NOT_FOUND);
    assert_true(merge_is_partial(merge));
    assert_string_equal(instance_session_absent(fixture->session)->text, "volume 3"); /* once */
    instance_session_forget_absent(fixture->session);
    assert_false(instance_session_absent(fixture->session)->is_any);
    merge_close(merge);
    assert_int_equal(fixture_count_blocks(fixture), 2);

    bring_back(fixture, 1);
    fixture_expect(fixture, &away.key, "away");
}

static void the_next_volume_takes_what_a_missing_one_should(void **state) {
    struct fixture *fixture = *state;
    fixture_put(fixture, "known to the missing", 3);
    hide_disk(fixture, 1);
    assert_int_equal(fixture_put(fixture, "for 3", 3).key.volume, 7);
    assert_int_equal(fixture_put(fixture, "for 0", 0).key.volume, 0);
    /* Nobody can say that it is a duplicate: one more copy. */
    struct stored copy = fixture_put(fixture, "known to the missing", 0);
    assert_false(copy.is_duplicate);
    for (unsigned i = 0; i < 20; i++) {
        char body[32];
        snprintf(body, sizeof body, "any %u", i);
        uint16_t place = fixture_place(body, fixture_numbers, FIXTURE_VOLUMES_COUNT);
        /* The places of the others do not change. */
        assert_int_equal(fixture_put(fixture, body, INSTANCE_VOLUME_ANY).key.volume, place == 3 ? 7 : place);
    }
    bring_back(fixture, 1);
    assert_true(fixture_put(fixture, "known to the missing", 7).is_duplicate);
}

static void those_that_did_not_answer_are_named_once_and_within_bounds(void **state) {
    (void)state;
    struct absent absent = {0};
    struct buf out;
    struct json json;
    absent_add_string(&absent, "node a, node b");
    absent_add_volume(&absent, 7);
    absent_add_string(&absent, "node b, node\r\nc");
    assert_string_equal(absent.text, "node a, node b, volume 7, node  c");
    buf_init(&out, 1 << 10);
    json_begin(&json, &out);
    absent_put_json(&absent, &json);
    json_end(&json);
    assert_bytes_equal(buf_bytes(&out), BYTES("{\"partial\":true,\"unanswered\":[\"node a\",\"node b\","
                                              "\"volume 7\",\"node  c\"]}"));
    buf_done(&out);
    for (uint16_t i = 0; i < 1000; i++) {
        absent_add_volume(&absent, i);
    }
    assert_true(absent.is_any && absent.size < sizeof absent.text && absent.text[absent.size] == '\0');
}

static void a_file_in_place_of_the_directory_is_a_volume_that_is_down(void **state) {
    struct fixture *fixture = *state;
    hide_disk(fixture, 2);
    fixture_write(fixture->disks[2], "no directory");
    fixture_reopen(fixture);
    struct instance_volume volume;
    instance_volume(fixture->instance, 2, &volume);
    assert_null(volume.backend);
    fixture_put(fixture, "still", 7);
    assert_int_equal(remove(fixture->disks[2]), 0);
    bring_back(fixture, 2);
}

static void an_instance_without_any_volume_does_not_open(void **state) {
    struct fixture *fixture = *state;
    struct instance *instance;
    struct err_detail detail = {0};
    char path[SCRATCH_PATH_SIZE];
    struct instance_config config = {.connector = scratch_path(fixture->root, "other", path)};
    fixture_write(path, "[volume-0]\npath = /nonexistent/a\n[volume-1]\npath = /nonexistent/b\n");
    assert_int_equal(instance_open(&config, &instance, &detail), ERR_NOT_FOUND);
    assert_string_equal(detail.text, "there is no directory /nonexistent/a");
    fixture_write(path, "[volume-0]\npth = /nonexistent/a\n");
    assert_int_equal(instance_open(&config, &instance, &detail), ERR_INVALID);
    assert_non_null(strstr(detail.text, "line 2"));
    config.connector = scratch_path(fixture->root, "none", path);
    assert_int_equal(instance_open(&config, &instance, &detail), ERR_NOT_FOUND);
}

static void a_volume_in_other_hands_is_not_down_but_an_error(void **state) {
    struct fixture *fixture = *state;
    struct instance *instance;
    struct err_detail detail = {0};
    assert_int_equal(instance_open(&fixture->config, &instance, &detail), ERR_BUSY);
    assert_non_null(strstr(detail.text, "is in use by another process"));
    char path[SCRATCH_PATH_SIZE];
    char text[2 * SCRATCH_PATH_SIZE];
    struct instance_config config = {.connector = scratch_path(fixture->root, "other", path)};
    snprintf(text, sizeof text, "[volume-0]\npath = free\n[volume-1]\npath = \"%s\"\n", fixture->disks[1]);
    fixture_write(path, text);
    assert_int_equal(instance_open(&config, &instance, &detail), ERR_BUSY);
    assert_non_null(strstr(detail.text, fixture->disks[1]));
    fixture_put(fixture, "undisturbed", INSTANCE_VOLUME_ANY);
}

/* ---- volumes that fail while they are used: a table that stands before the real one ---- */

static struct {
    const struct backend_table *real;
    enum err ask_err;
    enum err answer_err;
    enum err put_err;
    enum err left_out_err; /* of puts without body */
    enum err next_err;
    unsigned puts_count;
    size_t body_size; /* of all puts */
    char calls[64];   /* "a" for ask, "A" for answer */
} spy;

static void note_call(char call) {
    size_t size = strlen(spy.calls);
    if (size + 1 < sizeof spy.calls) {
        spy.calls[size] = call;
        spy.calls[size + 1] = '\0';
    }
}

static enum err spy_ask(struct backend_session *session, const struct document_sum *sum) {
    note_call('a');
    return spy.ask_err != ERR_OK ? spy.ask_err : spy.real->ask(session, sum);
}

static enum err spy_answer(struct backend_session *session, bool *ret_holds, struct err_detail *detail) {
    note_call('A');
    enum err err = spy.real->answer(session, ret_holds, detail);
    return spy.answer_err != ERR_OK ? spy.answer_err : err;
}

static enum err spy_put(struct backend_session *session, const struct document *document,
                        enum store_mode mode, struct stored *ret_stored, struct err_detail *detail) {
    spy.puts_count++;
    spy.body_size += document->body.size;
    if (spy.put_err != ERR_OK) {
        return spy.put_err;
    }
    if (document->is_body_left_out && spy.left_out_err != ERR_OK) {
        return spy.left_out_err;
    }
    return spy.real->put(session, document, mode, ret_stored, detail);
}

static enum err spy_next(struct backend_cursor *cursor, struct capture *ret_capture,
                         struct err_detail *detail) {
    return spy.next_err != ERR_OK ? spy.next_err : spy.real->captures_next(cursor, ret_capture, detail);
}

static struct backend_table spy_table;

/* Of the volumes from one index to another. */
static void start_spying_between(struct fixture *fixture, size_t first, size_t end) {
    memset(&spy, 0, sizeof spy);
    spy.real = fixture->instance->slots[0].backend->table;
    spy_table = *spy.real;
    spy_table.ask = spy_ask;
    spy_table.answer = spy_answer;
    spy_table.put = spy_put;
    spy_table.captures_next = spy_next;
    for (size_t i = first; i < end; i++) {
        fixture->instance->slots[i].backend->table = &spy_table;
    }
}

static void start_spying(struct fixture *fixture, size_t first) {
    start_spying_between(fixture, first, FIXTURE_VOLUMES_COUNT);
}

static void asks_all_before_it_waits_for_an_answer(void **state) {
    struct fixture *fixture = *state;
    start_spying(fixture, 0);
    fixture_put(fixture, "question", INSTANCE_VOLUME_ANY);
    assert_string_equal(spy.calls, "aaaAAA");
}

static void sends_no_body_of_a_duplicate(void **state) {
    struct fixture *fixture = *state;
    fixture_put(fixture, "a long body", 3);
    start_spying(fixture, 0);
    assert_true(fixture_put(fixture, "a long body", 7).is_duplicate);
    assert_int_equal(spy.puts_count, 1);
    assert_int_equal(spy.body_size, 0);
    fixture_put(fixture, "another body", 7);
    assert_int_equal(spy.puts_count, 2);
    assert_int_equal(spy.body_size, strlen("another body"));
}

static void brings_the_body_where_the_duplicate_has_gone_meanwhile(void **state) {
    struct fixture *fixture = *state;
    fixture_put(fixture, "vanishing", 3);
    start_spying(fixture, 0);
    spy.left_out_err = ERR_NOT_FOUND;
    struct stored stored = fixture_put(fixture, "vanishing", 7);
    assert_int_equal(spy.puts_count, 2);
    assert_int_equal(spy.body_size, strlen("vanishing"));
    assert_int_equal(stored.key.volume, 7);
    fixture_expect(fixture, &stored.key, "vanishing");
    spy.left_out_err = ERR_CORRUPT; /* or is damaged */
    stored = fixture_put(fixture, "vanishing", 0);
    fixture_expect(fixture, &stored.key, "vanishing");
}

static void another_holder_takes_the_news_where_the_first_does_not(void **state) {
    struct fixture *fixture = *state;
    struct document document = {.body = BYTES("copied"), .time_us = 1};
    fixture_put_document(fixture, &document, STORE_FORCE_NEW, 0);
    fixture_put_document(fixture, &document, STORE_FORCE_NEW, 3);
    start_spying_between(fixture, 0, 1);
    spy.left_out_err = ERR_NOT_FOUND;
    struct stored stored = fixture_put(fixture, "copied", 7);
    assert_true(stored.is_duplicate);
    assert_int_equal(stored.key.volume, 3);
    spy.left_out_err = ERR_UNREACHABLE;
    assert_int_equal(fixture_put(fixture, "copied", 7).key.volume, 3);
    assert_int_equal(spy.body_size, 0);
}

static void a_full_volume_hands_on_to_the_next(void **state) {
    struct fixture *fixture = *state;
    start_spying(fixture, 1);
    spy.put_err = ERR_NO_SPACE;
    assert_int_equal(fixture_put(fixture, "for 7", 7).key.volume, 0);
    assert_int_equal(fixture_put(fixture, "for 3", 3).key.volume, 0);
    assert_int_equal(spy.puts_count, 3); /* 7; 3, 7 */
    assert_int_equal(fixture->instance->slots[1].err, ERR_NO_SPACE);
    spy.put_err = ERR_OK;
    struct stored stored = fixture_put(fixture, "room again", 3);
    assert_int_equal(stored.key.volume, 3);
    assert_int_equal(fixture->instance->slots[1].err, ERR_OK);
}

static void the_error_is_that_of_the_chosen_volume_where_all_fail(void **state) {
    struct fixture *fixture = *state;
    start_spying(fixture, 0);
    spy.put_err = ERR_NO_SPACE;
    struct document document = {.body = BYTES("nowhere"), .time_us = 1};
    struct stored stored;
    struct err_detail detail = {0};
    assert_int_equal(instance_put(fixture->session, &document, STORE_REGULAR, 3, &stored, &detail),
                     ERR_NO_SPACE);
    assert_non_null(strstr(detail.text, "volume 3: "));
    spy.put_err = ERR_INVALID; /* of the document: no other volume will like it better */
    spy.puts_count = 0;
    assert_int_equal(instance_put(fixture->session, &document, STORE_REGULAR, 3, &stored, &detail),
                     ERR_INVALID);
    assert_int_equal(spy.puts_count, 1);
}

static void who_does_not_answer_is_taken_for_one_who_has_nothing(void **state) {
    struct fixture *fixture = *state;
    fixture_put(fixture, "known to 3", 3);
    start_spying(fixture, 1);
    spy.ask_err = ERR_UNREACHABLE;
    struct stored stored = fixture_put(fixture, "known to 3", 3);
    assert_int_equal(stored.key.volume, 0); /* the others have just failed */
    assert_int_equal(spy.puts_count, 0);
    assert_true(fixture_put(fixture, "known to 3", 3).is_duplicate);
    spy.ask_err = ERR_OK;
    spy.answer_err = ERR_TIMEOUT;
    assert_int_equal(fixture_put(fixture, "new", 7).key.volume, 0);
    assert_int_equal(spy.puts_count, 0);
}

static void a_walk_goes_on_without_a_volume_that_fails(void **state) {
    struct fixture *fixture = *state;
    struct merge *merge;
    struct capture capture;
    fixture_capture(fixture, "http://example.org/1", 1, "1", 0);
    fixture_capture(fixture, "http://example.org/2", 1, "2", 3);
    fixture_capture(fixture, "http://example.org/3", 1, "3", 3);
    fixture_capture(fixture, "http://example.org/4", 1, "4", 0);
    start_spying(fixture, 1);
    assert_int_equal(merge_open(fixture->session, BYTES(""), BYTES(""), false, &merge, NULL), ERR_OK);
    spy.next_err = ERR_CLOSED;
    static const char *const expected[] = {"org,example)/1", "org,example)/2", "org,example)/4"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(merge_next(merge, &capture, NULL), ERR_OK);
        assert_bytes_equal(capture.surt, bytes_of_string(expected[i]));
    }
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_NOT_FOUND);
    assert_true(merge_is_partial(merge));
    merge_close(merge);
}

static void a_walk_that_finds_damage_says_so(void **state) {
    struct fixture *fixture = *state;
    struct merge *merge;
    struct capture capture;
    fixture_capture(fixture, "http://example.org/1", 1, "1", 3);
    start_spying(fixture, 1);
    assert_int_equal(merge_open(fixture->session, BYTES(""), BYTES(""), false, &merge, NULL), ERR_OK);
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_OK);
    spy.next_err = ERR_CORRUPT;
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_CORRUPT);
    assert_int_equal(merge_next(merge, &capture, NULL), ERR_CORRUPT);
    merge_close(merge);
    assert_int_equal(merge_open(fixture->session, BYTES(""), BYTES(""), false, &merge, NULL), ERR_CORRUPT);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(a_missing_disk_takes_only_its_own_documents_away),
        WITH_FIXTURE(the_next_volume_takes_what_a_missing_one_should),
        cmocka_unit_test(those_that_did_not_answer_are_named_once_and_within_bounds),
        WITH_FIXTURE(a_file_in_place_of_the_directory_is_a_volume_that_is_down),
        WITH_FIXTURE(an_instance_without_any_volume_does_not_open),
        WITH_FIXTURE(a_volume_in_other_hands_is_not_down_but_an_error),
        WITH_FIXTURE(asks_all_before_it_waits_for_an_answer),
        WITH_FIXTURE(sends_no_body_of_a_duplicate),
        WITH_FIXTURE(brings_the_body_where_the_duplicate_has_gone_meanwhile),
        WITH_FIXTURE(another_holder_takes_the_news_where_the_first_does_not),
        WITH_FIXTURE(a_full_volume_hands_on_to_the_next),
        WITH_FIXTURE(the_error_is_that_of_the_chosen_volume_where_all_fail),
        WITH_FIXTURE(who_does_not_answer_is_taken_for_one_who_has_nothing),
        WITH_FIXTURE(a_walk_goes_on_without_a_volume_that_fails),
        WITH_FIXTURE(a_walk_that_finds_damage_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
