/*
 * host_leases_code - what nodes say to each other about hosts: the questions of PEER_RPC_LEND.
 *
 *      borrow      to the home: we have URLs of this host
 *      lend        from the home: it is yours, so long, with this pace and this robots.txt
 *      refuse      from the home: not now
 *      give back   to the home: we have done with it, the pace is now like this
 *
 * Each is a question of its own with an empty answer, so that the home answers when it can and nobody has to
 * wait. Layout and bounds: docs/protocol/host-leases.md.
 */
#ifndef MNEMON_NODE_LEASES_HOST_LEASES_CODE_H
#define MNEMON_NODE_LEASES_HOST_LEASES_CODE_H

#include "crawl/rules/permit.h"

enum {
    HOST_LEASES_HEAD_SIZE_MAX = 512,
    HOST_LEASES_SIZE_MAX = HOST_LEASES_HEAD_SIZE_MAX + ROBOTS_TEXT_SIZE_MAX
};

/* The values are on the wire. */
enum host_leases_kind { HOST_LEASES_BORROW, HOST_LEASES_LEND, HOST_LEASES_REFUSE, HOST_LEASES_GIVE_BACK };
enum { HOST_LEASES_KINDS_COUNT = HOST_LEASES_GIVE_BACK + 1 };

struct host_leases_message {
    enum host_leases_kind kind;
    struct bytes host;

    /* borrow */
    bool is_https;
    uint8_t digest[PERMIT_DIGEST_SIZE];

    /* lend; of its lender only the number */
    struct permit_lease lease;

    /* refuse */
    uint64_t wait_us;
    enum permit_reason reason;

    /* give back */
    uint64_t number;
    struct pace pace;
    uint32_t requests_count;
};

/* Append it. now_us, wall_us: the clocks here, since times on the way are relative. ERR_LIMIT, ERR_MEMORY. */
enum err host_leases_write(const struct host_leases_message *message, uint64_t now_us, int64_t wall_us,
                           struct buf *out) MUST_CHECK;

/* Texts borrow the input. ERR_INVALID with the reason. */
enum err host_leases_read(struct bytes input, uint64_t now_us, int64_t wall_us,
                          struct host_leases_message *ret_message, struct err_detail *detail) MUST_CHECK;

#endif
