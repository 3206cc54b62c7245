/* Arbitrary bytes as a topology. Held to: what is read is written again as the same bytes, and can be drawn
 * and judged. */
#include "fuzz.h"

#include "node/group/topology_picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct topology topology;
    static uint8_t memory[TOPOLOGY_SIZE_MAX];
    if (topology_read(bytes_of(data, size), &topology, NULL) != ERR_OK) {
        return 0;
    }
    ASSERT(bytes_equal(topology_write(&topology, memory, sizeof memory), bytes_of(data, size)));
    struct graph graph;
    topology_get_graph(&topology, &graph);
    ASSERT(graph_edges_count(&graph) == topology.edges_count);
    struct graph_weakness weakness = graph_weakness(&graph);
    ASSERT(weakness.bridges_count < topology.members_count);
    struct buf text;
    buf_init(&text, 1 << 22);
    ASSERT(topology_put_svg(&topology, &text) != ERR_LIMIT);
    ASSERT(topology_put_dot(&topology, &text) != ERR_LIMIT);
    buf_done(&text);
    return 0;
}
