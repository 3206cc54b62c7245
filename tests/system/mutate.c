#include "mutate.h"

#include <string.h>

#include "base/wire.h"

enum { CHANGES_MAX = 4, RUN_SIZE_MAX = 64 };

uint64_t mutate_number(struct prng *prng) {
    uint64_t power = UINT64_C(1) << prng_below(prng, 64);
    switch (prng_below(prng, 6)) {
    case 0:
        return prng_below(prng, 4);
    case 1:
        return UINT64_MAX - prng_below(prng, 2);
    case 2:
        return power - 1;
    case 3:
        return power;
    case 4:
        return power + 1;
    default:
        return prng_u64(prng) >> prng_below(prng, 64);
    }
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Make room for a run at the offset, as far as there is room; returns its size. */
static size_t open_gap(uint8_t *data, size_t *size, size_t size_max, size_t offset, size_t run_size) {
    run_size = smaller(run_size, size_max - *size);
    memmove(data + offset + run_size, data + offset, *size - offset);
    *size += run_size;
    return run_size;
}

static void close_gap(uint8_t *data, size_t *size, size_t offset, size_t run_size) {
    run_size = smaller(run_size, *size - offset);
    memmove(data + offset, data + offset + run_size, *size - offset - run_size);
    *size -= run_size;
}

static void write_number(struct prng *prng, uint8_t *data, size_t size, size_t offset) {
    uint8_t bytes[WIRE_VARINT_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, bytes, sizeof bytes);
    uint64_t number = mutate_number(prng);
    switch (prng_below(prng, 5)) {
    case 0:
        wire_write_u8(&writer, (uint8_t)number);
        break;
    case 1:
        wire_write_u16(&writer, (uint16_t)number);
        break;
    case 2:
        wire_write_u32(&writer, (uint32_t)number);
        break;
    case 3:
        wire_write_u64(&writer, number);
        break;
    default:
        wire_write_varint(&writer, number);
    }
    memcpy(data + offset, bytes, smaller(writer.size, size - offset));
}

static void insert_run(struct prng *prng, uint8_t *data, size_t *size, size_t size_max, size_t offset) {
    size_t run_size = open_gap(data, size, size_max, offset, 1 + prng_below(prng, RUN_SIZE_MAX));
    switch (prng_below(prng, 3)) {
    case 0:
        memset(data + offset, 0, run_size);
        break;
    case 1:
        memset(data + offset, 0xff, run_size);
        break;
    default:
        prng_fill(prng, data + offset, run_size);
    }
}

/* What stands there stands there twice. */
static void repeat_run(struct prng *prng, uint8_t *data, size_t *size, size_t size_max, size_t offset) {
    size_t run_size = smaller(1 + prng_below(prng, RUN_SIZE_MAX), *size - offset);
    run_size = open_gap(data, size, size_max, offset, run_size);
    memmove(data + offset, data + offset + run_size, run_size);
}

static void swap_runs(struct prng *prng, uint8_t *data, size_t size, size_t offset) {
    size_t other = prng_below(prng, size);
    size_t run_size = smaller(1 + prng_below(prng, RUN_SIZE_MAX), size - (offset > other ? offset : other));
    for (size_t i = 0; i < run_size; i++) {
        uint8_t byte = data[offset + i];
        data[offset + i] = data[other + i];
        data[other + i] = byte;
    }
}

static void take_run(struct prng *prng, uint8_t *data, size_t size, size_t offset, struct bytes other) {
    if (other.size == 0) {
        return;
    }
    size_t from = prng_below(prng, other.size);
    size_t run_size = smaller(other.size - from, size - offset);
    memcpy(data + offset, other.data + from, 1 + prng_below(prng, run_size));
}

static void change(struct prng *prng, uint8_t *data, size_t *size, size_t size_max, struct bytes other) {
    if (*size == 0) {
        insert_run(prng, data, size, size_max, 0);
        return;
    }
    size_t offset = prng_below(prng, *size);
    switch (prng_below(prng, 9)) {
    case 0:
        data[offset] ^= (uint8_t)(1u << prng_below(prng, 8));
        break;
    case 1:
    case 2:
        write_number(prng, data, *size, offset);
        break;
    case 3:
        *size = offset;
        break;
    case 4:
        insert_run(prng, data, size, size_max, prng_below(prng, 2) == 0 ? *size : offset);
        break;
    case 5:
        close_gap(data, size, offset, 1 + prng_below(prng, RUN_SIZE_MAX));
        break;
    case 6:
        repeat_run(prng, data, size, size_max, offset);
        break;
    case 7:
        swap_runs(prng, data, *size, offset);
        break;
    default:
        take_run(prng, data, *size, offset, other);
    }
}

size_t mutate(struct prng *prng, uint8_t *data, size_t size, size_t size_max, struct bytes other) {
    size_t count = 1 + prng_below(prng, CHANGES_MAX);
    for (size_t i = 0; i < count; i++) {
        change(prng, data, &size, size_max, other);
    }
    return size;
}
