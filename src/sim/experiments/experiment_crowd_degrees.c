/*
 * crowd-degrees: how many know a node, while nobody comes or leaves.
 *
 * From random views on; --runs: until each node has shuffled so often (100 at most). Whoever is known by many
 * is asked much. The expected values are those of the design, measured with views of 20.
 */
#include "sim/experiments/crowd_graph.h"
#include "sim/experiments/experiment.h"

enum { VIEW_SIZE = 20, WAYS_COUNT = 3, TIMES_COUNT = 8 };
static const uint64_t SHUFFLE_US = 10 * UINT64_C(1000000);
static const uint32_t times[TIMES_COUNT] = {0, 1, 2, 5, 10, 20, 50, 100};

struct moment {
    struct crowd_degrees degrees;
    struct crowd_reach reach;
};

static unsigned count_times(const struct experiment_args *args) {
    unsigned count = 1;
    while (count < TIMES_COUNT && times[count] <= args->runs) {
        count++;
    }
    return count;
}

static enum err degrees_watch(struct crowd_world *world, struct crowd_graph *graph, unsigned times_count,
                              struct moment out[TIMES_COUNT]) {
    crowd_world_install(world, world->nodes_count);
    enum err err = ERR_OK;
    for (unsigned i = 0; i < times_count && err == ERR_OK; i++) {
        err = sim_run_until(world->sim, times[i] * SHUFFLE_US);
        crowd_graph_take(graph, world);
        out[i] = (struct moment){.degrees = crowd_graph_degrees(graph), .reach = crowd_graph_reach(graph)};
    }
    return err;
}

static enum err degrees_run(const struct experiment_args *args, const struct crowd_config *way,
                            struct moment out[TIMES_COUNT], struct digest *digest) {
    struct sim_config sim = {
        .seed = args->seed,
        .nodes_max = args->nodes,
        .network = {.latency_us = 30000, .jitter_us = 40000},
    };
    struct crowd_config config = *way;
    config.view_size = VIEW_SIZE;
    config.shuffle_us = SHUFFLE_US;
    config.searches_max = 1;
    config.seen_max = 16;
    config.waiting_max = 1;
    struct crowd_world world;
    struct crowd_graph graph = {0};
    enum err err = crowd_world_init(&world, &sim, &config);
    err = err != ERR_OK ? err : crowd_graph_init(&graph, &world);
    err = err != ERR_OK ? err : degrees_watch(&world, &graph, count_times(args), out);
    sim_digest_into(world.sim, digest);
    crowd_graph_done(&graph);
    crowd_world_done(&world);
    return err;
}

static void write_columns(struct report *report) {
    report_init(report, "How unevenly nodes are known", "spread (standard deviation)");
    REPORT_COLUMNS(report, {"shuffles of each node", 0, REPORT_X}, {"proofs", 2, REPORT_Y},
                   {"proofs: least", 0, REPORT_SHOWN}, {"proofs: most", 0, REPORT_SHOWN},
                   {"proofs: reach", 3, REPORT_SHOWN}, {"cyclon, exponential", 2, REPORT_Y},
                   {"exponential: least", 0, REPORT_SHOWN}, {"exponential: most", 0, REPORT_SHOWN},
                   {"exponential: reach", 3, REPORT_SHOWN}, {"cyclon", 2, REPORT_Y},
                   {"cyclon: least", 0, REPORT_SHOWN}, {"cyclon: most", 0, REPORT_SHOWN},
                   {"cyclon: reach", 3, REPORT_SHOWN}, {"proofs, expected", 1, REPORT_Y_EXPECTED},
                   {"cyclon, expected", 1, REPORT_Y_EXPECTED});
}

enum err experiment_crowd_degrees(const struct experiment_args *args, struct report *report,
                                  struct err_detail *detail) {
    static const struct crowd_config ways[WAYS_COUNT] = {
        {.kind = CROWD_PROOFS}, {.kind = CROWD_CYCLON, .waits_exponentially = true}, {.kind = CROWD_CYCLON}};
    struct moment found[WAYS_COUNT][TIMES_COUNT];
    enum err err = ERR_OK;
    (void)detail;
    write_columns(report);
    for (unsigned way = 0; way < WAYS_COUNT && err == ERR_OK; way++) {
        err = degrees_run(args, &ways[way], found[way], &report->digest);
    }
    for (unsigned i = 0; i < count_times(args) && err == ERR_OK; i++) {
        report_number(report, times[i]);
        for (unsigned way = 0; way < WAYS_COUNT; way++) {
            const struct moment *moment = &found[way][i];
            REPORT_NUMBERS(report, moment->degrees.deviation, moment->degrees.minimum,
                           moment->degrees.maximum, moment->reach.minimum);
        }
        REPORT_NUMBERS(report, 4.4, 1.5);
    }
    return err != ERR_OK ? err : report->err;
}
