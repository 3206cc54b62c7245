#include "node/crowd/relayed.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/standing.h"
#include "protocol/crowd/relay_message.h"
#include "run/bell.h"
#include "run/task.h"

enum {
    ASK_MS = 2000,
    NODES_MAX = 4096,
    SEARCHES_MAX = 64, /* that wait at once */
    AVOIDED_MAX = 64,
    LATE_MS = 500, /* for the relay's word that nothing was found in time */
    SENTENCE_SIZE_MAX = 128,
};
static const uint64_t STAY_US = 2000000;
static const uint64_t AGAIN_US = 1000000;  /* when nobody could be had */
static const uint64_t AVOID_US = 30000000; /* a node that did not answer, or was full */

static const char none_yet[] = "none was asked yet";
static const char none_known[] = "no member that is known can be one";
static const char none_free[] = "no member that can be one answers and has room";

struct relayed_search {
    uint32_t number; /* 0: free */
    bool is_over;
    uint8_t outcome;
    struct crowd_driver_hit *hits; /* the waiting thread's: hits_max of them */
    size_t hits_max;
    size_t hits_count;
    struct bell changed;
};

struct relayed {
    struct relayed_config config;
    struct task task;
    struct peer *nodes;       /* its thread's */
    struct standing standing; /* its thread's: nodes that are passed over, by key */
    struct standing_entry avoided[AVOIDED_MAX];
    atomic_bool is_stopped;

    pthread_mutex_t lock; /* of all below */
    struct relayed_stat stat;
    uint32_t numbers;
    struct relayed_search searches[SEARCHES_MAX];
};

static uint64_t relayed_now_us(const struct relayed *relayed) {
    return clock_monotonic_us(relayed->config.clock);
}

/* ---- choosing; its thread ---- */

static bool ask_to_stay(struct relayed *relayed, const struct peer *peer) {
    uint8_t memory[RELAY_MESSAGE_SIZE_MAX];
    uint8_t verdict;
    struct buf answer;
    struct bytes question = relay_write_request(&(struct relay_request){.kind = RELAY_STAY}, memory);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    bool is_taken = peer_rpc_ask(relayed->config.peer_rpc, peer, PEER_RPC_RELAY, question, ASK_MS, &answer,
                                 NULL) == ERR_OK &&
                    relay_read_verdict(buf_bytes(&answer), &verdict) == ERR_OK && verdict == RELAY_TAKEN;
    buf_done(&answer);
    return is_taken;
}

/* NULL: none. */
static void set_relay(struct relayed *relayed, const struct peer *relay, const char *why_none) {
    char sentence[SENTENCE_SIZE_MAX];
    char address[ADDRESS_TEXT_SIZE_MAX];
    pthread_mutex_lock(&relayed->lock);
    struct relayed_stat *stat = &relayed->stat;
    bool had_relay = stat->has_relay;
    stat->has_relay = relay != NULL;
    stat->why_none = why_none;
    if (relay != NULL) {
        stat->relay = *relay;
        stat->since_us = clock_wall_us(relayed->config.clock);
        stat->changes_count++;
    }
    for (size_t i = 0; i < SEARCHES_MAX && relay == NULL; i++) { /* what it searched for is lost */
        bell_ring(&relayed->searches[i].changed);
    }
    address_format(&stat->relay.address, address);
    pthread_mutex_unlock(&relayed->lock);
    if (relay != NULL || had_relay) {
        snprintf(sentence, sizeof sentence,
                 relay != NULL ? "crowd: %s is the relay of this light member"
                               : "crowd: the relay %s does not answer any more",
                 address);
        relayed->config.note(relayed->config.context, sentence);
    }
}

static void avoid(struct relayed *relayed, const struct peer *peer) {
    uint64_t now_us = relayed_now_us(relayed);
    standing_note(&relayed->standing, STANDING_SILENT, peer_key(peer), now_us, now_us + AVOID_US);
}

/* Whoever can be one, at random, so that all get some; once each. */
static size_t list_candidates(struct relayed *relayed, bool with_avoided) {
    const struct relayed_config *config = &relayed->config;
    size_t known_count = config->list(config->context, relayed->nodes, NODES_MAX);
    size_t count = 0;
    known_count = known_count < NODES_MAX ? known_count : NODES_MAX;
    for (size_t i = 0; i < known_count; i++) {
        const struct peer *peer = &relayed->nodes[i];
        bool is_avoided =
            standing_holds(&relayed->standing, STANDING_SILENT, peer_key(peer), relayed_now_us(relayed));
        if (peer_is_possible(peer) && (!is_avoided || with_avoided) &&
            dialects_has(config->dialects, peer, DIALECT_RELAY)) {
            relayed->nodes[count++] = *peer;
        }
    }
    for (size_t i = count; i > 1; i--) {
        size_t other = randombytes_uniform((uint32_t)i);
        struct peer peer = relayed->nodes[i - 1];
        relayed->nodes[i - 1] = relayed->nodes[other];
        relayed->nodes[other] = peer;
    }
    return count;
}

static bool choose_relay(struct relayed *relayed) {
    size_t count = list_candidates(relayed, false);
    count = count > 0 ? count : list_candidates(relayed, true);
    for (size_t i = 0; i < count && !relayed->is_stopped; i++) {
        if (ask_to_stay(relayed, &relayed->nodes[i])) {
            set_relay(relayed, &relayed->nodes[i], NULL);
            return true;
        }
        avoid(relayed, &relayed->nodes[i]);
    }
    if (!relayed->is_stopped) {
        set_relay(relayed, NULL, count > 0 ? none_free : none_known);
    }
    return false;
}

static uint64_t relayed_run(void *context) {
    struct relayed *relayed = context;
    pthread_mutex_lock(&relayed->lock);
    bool has_relay = relayed->stat.has_relay;
    struct peer relay = relayed->stat.relay;
    pthread_mutex_unlock(&relayed->lock);
    if (has_relay && ask_to_stay(relayed, &relay)) {
        return STAY_US;
    }
    if (relayed->is_stopped) {
        return TASK_FOR_EVER_US;
    }
    if (has_relay) {
        avoid(relayed, &relay);
        set_relay(relayed, NULL, none_free);
    }
    return choose_relay(relayed) ? STAY_US : AGAIN_US;
}

/* ---- searches ---- */

/* The lock is held. */
static struct relayed_search *search_new(struct relayed *relayed, struct crowd_driver_hit *out,
                                         size_t hits_max) {
    for (size_t i = 0; i < SEARCHES_MAX; i++) {
        struct relayed_search *search = &relayed->searches[i];
        if (search->number == 0) {
            relayed->numbers += relayed->numbers == UINT32_MAX ? 2 : 1;
            search->number = relayed->numbers;
            search->is_over = false;
            search->hits = out;
            search->hits_max = hits_max;
            search->hits_count = 0;
            relayed->stat.searches_count++;
            return search;
        }
    }
    return NULL;
}

static enum err ask_to_search(struct relayed *relayed, const struct peer *relay,
                              const struct relay_request *request) {
    uint8_t memory[RELAY_MESSAGE_SIZE_MAX];
    uint8_t verdict = RELAY_STRANGE;
    struct buf answer;
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    enum err err = peer_rpc_ask(relayed->config.peer_rpc, relay, PEER_RPC_RELAY,
                                relay_write_request(request, memory), ASK_MS, &answer, NULL);
    err = err == ERR_OK ? relay_read_verdict(buf_bytes(&answer), &verdict) : err;
    buf_done(&answer);
    if (err != ERR_OK || verdict == RELAY_STRANGE) { /* it is gone, or was started anew */
        task_poke(&relayed->task);
        return err == ERR_CANCELLED ? err : ERR_UNREACHABLE;
    }
    return verdict == RELAY_TAKEN ? ERR_OK : ERR_BUSY;
}

/* The lock is held. */
static enum err await_found(struct relayed *relayed, struct relayed_search *search, const struct peer *relay,
                            uint64_t until_us) {
    bool is_in_time = true;
    bool is_there = true;
    while (!search->is_over && is_in_time && is_there && !relayed->is_stopped) {
        is_in_time = bell_await(&search->changed, &relayed->lock, until_us);
        is_there = relayed->stat.has_relay && peer_same_key(&relayed->stat.relay, relay);
    }
    static const enum err errs[RELAY_OUTCOMES_END] = {[RELAY_HITS] = ERR_OK,
                                                      [RELAY_NOTHING] = ERR_NOT_FOUND,
                                                      [RELAY_LATE] = ERR_TIMEOUT,
                                                      [RELAY_ALONE] = ERR_UNREACHABLE};
    return search->is_over       ? errs[search->outcome]
           : relayed->is_stopped ? ERR_CANCELLED
           : is_there            ? ERR_TIMEOUT
                                 : ERR_UNREACHABLE;
}

enum err relayed_find(void *context, struct bytes wish, uint32_t timeout_ms, size_t hits_wanted,
                      struct crowd_driver_hit *out, size_t *ret_count) {
    struct relayed *relayed = context;
    uint64_t until_us = clock_monotonic_us(&clock_system) + ((uint64_t)timeout_ms + LATE_MS) * 1000;
    pthread_mutex_lock(&relayed->lock);
    bool has_relay = relayed->stat.has_relay;
    struct peer relay = relayed->stat.relay;
    struct relayed_search *search = has_relay ? search_new(relayed, out, hits_wanted) : NULL;
    pthread_mutex_unlock(&relayed->lock);
    if (search == NULL) {
        return has_relay ? ERR_BUSY : ERR_UNREACHABLE;
    }
    struct relay_request request = {
        .kind = RELAY_SEARCH,
        .number = search->number,
        .timeout_ms = timeout_ms < RELAY_TIMEOUT_MS_MAX ? timeout_ms : RELAY_TIMEOUT_MS_MAX,
        .hits_wanted = (uint8_t)(hits_wanted < RELAY_HITS_MAX ? hits_wanted : RELAY_HITS_MAX),
        .wish = wish,
    };
    enum err err = ask_to_search(relayed, &relay, &request);
    pthread_mutex_lock(&relayed->lock);
    err = err == ERR_OK ? await_found(relayed, search, &relay, until_us) : err;
    *ret_count = err == ERR_OK ? search->hits_count : 0;
    search->number = 0;
    pthread_mutex_unlock(&relayed->lock);
    return err;
}

/* ---- PEER_RPC_RELAYED; the thread of peer_rpc ---- */

static void take_found(struct relayed *relayed, const struct relay_notice *notice) {
    pthread_mutex_lock(&relayed->lock);
    for (size_t i = 0; i < SEARCHES_MAX && notice->number != 0; i++) {
        struct relayed_search *search = &relayed->searches[i];
        if (search->number != notice->number || search->is_over) {
            continue;
        }
        for (size_t j = 0; j < notice->hits_count && search->hits_count < search->hits_max; j++) {
            const struct relay_hit *from = &notice->hits[j];
            struct crowd_driver_hit *hit = &search->hits[search->hits_count];
            *hit = (struct crowd_driver_hit){
                .holder = from->holder, .hops_count = from->hops_count, .contents_size = from->finding.size};
            memcpy(hit->contents, from->finding.data, from->finding.size);
            search->hits_count += crowd_driver_read_hit(hit);
        }
        search->outcome = notice->outcome;
        search->is_over = true;
        bell_ring(&search->changed);
    }
    pthread_mutex_unlock(&relayed->lock);
}

static enum err relayed_answer(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    struct relayed *relayed = context;
    struct relay_notice notice;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    if (!relayed_is_relay(relayed, from)) {
        return err_set(detail, ERR_PERMISSION, "another node is the relay of this one");
    }
    enum err err = relay_read_notice(question, &notice, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (notice.kind == RELAY_FOUND) {
        take_found(relayed, &notice);
        return ERR_OK;
    }
    pthread_mutex_lock(&relayed->lock);
    relayed->stat.wishes_count++;
    pthread_mutex_unlock(&relayed->lock);
    return buf_put(answer, bytes_of(memory, offers_have(relayed->config.offers, notice.wish, memory)));
}

/* ---- life ---- */

enum err relayed_new(const struct relayed_config *config, struct relayed **ret_relayed) {
    struct relayed *relayed = calloc(1, sizeof *relayed);
    if (relayed == NULL) {
        return ERR_MEMORY;
    }
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    relayed->config = *config;
    relayed->config.clock = config->clock != NULL ? config->clock : &clock_system;
    relayed->stat.why_none = none_yet;
    relayed->nodes = calloc(NODES_MAX, sizeof *relayed->nodes);
    standing_init(&relayed->standing, relayed->avoided, AVOIDED_MAX, seed);
    pthread_mutex_init(&relayed->lock, NULL);
    if (relayed->nodes == NULL) {
        relayed_free(relayed);
        return ERR_MEMORY;
    }
    peer_rpc_serve(config->peer_rpc, PEER_RPC_RELAYED, relayed_answer, relayed);
    *ret_relayed = relayed;
    return ERR_OK;
}

enum err relayed_start(struct relayed *relayed, struct err_detail *detail) {
    enum err err = task_start(&relayed->task, "relay-chooser", PRIORITY_USUAL, relayed_run, relayed);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "no thread that chooses a relay");
}

void relayed_cancel(struct relayed *relayed) {
    if (relayed == NULL) {
        return;
    }
    pthread_mutex_lock(&relayed->lock);
    relayed->is_stopped = true;
    for (size_t i = 0; i < SEARCHES_MAX; i++) {
        bell_ring(&relayed->searches[i].changed);
    }
    pthread_mutex_unlock(&relayed->lock);
}

void relayed_stop(struct relayed *relayed) {
    if (relayed != NULL) {
        relayed_cancel(relayed);
        task_stop(&relayed->task);
    }
}

void relayed_free(struct relayed *relayed) {
    if (relayed != NULL) {
        relayed_stop(relayed);
        pthread_mutex_destroy(&relayed->lock);
        free(relayed->nodes);
        free(relayed);
    }
}

/* ---- any thread ---- */

bool relayed_is_relay(struct relayed *relayed, const struct peer *peer) {
    pthread_mutex_lock(&relayed->lock);
    bool is_relay = relayed->stat.has_relay && peer_same_key(&relayed->stat.relay, peer);
    pthread_mutex_unlock(&relayed->lock);
    return is_relay;
}

void relayed_stat(struct relayed *relayed, struct relayed_stat *ret_stat) {
    pthread_mutex_lock(&relayed->lock);
    *ret_stat = relayed->stat;
    pthread_mutex_unlock(&relayed->lock);
}
