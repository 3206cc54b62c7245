/* seal, sessions, arrivals, plain: what is opened, and what is not, whoever sends it again. */
#include "base/map.h"
#include "net-vectors.h"
#include "net/plain.h"
#include "net/sessions.h"

enum { NODES_COUNT = 3, PAYLOAD_SIZE_MAX = 256 };
static const int64_t START_US = INT64_C(1767225600000000);
static const int64_t SECOND_US = 1000000;

struct node {
    struct identity identity;
    struct sessions sessions;
};

struct world {
    struct node nodes[NODES_COUNT];
    int64_t now_us; /* what all clocks show, unless a test says otherwise */
};

static void start(struct node *node, int64_t wall_us) {
    assert_int_equal(sessions_init(&node->sessions, &node->identity, &(struct sessions_config){0}, wall_us),
                     ERR_OK);
}

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    for (size_t i = 0; i < NODES_COUNT; i++) {
        assert_int_equal(identity_random(&world->nodes[i].identity), ERR_OK);
        start(&world->nodes[i], START_US);
    }
    world->now_us = START_US + SECOND_US;
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    for (size_t i = 0; i < NODES_COUNT; i++) {
        sessions_done(&world->nodes[i].sessions);
    }
    free(world);
    return 0;
}

struct sealed {
    uint8_t data[PAYLOAD_SIZE_MAX + SEAL_OVERHEAD];
    size_t size;
};

static struct sealed seal_at(struct node *from, const struct node *to, int64_t wall_us) {
    struct sealed sealed;
    struct session *session = sessions_with(&from->sessions, to->identity.key);
    assert_non_null(session);
    sealed.size = sessions_seal(&from->sessions, session, 8, BYTES("hello"), wall_us, sealed.data);
    assert_int_equal(sealed.size, 5 + SEAL_OVERHEAD);
    return sealed;
}

static enum seal_verdict open_at(struct node *node, const struct sealed *sealed, int64_t wall_us,
                                 struct sessions_opened *opened) {
    static uint8_t out[PAYLOAD_SIZE_MAX + SEAL_OVERHEAD];
    uint8_t *exact = malloc(sealed->size + 1); /* so that the sanitizers see a read past the end */
    assert_non_null(exact);
    memcpy(exact, sealed->data, sealed->size);
    struct sessions_now now = {.monotonic_us = (uint64_t)wall_us, .wall_us = wall_us};
    enum seal_verdict verdict =
        sessions_open(&node->sessions, bytes_of(exact, sealed->size), now, out, opened);
    free(exact);
    return verdict;
}

static enum seal_verdict open_sealed(struct world *world, size_t to, const struct sealed *sealed) {
    struct sessions_opened opened;
    return open_at(&world->nodes[to], sealed, world->now_us, &opened);
}

static void load_pair(const struct vector *vector, struct identity *identity, uint8_t peer[VECTOR_SIZE_MAX],
                      struct seal_keys *keys) {
    uint8_t seed[VECTOR_SIZE_MAX];
    vector_bytes(vector, "seed", seed);
    vector_bytes(vector, "peer", peer);
    assert_int_equal(identity_from_seed(identity, seed), ERR_OK);
    assert_int_equal(seal_keys_make(identity, peer, keys), ERR_OK);
}

static void check_keys(const struct vector *vector) {
    struct identity identity;
    uint8_t peer[VECTOR_SIZE_MAX];
    struct seal_keys keys;
    load_pair(vector, &identity, peer, &keys);
    assert_bytes_equal(bytes_of(keys.sending, 32), bytes_slice(vector_expected(vector), 0, 32));
    assert_bytes_equal(bytes_of(keys.receiving, 32), bytes_slice(vector_expected(vector), 32, 64));
}

static void check_sealed(const struct vector *vector) {
    struct identity identity;
    struct seal_keys keys;
    uint8_t peer[VECTOR_SIZE_MAX];
    uint8_t payload[VECTOR_SIZE_MAX];
    uint8_t out[VECTOR_SIZE_MAX];
    load_pair(vector, &identity, peer, &keys);
    struct bytes content = vector_bytes(vector, "payload", payload);
    struct seal_head head = {
        .version = SEAL_VERSION,
        .kind = (uint8_t)vector_number(vector, "kind"),
        .counter = vector_number(vector, "counter"),
        .salt = (uint32_t)vector_number(vector, "salt"),
    };
    memcpy(head.sender, identity.key, sizeof head.sender);
    size_t size = seal_write(keys.sending, &head, content, out);
    assert_bytes_equal(bytes_of(out, size), vector_expected(vector));
    struct seal_head found;
    struct bytes opened;
    uint8_t again[VECTOR_SIZE_MAX];
    assert_true(seal_read_head(vector_expected(vector), &found));
    assert_int_equal(found.counter, head.counter);
    assert_int_equal(found.salt, head.salt);
    assert_int_equal(found.kind, head.kind);
    assert_true(seal_read(keys.sending, vector_expected(vector), again, &opened));
    assert_bytes_equal(opened, content);
}

static void check_refuse(const struct vector *vector) {
    struct plain_refuse refuse = {
        .reason = (uint8_t)vector_number(vector, "reason"),
        .version = (uint8_t)vector_number(vector, "version"),
        .time_us = vector_number(vector, "time"),
    };
    uint8_t echo[VECTOR_SIZE_MAX];
    uint8_t out[PLAIN_SIZE_MAX];
    memcpy(refuse.echo, vector_bytes(vector, "echo", echo).data, sizeof refuse.echo);
    assert_bytes_equal(plain_write_refuse(&refuse, out), vector_expected(vector));
    struct plain_refuse again;
    assert_true(plain_read_refuse(vector_expected(vector), &again));
    assert_int_equal(again.time_us, refuse.time_us);
    assert_false(plain_read_refuse(bytes_of(out, PLAIN_REFUSE_SIZE - 1), &again));
}

static void check_who(const struct vector *vector) {
    struct plain_who who;
    uint8_t cookie[VECTOR_SIZE_MAX];
    uint8_t out[PLAIN_SIZE_MAX];
    memcpy(who.cookie, vector_bytes(vector, "cookie", cookie).data, sizeof who.cookie);
    assert_bytes_equal(plain_write_who(&who, out), vector_expected(vector));
    assert_true(plain_read_who(vector_expected(vector), &who));
    out[PLAIN_WHO_SIZE - 1] = 1;
    assert_false(plain_read_who(bytes_of(out, PLAIN_WHO_SIZE), &who));
}

static void check_here(const struct vector *vector) {
    struct plain_here here;
    uint8_t value[VECTOR_SIZE_MAX];
    uint8_t out[PLAIN_SIZE_MAX];
    memcpy(here.cookie, vector_bytes(vector, "cookie", value).data, sizeof here.cookie);
    memcpy(here.key, vector_bytes(vector, "key", value).data, sizeof here.key);
    assert_bytes_equal(plain_write_here(&here, out), vector_expected(vector));
    assert_true(plain_read_here(vector_expected(vector), &here));
}

static void agrees_with_the_golden_vectors(void **state) {
    (void)state;
    vectors_check("keys", 2, check_keys);
    vectors_check("sealed", 3, check_sealed);
    vectors_check("refuse", 1, check_refuse);
    vectors_check("who", 1, check_who);
    vectors_check("here", 1, check_here);
}

static void what_was_sealed_is_opened_once(void **state) {
    struct world *world = *state;
    struct sessions_opened opened;
    struct sealed sealed = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
    assert_int_equal(open_at(&world->nodes[1], &sealed, world->now_us, &opened), SEAL_FRESH);
    assert_bytes_equal(opened.payload, BYTES("hello"));
    assert_memory_equal(opened.head.sender, world->nodes[0].identity.key, PEER_KEY_SIZE);
    assert_int_equal(opened.head.kind, 8);
    assert_int_equal(open_sealed(world, 1, &sealed), SEAL_REPLAYED);
}

static void every_flipped_bit_is_refused(void **state) {
    struct world *world = *state;
    struct sealed first = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
    struct sealed sealed = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
    assert_int_equal(open_sealed(world, 1, &first), SEAL_FRESH); /* its keys are cached from here on */
    for (size_t bit = 0; bit < sealed.size * 8; bit++) {
        struct sealed bad = sealed;
        bad.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        enum seal_verdict verdict = open_sealed(world, 1, &bad);
        assert_true(verdict == SEAL_FORGED || verdict == SEAL_OTHER);
    }
    for (size_t size = 0; size < sealed.size; size++) {
        struct sealed bad = sealed;
        bad.size = size;
        enum seal_verdict verdict = open_sealed(world, 1, &bad);
        assert_true(verdict == SEAL_SHORT || verdict == SEAL_FORGED);
    }
    assert_int_equal(open_sealed(world, 1, &sealed), SEAL_FRESH);
}

static void nobody_else_can_open_it(void **state) {
    struct world *world = *state;
    struct sealed sealed = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
    assert_int_equal(open_sealed(world, 2, &sealed), SEAL_FORGED);
    /* Nor can the sender be made to take its own words for those of the other. */
    assert_int_equal(open_sealed(world, 0, &sealed), SEAL_FORGED);
    memcpy(sealed.data + 1, world->nodes[1].identity.key, PEER_KEY_SIZE);
    assert_int_equal(open_sealed(world, 0, &sealed), SEAL_FORGED);
}

static void points_that_are_no_keys_are_refused(void **state) {
    struct world *world = *state;
    static const uint8_t small_order[][PEER_KEY_SIZE] = {{0}, {1}, {[0] = 0xec, [31] = 0x7f}};
    for (size_t i = 0; i < sizeof small_order / sizeof *small_order; i++) {
        assert_null(sessions_with(&world->nodes[0].sessions, small_order[i]));
    }
    assert_null(sessions_with(&world->nodes[0].sessions, world->nodes[0].identity.key));
}

static void order_does_not_matter_within_the_window(void **state) {
    enum { COUNT = ARRIVALS_COUNT };
    struct world *world = *state;
    struct sealed *sealed = calloc(COUNT + 1, sizeof *sealed);
    assert_non_null(sealed);
    for (size_t i = 0; i <= COUNT; i++) {
        sealed[i] = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
    }
    for (size_t i = 0; i < COUNT; i++) { /* 7 is prime to 1,024: all, in a wild order */
        assert_int_equal(open_sealed(world, 1, &sealed[1 + i * 7 % COUNT]), SEAL_FRESH);
    }
    for (size_t i = 0; i <= COUNT; i++) {
        enum seal_verdict expected = i == 0 ? SEAL_FRESH : SEAL_REPLAYED;
        assert_int_equal(open_sealed(world, 1, &sealed[i]), expected);
    }
    free(sealed);
}

static void what_is_older_than_the_window_is_refused(void **state) {
    struct world *world = *state;
    struct sealed late = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
    for (size_t i = 0; i < ARRIVALS_COUNT + 1; i++) {
        struct sealed sealed = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
        assert_int_equal(open_sealed(world, 1, &sealed), SEAL_FRESH);
    }
    assert_int_equal(open_sealed(world, 1, &late), SEAL_REPLAYED);
}

static void a_clock_too_far_off_is_refused(void **state) {
    struct world *world = *state;
    static const int64_t allowed = 600 * SECOND_US;
    struct sealed sealed = seal_at(&world->nodes[0], &world->nodes[1], world->now_us + allowed + 1);
    assert_int_equal(open_sealed(world, 1, &sealed), SEAL_CLOCK);
    sealed = seal_at(&world->nodes[2], &world->nodes[1], world->now_us + allowed);
    assert_int_equal(open_sealed(world, 1, &sealed), SEAL_FRESH);
    world->now_us += 3 * allowed;
    sealed = seal_at(&world->nodes[0], &world->nodes[1], world->now_us - allowed - 1);
    assert_int_equal(open_sealed(world, 1, &sealed), SEAL_CLOCK);
}

static void a_restarted_peer_is_taken_and_its_former_life_is_not(void **state) {
    struct world *world = *state;
    struct node *peer = &world->nodes[0];
    struct sealed first = seal_at(peer, &world->nodes[1], world->now_us);
    struct sealed held = seal_at(peer, &world->nodes[1], world->now_us + 1);
    assert_int_equal(open_sealed(world, 1, &first), SEAL_FRESH);
    sessions_done(&peer->sessions);
    start(peer, world->now_us + SECOND_US);
    struct sealed second = seal_at(peer, &world->nodes[1], world->now_us + SECOND_US);
    assert_int_equal(open_sealed(world, 1, &second), SEAL_FRESH);
    assert_int_equal(open_sealed(world, 1, &first), SEAL_REPLAYED);
    assert_int_equal(open_sealed(world, 1, &held), SEAL_REPLAYED);
}

static void a_restart_with_the_clock_set_back_needs_a_proof(void **state) {
    struct world *world = *state;
    struct node *peer = &world->nodes[0];
    struct sessions_opened opened;
    struct sealed first = seal_at(peer, &world->nodes[1], world->now_us + 60 * SECOND_US);
    assert_int_equal(open_sealed(world, 1, &first), SEAL_FRESH);
    uint32_t salt = peer->sessions.life.salt;
    sessions_done(&peer->sessions);
    start(peer, world->now_us);
    assert_true(peer->sessions.life.salt != salt); /* no nonce of the former life can come again */
    struct sealed second = seal_at(peer, &world->nodes[1], world->now_us);
    assert_int_equal(open_at(&world->nodes[1], &second, world->now_us, &opened), SEAL_STALE);
    session_adopt(opened.session, &opened.head);
    struct sealed third = seal_at(peer, &world->nodes[1], world->now_us);
    assert_int_equal(open_sealed(world, 1, &third), SEAL_FRESH);
    assert_int_equal(open_sealed(world, 1, &second), SEAL_REPLAYED);
    assert_int_equal(open_sealed(world, 1, &first), SEAL_REPLAYED);
}

static void a_clock_set_back_while_running_begins_a_new_life(void **state) {
    struct seal_life life;
    (void)state;
    seal_life_begin(&life, START_US);
    uint32_t salt = life.salt;
    seal_life_next(&life, START_US);
    assert_int_equal(life.counter, START_US + 1);
    seal_life_next(&life, START_US - SECOND_US / 2);
    assert_int_equal(life.counter, START_US + 2);
    assert_int_equal(life.salt, salt);
    seal_life_next(&life, START_US - 3600 * SECOND_US);
    assert_int_equal(life.counter, START_US - 3600 * SECOND_US);
    assert_true(life.salt != salt);
}

/* A machine without a clock of its own starts at the same time again and again; another one steps while it
 * runs. Bytes 33 to 43 are the nonce, and the key is the same for ever. */
static void no_nonce_comes_twice_whatever_the_clock_does(void **state) {
    enum { LIVES_COUNT = 200, SENT_COUNT = 50 };
    static const int64_t steps_us[] = {
        0, 1, -1, 3 * SECOND_US, -SECOND_US / 2, -2 * SECOND_US, -3600 * SECOND_US};
    struct world *world = *state;
    struct node *peer = &world->nodes[0];
    struct map seen;
    map_init(&seen, SEAL_ECHO_SIZE, 1, LIVES_COUNT * SENT_COUNT, 1);
    assert_int_equal(map_reserve(&seen, LIVES_COUNT * SENT_COUNT), ERR_OK);
    for (size_t life = 0; life < LIVES_COUNT; life++) {
        int64_t now_us = START_US;
        sessions_done(&peer->sessions);
        start(peer, now_us);
        for (size_t i = 0; i < SENT_COUNT; i++) {
            now_us += steps_us[(life + i) % (sizeof steps_us / sizeof *steps_us)];
            struct sealed sealed = seal_at(peer, &world->nodes[1], now_us);
            struct bytes nonce = bytes_of(sealed.data + SEAL_ECHO_OFFSET, SEAL_ECHO_SIZE);
            assert_null(map_get(&seen, nonce));
            assert_non_null(map_put(&seen, nonce));
        }
    }
    map_done(&seen);
}

/* What one key seals is nothing under any other: of the other direction, and of another pair. */
static void each_direction_of_each_pair_has_a_key_of_its_own(void **state) {
    struct world *world = *state;
    struct seal_keys ab;
    struct seal_keys ba;
    struct seal_keys ac;
    assert_int_equal(seal_keys_make(&world->nodes[0].identity, world->nodes[1].identity.key, &ab), ERR_OK);
    assert_int_equal(seal_keys_make(&world->nodes[1].identity, world->nodes[0].identity.key, &ba), ERR_OK);
    assert_int_equal(seal_keys_make(&world->nodes[0].identity, world->nodes[2].identity.key, &ac), ERR_OK);
    assert_memory_equal(ab.sending, ba.receiving, sizeof ab.sending);
    assert_memory_equal(ab.receiving, ba.sending, sizeof ab.sending);
    assert_memory_not_equal(ab.sending, ab.receiving, sizeof ab.sending);
    assert_memory_not_equal(ab.sending, ac.sending, sizeof ab.sending);
    assert_memory_not_equal(ab.sending, ac.receiving, sizeof ab.sending);
}

static void a_restart_of_ours_forgets_nothing_that_matters(void **state) {
    struct world *world = *state;
    struct sealed before = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
    assert_int_equal(open_sealed(world, 1, &before), SEAL_FRESH);
    sessions_done(&world->nodes[1].sessions);
    start(&world->nodes[1], world->now_us + 1);
    assert_int_equal(open_sealed(world, 1, &before), SEAL_STALE);
    struct sealed after = seal_at(&world->nodes[0], &world->nodes[1], world->now_us + 2);
    assert_int_equal(open_sealed(world, 1, &after), SEAL_FRESH);
}

static void strangers_push_out_strangers_only(void **state) {
    enum { STRANGERS_COUNT = 300 };
    struct world *world = *state;
    struct node *node = &world->nodes[1];
    struct node stranger;
    struct sealed known = seal_at(&world->nodes[0], node, world->now_us);
    assert_int_equal(open_sealed(world, 1, &known), SEAL_FRESH);
    sessions_know(&node->sessions, world->nodes[0].identity.key);
    struct sealed guest = seal_at(&world->nodes[2], node, world->now_us);
    assert_int_equal(open_sealed(world, 1, &guest), SEAL_FRESH);
    for (size_t i = 0; i < STRANGERS_COUNT; i++) {
        assert_int_equal(identity_random(&stranger.identity), ERR_OK);
        start(&stranger, world->now_us);
        struct sealed sealed = seal_at(&stranger, node, world->now_us + SECOND_US + (int64_t)i);
        assert_int_equal(open_sealed(world, 1, &sealed), SEAL_FRESH);
        sessions_done(&stranger.sessions);
    }
    assert_int_equal(open_sealed(world, 1, &known), SEAL_REPLAYED);
    assert_int_equal(open_sealed(world, 1, &guest), SEAL_STALE); /* forgotten, but not taken again */
}

static void made_up_keys_cost_a_bounded_number_of_exchanges(void **state) {
    struct world *world = *state;
    struct sealed sealed = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
    size_t strange_count = 0;
    sealed.data[3] ^= 1; /* else one of the keys may be the right one */
    for (size_t i = 0; i < 2000; i++) {
        sealed.data[1] = (uint8_t)i;
        sealed.data[2] = (uint8_t)(i >> 8);
        enum seal_verdict verdict = open_sealed(world, 1, &sealed);
        assert_true(verdict == SEAL_FORGED || verdict == SEAL_STRANGE);
        strange_count += verdict == SEAL_STRANGE;
    }
    assert_int_equal(strange_count, 2000 - 500);
    world->now_us += SECOND_US;
    sealed = seal_at(&world->nodes[0], &world->nodes[1], world->now_us);
    assert_int_equal(open_sealed(world, 1, &sealed), SEAL_FRESH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_golden_vectors),
        cmocka_unit_test_setup_teardown(what_was_sealed_is_opened_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_else_can_open_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(points_that_are_no_keys_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(order_does_not_matter_within_the_window, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_older_than_the_window_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_clock_too_far_off_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_restarted_peer_is_taken_and_its_former_life_is_not, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_restart_with_the_clock_set_back_needs_a_proof, set_up, tear_down),
        cmocka_unit_test(a_clock_set_back_while_running_begins_a_new_life),
        cmocka_unit_test_setup_teardown(no_nonce_comes_twice_whatever_the_clock_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_direction_of_each_pair_has_a_key_of_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_restart_of_ours_forgets_nothing_that_matters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strangers_push_out_strangers_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(made_up_keys_cost_a_bounded_number_of_exchanges, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
