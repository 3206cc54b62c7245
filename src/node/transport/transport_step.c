#include <stdio.h>

#include "base/wire.h"
#include "node/transport/transport_state.h"

/* ---- what the ring says ---- */

static const char *const reason_texts[RING_REASONS_END] = {
    [RING_OTHER_VERSION] = "it speaks another version of the ring's protocol",
    [RING_OTHER_CHARTER] = "it belongs to another ring",
};

static void on_ring_refused(struct transport *transport, struct bytes bytes) {
    struct wire_reader reader;
    struct vnode vnode;
    char address[ADDRESS_TEXT_SIZE_MAX];
    char sentence[COMPLAINT_SIZE_MAX];
    wire_reader_init(&reader, bytes);
    uint8_t reason = wire_read_u8_max(&reader, RING_REASONS_END - 1);
    bool is_by_him = wire_read_bool(&reader);
    ring_read_vnode(transport->ring, &reader, &vnode);
    if (reader.err != ERR_OK) {
        return;
    }
    snprintf(sentence, sizeof sentence, is_by_him ? "%s refuses this node: %s" : "%s is refused: %s",
             address_format(&vnode.peer.address, address), reason_texts[reason]);
    transport_on_complaint(transport, &vnode.peer.address, sentence);
}

static void on_ring_blamed(struct transport *transport, struct bytes bytes) {
    struct wire_reader reader;
    struct vnode vnode;
    char address[ADDRESS_TEXT_SIZE_MAX];
    char sentence[COMPLAINT_SIZE_MAX];
    wire_reader_init(&reader, bytes);
    ring_read_vnode(transport->ring, &reader, &vnode);
    struct bytes text = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err != ERR_OK) {
        return;
    }
    snprintf(sentence, sizeof sentence, "%s is blamed: %.*s", address_format(&vnode.peer.address, address),
             BYTES_ARG(text));
    transport_on_complaint(transport, &vnode.peer.address, sentence);
}

/* A founder who finds his place taken is not alone: he does not begin anew. */
static void on_ring_taken(struct transport *transport, struct bytes bytes) {
    struct wire_reader reader;
    struct vnode holder;
    char own[ADDRESS_TEXT_SIZE_MAX];
    char his[ADDRESS_TEXT_SIZE_MAX];
    char advice[64] = "set ring.first_place";
    char sentence[COMPLAINT_SIZE_MAX];
    wire_reader_init(&reader, bytes);
    uint8_t index = wire_read_u8(&reader);
    uint8_t next = wire_read_u8(&reader);
    ring_read_vnode(transport->ring, &reader, &holder);
    if (reader.err != ERR_OK) {
        return;
    }
    if (next < RING_VIRTUAL_MAX) {
        snprintf(advice, sizeof advice, "this node tries place %u", next);
    } else if (transport->config.first_vnode == RING_VIRTUAL_MAX) {
        snprintf(advice, sizeof advice, "no others are free; set ring.capacity");
    }
    address_format(&transport->self.address, own);
    *strrchr(own, ':') = '\0';
    snprintf(sentence, sizeof sentence, "place %u of %s is taken by %s; %s", index, own,
             address_format(&holder.peer.address, his), advice);
    transport->joined_at_us = transport_now_us(transport);
    transport_on_complaint(transport, &holder.peer.address, sentence);
}

static void on_member(struct transport *transport, bool is_member) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    transport->state = is_member ? TRANSPORT_MEMBER : TRANSPORT_JOINING;
    transport->joined_at_us = transport_now_us(transport);
    transport->join_at_us = transport_now_us(transport) + TRANSPORT_JOIN_US;
    transport_note(transport, "ring: %s \"%s\" as %s", is_member ? "in" : "no longer in",
                   transport->charter.name, address_format(&transport->self.address, address));
}

static void on_notice(struct transport *transport, const struct action *action) {
    switch ((enum ring_notice)action->code) {
    case RING_MEMBER:
        on_member(transport, action->bytes.size > 0 && action->bytes.data[0] != 0);
        break;
    case RING_REFUSED:
        on_ring_refused(transport, action->bytes);
        break;
    case RING_BLAMED:
        on_ring_blamed(transport, action->bytes);
        break;
    case RING_TAKEN:
        on_ring_taken(transport, action->bytes);
        break;
    case RING_ARC: /* seen in the copy */
    case RING_HELD:
    case RING_GONE:
        break;
    case RING_FOUND:
    case RING_LOST:
        transport_on_answer(transport, action->bytes);
        return;
    }
    transport->copy_at_us = 0;
}

/* ---- the ring's steps ---- */

/* What one place of this node says to another leaves no socket; it is heard when this step is over. */
static void say_to_self(struct transport *transport, struct bytes message) {
    uint8_t size[2] = {(uint8_t)message.size, (uint8_t)(message.size >> 8)};
    if (transport->own.size + sizeof size + message.size <=
        TRANSPORT_OWN_SIZE_MAX) { /* else lost, as on the way */
        buf_put(&transport->own, bytes_of(size, sizeof size));
        buf_put(&transport->own, message);
    }
}

static void send_to(struct transport *transport, const struct action *action) {
    struct peer to = {.address = action->to};
    memcpy(to.key, action->to_key, PEER_KEY_SIZE);
    if (address_equal(&to.address, &transport->self.address)) {
        say_to_self(transport, action->bytes);
        return;
    }
    transport_send(transport, &to, DATAGRAM_RING, action->bytes);
}

static void step_once(struct transport *transport, struct event *event) {
    struct outbox *out = &transport->out;
    event->now_us = transport_now_us(transport);
    outbox_clear(out);
    ring_step(transport->ring, event, out);
    for (size_t i = 0; i < out->actions_count; i++) {
        if (out->actions[i].kind == ACTION_SEND) {
            send_to(transport, &out->actions[i]);
        } else if (out->actions[i].kind == ACTION_NOTICE) {
            on_notice(transport, &out->actions[i]);
        }
    }
}

void transport_step(struct transport *transport, struct event *event) {
    size_t heard = 0;
    step_once(transport, event);
    while (heard < transport->own.size) {
        uint8_t memory[STEP_MESSAGE_SIZE_MAX];
        const uint8_t *said = transport->own.data + heard;
        struct event message = {.kind = EVENT_MESSAGE, .from = transport->self.address};
        message.bytes = bytes_of(memory, (size_t)said[0] | (size_t)said[1] << 8);
        memcpy(memory, said + 2, message.bytes.size); /* the buffer may move */
        memcpy(message.from_key, transport->self.key, PEER_KEY_SIZE);
        heard += 2 + message.bytes.size;
        step_once(transport, &message);
    }
    buf_clear(&transport->own);
    transport_wake_at(transport, DATAGRAM_RING, transport->out.wake_at_us);
}

void transport_on_wake(void *context) {
    struct transport *transport = context;
    if (transport->ring != NULL && transport->state != TRANSPORT_REMOVED) {
        transport_step(transport, &(struct event){.kind = EVENT_WAKE});
    }
}
