#include "web/html/encoding.h"
#include "web/type/mime_type.h"

enum { LABEL_SIZE_MAX = 32 };

/*
 * iconv's tables differ from the standard's in a few characters that hardly occur in URLs; if it has
 * several of one family, the one that browsers mean is named. The "replacement" encodings are those in which
 * text could hide from whoever does not know them: nothing of them is decoded.
 */
static const struct encoding encodings[] = {
    {"UTF-8", NULL, "utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8", false},
    {"windows-1252", "CP1252",
     "windows-1252 iso-8859-1 us-ascii latin1 ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 "
     "iso-ir-100 "
     "iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 x-cp1252",
     false},
    {"IBM866", "IBM866", "866 cp866 csibm866 ibm866", false},
    {"ISO-8859-2", "ISO-8859-2",
     "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2", false},
    {"ISO-8859-3", "ISO-8859-3",
     "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3", false},
    {"ISO-8859-4", "ISO-8859-4",
     "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4", false},
    {"ISO-8859-5", "ISO-8859-5",
     "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
     false},
    {"ISO-8859-6", "ISO-8859-6",
     "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i "
     "iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
     false},
    {"ISO-8859-7", "ISO-8859-7",
     "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
     "iso_8859-7:1987 sun_eu_greek",
     false},
    {"ISO-8859-8", "ISO-8859-8",
     "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
     "iso_8859-8:1988 visual",
     false},
    {"ISO-8859-8-I", "ISO-8859-8", "csiso88598i iso-8859-8-i logical", false},
    {"ISO-8859-10", "ISO-8859-10", "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
     false},
    {"ISO-8859-13", "ISO-8859-13", "iso-8859-13 iso8859-13 iso885913", false},
    {"ISO-8859-14", "ISO-8859-14", "iso-8859-14 iso8859-14 iso885914", false},
    {"ISO-8859-15", "ISO-8859-15", "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9", false},
    {"ISO-8859-16", "ISO-8859-16", "iso-8859-16", false},
    {"KOI8-R", "KOI8-R", "cskoi8r koi koi8 koi8-r koi8_r", false},
    {"KOI8-U", "KOI8-U", "koi8-ru koi8-u", false},
    {"macintosh", "MACINTOSH", "csmacintosh mac macintosh x-mac-roman", false},
    {"windows-874", "CP874", "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874", false},
    {"windows-1250", "CP1250", "cp1250 windows-1250 x-cp1250", false},
    {"windows-1251", "CP1251", "cp1251 windows-1251 x-cp1251", false},
    {"windows-1253", "CP1253", "cp1253 windows-1253 x-cp1253", false},
    {"windows-1254", "CP1254",
     "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
     "windows-1254 x-cp1254",
     false},
    {"windows-1255", "CP1255", "cp1255 windows-1255 x-cp1255", false},
    {"windows-1256", "CP1256", "cp1256 windows-1256 x-cp1256", false},
    {"windows-1257", "CP1257", "cp1257 windows-1257 x-cp1257", false},
    {"windows-1258", "CP1258", "cp1258 windows-1258 x-cp1258", false},
    {"x-mac-cyrillic", "MAC-UK", "x-mac-cyrillic x-mac-ukrainian", false},
    {"GBK", "GBK", "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk", false},
    {"gb18030", "GB18030", "gb18030", false},
    {"Big5", "BIG5-HKSCS", "big5 big5-hkscs cn-big5 csbig5 x-x-big5", false},
    {"EUC-JP", "EUC-JP-MS", "cseucpkdfmtjapanese euc-jp x-euc-jp", false},
    {"ISO-2022-JP", "ISO-2022-JP", "csiso2022jp iso-2022-jp", true},
    {"Shift_JIS", "CP932", "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis", false},
    {"EUC-KR", "CP949",
     "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 "
     "windows-949",
     false},
    {"replacement", NULL, "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement",
     false},
    {"UTF-16BE", "UTF-16BE", "unicodefffe utf-16be", true},
    {"UTF-16LE", "UTF-16LE", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le", true},
    {"x-user-defined", NULL, "x-user-defined", false},
};
enum { ENCODINGS_COUNT = sizeof encodings / sizeof *encodings };

const struct encoding *const encoding_utf8 = &encodings[0];
static const struct encoding *const encoding_windows_1252 = &encodings[1];

static bool has_label(const struct encoding *encoding, struct bytes label) {
    struct bytes rest = bytes_of_string(encoding->labels);
    struct bytes candidate;
    while (bytes_split(&rest, ' ', &candidate)) {
        if (bytes_equal_ignore_case(candidate, label)) {
            return true;
        }
    }
    return false;
}

static struct bytes trim(struct bytes text) {
    bytes_skip_spaces(&text);
    while (text.size > 0 && byte_is_space(text.data[text.size - 1])) {
        text.size--;
    }
    return text;
}

const struct encoding *encoding_at(size_t index) {
    return index < ENCODINGS_COUNT ? &encodings[index] : NULL;
}

const struct encoding *encoding_of_label(struct bytes label) {
    label = trim(label);
    if (label.size == 0 || label.size > LABEL_SIZE_MAX || bytes_find_byte(label, ' ') < label.size) {
        return NULL;
    }
    for (size_t i = 0; i < ENCODINGS_COUNT; i++) {
        if (has_label(&encodings[i], label)) {
            return &encodings[i];
        }
    }
    return NULL;
}

const struct encoding *encoding_of_bom(struct bytes head, size_t *ret_size) {
    if (bytes_starts_with(head, BYTES("\xef\xbb\xbf"))) {
        *ret_size = 3;
        return encoding_utf8;
    }
    bool is_big = bytes_starts_with(head, BYTES("\xfe\xff"));
    if (!is_big && !bytes_starts_with(head, BYTES("\xff\xfe"))) {
        return NULL;
    }
    *ret_size = 2;
    return encoding_of_label(is_big ? BYTES("utf-16be") : BYTES("utf-16le"));
}

/* What encoding="…" in the declaration at the start of an XML document says, or NULL. */
static const struct encoding *encoding_of_xml(struct bytes head) {
    struct bytes declaration = bytes_slice(head, 0, bytes_find_byte(head, '>'));
    size_t at = bytes_find(declaration, BYTES("encoding="));
    if (!bytes_starts_with(head, BYTES("<?xml")) || at + 10 >= declaration.size) {
        return NULL;
    }
    uint8_t quote = declaration.data[at + 9];
    struct bytes label = bytes_skip(declaration, at + 10);
    return encoding_of_label(bytes_slice(label, 0, bytes_find_byte(label, quote)));
}

const struct encoding *encoding_of_type(struct bytes content_type) {
    struct mime_type type;
    (void)mime_type_extract(&type, content_type);
    return encoding_of_label(mime_type_charset(&type));
}

/*
 * The standard's "prescan a byte stream to determine its encoding". It is not the tokenizer: it knows no
 * scripts and no titles, and a page may depend on just that.
 * https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding
 */

/* Up to a quote, or to a space or '>' if there is none. False if the quote is not closed. */
static bool encoding_take_value(struct bytes *text, struct bytes *ret_value) {
    uint8_t quote = text->data[0];
    if (quote == '"' || quote == '\'') {
        struct bytes inside = bytes_skip(*text, 1);
        size_t size = bytes_find_byte(inside, quote);
        *ret_value = bytes_slice(inside, 0, size);
        *text = bytes_skip(inside, size < inside.size ? size + 1 : size);
        return size < inside.size;
    }
    size_t size = 0;
    while (size < text->size && !byte_is_space(text->data[size]) && text->data[size] != '>') {
        size++;
    }
    *ret_value = bytes_slice(*text, 0, size);
    *text = bytes_skip(*text, size);
    return text->size > 0;
}

/* "Get an attribute": false at the end of the tag, or of the bytes. */
static bool next_attribute(struct bytes *text, struct bytes *ret_name, struct bytes *ret_value) {
    while (text->size > 0 && (byte_is_space(text->data[0]) || text->data[0] == '/')) {
        *text = bytes_skip(*text, 1);
    }
    if (text->size == 0 || text->data[0] == '>') {
        return false;
    }
    size_t size = text->data[0] == '=' ? 1 : 0;
    while (size < text->size && !byte_is_space(text->data[size]) && text->data[size] != '/' &&
           text->data[size] != '>' && text->data[size] != '=') {
        size++;
    }
    *ret_name = bytes_slice(*text, 0, size);
    *ret_value = (struct bytes){NULL, 0};
    *text = bytes_skip(*text, size);
    bytes_skip_spaces(text);
    if (text->size == 0 || text->data[0] != '=') {
        return text->size > 0;
    }
    *text = bytes_skip(*text, 1);
    bytes_skip_spaces(text);
    if (text->size == 0 || text->data[0] == '>') {
        return text->size > 0;
    }
    return encoding_take_value(text, ret_value);
}

/* "text/html; charset=x" in an attribute: all that follows "charset" and '='. */
static struct bytes charset_in_content(struct bytes content) {
    while (content.size > 0) {
        if (!bytes_starts_with_ignore_case(content, BYTES("charset"))) {
            content = bytes_skip(content, 1);
            continue;
        }
        content = bytes_skip(content, 7);
        bytes_skip_spaces(&content);
        if (content.size == 0 || content.data[0] != '=') {
            continue;
        }
        content = bytes_skip(content, 1);
        bytes_skip_spaces(&content);
        struct bytes value = {NULL, 0};
        if (content.size > 0 && (content.data[0] == '"' || content.data[0] == '\'')) {
            return encoding_take_value(&content, &value) ? value : (struct bytes){NULL, 0};
        }
        size_t size = 0;
        while (size < content.size && !byte_is_space(content.data[size]) && content.data[size] != ';') {
            size++;
        }
        return bytes_slice(content, 0, size);
    }
    return (struct bytes){NULL, 0};
}

/* A document whose declaration could be read is not in UTF-16, whatever it declares. */
static const struct encoding *encoding_usable(const struct encoding *encoding) {
    if (encoding == NULL) {
        return NULL;
    }
    if (bytes_starts_with(bytes_of_string(encoding->name), BYTES("UTF-16"))) {
        return encoding_utf8;
    }
    if (strcmp(encoding->name, "x-user-defined") == 0) {
        return encoding_windows_1252;
    }
    return encoding;
}

/* Behind "<meta": what it declares, or NULL. *text is moved behind its attributes. */
static const struct encoding *read_meta(struct bytes *text) {
    bool got_pragma = false;
    bool needs_pragma = false;
    bool has_charset = false;
    unsigned seen = 0; /* of the three attributes; the first one counts */
    const struct encoding *encoding = NULL;
    struct bytes name;
    struct bytes value;
    while (next_attribute(text, &name, &value)) {
        if (bytes_equal_ignore_case(name, BYTES("http-equiv")) && (seen & 1) == 0) {
            seen |= 1;
            got_pragma = got_pragma || bytes_equal_ignore_case(value, BYTES("content-type"));
        } else if (bytes_equal_ignore_case(name, BYTES("content")) && (seen & 2) == 0) {
            seen |= 2;
            const struct encoding *found = encoding_of_label(charset_in_content(value));
            if (found != NULL && !has_charset) {
                encoding = found;
                needs_pragma = true;
                has_charset = true;
            }
        } else if (bytes_equal_ignore_case(name, BYTES("charset")) && (seen & 4) == 0) {
            seen |= 4;
            encoding = encoding_of_label(value);
            needs_pragma = false;
            has_charset = true;
        }
    }
    return needs_pragma && !got_pragma ? NULL : encoding_usable(encoding);
}

/* Over a comment, a tag or a declaration that is no meta. */
static void skip_markup(struct bytes *text) {
    struct bytes name;
    struct bytes value;
    if (bytes_starts_with_ignore_case(*text, BYTES("<!--"))) {
        struct bytes rest = bytes_skip(*text, 2); /* the dashes of "<!-->" close it, too */
        size_t end = bytes_find(rest, BYTES("-->"));
        *text = bytes_skip(rest, end < rest.size ? end + 3 : end);
        return;
    }
    size_t from = text->size > 1 && text->data[1] == '/' ? 2 : 1;
    if (text->size > from && byte_is_alpha(text->data[from])) {
        while (from < text->size && !byte_is_space(text->data[from]) && text->data[from] != '>') {
            from++;
        }
        *text = bytes_skip(*text, from);
        while (next_attribute(text, &name, &value)) {
        }
        return;
    }
    bool is_declaration =
        text->size > 1 && (text->data[1] == '!' || text->data[1] == '/' || text->data[1] == '?');
    size_t size = is_declaration ? bytes_find_byte(*text, '>') : 1;
    *text = bytes_skip(*text, size);
}

/* What a <meta> in the first bytes of an HTML document declares, or NULL. */
static const struct encoding *encoding_prescan(struct bytes head) {
    struct bytes text = bytes_slice(head, 0, head.size < ENCODING_HEAD_SIZE ? head.size : ENCODING_HEAD_SIZE);
    for (;;) {
        text = bytes_skip(text, bytes_find_byte(text, '<'));
        if (text.size == 0) {
            return NULL;
        }
        bool is_meta = bytes_starts_with_ignore_case(text, BYTES("<meta")) && text.size > 5 &&
                       (byte_is_space(text.data[5]) || text.data[5] == '/');
        if (!is_meta) {
            skip_markup(&text);
            continue;
        }
        text = bytes_skip(text, 5);
        const struct encoding *encoding = read_meta(&text);
        if (encoding != NULL) {
            return encoding;
        }
    }
}

const struct encoding *encoding_declared(const struct encoding *header, struct bytes head,
                                         enum encoding_document document) {
    size_t bom_size;
    const struct encoding *encoding = encoding_of_bom(head, &bom_size);
    encoding = encoding != NULL ? encoding : header;
    if (encoding == NULL && document == ENCODING_HTML) {
        encoding = encoding_prescan(head);
    } else if (encoding == NULL && document == ENCODING_XML) {
        encoding = encoding_of_xml(head);
        encoding =
            encoding != NULL && encoding->is_wide ? encoding_utf8 : encoding; /* it was read as ASCII */
    }
    return encoding;
}

const struct encoding *encoding_detect(const struct encoding *header, struct bytes head,
                                       enum encoding_document document) {
    const struct encoding *encoding = encoding_declared(header, head, document);
    if (encoding == NULL) {
        encoding = document == ENCODING_HTML ? encoding_windows_1252 : encoding_utf8;
    }
    return encoding;
}
