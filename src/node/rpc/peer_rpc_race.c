/* Questions of other threads: of one peer, or of several at once until one gives a good answer. */
#include <stdlib.h>

#include "node/rpc/peer_rpc_state.h"
#include "run/bell.h"

enum { RUNNERS_MAX = 32 };
static const uint64_t PATIENCE_US_FIRST = 500000; /* before the next is asked, of peers not measured yet */
static const uint64_t PATIENCE_US_MIN = 20000;

struct runner {
    struct peer_rpc_race *race;
    uint32_t number; /* of the question under way; 0: none */
};

/* The caller's thread waits for it; everything else is the bulk thread's. */
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

static void finish(struct peer_rpc_race *race, enum err err) {
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

static void on_done(void *context, enum err err, struct bytes answer);

/* Ask one more; false: there is none left. */
static bool ask_next(struct peer_rpc_race *race) {
    while (race->asked_count < race->peers_count) {
        size_t index = race->asked_count++;
        struct runner *runner = &race->runners[index];
        const struct peer *peer = &race->peers[index];
        runner->race = race;
        enum err err = peer_rpc_start_call(race->peer_rpc, peer, race->service, race->question,
                                           race->deadline_us, on_done, runner, &runner->number);
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

static void on_done(void *context, enum err err, struct bytes answer) {
    struct runner *runner = context;
    struct peer_rpc_race *race = runner->race;
    size_t index = (size_t)(runner - race->runners);
    runner->number = 0;
    race->running_count--;
    bool is_good = err == ERR_OK && (race->is_good == NULL || race->is_good(race->context, index, answer));
    if (is_good) {
        buf_clear(race->answer);
        race->winner = index;
        finish(race, buf_put(race->answer, answer));
        return;
    }
    race->err = err == ERR_OK ? ERR_MISMATCH : err;
    if (!ask_next(race) && race->running_count == 0) {
        finish(race, race->err);
    }
}

static void start(void *context) {
    struct peer_rpc_race *race = context;
    race->next = race->peer_rpc->races;
    race->peer_rpc->races = race;
    bool has_first = ask_next(race);
    bool is_alone = race->peers_count == 1;
    if (has_first && !is_alone) {
        ask_next(race);
    }
    if (race->running_count == 0) {
        finish(race, race->err);
    }
}

void peer_rpc_races_tick(struct peer_rpc *peer_rpc, uint64_t now_us) {
    struct peer_rpc_race *race = peer_rpc->races;
    while (race != NULL) {
        struct peer_rpc_race *next = race->next;
        if (peer_rpc->is_ending) {
            finish(race, ERR_CANCELLED);
        } else if (now_us >= race->deadline_us) {
            finish(race, ERR_TIMEOUT);
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
    enum err err = peer_rpc_post(peer_rpc, start, &race);
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
