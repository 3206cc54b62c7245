#include "base/wire.h"

void wire_reader_init(struct wire_reader *reader, struct bytes input) {
    *reader = (struct wire_reader){.input = input};
}

static void fail_at(struct wire_reader *reader, enum err err, size_t offset, const char *reason) {
    if (reader->err == ERR_OK) {
        reader->err = err;
        reader->err_offset = offset;
        reader->reason = reason;
    }
}

void wire_read_fail(struct wire_reader *reader, enum err err, const char *reason) {
    ASSERT(err < 0);
    fail_at(reader, err, reader->offset, reason);
}

void wire_read_check(struct wire_reader *reader, bool is_good, const char *reason) {
    if (!is_good) {
        wire_read_fail(reader, ERR_INVALID, reason);
    }
}

/* The next size bytes of the value that begins at start; after an error none, with NULL. */
static struct bytes wire_take(struct wire_reader *reader, size_t start, size_t size) {
    if (reader->err == ERR_OK && size > reader->input.size - reader->offset) {
        fail_at(reader, ERR_TRUNCATED, start, "ends inside a value");
    }
    if (reader->err != ERR_OK) {
        return bytes_of(NULL, 0);
    }
    reader->offset += size;
    return bytes_slice(reader->input, reader->offset - size, reader->offset);
}

static uint64_t read_little_endian(struct wire_reader *reader, size_t size) {
    struct bytes bytes = wire_take(reader, reader->offset, size);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        value |= (uint64_t)bytes.data[i] << (8 * i);
    }
    return value;
}

uint8_t wire_read_u8(struct wire_reader *reader) {
    return (uint8_t)read_little_endian(reader, 1);
}

uint16_t wire_read_u16(struct wire_reader *reader) {
    return (uint16_t)read_little_endian(reader, 2);
}

uint32_t wire_read_u32(struct wire_reader *reader) {
    return (uint32_t)read_little_endian(reader, 4);
}

uint64_t wire_read_u64(struct wire_reader *reader) {
    return read_little_endian(reader, 8);
}

uint8_t wire_read_u8_max(struct wire_reader *reader, uint8_t max) {
    size_t start = reader->offset;
    uint8_t value = wire_read_u8(reader);
    if (value > max) {
        fail_at(reader, ERR_INVALID, start, "value above its maximum");
        return 0;
    }
    return value;
}

void wire_read_magic(struct wire_reader *reader, struct bytes magic, const char *reason) {
    struct bytes found = wire_read_bytes(reader, magic.size);
    wire_read_check(reader, bytes_equal(found, magic), reason);
}

void wire_read_version(struct wire_reader *reader, uint8_t version, const char *reason) {
    if (wire_read_u8(reader) != version) {
        wire_read_fail(reader, ERR_UNSUPPORTED, reason);
    }
}

bool wire_read_bool(struct wire_reader *reader) {
    return wire_read_u8_max(reader, 1) == 1;
}

uint64_t wire_read_varint(struct wire_reader *reader, uint64_t max) {
    size_t start = reader->offset;
    uint64_t value = 0;
    for (unsigned i = 0; i < WIRE_VARINT_SIZE_MAX; i++) {
        struct bytes bytes = wire_take(reader, start, 1);
        if (bytes.size == 0) {
            return 0;
        }
        uint8_t byte = bytes.data[0];
        if (i == WIRE_VARINT_SIZE_MAX - 1 && byte > 1) {
            break; /* the tenth byte holds bit 63 alone */
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80) {
            continue;
        }
        if (byte == 0 && i > 0) {
            fail_at(reader, ERR_INVALID, start, "varint not in its shortest form");
            return 0;
        }
        if (value > max) {
            fail_at(reader, ERR_LIMIT, start, "value above its maximum");
            return 0;
        }
        return value;
    }
    fail_at(reader, ERR_INVALID, start, "varint above 64 bits");
    return 0;
}

struct bytes wire_read_bytes(struct wire_reader *reader, size_t size) {
    return wire_take(reader, reader->offset, size);
}

void wire_read_array(struct wire_reader *reader, void *out, size_t size) {
    struct bytes bytes = wire_take(reader, reader->offset, size);
    if (bytes.size > 0) {
        memcpy(out, bytes.data, bytes.size);
    } else if (size > 0) {
        memset(out, 0, size);
    }
}

struct bytes wire_read_string(struct wire_reader *reader, size_t size_max) {
    size_t start = reader->offset;
    uint64_t size = wire_read_varint(reader, size_max);
    return wire_take(reader, start, (size_t)size);
}

enum err wire_reader_finish(struct wire_reader *reader, struct err_detail *detail) {
    if (reader->err == ERR_OK && reader->offset < reader->input.size) {
        fail_at(reader, ERR_INVALID, reader->offset, "bytes left over");
    }
    if (reader->err == ERR_OK) {
        return ERR_OK;
    }
    return err_set_at(detail, reader->err, reader->err_offset, "byte %zu: %s", reader->err_offset,
                      reader->reason);
}

void wire_writer_init(struct wire_writer *writer, void *memory, size_t capacity) {
    *writer = (struct wire_writer){.data = memory, .capacity = capacity};
}

/* Room for size bytes, or NULL: after an error, or if there is nothing to write. */
static uint8_t *wire_give(struct wire_writer *writer, size_t size) {
    if (writer->err != ERR_OK || size == 0) {
        return NULL;
    }
    if (size > writer->capacity - writer->size) {
        writer->err = ERR_LIMIT;
        return NULL;
    }
    uint8_t *data = writer->data + writer->size;
    writer->size += size;
    return data;
}

static void write_little_endian(struct wire_writer *writer, uint64_t value, size_t size) {
    uint8_t *data = wire_give(writer, size);
    for (size_t i = 0; data != NULL && i < size; i++) {
        data[i] = (uint8_t)(value >> (8 * i));
    }
}

void wire_write_u8(struct wire_writer *writer, uint8_t value) {
    write_little_endian(writer, value, 1);
}

void wire_write_u16(struct wire_writer *writer, uint16_t value) {
    write_little_endian(writer, value, 2);
}

void wire_write_u32(struct wire_writer *writer, uint32_t value) {
    write_little_endian(writer, value, 4);
}

void wire_write_u64(struct wire_writer *writer, uint64_t value) {
    write_little_endian(writer, value, 8);
}

void wire_write_bool(struct wire_writer *writer, bool value) {
    wire_write_u8(writer, value ? 1 : 0);
}

void wire_write_varint(struct wire_writer *writer, uint64_t value) {
    uint8_t encoded[WIRE_VARINT_SIZE_MAX];
    size_t size = 0;
    while (value >= 0x80) {
        encoded[size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    encoded[size++] = (uint8_t)value;
    wire_write_bytes(writer, bytes_of(encoded, size));
}

void wire_write_bytes(struct wire_writer *writer, struct bytes bytes) {
    uint8_t *data = wire_give(writer, bytes.size);
    if (data != NULL) {
        memcpy(data, bytes.data, bytes.size);
    }
}

void wire_write_string(struct wire_writer *writer, struct bytes bytes) {
    wire_write_varint(writer, bytes.size);
    wire_write_bytes(writer, bytes);
}

enum err wire_writer_finish(const struct wire_writer *writer, struct bytes *ret_message) {
    if (writer->err != ERR_OK) {
        return writer->err;
    }
    *ret_message = bytes_of(writer->data, writer->size);
    return ERR_OK;
}

struct bytes wire_writer_bytes(const struct wire_writer *writer) {
    ASSERT(writer->err == ERR_OK);
    return bytes_of(writer->data, writer->size);
}

void wire_code_u8(struct wire_coder *coder, uint8_t *value, uint8_t max) {
    if (coder->reader != NULL) {
        *value = wire_read_u8_max(coder->reader, max);
    } else {
        wire_write_u8(coder->writer, *value);
    }
}

void wire_code_u32(struct wire_coder *coder, uint32_t *value) {
    if (coder->reader != NULL) {
        *value = wire_read_u32(coder->reader);
    } else {
        wire_write_u32(coder->writer, *value);
    }
}

void wire_code_u64(struct wire_coder *coder, uint64_t *value) {
    if (coder->reader != NULL) {
        *value = wire_read_u64(coder->reader);
    } else {
        wire_write_u64(coder->writer, *value);
    }
}

void wire_code_bool(struct wire_coder *coder, bool *value) {
    if (coder->reader != NULL) {
        *value = wire_read_bool(coder->reader);
    } else {
        wire_write_bool(coder->writer, *value);
    }
}

void wire_code_varint(struct wire_coder *coder, uint64_t *value, uint64_t max) {
    if (coder->reader != NULL) {
        *value = wire_read_varint(coder->reader, max);
    } else {
        wire_write_varint(coder->writer, *value);
    }
}

void wire_code_array(struct wire_coder *coder, void *data, size_t size) {
    if (coder->reader != NULL) {
        wire_read_array(coder->reader, data, size);
    } else {
        wire_write_bytes(coder->writer, bytes_of(data, size));
    }
}

void wire_code_string(struct wire_coder *coder, struct bytes *value, size_t size_max) {
    if (coder->reader != NULL) {
        *value = wire_read_string(coder->reader, size_max);
    } else {
        ASSERT(value->size <= size_max);
        wire_write_string(coder->writer, *value);
    }
}
