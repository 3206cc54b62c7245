/* What other threads see of the groups: copies, made by the loop. */
#include <stdlib.h>

#include "node/group/group_driver_state.h"

static const uint64_t COPY_US = 250000;

/* ---- the loop ---- */

/* The lock is held. */
static void put_member(struct group_driver *group_driver, const struct peer *peer) {
    if (map_reserve(&group_driver->members, group_driver->members.count + 1) == ERR_OK) {
        map_put(&group_driver->members, bytes_of(peer->key, PEER_KEY_SIZE));
    } /* else he is refused, and asks again */
}

/* The lock is held. */
static void note_members(struct group_driver *group_driver) {
    map_clear(&group_driver->members);
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        const struct group_driver_slot *slot = &group_driver->slots[i];
        const struct group *group = slot->is_shown ? slot->group : NULL;
        const struct topology *topology = group != NULL ? group_topology(group) : NULL;
        for (uint32_t m = 0; topology != NULL && m < topology->members_count; m++) {
            put_member(group_driver, &topology->members[m]);
        }
        for (size_t n = 0; group != NULL && n < slot->wish.neighbours_count; n++) {
            put_member(group_driver, &slot->wish.neighbours[n]);
        }
    }
}

/* The lock is held. */
static void copy_topology(struct group_driver_slot *slot) {
    const struct topology *topology = group_topology(slot->group);
    slot->topology = slot->topology != NULL ? slot->topology : calloc(1, sizeof *slot->topology);
    if (slot->topology != NULL && topology != NULL) {
        *slot->topology = *topology;
    } else if (slot->topology != NULL) {
        slot->topology->members_count = 0;
    }
}

static bool has_changed(const struct group_driver_slot *slot) {
    const struct group_driver_view *view = &slot->view;
    const struct group *group = slot->group;
    const struct topology *topology = group_topology(group);
    return !slot->is_shown || view->mode != group_mode(group) || view->term != group_term(group) ||
           view->sequence != group_sequence(group) ||
           (slot->topology != NULL && topology == NULL && slot->topology->members_count > 0);
}

void group_driver_show(struct group_driver *group_driver, struct group_driver_slot *slot, bool is_now) {
    uint64_t now_us = group_driver_now_us(group_driver);
    struct group_driver_view view = {
        .rules = slot->rules, .is_refused = slot->is_refused, .is_leaving = slot->wish.is_leaving};
    if (!is_now && now_us < slot->copy_at_us) {
        return;
    }
    slot->copy_at_us = now_us + COPY_US;
    memcpy(view.name, slot->wish.name, sizeof view.name);
    view.asked_count = slot->asked_count;
    memcpy(view.asked, slot->asked, sizeof view.asked);
    view.mode = GROUP_JOINING;
    if (slot->group != NULL) {
        view.mode = group_mode(slot->group);
        view.is_master = group_is_master(slot->group);
        view.term = group_term(slot->group);
        view.sequence = group_sequence(slot->group);
        view.counters = *group_counters(slot->group);
        view.neighbours_count = group_neighbours(slot->group, view.neighbours, GROUP_DRIVER_NEIGHBOURS_MAX);
    }
    pthread_mutex_lock(&group_driver->lock);
    bool is_other = slot->group != NULL && has_changed(slot);
    slot->is_shown = true;
    slot->view = view;
    if (is_other) {
        copy_topology(slot);
        note_members(group_driver);
    }
    pthread_mutex_unlock(&group_driver->lock);
}

void group_driver_hide(struct group_driver *group_driver, struct group_driver_slot *slot) {
    pthread_mutex_lock(&group_driver->lock);
    slot->is_shown = false;
    note_members(group_driver);
    if (slot->topology != NULL) {
        slot->topology->members_count = 0;
    }
    pthread_mutex_unlock(&group_driver->lock);
}

/* ---- any thread ---- */

bool group_driver_is_member(struct group_driver *group_driver, const struct peer *peer) {
    pthread_mutex_lock(&group_driver->lock);
    bool is_member = map_get(&group_driver->members, bytes_of(peer->key, PEER_KEY_SIZE)) != NULL;
    pthread_mutex_unlock(&group_driver->lock);
    return is_member;
}

static bool is_there(const struct group_driver_neighbour *all, size_t count, const struct peer *peer) {
    for (size_t i = 0; i < count; i++) {
        if (memcmp(all[i].peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

size_t group_driver_neighbours(struct group_driver *group_driver,
                               struct group_driver_neighbour out[GROUP_DRIVER_NEIGHBOURS_MAX]) {
    size_t count = 0;
    pthread_mutex_lock(&group_driver->lock);
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        const struct group_driver_slot *slot = &group_driver->slots[i];
        size_t neighbours_count = slot->is_shown ? slot->view.neighbours_count : 0;
        for (size_t n = 0; n < neighbours_count && count < GROUP_DRIVER_NEIGHBOURS_MAX; n++) {
            const struct group_neighbour *neighbour = &slot->view.neighbours[n];
            if (!is_there(out, count, &neighbour->peer)) {
                out[count] = (struct group_driver_neighbour){.peer = neighbour->peer,
                                                             .bandwidth = neighbour->bandwidth,
                                                             .delay_us = neighbour->round_trip_us};
                memcpy(out[count++].group, slot->view.name, sizeof slot->view.name);
            }
        }
    }
    pthread_mutex_unlock(&group_driver->lock);
    return count;
}
