/*
 * index - any bytes as entries of the index. The first byte says what kind; a capture has the size of its key
 * in the second. Whatever is read must be written as the same entry again.
 */
#include "store/index/index.h"

#include "fuzz.h"
#include "store/index/index_code.h"
#include "store/index/index_url.h"

static void check_block_key(struct bytes input) {
    uint8_t digest[KEY_DIGEST_SIZE];
    uint16_t number;
    uint8_t again[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    if (index_code_read_block_key(input, digest, &number) == ERR_OK) {
        ASSERT(bytes_equal(index_code_block_key(again, digest, number), input));
    }
}

static void check_block(struct bytes input) {
    struct block block;
    uint8_t again[INDEX_CODE_SMALL_SIZE_MAX];
    if (index_code_read_block(input, &block) == ERR_OK) {
        ASSERT(bytes_equal(index_code_block(again, &block), input));
    }
}

static void check_segment(struct bytes input) {
    struct index_segment segment;
    uint8_t again[INDEX_CODE_SMALL_SIZE_MAX];
    if (index_code_read_segment(input, &segment) == ERR_OK) {
        ASSERT(bytes_equal(index_code_segment(again, &segment), input));
    }
}

static void check_position(struct bytes input) {
    struct index_position position;
    uint8_t again[INDEX_CODE_SMALL_SIZE_MAX];
    if (index_code_read_position(input, &position) == ERR_OK) {
        ASSERT(bytes_equal(index_code_position(again, &position), input));
    }
}

static bool captures_are_equal(const struct capture *a, const struct capture *b) {
    return bytes_equal(a->surt, b->surt) && a->time_us == b->time_us &&
           a->location.segment == b->location.segment && a->location.offset == b->location.offset &&
           a->location.length == b->location.length && bytes_equal(a->url, b->url) &&
           bytes_equal(a->mime, b->mime) && a->status == b->status && a->flags == b->flags &&
           a->block_number == b->block_number && memcmp(a->digest, b->digest, KEY_DIGEST_SIZE) == 0;
}

/* The key has one form; the value may have several, such as a media type in full that has a code. */
static void check_same_when_written(struct bytes key, const struct capture *capture) {
    struct buf new_key, new_value, work, url;
    struct capture again;
    buf_init(&new_key, INDEX_CODE_CAPTURE_KEY_SIZE_MAX);
    buf_init(&new_value, INDEX_CODE_CAPTURE_SIZE_MAX);
    buf_init(&work, INDEX_URL_WORK_SIZE_MAX);
    buf_init(&url, INDEX_URL_WORK_SIZE_MAX);
    ASSERT(index_can_hold(capture));
    index_code_put_capture_key(&new_key, capture);
    index_code_put_capture(&new_value, capture, &work);
    ASSERT(new_key.err == ERR_OK && new_value.err == ERR_OK && bytes_equal(buf_bytes(&new_key), key));
    ASSERT(index_code_read_capture(key, buf_bytes(&new_value), &url, &again) == ERR_OK);
    ASSERT(captures_are_equal(&again, capture));
    buf_done(&new_key);
    buf_done(&new_value);
    buf_done(&work);
    buf_done(&url);
}

static void check_capture(struct bytes input) {
    size_t key_size = input.size == 0 ? 0 : input.data[0];
    if (input.size < 1 + key_size) {
        return;
    }
    struct bytes key = bytes_slice(input, 1, 1 + key_size);
    struct capture capture;
    struct buf url;
    buf_init(&url, INDEX_URL_WORK_SIZE_MAX);
    if (index_code_read_capture(key, bytes_skip(input, 1 + key_size), &url, &capture) == ERR_OK) {
        check_same_when_written(key, &capture);
    }
    buf_done(&url);
}

/* Key and value of a place that was mended, with the key's size in front; and of the segment in it. */
static void check_mended(struct bytes input) {
    size_t key_size = input.size == 0 ? 0 : input.data[0];
    if (input.size < 1 + key_size) {
        return;
    }
    struct bytes key = bytes_slice(input, 1, 1 + key_size);
    struct bytes value = bytes_skip(input, 1 + key_size);
    uint8_t key_again[INDEX_CODE_MENDED_KEY_SIZE];
    uint8_t again[INDEX_CODE_SMALL_SIZE_MAX];
    uint8_t segment_key[INDEX_CODE_SEGMENT_KEY_SIZE];
    struct location location;
    for (uint32_t segment = 0; segment < 3; segment++) {
        index_code_segment_key(segment_key, segment);
        if (index_code_read_mended(key, value, segment, &location) == ERR_OK) {
            ASSERT(location.segment == segment);
            ASSERT(bytes_equal(index_code_mended_key(key_again, segment, location.offset), key));
            ASSERT(bytes_equal(index_code_mended(again, &location), value));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const checks[])(struct bytes input) = {check_capture, check_block,    check_block_key,
                                                         check_segment, check_position, check_mended};
    if (size > 0) {
        checks[data[0] % (sizeof checks / sizeof *checks)](bytes_of(data + 1, size - 1));
    }
    return 0;
}
