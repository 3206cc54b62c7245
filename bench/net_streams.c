/*
 * Two nodes ask each other over streams, as they do in a ring: each has its own thread, so both cores work.
 * Beside the time of the clock stands the processor time of both sides together, which a busy machine changes
 * less.
 */
#include "net_streams.h"

#include <semaphore.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench.h"
#include "node/rpc/peer_rpc.h"

enum { ROUNDS_COUNT = 5, OPENINGS_COUNT = 1000 };

/* So many answers of that size, so many questions under way at once. */
struct load {
    const char *what;
    size_t size;
    uint32_t count;
    uint32_t at_once;
};

static const struct load bulk = {"answers of 1 MiB", 1 << 20, 400, 4};
static const struct load captures = {"captures of 12 KB", 12000, 20000, 32};

struct node {
    struct identity identity;
    struct dialects *dialects;
    struct peer_rpc *peer_rpc;
    struct peer peer;
};

struct pair {
    struct node asker;
    struct node teller;
    struct load load;
    uint32_t asked_count;
    uint32_t answered_count;
    sem_t is_over;
};

struct cost {
    double wall_s;
    double processor_s;
};

static void streams_must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-net: %s failed\n", what);
        exit(1);
    }
}

static struct cost cost_now(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct cost){.wall_s = bench_now_s(),
                         .processor_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                                        (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6};
}

static struct cost cost_since(struct cost before) {
    struct cost now = cost_now();
    return (struct cost){now.wall_s - before.wall_s, now.processor_s - before.processor_s};
}

static enum err tell(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                     struct err_detail *detail) {
    static const uint8_t contents[1 << 20];
    const struct pair *pair = context;
    (void)from;
    (void)question;
    (void)detail;
    return buf_put(answer, bytes_of(contents, pair->load.size));
}

static void node_start(struct pair *pair, struct node *node, const struct identity *identity, bool is_tls) {
    struct dialect own = dialect_of_program;
    own.features &= ~((uint64_t)!is_tls << DIALECT_TLS);
    node->identity = *identity;
    node->dialects = dialects_new(&own, NULL);
    struct peer_rpc_config config = {
        .identity = &node->identity, .address = address_ipv4(127, 0, 0, 1, 0), .dialects = node->dialects};
    streams_must(peer_rpc_new(&config, &node->peer_rpc, NULL) == ERR_OK, "peer_rpc_new");
    peer_rpc_serve(node->peer_rpc, PEER_RPC_PING, tell, pair);
    node->peer.address = peer_rpc_address(node->peer_rpc);
    memcpy(node->peer.key, identity->key, PEER_KEY_SIZE);
    streams_must(peer_rpc_start(node->peer_rpc, NULL) == ERR_OK, "peer_rpc_start");
}

static void node_stop(struct node *node) {
    peer_rpc_stop(node->peer_rpc);
    peer_rpc_free(node->peer_rpc);
    dialects_free(node->dialects);
}

static void ask_next(struct pair *pair);

static void on_told(void *context, enum err err, struct bytes answer) {
    struct pair *pair = context;
    streams_must(err == ERR_OK && answer.size == pair->load.size, "an answer");
    pair->answered_count++;
    if (pair->asked_count < pair->load.count) {
        ask_next(pair);
    } else if (pair->answered_count == pair->load.count) {
        sem_post(&pair->is_over);
    }
}

static void ask_next(struct pair *pair) {
    pair->asked_count++;
    streams_must(peer_rpc_call(pair->asker.peer_rpc, &pair->teller.peer, PEER_RPC_PING, BYTES("?"), 60000,
                               on_told, pair) == ERR_OK,
                 "a question");
}

static void ask_first(void *context) {
    struct pair *pair = context;
    for (uint32_t i = 0; i < pair->load.at_once; i++) {
        ask_next(pair);
    }
}

static struct cost ask_all(const struct identity *a, const struct identity *b, bool is_tls,
                           const struct load *load) {
    static struct pair pair;
    pair = (struct pair){.load = *load};
    sem_init(&pair.is_over, 0, 0);
    node_start(&pair, &pair.asker, a, is_tls);
    node_start(&pair, &pair.teller, b, is_tls);
    struct cost before = cost_now();
    streams_must(peer_rpc_post(pair.asker.peer_rpc, ask_first, &pair) == ERR_OK, "peer_rpc_post");
    while (sem_wait(&pair.is_over) != 0) {
    }
    struct cost cost = cost_since(before);
    node_stop(&pair.asker);
    node_stop(&pair.teller);
    sem_destroy(&pair.is_over);
    return cost;
}

/* ---- opening ---- */

struct opening {
    uint32_t opened_count;
    uint32_t closed_count;
};

static void on_opened(void *context, struct stream *stream) {
    struct opening *opening = context;
    opening->opened_count++;
    stream_finish(stream);
}

static void on_other_finish(void *context, struct stream *stream) {
    (void)context;
    stream_finish(stream);
}

static void on_shut(void *context, struct stream *stream, enum err err) {
    struct opening *opening = context;
    (void)stream;
    streams_must(err == ERR_OK, "a stream");
    opening->closed_count++;
}

static const struct stream_events opener = {.on_open = on_opened, .on_closed = on_shut};
static const struct stream_events opened = {.on_finish = on_other_finish, .on_closed = on_shut};

static void on_come(void *context, struct stream *stream) {
    stream_own(stream, &opened, context);
}

/* One after the other; both sides in this thread. */
static struct cost open_all(const struct identity *a, const struct identity *b, bool is_tls) {
    static const struct bucket_rate any = {.per_second = 1000000000, .burst = 1000000000};
    struct tls_config configs[2] = {{.identity = a}, {.identity = b}};
    struct tls_context *contexts[2] = {NULL, NULL};
    struct opening opening = {0};
    struct stream_server *server;
    uv_loop_t loop;
    streams_must(uv_loop_init(&loop) == 0, "uv_loop_init");
    for (size_t i = 0; is_tls && i < 2; i++) {
        streams_must(tls_context_new(&configs[i], &contexts[i], NULL) == ERR_OK, "tls_context_new");
    }
    struct stream_server_config config = {.stream = {.loop = &loop, .identity = b, .tls = contexts[1]},
                                          .address = address_ipv4(127, 0, 0, 1, 0),
                                          .address_rate = any,
                                          .total_rate = any,
                                          .on_stream = on_come,
                                          .context = &opening};
    streams_must(stream_server_new(&config, &server, NULL) == ERR_OK, "stream_server_new");
    struct stream_config client = {.loop = &loop, .identity = a, .tls = contexts[0]};
    struct peer peer = {.address = stream_server_address(server)};
    memcpy(peer.key, b->key, PEER_KEY_SIZE);
    struct cost before = cost_now();
    for (uint32_t i = 1; i <= OPENINGS_COUNT; i++) {
        struct stream *stream;
        streams_must(stream_connect(&client, &peer, &opener, &opening, &stream) == ERR_OK, "stream_connect");
        while (opening.closed_count < 2 * i) {
            uv_run(&loop, UV_RUN_ONCE);
        }
    }
    struct cost cost = cost_since(before);
    stream_server_free(server);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    tls_context_free(contexts[0]);
    tls_context_free(contexts[1]);
    return cost;
}

/* ---- rows ---- */

static struct cost cost_best(struct cost a, struct cost b) {
    return (struct cost){a.wall_s < b.wall_s ? a.wall_s : b.wall_s,
                         a.processor_s < b.processor_s ? a.processor_s : b.processor_s};
}

/* Both kinds in turns; the best of each. */
static void measure(const struct identity *a, const struct identity *b, const struct load *load,
                    struct cost costs[2]) {
    costs[0] = costs[1] = (struct cost){1e9, 1e9};
    for (size_t i = 0; i < ROUNDS_COUNT; i++) {
        for (size_t kind = 0; kind < 2; kind++) {
            struct cost cost = load != NULL ? ask_all(a, b, kind == 1, load) : open_all(a, b, kind == 1);
            costs[kind] = cost_best(costs[kind], cost);
        }
    }
}

static void rows(const char *what, double amount, const char *unit, const struct cost costs[2]) {
    static const char *const kinds[] = {"as up to 0.2", "TLS"};
    char text[96];
    char processor_unit[32];
    snprintf(processor_unit, sizeof processor_unit, "%s per processor s", unit);
    for (size_t kind = 0; kind < 2; kind++) {
        double per_s = amount / costs[kind].wall_s;
        double per_processor_s = amount / costs[kind].processor_s;
        snprintf(text, sizeof text, "%s, %s", what, kinds[kind]);
        bench_row(text, per_s, unit, kind == 0 ? 0 : costs[0].wall_s / costs[1].wall_s);
        bench_row("    both sides together", per_processor_s, processor_unit,
                  kind == 0 ? 0 : costs[0].processor_s / costs[1].processor_s);
    }
}

void net_streams_compare(const struct identity *a, const struct identity *b) {
    struct cost costs[2];
    measure(a, b, &bulk, costs);
    rows(bulk.what, (double)bulk.size * bulk.count / 1e6, "MB/s", costs);
    measure(a, b, &captures, costs);
    rows(captures.what, captures.count, "/s", costs);
    measure(a, b, NULL, costs);
    rows("streams opened", OPENINGS_COUNT, "/s", costs);
}
