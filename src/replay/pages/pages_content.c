#include "replay/pages/pages_content.h"

#include "warc/content.h"
#include "web/html/html.h"
#include "web/html/transcode.h"
#include "web/html/tree.h"
#include "web/type/mime_type.h"

enum { PIECE_SIZE = 64 << 10 };

static enum err content_decode(struct pages_content *content, struct content *decoder) {
    struct sink_buf sink;
    struct bytes head = content->record.is_http ? content->record.head : bytes_of(NULL, 0);
    struct bytes rest = content->record.body;
    sink_buf_init(&sink, &content->text);
    enum err err = content_start(decoder, head, PAGES_CONTENT_SIZE_MAX, &sink.sink, NULL);
    decoder->payload.is_chunked = false; /* the archive has undone that */
    while (err == ERR_OK && rest.size > 0) {
        size_t size = rest.size < PIECE_SIZE ? rest.size : PIECE_SIZE;
        err = content_put(decoder, bytes_slice(rest, 0, size), NULL);
        rest = bytes_skip(rest, size);
    }
    return err == ERR_OK ? content_finish(decoder, NULL) : err;
}

enum err pages_content_read(struct pages_content *content, struct archive_reader *reader,
                            const struct capture *capture, struct err_detail *detail) {
    struct content decoder;
    *content = (struct pages_content){.is_cut = false};
    enum err err = archive_open(reader, capture, &content->record, detail);
    if (err != ERR_OK) {
        return err;
    }
    buf_init(&content->text, PAGES_CONTENT_SIZE_MAX);
    err = content_init(&decoder);
    if (err == ERR_OK) {
        enum err decoded = content_decode(content, &decoder);
        content->is_cut = decoded == ERR_LIMIT;
        err = decoded == ERR_MEMORY || content->text.err == ERR_MEMORY ? ERR_MEMORY : ERR_OK;
        content_done(&decoder);
    }
    if (err != ERR_OK) {
        buf_done(&content->text);
    }
    return err;
}

void pages_content_done(struct pages_content *content) {
    buf_done(&content->text);
}

bool pages_content_is_html(const struct pages_content *content) {
    return http_is_html(content->record.content_type);
}

bool pages_content_is_text(const struct pages_content *content) {
    struct mime_type type;
    (void)mime_type_extract(&type, content->record.content_type);
    return mime_type_begins(&type, "text/") || mime_type_is_xml(&type) || mime_type_is_script(&type) ||
           bytes_ends_with(mime_type_essence(&type), BYTES("json"));
}

enum err pages_content_put_utf8(const struct pages_content *content, struct buf *out) {
    struct bytes text = buf_bytes(&content->text);
    struct bytes head = bytes_slice(text, 0, text.size < ENCODING_HEAD_SIZE ? text.size : ENCODING_HEAD_SIZE);
    struct transcode transcode;
    size_t mark_size = 0;
    if (encoding_of_bom(head, &mark_size) != NULL) {
        text = bytes_skip(text, mark_size);
    }
    transcode_init(&transcode);
    transcode_start(&transcode,
                    encoding_detect(encoding_of_type(content->record.content_type), head,
                                    pages_content_is_html(content) ? ENCODING_HTML : ENCODING_TEXT));
    enum err err = transcode_put(&transcode, out, text);
    transcode_done(&transcode);
    return err;
}

/* ---- what is read ---- */

/* Elements that stand in a line of text: all others begin a new one. */
static bool is_inline(struct bytes name) {
    static const char *const names[] = {"a",    "abbr", "acronym", "b",     "bdi",  "bdo",    "big",   "cite",
                                        "code", "data", "del",     "dfn",   "em",   "font",   "i",     "img",
                                        "ins",  "kbd",  "label",   "mark",  "nobr", "q",      "rp",    "rt",
                                        "ruby", "s",    "samp",    "small", "span", "strong", "sub",   "sup",
                                        "time", "tt",   "u",       "var",   "wbr",  "strike", "input", NULL};
    return bytes_is_one_of(name, names);
}

static bool content_is_hidden(struct bytes name) {
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

static void end_line(struct lines *lines) {
    if (lines->is_line_started) {
        buf_put_byte(lines->out, '\n');
    }
    lines->is_line_started = false;
    lines->wants_space = false;
}

static void content_put_text(struct lines *lines, const struct html_token *token) {
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

static void take_tag(struct lines *lines, const struct html_token *token) {
    bool is_start = token->kind == HTML_START_TAG;
    if (content_is_hidden(token->name)) {
        lines->hidden_depth += is_start ? 1 : 0;
        lines->hidden_depth -= !is_start && lines->hidden_depth > 0 ? 1 : 0;
    }
    if (!is_inline(token->name)) {
        end_line(lines);
    }
}

static void content_drain(struct lines *lines, struct html *html, struct tree *tree) {
    struct html_token token;
    while (html_next(html, &token)) {
        if (token.kind == HTML_TEXT) {
            content_put_text(lines, &token);
        } else if (token.kind == HTML_START_TAG || token.kind == HTML_END_TAG) {
            tree_tag(tree, html, &token);
            take_tag(lines, &token);
        }
    }
}

enum err pages_put_lines(struct buf *out, struct bytes text) {
    struct html html;
    struct tree tree;
    struct lines lines = {.out = out};
    buf_init(&lines.piece, PAGES_CONTENT_SIZE_MAX * 4);
    html_init(&html);
    tree_init(&tree);
    html_start(&html);
    tree_start(&tree);
    html_feed(&html, text);
    content_drain(&lines, &html, &tree);
    html_end(&html);
    content_drain(&lines, &html, &tree);
    end_line(&lines);
    enum err err = html_err(&html);
    html_done(&html);
    buf_done(&lines.piece);
    return err != ERR_OK ? err : out->err;
}
