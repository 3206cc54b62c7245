#include "base/json.h"
#include "parse/parse_links.h"
#include "replay/pages/pages_content.h"
#include "replay/pages/pages_kit.h"

/*
 * The parts of a page (images, styles, scripts, frames) and when each was captured: what a banner tells of
 * the dates that are mixed in one page. Parts of parts, as the fonts of a style sheet, are not followed.
 */
enum {
    PARTS_MAX = 500,
    PARTS_TEXT_MAX = 1 << 20,
    DOCUMENT_SIZE_MAX = 1 << 20,
    FOUND_SIZE_MAX = 4 << 20,
    SECOND_US = 1000000
};

struct embeds {
    struct buf urls; /* each ended by a zero byte */
    size_t count;
    bool is_cut;
};

static void embeds_add(struct embeds *embeds, struct bytes href) {
    size_t start = embeds->urls.size;
    embeds->is_cut = embeds->count == PARTS_MAX;
    if (!embeds->is_cut) {
        buf_put(&embeds->urls, href);
        embeds->is_cut = buf_put_byte(&embeds->urls, 0) != ERR_OK;
    }
    if (embeds->is_cut) {
        buf_truncate(&embeds->urls, start);
    } else {
        embeds->count++;
    }
}

/* What a parser says are links; one with a zero byte would be two. */
static void embeds_take(struct embeds *embeds, struct bytes found) {
    enum link_kind kind;
    struct bytes href;
    while (!embeds->is_cut && parse_links_read(&found, &kind, &href)) {
        if (kind == LINK_EMBED && bytes_find_byte(href, 0) == href.size) {
            embeds_add(embeds, href);
        }
    }
}

static enum err find_embeds(struct embeds *embeds, struct archive_reader *reader,
                            const struct capture *capture, struct err_detail *detail) {
    struct archive_record record;
    struct buf params;
    struct buf found;
    bool is_cut;
    enum err err = archive_open(reader, capture, &record, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct parse_links_params links = {.head = pages_content_head(&record),
                                       .content_type = record.content_type,
                                       .base = capture->url,
                                       .size_max = DOCUMENT_SIZE_MAX};
    buf_init(&params, PARSE_PARAMS_SIZE_MAX);
    buf_init(&found, FOUND_SIZE_MAX);
    err = parse_links_params(&params, &links);
    if (err == ERR_OK) {
        err = pages_content_parse(reader, &record, &parse_links, buf_bytes(&params), &found, &is_cut, detail);
    }
    if (err == ERR_OK || err == ERR_INVALID) { /* a URL that cannot be parsed has no parts */
        embeds_take(embeds, buf_bytes(&found));
        err = ERR_OK;
    }
    buf_done(&params);
    buf_done(&found);
    return err;
}

struct span {
    int64_t oldest_us;
    int64_t newest_us;
    size_t missing_count;
};

static enum err embeds_put_part(struct json *json, struct archive_reader *reader, struct bytes url,
                                int64_t time_us, struct span *span) {
    struct capture capture;
    struct bytes surt;
    enum err err = archive_key(reader, url, &surt, NULL);
    if (err == ERR_OK) {
        err = archive_find(reader, surt, url, time_us, ARCHIVE_NOT_NEWER, &capture, NULL);
    }
    json_open(json, NULL);
    json_bytes(json, "url", url);
    if (err == ERR_OK) {
        int64_t apart = capture.time_us / SECOND_US - time_us / SECOND_US;
        json_timestamp(json, "timestamp", capture.time_us);
        json_count(json, "status", capture.status);
        json_signed(json, "seconds_apart", apart);
        span->oldest_us = capture.time_us < span->oldest_us ? capture.time_us : span->oldest_us;
        span->newest_us = capture.time_us > span->newest_us ? capture.time_us : span->newest_us;
    } else if (err == ERR_NOT_FOUND || err == ERR_INVALID || err == ERR_LIMIT || err == ERR_UNREACHABLE) {
        json_none(json, "timestamp");
        json_none(json, "status");
        json_none(json, "seconds_apart");
        span->missing_count++;
        err = ERR_OK;
    }
    json_close(json);
    return err;
}

static enum err put_parts(struct json *json, struct archive_reader *reader, const struct embeds *embeds,
                          int64_t time_us) {
    struct span span = {.oldest_us = time_us, .newest_us = time_us};
    struct bytes rest = buf_bytes(&embeds->urls);
    enum err err = ERR_OK;
    json_open_list(json, "parts");
    for (size_t i = 0; i < embeds->count && err == ERR_OK; i++) {
        struct bytes url;
        bytes_split(&rest, 0, &url);
        err = embeds_put_part(json, reader, url, time_us, &span);
    }
    json_close(json);
    json_timestamp(json, "oldest", span.oldest_us);
    json_timestamp(json, "newest", span.newest_us);
    json_count(json, "missing", span.missing_count);
    json_bool(json, "cut", embeds->is_cut);
    absent_put_json(archive_reader_absent(reader), json);
    json_close(json);
    return err;
}

static enum err answer_embeds(void *context, const struct capture *capture, struct err_detail *detail) {
    struct pages_asked *asked = context;
    struct embeds embeds = {.count = 0};
    struct buf text;
    struct json json;
    buf_init(&embeds.urls, PARTS_TEXT_MAX);
    buf_init(&text, PAGES_JSON_SIZE_MAX);
    json_begin(&json, &text);
    json_bytes(&json, "url", capture->url);
    json_timestamp(&json, "timestamp", capture->time_us);
    int64_t time_us = capture->time_us; /* its slices end with the next find */
    enum err err = find_embeds(&embeds, asked->reader, capture, detail);
    err = err == ERR_OK ? put_parts(&json, asked->reader, &embeds, time_us) : err;
    if (err == ERR_OK) {
        pages_add_partial(asked->request, asked->reader);
        http_answer_json(asked->request, STATUS_OK, "no-cache", &text);
    }
    buf_done(&text);
    buf_done(&embeds.urls);
    return err;
}

void pages_embeds_json(struct http_request *request) {
    pages_answer_asked(request, answer_embeds);
}
