/*
 * ring-sites: what is lost if a site fails as a whole. ring-disks: nodes with disks that are too small.
 *
 * Both under the assumptions of the thesis (years_thesis.h), which knows neither: its nodes fail one by one,
 * and all have 100 GB. Half of the nodes stand at the first site, the others at three more; holders are
 * chosen by sites or not, by the function that the daemon calls. In ring-disks every part of the ring is as
 * large as any other, whatever disk its node has: the worst case, since a node with less disk takes less of
 * the ring if it knows.
 */
#include "protocol/copies/capacity.h"
#include "sim/experiments/years_thesis.h"

enum {
    SITES_COUNT = 4,
    SEEDS_COUNT = 3,
    FASTER = 8,
    DISKS_COPIES = 3,
    LARGE_PERCENT = 150,
    SMALL_PERCENT_MAX = 50,
    SMALL_STEP = 10
};
static const double SMALL_SHARE = 0.5; /* of what a node holds on average, as years_world.c has it */

/* Surplus is given up, so that there are as many copies as there shall be; and lines are eight times as fast
 * as the thesis's, so that few objects are short of one when the site goes. */
static enum err sites_run(const struct experiment_args *args, uint32_t copies, enum years_blow blow,
                          bool counts_sites, struct report *report, struct years_outcome *ret_outcome) {
    struct years_config config = years_thesis_config(args, copies);
    config.object_us /= FASTER;
    config.keeps_surplus = false;
    config.sites_count = SITES_COUNT;
    config.counts_sites = counts_sites;
    config.blow = blow;
    return years_thesis_run_seeds(&config, SEEDS_COUNT, report, ret_outcome);
}

/* All copies are among half of the nodes, drawn without putting back. */
static double sites_chance(uint32_t nodes_count, uint32_t copies) {
    double chance = 1;
    for (uint32_t i = 0; i < copies; i++) {
        double left = (double)(nodes_count / 2) - i;
        chance *= (left > 0 ? left : 0) / (double)(nodes_count - i);
    }
    return chance;
}

enum err experiment_ring_sites(const struct experiment_args *args, struct report *report,
                               struct err_detail *detail) {
    static const uint32_t levels[] = {2, 3, 4, 6};
    report_init(report, "A site with half of the nodes is gone in one moment", "% of the objects");
    REPORT_COLUMNS(report, {"copies", 0, REPORT_X}, {"expected (%)", 2, REPORT_Y_EXPECTED},
                   {"lost at once (%)", 2, REPORT_Y}, {"with sites (%)", 2, REPORT_Y},
                   {"lost in the year (%)", 2, REPORT_SHOWN}, {"with sites (%)", 2, REPORT_SHOWN},
                   {"away: not to be had (%)", 2, REPORT_Y}, {"away, with sites (%)", 2, REPORT_Y},
                   {"copies there are", 2, REPORT_SHOWN}, {"with sites", 2, REPORT_SHOWN});
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        struct years_outcome gone[2];
        struct years_outcome away[2];
        enum err err = ERR_OK;
        for (int j = 0; j < 2 && err == ERR_OK; j++) {
            err = sites_run(args, levels[i], YEARS_GONE, j == 1, report, &gone[j]);
            err = err != ERR_OK ? err : sites_run(args, levels[i], YEARS_AWAY, j == 1, report, &away[j]);
        }
        if (err != ERR_OK) {
            return experiment_fail(args, err, detail);
        }
        uint32_t nodes_count = years_thesis_config(args, levels[i]).nodes_count;
        REPORT_NUMBERS(report, levels[i], 100 * sites_chance(nodes_count, levels[i]), gone[0].struck_percent,
                       gone[1].struck_percent, gone[0].lost_percent, gone[1].lost_percent,
                       away[0].struck_dark_percent, away[1].struck_dark_percent, gone[0].copies,
                       gone[1].copies);
    }
    return report->err;
}

enum err experiment_ring_disks(const struct experiment_args *args, struct report *report,
                               struct err_detail *detail) {
    report_init(report, "Nodes with half of the disk that their part needs",
                "% of the nodes have too little");
    REPORT_COLUMNS(report, {"small disks (%)", 0, REPORT_X}, {"room (%)", 0, REPORT_SHOWN},
                   {"full (%)", 1, REPORT_Y}, {"copies there are", 2, REPORT_Y},
                   {"lost in a year (%)", 2, REPORT_Y}, {"not to be had (%)", 2, REPORT_SHOWN},
                   {"repair (GB/day)", 3, REPORT_SHOWN}, {"comparisons", 1, REPORT_SHOWN});
    for (uint32_t small = 0; small <= SMALL_PERCENT_MAX; small += SMALL_STEP) {
        struct years_config config = years_thesis_config(args, DISKS_COPIES);
        struct years_outcome outcome;
        config.small_percent = small;
        config.large_percent = LARGE_PERCENT;
        enum err err = years_thesis_run_seeds(&config, SEEDS_COUNT, report, &outcome);
        if (err != ERR_OK) {
            return experiment_fail(args, err, detail);
        }
        double room = small * SMALL_SHARE + (100.0 - small) * LARGE_PERCENT / 100;
        REPORT_NUMBERS(report, small, room, outcome.full_percent, outcome.copies, outcome.lost_percent,
                       outcome.dark_percent, outcome.repair_gb, outcome.comparisons);
    }
    return report->err;
}
