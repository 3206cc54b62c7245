/*
 * Paths that share no node: graph_paths() of graph.h, a flow in which each node carries at most one path
 * (Even and Tarjan). A node has two places, its entry and its exit. One more path is looked for in breadth;
 * where it comes to the entry of a node that a path has taken, it may only turn that path back: it goes on at
 * the exit of the node before on that path, which then needs another way.
 */
#include "protocol/group/graph.h"

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

static void find(struct search *search, uint16_t place, uint16_t origin) {
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
        find(search, exit_of(flow->before[node]), place);
    } else {
        find(search, exit_of(node), place);
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
        find(search, entry_of(other), place);
    }
    if (graph_set_has(&flow->taken, node)) {
        find(search, entry_of(node), place);
    }
}

/* The way that was found becomes a path. */
static void take(struct flow *flow, const struct search *search) {
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
    find(&search, exit_of(flow->from), NO_PLACE);
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
    take(flow, &search);
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
