#include "crawl/rules/robots_pattern.h"

#include "web/url/percent.h"

void robots_text_put(struct robots_text *output, uint8_t byte) {
    if (output->size < output->capacity) {
        output->data[output->size] = byte;
    }
    output->size++;
}

static void robots_pattern_put_escape(struct robots_text *output, uint8_t byte) {
    static const char digits[] = "0123456789ABCDEF";
    robots_text_put(output, '%');
    robots_text_put(output, (uint8_t)digits[byte >> 4]);
    robots_text_put(output, (uint8_t)digits[byte & 15]);
}

static bool robots_pattern_is_unreserved(uint8_t byte) {
    return byte_is_alnum(byte) || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

static bool robots_pattern_is_in(uint8_t byte, const char *set) {
    return byte != 0 && strchr(set, byte) != NULL;
}

/* An octet that was not escaped. '*' and '$' are, since they mean something in a pattern, and so is a '%'
 * that begins no escape: with what is decoded behind it, it could become one. */
static void robots_pattern_put_plain(struct robots_text *output, uint8_t byte) {
    if (robots_pattern_is_unreserved(byte) || robots_pattern_is_in(byte, ":/?#[]@!&'()+,;=")) {
        robots_text_put(output, byte);
    } else {
        robots_pattern_put_escape(output, byte);
    }
}

void robots_normalise(struct robots_text *output, struct bytes text, enum robots_form form, bool is_pattern) {
    bool is_query = false;
    bool is_after_star = false; /* "**" is "*" */
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        uint8_t decoded;
        bool is_star = is_pattern && byte == '*';
        if (is_star) {
            if (!is_after_star) {
                robots_text_put(output, byte);
            }
        } else if (percent_decode(bytes_skip(text, i), &decoded)) {
            i += 2;
            bool is_open = form == ROBOTS_FORM_OPEN && is_query && robots_pattern_is_in(decoded, ":/?@");
            if (robots_pattern_is_unreserved(decoded) || is_open) {
                robots_text_put(output, decoded);
            } else {
                robots_pattern_put_escape(output, decoded);
            }
        } else {
            is_query = is_query || byte == '?';
            robots_pattern_put_plain(output, byte);
        }
        is_after_star = is_star;
    }
}

/* memmem() is linear in both, where a plain search takes their product: "aaa…b" in "aaa…". */
static size_t robots_pattern_find(struct bytes text, struct bytes piece) {
    if (piece.size == 0 || piece.size > text.size) {
        return piece.size == 0 ? 0 : text.size;
    }
    const uint8_t *found = memmem(text.data, text.size, piece.data, piece.size);
    return found == NULL ? text.size : (size_t)(found - text.data);
}

/*
 * Between stars the first place where a piece fits is as good as any later one, so nothing is ever tried
 * twice and the time is linear. A last piece that is anchored must fit at the end.
 */
bool robots_matches(struct bytes pattern, bool is_anchored, struct bytes path) {
    size_t star = bytes_find_byte(pattern, '*');
    if (!bytes_starts_with(path, bytes_slice(pattern, 0, star))) {
        return false;
    }
    path = bytes_skip(path, star);
    while (star < pattern.size) {
        pattern = bytes_skip(pattern, star + 1);
        star = bytes_find_byte(pattern, '*');
        struct bytes piece = bytes_slice(pattern, 0, star);
        if (is_anchored && star == pattern.size) {
            return bytes_ends_with(path, piece);
        }
        size_t place = robots_pattern_find(path, piece);
        if (piece.size > path.size - place) {
            return false;
        }
        path = bytes_skip(path, place + piece.size);
    }
    return !is_anchored || path.size == 0;
}
