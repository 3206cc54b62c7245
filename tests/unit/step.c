#include "base/step.h"

#include "aborts.h"
#include "unit.h"

enum { ACTIONS_MAX = 3, MEMORY_SIZE = STEP_MESSAGE_SIZE_MAX + 8 };

struct fixture {
    struct outbox out;
    struct action actions[ACTIONS_MAX];
    uint8_t memory[MEMORY_SIZE];
    struct address peer;
};

static struct fixture fixture;

static int make(void **state) {
    fixture = (struct fixture){.peer = address_ipv4(127, 0, 0, 3, 7070)};
    outbox_init(&fixture.out, fixture.actions, ACTIONS_MAX, fixture.memory, MEMORY_SIZE);
    *state = &fixture;
    return 0;
}

static void begins_empty_and_asleep(void **state) {
    struct fixture *f = *state;
    assert_int_equal(f->out.actions_count, 0);
    assert_int_equal(f->out.wake_at_us, STEP_NEVER_US);
}

static void keeps_actions_in_order_with_all_they_say(void **state) {
    struct fixture *f = *state;
    outbox_save(&f->out, 7, UINT64_MAX, BYTES("slot"));
    outbox_send(&f->out, &f->peer, BYTES("message"));
    outbox_notice(&f->out, 9, BYTES("n"));
    assert_int_equal(f->out.actions_count, 3);
    const struct action *actions = f->out.actions;
    assert_int_equal(actions[0].kind, ACTION_SAVE);
    assert_int_equal(actions[0].code, 7);
    assert_int_equal(actions[0].number, UINT64_MAX);
    assert_bytes_equal(actions[0].bytes, BYTES("slot"));
    assert_int_equal(actions[1].kind, ACTION_SEND);
    assert_true(address_equal(&actions[1].to, &f->peer));
    assert_bytes_equal(actions[1].bytes, BYTES("message"));
    assert_int_equal(actions[2].kind, ACTION_NOTICE);
    assert_int_equal(actions[2].code, 9);
    assert_bytes_equal(actions[2].bytes, BYTES("n"));
}

static void copies_the_bytes(void **state) {
    struct fixture *f = *state;
    char message[] = "first";
    outbox_send(&f->out, &f->peer, bytes_of_string(message));
    memcpy(message, "other", 5);
    outbox_send(&f->out, &f->peer, bytes_of_string(message));
    assert_bytes_equal(f->out.actions[0].bytes, BYTES("first"));
    assert_bytes_equal(f->out.actions[1].bytes, BYTES("other"));
    assert_in_range((uintptr_t)f->out.actions[0].bytes.data, (uintptr_t)f->memory,
                    (uintptr_t)(f->memory + MEMORY_SIZE - 5));
}

static void clearing_empties_and_frees_the_memory(void **state) {
    struct fixture *f = *state;
    static const uint8_t slot[MEMORY_SIZE]; /* all there is */
    for (unsigned step = 0; step < 5; step++) {
        outbox_save(&f->out, 1, step, bytes_of(slot, sizeof slot));
        outbox_wake_at(&f->out, step);
        outbox_clear(&f->out);
        begins_empty_and_asleep(state);
    }
}

static void leaves_nothing_of_an_earlier_action(void **state) {
    struct fixture *f = *state;
    outbox_save(&f->out, 7, 8, BYTES("slot"));
    outbox_clear(&f->out);
    outbox_send(&f->out, &f->peer, BYTES(""));
    assert_int_equal(f->out.actions[0].code, 0);
    assert_int_equal(f->out.actions[0].number, 0);
    assert_int_equal(f->out.actions[0].bytes.size, 0);
}

static void wakes_at_the_earliest_time_asked_for(void **state) {
    struct fixture *f = *state;
    outbox_wake_at(&f->out, 500);
    outbox_wake_at(&f->out, 300);
    outbox_wake_at(&f->out, 400);
    outbox_wake_at(&f->out, STEP_NEVER_US);
    assert_int_equal(f->out.wake_at_us, 300);
    outbox_wake_at(&f->out, 0);
    assert_int_equal(f->out.wake_at_us, 0);
}

static void needs_no_memory_for_actions_without_bytes(void **state) {
    struct fixture *f = *state;
    outbox_init(&f->out, f->actions, ACTIONS_MAX, NULL, 0);
    outbox_notice(&f->out, 1, bytes_of(NULL, 0));
    outbox_save(&f->out, 2, 3, bytes_of(NULL, 0));
    assert_int_equal(f->out.actions_count, 2);
    assert_int_equal(f->out.actions[1].bytes.size, 0);
}

static void takes_exactly_the_memory_and_the_actions_it_has(void **state) {
    struct fixture *f = *state;
    static const uint8_t message[STEP_MESSAGE_SIZE_MAX];
    outbox_send(&f->out, &f->peer, bytes_of(message, sizeof message));
    outbox_save(&f->out, 1, 1, BYTES("8 bytes."));
    outbox_notice(&f->out, 1, bytes_of(NULL, 0));
    assert_int_equal(f->out.memory_used, MEMORY_SIZE);
    assert_int_equal(f->out.actions_count, ACTIONS_MAX);
}

static void send_too_long(void *argument) {
    struct fixture *f = argument;
    outbox_send(&f->out, &f->peer, bytes_of(f->memory, STEP_MESSAGE_SIZE_MAX + 1));
}

static void save_too_much(void *argument) {
    struct fixture *f = argument;
    static const uint8_t slot[MEMORY_SIZE + 1];
    outbox_save(&f->out, 1, 1, bytes_of(slot, sizeof slot));
}

static void act_too_often(void *argument) {
    struct fixture *f = argument;
    for (unsigned i = 0; i <= ACTIONS_MAX; i++) {
        outbox_notice(&f->out, i, bytes_of(NULL, 0));
    }
}

static void aborts_on_a_step_that_appends_too_much(void **state) {
    assert_true(aborts(send_too_long, *state, "STEP_MESSAGE_SIZE_MAX"));
    assert_true(aborts(save_too_much, *state, "out->memory_size - out->memory_used"));
    assert_true(aborts(act_too_often, *state, "out->actions_count < out->actions_max"));
}

static void knows_whom_an_event_is_from(void **state) {
    (void)state;
    struct peer peer = {.address = address_ipv4(10, 0, 0, 1, 80), .key = {1}};
    struct event event = {.kind = EVENT_MESSAGE, .from = peer.address, .from_key = {1}};
    assert_true(event_is_from(&event, &peer));
    event.from_key[0] = 2;
    assert_false(event_is_from(&event, &peer));
    event.from_key[0] = 0; /* not known: the address decides */
    assert_true(event_is_from(&event, &peer));
    event.from.port = 81;
    assert_false(event_is_from(&event, &peer));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(begins_empty_and_asleep, make),
        cmocka_unit_test_setup(keeps_actions_in_order_with_all_they_say, make),
        cmocka_unit_test_setup(copies_the_bytes, make),
        cmocka_unit_test_setup(clearing_empties_and_frees_the_memory, make),
        cmocka_unit_test_setup(leaves_nothing_of_an_earlier_action, make),
        cmocka_unit_test_setup(wakes_at_the_earliest_time_asked_for, make),
        cmocka_unit_test_setup(needs_no_memory_for_actions_without_bytes, make),
        cmocka_unit_test_setup(takes_exactly_the_memory_and_the_actions_it_has, make),
        cmocka_unit_test_setup(aborts_on_a_step_that_appends_too_much, make),
        cmocka_unit_test(knows_whom_an_event_is_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
