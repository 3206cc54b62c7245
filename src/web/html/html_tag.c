#include "web/html/html_tag.h"

enum {
    ENDS_TAG_NAME = 1,
    ENDS_ATTRIBUTE_NAME = 2,
    ENDS_VALUE = 4,
    SPACE = 8,
    UPPER = 0x20, /* what makes a letter a small one */
};
_Static_assert(('A' | UPPER) == 'a', "letters are ASCII");

enum { ALL = ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME | ENDS_VALUE };

/* CR is a space too: the standard turns it into LF before the tokenizer sees it. */
static const uint8_t classes[256] = {
    ['\t'] = SPACE | ALL,
    ['\n'] = SPACE | ALL,
    ['\f'] = SPACE | ALL,
    ['\r'] = SPACE | ALL,
    [' '] = SPACE | ALL,
    ['>'] = ALL,
    ['/'] = ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME,
    ['='] = ENDS_ATTRIBUTE_NAME,
    ['A' ... 'Z'] = UPPER,
};

void html_tag_start(struct html_tag *tag, size_t name_from, bool is_end_tag) {
    tag->state = HTML_TAG_NAME;
    tag->at = name_from;
    tag->name_from = tag->name_to = (uint32_t)name_from;
    tag->key = 0;
    tag->is_end_tag = is_end_tag;
    tag->is_self_closing = false;
    tag->is_cut = false;
    tag->attributes_count = 0;
    tag->current = HTML_ATTRIBUTES_MAX;
}

/*
 * Where a scan is, in variables that the compiler can keep in registers: through the struct itself every byte
 * that is read could be one that was just written.
 */
struct cursor {
    const uint8_t *data;
    size_t size;
    size_t at;
    uint64_t key;
    struct html_attribute *attribute;
};

/* From cursor->at up to a byte of that class, or the end; the key takes the bytes in. True if there is
 * such a byte.
 */
static inline bool scan_name(struct cursor *cursor, uint8_t ends) {
    size_t at = cursor->at;
    uint64_t key = cursor->key;
    for (; at < cursor->size; at++) {
        uint8_t byte = cursor->data[at];
        uint8_t class = classes[byte];
        if ((class & ends) != 0) {
            break;
        }
        key = (key << 8 | key >> 56) ^ (byte | (class & UPPER));
    }
    cursor->at = at;
    cursor->key = key;
    return at < cursor->size;
}

static inline bool skip_spaces(struct cursor *cursor) {
    while (cursor->at < cursor->size && (classes[cursor->data[cursor->at]] & SPACE) != 0) {
        cursor->at++;
    }
    return cursor->at < cursor->size;
}

/*
 * The states. Each goes on from cursor->at and returns the state that it ends in; if the bytes suffice it
 * goes right on into the next.
 */

static inline enum html_tag_state scan_value(struct cursor *cursor) {
    struct html_attribute *attribute = cursor->attribute;
    const uint8_t *from = cursor->data + cursor->at;
    size_t size = cursor->size - cursor->at;
    size_t length = 0;
    bool is_quoted = attribute->quote != HTML_UNQUOTED;
    if (is_quoted) {
        const uint8_t *end =
            size == 0 ? NULL : memchr(from, attribute->quote == HTML_DOUBLE_QUOTED ? '"' : '\'', size);
        length = end == NULL ? size : (size_t)(end - from);
    } else {
        while (length < size && (classes[from[length]] & ENDS_VALUE) == 0) {
            length++;
        }
    }
    cursor->at += length;
    attribute->value_to = (uint32_t)cursor->at;
    if (length == size) {
        return HTML_TAG_VALUE;
    }
    cursor->at += is_quoted ? 1 : 0;
    return HTML_TAG_BEFORE_NAME;
}

static inline enum html_tag_state scan_before_value(struct cursor *cursor) {
    if (!skip_spaces(cursor)) {
        return HTML_TAG_BEFORE_VALUE;
    }
    struct html_attribute *attribute = cursor->attribute;
    uint8_t byte = cursor->data[cursor->at];
    if (byte == '>') {
        return HTML_TAG_BEFORE_NAME;
    }
    bool is_quote = byte == '"' || byte == '\'';
    attribute->quote = byte == '"' ? HTML_DOUBLE_QUOTED : is_quote ? HTML_SINGLE_QUOTED : HTML_UNQUOTED;
    cursor->at += is_quote ? 1 : 0;
    attribute->value_from = (uint32_t)cursor->at;
    return scan_value(cursor);
}

static inline enum html_tag_state scan_attribute_name(struct cursor *cursor) {
    bool has_end = scan_name(cursor, ENDS_ATTRIBUTE_NAME);
    struct html_attribute *attribute = cursor->attribute;
    attribute->name_key = cursor->key;
    attribute->name_to = attribute->value_from = attribute->value_to = (uint32_t)cursor->at;
    if (!has_end) {
        return HTML_TAG_ATTRIBUTE;
    }
    if (cursor->data[cursor->at] != '=') {
        return HTML_TAG_AFTER_NAME;
    }
    cursor->at++;
    return scan_before_value(cursor);
}

/* The byte at cursor->at is the first of a name, whatever it is: "=" may be one. */
static inline enum html_tag_state start_attribute(struct html_tag *tag, struct cursor *cursor) {
    bool counts = tag->attributes_count < HTML_ATTRIBUTES_MAX && !tag->is_cut && !tag->is_end_tag;
    tag->current = counts ? tag->attributes_count++ : HTML_ATTRIBUTES_MAX;
    cursor->attribute = &tag->attributes[tag->current];
    cursor->attribute->name_from = (uint32_t)cursor->at;
    cursor->attribute->quote = HTML_NO_VALUE;
    uint8_t byte = cursor->data[cursor->at++];
    cursor->key = byte | (classes[byte] & UPPER);
    return scan_attribute_name(cursor);
}

static inline enum html_tag_state scan_slash(struct html_tag *tag, struct cursor *cursor) {
    if (cursor->at == cursor->size) {
        return HTML_TAG_SLASH;
    }
    if (cursor->data[cursor->at] != '>') {
        return HTML_TAG_BEFORE_NAME;
    }
    cursor->at++;
    tag->is_self_closing = true;
    return HTML_TAG_OVER;
}

/* After a name '=' may come, before one it starts a name. */
static inline enum html_tag_state scan_between(struct html_tag *tag, struct cursor *cursor,
                                               enum html_tag_state state) {
    if (!skip_spaces(cursor)) {
        return state;
    }
    uint8_t byte = cursor->data[cursor->at];
    if (byte == '>') {
        cursor->at++;
        return HTML_TAG_OVER;
    }
    if (byte == '/') {
        cursor->at++;
        return scan_slash(tag, cursor);
    }
    if (byte == '=' && state == HTML_TAG_AFTER_NAME) {
        cursor->at++;
        return scan_before_value(cursor);
    }
    return start_attribute(tag, cursor);
}

static inline enum html_tag_state scan_tag_name(struct html_tag *tag, struct cursor *cursor) {
    bool has_end = scan_name(cursor, ENDS_TAG_NAME);
    tag->name_to = (uint32_t)cursor->at;
    tag->name_key = cursor->key;
    if (!has_end) {
        return HTML_TAG_NAME;
    }
    return scan_between(tag, cursor, HTML_TAG_BEFORE_NAME);
}

bool html_tag_scan(struct html_tag *tag, struct bytes view) {
    struct cursor cursor = {view.data, view.size, tag->at, tag->key, &tag->attributes[tag->current]};
    enum html_tag_state state = tag->state;
    while (cursor.at < cursor.size && state != HTML_TAG_OVER) {
        switch (state) {
        case HTML_TAG_NAME:
            state = scan_tag_name(tag, &cursor);
            break;
        case HTML_TAG_BEFORE_NAME:
        case HTML_TAG_AFTER_NAME:
            state = scan_between(tag, &cursor, state);
            break;
        case HTML_TAG_ATTRIBUTE:
            state = scan_attribute_name(&cursor);
            break;
        case HTML_TAG_BEFORE_VALUE:
            state = scan_before_value(&cursor);
            break;
        case HTML_TAG_VALUE:
            state = scan_value(&cursor);
            break;
        case HTML_TAG_SLASH:
            state = scan_slash(tag, &cursor);
            break;
        case HTML_TAG_OVER:
            break;
        }
    }
    tag->state = state;
    tag->at = cursor.at;
    tag->key = cursor.key;
    return state == HTML_TAG_OVER;
}

void html_tag_cut(struct html_tag *tag) {
    bool is_reading = tag->state == HTML_TAG_ATTRIBUTE || tag->state == HTML_TAG_AFTER_NAME ||
                      tag->state == HTML_TAG_BEFORE_VALUE || tag->state == HTML_TAG_VALUE;
    if (is_reading && tag->current < HTML_ATTRIBUTES_MAX) {
        tag->attributes[HTML_ATTRIBUTES_MAX].quote = tag->attributes[tag->current].quote;
        tag->attributes_count--;
        tag->current = HTML_ATTRIBUTES_MAX;
    }
    tag->is_cut = true;
}
