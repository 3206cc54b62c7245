/*
 * verify - reads everything again and names what is damaged. Repairs nothing.
 *
 * Every frame is decompressed against its checksum, every record against the digests in its header, and every
 * entry of the index against the segments. Reads and writes go on meanwhile; what is written after the start
 * is not looked at. A damaged record that another has replaced (volume_repair()) is no damage any more.
 */
#ifndef MNEMON_STORE_VOLUME_VERIFY_H
#define MNEMON_STORE_VOLUME_VERIFY_H

#include "store/volume/volume.h"

struct verify_report {
    uint64_t records_count;
    uint64_t size;           /* read, as stored */
    uint64_t damaged_count;  /* records or places */
    uint64_t lost_count;     /* documents whose record is not readable */
    uint64_t captures_count; /* whose own record is not */
};

/* The functions that are told. Each may be NULL. */
struct verify_observer {
    void *context;
    void (*damage)(void *context, const char *segment, uint64_t offset, const char *reason);
    void (*progress)(void *context, uint64_t done_size, uint64_t total_size);
    /*
     * A capture whose record is not readable. One of no URL stands for a document that is not, whose record
     * is no capture's: digest and block number name it. Borrowed for the call.
     */
    void (*capture)(void *context, const struct capture *capture);
};

/* ERR_OK also if damage was found: see the report. */
enum err verify_volume(struct volume *volume, const struct verify_observer *observer,
                       struct verify_report *ret_report, struct err_detail *detail) MUST_CHECK;

#endif
