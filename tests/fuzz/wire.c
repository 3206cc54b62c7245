/*
 * wire - a script of reads over hostile bytes.
 *
 *      byte 0        how many reads, at most 31
 *      one a read    what is read, and its bound
 *      the rest      the input of the reader
 *
 * What decodes must encode to the same bytes, up to where the reader says that the first bad value begins.
 */
#include "base/wire.h"

#include <stdlib.h>

#include "fuzz.h"

enum { READS_COUNT_MAX = 31, KINDS_COUNT = 9 };

static const uint64_t bounds[] = {0, 1, 2, 3, 16, 127, 128, 300, 65535, UINT32_MAX, UINT64_MAX};
enum { BOUNDS_COUNT = sizeof bounds / sizeof bounds[0] };

static uint8_t u8_of(uint64_t bound) {
    return bound < UINT8_MAX ? (uint8_t)bound : UINT8_MAX;
}

static uint64_t at_most(uint64_t value, uint64_t bound) {
    ASSERT(value <= bound);
    return value;
}

/* A slice lies in the input, or is empty. */
static struct bytes inside(const struct wire_reader *reader, struct bytes slice, uint64_t bound) {
    ASSERT(slice.size <= bound && slice.size <= reader->offset);
    ASSERT(slice.size == 0 || slice.data + slice.size == reader->input.data + reader->offset);
    return slice;
}

static void copy_array(struct wire_reader *reader, struct wire_writer *writer, size_t size) {
    uint8_t array[16];
    wire_read_array(reader, array, size);
    wire_write_bytes(writer, bytes_of(array, reader->err == ERR_OK ? size : 0));
}

/* Read one value and, unless it is bad, write it again. Returns what was read, 0 for an empty slice. */
static uint64_t copy_number(struct wire_reader *reader, struct wire_writer *writer, unsigned kind,
                            uint64_t bound) {
    struct wire_writer none;
    wire_writer_init(&none, NULL, 0);
    uint64_t value = 0;
    switch (kind) {
    case 0:
        value = wire_read_u8(reader);
        wire_write_u8(reader->err == ERR_OK ? writer : &none, (uint8_t)value);
        break;
    case 1:
        value = wire_read_u16(reader);
        wire_write_u16(reader->err == ERR_OK ? writer : &none, (uint16_t)value);
        break;
    case 2:
        value = wire_read_u32(reader);
        wire_write_u32(reader->err == ERR_OK ? writer : &none, (uint32_t)value);
        break;
    case 3:
        value = wire_read_u64(reader);
        wire_write_u64(reader->err == ERR_OK ? writer : &none, value);
        break;
    case 4:
        value = wire_read_bool(reader);
        wire_write_bool(reader->err == ERR_OK ? writer : &none, value == 1);
        break;
    case 5:
        value = at_most(wire_read_u8_max(reader, u8_of(bound)), bound);
        wire_write_u8(reader->err == ERR_OK ? writer : &none, (uint8_t)value);
        break;
    default:
        value = at_most(wire_read_varint(reader, bound), bound);
        wire_write_varint(reader->err == ERR_OK ? writer : &none, value);
    }
    return value;
}

static struct bytes copy_slice(struct wire_reader *reader, struct wire_writer *writer, unsigned kind,
                               uint64_t bound) {
    if (kind == 7) {
        struct bytes slice = inside(reader, wire_read_bytes(reader, (size_t)bound), bound);
        wire_write_bytes(writer, slice);
        return slice;
    }
    struct bytes slice = inside(reader, wire_read_string(reader, (size_t)bound), bound);
    if (reader->err == ERR_OK) {
        wire_write_string(writer, slice);
    }
    return slice;
}

static void run_script(struct wire_reader *reader, struct wire_writer *writer, struct bytes script) {
    for (size_t i = 0; i < script.size; i++) {
        unsigned kind = script.data[i] % (KINDS_COUNT + 1);
        uint64_t bound = bounds[script.data[i] / (KINDS_COUNT + 1) % BOUNDS_COUNT];
        const struct wire_reader before = *reader;
        uint64_t value = 0;
        if (kind < 7) {
            value = copy_number(reader, writer, kind, bound);
        } else if (kind < 9) {
            value = copy_slice(reader, writer, kind, bound).size;
        } else {
            copy_array(reader, writer, bound < 16 ? (size_t)bound : 16);
        }
        ASSERT(reader->offset >= before.offset && reader->offset <= reader->input.size);
        ASSERT(reader->err == ERR_OK || value == 0);
        if (before.err != ERR_OK) { /* the first error sticks, and nothing is read any more */
            ASSERT(reader->err == before.err && reader->err_offset == before.err_offset);
            ASSERT(reader->reason == before.reason && reader->offset == before.offset);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    size_t reads_count = data[0] % (READS_COUNT_MAX + 1);
    reads_count = reads_count < size - 1 ? reads_count : size - 1;
    struct bytes script = bytes_of(data + 1, reads_count);
    struct bytes input = bytes_of(data + 1 + reads_count, size - 1 - reads_count);
    uint8_t *memory = malloc(input.size + 1);
    ASSERT(memory != NULL);

    struct wire_reader reader;
    struct wire_writer writer;
    wire_reader_init(&reader, input);
    wire_writer_init(&writer, memory, input.size);
    run_script(&reader, &writer, script);

    struct err_detail detail = {.offset = input.size};
    enum err err = wire_reader_finish(&reader, &detail);
    ASSERT(err == reader.err && (err == ERR_OK || err == detail.err));
    ASSERT(detail.offset <= input.size);
    struct bytes again;
    enum err write_err = wire_writer_finish(&writer, &again);
    ASSERT(write_err == ERR_OK);
    ASSERT(bytes_equal(again, bytes_slice(input, 0, detail.offset)));
    free(memory);
    return 0;
}
