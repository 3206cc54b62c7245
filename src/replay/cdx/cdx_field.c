#include "replay/cdx/cdx_field.h"
#include "warc/request_key.h"

enum { WHOLE_SIZE_MAX = 256 << 10 };

static const struct {
    const char *archive_org;
    const char *pywb;
    const char *letter; /* pywb's short name */
} names[CDX_FIELDS_COUNT] = {
    [CDX_URLKEY] = {"urlkey", "urlkey", "k"},
    [CDX_TIMESTAMP] = {"timestamp", "timestamp", "t"},
    [CDX_ORIGINAL] = {"original", "url", "u"},
    [CDX_MIMETYPE] = {"mimetype", "mime", "m"},
    [CDX_STATUSCODE] = {"statuscode", "status", "s"},
    [CDX_DIGEST] = {"digest", "digest", "d"},
    [CDX_LENGTH] = {"length", "length", "l"},
    [CDX_OFFSET] = {"offset", "offset", "o"},
    [CDX_FILENAME] = {"filename", "filename", "f"},
    [CDX_ACCESS] = {"access", "access", ""},
    [CDX_ID] = {"id", "id", ""},
    [CDX_METHOD] = {"method", "method", ""},
    [CDX_REQUEST_BODY] = {"requestBody", "requestBody", ""},
    [CDX_PROVENANCE] = {"provenance", "provenance", ""},
    [CDX_VOUCHER] = {"voucher", "voucher", ""},
    [CDX_ORIGINAL_LENGTH] = {"orig.length", "orig.length", ""},
    [CDX_ORIGINAL_OFFSET] = {"orig.offset", "orig.offset", ""},
    [CDX_ORIGINAL_FILENAME] = {"orig.filename", "orig.filename", ""},
};

bool cdx_field_parse(struct bytes name, enum cdx_field *ret_field) {
    for (unsigned i = 0; i < CDX_FIELDS_COUNT && name.size > 0; i++) {
        if (bytes_equal(name, bytes_of_string(names[i].archive_org)) ||
            bytes_equal(name, bytes_of_string(names[i].pywb)) ||
            bytes_equal(name, bytes_of_string(names[i].letter))) {
            *ret_field = (enum cdx_field)i;
            return true;
        }
    }
    return false;
}

const char *cdx_field_name(enum cdx_dialect dialect, enum cdx_field field) {
    return dialect == CDX_PYWB ? names[field].pywb : names[field].archive_org;
}

void cdx_line_init(struct cdx_line *line, struct instance *instance, bool is_resolved) {
    memset(line->values, 0, sizeof line->values);
    line->own_type = bytes_of(NULL, 0);
    capture_line_init(&line->text, instance);
    capture_line_init(&line->original_text, instance);
    line->is_resolved = is_resolved;
    buf_init(&line->whole, WHOLE_SIZE_MAX);
}

void cdx_line_done(struct cdx_line *line) {
    buf_done(&line->whole);
}

static struct bytes field_put_number(uint64_t number, char out[CDX_NUMBER_SIZE]) {
    char *at = out + CDX_NUMBER_SIZE;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return bytes_of(at, (size_t)(out + CDX_NUMBER_SIZE - at));
}

/* Outside of a ring nobody signs what is fetched: only what was imported has a mark there. */
static struct bytes field_provenance(struct archive_reader *reader, const struct capture *capture) {
    enum provenance provenance = archive_provenance(reader, capture);
    bool is_silent =
        provenance == PROVENANCE_UNKNOWN && !archive_knows_members(archive_reader_archive(reader));
    return is_silent ? bytes_of(NULL, 0) : bytes_of_string(provenance_name(provenance));
}

/* As keys are written, in base32. */
static struct bytes field_put_voucher(uint64_t voucher, char out[CDX_VOUCHER_SIZE]) {
    enum { DIGITS = CDX_VOUCHER_SIZE - 1, BITS_OF_DIGIT = 5 };
    for (unsigned i = 0; i < DIGITS; i++) {
        unsigned value = (unsigned)(voucher >> (64 - BITS_OF_DIGIT * (i + 1))) & 31;
        out[i] = (char)(value < 26 ? 'a' + (int)value : '2' + (int)value - 26);
    }
    return bytes_of(out, DIGITS);
}

/* The place of a revisit's payload; nothing if that is not known now. */
static void fill_original(struct cdx_line *line, struct archive_reader *reader,
                          const struct capture *capture) {
    struct key key;
    struct block block;
    bool is_known = (capture->flags & CAPTURE_REVISIT) != 0 &&
                    instance_locate(archive_reader_session(reader), capture, &key, &block, NULL) == ERR_OK;
    for (unsigned i = CDX_ORIGINAL_LENGTH; i <= CDX_ORIGINAL_FILENAME; i++) {
        line->values[i] = bytes_of(NULL, 0);
    }
    if (is_known) {
        line->values[CDX_ORIGINAL_LENGTH] = field_put_number(block.location.length, line->original_length);
        line->values[CDX_ORIGINAL_OFFSET] = field_put_number(block.location.offset, line->original_offset);
        line->values[CDX_ORIGINAL_FILENAME] =
            capture_line_file(&line->original_text, key.volume, block.location.segment);
    }
}

static struct bytes fill_one(struct cdx_line *line, struct archive_reader *reader,
                             const struct capture *capture, enum cdx_field field) {
    switch (field) {
    case CDX_URLKEY:
        return capture->surt;
    case CDX_TIMESTAMP:
        return bytes_of(utc_format_digits(capture->time_us, line->timestamp), UTC_DIGITS_SIZE - 1);
    case CDX_ORIGINAL:
        return request_key_split(capture->url).url;
    case CDX_MIMETYPE:
        line->own_type = capture->mime;
        return line->is_resolved && capture->mime.size > 0 ? capture->mime : capture_line_mime(capture);
    case CDX_STATUSCODE:
        return capture->status == 0 ? bytes_of(NULL, 0) : field_put_number(capture->status, line->status);
    case CDX_DIGEST:
        return capture_line_digest(&line->text, capture->digest);
    case CDX_LENGTH:
        return field_put_number(capture->location.length, line->length);
    case CDX_OFFSET:
        return field_put_number(capture->location.offset, line->offset);
    case CDX_FILENAME:
        return capture_line_file(&line->text, capture->volume, capture->location.segment);
    case CDX_ACCESS:
        return archive_verdict(reader, capture) == ACCESS_ALLOW ? BYTES("allow") : BYTES("block");
    case CDX_ID:
        return bytes_of_string(stamp_format(stamp_of(capture), line->id));
    case CDX_METHOD:
        return request_key_split(capture->url).method;
    case CDX_REQUEST_BODY:
        return request_key_split(capture->url).body;
    case CDX_PROVENANCE:
        return field_provenance(reader, capture);
    case CDX_VOUCHER:
        return capture_has_voucher(capture) ? field_put_voucher(capture->voucher, line->voucher)
                                            : bytes_of(NULL, 0);
    case CDX_ORIGINAL_LENGTH:
    case CDX_ORIGINAL_OFFSET:
    case CDX_ORIGINAL_FILENAME:
    case CDX_FIELDS_COUNT:
        break;
    }
    return line->values[field]; /* by fill_original() */
}

void cdx_line_fill(struct cdx_line *line, struct archive_reader *reader, const struct capture *capture,
                   unsigned fields) {
    if (fields >> CDX_ORIGINAL_LENGTH != 0) {
        fill_original(line, reader, capture);
    }
    for (unsigned i = 0; i < CDX_FIELDS_COUNT; i++) {
        if ((fields & cdx_field_bit((enum cdx_field)i)) != 0) {
            line->values[i] = fill_one(line, reader, capture, (enum cdx_field)i);
        }
    }
}

struct bytes cdx_line_value(struct cdx_line *line, enum cdx_field field) {
    if (field != CDX_WHOLE_LINE) {
        return line->values[field].size > 0 ? line->values[field] : BYTES("-");
    }
    buf_clear(&line->whole);
    for (unsigned i = 0; i < CDX_PUBLIC_COUNT; i++) {
        buf_put_string(&line->whole, i == 0 ? "" : " ");
        buf_put(&line->whole, cdx_line_value(line, (enum cdx_field)i));
    }
    return buf_bytes(&line->whole);
}
