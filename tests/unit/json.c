#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "aborts.h"
#include "unit.h"

enum { SIZE_LIMIT = 600 };

struct world {
    struct buf out;
    struct json json;
};

static int make(void **state) {
    struct world *world = calloc(1, sizeof *world);
    if (world == NULL) {
        return -1;
    }
    buf_init(&world->out, SIZE_LIMIT);
    json_init(&world->json, &world->out);
    *state = world;
    return 0;
}

static int destroy(void **state) {
    struct world *world = *state;
    buf_done(&world->out);
    free(world);
    return 0;
}

/* What was written is that text, and a stranger's parser takes it. */
static void expect(struct world *world, const char *text) {
    assert_int_equal(world->out.err, ERR_OK);
    assert_int_equal(world->json.depth, 0);
    assert_bytes_equal(buf_bytes(&world->out), bytes_of_string(text));
    json_t *parsed =
        json_loadb((const char *)world->out.data, world->out.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(parsed);
    json_decref(parsed);
}

static void put_sample(struct json *json) {
    json_open(json, NULL);
    json_count(json, "a", 1);
    json_open_list(json, "b");
    json_open(json, NULL);
    json_close(json);
    json_open(json, NULL);
    json_text(json, "c", "x");
    json_close(json);
    json_open_list(json, NULL);
    json_close(json);
    json_count(json, NULL, 2);
    json_close(json);
    json_none(json, "d");
    json_close(json);
}

static void sets_commas_and_brackets(void **state) {
    struct world *world = *state;
    put_sample(&world->json);
    expect(world, "{\"a\":1,\"b\":[{},{\"c\":\"x\"},[],2],\"d\":null}");
}

static void sets_spaces_as_indexes_have_them(void **state) {
    struct world *world = *state;
    json_init_spaced(&world->json, &world->out);
    put_sample(&world->json);
    expect(world, "{\"a\": 1, \"b\": [{}, {\"c\": \"x\"}, [], 2], \"d\": null}");
}

static void breaks_lines_before_values_and_brackets(void **state) {
    struct world *world = *state;
    json_init_spaced(&world->json, &world->out);
    json_open_list(&world->json, NULL);
    for (uint64_t i = 1; i <= 2; i++) {
        json_break(&world->json);
        json_open(&world->json, NULL);
        json_count(&world->json, "a", i);
        json_count(&world->json, "b", i);
        json_close(&world->json);
    }
    json_break(&world->json);
    json_close(&world->json);
    expect(world, "[\n{\"a\": 1, \"b\": 1},\n{\"a\": 2, \"b\": 2}\n]");
}

static void writes_every_kind_of_value(void **state) {
    struct world *world = *state;
    struct json *json = &world->json;
    json_open(json, NULL);
    json_signed(json, "signed", INT64_MIN);
    json_count(json, "count", UINT32_MAX);
    json_bool(json, "yes", true);
    json_bool(json, "no", false);
    json_decimal(json, "decimal", 1.0 / 3, 2);
    json_decimal(json, "round", 41.7, 0);
    json_decimal(json, "infinite", INFINITY, 1);
    json_digits(json, "digits", 1e15 / 3, 4);
    json_digits(json, "nothing", NAN, 4);
    json_text(json, "none", NULL);
    json_format(json, "format", "%s-%d", "\"", 7);
    json_time(json, "time", INT64_C(1767323045678901));
    json_timestamp(json, "timestamp", INT64_C(1767323045678901));
    json_raw(json, "raw", BYTES("[1]"));
    json_members(json, BYTES("{\"x\":1,\"y\":2}"));
    json_bool(json, "end", true);
    json_close(json);
    expect(world, "{\"signed\":-9223372036854775808,\"count\":4294967295,\"yes\":true,\"no\":false,"
                  "\"decimal\":0.33,\"round\":42,\"infinite\":null,\"digits\":3.333e+14,\"nothing\":null,"
                  "\"none\":null,\"format\":\"\\\"-7\",\"time\":\"2026-01-02T03:04:05.678901Z\","
                  "\"timestamp\":\"20260102030405\",\"raw\":[1],\"x\":1,\"y\":2,\"end\":true}");
}

static void writes_several_counts_at_once(void **state) {
    struct world *world = *state;
    json_open(&world->json, NULL);
    JSON_COUNTS(&world->json, {"a", 1}, {"b", UINT64_MAX}, {"c", 0});
    json_close(&world->json);
    assert_bytes_equal(buf_bytes(&world->out), BYTES("{\"a\":1,\"b\":18446744073709551615,\"c\":0}"));
}

static void quotes_what_needs_it(void **state) {
    struct world *world = *state;
    struct buf *out = &world->out;
    static const struct {
        const char *text;
        const char *json;
    } rows[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\n\r\t", "\"\\n\\r\\t\""},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\""},
        {"/", "\"/\""},
        {"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\""},
        {"a\xff"
         "b",
         "\"a\xef\xbf\xbd"
         "b\""},
        {"\xc3", "\"\xef\xbf\xbd\""},
        {"\xc3\"", "\"\xef\xbf\xbd\\\"\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        buf_clear(out);
        assert_int_equal(json_quote(out, bytes_of_string(rows[i].text)), ERR_OK);
        assert_bytes_equal(buf_bytes(out), bytes_of_string(rows[i].json));
    }
    buf_clear(out);
    assert_int_equal(json_quote(out, BYTES("\0x")), ERR_OK);
    assert_bytes_equal(buf_bytes(out), BYTES("\"\\u0000x\""));
}

/* Strings and names: all bytes that there are. */
static void gives_back_what_outsiders_wrote(void **state) {
    struct world *world = *state;
    char text[128];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)i;
    }
    json_open(&world->json, NULL);
    json_name(&world->json, BYTES("a\"\n"));
    json_bytes(&world->json, NULL, bytes_of(text, sizeof text));
    json_bytes(&world->json, "not UTF-8", BYTES("\xff"));
    json_close(&world->json);
    json_t *parsed = json_loadb((const char *)world->out.data, world->out.size, JSON_ALLOW_NUL, NULL);
    const json_t *value = json_object_get(parsed, "a\"\n");
    assert_int_equal(json_string_length(value), sizeof text);
    assert_memory_equal(json_string_value(value), text, sizeof text);
    assert_string_equal(json_string_value(json_object_get(parsed, "not UTF-8")), "\xef\xbf\xbd");
    json_decref(parsed);
}

static void begins_anew_behind_a_whole_value(void **state) {
    struct world *world = *state;
    put_sample(&world->json);
    world->out.size = 0;
    put_sample(&world->json);
    expect(world, "{\"a\":1,\"b\":[{},{\"c\":\"x\"},[],2],\"d\":null}");
}

static void first_error_sticks(void **state) {
    struct world *world = *state;
    json_open_list(&world->json, NULL);
    for (size_t i = 0; i < SIZE_LIMIT; i++) {
        json_text(&world->json, NULL, "x");
    }
    json_close(&world->json);
    assert_int_equal(world->out.err, ERR_LIMIT);
}

static void writes_a_line_for_each_value_to_a_file(void **state) {
    (void)state;
    char text[32] = "";
    struct json json;
    FILE *file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    json_init_file(&json, file);
    for (uint64_t i = 1; i <= 3; i++) {
        json_open(&json, NULL);
        json_count(&json, "a", i);
        json.lines.err = i == 2 ? ERR_LIMIT : ERR_OK;
        json_close(&json);
    }
    json_done(&json);
    fclose(file);
    assert_string_equal(text, "{\"a\":1}\n{\"a\":3}\n");
}

static void begins_and_ends_an_object_at_once(void **state) {
    struct world *world = *state;
    json_begin_spaced(&world->json, &world->out);
    json_open_list(&world->json, "a");
    json_open(&world->json, NULL);
    json_end(&world->json);
    expect(world, "{\"a\": [{}]}");
}

static void put_value_without_name(void *argument) {
    json_open(argument, NULL);
    json_count(argument, NULL, 1);
}

static void put_name_in_list(void *argument) {
    json_open_list(argument, NULL);
    json_count(argument, "a", 1);
}

static void put_two_names(void *argument) {
    json_open(argument, NULL);
    json_name(argument, BYTES("a"));
    json_count(argument, "b", 1);
}

static void close_too_often(void *argument) {
    json_open(argument, NULL);
    json_close(argument);
    json_close(argument);
}

static void nest_too_deep(void *argument) {
    for (size_t i = 0; i <= JSON_DEPTH_MAX; i++) {
        json_open_list(argument, NULL);
    }
}

static void end_half(void *argument) {
    (void)argument;
    struct json json;
    json_init_file(&json, stdout);
    json_open(&json, NULL);
    json_done(&json);
}

static void aborts_where_the_outcome_would_not_be_json(void **state) {
    struct world *world = *state;
    assert_true(aborts(put_value_without_name, &world->json, "has_name"));
    assert_true(aborts(put_name_in_list, &world->json, "lists"));
    assert_true(aborts(put_two_names, &world->json, "has_name"));
    assert_true(aborts(close_too_often, &world->json, "depth"));
    assert_true(aborts(nest_too_deep, &world->json, "JSON_DEPTH_MAX"));
    assert_true(aborts(end_half, &world->json, "depth"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sets_commas_and_brackets, make, destroy),
        cmocka_unit_test_setup_teardown(sets_spaces_as_indexes_have_them, make, destroy),
        cmocka_unit_test_setup_teardown(breaks_lines_before_values_and_brackets, make, destroy),
        cmocka_unit_test_setup_teardown(writes_every_kind_of_value, make, destroy),
        cmocka_unit_test_setup_teardown(writes_several_counts_at_once, make, destroy),
        cmocka_unit_test_setup_teardown(quotes_what_needs_it, make, destroy),
        cmocka_unit_test_setup_teardown(gives_back_what_outsiders_wrote, make, destroy),
        cmocka_unit_test_setup_teardown(begins_anew_behind_a_whole_value, make, destroy),
        cmocka_unit_test_setup_teardown(begins_and_ends_an_object_at_once, make, destroy),
        cmocka_unit_test_setup_teardown(first_error_sticks, make, destroy),
        cmocka_unit_test(writes_a_line_for_each_value_to_a_file),
        cmocka_unit_test_setup_teardown(aborts_where_the_outcome_would_not_be_json, make, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
