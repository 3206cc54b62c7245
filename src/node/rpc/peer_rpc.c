#include "node/rpc/peer_rpc.h"

#include <sodium.h>
#include <stdlib.h>

#include "node/rpc/peer_rpc_state.h"

enum { STREAMS_MAX_DEFAULT = 256, HABITS_MAX = 4096, STREAMS_PER_ADDRESS_MAX = 64 };

uint64_t peer_rpc_now_us(const struct peer_rpc *peer_rpc) {
    return clock_monotonic_us(peer_rpc->config.clock);
}

/* ---- the thread ---- */

static void end_late_calls(struct peer_rpc *peer_rpc, uint64_t now_us) {
    struct peer_rpc_line *line = peer_rpc->lines;
    while (line != NULL) {
        line = peer_rpc_line_end_late(line, now_us) ? peer_rpc->lines : line->next;
    }
}

static void peer_rpc_tick(void *context) {
    struct peer_rpc *peer_rpc = context;
    uint64_t now_us = peer_rpc_now_us(peer_rpc);
    end_late_calls(peer_rpc, now_us);
    peer_rpc_races_tick(peer_rpc, now_us);
    struct peer_rpc_line *line = peer_rpc->lines;
    while (line != NULL) {
        line = peer_rpc_line_go_on(line, now_us) ? peer_rpc->lines : line->next;
    }
}

static bool needs_ticks(const struct peer_rpc *peer_rpc) {
    bool is_needed = peer_rpc->races != NULL;
    for (const struct peer_rpc_line *line = peer_rpc->lines; line != NULL && !is_needed; line = line->next) {
        is_needed = peer_rpc_line_needs_ticks(line);
    }
    return is_needed;
}

/* Before the loop sleeps: it is woken again only where somebody waits for something. */
static void on_prepare(uv_prepare_t *prepare) {
    struct peer_rpc *peer_rpc = prepare->data;
    bool is_ticking = loop_timer_is_set(&peer_rpc->tick);
    bool is_needed = needs_ticks(peer_rpc);
    if (is_needed && !is_ticking) {
        loop_timer_set(&peer_rpc->tick, PEER_RPC_TICK_US, PEER_RPC_TICK_US);
    } else if (!is_needed && is_ticking) {
        loop_timer_stop(&peer_rpc->tick);
    }
}

static void peer_rpc_end(void *context) {
    struct peer_rpc *peer_rpc = context;
    peer_rpc->is_ending = true;
    while (peer_rpc->lines != NULL) {
        peer_rpc_line_end(peer_rpc->lines, ERR_CANCELLED);
    }
    peer_rpc_races_tick(peer_rpc, UINT64_MAX);
    if (peer_rpc->server != NULL) {
        stream_server_free(peer_rpc->server);
        peer_rpc->server = NULL;
    }
}

enum err peer_rpc_post(struct peer_rpc *peer_rpc, void (*run)(void *context), void *context) {
    return loop_call(&peer_rpc->loop, run, context);
}

/* ---- life ---- */

static enum err listen_at(struct peer_rpc *peer_rpc, struct err_detail *detail) {
    struct stream_server_config config = {
        .stream = {.loop = &peer_rpc->loop.uv, .identity = peer_rpc->config.identity},
        .address = peer_rpc->config.address,
        .held = peer_rpc->config.held,
        .streams_max = peer_rpc->config.streams_max,
        .streams_per_address_max = STREAMS_PER_ADDRESS_MAX,
        .on_stream = peer_rpc_line_accept,
        .context = peer_rpc,
    };
    return stream_server_new(&config, &peer_rpc->server, detail);
}

enum err peer_rpc_new(const struct peer_rpc_config *config, struct peer_rpc **ret_peer_rpc,
                      struct err_detail *detail) {
    struct peer_rpc *peer_rpc = calloc(1, sizeof *peer_rpc);
    enum err err = peer_rpc != NULL ? loop_init(&peer_rpc->loop, PEER_RPC_POSTS_MAX) : ERR_MEMORY;
    if (err != ERR_OK) {
        free(peer_rpc);
        return err_set(detail, err, "%s", err_text(err));
    }
    peer_rpc->config = *config;
    peer_rpc->config.clock = config->clock != NULL ? config->clock : &clock_system;
    peer_rpc->config.streams_max = config->streams_max > 0 ? config->streams_max : STREAMS_MAX_DEFAULT;
    peer_rpc->upload.rate = config->upload_rate;
    peer_rpc->download.rate = config->download_rate;
    peer_rpc->reads.rate = config->reads_rate;
    buf_init(&peer_rpc->answer, PEER_RPC_ANSWER_SIZE_MAX);
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    map_init(&peer_rpc->habits, PEER_KEY_SIZE, sizeof(struct peer_rpc_habit), HABITS_MAX, seed);
    standing_init(&peer_rpc->standing, peer_rpc->busy, PEER_RPC_BUSY_MAX, seed);
    pthread_mutex_init(&peer_rpc->lock, NULL);
    loop_timer_init(&peer_rpc->loop, &peer_rpc->tick, peer_rpc_tick, peer_rpc);
    uv_prepare_init(&peer_rpc->loop.uv, &peer_rpc->prepare);
    peer_rpc->prepare.data = peer_rpc;
    uv_prepare_start(&peer_rpc->prepare, on_prepare);
    err = listen_at(peer_rpc, detail);
    if (err != ERR_OK) {
        peer_rpc_free(peer_rpc);
        return err;
    }
    peer_rpc->address = stream_server_address(peer_rpc->server);
    *ret_peer_rpc = peer_rpc;
    return ERR_OK;
}

void peer_rpc_serve(struct peer_rpc *peer_rpc, enum peer_rpc_service service, peer_rpc_handler *handler,
                    void *context) {
    ASSERT(service < PEER_RPC_SERVICES_COUNT);
    ASSERT(!peer_rpc->is_running || peer_rpc->services[service].handler == NULL);
    peer_rpc->services[service].context = context;
    peer_rpc->services[service].handler = handler;
}

enum err peer_rpc_start(struct peer_rpc *peer_rpc, struct err_detail *detail) {
    if (loop_start(&peer_rpc->loop, "peer-rpc", PRIORITY_USUAL) != ERR_OK) {
        return err_set(detail, ERR_SYSTEM, "no thread for transfers between nodes");
    }
    peer_rpc->is_running = true;
    return ERR_OK;
}

void peer_rpc_stop(struct peer_rpc *peer_rpc) {
    if (!peer_rpc->is_ending) {
        loop_stop(&peer_rpc->loop, peer_rpc_end, peer_rpc);
        peer_rpc->is_running = false;
    }
}

void peer_rpc_free(struct peer_rpc *peer_rpc) {
    peer_rpc_stop(peer_rpc);
    pthread_mutex_destroy(&peer_rpc->lock);
    map_done(&peer_rpc->habits);
    buf_done(&peer_rpc->answer);
    free(peer_rpc);
}

/* ---- asking, on the thread ---- */

enum err peer_rpc_start_call(struct peer_rpc *peer_rpc, const struct peer *peer,
                             enum peer_rpc_service service, struct bytes question, uint64_t deadline_us,
                             peer_rpc_done *done, void *context, uint32_t *ret_number) {
    ASSERT(question.size <= PEER_RPC_QUESTION_SIZE_MAX);
    if (peer_rpc->is_ending) {
        return ERR_CANCELLED;
    }
    if (memcmp(peer->key, peer_rpc->config.identity->key, PEER_KEY_SIZE) == 0) {
        return ERR_INVALID;
    }
    struct peer_rpc_line *line = peer_rpc_line_find(peer_rpc, peer);
    enum err err = line != NULL ? ERR_OK : peer_rpc_line_connect(peer_rpc, peer, &line);
    if (err == ERR_OK) {
        err = peer_rpc_line_ask(line, service, question, deadline_us, done, context, ret_number);
    }
    pthread_mutex_lock(&peer_rpc->lock);
    peer_rpc->stat.questions_count++;
    peer_rpc->stat.failed_count += err != ERR_OK;
    pthread_mutex_unlock(&peer_rpc->lock);
    return err;
}

enum err peer_rpc_call(struct peer_rpc *peer_rpc, const struct peer *peer, enum peer_rpc_service service,
                       struct bytes question, uint32_t timeout_ms, peer_rpc_done *done, void *context) {
    uint32_t number;
    uint64_t deadline_us = peer_rpc_now_us(peer_rpc) + (uint64_t)timeout_ms * 1000;
    return peer_rpc_start_call(peer_rpc, peer, service, question, deadline_us, done, context, &number);
}

/* ---- any thread ---- */

void peer_rpc_stat(struct peer_rpc *peer_rpc, struct peer_rpc_stat *ret_stat) {
    pthread_mutex_lock(&peer_rpc->lock);
    *ret_stat = peer_rpc->stat;
    pthread_mutex_unlock(&peer_rpc->lock);
}

struct address peer_rpc_address(const struct peer_rpc *peer_rpc) {
    return peer_rpc->address;
}
