#include "protocol/ring/dialect.h"

#include "base/peer.h"
#include "base/wire.h"

enum { WANTS_ANSWER = 1, TAG_SITE = 1, TAG_ADDRESSES = 2, ADDRESSES_SIZE_MAX = 2 * PEER_ADDRESS_SIZE_MAX };

const struct dialect dialect_of_program = {
    .lowest = DIALECT_VERSION_LOWEST,
    .highest = DIALECT_VERSION_HIGHEST,
    .features = ((UINT64_C(1) << (DIALECT_WITNESSES + 1)) - 1) | UINT64_C(1) << DIALECT_STEWARDS |
                UINT64_C(1) << DIALECT_TWO_ADDRESSES | UINT64_C(1) << DIALECT_RELAY |
                UINT64_C(1) << DIALECT_PROVENANCE | UINT64_C(1) << DIALECT_REPORTS |
                UINT64_C(1) << DIALECT_SEARCH,
};

const struct dialect dialect_of_silence = {
    .lowest = DIALECT_VERSION_FIRST,
    .highest = DIALECT_VERSION_FIRST,
};

const char *dialect_feature_name(unsigned feature) {
    static const char *const names[DIALECT_FEATURES_COUNT] = {
        [DIALECT_CAPTURES] = "captures",
        [DIALECT_DELETIONS] = "deletions",
        [DIALECT_KEEPS_LATER] = "keeps-later",
        [DIALECT_SITES] = "sites",
        [DIALECT_TLS] = "tls",
        [DIALECT_WITNESSES] = "witnesses",
        [DIALECT_STEWARDS] = "stewards",
        [DIALECT_TWO_ADDRESSES] = "two-addresses",
        [DIALECT_RELAY] = "relay",
        [DIALECT_PROVENANCE] = "provenance",
        [DIALECT_REPORTS] = "reports",
        [DIALECT_SEARCH] = "search",
    };
    return feature < DIALECT_FEATURES_COUNT ? names[feature] : NULL;
}

uint16_t dialect_common(const struct dialect *a, const struct dialect *b) {
    uint16_t lowest = a->lowest > b->lowest ? a->lowest : b->lowest;
    uint16_t highest = a->highest < b->highest ? a->highest : b->highest;
    return lowest <= highest ? highest : 0;
}

struct bytes dialect_write_hello(const struct dialect *dialect, bool wants_answer,
                                 uint8_t out[DIALECT_HELLO_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, DIALECT_HELLO_SIZE_MAX);
    wire_write_u8(&writer, wants_answer ? WANTS_ANSWER : 0);
    wire_write_u16(&writer, dialect->lowest);
    wire_write_u16(&writer, dialect->highest);
    wire_write_u64(&writer, dialect->features);
    wire_write_string(&writer, bytes_of_string(dialect->program));
    if (dialect->site[0] != '\0') {
        wire_write_u8(&writer, TAG_SITE);
        wire_write_string(&writer, bytes_of_string(dialect->site));
    }
    if (dialect->has_two) {
        uint8_t memory[ADDRESSES_SIZE_MAX];
        struct wire_writer addresses;
        wire_writer_init(&addresses, memory, sizeof memory);
        peer_write_address(&addresses, PEER_MEMBER, &dialect->main);
        peer_write_address(&addresses, PEER_MEMBER, &dialect->second);
        wire_write_u8(&writer, TAG_ADDRESSES);
        wire_write_string(&writer, wire_writer_bytes(&addresses));
    }
    return wire_writer_bytes(&writer);
}

/* It is printed on terminals and pages of others. */
static bool dialect_is_word(struct bytes word) {
    for (size_t i = 0; i < word.size; i++) {
        uint8_t byte = word.data[i];
        bool is_mark = byte == '.' || byte == '-' || byte == '+' || byte == '~' || byte == '_';
        if (!byte_is_alnum(byte) && !is_mark) {
            return false;
        }
    }
    return true;
}

bool dialect_program_is_valid(struct bytes program) {
    return program.size <= DIALECT_PROGRAM_SIZE_MAX && dialect_is_word(program);
}

bool dialect_site_is_valid(struct bytes name) {
    return name.size > 0 && name.size <= DIALECT_SITE_SIZE_MAX && dialect_is_word(name);
}

static void dialect_take_site(struct wire_reader *reader, struct bytes name, struct dialect *dialect) {
    bool is_valid = dialect_site_is_valid(name) && dialect->site[0] == '\0';
    wire_read_check(reader, is_valid, "no name of a site");
    if (is_valid) {
        memcpy(dialect->site, name.data, name.size);
    }
}

/* One of each family. */
static void dialect_take_addresses(struct wire_reader *reader, struct bytes value, struct dialect *dialect) {
    struct wire_reader addresses;
    wire_reader_init(&addresses, value);
    wire_read_check(reader, !dialect->has_two, "two pairs of addresses");
    peer_read_address(&addresses, PEER_MEMBER, &dialect->main);
    peer_read_address(&addresses, PEER_MEMBER, &dialect->second);
    bool is_sound = wire_reader_finish(&addresses, NULL) == ERR_OK && address_is_possible(&dialect->main) &&
                    address_is_possible(&dialect->second) &&
                    address_is_ipv4(&dialect->main) != address_is_ipv4(&dialect->second);
    wire_read_check(reader, is_sound, "no two addresses");
    dialect->has_two = true;
}

enum err dialect_read_hello(struct bytes input, struct dialect *ret_dialect, bool *ret_wants_answer,
                            struct err_detail *detail) {
    struct dialect dialect = {0};
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    if (input.size > DIALECT_HELLO_SIZE_MAX) {
        wire_read_fail(&reader, ERR_LIMIT, "a hello that is too long");
    }
    uint8_t flags = wire_read_u8(&reader);
    dialect.lowest = wire_read_u16(&reader);
    dialect.highest = wire_read_u16(&reader);
    wire_read_check(&reader, dialect.lowest > 0 && dialect.lowest <= dialect.highest, "no range of versions");
    dialect.features = wire_read_u64(&reader);
    struct bytes program = wire_read_string(&reader, DIALECT_PROGRAM_SIZE_MAX);
    wire_read_check(&reader, dialect_program_is_valid(program), "no version of a program");
    if (program.size > 0) {
        memcpy(dialect.program, program.data, program.size);
    }
    while (wire_reader_left(&reader) > 0) {
        uint8_t tag = wire_read_u8(&reader);
        struct bytes value = wire_read_string(&reader, DIALECT_FIELD_SIZE_MAX);
        if (tag == TAG_SITE && reader.err == ERR_OK) { /* others are of later programs */
            dialect_take_site(&reader, value, &dialect);
        } else if (tag == TAG_ADDRESSES && reader.err == ERR_OK) {
            dialect_take_addresses(&reader, value, &dialect);
        }
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK) {
        *ret_dialect = dialect;
        *ret_wants_answer = (flags & WANTS_ANSWER) != 0;
    }
    return err;
}
