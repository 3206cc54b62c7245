/*
 * ring-partition: what a ring goes through, and whether it is one ideal ring again afterwards: cuts that
 * heal, one-way, clogged and lossy links, slow nodes, damaged and replayed messages, liars of many kinds.
 *
 * Safety, after every step of every honest node, during the trouble too: its list is in order
 * (ring_world_check_node), and unless liars or damage name some, nobody writes to an address that is no
 * node's. Convergence: within a bounded time after the end of the trouble everybody has the lists of one
 * ideal ring, and then no lookup is wrong or lost.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/ring_lookups.h"

enum {
    FINGERS_COUNT = 12,
    LOOKUPS_COUNT = 200,
    SHARE = 4, /* one in so many nodes or links has the trouble */
    LIARS_SHARE = 8,
};
static const uint64_t TROUBLE_US = 180 * UINT64_C(1000000);
static const uint64_t HEALED_US = 1800 * UINT64_C(1000000);

enum trouble_kind {
    TROUBLE_CUT,
    TROUBLE_ONE_WAY_CUT,
    TROUBLE_ONE_WAY_LINKS,
    TROUBLE_CLOGGED_LINKS,
    TROUBLE_CLOGGED_NODES,
    TROUBLE_SLOW_NODES,
    TROUBLE_LOSS,
    TROUBLE_DAMAGE,
    TROUBLE_REPLAY,
    TROUBLE_LIARS,
};

struct trouble {
    const char *name;
    enum trouble_kind kind;
    unsigned detail; /* groups of a cut, enum ring_lie of liars */
};

static const struct trouble troubles[] = {
    {"cut in halves", TROUBLE_CUT, 2},
    {"cut in three", TROUBLE_CUT, 3},
    {"one half does not hear the other", TROUBLE_ONE_WAY_CUT, 2},
    {"a quarter of the links one-way", TROUBLE_ONE_WAY_LINKS, 0},
    {"a quarter of the links clogged", TROUBLE_CLOGGED_LINKS, 0},
    {"a quarter of the nodes clogged", TROUBLE_CLOGGED_NODES, 0},
    {"a quarter of the nodes slow", TROUBLE_SLOW_NODES, 0},
    {"a quarter of all messages lost", TROUBLE_LOSS, 0},
    {"one message in eight damaged", TROUBLE_DAMAGE, 0},
    {"one in eight again, 20 s later", TROUBLE_REPLAY, 0},
    {"liars: random successors", TROUBLE_LIARS, RING_LIE_SUCCESSORS},
    {"liars: other liars as successors", TROUBLE_LIARS, RING_LIE_ALLIES},
    {"liars: addresses of nobody", TROUBLE_LIARS, RING_LIE_NOWHERE},
    {"liars: lists of padding", TROUBLE_LIARS, RING_LIE_PADDING},
    {"liars: every key is mine", TROUBLE_LIARS, RING_LIE_KEYS},
    {"liars: others' places", TROUBLE_LIARS, RING_LIE_VNODES},
    {"liars: silent to every second", TROUBLE_LIARS, RING_LIE_SILENCE},
    {"liars: replay what they heard", TROUBLE_LIARS, RING_LIE_REPLAY},
    {"liars: forged answers and noise", TROUBLE_LIARS, RING_LIE_FORGE},
    {"liars: a flood of notify", TROUBLE_LIARS, RING_LIE_NOTIFY},
};
enum { TROUBLES_COUNT = sizeof troubles / sizeof troubles[0] };

struct partition_sums {
    uint64_t healed_us;
    uint64_t lies_count;
    uint64_t refused_count;
    uint64_t unasked_count;
    uint64_t nowhere_count; /* messages to addresses that are no node's */
    uint64_t right_count;   /* of lookups during the trouble, for the whole ring, healthy or cut off */
    uint64_t wrong_count;
    uint64_t wrong_after_count;
};

/* ---- trouble ---- */

static void partition_cut(struct network *network, uint32_t nodes_count, unsigned groups_count,
                          bool both_ways) {
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

/* One directed link in SHARE: does the seed give it the trouble? */
static bool is_struck(const struct sim *sim, uint32_t from, uint32_t to) {
    uint64_t link = (uint64_t)from << 32 | to;
    return from != to && prng_mix(prng_mix(sim_seed(sim)) ^ link) % SHARE == 0;
}

static enum err strike_links(struct ring_world *world, enum trouble_kind kind, uint32_t loss_ppm) {
    struct network *network = sim_network(world->sim);
    uint64_t until_us = sim_now_us(world->sim) + TROUBLE_US;
    struct network_link link = {
        .latency_us = network->dials.latency_us, .jitter_us = network->dials.jitter_us, .loss_ppm = loss_ppm};
    enum err err = ERR_OK;
    for (uint32_t from = 0; from < world->nodes_count; from++) {
        for (uint32_t to = 0; to < world->nodes_count && err == ERR_OK; to++) {
            if (is_struck(world->sim, from, to)) {
                err = kind == TROUBLE_CLOGGED_LINKS ? network_clog_link(network, from, to, until_us)
                                                    : network_set_link(network, from, to, &link);
            }
        }
    }
    return err;
}

static void strike_nodes(struct ring_world *world, enum trouble_kind kind) {
    struct network *network = sim_network(world->sim);
    for (uint32_t i = 0; i < world->nodes_count; i += SHARE) {
        if (kind == TROUBLE_SLOW_NODES) {
            network->nodes[i].access_us = 900000;
        } else {
            network->nodes[i].clogged_until_us = sim_now_us(world->sim) + TROUBLE_US;
        }
    }
}

static enum err partition_begin(struct ring_world *world, const struct trouble *trouble) {
    struct network *network = sim_network(world->sim);
    switch (trouble->kind) {
    case TROUBLE_CUT:
    case TROUBLE_ONE_WAY_CUT:
        partition_cut(network, world->nodes_count, trouble->detail, trouble->kind == TROUBLE_CUT);
        return ERR_OK;
    case TROUBLE_ONE_WAY_LINKS:
    case TROUBLE_CLOGGED_LINKS:
        return strike_links(world, trouble->kind, 1000000);
    case TROUBLE_CLOGGED_NODES:
    case TROUBLE_SLOW_NODES:
        strike_nodes(world, trouble->kind);
        return ERR_OK;
    case TROUBLE_LOSS:
        network->dials.loss_ppm = 250000;
        return ERR_OK;
    case TROUBLE_DAMAGE: /* flipped bits make forged messages with wrong addresses and numbers */
        network->dials.corrupt_ppm = 125000;
        return ERR_OK;
    case TROUBLE_REPLAY:
        network->dials.duplicate_ppm = 125000;
        network->dials.reorder_ppm = 125000;
        network->dials.reorder_us = 20000000;
        return ERR_OK;
    case TROUBLE_LIARS:
        world->liars.lie = trouble->detail;
        world->liars.share = LIARS_SHARE;
        return ERR_OK;
    }
    return ERR_OK;
}

static enum err partition_end(struct ring_world *world, const struct trouble *trouble,
                              struct network_dials dials) {
    struct network *network = sim_network(world->sim);
    world->liars.lie = RING_LIE_NONE;
    network_heal(network);
    network->dials = dials;
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        network->nodes[i].access_us = 0;
        network->nodes[i].group = 0;
    }
    return trouble->kind == TROUBLE_ONE_WAY_LINKS ? strike_links(world, trouble->kind, dials.loss_ppm)
                                                  : ERR_OK;
}

/* ---- a run ---- */

static const char *check_step(void *context, const struct sim *sim, uint32_t node) {
    (void)sim;
    const struct ring_world *world = context;
    return ring_liars_has(&world->liars, node) ? NULL : ring_world_check_node(world, node);
}

/* Honest nodes ask. */
static enum err partition_ask(struct ring_lookups *lookups, struct prng *prng) {
    struct sim *sim = lookups->world->sim;
    ring_lookups_restart(lookups);
    ring_world_list_members(lookups->world);
    enum err err = ERR_OK;
    while (lookups->asked_count < LOOKUPS_COUNT && err == ERR_OK) {
        uint32_t node = (uint32_t)prng_below(prng, lookups->world->nodes_count);
        if (!ring_liars_has(&lookups->world->liars, node)) {
            err = ring_lookups_ask(lookups, node, prng, sim_now_us(sim) + lookups->asked_count * 50000);
        }
    }
    return err != ERR_OK ? err : sim_run_until(sim, sim_now_us(sim) + 30 * SIM_SECOND_US);
}

static enum err suffer(struct ring_lookups *lookups, const struct trouble *trouble, struct prng *prng,
                       struct partition_sums *sums) {
    struct ring_world *world = lookups->world;
    struct network_dials dials = sim_network(world->sim)->dials;
    enum err err = partition_begin(world, trouble);
    err = err != ERR_OK ? err : sim_run_until(world->sim, sim_now_us(world->sim) + TROUBLE_US);
    err = err != ERR_OK ? err : partition_ask(lookups, prng);
    sums->right_count += lookups->found_count - lookups->wrong_count - lookups->stale_count;
    sums->wrong_count += lookups->wrong_count + lookups->stale_count;
    return err != ERR_OK ? err : partition_end(world, trouble, dials);
}

static void partition_add_up(const struct ring_world *world, struct partition_sums *sums) {
    sums->lies_count += world->liars.lies_count;
    sums->nowhere_count += sim_counters(world->sim)->unroutable_count;
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        const struct ring_counters *counters = ring_counters(ring_world_ring(world, i));
        sums->refused_count += counters->blamed_count + counters->malformed_count + counters->foreign_count;
        sums->unasked_count += counters->unasked_count;
    }
}

static enum err play(struct ring_lookups *lookups, const struct trouble *trouble, struct partition_sums *sums,
                     struct err_detail *detail) {
    struct ring_world *world = lookups->world;
    struct prng prng;
    prng_init_stream(&prng, sim_seed(world->sim), 19);
    uint64_t healed_us = 0;
    enum err err = suffer(lookups, trouble, &prng, sums);
    err = err != ERR_OK ? err : ring_world_settle(world, SIM_SECOND_US, HEALED_US, &healed_us);
    sums->healed_us += healed_us;
    /* What owners said themselves is believed for half a minute (lookup.c). */
    err = err != ERR_OK ? err : sim_run_until(world->sim, sim_now_us(world->sim) + 31 * SIM_SECOND_US);
    err = err != ERR_OK ? err : partition_ask(lookups, &prng);
    if (sim_failure(world->sim) != NULL) {
        char text[SIM_FAILURE_TEXT_SIZE_MAX];
        return err_set(detail, err, "%s", sim_failure_format(sim_failure(world->sim), text));
    }
    if (err != ERR_OK) {
        return err;
    }
    sums->wrong_after_count += LOOKUPS_COUNT - (lookups->found_count - lookups->wrong_count);
    partition_add_up(world, sums);
    unsigned long long seed = sim_seed(world->sim);
    if (sums->wrong_after_count > 0) {
        return err_set(detail, ERR_MISMATCH, "seed %llu: %llu wrong answers and %llu lookups lost after it",
                       seed, (unsigned long long)lookups->wrong_count,
                       (unsigned long long)(LOOKUPS_COUNT - lookups->found_count));
    }
    bool may_go_astray = trouble->kind == TROUBLE_DAMAGE || trouble->detail == RING_LIE_NOWHERE;
    if (sums->nowhere_count > 0 && !may_go_astray) {
        return err_set(detail, ERR_MISMATCH, "seed %llu: %llu messages to addresses of nobody", seed,
                       (unsigned long long)sums->nowhere_count);
    }
    return ERR_OK;
}

static enum err partition_run(uint64_t seed, uint32_t nodes_count, const struct trouble *trouble,
                              struct partition_sums *sums, struct report *report, struct err_detail *detail) {
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
    err = err != ERR_OK ? err : ring_lookups_init(&lookups, &world, LOOKUPS_COUNT);
    if (err == ERR_OK) {
        world.fingers_count = FINGERS_COUNT;
        world.known_count = 32;
        ring_world_install(&world, nodes_count);
        sim_observe(world.sim, &(struct sim_observer){.context = &world, .check = check_step});
        err = sim_run_until(world.sim, 20 * SIM_SECOND_US);
    }
    err = err != ERR_OK ? err : play(&lookups, trouble, sums, detail);
    sim_digest_into(world.sim, &report->digest);
    ring_lookups_done(&lookups);
    ring_world_done(&world);
    return err;
}

static void partition_write_row(struct report *report, const struct trouble *trouble, uint32_t runs_count,
                                const struct partition_sums *sums) {
    double lookups = (double)runs_count * LOOKUPS_COUNT;
    report_text(report, trouble->name);
    REPORT_NUMBERS(report, runs_count, 100 * (double)sums->right_count / lookups,
                   100 * (double)sums->wrong_count / lookups, (double)sums->healed_us / 1e6 / runs_count,
                   (double)sums->wrong_after_count, 0, (double)sums->lies_count / runs_count,
                   (double)sums->refused_count / runs_count, (double)sums->unasked_count / runs_count,
                   (double)sums->nowhere_count / runs_count);
}

enum err experiment_ring_partition(const struct experiment_args *args, struct report *report,
                                   struct err_detail *detail) {
    report_init(report, "Trouble, and the ring after it", "");
    REPORT_COLUMNS(report, {"trouble", 0, REPORT_TEXT}, {"runs", 0, REPORT_SHOWN},
                   {"right during it (%)", 1, REPORT_Y}, {"wrong during it (%)", 1, REPORT_SHOWN},
                   {"ideal after (s)", 1, REPORT_Y}, {"wrong afterwards", 0, REPORT_SHOWN},
                   {"expected", 0, REPORT_SHOWN}, {"lies", 0, REPORT_SHOWN},
                   {"refused messages", 0, REPORT_SHOWN}, {"unasked answers", 0, REPORT_SHOWN},
                   {"to nobody", 0, REPORT_SHOWN});
    for (unsigned i = 0; i < TROUBLES_COUNT; i++) {
        struct partition_sums sums = {0};
        for (uint32_t j = 0; j < args->runs; j++) {
            struct err_detail why = {0};
            enum err err = partition_run(args->seed + j, args->nodes, &troubles[i], &sums, report, &why);
            if (err != ERR_OK) {
                return err_set(detail, err, "%s: %s", troubles[i].name, err_detail_text(&why, err));
            }
        }
        partition_write_row(report, &troubles[i], args->runs, &sums);
    }
    return report->err;
}
