#include "warc/cdxj.h"

#include <jansson.h>

#include "base/utc.h"

enum {
    TIMESTAMP_SIZE_MIN = 4,
    TIMESTAMP_SIZE_MAX = 17, /* some writers add milliseconds; they are cut */
    STATUS_MAX = 999,
};

static void put_name(struct buf *out, const char *name) {
    bool is_first = out->size > 0 && out->data[out->size - 1] == '{';
    buf_put_format(out, "%s\"%s\": ", is_first ? "" : ", ", name);
}

static void put_value(struct buf *out, const char *name, struct bytes value) {
    if (value.size > 0) {
        put_name(out, name);
        buf_put_json(out, value);
    }
}

static void put_number(struct buf *out, const char *name, uint64_t number) {
    put_name(out, name);
    buf_put_format(out, "\"%llu\"", (unsigned long long)number);
}

static bool is_key(struct bytes key) {
    for (size_t i = 0; i < key.size; i++) {
        if (key.data[i] <= ' ') {
            return false;
        }
    }
    return key.size > 0;
}

enum err cdxj_put(struct buf *out, const struct cdxj *cdxj) {
    if (!is_key(cdxj->key) || cdxj->time_us < UTC_MIN_US || cdxj->time_us > UTC_MAX_US) {
        return ERR_INVALID;
    }
    char timestamp[UTC_DIGITS_SIZE];
    buf_put(out, cdxj->key);
    buf_put_format(out, " %s {", utc_format_digits(cdxj->time_us, timestamp));
    put_value(out, "url", cdxj->url);
    put_value(out, "mime", cdxj->mime);
    if (cdxj->status > 0) {
        put_number(out, "status", cdxj->status);
    }
    put_value(out, "digest", cdxj->digest);
    if (cdxj->has_place) {
        put_number(out, "length", cdxj->length);
        put_number(out, "offset", cdxj->offset);
    }
    put_value(out, "filename", cdxj->filename);
    return buf_put(out, BYTES("}\n"));
}

void cdxj_done(struct cdxj *cdxj) {
    json_decref(cdxj->json);
    *cdxj = (struct cdxj){0};
}

static struct bytes get_text(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? bytes_of(json_string_value(value), json_string_length(value))
                                 : bytes_of(NULL, 0);
}

/* A number, or digits in a string. False where it is absent or neither. */
static bool get_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret_number) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value)) {
        return bytes_to_u64(get_text(object, name), max, ret_number);
    }
    json_int_t number = json_integer_value(value);
    if (number < 0 || (uint64_t)number > max) {
        return false;
    }
    *ret_number = (uint64_t)number;
    return true;
}

static void read_object(struct cdxj *cdxj, json_t *object) {
    uint64_t status;
    cdxj->json = object;
    cdxj->url = get_text(object, "url");
    cdxj->mime = get_text(object, "mime");
    cdxj->digest = get_text(object, "digest");
    cdxj->filename = get_text(object, "filename");
    cdxj->status = get_number(object, "status", STATUS_MAX, &status) ? (uint16_t)status : 0;
    cdxj->has_place = get_number(object, "length", INT64_MAX, &cdxj->length) &&
                      get_number(object, "offset", INT64_MAX, &cdxj->offset);
}

enum err cdxj_parse(struct cdxj *cdxj, struct bytes line, struct err_detail *detail) {
    cdxj_done(cdxj);
    if (line.size > CDXJ_LINE_SIZE_MAX) {
        return err_set_at(detail, ERR_LIMIT, CDXJ_LINE_SIZE_MAX, "the line is longer than %d bytes",
                          CDXJ_LINE_SIZE_MAX);
    }
    struct bytes rest = line;
    struct bytes key;
    struct bytes timestamp;
    if (!bytes_split(&rest, ' ', &key) || !is_key(key)) {
        return err_set_at(detail, ERR_INVALID, 0, "the line has no key");
    }
    int64_t time_us;
    bool has_timestamp = bytes_split(&rest, ' ', &timestamp) && timestamp.size >= TIMESTAMP_SIZE_MIN &&
                         timestamp.size <= TIMESTAMP_SIZE_MAX;
    timestamp.size = timestamp.size < UTC_DIGITS_SIZE ? timestamp.size : UTC_DIGITS_SIZE - 1;
    if (!has_timestamp || !utc_parse_digits(timestamp, false, &time_us)) {
        return err_set_at(detail, ERR_INVALID, key.size + 1, "no timestamp follows the key");
    }
    size_t from = line.size - rest.size;
    json_error_t error;
    json_t *object = json_loadb((const char *)rest.data, rest.size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(object)) {
        size_t at = object == NULL && error.position > 0 ? from + (size_t)error.position : from;
        json_decref(object);
        return err_set_at(detail, ERR_INVALID, at, "no JSON object follows the timestamp");
    }
    read_object(cdxj, object);
    cdxj->key = key;
    cdxj->time_us = time_us;
    return ERR_OK;
}
