#include "replay/pages/pages.h"
#include "replay/pages/pages_kit.h"
#include "replay/site/trust.h"

/*
 * A walk in the order of the index: all captures of a SURT are neighbours, so one group is held at a time. A
 * request looks at so many captures at most; if that ends before the page is full, the page says so and
 * goes on from there.
 */
enum {
    ROWS_MAX = 100,
    LOOKED_AT_MAX = 100000,
    FILTER_SIZE_MAX = 200,
    KEY_SIZE_MAX = 4 * URL_SIZE_MAX,
};

enum {
    FILTER_TEXT,   /* part of the URL, in any case */
    FILTER_TYPE,   /* "image" or "text/html" */
    FILTER_STATUS, /* "200" or "4" for all from 400 to 499 */
    FILTERS_COUNT,
};

static const char *const filter_names[FILTERS_COUNT] = {"text", "type", "status"};

/* All captures of one SURT. */
struct group {
    struct capture newest; /* borrows from text */
    struct buf text;
    uint64_t count;
    int64_t first_us;
};

struct listing {
    struct sheet *sheet;
    struct buf filters[FILTERS_COUNT];
    struct group group;
    size_t rows_count;
    uint64_t looked_at_count;
    bool has_more;
    bool is_group_cut; /* there is more of the last group */
    struct buf after;  /* the key of the last capture that has been dealt with */
};

/* ---- filters ---- */

/* "image" stands for all of "image/…". */
static bool has_type(struct bytes mime, struct bytes type) {
    return bytes_starts_with_ignore_case(mime, type) &&
           (mime.size == type.size || type.size == 0 || mime.data[type.size] == '/' ||
            bytes_find_byte(type, '/') < type.size);
}

static bool has_status(uint16_t status, struct bytes wanted) {
    uint64_t number;
    if (!bytes_to_u64(wanted, 999, &number)) {
        return true;
    }
    return number < 10 ? status / 100u == number : status == number;
}

static bool passes(const struct buf filters[FILTERS_COUNT], const struct capture *capture) {
    return bytes_contain_ignore_case(capture->url, buf_bytes(&filters[FILTER_TEXT])) &&
           has_type(capture->mime, buf_bytes(&filters[FILTER_TYPE])) &&
           has_status(capture->status, buf_bytes(&filters[FILTER_STATUS]));
}

/* ---- rows ---- */

static void list_put_row(struct sheet *sheet, const struct group *group) {
    struct bytes url = group->newest.url;
    FILL(sheet,
         "<tr><th scope=row class=grow><a href=\"/web/*/{url}\">{text}</a><td class=number>{count}"
         "<td><a href=\"{replay}\"><span class=unseen>first: </span>{date}</a>"
         "<td><a href=\"{replay}\"><span class=unseen>last: </span>{date}</a><td>{text}<td>{status}\n",
         {.text = url}, {.text = url}, {.number = group->count}, {.text = url, .time_us = group->first_us},
         {.time_us = group->first_us}, {.text = url, .time_us = group->newest.time_us},
         {.time_us = group->newest.time_us},
         {.text = group->newest.mime.size > 0 ? group->newest.mime : BYTES("unknown")},
         {.number = group->newest.status});
}

static void end_group(struct listing *listing) {
    struct group *group = &listing->group;
    if (group->count > 0 && passes(listing->filters, &group->newest)) {
        list_put_row(listing->sheet, group);
        listing->rows_count++;
    }
    group->count = 0;
}

static enum err list_list_add(struct group *group, const struct capture *capture) {
    group->first_us = group->count++ == 0 ? capture->time_us : group->first_us;
    group->newest = *capture;
    return archive_keep(&group->text, &group->newest);
}

/* Until the page is full, the captures end, or enough of them have been looked at. */
static enum err walk_groups(struct listing *listing, struct archive_walk *walk, struct err_detail *detail) {
    struct group *group = &listing->group;
    struct capture capture;
    enum err err;
    while ((err = archive_walk_next(walk, &capture, detail)) == ERR_OK) {
        bool is_same = group->count > 0 && bytes_equal(group->newest.surt, capture.surt);
        if (!is_same) {
            end_group(listing);
        }
        listing->has_more = listing->rows_count == ROWS_MAX || listing->looked_at_count == LOOKED_AT_MAX;
        if (listing->has_more) {
            listing->is_group_cut = is_same;
            break;
        }
        listing->looked_at_count++;
        buf_clear(&listing->after);
        err = list_list_add(group, &capture);
        err = err == ERR_OK ? archive_walk_key(walk, &listing->after) : err;
        if (err != ERR_OK) {
            return err;
        }
    }
    end_group(listing);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* ---- the page ---- */

static void put_options(struct sheet *sheet, struct bytes chosen, const char *const options[][2]) {
    for (; (*options)[0] != NULL; options++) {
        FILL(sheet, "<option value=\"{html}\"{html}>{html}", {.string = (*options)[0]},
             {.string = bytes_equal(chosen, bytes_of_string((*options)[0])) ? " selected" : ""},
             {.string = (*options)[1]});
    }
}

static void list_put_form(struct sheet *sheet, const struct buf filters[FILTERS_COUNT], struct bytes prefix) {
    static const char *const types[][2] = {{"", "any"},
                                           {"text/html", "pages (HTML)"},
                                           {"image", "images"},
                                           {"text/css", "style sheets"},
                                           {"text/javascript", "scripts"},
                                           {"application/pdf", "PDF"},
                                           {"video", "video"},
                                           {"audio", "audio"},
                                           {"font", "fonts"},
                                           {NULL}};
    static const char *const statuses[][2] = {{"", "any"},
                                              {"2", "found (2xx)"},
                                              {"3", "redirect (3xx)"},
                                              {"4", "client error (4xx)"},
                                              {"5", "server error (5xx)"},
                                              {NULL}};
    FILL(sheet,
         "<form class=form-row action=\"/list\" method=get><input type=hidden name=url value=\"{text}\">"
         "<div class=\"field wide\"><label for=text>Address contains</label>"
         "<input id=text name=text type=search maxlength=200 value=\"{text}\"></div>"
         "<div class=field><label for=type>Type</label><select id=type name=type>",
         {.text = prefix}, {.text = buf_bytes(&filters[FILTER_TEXT])});
    put_options(sheet, buf_bytes(&filters[FILTER_TYPE]), types);
    sheet_html(sheet, "</select></div><div class=field><label for=status>Status</label>"
                      "<select id=status name=status>");
    put_options(sheet, buf_bytes(&filters[FILTER_STATUS]), statuses);
    sheet_html(sheet, "</select></div><button>Filter</button></form>\n");
}

static void put_argument(struct sheet *sheet, const char *name, struct bytes value) {
    if (value.size > 0) {
        FILL(sheet, "&amp;{html}={argument}", {.string = name}, {.text = value});
    }
}

static void list_put_end(const struct listing *listing, struct bytes prefix) {
    struct sheet *sheet = listing->sheet;
    if (listing->rows_count == 0) {
        sheet_notice(sheet, SHEET_PLAIN,
                     listing->has_more ? "No match so far; there is more to search." : "No address matches.");
    }
    if (listing->is_group_cut) {
        sheet_notice(
            sheet, SHEET_PLAIN,
            "The last address has more captures than are counted here; they follow on the next page.");
    }
    if (listing->has_more) {
        sheet_html(sheet, "<p class=actions><a class=\"button main\" rel=next href=\"/list?url=");
        sheet_argument(sheet, prefix);
        for (size_t i = 0; i < FILTERS_COUNT; i++) {
            put_argument(sheet, filter_names[i], buf_bytes(&listing->filters[i]));
        }
        put_argument(sheet, "after", buf_bytes(&listing->after));
        sheet_html(sheet, "\">More addresses</a></p>\n");
    }
}

static enum err put_list(struct listing *listing, struct archive_reader *reader,
                         const struct archive_range *range, struct err_detail *detail) {
    struct sheet *sheet = listing->sheet;
    struct archive_walk *walk;
    enum err err = archive_walk_open(reader, range, &walk, detail);
    if (err != ERR_OK) {
        return err;
    }
    FILL(sheet, "<p class=trail><a href=\"/\">Archive</a> / Addresses</p>\n<h1 class=url>{text}</h1>\n",
         {.text = range->url});
    list_put_form(sheet, listing->filters, range->url);
    sheet_table_begin(sheet, "Addresses in this archive");
    sheet_html(sheet, "<thead><tr><th scope=col>Address<th scope=col class=number>Captures<th scope=col>First"
                      "<th scope=col>Last<th scope=col>Type<th scope=col>Status<tbody>\n");
    err = walk_groups(listing, walk, detail);
    sheet_table_end(sheet);
    archive_walk_close(walk);
    const struct absent *absent = archive_reader_absent(reader);
    partial_put_notice(sheet, absent);
    if (err == ERR_OK && absent->is_any && listing->rows_count == 0 && !listing->has_more) {
        return partial_missing(absent, "", detail);
    }
    list_put_end(listing, range->url);
    return err;
}

static void listing_init(struct listing *listing, struct sheet *sheet, const struct http_request *request) {
    *listing = (struct listing){.sheet = sheet};
    for (size_t i = 0; i < FILTERS_COUNT; i++) {
        buf_init(&listing->filters[i], FILTER_SIZE_MAX);
        pages_argument(request, filter_names[i], &listing->filters[i]);
    }
    buf_init(&listing->after, KEY_SIZE_MAX);
    buf_init(&listing->group.text, INDEX_SURT_SIZE_MAX + INDEX_URL_SIZE_MAX + INDEX_MIME_SIZE_MAX);
}

/* Without one of its filters a list would show more than was asked for. */
static enum err listing_check(const struct listing *listing, struct err_detail *detail) {
    for (size_t i = 0; i < FILTERS_COUNT; i++) {
        enum err err = listing->filters[i].err;
        if (err != ERR_OK) {
            return err == ERR_MEMORY ? err : err_set(detail, ERR_INVALID, "%s is too long", filter_names[i]);
        }
    }
    return ERR_OK;
}

static void listing_done(struct listing *listing) {
    for (size_t i = 0; i < FILTERS_COUNT; i++) {
        buf_done(&listing->filters[i]);
    }
    buf_done(&listing->after);
    buf_done(&listing->group.text);
}

static void list_answer(struct replay *replay, struct http_request *request, struct bytes prefix,
                        struct bytes after) {
    struct archive_reader *reader = trust_reader_begin(replay, request);
    if (reader == NULL) {
        http_answer_error(request, ERR_MEMORY, NULL);
        return;
    }
    struct err_detail detail = {0};
    struct sheet sheet;
    struct listing listing;
    struct archive_range range = {.url = prefix, .from_us = INT64_MIN, .to_us = INT64_MAX, .after = after};
    sheet_begin_bare(&sheet, replay, request, "Addresses", SHEET_NONE);
    listing_init(&listing, &sheet, request);
    enum err err = listing_check(&listing, &detail);
    err = err == ERR_OK ? put_list(&listing, reader, &range, &detail) : err;
    listing_done(&listing);
    pages_add_partial(request, reader);
    archive_reader_end(reader);
    if (err == ERR_OK) {
        sheet_answer(&sheet, STATUS_OK);
    } else {
        sheet_drop(&sheet);
        pages_answer_error(replay, request, err, &detail);
    }
}

void pages_list(struct replay *replay, struct http_request *request, struct bytes prefix) {
    list_answer(replay, request, prefix, bytes_of(NULL, 0));
}

void pages_list_form(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct buf prefix;
    struct buf after;
    buf_init(&prefix, URL_SIZE_MAX);
    buf_init(&after, KEY_SIZE_MAX);
    if (!pages_argument(request, "url", &prefix) || prefix.size == 0) {
        struct err_detail detail;
        enum err err =
            prefix.err == ERR_MEMORY ? ERR_MEMORY : err_set(&detail, ERR_INVALID, "No address is given.");
        pages_answer_error(replay, request, err, err == ERR_MEMORY ? NULL : &detail);
    } else if (!pages_argument(request, "after", &after) && after.err != ERR_OK) {
        pages_answer_error(replay, request, after.err, NULL);
    } else {
        list_answer(replay, request, buf_bytes(&prefix), buf_bytes(&after));
    }
    buf_done(&prefix);
    buf_done(&after);
}
