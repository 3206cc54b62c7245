#include "web/url/parse.h"

#include "web/url/host.h"
#include "web/url/input.h"
#include "web/url/path.h"
#include "web/url/percent.h"

enum { END = -1 }; /* peek() past the last byte */

struct parse {
    struct url *url; /* written as we go; url->href.err is looked at once, at the end */
    const struct url *base;
    struct bytes input;
    size_t at; /* next byte of the input */
    bool is_special;
    struct err_detail *detail;
};

static int peek(const struct parse *parse) {
    return parse->at < parse->input.size ? parse->input.data[parse->at] : END;
}

static struct bytes rest(const struct parse *parse) {
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
static void start(struct parse *parse, struct url_span *span) {
    span->from = span->to = (uint32_t)parse->url->href.size;
}

static void end(struct parse *parse, struct url_span *span) {
    span->to = (uint32_t)parse->url->href.size;
}

static enum err fail(const struct parse *parse, size_t offset, const char *reason) {
    return err_set_at(parse->detail, ERR_INVALID, offset, "%s", reason);
}

/*
 * Query and fragment
 */

static void put_fragment(struct parse *parse) {
    if (peek(parse) != '#') {
        return;
    }
    buf_put_byte(&parse->url->href, '#');
    start(parse, &parse->url->fragment);
    parse->at++;
    percent_put(&parse->url->href, rest(parse), PERCENT_FRAGMENT);
    end(parse, &parse->url->fragment);
    parse->at = parse->input.size;
}

static void put_query_and_fragment(struct parse *parse) {
    if (peek(parse) == '?') {
        buf_put_byte(&parse->url->href, '?');
        start(parse, &parse->url->query);
        parse->at++;
        struct bytes query = rest(parse);
        query.size = bytes_find_byte(query, '#');
        percent_put(&parse->url->href, query, parse->is_special ? PERCENT_SPECIAL_QUERY : PERCENT_QUERY);
        end(parse, &parse->url->query);
        parse->at += query.size;
    }
    put_fragment(parse);
}

/*
 * Path
 */

/* parse->at is behind the slash before the first segment, if there was one. */
static void put_path_and_rest(struct parse *parse) {
    parse->at += path_put_segments(parse->url, rest(parse));
    path_end(parse->url);
    put_query_and_fragment(parse);
}

/* After a host: special URLs have a path of at least "/", others may have none. */
static void put_path_after_host(struct parse *parse) {
    start(parse, &parse->url->path);
    bool has_slash = is_slash(parse, peek(parse));
    if (!has_slash && !parse->is_special && ends_path(peek(parse))) {
        put_query_and_fragment(parse);
        return;
    }
    parse->at += has_slash ? 1 : 0;
    put_path_and_rest(parse);
}

/* Any text: mailto:x, data:… Spaces stay, but the last one before '?' or '#' must not get lost in a copy. */
static void put_opaque_path(struct parse *parse) {
    struct url *url = parse->url;
    url->path_is_opaque = true;
    start(parse, &url->path);
    size_t from = parse->at;
    while (!ends_path(peek(parse))) {
        parse->at++;
    }
    struct bytes path = bytes_slice(parse->input, from, parse->at);
    bool ends_in_space = path.size > 0 && path.data[path.size - 1] == ' ';
    percent_put(&url->href, bytes_slice(path, 0, path.size - (ends_in_space ? 1 : 0)), PERCENT_CONTROL);
    if (ends_in_space) {
        buf_put(&url->href, BYTES("%20"));
    }
    end(parse, &url->path);
    put_query_and_fragment(parse);
}

/*
 * Authority: user, password, host, port
 */

static void put_credentials(struct parse *parse, struct bytes credentials) {
    struct url *url = parse->url;
    size_t colon = bytes_find_byte(credentials, ':');
    start(parse, &url->username);
    percent_put(&url->href, bytes_slice(credentials, 0, colon), PERCENT_USERINFO);
    end(parse, &url->username);
    if (colon + 1 < credentials.size) {
        buf_put_byte(&url->href, ':');
        start(parse, &url->password);
        percent_put(&url->href, bytes_skip(credentials, colon + 1), PERCENT_USERINFO);
        end(parse, &url->password);
    }
    if (url->href.size > url->username.from) {
        buf_put_byte(&url->href, '@');
    }
}

static enum err put_port(struct parse *parse, size_t from, size_t to) {
    uint64_t port;
    if (from == to) {
        return ERR_OK;
    }
    for (size_t i = from; i < to; i++) {
        if (!byte_is_digit(parse->input.data[i])) {
            return fail(parse, i, "the port is not a number");
        }
    }
    if (!bytes_to_u64(bytes_slice(parse->input, from, to), UINT16_MAX, &port)) {
        return fail(parse, from, "the port is above 65535");
    }
    if ((int32_t)port == url_default_port(parse->url->scheme_type)) {
        return ERR_OK;
    }
    parse->url->port = (int32_t)port;
    buf_put_byte(&parse->url->href, ':');
    buf_put_u64(&parse->url->href, port);
    return ERR_OK;
}

/* Append the host in input[from, to). An empty one is written as nothing. */
static enum err put_host(struct parse *parse, size_t from, size_t to) {
    struct url *url = parse->url;
    start(parse, &url->host);
    url->host_type = URL_HOST_EMPTY;
    if (from == to) {
        return ERR_OK;
    }
    enum err err = host_put(&url->href, bytes_slice(parse->input, from, to), parse->is_special,
                            &url->host_type, parse->detail);
    if (err == ERR_INVALID && parse->detail != NULL) {
        parse->detail->offset += from;
    }
    end(parse, &url->host);
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
    while (!ends_path(peek(parse)) && !is_slash(parse, peek(parse))) {
        host = peek(parse) == '@' ? parse->at + 1 : host;
        parse->at++;
    }
    size_t to = parse->at;
    size_t colon = find_port_colon(parse, host, to);
    bool has_more = host > from || colon < to;
    if (colon == host && (parse->is_special || has_more)) {
        return fail(parse, host, "the host is missing");
    }
    buf_put(&parse->url->href, BYTES("//"));
    if (host > from) {
        put_credentials(parse, bytes_slice(parse->input, from, host - 1));
    }
    enum err err = put_host(parse, host, colon);
    if (err == ERR_OK && colon < to) {
        err = put_port(parse, colon + 1, to);
    }
    if (err == ERR_OK) {
        put_path_after_host(parse);
    }
    return err;
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
    start(parse, &url->path);
    parse->is_special = url_is_special(url);
}

static void copy_path(struct parse *parse) {
    buf_put(&parse->url->href, url_path(parse->base));
}

static void copy_query(struct parse *parse) {
    if (url_has_query(parse->base)) {
        buf_put_byte(&parse->url->href, '?');
        start(parse, &parse->url->query);
        buf_put(&parse->url->href, url_query(parse->base));
        end(parse, &parse->url->query);
    }
}

/* "?query", "#fragment" and "": the path of the base, and its query unless there is a new one. */
static void put_same_path(struct parse *parse) {
    copy_authority(parse);
    copy_path(parse);
    path_end(parse->url);
    if (peek(parse) != '?') {
        copy_query(parse);
    }
    put_query_and_fragment(parse);
}

static void skip_slashes_if_special(struct parse *parse) {
    while (parse->is_special && is_slash(parse, peek(parse))) {
        parse->at++;
    }
}

/* The scheme is written. */
static enum err put_relative(struct parse *parse) {
    if (is_slash(parse, peek(parse))) {
        parse->at++;
        if (is_slash(parse, peek(parse))) {
            parse->at++;
            skip_slashes_if_special(parse);
            return put_authority_and_rest(parse);
        }
        copy_authority(parse);
        put_path_and_rest(parse);
        return ERR_OK;
    }
    if (ends_path(peek(parse))) {
        put_same_path(parse);
        return ERR_OK;
    }
    copy_authority(parse);
    copy_path(parse);
    path_shorten(parse->url);
    put_path_and_rest(parse);
    return ERR_OK;
}

/*
 * file: URLs
 */

/* "file:" + "//" + empty host, up to where the path starts. */
static void put_file_root(struct parse *parse) {
    buf_put(&parse->url->href, BYTES("//"));
    start(parse, &parse->url->host);
    parse->url->host_type = URL_HOST_EMPTY;
    start(parse, &parse->url->path);
}

/* Behind "file://". */
static enum err put_file_host_and_rest(struct parse *parse) {
    struct url *url = parse->url;
    if (path_starts_with_drive_letter(rest(parse))) { /* file://c:/x has no host */
        put_file_root(parse);
        put_path_and_rest(parse);
        return ERR_OK;
    }
    size_t from = parse->at;
    while (!ends_path(peek(parse)) && !is_slash(parse, peek(parse))) {
        parse->at++;
    }
    buf_put(&url->href, BYTES("//"));
    enum err err = put_host(parse, from, parse->at);
    if (err != ERR_OK) {
        return err;
    }
    if (bytes_equal(url_host(url), BYTES("localhost"))) {
        buf_truncate(&url->href, url->host.from);
        end(parse, &url->host);
        url->host_type = URL_HOST_EMPTY;
    }
    put_path_after_host(parse);
    return ERR_OK;
}

/* Behind "file:/": the host of the base stays, and its drive letter if there is no new one. */
static void put_file_absolute(struct parse *parse) {
    if (parse->base == NULL) {
        put_file_root(parse);
        put_path_and_rest(parse);
        return;
    }
    copy_authority(parse);
    struct bytes path = url_path(parse->base);
    if (!path_starts_with_drive_letter(rest(parse)) && path.size > 0 &&
        path_starts_with_drive_letter(bytes_skip(path, 1))) {
        buf_put(&parse->url->href, bytes_slice(path, 0, 3));
    }
    put_path_and_rest(parse);
}

/* The scheme is written; the base is a file URL or NULL. */
static enum err put_file(struct parse *parse) {
    if (is_slash(parse, peek(parse))) {
        parse->at++;
        if (is_slash(parse, peek(parse))) {
            parse->at++;
            return put_file_host_and_rest(parse);
        }
        put_file_absolute(parse);
        return ERR_OK;
    }
    if (parse->base == NULL) {
        put_file_root(parse);
        put_path_and_rest(parse);
        return ERR_OK;
    }
    if (ends_path(peek(parse))) {
        put_same_path(parse);
        return ERR_OK;
    }
    copy_authority(parse);
    if (!path_starts_with_drive_letter(rest(parse))) {
        copy_path(parse);
        path_shorten(parse->url);
    }
    put_path_and_rest(parse);
    return ERR_OK;
}

/*
 * Scheme
 */

static enum url_scheme_type scheme_type_of(struct bytes scheme) {
    if (bytes_equal(scheme, BYTES("https"))) {
        return URL_SCHEME_HTTPS;
    }
    if (bytes_equal(scheme, BYTES("http"))) {
        return URL_SCHEME_HTTP;
    }
    if (bytes_equal(scheme, BYTES("file"))) {
        return URL_SCHEME_FILE;
    }
    if (bytes_equal(scheme, BYTES("ftp"))) {
        return URL_SCHEME_FTP;
    }
    if (bytes_equal(scheme, BYTES("wss"))) {
        return URL_SCHEME_WSS;
    }
    return bytes_equal(scheme, BYTES("ws")) ? URL_SCHEME_WS : URL_SCHEME_OTHER;
}

static void put_scheme(struct parse *parse, struct bytes scheme) {
    struct url *url = parse->url;
    buf_put(&url->href, scheme);
    for (size_t i = 0; i < url->href.size; i++) {
        url->href.data[i] = byte_lower(url->href.data[i]);
    }
    end(parse, &url->scheme);
    url->scheme_type = scheme_type_of(buf_bytes(&url->href));
    buf_put_byte(&url->href, ':');
    parse->is_special = url_is_special(url);
}

static enum err put_without_scheme(struct parse *parse) {
    const struct url *base = parse->base;
    if (base == NULL) {
        return fail(parse, 0, "a URL without a scheme needs a base");
    }
    if (base->path_is_opaque) {
        if (peek(parse) != '#') {
            return fail(parse, 0, "the base is of a kind that only a fragment can be resolved against");
        }
        put_same_path(parse);
        return ERR_OK;
    }
    put_scheme(parse, url_scheme(base));
    return base->scheme_type == URL_SCHEME_FILE ? put_file(parse) : put_relative(parse);
}

static enum err put_after_scheme(struct parse *parse) {
    bool has_slashes = bytes_starts_with(rest(parse), BYTES("//"));
    bool has_same_scheme = parse->base != NULL && parse->base->scheme_type == parse->url->scheme_type;
    if (parse->url->scheme_type == URL_SCHEME_FILE) {
        parse->base = has_same_scheme ? parse->base : NULL;
        return put_file(parse);
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
    if (peek(parse) == '/') {
        parse->at++;
        start(parse, &parse->url->path);
        put_path_and_rest(parse);
        return ERR_OK;
    }
    put_opaque_path(parse);
    return ERR_OK;
}

enum err parse_run(struct url *url, struct bytes input, const struct url *base, struct err_detail *detail) {
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
