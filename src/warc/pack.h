/*
 * pack - writes members: every record compressed on its own, so that an offset and a length find it.
 *
 *      plain    the bytes
 *      gzip     one member (RFC 1952), no name, no time
 *      zstd     one frame with content size and checksum, and the dictionary's id if there is one; the
 * file starts with the dictionary (zdict.h)
 *
 * The size of each member is known before its first byte. Members of up to PACK_WHOLE_SIZE_MAX are collected,
 * compressed at once and appended with a single call; larger ones stream. Nothing is allocated per member
 * once each way has been used.
 */
#ifndef MNEMON_WARC_PACK_H
#define MNEMON_WARC_PACK_H

#include "base/sink.h"
#include "warc/zdict.h"

enum {
    PACK_WHOLE_SIZE_MAX = 256 << 10,
    PACK_OUT_SIZE = 512 << 10, /* more than PACK_WHOLE_SIZE_MAX can ever become */
};

enum pack_framing { PACK_PLAIN, PACK_GZIP, PACK_ZSTD };

/* How much a member is worth. */
enum pack_effort {
    PACK_USUAL,
    PACK_INCOMPRESSIBLE, /* no time is wasted on it: images, archives */
    PACK_FINE,           /* with a dictionary, if it is small: as small as can be, in ten times the time */
};

struct pack_options {
    enum pack_framing framing;
    int level;                      /* 1 to 9 for gzip, 1 to 19 for zstd; 0: the usual one, 6 and 3 */
    const struct zdict *dictionary; /* zstd only, with an encoder; borrowed; NULL for none */
};

struct pack {
    struct pack_options options;
    struct sink *sink;
    uint8_t *whole; /* the member as far as it was written, if it is small */
    size_t whole_size;
    uint8_t *out;
    uint64_t left;           /* of what pack_start() announced */
    uint64_t stored_size;    /* of this member, so far */
    bool is_whole;           /* it is collected in `whole` */
    enum pack_effort effort; /* as pack_start() was told */
    struct libdeflate_compressor *deflate;
    struct libdeflate_compressor *deflate_stored; /* level 0 */
    struct z_stream_s *stream;
    struct ZSTD_CCtx_s *zstd;
};

/* The sink is borrowed. */
enum err pack_init(struct pack *pack, struct sink *sink, const struct pack_options *options) MUST_CHECK;
void pack_done(struct pack *pack);

/* Begin a member of exactly `size` bytes. */
enum err pack_start(struct pack *pack, uint64_t size, enum pack_effort effort,
                    struct err_detail *detail) MUST_CHECK;
enum err pack_write(struct pack *pack, struct bytes bytes, struct err_detail *detail) MUST_CHECK;

/* All of the announced bytes were written. Gives the size of the member in the file. */
enum err pack_finish(struct pack *pack, uint64_t *ret_stored_size, struct err_detail *detail) MUST_CHECK;

#endif
