/* What the ring gives to the others of this node: who is a member, errands on its loop, blame. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/transport/transport_state.h"

static const uint64_t LOOK_UP_US = 1000000;

void transport_share_init(struct transport *transport) {
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    map_init(&transport->admitted, PEER_KEY_SIZE, 1, TRANSPORT_ADMITTED_MAX, seed);
}

void transport_share_done(struct transport *transport) {
    map_done(&transport->admitted);
}

/* The lock is held. */
static void put_key(struct transport *transport, const uint8_t key[PEER_KEY_SIZE]) {
    if (map_reserve(&transport->admitted, transport->admitted.count + 1) != ERR_OK) {
        map_clear(&transport->admitted); /* those who are still here will be seen again */
    }
    map_put(&transport->admitted, bytes_of(key, PEER_KEY_SIZE));
}

void transport_share_charter(struct transport *transport) {
    const struct charter *charter = &transport->charter;
    pthread_mutex_lock(&transport->lock);
    map_clear(&transport->admitted);
    transport->admits_all = charter->is_open;
    for (uint32_t i = 0; charter->is_open && i < charter->removed_count; i++) {
        put_key(transport, charter->removed[i]);
    }
    pthread_mutex_unlock(&transport->lock);
    for (size_t i = 0; i < transport->tenants_count; i++) {
        const struct transport_tenant *tenant = &transport->tenants[i];
        if (tenant->charter != NULL) {
            tenant->charter(tenant->context, charter, transport->id);
        }
    }
}

void transport_share_admitted(struct transport *transport, const struct peer *peer) {
    pthread_mutex_lock(&transport->lock);
    if (!transport->admits_all && map_get(&transport->admitted, bytes_of(peer->key, PEER_KEY_SIZE)) == NULL) {
        put_key(transport, peer->key);
    }
    pthread_mutex_unlock(&transport->lock);
}

const struct identity *transport_identity(const struct transport *transport) {
    return &transport->identity;
}

bool transport_admits(struct transport *transport, const struct peer *peer) {
    pthread_mutex_lock(&transport->lock);
    bool is_named = map_get(&transport->admitted, bytes_of(peer->key, PEER_KEY_SIZE)) != NULL;
    bool is_admitted = transport->admits_all ? !is_named : is_named;
    pthread_mutex_unlock(&transport->lock);
    return is_admitted;
}

/* ---- blame ---- */

/*
 * Where the owner of a key answers as a member. A stream that he opened has another port; and what only
 * others say of him could be another's address. Some thousand places are looked at: who breaks the rules all
 * the time is looked up once a second.
 */
static const struct peer *find_member(struct transport *transport, const uint8_t key[PEER_KEY_SIZE]) {
    uint64_t now_us = transport_now_us(transport);
    struct peer *member = &transport->blamed;
    if (now_us < transport->blamed_until_us && memcmp(member->key, key, PEER_KEY_SIZE) == 0) {
        return member;
    }
    *member = (struct peer){0};
    memcpy(member->key, key, PEER_KEY_SIZE);
    uint32_t count = transport->ring != NULL ? ring_known_count(transport->ring) : 0;
    for (uint32_t i = 0; i < count && member->address.port == 0; i++) {
        struct ring_known known = ring_known_at(transport->ring, i);
        if (known.heard_at_us > 0 && memcmp(known.vnode.peer.key, key, PEER_KEY_SIZE) == 0) {
            *member = known.vnode.peer;
        }
    }
    transport->blamed_until_us = now_us + LOOK_UP_US;
    return member;
}

static void accuse(struct transport *transport, const struct peer *peer, const char *what) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    char sentence[COMPLAINT_SIZE_MAX];
    const struct peer *member = find_member(transport, peer->key);
    if (member->address.port > 0) {
        snprintf(sentence, sizeof sentence, "%s is blamed: it %.150s",
                 address_format(&member->address, address), what);
    } else {
        snprintf(sentence, sizeof sentence, "%s, the node %s, is blamed: it %.150s",
                 address_format(&peer->address, address), identity_key_format(peer->key, key), what);
    }
    transport_on_complaint(transport, &peer->address, sentence);
}

/* ---- errands ---- */

/* About a peer. */
struct errand {
    struct transport *transport;
    struct peer peer;
    char sentence[COMPLAINT_SIZE_MAX]; /* blame him for it; empty: greet him */
};

static void transport_run_errand(void *context) {
    struct errand *errand = context;
    struct transport *transport = errand->transport;
    if (errand->sentence[0] != '\0') {
        accuse(transport, &errand->peer, errand->sentence);
    } else if (transport->has_charter) {
        gate_greet(transport->gate, &errand->peer);
    }
    free(errand);
}

bool transport_post(struct transport *transport, void (*run)(void *context), void *context) {
    pthread_mutex_lock(&transport->lock);
    bool is_taken = transport->is_running && loop_call(&transport->loop, run, context) == ERR_OK;
    pthread_mutex_unlock(&transport->lock);
    return is_taken;
}

void transport_blame(struct transport *transport, const struct peer *peer, const char *sentence) {
    struct errand *errand = malloc(sizeof *errand);
    if (errand != NULL) {
        *errand = (struct errand){.transport = transport, .peer = *peer};
        snprintf(errand->sentence, sizeof errand->sentence, "%s", sentence);
    }
    if (errand != NULL && !transport_post(transport, transport_run_errand, errand)) {
        free(errand); /* where there are too many, the first ones are enough */
    }
}

void transport_greet(struct transport *transport, const struct peer *peer) {
    transport_blame(transport, peer, "");
}

/* ---- tenants ---- */

void transport_add(struct transport *transport, const struct transport_tenant *tenant) {
    ASSERT(!transport->has_loop && transport->tenants_count < TRANSPORT_TENANTS_MAX);
    ASSERT(tenant->kind == 0 || tenant->receive != NULL);
    transport->tenants[transport->tenants_count++] = *tenant;
}

static size_t find_tenant(const struct transport *transport, unsigned kind) {
    size_t index = 0;
    while (transport->tenants[index].kind != kind) {
        index++;
        ASSERT(index < transport->tenants_count);
    }
    return index;
}

void transport_send(struct transport *transport, const struct peer *to, unsigned kind, struct bytes message) {
    if (transport->tenants[find_tenant(transport, kind)].is_for_members) {
        gate_introduce(transport->gate, to); /* others need not know our ring */
    }
    (void)datagram_send(transport->datagram, to, (enum datagram_kind)kind, message); /* may be lost, as any */
}

void transport_wake_at(struct transport *transport, unsigned kind, uint64_t at_us) {
    struct loop_timer *timer = &transport->wakes[find_tenant(transport, kind)];
    uint64_t now = transport_now_us(transport);
    if (at_us == STEP_NEVER_US) {
        loop_timer_stop(timer);
    } else {
        loop_timer_set(timer, at_us <= now ? 0 : at_us - now, 0);
    }
}
