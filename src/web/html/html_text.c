#include "web/html/html_text.h"

static bool ends_tag_name(uint8_t byte) {
    return byte == '>' || byte == '/' || byte_is_space(byte);
}

enum match { MATCH_NO, MATCH_YES, MATCH_MAYBE }; /* maybe: the text ends before it can be said */

static enum match match(struct bytes text, struct bytes word) {
    size_t size = text.size < word.size ? text.size : word.size;
    if (!bytes_equal_ignore_case(bytes_slice(text, 0, size), bytes_slice(word, 0, size))) {
        return MATCH_NO;
    }
    return size == word.size ? MATCH_YES : MATCH_MAYBE;
}

/* The word, and then a byte that ends the name of a tag. */
static enum match match_tag(struct bytes text, struct bytes word) {
    enum match found = match(text, word);
    if (found == MATCH_YES && text.size == word.size) {
        return MATCH_MAYBE;
    }
    return found == MATCH_YES && !ends_tag_name(text.data[word.size]) ? MATCH_NO : found;
}

/* text starts behind "<!". */
static enum html_markup markup_after_bang(const struct html *html, struct bytes text) {
    enum match comment = match(text, BYTES("--"));
    enum match doctype = match(text, BYTES("doctype"));
    enum match cdata = MATCH_NO;
    if (html->has_cdata) {
        cdata = match(text, BYTES("[CDATA["));
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
    return may_be_more && !html->is_last ? HTML_UNDECIDED : HTML_MARKUP_BOGUS_COMMENT;
}

/* text starts with '<'. */
static enum html_markup markup_at(const struct html *html, struct bytes text) {
    enum html_markup too_short = html->is_last ? HTML_NO_MARKUP : HTML_UNDECIDED;
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
    enum match found = match(text, BYTES("</"));
    if (found == MATCH_YES && html->end_name_size > 0) {
        found = match_tag(bytes_skip(text, 2), bytes_of(html->end_name, html->end_name_size));
    } else if (found == MATCH_YES) {
        found = MATCH_NO;
    }
    if (found == MATCH_YES) {
        return HTML_MARKUP_END_TAG;
    }
    return found == MATCH_MAYBE && !html->is_last ? HTML_UNDECIDED : HTML_NO_MARKUP;
}

static enum html_markup scan_data(const struct html *html, struct bytes view, size_t *ret_size) {
    size_t at = 0;
    while (at < view.size) {
        at += bytes_find_byte(bytes_skip(view, at), '<');
        if (at == view.size) {
            break;
        }
        enum html_markup markup = markup_at(html, bytes_skip(view, at));
        if (markup != HTML_NO_MARKUP) {
            *ret_size = at;
            return markup;
        }
        at++;
    }
    *ret_size = at;
    return HTML_NO_MARKUP;
}

/* RCDATA and RAWTEXT. */
static enum html_markup scan_raw(const struct html *html, struct bytes view, size_t *ret_size) {
    size_t at = 0;
    while (at < view.size) {
        at += bytes_find_byte(bytes_skip(view, at), '<');
        if (at == view.size) {
            break;
        }
        enum html_markup markup = end_tag_at(html, bytes_skip(view, at));
        if (markup != HTML_NO_MARKUP) {
            *ret_size = at;
            return markup;
        }
        at++;
    }
    *ret_size = at;
    return HTML_NO_MARKUP;
}

/*
 * text starts with '<' in an unescaped script. Moves *size over what is text for sure; returns what stops it.
 */
static enum html_markup script_open_at(struct html *html, struct bytes text, size_t *size) {
    enum match comment = match(text, BYTES("<!--"));
    if (comment == MATCH_YES) {
        html->escape = HTML_ESCAPED;
        html->dashes = 2; /* "<!-->" ends at once */
        *size += 4;
        return HTML_NO_MARKUP;
    }
    if (comment == MATCH_MAYBE && !html->is_last) {
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
    if (found == MATCH_MAYBE && !html->is_last) {
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
    if (html->is_last) {
        return HTML_NO_MARKUP;
    }
    size_t brackets = 0; /* at the end, which may be the start of its end */
    while (brackets < 2 && brackets < view.size && view.data[view.size - brackets - 1] == ']') {
        brackets++;
    }
    *ret_size -= brackets;
    return brackets > 0 ? HTML_UNDECIDED : HTML_NO_MARKUP;
}

enum html_markup html_text_scan(struct html *html, struct bytes view, size_t *ret_size) {
    switch (html->model) {
    case HTML_DATA:
        return scan_data(html, view, ret_size);
    case HTML_RCDATA:
    case HTML_RAWTEXT:
        return scan_raw(html, view, ret_size);
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
