/*
 * httphead - arbitrary bytes as what a web server answers: a head and a chunked body.
 *
 * However the bytes are cut into pieces, the head is the same, and so are the end of the body and what is
 * decoded from it; nothing of a head is lost, and what belongs to a well-formed body is found by both readers
 * of chunks.
 */
#include "base/assert.h"
#include "crawl/fetch/fetch_chunks.h"
#include "fuzz.h"
#include "http/message/chunked.h"
#include "http/message/http_head.h"

/* How the head ends and where. */
struct outcome {
    enum http_head_state state;
    uint16_t status;
    bool is_chunked;
    size_t fields_count;
    size_t size; /* taken by the head */
};

static struct outcome read_head(struct http_head *head, struct bytes bytes, size_t piece_size) {
    struct outcome outcome = {0};
    http_head_start(head);
    while (bytes.size > 0 && head->state == HTTP_HEAD_READING) {
        size_t size = bytes.size < piece_size ? bytes.size : piece_size;
        struct bytes piece = bytes_slice(bytes, 0, size);
        http_head_feed(head, &piece);
        outcome.size += size - piece.size;
        bytes = bytes_skip(bytes, size - piece.size);
        if (piece.size > 0) {
            break;
        }
    }
    http_head_finish(head);
    outcome.state = head->state;
    outcome.status = head->status;
    if (head->state == HTTP_HEAD_WHOLE) {
        outcome.is_chunked = http_head_is_chunked(head);
        outcome.fields_count = head->fields.count;
        ASSERT(head->text.size == outcome.size && head->text.size <= HTTP_HEAD_SIZE_MAX);
    }
    return outcome;
}

static size_t find_end(struct bytes bytes, size_t piece_size, struct fetch_chunks *chunks) {
    size_t taken = 0;
    fetch_chunks_start(chunks);
    for (size_t from = 0; from < bytes.size; from += piece_size) {
        size_t to = from + piece_size < bytes.size ? from + piece_size : bytes.size;
        taken += fetch_chunks_take(chunks, bytes_slice(bytes, from, to));
    }
    return taken;
}

/* The size of what is decoded. */
static size_t decode(struct bytes bytes, size_t piece_size, bool *ret_is_wrong) {
    struct chunked chunked;
    struct bytes part;
    size_t size = 0;
    chunked_start(&chunked);
    for (size_t from = 0; from < bytes.size; from += piece_size) {
        size_t to = from + piece_size < bytes.size ? from + piece_size : bytes.size;
        struct bytes piece = bytes_slice(bytes, from, to);
        while (chunked_next(&chunked, &piece, &part)) {
            size += part.size;
        }
    }
    if (chunked_finish(&chunked, &part)) {
        size += part.size;
    }
    *ret_is_wrong = chunked.is_wrong;
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct http_head head; /* kept from run to run */
    if (head.text.data == NULL) {
        enum err err = http_head_init(&head);
        ASSERT(err == ERR_OK);
    }
    size_t piece_size = size == 0 ? 1 : 1 + data[size - 1] % 16;
    struct bytes bytes = bytes_of(data, size);
    struct outcome whole = read_head(&head, bytes, size + 1);
    struct outcome cut = read_head(&head, bytes, piece_size);
    ASSERT(whole.state == cut.state && whole.status == cut.status);
    ASSERT(whole.is_chunked == cut.is_chunked && whole.fields_count == cut.fields_count);
    ASSERT(whole.state != HTTP_HEAD_WHOLE || whole.size == cut.size);

    struct bytes body = bytes_skip(bytes, whole.state == HTTP_HEAD_WHOLE ? whole.size : 0);
    struct fetch_chunks chunks;
    size_t end = find_end(body, body.size + 1, &chunks);
    ASSERT(end <= body.size && (end == body.size || chunks.state == FETCH_CHUNKS_ENDED));
    ASSERT(find_end(body, piece_size, &chunks) == end);
    bool is_wrong;
    bool is_wrong_too;
    size_t decoded_size = decode(body, body.size + 1, &is_wrong);
    ASSERT(decode(body, piece_size, &is_wrong_too) == decoded_size && is_wrong == is_wrong_too);
    ASSERT(decoded_size <= body.size);
    return 0;
}
