#include "protocol/ring/decree.h"

#include "base/wire.h"

enum { LAYOUT = 1 };
static const char magic[4] = {'m', 'n', 'd', 'e'};

bool decree_name_is_valid(struct bytes name) {
    if (name.size == 0 || name.size > DECREE_NAME_SIZE_MAX || name.data[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!is_good) {
            return false;
        }
    }
    return true;
}

struct bytes decree_write(const struct decree *decree, charter_sign *sign, const void *signer, uint8_t *out) {
    struct wire_writer writer;
    uint8_t signature[CHARTER_SIGNATURE_SIZE];
    ASSERT(decree_name_is_valid(decree->name) && decree->text.size <= DECREE_TEXT_SIZE_MAX);
    wire_writer_init(&writer, out, DECREE_SIZE_MAX);
    wire_write_bytes(&writer, bytes_of(magic, sizeof magic));
    wire_write_u8(&writer, LAYOUT);
    wire_write_bytes(&writer, bytes_of(decree->ring, CHARTER_ID_SIZE));
    wire_write_bytes(&writer, bytes_of(decree->author, PEER_KEY_SIZE));
    wire_write_u8(&writer, (uint8_t)decree->kind);
    wire_write_string(&writer, decree->name);
    wire_write_u64(&writer, decree->version);
    wire_write_string(&writer, decree->text);
    sign(signer, DECREE_CONTEXT, bytes_of(out, writer.size), signature);
    wire_write_bytes(&writer, bytes_of(signature, sizeof signature));
    return wire_writer_bytes(&writer);
}

static void decree_read_fields(struct wire_reader *reader, struct decree *decree) {
    struct bytes mark = wire_read_bytes(reader, sizeof magic);
    if (reader->err == ERR_OK && !bytes_equal(mark, bytes_of(magic, sizeof magic))) {
        wire_read_fail(reader, ERR_INVALID, "no decree");
    }
    if (wire_read_u8(reader) != LAYOUT && reader->err == ERR_OK) {
        wire_read_fail(reader, ERR_UNSUPPORTED, "a decree of a later layout");
    }
    wire_read_array(reader, decree->ring, CHARTER_ID_SIZE);
    wire_read_array(reader, decree->author, PEER_KEY_SIZE);
    uint8_t kind = wire_read_u8(reader);
    if (kind != DECREE_JOB && kind != DECREE_RULES) {
        wire_read_fail(reader, ERR_UNSUPPORTED, "a decree of an unknown kind");
    }
    decree->kind = (enum decree_kind)kind;
    decree->name = wire_read_string(reader, DECREE_NAME_SIZE_MAX);
    if (!decree_name_is_valid(decree->name)) {
        wire_read_fail(reader, ERR_INVALID, "a name that none can have");
    }
    decree->version = wire_read_u64(reader);
    if (decree->version > INT64_MAX) { /* JSON of it is read with signed numbers */
        wire_read_fail(reader, ERR_INVALID, "a version that none can have");
    }
    decree->text = wire_read_string(reader, DECREE_TEXT_SIZE_MAX);
}

enum err decree_read(struct bytes input, charter_verify *verify, struct decree *ret_decree,
                     struct err_detail *detail) {
    struct wire_reader reader;
    struct decree decree;
    uint8_t signature[CHARTER_SIGNATURE_SIZE];
    wire_reader_init(&reader, input);
    decree_read_fields(&reader, &decree);
    struct bytes signed_part = bytes_of(input.data, reader.offset);
    wire_read_array(&reader, signature, sizeof signature);
    enum err err = wire_reader_finish(&reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (!verify(decree.author, DECREE_CONTEXT, signed_part, signature)) {
        return err_set(detail, ERR_MISMATCH, "the signature is not the author's");
    }
    *ret_decree = decree;
    return ERR_OK;
}

void decree_id(const struct decree *decree, struct sha256 *sha256, uint8_t out[DECREE_ID_SIZE]) {
    uint8_t memory[PEER_KEY_SIZE + 1 + DECREE_NAME_SIZE_MAX];
    uint8_t digest[SHA256_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, bytes_of(decree->author, PEER_KEY_SIZE));
    wire_write_u8(&writer, (uint8_t)decree->kind);
    wire_write_bytes(&writer, decree->name);
    struct bytes named = wire_writer_bytes(&writer);
    sha256_digest(sha256, named, digest);
    memcpy(out, digest, DECREE_ID_SIZE);
}

enum err decree_counts(const struct decree *decree, const struct charter *charter,
                       const uint8_t ring[CHARTER_ID_SIZE], struct err_detail *detail) {
    if (memcmp(decree->ring, ring, CHARTER_ID_SIZE) != 0) {
        return err_set(detail, ERR_MISMATCH, "it is of another ring");
    }
    if (memcmp(decree->author, charter->founder, PEER_KEY_SIZE) == 0) {
        return ERR_OK;
    }
    if (charter_is_removed(charter, decree->author)) {
        return err_set(detail, ERR_PERMISSION, "its author has been removed from the ring");
    }
    if (decree->kind != DECREE_JOB) {
        return err_set(detail, ERR_PERMISSION, "only the founder makes rules of access");
    }
    if (!charter->members_may_add_jobs) {
        return err_set(detail, ERR_PERMISSION, "only the founder adds jobs to this ring");
    }
    return ERR_OK;
}
