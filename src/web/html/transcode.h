/*
 * transcode - text of any encoding to UTF-8, and the query of a URL back.
 *
 * iconv does the work. Opening one of its converters takes long, so the last one is kept; a struct serves one
 * thread. What cannot be decoded becomes U+FFFD.
 */
#ifndef MNEMON_WEB_HTML_TRANSCODE_H
#define MNEMON_WEB_HTML_TRANSCODE_H

#include <iconv.h>

#include "base/buf.h"
#include "web/html/encoding.h"

enum { TRANSCODE_LEFT_SIZE_MAX = 16, TRANSCODE_STEP = 1 << 15 };

struct transcode {
    const struct encoding *encoding;
    const struct encoding *decoder_of; /* what the converters are open for, or NULL */
    const struct encoding *encoder_of;
    iconv_t decoder;
    iconv_t encoder;
    size_t left_size; /* of a character whose end has not come yet */
    uint8_t left[TRANSCODE_LEFT_SIZE_MAX];
};

void transcode_init(struct transcode *transcode);
void transcode_done(struct transcode *transcode);

/* From here on text of this encoding comes. */
void transcode_start(struct transcode *transcode, const struct encoding *encoding);

/* Append the text, which is whole, as UTF-8. */
enum err transcode_put(struct transcode *transcode, struct buf *out, struct bytes text);

/* The same for a piece of a stream; a character may go on in the next one. is_last: none will come. */
enum err transcode_put_piece(struct transcode *transcode, struct buf *out, struct bytes piece, bool is_last);

/*
 * Convert the beginning of *piece, at most TRANSCODE_STEP bytes, and take it off. *out is cleared first, so
 * that documents of any size need a buffer of one size.
 */
enum err transcode_step(struct transcode *transcode, struct buf *out, struct bytes *piece, bool is_last);

/*
 * Append the reference, a URL in UTF-8, with its query percent-encoded in the document's encoding as the URL
 * standard demands it: what has no place there becomes "%26%23…%3B". The rest stays as it is.
 */
enum err transcode_put_reference(struct transcode *transcode, struct buf *out, struct bytes reference);

/*
 * For a process that will not be able to open files: load what converts, of all encodings, and keep it until
 * the process ends. The C library has a module for each.
 */
void transcode_load_all(void);

#endif
