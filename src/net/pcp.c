#include "net/pcp.h"

#include "base/wire.h"

enum {
    PCP_VERSION = 2,
    PCP_MAP = 1,
    PCP_IS_ANSWER = 0x80,
    NATPMP_VERSION = 0,
    NATPMP_ADDRESS = 0,
    NATPMP_UDP = 1,
    NATPMP_TCP = 2,
    NATPMP_OTHER_VERSION = 1,
};

static const uint8_t pcp_zeros[12];

static struct bytes pcp_zero_bytes(size_t size) {
    return bytes_of(pcp_zeros, size);
}

/* Network order, which base/wire.h has not. */
static void pcp_write_u16(struct wire_writer *writer, uint16_t value) {
    wire_write_u8(writer, (uint8_t)(value >> 8));
    wire_write_u8(writer, (uint8_t)value);
}

static void pcp_write_u32(struct wire_writer *writer, uint32_t value) {
    pcp_write_u16(writer, (uint16_t)(value >> 16));
    pcp_write_u16(writer, (uint16_t)value);
}

static uint16_t pcp_read_u16(struct wire_reader *reader) {
    uint8_t high = wire_read_u8(reader);
    return (uint16_t)(high << 8 | wire_read_u8(reader));
}

static uint32_t pcp_read_u32(struct wire_reader *reader) {
    uint32_t high = pcp_read_u16(reader);
    return high << 16 | pcp_read_u16(reader);
}

struct bytes pcp_write(const struct pcp_wish *wish, uint8_t out[PCP_QUESTION_SIZE_MAX]) {
    struct wire_writer writer;
    struct address any = address_ipv4(0, 0, 0, 0, 0);
    wire_writer_init(&writer, out, PCP_QUESTION_SIZE_MAX);
    wire_write_u8(&writer, PCP_VERSION);
    wire_write_u8(&writer, PCP_MAP);
    pcp_write_u16(&writer, 0);
    pcp_write_u32(&writer, wish->lifetime_s);
    wire_write_bytes(&writer, bytes_of(wish->own.ip, sizeof wish->own.ip));
    wire_write_bytes(&writer, bytes_of(wish->nonce, sizeof wish->nonce));
    wire_write_u8(&writer, (uint8_t)wish->protocol);
    wire_write_bytes(&writer, pcp_zero_bytes(3));
    pcp_write_u16(&writer, wish->own.port);
    pcp_write_u16(&writer, wish->outer_port);
    wire_write_bytes(&writer, bytes_of(any.ip, sizeof any.ip));
    return wire_writer_bytes(&writer);
}

/* What only a mapping that was made has. */
static void pcp_check_made(struct wire_reader *reader, const struct pcp_wish *wish,
                           const struct pcp_answer *answer) {
    bool is_removal = wish->lifetime_s == 0;
    wire_read_check(reader, is_removal || (answer->lifetime_s > 0 && answer->outer.port > 0),
                    "a mapping of nothing");
}

static uint32_t pcp_bound_lifetime(uint32_t lifetime_s) {
    return lifetime_s < PCP_LIFETIME_S_MAX ? lifetime_s : PCP_LIFETIME_S_MAX;
}

/* Options may follow: we ask for none, and they are passed over. */
enum pcp_reading pcp_read(struct bytes message, const struct pcp_wish *wish, struct pcp_answer *ret_answer) {
    struct wire_reader reader;
    struct pcp_answer answer = {0};
    uint8_t nonce[PCP_NONCE_SIZE];
    wire_reader_init(&reader, message);
    uint8_t version = wire_read_u8(&reader);
    uint8_t opcode = wire_read_u8(&reader);
    if (reader.err == ERR_OK && version == NATPMP_VERSION && (opcode & PCP_IS_ANSWER) != 0) {
        return pcp_read_u16(&reader) == NATPMP_OTHER_VERSION ? PCP_IS_NATPMP : PCP_OTHER;
    }
    wire_read_check(&reader, version == PCP_VERSION && opcode == (PCP_MAP | PCP_IS_ANSWER), "no answer");
    (void)wire_read_u8(&reader);
    answer.result = wire_read_u8(&reader);
    answer.lifetime_s = pcp_bound_lifetime(pcp_read_u32(&reader));
    (void)wire_read_bytes(&reader, 4 + 12); /* epoch, reserved */
    wire_read_array(&reader, nonce, sizeof nonce);
    uint8_t protocol = wire_read_u8(&reader);
    (void)wire_read_bytes(&reader, 3);
    uint16_t own_port = pcp_read_u16(&reader);
    answer.outer.port = pcp_read_u16(&reader);
    wire_read_array(&reader, answer.outer.ip, sizeof answer.outer.ip);
    bool is_ours = memcmp(nonce, wish->nonce, sizeof nonce) == 0 && protocol == (uint8_t)wish->protocol &&
                   own_port == wish->own.port;
    wire_read_check(&reader, is_ours && message.size <= PCP_ANSWER_SIZE_MAX, "another question's");
    if (answer.result == 0) {
        pcp_check_made(&reader, wish, &answer);
    }
    if (reader.err != ERR_OK) {
        return PCP_OTHER;
    }
    *ret_answer = answer;
    return PCP_ANSWER;
}

const char *pcp_result_text(uint16_t result) {
    static const char *const texts[] = {
        "done",
        "it speaks another version",
        "it does not allow that",
        "it did not understand",
        "it knows no such question",
        "it knows no such option",
        "it did not understand an option",
        "it has a failure of its network",
        "it has no room for more",
        "it cannot pass on this protocol",
        "this machine has its share of ports",
        "the port outside is taken",
        "there is another router between",
        "too many others",
    };
    return result < sizeof texts / sizeof *texts ? texts[result] : "it does not say why";
}

struct bytes natpmp_write_address(uint8_t out[PCP_QUESTION_SIZE_MAX]) {
    out[0] = NATPMP_VERSION;
    out[1] = NATPMP_ADDRESS;
    return bytes_of(out, 2);
}

static uint8_t natpmp_opcode(const struct pcp_wish *wish) {
    return wish->protocol == PCP_UDP ? NATPMP_UDP : NATPMP_TCP;
}

struct bytes natpmp_write_port(const struct pcp_wish *wish, uint8_t out[PCP_QUESTION_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, PCP_QUESTION_SIZE_MAX);
    wire_write_u8(&writer, NATPMP_VERSION);
    wire_write_u8(&writer, natpmp_opcode(wish));
    pcp_write_u16(&writer, 0);
    pcp_write_u16(&writer, wish->own.port);
    pcp_write_u16(&writer, wish->lifetime_s == 0 ? 0 : wish->outer_port);
    pcp_write_u32(&writer, wish->lifetime_s);
    return wire_writer_bytes(&writer);
}

/* The head of an answer to a question with this opcode. An error may end behind it. */
static uint16_t natpmp_read_head(struct wire_reader *reader, struct bytes message, uint8_t opcode) {
    wire_reader_init(reader, message);
    uint8_t version = wire_read_u8(reader);
    uint8_t answered = wire_read_u8(reader);
    uint16_t result = pcp_read_u16(reader);
    (void)pcp_read_u32(reader); /* epoch */
    wire_read_check(reader, version == NATPMP_VERSION && answered == (opcode | PCP_IS_ANSWER), "no answer");
    return result;
}

bool natpmp_read_address(struct bytes message, struct pcp_answer *ret_answer) {
    struct wire_reader reader;
    uint8_t ip[4] = {0};
    struct pcp_answer answer = {.result = natpmp_read_head(&reader, message, NATPMP_ADDRESS)};
    if (answer.result == 0) {
        wire_read_array(&reader, ip, sizeof ip);
        answer.outer = address_ipv4(ip[0], ip[1], ip[2], ip[3], 0);
    }
    if (reader.err == ERR_OK) {
        *ret_answer = answer;
    }
    return reader.err == ERR_OK;
}

bool natpmp_read_port(struct bytes message, const struct pcp_wish *wish, struct pcp_answer *ret_answer) {
    struct wire_reader reader;
    struct pcp_answer answer = {.result = natpmp_read_head(&reader, message, natpmp_opcode(wish))};
    if (answer.result == 0) {
        uint16_t own_port = pcp_read_u16(&reader);
        answer.outer.port = pcp_read_u16(&reader);
        answer.lifetime_s = pcp_bound_lifetime(pcp_read_u32(&reader));
        wire_read_check(&reader, own_port == wish->own.port, "another question's");
        pcp_check_made(&reader, wish, &answer);
    }
    if (reader.err == ERR_OK) {
        *ret_answer = answer;
    }
    return reader.err == ERR_OK;
}

const char *natpmp_result_text(uint16_t result) {
    static const char *const texts[] = {
        "done",
        "it speaks another version",
        "it does not allow that",
        "it has no network outside",
        "it has no room for more",
        "it knows no such question",
    };
    return result < sizeof texts / sizeof *texts ? texts[result] : "it does not say why";
}
