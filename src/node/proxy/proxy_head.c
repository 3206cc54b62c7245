#include "node/proxy/proxy_head.h"

/* ---- reading ---- */

enum err proxy_head_init(struct proxy_head *head) {
    enum err err = http_head_init(&head->http);
    head->http.rules = HTTP_RULES_STRICT;
    return err;
}

void proxy_head_done(struct proxy_head *head) {
    http_head_done(&head->http);
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
    const struct fields *fields = &head->http.fields;
    bool is_1_1 = head->http.minor_version == 1;
    bool says_close = proxy_head_lists(fields, BYTES("Connection"), BYTES("close")) ||
                      proxy_head_lists(fields, BYTES("Proxy-Connection"), BYTES("close"));
    bool says_keep = proxy_head_lists(fields, BYTES("Connection"), BYTES("keep-alive")) ||
                     proxy_head_lists(fields, BYTES("Proxy-Connection"), BYTES("keep-alive"));
    head->keeps_connection = !says_close && (is_1_1 || says_keep);
    head->expects_continue = is_1_1 && proxy_head_lists(fields, BYTES("Expect"), BYTES("100-continue"));
    head->wants_upgrade = head->framing.kind == HTTP_BODY_NONE &&
                          proxy_head_lists(fields, BYTES("Connection"), BYTES("upgrade")) &&
                          bytes_equal_ignore_case(fields_get(fields, BYTES("Upgrade")), BYTES("websocket"));
}

enum http_head_state proxy_head_read(struct proxy_head *head, struct bytes input, const char **ret_reason) {
    struct http_head *http = &head->http;
    struct bytes rest = input;
    http_head_start(http);
    http_head_feed(http, &rest);
    *ret_reason = http->reason;
    if (http->state != HTTP_HEAD_WHOLE) {
        return http->state;
    }
    head->size = input.size - rest.size;
    *ret_reason = http_head_framing(http, HTTP_MESSAGE_REQUEST, &head->framing);
    if (*ret_reason != NULL) {
        return HTTP_HEAD_NONE;
    }
    read_wishes(head);
    return HTTP_HEAD_WHOLE;
}

/* ---- URLs ---- */

enum err proxy_head_url(const struct proxy_head *head, struct bytes secure_host, struct url *ret_url,
                        struct err_detail *detail) {
    if (secure_host.size > 0) {
        struct buf text;
        if (head->http.target.data[0] != '/') {
            return err_set(detail, ERR_INVALID, "the target of a request is no path");
        }
        buf_init(&text, URL_SIZE_MAX);
        buf_put_string(&text, "https://");
        buf_put(&text, secure_host);
        enum err err = buf_put(&text, head->http.target);
        err = err == ERR_OK ? url_parse(ret_url, buf_bytes(&text), NULL, detail) : err;
        buf_done(&text);
        return err;
    }
    if (head->http.target.data[0] == '/' || head->http.target.data[0] == '*') {
        return err_set(detail, ERR_UNSUPPORTED, "this is a proxy: it is asked for whole URLs");
    }
    enum err err = url_parse(ret_url, head->http.target, NULL, detail);
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
    enum err err = buf_put(&text, head->http.target);
    err = err == ERR_OK ? url_parse(ret_url, buf_bytes(&text), NULL, detail) : err;
    buf_done(&text);
    if (err != ERR_OK) {
        return err;
    }
    bool is_plain = bytes_equal(url_path(ret_url), BYTES("/")) && url_username(ret_url).size == 0 &&
                    url_password(ret_url).size == 0 && ret_url->query.to == 0 && ret_url->fragment.to == 0 &&
                    bytes_find_byte(head->http.target, '/') == head->http.target.size;
    return is_plain ? ERR_OK : err_set(detail, ERR_INVALID, "CONNECT names a host and a port");
}

/* ---- writing ---- */

/* Is it about one connection only? fields: those among which Connection may name it. */
static bool proxy_head_is_hop(const struct fields *fields, struct bytes name) {
    static const char *const names[] = {
        "Connection", "Keep-Alive",        "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
        "TE",         "Transfer-Encoding", "Upgrade",          "Content-Length",     NULL};
    return bytes_is_one_of(name, names) || proxy_head_lists(fields, BYTES("Connection"), name);
}

void proxy_head_put_field(struct buf *out, struct bytes name, struct bytes value) {
    if (!http_is_token(name)) {
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

static void put_framing(struct buf *out, struct http_framing framing) {
    if (framing.kind == HTTP_BODY_CHUNKED) {
        buf_put_string(out, "Transfer-Encoding: chunked\r\n");
    }
    if (framing.kind == HTTP_BODY_LENGTH) {
        buf_put_format(out, "Content-Length: %ju\r\n", (uintmax_t)framing.size);
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
    const struct fields *fields = &head->http.fields;
    buf_put(out, head->http.method);
    buf_put_byte(out, ' ');
    put_target(url, out);
    buf_put_format(out, " HTTP/1.%u\r\n", head->http.minor_version);
    put_host(url, out);
    for (size_t i = 0; i < fields->count; i++) {
        struct bytes name = fields->items[i].name;
        if (!proxy_head_is_hop(fields, name) && !bytes_equal_ignore_case(name, BYTES("Host")) &&
            !bytes_equal_ignore_case(name, BYTES("Expect"))) {
            proxy_head_put_field(out, name, fields->items[i].value);
        }
    }
    put_framing(out, head->framing);
    if (head->wants_upgrade) {
        proxy_head_put_field(out, BYTES("Upgrade"), fields_get(fields, BYTES("Upgrade")));
        buf_put_string(out, "Connection: Upgrade\r\n");
    } else {
        buf_put_string(out, "Connection: close\r\n");
    }
    return buf_put_string(out, "\r\n");
}

/* ---- answers ---- */

/* "Not Found" of "HTTP/1.1 404 Not Found". */
static struct bytes proxy_head_reason(const struct http_head *answer) {
    struct bytes text = buf_bytes(&answer->text);
    struct bytes line = bytes_trim(bytes_slice(text, 0, bytes_find_byte(text, '\n')));
    for (unsigned i = 0; i < 2; i++) {
        size_t space = bytes_find_byte(line, ' ');
        line = bytes_skip(line, space < line.size ? space + 1 : space);
    }
    return http_has_controls(line) ? bytes_of(NULL, 0) : line;
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
        put_framing(out, (struct http_framing){HTTP_BODY_CHUNKED, 0});
    } else if (has_body && bytes_to_u64(bytes_trim(bytes_slice(length, 0, bytes_find_byte(length, ','))),
                                        INT64_MAX, &size)) {
        put_framing(out, (struct http_framing){HTTP_BODY_LENGTH, size});
    }
    return buf_put_string(out, "Via: 1.1 mnemon\r\n");
}
