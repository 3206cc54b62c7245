#include "node/reading/ring_reader_doubt.h"

static const uint64_t SILENCE_US = UINT64_C(10) * 1000000;
static const uint64_t DOUBT_US = UINT64_C(60) * 1000000;

void ring_reader_doubts_init(struct ring_reader_doubts *doubts, uint64_t seed) {
    pthread_mutex_init(&doubts->lock, NULL);
    standing_init(&doubts->captures, doubts->capture_entries, RING_READER_DOUBT_CAPTURES_MAX, seed);
    standing_init(&doubts->peers, doubts->peer_entries, RING_READER_DOUBT_PEERS_MAX, seed);
}

void ring_reader_doubts_done(struct ring_reader_doubts *doubts) {
    pthread_mutex_destroy(&doubts->lock);
}

void ring_reader_doubts_add(struct ring_reader_doubts *doubts, uint64_t number, const struct peer *lister,
                            uint64_t now_us) {
    struct bytes capture = bytes_of(&number, sizeof number);
    uint64_t until_us = now_us + DOUBT_US;
    pthread_mutex_lock(&doubts->lock);
    bool is_known = standing_holds(&doubts->captures, STANDING_DOUBTED, capture, now_us);
    standing_note(&doubts->captures, STANDING_DOUBTED, capture, now_us, until_us);
    bool is_doubted =
        lister != NULL && standing_holds(&doubts->peers, STANDING_DOUBTED, peer_key(lister), now_us);
    if (lister != NULL && !is_doubted) {
        standing_clear(&doubts->peers, STANDING_DOUBTED, peer_key(lister)); /* counted from here on */
    }
    if (lister != NULL && !(is_known && is_doubted)) { /* many readers of the same at once count as one */
        standing_note(&doubts->peers, STANDING_DOUBTED, peer_key(lister), now_us, until_us);
    }
    doubts->last_until_us = until_us;
    pthread_mutex_unlock(&doubts->lock);
}

bool ring_reader_doubts_has(struct ring_reader_doubts *doubts, uint64_t number, uint64_t now_us) {
    if (doubts->last_until_us <= now_us) {
        return false; /* the usual case, and this is asked of every capture of a walk */
    }
    pthread_mutex_lock(&doubts->lock);
    bool has = standing_holds(&doubts->captures, STANDING_DOUBTED, bytes_of(&number, sizeof number), now_us);
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
    if (standing_holds(&doubts->peers, STANDING_DOUBTED, peer_key(peer), now_us)) {
        uint32_t count = standing_count(&doubts->peers, STANDING_DOUBTED, peer_key(peer));
        trust = count >= RING_READER_DOUBT_LISTED_MAX ? RING_READER_PASSED_OVER : RING_READER_DOUBTED;
    }
    pthread_mutex_unlock(&doubts->lock);
    return trust;
}

void ring_reader_doubts_note_silent(struct ring_reader_doubts *doubts, const struct peer *peer,
                                    uint64_t now_us) {
    pthread_mutex_lock(&doubts->lock);
    standing_note(&doubts->peers, STANDING_SILENT, peer_key(peer), now_us, now_us + SILENCE_US);
    pthread_mutex_unlock(&doubts->lock);
}

bool ring_reader_doubts_is_silent(struct ring_reader_doubts *doubts, const struct peer *peer,
                                  uint64_t now_us) {
    pthread_mutex_lock(&doubts->lock);
    bool is_silent = standing_holds(&doubts->peers, STANDING_SILENT, peer_key(peer), now_us);
    pthread_mutex_unlock(&doubts->lock);
    return is_silent;
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
