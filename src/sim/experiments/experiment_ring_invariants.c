/*
 * ring-invariants: small worlds in which nodes join and crash at random, under a network that delays, loses,
 * repeats and reorders, with Zave's invariants checked after every step of every node.
 *
 * A crash happens only if Zave's assumption allows it: afterwards every member has a live successor and r
 * + 1 principals are left. Her model reads another's state in no time; here an answer may be on its way, so
 * nobody crashes while one is.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/ring_world.h"

enum {
    NODES_MAX = 10,
    MISHAPS_COUNT = 20, /* of a run: a node joins, or some crash */
    CRASHES_AT_ONCE_MAX = 3,
    ANSWER_US_MAX = 1000000,
};
static const uint64_t PAUSE_US = 1000000; /* between two mishaps, mean */
static const uint64_t PAUSE_US_SHORT = 50000;
static const uint64_t STABILIZE_US = 400000;
static const uint64_t HEALED_US = 60 * 1000000;

enum invariants_breakage { INVARIANTS_WHOLE, INVARIANTS_NO_GUARD, INVARIANTS_NO_PADDING, BREAKAGES_COUNT };
const char *const experiment_ring_breakages[] = {"none", "guard", "padding", NULL};

struct invariants_run {
    struct ring_world world;
    struct prng prng;
    uint64_t down_at_us[NODES_MAX];
    uint32_t joins_count;
    uint32_t crashes_count;
    uint64_t shown[NODES_MAX]; /* a hash of what each node showed last */
    enum invariants_breakage breakage;
};

struct invariants_sums {
    uint64_t runs_count;
    uint64_t steps_count;
    uint64_t joins_count;
    uint64_t crashes_count;
    uint64_t violations_count;
    uint64_t split_count; /* of them: two rings */
    uint64_t late_count;  /* runs that did not become ideal */
    uint64_t healed_us;
    uint64_t first_seed; /* of a violation */
    char reason[SIM_REASON_SIZE_MAX];
};

/* ---- safety ---- */

static uint64_t invariants_hash_of(const struct ring_world *world, uint32_t node) {
    const struct ring *ring = ring_world_ring(world, node);
    uint64_t hash = prng_mix(ring_is_member(ring, 0));
    for (uint8_t i = 0; i < world->config.list_size; i++) {
        hash = prng_mix(hash ^ ring_successor(ring, 0, i)->id.high);
    }
    return hash;
}

static const char *check_step(void *context, const struct sim *sim, uint32_t node) {
    (void)sim;
    struct invariants_run *run = context;
    uint64_t hash = invariants_hash_of(&run->world, node);
    if (hash == run->shown[node]) {
        return NULL;
    }
    run->shown[node] = hash;
    return ring_world_check(&run->world, UINT32_MAX, run->breakage != INVARIANTS_NO_GUARD);
}

/* ---- what happens ---- */

/* May somebody's answer still be under way? Then nobody crashes now. */
static bool is_answer_awaited(const struct invariants_run *run) {
    const struct ring_world *world = &run->world;
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        struct address whom;
        uint32_t asked;
        const struct ring *ring = ring_world_ring(world, i);
        if (ring != NULL && ring_is_asking_for_experiment(ring, &whom) &&
            sim_node_of(world->sim, &whom, &asked) &&
            (sim_status(world->sim, asked) == SIM_UP ||
             sim_now_us(world->sim) - run->down_at_us[asked] < ANSWER_US_MAX)) {
            return true;
        }
    }
    return false;
}

/* Without the guard everybody but the last may. */
static bool may_crash(struct invariants_run *run, uint32_t node) {
    if (run->breakage == INVARIANTS_NO_GUARD) {
        ring_world_list_members(&run->world);
        return run->world.members_count > 1;
    }
    return ring_world_check(&run->world, node, true) == NULL;
}

static void crash(struct invariants_run *run) {
    struct ring_world *world = &run->world;
    uint32_t node = (uint32_t)prng_below(&run->prng, world->nodes_count);
    if (sim_status(world->sim, node) != SIM_UP || !may_crash(run, node)) {
        return;
    }
    run->crashes_count++;
    run->down_at_us[node] = sim_now_us(world->sim);
    run->shown[node] = 0;
    sim_crash(world->sim, node);
}

static enum err invariants_join(struct invariants_run *run) {
    struct ring_world *world = &run->world;
    uint32_t node = (uint32_t)prng_below(&run->prng, world->nodes_count);
    for (uint32_t i = 0; i < world->nodes_count && sim_status(world->sim, node) == SIM_UP; i++) {
        node = (node + 1) % world->nodes_count;
    }
    uint32_t contact = (uint32_t)prng_below(&run->prng, world->nodes_count);
    if (sim_status(world->sim, node) == SIM_UP || !ring_world_is_member(world, contact)) {
        return ERR_OK;
    }
    run->joins_count++;
    sim_start_at(world->sim, node, sim_now_us(world->sim));
    return ring_world_join_members(world, node, sim_now_us(world->sim) + 1);
}

/* Some at once, as soon as no answer is under way; none if that takes too long. */
static enum err crash_some(struct invariants_run *run) {
    struct sim *sim = run->world.sim;
    for (unsigned wait = 0; wait < 200 && is_answer_awaited(run); wait++) {
        enum err err = sim_run_until(sim, sim_now_us(sim) + 7000);
        if (err != ERR_OK) {
            return err;
        }
    }
    uint64_t count = is_answer_awaited(run) ? 0 : prng_between(&run->prng, 1, CRASHES_AT_ONCE_MAX);
    for (uint64_t i = 0; i < count; i++) {
        crash(run);
    }
    return ERR_OK;
}

/* Half of them come close behind the one before, when not all know of it yet. */
static enum err mishaps(struct invariants_run *run) {
    struct sim *sim = run->world.sim;
    enum err err = ERR_OK;
    for (unsigned i = 0; i < MISHAPS_COUNT && err == ERR_OK; i++) {
        uint64_t pause_us = prng_below(&run->prng, 2) == 0 ? PAUSE_US : PAUSE_US_SHORT;
        err = sim_run_until(sim, sim_now_us(sim) + prng_exponential(&run->prng, pause_us));
        if (err == ERR_OK) {
            err = prng_below(&run->prng, 2) == 0 ? crash_some(run) : invariants_join(run);
        }
    }
    return err;
}

/* ---- a run ---- */

static struct network_dials draw_network(struct prng *prng) {
    struct network_dials dials = {.latency_us = (uint32_t)prng_between(prng, 1000, 60000)};
    dials.jitter_us = (uint32_t)prng_below(prng, 30000);
    dials.loss_ppm = prng_below(prng, 2) == 0 ? 0 : (uint32_t)prng_below(prng, 20000);
    dials.duplicate_ppm = prng_below(prng, 2) == 0 ? 0 : (uint32_t)prng_below(prng, 100000);
    dials.reorder_ppm = prng_below(prng, 2) == 0 ? 0 : (uint32_t)prng_below(prng, 200000);
    dials.reorder_us = 100000;
    return dials;
}

static void invariants_add_up(struct invariants_sums *sums, const struct invariants_run *run, uint64_t seed) {
    const struct sim_failure *failure = sim_failure(run->world.sim);
    sums->runs_count++;
    sums->steps_count += sim_counters(run->world.sim)->events_count;
    sums->joins_count += run->joins_count;
    sums->crashes_count += run->crashes_count;
    if (failure == NULL) {
        return;
    }
    bool is_late = strstr(failure->reason, "liveness") != NULL;
    if (sums->violations_count + sums->late_count == 0) {
        sums->first_seed = seed;
        memcpy(sums->reason, failure->reason, sizeof sums->reason);
    }
    sums->late_count += is_late;
    sums->violations_count += !is_late;
    sums->split_count += strstr(failure->reason, "two rings") != NULL;
}

static enum err run_seed(uint64_t seed, uint32_t nodes_count, enum invariants_breakage breakage,
                         struct invariants_sums *sums, struct digest *digest) {
    struct invariants_run run = {.breakage = breakage};
    prng_init_stream(&run.prng, seed, 3);
    uint8_t r = (uint8_t)prng_between(&run.prng, 2, 4);
    uint32_t count = nodes_count > 0 ? nodes_count : (uint32_t)prng_between(&run.prng, r + 2u, NODES_MAX);
    count = count > NODES_MAX ? NODES_MAX : count < r + 2u ? r + 2u : count;
    struct sim_config sim = {.seed = seed, .nodes_max = count, .network = draw_network(&run.prng)};
    struct ring_config config = {
        .list_size = r,
        .table_capacity = 32,
        .lookups_max = 1,
        .stabilize_us = STABILIZE_US,
        .heal_us = 3600 * SIM_SECOND_US,
        .breakage = breakage == INVARIANTS_NO_PADDING ? RING_BREAK_PADDING : RING_WHOLE,
    };
    enum err err = ring_world_init(&run.world, &sim, &config);
    if (err != ERR_OK) {
        goto out;
    }
    uint32_t installed = (uint32_t)prng_between(&run.prng, r + 1u, count);
    ring_world_install(&run.world, installed);
    err = sim_run_until(run.world.sim, 0);
    sim_observe(run.world.sim, &(struct sim_observer){.context = &run, .check = check_step});
    uint64_t healed_us = 0;
    err = err != ERR_OK ? err : mishaps(&run);
    if (err == ERR_OK) {
        sim_network(run.world.sim)->dials.loss_ppm = 0;
        err = ring_world_settle(&run.world, STABILIZE_US, HEALED_US, &healed_us);
    }
    err = err == ERR_MISMATCH ? ERR_OK : err;
    sums->healed_us += healed_us;
    invariants_add_up(sums, &run, seed);
    sim_digest_into(run.world.sim, digest);
out:
    ring_world_done(&run.world);
    return err;
}

static void invariants_write_row(struct report *report, const char *name, const struct invariants_sums *sums,
                                 double expected) {
    double runs = (double)sums->runs_count;
    report_text(report, name);
    REPORT_NUMBERS(report, runs, (double)sums->steps_count, (double)sums->joins_count,
                   (double)sums->crashes_count, (double)sums->violations_count,
                   100 * (double)sums->violations_count / runs, 100 * (double)sums->split_count / runs,
                   expected, 100 * (double)sums->late_count / runs, (double)sums->healed_us / 1e6 / runs);
}

static enum err run_breakage(const struct experiment_args *args, enum invariants_breakage breakage,
                             struct report *report, struct err_detail *detail) {
    static const char *const names[] = {"Zave's rules", "without the guard", "without padding"};
    static const double expected[] = {0, 0.35, NAN};
    struct invariants_sums sums = {0};
    for (uint32_t i = 0; i < args->runs; i++) {
        enum err err = run_seed(args->seed + i, args->nodes, breakage, &sums, &report->digest);
        if (err != ERR_OK) {
            return err_set(detail, err, "seed %llu: %s", (unsigned long long)(args->seed + i), err_text(err));
        }
    }
    if (breakage == INVARIANTS_WHOLE && sums.violations_count + sums.late_count > 0) {
        return err_set(detail, ERR_MISMATCH, "%llu violations, %llu late; seed %llu: %s",
                       (unsigned long long)sums.violations_count, (unsigned long long)sums.late_count,
                       (unsigned long long)sums.first_seed, sums.reason);
    }
    invariants_write_row(report, names[breakage], &sums, expected[breakage]);
    return report->err;
}

/* All three, or what --break asks for alone. */
enum err experiment_ring_invariants(const struct experiment_args *args, struct report *report,
                                    struct err_detail *detail) {
    report_init(report, "Zave's invariants in small worlds", "");
    REPORT_COLUMNS(report, {"protocol", 0, REPORT_TEXT}, {"runs", 0, REPORT_SHOWN},
                   {"steps", 0, REPORT_SHOWN}, {"joins", 0, REPORT_SHOWN}, {"crashes", 0, REPORT_SHOWN},
                   {"violations", 0, REPORT_SHOWN}, {"runs with a violation (%)", 2, REPORT_Y},
                   {"with two rings (%)", 2, REPORT_SHOWN}, {"expected (%)", 2, REPORT_SHOWN},
                   {"not ideal again (%)", 2, REPORT_SHOWN}, {"ideal after (s)", 1, REPORT_SHOWN});
    enum err err = ERR_OK;
    for (unsigned breakage = 0; breakage < BREAKAGES_COUNT && err == ERR_OK; breakage++) {
        if (args->breakage == NULL || strcmp(args->breakage, experiment_ring_breakages[breakage]) == 0) {
            err = run_breakage(args, breakage, report, detail);
        }
    }
    return err;
}
