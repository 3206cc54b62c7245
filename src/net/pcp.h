/*
 * pcp - how a router is asked to pass a port on: the datagrams of PCP (RFC 6887) and of NAT-PMP (RFC 6886),
 * which came before it. Both are spoken at the same port of the router; one that knows NAT-PMP only answers
 * a question of PCP with its own version.
 *
 *      PCP, question   version 2 │ opcode 1 │ 0 u16 │ lifetime u32 │ own address 16
 *                      nonce 12 │ protocol u8 │ 0 3 │ own port u16 │ outer port u16 │ outer address 16
 *      PCP, answer     version 2 │ 0x81 │ 0 u8 │ result u8 │ lifetime u32 │ epoch u32 │ 0 12 │ … as above
 *
 *      NAT-PMP         0 u8 │ 0 u8                                    what is the outer address?
 *                      0 u8 │ 128 u8 │ result u16 │ epoch u32 │ address 4
 *                      0 u8 │ 1 UDP, 2 TCP │ 0 u16 │ own port u16 │ outer port u16 │ lifetime u32
 *                      0 u8 │ 129, 130 │ result u16 │ epoch u32 │ own port u16 │ outer port u16 │ lifetime
 * u32
 *
 * Bytes in, structs out; no socket. The answers come from a router that need not be honest: what does not
 * answer the very question is not read, and everything read has bounds (tests/fuzz/pcp.c).
 */
#ifndef MNEMON_NET_PCP_H
#define MNEMON_NET_PCP_H

#include "base/address.h"

enum {
    PCP_PORT = 5351,
    PCP_NEWS_PORT = 5350, /* a router that has begun anew says so to all hosts, 224.0.0.1 */
    PCP_NONCE_SIZE = 12,
    PCP_QUESTION_SIZE_MAX = 60,
    PCP_ANSWER_SIZE_MAX = 1100,
    PCP_LIFETIME_S_MAX = 86400, /* what a router grants beyond is not relied upon */
};

/* The numbers of the IP protocols. */
enum pcp_protocol { PCP_TCP = 6, PCP_UDP = 17 };

struct pcp_wish {
    enum pcp_protocol protocol;
    uint8_t nonce[PCP_NONCE_SIZE]; /* PCP: only who knows it may change the mapping */
    struct address own;            /* of this machine, as the router sees it; IPv4 */
    uint16_t outer_port;           /* the one that we would like; 0: any */
    uint32_t lifetime_s;           /* 0: take it back */
};

struct pcp_answer {
    uint16_t result; /* 0: done; what follows counts only then */
    uint32_t lifetime_s;
    struct address outer; /* NAT-PMP: without the address when asked for a port, without a port otherwise */
};

struct bytes pcp_write(const struct pcp_wish *wish, uint8_t out[PCP_QUESTION_SIZE_MAX]);

enum pcp_reading {
    PCP_OTHER, /* not the answer to this question: wait on */
    PCP_ANSWER,
    PCP_IS_NATPMP, /* the router knows nothing newer */
};
enum pcp_reading pcp_read(struct bytes message, const struct pcp_wish *wish, struct pcp_answer *ret_answer);

/* Why not, in words. */
const char *pcp_result_text(uint16_t result);

struct bytes natpmp_write_address(uint8_t out[PCP_QUESTION_SIZE_MAX]);
struct bytes natpmp_write_port(const struct pcp_wish *wish, uint8_t out[PCP_QUESTION_SIZE_MAX]);

/* False: not the answer to this question. */
bool natpmp_read_address(struct bytes message, struct pcp_answer *ret_answer);
bool natpmp_read_port(struct bytes message, const struct pcp_wish *wish, struct pcp_answer *ret_answer);

const char *natpmp_result_text(uint16_t result);

#endif
