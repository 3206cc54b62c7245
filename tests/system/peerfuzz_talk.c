/* Datagrams: who it is, and what it sends and hears. */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket_address.h"
#include "node/group/group_driver_code.h"
#include "peerfuzz.h"

enum {
    WAIT_MS = 10000, /* for a machine that has much to do */
    KINDS_OF_SEAL = 4,
};

/* ---- sealing ---- */

static size_t seal_message(struct peerfuzz *fuzz, uint8_t kind, struct bytes payload, uint8_t *out) {
    seal_life_next(&fuzz->life, clock_wall_us(&clock_system));
    struct seal_head head = {
        .version = SEAL_VERSION, .kind = kind, .counter = fuzz->life.counter, .salt = fuzz->life.salt};
    memcpy(head.sender, fuzz->identity.key, PEER_KEY_SIZE);
    return seal_write(fuzz->keys.sending, &head, payload, out);
}

static void send_sealed(struct peerfuzz *fuzz, uint8_t kind, struct bytes payload) {
    uint8_t out[DATAGRAM_SIZE_MAX];
    (void)!send(fuzz->udp, out, seal_message(fuzz, kind, payload, out), 0); /* lost, as datagrams are */
}

/* A sealed datagram that the node must not open: replayed, forged, cut, of a kind that is none. */
static void send_broken_seal(struct peerfuzz *fuzz, uint8_t kind, struct bytes payload) {
    uint8_t out[DATAGRAM_SIZE_MAX];
    uint64_t way = prng_below(&fuzz->prng, KINDS_OF_SEAL);
    uint8_t other = (uint8_t)prng_below(&fuzz->prng, SEAL_KINDS_COUNT);
    size_t size = seal_message(fuzz, way == 0 ? other : kind, payload, out);
    fuzz->seals.sent++;
    if (way == 1) {
        out[prng_below(&fuzz->prng, size)] ^= 1;
    } else if (way == 2) {
        size = prng_below(&fuzz->prng, size);
    }
    (void)!send(fuzz->udp, out, size, 0);
    if (way == 3) {
        (void)!send(fuzz->udp, out, size, 0);
    }
}

/* ---- sending ---- */

static void remember(struct peerfuzz_pool *pool, struct prng *prng, struct bytes bytes) {
    size_t at = pool->count < PEERFUZZ_POOL_MAX ? pool->count++ : prng_below(prng, PEERFUZZ_POOL_MAX);
    memcpy(pool->bytes[at], bytes.data, bytes.size);
    pool->sizes[at] = bytes.size;
}

static struct bytes recall(const struct peerfuzz_pool *pool, struct prng *prng) {
    size_t at = pool->count > 0 ? prng_below(prng, pool->count) : 0;
    return bytes_of(pool->bytes[at], pool->count > 0 ? pool->sizes[at] : 0);
}

/* An old one, again: its own, or one of the node itself. */
static void send_old(struct peerfuzz *fuzz, unsigned family) {
    const struct peerfuzz_pool *heard = &fuzz->heard[family];
    bool is_heard = prng_below(&fuzz->prng, 2) == 0 && heard->count > 0;
    fuzz->replays.sent++;
    send_sealed(fuzz, (uint8_t)peerfuzz_families[family].datagram,
                recall(is_heard ? heard : &fuzz->pools[family], &fuzz->prng));
}

/* A new one, sound or changed. Returns it, in memory. */
static struct bytes send_new(struct peerfuzz *fuzz, unsigned family_index, unsigned kind, uint64_t number,
                             uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    const struct peerfuzz_family *family = &peerfuzz_families[family_index];
    struct bytes message = family->make(fuzz, kind, number, memory);
    if (prng_below(&fuzz->prng, 9) < 5) {
        struct bytes other = recall(&fuzz->pools[family_index], &fuzz->prng);
        message.size = mutate(&fuzz->prng, memory, message.size, STEP_MESSAGE_SIZE_MAX, other);
    }
    struct peerfuzz_tally *tally = &fuzz->datagrams[family_index][kind - 1];
    bool is_taken = family->takes(fuzz, message);
    tally->sent++;
    tally->taken += is_taken;
    tally->refused += !is_taken;
    if (prng_below(&fuzz->prng, 20) == 0) {
        send_broken_seal(fuzz, (uint8_t)family->datagram, message);
    }
    send_sealed(fuzz, (uint8_t)family->datagram, message);
    return message;
}

void peerfuzz_send_something(struct peerfuzz *fuzz) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    peerfuzz_turn(fuzz);
    unsigned family = (unsigned)prng_below(&fuzz->prng, PEERFUZZ_FAMILIES_COUNT);
    unsigned kind = 1 + (unsigned)prng_below(&fuzz->prng, peerfuzz_families[family].kinds_count);
    uint64_t number = prng_below(&fuzz->prng, 4) == 0 ? mutate_number(&fuzz->prng) : prng_u64(&fuzz->prng);
    if (prng_below(&fuzz->prng, 10) == 0 && fuzz->pools[family].count > 0) {
        send_old(fuzz, family);
        return;
    }
    struct bytes message = send_new(fuzz, family, kind, number, memory);
    remember(&fuzz->pools[family], &fuzz->prng, message);
}

/* ---- hearing ---- */

/* The node wants to know whether this is the address: without the proof it says little. */
static void answer_transport(struct peerfuzz *fuzz, uint8_t kind, struct bytes payload) {
    if (kind == DATAGRAM_CHALLENGE) {
        send_sealed(fuzz, DATAGRAM_PROOF, payload);
    }
}

static void hear(struct peerfuzz *fuzz, uint8_t kind, struct bytes payload) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    unsigned answer;
    uint64_t number;
    struct prng before = fuzz->prng;
    prng_init_stream(&fuzz->prng, ~fuzz->seed, fuzz->answers_count++);
    fuzz->received++;
    answer_transport(fuzz, kind, payload);
    for (unsigned i = 0; i < PEERFUZZ_FAMILIES_COUNT; i++) {
        const struct peerfuzz_family *family = &peerfuzz_families[i];
        if ((uint8_t)family->datagram != kind || payload.size > STEP_MESSAGE_SIZE_MAX) {
            continue;
        }
        bool is_question = family->hear(fuzz, payload, &answer, &number);
        remember(&fuzz->heard[i], &fuzz->prng, payload);
        if (is_question && prng_below(&fuzz->prng, 4) > 0) { /* else silence */
            (void)send_new(fuzz, i, answer, number, memory);
        }
    }
    fuzz->prng = before;
}

/* True: it was the HERE to a WHO with this cookie. */
static bool receive(struct peerfuzz *fuzz, const struct plain_who *who) {
    uint8_t memory[DATAGRAM_SIZE_MAX];
    uint8_t opened[DATAGRAM_SIZE_MAX];
    struct plain_here here;
    struct seal_head head;
    struct bytes payload;
    ssize_t size = recv(fuzz->udp, memory, sizeof memory, MSG_DONTWAIT);
    struct bytes datagram = bytes_of(memory, size > 0 ? (size_t)size : 0);
    if (plain_read_here(datagram, &here)) {
        memcpy(fuzz->node.key, here.key, PEER_KEY_SIZE);
        return memcmp(here.cookie, who->cookie, sizeof here.cookie) == 0;
    }
    if (seal_read_head(datagram, &head) && seal_read(fuzz->keys.receiving, datagram, opened, &payload)) {
        hear(fuzz, head.kind, payload);
    }
    return false;
}

/* A WHO is read behind all that was sent before; its answer says that the node lives and has done with it. */
static bool ask_who(struct peerfuzz *fuzz) {
    enum { TRIES = 5 };
    for (unsigned i = 0; i < TRIES; i++) {
        uint8_t memory[PLAIN_SIZE_MAX];
        struct plain_who who;
        struct pollfd polled = {.fd = fuzz->udp, .events = POLLIN};
        prng_fill(&fuzz->prng, &who, sizeof who);
        struct bytes question = plain_write_who(&who, memory);
        (void)!send(fuzz->udp, question.data, question.size, 0);
        while (poll(&polled, 1, WAIT_MS / TRIES) == 1) {
            if (receive(fuzz, &who)) {
                return true;
            }
        }
    }
    return false;
}

void peerfuzz_listen(struct peerfuzz *fuzz) {
    peerfuzz_must(ask_who(fuzz), "the node answers no datagram");
}

/* ---- beginning ---- */

static void open_socket(struct peerfuzz *fuzz) {
    struct sockaddr_storage name;
    socklen_t size = sizeof(struct sockaddr_in);
    peerfuzz_must(address_is_ipv4(&fuzz->self.address) && address_is_ipv4(&fuzz->node.address),
                  "IPv4 addresses");
    fuzz->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    peerfuzz_must(bind(fuzz->udp, socket_address_put(&fuzz->self.address, &name), size) == 0, "bind");
    peerfuzz_must(connect(fuzz->udp, socket_address_put(&fuzz->node.address, &name), size) == 0, "connect");
}

static void say_hello(struct peerfuzz *fuzz) {
    uint8_t memory[GREETING_SIZE_MAX];
    uint8_t membership[MEMBERSHIP_SIZE_MAX];
    struct greeting greeting = {.kind = GREETING_HELLO,
                                .version = fuzz->charter.version,
                                .membership = membership_write(&fuzz->membership, membership),
                                .wants_answer = true};
    memcpy(greeting.ring, fuzz->ring, sizeof greeting.ring);
    send_sealed(fuzz, DATAGRAM_CHARTER, greeting_write(&greeting, memory));
}

/* Whose group is it? Its id follows. */
static void find_group(struct peerfuzz *fuzz) {
    enum { TRIES = 3 };
    uint8_t memory[GROUP_DRIVER_CODE_SIZE_MAX];
    struct group_driver_message ask = {.kind = GROUP_DRIVER_ASK, .name = bytes_of_string(fuzz->group_name)};
    for (unsigned i = 0; i < TRIES; i++) {
        send_sealed(fuzz, DATAGRAM_GROUP, group_driver_code_write(&ask, memory));
        peerfuzz_listen(fuzz);
    }
}

void peerfuzz_meet(struct peerfuzz *fuzz) {
    enum { TRIES = 200 };
    open_socket(fuzz);
    peerfuzz_must(ask_who(fuzz), "the node answers no datagram");
    peerfuzz_must(seal_keys_make(&fuzz->identity, fuzz->node.key, &fuzz->keys) == ERR_OK, "keys");
    seal_life_begin(&fuzz->life, clock_wall_us(&clock_system));
    for (unsigned i = 0; i < TRIES && !fuzz->is_greeted; i++) {
        say_hello(fuzz);
        peerfuzz_listen(fuzz);
        usleep(fuzz->is_greeted ? 0 : 20000);
    }
    peerfuzz_must(fuzz->is_greeted, "the node does not take it for a member");
    find_group(fuzz);
}
