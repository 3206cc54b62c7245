#include "replay/pages/find_state.h"
#include "replay/site/sheet.h"

static void put_field(struct sheet *sheet, const char *name, const char *label, const char *hint,
                      const struct buf *value) {
    sheet_format(sheet,
                 "<span class=field><label for=%s>%s</label>"
                 "<input id=%s name=%s placeholder=\"%s\" autocomplete=off value=\"",
                 name, label, name, name, hint);
    sheet_text(sheet, buf_bytes(value));
    sheet_html(sheet, "\"></span>\n");
}

static void put_form(struct sheet *sheet, const struct find *find) {
    sheet_html(sheet,
               "<form action=\"/search\" method=get role=search>\n<div class=search>"
               "<label class=unseen for=words>Words</label>"
               "<input id=words name=q type=search required autocomplete=off enterkeyhint=search value=\"");
    sheet_text(sheet, buf_bytes(&find->words));
    sheet_html(sheet, "\"><button class=main>Search</button></div>\n<div class=form-row>\n");
    put_field(sheet, "host", "Host, with its subdomains", "example.org", &find->host);
    put_field(sheet, "from", "Archived from", "2026-01-31", &find->from);
    put_field(sheet, "to", "to", "2026-12", &find->to);
    sheet_html(sheet, "</div>\n</form>\n");
}

static void put_help(struct sheet *sheet) {
    sheet_html(sheet, "<p class=quiet>Finds archived pages in which all words occur. "
                      "<code>\"two words\"</code> stand side by side, <code>-word</code> must not be there, "
                      "<code>word*</code> is how a word begins.</p>\n");
}

/* How far the index is, where it is not all there. */
static void put_state(struct sheet *sheet, struct search *search) {
    struct search_stat stat;
    search_stat(search, &stat);
    if (stat.error[0] != '\0') {
        sheet_html(sheet, "<p class=\"notice bad\">The index is not being fed: ");
        sheet_text(sheet, bytes_of_string(stat.error));
        sheet_html(sheet, "</p>\n");
    } else if (stat.left_count > 0 || !stat.is_open) {
        uint64_t read_count =
            stat.left_count < stat.captures_count ? stat.captures_count - stat.left_count : 0;
        sheet_html(sheet, "<p class=\"notice warning\" id=index-state>The index is being made: ");
        sheet_count(sheet, read_count);
        sheet_html(sheet, " of about ");
        sheet_count(sheet, stat.captures_count);
        sheet_html(sheet, " captures read.</p>\n");
    } else {
        sheet_html(sheet, "<p class=quiet id=index-state>");
        sheet_count(sheet, stat.documents_count);
        sheet_html(sheet, stat.documents_count == 1 ? " page" : " pages");
        sheet_html(sheet, " in the index.</p>\n");
    }
}

static void put_snippet(struct sheet *sheet, struct bytes snippet) {
    struct bytes part;
    bool is_found;
    while (find_next_part(&snippet, &part, &is_found)) {
        sheet_html(sheet, is_found ? "<mark>" : "");
        sheet_text(sheet, part);
        sheet_html(sheet, is_found ? "</mark>" : "");
    }
}

static void put_result(struct sheet *sheet, const struct search_result *result) {
    sheet_html(sheet, "<li><a href=\"");
    sheet_replay_url(sheet, result->time_us, "", result->url);
    sheet_html(sheet, "\"><bdi>");
    sheet_text(sheet, result->title.size > 0 ? result->title : result->url);
    sheet_html(sheet, "</bdi></a>\n<span class=\"url quiet\">");
    sheet_text(sheet, result->url);
    sheet_html(sheet, "</span>\n<p dir=auto");
    if (result->language.size > 0) {
        sheet_html(sheet, " lang=\"");
        sheet_text(sheet, result->language);
        sheet_html(sheet, "\"");
    }
    sheet_html(sheet, ">");
    put_snippet(sheet, result->snippet);
    sheet_html(sheet, "</p>\n<span class=quiet>");
    sheet_date(sheet, result->time_us);
    sheet_html(sheet, " · <a href=\"/web/*/");
    sheet_url(sheet, result->url);
    sheet_html(sheet, "\">all versions<span class=unseen> of ");
    sheet_text(sheet, result->url);
    sheet_html(sheet, "</span></a></span></li>\n");
}

/* The same question, another page. */
static void put_turn(struct sheet *sheet, const struct find *find, uint64_t page, const char *rel,
                     const char *label) {
    const struct {
        const char *name;
        const struct buf *value;
    } fields[] = {{"host", &find->host}, {"from", &find->from}, {"to", &find->to}};
    sheet_format(sheet, "<li><a class=button rel=%s href=\"/search?q=", rel);
    sheet_argument(sheet, buf_bytes(&find->words));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (fields[i].value->size > 0) {
            sheet_format(sheet, "&amp;%s=", fields[i].name);
            sheet_argument(sheet, buf_bytes(fields[i].value));
        }
    }
    sheet_format(sheet, "&amp;page=%ju\">%s</a></li>\n", (uintmax_t)page, label);
}

static void put_results(struct sheet *sheet, const struct find *find) {
    const struct search_job *job = &find->job;
    if (job->results_count == 0) {
        sheet_html(sheet, find->page > 1 ? "<p>There is nothing more.</p>\n"
                                         : "<p>No archived page has all of these words.</p>\n");
    } else {
        sheet_html(sheet, "<ol class=entries id=results>\n");
        for (size_t i = 0; i < job->results_count; i++) {
            put_result(sheet, &job->results[i]);
        }
        sheet_html(sheet, "</ol>\n");
    }
    sheet_html(sheet, "<ul class=actions>\n");
    if (find->page > 1) {
        put_turn(sheet, find, find->page - 1, "prev", "Better ones");
    }
    if (job->has_more && find->page < FIND_PAGES_MAX) {
        put_turn(sheet, find, find->page + 1, "next", "More");
    }
    sheet_html(sheet, "</ul>\n");
}

void find_answer_page(struct find *find) {
    struct sheet sheet;
    sheet_begin(&sheet, find->replay, find->request, "Search", SHEET_SEARCH);
    put_form(&sheet, find);
    if (find->job.err != ERR_OK) {
        sheet_html(&sheet, "<p class=\"notice bad\" role=alert>");
        sheet_text(&sheet, bytes_of_string(err_detail_text(&find->job.detail, find->job.err)));
        sheet_html(&sheet, "</p>\n");
    } else if (find->is_asked) {
        put_results(&sheet, find);
    }
    if (!find->is_asked || find->job.err != ERR_OK) {
        put_help(&sheet);
    }
    put_state(&sheet, find->replay->search);
    sheet_answer(&sheet, find_status(find));
}
