#include "crawl/rules/sitemap.h"

#include "base/utf8.h"
#include "warc/unpack.h"

static void sitemap_put_text(struct sitemap *sitemap, uint8_t byte) {
    if (sitemap->text_size < sizeof sitemap->text) {
        sitemap->text[sitemap->text_size++] = byte;
    } else {
        sitemap->is_text_too_long = true;
    }
}

static void sitemap_clear_text(struct sitemap *sitemap) {
    sitemap->text_size = 0;
    sitemap->is_text_too_long = false;
}

/* ---- Names ---- */

static struct bytes sitemap_local_name(struct bytes name) {
    size_t colon = bytes_find_byte(name, ':');
    return colon < name.size ? bytes_skip(name, colon + 1) : name;
}

static struct bytes sitemap_prefix_of(struct bytes name) {
    size_t colon = bytes_find_byte(name, ':');
    return bytes_slice(name, 0, colon < name.size ? colon : 0);
}

static struct bytes sitemap_element_name(const struct sitemap *sitemap) {
    return bytes_of(sitemap->name, sitemap->name_size);
}

static struct bytes sitemap_entry_name(const struct sitemap *sitemap) {
    return bytes_of(sitemap->entry_name, sitemap->entry_name_size);
}

static bool sitemap_is_entry_name(struct bytes name) {
    static const char *const names[] = {"url", "sitemap", "item", "entry"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bytes_equal(sitemap_local_name(name), bytes_of_string(names[i]))) {
            return true;
        }
    }
    return false;
}

/* In the namespace of the entry: <image:loc> is not the page's <loc>. */
static bool sitemap_is_url_name(const struct sitemap *sitemap, struct bytes name) {
    struct bytes local = sitemap_local_name(name);
    return bytes_equal(sitemap_prefix_of(name), sitemap_prefix_of(sitemap_entry_name(sitemap))) &&
           (bytes_equal(local, BYTES("loc")) || bytes_equal(local, BYTES("link")));
}

/* ---- Values ---- */

static struct bytes sitemap_text_of(const struct sitemap *sitemap) {
    return bytes_trim(bytes_of(sitemap->text, sitemap->text_size));
}

/* The first URL of an entry is its own. */
static void sitemap_take_url(struct sitemap *sitemap, struct bytes url) {
    if (sitemap->entry.url.size == 0 && !sitemap->is_text_too_long && url.size > 0) {
        memcpy(sitemap->url, url.data, url.size);
        sitemap->entry.url = bytes_of(sitemap->url, url.size);
    }
}

static void sitemap_end_field(struct sitemap *sitemap) {
    if (sitemap->is_in_url) {
        sitemap_take_url(sitemap, sitemap_text_of(sitemap));
    }
    sitemap->is_in_url = false;
    sitemap_clear_text(sitemap);
}

/* ---- Entries ---- */

static void sitemap_report(struct sitemap *sitemap) {
    if (sitemap->entry.url.size == 0) {
        sitemap->bad_count++;
    } else if (sitemap->entries_count < SITEMAP_ENTRIES_MAX) {
        sitemap->entries_count++;
        sitemap->found(sitemap->context, &sitemap->entry);
    }
}

static void sitemap_clear_entry(struct sitemap *sitemap) {
    sitemap->entry = (struct sitemap_entry){0};
    sitemap->entry_level = 0;
}

static void sitemap_end_entry(struct sitemap *sitemap) {
    sitemap_end_field(sitemap);
    sitemap_report(sitemap);
    sitemap_clear_entry(sitemap);
}

static void sitemap_start_entry(struct sitemap *sitemap) {
    sitemap_clear_entry(sitemap);
    struct bytes name = sitemap_element_name(sitemap);
    memcpy(sitemap->entry_name, name.data, name.size);
    sitemap->entry_name_size = sitemap->name_size;
    sitemap->entry_level = sitemap->level;
    sitemap->entry.is_sitemap = bytes_equal(sitemap_local_name(name), BYTES("sitemap"));
}

/* <name …>, after its attributes; is_empty says whether it ends at once. */
static void sitemap_open_element(struct sitemap *sitemap) {
    struct bytes name = sitemap_element_name(sitemap);
    bool is_open = sitemap->entry_level > 0;
    if (is_open && bytes_equal(name, sitemap_entry_name(sitemap))) {
        sitemap->level = sitemap->entry_level - 1; /* the one before was never closed */
        sitemap_end_entry(sitemap);
        is_open = false;
    }
    if (sitemap->is_other_link && sitemap->is_url_of_link) { /* <link rel="self"> */
        sitemap->entry.url = (struct bytes){NULL, 0};
    }
    sitemap->is_other_link = sitemap->is_url_of_link = false;
    if (sitemap->is_empty) {
        return;
    }
    sitemap->level++;
    if (!is_open && sitemap_is_entry_name(name)) {
        sitemap_start_entry(sitemap);
    } else if (is_open && sitemap->level == sitemap->entry_level + 1) {
        sitemap->is_in_url = sitemap_is_url_name(sitemap, name);
        sitemap_clear_text(sitemap);
    }
}

static void sitemap_close_element(struct sitemap *sitemap) {
    bool is_open = sitemap->entry_level > 0;
    if (is_open && bytes_equal(sitemap_element_name(sitemap), sitemap_entry_name(sitemap))) {
        sitemap->level = sitemap->entry_level - 1;
        sitemap_end_entry(sitemap);
        return;
    }
    if (is_open && sitemap->level == sitemap->entry_level + 1) {
        sitemap_end_field(sitemap);
    }
    if (sitemap->level > sitemap->entry_level) {
        sitemap->level--;
    }
}

/* Only Atom's <link rel="alternate" href="…"/> has something to say. */
static void sitemap_take_attribute(struct sitemap *sitemap) {
    bool is_child = sitemap->entry_level > 0 && sitemap->level == sitemap->entry_level;
    if (!is_child || sitemap->is_closing || !sitemap_is_url_name(sitemap, sitemap_element_name(sitemap))) {
        return;
    }
    struct bytes name = bytes_of(sitemap->attribute, sitemap->attribute_size);
    if (bytes_equal(name, BYTES("rel"))) {
        sitemap->is_other_link = !bytes_equal_ignore_case(sitemap_text_of(sitemap), BYTES("alternate"));
    } else if (bytes_equal(name, BYTES("href")) && sitemap->entry.url.size == 0) {
        sitemap_take_url(sitemap, sitemap_text_of(sitemap));
        sitemap->is_url_of_link = true;
    }
}

/* sitemap->text is a line. */
static void sitemap_take_line(struct sitemap *sitemap) {
    struct bytes line = sitemap_text_of(sitemap);
    if (line.size == 0 || line.data[0] == '#') {
        return;
    }
    if (bytes_find(line, BYTES("://")) < line.size) {
        sitemap_take_url(sitemap, line);
    }
    sitemap_report(sitemap);
    sitemap_clear_entry(sitemap);
}

/* ---- The bytes as elements, attributes and texts ---- */

/* Not an XML parser: it finds its way through anything that has tags, and bounds all that it keeps. */
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

/* "#38" or "#x26"; false if it is neither. */
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

/* True if the byte was used; else the state before the entity takes it. */
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
    } else if (sitemap->is_in_url && byte == '&') {
        scan_start_entity(sitemap);
    } else if (sitemap->is_in_url) {
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
        return scan_to_mark(sitemap, byte, ']', sitemap->is_in_url);
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

static void sitemap_scan(struct sitemap *sitemap, struct bytes piece) {
    while (piece.size > 0) {
        if (sitemap->state == STATE_CONTENT && !sitemap->is_in_url) {
            piece = bytes_skip(piece, bytes_find_byte(piece, '<')); /* text that nobody wants */
        }
        if (piece.size > 0) {
            scan_byte(sitemap, piece.data[0]);
            piece = bytes_skip(piece, 1);
        }
    }
}

/* ---- The interface ---- */

void sitemap_init(struct sitemap *sitemap, sitemap_found *found, void *context) {
    *sitemap = (struct sitemap){.found = found, .context = context};
    sitemap_clear_entry(sitemap);
}

void sitemap_feed(struct sitemap *sitemap, struct bytes piece) {
    uint64_t left = SITEMAP_SIZE_MAX - sitemap->size;
    if (piece.size > left) {
        piece = bytes_slice(piece, 0, (size_t)left);
        sitemap->is_cut = true;
    }
    sitemap->size += piece.size;
    sitemap_scan(sitemap, piece);
}

void sitemap_finish(struct sitemap *sitemap) {
    if (sitemap->state == STATE_LINE && !sitemap->is_cut) {
        sitemap_take_line(sitemap); /* the last one of a plain text, which has no end */
    }
    if (sitemap->entry_level > 0 && sitemap->entry.url.size > 0) {
        sitemap_end_entry(sitemap);
    }
}

static enum err sitemap_feed_all(struct sitemap *sitemap, struct unpack *unpack, struct err_detail *detail) {
    enum unpack_event event = UNPACK_BYTES;
    while (event != UNPACK_END && !sitemap->is_cut) {
        enum err err = unpack_fill(unpack, &event, detail);
        if (err != ERR_OK) {
            return err;
        }
        struct bytes ready = unpack_ready(unpack);
        if (event == UNPACK_BYTES) {
            sitemap_feed(sitemap, ready);
            unpack_consume(unpack, ready.size);
        }
    }
    return ERR_OK;
}

enum err sitemap_read(struct sitemap *sitemap, struct source *source, struct err_detail *detail) {
    struct unpack unpack;
    enum err err = unpack_init(&unpack, NULL);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    unpack_open(&unpack, source);
    err = sitemap_feed_all(sitemap, &unpack, detail);
    sitemap_finish(sitemap);
    unpack_done(&unpack);
    return err;
}
