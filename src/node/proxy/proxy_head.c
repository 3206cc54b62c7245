#include "node/proxy/proxy_head.h"

/* ---- reading ---- */

static bool is_token_byte(uint8_t byte) {
    return byte_is_alpha(byte) || byte_is_digit(byte) ||
           (byte != '\0' && byte < 0x80 && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

static bool is_token(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        if (!is_token_byte(text.data[i])) {
            return false;
        }
    }
    return text.size > 0;
}

static bool has_controls(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
            return true;
        }
    }
    return false;
}

static const char *read_request_line(struct proxy_head *head, struct bytes line) {
    size_t first = bytes_find_byte(line, ' ');
    if (first == line.size) {
        return "a request line without a target";
    }
    head->method = bytes_slice(line, 0, first);
    struct bytes rest = bytes_skip(line, first + 1);
    size_t second = bytes_find_byte(rest, ' ');
    head->target = bytes_slice(rest, 0, second);
    struct bytes version = bytes_skip(rest, second == rest.size ? second : second + 1);
    if (!is_token(head->method) || head->method.size > PROXY_METHOD_SIZE_MAX) {
        return "a method that is none";
    }
    if (head->target.size == 0 || has_controls(head->target)) {
        return "a target that is none";
    }
    bool is_first = bytes_equal(version, BYTES("HTTP/1.1"));
    if (!is_first && !bytes_equal(version, BYTES("HTTP/1.0"))) {
        return "another version of HTTP than 1.0 and 1.1";
    }
    head->minor_version = is_first ? 1 : 0;
    return NULL;
}

static const char *read_field(struct proxy_head *head, struct bytes line) {
    size_t colon = bytes_find_byte(line, ':');
    if (colon == line.size || !is_token(bytes_slice(line, 0, colon))) {
        return "a header field without a name";
    }
    if (has_controls(line)) {
        return "a header field with control characters";
    }
    if (head->fields.count == FIELDS_COUNT_MAX) {
        return "too many header fields";
    }
    head->fields.items[head->fields.count++] =
        (struct field){bytes_slice(line, 0, colon), bytes_trim(bytes_skip(line, colon + 1))};
    return NULL;
}

static size_t count_fields(const struct fields *fields, struct bytes name) {
    size_t count = 0;
    for (const struct field *field = NULL; (field = fields_find(fields, name, field)) != NULL;) {
        count++;
    }
    return count;
}

static const char *read_framing(struct proxy_head *head) {
    const struct fields *fields = &head->fields;
    size_t lengths_count = count_fields(fields, BYTES("Content-Length"));
    size_t codings_count = count_fields(fields, BYTES("Transfer-Encoding"));
    head->body_kind = PROXY_BODY_NONE;
    if (codings_count + lengths_count > 1) {
        return "a body whose end is said more than once";
    }
    if (codings_count == 1) {
        if (head->minor_version == 0 ||
            !bytes_equal_ignore_case(fields_get(fields, BYTES("Transfer-Encoding")), BYTES("chunked"))) {
            return "a transfer encoding that is not known";
        }
        head->body_kind = PROXY_BODY_CHUNKED;
    }
    if (lengths_count == 1) {
        if (!bytes_to_u64(fields_get(fields, BYTES("Content-Length")), INT64_MAX, &head->body_size)) {
            return "a Content-Length that is none";
        }
        head->body_kind = PROXY_BODY_LENGTH;
    }
    return count_fields(fields, BYTES("Host")) > 1 ? "more than one Host" : NULL;
}

bool proxy_head_lists(const struct fields *fields, struct bytes name, struct bytes word) {
    for (const struct field *field = NULL; (field = fields_find(fields, name, field)) != NULL;) {
        struct bytes rest = field->value;
        struct bytes part;
        while (bytes_split(&rest, ',', &part)) {
            part = bytes_trim(bytes_slice(part, 0, bytes_find_byte(part, '=')));
            if (bytes_equal_ignore_case(part, word)) {
                return true;
            }
        }
    }
    return false;
}

static void read_wishes(struct proxy_head *head) {
    const struct fields *fields = &head->fields;
    bool says_close = proxy_head_lists(fields, BYTES("Connection"), BYTES("close")) ||
                      proxy_head_lists(fields, BYTES("Proxy-Connection"), BYTES("close"));
    bool says_keep = proxy_head_lists(fields, BYTES("Connection"), BYTES("keep-alive")) ||
                     proxy_head_lists(fields, BYTES("Proxy-Connection"), BYTES("keep-alive"));
    head->keeps_connection = !says_close && (head->minor_version == 1 || says_keep);
    head->expects_continue =
        head->minor_version == 1 && proxy_head_lists(fields, BYTES("Expect"), BYTES("100-continue"));
    head->wants_upgrade = head->body_kind == PROXY_BODY_NONE &&
                          proxy_head_lists(fields, BYTES("Connection"), BYTES("upgrade")) &&
                          bytes_equal_ignore_case(fields_get(fields, BYTES("Upgrade")), BYTES("websocket"));
}

static const char *read_lines(struct proxy_head *head, struct bytes text) {
    const char *reason = NULL;
    bool is_first = true;
    while (text.size > 0 && reason == NULL) {
        size_t end = bytes_find(text, BYTES("\r\n"));
        struct bytes line = bytes_slice(text, 0, end);
        if (end == text.size) {
            return "a line that does not end in CRLF";
        }
        reason = is_first ? read_request_line(head, line) : read_field(head, line);
        is_first = false;
        text = bytes_skip(text, end + 2);
    }
    return reason;
}

enum proxy_head_verdict proxy_head_read(struct proxy_head *head, struct bytes input,
                                        const char **ret_reason) {
    size_t start = 0;
    while (input.size - start >= 2 && bytes_starts_with(bytes_skip(input, start), BYTES("\r\n"))) {
        start += 2;
    }
    struct bytes text = bytes_skip(input, start);
    size_t end = bytes_find(text, BYTES("\r\n\r\n"));
    if (end == text.size) {
        *ret_reason = "a head with a line that does not end in CRLF";
        return bytes_find(text, BYTES("\n\n")) < text.size ? PROXY_HEAD_BAD : PROXY_HEAD_PART;
    }
    head->fields.count = 0;
    head->fields.odd_lines_count = 0;
    head->body_size = 0;
    head->size = start + end + 4;
    *ret_reason = read_lines(head, bytes_slice(text, 0, end + 2));
    *ret_reason = *ret_reason == NULL ? read_framing(head) : *ret_reason;
    if (*ret_reason != NULL) {
        return PROXY_HEAD_BAD;
    }
    read_wishes(head);
    return PROXY_HEAD_WHOLE;
}

/* ---- URLs ---- */

enum err proxy_head_url(const struct proxy_head *head, struct bytes secure_host, struct url *ret_url,
                        struct err_detail *detail) {
    if (secure_host.size > 0) {
        struct buf text;
        if (head->target.data[0] != '/') {
            return err_set(detail, ERR_INVALID, "the target of a request is no path");
        }
        buf_init(&text, URL_SIZE_MAX);
        buf_put_string(&text, "https://");
        buf_put(&text, secure_host);
        enum err err = buf_put(&text, head->target);
        err = err == ERR_OK ? url_parse(ret_url, buf_bytes(&text), NULL, detail) : err;
        buf_done(&text);
        return err;
    }
    if (head->target.data[0] == '/' || head->target.data[0] == '*') {
        return err_set(detail, ERR_UNSUPPORTED, "this is a proxy: it is asked for whole URLs");
    }
    enum err err = url_parse(ret_url, head->target, NULL, detail);
    if (err != ERR_OK) {
        return err;
    }
    return ret_url->scheme_type == URL_SCHEME_HTTP
               ? ERR_OK
               : err_set(detail, ERR_UNSUPPORTED, "only http: is passed on, and CONNECT for https:");
}

enum err proxy_head_authority(const struct proxy_head *head, struct url *ret_url, struct err_detail *detail) {
    struct buf text;
    buf_init(&text, URL_SIZE_MAX);
    buf_put_string(&text, "https://");
    enum err err = buf_put(&text, head->target);
    err = err == ERR_OK ? url_parse(ret_url, buf_bytes(&text), NULL, detail) : err;
    buf_done(&text);
    if (err != ERR_OK) {
        return err;
    }
    bool is_plain = bytes_equal(url_path(ret_url), BYTES("/")) && url_username(ret_url).size == 0 &&
                    url_password(ret_url).size == 0 && ret_url->query.to == 0 && ret_url->fragment.to == 0 &&
                    bytes_find_byte(head->target, '/') == head->target.size;
    return is_plain ? ERR_OK : err_set(detail, ERR_INVALID, "CONNECT names a host and a port");
}

/* ---- writing ---- */

bool proxy_head_is_hop(const struct fields *fields, struct bytes name) {
    static const char *const names[] = {
        "Connection", "Keep-Alive",        "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
        "TE",         "Transfer-Encoding", "Upgrade",          "Content-Length",     NULL};
    for (const char *const *hop = names; *hop != NULL; hop++) {
        if (bytes_equal_ignore_case(name, bytes_of_string(*hop))) {
            return true;
        }
    }
    return proxy_head_lists(fields, BYTES("Connection"), name);
}

void proxy_head_put_field(struct buf *out, struct bytes name, struct bytes value) {
    if (!is_token(name)) {
        return;
    }
    buf_put(out, name);
    buf_put_string(out, ": ");
    for (size_t i = 0; i < value.size; i++) {
        uint8_t byte = value.data[i];
        buf_put_byte(out, (byte < ' ' && byte != '\t') || byte == 0x7f ? ' ' : byte);
    }
    buf_put_string(out, "\r\n");
}

static void put_framing(struct buf *out, enum proxy_body_kind kind, uint64_t size) {
    if (kind == PROXY_BODY_CHUNKED) {
        buf_put_string(out, "Transfer-Encoding: chunked\r\n");
    }
    if (kind == PROXY_BODY_LENGTH) {
        buf_put_format(out, "Content-Length: %ju\r\n", (uintmax_t)size);
    }
}

static void put_target(const struct url *url, struct buf *out) {
    buf_put(out, url_path(url));
    if (url->query.to > 0) {
        buf_put_byte(out, '?');
        buf_put(out, url_query(url));
    }
}

static void put_host(const struct url *url, struct buf *out) {
    buf_put_string(out, "Host: ");
    buf_put(out, url_host(url));
    if (url->port != URL_PORT_NONE) {
        buf_put_format(out, ":%d", url->port);
    }
    buf_put_string(out, "\r\n");
}

enum err proxy_head_put_request(const struct proxy_head *head, const struct url *url, struct buf *out) {
    const struct fields *fields = &head->fields;
    buf_put(out, head->method);
    buf_put_byte(out, ' ');
    put_target(url, out);
    buf_put_format(out, " HTTP/1.%u\r\n", head->minor_version);
    put_host(url, out);
    for (size_t i = 0; i < fields->count; i++) {
        struct bytes name = fields->items[i].name;
        if (!proxy_head_is_hop(fields, name) && !bytes_equal_ignore_case(name, BYTES("Host")) &&
            !bytes_equal_ignore_case(name, BYTES("Expect"))) {
            proxy_head_put_field(out, name, fields->items[i].value);
        }
    }
    put_framing(out, head->body_kind, head->body_size);
    if (head->wants_upgrade) {
        proxy_head_put_field(out, BYTES("Upgrade"), fields_get(fields, BYTES("Upgrade")));
        buf_put_string(out, "Connection: Upgrade\r\n");
    } else {
        buf_put_string(out, "Connection: close\r\n");
    }
    return buf_put_string(out, "\r\n");
}

/* ---- answers ---- */

/* All fields of that name must say the same number. */
static bool read_length(const struct fields *fields, uint64_t *ret_length, bool *ret_is_there) {
    *ret_is_there = false;
    for (const struct field *field = NULL;
         (field = fields_find(fields, BYTES("Content-Length"), field)) != NULL;) {
        struct bytes rest = field->value;
        struct bytes part;
        while (bytes_split(&rest, ',', &part)) {
            uint64_t length;
            if (!bytes_to_u64(bytes_trim(part), INT64_MAX, &length) ||
                (*ret_is_there && length != *ret_length)) {
                return false;
            }
            *ret_length = length;
            *ret_is_there = true;
        }
    }
    return true;
}

enum err proxy_head_answer_body(const struct http_head *answer, bool is_head, struct proxy_body *ret_body) {
    const struct fields *fields = &answer->fields;
    uint64_t length = 0;
    bool has_length;
    bool has_coding = fields_find(fields, BYTES("Transfer-Encoding"), NULL) != NULL;
    if (!read_length(fields, &length, &has_length)) {
        return ERR_INVALID;
    }
    enum proxy_body_kind kind = PROXY_BODY_UNTIL_CLOSE;
    if (is_head || answer->status < 200 || answer->status == 204 || answer->status == 304) {
        kind = PROXY_BODY_NONE;
    } else if (has_coding) {
        if (count_fields(fields, BYTES("Transfer-Encoding")) > 1 ||
            !bytes_equal_ignore_case(fields_get(fields, BYTES("Transfer-Encoding")), BYTES("chunked"))) {
            return ERR_INVALID;
        }
        kind = PROXY_BODY_CHUNKED;
    } else if (has_length) {
        kind = PROXY_BODY_LENGTH;
    }
    proxy_body_start(ret_body, kind, length);
    return ERR_OK;
}

/* "Not Found" of "HTTP/1.1 404 Not Found". */
struct bytes proxy_head_reason(const struct http_head *answer) {
    struct bytes text = buf_bytes(&answer->text);
    struct bytes line = bytes_trim(bytes_slice(text, 0, bytes_find_byte(text, '\n')));
    for (unsigned i = 0; i < 2; i++) {
        size_t space = bytes_find_byte(line, ' ');
        line = bytes_skip(line, space < line.size ? space + 1 : space);
    }
    return has_controls(line) ? bytes_of(NULL, 0) : line;
}

enum err proxy_head_put_answer(const struct http_head *answer, struct buf *out) {
    const struct fields *fields = &answer->fields;
    struct bytes length = fields_get(fields, BYTES("Content-Length"));
    bool has_coding = fields_find(fields, BYTES("Transfer-Encoding"), NULL) != NULL;
    uint64_t size;
    buf_put_format(out, "HTTP/1.1 %u ", answer->status);
    buf_put(out, proxy_head_reason(answer));
    buf_put_string(out, "\r\n");
    for (size_t i = 0; i < fields->count; i++) {
        if (!proxy_head_is_hop(fields, fields->items[i].name)) {
            proxy_head_put_field(out, fields->items[i].name, fields->items[i].value);
        }
    }
    bool has_body = answer->status >= 200 && answer->status != 204;
    if (has_body && has_coding) {
        put_framing(out, PROXY_BODY_CHUNKED, 0);
    } else if (has_body && bytes_to_u64(bytes_trim(bytes_slice(length, 0, bytes_find_byte(length, ','))),
                                        INT64_MAX, &size)) {
        put_framing(out, PROXY_BODY_LENGTH, size);
    }
    return buf_put_string(out, "Via: 1.1 mnemon\r\n");
}
