/*
 * instance - an archive of one or more volumes as one: what commands, the node and libmnemon open.
 *
 *      DIR/connector      which volumes it has (store/instance/connector.h); without it there is one:
 *      DIR/volumes/0/     the segments
 *      DIR/index/0/       their index, which can always be rebuilt
 *
 * A document is on one volume. Storing hashes it once, asks all volumes at the same time whether they hold
 * it, and sends it to the one that does (without its body) or else to the one that its digest falls to.
 * With a single volume none of this happens: the volume does it all itself.
 *
 * A volume that is down makes its own documents unavailable and nothing else. Whoever stores meanwhile is not
 * told of duplicates there, so a document may then be stored once more, until they are merged (twins.h). A
 * volume server that is back is used again by itself; a local volume that did not open stays down until the
 * instance is opened again.
 *
 * Any thread may use an instance, each through a session of its own. One process at a time has a local
 * volume: a second one is told so.
 */
#ifndef MNEMON_STORE_INSTANCE_INSTANCE_H
#define MNEMON_STORE_INSTANCE_INSTANCE_H

#include "store/backend/backend.h"
#include "store/volume/quota.h"
#include "store/volume/volume.h"

struct absent;
struct instance;
struct scratch_budget;
struct instance_session; /* of one thread */
struct instance_blocks;  /* a walk over all documents */

enum {
    INSTANCE_VOLUME_ANY = UINT16_MAX, /* by digest */
    INSTANCE_PLACE_SIZE_MAX = 4096,
};

/* 0 or NULL stands for the volume's own defaults. */
struct instance_config {
    const char *directory; /* created if it is missing, unless must_exist; its connector is used */
    const char *connector; /* a connector file; with it, directory may be NULL */
    const char *server; /* a node that has the local volumes open and offers them: they are used through it */
    const char *token;  /* what it wants to hear; both outlive the instance */
    bool must_exist;
    uint64_t quota_size; /* of disk for all local volumes together (none); at least QUOTA_SIZE_MIN */
    /* Of all local volumes, but for their numbers and places. What it borrows outlives the instance; progress
     * is told of one volume after the other. */
    struct volume_config volume;
};

/*
 * ERR_NOT_FOUND if it must exist and does not; ERR_BUSY if another process has one of its volumes;
 * ERR_INVALID if the connector is wrong. Volumes that do not open otherwise are down, unless all are.
 */
enum err instance_open(const struct instance_config *config, struct instance **ret_instance,
                       struct err_detail *detail) MUST_CHECK;

/* All sessions must have been closed; what was put is durable. */
void instance_close(struct instance *instance);

/* Of files for large documents that are being read, by all sessions together: ERR_BUSY above it. */
struct scratch_budget *instance_reading_budget(struct instance *instance);

/* Of its local volumes together; size_max is 0 if there is none. */
const struct quota *instance_quota(const struct instance *instance);

/* ---- its volumes ---- */

struct instance_volume {
    uint16_t number;
    bool is_remote;
    bool is_writable;                       /* new documents may be placed here */
    const char *place;                      /* directory or URL; lives as long as the instance */
    struct backend *backend;                /* NULL: it is down since the start */
    struct volume *volume;                  /* of a local one, for its maintenance; else NULL */
    const struct volume_recovery *recovery; /* what opening mended; NULL without volume */
    enum err err;                           /* ERR_OK: it is up, as far as is known; else why it is down */
    char reason[ERR_TEXT_SIZE_MAX];         /* of err */
};

size_t instance_volumes_count(const struct instance *instance);

/* In the order of their numbers; index below the count. */
void instance_volume(struct instance *instance, size_t index, struct instance_volume *ret_volume);

/* Does all that it reads lie on this machine? False if there are volume servers, or a guest. Any thread. */
bool instance_is_here(const struct instance *instance);

/* The index of a volume number; the count if there is none. */
size_t instance_find_volume(const struct instance *instance, uint16_t number);

/*
 * A guest: one more backend, only to read from, whose captures are shown beside those of the volumes (the
 * other nodes of a ring). Nothing is stored there, it is not counted among the volumes, and only sessions
 * that want it see it, from their next instance_session_set_guest() on. Once. It is closed with the instance.
 */
enum { INSTANCE_GUEST_NUMBER = KEY_VOLUMES_MAX };
void instance_set_guest(struct instance *instance, struct backend *take_backend);
struct backend *instance_guest(const struct instance *instance); /* NULL: there is none (yet) */
void instance_session_set_guest(struct instance_session *session, bool reads_guest);

/*
 * Mirrored volumes: archives of others that are kept here (store/backend/backend_mirrored.h), shown beside
 * the volumes. Nothing is stored there, they are not counted among the volumes, and only sessions that want
 * them see them, from their next instance_session_set_mirrored() on. A revisit in one has its document there,
 * or in another one of the same origin. Each has a number for ever: if a mirrored volume has gone, its
 * backend is empty.
 */
enum {
    INSTANCE_MIRRORED_NUMBER = INSTANCE_GUEST_NUMBER + 1, /* of the first of them */
    INSTANCE_MIRRORED_MAX = 64,
    INSTANCE_ORIGIN_SIZE_MAX = 160,
};

static inline bool instance_is_mirrored(uint16_t number) {
    return number >= INSTANCE_MIRRORED_NUMBER && number < INSTANCE_MIRRORED_NUMBER + INSTANCE_MIRRORED_MAX;
}

/* One thread; each number once. It is closed with the instance. origin: whose it is, as people are told. */
void instance_add_mirrored(struct instance *instance, uint16_t number, const char *origin,
                           struct backend *take_backend);

/* The backend of a number, or NULL; and whose it is, as long as the instance lives. Any thread. */
struct backend *instance_mirrored(const struct instance *instance, uint16_t number);
const char *instance_mirrored_origin(const struct instance *instance, uint16_t number);

/* Does the session read from the volume, guest or mirrored volume of that number? */
bool instance_session_sees(const struct instance_session *session, uint16_t number);

/* Do so at the start of whatever shall see one state of them, and, with false, at its end. What was read of
 * a mirrored volume that has been replaced is not valid any more. */
void instance_session_set_mirrored(struct instance_session *session, bool reads_mirrored);

/* From now on instance_get_record() gives ERR_LIMIT for what is large (volume_get_brief_record()) or on
 * another machine, before it is asked for. */
void instance_session_set_brief(struct instance_session *session, bool is_brief);

/*
 * Several nodes of a ring may fetch each URL (witnesses). For a reader those that got the same bytes in one
 * visit are one capture, the first of them: walks that are opened from now on leave the others out. Whoever
 * copies, exports or looks for its own wants all.
 */
void instance_session_hide_witnesses(struct instance_session *session, bool hides_witnesses);

/* Pages of the indexes that local volumes may keep in memory, all together; 64 MiB each at first. */
void instance_set_cache_size(struct instance *instance, size_t size);

/* Nothing has been written for a while: index_settle() of the local volumes. Any thread. */
void instance_settle(struct instance *instance);

/* ---- sessions ---- */

struct instance_session *instance_session_new(struct instance *instance); /* NULL: out of memory */
void instance_session_free(struct instance_session *session);             /* may be NULL */

/*
 * Who could hold what the session asked for and did not answer, since the session began or that was
 * forgotten (store/instance/absent.h): volumes that are down, nodes of the ring, collections. As long as
 * anybody is named, a walk may lack captures, and what was not found may be there.
 */
const struct absent *instance_session_absent(const struct instance_session *session);
void instance_session_forget_absent(struct instance_session *session);

/* ---- writing ---- */

/*
 * Durable on return. volume: INSTANCE_VOLUME_ANY, or the number of the one that a new document shall go to; a
 * duplicate goes to where it is. Where that volume is down or full the next one takes it: ret_stored->key
 * says which. ERR_NOT_FOUND if there is no volume of that number.
 */
enum err instance_put(struct instance_session *session, const struct document *document, enum store_mode mode,
                      uint16_t volume, struct stored *ret_stored, struct err_detail *detail) MUST_CHECK;

/*
 * The same without waiting for the disk: done is called once, from another thread, and must not call the
 * instance. Waits only while a queue is full and for the answers of volume servers. What the document borrows
 * is not needed after the call has returned. ERR_BUSY in done(): a duplicate was removed meanwhile; submit it
 * again. A volume that fails after the call has returned is the caller's to see, in done().
 */
enum err instance_submit(struct instance_session *session, const struct document *document,
                         enum store_mode mode, uint16_t volume, backend_done *done, void *context,
                         struct err_detail *detail) MUST_CHECK;

/* Until everything that was submitted, by any session, is done. */
void instance_drain(struct instance *instance);

/* Drop one reference, as volume_remove(). */
enum err instance_remove(struct instance_session *session, const struct key *key,
                         struct err_detail *detail) MUST_CHECK;

/*
 * Remove a capture, as volume_remove_capture(); capture->volume says where. Only of local volumes:
 * ERR_UNSUPPORTED on a volume server.
 */
enum err instance_remove_capture(struct instance_session *session, const struct capture *capture,
                                 struct err_detail *detail) MUST_CHECK;

/*
 * Store a damaged document and the capture of it again, as volume_repair(). The key's volume is the one that
 * has the capture; where its document is on another one it is repaired there. ERR_UNSUPPORTED as above. Tells
 * nobody: the caller does.
 */
enum err instance_repair(struct instance_session *session, const struct key *key,
                         const struct document *document, bool *ret_is_repaired,
                         struct err_detail *detail) MUST_CHECK;

/* ---- what is deleted ---- */

/*
 * Captures in the set (deletion.h) are neither shown nor stored from now on: walks leave them out, storing
 * one is ERR_DELETED. Those on the volumes stay there until they are purged (purge.h). Replaces the set
 * before.
 */
struct deletion_set;
void instance_set_deletions(struct instance *instance, struct deletion_set *take_set);

/* Another number for each set. */
uint64_t instance_deletions_generation(const struct instance *instance);

/* url: with method and body, if it is no GET. Any thread. */
bool instance_is_deleted(struct instance *instance, struct bytes surt, struct bytes url, int64_t time_us);

/* ---- reading: what is given lasts until the next get on the session; ERR_NOT_FOUND, ERR_CORRUPT,
 * ERR_UNREACHABLE ---- */

enum err instance_get(struct instance_session *session, const struct key *key, struct bytes *ret_document,
                      struct err_detail *detail) MUST_CHECK;

/* The whole record at a location of a volume, decompressed, header first. */
enum err instance_get_record(struct instance_session *session, uint16_t volume,
                             const struct location *location, struct bytes *ret_record,
                             struct err_detail *detail) MUST_CHECK;

/* The HTTP request that was stored with that record; empty if there is none. */
enum err instance_get_request(struct instance_session *session, uint16_t volume,
                              const struct location *location, struct bytes *ret_request,
                              struct err_detail *detail) MUST_CHECK;

/* The block of a key: live, and on that volume. */
enum err instance_find_block(struct instance_session *session, const struct key *key, struct block *ret_block,
                             struct err_detail *detail) MUST_CHECK;

/* The block of a digest on any volume, the lowest number first. */
enum err instance_find_digest(struct instance_session *session, const uint8_t digest[KEY_DIGEST_SIZE],
                              uint16_t number, struct key *ret_key, struct block *ret_block,
                              struct err_detail *detail) MUST_CHECK;

/*
 * Where the document of a capture is: on its own volume, or, for a revisit whose document is not there, on
 * another. ERR_NOT_FOUND if it has been removed.
 */
enum err instance_locate(struct instance_session *session, const struct capture *capture, struct key *ret_key,
                         struct block *ret_block, struct err_detail *detail) MUST_CHECK;

/*
 * Is the document of the capture still there? As instance_locate(), but without looking for it where nothing
 * was ever removed; a volume that is down holds what it held.
 */
enum err instance_check(struct instance_session *session, const struct capture *capture) MUST_CHECK;

/* Walk captures of all volumes: store/instance/merge.h. */

/*
 * All documents, volume by volume in the order of their digests; or those behind one of them, if that is not
 * NULL: a walk that takes long is cut in pieces so (index_cursor.h). Volumes that are down are left out.
 */
enum err instance_blocks_open(struct instance_session *session, const struct key *behind,
                              struct instance_blocks **ret_blocks, struct err_detail *detail) MUST_CHECK;

/* ERR_NOT_FOUND at the end. */
enum err instance_blocks_next(struct instance_blocks *blocks, struct key *ret_key, struct block *ret_block,
                              struct err_detail *detail) MUST_CHECK;
void instance_blocks_close(struct instance_blocks *blocks);

/* What a volume holds; index as for instance_volume(). */
enum err instance_stat(struct instance_session *session, size_t index, struct volume_stat *ret_stat,
                       struct err_detail *detail) MUST_CHECK;

#endif
