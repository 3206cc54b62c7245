#include "warc/cdxj.h"

#include "base/utc.h"

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
