#include "protocol/ring/invitation.h"

#include "base/base32.h"

enum {
    LAYOUT = 1,
    CHECKSUM_SIZE = 4,
    SIGNED_SIZE = INVITATION_SIZE - CHARTER_SIGNATURE_SIZE,
    TOKEN_BYTES_MAX = INVITATION_SIZE + INVITATION_SEED_SIZE + CHECKSUM_SIZE,
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
    wire_write_u8(writer, LAYOUT);
    code_signed(&coder, (struct invitation *)invitation); /* writing changes nothing */
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
    return verify(founder, INVITATION_CONTEXT, signed_part(invitation, memory), invitation->signature);
}

void invitation_write(struct wire_writer *writer, const struct invitation *invitation) {
    write_signed(writer, invitation);
    wire_write_bytes(writer, bytes_of(invitation->signature, CHARTER_SIGNATURE_SIZE));
}

void invitation_read(struct wire_reader *reader, struct invitation *invitation) {
    struct wire_coder coder = {.reader = reader};
    wire_read_magic(reader, bytes_of(magic, sizeof magic), "no invitation");
    wire_read_version(reader, LAYOUT, "an invitation of a later layout");
    code_signed(&coder, invitation);
    wire_read_array(reader, invitation->signature, CHARTER_SIGNATURE_SIZE);
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
    size_t key_size = INVITATION_SIZE + CHECKSUM_SIZE;
    size_t size = digits.size == base32_length(key_size) ? key_size : TOKEN_BYTES_MAX;
    if (digits.size != base32_length(size) || !base32_decode(digits, memory, size)) {
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
