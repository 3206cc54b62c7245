#include "protocol/mirror/version.h"

enum { LAYOUT = 1 };
static const char magic[4] = {'m', 'n', 'c', 'v'};

bool version_name_is_valid(struct bytes name) {
    if (name.size == 0 || name.size > VERSION_NAME_SIZE_MAX || name.data[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        bool is_good = (c >= 'a' && c <= 'z') || byte_is_digit(c) || c == '.' || c == '_' || c == '-';
        if (!is_good) {
            return false;
        }
    }
    return true;
}

static void write_fields(struct wire_writer *writer, const struct version *version) {
    struct bytes name = bytes_of_string(version->name);
    ASSERT(version_name_is_valid(name));
    ASSERT(version->number > 0 && version->number <= VERSION_NUMBER_MAX);
    wire_write_bytes(writer, bytes_of(magic, sizeof magic));
    wire_write_u8(writer, LAYOUT);
    wire_write_bytes(writer, bytes_of(version->publisher, PEER_KEY_SIZE));
    wire_write_string(writer, name);
    wire_write_u64(writer, version->number);
    wire_write_u64(writer, (uint64_t)version->time_us);
    wire_write_varint(writer, version->totals.directories_count);
    wire_write_varint(writer, version->totals.files_count);
    wire_write_varint(writer, version->totals.links_count);
    wire_write_varint(writer, version->totals.content_size);
    wire_write_varint(writer, version->totals.manifest_size);
    manifest_write_ref(writer, &version->root);
}

void version_sign(struct version *version, version_make_signature *sign, const void *signer) {
    uint8_t memory[VERSION_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    write_fields(&writer, version);
    ASSERT(writer.err == ERR_OK);
    sign(signer, VERSION_CONTEXT, bytes_of(memory, writer.size), version->signature);
}

struct bytes version_write(const struct version *version, uint8_t out[VERSION_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, VERSION_SIZE_MAX);
    write_fields(&writer, version);
    wire_write_bytes(&writer, bytes_of(version->signature, VERSION_SIGNATURE_SIZE));
    ASSERT(writer.err == ERR_OK);
    return bytes_of(out, writer.size);
}

static void version_read_name(struct wire_reader *reader, struct version *version) {
    struct bytes name = wire_read_string(reader, VERSION_NAME_SIZE_MAX);
    if (version_name_is_valid(name)) {
        memcpy(version->name, name.data, name.size);
    } else {
        wire_read_fail(reader, ERR_INVALID, "a name that none can have");
    }
}

static void version_read_fields(struct wire_reader *reader, struct version *version) {
    struct bytes mark = wire_read_bytes(reader, sizeof magic);
    if (reader->err == ERR_OK && !bytes_equal(mark, bytes_of(magic, sizeof magic))) {
        wire_read_fail(reader, ERR_INVALID, "no version of a collection");
    }
    if (wire_read_u8(reader) != LAYOUT && reader->err == ERR_OK) {
        wire_read_fail(reader, ERR_UNSUPPORTED, "a version of a later layout");
    }
    wire_read_array(reader, version->publisher, PEER_KEY_SIZE);
    version_read_name(reader, version);
    version->number = wire_read_u64(reader);
    if (version->number == 0 || version->number > VERSION_NUMBER_MAX) {
        wire_read_fail(reader, ERR_INVALID, "a number that no version can have");
    }
    version->time_us = (int64_t)wire_read_u64(reader);
    version->totals.directories_count = wire_read_varint(reader, INT64_MAX);
    version->totals.files_count = wire_read_varint(reader, INT64_MAX);
    version->totals.links_count = wire_read_varint(reader, INT64_MAX);
    version->totals.content_size = wire_read_varint(reader, INT64_MAX);
    version->totals.manifest_size = wire_read_varint(reader, INT64_MAX);
    manifest_read_ref(reader, &version->root);
}

enum err version_read(struct bytes input, version_verify *verify, struct version *ret_version,
                      struct err_detail *detail) {
    struct wire_reader reader;
    struct version version = {0};
    wire_reader_init(&reader, input);
    version_read_fields(&reader, &version);
    struct bytes signed_part = bytes_of(input.data, reader.offset);
    wire_read_array(&reader, version.signature, VERSION_SIGNATURE_SIZE);
    enum err err = wire_reader_finish(&reader, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (!verify(version.publisher, VERSION_CONTEXT, signed_part, version.signature)) {
        return err_set(detail, ERR_MISMATCH, "the signature is not the publisher's");
    }
    *ret_version = version;
    return ERR_OK;
}

void version_id(const uint8_t publisher[PEER_KEY_SIZE], struct bytes name, struct sha256 *sha256,
                uint8_t out[VERSION_ID_SIZE]) {
    uint8_t digest[SHA256_SIZE];
    sha256_start(sha256);
    sha256_update(sha256, bytes_of(publisher, PEER_KEY_SIZE));
    sha256_update(sha256, name);
    sha256_finish(sha256, digest);
    memcpy(out, digest, VERSION_ID_SIZE);
}

int version_compare(const struct version *a, const struct version *b) {
    if (a->number != b->number) {
        return a->number < b->number ? -1 : 1;
    }
    if (a->time_us != b->time_us) {
        return a->time_us < b->time_us ? -1 : 1;
    }
    return memcmp(a->root.digest, b->root.digest, SHA256_SIZE);
}
