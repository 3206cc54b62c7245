/*
 * backend - a volume as an instance sees it: on a disk of this machine, or behind a volume server.
 *
 * The table is small on purpose: what is not in it (compaction, verification, recovery) is the business of
 * whoever has the disk. A backend may be used by many threads, each through a session of its own. A backend
 * that cannot be reached answers ERR_UNREACHABLE (or ERR_TIMEOUT, ERR_CLOSED) and may be reached again later;
 * the instance then goes on with the others. Opening one does not need the other side to be there.
 *
 * Keys that come out of a backend carry backend->number as their volume, and only such keys are given to it,
 * whatever the number on the other side is. A null `detail` is allowed everywhere.
 *
 *      backend_local.h    a struct volume
 *      backend_remote.h   a volume server, over HTTP
 */
#ifndef MNEMON_STORE_BACKEND_BACKEND_H
#define MNEMON_STORE_BACKEND_BACKEND_H

#include "base/err.h"
#include "store/document/document.h"
#include "store/volume/volume.h"

struct backend;
struct backend_session; /* of one thread */
struct backend_cursor;  /* a walk over captures, or over blocks */

typedef void backend_done(void *context, enum err err, const struct stored *stored);

enum { BACKEND_PURGE_MAX = 256 };

/* A backend that is only read from (a guest, a mirrored volume) has none of ask, answer, put, submit, remove,
 * purge and drain; a guest, whose documents nobody lists, none of blocks_open, blocks_next and stat either.
 */
struct backend_table {
    bool is_far; /* its documents come from another machine: no thread that may not wait asks for one */
    void (*close)(struct backend *backend);
    /* ERR_NOT_FOUND: there is nothing in it (any more). */
    enum err (*session_open)(struct backend *backend, struct backend_session **ret_session);
    void (*session_close)(struct backend_session *session);

    /*
     * Does it hold a live document of this digest and size? Two calls, so that many backends can be asked
     * at the same time: ask all, then collect the answers. Each ask that did not fail is followed by its
     * answer, before any other call on the session. The sum is borrowed for the call. Its digest is the whole
     * SHA-256; a volume that signs with fewer bits (tests) cuts it itself.
     */
    enum err (*ask)(struct backend_session *session, const struct document_sum *sum);
    enum err (*answer)(struct backend_session *session, bool *ret_holds, struct err_detail *detail);

    /*
     * As volume_put(), volume_submit(), volume_remove(), volume_get(), volume_get_record(). Of a document
     * with is_body_left_out the body may be there all the same: it is just not to be sent. If it is no
     * duplicate any more, put returns ERR_NOT_FOUND; submit returns it too, or its done() gets ERR_BUSY. What
     * get, get_record and get_request give lasts until the next of the three on the same session.
     */
    enum err (*put)(struct backend_session *session, const struct document *document, enum store_mode mode,
                    struct stored *ret_stored, struct err_detail *detail);
    enum err (*submit)(struct backend_session *session, const struct document *document, enum store_mode mode,
                       backend_done *done, void *context, struct err_detail *detail);
    enum err (*remove)(struct backend_session *session, const struct key *key, struct err_detail *detail);
    /* As volume_purge(), of at most BACKEND_PURGE_MAX captures. */
    enum err (*purge)(struct backend_session *session, const struct capture *captures, size_t count,
                      size_t *ret_count, struct err_detail *detail);
    enum err (*get)(struct backend_session *session, const struct key *key, struct bytes *ret_document,
                    struct err_detail *detail);
    enum err (*get_record)(struct backend_session *session, const struct location *location,
                           struct bytes *ret_record, struct err_detail *detail);
    /* The HTTP request that was stored with the record at this location; empty if there is none. */
    enum err (*get_request)(struct backend_session *session, const struct location *location,
                            struct bytes *ret_request, struct err_detail *detail);

    /*
     * As index_find_block() and the cursors of index.h, but only of what has references. A block in segment 0
     * has only revisits here: its document is on another volume. A session may have several cursors; each
     * ends before it.
     */
    enum err (*find_block)(struct backend_session *session, const uint8_t digest[KEY_DIGEST_SIZE],
                           uint16_t number, struct block *ret_block, struct err_detail *detail);
    enum err (*captures_open)(struct backend_session *session, struct bytes from, struct bytes to,
                              bool in_reverse, struct backend_cursor **ret_cursor, struct err_detail *detail);
    enum err (*captures_next)(struct backend_cursor *cursor, struct capture *ret_capture,
                              struct err_detail *detail);
    /* Behind the first next, a guest, who stands for many, names those that did not answer this walk so far,
     * with ", " between them; "" if all have. Its captures_next ends with an error whose detail is the same,
     * then. May be NULL.
     */
    const char *(*captures_unheard)(const struct backend_cursor *cursor);
    /* From these bytes on, as index_blocks_open_at(); empty: all. */
    enum err (*blocks_open)(struct backend_session *session, struct bytes from,
                            struct backend_cursor **ret_cursor, struct err_detail *detail);
    enum err (*blocks_next)(struct backend_cursor *cursor, struct key *ret_key, struct block *ret_block,
                            struct err_detail *detail);
    void (*cursor_close)(struct backend_cursor *cursor);

    /* Until all that was submitted by any session is done. */
    void (*drain)(struct backend *backend);
    enum err (*stat)(struct backend_session *session, struct volume_stat *ret_stat,
                     struct err_detail *detail);
};

/* First member of every implementation. The instance sets the volume of captures, from the number here. */
struct backend {
    const struct backend_table *table;
    uint16_t number; /* in the instance: the volume of its content keys */
};

/* The first members of every implementation's session and cursor, so that the table can be found. */
struct backend_session {
    struct backend *backend;
    bool is_brief; /* get_record gives ERR_LIMIT for what is large, before it is unpacked */
};

struct backend_cursor {
    struct backend_session *session;
};

#endif
