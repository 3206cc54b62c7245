/*
 * segment - one file of the archive: a WARC file that only ever grows, readable by any WARC tool.
 *
 *      volumes/0/00000001.warc.zst         00000001-1.warc.zst once it has been compacted
 *          [dictionary]            zstd only, where the archive has trained one
 *          [warcinfo]              what wrote this file
 *          [record] [record] …     one frame each
 *
 * A segment is open while its volume is. Several threads read it, the volume's committer appends. It does not
 * know what its records mean: that is the ledger's.
 */
#ifndef MNEMON_STORE_VOLUME_SEGMENT_H
#define MNEMON_STORE_VOLUME_SEGMENT_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "base/source.h"
#include "store/disk/vfs.h"
#include "store/document/location.h"
#include "warc/pack.h"
#include "warc/zdict.h"

enum {
    SEGMENT_NAME_SIZE_MAX = 40,
    SEGMENT_PATH_SIZE_MAX = 256,
    SEGMENT_GENERATIONS = 256, /* a number is place * 256 + generation: how often it has been compacted */
};

struct segment {
    uint32_t number;
    enum pack_framing framing;
    struct vfs_file file;
    uint64_t size; /* appended so far; the committer's */
    bool has_dictionary;
    struct zdict dictionary;   /* for reading and writing */
    struct buf dictionary_raw; /* its bytes, for a segment that takes it over */
    uint8_t dictionary_digest[SHA256_SIZE];
    atomic_uint holders_count;
};

/* The first number of the place behind this one. */
static inline uint32_t segment_next_number(uint32_t number) {
    return (number / SEGMENT_GENERATIONS + 1) * SEGMENT_GENERATIONS;
}

/* "00000001.warc.zst", "00000001-3.warc.zst". Returns out. */
const char *segment_name(uint32_t number, enum pack_framing framing, char out[SEGMENT_NAME_SIZE_MAX]);

/* The number and framing that a file's name says; false if it is no segment's. */
bool segment_parse_name(const char *name, uint32_t *ret_number, enum pack_framing *ret_framing);

/* Where a segment is while it is being made: its name and ".tmp". */
#define SEGMENT_TEMPORARY ".tmp"

/*
 * An empty file of that number, opened for writing, under its temporary name. dictionary: bytes to put in
 * front and to write with, or empty.
 */
enum err segment_create(struct segment *segment, struct vfs *vfs, const char *directory, uint32_t number,
                        enum pack_framing framing, struct bytes dictionary, int level,
                        struct err_detail *detail) MUST_CHECK;

/* Make what was written durable and give the file its name. */
enum err segment_publish(struct segment *segment, const char *directory,
                         struct err_detail *detail) MUST_CHECK;

/* Remove the file, under the name that it has; the segment stays open. */
enum err segment_unlink(const struct segment *segment, const char *directory, bool is_temporary) MUST_CHECK;

/*
 * A file that is there, with its dictionary prepared for writing with this level. flags: VFS_WRITE, or 0 to
 * read only. A file that was cut off inside its dictionary is ERR_TRUNCATED.
 */
enum err segment_open(struct segment *segment, struct vfs *vfs, const char *directory, const char *name,
                      int level, unsigned flags, struct err_detail *detail) MUST_CHECK;
void segment_done(struct segment *segment);

/* The stored bytes of one frame, appended to buf. ERR_CORRUPT if the file ends before. */
enum err segment_read(const struct segment *segment, const struct location *location,
                      struct buf *buf) MUST_CHECK;

/* The file as a source for the readers of warc/: can seek, shares nothing with other readers. */
struct segment_source {
    struct source source; /* first */
    const struct segment *segment;
    uint64_t offset;
    uint64_t end; /* the source ends here */
};

void segment_source_init(struct segment_source *source, const struct segment *segment, uint64_t end);

#endif
