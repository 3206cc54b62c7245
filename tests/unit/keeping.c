/* keeping: several nodes in one process, each with its own disk and streams on loopback; a table for a ring.
 */
#include "node/keeping.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "node/bulk_state.h"
#include "node/captures_state.h"
#include "node/keeping_state.h"
#include "scratch.h"
#include "store/attest.h"
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
enum vice { HONEST, GIVES_FALSE, PROVES_FALSE, CONFIRMS_NOTHING };

struct node {
    struct world *world;
    unsigned index;
    char directory[SCRATCH_PATH_SIZE];
    enum vice vice;
    bool is_full;
    bool is_running;
    struct identity identity;
    struct peer peer;
    struct instance *instance;
    struct instance_session *session;
    struct bulk *bulk;
    struct captures *captures;
    struct keeping *keeping;
    atomic_uint blames_count;   /* of others by this one */
    atomic_uint confirms_count; /* questions for confirmation that it answered */
};

struct world {
    void *root;
    pthread_mutex_t lock;
    bool is_listed[NODES_MAX]; /* lock: in the ring */
    uint64_t generation;       /* lock */
    size_t copies;
    size_t nodes_count;
    uint64_t compare_us;
    uint64_t grace_us;
    uint64_t challenge_us;
    bool keeps_surplus;
    struct node nodes[NODES_MAX];
};

/* ---- a ring: node n has the place n/4 around it ---- */

static struct ring_id place_of(unsigned index) {
    return (struct ring_id){UINT64_C(0x4000000000000000) * index + 7, 0};
}

/* The lock is held. The first listed node at or behind the place; the count: none. */
static unsigned first_from(const struct world *world, struct ring_id place) {
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

static unsigned next_of(const struct world *world, unsigned index, int step) {
    unsigned count = (unsigned)world->nodes_count;
    do {
        index = (index + count + (unsigned)step) % count;
    } while (!world->is_listed[index]);
    return index;
}

static bool ask_known(void *context, struct ring_id place, struct holders_arc *ret_arc) {
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

static enum err ask_find(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    return ask_known(context, place, ret_arc) ? ERR_OK : ERR_NOT_FOUND;
}

static size_t ask_own(void *context, struct holders_arc out[HOLDERS_ARCS_MAX]) {
    const struct node *self = context;
    return ask_known(context, place_of(self->index), out) && out[0].self_rank == 0 ? 1 : 0;
}

static size_t ask_copies(void *context) {
    const struct node *self = context;
    return self->world->copies;
}

static uint64_t ask_generation(void *context) {
    const struct node *self = context;
    pthread_mutex_lock(&self->world->lock);
    uint64_t generation = self->world->generation;
    pthread_mutex_unlock(&self->world->lock);
    return generation;
}

static void list(struct world *world, unsigned index, bool is_listed) {
    pthread_mutex_lock(&world->lock);
    world->is_listed[index] = is_listed;
    world->generation++;
    pthread_mutex_unlock(&world->lock);
}

/* ---- nodes ---- */

static void on_blame(void *context, const struct peer *peer, const char *sentence) {
    struct node *node = context;
    (void)peer;
    (void)sentence;
    atomic_fetch_add(&node->blames_count, 1);
}

static enum err find_surt(void *context, const struct ringkey *key, struct buf *out) {
    const struct node *node = context;
    return keeping_find_surt(node->keeping, key, out);
}

/* The last byte of what is given is another. */
static enum err give_false(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                           struct err_detail *detail) {
    struct node *node = context;
    enum err err = captures_give(node->captures, from, question, answer, detail);
    if (err == ERR_OK && answer->size > 1) {
        answer->data[answer->size - 1] ^= 1;
    }
    return err;
}

static enum err prove_false(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                            struct err_detail *detail) {
    static const uint8_t invented[KEEPING_PROOF_SIZE] = {1, 2, 3};
    (void)context;
    (void)from;
    (void)question;
    (void)detail;
    return buf_put(answer, bytes_of(invented, sizeof invented));
}

static enum err confirm_nothing(void *context, const struct peer *from, struct bytes question,
                                struct buf *answer, struct err_detail *detail) {
    static const uint8_t no[KEEPING_KEYS_MAX];
    struct keeping_keys keys;
    struct node *node = context;
    (void)from;
    atomic_fetch_add(&node->confirms_count, 1);
    enum err err = keeping_read_keys(question, &keys, detail);
    if (err == ERR_OK) {
        keeping_put_bits(answer, no, keys.count, 1);
    }
    return err;
}

static void serve(struct node *node) {
    switch (node->vice) {
    case HONEST:
        break;
    case GIVES_FALSE:
        bulk_serve(node->bulk, BULK_CAPTURE, give_false, node);
        break;
    case PROVES_FALSE:
        bulk_serve(node->bulk, BULK_PROVE, prove_false, node);
        break;
    case CONFIRMS_NOTHING:
        bulk_serve(node->bulk, BULK_CONFIRM, confirm_nothing, node);
        break;
    }
}

static void open_disk(struct node *node) {
    struct instance_config config = {.directory = node->directory};
    struct err_detail detail = {0};
    if (instance_open(&config, &node->instance, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    node->session = instance_session_new(node->instance);
    assert_non_null(node->session);
}

/* The port stays the same over a life and the next. */
static void open_bulk(struct node *node) {
    struct bulk_config config = {.identity = &node->identity, .blame = on_blame, .context = node};
    char text[32];
    snprintf(text, sizeof text, "127.0.0.%u", node->index + 20);
    assert_true(address_parse(bytes_of_string(text), 0, &config.address));
    config.address.port = node->peer.address.port;
    assert_int_equal(bulk_new(&config, &node->bulk, NULL), ERR_OK);
    pthread_mutex_lock(&node->world->lock);
    node->peer.address = stream_server_address(node->bulk->server);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
    pthread_mutex_unlock(&node->world->lock);
}

static void start(struct node *node) {
    const struct world *world = node->world;
    struct err_detail detail = {0};
    open_disk(node);
    open_bulk(node);
    struct keeping_config config = {
        .directory = node->directory,
        .instance = node->instance,
        .bulk = node->bulk,
        .ring = {ask_own, ask_known, ask_find, ask_copies, ask_generation, node},
        .grace_us = world->grace_us,
        .compare_interval_us = world->compare_us,
        .challenge_interval_us = world->challenge_us,
        .keeps_surplus = world->keeps_surplus,
        .space_min = node->is_full ? UINT64_MAX : 1,
        .seed = node->index,
        .blame = on_blame,
        .context = node,
    };
    if (keeping_new(&config, &node->keeping, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    struct captures_config captures = {
        .instance = node->instance,
        .bulk = node->bulk,
        .scratch_directory = node->directory,
        .find_surt = find_surt,
        .blame = on_blame,
        .context = node,
    };
    node->captures = captures_new(&captures);
    assert_non_null(node->captures);
    serve(node);
    assert_int_equal(bulk_start(node->bulk, NULL), ERR_OK);
    assert_int_equal(keeping_start(node->keeping, node->captures, NULL), ERR_OK);
    node->is_running = true;
    list(node->world, node->index, true);
}

static void stop(struct node *node) {
    if (!node->is_running) {
        return;
    }
    list(node->world, node->index, false);
    bulk_stop(node->bulk);
    keeping_stop(node->keeping);
    keeping_free(node->keeping);
    captures_free(node->captures);
    bulk_free(node->bulk);
    instance_session_free(node->session);
    instance_close(node->instance);
    node->is_running = false;
}

static int set_up(void **state) {
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

static int tear_down(void **state) {
    struct world *world = *state;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        stop(&world->nodes[i]);
    }
    int result = scratch_remove(&world->root);
    pthread_mutex_destroy(&world->lock);
    free(world);
    return result;
}

static void start_all(struct world *world) {
    for (unsigned i = 0; i < world->nodes_count; i++) {
        start(&world->nodes[i]);
    }
}

/* ---- captures ---- */

/* Bytes that do not compress, equal for equal numbers. */
static struct bytes body_of(unsigned n, uint8_t out[BODY_SIZE]) {
    uint8_t seed[randombytes_SEEDBYTES] = {(uint8_t)n, (uint8_t)(n >> 8)};
    randombytes_buf_deterministic(out, BODY_SIZE, seed);
    return bytes_of(out, BODY_SIZE);
}

static struct document document_of(unsigned n, unsigned body, char url[64], uint8_t memory[BODY_SIZE]) {
    snprintf(url, 64, "http://example.org/%u", n);
    return (struct document){
        .url = bytes_of_string(url),
        .time_us = (int64_t)(n + 1) * SECOND_US,
        .head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
        .body = body_of(body, memory),
    };
}

static void put(struct node *node, unsigned n, unsigned body) {
    char url[64];
    uint8_t memory[BODY_SIZE];
    struct document document = document_of(n, body, url, memory);
    struct stored stored;
    assert_int_equal(
        instance_put(node->session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL), ERR_OK);
}

/* The key of put(n, body). */
static struct ringkey key_of(unsigned n, unsigned body) {
    char surt[64];
    uint8_t memory[BODY_SIZE];
    struct sha256 sha256;
    struct capture capture = {.time_us = (int64_t)(n + 1) * SECOND_US};
    snprintf(surt, sizeof surt, "org,example)/%u", n);
    capture.surt = bytes_of_string(surt);
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, body_of(body, memory), capture.signature);
    struct ringkey key = place_capture_key(&sha256, &capture, PLACE_BY_URL);
    sha256_done(&sha256);
    return key;
}

static bool has(struct node *node, const struct ringkey *key) {
    struct buf surt;
    buf_init(&surt, 1024);
    enum err err = keeping_find_surt(node->keeping, key, &surt);
    buf_done(&surt);
    return err == ERR_OK;
}

static size_t count_copies(struct world *world, const struct ringkey *key) {
    size_t count = 0;
    for (unsigned i = 0; i < world->nodes_count; i++) {
        count += world->nodes[i].is_running && has(&world->nodes[i], key);
    }
    return count;
}

static struct keeping_stat stat_of(struct node *node) {
    struct keeping_stat stat;
    keeping_stat(node->keeping, &stat);
    return stat;
}

static void pass_turn(void) {
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

static bool all_have(struct world *world, uint64_t count) {
    bool have = true;
    for (unsigned i = 0; i < world->nodes_count && have; i++) {
        have = stat_of(&world->nodes[i]).keys_count == count;
    }
    return have;
}

static bool all_are_whole(struct node *node) {
    struct buf json;
    buf_init(&json, 1 << 20);
    keeping_put_json(node->keeping, &json);
    const char *text = buf_string(&json);
    bool is_whole = text != NULL && strstr(text, "\"level\":\"whole\"") != NULL &&
                    strstr(text, "\"level\":\"low\"") == NULL;
    buf_done(&json);
    return is_whole;
}

static void expect_body(struct node *node, unsigned n, unsigned body) {
    struct ringkey key = key_of(n, body);
    struct keeping_reader reader = {0};
    struct bytes payload;
    uint8_t memory[BODY_SIZE];
    assert_int_equal(keeping_reader_init(&reader, node->instance), ERR_OK);
    assert_int_equal(keeping_read_payload(node->keeping, &reader, &key, &payload, NULL), ERR_OK);
    struct bytes expected = body_of(body, memory);
    assert_true(bytes_equal(payload, expected));
    keeping_reader_done(&reader);
}

/* ---- tests ---- */

static void what_one_stores_the_others_get(void **state) {
    struct world *world = *state;
    start_all(world);
    for (unsigned n = 0; n < 60; n += 3) {
        put(&world->nodes[n % 2], n, n / 3);
    }
    wait_for(all_have(world, 20)); /* a body that is on its way is not yet known, and would travel again */
    for (unsigned n = 0; n < 60; n++) {
        if (n % 3 != 0) {
            put(&world->nodes[n % 2], n, n / 3);
        }
    }
    wait_for(all_have(world, 60));
    for (unsigned n = 0; n < 60; n += 7) {
        for (unsigned i = 0; i < world->nodes_count; i++) {
            expect_body(&world->nodes[i], n, n / 3);
        }
    }
    struct keeping_stat stat = stat_of(&world->nodes[2]);
    assert_int_equal(stat.fetched_count, 60);
    assert_int_equal(stat.fetched_about_count, 40); /* a duplicate's body does not travel */
    assert_int_equal(stat.fetched_size, 20 * BODY_SIZE);
    assert_int_equal(stat.refused_count, 0);
    for (unsigned i = 0; i < world->nodes_count; i++) {
        wait_for(all_are_whole(&world->nodes[i]));
        for (unsigned j = 0; j < world->nodes_count; j++) {
            wait_for(keeping_is_compared(world->nodes[i].keeping, place_of(j)));
        }
        assert_int_equal(atomic_load(&world->nodes[i].blames_count), 0);
    }
}

/* A giver that is busy is asked again until it has given everything; no comparison is needed for that. */
static void a_busy_giver_gives_later(void **state) {
    struct world *world = *state;
    world->nodes_count = world->copies = 2;
    world->compare_us = 3600 * (uint64_t)SECOND_US;
    start_all(world);
    wait_for(keeping_is_compared(world->nodes[1].keeping, place_of(0)));
    world->nodes[0].bulk->reads.rate = 20; /* nobody has read anything yet */
    for (unsigned n = 0; n < 30; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 30));
    struct bulk_stat stat;
    bulk_stat(world->nodes[0].bulk, &stat);
    assert_true(stat.shed_count > 0);
    assert_int_equal(stat_of(&world->nodes[1]).fetched_count, 30);
    assert_int_equal(atomic_load(&world->nodes[1].blames_count), 0);
}

static void who_was_away_gets_only_the_difference(void **state) {
    struct world *world = *state;
    struct node *late = &world->nodes[2];
    struct bulk_stat traffic;
    start_all(world);
    for (unsigned n = 0; n < 80; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 80));
    stop(late);
    for (unsigned n = 80; n < 84; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(stat_of(&world->nodes[1]).keys_count == 84);
    start(late);
    wait_for(all_have(world, 84));
    assert_int_equal(stat_of(late).fetched_count, 4);
    bulk_stat(late->bulk, &traffic);
    assert_true(traffic.received_size < 10 * BODY_SIZE); /* of 84 */
}

static void a_lost_disk_is_filled_again(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[1];
    start_all(world);
    for (unsigned n = 0; n < 50; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 50));
    stop(node);
    assert_int_equal(nftw(node->directory, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    mkdir(node->directory, 0777);
    start(node);
    wait_for(all_have(world, 50));
    expect_body(node, 49, 49);
}

static void what_is_false_is_refused_and_blamed(void **state) {
    struct world *world = *state;
    world->nodes[0].vice = GIVES_FALSE;
    start_all(world);
    put(&world->nodes[0], 1, 1);
    put(&world->nodes[1], 2, 2);
    wait_for(stat_of(&world->nodes[1]).refused_count > 0 || stat_of(&world->nodes[2]).refused_count > 0);
    wait_for(atomic_load(&world->nodes[1].blames_count) + atomic_load(&world->nodes[2].blames_count) > 0);
    struct ringkey sound = key_of(2, 2);
    struct ringkey false_one = key_of(1, 1);
    wait_for(has(&world->nodes[2], &sound));
    assert_false(has(&world->nodes[1], &false_one));
    assert_false(has(&world->nodes[2], &false_one));
}

static void a_forged_signature_is_refused_and_blamed(void **state) {
    struct world *world = *state;
    char url[64];
    uint8_t memory[BODY_SIZE];
    char text[ATTEST_TEXT_SIZE];
    uint8_t signature[ATTEST_SIGNATURE_SIZE] = {1};
    struct stored stored;
    struct document document = document_of(1, 1, url, memory);
    start_all(world);
    document.signature = bytes_of_string(attest_format(world->nodes[1].identity.key, signature, text));
    assert_int_equal(
        instance_put(world->nodes[0].session, &document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL),
        ERR_OK);
    wait_for(stat_of(&world->nodes[1]).refused_count + stat_of(&world->nodes[2]).refused_count > 0);
    wait_for(atomic_load(&world->nodes[1].blames_count) + atomic_load(&world->nodes[2].blames_count) > 0);
    struct ringkey key = key_of(1, 1);
    assert_false(has(&world->nodes[1], &key));
    assert_false(has(&world->nodes[2], &key));
}

static void who_claims_and_does_not_hold_is_found_out(void **state) {
    struct world *world = *state;
    world->nodes[2].vice = PROVES_FALSE;
    world->challenge_us = SECOND_US / 10;
    start_all(world);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 40));
    wait_for(stat_of(&world->nodes[0]).caught_count > 0 || stat_of(&world->nodes[1]).caught_count > 0);
    assert_true(atomic_load(&world->nodes[0].blames_count) + atomic_load(&world->nodes[1].blames_count) > 0);
    wait_for(stat_of(&world->nodes[2]).challenged_count > 0);
    assert_int_equal(stat_of(&world->nodes[2]).caught_count, 0); /* the others are honest */
}

/* Is it with all its holders, or with the next node where one of them is full? */
static bool is_kept(struct world *world, const struct ringkey *key, unsigned full) {
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

static bool are_kept(struct world *world, unsigned count, unsigned full) {
    bool kept = true;
    for (unsigned n = 0; n < count && kept; n++) {
        struct ringkey key = key_of(n, n);
        kept = is_kept(world, &key, full);
    }
    return kept;
}

static void the_next_takes_the_part_of_one_that_is_full(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->nodes[2].is_full = true;
    start_all(world);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[1], n, n);
    }
    /* The arc of the full node itself has a primary that takes nothing: the others' arcs have two copies. */
    for (unsigned n = 0; n < 40; n++) {
        struct ringkey key = key_of(n, n);
        struct holders_arc arc;
        ask_known(&world->nodes[0], ring_id_read(key.bytes), &arc);
        if (!peer_equal(&arc.peers[0], &world->nodes[2].peer)) {
            wait_for(is_kept(world, &key, 2));
        }
    }
    assert_int_equal(stat_of(&world->nodes[2]).fetched_count, 0);
    assert_true(stat_of(&world->nodes[2]).is_full);
}

static bool have_copies(struct world *world, unsigned count, size_t copies) {
    bool have = true;
    for (unsigned n = 0; n < count && have; n++) {
        struct ringkey key = key_of(n, n);
        have = count_copies(world, &key) == copies;
    }
    return have;
}

static void surplus_is_given_up_when_all_holders_have_it(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->grace_us = SECOND_US;
    start_all(world);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[n % 4], n, n);
    }
    wait_for(are_kept(world, 40, NODES_MAX));
    wait_for(have_copies(world, 40, 2));
    assert_true(are_kept(world, 40, NODES_MAX)); /* and those are the holders */
    for (unsigned i = 0; i < 4; i++) {
        wait_for(stat_of(&world->nodes[i]).released_count > 0);
    }
}

static void surplus_stays_where_its_owner_wants_it(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->grace_us = SECOND_US / 2;
    world->keeps_surplus = true;
    start_all(world);
    for (unsigned n = 0; n < 20; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(are_kept(world, 20, NODES_MAX));
    uint64_t compared_count = stat_of(&world->nodes[0]).compared_count;
    wait_for(stat_of(&world->nodes[0]).compared_count > compared_count + 6); /* more than a grace time */
    assert_int_equal(stat_of(&world->nodes[0]).keys_count, 20);
}

static void surplus_stays_until_it_is_confirmed(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->copies = 2;
    world->grace_us = SECOND_US;
    for (unsigned i = 0; i < 4; i++) {
        world->nodes[i].vice = CONFIRMS_NOTHING;
    }
    start_all(world);
    for (unsigned n = 0; n < 20; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(are_kept(world, 20, NODES_MAX));
    wait_for(atomic_load(&world->nodes[1].confirms_count) > 1 &&
             atomic_load(&world->nodes[2].confirms_count) > 1);
    assert_int_equal(stat_of(&world->nodes[0]).released_count, 0);
    assert_int_equal(stat_of(&world->nodes[0]).keys_count, 20);
}

/* Its part falls to others when the grace time is over. */
static void copies_of_a_dead_node_are_made_again(void **state) {
    struct world *world = *state;
    world->nodes_count = 4;
    world->grace_us = SECOND_US;
    start_all(world);
    for (unsigned n = 0; n < 40; n++) {
        put(&world->nodes[n % 4], n, n);
    }
    wait_for(are_kept(world, 40, NODES_MAX));
    stop(&world->nodes[1]);
    wait_for(are_kept(world, 40, NODES_MAX));
    stop(&world->nodes[2]);
    for (unsigned n = 0; n < 40; n++) {
        expect_body(&world->nodes[0], n, n);
        expect_body(&world->nodes[3], n, n);
    }
}

/* Bytes of the body of a record on the disk become others. */
static void damage(struct node *node, unsigned n, unsigned body) {
    struct ringkey key = key_of(n, body);
    struct keeping_reader reader = {0};
    struct capture capture;
    char path[2 * SCRATCH_PATH_SIZE];
    uint8_t noise[64];
    assert_int_equal(keeping_reader_init(&reader, node->instance), ERR_OK);
    assert_int_equal(keeping_find_capture(node->keeping, &reader, &key, &capture, NULL), ERR_OK);
    keeping_reader_done(&reader);
    snprintf(path, sizeof path, "%s/volumes/0", node->directory);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    const struct dirent *entry;
    bool is_done = false;
    memset(noise, 0xa5, sizeof noise);
    while (!is_done && (entry = readdir(directory)) != NULL) {
        if (strstr(entry->d_name, ".warc") == NULL) {
            continue;
        }
        snprintf(path, sizeof path, "%s/volumes/0/%s", node->directory, entry->d_name);
        int file = open(path, O_WRONLY);
        assert_true(file >= 0);
        off_t offset = (off_t)(capture.location.offset + capture.location.length / 2);
        is_done = pwrite(file, noise, sizeof noise, offset) == (ssize_t)sizeof noise;
        close(file);
    }
    closedir(directory);
    assert_true(is_done);
}

static void a_damaged_document_is_repaired_from_another_copy(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[1];
    start_all(world);
    for (unsigned n = 0; n < 10; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 10));
    damage(node, 4, 4);
    struct ringkey key = key_of(4, 4);
    struct keeping_reader reader = {0};
    struct bytes payload;
    assert_int_equal(keeping_reader_init(&reader, node->instance), ERR_OK);
    assert_int_equal(keeping_read_payload(node->keeping, &reader, &key, &payload, NULL), ERR_CORRUPT);
    keeping_reader_done(&reader);
    keeping_report_damage(node->keeping, &key);
    wait_for(stat_of(node).repaired_count == 1);
    expect_body(node, 4, 4);
}

/* Nobody has read it: it is found by reading everything again. */
static void damage_is_found_by_scrubbing(void **state) {
    struct world *world = *state;
    struct node *node = &world->nodes[1];
    char path[2 * SCRATCH_PATH_SIZE];
    start_all(world);
    for (unsigned n = 0; n < 10; n++) {
        put(&world->nodes[0], n, n);
    }
    wait_for(all_have(world, 10));
    damage(node, 4, 4);
    stop(node);
    snprintf(path, sizeof path, "%s/scrub", node->directory);
    unlink(path); /* a new pass */
    start(node);
    wait_for(stat_of(node).repaired_count == 1);
    expect_body(node, 4, 4);
}

/* ---- questions that are none ---- */

static void nonsense_is_refused(void **state) {
    struct world *world = *state;
    struct buf answer;
    uint8_t whole_ring[KEEPING_COMPARE_HEAD_SIZE + 1] = {0};
    start_all(world);
    buf_init(&answer, BULK_ANSWER_SIZE_MAX);
    static const enum bulk_service services[] = {BULK_COMPARE, BULK_OFFER, BULK_CONFIRM, BULK_PROVE};
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++) {
        assert_int_not_equal(bulk_ask(world->nodes[0].bulk, &world->nodes[1].peer, services[i],
                                      BYTES("\xff\xff nonsense"), 5000, &answer, NULL),
                             ERR_OK);
    }
    assert_true(atomic_load(&world->nodes[1].blames_count) >= 4);
    assert_int_equal(bulk_ask(world->nodes[0].bulk, &world->nodes[1].peer, BULK_COMPARE,
                              bytes_of(whole_ring, sizeof whole_ring), 5000, &answer, NULL),
                     ERR_INVALID);
    buf_done(&answer);
}

#define keeping_test(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        keeping_test(what_one_stores_the_others_get),
        keeping_test(a_busy_giver_gives_later),
        keeping_test(who_was_away_gets_only_the_difference),
        keeping_test(a_lost_disk_is_filled_again),
        keeping_test(what_is_false_is_refused_and_blamed),
        keeping_test(a_forged_signature_is_refused_and_blamed),
        keeping_test(who_claims_and_does_not_hold_is_found_out),
        keeping_test(the_next_takes_the_part_of_one_that_is_full),
        keeping_test(surplus_is_given_up_when_all_holders_have_it),
        keeping_test(surplus_stays_where_its_owner_wants_it),
        keeping_test(surplus_stays_until_it_is_confirmed),
        keeping_test(copies_of_a_dead_node_are_made_again),
        keeping_test(a_damaged_document_is_repaired_from_another_copy),
        keeping_test(damage_is_found_by_scrubbing),
        keeping_test(nonsense_is_refused),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
