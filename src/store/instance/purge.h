/*
 * purge - takes all captures that are deleted out of the volumes of an instance, a batch at a time.
 *
 * They leave the index with their batch, durably; nothing of them is left on the disk after the next
 * compaction (volume_submit_purge()). A walk that was cut short is just begun again: what is gone is not
 * found any more. Guests and mirrored volumes are not touched. On a thread that may wait for the disk.
 */
#ifndef MNEMON_STORE_INSTANCE_PURGE_H
#define MNEMON_STORE_INSTANCE_PURGE_H

#include "store/instance/deletion.h"
#include "store/instance/instance.h"

struct purge_config {
    const struct deletion *deletions;
    size_t deletions_count;
    bool is_dry; /* only count what would go */
    /* Of the captures that are meant only these; all if NULL. */
    bool (*is_wanted)(const struct capture *capture);
    /* Of each capture, before it goes; may be NULL, as the next. */
    void (*each)(void *context, const struct capture *capture);
    bool (*is_stopping)(void *context); /* then ERR_CANCELLED, between two batches */
    void *context;
};

/*
 * *ret_count: how many went, or would, each once; set as far as it came, also after an error. A volume that
 * is down is one: ERR_UNREACHABLE.
 */
enum err purge_run(struct instance_session *session, const struct purge_config *config, uint64_t *ret_count,
                   struct err_detail *detail) MUST_CHECK;

#endif
