/*
 * content - the document as its author wrote it: an HTTP body without chunks and without content encodings.
 *
 * WARC keeps bodies as they were received. Whoever wants to read them (links, replay) passes them through
 * here: gzip, x-gzip, deflate (with or without zlib's header, as servers disagree), br and zstd, up to
 * CONTENT_CODINGS_MAX of them one inside the other. A body that is labelled but not encoded passes as it is:
 * many servers do that.
 *
 *      content_start(&content, head, size_max, &sink);
 *      for each piece of the body: content_put(&content, piece, &detail);
 *      content_finish(&content, &detail);
 *
 * Output comes in pieces, so a bomb costs no memory; size_max bounds the time: ERR_LIMIT, after exactly so
 * many bytes. Damage is ERR_CORRUPT, after all that could be decoded before it. Memory is taken when an
 * encoding is first met and kept for the next document.
 */
#ifndef MNEMON_WARC_CONTENT_H
#define MNEMON_WARC_CONTENT_H

#include "base/sink.h"
#include "warc/payload.h"

enum { CONTENT_CODINGS_MAX = 3, CONTENT_OUT_SIZE = 64 << 10 };

enum content_coding { CONTENT_GZIP, CONTENT_DEFLATE, CONTENT_BROTLI, CONTENT_ZSTD };

/* One encoding that is being undone. */
struct content_stage {
    enum content_coding coding;
    bool is_known;    /* its first bytes have been seen: it is what it is called, or passes as it is */
    bool is_passing;  /* it is not encoded at all */
    bool is_ended;    /* what follows is not part of it */
    uint8_t first[2]; /* the first bytes, until there are enough to tell */
    size_t first_size;
    struct z_stream_s *zlib; /* each NULL until needed */
    struct BrotliDecoderStateStruct *brotli;
    struct ZSTD_DCtx_s *zstd;
    uint8_t *out;
};

struct content {
    struct payload payload;
    struct content_stage stages[CONTENT_CODINGS_MAX]; /* the outermost first */
    size_t stages_count;
    struct sink *sink;
    uint64_t size_max;
    uint64_t size; /* given out so far */
    enum err err;  /* sticks */
};

enum err content_init(struct content *content) MUST_CHECK;
void content_done(struct content *content);

/*
 * Begin with a message whose head is whole; an empty head stands for a body that is not HTTP. ERR_UNSUPPORTED
 * if an encoding is unknown: the body cannot be read then.
 */
enum err content_start(struct content *content, struct bytes head, uint64_t size_max, struct sink *sink,
                       struct err_detail *detail) MUST_CHECK;
enum err content_put(struct content *content, struct bytes body, struct err_detail *detail) MUST_CHECK;

/* ERR_TRUNCATED if an encoding has no end. */
enum err content_finish(struct content *content, struct err_detail *detail) MUST_CHECK;

#endif
