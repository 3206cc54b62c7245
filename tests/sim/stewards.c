/*
 * stewards - the machines of stewards (node/ring/acts.h) under loss, lost keys and amendments at once.
 *
 * The production table with files of its own for each node, a clock that the test moves, and a network that
 * loses a third of the answers; a command signs as `mnemon ring sign` does. After each story:
 *
 *      safety      all charters that any node ever had lie on one line, each signed by enough who acted then
 *      liveness    as long as enough keys are left, what all want comes to count, everywhere
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../unit/clock-manual.h"
#include "../unit/unit.h"
#include "base/prng.h"
#include "net/identity.h"
#include "node/ring/acts.h"
#include "node/transport/ring_files.h"

enum {
    NODES_COUNT = 5,
    SEEDS_COUNT = 8,
    NOW_S = 1800000000,
    ROUNDS_MAX = 400,
    ROUND_US = 1000000,
    PATH_SIZE_MAX = 256
};

struct machine {
    char directory[PATH_SIZE_MAX];
    struct identity identity;
    struct acts *acts;
    struct charter charter;
    bool is_lost; /* with its key */
};

struct world {
    char root[64];
    struct clock_manual clock;
    struct prng prng;
    uint8_t ring[CHARTER_ID_SIZE];
    struct machine nodes[NODES_COUNT];
    struct charter line[64]; /* what was seen, in the order of generation and version */
    size_t line_count;
    struct charter scratch;
    uint8_t memory[CHARTER_SIZE_MAX];
};

static uint64_t world_now_s(const struct world *world) {
    return (uint64_t)clock_wall_us(&world->clock.clock) / 1000000;
}

/* Any two that any two nodes had follow each other, or are the same. */
static void world_check(struct world *world, const struct charter *charter) {
    for (size_t i = 0; i < world->line_count; i++) {
        const struct charter *other = &world->line[i];
        if (other->links_count == charter->links_count && other->version == charter->version) {
            assert_int_equal(other->replicas, charter->replicas);
            assert_int_equal(other->removed_count, charter->removed_count);
            return;
        }
        assert_true(charter_succeeds(other, charter, NULL) == ERR_OK ||
                    charter_succeeds(charter, other, NULL) == ERR_OK);
    }
    assert_true(world->line_count < sizeof world->line / sizeof *world->line);
    world->line[world->line_count++] = *charter;
}

/* As the transport does: a new charter on the disk counts from then on. */
static void world_look(struct world *world, struct machine *node) {
    struct bytes encoded;
    enum err err = ring_files_read_charter(node->directory, &world->scratch, world->memory, &encoded, NULL);
    assert_int_equal(err, ERR_OK);
    if (charter_succeeds(&node->charter, &world->scratch, NULL) == ERR_OK) {
        node->charter = world->scratch;
        acts_set_charter(node->acts, &node->charter, world->ring);
        world_check(world, &node->charter);
    }
}

static void world_ask(struct world *world, struct machine *asker, struct machine *asked) {
    struct buf question;
    struct buf answer;
    buf_init(&question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    acts_put_question(asker->acts, &question);
    assert_int_equal(acts_answer(asked->acts, NULL, buf_bytes(&question), &answer, NULL), ERR_OK);
    if (prng_below(&world->prng, 3) > 0) { /* else it is lost */
        assert_int_equal(acts_take_answer(asker->acts, buf_bytes(&answer), NULL), ERR_OK);
    }
    buf_done(&question);
    buf_done(&answer);
}

static void world_round(struct world *world) {
    clock_manual_advance(&world->clock, ROUND_US);
    for (size_t i = 0; i < NODES_COUNT; i++) {
        struct machine *node = &world->nodes[i];
        struct machine *other = &world->nodes[prng_below(&world->prng, NODES_COUNT)];
        if (!node->is_lost) {
            acts_beat(node->acts);
            world_look(world, node);
        }
        if (!node->is_lost && !other->is_lost && other != node) {
            world_ask(world, node, other);
        }
    }
}

static void world_rounds(struct world *world, int count) {
    for (int i = 0; i < count; i++) {
        world_round(world);
    }
}

/* Until all that are left have the replicas and the generation. */
static bool world_agrees(struct world *world, uint8_t replicas, uint32_t generation) {
    for (int round = 0; round < ROUNDS_MAX; round++) {
        bool is_same = true;
        for (size_t i = 0; i < NODES_COUNT; i++) {
            const struct machine *node = &world->nodes[i];
            is_same &= node->is_lost ||
                       (node->charter.replicas == replicas && node->charter.links_count == generation);
        }
        if (is_same) {
            return true;
        }
        world_round(world);
    }
    return false;
}

/* ---- commands ---- */

static enum err world_sign(struct world *world, struct machine *node, const struct act *act) {
    struct acts *acts;
    char id[ACTS_ID_TEXT_SIZE];
    bool is_done = false;
    assert_int_equal(acts_open(node->directory, &world->clock.clock, &node->charter, &acts, NULL), ERR_OK);
    enum err err = acts_sign(acts, act, &node->identity, id, &is_done, NULL);
    acts_free(acts);
    return err;
}

static enum err world_amend(struct world *world, size_t index, uint8_t replicas) {
    struct machine *node = &world->nodes[index];
    uint8_t *memory = malloc(CHARTER_RULES_SIZE_MAX);
    assert_non_null(memory);
    world->scratch = node->charter;
    world->scratch.replicas = replicas;
    struct act act = {.kind = ACT_RULES,
                      .body = charter_write_rules_act(&world->scratch, world_now_s(world), memory)};
    enum err err = world_sign(world, node, &act);
    free(memory);
    return err;
}

static struct stewards world_stewards(const struct world *world, size_t first, size_t count, uint8_t needed) {
    struct stewards stewards = {.count = 0};
    for (size_t i = first; i < first + count; i++) {
        assert_int_equal(stewards_add(&stewards, world->nodes[i].identity.key), ERR_OK);
    }
    memset(stewards.needed, needed, sizeof stewards.needed);
    return stewards;
}

static enum err world_hand_over(struct world *world, size_t index, size_t first, size_t count,
                                uint8_t needed) {
    struct machine *node = &world->nodes[index];
    uint8_t *memory = malloc(CHARTER_RULES_SIZE_MAX);
    assert_non_null(memory);
    struct stewards stewards = world_stewards(world, first, count, needed);
    struct act act = {.kind = ACT_STEWARDS,
                      .body =
                          charter_write_stewards_act(&node->charter, &stewards, world_now_s(world), memory)};
    enum err err = world_sign(world, node, &act);
    free(memory);
    return err;
}

/* All that wait at this node, as far as it may. How many it has signed. */
static size_t world_sign_pending(struct world *world, size_t index) {
    struct machine *node = &world->nodes[index];
    struct acts *acts;
    size_t count = 0;
    assert_int_equal(acts_open(node->directory, &world->clock.clock, &node->charter, &acts, NULL), ERR_OK);
    for (size_t i = 0; i < acts_count(acts); i++) {
        struct acts_shown shown;
        acts_show(acts, i, &shown);
        count += !shown.is_done && world_sign(world, node, shown.act) == ERR_OK;
    }
    acts_free(acts);
    return count;
}

/* ---- the world ---- */

static void world_make_node(struct world *world, size_t index) {
    struct machine *node = &world->nodes[index];
    uint8_t seed[IDENTITY_SEED_SIZE] = {(uint8_t)(index + 1)};
    snprintf(node->directory, sizeof node->directory, "%s/%zu", world->root, index);
    assert_int_equal(identity_from_seed(&node->identity, seed), ERR_OK);
    struct acts_config config = {.directory = node->directory, .clock = &world->clock.clock};
    node->acts = acts_new(&config);
    assert_non_null(node->acts);
}

/* The founder, 0, has handed over to count nodes. */
static struct world *world_new(uint64_t seed, size_t count, uint8_t needed) {
    struct world *world = calloc(1, sizeof *world);
    struct sha256 sha256;
    assert_non_null(world);
    /* Each file is synced: in memory that takes no time. */
    snprintf(world->root, sizeof world->root, "%s/mnemon-stewards-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(world->root));
    clock_manual_init(&world->clock, (int64_t)NOW_S * 1000000);
    prng_init(&world->prng, seed);
    for (size_t i = 0; i < NODES_COUNT; i++) {
        world_make_node(world, i);
    }
    struct charter *charter = &world->scratch;
    charter_init(charter);
    memcpy(charter->founder, world->nodes[0].identity.key, PEER_KEY_SIZE);
    snprintf(charter->name, sizeof charter->name, "films");
    charter->created_s = charter->signed_s = NOW_S - 1000;
    struct stewards stewards = world_stewards(world, 0, count, needed);
    assert_int_equal(
        charter_hand_over(charter, &stewards, NOW_S - 500, identity_sign, &world->nodes[0].identity, NULL),
        ERR_OK);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    charter_id(charter, &sha256, world->ring);
    struct bytes encoded = charter_write(charter, NULL, NULL, world->memory);
    for (size_t i = 0; i < NODES_COUNT; i++) {
        struct machine *node = &world->nodes[i];
        assert_int_equal(ring_files_write_charter(node->directory, encoded, NULL), ERR_OK);
        node->charter = *charter;
        acts_set_charter(node->acts, charter, world->ring);
    }
    world_check(world, charter);
    return world;
}

static void remove_all(const char *path) {
    char inner[2 * PATH_SIZE_MAX];
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(inner, sizeof inner, "%.200s/%.250s", path, entry->d_name);
            remove_all(inner);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    (void)!remove(path);
}

static void world_free(struct world *world) {
    for (size_t i = 0; i < NODES_COUNT; i++) {
        acts_free(world->nodes[i].acts);
    }
    remove_all(world->root);
    free(world);
}

/* ---- stories ---- */

static void lost_keys_stop_nothing_as_long_as_enough_are_left(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS_COUNT; seed++) {
        struct world *world = world_new(seed, 5, 3);
        world->nodes[0].is_lost = true; /* the founder's among them */
        world->nodes[prng_below(&world->prng, 2) + 1].is_lost = true;
        assert_int_equal(world_amend(world, 4, 2), ERR_OK);
        for (int round = 0; round < ROUNDS_MAX && world->nodes[4].charter.replicas != 2; round++) {
            world_round(world);
            world_sign_pending(world, 3);
            world_sign_pending(world, world->nodes[1].is_lost ? 2 : 1);
        }
        assert_true(world_agrees(world, 2, 1));
        world_free(world);
    }
}

static void fewer_than_enough_change_nothing_however_long_they_try(void **state) {
    (void)state;
    struct world *world = world_new(7, 5, 3);
    world->nodes[0].is_lost = world->nodes[1].is_lost = world->nodes[2].is_lost = true;
    assert_int_equal(world_amend(world, 3, 2), ERR_OK);
    for (int round = 0; round < 50; round++) {
        world_round(world);
        world_sign_pending(world, 4);
    }
    assert_int_equal(world->nodes[3].charter.version, 2);
    assert_int_equal(world->line_count, 1);
    /* In the end nobody keeps it. */
    clock_manual_advance(&world->clock, (ACT_LASTS_S + 1) * UINT64_C(1000000));
    world_rounds(world, 3);
    struct acts *acts;
    assert_int_equal(
        acts_open(world->nodes[3].directory, &world->clock.clock, &world->nodes[3].charter, &acts, NULL),
        ERR_OK);
    assert_int_equal(acts_count(acts), 0);
    acts_free(acts);
    world_free(world);
}

static void of_two_amendments_at_once_at_most_one_counts(void **state) {
    (void)state;
    size_t counted = 0;
    for (uint64_t seed = 1; seed <= SEEDS_COUNT; seed++) {
        struct world *world = world_new(seed, 3, 2);
        assert_int_equal(world_amend(world, 0, 2), ERR_OK);
        assert_int_equal(world_amend(world, 1, 3), ERR_OK);
        assert_int_equal(world_amend(world, 1, 4), ERR_EXISTS); /* it has signed one */
        for (int round = 0; round < 40; round++) {
            world_round(world);
            for (size_t i = 0; i < 3; i++) {
                world_sign_pending(world, prng_below(&world->prng, 3));
            }
        }
        assert_true(world_agrees(world, world->nodes[0].charter.replicas, 1));
        assert_int_equal(world->nodes[0].charter.version, 3);
        counted += world->nodes[0].charter.replicas == 2;
        /* The other one is over, and can be proposed again. */
        assert_int_equal(world_amend(world, 2, 5), ERR_OK);
        world_free(world);
    }
    assert_true(counted > 0 && counted < SEEDS_COUNT); /* it is not always the same */
}

static void keys_rotate_until_none_of_the_first_is_left(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS_COUNT; seed++) {
        struct world *world = world_new(seed, 3, 2);
        for (uint32_t step = 1; step <= 2; step++) {
            assert_int_equal(world_hand_over(world, step, step, 3, 2), ERR_OK);
            for (int round = 0; round < ROUNDS_MAX && world->nodes[step + 1].charter.links_count <= step;
                 round++) {
                world_round(world);
                world_sign_pending(world, step + 1);
            }
            assert_true(world_agrees(world, 6, step + 1));
        }
        assert_int_equal(world_amend(world, 0, 2), ERR_PERMISSION);
        assert_int_equal(world_amend(world, 1, 2), ERR_PERMISSION);
        assert_int_equal(world_amend(world, 3, 2), ERR_OK);
        world_free(world);
    }
}

/* One node was away while the stewards changed, and what they agreed on. */
static void who_was_away_believes_the_new_ones(void **state) {
    (void)state;
    struct world *world = world_new(3, 3, 2);
    world->nodes[4].is_lost = true;
    assert_int_equal(world_hand_over(world, 1, 1, 3, 2), ERR_OK);
    for (int round = 0; round < ROUNDS_MAX && world->nodes[2].charter.links_count < 2; round++) {
        world_round(world);
        world_sign_pending(world, 2);
    }
    assert_true(world_agrees(world, 6, 2));
    assert_int_equal(world_amend(world, 3, 2), ERR_OK);
    for (int round = 0; round < ROUNDS_MAX && world->nodes[2].charter.replicas != 2; round++) {
        world_round(world);
        world_sign_pending(world, 2);
    }
    world->nodes[4].is_lost = false;
    assert_true(world_agrees(world, 2, 2));
    world_free(world);
}

/* One steward proposes without end: it fills its own room, and nobody else's. */
static void a_steward_that_floods_fills_its_own_room(void **state) {
    (void)state;
    struct world *world = world_new(5, 3, 2);
    size_t kept = 0;
    for (int i = 0; i < 3 * ACT_COUNT_MAX; i++) {
        uint8_t body[INVITATION_BODY_SIZE];
        struct invitation invitation = {.generation = 1, .from_s = world_now_s(world), .key = {(uint8_t)i}};
        memcpy(invitation.ring, world->ring, CHARTER_ID_SIZE);
        struct act act = {.kind = ACT_INVITATION, .body = invitation_write_body(&invitation, body)};
        kept += world_sign(world, &world->nodes[0], &act) == ERR_OK;
    }
    assert_int_equal(kept, ACT_COUNT_MAX);
    world_rounds(world, 30);
    assert_int_equal(world_amend(world, 1, 2), ERR_OK);
    for (int round = 0; round < ROUNDS_MAX && world->nodes[2].charter.replicas != 2; round++) {
        world_round(world);
        world_sign_pending(world, 2);
    }
    assert_true(world_agrees(world, 2, 1));
    world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_keys_stop_nothing_as_long_as_enough_are_left),
        cmocka_unit_test(fewer_than_enough_change_nothing_however_long_they_try),
        cmocka_unit_test(of_two_amendments_at_once_at_most_one_counts),
        cmocka_unit_test(keys_rotate_until_none_of_the_first_is_left),
        cmocka_unit_test(who_was_away_believes_the_new_ones),
        cmocka_unit_test(a_steward_that_floods_fills_its_own_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
