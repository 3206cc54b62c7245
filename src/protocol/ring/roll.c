#include "protocol/ring/roll.h"

enum { US_PER_S = 1000000 };

uint64_t roll_start(const uint8_t key[PEER_KEY_SIZE]) {
    uint64_t start = 0;
    for (size_t i = 0; i < sizeof start; i++) {
        start = start << 8 | key[i];
    }
    return start;
}

enum err roll_check(const struct roll_entry *entry, const struct charter *charter,
                    const uint8_t ring[CHARTER_ID_SIZE], charter_verify *verify,
                    struct roll_period *ret_period) {
    const struct membership *membership = &entry->membership;
    const struct invitation *invitation = &membership->invitation;
    if (!membership->is_there) {
        return ERR_MISMATCH;
    }
    uint64_t from_s = invitation->is_bearer ? membership->joined_s : invitation->from_s;
    enum membership_verdict verdict = membership_judge(membership, charter, ring, entry->key, from_s, verify);
    if (verdict != MEMBERSHIP_GOOD) {
        return ERR_MISMATCH;
    }
    *ret_period =
        (struct roll_period){.from_s = from_s, .until_s = invitation->is_bearer ? 0 : invitation->until_s};
    return ERR_OK;
}

bool roll_covers(const struct roll_period *period, int64_t time_us) {
    if (time_us < 0) {
        return false;
    }
    uint64_t time_s = (uint64_t)time_us / US_PER_S;
    return time_s + MEMBERSHIP_CLOCK_SLACK_S >= period->from_s &&
           (period->until_s == 0 || time_s <= period->until_s);
}

void roll_write_entry(struct wire_writer *writer, const struct roll_entry *entry) {
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    wire_write_bytes(writer, bytes_of(entry->key, PEER_KEY_SIZE));
    wire_write_string(writer, membership_write(&entry->membership, memory));
}

void roll_read_entry(struct wire_reader *reader, struct roll_entry *ret_entry) {
    struct err_detail detail = {0};
    *ret_entry = (struct roll_entry){.key = {0}};
    wire_read_array(reader, ret_entry->key, PEER_KEY_SIZE);
    struct bytes membership = wire_read_string(reader, MEMBERSHIP_SIZE_MAX);
    if (reader->err == ERR_OK && membership_read(membership, &ret_entry->membership, &detail) != ERR_OK) {
        wire_read_fail(reader, ERR_INVALID, "no membership");
    }
}

void roll_write_question(struct wire_writer *writer, const uint64_t *starts, size_t count) {
    ASSERT(count <= ROLL_ASKED_MAX);
    wire_write_varint(writer, count);
    for (size_t i = 0; i < count; i++) {
        wire_write_u64(writer, starts[i]);
    }
}

enum err roll_read_question(struct bytes in, uint64_t out[ROLL_ASKED_MAX], size_t *ret_count,
                            struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, in);
    size_t count = (size_t)wire_read_varint(&reader, ROLL_ASKED_MAX);
    for (size_t i = 0; i < count && reader.err == ERR_OK; i++) {
        out[i] = wire_read_u64(&reader);
    }
    enum err err = wire_reader_finish(&reader, detail);
    *ret_count = err == ERR_OK ? count : 0;
    return err;
}

enum err roll_read_answer(struct bytes in, struct roll_entry out[ROLL_ASKED_MAX], size_t *ret_count,
                          struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, in);
    size_t count = (size_t)wire_read_varint(&reader, ROLL_ASKED_MAX);
    for (size_t i = 0; i < count && reader.err == ERR_OK; i++) {
        roll_read_entry(&reader, &out[i]);
    }
    enum err err = wire_reader_finish(&reader, detail);
    *ret_count = err == ERR_OK ? count : 0;
    return err;
}
