/*
 * regex - regular expressions of Perl's kind, each match with a bound on its work. The one wrapper of PCRE2.
 *
 * Expressions come from strangers: readers filter listings by them, members of a ring put them into jobs. A
 * match that needs more steps, depth or memory than its bounds ends with REGEX_LIMIT. Bytes are matched, not
 * characters. No JIT: compiling would cost more than it saves, and writable code is not wanted in a server.
 *
 * A compiled expression is constant: any thread may match. docs/decisions/0008-pcre2-for-filters.md.
 */
#ifndef MNEMON_BASE_REGEX_H
#define MNEMON_BASE_REGEX_H

#include "base/bytes.h"
#include "base/err.h"

enum { REGEX_CODE_SIZE_MAX = 256 << 10 }; /* of a compiled expression */

struct regex;

struct regex_rules {
    bool is_anchored;     /* a match begins where the text does */
    bool is_end_anchored; /* and ends where it does */
    bool is_posix;        /* '.' is any byte, '$' only the end; work is counted by steps alone */
    uint32_t
        steps_max; /* of one match, over all places where it may begin; 100,000 take about a millisecond */
    uint32_t depth_max; /* how many repetitions of a group, one within the other */
};

enum regex_verdict { REGEX_NO, REGEX_YES, REGEX_LIMIT };

/* ERR_INVALID with the byte and the reason, ERR_LIMIT: too large when compiled, ERR_MEMORY. */
enum err regex_new(struct bytes text, const struct regex_rules *rules, struct regex **ret_regex,
                   struct err_detail *detail) MUST_CHECK;
void regex_free(struct regex *regex); /* NULL is none */

enum regex_verdict regex_match(const struct regex *regex, struct bytes text);

/* Memory that it takes, for those that hold many. */
size_t regex_size(const struct regex *regex);

#endif
