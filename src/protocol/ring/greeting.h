/*
 * greeting - what nodes say to each other about their charter: who they are, that they may be here, and which
 * version they have. Codec only; pure. Who says what when: docs/protocol/charter.md.
 *
 *      HELLO    here is my membership; mine is version N    answered, if it asks, by a HELLO or REFUSE
 *      REFUSE   I do not talk to you, since …               for people; changes nothing
 *      ASK      the charter from this byte on?              answered by a PIECE
 *      PIECE    so many bytes of it
 */
#ifndef MNEMON_PROTOCOL_RING_GREETING_H
#define MNEMON_PROTOCOL_RING_GREETING_H

#include "protocol/ring/membership.h"

enum { GREETING_VERSION = 1, GREETING_PIECE_SIZE_MAX = 1024, GREETING_SIZE_MAX = 1100 };

enum greeting_kind { GREETING_HELLO = 1, GREETING_REFUSE, GREETING_ASK, GREETING_PIECE, GREETING_KINDS_END };

/* The values are on the wire. From GREETING_NO_MEMBER on: enum membership_verdict, added. */
enum greeting_reason { GREETING_OTHER_RING = 1, GREETING_OTHER_VERSION = 2, GREETING_NO_MEMBER = 16 };

struct greeting {
    uint8_t kind;
    uint8_t ring[CHARTER_ID_SIZE];        /* zeros: not known yet, which only an ASK may say */
    uint32_t version;                     /* of the sender's charter; 0: it has none */
    struct bytes membership;              /* HELLO: as membership_write() */
    bool wants_answer;                    /* HELLO */
    uint8_t reason;                       /* REFUSE: enum greeting_reason */
    char name[CHARTER_NAME_SIZE_MAX + 1]; /* REFUSE: of the sender's ring */
    uint32_t offset;                      /* ASK, PIECE */
    uint32_t size;                        /* PIECE: of the whole charter */
    struct bytes piece;                   /* PIECE: not empty, within size */
};

/* Returns what was written; members that do not belong to the kind are ignored. */
struct bytes greeting_write(const struct greeting *greeting, uint8_t out[GREETING_SIZE_MAX]);

/* Slices borrow the input. ERR_UNSUPPORTED: of another version. */
enum err greeting_read(struct bytes input, struct greeting *ret_greeting,
                       struct err_detail *detail) MUST_CHECK;

/* A sentence fragment, about the node that is refused: "it belongs to another ring". */
const char *greeting_reason_text(uint8_t reason);

#endif
