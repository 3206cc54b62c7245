#include "protocol/links/link_relay_message.h"

struct bytes link_relay_message_write(const struct link_relay_message *message,
                                      uint8_t memory[STEP_MESSAGE_SIZE_MAX]) {
    struct wire_writer writer;
    bool is_offer = message->kind == LINK_RELAY_OFFER;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    wire_write_u8(&writer, (uint8_t)(message->kind << 4 | (is_offer ? message->flags : message->status)));
    wire_write_u16(&writer, message->number);
    if (is_offer) {
        if (message->flags & LINK_RELAY_WANTS) {
            message_write_id(&writer, message->after);
        }
        wire_write_bytes(&writer, message->links);
    } else {
        wire_write_varint(&writer, message->accepted_count);
        wire_write_u8(&writer, message->places_count);
        for (uint8_t i = 0; i < message->places_count; i++) {
            message_write_vnode(&writer, &message->places[i]);
        }
    }
    return wire_writer_bytes(&writer);
}

static void message_read_answer(struct wire_reader *reader, struct sha256 *sha256,
                                struct link_relay_message *message) {
    message->accepted_count = (uint32_t)wire_read_varint(reader, LINKS_CODE_LINKS_MAX);
    message->places_count = wire_read_u8_max(reader, LINK_RELAY_PLACES_MAX);
    for (uint8_t i = 0; i < message->places_count; i++) {
        message_read_vnode(reader, sha256, &message->places[i]);
        wire_read_check(reader, !vnode_is_padding(&message->places[i]), "a place without an address");
    }
}

bool link_relay_message_read(struct bytes bytes, struct sha256 *sha256,
                             struct link_relay_message *ret_message) {
    struct wire_reader reader;
    struct link_relay_message message = {0};
    wire_reader_init(&reader, bytes);
    uint8_t first = wire_read_u8(&reader);
    message.kind = first >> 4;
    message.number = wire_read_u16(&reader);
    if (message.kind == LINK_RELAY_OFFER) {
        message.flags = first & 15;
        if (message.flags & LINK_RELAY_WANTS) {
            message.after = message_read_id(&reader);
        }
        message.links = wire_read_bytes(&reader, wire_reader_left(&reader));
        if (message.flags > (LINK_RELAY_AS_PRIMARY | LINK_RELAY_WANTS)) {
            return false;
        }
    } else if (message.kind == LINK_RELAY_ANSWER) {
        message.status = first & 15;
        message_read_answer(&reader, sha256, &message);
    }
    bool is_sound = wire_reader_finish(&reader, NULL) == ERR_OK && message.status < LINK_RELAY_STATUSES_COUNT;
    if (!is_sound || (message.kind != LINK_RELAY_OFFER && message.kind != LINK_RELAY_ANSWER)) {
        return false;
    }
    *ret_message = message;
    return true;
}
