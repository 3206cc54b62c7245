/*
 * ring_search_merge - what this node and others found becomes one list: by score, each capture once, and only
 * what may be shown here. Two results are one capture if they have the same URL and the same time, or the
 * same URL and contents; the better one is shown.
 */
#ifndef MNEMON_NODE_SEARCH_RING_SEARCH_MERGE_H
#define MNEMON_NODE_SEARCH_RING_SEARCH_MERGE_H

#include "node/search/ring_search.h"

/* A checked answer (search_code.h). */
struct ring_search_answer {
    struct bytes bytes;
    const struct peer *from;
};

/* The results of the job's question; here: of the search on this node. */
enum err ring_search_merge(const struct ring_search_config *config, const struct search_job *here,
                           const struct ring_search_answer *answers, size_t count,
                           struct search_job *job) MUST_CHECK;

#endif
