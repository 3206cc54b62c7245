/*
 * seal - hostile datagrams at a node's door, and authentic ones in any order.
 *
 *      byte 0 even   the rest is one datagram, as it is; it is also read as each of the plain ones
 *      byte 0 odd    the rest are steps of 8 bytes: whose (1), salt (1), counter's low part (2), size (1),
 * which byte is changed (2) and how (1)
 *
 * No datagram of a stranger opens; an authentic one is fresh at most once; a changed one never is.
 */
#include "net/sessions.h"

#include <stdlib.h>

#include "fuzz.h"
#include "net/plain.h"

enum { PEERS_COUNT = 6, STEP_SIZE = 8, STEPS_MAX = 64, DATAGRAM_SIZE = 512 };
static const int64_t NOW_US = INT64_C(1767225600000000);

struct seen {
    uint8_t peer;
    uint8_t salt;
    uint16_t counter;
};

/* Made once: a key exchange costs more than everything else here. */
struct cast {
    struct identity self;
    struct identity peers[PEERS_COUNT];
    struct seal_keys keys[PEERS_COUNT]; /* the peers' with us */
};

struct world {
    const struct cast *cast;
    struct sessions sessions;
    struct seen seen[STEPS_MAX];
    size_t seen_count;
};

static void make(struct identity *identity, uint8_t seed_byte) {
    uint8_t seed[IDENTITY_SEED_SIZE] = {seed_byte};
    enum err err = identity_from_seed(identity, seed);
    ASSERT(err == ERR_OK);
}

static const struct cast *make_cast(void) {
    static struct cast cast;
    static bool is_made;
    if (!is_made) {
        make(&cast.self, 0);
        for (uint8_t i = 0; i < PEERS_COUNT; i++) {
            make(&cast.peers[i], (uint8_t)(i + 1));
            enum err err = seal_keys_make(&cast.peers[i], cast.self.key, &cast.keys[i]);
            ASSERT(err == ERR_OK);
        }
        is_made = true;
    }
    return &cast;
}

static void check_plain(struct bytes input) {
    uint8_t out[PLAIN_SIZE_MAX];
    struct plain_refuse refuse;
    struct plain_who who;
    struct plain_here here;
    ASSERT(!plain_read_refuse(input, &refuse) || bytes_equal(plain_write_refuse(&refuse, out), input));
    ASSERT(!plain_read_who(input, &who) || bytes_equal(plain_write_who(&who, out), input));
    ASSERT(!plain_read_here(input, &here) || bytes_equal(plain_write_here(&here, out), input));
}

static enum seal_verdict open_exact(struct world *world, const uint8_t *data, size_t size) {
    uint8_t *exact = malloc(size + 1);
    uint8_t *out = malloc(size + 1);
    struct sessions_opened opened;
    struct sessions_now now = {.monotonic_us = 1, .wall_us = NOW_US};
    ASSERT(exact != NULL && out != NULL);
    if (size > 0) {
        memcpy(exact, data, size);
    }
    enum seal_verdict verdict = sessions_open(&world->sessions, bytes_of(exact, size), now, out, &opened);
    ASSERT((verdict == SEAL_FRESH || verdict == SEAL_STALE) == (opened.session != NULL));
    free(exact);
    free(out);
    return verdict;
}

static void note_fresh(struct world *world, struct seen now) {
    for (size_t i = 0; i < world->seen_count; i++) {
        const struct seen *before = &world->seen[i];
        ASSERT(before->peer != now.peer || before->salt != now.salt || before->counter != now.counter);
    }
    world->seen[world->seen_count++] = now;
}

/* The node itself has to do with that peer: it answers, knows it, believes that it began anew. */
static void befriend(struct world *world, const struct identity *peer, const struct seal_head *head) {
    uint8_t datagram[DATAGRAM_SIZE];
    uint8_t opened[DATAGRAM_SIZE];
    struct bytes payload;
    struct seal_keys keys;
    struct session *session = sessions_with(&world->sessions, peer->key);
    ASSERT(session != NULL);
    size_t size = sessions_seal(&world->sessions, session, 8, BYTES("hello"), NOW_US, datagram);
    enum err err = seal_keys_make(peer, world->cast->self.key, &keys);
    ASSERT(err == ERR_OK && seal_read(keys.receiving, bytes_of(datagram, size), opened, &payload));
    ASSERT(bytes_equal(payload, BYTES("hello")));
    sessions_know(&world->sessions, peer->key);
    if (head->salt ==
        7) { /* it has proved it: its life of before is over, and what was seen of it counts no more */
        session_adopt(sessions_with(&world->sessions, peer->key), head);
        world->seen_count = 0;
    }
}

static void step(struct world *world, const uint8_t *data) {
    static const uint8_t payload[256];
    uint8_t datagram[DATAGRAM_SIZE];
    struct seen now = {.peer = data[0] % PEERS_COUNT, .salt = data[1] % 8};
    now.counter = (uint16_t)(data[2] | data[3] << 8);
    const struct identity *peer = &world->cast->peers[now.peer];
    struct seal_head head = {.version = SEAL_VERSION, .kind = 8, .salt = now.salt};
    head.counter = (uint64_t)NOW_US - 1000 + now.counter;
    memcpy(head.sender, peer->key, sizeof head.sender);
    size_t size =
        seal_write(world->cast->keys[now.peer].sending, &head, bytes_of(payload, data[4]), datagram);
    size_t place = (size_t)(data[5] | data[6] << 8);
    bool is_changed = place < size && data[7] != 0;
    if (is_changed) {
        datagram[place] ^= data[7];
    }
    if (data[0] & 0x40) {
        befriend(world, peer, &head);
    }
    enum seal_verdict verdict = open_exact(world, datagram, size);
    ASSERT(!is_changed || (verdict != SEAL_FRESH && verdict != SEAL_STALE));
    if (verdict == SEAL_FRESH) {
        note_fresh(world, now);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct world *world = calloc(1, sizeof *world);
    ASSERT(world != NULL);
    struct sessions_config config = {.known_max = 2, .guests_max = 4};
    world->cast = make_cast();
    enum err err = sessions_init(&world->sessions, &world->cast->self, &config, NOW_US - 1000);
    ASSERT(err == ERR_OK);
    if (size > 0 && data[0] % 2 == 0) {
        enum seal_verdict verdict = open_exact(world, data + 1, size - 1);
        ASSERT(verdict != SEAL_FRESH && verdict != SEAL_STALE);
        check_plain(bytes_of(data + 1, size - 1));
    }
    for (size_t i = 0; size > 0 && data[0] % 2 == 1 && i < STEPS_MAX && 1 + (i + 1) * STEP_SIZE <= size;
         i++) {
        step(world, data + 1 + i * STEP_SIZE);
    }
    sessions_done(&world->sessions);
    free(world);
    return 0;
}
