/*
 * crowd-theorem-2: a crowd that is connected, but not in every direction, becomes so by shuffling alone.
 *
 * The theorem says that a way forms with probability 1, not when. Here small crowds begin in bad shapes,
 * nobody joins or leaves, and it is counted after how many shuffles of each node everybody reaches everybody.
 * Both theorems assume that no message is lost; with loss, an answer that does not arrive takes the
 * neighbours with it that it carried away, and the crowd can fall apart for good: as many rows show how
 * often.
 */
#include "sim/experiments/crowd_graph.h"
#include "sim/experiments/experiment.h"

enum {
    VIEW_SIZE = 8,
    SHUFFLE_SIZE = 3,
    SHUFFLES_MAX = 100,
    LOOKS_PER_SHUFFLE = 4,
    KINDS_COUNT = 2,
};
static const uint64_t SHUFFLE_US = 10 * UINT64_C(1000000);

enum shape { SHAPE_CHAIN, SHAPE_TREE, SHAPE_STAR, SHAPE_CLIQUES, SHAPES_COUNT };

struct heal {
    uint32_t runs_count;
    uint32_t healed_count;
    uint32_t apart_count; /* at the end, without regard to direction */
    double shuffles_sum;  /* of those that healed */
    double shuffles_max;
};

/* ---- shapes ---- */

/* The neighbours that a node knows at first. */
static size_t first_view(enum shape shape, uint32_t node, uint32_t nodes_count, uint32_t out[VIEW_SIZE]) {
    size_t count = 0;
    uint32_t half = nodes_count / 2;
    switch (shape) {
    case SHAPE_CHAIN:
        out[count++] = node + 1;
        break;
    case SHAPE_TREE:
        out[count++] = 2 * node + 1;
        out[count++] = 2 * node + 2;
        break;
    case SHAPE_STAR:
        out[count++] = node == 0 ? nodes_count : 0;
        break;
    case SHAPE_CLIQUES: /* each half knows itself, as far as views go, and its first node one of the other */
        for (uint32_t i = 1; i < VIEW_SIZE && i < half; i++) {
            out[count++] = node < half ? (node + i) % half : half + (node - half + i) % half;
        }
        if (node == 0) {
            out[count++] = half;
        }
        break;
    case SHAPES_COUNT:
        break;
    }
    while (count > 0 && out[count - 1] >= nodes_count) {
        count--;
    }
    return count;
}

static void start_all(struct crowd_world *world, enum shape shape) {
    for (uint32_t node = 0; node < world->nodes_count; node++) {
        uint32_t view[VIEW_SIZE];
        crowd_world_set_view(world, node, view, first_view(shape, node, world->nodes_count, view));
        sim_start_at(world->sim, node, 0);
    }
}

/* ---- a run ---- */

static enum err heal_watch(struct crowd_world *world, struct crowd_graph *graph, struct heal *heal) {
    bool is_healed = false;
    enum err err = ERR_OK;
    for (uint32_t i = 1; i <= SHUFFLES_MAX * LOOKS_PER_SHUFFLE && err == ERR_OK; i++) {
        err = sim_run_until(world->sim, i * SHUFFLE_US / LOOKS_PER_SHUFFLE);
        crowd_graph_take(graph, world);
        if (!is_healed && crowd_graph_is_strong(graph)) {
            double shuffles = (double)i / LOOKS_PER_SHUFFLE;
            is_healed = true;
            heal->healed_count++;
            heal->shuffles_sum += shuffles;
            heal->shuffles_max = shuffles > heal->shuffles_max ? shuffles : heal->shuffles_max;
        }
    }
    heal->runs_count++;
    heal->apart_count += !crowd_graph_is_connected(graph);
    return err;
}

static enum err heal_run(const struct sim_config *sim, enum crowd_kind kind, enum shape shape,
                         struct heal *heal, struct digest *digest) {
    struct crowd_config config = {
        .kind = kind,
        .view_size = VIEW_SIZE,
        .shuffle_size = SHUFFLE_SIZE,
        .shuffle_us = SHUFFLE_US,
        .searches_max = 1,
        .seen_max = 16,
        .waiting_max = 1,
    };
    struct crowd_world world;
    struct crowd_graph graph = {0};
    enum err err = crowd_world_init(&world, sim, &config);
    err = err != ERR_OK ? err : crowd_graph_init(&graph, &world);
    if (err == ERR_OK) {
        start_all(&world, shape);
        err = heal_watch(&world, &graph, heal);
    }
    sim_digest_into(world.sim, digest);
    crowd_graph_done(&graph);
    crowd_world_done(&world);
    return err;
}

/* ---- the report ---- */

static enum err heal_row(const struct experiment_args *args, enum shape shape, uint32_t loss_percent,
                         struct report *report) {
    static const char *const names[SHAPES_COUNT] = {"a chain", "a tree", "a star", "two cliques, one edge"};
    static const enum crowd_kind kinds[KINDS_COUNT] = {CROWD_PROOFS, CROWD_CYCLON};
    struct sim_config sim = {
        .nodes_max = args->nodes,
        .network = {.latency_us = 30000, .jitter_us = 40000, .loss_ppm = loss_percent * 10000},
    };
    report_text(report, names[shape]);
    REPORT_NUMBERS(report, loss_percent, args->runs);
    for (unsigned kind = 0; kind < KINDS_COUNT; kind++) {
        struct heal heal = {0};
        for (uint32_t i = 0; i < args->runs; i++) {
            sim.seed = args->seed + i;
            enum err err = heal_run(&sim, kinds[kind], shape, &heal, &report->digest);
            if (err != ERR_OK) {
                return err;
            }
        }
        REPORT_NUMBERS(report, 100.0 * heal.healed_count / heal.runs_count,
                       heal.healed_count == 0 ? 0 : heal.shuffles_sum / heal.healed_count, heal.shuffles_max,
                       100.0 * heal.apart_count / heal.runs_count);
    }
    return ERR_OK;
}

enum err experiment_crowd_theorem_2(const struct experiment_args *args, struct report *report,
                                    struct err_detail *detail) {
    static const uint32_t losses[] = {0, 10};
    enum err err = ERR_OK;
    (void)detail;
    report_init(report, "Shuffles of each node until everybody reaches everybody", "shuffles");
    REPORT_COLUMNS(report, {"begins as", 0, REPORT_TEXT}, {"loss (%)", 0, REPORT_SHOWN},
                   {"runs", 0, REPORT_SHOWN}, {"proofs, healed (%)", 1, REPORT_SHOWN},
                   {"proofs", 1, REPORT_Y}, {"proofs, slowest", 1, REPORT_SHOWN},
                   {"proofs, apart (%)", 1, REPORT_SHOWN}, {"cyclon, healed (%)", 1, REPORT_SHOWN},
                   {"cyclon", 1, REPORT_Y}, {"cyclon, slowest", 1, REPORT_SHOWN},
                   {"cyclon, apart (%)", 1, REPORT_SHOWN});
    for (unsigned i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        for (int shape = 0; shape < SHAPES_COUNT && err == ERR_OK; shape++) {
            err = heal_row(args, (enum shape)shape, losses[i], report);
        }
    }
    return err != ERR_OK ? err : report->err;
}
