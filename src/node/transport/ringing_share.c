/* What the ring gives to the others of this node: who is a member, errands on its loop, blame. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/transport/ringing_state.h"

static const uint64_t LOOK_UP_US = 1000000;

void ringing_share_init(struct ringing *ringing) {
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    map_init(&ringing->admitted, PEER_KEY_SIZE, 1, RINGING_ADMITTED_MAX, seed);
    ringing->errands_end = &ringing->errands;
}

void ringing_share_done(struct ringing *ringing) {
    while (ringing->errands != NULL) {
        struct ringing_errand *next = ringing->errands->next;
        free(ringing->errands);
        ringing->errands = next;
    }
    map_done(&ringing->admitted);
}

/* The lock is held. */
static void put_key(struct ringing *ringing, const uint8_t key[PEER_KEY_SIZE]) {
    if (map_reserve(&ringing->admitted, ringing->admitted.count + 1) != ERR_OK) {
        map_clear(&ringing->admitted); /* those who are still here will be seen again */
    }
    map_put(&ringing->admitted, bytes_of(key, PEER_KEY_SIZE));
}

void ringing_share_charter(struct ringing *ringing) {
    const struct charter *charter = &ringing->charter;
    pthread_mutex_lock(&ringing->lock);
    map_clear(&ringing->admitted);
    ringing->admits_all = charter->is_open;
    for (uint32_t i = 0; charter->is_open && i < charter->removed_count; i++) {
        put_key(ringing, charter->removed[i]);
    }
    pthread_mutex_unlock(&ringing->lock);
    if (ringing->config.charter != NULL) {
        ringing->config.charter(ringing->config.shared, charter, ringing->id);
    }
}

void ringing_share_admitted(struct ringing *ringing, const struct peer *peer) {
    pthread_mutex_lock(&ringing->lock);
    if (!ringing->admits_all && map_get(&ringing->admitted, bytes_of(peer->key, PEER_KEY_SIZE)) == NULL) {
        put_key(ringing, peer->key);
    }
    pthread_mutex_unlock(&ringing->lock);
}

const struct identity *ringing_identity(const struct ringing *ringing) {
    return &ringing->identity;
}

bool ringing_admits(struct ringing *ringing, const struct peer *peer) {
    pthread_mutex_lock(&ringing->lock);
    bool is_named = map_get(&ringing->admitted, bytes_of(peer->key, PEER_KEY_SIZE)) != NULL;
    bool is_admitted = ringing->admits_all ? !is_named : is_named;
    pthread_mutex_unlock(&ringing->lock);
    return is_admitted;
}

/* ---- errands ---- */

static bool give(struct ringing *ringing, const struct ringing_errand *errand) {
    struct ringing_errand *copy = malloc(sizeof *copy);
    if (copy == NULL) {
        return false;
    }
    *copy = *errand;
    copy->next = NULL;
    pthread_mutex_lock(&ringing->lock);
    bool is_taken = ringing->is_running && ringing->errands_count < RINGING_ERRANDS_MAX;
    if (is_taken) {
        *ringing->errands_end = copy;
        ringing->errands_end = &copy->next;
        ringing->errands_count++;
        uv_async_send(&ringing->asked);
    }
    pthread_mutex_unlock(&ringing->lock);
    if (!is_taken) {
        free(copy);
    }
    return is_taken;
}

void ringing_greet(struct ringing *ringing, const struct peer *peer) {
    (void)give(ringing, &(struct ringing_errand){.peer = *peer});
}

void ringing_blame(struct ringing *ringing, const struct peer *peer, const char *sentence) {
    struct ringing_errand errand = {.peer = *peer};
    snprintf(errand.sentence, sizeof errand.sentence, "%s", sentence);
    (void)give(ringing, &errand); /* where there are too many, the first ones are enough */
}

bool ringing_post(struct ringing *ringing, void (*run)(void *context), void *context) {
    return give(ringing, &(struct ringing_errand){.run = run, .context = context});
}

/* ---- blame ---- */

/*
 * Where the owner of a key answers as a member. A stream that he opened has another port; and what only
 * others say of him could be another's address. Some thousand places are looked at: who breaks the rules all
 * the time is looked up once a second.
 */
static const struct peer *find_member(struct ringing *ringing, const uint8_t key[PEER_KEY_SIZE]) {
    uint64_t now_us = ringing_now_us(ringing);
    struct peer *member = &ringing->blamed;
    if (now_us < ringing->blamed_until_us && memcmp(member->key, key, PEER_KEY_SIZE) == 0) {
        return member;
    }
    *member = (struct peer){0};
    memcpy(member->key, key, PEER_KEY_SIZE);
    uint32_t count = ringing->ring != NULL ? ring_known_count(ringing->ring) : 0;
    for (uint32_t i = 0; i < count && member->address.port == 0; i++) {
        struct ring_known known = ring_known_at(ringing->ring, i);
        if (known.heard_at_us > 0 && memcmp(known.place.peer.key, key, PEER_KEY_SIZE) == 0) {
            *member = known.place.peer;
        }
    }
    ringing->blamed_until_us = now_us + LOOK_UP_US;
    return member;
}

static void accuse(struct ringing *ringing, const struct peer *peer, const char *what) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    char sentence[COMPLAINT_SIZE_MAX];
    const struct peer *member = find_member(ringing, peer->key);
    if (member->address.port > 0) {
        snprintf(sentence, sizeof sentence, "%s is blamed: it %.150s",
                 address_format(&member->address, address), what);
    } else {
        snprintf(sentence, sizeof sentence, "%s, the node %s, is blamed: it %.150s",
                 address_format(&peer->address, address), identity_key_format(peer->key, key), what);
    }
    ringing_on_complaint(ringing, &peer->address, sentence);
}

static void run_errand(struct ringing *ringing, const struct ringing_errand *errand) {
    if (errand->run != NULL) {
        errand->run(errand->context);
    } else if (errand->sentence[0] == '\0') {
        if (ringing->has_charter) {
            gate_greet(ringing->gate, &errand->peer);
        }
    } else {
        accuse(ringing, &errand->peer, errand->sentence);
    }
}

void ringing_share_errands(struct ringing *ringing) {
    pthread_mutex_lock(&ringing->lock);
    struct ringing_errand *errands = ringing->errands;
    ringing->errands = NULL;
    ringing->errands_end = &ringing->errands;
    ringing->errands_count = 0;
    pthread_mutex_unlock(&ringing->lock);
    while (errands != NULL) {
        struct ringing_errand *next = errands->next;
        run_errand(ringing, errands);
        free(errands);
        errands = next;
    }
}

void ringing_send(struct ringing *ringing, const struct peer *to, unsigned kind, struct bytes message) {
    if (kind < DATAGRAM_GROUP) { /* members of a group need not know our ring */
        gate_introduce(ringing->gate, to);
    }
    (void)datagram_send(ringing->datagram, to, (enum datagram_kind)kind, message); /* may be lost, as any */
}

static void on_others(uv_timer_t *timer) {
    const struct ringing *ringing = timer->data;
    if (ringing->config.wake != NULL) {
        ringing->config.wake(ringing->config.shared, (enum ringing_user)(timer - ringing->others));
    }
}

void ringing_wake_at(struct ringing *ringing, enum ringing_user user, uint64_t at_us) {
    uv_timer_t *timer = &ringing->others[user];
    if (!uv_is_closing((uv_handle_t *)timer)) {
        ringing_set_timer(ringing, timer, on_others, at_us);
    }
}
