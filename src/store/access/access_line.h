/*
 * access_line - one line of an .aclj file: which captures it is about, and what it says of them.
 *
 *      org,example)/private - {"access": "block", "after": "2026", "url": "http://example.org/private"}
 *      └─ key ────────────┘   └─ JSON ────────────────────────────────────────────────────────────────┘
 *
 * A line that says something which is not understood is refused as a whole: half a rule might show what was
 * to be hidden. docs/formats/access.md has the whole of it.
 */
#ifndef MNEMON_STORE_ACCESS_ACCESS_LINE_H
#define MNEMON_STORE_ACCESS_ACCESS_LINE_H

#include "base/bytes.h"
#include "base/err.h"

enum { ACCESS_LINE_SIZE_MAX = 64 << 10 };

enum access_verdict { ACCESS_ALLOW, ACCESS_BLOCK, ACCESS_EXCLUDE };

/* Back from now: months first, as a calendar counts them, then days. */
struct access_age {
    uint32_t months;
    uint32_t days;
};

/* The captures to which a rule applies, by their time. All limits hold. */
struct access_period {
    int64_t from_us; /* "after", inclusive; INT64_MIN: none */
    int64_t to_us;   /* "before", exclusive; INT64_MAX: none */
    bool has_newer;
    bool has_older;
    struct access_age newer;
    struct access_age older;
};

struct access_line {
    struct bytes key; /* without "###"; empty: of everything */
    bool is_exact;
    bool is_of_user; /* for a named user: nobody has a name here */
    enum access_verdict verdict;
    bool has_period;
    struct access_period period;
};

/* The key borrows the text, which has no line end. ERR_INVALID with the reason. */
enum err access_line_parse(struct access_line *line, struct bytes text, struct err_detail *detail) MUST_CHECK;

/* Is a capture of this time meant? */
bool access_period_covers(const struct access_period *period, int64_t time_us, int64_t now_us);

#endif
