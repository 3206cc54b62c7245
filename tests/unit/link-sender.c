/* Links between four nodes over real sockets: each with its thread, its frontier in memory, one loop for all
 * sockets. */
#include "node/links/link_sender.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "await.h"
#include "net/datagram.h"
#include "net/identity.h"
#include "unit.h"

enum { NODES = 4, HOLDERS = 2, LINKS = 300, QUEUE_MAX = 1024 };

struct world;

struct link {
    char url[64];
    uint8_t place[ROUTE_POSITION_SIZE];
    bool is_dropped;
    unsigned nodes; /* bits: to whom it was delivered */
};

struct sending {
    struct peer to;
    size_t size;
    uint8_t bytes[STEP_MESSAGE_SIZE_MAX];
};

struct node {
    struct world *world;
    unsigned index;
    struct identity identity;
    struct datagram *datagram;
    struct peer peer;
    struct link_sender *link_sender;
    struct sending queue[QUEUE_MAX]; /* lock */
    size_t queue_count;              /* lock */
    bool is_deaf;                    /* lock: it hears nothing */
};

struct world {
    uv_loop_t loop;
    uv_async_t wake;
    pthread_t thread;
    pthread_mutex_t lock;
    bool is_stopping; /* lock */
    struct node nodes[NODES];
    struct vnode places[NODES]; /* by ID */
    struct link links[LINKS];   /* lock; of node 0, by place */
    size_t wrong_count;         /* lock */
};

/* ---- the ring ---- */

static unsigned position_of(const struct world *world, struct ring_id id) {
    for (unsigned i = 0; i < NODES; i++) {
        if (ring_id_compare(world->places[i].id, id) >= 0) {
            return i;
        }
    }
    return 0;
}

static struct ring_id id_of(const uint8_t place[ROUTE_POSITION_SIZE]) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(place, ROUTE_POSITION_SIZE));
    return message_read_id(&reader);
}

static size_t places_from(const struct world *world, unsigned position, struct vnode *out,
                          size_t places_max) {
    size_t count = places_max < NODES ? places_max : NODES;
    for (size_t i = 0; i < count; i++) {
        out[i] = world->places[(position + i) % NODES];
    }
    return count;
}

static size_t node_after(void *context, struct ring_id id, struct vnode *out, size_t places_max) {
    const struct node *node = context;
    return places_from(node->world, position_of(node->world, ring_id_add_power(id, 0)), out, places_max);
}

static uint64_t node_arcs(void *context) {
    (void)context;
    return NODES;
}

static void node_find(void *context, uint64_t number, struct ring_id key, size_t vnodes_wanted) {
    struct node *node = context;
    struct vnode places[NODES];
    size_t count = places_from(node->world, position_of(node->world, key), places, vnodes_wanted);
    link_sender_found(node->link_sender, number, places, count);
}

/* ---- frontiers: only node 0 has links ---- */

static enum err node_read(void *context, const char *job, const uint8_t after_position[ROUTE_POSITION_SIZE],
                          struct bytes after_url, struct buf *work, struct frontier_outgoing *ret_links,
                          size_t count_max, size_t *ret_count) {
    struct node *node = context;
    struct world *world = node->world;
    (void)after_position;
    (void)after_url;
    (void)work;
    (void)job;
    *ret_count = 0;
    pthread_mutex_lock(&world->lock);
    for (size_t i = 0; i < LINKS && *ret_count < count_max && node->index == 0; i++) {
        const struct link *link = &world->links[i];
        if (!link->is_dropped) {
            struct frontier_outgoing *out = &ret_links[(*ret_count)++];
            *out = (struct frontier_outgoing){
                .url = bytes_of_string(link->url), .depth = 2, .priority = FRONTIER_PAGE};
            memcpy(out->place, link->place, sizeof out->place);
        }
    }
    pthread_mutex_unlock(&world->lock);
    return ERR_OK;
}

static struct link *find_link(struct world *world, struct bytes url) {
    for (size_t i = 0; i < LINKS; i++) {
        if (bytes_equal(bytes_of_string(world->links[i].url), url)) {
            return &world->links[i];
        }
    }
    return NULL;
}

static void node_drop(void *context, const char *job, const struct frontier_outgoing *links, size_t count) {
    struct node *node = context;
    (void)job;
    pthread_mutex_lock(&node->world->lock);
    for (size_t i = 0; i < count; i++) {
        find_link(node->world, links[i].url)->is_dropped = true;
    }
    pthread_mutex_unlock(&node->world->lock);
}

static void node_deliver(void *context, const struct link_sender_delivery *delivery) {
    struct node *node = context;
    struct world *world = node->world;
    uint8_t id[LINKS_CODE_JOB_SIZE];
    bool is_job = link_sender_job_id("museum", id) == ERR_OK && memcmp(id, delivery->job, sizeof id) == 0;
    pthread_mutex_lock(&world->lock);
    for (size_t i = 0; i < delivery->count; i++) {
        struct link *link = find_link(world, delivery->links[i].url);
        bool is_sound = is_job && link != NULL && delivery->links[i].depth == 2 &&
                        peer_equal(&delivery->from, &world->nodes[0].peer);
        world->wrong_count += !is_sound;
        if (is_sound) {
            unsigned position = position_of(world, id_of(link->place));
            bool is_primary = peer_equal(&world->places[position].peer, &node->peer);
            world->wrong_count += is_primary != delivery->is_primary;
            link->nodes |= 1u << node->index;
        }
    }
    pthread_mutex_unlock(&world->lock);
    link_sender_took(node->link_sender, delivery->number, LINK_RELAY_TAKEN, delivery->count, delivery->count);
}

/* ---- sockets ---- */

static void node_send(void *context, const struct peer *to, struct bytes message) {
    struct node *node = context;
    pthread_mutex_lock(&node->world->lock);
    if (node->queue_count < QUEUE_MAX) {
        struct sending *sending = &node->queue[node->queue_count++];
        sending->to = *to;
        sending->size = message.size;
        memcpy(sending->bytes, message.data, message.size);
    }
    pthread_mutex_unlock(&node->world->lock);
    uv_async_send(&node->world->wake);
}

static void node_blame(void *context, const uint8_t key[PEER_KEY_SIZE], struct bytes why) {
    struct node *node = context;
    (void)key;
    (void)why;
    pthread_mutex_lock(&node->world->lock);
    node->world->wrong_count++;
    pthread_mutex_unlock(&node->world->lock);
}

static const struct link_sender_table table = {
    .read = node_read,
    .drop = node_drop,
    .deliver = node_deliver,
    .find = node_find,
    .after = node_after,
    .arcs = node_arcs,
    .send = node_send,
    .blame = node_blame,
};

static void on_message(void *context, const struct datagram_message *message) {
    struct node *node = context;
    pthread_mutex_lock(&node->world->lock);
    bool is_deaf = node->is_deaf;
    pthread_mutex_unlock(&node->world->lock);
    if (message->kind == DATAGRAM_LINKS && !is_deaf) {
        link_sender_receive(node->link_sender, &message->from, message->bytes);
    }
}

static void on_wake(uv_async_t *async) {
    struct world *world = async->data;
    static struct sending sending;
    for (unsigned i = 0; i < NODES; i++) {
        struct node *node = &world->nodes[i];
        for (bool is_more = true; is_more;) {
            pthread_mutex_lock(&world->lock);
            is_more = node->queue_count > 0;
            if (is_more) {
                sending = node->queue[--node->queue_count];
            }
            pthread_mutex_unlock(&world->lock);
            if (is_more) {
                (void)datagram_send(node->datagram, &sending.to, DATAGRAM_LINKS,
                                    bytes_of(sending.bytes, sending.size));
            }
        }
    }
    pthread_mutex_lock(&world->lock);
    bool is_stopping = world->is_stopping;
    pthread_mutex_unlock(&world->lock);
    if (is_stopping) {
        for (unsigned i = 0; i < NODES; i++) {
            datagram_free(world->nodes[i].datagram);
        }
        uv_close((uv_handle_t *)&world->wake, NULL);
    }
}

static void *run_loop(void *context) {
    struct world *world = context;
    uv_run(&world->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* ---- the world ---- */

static void add_node(struct world *world, unsigned index, struct sha256 *sha256) {
    struct node *node = &world->nodes[index];
    uint8_t seed[IDENTITY_SEED_SIZE] = {(uint8_t)(index + 1)};
    struct datagram_config config = {
        .loop = &world->loop,
        .identity = &node->identity,
        .address = address_ipv4(127, 0, 0, (uint8_t)(2 + index), 0),
        .contacts.first = {1000, 1000},
        .on_message = on_message,
        .context = node,
    };
    node->world = world;
    node->index = index;
    assert_int_equal(identity_from_seed(&node->identity, seed), ERR_OK);
    assert_int_equal(datagram_new(&config, &node->datagram, NULL), ERR_OK);
    node->peer.address = datagram_address(node->datagram);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
    world->places[index] =
        (struct vnode){.peer = node->peer, .id = ring_id_of_node(sha256, &node->peer.address, 0)};
}

static int compare_places(const void *a, const void *b) {
    return ring_id_compare(((const struct vnode *)a)->id, ((const struct vnode *)b)->id);
}

static int compare_links(const void *a, const void *b) {
    return memcmp(((const struct link *)a)->place, ((const struct link *)b)->place, ROUTE_POSITION_SIZE);
}

static int start(void **state) {
    struct world *world = calloc(1, sizeof *world);
    struct sha256 sha256;
    assert_non_null(world);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    pthread_mutex_init(&world->lock, NULL);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    uv_async_init(&world->loop, &world->wake, on_wake);
    world->wake.data = world;
    for (unsigned i = 0; i < NODES; i++) {
        add_node(world, i, &sha256);
    }
    qsort(world->places, NODES, sizeof world->places[0], compare_places);
    for (size_t i = 0; i < LINKS; i++) {
        struct link *link = &world->links[i];
        uint8_t digest[SHA256_SIZE];
        snprintf(link->url, sizeof link->url, "https://www.museum.example/paintings/%zu.html", i);
        sha256_digest(&sha256, bytes_of_string(link->url), digest);
        memcpy(link->place, digest, sizeof link->place);
    }
    qsort(world->links, LINKS, sizeof world->links[0], compare_links);
    sha256_done(&sha256);
    for (unsigned i = 0; i < NODES; i++) {
        struct node *node = &world->nodes[i];
        struct link_sender_config config = {.self = node->peer,
                                            .holders_count = HOLDERS,
                                            .flush_us = 50000,
                                            .seed = i,
                                            .table = &table,
                                            .context = node};
        assert_int_equal(link_sender_start(&config, &node->link_sender), ERR_OK);
    }
    assert_int_equal(pthread_create(&world->thread, NULL, run_loop, world), 0);
    *state = world;
    return 0;
}

static int stop(void **state) {
    struct world *world = *state;
    pthread_mutex_lock(&world->lock);
    world->is_stopping = true;
    pthread_mutex_unlock(&world->lock);
    uv_async_send(&world->wake);
    pthread_join(world->thread, NULL);
    for (unsigned i = 0; i < NODES; i++) {
        link_sender_stop(world->nodes[i].link_sender);
        link_sender_free(world->nodes[i].link_sender);
    }
    assert_int_equal(uv_loop_close(&world->loop), 0);
    for (unsigned i = 0; i < NODES; i++) {
        identity_done(&world->nodes[i].identity);
    }
    pthread_mutex_destroy(&world->lock);
    free(world);
    return 0;
}

/* Until all links have left node 0. */
static bool await_dropped(struct world *world, size_t wanted) {
    size_t count = 0;
    unsigned turns_count = 0;
    while (count < wanted && await_turn(&turns_count)) {
        count = 0;
        pthread_mutex_lock(&world->lock);
        for (size_t j = 0; j < LINKS; j++) {
            count += world->links[j].is_dropped;
        }
        pthread_mutex_unlock(&world->lock);
    }
    return count >= wanted;
}

/* How many of its holders have each link, ourselves counted. */
static void check_holders(struct world *world) {
    pthread_mutex_lock(&world->lock);
    for (size_t i = 0; i < LINKS; i++) {
        unsigned position = position_of(world, id_of(world->links[i].place));
        for (unsigned j = 0; j < HOLDERS; j++) {
            const struct peer *peer = &world->places[(position + j) % NODES].peer;
            unsigned index = 0;
            while (!peer_equal(&world->nodes[index].peer, peer)) {
                index++;
            }
            assert_true(index == 0 || (world->links[i].nodes >> index & 1) != 0);
        }
    }
    assert_int_equal(world->wrong_count, 0);
    pthread_mutex_unlock(&world->lock);
}

static void links_leave_the_disk_when_their_holders_have_them(void **state) {
    struct world *world = *state;
    link_sender_outgoing(world->nodes[0].link_sender, "museum");
    assert_true(await_dropped(world, LINKS));
    check_holders(world);
    struct link_relay_counters counters = link_sender_counters(world->nodes[0].link_sender);
    assert_true(counters.sent_size < (size_t)LINKS * HOLDERS * 12); /* much alike, many in one */
}

/* Nobody hears anything for a while: nothing leaves the disk, and in the end they have theirs. */
static void links_wait_for_who_is_away(void **state) {
    struct world *world = *state;
    pthread_mutex_lock(&world->lock);
    for (unsigned i = 1; i < NODES; i++) {
        world->nodes[i].is_deaf = true;
    }
    pthread_mutex_unlock(&world->lock);
    link_sender_outgoing(world->nodes[0].link_sender, "museum");
    await_that(link_sender_counters(world->nodes[0].link_sender).repeated_count >= 4);
    pthread_mutex_lock(&world->lock);
    for (size_t i = 0; i < LINKS; i++) {
        assert_false(world->links[i].is_dropped);
    }
    for (unsigned i = 1; i < NODES; i++) {
        world->nodes[i].is_deaf = false;
    }
    pthread_mutex_unlock(&world->lock);
    assert_true(await_dropped(world, LINKS));
    assert_int_equal(world->wrong_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(links_leave_the_disk_when_their_holders_have_them, start, stop),
        cmocka_unit_test_setup_teardown(links_wait_for_who_is_away, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
