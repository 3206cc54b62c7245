/*
 * group-traffic, group-traffic-rejoin, group-traffic-sums: what a group's measuring and flooding costs.
 * Figures 2 and 3 of the flood-d paper: 5, 10 and 20 replicas join one by one, 20 hours, measured every 15
 * minutes, with the paper's periods; in Figure 3 a replica leaves and re-joins every hour.
 *
 * Bytes are those of datagrams with IP, UDP and encryption, and of probes with TCP and its acknowledgements.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/group_world.h"

enum {
    SIZES_COUNT = 3,
    HOURS = 20,
    QUARTERS_COUNT = HOURS * 4,
    FAST_QUARTERS = 6, /* the first 90 minutes */
    JOIN_EVERY_S = 30, /* one by one */
    AWAY_QUARTERS = 1, /* until a member that left comes back; it leaves silently, as the paper has it */
    LATENCY_US = 1000, /* the paper's replicas were in one laboratory */
    PROBE_BANDWIDTH = 1000000, /* bytes a second: its Ethernet */
};
static const uint32_t sizes[SIZES_COUNT] = {5, 10, 20};
static const uint64_t QUARTER_US = UINT64_C(15) * 60 * 1000000;
static const double MEGABYTE = 1e6;

struct trace {
    struct group_world_traffic quarters[QUARTERS_COUNT];
};

/* The replica that leaves in this hour; never the master. */
static uint32_t leaver_of(uint32_t hour, uint32_t count) {
    return 1 + hour % (count - 1);
}

static enum err change_membership(struct group_world *world, uint32_t quarter) {
    uint32_t hour = quarter / 4;
    if (quarter < 8) {
        return ERR_OK; /* all join first */
    }
    uint32_t node = leaver_of(hour, world->nodes_count);
    if (quarter % 4 == 0) {
        sim_wipe(world->sim, node);
        return ERR_OK;
    }
    return quarter % 4 == AWAY_QUARTERS ? group_world_join(world, node, 0) : ERR_OK;
}

static enum err run_quarter(struct group_world *world, uint32_t quarter, bool rejoins) {
    uint64_t end_us = (quarter + 1) * QUARTER_US;
    enum err err = rejoins ? change_membership(world, quarter) : ERR_OK;
    for (uint32_t node = 1; quarter == 0 && node < world->nodes_count && err == ERR_OK; node++) {
        err = sim_run_until(world->sim, node * JOIN_EVERY_S * SIM_SECOND_US);
        err = err != ERR_OK ? err : group_world_join(world, node, node - 1);
    }
    err = err != ERR_OK ? err : sim_run_until(world->sim, end_us);
    return err != ERR_OK ? err : world->err;
}

static enum err traffic_run(const struct experiment_args *args, uint32_t count, bool rejoins,
                            struct report *report, struct trace *trace) {
    struct sim_config sim = {
        .seed = args->seed + count, .nodes_max = count, .network = {.latency_us = LATENCY_US}};
    struct group_config config = {.is_open = true};
    struct group_world world;
    struct group_world_traffic before = {0};
    enum err err = group_world_init(&world, &sim, &config);
    world.bandwidth = PROBE_BANDWIDTH;
    err = err != ERR_OK ? err : group_world_found(&world);
    for (uint32_t quarter = 0; quarter < QUARTERS_COUNT && err == ERR_OK; quarter++) {
        err = run_quarter(&world, quarter, rejoins);
        struct group_world_traffic now = group_world_traffic(&world);
        trace->quarters[quarter].size = now.size - before.size;
        trace->quarters[quarter].packets_count = now.packets_count - before.packets_count;
        before = now;
    }
    if (err == ERR_OK && !group_world_is_settled(&world, -1)) {
        err = ERR_MISMATCH;
    }
    sim_digest_into(world.sim, &report->digest);
    group_world_done(&world);
    return err;
}

static enum err traffic_run_all(const struct experiment_args *args, bool rejoins, struct report *report,
                                struct trace traces[SIZES_COUNT], struct err_detail *detail) {
    for (unsigned i = 0; i < SIZES_COUNT; i++) {
        enum err err = traffic_run(args, sizes[i], rejoins, report, &traces[i]);
        if (err != ERR_OK) {
            return err_set(detail, err, "%u replicas, seed %llu: %s", sizes[i],
                           (unsigned long long)args->seed, err_text(err));
        }
    }
    return ERR_OK;
}

static enum err show_trace(const struct experiment_args *args, struct report *report,
                           struct err_detail *detail) {
    struct trace traces[SIZES_COUNT] = {0};
    bool rejoins = args->variant == EXPERIMENT_TRAFFIC_REJOIN;
    report_init(report,
                rejoins ? "Traffic of a group of which one leaves and re-joins every hour (Figure 3)"
                        : "Traffic of a group, by 15 minutes (Figure 2)",
                "MB");
    REPORT_COLUMNS(report, {"hour", 2, REPORT_X}, {"5 replicas", 3, REPORT_Y}, {"10 replicas", 3, REPORT_Y},
                   {"20 replicas", 3, REPORT_Y}, {"packets, 5", 0, REPORT_SHOWN},
                   {"packets, 10", 0, REPORT_SHOWN}, {"packets, 20", 0, REPORT_SHOWN});
    enum err err = traffic_run_all(args, rejoins, report, traces, detail);
    for (uint32_t quarter = 0; quarter < QUARTERS_COUNT && err == ERR_OK; quarter++) {
        report_number(report, (quarter + 1) / 4.0);
        for (unsigned i = 0; i < SIZES_COUNT; i++) {
            report_number(report, (double)traces[i].quarters[quarter].size / MEGABYTE);
        }
        for (unsigned i = 0; i < SIZES_COUNT; i++) {
            report_number(report, (double)traces[i].quarters[quarter].packets_count);
        }
    }
    return err != ERR_OK ? err : report->err;
}

static double sum_megabytes(const struct trace *trace, uint32_t from, uint32_t to) {
    double sum = 0;
    for (uint32_t quarter = from; quarter < to; quarter++) {
        sum += (double)trace->quarters[quarter].size;
    }
    return sum / MEGABYTE;
}

static double later_megabytes(const struct trace *trace) {
    return sum_megabytes(trace, FAST_QUARTERS, QUARTERS_COUNT) * FAST_QUARTERS /
           (QUARTERS_COUNT - FAST_QUARTERS);
}

static enum err show_sums(const struct experiment_args *args, struct report *report,
                          struct err_detail *detail) {
    struct trace traces[SIZES_COUNT] = {0};
    struct trace rejoins[SIZES_COUNT] = {0};
    report_init(report, "Traffic of a group in 90 minutes", "MB");
    REPORT_COLUMNS(report, {"replicas", 0, REPORT_X}, {"the first 90 minutes", 2, REPORT_Y},
                   {"the paper", 1, REPORT_Y_EXPECTED}, {"later", 2, REPORT_Y},
                   {"the paper, later", 1, REPORT_Y_EXPECTED}, {"later, re-joining", 2, REPORT_Y});
    enum err err = traffic_run_all(args, false, report, traces, detail);
    err = err != ERR_OK ? err : traffic_run_all(args, true, report, rejoins, detail);
    for (unsigned i = 0; i < SIZES_COUNT && err == ERR_OK; i++) {
        bool is_stated = sizes[i] == 20; /* the text gives no numbers for the others */
        REPORT_NUMBERS(report, sizes[i], sum_megabytes(&traces[i], 0, FAST_QUARTERS), is_stated ? 6 : NAN,
                       later_megabytes(&traces[i]), is_stated ? 1 : NAN, later_megabytes(&rejoins[i]));
    }
    return err != ERR_OK ? err : report->err;
}

enum err experiment_group_traffic(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail) {
    return (args->variant == EXPERIMENT_TRAFFIC_SUMS ? show_sums : show_trace)(args, report, detail);
}
