/*
 * stranger ADDRESS WHAT COUNT [RING] - somebody who sends to a node's UDP socket what no good node sends.
 *
 *      noise       bytes at random, of any size
 *      truncated   a sealed message, cut off anywhere
 *      forged      sealed by nobody, in the name of the node that it gets
 *      replayed    one sealed message, again and again
 *      versions    sealed messages of every version but this one
 *      strangers   sealed garbage, each from another key
 *      flood       sealed messages for the ring, whose contents are garbage, as fast as it goes
 *      greetings   likewise for the gate
 *      crowd       likewise for the crowd
 *      queries     searches of the crowd of that ring (32 hexadecimal digits) for what nobody has, each
 * another hits        findings that nobody asked for, as large as they may be large       datagrams of 60,000
 * bytes
 *
 * Prints what it sent. The key of the node is asked for as nodes do (WHO).
 */
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "net/datagram.h"
#include "net/socket_address.h"
#include "protocol/crowd/crowd.h"
#include "protocol/crowd/wish.h"

enum { SIZE_MAX_SENT = 60000, ANSWER_WAIT_MS = 5000, PAYLOAD_SIZE = 200, VERSIONS_COUNT = 16, BURST = 4 };

struct stranger {
    int fd;
    uint8_t key[PEER_KEY_SIZE]; /* the node's */
    struct identity identity;
    struct seal_keys keys;
    struct seal_life life;
    uint8_t network[CROWD_NETWORK_SIZE];
    uint64_t sent_count; /* to the crowd */
    uint8_t out[SIZE_MAX_SENT];
};

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "stranger: %s failed\n", what);
        exit(1);
    }
}

static void send_bytes(const struct stranger *stranger, size_t size) {
    (void)!send(stranger->fd, stranger->out, size, 0); /* refused, full: as it may be */
}

static void find_key(struct stranger *stranger) {
    uint8_t memory[PLAIN_SIZE_MAX];
    struct plain_who who;
    struct plain_here here;
    struct pollfd poll_fd = {.fd = stranger->fd, .events = POLLIN};
    randombytes_buf(&who, sizeof who);
    struct bytes question = plain_write_who(&who, memory);
    must(send(stranger->fd, question.data, question.size, 0) > 0, "send");
    must(poll(&poll_fd, 1, ANSWER_WAIT_MS) == 1, "waiting for the node's key");
    ssize_t size = recv(stranger->fd, stranger->out, sizeof stranger->out, 0);
    must(size > 0 && plain_read_here(bytes_of(stranger->out, (size_t)size), &here), "the node's key");
    memcpy(stranger->key, here.key, sizeof stranger->key);
}

static void become_somebody(struct stranger *stranger) {
    must(identity_random(&stranger->identity) == ERR_OK, "identity");
    must(seal_keys_make(&stranger->identity, stranger->key, &stranger->keys) == ERR_OK, "keys");
    seal_life_begin(&stranger->life, clock_wall_us(&clock_system));
}

static size_t seal_bytes(struct stranger *stranger, uint8_t kind, uint8_t version, struct bytes payload) {
    seal_life_next(&stranger->life, clock_wall_us(&clock_system));
    struct seal_head head = {
        .version = version, .kind = kind, .counter = stranger->life.counter, .salt = stranger->life.salt};
    memcpy(head.sender, stranger->identity.key, PEER_KEY_SIZE);
    return seal_write(stranger->keys.sending, &head, payload, stranger->out);
}

/* Garbage, sealed as it should be. */
static size_t seal_garbage_of_size(struct stranger *stranger, uint8_t kind, uint8_t version, size_t size) {
    uint8_t payload[PAYLOAD_SIZE];
    randombytes_buf(payload, sizeof payload);
    return seal_bytes(stranger, kind, version, bytes_of(payload, size));
}

static size_t seal_garbage(struct stranger *stranger, uint8_t kind, uint8_t version) {
    return seal_garbage_of_size(stranger, kind, version, PAYLOAD_SIZE);
}

static void send_noise(struct stranger *stranger, bool is_large) {
    size_t size = is_large ? SIZE_MAX_SENT : randombytes_uniform(DATAGRAM_SIZE_MAX);
    randombytes_buf(stranger->out, size);
    if (size > 0 && randombytes_uniform(2) == 0) {
        stranger->out[0] = (uint8_t)(SEAL_VERSION << 4 | (stranger->out[0] & 0x0f));
    }
    send_bytes(stranger, size);
}

static void send_forged(struct stranger *stranger) {
    size_t size = seal_garbage(stranger, DATAGRAM_RING, SEAL_VERSION);
    size_t where = SEAL_HEAD_SIZE + randombytes_uniform((uint32_t)(size - SEAL_HEAD_SIZE));
    stranger->out[where] ^= 1;
    send_bytes(stranger, size);
}

static void send_to_crowd(struct stranger *stranger, bool is_query) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    uint8_t contents[CROWD_FINDING_SIZE_MAX];
    struct wish wish = {.kind = WISH_URL};
    struct crowd_message message = {.kind = is_query ? CROWD_MESSAGE_QUERY : CROWD_MESSAGE_HIT,
                                    .ttl = CROWD_TTL_CAP,
                                    .hops = 1,
                                    .fanout = CROWD_FANOUT_MAX};
    randombytes_buf(&message.number, sizeof message.number);
    randombytes_buf(wish.hash, sizeof wish.hash);
    randombytes_buf(contents, sizeof contents);
    message.contents = is_query ? wish_write(&wish, contents) : bytes_of(contents, sizeof contents);
    struct bytes payload = crowd_message_write(&message, stranger->network, memory);
    send_bytes(stranger, seal_bytes(stranger, DATAGRAM_CROWD, SEAL_VERSION, payload));
    if (++stranger->sent_count % BURST == 0) {
        usleep(1000); /* some thousands a second: what floods is the contents, not the socket */
    }
}

static void send_one(struct stranger *stranger, const char *what, size_t number) {
    if (strcmp(what, "noise") == 0 || strcmp(what, "large") == 0) {
        send_noise(stranger, what[0] == 'l');
    } else if (strcmp(what, "truncated") == 0) {
        size_t size = seal_garbage(stranger, DATAGRAM_RING, SEAL_VERSION);
        send_bytes(stranger, randombytes_uniform((uint32_t)size));
    } else if (strcmp(what, "forged") == 0) {
        send_forged(stranger);
    } else if (strcmp(what, "replayed") == 0) {
        static size_t size;
        size = number == 0 ? seal_garbage(stranger, DATAGRAM_RING, SEAL_VERSION) : size;
        send_bytes(stranger, size);
    } else if (strcmp(what, "versions") == 0) {
        uint8_t version = (uint8_t)(SEAL_VERSION + 1 + number % (VERSIONS_COUNT - SEAL_VERSION - 1));
        send_bytes(stranger, seal_garbage(stranger, DATAGRAM_RING, version));
    } else if (strcmp(what, "strangers") == 0) {
        become_somebody(stranger);
        send_bytes(stranger, seal_garbage(stranger, DATAGRAM_RING, SEAL_VERSION));
    } else if (strcmp(what, "flood") == 0) {
        send_bytes(stranger, seal_garbage(stranger, DATAGRAM_RING, SEAL_VERSION));
    } else if (strcmp(what, "greetings") == 0) {
        send_bytes(stranger, seal_garbage(stranger, DATAGRAM_CHARTER, SEAL_VERSION));
    } else if (strcmp(what, "crowd") == 0) {
        size_t size = 1 + randombytes_uniform(PAYLOAD_SIZE); /* too short for any message, too */
        send_bytes(stranger, seal_garbage_of_size(stranger, DATAGRAM_CROWD, SEAL_VERSION, size));
    } else if (strcmp(what, "queries") == 0 || strcmp(what, "hits") == 0) {
        send_to_crowd(stranger, what[0] == 'q');
    } else {
        must(false, what);
    }
}

int main(int argc, char **argv) {
    static struct stranger stranger;
    struct address address;
    struct sockaddr_storage name;
    uint64_t count;
    must((argc == 4 || argc == 5) && sodium_init() >= 0, "usage: stranger ADDRESS WHAT COUNT [RING]");
    must(argc == 4 || hex_decode(bytes_of_string(argv[4]), stranger.network, sizeof stranger.network),
         "ring");
    must(address_parse(bytes_of_string(argv[1]), 0, &address), "address");
    must(bytes_to_u64(bytes_of_string(argv[3]), UINT32_MAX, &count), "count");
    int family = address_is_ipv4(&address) ? AF_INET : AF_INET6;
    stranger.fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    must(connect(stranger.fd, socket_address_put(&address, &name), size) == 0, "connect");
    find_key(&stranger);
    become_somebody(&stranger);
    for (size_t i = 0; i < count; i++) {
        send_one(&stranger, argv[2], i);
    }
    printf("%ju sent\n", (uintmax_t)count);
    return 0;
}
