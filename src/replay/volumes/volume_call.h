/*
 * volume_call - one request to a volume, from its path to its answer. Shared by volume_service.c, which finds
 * out what is asked for, and the files volume_call*.c, which answer it. Private to them.
 *
 * A volume_action returns ERR_OK where it has answered or suspended the request; otherwise the error is the
 * answer.
 */
#ifndef MNEMON_REPLAY_VOLUMES_VOLUME_CALL_H
#define MNEMON_REPLAY_VOLUMES_VOLUME_CALL_H

#include "http/server/http_request.h"
#include "replay/volumes/volume_kit.h"
#include "run/pool.h"
#include "store/document/document.h"

struct volume_call {
    struct http_request *request;
    struct pool *writers;
    struct pool_job job; /* of a writer */
    uint16_t number;     /* of the volume */
    struct volume *volume;
    struct volume_kits *kits;
    const char *scratch_directory;
    const struct volume_page *page;
    struct bytes argument; /* behind the page's name */

    /* Of storing and deleting: what came of it. */
    struct bytes body; /* of the request */
    bool is_submitted;
    bool is_refused;  /* what was sent is no document */
    bool is_left_out; /* only a digest was sent */
    enum err err;
    struct err_detail detail;
    struct stored stored;
    enum store_mode mode;
    unsigned tries_count;
};

typedef enum err volume_action(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail);

/* A page of a volume: "POST N/ask". */
struct volume_page {
    const char *method;
    const char *name;
    bool has_argument;
    uint64_t body_size_max;
    volume_action *answer;
};

/* volume_call.c */

/* With what is in the buffer, or with its error. */
enum err volume_call_answer(struct volume_call *call, const struct buf *out) MUST_CHECK;

/* With a document or a record: compressed where the client can read that and where it helps. */
enum err volume_call_answer_document(struct volume_call *call, struct volume_kit *kit,
                                     struct bytes document) MUST_CHECK;

/* What is named in the path: KEY, SEGMENT-OFFSET-LENGTH. */
enum err volume_call_key(const struct volume_call *call, struct key *ret_key,
                         struct err_detail *detail) MUST_CHECK;
enum err volume_call_location(const struct volume_call *call, struct location *ret_location,
                              struct err_detail *detail) MUST_CHECK;

/* volume_call_read.c */
volume_action volume_call_ask;
volume_action volume_call_get;
volume_action volume_call_get_record;
volume_action volume_call_get_request;
volume_action volume_call_find_block;
volume_action volume_call_stat;

/* volume_call_walk.c */
volume_action volume_call_captures;
volume_action volume_call_blocks;

/* volume_call_write.c */
volume_action volume_call_put;
volume_action volume_call_remove;

#endif
