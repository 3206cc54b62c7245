/*
 * Who is responsible? Lookups of real nodes in this one process, each with its own thread and UDP socket on
 * loopback, asked from another thread as the crawl asks (node/transport/transport.h).
 *
 *      known     the owner is this node itself or in its location table: nothing is sent
 *      asked     more places are wanted than there are, so that the table never suffices: questions over UDP
 *
 * The baseline of those that are asked is one datagram to a thread that sends it back, one at a time: what
 * the sockets and the two changes of threads cost alone.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "net/identity.h"
#include "node/transport/ring_files.h"
#include "node/transport/transport.h"

enum {
    NODES_COUNT = 10,
    LIST_SIZE = 4,
    WARM_COUNT = 2000,
    KNOWN_COUNT = 200000,
    ASKED_COUNT = 20000,
    WINDOW_COUNT = 64,
    ECHO_SIZE = 460, /* a question of the ring from who has no token yet, sealed */
    JOIN_PATIENCE_MS = 60000,
    PATH_SIZE = 256,
};

struct run;

struct asker {
    struct transport_question question;
    struct run *run;
    double asked_at_s;
    double seconds;
};

struct run {
    struct asker *askers; /* one per question */
    sem_t room;           /* in the window */
    /* The ring's thread. */
    size_t lost_count;
    size_t known_count; /* answered without a hop */
    uint64_t hops_count;
};

struct bench {
    char directory[PATH_SIZE];
    struct transport *nodes[NODES_COUNT];
    char paths[NODES_COUNT][PATH_SIZE + 24];
    char contact[ADDRESS_TEXT_SIZE_MAX];
};

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-ring: %s failed\n", what);
        exit(1);
    }
}

/* ---- a ring ---- */

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static void found(const char *directory) {
    static struct charter charter;
    static uint8_t encoded[CHARTER_SIZE_MAX];
    struct identity identity;
    must(identity_load(&identity, directory, NULL) == ERR_OK, "identity");
    charter_init(&charter);
    memcpy(charter.founder, identity.key, PEER_KEY_SIZE);
    snprintf(charter.name, sizeof charter.name, "bench");
    charter.created_s = charter.signed_s = (uint64_t)time(NULL);
    charter.is_open = true;
    charter.list_size = LIST_SIZE;
    struct bytes bytes = charter_write(&charter, sign, &identity, encoded);
    must(ring_files_write_charter(directory, bytes, NULL) == ERR_OK, "charter");
    identity_done(&identity);
}

static void start_node(struct bench *bench, size_t index) {
    char path[PATH_SIZE + 24];
    struct err_detail detail = {0};
    snprintf(path, sizeof path, "%s/%zu", bench->directory, index);
    memcpy(bench->paths[index], path, sizeof path); /* outlives the node */
    must(mkdir(path, 0700) == 0, "mkdir");
    if (index == 0) {
        found(path);
    }
    struct transport_config config = {
        .directory = bench->paths[index],
        .address = address_ipv4(127, 0, 7, (uint8_t)(index + 1), 0),
        .join = index == 0 ? NULL : bench->contact,
        .clock = &clock_system,
    };
    must(transport_new(&config, &bench->nodes[index], &detail) == ERR_OK, detail.text);
    must(transport_start(bench->nodes[index], &detail) == ERR_OK, detail.text);
    struct address address;
    must(transport_address(bench->nodes[index], &address), "address");
    if (index == 0) {
        address_format(&address, bench->contact);
    }
}

static bool says(struct transport *transport, const char *what) {
    struct buf text;
    buf_init(&text, 8 << 20);
    transport_put(transport, &text);
    bool is_said = bytes_find(buf_bytes(&text), bytes_of_string(what)) < text.size;
    buf_done(&text);
    return is_said;
}

static void await_member(struct transport *transport) {
    for (int waited_ms = 0; !says(transport, "\"state\":\"member\""); waited_ms += 10) {
        must(waited_ms < JOIN_PATIENCE_MS, "joining");
        usleep(10000);
    }
}

/* ---- lookups ---- */

static void on_answer(struct transport_question *question, const struct transport_answer *answer) {
    struct asker *asker = question->context;
    struct run *run = asker->run;
    asker->seconds = bench_now_s() - asker->asked_at_s;
    run->lost_count += answer->err != ERR_OK;
    run->known_count += answer->err == ERR_OK && answer->hops_count == 0;
    run->hops_count += answer->hops_count;
    sem_post(&run->room);
}

static int compare(const void *a, const void *b) {
    double difference = ((const struct asker *)a)->seconds - ((const struct asker *)b)->seconds;
    return difference < 0 ? -1 : difference > 0;
}

/* How many a second, never more than a window at once. The askers are sorted by their delay afterwards. */
static double look_up(struct run *run, struct transport *transport, size_t count, unsigned window,
                      uint8_t wanted) {
    *run = (struct run){.askers = calloc(count, sizeof *run->askers)};
    must(run->askers != NULL && sem_init(&run->room, 0, window) == 0, "memory");
    double start = bench_now_s();
    for (size_t i = 0; i < count; i++) {
        struct asker *asker = &run->askers[i];
        asker->run = run;
        asker->question.vnodes_wanted = wanted;
        asker->question.answered = on_answer;
        asker->question.context = asker;
        randombytes_buf(&asker->question.key, sizeof asker->question.key);
        sem_wait(&run->room);
        asker->asked_at_s = bench_now_s();
        transport_ask(transport, &asker->question);
    }
    for (unsigned i = 0; i < window; i++) {
        sem_wait(&run->room);
    }
    double seconds = bench_now_s() - start;
    sem_destroy(&run->room);
    qsort(run->askers, count, sizeof *run->askers, compare);
    return (double)count / seconds;
}

static void measure(const char *what, struct transport *transport, size_t count, unsigned window,
                    uint8_t wanted, double baseline) {
    char text[64];
    struct run run;
    double per_second = look_up(&run, transport, count, window, wanted);
    snprintf(text, sizeof text, "%s, %u at once", what, window);
    bench_row(text, per_second, "/s", baseline > 0 ? per_second / baseline : 0);
    printf("  p50 %.0f us, p99 %.0f us, %.2f hops, %.1f %% known, %zu lost\n",
           run.askers[count / 2].seconds * 1e6, run.askers[count - count / 100 - 1].seconds * 1e6,
           (double)run.hops_count / (double)count, 100.0 * (double)run.known_count / (double)count,
           run.lost_count);
    free(run.askers);
}

/* Until the table knows everybody: what is asked is answered, and then known. */
static void warm(struct transport *transport) {
    struct run run;
    size_t known_count = 0;
    for (int tries = 0; known_count < WARM_COUNT * 99 / 100; tries++) {
        must(tries < 100, "a ring that agrees");
        usleep(300000);
        look_up(&run, transport, WARM_COUNT, WINDOW_COUNT, 1);
        known_count = run.known_count;
        free(run.askers);
    }
}

/* ---- the baseline ---- */

static int open_socket(struct sockaddr_in *name) {
    socklen_t size = sizeof *name;
    *name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(fd >= 0 && bind(fd, (struct sockaddr *)name, size) == 0, "bind");
    must(getsockname(fd, (struct sockaddr *)name, &size) == 0, "getsockname");
    return fd;
}

static void *echo(void *context) {
    int fd = *(const int *)context;
    uint8_t bytes[ECHO_SIZE];
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    while (recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size) > 1) {
        must(sendto(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, size) > 0, "sendto");
    }
    return NULL;
}

static double echo_datagrams(void) {
    uint8_t bytes[ECHO_SIZE] = {0};
    struct sockaddr_in name;
    struct sockaddr_in own;
    pthread_t thread;
    int far = open_socket(&name);
    int fd = open_socket(&own);
    must(connect(fd, (struct sockaddr *)&name, sizeof name) == 0, "connect");
    must(pthread_create(&thread, NULL, echo, &far) == 0, "thread");
    double start = bench_now_s();
    for (size_t i = 0; i < ASKED_COUNT; i++) {
        must(send(fd, bytes, sizeof bytes, 0) > 0 && recv(fd, bytes, sizeof bytes, 0) > 0, "echo");
    }
    double per_second = ASKED_COUNT / (bench_now_s() - start);
    must(send(fd, bytes, 1, 0) == 1, "send");
    pthread_join(thread, NULL);
    close(far);
    close(fd);
    return per_second;
}

/* ---- all of it ---- */

static void remove_all(struct bench *bench) {
    char command[PATH_SIZE + 16];
    for (size_t i = 0; i < NODES_COUNT; i++) {
        transport_stop(bench->nodes[i]);
        transport_free(bench->nodes[i]);
    }
    snprintf(command, sizeof command, "rm -rf %s", bench->directory);
    must(system(command) == 0, "rm");
}

int main(void) {
    static struct bench bench;
    const char *temporary = getenv("TMPDIR");
    snprintf(bench.directory, sizeof bench.directory, "%s/bench-ring-XXXXXX",
             temporary != NULL ? temporary : "/tmp");
    must(sodium_init() >= 0 && mkdtemp(bench.directory) != NULL, "mkdtemp");
    for (size_t i = 0; i < NODES_COUNT; i++) {
        start_node(&bench, i);
        await_member(bench.nodes[i]);
    }
    struct transport *node = bench.nodes[NODES_COUNT - 1];
    warm(node);
    double baseline = echo_datagrams();
    bench_row("a datagram there and back, 1 at once", baseline, "/s", 0);
    measure("known", node, KNOWN_COUNT, 1, 1, 0);
    measure("known", node, KNOWN_COUNT, WINDOW_COUNT, 1, 0);
    measure("asked", node, ASKED_COUNT, 1, TRANSPORT_VNODES_MAX, baseline);
    measure("asked", node, ASKED_COUNT, WINDOW_COUNT, TRANSPORT_VNODES_MAX, baseline);
    remove_all(&bench);
    return 0;
}
