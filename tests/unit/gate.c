/* gate: two real sockets on one loop, and messages made by hand: members, strangers, liars, floods, charters.
 */
#include "node/transport/gate.h"
#include "clock-manual.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

enum { NOW_S = 1800000000, TURNS_MAX = 200000, FLOOD_COUNT = 5000, SENTENCE_SIZE = 512, SECOND_US = 1000000 };

struct side {
    struct identity identity;
    struct datagram *datagram;
    struct gate *gate;
    struct peer peer; /* how others reach it */
    size_t greetings_count;
    size_t learned_count;
    uint32_t learned_version;
    size_t later_count;
    uint32_t later_version;
    bool is_shown_later; /* it tells others of charters of a later layout */
    bool is_unsure;      /* it does not know yet what others can read */
    bool is_shown_plain; /* others cannot read stewards, as it knows */
    size_t met_count;
    size_t complaints_count;
    char complaint[SENTENCE_SIZE]; /* the last */
};

struct world {
    uv_loop_t loop;
    struct clock_manual clock;
    struct sha256 sha256;
    struct identity founder;
    struct side a; /* judges */
    struct side b; /* is judged */
    struct charter charter;
    uint8_t encoded[CHARTER_SIZE_MAX];
    struct bytes charter_bytes;
    uint8_t ring[CHARTER_ID_SIZE];
};

/* ---- the world ---- */

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static void on_message(void *context, const struct datagram_message *message) {
    struct side *side = context;
    side->greetings_count++;
    gate_receive(side->gate, message);
}

static void on_learned(void *context, const struct peer *from, const struct charter *charter,
                       struct bytes encoded) {
    struct side *side = context;
    (void)from;
    side->learned_count++;
    side->learned_version = charter->version;
    gate_set_charter(side->gate, charter, encoded);
}

static void on_learned_later(void *context, uint32_t version, struct bytes encoded) {
    struct side *side = context;
    side->later_count++;
    side->later_version = version;
    assert_true(encoded.size > CHARTER_SIGNATURE_SIZE);
}

static bool keeps_later(void *context, const struct peer *peer) {
    const struct side *side = context;
    (void)peer;
    return side->is_shown_later;
}

static bool reads_stewards(void *context, const struct peer *peer) {
    const struct side *side = context;
    (void)peer;
    return !side->is_shown_plain && !side->is_unsure;
}

static bool is_known(void *context, const struct peer *peer) {
    const struct side *side = context;
    (void)peer;
    return !side->is_unsure;
}

static void on_met(void *context, const struct peer *peer) {
    struct side *side = context;
    (void)peer;
    side->met_count++;
}

static void on_complaint(void *context, const char *sentence) {
    struct side *side = context;
    side->complaints_count++;
    snprintf(side->complaint, sizeof side->complaint, "%s", sentence);
}

static void open_side(struct world *world, struct side *side) {
    struct datagram_config socket = {
        .loop = &world->loop,
        .clock = &world->clock.clock,
        .identity = &side->identity,
        .address = address_ipv4(127, 0, 0, 1, 0),
        .on_message = on_message,
        .context = side,
    };
    assert_int_equal(identity_random(&side->identity), ERR_OK);
    assert_int_equal(datagram_new(&socket, &side->datagram, NULL), ERR_OK);
    side->peer.address = datagram_address(side->datagram);
    memcpy(side->peer.key, side->identity.key, PEER_KEY_SIZE);
    struct gate_config gate = {
        .identity = &side->identity,
        .datagram = side->datagram,
        .clock = &world->clock.clock,
        .learned = on_learned,
        .learned_later = on_learned_later,
        .keeps_later = keeps_later,
        .reads_stewards = reads_stewards,
        .is_known = is_known,
        .met = on_met,
        .complain = on_complaint,
        .context = side,
    };
    assert_int_equal(gate_new(&gate, &side->gate), ERR_OK);
}

static void write_charter(struct world *world) {
    world->charter_bytes = charter_write(&world->charter, sign, &world->founder, world->encoded);
}

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    clock_manual_init(&world->clock, NOW_S * INT64_C(1000000));
    clock_manual_advance(&world->clock, SECOND_US);
    assert_int_equal(sha256_init(&world->sha256), ERR_OK);
    assert_int_equal(identity_random(&world->founder), ERR_OK);
    charter_init(&world->charter);
    memcpy(world->charter.founder, world->founder.key, PEER_KEY_SIZE);
    snprintf(world->charter.name, sizeof world->charter.name, "films");
    world->charter.created_s = world->charter.signed_s = NOW_S;
    write_charter(world);
    charter_id(&world->charter, &world->sha256, world->ring);
    open_side(world, &world->a);
    open_side(world, &world->b);
    gate_set_charter(world->a.gate, &world->charter, world->charter_bytes);
    *state = world;
    return 0;
}

static void close_side(struct side *side) {
    gate_free(side->gate);
    datagram_free(side->datagram);
    identity_done(&side->identity);
}

static int tear_down(void **state) {
    struct world *world = *state;
    close_side(&world->a);
    close_side(&world->b);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    sha256_done(&world->sha256);
    free(world);
    return 0;
}

static void turn_until(struct world *world, const size_t *count, size_t wanted) {
    for (size_t i = 0; i < TURNS_MAX && *count < wanted; i++) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(*count, wanted);
}

/* As if it had come from b. */
static void deliver(struct world *world, struct bytes bytes) {
    struct datagram_message message = {.from = world->b.peer, .kind = DATAGRAM_CHARTER, .bytes = bytes};
    gate_receive(world->a.gate, &message);
}

static void deliver_greeting(struct world *world, struct greeting *greeting) {
    uint8_t memory[GREETING_SIZE_MAX];
    deliver(world, greeting_write(greeting, memory));
}

static void invite(struct world *world, struct membership *membership, uint64_t until_s) {
    struct invitation invitation = {.from_s = NOW_S, .until_s = until_s};
    memcpy(invitation.ring, world->ring, sizeof invitation.ring);
    memcpy(invitation.key, world->b.identity.key, PEER_KEY_SIZE);
    invitation_sign(&invitation, sign, &world->founder);
    *membership = (struct membership){.is_there = true, .invitation = invitation};
}

static struct greeting hello_of(struct world *world, const struct membership *membership,
                                uint8_t memory[MEMBERSHIP_SIZE_MAX]) {
    struct greeting hello = {.kind = GREETING_HELLO, .version = 1};
    memcpy(hello.ring, world->ring, sizeof hello.ring);
    hello.membership = membership_write(membership, memory);
    return hello;
}

/* ---- who is let in ---- */

static void without_a_charter_nobody_is_let_in(void **state) {
    struct world *world = *state;
    assert_false(gate_admits(world->b.gate, &world->a.peer));
}

static void an_open_ring_lets_everybody_in_but_who_was_removed(void **state) {
    struct world *world = *state;
    world->charter.is_open = true;
    write_charter(world);
    gate_set_charter(world->a.gate, &world->charter, world->charter_bytes);
    assert_true(gate_admits(world->a.gate, &world->b.peer));
    assert_int_equal(charter_remove(&world->charter, world->b.identity.key), ERR_OK);
    write_charter(world);
    gate_set_charter(world->a.gate, &world->charter, world->charter_bytes);
    for (size_t i = 0; i < 100; i++) {
        assert_false(gate_admits(world->a.gate, &world->b.peer));
    }
    assert_non_null(strstr(world->a.complaint, "removed"));
    assert_int_equal(gate_stat(world->a.gate)->refused_count, 1); /* a second has not passed */
}

static void a_stranger_is_asked_who_he_is_once_a_second(void **state) {
    struct world *world = *state;
    for (size_t i = 0; i < 100; i++) {
        assert_false(gate_admits(world->a.gate, &world->b.peer));
    }
    turn_until(world, &world->b.greetings_count, 1);
    clock_manual_advance(&world->clock, SECOND_US);
    assert_false(gate_admits(world->a.gate, &world->b.peer));
    turn_until(world, &world->b.greetings_count, 2);
    assert_int_equal(gate_stat(world->a.gate)->turned_away_count, 101);
}

static void who_shows_a_membership_is_let_in_until_it_ends(void **state) {
    struct world *world = *state;
    struct membership membership;
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    invite(world, &membership, NOW_S + 1000);
    struct greeting hello = hello_of(world, &membership, memory);
    deliver_greeting(world, &hello);
    assert_int_equal(world->a.met_count, 1);
    assert_true(gate_admits(world->a.gate, &world->b.peer));
    struct peer other = world->b.peer;
    other.key[0] ^= 1;
    assert_false(gate_admits(world->a.gate, &other));
    clock_manual_advance(&world->clock, UINT64_C(1001) * SECOND_US);
    assert_false(gate_admits(world->a.gate, &world->b.peer));
}

static void a_new_charter_judges_everybody_again(void **state) {
    struct world *world = *state;
    struct membership membership;
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    invite(world, &membership, 0);
    struct greeting hello = hello_of(world, &membership, memory);
    deliver_greeting(world, &hello);
    assert_true(gate_admits(world->a.gate, &world->b.peer));
    world->charter.version = 2;
    write_charter(world);
    gate_set_charter(world->a.gate, &world->charter, world->charter_bytes);
    assert_false(gate_admits(world->a.gate, &world->b.peer));
    deliver_greeting(world, &hello);
    assert_true(gate_admits(world->a.gate, &world->b.peer));
}

static void a_replayed_hello_of_another_lets_nobody_in(void **state) {
    struct world *world = *state;
    struct membership membership;
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    uint8_t bytes[GREETING_SIZE_MAX];
    invite(world, &membership, 0);
    struct greeting hello = hello_of(world, &membership, memory);
    struct datagram_message message = {.from = world->b.peer, .kind = DATAGRAM_CHARTER};
    message.bytes = greeting_write(&hello, bytes);
    message.from.key[5] ^= 1; /* somebody else repeats what b once said */
    gate_receive(world->a.gate, &message);
    assert_int_equal(gate_stat(world->a.gate)->refused_count, 1);
    assert_non_null(strstr(world->a.complaint, "is refused: "));
    assert_false(gate_admits(world->a.gate, &message.from));
}

/* ---- who is refused, and why ---- */

struct refused {
    const char *text;
    bool is_other_ring;
    bool is_missing;
    bool is_forged;
    bool is_removed;
    uint64_t from_s;
    uint64_t until_s;
};

static void reasons_are_told(void **state) {
    static const struct refused cases[] = {
        {.text = "another ring", .is_other_ring = true},
        {.text = "by invitation, and it has none", .is_missing = true},
        {.text = "is not for this node", .is_forged = true},
        {.text = "has been removed", .is_removed = true},
        {.text = "has expired", .until_s = NOW_S - 1},
        {.text = "not valid yet", .from_s = NOW_S + 100000},
    };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct membership membership;
        uint8_t memory[MEMBERSHIP_SIZE_MAX];
        clock_manual_advance(&world->clock, 2 * SECOND_US);
        invite(world, &membership, cases[i].until_s);
        membership.is_there = !cases[i].is_missing;
        membership.invitation.from_s = cases[i].from_s;
        invitation_sign(&membership.invitation, sign, &world->founder);
        membership.invitation.signature[3] ^= cases[i].is_forged;
        if (cases[i].is_removed) {
            assert_int_equal(charter_remove(&world->charter, world->b.identity.key), ERR_OK);
            write_charter(world);
            gate_set_charter(world->a.gate, &world->charter, world->charter_bytes);
        }
        struct greeting hello = hello_of(world, &membership, memory);
        hello.ring[0] ^= cases[i].is_other_ring;
        deliver_greeting(world, &hello);
        assert_non_null(strstr(world->a.complaint, cases[i].text));
        turn_until(world, &world->b.greetings_count, i + 1);
        assert_non_null(strstr(world->b.complaint, cases[i].text));
        assert_non_null(strstr(world->b.complaint, "refuses this node: ring \"films\""));
        if (cases[i].is_removed) {
            world->charter.removed_count = 0;
            write_charter(world);
            gate_set_charter(world->a.gate, &world->charter, world->charter_bytes);
        }
    }
    assert_false(gate_admits(world->a.gate, &world->b.peer));
}

static void a_reason_of_a_later_version_is_shown_too(void **state) {
    struct world *world = *state;
    struct greeting refusal = {.kind = GREETING_REFUSE, .version = 1, .reason = 99, .name = "films"};
    memcpy(refusal.ring, world->ring, sizeof refusal.ring);
    deliver_greeting(world, &refusal);
    assert_int_equal(gate_stat(world->a.gate)->refusals_count, 1);
    assert_non_null(strstr(world->a.complaint, "refuses this node"));
    assert_int_equal(gate_stat(world->a.gate)->refused_count, 0); /* and nothing follows from it */
}

/* ---- bad input ---- */

static void malformed_greetings_are_counted_and_change_nothing(void **state) {
    struct world *world = *state;
    struct membership membership;
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    uint8_t bytes[GREETING_SIZE_MAX];
    invite(world, &membership, 0);
    struct greeting hello = hello_of(world, &membership, memory);
    struct bytes whole = greeting_write(&hello, bytes);
    for (size_t size = 0; size < whole.size; size++) {
        deliver(world, bytes_slice(whole, 0, size));
    }
    assert_int_equal(gate_stat(world->a.gate)->malformed_count, whole.size);
    bytes[0]++; /* a later version */
    deliver(world, whole);
    assert_int_equal(gate_stat(world->a.gate)->malformed_count, whole.size + 1);
    hello.membership = bytes_slice(hello.membership, 0, hello.membership.size - 1);
    deliver_greeting(world, &hello);
    assert_int_equal(gate_stat(world->a.gate)->malformed_count, whole.size + 2);
    assert_int_equal(world->a.met_count + world->a.complaints_count, 0);
    assert_false(gate_admits(world->a.gate, &world->b.peer));
}

static void floods_of_strangers_keep_members(void **state) {
    struct world *world = *state;
    struct membership membership;
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    uint8_t bytes[GREETING_SIZE_MAX];
    invite(world, &membership, 0);
    struct greeting hello = hello_of(world, &membership, memory);
    deliver_greeting(world, &hello);
    struct greeting bare = hello_of(world, &(struct membership){0}, memory);
    struct datagram_message message = {.kind = DATAGRAM_CHARTER, .bytes = greeting_write(&bare, bytes)};
    message.from.address = address_ipv4(127, 0, 0, 1, 9);
    for (size_t i = 0; i < FLOOD_COUNT; i++) {
        randombytes_buf(message.from.key, sizeof message.from.key);
        gate_receive(world->a.gate, &message);
        assert_false(gate_admits(world->a.gate, &message.from));
    }
    assert_int_equal(gate_stat(world->a.gate)->refused_count, FLOOD_COUNT);
    assert_true(gate_admits(world->a.gate, &world->b.peer));
}

static void who_is_refused_is_heard_again_after_a_second(void **state) {
    struct world *world = *state;
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    struct greeting hello = hello_of(world, &(struct membership){0}, memory);
    for (size_t i = 0; i < 100; i++) {
        deliver_greeting(world, &hello);
    }
    assert_int_equal(gate_stat(world->a.gate)->refused_count, 1);
    assert_int_equal(world->a.complaints_count, 1);
    clock_manual_advance(&world->clock, SECOND_US);
    deliver_greeting(world, &hello);
    assert_int_equal(gate_stat(world->a.gate)->refused_count, 2);
}

/* ---- charters ---- */

/* Many scopes, so that it takes several pieces. */
static void make_long(struct world *world) {
    while (world->charter.scope_count < CHARTER_SCOPE_COUNT_MAX) {
        struct charter_pattern *pattern = &world->charter.scope[world->charter.scope_count++];
        pattern->size = CHARTER_PATTERN_SIZE_MAX;
        memset(pattern->text, 'a', sizeof pattern->text);
    }
    write_charter(world);
    assert_true(world->charter_bytes.size > 2 * GREETING_PIECE_SIZE_MAX);
    gate_set_charter(world->a.gate, &world->charter, world->charter_bytes);
}

static void a_charter_is_fetched_piece_by_piece(void **state) {
    struct world *world = *state;
    struct peer whoever = {.address = world->a.peer.address};
    make_long(world);
    gate_fetch(world->b.gate, &whoever, world->ring);
    for (size_t i = 0; i < TURNS_MAX && world->b.learned_count == 0; i++) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
        clock_manual_advance(&world->clock, 1000);
        gate_tick(world->b.gate);
    }
    assert_int_equal(world->b.learned_count, 1);
    assert_false(gate_is_fetching(world->b.gate));
}

static void deliver_piece(struct world *world, struct bytes charter, uint32_t version, uint32_t offset) {
    struct greeting piece = {.kind = GREETING_PIECE, .version = version, .offset = offset};
    memcpy(piece.ring, world->ring, sizeof piece.ring);
    piece.size = (uint32_t)charter.size;
    size_t end =
        offset + GREETING_PIECE_SIZE_MAX < charter.size ? offset + GREETING_PIECE_SIZE_MAX : charter.size;
    piece.piece = bytes_slice(charter, offset, end);
    deliver_greeting(world, &piece);
}

static void pieces_that_nobody_asked_for_are_dropped(void **state) {
    struct world *world = *state;
    world->charter.version = 2;
    write_charter(world);
    deliver_piece(world, world->charter_bytes, 2, 0);
    assert_int_equal(world->a.learned_count, 0);
    gate_fetch(world->a.gate, &world->b.peer, world->ring);
    struct peer right = world->b.peer;
    world->b.peer.key[0] ^= 1; /* the right address, another key */
    deliver_piece(world, world->charter_bytes, 2, 0);
    assert_int_equal(world->a.learned_count, 0);
    world->b.peer = right;
    deliver_piece(world, world->charter_bytes, 2, 0);
    assert_int_equal(world->a.learned_version, 2);
}

static void a_charter_that_the_founder_did_not_sign_is_refused(void **state) {
    struct world *world = *state;
    world->charter.version = 2;
    world->charter_bytes = charter_write(&world->charter, sign, &world->b.identity, world->encoded);
    gate_fetch(world->a.gate, &world->b.peer, world->ring);
    deliver_piece(world, world->charter_bytes, 2, 0);
    assert_int_equal(world->a.learned_count, 0);
    assert_non_null(strstr(world->a.complaint, "is refused: "));
    assert_false(gate_is_fetching(world->a.gate));
}

static void a_charter_of_another_ring_than_wanted_is_refused(void **state) {
    struct world *world = *state;
    uint8_t wanted[CHARTER_ID_SIZE];
    memcpy(wanted, world->ring, sizeof wanted);
    wanted[0] ^= 1; /* as a token says */
    gate_fetch(world->a.gate, &world->b.peer, wanted);
    deliver_piece(world, world->charter_bytes, 1, 0);
    assert_int_equal(world->a.learned_count, 0);
    assert_non_null(strstr(world->a.complaint, "the charter of another ring, \"films\""));
}

static void who_boasts_of_a_version_is_not_believed_again_at_once(void **state) {
    struct world *world = *state;
    struct membership membership;
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    invite(world, &membership, 0);
    struct greeting hello = hello_of(world, &membership, memory);
    hello.version = 7;
    deliver_greeting(world, &hello);
    assert_true(gate_is_fetching(world->a.gate));
    for (size_t i = 0; i < 30 && gate_is_fetching(world->a.gate); i++) {
        clock_manual_advance(&world->clock, SECOND_US / 2);
        gate_tick(world->a.gate);
    }
    assert_false(gate_is_fetching(world->a.gate));
    deliver_greeting(world, &hello);
    assert_false(gate_is_fetching(world->a.gate));
    clock_manual_advance(&world->clock, UINT64_C(61) * SECOND_US);
    deliver_greeting(world, &hello);
    assert_true(gate_is_fetching(world->a.gate));
}

/* As a later program might write it: another layout, and more at its end. */
static struct bytes make_later(struct world *world, uint32_t version, uint8_t out[CHARTER_SIZE_MAX]) {
    static const char more[] = "what nobody knows yet";
    struct charter charter = world->charter;
    charter.version = version;
    size_t size = charter_write(&charter, sign, &world->founder, out).size - CHARTER_SIGNATURE_SIZE;
    out[4] = 3;
    memcpy(out + size, more, sizeof more);
    size += sizeof more;
    identity_sign(&world->founder, CHARTER_CONTEXT, bytes_of(out, size), out + size);
    return bytes_of(out, size + CHARTER_SIGNATURE_SIZE);
}

static void a_charter_of_a_later_layout_is_kept_and_passed_on(void **state) {
    struct world *world = *state;
    uint8_t *memory = malloc(CHARTER_SIZE_MAX);
    struct membership membership;
    uint8_t shown[MEMBERSHIP_SIZE_MAX];
    assert_non_null(memory);
    struct bytes later = make_later(world, 3, memory);
    gate_fetch(world->a.gate, &world->b.peer, world->ring);
    deliver_piece(world, later, 3, 0);
    assert_int_equal(world->a.later_count, 1);
    assert_int_equal(world->a.later_version, 3);
    assert_int_equal(world->a.learned_count, 0);
    assert_int_equal(world->a.complaints_count, 0); /* nobody is blamed */

    /* It is not fetched again, and an older one does not take its place. */
    invite(world, &membership, 0);
    struct greeting hello = hello_of(world, &membership, shown);
    hello.version = 3;
    deliver_greeting(world, &hello);
    assert_false(gate_is_fetching(world->a.gate));
    assert_int_equal(gate_set_later(world->a.gate, make_later(world, 2, memory)), 0);

    /* b has the charter that it can read, and is given the later one as soon as it keeps such ones. */
    gate_set_charter(world->b.gate, &world->charter, world->charter_bytes);
    gate_fetch(world->b.gate, &world->a.peer, world->ring);
    while (gate_is_fetching(world->b.gate)) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(world->b.later_count, 0);
    world->a.is_shown_later = true;
    gate_fetch(world->b.gate, &world->a.peer, world->ring);
    turn_until(world, &world->b.later_count, 1);
    assert_int_equal(world->b.later_version, 3);

    /* A version that can be read, and is as new, ends it. */
    world->charter.version = 3;
    write_charter(world);
    gate_set_charter(world->b.gate, &world->charter, world->charter_bytes);
    assert_int_equal(gate_set_later(world->b.gate, make_later(world, 3, memory)), 0);
    assert_int_equal(gate_set_later(world->b.gate, make_later(world, 4, memory)), 4);
    free(memory);
}

static void a_later_layout_that_the_founder_did_not_sign_is_refused(void **state) {
    struct world *world = *state;
    uint8_t *memory = malloc(CHARTER_SIZE_MAX);
    assert_non_null(memory);
    struct bytes later = make_later(world, 3, memory);
    memory[later.size - CHARTER_SIGNATURE_SIZE - 1] ^= 1;
    gate_fetch(world->a.gate, &world->b.peer, world->ring);
    deliver_piece(world, later, 3, 0);
    assert_int_equal(world->a.later_count, 0);
    assert_int_equal(world->a.complaints_count, 1);
    world->charter.created_s++; /* of another ring */
    assert_int_equal(gate_set_later(world->a.gate, make_later(world, 3, memory)), 0);
    assert_int_equal(gate_set_later(world->a.gate, world->charter_bytes), 0); /* of no later layout */
    free(memory);
}

/* a has gone over to stewards. */
static void hand_over(struct world *world) {
    struct stewards stewards = {.count = 1, .needed = {1, 1, 1, 1, 1}};
    memcpy(stewards.keys[0], world->a.identity.key, PEER_KEY_SIZE);
    assert_int_equal(charter_hand_over(&world->charter, &stewards, NOW_S, sign, &world->founder, NULL),
                     ERR_OK);
    write_charter(world);
    gate_set_charter(world->a.gate, &world->charter, world->charter_bytes);
}

static void settle(struct world *world) {
    for (size_t i = 0; i < TURNS_MAX && gate_is_fetching(world->b.gate); i++) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
    }
}

static void a_newcomer_gets_the_charter_that_it_can_read(void **state) {
    struct world *world = *state;
    hand_over(world);
    /* Before a knows, it gives none: there is one of each. */
    world->a.is_unsure = true;
    gate_fetch(world->b.gate, &world->a.peer, NULL);
    for (int i = 0; i < 4; i++) { /* a first answer may wait until b has proved its address */
        turn_until(world, &world->a.greetings_count, (size_t)i + 1);
        clock_manual_advance(&world->clock, SECOND_US);
        gate_tick(world->b.gate);
    }
    assert_int_equal(world->b.greetings_count, 0);
    world->a.is_unsure = false;
    world->a.is_shown_plain = true;
    gate_fetch(world->b.gate, &world->a.peer, NULL);
    turn_until(world, &world->b.learned_count, 1);
    assert_int_equal(world->b.learned_version, 1);
    /* It hears of nothing newer, and would not be given it. */
    gate_fetch(world->b.gate, &world->a.peer, world->ring);
    settle(world);
    assert_int_equal(world->b.learned_count, 1);
    assert_int_equal(world->b.complaints_count, 0);
    world->a.is_shown_plain = false; /* it was upgraded */
    gate_fetch(world->b.gate, &world->a.peer, world->ring);
    turn_until(world, &world->b.learned_count, 2);
    assert_int_equal(world->b.learned_version, 2);
}

static void a_plain_charter_is_taken_from_the_disk_only_if_it_is_one(void **state) {
    struct world *world = *state;
    uint8_t plain[CHARTER_SIZE_MAX / 16] = {0};
    struct bytes bytes = bytes_of(plain, world->charter_bytes.size);
    assert_true(bytes.size <= sizeof plain);
    memcpy(plain, world->charter_bytes.data, bytes.size);
    hand_over(world);
    gate_set_charter(world->b.gate, &world->charter, world->charter_bytes); /* it has seen no other */
    world->b.is_shown_plain = true;
    for (int round = 0; round < 2; round++) {
        plain[bytes.size - 1] ^= round == 0;
        gate_set_plain(world->b.gate, bytes);
        plain[bytes.size - 1] ^= round == 0;
        size_t before = world->a.greetings_count;
        gate_greet(world->b.gate, &world->a.peer);
        turn_until(world, &world->a.greetings_count, before + 1);
        gate_fetch(world->a.gate, &world->b.peer, world->ring);
        size_t heard = world->a.greetings_count;
        for (int i = 0; i < 50; i++) {
            uv_run(&world->loop, UV_RUN_NOWAIT);
        }
        assert_int_equal(world->a.greetings_count > heard, round == 1); /* a piece of it comes */
    }
}

static void stewards_of_whom_nobody_has_heard_are_looked_for(void **state) {
    struct world *world = *state;
    struct membership membership = {.is_there = true};
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    membership.invitation.generation = 1;
    membership.invitation.signatures.count = 1;
    memcpy(membership.invitation.ring, world->ring, CHARTER_ID_SIZE);
    struct greeting hello = hello_of(world, &membership, memory);
    hello.version = 1; /* it says nothing newer */
    deliver_greeting(world, &hello);
    assert_false(gate_is_fetching(world->a.gate));
    clock_manual_advance(&world->clock, 2 * SECOND_US);
    hello.version = 2;
    deliver_greeting(world, &hello);
    assert_true(gate_is_fetching(world->a.gate));
    assert_int_equal(world->a.met_count, 0); /* it is refused all the same */
}

static void who_asks_for_another_ring_is_refused(void **state) {
    struct world *world = *state;
    struct greeting ask = {.kind = GREETING_ASK};
    memset(ask.ring, 7, sizeof ask.ring);
    deliver_greeting(world, &ask);
    turn_until(world, &world->b.greetings_count, 1);
    assert_non_null(strstr(world->b.complaint, "another ring"));
    memset(ask.ring, 0, sizeof ask.ring);
    ask.offset = UINT32_MAX; /* behind its end: no answer */
    deliver_greeting(world, &ask);
    assert_int_equal(gate_stat(world->a.gate)->refused_count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_charter_nobody_is_let_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_open_ring_lets_everybody_in_but_who_was_removed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_stranger_is_asked_who_he_is_once_a_second, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_shows_a_membership_is_let_in_until_it_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_new_charter_judges_everybody_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_replayed_hello_of_another_lets_nobody_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reasons_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reason_of_a_later_version_is_shown_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(malformed_greetings_are_counted_and_change_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(floods_of_strangers_keep_members, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_refused_is_heard_again_after_a_second, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_charter_is_fetched_piece_by_piece, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pieces_that_nobody_asked_for_are_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_charter_that_the_founder_did_not_sign_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_charter_of_another_ring_than_wanted_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_boasts_of_a_version_is_not_believed_again_at_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_charter_of_a_later_layout_is_kept_and_passed_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_later_layout_that_the_founder_did_not_sign_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_newcomer_gets_the_charter_that_it_can_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plain_charter_is_taken_from_the_disk_only_if_it_is_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(stewards_of_whom_nobody_has_heard_are_looked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_asks_for_another_ring_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
