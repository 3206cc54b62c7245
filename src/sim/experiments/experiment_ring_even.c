/*
 * ring-even: which part of the keys the nodes of a ring own, and how soon they have it: with one place each
 * as its address gives it, and with places that they choose (protocol/ring/even.c), for nodes that come one
 * after the other, that are started together, and that are started together on a bad network.
 *
 * Each run is a ring of other addresses, so with other IDs.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/ring_world.h"

enum {
    REST_S = 600,
    TRAFFIC_S = 300,
    LOOK_US = 500000,
    OVERHEAD_SIZE = 88, /* of IPv4, UDP and encryption, per message */
};

struct even_way {
    bool is_even;
    uint8_t list_size;
    uint64_t between_us; /* from one start to the next; 0: all within a second */
    uint32_t jitter_us;
    uint32_t loss_ppm;
};

static const struct even_way even_ways[] = {
    {false, 8, 0, 40000, 0},
    {true, 16, 200000000, 40000, 0},
    {true, 16, 0, 40000, 0},
    {true, 16, 0, 400000, 50000},
};

/* Over all rings of one way and size. */
struct evenness {
    double worst;      /* distance of a node from its part, as a share of that */
    double worst_sum;  /* of the worst node of each ring */
    double within_sum; /* rings in which all are within 15 % */
    double settled_s;  /* after the last start, of the slowest ring */
    double kbps_sum;   /* of a node, while nothing happens */
    double messages_sum;
};

static double even_share(const struct ring *ring) {
    double share = 0;
    for (uint8_t i = 0; ring != NULL && i < ring_vnodes_count(ring); i++) {
        if (ring_is_member(ring, i)) {
            struct ring_id arc = ring_id_distance(ring_predecessor(ring, i)->id, ring_vnode_at(ring, i)->id);
            share += (double)arc.high / 0x1p64;
        }
    }
    return share;
}

/* Starts them. *ret_last_us: the last one. */
static enum err even_join(struct ring_world *world, const struct even_way *way, uint32_t first,
                          uint32_t count, uint64_t *ret_last_us) {
    enum err err = ERR_OK;
    *ret_last_us = 0;
    for (uint32_t i = 0; i < count && err == ERR_OK; i++) {
        uint64_t at_us = way->between_us > 0 ? i * way->between_us
                         : i == 0            ? 0
                                             : SIM_SECOND_US + prng_below(&world->prng, SIM_SECOND_US);
        sim_start_at(world->sim, first + i, at_us);
        err = ring_world_join(world, first + i, i == 0 ? UINT32_MAX : first, at_us + 1);
        *ret_last_us = at_us > *ret_last_us ? at_us : *ret_last_us;
    }
    return err == ERR_OK ? sim_run_until(world->sim, *ret_last_us) : err;
}

/* Runs for REST_S, and says when a part changed last. */
static enum err even_settle(struct ring_world *world, uint32_t first, uint32_t count, uint64_t last_us,
                            double *settled_s) {
    double squares = -1;
    enum err err = ERR_OK;
    for (uint64_t at_us = last_us; at_us < last_us + REST_S * SIM_SECOND_US && err == ERR_OK;
         at_us += LOOK_US) {
        err = sim_run_until(world->sim, at_us);
        double now = 0;
        for (uint32_t i = first; i < first + count; i++) {
            double share = even_share(ring_world_ring(world, i));
            now += share * share;
        }
        double after_s = (double)(at_us - last_us) / (double)SIM_SECOND_US;
        *settled_s = now != squares && after_s > *settled_s ? after_s : *settled_s;
        squares = now;
    }
    return err;
}

static enum err even_measure(struct ring_world *world, uint32_t first, uint32_t count,
                             struct evenness *evenness, struct err_detail *detail) {
    double worst = 0;
    double sum = 0;
    for (uint32_t i = first; i < first + count; i++) {
        double share = even_share(ring_world_ring(world, i));
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
    double messages = (double)(traffic->sent_count - before.sent_count);
    double size = (double)(traffic->sent_size - before.sent_size) + OVERHEAD_SIZE * messages;
    evenness->kbps_sum += size * 8 / 1000 / TRAFFIC_S / count;
    evenness->messages_sum += messages / TRAFFIC_S / count;
    return err;
}

static enum err even_run(const struct experiment_args *args, const struct even_way *way, uint32_t count,
                         uint32_t run, struct evenness *evenness, struct report *report,
                         struct err_detail *detail) {
    struct sim_config sim = {
        .seed = args->seed + run,
        .nodes_max = (run + 1) * count,
        .network = {.latency_us = 30000, .jitter_us = way->jitter_us, .loss_ppm = way->loss_ppm},
    };
    struct ring_config config = {
        .list_size = way->list_size,
        .is_even = way->is_even,
        .table_capacity = 512,
        .lookups_max = 2,
    };
    struct ring_world world;
    uint64_t last_us = 0;
    enum err err = ring_world_init(&world, &sim, &config);
    err = err == ERR_OK ? even_join(&world, way, run * count, count, &last_us) : err;
    err = err == ERR_OK ? even_settle(&world, run * count, count, last_us, &evenness->settled_s) : err;
    err = err == ERR_OK ? even_measure(&world, run * count, count, evenness, detail) : err;
    sim_digest_into(world.sim, &report->digest);
    ring_world_done(&world);
    return err;
}

enum err experiment_ring_even(const struct experiment_args *args, struct report *report,
                              struct err_detail *detail) {
    static const uint32_t sizes[] = {3, 5, 8, 12, 16, 24};
    enum err err = ERR_OK;
    report_init(report, "Which part of the keys a node owns", "worst node, % off its part");
    REPORT_COLUMNS(report, {"nodes", 0, REPORT_X_LOGARITHMIC}, {"way", 0, REPORT_SERIES},
                   {"worst node, mean of the rings (%)", 1, REPORT_Y}, {"worst ring (%)", 1, REPORT_SHOWN},
                   {"rings within 15 % (%)", 1, REPORT_SHOWN}, {"seconds, slowest ring", 1, REPORT_SHOWN},
                   {"messages/s per node at rest", 2, REPORT_SHOWN},
                   {"kbit/s per node at rest", 2, REPORT_SHOWN});
    unsigned sizes_count = args->nodes > 0 ? 1 : sizeof sizes / sizeof sizes[0];
    for (unsigned w = 0; w < sizeof even_ways / sizeof even_ways[0] && err == ERR_OK; w++) {
        for (unsigned i = 0; i < sizes_count && err == ERR_OK; i++) {
            struct evenness evenness = {0};
            uint32_t count = args->nodes > 0 ? args->nodes : sizes[i];
            for (uint32_t run = 0; run < args->runs && err == ERR_OK; run++) {
                err = even_run(args, &even_ways[w], count, run, &evenness, report, detail);
            }
            double runs = args->runs;
            REPORT_NUMBERS(report, count, w, 100 * evenness.worst_sum / runs, 100 * evenness.worst,
                           100 * evenness.within_sum / runs, evenness.settled_s, evenness.messages_sum / runs,
                           evenness.kbps_sum / runs);
        }
    }
    return err != ERR_OK ? err : report->err;
}
