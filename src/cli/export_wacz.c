#include "cli/export_wacz.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "version.h"
#include "warc/cdxj.h"
#include "warc/request_key.h"
#include "web/html/text.h"

enum {
    STATUS_OK = 200,
    PAGE_SIZE_MAX = 1 << 20,  /* of a line of pages.jsonl: URL and title */
    HTML_SIZE_MAX = 64 << 10, /* so much of a document is looked at for its title */
    COPY_SIZE = 64 << 10,
    DIGEST_TEXT_SIZE = sizeof "sha256:" + (size_t)2 * KEY_DIGEST_SIZE,
};

static const uint64_t PAGES_SIZE_MAX = UINT64_C(1) << 48;

static enum err explain(enum err err, const char *what, struct err_detail *detail) {
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s: %s", what, err_text(err));
}

/* ---- start and end ---- */

static enum err set_directory(struct export_wacz *wacz, const char *path, struct err_detail *detail) {
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (size >= sizeof wacz->directory) {
        return err_set(detail, ERR_LIMIT, "the path of the output is too long");
    }
    memcpy(wacz->directory, size == 0 ? "." : path, size == 0 ? 1 : size);
    wacz->directory[size == 0 ? 1 : size] = '\0';
    return ERR_OK;
}

enum err export_wacz_init(struct export_wacz *wacz, struct sink *file, const char *path, int64_t now_us,
                          struct err_detail *detail) {
    *wacz = (struct export_wacz){0};
    line_runs_init(&wacz->index, wacz->directory);
    scratch_init(&wacz->pages, wacz->directory, SCRATCH_MEMORY_MAX, PAGES_SIZE_MAX);
    buf_init(&wacz->html, HTML_SIZE_MAX);
    buf_init(&wacz->line, PAGE_SIZE_MAX);
    buf_init(&wacz->last_page, PAGE_SIZE_MAX);
    wacz->text = text_new();
    enum err err = wacz_writer_init(&wacz->writer, file, now_us);
    err = wacz->text == NULL ? ERR_MEMORY : err;
    err = err == ERR_OK ? content_init(&wacz->content) : err;
    err = err == ERR_OK ? sha256_init(&wacz->sha256) : err;
    err = err == ERR_OK ? wacz_put_pages_head(&wacz->line) : err;
    err = err == ERR_OK ? scratch_put(&wacz->pages, buf_bytes(&wacz->line)) : err;
    if (err != ERR_OK) {
        return explain(err, "WACZ", detail);
    }
    err = set_directory(wacz, path, detail);
    return err == ERR_OK ? wacz_writer_start(&wacz->writer, WACZ_WARC_PATH, UINT64_MAX, detail) : err;
}

void export_wacz_done(struct export_wacz *wacz) {
    buf_done(&wacz->last_page);
    buf_done(&wacz->line);
    text_free(wacz->text);
    buf_done(&wacz->html);
    sha256_done(&wacz->sha256);
    content_done(&wacz->content);
    scratch_done(&wacz->pages);
    line_runs_done(&wacz->index);
    wacz_writer_done(&wacz->writer);
}

/* ---- a capture ---- */

static enum err add_to_index(struct export_wacz *wacz, const struct capture *capture,
                             const struct warc_written *written, bool is_revisit) {
    char hex[2 * KEY_DIGEST_SIZE + 1];
    char digest[DIGEST_TEXT_SIZE];
    snprintf(digest, sizeof digest, "sha256:%s", hex_encode(bytes_of(capture->digest, KEY_DIGEST_SIZE), hex));
    struct cdxj cdxj = {
        .key = capture->surt,
        .time_us = capture->time_us,
        .url = capture->url,
        .mime = is_revisit               ? BYTES("warc/revisit")
                : capture->mime.size > 0 ? capture->mime
                                         : BYTES("unk"),
        .status = capture->status,
        .digest = bytes_of_string(digest),
        .has_place = true,
        .length = written->length,
        .offset = written->offset,
        .filename = BYTES(WACZ_WARC_NAME),
    };
    buf_clear(&wacz->line);
    enum err err = cdxj_put(&wacz->line, &cdxj);
    return err == ERR_OK ? line_runs_put(&wacz->index, buf_bytes(&wacz->line)) : err;
}

static bool is_page(const struct capture *capture) {
    return capture->status == STATUS_OK && http_is_html(capture->mime);
}

/* The body of the capture: in its record, or with another. */
static enum err find_body(const struct capture *capture, const struct record *record,
                          struct instance_session *session, struct bytes *ret_body,
                          struct err_detail *detail) {
    struct key key;
    struct block block;
    if ((capture->flags & CAPTURE_REVISIT) == 0) {
        *ret_body = record->body;
        return ERR_OK;
    }
    enum err err = instance_locate(session, capture, &key, &block, detail);
    return err == ERR_OK ? instance_get(session, &key, ret_body, detail) : err;
}

/* What cannot be decoded has no title, or that of the part that could. */
static enum err read_text(struct export_wacz *wacz, const struct capture *capture,
                          const struct record *record, struct instance_session *session,
                          struct err_detail *detail) {
    struct sink_buf sink;
    struct bytes body;
    buf_clear(&wacz->html);
    sink_buf_init(&sink, &wacz->html);
    enum err err = find_body(capture, record, session, &body, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (content_start(&wacz->content, record->head, HTML_SIZE_MAX, &sink.sink, NULL) == ERR_OK &&
        content_put(&wacz->content, body, NULL) == ERR_OK) {
        (void)!content_finish(&wacz->content, NULL);
    }
    char joined[HTTP_TYPE_SIZE_MAX];
    text_start(wacz->text, http_content_type(&record->payload.head.fields, joined));
    err = text_feed(wacz->text, buf_bytes(&wacz->html));
    return err == ERR_OK ? text_finish(wacz->text) : err;
}

static enum err add_page(struct export_wacz *wacz, const struct capture *capture, const struct record *record,
                         struct instance_session *session, struct err_detail *detail) {
    if (request_key_split(capture->url).method.size > 0) {
        return ERR_OK; /* nobody opens the answer to a form */
    }
    enum err err = read_text(wacz, capture, record, session, detail);
    if (err != ERR_OK) {
        return err;
    }
    buf_clear(&wacz->line);
    err = wacz_put_page(&wacz->line, &wacz->sha256, capture->url, capture->time_us,
                        text_part(wacz->text, TEXT_TITLE));
    /* Two captures of one moment are one page. */
    if (err == ERR_OK && !bytes_equal(buf_bytes(&wacz->line), buf_bytes(&wacz->last_page))) {
        err = scratch_put(&wacz->pages, buf_bytes(&wacz->line));
        wacz->pages_count++;
    }
    buf_clear(&wacz->last_page);
    err = err == ERR_OK ? buf_put(&wacz->last_page, buf_bytes(&wacz->line)) : err;
    return explain(err, "pages", detail);
}

enum err export_wacz_add(struct export_wacz *wacz, const struct capture *capture, const struct record *record,
                         struct instance_session *session, const struct warc_written *written,
                         bool is_revisit, struct err_detail *detail) {
    enum err err = add_to_index(wacz, capture, written, is_revisit);
    if (err != ERR_OK) {
        return explain(err, "index", detail);
    }
    return is_page(capture) ? add_page(wacz, capture, record, session, detail) : ERR_OK;
}

/* ---- behind the WARC file ---- */

static enum err write_scratch(struct export_wacz *wacz, const char *path, const struct scratch *scratch,
                              struct err_detail *detail) {
    uint8_t piece[COPY_SIZE];
    enum err err = wacz_writer_start(&wacz->writer, path, scratch->size, detail);
    for (uint64_t offset = 0; offset < scratch->size && err == ERR_OK;) {
        uint64_t left = scratch->size - offset;
        size_t size = left < sizeof piece ? (size_t)left : sizeof piece;
        err = explain(scratch_read(scratch, offset, piece, size), "scratch file", detail);
        err = err == ERR_OK ? sink_append(&wacz->writer.sink, bytes_of(piece, size), detail) : err;
        offset += size;
    }
    return err == ERR_OK ? wacz_writer_end(&wacz->writer, detail) : err;
}

static enum err write_lines(struct export_wacz *wacz, struct err_detail *detail) {
    struct bytes line;
    enum err err = wacz_writer_start(&wacz->writer, WACZ_INDEX_PATH, line_runs_size(&wacz->index), detail);
    while (err == ERR_OK && (err = line_runs_next(&wacz->index, &line)) == ERR_OK) {
        err = sink_append(&wacz->writer.sink, line, detail);
    }
    return err == ERR_NOT_FOUND ? wacz_writer_end(&wacz->writer, detail) : explain(err, "index", detail);
}

static enum err write_blocks(struct export_wacz *wacz, struct err_detail *detail) {
    struct wacz_zipnum zipnum;
    struct scratch idx;
    struct scratch_sink idx_sink;
    struct bytes line;
    scratch_init(&idx, wacz->directory, SCRATCH_MEMORY_MAX, PAGES_SIZE_MAX);
    scratch_sink_init(&idx_sink, &idx);
    enum err err = wacz_writer_start(&wacz->writer, WACZ_BLOCKS_PATH, UINT64_MAX, detail);
    if (err == ERR_OK) {
        err = wacz_zipnum_init(&zipnum, &wacz->writer.sink, &idx_sink.sink, WACZ_BLOCKS_NAME);
        while (err == ERR_OK && (err = line_runs_next(&wacz->index, &line)) == ERR_OK) {
            err = wacz_zipnum_put(&zipnum, line, detail);
        }
        err = err == ERR_NOT_FOUND ? wacz_zipnum_finish(&zipnum, detail) : explain(err, "index", detail);
        wacz_zipnum_done(&zipnum);
    }
    err = err == ERR_OK ? wacz_writer_end(&wacz->writer, detail) : err;
    err = err == ERR_OK ? write_scratch(wacz, WACZ_IDX_PATH, &idx, detail) : err;
    scratch_done(&idx);
    return err;
}

/* What the package says of it beside its files. */
static enum err finish_package(struct export_wacz *wacz, const struct absent *absent,
                               struct err_detail *detail) {
    struct buf more;
    struct json json;
    buf_init(&more, 1 << 14);
    if (absent->is_any) {
        json_begin_spaced(&json, &more);
        absent_put_json(absent, &json);
        json_end(&json);
    }
    enum err err = more.err;
    if (err == ERR_OK) {
        err = wacz_writer_finish(&wacz->writer, BYTES("mnemon/" MNEMON_VERSION), buf_bytes(&more), detail);
    }
    buf_done(&more);
    return err;
}

enum err export_wacz_finish(struct export_wacz *wacz, const struct absent *absent,
                            struct err_detail *detail) {
    enum err err = wacz_writer_end(&wacz->writer, detail);
    err = err == ERR_OK ? explain(line_runs_sort(&wacz->index), "index", detail) : err;
    if (err == ERR_OK) {
        bool is_small = line_runs_size(&wacz->index) <= EXPORT_WACZ_INDEX_SIZE_MAX;
        err = is_small ? write_lines(wacz, detail) : write_blocks(wacz, detail);
    }
    err = err == ERR_OK ? write_scratch(wacz, WACZ_PAGES_PATH, &wacz->pages, detail) : err;
    return err == ERR_OK ? finish_package(wacz, absent, detail) : err;
}
