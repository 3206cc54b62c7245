#include "node/crowd/relay.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/bucket.h"
#include "protocol/crowd/relay_message.h"
#include "run/bell.h"
#include "run/pool.h"

enum {
    THREADS_MAX = 4,
    JOBS_MAX = 64,
    ROUND_MS = 500, /* light members are asked for so long */
    TAKE_MS = 5000, /* until what one has is here */
    TELL_MS = 5000, /* until what was found has been heard */
    TAKEN_SIZE_MAX = 16 << 20,
};
static const uint64_t LOOK_FIRST = UINT64_C(1) << 63; /* numbers of the crowd count from 0 on */
static const uint64_t LOOK_US = 1000000;
static const uint64_t TURN_US = 100000; /* between two looks whether the node is being stopped */
static const uint64_t MUTED_US = 60000000;
static const uint64_t GONE_US = 8000000; /* four times nothing was heard of it */
static const struct bucket_rate SEARCHES = {.per_second = 20, .burst = 40}; /* of one light member */
static const struct bucket_rate WISHES = {.per_second = 32, .burst = 64};   /* to all of them */

_Static_assert((int)RELAY_HITS_MAX == (int)CROWD_DRIVER_HITS_MAX, "one bound");

struct relay_member {
    struct peer peer; /* the other end of its stream */
    uint64_t seen_at_us;
    uint64_t muted_until_us; /* it did not give what it had said it has */
    struct bucket searches;
};

struct relay {
    struct relay_config config;
    struct crowd_reader *reader;
    struct pool pool;
    struct crowd_reader_session *sessions[THREADS_MAX]; /* each of its seat */
    atomic_bool is_stopping;

    pthread_mutex_t lock; /* of all below */
    struct relay_member *members;
    size_t members_count;
    struct bucket wishes;
    struct relay_stat stat;
    bool is_looking[THREADS_MAX]; /* of each seat: config.look has not been answered */
    struct bell looked;
};

/* Who wishes. */
struct relay_order {
    bool is_search; /* a light member, which waits for hits; else the crowd */
    struct peer asker;
    uint64_t number; /* the asker's */
    uint32_t timeout_ms;
    uint8_t hits_wanted;
};

/* A wish that is worked on. */
struct relay_errand {
    struct relay *relay;
    struct pool_job job;
    struct relay_order order;
    size_t wish_size;
    uint8_t wish[CROWD_WISH_SIZE_MAX];
    struct crowd_driver_hit hits[CROWD_DRIVER_HITS_MAX];
    size_t hits_count;
};

static uint64_t relay_now_us(const struct relay *relay) {
    return clock_monotonic_us(relay->config.clock);
}

static struct bytes errand_wish(const struct relay_errand *errand) {
    return bytes_of(errand->wish, errand->wish_size);
}

/* ---- light members; the lock is held ---- */

/* Those that are gone make room. */
static void drop_gone(struct relay *relay) {
    uint64_t now_us = relay_now_us(relay);
    for (size_t i = 0; i < relay->members_count; i++) {
        if (now_us - relay->members[i].seen_at_us > GONE_US) {
            relay->members[i--] = relay->members[--relay->members_count];
        }
    }
}

static struct relay_member *relay_find(struct relay *relay, const struct peer *peer) {
    for (size_t i = 0; i < relay->members_count; i++) {
        if (peer_same_key(&relay->members[i].peer, peer)) {
            return &relay->members[i];
        }
    }
    return NULL;
}

static enum relay_verdict relay_stay(struct relay *relay, const struct peer *from) {
    drop_gone(relay);
    struct relay_member *member = relay_find(relay, from);
    if (member == NULL && relay->members_count >= relay->config.members_max) {
        relay->stat.refused_count++;
        return RELAY_FULL;
    }
    if (member == NULL) {
        member = &relay->members[relay->members_count++];
        *member = (struct relay_member){0};
    }
    member->peer = *from;
    member->seen_at_us = relay_now_us(relay);
    return RELAY_TAKEN;
}

/* ---- what light members have ---- */

/* All of them are asked at once. The caller and each open question hold it. */
struct relay_round {
    struct peer_rpc *peer_rpc;
    struct peer *peers;
    size_t peers_count;
    size_t message_size;
    uint8_t message[RELAY_WISH_SIZE_MAX];
    pthread_mutex_t lock;
    struct bell changed;
    size_t holders_count; /* lock, as all below */
    size_t open_count;
    struct crowd_driver_hit hits[CROWD_DRIVER_HITS_MAX];
    size_t hits_count;
};

struct relay_question {
    struct relay_round *round;
    struct peer peer;
};

static void round_release(struct relay_round *round) {
    pthread_mutex_lock(&round->lock);
    bool is_last = --round->holders_count == 0;
    pthread_mutex_unlock(&round->lock);
    if (is_last) {
        pthread_mutex_destroy(&round->lock);
        free(round->peers);
        free(round);
    }
}

static void round_hear(struct relay_round *round, const struct peer *peer, struct bytes finding) {
    bool is_sound = finding.size > 0 && finding.size <= CROWD_FINDING_SIZE_MAX &&
                    round->hits_count < CROWD_DRIVER_HITS_MAX;
    struct crowd_driver_hit *hit = &round->hits[round->hits_count];
    if (is_sound) {
        *hit = (struct crowd_driver_hit){.holder = *peer, .hops_count = 1, .contents_size = finding.size};
        memcpy(hit->contents, finding.data, finding.size);
        round->hits_count += crowd_driver_read_hit(hit);
    }
}

/* The thread of peer_rpc, as below. */
static void round_answered(void *context, enum err err, struct bytes answer) {
    struct relay_question *question = context;
    struct relay_round *round = question->round;
    pthread_mutex_lock(&round->lock);
    if (err == ERR_OK) {
        round_hear(round, &question->peer, answer);
    }
    round->open_count--;
    bell_ring(&round->changed);
    pthread_mutex_unlock(&round->lock);
    free(question);
    round_release(round);
}

static void round_ask(struct relay_round *round, const struct peer *peer) {
    struct relay_question *question = malloc(sizeof *question);
    if (question == NULL) {
        return;
    }
    *question = (struct relay_question){.round = round, .peer = *peer};
    pthread_mutex_lock(&round->lock);
    round->open_count++;
    round->holders_count++;
    pthread_mutex_unlock(&round->lock);
    enum err err =
        peer_rpc_call_open(round->peer_rpc, peer, PEER_RPC_RELAYED,
                           bytes_of(round->message, round->message_size), ROUND_MS, round_answered, question);
    if (err != ERR_OK) {
        round_answered(question, err, bytes_of(NULL, 0));
    }
}

static void round_begin(void *context) {
    struct relay_round *round = context;
    for (size_t i = 0; i < round->peers_count; i++) {
        round_ask(round, &round->peers[i]);
    }
    pthread_mutex_lock(&round->lock);
    round->open_count--;
    bell_ring(&round->changed);
    pthread_mutex_unlock(&round->lock);
    round_release(round);
}

/* Which are to be asked: all but the asker, if that may be now. */
static struct relay_round *round_new(struct relay_errand *errand) {
    struct relay *relay = errand->relay;
    struct relay_round *round = calloc(1, sizeof *round);
    struct peer *peers = calloc(relay->config.members_max, sizeof *peers);
    if (round == NULL || peers == NULL) {
        free(round);
        free(peers);
        return NULL;
    }
    pthread_mutex_init(&round->lock, NULL);
    struct relay_notice notice = {.kind = RELAY_WISH, .wish = errand_wish(errand)};
    round->peer_rpc = relay->config.peer_rpc;
    round->peers = peers;
    round->holders_count = 1;
    round->message_size = relay_write_notice(&notice, round->message).size;
    pthread_mutex_lock(&relay->lock);
    drop_gone(relay);
    for (size_t i = 0; i < relay->members_count; i++) {
        const struct relay_member *member = &relay->members[i];
        bool is_asker = errand->order.is_search && peer_same_key(&member->peer, &errand->order.asker);
        if (!is_asker && relay_now_us(relay) >= member->muted_until_us) {
            peers[round->peers_count++] = member->peer;
        }
    }
    bool may_ask = round->peers_count > 0 && bucket_take(&relay->wishes, WISHES, relay_now_us(relay));
    relay->stat.wishes_count += may_ask;
    relay->stat.refused_count += round->peers_count > 0 && !may_ask;
    pthread_mutex_unlock(&relay->lock);
    round->peers_count = may_ask ? round->peers_count : 0;
    return round;
}

/* For a turn. False: the time is over, or the node is being stopped. */
static bool relay_await(struct relay *relay, struct bell *bell, pthread_mutex_t *lock, uint64_t until_us) {
    uint64_t turn_us = clock_monotonic_us(&clock_system) + TURN_US;
    bool is_last = turn_us >= until_us;
    bool is_rung = bell_await(bell, lock, is_last ? until_us : turn_us);
    return (is_rung || !is_last) && !relay->is_stopping;
}

/* Until one has it or all have answered. Into errand->hits. */
static void ask_members(struct relay_errand *errand) {
    struct relay *relay = errand->relay;
    struct relay_round *round = round_new(errand);
    errand->hits_count = 0;
    if (round == NULL || round->peers_count == 0) {
        if (round != NULL) {
            round_release(round);
        }
        return;
    }
    round->holders_count++; /* round_begin() */
    round->open_count++;
    if (peer_rpc_post(relay->config.peer_rpc, round_begin, round) != ERR_OK) {
        round->holders_count--;
        round->open_count--;
    }
    uint64_t until_us = clock_monotonic_us(&clock_system) + UINT64_C(2) * ROUND_MS * 1000;
    bool is_in_time = true;
    pthread_mutex_lock(&round->lock);
    while (round->open_count > 0 && round->hits_count == 0 && is_in_time) {
        is_in_time = relay_await(relay, &round->changed, &round->lock, until_us);
    }
    errand->hits_count = round->hits_count;
    for (size_t i = 0; i < round->hits_count; i++) {
        errand->hits[i] = round->hits[i];
        (void)crowd_driver_read_hit(&errand->hits[i]); /* what it borrows is its own */
    }
    pthread_mutex_unlock(&round->lock);
    round_release(round);
}

/* What one of them has becomes our offer. True: it is. */
static bool take_from_members(struct relay_errand *errand, size_t seat) {
    struct relay *relay = errand->relay;
    struct wish wish;
    struct obtained obtained;
    ask_members(errand);
    if (errand->hits_count == 0 || !wish_read(errand_wish(errand), &wish)) {
        return false;
    }
    if (relay->sessions[seat] == NULL) {
        relay->sessions[seat] = crowd_reader_session_new(relay->reader);
    }
    bool is_taken = relay->sessions[seat] != NULL &&
                    crowd_reader_take(relay->sessions[seat], &wish, errand->hits, errand->hits_count, TAKE_MS,
                                      &obtained, NULL) == ERR_OK;
    pthread_mutex_lock(&relay->lock);
    relay->stat.taken_count += is_taken && !obtained.is_own;
    for (size_t i = 0; i < errand->hits_count && !is_taken; i++) {
        struct relay_member *member = relay_find(relay, &errand->hits[i].holder);
        if (member != NULL) { /* false, silent or slow: it shall not keep our threads */
            member->muted_until_us = relay_now_us(relay) + MUTED_US;
        }
    }
    pthread_mutex_unlock(&relay->lock);
    return is_taken;
}

/* ---- a search of a light member ---- */

struct relay_letter {
    struct relay *relay;
    struct peer to;
    size_t size;
    uint8_t bytes[RELAY_MESSAGE_SIZE_MAX];
};

static void letter_heard(void *context, enum err err, struct bytes answer) {
    (void)context; /* whoever does not hear it gives up by itself */
    (void)err;
    (void)answer;
}

static void letter_send(void *context) {
    struct relay_letter *letter = context;
    enum err err = peer_rpc_call_open(letter->relay->config.peer_rpc, &letter->to, PEER_RPC_RELAYED,
                                      bytes_of(letter->bytes, letter->size), TELL_MS, letter_heard, NULL);
    (void)err; /* likewise */
    free(letter);
}

static void tell_found(const struct relay_errand *errand, enum relay_outcome outcome) {
    struct relay_letter *letter = malloc(sizeof *letter);
    struct relay_notice notice = {
        .kind = RELAY_FOUND, .number = (uint32_t)errand->order.number, .outcome = (uint8_t)outcome};
    if (letter == NULL) {
        return;
    }
    for (size_t i = 0; i < errand->hits_count; i++) {
        const struct crowd_driver_hit *hit = &errand->hits[i];
        if (peer_is_possible(&hit->holder)) { /* else the asker could not turn to it either */
            notice.hits[notice.hits_count++] =
                (struct relay_hit){.holder = hit->holder,
                                   .hops_count = hit->hops_count,
                                   .finding = bytes_of(hit->contents, hit->contents_size)};
        }
    }
    if (outcome == RELAY_HITS && notice.hits_count == 0) {
        notice.outcome = RELAY_NOTHING;
    }
    letter->relay = errand->relay;
    letter->to = errand->order.asker;
    letter->size = relay_write_notice(&notice, letter->bytes).size;
    if (peer_rpc_post(errand->relay->config.peer_rpc, letter_send, letter) != ERR_OK) {
        free(letter);
    }
}

/* Our own offer, as a hit. */
static bool hit_own(struct relay_errand *errand) {
    struct relay *relay = errand->relay;
    struct crowd_driver_hit *hit = &errand->hits[0];
    *hit = (struct crowd_driver_hit){.holder = relay->config.self};
    hit->contents_size = offers_have(relay->config.offers, errand_wish(errand), hit->contents);
    errand->hits_count = hit->contents_size > 0;
    return errand->hits_count > 0;
}

bool relay_looked(struct relay *relay, uint64_t number) {
    if (relay == NULL || number < LOOK_FIRST || number - LOOK_FIRST >= THREADS_MAX) {
        return false;
    }
    pthread_mutex_lock(&relay->lock);
    relay->is_looking[number - LOOK_FIRST] = false;
    bell_ring(&relay->looked);
    pthread_mutex_unlock(&relay->lock);
    return true;
}

/* What is stored here becomes an offer, if this node offers that. */
static bool hit_stored(struct relay_errand *errand, size_t seat) {
    struct relay *relay = errand->relay;
    const struct relay_config *config = &relay->config;
    uint64_t until_us = clock_monotonic_us(&clock_system) + LOOK_US;
    bool is_in_time = true;
    pthread_mutex_lock(&relay->lock);
    relay->is_looking[seat] = true;
    pthread_mutex_unlock(&relay->lock);
    if (config->look == NULL || !config->look(config->context, LOOK_FIRST + seat, errand_wish(errand))) {
        return false;
    }
    pthread_mutex_lock(&relay->lock);
    while (relay->is_looking[seat] && is_in_time) {
        is_in_time = relay_await(relay, &relay->looked, &relay->lock, until_us);
    }
    pthread_mutex_unlock(&relay->lock);
    return hit_own(errand);
}

static enum relay_outcome search_crowd(struct relay_errand *errand) {
    struct wish wish;
    errand->hits_count = 0;
    if (!wish_read(errand_wish(errand), &wish)) {
        return RELAY_NOTHING;
    }
    enum err err = crowd_driver_find(errand->relay->config.crowd_driver, &wish, errand->order.timeout_ms,
                                     errand->order.hits_wanted, errand->hits, &errand->hits_count);
    errand->hits_count = err == ERR_OK ? errand->hits_count : 0;
    return errand->hits_count > 0   ? RELAY_HITS
           : err == ERR_TIMEOUT     ? RELAY_LATE
           : err == ERR_UNREACHABLE ? RELAY_ALONE
                                    : RELAY_NOTHING;
}

static void run_search(struct relay_errand *errand, size_t seat) {
    bool is_here =
        hit_own(errand) || hit_stored(errand, seat) || (take_from_members(errand, seat) && hit_own(errand));
    tell_found(errand, is_here ? RELAY_HITS : search_crowd(errand));
}

/* ---- a wish of the crowd ---- */

static void run_look(struct relay_errand *errand, size_t seat) {
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    const struct relay_config *config = &errand->relay->config;
    size_t size =
        take_from_members(errand, seat) ? offers_have(config->offers, errand_wish(errand), memory) : 0;
    crowd_driver_looked(config->crowd_driver, errand->order.number, bytes_of(memory, size));
}

static void relay_run(void *context, size_t seat) {
    struct relay_errand *errand = context;
    if (errand->order.is_search) {
        run_search(errand, seat);
    } else {
        run_look(errand, seat);
    }
    free(errand);
}

/* False: too much to do. */
static bool relay_start(struct relay *relay, const struct relay_order *order, struct bytes wish) {
    struct relay_errand *errand = malloc(sizeof *errand);
    if (errand == NULL || wish.size > CROWD_WISH_SIZE_MAX) {
        free(errand);
        return false;
    }
    errand->relay = relay;
    errand->order = *order;
    errand->hits_count = 0;
    errand->wish_size = wish.size;
    memcpy(errand->wish, wish.data, wish.size);
    errand->job = (struct pool_job){.run = relay_run, .context = errand};
    bool is_taken = pool_try(&relay->pool, &errand->job);
    if (!is_taken) {
        free(errand);
    }
    return is_taken;
}

bool relay_look(struct relay *relay, uint64_t number, struct bytes wish) {
    pthread_mutex_lock(&relay->lock);
    bool has_members = relay->members_count > 0;
    pthread_mutex_unlock(&relay->lock);
    return has_members && relay_start(relay, &(struct relay_order){.number = number}, wish);
}

/* ---- PEER_RPC_RELAY; the thread of peer_rpc ---- */

static enum relay_verdict relay_search(struct relay *relay, const struct peer *from,
                                       const struct relay_request *request) {
    struct relay_order order = {.is_search = true,
                                .asker = *from,
                                .number = request->number,
                                .timeout_ms = request->timeout_ms,
                                .hits_wanted = request->hits_wanted};
    pthread_mutex_lock(&relay->lock);
    struct relay_member *member = relay_find(relay, from);
    bool may_search = member != NULL && bucket_take(&member->searches, SEARCHES, relay_now_us(relay));
    pthread_mutex_unlock(&relay->lock);
    bool is_begun = may_search && relay_start(relay, &order, request->wish);
    pthread_mutex_lock(&relay->lock);
    relay->stat.searches_count += is_begun;
    relay->stat.refused_count += member != NULL && !is_begun;
    pthread_mutex_unlock(&relay->lock);
    return member == NULL ? RELAY_STRANGE : is_begun ? RELAY_TAKEN : RELAY_FULL;
}

static enum err relay_answer(void *context, const struct peer *from, struct bytes question,
                             struct buf *answer, struct err_detail *detail) {
    struct relay *relay = context;
    struct relay_request request;
    enum relay_verdict verdict;
    enum err err = relay_read_request(question, &request, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (request.kind == RELAY_STAY) {
        pthread_mutex_lock(&relay->lock);
        verdict = relay_stay(relay, from);
        pthread_mutex_unlock(&relay->lock);
    } else {
        verdict = relay_search(relay, from, &request);
    }
    return buf_put_byte(answer, (uint8_t)verdict);
}

/* ---- life ---- */

enum err relay_new(const struct relay_config *config, struct relay **ret_relay) {
    struct crowd_reader_config reader = {
        .crowd_driver = config->crowd_driver,
        .offers = config->offers,
        .captures = config->captures,
        .peer_rpc = config->peer_rpc,
        .size_max = TAKEN_SIZE_MAX,
        .trusts = config->trusts,
        .blame = config->blame,
        .context = config->context,
    };
    struct pool_config pool = {
        .name = "crowd-relay", .threads_max = THREADS_MAX, .jobs_max = JOBS_MAX, .cancelled = free};
    struct relay *relay = calloc(1, sizeof *relay);
    if (relay == NULL) {
        return ERR_MEMORY;
    }
    relay->config = *config;
    relay->config.clock = config->clock != NULL ? config->clock : &clock_system;
    pthread_mutex_init(&relay->lock, NULL);
    relay->members = calloc(config->members_max, sizeof *relay->members);
    relay->reader = crowd_reader_new(&reader);
    bool is_made = relay->members != NULL && relay->reader != NULL;
    enum err err = is_made ? pool_start(&relay->pool, &pool) : ERR_MEMORY;
    if (err != ERR_OK) {
        relay_free(relay);
        return err;
    }
    peer_rpc_serve(config->peer_rpc, PEER_RPC_RELAY, relay_answer, relay);
    *ret_relay = relay;
    return ERR_OK;
}

void relay_stop(struct relay *relay) {
    if (relay != NULL) {
        relay->is_stopping = true;
        pool_stop(&relay->pool);
    }
}

void relay_free(struct relay *relay) {
    if (relay == NULL) {
        return;
    }
    relay_stop(relay);
    for (size_t i = 0; i < THREADS_MAX; i++) {
        crowd_reader_session_free(relay->sessions[i]);
    }
    if (relay->reader != NULL) {
        crowd_reader_free(relay->reader);
    }
    pthread_mutex_destroy(&relay->lock);
    free(relay->members);
    free(relay);
}

void relay_stat(struct relay *relay, struct relay_stat *ret_stat) {
    pthread_mutex_lock(&relay->lock);
    drop_gone(relay);
    *ret_stat = relay->stat;
    ret_stat->members_count = relay->members_count;
    ret_stat->members_max = relay->config.members_max;
    pthread_mutex_unlock(&relay->lock);
}
