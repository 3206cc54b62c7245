/*
 * unzstd - decodes zstd frames, one after the other, with the same memory.
 *
 * Windows of more than 8 MiB are refused, so a frame cannot make us take more memory than that; the output
 * comes in pieces, whatever the frame claims. Checksums are verified. What lies between the frames of a
 * `.warc.zst` file (skippable frames, the dictionary) is the business of unpack.c and zdict.c.
 */
#ifndef MNEMON_WARC_UNZSTD_H
#define MNEMON_WARC_UNZSTD_H

#include "warc/window.h"
#include "warc/zdict.h"

enum { UNZSTD_WINDOW_LOG_MAX = 23 }; /* 8 MiB, as the IIPC form allows */

struct unzstd {
    struct ZSTD_DCtx_s *context;
};

enum err unzstd_init(struct unzstd *unzstd) MUST_CHECK;
void unzstd_done(struct unzstd *unzstd);

/* The window stands at the first byte of a frame. dictionary: NULL or what the file's frames refer to. */
void unzstd_start(struct unzstd *unzstd, const struct zdict *dictionary);

/* As gunzip_step(). */
enum err unzstd_step(struct unzstd *unzstd, struct window *window, uint8_t *out, size_t out_size,
                     size_t *ret_size, bool *ret_is_end, struct err_detail *detail) MUST_CHECK;

static inline bool unzstd_is_start(struct bytes text) {
    return bytes_starts_with(text, BYTES("\x28\xb5\x2f\xfd"));
}

/* 0x184D2A50 to 0x184D2A5F, little-endian. */
static inline bool unzstd_is_skippable(struct bytes text) {
    return text.size >= 4 && (text.data[0] & 0xf0) == 0x50 &&
           bytes_starts_with(bytes_skip(text, 1), BYTES("\x2a\x4d\x18"));
}

#endif
