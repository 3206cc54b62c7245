/*
 * What encryption costs between nodes: sealed datagrams against plain ones, and streams in TLS against those
 * of programs up to 0.2 (net_streams.c).
 *
 * Both sides of datagrams and of plain TCP run in this one thread, so a figure is what one core does for
 * sender and receiver together. The other side is sendto() and recv(), and send() and recv() of 64 KiB, on
 * loopback.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "net/datagram.h"
#include "net/socket_address.h"
#include "net_streams.h"

enum {
    ROUNDS_COUNT = 3,
    WINDOW_COUNT = 32,
    DATAGRAMS_COUNT = 40000,
    CHUNK_SIZE = 1 << 16,
    KEYS_COUNT = 2000
};
static const uint64_t STREAM_SIZE = UINT64_C(200) << 20;

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-net: %s failed\n", what);
        exit(1);
    }
}

static double best(double a, double b) {
    return a > b ? a : b;
}

/* Sealed and opened in memory. */
static double seal_and_open(const struct identity *from, const struct identity *to, size_t size) {
    static uint8_t payload[DATAGRAM_PAYLOAD_SIZE_MAX];
    static uint8_t sealed[DATAGRAM_SIZE_MAX];
    static uint8_t opened[DATAGRAM_SIZE_MAX];
    struct sessions sender;
    struct sessions receiver;
    struct sessions_config config = {.peer_rate = {.per_second = 1000000000, .burst = 1000000000}};
    int64_t wall_us = clock_wall_us(&clock_system);
    must(sessions_init(&sender, from, &config, wall_us) == ERR_OK, "sessions_init");
    must(sessions_init(&receiver, to, &config, wall_us) == ERR_OK, "sessions_init");
    const struct session *session = sessions_with(&sender, to->key);
    struct sessions_now now = {.monotonic_us = 1, .wall_us = wall_us};
    double start = bench_now_s();
    for (size_t i = 0; i < DATAGRAMS_COUNT; i++) {
        struct sessions_opened result;
        size_t sealed_size =
            sessions_seal(&sender, session, DATAGRAM_RING, bytes_of(payload, size), wall_us, sealed);
        must(sessions_open(&receiver, bytes_of(sealed, sealed_size), now, opened, &result) == SEAL_FRESH,
             "open");
    }
    double seconds = bench_now_s() - start;
    sessions_done(&sender);
    sessions_done(&receiver);
    return DATAGRAMS_COUNT / seconds;
}

static double exchange_keys(const struct identity *from) {
    struct identity other;
    struct seal_keys keys;
    must(identity_random(&other) == ERR_OK, "identity");
    double start = bench_now_s();
    for (size_t i = 0; i < KEYS_COUNT; i++) {
        must(seal_keys_make(from, other.key, &keys) == ERR_OK, "keys");
    }
    return KEYS_COUNT / (bench_now_s() - start);
}

static void on_message(void *context, const struct datagram_message *message) {
    (void)message;
    ++*(size_t *)context;
}

static struct datagram *open_datagram(uv_loop_t *loop, const struct identity *identity, size_t *count) {
    struct datagram *datagram;
    struct bucket_rate any = {.per_second = 1000000000, .burst = 1000000000};
    struct datagram_config config = {
        .loop = loop,
        .identity = identity,
        .address = address_ipv4(127, 0, 0, 1, 0),
        .sessions.peer_rate = any,
        .address_rate = any,
        .on_message = on_message,
        .context = count,
    };
    must(datagram_new(&config, &datagram, NULL) == ERR_OK, "datagram_new");
    return datagram;
}

static double send_sealed(const struct identity *from, const struct identity *to, size_t size) {
    static uint8_t payload[DATAGRAM_PAYLOAD_SIZE_MAX];
    uv_loop_t loop;
    size_t received[2] = {0, 0};
    must(uv_loop_init(&loop) == 0, "uv_loop_init");
    struct datagram *a = open_datagram(&loop, from, &received[0]);
    struct datagram *b = open_datagram(&loop, to, &received[1]);
    struct peer peer = {.address = datagram_address(b)};
    memcpy(peer.key, to->key, sizeof peer.key);
    while (datagram_stats(a)->proofs == 0) { /* the address proves itself first */
        (void)datagram_send(a, &peer, DATAGRAM_RING, bytes_of(payload, 1));
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    size_t before = received[1];
    size_t sent = before;
    double start = bench_now_s();
    while (received[1] - before < DATAGRAMS_COUNT) {
        while (sent - received[1] < WINDOW_COUNT) {
            must(datagram_send(a, &peer, DATAGRAM_RING, bytes_of(payload, size)) == ERR_OK, "datagram_send");
            sent++;
        }
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    double seconds = bench_now_s() - start;
    datagram_free(a);
    datagram_free(b);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return DATAGRAMS_COUNT / seconds;
}

static int plain_socket(int type, struct address *ret_address) {
    struct address any = address_ipv4(127, 0, 0, 1, 0);
    struct sockaddr_storage name;
    socklen_t name_size = sizeof name;
    int fd = socket(AF_INET, type, 0);
    must(fd >= 0 && bind(fd, socket_address_put(&any, &name), sizeof(struct sockaddr_in)) == 0, "bind");
    must(getsockname(fd, (struct sockaddr *)&name, &name_size) == 0, "getsockname");
    must(socket_address_get((struct sockaddr *)&name, ret_address), "address");
    return fd;
}

static double send_plain(size_t size) {
    static uint8_t payload[DATAGRAM_PAYLOAD_SIZE_MAX];
    struct address a;
    struct address b;
    struct sockaddr_storage name;
    int from = plain_socket(SOCK_DGRAM, &a);
    int to = plain_socket(SOCK_DGRAM, &b);
    socket_address_put(&b, &name);
    double start = bench_now_s();
    for (size_t i = 0; i < DATAGRAMS_COUNT; i += WINDOW_COUNT) {
        for (size_t j = 0; j < WINDOW_COUNT; j++) {
            must(sendto(from, payload, size, 0, (struct sockaddr *)&name, sizeof(struct sockaddr_in)) > 0,
                 "sendto");
        }
        for (size_t j = 0; j < WINDOW_COUNT; j++) {
            must(recv(to, payload, sizeof payload, 0) > 0, "recv");
        }
    }
    double seconds = bench_now_s() - start;
    close(from);
    close(to);
    return DATAGRAMS_COUNT / seconds;
}

static double stream_plain(void) {
    static uint8_t chunk[CHUNK_SIZE];
    struct address address;
    struct sockaddr_storage name;
    int listener = plain_socket(SOCK_STREAM, &address);
    int from = socket(AF_INET, SOCK_STREAM, 0);
    must(listen(listener, 1) == 0, "listen");
    must(connect(from, socket_address_put(&address, &name), sizeof(struct sockaddr_in)) == 0, "connect");
    int to = accept(listener, NULL, NULL);
    uint64_t received_bytes = 0;
    double start = bench_now_s();
    while (received_bytes < STREAM_SIZE) {
        ssize_t sent = send(from, chunk, sizeof chunk, MSG_DONTWAIT);
        must(sent > 0 || errno == EAGAIN, "send");
        ssize_t got = recv(to, chunk, sizeof chunk, MSG_DONTWAIT);
        received_bytes += got > 0 ? (uint64_t)got : 0;
    }
    double seconds = bench_now_s() - start;
    close(listener);
    close(from);
    close(to);
    return (double)STREAM_SIZE / 1e6 / seconds;
}

static void compare_datagrams(const struct identity *a, const struct identity *b, size_t size) {
    double memory = 0;
    double sealed = 0;
    double plain = 0;
    char what[64];
    for (size_t i = 0; i < ROUNDS_COUNT; i++) {
        memory = best(memory, seal_and_open(a, b, size));
        sealed = best(sealed, send_sealed(a, b, size));
        plain = best(plain, send_plain(size));
    }
    snprintf(what, sizeof what, "%zu bytes: sealed and opened in memory", size);
    bench_row(what, memory, "/s", 0);
    snprintf(what, sizeof what, "%zu bytes: sendto and recv", size);
    bench_row(what, plain, "/s", 0);
    snprintf(what, sizeof what, "%zu bytes: datagram_send to on_message", size);
    bench_row(what, sealed, "/s", sealed / plain);
}

int main(void) {
    struct identity a;
    struct identity b;
    must(identity_random(&a) == ERR_OK && identity_random(&b) == ERR_OK, "identity");
    bench_row("keys with a stranger (X25519)", exchange_keys(&a), "/s", 0);
    compare_datagrams(&a, &b, 64);
    compare_datagrams(&a, &b, DATAGRAM_PAYLOAD_SIZE_MAX);
    double plain = 0;
    for (size_t i = 0; i < ROUNDS_COUNT; i++) {
        plain = best(plain, stream_plain());
    }
    bench_row("plain TCP, one thread", plain, "MB/s", 0);
    net_streams_compare(&a, &b);
    return 0;
}
