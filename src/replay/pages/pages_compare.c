#include "base/hex.h"
#include "parse/parse_lines.h"
#include "replay/pages/pages_content.h"
#include "replay/pages/pages_diff.h"
#include "replay/pages/pages_kit.h"
#include "replay/site/trust.h"

enum { CONTEXT_LINES = 3, LINE_SHOWN_MAX = 2000 };

/* One of the two captures. */
struct version {
    struct capture capture; /* borrows from kept */
    uint64_t size;
    struct archive_neighbours neighbours;
    struct buf kept;
    struct buf text; /* that is compared: lines that are read, or the source */
    bool is_text;
    bool is_html;
    bool is_cut;
};

struct comparison {
    struct version versions[2]; /* the older one first, if they were asked for so */
    enum pages_view view;
};

/* ---- reading ---- */

static enum err compare_read_text(struct version *version, struct archive_reader *reader,
                                  const struct archive_record *record, enum pages_view view,
                                  struct err_detail *detail) {
    struct buf params;
    version->is_html = pages_content_is_html(record);
    version->is_text = pages_content_is_text(record);
    if (!version->is_text) {
        return ERR_OK;
    }
    struct parse_lines_params lines = {.head = pages_content_head(record),
                                       .content_type = record->content_type,
                                       .is_html = version->is_html,
                                       .wants_lines = view != PAGES_VIEW_SOURCE};
    buf_init(&params, PARSE_PARAMS_SIZE_MAX);
    enum err err = parse_lines_params(&params, &lines);
    if (err == ERR_OK) {
        err = pages_content_parse(reader, record, &parse_lines, buf_bytes(&params), &version->text,
                                  &version->is_cut, detail);
    }
    buf_done(&params);
    return err;
}

/* How one of them is read. */
struct reading {
    struct version *version;
    struct archive_reader *reader;
    const struct pages_target *target;
    struct stamp stamp;
};

static enum err find_version(void *context, struct capture *ret_capture, struct err_detail *detail) {
    const struct reading *reading = context;
    return pages_find(reading->reader, buf_bytes(&reading->target->path.url), reading->stamp, ret_capture,
                      detail);
}

static enum err compare_read_version(void *context, const struct capture *capture,
                                     struct err_detail *detail) {
    struct reading *reading = context;
    struct version *version = reading->version;
    struct archive_record record;
    enum err err = archive_open(reading->reader, capture, &record, detail);
    if (err != ERR_OK) {
        return err;
    }
    version->capture = *capture;
    version->size = record.block.size;
    err = archive_keep(&version->kept, &version->capture);
    if (err == ERR_OK) {
        err = compare_read_text(version, reading->reader, &record, reading->target->view, detail);
    }
    return err == ERR_OK
               ? archive_neighbours(reading->reader, capture->surt, capture->time_us, &version->neighbours)
               : err;
}

static enum err read_versions(struct comparison *comparison, struct archive_reader *reader,
                              const struct pages_target *target, struct err_detail *detail) {
    enum err err = ERR_OK;
    for (size_t i = 0; i < 2 && err == ERR_OK; i++) {
        struct reading reading = {&comparison->versions[i], reader, target, target->stamps[i]};
        struct archive_attempt attempt = {
            .find = find_version, .use = compare_read_version, .context = &reading};
        err = archive_try(reader, &attempt, detail);
    }
    return err;
}

static bool are_equal(const struct comparison *comparison) {
    const struct version *versions = comparison->versions;
    return memcmp(versions[0].capture.digest, versions[1].capture.digest, KEY_DIGEST_SIZE) == 0;
}

/* ---- the page ---- */

/* The same comparison with one of its versions, or its view, changed. */
static void compare_put_link(struct sheet *sheet, const struct comparison *comparison, size_t index,
                             struct stamp stamp, enum pages_view view) {
    char text[STAMP_SIZE];
    struct stamp left = index == 0 ? stamp : stamp_of(&comparison->versions[0].capture);
    struct stamp right = index == 1 ? stamp : stamp_of(&comparison->versions[1].capture);
    sheet_format(sheet, "/compare/%s", stamp_format(left, text));
    pages_put_path(sheet, "", right, comparison->versions[1].capture.url, view);
}

static void put_choice(struct sheet *sheet, const struct comparison *comparison, size_t index,
                       const char *name, const struct archive_neighbour *near) {
    if (near->time_us == INT64_MIN) {
        return;
    }
    sheet_html(sheet, "<a href=\"");
    compare_put_link(sheet, comparison, index, archive_neighbour_stamp(near), comparison->view);
    sheet_format(sheet, "\">%s<span class=unseen> version on the %s</span></a> · ", name,
                 index == 0 ? "left" : "right");
}

static void compare_put_version(struct sheet *sheet, const struct comparison *comparison, size_t index) {
    const struct version *version = &comparison->versions[index];
    const struct capture *capture = &version->capture;
    char digest[2 * KEY_DIGEST_SIZE + 1];
    hex_encode(bytes_of(capture->digest, KEY_DIGEST_SIZE), digest);
    digest[16] = '\0';
    FILL(sheet,
         "<section aria-labelledby=version-{number}><h2 id=version-{number}><a "
         "href=\"{replay}\">{time}</a></h2>"
         "\n<p class=quiet>{status} {text}, {size}, <span class=key>sha256:{html}…</span><br>",
         {.number = index}, {.number = index},
         {.text = capture->url, .time_us = capture->time_us, .id = capture_id(capture)},
         {.time_us = capture->time_us}, {.number = capture->status}, {.text = capture->mime},
         {.number = version->size}, {.string = digest});
    put_choice(sheet, comparison, index, "earlier", &version->neighbours.previous);
    put_choice(sheet, comparison, index, "later", &version->neighbours.next);
    sheet_html(sheet, "<a href=\"");
    pages_put_path(sheet, "/details", stamp_of(capture), capture->url, PAGES_VIEW_PAGE);
    sheet_html(sheet, "\">details</a></p>\n");
    if (comparison->view == PAGES_VIEW_PAGE) {
        sheet_format(sheet, "<iframe title=\"%s version\" sandbox=\"allow-scripts\" src=\"",
                     index == 0 ? "Left" : "Right");
        sheet_replay_url(sheet, stamp_of(capture), "mp_", capture->url);
        sheet_html(sheet, "\"></iframe>");
    }
    sheet_html(sheet, "</section>\n");
}

static void put_tab(struct sheet *sheet, const struct comparison *comparison, enum pages_view view,
                    const char *name) {
    sheet_html(sheet, "<li><a href=\"");
    compare_put_link(sheet, comparison, 2, stamp_of_time(0), view);
    sheet_format(sheet, "\"%s>%s</a>", comparison->view == view ? " aria-current=page" : "", name);
}

static void put_diff_line(struct sheet *sheet, const struct pages_diff_line *line) {
    static const char *const elements[] = {"div", "del", "ins"};
    bool is_long = line->text.size > LINE_SHOWN_MAX;
    FILL(sheet, "<{html}>{text}{html}</{html}>", {.string = elements[line->kind]},
         {.text = bytes_slice(line->text, 0, is_long ? LINE_SHOWN_MAX : line->text.size)},
         {.string = is_long ? "…" : ""}, {.string = elements[line->kind]});
}

/* Is a difference near? */
static bool is_context(const struct pages_diff *diff, size_t index) {
    size_t from = index > CONTEXT_LINES ? index - CONTEXT_LINES : 0;
    size_t to = index + CONTEXT_LINES < diff->lines_count ? index + CONTEXT_LINES + 1 : diff->lines_count;
    for (size_t i = from; i < to; i++) {
        if (diff->lines[i].kind != PAGES_DIFF_SAME) {
            return true;
        }
    }
    return false;
}

static void put_diff_lines(struct sheet *sheet, const struct pages_diff *diff) {
    size_t folded = 0;
    sheet_html(sheet, "<div class=diff tabindex=0 role=region aria-label=Differences>");
    for (size_t i = 0; i <= diff->lines_count; i++) {
        if (i < diff->lines_count && !is_context(diff, i)) {
            folded++;
            continue;
        }
        if (folded > 0) {
            sheet_format(sheet, "<div class=fold>%zu equal %s</div>", folded, folded == 1 ? "line" : "lines");
            folded = 0;
        }
        if (i < diff->lines_count) {
            put_diff_line(sheet, &diff->lines[i]);
        }
    }
    sheet_html(sheet, "</div>\n");
}

static enum err put_diff(struct sheet *sheet, const struct comparison *comparison) {
    const struct version *versions = comparison->versions;
    struct pages_diff diff;
    enum err err = pages_diff_init(&diff, buf_bytes(&versions[0].text), buf_bytes(&versions[1].text));
    if (err != ERR_OK) {
        return err;
    }
    if (versions[0].is_cut || versions[1].is_cut || diff.is_cut) {
        sheet_notice(sheet, SHEET_WARNING,
                     "Only the beginning is compared: up to 1 MiB and 20,000 lines of each version.");
    }
    if (diff.is_coarse) {
        sheet_notice(sheet, SHEET_WARNING,
                     "The versions differ in more than 2,000 lines; they are shown one after the other.");
    }
    if (diff.removed_count + diff.added_count == 0) {
        sheet_notice(sheet, SHEET_GOOD,
                     comparison->view == PAGES_VIEW_TEXT ? "The text that a reader sees is the same."
                                                         : "The source is the same.");
    } else {
        FILL(sheet, "<p>{count} {html} removed, {count} {html} added.</p>\n", {.number = diff.removed_count},
             {.string = diff.removed_count == 1 ? "line" : "lines"}, {.number = diff.added_count},
             {.string = diff.added_count == 1 ? "line" : "lines"});
        put_diff_lines(sheet, &diff);
    }
    pages_diff_done(&diff);
    return ERR_OK;
}

static enum err compare_put_page(struct sheet *sheet, struct comparison *comparison) {
    const struct version *versions = comparison->versions;
    bool has_text = versions[0].is_text && versions[1].is_text;
    FILL(sheet,
         "<p class=trail><a href=\"/\">Archive</a> / <a href=\"/web/*/{url}\">Calendar</a> / Comparison</p>\n"
         "<h1 class=url>{text}</h1>\n<nav aria-label=Views><ul class=tabs>",
         {.text = versions[1].capture.url}, {.text = versions[1].capture.url});
    put_tab(sheet, comparison, PAGES_VIEW_PAGE, "Side by side");
    if (has_text) {
        put_tab(sheet, comparison, PAGES_VIEW_TEXT, "Text");
        put_tab(sheet, comparison, PAGES_VIEW_SOURCE, "Source");
    }
    sheet_html(sheet, "</ul></nav>\n");
    if (are_equal(comparison)) {
        sheet_notice(sheet, SHEET_GOOD, "Both versions are the same, byte for byte.");
    } else if (!has_text) {
        sheet_notice(sheet, SHEET_PLAIN,
                     "The versions differ. They are not text: there are no lines to show.");
    }
    sheet_html(sheet, "<div class=pair>\n");
    compare_put_version(sheet, comparison, 0);
    compare_put_version(sheet, comparison, 1);
    sheet_html(sheet, "</div>\n");
    bool wants_diff = comparison->view == PAGES_VIEW_TEXT || comparison->view == PAGES_VIEW_SOURCE;
    return wants_diff && has_text && !are_equal(comparison) ? put_diff(sheet, comparison) : ERR_OK;
}

static void comparison_init(struct comparison *comparison, enum pages_view view) {
    *comparison = (struct comparison){.view = view == PAGES_VIEW_WARC ? PAGES_VIEW_PAGE : view};
    for (size_t i = 0; i < 2; i++) {
        buf_init(&comparison->versions[i].kept,
                 INDEX_SURT_SIZE_MAX + INDEX_URL_SIZE_MAX + INDEX_MIME_SIZE_MAX);
        buf_init(&comparison->versions[i].text, 8 * PARSE_LINES_SIZE_MAX);
    }
}

static void comparison_done(struct comparison *comparison) {
    for (size_t i = 0; i < 2; i++) {
        buf_done(&comparison->versions[i].kept);
        buf_done(&comparison->versions[i].text);
    }
}

static enum err answer_comparison(struct replay *replay, struct http_request *request,
                                  const struct pages_target *target, struct err_detail *detail) {
    struct comparison comparison;
    struct sheet sheet;
    struct archive_reader *reader = trust_reader_begin(replay, request);
    if (reader == NULL) {
        return ERR_MEMORY;
    }
    comparison_init(&comparison, target->view);
    enum err err = read_versions(&comparison, reader, target, detail);
    pages_add_partial(request, reader);
    archive_reader_end(reader);
    if (err == ERR_OK) {
        sheet_begin_bare(&sheet, replay, request, "Comparison", SHEET_NONE);
        err = compare_put_page(&sheet, &comparison);
        if (err == ERR_OK) {
            sheet_answer(&sheet, STATUS_OK);
        } else {
            sheet_drop(&sheet);
        }
    }
    comparison_done(&comparison);
    return err;
}

void pages_compare(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct err_detail detail = {0};
    struct pages_target target;
    enum err err = pages_target_read(&target, request, 2, &detail);
    if (err == ERR_OK) {
        err = answer_comparison(replay, request, &target, &detail);
    }
    if (err != ERR_OK) {
        pages_answer_error(replay, request, err, &detail);
    }
    pages_target_done(&target);
}
