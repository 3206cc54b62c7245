#include "node/proxy/proxy_substitute.h"

#include "base/utc.h"
#include "node/proxy/proxy_head.h"
#include "web/html/html.h"
#include "web/html/tree.h"
#include "web/url/url.h"

enum { LOOKED_AT_SIZE_MAX = 1 << 20 }; /* of a page, for its <body> */

/*
 * No allow-same-origin: what it stores or reads is nobody's. No allow-scripts: its files of scripts are never
 * given (see below), so what would run is only what a stranger put into a page that says to be another's.
 */
static const char policy[] = "sandbox allow-popups allow-popups-to-escape-sandbox; script-src 'none'; "
                             "object-src 'none'; base-uri 'none'; form-action 'none'";

/* ---- whether ---- */

/*
 * A script runs with the rights of the page that loads it, and that page may be the living one: no policy of
 * the script's own helps. Browsers say what they want a thing for, if they reached it by https:; else the
 * types must do (proxy_substitute_refusal()).
 */
bool proxy_substitute_suits(const struct fields *request) {
    static const char *const wanted[] = {"document", "iframe", "frame", "image", "style",
                                         "font",     "audio",  "video", "track", NULL};
    const struct field *destination = fields_find(request, BYTES("Sec-Fetch-Dest"), NULL);
    return fields_find(request, BYTES("Service-Worker"), NULL) == NULL &&
           (destination == NULL || bytes_is_one_of(bytes_trim(destination->value), wanted));
}

bool proxy_substitute_is_same_origin(struct bytes a, struct bytes b) {
    struct url urls[2];
    url_init(&urls[0]);
    url_init(&urls[1]);
    bool is_same = url_parse(&urls[0], a, NULL, NULL) == ERR_OK &&
                   url_parse(&urls[1], b, NULL, NULL) == ERR_OK && url_is_web(&urls[0]) &&
                   urls[0].scheme_type == urls[1].scheme_type &&
                   bytes_equal(url_host(&urls[0]), url_host(&urls[1])) &&
                   url_port_or_default(&urls[0]) == url_port_or_default(&urls[1]);
    url_done(&urls[0]);
    url_done(&urls[1]);
    return is_same;
}

/* Errors of its server's, and parts, are no answers. */
static bool is_answer(unsigned status) {
    return status >= 200 && status < 500 && status != 206 && status != 304;
}

const char *proxy_substitute_refusal(const struct proxy_substitute *substitute, struct bytes asked) {
    if (!is_answer(substitute->status)) {
        return "what it has is no answer";
    }
    if (!proxy_substitute_is_same_origin(asked, substitute->url)) {
        return "what it has is of another scheme, host or port";
    }
    if (bytes_starts_with_ignore_case(substitute->url, BYTES("https:")) &&
        !bytes_equal(substitute->tls, BYTES("verified"))) {
        return "what it has was not read over a connection with a valid certificate";
    }
    if (mime_type_is_script(&substitute->type) || mime_type_is(&substitute->type, "application/wasm")) {
        return "it has it, but a script in the place of another would run in living pages";
    }
    return NULL;
}

/* ---- the mark ---- */

static bool is_xhtml(const struct proxy_substitute *substitute) {
    return mime_type_is(&substitute->type, "application/xhtml+xml");
}

bool proxy_substitute_is_page(const struct proxy_substitute *substitute) {
    return mime_type_is_html(&substitute->type);
}

const struct encoding *proxy_substitute_encoding(const struct proxy_substitute *substitute,
                                                 struct bytes page) {
    struct bytes head = bytes_slice(page, 0, page.size < ENCODING_HEAD_SIZE ? page.size : ENCODING_HEAD_SIZE);
    const struct encoding *stated = encoding_of_label(mime_type_charset(&substitute->type));
    return encoding_declared(stated, head, is_xhtml(substitute) ? ENCODING_XML : ENCODING_HTML);
}

/* Behind <body>, else behind the doctype, so that nothing that a page begins with hides it. */
static size_t find_in_html(struct html *html, struct tree *tree, size_t start) {
    struct html_token token;
    size_t place = start;
    while (html_next(html, &token)) {
        size_t end = (size_t)token.offset + token.source.size;
        if (token.kind == HTML_DOCTYPE && place == start) {
            place = end;
        }
        if (token.kind != HTML_START_TAG && token.kind != HTML_END_TAG) {
            continue;
        }
        tree_tag(tree, html, &token);
        if (token.kind == HTML_START_TAG && bytes_equal_ignore_case(token.name, BYTES("body"))) {
            return end;
        }
        if (token.kind == HTML_START_TAG && bytes_equal_ignore_case(token.name, BYTES("frameset"))) {
            return SIZE_MAX;
        }
    }
    return place;
}

size_t proxy_substitute_find_place(const struct proxy_substitute *substitute, struct bytes page) {
    struct html html;
    struct tree tree;
    size_t start = 0;
    const struct encoding *encoding = proxy_substitute_encoding(substitute, page);
    if (encoding_of_bom(page, &start) == NULL) {
        start = 0;
    }
    if (encoding != NULL && encoding->is_wide) {
        return SIZE_MAX; /* plain letters would be others in it */
    }
    html_init(&html);
    tree_init(&tree);
    html_start(&html);
    tree_start(&tree);
    html_feed(&html, bytes_slice(page, 0, page.size < LOOKED_AT_SIZE_MAX ? page.size : LOOKED_AT_SIZE_MAX));
    size_t place = find_in_html(&html, &tree, start);
    html_done(&html);
    bool is_in_body = place > start && place != SIZE_MAX;
    return is_xhtml(substitute) && !is_in_body ? SIZE_MAX : place;
}

static void put_escaped(struct buf *out, struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '<' || byte == '>' || byte == '&' || byte == '"' || byte == '\'' || byte >= 0x7f ||
            byte < ' ') {
            buf_put_format(out, "&#%u;", byte);
        } else {
            buf_put_byte(out, byte);
        }
    }
}

/* Plain letters, which nearly all encodings share; styles that a page's own cannot overrule. */
void proxy_substitute_put_mark(struct buf *out, const struct proxy_substitute *substitute) {
    char time[UTC_RFC1123_SIZE];
    buf_put_string(
        out,
        "<div id=\"mnemon-substitute\" role=\"note\" style=\"all:initial!important;display:block!important;"
        "position:relative!important;z-index:2147483647!important;box-sizing:border-box!important;"
        "width:100%!important;padding:6px 10px!important;background:#ffe08a!important;"
        "color:#000!important;font:14px/1.4 sans-serif!important;border-bottom:2px solid #7a5c00!important\">"
        "The server did not answer. This is a copy of ");
    buf_put_string(out, utc_format_rfc1123(substitute->time_us, time));
    buf_put_string(out, ", from the mnemon ");
    put_escaped(out, bytes_of_string(substitute->source));
    buf_put_string(out, "; scripts and forms do not work in it.</div>");
}

/* ---- redirects ---- */

bool proxy_substitute_is_redirect(const struct proxy_substitute *substitute) {
    unsigned status = substitute->status;
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static struct bytes location_of(const struct proxy_substitute *substitute) {
    return substitute->fields != NULL ? fields_get(substitute->fields, BYTES("Location")) : bytes_of(NULL, 0);
}

bool proxy_substitute_find_target(const struct proxy_substitute *substitute, struct buf *out) {
    struct url base;
    struct url target;
    url_init(&base);
    url_init(&target);
    bool is_found = proxy_substitute_is_redirect(substitute) &&
                    url_parse(&base, substitute->url, NULL, NULL) == ERR_OK &&
                    url_parse(&target, location_of(substitute), &base, NULL) == ERR_OK &&
                    proxy_substitute_is_same_origin(url_href(&base), url_href(&target)) &&
                    buf_put(out, url_href(&target)) == ERR_OK;
    url_done(&base);
    url_done(&target);
    return is_found;
}

void proxy_substitute_put_way(struct buf *out, const struct proxy_substitute *substitute) {
    buf_put_string(out, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>It led elsewhere"
                        "</title>\n<body>");
    proxy_substitute_put_mark(out, substitute);
    buf_put_string(out, "<p>This address led to <code>");
    put_escaped(out, location_of(substitute));
    buf_put_string(out, "</code>.</p>\n");
}

/* ---- the head ---- */

/* As a date of ours, or not at all. */
static void put_date(struct buf *out, const struct proxy_substitute *substitute, const char *name) {
    char text[UTC_RFC1123_SIZE];
    int64_t time_us;
    if (substitute->fields != NULL &&
        utc_parse_http(bytes_trim(fields_get(substitute->fields, bytes_of_string(name))), &time_us)) {
        buf_put_format(out, "%s: %s\r\n", name, utc_format_rfc1123(time_us, text));
    }
}

/*
 * "type/subtype", and the encoding of its text; whatever else it had is left out. What has parts has heads of
 * its own in it, which no list could allow.
 */
static void put_type(struct buf *out, const struct proxy_substitute *substitute,
                     const struct proxy_substitute_form *form) {
    const struct mime_type *type = &substitute->type;
    const struct encoding *stated = encoding_of_label(mime_type_charset(type));
    struct bytes charset = form->charset;
    if (form->is_way) {
        buf_put_string(out, "Content-Type: text/html; charset=utf-8\r\n");
        return;
    }
    if (charset.size == 0 && stated != NULL) {
        charset = bytes_of_string(stated->name);
    }
    bool is_known = mime_type_essence(type).size > 0 && !mime_type_begins(type, "multipart/");
    buf_put_format(out, "Content-Type: %s", is_known ? type->essence : "application/octet-stream");
    if (charset.size > 0) {
        buf_put_format(out, "; charset=%.*s", BYTES_ARG(charset));
    }
    buf_put_string(out, "\r\n");
}

static void put_encodings(struct buf *out, const struct proxy_substitute *substitute,
                          const struct proxy_substitute_form *form) {
    const struct field *field = NULL;
    while (form->is_encoded && substitute->fields != NULL &&
           (field = fields_find(substitute->fields, BYTES("Content-Encoding"), field)) != NULL) {
        proxy_head_put_field(out, BYTES("Content-Encoding"), field->value);
    }
    if (form->undecoded != NULL) {
        proxy_head_put_field(out, BYTES("X-Mnemon-Undecoded"), bytes_of_string(form->undecoded));
    }
}

static void put_memento(struct buf *out, const struct proxy_substitute *substitute, int64_t now_us) {
    char time[UTC_RFC1123_SIZE];
    int64_t age_s = now_us > substitute->time_us ? (now_us - substitute->time_us) / 1000000 : 0;
    buf_put_format(out, "Memento-Datetime: %s\r\nAge: %jd\r\n", utc_format_rfc1123(substitute->time_us, time),
                   (intmax_t)age_s);
    buf_put_format(out, "X-Mnemon-Source: %s\r\n", substitute->source);
}

void proxy_substitute_put_head(struct buf *out, const struct proxy_substitute *substitute,
                               const struct proxy_substitute_form *form) {
    unsigned status = form->is_way ? 200 : substitute->status;
    buf_put_format(out, "HTTP/1.1 %u %s\r\n", status, status == 200 ? "OK" : "Archived");
    put_type(out, substitute, form);
    put_encodings(out, substitute, form);
    buf_put_format(out, "Content-Length: %ju\r\n", (uintmax_t)form->size);
    put_date(out, substitute, "Date");
    put_date(out, substitute, "Last-Modified");
    if (form->target.size > 0) {
        proxy_head_put_field(out, BYTES("Location"), form->target);
    }
    put_memento(out, substitute, form->now_us);
    buf_put_format(out, "Content-Security-Policy: %s\r\n", policy);
    buf_put_string(out, "X-Content-Type-Options: nosniff\r\n"
                        "Cache-Control: no-store\r\n"
                        "Warning: 111 mnemon \"Revalidation Failed\"\r\n"
                        "Via: 1.1 mnemon\r\n");
}
