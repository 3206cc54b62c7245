#include "store/document/key.h"

#include <stdio.h>

#include "base/hex.h"

void key_shorten(const uint8_t sha256[KEY_DIGEST_SIZE], unsigned bits, uint8_t digest[KEY_DIGEST_SIZE]) {
    memcpy(digest, sha256, KEY_DIGEST_SIZE);
    for (unsigned i = 0; i < KEY_DIGEST_SIZE; i++) {
        unsigned kept = bits > 8 * i ? bits - 8 * i : 0;
        digest[i] &= (uint8_t)(kept >= 8 ? 0xff : 0xff00 >> kept);
    }
}

const char *key_format(const struct key *key, char out[KEY_TEXT_SIZE_MAX]) {
    char digest[2 * KEY_DIGEST_SIZE + 1];
    hex_encode(bytes_of(key->digest, KEY_DIGEST_SIZE), digest);
    int size = snprintf(out, KEY_TEXT_SIZE_MAX, "%u:%s", key->volume, digest);
    if (key->number > 0) {
        snprintf(out + size, KEY_TEXT_SIZE_MAX - (size_t)size, ".%u", key->number);
    }
    return out;
}

bool key_parse(struct bytes text, struct key *ret_key) {
    size_t colon = bytes_find_byte(text, ':');
    uint64_t volume;
    uint64_t number = 0;
    if (colon == text.size || !bytes_to_u64(bytes_slice(text, 0, colon), KEY_VOLUMES_MAX - 1, &volume)) {
        return false;
    }
    struct bytes digest = bytes_skip(text, colon + 1);
    size_t dot = bytes_find_byte(digest, '.');
    if (dot < digest.size) {
        if (!bytes_to_u64(bytes_skip(digest, dot + 1), UINT16_MAX, &number) || number == 0) {
            return false;
        }
        digest.size = dot;
    }
    struct key key = {.volume = (uint16_t)volume, .number = (uint16_t)number};
    if (!hex_decode(digest, key.digest, sizeof key.digest)) {
        return false;
    }
    *ret_key = key;
    return true;
}
