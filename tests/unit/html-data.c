/*
 * html-data - the HTML tokenizer against data made by others: every case of the html5lib-tests, fed whole,
 * byte by byte, and in pieces of three bytes.
 *
 * The data is not part of the project (see MNEMON_TEST_DATA). Cases that we fail on purpose stand in
 * html-exceptions.txt with their reason; one that passes again must leave that file. Parse errors are not
 * compared: the tokenizer does not report them.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/utf8.h"
#include "exceptions.h"
#include "unit.h"
#include "web/html/html.h"

enum { PATH_SIZE_MAX = 4096, REPORT_SIZE_MAX = 1 << 20 };

struct run {
    const char *file;
    struct exceptions exceptions;
    struct buf failures; /* one line each */
    size_t cases_count;
};

/*
 * Tokens are compared as text, one a line, in the form of the cases: ["StartTag","a",{"href":"x"},true].
 * Strings are written by put_string(), not by JSON's rules: cases with lone surrogates are no JSON text.
 */
static void put_string(struct buf *out, struct bytes text) {
    buf_put_byte(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte < ' ' || byte == '"' || byte == '\\') {
            buf_put_format(out, "\\x%02x", byte);
        } else {
            buf_put_byte(out, byte);
        }
    }
    buf_put_byte(out, '"');
}

static void put_decoded(struct buf *out, struct bytes text, unsigned decoding) {
    struct buf decoded;
    buf_init(&decoded, REPORT_SIZE_MAX);
    html_decode(&decoded, text, decoding);
    put_string(out, buf_bytes(&decoded));
    buf_done(&decoded);
}

/* "\u0000" in the data once more, where the case says doubleEscaped. Surrogates become three bytes each. */
static void put_unescaped(struct buf *out, struct bytes text, bool is_double_escaped) {
    for (size_t i = 0; i < text.size; i++) {
        unsigned code = 0;
        if (is_double_escaped && text.size - i >= 6 && text.data[i] == '\\' && text.data[i + 1] == 'u' &&
            sscanf((const char *)text.data + i + 2, "%4x", &code) == 1) {
            uint8_t encoded[UTF8_LENGTH_MAX] = {(uint8_t)(0xe0 | code >> 12),
                                                (uint8_t)(0x80 | (code >> 6 & 0x3f)),
                                                (uint8_t)(0x80 | (code & 0x3f))};
            bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
            size_t size = is_surrogate ? 3 : utf8_encode(code, encoded);
            buf_put(out, bytes_of(encoded, size));
            i += 5;
        } else {
            buf_put_byte(out, text.data[i]);
        }
    }
}

/*
 * What we make of the input
 */

struct printer {
    struct buf lines;
    struct buf text;    /* adjacent text is one token */
    struct buf comment; /* parts of one */
    struct buf source;  /* of all tokens: must be the input in the end */
};

static void flush_text(struct printer *printer) {
    if (printer->text.size > 0) {
        buf_put_string(&printer->lines, "[\"Character\",");
        put_string(&printer->lines, buf_bytes(&printer->text));
        buf_put_string(&printer->lines, "]\n");
        buf_clear(&printer->text);
    }
}

static int compare_names(const void *a, const void *b) {
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Sorted, as the expected ones are. */
static void put_attributes(struct buf *out, const struct html_token *token) {
    struct buf lines[HTML_ATTRIBUTES_MAX];
    struct bytes sorted[HTML_ATTRIBUTES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < token->attributes_count; i++) {
        const struct html_attribute *attribute = &token->attributes[i];
        if (html_find_attribute(token, html_attribute_name(token, attribute)) != attribute) {
            continue;
        }
        buf_init(&lines[count], REPORT_SIZE_MAX);
        put_decoded(&lines[count], html_attribute_name(token, attribute), HTML_DECODING_NAME);
        buf_put_byte(&lines[count], ':');
        put_decoded(&lines[count], html_attribute_value(token, attribute), HTML_DECODING_VALUE);
        sorted[count] = buf_bytes(&lines[count]);
        count++;
    }
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 0; i < count; i++) {
        buf_put(out, sorted[i]);
        buf_put_byte(out, ',');
    }
    for (size_t i = 0; i < count; i++) {
        buf_done(&lines[i]);
    }
}

static void put_id(struct buf *out, struct bytes id) {
    buf_put_byte(out, ',');
    if (id.data == NULL) {
        buf_put_string(out, "null");
    } else {
        put_decoded(out, id, HTML_DECODE_NUL);
    }
}

/* The tokenizer only finds where a doctype ends; nobody but this test asks what it says. */
struct doctype {
    struct bytes name;
    struct bytes ids[2]; /* public and system identifier; .data is NULL if there is none */
    bool is_quirky;
};

static bool skip_word(struct bytes *text, struct bytes word) {
    if (!bytes_starts_with_ignore_case(*text, word)) {
        return false;
    }
    *text = bytes_skip(*text, word.size);
    return true;
}

/* "…" or '…'. False where the quote is not closed; what there is of it counts all the same. */
static bool take_id(struct bytes *text, struct bytes *ret_id) {
    uint8_t quote = text->data[0];
    *text = bytes_skip(*text, 1);
    size_t size = bytes_find_byte(*text, quote);
    *ret_id = bytes_slice(*text, 0, size);
    if (size == text->size) {
        *text = bytes_skip(*text, size);
        return false;
    }
    *text = bytes_skip(*text, size + 1);
    return true;
}

static bool starts_with_quote(struct bytes text) {
    return text.size > 0 && (text.data[0] == '"' || text.data[0] == '\'');
}

/* Behind the name. False where the standard asks for quirks mode. */
static bool parse_ids(struct doctype *doctype, struct bytes text, bool is_open) {
    bytes_skip_spaces(&text);
    if (text.size == 0) {
        return !is_open;
    }
    bool is_public = skip_word(&text, BYTES("public"));
    if (!is_public && !skip_word(&text, BYTES("system"))) {
        return false;
    }
    bytes_skip_spaces(&text);
    if (!starts_with_quote(text) || !take_id(&text, &doctype->ids[is_public ? 0 : 1])) {
        return false;
    }
    bytes_skip_spaces(&text);
    if (is_public) {
        if (text.size == 0) {
            return !is_open;
        }
        if (!starts_with_quote(text) || !take_id(&text, &doctype->ids[1])) {
            return false;
        }
        bytes_skip_spaces(&text);
    }
    /* What follows the system identifier is ignored, but an end of the input there is not. */
    return text.size > 0 || !is_open;
}

/* What the source of a doctype says. Without a '>' the input ended in it. */
static struct doctype doctype_parse(struct bytes source) {
    struct doctype doctype = {0};
    bool is_open = source.data[source.size - 1] != '>';
    struct bytes text = bytes_slice(source, sizeof "<!DOCTYPE" - 1, source.size - (is_open ? 0 : 1));
    bytes_skip_spaces(&text);
    size_t size = 0;
    while (size < text.size && !byte_is_space(text.data[size])) {
        size++;
    }
    doctype.name = bytes_slice(text, 0, size);
    doctype.is_quirky = size == 0 || !parse_ids(&doctype, bytes_skip(text, size), is_open);
    return doctype;
}

static void print_doctype(struct buf *out, struct bytes source) {
    struct doctype doctype = doctype_parse(source);
    buf_put_string(out, "[\"DOCTYPE\",");
    if (doctype.name.size == 0) {
        buf_put_string(out, "null");
    } else {
        put_decoded(out, doctype.name, HTML_DECODING_NAME);
    }
    put_id(out, doctype.ids[0]);
    put_id(out, doctype.ids[1]);
    buf_put_string(out, doctype.is_quirky ? ",false]\n" : ",true]\n");
}

static void print_token(struct printer *printer, const struct html_token *token) {
    struct buf *out = &printer->lines;
    buf_put(&printer->source, token->source);
    if (token->kind == HTML_TEXT) {
        html_decode(&printer->text, token->text, token->decoding);
        return;
    }
    if (token->kind == HTML_SKIPPED) {
        return;
    }
    flush_text(printer);
    switch (token->kind) {
    case HTML_START_TAG:
        buf_put_string(out, "[\"StartTag\",");
        put_decoded(out, token->name, HTML_DECODING_NAME);
        buf_put_string(out, ",{");
        put_attributes(out, token);
        buf_put_string(out, token->is_self_closing ? "},true]\n" : "}]\n");
        break;
    case HTML_END_TAG:
        buf_put_string(out, "[\"EndTag\",");
        put_decoded(out, token->name, HTML_DECODING_NAME);
        buf_put_string(out, "]\n");
        break;
    case HTML_COMMENT:
        html_decode(&printer->comment, token->text, token->decoding);
        if (token->is_end) {
            buf_put_string(out, "[\"Comment\",");
            put_string(out, buf_bytes(&printer->comment));
            buf_put_string(out, "]\n");
            buf_clear(&printer->comment);
        }
        break;
    case HTML_DOCTYPE:
        print_doctype(out, token->source);
        break;
    default:
        break;
    }
}

static void print_tokens(struct printer *printer, struct bytes input, size_t piece_size,
                         enum html_model model, struct bytes last_start_tag) {
    buf_init(&printer->lines, REPORT_SIZE_MAX);
    buf_init(&printer->text, REPORT_SIZE_MAX);
    buf_init(&printer->comment, REPORT_SIZE_MAX);
    buf_init(&printer->source, REPORT_SIZE_MAX);
    static struct html html;
    struct html_token token;
    html_init(&html);
    html_start(&html);
    html_set_model(&html, model, last_start_tag);
    for (size_t from = 0; from < input.size; from += piece_size) {
        size_t to = input.size - from < piece_size ? input.size : from + piece_size;
        html_feed(&html, bytes_slice(input, from, to));
        while (html_next(&html, &token)) {
            print_token(printer, &token);
        }
    }
    html_end(&html);
    bool has_end = false;
    while (html_next(&html, &token)) {
        has_end = token.kind == HTML_END;
        print_token(printer, &token);
    }
    assert_true(has_end);
    assert_int_equal(html_err(&html), ERR_OK);
    flush_text(printer);
    html_done(&html);
    assert_bytes_equal(buf_bytes(&printer->source), input);
}

static void printer_done(struct printer *printer) {
    buf_done(&printer->lines);
    buf_done(&printer->text);
    buf_done(&printer->comment);
    buf_done(&printer->source);
}

/*
 * What the case expects
 */

static void put_json_string(struct buf *out, const json_t *value, bool is_double_escaped) {
    if (!json_is_string(value)) {
        buf_put_string(out, "null");
        return;
    }
    struct buf text;
    buf_init(&text, REPORT_SIZE_MAX);
    put_unescaped(&text, bytes_of(json_string_value(value), json_string_length(value)), is_double_escaped);
    put_string(out, buf_bytes(&text));
    buf_done(&text);
}

static void put_expected_attributes(struct buf *out, json_t *attributes, bool is_double_escaped) {
    struct buf lines[HTML_ATTRIBUTES_MAX];
    struct bytes sorted[HTML_ATTRIBUTES_MAX];
    size_t count = 0;
    const char *name;
    json_t *value;
    json_object_foreach(attributes, name, value) {
        buf_init(&lines[count], REPORT_SIZE_MAX);
        json_t *name_value = json_string(name);
        put_json_string(&lines[count], name_value, is_double_escaped);
        json_decref(name_value);
        buf_put_byte(&lines[count], ':');
        put_json_string(&lines[count], value, is_double_escaped);
        sorted[count] = buf_bytes(&lines[count]);
        count++;
    }
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 0; i < count; i++) {
        buf_put(out, sorted[i]);
        buf_put_byte(out, ',');
    }
    for (size_t i = 0; i < count; i++) {
        buf_done(&lines[i]);
    }
}

static void put_expected(struct buf *out, const json_t *tokens, bool is_double_escaped) {
    size_t index;
    const json_t *token;
    json_array_foreach(tokens, index, token) {
        buf_put_byte(out, '[');
        size_t part_index;
        json_t *part;
        json_array_foreach(token, part_index, part) {
            buf_put_string(out, part_index > 0 ? "," : "");
            if (json_is_object(part)) {
                buf_put_byte(out, '{');
                put_expected_attributes(out, part, is_double_escaped);
                buf_put_byte(out, '}');
            } else if (json_is_boolean(part)) {
                buf_put_string(out, json_is_true(part) ? "true" : "false");
            } else {
                put_json_string(out, part, is_double_escaped && part_index > 0);
            }
        }
        buf_put_string(out, "]\n");
    }
}

/*
 * Cases
 */

static enum html_model model_of(const char *state) {
    static const struct {
        const char *state;
        enum html_model model;
    } states[] = {
        {"Data state", HTML_DATA},          {"PLAINTEXT state", HTML_PLAINTEXT},
        {"RCDATA state", HTML_RCDATA},      {"RAWTEXT state", HTML_RAWTEXT},
        {"Script data state", HTML_SCRIPT}, {"CDATA section state", HTML_CDATA},
    };
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (strcmp(states[i].state, state) == 0) {
            return states[i].model;
        }
    }
    fail_msg("no such state: %s", state);
    return HTML_DATA;
}

static void report(struct run *run, struct bytes input, const char *state, size_t piece_size,
                   struct bytes want, struct bytes got) {
    if (bytes_equal(want, got)) {
        return;
    }
    struct buf key;
    buf_init(&key, REPORT_SIZE_MAX);
    buf_put_format(&key, "%s\t", run->file);
    json_quote(&key, input);
    if (!exceptions_expect(&run->exceptions, buf_bytes(&key))) {
        buf_put_format(&run->failures, "%.*s (%s, pieces of %zu)\n  want %.*s  got  %.*s",
                       BYTES_ARG(buf_bytes(&key)), state, piece_size, BYTES_ARG(want), BYTES_ARG(got));
    }
    buf_done(&key);
}

static void run_case_in(struct run *run, const json_t *test, const char *state) {
    bool is_double_escaped = json_is_true(json_object_get(test, "doubleEscaped"));
    const json_t *input_value = json_object_get(test, "input");
    const json_t *last = json_object_get(test, "lastStartTag");
    struct buf input;
    struct buf want;
    buf_init(&input, REPORT_SIZE_MAX);
    buf_init(&want, REPORT_SIZE_MAX);
    put_unescaped(&input, bytes_of(json_string_value(input_value), json_string_length(input_value)),
                  is_double_escaped);
    put_expected(&want, json_object_get(test, "output"), is_double_escaped);
    static const size_t piece_sizes[] = {REPORT_SIZE_MAX, 1, 3};
    for (size_t i = 0; i < sizeof piece_sizes / sizeof *piece_sizes; i++) {
        struct printer printer;
        print_tokens(&printer, buf_bytes(&input), piece_sizes[i], model_of(state),
                     bytes_of(json_string_value(last), json_string_length(last)));
        report(run, buf_bytes(&input), state, piece_sizes[i], buf_bytes(&want), buf_bytes(&printer.lines));
        printer_done(&printer);
    }
    run->cases_count++;
    buf_done(&input);
    buf_done(&want);
}

static void run_case(struct run *run, const json_t *test) {
    const json_t *states = json_object_get(test, "initialStates");
    if (states == NULL) {
        run_case_in(run, test, "Data state");
        return;
    }
    size_t index;
    const json_t *state;
    json_array_foreach(states, index, state) {
        run_case_in(run, test, json_string_value(state));
    }
}

static json_t *load(const char *file) {
    char path[PATH_SIZE_MAX];
    const char *folder = getenv("MNEMON_TEST_DATA");
    folder = folder != NULL ? folder : MNEMON_SOURCE_ROOT "/../shared/data";
    snprintf(path, sizeof path, "%s/%s", folder, file);
    json_t *cases = json_load_file(path, JSON_ALLOW_NUL, NULL);
    if (cases == NULL) {
        print_message("# skipped: no test data\n");
        skip();
    }
    return cases;
}

static void run_file(const char *file) {
    json_t *cases = load(file);
    static struct run run;
    run = (struct run){.file = file};
    buf_init(&run.failures, REPORT_SIZE_MAX);
    exceptions_read(&run.exceptions, "html-exceptions.txt");
    size_t index;
    const json_t *test;
    json_array_foreach(json_object_get(cases, "tests"), index, test) {
        run_case(&run, test);
    }
    exceptions_put_unused(&run.exceptions, file, &run.failures);
    print_message("# %s: %zu cases\n", file, run.cases_count);
    assert_true(run.cases_count > 0);
    if (run.failures.size > 0) {
        print_error("%s", buf_string(&run.failures));
        fail();
    }
    buf_done(&run.failures);
    json_decref(cases);
}

static void content_models(void **state) {
    (void)state;
    run_file("html/contentModelFlags.test");
}

static void domjs(void **state) {
    (void)state;
    run_file("html/domjs.test");
}

static void entities(void **state) {
    (void)state;
    run_file("html/entities.test");
}

static void escape_flag(void **state) {
    (void)state;
    run_file("html/escapeFlag.test");
}

static void named_entities(void **state) {
    (void)state;
    run_file("html/namedEntities.test");
}

static void test1(void **state) {
    (void)state;
    run_file("html/test1.test");
}

static void test2(void **state) {
    (void)state;
    run_file("html/test2.test");
}

static void test4(void **state) {
    (void)state;
    run_file("html/test4.test");
}

static void unicode(void **state) {
    (void)state;
    run_file("html/unicodeChars.test");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_models), cmocka_unit_test(domjs),          cmocka_unit_test(entities),
        cmocka_unit_test(escape_flag),    cmocka_unit_test(named_entities), cmocka_unit_test(test1),
        cmocka_unit_test(test2),          cmocka_unit_test(test4),          cmocka_unit_test(unicode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
