/* New captures are offered to the other holders at once, and to those who follow. */
#include <stdlib.h>

#include "node/copies/keeping_state.h"

enum { PEERS_MAX = 64, SHUN_S = 10, AGAIN_S = 10 };
static const uint64_t SECOND_US = 1000000;

/* ---- who does not answer, or lies ---- */

static struct keeping_shunned *find_shunned(struct keeping *keeping, const struct peer *peer) {
    for (size_t i = 0; i < KEEPING_SHUNNED_MAX; i++) {
        if (keeping->shunned[i].peer.address.port > 0 && peer_equal(&keeping->shunned[i].peer, peer)) {
            return &keeping->shunned[i];
        }
    }
    return NULL;
}

/* The lock is held. */
static struct keeping_shunned *shunned_for(struct keeping *keeping, const struct peer *peer) {
    struct keeping_shunned *shunned = find_shunned(keeping, peer);
    if (shunned == NULL) {
        shunned = &keeping->shunned[keeping->shunned_next];
        keeping->shunned_next = (keeping->shunned_next + 1) % KEEPING_SHUNNED_MAX;
        *shunned = (struct keeping_shunned){.peer = *peer};
    }
    return shunned;
}

void keeping_shun(struct keeping *keeping, const struct peer *peer, bool is_false) {
    pthread_mutex_lock(&keeping->lock);
    struct keeping_shunned *shunned = shunned_for(keeping, peer);
    shunned->until_us = keeping_now_us(keeping) + SHUN_S * SECOND_US;
    shunned->is_false = shunned->is_false || is_false;
    pthread_mutex_unlock(&keeping->lock);
}

void keeping_note_false(struct keeping *keeping, const struct peer *peer) {
    pthread_mutex_lock(&keeping->lock);
    uint64_t now_us = keeping_now_us(keeping);
    shunned_for(keeping, peer)->false_until_us = now_us + keeping_grace_us(keeping) / 2;
    guard_accuse(&keeping->guard, peer, now_us);
    pthread_mutex_unlock(&keeping->lock);
}

bool keeping_is_false(struct keeping *keeping, const struct peer *peer) {
    pthread_mutex_lock(&keeping->lock);
    const struct keeping_shunned *shunned = find_shunned(keeping, peer);
    bool is_false = shunned != NULL && keeping_now_us(keeping) < shunned->false_until_us;
    pthread_mutex_unlock(&keeping->lock);
    return is_false;
}

void keeping_distrust(struct keeping *keeping, const struct peer *peer) {
    keeping_shun(keeping, peer, true);
    keeping_note_false(keeping, peer);
}

bool keeping_is_shunned(struct keeping *keeping, const struct peer *peer) {
    pthread_mutex_lock(&keeping->lock);
    const struct keeping_shunned *shunned = find_shunned(keeping, peer);
    bool is_shunned = shunned != NULL && keeping_now_us(keeping) < shunned->until_us;
    pthread_mutex_unlock(&keeping->lock);
    return is_shunned;
}

bool keeping_take_falsehood(struct keeping *keeping, const struct peer *peer) {
    pthread_mutex_lock(&keeping->lock);
    struct keeping_shunned *shunned = find_shunned(keeping, peer);
    bool is_false = shunned != NULL && shunned->is_false;
    if (is_false) {
        shunned->is_false = false;
    }
    pthread_mutex_unlock(&keeping->lock);
    return is_false;
}

/* ---- one offer ---- */

enum err keeping_offer(struct keeping *keeping, const struct peer *peer, const struct ringkey *keys,
                       size_t count) {
    struct err_detail detail = {0};
    buf_clear(&keeping->question);
    keeping_put_keys(&keeping->question, keys, count);
    if (keeping->question.err != ERR_OK) {
        return keeping->question.err;
    }
    enum err err = bulk_ask(keeping->config.bulk, peer, BULK_OFFER, buf_bytes(&keeping->question),
                            KEEPING_ASK_MS, &keeping->answer, &detail);
    if (err != ERR_OK) {
        keeping_shun(keeping, peer, false);
        keeping_unfollow(keeping, peer);
        return err;
    }
    err = keeping_read_bits(buf_bytes(&keeping->answer), count, 2, keeping->wishes, &detail);
    if (err != ERR_OK) {
        keeping_blame(keeping, peer, "answers an offer with something else");
        return err;
    }
    pthread_mutex_lock(&keeping->lock);
    keeping->stat.offered_count += count;
    pthread_mutex_unlock(&keeping->lock);
    return ERR_OK;
}

/* ---- what is new here ---- */

/* keys_lock is held: by the thread that runs the feed, this one. */
void keeping_take_fresh(void *context, const struct ringkey *key) {
    struct keeping *keeping = context;
    if (keeping->fresh_count < KEEPING_KEYS_MAX) {
        keeping->fresh[keeping->fresh_count++] = *key;
    } else {
        keeping->has_lost_fresh = true;
    }
}

/* Keys for one node. */
struct parcel {
    struct peer peer;
    bool is_primary; /* of some of them, and we are not: what he does not take is offered again */
    size_t count;
    struct ringkey *keys; /* KEEPING_KEYS_MAX */
};

struct parcels {
    struct parcel parcels[PEERS_MAX];
    size_t count;
};

static struct parcel *parcel_for(struct parcels *parcels, const struct peer *peer) {
    for (size_t i = 0; i < parcels->count; i++) {
        if (peer_equal(&parcels->parcels[i].peer, peer)) {
            return &parcels->parcels[i];
        }
    }
    struct ringkey *keys = parcels->count < PEERS_MAX ? malloc(KEEPING_KEYS_MAX * sizeof *keys) : NULL;
    if (keys == NULL) {
        return NULL;
    }
    struct parcel *parcel = &parcels->parcels[parcels->count++];
    *parcel = (struct parcel){.peer = *peer, .keys = keys};
    return parcel;
}

static bool is_holder(const struct holders_arc *arc, const struct peer *peer) {
    for (size_t i = 0; i < arc->count; i++) {
        if (memcmp(arc->peers[i].key, peer->key, PEER_KEY_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

/* Keys of others' arcs that came from others are theirs to spread. */
static void pack(struct keeping *keeping, struct parcels *parcels) {
    struct peer followers[KEEPING_FOLLOWERS_MAX];
    size_t followers_count = keeping_followers(keeping, followers);
    const struct keeping_ring *ring = &keeping->config.ring;
    struct holders_arc arc = {.count = 0};
    for (size_t i = 0; i < keeping->fresh_count; i++) {
        const struct ringkey *key = &keeping->fresh[i];
        struct ring_id place = keeping_place_of(key);
        bool is_known = arc.count > 0 && ring_id_is_owned(arc.from, place, arc.to);
        if (!is_known && !ring->know(ring->context, place, &arc)) {
            arc.count = 0;
            continue;
        }
        if (arc.self_rank != 0 && keeping_came(keeping, key)) {
            continue;
        }
        for (size_t j = 0; j < arc.count; j++) {
            struct parcel *parcel = (int)j != arc.self_rank ? parcel_for(parcels, &arc.peers[j]) : NULL;
            if (parcel != NULL) {
                parcel->is_primary = parcel->is_primary || j == 0;
                parcel->keys[parcel->count++] = *key;
            }
        }
        for (size_t j = 0; j < followers_count && arc.self_rank == 0; j++) {
            struct parcel *parcel =
                is_holder(&arc, &followers[j]) ? NULL : parcel_for(parcels, &followers[j]);
            if (parcel != NULL) {
                parcel->keys[parcel->count++] = *key;
            }
        }
    }
}

static void offer_again(struct keeping *keeping, const struct parcel *parcel) {
    for (size_t i = 0; i < parcel->count && keeping->again_count < KEEPING_KEYS_MAX; i++) {
        keeping->again[keeping->again_count++] = parcel->keys[i];
    }
    keeping->again_us = keeping_now_us(keeping) + AGAIN_S * SECOND_US;
}

/* Of our own arcs a comparison finds what he has not got. */
static void touch(struct keeping *keeping, const struct parcel *parcel) {
    pthread_mutex_lock(&keeping->lock);
    for (size_t i = 0; i < parcel->count; i++) {
        keeper_touch(keeping->keeper, keeping_place_of(&parcel->keys[i]), &parcel->peer,
                     keeping_now_us(keeping));
    }
    pthread_mutex_unlock(&keeping->lock);
}

static void deliver(struct keeping *keeping, const struct parcel *parcel) {
    bool is_taken = !keeping_is_shunned(keeping, &parcel->peer) &&
                    keeping_offer(keeping, &parcel->peer, parcel->keys, parcel->count) == ERR_OK;
    for (size_t i = 0; i < parcel->count && is_taken; i++) {
        is_taken = keeping->wishes[i] != KEEPING_NOT_NOW;
    }
    if (!is_taken) {
        touch(keeping, parcel);
        if (parcel->is_primary) {
            offer_again(keeping, parcel);
        }
    }
}

/* More than can be offered: our arcs are compared, and other primaries are asked to compare theirs. */
static void compare_all(struct keeping *keeping) {
    pthread_mutex_lock(&keeping->lock);
    for (size_t i = 0; i < keeper_pieces_count(keeping->keeper); i++) {
        struct keeper_piece_status piece;
        keeper_piece(keeping->keeper, i, &piece);
        keeper_touch(keeping->keeper, piece.to, NULL, keeping_now_us(keeping));
    }
    pthread_mutex_unlock(&keeping->lock);
}

static void take_again(struct keeping *keeping) {
    if (keeping->again_count == 0 || keeping_now_us(keeping) < keeping->again_us) {
        return;
    }
    size_t count = keeping->again_count;
    keeping->again_count = 0;
    for (size_t i = 0; i < count; i++) {
        keeping_take_fresh(keeping, &keeping->again[i]);
    }
}

void keeping_offer_fresh(struct keeping *keeping) {
    take_again(keeping);
    if (keeping->fresh_count == 0) {
        return;
    }
    struct parcels *parcels = calloc(1, sizeof *parcels);
    if (parcels != NULL) {
        pack(keeping, parcels);
    }
    keeping->fresh_count = 0;
    for (size_t i = 0; parcels != NULL && i < parcels->count; i++) {
        deliver(keeping, &parcels->parcels[i]);
        if (keeping->has_lost_fresh && parcels->parcels[i].is_primary &&
            keeping_offer(keeping, &parcels->parcels[i].peer, NULL, 0) != ERR_OK) {
            continue; /* he compares at his next interval */
        }
    }
    if (keeping->has_lost_fresh) {
        keeping->has_lost_fresh = false;
        compare_all(keeping);
    }
    for (size_t i = 0; parcels != NULL && i < parcels->count; i++) {
        free(parcels->parcels[i].keys);
    }
    free(parcels);
}
