/*
 * crowding: several nodes in one process, each with its own ring loop, socket and directory on loopback; what
 * one has is found by others, the dead and the liars are dropped, contacts outlive a process.
 */
#include "node/crowd/crowd_driver.h"

#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "await.h"
#include "net/datagram.h"
#include "net/identity.h"
#include "node/crowd/crowd_driver_state.h"
#include "node/transport/complaints.h"
#include "node/transport/ring_files.h"
#include "node/transport/transport.h"
#include "scratch.h"
#include "unit.h"

enum { NODES_COUNT = 6, TIMEOUT_MS = 20000, CROWD_OF_THREADS = 8 };

struct node {
    char directory[SCRATCH_PATH_SIZE];
    char join[ADDRESS_TEXT_SIZE_MAX];
    size_t index;
    struct transport *transport;
    struct crowd_driver *crowd_driver;
    struct peer self;
    uint8_t ring[RING_CHARTER_SIZE];
    bool hears_no_news;    /* of the ring: only the file of contacts is there */
    _Atomic int offered;   /* the wish that it has; 0: none */
    _Atomic bool is_later; /* it has to look for it */
    _Atomic uint64_t looking_for;
    _Atomic unsigned blames_count;
    struct peer blamed;
    char sentence[200];
};

struct world {
    struct charter charter;
    uint8_t encoded[CHARTER_SIZE_MAX];
    struct bytes charter_bytes;
    struct node nodes[NODES_COUNT];
};

/* ---- a node ---- */

static struct wish wish_of(int number) {
    struct wish wish = {.kind = WISH_URL, .time = WISH_NEWEST};
    memset(wish.hash, number, sizeof wish.hash);
    return wish;
}

static size_t write_finding(int number, uint8_t *memory) {
    struct wish_finding finding = {.size = 1000};
    memset(finding.key.bytes, number, sizeof finding.key.bytes);
    return wish_write_findings(&finding, 1, memory).size;
}

static bool is_offered(struct node *node, struct bytes bytes) {
    struct wish wish;
    return wish_read(bytes, &wish) && wish.kind == WISH_URL && node->offered != 0 &&
           wish.hash[0] == node->offered;
}

static size_t have(void *context, struct bytes wish, uint8_t *memory) {
    struct node *node = context;
    return !node->is_later && is_offered(node, wish) ? write_finding(node->offered, memory) : 0;
}

static bool look(void *context, uint64_t number, struct bytes wish) {
    struct node *node = context;
    if (!node->is_later || !is_offered(node, wish)) {
        return false;
    }
    node->looking_for = number;
    return true;
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    struct node *node = context;
    node->blamed = *peer;
    snprintf(node->sentence, sizeof node->sentence, "%s", sentence);
    node->blames_count++;
}

static void begin(void *context) {
    struct node *node = context;
    crowd_driver_begin(node->crowd_driver, &node->self, node->ring);
}

static void on_news(void *shared, const struct ring *ring) {
    struct node *node = shared;
    if (!node->hears_no_news) {
        crowd_driver_news(node->crowd_driver, ring);
    }
}

static void on_charter(void *shared, const struct charter *charter, const uint8_t ring[RING_CHARTER_SIZE]) {
    struct node *node = shared;
    (void)charter;
    memcpy(node->ring, ring, sizeof node->ring);
}

static void on_datagram(void *shared, const struct datagram_message *message) {
    struct node *node = shared;
    crowd_driver_receive(node->crowd_driver, message);
}

static void on_wake(void *shared) {
    struct node *node = shared;
    crowd_driver_wake(node->crowd_driver);
}

static void start_node(struct node *node) {
    struct err_detail detail = {0};
    struct transport_config transport = {
        .directory = node->directory,
        .address = address_ipv4(127, 0, 77, (uint8_t)(1 + node->index), node->self.address.port),
        .join = node->join[0] != '\0' ? node->join : NULL,
        .vnodes_count = 1,
        .clock = &clock_system,
    };
    struct transport_tenant tenant = {
        .kind = DATAGRAM_CROWD,
        .is_for_members = true,
        .receive = on_datagram,
        .wake = on_wake,
        .news = on_news,
        .charter = on_charter,
        .context = node,
    };
    assert_int_equal(transport_new(&transport, &node->transport, &detail), ERR_OK);
    transport_add(node->transport, &tenant);
    struct crowd_driver_config crowd_driver = {
        .directory = node->directory,
        .transport = node->transport,
        .crowd =
            {.shuffle_us = 100000, .answer_us = 1500000, .hop_us = 40000, .ack_us = 1000000, .ttl_last = 4},
        .have = have,
        .look = look,
        .blame = blame,
        .context = node,
    };
    node->crowd_driver = crowd_driver_new(&crowd_driver);
    assert_non_null(node->crowd_driver);
    assert_int_equal(transport_start(node->transport, &detail), ERR_OK);
    assert_true(transport_address(node->transport, &node->self.address));
    memcpy(node->self.key, transport_identity(node->transport)->key, PEER_KEY_SIZE);
    assert_true(transport_post(node->transport, begin, node));
}

static void stop_node(struct node *node) {
    if (node->transport != NULL) {
        crowd_driver_stop(node->crowd_driver);
        transport_stop(node->transport);
        transport_free(node->transport);
        crowd_driver_free(node->crowd_driver);
        node->transport = NULL;
        node->crowd_driver = NULL;
    }
}

/* ---- the world ---- */

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static void make_charter(struct world *world) {
    struct identity founder;
    struct err_detail detail = {0};
    assert_int_equal(identity_load(&founder, world->nodes[0].directory, &detail), ERR_OK);
    charter_init(&world->charter);
    memcpy(world->charter.founder, founder.key, PEER_KEY_SIZE);
    memcpy(world->charter.name, "films", sizeof "films");
    world->charter.is_open = true;
    world->charter_bytes = charter_write(&world->charter, sign, &founder, world->encoded);
    identity_done(&founder);
}

static bool await(bool (*is_so)(struct world *world), struct world *world) {
    unsigned turns_count = 0;
    bool holds = is_so(world);
    while (!holds && await_turn(&turns_count)) {
        holds = is_so(world);
    }
    return holds;
}

static size_t view_count(struct node *node) {
    pthread_mutex_lock(&node->crowd_driver->lock);
    size_t count = node->crowd_driver->neighbours_count;
    pthread_mutex_unlock(&node->crowd_driver->lock);
    return count;
}

static bool knows(struct node *node, const struct node *other) {
    bool is_known = false;
    pthread_mutex_lock(&node->crowd_driver->lock);
    for (size_t i = 0; i < node->crowd_driver->neighbours_count && !is_known; i++) {
        is_known = peer_equal(&node->crowd_driver->neighbours[i].peer, &other->self);
    }
    pthread_mutex_unlock(&node->crowd_driver->lock);
    return is_known;
}

static struct crowd_counters counters_of(struct node *node) {
    pthread_mutex_lock(&node->crowd_driver->lock);
    struct crowd_counters counters = node->crowd_driver->counters;
    pthread_mutex_unlock(&node->crowd_driver->lock);
    return counters;
}

static bool views_are_full(struct world *world) {
    for (size_t i = 0; i < NODES_COUNT; i++) {
        if (world->nodes[i].crowd_driver != NULL && view_count(&world->nodes[i]) < NODES_COUNT / 2) {
            return false;
        }
    }
    return true;
}

static int set_up(void **state) {
    void *directory;
    struct err_detail detail = {0};
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    if (scratch_make(&directory) != 0) {
        return -1;
    }
    for (size_t i = 0; i < NODES_COUNT; i++) {
        struct node *node = &world->nodes[i];
        char name[16];
        node->index = i;
        snprintf(name, sizeof name, "%zu", i);
        scratch_path(directory, name, node->directory);
        assert_int_equal(mkdir(node->directory, 0700), 0);
    }
    free(directory);
    make_charter(world);
    for (size_t i = 0; i < NODES_COUNT; i++) {
        struct node *node = &world->nodes[i];
        assert_int_equal(ring_files_write_charter(node->directory, world->charter_bytes, &detail), ERR_OK);
        if (i > 0) {
            address_format(&world->nodes[0].self.address, node->join);
        }
        start_node(node);
    }
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    for (size_t i = 0; i < NODES_COUNT; i++) {
        stop_node(&world->nodes[i]);
    }
    *strrchr(world->nodes[0].directory, '/') = '\0';
    void *directory = strdup(world->nodes[0].directory);
    free(world);
    return scratch_remove(&directory);
}

/* ---- tests, in this order ---- */

static void views_fill(void **state) {
    assert_true(await(views_are_full, *state));
}

static void what_one_has_is_found(void **state) {
    struct world *world = *state;
    struct crowd_driver_hit hits[CROWD_DRIVER_HITS_MAX];
    size_t count = 0;
    struct wish wish = wish_of(1);
    world->nodes[4].offered = 1;
    assert_int_equal(crowd_driver_find(world->nodes[1].crowd_driver, &wish, TIMEOUT_MS, 1, hits, &count),
                     ERR_OK);
    assert_int_equal(count, 1);
    assert_true(peer_equal(&hits[0].holder, &world->nodes[4].self));
    assert_int_equal(hits[0].findings_count, 1);
    assert_int_equal(hits[0].findings[0].key.bytes[0], 1);
    assert_true(hits[0].hops_count > 0);
}

static bool is_looking(struct world *world) {
    return world->nodes[3].looking_for != 0;
}

struct finder {
    pthread_t thread;
    struct crowd_driver *crowd_driver;
    int number;
    enum err err;
    size_t count;
    struct crowd_driver_hit hit;
};

static void *run_find(void *context) {
    struct finder *finder = context;
    struct wish wish = wish_of(finder->number);
    finder->err = crowd_driver_find(finder->crowd_driver, &wish, TIMEOUT_MS, 1, &finder->hit, &finder->count);
    return NULL;
}

static void start_find(struct finder *finder, struct crowd_driver *crowd_driver, int number) {
    *finder = (struct finder){.crowd_driver = crowd_driver, .number = number};
    assert_int_equal(pthread_create(&finder->thread, NULL, run_find, finder), 0);
}

static void what_has_to_be_looked_for_is_found_later(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[3];
    struct finder finder;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    node->is_later = true;
    node->offered = 2;
    start_find(&finder, world->nodes[1].crowd_driver, 2);
    assert_true(await(is_looking, world));
    crowd_driver_looked(node->crowd_driver, node->looking_for, bytes_of(memory, write_finding(2, memory)));
    pthread_join(finder.thread, NULL);
    assert_int_equal(finder.err, ERR_OK);
    assert_true(peer_equal(&finder.hit.holder, &node->self));
    node->is_later = false;
    node->offered = 0;
}

static void threads_with_one_wish_share_a_search(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[2];
    struct finder finders[CROWD_OF_THREADS];
    uint64_t begun_count = counters_of(node).searches_count;
    for (size_t i = 0; i < CROWD_OF_THREADS; i++) {
        start_find(&finders[i], node->crowd_driver, 99);
    }
    for (size_t i = 0; i < CROWD_OF_THREADS; i++) {
        pthread_join(finders[i].thread, NULL);
        assert_int_equal(finders[i].err, ERR_NOT_FOUND);
    }
    /* One that came when the search was over is answered from memory, which counts as one, too. */
    assert_in_range(counters_of(node).searches_count - begun_count, 0, 2);
    assert_in_range(node->crowd_driver->totals.shared_count, CROWD_OF_THREADS - 2, CROWD_OF_THREADS - 1);
}

static void too_many_searches_are_refused(void **state) {
    struct world *world = *state;
    struct crowd_driver *crowd_driver = world->nodes[2].crowd_driver;
    struct finder *finders = calloc(CROWD_DRIVER_SEARCHES_MAX + 8, sizeof *finders);
    size_t busy_count = 0;
    for (int i = 0; i < CROWD_DRIVER_SEARCHES_MAX + 8; i++) {
        start_find(&finders[i], crowd_driver, 100 + i);
    }
    for (int i = 0; i < CROWD_DRIVER_SEARCHES_MAX + 8; i++) {
        pthread_join(finders[i].thread, NULL);
        busy_count += finders[i].err == ERR_BUSY;
        assert_true(finders[i].err == ERR_BUSY || finders[i].err == ERR_NOT_FOUND);
    }
    assert_int_equal(busy_count, crowd_driver->totals.refused_count);
    assert_true(busy_count > 0);
    free(finders);
}

struct garbage {
    struct node *from;
    struct node *to;
};

static void send_garbage(void *context) {
    const struct garbage *garbage = context;
    uint8_t bytes[100];
    randombytes_buf(bytes, sizeof bytes);
    bytes[0] = CROWD_VERSION;
    bytes[1] = 200; /* a kind that there is not */
    memcpy(bytes + 2, garbage->to->ring, CROWD_NETWORK_SIZE);
    transport_send(garbage->from->transport, &garbage->to->self, DATAGRAM_CROWD,
                   bytes_of(bytes, sizeof bytes));
}

static bool is_blamed(struct world *world) {
    return world->nodes[1].blames_count > 0;
}

static void who_sends_nonsense_is_counted_and_blamed(void **state) {
    struct world *world = *state;
    struct garbage garbage = {.from = &world->nodes[5], .to = &world->nodes[1]};
    assert_true(transport_post(garbage.from->transport, send_garbage, &garbage));
    assert_true(await(is_blamed, world));
    assert_true(peer_equal(&world->nodes[1].blamed, &garbage.from->self));
    assert_non_null(strstr(world->nodes[1].sentence, "no sense to the crowd"));
}

static bool says(struct node *node, const char *sentence) {
    struct buf text;
    buf_init(&text, 1 << 20);
    transport_put(node->transport, &text);
    bool is_said = bytes_find(buf_bytes(&text), bytes_of_string(sentence)) < text.size;
    buf_done(&text);
    return is_said;
}

/* With the port of a stream, as if it had come from there. */
static bool is_named_as_member(struct world *world) {
    char sentence[COMPLAINT_SIZE_MAX];
    char address[ADDRESS_TEXT_SIZE_MAX];
    struct peer peer = world->nodes[2].self;
    snprintf(sentence, sizeof sentence, "\"%s is blamed: it tells lies",
             address_format(&peer.address, address));
    peer.address.port = 1;
    transport_blame(world->nodes[1].transport, &peer, "tells lies");
    return says(&world->nodes[1], sentence);
}

static bool is_named_by_key(struct world *world) {
    static const struct peer stranger = {.key = {1, 2, 3}};
    char sentence[COMPLAINT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    snprintf(sentence, sizeof sentence, ", the node %s, is blamed: it tells lies",
             identity_key_format(stranger.key, key));
    transport_blame(world->nodes[1].transport, &stranger, "tells lies");
    return says(&world->nodes[1], sentence);
}

static void who_is_blamed_is_named_as_the_ring_knows_him(void **state) {
    assert_true(await(is_named_as_member, *state));
    assert_true(await(is_named_by_key, *state));
}

static bool liar_has_left(struct world *world) {
    return !knows(&world->nodes[1], &world->nodes[4]);
}

static void who_is_distrusted_is_passed_over(void **state) {
    struct world *world = *state;
    struct crowd_driver *crowd_driver = world->nodes[1].crowd_driver;
    struct crowd_driver_hit hit;
    size_t count = 0;
    struct wish wish = wish_of(3);
    world->nodes[4].offered = 3;
    crowd_driver_distrust(crowd_driver, &world->nodes[4].self);
    assert_true(crowd_driver_is_distrusted(crowd_driver, &world->nodes[4].self));
    assert_true(await(liar_has_left, world));
    assert_int_equal(crowd_driver_find(crowd_driver, &wish, TIMEOUT_MS, 1, &hit, &count), ERR_NOT_FOUND);
    assert_int_equal(crowd_driver_find(world->nodes[2].crowd_driver, &wish, TIMEOUT_MS, 1, &hit, &count),
                     ERR_OK);
    pthread_mutex_lock(&crowd_driver->lock);
    for (size_t i = 0; i < crowd_driver->contacts_count; i++) {
        assert_false(peer_equal(&crowd_driver->contacts[i].peer, &world->nodes[4].self));
    }
    pthread_mutex_unlock(&crowd_driver->lock);
    wish = wish_of(5);
    world->nodes[3].offered = 5;
    world->nodes[4].offered = 5; /* it answers all that is asked for, and is as near */
    assert_int_equal(crowd_driver_find(crowd_driver, &wish, TIMEOUT_MS, 1, &hit, &count), ERR_OK);
    assert_true(peer_equal(&hit.holder, &world->nodes[3].self));
}

static bool dead_has_left(struct world *world) {
    for (size_t i = 0; i < NODES_COUNT; i++) {
        if (world->nodes[i].crowd_driver != NULL && knows(&world->nodes[i], &world->nodes[5])) {
            return false;
        }
    }
    return true;
}

static void who_is_dead_leaves_all_views(void **state) {
    struct world *world = *state;
    stop_node(&world->nodes[5]);
    assert_true(await(dead_has_left, world));
}

static bool is_back(struct world *world) {
    struct node *node = &world->nodes[5];
    pthread_mutex_lock(&node->crowd_driver->lock);
    bool has_joined = node->crowd_driver->totals.rejoins_count > 0; /* not only been called by others */
    pthread_mutex_unlock(&node->crowd_driver->lock);
    return has_joined && view_count(node) > 0;
}

static void contacts_are_enough_to_come_back(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[5];
    struct peer contacts[CROWD_DRIVER_CONTACTS_MAX];
    assert_true(crowd_driver_files_read(node->directory, contacts) > 0);
    node->hears_no_news = true;
    start_node(node);
    assert_true(await(is_back, world));
}

static void a_damaged_file_of_contacts_counts_as_none(void **state) {
    struct world *world = *state;
    struct peer contacts[CROWD_DRIVER_CONTACTS_MAX] = {{.address = address_ipv4(127, 0, 0, 1, 7)}};
    char path[SCRATCH_PATH_SIZE];
    const char *directory = world->nodes[5].directory;
    assert_int_equal(crowd_driver_files_write(directory, contacts, 1), ERR_OK);
    assert_int_equal(crowd_driver_files_read(directory, contacts), 1);
    snprintf(path, sizeof path, "%.200s/crowd-contacts", directory);
    assert_int_equal(truncate(path, 30), 0);
    assert_int_equal(crowd_driver_files_read(directory, contacts), 0);
    contacts[0].address.port = 0;
    assert_int_equal(crowd_driver_files_write(directory, contacts, 1), ERR_OK);
    assert_int_equal(crowd_driver_files_read(directory, contacts), 0);
}

static bool waits(struct world *world) {
    pthread_mutex_lock(&world->nodes[1].crowd_driver->lock);
    bool is_waiting = world->nodes[1].crowd_driver->waiting_count > 0;
    pthread_mutex_unlock(&world->nodes[1].crowd_driver->lock);
    return is_waiting;
}

static void an_end_wakes_who_waits(void **state) {
    struct world *world = *state;
    struct finder finder;
    start_find(&finder, world->nodes[1].crowd_driver, 98);
    assert_true(await(waits, world));
    crowd_driver_stop(world->nodes[1].crowd_driver);
    pthread_join(finder.thread, NULL);
    assert_int_equal(finder.err, ERR_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_fill),
        cmocka_unit_test(what_one_has_is_found),
        cmocka_unit_test(what_has_to_be_looked_for_is_found_later),
        cmocka_unit_test(threads_with_one_wish_share_a_search),
        cmocka_unit_test(too_many_searches_are_refused),
        cmocka_unit_test(who_sends_nonsense_is_counted_and_blamed),
        cmocka_unit_test(who_is_blamed_is_named_as_the_ring_knows_him),
        cmocka_unit_test(who_is_distrusted_is_passed_over),
        cmocka_unit_test(who_is_dead_leaves_all_views),
        cmocka_unit_test(contacts_are_enough_to_come_back),
        cmocka_unit_test(a_damaged_file_of_contacts_counts_as_none),
        cmocka_unit_test(an_end_wakes_who_waits),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
