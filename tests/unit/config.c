#include "base/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "aborts.h"
#include "allocations.h"
#include "unit.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct settings {
    struct bytes name;
    struct bytes note;
    bool is_polite;
    uint64_t port;
    uint64_t delay_us;
    struct config_list exclude;
    uint64_t cache_size;
    uint32_t medium;
};

static const char *const media[] = {"memory", "disk", NULL};

static const struct config_key keys[] = {
    {.name = "name",
     .type = CONFIG_TEXT,
     .offset = offsetof(struct settings, name),
     .fallback = "a \"quoted\" \\ name",
     .help = "what the node is called"},
    {.name = "note", .type = CONFIG_TEXT, .offset = offsetof(struct settings, note), .help = "anything"},
    {.name = "crawl.polite",
     .type = CONFIG_SWITCH,
     .offset = offsetof(struct settings, is_polite),
     .fallback = "yes",
     .help = "obey robots.txt"},
    {.name = "crawl.port",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, port),
     .fallback = "8080",
     .min = 1,
     .max = 65535,
     .help = "of the proxy"},
    {.name = "crawl.delay",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, delay_us),
     .fallback = "2 s",
     .max = 3600000000,
     .help = "between fetches"},
    {.name = "crawl.exclude",
     .type = CONFIG_LIST,
     .offset = offsetof(struct settings, exclude),
     .help = "never fetched"},
    {.name = "store.cache",
     .type = CONFIG_SIZE,
     .offset = offsetof(struct settings, cache_size),
     .fallback = "64 MiB",
     .min = 1024,
     .max = UINT64_MAX,
     .help = "kept in memory"},
    {.name = "store.medium",
     .type = CONFIG_CHOICE,
     .offset = offsetof(struct settings, medium),
     .fallback = "disk",
     .choices = media,
     .help = "memory or disk"},
    {.name = NULL},
};

struct fixture {
    struct arena arena;
    struct settings settings;
    struct err_detail detail;
};

static int make(void **state) {
    struct fixture *f = malloc(sizeof *f);
    if (f == NULL) {
        return -1;
    }
    arena_init(&f->arena, 8 << 20);
    memset(&f->settings, 0xee, sizeof f->settings);
    *state = f;
    return 0;
}

static int destroy(void **state) {
    struct fixture *f = *state;
    arena_done(&f->arena);
    free(f);
    return 0;
}

/* From a copy of the exact size, so that the sanitizers see a read past the end. */
static enum err read_copy(struct fixture *f, struct bytes text) {
    uint8_t *exact = malloc(text.size);
    if (text.size > 0) {
        assert_non_null(exact);
        memcpy(exact, text.data, text.size);
    }
    f->detail = (struct err_detail){.err = ERR_OK};
    enum err err = config_read(keys, bytes_of(exact, text.size), &f->arena, &f->settings, &f->detail);
    free(exact);
    return err;
}

static void read_ok(struct fixture *f, struct bytes text) {
    if (read_copy(f, text) != ERR_OK) {
        fail_msg("%s", f->detail.text);
    }
}

static void assert_defaults(const struct settings *settings) {
    assert_bytes_equal(settings->name, BYTES("a \"quoted\" \\ name"));
    assert_bytes_equal(settings->note, BYTES(""));
    assert_true(settings->is_polite);
    assert_int_equal(settings->port, 8080);
    assert_int_equal(settings->delay_us, 2000000);
    assert_int_equal(settings->cache_size, 64 << 20);
    assert_int_equal(settings->medium, 1);
}

static void gives_the_defaults_where_the_file_says_nothing(void **state) {
    struct fixture *f = *state;
    const struct bytes texts[] = {bytes_of(NULL, 0),
                                  BYTES(""),
                                  BYTES("\n"),
                                  BYTES("\n\n\r\n"),
                                  BYTES("# comment"),
                                  BYTES("  \t # c\n"),
                                  BYTES("[crawl]"),
                                  BYTES("\xef\xbb\xbf"),
                                  BYTES("[crawl]\n[store] # none\n [ crawl ] ")};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        memset(&f->settings, 0xee, sizeof f->settings);
        read_ok(f, texts[i]);
        assert_defaults(&f->settings);
        assert_int_equal(f->settings.exclude.count, 0);
    }
}

static void reads_every_type(void **state) {
    struct fixture *f = *state;
    read_ok(f, BYTES("name = archive of Alice\n"
                     "note=short\n"
                     "[crawl]\n"
                     "polite = no\n"
                     "port = 1\n"
                     "delay = 250 ms\n"
                     "exclude = *.zip\n"
                     "exclude = \"*.iso\"\n"
                     "[store]\n"
                     "cache = 1.5 GB\n"
                     "medium = memory\n"));
    assert_bytes_equal(f->settings.name, BYTES("archive of Alice"));
    assert_bytes_equal(f->settings.note, BYTES("short"));
    assert_false(f->settings.is_polite);
    assert_int_equal(f->settings.port, 1);
    assert_int_equal(f->settings.delay_us, 250000);
    assert_int_equal(f->settings.exclude.count, 2);
    assert_bytes_equal(f->settings.exclude.items[0], BYTES("*.zip"));
    assert_bytes_equal(f->settings.exclude.items[1], BYTES("*.iso"));
    assert_int_equal(f->settings.cache_size, 1500000000);
    assert_int_equal(f->settings.medium, 0);
}

static void reads_text_with_quotes_escapes_and_comments(void **state) {
    struct fixture *f = *state;
    static const char *const rows[][2] = {
        {"name = plain", "plain"},
        {"name=plain", "plain"},
        {"\tname\t=\tplain\t", "plain"},
        {"name = two words # and a comment", "two words"},
        {"name = a#b", "a"},
        {"name = a = b", "a = b"},
        {"name = [x]", "[x]"},
        {"name = it's \"so\"", "it's \"so\""},
        {"name = back\\nslash", "back\\nslash"},
        {"name = \"\"", ""},
        {"name = \"\" # empty", ""},
        {"name = \"  spaces  \"", "  spaces  "},
        {"name = \"a # b\"#c", "a # b"},
        {"name = \"\\\"\\\\\\n\\t\"", "\"\\\n\t"},
        {"name = \"\ttab\"", "\ttab"},
        {"name = gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"name = \"\xf0\x9f\x98\x80\"", "\xf0\x9f\x98\x80"},
        {"name = x\r\n# CRLF\r\n", "x"},
        {"\xef\xbb\xbfname = x", "x"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        read_ok(f, bytes_of_string(rows[i][0]));
        assert_bytes_equal(f->settings.name, bytes_of_string(rows[i][1]));
        assert_int_equal(f->settings.name.data[f->settings.name.size], 0);
    }
}

static void quotes_are_for_every_type(void **state) {
    struct fixture *f = *state;
    read_ok(f,
            BYTES("[crawl]\npolite = \"no\"\nport = \"7\"\ndelay = \"5 s\"\n[store]\nmedium = \"memory\""));
    assert_false(f->settings.is_polite);
    assert_int_equal(f->settings.port, 7);
    assert_int_equal(f->settings.delay_us, 5000000);
    assert_int_equal(f->settings.medium, 0);
}

static void text_outlives_the_file(void **state) {
    struct fixture *f = *state;
    read_ok(f, BYTES("name = first\nnote = \"second\"\n[crawl]\nexclude = third")); /* frees its copy */
    assert_bytes_equal(f->settings.name, BYTES("first"));
    assert_bytes_equal(f->settings.note, BYTES("second"));
    assert_bytes_equal(f->settings.exclude.items[0], BYTES("third"));
}

static void section_may_come_in_pieces(void **state) {
    struct fixture *f = *state;
    read_ok(
        f,
        BYTES("[crawl]\nport = 1\nexclude = a\n[store]\nmedium = memory\n[crawl]\ndelay = 1 s\nexclude = b"));
    assert_int_equal(f->settings.port, 1);
    assert_int_equal(f->settings.delay_us, 1000000);
    assert_int_equal(f->settings.exclude.count, 2);
}

#define TEN "abcdefghij"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static void names_line_and_column_of_each_mistake(void **state) {
    struct fixture *f = *state;
    const struct {
        struct bytes text;
        uint32_t line;
        uint32_t column;
        const char *explanation;
    } rows[] = {
        {BYTES("nmae = x"), 1, 1, "unknown key \"nmae\"; did you mean name?"},
        {BYTES("tree = x"), 1, 1, "unknown key \"tree\""},
        {BYTES("port = 1"), 1, 1, "unknown key \"port\""}, /* only in its section */
        {BYTES("[crawl]\nname = x"), 2, 1, "unknown key \"name\""},
        {BYTES("[crawl]\n  prot = 1"), 2, 3, "unknown key \"prot\"; did you mean port?"},
        {BYTES("NAME = x"), 1, 1, "unknown key \"NAME\"; did you mean name?"},
        {BYTES(HUNDRED HUNDRED " = x"), 1, 1, "unknown key \"" HUNDRED},
        {BYTES("name x"), 1, 6, "expected = after name"},
        {BYTES("name"), 1, 5, "expected = after name"},
        {BYTES("name # = x"), 1, 6, "expected = after name"},
        {BYTES("crawl.port = 1"), 1, 6, "expected = after crawl"},
        {BYTES("= x"), 1, 1, "expected \"name = value\" or \"[section]\""},
        {BYTES("  \"name\" = x"), 1, 3, "expected \"name = value\" or \"[section]\""},
        {BYTES("\xef\xbb\xbf\xef\xbb\xbfname = x"), 1, 1, "expected \"name = value\" or \"[section]\""},
        {BYTES("name ="), 1, 7, "a value is missing; an empty text is written \"\""},
        {BYTES("name = \t"), 1, 9, "a value is missing; an empty text is written \"\""},
        {BYTES("name = # x"), 1, 8, "a value is missing; an empty text is written \"\""},
        {BYTES("name = \"abc"), 1, 8, "this quote is not closed on its line"},
        {BYTES("name = \"abc\ndef\""), 1, 8, "this quote is not closed on its line"},
        {BYTES("name = \""), 1, 8, "this quote is not closed on its line"},
        {BYTES("name = \"a\\x\""), 1, 10, "unknown escape; known are \\\" \\\\ \\n \\t"},
        {BYTES("name = \"a\\"), 1, 10, "unknown escape; known are \\\" \\\\ \\n \\t"},
        {BYTES("name = \"a\" b"), 1, 12, "nothing may follow the closing quote"},
        {BYTES("name = \"a\"\"b\""), 1, 11, "nothing may follow the closing quote"},
        {BYTES("name = a\nnote = b\nname = c"), 3, 1, "name is set already in line 1"},
        {BYTES("[crawl]\nport=1\n[store]\n[crawl]\nport=1"), 5, 1, "port is set already in line 2"},
        {BYTES("[crawl"), 1, 7, "expected ] after [crawl"},
        {BYTES("[crawl x]"), 1, 8, "expected ] after [crawl"},
        {BYTES("[crawl.port]"), 1, 7, "expected ] after [crawl"},
        {BYTES("[]"), 1, 2, "a section needs a name: [name]"},
        {BYTES("["), 1, 2, "a section needs a name: [name]"},
        {BYTES("[crawl] port = 1"), 1, 9, "nothing may follow [crawl]"},
        {BYTES("\n [crwal]"), 2, 3, "there is no section [crwal]"},
        {BYTES("[name]"), 1, 2, "there is no section [name]"},
        {BYTES("[craw]"), 1, 2, "there is no section [craw]"},
        {BYTES("[" HUNDRED "]"), 1, 2, "there is no section [" HUNDRED "]"},
        {BYTES("[crawl]\nport = many"), 2, 8, "\"many\" is not a whole number"},
        {BYTES("[crawl]\nport = 0"), 2, 8, "0 is not between 1 and 65535"},
        {BYTES("[crawl]\nport = 65536"), 2, 8, "65536 is not between 1 and 65535"},
        {BYTES("[crawl]\nport = \"\""), 2, 8, "\"\" is not a whole number"},
        {BYTES("[crawl]\r\n  delay = 5 \r\n"), 2, 11, "\"5\" is not a number with a unit (250 ms, "},
        {BYTES("[crawl]\ndelay = 2 h"), 2, 9, "\"2 h\" is not between 0 and 3600000 ms"},
        {BYTES("[crawl]\npolite = maybe"), 2, 10, "\"maybe\" is neither yes nor no"},
        {BYTES("[store]\ncache = 12 bits"), 2, 9, "\"bits\" is not a known unit (100 bytes, "},
        {BYTES("[store]\ncache = 1 K\ncache = 1 K"), 3, 1, "cache is set already in line 2"},
        {BYTES("[store]\nmedium=dsik"), 2, 8, "\"dsik\" is none of memory, disk; did you mean disk?"},
        {BYTES("\n\n \x01"), 3, 2, "control character 0x01"},
        {BYTES("name = a\0b"), 1, 9, "control character 0x00"},
        {BYTES("# comments too \x1b"), 1, 16, "control character 0x1b"},
        {BYTES("name = a\r\r\n"), 1, 9, "control character 0x0d"},
        {BYTES("name = a\rnote = b"), 1, 9, "control character 0x0d"},
        {BYTES("name = \xc3\xbc\xff"), 1, 10, "not UTF-8"},
        {BYTES("name = \xc3"), 1, 8, "not UTF-8"},
        {BYTES("name = x # \xed\xa0\x80"), 1, 12, "not UTF-8"},
        {BYTES("\xc3\xbc = x"), 1, 1, "expected \"name = value\" or \"[section]\""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum err err = read_copy(f, rows[i].text);
        char expected[ERR_TEXT_SIZE_MAX];
        int size = snprintf(expected, sizeof expected, "line %u, column %u: %s", rows[i].line, rows[i].column,
                            rows[i].explanation);
        if (err != ERR_INVALID || strncmp(f->detail.text, expected, (size_t)size) != 0) {
            fail_msg("row %zu: expected \"%s\", got \"%s\"", i, expected,
                     err == ERR_OK ? "" : f->detail.text);
        }
        assert_int_equal(f->detail.err, ERR_INVALID);
        assert_int_equal(f->detail.line, rows[i].line);
        assert_int_equal(f->detail.column, rows[i].column);
        assert_int_equal(config_read(keys, rows[i].text, &f->arena, &f->settings, NULL), ERR_INVALID);
    }
}

/* "[crawl]" and then count lines "exclude = x", plus a text of its size. */
static struct buf long_list(size_t count) {
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_put_string(&text, "[crawl]\n");
    for (size_t i = 0; i < count; i++) {
        buf_put_format(&text, "exclude = %zu\n", i);
    }
    assert_int_equal(text.err, ERR_OK);
    return text;
}

static void list_takes_exactly_its_maximum_in_order(void **state) {
    struct fixture *f = *state;
    struct buf text = long_list(CONFIG_LIST_COUNT_MAX);
    read_ok(f, buf_bytes(&text));
    buf_done(&text);
    assert_int_equal(f->settings.exclude.count, CONFIG_LIST_COUNT_MAX);
    for (size_t i = 0; i < CONFIG_LIST_COUNT_MAX; i++) {
        uint64_t number;
        assert_true(bytes_to_u64(f->settings.exclude.items[i], UINT64_MAX, &number));
        assert_int_equal(number, i);
    }
    text = long_list(CONFIG_LIST_COUNT_MAX + 1);
    assert_int_equal(config_read(keys, buf_bytes(&text), &f->arena, &f->settings, &f->detail), ERR_LIMIT);
    buf_done(&text);
    assert_int_equal(f->detail.err, ERR_LIMIT);
    assert_int_equal(f->detail.line, CONFIG_LIST_COUNT_MAX + 2);
    assert_int_equal(f->detail.column, 11);
}

/* Prefix, then one byte repeated up to 1 MiB, then suffix. */
static void reads_inputs_of_a_mebibyte(void **state) {
    struct fixture *f = *state;
    enum { SIZE = 1 << 20 };
    static const struct {
        const char *prefix;
        uint8_t filler;
        const char *suffix;
        enum err err;
    } rows[] = {
        {"#", 'x', "", ERR_OK},
        {"", '\n', "", ERR_OK},
        {"", ' ', "", ERR_OK},
        {"name = \"", 'x', "\"", ERR_OK},
        {"name = ", 'x', "", ERR_OK},
        {"name = x", ' ', "", ERR_OK},
        {"", 'x', " = 1", ERR_INVALID},
        {"[", 'x', "]", ERR_INVALID},
        {"", '[', "", ERR_INVALID},
        {"name = \"", '\\', "\"", ERR_INVALID},
        {"name = \"", 'x', "", ERR_INVALID},
        {"[crawl]\nport = ", '9', "", ERR_INVALID},
        {"[crawl]\npolite = ", 'y', "", ERR_INVALID},
        {"[store]\nmedium = ", 'd', "", ERR_INVALID},
        {"[store]\ncache = 1 ", 'K', "", ERR_INVALID},
    };
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        size_t prefix_size = strlen(rows[i].prefix);
        size_t suffix_size = strlen(rows[i].suffix);
        memset(text, rows[i].filler, SIZE);
        memcpy(text, rows[i].prefix, prefix_size);
        memcpy(text + SIZE - suffix_size, rows[i].suffix, suffix_size);
        arena_reset(&f->arena);
        assert_int_equal(config_read(keys, bytes_of(text, SIZE), &f->arena, &f->settings, &f->detail),
                         rows[i].err);
    }
    free(text);
}

static void out_of_memory_is_no_mistake_of_the_file(void **state) {
    struct fixture *f = *state;
    const struct bytes text = BYTES("name = one\nnote = \"two\"\n[crawl]\nexclude = three\nexclude = four\n");
    size_t failures_count = 0;
    for (size_t arena_size = 0;; arena_size += 16) {
        struct arena arena;
        arena_init(&arena, arena_size);
        f->detail.text[0] = '\0';
        enum err err = config_read(keys, text, &arena, &f->settings, &f->detail);
        bool is_done = err == ERR_OK;
        if (is_done) {
            assert_bytes_equal(f->settings.name, BYTES("one"));
            assert_bytes_equal(f->settings.exclude.items[1], BYTES("four"));
        } else {
            assert_int_equal(err, ERR_MEMORY);
            assert_int_equal(f->detail.err, ERR_MEMORY);
            assert_non_null(strstr(f->detail.text, "out of memory"));
            failures_count++;
        }
        arena_done(&arena);
        if (is_done) {
            break;
        }
    }
    assert_true(failures_count >= 5); /* default, text, quoted, item, list */
    struct arena arena;
    arena_init(&arena, 1 << 20);
    allocations_left = 0;
    enum err err = config_read(keys, text, &arena, &f->settings, NULL);
    allocations_left = SIZE_MAX;
    assert_int_equal(err, ERR_MEMORY);
    arena_done(&arena);
}

static void read_too_many_keys(void *argument) {
    struct fixture *f = argument;
    enum { TOO_MANY = 257 };
    static struct config_key many[TOO_MANY + 1];
    for (size_t i = 0; i < TOO_MANY; i++) {
        many[i] = keys[0];
    }
    enum err err = config_read(many, BYTES(""), &f->arena, &f->settings, NULL);
    (void)err;
}

static void aborts_on_more_than_256_keys(void **state) {
    assert_true(aborts(read_too_many_keys, *state, "keys_count <= CONFIG_KEYS_COUNT_MAX"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gives_the_defaults_where_the_file_says_nothing, make, destroy),
        cmocka_unit_test_setup_teardown(reads_every_type, make, destroy),
        cmocka_unit_test_setup_teardown(reads_text_with_quotes_escapes_and_comments, make, destroy),
        cmocka_unit_test_setup_teardown(quotes_are_for_every_type, make, destroy),
        cmocka_unit_test_setup_teardown(text_outlives_the_file, make, destroy),
        cmocka_unit_test_setup_teardown(section_may_come_in_pieces, make, destroy),
        cmocka_unit_test_setup_teardown(names_line_and_column_of_each_mistake, make, destroy),
        cmocka_unit_test_setup_teardown(list_takes_exactly_its_maximum_in_order, make, destroy),
        cmocka_unit_test_setup_teardown(reads_inputs_of_a_mebibyte, make, destroy),
        cmocka_unit_test_setup_teardown(out_of_memory_is_no_mistake_of_the_file, make, destroy),
        cmocka_unit_test_setup_teardown(aborts_on_more_than_256_keys, make, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
