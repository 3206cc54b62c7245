/*
 * crowd-reach, crowd-reach-views, crowd-reach-causes: what nodes of a crowd can reach while others come and
 * go.
 *
 * Figures 5 and 6 of the PROOFS paper, its own setting beside ours (sim/experiments/crowd_churn.h). The paper
 * samples 1,200 times and drops the first 200; here the first sixth of the samples is dropped, too, after a
 * time in which the past has faded. What it states is little: means of 1, and minima down to 0.2 if nodes
 * stay for a fiftieth of the time that they are away.
 */

#include "sim/experiments/crowd_churn.h"
#include "sim/experiments/experiment.h"

enum {
    VIEW_SIZE = 25,
    DROPPED_SHARE = 6, /* 200 of 1,200 */
    LEVEL_PERCENT = 95,
};
static const uint32_t PPM_PER_PERCENT = 10000;

static struct crowd_churn_config config_of(const struct experiment_args *args) {
    return (struct crowd_churn_config){
        .seed = args->seed,
        .nodes_count = args->nodes,
        .view_size = VIEW_SIZE,
        .samples_count = args->runs,
        .dropped_count = args->runs / DROPPED_SHARE,
    };
}

/* ---- figure 5 ---- */

struct levels {
    double nodes;
    double dangling;
    double minimum[CROWD_CHURN_WAYS_COUNT];
    double mean[CROWD_CHURN_WAYS_COUNT];
};

static enum err find_levels(struct crowd_churn_config config, struct levels *levels, struct digest *digest) {
    enum err err = ERR_OK;
    for (int way = 0; way < CROWD_CHURN_WAYS_COUNT && err == ERR_OK; way++) {
        struct crowd_churn_found found;
        config.way = (enum crowd_churn_way)way;
        err = crowd_churn_run(&config, &found, digest);
        levels->minimum[way] = crowd_churn_level(found.minimums, found.count, LEVEL_PERCENT);
        levels->mean[way] = crowd_churn_level(found.means, found.count, LEVEL_PERCENT);
        levels->nodes = way == CROWD_CHURN_PAPER ? found.nodes : levels->nodes;
        levels->dangling = way == CROWD_CHURN_PAPER ? found.dangling : levels->dangling;
        crowd_churn_done(&found);
    }
    return err;
}

static enum err reach_row(struct crowd_churn_config config, struct report *report) {
    struct levels levels = {0};
    enum err err = find_levels(config, &levels, &report->digest);
    double leave_percent = config.leave_ppm / (double)PPM_PER_PERCENT;
    REPORT_NUMBERS(report, leave_percent, config.come_ppm / (double)PPM_PER_PERCENT, levels.nodes,
                   100 * levels.dangling);
    for (int way = 0; way < CROWD_CHURN_WAYS_COUNT; way++) {
        report_number(report, levels.minimum[way]);
    }
    for (int way = 0; way < CROWD_CHURN_WAYS_COUNT; way++) {
        report_number(report, levels.mean[way]);
    }
    return err;
}

enum err experiment_crowd_reach(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    static const uint32_t leave_percents[] = {0, 1, 10, 100};
    static const uint32_t come_percents[] = {1, 2, 5, 10, 20, 50, 100};
    report_init(report, "Reached of the others in 95 % of the samples, at least", "on average of all nodes");
    REPORT_COLUMNS(report, {"leave (%)", 0, REPORT_SERIES}, {"come (%)", 0, REPORT_X_LOGARITHMIC},
                   {"nodes up", 0, REPORT_SHOWN}, {"dead edges (%)", 1, REPORT_SHOWN},
                   {"least, paper", 3, REPORT_SHOWN}, {"least, proofs", 3, REPORT_SHOWN},
                   {"least, cyclon", 3, REPORT_SHOWN}, {"paper", 3, REPORT_Y}, {"proofs", 3, REPORT_SHOWN},
                   {"cyclon", 3, REPORT_Y});
    struct crowd_churn_config config = config_of(args);
    enum err err = ERR_OK;
    (void)detail;
    for (size_t i = 0; i < sizeof leave_percents / sizeof leave_percents[0]; i++) {
        /* If nobody leaves, how fast they came makes no difference. */
        size_t first = leave_percents[i] == 0 ? sizeof come_percents / sizeof come_percents[0] - 1 : 0;
        for (size_t j = first; j < sizeof come_percents / sizeof come_percents[0] && err == ERR_OK; j++) {
            config.leave_ppm = leave_percents[i] * PPM_PER_PERCENT;
            config.come_ppm = come_percents[j] * PPM_PER_PERCENT;
            err = reach_row(config, report);
        }
    }
    return err != ERR_OK ? err : report->err;
}

/* ---- figure 6 ---- */

enum { SIZES_COUNT = 4, WAYS_COUNT = 2, SHARE_STEP = 5, COME_PERCENT = 1, LEAVE_PERCENT = 10 };

static enum err run_sizes(const struct experiment_args *args,
                          struct crowd_churn_found found[WAYS_COUNT][SIZES_COUNT], struct digest *digest) {
    static const uint8_t sizes[SIZES_COUNT] = {5, 10, 25, 50};
    static const enum crowd_churn_way ways[WAYS_COUNT] = {CROWD_CHURN_PAPER, CROWD_CHURN_CYCLON};
    struct crowd_churn_config config = config_of(args);
    config.come_ppm = COME_PERCENT * PPM_PER_PERCENT;
    config.leave_ppm = LEAVE_PERCENT * PPM_PER_PERCENT;
    enum err err = ERR_OK;
    for (unsigned way = 0; way < WAYS_COUNT; way++) {
        for (unsigned i = 0; i < SIZES_COUNT && err == ERR_OK; i++) {
            config.way = ways[way];
            config.view_size = sizes[i];
            err = crowd_churn_run(&config, &found[way][i], digest);
        }
    }
    return err;
}

enum err experiment_crowd_reach_views(const struct experiment_args *args, struct report *report,
                                      struct err_detail *detail) {
    report_init(report, "Where nodes stay for a tenth of the time they are away",
                "reached, by the node that reaches least");
    REPORT_COLUMNS(report, {"of the time (%)", 0, REPORT_X}, {"paper, C = 5", 3, REPORT_Y},
                   {"paper, C = 10", 3, REPORT_Y}, {"paper, C = 25", 3, REPORT_Y},
                   {"paper, C = 50", 3, REPORT_Y}, {"cyclon, C = 5", 3, REPORT_Y},
                   {"cyclon, C = 10", 3, REPORT_Y}, {"cyclon, C = 25", 3, REPORT_Y},
                   {"cyclon, C = 50", 3, REPORT_Y});
    struct crowd_churn_found found[WAYS_COUNT][SIZES_COUNT] = {0};
    (void)detail;
    enum err err = run_sizes(args, found, &report->digest);
    for (uint32_t percent = 0; percent <= 100 && err == ERR_OK; percent += SHARE_STEP) {
        report_number(report, percent);
        for (unsigned way = 0; way < WAYS_COUNT; way++) {
            for (unsigned i = 0; i < SIZES_COUNT; i++) {
                const struct crowd_churn_found *of_size = &found[way][i];
                report_number(report, crowd_churn_level(of_size->minimums, of_size->count, percent));
            }
        }
    }
    for (unsigned way = 0; way < WAYS_COUNT; way++) {
        for (unsigned i = 0; i < SIZES_COUNT; i++) {
            crowd_churn_done(&found[way][i]);
        }
    }
    return err != ERR_OK ? err : report->err;
}

/* ---- what it depends on ---- */

struct cause {
    const char *name;
    enum crowd_churn_way way;
    uint32_t shuffles_per_unit;
    uint8_t walk_hops;
    bool gives_views;
};

static enum err cause_row(const struct experiment_args *args, const struct cause *cause,
                          struct report *report) {
    static const uint32_t percents[][2] = {{2, 100}, {10, 100}, {2, 10}}; /* come, leave */
    enum err err = ERR_OK;
    report_text(report, cause->name);
    for (unsigned i = 0; i < sizeof percents / sizeof percents[0] && err == ERR_OK; i++) {
        struct crowd_churn_config config = config_of(args);
        struct crowd_churn_found found;
        config.way = cause->way;
        config.shuffles_per_unit = cause->shuffles_per_unit;
        config.walk_hops = cause->walk_hops;
        config.gives_views = cause->gives_views;
        config.come_ppm = percents[i][0] * PPM_PER_PERCENT;
        config.leave_ppm = percents[i][1] * PPM_PER_PERCENT;
        err = crowd_churn_run(&config, &found, &report->digest);
        REPORT_NUMBERS(report, found.mean, crowd_churn_level(found.means, found.count, LEVEL_PERCENT),
                       crowd_churn_level(found.minimums, found.count, LEVEL_PERCENT));
        crowd_churn_done(&found);
    }
    return err;
}

enum err experiment_crowd_reach_causes(const struct experiment_args *args, struct report *report,
                                       struct err_detail *detail) {
    static const struct cause causes[] = {
        {"paper", CROWD_CHURN_PAPER, 1, 0, true},
        {"paper, 10 shuffles", CROWD_CHURN_PAPER, 10, 0, true},
        {"paper, 100 shuffles", CROWD_CHURN_PAPER, 100, 0, true},
        {"cyclon, walks of 1", CROWD_CHURN_CYCLON, 1, 1, false},
        {"cyclon, walks of 2", CROWD_CHURN_CYCLON, 1, 2, false},
        {"cyclon, walks of 5", CROWD_CHURN_CYCLON, 1, 5, false},
        {"cyclon, 10 shuffles", CROWD_CHURN_CYCLON, 10, 2, false},
        {"cyclon, list given", CROWD_CHURN_CYCLON, 1, 2, true},
        {"cyclon, list given, 10 shuffles", CROWD_CHURN_CYCLON, 10, 2, true},
    };
    report_init(report, "What is reached on average, where nodes come and leave fast", "");
    REPORT_COLUMNS(report, {"way", 0, REPORT_TEXT}, {"come 2 %, leave 100 %", 3, REPORT_Y},
                   {"2/100: mean, 95 %", 3, REPORT_SHOWN}, {"2/100: least, 95 %", 3, REPORT_SHOWN},
                   {"come 10 %, leave 100 %", 3, REPORT_Y}, {"10/100: mean, 95 %", 3, REPORT_SHOWN},
                   {"10/100: least, 95 %", 3, REPORT_SHOWN}, {"come 2 %, leave 10 %", 3, REPORT_Y},
                   {"2/10: mean, 95 %", 3, REPORT_SHOWN}, {"2/10: least, 95 %", 3, REPORT_SHOWN});
    enum err err = ERR_OK;
    (void)detail;
    for (unsigned i = 0; i < sizeof causes / sizeof causes[0] && err == ERR_OK; i++) {
        err = cause_row(args, &causes[i], report);
    }
    return err != ERR_OK ? err : report->err;
}
