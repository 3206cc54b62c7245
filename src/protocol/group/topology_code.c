/*
 * The wire form of a topology: topology.h.
 *
 *      u8 version, u64 sequence, u8 k, varint members, the members;
 *      then for each member but the last: varint how many edges to later members, and for each edge
 *      varint members skipped since the last one named, varint cost (0: unknown)
 */
#include "protocol/group/topology.h"

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
    ASSERT(writer.err == ERR_OK);
    return bytes_of(memory, writer.size);
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
    if (count == 0 && reader->err == ERR_OK) {
        wire_read_fail(reader, ERR_INVALID, "no members");
    }
    for (uint32_t i = 0; i < count && reader->err == ERR_OK; i++) {
        peer_read(reader, PEER_MEMBER, &topology->members[i]);
        if (reader->err == ERR_OK && !is_unique(topology, i)) {
            wire_read_fail(reader, ERR_INVALID, "a member twice");
        }
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
    if (wire_read_u8(&reader) != VERSION && reader.err == ERR_OK) {
        wire_read_fail(&reader, ERR_UNSUPPORTED, "unknown version");
    }
    ret_topology->sequence = wire_read_u64(&reader);
    ret_topology->k = wire_read_u8_max(&reader, TOPOLOGY_K_MAX);
    ret_topology->edges_count = 0;
    read_members(&reader, ret_topology);
    for (uint32_t a = 0; a + 1 < ret_topology->members_count && reader.err == ERR_OK; a++) {
        read_edges_of(&reader, a, ret_topology);
    }
    return wire_reader_finish(&reader, detail);
}
