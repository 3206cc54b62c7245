#include "base/address.h"

#include "base/prng.h"
#include "unit.h"

enum { DEFAULT_PORT = 7070 };

static void reads_what_people_write_and_writes_one_form(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *formatted;
        bool is_ipv4;
    } rows[] = {
        {"127.0.0.2:80", "127.0.0.2:80", true},
        {"127.0.0.2", "127.0.0.2:7070", true},
        {"255.255.255.255:65535", "255.255.255.255:65535", true},
        {"0.0.0.0:1", "0.0.0.0:1", true},
        {"[::1]:80", "[::1]:80", false},
        {"[::1]", "[::1]:7070", false},
        {"::1", "[::1]:7070", false},
        {"::", "[::]:7070", false},
        {"[2001:DB8:0:0:0:0:0:1]:443", "[2001:db8::1]:443", false},
        {"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
         false},
        {"[::ffff:10.0.0.1]:80", "10.0.0.1:80", true},
        {"::ffff:10.0.0.1", "10.0.0.1:7070", true},
        {"1111:2222:3333:4444:5555:6666:255.255.255.255", "[1111:2222:3333:4444:5555:6666:ffff:ffff]:7070",
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct address address;
        char text[ADDRESS_TEXT_SIZE_MAX];
        assert_true(address_parse(bytes_of_string(rows[i].text), DEFAULT_PORT, &address));
        assert_ptr_equal(address_format(&address, text), text);
        assert_string_equal(text, rows[i].formatted);
        assert_int_equal(address_is_ipv4(&address), rows[i].is_ipv4);
    }
}

static void refuses_everything_else_and_leaves_the_address(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        ":",
        ":80",
        "localhost",
        "localhost:80",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:+80",
        "127.0.0.1: 80",
        "127.0.0.1:80 ",
        " 127.0.0.1",
        "127.0.0",
        "127.0.0.256",
        "127.0.0.1.1",
        "0x7f.0.0.1",
        "127.1",
        "1:2",
        "[",
        "[]",
        "[]:80",
        "[::1",
        "[::1]80",
        "[::1]x",
        "[::1]:",
        "[::1]:0",
        "[::1]:99999",
        "[127.0.0.1]:80",
        "[::1%lo]:80",
        "::1%lo",
        ":::",
        "[[::1]]:80",
        "::1]:80",
        "12345::1",
        "[ ::1]:80",
        "1:2:3:4:5:6:7:8:9",
        "111111111111111111111111111111111111111111111111111111111111",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct address address = address_ipv4(1, 2, 3, 4, 5);
        const struct address before = address;
        if (address_parse(bytes_of_string(wrong[i]), DEFAULT_PORT, &address)) {
            fail_msg("\"%s\" was read", wrong[i]);
        }
        assert_true(address_equal(&address, &before));
    }
    struct address address;
    assert_false(address_parse(bytes_of(NULL, 0), DEFAULT_PORT, &address));
}

static void refuses_a_zero_byte_inside(void **state) {
    (void)state;
    struct address address;
    assert_false(address_parse(BYTES("127.0.0.1\0:80"), DEFAULT_PORT, &address));
    assert_false(address_parse(BYTES("127.0.0.1\0.evil.example"), DEFAULT_PORT, &address));
    assert_false(address_parse(BYTES("[::1\0]:80"), DEFAULT_PORT, &address));
    assert_false(address_parse(BYTES("::1\0"), DEFAULT_PORT, &address));
}

static void ipv4_equals_its_mapped_form_byte_by_byte(void **state) {
    (void)state;
    struct address made = address_ipv4(10, 0, 0, 1, 80);
    struct address read;
    assert_true(address_parse(BYTES("[::ffff:a00:1]:80"), 0, &read));
    assert_true(address_equal(&made, &read));
    assert_memory_equal(made.ip, read.ip, sizeof made.ip);
    assert_int_equal(made.port, 80);
}

static void differs_by_ip_or_by_port(void **state) {
    (void)state;
    struct address one = address_ipv4(10, 0, 0, 1, 80);
    struct address other_ip = address_ipv4(10, 0, 0, 2, 80);
    struct address other_port = address_ipv4(10, 0, 0, 1, 81);
    assert_false(address_equal(&one, &other_ip));
    assert_false(address_equal(&one, &other_port));
    struct address compatible = one;
    compatible.ip[10] = compatible.ip[11] = 0; /* ::10.0.0.1 is IPv6 */
    assert_false(address_equal(&one, &compatible));
    assert_false(address_is_ipv4(&compatible));
}

static void every_address_is_read_back_from_its_text(void **state) {
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned round = 0; round < 20000; round++) {
        struct address address = address_ipv4(0, 0, 0, 0, (uint16_t)prng_between(&prng, 1, UINT16_MAX));
        size_t fixed = prng_below(&prng, 2) * 12; /* IPv4 or any */
        prng_fill(&prng, address.ip + fixed, sizeof address.ip - fixed);
        for (size_t i = fixed; i < 16; i++) {
            address.ip[i] = prng_below(&prng, 2) == 0 ? 0 : address.ip[i]; /* runs that "::" shortens */
        }
        char text[ADDRESS_TEXT_SIZE_MAX];
        struct address read;
        assert_true(address_parse(bytes_of_string(address_format(&address, text)), 0, &read));
        assert_true(address_equal(&address, &read));
    }
}

static void knows_addresses_of_this_machine_alone(void **state) {
    (void)state;
    static const char *const here[] = {"127.0.0.1", "127.255.3.4", "::1", "::ffff:127.0.0.1"};
    static const char *const elsewhere[] = {"126.0.0.1", "0.0.0.0", "::", "::2", "7f00::1", "::127.0.0.1"};
    struct address address;
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++) {
        assert_true(address_parse(bytes_of_string(here[i]), 1, &address));
        assert_true(address_is_loopback(&address));
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        assert_true(address_parse(bytes_of_string(elsewhere[i]), 1, &address));
        assert_false(address_is_loopback(&address));
    }
}

static void a_peer_is_at_no_address_of_many_or_of_nobody(void **state) {
    (void)state;
    static const char *const possible[] = {"127.0.0.1", "223.255.255.255", "1.0.0.0", "::1", "fe80::1"};
    static const char *const impossible[] = {"0.0.0.0",         "0.1.2.3", "224.0.0.1",
                                             "255.255.255.255", "::",      "ff02::1"};
    struct address address;
    for (size_t i = 0; i < sizeof possible / sizeof possible[0]; i++) {
        assert_true(address_parse(bytes_of_string(possible[i]), 1, &address));
        assert_true(address_is_possible(&address));
        address.port = 0;
        assert_false(address_is_possible(&address));
    }
    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        assert_true(address_parse(bytes_of_string(impossible[i]), 1, &address));
        assert_false(address_is_possible(&address));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_people_write_and_writes_one_form),
        cmocka_unit_test(refuses_everything_else_and_leaves_the_address),
        cmocka_unit_test(refuses_a_zero_byte_inside),
        cmocka_unit_test(ipv4_equals_its_mapped_form_byte_by_byte),
        cmocka_unit_test(differs_by_ip_or_by_port),
        cmocka_unit_test(every_address_is_read_back_from_its_text),
        cmocka_unit_test(knows_addresses_of_this_machine_alone),
        cmocka_unit_test(a_peer_is_at_no_address_of_many_or_of_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
