#include "web/html/links_state.h"
#include "web/url/input.h"

/* The bytes of a buffer that has just been written; nothing where they were too many. */
static struct bytes written(struct links *links, const struct buf *buf) {
    if (buf->err == ERR_OK) {
        return buf_bytes(buf);
    }
    links->err = buf->err == ERR_MEMORY ? ERR_MEMORY : links->err;
    return (struct bytes){NULL, 0};
}

struct bytes links_to_utf8(struct links *links, struct bytes raw) {
    if (links->encoding == encoding_utf8 || links->is_decoded || bytes_are_ascii(raw)) {
        return raw;
    }
    buf_clear(&links->utf8);
    transcode_put(&links->transcode, &links->utf8, raw);
    return written(links, &links->utf8);
}

struct bytes links_decode(struct links *links, struct bytes raw, unsigned decoding) {
    struct bytes text = links_to_utf8(links, raw);
    if (html_is_plain(text, decoding)) {
        return text;
    }
    buf_clear(&links->value);
    html_decode(&links->value, text, decoding);
    return written(links, &links->value);
}

/* Whether the text has a scheme, and one that is not fetched. */
static bool has_other_scheme(struct bytes text) {
    size_t size = input_scheme_length(text);
    struct bytes scheme = bytes_slice(text, 0, size);
    return size > 0 && !bytes_equal_ignore_case(scheme, BYTES("http")) &&
           !bytes_equal_ignore_case(scheme, BYTES("https"));
}

/* In the document's encoding where the standard wants that. */
static struct bytes encoded(struct links *links, struct bytes text) {
    if (links->encoding == encoding_utf8 || bytes_are_ascii(text)) {
        return text;
    }
    buf_clear(&links->reference);
    transcode_put_reference(&links->transcode, &links->reference, text);
    return written(links, &links->reference);
}

void links_report(struct links *links, const struct link *link, struct bytes text) {
    text = input_trim(text);
    if (text.size == 0 || text.data[0] == '#' || has_other_scheme(text)) {
        return;
    }
    struct url *url = &links->url;
    enum err err = url_parse(url, encoded(links, text), links->base, NULL);
    links->err = err == ERR_MEMORY ? err : links->err;
    if (err != ERR_OK || !url_is_web(url)) {
        return;
    }
    struct link report = *link;
    report.url = url;
    report.href = url_href(url);
    report.href.size = url_has_fragment(url) ? url->fragment.from - 1 : report.href.size;
    if (!once_add(&links->once, report.href, report.kind)) {
        links->found(links->context, &report);
    }
}
