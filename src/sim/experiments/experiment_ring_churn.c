/*
 * ring-churn: nodes that come and go as Gnutella's did (sessions.h).
 *
 * Absences are drawn like sessions, so that half of all nodes are up. Nobody says goodbye: every end is a
 * crash. Whoever comes back has the place it had.
 */
#include <stdlib.h>

#include "sim/experiments/experiment.h"
#include "sim/experiments/ring_lookups.h"
#include "sim/experiments/sessions.h"

enum {
    FINGERS_COUNT = 20,
    REST_MINUTES_MAX = 20,
    LOOKUPS_PER_MINUTE = 120, /* of all nodes together */
    GNUTELLA_MEDIAN_MINUTES = 60,
};
static const uint64_t MINUTE_US = 60 * UINT64_C(1000000);

struct churn_node {
    uint64_t change_at_us; /* when it comes or goes next, from the beginning of the churn */
    bool is_up;
};

struct churn {
    struct ring_world world;
    struct ring_lookups lookups;
    struct churn_node *nodes; /* those that are up at first come first */
    uint32_t nodes_count;
    uint32_t up_first_count;
    uint32_t gone_count; /* of these, within ten hours; a property of what was drawn */
    uint64_t median_us;
    uint64_t joins_count;
    uint64_t crashes_count;
    double node_seconds; /* up */
    struct prng prng;
};

/* ---- sessions ---- */

/* Begun long ago, so that those that are up are what one finds at any moment: mostly long sessions. */
static struct churn_node draw_node(struct churn *churn) {
    uint64_t now_us = 100 * churn->median_us;
    struct churn_node node = {.is_up = prng_below(&churn->prng, 2) == 0,
                              .change_at_us = sessions_draw_us(&churn->prng, churn->median_us)};
    while (node.change_at_us <= now_us) {
        node.change_at_us += sessions_draw_us(&churn->prng, churn->median_us);
        node.is_up = !node.is_up;
    }
    node.change_at_us -= now_us;
    return node;
}

static void draw_nodes(struct churn *churn) {
    uint32_t down_count = 0;
    for (uint32_t i = 0; i < churn->nodes_count; i++) {
        struct churn_node node = draw_node(churn);
        churn->nodes[node.is_up ? churn->up_first_count++ : churn->nodes_count - ++down_count] = node;
        churn->gone_count += node.is_up && node.change_at_us <= 600 * MINUTE_US;
    }
}

/* ---- the ring meanwhile ---- */

static enum err churn_change(struct churn *churn, uint32_t index) {
    struct sim *sim = churn->world.sim;
    struct churn_node *node = &churn->nodes[index];
    node->change_at_us += sessions_draw_us(&churn->prng, churn->median_us);
    node->is_up = !node->is_up;
    if (!node->is_up) {
        sim_crash(sim, index);
        churn->crashes_count++;
        return ERR_OK;
    }
    sim_start_at(sim, index, sim_now_us(sim));
    churn->joins_count++;
    return ring_world_join_members(&churn->world, index, sim_now_us(sim) + 1);
}

static enum err churn_ask(struct churn *churn) {
    struct ring_world *world = &churn->world;
    ring_world_list_members(world);
    if (world->members_count == 0) {
        return ERR_OK;
    }
    uint32_t asker = world->members[prng_below(&churn->prng, world->members_count)];
    return ring_lookups_ask(&churn->lookups, asker, &churn->prng, sim_now_us(world->sim));
}

static uint32_t next_to_change(const struct churn *churn) {
    uint32_t next = 0;
    for (uint32_t i = 1; i < churn->nodes_count; i++) {
        next = churn->nodes[i].change_at_us < churn->nodes[next].change_at_us ? i : next;
    }
    return next;
}

/* Lookups at an even pace; with_changes: nodes come and go meanwhile. */
static enum err churn_pass(struct churn *churn, uint32_t minutes, bool with_changes) {
    struct sim *sim = churn->world.sim;
    uint64_t start_us = sim_now_us(sim);
    uint32_t up_count = churn->up_first_count;
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < minutes * LOOKUPS_PER_MINUTE && err == ERR_OK; i++) {
        uint64_t ask_at_us = start_us + (i + 1) * MINUTE_US / LOOKUPS_PER_MINUTE;
        uint32_t next = next_to_change(churn);
        while (with_changes && err == ERR_OK && start_us + churn->nodes[next].change_at_us <= ask_at_us) {
            err = sim_run_until(sim, start_us + churn->nodes[next].change_at_us);
            err = err != ERR_OK ? err : churn_change(churn, next);
            up_count += churn->nodes[next].is_up ? 1 : UINT32_MAX;
            next = next_to_change(churn);
        }
        churn->node_seconds += up_count * 60.0 / LOOKUPS_PER_MINUTE;
        err = err != ERR_OK ? err : sim_run_until(sim, ask_at_us);
        err = err != ERR_OK ? err : churn_ask(churn);
    }
    return err;
}

/* The same, measured in kbit/s per node that is up. */
static enum err measure(struct churn *churn, uint32_t minutes, bool with_changes, double *ret_kbit_per_s) {
    const struct network_traffic *traffic = &sim_network(churn->world.sim)->counters.traffic;
    uint64_t size_before = traffic->sent_size;
    churn->node_seconds = 0;
    enum err err = churn_pass(churn, minutes, with_changes);
    *ret_kbit_per_s = (double)(traffic->sent_size - size_before) * 8 / 1000 / churn->node_seconds;
    return err;
}

/* ---- a row ---- */

static void churn_write_row(const struct churn *churn, uint32_t median_minutes, uint32_t minutes, double rest,
                            double busy, struct report *report) {
    const struct ring_lookups *lookups = &churn->lookups;
    double asked = lookups->asked_count;
    uint64_t orphans = ring_lookups_count_orphans(lookups);
    uint64_t right = lookups->found_count - lookups->wrong_count - lookups->stale_count;
    REPORT_NUMBERS(report, median_minutes, 100.0 * churn->gone_count / churn->up_first_count,
                   median_minutes == GNUTELLA_MEDIAN_MINUTES ? 93 : NAN, churn->node_seconds / 60 / minutes,
                   (double)churn->joins_count, (double)churn->crashes_count, asked,
                   100 * (double)right / asked, (double)lookups->wrong_count, (double)lookups->stale_count,
                   asked - (double)lookups->found_count - (double)orphans, (double)orphans,
                   ring_lookups_mean_hops(lookups), rest, busy, busy - rest, 1);
}

static enum err churn_run(struct churn *churn, uint32_t median_minutes, uint32_t minutes,
                          struct report *report) {
    struct ring_lookups *lookups = &churn->lookups;
    uint32_t rest_minutes = minutes < REST_MINUTES_MAX ? minutes : REST_MINUTES_MAX;
    double rest = 0;
    double busy = 0;
    draw_nodes(churn);
    churn->world.fingers_count = FINGERS_COUNT;
    ring_world_install(&churn->world, churn->up_first_count);
    enum err err = sim_run_until(churn->world.sim, 10 * SIM_SECOND_US);
    err = err != ERR_OK
              ? err
              : churn_pass(churn, rest_minutes, false); /* first questions are longer: no tokens yet */
    err = err != ERR_OK ? err : measure(churn, rest_minutes, false, &rest);
    uint32_t asked_at_rest = lookups->asked_count;
    err = err != ERR_OK ? err : sim_run_until(churn->world.sim, sim_now_us(churn->world.sim) + MINUTE_US);
    if (err == ERR_OK && lookups->wrong_count + (asked_at_rest - lookups->found_count) > 0) {
        return ERR_MISMATCH;
    }
    ring_lookups_restart(lookups);
    lookups->is_ring_changing = true;
    err = err != ERR_OK ? err : measure(churn, minutes, true, &busy);
    err = err != ERR_OK ? err : sim_run_until(churn->world.sim, sim_now_us(churn->world.sim) + MINUTE_US);
    churn_write_row(churn, median_minutes, minutes, rest, busy, report);
    return err;
}

static enum err churn_row(const struct experiment_args *args, uint32_t median_minutes,
                          struct report *report) {
    uint32_t minutes = args->runs;
    struct churn churn = {
        .nodes_count = args->nodes,
        .median_us = median_minutes * MINUTE_US,
    };
    struct sim_config sim = {
        .seed = args->seed,
        .nodes_max = churn.nodes_count,
        .network = {.latency_us = 30000, .jitter_us = 40000, .loss_ppm = 5000},
    };
    struct ring_config config = {.list_size = 8, .table_capacity = 128, .lookups_max = 8};
    prng_init_stream(&churn.prng, args->seed, 17);
    enum err err = ring_world_init(&churn.world, &sim, &config);
    churn.nodes = calloc(churn.nodes_count, sizeof *churn.nodes);
    err = err == ERR_OK && churn.nodes == NULL ? ERR_MEMORY : err;
    uint32_t asked_max = (minutes + 2 * REST_MINUTES_MAX) * LOOKUPS_PER_MINUTE;
    err = err != ERR_OK ? err : ring_lookups_init(&churn.lookups, &churn.world, asked_max);
    err = err != ERR_OK ? err : churn_run(&churn, median_minutes, minutes, report);
    sim_digest_into(churn.world.sim, &report->digest);
    ring_lookups_done(&churn.lookups);
    free(churn.nodes);
    ring_world_done(&churn.world);
    return err;
}

enum err experiment_ring_churn(const struct experiment_args *args, struct report *report,
                               struct err_detail *detail) {
    static const uint32_t medians[] = {15, 30, GNUTELLA_MEDIAN_MINUTES, 120};
    report_init(report, "A ring whose nodes come and go", "kbit/s per node");
    REPORT_COLUMNS(report, {"median session (min)", 0, REPORT_X}, {"gone in 10 h (%)", 1, REPORT_SHOWN},
                   {"thesis", 0, REPORT_SHOWN}, {"nodes up", 0, REPORT_SHOWN}, {"joins", 0, REPORT_SHOWN},
                   {"crashes", 0, REPORT_SHOWN}, {"lookups", 0, REPORT_SHOWN}, {"right (%)", 3, REPORT_SHOWN},
                   {"wrong", 0, REPORT_SHOWN}, {"stale", 0, REPORT_SHOWN}, {"failed", 0, REPORT_SHOWN},
                   {"asker gone", 0, REPORT_SHOWN}, {"hops", 2, REPORT_SHOWN}, {"at rest", 3, REPORT_Y},
                   {"all", 3, REPORT_Y}, {"repair", 3, REPORT_Y}, {"target at rest", 0, REPORT_Y_EXPECTED});
    enum err err = ERR_OK;
    (void)detail;
    for (unsigned i = 0; i < sizeof medians / sizeof medians[0] && err == ERR_OK; i++) {
        err = churn_row(args, medians[i], report);
    }
    return err != ERR_OK ? err : report->err;
}
