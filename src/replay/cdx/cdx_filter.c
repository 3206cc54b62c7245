#define PCRE2_CODE_UNIT_WIDTH 8
#include "replay/cdx/cdx_filter.h"

#include <pcre2.h>
#include <stdlib.h>

enum {
    /* About a millisecond. ".*text.*" over a URL of 64 KiB stays below. */
    STEPS_MAX = 100000,
    DEPTH_MAX = 1000,
    HEAP_KIB_MAX = 4096,
    PARENTHESES_MAX = 50,
};

struct cdx_regex {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
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

/* All that a match needs; pcre2's functions to free take NULL. */
static void regex_free(struct cdx_regex *regex) {
    pcre2_match_context_free(regex->limits);
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    free(regex);
}

static pcre2_code *compile(struct bytes text, uint32_t options, struct err_detail *detail) {
    int number = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *rules = pcre2_compile_context_create(NULL);
    if (rules == NULL) {
        return NULL;
    }
    pcre2_set_parens_nest_limit(rules, PARENTHESES_MAX);
    pcre2_code *code = pcre2_compile(text.data, text.size, options, &number, &at, rules);
    pcre2_compile_context_free(rules);
    if (code == NULL) {
        char reason[128] = "";
        pcre2_get_error_message(number, (PCRE2_UCHAR *)reason, sizeof reason);
        err_set(detail, ERR_INVALID, "filter: the regular expression is wrong at its byte %zu: %s", at + 1,
                reason);
    }
    return code;
}

static enum err regex_new(struct bytes text, bool must_end, struct cdx_regex **ret_regex,
                          struct err_detail *detail) {
    struct cdx_regex *regex = calloc(1, sizeof *regex);
    if (regex == NULL) {
        return ERR_MEMORY;
    }
    uint32_t options =
        PCRE2_ANCHORED | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | (must_end ? PCRE2_ENDANCHORED : 0);
    regex->code = compile(text, options, detail);
    if (regex->code == NULL) {
        regex_free(regex);
        return ERR_INVALID;
    }
    regex->match = pcre2_match_data_create(1, NULL);
    regex->limits = pcre2_match_context_create(NULL);
    if (regex->match == NULL || regex->limits == NULL) {
        regex_free(regex);
        return ERR_MEMORY;
    }
    pcre2_set_match_limit(regex->limits, STEPS_MAX);
    pcre2_set_depth_limit(regex->limits, DEPTH_MAX);
    pcre2_set_heap_limit(regex->limits, HEAP_KIB_MAX);
    *ret_regex = regex;
    return ERR_OK;
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
    return regex_new(filter->text, dialect == CDX_ARCHIVE_ORG, &filter->regex, detail);
}

void cdx_filter_done(struct cdx_filter *filter) {
    if (filter->regex != NULL) {
        regex_free(filter->regex);
    }
}

unsigned cdx_filter_fields(const struct cdx_filter *filter) {
    return filter->field == CDX_WHOLE_LINE ? (1U << CDX_PUBLIC_COUNT) - 1 : cdx_field_bit(filter->field);
}

static enum err filter_match(const struct cdx_regex *regex, struct bytes value, bool *ret_matches,
                             struct err_detail *detail) {
    int result = pcre2_match(regex->code, value.data, value.size, 0, 0, regex->match, regex->limits);
    if (result < 0 && result != PCRE2_ERROR_NOMATCH) {
        return err_set(detail, ERR_LIMIT,
                       "filter: the regular expression takes too long; write a simpler one");
    }
    *ret_matches = result >= 0;
    return ERR_OK;
}

enum err cdx_filter_run(const struct cdx_filter *filter, struct cdx_line *line, bool *ret_passes,
                        struct err_detail *detail) {
    struct bytes value = cdx_line_value(line, filter->field);
    bool matches = false;
    if (filter->kind == CDX_FILTER_REGEX) {
        enum err err = filter_match(filter->regex, value, &matches, detail);
        if (err != ERR_OK) {
            return err;
        }
    } else if (filter->kind == CDX_FILTER_EQUALS) {
        matches = bytes_equal(value, filter->text);
    } else {
        matches = filter->text.size == 0 || bytes_find(value, filter->text) < value.size;
    }
    *ret_passes = matches != filter->is_inverted;
    return ERR_OK;
}
