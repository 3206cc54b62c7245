/*
 * The simulator's speed, against what one would do without it: real processes' datagrams on loopback.
 *
 * Each simulated node answers every message to a random node, so that as many messages as nodes are in
 * flight; an event is one delivered message. The other side sends datagrams of the same size between two
 * UDP sockets of this process, 64 in flight, without any queue, latency or fault: less work per message.
 */
#include <arpa/inet.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "sim/world/sim.h"

enum { MESSAGE_SIZE = 64, ROUNDS_COUNT = 3, IDLE_NODES_COUNT = 100000, WINDOW_COUNT = 64 };
static const uint64_t EVENTS_COUNT = 4000000; /* about as many */
static const uint64_t LATENCY_US = 50000;
static const uint64_t JITTER_US = 20000;
static const uint64_t DATAGRAMS_COUNT = 200000;

struct pinger {
    struct prng prng;
    uint32_t nodes_count;
};

static enum err pinger_init(void *state, const struct birth *birth) {
    struct pinger *pinger = state;
    const uint32_t *nodes_count = birth->config;
    pinger->nodes_count = *nodes_count;
    prng_init(&pinger->prng, birth->seed);
    return ERR_OK;
}

static void pinger_step(void *state, const struct event *event, struct outbox *out) {
    struct pinger *pinger = state;
    uint8_t message[MESSAGE_SIZE] = {0};
    if (event->kind == EVENT_MESSAGE) {
        memcpy(message, event->bytes.data, sizeof message);
    }
    message[0]++;
    struct address to = sim_address((uint32_t)prng_below(&pinger->prng, pinger->nodes_count));
    outbox_send(out, &to, bytes_of(message, sizeof message));
}

/* Does nothing but sleep: what a node costs by being there. */
static void idler_step(void *state, const struct event *event, struct outbox *out) {
    (void)state;
    outbox_wake_at(out, event->now_us + SIM_SECOND_US);
}

static const struct program pinger_program = {
    .name = "pinger",
    .state_size = sizeof(struct pinger),
    .actions_max = 1,
    .memory_size = MESSAGE_SIZE,
    .init = pinger_init,
    .step = pinger_step,
};

static const struct program idler_program = {
    .name = "idler",
    .state_size = sizeof(struct pinger),
    .actions_max = 1,
    .memory_size = 1,
    .init = pinger_init,
    .step = idler_step,
};

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-sim: %s failed\n", what);
        exit(1);
    }
}

static struct sim *make_sim(const struct program *program, uint32_t *nodes_count) {
    struct sim *sim = sim_new(&(struct sim_config){
        .seed = 1,
        .nodes_max = *nodes_count,
        .network = {.latency_us = LATENCY_US, .jitter_us = JITTER_US},
    });
    must(sim != NULL, "sim_new");
    for (uint32_t i = 0; i < *nodes_count; i++) {
        uint32_t node;
        must(sim_add(sim, program, nodes_count, &node) == ERR_OK, "sim_add");
        sim_start_at(sim, node, 0);
    }
    return sim;
}

/* Events per second. */
static double run_sim(uint32_t nodes_count) {
    struct sim *sim = make_sim(&pinger_program, &nodes_count);
    uint64_t turns_count = EVENTS_COUNT / nodes_count;
    double start_s = bench_now_s();
    must(sim_run_until(sim, turns_count * (LATENCY_US + JITTER_US / 2)) == ERR_OK, "sim_run_until");
    double rate = (double)sim_counters(sim)->events_count / (bench_now_s() - start_s);
    sim_free(sim);
    return rate;
}

static int open_socket(struct sockaddr_in *ret_address) {
    int number = socket(AF_INET, SOCK_DGRAM, 0);
    *ret_address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof *ret_address;
    must(number >= 0, "socket");
    must(bind(number, (struct sockaddr *)ret_address, size) == 0, "bind");
    must(getsockname(number, (struct sockaddr *)ret_address, &size) == 0, "getsockname");
    return number;
}

/* Datagrams per second. */
static double run_loopback(void) {
    struct sockaddr_in addresses[2];
    int sockets[2] = {open_socket(&addresses[0]), open_socket(&addresses[1])};
    uint8_t message[MESSAGE_SIZE] = {0};
    double start_s = bench_now_s();
    for (uint64_t i = 0; i < DATAGRAMS_COUNT; i += WINDOW_COUNT) {
        unsigned from = i / WINDOW_COUNT % 2;
        for (unsigned j = 0; j < WINDOW_COUNT; j++) {
            must(sendto(sockets[from], message, sizeof message, 0, (struct sockaddr *)&addresses[!from],
                        sizeof addresses[0]) == sizeof message,
                 "sendto");
        }
        for (unsigned j = 0; j < WINDOW_COUNT; j++) {
            must(recv(sockets[!from], message, sizeof message, 0) == sizeof message, "recv");
        }
    }
    double rate = (double)DATAGRAMS_COUNT / (bench_now_s() - start_s);
    close(sockets[0]);
    close(sockets[1]);
    return rate;
}

static double measure_idle_node(void) {
    uint32_t nodes_count = IDLE_NODES_COUNT;
    struct mallinfo2 before = mallinfo2();
    struct sim *sim = make_sim(&idler_program, &nodes_count);
    must(sim_run_until(sim, 3 * SIM_SECOND_US) == ERR_OK, "sim_run_until");
    struct mallinfo2 after = mallinfo2();
    sim_free(sim);
    /* Large pieces are mapped, small ones are in the arena. */
    return (double)(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / IDLE_NODES_COUNT;
}

static double max(double a, double b) {
    return a > b ? a : b;
}

int main(void) {
    double small = 0;
    double large = 0;
    double loopback = 0;
    for (unsigned i = 0; i < ROUNDS_COUNT; i++) {
        small = max(small, run_sim(1000));
        large = max(large, run_sim(10000));
        loopback = max(loopback, run_loopback());
    }
    bench_row("ping-pong, 1,000 simulated nodes", small, "events/s", small / loopback);
    bench_row("ping-pong, 10,000 simulated nodes", large, "events/s", large / loopback);
    bench_row("ping-pong, 2 UDP sockets on loopback", loopback, "messages/s", 1);
    printf("%-44s %14.0f bytes, of which %zu are its program's state\n", "idle simulated node",
           measure_idle_node(), sizeof(struct pinger));
    return 0;
}
