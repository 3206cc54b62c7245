#include "sim/world/pool.h"
#include "sim/world/queue.h"
#include "sim/world/sim.h"

#include "unit.h"

/*
 * The test's program does what commands tell it and writes down what happens. Commands: 'S' send .bytes to
 * node .number, 'W' wake at .number (0: never), 'V' save .bytes as .number, 'N' notice .bytes.
 */
enum { LOG_COUNT_MAX = 256, TEXT_SIZE_MAX = 16 };

struct entry {
    uint32_t node;
    enum event_kind kind;
    uint64_t at_us;
    uint64_t number;
    char text[TEXT_SIZE_MAX];
};

struct log {
    struct entry entries[LOG_COUNT_MAX];
    size_t count;
};

struct recorder {
    struct log *log;
    uint32_t index;
    uint64_t wake_at_us;
};

static enum err recorder_init(void *state, const struct birth *birth) {
    struct log *const *log = birth->config;
    *(struct recorder *)state = (struct recorder){*log, birth->index, STEP_NEVER_US};
    return ERR_OK;
}

static void obey(struct recorder *recorder, const struct event *event, struct outbox *out) {
    struct address to = sim_address((uint32_t)event->number);
    switch (event->code) {
    case 'S':
        outbox_send(out, &to, event->bytes);
        break;
    case 'W':
        recorder->wake_at_us = event->number == 0 ? STEP_NEVER_US : event->number;
        break;
    case 'V':
        outbox_save(out, 0, event->number, event->bytes);
        break;
    case 'N':
        outbox_notice(out, 7, event->bytes);
        break;
    }
}

static void recorder_step(void *state, const struct event *event, struct outbox *out) {
    struct recorder *recorder = state;
    struct log *log = recorder->log;
    if (event->kind == EVENT_COMMAND) {
        obey(recorder, event, out);
    } else if (log->count < LOG_COUNT_MAX) {
        struct entry *entry = &log->entries[log->count++];
        *entry = (struct entry){recorder->index, event->kind, event->now_us, event->number, ""};
        if (event->bytes.size > 0) {
            memcpy(entry->text, event->bytes.data,
                   event->bytes.size < TEXT_SIZE_MAX ? event->bytes.size : TEXT_SIZE_MAX - 1);
        }
    }
    if (event->kind == EVENT_WAKE && recorder->wake_at_us <= event->now_us) {
        recorder->wake_at_us = STEP_NEVER_US;
    }
    outbox_wake_at(out, recorder->wake_at_us);
}

static const struct program recorder_program = {
    .name = "recorder",
    .state_size = sizeof(struct recorder),
    .actions_max = 1,
    .memory_size = STEP_MESSAGE_SIZE_MAX,
    .slots_count = 1,
    .init = recorder_init,
    .step = recorder_step,
};

struct world {
    struct sim *sim;
    struct log *log;
    struct log memory;
};

static void build(struct world *world, const struct sim_config *config) {
    world->memory.count = 0;
    world->log = &world->memory;
    world->sim = sim_new(config);
    assert_non_null(world->sim);
    for (uint32_t i = 0; i < config->nodes_max; i++) {
        uint32_t node;
        assert_int_equal(sim_add(world->sim, &recorder_program, &world->log, &node), ERR_OK);
        assert_int_equal(node, i);
        sim_start_at(world->sim, i, 0);
    }
    assert_int_equal(sim_run_until(world->sim, 0), ERR_OK);
    world->memory.count = 0; /* the starts are not of interest */
}

static void tell(struct world *world, uint32_t node, uint64_t at_us, char what, uint64_t number,
                 const char *text) {
    assert_int_equal(sim_command_at(world->sim, node, at_us, (uint32_t)what, number, bytes_of_string(text)),
                     ERR_OK);
}

static void assert_entry(const struct world *world, size_t index, uint32_t node, enum event_kind kind,
                         uint64_t at_us, const char *text) {
    assert_true(index < world->memory.count);
    const struct entry *entry = &world->memory.entries[index];
    assert_int_equal(entry->node, node);
    assert_int_equal(entry->kind, kind);
    assert_int_equal(entry->at_us, at_us);
    assert_string_equal(entry->text, text);
}

static void carries_out_events_by_time_then_by_sequence(void **state) {
    (void)state;
    struct world world;
    build(&world, &(struct sim_config){.nodes_max = 3, .network = {.latency_us = 100}});
    tell(&world, 0, 20, 'S', 2, "second");
    tell(&world, 1, 20, 'S', 2, "third");
    tell(&world, 1, 10, 'S', 2, "first");
    assert_int_equal(sim_run_until(world.sim, 119), ERR_OK);
    assert_int_equal(world.memory.count, 1);
    assert_int_equal(sim_now_us(world.sim), 119);
    assert_int_equal(sim_run_until(world.sim, 120), ERR_OK);
    assert_entry(&world, 0, 2, EVENT_MESSAGE, 110, "first");
    assert_entry(&world, 1, 2, EVENT_MESSAGE, 120, "second");
    assert_entry(&world, 2, 2, EVENT_MESSAGE, 120, "third");
    sim_free(world.sim);
}

static void wakes_at_the_time_asked_for_last(void **state) {
    (void)state;
    struct world world;
    build(&world, &(struct sim_config){.nodes_max = 1});
    tell(&world, 0, 10, 'W', 1000, "");
    tell(&world, 0, 20, 'W', 500, ""); /* earlier */
    tell(&world, 0, 30, 'W', 700, ""); /* later again */
    assert_int_equal(sim_run_until(world.sim, 5000), ERR_OK);
    assert_int_equal(world.memory.count, 1);
    assert_entry(&world, 0, 0, EVENT_WAKE, 700, "");
    tell(&world, 0, 6000, 'W', 9000, "");
    tell(&world, 0, 6001, 'W', 0, "");   /* never */
    tell(&world, 0, 9500, 'W', 100, ""); /* long past: at once, but time moves on */
    assert_int_equal(sim_run_until(world.sim, 10000), ERR_OK);
    assert_int_equal(world.memory.count, 2);
    assert_entry(&world, 1, 0, EVENT_WAKE, 9501, "");
    sim_free(world.sim);
}

static void restores_what_was_saved_before_it_starts_again(void **state) {
    (void)state;
    struct world world;
    build(&world,
          &(struct sim_config){.nodes_max = 1, .disk = {.latency_us = 50, .write_lost_ppm = 1000000}});
    tell(&world, 0, 10, 'V', 5, "kept");
    tell(&world, 0, 100, 'V', 6, "on its way");
    tell(&world, 0, 101, 'W', 500, "");
    assert_int_equal(sim_run_until(world.sim, 120), ERR_OK);
    assert_entry(&world, 0, 0, EVENT_SAVED, 60, "");
    assert_int_equal(world.memory.entries[0].number, 5);
    sim_crash(world.sim, 0);
    assert_null(sim_state(world.sim, 0));
    assert_int_equal(sim_status(world.sim, 0), SIM_DOWN);
    sim_start_at(world.sim, 0, 1000);
    assert_int_equal(sim_run_until(world.sim, 2000), ERR_OK);
    assert_int_equal(world.memory.count, 3); /* neither the wake nor the save of the first life */
    const char *restored = world.memory.entries[1].text;
    assert_true(strcmp(restored, "kept") == 0 || strcmp(restored, "on its way") == 0);
    assert_int_equal(world.memory.entries[1].kind, EVENT_RESTORED);
    assert_entry(&world, 2, 0, EVENT_START, 1000, "");
    assert_int_equal(sim_life(world.sim, 0), 2);
    sim_free(world.sim);
}

static void loses_everything_when_wiped_and_stays_away_when_gone(void **state) {
    (void)state;
    struct world world;
    build(&world, &(struct sim_config){.nodes_max = 2});
    tell(&world, 0, 10, 'V', 1, "lost");
    assert_int_equal(sim_run_until(world.sim, 100), ERR_OK);
    sim_wipe(world.sim, 0);
    sim_leave(world.sim, 1);
    sim_start_at(world.sim, 0, 200);
    sim_start_at(world.sim, 1, 200);
    world.memory.count = 0;
    assert_int_equal(sim_run_until(world.sim, 300), ERR_OK);
    assert_int_equal(world.memory.count, 1);
    assert_entry(&world, 0, 0, EVENT_START, 200, "");
    assert_int_equal(sim_status(world.sim, 1), SIM_GONE);
    sim_free(world.sim);
}

static void starts_once_however_often_it_is_told(void **state) {
    (void)state;
    struct world world;
    build(&world, &(struct sim_config){.nodes_max = 2});
    sim_start_at(world.sim, 0, 5); /* is up */
    sim_crash(world.sim, 0);
    sim_start_at(world.sim, 0, 10);
    sim_start_at(world.sim, 0, 20); /* counts */
    sim_crash(world.sim, 0);        /* is down already */
    sim_crash(world.sim, 1);
    sim_start_at(world.sim, 1, 10);
    sim_leave(world.sim, 1);
    assert_int_equal(sim_run_until(world.sim, 100), ERR_OK);
    assert_int_equal(world.memory.count, 1);
    assert_entry(&world, 0, 0, EVENT_START, 20, "");
    sim_free(world.sim);
}

static void tries_a_failed_save_again(void **state) {
    (void)state;
    struct world world;
    build(&world, &(struct sim_config){.nodes_max = 1});
    disk_fail_after(sim_disk(world.sim, 0), 1, ERR_NO_SPACE);
    tell(&world, 0, 10, 'V', 1, "stubborn");
    assert_int_equal(sim_run_until(world.sim, SIM_SECOND_US), ERR_OK);
    assert_int_equal(sim_counters(world.sim)->failed_saves_count, 1);
    assert_int_equal(world.memory.count, 1);
    assert_int_equal(world.memory.entries[0].kind, EVENT_SAVED);
    sim_free(world.sim);
}

static void drops_and_counts_messages_nobody_can_take(void **state) {
    (void)state;
    struct world world;
    build(&world, &(struct sim_config){.nodes_max = 2, .inbound_max = 3, .network = {.latency_us = 100}});
    tell(&world, 0, 1, 'S', 99, "to nobody");
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(sim_run_until(world.sim, 10 + i), ERR_OK);
        tell(&world, 0, 10 + i, 'S', 1, "x");
    }
    assert_int_equal(sim_run_until(world.sim, 50), ERR_OK);
    assert_int_equal(sim_counters(world.sim)->unroutable_count, 1);
    assert_int_equal(sim_counters(world.sim)->overflow_count, 2);
    sim_crash(world.sim, 1);
    assert_int_equal(sim_run_until(world.sim, 500), ERR_OK);
    assert_int_equal(sim_counters(world.sim)->undelivered_count, 3);
    assert_int_equal(world.memory.count, 0);
    tell(&world, 0, 600, 'S', 1, "again"); /* the places are free again */
    sim_start_at(world.sim, 1, 600);
    assert_int_equal(sim_run_until(world.sim, 1000), ERR_OK);
    assert_entry(&world, 1, 1, EVENT_MESSAGE, 700, "again");
    sim_free(world.sim);
}

static void gives_each_life_a_clock_of_its_own(void **state) {
    (void)state;
    struct world world;
    build(&world, &(struct sim_config){.nodes_max = 2, .clock_skew_us_max = 1000000});
    assert_int_equal(sim_run_until(world.sim, 10), ERR_OK);
    sim_crash(world.sim, 0);
    sim_crash(world.sim, 1);
    sim_start_at(world.sim, 0, 20);
    sim_start_at(world.sim, 1, 20);
    assert_int_equal(sim_run_until(world.sim, 20), ERR_OK);
    uint64_t start_us = world.memory.entries[0].at_us;
    assert_in_range(start_us, 20, 1000020);
    assert_true(start_us != world.memory.entries[1].at_us);
    tell(&world, 0, 30, 'W', start_us + 500, ""); /* 500 after the start, by its own clock */
    assert_int_equal(sim_run_until(world.sim, 519), ERR_OK);
    assert_int_equal(world.memory.count, 2);
    assert_int_equal(sim_run_until(world.sim, 520), ERR_OK);
    assert_entry(&world, 2, 0, EVENT_WAKE, start_us + 500, "");
    sim_free(world.sim);
}

static void count_notice(void *context, struct sim *sim, uint32_t node, uint32_t code, struct bytes bytes) {
    assert_int_equal(sim_now_us(sim), 10);
    assert_int_equal(node, 1);
    assert_int_equal(code, 7);
    assert_bytes_equal(bytes, BYTES("hear"));
    ++*(unsigned *)context;
}

static const char *dislike_node_1(void *context, const struct sim *sim, uint32_t node) {
    (void)context;
    return node == 1 && sim_now_us(sim) > 5 ? "node 1 stepped" : NULL;
}

static void stops_where_a_check_fails_and_says_where(void **state) {
    (void)state;
    struct world world;
    build(&world, &(struct sim_config){.seed = 42, .nodes_max = 3});
    unsigned notices_count = 0;
    sim_observe(world.sim, &(struct sim_observer){.context = &notices_count, .notice = count_notice});
    sim_observe(world.sim, &(struct sim_observer){.check = dislike_node_1});
    tell(&world, 0, 6, 'W', 0, "");
    tell(&world, 1, 10, 'N', 0, "hear");
    tell(&world, 2, 11, 'W', 0, "");
    assert_null(sim_failure(world.sim));
    assert_int_equal(sim_run_until(world.sim, 100), ERR_MISMATCH);
    const struct sim_failure *failure = sim_failure(world.sim);
    assert_non_null(failure);
    assert_int_equal(failure->seed, 42);
    assert_int_equal(failure->at_us, 10);
    assert_int_equal(failure->node, 1);
    assert_int_equal(failure->event_number, 5); /* three starts, two commands */
    char text[SIM_FAILURE_TEXT_SIZE_MAX];
    assert_string_equal(sim_failure_format(failure, text),
                        "seed 42 failed at 0.000010 s, event 5, node 1: node 1 stepped");
    assert_int_equal(notices_count, 1);
    assert_int_equal(sim_run_until(world.sim, 100), ERR_MISMATCH); /* and stays there */
    assert_int_equal(sim_counters(world.sim)->events_count, 5);
    sim_free(world.sim);
}

/* Random traffic, with faults of the network, in steps that two simulations can take in turn. */
static void talk(struct world *world, struct prng *prng, uint64_t rounds_count) {
    for (uint64_t i = 0; i < rounds_count; i++) {
        uint32_t from = (uint32_t)prng_below(prng, 5);
        tell(world, from, 0, 'S', prng_below(prng, 5), "a message");
        assert_int_equal(sim_run_until(world->sim, sim_now_us(world->sim) + 10), ERR_OK);
    }
}

static void equal_seeds_give_equal_digests_and_others_differ(void **state) {
    (void)state;
    struct sim_config config = {.seed = 1,
                                .nodes_max = 5,
                                .network = {.jitter_us = 1000, .loss_ppm = 200000, .duplicate_ppm = 200000}};
    struct world worlds[3];
    struct prng prngs[3];
    for (unsigned i = 0; i < 3; i++) {
        config.seed = i == 2 ? 2 : 1;
        build(&worlds[i], &config);
        prng_init(&prngs[i], 9);
    }
    talk(&worlds[0], &prngs[0], 300);
    for (unsigned i = 0; i < 3; i++) {
        talk(&worlds[1], &prngs[1], 100); /* in turn with another: they share nothing */
        talk(&worlds[2], &prngs[2], 100);
    }
    char texts[3][DIGEST_TEXT_SIZE_MAX];
    for (unsigned i = 0; i < 3; i++) {
        struct digest digest = sim_digest(worlds[i].sim);
        digest_format(&digest, texts[i]);
        sim_free(worlds[i].sim);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_string_not_equal(texts[0], texts[2]);
}

static void digests_differ_in_order_and_in_boundaries(void **state) {
    (void)state;
    struct digest a;
    struct digest b;
    digest_init(&a);
    digest_init(&b);
    digest_bytes(&a, BYTES("a"));
    digest_bytes(&b, BYTES("a\0"));
    assert_memory_not_equal(&a, &b, sizeof a);
    digest_init(&a);
    digest_init(&b);
    digest_u64(&a, 1);
    digest_u64(&a, 2);
    digest_u64(&b, 2);
    digest_u64(&b, 1);
    assert_memory_not_equal(&a, &b, sizeof a);
}

static void pool_keeps_parcels_apart_and_within_its_limit(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static const size_t sizes[] = {0, 104, 105, 488, 489, STEP_MESSAGE_SIZE_MAX};
    struct pool pool;
    pool_init(&pool, COUNT);
    uint32_t ids[COUNT];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            assert_int_equal(pool_take(&pool, sizes[(i + round) % 6], &ids[i]), ERR_OK);
            struct parcel *parcel = pool_at(&pool, ids[i]);
            parcel->code = i;
            memset(parcel->bytes, (int)(i % 251), parcel->size);
        }
        uint32_t id;
        assert_int_equal(pool_take(&pool, 1, &id), ERR_LIMIT);
        for (unsigned i = 0; i < COUNT; i++) {
            struct parcel *parcel = pool_at(&pool, ids[i]);
            assert_int_equal(parcel->code, i);
            for (uint32_t j = 0; j < parcel->size; j++) {
                assert_int_equal(parcel->bytes[j], i % 251);
            }
            pool_give(&pool, ids[i]);
        }
        assert_int_equal(pool.count, 0);
    }
    pool_done(&pool);
}

static bool is_even(const void *context, const struct heap_item *item) {
    (void)context;
    return item->value % 2 == 0;
}

static void queue_throws_out_stale_entries_when_full(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    struct queue queue;
    queue_init(&queue, COUNT, is_even, NULL);
    uint64_t sequence;
    for (uint64_t i = 0; i < 2 * COUNT - 1; i++) {
        assert_int_equal(queue_push(&queue, 5000 - i, i, &sequence), ERR_OK);
        assert_int_equal(sequence, i + 1);
    }
    assert_int_equal(queue_push(&queue, 1, 0, &sequence), ERR_LIMIT); /* all that are left count */
    struct heap_item item;
    uint64_t last = 0;
    size_t count = 0;
    while (queue_pop(&queue, &item)) {
        assert_true(item.key > last && item.value % 2 == 0);
        last = item.key;
        count++;
    }
    assert_int_equal(count, COUNT);
    queue_done(&queue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_out_events_by_time_then_by_sequence),
        cmocka_unit_test(wakes_at_the_time_asked_for_last),
        cmocka_unit_test(restores_what_was_saved_before_it_starts_again),
        cmocka_unit_test(loses_everything_when_wiped_and_stays_away_when_gone),
        cmocka_unit_test(starts_once_however_often_it_is_told),
        cmocka_unit_test(tries_a_failed_save_again),
        cmocka_unit_test(drops_and_counts_messages_nobody_can_take),
        cmocka_unit_test(gives_each_life_a_clock_of_its_own),
        cmocka_unit_test(stops_where_a_check_fails_and_says_where),
        cmocka_unit_test(equal_seeds_give_equal_digests_and_others_differ),
        cmocka_unit_test(digests_differ_in_order_and_in_boundaries),
        cmocka_unit_test(pool_keeps_parcels_apart_and_within_its_limit),
        cmocka_unit_test(queue_throws_out_stale_entries_when_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
