#include "replay/cdx/cdx_filter.h"

#include "base/regex.h"

enum {
    /* About a millisecond. ".*text.*" over a URL of 64 KiB stays below. */
    STEPS_MAX = 100000,
    DEPTH_MAX = 1000,
};

/* Text that means itself needs no machine: statuscode:200, mimetype:text/html. */
static bool filter_is_plain(struct bytes text) {
    static const struct bytes special = {(const uint8_t *)"\\^$.|?*+()[]{}", 14};
    for (size_t i = 0; i < text.size; i++) {
        if (bytes_find_byte(special, text.data[i]) < special.size) {
            return false;
        }
    }
    return true;
}

static enum err filter_compile(struct bytes text, bool must_end, struct regex **ret_regex,
                               struct err_detail *detail) {
    struct regex_rules rules = {
        .is_anchored = true, .is_end_anchored = must_end, .steps_max = STEPS_MAX, .depth_max = DEPTH_MAX};
    struct err_detail own = {.err = ERR_OK};
    enum err err = regex_new(text, &rules, ret_regex, &own);
    return err == ERR_OK ? ERR_OK
                         : err_set(detail, err == ERR_MEMORY ? err : ERR_INVALID, "filter: %s",
                                   err_detail_text(&own, err));
}

static bool filter_take(struct bytes *text, char mark) {
    bool is_there = text->size > 0 && text->data[0] == (uint8_t)mark;
    *text = is_there ? bytes_skip(*text, 1) : *text;
    return is_there;
}

static bool looks_like_name(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (!byte_is_alnum(byte) && byte != '.' && byte != '-' && byte != '_') {
            return false;
        }
    }
    return true;
}

/* "field:text"; the Internet Archive also counts fields from 0. Without a field, all of the line is meant. */
static enum err read_field(struct cdx_filter *filter, struct bytes text, struct err_detail *detail) {
    uint64_t number;
    size_t colon = bytes_find_byte(text, ':');
    filter->field = CDX_WHOLE_LINE;
    filter->text = text;
    if (colon == text.size || !looks_like_name(bytes_slice(text, 0, colon))) {
        return ERR_OK;
    }
    struct bytes name = bytes_slice(text, 0, colon);
    filter->text = bytes_skip(text, colon + 1);
    if (cdx_field_parse(name, &filter->field)) {
        return ERR_OK;
    }
    if (bytes_to_u64(name, CDX_PUBLIC_COUNT - 1, &number)) {
        filter->field = (enum cdx_field)number;
        return ERR_OK;
    }
    return err_set(detail, ERR_INVALID, "filter: there is no field \"%.*s\"",
                   (int)(name.size < 60 ? name.size : 60), (const char *)name.data);
}

enum err cdx_filter_init(struct cdx_filter *filter, enum cdx_dialect dialect, struct bytes text,
                         struct err_detail *detail) {
    *filter = (struct cdx_filter){.kind = CDX_FILTER_REGEX};
    if (text.size == 0 || text.size > CDX_PATTERN_SIZE_MAX) {
        return err_set(detail, ERR_INVALID, "filter: write [!]field:text, at most %d bytes",
                       CDX_PATTERN_SIZE_MAX);
    }
    filter->is_inverted = filter_take(&text, '!');
    if (dialect == CDX_PYWB) {
        filter->kind = filter_take(&text, '=')   ? CDX_FILTER_EQUALS
                       : filter_take(&text, '~') ? CDX_FILTER_REGEX
                                                 : CDX_FILTER_CONTAINS;
    }
    enum err err = read_field(filter, text, detail);
    if (err != ERR_OK || filter->kind != CDX_FILTER_REGEX) {
        return err;
    }
    if (dialect == CDX_ARCHIVE_ORG && filter_is_plain(filter->text)) {
        filter->kind = CDX_FILTER_EQUALS;
        return ERR_OK;
    }
    return filter_compile(filter->text, dialect == CDX_ARCHIVE_ORG, &filter->regex, detail);
}

void cdx_filter_done(struct cdx_filter *filter) {
    regex_free(filter->regex);
}

unsigned cdx_filter_fields(const struct cdx_filter *filter) {
    return filter->field == CDX_WHOLE_LINE ? (1U << CDX_PUBLIC_COUNT) - 1 : cdx_field_bit(filter->field);
}

static enum err filter_match(const struct regex *regex, struct bytes value, bool *ret_matches,
                             struct err_detail *detail) {
    enum regex_verdict verdict = regex_match(regex, value);
    if (verdict == REGEX_LIMIT) {
        return err_set(detail, ERR_LIMIT,
                       "filter: the regular expression takes too long; write a simpler one");
    }
    *ret_matches = verdict == REGEX_YES;
    return ERR_OK;
}

static enum err filter_try(const struct cdx_filter *filter, struct bytes value, bool *ret_matches,
                           struct err_detail *detail) {
    if (filter->kind == CDX_FILTER_REGEX) {
        return filter_match(filter->regex, value, ret_matches, detail);
    }
    *ret_matches = filter->kind == CDX_FILTER_EQUALS
                       ? bytes_equal(value, filter->text)
                       : filter->text.size == 0 || bytes_find(value, filter->text) < value.size;
    return ERR_OK;
}

/* A revisit is found by either of its types: its URL may have no other capture. */
enum err cdx_filter_run(const struct cdx_filter *filter, struct cdx_line *line, bool *ret_passes,
                        struct err_detail *detail) {
    bool matches = false;
    enum err err = filter_try(filter, cdx_line_value(line, filter->field), &matches, detail);
    if (err == ERR_OK && !matches && filter->field == CDX_MIMETYPE && line->own_type.size > 0) {
        err = filter_try(filter, line->own_type, &matches, detail);
    }
    *ret_passes = matches != filter->is_inverted;
    return err;
}
