/*
 * volume_call - one request to a volume, and the pages that answer it. Private to volume_service.c, which
 * finds out what is asked for.
 *
 * A volume_action returns ERR_OK if it has answered or suspended the request; otherwise the error is the
 * answer.
 */
#ifndef MNEMON_REPLAY_VOLUMES_VOLUME_CALL_H
#define MNEMON_REPLAY_VOLUMES_VOLUME_CALL_H

#include <pthread.h>

#include "http/message/status.h"
#include "http/server/http_request.h"
#include "run/pool.h"
#include "store/document/document.h"
#include "store/remote/backend_code.h"
#include "store/remote/pack_payload.h"
#include "store/volume/volume.h"
#include "store/volume/volume_request.h"

/*
 * What a thread needs to work on a volume: a writer, a reader, buffers. Taken for a request or a part of it
 * and given back for the next, since which thread serves a request depends on its connection.
 */
struct volume_kit {
    struct volume_kit *next;
    struct volume_writer *writer;
    struct volume_reader *reader;
    struct volume_requests *requests;
    struct pack_payload pack_payload;
    struct scratch body; /* of a document, unpacked */
};

/* As many as were ever needed at once. Any thread. */
struct volume_kits {
    struct volume *volume;
    const char *scratch_directory;
    pthread_mutex_t lock;
    struct volume_kit *free_kits; /* lock */
};

void volume_kits_init(struct volume_kits *kits, struct volume *volume, const char *scratch_directory);

/* All of them must have been given back. */
void volume_kits_done(struct volume_kits *kits);

struct volume_kit *volume_kits_take(struct volume_kits *kits); /* NULL: out of memory */
void volume_kits_give_back(struct volume_kits *kits, struct volume_kit *take_kit);

struct volume_call {
    struct http_request *request;
    struct pool *writers;
    struct pool_job job; /* of a writer */
    uint16_t number;     /* of the volume */
    bool is_guest;       /* it is none: volume_guest.h */
    struct volume_kits *kits;
    const struct volume_page *page;
    struct bytes argument; /* behind the page's name */

    /* What came of storing and deleting. */
    struct bytes body; /* of the request */
    bool is_submitted;
    bool is_refused;  /* what was sent is no document */
    bool is_left_out; /* only a digest was sent */
    enum err err;
    struct err_detail detail;
    struct stored stored;
    size_t purged_count;
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

/* With what is in the buffer, or with its error. */
enum err volume_call_answer(struct volume_call *call, struct buf *take_out) MUST_CHECK;

enum err volume_call_answer_block(struct volume_call *call, const struct block *block) MUST_CHECK;

/* What the path names: KEY, SEGMENT-OFFSET-LENGTH; and the body of a walk. ERR_INVALID. */
enum err volume_call_key(const struct volume_call *call, struct key *ret_key,
                         struct err_detail *detail) MUST_CHECK;
enum err volume_call_location(const struct volume_call *call, struct location *ret_location,
                              struct err_detail *detail) MUST_CHECK;
enum err volume_call_walk(const struct volume_call *call, struct backend_code_walk *ret_walk,
                          struct err_detail *detail) MUST_CHECK;

/* NULL: a volume has no such page. */
const struct volume_page *volume_page_find(const char *method, struct bytes name, bool has_argument);

#endif
