#include "base/step.h"

bool event_is_from(const struct event *event, const struct peer *peer) {
    bool has_keys = peer_key_is_known(event->from_key) && peer_has_key(peer);
    return address_equal(&event->from, &peer->address) &&
           (!has_keys || memcmp(event->from_key, peer->key, PEER_KEY_SIZE) == 0);
}

struct peer event_sender(const struct event *event) {
    struct peer peer = {.address = event->from};
    memcpy(peer.key, event->from_key, PEER_KEY_SIZE);
    return peer;
}

void outbox_init(struct outbox *out, struct action *actions, size_t actions_max, void *memory,
                 size_t memory_size) {
    *out = (struct outbox){
        .actions = actions,
        .actions_max = actions_max,
        .memory = memory,
        .memory_size = memory_size,
        .wake_at_us = STEP_NEVER_US,
    };
}

void outbox_clear(struct outbox *out) {
    out->actions_count = 0;
    out->memory_used = 0;
    out->wake_at_us = STEP_NEVER_US;
}

static struct action *step_append(struct outbox *out, enum action_kind kind, struct bytes bytes) {
    ASSERT(out->actions_count < out->actions_max);
    ASSERT(bytes.size <= out->memory_size - out->memory_used);
    uint8_t *copy = NULL;
    if (bytes.size > 0) {
        copy = out->memory + out->memory_used;
        memcpy(copy, bytes.data, bytes.size);
    }
    out->memory_used += bytes.size;
    struct action *action = &out->actions[out->actions_count++];
    *action = (struct action){.kind = kind, .bytes = bytes_of(copy, bytes.size)};
    return action;
}

void outbox_send(struct outbox *out, const struct address *to, struct bytes message) {
    ASSERT(message.size <= STEP_MESSAGE_SIZE_MAX);
    step_append(out, ACTION_SEND, message)->to = *to;
}

void outbox_send_peer(struct outbox *out, const struct peer *to, struct bytes message) {
    outbox_send(out, &to->address, message);
    memcpy(out->actions[out->actions_count - 1].to_key, to->key, PEER_KEY_SIZE);
}

void outbox_save(struct outbox *out, uint32_t slot, uint64_t number, struct bytes bytes) {
    struct action *action = step_append(out, ACTION_SAVE, bytes);
    action->code = slot;
    action->number = number;
}

void outbox_notice(struct outbox *out, uint32_t code, struct bytes bytes) {
    step_append(out, ACTION_NOTICE, bytes)->code = code;
}

void outbox_wake_at(struct outbox *out, uint64_t at_us) {
    if (at_us < out->wake_at_us) {
        out->wake_at_us = at_us;
    }
}
