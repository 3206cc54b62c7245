#include <stdlib.h>

#include "base/json.h"
#include "replay/pages/pages_content.h"
#include "replay/pages/pages_kit.h"
#include "web/html/links.h"

/*
 * The parts of a page (images, styles, scripts, frames) and when each was captured: what a banner tells of
 * the dates that are mixed in one page. Parts of parts, as the fonts of a style sheet, are not followed.
 */
enum { PARTS_MAX = 500, PARTS_TEXT_MAX = 1 << 20, SECOND_US = 1000000 };

struct embeds {
    struct buf urls; /* each ended by a zero byte */
    size_t count;
    bool is_cut;
};

static void on_link(void *context, const struct link *link) {
    struct embeds *embeds = context;
    if (link->kind != LINK_EMBED || embeds->is_cut) {
        return;
    }
    size_t start = embeds->urls.size;
    embeds->is_cut = embeds->count == PARTS_MAX;
    if (!embeds->is_cut) {
        buf_put(&embeds->urls, link->href);
        embeds->is_cut = buf_put_byte(&embeds->urls, 0) != ERR_OK;
    }
    if (embeds->is_cut) {
        buf_truncate(&embeds->urls, start);
    } else {
        embeds->count++;
    }
}

static enum err find_embeds(struct embeds *embeds, struct archive_reader *reader,
                            const struct capture *capture, struct err_detail *detail) {
    struct pages_content content;
    struct links *links = links_new();
    struct url base;
    url_init(&base);
    enum err err = links == NULL ? ERR_MEMORY : pages_content_read(&content, reader, capture, detail);
    if (err != ERR_OK) {
        links_free(links);
        url_done(&base);
        return err;
    }
    if (url_parse(&base, capture->url, NULL, NULL) == ERR_OK) {
        links_start(links, content.record.content_type, &base, NULL, on_link, embeds);
        err = links_feed(links, buf_bytes(&content.text));
        err = err == ERR_OK ? links_finish(links) : err;
    }
    pages_content_done(&content);
    links_free(links);
    url_done(&base);
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
