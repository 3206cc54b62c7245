#include "web/url/likeness.h"

#include "web/url/input.h"

void likeness_init(struct likeness *likeness) {
    *likeness = (struct likeness){.is_any = true};
    url_init(&likeness->asked);
    url_init(&likeness->other);
    buf_init(&likeness->text, URL_SIZE_MAX + 16);
}

void likeness_done(struct likeness *likeness) {
    url_done(&likeness->asked);
    url_done(&likeness->other);
    buf_done(&likeness->text);
}

/* "localhost:8080/x" begins with a host, "dns:x" with a scheme. */
static bool likeness_has_scheme(struct bytes text) {
    size_t size = input_scheme_length(text);
    struct bytes rest = bytes_skip(text, size + 1 < text.size ? size + 1 : text.size);
    return size > 0 && rest.size > 0 && !byte_is_digit(rest.data[0]);
}

/* What no browser opens is compared as it stands. */
static enum err likeness_read(struct url *url, struct bytes text) {
    enum err err = url_parse(url, text, NULL, NULL);
    if (err == ERR_OK) {
        url_remove_userinfo(url);
    }
    return err == ERR_MEMORY ? err : ERR_OK;
}

enum err likeness_ask(struct likeness *likeness, struct bytes url) {
    url = input_trim(url);
    likeness->is_any = url.size == 0;
    likeness->has_scheme = likeness_has_scheme(url);
    buf_clear(&likeness->text);
    if (!likeness->has_scheme) {
        buf_put_string(&likeness->text, "http://");
    }
    enum err err = buf_put(&likeness->text, url);
    return err == ERR_OK ? likeness_read(&likeness->asked, buf_bytes(&likeness->text)) : err;
}

/* ---- comparing ---- */

struct spelling {
    bool is_secure;
    bool has_www;
    struct bytes rest; /* behind both */
};

/* "www." or "www2." */
static size_t likeness_www_size(struct bytes host) {
    size_t size = 3;
    if (!bytes_starts_with_ignore_case(host, BYTES("www"))) {
        return 0;
    }
    while (size < host.size && byte_is_digit(host.data[size])) {
        size++;
    }
    return size < host.size && host.data[size] == '.' ? size + 1 : 0;
}

static struct spelling likeness_split(struct bytes url) {
    struct spelling spelling = {.is_secure = bytes_starts_with_ignore_case(url, BYTES("https://")),
                                .rest = url};
    if (spelling.is_secure || bytes_starts_with_ignore_case(url, BYTES("http://"))) {
        spelling.rest = bytes_skip(url, spelling.is_secure ? 8 : 7);
        size_t www_size = likeness_www_size(spelling.rest);
        spelling.has_www = www_size > 0;
        spelling.rest = bytes_skip(spelling.rest, www_size);
    }
    return spelling;
}

static struct bytes likeness_asked(const struct likeness *likeness) {
    struct bytes href = url_href_without_fragment(&likeness->asked);
    return href.size > 0 ? href : buf_bytes(&likeness->text);
}

static enum likeness_degree likeness_compare(const struct likeness *likeness, struct bytes url) {
    struct spelling asked = likeness_split(likeness_asked(likeness));
    struct spelling other = likeness_split(url);
    if (!bytes_equal(asked.rest, other.rest)) {
        return LIKENESS_FORM;
    }
    bool is_same =
        asked.has_www == other.has_www && (!likeness->has_scheme || asked.is_secure == other.is_secure);
    return is_same ? LIKENESS_SAME : LIKENESS_SITE;
}

enum likeness_degree likeness_of(struct likeness *likeness, struct bytes url) {
    if (likeness->is_any || bytes_equal(likeness_asked(likeness), url)) {
        return LIKENESS_SAME;
    }
    enum likeness_degree degree = likeness_compare(likeness, url);
    if (degree != LIKENESS_FORM || likeness_read(&likeness->other, url) != ERR_OK) {
        return degree;
    }
    return likeness_compare(likeness, url_href_without_fragment(&likeness->other));
}
