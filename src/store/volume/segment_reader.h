/*
 * segment_reader - the records of a segment one after the other, and the damage between them.
 *
 *      segment_reader_open(&reader, segment, from, end, &detail);
 *      segment_reader_walk(&reader, UINT64_MAX, &visitor, context, &detail);
 *      segment_reader_done(&reader);
 *
 * Whoever wants to take the records one by one uses reader.warc. The segment is held meanwhile. One thread.
 */
#ifndef MNEMON_STORE_VOLUME_SEGMENT_READER_H
#define MNEMON_STORE_VOLUME_SEGMENT_READER_H

#include "store/volume/segment.h"
#include "warc/warc_reader.h"

struct segment_reader {
    struct segment_source source;
    struct warc_reader warc;
    uint64_t position; /* everything before it was visited */
    bool is_at_end;
};

/* From a record, or from the start, up to the end of what may be read. After a failure there is nothing to
 * free. */
enum err segment_reader_open(struct segment_reader *reader, const struct segment *segment, uint64_t from,
                             uint64_t end, struct err_detail *detail) MUST_CHECK;
void segment_reader_done(struct segment_reader *reader);

struct segment_visitor {
    /* The record that the reader is at; to be read to its end. What it finds to be damaged is passed on. */
    enum err (*record)(void *context, struct warc_reader *reader, struct err_detail *detail);
    /* Bytes that are no record, found at the reason's offset. */
    enum err (*damage)(void *context, uint64_t from, uint64_t end, const struct err_detail *reason);
};

/* On from the position, to the end or until at least size_max bytes were visited. */
enum err segment_reader_walk(struct segment_reader *reader, uint64_t size_max,
                             const struct segment_visitor *visitor, void *context,
                             struct err_detail *detail) MUST_CHECK;

/* Is the error about the bytes of a segment, so that one may go on behind them? */
bool segment_is_damage(enum err err);

#endif
