#include "parse/parse_lines.h"

#include <stdlib.h>

#include "parse/parse_decode.h"
#include "web/html/html.h"
#include "web/html/transcode.h"
#include "web/html/tree.h"

enum { TYPE_SIZE_MAX = 64 << 10 };

/* ---- what is read ---- */

/* Elements that stand in a line of text: all others begin a new one. */
static bool lines_is_inline(struct bytes name) {
    static const char *const names[] = {"a",    "abbr", "acronym", "b",     "bdi",  "bdo",    "big",   "cite",
                                        "code", "data", "del",     "dfn",   "em",   "font",   "i",     "img",
                                        "ins",  "kbd",  "label",   "mark",  "nobr", "q",      "rp",    "rt",
                                        "ruby", "s",    "samp",    "small", "span", "strong", "sub",   "sup",
                                        "time", "tt",   "u",       "var",   "wbr",  "strike", "input", NULL};
    return bytes_is_one_of(name, names);
}

static bool lines_is_hidden(struct bytes name) {
    static const char *const names[] = {"script", "style", "template", "noframes", "noembed", "iframe", NULL};
    return bytes_is_one_of(name, names);
}

struct lines {
    struct buf *out;
    struct buf piece;    /* of text, decoded */
    size_t hidden_depth; /* in how many elements that are not read */
    bool wants_space;
    bool is_line_started;
};

static void lines_end(struct lines *lines) {
    if (lines->is_line_started) {
        buf_put_byte(lines->out, '\n');
    }
    lines->is_line_started = false;
    lines->wants_space = false;
}

static void lines_put_text(struct lines *lines, const struct html_token *token) {
    if (lines->hidden_depth > 0) {
        return;
    }
    buf_clear(&lines->piece);
    html_decode(&lines->piece, token->text, token->decoding);
    for (size_t i = 0; i < lines->piece.size; i++) {
        uint8_t byte = lines->piece.data[i];
        if (byte <= ' ') {
            lines->wants_space = lines->is_line_started;
            continue;
        }
        if (lines->wants_space) {
            buf_put_byte(lines->out, ' ');
        }
        buf_put_byte(lines->out, byte);
        lines->is_line_started = true;
        lines->wants_space = false;
    }
}

static void lines_take_tag(struct lines *lines, const struct html_token *token) {
    bool is_start = token->kind == HTML_START_TAG;
    if (lines_is_hidden(token->name)) {
        lines->hidden_depth += is_start ? 1 : 0;
        lines->hidden_depth -= !is_start && lines->hidden_depth > 0 ? 1 : 0;
    }
    if (!lines_is_inline(token->name)) {
        lines_end(lines);
    }
}

static void lines_drain(struct lines *lines, struct html *html, struct tree *tree) {
    struct html_token token;
    while (html_next(html, &token)) {
        if (token.kind == HTML_TEXT) {
            lines_put_text(lines, &token);
        } else if (token.kind == HTML_START_TAG || token.kind == HTML_END_TAG) {
            tree_tag(tree, html, &token);
            lines_take_tag(lines, &token);
        }
    }
}

enum err parse_lines_put(struct buf *out, struct bytes text) {
    struct html html;
    struct tree tree;
    struct lines lines = {.out = out};
    buf_init(&lines.piece, PARSE_LINES_SIZE_MAX * 4);
    html_init(&html);
    tree_init(&tree);
    html_start(&html);
    tree_start(&tree);
    html_feed(&html, text);
    lines_drain(&lines, &html, &tree);
    html_end(&html);
    lines_drain(&lines, &html, &tree);
    lines_end(&lines);
    enum err err = html_err(&html);
    html_done(&html);
    buf_done(&lines.piece);
    return err != ERR_OK ? err : out->err;
}

/* ---- the job ---- */

struct page_lines {
    struct parse_document document;
    struct buf text; /* decoded */
    struct buf utf8;
    struct buf lines;
};

static void lines_job_free(void *state) {
    struct page_lines *page = state;
    parse_document_done(&page->document);
    buf_done(&page->text);
    buf_done(&page->utf8);
    buf_done(&page->lines);
    free(page);
}

static void *lines_job_make(void) {
    struct page_lines *page = calloc(1, sizeof *page);
    if (page == NULL) {
        return NULL;
    }
    buf_init(&page->text, PARSE_LINES_SIZE_MAX);
    buf_init(&page->utf8, 4 * PARSE_LINES_SIZE_MAX);
    buf_init(&page->lines, 8 * PARSE_LINES_SIZE_MAX);
    if (parse_document_init(&page->document) != ERR_OK) {
        lines_job_free(page);
        return NULL;
    }
    return page;
}

enum err parse_lines_params(struct buf *out, const struct parse_lines_params *params) {
    size_t size = params->head.size + params->content_type.size + 4 * WIRE_VARINT_SIZE_MAX;
    struct wire_writer writer;
    enum err err = parse_params_begin(out, size, &writer);
    if (err != ERR_OK) {
        return err;
    }
    wire_write_string(&writer, params->head);
    wire_write_string(&writer, params->content_type);
    wire_write_bool(&writer, params->is_html);
    wire_write_bool(&writer, params->wants_lines);
    return parse_params_end(out, &writer);
}

static enum err lines_transcode(struct page_lines *page, struct bytes content_type, bool is_html) {
    struct bytes text = buf_bytes(&page->text);
    struct bytes head = bytes_slice(text, 0, text.size < ENCODING_HEAD_SIZE ? text.size : ENCODING_HEAD_SIZE);
    struct transcode transcode;
    size_t mark_size = 0;
    if (encoding_of_bom(head, &mark_size) != NULL) {
        text = bytes_skip(text, mark_size);
    }
    transcode_init(&transcode);
    transcode_start(&transcode, encoding_detect(encoding_of_type(content_type), head,
                                                is_html ? ENCODING_HTML : ENCODING_TEXT));
    enum err err = transcode_put(&transcode, &page->utf8, text);
    transcode_done(&transcode);
    return err;
}

/* What cannot be decoded counts as the end of the document. */
static bool lines_read(struct page_lines *page, struct parse_io *io, struct bytes head, enum err *ret_err) {
    struct bytes piece;
    enum err err = parse_document_start(&page->document, io, head, false, PARSE_LINES_SIZE_MAX, NULL);
    do {
        piece = bytes_of(NULL, 0);
        err = err == ERR_OK ? parse_document_next(&page->document, &piece, NULL) : err;
        err = err == ERR_OK ? buf_put(&page->text, piece) : err;
    } while (err == ERR_OK && piece.size > 0);
    content_rest(&page->document.content);
    *ret_err = err == ERR_LIMIT || err == ERR_UNSUPPORTED || err == ERR_INVALID ? ERR_OK : err;
    return err == ERR_LIMIT;
}

static enum err lines_job_run(void *state, struct parse_io *io) {
    struct page_lines *page = state;
    struct wire_reader reader;
    wire_reader_init(&reader, io->params);
    struct bytes head = wire_read_string(&reader, PARSE_HEAD_SIZE_MAX);
    struct bytes content_type = wire_read_string(&reader, TYPE_SIZE_MAX);
    bool is_html = wire_read_bool(&reader);
    bool wants_lines = wire_read_bool(&reader);
    enum err err = wire_reader_finish(&reader, NULL);
    if (err != ERR_OK) {
        return err;
    }
    buf_clear(&page->text);
    buf_clear(&page->utf8);
    buf_clear(&page->lines);
    io->note[0] = lines_read(page, io, head, &err);
    io->note_size = 1;
    err = err == ERR_OK ? lines_transcode(page, content_type, is_html) : err;
    bool has_lines = is_html && wants_lines;
    err = err == ERR_OK && has_lines ? parse_lines_put(&page->lines, buf_bytes(&page->utf8)) : err;
    return err == ERR_OK ? io->put(io, buf_bytes(has_lines ? &page->lines : &page->utf8)) : err;
}

const struct parse_kind parse_lines = {
    .number = PARSE_LINES, .make = lines_job_make, .free = lines_job_free, .run = lines_job_run};
