/* Decrees between this node and the others: each second it asks one for news, and some for confirmations. */
#include <sodium.h>
#include <stdlib.h>

#include "node/ring_services_state.h"

enum {
    ASK_MS = 5000,
    CONFIRM_MAX = 16, /* nodes that are asked each second whether a decree is in force */
};

struct gossip {
    struct ring_services *ring_services;
    struct peer peer;
    struct buf question;
};

static void on_decrees(void *context, enum err err, struct bytes answer) {
    struct gossip *gossip = context;
    struct ring_services *ring_services = gossip->ring_services;
    struct err_detail detail = {0};
    if (err == ERR_OK && decrees_take_answer(ring_services->decrees, answer, &detail) != ERR_OK) {
        transport_blame(ring_services->transport, &gossip->peer, "gives decrees that are none");
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

void ring_services_beat_decrees(struct ring_services *ring_services) {
    struct peer *peers = malloc(HOLDERS_ALL_MAX * sizeof *peers);
    size_t count = peers != NULL ? holders_all(ring_services->holders, peers, HOLDERS_ALL_MAX) : 0;
    count = count < HOLDERS_ALL_MAX ? count : HOLDERS_ALL_MAX;
    const uint8_t *self = transport_identity(ring_services->transport)->key;
    size_t index = count > 0 ? randombytes_uniform((uint32_t)count) : 0;
    if (count > 0 && memcmp(peers[index].key, self, PEER_KEY_SIZE) != 0) {
        gossip_ask(ring_services, &peers[index]);
    }
    decrees_set_nodes(ring_services->decrees, peers, count);
    gossip_confirm(ring_services);
    free(peers);
}
