/* pcp: the bytes of PCP and NAT-PMP, as RFC 6887 and RFC 6886 draw them, and what is no answer. */
#include "net/pcp.h"

#include "base/hex.h"
#include "unit.h"

enum { MESSAGE_SIZE_MAX = 128 };

static struct pcp_wish wish_of(enum pcp_protocol protocol, uint32_t lifetime_s) {
    return (struct pcp_wish){.protocol = protocol,
                             .nonce = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                             .own = address_ipv4(10, 7, 0, 2, 7070),
                             .outer_port = 7071,
                             .lifetime_s = lifetime_s};
}

static struct bytes unhex(const char *text, uint8_t out[MESSAGE_SIZE_MAX]) {
    size_t size = strlen(text) / 2;
    assert_true(size <= MESSAGE_SIZE_MAX && hex_decode(bytes_of_string(text), out, size));
    return bytes_of(out, size);
}

static void check_hex(struct bytes bytes, const char *text) {
    uint8_t memory[MESSAGE_SIZE_MAX];
    struct bytes wanted = unhex(text, memory);
    assert_true(bytes_equal(bytes, wanted));
}

static const char pcp_question[] = "02010000"
                                   "00000e10"
                                   "00000000000000000000ffff0a070002"
                                   "0102030405060708090a0b0c"
                                   "11000000"
                                   "1b9e1b9f"
                                   "00000000000000000000ffff00000000";
static const char pcp_answer[] = "02810000"
                                 "00000708"
                                 "0000002a000000000000000000000000"
                                 "0102030405060708090a0b0c"
                                 "11000000"
                                 "1b9e1ba0"
                                 "00000000000000000000ffff5db8d701";

static void asks_by_pcp(void **state) {
    uint8_t out[PCP_QUESTION_SIZE_MAX];
    struct pcp_wish wish = wish_of(PCP_UDP, 3600);
    (void)state;
    check_hex(pcp_write(&wish, out), pcp_question);
}

static void reads_what_pcp_granted(void **state) {
    uint8_t memory[MESSAGE_SIZE_MAX];
    struct pcp_wish wish = wish_of(PCP_UDP, 3600);
    struct pcp_answer answer;
    struct address outer = address_ipv4(93, 184, 215, 1, 7072);
    (void)state;
    assert_int_equal(pcp_read(unhex(pcp_answer, memory), &wish, &answer), PCP_ANSWER);
    assert_int_equal(answer.result, 0);
    assert_int_equal(answer.lifetime_s, 1800);
    assert_true(address_equal(&answer.outer, &outer));
}

static void bounds_a_lifetime_that_never_ends(void **state) {
    uint8_t memory[MESSAGE_SIZE_MAX];
    struct pcp_wish wish = wish_of(PCP_UDP, 3600);
    struct pcp_answer answer;
    struct bytes message = unhex(pcp_answer, memory);
    (void)state;
    memset(memory + 4, 0xff, 4);
    assert_int_equal(pcp_read(message, &wish, &answer), PCP_ANSWER);
    assert_int_equal(answer.lifetime_s, PCP_LIFETIME_S_MAX);
}

/* One byte of these makes it another's, or senseless. */
static void passes_over_what_answers_another_question(void **state) {
    static const size_t places[] = {0, 1, 24, 35, 36, 40, 41};
    struct pcp_wish wish = wish_of(PCP_UDP, 3600);
    struct pcp_answer answer;
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint8_t memory[MESSAGE_SIZE_MAX];
        struct bytes message = unhex(pcp_answer, memory);
        memory[places[i]] ^= 1;
        assert_int_equal(pcp_read(message, &wish, &answer), PCP_OTHER);
    }
    for (size_t size = 0; size < sizeof pcp_answer / 2; size++) {
        uint8_t memory[MESSAGE_SIZE_MAX];
        struct bytes message = unhex(pcp_answer, memory);
        assert_int_equal(pcp_read(bytes_slice(message, 0, size), &wish, &answer), PCP_OTHER);
    }
}

static void passes_over_a_mapping_of_no_port_or_of_no_time(void **state) {
    uint8_t memory[MESSAGE_SIZE_MAX];
    struct pcp_wish wish = wish_of(PCP_UDP, 3600);
    struct pcp_answer answer;
    struct bytes message = unhex(pcp_answer, memory);
    (void)state;
    memset(memory + 42, 0, 2);
    assert_int_equal(pcp_read(message, &wish, &answer), PCP_OTHER);
    message = unhex(pcp_answer, memory);
    memset(memory + 4, 0, 4);
    assert_int_equal(pcp_read(message, &wish, &answer), PCP_OTHER);
    wish.lifetime_s = 0; /* that was what we wanted */
    assert_int_equal(pcp_read(message, &wish, &answer), PCP_ANSWER);
}

static void reads_why_not(void **state) {
    uint8_t memory[MESSAGE_SIZE_MAX];
    struct pcp_wish wish = wish_of(PCP_UDP, 3600);
    struct pcp_answer answer;
    struct bytes message = unhex(pcp_answer, memory);
    (void)state;
    memory[3] = 2;
    assert_int_equal(pcp_read(message, &wish, &answer), PCP_ANSWER);
    assert_string_equal(pcp_result_text(answer.result), "it does not allow that");
    assert_string_equal(pcp_result_text(255), "it does not say why");
    assert_string_equal(natpmp_result_text(65535), "it does not say why");
}

static void sees_a_router_that_is_older_than_pcp(void **state) {
    uint8_t memory[MESSAGE_SIZE_MAX];
    struct pcp_wish wish = wish_of(PCP_TCP, 3600);
    struct pcp_answer answer;
    (void)state;
    assert_int_equal(pcp_read(unhex("0081000100000005", memory), &wish, &answer), PCP_IS_NATPMP);
    assert_int_equal(pcp_read(unhex("0081000000000005", memory), &wish, &answer), PCP_OTHER);
}

static void speaks_natpmp(void **state) {
    uint8_t memory[MESSAGE_SIZE_MAX];
    uint8_t out[PCP_QUESTION_SIZE_MAX];
    struct pcp_wish wish = wish_of(PCP_TCP, 3600);
    struct pcp_answer answer;
    struct address outer = address_ipv4(93, 184, 215, 1, 0);
    (void)state;
    check_hex(natpmp_write_address(out), "0000");
    check_hex(natpmp_write_port(&wish, out), "000200001b9e1b9f00000e10");
    assert_true(natpmp_read_address(unhex("008000000000002a5db8d701", memory), &answer));
    assert_true(address_equal(&answer.outer, &outer));
    assert_true(natpmp_read_port(unhex("008200000000002a1b9e1ba000000e10", memory), &wish, &answer));
    assert_int_equal(answer.outer.port, 7072);
    assert_int_equal(answer.lifetime_s, 3600);
    assert_true(natpmp_read_port(unhex("008200020000002a", memory), &wish, &answer));
    assert_int_equal(answer.result, 2);
    wish.lifetime_s = 0;
    check_hex(natpmp_write_port(&wish, out), "000200001b9e000000000000");
}

static void passes_over_natpmp_for_another_question(void **state) {
    static const char *const others[] = {
        "008100000000002a1b9e1ba000000e10", /* UDP */
        "008200000000002a1b9d1ba000000e10", /* another port */
        "008200000000002a1b9e000000000e10", /* no port */
        "008200000000002a1b9e1ba000000000", /* no time */
        "018200000000002a1b9e1ba000000e10", /* another version */
        "008200000000002a1b9e1ba0",         "0082", "",
    };
    struct pcp_wish wish = wish_of(PCP_TCP, 3600);
    struct pcp_answer answer;
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint8_t memory[MESSAGE_SIZE_MAX];
        assert_false(natpmp_read_port(unhex(others[i], memory), &wish, &answer));
        assert_false(natpmp_read_address(unhex(others[i], memory), &answer));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_by_pcp),
        cmocka_unit_test(reads_what_pcp_granted),
        cmocka_unit_test(bounds_a_lifetime_that_never_ends),
        cmocka_unit_test(passes_over_what_answers_another_question),
        cmocka_unit_test(passes_over_a_mapping_of_no_port_or_of_no_time),
        cmocka_unit_test(reads_why_not),
        cmocka_unit_test(sees_a_router_that_is_older_than_pcp),
        cmocka_unit_test(speaks_natpmp),
        cmocka_unit_test(passes_over_natpmp_for_another_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
