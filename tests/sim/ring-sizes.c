/*
 * Rings of every size around r, growing and shrinking: nobody who is a member ever stops to be one, and what
 * lookups say is what the sorted live nodes say.
 */
#include "../unit/unit.h"
#include "base/wire.h"
#include "protocol/ring/ring.h"
#include "sim/experiments/ring_world.h"

enum {
    BEYOND = 6,
    KEYS_COUNT = 16,
    SETTLED_S = 60,
    COPIES = 3,
    FRESH_S = 10, /* so long an answer from the table may be behind, as local.c has it */
};

struct story {
    struct ring_world world;
    struct prng prng;
    struct ring_id keys[KEYS_COUNT];
    uint32_t asked_count;
    uint32_t answered_count;
    uint32_t wrong_count;
    uint64_t changed_at_us;    /* a node came or went */
    bool *was_member;          /* [node]: in its present life */
    struct ring_id *own_from;  /* [node]: as RING_ARC said last */
    struct ring_id *held_from; /* [node]: as RING_HELD said last */
    uint32_t *lives;
};

/* The places of an answer: the owner, which is returned, and those behind it, as many as hold copies. */
static bool holders_are_right(struct story *story, uint32_t node, uint32_t owner, uint8_t count,
                              struct wire_reader *reader, struct vnode *ret_owner) {
    const struct ring_world *world = &story->world;
    uint32_t members_count = world->members_count;
    uint32_t position = 0;
    while (position < members_count && world->members[position] != owner) {
        position++;
    }
    bool are_right = count == (members_count < COPIES ? members_count : COPIES);
    for (uint8_t i = 0; i < count; i++) {
        struct vnode vnode;
        ring_read_vnode(ring_world_ring(world, node), reader, &vnode);
        uint32_t expected = world->members[(position + i) % members_count];
        are_right = are_right && ring_id_equal(vnode.id, world->vnodes[expected].id);
        *ret_owner = i == 0 ? vnode : *ret_owner;
    }
    return are_right;
}

/* The owner is the live node at or behind the key. What is answered without asking may be FRESH_S old. */
static void on_notice(void *context, struct sim *sim, uint32_t node, uint32_t code, struct bytes bytes) {
    struct story *story = context;
    struct wire_reader reader;
    struct vnode vnode = {0};
    wire_reader_init(&reader, bytes);
    if (code == RING_ARC || code == RING_HELD) {
        (void)wire_read_u8(&reader);
        (code == RING_ARC ? story->own_from : story->held_from)[node] = message_read_id(&reader);
    }
    if (code != RING_FOUND && code != RING_LOST) {
        return;
    }
    uint64_t number = wire_read_u64(&reader);
    uint8_t hops_count = wire_read_u8(&reader);
    story->answered_count++;
    uint8_t count = wire_read_u8(&reader);
    ring_world_list_members(&story->world);
    uint32_t owner = ring_world_owner(&story->world, story->keys[number]);
    bool are_holders = holders_are_right(story, node, owner, count, &reader, &vnode);
    bool is_behind = code == RING_FOUND && hops_count == 0 &&
                     sim_now_us(sim) - story->changed_at_us < FRESH_S * SIM_SECOND_US;
    story->wrong_count +=
        !(ring_id_equal(vnode.id, story->world.vnodes[owner].id) && are_holders) && !is_behind;
}

/* After every step: a member stays one. */
static const char *check_membership(void *context, const struct sim *sim, uint32_t node) {
    struct story *story = context;
    const struct ring *ring = ring_world_ring(&story->world, node);
    if (sim_life(sim, node) != story->lives[node]) {
        story->lives[node] = sim_life(sim, node);
        story->was_member[node] = false;
    }
    if (ring == NULL) {
        return NULL;
    }
    bool is_member = ring_is_member(ring, 0) && ring_mode(ring) != RING_JOINING;
    if (story->was_member[node] && !is_member) {
        return "safety: a member has left its ring";
    }
    story->was_member[node] = is_member;
    return NULL;
}

static void begin(struct story *story, uint32_t nodes_count, uint8_t list_size, uint64_t seed) {
    *story = (struct story){0};
    struct sim_config sim = {
        .seed = seed,
        .nodes_max = nodes_count,
        .network = {.latency_us = 10000, .jitter_us = 5000, .loss_ppm = 2000},
    };
    struct ring_config config = {.list_size = list_size, .table_capacity = 64, .lookups_max = 64};
    assert_int_equal(ring_world_init(&story->world, &sim, &config), ERR_OK);
    prng_init_stream(&story->prng, seed, 9);
    story->was_member = test_calloc(nodes_count, sizeof *story->was_member);
    story->own_from = test_calloc(nodes_count, sizeof *story->own_from);
    story->held_from = test_calloc(nodes_count, sizeof *story->held_from);
    story->lives = test_calloc(nodes_count, sizeof *story->lives);
    sim_observe(story->world.sim,
                &(struct sim_observer){.context = story, .notice = on_notice, .check = check_membership});
}

static void end(struct story *story) {
    ring_world_done(&story->world);
    test_free(story->was_member);
    test_free(story->lives);
    test_free(story->own_from);
    test_free(story->held_from);
}

static void run_for(struct story *story, uint64_t us) {
    struct sim *sim = story->world.sim;
    if (sim_run_until(sim, sim_now_us(sim) + us) != ERR_OK) {
        char text[SIM_FAILURE_TEXT_SIZE_MAX];
        fail_msg("n %u, r %u: %s", story->world.nodes_count, story->world.config.list_size,
                 sim_failure_format(sim_failure(sim), text));
    }
}

static void start(struct story *story, uint32_t node, uint32_t contact) {
    uint64_t now_us = sim_now_us(story->world.sim);
    story->changed_at_us = now_us;
    sim_start_at(story->world.sim, node, now_us);
    assert_int_equal(ring_world_join(&story->world, node, contact, now_us + 1), ERR_OK);
}

static enum err find_holders(struct story *story, uint32_t node, uint32_t key, uint64_t at_us) {
    uint8_t memory[RING_ID_SIZE + 1];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    message_write_id(&writer, story->keys[key]);
    wire_write_u8(&writer, COPIES);
    return sim_command_at(story->world.sim, node, at_us, RING_FIND, key, bytes_of(memory, writer.size));
}

/* Every member asks for the same keys. */
static void ask_everywhere(struct story *story) {
    for (uint32_t i = 0; i < KEYS_COUNT; i++) {
        story->keys[i] = (struct ring_id){prng_u64(&story->prng), prng_u64(&story->prng)};
    }
    uint64_t at_us = sim_now_us(story->world.sim) + 1;
    for (uint32_t i = 0; i < story->world.nodes_count; i++) {
        for (uint32_t j = 0; j < KEYS_COUNT && ring_world_is_member(&story->world, i); j++) {
            assert_int_equal(find_holders(story, i, j, at_us), ERR_OK);
            story->asked_count++;
        }
    }
}

static bool is_dead(const struct story *story, const struct vnode *vnode) {
    for (uint32_t i = 0; i < story->world.nodes_count; i++) {
        if (ring_id_equal(story->world.vnodes[i].id, vnode->id)) {
            return sim_status(story->world.sim, i) != SIM_UP;
        }
    }
    return false; /* padding */
}

/* With fewer nodes than a list has room for, dead ones may be behind the others. */
static const char *find_dead(const struct story *story, uint32_t *ret_node) {
    for (uint32_t i = 0; i < story->world.members_count; i++) {
        *ret_node = story->world.members[i];
        const struct ring *ring = ring_world_ring(&story->world, *ret_node);
        for (uint8_t j = 0; j < ring_list_size(ring); j++) {
            const struct vnode *vnode = ring_successor(ring, 0, j);
            if (vnode->peer.address.port != 0 && is_dead(story, vnode)) {
                return "a list names a node that is dead";
            }
        }
    }
    return NULL;
}

/* One ideal ring of all who are up, within SETTLED_S. */
static void settle(struct story *story, const char *when) {
    struct sim *sim = story->world.sim;
    uint64_t begun_us = sim_now_us(sim);
    const char *reason = "";
    uint32_t node = 0;
    while (reason != NULL && sim_now_us(sim) < begun_us + SETTLED_S * SIM_SECOND_US) {
        run_for(story, SIM_SECOND_US / 4);
        reason = ring_world_check_ideal(&story->world, &node);
        reason = reason != NULL ? reason : find_dead(story, &node);
    }
    if (reason != NULL) {
        fail_msg("%s: n %u, r %u, seed %ju: node %u: %s", when, story->world.nodes_count,
                 story->world.config.list_size, (uintmax_t)sim_seed(sim), node, reason);
    }
}

/* All lookups of all members, several times. */
static void assert_lookups_are_right(struct story *story, const char *when) {
    for (unsigned i = 0; i < 4; i++) {
        story->asked_count = story->answered_count = story->wrong_count = 0;
        ask_everywhere(story);
        run_for(story, 4 * SIM_SECOND_US);
        if (story->wrong_count > 0 || story->answered_count != story->asked_count) {
            fail_msg("%s: n %u, r %u, seed %ju: of %u lookups %u were answered and %u were wrong", when,
                     story->world.nodes_count, story->world.config.list_size,
                     (uintmax_t)sim_seed(story->world.sim), story->asked_count, story->answered_count,
                     story->wrong_count);
        }
    }
}

/* The member so many steps before a position in the circle. */
static struct ring_id id_before(const struct ring_world *world, uint32_t position, uint32_t steps) {
    uint32_t count = world->members_count;
    return world->vnodes[world->members[(position + count - steps % count) % count]].id;
}

/* What each node was told that it owns and holds is what the sorted members say. */
static bool are_arcs_right(struct story *story) {
    struct ring_world *world = &story->world;
    ring_world_list_members(world);
    for (uint32_t i = 0; i < world->members_count; i++) {
        uint32_t node = world->members[i];
        struct ring_id from;
        struct ring_id to;
        struct ring_id expected = id_before(world, i, world->members_count < COPIES ? 0 : COPIES);
        if (!ring_held_arc(ring_world_ring(world, node), 0, COPIES, &from, &to) ||
            !ring_id_equal(from, expected) || !ring_id_equal(story->held_from[node], from) ||
            !ring_id_equal(to, world->vnodes[node].id) ||
            !ring_id_equal(story->own_from[node], id_before(world, i, 1))) {
            return false;
        }
    }
    return true;
}

static void assert_arcs_are_right(struct story *story, const char *when) {
    for (unsigned i = 0; i < 40 && !are_arcs_right(story); i++) {
        run_for(story, SIM_SECOND_US / 2);
    }
    if (!are_arcs_right(story)) {
        fail_msg("%s: n %u, r %u, seed %ju: arcs", when, story->world.nodes_count,
                 story->world.config.list_size, (uintmax_t)sim_seed(story->world.sim));
    }
}

static const uint8_t list_sizes[] = {2, 3, 8};

static void grows_one_by_one(void **state) {
    (void)state;
    for (size_t l = 0; l < sizeof list_sizes; l++) {
        uint8_t r = list_sizes[l];
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct story story;
            begin(&story, r + BEYOND, r, seed);
            for (uint32_t i = 0; i < (uint32_t)r + BEYOND; i++) {
                start(&story, i, i == 0 ? UINT32_MAX : (uint32_t)prng_below(&story.prng, i));
                settle(&story, "growing");
                assert_lookups_are_right(&story, "growing");
                assert_arcs_are_right(&story, "growing");
            }
            end(&story);
        }
    }
}

static void grows_at_once(void **state) {
    (void)state;
    for (size_t l = 0; l < sizeof list_sizes; l++) {
        uint8_t r = list_sizes[l];
        for (uint32_t n = 1; n <= (uint32_t)r + BEYOND; n++) {
            struct story story;
            begin(&story, n, r, n);
            for (uint32_t i = 0; i < n; i++) {
                start(&story, i, i == 0 ? UINT32_MAX : 0);
            }
            settle(&story, "growing at once");
            assert_lookups_are_right(&story, "growing at once");
            assert_arcs_are_right(&story, "growing at once");
            end(&story);
        }
    }
}

static void shrinks_by_any_number(void **state) {
    (void)state;
    for (size_t l = 0; l < sizeof list_sizes; l++) {
        uint8_t r = list_sizes[l];
        for (uint32_t n = 2; n <= (uint32_t)r + BEYOND; n++) {
            for (uint32_t killed = 1; killed < n; killed++) {
                struct story story;
                begin(&story, n, r, 100 * n + killed);
                for (uint32_t i = 0; i < n; i++) {
                    start(&story, i, i == 0 ? UINT32_MAX : 0);
                }
                settle(&story, "before");
                run_for(&story, 15 * SIM_SECOND_US);
                for (uint32_t i = 0; i < killed; i++) {
                    uint32_t victim = 0;
                    do {
                        victim = (uint32_t)prng_below(&story.prng, n);
                    } while (sim_status(story.world.sim, victim) != SIM_UP);
                    sim_crash(story.world.sim, victim);
                }
                story.changed_at_us = sim_now_us(story.world.sim);
                settle(&story, "shrinking");
                assert_lookups_are_right(&story, "shrinking");
                assert_arcs_are_right(&story, "shrinking");
                end(&story);
            }
        }
    }
}

/*
 * Exact while the lists go round; else the mean of all nodes within 10 %, and of a hundred nodes at most two
 * farther off than 35 %: some seventy gaps are known to each, which is a spread of an eighth.
 */
static void every_node_knows_about_how_many_there_are(void **state) {
    (void)state;
    static const uint32_t counts[] = {9, 12, 15, 17, 25, 40, 100, 300, 2000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        struct story story;
        uint32_t count = counts[c];
        begin(&story, count, 8, count);
        ring_world_install(&story.world, count);
        for (uint32_t i = 0; i < count; i++) {
            sim_start_at(story.world.sim, i, 0);
        }
        run_for(&story, 1800 * SIM_SECOND_US);
        double sum = 0;
        uint32_t far_count = 0;
        for (uint32_t i = 0; i < count; i++) {
            double ratio = (double)ring_estimated_size(ring_world_ring(&story.world, i)) / count;
            far_count += ratio < 0.65 || ratio > 1.35;
            sum += ratio;
        }
        if (sum / count < 0.9 || sum / count > 1.1 || 50 * far_count > count ||
            (count <= 15 && sum != count)) {
            fail_msg("n %u: mean %.3f of the truth, %u nodes far off", count, sum / count, far_count);
        }
        end(&story);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_one_by_one),
        cmocka_unit_test(grows_at_once),
        cmocka_unit_test(shrinks_by_any_number),
        cmocka_unit_test(every_node_knows_about_how_many_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
