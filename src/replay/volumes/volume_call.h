/*
 * volume_call - one request to a volume, and the pages that answer it. Private to volume_service.c, which
 * finds out what is asked for.
 *
 * A volume_action returns ERR_OK if it has answered or suspended the request; otherwise the error is the
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

/* NULL: a volume has no such page. */
const struct volume_page *volume_page_find(const char *method, struct bytes name, bool has_argument);

#endif
