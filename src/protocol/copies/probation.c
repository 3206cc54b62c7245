#include "protocol/copies/probation.h"

#include <string.h>

#include "base/wire.h"

enum { SETTLE_PART = 100 /* of the period, in which a node meets those that are there: … */ };
static const uint64_t SETTLE_US_MAX = UINT64_C(600) * 1000000; /* … at most */
static const uint64_t UP_US_MAX = UINT64_C(100) * 366 * 86400 * 1000000;
static const uint8_t VERSION = 1;
static const char MAGIC[] = "mnemon probation";

void probation_init(struct probation *probation, const struct probation_config *config, uint64_t now_us) {
    memset(probation, 0, sizeof *probation);
    probation->config = *config;
    probation->began_us = now_us;
}

static struct probation_entry *probation_find(const struct probation *probation, const struct peer *peer) {
    for (size_t i = 0; i < probation->count; i++) {
        if (memcmp(probation->entries[i].key, peer->key, PEER_KEY_SIZE) == 0) {
            return (struct probation_entry *)&probation->entries[i];
        }
    }
    return NULL;
}

static bool probation_is_before(const struct probation_entry *entry, const struct probation_entry *other) {
    return entry->counts != other->counts ? !entry->counts
           : entry->counts                ? entry->seen_us < other->seen_us
                                          : entry->up_us < other->up_us;
}

static struct probation_entry *probation_make_room(struct probation *probation) {
    if (probation->count < PROBATION_MAX) {
        return &probation->entries[probation->count++];
    }
    struct probation_entry *least = &probation->entries[0];
    for (size_t i = 1; i < probation->count; i++) {
        least = probation_is_before(&probation->entries[i], least) ? &probation->entries[i] : least;
    }
    return least;
}

static uint64_t probation_looked_us(const struct probation *probation, uint64_t now_us) {
    return probation->looked_us + (now_us - probation->began_us);
}

/* Does whoever is met now count? */
static bool probation_is_early(const struct probation *probation, uint64_t now_us) {
    uint64_t period_us = probation->config.period_us;
    uint64_t part_us = period_us / SETTLE_PART;
    uint64_t settle_us = part_us < SETTLE_US_MAX ? part_us : SETTLE_US_MAX;
    return probation->config.ring_age_us + (now_us - probation->began_us) < period_us ||
           probation_looked_us(probation, now_us) < settle_us;
}

void probation_meet(struct probation *probation, const struct peer *peer, uint64_t now_us) {
    if (probation->config.period_us == 0 || probation_find(probation, peer) != NULL) {
        return;
    }
    struct probation_entry *entry = probation_make_room(probation);
    *entry = (struct probation_entry){.counts = probation_is_early(probation, now_us)};
    memcpy(entry->key, peer->key, PEER_KEY_SIZE);
    probation->generation++;
}

static void probation_set(struct probation *probation, struct probation_entry *entry, bool counts) {
    probation->generation += entry->counts != counts;
    entry->counts = counts;
}

void probation_note(struct probation *probation, const struct peer *peer, enum err err, uint64_t now_us) {
    struct probation_entry *entry = probation_find(probation, peer);
    if (entry == NULL || err == ERR_NOT_FOUND || err == ERR_CORRUPT) {
        return;
    }
    if (err == ERR_MISMATCH) {
        entry->up_us = entry->seen_us = 0;
        probation_set(probation, entry, false);
        return;
    }
    if (err != ERR_OK) {
        entry->seen_us = 0;
        return;
    }
    bool is_near = entry->seen_us > 0 && now_us - entry->seen_us <= probation->config.gap_us_max;
    entry->up_us += is_near && entry->up_us < UP_US_MAX ? now_us - entry->seen_us : 0;
    entry->seen_us = now_us > 0 ? now_us : 1;
    if (entry->up_us >= probation->config.period_us) {
        probation_set(probation, entry, true);
    }
}

bool probation_counts(const struct probation *probation, const struct peer *peer) {
    if (probation->config.period_us == 0) {
        return true;
    }
    const struct probation_entry *entry = probation_find(probation, peer);
    return entry != NULL && entry->counts;
}

bool probation_is_new(const struct probation *probation, const struct peer *peer) {
    const struct probation_entry *entry = probation_find(probation, peer);
    return probation->config.period_us > 0 && entry != NULL && !entry->counts;
}

uint64_t probation_left_us(const struct probation *probation, const struct peer *peer) {
    const struct probation_entry *entry = probation_find(probation, peer);
    uint64_t period_us = probation->config.period_us;
    if (probation_counts(probation, peer)) {
        return 0;
    }
    return entry == NULL || entry->up_us >= period_us ? period_us : period_us - entry->up_us;
}

/* ---- what outlives the process ---- */

struct bytes probation_write(const struct probation *probation, uint64_t now_us, uint8_t *out) {
    struct wire_writer writer;
    wire_writer_init(&writer, out, PROBATION_SIZE_MAX);
    wire_write_bytes(&writer, bytes_of(MAGIC, sizeof MAGIC - 1));
    wire_write_u8(&writer, VERSION);
    wire_write_u64(&writer, probation->config.ring_created_s);
    wire_write_u64(&writer, probation_looked_us(probation, now_us));
    wire_write_varint(&writer, probation->count);
    for (size_t i = 0; i < probation->count; i++) {
        wire_write_bytes(&writer, bytes_of(probation->entries[i].key, PEER_KEY_SIZE));
        wire_write_varint(&writer, probation->entries[i].up_us);
        wire_write_bool(&writer, probation->entries[i].counts);
    }
    return wire_writer_bytes(&writer);
}

/* Twice: to see whether all of it is well, and to take it. */
static enum err probation_take(struct probation *probation, struct bytes input, bool is_trial,
                               struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    wire_read_magic(&reader, bytes_of(MAGIC, sizeof MAGIC - 1), "no list of members on probation");
    wire_read_version(&reader, VERSION, "a list of members on probation of another version");
    uint64_t created_s = wire_read_u64(&reader);
    uint64_t looked_us = wire_read_u64(&reader);
    size_t count = wire_read_varint(&reader, PROBATION_MAX);
    wire_read_check(&reader, looked_us <= UP_US_MAX, "a time that is too long");
    for (size_t i = 0; i < count && reader.err == ERR_OK; i++) {
        struct probation_entry entry = {.counts = false};
        wire_read_array(&reader, entry.key, PEER_KEY_SIZE);
        entry.up_us = wire_read_varint(&reader, 2 * UP_US_MAX);
        entry.counts = wire_read_bool(&reader);
        if (!is_trial) {
            entry.counts = entry.counts || entry.up_us >= probation->config.period_us;
            probation->entries[i] = entry;
        }
    }
    enum err err = wire_reader_finish(&reader, detail);
    if (err == ERR_OK && created_s != probation->config.ring_created_s) {
        return err_set(detail, ERR_MISMATCH, "it is of another ring");
    }
    if (err == ERR_OK && !is_trial) {
        probation->looked_us = looked_us;
        probation->count = count;
        probation->generation++;
    }
    return err;
}

enum err probation_read(struct probation *probation, struct bytes input, struct err_detail *detail) {
    enum err err = probation_take(probation, input, true, detail);
    return err == ERR_OK ? probation_take(probation, input, false, detail) : err;
}
