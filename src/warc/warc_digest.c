#include "warc/warc_digest.h"

/* As in base/sha256.c: EVP would take memory at every start. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>
#include <openssl/sha.h>

#include "base/base32.h"
#include "base/hex.h"

enum { NAME_SIZE_MAX = 16 };

/* The functions of an algorithm with its context as plain memory. A macro: the types of OpenSSL differ. */
#define DIGEST_FUNCTIONS(name, prefix, context_type)                                                 \
    _Static_assert(sizeof(context_type) <= sizeof(((struct warc_hash *)0)->context), "it has room"); \
    static int digest_##name##_start(void *context) {                                                \
        return prefix##_Init(context);                                                               \
    }                                                                                                \
    static int digest_##name##_update(void *context, const void *data, size_t size) {                \
        return prefix##_Update(context, data, size);                                                 \
    }                                                                                                \
    static int digest_##name##_finish(uint8_t *out, void *context) {                                 \
        return prefix##_Final(out, context);                                                         \
    }

DIGEST_FUNCTIONS(md5, MD5, MD5_CTX)
DIGEST_FUNCTIONS(sha1, SHA1, SHA_CTX)
DIGEST_FUNCTIONS(sha256, SHA256, SHA256_CTX)
DIGEST_FUNCTIONS(sha512, SHA512, SHA512_CTX)

static const struct {
    const char *name;
    size_t size;
    int (*start)(void *context);
    int (*update)(void *context, const void *data, size_t size);
    int (*finish)(uint8_t *out, void *context);
} algorithms[] = {
    [WARC_DIGEST_MD5] = {"md5", 16, digest_md5_start, digest_md5_update, digest_md5_finish},
    [WARC_DIGEST_SHA1] = {"sha1", 20, digest_sha1_start, digest_sha1_update, digest_sha1_finish},
    [WARC_DIGEST_SHA256] = {"sha256", 32, digest_sha256_start, digest_sha256_update, digest_sha256_finish},
    [WARC_DIGEST_SHA512] = {"sha512", 64, digest_sha512_start, digest_sha512_update, digest_sha512_finish},
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
    *hash = (struct warc_hash){0};
    return ERR_OK;
}

void warc_hash_done(struct warc_hash *hash) {
    *hash = (struct warc_hash){0};
}

/* None of these can fail; a failure would be a wrong digest, so stop. */
void warc_hash_start(struct warc_hash *hash, enum warc_digest_algorithm algorithm) {
    int ok = algorithms[algorithm].start(hash->context);
    ASSERT(ok == 1);
    hash->algorithm = algorithm;
}

void warc_hash_update(struct warc_hash *hash, struct bytes bytes) {
    int ok = algorithms[hash->algorithm].update(hash->context, bytes.data, bytes.size);
    ASSERT(ok == 1);
}

void warc_hash_finish(struct warc_hash *hash, struct warc_digest *ret_digest) {
    ret_digest->algorithm = hash->algorithm;
    ret_digest->size = algorithms[hash->algorithm].size;
    int ok = algorithms[hash->algorithm].finish(ret_digest->value, hash->context);
    ASSERT(ok == 1);
}
