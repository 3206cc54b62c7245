#include "protocol/group/topology.h"

/* The paper's generator (flood-d, section 3.3): topology.h. */

/* Kruskal: the cheapest edge that joins two parts, until there is one. */
static void span(const uint64_t *edges, uint32_t edges_count, struct graph *graph) {
    uint8_t parts[GRAPH_NODES_MAX];
    for (uint32_t node = 0; node < GRAPH_NODES_MAX; node++) {
        parts[node] = (uint8_t)node;
    }
    for (uint32_t i = 0; i < edges_count; i++) {
        uint32_t a = costs_edge_a(edges[i]);
        uint32_t b = costs_edge_b(edges[i]);
        uint8_t merged = parts[b];
        if (parts[a] == merged) {
            continue;
        }
        graph_join(graph, a, b);
        for (uint32_t node = 0; node < graph->nodes_count; node++) {
            parts[node] = parts[node] == merged ? parts[a] : parts[node];
        }
    }
}

/* The node's cheapest edges, until it has k. */
static void topology_fill(const uint64_t *edges, uint32_t edges_count, uint32_t node, uint32_t k,
                          struct graph *graph) {
    uint32_t degree = graph_degree(graph, node);
    for (uint32_t i = 0; i < edges_count && degree < k; i++) {
        uint32_t a = costs_edge_a(edges[i]);
        uint32_t b = costs_edge_b(edges[i]);
        if ((a == node || b == node) && !graph_is_joined(graph, a, b)) {
            graph_join(graph, a, b);
            degree++;
        }
    }
}

static void topology_make_tree(uint32_t k, const struct costs *costs, struct topology_work *work,
                               struct graph *ret_graph) {
    graph_init(ret_graph, costs->members_count);
    uint32_t edges_count = costs_sort_edges(costs, work->edges);
    span(work->edges, edges_count, ret_graph);
    for (uint32_t node = 0; node < costs->members_count; node++) {
        topology_fill(work->edges, edges_count, node, k, ret_graph);
    }
}

/*
 * Our generator: topology.h. Edges are tried from the dearest to the cheapest, once each: what cannot be
 * deleted then cannot be later either, when there are fewer.
 */

enum {
    SLOW_FACTOR = 10, /* a modem is slower by a thousand, a lone site by ten to thirty */
    TRIES_MAX = 4000, /* to move edges; some hundred are usual, a second is what these take at the most */
};

/* ---- distances ---- */

/* How far is the node from `from`? */
static uint32_t hops_between(const struct topology_work *work, uint32_t from, uint32_t node) {
    uint32_t hops = 0;
    while (!graph_set_has(&work->levels[from][hops], node)) {
        hops++;
        ASSERT(hops <= TOPOLOGY_HOPS_MAX);
    }
    return hops;
}

/* Did every shortest way from `from` to one of the two lead over the edge between them, now deleted? */
static bool is_affected(const struct graph *graph, const struct topology_work *work, uint32_t from,
                        uint32_t a, uint32_t b) {
    uint32_t hops_a = hops_between(work, from, a);
    uint32_t hops_b = hops_between(work, from, b);
    if (hops_a == hops_b) {
        return false;
    }
    uint32_t farther = hops_a > hops_b ? a : b;
    uint32_t hops = hops_a > hops_b ? hops_b : hops_a;
    struct graph_set before = graph_set_common(&graph->neighbours[farther], &work->levels[from][hops]);
    before = hops == 0 ? before : graph_set_common(&before, &work->relays);
    return graph_set_next(&before, 0) == GRAPH_NODES_MAX;
}

/* The edge is deleted from the graph already. True: everybody is near enough still, and levels are as they
 * are now. */
static bool stays_near(const struct graph *graph, struct topology_work *work, uint32_t hops_max, uint32_t a,
                       uint32_t b) {
    struct graph_set affected = {0};
    struct graph_set levels[TOPOLOGY_HOPS_MAX + 1];
    for (uint32_t from = 0; from < graph->nodes_count; from++) {
        if (is_affected(graph, work, from, a, b)) {
            if (graph_levels(graph, &work->relays, from, hops_max, levels) == GRAPH_APART) {
                return false;
            }
            graph_set_add(&affected, from);
        }
    }
    for (uint32_t from = graph_set_next(&affected, 0); from < GRAPH_NODES_MAX;
         from = graph_set_next(&affected, from + 1)) {
        graph_levels(graph, &work->relays, from, hops_max, work->levels[from]);
    }
    return true;
}

/* ---- deleting ---- */

/* Delete the edge, or keep it for good. */
static void try_edge(uint32_t k, uint32_t hops_max, uint64_t edge, struct topology_work *work,
                     struct graph *graph) {
    uint32_t a = costs_edge_a(edge);
    uint32_t b = costs_edge_b(edge);
    graph_part(graph, a, b);
    if (graph_paths(graph, &work->relays, a, b, k) < k || !stays_near(graph, work, hops_max, a, b)) {
        graph_join(graph, a, b);
    }
}

/* ---- relays ---- */

/* What the member's cheapest edge costs. */
static uint32_t nearest_us(const struct costs *costs, uint32_t member) {
    uint32_t nearest = COSTS_UNKNOWN_US;
    for (uint32_t other = 0; other < costs->members_count; other++) {
        uint32_t cost_us = other == member ? COSTS_UNKNOWN_US : costs_of_edge(costs, member, other);
        nearest = cost_us < nearest ? cost_us : nearest;
    }
    return nearest;
}

/* So many members have a nearest neighbour that is not dearer than this one's. */
static uint32_t rank_of(const uint32_t *nearest, uint32_t count, uint32_t member) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        rank += nearest[i] <= nearest[member];
    }
    return rank;
}

/*
 * Everybody but those far from all others by SLOW_FACTOR times what is usual: behind a modem, or not measured
 * yet. Hops through them would look as good as any, and good edges would be deleted for them.
 */
static void choose_relays(uint32_t k, const struct costs *costs, struct graph_set *ret_relays) {
    uint32_t nearest[GROUP_MEMBERS_MAX];
    uint32_t count = costs->members_count;
    for (uint32_t i = 0; i < count; i++) {
        nearest[i] = nearest_us(costs, i);
    }
    uint32_t usual_us = COSTS_UNKNOWN_US; /* the median */
    for (uint32_t i = 0; i < count; i++) {
        bool is_half = rank_of(nearest, count, i) * 2 >= count;
        usual_us = is_half && nearest[i] < usual_us ? nearest[i] : usual_us;
    }
    struct graph_set relays = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (nearest[i] / SLOW_FACTOR <= usual_us &&
            (nearest[i] != COSTS_UNKNOWN_US || usual_us == nearest[i])) {
            graph_set_add(&relays, i);
        }
    }
    if (graph_set_count(&relays) <= k) {
        memset(&relays, 0xff, sizeof relays);
    }
    *ret_relays = relays;
}

/* ---- the cap ---- */

/* The cheapest that may still take an edge of the member and was not tried; GRAPH_NODES_MAX: none. */
static uint32_t cheapest_other(const struct costs *costs, uint32_t member, uint32_t degree_max,
                               const struct graph *graph, const struct graph_set *tried) {
    uint32_t best = GRAPH_NODES_MAX;
    for (uint32_t other = 0; other < graph->nodes_count; other++) {
        if (!graph_set_has(tried, other) && graph_degree(graph, other) < degree_max &&
            (best == GRAPH_NODES_MAX ||
             costs_of_edge(costs, member, other) < costs_of_edge(costs, member, best))) {
            best = other;
        }
    }
    return best;
}

/* The graph was good with the edge between a and b, and has one edge more since. Is it without? */
static bool is_good_without(uint32_t k, const struct topology_work *work, uint32_t a, uint32_t b,
                            const struct graph *graph) {
    uint32_t hops_max = topology_hops_max(graph->nodes_count);
    struct graph_set levels[TOPOLOGY_HOPS_MAX + 1];
    if (graph_paths(graph, &work->relays, a, b, k) < k) {
        return false;
    }
    uint32_t from = 0;
    while (from < graph->nodes_count &&
           graph_levels(graph, &work->relays, from, hops_max, levels) != GRAPH_APART) {
        from++;
    }
    return from == graph->nodes_count;
}

/*
 * Take `member` off `hub`, which has too many, and give it the cheapest other edge with which all is good.
 * *tries are those left.
 */
static bool move_member(uint32_t k, uint32_t degree_max, const struct costs *costs, uint32_t hub,
                        uint32_t member, const struct topology_work *work, struct graph *graph,
                        uint32_t *tries) {
    struct graph_set tried = graph->neighbours[member];
    graph_set_add(&tried, member);
    graph_part(graph, hub, member);
    while (*tries > 0) {
        uint32_t other = cheapest_other(costs, member, degree_max, graph, &tried);
        if (other == GRAPH_NODES_MAX) {
            break;
        }
        graph_set_add(&tried, other);
        (*tries)--;
        graph_join(graph, member, other);
        if (is_good_without(k, work, hub, member, graph)) {
            return true;
        }
        graph_part(graph, member, other);
    }
    graph_join(graph, hub, member);
    return false;
}

/* Members with too many edges give some away. True if one did. */
static bool relieve_hubs(uint32_t k, uint32_t degree_max, const struct costs *costs,
                         const struct topology_work *work, struct graph *graph, uint32_t *tries) {
    bool is_relieved = false;
    for (uint32_t hub = 0; hub < graph->nodes_count; hub++) {
        struct graph_set members = graph->neighbours[hub];
        for (uint32_t member = graph_set_next(&members, 0);
             member < GRAPH_NODES_MAX && graph_degree(graph, hub) > degree_max;
             member = graph_set_next(&members, member + 1)) {
            is_relieved |= move_member(k, degree_max, costs, hub, member, work, graph, tries);
        }
    }
    return is_relieved;
}

static void topology_make_sparse(uint32_t k, uint32_t degree_max, const struct costs *costs,
                                 struct topology_work *work, struct graph *ret_graph) {
    uint32_t hops_max = topology_hops_max(costs->members_count);
    choose_relays(k, costs, &work->relays);
    graph_init_complete(ret_graph, costs->members_count);
    for (uint32_t node = 0; node < costs->members_count; node++) {
        graph_levels(ret_graph, &work->relays, node, hops_max, work->levels[node]);
    }
    for (uint32_t i = costs_sort_edges(costs, work->edges); i-- > 0;) {
        try_edge(k, hops_max, work->edges[i], work, ret_graph);
    }
    uint32_t tries = TRIES_MAX;
    while (relieve_hubs(k, degree_max, costs, work, ret_graph, &tries)) {
        /* What could not be given away may be now, when others have edges that they had not. */
    }
}

enum { GAIN_TENTHS = 9 }; /* of the cost that is left, if a change is worth it */

/* ---- graphs ---- */

uint32_t topology_k(const struct topology_rules *rules, uint32_t members_count) {
    ASSERT(rules->k <= TOPOLOGY_K_MAX);
    uint32_t k = rules->k == 0 ? TOPOLOGY_K_DEFAULT : rules->k;
    return k < members_count ? k : members_count - 1;
}

uint32_t topology_hops_max(uint32_t members_count) {
    uint32_t hops = 0;
    while (1u << hops < members_count) {
        hops++;
    }
    return hops;
}

static uint32_t degree_cap(const struct topology_rules *rules, uint32_t k) {
    uint32_t usual = 2 * k > TOPOLOGY_DEGREE_DEFAULT ? 2 * k : TOPOLOGY_DEGREE_DEFAULT;
    uint32_t cap = rules->degree_max == 0 ? usual : rules->degree_max;
    uint32_t least = k + 1 > 3 ? k + 1 : 3; /* below, there are only rings */
    return cap > least ? cap : least;
}

void topology_make(const struct topology_rules *rules, const struct costs *costs, struct topology_work *work,
                   struct graph *ret_graph) {
    uint32_t k = topology_k(rules, costs->members_count);
    switch (rules->kind) {
    case TOPOLOGY_SPARSE:
        topology_make_sparse(k, degree_cap(rules, k), costs, work, ret_graph);
        break;
    case TOPOLOGY_TREE:
        topology_make_tree(k, costs, work, ret_graph);
        break;
    }
}

static bool has_degrees(const struct graph *graph, uint32_t degree_min) {
    uint32_t node = 0;
    while (node < graph->nodes_count && graph_degree(graph, node) >= degree_min) {
        node++;
    }
    return node == graph->nodes_count;
}

bool topology_keeps_rules(const struct topology_rules *rules, const struct graph *graph) {
    uint32_t k = topology_k(rules, graph->nodes_count);
    if (rules->kind == TOPOLOGY_TREE) {
        return graph_is_connected(graph) && has_degrees(graph, k);
    }
    return graph_is_k_connected(graph, k) && graph_diameter(graph) <= topology_hops_max(graph->nodes_count);
}

static uint32_t connectivity_of(const struct graph *graph) {
    uint32_t k = 0;
    while (k < TOPOLOGY_K_MAX && graph_is_k_connected(graph, k + 1)) {
        k++;
    }
    return k;
}

void topology_judge(const struct graph *graph, const struct costs *costs,
                    struct topology_judgement *ret_judgement) {
    struct topology_judgement judgement = {
        .edges_count = graph_edges_count(graph),
        .degree_min = GRAPH_NODES_MAX,
        .hops_max = graph_diameter(graph),
        .connectivity = connectivity_of(graph),
        .weakness = graph_weakness(graph),
    };
    for (uint32_t node = 0; node < graph->nodes_count; node++) {
        uint32_t degree = graph_degree(graph, node);
        judgement.degree_min = degree < judgement.degree_min ? degree : judgement.degree_min;
        judgement.degree_max = degree > judgement.degree_max ? degree : judgement.degree_max;
    }
    judgement.cost_us = costs_of_graph(costs, graph, &judgement.unknown_count);
    judgement.cost_us -= (uint64_t)judgement.unknown_count * COSTS_UNKNOWN_US;
    *ret_judgement = judgement;
}

/* ---- topologies ---- */

enum err topology_set_edges(struct topology *topology, const struct graph *graph, const struct costs *costs) {
    ASSERT(topology->members_count == graph->nodes_count && costs->members_count == graph->nodes_count);
    if (graph_edges_count(graph) > TOPOLOGY_EDGES_MAX) {
        return ERR_LIMIT;
    }
    uint32_t count = 0;
    for (uint32_t a = 0; a < graph->nodes_count; a++) {
        const struct graph_set *others = &graph->neighbours[a];
        for (uint32_t b = graph_set_next(others, a); b < GRAPH_NODES_MAX; b = graph_set_next(others, b + 1)) {
            topology->edges[count++] = (struct topology_edge){
                .a = (uint16_t)a, .b = (uint16_t)b, .cost_us = costs_of_edge(costs, a, b)};
        }
    }
    topology->edges_count = count;
    return ERR_OK;
}

void topology_get_graph(const struct topology *topology, struct graph *ret_graph) {
    graph_init(ret_graph, topology->members_count);
    for (uint32_t i = 0; i < topology->edges_count; i++) {
        graph_join(ret_graph, topology->edges[i].a, topology->edges[i].b);
    }
}

uint32_t topology_find(const struct topology *topology, const struct address *address) {
    uint32_t index = 0;
    while (index < topology->members_count && !address_equal(&topology->members[index].address, address)) {
        index++;
    }
    return index;
}

static bool has_same_members(const struct topology *a, const struct topology *b) {
    uint32_t i = 0;
    while (i < a->members_count && i < b->members_count && peer_equal(&a->members[i], &b->members[i])) {
        i++;
    }
    return i == a->members_count && i == b->members_count;
}

bool topology_is_better(const struct topology *next, const struct topology *current,
                        const struct topology_rules *rules, const struct costs *costs) {
    if (!has_same_members(next, current)) {
        return true;
    }
    struct graph next_graph;
    struct graph current_graph;
    topology_get_graph(next, &next_graph);
    topology_get_graph(current, &current_graph);
    bool is_next_good = topology_keeps_rules(rules, &next_graph);
    bool is_current_good = topology_keeps_rules(rules, &current_graph);
    if (is_next_good != is_current_good) {
        return is_next_good;
    }
    uint64_t next_us = costs_of_graph(costs, &next_graph, NULL);
    uint64_t current_us = costs_of_graph(costs, &current_graph, NULL);
    return next_us < current_us && next_us * 10 <= current_us * GAIN_TENTHS;
}

/*
 * The wire form of a topology: topology.h.
 *
 *      u8 version, u64 sequence, u8 k, varint members, the members;
 *      then for each member but the last: varint how many edges to later members, and for each edge
 *      varint members skipped since the last one named, varint cost (0: unknown)
 */

enum { VERSION = 1 };

/* ---- writing ---- */

static void write_edges(struct wire_writer *writer, const struct topology *topology) {
    uint32_t next = 0;
    for (uint32_t a = 0; a + 1 < topology->members_count; a++) {
        uint32_t end = next;
        while (end < topology->edges_count && topology->edges[end].a == a) {
            end++;
        }
        wire_write_varint(writer, end - next);
        for (uint32_t last = a; next < end; next++) {
            const struct topology_edge *edge = &topology->edges[next];
            ASSERT(edge->b > last && edge->b < topology->members_count);
            wire_write_varint(writer, edge->b - last - 1);
            wire_write_varint(writer, edge->cost_us == COSTS_UNKNOWN_US ? 0 : edge->cost_us + 1);
            last = edge->b;
        }
    }
    ASSERT(next == topology->edges_count);
}

struct bytes topology_write(const struct topology *topology, uint8_t *memory, size_t memory_size) {
    ASSERT(topology->members_count > 0 && topology->members_count <= GROUP_MEMBERS_MAX);
    ASSERT(topology->k <= TOPOLOGY_K_MAX);
    struct wire_writer writer;
    wire_writer_init(&writer, memory, memory_size);
    wire_write_u8(&writer, VERSION);
    wire_write_u64(&writer, topology->sequence);
    wire_write_u8(&writer, (uint8_t)topology->k);
    wire_write_varint(&writer, topology->members_count);
    for (uint32_t i = 0; i < topology->members_count; i++) {
        peer_write(&writer, PEER_MEMBER, &topology->members[i]);
    }
    write_edges(&writer, topology);
    return wire_writer_bytes(&writer);
}

/* ---- reading ---- */

static bool is_unique(const struct topology *topology, uint32_t index) {
    const struct peer *member = &topology->members[index];
    uint32_t i = 0;
    while (i < index && !address_equal(&topology->members[i].address, &member->address) &&
           memcmp(topology->members[i].key, member->key, PEER_KEY_SIZE) != 0) {
        i++;
    }
    return i == index;
}

static void read_members(struct wire_reader *reader, struct topology *topology) {
    uint32_t count = (uint32_t)wire_read_varint(reader, GROUP_MEMBERS_MAX);
    wire_read_check(reader, count > 0, "no members");
    for (uint32_t i = 0; i < count && reader->err == ERR_OK; i++) {
        peer_read(reader, PEER_MEMBER, &topology->members[i]);
        wire_read_check(reader, is_unique(topology, i), "a member twice");
    }
    topology->members_count = count;
}

/* The edges of one member to later ones. */
static void read_edges_of(struct wire_reader *reader, uint32_t a, struct topology *topology) {
    uint32_t later_count = topology->members_count - 1 - a;
    uint32_t count = (uint32_t)wire_read_varint(reader, later_count);
    uint32_t last = a;
    for (uint32_t i = 0; i < count && reader->err == ERR_OK; i++) {
        if (topology->edges_count == TOPOLOGY_EDGES_MAX) {
            wire_read_fail(reader, ERR_LIMIT, "too many edges");
            return;
        }
        uint32_t left = topology->members_count - 1 - last; /* members that may still be named */
        uint32_t needed = count - i;
        if (left < needed) {
            wire_read_fail(reader, ERR_INVALID, "an edge to nobody");
            return;
        }
        last += 1 + (uint32_t)wire_read_varint(reader, left - needed);
        uint32_t cost = (uint32_t)wire_read_varint(reader, (uint64_t)COSTS_US_MAX + 1);
        topology->edges[topology->edges_count++] = (struct topology_edge){
            .a = (uint16_t)a, .b = (uint16_t)last, .cost_us = cost == 0 ? COSTS_UNKNOWN_US : cost - 1};
    }
}

enum err topology_read(struct bytes bytes, struct topology *ret_topology, struct err_detail *detail) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    wire_read_version(&reader, VERSION, "unknown version");
    ret_topology->sequence = wire_read_u64(&reader);
    ret_topology->k = wire_read_u8_max(&reader, TOPOLOGY_K_MAX);
    ret_topology->edges_count = 0;
    read_members(&reader, ret_topology);
    for (uint32_t a = 0; a + 1 < ret_topology->members_count && reader.err == ERR_OK; a++) {
        read_edges_of(&reader, a, ret_topology);
    }
    return wire_reader_finish(&reader, detail);
}
