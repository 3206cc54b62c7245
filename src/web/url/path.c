#include "web/url/path.h"

#include "web/url/percent.h"

static bool ends_path(struct bytes text, size_t index) {
    return index == text.size || text.data[index] == '?' || text.data[index] == '#';
}

/* How many dots a segment stands for: 1 for ".", 2 for "..", each also as %2e; 0 for any other segment. */
static unsigned dots_of(struct bytes segment) {
    unsigned dots = 0;
    while (segment.size > 0 && dots <= 2) {
        uint8_t byte = segment.data[0];
        if (byte == '.') {
            segment = bytes_skip(segment, 1);
        } else if (percent_decode(segment, &byte) && byte == '.') {
            segment = bytes_skip(segment, 3);
        } else {
            return 0;
        }
        dots++;
    }
    return dots <= 2 ? dots : 0;
}

static bool is_drive_letter(struct bytes text) {
    return text.size == 2 && byte_is_alpha(text.data[0]) && (text.data[1] == ':' || text.data[1] == '|');
}

bool path_starts_with_drive_letter(struct bytes text) {
    if (text.size < 2 || !is_drive_letter(bytes_slice(text, 0, 2))) {
        return false;
    }
    return ends_path(text, 2) || text.data[2] == '/' || text.data[2] == '\\';
}

/* The path as far as it is written. */
static struct bytes written(const struct url *url) {
    return bytes_skip(url_href(url), url->path.from);
}

void path_shorten(struct url *url) {
    struct bytes path = written(url);
    if (url->scheme_type == URL_SCHEME_FILE && path.size == 3 && is_drive_letter(bytes_skip(path, 1))) {
        return;
    }
    size_t size = path.size;
    while (size > 0 && path.data[size - 1] != '/') {
        size--;
    }
    buf_truncate(&url->href, url->path.from + (size > 0 ? size - 1 : 0));
}

static void put_segment(struct url *url, struct bytes segment, bool is_last) {
    unsigned dots = dots_of(segment);
    if (dots == 2) {
        path_shorten(url);
    }
    if (dots > 0) {
        if (is_last) {
            buf_put_byte(&url->href, '/');
        }
        return;
    }
    bool is_root_of_file = url->scheme_type == URL_SCHEME_FILE && written(url).size == 0;
    buf_put_byte(&url->href, '/');
    if (is_root_of_file && is_drive_letter(segment)) {
        buf_put_byte(&url->href, segment.data[0]);
        buf_put_byte(&url->href, ':');
        return;
    }
    percent_put(&url->href, segment, PERCENT_PATH);
}

/*
 * Length of the path if it can be copied as it is: nothing to escape, no segment that may be dots, no
 * backslash, no drive letter. Otherwise 0. Most paths can.
 */
static size_t plain_length(const struct url *url, struct bytes text) {
    if (url->scheme_type == URL_SCHEME_FILE) {
        return 0;
    }
    uint8_t before = '/';
    size_t i = 0;
    for (; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (percent_in_set(byte, PERCENT_PATH) || byte == '\\') {
            break;
        }
        if (before == '/' && (byte == '.' || byte == '%')) {
            return 0;
        }
        before = byte;
    }
    return ends_path(text, i) ? i : 0;
}

size_t path_put_segments(struct url *url, struct bytes text) {
    size_t plain = plain_length(url, text);
    if (plain > 0) {
        buf_put_byte(&url->href, '/');
        buf_put(&url->href, bytes_slice(text, 0, plain));
        return plain;
    }
    for (size_t from = 0;;) {
        size_t to = from;
        while (!ends_path(text, to) && text.data[to] != '/' &&
               !(text.data[to] == '\\' && url_is_special(url))) {
            to++;
        }
        bool is_last = ends_path(text, to);
        put_segment(url, bytes_slice(text, from, to), is_last);
        if (is_last) {
            return to;
        }
        from = to + 1;
    }
}

/*
 * Without a host, a path that starts with "//" would read as one. The standard writes "/." before it, which
 * is not part of the path.
 */
void path_end(struct url *url) {
    struct bytes path = written(url);
    if (url->host_type == URL_HOST_NONE && bytes_starts_with(path, BYTES("//")) &&
        buf_reserve(&url->href, 2) == ERR_OK) {
        uint8_t *at = url->href.data + url->path.from;
        memmove(at + 2, at, path.size);
        memcpy(at, "/.", 2);
        url->href.size += 2;
        url->path.from += 2;
    }
    url->path.to = (uint32_t)url->href.size;
}
