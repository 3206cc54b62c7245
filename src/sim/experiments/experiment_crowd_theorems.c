/*
 * crowd-theorem-1: no shuffle takes an undirected connected graph apart. Exhaustively.
 *
 * Two nodes shuffle; by symmetry node 0 with node 1, which it knows. Only their two views change. Of what all
 * others know, only this counts: which nodes their edges connect, without regard to direction. That is a
 * partition of the nodes, and of partitions there are few (203 of 6 nodes), where there are many graphs (309
 * million with views of 3). So a case is: two views, the neighbours that each side sends in which order, and
 * a partition; all cases together are all shuffles in all graphs. --nodes: of up to so many (6).
 */
#include "sim/experiments/crowd_shuffle.h"
#include "sim/experiments/experiment.h"
#include "sim/world/sim.h"

enum {
    NODES_MIN = 3,
    NODES_MAX = 6,
    PARTITIONS_MAX = 203, /* of 6 nodes: Bell's number */
    FIRST = 0,
    SECOND = 1,
};

const char *const experiment_crowd_breakages[] = {"rule-4", "sizes", NULL};

/* Sets of nodes are bits. */
struct partition {
    uint8_t blocks[NODES_MAX];
    uint8_t count;
};

struct theorem {
    uint32_t nodes_count;
    uint8_t view_size;
    uint8_t shuffle_size;
    enum crowd_breakage breakage;
    struct partition partitions[PARTITIONS_MAX];
    uint32_t partitions_count;
    uint64_t cases_count;  /* that were connected before */
    uint64_t broken_count; /* and were not afterwards */
};

/* A choice of both sides that is being put together. */
struct shuffle_case {
    uint8_t first_view; /* as sets */
    uint8_t second_view;
    struct crowd_choice choice;
};

static unsigned count_bits(unsigned set) {
    return (unsigned)__builtin_popcount(set);
}

/* ---- partitions ---- */

/* The nodes from `node` on go into one of the blocks that there are, or into one of their own. */
static void list_partitions(struct theorem *theorem, struct partition partition, uint32_t node) {
    if (node == theorem->nodes_count) {
        ASSERT(theorem->partitions_count < PARTITIONS_MAX);
        theorem->partitions[theorem->partitions_count++] = partition;
        return;
    }
    for (uint8_t block = 0; block <= partition.count; block++) {
        struct partition next = partition;
        next.count = (uint8_t)(partition.count + (block == partition.count));
        next.blocks[block] = (uint8_t)(next.blocks[block] | 1u << node);
        list_partitions(theorem, next, node + 1);
    }
}

/* With the edges of the two: every block that touches a known set joins it, until nothing changes. */
static bool is_connected(const struct partition *partition, unsigned first_view, unsigned second_view) {
    unsigned reached = first_view | 1u << FIRST;
    unsigned second = second_view | 1u << SECOND;
    unsigned before = 0;
    unsigned all = 0;
    for (uint8_t i = 0; i < partition->count; i++) {
        all |= partition->blocks[i];
    }
    while (reached != before) {
        before = reached;
        reached |= (reached & second) != 0 ? second : 0;
        for (uint8_t i = 0; i < partition->count; i++) {
            reached |= (reached & partition->blocks[i]) != 0 ? partition->blocks[i] : 0;
        }
    }
    return reached == all;
}

/* ---- a case ---- */

static struct crowd_neighbour neighbour_of(uint32_t node) {
    return (struct crowd_neighbour){.peer = {.address = sim_address(node)}};
}

static void fill_view(struct view *view, uint32_t self, uint8_t set, uint8_t view_size) {
    struct peer peer = {.address = sim_address(self)};
    view_init(view, &peer, view_size);
    for (uint32_t node = 0; node < NODES_MAX; node++) {
        if ((set >> node & 1) != 0) {
            struct crowd_neighbour neighbour = neighbour_of(node);
            bool is_there = view_add(view, &neighbour);
            ASSERT(is_there);
        }
    }
}

static unsigned theorems_set_of(const struct view *view) {
    unsigned set = 0;
    for (uint8_t i = 0; i < view->count; i++) {
        set |= 1u << view->neighbours[i].peer.address.ip[15]; /* sim_address(): the last byte is the node */
    }
    return set;
}

static void check_case(struct theorem *theorem, struct shuffle_case *shuffled) {
    struct view first;
    struct view second;
    fill_view(&first, FIRST, shuffled->first_view, theorem->view_size);
    fill_view(&second, SECOND, shuffled->second_view, theorem->view_size);
    crowd_shuffle(theorem->breakage, &first, &second, &shuffled->choice);
    unsigned first_set = theorems_set_of(&first);
    unsigned second_set = theorems_set_of(&second);
    for (uint32_t i = 0; i < theorem->partitions_count; i++) {
        const struct partition *partition = &theorem->partitions[i];
        if (is_connected(partition, shuffled->first_view, shuffled->second_view)) {
            theorem->cases_count++;
            theorem->broken_count += !is_connected(partition, first_set, second_set);
        }
    }
}

/* One side's neighbours, as they are put together, and what then happens with the case. */
struct side {
    struct crowd_neighbour *chosen;
    size_t *count;
    size_t wanted;
    void (*then)(struct theorem *theorem, struct shuffle_case *shuffled);
};

/* All orders of all choices of so many of the nodes that are left. */
static void choose(struct theorem *theorem, struct shuffle_case *shuffled, const struct side *side,
                   unsigned left) {
    if (*side->count == side->wanted) {
        side->then(theorem, shuffled);
        return;
    }
    for (uint32_t node = 0; node < theorem->nodes_count; node++) {
        if ((left >> node & 1) != 0) {
            side->chosen[(*side->count)++] = neighbour_of(node);
            choose(theorem, shuffled, side, left & ~(1u << node));
            (*side->count)--;
        }
    }
}

/* Answers may be cut, lest they are much longer than what was asked, but name as many as came in. */
static void choose_answer_size(struct theorem *theorem, struct shuffle_case *shuffled) {
    unsigned known = shuffled->second_view & ~(1u << FIRST);
    size_t most = count_bits(known) < theorem->shuffle_size ? count_bits(known) : theorem->shuffle_size;
    size_t came = shuffled->choice.sent_count + 1;
    size_t least = theorem->breakage == CROWD_BREAK_SIZES ? 0 : came < most ? came : most;
    struct side answer = {shuffled->choice.answered, &shuffled->choice.answered_count, least, check_case};
    for (; answer.wanted <= most; answer.wanted++) {
        choose(theorem, shuffled, &answer, known);
    }
}

static void check_views(struct theorem *theorem, uint8_t first_view, uint8_t second_view) {
    struct shuffle_case shuffled = {.first_view = first_view, .second_view = second_view};
    unsigned known_count = count_bits(first_view);
    size_t chosen = known_count < theorem->shuffle_size ? known_count : theorem->shuffle_size;
    struct side question = {shuffled.choice.sent, &shuffled.choice.sent_count, chosen - 1, /* no partner */
                            choose_answer_size};
    choose(theorem, &shuffled, &question, first_view & ~(1u << SECOND));
}

static void check_all(struct theorem *theorem) {
    unsigned sets_end = 1u << theorem->nodes_count;
    for (unsigned first = 0; first < sets_end; first++) {
        bool is_view = (first >> FIRST & 1) == 0 && (first >> SECOND & 1) != 0;
        if (!is_view || count_bits(first) > theorem->view_size) {
            continue;
        }
        for (unsigned second = 0; second < sets_end; second++) {
            if ((second >> SECOND & 1) == 0 && count_bits(second) <= theorem->view_size) {
                check_views(theorem, (uint8_t)first, (uint8_t)second);
            }
        }
    }
}

/* ---- the report ---- */

/* Directed graphs: each node knows any set of at most view_size others. */
static double count_graphs(uint32_t nodes_count, uint8_t view_size) {
    double views = 0;
    double chosen = 1; /* others, of nodes_count - 1 */
    double graphs = 1;
    for (uint32_t i = 0; i <= view_size && i < nodes_count; i++) {
        views += chosen;
        chosen = chosen * (nodes_count - 1 - i) / (i + 1);
    }
    for (uint32_t i = 0; i < nodes_count; i++) {
        graphs *= views;
    }
    return graphs;
}

static void theorem_row(struct theorem *theorem, struct report *report) {
    check_all(theorem);
    REPORT_NUMBERS(report, theorem->nodes_count, theorem->view_size, theorem->shuffle_size,
                   count_graphs(theorem->nodes_count, theorem->view_size), (double)theorem->cases_count,
                   (double)theorem->broken_count);
    digest_u64(&report->digest, theorem->cases_count);
    digest_u64(&report->digest, theorem->broken_count);
}

static enum crowd_breakage breakage_of(const char *name) {
    return name == NULL                  ? CROWD_BREAK_NOTHING
           : strcmp(name, "rule-4") == 0 ? CROWD_BREAK_RULE_4
                                         : CROWD_BREAK_SIZES;
}

enum err experiment_crowd_theorem_1(const struct experiment_args *args, struct report *report,
                                    struct err_detail *detail) {
    (void)detail;
    report_init(report, "Shuffles that take a connected graph apart", "");
    REPORT_COLUMNS(report, {"nodes", 0, REPORT_SHOWN}, {"C", 0, REPORT_SHOWN}, {"shuffle", 0, REPORT_SHOWN},
                   {"graphs", 0, REPORT_SHOWN}, {"cases", 0, REPORT_SHOWN}, {"taken apart", 0, REPORT_SHOWN});
    uint32_t nodes_max = args->nodes < NODES_MAX ? args->nodes : NODES_MAX;
    for (uint32_t nodes_count = NODES_MIN; nodes_count <= nodes_max; nodes_count++) {
        for (uint8_t view_size = 2; view_size < nodes_count; view_size++) {
            for (uint8_t shuffle_size = 1; shuffle_size <= view_size; shuffle_size++) {
                struct theorem theorem = {
                    .nodes_count = nodes_count,
                    .view_size = view_size,
                    .shuffle_size = shuffle_size,
                    .breakage = breakage_of(args->breakage),
                };
                list_partitions(&theorem, (struct partition){0}, 0);
                theorem_row(&theorem, report);
            }
        }
    }
    return report->err;
}
