#include "base/ringkey.h"

static const uint64_t TIME_BIAS = UINT64_C(1) << 63;

struct ringkey ringkey_make(const uint8_t place[RINGKEY_POSITION_SIZE], int64_t time_us,
                            const uint8_t *digest) {
    struct ringkey key;
    uint64_t time = (uint64_t)time_us ^ TIME_BIAS;
    memcpy(key.bytes, place, RINGKEY_POSITION_SIZE);
    for (unsigned i = 0; i < RINGKEY_TIME_SIZE; i++) {
        key.bytes[RINGKEY_POSITION_SIZE + i] = (uint8_t)(time >> (56 - 8 * i));
    }
    memcpy(key.bytes + RINGKEY_POSITION_SIZE + RINGKEY_TIME_SIZE, digest, RINGKEY_DIGEST_SIZE);
    return key;
}

int64_t ringkey_time_us(const struct ringkey *key) {
    uint64_t time = 0;
    for (unsigned i = 0; i < RINGKEY_TIME_SIZE; i++) {
        time = time << 8 | key->bytes[RINGKEY_POSITION_SIZE + i];
    }
    return (int64_t)(time ^ TIME_BIAS);
}

struct ringkey ringkey_bound(const struct ringkey *a, const struct ringkey *b) {
    struct ringkey bound = {0};
    size_t shared = 0;
    while (shared < RINGKEY_SIZE && a->bytes[shared] == b->bytes[shared]) {
        shared++;
    }
    ASSERT(shared < RINGKEY_SIZE && a->bytes[shared] < b->bytes[shared]);
    memcpy(bound.bytes, b->bytes, shared + 1);
    return bound;
}

static uint64_t read_u64(const uint8_t *bytes) {
    uint64_t value = 0;
    for (unsigned i = 8; i-- > 0;) {
        value = value << 8 | bytes[i];
    }
    return value;
}

struct ringkey_sum ringkey_sum_of(struct sha256 *sha256, const struct ringkey *key) {
    uint8_t digest[SHA256_SIZE];
    sha256_digest(sha256, bytes_of(key->bytes, RINGKEY_SIZE), digest);
    return (struct ringkey_sum){.count = 1, .low = read_u64(digest), .high = read_u64(digest + 8)};
}

void ringkey_sum_add(struct ringkey_sum *sum, const struct ringkey_sum *other) {
    sum->count += other->count;
    sum->low += other->low;
    sum->high += other->high + (sum->low < other->low); /* with the carry */
}

void ringkey_sum_subtract(struct ringkey_sum *sum, const struct ringkey_sum *other) {
    sum->count -= other->count;
    sum->high -= other->high + (sum->low < other->low);
    sum->low -= other->low;
}
