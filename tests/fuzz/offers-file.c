/*
 * offers-file - any bytes as the head of a file of an offer. What claims to be one gets the right checksum,
 * so that the parser behind it is reached; whatever is read must be written as the same bytes again.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/crowd/offers_file.h"

/* Written beside others, found by its key, and read as it was; with a payload of the wrong size it is none.
 */
static void check_file(struct sha256 *sha256, struct bytes head_bytes, const struct offers_file_head *head) {
    enum { PAYLOAD_SIZE_MAX = 4096 };
    static const uint8_t payload[PAYLOAD_SIZE_MAX + 1];
    uint8_t digest[SHA256_SIZE] = {0};
    char name[] = "/tmp/mnemon-fuzz-XXXXXX";
    struct offers_file file;
    struct buf text;
    size_t size = head->payload_size < PAYLOAD_SIZE_MAX ? (size_t)head->payload_size : PAYLOAD_SIZE_MAX;
    buf_init(&text, OFFERS_FILE_PREFIX_SIZE + OFFERS_FILE_HEAD_SIZE_MAX);
    int directory = mkdtemp(name) != NULL ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    ASSERT(directory >= 0);
    ASSERT(offers_file_open(&file, directory, &head->key, sha256, &text, PAYLOAD_SIZE_MAX) == ERR_NOT_FOUND);
    enum err err = offers_file_write(directory, &head->key, head_bytes, bytes_of(payload, size));
    ASSERT(err == ERR_OK);
    err = offers_file_open(&file, directory, &head->key, sha256, &text, PAYLOAD_SIZE_MAX);
    ASSERT((err == ERR_OK) == (head->payload_size <= PAYLOAD_SIZE_MAX));
    if (err == ERR_OK) {
        ASSERT(offers_file_check(&file, sha256, digest) == ERR_CORRUPT);
        offers_file_close(&file);
    }
    err = offers_file_write(directory, &head->key, head_bytes, bytes_of(payload, size + 1));
    ASSERT(err == ERR_OK);
    ASSERT(offers_file_open(&file, directory, &head->key, sha256, &text, PAYLOAD_SIZE_MAX) == ERR_CORRUPT);
    offers_file_remove(directory, &head->key);
    close(directory);
    rmdir(name);
    buf_done(&text);
}

static void check_head(struct sha256 *sha256, struct bytes input) {
    struct offers_file_head head;
    struct offers_file_about about;
    size_t size;
    if (offers_file_read_head(input, sha256, &head, &size, NULL) != ERR_OK) {
        return;
    }
    ASSERT(size <= input.size && head.title.size <= WISH_TITLE_SIZE_MAX);
    if (offers_file_read_about(&head, &about)) {
        ASSERT(about.url.size > 0 && about.sum.size == head.payload_size);
    }
    struct buf out;
    buf_init(&out, OFFERS_FILE_PREFIX_SIZE + OFFERS_FILE_HEAD_SIZE_MAX + 64);
    enum err err = offers_file_put_head(&out, sha256, &head);
    ASSERT(err == ERR_OK && bytes_equal(buf_bytes(&out), bytes_slice(input, 0, size)));
    check_file(sha256, buf_bytes(&out), &head);
    buf_done(&out);
}

/* Size and checksum as they should be. */
static void mend(struct sha256 *sha256, uint8_t *file, size_t size) {
    size_t head_size = size - OFFERS_FILE_PREFIX_SIZE;
    for (size_t i = 0; i < 4; i++) {
        file[8 + i] = (uint8_t)(head_size >> (8 * i));
    }
    sha256_digest(sha256, bytes_of(file + OFFERS_FILE_PREFIX_SIZE, head_size), file + 12);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sha256 sha256;
    enum err err = sha256_init(&sha256);
    ASSERT(err == ERR_OK);
    check_head(&sha256, bytes_of(data, size));
    if (size > OFFERS_FILE_PREFIX_SIZE) {
        uint8_t *file = malloc(size);
        ASSERT(file != NULL);
        memcpy(file, data, size);
        mend(&sha256, file, size);
        check_head(&sha256, bytes_of(file, size));
        free(file);
    }
    sha256_done(&sha256);
    return 0;
}
