/* One ring without a world: what it does with messages of its own making, of strangers and of liars. */
#include "protocol/ring/ring.h"

#include <stdlib.h>

#include "allocations.h"
#include "base/prng.h"
#include "unit.h"

enum { LIST_SIZE = 4, OTHERS_COUNT = 200 };

struct fixture {
    struct ring_config config;
    struct ring *ring;
    struct action *actions;
    uint8_t *memory;
    struct outbox out;
    struct sha256 sha256;
    uint64_t now_us;
};

static struct address self_address(void) {
    return address_ipv4(192, 0, 2, 1, 7070);
}

static int begin(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->config = (struct ring_config){.self = {.address = self_address()},
                                           .list_size = LIST_SIZE,
                                           .table_capacity = 512,
                                           .lookups_max = 16};
    fixture->now_us = 1;
    assert_int_equal(ring_new(&fixture->config, &fixture->ring), ERR_OK);
    assert_int_equal(sha256_init(&fixture->sha256), ERR_OK);
    fixture->actions = calloc(ring_actions_max(&fixture->config), sizeof *fixture->actions);
    fixture->memory = malloc(ring_memory_size(&fixture->config));
    outbox_init(&fixture->out, fixture->actions, ring_actions_max(&fixture->config), fixture->memory,
                ring_memory_size(&fixture->config));
    *state = fixture;
    return 0;
}

static int end(void **state) {
    struct fixture *fixture = *state;
    ring_free(fixture->ring);
    sha256_done(&fixture->sha256);
    free(fixture->actions);
    free(fixture->memory);
    free(fixture);
    return 0;
}

static void step(struct fixture *fixture, struct event event) {
    event.now_us = fixture->now_us;
    outbox_clear(&fixture->out);
    ring_step(fixture->ring, &event, &fixture->out);
}

static void start_alone(struct fixture *fixture) {
    step(fixture, (struct event){.kind = EVENT_START});
    step(fixture, (struct event){.kind = EVENT_COMMAND, .code = RING_JOIN});
}

static void receive(struct fixture *fixture, struct address from, struct message *message) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    step(fixture,
         (struct event){.kind = EVENT_MESSAGE, .from = from, .bytes = message_write(message, memory)});
}

static struct message question(uint8_t kind) {
    return (struct message){.version = RING_VERSION, .kind = kind, .number = 77, .wanted = 1};
}

static size_t count_actions(const struct fixture *fixture, enum action_kind kind, uint32_t code) {
    size_t count = 0;
    for (size_t i = 0; i < fixture->out.actions_count; i++) {
        const struct action *action = &fixture->out.actions[i];
        uint32_t found = kind == ACTION_SEND ? action->bytes.data[1] : action->code;
        count += action->kind == kind && found == code;
    }
    return count;
}

/* ---- alone ---- */

static void a_new_ring_of_one_owns_everything(void **state) {
    struct fixture *fixture = *state;
    start_alone(fixture);
    assert_int_equal(count_actions(fixture, ACTION_NOTICE, RING_MEMBER), 1);
    assert_int_equal(count_actions(fixture, ACTION_NOTICE, RING_ARC), 1);
    uint8_t find[RING_ID_SIZE + 1] = {9, [RING_ID_SIZE] = 3};
    step(fixture,
         (struct event){
             .kind = EVENT_COMMAND, .code = RING_FIND, .number = 5, .bytes = bytes_of(find, sizeof find)});
    assert_int_equal(count_actions(fixture, ACTION_NOTICE, RING_FOUND), 1);
    assert_int_equal(ring_estimated_size(fixture->ring), 1);
}

static void waits_at_the_door_while_nobody_answers(void **state) {
    struct fixture *fixture = *state;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct peer contact = {.address = address_ipv4(192, 0, 2, 9, 7070)};
    step(fixture, (struct event){.kind = EVENT_START});
    step(fixture, (struct event){.kind = EVENT_COMMAND,
                                 .code = RING_JOIN,
                                 .bytes = ring_write_contacts(&contact, 1, memory)});
    for (unsigned i = 0; i < 200; i++) {
        assert_false(ring_is_member(fixture->ring, 0));
        fixture->now_us = fixture->out.wake_at_us;
        step(fixture, (struct event){.kind = EVENT_WAKE});
    }
}

/* ---- strangers ---- */

static void refuses_another_charter_with_the_reason_and_tells_its_owner(void **state) {
    struct fixture *fixture = *state;
    start_alone(fixture);
    struct message message = question(MESSAGE_FIND);
    message.charter[3] = 1;
    receive(fixture, address_ipv4(198, 51, 100, 1, 1), &message);
    assert_int_equal(count_actions(fixture, ACTION_SEND, MESSAGE_REFUSED), 1);
    assert_int_equal(count_actions(fixture, ACTION_NOTICE, RING_REFUSED), 1);
    assert_int_equal(ring_counters(fixture->ring)->foreign_count, 1);
}

/* An ideal ring of many, installed. */
static void install(struct fixture *fixture) {
    struct vnode list[LIST_SIZE];
    struct vnode known[OTHERS_COUNT];
    for (unsigned i = 0; i < OTHERS_COUNT; i++) {
        known[i] = (struct vnode){.peer.address = address_ipv4(203, 0, 113, (uint8_t)(i + 1), 7070)};
        known[i].id = ring_id_of_node(&fixture->sha256, &known[i].peer.address, 0);
    }
    struct ring_id self = ring_vnode_at(fixture->ring, 0)->id;
    struct ring_id after = self;
    for (unsigned i = 0; i < LIST_SIZE; i++) {
        list[i] = known[0];
        for (unsigned j = 0; j < OTHERS_COUNT; j++) {
            if (ring_id_is_between(after, known[j].id,
                                   i == 0 || !ring_id_is_between(after, list[i].id, self) ? self
                                                                                          : list[i].id)) {
                list[i] = known[j];
            }
        }
        after = list[i].id;
    }
    step(fixture, (struct event){.kind = EVENT_START});
    ring_install_for_experiment(fixture->ring, list, &list[LIST_SIZE - 1], known, OTHERS_COUNT,
                                fixture->now_us);
}

static void does_not_amplify_for_an_address_that_has_not_proved_itself(void **state) {
    struct fixture *fixture = *state;
    install(fixture);
    struct message message = question(MESSAGE_ASK_STATE);
    struct address from = address_ipv4(198, 51, 100, 1, 1);
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    size_t asked_size = message_write(&message, memory).size;
    receive(fixture, from, &message);
    assert_true(fixture->out.actions[0].bytes.size <= 3 * asked_size);
    assert_true(address_equal(&fixture->out.actions[0].to, &from));
}

static void drops_answers_that_nobody_asked_for(void **state) {
    struct fixture *fixture = *state;
    start_alone(fixture);
    struct message message = question(MESSAGE_NODES);
    message.vnodes[0].peer.address = address_ipv4(198, 51, 100, 1, 1);
    message.nodes_vnodes_count[0] = 1;
    message.vnodes_count = 1;
    message.status = MODE_SMALL;
    receive(fixture, address_ipv4(198, 51, 100, 1, 1), &message);
    assert_int_equal(ring_counters(fixture->ring)->unasked_count, 1);
    assert_int_equal(count_actions(fixture, ACTION_SEND, MESSAGE_ASK_NODES), 0);
    assert_int_equal(ring_known_count(fixture->ring), 0);
}

static void a_question_leads_to_no_third_address(void **state) {
    struct fixture *fixture = *state;
    start_alone(fixture);
    struct message message = question(MESSAGE_ASK_NODES);
    message.status = MODE_SMALL;
    message.vnodes_count = 2;
    message.vnodes[0].peer.address = address_ipv4(198, 51, 100, 1, 1);
    message.vnodes[1].peer.address = address_ipv4(198, 51, 100, 2, 2);
    message.nodes_vnodes_count[0] = message.nodes_vnodes_count[1] = 1;
    receive(fixture, address_ipv4(198, 51, 100, 1, 1), &message);
    for (size_t i = 0; i < fixture->out.actions_count; i++) {
        const struct action *action = &fixture->out.actions[i];
        assert_true(action->kind != ACTION_SEND ||
                    address_equal(&action->to, &message.vnodes[0].peer.address));
    }
}

/* The token that proves an address, as an answer gives it. */
static uint64_t token_for(struct fixture *fixture, struct address from) {
    struct message message = question(MESSAGE_PING);
    struct message pong;
    receive(fixture, from, &message);
    assert_true(message_read(fixture->out.actions[0].bytes, message.charter, &fixture->sha256, &pong));
    return pong.token;
}

/* How many of so many at once are listened to. */
static unsigned notify(struct fixture *fixture, struct address from, uint64_t token, unsigned count) {
    uint64_t before = ring_counters(fixture->ring)->flood_count;
    for (unsigned i = 0; i < count; i++) {
        struct message message = question(MESSAGE_NOTIFY);
        message.token = token;
        receive(fixture, from, &message);
    }
    return count - (unsigned)(ring_counters(fixture->ring)->flood_count - before);
}

static void notifies_of_one_peer_are_bounded_and_the_excess_is_blamed(void **state) {
    struct fixture *fixture = *state;
    struct address flooder = address_ipv4(198, 51, 100, 1, 1);
    struct address other = address_ipv4(198, 51, 100, 2, 1);
    uint32_t blames_count;
    install(fixture);
    uint64_t token = token_for(fixture, flooder);
    assert_int_equal(notify(fixture, flooder, token, 1000), 160);
    const struct ring_blame *blames = ring_blames(fixture->ring, &blames_count);
    assert_int_equal(blames_count, 1);
    assert_int_equal(blames[0].count, 840);
    assert_true(address_equal(&blames[0].who.peer.address, &flooder));
    assert_int_equal(notify(fixture, other, token_for(fixture, other), 20), 20); /* whoever else floods */
    fixture->now_us += 1000000;
    assert_int_equal(notify(fixture, flooder, token, 1000), 50);
}

/* Who may have made its address up gets few answers, costs no peer its share, and is not blamed. */
static void notifies_of_strangers_are_bounded_together(void **state) {
    struct fixture *fixture = *state;
    struct address peer = address_ipv4(198, 51, 100, 1, 1);
    unsigned admitted = 0;
    uint32_t blames_count;
    install(fixture);
    uint64_t token = token_for(fixture, peer);
    for (unsigned i = 0; i < 100; i++) {
        admitted += notify(fixture, address_ipv4(203, 0, 113, (uint8_t)i, 1), 0, 10);
    }
    assert_int_equal(admitted, 8);
    (void)ring_blames(fixture->ring, &blames_count);
    assert_int_equal(blames_count, 0);
    assert_int_equal(notify(fixture, peer, token, 100), 100);
    fixture->now_us += 1000000;
    assert_int_equal(notify(fixture, peer, 0, 100), 4);
}

static void garbage_is_counted(void **state) {
    struct fixture *fixture = *state;
    start_alone(fixture);
    step(fixture,
         (struct event){.kind = EVENT_MESSAGE, .from = address_ipv4(1, 2, 3, 4, 5), .bytes = BYTES("GET /")});
    assert_int_equal(ring_counters(fixture->ring)->malformed_count, 1);
    assert_int_equal(fixture->out.actions_count, 0);
}

static void allocates_nothing_after_its_start(void **state) {
    struct fixture *fixture = *state;
    install(fixture);
    size_t before = allocations_count;
    struct prng prng;
    prng_init(&prng, 1);
    for (unsigned i = 0; i < 200; i++) {
        uint8_t find[RING_ID_SIZE + 1];
        prng_fill(&prng, find, RING_ID_SIZE);
        find[RING_ID_SIZE] = 1;
        step(fixture, (struct event){.kind = EVENT_COMMAND,
                                     .code = RING_FIND,
                                     .number = i,
                                     .bytes = bytes_of(find, sizeof find)});
        fixture->now_us += 50000;
        step(fixture, (struct event){.kind = EVENT_WAKE});
    }
    assert_int_equal(allocations_count, before);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_new_ring_of_one_owns_everything),
        TEST(waits_at_the_door_while_nobody_answers),
        TEST(refuses_another_charter_with_the_reason_and_tells_its_owner),
        TEST(does_not_amplify_for_an_address_that_has_not_proved_itself),
        TEST(drops_answers_that_nobody_asked_for),
        TEST(a_question_leads_to_no_third_address),
        TEST(notifies_of_one_peer_are_bounded_and_the_excess_is_blamed),
        TEST(notifies_of_strangers_are_bounded_together),
        TEST(garbage_is_counted),
        TEST(allocates_nothing_after_its_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
