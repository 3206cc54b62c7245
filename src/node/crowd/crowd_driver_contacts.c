/* Whom to turn to where we are alone: members of the ring, and those who spoke to us lately. */
#include <string.h>

#include "node/crowd/crowd_driver_state.h"

enum { PICKS_MAX = 64, MEMBERS_SHARE = CROWD_CONTACTS_MAX / 2 };
static const uint64_t JOIN_WAIT_US = 2 * 1000000;
static const uint64_t JOIN_WAIT_US_MAX = 60 * 1000000;
static const uint64_t WRITE_US = 10 * 1000000; /* between two writes of the file */

/* ---- those who spoke ---- */

static struct crowd_driver_contact *find_contact(struct crowd_driver *crowd_driver,
                                                 const struct address *address) {
    for (size_t i = 0; i < crowd_driver->contacts_count; i++) {
        if (address_equal(&crowd_driver->contacts[i].peer.address, address)) {
            return &crowd_driver->contacts[i];
        }
    }
    return NULL;
}

/* A free place, or that of who has been silent for longest. */
static struct crowd_driver_contact *place_for_contact(struct crowd_driver *crowd_driver) {
    if (crowd_driver->contacts_count < CROWD_DRIVER_CONTACTS_MAX) {
        return &crowd_driver->contacts[crowd_driver->contacts_count++];
    }
    struct crowd_driver_contact *oldest = &crowd_driver->contacts[0];
    for (size_t i = 1; i < crowd_driver->contacts_count; i++) {
        if (crowd_driver->contacts[i].heard_at_us < oldest->heard_at_us) {
            oldest = &crowd_driver->contacts[i];
        }
    }
    return oldest;
}

void crowd_driver_hear(struct crowd_driver *crowd_driver, const struct peer *peer) {
    uint64_t now = crowd_driver_now_us(crowd_driver);
    pthread_mutex_lock(&crowd_driver->lock);
    struct crowd_driver_contact *contact = find_contact(crowd_driver, &peer->address);
    bool is_known = contact != NULL && peer_equal(&contact->peer, peer);
    if (is_known) {
        contact->heard_at_us = now;
    } else if (!crowd_driver_distrusts(crowd_driver, peer)) {
        contact = contact != NULL ? contact : place_for_contact(crowd_driver);
        *contact = (struct crowd_driver_contact){.peer = *peer, .heard_at_us = now};
        crowd_driver->contacts_changed = true;
    }
    pthread_mutex_unlock(&crowd_driver->lock);
}

void crowd_driver_beat(struct crowd_driver *crowd_driver) {
    struct peer peers[CROWD_DRIVER_CONTACTS_MAX];
    uint64_t now = crowd_driver_now_us(crowd_driver);
    pthread_mutex_lock(&crowd_driver->lock);
    bool is_due =
        crowd_driver->contacts_changed && (now >= crowd_driver->write_at_us || crowd_driver->is_stopped);
    size_t count = crowd_driver->contacts_count;
    for (size_t i = 0; i < count; i++) {
        peers[i] = crowd_driver->contacts[i].peer;
    }
    if (is_due) {
        crowd_driver->contacts_changed = false;
        crowd_driver->write_at_us = now + WRITE_US;
    }
    pthread_mutex_unlock(&crowd_driver->lock);
    if (is_due && crowd_driver_files_write(crowd_driver->config.directory, peers, count) != ERR_OK) {
        pthread_mutex_lock(&crowd_driver->lock);
        crowd_driver->contacts_changed = true; /* the disk is full or gone: tried again */
        pthread_mutex_unlock(&crowd_driver->lock);
    }
}

/* ---- members of the ring ---- */

static bool is_among(const struct peer *peers, size_t count, const struct address *address) {
    for (size_t i = 0; i < count; i++) {
        if (address_equal(&peers[i].address, address)) {
            return true;
        }
    }
    return false;
}

static void add_member(struct crowd_driver *crowd_driver, const struct peer *peer) {
    bool is_new = peer->address.port != 0 &&
                  !address_equal(&peer->address, &crowd_driver->crowd_config.self.address) &&
                  !is_among(crowd_driver->members, crowd_driver->members_count, &peer->address);
    if (is_new && crowd_driver->members_count < CROWD_CONTACTS_MAX) {
        crowd_driver->members[crowd_driver->members_count++] = *peer;
    }
}

/* At random, so that those who come at the same time do not all turn to the same; then our neighbours. */
static void look_for_members(struct crowd_driver *crowd_driver, const struct ring *ring) {
    uint32_t known_count = ring_known_count(ring);
    crowd_driver->members_count = 0;
    for (size_t i = 0; i < PICKS_MAX && known_count > 0 && crowd_driver->members_count < MEMBERS_SHARE; i++) {
        struct ring_known known = ring_known_at(ring, (uint32_t)prng_below(&crowd_driver->prng, known_count));
        if (known.misses_count == 0) {
            add_member(crowd_driver, &known.vnode.peer);
        }
    }
    for (uint8_t i = 0; i < ring_list_size(ring) && ring_is_member(ring, 0); i++) {
        const struct vnode *successor = ring_successor(ring, 0, i);
        if (successor != NULL) {
            add_member(crowd_driver, &successor->peer);
        }
    }
}

/* ---- joining ---- */

static size_t neighbours_wanted(const struct crowd_driver *crowd_driver) {
    size_t quarter = crowd_driver->crowd_config.view_size / 4;
    return quarter > 0 ? quarter : 1;
}

struct contacts {
    struct peer peers[CROWD_CONTACTS_MAX];
    size_t count;
};

static void add_contact(struct crowd_driver *crowd_driver, const struct crowd_neighbour *view,
                        size_t view_count, const struct peer *peer, size_t count_max,
                        struct contacts *contacts) {
    bool is_wanted =
        contacts->count < count_max && !is_among(contacts->peers, contacts->count, &peer->address);
    for (size_t i = 0; i < view_count && is_wanted; i++) {
        is_wanted = !address_equal(&view[i].peer.address, &peer->address);
    }
    pthread_mutex_lock(&crowd_driver->lock);
    is_wanted = is_wanted && !crowd_driver_distrusts(crowd_driver, peer);
    pthread_mutex_unlock(&crowd_driver->lock);
    if (is_wanted) {
        contacts->peers[contacts->count++] = *peer;
    }
}

/* Half of them of the ring, the others from those who spoke; who is in the view need not be asked. */
static void choose_contacts(struct crowd_driver *crowd_driver, const struct crowd_neighbour *view,
                            size_t view_count, struct contacts *contacts) {
    struct peer heard[PICKS_MAX];
    size_t heard_count = 0;
    pthread_mutex_lock(&crowd_driver->lock);
    for (; heard_count < PICKS_MAX && crowd_driver->contacts_count > 0; heard_count++) {
        heard[heard_count] =
            crowd_driver->contacts[prng_below(&crowd_driver->prng, crowd_driver->contacts_count)].peer;
    }
    pthread_mutex_unlock(&crowd_driver->lock);
    for (size_t i = 0; i < crowd_driver->members_count; i++) {
        add_contact(crowd_driver, view, view_count, &crowd_driver->members[i], MEMBERS_SHARE, contacts);
    }
    for (size_t i = 0; i < heard_count; i++) {
        add_contact(crowd_driver, view, view_count, &heard[i], CROWD_CONTACTS_MAX, contacts);
    }
}

/* It helped: at once again. It did not: they are gone or there are no more, wait longer. */
static void back_off(struct crowd_driver *crowd_driver, size_t view_count, uint64_t now) {
    if (view_count > crowd_driver->joined_with_count) {
        crowd_driver->join.tries_count = 0;
    }
    retry_sent_doubling(&crowd_driver->join, JOIN_WAIT_US, JOIN_WAIT_US_MAX, now);
    crowd_driver->joined_with_count = view_count;
}

void crowd_driver_join(struct crowd_driver *crowd_driver) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct contacts contacts = {.count = 0};
    uint64_t now = crowd_driver_now_us(crowd_driver);
    size_t view_count = crowd_neighbours(crowd_driver->crowd, view);
    if (view_count >= neighbours_wanted(crowd_driver)) {
        crowd_driver->join.tries_count = 0;
        return;
    }
    if (!retry_is_due(&crowd_driver->join, now)) {
        return;
    }
    choose_contacts(crowd_driver, view, view_count, &contacts);
    if (contacts.count == 0) {
        return;
    }
    back_off(crowd_driver, view_count, now);
    pthread_mutex_lock(&crowd_driver->lock);
    crowd_driver->totals.rejoins_count++;
    pthread_mutex_unlock(&crowd_driver->lock);
    struct event event = {.kind = EVENT_COMMAND, .code = CROWD_JOIN};
    event.bytes = crowd_write_contacts(contacts.peers, contacts.count, memory);
    crowd_driver_step(crowd_driver, &event);
}

void crowd_driver_news(struct crowd_driver *crowd_driver, const struct ring *ring) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    if (crowd_driver->crowd == NULL || crowd_driver->is_stopped) {
        return;
    }
    if (crowd_neighbours(crowd_driver->crowd, view) < neighbours_wanted(crowd_driver)) {
        look_for_members(crowd_driver, ring);
    }
    crowd_driver_join(crowd_driver);
    crowd_driver_repeat_spoiled(crowd_driver);
    crowd_driver_take_wants(crowd_driver);
}
