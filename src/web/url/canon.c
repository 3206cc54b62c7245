#include "web/url/canon.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "web/url/idna.h"
#include "web/url/input.h"
#include "web/url/ipv4.h"
#include "web/url/ipv6.h"
#include "web/url/percent.h"
#include "web/url/session.h"
#include "web/url/url.h"

enum {
    /* Escaping makes three bytes of one, query_sort() needs the room of the query once more. */
    CANON_SIZE_MAX = 6 * URL_SIZE_MAX + 64,
    /* The second pass confirms what the first one did for nearly all; more take a puzzle made by hand. */
    PASSES_MAX = 32,
};

/* A URL taken apart; slices of the text. */
struct parts {
    struct bytes scheme;
    struct bytes host; /* empty if there is none */
    struct bytes port; /* digits, may be empty */
    struct bytes path;
    struct bytes query;
};

void canon_init(struct canon *canon) {
    *canon = (struct canon){.host_start = 0};
    buf_init(&canon->url, CANON_SIZE_MAX);
    buf_init(&canon->previous, CANON_SIZE_MAX);
}

void canon_done(struct canon *canon) {
    buf_done(&canon->url);
    buf_done(&canon->previous);
    canon_init(canon);
}

/*
 * Taking apart
 */

/* Length of the host and what belongs to it: up to the path or the query. */
static size_t authority_length(struct bytes text) {
    size_t i = 0;
    while (i < text.size && text.data[i] != '/' && text.data[i] != '?' && text.data[i] != '#') {
        i++;
    }
    return i;
}

/* "example.org:8080/x": what looks like a scheme is a host, since a port follows. But "tel:123" is none. */
static bool is_host_with_port(struct bytes text, size_t colon) {
    struct bytes name = bytes_slice(text, 0, colon);
    struct bytes after = bytes_skip(text, colon + 1);
    struct bytes port = bytes_slice(after, 0, authority_length(after));
    uint64_t number;
    return bytes_to_u64(port, UINT16_MAX, &number) &&
           (bytes_find_byte(name, '.') < name.size || bytes_equal_ignore_case(name, BYTES("localhost")));
}

static size_t web_prefix_length(struct bytes text) {
    if (bytes_starts_with_ignore_case(text, BYTES("http://"))) {
        return strlen("http://");
    }
    return bytes_starts_with_ignore_case(text, BYTES("https://")) ? strlen("https://") : 0;
}

/* "http://https://x" is a frequent slip of authors: the last one counts. */
static struct bytes skip_repeated_prefix(struct bytes text) {
    size_t length = web_prefix_length(text);
    while (length > 0 && web_prefix_length(bytes_skip(text, length)) > 0) {
        text = bytes_skip(text, length);
        length = web_prefix_length(text);
    }
    return text;
}

static bool split_authority(struct bytes authority, struct parts *parts) {
    for (size_t at = bytes_find_byte(authority, '@'); at < authority.size;
         at = bytes_find_byte(authority, '@')) {
        authority = bytes_skip(authority, at + 1);
    }
    size_t bracket = 0;
    if (authority.size > 0 && authority.data[0] == '[') {
        bracket = bytes_find_byte(authority, ']');
    }
    size_t colon = bracket + bytes_find_byte(bytes_skip(authority, bracket), ':');
    parts->host = bytes_slice(authority, 0, colon);
    parts->port = bytes_skip(authority, colon < authority.size ? colon + 1 : colon);
    for (size_t i = 0; i < parts->port.size; i++) {
        if (!byte_is_digit(parts->port.data[i])) {
            return false;
        }
    }
    return true;
}

static enum err split(struct bytes text, struct parts *parts, struct err_detail *detail) {
    text = skip_repeated_prefix(text);
    size_t length = input_scheme_length(text);
    ASSERT(length > 0);
    *parts = (struct parts){.scheme = bytes_slice(text, 0, length)};
    bool is_web = bytes_equal_ignore_case(parts->scheme, BYTES("http")) ||
                  bytes_equal_ignore_case(parts->scheme, BYTES("https"));
    text = bytes_skip(text, length + 1);
    text = bytes_slice(text, 0, bytes_find_byte(text, '#'));
    bool has_authority = is_web || bytes_starts_with(text, BYTES("//"));
    size_t slashes = has_authority && !is_web ? 2 : 0;
    while (is_web && slashes < text.size && text.data[slashes] == '/') {
        slashes++; /* http:////www.vikings.com has been seen */
    }
    text = bytes_skip(text, slashes);
    if (has_authority) {
        size_t authority_size = authority_length(text);
        if (!split_authority(bytes_slice(text, 0, authority_size), parts)) {
            return err_set(detail, ERR_INVALID, "the port is not a number");
        }
        text = bytes_skip(text, authority_size);
    }
    if (is_web && parts->host.size == 0) {
        return err_set(detail, ERR_INVALID, "the host is missing");
    }
    size_t path_size = bytes_find_byte(text, '?');
    parts->path = bytes_slice(text, 0, path_size);
    parts->query = bytes_skip(text, path_size < text.size ? path_size + 1 : path_size);
    return ERR_OK;
}

/*
 * Rewriting the end of the buffer, from byte `from` on, in place
 */

static bool needs_escape(uint8_t byte) {
    return byte <= ' ' || byte >= 0x7f || byte == '#' || byte == '%';
}

/* Whether unescaping, escaping and lower case would change nothing, as for most paths and queries. */
static bool canon_is_plain(struct bytes text) {
    unsigned changes = 0;
    for (size_t i = 0; i < text.size; i++) {
        changes |= needs_escape(text.data[i]) || byte_lower(text.data[i]) != text.data[i];
    }
    return changes == 0;
}

static void lower(struct buf *buf, size_t from) {
    for (size_t i = from; i < buf->size; i++) {
        buf->data[i] = byte_lower(buf->data[i]);
    }
}

/*
 * Unescape until nothing is left to unescape. What one escape leaves may complete another ("%25" + "41"), but
 * two never overlap, so looking back at the three last bytes after each byte finds them all in one pass.
 */
static void unescape(struct buf *buf, size_t from) {
    size_t escape = bytes_find_byte(bytes_skip(buf_bytes(buf), from), '%');
    size_t kept = from + escape;
    for (size_t i = kept; i < buf->size; i++) {
        buf->data[kept++] = buf->data[i];
        uint8_t byte;
        while (kept >= from + 3 && percent_decode(bytes_of(buf->data + kept - 3, 3), &byte)) {
            kept -= 3;
            buf->data[kept++] = byte;
        }
    }
    buf_truncate(buf, kept);
}

/* Escape once, in small letters, since all ends in lower case. */
static void escape(struct buf *buf, size_t from) {
    size_t count = 0;
    for (size_t i = from; i < buf->size; i++) {
        count += needs_escape(buf->data[i]) ? 1 : 0;
    }
    if (count == 0 || buf_reserve(buf, 2 * count) != ERR_OK) {
        return;
    }
    static const char digits[] = "0123456789abcdef";
    size_t to = buf->size + 2 * count;
    size_t i = buf->size;
    buf->size = to;
    while (i > from && to > i) {
        uint8_t byte = buf->data[--i];
        if (needs_escape(byte)) {
            buf->data[--to] = (uint8_t)digits[byte & 0x0f];
            buf->data[--to] = (uint8_t)digits[byte >> 4];
            buf->data[--to] = '%';
        } else {
            buf->data[--to] = byte;
        }
    }
}

/* Whether there is anything to resolve or collapse. */
static bool has_empty_or_dot_segment(struct bytes path) {
    for (size_t i = 1; i < path.size; i++) {
        if (path.data[i - 1] == '/' && (path.data[i] == '.' || path.data[i] == '/')) {
            return true;
        }
    }
    return false;
}

/* Resolve "." and "..", as `surt` does it: ".." at the root stays, if nothing follows that takes it away. */
static void resolve_dots(struct buf *buf, size_t from) {
    size_t kept = from;
    for (size_t i = from; i < buf->size;) {
        size_t end = i + 1;
        while (end < buf->size && buf->data[end] != '/') {
            end++;
        }
        struct bytes segment = bytes_of(buf->data + i, end - i); /* with its slash */
        if (bytes_equal(segment, BYTES("/..")) && kept > from) {
            while (buf->data[--kept] != '/') {
            }
        } else if (!bytes_equal(segment, BYTES("/."))) {
            memmove(buf->data + kept, segment.data, segment.size);
            kept += segment.size;
        }
        i = end;
    }
    buf_truncate(buf, kept);
}

/* Keep one byte of each run of this byte. */
static void collapse(struct buf *buf, size_t from, uint8_t byte) {
    size_t kept = from;
    for (size_t i = from; i < buf->size; i++) {
        if (buf->data[i] != byte || kept == from || buf->data[kept - 1] != byte) {
            buf->data[kept++] = buf->data[i];
        }
    }
    buf_truncate(buf, kept);
}

static void remove_range(struct buf *buf, size_t from, size_t count) {
    if (count > 0) {
        memmove(buf->data + from, buf->data + from + count, buf->size - from - count);
        buf_truncate(buf, buf->size - count);
    }
}

/*
 * Host
 */

/* To ASCII if it is not; a host that has no ASCII form stays and gets escaped. */
static enum err host_to_ascii(struct buf *buf, size_t from) {
    struct bytes host = bytes_skip(buf_bytes(buf), from);
    if (percent_find(host, PERCENT_CONTROL) == host.size || !utf8_is_valid(host)) {
        return ERR_OK;
    }
    struct buf ascii;
    buf_init(&ascii, CANON_SIZE_MAX);
    const char *reason;
    enum err err = idna_put_ascii(&ascii, host, &reason);
    if (err == ERR_OK) {
        buf_truncate(buf, from);
        err = buf_put(buf, buf_bytes(&ascii));
    }
    buf_done(&ascii);
    return err == ERR_INVALID ? ERR_OK : err;
}

/* ARC files of the live-web proxy hold numbers above 32 bits as hosts; the lower 32 bits are the address. */
static bool parse_number_host(struct bytes host, uint32_t *ret_address) {
    uint32_t address = 0;
    for (size_t i = 0; i < host.size; i++) {
        if (!byte_is_digit(host.data[i])) {
            return false;
        }
        address = address * 10 + (host.data[i] - (uint32_t)'0');
    }
    *ret_address = address;
    return host.size > 0;
}

static void rewrite_ipv4(struct buf *buf, size_t from) {
    struct bytes host = bytes_skip(buf_bytes(buf), from);
    uint32_t address;
    const char *reason;
    if (parse_number_host(host, &address) ||
        (ipv4_ends_in_number(host) && ipv4_parse(host, &address, &reason) == ERR_OK)) {
        buf_truncate(buf, from);
        ipv4_put(buf, address);
    }
}

static void rewrite_ipv6(struct buf *buf, size_t from) {
    struct bytes host = bytes_skip(buf_bytes(buf), from);
    uint16_t pieces[IPV6_PIECES];
    const char *reason;
    if (host.size >= 2 && host.data[host.size - 1] == ']' &&
        ipv6_parse(bytes_slice(host, 1, host.size - 1), pieces, &reason) == ERR_OK) {
        buf_truncate(buf, from + 1);
        ipv6_put(buf, pieces);
        buf_put_byte(buf, ']');
    }
}

/* Length of "www", digits and a dot at the start of the host. */
static size_t www_length(struct bytes host) {
    if (!bytes_starts_with(host, BYTES("www"))) {
        return 0;
    }
    size_t i = 3;
    while (i < host.size && byte_is_digit(host.data[i])) {
        i++;
    }
    return i < host.size && host.data[i] == '.' ? i + 1 : 0;
}

static enum err canon_put_host(struct buf *buf, struct bytes host) {
    size_t from = buf->size;
    buf_put(buf, host);
    unescape(buf, from);
    enum err err = host_to_ascii(buf, from);
    if (err != ERR_OK) {
        return err;
    }
    lower(buf, from);
    collapse(buf, from, '.');
    if (buf->size > from && buf->data[from] == '.') {
        remove_range(buf, from, 1);
    }
    if (buf->size > from && buf->data[buf->size - 1] == '.') {
        buf_truncate(buf, buf->size - 1);
    }
    if (buf->size > from && buf->data[from] == '[') {
        rewrite_ipv6(buf, from);
    } else {
        rewrite_ipv4(buf, from);
    }
    escape(buf, from);
    struct bytes name = bytes_skip(buf_bytes(buf), from);
    while (www_length(name) > 0) {
        name = bytes_skip(name, www_length(name));
    }
    remove_range(buf, from, buf->size - from - name.size);
    return buf->err;
}

/* The port, unless it is absent, zero or the scheme's own. */
static enum err canon_put_port(struct buf *buf, const struct parts *parts, struct err_detail *detail) {
    uint64_t port = 0;
    if (parts->port.size > 0 && !bytes_to_u64(parts->port, UINT16_MAX, &port)) {
        return err_set(detail, ERR_INVALID, "the port is above 65535");
    }
    bool is_default = (port == 80 && bytes_equal_ignore_case(parts->scheme, BYTES("http"))) ||
                      (port == 443 && bytes_equal_ignore_case(parts->scheme, BYTES("https")));
    if (port != 0 && !is_default) {
        buf_put_byte(buf, ':');
        buf_put_u64(buf, port);
    }
    return ERR_OK;
}

/*
 * The arguments of a query in order, so that "b=2&a=1" and "a=1&b=2" are one
 */

/* Arguments of an ordinary query; for more, memory is taken from the heap. */
enum { ARGUMENTS_INLINE = 32 };

struct argument {
    struct bytes text;
    size_t name_size;
};

static bool next_argument(struct bytes *rest, struct argument *ret_argument) {
    if (!bytes_split(rest, '&', &ret_argument->text)) {
        return false;
    }
    ret_argument->name_size = bytes_find_byte(ret_argument->text, '=');
    return true;
}

/* By name first: comparing whole arguments would put "a1=" before "a=", since '1' is less than '='. */
static int compare_arguments(const struct argument *a, const struct argument *b) {
    int order = bytes_compare(bytes_slice(a->text, 0, a->name_size), bytes_slice(b->text, 0, b->name_size));
    return order != 0 ? order
                      : bytes_compare(bytes_skip(a->text, a->name_size), bytes_skip(b->text, b->name_size));
}

static int compare_for_qsort(const void *a, const void *b) {
    return compare_arguments(a, b);
}

static size_t count_arguments(struct bytes query, bool *ret_is_sorted) {
    struct argument previous = {{NULL, 0}, 0};
    struct argument argument;
    size_t count = 0;
    *ret_is_sorted = true;
    while (next_argument(&query, &argument)) {
        *ret_is_sorted = *ret_is_sorted && (count == 0 || compare_arguments(&previous, &argument) <= 0);
        previous = argument;
        count++;
    }
    return count;
}

/* qsort() takes memory above 1 KiB, and a handful is sorted faster without it. */
static void sort_arguments(struct argument *arguments, size_t count) {
    if (count > ARGUMENTS_INLINE) {
        qsort(arguments, count, sizeof *arguments, compare_for_qsort);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct argument argument = arguments[i];
        size_t j = i;
        for (; j > 0 && compare_arguments(&arguments[j - 1], &argument) > 0; j--) {
            arguments[j] = arguments[j - 1];
        }
        arguments[j] = argument;
    }
}

/* Write them one after the other to `to`, joined by '&'. */
static void write_arguments(uint8_t *to, const struct argument *arguments, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *to++ = '&';
        }
        if (arguments[i].text.size > 0) {
            memcpy(to, arguments[i].text.data, arguments[i].text.size);
            to += arguments[i].text.size;
        }
    }
}

/*
 * Sort the arguments of the query that is at the end of the buffer, from byte `from` on: by name, then by
 * value, "a" before "a=". Nothing is lost: repeated and empty arguments stay.
 */
static enum err query_sort(struct buf *buf, size_t from) {
    struct bytes query = bytes_skip(buf_bytes(buf), from);
    bool is_sorted;
    size_t count = count_arguments(query, &is_sorted);
    if (is_sorted) {
        return ERR_OK;
    }
    /* The arguments are read from a copy behind the end of the buffer while the original is overwritten. */
    if (buf_reserve(buf, query.size) != ERR_OK) {
        return buf->err;
    }
    struct argument few[ARGUMENTS_INLINE];
    struct argument *arguments = few;
    if (count > ARGUMENTS_INLINE && (arguments = calloc(count, sizeof *arguments)) == NULL) {
        return ERR_MEMORY;
    }
    memcpy(buf->data + buf->size, buf->data + from, query.size);
    struct bytes rest = bytes_of(buf->data + buf->size, query.size);
    for (size_t i = 0; i < count; i++) {
        next_argument(&rest, &arguments[i]);
    }
    sort_arguments(arguments, count);
    write_arguments(buf->data + from, arguments, count);
    if (arguments != few) {
        free(arguments);
    }
    return ERR_OK;
}

/*
 * Path, query, and all of it
 */

static void put_path(struct buf *buf, struct bytes path, bool has_host) {
    size_t from = buf->size;
    bool is_rough = !canon_is_plain(path);
    buf_put(buf, has_host && path.size == 0 ? BYTES("/") : path);
    if (is_rough) {
        unescape(buf, from);
    }
    if (has_host && has_empty_or_dot_segment(bytes_skip(buf_bytes(buf), from))) {
        resolve_dots(buf, from);
        if (buf->size == from) {
            buf_put_byte(buf, '/');
        }
        collapse(buf, from, '/');
    }
    if (is_rough) {
        escape(buf, from);
        lower(buf, from);
    }
    buf_truncate(buf, from + session_strip_path(buf->data + from, buf->size - from));
    if (buf->size > from + 1 && buf->data[buf->size - 1] == '/') {
        buf_truncate(buf, buf->size - 1);
    }
}

static enum err put_query(struct buf *buf, struct bytes query) {
    if (query.size == 0) {
        return ERR_OK;
    }
    size_t mark = buf->size;
    buf_put_byte(buf, '?');
    size_t from = buf->size;
    buf_put(buf, query);
    if (!canon_is_plain(query)) {
        unescape(buf, from);
        escape(buf, from);
        lower(buf, from);
    }
    buf_truncate(buf, from + session_strip_query(buf->data + from, buf->size - from));
    if (buf->size == from) {
        buf_truncate(buf, mark);
        return ERR_OK;
    }
    return query_sort(buf, from);
}

/* What has no scheme is meant to be a web page. */
static enum err add_scheme(struct buf *text) {
    size_t length = input_scheme_length(buf_bytes(text));
    if (length > 0 && !is_host_with_port(buf_bytes(text), length)) {
        return text->err;
    }
    static const char prefix[] = {'h', 't', 't', 'p', ':', '/', '/'};
    if (buf_reserve(text, sizeof prefix) == ERR_OK) {
        memmove(text->data + sizeof prefix, text->data, text->size);
        memcpy(text->data, prefix, sizeof prefix);
        text->size += sizeof prefix;
    }
    return text->err;
}

/* One pass of all rules, from canon->previous to canon->url. */
static enum err run_pass(struct canon *canon, struct err_detail *detail) {
    struct buf *url = &canon->url;
    struct parts parts;
    enum err err = add_scheme(&canon->previous);
    if (err == ERR_OK) {
        err = split(buf_bytes(&canon->previous), &parts, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    buf_clear(url);
    buf_put(url, parts.scheme);
    lower(url, 0);
    buf_put_byte(url, ':');
    canon->host_start = canon->host_end = url->size;
    bool has_host = parts.host.size > 0;
    if (has_host) {
        buf_put(url, BYTES("//"));
        canon->host_start = url->size;
        err = canon_put_host(url, parts.host);
        canon->host_end = url->size;
        if (err == ERR_OK && canon->host_end == canon->host_start) {
            err = err_set(detail, ERR_INVALID, "the host is missing");
        }
        if (err == ERR_OK) {
            err = canon_put_port(url, &parts, detail);
        }
    }
    canon->path_start = url->size;
    if (err == ERR_OK) {
        put_path(url, parts.path, has_host);
        err = put_query(url, parts.query);
    }
    return err != ERR_OK ? err : url->err;
}

static void swap(struct buf *a, struct buf *b) {
    struct buf c = *a;
    *a = *b;
    *b = c;
}

static enum err too_long(struct err_detail *detail) {
    return err_set(detail, ERR_LIMIT, "the URL is longer than %d bytes", URL_SIZE_MAX);
}

/* Pass after pass, until one changes nothing. */
static enum err canon_settle(struct canon *canon, struct err_detail *detail) {
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        enum err err = run_pass(canon, detail);
        if (err != ERR_OK) {
            return err;
        }
        if (canon->url.size > URL_SIZE_MAX) {
            return too_long(detail);
        }
        if (bytes_equal(buf_bytes(&canon->url), buf_bytes(&canon->previous))) {
            return ERR_OK;
        }
        swap(&canon->url, &canon->previous);
    }
    return err_set(detail, ERR_INVALID, "the URL changes with every reading");
}

enum err canon_run(struct canon *canon, struct bytes text, struct err_detail *detail) {
    enum err err = text.size > URL_SIZE_MAX ? too_long(detail) : ERR_OK;
    if (err == ERR_OK) {
        buf_clear(&canon->previous);
        err = input_put_without_newlines(&canon->previous, input_trim(text));
    }
    if (err == ERR_OK) {
        err = canon_settle(canon, detail);
    }
    if (err != ERR_OK) {
        buf_clear(&canon->url);
        canon->host_start = canon->host_end = canon->path_start = 0;
    }
    return err;
}
