#include "crawl/rules/sitemap_state.h"

#include "base/utf8.h"

enum state {
    STATE_START, /* nothing but BOM and spaces yet */
    STATE_LINE,  /* of a plain text */
    STATE_CONTENT,
    STATE_ENTITY,
    STATE_LESS,    /* behind '<' */
    STATE_BANG,    /* behind "<!" */
    STATE_COMMENT, /* behind "<!--" */
    STATE_CDATA_START,
    STATE_CDATA,
    STATE_DOCTYPE,
    STATE_INSTRUCTION, /* <? … ?> */
    STATE_NAME,        /* of an element */
    STATE_TAG,         /* between attributes */
    STATE_ATTRIBUTE,
    STATE_EQUALS, /* behind '=' */
    STATE_VALUE,
    STATE_BARE_VALUE, /* without quotes */
};

/* ---- Entities ---- */

static void scan_put_code_point(struct sitemap *sitemap, uint32_t code_point) {
    uint8_t out[UTF8_LENGTH_MAX];
    bool is_valid = code_point > 0 && code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff);
    size_t size = utf8_encode(is_valid ? code_point : 0xfffd, out);
    for (size_t i = 0; i < size; i++) {
        sitemap_put_text(sitemap, out[i]);
    }
}

/* "#38" or "#x26"; false where it is neither. */
static bool scan_read_number(struct bytes text, uint32_t *ret_number) {
    bool is_hex = text.size > 2 && byte_lower(text.data[1]) == 'x';
    if (text.size < 2 || text.data[0] != '#') {
        return false;
    }
    uint32_t number = 0;
    for (size_t i = is_hex ? 2 : 1; i < text.size; i++) {
        uint8_t byte = byte_lower(text.data[i]);
        bool is_letter = is_hex && byte >= 'a' && byte <= 'f';
        if (!is_letter && !byte_is_digit(byte)) {
            return false;
        }
        uint32_t digit = is_letter ? (uint32_t)(byte - 'a' + 10) : (uint32_t)(byte - '0');
        number = number < 0x1000000 ? number * (is_hex ? 16 : 10) + digit : number;
    }
    *ret_number = number;
    return true;
}

static bool scan_put_entity(struct sitemap *sitemap) {
    static const struct {
        const char *name;
        uint8_t byte;
    } names[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    struct bytes entity = bytes_of(sitemap->entity, sitemap->entity_size);
    uint32_t number;
    if (scan_read_number(entity, &number)) {
        scan_put_code_point(sitemap, number);
        return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bytes_equal(entity, bytes_of_string(names[i].name))) {
            sitemap_put_text(sitemap, names[i].byte);
            return true;
        }
    }
    return false;
}

/* It was none: "a&b" is what many write for "a&amp;b". */
static void scan_put_no_entity(struct sitemap *sitemap) {
    sitemap_put_text(sitemap, '&');
    for (size_t i = 0; i < sitemap->entity_size; i++) {
        sitemap_put_text(sitemap, (uint8_t)sitemap->entity[i]);
    }
}

/* True where the byte was used; else the state before the entity takes it. */
static bool scan_entity(struct sitemap *sitemap, uint8_t byte) {
    if (byte == ';') {
        sitemap->state = sitemap->return_state;
        if (!scan_put_entity(sitemap)) {
            scan_put_no_entity(sitemap);
            sitemap_put_text(sitemap, ';');
        }
        return true;
    }
    bool is_part = byte_is_alnum(byte) || (byte == '#' && sitemap->entity_size == 0);
    if (is_part && sitemap->entity_size < sizeof sitemap->entity) {
        sitemap->entity[sitemap->entity_size++] = (char)byte;
        return true;
    }
    sitemap->state = sitemap->return_state;
    scan_put_no_entity(sitemap);
    return false;
}

static void scan_start_entity(struct sitemap *sitemap) {
    sitemap->return_state = sitemap->state;
    sitemap->state = STATE_ENTITY;
    sitemap->entity_size = 0;
}

/* ---- Tags ---- */

static void scan_end_tag(struct sitemap *sitemap) {
    sitemap->state = STATE_CONTENT;
    if (sitemap->is_closing) {
        sitemap_close_element(sitemap);
    } else {
        sitemap_open_element(sitemap);
    }
}

static void scan_put_name(struct sitemap *sitemap, uint8_t byte) {
    if (sitemap->name_size < sizeof sitemap->name) {
        sitemap->name[sitemap->name_size++] = (char)byte;
    }
}

static void scan_name(struct sitemap *sitemap, uint8_t byte) {
    if (byte == '>') {
        scan_end_tag(sitemap);
    } else if (byte == '/') {
        sitemap->is_empty = true;
        sitemap->state = STATE_TAG;
    } else if (byte_is_space(byte)) {
        sitemap->state = STATE_TAG;
    } else {
        scan_put_name(sitemap, byte);
    }
}

static void scan_start_attribute(struct sitemap *sitemap, uint8_t byte) {
    sitemap->attribute_size = 1;
    sitemap->attribute[0] = (char)byte;
    sitemap->is_empty = false;
    sitemap->state = STATE_ATTRIBUTE;
}

static void scan_tag(struct sitemap *sitemap, uint8_t byte) {
    if (byte == '>') {
        scan_end_tag(sitemap);
    } else if (byte == '/') {
        sitemap->is_empty = true;
    } else if (byte == '=') {
        sitemap->state = STATE_EQUALS;
    } else if (!byte_is_space(byte)) {
        scan_start_attribute(sitemap, byte);
    }
}

static void scan_attribute(struct sitemap *sitemap, uint8_t byte) {
    if (byte == '=' || byte == '>' || byte == '/' || byte_is_space(byte)) {
        sitemap->state = STATE_TAG;
        scan_tag(sitemap, byte);
    } else if (sitemap->attribute_size < sizeof sitemap->attribute) {
        sitemap->attribute[sitemap->attribute_size++] = (char)byte;
    }
}

static void scan_equals(struct sitemap *sitemap, uint8_t byte) {
    if (byte_is_space(byte)) {
        return;
    }
    sitemap_clear_text(sitemap);
    if (byte == '"' || byte == '\'') {
        sitemap->quote = byte;
        sitemap->state = STATE_VALUE;
    } else if (byte == '>') {
        scan_end_tag(sitemap);
    } else {
        sitemap_put_text(sitemap, byte);
        sitemap->state = STATE_BARE_VALUE;
    }
}

static void scan_end_value(struct sitemap *sitemap) {
    sitemap_take_attribute(sitemap);
    sitemap_clear_text(sitemap);
    sitemap->state = STATE_TAG;
}

static void scan_value(struct sitemap *sitemap, uint8_t byte) {
    bool is_end = sitemap->state == STATE_VALUE ? byte == sitemap->quote : byte_is_space(byte) || byte == '>';
    if (is_end) {
        scan_end_value(sitemap);
        if (byte == '>') {
            scan_end_tag(sitemap);
        }
    } else if (byte == '&') {
        scan_start_entity(sitemap);
    } else {
        sitemap_put_text(sitemap, byte);
    }
}

/* ---- Everything else that begins with '<' ---- */

static void scan_less(struct sitemap *sitemap, uint8_t byte) {
    sitemap->match = 0;
    sitemap->name_size = 0;
    sitemap->is_closing = byte == '/';
    sitemap->is_empty = false;
    if (byte == '!') {
        sitemap->state = STATE_BANG;
    } else if (byte == '?') {
        sitemap->state = STATE_INSTRUCTION;
    } else if (byte == '>' || byte_is_space(byte)) {
        sitemap->state = STATE_CONTENT; /* a '<' that nobody escaped */
    } else {
        sitemap->state = STATE_NAME;
        if (!sitemap->is_closing) {
            scan_put_name(sitemap, byte);
        }
    }
}

static void scan_bang(struct sitemap *sitemap, uint8_t byte) {
    if (byte == '-' && sitemap->match == 1) {
        sitemap->match = 0;
        sitemap->state = STATE_COMMENT;
    } else if (byte == '-') {
        sitemap->match = 1;
    } else if (byte == '[') {
        sitemap->match = 0;
        sitemap->state = STATE_CDATA_START;
    } else if (byte == '>') {
        sitemap->state = STATE_CONTENT;
    } else {
        sitemap->match = 0;
        sitemap->state = STATE_DOCTYPE;
    }
}

static void scan_cdata_start(struct sitemap *sitemap, uint8_t byte) {
    static const char word[] = "CDATA[";
    if (byte != (uint8_t)word[sitemap->match]) {
        sitemap->state = byte == '>' ? STATE_CONTENT : STATE_DOCTYPE;
        sitemap->match = 0;
    } else if (++sitemap->match == sizeof word - 1) {
        sitemap->match = 0;
        sitemap->state = STATE_CDATA;
    }
}

/* Two of the mark and a '>' end it: "-->" and "]]>". Of "]]]>" the first is text. */
static void scan_to_mark(struct sitemap *sitemap, uint8_t byte, uint8_t mark, bool keeps_text) {
    if (byte == '>' && sitemap->match == 2) {
        sitemap->state = STATE_CONTENT;
        return;
    }
    if (byte == mark && sitemap->match < 2) {
        sitemap->match++;
        return;
    }
    uint8_t plain_count = byte == mark ? 1 : sitemap->match; /* marks that ended nothing */
    for (uint8_t i = 0; keeps_text && i < plain_count; i++) {
        sitemap_put_text(sitemap, mark);
    }
    if (keeps_text && byte != mark) {
        sitemap_put_text(sitemap, byte);
    }
    sitemap->match = byte == mark ? 2 : 0;
}

/* Up to the '>' outside of all brackets. */
static void scan_doctype(struct sitemap *sitemap, uint8_t byte) {
    if (byte == '[' && sitemap->match < UINT8_MAX) {
        sitemap->match++;
    } else if (byte == ']' && sitemap->match > 0) {
        sitemap->match--;
    } else if (byte == '>' && sitemap->match == 0) {
        sitemap->state = STATE_CONTENT;
    }
}

static void scan_content(struct sitemap *sitemap, uint8_t byte) {
    if (byte == '<') {
        sitemap->state = STATE_LESS;
    } else if (sitemap->field != 0 && byte == '&') {
        scan_start_entity(sitemap);
    } else if (sitemap->field != 0) {
        sitemap_put_text(sitemap, byte);
    }
}

/* ---- All together ---- */

static void scan_line(struct sitemap *sitemap, uint8_t byte) {
    if (byte == '\n' || byte == '\r') {
        sitemap_take_line(sitemap);
        sitemap_clear_text(sitemap);
    } else {
        sitemap_put_text(sitemap, byte);
    }
}

static void scan_start(struct sitemap *sitemap, uint8_t byte) {
    bool is_bom = byte == 0xef || byte == 0xbb || byte == 0xbf;
    if (is_bom || byte_is_space(byte)) {
        return;
    }
    sitemap->state = byte == '<' ? STATE_LESS : STATE_LINE;
    if (byte != '<') {
        sitemap_put_text(sitemap, byte);
    }
}

static void scan_byte(struct sitemap *sitemap, uint8_t byte) {
    if (sitemap->state == STATE_ENTITY && scan_entity(sitemap, byte)) {
        return;
    }
    switch ((enum state)sitemap->state) {
    case STATE_START:
        return scan_start(sitemap, byte);
    case STATE_LINE:
        return scan_line(sitemap, byte);
    case STATE_CONTENT:
        return scan_content(sitemap, byte);
    case STATE_LESS:
        return scan_less(sitemap, byte);
    case STATE_BANG:
        return scan_bang(sitemap, byte);
    case STATE_COMMENT:
        return scan_to_mark(sitemap, byte, '-', false);
    case STATE_CDATA_START:
        return scan_cdata_start(sitemap, byte);
    case STATE_CDATA:
        return scan_to_mark(sitemap, byte, ']', sitemap->field != 0);
    case STATE_DOCTYPE:
        return scan_doctype(sitemap, byte);
    case STATE_INSTRUCTION:
        sitemap->state = byte == '>' ? STATE_CONTENT : STATE_INSTRUCTION;
        return;
    case STATE_NAME:
        return scan_name(sitemap, byte);
    case STATE_TAG:
        return scan_tag(sitemap, byte);
    case STATE_ATTRIBUTE:
        return scan_attribute(sitemap, byte);
    case STATE_EQUALS:
        return scan_equals(sitemap, byte);
    case STATE_VALUE:
    case STATE_BARE_VALUE:
        return scan_value(sitemap, byte);
    case STATE_ENTITY:
        break; /* left above */
    }
    assert_failed("every state scans a byte", __FILE__, __LINE__);
}

void sitemap_scan(struct sitemap *sitemap, struct bytes piece) {
    while (piece.size > 0) {
        if (sitemap->state == STATE_CONTENT && sitemap->field == 0) {
            piece = bytes_skip(piece, bytes_find_byte(piece, '<')); /* text that nobody wants */
        }
        if (piece.size > 0) {
            scan_byte(sitemap, piece.data[0]);
            piece = bytes_skip(piece, 1);
        }
    }
}

bool sitemap_scan_is_line(const struct sitemap *sitemap) {
    return sitemap->state == STATE_LINE;
}
