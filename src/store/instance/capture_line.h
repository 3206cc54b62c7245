/*
 * capture_line - a capture as lines of CDX and CDXJ tell it: digest, type and file as text.
 *
 * Belongs to one thread. It remembers the file that it named last, since neighbours mostly share it.
 */
#ifndef MNEMON_STORE_INSTANCE_CAPTURE_LINE_H
#define MNEMON_STORE_INSTANCE_CAPTURE_LINE_H

#include "store/instance/instance.h"
#include "store/volume/segment.h"
#include "warc/cdxj.h"

enum {
    CAPTURE_DIGEST_SIZE = sizeof "sha256:" + (size_t)2 * KEY_DIGEST_SIZE,
    CAPTURE_FILE_SIZE_MAX = SEGMENT_NAME_SIZE_MAX + INSTANCE_ORIGIN_SIZE_MAX,
};

struct capture_line {
    struct instance *instance;
    uint16_t named_volume;
    uint32_t named_segment; /* 0: none */
    char file[CAPTURE_FILE_SIZE_MAX];
    char digest[CAPTURE_DIGEST_SIZE];
};

void capture_line_init(struct capture_line *line, struct instance *instance);

/* All of it. The slices borrow the capture and the line, until the next call. */
struct cdxj capture_line_cdxj(struct capture_line *line, const struct capture *capture);

/* "warc/revisit" if the payload is stored with an earlier capture; "unk" if none was told. */
struct bytes capture_line_mime(const struct capture *capture);

/*
 * What tells a capture from all others of its SURT, also those of the same second: a hash of URL, SURT, time,
 * status and document, never 0. It does not depend on where the record lies, so that copies, compacted
 * volumes and imports of exported files agree on it.
 */
uint64_t capture_id(const struct capture *capture);

/* "sha256:" and lower hex, until the next call. */
struct bytes capture_line_digest(struct capture_line *line, const uint8_t digest[KEY_DIGEST_SIZE]);

/*
 * The file that a segment is: "00000001.warc.zst", with the number of the volume in front where there are
 * several: "2/00000001.warc.zst"; in a mirrored volume, with its origin: "papers@KEY/00000001.warc.zst".
 * Until the next call.
 */
struct bytes capture_line_file(struct capture_line *line, uint16_t volume, uint32_t segment);

#endif
