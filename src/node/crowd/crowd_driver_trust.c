/* Who offered what he did not give. */
#include "node/crowd/crowd_driver_state.h"
#include "node/transport/transport.h"

static const uint64_t DISTRUST_US = UINT64_C(600) * 1000000;

/* By key: an address is had again by somebody else. */
bool crowd_driver_distrusts(const struct crowd_driver *crowd_driver, const struct peer *peer) {
    return standing_holds(&crowd_driver->standing, STANDING_DOUBTED, peer_key(peer),
                          crowd_driver_now_us(crowd_driver));
}

void crowd_driver_drop(struct crowd_driver *crowd_driver, const struct peer *peer) {
    if (crowd_driver->drops_count < CROWD_DRIVER_DROPS_MAX) {
        crowd_driver->drops[crowd_driver->drops_count++] = *peer;
    }
}

static void forget_contact(struct crowd_driver *crowd_driver, const struct peer *peer) {
    for (size_t i = 0; i < crowd_driver->contacts_count; i++) {
        if (peer_same_key(&crowd_driver->contacts[i].peer, peer)) {
            crowd_driver->contacts[i--] = crowd_driver->contacts[--crowd_driver->contacts_count];
            crowd_driver->contacts_changed = true;
        }
    }
}

static void forget_hits(struct crowd_driver *crowd_driver, const struct peer *peer) {
    for (size_t i = 0; i < CROWD_DRIVER_SEARCHES_MAX; i++) {
        struct crowd_driver_search *search = &crowd_driver->searches[i];
        for (size_t j = 0; j < search->hits_count; j++) {
            if (peer_same_key(&search->hits[j].holder, peer)) {
                search->hits[j--] = search->hits[--search->hits_count];
                search->is_spoiled = true;
            }
        }
    }
}

static void run(void *context) {
    crowd_driver_take_wants(context);
}

void crowd_driver_distrust(struct crowd_driver *crowd_driver, const struct peer *peer) {
    pthread_mutex_lock(&crowd_driver->lock);
    if (!crowd_driver_distrusts(crowd_driver, peer)) {
        uint64_t now_us = crowd_driver_now_us(crowd_driver);
        standing_note(&crowd_driver->standing, STANDING_DOUBTED, peer_key(peer), now_us,
                      now_us + DISTRUST_US);
        crowd_driver->totals.distrusted_count++;
        crowd_driver->distrusts_some = true;
    }
    forget_contact(crowd_driver, peer);
    forget_hits(crowd_driver, peer);
    crowd_driver_drop(crowd_driver, peer);
    pthread_mutex_unlock(&crowd_driver->lock);
    (void)transport_post(crowd_driver->config.transport, run,
                         crowd_driver); /* else with the next news of the ring */
}

bool crowd_driver_is_distrusted(struct crowd_driver *crowd_driver, const struct peer *peer) {
    pthread_mutex_lock(&crowd_driver->lock);
    bool is_distrusted = crowd_driver_distrusts(crowd_driver, peer);
    pthread_mutex_unlock(&crowd_driver->lock);
    return is_distrusted;
}
