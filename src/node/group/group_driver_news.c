/* What other threads have put down for the loop: what people want, what is durable, what was transferred. */
#include <stdlib.h>

#include "node/group/group_driver_state.h"

/* ---- what people want ---- */

static struct group_driver_slot *find_by_name(struct group_driver *group_driver, const char *name) {
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        if (group_driver->slots[i].is_used && strcmp(group_driver->slots[i].wish.name, name) == 0) {
            return &group_driver->slots[i];
        }
    }
    return NULL;
}

static struct group_driver_slot *find_free(struct group_driver *group_driver) {
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        if (!group_driver->slots[i].is_used) {
            return &group_driver->slots[i];
        }
    }
    return NULL;
}

/* Who asked is named as he asked; of others the key is enough. */
static struct peer peer_of(const struct group_driver *group_driver, const struct group_driver_slot *slot,
                           const uint8_t key[PEER_KEY_SIZE]) {
    struct peer peer = {.address = group_driver->self.address};
    for (size_t i = 0; i < slot->asked_count; i++) {
        if (memcmp(slot->asked[i].peer.key, key, PEER_KEY_SIZE) == 0) {
            peer.address = slot->asked[i].peer.address;
        }
    }
    memcpy(peer.key, key, PEER_KEY_SIZE);
    return peer;
}

static void forget_asked(struct group_driver_slot *slot, const uint8_t key[PEER_KEY_SIZE]) {
    for (size_t i = slot->asked_count; i-- > 0;) {
        if (memcmp(slot->asked[i].peer.key, key, PEER_KEY_SIZE) == 0) {
            slot->asked[i] = slot->asked[--slot->asked_count];
        }
    }
}

static void command(struct group_driver *group_driver, struct group_driver_slot *slot,
                    enum group_command code, const struct group_keys_list *keys,
                    const struct group_keys_list *before) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    for (size_t i = 0; i < keys->count; i++) {
        if (before != NULL && group_keys_list_has(before, keys->keys[i])) {
            continue;
        }
        struct peer peer = peer_of(group_driver, slot, keys->keys[i]);
        struct event event = {.kind = EVENT_COMMAND, .code = code};
        event.bytes = group_write_peer(&peer, bytes_of(NULL, 0), memory);
        forget_asked(slot, keys->keys[i]);
        group_driver_step(group_driver, slot, &event);
    }
}

void group_driver_remove(struct group_driver *group_driver, struct group_driver_slot *slot) {
    if (!slot->is_removed) {
        slot->is_removed = true;
        group_driver_save_removal(group_driver, slot);
        group_driver_note(group_driver, "group \"%s\": left", slot->wish.name);
    }
}

static void leave(struct group_driver *group_driver, struct group_driver_slot *slot) {
    slot->ask.due_us = STEP_NEVER_US;
    if (slot->group == NULL || group_mode(slot->group) == GROUP_FIXED) {
        group_driver_remove(group_driver, slot);
        return;
    }
    group_driver_step(group_driver, slot, &(struct event){.kind = EVENT_COMMAND, .code = GROUP_LEAVE});
}

/* The founder's owner has changed them. Where another is master meanwhile, the founder takes over: others
 * know the rules that they were told when they joined, and a founder is believed. */
static void take_rules(struct group_driver *group_driver, struct group_driver_slot *slot) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    const struct group_rules *rules = &slot->wish.rules;
    bool is_founder = memcmp(rules->founder, group_driver->self.key, PEER_KEY_SIZE) == 0;
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
        group_driver_step(group_driver, slot, &(struct event){.kind = EVENT_COMMAND, .code = GROUP_CLAIM});
    }
    group_driver_step(group_driver, slot, &event);
    group_driver_note(group_driver, "group \"%s\": %s, %s, k = %u from now on", slot->wish.name,
                      group_files_admissions[rules->admission], group_files_generators[rules->generator],
                      rules->k);
}

static void take_one(struct group_driver *group_driver, const struct group_driver_news *news) {
    struct group_driver_slot *slot = find_by_name(group_driver, news->wish.name);
    if (news->is_gone) {
        if (slot != NULL) {
            group_driver_close_slot(group_driver, slot);
        }
        return;
    }
    struct group_wish before = {0};
    if (slot == NULL) {
        slot = find_free(group_driver);
        ASSERT(slot != NULL); /* the beat counts them */
        group_driver_open_slot(group_driver, slot, news);
    } else {
        before = slot->wish;
        slot->wish = news->wish;
        take_rules(group_driver, slot);
    }
    if (slot->group != NULL && group_mode(slot->group) != GROUP_FIXED) {
        command(group_driver, slot, GROUP_APPROVE, &slot->wish.approved, &before.approved);
        command(group_driver, slot, GROUP_REFUSE, &slot->wish.refused, &before.refused);
    }
    if (slot->wish.is_leaving && !before.is_leaving) {
        leave(group_driver, slot);
    }
    group_driver_show(group_driver, slot, true);
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

static void take_learned(struct group_driver *group_driver, const struct group_driver_learned *learned) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        struct group_driver_slot *slot = &group_driver->slots[i];
        bool has_group = slot->is_used && slot->group != NULL;
        const struct peer *member = has_group ? find_member(slot->group, &learned->peer) : NULL;
        if (member != NULL) {
            struct event event = {.kind = EVENT_COMMAND, .code = GROUP_PROBED};
            event.bytes = group_write_transfer(member, learned->size, learned->duration_us, memory);
            group_driver_step(group_driver, slot, &event);
        }
    }
}

void group_driver_learned(struct group_driver *group_driver, const struct peer *peer, uint64_t size,
                          uint64_t duration_us) {
    if (size < ESTIMATE_TRANSFER_SIZE_MIN || !group_driver->is_begun || group_driver->is_stopped) {
        return;
    }
    pthread_mutex_lock(&group_driver->lock);
    if (group_driver->learned_count < GROUP_DRIVER_LEARNED_MAX) {
        group_driver->learned[group_driver->learned_count++] =
            (struct group_driver_learned){.peer = *peer, .size = size, .duration_us = duration_us};
    }
    pthread_mutex_unlock(&group_driver->lock);
    group_driver_hurry(group_driver);
}

/* ---- what is durable ---- */

static void take_saved(struct group_driver *group_driver, const struct group_driver_save *save) {
    struct group_driver_slot *slot = find_by_name(group_driver, save->name);
    if (slot != NULL && slot->life == save->life && slot->group != NULL && save->has_number) {
        struct event event = {.kind = EVENT_SAVED, .code = GROUP_SLOT, .number = save->number};
        group_driver_step(group_driver, slot, &event);
    }
}

void group_driver_take_posts(void *context) {
    struct group_driver *group_driver = context;
    struct group_driver_learned learned[GROUP_DRIVER_LEARNED_MAX];
    if (group_driver->is_stopped) {
        return;
    }
    pthread_mutex_lock(&group_driver->lock);
    struct group_driver_news *news = group_driver->news;
    struct group_driver_save *saved = group_driver->saved;
    size_t learned_count = group_driver->learned_count;
    memcpy(learned, group_driver->learned, learned_count * sizeof *learned);
    group_driver->news = NULL;
    group_driver->news_end = &group_driver->news;
    group_driver->saved = NULL;
    group_driver->learned_count = 0;
    pthread_mutex_unlock(&group_driver->lock);
    while (saved != NULL) { /* the order does not matter: only the newest number counts */
        struct group_driver_save *next = saved->next;
        take_saved(group_driver, saved);
        free(saved);
        saved = next;
    }
    while (news != NULL) {
        struct group_driver_news *next = news->next;
        take_one(group_driver, news);
        free(news);
        news = next;
    }
    for (size_t i = 0; i < learned_count; i++) {
        take_learned(group_driver, &learned[i]);
    }
    group_driver_set_timer(group_driver);
}
