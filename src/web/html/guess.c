#include "web/html/guess.h"

#include "base/hex.h"
#include "base/utf8.h"

enum { URL_SIZE_MIN = 4, EXTENSION_SIZE_MAX = 5 };

void guess_start(struct guess *guess, bool has_comments, uint64_t offset) {
    guess->state = GUESS_IN_CODE;
    guess->has_comments = has_comments;
    guess->offset = offset;
    guess->text_size = guess->key_size = 0;
    guess->is_after_text = false;
}

/* clang-format off */
/* What a URL may be made of, with what page authors write into them unescaped. */
static const bool may_be_in_url[256] = {
    ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['0' ... '9'] = true, [0x80 ... 0xff] = true,
    ['-'] = true, ['.'] = true, ['_'] = true, ['~'] = true, [':'] = true, ['/'] = true, ['?'] = true,
    ['#'] = true, ['['] = true, [']'] = true, ['@'] = true, ['!'] = true, ['$'] = true, ['&'] = true,
    ['\''] = true, ['('] = true, [')'] = true, ['*'] = true, ['+'] = true, [','] = true, [';'] = true,
    ['='] = true, ['%'] = true,
};
/* clang-format on */

/* The host up to the next slash has a dot inside. */
static bool has_host(struct bytes text) {
    struct bytes host = bytes_slice(text, 0, bytes_find_byte(text, '/'));
    size_t dot = bytes_find_byte(host, '.');
    return dot > 0 && dot + 1 < host.size;
}

static bool has_known_extension(struct bytes text) {
    static const char extensions[] =
        " html htm php asp aspx jsp js mjs css json xml png jpg jpeg gif svg webp avif "
        "ico bmp woff woff2 ttf otf eot mp3 mp4 webm ogg m4a m4v mov m3u8 mpd pdf zip ";
    struct bytes path = bytes_slice(text, 0, bytes_find_byte(text, '?'));
    path.size = bytes_find_byte(path, '#');
    size_t size = 0;
    while (size < path.size && size <= EXTENSION_SIZE_MAX && path.data[path.size - size - 1] != '.') {
        size++;
    }
    if (size == 0 || size > EXTENSION_SIZE_MAX || size + 1 >= path.size) {
        return false;
    }
    char word[EXTENSION_SIZE_MAX + 3] = {' '};
    for (size_t i = 0; i < size; i++) {
        word[i + 1] = (char)byte_lower(path.data[path.size - size + i]);
    }
    word[size + 1] = ' ';
    return strstr(extensions, word) != NULL;
}

bool guess_is_url(struct bytes text) {
    if (text.size < URL_SIZE_MIN || text.size > GUESS_SIZE_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (!may_be_in_url[text.data[i]]) {
            return false;
        }
    }
    if (bytes_starts_with_ignore_case(text, BYTES("http://")) ||
        bytes_starts_with_ignore_case(text, BYTES("https://"))) {
        return has_host(bytes_skip(text, bytes_find_byte(text, '/') + 2));
    }
    if (bytes_starts_with_ignore_case(text, BYTES("//"))) {
        return has_host(bytes_skip(text, 2));
    }
    bool is_path = text.data[0] == '/' || bytes_starts_with_ignore_case(text, BYTES("./")) ||
                   bytes_starts_with_ignore_case(text, BYTES("../"));
    if (is_path) {
        struct bytes rest = bytes_skip(text, bytes_find_byte(text, '/') + 1);
        bool has_more = bytes_find_byte(rest, '/') < rest.size || bytes_find_byte(rest, '.') < rest.size;
        return rest.size > 0 && (byte_is_alpha(rest.data[0]) || byte_is_digit(rest.data[0])) && has_more;
    }
    return (byte_is_alpha(text.data[0]) || byte_is_digit(text.data[0])) && has_known_extension(text);
}

/*
 * Strings
 */

static void put_byte(struct guess *guess, uint8_t byte) {
    if (guess->text_size < GUESS_SIZE_MAX) {
        guess->text[guess->text_size++] = byte;
    } else {
        guess->text_size = GUESS_SIZE_MAX + 1;
    }
}

static void start_string(struct guess *guess, uint8_t quote) {
    guess->state = GUESS_IN_STRING;
    guess->quote = quote;
    guess->text_size = 0;
    guess->from = guess->offset;
}

static void on_code(struct guess *guess, uint8_t byte) {
    if (byte_is_space(byte)) {
        return;
    }
    bool is_key = byte == ':' && guess->is_after_text;
    if (byte == '"' || (guess->has_comments && (byte == '\'' || byte == '`'))) {
        start_string(guess, byte);
    } else if (byte == '/' && guess->has_comments) {
        guess->state = GUESS_AFTER_SLASH;
    } else {
        guess->key_size = is_key && guess->text_size <= GUESS_KEY_SIZE_MAX ? guess->text_size : 0;
        memcpy(guess->key, guess->text, guess->key_size);
    }
    guess->is_after_text = false;
}

static void guess_on_comment(struct guess *guess, uint8_t byte) {
    switch (guess->state) {
    case GUESS_AFTER_SLASH:
        guess->state = byte == '/' ? GUESS_IN_LINE_COMMENT : byte == '*' ? GUESS_IN_COMMENT : GUESS_IN_CODE;
        if (guess->state == GUESS_IN_CODE) {
            on_code(guess, byte);
        }
        break;
    case GUESS_IN_LINE_COMMENT:
        guess->state = byte == '\n' || byte == '\r' ? GUESS_IN_CODE : GUESS_IN_LINE_COMMENT;
        break;
    case GUESS_IN_COMMENT:
        guess->state = byte == '*' ? GUESS_AFTER_STAR : GUESS_IN_COMMENT;
        break;
    default:
        guess->state = byte == '/' ? GUESS_IN_CODE : byte == '*' ? GUESS_AFTER_STAR : GUESS_IN_COMMENT;
    }
}

/* The byte behind a '\'. */
static void on_escape(struct guess *guess, uint8_t byte) {
    guess->state = GUESS_IN_STRING;
    if (byte == 'u' || byte == 'x') {
        guess->state = GUESS_IN_HEX;
        guess->hex_left = byte == 'u' ? 4 : 2;
        guess->hex_value = 0;
    } else if (byte == 'n' || byte == 't' || byte == 'r' || byte == 'b' || byte == 'f') {
        put_byte(guess, ' '); /* so that it is no URL */
    } else if (byte != '\n' && byte != '\r') {
        put_byte(guess, byte);
    }
}

static void on_hex(struct guess *guess, uint8_t byte) {
    int digit = hex_digit(byte);
    guess->hex_value = guess->hex_value << 4 | (uint32_t)(digit < 0 ? 0 : digit);
    guess->hex_left--;
    if (digit < 0) {
        put_byte(guess, ' ');
        guess->state = GUESS_IN_STRING;
    } else if (guess->hex_left == 0) {
        bool is_surrogate = guess->hex_value >= 0xd800 && guess->hex_value <= 0xdfff;
        uint8_t encoded[UTF8_LENGTH_MAX];
        size_t size = utf8_encode(is_surrogate ? UTF8_REPLACEMENT : guess->hex_value, encoded);
        for (size_t i = 0; i < size; i++) {
            put_byte(guess, encoded[i]);
        }
        guess->state = GUESS_IN_STRING;
    }
}

/* True if the string is over. */
static bool on_string(struct guess *guess, uint8_t byte) {
    if (byte == guess->quote) {
        guess->state = GUESS_IN_CODE;
        guess->is_after_text = guess->text_size <= GUESS_SIZE_MAX;
        return guess->is_after_text;
    }
    if (byte == '\\') {
        guess->state = GUESS_AFTER_BACKSLASH;
    } else if ((byte == '\n' || byte == '\r') && guess->quote != '`') {
        guess->state = GUESS_IN_CODE; /* it was no string, or the quote was one of a regular expression */
    } else {
        put_byte(guess, byte);
    }
    return false;
}

/* True if a string is over. */
static bool on_byte(struct guess *guess, uint8_t byte) {
    switch (guess->state) {
    case GUESS_IN_CODE:
        on_code(guess, byte);
        return false;
    case GUESS_IN_STRING:
        return on_string(guess, byte);
    case GUESS_AFTER_BACKSLASH:
        on_escape(guess, byte);
        return false;
    case GUESS_IN_HEX:
        on_hex(guess, byte);
        return false;
    case GUESS_AFTER_SLASH:
    case GUESS_IN_LINE_COMMENT:
    case GUESS_IN_COMMENT:
    case GUESS_AFTER_STAR:
        guess_on_comment(guess, byte);
        break;
    }
    return false;
}

bool guess_next(struct guess *guess, struct bytes *piece, struct guess_string *ret_string) {
    for (size_t i = 0; i < piece->size; i++) {
        guess->offset++;
        if (on_byte(guess, piece->data[i])) {
            *piece = bytes_skip(*piece, i + 1);
            *ret_string = (struct guess_string){bytes_of(guess->text, guess->text_size),
                                                bytes_of(guess->key, guess->key_size), guess->from};
            return true;
        }
    }
    *piece = bytes_skip(*piece, piece->size);
    return false;
}

/* ---- more than one in a string ---- */

/* The part before the first comma, without spaces around it and what follows in it: "1x", "480w". */
static struct bytes next_member(struct bytes *rest) {
    size_t comma = bytes_find_byte(*rest, ',');
    struct bytes part = bytes_trim(bytes_slice(*rest, 0, comma));
    *rest = bytes_skip(*rest, comma < rest->size ? comma + 1 : comma);
    return bytes_slice(part, 0, bytes_find_byte(part, ' '));
}

static bool is_rooted(struct bytes text) {
    return text.data[0] == '/' || text.data[0] == '.' ||
           bytes_starts_with_ignore_case(text, BYTES("http://")) ||
           bytes_starts_with_ignore_case(text, BYTES("https://"));
}

/* All of them begin as URLs do, or all of them end so: "/a,b.png" is one. */
static bool is_list(struct bytes text) {
    bool are_rooted = true;
    bool are_named = true;
    if (bytes_find_byte(text, ',') == text.size) {
        return false;
    }
    while (text.size > 0) {
        struct bytes member = next_member(&text);
        if (!guess_is_url(member)) {
            return false;
        }
        are_rooted = are_rooted && is_rooted(member);
        are_named = are_named && has_known_extension(member);
    }
    return are_rooted || are_named;
}

/* True if it is a URL, or a list of them. */
static bool find_plain(struct bytes text, guess_found *found, void *context) {
    if (is_list(text)) {
        while (text.size > 0) {
            found(context, next_member(&text));
        }
        return true;
    }
    bool is_url = guess_is_url(text);
    if (is_url) {
        found(context, text);
    }
    return is_url;
}

/* Strings in double quotes, with the escapes of JSON. */
static void find_quoted(struct bytes text, guess_found *found, void *context) {
    struct guess inner;
    struct guess_string string;
    guess_start(&inner, false, 0);
    while (guess_next(&inner, &text, &string)) {
        (void)find_plain(string.text, found, context);
    }
}

/* name='value' and name=value of HTML. */
static void find_attributes(struct bytes text, guess_found *found, void *context) {
    for (size_t at = bytes_find_byte(text, '='); at < text.size; at = bytes_find_byte(text, '=')) {
        text = bytes_skip(text, at + 1);
        bool is_quoted = text.size > 0 && text.data[0] == '\'';
        struct bytes value = bytes_skip(text, is_quoted);
        size_t size = 0;
        while (size < value.size &&
               (is_quoted ? value.data[size] != '\''
                          : value.data[size] != '>' && !byte_is_space(value.data[size]))) {
            size++;
        }
        value.size = size;
        if (size > 0 && value.data[0] != '"') {
            (void)find_plain(bytes_trim(value), found, context);
        }
    }
}

void guess_find(struct bytes text, guess_found *found, void *context) {
    text = bytes_trim(text);
    if (find_plain(text, found, context)) {
        return;
    }
    find_quoted(text, found, context);
    if (bytes_find_byte(text, '<') < text.size) {
        find_attributes(text, found, context);
    }
}
