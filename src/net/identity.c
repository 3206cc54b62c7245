#include "net/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base32.h"
#include "base/whole_file.h"

enum {
    MODE = 0600,
    OTHERS = 0077,
    DIGITS = IDENTITY_TEXT_SIZE - 1,
    FILE_SIZE_MAX = 256,
    CONTEXT_SIZE_MAX = 32
};

_Static_assert(crypto_sign_SEEDBYTES == IDENTITY_SEED_SIZE, "libsodium's seed");
_Static_assert(crypto_sign_SECRETKEYBYTES == IDENTITY_SECRET_SIZE, "libsodium's secret key");
_Static_assert(crypto_sign_PUBLICKEYBYTES == PEER_KEY_SIZE, "libsodium's public key");
_Static_assert(crypto_sign_BYTES == IDENTITY_SIGNATURE_SIZE, "libsodium's signature");

static const char header[] = "mnemon identity 1";

enum err identity_from_seed(struct identity *identity, const uint8_t seed[IDENTITY_SEED_SIZE]) {
    if (sodium_init() < 0 || crypto_sign_seed_keypair(identity->key, identity->secret, seed) != 0 ||
        crypto_sign_ed25519_sk_to_curve25519(identity->exchange_secret, identity->secret) != 0 ||
        crypto_scalarmult_base(identity->exchange_key, identity->exchange_secret) != 0) {
        return ERR_SYSTEM;
    }
    return ERR_OK;
}

enum err identity_random(struct identity *identity) {
    uint8_t seed[IDENTITY_SEED_SIZE];
    if (sodium_init() < 0) {
        return ERR_SYSTEM;
    }
    randombytes_buf(seed, sizeof seed);
    enum err err = identity_from_seed(identity, seed);
    sodium_memzero(seed, sizeof seed);
    return err;
}

void identity_done(struct identity *identity) {
    sodium_memzero(identity, sizeof *identity);
}

static enum err identity_write_file(const struct identity *identity, const char *path,
                                    struct err_detail *detail) {
    char seed[IDENTITY_TEXT_SIZE];
    char key[IDENTITY_TEXT_SIZE];
    char text[FILE_SIZE_MAX];
    base32_encode(bytes_of(identity->secret, IDENTITY_SEED_SIZE), seed);
    base32_encode(bytes_of(identity->key, sizeof identity->key), key);
    int size = snprintf(text, sizeof text, "%s\nseed %s\nkey %s\n", header, seed, key);
    ASSERT(size > 0 && size < (int)sizeof text);
    enum err err = whole_file_replace(path, bytes_of(text, (size_t)size), MODE, detail);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(text, sizeof text);
    return err;
}

static bool identity_read_line(struct bytes *rest, const char *word, uint8_t *out, size_t size) {
    struct bytes line;
    struct bytes start = bytes_of_string(word);
    if (!bytes_split(rest, '\n', &line) || !bytes_starts_with(line, start)) {
        return false;
    }
    line = bytes_skip(line, start.size);
    return size == 0 ? line.size == 0 : line.size == DIGITS && base32_decode(line, out, size);
}

static enum err identity_parse(struct identity *identity, struct bytes text, const char *path,
                               struct err_detail *detail) {
    uint8_t seed[IDENTITY_SEED_SIZE];
    uint8_t key[PEER_KEY_SIZE];
    struct identity found;
    if (!identity_read_line(&text, header, NULL, 0) ||
        !identity_read_line(&text, "seed ", seed, sizeof seed) ||
        !identity_read_line(&text, "key ", key, sizeof key) || text.size != 0) {
        return err_set(detail, ERR_CORRUPT, "%s is damaged: restore it, or remove it to become a new node",
                       path);
    }
    enum err err = identity_from_seed(&found, seed);
    sodium_memzero(seed, sizeof seed);
    if (err != ERR_OK) {
        return err_set(detail, err, "libsodium does not work on this machine");
    }
    if (memcmp(found.key, key, sizeof key) != 0) {
        identity_done(&found);
        return err_set(detail, ERR_CORRUPT,
                       "%s is damaged, its keys do not belong together: restore it, or remove it to become a "
                       "new node",
                       path);
    }
    *identity = found;
    identity_done(&found);
    return ERR_OK;
}

static enum err identity_read_file(struct identity *identity, int fd, const char *path,
                                   struct err_detail *detail) {
    struct stat status;
    char text[FILE_SIZE_MAX];
    if (fstat(fd, &status) != 0) {
        return whole_file_fail(path, detail);
    }
    if (!S_ISREG(status.st_mode)) {
        return err_set(detail, ERR_INVALID, "%s is not a plain file", path);
    }
    if ((status.st_mode & OTHERS) != 0) {
        return err_set(detail, ERR_PERMISSION,
                       "%s can be read by others: chmod 600 it, or remove it to become a new node", path);
    }
    size_t size = (uint64_t)status.st_size < sizeof text ? (size_t)status.st_size : sizeof text;
    enum err err = whole_file_read_at(fd, 0, text, size);
    err = err == ERR_OK ? identity_parse(identity, bytes_of(text, size), path, detail)
                        : err_set(detail, err, "%s cannot be read: %s", path, err_text(err));
    sodium_memzero(text, sizeof text);
    return err;
}

static enum err identity_make(const char *path, struct err_detail *detail) {
    struct identity identity;
    enum err err = identity_random(&identity);
    if (err != ERR_OK) {
        return err_set(detail, err, "libsodium does not work on this machine");
    }
    err = identity_write_file(&identity, path, detail);
    identity_done(&identity);
    return err;
}

enum err identity_load(struct identity *identity, const char *directory, struct err_detail *detail) {
    char path[IDENTITY_PATH_SIZE_MAX];
    if (snprintf(path, sizeof path, "%s/identity", directory) >= (int)sizeof path) {
        return err_set(detail, ERR_LIMIT, "the path of the data directory is too long");
    }
    /* O_NONBLOCK: a pipe in its place must not hold us up. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        enum err err = identity_make(path, detail);
        if (err != ERR_OK) {
            return err;
        }
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (fd < 0) {
        return whole_file_fail(path, detail);
    }
    enum err err = identity_read_file(identity, fd, path, detail);
    close(fd);
    return err;
}

/* What is signed: BLAKE2b-512 of the message under "mnemon " and the context, so that no message is long. */
static void digest(const char *context, struct bytes message, uint8_t out[crypto_generichash_BYTES_MAX]) {
    static const char prefix[] = "mnemon ";
    size_t context_size = strlen(context);
    ASSERT(context_size > 0 && context_size <= CONTEXT_SIZE_MAX);
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, crypto_generichash_BYTES_MAX);
    crypto_generichash_update(&state, (const uint8_t *)prefix, sizeof prefix - 1);
    crypto_generichash_update(&state, (const uint8_t *)context, context_size + 1); /* with its zero byte */
    crypto_generichash_update(&state, message.data, message.size);
    crypto_generichash_final(&state, out, crypto_generichash_BYTES_MAX);
}

void identity_sign(const void *identity, const char *context, struct bytes message,
                   uint8_t signature[IDENTITY_SIGNATURE_SIZE]) {
    const struct identity *signer = identity;
    uint8_t hash[crypto_generichash_BYTES_MAX];
    digest(context, message, hash);
    crypto_sign_detached(signature, NULL, hash, sizeof hash, signer->secret);
}

bool identity_verify(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                     const uint8_t signature[IDENTITY_SIGNATURE_SIZE]) {
    uint8_t hash[crypto_generichash_BYTES_MAX];
    digest(context, message, hash);
    return crypto_sign_verify_detached(signature, hash, sizeof hash, key) == 0;
}

const char *identity_key_format(const uint8_t key[PEER_KEY_SIZE], char out[IDENTITY_TEXT_SIZE]) {
    base32_encode(bytes_of(key, PEER_KEY_SIZE), out);
    for (char *digit = out; *digit != '\0'; digit++) {
        *digit = (char)byte_lower((uint8_t)*digit);
    }
    return out;
}

bool identity_key_parse(struct bytes text, uint8_t ret_key[PEER_KEY_SIZE]) {
    uint8_t key[PEER_KEY_SIZE];
    if (text.size != DIGITS || !base32_decode(text, key, sizeof key)) {
        return false;
    }
    memcpy(ret_key, key, sizeof key);
    return true;
}
