/* Who keeps everything asks the primaries to offer him what is new, as they do to holders. */
#include "node/copies/copies_state.h"

enum { FOLLOW_S_MIN = 900 /* three rounds of who has the default interval */ };
static const uint64_t SECOND_US = 1000000;

/* ---- the one who follows ---- */

enum err copies_follow(struct copies *copies, const struct peer *primary) {
    struct err_detail detail = {0};
    if (copies_is_shunned(copies, primary)) {
        return ERR_REFUSED;
    }
    enum err err = peer_rpc_ask(copies->config.peer_rpc, primary, PEER_RPC_FOLLOW, bytes_of(NULL, 0),
                                COPIES_ASK_MS, &copies->answer, &detail);
    if (err != ERR_OK && err != ERR_BUSY && err != ERR_UNSUPPORTED) {
        copies_shun(copies, primary, false); /* silent: nobody waits for him again at the next stop */
    }
    return err;
}

/* ---- the primary ---- */

/* He asks again in each of his rounds; who does not answer any more is dropped anyhow. */
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
    const struct copies_ring *ring = &copies->config.ring;
    struct peer peer;
    (void)answer;
    if (question.size > 0) {
        copies_blame(copies, from, "wants to follow with bytes left over");
        return err_set(detail, ERR_INVALID, "bytes left over");
    }
    if (!ring->locate(ring->context, from->key, &peer)) {
        peer = *from; /* good for as long as his stream is open */
    }
    pthread_mutex_lock(&copies->lock);
    bool is_added = add_follower(copies, &peer);
    pthread_mutex_unlock(&copies->lock);
    return is_added ? ERR_OK : err_set(detail, ERR_BUSY, "too many follow this node already");
}

void copies_unfollow(struct copies *copies, const struct peer *peer) {
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
