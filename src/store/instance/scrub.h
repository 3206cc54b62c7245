/*
 * scrub - reads everything on the local volumes again, slowly, and tells which captures are damaged.
 *
 * Disks forget without saying so. A pass goes through all segments of all local volumes in the order of the
 * records and takes about a period (a month); a small archive is read faster, at SCRUB_RATE_MIN, and then
 * left alone until the period is over. A file says how far it is, so that a restart continues there:
 *
 *      DIR/scrub     started size damaged, then a line "volume segment offset" for each volume that is not
 *                    through
 *
 * Every frame is decompressed against its checksum and every record compared with the digests in its header,
 * as verify.h does. What is damaged is looked up in the index (damage.h) when its segment has been read.
 * Damage that was mended is passed over. What is read is durable; what is written meanwhile comes with the
 * next pass, if not with this one. After a compaction a new generation of the segment is read from its start.
 *
 * One thread, which may go on with other things between the calls: no segment is held in between. It ends
 * before the instance.
 */
#ifndef MNEMON_STORE_INSTANCE_SCRUB_H
#define MNEMON_STORE_INSTANCE_SCRUB_H

#include "store/instance/instance.h"
#include "store/volume/damage.h"

enum {
    SCRUB_STEP_SIZE = 1 << 20, /* of stored bytes that one call reads, or one record where that is larger */
    SCRUB_RATE_MIN = 1 << 20,  /* bytes a second, while a pass goes on */
};

struct scrub;

struct scrub_config {
    struct instance *instance;
    const char *path;    /* of the file; copied */
    uint64_t period_us;  /* of a pass (30 days) */
    damage_visit *visit; /* a damaged capture; store/volume/damage.h says what one without URL is */
    void *context;
    const struct clock *clock; /* (clock_system) */
};

/* A file that is no such file begins a new pass. */
enum err scrub_open(const struct scrub_config *config, struct scrub **ret_scrub,
                    struct err_detail *detail) MUST_CHECK;
void scrub_close(struct scrub *scrub);

/*
 * Read on. *ret_wait_us: do not call again before, to keep to the rate; no harm is done by calling later. An
 * error of one volume (I/O, say) does not keep the others from being read by the next calls.
 */
enum err scrub_run(struct scrub *scrub, uint64_t *ret_wait_us, struct err_detail *detail) MUST_CHECK;

struct scrub_stat {
    int64_t started_us;     /* the pass, by the wall clock; 0: none has begun */
    bool is_through;        /* it has read everything and waits for the next */
    uint64_t done_size;     /* read by it */
    uint64_t all_size;      /* of all segments now */
    uint64_t damaged_count; /* places it found */
};

void scrub_stat(const struct scrub *scrub, struct scrub_stat *ret_stat);

#endif
