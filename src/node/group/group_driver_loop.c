/* The groups on the ring's loop: who has which slot, their steps and their time. */
#include <sodium.h>
#include <stdlib.h>

#include "net/datagram.h"
#include "net/identity.h"
#include "node/group/group_driver_state.h"
#include "node/transport/transport.h"

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
    const struct group_driver *group_driver = context;
    identity_sign(transport_identity(group_driver->transport), SIGNATURE_CONTEXT, bytes, signature);
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
static void set_times(const struct group_driver_config *from, struct group_config *config) {
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

static enum err make_group(struct group_driver *group_driver, struct group_driver_slot *slot) {
    struct group_config config = {
        .self = group_driver->self,
        .signer = {.context = group_driver, .sign = sign, .verify = verify},
        .is_open = slot->rules.admission == GROUP_ADMISSION_OPEN,
        .kind = (enum topology_kind)slot->rules.generator,
        .connectivity = slot->rules.k,
        .neighbours = slot->wish.neighbours,
        .neighbours_count = (uint16_t)slot->wish.neighbours_count,
    };
    set_times(&group_driver->config, &config);
    group_files_id(bytes_of_string(slot->wish.name), slot->rules.founder, &group_driver->sha256, slot->id);
    memcpy(config.id, slot->id, sizeof config.id);
    memcpy(config.founder, slot->rules.founder, PEER_KEY_SIZE);
    randombytes_buf(&config.seed, sizeof config.seed);
    return group_new(&config, &slot->group);
}

/* ---- steps ---- */

static void step_once(struct group_driver *group_driver, struct group_driver_slot *slot,
                      struct event *event) {
    struct outbox *out = &group_driver->out;
    event->now_us = group_driver_now_us(group_driver);
    outbox_clear(out);
    group_step(slot->group, event, out);
    slot->wake_at_us = out->wake_at_us;
    for (size_t i = 0; i < out->actions_count; i++) {
        const struct action *action = &out->actions[i];
        struct peer to = {.address = action->to};
        switch (action->kind) {
        case ACTION_SEND:
            memcpy(to.key, action->to_key, PEER_KEY_SIZE);
            transport_send(group_driver->transport, &to, DATAGRAM_GROUP, action->bytes);
            break;
        case ACTION_SAVE:
            group_driver_save(group_driver, slot, &action->number, action->bytes);
            break;
        case ACTION_NOTICE:
            group_driver_on_notice(group_driver, slot, action);
            break;
        }
    }
}

void group_driver_step(struct group_driver *group_driver, struct group_driver_slot *slot,
                       struct event *event) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    enum group_mode mode = group_mode(slot->group);
    step_once(group_driver, slot, event);
    while (slot->approvals_count > 0) {
        struct peer peer = slot->approvals[--slot->approvals_count];
        struct event approval = {.kind = EVENT_COMMAND, .code = GROUP_APPROVE};
        approval.bytes = group_write_peer(&peer, bytes_of(NULL, 0), memory);
        step_once(group_driver, slot, &approval);
    }
    group_driver_show(group_driver, slot, group_mode(slot->group) != mode);
}

void group_driver_set_timer(struct group_driver *group_driver) {
    uint64_t at_us = STEP_NEVER_US;
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        const struct group_driver_slot *slot = &group_driver->slots[i];
        if (slot->is_used) {
            at_us = slot->wake_at_us < at_us ? slot->wake_at_us : at_us;
            at_us = slot->ask.due_us < at_us ? slot->ask.due_us : at_us;
        }
    }
    transport_wake_at(group_driver->transport, DATAGRAM_GROUP, at_us);
}

/* ---- slots ---- */

static bool is_founder(const struct group_driver *group_driver, const struct group_driver_slot *slot) {
    return memcmp(slot->rules.founder, group_driver->self.key, PEER_KEY_SIZE) == 0;
}

static bool has_founder(const struct group_driver_slot *slot) {
    static const uint8_t none[PEER_KEY_SIZE];
    return memcmp(slot->rules.founder, none, PEER_KEY_SIZE) != 0;
}

/* False: without memory. */
static bool start_group(struct group_driver *group_driver, struct group_driver_slot *slot,
                        struct bytes document) {
    if (make_group(group_driver, slot) != ERR_OK) {
        group_driver_note(group_driver, "group \"%s\": %s", slot->wish.name, err_text(ERR_MEMORY));
        return false;
    }
    if (document.size > 0) {
        struct event restored = {.kind = EVENT_RESTORED, .code = GROUP_SLOT, .bytes = document};
        group_driver_step(group_driver, slot, &restored);
    }
    group_driver_step(group_driver, slot, &(struct event){.kind = EVENT_START});
    return true;
}

void group_driver_open_slot(struct group_driver *group_driver, struct group_driver_slot *slot,
                            const struct group_driver_news *news) {
    uint32_t life = slot->life + 1;
    bool is_restored = news->has_state && news->state.document_size > 0;
    struct topology *topology = slot->topology;
    pthread_mutex_lock(&group_driver->lock);
    *slot = (struct group_driver_slot){.is_used = true,
                                       .life = life,
                                       .wish = news->wish,
                                       .rules = news->wish.rules,
                                       .wake_at_us = STEP_NEVER_US,
                                       .ask.due_us = STEP_NEVER_US,
                                       .topology = topology};
    pthread_mutex_unlock(&group_driver->lock);
    if (!has_founder(slot) && news->has_state) {
        slot->rules = news->state.rules;
    }
    bool is_known = has_founder(slot) || slot->wish.neighbours_count > 0;
    if (is_known &&
        !start_group(group_driver, slot,
                     bytes_of(news->state.document, is_restored ? news->state.document_size : 0))) {
        return;
    }
    if (is_known && group_mode(slot->group) == GROUP_IDLE && is_founder(group_driver, slot) &&
        !news->has_state) {
        group_driver_step(group_driver, slot, &(struct event){.kind = EVENT_COMMAND, .code = GROUP_CREATE});
    }
    if (slot->wish.contact.port != 0 && (!is_known || group_mode(slot->group) == GROUP_IDLE)) {
        slot->ask.due_us = 0;
    }
    group_driver_show(group_driver, slot, true);
}

void group_driver_close_slot(struct group_driver *group_driver, struct group_driver_slot *slot) {
    group_driver_hide(group_driver, slot);
    group_free(slot->group);
    slot->group = NULL;
    slot->is_used = false;
}

/* The contact has spoken: the rules are those of the slot. */
void group_driver_found(struct group_driver *group_driver, struct group_driver_slot *slot,
                        const struct peer *contact) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    uint8_t papers[GROUP_PAPERS_SIZE_MAX];
    if (slot->group == NULL) {
        group_driver_save(group_driver, slot, NULL, bytes_of(NULL, 0));
        if (!start_group(group_driver, slot, bytes_of(NULL, 0))) {
            return;
        }
    }
    struct event join = {.kind = EVENT_COMMAND, .code = GROUP_JOIN};
    join.bytes = group_write_peer(contact, group_driver_write_papers(group_driver, slot, papers), memory);
    group_driver_step(group_driver, slot, &join);
}

/* ---- what comes ---- */

static struct group_driver_slot *find_by_id(struct group_driver *group_driver, struct bytes id) {
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        struct group_driver_slot *slot = &group_driver->slots[i];
        if (slot->is_used && slot->group != NULL && bytes_equal(id, bytes_of(slot->id, GROUP_ID_SIZE))) {
            return slot;
        }
    }
    return NULL;
}

void group_driver_receive(struct group_driver *group_driver, const struct datagram_message *message) {
    struct bytes bytes = message->bytes;
    if (!group_driver->is_begun || group_driver->is_stopped ||
        group_driver_ask_receive(group_driver, message) || bytes.size < ID_OFFSET + GROUP_ID_SIZE) {
        return;
    }
    struct group_driver_slot *slot =
        find_by_id(group_driver, bytes_slice(bytes, ID_OFFSET, ID_OFFSET + GROUP_ID_SIZE));
    if (slot == NULL || slot->is_removed) {
        return; /* of a group that we are not in: nobody's fault */
    }
    struct event event = {.kind = EVENT_MESSAGE, .from = message->from.address, .bytes = bytes};
    memcpy(event.from_key, message->from.key, PEER_KEY_SIZE);
    group_driver_step(group_driver, slot, &event);
    group_driver_set_timer(group_driver);
}

void group_driver_wake(struct group_driver *group_driver) {
    if (!group_driver->is_begun || group_driver->is_stopped) {
        return;
    }
    for (size_t i = 0; i < GROUP_DRIVER_GROUPS_MAX; i++) {
        struct group_driver_slot *slot = &group_driver->slots[i];
        uint64_t now_us = group_driver_now_us(group_driver);
        if (slot->is_used && slot->group != NULL && now_us >= slot->wake_at_us) {
            group_driver_step(group_driver, slot, &(struct event){.kind = EVENT_WAKE});
        }
        if (slot->is_used && retry_is_due(&slot->ask, now_us)) {
            group_driver_ask(group_driver, slot);
        }
    }
    group_driver_set_timer(group_driver);
}
