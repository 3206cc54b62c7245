#include "http/message/http_head.h"

enum { FIRST_LINE_SIZE_MIN = 5 }; /* "HTTP/" */

enum err http_head_init(struct http_head *head) {
    buf_init(&head->text, HTTP_HEAD_SIZE_MAX);
    http_head_start(head);
    return buf_reserve(&head->text, HTTP_HEAD_SIZE_MAX);
}

void http_head_done(struct http_head *head) {
    buf_done(&head->text);
}

void http_head_start(struct http_head *head) {
    buf_clear(&head->text);
    head->state = HTTP_HEAD_READING;
    head->line_start = 0;
    head->status = 0;
    head->fields.count = 0;
}

/* "HTTP/1.1 200 OK", "GET /x HTTP/1.1", and "ICY 200 OK" of radio streams. */
static bool is_first_line(struct bytes line) {
    return bytes_starts_with(line, BYTES("ICY ")) || bytes_find(line, BYTES("HTTP/")) < line.size;
}

static uint16_t read_status(struct bytes line) {
    struct bytes word = {NULL, 0};
    uint64_t status = 0;
    bool is_response = bytes_starts_with(line, BYTES("HTTP/")) || bytes_starts_with(line, BYTES("ICY "));
    if (!is_response || !bytes_split(&line, ' ', &word)) {
        return 0;
    }
    line = bytes_trim(line);
    if (!bytes_split(&line, ' ', &word) || word.size != 3 || !bytes_to_u64(word, 999, &status)) {
        return 0;
    }
    return status < 100 ? 0 : (uint16_t)status;
}

static void parse(struct http_head *head) {
    struct bytes text = buf_bytes(&head->text);
    size_t line_size = bytes_find_byte(text, '\n');
    size_t from = line_size < text.size ? line_size + 1 : text.size;
    head->state = HTTP_HEAD_WHOLE;
    head->status = read_status(bytes_trim(bytes_slice(text, 0, line_size)));
    (void)fields_parse(&head->fields, head->text.data + from, text.size - from); /* what fits is enough */
}

/* The line from line_start to the end of the text is complete. */
static void end_line(struct http_head *head) {
    struct bytes line = bytes_skip(buf_bytes(&head->text), head->line_start);
    bool is_empty = line.size == 1 || (line.size == 2 && line.data[0] == '\r');
    if (head->line_start == 0 && !is_first_line(line)) {
        head->state = HTTP_HEAD_NONE;
    } else if (is_empty) {
        parse(head);
    }
    head->line_start = head->text.size;
}

void http_head_feed(struct http_head *head, struct bytes *input) {
    while (head->state == HTTP_HEAD_READING && input->size > 0) {
        size_t newline = bytes_find_byte(*input, '\n');
        size_t taken = newline < input->size ? newline + 1 : input->size;
        if (buf_put(&head->text, bytes_slice(*input, 0, taken)) != ERR_OK) {
            head->state = HTTP_HEAD_NONE; /* too long; what was put before is still there */
            return;
        }
        bool is_line = newline < input->size;
        *input = bytes_skip(*input, taken);
        if (is_line) {
            end_line(head);
        }
    }
}

void http_head_finish(struct http_head *head) {
    if (head->state != HTTP_HEAD_READING) {
        return;
    }
    struct bytes text = buf_bytes(&head->text);
    if (text.size < FIRST_LINE_SIZE_MIN || !is_first_line(text)) {
        head->state = HTTP_HEAD_NONE;
        return;
    }
    parse(head);
}

bool http_head_is_chunked(const struct http_head *head) {
    bool is_chunked = false;
    for (const struct field *field = NULL;
         (field = fields_find(&head->fields, BYTES("Transfer-Encoding"), field)) != NULL;) {
        struct bytes value = field->value;
        size_t size = sizeof "chunked" - 1;
        is_chunked = value.size >= size &&
                     bytes_equal_ignore_case(bytes_skip(value, value.size - size), BYTES("chunked"));
    }
    return is_chunked;
}

struct bytes http_mime(struct bytes content_type) {
    struct bytes mime = bytes_trim(bytes_slice(content_type, 0, bytes_find_byte(content_type, ';')));
    for (size_t i = 0; i < mime.size; i++) {
        if (mime.data[i] <= ' ' || mime.data[i] >= 0x7f) {
            return bytes_of(NULL, 0);
        }
    }
    return mime.size == 0 ? bytes_of(NULL, 0) : mime;
}
