/*
 * export - captures into one WARC file that stands on its own.
 *
 *      export.c            the command: file, format, which captures
 *      export_capture.c    one capture: as it is, as a full record, or as a revisit of one in the file
 *      export_request.c    the request that was stored with a capture
 *
 * In the archive a payload is stored once, wherever it was seen first. In the file the first capture of it
 * that is exported is written in full and later ones refer to that: no revisit points outside the file.
 */
#ifndef MNEMON_CLI_EXPORT_H
#define MNEMON_CLI_EXPORT_H

#include "base/map.h"
#include "cli/data.h"
#include "cli/record.h"
#include "warc/warc_reader.h"
#include "warc/warc_writer.h"

enum {
    EXPORT_REQUEST_SIZE_MAX = 16 << 20,
    EXPORT_BLOCKS_MAX = 1 << 26, /* payloads that more than one capture has; about 100 bytes each */
};

/* Reads the records behind captures, from the segments themselves. */
struct export_requests {
    struct data *data;
    uint32_t segment; /* that is open; 0: none */
    struct source_file source;
    struct warc_reader reader;
    struct buf block;
};

struct export {
    struct cli *cli;
    struct data data;
    struct warc_writer writer;
    struct map blocks;                    /* signature and number -> struct location of the capture in full */
    struct volume_reader *record_reader;  /* the capture's record */
    struct volume_reader *payload_reader; /* the payload of a revisit, or what it refers to */
    struct record record;
    struct buf chunks; /* a payload in chunks again */
    struct export_requests requests;
    uint64_t captures_count;
    uint64_t revisits_count; /* of them */
    uint64_t requests_count;
};

/* Write the capture and its request. */
enum err export_capture(struct export *export, const struct capture *capture,
                        struct err_detail *detail) MUST_CHECK;

enum err export_requests_init(struct export_requests *requests, struct data *data) MUST_CHECK;
void export_requests_done(struct export_requests *requests);

/*
 * The request behind the record at the location, where it names that record's id; empty where there is none.
 * It lives until the next call.
 */
enum err export_requests_find(struct export_requests *requests, const struct location *location,
                              struct bytes id, struct bytes *ret_request,
                              struct err_detail *detail) MUST_CHECK;

#endif
