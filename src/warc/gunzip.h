/*
 * gunzip - decodes gzip members, one after the other, with the same memory.
 *
 * A member that is wholly in the window and fits the output takes libdeflate's short way, which is more than
 * twice as fast; that is nearly every record. All others stream through zlib. Header, CRC-32 and length are
 * checked in both.
 */
#ifndef MNEMON_WARC_GUNZIP_H
#define MNEMON_WARC_GUNZIP_H

#include "warc/window.h"

struct gunzip {
    struct z_stream_s *stream;
    struct libdeflate_decompressor *whole;
    bool is_fresh; /* nothing of the member has been decoded */
};

enum err gunzip_init(struct gunzip *gunzip) MUST_CHECK;
void gunzip_done(struct gunzip *gunzip);

/* The window stands at the first byte of a member. */
void gunzip_start(struct gunzip *gunzip);

/*
 * Consume some of what is ready in the window and write some output. *ret_is_end tells that the member ended
 * with this output. ERR_INVALID and ERR_CORRUPT for damage, ERR_TRUNCATED where the file ends inside; the
 * caller adds the place to the reason.
 */
enum err gunzip_step(struct gunzip *gunzip, struct window *window, uint8_t *out, size_t out_size,
                     size_t *ret_size, bool *ret_is_end, struct err_detail *detail) MUST_CHECK;

/* Could a member start here? Only the fixed part of its header is looked at. */
static inline bool gunzip_is_start(struct bytes text) {
    return text.size >= 4 && text.data[0] == 0x1f && text.data[1] == 0x8b && text.data[2] == 8 &&
           (text.data[3] & 0xe0) == 0;
}

#endif
