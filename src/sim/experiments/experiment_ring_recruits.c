/*
 * ring-uptime, ring-recruits, ring-recruits-kept: which volunteers can be nodes (thesis 6.3).
 *
 *      ring-uptime          figure 6-1: how many are up for how much of ten days, asked once an hour
 *      ring-recruits        figure 6-2: how many pass 80 %, by how long they are watched; how many nodes of
 *                           40,000 that are; and what they do in the two weeks after
 *      ring-recruits-kept   a ring of those that passed, with the daemon's machine and six copies
 */
#include <stdlib.h>

#include "protocol/copies/capacity.h"
#include "sim/experiments/volunteers.h"
#include "sim/experiments/years_thesis.h"

enum {
    PPM = 1000000,
    DAY_HOURS = 24,
    FIGURE_DAYS = 10,
    AFTER_DAYS = 14,
    PASSED_PPM = 800000, /* the thesis's requirement */
    SEEDS_COUNT = 3,
    NETWORK_NODES = 40000, /* that accepted connections on that day of 2002 */
};

static int compare_ppm(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

/* Percentages of the nodes at which the figure is read, the best first. */
enum err experiment_ring_uptime(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    static const struct {
        uint32_t percent;
        double known; /* NAN: nothing is */
    } ranks[] = {{1, NAN},  {2, NAN},  {3, 80},   {5, NAN},  {10, NAN}, {20, 45},
                 {30, NAN}, {40, NAN}, {50, NAN}, {60, NAN}, {80, NAN}, {100, NAN}};
    struct volunteers volunteers;
    struct prng prng;
    report_init(report, "Volunteers by their uptime (figure 6-1)", "uptime in ten days, at least (%)");
    REPORT_COLUMNS(report, {"of the nodes (%)", 0, REPORT_X}, {"up at least (%)", 1, REPORT_Y},
                   {"known (%)", 0, REPORT_SHOWN});
    prng_init_stream(&prng, args->seed, 41);
    uint32_t *uptimes = calloc(args->nodes, sizeof *uptimes);
    enum err err = volunteers_init(&volunteers, args->nodes, &prng);
    err = uptimes == NULL ? ERR_MEMORY : err;
    for (uint32_t i = 0; err == ERR_OK && i < args->nodes; i++) {
        uptimes[i] = volunteers_uptime_ppm(&volunteers, i, 0, FIGURE_DAYS * DAY_HOURS);
        digest_u64(&report->digest, uptimes[i]);
    }
    if (err == ERR_OK) {
        qsort(uptimes, args->nodes, sizeof *uptimes, compare_ppm);
        for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
            uint64_t at = (uint64_t)args->nodes * ranks[i].percent / 100;
            REPORT_NUMBERS(report, ranks[i].percent, uptimes[at > 0 ? at - 1 : 0] / 1e4, ranks[i].known);
        }
    }
    volunteers_done(&volunteers);
    free(uptimes);
    return err == ERR_OK ? report->err : experiment_fail(args, err, detail);
}

/* ---- those that were watched ---- */

struct recruits {
    uint32_t *uptimes_ppm; /* of each, in the two weeks after; room for all volunteers */
    uint32_t count;
    uint32_t good_count; /* up for four fifths in these, too */
    double uptime_percent;
};

/* days 0: all are taken as they are found. */
static void recruits_choose(const struct volunteers *volunteers, uint32_t days, struct recruits *recruits) {
    uint64_t sum = 0;
    recruits->count = 0;
    recruits->good_count = 0;
    for (uint32_t i = 0; i < volunteers->count; i++) {
        if (days > 0 && volunteers_uptime_ppm(volunteers, i, 0, days * DAY_HOURS) <= PASSED_PPM) {
            continue;
        }
        uint32_t after = volunteers_uptime_ppm(volunteers, i, days * DAY_HOURS, AFTER_DAYS * DAY_HOURS);
        recruits->uptimes_ppm[recruits->count++] = after;
        recruits->good_count += after > PASSED_PPM;
        sum += after;
    }
    recruits->uptime_percent = recruits->count > 0 ? (double)sum / recruits->count / 1e4 : 0;
}

static enum err recruits_init(const struct experiment_args *args, struct volunteers *volunteers,
                              struct recruits *recruits) {
    struct prng prng;
    prng_init_stream(&prng, args->seed, 41);
    *recruits = (struct recruits){.uptimes_ppm = calloc(args->nodes, sizeof(uint32_t))};
    enum err err = volunteers_init(volunteers, args->nodes, &prng);
    return recruits->uptimes_ppm == NULL ? ERR_MEMORY : err;
}

enum err experiment_ring_recruits(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail) {
    struct volunteers volunteers;
    struct recruits recruits;
    report_init(report, "Volunteers that pass 80 %, by how long they are watched (figure 6-2)",
                "% of them, and of their time");
    REPORT_COLUMNS(report, {"days watched", 0, REPORT_X}, {"pass (%)", 2, REPORT_Y},
                   {"thesis (%)", 0, REPORT_SHOWN}, {"nodes of 40,000", 0, REPORT_SHOWN},
                   {"thesis", 0, REPORT_SHOWN}, {"pass two weeks more (%)", 1, REPORT_Y},
                   {"up in these (%)", 1, REPORT_Y}, {"thesis (%)", 0, REPORT_Y_EXPECTED});
    enum err err = recruits_init(args, &volunteers, &recruits);
    for (uint32_t days = 1; err == ERR_OK && days <= AFTER_DAYS; days++) {
        bool is_figure = days == FIGURE_DAYS;
        recruits_choose(&volunteers, days, &recruits);
        double share = (double)recruits.count / args->nodes;
        double good = recruits.count > 0 ? 100.0 * recruits.good_count / recruits.count : 0;
        REPORT_NUMBERS(report, days, 100 * share, is_figure ? 3 : NAN, share * NETWORK_NODES,
                       is_figure ? 1200 : NAN, good, recruits.uptime_percent, PASSED_PPM / 1e4);
        digest_u64(&report->digest, recruits.count);
        digest_u64(&report->digest, recruits.good_count);
    }
    volunteers_done(&volunteers);
    free(recruits.uptimes_ppm);
    return err == ERR_OK ? report->err : experiment_fail(args, err, detail);
}

/* Volunteers are many, the ring is as small as that of the thesis's years. */
enum err experiment_ring_recruits_kept(const struct experiment_args *args, struct report *report,
                                       struct err_detail *detail) {
    static const uint32_t watched_days[] = {0, 1, 3, 10, 14};
    struct volunteers volunteers;
    struct recruits recruits;
    report_init(report, "Six copies with volunteers, by how long they were watched", "% of the time");
    REPORT_COLUMNS(report, {"days watched", 0, REPORT_X}, {"up (%)", 1, REPORT_SHOWN},
                   {"not to be had (%)", 3, REPORT_Y}, {"all down (%)", 3, REPORT_Y_EXPECTED},
                   {"lost in a year (%)", 3, REPORT_SHOWN}, {"copies there are", 2, REPORT_SHOWN},
                   {"repair (GB/day)", 3, REPORT_SHOWN});
    enum err err = recruits_init(args, &volunteers, &recruits);
    for (size_t i = 0; err == ERR_OK && i < sizeof watched_days / sizeof watched_days[0]; i++) {
        struct experiment_args years = {.seed = args->seed, .runs = args->runs, .breakage = args->breakage};
        struct years_config config = years_thesis_config(&years, YEARS_THESIS_COPIES);
        struct years_outcome outcome = {0};
        recruits_choose(&volunteers, watched_days[i], &recruits);
        for (uint32_t j = 0; j < recruits.count; j++) { /* one that was never seen again is up now and then */
            recruits.uptimes_ppm[j] = recruits.uptimes_ppm[j] > 5000 ? recruits.uptimes_ppm[j] : 5000;
            recruits.uptimes_ppm[j] =
                recruits.uptimes_ppm[j] < PPM - 5000 ? recruits.uptimes_ppm[j] : PPM - 5000;
        }
        config.uptimes_ppm = recruits.uptimes_ppm;
        config.uptimes_count = recruits.count;
        if (recruits.count == 0) {
            continue; /* in a network of a few volunteers none may pass */
        }
        err = years_thesis_run_seeds(&config, SEEDS_COUNT, report, &outcome);
        REPORT_NUMBERS(report, watched_days[i], recruits.uptime_percent, outcome.dark_percent,
                       100 * capacity_all_among(YEARS_THESIS_COPIES, 1 - recruits.uptime_percent / 100),
                       outcome.lost_percent, outcome.copies, outcome.repair_gb);
    }
    volunteers_done(&volunteers);
    free(recruits.uptimes_ppm);
    return err == ERR_OK ? report->err : experiment_fail(args, err, detail);
}
