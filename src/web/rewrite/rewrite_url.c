#include "web/rewrite/rewrite_state.h"
#include "web/url/input.h"

bool rewrite_check(struct rewrite *rewrite, enum err err) {
    if (err != ERR_OK && err != ERR_LIMIT && rewrite->err == ERR_OK) {
        rewrite->err = err;
    }
    return err == ERR_OK;
}

/* The bytes of a buffer that has just been written; nothing where they were too many. */
static struct bytes written(struct rewrite *rewrite, const struct buf *buf) {
    return rewrite_check(rewrite, buf->err) ? buf_bytes(buf) : (struct bytes){NULL, 0};
}

struct bytes rewrite_to_utf8(struct rewrite *rewrite, struct bytes raw) {
    if (rewrite_is_utf8(rewrite) || bytes_are_ascii(raw)) {
        return raw;
    }
    buf_clear(&rewrite->utf8);
    transcode_put(&rewrite->transcode, &rewrite->utf8, raw);
    return written(rewrite, &rewrite->utf8);
}

struct bytes rewrite_decode(struct rewrite *rewrite, struct bytes raw, unsigned decoding) {
    struct bytes text = rewrite_to_utf8(rewrite, raw);
    if (html_is_plain(text, decoding)) {
        return text;
    }
    buf_clear(&rewrite->value);
    html_decode(&rewrite->value, text, decoding);
    return written(rewrite, &rewrite->value);
}

/*
 * References
 */

static bool is_rewritten_scheme(struct bytes scheme) {
    return bytes_equal_ignore_case(scheme, BYTES("http")) ||
           bytes_equal_ignore_case(scheme, BYTES("https")) || bytes_equal_ignore_case(scheme, BYTES("ws")) ||
           bytes_equal_ignore_case(scheme, BYTES("wss"));
}

/* Whether the text is a replay URL: prefix, digits, modifier, '/', and a URL with its scheme. */
static bool is_replay_url(struct bytes text, struct bytes prefix) {
    if (prefix.size == 0 || !bytes_starts_with(text, prefix)) {
        return false;
    }
    text = bytes_skip(text, prefix.size);
    size_t digits = 0;
    while (digits < text.size && byte_is_digit(text.data[digits])) {
        digits++;
    }
    size_t at = digits;
    while (at < text.size && (byte_is_alpha(text.data[at]) || text.data[at] == '_')) {
        at++;
    }
    return digits > 0 && at < text.size && text.data[at] == '/' &&
           input_scheme_length(bytes_skip(text, at + 1)) > 0;
}

bool rewrite_is_absolute(struct bytes text) {
    return input_scheme_length(text) > 0 || (text.size > 0 && text.data[0] == '/');
}

/* Append the replay URL; false, and nothing appended, where the text is left alone. */
static bool put_replay_url(struct rewrite *rewrite, const struct rewrite_place *place, const struct url *base,
                           enum rewrite_modifier modifier, struct bytes text, struct buf *out) {
    struct bytes trimmed = input_trim(text);
    size_t scheme_size = input_scheme_length(trimmed);
    if (trimmed.size == 0 || trimmed.data[0] == '#' ||
        (scheme_size > 0 && !is_rewritten_scheme(bytes_slice(trimmed, 0, scheme_size))) ||
        is_replay_url(trimmed, place->prefix)) {
        return false;
    }
    struct url *url = &rewrite->url;
    enum err err = url_parse(url, trimmed, base, NULL);
    rewrite_check(rewrite, err == ERR_INVALID ? ERR_OK : err);
    bool is_web = url->scheme_type >= URL_SCHEME_HTTP && url->scheme_type <= URL_SCHEME_WSS;
    if (err != ERR_OK || !is_web || url_href(url).size > text.size + REWRITE_GROWTH_MAX) {
        return false;
    }
    buf_put(out, place->prefix);
    buf_put(out, place->timestamp);
    buf_put_string(out, rewrite_modifier_name(modifier));
    buf_put_byte(out, '/');
    buf_put(out, url_href(url));
    return rewrite_check(rewrite, out->err);
}

/* In the document's encoding where the standard wants that. */
static struct bytes encoded(struct rewrite *rewrite, struct bytes text) {
    if (rewrite->encoding == encoding_utf8 || bytes_are_ascii(text)) {
        return text;
    }
    buf_clear(&rewrite->reference);
    transcode_put_reference(&rewrite->transcode, &rewrite->reference, text);
    return written(rewrite, &rewrite->reference);
}

bool rewrite_resolve(struct rewrite *rewrite, enum rewrite_modifier modifier, struct bytes text,
                     struct bytes *ret_url) {
    if (text.size > URL_SIZE_MAX) {
        return false;
    }
    buf_clear(&rewrite->replay);
    if (!put_replay_url(rewrite, &rewrite->place, rewrite->base, modifier, encoded(rewrite, text),
                        &rewrite->replay)) {
        return false;
    }
    *ret_url = buf_bytes(&rewrite->replay);
    return true;
}

enum err rewrite_reference(struct rewrite *rewrite, const struct rewrite_place *place,
                           enum rewrite_modifier modifier, struct bytes reference, struct buf *out) {
    enum err before = rewrite->err; /* a document's may be under way */
    rewrite->err = ERR_OK;
    if (!put_replay_url(rewrite, place, place->url, modifier, reference, out) && rewrite->err == ERR_OK) {
        buf_put(out, reference);
    }
    enum err err = rewrite->err != ERR_OK ? rewrite->err : out->err;
    rewrite->err = before;
    return err;
}
