/* Decrees between this node and the others: each second it asks one for news, and some for confirmations. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/whole_file.h"
#include "node/ring_services_state.h"

enum {
    ASK_MS = 5000,
    ACTS_ASKED = 3,   /* people wait for each other's signatures */
    CONFIRM_MAX = 16, /* nodes that are asked each second whether a decree is in force */
    WHOLE_SIZE_MAX = PEER_RPC_PIECE_SIZE_MAX / 2, /* an answer that is larger may have left some out */
    AWAY_S = 600,
    AWAY_BEATS_MAX = 60, /* then it offers all the same: others refuse what is deleted */
    HEARD_MODE = 0644,
    HEARD_PATH_SIZE_MAX = 4096 + 16,
};
static const uint64_t HEARD_EVERY_US = UINT64_C(60000000);

struct gossip {
    struct ring_services *ring_services;
    struct peer peer;
    struct buf question;
};

static void on_decrees(void *context, enum err err, struct bytes answer) {
    struct gossip *gossip = context;
    struct ring_services *ring_services = gossip->ring_services;
    struct err_detail detail = {0};
    enum err taken = err == ERR_OK ? decrees_take_answer(ring_services->decrees, answer, &detail) : err;
    if (err == ERR_OK && taken != ERR_OK) {
        transport_blame(ring_services->transport, &gossip->peer, "gives decrees that are none");
    }
    if (taken == ERR_OK && answer.size < WHOLE_SIZE_MAX) {
        ring_services->has_heard = true;
    }
    buf_done(&gossip->question);
    free(gossip);
}

static void ask_for_decrees(void *context) {
    struct gossip *gossip = context;
    decrees_put_question(gossip->ring_services->decrees, &gossip->question);
    enum err err = peer_rpc_call(gossip->ring_services->peer_rpc, &gossip->peer, PEER_RPC_DECREES,
                                 buf_bytes(&gossip->question), ASK_MS, on_decrees, gossip);
    if (err != ERR_OK) {
        on_decrees(gossip, err, bytes_of(NULL, 0));
    }
}

static void on_acts(void *context, enum err err, struct bytes answer) {
    struct gossip *gossip = context;
    struct ring_services *ring_services = gossip->ring_services;
    struct err_detail detail = {0};
    if (err == ERR_OK && acts_take_answer(ring_services->acts, answer, &detail) != ERR_OK) {
        transport_blame(ring_services->transport, &gossip->peer, "gives acts of stewards that are none");
    }
    buf_done(&gossip->question);
    free(gossip);
}

static void ask_for_acts(void *context) {
    struct gossip *gossip = context;
    acts_put_question(gossip->ring_services->acts, &gossip->question);
    enum err err = peer_rpc_call(gossip->ring_services->peer_rpc, &gossip->peer, PEER_RPC_ACTS,
                                 buf_bytes(&gossip->question), ASK_MS, on_acts, gossip);
    if (err != ERR_OK) {
        on_acts(gossip, err, bytes_of(NULL, 0));
    }
}

static void on_in_force(void *context, enum err err, struct bytes answer) {
    struct gossip *gossip = context;
    decrees_take_in_force(gossip->ring_services->decrees, &gossip->peer, buf_bytes(&gossip->question), err,
                          answer);
    buf_done(&gossip->question);
    free(gossip);
}

static void ask_for_in_force(void *context) {
    struct gossip *gossip = context;
    enum err err = peer_rpc_call(gossip->ring_services->peer_rpc, &gossip->peer, PEER_RPC_IN_FORCE,
                                 buf_bytes(&gossip->question), ASK_MS, on_in_force, gossip);
    if (err != ERR_OK) {
        on_in_force(gossip, err, bytes_of(NULL, 0));
    }
}

static struct gossip *gossip_new(struct ring_services *ring_services) {
    struct gossip *talk = calloc(1, sizeof *talk);
    if (talk != NULL) {
        talk->ring_services = ring_services;
        buf_init(&talk->question, PEER_RPC_QUESTION_SIZE_MAX);
    }
    return talk;
}

/* One node, at random, every second: news is everywhere after some log2 of their number. */
static void gossip_ask(struct ring_services *ring_services, const struct peer *peer) {
    struct gossip *talk = gossip_new(ring_services);
    if (talk != NULL) {
        talk->peer = *peer;
        if (peer_rpc_post(ring_services->peer_rpc, ask_for_decrees, talk) != ERR_OK) {
            on_decrees(talk, ERR_CANCELLED, bytes_of(NULL, 0));
        }
    }
}

/* A node, at random, if it knows of stewards. */
static void gossip_ask_for_acts(struct ring_services *ring_services, const struct peer *peer) {
    struct dialects *dialects = ring_services->config.dialects;
    bool is_self = memcmp(peer->key, transport_identity(ring_services->transport)->key, PEER_KEY_SIZE) == 0;
    if (is_self || (dialects != NULL && !dialects_has(dialects, peer, DIALECT_STEWARDS))) {
        return;
    }
    struct gossip *talk = gossip_new(ring_services);
    if (talk != NULL) {
        talk->peer = *peer;
        if (peer_rpc_post(ring_services->peer_rpc, ask_for_acts, talk) != ERR_OK) {
            on_acts(talk, ERR_CANCELLED, bytes_of(NULL, 0));
        }
    }
}

/* The nodes that have not confirmed this one's decrees, some of them each second. */
static void gossip_confirm(struct ring_services *ring_services) {
    for (int i = 0; i < CONFIRM_MAX; i++) {
        struct gossip *talk = gossip_new(ring_services);
        if (talk == NULL || !decrees_next_in_force(ring_services->decrees, &talk->peer, &talk->question)) {
            if (talk != NULL) {
                buf_done(&talk->question);
            }
            free(talk);
            return;
        }
        if (peer_rpc_post(ring_services->peer_rpc, ask_for_in_force, talk) != ERR_OK) {
            on_in_force(talk, ERR_CANCELLED, bytes_of(NULL, 0));
        }
    }
}

static void on_roll(void *context, enum err err, struct bytes answer) {
    struct gossip *gossip = context;
    if (err == ERR_OK && members_take_answer(gossip->ring_services->members, answer, NULL) != ERR_OK) {
        transport_blame(gossip->ring_services->transport, &gossip->peer, "gives memberships that are none");
    }
    buf_done(&gossip->question);
    free(gossip);
}

static void ask_for_roll(void *context) {
    struct gossip *gossip = context;
    enum err err = peer_rpc_call(gossip->ring_services->peer_rpc, &gossip->peer, PEER_RPC_ROLL,
                                 buf_bytes(&gossip->question), ASK_MS, on_roll, gossip);
    if (err != ERR_OK) {
        on_roll(gossip, err, bytes_of(NULL, 0));
    }
}

/* The memberships of keys that have signed something, and that this node has not seen. */
static void gossip_roll(struct ring_services *ring_services, const struct peer *peer) {
    struct dialects *dialects = ring_services->config.dialects;
    bool may_ask = dialects == NULL || dialects_has(dialects, peer, DIALECT_PROVENANCE);
    struct gossip *talk = may_ask ? gossip_new(ring_services) : NULL;
    if (talk == NULL) {
        return;
    }
    talk->peer = *peer;
    if (!members_next_question(ring_services->members, &talk->question)) {
        buf_done(&talk->question);
        free(talk);
    } else if (peer_rpc_post(ring_services->peer_rpc, ask_for_roll, talk) != ERR_OK) {
        on_roll(talk, ERR_CANCELLED, bytes_of(NULL, 0));
    }
}

void ring_services_beat_decrees(struct ring_services *ring_services) {
    struct peer *peers = malloc(HOLDERS_ALL_MAX * sizeof *peers);
    size_t count = peers != NULL ? holders_all(ring_services->holders, peers, HOLDERS_ALL_MAX) : 0;
    count = count < HOLDERS_ALL_MAX ? count : HOLDERS_ALL_MAX;
    const uint8_t *self = transport_identity(ring_services->transport)->key;
    size_t index = count > 0 ? randombytes_uniform((uint32_t)count) : 0;
    if (count > 0 && memcmp(peers[index].key, self, PEER_KEY_SIZE) != 0) {
        gossip_ask(ring_services, &peers[index]);
        gossip_roll(ring_services, &peers[index]);
    }
    for (size_t i = 0; i < ACTS_ASKED && count > 0; i++) {
        gossip_ask_for_acts(ring_services, &peers[randombytes_uniform((uint32_t)count)]);
    }
    decrees_set_nodes(ring_services->decrees, peers, count);
    gossip_confirm(ring_services);
    free(peers);
}

/* ---- after a long absence ---- */

/* A file whose time says when this node last knew all decrees. */
static void heard_path(const struct ring_services *ring_services, char out[HEARD_PATH_SIZE_MAX]) {
    snprintf(out, HEARD_PATH_SIZE_MAX, "%s/ring/heard", ring_services->config.directory);
}

void ring_services_look_at_absence(struct ring_services *ring_services) {
    char path[HEARD_PATH_SIZE_MAX];
    struct stat stat_;
    heard_path(ring_services, path);
    int64_t now_s = clock_wall_us(ring_services->config.clock) / 1000000;
    bool has_ever_heard = stat(path, &stat_) == 0;
    bool was_away = has_ever_heard && now_s > stat_.st_mtim.tv_sec + AWAY_S;
    const uint8_t *self = transport_identity(ring_services->transport)->key;
    pthread_mutex_lock(&ring_services->lock);
    bool is_founder = memcmp(ring_services->charter.founder, self, PEER_KEY_SIZE) == 0;
    pthread_mutex_unlock(&ring_services->lock);
    members_await_rule(ring_services->members, !has_ever_heard && !is_founder);
    ring_services->may_offer = !was_away;
    if (was_away && !ring_services->is_light) {
        ring_services_note(ring_services,
                           "this node was away for long: it offers copies when it has heard what "
                           "was deleted meanwhile");
    }
}

/* If the disk does not take it, the node just waits for decrees at its next start. */
static void heard_write(struct ring_services *ring_services) {
    char path[HEARD_PATH_SIZE_MAX];
    uint64_t now_us = clock_monotonic_us(ring_services->config.clock);
    if (ring_services->heard_at_us != 0 && now_us < ring_services->heard_at_us + HEARD_EVERY_US) {
        return;
    }
    heard_path(ring_services, path);
    if (whole_file_replace(path, BYTES(""), HEARD_MODE, NULL) == ERR_OK) {
        ring_services->heard_at_us = now_us;
    }
}

void ring_services_beat_absence(struct ring_services *ring_services, bool was_heard) {
    if (was_heard) {
        heard_write(ring_services);
        members_set_rule(ring_services->members, decrees_import_rule(ring_services->decrees));
        if (!members_knows_rule(ring_services->members)) {
            members_await_rule(ring_services->members, false);
            copies_wake(ring_services->copies);
        }
        ring_services->has_heard = false; /* until the next answer */
    }
    if (ring_services->may_offer) {
        return;
    }
    bool is_known = was_heard && deletions_are_done(ring_services->deletions);
    ring_services->has_heard = ring_services->has_heard || (was_heard && !is_known);
    if (is_known || ++ring_services->waited_beats > AWAY_BEATS_MAX) {
        ring_services->may_offer = true;
        copies_wake(ring_services->copies);
    }
}
