/*
 * The paper's theorems 1 and 2, through crowd_step().
 *
 * Theorem 1: no shuffle cuts a connected (undirected) graph. A shuffle changes only the edges of its two
 * nodes. Whatever the other edges are, the graph stays connected if and only if these two are connected
 * afterwards, and everybody who was a neighbour of one of them is still one of either. So all graphs of n
 * nodes are covered by all pairs of views; for up to four nodes the other edges are tried out as well.
 *
 * All choices of a shuffle: the partner, which neighbours go over, and their order. They come from the
 * generator, so seeds are tried until as many different shuffles were seen as there can be.
 */
#include "crowd-street.h"

enum { NODES_MAX = 6, SEEN_SLOTS = 8192, SEEDS_MAX = 1000000 };

static struct street street;

static int clean(void **state) {
    (void)state;
    street_done(&street);
    memset(&street, 0, sizeof street);
    return 0;
}

/* ---- theorem 1 ---- */

struct shuffles {
    unsigned nodes_count;
    unsigned view_size;
    unsigned shuffle_size;
    uint64_t seen[SEEN_SLOTS];
    size_t seen_count;
};

static struct shuffles shuffles;

/* Ordered choices of `taken` out of `count`. */
static size_t ways(size_t count, size_t taken) {
    size_t result = 1;
    for (size_t i = 0; i < taken && i < count; i++) {
        result *= count - i;
    }
    return result;
}

static bool note_seen(uint64_t shuffle) {
    size_t slot = prng_mix(shuffle) % SEEN_SLOTS;
    while (shuffles.seen[slot] != 0 && shuffles.seen[slot] != shuffle) {
        slot = (slot + 1) % SEEN_SLOTS;
    }
    bool is_new = shuffles.seen[slot] == 0;
    shuffles.seen[slot] = shuffle;
    shuffles.seen_count += is_new;
    return is_new;
}

/* Bit i: node i + 1. */
static unsigned view_mask(uint8_t name) {
    const struct view *view = &street.crowds[name]->view;
    unsigned mask = 0;
    for (int i = 0; i < view->count; i++) {
        mask |= 1u << (view->neighbours[i].peer.address.ip[15] - 1);
    }
    return mask;
}

static void install_mask(uint8_t name, unsigned mask) {
    struct view *view = &street.crowds[name]->view;
    view->count = 0;
    for (uint8_t i = 0; i < shuffles.nodes_count; i++) {
        if ((mask >> i & 1) != 0) {
            view->neighbours[view->count++] = (struct crowd_neighbour){.peer = street_peer(i + 1)};
        }
    }
}

static bool is_connected(const unsigned edges[NODES_MAX]) {
    unsigned reached = 1;
    for (unsigned round = 0; round < shuffles.nodes_count; round++) {
        for (unsigned i = 0; i < shuffles.nodes_count; i++) {
            bool touches = (reached >> i & 1) != 0 || (edges[i] & reached) != 0;
            reached |= touches ? edges[i] | 1u << i : 0;
        }
    }
    return reached == (1u << shuffles.nodes_count) - 1;
}

/* All views that the nodes beside these two may have. */
static void check_all_others(unsigned partner, const unsigned before[2], const unsigned after[2]) {
    unsigned n = shuffles.nodes_count;
    for (unsigned others = 0; others < 1u << (n * (n - 2)); others++) {
        unsigned edges[NODES_MAX] = {0};
        unsigned place = 0;
        for (unsigned i = 1; i < n; i++) {
            edges[i] = i == partner ? 0 : others >> (n * place++) & ((1u << n) - 1);
        }
        edges[0] = before[0];
        edges[partner] = before[1];
        bool was_connected = is_connected(edges);
        edges[0] = after[0];
        edges[partner] = after[1];
        assert_true(!was_connected || is_connected(edges));
    }
}

static void check_shuffle(unsigned partner, const unsigned before[2], const unsigned after[2]) {
    unsigned both = 1u | 1u << partner;
    assert_true((after[1] & 1u) != 0); /* the edge turns round */
    assert_int_equal((before[0] | before[1]) & ~both & ~(after[0] | after[1]), 0);
    if (shuffles.nodes_count <= 4) {
        check_all_others(partner, before, after);
    }
}

/* In the view of the partner, node 2 stands for the partner and the partner for node 2. */
static unsigned rename_partner(unsigned mask, unsigned partner) {
    unsigned second = mask >> 1 & 1;
    unsigned other = mask >> partner & 1;
    mask &= ~(2u | 1u << partner);
    return mask | other << 1 | second << partner;
}

static uint64_t describe(uint64_t shuffle, const struct crowd_message *message) {
    for (unsigned i = 0; i < message->entries_count; i++) {
        shuffle = shuffle * 8 + message->entries[i].peer.address.ip[15];
    }
    return shuffle * 8;
}

static void shuffle_once(unsigned own_mask, unsigned partner_mask, uint64_t seed) {
    install_mask(1, own_mask);
    prng_init(&street.crowds[1]->prng, seed);
    street_shuffle(&street, 1);
    unsigned partner = street.crowds[1]->overlay.partner.address.ip[15] - 1u;
    uint8_t partner_name = (uint8_t)(partner + 1);
    struct crowd_message asked = street_sent(&street, CROWD_MESSAGE_SHUFFLE, partner_name);
    unsigned before[2] = {own_mask, rename_partner(partner_mask, partner)};
    install_mask(partner_name, before[1]);
    prng_init(&street.crowds[partner_name]->prng, prng_mix(seed));
    street_tell(&street, 1, partner_name, &asked);
    struct crowd_message answer = street_sent(&street, CROWD_MESSAGE_SHUFFLED, 1);
    street_tell(&street, partner_name, 1, &answer);
    if (note_seen(describe(describe(8 + partner_name, &asked), &answer))) {
        unsigned after[2] = {view_mask(1), view_mask(partner_name)};
        check_shuffle(partner, before, after);
    }
}

static void try_pair(unsigned own_mask, unsigned partner_mask, bool is_cyclon) {
    size_t own_count = (size_t)__builtin_popcount(own_mask);
    size_t others_count = (size_t)__builtin_popcount(partner_mask & ~1u); /* without the asker */
    size_t size = shuffles.shuffle_size;
    size_t expected = ways(own_count - 1, size - 1) * ways(others_count, size);
    expected *= is_cyclon ? 1 : own_count; /* all are of one age: the first */
    memset(shuffles.seen, 0, sizeof shuffles.seen);
    shuffles.seen_count = 0;
    for (uint64_t seed = 1; shuffles.seen_count < expected; seed++) {
        assert_true(seed < SEEDS_MAX);
        shuffle_once(own_mask, partner_mask, seed);
    }
}

static void try_all(unsigned nodes_count, enum crowd_kind kind, unsigned view_size, unsigned shuffle_size) {
    struct crowd_config config = {
        .kind = kind,
        .view_size = (uint8_t)view_size,
        .shuffle_size = (uint8_t)shuffle_size,
        .is_unlimited = true,
    };
    shuffles.nodes_count = nodes_count;
    shuffles.view_size = view_size;
    shuffles.shuffle_size = shuffle_size;
    for (uint8_t i = 1; i <= nodes_count; i++) {
        street_add(&street, i, config);
        street.crowds[i]->overlay.shuffle_at_us = UINT64_MAX;
    }
    unsigned all = (1u << nodes_count) - 1;
    for (unsigned own = 2; own <= all; own += 2) { /* never itself */
        for (unsigned partner = 0; partner <= all; partner++) {
            if ((partner & 2u) == 0 && (unsigned)__builtin_popcount(own) <= view_size &&
                (unsigned)__builtin_popcount(partner) <= view_size) {
                try_pair(own, partner, kind == CROWD_CYCLON);
            }
        }
    }
    street_done(&street);
}

static void try_nodes(unsigned nodes_count) {
    for (unsigned view_size = 1; view_size < nodes_count; view_size++) {
        for (unsigned shuffle_size = 1; shuffle_size <= view_size; shuffle_size++) {
            try_all(nodes_count, CROWD_PROOFS, view_size, shuffle_size);
            try_all(nodes_count, CROWD_CYCLON, view_size, shuffle_size);
        }
    }
}

static void no_shuffle_cuts_a_graph_of_up_to_four_nodes(void **state) {
    (void)state;
    try_nodes(2);
    try_nodes(3);
    try_nodes(4);
}

static void no_shuffle_cuts_a_graph_of_five_nodes(void **state) {
    (void)state;
    try_nodes(5);
}

/* A million shuffles. */
static void no_shuffle_cuts_a_graph_of_six_nodes(void **state) {
    (void)state;
    if (UNIT_IS_SANITIZED) {
        skip();
    }
    try_nodes(6);
}

/* ---- theorem 2 ---- */

static bool reaches_all(unsigned from, unsigned nodes_count) {
    unsigned reached = 1u << from;
    for (unsigned round = 0; round < nodes_count; round++) {
        for (unsigned i = 0; i < nodes_count; i++) {
            reached |= (reached >> i & 1) != 0 ? view_mask((uint8_t)(i + 1)) : 0;
        }
    }
    return reached == (1u << nodes_count) - 1;
}

/* A chain of directed edges: nobody reaches the first, the last reaches nobody. */
static unsigned shuffle_until_healed(enum crowd_kind kind, uint64_t seed) {
    enum { NODES = 8, SHUFFLES_MAX = 10000 };
    struct crowd_config config = {.kind = kind, .view_size = 3, .shuffle_size = 2, .is_unlimited = true};
    struct prng prng;
    prng_init(&prng, seed);
    for (uint8_t i = 1; i <= NODES; i++) {
        config.seed = seed * 100 + i;
        street_add(&street, i, config);
        street.crowds[i]->overlay.shuffle_at_us = UINT64_MAX;
        street_install(&street, i, i == NODES ? "" : (char[]){(char)(i + 1), 0});
    }
    unsigned healed_pairs = 0; /* bit: this one has reached everybody at some time */
    unsigned count = 0;
    while (healed_pairs != (1u << NODES) - 1) {
        assert_true(++count < SHUFFLES_MAX);
        uint8_t name = (uint8_t)prng_between(&prng, 1, NODES);
        street_shuffle(&street, name);
        street_post(&street, name);
        street_deliver(&street);
        for (unsigned i = 0; i < NODES; i++) {
            healed_pairs |= reaches_all(i, NODES) ? 1u << i : 0;
        }
    }
    street_done(&street);
    return count;
}

static void directed_partitions_heal(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        shuffle_until_healed(CROWD_PROOFS, seed);
        shuffle_until_healed(CROWD_CYCLON, seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(no_shuffle_cuts_a_graph_of_up_to_four_nodes, clean),
        cmocka_unit_test_teardown(no_shuffle_cuts_a_graph_of_five_nodes, clean),
        cmocka_unit_test_teardown(no_shuffle_cuts_a_graph_of_six_nodes, clean),
        cmocka_unit_test_teardown(directed_partitions_heal, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
