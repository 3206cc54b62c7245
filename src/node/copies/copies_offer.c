/* Offers to other nodes: which of them answer, which lie, and which want to be told what is new. */
#include <stdlib.h>

#include "node/copies/copies_state.h"

enum {
    SHUN_S = 10,
    FOLLOW_S_MIN = 900, /* three rounds at the default interval */
};
static const uint64_t SECOND_US = 1000000;

/* ---- nodes that do not answer, or lie ---- */

/* Any thread. */
static void copies_shun(struct copies *copies, const struct peer *peer, bool is_false) {
    pthread_mutex_lock(&copies->lock);
    uint64_t now_us = copies_now_us(copies);
    standing_note(&copies->standing, STANDING_SILENT, peer_key(peer), now_us, now_us + SHUN_S * SECOND_US);
    if (is_false) {
        standing_note(&copies->standing, STANDING_REFUSED, peer_key(peer), now_us, UINT64_MAX);
    }
    pthread_mutex_unlock(&copies->lock);
}

void copies_note_false(struct copies *copies, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    uint64_t now_us = copies_now_us(copies);
    standing_note(&copies->standing, STANDING_DOUBTED, peer_key(peer), now_us,
                  now_us + copies_grace_us(copies) / 2);
    primary_watch_accuse(&copies->primary_watch, peer, now_us);
    pthread_mutex_unlock(&copies->lock);
}

static bool copies_holds(struct copies *copies, enum standing_reason reason, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    bool holds = standing_holds(&copies->standing, reason, peer_key(peer), copies_now_us(copies));
    pthread_mutex_unlock(&copies->lock);
    return holds;
}

bool copies_is_false(struct copies *copies, const struct peer *peer) {
    return copies_holds(copies, STANDING_DOUBTED, peer);
}

void copies_distrust(struct copies *copies, const struct peer *peer) {
    copies_shun(copies, peer, true);
    copies_note_false(copies, peer);
}

bool copies_is_shunned(struct copies *copies, const struct peer *peer) {
    return copies_holds(copies, STANDING_SILENT, peer);
}

bool copies_take_falsehood(struct copies *copies, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    bool is_false = standing_clear(&copies->standing, STANDING_REFUSED, peer_key(peer));
    pthread_mutex_unlock(&copies->lock);
    return is_false;
}

/* ---- following ---- */

enum err copies_follow(struct copies *copies, const struct peer *primary) {
    struct err_detail detail = {0};
    if (copies_is_shunned(copies, primary)) {
        return ERR_REFUSED;
    }
    enum err err = peer_rpc_ask(copies->config.peer_rpc, primary, PEER_RPC_FOLLOW, bytes_of(NULL, 0),
                                COPIES_ASK_MS, &copies->answer, &detail);
    if (err != ERR_OK && err != ERR_BUSY && err != ERR_UNSUPPORTED) {
        copies_shun(copies, primary, false); /* silent: the next stop does not wait for it again */
    }
    return err;
}

/* ---- being followed, as a primary ---- */

/* A follower asks again in each of its rounds; one that does not answer an offer is dropped anyhow. */
static uint64_t until_us(const struct copies *copies, uint64_t now_us) {
    uint64_t least_us = FOLLOW_S_MIN * SECOND_US;
    uint64_t long_us = 3 * copies->config.compare_interval_us;
    return now_us + (long_us > least_us ? long_us : least_us);
}

static bool add_follower(struct copies *copies, const struct peer *peer) {
    uint64_t now_us = copies_now_us(copies);
    struct copies_follower *place = NULL;
    for (size_t i = 0; i < COPIES_FOLLOWERS_MAX; i++) {
        struct copies_follower *follower = &copies->followers[i];
        if (memcmp(follower->peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            place = follower;
            break;
        }
        place = place == NULL && follower->until_us <= now_us ? follower : place;
    }
    if (place != NULL) {
        *place = (struct copies_follower){.peer = *peer, .until_us = until_us(copies, now_us)};
    }
    return place != NULL;
}

enum err copies_answer_follow(void *context, const struct peer *from, struct bytes question,
                              struct buf *answer, struct err_detail *detail) {
    struct copies *copies = context;
    const struct holders_source *ring = &copies->config.ring;
    struct peer peer;
    (void)answer;
    if (question.size > 0) {
        copies_blame(copies, from, "wants to follow with bytes left over");
        return err_set(detail, ERR_INVALID, "bytes left over");
    }
    if (!ring->locate(ring->context, from->key, &peer)) {
        peer = *from; /* good for as long as its stream is open */
    }
    pthread_mutex_lock(&copies->lock);
    bool is_added = add_follower(copies, &peer);
    pthread_mutex_unlock(&copies->lock);
    return is_added ? ERR_OK : err_set(detail, ERR_BUSY, "too many follow this node already");
}

static void copies_unfollow(struct copies *copies, const struct peer *peer) {
    pthread_mutex_lock(&copies->lock);
    for (size_t i = 0; i < COPIES_FOLLOWERS_MAX; i++) {
        if (peer_equal(&copies->followers[i].peer, peer)) {
            copies->followers[i] = (struct copies_follower){.until_us = 0};
        }
    }
    pthread_mutex_unlock(&copies->lock);
}

size_t copies_followers(struct copies *copies, struct peer out[COPIES_FOLLOWERS_MAX]) {
    size_t count = 0;
    pthread_mutex_lock(&copies->lock);
    uint64_t now_us = copies_now_us(copies);
    for (size_t i = 0; i < COPIES_FOLLOWERS_MAX; i++) {
        if (now_us < copies->followers[i].until_us) {
            out[count++] = copies->followers[i].peer;
        }
    }
    pthread_mutex_unlock(&copies->lock);
    return count;
}

/* ---- one offer ---- */

enum err copies_offer(struct copies *copies, const struct peer *peer, const struct ringkey *keys,
                      size_t count) {
    struct err_detail detail = {0};
    buf_clear(&copies->question);
    copies_put_keys(&copies->question, keys, count);
    if (copies->question.err != ERR_OK) {
        return copies->question.err;
    }
    enum err err = peer_rpc_ask(copies->config.peer_rpc, peer, PEER_RPC_OFFER, buf_bytes(&copies->question),
                                COPIES_ASK_MS, &copies->answer, &detail);
    if (err != ERR_OK) {
        copies_shun(copies, peer, false);
        copies_unfollow(copies, peer);
        return err;
    }
    err = copies_read_bits(buf_bytes(&copies->answer), count, 2, copies->wishes, &detail);
    if (err != ERR_OK) {
        copies_blame(copies, peer, "answers an offer with something else");
        return err;
    }
    copies_count(copies, &copies->stat.offered_count, count);
    return ERR_OK;
}
