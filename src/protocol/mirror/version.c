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

static void code_name(struct wire_coder *coder, struct version *version) {
    struct bytes name = bytes_of_string(version->name);
    ASSERT(coder->reader != NULL || version_name_is_valid(name));
    wire_code_string(coder, &name, VERSION_NAME_SIZE_MAX);
    wire_code_check(coder, version_name_is_valid(name), "a name that none can have");
    if (coder->reader != NULL && coder->reader->err == ERR_OK) {
        memcpy(version->name, name.data, name.size);
    }
}

/* What is signed; a version that is read begins as zeros. */
static void version_code(struct wire_coder *coder, struct version *version) {
    uint64_t time_us = (uint64_t)version->time_us;
    uint64_t *const totals[] = {&version->totals.directories_count, &version->totals.files_count,
                                &version->totals.links_count, &version->totals.content_size,
                                &version->totals.manifest_size};
    wire_code_array(coder, version->publisher, PEER_KEY_SIZE);
    code_name(coder, version);
    wire_code_u64(coder, &version->number);
    bool is_number = version->number > 0 && version->number <= VERSION_NUMBER_MAX;
    ASSERT(coder->reader != NULL || is_number);
    wire_code_check(coder, is_number, "a number that no version can have");
    wire_code_u64(coder, &time_us);
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        wire_code_varint(coder, totals[i], INT64_MAX);
    }
    if (coder->reader != NULL) {
        version->time_us = (int64_t)time_us;
        manifest_read_ref(coder->reader, &version->root);
    } else {
        manifest_write_ref(coder->writer, &version->root);
    }
}

static void write_fields(struct wire_writer *writer, const struct version *version) {
    struct wire_coder coder = {.writer = writer};
    wire_write_bytes(writer, bytes_of(magic, sizeof magic));
    wire_write_u8(writer, LAYOUT);
    version_code(&coder, (struct version *)version); /* writing changes nothing */
}

void version_sign(struct version *version, version_make_signature *sign, const void *signer) {
    uint8_t memory[VERSION_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    write_fields(&writer, version);
    sign(signer, VERSION_CONTEXT, wire_writer_bytes(&writer), version->signature);
}

struct bytes version_write(const struct version *version, uint8_t out[VERSION_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, VERSION_SIZE_MAX);
    write_fields(&writer, version);
    wire_write_bytes(&writer, bytes_of(version->signature, VERSION_SIGNATURE_SIZE));
    return wire_writer_bytes(&writer);
}

enum err version_read(struct bytes input, version_verify *verify, struct version *ret_version,
                      struct err_detail *detail) {
    struct wire_reader reader;
    struct wire_coder coder = {.reader = &reader};
    struct version version = {0};
    wire_reader_init(&reader, input);
    wire_read_magic(&reader, bytes_of(magic, sizeof magic), "no version of a collection");
    wire_read_version(&reader, LAYOUT, "a version of a later layout");
    version_code(&coder, &version);
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
