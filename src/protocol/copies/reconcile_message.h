/*
 * reconcile_message - the bytes of a comparison: an arc of the ring as a row of ranges, and what is said of
 * each.
 *
 *      message     range … up to the end of the arc; each begins where the one before it ends
 *      range       u8 mode << 6 | size of the bound; the bound's bytes; what the mode says
 *      bound       the first bytes of a key, without zeros at the end; size 41: the end of the arc
 *
 *      SKIP        nothing is to be said
 *      SUM         varint count, u64 low, u64 high
 *      LIST        varint count, keys: all that the sender has here
 *      DIFFERENCE  varint count, (u8 side, key) …: answer to a LIST
 *
 * Readers take any bytes: order, bounds and lengths are checked before anybody sees a range. Specified in
 * docs/protocol/copies.md. Pure.
 */
#ifndef MNEMON_PROTOCOL_COPIES_RECONCILE_MESSAGE_H
#define MNEMON_PROTOCOL_COPIES_RECONCILE_MESSAGE_H

#include "base/wire.h"
#include "protocol/copies/reconcile_arc.h"

enum reconcile_mode { RECONCILE_SKIP, RECONCILE_SUM, RECONCILE_LIST, RECONCILE_DIFFERENCE };

/* For each key of a DIFFERENCE: which side lacks it. */
enum reconcile_side { RECONCILE_SENDER_LACKS, RECONCILE_RECEIVER_LACKS };

enum {
    RECONCILE_MESSAGE_SIZE_MAX = 64 << 10,
    RECONCILE_RANGE_SIZE_MAX = RECONCILE_POSITION_SIZE + WIRE_VARINT_SIZE_MAX + 16, /* beside its keys */
    RECONCILE_ENTRY_SIZE = 1 + RINGKEY_SIZE,
};

struct reconcile_range {
    enum reconcile_mode mode;
    struct reconcile_position lower;
    struct reconcile_position upper;
    struct ringkey_sum sum; /* SUM */
    struct bytes keys;      /* LIST: keys; DIFFERENCE: entries; in order, inside of the range */
    size_t keys_count;
};

struct reconcile_reader {
    struct wire_reader wire;
    const struct reconcile_arc *arc;
    struct reconcile_position lower; /* of the next range */
    struct reconcile_position end;
};

void reconcile_reader_init(struct reconcile_reader *reader, const struct reconcile_arc *arc,
                           struct bytes message);

/* False at the end of the arc, and if the message breaks a rule: reconcile_reader_finish() tells. */
bool reconcile_read(struct reconcile_reader *reader, struct reconcile_range *ret_range);
enum err reconcile_reader_finish(struct reconcile_reader *reader, struct err_detail *detail) MUST_CHECK;

/* The n-th key of a range that was read. */
struct ringkey reconcile_range_key(const struct reconcile_range *range, size_t index);
enum reconcile_side reconcile_range_side(const struct reconcile_range *range, size_t index);

struct reconcile_writer {
    struct wire_writer wire;
    struct reconcile_position upper; /* of what was written last */
    struct reconcile_position end;
};

void reconcile_writer_init(struct reconcile_writer *writer, const struct reconcile_arc *arc, void *memory,
                           size_t capacity);

/* How many bytes of keys fit into a range now, so that two more ranges without keys fit behind it. */
size_t reconcile_writer_room(const struct reconcile_writer *writer);

/* What lies between the last range and this one is skipped. A LIST or DIFFERENCE is followed by its keys. */
void reconcile_write_sum(struct reconcile_writer *writer, const struct reconcile_position *lower,
                         const struct reconcile_position *upper, const struct ringkey_sum *sum);
void reconcile_write_keys(struct reconcile_writer *writer, enum reconcile_mode mode,
                          const struct reconcile_position *lower, const struct reconcile_position *upper,
                          size_t keys_count);
void reconcile_write_key(struct reconcile_writer *writer, const struct ringkey *key);
void reconcile_write_entry(struct reconcile_writer *writer, enum reconcile_side side,
                           const struct ringkey *key);

/* The rest of the arc is skipped. */
struct bytes reconcile_writer_finish(struct reconcile_writer *writer);

#endif
