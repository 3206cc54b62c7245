/*
 * Bandwidth, by random bytes that no link compresses.
 *
 * The answer of BULK_PROBE comes whole, so the receiver does not see its first byte. Instead two empty probes
 * go first: one opens the stream, the second measures the round trip on it; then the full one. Its time less
 * the round trip is that from the first to the last byte. Of a fast path the difference is mostly noise:
 * at least a quarter of the whole time counts. Slow start is part of it, as in the paper's Table 1: the
 * larger the probe, the nearer it comes to what a long transfer gets.
 */
#include <sodium.h>

#include "base/wire.h"
#include "node/group/grouping_state.h"
#include "node/rpc/bulk.h"

enum {
    QUESTION_SIZE = 4,
    TIMEOUT_MS = 60000,
    SHARE_MIN = 4,
    UNIT_SIZE = 4 << 10, /* a token of the bucket */
};
static const struct bucket_rate answers_rate = {.per_second = 1024, .burst = 4096}; /* 4 MiB/s, 16 MiB */

/* ---- asking ---- */

static void on_answer(void *context, enum err err, struct bytes answer);

static void ask(struct grouping_probe *probe) {
    struct grouping *grouping = probe->grouping;
    uint8_t question[QUESTION_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, question, sizeof question);
    wire_write_u32(&writer, probe->state == GROUPING_PROBE_PROBING ? probe->size : 0);
    probe->asked_at_us = grouping_now_us(grouping);
    if (bulk_call(grouping->bulk, &probe->peer, BULK_PROBE, bytes_of(question, sizeof question), TIMEOUT_MS,
                  on_answer, probe) != ERR_OK) {
        probe->state = GROUPING_PROBE_FREE;
    }
}

static void on_answer(void *context, enum err err, struct bytes answer) {
    struct grouping_probe *probe = context;
    uint64_t took_us = grouping_now_us(probe->grouping) - probe->asked_at_us;
    uint32_t wanted_size = probe->state == GROUPING_PROBE_PROBING ? probe->size : 0;
    if (err != ERR_OK || answer.size != wanted_size || probe->grouping->is_stopped) {
        probe->state = GROUPING_PROBE_FREE;
        return;
    }
    enum grouping_probe_state state = probe->state;
    switch (state) {
    case GROUPING_PROBE_OPENING:
        probe->state = GROUPING_PROBE_TIMING;
        ask(probe);
        break;
    case GROUPING_PROBE_TIMING:
        probe->round_trip_us = took_us;
        probe->state = GROUPING_PROBE_PROBING;
        ask(probe);
        break;
    default: {
        uint64_t net_us = took_us > probe->round_trip_us ? took_us - probe->round_trip_us : 0;
        uint64_t least_us = took_us / SHARE_MIN + 1;
        grouping_learned(probe->grouping, &probe->peer, probe->size, net_us > least_us ? net_us : least_us);
        probe->state = GROUPING_PROBE_FREE;
    }
    }
}

static void begin(void *context) {
    ask(context);
}

void grouping_probe(struct grouping *grouping, const struct peer *peer, uint32_t size) {
    for (size_t i = 0; i < GROUPING_PROBES_MAX; i++) {
        struct grouping_probe *probe = &grouping->probes[i];
        if (probe->state == GROUPING_PROBE_FREE) {
            probe->peer = *peer;
            probe->size = size < BULK_PIECE_SIZE_MAX ? size : BULK_PIECE_SIZE_MAX;
            probe->state = GROUPING_PROBE_OPENING;
            if (bulk_post(grouping->bulk, begin, probe) != ERR_OK) {
                probe->state = GROUPING_PROBE_FREE;
            }
            return;
        }
    }
    /* Too many are under way: he is measured another time. */
}

/* ---- answering ---- */

enum err grouping_answer_probe(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    struct grouping *grouping = context;
    struct wire_reader reader;
    (void)from;
    wire_reader_init(&reader, question);
    uint32_t size = wire_read_u32(&reader);
    if (wire_reader_finish(&reader, NULL) != ERR_OK || size > BULK_PIECE_SIZE_MAX) {
        return err_set(detail, ERR_INVALID, "no size that a probe can have");
    }
    uint64_t now_us = grouping_now_us(grouping);
    for (uint32_t units = (size + UNIT_SIZE - 1) / UNIT_SIZE; units > 0; units--) {
        if (!bucket_take(&grouping->probes_bucket, answers_rate, now_us)) {
            return err_set(detail, ERR_BUSY, "too many probes");
        }
    }
    enum err err = buf_reserve(answer, size);
    if (err == ERR_OK && size > 0) {
        randombytes_buf(answer->data + answer->size, size);
        answer->size += size;
    }
    return err;
}
