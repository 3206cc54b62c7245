/*
 * http - arbitrary bytes as an HTTP message: of a server, of a record, of a browser that uses the proxy.
 *
 * However the bytes are cut into pieces, the head is the same, and so are the end of the body and what is
 * decoded from it. What is passed on has one meaning: read again, by the same strict rules, it is the same
 * request and ends where it ends. Chunks that the strict rules take mean the same to the lenient ones.
 */
#include "base/assert.h"
#include "fuzz.h"
#include "http/message/http_body.h"
#include "node/proxy/proxy_head.h"

static struct http_head *new_head(struct http_head *head, enum http_rules rules) {
    if (head->text.data == NULL) { /* kept from run to run */
        enum err err = http_head_init(head);
        ASSERT(err == ERR_OK);
    }
    head->rules = rules;
    return head;
}

/* ---- heads ---- */

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
    ASSERT(head->state != HTTP_HEAD_READING && head->text.size <= HTTP_HEAD_SIZE_MAX);
    if (head->state == HTTP_HEAD_WHOLE) {
        outcome.is_chunked = http_head_is_chunked(head);
        outcome.fields_count = head->fields.count;
        ASSERT(head->text.size == outcome.size || head->rules == HTTP_RULES_STRICT);
    }
    return outcome;
}

static struct outcome check_head(struct http_head *head, struct bytes bytes, size_t piece_size) {
    struct outcome cut = read_head(head, bytes, piece_size);
    struct outcome whole = read_head(head, bytes, bytes.size + 1);
    ASSERT(whole.state == cut.state && whole.status == cut.status);
    ASSERT(whole.is_chunked == cut.is_chunked && whole.fields_count == cut.fields_count);
    ASSERT(whole.state != HTTP_HEAD_WHOLE || whole.size == cut.size);
    return whole;
}

/* ---- chunks ---- */

static size_t find_end(struct chunked *chunked, struct bytes bytes, size_t piece_size) {
    size_t taken = 0;
    for (size_t from = 0; from < bytes.size; from += piece_size) {
        size_t to = from + piece_size < bytes.size ? from + piece_size : bytes.size;
        taken += chunked_take(chunked, bytes_slice(bytes, from, to));
    }
    return taken;
}

/* The size of what is decoded, and a sum of its bytes in their order. */
static size_t decode(enum http_rules rules, struct bytes bytes, size_t piece_size, uint64_t *ret_sum) {
    struct chunked chunked;
    struct bytes part;
    size_t size = 0;
    *ret_sum = 0;
    chunked_start(&chunked, rules);
    for (size_t from = 0; from < bytes.size; from += piece_size) {
        size_t to = from + piece_size < bytes.size ? from + piece_size : bytes.size;
        struct bytes piece = bytes_slice(bytes, from, to);
        while (chunked_next(&chunked, &piece, &part)) {
            for (size_t i = 0; i < part.size; i++) {
                *ret_sum = *ret_sum * 31 + part.data[i];
            }
            size += part.size;
        }
    }
    if (chunked_finish(&chunked, &part)) {
        for (size_t i = 0; i < part.size; i++) {
            *ret_sum = *ret_sum * 31 + part.data[i];
        }
        size += part.size;
    }
    return size;
}

static void check_chunks(enum http_rules rules, struct bytes body, size_t piece_size) {
    struct chunked whole;
    struct chunked cut;
    uint64_t whole_sum;
    uint64_t cut_sum;
    chunked_start(&whole, rules);
    chunked_start(&cut, rules);
    size_t end = find_end(&whole, body, body.size + 1);
    ASSERT(find_end(&cut, body, piece_size) == end && whole.state == cut.state);
    ASSERT(end <= body.size && (end == body.size || whole.state == CHUNKED_ENDED ||
                                (whole.state == CHUNKED_WRONG && rules == HTTP_RULES_STRICT)));
    size_t decoded_size = decode(rules, body, body.size + 1, &whole_sum);
    ASSERT(decode(rules, body, piece_size, &cut_sum) == decoded_size && whole_sum == cut_sum);
    ASSERT(decoded_size <= end);
    /* What the strict rules take as whole, the others take as the same, unless a line is long. */
    if (rules == HTTP_RULES_STRICT && whole.state == CHUNKED_ENDED && end < CHUNKED_LINE_SIZE_MAX) {
        ASSERT(decode(HTTP_RULES_RECORDED, body, piece_size, &cut_sum) == decoded_size);
        ASSERT(whole_sum == cut_sum);
    }
}

static size_t take(struct http_body *body, struct bytes bytes, size_t piece_size) {
    size_t taken = 0;
    for (size_t from = 0; from < bytes.size; from += piece_size) {
        size_t to = from + piece_size < bytes.size ? from + piece_size : bytes.size;
        taken += http_body_take(body, bytes_slice(bytes, from, to));
    }
    return taken;
}

static void check_body(struct http_framing framing, struct bytes bytes, size_t piece_size) {
    struct http_body whole;
    struct http_body cut;
    http_body_start(&whole, framing);
    http_body_start(&cut, framing);
    size_t taken = take(&whole, bytes, bytes.size + 1);
    ASSERT(taken <= bytes.size && take(&cut, bytes, piece_size) == taken);
    ASSERT(whole.is_ended == cut.is_ended && whole.is_wrong == cut.is_wrong);
    ASSERT(taken == bytes.size || whole.is_ended || whole.is_wrong);
    bool is_ended = whole.is_ended;
    ASSERT(http_body_finish(&cut) == (is_ended || framing.kind == HTTP_BODY_UNTIL_CLOSE));
    if (is_ended && framing.kind == HTTP_BODY_CHUNKED) { /* what was taken is a body by itself */
        http_body_start(&cut, framing);
        ASSERT(take(&cut, bytes_slice(bytes, 0, taken), taken) == taken && cut.is_ended);
    }
}

/* ---- the proxy ---- */

static void check_line_ends(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        ASSERT(text.data[i] != '\0');
        ASSERT(text.data[i] != '\n' || (i > 0 && text.data[i - 1] == '\r'));
        ASSERT(text.data[i] != '\r' || (i + 1 < text.size && text.data[i + 1] == '\n'));
    }
}

static void check_request(struct proxy_head *head, const struct url *url) {
    static struct proxy_head again;
    const char *reason;
    struct buf out;
    new_head(&again.http, HTTP_RULES_STRICT);
    buf_init(&out, 8 * PROXY_HEAD_SIZE_MAX);
    enum err err = proxy_head_put_request(head, url, &out);
    ASSERT(err == ERR_OK);
    check_line_ends(buf_bytes(&out));
    enum http_head_state state = proxy_head_read(&again, buf_bytes(&out), &reason);
    /* Two more fields than there were may be too many for a reader with our own bounds. */
    ASSERT(state == HTTP_HEAD_WHOLE || head->http.fields.count + 3 > FIELDS_COUNT_MAX ||
           out.size > PROXY_HEAD_SIZE_MAX);
    if (state == HTTP_HEAD_WHOLE) {
        ASSERT(again.size == out.size && bytes_equal(again.http.method, head->http.method));
        ASSERT(again.framing.kind == head->framing.kind && again.framing.size == head->framing.size);
        ASSERT(again.wants_upgrade == head->wants_upgrade && !again.expects_continue);
    }
    buf_done(&out);
}

static void try_request(struct bytes bytes, size_t piece_size) {
    static struct proxy_head head;
    const char *reason = NULL;
    struct url url;
    new_head(&head.http, HTTP_RULES_STRICT);
    check_head(&head.http, bytes, piece_size);
    enum http_head_state state = proxy_head_read(&head, bytes, &reason);
    ASSERT(state != HTTP_HEAD_NONE || reason != NULL);
    if (state != HTTP_HEAD_WHOLE) {
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
    check_body(head.framing, bytes_skip(bytes, head.size), piece_size);
}

static void try_answer(struct bytes bytes, size_t piece_size) {
    static struct http_head memory;
    struct http_head *head = new_head(&memory, HTTP_RULES_RECORDED);
    struct http_framing framing;
    struct buf out;
    struct outcome outcome = check_head(head, bytes, piece_size);
    bool is_head = outcome.state == HTTP_HEAD_WHOLE;
    struct bytes body = bytes_skip(bytes, is_head ? outcome.size : 0);
    check_chunks(HTTP_RULES_RECORDED, body, piece_size);
    check_chunks(HTTP_RULES_STRICT, body, piece_size);
    if (!is_head || outcome.status == 0) {
        return;
    }
    buf_init(&out, 8 * PROXY_HEAD_SIZE_MAX);
    if (http_head_framing(head, HTTP_MESSAGE_ANSWER, &framing) == NULL) {
        enum err err = proxy_head_put_answer(head, &out);
        ASSERT(err == ERR_OK);
        check_line_ends(buf_bytes(&out));
        check_body(framing, body, piece_size);
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t piece_size = size == 0 ? 1 : 1 + data[size - 1] % 16;
    try_request(bytes_of(data, size), piece_size);
    try_answer(bytes_of(data, size), piece_size);
    return 0;
}
