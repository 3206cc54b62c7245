/* Who keeps everything asks the primaries to offer him what is new, as they do to holders. */
#include "node/copies/keeping_state.h"

enum { FOLLOW_S_MIN = 900 /* three rounds of who has the default interval */ };
static const uint64_t SECOND_US = 1000000;

/* ---- the one who follows ---- */

enum err keeping_follow(struct keeping *keeping, const struct peer *primary) {
    struct err_detail detail = {0};
    if (keeping_is_shunned(keeping, primary)) {
        return ERR_REFUSED;
    }
    enum err err = bulk_ask(keeping->config.bulk, primary, BULK_FOLLOW, bytes_of(NULL, 0), KEEPING_ASK_MS,
                            &keeping->answer, &detail);
    if (err != ERR_OK && err != ERR_BUSY && err != ERR_UNSUPPORTED) {
        keeping_shun(keeping, primary, false); /* silent: nobody waits for him again at the next stop */
    }
    return err;
}

/* ---- the primary ---- */

/* He asks again in each of his rounds; who does not answer any more is dropped anyhow. */
static uint64_t until_us(const struct keeping *keeping, uint64_t now_us) {
    uint64_t least_us = FOLLOW_S_MIN * SECOND_US;
    uint64_t long_us = 3 * keeping->config.compare_interval_us;
    return now_us + (long_us > least_us ? long_us : least_us);
}

static bool add_follower(struct keeping *keeping, const struct peer *peer) {
    uint64_t now_us = keeping_now_us(keeping);
    struct keeping_follower *place = NULL;
    for (size_t i = 0; i < KEEPING_FOLLOWERS_MAX; i++) {
        struct keeping_follower *follower = &keeping->followers[i];
        if (memcmp(follower->peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            place = follower;
            break;
        }
        place = place == NULL && follower->until_us <= now_us ? follower : place;
    }
    if (place != NULL) {
        *place = (struct keeping_follower){.peer = *peer, .until_us = until_us(keeping, now_us)};
    }
    return place != NULL;
}

enum err keeping_answer_follow(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    struct keeping *keeping = context;
    const struct keeping_ring *ring = &keeping->config.ring;
    struct peer peer;
    (void)answer;
    if (question.size > 0) {
        keeping_blame(keeping, from, "wants to follow with bytes left over");
        return err_set(detail, ERR_INVALID, "bytes left over");
    }
    if (!ring->locate(ring->context, from->key, &peer)) {
        peer = *from; /* good for as long as his stream is open */
    }
    pthread_mutex_lock(&keeping->lock);
    bool is_added = add_follower(keeping, &peer);
    pthread_mutex_unlock(&keeping->lock);
    return is_added ? ERR_OK : err_set(detail, ERR_BUSY, "too many follow this node already");
}

void keeping_unfollow(struct keeping *keeping, const struct peer *peer) {
    pthread_mutex_lock(&keeping->lock);
    for (size_t i = 0; i < KEEPING_FOLLOWERS_MAX; i++) {
        if (peer_equal(&keeping->followers[i].peer, peer)) {
            keeping->followers[i] = (struct keeping_follower){.until_us = 0};
        }
    }
    pthread_mutex_unlock(&keeping->lock);
}

size_t keeping_followers(struct keeping *keeping, struct peer out[KEEPING_FOLLOWERS_MAX]) {
    size_t count = 0;
    pthread_mutex_lock(&keeping->lock);
    uint64_t now_us = keeping_now_us(keeping);
    for (size_t i = 0; i < KEEPING_FOLLOWERS_MAX; i++) {
        if (now_us < keeping->followers[i].until_us) {
            out[count++] = keeping->followers[i].peer;
        }
    }
    pthread_mutex_unlock(&keeping->lock);
    return count;
}
