/* shelf_remote_state - what shelf_remote.c and shelf_remote_walk.c share. Private to them. */
#ifndef MNEMON_STORE_REMOTE_SHELF_REMOTE_STATE_H
#define MNEMON_STORE_REMOTE_SHELF_REMOTE_STATE_H

#include "base/sha256.h"
#include "store/remote/remote_call.h"
#include "store/remote/remote_sender.h"
#include "store/remote/squeeze.h"
#include "store/shelf/shelf.h"

struct shelf_remote {
    struct shelf shelf; /* first */
    struct remote_peer peer;
    struct remote_sender sender;
    char *scratch_directory;
};

struct session_remote {
    struct shelf_session session; /* first */
    struct shelf_remote *shelf;
    CURLM *multi;
    struct remote_call call;
    struct squeeze squeeze;
    struct sha256 sha256;
    struct scratch document; /* what get() gave last */
};

static inline struct session_remote *session_remote(struct shelf_session *session) {
    return (struct session_remote *)session;
}

/* shelf_remote.c */

/* Send what is in the session's call, wait, and give the answer, which lies in the call. */
enum err session_remote_exchange(struct session_remote *session, const char *method, const char *path,
                                 uint64_t answer_size_max, struct bytes *ret_answer,
                                 struct err_detail *detail) MUST_CHECK;

/* An answer that cannot be read is the server's fault: ERR_MISMATCH for any error. */
enum err session_remote_check(const struct session_remote *session, enum err err,
                              const struct err_detail *reason, struct err_detail *detail) MUST_CHECK;

/* shelf_remote_walk.c, for the shelf's table */
enum err cursor_remote_open_captures(struct shelf_session *session, struct bytes from, struct bytes to,
                                     bool in_reverse, struct shelf_cursor **ret_cursor,
                                     struct err_detail *detail) MUST_CHECK;
enum err cursor_remote_open_blocks(struct shelf_session *session, struct bytes from,
                                   struct shelf_cursor **ret_cursor, struct err_detail *detail) MUST_CHECK;
enum err cursor_remote_next_capture(struct shelf_cursor *cursor, struct capture *ret_capture,
                                    struct err_detail *detail) MUST_CHECK;
enum err cursor_remote_next_block(struct shelf_cursor *cursor, struct key *ret_key, struct block *ret_block,
                                  struct err_detail *detail) MUST_CHECK;
void cursor_remote_close(struct shelf_cursor *cursor);

#endif
