/*
 * proxy - arbitrary bytes as what a browser sends to the proxy, or a server in answer.
 *
 * What is passed on has one meaning: read again, by the same strict reader, it is the same request, ends
 * where it ends, and its body ends at the same byte however it is cut into pieces.
 */
#include "base/assert.h"
#include "fuzz.h"
#include "node/proxy/proxy_head.h"

static void check_line_ends(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        ASSERT(text.data[i] != '\0');
        ASSERT(text.data[i] != '\n' || (i > 0 && text.data[i - 1] == '\r'));
        ASSERT(text.data[i] != '\r' || (i + 1 < text.size && text.data[i + 1] == '\n'));
    }
}

static size_t take(struct proxy_body *body, struct bytes bytes, size_t piece_size) {
    size_t taken = 0;
    for (size_t from = 0; from < bytes.size; from += piece_size) {
        size_t to = from + piece_size < bytes.size ? from + piece_size : bytes.size;
        taken += proxy_body_take(body, bytes_slice(bytes, from, to));
    }
    return taken;
}

static void check_body(enum proxy_body_kind kind, uint64_t length, struct bytes bytes, size_t piece_size) {
    struct proxy_body whole;
    struct proxy_body cut;
    proxy_body_start(&whole, kind, length);
    proxy_body_start(&cut, kind, length);
    size_t taken = take(&whole, bytes, bytes.size + 1);
    ASSERT(taken <= bytes.size && take(&cut, bytes, piece_size) == taken);
    ASSERT(whole.is_ended == cut.is_ended && whole.is_wrong == cut.is_wrong);
    ASSERT(taken == bytes.size || whole.is_ended || whole.is_wrong);
    if (whole.is_ended && kind == PROXY_BODY_CHUNKED) { /* what was taken is a body by itself */
        proxy_body_start(&cut, kind, length);
        ASSERT(take(&cut, bytes_slice(bytes, 0, taken), taken) == taken && cut.is_ended);
    }
}

static void check_request(struct proxy_head *head, const struct url *url) {
    static struct proxy_head again;
    const char *reason;
    struct buf out;
    buf_init(&out, 8 * PROXY_HEAD_SIZE_MAX);
    enum err err = proxy_head_put_request(head, url, &out);
    ASSERT(err == ERR_OK);
    check_line_ends(buf_bytes(&out));
    enum proxy_head_verdict verdict = proxy_head_read(&again, buf_bytes(&out), &reason);
    /* Two more fields than there were may be too many for a reader with our own bound. */
    ASSERT(verdict == PROXY_HEAD_WHOLE || head->fields.count + 3 > FIELDS_COUNT_MAX);
    if (verdict == PROXY_HEAD_WHOLE) {
        ASSERT(again.size == out.size && bytes_equal(again.method, head->method));
        ASSERT(again.body_kind == head->body_kind && again.body_size == head->body_size);
        ASSERT(again.wants_upgrade == head->wants_upgrade && !again.expects_continue);
    }
    buf_done(&out);
}

static void try_request(struct bytes bytes, size_t piece_size) {
    static struct proxy_head head;
    const char *reason = NULL;
    struct url url;
    enum proxy_head_verdict verdict = proxy_head_read(&head, bytes, &reason);
    ASSERT(verdict != PROXY_HEAD_BAD || reason != NULL);
    if (verdict != PROXY_HEAD_WHOLE) {
        return;
    }
    ASSERT(head.size <= bytes.size);
    url_init(&url);
    if (proxy_head_url(&head, bytes_of(NULL, 0), &url, NULL) == ERR_OK ||
        proxy_head_url(&head, BYTES("example.org:443"), &url, NULL) == ERR_OK) {
        check_request(&head, &url);
    }
    if (proxy_head_authority(&head, &url, NULL) == ERR_OK) {
        ASSERT(url_host(&url).size > 0);
    }
    url_done(&url);
    check_body(head.body_kind, head.body_size, bytes_skip(bytes, head.size), piece_size);
}

static void try_answer(struct bytes bytes, size_t piece_size) {
    static struct http_head head; /* kept from run to run */
    struct proxy_body body;
    struct buf out;
    if (head.text.data == NULL) {
        enum err err = http_head_init(&head);
        ASSERT(err == ERR_OK);
    }
    http_head_start(&head);
    http_head_feed(&head, &bytes);
    if (head.state != HTTP_HEAD_WHOLE || head.status == 0) {
        return;
    }
    buf_init(&out, 8 * PROXY_HEAD_SIZE_MAX);
    if (proxy_head_answer_body(&head, false, &body) == ERR_OK) {
        enum err err = proxy_head_put_answer(&head, &out);
        ASSERT(err == ERR_OK);
        check_line_ends(buf_bytes(&out));
        check_body(body.kind, body.left, bytes, piece_size);
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t piece_size = size == 0 ? 1 : 1 + data[size - 1] % 16;
    if (size <= PROXY_HEAD_SIZE_MAX) { /* what a connection holds */
        try_request(bytes_of(data, size), piece_size);
    }
    try_answer(bytes_of(data, size), piece_size);
    return 0;
}
