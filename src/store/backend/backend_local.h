/*
 * backend_local - a volume on a disk of this machine, as a backend.
 *
 * ask() and answer() look into the index; everything else is a call of store/volume/volume.h. The vfs, the
 * volume and its lock live as long as the backend.
 */
#ifndef MNEMON_STORE_BACKEND_BACKEND_LOCAL_H
#define MNEMON_STORE_BACKEND_BACKEND_LOCAL_H

#include "store/backend/backend.h"
#include "store/volume/volume.h"

/* 0 stands for the volume's own defaults. Texts are copied. */
struct backend_local_config {
    uint16_t number;
    const char *path;   /* of the segments; required */
    const char *index;  /* required */
    bool is_made;       /* make the directories that are missing; else a missing one is ERR_NOT_FOUND */
    bool is_rebuilding; /* throw the index away first */
    bool uses_gzip;     /* for new segments; else zstd */
    int level;
    uint32_t linger_us;
    uint64_t segment_size_max;
    unsigned digest_bits;
    struct bytes user_agent; /* of a crawl, for warcinfo; not copied, as the next */
    struct bytes robots;
    const struct clock *clock;
    volume_progress *progress;
    void *progress_context;
    const char *mirrored; /* of a mirrored volume: where its segments are, below path; else NULL, and they are
                             there */
    const atomic_bool *is_cancelled; /* of a mirrored volume; see volume.h */
};

/* ERR_BUSY if another process has the volume. */
enum err backend_local_open(const struct backend_local_config *config, struct backend **ret_backend,
                            struct volume_recovery *ret_recovery, struct err_detail *detail) MUST_CHECK;

/* The volume behind a backend that backend_local_open() gave. */
struct volume *backend_local_volume(struct backend *backend);

/* What only a local backend can do, on a session of one: see volume.h. */
enum err backend_local_remove_capture(struct backend_session *session, const struct capture *capture,
                                      struct err_detail *detail) MUST_CHECK;
enum err backend_local_repair(struct backend_session *session, const struct key *key,
                              const struct document *document, bool is_elsewhere, bool *ret_is_repaired,
                              struct err_detail *detail) MUST_CHECK;

#endif
