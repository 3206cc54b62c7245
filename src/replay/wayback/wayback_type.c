#include "replay/wayback/wayback_type.h"

#include <stdio.h>

#include "web/html/encoding.h"
#include "web/html/links.h"
#include "web/type/mime_type.h"

enum { SNIFFED_SIZE = 1445 }; /* the standard's "resource header" */

/* ---- what the first bytes say ---- */

/* "Matching an image type pattern", and an audio or video one: nothing that runs is among them. */
static const char *type_of_media(struct bytes head) {
    static const struct {
        size_t at;
        const char *magic;
        const char *essence;
    } media[] = {
        {0, "\x89PNG\r\n\x1a\n", "image/png"},
        {0, "GIF87a", "image/gif"},
        {0, "GIF89a", "image/gif"},
        {0, "\xff\xd8\xff", "image/jpeg"},
        {8, "WEBPVP", "image/webp"},
        {0, "BM", "image/bmp"},
        {4, "ftypavif", "image/avif"},
        {4, "ftyp", "video/mp4"},
        {0, "\x1a\x45\xdf\xa3", "video/webm"},
        {0, "OggS", "video/ogg"},
        {0, "ID3", "audio/mpeg"},
        {8, "WAVE", "audio/wav"},
    };
    if (bytes_starts_with(head, bytes_of("\0\0\1\0", 4))) {
        return "image/x-icon";
    }
    for (size_t i = 0; i < sizeof media / sizeof *media; i++) {
        struct bytes magic = bytes_of_string(media[i].magic);
        if (head.size >= media[i].at + magic.size &&
            bytes_starts_with(bytes_skip(head, media[i].at), magic)) {
            return media[i].essence;
        }
    }
    return NULL;
}

/* The standard's "binary data byte". */
static bool type_is_text(struct bytes head) {
    size_t mark_size;
    if (encoding_of_bom(head, &mark_size) != NULL) {
        return true;
    }
    for (size_t i = 0; i < head.size && i < SNIFFED_SIZE; i++) {
        uint8_t byte = head.data[i];
        bool is_control = byte < ' ' && byte != '\t' && byte != '\n' && byte != '\f' && byte != '\r';
        if (is_control && byte != 0x1b) {
            return false;
        }
    }
    return head.size > 0;
}

/* Of a document without a type. */
static const char *type_of_head(struct bytes head) {
    const char *media = type_of_media(head);
    if (media != NULL) {
        return media;
    }
    switch (links_sniff(head)) {
    case LINKS_HTML:
        return "text/html";
    case LINKS_XML:
        return "text/xml";
    default:
        return bytes_starts_with(head, BYTES("%PDF-")) ? "application/pdf"
               : type_is_text(head)                    ? "text/plain"
                                                       : "application/octet-stream";
    }
}

static const char *type_of_format(enum rewrite_format format) {
    switch (format) {
    case REWRITE_HTML:
        return "text/html";
    case REWRITE_XML:
        return "text/xml";
    case REWRITE_CSS:
        return "text/css";
    case REWRITE_CLASSIC_SCRIPT:
    case REWRITE_MODULE_SCRIPT:
        return "text/javascript";
    case REWRITE_JSON:
        return "application/json";
    case REWRITE_HLS:
        return "application/vnd.apple.mpegurl";
    case REWRITE_DASH:
        return "application/dash+xml";
    case REWRITE_AS_IS:
        break;
    }
    return NULL;
}

/* ---- */

static void type_set(struct mime_type *type, const char *essence) {
    snprintf(type->essence, sizeof type->essence, "%s", essence);
}

static bool type_is_media(const struct mime_type *type) {
    return mime_type_begins(type, "image/") || mime_type_begins(type, "audio/") ||
           mime_type_begins(type, "video/");
}

struct mime_type wayback_type_stated(struct bytes content_type) {
    struct mime_type type;
    (void)mime_type_extract(&type, content_type);
    if (mime_type_is(&type, "unknown/unknown") || mime_type_is(&type, "application/unknown")) {
        type.essence[0] = '\0';
    }
    return type;
}

enum rewrite_modifier wayback_type_asked(const struct http_request *request, enum rewrite_modifier as) {
    static const struct {
        const char *destination;
        enum rewrite_modifier as;
    } destinations[] = {{"script", REWRITE_SCRIPT},
                        {"style", REWRITE_STYLE},
                        {"image", REWRITE_IMAGE},
                        {"audio", REWRITE_IMAGE},
                        {"video", REWRITE_IMAGE}};
    struct bytes destination = http_request_header(request, "Sec-Fetch-Dest");
    for (size_t i = 0; i < sizeof destinations / sizeof *destinations && as != REWRITE_MODULE; i++) {
        if (bytes_equal(destination, bytes_of_string(destinations[i].destination))) {
            return destinations[i].as;
        }
    }
    return as;
}

/* Browsers run a script of any type but these. */
static bool type_may_be_script(const struct mime_type *type) {
    return !type_is_media(type) && !mime_type_is(type, "text/csv");
}

struct mime_type wayback_type_sent(const struct mime_type *stated, enum rewrite_modifier as,
                                   enum rewrite_format format, struct bytes head) {
    struct mime_type type = *stated;
    const char *media = type_of_media(head);
    bool is_script = format == REWRITE_CLASSIC_SCRIPT || format == REWRITE_AS_IS;
    if (as == REWRITE_SCRIPT && is_script && media == NULL && type_may_be_script(&type)) {
        type_set(&type, "text/javascript");
    } else if ((as == REWRITE_IMAGE || as == REWRITE_OBJECT) && media != NULL && !type_is_media(&type)) {
        type_set(&type, media);
    } else if (type.essence[0] == '\0') {
        const char *known = type_of_format(format);
        type_set(&type, known != NULL ? known : type_of_head(head));
    }
    if (type.has_charset && encoding_of_label(mime_type_charset(&type)) == NULL) {
        type.has_charset = false;
        type.charset[0] = '\0';
    }
    return type;
}
