/*
 * group-failure: members, links and the master fail, the group is cut in two and heals.
 *
 * For each case: is an update still handed on to all that are up, while the old topology holds; how long
 * until one topology holds that has exactly the living in it; and how long after the end of a cut all are
 * together again. The paper gives no figures, only the silence of an hour after which a member is dropped.
 */
#include "sim/experiments/experiment.h"
#include "sim/experiments/group_world.h"

enum {
    JOIN_EVERY_S = 20,
    CALM_MINUTES = 120,
    WAIT_MINUTES = 400,
    CUT_SHORT_MINUTES = 30,
    CUT_LONG_MINUTES = 240,
    LOSS_PPM = 5000,
};
static const uint64_t MINUTE_US = 60000000;

enum failure {
    FAIL_MEMBER,
    FAIL_TWO_MEMBERS,
    FAIL_LINK,
    FAIL_MASTER,
    FAIL_MASTER_AND_NEXT,
    FAIL_CUT_SHORT,
    FAIL_CUT_LONG,
    FAILURES_COUNT,
};
static const char *const names[FAILURES_COUNT] = {
    "one member",           "two members", "a link of the topology", "the master",
    "the master, the next", "cut, 30 min", "cut, 4 hours",
};

struct outcome {
    bool is_reached;         /* right after the failure */
    bool is_reached_late;    /* when a new topology holds */
    unsigned master_minutes; /* until one of the members that are up is master of all of them */
    unsigned minutes;        /* until a topology holds without those that failed */
    unsigned heal_minutes;   /* after the end of a cut */
};

static enum err run_for(struct group_world *world, uint64_t us) {
    enum err err = sim_run_until(world->sim, sim_now_us(world->sim) + us);
    return err != ERR_OK ? err : world->err;
}

static enum err failure_make_world(struct group_world *world, uint64_t seed, uint32_t count) {
    struct sim_config sim = {
        .seed = seed,
        .nodes_max = count,
        .network = {.latency_us = 5000, .jitter_us = 5000, .distance_us = 100000, .loss_ppm = LOSS_PPM}};
    struct group_config config = {.is_open = true};
    enum err err = group_world_init(world, &sim, &config);
    if (err != ERR_OK) {
        return err;
    }
    network_scatter(sim_network(world->sim));
    err = group_world_found(world);
    for (uint32_t node = 1; node < count && err == ERR_OK; node++) {
        err = run_for(world, JOIN_EVERY_S * SIM_SECOND_US);
        err = err != ERR_OK ? err : group_world_join(world, node, node - 1);
    }
    return err != ERR_OK ? err : run_for(world, CALM_MINUTES * MINUTE_US);
}

/* Do all that are up follow one master, which is up itself? */
static bool has_living_master(const struct group_world *world) {
    const struct peer *master = NULL;
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        const struct group *group = group_world_group(world, node);
        if (group == NULL) {
            continue;
        }
        const struct peer *followed = group_master(group);
        if (followed == NULL || (master != NULL && !peer_equal(master, followed))) {
            return false;
        }
        master = followed;
    }
    uint32_t node;
    return master != NULL && sim_node_of(world->sim, &master->address, &node) &&
           sim_status(world->sim, node) == SIM_UP;
}

static bool reaches_all(const struct group_world *world) {
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        if (sim_status(world->sim, node) == SIM_UP && !group_world_reaches_all(world, node)) {
            return false;
        }
    }
    return true;
}

/* Each minute is looked at; ERR_MISMATCH if it takes too long. */
static enum err wait_settled(struct group_world *world, int among, unsigned *ret_minutes,
                             unsigned *ret_master_minutes) {
    bool has_master = false;
    for (unsigned minutes = 0; minutes < WAIT_MINUTES; minutes++) {
        enum err err = run_for(world, MINUTE_US);
        if (err != ERR_OK) {
            return err;
        }
        if (!has_master && has_living_master(world)) {
            has_master = true;
            *ret_master_minutes = minutes + 1;
        }
        if (group_world_is_settled(world, among)) {
            *ret_minutes = minutes + 1;
            return ERR_OK;
        }
    }
    return ERR_MISMATCH;
}

static void crash(struct group_world *world, enum failure failure, struct prng *prng) {
    uint32_t count = world->nodes_count;
    uint32_t first = 2 + (uint32_t)prng_below(prng, count - 2);
    uint32_t second = 2 + (first - 2 + 1 + (uint32_t)prng_below(prng, count - 3)) % (count - 2);
    bool is_master = failure == FAIL_MASTER || failure == FAIL_MASTER_AND_NEXT;
    sim_crash(world->sim, is_master ? 0 : first);
    if (failure == FAIL_TWO_MEMBERS || failure == FAIL_MASTER_AND_NEXT) {
        sim_crash(world->sim, is_master ? 1 : second);
    }
}

/* One edge of the topology loses everything; the topology cannot know, but the others carry on. */
static enum err break_link(struct group_world *world, struct prng *prng) {
    const struct topology *topology = group_topology(group_world_group(world, 0));
    const struct topology_edge *edge = &topology->edges[prng_below(prng, topology->edges_count)];
    struct network_link dead = {.latency_us = 1000, .loss_ppm = 1000000};
    uint32_t a = 0;
    uint32_t b = 0;
    if (!sim_node_of(world->sim, &topology->members[edge->a].address, &a) ||
        !sim_node_of(world->sim, &topology->members[edge->b].address, &b)) {
        return ERR_MISMATCH;
    }
    world->has_broken_link = true;
    world->broken_link[0] = a;
    world->broken_link[1] = b;
    enum err err = network_set_link(sim_network(world->sim), a, b, &dead);
    return err != ERR_OK ? err : network_set_link(sim_network(world->sim), b, a, &dead);
}

/* The master is with the first third, so the others get a new one. */
static void failure_cut(struct group_world *world) {
    struct network *network = sim_network(world->sim);
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        network->nodes[node].group = node >= world->nodes_count / 3;
    }
    network_block(network, 0, 1);
    network_block(network, 1, 0);
}

static enum err failure_heal(struct group_world *world, struct outcome *outcome) {
    struct network *network = sim_network(world->sim);
    unsigned ignored = 0;
    network_heal(network);
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        network->nodes[node].group = 0;
    }
    enum err err = wait_settled(world, -1, &outcome->heal_minutes, &ignored);
    outcome->is_reached_late = reaches_all(world);
    return err;
}

static enum err failure_fail(struct group_world *world, enum failure failure, struct prng *prng,
                             struct outcome *outcome) {
    if (failure == FAIL_CUT_SHORT || failure == FAIL_CUT_LONG) {
        failure_cut(world);
        outcome->is_reached = reaches_all(world);
        enum err err =
            run_for(world, (failure == FAIL_CUT_SHORT ? CUT_SHORT_MINUTES : CUT_LONG_MINUTES) * MINUTE_US);
        return err != ERR_OK ? err : failure_heal(world, outcome);
    }
    enum err err = ERR_OK;
    if (failure == FAIL_LINK) {
        err = break_link(world, prng);
    } else {
        crash(world, failure, prng);
    }
    outcome->is_reached = reaches_all(world);
    err = err != ERR_OK ? err : wait_settled(world, -1, &outcome->minutes, &outcome->master_minutes);
    outcome->is_reached_late = reaches_all(world);
    return err;
}

struct sums {
    double reached;
    double reached_late;
    double master_minutes;
    double minutes;
    double minutes_max;
    double heal_minutes;
};

static enum err run_failure(const struct experiment_args *args, enum failure failure, struct report *report,
                            struct sums *sums) {
    uint32_t runs = args->runs;
    enum err err = ERR_OK;
    for (uint32_t run = 0; run < runs && err == ERR_OK; run++) {
        struct group_world world;
        struct outcome outcome = {0};
        struct prng prng;
        prng_init_stream(&prng, args->seed + run, 31);
        err = failure_make_world(&world, args->seed + run, args->nodes);
        err = err != ERR_OK ? err : failure_fail(&world, failure, &prng, &outcome);
        sums->reached += 100.0 * outcome.is_reached / runs;
        sums->reached_late += 100.0 * outcome.is_reached_late / runs;
        sums->master_minutes += (double)outcome.master_minutes / runs;
        sums->minutes += (double)outcome.minutes / runs;
        sums->minutes_max = outcome.minutes > sums->minutes_max ? outcome.minutes : sums->minutes_max;
        sums->heal_minutes += (double)outcome.heal_minutes / runs;
        sim_digest_into(world.sim, &report->digest);
        group_world_done(&world);
    }
    return err;
}

static void failure_show(struct report *report, enum failure failure, const struct sums *sums) {
    bool is_cut = failure == FAIL_CUT_SHORT || failure == FAIL_CUT_LONG;
    bool is_link = failure == FAIL_LINK; /* nobody failed: the topology is right */
    report_text(report, names[failure]);
    REPORT_NUMBERS(report, is_cut ? NAN : sums->reached, is_cut || is_link ? NAN : sums->master_minutes,
                   is_cut || is_link ? NAN : sums->minutes, is_cut || is_link ? NAN : sums->minutes_max,
                   is_cut ? sums->heal_minutes : NAN, sums->reached_late);
}

enum err experiment_group_failure(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail) {
    if (args->nodes < 6 || args->nodes > GROUP_MEMBERS_MAX) {
        return err_set(detail, ERR_INVALID, "6 to %d nodes", GROUP_MEMBERS_MAX);
    }
    report_init(report, "Minutes until the group is whole again", "minutes");
    REPORT_COLUMNS(report, {"what fails", 0, REPORT_TEXT}, {"% reached at once", 0, REPORT_SHOWN},
                   {"a master", 1, REPORT_Y}, {"a topology without it", 1, REPORT_Y},
                   {"at most", 0, REPORT_SHOWN}, {"together after a cut", 1, REPORT_Y},
                   {"% reached then", 0, REPORT_SHOWN});
    for (unsigned failure = 0; failure < FAILURES_COUNT; failure++) {
        struct sums sums = {0};
        enum err err = run_failure(args, failure, report, &sums);
        if (err != ERR_OK) {
            return err_set(detail, err, "%s, seed %llu: %s", names[failure], (unsigned long long)args->seed,
                           err_text(err));
        }
        failure_show(report, failure, &sums);
    }
    return report->err;
}
