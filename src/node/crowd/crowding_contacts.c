/* Whom to turn to where we are alone: members of the ring, and those who spoke to us lately. */
#include <string.h>

#include "node/crowd/crowding_state.h"

enum { PICKS_MAX = 64, MEMBERS_SHARE = CROWD_CONTACTS_MAX / 2 };
static const uint64_t JOIN_WAIT_US = 2 * 1000000;
static const uint64_t JOIN_WAIT_US_MAX = 60 * 1000000;
static const uint64_t WRITE_US = 10 * 1000000; /* between two writes of the file */

/* ---- those who spoke ---- */

static struct crowding_contact *find_contact(struct crowding *crowding, const struct address *address) {
    for (size_t i = 0; i < crowding->contacts_count; i++) {
        if (address_equal(&crowding->contacts[i].peer.address, address)) {
            return &crowding->contacts[i];
        }
    }
    return NULL;
}

/* A free place, or that of who has been silent for longest. */
static struct crowding_contact *place_for_contact(struct crowding *crowding) {
    if (crowding->contacts_count < CROWDING_CONTACTS_MAX) {
        return &crowding->contacts[crowding->contacts_count++];
    }
    struct crowding_contact *oldest = &crowding->contacts[0];
    for (size_t i = 1; i < crowding->contacts_count; i++) {
        if (crowding->contacts[i].heard_at_us < oldest->heard_at_us) {
            oldest = &crowding->contacts[i];
        }
    }
    return oldest;
}

void crowding_hear(struct crowding *crowding, const struct peer *peer) {
    uint64_t now = crowding_now_us(crowding);
    pthread_mutex_lock(&crowding->lock);
    struct crowding_contact *contact = find_contact(crowding, &peer->address);
    bool is_known = contact != NULL && peer_equal(&contact->peer, peer);
    if (is_known) {
        contact->heard_at_us = now;
    } else if (!crowding_distrusts(crowding, peer)) {
        contact = contact != NULL ? contact : place_for_contact(crowding);
        *contact = (struct crowding_contact){.peer = *peer, .heard_at_us = now};
        crowding->contacts_changed = true;
    }
    pthread_mutex_unlock(&crowding->lock);
}

void crowding_beat(struct crowding *crowding) {
    struct peer peers[CROWDING_CONTACTS_MAX];
    uint64_t now = crowding_now_us(crowding);
    pthread_mutex_lock(&crowding->lock);
    bool is_due = crowding->contacts_changed && (now >= crowding->write_at_us || crowding->is_stopped);
    size_t count = crowding->contacts_count;
    for (size_t i = 0; i < count; i++) {
        peers[i] = crowding->contacts[i].peer;
    }
    if (is_due) {
        crowding->contacts_changed = false;
        crowding->write_at_us = now + WRITE_US;
    }
    pthread_mutex_unlock(&crowding->lock);
    if (is_due && crowding_files_write(crowding->config.directory, peers, count) != ERR_OK) {
        pthread_mutex_lock(&crowding->lock);
        crowding->contacts_changed = true; /* the disk is full or gone: tried again */
        pthread_mutex_unlock(&crowding->lock);
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

static void add_member(struct crowding *crowding, const struct peer *peer) {
    bool is_new = peer->address.port != 0 &&
                  !address_equal(&peer->address, &crowding->crowd_config.self.address) &&
                  !is_among(crowding->members, crowding->members_count, &peer->address);
    if (is_new && crowding->members_count < CROWD_CONTACTS_MAX) {
        crowding->members[crowding->members_count++] = *peer;
    }
}

/* At random, so that those who come at the same time do not all turn to the same; then our neighbours. */
static void look_for_members(struct crowding *crowding, const struct ring *ring) {
    uint32_t known_count = ring_known_count(ring);
    crowding->members_count = 0;
    for (size_t i = 0; i < PICKS_MAX && known_count > 0 && crowding->members_count < MEMBERS_SHARE; i++) {
        struct ring_known known = ring_known_at(ring, (uint32_t)prng_below(&crowding->prng, known_count));
        if (known.misses_count == 0) {
            add_member(crowding, &known.place.peer);
        }
    }
    for (uint8_t i = 0; i < ring_list_size(ring) && ring_is_member(ring, 0); i++) {
        const struct ring_place *successor = ring_successor(ring, 0, i);
        if (successor != NULL) {
            add_member(crowding, &successor->peer);
        }
    }
}

/* ---- joining ---- */

static size_t neighbours_wanted(const struct crowding *crowding) {
    size_t quarter = crowding->crowd_config.view_size / 4;
    return quarter > 0 ? quarter : 1;
}

struct contacts {
    struct peer peers[CROWD_CONTACTS_MAX];
    size_t count;
};

static void add_contact(struct crowding *crowding, const struct crowd_neighbour *view, size_t view_count,
                        const struct peer *peer, size_t count_max, struct contacts *contacts) {
    bool is_wanted =
        contacts->count < count_max && !is_among(contacts->peers, contacts->count, &peer->address);
    for (size_t i = 0; i < view_count && is_wanted; i++) {
        is_wanted = !address_equal(&view[i].peer.address, &peer->address);
    }
    pthread_mutex_lock(&crowding->lock);
    is_wanted = is_wanted && !crowding_distrusts(crowding, peer);
    pthread_mutex_unlock(&crowding->lock);
    if (is_wanted) {
        contacts->peers[contacts->count++] = *peer;
    }
}

/* Half of them of the ring, the others from those who spoke; who is in the view need not be asked. */
static void choose_contacts(struct crowding *crowding, const struct crowd_neighbour *view, size_t view_count,
                            struct contacts *contacts) {
    struct peer heard[PICKS_MAX];
    size_t heard_count = 0;
    pthread_mutex_lock(&crowding->lock);
    for (; heard_count < PICKS_MAX && crowding->contacts_count > 0; heard_count++) {
        heard[heard_count] = crowding->contacts[prng_below(&crowding->prng, crowding->contacts_count)].peer;
    }
    pthread_mutex_unlock(&crowding->lock);
    for (size_t i = 0; i < crowding->members_count; i++) {
        add_contact(crowding, view, view_count, &crowding->members[i], MEMBERS_SHARE, contacts);
    }
    for (size_t i = 0; i < heard_count; i++) {
        add_contact(crowding, view, view_count, &heard[i], CROWD_CONTACTS_MAX, contacts);
    }
}

/* It helped: at once again. It did not: they are gone or there are no more, wait longer. */
static void back_off(struct crowding *crowding, size_t view_count, uint64_t now) {
    bool has_helped = view_count > crowding->joined_with_count || crowding->join_wait_us == 0;
    uint64_t wait_us = has_helped ? JOIN_WAIT_US : 2 * crowding->join_wait_us;
    crowding->join_wait_us = wait_us < JOIN_WAIT_US_MAX ? wait_us : JOIN_WAIT_US_MAX;
    crowding->join_at_us = now + crowding->join_wait_us;
    crowding->joined_with_count = view_count;
}

void crowding_join(struct crowding *crowding) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct contacts contacts = {.count = 0};
    uint64_t now = crowding_now_us(crowding);
    size_t view_count = crowd_neighbours(crowding->crowd, view);
    if (view_count >= neighbours_wanted(crowding)) {
        crowding->join_wait_us = 0;
        return;
    }
    if (now < crowding->join_at_us) {
        return;
    }
    choose_contacts(crowding, view, view_count, &contacts);
    if (contacts.count == 0) {
        return;
    }
    back_off(crowding, view_count, now);
    pthread_mutex_lock(&crowding->lock);
    crowding->totals.rejoins_count++;
    pthread_mutex_unlock(&crowding->lock);
    struct event event = {.kind = EVENT_COMMAND, .code = CROWD_JOIN};
    event.bytes = crowd_write_contacts(contacts.peers, contacts.count, memory);
    crowding_step(crowding, &event);
}

void crowding_news(struct crowding *crowding, const struct ring *ring) {
    struct crowd_neighbour view[CROWD_VIEW_MAX];
    if (crowding->crowd == NULL || crowding->is_stopped) {
        return;
    }
    if (crowd_neighbours(crowding->crowd, view) < neighbours_wanted(crowding)) {
        look_for_members(crowding, ring);
    }
    crowding_join(crowding);
    crowding_repeat_spoiled(crowding);
    crowding_take_wants(crowding);
}
