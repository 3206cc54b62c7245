/*
 * Links that walk a small ring whose nodes are simulated by hand: silent, busy, not responsible ones; and a
 * simulated ring where messages get lost.
 */
#include "protocol/links/link_relay.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/world/sim.h"
#include "unit.h"

enum { NODES_MAX = 40, LINKS_MAX = 2000, HOLDERS = 3, ARRIVALS_MAX = 4096 };

enum item_state { ITEM_WAITING, ITEM_IN_HAND, ITEM_DONE };

struct item {
    char url[64];
    struct ring_id place;
    enum item_state state;
    uint64_t nodes; /* bits: who has it */
};

/* One sender (node 0 of the ring) and others, which may misbehave. */
struct world {
    struct sim *sim;
    struct program program;
    struct world *self;
    struct vnode places[NODES_MAX]; /* by ID */
    uint32_t node_of[NODES_MAX];
    uint32_t nodes_count;
    struct item items[LINKS_MAX];
    size_t items_count;
    struct links_code *code;
    struct sha256 sha256;
    uint32_t busy_node; /* answers BUSY so often … */
    unsigned busy_count;
    uint32_t outdated_node; /* is left out by lookups, until it was told that it moved */
    unsigned moved_count;
    uint32_t sent_count;
    uint32_t holders_count;
};

struct node {
    struct link_relay *link_relay;
};

static struct world *world_of(void *context) {
    return context;
}

static uint32_t position_of(const struct world *world, struct ring_id id) {
    for (uint32_t i = 0; i < world->nodes_count; i++) {
        if (ring_id_compare(world->places[i].id, id) >= 0) {
            return i;
        }
    }
    return 0;
}

static bool is_waiting(const struct item *item, struct ring_id from, struct ring_id to) {
    return item->state == ITEM_WAITING && ring_id_is_owned(from, item->place, to);
}

/* Slow and plain: the nearest behind from. */
static struct item *first_waiting(struct world *world, struct ring_id from, struct ring_id to) {
    struct item *first = NULL;
    for (size_t i = 0; i < world->items_count; i++) {
        struct item *item = &world->items[i];
        if (is_waiting(item, from, to) &&
            (first == NULL || ring_id_compare(ring_id_distance(from, item->place),
                                              ring_id_distance(from, first->place)) < 0)) {
            first = item;
        }
    }
    return first;
}

static bool owner_next(void *context, struct ring_id from, struct ring_id to, struct ring_id *ret_place) {
    const struct item *item = first_waiting(context, from, to);
    if (item != NULL) {
        *ret_place = item->place;
    }
    return item != NULL;
}

static size_t owner_take(void *context, struct ring_id from, struct ring_id to,
                         uint8_t ret_job[LINKS_CODE_JOB_SIZE], struct links_code_link *links,
                         size_t links_max) {
    struct world *world = world_of(context);
    size_t count = 0;
    struct item *item;
    memset(ret_job, 9, LINKS_CODE_JOB_SIZE);
    while (count < links_max && (item = first_waiting(world, from, to)) != NULL) {
        item->state = ITEM_IN_HAND;
        links[count++] = (struct links_code_link){.url = bytes_of_string(item->url),
                                                  .depth = 3,
                                                  .priority = 1,
                                                  .owner = (uint64_t)(item - world->items)};
    }
    return count;
}

static void owner_give_back(void *context, uint64_t link, bool is_done) {
    struct item *item = &world_of(context)->items[link];
    assert_int_equal(item->state, ITEM_IN_HAND);
    item->state = is_done ? ITEM_DONE : ITEM_WAITING;
}

static uint64_t owner_waiting(void *context) {
    const struct world *world = context;
    uint64_t count = 0;
    for (size_t i = 0; i < world->items_count; i++) {
        count += world->items[i].state == ITEM_WAITING;
    }
    return count;
}

static uint64_t nothing_waits(void *context) {
    (void)context;
    return 0;
}

/* As a successor list names them; who is not known to lookups is not in it either. */
static size_t owner_after(void *context, struct ring_id id, struct vnode *out, size_t places_max) {
    const struct world *world = context;
    size_t count = 0;
    uint32_t first = position_of(world, ring_id_add_power(id, 0));
    for (uint32_t i = 0; i < world->nodes_count && count < places_max; i++) {
        uint32_t position = (first + i) % world->nodes_count;
        if (world->node_of[position] != world->outdated_node) {
            out[count++] = world->places[position];
        }
    }
    return count;
}

static uint64_t owner_arcs(void *context) {
    return world_of(context)->nodes_count;
}

static const struct link_relay_owner sender = {owner_next,    owner_take,  owner_give_back,
                                               owner_waiting, owner_after, owner_arcs};
static const struct link_relay_owner receiver = {owner_next,    owner_take,  owner_give_back,
                                                 nothing_waits, owner_after, owner_arcs};

/* ---- nodes ---- */

static enum err node_init(void *memory, const struct birth *birth) {
    struct world *world = *(struct world *const *)birth->config;
    struct link_relay_config config = {
        .self.address = birth->address,
        .holders_count = (uint8_t)world->holders_count,
        .walkers_count = 4,
        .flush_us = 100000,
        .sent_count = world->sent_count,
        .seed = birth->seed,
        .code = world->code,
        .owner = birth->index == 0 ? &sender : &receiver,
        .context = world,
    };
    return link_relay_new(&config, &((struct node *)memory)->link_relay);
}

static void node_step(void *memory, const struct event *event, struct outbox *out) {
    link_relay_step(((struct node *)memory)->link_relay, event, out);
}

static void node_done(void *memory) {
    link_relay_free(((struct node *)memory)->link_relay);
}

static void on_find(struct world *world, uint32_t node, struct bytes bytes) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct vnode places[RING_LIST_MAX];
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    struct ring_id key = message_read_id(&reader);
    size_t count =
        owner_after(world, (struct ring_id){key.high - (key.low == 0), key.low - 1}, places, RING_LIST_MAX);
    assert_int_equal(sim_command_at(world->sim, node, sim_now_us(world->sim) + 10000, LINK_RELAY_FOUND,
                                    number, link_relay_write_found(places, count, memory)),
                     ERR_OK);
}

static enum link_relay_status receive(struct world *world, uint32_t node, struct link_relay_take *take) {
    if (node == world->busy_node && world->busy_count > 0) {
        world->busy_count--;
        return LINK_RELAY_BUSY;
    }
    for (size_t i = 0; i < take->links_count; i++) {
        struct links_code_link link;
        link_relay_take_next(take, &link);
        struct item *item = NULL;
        for (size_t j = 0; j < world->items_count && item == NULL; j++) {
            bool is_it = bytes_equal(bytes_of_string(world->items[j].url), link.url);
            item = is_it ? &world->items[j] : NULL;
        }
        assert_non_null(item);
        assert_int_equal(link.depth, 3);
        assert_int_equal(link.priority, 1);
        uint32_t primary = world->node_of[position_of(world, item->place)];
        if (take->is_primary && primary != node) {
            world->moved_count++;
            world->outdated_node = UINT32_MAX; /* the next lookup will find it */
            return LINK_RELAY_MOVED;
        }
        item->nodes |= UINT64_C(1) << node;
    }
    return LINK_RELAY_TAKEN;
}

static void on_notice(void *context, struct sim *sim, uint32_t node, uint32_t code, struct bytes bytes) {
    struct world *world = context;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    (void)sim;
    if (code == LINK_RELAY_FIND) {
        on_find(world, node, bytes);
    } else {
        struct link_relay_take take;
        assert_int_equal(code, LINK_RELAY_TAKE);
        link_relay_take_read(bytes, &take);
        enum link_relay_status status = receive(world, node, &take);
        assert_int_equal(sim_command_at(world->sim, node, sim_now_us(world->sim), LINK_RELAY_TOOK,
                                        take.number, link_relay_write_took(status, 1, 0, memory)),
                         ERR_OK);
    }
}

/* ---- the world ---- */

static void add_links(struct world *world, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct item *item = &world->items[world->items_count];
        assert_true(world->items_count < LINKS_MAX);
        snprintf(item->url, sizeof item->url, "https://www.example.org/%zu/index.html", world->items_count++);
        item->place = ring_id_of_key(&world->sha256, bytes_of_string(item->url));
        item->state = ITEM_WAITING;
    }
}

static void sort_places(struct world *world) {
    for (uint32_t i = 1; i < world->nodes_count; i++) {
        for (uint32_t j = i; j > 0 && ring_id_compare(world->places[j - 1].id, world->places[j].id) > 0;
             j--) {
            struct vnode place = world->places[j];
            uint32_t node = world->node_of[j];
            world->places[j] = world->places[j - 1];
            world->node_of[j] = world->node_of[j - 1];
            world->places[j - 1] = place;
            world->node_of[j - 1] = node;
        }
    }
}

static struct world *world_new(uint32_t nodes_count, size_t links_count, const struct network_dials *network,
                               uint32_t holders_count) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    struct link_relay_config config = {.holders_count = (uint8_t)holders_count, .walkers_count = 4};
    struct sim_config sim = {.seed = 4, .nodes_max = nodes_count, .network = *network};
    world->self = world;
    world->nodes_count = nodes_count;
    world->holders_count = holders_count;
    world->busy_node = world->outdated_node = UINT32_MAX;
    world->sent_count = 1024;
    world->code = links_code_new();
    world->program = (struct program){.name = "walk",
                                      .state_size = sizeof(struct node),
                                      .actions_max = link_relay_actions_max(&config),
                                      .memory_size = link_relay_memory_size(&config),
                                      .init = node_init,
                                      .step = node_step,
                                      .done = node_done};
    world->sim = sim_new(&sim);
    assert_non_null(world->sim);
    assert_non_null(world->code);
    assert_int_equal(sha256_init(&world->sha256), ERR_OK);
    sim_observe(world->sim, &(struct sim_observer){.context = world, .notice = on_notice});
    for (uint32_t i = 0; i < nodes_count; i++) {
        uint32_t node;
        assert_int_equal(sim_add(world->sim, &world->program, &world->self, &node), ERR_OK);
        world->places[i].peer.address = sim_address(i);
        world->places[i].id = ring_id_of_node(&world->sha256, &world->places[i].peer.address, 0);
        world->node_of[i] = i;
        sim_start_at(world->sim, i, 0);
    }
    sort_places(world);
    add_links(world, links_count);
    return world;
}

static void world_free(struct world *world) {
    sim_free(world->sim);
    links_code_free(world->code);
    sha256_done(&world->sha256);
    free(world);
}

static const struct link_relay_counters *counters(const struct world *world) {
    return link_relay_counters(((const struct node *)sim_state(world->sim, 0))->link_relay);
}

static void run(struct world *world, uint64_t seconds) {
    uint64_t now_us = sim_now_us(world->sim);
    assert_int_equal(sim_command_at(world->sim, 0, now_us, LINK_RELAY_WAITING, 0, (struct bytes){NULL, 0}),
                     ERR_OK);
    for (uint64_t i = 0; i < seconds; i++) {
        assert_int_equal(sim_run_until(world->sim, now_us + (i + 1) * SIM_SECOND_US), ERR_OK);
        bool is_done = true;
        for (size_t j = 0; j < world->items_count && is_done; j++) {
            is_done = world->items[j].state == ITEM_DONE;
        }
        if (is_done) {
            return;
        }
    }
}

/* Everything has left, and of each link's holders (without `dead`) at least `least` have it. */
static void check_delivered(const struct world *world, uint32_t least, uint32_t dead) {
    for (size_t i = 0; i < world->items_count; i++) {
        const struct item *item = &world->items[i];
        uint32_t position = position_of(world, item->place);
        uint32_t count = 0;
        for (uint32_t seen = 0, j = 0; seen < world->holders_count && j < world->nodes_count; j++) {
            uint32_t node = world->node_of[(position + j) % world->nodes_count];
            if (node == dead) {
                continue;
            }
            seen++;
            count += node == 0 || (item->nodes >> node & 1) != 0;
        }
        assert_int_equal(item->state, ITEM_DONE);
        assert_true(count >= least);
    }
}

static const struct network_dials calm = {.latency_us = 20000};

static void links_reach_all_their_holders(void **state) {
    (void)state;
    struct world *world = world_new(NODES_MAX, 300, &calm, HOLDERS);
    run(world, 60);
    check_delivered(world, HOLDERS, UINT32_MAX);
    assert_int_equal(counters(world)->done_count, 300);
    assert_int_equal(counters(world)->repeated_count, 0);
    assert_int_equal(counters(world)->rounds_count, 1);
    assert_true(counters(world)->finds_count <=
                4 + 4); /* one for each walker, and where an arc was cut in two */
    world_free(world);
}

static void links_get_through_where_messages_are_lost(void **state) {
    (void)state;
    struct network_dials lossy = {
        .latency_us = 20000, .jitter_us = 30000, .loss_ppm = 200000, .duplicate_ppm = 100000};
    struct world *world = world_new(20, 300, &lossy, HOLDERS);
    run(world, 300);
    check_delivered(world, 2, UINT32_MAX); /* a majority; who lost all tries may lack some */
    assert_true(counters(world)->repeated_count > 0);
    world_free(world);
}

static void the_next_node_takes_the_part_of_a_dead_one(void **state) {
    (void)state;
    struct world *world = world_new(12, 200, &calm, HOLDERS);
    assert_int_equal(sim_run_until(world->sim, 1000), ERR_OK);
    sim_crash(world->sim, 5);
    run(world, 300);
    check_delivered(world, HOLDERS, 5);
    assert_true(counters(world)->silent_count > 0);
    world_free(world);
}

static void links_stay_while_nobody_answers(void **state) {
    (void)state;
    struct world *world = world_new(8, 50, &calm, HOLDERS);
    assert_int_equal(sim_run_until(world->sim, 1000), ERR_OK);
    for (uint32_t i = 1; i < 8; i++) {
        sim_crash(world->sim, i);
    }
    run(world, 60);
    size_t kept_count = 0;
    for (size_t i = 0; i < world->items_count; i++) {
        kept_count += world->items[i].state != ITEM_DONE;
    }
    assert_true(kept_count > 0);
    for (uint32_t i = 1; i < 8; i++) {
        sim_start_at(world->sim, i, sim_now_us(world->sim));
    }
    run(world, 300);
    assert_int_equal(owner_waiting(world), 0);
    world_free(world);
}

static void who_is_busy_is_asked_again(void **state) {
    (void)state;
    struct world *world = world_new(10, 100, &calm, HOLDERS);
    world->busy_node = 3;
    world->busy_count = 4;
    run(world, 60);
    check_delivered(world, HOLDERS, UINT32_MAX);
    assert_int_equal(world->busy_count, 0);
    world_free(world);
}

/* A node has joined that nobody named yet: who was taken for the primary says so. */
static void a_new_primary_is_looked_up(void **state) {
    (void)state;
    struct world *world = world_new(10, 200, &calm, HOLDERS);
    world->outdated_node = 4;
    run(world, 120);
    assert_true(world->moved_count > 0);
    assert_true(counters(world)->moved_count > 0);
    for (size_t i = 0; i < world->items_count; i++) {
        uint32_t primary = world->node_of[position_of(world, world->items[i].place)];
        assert_true(primary == 0 || (world->items[i].nodes >> primary & 1) != 0);
    }
    check_delivered(world, 2, UINT32_MAX);
    world_free(world);
}

static void links_that_were_sent_are_not_sent_again(void **state) {
    (void)state;
    struct world *world = world_new(10, 100, &calm, HOLDERS);
    run(world, 60);
    uint64_t sent_count = counters(world)->sent_count;
    for (size_t i = 0; i < 100; i++) {
        world->items[i].state = ITEM_WAITING; /* found again */
    }
    run(world, 60);
    assert_int_equal(counters(world)->sent_count, sent_count);
    assert_int_equal(counters(world)->known_count, 100);
    assert_int_equal(owner_waiting(world), 0);
    world_free(world);
}

/* The time that the model takes is spent where it saves something. */
static void full_datagrams_are_coded_by_the_table(void **state) {
    (void)state;
    struct world *large = world_new(NODES_MAX, LINKS_MAX / 4, &calm, HOLDERS);
    run(large, 60);
    check_delivered(large, HOLDERS, UINT32_MAX);
    assert_true(counters(large)->batches_count > 30);
    assert_in_range(counters(large)->table_count, 0, 4); /* before it knows */
    world_free(large);
    struct world *small = world_new(2, LINKS_MAX, &calm, HOLDERS);
    run(small, 60);
    check_delivered(small, 2, UINT32_MAX);
    assert_in_range(counters(small)->table_count, counters(small)->batches_count - 1,
                    counters(small)->batches_count);
    world_free(small);
}

static void rings_smaller_than_the_replicas_work(void **state) {
    (void)state;
    for (uint32_t nodes_count = 1; nodes_count <= 3; nodes_count++) {
        struct world *world = world_new(nodes_count, 40, &calm, 6);
        run(world, 60);
        check_delivered(world, nodes_count, UINT32_MAX);
        world_free(world);
    }
}

/* ---- one node that is told things ---- */

static void floods_and_nonsense_are_bounded(void **state) {
    (void)state;
    struct world *world = world_new(1, 0, &calm, HOLDERS);
    struct link_relay *link_relay;
    struct link_relay_config config = {.self.address = sim_address(0),
                                       .holders_count = HOLDERS,
                                       .rate = 10,
                                       .takes_max = 1000,
                                       .code = world->code,
                                       .owner = &receiver,
                                       .context = world};
    struct outbox out;
    struct action *actions = calloc(link_relay_actions_max(&config), sizeof *actions);
    void *memory = malloc(link_relay_memory_size(&config));
    outbox_init(&out, actions, link_relay_actions_max(&config), memory, link_relay_memory_size(&config));
    assert_int_equal(link_relay_new(&config, &link_relay), ERR_OK);
    uint8_t job[LINKS_CODE_JOB_SIZE] = {0};
    uint8_t links_memory[256];
    uint8_t offer_memory[STEP_MESSAGE_SIZE_MAX];
    struct links_code_link link = {.url = BYTES("http://a.example/")};
    size_t size =
        links_code_write(world->code, LINKS_CODE_BY_MODEL, job, &link, 1, links_memory, sizeof links_memory);
    unsigned taken_count = 0;
    for (uint16_t i = 0; i < 500; i++) { /* all in one moment */
        struct link_relay_message offer = {
            .kind = LINK_RELAY_OFFER, .number = i, .links = bytes_of(links_memory, size)};
        struct event event = {.kind = EVENT_MESSAGE, .now_us = 1000, .from = sim_address(7)};
        event.bytes = link_relay_message_write(&offer, offer_memory);
        outbox_clear(&out);
        link_relay_step(link_relay, &event, &out);
        assert_int_equal(out.actions_count, 1);
        taken_count += out.actions[0].kind == ACTION_NOTICE;
    }
    assert_in_range(taken_count, 20, 110); /* ten seconds' */
    struct event nonsense = {.kind = EVENT_MESSAGE, .now_us = UINT64_C(1) << 40, .from = sim_address(7)};
    nonsense.bytes = BYTES("nonsense");
    outbox_clear(&out);
    link_relay_step(link_relay, &nonsense, &out);
    assert_int_equal(link_relay_counters(link_relay)->malformed_count, 1);
    assert_int_equal(out.actions[0].code, LINK_RELAY_BLAMED);
    struct link_relay_message unanswerable = {.kind = LINK_RELAY_OFFER,
                                              .links = bytes_of(links_memory, size)};
    nonsense.from.port = 0;
    nonsense.bytes = link_relay_message_write(&unanswerable, offer_memory);
    outbox_clear(&out);
    link_relay_step(link_relay, &nonsense, &out);
    assert_int_equal(link_relay_counters(link_relay)->malformed_count, 2);
    link_relay_free(link_relay);
    free(actions);
    free(memory);
    world_free(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_reach_all_their_holders),
        cmocka_unit_test(links_get_through_where_messages_are_lost),
        cmocka_unit_test(the_next_node_takes_the_part_of_a_dead_one),
        cmocka_unit_test(links_stay_while_nobody_answers),
        cmocka_unit_test(who_is_busy_is_asked_again),
        cmocka_unit_test(a_new_primary_is_looked_up),
        cmocka_unit_test(links_that_were_sent_are_not_sent_again),
        cmocka_unit_test(full_datagrams_are_coded_by_the_table),
        cmocka_unit_test(rings_smaller_than_the_replicas_work),
        cmocka_unit_test(floods_and_nonsense_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
