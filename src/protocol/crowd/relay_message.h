/*
 * relay_message - what a light member and its relay say to each other, over the stream that the light member
 * keeps open (docs/protocol/crowd.md, "Relays"). Pure.
 *
 *      light member ── stay, search ──> relay      service 17, "relay"
 *      light member <── wish, found ─── relay      service 18, "relayed"
 */
#ifndef MNEMON_PROTOCOL_CROWD_RELAY_MESSAGE_H
#define MNEMON_PROTOCOL_CROWD_RELAY_MESSAGE_H

#include "base/err.h"
#include "base/peer.h"
#include "protocol/crowd/crowd_message.h"

enum {
    RELAY_HITS_MAX = 16,
    RELAY_TIMEOUT_MS_MAX = 30000,
    RELAY_HIT_SIZE_MAX = PEER_SIZE_MAX + 2 + 3 + CROWD_FINDING_SIZE_MAX,
    RELAY_WISH_SIZE_MAX = 1 + 3 + CROWD_WISH_SIZE_MAX, /* of a RELAY_WISH */
    RELAY_MESSAGE_SIZE_MAX = 16 + RELAY_HITS_MAX * RELAY_HIT_SIZE_MAX,
};

/* ---- to the relay ---- */

enum relay_request_kind { RELAY_STAY, RELAY_SEARCH, RELAY_REQUESTS_END };

struct relay_request {
    uint8_t kind;
    uint32_t number;     /* of the search, as all below; the asker's */
    uint32_t timeout_ms; /* at most RELAY_TIMEOUT_MS_MAX */
    uint8_t hits_wanted; /* 1 to RELAY_HITS_MAX */
    struct bytes wish;   /* of wish.h; borrowed when it was read, as all bytes below */
};

enum relay_verdict {
    RELAY_TAKEN,   /* it is the relay of this light member; the search has begun */
    RELAY_FULL,    /* it has as many as it takes; as much to do */
    RELAY_STRANGE, /* of a search: it is not the relay of this light member */
    RELAY_VERDICTS_END,
};

/* ---- to the light member ---- */

enum relay_notice_kind { RELAY_WISH, RELAY_FOUND, RELAY_NOTICES_END };
enum relay_outcome { RELAY_HITS, RELAY_NOTHING, RELAY_LATE, RELAY_ALONE, RELAY_OUTCOMES_END };

struct relay_hit {
    struct peer holder;
    uint8_t hops_count;
    struct bytes finding; /* not empty */
};

struct relay_notice {
    uint8_t kind;
    struct bytes wish;  /* RELAY_WISH: has it something? The answer is a finding, or empty */
    uint32_t number;    /* RELAY_FOUND, as all below: of the search */
    uint8_t outcome;    /* enum relay_outcome */
    uint8_t hits_count; /* not 0 if there are RELAY_HITS, else 0 */
    struct relay_hit hits[RELAY_HITS_MAX];
};

/* Into memory of RELAY_MESSAGE_SIZE_MAX; always fit. A RELAY_WISH needs RELAY_WISH_SIZE_MAX. */
struct bytes relay_write_request(const struct relay_request *request, void *memory);
struct bytes relay_write_notice(const struct relay_notice *notice, void *memory);

enum err relay_read_request(struct bytes bytes, struct relay_request *ret_request,
                            struct err_detail *detail) MUST_CHECK;
enum err relay_read_notice(struct bytes bytes, struct relay_notice *ret_notice,
                           struct err_detail *detail) MUST_CHECK;

/* One byte. */
enum err relay_read_verdict(struct bytes bytes, uint8_t *ret_verdict) MUST_CHECK;

#endif
