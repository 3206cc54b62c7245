/*
 * revisit - when a URL is worth another visit, from how often it changed.
 *
 * Changes are taken for a Poisson process. Of n visits at a mean distance of I, X found a change; Cho and
 * Garcia-Molina ("Estimating frequency of change", 2003) give the rate
 *
 *      r = -log((n - X + 0.5) / (n + 0.5)) / I
 *
 * which, unlike X / (n I), does not forget that a visit sees one change where there were several. The next
 * visit is due after REVISIT_TARGET_PERCENT / 100 / r, so that so many changes are expected in between,
 * but not before one period, not after REVISIT_PERIODS_MAX periods, and not after more than twice the last
 * distance: a page that never changed is trusted little by little, and a page that did is visited sooner.
 *
 * What this saves and what it misses against a visit each period: `mnemon sim revisit`, docs/experiments.md.
 * Pure, integers only: equal on every machine.
 */
#ifndef MNEMON_CRAWL_RULES_REVISIT_H
#define MNEMON_CRAWL_RULES_REVISIT_H

#include <stdbool.h>
#include <stdint.h>

enum { REVISIT_PERIODS_MAX = 32, REVISIT_TARGET_PERCENT = 50 };

/* What is known of a URL, the visit that just ended included. */
struct revisit {
    uint32_t visits_count;  /* that had an answer */
    uint32_t changes_count; /* that differed from the one before */
    int64_t first_us;       /* time of the first visit */
    int64_t previous_us;    /* of the one before the last; 0: there was one only */
    int64_t last_us;        /* of the last */
};

/* When it is due again. period_us > 0; target_percent: 0 for the default. */
int64_t revisit_due_us(const struct revisit *revisit, uint64_t period_us, uint32_t target_percent);

/* The estimated mean time between changes; UINT64_MAX if none was seen. */
uint64_t revisit_change_interval_us(const struct revisit *revisit);

#endif
