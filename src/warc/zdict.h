/*
 * zdict - a zstd dictionary, prepared for reading, writing or both, and the frame that carries it in a file.
 *
 * Compressed apart from each other, pages of one site repeat the same tags again and again; a dictionary
 * trained on such pages gives every record a past to refer to. A `.warc.zst` file brings its own, first of
 * all:
 *
 *      offset  size
 *           0     4   5d 2a 4d 18        magic of a skippable frame, reserved for this
 *           4     4   size, little-endian
 *           8  size   the dictionary (37 a4 30 ec …), or one zstd frame that holds it (28 b5 2f fd …)
 *
 * A struct zdict never changes after zdict_init(): any number of readers and writers share it, in any
 * threads, and must not outlive it. Specification:
 * https://iipc.github.io/warc-specifications/specifications/warc-zstd/
 */
#ifndef MNEMON_WARC_ZDICT_H
#define MNEMON_WARC_ZDICT_H

#include "base/buf.h"

enum {
    ZDICT_SIZE_MAX = 8 << 20, /* what readers have to allow, and what ours do */
    ZDICT_FRAME_HEADER_SIZE = 8,
    ZDICT_SMALL_SIZE_MAX = 2 << 10, /* requests and revisits */
};

static const uint32_t ZDICT_FRAME_MAGIC = 0x184D2A5D;

/* With this level nothing is prepared for writing. */
enum { ZDICT_LEVEL_NONE = 0 };

struct zdict {
    struct ZSTD_DDict_s *decoder;
    struct ZSTD_CDict_s *encoder;       /* NULL if it is only for reading */
    struct ZSTD_CDict_s *small_encoder; /* likewise; for records up to ZDICT_SMALL_SIZE_MAX */
    struct ZSTD_CDict_s *fine_encoder;  /* likewise; for those of them that may take their time */
    uint32_t id;                        /* 0 if it is plain text without a header */
};

/*
 * From the bytes of a dictionary, which are copied. level: 1 to 19 to write with it, or ZDICT_LEVEL_NONE.
 * ERR_INVALID if zstd does not take it, ERR_LIMIT above ZDICT_SIZE_MAX.
 */
enum err zdict_init(struct zdict *zdict, struct bytes dictionary, int level,
                    struct err_detail *detail) MUST_CHECK;

/* The bytes of a dictionary, from the content of the frame drawn above. Appended to out. */
enum err zdict_unpack(struct bytes content, struct buf *out, struct err_detail *detail) MUST_CHECK;

/* Both at once, for reading. */
enum err zdict_init_content(struct zdict *zdict, struct bytes content, struct err_detail *detail) MUST_CHECK;
void zdict_done(struct zdict *zdict);

/* Append the whole frame, the dictionary compressed if that makes it smaller. */
enum err zdict_put_frame(struct buf *out, struct bytes dictionary) MUST_CHECK;

#endif
