/*
 * tally - the counts of a crawl: what came back, how large, of which type, and what was left out and why.
 */
#ifndef MNEMON_CRAWL_ENGINE_TALLY_H
#define MNEMON_CRAWL_ENGINE_TALLY_H

#include "base/json.h"
#include "crawl/rules/scope.h"
#include "crawl/rules/trap.h"

enum {
    TALLY_STATUSES_MAX = 1000,
    TALLY_TYPES_MAX = 64,
    TALLY_TYPE_SIZE_MAX = 64,
    TALLY_ERRORS_MAX = 32,
    TALLY_REASONS_MAX = 24, /* more than there are */
    TALLY_EXAMPLES_MAX = 3,
    TALLY_EXAMPLE_SIZE_MAX = 256, /* a longer URL is cut */
    TALLY_WHY_SIZE_MAX = 128,
};

struct tally_type {
    char name[TALLY_TYPE_SIZE_MAX];
    uint64_t count;
    uint64_t size;
};

/* Why a URL was not fetched or not stored; kept in the frontier as one byte. */
enum tally_reason {
    TALLY_NONE,
    TALLY_ROBOTS,      /* robots.txt says no */
    TALLY_NO_ROBOTS,   /* robots.txt cannot be had */
    TALLY_HOST_DEAD,   /* too many failed connections in a row */
    TALLY_NOT_STORED,  /* the archive refused it */
    TALLY_TLS,         /* no TLS, or a certificate that is refused */
    TALLY_FAILED = 64, /* and above: this plus -enum err of the fetch */
};

/* URLs that failed, or were left out, for one reason. */
struct tally_failure {
    uint8_t reason;
    uint64_t count;
    char why[TALLY_WHY_SIZE_MAX]; /* of the first, in more words; may be empty */
    char examples[TALLY_EXAMPLES_MAX][TALLY_EXAMPLE_SIZE_MAX];
    size_t examples_count;
};

struct tally {
    uint64_t done_count;      /* responses that are stored */
    uint64_t changed_count;   /* of them: other than at the last visit, or new */
    uint64_t duplicate_count; /* of them: stored as a revisit of what was there */
    uint64_t not_modified_count;
    uint64_t truncated_count;
    uint64_t bad_tls_count;
    uint64_t failed_count;
    uint64_t retried_count;
    uint64_t found_before_count; /* stored before a crash, not fetched again */
    uint64_t received_size;      /* heads and bodies */
    uint64_t document_size;      /* payloads */
    uint64_t saved_size;         /* of them: not stored again */
    uint64_t links_count;        /* found, in scope or not */
    uint64_t robots_denied_count;
    uint64_t patterns_limited_count; /* a pattern would have taken too long for a URL, and did not match it */
    uint64_t statuses[TALLY_STATUSES_MAX];
    uint64_t errors[TALLY_ERRORS_MAX]; /* by -enum err */
    uint64_t traps[TRAP_REASONS_COUNT];
    uint64_t out_of_scope_count;
    struct tally_type types[TALLY_TYPES_MAX]; /* the last is "other" if there are more */
    size_t types_count;
    struct tally_failure failures[TALLY_REASONS_MAX];
    size_t failures_count;
    uint64_t seeds_done_count;   /* of this run */
    uint64_t seeds_failed_count; /* by robots.txt too */
};

void tally_count_type(struct tally *tally, const char *mime, uint64_t size);

/* why may be NULL. */
void tally_count_failure(struct tally *tally, uint8_t reason, struct bytes url, const char *why);

/* What a reason byte of the frontier means: "robots.txt does not allow it"; and its name for programs. */
const char *tally_reason_text(uint8_t reason);
const char *tally_reason_name(uint8_t reason);

/* For people, several lines; and as the members of a JSON object without its braces. */
void tally_put_summary(const struct tally *tally, uint64_t elapsed_us, struct buf *out);
void tally_put_json(const struct tally *tally, struct json *json);

#endif
