#include "protocol/copies/reconcile_message.h"

enum {
    MODE_SHIFT = 6,
    BOUND_SIZE_MASK = (1 << MODE_SHIFT) - 1,
    BOUND_END = RINGKEY_SIZE + 1, /* in place of a size: the end of the arc */
};

static const uint64_t COUNT_MAX = UINT64_C(1) << 48; /* of keys in a range: more than any node holds */

/* ---- reading ---- */

void reconcile_reader_init(struct reconcile_reader *reader, const struct reconcile_arc *arc,
                           struct bytes message) {
    *reader = (struct reconcile_reader){
        .arc = arc,
        .lower = reconcile_arc_start(arc),
        .end = reconcile_arc_end(arc),
    };
    wire_reader_init(&reader->wire, message);
    if (message.size > RECONCILE_MESSAGE_SIZE_MAX) {
        wire_read_fail(&reader->wire, ERR_LIMIT, "message too large");
    }
}

static struct reconcile_position read_bound(struct reconcile_reader *reader, uint8_t size) {
    struct wire_reader *wire = &reader->wire;
    struct ringkey bound = {0};
    if (size == BOUND_END) {
        return reader->end;
    }
    if (size > BOUND_END) {
        wire_read_fail(wire, ERR_INVALID, "bound too long");
        return reader->end;
    }
    wire_read_array(wire, bound.bytes, size);
    wire_read_check(wire, size == 0 || bound.bytes[size - 1] != 0, "bound not in its shortest form");
    struct reconcile_position position = reconcile_arc_position(reader->arc, &bound);
    wire_read_check(wire, reconcile_position_compare(&position, &reader->lower) > 0, "bounds not in order");
    wire_read_check(wire, reconcile_position_compare(&position, &reader->end) < 0,
                    "bound outside of the arc");
    return position;
}

static void read_keys(struct reconcile_reader *reader, struct reconcile_range *range) {
    struct wire_reader *wire = &reader->wire;
    size_t size = range->mode == RECONCILE_LIST ? (size_t)RINGKEY_SIZE : (size_t)RECONCILE_ENTRY_SIZE;
    range->keys_count = (size_t)wire_read_varint(wire, RECONCILE_MESSAGE_SIZE_MAX / size);
    range->keys = wire_read_bytes(wire, range->keys_count * size);
    struct reconcile_position before = range->lower;
    for (size_t i = 0; i < range->keys_count && wire->err == ERR_OK; i++) {
        if (range->mode == RECONCILE_DIFFERENCE && range->keys.data[i * size] > RECONCILE_RECEIVER_LACKS) {
            wire_read_fail(wire, ERR_INVALID, "unknown side");
            return;
        }
        struct ringkey key = reconcile_range_key(range, i);
        struct reconcile_position position = reconcile_arc_position(reader->arc, &key);
        int order = reconcile_position_compare(&position, &before);
        wire_read_check(wire, order > 0 || (order == 0 && i == 0), "keys not in order");
        wire_read_check(wire, reconcile_position_compare(&position, &range->upper) < 0,
                        "key outside of its range");
        before = position;
    }
}

bool reconcile_read(struct reconcile_reader *reader, struct reconcile_range *ret_range) {
    struct wire_reader *wire = &reader->wire;
    if (wire->err != ERR_OK || reconcile_position_compare(&reader->lower, &reader->end) == 0) {
        return false;
    }
    uint8_t head = wire_read_u8(wire);
    struct reconcile_range range = {.mode = (enum reconcile_mode)(head >> MODE_SHIFT),
                                    .lower = reader->lower};
    range.upper = read_bound(reader, head & BOUND_SIZE_MASK);
    if (range.mode == RECONCILE_SUM) {
        range.sum.count = wire_read_varint(wire, COUNT_MAX);
        range.sum.low = wire_read_u64(wire);
        range.sum.high = wire_read_u64(wire);
    } else if (range.mode != RECONCILE_SKIP) {
        read_keys(reader, &range);
    }
    if (wire->err != ERR_OK) {
        return false;
    }
    reader->lower = range.upper;
    *ret_range = range;
    return true;
}

enum err reconcile_reader_finish(struct reconcile_reader *reader, struct err_detail *detail) {
    return wire_reader_finish(&reader->wire, detail);
}

struct ringkey reconcile_range_key(const struct reconcile_range *range, size_t index) {
    struct ringkey key;
    ASSERT(index < range->keys_count);
    if (range->mode == RECONCILE_LIST) {
        memcpy(key.bytes, range->keys.data + index * RINGKEY_SIZE, RINGKEY_SIZE);
    } else {
        memcpy(key.bytes, range->keys.data + index * RECONCILE_ENTRY_SIZE + 1, RINGKEY_SIZE);
    }
    return key;
}

enum reconcile_side reconcile_range_side(const struct reconcile_range *range, size_t index) {
    ASSERT(range->mode == RECONCILE_DIFFERENCE && index < range->keys_count);
    return (enum reconcile_side)range->keys.data[index * RECONCILE_ENTRY_SIZE];
}

/* ---- writing ---- */

void reconcile_writer_init(struct reconcile_writer *writer, const struct reconcile_arc *arc, void *memory,
                           size_t capacity) {
    *writer = (struct reconcile_writer){.upper = reconcile_arc_start(arc), .end = reconcile_arc_end(arc)};
    wire_writer_init(&writer->wire, memory, capacity);
}

size_t reconcile_writer_room(const struct reconcile_writer *writer) {
    /* Each of the three may have a skipped one before it. */
    size_t used = writer->wire.size + 6 * (size_t)RECONCILE_RANGE_SIZE_MAX;
    return used < writer->wire.capacity ? writer->wire.capacity - used : 0;
}

static void write_head(struct reconcile_writer *writer, enum reconcile_mode mode,
                       const struct reconcile_position *upper) {
    ASSERT(reconcile_position_compare(&writer->upper, upper) < 0);
    uint8_t size = BOUND_END;
    if (reconcile_position_compare(upper, &writer->end) < 0) {
        size = RINGKEY_SIZE;
        while (size > 0 && upper->bytes[size] == 0) { /* bytes[0] is not the key's */
            size--;
        }
    }
    wire_write_u8(&writer->wire, (uint8_t)((unsigned)mode << MODE_SHIFT | size));
    wire_write_bytes(&writer->wire, bytes_of(upper->bytes + 1, size == BOUND_END ? 0 : size));
    writer->upper = *upper;
}

static void skip_to(struct reconcile_writer *writer, const struct reconcile_position *position) {
    if (reconcile_position_compare(&writer->upper, position) < 0) {
        write_head(writer, RECONCILE_SKIP, position);
    }
}

void reconcile_write_sum(struct reconcile_writer *writer, const struct reconcile_position *lower,
                         const struct reconcile_position *upper, const struct ringkey_sum *sum) {
    skip_to(writer, lower);
    write_head(writer, RECONCILE_SUM, upper);
    wire_write_varint(&writer->wire, sum->count);
    wire_write_u64(&writer->wire, sum->low);
    wire_write_u64(&writer->wire, sum->high);
}

void reconcile_write_keys(struct reconcile_writer *writer, enum reconcile_mode mode,
                          const struct reconcile_position *lower, const struct reconcile_position *upper,
                          size_t keys_count) {
    ASSERT(mode == RECONCILE_LIST || mode == RECONCILE_DIFFERENCE);
    skip_to(writer, lower);
    write_head(writer, mode, upper);
    wire_write_varint(&writer->wire, keys_count);
}

void reconcile_write_key(struct reconcile_writer *writer, const struct ringkey *key) {
    wire_write_bytes(&writer->wire, bytes_of(key->bytes, RINGKEY_SIZE));
}

void reconcile_write_entry(struct reconcile_writer *writer, enum reconcile_side side,
                           const struct ringkey *key) {
    wire_write_u8(&writer->wire, (uint8_t)side);
    reconcile_write_key(writer, key);
}

struct bytes reconcile_writer_finish(struct reconcile_writer *writer) {
    skip_to(writer, &writer->end);
    return wire_writer_bytes(&writer->wire); /* reconcile_writer_room() was asked */
}
