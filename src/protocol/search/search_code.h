/*
 * search_code - what nodes ask each other for a full-text search over the ring (PEER_RPC_SEARCH): the
 * question, and an answer of captures with the arcs of which the answering node has read everything. Pure.
 *
 * What comes from a node is bounded and checked here: sizes, order of the scores, texts without control
 * characters, marks in pairs. docs/protocol/ring-services.md has the layouts.
 */
#ifndef MNEMON_PROTOCOL_SEARCH_SEARCH_CODE_H
#define MNEMON_PROTOCOL_SEARCH_SEARCH_CODE_H

#include "base/wire.h"
#include "protocol/ring/ring_id.h"

enum {
    SEARCH_CODE_WORDS_SIZE_MAX = 1024,
    SEARCH_CODE_HOST_SIZE_MAX = 512,
    SEARCH_CODE_RESULTS_MAX = 501, /* 500 can be shown; one more says that there are more */
    SEARCH_CODE_ARCS_MAX = 1024,
    SEARCH_CODE_COUNT_MAX = 1 << 30, /* that is said: of documents, and of captures that are left */
    SEARCH_CODE_URL_SIZE_MAX = 8 << 10,
    SEARCH_CODE_TITLE_SIZE_MAX = 512,
    SEARCH_CODE_LANGUAGE_SIZE_MAX = 64,
    SEARCH_CODE_SNIPPET_SIZE_MAX = 2048, /* with its marks */
    SEARCH_CODE_DIGEST_SIZE = 16,        /* the first bytes of the payload's */
    SEARCH_CODE_QUESTION_SIZE_MAX = 2 << 10,
    SEARCH_CODE_ANSWER_SIZE_MAX = 1 << 20,
    SEARCH_CODE_MARK_START = 2, /* around the words that were found, in snippets */
    SEARCH_CODE_MARK_END = 3,
};

/* BM25 of 32 terms cannot be more: each is at most 2.2 times the logarithm of the number of documents. */
#define SEARCH_CODE_SCORE_MAX UINT64_C(4096000000)

struct search_code_question {
    struct bytes words;
    struct bytes host; /* and its subdomains; empty: all */
    int64_t from_us;
    int64_t to_us;
    uint32_t count; /* of results, from the best on; 1 to SEARCH_CODE_RESULTS_MAX */
};

/* (from, to] of the ring. */
struct search_code_arc {
    struct ring_id from;
    struct ring_id to;
};

struct search_code_head {
    bool has_everything;      /* all arcs; then none is named */
    bool lacks_volumes;       /* there are captures here that it cannot search now */
    bool has_more;            /* results, behind those that it names */
    uint64_t left_count;      /* captures here that it has not read yet, about */
    uint64_t documents_count; /* that it searched */
    uint32_t arcs_count;      /* (for reading) what follows */
    uint32_t results_count;
};

struct search_code_result {
    struct bytes url;
    struct bytes title;
    struct bytes language;
    struct bytes snippet;
    int64_t time_us;
    uint8_t digest[SEARCH_CODE_DIGEST_SIZE];
    uint64_t score; /* in millionths; of one answer, none is larger than the one before */
};

/* What texts may not have, but for marks. */
static inline bool search_code_is_control(uint8_t byte) {
    return byte < ' ' || byte == 0x7f;
}

/* Is the byte a mark that fits what is open? */
static inline bool search_code_is_mark(uint8_t byte, bool is_open) {
    return byte == (is_open ? SEARCH_CODE_MARK_END : SEARCH_CODE_MARK_START);
}

/* ---- reading: slices are of the input ---- */

enum err search_code_read_question(struct bytes input, struct search_code_question *ret_question,
                                   struct err_detail *detail) MUST_CHECK;

/* Reads all of an answer: what it does not refuse can be stepped through without an error. */
enum err search_code_check_answer(struct bytes input, struct err_detail *detail) MUST_CHECK;

struct search_code_reader {
    struct wire_reader wire;
    uint32_t arcs_left;
    uint32_t results_left;
    uint64_t score; /* of the result before */
};

/* The head; then all arcs, then all results. False: an error, in reader->wire, or there is no other one. */
bool search_code_read_head(struct search_code_reader *reader, struct bytes input,
                           struct search_code_head *ret_head);
bool search_code_next_arc(struct search_code_reader *reader, struct search_code_arc *ret_arc);
bool search_code_next_result(struct search_code_reader *reader, struct search_code_result *ret_result);

#endif
