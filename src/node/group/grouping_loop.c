/* The groups on the ring's loop: who has which slot, their steps and their time. */
#include <sodium.h>
#include <stdlib.h>

#include "net/datagram.h"
#include "net/identity.h"
#include "node/group/grouping_state.h"
#include "node/transport/ringing.h"

enum {
    ID_OFFSET = 2, /* in a message: behind version and kind (protocol/group/group_message.h) */
    US_PER_MS = 1000,
    PERIOD_MINUTES = 15, /* the paper's, as all that is reckoned from it */
    SILENCE_MINUTES = 60,
    GATHER_US_MIN = 100 * US_PER_MS,
};

#define SIGNATURE_CONTEXT "mnemon group 1"

/* ---- making ---- */

static void sign(void *context, struct bytes bytes, uint8_t signature[GROUP_SIGNATURE_SIZE]) {
    const struct grouping *grouping = context;
    identity_sign(ringing_identity(grouping->ringing), SIGNATURE_CONTEXT, bytes, signature);
}

static bool verify(void *context, const uint8_t key[PEER_KEY_SIZE], struct bytes bytes,
                   const uint8_t signature[GROUP_SIGNATURE_SIZE]) {
    (void)context;
    return identity_verify(key, SIGNATURE_CONTEXT, bytes, signature);
}

static uint64_t or_minutes(uint64_t value_us, uint64_t minutes) {
    return value_us > 0 ? value_us : minutes * 60 * 1000 * US_PER_MS;
}

static uint64_t at_least(uint64_t value_us, uint64_t min_us) {
    return value_us > min_us ? value_us : min_us;
}

/* With the defaults of the settings, those of group.h come out. */
static void set_times(const struct grouping_config *from, struct group_config *config) {
    uint64_t period_us = or_minutes(from->period_us, PERIOD_MINUTES);
    uint64_t silence_us = or_minutes(from->silence_us, SILENCE_MINUTES);
    config->echo_us = period_us;
    config->report_us = 2 * period_us;
    config->probe_us = 4 * period_us;
    config->compute_us = 4 * period_us;
    config->slowing_us = 6 * period_us;
    config->fast_us = at_least(period_us / 90, GATHER_US_MIN);
    config->gather_us = at_least(period_us / 180, GATHER_US_MIN);
    config->silence_us = silence_us;
    config->master_silence_us = silence_us / 4;
    config->pulse_us = silence_us / 12;
    config->order_us = at_least(silence_us / 120, GATHER_US_MIN);
    config->probe_size = from->probe_size;
}

static enum err make_group(struct grouping *grouping, struct grouping_slot *slot) {
    struct group_config config = {
        .self = grouping->self,
        .signer = {.context = grouping, .sign = sign, .verify = verify},
        .is_open = slot->rules.admission == GROUP_ADMISSION_OPEN,
        .kind = (enum topology_kind)slot->rules.generator,
        .connectivity = slot->rules.k,
        .neighbours = slot->wish.neighbours,
        .neighbours_count = (uint16_t)slot->wish.neighbours_count,
    };
    set_times(&grouping->config, &config);
    group_files_id(bytes_of_string(slot->wish.name), slot->rules.founder, &grouping->sha256, slot->id);
    memcpy(config.id, slot->id, sizeof config.id);
    memcpy(config.founder, slot->rules.founder, PEER_KEY_SIZE);
    randombytes_buf(&config.seed, sizeof config.seed);
    return group_new(&config, &slot->group);
}

/* ---- steps ---- */

static void step_once(struct grouping *grouping, struct grouping_slot *slot, struct event *event) {
    struct outbox *out = &grouping->out;
    event->now_us = grouping_now_us(grouping);
    outbox_clear(out);
    group_step(slot->group, event, out);
    slot->wake_at_us = out->wake_at_us;
    for (size_t i = 0; i < out->actions_count; i++) {
        const struct action *action = &out->actions[i];
        struct peer to = {.address = action->to};
        switch (action->kind) {
        case ACTION_SEND:
            memcpy(to.key, action->to_key, PEER_KEY_SIZE);
            ringing_send(grouping->ringing, &to, DATAGRAM_GROUP, action->bytes);
            break;
        case ACTION_SAVE:
            grouping_save(grouping, slot, &action->number, action->bytes);
            break;
        case ACTION_NOTICE:
            grouping_on_notice(grouping, slot, action);
            break;
        }
    }
}

void grouping_step(struct grouping *grouping, struct grouping_slot *slot, struct event *event) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    enum group_mode mode = group_mode(slot->group);
    step_once(grouping, slot, event);
    while (slot->approvals_count > 0) {
        struct peer peer = slot->approvals[--slot->approvals_count];
        struct event approval = {.kind = EVENT_COMMAND, .code = GROUP_APPROVE};
        approval.bytes = group_write_peer(&peer, bytes_of(NULL, 0), memory);
        step_once(grouping, slot, &approval);
    }
    grouping_show(grouping, slot, group_mode(slot->group) != mode);
}

void grouping_set_timer(struct grouping *grouping) {
    uint64_t at_us = STEP_NEVER_US;
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        const struct grouping_slot *slot = &grouping->slots[i];
        if (slot->is_used) {
            at_us = slot->wake_at_us < at_us ? slot->wake_at_us : at_us;
            at_us = slot->ask_at_us < at_us ? slot->ask_at_us : at_us;
        }
    }
    ringing_wake_at(grouping->ringing, RINGING_GROUPS, at_us);
}

/* ---- slots ---- */

static bool is_founder(const struct grouping *grouping, const struct grouping_slot *slot) {
    return memcmp(slot->rules.founder, grouping->self.key, PEER_KEY_SIZE) == 0;
}

static bool has_founder(const struct grouping_slot *slot) {
    static const uint8_t none[PEER_KEY_SIZE];
    return memcmp(slot->rules.founder, none, PEER_KEY_SIZE) != 0;
}

/* False: without memory. */
static bool start_group(struct grouping *grouping, struct grouping_slot *slot, struct bytes document) {
    if (make_group(grouping, slot) != ERR_OK) {
        grouping_note(grouping, "group \"%s\": %s", slot->wish.name, err_text(ERR_MEMORY));
        return false;
    }
    if (document.size > 0) {
        struct event restored = {.kind = EVENT_RESTORED, .code = GROUP_SLOT, .bytes = document};
        grouping_step(grouping, slot, &restored);
    }
    grouping_step(grouping, slot, &(struct event){.kind = EVENT_START});
    return true;
}

void grouping_open_slot(struct grouping *grouping, struct grouping_slot *slot,
                        const struct grouping_news *news) {
    uint32_t life = slot->life + 1;
    bool is_restored = news->has_state && news->state.document_size > 0;
    struct topology *topology = slot->topology;
    pthread_mutex_lock(&grouping->lock);
    *slot = (struct grouping_slot){.is_used = true,
                                   .life = life,
                                   .wish = news->wish,
                                   .rules = news->wish.rules,
                                   .wake_at_us = STEP_NEVER_US,
                                   .ask_at_us = STEP_NEVER_US,
                                   .topology = topology};
    pthread_mutex_unlock(&grouping->lock);
    if (!has_founder(slot) && news->has_state) {
        slot->rules = news->state.rules;
    }
    bool is_known = has_founder(slot) || slot->wish.neighbours_count > 0;
    if (is_known &&
        !start_group(grouping, slot,
                     bytes_of(news->state.document, is_restored ? news->state.document_size : 0))) {
        return;
    }
    if (is_known && group_mode(slot->group) == GROUP_IDLE && is_founder(grouping, slot) && !news->has_state) {
        grouping_step(grouping, slot, &(struct event){.kind = EVENT_COMMAND, .code = GROUP_CREATE});
    }
    if (slot->wish.contact.port != 0 && (!is_known || group_mode(slot->group) == GROUP_IDLE)) {
        slot->ask_at_us = 0;
    }
    grouping_show(grouping, slot, true);
}

void grouping_close_slot(struct grouping *grouping, struct grouping_slot *slot) {
    grouping_hide(grouping, slot);
    group_free(slot->group);
    slot->group = NULL;
    slot->is_used = false;
}

/* The contact has spoken: the rules are those of the slot. */
void grouping_found(struct grouping *grouping, struct grouping_slot *slot, const struct peer *contact) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    uint8_t papers[GROUP_PAPERS_SIZE_MAX];
    if (slot->group == NULL) {
        grouping_save(grouping, slot, NULL, bytes_of(NULL, 0));
        if (!start_group(grouping, slot, bytes_of(NULL, 0))) {
            return;
        }
    }
    struct event join = {.kind = EVENT_COMMAND, .code = GROUP_JOIN};
    join.bytes = group_write_peer(contact, grouping_write_papers(grouping, slot, papers), memory);
    grouping_step(grouping, slot, &join);
}

/* ---- what comes ---- */

static struct grouping_slot *find_by_id(struct grouping *grouping, struct bytes id) {
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        struct grouping_slot *slot = &grouping->slots[i];
        if (slot->is_used && slot->group != NULL && bytes_equal(id, bytes_of(slot->id, GROUP_ID_SIZE))) {
            return slot;
        }
    }
    return NULL;
}

void grouping_receive(struct grouping *grouping, const struct datagram_message *message) {
    struct bytes bytes = message->bytes;
    if (!grouping->is_begun || grouping->is_stopped || grouping_ask_receive(grouping, message) ||
        bytes.size < ID_OFFSET + GROUP_ID_SIZE) {
        return;
    }
    struct grouping_slot *slot =
        find_by_id(grouping, bytes_slice(bytes, ID_OFFSET, ID_OFFSET + GROUP_ID_SIZE));
    if (slot == NULL || slot->is_removed) {
        return; /* of a group that we are not in: nobody's fault */
    }
    struct event event = {.kind = EVENT_MESSAGE, .from = message->from.address, .bytes = bytes};
    memcpy(event.from_key, message->from.key, PEER_KEY_SIZE);
    grouping_step(grouping, slot, &event);
    grouping_set_timer(grouping);
}

void grouping_wake(struct grouping *grouping) {
    if (!grouping->is_begun || grouping->is_stopped) {
        return;
    }
    for (size_t i = 0; i < GROUPING_GROUPS_MAX; i++) {
        struct grouping_slot *slot = &grouping->slots[i];
        uint64_t now_us = grouping_now_us(grouping);
        if (slot->is_used && slot->group != NULL && now_us >= slot->wake_at_us) {
            grouping_step(grouping, slot, &(struct event){.kind = EVENT_WAKE});
        }
        if (slot->is_used && now_us >= slot->ask_at_us) {
            grouping_ask(grouping, slot);
        }
    }
    grouping_set_timer(grouping);
}
