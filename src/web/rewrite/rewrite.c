#include "web/rewrite/rewrite_state.h"

#include <stdlib.h>

struct rewrite *rewrite_new(void) {
    struct rewrite *rewrite = calloc(1, sizeof *rewrite);
    if (rewrite == NULL) {
        return NULL;
    }
    transcode_init(&rewrite->transcode);
    buf_init(&rewrite->head, ENCODING_HEAD_SIZE);
    buf_init(&rewrite->converted, REWRITE_CONVERTED_SIZE_MAX);
    buf_init(&rewrite->out, REWRITE_OUT_SIZE);
    url_init(&rewrite->own_base);
    url_init(&rewrite->url);
    buf_init(&rewrite->replay, URL_SIZE_MAX * 2);
    buf_init(&rewrite->utf8, REWRITE_VALUE_SIZE_MAX);
    buf_init(&rewrite->value, REWRITE_VALUE_SIZE_MAX);
    buf_init(&rewrite->reference, URL_SIZE_MAX * 2);
    buf_init(&rewrite->css_value, CSS_VALUE_SIZE_MAX * 2);
    buf_init(&rewrite->changed, REWRITE_CHANGED_SIZE_MAX);
    buf_init(&rewrite->collected, REWRITE_COLLECTED_SIZE_MAX);
    rewrite_rules_init(&rewrite->rules);
    rewrite_scan_words(&rewrite->words);
    html_init(&rewrite->html);
    tree_init(&rewrite->tree);
    css_init(&rewrite->css);
    css_init(&rewrite->value_css);
    rewrite_script_init(&rewrite->script, &rewrite->words);
    rewrite_script_init(&rewrite->value_script, &rewrite->words);
    rewrite->encoding = encoding_utf8;
    rewrite->is_over = true;
    return rewrite;
}

void rewrite_free(struct rewrite *rewrite) {
    while (rewrite != NULL) {
        struct rewrite *inner = rewrite->inner;
        transcode_done(&rewrite->transcode);
        buf_done(&rewrite->head);
        buf_done(&rewrite->converted);
        buf_done(&rewrite->out);
        url_done(&rewrite->own_base);
        url_done(&rewrite->url);
        buf_done(&rewrite->replay);
        buf_done(&rewrite->utf8);
        buf_done(&rewrite->value);
        buf_done(&rewrite->reference);
        buf_done(&rewrite->css_value);
        buf_done(&rewrite->changed);
        buf_done(&rewrite->collected);
        html_done(&rewrite->html);
        css_done(&rewrite->css);
        css_done(&rewrite->value_css);
        rewrite_script_done(&rewrite->script);
        rewrite_script_done(&rewrite->value_script);
        free(rewrite);
        rewrite = inner;
    }
}

/*
 * Output
 */

static void put(struct rewrite *rewrite, struct bytes text) {
    if (rewrite->err == ERR_OK && text.size > 0) {
        rewrite->err = rewrite->put(rewrite->context, text);
    }
}

static void flush(struct rewrite *rewrite) {
    put(rewrite, buf_bytes(&rewrite->out));
    buf_clear(&rewrite->out);
}

void rewrite_out(struct rewrite *rewrite, struct bytes text) {
    if (text.size > REWRITE_OUT_SIZE - rewrite->out.size) {
        flush(rewrite);
    }
    if (text.size >= REWRITE_OUT_SIZE) {
        put(rewrite, text);
    } else {
        rewrite_check(rewrite, buf_put(&rewrite->out, text));
    }
}

static enum err put_out(void *context, struct bytes piece) {
    struct rewrite *rewrite = context;
    rewrite_out(rewrite, piece);
    return rewrite->err;
}

/*
 * Documents
 */

void rewrite_start(struct rewrite *rewrite, const struct rewrite_place *place, rewrite_put *put_piece,
                   void *context) {
    rewrite->place = *place;
    rewrite->put = put_piece;
    rewrite->context = context;
    rewrite->err = ERR_OK;
    rewrite->is_over = rewrite->has_begun = rewrite->is_decoded = rewrite->is_declared = false;
    rewrite->has_own_base = false;
    rewrite->encoding = encoding_utf8;
    rewrite->base = place->url;
    buf_clear(&rewrite->head);
    buf_clear(&rewrite->out);
}

const char *rewrite_charset(const struct rewrite *rewrite) {
    if (rewrite->is_decoded) {
        return encoding_utf8->name;
    }
    return rewrite->is_declared ? rewrite->encoding->name : NULL;
}

static struct rewrite_css css_of(struct rewrite *rewrite) {
    return (struct rewrite_css){.css = &rewrite->css, .put = put_out, .context = rewrite};
}

static void start_script(struct rewrite *rewrite) {
    bool is_module = rewrite->place.format == REWRITE_MODULE_SCRIPT;
    struct rewrite_script_place place = rewrite_script_place_of(rewrite, is_module, put_out);
    rewrite_script_start(&rewrite->script, &place);
}

/* The head is there: decide what the document is in. */
static void begin(struct rewrite *rewrite, struct bytes head) {
    rewrite->has_begun = true;
    const struct encoding *header = encoding_of_label(encoding_charset(rewrite->place.content_type));
    enum encoding_document document = rewrite->place.format == REWRITE_HTML ? ENCODING_HTML
                                      : rewrite_is_xml(rewrite)             ? ENCODING_XML
                                                                            : ENCODING_TEXT;
    rewrite->is_declared = encoding_declared(header, head, document) != NULL;
    rewrite->encoding = encoding_detect(header, head, document);
    rewrite->is_decoded = rewrite->encoding->is_wide;
    transcode_start(&rewrite->transcode, rewrite->encoding);
    buf_clear(&rewrite->collected);
    rewrite->is_collecting = true;
    switch (rewrite->place.format) {
    case REWRITE_HTML:
    case REWRITE_XML:
    case REWRITE_DASH:
        rewrite_html_start(rewrite);
        break;
    case REWRITE_CSS:
        css_start(&rewrite->css);
        break;
    case REWRITE_CLASSIC_SCRIPT:
    case REWRITE_MODULE_SCRIPT:
        start_script(rewrite);
        break;
    case REWRITE_HLS:
    case REWRITE_JSON:
    case REWRITE_AS_IS:
        break;
    }
}

static void feed_text(struct rewrite *rewrite, struct bytes text) {
    struct rewrite_css css = css_of(rewrite);
    switch (rewrite->place.format) {
    case REWRITE_HTML:
    case REWRITE_XML:
    case REWRITE_DASH:
        rewrite_html_feed(rewrite, text);
        break;
    case REWRITE_CSS:
        rewrite_css_feed(rewrite, &css, text);
        break;
    case REWRITE_CLASSIC_SCRIPT:
    case REWRITE_MODULE_SCRIPT:
        rewrite_check(rewrite, rewrite_script_feed(&rewrite->script, text));
        break;
    case REWRITE_HLS:
        rewrite_playlist_feed(rewrite, text);
        break;
    case REWRITE_JSON:
    case REWRITE_AS_IS:
        rewrite_out(rewrite, text);
        break;
    }
}

static void end_text(struct rewrite *rewrite) {
    struct rewrite_css css = css_of(rewrite);
    switch (rewrite->place.format) {
    case REWRITE_HTML:
    case REWRITE_XML:
    case REWRITE_DASH:
        rewrite_html_end(rewrite);
        break;
    case REWRITE_CSS:
        rewrite_css_end(rewrite, &css);
        break;
    case REWRITE_CLASSIC_SCRIPT:
    case REWRITE_MODULE_SCRIPT:
        rewrite_check(rewrite, rewrite_script_end(&rewrite->script));
        break;
    case REWRITE_HLS:
        rewrite_playlist_end(rewrite);
        break;
    case REWRITE_JSON:
    case REWRITE_AS_IS:
        break;
    }
}

/* UTF-16 and ISO-2022-JP become UTF-8 as a whole; of all others only the URLs do. */
static void feed_wide(struct rewrite *rewrite, struct bytes piece, bool is_last) {
    do {
        enum err err = transcode_step(&rewrite->transcode, &rewrite->converted, &piece, is_last);
        if (err != ERR_OK) {
            rewrite->err = err;
            return;
        }
        feed_text(rewrite, buf_bytes(&rewrite->converted));
    } while (piece.size > 0 && rewrite->err == ERR_OK);
}

static void feed_body(struct rewrite *rewrite, struct bytes piece) {
    if (rewrite->err != ERR_OK || piece.size == 0) {
        return;
    }
    if (rewrite->is_decoded) {
        feed_wide(rewrite, piece, false);
    } else {
        feed_text(rewrite, piece);
    }
}

/* The bytes after which the head is whole go on from there. A mark before a script is no part of its code. */
static void feed_head(struct rewrite *rewrite, struct bytes head) {
    begin(rewrite, head);
    bool is_script =
        rewrite->place.format == REWRITE_CLASSIC_SCRIPT || rewrite->place.format == REWRITE_MODULE_SCRIPT;
    size_t bom_size = 0;
    if (is_script && encoding_of_bom(head, &bom_size) == encoding_utf8) {
        rewrite_out(rewrite, bytes_slice(head, 0, bom_size));
        head = bytes_skip(head, bom_size);
    }
    feed_body(rewrite, head);
}

static bool is_passed(const struct rewrite *rewrite) {
    return rewrite->place.format == REWRITE_AS_IS || rewrite->place.format == REWRITE_JSON;
}

enum err rewrite_feed(struct rewrite *rewrite, struct bytes piece) {
    ASSERT(!rewrite->is_over);
    if (rewrite->err != ERR_OK) {
        return rewrite->err;
    }
    if (is_passed(rewrite)) {
        put(rewrite, piece);
        return rewrite->err;
    }
    if (!rewrite->has_begun) {
        size_t room = ENCODING_HEAD_SIZE - rewrite->head.size;
        size_t size = piece.size < room ? piece.size : room;
        rewrite->err = buf_put(&rewrite->head, bytes_slice(piece, 0, size));
        if (rewrite->err != ERR_OK || size < room) {
            return rewrite->err;
        }
        feed_head(rewrite, buf_bytes(&rewrite->head));
        piece = bytes_skip(piece, size);
    }
    feed_body(rewrite, piece);
    flush(rewrite);
    return rewrite->err;
}

enum err rewrite_finish(struct rewrite *rewrite) {
    if (rewrite->err == ERR_OK && !rewrite->is_over && !is_passed(rewrite)) {
        if (!rewrite->has_begun) {
            feed_head(rewrite, buf_bytes(&rewrite->head));
        }
        if (rewrite->is_decoded) {
            feed_wide(rewrite, (struct bytes){NULL, 0}, true);
        }
        if (rewrite->err == ERR_OK) {
            end_text(rewrite);
        }
        flush(rewrite);
    }
    rewrite->is_over = true;
    return rewrite->err;
}
