#include "store/index/index_mime.h"

/* The place is the code. Most frequent first, as in the statistics of Common Crawl, since the search is
 * linear. */
static const char *const names[] = {
    "",
    "text/html",
    "image/jpeg",
    "image/png",
    "text/css",
    "application/javascript",
    "text/javascript",
    "image/gif",
    "application/json",
    "image/webp",
    "image/svg+xml",
    "text/plain",
    "application/x-javascript",
    "font/woff2",
    "warc/revisit",
    "unk",
    "application/pdf",
    "application/xhtml+xml",
    "application/xml",
    "text/xml",
    "application/octet-stream",
    "application/rss+xml",
    "application/atom+xml",
    "image/x-icon",
    "image/vnd.microsoft.icon",
    "font/woff",
    "application/font-woff",
    "application/font-woff2",
    "application/x-font-woff",
    "font/ttf",
    "application/x-font-ttf",
    "font/otf",
    "application/vnd.ms-fontobject",
    "video/mp4",
    "video/webm",
    "audio/mpeg",
    "audio/mp4",
    "audio/ogg",
    "application/ogg",
    "video/mp2t",
    "application/vnd.apple.mpegurl",
    "application/x-mpegurl",
    "application/dash+xml",
    "video/quicktime",
    "video/x-flv",
    "application/x-shockwave-flash",
    "image/avif",
    "image/bmp",
    "image/tiff",
    "image/jpg",
    "application/zip",
    "application/gzip",
    "application/x-gzip",
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/epub+zip",
    "application/ld+json",
    "application/manifest+json",
    "application/wasm",
    "application/rdf+xml",
    "application/x-www-form-urlencoded",
    "text/calendar",
    "text/csv",
    "text/dns",
    "text/vtt",
    "binary/octet-stream",
};

enum { NAMES_COUNT = sizeof names / sizeof *names };
_Static_assert((int)NAMES_COUNT < (int)INDEX_MIME_OTHER, "a code is one byte and the last one is taken");

uint8_t index_mime_code(struct bytes mime) {
    for (uint8_t code = 0; code < NAMES_COUNT; code++) {
        if (bytes_equal(mime, bytes_of_string(names[code]))) {
            return code;
        }
    }
    return INDEX_MIME_OTHER;
}

bool index_mime_of_code(uint8_t code, struct bytes *ret_mime) {
    if (code >= NAMES_COUNT) {
        return false;
    }
    *ret_mime = bytes_of_string(names[code]);
    return true;
}
