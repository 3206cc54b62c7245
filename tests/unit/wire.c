#include "base/wire.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "base/prng.h"
#include "unit.h"

enum { MESSAGE_SIZE_MAX = 64, VALUES_MAX = 8, DOCUMENT_SIZE_MAX = 1 << 16 };

/*
 * The vectors of docs/protocol/wire.md.
 */
enum kind {
    KIND_U8,
    KIND_U16,
    KIND_U32,
    KIND_U64,
    KIND_BOOL,
    KIND_VARINT,
    KIND_BYTES,
    KIND_STRING,
    KINDS_COUNT
};

static const char *const kind_names[KINDS_COUNT] = {"u8",   "u16",    "u32",   "u64",
                                                    "bool", "varint", "bytes", "string"};

struct value {
    enum kind kind;
    uint64_t bound; /* the M of "<=M" or the N of "[N]" */
    bool is_bounded;
    uint64_t number;
    uint8_t contents[MESSAGE_SIZE_MAX];
    size_t contents_size;
};

struct message {
    struct value values[VALUES_MAX];
    size_t values_count;
    uint8_t encoding[MESSAGE_SIZE_MAX];
    size_t encoding_size;
};

static size_t parse_hex(struct bytes text, uint8_t out[MESSAGE_SIZE_MAX]) {
    if (bytes_equal(text, BYTES("-"))) {
        return 0;
    }
    assert_true(text.size / 2 <= MESSAGE_SIZE_MAX);
    if (text.size == 0 || !hex_decode(text, out, text.size / 2)) {
        fail_msg("\"%.*s\" is not hexadecimal", BYTES_ARG(text));
    }
    return text.size / 2;
}

/* "varint", "varint<=300", "bytes[4]" */
static void parse_kind(struct bytes text, struct value *value) {
    size_t name_size = 0;
    while (name_size < text.size && text.data[name_size] != '<' && text.data[name_size] != '[') {
        name_size++;
    }
    value->kind = 0;
    while (value->kind < KINDS_COUNT &&
           !bytes_equal(bytes_slice(text, 0, name_size), bytes_of_string(kind_names[value->kind]))) {
        value->kind++;
    }
    struct bytes bound = bytes_skip(text, name_size);
    value->is_bounded = bound.size > 0;
    value->bound = value->kind == KIND_STRING ? SIZE_MAX : UINT64_MAX;
    if (bytes_starts_with(bound, BYTES("<="))) {
        bound = bytes_skip(bound, 2);
    } else if (bytes_starts_with(bound, BYTES("[")) && bytes_ends_with(bound, BYTES("]"))) {
        bound = bytes_slice(bound, 1, bound.size - 1);
    }
    if (value->kind == KINDS_COUNT ||
        (value->is_bounded && !bytes_to_u64(bound, UINT64_MAX, &value->bound))) {
        fail_msg("unknown kind \"%.*s\"", BYTES_ARG(text));
    }
}

static void parse_contents(struct bytes text, struct value *value) {
    switch (value->kind) {
    case KIND_BOOL:
        value->number = bytes_equal(text, BYTES("true"));
        assert_true(value->number == 1 || bytes_equal(text, BYTES("false")));
        break;
    case KIND_BYTES:
    case KIND_STRING:
        value->contents_size = parse_hex(text, value->contents);
        break;
    default:
        assert_true(bytes_to_u64(text, UINT64_MAX, &value->number));
    }
}

/* "u8 7, bool true" or, without contents, "u8, bool". */
static void parse_values(struct bytes text, bool with_contents, struct message *message) {
    struct bytes part;
    while (bytes_split(&text, ',', &part)) {
        assert_true(message->values_count < VALUES_MAX);
        struct value *value = &message->values[message->values_count++];
        *value = (struct value){0};
        part = bytes_trim(part);
        size_t space = bytes_find_byte(part, ' ');
        parse_kind(bytes_slice(part, 0, space), value);
        assert_int_equal(space < part.size, with_contents);
        if (with_contents) {
            parse_contents(bytes_skip(part, space + 1), value);
        }
    }
}

static void write_value(struct wire_writer *writer, const struct value *value) {
    struct bytes contents = bytes_of(value->contents, value->contents_size);
    switch (value->kind) {
    case KIND_U8:
        wire_write_u8(writer, (uint8_t)value->number);
        break;
    case KIND_U16:
        wire_write_u16(writer, (uint16_t)value->number);
        break;
    case KIND_U32:
        wire_write_u32(writer, (uint32_t)value->number);
        break;
    case KIND_U64:
        wire_write_u64(writer, value->number);
        break;
    case KIND_BOOL:
        wire_write_bool(writer, value->number == 1);
        break;
    case KIND_VARINT:
        wire_write_varint(writer, value->number);
        break;
    case KIND_BYTES:
        wire_write_bytes(writer, contents);
        break;
    default:
        wire_write_string(writer, contents);
    }
}

static uint64_t read_number(struct wire_reader *reader, const struct value *value) {
    switch (value->kind) {
    case KIND_U8:
        return value->is_bounded ? wire_read_u8_max(reader, (uint8_t)value->bound) : wire_read_u8(reader);
    case KIND_U16:
        return wire_read_u16(reader);
    case KIND_U32:
        return wire_read_u32(reader);
    case KIND_U64:
        return wire_read_u64(reader);
    case KIND_BOOL:
        return wire_read_bool(reader);
    default:
        return wire_read_varint(reader, value->bound);
    }
}

static struct bytes read_contents(struct wire_reader *reader, const struct value *value) {
    return value->kind == KIND_BYTES ? wire_read_bytes(reader, (size_t)value->bound)
                                     : wire_read_string(reader, (size_t)value->bound);
}

static bool has_contents(const struct value *value) {
    return value->kind == KIND_BYTES || value->kind == KIND_STRING;
}

/* Reads what the message says from the input; the values are checked where the reader is still well. */
static enum err read_message(const struct message *message, struct bytes input, struct err_detail *detail) {
    /* A copy of the exact size lets the sanitizers see a read past the end. */
    uint8_t *exact = input.size == 0 ? NULL : malloc(input.size);
    if (exact != NULL) {
        memcpy(exact, input.data, input.size);
    }
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(exact, input.size));
    for (size_t i = 0; i < message->values_count; i++) {
        const struct value *value = &message->values[i];
        struct bytes contents = bytes_of(NULL, 0);
        uint64_t number = 0;
        if (has_contents(value)) {
            contents = read_contents(&reader, value);
        } else {
            number = read_number(&reader, value);
        }
        bool is_well = reader.err == ERR_OK;
        assert_int_equal(number, is_well ? value->number : 0);
        assert_bytes_equal(contents, bytes_of(value->contents, is_well ? value->contents_size : 0));
    }
    enum err err = wire_reader_finish(&reader, detail);
    free(exact);
    return err;
}

/* "u8 7, bool true = 0701" */
static void check_accepted(struct bytes line) {
    struct message message = {.values_count = 0};
    size_t equals = bytes_find(line, BYTES(" = "));
    assert_true(equals < line.size);
    parse_values(bytes_slice(line, 0, equals), true, &message);
    message.encoding_size = parse_hex(bytes_trim(bytes_skip(line, equals + 3)), message.encoding);
    struct bytes encoding = bytes_of(message.encoding, message.encoding_size);

    uint8_t memory[MESSAGE_SIZE_MAX];
    struct wire_writer writer;
    struct bytes written;
    wire_writer_init(&writer, memory, encoding.size);
    for (size_t i = 0; i < message.values_count; i++) {
        write_value(&writer, &message.values[i]);
    }
    assert_int_equal(wire_writer_finish(&writer, &written), ERR_OK);
    assert_memory_equal(written.data, encoding.data, encoding.size);
    assert_int_equal(written.size, encoding.size);

    struct err_detail detail;
    assert_int_equal(read_message(&message, encoding, &detail), ERR_OK);
    for (size_t size = 0; size < encoding.size; size++) {
        assert_int_equal(read_message(&message, bytes_slice(encoding, 0, size), &detail), ERR_TRUNCATED);
    }
    message.encoding[encoding.size] = 0;
    assert_int_equal(read_message(&message, bytes_of(message.encoding, encoding.size + 1), &detail),
                     ERR_INVALID);
    assert_int_equal(detail.offset, encoding.size);
}

/* The values that come before the error are not in the line: take them from the reader, then they must be
 * equal again. */
static void fill_in_values(struct message *message, struct bytes input) {
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    for (size_t i = 0; i < message->values_count; i++) {
        struct value *value = &message->values[i];
        if (!has_contents(value)) {
            value->number = read_number(&reader, value);
            continue;
        }
        struct bytes contents = read_contents(&reader, value);
        value->contents_size = contents.size;
        if (contents.size > 0) {
            memcpy(value->contents, contents.data, contents.size);
        }
    }
}

/* "u8, varint 0780 : truncated at 1, ends inside a value", behind its "reject " */
static void check_rejected(struct bytes line) {
    struct message message = {.values_count = 0};
    size_t colon = bytes_find(line, BYTES(" : "));
    assert_true(colon < line.size);
    struct bytes left = bytes_slice(line, 0, colon);
    size_t space = left.size;
    while (space > 0 && left.data[space - 1] != ' ') {
        space--;
    }
    parse_values(bytes_trim(bytes_slice(left, 0, space)), false, &message);
    message.encoding_size = parse_hex(bytes_skip(left, space), message.encoding);
    struct bytes encoding = bytes_of(message.encoding, message.encoding_size);
    fill_in_values(&message, encoding);

    struct err_detail detail = {.err = ERR_OK};
    enum err err = read_message(&message, encoding, &detail);
    const char *reason = strstr(detail.text, ": ");
    assert_non_null(reason);
    char found[256];
    snprintf(found, sizeof found, "%s at %zu, %s", err_name(err), detail.offset, reason + 2);
    assert_bytes_equal(bytes_of_string(found), bytes_trim(bytes_skip(line, colon + 3)));
}

static struct bytes vector_in_hand; /* for the message where it fails */

static int name_the_vector(void **state) {
    (void)state;
    if (vector_in_hand.size > 0) {
        print_message("# vector: %.*s\n", BYTES_ARG(vector_in_hand));
    }
    return 0;
}

static struct bytes read_document(char *memory) {
    FILE *file = fopen(MNEMON_SOURCE_ROOT "/docs/protocol/wire.md", "rb");
    if (file == NULL) {
        fail_msg("cannot open %s", MNEMON_SOURCE_ROOT "/docs/protocol/wire.md");
    }
    size_t size = fread(memory, 1, DOCUMENT_SIZE_MAX, file);
    fclose(file);
    assert_true(size < DOCUMENT_SIZE_MAX);
    return bytes_of(memory, size);
}

static void keeps_every_vector_of_the_specification(void **state) {
    (void)state;
    static char memory[DOCUMENT_SIZE_MAX];
    struct bytes document = read_document(memory);
    bool is_inside = false;
    size_t accepted[KINDS_COUNT] = {0};
    size_t rejected_count = 0;
    struct bytes line;
    while (bytes_split(&document, '\n', &line)) {
        if (bytes_starts_with(line, BYTES("```"))) {
            is_inside = bytes_equal(line, BYTES("```vectors"));
            continue;
        }
        if (!is_inside || line.size == 0 || line.data[0] == '#') {
            continue;
        }
        vector_in_hand = line;
        if (bytes_starts_with(line, BYTES("reject "))) {
            check_rejected(bytes_skip(line, strlen("reject ")));
            rejected_count++;
            continue;
        }
        check_accepted(line);
        struct value first = {0};
        parse_kind(bytes_slice(line, 0, bytes_find_byte(line, ' ')), &first);
        accepted[first.kind]++;
    }
    vector_in_hand = bytes_of(NULL, 0);
    for (size_t kind = 0; kind < KINDS_COUNT; kind++) {
        assert_true(accepted[kind] > 0);
    }
    assert_true(rejected_count > 10);
}

/*
 * What vectors cannot say.
 */
static void every_number_survives_as_the_shortest_varint(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t number = prng_u64(&prng) >> prng_below(&prng, 64);
        uint8_t memory[WIRE_VARINT_SIZE_MAX];
        struct wire_writer writer;
        struct bytes written;
        wire_writer_init(&writer, memory, sizeof memory);
        wire_write_varint(&writer, number);
        assert_int_equal(wire_writer_finish(&writer, &written), ERR_OK);
        size_t bits_count = number == 0 ? 1 : 64 - (size_t)__builtin_clzll(number);
        assert_int_equal(written.size, (bits_count + 6) / 7);
        struct wire_reader reader;
        wire_reader_init(&reader, written);
        assert_int_equal(wire_read_varint(&reader, number), number);
        assert_int_equal(wire_reader_finish(&reader, NULL), ERR_OK);
        if (number > 0) {
            wire_reader_init(&reader, written);
            assert_int_equal(wire_read_varint(&reader, number - 1), 0);
            assert_int_equal(wire_reader_finish(&reader, NULL), ERR_LIMIT);
        }
    }
}

static void first_error_sticks_and_later_values_are_empty(void **state) {
    (void)state;
    struct wire_reader reader;
    wire_reader_init(&reader, BYTES("\x01\x02\x03\x04\x05\x06\x07\x08\x09"));
    assert_int_equal(wire_read_u8(&reader), 1);
    assert_int_equal(wire_reader_left(&reader), 8);
    assert_false(wire_read_bool(&reader));
    assert_int_equal(wire_reader_left(&reader), 0);
    assert_int_equal(wire_read_u8(&reader), 0);
    assert_int_equal(wire_read_u16(&reader), 0);
    assert_int_equal(wire_read_u32(&reader), 0);
    assert_int_equal(wire_read_u64(&reader), 0);
    assert_int_equal(wire_read_u8_max(&reader, 9), 0);
    assert_int_equal(wire_read_varint(&reader, 9), 0);
    assert_null(wire_read_bytes(&reader, 1).data);
    assert_int_equal(wire_read_bytes(&reader, 0).size, 0);
    assert_int_equal(wire_read_string(&reader, 9).size, 0);
    uint8_t array[4] = {1, 2, 3, 4};
    wire_read_array(&reader, array, sizeof array);
    assert_memory_equal(array, "\0\0\0\0", 4);
    wire_read_fail(&reader, ERR_CORRUPT, "too late");
    for (unsigned i = 0; i < 2; i++) {
        struct err_detail detail;
        assert_int_equal(wire_reader_finish(&reader, &detail), ERR_INVALID);
        assert_int_equal(detail.offset, 1);
        assert_string_equal(detail.text, "byte 1: value above its maximum");
    }
}

static void protocols_add_their_own_reasons(void **state) {
    (void)state;
    struct wire_reader reader;
    wire_reader_init(&reader, BYTES("\x00\x00\x07"));
    assert_int_equal(wire_read_u16(&reader), 0);
    wire_read_fail(&reader, ERR_UNSUPPORTED, "port 0");
    struct err_detail detail;
    assert_int_equal(wire_reader_finish(&reader, &detail), ERR_UNSUPPORTED);
    assert_int_equal(detail.offset, 2);
    assert_string_equal(detail.text, "byte 2: port 0");
}

static void slices_borrow_the_input_and_arrays_copy_it(void **state) {
    (void)state;
    struct bytes input = BYTES("\x02hiabcde");
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    assert_ptr_equal(wire_read_string(&reader, 2).data, input.data + 1);
    assert_ptr_equal(wire_read_bytes(&reader, 2).data, input.data + 3);
    char array[3];
    wire_read_array(&reader, array, 2);
    wire_read_array(&reader, array + 2, 1);
    wire_read_array(&reader, NULL, 0);
    assert_memory_equal(array, "cde", 3);
    assert_int_equal(wire_reader_finish(&reader, NULL), ERR_OK);
}

static void nothing_is_read_from_an_empty_input_without_memory(void **state) {
    (void)state;
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(NULL, 0));
    assert_int_equal(wire_read_bytes(&reader, 0).size, 0);
    assert_int_equal(wire_reader_left(&reader), 0);
    assert_int_equal(wire_reader_finish(&reader, NULL), ERR_OK);
    assert_int_equal(wire_read_bytes(&reader, SIZE_MAX).size, 0);
    assert_int_equal(wire_reader_finish(&reader, NULL), ERR_TRUNCATED);
}

static void writer_takes_exactly_its_memory(void **state) {
    (void)state;
    static const struct value values[] = {
        {.kind = KIND_U8, .number = 1},           {.kind = KIND_U16, .number = 1},
        {.kind = KIND_U32, .number = 1},          {.kind = KIND_U64, .number = 1},
        {.kind = KIND_BOOL, .number = 1},         {.kind = KIND_VARINT, .number = UINT64_MAX},
        {.kind = KIND_BYTES, .contents_size = 5}, {.kind = KIND_STRING, .contents_size = 5},
    };
    static const size_t sizes[] = {1, 2, 4, 8, 1, 10, 5, 6};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint8_t memory[16];
        struct wire_writer writer;
        struct bytes written = BYTES("untouched");
        memset(memory, 0xee, sizeof memory);
        wire_writer_init(&writer, memory, sizes[i]);
        write_value(&writer, &values[i]);
        assert_int_equal(wire_writer_finish(&writer, &written), ERR_OK);
        assert_int_equal(written.size, sizes[i]);
        assert_int_equal(memory[sizes[i]], 0xee);

        memset(memory, 0xee, sizeof memory);
        written = BYTES("untouched");
        wire_writer_init(&writer, memory, sizes[i] - 1);
        write_value(&writer, &values[i]);
        assert_int_equal(wire_writer_finish(&writer, &written), ERR_LIMIT);
        assert_bytes_equal(written, BYTES("untouched"));
        assert_int_equal(memory[sizes[i] - 1], 0xee);
    }
}

static void writer_writes_nothing_after_an_error(void **state) {
    (void)state;
    uint8_t memory[4] = {0xee, 0xee, 0xee, 0xee};
    struct wire_writer writer;
    struct bytes written;
    wire_writer_init(&writer, memory, 3);
    wire_write_u8(&writer, 1);
    wire_write_u32(&writer, 2);
    wire_write_u8(&writer, 3); /* would fit, but the gap would go unnoticed */
    wire_write_bytes(&writer, bytes_of(NULL, 0));
    assert_int_equal(wire_writer_finish(&writer, &written), ERR_LIMIT);
    assert_memory_equal(memory, "\x01\xee\xee\xee", 4);
}

static void writer_without_memory_writes_an_empty_message(void **state) {
    (void)state;
    struct wire_writer writer;
    struct bytes written = BYTES("old");
    wire_writer_init(&writer, NULL, 0);
    wire_write_bytes(&writer, bytes_of(NULL, 0));
    assert_int_equal(wire_writer_finish(&writer, &written), ERR_OK);
    assert_int_equal(written.size, 0);
    wire_write_u8(&writer, 1);
    assert_int_equal(wire_writer_finish(&writer, &written), ERR_LIMIT);
}

struct coded {
    uint8_t small;
    uint32_t word;
    uint64_t number;
    bool is_so;
    uint8_t array[3];
    struct bytes text;
};

static void code_all(struct wire_coder *coder, struct coded *coded) {
    wire_code_u8(coder, &coded->small, 7);
    wire_code_u32(coder, &coded->word);
    wire_code_u64(coder, &coded->number);
    wire_code_bool(coder, &coded->is_so);
    wire_code_array(coder, coded->array, sizeof coded->array);
    wire_code_string(coder, &coded->text, 8);
    wire_code_check(coder, coded->word != 13, "an unlucky word");
}

static void one_description_serves_both_directions(void **state) {
    (void)state;
    uint8_t memory[MESSAGE_SIZE_MAX];
    struct coded said = {7, 5000, UINT64_MAX, true, {1, 2, 3}, BYTES("text")};
    struct coded heard = {0};
    struct wire_writer writer;
    struct wire_reader reader;
    wire_writer_init(&writer, memory, sizeof memory);
    code_all(&(struct wire_coder){.writer = &writer}, &said);
    wire_reader_init(&reader, wire_writer_bytes(&writer));
    code_all(&(struct wire_coder){.reader = &reader}, &heard);
    assert_int_equal(wire_reader_finish(&reader, NULL), ERR_OK);
    assert_int_equal(heard.small, 7);
    assert_int_equal(heard.word, 5000);
    assert_true(heard.number == UINT64_MAX && heard.is_so);
    assert_memory_equal(heard.array, said.array, sizeof said.array);
    assert_bytes_equal(heard.text, said.text);
}

static void what_is_read_is_checked_and_what_is_written_is_not(void **state) {
    (void)state;
    uint8_t memory[MESSAGE_SIZE_MAX];
    struct coded said = {.word = 13};
    struct wire_writer writer;
    struct wire_reader reader;
    wire_writer_init(&writer, memory, sizeof memory);
    code_all(&(struct wire_coder){.writer = &writer}, &said);
    wire_reader_init(&reader, wire_writer_bytes(&writer));
    code_all(&(struct wire_coder){.reader = &reader}, &said);
    assert_int_equal(wire_reader_finish(&reader, NULL), ERR_INVALID);
    assert_string_equal(reader.reason, "an unlucky word");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(keeps_every_vector_of_the_specification, name_the_vector),
        cmocka_unit_test(every_number_survives_as_the_shortest_varint),
        cmocka_unit_test(first_error_sticks_and_later_values_are_empty),
        cmocka_unit_test(protocols_add_their_own_reasons),
        cmocka_unit_test(slices_borrow_the_input_and_arrays_copy_it),
        cmocka_unit_test(nothing_is_read_from_an_empty_input_without_memory),
        cmocka_unit_test(writer_takes_exactly_its_memory),
        cmocka_unit_test(writer_writes_nothing_after_an_error),
        cmocka_unit_test(writer_without_memory_writes_an_empty_message),
        cmocka_unit_test(one_description_serves_both_directions),
        cmocka_unit_test(what_is_read_is_checked_and_what_is_written_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
