#include "replay/pages/pages_failures.h"

#include "store/document/failure.h"

enum { ADDRESS_SIZE_MAX = URL_SIZE_MAX + 64 };

void pages_failures_init(struct pages_failures *failures) {
    failures->count = 0;
    buf_init(&failures->url, URL_SIZE_MAX);
}

void pages_failures_done(struct pages_failures *failures) {
    buf_done(&failures->url);
}

static void put_address(const struct pages_failures *failures, bool is_https, struct buf *out) {
    buf_put_string(out, is_https ? FAILURE_URI_PREFIX "https://" : FAILURE_URI_PREFIX "http://");
    buf_put(out, buf_bytes(&failures->url));
}

static void read_scheme(struct pages_failures *failures, struct archive_reader *reader,
                        const struct archive_range *range, bool is_https) {
    struct buf address;
    struct archive_walk *walk;
    struct capture capture;
    buf_init(&address, ADDRESS_SIZE_MAX);
    put_address(failures, is_https, &address);
    struct archive_range wanted = {.url = buf_bytes(&address),
                                   .match = QUERY_EXACT,
                                   .from_us = range->from_us,
                                   .to_us = range->to_us,
                                   .in_reverse = true};
    if (address.err == ERR_OK && archive_walk_open(reader, &wanted, &walk, NULL) == ERR_OK) {
        size_t count_max = failures->count + PAGES_FAILURES_MAX / 2;
        while (failures->count < count_max && archive_walk_next(walk, &capture, NULL) == ERR_OK) {
            failures->items[failures->count++] =
                (struct pages_failure){.time_us = capture.time_us, .is_https = is_https};
        }
        archive_walk_close(walk);
    }
    buf_done(&address);
}

void pages_failures_read(struct pages_failures *failures, struct archive_reader *reader,
                         const struct archive_range *range) {
    struct url url;
    url_init(&url);
    if (url_parse(&url, range->url, NULL, NULL) == ERR_OK && url_is_web(&url)) {
        struct bytes href = url_href(&url);
        href = bytes_slice(href, 0, bytes_find_byte(href, '#'));
        buf_put(&failures->url, bytes_skip(href, bytes_find(href, BYTES("://")) + 3));
        read_scheme(failures, reader, range, false);
        read_scheme(failures, reader, range, true);
    }
    url_done(&url);
}

void pages_failures_put_link(struct sheet *sheet, const struct pages_failures *failures,
                             const struct pages_failure *failure) {
    struct buf address;
    buf_init(&address, ADDRESS_SIZE_MAX);
    put_address(failures, failure->is_https, &address);
    sheet_replay_url(sheet, stamp_of_time(failure->time_us), "id_", buf_bytes(&address));
    buf_done(&address);
}

void pages_failures_put(struct sheet *sheet, const struct pages_failures *failures) {
    if (failures->count == 0) {
        return;
    }
    sheet_html(sheet,
               "<h2>Could not be fetched</h2>\n<p>There was no answer at these times; each says why.</p>"
               "\n<ul class=failures>\n");
    for (size_t i = 0; i < failures->count; i++) {
        sheet_html(sheet, "<li><a href=\"");
        pages_failures_put_link(sheet, failures, &failures->items[i]);
        FILL(sheet, "\">{time}</a>{html}\n", {.time_us = failures->items[i].time_us},
             {.string = failures->items[i].is_https ? " over https" : ""});
    }
    sheet_html(sheet, "</ul>\n");
}

void pages_failures_put_json(struct json *json, const struct pages_failures *failures) {
    json_open_list(json, "failures");
    for (size_t i = 0; i < failures->count; i++) {
        json_open(json, NULL);
        json_timestamp(json, "timestamp", failures->items[i].time_us);
        json_text(json, "scheme", failures->items[i].is_https ? "https" : "http");
        json_close(json);
    }
    json_close(json);
}
