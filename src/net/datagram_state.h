/* datagram_state - what datagram.c and datagram_receive.c share. */
#ifndef MNEMON_NET_DATAGRAM_STATE_H
#define MNEMON_NET_DATAGRAM_STATE_H

#include "net/datagram.h"

enum { DATAGRAM_WAITING_COUNT = 32, DATAGRAM_ADDRESSES_MAX = 4096 };
static const uint64_t DATAGRAM_WAIT_US = 3000000; /* for the key of an address */

/* A message whose receiver's key is being asked for. */
struct datagram_waiting {
    struct address to;
    uint64_t until_us; /* 0: free */
    enum datagram_kind kind;
    size_t size;
    uint8_t bytes[DATAGRAM_PAYLOAD_SIZE_MAX];
};

struct datagram {
    uv_udp_t socket;
    struct datagram_config config;
    struct address address;
    struct sessions sessions;
    struct contacts contacts;
    struct lru rates; /* IP address or /64: struct bucket */
    struct bucket refusals_sent;
    struct bucket refusals_shown;
    struct bucket noise_shown;
    struct datagram_stats stats;
    struct datagram_waiting waiting[DATAGRAM_WAITING_COUNT];
    size_t waiting_next; /* the one to use, and to lose, next */
    uint8_t input[DATAGRAM_SIZE_MAX + 1];
    uint8_t opened[DATAGRAM_SIZE_MAX];
};

struct sessions_now datagram_now(const struct datagram *datagram);

/* As it is, if the address may get it. */
enum err datagram_put(struct datagram *datagram, const struct address *to, struct bytes bytes);

/* Seal one of any kind. */
enum err datagram_put_sealed(struct datagram *datagram, const struct address *to, struct session *session,
                             uint8_t kind, struct bytes payload);

/* Ask for a proof, unless that was done a moment ago. */
void datagram_challenge(struct datagram *datagram, const struct address *to, struct session *session);

/* The key of that address is known now: send what waited for it. */
void datagram_flush(struct datagram *datagram, const struct peer *peer);

/* For people, now and then. */
void datagram_tell_noise(struct datagram *datagram, const struct address *from, enum datagram_noise noise);

/* uv_udp_recv_cb's work for one datagram. */
void datagram_receive(struct datagram *datagram, const struct address *from, struct bytes input);

#endif
