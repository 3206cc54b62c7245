#include "node/reading/ring_reader_scope.h"

#include "base/utc.h"

/* What both bounds begin with. */
static struct bytes shared_by(struct bytes from, struct bytes to) {
    size_t size = 0;
    while (size < from.size && size < to.size && from.data[size] == to.data[size]) {
        size++;
    }
    return bytes_slice(from, 0, size);
}

/* What all keys begin with that are not before `from` and before `to`: of "a/" and "a0", which is the next
 * that could follow, "a/". */
static struct bytes shared_between(struct bytes from, struct bytes to) {
    struct bytes shared = shared_by(from, to);
    size_t size = shared.size;
    bool is_next = size < from.size && to.size == size + 1 && to.data[size] == from.data[size] + 1;
    return is_next ? bytes_slice(from, 0, size + 1) : shared;
}

bool ring_reader_scope_is_url(struct bytes from, struct bytes to, struct bytes *ret_surt) {
    struct bytes shared = shared_by(from, to);
    size_t end = bytes_find_byte(shared, 0x00);
    bool is_url = end < shared.size;
    if (is_url) {
        *ret_surt = bytes_slice(shared, 0, end);
    }
    return is_url;
}

bool ring_reader_scope(struct sha256 *sha256, struct bytes from, struct bytes to,
                       enum position_mapping mapping, uint8_t ret_position[RINGKEY_POSITION_SIZE]) {
    struct bytes surt;
    if (ring_reader_scope_is_url(from, to, &surt)) {
        position_of_surt(sha256, surt, mapping, ret_position);
        return true;
    }
    return position_of_prefix(sha256, shared_between(from, to), mapping, ret_position);
}

enum { TIME_SIZE = 8, FRACTION_BITS = 24, SECOND_US = 1000000 };

/* As store/index/index_code.h writes it. False: it is before or after all captures. */
static bool scope_read_time(struct bytes bound, int64_t *ret_us) {
    struct bytes rest = bytes_skip(bound, bytes_find_byte(bound, 0x00));
    uint64_t value = 0;
    if (rest.size <= TIME_SIZE) {
        return false;
    }
    for (size_t i = 1; i <= TIME_SIZE; i++) {
        value = value << 8 | rest.data[i];
    }
    if (value == 0 || value == UINT64_MAX) {
        return false;
    }
    uint64_t seconds = value >> FRACTION_BITS;
    uint64_t fraction = value & ((UINT64_C(1) << FRACTION_BITS) - 1);
    bool is_time = seconds <= (uint64_t)(UTC_MAX_US - UTC_MIN_US) / SECOND_US && fraction < SECOND_US;
    if (is_time) {
        *ret_us = UTC_MIN_US + (int64_t)(seconds * SECOND_US + fraction);
    }
    return is_time;
}

int64_t ring_reader_scope_time(struct bytes from, struct bytes to) {
    int64_t time_us;
    return scope_read_time(to, &time_us) || scope_read_time(from, &time_us) ? time_us : INT64_MAX;
}
