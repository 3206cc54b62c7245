/* Topologies as bytes and as pictures: vectors, hostile input, escapes. */
#include "node/group/topology_picture.h"

#include <stdlib.h>

#include "base/prng.h"
#include "group-vectors.h"
#include "unit.h"

/* Too large for a stack. */
struct fixture {
    struct topology topology;
    struct topology again;
    uint8_t bytes[TOPOLOGY_SIZE_MAX];
    uint8_t second[TOPOLOGY_SIZE_MAX];
};

static int set_up(void **state) {
    *state = calloc(1, sizeof(struct fixture));
    return *state == NULL;
}

static int tear_down(void **state) {
    free(*state);
    return 0;
}

static void make_members(struct topology *topology, uint32_t members_count) {
    topology->sequence = 7;
    topology->k = 2;
    topology->members_count = members_count;
    topology->edges_count = 0;
    for (uint32_t i = 0; i < members_count; i++) {
        topology->members[i] = (struct peer){.address = address_ipv4(192, 0, 2, (uint8_t)i, 7070)};
        memset(topology->members[i].key, 0x5a, PEER_KEY_SIZE);
        topology->members[i].key[0] = (uint8_t)i;
    }
}

static void add_edge(struct topology *topology, uint16_t a, uint16_t b, uint32_t cost_us) {
    topology->edges[topology->edges_count++] = (struct topology_edge){a, b, cost_us};
}

/* Four members, one of them with IPv6; a square with a diagonal. */
static void make_four(struct topology *topology) {
    make_members(topology, 4);
    assert_true(address_parse(BYTES("[2001:db8::1]:443"), 0, &topology->members[3].address));
    add_edge(topology, 0, 1, 20000);
    add_edge(topology, 0, 3, 1500000);
    add_edge(topology, 1, 2, COSTS_UNKNOWN_US);
    add_edge(topology, 1, 3, 0);
    add_edge(topology, 2, 3, COSTS_US_MAX);
}

static enum err reads(struct fixture *f, struct bytes bytes) {
    uint8_t *exact = malloc(bytes.size + 1); /* of the exact size: the sanitizers see a read past the end */
    assert_non_null(exact);
    memcpy(exact, bytes.data, bytes.size);
    enum err err = topology_read(bytes_of(exact, bytes.size), &f->again, NULL);
    free(exact);
    return err;
}

/* ---- bytes ---- */

static void keeps_the_vectors_of_the_specification(void **state) {
    struct fixture *f = *state;
    make_four(&f->topology);
    vector_check("topology", topology_write(&f->topology, f->bytes, sizeof f->bytes));
    make_members(&f->topology, 1);
    f->topology.k = 1;
    vector_check("topology-of-one", topology_write(&f->topology, f->bytes, sizeof f->bytes));
}

static void reads_what_was_written_and_nothing_else(void **state) {
    struct fixture *f = *state;
    make_four(&f->topology);
    struct bytes written = topology_write(&f->topology, f->bytes, sizeof f->bytes);
    assert_int_equal(reads(f, written), ERR_OK);
    assert_int_equal(f->again.sequence, 7);
    assert_int_equal(f->again.k, 2);
    assert_int_equal(f->again.edges_count, 5);
    assert_memory_equal(f->again.edges, f->topology.edges, 5 * sizeof *f->again.edges);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(peer_equal(&f->again.members[i], &f->topology.members[i]));
        assert_int_equal(topology_find(&f->again, &f->topology.members[i].address), i);
    }
    struct address nobody = address_ipv4(192, 0, 2, 99, 1);
    assert_int_equal(topology_find(&f->again, &nobody), 4);
    assert_bytes_equal(topology_write(&f->again, f->second, sizeof f->second), written);
    for (size_t size = 0; size < written.size; size++) {
        assert_int_not_equal(reads(f, bytes_of(f->bytes, size)), ERR_OK);
    }
    f->bytes[written.size] = 0;
    assert_int_not_equal(reads(f, bytes_of(f->bytes, written.size + 1)), ERR_OK);
}

/* Every change of one byte is refused, or is another topology with this very encoding. */
static void one_topology_has_one_encoding(void **state) {
    struct fixture *f = *state;
    make_four(&f->topology);
    struct bytes written = topology_write(&f->topology, f->bytes, sizeof f->bytes);
    for (size_t i = 0; i < written.size; i++) {
        for (unsigned value = 0; value < 256; value++) {
            uint8_t kept = f->bytes[i];
            f->bytes[i] = (uint8_t)value;
            if (reads(f, written) == ERR_OK) {
                assert_bytes_equal(topology_write(&f->again, f->second, sizeof f->second), written);
            }
            f->bytes[i] = kept;
        }
    }
}

static void refuses_a_member_twice(void **state) {
    struct fixture *f = *state;
    make_four(&f->topology);
    f->topology.members[2].address = f->topology.members[1].address;
    assert_int_equal(reads(f, topology_write(&f->topology, f->bytes, sizeof f->bytes)), ERR_INVALID);
    make_four(&f->topology);
    memcpy(f->topology.members[2].key, f->topology.members[1].key, PEER_KEY_SIZE);
    assert_int_equal(reads(f, topology_write(&f->topology, f->bytes, sizeof f->bytes)), ERR_INVALID);
}

static void the_largest_topology_fits(void **state) {
    struct fixture *f = *state;
    make_members(&f->topology, GROUP_MEMBERS_MAX);
    for (uint32_t i = 0; i < GROUP_MEMBERS_MAX; i++) {
        assert_true(address_parse(BYTES("[2001:db8::1]:443"), 0, &f->topology.members[i].address));
        f->topology.members[i].address.ip[15] = (uint8_t)i;
    }
    for (uint32_t a = 0; a < GROUP_MEMBERS_MAX; a++) {
        for (uint32_t b = a + 1; b < GROUP_MEMBERS_MAX && f->topology.edges_count < TOPOLOGY_EDGES_MAX;
             b += 7) {
            add_edge(&f->topology, (uint16_t)a, (uint16_t)b, COSTS_US_MAX);
        }
    }
    assert_int_equal(f->topology.edges_count, TOPOLOGY_EDGES_MAX);
    struct bytes written = topology_write(&f->topology, f->bytes, sizeof f->bytes);
    assert_int_equal(reads(f, written), ERR_OK);
    assert_bytes_equal(topology_write(&f->again, f->second, sizeof f->second), written);
}

/* A complete graph of 256 can be said in bytes, but not be held. */
static void refuses_too_many_edges(void **state) {
    struct fixture *f = *state;
    make_members(&f->topology, GROUP_MEMBERS_MAX);
    size_t size = topology_write(&f->topology, f->bytes, sizeof f->bytes).size - (GROUP_MEMBERS_MAX - 1);
    struct wire_writer writer;
    uint8_t *memory = malloc(1 << 18);
    assert_non_null(memory);
    wire_writer_init(&writer, memory, 1 << 18);
    wire_write_bytes(&writer, bytes_of(f->bytes, size));
    for (uint32_t a = 0; a + 1 < GROUP_MEMBERS_MAX; a++) {
        wire_write_varint(&writer, GROUP_MEMBERS_MAX - 1 - a);
        for (uint32_t b = a + 1; b < GROUP_MEMBERS_MAX; b++) {
            wire_write_varint(&writer, 0);
            wire_write_varint(&writer, 1);
        }
    }
    assert_int_equal(writer.err, ERR_OK);
    assert_int_equal(reads(f, bytes_of(memory, writer.size)), ERR_LIMIT);
    free(memory);
}

/* ---- pictures ---- */

static bool contains(struct buf *text, const char *part) {
    return bytes_find(buf_bytes(text), bytes_of_string(part)) < text->size;
}

static void draws_every_member_and_edge(void **state) {
    struct fixture *f = *state;
    struct buf text;
    buf_init(&text, 1 << 20);
    make_four(&f->topology);
    assert_int_equal(topology_put_dot(&f->topology, &text), ERR_OK);
    assert_true(contains(&text, "graph \"topology 7\" {"));
    assert_true(contains(&text, "m0 [label=\"192.0.2.0:7070\", shape=doublecircle];"));
    assert_true(contains(&text, "m3 [label=\"[2001:db8::1]:443\"];"));
    assert_true(contains(&text, "m0 -- m1 [label=\"20.0 ms\"];"));
    assert_true(contains(&text, "m0 -- m3 [label=\"1.5 s\"];"));
    assert_true(contains(&text, "m1 -- m2 [label=\"unknown\", style=dashed];"));
    buf_clear(&text);
    assert_int_equal(topology_put_svg(&f->topology, &text), ERR_OK);
    assert_true(contains(&text, "<title>192.0.2.0:7070 – [2001:db8::1]:443: 1.5 s</title>"));
    assert_true(contains(&text, "stroke-dasharray"));
    buf_done(&text);
}

static void any_number_of_members_is_drawn_inside_of_the_picture(void **state) {
    struct fixture *f = *state;
    struct buf text;
    buf_init(&text, 1 << 20);
    for (uint32_t count = 1; count <= GROUP_MEMBERS_MAX; count = count < 4 ? count + 1 : count * 2) {
        make_members(&f->topology, count);
        for (uint16_t i = 0; i + 1u < count; i++) {
            add_edge(&f->topology, i, (uint16_t)(i + 1), 1000u * i);
        }
        buf_clear(&text);
        assert_int_equal(topology_put_svg(&f->topology, &text), ERR_OK);
        struct bytes rest = buf_bytes(&text);
        uint32_t circles_count = 0;
        for (size_t at = bytes_find(rest, BYTES("cx=\"")); at < rest.size;
             at = bytes_find(rest, BYTES("cx=\""))) {
            rest = bytes_skip(rest, at + 4);
            int x = atoi((const char *)rest.data);
            assert_true(x >= -400 && x <= 400);
            circles_count++;
        }
        assert_int_equal(circles_count, count);
    }
    buf_done(&text);
    buf_init(&text, 100);
    assert_int_equal(topology_put_svg(&f->topology, &text), ERR_LIMIT);
    buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_vectors_of_the_specification),
        cmocka_unit_test(reads_what_was_written_and_nothing_else),
        cmocka_unit_test(one_topology_has_one_encoding),
        cmocka_unit_test(refuses_a_member_twice),
        cmocka_unit_test(the_largest_topology_fits),
        cmocka_unit_test(refuses_too_many_edges),
        cmocka_unit_test(draws_every_member_and_edge),
        cmocka_unit_test(any_number_of_members_is_drawn_inside_of_the_picture),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
