/*
 * walk_message - what walkers and holders say to each other, and its bytes.
 *
 *      offer    u8 1 << 4 | flags   u16 number   [place[16] with WALK_WANTS]   links (links_code.h)
 *      answer   u8 2 << 4 | status  u16 number   varint accepted   u8 count   places
 *
 * docs/protocol/together.md.
 */
#ifndef MNEMON_PROTOCOL_LINKS_WALK_MESSAGE_H
#define MNEMON_PROTOCOL_LINKS_WALK_MESSAGE_H

#include "protocol/links/links_code.h"
#include "protocol/ring/message.h"

enum walk_message_kind { WALK_OFFER = 1, WALK_ANSWER = 2 };

enum walk_flag {
    WALK_AS_PRIMARY = 1, /* the sender takes him for the primary of these links */
    WALK_WANTS = 2,      /* name the places behind this one */
};

enum walk_status {
    WALK_TAKEN,   /* they are kept; refused ones among them are not to be sent again */
    WALK_BUSY,    /* not now */
    WALK_MOVED,   /* they are not mine, or I am not their primary: look again */
    WALK_REFUSED, /* never */
    WALK_STATUSES_COUNT,
};

enum {
    WALK_PLACES_MAX = 8,
    WALK_MESSAGE_SIZE_MAX = 1100,
    WALK_OFFER_HEAD_SIZE_MAX = 3 + RING_ID_SIZE,
};

struct walk_message {
    uint8_t kind;
    uint8_t flags;  /* offer */
    uint8_t status; /* answer */
    uint16_t number;
    struct ring_id after; /* offer with WALK_WANTS */
    struct bytes links;   /* offer */
    uint32_t accepted_count;
    struct ring_place places[WALK_PLACES_MAX];
    uint8_t places_count;
};

/* Always fits: offers with links of at most WALK_MESSAGE_SIZE_MAX - WALK_OFFER_HEAD_SIZE_MAX bytes. */
struct bytes walk_message_write(const struct walk_message *message, uint8_t memory[STEP_MESSAGE_SIZE_MAX]);

/* False where the bytes are none. Links of an offer are not looked at. */
bool walk_message_read(struct bytes bytes, struct sha256 *sha256, struct walk_message *ret_message);

#endif
