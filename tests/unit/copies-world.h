/*
 * keeping-world - several nodes in one process, each with its own disk and streams on loopback, and a table
 * for a ring: for tests of node/copies/copies.h.
 */
#ifndef MNEMON_TESTS_COPIES_WORLD_H
#define MNEMON_TESTS_COPIES_WORLD_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "../copies-put.h"
#include "crawl/engine/attest.h"
#include "node/captures/captures_state.h"
#include "node/copies/copies.h"
#include "node/copies/copies_state.h"
#include "node/rpc/peer_rpc_state.h"
#include "scratch.h"
#include "unit.h"

enum {
    NODES_MAX = 4,
    BODY_SIZE = 8192,
    TURNS_MAX = UNIT_IS_SANITIZED ? 12000 : 6000,
    TURN_MS = 10,
    SECOND_US = 1000000
};

struct world;

/* How a node misbehaves. */
enum vice { HONEST, GIVES_FALSE, PROVES_FALSE, CONFIRMS_NOTHING, NEVER_COMPARES };

struct node {
    struct world *world;
    unsigned index;
    char directory[SCRATCH_PATH_SIZE];
    enum vice vice;
    bool is_full;
    bool keeps_everything;
    bool is_running;
    struct identity identity;
    struct peer peer;
    struct instance *instance;
    struct instance_session *session;
    struct peer_rpc *peer_rpc;
    struct captures *captures;
    struct copies *copies;
    atomic_uint blames_count;   /* of others by this one */
    atomic_uint confirms_count; /* questions for confirmation that it answered */
    atomic_uint given_count;    /* questions for copies, by their keys */
    atomic_bool is_mute;        /* it may not offer anything yet */
    atomic_bool knows_nothing;  /* of which captures it may take */
};

struct world {
    void *root;
    pthread_mutex_t lock;
    bool is_listed[NODES_MAX]; /* lock: in the ring */
    uint64_t generation;       /* lock */
    size_t copies;
    size_t nodes_count; /* lock, once a node runs */
    uint64_t compare_us;
    uint64_t grace_us;
    uint64_t challenge_us;
    bool keeps_surplus;
    bool has_slow_lines;
    bool is_still; /* the nodes answer, and do nothing of their own accord: the test does */
    struct node nodes[NODES_MAX];
};

/* ---- a ring: node n has the place n/4 around it ---- */

static inline struct ring_id place_of(unsigned index) {
    return (struct ring_id){UINT64_C(0x4000000000000000) * index + 7, 0};
}

/* The lock is held. The first listed node at or behind the place; the count: none. */
static inline unsigned first_from(const struct world *world, struct ring_id place) {
    for (unsigned i = 0; i < world->nodes_count; i++) {
        if (world->is_listed[i] && ring_id_compare(place_of(i), place) >= 0) {
            return i;
        }
    }
    for (unsigned i = 0; i < world->nodes_count; i++) {
        if (world->is_listed[i]) {
            return i;
        }
    }
    return NODES_MAX;
}

static inline unsigned next_of(const struct world *world, unsigned index, int step) {
    unsigned count = (unsigned)world->nodes_count;
    do {
        index = (index + count + (unsigned)step) % count;
    } while (!world->is_listed[index]);
    return index;
}

static inline bool ask_known(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    const struct node *self = context;
    struct world *world = self->world;
    pthread_mutex_lock(&world->lock);
    unsigned first = first_from(world, place);
    if (first < NODES_MAX) {
        unsigned index = first;
        *ret_arc = (struct holders_arc){
            .from = place_of(next_of(world, first, -1)), .to = place_of(first), .self_rank = -1};
        do {
            if (index == self->index) {
                ret_arc->self_rank = (int)ret_arc->count;
            }
            ret_arc->peers[ret_arc->count++] = world->nodes[index].peer;
            index = next_of(world, index, 1);
        } while (index != first && ret_arc->count < world->copies);
    }
    pthread_mutex_unlock(&world->lock);
    return first < NODES_MAX;
}

static inline enum err ask_find(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    return ask_known(context, place, ret_arc) ? ERR_OK : ERR_NOT_FOUND;
}

static inline size_t ask_own(void *context, struct holders_arc out[HOLDERS_ARCS_MAX]) {
    const struct node *self = context;
    return ask_known(context, place_of(self->index), out) && out[0].self_rank == 0 ? 1 : 0;
}

static inline size_t ask_copies(void *context) {
    const struct node *self = context;
    return self->world->copies;
}

static inline uint64_t ask_generation(void *context) {
    const struct node *self = context;
    pthread_mutex_lock(&self->world->lock);
    uint64_t generation = self->world->generation;
    pthread_mutex_unlock(&self->world->lock);
    return generation;
}

static inline bool locate(void *context, const uint8_t key[PEER_KEY_SIZE], struct peer *ret_peer) {
    struct world *world = ((struct node *)context)->world;
    bool is_found = false;
    pthread_mutex_lock(&world->lock);
    for (unsigned i = 0; i < world->nodes_count && !is_found; i++) {
        is_found = memcmp(world->nodes[i].peer.key, key, PEER_KEY_SIZE) == 0;
        if (is_found) {
            *ret_peer = world->nodes[i].peer;
        }
    }
    pthread_mutex_unlock(&world->lock);
    return is_found;
}

static inline void list(struct world *world, unsigned index, bool is_listed) {
    pthread_mutex_lock(&world->lock);
    world->is_listed[index] = is_listed;
    world->generation++;
    pthread_mutex_unlock(&world->lock);
}

/* ---- nodes ---- */

static inline void on_blame(void *context, const struct peer *peer, const char *sentence) {
    struct node *node = context;
    (void)peer;
    (void)sentence;
    atomic_fetch_add(&node->blames_count, 1);
}

static inline enum err find_surt(void *context, const struct ringkey *key, struct buf *out) {
    struct node *node = context;
    atomic_fetch_add(&node->given_count, 1);
    return copies_find_surt(node->copies, key, out);
}
static inline bool may_take(void *context) {
    struct node *node = context;
    return !atomic_load(&node->knows_nothing);
}

static inline bool may_offer(void *context) {
    struct node *node = context;
    return !atomic_load(&node->is_mute);
}

static inline bool may_copy(void *context, const struct peer *peer) {
    const struct node *node = context;
    return copies_may_copy(node->copies, peer);
}

/* The last byte of what is given is another. */
static inline enum err give_false(void *context, const struct peer *from, struct bytes question,
                                  struct buf *answer, struct err_detail *detail) {
    struct node *node = context;
    enum err err = captures_give(node->captures, from, question, answer, detail);
    if (err == ERR_OK && answer->size > 1) {
        answer->data[answer->size - 1] ^= 1;
    }
    return err;
}

static inline enum err give_many_false(void *context, const struct peer *from, struct bytes question,
                                       struct buf *answer, struct err_detail *detail) {
    struct node *node = context;
    enum err err = captures_give_many(node->captures, from, question, answer, detail);
    if (err == ERR_OK && answer->size > 0) {
        answer->data[answer->size - 1] ^= 1;
    }
    return err;
}

static inline enum err prove_false(void *context, const struct peer *from, struct bytes question,
                                   struct buf *answer, struct err_detail *detail) {
    static const uint8_t invented[COPIES_PROOF_SIZE] = {1, 2, 3};
    (void)context;
    (void)from;
    (void)question;
    (void)detail;
    return buf_put(answer, bytes_of(invented, sizeof invented));
}

static inline enum err confirm_nothing(void *context, const struct peer *from, struct bytes question,
                                       struct buf *answer, struct err_detail *detail) {
    static const uint8_t no[COPIES_KEYS_MAX];
    struct copies_keys keys;
    struct node *node = context;
    (void)from;
    atomic_fetch_add(&node->confirms_count, 1);
    enum err err = copies_read_keys(question, &keys, detail);
    if (err == ERR_OK) {
        buf_put_copies_bits(answer, no, keys.count, 1);
    }
    return err;
}

static inline void serve(struct node *node) {
    switch (node->vice) {
    case HONEST:
    case NEVER_COMPARES:
        break;
    case GIVES_FALSE:
        peer_rpc_serve(node->peer_rpc, PEER_RPC_CAPTURE, give_false, node);
        peer_rpc_serve(node->peer_rpc, PEER_RPC_CAPTURES, give_many_false, node);
        break;
    case PROVES_FALSE:
        peer_rpc_serve(node->peer_rpc, PEER_RPC_PROVE, prove_false, node);
        break;
    case CONFIRMS_NOTHING:
        peer_rpc_serve(node->peer_rpc, PEER_RPC_CONFIRM, confirm_nothing, node);
        break;
    }
}

static inline void open_disk(struct node *node) {
    struct instance_config config = {.directory = node->directory};
    struct err_detail detail = {0};
    if (instance_open(&config, &node->instance, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    node->session = instance_session_new(node->instance);
    assert_non_null(node->session);
}

/* The port stays the same over a life and the next. */
static inline void open_peer_rpc(struct node *node) {
    struct peer_rpc_config config = {.identity = &node->identity, .blame = on_blame, .context = node};
    char text[32];
    snprintf(text, sizeof text, "127.0.0.%u", node->index + 20);
    assert_true(address_parse(bytes_of_string(text), 0, &config.address));
    config.address.port = node->peer.address.port;
    assert_int_equal(peer_rpc_new(&config, &node->peer_rpc, NULL), ERR_OK);
    pthread_mutex_lock(&node->world->lock);
    node->peer.address = stream_server_address(node->peer_rpc->server);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
    pthread_mutex_unlock(&node->world->lock);
}

static inline void begin_copies(struct node *node) {
    if (node->world->is_still) {
        node->copies->captures = node->captures;
        assert_int_equal(copies_crew_init(node->copies), ERR_OK);
        assert_int_equal(copies_scrub_init(node->copies, NULL), ERR_OK);
        copies_step(node->copies, (struct replicator_event){.kind = REPLICATOR_PERMIT, .is_good = false});
    } else {
        assert_int_equal(copies_start(node->copies, node->captures, NULL), ERR_OK);
    }
}

static inline void start(struct node *node) {
    const struct world *world = node->world;
    struct err_detail detail = {0};
    open_disk(node);
    open_peer_rpc(node);
    struct copies_config config = {
        .directory = node->directory,
        .instance = node->instance,
        .peer_rpc = node->peer_rpc,
        .ring = {ask_own, ask_known, ask_find, ask_copies, ask_generation, locate, node},
        .grace_us = world->grace_us,
        .compare_interval_us = node->vice == NEVER_COMPARES ? 3600 * (uint64_t)SECOND_US : world->compare_us,
        .challenge_interval_us = world->challenge_us,
        .keeps_everything = node->keeps_everything,
        .keeps_surplus = world->keeps_surplus,
        .has_slow_lines = world->has_slow_lines,
        .space_min = node->is_full ? UINT64_MAX : 1,
        .seed = node->index,
        .may_offer = may_offer,
        .may_take = may_take,
        .blame = on_blame,
        .context = node,
    };
    if (copies_new(&config, &node->copies, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    struct captures_config captures = {
        .instance = node->instance,
        .peer_rpc = node->peer_rpc,
        .scratch_directory = node->directory,
        .find_surt = find_surt,
        .may_copy = may_copy,
        .blame = on_blame,
        .context = node,
    };
    node->captures = captures_new(&captures);
    assert_non_null(node->captures);
    serve(node);
    assert_int_equal(peer_rpc_start(node->peer_rpc, NULL), ERR_OK);
    begin_copies(node);
    node->is_running = true;
    list(node->world, node->index, true);
}

static inline void stop(struct node *node) {
    if (!node->is_running) {
        return;
    }
    list(node->world, node->index, false);
    peer_rpc_stop(node->peer_rpc);
    copies_stop(node->copies);
    copies_free(node->copies);
    captures_free(node->captures);
    peer_rpc_free(node->peer_rpc);
    instance_session_free(node->session);
    instance_close(node->instance);
    node->is_running = false;
}

static inline int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    if (world == NULL || scratch_make(&world->root) != 0) {
        return -1;
    }
    pthread_mutex_init(&world->lock, NULL);
    world->copies = 3;
    world->nodes_count = 3;
    world->compare_us = SECOND_US / 5;
    world->grace_us = 3600 * (uint64_t)SECOND_US;
    world->challenge_us = 3600 * (uint64_t)SECOND_US;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        struct node *node = &world->nodes[i];
        char name[16];
        node->world = world;
        node->index = i;
        snprintf(name, sizeof name, "node%u", i);
        mkdir(scratch_path(world->root, name, node->directory), 0777);
        assert_int_equal(identity_random(&node->identity), ERR_OK);
    }
    *state = world;
    return 0;
}

static inline int tear_down(void **state) {
    struct world *world = *state;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        stop(&world->nodes[i]);
    }
    int result = scratch_remove(&world->root);
    pthread_mutex_destroy(&world->lock);
    free(world);
    return result;
}

static inline void start_all(struct world *world) {
    for (unsigned i = 0; i < world->nodes_count; i++) {
        start(&world->nodes[i]);
    }
}

/* ---- captures ---- */

/* Bytes that do not compress, equal for equal numbers. */
static inline struct bytes body_of(unsigned n, uint8_t out[BODY_SIZE]) {
    uint8_t seed[randombytes_SEEDBYTES] = {(uint8_t)n, (uint8_t)(n >> 8)};
    randombytes_buf_deterministic(out, BODY_SIZE, seed);
    return bytes_of(out, BODY_SIZE);
}

static inline struct document document_of(unsigned n, unsigned body, char url[64],
                                          uint8_t memory[BODY_SIZE]) {
    snprintf(url, 64, "http://example.org/%u", n);
    return (struct document){
        .url = bytes_of_string(url),
        .time_us = (int64_t)(n + 1) * SECOND_US,
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
        .body = body_of(body, memory),
    };
}

static inline void put(struct node *node, unsigned n, unsigned body) {
    char url[64];
    uint8_t memory[BODY_SIZE];
    struct document document = document_of(n, body, url, memory);
    struct stored stored;
    assert_int_equal(
        instance_put(node->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL), ERR_OK);
}

/* The key of put(n, body). */
static inline struct ringkey key_of(unsigned n, unsigned body) {
    char surt[64];
    uint8_t memory[BODY_SIZE];
    struct sha256 sha256;
    struct capture capture = {.time_us = (int64_t)(n + 1) * SECOND_US};
    snprintf(surt, sizeof surt, "org,example)/%u", n);
    capture.surt = bytes_of_string(surt);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, body_of(body, memory), capture.digest);
    struct ringkey key = position_capture_key(&sha256, &capture, POSITION_BY_URL);
    sha256_done(&sha256);
    return key;
}

static inline bool has(struct node *node, const struct ringkey *key) {
    struct buf surt;
    buf_init(&surt, 1024);
    enum err err = copies_find_surt(node->copies, key, &surt);
    buf_done(&surt);
    return err == ERR_OK;
}

static inline size_t count_copies(struct world *world, const struct ringkey *key) {
    size_t count = 0;
    for (unsigned i = 0; i < world->nodes_count; i++) {
        count += world->nodes[i].is_running && has(&world->nodes[i], key);
    }
    return count;
}

static inline struct ring_view_stored stat_of(struct node *node) {
    struct ring_view_stored stat;
    copies_stat(node->copies, &stat);
    return stat;
}

static inline void pass_turn(void) {
    struct timespec turn = {.tv_nsec = TURN_MS * 1000000L};
    nanosleep(&turn, NULL);
}

/* Wait until the expression holds; a macro, so that the test that waits in vain is named. */
#define wait_for(expression)                            \
    do {                                                \
        unsigned turns_ = 0;                            \
        while (!(expression) && turns_++ < TURNS_MAX) { \
            pass_turn();                                \
        }                                               \
        assert_true(expression);                        \
    } while (0)

static inline bool all_have(struct world *world, uint64_t count) {
    bool have = true;
    for (unsigned i = 0; i < world->nodes_count && have; i++) {
        have = stat_of(&world->nodes[i]).keys_count == count;
    }
    return have;
}

static inline bool all_are_whole(struct node *node) {
    struct buf out;
    struct json json;
    buf_init(&out, 1 << 20);
    json_init(&json, &out);
    copies_put_json(node->copies, &json, NULL);
    const char *text = buf_string(&out);
    bool is_whole = text != NULL && strstr(text, "\"level\":\"whole\"") != NULL &&
                    strstr(text, "\"level\":\"low\"") == NULL;
    buf_done(&out);
    return is_whole;
}

static inline void expect_body(struct node *node, unsigned n, unsigned body) {
    struct ringkey key = key_of(n, body);
    struct copies_reader reader = {0};
    struct bytes payload;
    uint8_t memory[BODY_SIZE];
    assert_int_equal(copies_reader_init(&reader, node->instance), ERR_OK);
    assert_int_equal(copies_read_payload(node->copies, &reader, &key, &payload, NULL), ERR_OK);
    struct bytes expected = body_of(body, memory);
    assert_true(bytes_equal(payload, expected));
    copies_reader_done(&reader);
}

/* Is it with all its holders, or with the next node where one of them is full? */
static inline bool is_kept(struct world *world, const struct ringkey *key, unsigned full) {
    struct holders_arc arc;
    ask_known(&world->nodes[0], ring_id_read(key->bytes), &arc);
    unsigned index = first_from(world, arc.to);
    bool kept = true;
    for (size_t copies = 0; copies < world->copies && kept; index = next_of(world, index, 1)) {
        if (index != full) {
            kept = has(&world->nodes[index], key);
            copies++;
        }
    }
    return kept;
}

static inline bool are_kept(struct world *world, unsigned count, unsigned full) {
    bool kept = true;
    for (unsigned n = 0; n < count && kept; n++) {
        struct ringkey key = key_of(n, n);
        kept = is_kept(world, &key, full);
    }
    return kept;
}

static inline bool have_copies(struct world *world, unsigned count, size_t copies) {
    bool have = true;
    for (unsigned n = 0; n < count && have; n++) {
        struct ringkey key = key_of(n, n);
        have = count_copies(world, &key) == copies;
    }
    return have;
}

#define copies_test(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
