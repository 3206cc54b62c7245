/*
 * access_rules - a set of access rules that does not change, and the one that decides.
 *
 * The keys are sorted, and each knows the longest other key that it begins with:
 *
 *      org,example)/            <─┐      the greatest key that is not behind the SURT of a capture either
 *      org,example)/a             │ <─┐  begins it, or one of the keys that it begins with does, and no
 *      org,example)/a/b       ────│───┘  other: one binary search, and a walk up.
 *      org,example)/c         ────┘
 *
 * Rules of the same key count in the order in which they were added, exact ones first. Filled by one thread,
 * then read by any number.
 */
#ifndef MNEMON_STORE_ACCESS_ACCESS_RULES_H
#define MNEMON_STORE_ACCESS_ACCESS_RULES_H

#include "store/access/access_line.h"

enum { ACCESS_RULES_MAX = 1000000 };

struct access_rules;

struct access_rules *access_rules_new(void);        /* NULL: out of memory */
void access_rules_free(struct access_rules *rules); /* may be NULL */

/*
 * Add the lines of a file. Empty ones and those that begin with "#" do not count. ERR_INVALID with
 * detail->line; the set is then good for nothing but access_rules_free(). ERR_LIMIT, ERR_MEMORY.
 */
enum err access_rules_add(struct access_rules *rules, struct bytes text,
                          struct err_detail *detail) MUST_CHECK;

/* No more will be added. */
enum err access_rules_seal(struct access_rules *rules) MUST_CHECK;

size_t access_rules_count(const struct access_rules *rules);

enum access_verdict access_rules_check(const struct access_rules *rules, struct bytes surt, int64_t time_us,
                                       int64_t now_us);

#endif
