#include "node/rpc/peer_rpc.h"

#include <sodium.h>
#include <stdlib.h>

#include "node/rpc/peer_rpc_state.h"
#include "run/bell.h"

/* ---- readers: how much they may ask, and which peers have too many of them ---- */

enum { STREAMS_MAX_DEFAULT = 256, HABITS_MAX = 4096, STREAMS_PER_ADDRESS_MAX = 64 };

uint64_t peer_rpc_now_us(const struct peer_rpc *peer_rpc) {
    return clock_monotonic_us(peer_rpc->config.clock);
}

static const uint64_t BURST_US = 100000; /* the rate may be ahead by so much */
static const uint64_t LISTS_US = 2000000;
enum { BUSY_US_MIN = 200000, BUSY_US_MAX = 2000000, LISTS_MAX = 8 };

/* Of this peer; NULL: out of memory. Within the lock. */
static struct peer_rpc_habit *habit_of(struct peer_rpc *peer_rpc, const struct peer *peer) {
    if (map_reserve(&peer_rpc->habits, peer_rpc->habits.count + 1) != ERR_OK) {
        map_clear(&peer_rpc->habits); /* too many peers for one table: begin anew */
    }
    return map_put(&peer_rpc->habits, peer_key(peer));
}

/* ---- what others read here ---- */

/* Was the peer given a listing a moment ago, and has it read nothing of it yet? */
static bool follows_list(struct peer_rpc_habit *habit, uint64_t now_us) {
    if (habit == NULL || habit->lists_count == 0 || now_us > habit->lists_until_us) {
        return false;
    }
    habit->lists_count--;
    return true;
}

static void note_list(struct peer_rpc_habit *habit, uint64_t now_us) {
    if (habit != NULL) {
        habit->lists_count = now_us > habit->lists_until_us ? 1 : habit->lists_count + 1;
        habit->lists_count = habit->lists_count < LISTS_MAX ? habit->lists_count : LISTS_MAX;
        habit->lists_until_us = now_us + LISTS_US;
    }
}

enum err peer_rpc_begin_read(struct peer_rpc *peer_rpc, const struct peer *from, enum peer_rpc_read read,
                             struct err_detail *detail) {
    struct peer_rpc_meter *reads = &peer_rpc->reads;
    uint64_t now_us = peer_rpc_now_us(peer_rpc);
    bool is_begun = read == PEER_RPC_READ_ON || reads->rate == 0 || reads->free_us < now_us + BURST_US;
    pthread_mutex_lock(&peer_rpc->lock);
    struct peer_rpc_habit *habit = reads->rate > 0 ? habit_of(peer_rpc, from) : NULL;
    is_begun = (read == PEER_RPC_READ_CAPTURE && follows_list(habit, now_us)) || is_begun;
    if (read == PEER_RPC_READ_LIST && is_begun) {
        note_list(habit, now_us);
    }
    peer_rpc->stat.reads_count += is_begun;
    peer_rpc->stat.shed_count += !is_begun;
    pthread_mutex_unlock(&peer_rpc->lock);
    if (!is_begun) {
        return err_set(detail, ERR_BUSY, "more is asked of this node than it may answer");
    }
    if (reads->rate > 0) {
        reads->free_us = (reads->free_us > now_us ? reads->free_us : now_us) + 1000000 / reads->rate;
    }
    return ERR_OK;
}

/* ---- what we read there ---- */

/* Twice as long each time. While it holds, it was asked before we knew: that is not the second time. */
static void learn_busy(struct standing *standing, struct bytes key, bool is_busy, uint64_t now_us) {
    if (!is_busy) {
        standing_clear(standing, STANDING_BUSY, key);
    } else if (!standing_holds(standing, STANDING_BUSY, key, now_us)) {
        uint32_t count = standing_count(standing, STANDING_BUSY, key);
        standing_note(standing, STANDING_BUSY, key, now_us,
                      now_us + retry_doubled_us(BUSY_US_MIN, count, BUSY_US_MAX));
    }
}

void peer_rpc_learn(struct peer_rpc *peer_rpc, const struct peer *peer, enum peer_rpc_service service,
                    enum err err, uint64_t took_us) {
    uint64_t now_us = peer_rpc_now_us(peer_rpc);
    pthread_mutex_lock(&peer_rpc->lock);
    struct peer_rpc_habit *habit = habit_of(peer_rpc, peer);
    if (habit != NULL) {
        rtt_sample(&habit->rtt, took_us);
    }
    if (service == PEER_RPC_WALK || service == PEER_RPC_CAPTURE || service == PEER_RPC_CAPTURES) {
        learn_busy(&peer_rpc->standing, peer_key(peer), err == ERR_BUSY, now_us);
    }
    pthread_mutex_unlock(&peer_rpc->lock);
}

bool peer_rpc_is_busy(struct peer_rpc *peer_rpc, const struct peer *peer) {
    uint64_t now_us = peer_rpc_now_us(peer_rpc);
    pthread_mutex_lock(&peer_rpc->lock);
    bool is_busy = standing_holds(&peer_rpc->standing, STANDING_BUSY, peer_key(peer), now_us);
    pthread_mutex_unlock(&peer_rpc->lock);
    return is_busy;
}

uint64_t peer_rpc_round_trip_us(struct peer_rpc *peer_rpc, const struct peer *peer) {
    pthread_mutex_lock(&peer_rpc->lock);
    const struct peer_rpc_habit *habit = map_get(&peer_rpc->habits, peer_key(peer));
    uint64_t round_trip_us = habit != NULL ? habit->rtt.smoothed_us : 0;
    pthread_mutex_unlock(&peer_rpc->lock);
    return round_trip_us;
}

/* ---- asking, on the thread ---- */

/* peer_rpc.c: ask over the peer's line, which is made if need be. */
static enum err peer_rpc_start_call(struct peer_rpc *peer_rpc, const struct peer *peer,
                                    enum peer_rpc_service service, struct bytes question,
                                    uint64_t deadline_us, peer_rpc_done *done, void *context,
                                    uint32_t *ret_number) {
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

enum err peer_rpc_call_open(struct peer_rpc *peer_rpc, const struct peer *peer, enum peer_rpc_service service,
                            struct bytes question, uint32_t timeout_ms, peer_rpc_done *done, void *context) {
    bool is_there = peer_has_key(peer) && peer_rpc_line_find(peer_rpc, peer) != NULL;
    return is_there ? peer_rpc_call(peer_rpc, peer, service, question, timeout_ms, done, context)
                    : ERR_CLOSED;
}

/* ---- races: the first of several nodes that answers ---- */

/* Questions of other threads: of one peer, or of several at once until one gives a good answer. */
enum { RUNNERS_MAX = 32 };
static const uint64_t PATIENCE_US_FIRST = 500000; /* before the next is asked, of peers not measured yet */
static const uint64_t PATIENCE_US_MIN = 20000;

struct runner {
    struct peer_rpc_race *race;
    uint32_t number; /* of the question under way; 0: none */
};

/* The caller's thread waits for it; everything else runs on the thread of peer_rpc. */
struct peer_rpc_race {
    struct peer_rpc_race *next;
    struct peer_rpc *peer_rpc;
    const struct peer *peers;
    size_t peers_count;
    enum peer_rpc_service service;
    struct bytes question;
    uint64_t deadline_us;
    bool (*is_good)(void *context, size_t index, struct bytes answer);
    void *context;
    struct runner runners[RUNNERS_MAX];
    size_t asked_count;
    size_t running_count;
    uint64_t next_at_us; /* one more is asked then */
    struct buf *answer;
    size_t winner;
    enum err err; /* of the last one that failed, or ERR_OK */
    struct err_detail detail;

    pthread_mutex_t lock;
    struct bell over;
    bool is_over; /* lock */
};

static void rpc_finish(struct peer_rpc_race *race, enum err err) {
    for (struct peer_rpc_race **at = &race->peer_rpc->races; *at != NULL; at = &(*at)->next) {
        if (*at == race) {
            *at = race->next;
            break;
        }
    }
    for (size_t i = 0; i < race->asked_count; i++) {
        if (race->runners[i].number != 0) {
            peer_rpc_cancel(race->peer_rpc, race->runners[i].number);
        }
    }
    pthread_mutex_lock(&race->lock);
    race->err = err;
    race->is_over = true;
    bell_ring(&race->over);
    pthread_mutex_unlock(&race->lock); /* from here on it may be gone */
}

static void rpc_on_done(void *context, enum err err, struct bytes answer);

/* Ask one more; false: there is none left. */
static bool ask_next(struct peer_rpc_race *race) {
    while (race->asked_count < race->peers_count) {
        size_t index = race->asked_count++;
        struct runner *runner = &race->runners[index];
        const struct peer *peer = &race->peers[index];
        runner->race = race;
        enum err err = peer_rpc_start_call(race->peer_rpc, peer, race->service, race->question,
                                           race->deadline_us, rpc_on_done, runner, &runner->number);
        if (err == ERR_OK) {
            uint64_t usual_us = peer_rpc_round_trip_us(race->peer_rpc, peer);
            uint64_t patience_us = usual_us == 0 ? PATIENCE_US_FIRST : 3 * usual_us;
            patience_us = patience_us < PATIENCE_US_MIN ? PATIENCE_US_MIN : patience_us;
            race->next_at_us = peer_rpc_now_us(race->peer_rpc) + patience_us;
            race->running_count++;
            return true;
        }
        race->err = err;
    }
    return false;
}

static void rpc_on_done(void *context, enum err err, struct bytes answer) {
    struct runner *runner = context;
    struct peer_rpc_race *race = runner->race;
    size_t index = (size_t)(runner - race->runners);
    runner->number = 0;
    race->running_count--;
    bool is_good = err == ERR_OK && (race->is_good == NULL || race->is_good(race->context, index, answer));
    if (is_good) {
        buf_clear(race->answer);
        race->winner = index;
        rpc_finish(race, buf_put(race->answer, answer));
        return;
    }
    race->err = err == ERR_OK ? ERR_MISMATCH : err;
    if (!ask_next(race) && race->running_count == 0) {
        rpc_finish(race, race->err);
    }
}

static void rpc_start(void *context) {
    struct peer_rpc_race *race = context;
    race->next = race->peer_rpc->races;
    race->peer_rpc->races = race;
    bool has_first = ask_next(race);
    bool is_alone = race->peers_count == 1;
    if (has_first && !is_alone) {
        ask_next(race);
    }
    if (race->running_count == 0) {
        rpc_finish(race, race->err);
    }
}

/* Races that wait: the next nodes are asked when the first ones take too long. */
static void peer_rpc_races_tick(struct peer_rpc *peer_rpc, uint64_t now_us) {
    struct peer_rpc_race *race = peer_rpc->races;
    while (race != NULL) {
        struct peer_rpc_race *next = race->next;
        if (peer_rpc->is_ending) {
            rpc_finish(race, ERR_CANCELLED);
        } else if (now_us >= race->deadline_us) {
            rpc_finish(race, ERR_TIMEOUT);
        } else if (now_us >= race->next_at_us && !ask_next(race)) {
            race->next_at_us = UINT64_MAX;
        }
        race = next;
    }
}

enum err peer_rpc_ask_any(struct peer_rpc *peer_rpc, const struct peer *peers, size_t peers_count,
                          enum peer_rpc_service service, struct bytes question, uint32_t timeout_ms,
                          bool (*is_good)(void *context, size_t index, struct bytes answer), void *context,
                          struct buf *answer, size_t *ret_index, struct err_detail *detail) {
    if (peers_count == 0) {
        return err_set(detail, ERR_UNREACHABLE, "there is nobody to ask");
    }
    struct peer_rpc_race race = {
        .peer_rpc = peer_rpc,
        .peers = peers,
        .peers_count = peers_count < RUNNERS_MAX ? peers_count : RUNNERS_MAX,
        .service = service,
        .question = question,
        .deadline_us = peer_rpc_now_us(peer_rpc) + (uint64_t)timeout_ms * 1000,
        .is_good = is_good,
        .context = context,
        .answer = answer,
        .err = ERR_UNREACHABLE,
    };
    pthread_mutex_init(&race.lock, NULL);
    enum err err = peer_rpc_post(peer_rpc, rpc_start, &race);
    if (err == ERR_OK) {
        pthread_mutex_lock(&race.lock);
        while (!race.is_over) {
            (void)bell_await(&race.over, &race.lock, BELL_NEVER_US);
        }
        pthread_mutex_unlock(&race.lock);
        err = race.err;
    }
    pthread_mutex_destroy(&race.lock);
    if (err == ERR_OK && ret_index != NULL) {
        *ret_index = race.winner;
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "no answer of another node: %s", err_text(err));
}

enum err peer_rpc_ask(struct peer_rpc *peer_rpc, const struct peer *peer, enum peer_rpc_service service,
                      struct bytes question, uint32_t timeout_ms, struct buf *answer,
                      struct err_detail *detail) {
    return peer_rpc_ask_any(peer_rpc, peer, 1, service, question, timeout_ms, NULL, NULL, answer, NULL,
                            detail);
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

/* Before the loop sleeps: it is woken again only if something waits. */
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
        .stream = {.loop = &peer_rpc->loop.uv, .identity = peer_rpc->config.identity, .tls = peer_rpc->tls},
        .address = peer_rpc->config.address,
        .held = peer_rpc->config.held,
        .streams_max = peer_rpc->config.streams_max,
        .streams_per_address_max = STREAMS_PER_ADDRESS_MAX,
        .on_stream = peer_rpc_line_accept,
        .context = peer_rpc,
    };
    return stream_server_new(&config, &peer_rpc->server, detail);
}

/* Whether this node has TLS is a feature like others, which it says in its hello. */
static enum err peer_rpc_make_tls(struct peer_rpc *peer_rpc, struct err_detail *detail) {
    if (peer_rpc->config.dialects == NULL) {
        return ERR_OK;
    }
    const struct dialect *own = dialects_own(peer_rpc->config.dialects);
    struct tls_config config = {.identity = peer_rpc->config.identity,
                                .clock = peer_rpc->config.clock,
                                .lowest = own->lowest,
                                .highest = own->highest};
    return dialect_has(own, DIALECT_TLS) ? tls_context_new(&config, &peer_rpc->tls, detail) : ERR_OK;
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
    err = peer_rpc_make_tls(peer_rpc, detail);
    err = err == ERR_OK && !config->is_outbound ? listen_at(peer_rpc, detail) : err;
    if (err != ERR_OK) {
        peer_rpc_free(peer_rpc);
        return err;
    }
    if (!config->is_outbound) {
        peer_rpc->address =
            config->public.port > 0 ? config->public : stream_server_address(peer_rpc->server);
    }
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
    tls_context_free(peer_rpc->tls);
    map_done(&peer_rpc->habits);
    buf_done(&peer_rpc->answer);
    free(peer_rpc);
}

/* ---- any thread ---- */

void peer_rpc_stat(struct peer_rpc *peer_rpc, struct ring_view_rpc *ret_stat) {
    pthread_mutex_lock(&peer_rpc->lock);
    *ret_stat = peer_rpc->stat;
    pthread_mutex_unlock(&peer_rpc->lock);
}

struct address peer_rpc_address(const struct peer_rpc *peer_rpc) {
    return peer_rpc->address;
}
