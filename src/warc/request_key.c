#include "warc/request_key.h"

#include <jansson.h>
#include <stdio.h>

#include "web/url/percent.h"
#include "web/url/url.h"

enum { DEPTH_MAX = 64, NAMES_MAX = 1024, BASE64_INPUT_MAX = REQUEST_KEY_SIZE_MAX / 4 * 3 };

#define METHOD_ARGUMENT "__wb_method="
#define DATA_ARGUMENT "__wb_post_data="

/* ---- pieces ---- */

/* As URLSearchParams writes them. */
static void key_put_encoded(struct buf *out, struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte_is_alnum(byte) || byte == '*' || byte == '-' || byte == '.' || byte == '_') {
            buf_put_byte(out, byte);
        } else if (byte == ' ') {
            buf_put_byte(out, '+');
        } else {
            percent_put_byte(out, byte);
        }
    }
}

static void key_put_pair(struct buf *out, struct bytes name, struct bytes value) {
    buf_put_string(out, out->size > 0 ? "&" : "");
    key_put_encoded(out, name);
    buf_put_byte(out, '=');
    key_put_encoded(out, value);
}

static void key_put_base64(struct buf *out, struct bytes bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bytes.size = bytes.size < BASE64_INPUT_MAX ? bytes.size : BASE64_INPUT_MAX;
    buf_put_string(out, DATA_ARGUMENT);
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t count = bytes.size - i < 3 ? bytes.size - i : 3;
        uint32_t group = 0;
        for (size_t j = 0; j < 3; j++) {
            group = group << 8 | (j < count ? bytes.data[i + j] : 0);
        }
        for (size_t j = 0; j < 4; j++) {
            buf_put_byte(out, j <= count ? (uint8_t)digits[group >> (18 - 6 * j) & 63] : '=');
        }
    }
}

/* ---- JSON, flattened ---- */

/* Arguments by their innermost names; one that comes again gets ".2_", ".3_" … */
struct flattening {
    struct buf *out;
    json_t *counts; /* name -> how often it came */
    size_t names_count;
};

static void key_put_value(struct flattening *flat, const char *name, struct bytes value) {
    char counted[256];
    json_int_t count = json_integer_value(json_object_get(flat->counts, name)) + 1;
    if (value.size == 0 || flat->names_count++ == NAMES_MAX) {
        return;
    }
    if (json_object_set_new(flat->counts, name, json_integer(count)) != 0) {
        return;
    }
    struct bytes text = bytes_of_string(name);
    if (count > 1 && text.size < sizeof counted - 32) {
        snprintf(counted, sizeof counted, "%s.%lld_", name, (long long)count);
        text = bytes_of_string(counted);
    }
    key_put_pair(flat->out, text, value);
}

/* The shortest text that reads as the same number, which is what JavaScript writes. */
static struct bytes key_format_real(double number, char out[40]) {
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(out, 40, "%.*g", precision, number);
        if (strtod(out, NULL) == number) {
            break;
        }
    }
    return bytes_of_string(out);
}

static void key_flatten(struct flattening *flat, const json_t *value, const char *name, unsigned depth) {
    char number[40];
    const char *key;
    json_t *part;
    size_t index;
    if (depth == DEPTH_MAX) {
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        json_object_foreach((json_t *)(uintptr_t)value, key, part) {
            key_flatten(flat, part, key, depth + 1);
        }
        return;
    case JSON_ARRAY:
        json_array_foreach(value, index, part) {
            key_flatten(flat, part, name, depth + 1);
        }
        return;
    case JSON_STRING:
        key_put_value(flat, name, bytes_of(json_string_value(value), json_string_length(value)));
        return;
    case JSON_INTEGER:
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        key_put_value(flat, name, bytes_of_string(number));
        return;
    case JSON_REAL:
        key_put_value(flat, name, key_format_real(json_real_value(value), number));
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        key_put_value(flat, name, json_is_true(value) ? BYTES("true") : BYTES("false"));
        return;
    case JSON_NULL:
        key_put_value(flat, name, BYTES("null"));
        return;
    }
}

/* False if it is none. */
static bool key_put_json(struct buf *out, struct bytes body) {
    json_t *value =
        body.size > REQUEST_KEY_BODY_SIZE_MAX
            ? NULL
            : json_loadb((const char *)body.data, body.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    struct flattening flat = {.out = out, .counts = json_object()};
    if (value != NULL && flat.counts != NULL) {
        key_flatten(&flat, value, "", 0);
    }
    bool is_json = value != NULL;
    json_decref(flat.counts);
    json_decref(value);
    return is_json;
}

/* ---- forms in parts ---- */

/* 'name="…"' in the head of a part. */
static struct bytes key_part_name(struct bytes head) {
    static const struct bytes mark = {(const uint8_t *)"name=\"", 6};
    struct bytes rest = bytes_skip(head, bytes_find(head, mark));
    rest = bytes_skip(rest, rest.size < mark.size ? rest.size : mark.size);
    size_t end = bytes_find_byte(rest, '"');
    return end < rest.size ? bytes_slice(rest, 0, end) : bytes_of(NULL, 0);
}

/* A part without a name, or with a type of its own (a file), is left out, as by others. */
static void key_put_part(struct buf *out, struct bytes part) {
    size_t end = bytes_find(part, BYTES("\r\n\r\n"));
    if (end == part.size) {
        return;
    }
    struct bytes head = bytes_slice(part, 0, end);
    struct bytes name = key_part_name(head);
    struct bytes value = bytes_skip(part, end + 4);
    value = bytes_slice(value, 0, bytes_find_byte(value, '\n')); /* the first line of it */
    value = bytes_ends_with(value, BYTES("\r")) ? bytes_slice(value, 0, value.size - 1) : value;
    if (name.size > 0 && bytes_ends_with(head, BYTES("\""))) {
        key_put_pair(out, name, value);
    }
}

static void key_put_multipart(struct buf *out, struct bytes content_type, struct bytes body) {
    static const struct bytes mark = {(const uint8_t *)"boundary=", 9};
    size_t at = bytes_find(content_type, mark);
    struct bytes boundary =
        bytes_skip(content_type, at + mark.size < content_type.size ? at + mark.size : content_type.size);
    boundary = bytes_trim(bytes_slice(boundary, 0, bytes_find_byte(boundary, ';')));
    if (boundary.size > 2 && boundary.data[0] == '"' && bytes_ends_with(boundary, BYTES("\""))) {
        boundary = bytes_slice(boundary, 1, boundary.size - 1);
    }
    if (boundary.size == 0 || body.size > REQUEST_KEY_BODY_SIZE_MAX) {
        return;
    }
    while (body.size > 0 && out->size < REQUEST_KEY_SIZE_MAX) {
        size_t end = bytes_find(body, boundary);
        key_put_part(out, bytes_slice(body, 0, end));
        body = bytes_skip(body, end < body.size ? end + boundary.size : end);
    }
}

/* ---- all of it ---- */

static void key_put_body(struct buf *out, struct bytes content_type, struct bytes body) {
    struct bytes essence = bytes_trim(bytes_slice(content_type, 0, bytes_find_byte(content_type, ';')));
    if (bytes_equal_ignore_case(essence, BYTES("application/x-www-form-urlencoded"))) {
        buf_put(out,
                bytes_slice(body, 0, body.size < REQUEST_KEY_SIZE_MAX ? body.size : REQUEST_KEY_SIZE_MAX));
    } else if (bytes_equal_ignore_case(essence, BYTES("application/json"))) {
        (void)key_put_json(out, body);
    } else if (bytes_equal_ignore_case(essence, BYTES("multipart/form-data"))) {
        key_put_multipart(out, content_type, body);
    } else if (!bytes_equal_ignore_case(essence, BYTES("text/plain")) || !key_put_json(out, body)) {
        key_put_base64(out, body);
    }
}

static bool key_is_method(struct bytes method) {
    bool is_sound = method.size > 0 && method.size <= REQUEST_KEY_METHOD_SIZE_MAX;
    for (size_t i = 0; i < method.size && is_sound; i++) {
        is_sound = byte_is_alpha(method.data[i]) || method.data[i] == '-' || method.data[i] == '_';
    }
    return is_sound;
}

enum err request_key_put_parts(struct buf *out, struct bytes method, struct bytes content_type,
                               struct bytes body) {
    if (!key_is_method(method) || bytes_equal_ignore_case(method, BYTES("GET"))) {
        return ERR_OK;
    }
    struct buf query;
    buf_init(&query, 3 * (size_t)REQUEST_KEY_BODY_SIZE_MAX + REQUEST_KEY_SIZE_MAX);
    key_put_body(&query, content_type, body);
    struct bytes text = buf_bytes(&query);
    text.size = text.size < REQUEST_KEY_SIZE_MAX ? text.size : REQUEST_KEY_SIZE_MAX;
    enum err err = query.err == ERR_LIMIT ? ERR_OK : query.err;
    buf_put_string(out, METHOD_ARGUMENT);
    buf_put(out, method);
    buf_put_byte(out, '&');
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte <= ' ' || byte >= 0x7f || byte == '#') {
            percent_put_byte(out, byte);
        } else {
            buf_put_byte(out, byte);
        }
    }
    buf_done(&query);
    return err == ERR_OK ? out->err : err;
}

static struct bytes key_find_type(struct bytes head) {
    struct bytes line;
    while (head.data != NULL && bytes_split(&head, '\n', &line)) {
        size_t colon = bytes_find_byte(line, ':');
        if (bytes_equal_ignore_case(bytes_slice(line, 0, colon), BYTES("Content-Type"))) {
            return bytes_trim(bytes_skip(line, colon < line.size ? colon + 1 : colon));
        }
    }
    return bytes_of(NULL, 0);
}

enum err request_key_put(struct buf *out, struct bytes request) {
    struct bytes method = bytes_slice(request, 0, bytes_find_byte(request, ' '));
    if (request.size == 0 || bytes_equal(method, BYTES("GET")) || method.size == request.size) {
        return ERR_OK;
    }
    size_t end = bytes_find(request, BYTES("\r\n\r\n"));
    struct bytes body = bytes_skip(request, end < request.size ? end + 4 : end);
    return request_key_put_parts(out, method, key_find_type(bytes_slice(request, 0, end)), body);
}

enum err request_key_join(struct buf *out, struct bytes url, struct bytes key) {
    if (key.size > 0) {
        url = bytes_slice(url, 0, bytes_find_byte(url, '#'));
    }
    if (url.size + 1 + key.size > URL_SIZE_MAX) { /* the body does not count then */
        key = bytes_slice(key, 0, bytes_find_byte(key, '&'));
    }
    buf_put(out, url);
    if (key.size > 0) {
        buf_put_byte(out, bytes_find_byte(url, '?') < url.size ? '&' : '?');
        buf_put(out, key);
    }
    return out->err;
}

enum err request_key_put_url(struct buf *out, struct bytes url, struct bytes request) {
    struct buf key;
    buf_init(&key, REQUEST_KEY_TEXT_SIZE_MAX);
    enum err err = request_key_put(&key, request);
    if (err == ERR_OK) {
        err = request_key_join(out, url, buf_bytes(&key));
    }
    buf_done(&key);
    return err;
}

struct request_key request_key_split(struct bytes url) {
    size_t at = bytes_find(url, BYTES(METHOD_ARGUMENT));
    bool is_key = at < url.size && at > 0 && (url.data[at - 1] == '?' || url.data[at - 1] == '&');
    if (!is_key) {
        return (struct request_key){.url = url};
    }
    struct bytes rest = bytes_skip(url, at + sizeof METHOD_ARGUMENT - 1);
    size_t end = bytes_find_byte(rest, '&');
    return (struct request_key){
        .url = bytes_slice(url, 0, at - 1),
        .method = bytes_slice(rest, 0, end),
        .body = bytes_skip(rest, end < rest.size ? end + 1 : end),
    };
}
