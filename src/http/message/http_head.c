#include "http/message/http_head.h"

#include <string.h>

#include "web/type/mime_type.h"

enum { FIRST_LINE_SIZE_MIN = 5 }; /* "HTTP/" */

enum err http_head_init(struct http_head *head) {
    head->rules = HTTP_RULES_RECORDED;
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
    head->reason = NULL;
    head->line_start = 0;
    head->status = 0;
    head->method = head->target = bytes_of(NULL, 0);
    head->minor_version = 0;
    head->fields.count = 0;
}

static bool http_head_is_strict(const struct http_head *head) {
    return head->rules == HTTP_RULES_STRICT;
}

static size_t http_head_count(const struct http_head *head, struct bytes name) {
    size_t count = 0;
    for (const struct field *field = NULL; (field = fields_find(&head->fields, name, field)) != NULL;) {
        count++;
    }
    return count;
}

/* ---- lines ---- */

/* "HTTP/1.1 200 OK", "GET /x HTTP/1.1", and "ICY 200 OK" of radio streams. */
static bool http_head_is_first_line(struct bytes line) {
    return bytes_starts_with(line, BYTES("ICY ")) || bytes_find(line, BYTES("HTTP/")) < line.size;
}

static uint16_t http_head_read_status(struct bytes line) {
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

static const char *http_head_read_request(struct http_head *head, struct bytes line) {
    struct bytes version = line;
    bytes_split(&version, ' ', &head->method);
    if (!http_is_token(head->method) || head->method.size > HTTP_METHOD_SIZE_MAX) {
        return "an invalid method";
    }
    if (!bytes_split(&version, ' ', &head->target) || head->target.size == 0 ||
        http_has_controls(head->target)) {
        return "an invalid target";
    }
    bool is_1_1 = bytes_equal(version, BYTES("HTTP/1.1"));
    head->minor_version = is_1_1 ? 1 : 0;
    return is_1_1 || bytes_equal(version, BYTES("HTTP/1.0")) ? NULL
                                                             : "a version of HTTP other than 1.0 and 1.1";
}

static const char *http_head_check_field(struct bytes line) {
    size_t colon = bytes_find_byte(line, ':');
    if (colon == line.size || !http_is_token(bytes_slice(line, 0, colon))) {
        return "a header field without a name";
    }
    return http_has_controls(line) ? "a header field with control characters" : NULL;
}

/* NULL, or why a line is refused by the STRICT rules. */
static const char *http_head_check_line(struct http_head *head, struct bytes line) {
    if (!bytes_ends_with(line, BYTES("\r\n"))) {
        return "a line that does not end in CRLF";
    }
    line = bytes_slice(line, 0, line.size - 2);
    if (head->line_start == 0) {
        return http_head_read_request(head, line);
    }
    return line.size > 0 ? http_head_check_field(line) : NULL;
}

static void http_head_refuse(struct http_head *head, const char *reason) {
    head->state = HTTP_HEAD_NONE;
    head->reason = reason;
}

static void http_head_parse(struct http_head *head) {
    struct bytes text = buf_bytes(&head->text);
    size_t line_size = bytes_find_byte(text, '\n');
    size_t from = line_size < text.size ? line_size + 1 : text.size;
    head->state = HTTP_HEAD_WHOLE;
    head->status = http_head_read_status(bytes_trim(bytes_slice(text, 0, line_size)));
    enum err err = fields_parse(&head->fields, head->text.data + from, text.size - from);
    if (!http_head_is_strict(head)) {
        return; /* the fields that fit are enough */
    }
    if (err != ERR_OK) {
        http_head_refuse(head, "too many header fields");
    } else if (http_head_count(head, BYTES("Host")) > 1) {
        http_head_refuse(head, "more than one Host");
    }
}

/* The line from line_start to the end of the text is complete. */
static void http_head_end_line(struct http_head *head) {
    struct bytes line = bytes_skip(buf_bytes(&head->text), head->line_start);
    bool is_strict = http_head_is_strict(head);
    bool is_empty = line.size == 1 || (line.size == 2 && line.data[0] == '\r');
    if (is_strict && head->line_start == 0 && bytes_equal(line, BYTES("\r\n"))) {
        buf_clear(&head->text);
        return;
    }
    const char *reason = is_strict ? http_head_check_line(head, line) : NULL;
    if (reason != NULL || (!is_strict && head->line_start == 0 && !http_head_is_first_line(line))) {
        http_head_refuse(head, reason);
    } else if (is_empty) {
        http_head_parse(head);
    }
    head->line_start = head->text.size;
}

void http_head_feed(struct http_head *head, struct bytes *input) {
    while (head->state == HTTP_HEAD_READING && input->size > 0) {
        size_t newline = bytes_find_byte(*input, '\n');
        size_t taken = newline < input->size ? newline + 1 : input->size;
        if (buf_put(&head->text, bytes_slice(*input, 0, taken)) != ERR_OK) {
            http_head_refuse(head, "a head that is too long"); /* what was put before is still there */
            return;
        }
        bool is_line = newline < input->size;
        *input = bytes_skip(*input, taken);
        if (is_line) {
            http_head_end_line(head);
        }
    }
}

void http_head_finish(struct http_head *head) {
    if (head->state != HTTP_HEAD_READING) {
        return;
    }
    struct bytes text = buf_bytes(&head->text);
    if (http_head_is_strict(head) || text.size < FIRST_LINE_SIZE_MIN || !http_head_is_first_line(text)) {
        http_head_refuse(head, "an incomplete head");
        return;
    }
    http_head_parse(head);
}

/* ---- where the body ends ---- */

/* What the fields Content-Length say. False if that is no number, or not one. */
static bool http_head_read_length(const struct http_head *head, uint64_t *ret_length, size_t *ret_count) {
    *ret_count = 0;
    for (const struct field *field = NULL;
         (field = fields_find(&head->fields, BYTES("Content-Length"), field)) != NULL;) {
        struct bytes rest = field->value;
        struct bytes part;
        while (bytes_split(&rest, ',', &part)) {
            uint64_t length;
            if (!bytes_to_u64(bytes_trim(part), INT64_MAX, &length) ||
                (*ret_count > 0 && length != *ret_length)) {
                return false;
            }
            *ret_length = length;
            ++*ret_count;
        }
    }
    return true;
}

/* Is the last coding "chunked"? */
static bool http_head_ends_in_chunks(const struct http_head *head) {
    bool is_chunked = false;
    for (const struct field *field = NULL;
         (field = fields_find(&head->fields, BYTES("Transfer-Encoding"), field)) != NULL;) {
        is_chunked = bytes_ends_with_ignore_case(field->value, BYTES("chunked"));
    }
    return is_chunked;
}

static bool http_head_has_no_body(const struct http_head *head, enum http_message message) {
    return message == HTTP_MESSAGE_ANSWER_TO_HEAD ||
           (message == HTTP_MESSAGE_ANSWER &&
            (head->status < 200 || head->status == 204 || head->status == 304));
}

const char *http_head_framing(const struct http_head *head, enum http_message message,
                              struct http_framing *ret_framing) {
    bool is_request = message == HTTP_MESSAGE_REQUEST;
    size_t codings_count = http_head_count(head, BYTES("Transfer-Encoding"));
    struct bytes coding = fields_get(&head->fields, BYTES("Transfer-Encoding"));
    struct http_framing framing = {is_request ? HTTP_BODY_NONE : HTTP_BODY_UNTIL_CLOSE, 0};
    size_t lengths_count;
    if (message == HTTP_MESSAGE_RECORDED) {
        framing.kind = http_head_ends_in_chunks(head) ? HTTP_BODY_CHUNKED : HTTP_BODY_UNTIL_CLOSE;
        *ret_framing = framing;
        return NULL;
    }
    if (!http_head_read_length(head, &framing.size, &lengths_count)) {
        return "an invalid Content-Length";
    }
    if (is_request && codings_count + lengths_count > 1) {
        return "a body whose length is stated more than once";
    }
    if (http_head_has_no_body(head, message)) {
        framing.kind = HTTP_BODY_NONE;
    } else if (codings_count > 0) {
        bool is_known = codings_count == 1 && bytes_equal_ignore_case(coding, BYTES("chunked"));
        if (!is_known || (is_request && head->minor_version == 0)) {
            return "an unknown transfer encoding";
        }
        framing.kind = HTTP_BODY_CHUNKED;
    } else if (lengths_count > 0) {
        framing.kind = HTTP_BODY_LENGTH;
    }
    framing.size = framing.kind == HTTP_BODY_LENGTH ? framing.size : 0;
    *ret_framing = framing;
    return NULL;
}

bool http_head_is_chunked(const struct http_head *head) {
    struct http_framing framing;
    return http_head_framing(head, HTTP_MESSAGE_RECORDED, &framing) == NULL &&
           framing.kind == HTTP_BODY_CHUNKED;
}

/* ---- parts of heads ---- */

bool http_is_token(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (!byte_is_alnum(byte) && (byte == '\0' || strchr("!#$%&'*+-.^_`|~", byte) == NULL)) {
            return false;
        }
    }
    return text.size > 0;
}

/* Whether one of eight bytes may be below a blank, or DEL: never misses one. */
static bool may_have_control(const uint8_t *data) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word = 0;
    memcpy(&word, data, sizeof word);
    uint64_t deleted = word ^ (ones * 0x7f);
    uint64_t below = ((word - ones * ' ') & ~word) | ((deleted - ones) & ~deleted);
    return (below & (ones * 0x80)) != 0;
}

/* Every byte that is received or sent in a head passes here: eight at a time if they are plain. */
bool http_has_controls(struct bytes text) {
    for (size_t i = 0; i < text.size;) {
        if (text.size - i >= sizeof(uint64_t) && !may_have_control(text.data + i)) {
            i += sizeof(uint64_t);
            continue;
        }
        uint8_t byte = text.data[i++];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
            return true;
        }
    }
    return false;
}

struct bytes http_content_type(const struct fields *fields, char out[HTTP_TYPE_SIZE_MAX]) {
    struct bytes name = BYTES("Content-Type");
    const struct field *field = fields_find(fields, name, NULL);
    const struct field *next = field == NULL ? NULL : fields_find(fields, name, field);
    if (next == NULL) {
        return field == NULL ? bytes_of(NULL, 0) : field->value;
    }
    size_t size = 0;
    for (; field != NULL; field = fields_find(fields, name, field)) {
        size_t room = HTTP_TYPE_SIZE_MAX - size;
        size_t taken = field->value.size < room ? field->value.size : room;
        if (taken > 0) {
            memcpy(out + size, field->value.data, taken);
        }
        size += taken;
        if (size < HTTP_TYPE_SIZE_MAX) {
            out[size++] = ',';
        }
    }
    return bytes_of(out, size);
}

bool http_type(const struct fields *fields, struct mime_type *ret_type) {
    char joined[HTTP_TYPE_SIZE_MAX];
    return mime_type_extract(ret_type, http_content_type(fields, joined));
}

bool http_is_html(struct bytes content_type) {
    struct mime_type type;
    return mime_type_extract(&type, content_type) && mime_type_is_html(&type);
}
