/*
 * export - captures into one WARC or WACZ file that stands on its own.
 *
 *      export.c            the command: file, format, which captures
 *      export_capture.c    one capture: as it is, as a full record, or as a revisit of one in the file
 *      export_wacz.c       index, pages and package around the WARC file
 *
 * In the archive a payload is stored once, wherever it was seen first. In the file the first capture of it
 * that is exported is written in full and later ones refer to that: no revisit points outside the file.
 */
#ifndef MNEMON_CLI_EXPORT_H
#define MNEMON_CLI_EXPORT_H

#include "base/map.h"
#include "cli/data.h"
#include "store/instance/record.h"
#include "warc/warc_writer.h"

enum {
    EXPORT_BLOCKS_MAX = 1 << 26, /* payloads that more than one capture has; about 100 bytes each */
};

/* Where a capture is. */
struct export_place {
    uint16_t volume;
    struct location location;
};

struct export_wacz;

struct export {
    struct cli *cli;
    struct data data;
    struct export_wacz *wacz; /* NULL: a bare WARC file is written */
    struct warc_writer writer;
    struct map blocks; /* digest and number -> struct export_place of the capture in full */
    struct instance_session *record_session;  /* the capture's record */
    struct instance_session *payload_session; /* the payload of a revisit, what it refers to, a request */
    struct record record;
    struct record origin; /* what a revisit refers to */
    struct buf chunks;    /* a payload in chunks again */
    uint64_t captures_count;
    uint64_t revisits_count; /* of them */
    uint64_t requests_count;
};

/* Write the capture and its request. */
enum err export_capture(struct export *export, const struct capture *capture,
                        struct err_detail *detail) MUST_CHECK;

#endif
