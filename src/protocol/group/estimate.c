#include "protocol/group/estimate.h"

enum { WEIGHT_OLD = 9, WEIGHTS = 10 };
static const uint64_t SIZE_MAX_BYTES = UINT64_C(1) << 40; /* so that microseconds by bytes fit into 64 bits */

static uint64_t damp(uint64_t old, uint64_t sample) {
    return old == 0 ? sample : (WEIGHT_OLD * old + sample + WEIGHTS / 2) / WEIGHTS;
}

static void count_up(uint32_t *count) {
    *count += *count < UINT32_MAX;
}

bool estimate_learn_round_trip(struct estimate *estimate, uint64_t sample_us, uint64_t now_us) {
    if (sample_us > ESTIMATE_ROUND_TRIP_US_MAX) {
        return false;
    }
    sample_us = sample_us == 0 ? 1 : sample_us; /* 0 stands for unknown */
    estimate->round_trip_us = (uint32_t)damp(estimate->round_trip_us, sample_us);
    estimate->round_trip_at_us = now_us;
    count_up(&estimate->round_trips_count);
    return true;
}

bool estimate_learn_transfer(struct estimate *estimate, uint64_t size, uint64_t duration_us,
                             uint64_t now_us) {
    if (size < ESTIMATE_TRANSFER_SIZE_MIN || size > SIZE_MAX_BYTES) {
        return false;
    }
    uint64_t bandwidth = size * 1000000 / (duration_us == 0 ? 1 : duration_us);
    bandwidth = bandwidth == 0 ? 1 : bandwidth;
    bandwidth = bandwidth < ESTIMATE_BANDWIDTH_MAX ? bandwidth : ESTIMATE_BANDWIDTH_MAX;
    estimate->bandwidth = damp(estimate->bandwidth, bandwidth);
    estimate->bandwidth_at_us = now_us;
    count_up(&estimate->transfers_count);
    return true;
}

uint32_t estimate_cost_us(const struct estimate *estimate, uint64_t size) {
    if (!estimate_is_known(estimate)) {
        return COSTS_UNKNOWN_US;
    }
    uint64_t delay_us =
        estimate->round_trip_us != 0 ? estimate->round_trip_us : ESTIMATE_ROUND_TRIP_US_ASSUMED;
    uint64_t bandwidth = estimate->bandwidth != 0 ? estimate->bandwidth : ESTIMATE_BANDWIDTH_ASSUMED;
    size = size < SIZE_MAX_BYTES ? size : SIZE_MAX_BYTES;
    uint64_t cost_us = delay_us + size * 1000000 / bandwidth;
    return cost_us < COSTS_US_MAX ? (uint32_t)cost_us : COSTS_US_MAX;
}

/*
 * The wire form of a report: estimate.h.
 *
 *      u8 version, then to the end for each member: address; varint round trip in microseconds, 0: unknown,
 *      else varint its age in seconds; varint bandwidth in bytes a second, 0: unknown, else varint its age
 */

enum { VERSION = 1, AGE_S_MAX = INT32_MAX };

/* ---- writing ---- */

static uint64_t age_s(uint64_t at_us, uint64_t now_us) {
    uint64_t age = at_us < now_us ? (now_us - at_us) / 1000000 : 0;
    return age < AGE_S_MAX ? age : AGE_S_MAX;
}

static void write_entry(struct wire_writer *writer, const struct estimate_entry *entry, uint64_t now_us) {
    const struct estimate *estimate = &entry->estimate;
    ASSERT(estimate_is_known(estimate) && estimate->round_trip_us <= ESTIMATE_ROUND_TRIP_US_MAX);
    ASSERT(estimate->bandwidth <= ESTIMATE_BANDWIDTH_MAX);
    peer_write_address(writer, PEER_MEMBER, &entry->about);
    wire_write_varint(writer, estimate->round_trip_us);
    if (estimate->round_trip_us != 0) {
        wire_write_varint(writer, age_s(estimate->round_trip_at_us, now_us));
    }
    wire_write_varint(writer, estimate->bandwidth);
    if (estimate->bandwidth != 0) {
        wire_write_varint(writer, age_s(estimate->bandwidth_at_us, now_us));
    }
}

size_t estimate_write_report(const struct estimate_entry *entries, size_t entries_count, uint64_t now_us,
                             void *memory, size_t memory_size, struct bytes *ret_report) {
    ASSERT(memory_size > ESTIMATE_ENTRY_SIZE_MAX);
    struct wire_writer writer;
    wire_writer_init(&writer, memory, memory_size);
    wire_write_u8(&writer, VERSION);
    size_t count = 0;
    while (count < entries_count && count < GROUP_MEMBERS_MAX &&
           memory_size - writer.size >= ESTIMATE_ENTRY_SIZE_MAX) {
        write_entry(&writer, &entries[count++], now_us);
    }
    *ret_report = wire_writer_bytes(&writer);
    return count;
}

/* ---- reading ---- */

static uint64_t read_age(struct wire_reader *reader, uint64_t now_us) {
    uint64_t age_us = wire_read_varint(reader, AGE_S_MAX) * 1000000;
    return age_us < now_us ? now_us - age_us : 0;
}

static void estimate_read_entry(struct wire_reader *reader, uint64_t now_us,
                                struct estimate_entry *ret_entry) {
    struct estimate estimate = {0};
    peer_read_address(reader, PEER_MEMBER, &ret_entry->about);
    estimate.round_trip_us = (uint32_t)wire_read_varint(reader, ESTIMATE_ROUND_TRIP_US_MAX);
    if (estimate.round_trip_us != 0) {
        estimate.round_trip_at_us = read_age(reader, now_us);
        estimate.round_trips_count = 1;
    }
    estimate.bandwidth = wire_read_varint(reader, ESTIMATE_BANDWIDTH_MAX);
    if (estimate.bandwidth != 0) {
        estimate.bandwidth_at_us = read_age(reader, now_us);
        estimate.transfers_count = 1;
    }
    ret_entry->estimate = estimate;
    wire_read_check(reader, estimate_is_known(&estimate), "an estimate of nothing");
}

static bool estimate_is_among(const struct estimate_entry *entries, size_t count,
                              const struct address *address) {
    size_t i = 0;
    while (i < count && !address_equal(&entries[i].about, address)) {
        i++;
    }
    return i < count;
}

enum err estimate_read_report(struct bytes report, uint64_t now_us,
                              struct estimate_entry out[GROUP_MEMBERS_MAX], size_t *ret_count) {
    struct wire_reader reader;
    wire_reader_init(&reader, report);
    wire_read_version(&reader, VERSION, "unknown version");
    size_t count = 0;
    while (wire_reader_left(&reader) > 0) {
        if (count == GROUP_MEMBERS_MAX) {
            wire_read_fail(&reader, ERR_LIMIT, "too many estimates");
            break;
        }
        estimate_read_entry(&reader, now_us, &out[count]);
        wire_read_check(&reader, !estimate_is_among(out, count, &out[count].about), "a member twice");
        count++;
    }
    enum err err = wire_reader_finish(&reader, NULL);
    if (err == ERR_OK) {
        *ret_count = count;
    }
    return err;
}
