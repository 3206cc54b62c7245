/*
 * Visits over time: what the adaptive interval of crawl/rules/revisit.h saves and misses against a visit each
 * period.
 *
 * A site of pages that change as Poisson processes, for a year, visited at most once a day. The mixture of
 * rates is roughly what Cho and Garcia-Molina found for half a million pages ("The evolution of the web and
 * implications for an incremental crawler", 2000): 23 % changed about daily, 30 % not once in four months.
 */
#include "base/prng.h"
#include "crawl/rules/revisit.h"
#include "sim/experiments/experiment.h"

enum { DAYS = 365 };
static const uint64_t DAY_US = UINT64_C(86400) * 1000000;
static const uint64_t HOUR_US = UINT64_C(3600) * 1000000;

static const struct rate {
    uint32_t share_percent;
    uint32_t interval_hours; /* mean time between changes */
} rates[] = {{23, 12}, {15, 72}, {16, 336}, {16, 1440}, {30, 8760}};
enum { RATES_COUNT = sizeof rates / sizeof *rates };

/* What all pages of one policy add up to. */
struct visit_sums {
    uint64_t fetches_count;
    uint64_t changes_count;
    uint64_t seen_count; /* versions that a visit found; the others were overwritten before the next visit */
    uint64_t stale_us;   /* how long the newest copy was out of date, of all pages together */
    uint64_t pages_count;
};

/* One page's changes, and what the visits so far know of them. */
struct page {
    struct prng prng;
    uint64_t interval_us;
    uint64_t next_change_us;
    struct revisit revisit;
};

static void page_init(struct page *page, uint64_t seed, uint64_t number, uint64_t interval_us) {
    *page = (struct page){.interval_us = interval_us};
    prng_init_stream(&page->prng, seed, number);
    page->next_change_us = prng_exponential(&page->prng, interval_us);
}

/* Let the page change up to a time; how often it did. */
static uint64_t page_change(struct page *page, uint64_t until_us) {
    uint64_t changes_count = 0;
    for (; page->next_change_us <= until_us; changes_count++) {
        page->next_change_us += prng_exponential(&page->prng, page->interval_us) + 1;
    }
    return changes_count;
}

static void page_visit(struct page *page, uint64_t time_us, struct visit_sums *sums) {
    uint64_t first_us = page->next_change_us;
    uint64_t changes_count = page_change(page, time_us);
    struct revisit *revisit = &page->revisit;
    bool is_first = revisit->visits_count == 0;
    bool is_changed = changes_count > 0 && !is_first;
    revisit->visits_count++;
    revisit->changes_count += is_changed ? 1 : 0;
    revisit->first_us = is_first ? (int64_t)time_us : revisit->first_us;
    revisit->previous_us = revisit->last_us;
    revisit->last_us = (int64_t)time_us;
    sums->fetches_count++;
    sums->changes_count += is_first ? 0 : changes_count;
    sums->seen_count += is_changed ? 1 : 0;
    sums->stale_us += is_changed ? time_us - first_us : 0;
}

/* target_percent 0: each period. The crawl runs once a period, so what is due later in a day waits for it. */
static void watch_page(struct page *page, uint32_t target_percent, struct visit_sums *sums) {
    uint64_t day = 1; /* time 0 stands for no visit */
    while (day <= DAYS) {
        page_visit(page, day * DAY_US, sums);
        uint64_t due_us = target_percent == 0
                              ? (day + 1) * DAY_US
                              : (uint64_t)revisit_due_us(&page->revisit, DAY_US, target_percent);
        day = (due_us + DAY_US - 1) / DAY_US;
    }
    /* What changes after the last visit is missed by both alike up to a day, by the adaptive one for longer.
     */
    uint64_t end_us = DAYS * DAY_US;
    uint64_t last_us = (uint64_t)page->revisit.last_us;
    if (page->next_change_us > last_us && page->next_change_us <= end_us) {
        sums->stale_us += end_us - page->next_change_us;
    }
    sums->changes_count += page_change(page, end_us);
    sums->pages_count++;
}

/* The pages of one rate, the same ones for every policy. */
static void watch_rate(const struct experiment_args *args, uint32_t rate, uint32_t target_percent,
                       struct visit_sums *sums) {
    uint64_t pages_count = (uint64_t)args->nodes * rates[rate].share_percent;
    for (uint32_t run = 0; run < args->runs; run++) {
        for (uint64_t i = 0; i < (pages_count + 99) / 100; i++) {
            struct page page;
            page_init(&page, args->seed + run, (uint64_t)rate << 32 | i,
                      rates[rate].interval_hours * HOUR_US);
            watch_page(&page, target_percent, sums);
        }
    }
}

static void digest_sums(struct digest *digest, const struct visit_sums *sums) {
    digest_u64(digest, sums->fetches_count);
    digest_u64(digest, sums->changes_count);
    digest_u64(digest, sums->seen_count);
    digest_u64(digest, sums->stale_us);
}

static double missed_percent(const struct visit_sums *sums) {
    return report_percent(sums->changes_count - sums->seen_count, sums->changes_count);
}

static double stale_percent(const struct visit_sums *sums) {
    return report_percent(sums->stale_us, sums->pages_count * DAYS * DAY_US);
}

/* The columns that both tables share, from one policy beside the daily one. */
static void add_columns(struct report *report) {
    REPORT_COLUMNS(report, {"fetches per page", 1, REPORT_SHOWN}, {"fetches saved", 1, REPORT_Y},
                   {"missed daily", 1, REPORT_Y}, {"missed adaptive", 1, REPORT_Y},
                   {"of what daily sees", 1, REPORT_Y}, {"out of date daily", 1, REPORT_SHOWN},
                   {"out of date adaptive", 1, REPORT_SHOWN});
}

static void add_numbers(struct report *report, const struct visit_sums *daily,
                        const struct visit_sums *adaptive) {
    REPORT_NUMBERS(report, (double)adaptive->fetches_count / (double)adaptive->pages_count,
                   100 - report_percent(adaptive->fetches_count, daily->fetches_count), missed_percent(daily),
                   missed_percent(adaptive), 100 - report_percent(adaptive->seen_count, daily->seen_count),
                   stale_percent(daily), stale_percent(adaptive));
    digest_sums(&report->digest, daily);
    digest_sums(&report->digest, adaptive);
}

enum err experiment_revisit(const struct experiment_args *args, struct report *report,
                            struct err_detail *detail) {
    (void)detail;
    static const uint32_t targets_percent[] = {10, 20, 30, 50, 70, 100, 150, 200};
    report_init(report, "Visits over a year: adaptive against daily", "% of fetches, of changes");
    report_column(report, "target (%)", 0, REPORT_X);
    add_columns(report);
    struct visit_sums daily = {0};
    for (uint32_t rate = 0; rate < RATES_COUNT; rate++) {
        watch_rate(args, rate, 0, &daily);
    }
    for (uint32_t i = 0; i < sizeof targets_percent / sizeof *targets_percent; i++) {
        struct visit_sums adaptive = {0};
        for (uint32_t rate = 0; rate < RATES_COUNT; rate++) {
            watch_rate(args, rate, targets_percent[i], &adaptive);
        }
        report_number(report, targets_percent[i]);
        add_numbers(report, &daily, &adaptive);
    }
    return report->err;
}

enum err experiment_revisit_rates(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail) {
    (void)detail;
    report_init(report, "Visits over a year, by how often pages change", "% of fetches, of changes");
    REPORT_COLUMNS(report, {"a change in (days)", 1, REPORT_X}, {"pages (%)", 0, REPORT_SHOWN});
    add_columns(report);
    for (uint32_t rate = 0; rate < RATES_COUNT; rate++) {
        struct visit_sums daily = {0};
        struct visit_sums adaptive = {0};
        watch_rate(args, rate, 0, &daily);
        watch_rate(args, rate, REVISIT_TARGET_PERCENT, &adaptive);
        REPORT_NUMBERS(report, rates[rate].interval_hours / 24.0, rates[rate].share_percent);
        add_numbers(report, &daily, &adaptive);
    }
    return report->err;
}
