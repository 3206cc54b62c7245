/* What other threads have put down for the loop: what people want, what is durable, what was transferred. */
#include <stdlib.h>

#include "node/group/grouping_state.h"

/* ---- what people want ---- */

static struct grouping_slot *find_by_name(struct grouping *grouping, const char *name) {
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        if (grouping->slots[i].is_used && strcmp(grouping->slots[i].wish.name, name) == 0) {
            return &grouping->slots[i];
        }
    }
    return NULL;
}

static struct grouping_slot *find_free(struct grouping *grouping) {
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        if (!grouping->slots[i].is_used) {
            return &grouping->slots[i];
        }
    }
    return NULL;
}

/* Who asked is named as he asked; of others the key is enough. */
static struct peer peer_of(const struct grouping *grouping, const struct grouping_slot *slot,
                           const uint8_t key[PEER_KEY_SIZE]) {
    struct peer peer = {.address = grouping->self.address};
    for (size_t i = 0; i < slot->asked_count; i++) {
        if (memcmp(slot->asked[i].peer.key, key, PEER_KEY_SIZE) == 0) {
            peer.address = slot->asked[i].peer.address;
        }
    }
    memcpy(peer.key, key, PEER_KEY_SIZE);
    return peer;
}

static void forget_asked(struct grouping_slot *slot, const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t i = slot->asked_count; i-- > 0;) {
        if (memcmp(slot->asked[i].peer.key, key, PEER_KEY_SIZE) == 0) {
            slot->asked[i] = slot->asked[--slot->asked_count];
        }
    }
}

static void command(struct grouping *grouping, struct grouping_slot *slot, enum group_command code,
                    const struct group_keys_list *keys, const struct group_keys_list *before) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    for (size_t i = 0; i < keys->count; i++) {
        if (before != NULL && group_keys_list_has(before, keys->keys[i])) {
            continue;
        }
        struct peer peer = peer_of(grouping, slot, keys->keys[i]);
        struct event event = {.kind = EVENT_COMMAND, .code = code};
        event.bytes = group_write_peer(&peer, bytes_of(NULL, 0), memory);
        forget_asked(slot, keys->keys[i]);
        grouping_step(grouping, slot, &event);
    }
}

void grouping_remove(struct grouping *grouping, struct grouping_slot *slot) {
    if (!slot->is_removed) {
        slot->is_removed = true;
        grouping_save_removal(grouping, slot);
        grouping_note(grouping, "group \"%s\": left", slot->wish.name);
    }
}

static void leave(struct grouping *grouping, struct grouping_slot *slot) {
    slot->ask_at_us = STEP_NEVER_US;
    if (slot->group == NULL || group_mode(slot->group) == GROUP_FIXED) {
        grouping_remove(grouping, slot);
        return;
    }
    grouping_step(grouping, slot, &(struct event){.kind = EVENT_COMMAND, .code = GROUP_LEAVE});
}

/* The founder's owner has changed them. Where another is master meanwhile, the founder takes over: others
 * know the rules that they were told when they joined, and a founder is believed. */
static void take_rules(struct grouping *grouping, struct grouping_slot *slot) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    const struct group_rules *rules = &slot->wish.rules;
    bool is_founder = memcmp(rules->founder, grouping->self.key, PEER_KEY_SIZE) == 0;
    bool is_same = rules->admission == slot->rules.admission && rules->generator == slot->rules.generator &&
                   rules->k == slot->rules.k;
    if (!is_founder || is_same || slot->group == NULL || group_mode(slot->group) == GROUP_FIXED) {
        return;
    }
    slot->rules = *rules;
    struct event event = {.kind = EVENT_COMMAND, .code = GROUP_RULES};
    event.bytes = group_write_rules(rules->admission == GROUP_ADMISSION_OPEN,
                                    (enum topology_kind)rules->generator, rules->k, memory);
    if (!group_is_master(slot->group)) {
        grouping_step(grouping, slot, &(struct event){.kind = EVENT_COMMAND, .code = GROUP_CLAIM});
    }
    grouping_step(grouping, slot, &event);
    grouping_note(grouping, "group \"%s\": %s, %s, k = %u from now on", slot->wish.name,
                  group_files_admissions[rules->admission], group_files_generators[rules->generator],
                  rules->k);
}

static void take_one(struct grouping *grouping, const struct grouping_news *news) {
    struct grouping_slot *slot = find_by_name(grouping, news->wish.name);
    if (news->is_gone) {
        if (slot != NULL) {
            grouping_close_slot(grouping, slot);
        }
        return;
    }
    struct group_wish before = {0};
    if (slot == NULL) {
        slot = find_free(grouping);
        ASSERT(slot != NULL); /* the beat counts them */
        grouping_open_slot(grouping, slot, news);
    } else {
        before = slot->wish;
        slot->wish = news->wish;
        take_rules(grouping, slot);
    }
    if (slot->group != NULL && group_mode(slot->group) != GROUP_FIXED) {
        command(grouping, slot, GROUP_APPROVE, &slot->wish.approved, &before.approved);
        command(grouping, slot, GROUP_REFUSE, &slot->wish.refused, &before.refused);
    }
    if (slot->wish.is_leaving && !before.is_leaving) {
        leave(grouping, slot);
    }
    grouping_show(grouping, slot, true);
}

/* ---- what was transferred ---- */

/* His address is that of his streams, perhaps; the topology knows the real one. */
static const struct peer *find_member(const struct group *group, const struct peer *peer) {
    const struct topology *topology = group_topology(group);
    for (uint32_t i = 0; topology != NULL && i < topology->members_count; i++) {
        if (memcmp(topology->members[i].key, peer->key, PEER_KEY_SIZE) == 0) {
            return &topology->members[i];
        }
    }
    return group_mode(group) == GROUP_FIXED ? peer : NULL;
}

static void take_learned(struct grouping *grouping, const struct grouping_learned *learned) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        struct grouping_slot *slot = &grouping->slots[i];
        bool has_group = slot->is_used && slot->group != NULL;
        const struct peer *member = has_group ? find_member(slot->group, &learned->peer) : NULL;
        if (member != NULL) {
            struct event event = {.kind = EVENT_COMMAND, .code = GROUP_PROBED};
            event.bytes = group_write_transfer(member, learned->size, learned->duration_us, memory);
            grouping_step(grouping, slot, &event);
        }
    }
}

void grouping_learned(struct grouping *grouping, const struct peer *peer, uint64_t size,
                      uint64_t duration_us) {
    if (size < ESTIMATE_TRANSFER_SIZE_MIN || !grouping->is_begun || grouping->is_stopped) {
        return;
    }
    pthread_mutex_lock(&grouping->lock);
    if (grouping->learned_count < GROUPING_LEARNED_MAX) {
        grouping->learned[grouping->learned_count++] =
            (struct grouping_learned){.peer = *peer, .size = size, .duration_us = duration_us};
    }
    pthread_mutex_unlock(&grouping->lock);
    grouping_hurry(grouping);
}

/* ---- what is durable ---- */

static void take_saved(struct grouping *grouping, const struct grouping_save *save) {
    struct grouping_slot *slot = find_by_name(grouping, save->name);
    if (slot != NULL && slot->life == save->life && slot->group != NULL && save->has_number) {
        struct event event = {.kind = EVENT_SAVED, .code = GROUP_SLOT, .number = save->number};
        grouping_step(grouping, slot, &event);
    }
}

void grouping_take_posts(void *context) {
    struct grouping *grouping = context;
    struct grouping_learned learned[GROUPING_LEARNED_MAX];
    if (grouping->is_stopped) {
        return;
    }
    pthread_mutex_lock(&grouping->lock);
    struct grouping_news *news = grouping->news;
    struct grouping_save *saved = grouping->saved;
    size_t learned_count = grouping->learned_count;
    memcpy(learned, grouping->learned, learned_count * sizeof *learned);
    grouping->news = NULL;
    grouping->news_end = &grouping->news;
    grouping->saved = NULL;
    grouping->learned_count = 0;
    pthread_mutex_unlock(&grouping->lock);
    while (saved != NULL) { /* the order does not matter: only the newest number counts */
        struct grouping_save *next = saved->next;
        take_saved(grouping, saved);
        free(saved);
        saved = next;
    }
    while (news != NULL) {
        struct grouping_news *next = news->next;
        take_one(grouping, news);
        free(news);
        news = next;
    }
    for (size_t i = 0; i < learned_count; i++) {
        take_learned(grouping, &learned[i]);
    }
    grouping_set_timer(grouping);
}
