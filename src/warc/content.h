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
 * or, for a caller that wants a piece at a time, content_next() in the place of content_put().
 *
 * A few KiB may claim to be gigabytes. Output comes in pieces, so that costs no memory; limits bound the
 * time, ERR_LIMIT: size_max, after exactly so many bytes; CONTENT_RATIO_MAX bytes for each stored one, looked
 * at from CONTENT_GRACE_SIZE on; and both for what lies between two encodings. Damage is ERR_CORRUPT, after
 * all that could be decoded before it. Memory is taken when an encoding is first met and kept for the next
 * document, but for large windows.
 */
#ifndef MNEMON_WARC_CONTENT_H
#define MNEMON_WARC_CONTENT_H

#include "base/sink.h"
#include "warc/payload.h"

enum {
    CONTENT_CODINGS_MAX = 3,
    CONTENT_OUT_SIZE = 64 << 10,
    CONTENT_RATIO_MAX = 200,       /* text reaches 20, tables 100; deflate could reach 1,032, brotli any */
    CONTENT_GRACE_SIZE = 16 << 20, /* decoded in a twentieth of a second */
    CONTENT_STEPS_MAX = 16,        /* of one content_next(): at most some milliseconds */
};

enum content_coding { CONTENT_GZIP, CONTENT_DEFLATE, CONTENT_BROTLI, CONTENT_ZSTD };

/* One encoding that is being undone. */
struct content_stage {
    enum content_coding coding;
    bool is_known;    /* its first bytes have been seen: it is what it is called, or passes as it is */
    bool is_passing;  /* it is not encoded at all */
    bool is_ended;    /* a gzip member or zstd frame may follow, or padding */
    bool is_padding;  /* whatever follows is not part of it */
    bool has_more;    /* there may be output without more input */
    uint8_t first[2]; /* the first bytes, until there are enough to tell */
    size_t first_size;
    size_t first_left;       /* of them, those that have not been decoded */
    struct bytes ready;      /* decoded, in `out` or before the stage; the next one has not taken it */
    uint64_t size;           /* decoded so far */
    enum err err;            /* after what is ready */
    struct z_stream_s *zlib; /* each NULL until needed */
    struct BrotliDecoderStateStruct *brotli;
    struct ZSTD_DCtx_s *zstd;
    uint8_t *out;
};

struct content {
    struct payload payload;
    struct content_stage stages[CONTENT_CODINGS_MAX]; /* the outermost first */
    size_t stages_count;
    struct sink *sink; /* NULL: content_next() is used */
    struct bytes part; /* of the body, not yet decoded */
    uint64_t size_max;
    uint64_t size;        /* given out so far */
    uint64_t stored_size; /* taken in so far */
    bool is_ending;       /* there is no more input */
    bool has_ended;       /* and the first stage knows */
    bool is_paused;       /* content_next() gave nothing because it had its turn */
    uint32_t steps_left;  /* of this turn */
    enum err err;         /* sticks */
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

/*
 * Take from *input, and give one piece of the document, which lasts until the next call; the rest of the
 * input must stay where it is until it is used up. An empty piece: if is_paused, call again; else there must
 * be more input, or content_end(). Between two calls a caller can look whether anybody still wants the
 * document.
 */
enum err content_next(struct content *content, struct bytes *input, struct bytes *ret_piece,
                      struct err_detail *detail) MUST_CHECK;

/* There is no more input; some of the document may still come. */
void content_end(struct content *content);

/* All of it has come. As content_finish(). */
enum err content_close(struct content *content, struct err_detail *detail) MUST_CHECK;

/* For a caller that stops in the middle: give large windows back. */
void content_rest(struct content *content);

#endif
