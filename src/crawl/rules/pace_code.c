#include "crawl/rules/pace_code.h"

static const uint64_t WAIT_MAX_US = UINT64_C(1) << 42; /* some weeks */
static const uint64_t ANSWER_MAX_US = UINT64_C(1) << 32;
enum { LEVEL_MAX = 255, STATUS_MAX = 999, FAILURES_MAX = UINT16_MAX };
enum { FLAG_CRAWL_DELAY_CUT = 1, FLAG_ROBOTS_WAITING = 2, FLAGS_ALL = 3 };

static uint64_t at_most(uint64_t value, uint64_t max) {
    return value < max ? value : max;
}

void pace_write(const struct pace *pace, uint64_t now_us, struct wire_writer *writer) {
    bool has_wait = !pace_is_dead(pace) && pace->next_us > now_us;
    wire_write_u8(writer, (uint8_t)pace->reason);
    wire_write_u8(writer, (uint8_t)((pace->is_crawl_delay_cut ? FLAG_CRAWL_DELAY_CUT : 0) |
                                    (pace->is_robots_waiting ? FLAG_ROBOTS_WAITING : 0)));
    wire_write_varint(writer, has_wait ? at_most(pace->next_us - now_us, WAIT_MAX_US) : 0);
    wire_write_varint(writer, at_most(pace->answer_us, ANSWER_MAX_US));
    wire_write_varint(writer, at_most(pace->crawl_delay_us, WAIT_MAX_US));
    wire_write_u8(writer, (uint8_t)at_most(pace->bad_count, LEVEL_MAX));
    wire_write_varint(writer, pace->failures_count);
    wire_write_varint(writer, at_most(pace->last_status, STATUS_MAX));
}

void pace_read(struct wire_reader *reader, uint64_t now_us, struct pace *ret_pace) {
    uint8_t reason = wire_read_u8_max(reader, PACE_REASONS_COUNT - 1);
    uint8_t flags = wire_read_u8_max(reader, FLAGS_ALL);
    uint64_t wait_us = wire_read_varint(reader, WAIT_MAX_US);
    if (reason == PACE_DEAD && wait_us != 0) {
        wire_read_fail(reader, ERR_INVALID, "a wait of a dead host");
    }
    uint64_t answer_us = wire_read_varint(reader, ANSWER_MAX_US);
    uint64_t crawl_delay_us = wire_read_varint(reader, WAIT_MAX_US);
    uint8_t bad_count = wire_read_u8(reader);
    uint64_t failures_count = wire_read_varint(reader, FAILURES_MAX);
    uint64_t last_status = wire_read_varint(reader, STATUS_MAX);
    *ret_pace = (struct pace){
        .next_us = reason == PACE_DEAD ? UINT64_MAX : now_us + wait_us,
        .answer_us = answer_us,
        .crawl_delay_us = crawl_delay_us,
        .bad_count = bad_count,
        .failures_count = (uint16_t)failures_count,
        .last_status = (uint16_t)last_status,
        .is_crawl_delay_cut = (flags & FLAG_CRAWL_DELAY_CUT) != 0,
        .is_robots_waiting = (flags & FLAG_ROBOTS_WAITING) != 0,
        .reason = (enum pace_reason)reason,
    };
}
