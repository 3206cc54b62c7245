#include "web/url/url.h"

#include "web/url/input.h"
#include "web/url/percent.h"

static const struct {
    const char *name;
    int32_t port;
} schemes[] = {
    [URL_SCHEME_OTHER] = {"", URL_PORT_NONE},
    [URL_SCHEME_HTTP] = {"http", 80},
    [URL_SCHEME_HTTPS] = {"https", 443},
    [URL_SCHEME_WS] = {"ws", 80},
    [URL_SCHEME_WSS] = {"wss", 443},
    [URL_SCHEME_FTP] = {"ftp", 21},
    [URL_SCHEME_FILE] = {"file", URL_PORT_NONE},
};
enum { SCHEMES_COUNT = sizeof schemes / sizeof *schemes };

void url_init(struct url *url) {
    *url = (struct url){.port = URL_PORT_NONE};
    buf_init(&url->href, URL_SIZE_MAX);
}

void url_done(struct url *url) {
    buf_done(&url->href);
    url_init(url);
}

/*
 * The path that is being written is what stands in the href from url->path.from on: segments are appended one
 * by one, and ".." cuts the last one off again. https://url.spec.whatwg.org/#path-state
 */

static bool ends_at(struct bytes text, size_t index) {
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

/* Whether a path of a file URL has a Windows drive letter as its first segment: "C:", "c|". */
static bool path_starts_with_drive_letter(struct bytes text) {
    if (text.size < 2 || !is_drive_letter(bytes_slice(text, 0, 2))) {
        return false;
    }
    return ends_at(text, 2) || text.data[2] == '/' || text.data[2] == '\\';
}

/* The path as far as it is written. */
static struct bytes url_written(const struct url *url) {
    return bytes_skip(url_href(url), url->path.from);
}

/* Drop the last segment; a drive letter at the root of a file URL stays. */
static void path_shorten(struct url *url) {
    struct bytes path = url_written(url);
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
    bool is_root_of_file = url->scheme_type == URL_SCHEME_FILE && url_written(url).size == 0;
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
    return ends_at(text, i) ? i : 0;
}

/*
 * Append the segments of the text up to '?', '#' or its end, a '/' before each, and return how much of the
 * text that was. The text starts behind the first slash; even an empty text is one segment, an empty one.
 */
static size_t path_put_segments(struct url *url, struct bytes text) {
    size_t plain = plain_length(url, text);
    if (plain > 0) {
        buf_put_byte(&url->href, '/');
        buf_put(&url->href, bytes_slice(text, 0, plain));
        return plain;
    }
    for (size_t from = 0;;) {
        size_t to = from;
        while (!ends_at(text, to) && text.data[to] != '/' &&
               !(text.data[to] == '\\' && url_is_special(url))) {
            to++;
        }
        bool is_last = ends_at(text, to);
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
static void path_end(struct url *url) {
    struct bytes path = url_written(url);
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

/*
 * The basic URL parser of the standard. The standard describes a state machine over code points that fills a
 * record, and a serialiser. Here each state is a function that consumes its part of the input and appends it
 * to the href at once: the parts are met in the order in which they are written, so nothing is kept in
 * between and dots in a path just cut back what was written.
 * https://url.spec.whatwg.org/#concept-basic-url-parser
 */

enum { END = -1 }; /* url_peek() past the last byte */

struct parse {
    struct url *url; /* written as we go; url->href.err is looked at once, at the end */
    const struct url *base;
    struct bytes input;
    size_t at; /* next byte of the input */
    bool is_special;
    struct err_detail *detail;
};

static int url_peek(const struct parse *parse) {
    return parse->at < parse->input.size ? parse->input.data[parse->at] : END;
}

static struct bytes url_rest(const struct parse *parse) {
    return bytes_skip(parse->input, parse->at);
}

/* In a special URL '\' means '/'. */
static bool is_slash(const struct parse *parse, int byte) {
    return byte == '/' || (byte == '\\' && parse->is_special);
}

static bool ends_path(int byte) {
    return byte == END || byte == '?' || byte == '#';
}

/* The next bytes of the href will be this part. */
static void url_start(struct parse *parse, struct url_span *span) {
    span->from = span->to = (uint32_t)parse->url->href.size;
}

static void url_end(struct parse *parse, struct url_span *span) {
    span->to = (uint32_t)parse->url->href.size;
}

static void url_put_part(struct parse *parse, struct url_span *span, struct bytes text,
                         enum percent_set set) {
    url_start(parse, span);
    percent_put(&parse->url->href, text, set);
    url_end(parse, span);
}

static enum err url_fail(const struct parse *parse, size_t offset, const char *reason) {
    return err_set_at(parse->detail, ERR_INVALID, offset, "%s", reason);
}

/*
 * Query and fragment
 */

/* Returns ERR_OK, like all that ends in it: what can fail is url->href, and it says so itself. */
static enum err put_query_and_fragment(struct parse *parse) {
    if (url_peek(parse) == '?') {
        struct bytes query = bytes_skip(url_rest(parse), 1);
        query.size = bytes_find_byte(query, '#');
        buf_put_byte(&parse->url->href, '?');
        url_put_part(parse, &parse->url->query, query,
                     parse->is_special ? PERCENT_SPECIAL_QUERY : PERCENT_QUERY);
        parse->at += 1 + query.size;
    }
    if (url_peek(parse) == '#') {
        buf_put_byte(&parse->url->href, '#');
        url_put_part(parse, &parse->url->fragment, bytes_skip(url_rest(parse), 1), PERCENT_FRAGMENT);
    }
    return ERR_OK;
}

/*
 * Path
 */

/* parse->at is behind the slash before the first segment, if there was one. */
static enum err put_path_and_rest(struct parse *parse) {
    parse->at += path_put_segments(parse->url, url_rest(parse));
    path_end(parse->url);
    return put_query_and_fragment(parse);
}

/* After a host: special URLs have a path of at least "/", others may have none. */
static enum err put_path_after_host(struct parse *parse) {
    url_start(parse, &parse->url->path);
    bool has_slash = is_slash(parse, url_peek(parse));
    if (!has_slash && !parse->is_special && ends_path(url_peek(parse))) {
        return put_query_and_fragment(parse);
    }
    parse->at += has_slash ? 1 : 0;
    return put_path_and_rest(parse);
}

/* Any text: mailto:x, data:… Spaces stay, but the last one before '?' or '#' must not get lost in a copy. */
static enum err put_opaque_path(struct parse *parse) {
    struct url *url = parse->url;
    url->path_is_opaque = true;
    url_start(parse, &url->path);
    size_t from = parse->at;
    while (!ends_path(url_peek(parse))) {
        parse->at++;
    }
    struct bytes path = bytes_slice(parse->input, from, parse->at);
    bool ends_in_space = path.size > 0 && path.data[path.size - 1] == ' ';
    percent_put(&url->href, bytes_slice(path, 0, path.size - (ends_in_space ? 1 : 0)), PERCENT_CONTROL);
    if (ends_in_space) {
        buf_put(&url->href, BYTES("%20"));
    }
    url_end(parse, &url->path);
    return put_query_and_fragment(parse);
}

/*
 * Authority: user, password, host, port
 */

static void put_credentials(struct parse *parse, struct bytes credentials) {
    struct url *url = parse->url;
    size_t colon = bytes_find_byte(credentials, ':');
    url_put_part(parse, &url->username, bytes_slice(credentials, 0, colon), PERCENT_USERINFO);
    if (colon + 1 < credentials.size) {
        buf_put_byte(&url->href, ':');
        url_put_part(parse, &url->password, bytes_skip(credentials, colon + 1), PERCENT_USERINFO);
    }
    if (url->href.size > url->username.from) {
        buf_put_byte(&url->href, '@');
    }
}

static enum err url_put_port(struct parse *parse, size_t from, size_t to) {
    uint64_t port;
    if (from == to) {
        return ERR_OK;
    }
    for (size_t i = from; i < to; i++) {
        if (!byte_is_digit(parse->input.data[i])) {
            return url_fail(parse, i, "the port is not a number");
        }
    }
    if (!bytes_to_u64(bytes_slice(parse->input, from, to), UINT16_MAX, &port)) {
        return url_fail(parse, from, "the port is above 65535");
    }
    if ((int32_t)port == schemes[parse->url->scheme_type].port) {
        return ERR_OK;
    }
    parse->url->port = (int32_t)port;
    buf_put_byte(&parse->url->href, ':');
    buf_put_u64(&parse->url->href, port);
    return ERR_OK;
}

/* Append the host in input[from, to). An empty one is written as nothing. */
static enum err url_put_host(struct parse *parse, size_t from, size_t to) {
    struct url *url = parse->url;
    url_start(parse, &url->host);
    url->host_type = URL_HOST_EMPTY;
    if (from == to) {
        return ERR_OK;
    }
    enum err err = host_put(&url->href, bytes_slice(parse->input, from, to), parse->is_special,
                            &url->host_type, parse->detail);
    if (err == ERR_INVALID && parse->detail != NULL) {
        parse->detail->offset += from;
    }
    url_end(parse, &url->host);
    return err;
}

/* Index of the ':' before the port, or `to`. Colons in brackets belong to an IPv6 address. */
static size_t find_port_colon(const struct parse *parse, size_t from, size_t to) {
    bool in_brackets = false;
    for (size_t i = from; i < to; i++) {
        uint8_t byte = parse->input.data[i];
        if (byte == ':' && !in_brackets) {
            return i;
        }
        in_brackets = byte == '[' || (in_brackets && byte != ']');
    }
    return to;
}

/* From behind the "//" to the end of the URL. */
static enum err put_authority_and_rest(struct parse *parse) {
    size_t from = parse->at;
    size_t host = from; /* behind the last '@' */
    while (!ends_path(url_peek(parse)) && !is_slash(parse, url_peek(parse))) {
        host = url_peek(parse) == '@' ? parse->at + 1 : host;
        parse->at++;
    }
    size_t to = parse->at;
    size_t colon = find_port_colon(parse, host, to);
    bool has_more = host > from || colon < to;
    if (colon == host && (parse->is_special || has_more)) {
        return url_fail(parse, host, "the host is missing");
    }
    buf_put(&parse->url->href, BYTES("//"));
    if (host > from) {
        put_credentials(parse, bytes_slice(parse->input, from, host - 1));
    }
    enum err err = url_put_host(parse, host, colon);
    if (err == ERR_OK && colon < to) {
        err = url_put_port(parse, colon + 1, to);
    }
    return err == ERR_OK ? put_path_after_host(parse) : err;
}

/*
 * References that take something from the base
 */

/* The base from its scheme to its port, in place of the scheme that is already written. */
static void copy_authority(struct parse *parse) {
    struct url *url = parse->url;
    const struct url *base = parse->base;
    struct buf href = url->href;
    *url = *base;
    url->href = href;
    url->query = url->fragment = (struct url_span){0, 0};
    bool has_dot = base->host_type == URL_HOST_NONE && bytes_starts_with(url_path(base), BYTES("//"));
    size_t size = base->path.from - (has_dot ? 2 : 0); /* see path_end() */
    buf_clear(&url->href);
    buf_put(&url->href, bytes_slice(url_href(base), 0, size));
    url_start(parse, &url->path);
    parse->is_special = url_is_special(url);
}

static void copy_path(struct parse *parse) {
    buf_put(&parse->url->href, url_path(parse->base));
}

static void copy_query(struct parse *parse) {
    if (url_has_query(parse->base)) {
        buf_put_byte(&parse->url->href, '?');
        url_start(parse, &parse->url->query);
        buf_put(&parse->url->href, url_query(parse->base));
        url_end(parse, &parse->url->query);
    }
}

/* "?query", "#fragment" and "": the path of the base, and its query unless there is a new one. */
static enum err put_same_path(struct parse *parse) {
    copy_authority(parse);
    copy_path(parse);
    path_end(parse->url);
    if (url_peek(parse) != '?') {
        copy_query(parse);
    }
    return put_query_and_fragment(parse);
}

static void skip_slashes_if_special(struct parse *parse) {
    while (parse->is_special && is_slash(parse, url_peek(parse))) {
        parse->at++;
    }
}

/* The scheme is written. */
static enum err put_relative(struct parse *parse) {
    if (is_slash(parse, url_peek(parse))) {
        parse->at++;
        if (is_slash(parse, url_peek(parse))) {
            parse->at++;
            skip_slashes_if_special(parse);
            return put_authority_and_rest(parse);
        }
        copy_authority(parse);
        return put_path_and_rest(parse);
    }
    if (ends_path(url_peek(parse))) {
        return put_same_path(parse);
    }
    copy_authority(parse);
    copy_path(parse);
    path_shorten(parse->url);
    return put_path_and_rest(parse);
}

/*
 * file: URLs
 */

/* "file:" + "//" + empty host, and the path. */
static enum err put_file_root(struct parse *parse) {
    buf_put(&parse->url->href, BYTES("//"));
    url_start(parse, &parse->url->host);
    parse->url->host_type = URL_HOST_EMPTY;
    url_start(parse, &parse->url->path);
    return put_path_and_rest(parse);
}

/* Behind "file://". */
static enum err put_file_host_and_rest(struct parse *parse) {
    struct url *url = parse->url;
    if (path_starts_with_drive_letter(url_rest(parse))) { /* file://c:/x has no host */
        return put_file_root(parse);
    }
    size_t from = parse->at;
    while (!ends_path(url_peek(parse)) && !is_slash(parse, url_peek(parse))) {
        parse->at++;
    }
    buf_put(&url->href, BYTES("//"));
    enum err err = url_put_host(parse, from, parse->at);
    if (err != ERR_OK) {
        return err;
    }
    if (bytes_equal(url_host(url), BYTES("localhost"))) {
        buf_truncate(&url->href, url->host.from);
        url_end(parse, &url->host);
        url->host_type = URL_HOST_EMPTY;
    }
    return put_path_after_host(parse);
}

/* Behind "file:/": the host of the base stays, and its drive letter if there is no new one. */
static enum err put_file_absolute(struct parse *parse) {
    if (parse->base == NULL) {
        return put_file_root(parse);
    }
    copy_authority(parse);
    struct bytes path = url_path(parse->base);
    if (!path_starts_with_drive_letter(url_rest(parse)) && path.size > 0 &&
        path_starts_with_drive_letter(bytes_skip(path, 1))) {
        buf_put(&parse->url->href, bytes_slice(path, 0, 3));
    }
    return put_path_and_rest(parse);
}

/* The scheme is written; the base is a file URL or NULL. */
static enum err url_put_file(struct parse *parse) {
    if (is_slash(parse, url_peek(parse))) {
        parse->at++;
        if (is_slash(parse, url_peek(parse))) {
            parse->at++;
            return put_file_host_and_rest(parse);
        }
        return put_file_absolute(parse);
    }
    if (parse->base == NULL) {
        return put_file_root(parse);
    }
    if (ends_path(url_peek(parse))) {
        return put_same_path(parse);
    }
    copy_authority(parse);
    if (!path_starts_with_drive_letter(url_rest(parse))) {
        copy_path(parse);
        path_shorten(parse->url);
    }
    return put_path_and_rest(parse);
}

/*
 * Scheme
 */

static enum url_scheme_type scheme_type_of(struct bytes scheme) {
    for (int type = URL_SCHEME_HTTP; type < SCHEMES_COUNT; type++) {
        if (bytes_equal(scheme, bytes_of_string(schemes[type].name))) {
            return (enum url_scheme_type)type;
        }
    }
    return URL_SCHEME_OTHER;
}

static void put_scheme(struct parse *parse, struct bytes scheme) {
    struct url *url = parse->url;
    buf_put(&url->href, scheme);
    for (size_t i = 0; i < url->href.size; i++) {
        url->href.data[i] = byte_lower(url->href.data[i]);
    }
    url_end(parse, &url->scheme);
    url->scheme_type = scheme_type_of(buf_bytes(&url->href));
    buf_put_byte(&url->href, ':');
    parse->is_special = url_is_special(url);
}

static enum err put_without_scheme(struct parse *parse) {
    const struct url *base = parse->base;
    if (base == NULL) {
        return url_fail(parse, 0, "a URL without a scheme needs a base");
    }
    if (base->path_is_opaque) {
        if (url_peek(parse) != '#') {
            return url_fail(parse, 0, "the base is of a kind that only a fragment can be resolved against");
        }
        return put_same_path(parse);
    }
    put_scheme(parse, url_scheme(base));
    return base->scheme_type == URL_SCHEME_FILE ? url_put_file(parse) : put_relative(parse);
}

static enum err put_after_scheme(struct parse *parse) {
    bool has_slashes = bytes_starts_with(url_rest(parse), BYTES("//"));
    bool has_same_scheme = parse->base != NULL && parse->base->scheme_type == parse->url->scheme_type;
    if (parse->url->scheme_type == URL_SCHEME_FILE) {
        parse->base = has_same_scheme ? parse->base : NULL;
        return url_put_file(parse);
    }
    if (parse->is_special) {
        if (has_same_scheme && !has_slashes) {
            return put_relative(parse); /* "http:x" against an http: base, a relic of RFC 1630 */
        }
        skip_slashes_if_special(parse);
        return put_authority_and_rest(parse);
    }
    if (has_slashes) {
        parse->at += 2;
        return put_authority_and_rest(parse);
    }
    if (url_peek(parse) == '/') {
        parse->at++;
        url_start(parse, &parse->url->path);
        return put_path_and_rest(parse);
    }
    return put_opaque_path(parse);
}

/* url_parse() for input that is trimmed, of bounded size and without tabs and newlines; *url is empty. */
static enum err parse_run(struct url *url, struct bytes input, const struct url *base,
                          struct err_detail *detail) {
    ASSERT(base == NULL || base->href.size > 0);
    struct parse parse = {.url = url, .base = base, .input = input, .detail = detail};
    size_t length = input_scheme_length(input);
    enum err err;
    if (length > 0) {
        put_scheme(&parse, bytes_slice(input, 0, length));
        parse.at = length + 1;
        err = put_after_scheme(&parse);
    } else {
        err = put_without_scheme(&parse);
    }
    if (err == ERR_OK) {
        err = url->href.err;
    }
    if (err != ERR_OK && err != ERR_INVALID) {
        err_set(detail, err, "%s", err == ERR_LIMIT ? "the URL is too long" : err_text(err));
    }
    return err;
}

/* Empty, but for the memory. */
static void clear(struct url *url) {
    struct buf href = url->href;
    buf_clear(&href);
    *url = (struct url){.href = href, .port = URL_PORT_NONE};
}

/* The standard drops tabs and newlines anywhere in the input. Rare, hence the copy. */
static enum err parse_without_newlines(struct url *url, struct bytes input, const struct url *base,
                                       struct err_detail *detail) {
    struct buf clean;
    buf_init(&clean, URL_SIZE_MAX);
    enum err err = input_put_without_newlines(&clean, input);
    if (err == ERR_OK) {
        err = parse_run(url, buf_bytes(&clean), base, detail);
    } else {
        err_set(detail, err, "%s", err_text(err));
    }
    buf_done(&clean);
    if (err == ERR_INVALID && detail != NULL) {
        detail->offset = input_original_offset(input, detail->offset);
    }
    return err;
}

enum err url_parse(struct url *url, struct bytes input, const struct url *base, struct err_detail *detail) {
    ASSERT(url != base);
    clear(url);
    if (input.size > URL_SIZE_MAX) {
        return err_set_at(detail, ERR_LIMIT, URL_SIZE_MAX, "the URL is longer than %d bytes", URL_SIZE_MAX);
    }
    struct bytes trimmed = input_trim(input);
    bool is_plain = input_find_newline(trimmed) == trimmed.size;
    enum err err =
        is_plain ? parse_run(url, trimmed, base, detail) : parse_without_newlines(url, trimmed, base, detail);
    if (err != ERR_OK) {
        clear(url);
        if (detail != NULL) {
            detail->offset += (size_t)(trimmed.data - input.data);
        }
    }
    return err;
}

static void span_move(struct url_span *span, uint32_t count) {
    if (span->from != 0) { /* 0: absent */
        span->from -= count;
        span->to -= count;
    }
}

void url_remove_userinfo(struct url *url) {
    if (url_has_userinfo(url)) {
        uint32_t from = url->username.from;
        uint32_t count = url->host.from - from; /* with '@' */
        memmove(url->href.data + from, url->href.data + url->host.from, url->href.size - url->host.from);
        buf_truncate(&url->href, url->href.size - count);
        span_move(&url->host, count);
        span_move(&url->path, count);
        span_move(&url->query, count);
        span_move(&url->fragment, count);
    }
    url->username = url->password = (struct url_span){0, 0};
}

bool url_href_has_userinfo(struct bytes href) {
    struct bytes slashes = BYTES("://");
    size_t at = bytes_find(href, slashes);
    struct bytes rest = at < href.size ? bytes_skip(href, at + slashes.size) : bytes_of(NULL, 0);
    size_t end = 0;
    while (end < rest.size && rest.data[end] != '/' && rest.data[end] != '?' && rest.data[end] != '#') {
        end++;
    }
    return bytes_find_byte(rest, '@') < end;
}

struct bytes url_text_without_userinfo(struct bytes text) {
    for (size_t i = text.size; i > 0; i--) {
        if (text.data[i - 1] == '@') {
            return bytes_skip(text, i);
        }
    }
    return text;
}

int32_t url_port_or_default(const struct url *url) {
    return url->port != URL_PORT_NONE ? url->port : schemes[url->scheme_type].port;
}

/* The origin of a blob: URL is that of the URL in its path, if that is a web page or a file. */
static enum err put_blob_origin(const struct url *url, struct buf *out) {
    struct url inner;
    url_init(&inner);
    enum err err = url_parse(&inner, url_path(url), NULL, NULL);
    if (err == ERR_OK && url_is_web(&inner)) {
        err = url_put_origin(&inner, out);
    } else if (err != ERR_MEMORY) {
        err = buf_put(out, BYTES("null"));
    }
    url_done(&inner);
    return err;
}

enum err url_put_origin(const struct url *url, struct buf *out) {
    if (bytes_equal(url_scheme(url), BYTES("blob"))) {
        return put_blob_origin(url, out);
    }
    if (url->scheme_type == URL_SCHEME_OTHER || url->scheme_type == URL_SCHEME_FILE) {
        return buf_put(out, BYTES("null"));
    }
    buf_put(out, url_scheme(url));
    buf_put(out, BYTES("://"));
    buf_put(out, url_host(url));
    if (url->port != URL_PORT_NONE) {
        buf_put_byte(out, ':');
        buf_put_u64(out, (uint64_t)url->port);
    }
    return out->err;
}
