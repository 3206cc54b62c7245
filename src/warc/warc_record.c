#include "warc/warc_record.h"

#include "base/utc.h"
#include "web/type/mime_type.h"

enum {
    WARC_START_SIZE = 5, /* "WARC/" */
    VERSION_DIGITS_MAX = 2,
    ARC_LINE_SIZE_MAX = 4096, /* the part of a text in which a line is looked for */
    ARC_DATE_SIZE_MIN = 8,
    ARC_DATE_SIZE_MAX = 18,
    ARC_TYPE_WORDS_MAX = 16, /* "text/html; charset=utf-8" */
};

static const char *const type_names[] = {
    [WARC_TYPE_UNKNOWN] = "unknown",           [WARC_TYPE_WARCINFO] = "warcinfo",
    [WARC_TYPE_RESPONSE] = "response",         [WARC_TYPE_RESOURCE] = "resource",
    [WARC_TYPE_REQUEST] = "request",           [WARC_TYPE_METADATA] = "metadata",
    [WARC_TYPE_REVISIT] = "revisit",           [WARC_TYPE_CONVERSION] = "conversion",
    [WARC_TYPE_CONTINUATION] = "continuation",
};

const char *warc_type_name(enum warc_type type) {
    return type_names[type];
}

static enum warc_type warc_type_of(struct bytes name) {
    for (size_t i = 1; i < sizeof type_names / sizeof type_names[0]; i++) {
        if (bytes_equal_ignore_case(name, bytes_of_string(type_names[i]))) {
            return (enum warc_type)i;
        }
    }
    return WARC_TYPE_UNKNOWN;
}

struct bytes warc_bare_uri(struct bytes value) {
    if (value.size >= 2 && value.data[0] == '<' && value.data[value.size - 1] == '>') {
        return bytes_slice(value, 1, value.size - 1);
    }
    return value;
}

/* One or two digits at the start of *text, which moves behind them. */
static bool record_read_number(struct bytes *text, uint8_t *ret_number) {
    size_t size = 0;
    while (size < text->size && byte_is_digit(text->data[size])) {
        size++;
    }
    uint64_t number;
    if (size > VERSION_DIGITS_MAX || !bytes_to_u64(bytes_slice(*text, 0, size), UINT8_MAX, &number)) {
        return false;
    }
    *ret_number = (uint8_t)number;
    *text = bytes_skip(*text, size);
    return true;
}

bool warc_record_begins(struct bytes text) {
    return bytes_starts_with_ignore_case(text, BYTES("WARC/"));
}

/* "WARC/1.1" and the end of the line, nothing else on it but white space. */
static bool record_read_version(struct bytes line, uint8_t *ret_major, uint8_t *ret_minor) {
    if (!warc_record_begins(line)) {
        return false;
    }
    struct bytes rest = bytes_trim(bytes_skip(line, WARC_START_SIZE));
    if (!record_read_number(&rest, ret_major) || rest.size == 0 || rest.data[0] != '.') {
        return false;
    }
    rest = bytes_skip(rest, 1);
    return record_read_number(&rest, ret_minor) && rest.size == 0;
}

static enum err read_content_length(struct warc_record *record, const uint8_t *text,
                                    struct err_detail *detail) {
    const struct field *field = fields_find(&record->fields, BYTES("Content-Length"), NULL);
    if (field == NULL) {
        return err_set_at(detail, ERR_INVALID, 0, "the record has no Content-Length");
    }
    if (!bytes_to_u64(field->value, INT64_MAX, &record->content_length)) {
        struct bytes value = field->value;
        size_t at = value.size == 0 ? 0 : (size_t)(value.data - text);
        return err_set_at(detail, ERR_INVALID, at, "the Content-Length is \"%.*s\", not a number",
                          BYTES_ARG(value));
    }
    return ERR_OK;
}

static void read_known_fields(struct warc_record *record) {
    const struct fields *fields = &record->fields;
    record->type = warc_type_of(fields_get(fields, BYTES("WARC-Type")));
    record->target_uri = warc_bare_uri(fields_get(fields, BYTES("WARC-Target-URI")));
    record->content_type = fields_get(fields, BYTES("Content-Type"));
    record->has_date = utc_parse_sloppy(fields_get(fields, BYTES("WARC-Date")), &record->date_us);
}

enum err warc_record_parse(struct warc_record *record, uint8_t *text, size_t size,
                           struct err_detail *detail) {
    struct bytes all = bytes_of(text, size);
    size_t line_size = bytes_find_byte(all, '\n');
    if (!record_read_version(bytes_slice(all, 0, line_size), &record->version_major,
                             &record->version_minor)) {
        return err_set_at(detail, ERR_INVALID, 0, "the record does not start with WARC/ and a version");
    }
    size_t zero = bytes_find_byte(all, 0);
    if (zero < size) {
        return err_set_at(detail, ERR_INVALID, zero, "the header has a zero byte");
    }
    size_t from = line_size < size ? line_size + 1 : size;
    if (fields_parse(&record->fields, text + from, size - from) != ERR_OK) {
        return err_set_at(detail, ERR_LIMIT, 0, "the header has more than %d fields", FIELDS_COUNT_MAX);
    }
    record->is_arc = false;
    enum err err = read_content_length(record, text, detail);
    if (err == ERR_OK) {
        read_known_fields(record);
    }
    return err;
}

/* Cut the last word off *line. URLs of ARC files may hold spaces, so lines are read from their end. */
static bool cut_last_word(struct bytes *line, struct bytes *ret_word) {
    size_t from = line->size;
    while (from > 0 && line->data[from - 1] != ' ') {
        from--;
    }
    if (from < 2 || from == line->size) {
        return false;
    }
    *ret_word = bytes_skip(*line, from);
    *line = bytes_slice(*line, 0, from - 1);
    return true;
}

struct arc_line {
    struct bytes url;
    struct bytes address;
    struct bytes date; /* 14 digits; some writers have less or more */
    struct bytes type;
    struct bytes length;
};

static bool is_arc_date(struct bytes date) {
    uint64_t number;
    return date.size >= ARC_DATE_SIZE_MIN && date.size <= ARC_DATE_SIZE_MAX &&
           bytes_to_u64(date, UINT64_MAX, &number);
}

/* The last word that looks like a date; what follows it is the type, which may have spaces, or be none. */
static bool split_at_date(struct bytes line, struct arc_line *arc) {
    struct bytes word = {NULL, 0};
    const uint8_t *end = line.data + line.size;
    for (size_t i = 0; i <= ARC_TYPE_WORDS_MAX; i++) {
        line = bytes_trim(line);
        if (!cut_last_word(&line, &word)) {
            return false;
        }
        if (is_arc_date(word)) {
            const uint8_t *type = word.data + word.size;
            arc->date = word;
            arc->type = bytes_trim(bytes_of(type, (size_t)(end - type)));
            bool has_address = cut_last_word(&line, &arc->address);
            arc->url = line;
            return has_address && bytes_find_byte(line, ':') < line.size;
        }
    }
    return false;
}

/* Cut off what version 2 has between type and length: result code, checksum, location, offset, file name. */
static bool cut_version_2(struct bytes *line) {
    struct bytes file_name;
    struct bytes offset;
    struct bytes location;
    struct bytes checksum;
    struct bytes result;
    uint64_t number;
    return cut_last_word(line, &file_name) && cut_last_word(line, &offset) &&
           cut_last_word(line, &location) && cut_last_word(line, &checksum) && cut_last_word(line, &result) &&
           bytes_to_u64(offset, UINT64_MAX, &number) && bytes_to_u64(result, 999, &number);
}

/*
 *      version 1    URL address date type length
 *      version 2    URL address date type result checksum location offset file-name length
 */
static bool split_arc_line(struct bytes line, struct arc_line *arc) {
    bool has_zero = bytes_find_byte(line, 0) < line.size;
    line = bytes_trim(line);
    if (has_zero || !cut_last_word(&line, &arc->length)) {
        return false;
    }
    struct bytes short_line = line;
    return (cut_version_2(&short_line) && split_at_date(short_line, arc)) || split_at_date(line, arc);
}

static void record_put_field(struct buf *head, const char *name, struct bytes value) {
    buf_put_string(head, name);
    buf_put(head, BYTES(": "));
    buf_put(head, value);
    buf_put(head, BYTES("\r\n"));
}

static void put_arc_date(struct buf *head, struct bytes digits) {
    int64_t time_us;
    char text[UTC_RFC3339_SIZE];
    digits.size = digits.size < UTC_DIGITS_SIZE - 1 ? digits.size : UTC_DIGITS_SIZE - 1;
    bool is_date = utc_parse_digits(digits, false, &time_us);
    record_put_field(head, "WARC-Date",
                     is_date ? bytes_of_string(utc_format_rfc3339(time_us, text)) : digits);
}

enum err warc_record_parse_arc(struct warc_record *record, struct bytes line, struct buf *head,
                               struct err_detail *detail) {
    struct arc_line arc;
    if (!split_arc_line(line, &arc)) {
        return err_set_at(detail, ERR_INVALID, 0,
                          "this is neither a WARC header nor the line of an ARC record");
    }
    uint64_t length;
    if (!bytes_to_u64(arc.length, INT64_MAX, &length)) {
        return err_set_at(detail, ERR_INVALID, line.size - arc.length.size,
                          "the length of the ARC record is \"%.*s\", not a number", BYTES_ARG(arc.length));
    }
    bool is_info = bytes_starts_with(arc.url, BYTES("filedesc:"));
    bool is_http = bytes_starts_with(arc.url, BYTES("http"));
    buf_clear(head);
    record_put_field(head, "WARC-Type",
                     is_info   ? BYTES("warcinfo")
                     : is_http ? BYTES("response")
                               : BYTES("resource"));
    record_put_field(head, is_info ? "WARC-Filename" : "WARC-Target-URI", arc.url);
    record_put_field(head, "WARC-IP-Address", arc.address);
    put_arc_date(head, arc.date);
    record_put_field(head, "Content-Type", is_http ? BYTES("application/http;msgtype=response") : arc.type);
    record_put_field(head, "ARC-Content-Type", arc.type);
    record_put_field(head, "Content-Length", arc.length);
    if (head->err != ERR_OK) {
        return err_set_at(detail, head->err, 0, "%s",
                          head->err == ERR_LIMIT ? "the ARC line is too long" : err_text(head->err));
    }
    enum err err = fields_parse(&record->fields, head->data, head->size);
    ASSERT(err == ERR_OK);
    record->version_major = 1;
    record->version_minor = 0;
    record->is_arc = true;
    record->content_length = length;
    read_known_fields(record);
    return ERR_OK;
}

bool warc_record_is_arc_start(struct bytes text) {
    struct arc_line arc;
    text.size = text.size < ARC_LINE_SIZE_MAX ? text.size : ARC_LINE_SIZE_MAX;
    size_t line_size = bytes_find_byte(text, '\n');
    return line_size < text.size && split_arc_line(bytes_slice(text, 0, line_size), &arc);
}

bool warc_record_is_start(struct bytes text) {
    uint8_t major;
    uint8_t minor;
    size_t line_size = bytes_find_byte(text, '\n');
    return line_size < text.size && record_read_version(bytes_slice(text, 0, line_size), &major, &minor);
}

bool warc_record_split(struct warc_record *record, struct bytes all, struct buf *text,
                       struct bytes *ret_block) {
    size_t end = bytes_find(all, BYTES("\r\n\r\n"));
    buf_clear(text);
    if (end == all.size || buf_put(text, bytes_slice(all, 0, end + 4)) != ERR_OK ||
        warc_record_parse(record, text->data, text->size, NULL) != ERR_OK ||
        record->content_length > all.size - end - 4) {
        return false;
    }
    *ret_block = bytes_slice(all, end + 4, end + 4 + (size_t)record->content_length);
    return true;
}

bool warc_record_is_http(const struct warc_record *record) {
    struct mime_type type;
    return mime_type_extract(&type, record->content_type) && mime_type_is(&type, "application/http");
}
