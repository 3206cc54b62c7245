/*
 * frontier_entry - the words that a frontier (frontier.h) and what it writes (frontier_code.h) have in
 * common.
 */
#ifndef MNEMON_CRAWL_FRONTIER_FRONTIER_ENTRY_H
#define MNEMON_CRAWL_FRONTIER_FRONTIER_ENTRY_H

#include "base/bytes.h"
#include "crawl/rules/route.h"
#include "store/document/key.h"

enum {
    FRONTIER_URL_SIZE_MAX = 1 << 14,
    FRONTIER_VALIDATOR_SIZE_MAX = 1 << 10, /* of an ETag or a Last-Modified that is kept */
};

/* The order within a lane: by priority, then depth, then as they came. */
enum frontier_priority { FRONTIER_SEED, FRONTIER_EMBED, FRONTIER_PAGE, FRONTIER_GUESS };

enum frontier_state {
    FRONTIER_DONE,      /* it answered and is stored */
    FRONTIER_FAILED,    /* no answer, and no further try in this visit */
    FRONTIER_CUT,       /* not to be fetched: robots, a trap, out of scope after all */
    FRONTIER_RETRY,     /* behind the others of its lane and priority, with one more failed try */
    FRONTIER_AGAIN,     /* back to where it was: it was not even tried */
    FRONTIER_ELSEWHERE, /* another node fetches it */
};

/* What is kept of earlier visits. */
struct frontier_history {
    uint32_t visits_count;  /* that ended with a response */
    uint32_t changes_count; /* of them: against the one before */
    int64_t last_time_us;   /* of the last visit with a response */
    int64_t first_time_us;  /* of the first one; 0: none */
    uint16_t last_status;
    struct bytes etag; /* as received then; may be empty */
    struct bytes last_modified;
    bool has_digest;
    uint8_t digest[KEY_DIGEST_SIZE]; /* of its last payload */
};

/* A link that is on its way to other nodes. */
struct frontier_outgoing {
    uint8_t place[ROUTE_POSITION_SIZE];
    struct bytes url;
    uint16_t depth;
    enum frontier_priority priority;
};

#endif
