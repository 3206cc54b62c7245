/* What other threads see of the groups: copies, made by the loop. */
#include <stdlib.h>

#include "node/group/grouping_state.h"

static const uint64_t COPY_US = 250000;

/* ---- the loop ---- */

/* The lock is held. */
static void put_member(struct grouping *grouping, const struct peer *peer) {
    if (map_reserve(&grouping->members, grouping->members.count + 1) == ERR_OK) {
        map_put(&grouping->members, bytes_of(peer->key, PEER_KEY_SIZE));
    } /* else he is refused, and asks again */
}

/* The lock is held. */
static void note_members(struct grouping *grouping) {
    map_clear(&grouping->members);
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        const struct grouping_slot *slot = &grouping->slots[i];
        const struct group *group = slot->is_shown ? slot->group : NULL;
        const struct topology *topology = group != NULL ? group_topology(group) : NULL;
        for (uint32_t m = 0; topology != NULL && m < topology->members_count; m++) {
            put_member(grouping, &topology->members[m]);
        }
        for (size_t n = 0; group != NULL && n < slot->wish.neighbours_count; n++) {
            put_member(grouping, &slot->wish.neighbours[n]);
        }
    }
}

/* The lock is held. */
static void copy_topology(struct grouping_slot *slot) {
    const struct topology *topology = group_topology(slot->group);
    slot->topology = slot->topology != NULL ? slot->topology : calloc(1, sizeof *slot->topology);
    if (slot->topology != NULL && topology != NULL) {
        *slot->topology = *topology;
    } else if (slot->topology != NULL) {
        slot->topology->members_count = 0;
    }
}

static bool has_changed(const struct grouping_slot *slot) {
    const struct grouping_view *view = &slot->view;
    const struct group *group = slot->group;
    const struct topology *topology = group_topology(group);
    return !slot->is_shown || view->mode != group_mode(group) || view->term != group_term(group) ||
           view->sequence != group_sequence(group) ||
           (slot->topology != NULL && topology == NULL && slot->topology->members_count > 0);
}

void grouping_show(struct grouping *grouping, struct grouping_slot *slot, bool is_now) {
    uint64_t now_us = grouping_now_us(grouping);
    struct grouping_view view = {
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
        view.neighbours_count = group_neighbours(slot->group, view.neighbours, GROUPING_NEIGHBOURS_MAX);
    }
    pthread_mutex_lock(&grouping->lock);
    bool is_other = slot->group != NULL && has_changed(slot);
    slot->is_shown = true;
    slot->view = view;
    if (is_other) {
        copy_topology(slot);
        note_members(grouping);
    }
    pthread_mutex_unlock(&grouping->lock);
}

void grouping_hide(struct grouping *grouping, struct grouping_slot *slot) {
    pthread_mutex_lock(&grouping->lock);
    slot->is_shown = false;
    note_members(grouping);
    if (slot->topology != NULL) {
        slot->topology->members_count = 0;
    }
    pthread_mutex_unlock(&grouping->lock);
}

/* ---- any thread ---- */

bool grouping_is_member(struct grouping *grouping, const struct peer *peer) {
    pthread_mutex_lock(&grouping->lock);
    bool is_member = map_get(&grouping->members, bytes_of(peer->key, PEER_KEY_SIZE)) != NULL;
    pthread_mutex_unlock(&grouping->lock);
    return is_member;
}

static bool is_there(const struct grouping_neighbour *all, size_t count, const struct peer *peer) {
    for (size_t i = 0; i < count; i++) {
        if (memcmp(all[i].peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

size_t grouping_neighbours(struct grouping *grouping,
                           struct grouping_neighbour out[GROUPING_NEIGHBOURS_MAX]) {
    size_t count = 0;
    pthread_mutex_lock(&grouping->lock);
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        const struct grouping_slot *slot = &grouping->slots[i];
        size_t neighbours_count = slot->is_shown ? slot->view.neighbours_count : 0;
        for (size_t n = 0; n < neighbours_count && count < GROUPING_NEIGHBOURS_MAX; n++) {
            const struct group_neighbour *neighbour = &slot->view.neighbours[n];
            if (!is_there(out, count, &neighbour->peer)) {
                out[count] = (struct grouping_neighbour){.peer = neighbour->peer,
                                                         .bandwidth = neighbour->bandwidth,
                                                         .delay_us = neighbour->round_trip_us};
                memcpy(out[count++].group, slot->view.name, sizeof slot->view.name);
            }
        }
    }
    pthread_mutex_unlock(&grouping->lock);
    return count;
}
