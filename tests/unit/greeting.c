/* greeting: the vectors of docs/protocol/charter.md, and what is said about a refusal. */
#include "protocol/ring/greeting.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hex.h"
#include "unit.h"

enum { DOCUMENT_SIZE_MAX = 1 << 16 };

static const uint8_t membership_bytes[] = {0xaa, 0xbb};

/* As the document describes them. */
static struct greeting make(uint8_t kind) {
    struct greeting greeting = {
        .kind = kind,
        .version = 7,
        .membership = bytes_of(membership_bytes, sizeof membership_bytes),
        .wants_answer = true,
        .reason = GREETING_NO_MEMBER + MEMBERSHIP_MISSING,
        .name = "films",
        .offset = 1024,
        .size = 1027,
        .piece = BYTES("mnc"),
    };
    for (uint8_t i = 0; i < CHARTER_ID_SIZE; i++) {
        greeting.ring[i] = i;
    }
    return greeting;
}

static struct bytes read_document(char *memory) {
    FILE *file = fopen(MNEMON_SOURCE_ROOT "/docs/protocol/charter.md", "rb");
    assert_non_null(file);
    size_t size = fread(memory, 1, DOCUMENT_SIZE_MAX, file);
    assert_true(size > 0 && size < DOCUMENT_SIZE_MAX);
    fclose(file);
    return bytes_of(memory, size);
}

static size_t parse_hex(struct bytes text, uint8_t out[GREETING_SIZE_MAX]) {
    if (bytes_equal(text, BYTES("-"))) {
        return 0;
    }
    assert_true(text.size / 2 <= GREETING_SIZE_MAX && hex_decode(text, out, text.size / 2));
    return text.size / 2;
}

static void check_accepted(uint8_t kind, struct bytes digits) {
    uint8_t stated[GREETING_SIZE_MAX];
    uint8_t written[GREETING_SIZE_MAX];
    struct bytes encoding = bytes_of(stated, parse_hex(digits, stated));
    struct greeting greeting = make(kind);
    struct bytes own = greeting_write(&greeting, written);
    assert_int_equal(own.size, encoding.size);
    assert_memory_equal(own.data, encoding.data, own.size);

    struct greeting back;
    assert_int_equal(greeting_read(encoding, &back, NULL), ERR_OK);
    own = greeting_write(&back, written);
    assert_int_equal(own.size, encoding.size);
    assert_memory_equal(own.data, encoding.data, own.size);
    for (size_t size = 0; size < encoding.size; size++) {
        assert_int_equal(greeting_read(bytes_slice(encoding, 0, size), &back, NULL), ERR_TRUNCATED);
    }
}

static void check_rejected(struct bytes line) {
    uint8_t memory[GREETING_SIZE_MAX];
    struct greeting greeting;
    size_t colon = bytes_find(line, BYTES(" : "));
    assert_true(colon < line.size);
    struct bytes input = bytes_of(memory, parse_hex(bytes_slice(line, 0, colon), memory));
    const char *found = err_name(greeting_read(input, &greeting, NULL));
    if (!bytes_equal(bytes_of_string(found), bytes_skip(line, colon + 3))) {
        fail_msg("%.*s: %s", BYTES_ARG(line), found);
    }
}

static void is_as_documented(void **state) {
    static const char *const names[] = {
        [GREETING_HELLO] = "hello = ",
        [GREETING_REFUSE] = "refuse = ",
        [GREETING_ASK] = "ask = ",
        [GREETING_PIECE] = "piece = ",
    };
    (void)state;
    char *memory = malloc(DOCUMENT_SIZE_MAX);
    assert_non_null(memory);
    struct bytes rest = read_document(memory);
    struct bytes line;
    unsigned accepted = 0;
    unsigned rejected = 0;
    while (bytes_split(&rest, '\n', &line)) {
        for (uint8_t kind = GREETING_HELLO; kind < GREETING_KINDS_END; kind++) {
            struct bytes name = bytes_of_string(names[kind]);
            if (bytes_starts_with(line, name)) {
                check_accepted(kind, bytes_skip(line, name.size));
                accepted++;
            }
        }
        if (bytes_starts_with(line, BYTES("reject "))) {
            check_rejected(bytes_skip(line, 7));
            rejected++;
        }
    }
    assert_int_equal(accepted, 4);
    assert_true(rejected >= 10);
    free(memory);
}

static void the_largest_fits_a_datagram(void **state) {
    (void)state;
    static const uint8_t piece[GREETING_PIECE_SIZE_MAX];
    uint8_t memory[GREETING_SIZE_MAX];
    struct greeting back;
    struct greeting greeting = make(GREETING_PIECE);
    greeting.size = CHARTER_SIZE_MAX;
    greeting.piece = bytes_of(piece, sizeof piece);
    assert_int_equal(greeting_read(greeting_write(&greeting, memory), &back, NULL), ERR_OK);
    assert_int_equal(back.piece.size, sizeof piece);
}

static void every_reason_has_words(void **state) {
    (void)state;
    assert_string_equal(greeting_reason_text(GREETING_OTHER_RING), "it belongs to another ring");
    assert_string_equal(greeting_reason_text(GREETING_NO_MEMBER + MEMBERSHIP_EXPIRED),
                        membership_verdict_text(MEMBERSHIP_EXPIRED));
    for (unsigned reason = 0; reason <= UINT8_MAX; reason++) {
        assert_true(strlen(greeting_reason_text((uint8_t)reason)) > 0);
    }
    assert_string_equal(greeting_reason_text(GREETING_NO_MEMBER), "it does not say why");
    assert_string_equal(greeting_reason_text(UINT8_MAX), "it does not say why");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_documented),
        cmocka_unit_test(the_largest_fits_a_datagram),
        cmocka_unit_test(every_reason_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
