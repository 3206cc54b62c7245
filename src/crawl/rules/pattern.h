/*
 * pattern - the include and exclude patterns of a job, compared with whole URLs.
 *
 *      https://example.org/private*     glob: '*' any bytes, '?' any one byte (so also a '?')
 *      example.org/private*             the same for any scheme, where it does not begin with '*'
 *      *.pdf                            ends so; '\' takes the next byte as it is
 *      re:/20[0-9]{2}/.+[?&]print=      POSIX extended regular expression (pattern_posix.h), anywhere in the
 * URL
 *
 * Globs because users of wget, httrack and shells know them, regular expressions for the rest. URLs are
 * compared in their normalised form without fragment; capitals count, but scheme and host of a URL have none.
 *
 * A list is built once and then constant: any thread may match. A glob takes at most pattern times URL steps.
 * A regular expression has a bound for each URL, about 25 ms (base/regex.h); a URL that would take longer
 * does not match it, and is counted. URLs longer than PATTERN_URL_SIZE_MAX match none.
 */
#ifndef MNEMON_CRAWL_RULES_PATTERN_H
#define MNEMON_CRAWL_RULES_PATTERN_H

#include "base/bytes.h"
#include "base/err.h"

enum {
    PATTERN_SIZE_MAX = 4096,
    PATTERN_URL_SIZE_MAX = 16 << 10,
    PATTERNS_MAX = 10000,
    PATTERNS_CODE_SIZE_MAX = 16 << 20, /* of all regular expressions of a list, compiled */
    PATTERN_NONE = -1,
};

struct pattern; /* pattern.c */

struct pattern_list {
    struct pattern *items;
    size_t count;
    size_t capacity;
    size_t code_size;
    _Atomic uint64_t *limited_count; /* NULL: no regular expression */
};

void pattern_list_init(struct pattern_list *list);
void pattern_list_done(struct pattern_list *list);

/* The text is copied. ERR_INVALID with the reason, ERR_LIMIT, ERR_MEMORY. */
enum err pattern_list_add(struct pattern_list *list, struct bytes text, struct err_detail *detail) MUST_CHECK;

/* Index of the first pattern that matches, or PATTERN_NONE. */
int pattern_list_find(const struct pattern_list *list, struct bytes url);

/* How often a regular expression came to its bound, and so did not match. Any thread. */
uint64_t pattern_list_limited(const struct pattern_list *list);

/* As it was added. */
struct bytes pattern_list_text(const struct pattern_list *list, size_t index);

/* One glob against all of the text. */
bool pattern_glob(struct bytes glob, struct bytes text);

#endif
