#include "protocol/ring/invitation.h"

#include "base/base32.h"

enum {
    LAYOUT_FOUNDER = 1,
    LAYOUT_STEWARDS = 2,
    CHECKSUM_SIZE = 4,
    SIGNED_SIZE = INVITATION_SIGNED_SIZE,
    TOKEN_BYTES_MAX = INVITATION_SIZE_MAX + INVITATION_SEED_SIZE + CHECKSUM_SIZE,
};

static const char magic[4] = {'m', 'n', 'i', 'v'};
static const char prefix[] = "mnring-"; /* so that one knows what the line is, and what is cut off is seen */

/* Behind magic and layout. */
static void code_signed(struct wire_coder *coder, struct invitation *invitation) {
    wire_code_array(coder, invitation->ring, CHARTER_ID_SIZE);
    wire_code_bool(coder, &invitation->is_bearer);
    wire_code_array(coder, invitation->key, PEER_KEY_SIZE);
    wire_code_u64(coder, &invitation->from_s);
    wire_code_u64(coder, &invitation->until_s);
}

static void write_signed(struct wire_writer *writer, const struct invitation *invitation) {
    struct wire_coder coder = {.writer = writer};
    wire_write_bytes(writer, bytes_of(magic, sizeof magic));
    wire_write_u8(writer, invitation->generation > 0 ? LAYOUT_STEWARDS : LAYOUT_FOUNDER);
    code_signed(&coder, (struct invitation *)invitation); /* writing changes nothing */
    if (invitation->generation > 0) {
        wire_write_u32(writer, invitation->generation);
    }
}

static struct bytes signed_part(const struct invitation *invitation, uint8_t memory[SIGNED_SIZE]) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, SIGNED_SIZE);
    write_signed(&writer, invitation);
    ASSERT(writer.size == SIGNED_SIZE);
    return wire_writer_bytes(&writer);
}

void invitation_sign(struct invitation *invitation, charter_sign *sign, const void *signer) {
    uint8_t memory[SIGNED_SIZE];
    sign(signer, INVITATION_CONTEXT, signed_part(invitation, memory), invitation->signature);
}

bool invitation_verify(const struct invitation *invitation, const uint8_t founder[PEER_KEY_SIZE],
                       charter_verify *verify) {
    uint8_t memory[SIGNED_SIZE];
    return invitation->generation == 0 &&
           verify(founder, INVITATION_CONTEXT, signed_part(invitation, memory), invitation->signature);
}

bool invitation_counts(const struct invitation *invitation, const struct charter *charter,
                       charter_verify *verify) {
    struct stewards stewards;
    uint8_t memory[INVITATION_BODY_SIZE];
    if (invitation->generation > charter_generation(charter) ||
        !charter_is_in_time(charter, invitation->generation, invitation->from_s)) {
        return false;
    }
    if (invitation->generation == 0) {
        return invitation_verify(invitation, charter->founder, verify);
    }
    charter_stewards(charter, invitation->generation, &stewards);
    return stewards_have_signed(&stewards, STEWARD_INVITE, &invitation->signatures,
                                INVITATION_STEWARDS_CONTEXT, invitation_write_body(invitation, memory),
                                verify);
}

struct bytes invitation_write_body(const struct invitation *invitation, uint8_t out[INVITATION_BODY_SIZE]) {
    struct wire_writer writer;
    ASSERT(invitation->generation > 0);
    wire_writer_init(&writer, out, INVITATION_BODY_SIZE);
    write_signed(&writer, invitation);
    return wire_writer_bytes(&writer);
}

void invitation_write(struct wire_writer *writer, const struct invitation *invitation) {
    write_signed(writer, invitation);
    if (invitation->generation > 0) {
        steward_signatures_write(writer, &invitation->signatures);
    } else {
        wire_write_bytes(writer, bytes_of(invitation->signature, CHARTER_SIGNATURE_SIZE));
    }
}

static void invitation_read_signed(struct wire_reader *reader, struct invitation *invitation) {
    struct wire_coder coder = {.reader = reader};
    *invitation = (struct invitation){.generation = 0};
    wire_read_magic(reader, bytes_of(magic, sizeof magic), "no invitation");
    uint8_t layout = wire_read_u8(reader);
    if (reader->err == ERR_OK && layout != LAYOUT_FOUNDER && layout != LAYOUT_STEWARDS) {
        wire_read_fail(reader, ERR_UNSUPPORTED, "an invitation of a later layout");
    }
    code_signed(&coder, invitation);
    if (layout == LAYOUT_STEWARDS) {
        invitation->generation = wire_read_u32(reader);
        wire_read_check(reader, invitation->generation > 0, "an invitation of no stewards");
    }
}

enum err invitation_read_body(struct bytes body, struct invitation *ret_invitation,
                              struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, body);
    invitation_read_signed(&reader, ret_invitation);
    wire_read_check(&reader, ret_invitation->generation > 0, "an invitation of no stewards");
    return wire_reader_finish(&reader, detail);
}

void invitation_read(struct wire_reader *reader, struct invitation *invitation) {
    invitation_read_signed(reader, invitation);
    if (invitation->generation > 0) {
        steward_signatures_read(reader, &invitation->signatures);
    } else {
        wire_read_array(reader, invitation->signature, CHARTER_SIGNATURE_SIZE);
    }
}

/* ---- the token ---- */

const char *invitation_format(const struct invitation *invitation, const uint8_t *seed, struct sha256 *sha256,
                              char out[INVITATION_TOKEN_SIZE]) {
    uint8_t memory[TOKEN_BYTES_MAX];
    uint8_t digest[SHA256_SIZE];
    struct wire_writer writer;
    ASSERT((seed != NULL) == invitation->is_bearer);
    wire_writer_init(&writer, memory, sizeof memory);
    invitation_write(&writer, invitation);
    if (seed != NULL) {
        wire_write_bytes(&writer, bytes_of(seed, INVITATION_SEED_SIZE));
    }
    sha256_digest(sha256, bytes_of(memory, writer.size), digest);
    wire_write_bytes(&writer, bytes_of(digest, CHECKSUM_SIZE));
    memcpy(out, prefix, sizeof prefix);
    char *digits = base32_encode(wire_writer_bytes(&writer), out + sizeof prefix - 1);
    for (; *digits != '\0'; digits++) {
        *digits = (char)byte_lower((uint8_t)*digits);
    }
    return out;
}

/* How many bytes there are in a token of so many digits; 0: there is none such. */
static size_t invitation_token_bytes(size_t digits_count) {
    for (size_t seed_size = 0; seed_size <= INVITATION_SEED_SIZE; seed_size += INVITATION_SEED_SIZE) {
        size_t rest = seed_size + CHECKSUM_SIZE;
        if (digits_count == base32_length(INVITATION_PLAIN_SIZE + rest)) {
            return INVITATION_PLAIN_SIZE + rest;
        }
        for (size_t signers = 1; signers <= STEWARDS_MAX; signers++) {
            size_t size = INVITATION_BODY_SIZE + 1 + signers * sizeof(struct steward_signature) + rest;
            if (digits_count == base32_length(size)) {
                return size;
            }
        }
    }
    return 0;
}

enum err invitation_parse(struct bytes text, struct sha256 *sha256, struct invitation *ret_invitation,
                          uint8_t ret_seed[INVITATION_SEED_SIZE], struct err_detail *detail) {
    uint8_t memory[TOKEN_BYTES_MAX];
    uint8_t digest[SHA256_SIZE];
    struct invitation invitation;
    struct wire_reader reader;
    uint8_t seed[INVITATION_SEED_SIZE] = {0};
    struct bytes head = bytes_of(prefix, sizeof prefix - 1);
    if (!bytes_starts_with(text, head)) {
        return err_set(detail, ERR_INVALID, "no token: one begins with \"%s\"", prefix);
    }
    struct bytes digits = bytes_skip(text, head.size);
    size_t size = invitation_token_bytes(digits.size);
    if (size == 0 || !base32_decode(digits, memory, size)) {
        return err_set(detail, ERR_INVALID, "no token: part of it is missing or mistyped");
    }
    sha256_digest(sha256, bytes_of(memory, size - CHECKSUM_SIZE), digest);
    if (memcmp(digest, memory + size - CHECKSUM_SIZE, CHECKSUM_SIZE) != 0) {
        return err_set(detail, ERR_INVALID, "the token is mistyped: its checksum is wrong");
    }
    wire_reader_init(&reader, bytes_of(memory, size - CHECKSUM_SIZE));
    invitation_read(&reader, &invitation);
    if (invitation.is_bearer) {
        wire_read_array(&reader, seed, sizeof seed);
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    *ret_invitation = invitation;
    memcpy(ret_seed, seed, sizeof seed);
    return ERR_OK;
}
