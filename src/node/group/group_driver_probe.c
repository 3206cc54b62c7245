/*
 * Bandwidth, by random bytes that no link compresses.
 *
 * The answer of PEER_RPC_PROBE comes whole, so the receiver does not see its first byte. Instead two empty
 * probes go first: one opens the stream, the second measures the round trip on it; then the full one. Its
 * time less the round trip is that from the first to the last byte. Of a fast path the difference is mostly
 * noise: at least a quarter of the whole time counts. Slow start is part of it, as in the paper's Table 1:
 * the larger the probe, the nearer it comes to what a long transfer gets.
 */
#include <sodium.h>

#include "base/wire.h"
#include "node/group/group_driver_state.h"
#include "node/rpc/peer_rpc.h"

enum {
    QUESTION_SIZE = 4,
    TIMEOUT_MS = 60000,
    SHARE_MIN = 4,
    UNIT_SIZE = 4 << 10, /* a token of the bucket */
};
static const struct bucket_rate answers_rate = {.per_second = 1024, .burst = 4096}; /* 4 MiB/s, 16 MiB */

/* ---- asking ---- */

static void on_answer(void *context, enum err err, struct bytes answer);

static void ask(struct group_driver_probe *probe) {
    struct group_driver *group_driver = probe->group_driver;
    uint8_t question[QUESTION_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, question, sizeof question);
    wire_write_u32(&writer, probe->state == GROUP_DRIVER_PROBE_PROBING ? probe->size : 0);
    probe->asked_at_us = group_driver_now_us(group_driver);
    if (peer_rpc_call(group_driver->peer_rpc, &probe->peer, PEER_RPC_PROBE,
                      bytes_of(question, sizeof question), TIMEOUT_MS, on_answer, probe) != ERR_OK) {
        probe->state = GROUP_DRIVER_PROBE_FREE;
    }
}

static void on_answer(void *context, enum err err, struct bytes answer) {
    struct group_driver_probe *probe = context;
    uint64_t took_us = group_driver_now_us(probe->group_driver) - probe->asked_at_us;
    uint32_t wanted_size = probe->state == GROUP_DRIVER_PROBE_PROBING ? probe->size : 0;
    if (err != ERR_OK || answer.size != wanted_size || probe->group_driver->is_stopped) {
        probe->state = GROUP_DRIVER_PROBE_FREE;
        return;
    }
    enum group_driver_probe_state state = probe->state;
    switch (state) {
    case GROUP_DRIVER_PROBE_OPENING:
        probe->state = GROUP_DRIVER_PROBE_TIMING;
        ask(probe);
        break;
    case GROUP_DRIVER_PROBE_TIMING:
        probe->round_trip_us = took_us;
        probe->state = GROUP_DRIVER_PROBE_PROBING;
        ask(probe);
        break;
    default: {
        uint64_t net_us = took_us > probe->round_trip_us ? took_us - probe->round_trip_us : 0;
        uint64_t least_us = took_us / SHARE_MIN + 1;
        group_driver_learned(probe->group_driver, &probe->peer, probe->size,
                             net_us > least_us ? net_us : least_us);
        probe->state = GROUP_DRIVER_PROBE_FREE;
    }
    }
}

static void begin(void *context) {
    ask(context);
}

void group_driver_probe(struct group_driver *group_driver, const struct peer *peer, uint32_t size) {
    for (size_t i = 0; i < GROUP_DRIVER_PROBES_MAX; i++) {
        struct group_driver_probe *probe = &group_driver->probes[i];
        if (probe->state == GROUP_DRIVER_PROBE_FREE) {
            probe->peer = *peer;
            probe->size = size < PEER_RPC_PIECE_SIZE_MAX ? size : PEER_RPC_PIECE_SIZE_MAX;
            probe->state = GROUP_DRIVER_PROBE_OPENING;
            if (peer_rpc_post(group_driver->peer_rpc, begin, probe) != ERR_OK) {
                probe->state = GROUP_DRIVER_PROBE_FREE;
            }
            return;
        }
    }
    /* Too many are under way: he is measured another time. */
}

/* ---- answering ---- */

enum err group_driver_answer_probe(void *context, const struct peer *from, struct bytes question,
                                   struct buf *answer, struct err_detail *detail) {
    struct group_driver *group_driver = context;
    struct wire_reader reader;
    (void)from;
    wire_reader_init(&reader, question);
    uint32_t size = wire_read_u32(&reader);
    if (wire_reader_finish(&reader, NULL) != ERR_OK || size > PEER_RPC_PIECE_SIZE_MAX) {
        return err_set(detail, ERR_INVALID, "no size that a probe can have");
    }
    uint64_t now_us = group_driver_now_us(group_driver);
    for (uint32_t units = (size + UNIT_SIZE - 1) / UNIT_SIZE; units > 0; units--) {
        if (!bucket_take(&group_driver->probes_bucket, answers_rate, now_us)) {
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
