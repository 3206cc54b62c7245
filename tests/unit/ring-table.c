/* The location table: in order, and nobody's alone. */
#include "protocol/ring/table.h"

#include "unit.h"

enum { CAPACITY = 8000, SHARE = 1000 };

struct fixture {
    struct arena arena;
    struct table table;
    struct sha256 sha256;
    struct ring_id needed;
};

static bool is_needed(const void *context, struct ring_id id) {
    const struct fixture *fixture = context;
    return ring_id_equal(fixture->needed, id);
}

static void begin(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    arena_init(&fixture->arena, 16 << 20);
    assert_int_equal(sha256_init(&fixture->sha256), ERR_OK);
    assert_int_equal(table_init(&fixture->table, &fixture->arena, CAPACITY, 1, is_needed, fixture), ERR_OK);
}

static void end(struct fixture *fixture) {
    sha256_done(&fixture->sha256);
    arena_done(&fixture->arena);
}

static struct vnode vnode_at(struct fixture *fixture, struct address address, uint8_t index) {
    struct vnode vnode = {.peer.address = address, .index = index};
    vnode.id = ring_id_of_node(&fixture->sha256, &address, index);
    return vnode;
}

/* All that a /24 can have: 256 addresses of 32 places. How many got in? */
static uint32_t enter_network(struct fixture *fixture, uint8_t network) {
    uint32_t count = 0;
    for (unsigned i = 0; i < 256 * RING_VIRTUAL_MAX; i++) {
        struct address address = address_ipv4(198, 51, network, (uint8_t)(i / RING_VIRTUAL_MAX), 7070);
        struct vnode vnode = vnode_at(fixture, address, i % RING_VIRTUAL_MAX);
        count += table_enter(&fixture->table, &vnode) != NULL;
    }
    return count;
}

static struct vnode ipv6_vnode(struct fixture *fixture, uint8_t site, unsigned subnet) {
    struct address address = {.ip = {0x20, 0x01, 0x0d, 0xb8, 0, site}, .port = 7070};
    address.ip[6] = (uint8_t)(subnet >> 8);
    address.ip[7] = (uint8_t)subnet;
    return vnode_at(fixture, address, 0);
}

/* Likewise many subnets of a /48. */
static uint32_t enter_site(struct fixture *fixture, uint8_t site) {
    uint32_t count = 0;
    for (unsigned i = 0; i < 5000; i++) {
        struct vnode vnode = ipv6_vnode(fixture, site, i);
        count += table_enter(&fixture->table, &vnode) != NULL;
    }
    return count;
}

static void one_network_has_a_share_at_most(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    assert_int_equal(enter_network(&fixture, 1), SHARE);
    assert_int_equal(enter_network(&fixture, 1), SHARE); /* the same: they are in */
    assert_int_equal(enter_network(&fixture, 2), SHARE);
    assert_int_equal(enter_site(&fixture, 1), SHARE);
    assert_int_equal(enter_site(&fixture, 2), SHARE);
    assert_int_equal(fixture.table.count, 4 * SHARE);
    end(&fixture);
}

static void what_is_needed_enters_a_full_network_and_what_goes_makes_room(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    assert_int_equal(enter_site(&fixture, 1), SHARE);
    struct vnode vnode = ipv6_vnode(&fixture, 1, 60000);
    assert_null(table_enter(&fixture.table, &vnode));
    fixture.needed = vnode.id;
    assert_non_null(table_enter(&fixture.table, &vnode));
    fixture.needed = (struct ring_id){0};
    struct vnode next = ipv6_vnode(&fixture, 1, 60001);
    table_remove(&fixture.table, vnode.id);
    assert_null(table_enter(&fixture.table, &next));
    table_remove(&fixture.table, table_at(&fixture.table, 0)->vnode.id);
    assert_non_null(table_enter(&fixture.table, &next));
    end(&fixture);
}

static void a_full_table_keeps_who_answered_and_is_in_order(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    uint32_t heard_count = 0;
    for (unsigned i = 0; i < 3 * CAPACITY; i++) {
        struct address address = address_ipv4(10, (uint8_t)(i >> 8), (uint8_t)i, 1, 7070);
        struct vnode vnode = vnode_at(&fixture, address, 0);
        struct table_entry *entry = table_enter(&fixture.table, &vnode);
        assert_non_null(entry);
        entry->heard_at_us = i < CAPACITY / 2 ? i + 1 : 0;
    }
    assert_int_equal(fixture.table.count, CAPACITY);
    for (uint32_t i = 0; i < CAPACITY; i++) {
        const struct table_entry *entry = table_at(&fixture.table, i);
        heard_count += entry->heard_at_us > 0;
        assert_true(i == 0 ||
                    ring_id_compare(table_at(&fixture.table, i - 1)->vnode.id, entry->vnode.id) < 0);
        assert_ptr_equal(table_find(&fixture.table, entry->vnode.id), entry);
    }
    assert_true(heard_count > CAPACITY / 2 - CAPACITY / 50); /* of eight random ones seldom all have */
    end(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_network_has_a_share_at_most),
        cmocka_unit_test(what_is_needed_enters_a_full_network_and_what_goes_makes_room),
        cmocka_unit_test(a_full_table_keeps_who_answered_and_is_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
