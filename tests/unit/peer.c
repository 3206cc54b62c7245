#include "base/peer.h"

#include "base/hex.h"
#include "unit.h"

static const struct peer v4 = {.address = {.ip = {[10] = 0xff, [11] = 0xff, 10, 1, 2, 3}, .port = 0x1234},
                               .key = {[0] = 0xaa, [31] = 0xbb}};
static const struct peer v6 = {.address = {.ip = {0x20, 0x01, [15] = 7}, .port = 1}, .key = {[0] = 0xaa}};
static const struct peer keyless = {.address = {.ip = {[10] = 0xff, [11] = 0xff, 10, 1, 2, 3}, .port = 80}};

static const struct {
    enum peer_layout layout;
    const struct peer *peer;
    struct bytes start; /* up to the key */
    bool has_key;
} forms[] = {
    {PEER_TAGGED, &v4, {(const uint8_t *)"\2\12\1\2\3\x34\x12", 7}, true},
    {PEER_TAGGED, &v6, {(const uint8_t *)"\3\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\7\1\0", 19}, true},
    {PEER_TAGGED, &keyless, {(const uint8_t *)"\0\12\1\2\3\x50\0", 7}, false},
    {PEER_MEMBER, &v4, {(const uint8_t *)"\0\12\1\2\3\x34\x12", 7}, true},
    {PEER_MEMBER, &v6, {(const uint8_t *)"\1\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\7\1\0", 19}, true},
    {PEER_PLAIN, &v4, {(const uint8_t *)"\0\0\0\0\0\0\0\0\0\0\xff\xff\12\1\2\3\x34\x12", 18}, true},
    {PEER_PLAIN, &v6, {(const uint8_t *)"\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\7\1\0", 18}, true},
    {PEER_PLAIN, &keyless, {(const uint8_t *)"\0\0\0\0\0\0\0\0\0\0\xff\xff\12\1\2\3\x50\0", 18}, true},
};

static void every_layout_is_as_drawn_and_is_read_back(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        uint8_t memory[PEER_SIZE_MAX];
        struct wire_writer writer;
        struct wire_reader reader;
        struct bytes written;
        struct peer read;
        wire_writer_init(&writer, memory, sizeof memory);
        peer_write(&writer, forms[i].layout, forms[i].peer);
        assert_int_equal(wire_writer_finish(&writer, &written), ERR_OK);
        assert_int_equal(written.size, forms[i].start.size + (forms[i].has_key ? PEER_KEY_SIZE : 0));
        assert_int_equal(written.size, peer_size(forms[i].layout, forms[i].peer));
        assert_memory_equal(written.data, forms[i].start.data, forms[i].start.size);
        if (forms[i].has_key) {
            assert_memory_equal(written.data + forms[i].start.size, forms[i].peer->key, PEER_KEY_SIZE);
        }
        wire_reader_init(&reader, written);
        peer_read(&reader, forms[i].layout, &read);
        assert_int_equal(wire_reader_finish(&reader, NULL), ERR_OK);
        assert_true(peer_equal(&read, forms[i].peer));
        for (size_t size = 0; size < written.size; size++) {
            wire_reader_init(&reader, bytes_of(written.data, size));
            peer_read(&reader, forms[i].layout, &read);
            assert_int_not_equal(wire_reader_finish(&reader, NULL), ERR_OK);
        }
    }
}

static void an_address_is_the_same_without_the_key(void **state) {
    (void)state;
    const enum peer_layout layouts[] = {PEER_MEMBER, PEER_PLAIN};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        uint8_t memory[PEER_SIZE_MAX];
        struct wire_writer writer;
        struct wire_reader reader;
        struct address read;
        wire_writer_init(&writer, memory, sizeof memory);
        peer_write_address(&writer, layouts[i], &v6.address);
        assert_true(writer.size <= PEER_ADDRESS_SIZE_MAX);
        wire_reader_init(&reader, bytes_of(memory, writer.size));
        peer_read_address(&reader, layouts[i], &read);
        assert_int_equal(wire_reader_finish(&reader, NULL), ERR_OK);
        assert_true(address_equal(&read, &v6.address));
    }
}

static enum err read_as(enum peer_layout layout, const char *hex) {
    uint8_t memory[PEER_SIZE_MAX];
    size_t size = strlen(hex) / 2;
    struct wire_reader reader;
    struct peer peer;
    assert_true(hex_decode(bytes_of_string(hex), memory, size));
    wire_reader_init(&reader, bytes_of(memory, size));
    peer_read(&reader, layout, &peer);
    return wire_reader_finish(&reader, NULL);
}

#define ONES "1111111111111111111111111111111111111111111111111111111111111111"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static void refuses_what_nobody_can_be(void **state) {
    (void)state;
    assert_int_equal(read_as(PEER_TAGGED, "02"
                                          "0a010203"
                                          "5000" ONES),
                     ERR_OK);
    assert_int_equal(read_as(PEER_TAGGED, "04"
                                          "0a010203"
                                          "5000"),
                     ERR_INVALID);
    assert_int_equal(read_as(PEER_TAGGED, "02"
                                          "0a010203"
                                          "0000" ONES),
                     ERR_INVALID);
    assert_int_equal(read_as(PEER_TAGGED, "02"
                                          "0a010203"
                                          "5000" ZEROS),
                     ERR_INVALID);
    assert_int_equal(read_as(PEER_TAGGED, "02"
                                          "e0000001"
                                          "5000" ONES),
                     ERR_INVALID);
    assert_int_equal(read_as(PEER_TAGGED, "01"
                                          "00000000000000000000ffff0a010203"
                                          "5000"),
                     ERR_INVALID);
    assert_int_equal(read_as(PEER_MEMBER, "00"
                                          "0a010203"
                                          "5000" ONES),
                     ERR_OK);
    assert_int_equal(read_as(PEER_MEMBER, "02"
                                          "0a010203"
                                          "5000" ONES),
                     ERR_INVALID);
    assert_int_equal(read_as(PEER_MEMBER, "00"
                                          "0a010203"
                                          "5000" ZEROS),
                     ERR_INVALID);
    assert_int_equal(read_as(PEER_MEMBER, "00"
                                          "00010203"
                                          "5000" ONES),
                     ERR_INVALID);
    assert_int_equal(read_as(PEER_PLAIN, "00000000000000000000ffff0a010203"
                                         "5000" ZEROS),
                     ERR_OK);
    assert_int_equal(read_as(PEER_PLAIN, "00000000000000000000ffff0a010203"
                                         "0000" ZEROS),
                     ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_is_as_drawn_and_is_read_back),
        cmocka_unit_test(an_address_is_the_same_without_the_key),
        cmocka_unit_test(refuses_what_nobody_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
