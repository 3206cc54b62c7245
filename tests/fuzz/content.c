/*
 * content - arbitrary bytes as the encoded body of a recorded answer: gzip, deflate, br, zstd, in any order.
 *
 *      input   u8 which encodings and whether there are chunks, u8 size of the pieces, body
 *
 * Held to: however the body is cut into pieces, and whether the document is pushed or pulled, the same comes
 * out, never more than its bound; of a damaged one, a beginning of the same.
 */
#include "warc/content.h"

#include "fuzz.h"

enum { DOCUMENT_SIZE_MAX = 1 << 20, PLENTY = 1 << 22 };

static const char *const codings[] = {
    "gzip", "deflate", "br", "zstd", "gzip, br", "x-gzip,deflate , zstd", "identity", "rot13"};

static void put_head(struct buf *head, unsigned which) {
    buf_put_format(head, "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n%s\r\n", codings[which % 8],
                   which & 8 ? "Transfer-Encoding: chunked\r\n" : "");
}

static enum err push(struct content *content, struct bytes head, struct bytes body, size_t piece_size,
                     struct buf *out) {
    struct sink_buf into;
    struct err_detail detail = {0};
    sink_buf_init(&into, out);
    enum err err = content_start(content, head, DOCUMENT_SIZE_MAX, &into.sink, &detail);
    for (size_t from = 0; from < body.size && err == ERR_OK; from += piece_size) {
        size_t to = body.size - from < piece_size ? body.size : from + piece_size;
        err = content_put(content, bytes_slice(body, from, to), &detail);
    }
    err = err == ERR_OK ? content_finish(content, &detail) : err;
    ASSERT(out->size <= DOCUMENT_SIZE_MAX);
    return err;
}

static enum err pull(struct content *content, struct bytes head, struct bytes body, struct buf *out) {
    struct bytes piece;
    bool is_ended = false;
    enum err err = content_start(content, head, DOCUMENT_SIZE_MAX, NULL, NULL);
    while (err == ERR_OK) {
        err = content_next(content, &body, &piece, NULL);
        if (err != ERR_OK || piece.size > 0 || content->is_paused) {
            buf_put(out, err == ERR_OK ? piece : bytes_of(NULL, 0));
        } else if (!is_ended) {
            is_ended = true;
            content_end(content);
        } else {
            break;
        }
    }
    content_rest(content);
    ASSERT(out->size <= DOCUMENT_SIZE_MAX);
    return err == ERR_OK ? content_close(content, NULL) : err;
}

/* Of a damaged document the beginning comes out: how much of it depends on where the pieces end. */
static void check_same(struct bytes a, struct bytes b, enum err err) {
    ASSERT(err == ERR_OK ? bytes_equal(a, b) : bytes_starts_with(a, b) || bytes_starts_with(b, a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct content content;
    struct buf head;
    struct buf whole;
    struct buf pieces;
    struct buf pulled;
    if (size < 2) {
        return 0;
    }
    struct bytes body = bytes_of(data + 2, size - 2);
    buf_init(&head, PLENTY);
    buf_init(&whole, PLENTY);
    buf_init(&pieces, PLENTY);
    buf_init(&pulled, PLENTY);
    enum err err = content_init(&content);
    ASSERT(err == ERR_OK);
    if ((data[0] & 16) == 0) { /* else it is no answer of a server at all */
        put_head(&head, data[0]);
    }
    err = push(&content, buf_bytes(&head), body, body.size + 1, &whole);
    enum err pieces_err = push(&content, buf_bytes(&head), body, 1 + data[1] % 64, &pieces);
    enum err pulled_err = pull(&content, buf_bytes(&head), body, &pulled);
    ASSERT((err == ERR_OK) == (pieces_err == ERR_OK) && (err == ERR_OK) == (pulled_err == ERR_OK));
    check_same(buf_bytes(&whole), buf_bytes(&pieces), err);
    check_same(buf_bytes(&whole), buf_bytes(&pulled), err);
    content_done(&content);
    buf_done(&head);
    buf_done(&whole);
    buf_done(&pieces);
    buf_done(&pulled);
    return 0;
}
