/*
 * Who is given one capture, and who is sent to others.
 *
 * A node counts from its first piece on: whole while it is taking, then with what it got of it. So four nodes
 * that each take a quarter count as one, and a burst of first pieces cannot let more in than are meant to be.
 */
#include <stdlib.h>

#include "node/crowd/offers_state.h"

enum { REPEATS_MAX = 3 /* so often one node may take one capture in gives_us */ };
static const uint64_t TAKING_US = 300000;   /* between two pieces */
static const uint64_t NAMED_US = 600000000; /* after that, he may have it no longer */

static struct offers_taker *find(const struct offer *offer, const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t i = 0; offer->takers != NULL && i < offer->takers->count; i++) {
        if (memcmp(offer->takers->takers[i].key, key, PEER_KEY_SIZE) == 0) {
            return &offer->takers->takers[i];
        }
    }
    return NULL;
}

static uint64_t weight_of(const struct offer *offer) {
    return offer->sum.size > 0 ? offer->sum.size : 1;
}

/*
 * What was given counts less and less, until gives_us have passed: then one more node is let in every now and
 * then, not four at once. Those who took it may hand nothing on, and nobody would get it for so long.
 */
static uint64_t taken_weight(const struct offers *offers, const struct offer *offer, uint64_t now_us) {
    uint64_t gives_us = offers->config.gives_us;
    double sum = 0;
    for (size_t i = 0; offer->takers != NULL && i < offer->takers->count; i++) {
        const struct offers_taker *taker = &offer->takers->takers[i];
        uint64_t age_us = now_us - taker->since_us;
        bool is_taking = !taker->is_done && now_us - taker->last_us < TAKING_US;
        bool is_whole = taker->is_done || taker->given_size > weight_of(offer);
        double weight = (double)(is_taking || is_whole ? weight_of(offer) : taker->given_size);
        double left = age_us < gives_us ? (double)(gives_us - age_us) / (double)gives_us : 0;
        sum += is_taking ? weight : weight * left;
    }
    return (uint64_t)sum;
}

bool offers_may_take(struct offers *offers, struct offer *offer, const uint8_t key[PEER_KEY_SIZE]) {
    uint64_t now_us = offers_now_us(offers);
    const struct offers_taker *taker = find(offer, key);
    bool is_recent = taker != NULL && (now_us - taker->since_us < offers->config.gives_us ||
                                       now_us - taker->last_us < TAKING_US);
    if (is_recent) {
        return taker->given_size < REPEATS_MAX * weight_of(offer);
    }
    return taken_weight(offers, offer, now_us) + weight_of(offer) <=
           offers->config.gives_max * weight_of(offer);
}

/* ---- notes ---- */

/* Nobody is to be sent to an address on a stranger's word: it must be the one that he comes from. */
static struct address reached_at(const struct peer *from, const struct address *claimed) {
    struct address address = from->address;
    bool is_his = memcmp(claimed->ip, from->address.ip, sizeof claimed->ip) == 0 ||
                  (address_is_loopback(claimed) && address_is_loopback(&from->address));
    if (is_his) {
        return *claimed;
    }
    address.port = 0;
    return address;
}

/* A new one, if need be in place of who came first. NULL: no memory. */
static struct offers_taker *add(struct offer *offer, const uint8_t key[PEER_KEY_SIZE]) {
    if (offer->takers == NULL && (offer->takers = calloc(1, sizeof *offer->takers)) == NULL) {
        return NULL;
    }
    struct offers_takers *takers = offer->takers;
    struct offers_taker *taker = &takers->takers[0];
    if (takers->count < OFFERS_TAKERS_MAX) {
        taker = &takers->takers[takers->count++];
    } else {
        for (size_t i = 1; i < takers->count; i++) {
            taker = takers->takers[i].since_us < taker->since_us ? &takers->takers[i] : taker;
        }
    }
    *taker = (struct offers_taker){0};
    memcpy(taker->key, key, PEER_KEY_SIZE);
    return taker;
}

void offers_note_taken(struct offers *offers, struct offer *offer, const struct peer *from,
                       const struct address *claimed, uint64_t offset, size_t size) {
    uint64_t now_us = offers_now_us(offers);
    struct offers_taker *taker = find(offer, from->key);
    bool is_new = taker == NULL;
    taker = is_new ? add(offer, from->key) : taker;
    if (taker == NULL) {
        return;
    }
    bool is_begun_anew =
        now_us - taker->since_us >= offers->config.gives_us && now_us - taker->last_us >= TAKING_US;
    if (is_new || is_begun_anew) {
        taker->since_us = now_us;
        taker->given_size = 0;
        taker->is_done = false;
        offers_index_use(offers, offer, true);
    }
    taker->last_us = now_us;
    taker->given_size += size;
    taker->address = reached_at(from, claimed);
    offers->stat.given_size += size;
    if (offset + size == offer->sum.size && !taker->is_done) {
        taker->is_done = true;
        offer->given_count++;
        offers->stat.given_count++;
    }
}

/* ---- naming ---- */

/* Each referral begins with another one, so that not all go to the same. */
void offers_name_takers(struct offers *offers, struct offer *offer, const uint8_t key[PEER_KEY_SIZE],
                        struct captures_answer *answer) {
    struct offers_takers *takers = offer->takers;
    uint64_t now_us = offers_now_us(offers);
    offers->stat.referred_count++;
    offers_index_use(offers, offer, true);
    *answer = (struct captures_answer){.is_referral = true};
    if (takers == NULL) {
        return;
    }
    uint32_t turn = takers->turn++;
    for (size_t pass = 0; pass < 2; pass++) { /* those who have it, then those who are taking it */
        for (size_t i = 0; i < takers->count && answer->peers_count < CAPTURES_CODE_PEERS_MAX; i++) {
            const struct offers_taker *taker = &takers->takers[(turn + i) % takers->count];
            bool is_named = taker->is_done == (pass == 0) && taker->address.port != 0 &&
                            now_us - taker->last_us < NAMED_US && memcmp(taker->key, key, PEER_KEY_SIZE) != 0;
            if (is_named) {
                struct peer *peer = &answer->peers[answer->peers_count++];
                peer->address = taker->address;
                memcpy(peer->key, taker->key, PEER_KEY_SIZE);
            }
        }
    }
}
