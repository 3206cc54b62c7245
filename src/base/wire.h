/*
 * wire - the codec of everything that crosses the network or lies on disk in a layout of our own.
 *
 * Fixed layout, no schema at run time, no allocation: a message is what its reader reads, in order. Integers
 * are little-endian; a varint is LEB128 in its shortest form, at most 10 bytes, anything else is refused, so
 * that a value has exactly one encoding and signatures over encodings mean something.
 *
 * Both directions keep the first error: a reader then returns zeros and empty slices, a writer writes
 * nothing; check once at the end with wire_reader_finish() or wire_writer_finish(). Slices that a reader
 * returns borrow its input. Specification and golden vectors: docs/protocol/wire.md.
 */
#ifndef MNEMON_BASE_WIRE_H
#define MNEMON_BASE_WIRE_H

#include "base/bytes.h"
#include "base/err.h"

enum { WIRE_VARINT_SIZE_MAX = 10 };

struct wire_reader {
    struct bytes input;
    size_t offset;
    enum err err;
    size_t err_offset;  /* where the value that failed begins */
    const char *reason; /* static text */
};

void wire_reader_init(struct wire_reader *reader, struct bytes input);

uint8_t wire_read_u8(struct wire_reader *reader);
uint16_t wire_read_u16(struct wire_reader *reader);
uint32_t wire_read_u32(struct wire_reader *reader);
uint64_t wire_read_u64(struct wire_reader *reader);
bool wire_read_bool(struct wire_reader *reader); /* one byte, 0 or 1 */

/* A byte of at most max: enumerations, small counts. */
uint8_t wire_read_u8_max(struct wire_reader *reader, uint8_t max);

/* A varint of at most max. Every count and length passes through here, so none is without a bound. */
uint64_t wire_read_varint(struct wire_reader *reader, uint64_t max);

/* Exactly size bytes. */
struct bytes wire_read_bytes(struct wire_reader *reader, size_t size);

/* Exactly size bytes into out; zeros after an error. */
void wire_read_array(struct wire_reader *reader, void *out, size_t size);

/* A varint length of at most size_max, then that many bytes. */
struct bytes wire_read_string(struct wire_reader *reader, size_t size_max);

/* For checks of the caller's own: "port 0", "unknown kind". The first error wins, so what was read after it
 * may be checked as well. */
void wire_read_fail(struct wire_reader *reader, enum err err, const char *reason);
void wire_read_check(struct wire_reader *reader, bool is_good, const char *reason); /* else ERR_INVALID */

/* What a layout begins with. Another text is ERR_INVALID, another number (u8) ERR_UNSUPPORTED. */
void wire_read_magic(struct wire_reader *reader, struct bytes magic, const char *reason);
void wire_read_version(struct wire_reader *reader, uint8_t version, const char *reason);

static inline size_t wire_reader_left(const struct wire_reader *reader) {
    return reader->err != ERR_OK ? 0 : reader->input.size - reader->offset;
}

/* The first error; ERR_INVALID if bytes are left over. *detail (may be NULL) gets offset and reason. */
enum err wire_reader_finish(struct wire_reader *reader, struct err_detail *detail) MUST_CHECK;

struct wire_writer {
    uint8_t *data;
    size_t size;
    size_t capacity;
    enum err err;
};

void wire_writer_init(struct wire_writer *writer, void *memory, size_t capacity);

void wire_write_u8(struct wire_writer *writer, uint8_t value);
void wire_write_u16(struct wire_writer *writer, uint16_t value);
void wire_write_u32(struct wire_writer *writer, uint32_t value);
void wire_write_u64(struct wire_writer *writer, uint64_t value);
void wire_write_bool(struct wire_writer *writer, bool value);
void wire_write_varint(struct wire_writer *writer, uint64_t value);
void wire_write_bytes(struct wire_writer *writer, struct bytes bytes);
void wire_write_string(struct wire_writer *writer, struct bytes bytes); /* varint length, then the bytes */

/* What was written; ERR_LIMIT if it did not fit. */
enum err wire_writer_finish(const struct wire_writer *writer, struct bytes *ret_message) MUST_CHECK;

/* What was written, if it is the caller's to see that it fits. */
struct bytes wire_writer_bytes(const struct wire_writer *writer);

/*
 * A layout said once, for both directions: each function reads *value or writes it. Maxima bind what is read.
 */
struct wire_coder {
    struct wire_reader *reader; /* NULL: it writes */
    struct wire_writer *writer;
};

void wire_code_u8(struct wire_coder *coder, uint8_t *value, uint8_t max);
void wire_code_u32(struct wire_coder *coder, uint32_t *value);
void wire_code_u64(struct wire_coder *coder, uint64_t *value);
void wire_code_bool(struct wire_coder *coder, bool *value);
void wire_code_varint(struct wire_coder *coder, uint64_t *value, uint64_t max);
void wire_code_array(struct wire_coder *coder, void *data, size_t size);
void wire_code_string(struct wire_coder *coder, struct bytes *value, size_t size_max);

/* As wire_read_check(); what is written is not looked at. */
static inline void wire_code_check(struct wire_coder *coder, bool is_good, const char *reason) {
    if (coder->reader != NULL) {
        wire_read_check(coder->reader, is_good, reason);
    }
}

#endif
