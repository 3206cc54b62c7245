/*
 * url - anything as a URL. The input is a base, a newline, and a reference; without a newline there is no
 * base. Whatever comes out must hold the promises of url.h and canon.h.
 */
#include "web/url/url.h"

#include "fuzz.h"
#include "web/url/canon.h"
#include "web/url/domain.h"
#include "web/url/surt.h"

/* The parts lie in the href in their order. */
static void check_parts(const struct url *url) {
    const struct url_span parts[] = {url->scheme, url->username, url->password, url->host,
                                     url->path,   url->query,    url->fragment};
    uint32_t end = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        ASSERT(parts[i].from <= parts[i].to && parts[i].to <= url->href.size);
        if (parts[i].from != 0 || i == 0) {
            ASSERT(parts[i].from >= end);
            end = parts[i].to;
        }
    }
    ASSERT(end == url->href.size || url->path.to == url->href.size);
    for (size_t i = 0; i < url->href.size; i++) {
        ASSERT(url->href.data[i] >= ' ' && url->href.data[i] < 0x7f);
    }
    struct bytes host = url_host(url);
    struct bytes registrable = domain_registrable(url);
    ASSERT(registrable.size == 0 || bytes_ends_with(host, registrable));
}

/* The href is its own href, whatever the base. */
static void check_href_is_stable(const struct url *url, const struct url *base) {
    struct url again;
    url_init(&again);
    ASSERT(url_parse(&again, url_href(url), base, NULL) == ERR_OK);
    ASSERT(bytes_equal(url_href(&again), url_href(url)));
    ASSERT(again.port == url->port && again.host_type == url->host_type);
    ASSERT(bytes_equal(url_path(&again), url_path(url)));
    url_done(&again);
}

static void check_failure(enum err err, const struct err_detail *detail, size_t size) {
    ASSERT(detail->err == err && detail->text[0] != '\0' && detail->offset <= size);
}

static bool parse(struct url *url, struct bytes text, const struct url *base) {
    struct err_detail detail;
    enum err err = url_parse(url, text, base, &detail);
    if (err != ERR_OK) {
        check_failure(err, &detail, text.size);
        return false;
    }
    check_parts(url);
    check_href_is_stable(url, base);
    return true;
}

/* The canonical form is its own canonical form, with the same SURT. */
static void check_canon(struct bytes text) {
    struct canon first;
    struct canon second;
    struct buf first_surt;
    struct buf second_surt;
    canon_init(&first);
    canon_init(&second);
    buf_init(&first_surt, 1 << 20);
    buf_init(&second_surt, 1 << 20);
    if (canon_run(&first, text, NULL) == ERR_OK) {
        ASSERT(canon_run(&second, canon_url(&first), NULL) == ERR_OK);
        ASSERT(bytes_equal(canon_url(&first), canon_url(&second)));
        ASSERT(surt_put(&first_surt, &first) == ERR_OK && surt_put(&second_surt, &second) == ERR_OK);
        ASSERT(bytes_equal(buf_bytes(&first_surt), buf_bytes(&second_surt)));
    }
    buf_done(&first_surt);
    buf_done(&second_surt);
    canon_done(&first);
    canon_done(&second);
}

/* What is made of it for other uses: without its user, and its origin alone, which is again a URL. */
static void check_parts_of(struct url *url) {
    struct buf origin;
    struct url again;
    buf_init(&origin, 1 << 20);
    url_init(&again);
    ASSERT(url_put_origin(url, &origin) == ERR_OK && origin.size > 0);
    if (!bytes_equal(buf_bytes(&origin), BYTES("null"))) {
        ASSERT(url_parse(&again, buf_bytes(&origin), NULL, NULL) == ERR_OK);
        ASSERT(url_port_or_default(&again) == url_port_or_default(url) ||
               bytes_equal(url_scheme(url), BYTES("blob")));
    }
    url_href_has_userinfo(url_href(url));
    url_text_without_userinfo(url_href(url));
    url_remove_userinfo(url);
    ASSERT(!url_has_userinfo(url) && url_parse(&again, url_href(url), NULL, NULL) == ERR_OK);
    ASSERT(bytes_equal(url_href(&again), url_href(url)));
    url_done(&again);
    buf_done(&origin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes text = bytes_of(data, size);
    size_t newline = bytes_find_byte(text, '\n');
    bool has_base = newline < size;
    struct url base;
    struct url url;
    url_init(&base);
    url_init(&url);
    if (!has_base || parse(&base, bytes_slice(text, 0, newline), NULL)) {
        struct bytes reference = bytes_skip(text, has_base ? newline + 1 : 0);
        if (parse(&url, reference, has_base ? &base : NULL)) {
            check_canon(url_href(&url));
            check_parts_of(&url);
        }
        check_canon(reference);
    }
    url_done(&url);
    url_done(&base);
    return 0;
}
