/* Who offered what he did not give. */
#include "node/crowd/crowding_state.h"
#include "node/transport/ringing.h"

static const uint64_t DISTRUST_US = UINT64_C(600) * 1000000;

/* By key: an address is had again by somebody else. */
bool crowding_distrusts(const struct crowding *crowding, const struct peer *peer) {
    uint64_t now = crowding_now_us(crowding);
    for (size_t i = 0; i < CROWDING_DISTRUSTED_MAX; i++) {
        const struct crowding_distrusted *one = &crowding->distrusted[i];
        if (now < one->until_us && memcmp(one->peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

void crowding_drop(struct crowding *crowding, const struct peer *peer) {
    if (crowding->drops_count < CROWDING_DROPS_MAX) {
        crowding->drops[crowding->drops_count++] = *peer;
    }
}

static void forget_contact(struct crowding *crowding, const struct peer *peer) {
    for (size_t i = 0; i < crowding->contacts_count; i++) {
        if (memcmp(crowding->contacts[i].peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            crowding->contacts[i--] = crowding->contacts[--crowding->contacts_count];
            crowding->contacts_changed = true;
        }
    }
}

static void forget_hits(struct crowding *crowding, const struct peer *peer) {
    for (size_t i = 0; i < CROWDING_SEARCHES_MAX; i++) {
        struct crowding_search *search = &crowding->searches[i];
        for (size_t j = 0; j < search->hits_count; j++) {
            if (memcmp(search->hits[j].holder.key, peer->key, PEER_KEY_SIZE) == 0) {
                search->hits[j--] = search->hits[--search->hits_count];
                search->is_spoiled = true;
            }
        }
    }
}

static void run(void *context) {
    crowding_take_wants(context);
}

void crowding_distrust(struct crowding *crowding, const struct peer *peer) {
    pthread_mutex_lock(&crowding->lock);
    if (!crowding_distrusts(crowding, peer)) {
        crowding->distrusted[crowding->distrusted_next] =
            (struct crowding_distrusted){.peer = *peer, .until_us = crowding_now_us(crowding) + DISTRUST_US};
        crowding->distrusted_next = (crowding->distrusted_next + 1) % CROWDING_DISTRUSTED_MAX;
        crowding->totals.distrusted_count++;
        crowding->distrusts_some = true;
    }
    forget_contact(crowding, peer);
    forget_hits(crowding, peer);
    crowding_drop(crowding, peer);
    pthread_mutex_unlock(&crowding->lock);
    (void)ringing_post(crowding->config.ringing, run, crowding); /* else with the next news of the ring */
}

bool crowding_is_distrusted(struct crowding *crowding, const struct peer *peer) {
    pthread_mutex_lock(&crowding->lock);
    bool is_distrusted = crowding_distrusts(crowding, peer);
    pthread_mutex_unlock(&crowding->lock);
    return is_distrusted;
}
