/*
 * ring-churn: nodes that come and go as Gnutella's did (thesis 6.3). ring-rest: what a ring at rest costs, in
 * traffic and in the time of the simulator.
 */
#include "sim/experiment.h"
#include "sim/ring_lookups.h"

enum { FINGERS_COUNT = 20 };

struct churn_sums {
    uint64_t joins_count;
    uint64_t crashes_count;
    double members_share; /* of those up, mean of samples */
};

static double bits_per_s(const struct ring_world *world, uint64_t size_before, uint64_t us, double nodes_up) {
    uint64_t size = sim_network(world->sim)->counters.traffic.sent_size - size_before;
    return (double)size * 8 * 1e6 / (double)us / nodes_up;
}

static enum err settle(struct ring_world *world, uint32_t nodes_count) {
    world->fingers_count = FINGERS_COUNT;
    ring_world_install(world, nodes_count);
    for (uint32_t i = 0; i < nodes_count; i++) {
        sim_start_at(world->sim, i, 0);
    }
    return sim_run_until(world->sim, 10 * SIM_SECOND_US);
}

/* ---- ring-churn ---- */

/* One node comes or goes; a lookup at a random member. */
static enum err change(struct ring_lookups *lookups, struct prng *prng, struct churn_sums *sums) {
    struct ring_world *world = lookups->world;
    struct sim *sim = world->sim;
    uint32_t node = (uint32_t)prng_below(prng, world->nodes_count);
    enum err err = ERR_OK;
    if (sim_status(sim, node) == SIM_UP) {
        sim_crash(sim, node);
        sums->crashes_count++;
    } else {
        sim_start_at(sim, node, sim_now_us(sim));
        err = ring_world_join_members(world, node, sim_now_us(sim) + 1);
        sums->joins_count++;
    }
    ring_world_list_members(world);
    uint32_t up_count = 0;
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        up_count += sim_status(sim, i) == SIM_UP;
    }
    sums->members_share += (double)world->members_count / up_count;
    if (err == ERR_OK && lookups->asked_count < lookups->asked_max) {
        uint32_t asker = world->members[prng_below(prng, world->members_count)];
        err = ring_lookups_ask(lookups, asker, prng, sim_now_us(sim));
    }
    return err;
}

/* Sessions and absences are exponential with equal means: half of all nodes are up at any time. */
static enum err churn(struct ring_lookups *lookups, uint64_t session_us, uint64_t for_us,
                      struct churn_sums *sums) {
    struct sim *sim = lookups->world->sim;
    struct prng prng;
    prng_init_stream(&prng, sim_seed(sim), 17);
    uint64_t mean_us = session_us / lookups->world->nodes_count; /* between two changes, of all together */
    uint64_t end_us = sim_now_us(sim) + for_us;
    while (sim_now_us(sim) < end_us) {
        enum err err = sim_run_until(sim, sim_now_us(sim) + prng_exponential(&prng, mean_us));
        err = err != ERR_OK ? err : change(lookups, &prng, sums);
        if (err != ERR_OK) {
            return err;
        }
    }
    sums->members_share /= (double)(sums->joins_count + sums->crashes_count);
    return sim_run_until(sim, sim_now_us(sim) + 30 * SIM_SECOND_US);
}

static enum err churn_row(const struct experiment_args *args, uint32_t session_minutes,
                          struct report *report) {
    enum { LOOKUPS_MAX = 100000 };
    uint32_t nodes_count = args->nodes == 0 ? 500 : args->nodes;
    struct sim_config sim = {
        .seed = args->seed,
        .nodes_max = nodes_count,
        .network = {.latency_us = 30000, .jitter_us = 40000, .loss_ppm = 5000},
    };
    struct ring_config config = {.list_size = 8, .table_capacity = 128, .lookups_max = 8};
    struct ring_world world;
    struct ring_lookups lookups = {0};
    struct churn_sums sums = {0};
    enum err err = ring_world_init(&world, &sim, &config);
    err = err != ERR_OK ? err : ring_lookups_init(&lookups, &world, LOOKUPS_MAX);
    err = err != ERR_OK ? err : settle(&world, nodes_count / 2);
    if (err == ERR_OK) {
        lookups.is_ring_changing = true;
        uint64_t before = sim_network(world.sim)->counters.traffic.sent_size;
        uint64_t for_us = 1200 * SIM_SECOND_US;
        err = churn(&lookups, session_minutes * 60 * SIM_SECOND_US, for_us, &sums);
        double bits = bits_per_s(&world, before, for_us, nodes_count / 2.0);
        double asked = lookups.asked_count;
        report_number(report, session_minutes);
        report_number(report, (double)sums.joins_count);
        report_number(report, (double)sums.crashes_count);
        report_number(report, 100 * sums.members_share);
        report_number(report, asked);
        report_number(report, 100 * (double)lookups.wrong_count / asked);
        report_number(report, 100 * (double)lookups.stale_count / asked);
        report_number(report, 100 * (asked - (double)lookups.found_count) / asked);
        report_number(report, ring_lookups_mean_hops(&lookups));
        report_number(report, bits / 1000);
        struct digest digest = sim_digest(world.sim);
        digest_u64(&report->digest, digest.lanes[0]);
        digest_u64(&report->digest, digest.lanes[1]);
    }
    ring_lookups_done(&lookups);
    ring_world_done(&world);
    return err;
}

enum err experiment_ring_churn(const struct experiment_args *args, struct report *report,
                               struct err_detail *detail) {
    static const uint32_t minutes[] = {15, 30, 60, 120};
    report_init(report, "A ring whose nodes come and go", "%");
    report_column(report, "session (min)", 0, REPORT_X);
    report_column(report, "joins", 0, REPORT_SHOWN);
    report_column(report, "crashes", 0, REPORT_SHOWN);
    report_column(report, "members (%)", 2, REPORT_SHOWN);
    report_column(report, "lookups", 0, REPORT_SHOWN);
    report_column(report, "wrong (%)", 2, REPORT_Y);
    report_column(report, "stale (%)", 2, REPORT_Y);
    report_column(report, "lost (%)", 2, REPORT_Y);
    report_column(report, "hops", 2, REPORT_SHOWN);
    report_column(report, "kbit/s per node", 2, REPORT_SHOWN);
    for (unsigned i = 0; i < sizeof minutes / sizeof minutes[0]; i++) {
        enum err err = churn_row(args, minutes[i], report);
        if (err != ERR_OK) {
            return err_set(detail, err, "seed %llu: %s", (unsigned long long)args->seed, err_text(err));
        }
    }
    return report->err;
}

/* ---- ring-rest ---- */

enum err experiment_ring_rest(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail) {
    enum { OVERHEAD_SIZE = 88 }; /* of IPv4, UDP and encryption, per message */
    report_init(report, "A ring at rest", "kbit/s");
    report_column(report, "nodes", 0, REPORT_SHOWN);
    report_column(report, "minutes", 0, REPORT_SHOWN);
    report_column(report, "messages per node and minute", 1, REPORT_SHOWN);
    report_column(report, "kbit/s per node", 3, REPORT_SHOWN);
    report_column(report, "with overhead", 3, REPORT_SHOWN);
    report_column(report, "target", 1, REPORT_SHOWN);
    uint32_t nodes_count = args->nodes == 0 ? 2000 : args->nodes;
    uint32_t minutes = args->runs == 0 ? 10 : args->runs;
    struct sim_config sim = {
        .seed = args->seed,
        .nodes_max = nodes_count,
        .network = {.latency_us = 30000, .jitter_us = 40000},
    };
    struct ring_config config = {.list_size = 8, .table_capacity = 64, .lookups_max = 2};
    struct ring_world world;
    enum err err = ring_world_init(&world, &sim, &config);
    err = err != ERR_OK ? err : settle(&world, nodes_count);
    uint64_t for_us = minutes * 60 * SIM_SECOND_US;
    if (err == ERR_OK) {
        const struct network_traffic *traffic = &sim_network(world.sim)->counters.traffic;
        struct network_traffic before = *traffic;
        err = sim_run_until(world.sim, sim_now_us(world.sim) + for_us);
        uint64_t count = traffic->sent_count - before.sent_count;
        double overhead = (double)count * OVERHEAD_SIZE * 8 * 1e6 / (double)for_us / nodes_count;
        double bits = bits_per_s(&world, before.sent_size, for_us, nodes_count);
        uint32_t node;
        const char *reason = ring_world_check_ideal(&world, &node);
        if (err == ERR_OK && reason != NULL) {
            err = err_set(detail, ERR_MISMATCH, "node %u: %s", node, reason);
        }
        report_number(report, nodes_count);
        report_number(report, minutes);
        report_number(report, (double)count / nodes_count / minutes);
        report_number(report, bits / 1000);
        report_number(report, (bits + overhead) / 1000);
        report_number(report, 1);
        struct digest digest = sim_digest(world.sim);
        digest_u64(&report->digest, digest.lanes[0]);
        digest_u64(&report->digest, digest.lanes[1]);
    }
    ring_world_done(&world);
    return err != ERR_OK ? err : report->err;
}
