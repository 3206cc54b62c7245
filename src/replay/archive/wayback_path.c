#include "replay/archive/wayback_path.h"

#include "base/utc.h"
#include "replay/archive/stamp.h"
#include "web/url/percent.h"

enum { SLASHES_MAX = 3, SCHEME_SIZE_MAX = 16, SECOND_US = 1000000 };

void wayback_path_init(struct wayback_path *path) {
    *path = (struct wayback_path){.kind = WAYBACK_CAPTURE};
    buf_init(&path->url, URL_SIZE_MAX);
}

void wayback_path_done(struct wayback_path *path) {
    buf_done(&path->url);
}

static bool is_outside_headers(uint8_t byte) {
    return byte <= ' ' || byte >= 0x7f || byte == '<' || byte == '>' || byte == '"' || byte == '\\';
}

void wayback_put_url(struct buf *out, struct bytes url) {
    size_t start = 0;
    for (size_t i = 0; i < url.size; i++) {
        if (is_outside_headers(url.data[i])) {
            buf_put(out, bytes_slice(url, start, i));
            percent_put_byte(out, url.data[i]);
            start = i + 1;
        }
    }
    buf_put(out, bytes_skip(url, start));
}

/* ---- the URL ---- */

/* A character that stands at the start, plain or percent-encoded; its size, 0 if it is another. */
static size_t path_match(struct bytes text, uint8_t wanted, bool *is_encoded) {
    uint8_t byte;
    if (text.size > 0 && text.data[0] == wanted) {
        return 1;
    }
    if (percent_decode(text, &byte) && byte == wanted) {
        *is_encoded = true;
        return 3;
    }
    return 0;
}

static size_t scheme_size(struct bytes url) {
    size_t size = 0;
    while (
        size < url.size && size < SCHEME_SIZE_MAX &&
        (byte_is_alpha(url.data[size]) ||
         (size > 0 && (byte_is_digit(url.data[size]) || url.data[size] == '+' || url.data[size] == '-')))) {
        size++;
    }
    return size;
}

static bool has_slashes(struct bytes scheme) {
    static const char *const schemes[] = {"http", "https", "ftp", "ws", "wss", NULL};
    return bytes_is_one_of(scheme, schemes);
}

/* What stands before the host, or before all of a URL without one. Returns what follows. */
static struct bytes put_scheme(struct buf *out, struct bytes url, bool *ret_is_encoded,
                               bool *ret_has_scheme) {
    size_t size = scheme_size(url);
    struct bytes scheme = bytes_slice(url, 0, size);
    size_t colon = path_match(bytes_skip(url, size), ':', ret_is_encoded);
    struct bytes rest = bytes_skip(url, size + colon);
    bool is_port = colon > 0 && rest.size > 0 && byte_is_digit(rest.data[0]); /* localhost:8080/ */
    if (colon > 0 && size > 0 && has_slashes(scheme)) {
        for (size_t i = 0; i < SLASHES_MAX; i++) {
            rest = bytes_skip(rest, path_match(rest, '/', ret_is_encoded));
        }
        buf_put(out, scheme);
        buf_put_string(out, "://");
        *ret_has_scheme = true;
        return rest;
    }
    *ret_has_scheme = colon > 0 && size > 0 && !is_port;
    if (!*ret_has_scheme) {
        buf_put_string(out, "http://");
        *ret_is_encoded = false;
        return url;
    }
    return url; /* dns:, urn: … */
}

/* Encoded as a whole: decoded as a whole; what must not be plain in a URL is then encoded again. */
static enum err put_url(struct buf *out, struct bytes url, bool *ret_has_scheme) {
    bool is_encoded = false;
    struct bytes rest = put_scheme(out, url, &is_encoded, ret_has_scheme);
    if (!is_encoded) {
        wayback_put_url(out, rest);
        return out->err;
    }
    struct buf plain;
    buf_init(&plain, URL_SIZE_MAX);
    enum err err = percent_put_decoded(&plain, rest);
    struct bytes decoded = buf_bytes(&plain);
    wayback_put_url(out, bytes_slice(decoded, 0, bytes_find_byte(decoded, '#')));
    buf_done(&plain);
    return err != ERR_OK ? err : out->err;
}

/* ---- what stands before it ---- */

static size_t count_digits(struct bytes text) {
    size_t count = 0;
    while (count < text.size && byte_is_digit(text.data[count])) {
        count++;
    }
    return count;
}

/* "im_": two or three small letters and an underscore. */
static size_t modifier_size(struct bytes text) {
    size_t size = 0;
    while (size < text.size && size < WAYBACK_MODIFIER_SIZE_MAX - 1 && text.data[size] >= 'a' &&
           text.data[size] <= 'z') {
        size++;
    }
    return size >= 2 && size < text.size && text.data[size] == '_' ? size + 1 : 0;
}

static struct bytes skip_slashes(struct bytes text) {
    size_t count = 0;
    while (count < SLASHES_MAX && count < text.size && text.data[count] == '/') {
        count++;
    }
    return bytes_skip(text, count);
}

/* A list is asked for by a star at either end. */
static bool is_list(struct bytes url) {
    return bytes_ends_with(url, BYTES("*")) || bytes_starts_with(url, BYTES("*."));
}

/*
 * Cut "2009-2015/" off, if the target begins so; either end may be missing, and a star may stand behind it. A
 * name of a host that looks so would be all digits.
 */
static enum err take_range(struct wayback_path *path, struct bytes *target, struct err_detail *detail) {
    struct bytes from = bytes_slice(*target, 0, count_digits(*target));
    struct bytes rest = bytes_skip(*target, from.size);
    if (rest.size == 0 || rest.data[0] != '-') {
        return ERR_OK;
    }
    rest = bytes_skip(rest, 1);
    struct bytes to = bytes_slice(rest, 0, count_digits(rest));
    rest = bytes_skip(rest, to.size);
    rest = bytes_skip(rest, rest.size > 0 && rest.data[0] == '*');
    if (from.size + to.size == 0 || rest.size == 0 || rest.data[0] != '/') {
        return ERR_OK;
    }
    if ((from.size > 0 && !utc_parse_digits(from, false, &path->from_us)) ||
        (to.size > 0 && !utc_parse_digits(to, true, &path->time_us)) || path->from_us > path->time_us) {
        return err_set(detail, ERR_INVALID, "there are no such times: %.*s-%.*s", BYTES_ARG(from),
                       BYTES_ARG(to));
    }
    path->time_us += to.size > 0 ? SECOND_US - 1 : 0; /* all of the last second */
    path->kind = WAYBACK_CALENDAR;
    *target = skip_slashes(rest);
    return target->size == 0 ? err_set(detail, ERR_INVALID, "no URL follows the times")
           : is_list(*target)
               ? err_set(detail, ERR_INVALID, "a range of times is of one URL; /cdx takes from= and to=")
               : ERR_OK;
}

/* Cut "~0123456789abcdef" off the start. */
static uint64_t take_id(struct bytes *text) {
    struct bytes head = bytes_slice(*text, 0, text->size > STAMP_ID_DIGITS ? STAMP_ID_DIGITS + 1 : 0);
    uint64_t id = stamp_take_id(&head);
    *text = bytes_skip(*text, id != 0 ? STAMP_ID_DIGITS + 1 : 0);
    return id;
}

/* Cut "20260102030405im_/" or "2026*" off, if the target begins so; a URL without them stays as it is.
 */
static enum err take_time(struct wayback_path *path, struct bytes *target, struct err_detail *detail) {
    size_t digits = count_digits(*target);
    struct bytes rest = bytes_skip(*target, digits);
    uint64_t id = digits == WAYBACK_DIGITS_MAX ? take_id(&rest) : 0;
    bool has_star = rest.size > 0 && rest.data[0] == '*' && (rest.size == 1 || rest.data[1] == '/');
    size_t size = has_star ? 1 : modifier_size(rest);
    struct bytes modifier = bytes_slice(rest, 0, size);
    rest = bytes_skip(rest, size);
    bool is_time = (digits > 0 || size > 0) && (rest.size == 0 || rest.data[0] == '/');
    if (!is_time) {
        return ERR_OK;
    }
    if (digits > WAYBACK_DIGITS_MAX) {
        return err_set(detail, ERR_INVALID, "a time has up to 14 digits, this one has %zu", digits);
    }
    path->digits = bytes_slice(*target, 0, digits);
    if (digits > 0 && !utc_parse_digits(path->digits, true, &path->time_us)) {
        return err_set(detail, ERR_INVALID, "there is no such time: %.*s", BYTES_ARG(path->digits));
    }
    path->id = id;
    path->kind = has_star ? WAYBACK_CALENDAR : WAYBACK_CAPTURE;
    path->modifier = has_star ? bytes_of(NULL, 0) : modifier;
    path->as = rewrite_modifier_of(path->modifier);
    *target = skip_slashes(rest);
    if (target->size == 0) {
        return err_set(detail, ERR_INVALID, "no URL follows the time");
    }
    return ERR_OK;
}

static void take_key(struct wayback_path *path, struct bytes *target) {
    if (target->size > 0 && target->data[0] == '~') {
        size_t end = bytes_find_byte(*target, '/');
        path->key = bytes_slice(*target, 1, end);
        *target = bytes_skip(*target, end < target->size ? end + 1 : end);
    }
}

enum err wayback_path_parse(struct wayback_path *path, struct bytes target, struct err_detail *detail) {
    struct buf url = path->url;
    *path = (struct wayback_path){
        .kind = WAYBACK_CAPTURE, .from_us = INT64_MIN, .time_us = INT64_MAX, .as = REWRITE_PAGE};
    path->url = url;
    buf_clear(&path->url);
    take_key(path, &target);
    target = skip_slashes(target);
    if (target.size == 0) {
        return err_set(detail, ERR_NOT_FOUND, "no URL is given");
    }
    enum err err = take_range(path, &target, detail);
    if (err == ERR_OK && path->kind == WAYBACK_CAPTURE) {
        err = take_time(path, &target, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (path->kind == WAYBACK_CALENDAR && is_list(target)) {
        path->kind = WAYBACK_LIST;
    }
    if (target.data[0] == '*') { /* store/instance/query.h knows what that means */
        wayback_put_url(&path->url, target);
        path->has_scheme = true;
        err = path->url.err;
    } else {
        err = put_url(&path->url, target, &path->has_scheme);
    }
    if (err == ERR_LIMIT) {
        return err_set(detail, err, "the URL is longer than %d bytes", URL_SIZE_MAX);
    }
    return err;
}
