#include "web/url/url.h"

#include "web/url/input.h"
#include "web/url/parse.h"

void url_init(struct url *url) {
    *url = (struct url){.port = URL_PORT_NONE};
    buf_init(&url->href, URL_SIZE_MAX);
}

void url_done(struct url *url) {
    buf_done(&url->href);
    url_init(url);
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

int32_t url_default_port(enum url_scheme_type scheme_type) {
    switch (scheme_type) {
    case URL_SCHEME_HTTP:
    case URL_SCHEME_WS:
        return 80;
    case URL_SCHEME_HTTPS:
    case URL_SCHEME_WSS:
        return 443;
    case URL_SCHEME_FTP:
        return 21;
    case URL_SCHEME_FILE:
    case URL_SCHEME_OTHER:
        break;
    }
    return URL_PORT_NONE;
}

int32_t url_port_or_default(const struct url *url) {
    return url->port != URL_PORT_NONE ? url->port : url_default_port(url->scheme_type);
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
