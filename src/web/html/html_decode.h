/* html_decode - what text, names and values of HTML mean: character references, line ends, lower case. */
#ifndef MNEMON_WEB_HTML_HTML_DECODE_H
#define MNEMON_WEB_HTML_HTML_DECODE_H

#include "base/buf.h"

enum { HTML_REFERENCE_SIZE_MAX = 1024 };

/* What html_decode() does to a slice. Line ends become LF in any case. */
enum html_decoding {
    HTML_DECODE_NOTHING = 0,
    HTML_DECODE_REFERENCES = 1, /* as in text */
    HTML_DECODE_VALUE = 2,      /* references as in attribute values */
    HTML_DECODE_NUL = 4,        /* zero bytes become U+FFFD */
    HTML_DECODE_LOWER = 8,      /* ASCII letters */
};
enum {
    HTML_DECODING_NAME = HTML_DECODE_NUL | HTML_DECODE_LOWER,
    HTML_DECODING_VALUE = HTML_DECODE_VALUE | HTML_DECODE_NUL,
};

/* Append what the slice means, by flags of enum html_decoding. */
enum err html_decode(struct buf *out, struct bytes text, unsigned decoding);

/* Whether decoding by these flags (but for HTML_DECODE_LOWER) would change nothing. */
bool html_is_plain(struct bytes text, unsigned decoding);

#endif
