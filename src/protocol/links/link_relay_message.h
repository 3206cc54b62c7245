/*
 * link_relay_message - what walkers and holders say to each other, and its bytes.
 *
 *      offer    u8 1 << 4 | flags   u16 number   [place[16] with LINK_RELAY_WANTS]   links (links_code.h)
 *      answer   u8 2 << 4 | status  u16 number   varint accepted   u8 count   places
 *
 * docs/protocol/links.md.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINK_RELAY_MESSAGE_H
#define MNEMON_PROTOCOL_LINKS_LINK_RELAY_MESSAGE_H

#include "protocol/links/links_code.h"
#include "protocol/ring/message.h"

enum link_relay_message_kind { LINK_RELAY_OFFER = 1, LINK_RELAY_ANSWER = 2 };

enum link_relay_flag {
    LINK_RELAY_AS_PRIMARY = 1, /* the sender takes it for the primary of these links */
    LINK_RELAY_WANTS = 2,      /* name the places behind this one */
};

enum link_relay_status {
    LINK_RELAY_TAKEN,   /* they are kept; refused ones among them are not to be sent again */
    LINK_RELAY_BUSY,    /* not now */
    LINK_RELAY_MOVED,   /* they are not mine, or I am not their primary: look again */
    LINK_RELAY_REFUSED, /* never */
    LINK_RELAY_STATUSES_COUNT,
};

enum {
    LINK_RELAY_PLACES_MAX = 8,
    LINK_RELAY_MESSAGE_SIZE_MAX = 1100,
    LINK_RELAY_OFFER_HEAD_SIZE_MAX = 3 + RING_ID_SIZE,
};

struct link_relay_message {
    uint8_t kind;
    uint8_t flags;  /* offer */
    uint8_t status; /* answer */
    uint16_t number;
    struct ring_id after; /* offer with LINK_RELAY_WANTS */
    struct bytes links;   /* offer */
    uint32_t accepted_count;
    struct vnode places[LINK_RELAY_PLACES_MAX];
    uint8_t places_count;
};

/* Always fits: offers with links of at most LINK_RELAY_MESSAGE_SIZE_MAX - LINK_RELAY_OFFER_HEAD_SIZE_MAX
 * bytes. */
struct bytes link_relay_message_write(const struct link_relay_message *message,
                                      uint8_t memory[STEP_MESSAGE_SIZE_MAX]);

/* False if the bytes are none. Links of an offer are not looked at. */
bool link_relay_message_read(struct bytes bytes, struct sha256 *sha256,
                             struct link_relay_message *ret_message);

#endif
