#include "counter.h"

#include "base/map.h"
#include "base/wire.h"

enum { CHECKSUM_SIZE = 8 };

void counter_init(struct counter *counter, const struct counter_config *config, uint32_t self,
                  uint64_t seed) {
    ASSERT(self < config->peers_count && config->peers_count <= COUNTER_NODES_MAX);
    *counter = (struct counter){.config = config, .self = self};
    prng_init(&counter->prng, seed);
}

uint64_t counter_total(const struct counter *counter) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < counter->config->peers_count; i++) {
        total += counter->counts[i];
    }
    return total;
}

static bool has_bug(const struct counter *counter, enum counter_bug bug) {
    return counter->config->bug == bug;
}

/* ---- counting ---- */

static struct bytes encode_count(uint64_t count, uint8_t memory[WIRE_VARINT_SIZE_MAX]) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, WIRE_VARINT_SIZE_MAX);
    wire_write_varint(&writer, count);
    return bytes_of(memory, writer.size);
}

static void acknowledge(uint64_t count, struct outbox *out) {
    uint8_t memory[WIRE_VARINT_SIZE_MAX];
    outbox_notice(out, COUNTER_ACKNOWLEDGED, encode_count(count, memory));
}

static void on_command(struct counter *counter, const struct event *event, struct outbox *out) {
    if (event->code != COUNTER_INCREMENT || counter->counted == COUNTER_COUNT_MAX) {
        return;
    }
    counter->counted++;
    uint8_t memory[WIRE_VARINT_SIZE_MAX];
    outbox_save(out, COUNTER_SLOT, counter->counted, encode_count(counter->counted, memory));
    if (has_bug(counter, COUNTER_ACKNOWLEDGES_EARLY)) {
        acknowledge(counter->counted, out);
    }
}

static void on_saved(struct counter *counter, const struct event *event, struct outbox *out) {
    uint64_t durable = has_bug(counter, COUNTER_ACKNOWLEDGES_NEWEST) ? counter->counted : event->number;
    counter->counts[counter->self] = durable;
    acknowledge(durable, out);
}

static void on_restored(struct counter *counter, const struct event *event) {
    counter->was_restored = true;
    if (event->code != COUNTER_SLOT || has_bug(counter, COUNTER_FORGETS_SAVED)) {
        return;
    }
    struct wire_reader reader;
    wire_reader_init(&reader, event->bytes);
    uint64_t count = wire_read_varint(&reader, COUNTER_COUNT_MAX);
    if (wire_reader_finish(&reader, NULL) == ERR_OK) {
        counter->counts[counter->self] = count;
        counter->counted = count;
    }
}

/* ---- gossip ---- */

static void send_vector(struct counter *counter, struct outbox *out) {
    const struct counter_config *config = counter->config;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory + CHECKSUM_SIZE, sizeof memory - CHECKSUM_SIZE);
    wire_write_varint(&writer, config->peers_count);
    for (uint32_t i = 0; i < config->peers_count; i++) {
        wire_write_varint(&writer, i);
        wire_write_varint(&writer, counter->counts[i]);
    }
    struct bytes body;
    enum err err = wire_writer_finish(&writer, &body);
    ASSERT(err == ERR_OK); /* 64 entries of at most 8 bytes */
    wire_writer_init(&writer, memory, CHECKSUM_SIZE);
    wire_write_u64(&writer, map_hash(body, 0));
    uint32_t peer = (uint32_t)prng_below(&counter->prng, config->peers_count);
    outbox_send(out, &config->peers[peer], bytes_of(memory, CHECKSUM_SIZE + body.size));
}

/* All or nothing: the vector is complete in *counts, or the message is refused. */
static bool parse_vector(const struct counter *counter, struct bytes message,
                         uint64_t counts[COUNTER_NODES_MAX]) {
    struct wire_reader reader;
    wire_reader_init(&reader, message);
    uint64_t expected = wire_read_u64(&reader);
    struct bytes body = bytes_skip(message, reader.offset);
    uint64_t entries_count = wire_read_varint(&reader, counter->config->peers_count);
    for (uint64_t i = 0; i < entries_count; i++) {
        uint64_t node = wire_read_varint(&reader, counter->config->peers_count - 1);
        counts[node] = wire_read_varint(&reader, COUNTER_COUNT_MAX);
    }
    bool is_intact = has_bug(counter, COUNTER_TRUSTS_MESSAGES) || map_hash(body, 0) == expected;
    return wire_reader_finish(&reader, NULL) == ERR_OK && is_intact;
}

static bool is_from(const struct counter *counter, const struct event *event, uint32_t node) {
    return address_equal(&event->from, &counter->config->peers[node]);
}

static void on_message(struct counter *counter, const struct event *event) {
    uint64_t counts[COUNTER_NODES_MAX] = {0};
    if (!parse_vector(counter, event->bytes, counts)) {
        counter->bad_messages_count++;
        return;
    }
    for (uint32_t i = 0; i < counter->config->peers_count; i++) {
        if (i == counter->self) {
            continue; /* nobody knows it better */
        }
        if (has_bug(counter, COUNTER_MERGES_BY_ADDING)) {
            counter->counts[i] += counts[i];
        } else if (has_bug(counter, COUNTER_TRUSTS_ORDER) && is_from(counter, event, i)) {
            counter->counts[i] = counts[i];
        } else if (counts[i] > counter->counts[i]) {
            counter->counts[i] = counts[i];
        }
    }
}

static void gossip_if_due(struct counter *counter, uint64_t now_us, struct outbox *out) {
    if (has_bug(counter, COUNTER_STAYS_SILENT) && counter->was_restored) {
        return;
    }
    if (now_us >= counter->gossip_at_us) {
        send_vector(counter, out);
        counter->gossip_at_us = now_us + counter->config->period_us;
    }
    outbox_wake_at(out, counter->gossip_at_us);
}

void counter_step(struct counter *counter, const struct event *event, struct outbox *out) {
    switch (event->kind) {
    case EVENT_RESTORED:
        on_restored(counter, event);
        return;
    case EVENT_START:
    case EVENT_WAKE:
        gossip_if_due(counter, event->now_us, out);
        return;
    case EVENT_MESSAGE:
        on_message(counter, event);
        break;
    case EVENT_SAVED:
        on_saved(counter, event, out);
        break;
    case EVENT_COMMAND:
        on_command(counter, event, out);
        break;
    }
    outbox_wake_at(out, counter->gossip_at_us);
}
