/*
 * group-probe: the bandwidth that probes of different sizes see (Table 1 of the flood-d paper), through TCP's
 * slow start over paths of different round trips and bandwidths. group-damping: how fast an estimate follows
 * a path that suddenly becomes slower.
 *
 * The paths have what the paper's table suggests: the bandwidth that its largest probes saw, and round trips
 * of that time to such a place. Segments of 512 bytes and a first window of one, as in 1995; the same with
 * today's in the columns behind.
 */
#include "protocol/group/estimate.h"
#include "sim/experiments/experiment.h"
#include "sim/experiments/probe_path.h"

enum { PROBES_COUNT = 4, KILOBYTE = 1024, MILLISECOND_US = 1000, SECOND_US = 1000000 };
static const uint32_t probe_sizes[PROBES_COUNT] = {16, 32, 48, 64}; /* KiB */

struct place {
    const char *name;
    uint32_t round_trip_ms;
    uint32_t bandwidth;          /* KiB a second */
    double stated[PROBES_COUNT]; /* KiB a second, Table 1 */
};

static const struct place places[] = {
    {"campus", 3, 520, {455.4, 503.6, 514.3, 457.2}}, {"Pennsylvania", 90, 24, {12.6, 18.3, 18.5, 19.4}},
    {"Colorado", 60, 30, {9.2, 17.3, 27.7, 16.8}},    {"Australia", 350, 2, {1.8, 2.0, 1.4, 1.5}},
    {"Arizona", 40, 14, {7.2, 9.4, 20.0, 8.7}},       {"fibre, far", 90, 12500, {0, 0, 0, 0}},
    {"fibre, near", 10, 125000, {0, 0, 0, 0}},
};

/* 4.3BSD-Reno with 512 bytes a segment, which has no slow start on its own network; Linux. */
static const struct probe_path tcp_then = {
    .segment_size = 512, .window_first = 1, .window_max = 32, .ack_delay_us = 200000};
static const struct probe_path tcp_then_near = {.segment_size = 512, .window_first = 32, .window_max = 32};
static const struct probe_path tcp_now = {.segment_size = 1460, .window_first = 10, .window_max = 1000};

static double probe_see(const struct place *place, unsigned probe, const struct probe_path *tcp) {
    struct probe_path path = *tcp;
    path.round_trip_us = (uint64_t)place->round_trip_ms * MILLISECOND_US;
    path.bandwidth = (uint64_t)place->bandwidth * KILOBYTE;
    uint64_t took_us = probe_path_us(&path, (uint64_t)probe_sizes[probe] * KILOBYTE);
    return (double)probe_sizes[probe] * SECOND_US / (double)(took_us == 0 ? 1 : took_us);
}

enum err experiment_group_probe(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    (void)args;
    (void)detail;
    report_init(report, "Bandwidth that probes see, of what the path has (Table 1)", "percent");
    REPORT_COLUMNS(report, {"path", 0, REPORT_TEXT}, {"ms", 0, REPORT_SHOWN}, {"KB/s", 0, REPORT_SHOWN},
                   {"16 KB", 0, REPORT_Y}, {"32 KB", 0, REPORT_Y}, {"48 KB", 0, REPORT_Y},
                   {"64 KB", 0, REPORT_Y}, {"paper 16", 1, REPORT_SHOWN}, {"paper 32", 1, REPORT_SHOWN},
                   {"paper 64", 1, REPORT_SHOWN}, {"32 KB today", 0, REPORT_SHOWN});
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const struct place *place = &places[i];
        report_text(report, place->name);
        REPORT_NUMBERS(report, place->round_trip_ms, place->bandwidth);
        for (unsigned probe = 0; probe < PROBES_COUNT; probe++) {
            double seen = probe_see(place, probe, i == 0 ? &tcp_then_near : &tcp_then);
            report_number(report, 100 * seen / place->bandwidth);
            digest_u64(&report->digest, (uint64_t)(1000 * seen));
        }
        for (unsigned probe = 0; probe < PROBES_COUNT; probe += probe == 1 ? 2 : 1) {
            report_number(report, place->stated[probe] > 0 ? place->stated[probe] : NAN);
        }
        report_number(report, 100 * probe_see(place, 1, &tcp_now) / place->bandwidth);
    }
    return report->err;
}

/* ---- damping ---- */

enum { DAMPING_PROBES = 40, DAMPING_STEP = 5, BEFORE_KB = 1000, AFTER_KB = 100 };

/* What the first values of the step response should be, by 0.9 old + 0.1 new. */
static double expected_after(unsigned probes) {
    double estimate = BEFORE_KB;
    for (unsigned i = 0; i < probes; i++) {
        estimate = 0.9 * estimate + 0.1 * AFTER_KB;
    }
    return estimate;
}

enum err experiment_group_damping(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail) {
    struct estimate estimate = {0};
    (void)args;
    report_init(report, "An estimate after the path becomes ten times slower", "KB/s");
    REPORT_COLUMNS(report, {"probe", 0, REPORT_X}, {"the path", 0, REPORT_Y}, {"the estimate", 0, REPORT_Y},
                   {"0.9 old + 0.1 new", 0, REPORT_Y_EXPECTED});
    for (unsigned probe = 0; probe < DAMPING_PROBES; probe++) {
        uint64_t bandwidth = (probe < DAMPING_STEP ? BEFORE_KB : AFTER_KB) * (uint64_t)1000;
        uint64_t size = 32 * KILOBYTE;
        if (!estimate_learn_transfer(&estimate, size, size * SECOND_US / bandwidth,
                                     (uint64_t)probe * SECOND_US)) {
            return err_set(detail, ERR_MISMATCH, "a probe of 32 KB was not learned from");
        }
        REPORT_NUMBERS(report, probe, (double)bandwidth / 1000, (double)estimate.bandwidth / 1000,
                       probe < DAMPING_STEP ? BEFORE_KB : expected_after(probe - DAMPING_STEP + 1));
        digest_u64(&report->digest, estimate.bandwidth);
    }
    return report->err;
}
