#include "protocol/group/graph.h"

_Static_assert(GRAPH_NODES_MAX % 64 == 0, "sets are whole words");

/* In pairs, fours, bytes, then all: if the processor may lack the instruction, compilers call out for it,
 * and nothing here calls out. */
static uint32_t count_bits(uint64_t word) {
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

uint32_t graph_set_count(const struct graph_set *set) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < GRAPH_WORDS_COUNT; i++) {
        count += count_bits(set->words[i]);
    }
    return count;
}

/* ---- edges ---- */

void graph_init(struct graph *graph, uint32_t nodes_count) {
    ASSERT(nodes_count > 0 && nodes_count <= GRAPH_NODES_MAX);
    memset(graph, 0, sizeof *graph);
    graph->nodes_count = nodes_count;
}

void graph_init_complete(struct graph *graph, uint32_t nodes_count) {
    graph_init(graph, nodes_count);
    for (uint32_t a = 0; a < nodes_count; a++) {
        for (uint32_t b = 0; b < nodes_count; b++) {
            if (a != b) {
                graph_set_add(&graph->neighbours[a], b);
            }
        }
    }
}

void graph_join(struct graph *graph, uint32_t a, uint32_t b) {
    ASSERT(a != b && a < graph->nodes_count && b < graph->nodes_count);
    graph_set_add(&graph->neighbours[a], b);
    graph_set_add(&graph->neighbours[b], a);
}

void graph_part(struct graph *graph, uint32_t a, uint32_t b) {
    ASSERT(a != b && a < graph->nodes_count && b < graph->nodes_count);
    graph_set_remove(&graph->neighbours[a], b);
    graph_set_remove(&graph->neighbours[b], a);
}

uint32_t graph_edges_count(const struct graph *graph) {
    uint32_t ends = 0;
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        ends += graph_degree(graph, node);
    }
    return ends / 2;
}

/* ---- distances ---- */

/* All neighbours of the set that are not seen yet, which then are. False if there is none. */
static bool expand(const struct graph *graph, const struct graph_set *set, struct graph_set *seen,
                   struct graph_set *ret_next) {
    struct graph_set next = {0};
    for (uint32_t word = 0; word < GRAPH_WORDS_COUNT; word++) {
        for (uint64_t bits = set->words[word]; bits != 0; bits &= bits - 1) {
            const struct graph_set *more = &graph->neighbours[word * 64 + (uint32_t)__builtin_ctzll(bits)];
            for (uint32_t i = 0; i < GRAPH_WORDS_COUNT; i++) {
                next.words[i] |= more->words[i];
            }
        }
    }
    uint64_t any = 0;
    for (uint32_t i = 0; i < GRAPH_WORDS_COUNT; i++) {
        next.words[i] &= ~seen->words[i];
        seen->words[i] |= next.words[i];
        any |= next.words[i];
    }
    *ret_next = next;
    return any != 0;
}

uint32_t graph_levels(const struct graph *graph, const struct graph_set *relays, uint32_t from,
                      uint32_t hops_max, struct graph_set *levels) {
    struct graph_set seen = {0};
    memset(levels, 0, (hops_max + 1) * sizeof *levels);
    graph_set_add(&seen, from);
    graph_set_add(&levels[0], from);
    uint32_t hops = 0;
    struct graph_set ends = levels[0];
    while (hops < hops_max && expand(graph, &ends, &seen, &levels[hops + 1])) {
        hops++;
        ends = relays == NULL ? levels[hops] : graph_set_common(&levels[hops], relays);
    }
    return graph_set_count(&seen) == graph->nodes_count ? hops : GRAPH_APART;
}

uint32_t graph_diameter(const struct graph *graph) {
    struct graph_set levels[GRAPH_NODES_MAX];
    uint32_t diameter = 0;
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        uint32_t farthest = graph_levels(graph, NULL, node, graph->nodes_count - 1, levels);
        diameter = farthest > diameter ? farthest : diameter;
    }
    return diameter;
}

bool graph_is_connected(const struct graph *graph) {
    struct graph_set levels[GRAPH_NODES_MAX];
    return graph_levels(graph, NULL, 0, graph->nodes_count - 1, levels) != GRAPH_APART;
}

/*
 * Paths that share no node: graph_paths() of graph.h, a flow in which each node carries at most one path
 * (Even and Tarjan). A node has two places, its entry and its exit. One more path is looked for in breadth;
 * where it comes to the entry of a node that a path has taken, it may only turn that path back: it goes on at
 * the exit of the node before on that path, which then needs another way.
 */

enum { PLACES_MAX = 2 * GRAPH_NODES_MAX, NO_PLACE = PLACES_MAX };

struct flow {
    const struct graph *graph;
    struct graph_set open; /* nodes that may be entered: relays and the end */
    uint32_t from;
    uint32_t to;
    struct graph_set taken;           /* nodes between that a path goes through */
    uint16_t before[GRAPH_NODES_MAX]; /* of a taken node: the one before it on its path */
};

struct search {
    struct graph_set entries; /* places that were found */
    struct graph_set exits;
    uint16_t origins[PLACES_MAX]; /* the place from which a place was found */
    uint16_t queue[PLACES_MAX];
    uint32_t queue_first;
    uint32_t queue_count;
};

static uint16_t entry_of(uint32_t node) {
    return (uint16_t)(2 * node);
}

static uint16_t exit_of(uint32_t node) {
    return (uint16_t)(2 * node + 1);
}

static bool is_exit(uint16_t place) {
    return place % 2 == 1;
}

static void graph_find(struct search *search, uint16_t place, uint16_t origin) {
    struct graph_set *found = is_exit(place) ? &search->exits : &search->entries;
    if (graph_set_has(found, place / 2)) {
        return;
    }
    graph_set_add(found, place / 2);
    search->origins[place] = origin;
    search->queue[search->queue_count++] = place;
}

static void look_from_entry(const struct flow *flow, struct search *search, uint16_t place) {
    uint32_t node = place / 2;
    if (graph_set_has(&flow->taken, node)) {
        graph_find(search, exit_of(flow->before[node]), place);
    } else {
        graph_find(search, exit_of(node), place);
    }
}

static void look_from_exit(const struct flow *flow, struct search *search, uint16_t place) {
    uint32_t node = place / 2;
    struct graph_set others = graph_set_common(&flow->graph->neighbours[node], &flow->open);
    for (uint32_t i = 0; i < GRAPH_WORDS_COUNT; i++) {
        others.words[i] &= ~search->entries.words[i];
    }
    graph_set_remove(&others, flow->from);
    if (node == flow->from) {
        graph_set_remove(&others, flow->to); /* the edge between them is counted apart */
    }
    for (uint32_t other = graph_set_next(&others, 0); other < GRAPH_NODES_MAX;
         other = graph_set_next(&others, other + 1)) {
        graph_find(search, entry_of(other), place);
    }
    if (graph_set_has(&flow->taken, node)) {
        graph_find(search, entry_of(node), place);
    }
}

/* The way that was found becomes a path. */
static void graph_take(struct flow *flow, const struct search *search) {
    for (uint16_t place = entry_of(flow->to); place != exit_of(flow->from);) {
        uint16_t origin = search->origins[place];
        uint32_t node = place / 2;
        if (!is_exit(place) && origin == exit_of(node)) {
            graph_set_remove(&flow->taken, node); /* its path was turned back as far as here and further */
        } else if (!is_exit(place) && node != flow->to) {
            graph_set_add(&flow->taken, node);
            flow->before[node] = origin / 2;
        }
        place = origin;
    }
}

static bool add_path(struct flow *flow) {
    struct search search;
    memset(&search.entries, 0, sizeof search.entries);
    memset(&search.exits, 0, sizeof search.exits);
    search.queue_first = 0;
    search.queue_count = 0;
    graph_find(&search, exit_of(flow->from), NO_PLACE);
    while (search.queue_first < search.queue_count && !graph_set_has(&search.entries, flow->to)) {
        uint16_t place = search.queue[search.queue_first++];
        if (is_exit(place)) {
            look_from_exit(flow, &search, place);
        } else {
            look_from_entry(flow, &search, place);
        }
    }
    if (!graph_set_has(&search.entries, flow->to)) {
        return false;
    }
    graph_take(flow, &search);
    return true;
}

uint32_t graph_paths(const struct graph *graph, const struct graph_set *relays, uint32_t a, uint32_t b,
                     uint32_t paths_max) {
    ASSERT(a != b && a < graph->nodes_count && b < graph->nodes_count);
    struct flow flow = {.graph = graph, .from = a, .to = b};
    memset(&flow.open, 0xff, sizeof flow.open);
    flow.open = relays == NULL ? flow.open : *relays;
    uint32_t count = graph_is_joined(graph, a, b);
    struct graph_set common = graph_set_common(&graph->neighbours[a], &graph->neighbours[b]);
    common = graph_set_common(&common, &flow.open);
    if (count + graph_set_count(&common) >= paths_max) {
        return paths_max; /* most pairs of a dense graph */
    }
    graph_set_add(&flow.open, b);
    while (count < paths_max && add_path(&flow)) {
        count++;
    }
    return count;
}

/* Bridges, articulation points and k-connectivity: graph.h. */

enum { NOBODY = GRAPH_NODES_MAX };

/*
 * A walk in depth that numbers nodes as it finds them. `low` is the smallest number that is reached from a
 * node or from what was found behind it, by one edge beside the walk (Tarjan). What was found behind a node
 * and reaches nothing before it hangs on that node alone.
 */
struct walk {
    const struct graph *graph;
    uint32_t found_count;
    uint32_t numbers[GRAPH_NODES_MAX]; /* from 1 on; 0: not found yet */
    uint32_t lows[GRAPH_NODES_MAX];
    uint32_t parents[GRAPH_NODES_MAX];
    uint32_t next[GRAPH_NODES_MAX]; /* where to go on among the node's neighbours */
    struct graph_set articulations;
    uint32_t bridges_count;
};

static void graph_enter(struct walk *walk, uint32_t node, uint32_t parent) {
    walk->numbers[node] = ++walk->found_count;
    walk->lows[node] = walk->numbers[node];
    walk->parents[node] = parent;
}

/* Back from a child to a node that is not the start of the walk. */
static void graph_leave(struct walk *walk, uint32_t node, uint32_t child) {
    walk->lows[node] = walk->lows[child] < walk->lows[node] ? walk->lows[child] : walk->lows[node];
    walk->bridges_count += walk->lows[child] > walk->numbers[node];
    if (walk->parents[node] != NOBODY && walk->lows[child] >= walk->numbers[node]) {
        graph_set_add(&walk->articulations, node);
    }
}

/* All that can be reached from start. */
static void walk_from(struct walk *walk, uint32_t start) {
    uint32_t children_count = 0; /* of the start: with two of them, it holds them together */
    uint32_t node = start;
    graph_enter(walk, start, NOBODY);
    while (node != NOBODY) {
        uint32_t other = graph_set_next(&walk->graph->neighbours[node], walk->next[node]);
        if (other == GRAPH_NODES_MAX) {
            uint32_t parent = walk->parents[node];
            if (parent != NOBODY) {
                graph_leave(walk, parent, node);
                children_count += parent == start;
            }
            node = parent;
            continue;
        }
        walk->next[node] = other + 1;
        if (walk->numbers[other] == 0) {
            graph_enter(walk, other, node);
            node = other;
        } else if (other != walk->parents[node] && walk->numbers[other] < walk->lows[node]) {
            walk->lows[node] = walk->numbers[other];
        }
    }
    if (children_count > 1) {
        graph_set_add(&walk->articulations, start);
    }
}

struct graph_weakness graph_weakness(const struct graph *graph) {
    struct walk walk = {.graph = graph};
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        if (walk.numbers[node] == 0) {
            walk_from(&walk, node);
        }
    }
    return (struct graph_weakness){.bridges_count = walk.bridges_count,
                                   .articulations_count = graph_set_count(&walk.articulations)};
}

/*
 * If fewer than k nodes held others apart, one of the first k nodes would not be among them, and would be
 * apart from some node that it is not joined to: so those pairs are all that must be looked at.
 */
bool graph_is_k_connected(const struct graph *graph, uint32_t k) {
    if (graph->nodes_count <= k) {
        return false;
    }
    if (k == 0) {
        return true;
    }
    if (k <= 2) {
        return graph_is_connected(graph) && (k == 1 || graph_weakness(graph).articulations_count == 0);
    }
    for (uint32_t a = 0; a < k; a++) {
        for (uint32_t b = 0; b < graph->nodes_count; b++) {
            if (a != b && !graph_is_joined(graph, a, b) && graph_paths(graph, NULL, a, b, k) < k) {
                return false;
            }
        }
    }
    return true;
}
