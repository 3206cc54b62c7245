/*
 * group-scale, group-scale-ways, group-scale-cut: one update to up to 20,000 replicas in groups of at most 50
 * that share two corners with each of their neighbours. What flood-d's paper aims at in its outlook and never
 * showed.
 *
 * Every replica runs the daemon's mirror (sim/experiments/group_spread.h); topologies are the daemon's
 * (sim/experiments/group_union.h). The first goes through the sizes; the second through other ways to join
 * the same replicas, and through what may fail; the third counts how often too many corners fail at once.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/group_spread.h"

enum {
    GROUP_SIZE = 50,
    FLAT_SIZE = GROUP_MEMBERS_MAX,
    REPLICAS_MIN = 64, /* below it there are no two groups */
    DEAD_PPM = 50000,
    SIZES_COUNT = 4,
    UPDATES_COUNT = 2,
    SWEEPS_COUNT = 4,
};
static const uint32_t sizes[SIZES_COUNT] = {64, 512, 4096, 20000};
static const uint64_t update_sizes[UPDATES_COUNT] = {1000000, 100000000};
static const double MEGABYTE = 1e6;
static const double MINUTE_US = 60e6;

/* ---- cells ---- */

static void write_minutes(struct report *report, uint64_t duration_us) {
    report_number(report, duration_us == UINT64_MAX ? NAN : (double)duration_us / MINUTE_US);
}

static void write_times(struct report *report, const struct group_spread_result *result) {
    write_minutes(report, result->half_us);
    write_minutes(report, result->no_modem_us);
    write_minutes(report, result->most_us);
    write_minutes(report, result->all_us);
}

static void write_size_columns(struct report *report) {
    REPORT_COLUMNS(report, {"received, mean (MB)", 2, REPORT_SHOWN}, {"received, most (MB)", 2, REPORT_SHOWN},
                   {"sent, most (MB)", 2, REPORT_SHOWN}, {"sent by the origin (MB)", 2, REPORT_SHOWN});
}

static void write_sizes(struct report *report, const struct group_spread_result *result) {
    REPORT_NUMBERS(report, (double)result->received_size / result->alive_count / MEGABYTE,
                   (double)result->received_size_max / MEGABYTE, (double)result->sent_size_max / MEGABYTE,
                   (double)result->origin_sent_size / MEGABYTE);
}

/* From the farthest to the farthest from it, some times: seldom less than the diameter, and never more. */
static uint32_t measure_diameter(struct group_union *whole) {
    uint32_t from = whole->origin;
    uint32_t most = 0;
    for (uint32_t sweep = 0; sweep < SWEEPS_COUNT; sweep++) {
        uint32_t farthest = group_union_walk(whole, from);
        most = farthest > most ? farthest : most;
        for (from = 0; whole->hops[from] != farthest; from++) {
        }
    }
    return most;
}

struct outcome {
    uint32_t groups_count;
    uint32_t diameter;
    double alone_us[UPDATES_COUNT]; /* that the origin's line needs to send it to everybody itself */
    struct group_spread_result results[UPDATES_COUNT];
};

static enum err run_union(const struct group_union_config *config, uint64_t gather_us, struct digest *digest,
                          struct outcome *ret_outcome, struct err_detail *detail) {
    struct group_union whole;
    enum err err = group_union_init(&whole, config);
    ret_outcome->diameter = err != ERR_OK ? 0 : measure_diameter(&whole);
    ret_outcome->groups_count = whole.groups_count;
    for (unsigned i = 0; i < UPDATES_COUNT && err == ERR_OK; i++) {
        struct group_spread_result *result = &ret_outcome->results[i];
        err = group_spread_run(&whole, update_sizes[i], gather_us, digest, result);
        ret_outcome->alone_us[i] = (double)(config->replicas_count - 1) * (double)update_sizes[i] * 1e6 /
                                   (double)whole.replicas[whole.origin].line;
    }
    group_union_done(&whole);
    return err == ERR_OK ? ERR_OK
                         : err_set(detail, err, "seed %llu, %u replicas: %s",
                                   (unsigned long long)config->seed, config->replicas_count, err_text(err));
}

static enum err check_args(const struct experiment_args *args, struct err_detail *detail) {
    if (args->nodes != 0 && (args->nodes < REPLICAS_MIN || args->nodes > GROUP_UNION_REPLICAS_MAX)) {
        return err_set(detail, ERR_INVALID, "%d to %d replicas", REPLICAS_MIN, GROUP_UNION_REPLICAS_MAX);
    }
    return ERR_OK;
}

/* ---- sizes ---- */

static void write_scale_columns(struct report *report) {
    report_init(report, "An update to replicas in groups that share corners", "minutes");
    REPORT_COLUMNS(report, {"replicas", 0, REPORT_X_LOGARITHMIC}, {"MB", 0, REPORT_SERIES},
                   {"groups", 0, REPORT_SHOWN}, {"diameter (hops)", 0, REPORT_SHOWN}, {"50 %", 1, REPORT_Y},
                   {"all but modems", 1, REPORT_Y}, {"99 %", 1, REPORT_SHOWN}, {"all", 1, REPORT_SHOWN});
    write_size_columns(report);
    report_column(report, "by the origin alone", 1, REPORT_SHOWN);
}

static enum err run_size(uint32_t replicas_count, const struct experiment_args *args, struct report *report,
                         struct err_detail *detail) {
    struct group_union_config config = {
        .seed = args->seed, .replicas_count = replicas_count, .group_size = GROUP_SIZE};
    struct outcome outcome = {0};
    enum err err = run_union(&config, 0, &report->digest, &outcome, detail);
    for (unsigned i = 0; i < UPDATES_COUNT && err == ERR_OK; i++) {
        const struct group_spread_result *result = &outcome.results[i];
        if (result->reached_count < replicas_count) {
            return err_set(detail, ERR_MISMATCH, "seed %llu: %u of %u replicas were reached",
                           (unsigned long long)args->seed, result->reached_count, replicas_count);
        }
        REPORT_NUMBERS(report, replicas_count, (double)update_sizes[i] / MEGABYTE, outcome.groups_count,
                       outcome.diameter);
        write_times(report, result);
        write_sizes(report, result);
        report_number(report, outcome.alone_us[i] / MINUTE_US);
    }
    return err != ERR_OK ? err : report->err;
}

enum err experiment_group_scale(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    write_scale_columns(report);
    enum err err = check_args(args, detail);
    for (unsigned i = 0; i < (args->nodes != 0 ? 1 : SIZES_COUNT) && err == ERR_OK; i++) {
        err = run_size(args->nodes != 0 ? args->nodes : sizes[i], args, report, detail);
    }
    return err;
}

/* ---- ways ---- */

/* What is not said: as many replicas as are asked for, a tree of groups, our topologies, nothing fails. */
static const struct way {
    const char *name;
    uint64_t gather_us;
    struct group_union_config config;
} ways[] = {
    {"256 in one group", 0, {.replicas_count = FLAT_SIZE, .group_size = FLAT_SIZE}},
    {"256 in groups", 0, {.replicas_count = FLAT_SIZE}},
    {"tree of groups", 0, {0}},
    {"tree, gathering for 5 s", 5000000, {0}},
    {"tree, the paper's topologies", 0, {.kind = TOPOLOGY_TREE}},
    {"mesh of groups", 0, {.joins = GROUP_UNION_MESH}},
    {"tree, a corner of each pair dead", 0, {.damage = GROUP_UNION_CORNERS}},
    {"the same, the paper's topologies", 0, {.kind = TOPOLOGY_TREE, .damage = GROUP_UNION_CORNERS}},
    {"mesh, a corner of each pair dead", 0, {.joins = GROUP_UNION_MESH, .damage = GROUP_UNION_CORNERS}},
    {"tree, corners dead, repaired", 0, {.damage = GROUP_UNION_CORNERS, .is_repaired = true}},
    {"tree, 5 % dead", 0, {.damage = GROUP_UNION_DEAD}},
    {"the same, the paper's topologies", 0, {.kind = TOPOLOGY_TREE, .damage = GROUP_UNION_DEAD}},
    {"mesh, 5 % dead", 0, {.joins = GROUP_UNION_MESH, .damage = GROUP_UNION_DEAD}},
    {"tree, 5 % dead, repaired", 0, {.damage = GROUP_UNION_DEAD, .is_repaired = true}},
    {"mesh, 5 % dead, repaired",
     0,
     {.joins = GROUP_UNION_MESH, .damage = GROUP_UNION_DEAD, .is_repaired = true}},
};

static void write_way_columns(struct report *report) {
    report_init(report, "An update to many replicas: ways to join them, and what may fail (minutes)", "");
    REPORT_COLUMNS(report, {"way", 0, REPORT_TEXT}, {"replicas", 0, REPORT_SHOWN},
                   {"groups", 0, REPORT_SHOWN}, {"diameter (hops)", 0, REPORT_SHOWN},
                   {"reached (%)", 2, REPORT_Y}, {"not reached", 0, REPORT_SHOWN},
                   {"1 MB: 50 %", 1, REPORT_SHOWN}, {"1 MB: all but modems", 1, REPORT_Y},
                   {"1 MB: 99 %", 1, REPORT_SHOWN}, {"1 MB: all", 1, REPORT_SHOWN},
                   {"100 MB: 50 %", 1, REPORT_SHOWN}, {"100 MB: all but modems", 1, REPORT_Y},
                   {"100 MB: 99 %", 1, REPORT_SHOWN}, {"100 MB: all", 1, REPORT_SHOWN});
    write_size_columns(report);
}

static enum err run_way(const struct way *way, const struct experiment_args *args, struct report *report,
                        struct err_detail *detail) {
    struct group_union_config config = way->config;
    config.seed = args->seed;
    config.dead_ppm = DEAD_PPM;
    config.replicas_count = config.replicas_count != 0 ? config.replicas_count : args->nodes;
    config.group_size = config.group_size != 0 ? config.group_size : GROUP_SIZE;
    struct outcome outcome = {0};
    enum err err = run_union(&config, way->gather_us, &report->digest, &outcome, detail);
    if (err != ERR_OK) {
        return err;
    }
    const struct group_spread_result *results = outcome.results;
    report_text(report, way->name);
    REPORT_NUMBERS(report, config.replicas_count, outcome.groups_count, outcome.diameter,
                   100.0 * results[0].reached_count / results[0].alive_count,
                   results[0].alive_count - results[0].reached_count);
    write_times(report, &results[0]);
    write_times(report, &results[1]);
    write_sizes(report, &results[1]);
    return report->err;
}

enum err experiment_group_scale_ways(const struct experiment_args *args, struct report *report,
                                     struct err_detail *detail) {
    write_way_columns(report);
    enum err err = check_args(args, detail);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && err == ERR_OK; i++) {
        err = run_way(&ways[i], args, report, detail);
    }
    return err;
}

/* ---- cuts ---- */

struct cuts {
    uint32_t worlds_count; /* in which somebody was cut off */
    uint32_t lost_count;   /* replicas that live and were, in all of them */
    uint32_t lost_count_max;
};

static enum err look_for_cut(const struct group_union_config *config, struct cuts *cuts) {
    struct group_union whole;
    enum err err = group_union_init(&whole, config);
    if (err == ERR_OK) {
        uint32_t lost_count = 0;
        group_union_walk(&whole, whole.origin);
        for (uint32_t i = 0; i < config->replicas_count; i++) {
            lost_count += !whole.replicas[i].is_dead && whole.hops[i] == UINT32_MAX ? 1 : 0;
        }
        cuts->worlds_count += lost_count > 0 ? 1 : 0;
        cuts->lost_count += lost_count;
        cuts->lost_count_max = lost_count > cuts->lost_count_max ? lost_count : cuts->lost_count_max;
    }
    group_union_done(&whole);
    return err;
}

static enum err run_cuts(enum group_union_joins joins, const struct experiment_args *args,
                         struct report *report) {
    struct group_union_config config = {
        .replicas_count = args->nodes,
        .group_size = GROUP_SIZE,
        .joins = joins,
        .damage = GROUP_UNION_DEAD,
        .dead_ppm = DEAD_PPM,
        .is_repaired = true,
    };
    uint32_t runs = args->runs;
    struct cuts cuts = {0};
    for (uint32_t run = 0; run < runs; run++) {
        config.seed = args->seed + run;
        enum err err = look_for_cut(&config, &cuts);
        if (err != ERR_OK) {
            return err;
        }
        digest_u64(&report->digest, cuts.lost_count);
    }
    report_text(report, joins == GROUP_UNION_TREE ? "tree of groups" : "mesh of groups");
    REPORT_NUMBERS(report, runs, cuts.worlds_count, (double)cuts.lost_count / runs, cuts.lost_count_max);
    return report->err;
}

enum err experiment_group_scale_cut(const struct experiment_args *args, struct report *report,
                                    struct err_detail *detail) {
    report_init(report, "Groups that share corners, 5 % of all replicas dead", "");
    REPORT_COLUMNS(report, {"way", 0, REPORT_TEXT}, {"worlds", 0, REPORT_SHOWN},
                   {"of them in parts", 0, REPORT_Y}, {"replicas cut off, mean", 1, REPORT_Y},
                   {"most", 0, REPORT_SHOWN});
    enum err err = check_args(args, detail);
    err = err != ERR_OK ? err : run_cuts(GROUP_UNION_TREE, args, report);
    return err != ERR_OK ? err : run_cuts(GROUP_UNION_MESH, args, report);
}
