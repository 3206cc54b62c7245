/*
 * ring-balance: which part of the keys the nodes of small rings own, as their places were chosen: one place a
 * node, several, and several that are chosen so that the parts are even (protocol/ring/balance.c).
 *
 * Nodes join one after the other. Each run is a ring of other addresses, so with other IDs.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/ring_world.h"

enum {
    LIST_SIZE = 16,
    VNODES_COUNT = 8,
    JOIN_S = 20,
    REST_S = 600,
    TRAFFIC_S = 300,
    OVERHEAD_SIZE = 88, /* of IPv4, UDP and encryption, per message */
    WAYS_COUNT = 3,
};

struct way {
    const char *name;
    uint8_t vnodes_count;
    bool is_balanced;
};

static const struct way ways[WAYS_COUNT] = {
    {"one place", 1, false},
    {"eight places", VNODES_COUNT, false},
    {"eight chosen", VNODES_COUNT, true},
};

/* Over all rings of one way and size. */
struct evenness {
    double worst;      /* distance of a node from its part, as a share of that */
    double worst_sum;  /* of the worst node of each ring */
    double within_sum; /* rings in which all are within 15 % */
    double kbps_sum;   /* of a node, while nothing happens */
};

static double balance_share(const struct ring *ring) {
    double share = 0;
    for (uint8_t i = 0; ring != NULL && i < ring_vnodes_count(ring); i++) {
        if (ring_is_member(ring, i)) {
            struct ring_id arc = ring_id_distance(ring_predecessor(ring, i)->id, ring_vnode_at(ring, i)->id);
            share += (double)arc.high / 0x1p64;
        }
    }
    return share;
}

static enum err balance_join(struct ring_world *world, uint32_t first, uint32_t count) {
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < count && err == ERR_OK; i++) {
        uint64_t at_us = i * JOIN_S * SIM_SECOND_US;
        sim_start_at(world->sim, first + i, at_us);
        err = ring_world_join(world, first + i, i == 0 ? UINT32_MAX : first, at_us + 1);
    }
    return err == ERR_OK ? sim_run_until(world->sim, (count * JOIN_S + REST_S) * SIM_SECOND_US) : err;
}

static enum err balance_measure(struct ring_world *world, uint32_t first, uint32_t count,
                                struct evenness *evenness, struct err_detail *detail) {
    double worst = 0;
    double sum = 0;
    for (uint32_t i = first; i < first + count; i++) {
        double share = balance_share(ring_world_ring(world, i));
        double off = share * count > 1 ? share * count - 1 : 1 - share * count;
        worst = off > worst ? off : worst;
        sum += share;
    }
    if (sum < 0.999999 || sum > 1.000001) {
        return err_set(detail, ERR_MISMATCH, "%u nodes own %.6f of the ring", count, sum);
    }
    evenness->worst = worst > evenness->worst ? worst : evenness->worst;
    evenness->worst_sum += worst;
    evenness->within_sum += worst <= 0.15;
    const struct network_traffic *traffic = &sim_network(world->sim)->counters.traffic;
    struct network_traffic before = *traffic;
    enum err err = sim_run_until(world->sim, sim_now_us(world->sim) + TRAFFIC_S * SIM_SECOND_US);
    double size = (double)(traffic->sent_size - before.sent_size) +
                  OVERHEAD_SIZE * (double)(traffic->sent_count - before.sent_count);
    evenness->kbps_sum += size * 8 / 1000 / TRAFFIC_S / count;
    return err;
}

static enum err balance_run(const struct experiment_args *args, const struct way *way, uint32_t count,
                            uint32_t run, struct evenness *evenness, struct report *report,
                            struct err_detail *detail) {
    struct sim_config sim = {
        .seed = args->seed + run,
        .nodes_max = (run + 1) * count,
        .network = {.latency_us = 30000, .jitter_us = 40000},
    };
    struct ring_config config = {
        .list_size = LIST_SIZE,
        .vnodes_count = way->vnodes_count,
        .balance_us = way->is_balanced ? 3600 * SIM_SECOND_US : 0,
        .table_capacity = 512,
        .lookups_max = 2,
    };
    struct ring_world world;
    enum err err = ring_world_init(&world, &sim, &config);
    err = err == ERR_OK ? balance_join(&world, run * count, count) : err;
    err = err == ERR_OK ? balance_measure(&world, run * count, count, evenness, detail) : err;
    sim_digest_into(world.sim, &report->digest);
    ring_world_done(&world);
    return err;
}

enum err experiment_ring_balance(const struct experiment_args *args, struct report *report,
                                 struct err_detail *detail) {
    static const uint32_t sizes[] = {3, 5, 10, 50};
    enum err err = ERR_OK;
    report_init(report, "Which part of the keys a node owns", "worst node, % off its part");
    REPORT_COLUMNS(report, {"nodes", 0, REPORT_X_LOGARITHMIC}, {"places", 0, REPORT_SHOWN},
                   {"chosen", 0, REPORT_SERIES}, {"worst node, mean of the rings (%)", 1, REPORT_Y},
                   {"worst ring (%)", 1, REPORT_SHOWN}, {"rings within 15 % (%)", 1, REPORT_SHOWN},
                   {"kbit/s per node at rest", 2, REPORT_SHOWN});
    unsigned sizes_count = args->nodes > 0 ? 1 : sizeof sizes / sizeof sizes[0];
    for (unsigned w = 0; w < WAYS_COUNT && err == ERR_OK; w++) {
        for (unsigned i = 0; i < sizes_count && err == ERR_OK; i++) {
            struct evenness evenness = {0};
            uint32_t count = args->nodes > 0 ? args->nodes : sizes[i];
            for (uint32_t run = 0; run < args->runs && err == ERR_OK; run++) {
                err = balance_run(args, &ways[w], count, run, &evenness, report, detail);
            }
            double runs = args->runs;
            REPORT_NUMBERS(report, count, ways[w].vnodes_count, w, 100 * evenness.worst_sum / runs,
                           100 * evenness.worst, 100 * evenness.within_sum / runs, evenness.kbps_sum / runs);
        }
    }
    return err != ERR_OK ? err : report->err;
}
