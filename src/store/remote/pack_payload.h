/*
 * pack_payload - documents on the wire: one zstd frame where that makes them smaller, as they are where not.
 *
 * For clients and servers of volumes alike. Packing is fast rather than tight (level 1): what is stored is
 * compressed again, with the dictionary of its segment. Unpacking takes any bytes: the frame must state its
 * size, within the caller's bound, and have exactly that; no frame takes more than 8 MiB of memory beside its
 * output. One thread at a time.
 */
#ifndef MNEMON_STORE_REMOTE_PACK_PAYLOAD_H
#define MNEMON_STORE_REMOTE_PACK_PAYLOAD_H

#include "base/scratch.h"

struct pack_payload {
    struct ZSTD_CCtx_s *packer;
    struct ZSTD_DCtx_s *unpacker;
    struct buf piece; /* what is on its way between zstd and a scratch */
};

enum err pack_payload_init(struct pack_payload *pack) MUST_CHECK;
void pack_payload_done(struct pack_payload *pack);

/* Append the document: as one frame where that is worth it, else as it is. */
enum err pack_payload_put(struct pack_payload *pack, struct bytes document, struct scratch *out,
                          bool *ret_is_packed) MUST_CHECK;

/* Append what exactly one frame holds. ERR_INVALID, ERR_TRUNCATED; ERR_LIMIT above size_max. */
enum err pack_payload_unpack(struct pack_payload *pack, struct bytes frame, uint64_t size_max,
                             struct scratch *out, struct err_detail *detail) MUST_CHECK;

#endif
