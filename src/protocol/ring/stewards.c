#include "protocol/ring/stewards.h"

const char *const steward_powers[] = {
    [STEWARD_AMEND] = "amend",   [STEWARD_INVITE] = "invite", [STEWARD_RULE] = "rule",
    [STEWARD_DELETE] = "delete", [STEWARD_JOB] = "job",       NULL,
};

/* ---- who they are ---- */

enum err stewards_check(const struct stewards *stewards, struct err_detail *detail) {
    if (stewards->count < 1 || stewards->count > STEWARDS_MAX) {
        return err_set(detail, ERR_INVALID, "a ring has between 1 and %d stewards", STEWARDS_MAX);
    }
    for (size_t i = 1; i < stewards->count; i++) {
        if (memcmp(stewards->keys[i - 1], stewards->keys[i], PEER_KEY_SIZE) >= 0) {
            return err_set(detail, ERR_INVALID, "stewards out of order");
        }
    }
    for (size_t i = 0; i < STEWARD_POWERS_COUNT; i++) {
        if (stewards->needed[i] < 1 || stewards->needed[i] > stewards->count) {
            return err_set(detail, ERR_INVALID, "%s: between 1 and %u of the stewards must sign",
                           steward_powers[i], stewards->count);
        }
    }
    if (2 * stewards->needed[STEWARD_AMEND] <= stewards->count) {
        return err_set(detail, ERR_INVALID,
                       "amend: more than half of the stewards must sign, so that no two charters can count");
    }
    return ERR_OK;
}

/* The index of the key, or of the first above it. */
static size_t stewards_find(const struct stewards *stewards, const uint8_t key[PEER_KEY_SIZE]) {
    size_t at = 0;
    while (at < stewards->count && memcmp(stewards->keys[at], key, PEER_KEY_SIZE) < 0) {
        at++;
    }
    return at;
}

bool stewards_have(const struct stewards *stewards, const uint8_t key[PEER_KEY_SIZE]) {
    size_t at = stewards_find(stewards, key);
    return at < stewards->count && memcmp(stewards->keys[at], key, PEER_KEY_SIZE) == 0;
}

enum err stewards_add(struct stewards *stewards, const uint8_t key[PEER_KEY_SIZE]) {
    if (stewards_have(stewards, key)) {
        return ERR_EXISTS;
    }
    if (stewards->count == STEWARDS_MAX) {
        return ERR_LIMIT;
    }
    size_t at = stewards_find(stewards, key);
    memmove(stewards->keys[at + 1], stewards->keys[at], (stewards->count - at) * PEER_KEY_SIZE);
    memcpy(stewards->keys[at], key, PEER_KEY_SIZE);
    stewards->count++;
    return ERR_OK;
}

bool stewards_are_equal(const struct stewards *a, const struct stewards *b) {
    return a->count == b->count && memcmp(a->keys, b->keys, a->count * (size_t)PEER_KEY_SIZE) == 0 &&
           memcmp(a->needed, b->needed, sizeof a->needed) == 0;
}

/* ---- what they have signed ---- */

size_t stewards_count_signed(const struct stewards *stewards, const struct steward_signatures *signatures,
                             const char *context, struct bytes message, steward_verify *verify) {
    size_t count = 0;
    for (size_t i = 0; i < signatures->count; i++) {
        const struct steward_signature *item = &signatures->items[i];
        count += stewards_have(stewards, item->key) && verify(item->key, context, message, item->signature);
    }
    return count;
}

bool stewards_have_signed(const struct stewards *stewards, enum steward_power power,
                          const struct steward_signatures *signatures, const char *context,
                          struct bytes message, steward_verify *verify) {
    return signatures->count >= stewards->needed[power] && signatures->count <= stewards->count &&
           stewards_count_signed(stewards, signatures, context, message, verify) == signatures->count;
}

static size_t steward_signatures_find(const struct steward_signatures *signatures,
                                      const uint8_t key[PEER_KEY_SIZE]) {
    size_t at = 0;
    while (at < signatures->count && memcmp(signatures->items[at].key, key, PEER_KEY_SIZE) < 0) {
        at++;
    }
    return at;
}

bool steward_signatures_have(const struct steward_signatures *signatures, const uint8_t key[PEER_KEY_SIZE]) {
    size_t at = steward_signatures_find(signatures, key);
    return at < signatures->count && memcmp(signatures->items[at].key, key, PEER_KEY_SIZE) == 0;
}

enum err steward_signatures_add(struct steward_signatures *signatures,
                                const struct steward_signature *signature) {
    if (steward_signatures_have(signatures, signature->key)) {
        return ERR_EXISTS;
    }
    if (signatures->count == STEWARDS_MAX) {
        return ERR_LIMIT;
    }
    size_t at = steward_signatures_find(signatures, signature->key);
    memmove(&signatures->items[at + 1], &signatures->items[at], (signatures->count - at) * sizeof *signature);
    signatures->items[at] = *signature;
    signatures->count++;
    return ERR_OK;
}

/* ---- encoding ---- */

void stewards_write(struct wire_writer *writer, const struct stewards *stewards) {
    wire_write_u8(writer, stewards->count);
    wire_write_bytes(writer, bytes_of(stewards->keys, stewards->count * (size_t)PEER_KEY_SIZE));
    wire_write_bytes(writer, bytes_of(stewards->needed, sizeof stewards->needed));
}

void stewards_read(struct wire_reader *reader, struct stewards *stewards) {
    *stewards = (struct stewards){.count = wire_read_u8_max(reader, STEWARDS_MAX)};
    wire_read_array(reader, stewards->keys, stewards->count * (size_t)PEER_KEY_SIZE);
    wire_read_array(reader, stewards->needed, sizeof stewards->needed);
    if (reader->err == ERR_OK) {
        wire_read_check(reader, stewards_check(stewards, NULL) == ERR_OK, "stewards that cannot be");
    }
}

void steward_signatures_write(struct wire_writer *writer, const struct steward_signatures *signatures) {
    wire_write_u8(writer, signatures->count);
    for (size_t i = 0; i < signatures->count; i++) {
        wire_write_bytes(writer, bytes_of(signatures->items[i].key, PEER_KEY_SIZE));
        wire_write_bytes(writer, bytes_of(signatures->items[i].signature, STEWARD_SIGNATURE_SIZE));
    }
}

void steward_signatures_read(struct wire_reader *reader, struct steward_signatures *signatures) {
    *signatures = (struct steward_signatures){.count = wire_read_u8_max(reader, STEWARDS_MAX)};
    for (size_t i = 0; i < signatures->count; i++) {
        struct steward_signature *item = &signatures->items[i];
        wire_read_array(reader, item->key, PEER_KEY_SIZE);
        wire_read_array(reader, item->signature, STEWARD_SIGNATURE_SIZE);
        bool is_rising = i == 0 || memcmp(item[-1].key, item->key, PEER_KEY_SIZE) < 0;
        if (reader->err == ERR_OK) {
            wire_read_check(reader, is_rising, "signatures out of order");
        }
    }
}
