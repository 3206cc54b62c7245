/* backend_remote_state - what backend_remote.c and backend_remote_walk.c share. Private to them. */
#ifndef MNEMON_STORE_REMOTE_BACKEND_REMOTE_STATE_H
#define MNEMON_STORE_REMOTE_BACKEND_REMOTE_STATE_H

#include "base/sha256.h"
#include "store/backend/backend.h"
#include "store/remote/pack_payload.h"
#include "store/remote/remote_call.h"
#include "store/remote/remote_sender.h"

struct backend_remote {
    struct backend backend; /* first */
    struct remote_peer peer;
    struct remote_sender sender;
    char *scratch_directory;
};

struct session_remote {
    struct backend_session session; /* first */
    struct backend_remote *backend;
    CURLM *multi;
    struct remote_call call;
    struct pack_payload pack_payload;
    struct sha256 sha256;
    struct scratch document; /* what get() gave last */
};

static inline struct session_remote *session_remote(struct backend_session *session) {
    return (struct session_remote *)session;
}

/* backend_remote.c */

/* Send what is in the session's call, wait, and give the answer, which lies in the call. */
enum err session_remote_exchange(struct session_remote *session, const char *method, const char *path,
                                 uint64_t answer_size_max, struct bytes *ret_answer,
                                 struct err_detail *detail) MUST_CHECK;

/* An answer that cannot be read is the server's fault: ERR_MISMATCH for any error. */
enum err session_remote_check(const struct session_remote *session, enum err err,
                              const struct err_detail *reason, struct err_detail *detail) MUST_CHECK;

/* backend_remote_walk.c, for the shelf's table */
enum err cursor_remote_open_captures(struct backend_session *session, struct bytes from, struct bytes to,
                                     bool in_reverse, struct backend_cursor **ret_cursor,
                                     struct err_detail *detail) MUST_CHECK;
enum err cursor_remote_open_blocks(struct backend_session *session, struct bytes from,
                                   struct backend_cursor **ret_cursor, struct err_detail *detail) MUST_CHECK;
enum err cursor_remote_next_capture(struct backend_cursor *cursor, struct capture *ret_capture,
                                    struct err_detail *detail) MUST_CHECK;
enum err cursor_remote_next_block(struct backend_cursor *cursor, struct key *ret_key, struct block *ret_block,
                                  struct err_detail *detail) MUST_CHECK;
void cursor_remote_close(struct backend_cursor *cursor);

#endif
