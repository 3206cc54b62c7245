/* find_state - one request of find.h while it is being answered. Private to find*.c. */
#ifndef MNEMON_REPLAY_PAGES_FIND_STATE_H
#define MNEMON_REPLAY_PAGES_FIND_STATE_H

#include "base/buf.h"
#include "http/server/http_request.h"
#include "replay/search/search.h"
#include "replay/site/replay.h"

enum {
    FIND_PAGE_COUNT = 20, /* results on a page */
    FIND_PAGES_MAX = SEARCH_OFFSET_MAX / FIND_PAGE_COUNT,
    FIND_HOST_SIZE_MAX = 512,
    FIND_TIME_SIZE_MAX = 64,
};

struct find {
    struct replay *replay;
    struct http_request *request;
    bool is_asked; /* the job holds a question; else there are no words yet */
    struct search_job job;
    struct buf words; /* as typed */
    struct buf host;
    struct buf from;
    struct buf to;
    uint64_t page; /* from 1 */
};

/* The status that fits what became of the job. */
unsigned find_status(const struct find *find);

/* find_page.c, find_json.c: the answer. */
void find_answer_page(struct find *find);
void find_answer_json(struct find *find);

/*
 * Step through a snippet: false at the end, else a part of it without marks, and whether it is what was
 * looked for.
 */
bool find_next_part(struct bytes *snippet, struct bytes *ret_part, bool *ret_is_found);

#endif
