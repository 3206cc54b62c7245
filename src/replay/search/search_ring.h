/*
 * search_ring - what a search over the ring has covered, for pages and programs (node/search/ring_search.h
 * does the asking). Shares are of the ring, 0 to 1: since positions are hashes, about that share of its URLs.
 */
#ifndef MNEMON_REPLAY_SEARCH_SEARCH_RING_H
#define MNEMON_REPLAY_SEARCH_SEARCH_RING_H

#include "base/address.h"

enum {
    SEARCH_RING_RESULTS_MAX = 500, /* that can be shown, page by page */
    SEARCH_RING_NODES_MAX = 32,    /* that are named */
    SEARCH_RING_GONE_MAX = 8,
};

/* A node because of which a part of the ring was not searched, or not surely all of it. */
struct search_ring_node {
    char address[ADDRESS_TEXT_SIZE_MAX];
    const char *reason;  /* "does not answer"; NULL: it answered */
    double missing;      /* the share that it holds and that nobody answered for */
    double behind;       /* that it holds and that nobody was sure of */
    uint64_t left_count; /* captures that its index has not read yet, about */
    bool lacks_volumes;
};

struct search_ring_report {
    bool is_ring; /* else only this node was searched */
    double whole;
    double behind;  /* searched, but captures of it may be missing */
    double missing; /* not searched */
    size_t parts_count;
    size_t whole_count;
    size_t behind_count;
    size_t missing_count;
    size_t nodes_count;    /* of the ring, as known */
    size_t asked_count;    /* this one among them */
    size_t answered_count; /* likewise */
    uint64_t took_us;
    /* Nodes that went lately, if they are as many as there are copies: what only they held is not found, and
     * nobody knows what that was. Else 0. */
    size_t gone_count;
    char gone[SEARCH_RING_GONE_MAX][ADDRESS_TEXT_SIZE_MAX]; /* the first of them */
    size_t named_count;
    struct search_ring_node named[SEARCH_RING_NODES_MAX];
};

#endif
