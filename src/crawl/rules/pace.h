/*
 * pace - when a host may be asked again, and why not earlier.
 *
 * The delay between two requests to a host is counted from the end of the first, and is the largest of
 *
 *      - the one the user chose, or else factor times the host's usual time to answer, within bounds: a host
 *        that gets slow gets rest
 *      - Crawl-delay of its robots.txt, up to a maximum; not where the user chose 0
 *      - Retry-After of a 429 or 503, up to a maximum; without one, and for failures, a time that doubles
 * with each bad answer in a row and halves with each good one
 *      - a moment, if nobody listens and nobody has answered yet: nobody is there to be patient with
 *
 * After a number of failed connections in a row the host counts as dead for this visit. Many hosts behind one
 * address share a limit of transfers and a delay: struct pace_addresses.
 *
 * Pure: times are passed in, monotonic (now_us) but for Retry-After dates (wall_us). A struct pace is small
 * and needs no end.
 */
#ifndef MNEMON_CRAWL_RULES_PACE_H
#define MNEMON_CRAWL_RULES_PACE_H

#include "base/address.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/wire.h"

struct pace_config {
    bool has_delay;              /* the user chose delay_us */
    uint64_t delay_us;           /* may be 0 */
    uint32_t factor;             /* else: times the time to answer, */
    uint64_t delay_min_us;       /* at least */
    uint64_t delay_max_us;       /* at most */
    uint64_t crawl_delay_max_us; /* more is not honoured, and said so */
    uint64_t retry_after_max_us; /* the same */
    uint64_t backoff_min_us;     /* after the first bad answer */
    uint64_t backoff_max_us;
    uint64_t absent_us;             /* after the first failure if nobody listens */
    uint32_t failures_max;          /* connections in a row; then it is dead */
    uint32_t address_transfers_max; /* at once for one IP address; 0: no limit */
    uint64_t address_delay_us;      /* between two starts for one IP address; not where the user chose 0 */
};

extern const struct pace_config pace_defaults;

enum pace_reason {
    PACE_READY,
    PACE_DELAY,       /* the user's or the shortest */
    PACE_SLOW,        /* it takes long to answer */
    PACE_CRAWL_DELAY, /* of robots.txt */
    PACE_RETRY_AFTER,
    PACE_BACKOFF,  /* errors or refusals in a row */
    PACE_FAILURES, /* no connection, in a row */
    PACE_ROBOTS,   /* robots.txt cannot be had */
    PACE_DEAD,     /* given up for this visit */
};
enum { PACE_REASONS_COUNT = PACE_DEAD + 1 };

/* How a request ended. */
struct pace_answer {
    uint16_t status;          /* 0: none, the connection failed */
    bool is_absent;           /* of a failure: nobody listens, and nobody has answered there yet */
    uint64_t duration_us;     /* to the first byte */
    struct bytes retry_after; /* value of the header; may be empty */
};

struct pace {
    uint64_t next_us;        /* not before; UINT64_MAX: dead */
    uint64_t answer_us;      /* usual time to the first byte, smoothed; 0: not known */
    uint64_t crawl_delay_us; /* as honoured; 0: none */
    uint16_t bad_count;      /* level of the back-off */
    uint16_t failures_count; /* connections, in a row */
    uint16_t last_status;    /* of the last bad answer */
    bool is_crawl_delay_cut; /* it asked for more than crawl_delay_max_us */
    bool is_robots_waiting;  /* robots.txt is tried again at next_us */
    enum pace_reason reason; /* for next_us */
};

void pace_init(struct pace *pace);

/* From robots.txt; 0: none. */
void pace_set_crawl_delay(struct pace *pace, const struct pace_config *config, uint64_t crawl_delay_us);

/* A request ended: with an answer or without one. wall_us: the same moment on the wall clock. */
void pace_finish(struct pace *pace, const struct pace_config *config, const struct pace_answer *answer,
                 uint64_t now_us, int64_t wall_us);

/* robots.txt could not be had: everything waits until it is tried again. Counts as a bad answer; call
 * pace_finish() before it for the request itself. */
void pace_wait_for_robots(struct pace *pace, const struct pace_config *config, uint64_t now_us);

/* robots.txt was had, or there is none. */
void pace_got_robots(struct pace *pace);

/* When the next request may start: at once (a time that is over), later, or UINT64_MAX if it is dead. */
static inline uint64_t pace_next_us(const struct pace *pace) {
    return pace->next_us;
}

static inline bool pace_is_dead(const struct pace *pace) {
    return pace->reason == PACE_DEAD;
}

/* Between two requests when all is well. */
uint64_t pace_delay_us(const struct pace *pace, const struct pace_config *config);

/* Somebody may have asked the host just now; nobody knows how it went. */
void pace_guess_asked(struct pace *pace, const struct pace_config *config, uint64_t now_us);

/*
 * Another node had the host from from_us on, made that many requests, and says how it is now. Believed as
 * far as the rules allow: so many requests take their delays, no wait is longer than the longest, and that a
 * host is dead everybody has to see for himself.
 */
void pace_take_back(struct pace *pace, const struct pace_config *config, const struct pace *returned,
                    uint32_t requests_count, uint64_t from_us, uint64_t now_us);

/* Why it waits at the time. */
enum pace_reason pace_why(const struct pace *pace, uint64_t now_us);

/*
 * Append that for the progress line: "Retry-After until 12:03", "Crawl-delay 10 s", "slow: 4.2 s per answer",
 * "503 three times in a row". local_us: the wall clock of the reader's time zone.
 */
void pace_put_why(const struct pace *pace, uint64_t now_us, int64_t local_us, struct buf *out);

/* Seconds or an HTTP date, as a time from wall_us on; a date in the past is 0. False if it is neither. */
bool pace_read_retry_after(struct bytes value, int64_t wall_us, uint64_t *ret_us);

/*
 * To another node: times are relative there, since clocks differ. now_us: the monotonic clock here, on either
 * side. What is out of bounds is cut on writing, refused on reading (as an error of the reader). Layout:
 * docs/protocol/host-leases.md.
 */
enum { PACE_CODE_SIZE_MAX = 40 };
void pace_write(const struct pace *pace, uint64_t now_us, struct wire_writer *writer);
void pace_read(struct wire_reader *reader, uint64_t now_us, struct pace *ret_pace);

/* ---- IP addresses ---- */

enum { PACE_ADDRESSES_MAX = 1 << 14 };

struct pace_address {
    uint32_t running_count;
    uint64_t next_us;
};

struct pace_addresses {
    struct map map; /* 16 bytes of IP -> struct pace_address */
};

/* ERR_MEMORY. The seed is random, as in base/map.h. */
enum err pace_addresses_init(struct pace_addresses *addresses, uint64_t hash_seed) MUST_CHECK;
void pace_addresses_done(struct pace_addresses *addresses);

/*
 * May a transfer to this IP start now? Then it is counted until pace_address_end(). Else *ret_next_us is when
 * to ask again, or UINT64_MAX: when another one to it has ended. If the table is full of busy addresses,
 * new ones are not counted and may start.
 */
bool pace_address_start(struct pace_addresses *addresses, const struct pace_config *config,
                        const uint8_t ip[16], uint64_t now_us, uint64_t *ret_next_us);
void pace_address_end(struct pace_addresses *addresses, const uint8_t ip[16]);

#endif
