#include "replay/cdx/cdx_output.h"

#include "replay/archive/wayback_path.h"
#include "web/url/percent.h"

static bool is_table(const struct cdx_query *query) {
    return query->output == CDX_JSON && query->dialect == CDX_ARCHIVE_ORG;
}

const char *cdx_output_type(const struct cdx_query *query) {
    switch (query->output) {
    case CDX_TEXT:
        break;
    case CDX_JSON:
        return query->dialect == CDX_ARCHIVE_ORG ? "application/json" : "application/x-ndjson";
    case CDX_CDXJ:
        return "text/x-cdxj; charset=utf-8";
    case CDX_LINK:
        return "application/link-format";
    }
    return "text/plain; charset=utf-8";
}

unsigned cdx_output_fields(const struct cdx_query *query) {
    if (query->output == CDX_LINK) {
        return cdx_field_bit(CDX_TIMESTAMP) | cdx_field_bit(CDX_ORIGINAL);
    }
    unsigned fields =
        query->output == CDX_CDXJ ? cdx_field_bit(CDX_URLKEY) | cdx_field_bit(CDX_TIMESTAMP) : 0;
    for (size_t i = 0; i < query->shown_count; i++) {
        fields |= cdx_field_bit(query->shown[i]);
    }
    return fields;
}

/* Nothing in a field may end it, or the line. */
static void put_word(struct buf *out, struct bytes word) {
    size_t from = 0;
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] <= ' ' || word.data[i] == 0x7f) {
            buf_put(out, bytes_slice(word, from, i));
            percent_put_byte(out, word.data[i]);
            from = i + 1;
        }
    }
    buf_put(out, bytes_skip(word, from));
}

static void put_text_line(struct buf *out, const struct cdx_query *query, struct cdx_line *line) {
    for (size_t i = 0; i < query->shown_count; i++) {
        if (i > 0) {
            buf_put_byte(out, ' ');
        }
        put_word(out, cdx_line_value(line, query->shown[i]));
    }
    buf_put_byte(out, '\n');
}

/* A field without a value is left out, and that everybody may see a capture goes without saying. */
static bool is_silent(const struct cdx_query *query, const struct cdx_line *line, enum cdx_field field) {
    return line->values[field].size == 0 || (field == CDX_ACCESS && !query->is_shown_chosen &&
                                             bytes_equal(line->values[field], BYTES("allow")));
}

static void put_object(struct json *json, const struct cdx_query *query, struct cdx_line *line) {
    json_open(json, NULL);
    for (size_t i = 0; i < query->shown_count; i++) {
        enum cdx_field field = query->shown[i];
        bool is_before = query->output == CDX_CDXJ && (field == CDX_URLKEY || field == CDX_TIMESTAMP);
        if (!is_before && !is_silent(query, line, field)) {
            json_bytes(json, cdx_field_name(CDX_PYWB, field), line->values[field]);
        }
    }
    json_close(json);
    buf_put_byte(json->out, '\n');
}

static void output_put_row(struct json *json, const struct cdx_query *query, struct cdx_line *line) {
    json_break(json);
    json_open_list(json, NULL);
    for (size_t i = 0; i < query->shown_count; i++) {
        json_bytes(json, NULL, cdx_line_value(line, query->shown[i]));
    }
    json_close(json);
}

/* And the bracket that cdx_output_end() closes. */
static void put_header(struct json *json, const struct cdx_query *query) {
    json_open_list(json, NULL);
    json_open_list(json, NULL);
    for (size_t i = 0; i < query->shown_count; i++) {
        json_text(json, NULL, cdx_field_name(CDX_ARCHIVE_ORG, query->shown[i]));
    }
    json_close(json);
}

/* RFC 6690: a comma between two, and none behind the last. */
static void put_link(struct buf *out, const struct cdx_query *query, struct cdx_line *line, uint64_t index) {
    char date[UTC_RFC1123_SIZE];
    int64_t time_us = 0;
    struct bytes timestamp = line->values[CDX_TIMESTAMP];
    bool is_time = utc_parse_digits(timestamp, false, &time_us);
    ASSERT(is_time); /* the line made it of one */
    buf_put_string(out, index > 0 ? ",\n<" : "<");
    buf_put(out, query->origin);
    buf_put_format(out, "/web/%.*s/", BYTES_ARG(timestamp));
    wayback_put_url(out, line->values[CDX_ORIGINAL]);
    buf_put_format(out, ">; rel=\"memento\"; datetime=\"%s\"", utc_format_rfc1123(time_us, date));
}

void cdx_output_init(struct json *json, struct buf *out, const struct cdx_query *query) {
    if (is_table(query)) {
        json_init(json, out);
    } else {
        json_init_spaced(json, out);
    }
}

void cdx_output_line(struct json *json, const struct cdx_query *query, struct cdx_line *line,
                     uint64_t index) {
    struct buf *out = json->out;
    if (is_table(query)) {
        if (index == 0) {
            put_header(json, query);
        }
        output_put_row(json, query, line);
        return;
    }
    if (query->output == CDX_TEXT) {
        put_text_line(out, query, line);
        return;
    }
    if (query->output == CDX_LINK) {
        put_link(out, query, line, index);
        return;
    }
    if (query->output == CDX_CDXJ) {
        put_word(out, line->values[CDX_URLKEY]);
        buf_put_byte(out, ' ');
        buf_put(out, line->values[CDX_TIMESTAMP]);
        buf_put_byte(out, ' ');
    }
    put_object(json, query, line);
}

/* So that it can be put behind "resumeKey=" as it stands, and is one word. */
static void output_put_key(struct buf *out, struct bytes key) {
    for (size_t i = 0; i < key.size; i++) {
        uint8_t byte = key.data[i];
        if (byte_is_alnum(byte) || byte == '-' || byte == '.' || byte == '_') {
            buf_put_byte(out, byte);
        } else if (byte == ' ') {
            buf_put_byte(out, '+');
        } else {
            percent_put_byte(out, byte);
        }
    }
}

static void end_table(struct json *json, uint64_t lines_count, struct bytes word) {
    if (lines_count == 0) {
        json_open_list(json, NULL);
    }
    if (word.size > 0) {
        json->wants_break = lines_count > 0;
        json_open_list(json, NULL);
        json_close(json);
        json_break(json);
        json_open_list(json, NULL);
        json_bytes(json, NULL, word);
        json_close(json);
    }
    json_close(json);
    buf_put_byte(json->out, '\n');
}

void cdx_output_end(struct json *json, const struct cdx_query *query, uint64_t lines_count,
                    struct bytes key) {
    struct buf word;
    buf_init(&word, 3 * key.size + 1);
    output_put_key(&word, key);
    if (is_table(query)) {
        end_table(json, lines_count, buf_bytes(&word));
    } else if (query->output == CDX_LINK) {
        buf_put_string(json->out, lines_count > 0 ? "\n" : "");
    } else if (key.size > 0 && query->output == CDX_JSON) {
        json_open(json, NULL);
        json_bytes(json, "resumeKey", buf_bytes(&word));
        json_close(json);
        buf_put_byte(json->out, '\n');
    } else if (key.size > 0) {
        buf_put_format(json->out, "\n%.*s\n", BYTES_ARG(buf_bytes(&word)));
    }
    buf_done(&word);
}

void cdx_output_partial(struct json *json, const struct cdx_query *query, const struct absent *absent) {
    if (absent->is_any && query->output == CDX_JSON && !is_table(query)) {
        json_open(json, NULL);
        absent_put_json(absent, json);
        json_close(json);
        buf_put_byte(json->out, '\n');
    }
}

void cdx_output_pages(struct json *json, const struct cdx_query *query, uint64_t pages_count) {
    if (query->output != CDX_JSON) {
        buf_put_u64(json->out, pages_count);
    } else if (query->dialect == CDX_ARCHIVE_ORG) {
        json_open_list(json, NULL);
        json_open_list(json, NULL);
        json_text(json, NULL, "numpages");
        json_close(json);
        json_break(json);
        json_open_list(json, NULL);
        json_format(json, NULL, "%ju", (uintmax_t)pages_count);
        json_close(json);
        json_close(json);
    } else {
        json_open(json, NULL);
        JSON_COUNTS(json, {"pages", pages_count}, {"pageSize", query->page_size});
        json_close(json);
    }
    buf_put_byte(json->out, '\n');
}
