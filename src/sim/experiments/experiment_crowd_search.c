/*
 * crowd-search, crowd-views, crowd-joined, crowd-dropping: figures 7 to 10 of the PROOFS paper, and what it
 * says without a figure. Each is a sweep: the share of nodes that limit their participation grows, and each
 * column is a setting. Every setting stands there twice: by the paper's rules, and by ours.
 */
#include "sim/experiments/crowd_searches.h"
#include "sim/experiments/experiment.h"

enum {
    SERIES_MAX = 13,
    LINES_MAX = 8, /* of a plot, that colours can tell apart */
    PERCENT_STEP = 10,
    PERCENT_LAST = 90,
};

enum quantity { SUCCESS, MESSAGES, HOPS };

/* Every node drops so many queries, instead of so many nodes that limit themselves. */
enum dropping { DROPS_NOT, DROPS, DROPS_ACKNOWLEDGED };

struct series {
    const char *name;
    const char *name_with_way_back; /* HOPS: of the second column; NULL: there is none */
    enum crowd_rules rules;
    enum crowd_part part;
    uint8_t view_size;
    uint8_t fanout;
    enum crowd_arrivals arrivals;
    enum dropping dropping;
};

/* What the paper states for one share. */
struct stated {
    const char *name; /* of the column; NULL: no more */
    unsigned percents[3];
    double values[3];
    unsigned count;
};

struct sweep {
    const char *title;
    const char *y_label;
    enum quantity quantity;
    const struct series *series;
    unsigned series_count;
    struct stated stated[3];
};

/* ---- settings ---- */

#define PAPER CROWD_RULES_PAPER
#define OURS CROWD_RULES_OURS
#define WITH_WAY_BACK(name) name, name " and back"

static const struct series parts_series[] = {
    {WITH_WAY_BACK("query-only"), PAPER, CROWD_QUERY_ONLY, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {WITH_WAY_BACK("tunnel"), PAPER, CROWD_TUNNEL, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {WITH_WAY_BACK("mute"), PAPER, CROWD_MUTE, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {WITH_WAY_BACK("query-only (ours)"), OURS, CROWD_QUERY_ONLY, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {WITH_WAY_BACK("tunnel (ours)"), OURS, CROWD_TUNNEL, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {WITH_WAY_BACK("mute (ours)"), OURS, CROWD_MUTE, 25, 5, CROWD_ISOLATED, DROPS_NOT},
};

static const struct series views_series[] = {
    {"C=10 f=2", NULL, PAPER, CROWD_MUTE, 10, 2, CROWD_ISOLATED, DROPS_NOT},
    {"C=25 f=2", NULL, PAPER, CROWD_MUTE, 25, 2, CROWD_ISOLATED, DROPS_NOT},
    {"C=50 f=2", NULL, PAPER, CROWD_MUTE, 50, 2, CROWD_ISOLATED, DROPS_NOT},
    {"C=8 f=5", NULL, PAPER, CROWD_MUTE, 8, 5, CROWD_ISOLATED, DROPS_NOT},
    {"C=10 f=5", NULL, PAPER, CROWD_MUTE, 10, 5, CROWD_ISOLATED, DROPS_NOT},
    {"C=25 f=5", NULL, PAPER, CROWD_MUTE, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {"C=50 f=5", NULL, PAPER, CROWD_MUTE, 50, 5, CROWD_ISOLATED, DROPS_NOT},
    {"C=10 f=2 (ours)", NULL, OURS, CROWD_MUTE, 10, 2, CROWD_ISOLATED, DROPS_NOT},
    {"C=25 f=2 (ours)", NULL, OURS, CROWD_MUTE, 25, 2, CROWD_ISOLATED, DROPS_NOT},
    {"C=50 f=2 (ours)", NULL, OURS, CROWD_MUTE, 50, 2, CROWD_ISOLATED, DROPS_NOT},
    {"C=10 f=5 (ours)", NULL, OURS, CROWD_MUTE, 10, 5, CROWD_ISOLATED, DROPS_NOT},
    {"C=25 f=5 (ours)", NULL, OURS, CROWD_MUTE, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {"C=50 f=5 (ours)", NULL, OURS, CROWD_MUTE, 50, 5, CROWD_ISOLATED, DROPS_NOT},
};

static const struct series joined_series[] = {
    {WITH_WAY_BACK("isolated"), PAPER, CROWD_MUTE, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {WITH_WAY_BACK("printed"), PAPER, CROWD_MUTE, 25, 5, CROWD_JOINED_AS_PRINTED, DROPS_NOT},
    {WITH_WAY_BACK("described"), PAPER, CROWD_MUTE, 25, 5, CROWD_JOINED_AS_DESCRIBED, DROPS_NOT},
    {WITH_WAY_BACK("isolated (ours)"), OURS, CROWD_MUTE, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {WITH_WAY_BACK("printed (ours)"), OURS, CROWD_MUTE, 25, 5, CROWD_JOINED_AS_PRINTED, DROPS_NOT},
    {WITH_WAY_BACK("described (ours)"), OURS, CROWD_MUTE, 25, 5, CROWD_JOINED_AS_DESCRIBED, DROPS_NOT},
};

static const struct series dropping_series[] = {
    {"mute", NULL, PAPER, CROWD_MUTE, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {"dropping", NULL, PAPER, CROWD_FULL, 25, 5, CROWD_ISOLATED, DROPS},
    {"acknowledged", NULL, PAPER, CROWD_FULL, 25, 5, CROWD_ISOLATED, DROPS_ACKNOWLEDGED},
    {"mute (ours)", NULL, OURS, CROWD_MUTE, 25, 5, CROWD_ISOLATED, DROPS_NOT},
    {"dropping (ours)", NULL, OURS, CROWD_FULL, 25, 5, CROWD_ISOLATED, DROPS},
    {"acknowledged (ours)", NULL, OURS, CROWD_FULL, 25, 5, CROWD_ISOLATED, DROPS_ACKNOWLEDGED},
};

#undef PAPER
#undef OURS
#undef WITH_WAY_BACK

/* ---- sweeps ---- */

static double search_look(const struct crowd_searches_result *result, enum quantity quantity) {
    switch (quantity) {
    case SUCCESS:
        return crowd_searches_success(result);
    case MESSAGES:
        return crowd_searches_messages(result);
    case HOPS:
        return crowd_searches_hops(result);
    }
    return 0;
}

static void put_columns(const struct sweep *sweep, struct report *report) {
    unsigned decimals = sweep->quantity == HOPS ? 2 : 1;
    report_init(report, sweep->title, sweep->y_label);
    report_column(report, "share (%)", 0, REPORT_X);
    for (unsigned i = 0; i < sweep->series_count; i++) {
        bool is_plotted = sweep->series_count <= LINES_MAX || sweep->series[i].rules == CROWD_RULES_PAPER;
        report_column(report, sweep->series[i].name, decimals, is_plotted ? REPORT_Y : REPORT_SHOWN);
    }
    for (unsigned i = 0; i < sweep->series_count && sweep->quantity == HOPS; i++) {
        if (sweep->series[i].name_with_way_back != NULL) {
            report_column(report, sweep->series[i].name_with_way_back, decimals, REPORT_SHOWN);
        }
    }
    for (unsigned i = 0; i < 3 && sweep->stated[i].name != NULL; i++) {
        report_column(report, sweep->stated[i].name, decimals, REPORT_Y_EXPECTED);
    }
}

static void put_stated(const struct stated *stated, unsigned percent, struct report *report) {
    for (unsigned i = 0; i < stated->count; i++) {
        if (stated->percents[i] == percent) {
            report_number(report, stated->values[i]);
            return;
        }
    }
    report_number(report, NAN);
}

static enum err run_point(const struct experiment_args *args, const struct series *series, unsigned percent,
                          struct report *report, struct crowd_searches_result *result) {
    struct crowd_searches searches = {
        .seed = args->seed,
        .rules = series->rules,
        .arrivals = series->arrivals,
        .nodes_count = args->nodes,
        .runs_count = args->runs,
        .view_size = series->view_size,
        .fanout = series->fanout,
        .part = series->part,
        .part_percent = series->dropping == DROPS_NOT ? percent : 0,
        .drop_percent = series->dropping == DROPS_NOT ? 0 : percent,
        .is_drop_acknowledged = series->dropping == DROPS_ACKNOWLEDGED,
    };
    return crowd_searches_run(&searches, &report->digest, result);
}

static enum err search_put_row(const struct experiment_args *args, const struct sweep *sweep,
                               unsigned percent, struct report *report, struct err_detail *detail) {
    struct crowd_searches_result results[SERIES_MAX];
    report_number(report, percent);
    for (unsigned i = 0; i < sweep->series_count; i++) {
        const struct series *series = &sweep->series[i];
        enum err err = run_point(args, series, percent, report, &results[i]);
        if (err != ERR_OK) {
            return err_set(detail, err, "%s, %u %%: %s", series->name, percent, err_text(err));
        }
        if (series->rules == CROWD_RULES_PAPER && results[i].lost_room_count > 0) {
            return err_set(detail, ERR_MISMATCH, "%s, %u %%: the paper's nodes drop nothing, these %llu",
                           series->name, percent, (unsigned long long)results[i].lost_room_count);
        }
        report_number(report, search_look(&results[i], sweep->quantity));
    }
    for (unsigned i = 0; i < sweep->series_count && sweep->quantity == HOPS; i++) {
        if (sweep->series[i].name_with_way_back != NULL) {
            report_number(report, crowd_searches_hops_with_way_back(&results[i]));
        }
    }
    for (unsigned i = 0; i < 3 && sweep->stated[i].name != NULL; i++) {
        put_stated(&sweep->stated[i], percent, report);
    }
    return report->err;
}

/* ---- the experiments ---- */

#define SERIES(array) array, sizeof(array) / sizeof(array)[0]

static const struct sweep sweeps[] = {
    [EXPERIMENT_SEARCH_FOUND] = {"Searches that found the object",
                                 "found (%)",
                                 SUCCESS,
                                 SERIES(parts_series),
                                 {{"not mute (stated)", {50}, {100}, 1},
                                  {"mute (stated)", {50, 80}, {99.5, 80}, 2}}},
    [EXPERIMENT_SEARCH_MESSAGES] =
        {"Queries that a node receives", "queries, mean", MESSAGES, SERIES(parts_series), {{0}}},
    [EXPERIMENT_SEARCH_HOPS] =
        {"Hops until the object is found", "hops, mean", HOPS, SERIES(parts_series), {{0}}},
    [EXPERIMENT_VIEWS_FOUND] = {"Searches that found the object, by view and fan-out",
                                "found (%)",
                                SUCCESS,
                                SERIES(views_series),
                                {{"C=10 f=5 (stated)", {80}, {25}, 1}, {"C=50 f=5 (stated)", {80}, {82}, 1}}},
    [EXPERIMENT_VIEWS_MESSAGES] = {"Queries that a node receives, by view and fan-out",
                                   "queries, mean",
                                   MESSAGES,
                                   SERIES(views_series),
                                   {{"C=25 f=5 (stated)", {50}, {25}, 1}}},
    [EXPERIMENT_VIEWS_HOPS] = {"Hops until the object is found, by view and fan-out",
                               "hops, mean",
                               HOPS,
                               SERIES(views_series),
                               {{0}}},
    [EXPERIMENT_JOINED_MESSAGES] = {"Queries that a node receives, isolated and joined arrivals",
                                    "queries, mean",
                                    MESSAGES,
                                    SERIES(joined_series),
                                    {{0}}},
    [EXPERIMENT_JOINED_HOPS] = {"Hops until the object is found, isolated and joined arrivals",
                                "hops, mean",
                                HOPS,
                                SERIES(joined_series),
                                {{0}}},
    [EXPERIMENT_DROPPING_FOUND] = {"Searches that found it: mute nodes, or all drop queries",
                                   "found (%)",
                                   SUCCESS,
                                   SERIES(dropping_series),
                                   {{0}}},
};

#undef SERIES

enum err experiment_crowd_search(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail) {
    const struct sweep *sweep = &sweeps[args->variant];
    enum err err = ERR_OK;
    put_columns(sweep, report);
    for (unsigned percent = 0; percent <= PERCENT_LAST && err == ERR_OK; percent += PERCENT_STEP) {
        err = search_put_row(args, sweep, percent, report, detail);
    }
    return err;
}
