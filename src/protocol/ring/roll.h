/*
 * roll - which keys were members of a ring, and when. Pure.
 *
 * A signature of a capture counts only if its key was a member at the time of the capture. So a node keeps
 * the memberships that it has seen, also of nodes that have left, and asks others for those that it has not:
 *
 *      file        "mnrl" u8 1, varint ≤ 40000, then each: u64 removed, entry
 *      question    varint ≤ 64, then u64 each: the first 8 bytes of a key
 *      answer      varint ≤ 64, then an entry each: of those that are known
 *      entry       bytes[32] key, string<=206 membership                   (protocol/ring/membership.h)
 *
 * An entry proves itself by the founder's signature; the time of a removal is what this node saw: the first
 * charter that names the key. The founder is a member from the ring's beginning, and in an open ring every
 * key is until it is removed; neither needs an entry. docs/protocol/ring-services.md.
 */
#ifndef MNEMON_PROTOCOL_RING_ROLL_H
#define MNEMON_PROTOCOL_RING_ROLL_H

#include "base/wire.h"
#include "protocol/ring/membership.h"

enum {
    ROLL_COUNT_MAX = 20000,
    ROLL_ASKED_MAX = 64,
    ROLL_ENTRY_SIZE_MAX = PEER_KEY_SIZE + WIRE_VARINT_SIZE_MAX + MEMBERSHIP_SIZE_MAX,
    ROLL_QUESTION_SIZE_MAX = WIRE_VARINT_SIZE_MAX + 8 * ROLL_ASKED_MAX,
    ROLL_ANSWER_SIZE_MAX = WIRE_VARINT_SIZE_MAX + ROLL_ENTRY_SIZE_MAX * ROLL_ASKED_MAX,
};

struct roll_entry {
    uint8_t key[PEER_KEY_SIZE];
    struct membership membership;
};

/* From when to when a key is a member. */
struct roll_period {
    uint64_t from_s;  /* since 1970 */
    uint64_t until_s; /* 0: no end */
};

/* The first 8 bytes, by which captures are listed (store/index/index_code.h). */
uint64_t roll_start(const uint8_t key[PEER_KEY_SIZE]);

/* Is it the founder's word? With it *ret_period, without removals. ERR_MISMATCH. */
enum err roll_check(const struct roll_entry *entry, const struct charter *charter,
                    const uint8_t ring[CHARTER_ID_SIZE], charter_verify *verify,
                    struct roll_period *ret_period) MUST_CHECK;

/* Clocks go ahead by MEMBERSHIP_CLOCK_SLACK_S. */
bool roll_covers(const struct roll_period *period, int64_t time_us);

/* Part of the other layouts: the reader keeps its first error. */
void roll_write_entry(struct wire_writer *writer, const struct roll_entry *entry);
void roll_read_entry(struct wire_reader *reader, struct roll_entry *ret_entry);

/* At most ROLL_ASKED_MAX. */
void roll_write_question(struct wire_writer *writer, const uint64_t *starts, size_t count);
enum err roll_read_question(struct bytes in, uint64_t out[ROLL_ASKED_MAX], size_t *ret_count,
                            struct err_detail *detail) MUST_CHECK;

/* Whole or not at all. */
enum err roll_read_answer(struct bytes in, struct roll_entry out[ROLL_ASKED_MAX], size_t *ret_count,
                          struct err_detail *detail) MUST_CHECK;

#endif
