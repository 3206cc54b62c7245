#include <stdio.h>

#include "replay/site/assets.h"
#include "replay/site/origin.h"
#include "replay/site/sheet.h"
#include "replay/wayback/memento.h"
#include "replay/wayback/wayback_state.h"
#include "warc/request_key.h"

enum { POLICY_SIZE_MAX = 2048 };

static void put_capture_link(struct sheet *sheet, const struct wayback *wayback, const char *id,
                             const char *words, const struct archive_neighbour *near) {
    if (near->time_us == INT64_MIN || near->time_us == wayback->capture.time_us) {
        sheet_format(sheet, "<a id=%s aria-disabled=true>%s</a>\n", id, words);
        return;
    }
    char prefix[WAYBACK_PREFIX_SIZE_MAX];
    char stamp[STAMP_SIZE];
    wayback_put_prefix(wayback, false, prefix);
    sheet_format(sheet, "<a id=%s href=\"%s%s/", id, prefix,
                 stamp_format(stamp_of_time(near->time_us), stamp));
    sheet_url(sheet, near->url);
    sheet_format(sheet, "\">%s</a>\n", words);
}

static void frame_put_link(struct sheet *sheet, const char *path, struct bytes url, const char *words) {
    sheet_format(sheet, "<a href=\"%s", path);
    sheet_url(sheet, url);
    sheet_format(sheet, "\">%s</a>\n", words);
}

static void frame_put_links(struct sheet *sheet, const struct wayback *wayback,
                            const struct archive_neighbours *near) {
    struct bytes url = wayback->capture.url;
    char path[16 + 2 * STAMP_SIZE];
    char own[STAMP_SIZE];
    stamp_format(stamp_of(&wayback->capture), own);
    sheet_html(sheet, "<nav aria-label=\"Captures of this page\">\n");
    put_capture_link(sheet, wayback, "first", "First", &near->first);
    put_capture_link(sheet, wayback, "previous", "Previous", &near->previous);
    put_capture_link(sheet, wayback, "next", "Next", &near->next);
    put_capture_link(sheet, wayback, "last", "Last", &near->last);
    frame_put_link(sheet, "/web/*/", url, "Calendar");
    snprintf(path, sizeof path, "/details/%s/", own);
    frame_put_link(sheet, path, url, "Details");
    if (near->previous.time_us != INT64_MIN) {
        char previous[STAMP_SIZE];
        snprintf(path, sizeof path, "/compare/%s/%s/",
                 stamp_format(archive_neighbour_stamp(&near->previous), previous), own);
        frame_put_link(sheet, path, url, "Compare");
    }
    sheet_html(sheet, "</nav>\n");
}

static void put_asset(struct sheet *sheet, const char *before, const char *name, const char *after) {
    if (assets_find(bytes_of_string(name)) != NULL) {
        sheet_html(sheet, before);
        assets_put_url(&sheet->out, name);
        sheet_html(sheet, after);
    }
}

static void frame_put_head(struct sheet *sheet, const struct wayback *wayback) {
    sheet_html(sheet, "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n"
                      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>");
    sheet_text(sheet, wayback->capture.url);
    sheet_format(sheet, " – %s</title>\n", wayback->replay->title);
    put_asset(sheet, "<link rel=icon href=\"", "icon.svg", "\">\n");
    put_asset(sheet, "<link rel=stylesheet href=\"", "frame.css", "\">\n");
    put_asset(sheet, "<script src=\"", "frame.js", "\" defer></script>\n");
}

/* Whose word it is that the page was so: a file's that somebody imported, a stranger's, or nobody's. */
static void frame_put_origin(struct sheet *sheet, const struct wayback *wayback) {
    struct archive *archive = wayback->replay->archive;
    struct archive_origin origin;
    archive_origin_read(archive, &wayback->record.header->fields, wayback->capture.time_us, &origin);
    if (origin.imported_by.size > 0 && origin.provenance != PROVENANCE_FETCHED) {
        bool is_own = bytes_equal(origin.imported_by, bytes_of_string(wayback->replay->node_key));
        sheet_html(sheet, " <span id=importer>imported by ");
        sheet_text(sheet, is_own ? BYTES("this node") : origin.imported_by);
        sheet_html(sheet, origin.is_later ? ", not checked</span>" : "</span>");
    } else if (origin.provenance == PROVENANCE_UNKNOWN && archive_knows_members(archive)) {
        sheet_html(sheet, " <span id=importer>origin unknown</span>");
    }
    if (origin.is_stranger) {
        sheet_html(sheet, " <strong id=stranger>signed by ");
        sheet_text(sheet, origin.fetched_by);
        sheet_html(sheet, ", not known as a member then</strong>");
    }
}

/* The nodes that fetched it in this visit: did they get the same? */
static void frame_put_witnesses(struct sheet *sheet, const struct wayback *wayback) {
    struct archive_witnesses witnesses;
    char stamp[STAMP_SIZE];
    archive_witnesses_find(wayback->reader, NULL, &wayback->capture, &witnesses);
    if (witnesses.count < 2) {
        return;
    }
    bool is_disputed = witnesses.agree_count < witnesses.count;
    sheet_format(sheet, " <a id=witnesses%s href=\"/details/%s/", is_disputed ? " class=disputed" : "",
                 stamp_format(stamp_of(&wayback->capture), stamp));
    sheet_url(sheet, wayback->capture.url);
    sheet_format(sheet, "\">%zu of %zu witnesses agree</a>", witnesses.agree_count, witnesses.count);
}

static void put_banner(struct sheet *sheet, const struct wayback *wayback,
                       const struct archive_neighbours *near) {
    sheet_html(sheet, "<header id=banner data-url=\"");
    sheet_text(sheet, url_href(&wayback->kit->url)); /* as web/replay.js is told: the two are compared */
    char prefix[WAYBACK_PREFIX_SIZE_MAX];
    wayback_put_prefix(wayback, true, prefix);
    sheet_format(sheet, "\" data-time=\"%s\" data-prefix=\"%s\">\n<a id=home href=\"/\">", wayback->stamp,
                 prefix);
    sheet_string(sheet, wayback->replay->title);
    sheet_html(sheet, "</a>\n<p id=shown><span id=url>");
    sheet_text(sheet, wayback->capture.url);
    sheet_html(sheet, "</span> <span id=date>");
    sheet_time(sheet, wayback->capture.time_us);
    sheet_html(sheet, "</span>");
    if (wayback->is_other) {
        sheet_html(sheet, " <strong id=other>in place of ");
        sheet_text(sheet, buf_bytes(&wayback->path->url));
        sheet_html(sheet, ", which this archive does not have</strong>");
    }
    if (wayback->record.status != STATUS_OK) {
        sheet_format(sheet, " <strong id=status>status %u</strong>", wayback->record.status);
    }
    if (wayback->capture.flags & CAPTURE_TRUNCATED) {
        sheet_html(sheet, " <strong id=truncated>cut off when it was archived</strong>");
    }
    if (instance_is_mirrored(wayback->capture.volume)) {
        const struct instance *instance = archive_instance(wayback->replay->archive);
        struct bytes origin = bytes_of_string(instance_mirrored_origin(instance, wayback->capture.volume));
        sheet_html(sheet, " <span id=origin title=\"");
        sheet_text(sheet, origin);
        sheet_html(sheet, "\">from the collection ");
        sheet_text(sheet, bytes_slice(origin, 0, bytes_find_byte(origin, '@')));
        sheet_html(sheet, "</span>");
    }
    frame_put_origin(sheet, wayback);
    frame_put_witnesses(sheet, wayback);
    sheet_html(sheet, "</p>\n");
    frame_put_links(sheet, wayback, near);
    sheet_html(sheet, "<div id=parts></div>\n<p id=notice role=status></p>\n</header>\n");
}

static void put_frame(struct sheet *sheet, const struct wayback *wayback) {
    sheet_html(sheet, "<iframe id=replay title=\"The archived page ");
    sheet_text(sheet, wayback->capture.url);
    char prefix[WAYBACK_PREFIX_SIZE_MAX];
    wayback_put_prefix(wayback, true, prefix);
    sheet_format(sheet, "\" src=\"%s%smp_/", prefix, wayback->address);
    sheet_url(sheet, wayback->capture.url);
    sheet_html(sheet, "\"></iframe>\n");
}

/* The frame may only show /web/: this is what keeps a replayed page from going to the live web. */
static void add_policy(const struct wayback *wayback) {
    char policy[POLICY_SIZE_MAX];
    struct bytes host = origin_host(wayback->request);
    snprintf(
        policy, sizeof policy,
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-src %.*s/web/; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        BYTES_ARG(host));
    http_add_header(wayback->request, "Content-Security-Policy", policy);
    http_add_header(wayback->request, "X-Content-Type-Options", "nosniff");
    http_add_header(wayback->request, "Referrer-Policy", "same-origin");
    http_add_header(wayback->request, "Cross-Origin-Opener-Policy", "same-origin");
    http_add_header(wayback->request, "Cache-Control", "private, no-store"); /* the secret is in it */
    http_add_header(wayback->request, "Vary", "Accept, Sec-Fetch-Dest");
}

enum err wayback_answer_frame(struct wayback *wayback) {
    struct archive_neighbours near;
    enum err err =
        archive_neighbours(wayback->reader, wayback->capture.surt, wayback->capture.time_us, &near);
    if (err == ERR_OK) {
        wayback_add_url(wayback);
        err = memento_add_links(wayback->request, wayback->reader, wayback->capture.url, &wayback->capture,
                                &wayback->kit->text);
    }
    if (err == ERR_OK) {
        err = url_parse(&wayback->kit->url, request_key_split(wayback->capture.url).url, NULL, NULL);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct sheet sheet = {.replay = wayback->replay, .request = wayback->request}; /* without head and foot */
    buf_init(&sheet.out, SHEET_SIZE_MAX);
    frame_put_head(&sheet, wayback);
    put_banner(&sheet, wayback, &near);
    put_frame(&sheet, wayback);
    err = sheet.out.err;
    if (err == ERR_OK) {
        memento_add_datetime(wayback->request, wayback->capture.time_us);
        add_policy(wayback);
        bool is_failure = wayback->record.status >= STATUS_BAD_REQUEST;
        http_answer(wayback->request, is_failure ? wayback->record.status : STATUS_OK,
                    "text/html; charset=utf-8", buf_bytes(&sheet.out));
    }
    sheet_drop(&sheet);
    return err;
}
