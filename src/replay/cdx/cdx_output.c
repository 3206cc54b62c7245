#include "replay/cdx/cdx_output.h"

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
    }
    return "text/plain; charset=utf-8";
}

unsigned cdx_output_fields(const struct cdx_query *query) {
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

static void put_text(struct buf *out, const struct cdx_query *query, struct cdx_line *line) {
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

static void put_object(struct buf *out, const struct cdx_query *query, struct cdx_line *line) {
    const char *between = "{\"";
    for (size_t i = 0; i < query->shown_count; i++) {
        enum cdx_field field = query->shown[i];
        bool is_before = query->output == CDX_CDXJ && (field == CDX_URLKEY || field == CDX_TIMESTAMP);
        if (is_before || is_silent(query, line, field)) {
            continue;
        }
        buf_put_string(out, between);
        buf_put_string(out, cdx_field_name(CDX_PYWB, field));
        buf_put_string(out, "\": ");
        buf_put_json(out, line->values[field]);
        between = ", \"";
    }
    buf_put_string(out, between[0] == '{' ? "{}\n" : "}\n");
}

static void put_row(struct buf *out, const struct cdx_query *query, struct cdx_line *line) {
    buf_put_string(out, ",\n[");
    for (size_t i = 0; i < query->shown_count; i++) {
        if (i > 0) {
            buf_put_byte(out, ',');
        }
        buf_put_json(out, cdx_line_value(line, query->shown[i]));
    }
    buf_put_byte(out, ']');
}

static void put_header(struct buf *out, const struct cdx_query *query) {
    for (size_t i = 0; i < query->shown_count; i++) {
        buf_put_string(out, i == 0 ? "[[\"" : ",\"");
        buf_put_string(out, cdx_field_name(CDX_ARCHIVE_ORG, query->shown[i]));
        buf_put_byte(out, '"');
    }
    buf_put_byte(out, ']');
}

void cdx_output_line(struct buf *out, const struct cdx_query *query, struct cdx_line *line, uint64_t index) {
    if (is_table(query)) {
        if (index == 0) {
            put_header(out, query);
        }
        put_row(out, query, line);
        return;
    }
    if (query->output == CDX_TEXT) {
        put_text(out, query, line);
        return;
    }
    if (query->output == CDX_CDXJ) {
        put_word(out, line->values[CDX_URLKEY]);
        buf_put_byte(out, ' ');
        buf_put(out, line->values[CDX_TIMESTAMP]);
        buf_put_byte(out, ' ');
    }
    put_object(out, query, line);
}

/* So that it can be put behind "resumeKey=" as it stands, and is one word. */
static void put_key(struct buf *out, struct bytes key) {
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

void cdx_output_end(struct buf *out, const struct cdx_query *query, uint64_t lines_count, struct bytes key) {
    if (is_table(query)) {
        if (key.size > 0) {
            buf_put_string(out, lines_count == 0 ? "[[],\n[\"" : ",\n[],\n[\"");
            put_key(out, key);
            buf_put_string(out, "\"]");
        }
        buf_put_string(out, lines_count == 0 && key.size == 0 ? "[]\n" : "]\n");
        return;
    }
    if (key.size == 0) {
        return;
    }
    bool is_json = query->output == CDX_JSON;
    buf_put_string(out, is_json ? "{\"resumeKey\": \"" : "\n");
    put_key(out, key);
    buf_put_string(out, is_json ? "\"}\n" : "\n");
}

void cdx_output_pages(struct buf *out, const struct cdx_query *query, uint64_t pages_count) {
    if (query->output != CDX_JSON) {
        buf_put_format(out, "%ju\n", (uintmax_t)pages_count);
    } else if (query->dialect == CDX_ARCHIVE_ORG) {
        buf_put_format(out, "[[\"numpages\"],\n[\"%ju\"]]\n", (uintmax_t)pages_count);
    } else {
        buf_put_format(out, "{\"pages\": %ju, \"pageSize\": %ju}\n", (uintmax_t)pages_count,
                       (uintmax_t)query->page_size);
    }
}
