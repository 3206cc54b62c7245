/*
 * The crowd's steps (protocol/crowd/crowd.h), in processor time of one core. There is nothing to compare them
 * with but what carries them: a datagram on loopback, of the same size, between two sockets of this process.
 *
 *      shuffle   two nodes with full views and keys, back to back: whomever one shuffles with, the other
 *                answers in its name. Three steps each: begun, answered, merged; each message is written,
 * read and merged as on a real node, rates and all forward   queries of others that this node has not: asked,
 * sent on to five, acknowledged
 */
#include <arpa/inet.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/prng.h"
#include "bench.h"
#include "protocol/crowd/crowd.h"

enum {
    VIEW_SIZE = 25,
    SHUFFLES_COUNT = 300000,
    QUERIES_COUNT = 100000,
    DATAGRAMS_COUNT = 100000,
    DATAGRAM_SIZE = CROWD_MESSAGE_HEADER_SIZE + 1 + 5 * 41, /* five entries of IPv4 with keys */
    NODES_COUNT = 1000,
    ROUNDS_COUNT = 3,
};

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-crowd: %s failed\n", what);
        exit(1);
    }
}

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- nodes ---- */

struct node {
    struct crowd *crowd;
    struct outbox out;
    uint64_t steps_count;
};

static struct peer peer_of(uint32_t number) {
    struct peer peer = {
        .address = address_ipv4(10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number, 7070)};
    struct prng prng;
    prng_init(&prng, number);
    prng_fill(&prng, peer.key, PEER_KEY_SIZE);
    return peer;
}

static void node_init(struct node *node, uint32_t number, const struct crowd_config *given) {
    struct crowd_config config = *given;
    struct peer neighbours[VIEW_SIZE];
    config.self = peer_of(number);
    config.seed = number;
    must(crowd_new(&config, &node->crowd) == ERR_OK, "crowd_new");
    size_t actions_max = crowd_actions_max(&config);
    struct action *actions = calloc(actions_max, sizeof *actions);
    void *memory = malloc(crowd_memory_size(&config));
    must(actions != NULL && memory != NULL, "malloc");
    outbox_init(&node->out, actions, actions_max, memory, crowd_memory_size(&config));
    for (uint32_t i = 0; i < VIEW_SIZE; i++) {
        neighbours[i] = peer_of(1000 * number + i);
    }
    crowd_install_for_experiment(node->crowd, neighbours, VIEW_SIZE);
    node->steps_count = 0;
}

static void node_done(struct node *node) {
    crowd_free(node->crowd);
    free(node->out.actions);
    free(node->out.memory);
}

static void step(struct node *node, const struct event *event) {
    outbox_clear(&node->out);
    crowd_step(node->crowd, event, &node->out);
    node->steps_count++;
}

/* What was sent to `action->to`, as the other node gets it. */
static struct event event_of(const struct action *action, const struct peer *from, uint64_t now_us) {
    struct event event = {.kind = EVENT_MESSAGE, .now_us = now_us, .from = from->address};
    memcpy(event.from_key, from->key, PEER_KEY_SIZE);
    event.bytes = action->bytes;
    return event;
}

/* ---- shuffles ---- */

struct pair {
    struct node nodes[2];
    struct peer peers[2];
    uint64_t wake_at_us[2];
};

/* One of the two wakes; what it sends is answered by the other. */
static void shuffle_once(struct pair *pair) {
    unsigned one = pair->wake_at_us[0] <= pair->wake_at_us[1] ? 0 : 1;
    unsigned other = 1 - one;
    struct event event = {.kind = EVENT_WAKE, .now_us = pair->wake_at_us[one]};
    step(&pair->nodes[one], &event);
    pair->wake_at_us[one] = pair->nodes[one].out.wake_at_us;
    if (pair->nodes[one].out.actions_count == 0) {
        return;
    }
    const struct action *asked = &pair->nodes[one].out.actions[0];
    struct peer partner = {.address = asked->to};
    memcpy(partner.key, asked->to_key, PEER_KEY_SIZE);
    struct event question = event_of(asked, &pair->peers[one], event.now_us);
    step(&pair->nodes[other], &question);
    pair->wake_at_us[other] = pair->nodes[other].out.wake_at_us;
    struct event answer = event_of(&pair->nodes[other].out.actions[0], &partner, event.now_us);
    step(&pair->nodes[one], &answer);
    pair->wake_at_us[one] = pair->nodes[one].out.wake_at_us;
}

static uint64_t shuffled_count(const struct pair *pair) {
    return crowd_counters(pair->nodes[0].crowd)->shuffled_count +
           crowd_counters(pair->nodes[1].crowd)->shuffled_count;
}

/* Shuffles a second; *ret_steps: steps a second. */
static double measure_shuffles(enum crowd_kind kind, double *ret_steps) {
    struct crowd_config config = {.kind = kind};
    struct pair pair = {.peers = {peer_of(1), peer_of(2)}};
    struct event start = {.kind = EVENT_START};
    for (unsigned i = 0; i < 2; i++) {
        node_init(&pair.nodes[i], i + 1, &config);
        step(&pair.nodes[i], &start);
        pair.wake_at_us[i] = pair.nodes[i].out.wake_at_us;
    }
    double start_s = cpu_s();
    while (shuffled_count(&pair) < SHUFFLES_COUNT) {
        shuffle_once(&pair);
    }
    double seconds = cpu_s() - start_s;
    *ret_steps = (double)(pair.nodes[0].steps_count + pair.nodes[1].steps_count) / seconds;
    node_done(&pair.nodes[0]);
    node_done(&pair.nodes[1]);
    return SHUFFLES_COUNT / seconds;
}

/* ---- queries ---- */

/* The owner has nothing; whom it was sent to says so. */
static void answer_all(struct node *node, const uint8_t network[CROWD_NETWORK_SIZE], uint64_t id,
                       uint64_t now_us) {
    struct event have_not = {.kind = EVENT_COMMAND, .code = CROWD_HAVE_NOT, .now_us = now_us};
    for (size_t i = 0; i < node->out.actions_count; i++) {
        const struct action *action = &node->out.actions[i];
        if (action->kind == ACTION_NOTICE && action->code == CROWD_ASKED) {
            memcpy(&have_not.number, action->bytes.data, sizeof have_not.number);
        }
    }
    step(node, &have_not);
    struct peer asked[CROWD_FANOUT_MAX];
    size_t count = 0;
    for (size_t i = 0; i < node->out.actions_count && count < CROWD_FANOUT_MAX; i++) {
        const struct action *action = &node->out.actions[i];
        if (action->kind == ACTION_SEND && action->bytes.data[1] == CROWD_MESSAGE_QUERY) {
            asked[count].address = action->to;
            memcpy(asked[count++].key, action->to_key, PEER_KEY_SIZE);
        }
    }
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct crowd_message ack = {.kind = CROWD_MESSAGE_ACK, .number = id};
    struct action action = {.bytes = crowd_message_write(&ack, network, memory)};
    for (size_t i = 0; i < count; i++) {
        struct event event = event_of(&action, &asked[i], now_us);
        step(node, &event);
    }
}

/* Copies a second. */
static double measure_forwards(void) {
    struct crowd_config config = {.is_unlimited = true, .shuffle_us = UINT64_C(1) << 50};
    struct node node;
    struct event start = {.kind = EVENT_START};
    struct peer from = peer_of(7);
    node_init(&node, 1, &config);
    step(&node, &start);
    double start_s = cpu_s();
    for (uint64_t i = 1; i <= QUERIES_COUNT; i++) {
        uint8_t wish[24] = {0};
        uint8_t memory[STEP_MESSAGE_SIZE_MAX];
        memcpy(wish, &i, sizeof i);
        struct crowd_message query = {.kind = CROWD_MESSAGE_QUERY, .number = prng_mix(i), .ttl = 3};
        query.hops = 1;
        query.fanout = 5;
        query.contents = bytes_of(wish, sizeof wish);
        struct action action = {.bytes = crowd_message_write(&query, config.network, memory)};
        struct event event = event_of(&action, &from, i * 1000);
        step(&node, &event);
        answer_all(&node, config.network, query.number, i * 1000);
    }
    double seconds = cpu_s() - start_s;
    double copies = (double)crowd_counters(node.crowd)->forwarded_count;
    must(copies > 4.0 * QUERIES_COUNT, "forwarding");
    node_done(&node);
    return copies / seconds;
}

/* ---- datagrams ---- */

static int open_socket(struct sockaddr_in *ret_address) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    must(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
             getsockname(fd, (struct sockaddr *)&address, &size) == 0,
         "socket");
    *ret_address = address;
    return fd;
}

static double measure_datagrams(void) {
    struct sockaddr_in address;
    struct sockaddr_in unused;
    int to = open_socket(&address);
    int from = open_socket(&unused);
    uint8_t bytes[DATAGRAM_SIZE] = {0};
    double start_s = cpu_s();
    for (unsigned i = 0; i < DATAGRAMS_COUNT; i++) {
        must(sendto(from, bytes, sizeof bytes, 0, (struct sockaddr *)&address, sizeof address) ==
                     DATAGRAM_SIZE &&
                 recv(to, bytes, sizeof bytes, 0) == DATAGRAM_SIZE,
             "a datagram");
    }
    double seconds = cpu_s() - start_s;
    close(to);
    close(from);
    return DATAGRAMS_COUNT / seconds;
}

/* ---- memory ---- */

static double memory_per_node(const struct crowd_config *given) {
    static struct crowd *crowds[NODES_COUNT];
    struct crowd_config config = *given;
    struct mallinfo2 before = mallinfo2();
    for (uint32_t i = 0; i < NODES_COUNT; i++) {
        config.self = peer_of(i + 1);
        must(crowd_new(&config, &crowds[i]) == ERR_OK, "crowd_new");
    }
    struct mallinfo2 after = mallinfo2();
    for (uint32_t i = 0; i < NODES_COUNT; i++) {
        crowd_free(crowds[i]);
    }
    return (double)(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / NODES_COUNT;
}

int main(void) {
    double best[2] = {0};
    double best_steps[2] = {0};
    double datagrams = 0;
    double forwards = 0;
    for (unsigned round = 0; round < ROUNDS_COUNT; round++) {
        double rate = measure_datagrams();
        datagrams = rate > datagrams ? rate : datagrams;
        for (unsigned kind = 0; kind < 2; kind++) {
            double steps = 0;
            rate = measure_shuffles((enum crowd_kind)kind, &steps);
            best[kind] = rate > best[kind] ? rate : best[kind];
            best_steps[kind] = steps > best_steps[kind] ? steps : best_steps[kind];
        }
        rate = measure_forwards();
        forwards = rate > forwards ? rate : forwards;
    }
    bench_row("a datagram of a shuffle, sent and received", datagrams, "/s", 0);
    bench_row("cyclon: whole shuffles", best[CROWD_CYCLON], "/s", 0);
    bench_row("cyclon: steps of shuffles", best_steps[CROWD_CYCLON], "/s",
              best_steps[CROWD_CYCLON] / datagrams);
    bench_row("proofs: whole shuffles", best[CROWD_PROOFS], "/s", 0);
    bench_row("proofs: steps of shuffles", best_steps[CROWD_PROOFS], "/s",
              best_steps[CROWD_PROOFS] / datagrams);
    bench_row("queries sent on, each copy", forwards, "/s", forwards / datagrams);
    struct crowd_config usual = {0};
    struct crowd_config small = {.searches_max = 1, .seen_max = 16, .waiting_max = 4, .is_unlimited = true};
    bench_row("memory of a node", memory_per_node(&usual), "bytes", 0);
    bench_row("memory of a node of a large experiment", memory_per_node(&small), "bytes", 0);
    return 0;
}
