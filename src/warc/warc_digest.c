#include "warc/warc_digest.h"

#include <openssl/evp.h>

#include "base/base32.h"
#include "base/hex.h"

enum { NAME_SIZE_MAX = 16 };

static const struct {
    const char *name;
    size_t size;
    const EVP_MD *(*method)(void);
} algorithms[] = {
    [WARC_DIGEST_MD5] = {"md5", 16, EVP_md5},
    [WARC_DIGEST_SHA1] = {"sha1", 20, EVP_sha1},
    [WARC_DIGEST_SHA256] = {"sha256", 32, EVP_sha256},
    [WARC_DIGEST_SHA512] = {"sha512", 64, EVP_sha512},
};

/* "SHA-256" is "sha256". */
static bool find_algorithm(struct bytes name, enum warc_digest_algorithm *ret_algorithm) {
    uint8_t folded[NAME_SIZE_MAX];
    size_t size = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '-') {
            continue;
        }
        if (size == sizeof folded) {
            return false;
        }
        folded[size++] = byte_lower(name.data[i]);
    }
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        if (bytes_equal(bytes_of(folded, size), bytes_of_string(algorithms[i].name))) {
            *ret_algorithm = (enum warc_digest_algorithm)i;
            return true;
        }
    }
    return false;
}

static int base64_digit(uint8_t byte) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    byte = byte == '-' ? '+' : byte == '_' ? '/' : byte;
    const char *found = byte == 0 ? NULL : strchr(alphabet, byte);
    return found == NULL ? -1 : (int)(found - alphabet);
}

/* Exactly size bytes, padded or not, as some writers spell digests. */
static bool base64_decode(struct bytes text, uint8_t *out, size_t size) {
    while (text.size > 0 && text.data[text.size - 1] == '=') {
        text.size--;
    }
    if (text.size != (size * 8 + 5) / 6) {
        return false;
    }
    uint32_t bits = 0;
    unsigned bits_count = 0;
    size_t made = 0;
    for (size_t i = 0; i < text.size; i++) {
        int digit = base64_digit(text.data[i]);
        if (digit < 0) {
            return false;
        }
        bits = (bits << 6 | (uint32_t)digit) & 0xffff;
        bits_count += 6;
        if (bits_count >= 8) {
            bits_count -= 8;
            out[made++] = (uint8_t)(bits >> bits_count);
        }
    }
    return made == size;
}

enum err warc_digest_parse(struct warc_digest *digest, struct bytes text, struct err_detail *detail) {
    size_t colon = bytes_find_byte(text, ':');
    if (colon == text.size) {
        return err_set(detail, ERR_INVALID, "the digest names no algorithm");
    }
    struct warc_digest made;
    struct bytes name = bytes_slice(text, 0, colon);
    struct bytes value = bytes_trim(bytes_skip(text, colon + 1));
    if (!find_algorithm(bytes_trim(name), &made.algorithm)) {
        name.size = name.size < NAME_SIZE_MAX ? name.size : NAME_SIZE_MAX;
        return err_set(detail, ERR_UNSUPPORTED, "digests by \"%.*s\" cannot be checked", BYTES_ARG(name));
    }
    made.size = algorithms[made.algorithm].size;
    if (!hex_decode(value, made.value, made.size) && !base32_decode(value, made.value, made.size) &&
        !base64_decode(value, made.value, made.size)) {
        return err_set(detail, ERR_INVALID,
                       "the digest does not spell %zu bytes in hexadecimal, base32 or base64", made.size);
    }
    *digest = made;
    return ERR_OK;
}

bool warc_digest_equal(const struct warc_digest *a, const struct warc_digest *b) {
    return a->algorithm == b->algorithm &&
           bytes_equal(bytes_of(a->value, a->size), bytes_of(b->value, b->size));
}

enum err warc_hash_init(struct warc_hash *hash) {
    *hash = (struct warc_hash){.context = EVP_MD_CTX_new()};
    return hash->context == NULL ? ERR_MEMORY : ERR_OK;
}

void warc_hash_done(struct warc_hash *hash) {
    EVP_MD_CTX_free(hash->context);
    hash->context = NULL;
}

/* None of these fails with a sound context; a failure would be a wrong digest, so stop. */
void warc_hash_start(struct warc_hash *hash, enum warc_digest_algorithm algorithm) {
    int ok = EVP_DigestInit_ex(hash->context, algorithms[algorithm].method(), NULL);
    ASSERT(ok == 1);
    hash->algorithm = algorithm;
}

void warc_hash_update(struct warc_hash *hash, struct bytes bytes) {
    int ok = EVP_DigestUpdate(hash->context, bytes.data, bytes.size);
    ASSERT(ok == 1);
}

void warc_hash_finish(struct warc_hash *hash, struct warc_digest *ret_digest) {
    ret_digest->algorithm = hash->algorithm;
    ret_digest->size = algorithms[hash->algorithm].size;
    int ok = EVP_DigestFinal_ex(hash->context, ret_digest->value, NULL);
    ASSERT(ok == 1);
}
