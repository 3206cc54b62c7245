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

/* Texts are copied, but not those of the volume. */
struct backend_local_config {
    const char *path;  /* of the segments; required */
    const char *index; /* required */
    bool is_made;      /* make the directories that are missing; else a missing one is ERR_NOT_FOUND */
    /* Of a mirrored volume: where its segments are, below path; else NULL, and they are there. */
    const char *mirrored;
    struct volume_config volume; /* vfs, directories, framing and random are set here */
};

/* ERR_BUSY if another process has the volume. */
enum err backend_local_open(const struct backend_local_config *config, struct backend **ret_backend,
                            struct volume_recovery *ret_recovery, struct err_detail *detail) MUST_CHECK;

/* The volume behind a backend that backend_local_open() gave. */
struct volume *backend_local_volume(struct backend *backend);

/* ---- for a backend that reads a volume of this machine in its own way: backend_mirrored.c ---- */

/* The first member of its sessions. What a thread needs of the volume is made when it first does. */
struct local_session {
    struct backend_session session; /* first */
    struct volume *volume;
    struct volume_writer *writer;
    struct volume_reader *reader;
    struct volume_requests *requests;
    struct document_sum asked;
    unsigned cursors_count; /* open */
};

void local_session_init(struct local_session *session, struct backend *backend, struct volume *volume);
void local_session_done(struct local_session *session);

/* What reads in it needs nothing but such a session. */
extern const struct backend_table backend_local_table;

/* What only a local backend can do, on a session of one: see volume.h. */
enum err backend_local_remove_capture(struct backend_session *session, const struct capture *capture,
                                      struct err_detail *detail) MUST_CHECK;
enum err backend_local_repair(struct backend_session *session, const struct key *key,
                              const struct document *document, bool is_elsewhere, bool *ret_is_repaired,
                              struct err_detail *detail) MUST_CHECK;

#endif
