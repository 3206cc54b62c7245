#include "web/html/html.h"

enum { DOCTYPE_INTRO_SIZE = 9, CDATA_INTRO_SIZE = 9 }; /* "<!DOCTYPE", "<![CDATA[" */

void html_init(struct html *html) {
    *html = (struct html){.state = HTML_IN_TEXT};
    tape_init(&html->tape, HTML_TAG_SIZE_MAX);
}

void html_done(struct html *html) {
    tape_done(&html->tape);
}

void html_start(struct html *html) {
    tape_start(&html->tape);
    html->state = HTML_IN_TEXT;
    html->given = html->at = html->intro = 0;
    html->is_sparse = html->has_cdata = false;
    html_set_model(html, HTML_DATA, (struct bytes){NULL, 0});
}

void html_feed(struct html *html, struct bytes piece) {
    tape_feed(&html->tape, piece);
}

void html_end(struct html *html) {
    tape_end(&html->tape);
}

void html_set_model(struct html *html, enum html_model model, struct bytes end_name) {
    html->model = model;
    html->escape = HTML_NOT_ESCAPED;
    html->dashes = 0;
    html->end_name_size = end_name.size <= sizeof html->end_name ? end_name.size : 0;
    for (size_t i = 0; i < html->end_name_size; i++) {
        html->end_name[i] = byte_lower(end_name.data[i]);
    }
}

void html_set_cdata(struct html *html, bool has_cdata) {
    html->has_cdata = has_cdata;
}

/* A step: what it did. */
enum step {
    STEP_TOKEN, /* there is one */
    STEP_AGAIN, /* the state has changed */
    STEP_MORE,  /* the view is too short */
};

/* Give out the first `size` bytes of the view. */
static enum step html_give(struct html *html, struct html_token *token, enum html_token_kind kind,
                           size_t size) {
    token->kind = kind;
    token->offset = html->tape.offset;
    token->source = bytes_slice(html->tape.view, 0, size);
    html->given = size;
    return STEP_TOKEN;
}

/*
 * Where text ends and what begins there, for each way of reading text
 */

enum html_markup {
    HTML_NO_MARKUP, /* all of the view is text, as far as can be said */
    HTML_UNDECIDED, /* too few bytes behind the '<' */
    HTML_MARKUP_START_TAG,
    HTML_MARKUP_END_TAG,
    HTML_MARKUP_COMMENT,
    HTML_MARKUP_BOGUS_COMMENT,
    HTML_MARKUP_DOCTYPE,
    HTML_MARKUP_CDATA,
    HTML_MARKUP_CDATA_END,
    HTML_MARKUP_EMPTY_END_TAG, /* "</>" */
};

static bool ends_tag_name(uint8_t byte) {
    return byte == '>' || byte == '/' || byte_is_space(byte);
}

enum match { MATCH_NO, MATCH_YES, MATCH_MAYBE }; /* maybe: the text ends before it can be said */

static enum match html_match(struct bytes text, struct bytes word) {
    size_t size = text.size < word.size ? text.size : word.size;
    if (!bytes_equal_ignore_case(bytes_slice(text, 0, size), bytes_slice(word, 0, size))) {
        return MATCH_NO;
    }
    return size == word.size ? MATCH_YES : MATCH_MAYBE;
}

/* The word, and then a byte that ends the name of a tag. */
static enum match match_tag(struct bytes text, struct bytes word) {
    enum match found = html_match(text, word);
    if (found == MATCH_YES && text.size == word.size) {
        return MATCH_MAYBE;
    }
    return found == MATCH_YES && !ends_tag_name(text.data[word.size]) ? MATCH_NO : found;
}

/* text starts behind "<!". */
static enum html_markup markup_after_bang(const struct html *html, struct bytes text) {
    enum match comment = html_match(text, BYTES("--"));
    enum match doctype = html_match(text, BYTES("doctype"));
    enum match cdata = MATCH_NO;
    if (html->has_cdata) {
        cdata = html_match(text, BYTES("[CDATA["));
        size_t size = text.size < 7 ? text.size : 7;
        if (size > 0 && memcmp(text.data, "[CDATA[", size) != 0) {
            cdata = MATCH_NO; /* the only word in capitals */
        }
    }
    if (comment == MATCH_YES) {
        return HTML_MARKUP_COMMENT;
    }
    if (doctype == MATCH_YES) {
        return HTML_MARKUP_DOCTYPE;
    }
    if (cdata == MATCH_YES) {
        return HTML_MARKUP_CDATA;
    }
    bool may_be_more = comment == MATCH_MAYBE || doctype == MATCH_MAYBE || cdata == MATCH_MAYBE;
    return may_be_more && !html->tape.is_last ? HTML_UNDECIDED : HTML_MARKUP_BOGUS_COMMENT;
}

/* text starts with '<'. */
static enum html_markup markup_at(const struct html *html, struct bytes text) {
    enum html_markup too_short = html->tape.is_last ? HTML_NO_MARKUP : HTML_UNDECIDED;
    if (text.size < 2) {
        return too_short;
    }
    uint8_t byte = text.data[1];
    if (byte_is_alpha(byte)) {
        return HTML_MARKUP_START_TAG;
    }
    if (byte == '/') {
        if (text.size < 3) {
            return too_short;
        }
        if (byte_is_alpha(text.data[2])) {
            return HTML_MARKUP_END_TAG;
        }
        return text.data[2] == '>' ? HTML_MARKUP_EMPTY_END_TAG : HTML_MARKUP_BOGUS_COMMENT;
    }
    if (byte == '!') {
        return markup_after_bang(html, bytes_skip(text, 2));
    }
    return byte == '?' ? HTML_MARKUP_BOGUS_COMMENT : HTML_NO_MARKUP;
}

/* text starts with '<': is it the end tag that the model waits for? */
static enum html_markup end_tag_at(const struct html *html, struct bytes text) {
    enum match found = html_match(text, BYTES("</"));
    if (found == MATCH_YES && html->end_name_size > 0) {
        found = match_tag(bytes_skip(text, 2), bytes_of(html->end_name, html->end_name_size));
    } else if (found == MATCH_YES) {
        found = MATCH_NO;
    }
    if (found == MATCH_YES) {
        return HTML_MARKUP_END_TAG;
    }
    return found == MATCH_MAYBE && !html->tape.is_last ? HTML_UNDECIDED : HTML_NO_MARKUP;
}

/* Ordinary text; in RCDATA and RAWTEXT only the end tag that the model waits for is markup. */
static enum html_markup scan_data(const struct html *html, struct bytes view, size_t *ret_size) {
    enum html_markup markup = HTML_NO_MARKUP;
    size_t at = 0;
    while (at < view.size && markup == HTML_NO_MARKUP) {
        at += bytes_find_byte(bytes_skip(view, at), '<');
        if (at < view.size) {
            struct bytes text = bytes_skip(view, at);
            markup = html->model == HTML_DATA ? markup_at(html, text) : end_tag_at(html, text);
            at += markup == HTML_NO_MARKUP ? 1 : 0;
        }
    }
    *ret_size = at;
    return markup;
}

/*
 * text starts with '<' in an unescaped script. Moves *size over what is text for sure; returns what stops it.
 */
static enum html_markup script_open_at(struct html *html, struct bytes text, size_t *size) {
    enum match comment = html_match(text, BYTES("<!--"));
    if (comment == MATCH_YES) {
        html->escape = HTML_ESCAPED;
        html->dashes = 2; /* "<!-->" ends at once */
        *size += 4;
        return HTML_NO_MARKUP;
    }
    if (comment == MATCH_MAYBE && !html->tape.is_last) {
        return HTML_UNDECIDED;
    }
    enum html_markup markup = end_tag_at(html, text);
    *size += markup == HTML_NO_MARKUP ? 1 : 0;
    return markup;
}

/* The same inside "<!--" of a script, where "<script>" opens a second level and "</script>" closes it. */
static enum html_markup script_escaped_open_at(struct html *html, struct bytes text, size_t *size) {
    bool is_double = html->escape == HTML_DOUBLE_ESCAPED;
    struct bytes word = is_double ? BYTES("</script") : BYTES("<script");
    enum match found = match_tag(text, word);
    if (found == MATCH_MAYBE && !html->tape.is_last) {
        return HTML_UNDECIDED;
    }
    enum html_markup markup = is_double ? HTML_NO_MARKUP : end_tag_at(html, text);
    if (markup != HTML_NO_MARKUP) {
        return markup;
    }
    html->dashes = 0;
    *size += 1;
    if (found == MATCH_YES) {
        html->escape = is_double ? HTML_ESCAPED : HTML_DOUBLE_ESCAPED;
        *size += word.size; /* the word is there already, and the byte behind it belongs to it */
    }
    return HTML_NO_MARKUP;
}

/* One byte of an escaped script that is no '<'. */
static void count_dashes(struct html *html, uint8_t byte) {
    if (byte == '>' && html->dashes >= 2) {
        html->escape = HTML_NOT_ESCAPED;
    }
    html->dashes = byte == '-' ? html->dashes + 1 : 0;
}

static enum html_markup scan_script(struct html *html, struct bytes view, size_t *ret_size) {
    size_t at = 0;
    enum html_markup markup = HTML_NO_MARKUP;
    while (at < view.size && markup == HTML_NO_MARKUP) {
        if (html->escape == HTML_NOT_ESCAPED) {
            at += bytes_find_byte(bytes_skip(view, at), '<');
            if (at < view.size) {
                markup = script_open_at(html, bytes_skip(view, at), &at);
            }
        } else if (view.data[at] == '<') {
            markup = script_escaped_open_at(html, bytes_skip(view, at), &at);
        } else {
            count_dashes(html, view.data[at++]);
        }
    }
    *ret_size = at;
    return markup;
}

static enum html_markup scan_cdata(const struct html *html, struct bytes view, size_t *ret_size) {
    *ret_size = bytes_find(view, BYTES("]]>"));
    if (*ret_size < view.size) {
        return HTML_MARKUP_CDATA_END;
    }
    if (html->tape.is_last) {
        return HTML_NO_MARKUP;
    }
    size_t brackets = 0; /* at the end, which may be the start of its end */
    while (brackets < 2 && brackets < view.size && view.data[view.size - brackets - 1] == ']') {
        brackets++;
    }
    *ret_size -= brackets;
    return brackets > 0 ? HTML_UNDECIDED : HTML_NO_MARKUP;
}

/*
 * How much of the view is text, and what follows it. Advances html->escape and html->dashes over that text,
 * which must then be consumed.
 */
static enum html_markup html_text_scan(struct html *html, struct bytes view, size_t *ret_size) {
    switch (html->model) {
    case HTML_DATA:
    case HTML_RCDATA:
    case HTML_RAWTEXT:
        return scan_data(html, view, ret_size);
    case HTML_SCRIPT:
        return scan_script(html, view, ret_size);
    case HTML_CDATA:
        return scan_cdata(html, view, ret_size);
    case HTML_PLAINTEXT:
        break;
    }
    *ret_size = view.size;
    return HTML_NO_MARKUP;
}

/*
 * Text
 */

static unsigned text_decoding(enum html_model model) {
    switch (model) {
    case HTML_DATA:
        return HTML_DECODE_REFERENCES;
    case HTML_RCDATA:
        return HTML_DECODE_REFERENCES | HTML_DECODE_NUL;
    case HTML_CDATA:
        return HTML_DECODE_NOTHING;
    case HTML_RAWTEXT:
    case HTML_SCRIPT:
    case HTML_PLAINTEXT:
        break;
    }
    return HTML_DECODE_NUL;
}

static bool may_be_in_reference(uint8_t byte) {
    return byte_is_alnum(byte) || byte == '#';
}

/* How much at the end of the text may belong to what comes next: a CR, a character reference. */
static size_t unfinished_size(struct bytes text, unsigned decoding) {
    if (text.size > 0 && text.data[text.size - 1] == '\r') {
        return 1;
    }
    if ((decoding & HTML_DECODE_REFERENCES) == 0) {
        return 0;
    }
    size_t size = 0;
    while (size < text.size && size <= HTML_REFERENCE_SIZE_MAX &&
           may_be_in_reference(text.data[text.size - size - 1])) {
        size++;
    }
    bool is_reference =
        size < text.size && size <= HTML_REFERENCE_SIZE_MAX && text.data[text.size - size - 1] == '&';
    return is_reference ? size + 1 : 0;
}

static void start_tag(struct html *html, bool is_end_tag) {
    html_tag_start(&html->tag, is_end_tag ? 2 : 1, is_end_tag);
    html->state = HTML_IN_TAG;
}

/* The view starts with markup. */
static enum step html_enter(struct html *html, struct html_token *token, enum html_markup markup) {
    switch (markup) {
    case HTML_MARKUP_START_TAG:
    case HTML_MARKUP_END_TAG:
        start_tag(html, markup == HTML_MARKUP_END_TAG);
        return STEP_AGAIN;
    case HTML_MARKUP_COMMENT:
        html->state = HTML_IN_COMMENT;
        html->intro = 4;
        return STEP_AGAIN;
    case HTML_MARKUP_BOGUS_COMMENT:
        html->state = HTML_IN_BOGUS_COMMENT;
        html->intro = html->tape.view.data[1] == '?' ? 1 : 2;
        return STEP_AGAIN;
    case HTML_MARKUP_DOCTYPE:
        html->state = HTML_IN_DOCTYPE;
        html->at = DOCTYPE_INTRO_SIZE;
        return STEP_AGAIN;
    case HTML_MARKUP_CDATA:
    case HTML_MARKUP_CDATA_END:
        html->model = markup == HTML_MARKUP_CDATA ? HTML_CDATA : HTML_DATA;
        return html_give(html, token, HTML_SKIPPED, markup == HTML_MARKUP_CDATA ? CDATA_INTRO_SIZE : 3);
    case HTML_MARKUP_EMPTY_END_TAG:
        return html_give(html, token, HTML_SKIPPED, 3);
    case HTML_NO_MARKUP:
    case HTML_UNDECIDED:
        break;
    }
    return STEP_MORE;
}

static enum step step_tag(struct html *html, struct html_token *token);

static enum step step_text(struct html *html, struct html_token *token) {
    struct bytes view = html->tape.view;
    if (html->model == HTML_DATA && view.size > 2 && view.data[0] == '<') { /* most often it is a tag */
        bool is_end_tag = view.data[1] == '/';
        if (byte_is_alpha(view.data[is_end_tag ? 2 : 1])) {
            start_tag(html, is_end_tag);
            return step_tag(html, token);
        }
    }
    if (html->tape.is_last && view.size == 0) {
        html->state = HTML_AT_END;
        return html_give(html, token, HTML_END, 0);
    }
    unsigned dashes = html->dashes;
    enum html_escape escape = html->escape;
    size_t size;
    enum html_markup markup = html_text_scan(html, view, &size);
    if (size == 0) {
        return html_enter(html, token, markup);
    }
    if (markup == HTML_NO_MARKUP && !html->tape.is_last) {
        size_t unfinished = unfinished_size(view, text_decoding(html->model));
        if (unfinished == size) {
            html->dashes = dashes; /* these bytes will be seen again */
            html->escape = escape;
            return STEP_MORE;
        }
        size -= unfinished;
    }
    token->text = bytes_slice(view, 0, size);
    token->decoding = text_decoding(html->model);
    return html_give(html, token, HTML_TEXT, size);
}

/*
 * Tags
 */

/* Tags have a limit that does not depend on how the bytes arrive. */
static struct bytes limited_view(const struct html *html) {
    struct bytes view = html->tape.view;
    view.size = view.size < HTML_TAG_SIZE_MAX ? view.size : HTML_TAG_SIZE_MAX;
    return view;
}

static enum step give_tag(struct html *html, struct html_token *token) {
    const struct html_tag *tag = &html->tag;
    html_give(html, token, tag->is_end_tag ? HTML_END_TAG : HTML_START_TAG, tag->at);
    token->name = bytes_slice(token->source, tag->name_from, tag->name_to);
    token->name_key = tag->name_key;
    token->is_self_closing = tag->is_self_closing;
    token->is_cut = tag->is_cut;
    token->attributes = tag->attributes;
    token->attributes_count = tag->attributes_count;
    if (html->model != HTML_DATA) {
        html_set_model(html, HTML_DATA, (struct bytes){NULL, 0});
    }
    return STEP_TOKEN;
}

static enum step step_tag(struct html *html, struct html_token *token) {
    struct bytes view = limited_view(html);
    if (html_tag_scan(&html->tag, view)) {
        html->state = HTML_IN_TEXT;
        return give_tag(html, token);
    }
    if (view.size == HTML_TAG_SIZE_MAX) {
        html_tag_cut(&html->tag);
        html->state = HTML_IN_CUT_TAG;
        give_tag(html, token);
        html->tag.at = 0;
        return STEP_TOKEN;
    }
    if (html->tape.is_last) {
        html->state = HTML_IN_TEXT;
        return html_give(html, token, HTML_SKIPPED, view.size);
    }
    return STEP_MORE;
}

static enum step step_cut_tag(struct html *html, struct html_token *token) {
    struct bytes view = html->tape.view;
    bool is_over = html_tag_scan(&html->tag, view);
    if (is_over || (html->tape.is_last && view.size == 0)) {
        html->state = HTML_IN_TEXT;
    }
    if (html->tag.at == 0) {
        return html->tape.is_last ? STEP_AGAIN : STEP_MORE;
    }
    html_give(html, token, HTML_SKIPPED, html->tag.at);
    html->tag.at = 0;
    return STEP_TOKEN;
}

/*
 * Comments and doctypes
 */

/* How much at the end of a comment's text is, or may become, its end: "-", "--", "--!"; or half a line end.
 */
static size_t comment_tail_size(struct bytes text) {
    if (bytes_ends_with(text, BYTES("--!"))) {
        return 3;
    }
    if (bytes_ends_with(text, BYTES("--"))) {
        return 2;
    }
    return bytes_ends_with(text, BYTES("-")) ? 1 : 0;
}

/* Index of the end of a comment in its text and how long that end is; text.size if there is none. */
static size_t find_comment_end(struct bytes text, bool is_first, size_t *ret_size) {
    for (size_t at = 0; at < text.size; at++) {
        at += bytes_find_byte(bytes_skip(text, at), '>');
        if (at == text.size) {
            break;
        }
        struct bytes before = bytes_slice(text, 0, at);
        bool is_empty = is_first && (at == 0 || (at == 1 && text.data[0] == '-')); /* <!-->, <!---> */
        size_t tail = is_empty ? at : comment_tail_size(before);
        if (is_empty || tail >= 2) {
            *ret_size = tail + 1;
            return at - tail;
        }
    }
    return text.size;
}

static enum step give_comment(struct html *html, struct html_token *token, size_t text_size,
                              size_t source_size, bool is_end) {
    token->text = bytes_slice(html->tape.view, html->intro, html->intro + text_size);
    token->decoding = HTML_DECODE_NUL;
    token->is_end = is_end;
    html->intro = 0;
    html->state = is_end ? HTML_IN_TEXT : html->state;
    return html_give(html, token, HTML_COMMENT, source_size);
}

static enum step html_step_comment(struct html *html, struct html_token *token) {
    struct bytes view = html->tape.view;
    struct bytes text = bytes_skip(view, html->intro);
    bool is_bogus = html->state == HTML_IN_BOGUS_COMMENT;
    size_t end_size = 1;
    size_t end = is_bogus ? bytes_find_byte(text, '>') : find_comment_end(text, html->intro > 0, &end_size);
    if (end < text.size) {
        return give_comment(html, token, end, html->intro + end + end_size, true);
    }
    size_t tail = is_bogus ? 0 : comment_tail_size(text);
    if (html->tape.is_last) {
        return give_comment(html, token, text.size - tail, view.size, true);
    }
    if (tail == 0 && bytes_ends_with(text, BYTES("\r"))) {
        tail = 1;
    }
    if (tail == text.size) {
        return STEP_MORE;
    }
    return give_comment(html, token, text.size - tail, view.size - tail, false);
}

static enum step step_doctype(struct html *html, struct html_token *token) {
    struct bytes view = limited_view(html);
    html->at += bytes_find_byte(bytes_skip(view, html->at), '>');
    bool is_whole = html->at < view.size;
    if (is_whole || html->tape.is_last) {
        html->state = HTML_IN_TEXT;
        return html_give(html, token, HTML_DOCTYPE, html->at + (is_whole ? 1 : 0));
    }
    if (view.size == HTML_TAG_SIZE_MAX) {
        html->state = HTML_IN_CUT_DOCTYPE;
        return html_give(html, token, HTML_SKIPPED, view.size);
    }
    return STEP_MORE;
}

static enum step step_cut_doctype(struct html *html, struct html_token *token) {
    struct bytes view = html->tape.view;
    size_t end = bytes_find_byte(view, '>');
    if (end < view.size || (html->tape.is_last && view.size == 0)) {
        html->state = HTML_IN_TEXT;
    }
    if (view.size == 0) {
        return html->tape.is_last ? STEP_AGAIN : STEP_MORE;
    }
    return html_give(html, token, HTML_SKIPPED, end < view.size ? end + 1 : view.size);
}

static enum step html_step(struct html *html, struct html_token *token) {
    switch (html->state) {
    case HTML_IN_TEXT:
        return step_text(html, token);
    case HTML_IN_TAG:
        return step_tag(html, token);
    case HTML_IN_COMMENT:
    case HTML_IN_BOGUS_COMMENT:
        return html_step_comment(html, token);
    case HTML_IN_DOCTYPE:
        return step_doctype(html, token);
    case HTML_IN_CUT_TAG:
        return step_cut_tag(html, token);
    case HTML_IN_CUT_DOCTYPE:
        return step_cut_doctype(html, token);
    case HTML_AT_END:
        break;
    }
    return STEP_MORE;
}

/* data[at] is a '<': the index behind an end tag without attributes, or `at` if there is none. */
static size_t skip_end_tag(const uint8_t *data, size_t size, size_t at) {
    if (size - at < 4 || data[at + 1] != '/' || !byte_is_alpha(data[at + 2])) {
        return at;
    }
    size_t end = at + 3;
    while (end < size && (byte_is_alpha(data[end]) || byte_is_digit(data[end]))) {
        end++;
    }
    return end < size && data[end] == '>' ? end + 1 : at;
}

/* Up to the next '<' that may be something else than an end tag. */
static void skip_unwanted(struct html *html) {
    const uint8_t *data = html->tape.view.data;
    size_t size = html->tape.view.size;
    size_t at = 0;
    for (bool goes_on = true; goes_on && at < size;) {
        const uint8_t *found = data[at] == '<' ? data + at : memchr(data + at, '<', size - at);
        if (found == NULL) {
            at = size;
            break;
        }
        size_t from = (size_t)(found - data);
        at = skip_end_tag(data, size, from);
        goes_on = at > from;
    }
    tape_consume(&html->tape, at);
}

bool html_next(struct html *html, struct html_token *token) {
    if (html->given > 0) {
        tape_consume(&html->tape, html->given);
        html->given = 0;
    }
    for (;;) {
        if (html->is_sparse && html->state == HTML_IN_TEXT && html->model == HTML_DATA) {
            skip_unwanted(html);
        }
        switch (html_step(html, token)) {
        case STEP_TOKEN:
            return true;
        case STEP_AGAIN:
            break;
        case STEP_MORE:
            if (html->state == HTML_AT_END || !tape_more(&html->tape)) {
                return false;
            }
            break;
        }
    }
}

const struct html_attribute *html_find_attribute(const struct html_token *tag, struct bytes name) {
    for (size_t i = 0; i < tag->attributes_count; i++) {
        if (bytes_equal_ignore_case(html_attribute_name(tag, &tag->attributes[i]), name)) {
            return &tag->attributes[i];
        }
    }
    return NULL;
}
