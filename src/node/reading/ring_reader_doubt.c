#include "node/reading/ring_reader_doubt.h"

static const uint64_t DOUBT_US = UINT64_C(60) * 1000000;

struct doubt {
    uint64_t until_us;
    uint32_t listed_count; /* in vain since he was last believed */
};

enum err ring_reader_doubts_init(struct ring_reader_doubts *doubts, uint64_t seed) {
    pthread_mutex_init(&doubts->lock, NULL);
    enum err err =
        lru_init(&doubts->captures, sizeof(uint64_t), sizeof(uint64_t), RING_READER_DOUBT_CAPTURES_MAX, seed);
    if (err == ERR_OK) {
        err =
            lru_init(&doubts->peers, PEER_KEY_SIZE, sizeof(struct doubt), RING_READER_DOUBT_PEERS_MAX, seed);
    }
    return err;
}

void ring_reader_doubts_done(struct ring_reader_doubts *doubts) {
    lru_done(&doubts->captures);
    lru_done(&doubts->peers);
    pthread_mutex_destroy(&doubts->lock);
}

static void *find_or_add(struct lru *lru, const void *key) {
    void *value = lru_find(lru, key);
    return value != NULL ? value : lru_add(lru, key);
}

void ring_reader_doubts_add(struct ring_reader_doubts *doubts, uint64_t number, const struct peer *lister,
                            uint64_t now_us) {
    uint64_t until_us = now_us + DOUBT_US;
    pthread_mutex_lock(&doubts->lock);
    uint64_t *capture_until_us = find_or_add(&doubts->captures, &number);
    bool is_new = *capture_until_us <= now_us;
    *capture_until_us = until_us;
    if (lister != NULL) {
        struct doubt *doubt = find_or_add(&doubts->peers, lister->key);
        doubt->listed_count = doubt->until_us > now_us ? doubt->listed_count : 0;
        doubt->listed_count += is_new; /* many who read the same at once are no reason to doubt him more */
        doubt->until_us = until_us;
    }
    doubts->last_until_us = until_us;
    pthread_mutex_unlock(&doubts->lock);
}

bool ring_reader_doubts_has(struct ring_reader_doubts *doubts, uint64_t number, uint64_t now_us) {
    if (doubts->last_until_us <= now_us) {
        return false; /* the usual case, and this is asked of every capture of a walk */
    }
    pthread_mutex_lock(&doubts->lock);
    const uint64_t *until_us = lru_find(&doubts->captures, &number);
    bool has = until_us != NULL && *until_us > now_us;
    pthread_mutex_unlock(&doubts->lock);
    return has;
}

enum ring_reader_trust ring_reader_doubts_trust(struct ring_reader_doubts *doubts, const struct peer *peer,
                                                uint64_t now_us) {
    enum ring_reader_trust trust = RING_READER_BELIEVED;
    if (doubts->last_until_us <= now_us) {
        return trust;
    }
    pthread_mutex_lock(&doubts->lock);
    const struct doubt *doubt = lru_find(&doubts->peers, peer->key);
    if (doubt != NULL && doubt->until_us > now_us) {
        trust = doubt->listed_count >= RING_READER_DOUBT_LISTED_MAX ? RING_READER_PASSED_OVER
                                                                    : RING_READER_DOUBTED;
    }
    pthread_mutex_unlock(&doubts->lock);
    return trust;
}

size_t ring_reader_doubts_sort(struct ring_reader_doubts *doubts, struct peer *peers, size_t count,
                               uint64_t now_us) {
    size_t believed_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (ring_reader_doubts_trust(doubts, &peers[i], now_us) == RING_READER_BELIEVED) {
            struct peer peer = peers[i];
            peers[i] = peers[believed_count];
            peers[believed_count++] = peer;
        }
    }
    return believed_count;
}
