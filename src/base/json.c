#include "base/json.h"

#include <math.h>
#include <stdarg.h>

#include "base/utc.h"
#include "base/utf8.h"

static void json_escape(struct buf *out, uint8_t byte) {
    switch (byte) {
    case '"':
        buf_put(out, BYTES("\\\""));
        break;
    case '\\':
        buf_put(out, BYTES("\\\\"));
        break;
    case '\n':
        buf_put(out, BYTES("\\n"));
        break;
    case '\r':
        buf_put(out, BYTES("\\r"));
        break;
    case '\t':
        buf_put(out, BYTES("\\t"));
        break;
    default:
        buf_put_format(out, "\\u%04x", byte);
    }
}

enum err json_quote(struct buf *out, struct bytes text) {
    buf_put_byte(out, '"');
    size_t from = 0; /* start of what needs no change and is not yet put */
    for (size_t i = 0; i < text.size;) {
        uint8_t byte = text.data[i];
        if (byte >= 0x80) {
            size_t length = utf8_length(bytes_skip(text, i));
            if (length > 0) {
                i += length;
                continue;
            }
            buf_put(out, bytes_slice(text, from, i));
            buf_put(out, BYTES("\xef\xbf\xbd"));
            from = ++i;
        } else if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f) {
            buf_put(out, bytes_slice(text, from, i));
            json_escape(out, byte);
            from = ++i;
        } else {
            i++;
        }
    }
    buf_put(out, bytes_slice(text, from, text.size));
    return buf_put_byte(out, '"');
}

void json_init(struct json *json, struct buf *out) {
    *json = (struct json){.out = out};
}

void json_init_spaced(struct json *json, struct buf *out) {
    *json = (struct json){.out = out, .is_spaced = true};
}

void json_init_file(struct json *json, FILE *file) {
    *json = (struct json){.file = file};
    json->out = &json->lines;
    buf_init(&json->lines, JSON_LINE_SIZE_MAX);
}

void json_begin(struct json *json, struct buf *out) {
    json_init(json, out);
    json_open(json, NULL);
}

void json_begin_spaced(struct json *json, struct buf *out) {
    json_init_spaced(json, out);
    json_open(json, NULL);
}

void json_begin_file(struct json *json, FILE *file) {
    json_init_file(json, file);
    json_open(json, NULL);
}

enum err json_end(struct json *json) {
    while (json->depth > 0) {
        json_close(json);
    }
    return json->file != NULL ? json_done(json) : json->out->err;
}

enum err json_done(struct json *json) {
    ASSERT(json->depth == 0 && json->file != NULL);
    buf_done(&json->lines);
    return json->lines_err;
}

/* What stands before a value or a name. */
static void json_separate(struct json *json) {
    buf_put_string(json->out, json->has_before ? "," : "");
    if (json->wants_break) {
        buf_put_byte(json->out, '\n');
    } else if (json->has_before && json->is_spaced) {
        buf_put_byte(json->out, ' ');
    }
    json->wants_break = false;
}

void json_name(struct json *json, struct bytes name) {
    ASSERT(json->depth > 0 && (json->lists & 1) == 0 && !json->has_name);
    json_separate(json);
    json_quote(json->out, name);
    buf_put_string(json->out, json->is_spaced ? ": " : ":");
    json->has_name = true;
}

/* Up to where a value can be put. */
static void json_place(struct json *json, const char *name) {
    if (name != NULL) {
        json_name(json, bytes_of_string(name));
    }
    ASSERT(json->has_name == (json->depth > 0 && (json->lists & 1) == 0));
    if (!json->has_name) {
        json_separate(json);
    }
    json->has_name = false;
    json->has_before = json->depth > 0;
}

static void json_nest(struct json *json, const char *name, bool is_list) {
    json_place(json, name);
    ASSERT(json->depth < JSON_DEPTH_MAX);
    buf_put_byte(json->out, is_list ? '[' : '{');
    json->lists = json->lists << 1 | is_list;
    json->depth++;
    json->has_before = false;
}

void json_open(struct json *json, const char *name) {
    json_nest(json, name, false);
}

void json_open_list(struct json *json, const char *name) {
    json_nest(json, name, true);
}

void json_close(struct json *json) {
    ASSERT(json->depth > 0 && !json->has_name);
    buf_put_string(json->out, json->wants_break ? "\n" : "");
    buf_put_byte(json->out, (json->lists & 1) != 0 ? ']' : '}');
    json->lists >>= 1;
    json->depth--;
    json->has_before = json->depth > 0;
    json->wants_break = false;
    if (json->depth == 0 && json->file != NULL) {
        enum err err = buf_put_byte(json->out, '\n');
        if (err == ERR_OK) {
            fwrite(json->out->data, 1, json->out->size, json->file);
        }
        json->lines_err = json->lines_err == ERR_OK ? err : json->lines_err;
        buf_clear(json->out);
    }
}

void json_break(struct json *json) {
    json->wants_break = true;
}

void json_count(struct json *json, const char *name, uint64_t value) {
    json_place(json, name);
    buf_put_u64(json->out, value);
}

void json_counts(struct json *json, const struct json_member *members, size_t count) {
    for (size_t i = 0; i < count; i++) {
        json_count(json, members[i].name, members[i].value);
    }
}

void json_signed(struct json *json, const char *name, int64_t value) {
    json_place(json, name);
    buf_put_format(json->out, "%jd", (intmax_t)value);
}

void json_bool(struct json *json, const char *name, bool value) {
    json_raw(json, name, value ? BYTES("true") : BYTES("false"));
}

void json_none(struct json *json, const char *name) {
    json_raw(json, name, BYTES("null"));
}

void json_decimal(struct json *json, const char *name, double value, int decimals) {
    if (!isfinite(value)) {
        json_none(json, name);
        return;
    }
    json_place(json, name);
    buf_put_format(json->out, "%.*f", decimals, value);
}

void json_digits(struct json *json, const char *name, double value, int digits) {
    if (!isfinite(value)) {
        json_none(json, name);
        return;
    }
    json_place(json, name);
    buf_put_format(json->out, "%.*g", digits, value);
}

void json_bytes(struct json *json, const char *name, struct bytes text) {
    json_place(json, name);
    json_quote(json->out, text);
}

void json_text(struct json *json, const char *name, const char *text) {
    if (text == NULL) {
        json_none(json, name);
    } else {
        json_bytes(json, name, bytes_of_string(text));
    }
}

void json_format(struct json *json, const char *name, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ASSERT(size >= 0 && (size_t)size < sizeof text);
    json_bytes(json, name, bytes_of(text, (size_t)size));
}

void json_time(struct json *json, const char *name, int64_t time_us) {
    char text[UTC_RFC3339_SIZE];
    json_text(json, name, utc_format_rfc3339(time_us, text));
}

void json_timestamp(struct json *json, const char *name, int64_t time_us) {
    char text[UTC_DIGITS_SIZE];
    json_text(json, name, utc_format_digits(time_us, text));
}

void json_raw(struct json *json, const char *name, struct bytes value) {
    json_place(json, name);
    buf_put(json->out, value);
}

void json_members(struct json *json, struct bytes object) {
    ASSERT(json->depth > 0 && (json->lists & 1) == 0 && !json->has_name);
    ASSERT(object.size > 2 && object.data[0] == '{' && object.data[object.size - 1] == '}');
    json_separate(json);
    buf_put(json->out, bytes_slice(object, 1, object.size - 1));
    json->has_before = true;
}
