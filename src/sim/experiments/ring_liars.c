#include "sim/experiments/ring_liars.h"

#include <stdlib.h>

/* Between two additions of all liars together: what they add to makes others answer, which makes them step.
 */
static const uint64_t EXTRA_US = 20000;

enum err ring_liars_init(struct ring_liars *liars, const struct ring_config *config,
                         const struct vnode *vnodes, const uint32_t *order, uint32_t nodes_count,
                         uint64_t seed) {
    *liars = (struct ring_liars){
        .vnodes = vnodes, .order = order, .nodes_count = nodes_count, .charter = config->charter};
    prng_init_stream(&liars->prng, seed, 23);
    size_t actions_max = ring_actions_max(config);
    size_t memory_size = ring_memory_size(config);
    struct action *actions = calloc(actions_max, sizeof *actions);
    uint8_t *memory = malloc(memory_size);
    liars->heard = calloc(RING_LIARS_HEARD_MAX, sizeof *liars->heard);
    outbox_init(&liars->said, actions, actions_max, memory, memory_size);
    if (actions == NULL || memory == NULL || liars->heard == NULL) {
        return ERR_MEMORY;
    }
    return sha256_init(&liars->sha256);
}

void ring_liars_done(struct ring_liars *liars) {
    sha256_done(&liars->sha256);
    free(liars->said.actions);
    free(liars->said.memory);
    free(liars->heard);
    *liars = (struct ring_liars){0};
}

/* ---- the places they name ---- */

static const struct vnode *anybody(struct ring_liars *liars) {
    return &liars->vnodes[prng_below(&liars->prng, liars->nodes_count)];
}

static const struct vnode *an_ally(struct ring_liars *liars) {
    uint32_t allies_count = (liars->nodes_count + liars->share - 1) / liars->share;
    return &liars->vnodes[prng_below(&liars->prng, allies_count) * liars->share];
}

/* 192.0.2.0/24 is nobody's in the simulator, as in the world. */
static struct vnode nobody(struct ring_liars *liars) {
    struct vnode vnode = {0};
    vnode.peer.address = address_ipv4(192, 0, 2, (uint8_t)prng_below(&liars->prng, 256), 7070);
    vnode.id = ring_id_of_node(&liars->sha256, &vnode.peer.address, 0);
    return vnode;
}

/* The last place before the key. */
static const struct vnode *just_before(const struct ring_liars *liars, struct ring_id key) {
    uint32_t position = 0;
    ASSERT(liars->nodes_count > 0);
    while (position < liars->nodes_count &&
           ring_id_compare(liars->vnodes[liars->order[position]].id, key) < 0) {
        position++;
    }
    return &liars->vnodes[liars->order[(position + liars->nodes_count - 1) % liars->nodes_count]];
}

/* ---- what they change ---- */

static void replace_vnodes(struct ring_liars *liars, struct message *message) {
    for (unsigned i = 0; i < message->vnodes_count; i++) {
        struct vnode *vnode = &message->vnodes[i];
        if (liars->lie == RING_LIE_PADDING) {
            struct ring_id behind = i == 0 ? vnode->id : ring_id_add_power(message->vnodes[i - 1].id, 0);
            *vnode = i == 0 ? *vnode : (struct vnode){.id = behind};
        } else if (!vnode_is_padding(vnode)) {
            *vnode = liars->lie == RING_LIE_NOWHERE  ? nobody(liars)
                     : liars->lie == RING_LIE_ALLIES ? *an_ally(liars)
                                                     : *anybody(liars);
        }
    }
}

static void claim_key(struct ring_liars *liars, uint32_t node, const struct message *question,
                      struct message *message) {
    const struct vnode *self = &liars->vnodes[node];
    bool is_own = liars->lie == RING_LIE_KEYS;
    message->status = FOUND_OWNER;
    message->vnodes_count = 1;
    message->vnodes[0] = is_own ? *self : *anybody(liars);
    message->predecessor = *just_before(liars, question->key);
    message->to = message->vnodes[0].index;
}

static void liars_change(struct ring_liars *liars, uint32_t node, const struct message *question,
                         struct message *message) {
    bool is_found = message->kind == MESSAGE_FOUND && question->kind == MESSAGE_FIND;
    switch (liars->lie) {
    case RING_LIE_SUCCESSORS:
    case RING_LIE_ALLIES:
    case RING_LIE_NOWHERE:
    case RING_LIE_PADDING:
        if (message->kind == MESSAGE_STATE || message->kind == MESSAGE_FOUND) {
            replace_vnodes(liars, message);
        }
        break;
    case RING_LIE_KEYS:
    case RING_LIE_VNODES:
        if (is_found) {
            claim_key(liars, node, question, message);
        } else if (message->kind == MESSAGE_STATE && liars->lie == RING_LIE_VNODES) {
            message->predecessor = *anybody(liars);
        } else if (message->kind == MESSAGE_NOTIFY && liars->lie == RING_LIE_VNODES) {
            message->from = (uint8_t)prng_below(&liars->prng, RING_VIRTUAL_MAX);
        }
        break;
    default:
        break;
    }
}

/* Every second address. */
static bool is_ignored(const struct ring_liars *liars, const struct address *to) {
    return liars->lie == RING_LIE_SILENCE && to->ip[sizeof to->ip - 1] % 2 == 1;
}

static void liars_say(struct ring_liars *liars, uint32_t node, const struct message *question,
                      const struct action *action, struct outbox *out) {
    struct message message;
    if (is_ignored(liars, &action->to)) {
        liars->lies_count++;
        return;
    }
    if (!message_read(action->bytes, liars->charter, &liars->sha256, &message)) {
        outbox_send(out, &action->to, action->bytes);
        return;
    }
    liars_change(liars, node, question, &message);
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct bytes bytes = message_write(&message, memory);
    liars->lies_count += !bytes_equal(bytes, action->bytes);
    outbox_send(out, &action->to, bytes);
}

/* ---- what they add ---- */

static void send_message(struct ring_liars *liars, const struct vnode *to, struct message *message,
                         struct outbox *out) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    message->version = RING_VERSION;
    memcpy(message->charter, liars->charter, RING_CHARTER_SIZE);
    message->number = prng_u64(&liars->prng);
    liars->lies_count++;
    outbox_send(out, &to->peer.address, message_write(message, memory));
}

static void forge(struct ring_liars *liars, struct outbox *out) {
    static const uint8_t kinds[] = {MESSAGE_STATE, MESSAGE_PONG, MESSAGE_FOUND, MESSAGE_NODES,
                                    MESSAGE_CHALLENGE};
    struct message message = {.kind = kinds[prng_below(&liars->prng, sizeof kinds)]};
    message.token = prng_u64(&liars->prng);
    message.predecessor = *anybody(liars);
    message.vnodes_count = (uint8_t)prng_below(&liars->prng, MESSAGE_VNODES_MAX + 1);
    for (unsigned i = 0; i < message.vnodes_count; i++) {
        message.vnodes[i] = *anybody(liars);
        message.nodes_vnodes_count[i] = 1;
    }
    send_message(liars, anybody(liars), &message, out);
    uint8_t noise[200];
    prng_fill(&liars->prng, noise, sizeof noise);
    liars->lies_count++;
    outbox_send(out, &anybody(liars)->peer.address, bytes_of(noise, sizeof noise));
}

static void notify(struct ring_liars *liars, struct outbox *out) {
    for (unsigned i = 0; i < RING_LIARS_EXTRA_MAX; i++) {
        struct message message = {.kind = MESSAGE_NOTIFY};
        message.from = (uint8_t)prng_below(&liars->prng, RING_VIRTUAL_MAX);
        send_message(liars, anybody(liars), &message, out);
    }
}

static void replay(struct ring_liars *liars, const struct event *event, struct outbox *out) {
    if (event->kind == EVENT_MESSAGE && event->bytes.size <= STEP_MESSAGE_SIZE_MAX) {
        uint32_t index = liars->heard_count < RING_LIARS_HEARD_MAX
                             ? liars->heard_count++
                             : (uint32_t)prng_below(&liars->prng, RING_LIARS_HEARD_MAX);
        memcpy(liars->heard[index].data, event->bytes.data, event->bytes.size);
        liars->heard[index].size = event->bytes.size;
    }
    for (unsigned i = 0; i < 2 && liars->heard_count > 0; i++) {
        const struct ring_liars_heard *heard = &liars->heard[prng_below(&liars->prng, liars->heard_count)];
        liars->lies_count++;
        outbox_send(out, &anybody(liars)->peer.address, bytes_of(heard->data, heard->size));
    }
}

void ring_liars_step(struct ring_liars *liars, struct ring *ring, uint32_t node, const struct event *event,
                     struct outbox *out) {
    struct message question = {0};
    if (event->kind == EVENT_MESSAGE &&
        !message_read(event->bytes, liars->charter, &liars->sha256, &question)) {
        question.kind = 0;
    }
    outbox_clear(&liars->said);
    ring_step(ring, event, &liars->said);
    outbox_wake_at(out, liars->said.wake_at_us);
    for (size_t i = 0; i < liars->said.actions_count; i++) {
        const struct action *action = &liars->said.actions[i];
        if (action->kind == ACTION_SEND) {
            liars_say(liars, node, &question, action, out);
        } else {
            outbox_notice(out, action->code, action->bytes);
        }
    }
    if (event->now_us < liars->extra_at_us) {
        return;
    }
    liars->extra_at_us = event->now_us + EXTRA_US;
    if (liars->lie == RING_LIE_REPLAY) {
        replay(liars, event, out);
    } else if (liars->lie == RING_LIE_FORGE) {
        forge(liars, out);
    } else if (liars->lie == RING_LIE_NOTIFY) {
        notify(liars, out);
    }
}
