/*
 * unpack - the bytes of a WARC or ARC file without its compression, and where the file's members begin and
 * end.
 *
 *      plain    WARC/1.1 …                          no members
 *      gzip     [member][member][member]            mostly one record each
 *      zstd     (dictionary)[frame][frame]          one or more frames per record; a frame is a "member" here
 *
 * Which of them it is shows in the first bytes, not in the name. Members follow each other as one stream of
 * bytes with marks: unpack_fill() says whether bytes are there, a member ended, or the file did.
 *
 * Memory is taken once and used for file after file. Output comes in pieces of at most UNPACK_OUT_SIZE, so a
 * bomb costs time but no room; the options bound the time.
 */
#ifndef MNEMON_WARC_UNPACK_H
#define MNEMON_WARC_UNPACK_H

#include "warc/window.h"
#include "warc/zdict.h"

enum {
    UNPACK_IN_SIZE = 128 << 10,
    UNPACK_OUT_SIZE = 256 << 10,
    UNPACK_PEEK_MAX = 16 << 10,   /* the most that unpack_peek() can be asked for */
    UNPACK_WINDOW_LOG_MAX = 23,   /* of zstd: 8 MiB, as the IIPC form allows */
    UNPACK_RATIO_GRACE = 1 << 20, /* the ratio is not looked at before a member has given so much */
};

enum unpack_framing { UNPACK_PLAIN, UNPACK_GZIP, UNPACK_ZSTD };

enum unpack_event {
    UNPACK_BYTES,      /* unpack_ready() is not empty */
    UNPACK_MEMBER_END, /* once, after the last byte of each member */
    UNPACK_END,        /* of the file */
};

/* Zero means no limit. Exceeding one is ERR_LIMIT. */
struct unpack_options {
    uint64_t unpacked_size_max;     /* of the whole file */
    uint32_t ratio_max;             /* unpacked bytes per stored byte of a member; deflate reaches 1,032 */
    const struct zdict *dictionary; /* borrowed; for parts of a file that do not bring their own */
};

/* Decodes gzip members, one after the other, with the same memory. */
struct gunzip {
    struct z_stream_s *stream;
    struct libdeflate_decompressor *whole;
    bool is_fresh; /* nothing of the member has been decoded */
};

/* The same for zstd frames. */
struct unzstd {
    struct ZSTD_DCtx_s *context;
};

struct unpack {
    struct unpack_options options;
    struct window in;
    enum unpack_framing framing;
    bool is_started;      /* the framing is known */
    bool is_in_member;    /* always false for plain files */
    bool is_member_ended; /* but its last output is still there, or its end was not yet reported */
    bool is_broken;       /* the member is damaged: only unpack_find_member() goes on */
    uint64_t member_offset;
    uint64_t member_made; /* unpacked so far */
    uint64_t made;        /* the same for the file */
    uint8_t *out;         /* NULL until the first compressed file */
    size_t out_from;
    size_t out_to;
    struct gunzip gunzip;
    struct unzstd unzstd;
    struct zdict own_dictionary; /* of this file */
};

/* options may be NULL. */
enum err unpack_init(struct unpack *unpack, const struct unpack_options *options) MUST_CHECK;
void unpack_done(struct unpack *unpack);

/* Start with a file from its first byte. */
void unpack_open(struct unpack *unpack, struct source *source);

/*
 * Say what comes next; if no bytes are ready, decode until there are. Damage is an error with the offset
 * of the member in detail->offset.
 */
enum err unpack_fill(struct unpack *unpack, enum unpack_event *ret_event,
                     struct err_detail *detail) MUST_CHECK;

/* Bytes that can be used without another call. Empty before unpack_fill(). */
struct bytes unpack_ready(const struct unpack *unpack);
void unpack_consume(struct unpack *unpack, size_t count);

/* Ready bytes again, but at least `wanted` (up to UNPACK_PEEK_MAX) unless the member or file ends before. */
enum err unpack_peek(struct unpack *unpack, size_t wanted, struct bytes *ret_bytes,
                     struct err_detail *detail) MUST_CHECK;

/* Consume count bytes, which may be many, of this member. *ret_skipped is less if it ends before. */
enum err unpack_skip(struct unpack *unpack, uint64_t count, uint64_t *ret_skipped,
                     struct err_detail *detail) MUST_CHECK;

/* In the file: of the next byte if it is plain, of the member that holds it if it is not. */
uint64_t unpack_offset(const struct unpack *unpack);

/* In the file: behind all that was decoded. At UNPACK_MEMBER_END that is where the member ends. */
static inline uint64_t unpack_stored_end(const struct unpack *unpack) {
    return window_offset(&unpack->in);
}

/* Go to the first byte of a member, or to any byte of a plain file. Dictionary and framing are kept. */
enum err unpack_seek(struct unpack *unpack, uint64_t offset, struct err_detail *detail) MUST_CHECK;

/*
 * Look for the next member from the given offset on whose first bytes satisfy is_start, and go there. If
 * the input cannot go back, from as near as possible. *ret_found is false at the end of the file. Not for
 * plain files.
 */
enum err unpack_find_member(struct unpack *unpack, uint64_t from_offset, bool (*is_start)(struct bytes text),
                            bool *ret_found, struct err_detail *detail) MUST_CHECK;

#endif
