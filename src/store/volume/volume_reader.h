/*
 * volume_reader - what the files share that read documents. Private to them.
 *
 *      volume_read.c    records: one read and one decompression, or in pieces where they are large
 *      volume_get.c     documents: the index, the record, its payload
 */
#ifndef MNEMON_STORE_VOLUME_VOLUME_READER_H
#define MNEMON_STORE_VOLUME_VOLUME_READER_H

#include "base/sha256.h"
#include "store/volume/prefix_decoder.h"
#include "store/volume/volume_state.h"
#include "warc/payload.h"
#include "warc/unpack.h"
#include "warc/warc_record.h"

struct volume_reader {
    struct volume *volume;
    struct ZSTD_DCtx_s *zstd;
    struct prefix_decoder prefix;
    struct libdeflate_decompressor *deflate;
    struct buf frame;        /* as stored */
    struct buf whole;        /* decompressed at once, unless the prefix decoder did it */
    struct scratch pieces;   /* decompressed piece by piece */
    struct bytes record;     /* in one of them */
    struct scratch document; /* where it is not one piece of the record */
    struct buf head;         /* of the record: parsing writes to it */
    bool has_unpack;         /* the next is set up: the first large record was read */
    struct unpack unpack;
    struct payload payload;
    struct warc_record parsed;
    struct sha256 sha256;
};

#endif
