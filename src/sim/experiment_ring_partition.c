/*
 * ring-partition: what a ring goes through, and whether it is one ideal ring again afterwards: cuts that
 * heal, one-way links, clogged and slow nodes, and liars who answer with wrong successors, forged and
 * replayed messages.
 *
 * Safety: the lookups at honest nodes after healing are right, and no honest node is led to contact an
 * address that is no node's. Convergence: within a bounded time after the end of the trouble.
 */
#include "sim/experiment.h"
#include "sim/ring_lookups.h"

enum { FINGERS_COUNT = 12, LOOKUPS_COUNT = 200 };
static const uint64_t TROUBLE_US = 180 * UINT64_C(1000000);
static const uint64_t HEALED_US = 1800 * UINT64_C(1000000);

enum trouble {
    TROUBLE_CUT,
    TROUBLE_THREE,
    TROUBLE_ONE_WAY,
    TROUBLE_CLOG,
    TROUBLE_SLOW,
    TROUBLE_DAMAGE,
    TROUBLE_LIARS,
    TROUBLES_COUNT
};

static const char *const trouble_names[TROUBLES_COUNT] = {
    "cut in halves", "cut in three",   "one-way links", "clogged nodes",
    "slow nodes",    "damage, replay", "liars",
};

struct partition_sums {
    uint64_t healed_us;
    uint64_t blamed_count;
    uint64_t unasked_count;
    double right; /* share of lookups during the trouble whose answer is right for all, healthy or cut off */
};

/* ---- trouble ---- */

static void cut(struct network *network, uint32_t nodes_count, unsigned groups_count, bool both_ways) {
    for (uint32_t i = 0; i < nodes_count; i++) {
        network->nodes[i].group = (uint8_t)(i % groups_count);
    }
    for (unsigned a = 0; a < groups_count; a++) {
        for (unsigned b = 0; b < groups_count; b++) {
            if (a < b || (both_ways && a != b)) {
                network_block(network, a, b);
            }
        }
    }
}

/*
 * Damage: one message in eight has flipped bits, which makes it a forged one with a wrong address or number,
 * and as many arrive twice, up to 20 s later. Liars: every eighth node names random members as its
 * successors.
 */
static void begin(struct ring_world *world, enum trouble trouble) {
    struct network *network = sim_network(world->sim);
    uint32_t count = world->nodes_count;
    switch (trouble) {
    case TROUBLE_CUT:
        cut(network, count, 2, true);
        break;
    case TROUBLE_THREE:
        cut(network, count, 3, true);
        break;
    case TROUBLE_ONE_WAY:
        cut(network, count, 2, false);
        break;
    case TROUBLE_CLOG:
        for (uint32_t i = 0; i < count; i += 4) {
            network->nodes[i].clogged_until_us = sim_now_us(world->sim) + TROUBLE_US;
        }
        break;
    case TROUBLE_SLOW:
        for (uint32_t i = 0; i < count; i += 4) {
            network->nodes[i].access_us = 900000;
        }
        break;
    case TROUBLE_LIARS:
        world->liars_share = 8;
        break;
    case TROUBLE_DAMAGE:
        network->dials.corrupt_ppm = 125000;
        network->dials.duplicate_ppm = 125000; /* replayed … */
        network->dials.reorder_ppm = 125000;   /* … much later */
        network->dials.reorder_us = 20000000;
        break;
    case TROUBLES_COUNT:
        break;
    }
}

static void end(struct ring_world *world, struct network_dials dials) {
    struct network *network = sim_network(world->sim);
    world->liars_share = 0;
    network_heal(network);
    network->dials = dials;
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        network->nodes[i].access_us = 0;
        network->nodes[i].group = 0;
    }
}

/* ---- a run ---- */

static enum err heal(struct ring_world *world, struct partition_sums *sums, struct err_detail *detail) {
    uint64_t start_us = sim_now_us(world->sim);
    for (;;) {
        uint32_t node;
        const char *reason = ring_world_check_ideal(world, &node);
        uint64_t took_us = sim_now_us(world->sim) - start_us;
        if (reason == NULL) {
            sums->healed_us += took_us;
            return ERR_OK;
        }
        if (took_us > HEALED_US) {
            return err_set(detail, ERR_MISMATCH, "seed %llu: node %u: %s",
                           (unsigned long long)sim_seed(world->sim), node, reason);
        }
        enum err err = sim_run_until(world->sim, sim_now_us(world->sim) + SIM_SECOND_US);
        if (err != ERR_OK) {
            return err;
        }
    }
}

static enum err ask(struct ring_lookups *lookups, struct prng *prng) {
    struct sim *sim = lookups->world->sim;
    ring_world_list_members(lookups->world);
    enum err err = ERR_OK;
    for (unsigned i = 0; i < LOOKUPS_COUNT && err == ERR_OK; i++) {
        uint32_t node = (uint32_t)prng_below(prng, lookups->world->nodes_count);
        err = ring_lookups_ask(lookups, node, prng, sim_now_us(sim) + i * 50000);
    }
    return err != ERR_OK ? err : sim_run_until(sim, sim_now_us(sim) + 30 * SIM_SECOND_US);
}

static enum err play(struct ring_world *world, struct ring_lookups *lookups, enum trouble trouble,
                     struct partition_sums *sums, struct err_detail *detail) {
    struct network_dials dials = sim_network(world->sim)->dials;
    struct prng prng;
    prng_init_stream(&prng, sim_seed(world->sim), 19);
    begin(world, trouble);
    enum err err = sim_run_until(world->sim, sim_now_us(world->sim) + TROUBLE_US);
    err = err != ERR_OK ? err : ask(lookups, &prng);
    sums->right += (double)(lookups->found_count - lookups->wrong_count) / LOOKUPS_COUNT;
    end(world, dials);
    err = err != ERR_OK ? err : heal(world, sums, detail);
    /* What owners said themselves is believed for half a minute (lookup.c). */
    err = err != ERR_OK ? err : sim_run_until(world->sim, sim_now_us(world->sim) + 31 * SIM_SECOND_US);
    lookups->wrong_count = 0;
    lookups->found_count = 0;
    err = err != ERR_OK ? err : ask(lookups, &prng);
    if (err == ERR_OK && (lookups->wrong_count > 0 || lookups->found_count < LOOKUPS_COUNT)) {
        return err_set(detail, ERR_MISMATCH,
                       "seed %llu: %llu wrong answers and %llu lookups lost after healing",
                       (unsigned long long)sim_seed(world->sim), (unsigned long long)lookups->wrong_count,
                       (unsigned long long)(LOOKUPS_COUNT - lookups->found_count));
    }
    for (uint32_t i = 0; i < world->nodes_count && err == ERR_OK; i++) {
        const struct ring_counters *counters = ring_counters(ring_world_ring(world, i));
        sums->blamed_count += counters->blamed_count + counters->malformed_count + counters->foreign_count;
        sums->unasked_count += counters->unasked_count;
    }
    return err;
}

static enum err run(uint64_t seed, uint32_t nodes_count, enum trouble trouble, struct partition_sums *sums,
                    struct report *report, struct err_detail *detail) {
    struct sim_config sim = {
        .seed = seed,
        .nodes_max = nodes_count,
        .network = {.latency_us = 20000, .jitter_us = 20000, .loss_ppm = 2000},
    };
    struct ring_config config = {
        .list_size = 6,
        .table_capacity = 128,
        .lookups_max = 32,
        .stabilize_us = 4 * SIM_SECOND_US,
        .heal_us = 30 * SIM_SECOND_US,
    };
    struct ring_world world;
    struct ring_lookups lookups = {0};
    enum err err = ring_world_init(&world, &sim, &config);
    err = err != ERR_OK ? err : ring_lookups_init(&lookups, &world, 2 * LOOKUPS_COUNT);
    if (err == ERR_OK) {
        world.fingers_count = FINGERS_COUNT;
        world.known_count = 32;
        ring_world_install(&world, nodes_count);
        for (uint32_t i = 0; i < nodes_count; i++) {
            sim_start_at(world.sim, i, 0);
        }
        err = sim_run_until(world.sim, 20 * SIM_SECOND_US);
    }
    err = err != ERR_OK ? err : play(&world, &lookups, trouble, sums, detail);
    if (world.sim != NULL) {
        struct digest digest = sim_digest(world.sim);
        digest_u64(&report->digest, digest.lanes[0]);
        digest_u64(&report->digest, digest.lanes[1]);
    }
    ring_lookups_done(&lookups);
    ring_world_done(&world);
    return err;
}

enum err experiment_ring_partition(const struct experiment_args *args, struct report *report,
                                   struct err_detail *detail) {
    report_init(report, "Trouble, and the ring after it", "s");
    report_column_text(report, "trouble");
    report_column(report, "runs", 0, REPORT_SHOWN);
    report_column(report, "right during it (%)", 1, REPORT_SHOWN);
    report_column(report, "ideal after (s)", 1, REPORT_SHOWN);
    report_column(report, "wrong afterwards", 0, REPORT_SHOWN);
    report_column(report, "expected", 0, REPORT_SHOWN);
    report_column(report, "refused messages", 0, REPORT_SHOWN);
    report_column(report, "unasked answers", 0, REPORT_SHOWN);
    uint32_t nodes_count = args->nodes == 0 ? 64 : args->nodes;
    uint32_t runs_count = args->runs == 0 ? 5 : args->runs;
    for (unsigned trouble = 0; trouble < TROUBLES_COUNT; trouble++) {
        struct partition_sums sums = {0};
        for (uint32_t i = 0; i < runs_count; i++) {
            struct err_detail why = {0};
            enum err err = run(args->seed + i, nodes_count, trouble, &sums, report, &why);
            if (err != ERR_OK) {
                return err_set(detail, err, "%s: %s", trouble_names[trouble], err_detail_text(&why, err));
            }
        }
        report_text(report, trouble_names[trouble]);
        report_number(report, runs_count);
        report_number(report, 100 * sums.right / runs_count);
        report_number(report, (double)sums.healed_us / 1e6 / runs_count);
        report_number(report, 0);
        report_number(report, 0);
        report_number(report, (double)sums.blamed_count / runs_count);
        report_number(report, (double)sums.unasked_count / runs_count);
    }
    return report->err;
}
