#include "replay/cdx/cdx_query.h"

#include "http/server/form.h"

enum { SECOND_US = 1000000, TEXT_SIZE_MAX = 4 << 20 };

static const uint64_t NUMBER_MAX = INT64_MAX;

/* What is decided when all has been read. */
struct reading {
    struct cdx_query *query;
    struct err_detail *detail;
    const char *name; /* of the parameter that is being read */
    bool is_latest;   /* fastLatest */
    bool has_limit;
    bool has_closest;
    bool has_output;
};

/* ---- the query string ---- */

/*
 * The next name and value of a query string, "a=1&b=2"; false at the end. The value is decoded into *text,
 * which must have room for it. Pairs without a name are passed over.
 */
static bool next_pair(struct bytes *rest, struct buf *text, struct bytes *ret_name, struct bytes *ret_value) {
    struct bytes pair;
    while (rest->data != NULL && bytes_split(rest, '&', &pair)) {
        size_t equals = bytes_find_byte(pair, '=');
        if (equals == 0) {
            continue;
        }
        size_t from = text->size;
        *ret_name = bytes_slice(pair, 0, equals);
        form_put_decoded(text, bytes_skip(pair, equals < pair.size ? equals + 1 : equals));
        *ret_value = bytes_skip(buf_bytes(text), from);
        return true;
    }
    return false;
}

/* ---- values ---- */

static enum err query_refuse(struct reading *reading, struct bytes value, const char *wanted) {
    return err_set(reading->detail, ERR_INVALID, "%s=%.*s: %s", reading->name,
                   (int)(value.size < 60 ? value.size : 60), (const char *)value.data, wanted);
}

/* As the original servers: anything but these is yes. */
static bool is_yes(struct bytes value) {
    static const char *const no[] = {"", "0", "false", "no", "off", NULL};
    return !bytes_is_one_of(value, no);
}

static enum err query_read_number(struct reading *reading, struct bytes value, uint64_t *ret_number) {
    return bytes_to_u64(value, NUMBER_MAX, ret_number) ? ERR_OK
                                                       : query_refuse(reading, value, "this is not a number");
}

static enum err query_read_time(struct reading *reading, struct bytes value, bool is_end, int64_t *ret_us) {
    int64_t time_us;
    if (value.size == 0) {
        return ERR_OK;
    }
    if (!utc_parse_digits(value, is_end, &time_us)) {
        return query_refuse(reading, value, "this is not a time; write 1 to 14 digits");
    }
    *ret_us = is_end ? time_us + SECOND_US - 1 : time_us; /* all of the last second */
    return ERR_OK;
}

static enum err read_url(struct reading *reading, struct bytes value) {
    reading->query->url = value;
    return ERR_OK;
}

static enum err read_match(struct reading *reading, struct bytes value) {
    for (unsigned i = QUERY_EXACT; query_matches[i] != NULL; i++) {
        if (bytes_equal(value, bytes_of_string(query_matches[i]))) {
            reading->query->match = (enum query_match)i;
            return ERR_OK;
        }
    }
    return value.size == 0 ? ERR_OK : query_refuse(reading, value, "write exact, prefix, host or domain");
}

static enum err read_from(struct reading *reading, struct bytes value) {
    return query_read_time(reading, value, false, &reading->query->from_us);
}

static enum err read_to(struct reading *reading, struct bytes value) {
    return query_read_time(reading, value, true, &reading->query->to_us);
}

static enum err read_limit(struct reading *reading, struct bytes value) {
    struct cdx_query *query = reading->query;
    struct bytes digits = value;
    if (value.size == 0) {
        return ERR_OK;
    }
    query->is_of_last = query->dialect == CDX_ARCHIVE_ORG && value.data[0] == '-';
    if (query->is_of_last) {
        digits = bytes_skip(value, 1);
    }
    uint64_t limit;
    enum err err = query_read_number(reading, digits, &limit);
    if (err == ERR_OK) {
        reading->has_limit = true;
        query->limit = limit < CDX_LINES_MAX ? limit : CDX_LINES_MAX;
    }
    return err;
}

static enum err read_offset(struct reading *reading, struct bytes value) {
    return query_read_number(reading, value, &reading->query->offset);
}

static enum err read_sort(struct reading *reading, struct bytes value) {
    if (bytes_equal(value, BYTES("reverse"))) {
        reading->query->sort = CDX_REVERSE;
    } else if (bytes_equal(value, BYTES("closest"))) {
        reading->query->sort = CDX_CLOSEST;
    } else if (value.size > 0 && !bytes_equal(value, BYTES("default")) &&
               !bytes_equal(value, BYTES("regular"))) {
        return query_refuse(reading, value, "write reverse or closest");
    }
    return ERR_OK;
}

static enum err read_reverse(struct reading *reading, struct bytes value) {
    return is_yes(value) ? read_sort(reading, BYTES("reverse")) : ERR_OK;
}

static enum err read_closest(struct reading *reading, struct bytes value) {
    reading->has_closest = value.size > 0;
    return query_read_time(reading, value, false, &reading->query->closest_us);
}

static enum err read_filter(struct reading *reading, struct bytes value) {
    struct cdx_query *query = reading->query;
    if (query->filters_count == CDX_FILTERS_MAX) {
        return err_set(reading->detail, ERR_INVALID, "there are more than %d filters", CDX_FILTERS_MAX);
    }
    enum err err =
        cdx_filter_init(&query->filters[query->filters_count], query->dialect, value, reading->detail);
    query->filters_count += err == ERR_OK;
    return err;
}

static enum err add_collapse(struct reading *reading, enum cdx_field field, uint64_t size) {
    struct cdx_query *query = reading->query;
    if (query->collapses_count == CDX_COLLAPSES_MAX) {
        return err_set(reading->detail, ERR_INVALID, "collapse: at most %d", CDX_COLLAPSES_MAX);
    }
    query->collapses[query->collapses_count++] = (struct cdx_collapse){.field = field, .size = size};
    return ERR_OK;
}

static enum err read_collapse(struct reading *reading, struct bytes value) {
    struct bytes rest = value;
    struct bytes field_name = value;
    enum cdx_field field;
    uint64_t size = SIZE_MAX;
    if (value.size == 0) {
        return ERR_OK;
    }
    bytes_split(&rest, ':', &field_name);
    if (!cdx_field_parse(field_name, &field)) {
        return query_refuse(reading, value, "there is no such field");
    }
    if (rest.data != NULL && (!bytes_to_u64(rest, NUMBER_MAX, &size) || size == 0)) {
        return query_refuse(reading, value, "write FIELD or FIELD:N, to compare the first N characters only");
    }
    return add_collapse(reading, field, size);
}

/* pywb's name for collapse=timestamp:N. */
static enum err read_collapse_time(struct reading *reading, struct bytes value) {
    uint64_t size;
    enum err err = query_read_number(reading, value, &size);
    return err != ERR_OK || size == 0 ? err : add_collapse(reading, CDX_TIMESTAMP, size);
}

static enum err query_read_fields(struct reading *reading, struct bytes value) {
    struct cdx_query *query = reading->query;
    struct bytes part;
    struct bytes rest = value;
    if (value.size == 0) {
        return ERR_OK;
    }
    query->shown_count = 0;
    query->is_shown_chosen = true;
    while (bytes_split(&rest, ',', &part)) {
        part = bytes_trim(part);
        if (query->shown_count == CDX_SHOWN_MAX ||
            !cdx_field_parse(part, &query->shown[query->shown_count])) {
            return query_refuse(reading, part, "there is no such field");
        }
        query->shown_count++;
    }
    return ERR_OK;
}

static enum err read_output(struct reading *reading, struct bytes value) {
    static const char *const outputs[] = {
        [CDX_TEXT] = "text", [CDX_JSON] = "json", [CDX_CDXJ] = "cdxj", [CDX_LINK] = "link"};
    for (unsigned i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        if (bytes_equal_ignore_case(value, bytes_of_string(outputs[i]))) {
            reading->query->output = (enum cdx_output)i;
            reading->has_output = true;
            return ERR_OK;
        }
    }
    return value.size == 0 ? ERR_OK : query_refuse(reading, value, "write text, json, cdxj or link");
}

/* Negative: there are no pages. */
static enum err read_page(struct reading *reading, struct bytes value) {
    if (value.size == 0 || value.data[0] == '-') {
        return ERR_OK;
    }
    reading->query->has_page = true;
    return query_read_number(reading, value, &reading->query->page);
}

static enum err read_page_size(struct reading *reading, struct bytes value) {
    uint64_t size;
    enum err err = query_read_number(reading, value, &size);
    if (err == ERR_OK && (size == 0 || size > CDX_LINES_MAX)) {
        err = query_refuse(reading, value, "write 1 to 100000");
    }
    if (err == ERR_OK) {
        reading->query->page_size = size;
    }
    return err;
}

/* Keys are shown encoded. A client that encodes one once more gets it right all the same: every key has
 * spaces. */
static enum err query_read_key(struct reading *reading, struct bytes value) {
    struct cdx_query *query = reading->query;
    if (value.size > 0 && bytes_find_byte(value, ' ') == value.size) {
        size_t from = query->text.size;
        form_put_decoded(&query->text, value); /* it has room: the string was encoded twice */
        value = bytes_skip(buf_bytes(&query->text), from);
    }
    query->resume_key = value;
    return ERR_OK;
}

static enum err query_read_trust(struct reading *reading, struct bytes value) {
    reading->query->trust = archive_trust_parse(value);
    return reading->query->trust == ARCHIVE_TRUST_INVALID
               ? query_refuse(reading, value, "write members or any")
               : ERR_OK;
}

static const struct {
    const char *name;
    enum err (*read)(struct reading *reading, struct bytes value);
} parameters[] = {
    {"url", read_url},
    {"limit", read_limit},
    {"matchType", read_match},
    {"from", read_from},
    {"to", read_to},
    {"offset", read_offset},
    {"filter", read_filter},
    {"collapse", read_collapse},
    {"collapseTime", read_collapse_time},
    {"fl", query_read_fields},
    {"fields", query_read_fields},
    {"output", read_output},
    {"sort", read_sort},
    {"reverse", read_reverse},
    {"closest", read_closest},
    {"page", read_page},
    {"pageSize", read_page_size},
    {"resumeKey", query_read_key},
    {"trust", query_read_trust},
};

static enum err read_one(struct reading *reading, struct bytes name, struct bytes value) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"fastLatest", &reading->is_latest},
                 {"showNumPages", &reading->query->wants_pages_count},
                 {"showResumeKey", &reading->query->wants_resume_key},
                 {"resolveRevisits", &reading->query->is_resolved}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (bytes_equal(name, bytes_of_string(flags[i].name))) {
            *flags[i].flag = is_yes(value);
            return ERR_OK;
        }
    }
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        reading->name = parameters[i].name;
        if (bytes_equal(name, bytes_of_string(reading->name))) {
            return parameters[i].read(reading, value);
        }
    }
    return ERR_OK;
}

/* ---- all of it ---- */

void cdx_query_choose_shown(struct cdx_query *query) {
    bool has_names = query->dialect == CDX_PYWB && (query->output == CDX_JSON || query->output == CDX_CDXJ);
    unsigned count = query->dialect == CDX_PYWB ? CDX_ACCESS + 1 : CDX_PUBLIC_COUNT;
    for (unsigned i = 0; i < CDX_FIELDS_COUNT && !query->is_shown_chosen; i++) {
        bool is_further = has_names && i >= CDX_ID && i <= CDX_VOUCHER;
        if (i < count || is_further || (query->is_resolved && i >= CDX_ORIGINAL_LENGTH)) {
            query->shown[query->shown_count++] = (enum cdx_field)i;
        }
    }
}

static enum err query_settle(struct reading *reading) {
    struct cdx_query *query = reading->query;
    struct err_detail *detail = reading->detail;
    if (query->url.size == 0) {
        return err_set(detail, ERR_INVALID, "url= is missing");
    }
    if (reading->is_latest) {
        query->is_of_last = true;
        query->limit = reading->has_limit ? query->limit : 1;
    }
    if (reading->has_closest) { /* also over reverse, as pywb does */
        query->sort = CDX_CLOSEST;
    }
    if (query->sort == CDX_CLOSEST && !reading->has_closest) {
        return err_set(detail, ERR_INVALID, "sort=closest needs closest= and a time");
    }
    if (query->sort == CDX_CLOSEST && (query->has_page || query->resume_key.size > 0 || query->is_of_last)) {
        return err_set(detail, ERR_INVALID, "sort=closest takes no page, no resumeKey and no negative limit");
    }
    if (query->is_of_last && query->resume_key.size > 0) {
        return err_set(detail, ERR_INVALID, "a negative limit takes no resumeKey; use sort=reverse");
    }
    if (query->has_page && query->page > NUMBER_MAX / query->page_size) {
        return err_set(detail, ERR_INVALID, "there are not that many pages");
    }
    if (query->dialect == CDX_PYWB && !reading->has_output) {
        query->output = CDX_CDXJ;
    }
    if (query->output == CDX_LINK && query->wants_resume_key) {
        return err_set(detail, ERR_INVALID, "output=link has no place for a resume key; use another output");
    }
    cdx_query_choose_shown(query);
    return ERR_OK;
}

void cdx_query_init(struct cdx_query *query, enum cdx_dialect dialect) {
    *query = (struct cdx_query){
        .dialect = dialect,
        .match = QUERY_BY_URL,
        .from_us = INT64_MIN,
        .to_us = INT64_MAX,
        .limit = CDX_LINES_MAX,
        .page_size = CDX_PAGE_SIZE,
    };
    buf_init(&query->text, TEXT_SIZE_MAX);
}

enum err cdx_query_parse(struct cdx_query *query, enum cdx_dialect dialect, struct bytes text,
                         struct err_detail *detail) {
    struct reading reading = {.query = query, .detail = detail};
    struct bytes name;
    struct bytes value;
    cdx_query_init(query, dialect);
    /* Nothing may move: the slices stay. Values shrink when decoded, and the key may be so twice. */
    enum err err = buf_reserve(&query->text, 2 * text.size + 1);
    while (err == ERR_OK && next_pair(&text, &query->text, &name, &value)) {
        err = read_one(&reading, name, value);
    }
    if (err == ERR_OK) {
        err = query_settle(&reading);
    }
    if (err != ERR_OK) {
        cdx_query_done(query);
    }
    return err;
}

void cdx_query_done(struct cdx_query *query) {
    for (size_t i = 0; i < query->filters_count; i++) {
        cdx_filter_done(&query->filters[i]);
    }
    query->filters_count = 0;
    buf_done(&query->text);
}
