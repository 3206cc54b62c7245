/* Crowds in simulation: the graph of views, shuffles as theorem 1 has them, healing, coming and going. */
#include <stdlib.h>

#include "../unit/unit.h"
#include "protocol/crowd/crowd.h"
#include "sim/experiments/crowd_churn.h"
#include "sim/experiments/crowd_shuffle.h"
#include "sim/experiments/experiment.h"

/* ---- the graph ---- */

/* A world in which nothing happens yet, with these views; 255 ends each. */
static void make_world(struct crowd_world *world, struct crowd_graph *graph, const uint8_t views[][4],
                       uint32_t nodes_count) {
    struct sim_config sim = {.seed = 1, .nodes_max = nodes_count};
    struct crowd_config config = {.view_size = 4, .searches_max = 1, .seen_max = 16, .waiting_max = 1};
    assert_int_equal(crowd_world_init(world, &sim, &config), ERR_OK);
    assert_int_equal(crowd_graph_init(graph, world), ERR_OK);
    for (uint32_t node = 0; node < nodes_count; node++) {
        uint32_t view[4];
        size_t count = 0;
        while (count < 4 && views[node][count] != 255) {
            view[count] = views[node][count];
            count++;
        }
        crowd_world_set_view(world, node, view, count);
        sim_start_at(world->sim, node, 0);
    }
    assert_int_equal(sim_run_until(world->sim, 0), ERR_OK);
    crowd_graph_take(graph, world);
}

static void reachability_follows_directed_edges(void **state) {
    (void)state;
    /* 0 <-> 1 -> 2 -> 3 <-> 4, and 5 that knows only 4 */
    static const uint8_t views[6][4] = {{1, 255}, {0, 2, 255}, {3, 255}, {4, 255}, {3, 255}, {4, 255}};
    struct crowd_world world;
    struct crowd_graph graph;
    make_world(&world, &graph, views, 6);
    struct crowd_reach reach = crowd_graph_reach(&graph);
    assert_int_equal(graph.components_count, 4);
    assert_false(crowd_graph_is_strong(&graph));
    assert_true(crowd_graph_is_connected(&graph));
    assert_true(reach.minimum > 0.199 && reach.minimum < 0.201); /* 3 and 4 reach one of five */
    assert_true(reach.mean > (4 + 4 + 2 + 1 + 1 + 2) / 30.0 - 1e-9);
    assert_true(reach.mean < (4 + 4 + 2 + 1 + 1 + 2) / 30.0 + 1e-9);
    struct crowd_degrees degrees = crowd_graph_degrees(&graph);
    assert_int_equal(degrees.minimum, 0);
    assert_int_equal(degrees.maximum, 2);

    sim_crash(world.sim, 2);
    crowd_graph_take(&graph, &world);
    assert_int_equal(graph.nodes_count, 5);
    assert_int_equal(graph.dangling_count, 1);
    assert_false(crowd_graph_is_connected(&graph));
    crowd_graph_done(&graph);
    crowd_world_done(&world);
}

static void a_cycle_is_strong_and_a_chain_is_not(void **state) {
    (void)state;
    static const uint8_t cycle[4][4] = {{1, 255}, {2, 255}, {3, 255}, {0, 255}};
    static const uint8_t chain[4][4] = {{1, 255}, {2, 255}, {3, 255}, {255}};
    struct crowd_world world;
    struct crowd_graph graph;
    make_world(&world, &graph, cycle, 4);
    assert_true(crowd_graph_is_strong(&graph));
    assert_true(crowd_graph_reach(&graph).minimum == 1);
    crowd_graph_done(&graph);
    crowd_world_done(&world);
    make_world(&world, &graph, chain, 4);
    assert_false(crowd_graph_is_strong(&graph));
    assert_true(crowd_graph_reach(&graph).minimum == 0);
    crowd_graph_done(&graph);
    crowd_world_done(&world);
}

/* ---- theorem 1 ---- */

enum { NODES = 6, VIEW = 3, SHUFFLE = 2 };

struct box {
    struct outbox out;
    struct action actions[512];
    uint8_t memory[512 * 1200];
};

static struct crowd *new_crowd(enum crowd_kind kind, uint32_t node, struct prng *prng, struct view *view) {
    struct crowd_config config = {
        .self = {.address = sim_address(node)},
        .kind = kind,
        .seed = prng_u64(prng),
        .view_size = VIEW,
        .shuffle_size = SHUFFLE,
        .searches_max = 1,
        .seen_max = 16,
        .waiting_max = 1,
    };
    struct crowd *crowd;
    assert_int_equal(crowd_new(&config, &crowd), ERR_OK);
    assert_true(crowd_actions_max(&config) <= 512);
    struct peer peers[VIEW];
    size_t count = 1 + (size_t)prng_below(prng, VIEW);
    view_init(view, &config.self, VIEW);
    while (view->count < count) {
        struct crowd_neighbour neighbour = {
            .peer = {.address = sim_address((uint32_t)prng_below(prng, NODES))}};
        view_add(view, &neighbour);
    }
    for (size_t i = 0; i < count; i++) {
        peers[i] = view->neighbours[i].peer;
    }
    crowd_install_for_experiment(crowd, peers, count);
    return crowd;
}

static void step(struct crowd *crowd, struct event event, struct box *box) {
    outbox_clear(&box->out);
    crowd_step(crowd, &event, &box->out);
}

/* The message of this kind in the outbox, read into ret; NULL where there is none. */
static const struct action *find_sent(const struct box *box, enum crowd_message_kind kind,
                                      struct crowd_message *ret) {
    static const uint8_t network[CROWD_NETWORK_SIZE] = {0};
    for (size_t i = 0; i < box->out.actions_count; i++) {
        const struct action *action = &box->out.actions[i];
        if (action->kind == ACTION_SEND &&
            crowd_message_read(action->bytes, network, ret) == CROWD_MESSAGE_GOOD && ret->kind == kind) {
            return action;
        }
    }
    return NULL;
}

static unsigned set_of(const struct crowd_neighbour *neighbours, size_t count) {
    unsigned set = 0;
    for (size_t i = 0; i < count; i++) {
        set |= 1u << neighbours[i].peer.address.ip[15];
    }
    return set;
}

static void expect_view(const struct crowd *crowd, const struct view *expected) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    size_t count = crowd_neighbours(crowd, view);
    assert_int_equal(count, expected->count);
    assert_int_equal(set_of(view, count), set_of(expected->neighbours, expected->count));
}

/* Two real crowds shuffle, message by message; the views must be those that crowd_shuffle() makes of the same
 * choices. */
static void shuffle_for_real(enum crowd_kind kind, struct prng *prng, struct box *box) {
    struct view first_view;
    struct view second_view;
    struct crowd *first = new_crowd(kind, 0, prng, &first_view);
    step(first, (struct event){.kind = EVENT_START}, box);
    struct crowd_message message;
    struct crowd_choice choice = {0};
    const struct action *sent = NULL;
    while ((sent = find_sent(box, CROWD_MESSAGE_SHUFFLE, &message)) == NULL) {
        step(first, (struct event){.kind = EVENT_WAKE, .now_us = box->out.wake_at_us}, box);
    }
    uint32_t partner = sent->to.ip[15];
    choice.sent_count = message.entries_count;
    memcpy(choice.sent, message.entries, choice.sent_count * sizeof choice.sent[0]);
    uint8_t bytes[STEP_MESSAGE_SIZE_MAX];
    size_t size = sent->bytes.size;
    memcpy(bytes, sent->bytes.data, size);

    struct crowd *second = new_crowd(kind, partner, prng, &second_view);
    step(second, (struct event){.kind = EVENT_START}, box);
    step(second,
         (struct event){.kind = EVENT_MESSAGE, .from = sim_address(0), .bytes = bytes_of(bytes, size)}, box);
    sent = find_sent(box, CROWD_MESSAGE_SHUFFLED, &message);
    assert_non_null(sent);
    choice.answered_count = message.entries_count;
    memcpy(choice.answered, message.entries, choice.answered_count * sizeof choice.answered[0]);
    size = sent->bytes.size;
    memcpy(bytes, sent->bytes.data, size);
    step(first,
         (struct event){.kind = EVENT_MESSAGE, .from = sim_address(partner), .bytes = bytes_of(bytes, size)},
         box);

    size_t known_count =
        second_view.count - (view_find(&second_view, &first_view.self.address) >= 0 ? 1u : 0u);
    assert_true(choice.answered_count > choice.sent_count || choice.answered_count == known_count);
    crowd_shuffle(CROWD_BREAK_NOTHING, &first_view, &second_view, &choice);
    expect_view(first, &first_view);
    expect_view(second, &second_view);
    crowd_free(first);
    crowd_free(second);
}

static void the_shuffle_of_theorem_1_is_the_real_one(void **state) {
    (void)state;
    struct box *box = calloc(1, sizeof *box);
    assert_non_null(box);
    outbox_init(&box->out, box->actions, 512, box->memory, sizeof box->memory);
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned i = 0; i < 4000; i++) {
        shuffle_for_real(i % 2 == 0 ? CROWD_PROOFS : CROWD_CYCLON, &prng, box);
    }
    free(box);
}

/* The sum of a column of an experiment's report, of its first rows. */
static double sum_rows(const char *name, const struct experiment_args *args, const char *column,
                       uint32_t rows_max) {
    const struct experiment *experiment = experiment_find(bytes_of_string(name));
    struct report report;
    struct err_detail detail = {0};
    double sum = 0;
    bool is_found = false;
    assert_non_null(experiment);
    assert_int_equal(experiment_start(experiment, *args, &report, &detail), ERR_OK);
    uint32_t rows_count = report_rows_count(&report) < rows_max ? report_rows_count(&report) : rows_max;
    for (uint32_t i = 0; i < report.columns_count; i++) {
        bool is_meant = strcmp(report.columns[i].name, column) == 0;
        for (uint32_t row = 0; row < rows_count && is_meant; row++) {
            sum += report_at(&report, row, i)->number;
        }
        is_found |= is_meant;
    }
    report_done(&report);
    assert_true(is_found);
    return sum;
}

static double sum_column(const char *name, const struct experiment_args *args, const char *column) {
    return sum_rows(name, args, column, UINT32_MAX);
}

static void no_shuffle_takes_a_graph_of_six_nodes_apart(void **state) {
    (void)state;
    struct experiment_args args = {.seed = 1, .nodes = 6};
    assert_true(sum_column("crowd-theorem-1", &args, "taken apart") == 0);
    assert_true(sum_column("crowd-theorem-1", &args, "cases") > 8e6);
}

static void without_rule_4_some_do(void **state) {
    (void)state;
    struct experiment_args args = {.seed = 1, .nodes = 5, .breakage = "rule-4"};
    assert_true(sum_column("crowd-theorem-1", &args, "taken apart") > 100);
}

/* ---- theorem 2 ---- */

static void what_is_apart_in_one_direction_heals(void **state) {
    (void)state;
    struct experiment_args args = {.seed = 1, .nodes = 12, .runs = 10};
    enum { SHAPES = 4 }; /* the rows without loss */
    assert_true(sum_rows("crowd-theorem-2", &args, "proofs, healed (%)", SHAPES) == 100 * SHAPES);
    assert_true(sum_rows("crowd-theorem-2", &args, "cyclon, healed (%)", SHAPES) == 100 * SHAPES);
    assert_true(sum_rows("crowd-theorem-2", &args, "proofs, apart (%)", SHAPES) == 0);
    assert_true(sum_rows("crowd-theorem-2", &args, "cyclon, apart (%)", SHAPES) == 0);
}

/* ---- coming and going ---- */

static struct crowd_churn_found run_churn(enum crowd_churn_way way, uint32_t come_ppm, uint32_t leave_ppm,
                                          struct digest *digest) {
    struct crowd_churn_config config = {
        .seed = 5,
        .way = way,
        .nodes_count = 300,
        .view_size = 15,
        .come_ppm = come_ppm,
        .leave_ppm = leave_ppm,
        .samples_count = 24,
        .dropped_count = 4,
    };
    struct crowd_churn_found found;
    digest_init(digest);
    assert_int_equal(crowd_churn_run(&config, &found, digest), ERR_OK);
    assert_int_equal(found.count, 20);
    return found;
}

static void who_stays_long_reaches_nearly_everybody(void **state) {
    (void)state;
    for (int way = 0; way < CROWD_CHURN_WAYS_COUNT; way++) {
        struct digest digest;
        struct crowd_churn_found found = run_churn((enum crowd_churn_way)way, 50000, 10000, &digest);
        assert_true(found.nodes > 200 && found.nodes < 290); /* 250 in the long run */
        assert_true(crowd_churn_level(found.means, found.count, 95) > 0.95);
        crowd_churn_done(&found);
    }
}

static void who_hardly_stays_reaches_less(void **state) {
    (void)state;
    struct digest digest;
    struct crowd_churn_found found = run_churn(CROWD_CHURN_PAPER, 50000, 1000000, &digest);
    assert_true(crowd_churn_level(found.means, found.count, 95) < 0.9);
    assert_true(crowd_churn_level(found.minimums, found.count, 95) < 0.5);
    crowd_churn_done(&found);
}

static void equal_seeds_give_equal_crowds(void **state) {
    (void)state;
    struct digest first;
    struct digest again;
    struct crowd_churn_found found = run_churn(CROWD_CHURN_CYCLON, 100000, 100000, &first);
    crowd_churn_done(&found);
    found = run_churn(CROWD_CHURN_CYCLON, 100000, 100000, &again);
    crowd_churn_done(&found);
    assert_memory_equal(&first, &again, sizeof first);
}

static void cyclon_lets_all_be_known_equally_well(void **state) {
    (void)state;
    struct experiment_args args = {.seed = 1, .nodes = 300};
    double proofs = sum_column("crowd-degrees", &args, "proofs");
    double cyclon = sum_column("crowd-degrees", &args, "cyclon");
    assert_true(cyclon < 0.85 * proofs); /* over all times, of which the first is the same */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reachability_follows_directed_edges),
        cmocka_unit_test(a_cycle_is_strong_and_a_chain_is_not),
        cmocka_unit_test(the_shuffle_of_theorem_1_is_the_real_one),
        cmocka_unit_test(no_shuffle_takes_a_graph_of_six_nodes_apart),
        cmocka_unit_test(without_rule_4_some_do),
        cmocka_unit_test(what_is_apart_in_one_direction_heals),
        cmocka_unit_test(who_stays_long_reaches_nearly_everybody),
        cmocka_unit_test(who_hardly_stays_reaches_less),
        cmocka_unit_test(equal_seeds_give_equal_crowds),
        cmocka_unit_test(cyclon_lets_all_be_known_equally_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
