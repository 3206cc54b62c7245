#include <stdio.h>

#include "replay/site/assets.h"
#include "replay/site/sheet.h"
#include "replay/wayback/wayback_state.h"
#include "warc/request_key.h"
#include "web/html/encoding.h"
#include "web/type/mime_type.h"

/* ---- redirects ---- */

static bool is_redirect(unsigned status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Into kit->target. False if it leads nowhere that an archive has. */
static bool serve_find_target(struct wayback *wayback) {
    struct wayback_kit *kit = wayback->kit;
    struct bytes location = fields_get(wayback->record.fields, BYTES("Location"));
    return is_redirect(wayback->record.status) && location.size > 0 &&
           url_parse(&kit->url, request_key_split(wayback->capture.url).url, NULL, NULL) == ERR_OK &&
           url_parse(&kit->target, location, &kit->url, NULL) == ERR_OK && url_is_web(&kit->target);
}

/*
 * To another spelling of the same URL, which the archive knows under the same key: it would lead here again.
 * "Not modified" without what it was leads nowhere at all.
 */
static bool leads_to_itself(struct wayback *wayback, bool has_target) {
    struct bytes surt;
    if (!has_target) {
        return wayback->record.status == STATUS_NOT_MODIFIED;
    }
    return archive_key(wayback->reader, url_href(&wayback->kit->target), &surt, NULL) == ERR_OK &&
           bytes_equal(surt, wayback->capture.surt);
}

static enum err serve_redirect(struct wayback *wayback) {
    struct buf *text = &wayback->kit->text;
    struct bytes modifier = wayback->path->modifier;
    buf_clear(text);
    buf_put_format(text, "%s%s%.*s/", wayback->prefix, wayback->around, BYTES_ARG(modifier));
    wayback_put_url(text, url_href(&wayback->kit->target));
    if (text->err != ERR_OK) {
        return text->err;
    }
    http_add_header(wayback->request, "Location", buf_string(text));
    enum err err = wayback_add_headers(wayback);
    if (err != ERR_OK) {
        return err;
    }
    wayback_add_safety(wayback->request, WAYBACK_ACTIVE, wayback->is_top);
    http_answer(wayback->request, wayback->record.status, "text/plain; charset=utf-8", bytes_of(NULL, 0));
    return ERR_OK;
}

/* ---- rewriting ---- */

static struct bytes head_of(struct bytes body) {
    return bytes_slice(body, 0, body.size < ENCODING_HEAD_SIZE ? body.size : ENCODING_HEAD_SIZE);
}

/* Our script, which runs before all others of the page. */
static void make_insert(struct wayback *wayback) {
    struct buf *insert = &wayback->kit->insert;
    buf_clear(insert);
    if (assets_find(BYTES("replay.js")) == NULL) {
        return;
    }
    buf_put_string(insert, "<script src=\"");
    assets_put_url(insert, "replay.js");
    buf_put_string(insert, "\" data-url=\"");
    sheet_escape(insert, url_href(&wayback->kit->url));
    buf_put_format(insert, "\" data-time=\"%s\" data-prefix=\"%s\"></script>", wayback->around,
                   wayback->prefix);
}

/* "text/html; charset=…" */
static void format_type(const struct mime_type *type, const char *charset, char out[WAYBACK_TYPE_SIZE_MAX]) {
    snprintf(out, WAYBACK_TYPE_SIZE_MAX, "%s%s%s", type->essence, charset[0] != '\0' ? "; charset=" : "",
             charset);
}

/*
 * The encoding made explicit: the <meta> that says so may come too late behind our script, and what comes out
 * may be in another than what went in. If nothing says it, the browser may guess as it did.
 */
static void format_rewritten_type(const char *charset, const struct mime_type *type,
                                  char out[WAYBACK_TYPE_SIZE_MAX]) {
    bool is_as_stated =
        charset[0] == '\0' || bytes_equal_ignore_case(mime_type_charset(type), bytes_of_string(charset));
    format_type(type, is_as_stated ? type->charset : charset, out);
}

void wayback_send_output(struct wayback *wayback, unsigned status, const char *type) {
    struct scratch *output = &wayback->kit->output;
    if (!scratch_is_in_memory(output) || wayback->is_awaited) { /* it came in one piece: no need to copy it */
        http_answer_scratch(wayback->request, status, type, output);
        return;
    }
    http_answer(wayback->request, status, type, buf_bytes(&output->memory));
}

/* Does the rewritten document begin with our script? XML does if its root is <html>; nobody else knows the
 * key. */
static bool has_insert(const struct wayback_kit *kit, enum rewrite_format format) {
    struct bytes output = buf_bytes(&kit->output.memory);
    return format == REWRITE_HTML || (format == REWRITE_XML && scratch_is_in_memory(&kit->output) &&
                                      bytes_find(output, buf_bytes(&kit->insert)) < output.size);
}

/* Scripts run only if ours is the first. */
static enum wayback_danger danger_of(const struct mime_type *type, bool is_prepared) {
    enum wayback_danger danger = wayback_danger_of(type);
    return danger == WAYBACK_ACTIVE && !is_prepared ? WAYBACK_MUTE : danger;
}

/* The document as it is to be rewritten: what a parser needs to know. */
static enum err serve_make_params(struct wayback *wayback) {
    struct wayback_kit *kit = wayback->kit;
    make_insert(wayback);
    struct parse_page_params params = {
        .head = wayback_coding_head(&wayback->record, &kit->text),
        .content_type = wayback->record.content_type,
        .as = wayback->path->as,
        .only_looks_at_html = wayback->is_top && wayback->path->modifier.size == 0,
        .is_xhtml = mime_type_is(&wayback->stated, "application/xhtml+xml"),
        .size_max = WAYBACK_REWRITE_SIZE_MAX,
        .prefix = bytes_of_string(wayback->prefix),
        .timestamp = bytes_of_string(wayback->around),
        .url = url_href(&kit->url),
        .insert = buf_bytes(&kit->insert),
    };
    if (kit->text.err != ERR_OK) {
        return err_set(&wayback->undecoded, ERR_LIMIT, "its encodings have too long a name");
    }
    return kit->insert.err != ERR_OK ? kit->insert.err : parse_page_params(&kit->params, &params);
}

/* What it came to. ERR_LIMIT, ERR_UNSUPPORTED, parse_is_lost(): it is sent as it is stored. */
static enum err serve_read_note(struct wayback *wayback, enum err err, struct parse_page_note *ret_note) {
    const struct wayback_kit *kit = wayback->kit;
    bool has_note = parse_page_read_note(bytes_of(kit->job.note, kit->job.note_size), ret_note);
    if (has_note && err != ERR_OK) {
        wayback->undecoded = ret_note->undecoded;
    }
    return err == ERR_OK && !has_note ? ERR_CORRUPT : err;
}

/* What the parser made of it. */
static enum err serve_rewritten(struct wayback *wayback, const struct parse_page_note *note,
                                unsigned status) {
    const struct wayback_kit *kit = wayback->kit;
    struct mime_type sent = wayback_type_sent(
        &wayback->stated, wayback_type_asked(wayback->request, wayback->path->as), note->format, note->head);
    enum err err = wayback_add_headers(wayback);
    if (err != ERR_OK) {
        return err;
    }
    char type[WAYBACK_TYPE_SIZE_MAX];
    char etag[WAYBACK_ETAG_SIZE_MAX];
    format_rewritten_type(note->charset, &sent, type);
    wayback_etag(wayback, true, etag);
    if (status == STATUS_OK) {
        http_add_header(wayback->request, "ETag", etag);
    }
    wayback_add_safety(wayback->request, danger_of(&sent, has_insert(kit, note->format)), wayback->is_top);
    wayback_send_output(wayback, status, type);
    return ERR_OK;
}

/* ---- as it is ---- */

static enum err serve_stored(struct wayback *wayback, unsigned status, struct err_detail *detail) {
    char type[WAYBACK_TYPE_SIZE_MAX];
    char range[96];
    struct bytes content_range = fields_get(wayback->record.fields, BYTES("Content-Range"));
    enum err err = wayback_add_headers(wayback);
    if (err != ERR_OK) {
        return err;
    }
    if (status == STATUS_PARTIAL && content_range.size > 0) {
        http_add_header(wayback->request, "Content-Range", wayback_clean(content_range, range, sizeof range));
    }
    bool is_coded = wayback_coding(&wayback->record).size > 0;
    struct mime_type sent =
        wayback_type_sent(&wayback->stated, wayback_type_asked(wayback->request, wayback->path->as),
                          REWRITE_AS_IS, is_coded ? bytes_of(NULL, 0) : head_of(wayback->record.body));
    format_type(&sent, sent.charset, type);
    wayback_add_safety(wayback->request, danger_of(&sent, false), wayback->is_top);
    return wayback_send_stored(wayback, status, type, detail);
}

/* ---- */

/* A status that can be sent with a body; browsers take a 206 that begins at 0 and is whole for nothing else.
 */
static unsigned status_of(const struct archive_record *record) {
    struct bytes range = fields_get(record->fields, BYTES("Content-Range"));
    char whole[96];
    snprintf(whole, sizeof whole, "bytes 0-%zu/%zu", record->body.size - 1, record->body.size);
    if (record->status < STATUS_OK || record->status > 999 || record->status == STATUS_NOT_MODIFIED ||
        (record->status == STATUS_PARTIAL && bytes_equal(range, bytes_of_string(whole)))) {
        return STATUS_OK;
    }
    return record->status;
}

/* Nothing in images, media, fonts and PDF leads anywhere. */
static bool wayback_may_rewrite(const struct wayback *wayback) {
    enum wayback_danger danger = wayback_danger_of(&wayback->stated);
    return danger != WAYBACK_INERT && danger != WAYBACK_PDF;
}

/* Can it be one that is rewritten? */
static bool serve_is_parsed(struct wayback *wayback, unsigned status) {
    return status != STATUS_PARTIAL && wayback->path->as != REWRITE_RAW &&
           wayback->record.body.size <= WAYBACK_REWRITE_SIZE_MAX && wayback_may_rewrite(wayback) &&
           url_parse(&wayback->kit->url, request_key_split(wayback->capture.url).url, NULL, NULL) == ERR_OK;
}

/* Nobody could look at it: what is stored is the truth, and does not run. */
static void serve_say_lost(struct wayback *wayback) {
    http_add_header(wayback->request, "X-Mnemon-Unparsed", "its parser ended");
    http_add_header(wayback->request, "Cache-Control", "no-store");
}

/* Rewritten, if `err` and the note say so; or else as it is stored. */
static enum err serve_as_parsed(struct wayback *wayback, unsigned status, enum err err,
                                const struct parse_page_note *note, struct err_detail *detail) {
    bool is_page = note->format == REWRITE_HTML || mime_type_is(&wayback->stated, "application/xhtml+xml");
    if (err == ERR_OK && wayback->is_top && wayback->path->modifier.size == 0 && is_page) {
        return wayback_answer_frame(wayback);
    }
    if (err == ERR_OK && note->is_rewritten) {
        return serve_rewritten(wayback, note, status);
    }
    if (err == ERR_BUSY || err == ERR_CANCELLED) {
        return err_set(detail, ERR_BUSY, "too many large documents are being sent at the moment");
    }
    if (parse_is_lost(err)) {
        serve_say_lost(wayback);
    }
    if (err == ERR_LIMIT || err == ERR_UNSUPPORTED || parse_is_lost(err)) {
        scratch_clear(&wayback->kit->output);
        err = ERR_OK;
    }
    return err == ERR_OK ? serve_stored(wayback, status, detail) : err;
}

/* What the parser was told, and which record it is: of these the document follows. */
static void serve_make_key(struct wayback *wayback) {
    struct wayback_kit *kit = wayback->kit;
    const struct capture *capture = &wayback->capture;
    const uint64_t place[] = {capture->volume, capture->location.segment, capture->location.offset,
                              wayback->record.body.size};
    sha256_start(&kit->sha256);
    sha256_update(&kit->sha256, bytes_of(place, sizeof place));
    sha256_update(&kit->sha256, bytes_of(capture->digest, sizeof capture->digest));
    sha256_update(&kit->sha256, buf_bytes(&kit->params));
    sha256_finish(&kit->sha256, kit->key);
}

/* Into kit->output and the note of kit->job, as the parser would have put it there. */
static bool serve_find_rewritten(struct wayback *wayback) {
    struct wayback_kit *kit = wayback->kit;
    if (wayback->replay->rewritten == NULL) {
        return false;
    }
    serve_make_key(wayback);
    scratch_clear(&kit->output);
    return rewritten_find(wayback->replay->rewritten, kit->key, kit->job.note, &kit->job.note_size,
                          &kit->output);
}

static void serve_keep_rewritten(struct wayback *wayback) {
    const struct wayback_kit *kit = wayback->kit;
    if (wayback->replay->rewritten != NULL && scratch_is_in_memory(&kit->output)) {
        rewritten_keep(wayback->replay->rewritten, kit->key, bytes_of(kit->job.note, kit->job.note_size),
                       buf_bytes(&kit->output.memory));
    }
}

/* The job has ended, just now (is_new) or when somebody asked for the same before. */
static enum err serve_as_noted(struct wayback *wayback, unsigned status, enum err err, bool is_new,
                               struct err_detail *detail) {
    struct parse_page_note note = {.format = REWRITE_AS_IS};
    err = serve_read_note(wayback, err, &note);
    if (err == ERR_OK && is_new) {
        serve_keep_rewritten(wayback);
    }
    return serve_as_parsed(wayback, status, err, &note, detail);
}

static enum err serve_document(struct wayback *wayback, struct err_detail *detail) {
    wayback->stated = wayback_type_stated(wayback->record.content_type);
    unsigned status = status_of(&wayback->record);
    struct parse_page_note note = {.format = REWRITE_AS_IS};
    if (!serve_is_parsed(wayback, status)) {
        return serve_as_parsed(wayback, status, ERR_OK, &note, detail);
    }
    enum err err = serve_make_params(wayback);
    if (err != ERR_OK) {
        return serve_as_parsed(wayback, status, err, &note, detail);
    }
    if (serve_find_rewritten(wayback)) {
        return serve_as_noted(wayback, status, ERR_OK, false, detail);
    }
    if (wayback_parse_aside(wayback, &parse_page, WAYBACK_REWRITTEN_SIZE_MAX)) {
        return ERR_OK; /* wayback_serve_parsed() goes on with it */
    }
    err = wayback_parse(wayback, &parse_page, WAYBACK_REWRITTEN_SIZE_MAX);
    return serve_as_noted(wayback, status, err, true, detail);
}

enum err wayback_serve_parsed(struct wayback *wayback, struct err_detail *detail) {
    return serve_as_noted(wayback, status_of(&wayback->record), wayback->parsed, true, detail);
}

/* Past all that would lead here again, best to the URL that it leads to. ERR_NOT_FOUND: there is nothing
 * else.
 */
static enum err find_settled(struct wayback *wayback, struct bytes url, struct err_detail *detail) {
    struct capture settled;
    enum err err = archive_find(wayback->reader, wayback->capture.surt, url, wayback->capture.time_us,
                                ARCHIVE_SETTLED, &settled, detail);
    if (err == ERR_NOT_FOUND) {
        return err_set(
            detail, err,
            "this archive has only a redirect of this page to itself, not the page that it led to");
    }
    if (err == ERR_OK) {
        wayback_choose(wayback, &settled);
    }
    return err;
}

/* What is large or on another machine is opened by a worker: a thread of connections serves others too. */
static enum err serve_open(struct wayback *wayback, struct err_detail *detail) {
    archive_reader_set_brief(wayback->reader, !http_request_is_on_worker(wayback->request));
    enum err err = archive_open(wayback->reader, &wayback->capture, &wayback->record, detail);
    return err == ERR_LIMIT && wayback_put_off(wayback) != ERR_OK ? ERR_BUSY : err;
}

/* What else is held of the URL, as another page or, for what is part of one, at once. */
static enum err serve_settled(struct wayback *wayback, struct bytes url, struct err_detail *detail) {
    char asked[UTC_DIGITS_SIZE];
    memcpy(asked, wayback->stamp, sizeof asked);
    enum err err = find_settled(wayback, url, detail);
    if (err == ERR_OK && wayback_is_page(wayback->path) &&
        (strcmp(asked, wayback->stamp) != 0 || wayback->is_other)) {
        wayback_redirect(wayback, wayback->prefix, wayback->stamp, wayback->path->modifier,
                         wayback->capture.url);
        return ERR_OK;
    }
    if (err == ERR_OK) {
        err = serve_open(wayback, detail);
    }
    if (err == ERR_OK && wayback->record.status == STATUS_NOT_MODIFIED) {
        return err_set(detail, ERR_NOT_FOUND,
                       "this archive has only that this page was not modified, not the page itself");
    }
    return err == ERR_OK ? serve_document(wayback, detail) : err;
}

enum err wayback_serve(struct wayback *wayback, struct err_detail *detail) {
    enum err err = serve_open(wayback, detail);
    if (err != ERR_OK) {
        return err;
    }
    bool has_target = serve_find_target(wayback);
    if (leads_to_itself(wayback, has_target)) {
        return serve_settled(wayback, has_target ? url_href(&wayback->kit->target) : wayback->capture.url,
                             detail);
    }
    return has_target ? serve_redirect(wayback) : serve_document(wayback, detail);
}
