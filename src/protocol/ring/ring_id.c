#include "protocol/ring/ring_id.h"

enum { IPV6_NETWORK_SIZE = 8 }; /* a /64 is what one customer gets */

struct ring_id ring_id_of_node(struct sha256 *sha256, const struct address *address, uint8_t virtual_index) {
    uint8_t text[17] = {0};
    size_t ip_size = address_is_ipv4(address) ? sizeof address->ip : IPV6_NETWORK_SIZE;
    memcpy(text, address->ip, ip_size);
    text[sizeof text - 1] = virtual_index;
    uint8_t digest[SHA256_SIZE];
    sha256_digest(sha256, bytes_of(text, sizeof text), digest);
    return ring_id_read(digest);
}

struct ring_id ring_id_of_key(struct sha256 *sha256, struct bytes key) {
    uint8_t digest[SHA256_SIZE];
    sha256_digest(sha256, key, digest);
    return ring_id_read(digest);
}

struct ring_id ring_id_read(const uint8_t bytes[RING_ID_SIZE]) {
    struct ring_id id = {0};
    for (unsigned i = 0; i < 8; i++) {
        id.high = id.high << 8 | bytes[i];
        id.low = id.low << 8 | bytes[8 + i];
    }
    return id;
}

void ring_id_write(struct ring_id id, uint8_t out[RING_ID_SIZE]) {
    for (size_t i = 0; i < 8; i++) {
        out[i] = (uint8_t)(id.high >> (56 - 8 * i));
        out[8 + i] = (uint8_t)(id.low >> (56 - 8 * i));
    }
}

struct ring_id ring_id_add_power(struct ring_id a, unsigned bit) {
    ASSERT(bit < 128);
    struct ring_id sum = a;
    if (bit >= 64) {
        sum.high += UINT64_C(1) << (bit - 64);
        return sum;
    }
    sum.low += UINT64_C(1) << bit;
    sum.high += sum.low < a.low;
    return sum;
}
