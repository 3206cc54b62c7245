#include "warc/cdxj.h"

#include "base/utc.h"
#include "warc/request_key.h"

static void put_value(struct json *json, const char *name, struct bytes value) {
    if (value.size > 0) {
        json_bytes(json, name, value);
    }
}

static bool cdxj_is_key(struct bytes key) {
    for (size_t i = 0; i < key.size; i++) {
        if (key.data[i] <= ' ') {
            return false;
        }
    }
    return key.size > 0;
}

static bool is_valid(const struct cdxj *cdxj) {
    return cdxj_is_key(cdxj->key) && cdxj->time_us >= UTC_MIN_US && cdxj->time_us <= UTC_MAX_US;
}

static void cdxj_put_members(struct json *json, const struct cdxj *cdxj) {
    struct request_key key = request_key_split(cdxj->url);
    put_value(json, "url", key.url);
    put_value(json, "mime", cdxj->mime);
    if (cdxj->status > 0) {
        json_format(json, "status", "%u", cdxj->status);
    }
    put_value(json, "digest", cdxj->digest);
    if (cdxj->has_place) {
        json_format(json, "length", "%ju", (uintmax_t)cdxj->length);
        json_format(json, "offset", "%ju", (uintmax_t)cdxj->offset);
    }
    put_value(json, "filename", cdxj->filename);
    put_value(json, "id", cdxj->id);
    put_value(json, "method", key.method);
    put_value(json, "requestBody", key.body);
}

enum err cdxj_put(struct buf *out, const struct cdxj *cdxj) {
    if (!is_valid(cdxj)) {
        return ERR_INVALID;
    }
    char timestamp[UTC_DIGITS_SIZE];
    struct json json;
    json_init_spaced(&json, out);
    buf_put(out, cdxj->key);
    buf_put_format(out, " %s ", utc_format_digits(cdxj->time_us, timestamp));
    json_open(&json, NULL);
    cdxj_put_members(&json, cdxj);
    json_close(&json);
    return buf_put_byte(out, '\n');
}

enum err cdxj_put_json(struct buf *out, const struct cdxj *cdxj) {
    struct json json;
    if (!is_valid(cdxj)) {
        return ERR_INVALID;
    }
    json_begin_spaced(&json, out);
    json_bytes(&json, "urlkey", cdxj->key);
    json_timestamp(&json, "timestamp", cdxj->time_us);
    cdxj_put_members(&json, cdxj);
    json_end(&json);
    return buf_put_byte(out, '\n');
}
