/* Arbitrary bytes as the statement of a version, signed by all and by nobody. Held to: what is read is
 * written again as the same bytes, and a mirror takes or refuses it without harm. */
#include "fuzz.h"

#include <stdlib.h>

#include "protocol/mirror/mirror.h"

static bool believe(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                    const uint8_t signature[VERSION_SIGNATURE_SIZE]) {
    (void)key;
    (void)context;
    return message.size > 0 && signature != NULL;
}

static bool doubt(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                  const uint8_t signature[VERSION_SIGNATURE_SIZE]) {
    return !believe(key, context, message, signature);
}

static void tell_a_mirror(const struct version *version, struct bytes statement) {
    struct mirror_config config = {.verify = believe, .sources_max = 1, .batches_max = 1};
    struct mirror_source source = {.peer.address = address_ipv4(10, 0, 0, 1, 1)};
    struct mirror_task task;
    uint64_t now_us = 1000000;
    memcpy(config.publisher, version->publisher, PEER_KEY_SIZE);
    memcpy(config.name, version->name, sizeof config.name);
    void *memory = malloc(mirror_size(&config));
    ASSERT(memory != NULL);
    struct mirror *mirror = mirror_init(memory, &config, now_us);
    mirror_set_sources(mirror, &source, 1, now_us);
    ASSERT(mirror_hear(mirror, source.peer.key, statement, now_us) == MIRROR_NEWER);
    ASSERT(mirror_hear(mirror, source.peer.key, statement, now_us) == MIRROR_KNOWN);
    now_us = mirror_wake_at(mirror, now_us + 60000000);
    while (mirror_next(mirror, now_us, &task)) {
        ASSERT(task.kind == MIRROR_ASK || task.kind == MIRROR_BEGIN);
    }
    free(memory);
}

static void sign_with_zeros(const void *signer, const char *context, struct bytes message,
                            uint8_t out[VERSION_SIGNATURE_SIZE]) {
    (void)signer;
    (void)context;
    ASSERT(message.size > 0);
    memset(out, 0, VERSION_SIGNATURE_SIZE);
}

/* The next one of its publisher counts more, and is of the same collection. */
static void follow(const struct version *version) {
    struct version next = *version;
    struct sha256 sha256;
    uint8_t memory[VERSION_SIZE_MAX];
    uint8_t id[VERSION_ID_SIZE];
    enum err err = sha256_init(&sha256);
    ASSERT(err == ERR_OK);
    version_id(version->publisher, bytes_of_string(version->name), &sha256, id);
    sha256_done(&sha256);
    next.root.digest[0] ^= 1;
    ASSERT(version_compare(version, &next) == -version_compare(&next, version));
    next.time_us += next.time_us < INT64_MAX;
    ASSERT(next.time_us == version->time_us || version_compare(version, &next) < 0);
    if (next.number < VERSION_NUMBER_MAX) {
        next.number++;
        next.time_us = version->time_us;
        version_sign(&next, sign_with_zeros, NULL);
        ASSERT(version_compare(version, &next) < 0 && version_compare(&next, version) > 0);
        ASSERT(version_read(version_write(&next, memory), believe, &next, NULL) == ERR_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes statement = bytes_of(data, size);
    struct version version;
    uint8_t memory[VERSION_SIZE_MAX];
    ASSERT(version_read(statement, doubt, &version, NULL) != ERR_OK);
    if (version_read(statement, believe, &version, NULL) == ERR_OK) {
        ASSERT(bytes_equal(version_write(&version, memory), statement));
        ASSERT(version_compare(&version, &version) == 0);
        tell_a_mirror(&version, statement);
        follow(&version);
    }
    return 0;
}
