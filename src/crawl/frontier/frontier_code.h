/*
 * frontier_code - how the frontier lies on disk: keys that sort as bytes, values in base/wire.h terms.
 *
 *      key                                    value
 *      c host:u32                             waiting:varint of this host and of those that follow it
 *      h host:u32                             domain:u64 name
 *      k fingerprint:u64                      host:varint priority:u8 depth:varint sequence:varint
 *      l fingerprint:u64                      doubtful:u8 priority:u8 depth:varint url: a link that came
 * later m name                                 see frontier_meta below n name a note of the owner o place[16]
 * url                        priority:u8 depth:varint: an outgoing link q host:u32 position:u64 flags:u8
 * [retry] [history] url t host:u32                             what the owner keeps with the host u
 * fingerprint:u64                      flags:u8 state:u8 reason:u8 host:varint priority:u8 depth:varint
 * sequence:varint visit:varint due:signed [retry] [history] url
 *
 *      position   [ priority:2 | depth:16 | sequence:46 ]
 *      retry      tries:varint depth:varint sequence:varint        in q: where it came from
 *                 tries:varint sequence:varint                     in u: where it waits, 0: nowhere
 *      history    visits:varint changes:varint time:signed since_first:signed status:varint
 *                 etag:string last_modified:string [digest[32]]
 *
 * Integers in keys are big-endian, so that they sort. signed is zigzag: 0, -1, 1, -2 are 0, 1, 2, 3. flags
 * tell which of the parts in brackets are there. url and name reach to the end.
 *
 * "c" are written when the frontier is closed, and only believed if nothing was written after them.
 *
 * A known URL has a "k" from the moment that it is known, which is never changed; a "q" while it waits; a "u"
 * once something was found out about it. "k" is small because all of them are read when the frontier is
 * opened. A retry stands at the end of its priority: its depth in the position is the greatest.
 *
 * Readers take any bytes: damage is ERR_CORRUPT.
 */
#ifndef MNEMON_CRAWL_FRONTIER_FRONTIER_CODE_H
#define MNEMON_CRAWL_FRONTIER_FRONTIER_CODE_H

#include "base/buf.h"
#include "crawl/frontier/frontier_entry.h"

enum {
    FRONTIER_CODE_KEY_SIZE_MAX = 40,
    FRONTIER_CODE_SMALL_SIZE_MAX = 128, /* of k and m */
    FRONTIER_CODE_COUNTS_MAX = 4096,    /* hosts in a c */
    FRONTIER_CODE_COUNTS_SIZE_MAX = FRONTIER_CODE_COUNTS_MAX * 5,
    FRONTIER_CODE_RECORD_SIZE_MAX = FRONTIER_URL_SIZE_MAX + 2 * FRONTIER_VALIDATOR_SIZE_MAX + 256,
    FRONTIER_CODE_OUTGOING_KEY_SIZE_MAX = 1 + ROUTE_POSITION_SIZE + FRONTIER_URL_SIZE_MAX,
    FRONTIER_CODE_HOST_SIZE_MAX = 1 << 10,
    FRONTIER_CODE_HOSTS_MAX = 1 << 30,
};

#define FRONTIER_CODE_SEQUENCE_MAX ((UINT64_C(1) << 46) - 1)
#define FRONTIER_CODE_POSITION_END UINT64_MAX /* behind all positions; none is so large in practice */

/* Where a URL stands when it is not a retry. */
struct frontier_position {
    uint32_t host;
    enum frontier_priority priority;
    uint16_t depth;
    uint64_t sequence;
};

/* One that waits: q. */
struct frontier_waiting {
    uint16_t tries;   /* > 0: a retry */
    bool is_doubtful; /* marked as such itself: a retry of one that was */
    uint16_t depth;   /* what follows is of the place where it came from */
    uint64_t sequence;
    struct frontier_history history;
    struct bytes url;
};

/* One about which something is known: u. */
struct frontier_record {
    struct frontier_position place;
    enum frontier_state state;
    uint8_t reason;
    uint32_t visit; /* in which that was found out */
    int64_t due_us;
    uint16_t tries;          /* of a retry */
    uint64_t retry_sequence; /* of a retry; else 0 */
    struct frontier_history history;
    struct bytes url;
};

/* The value of "m state", which is part of every batch. */
struct frontier_meta {
    uint64_t serial;         /* of the batch, from 1 */
    uint64_t sequence;       /* the next free one */
    uint64_t doubtful_below; /* waiting ones of lower sequence waited when there was a crash */
    uint32_t visit;
    int64_t visit_start_us;
    int64_t due_before_us; /* of this visit */
    bool is_moving;        /* known URLs are still being brought back into the queue */
    bool is_recalling;     /* of them: because others came or went; some may wait already */
    uint64_t moved_below;  /* fingerprints that have been looked at */
    uint64_t moved_count;
    uint64_t done_count;
    uint64_t failed_count;
    uint64_t cut_count;
};

uint64_t frontier_code_position(enum frontier_priority priority, uint16_t depth, uint64_t sequence);
enum frontier_priority frontier_code_priority(uint64_t position);
uint16_t frontier_code_depth(uint64_t position);
uint64_t frontier_code_sequence(uint64_t position);

/* Where the URL of the record waits, or would. */
uint64_t frontier_code_record_position(const struct frontier_record *record);

/* Each writes into out and returns the part of it that it used. */
struct bytes frontier_code_host_key(uint8_t out[FRONTIER_CODE_KEY_SIZE_MAX], char kind, uint32_t host);
struct bytes frontier_code_url_key(uint8_t out[FRONTIER_CODE_KEY_SIZE_MAX], char kind, uint64_t fingerprint);
struct bytes frontier_code_queue_key(uint8_t out[FRONTIER_CODE_KEY_SIZE_MAX], uint32_t host,
                                     uint64_t position);
struct bytes frontier_code_name_key(uint8_t out[FRONTIER_CODE_KEY_SIZE_MAX], char kind, const char *name);
struct bytes frontier_code_count(uint8_t out[FRONTIER_CODE_SMALL_SIZE_MAX], uint32_t count);
struct bytes frontier_code_place(uint8_t out[FRONTIER_CODE_SMALL_SIZE_MAX],
                                 const struct frontier_position *place);
struct bytes frontier_code_meta(uint8_t out[FRONTIER_CODE_SMALL_SIZE_MAX], const struct frontier_meta *meta);

/* A link that waits to be looked up; of waiting, URL, depth and doubt count. */
struct bytes frontier_code_later(uint8_t out[FRONTIER_CODE_RECORD_SIZE_MAX], enum frontier_priority priority,
                                 const struct frontier_waiting *waiting);
enum err frontier_code_read_later(struct bytes value, enum frontier_priority *ret_priority,
                                  struct frontier_waiting *ret_waiting) MUST_CHECK;

/* What is too long for out has been refused before: see the limits of frontier.h. */
struct bytes frontier_code_waiting(uint8_t out[FRONTIER_CODE_RECORD_SIZE_MAX],
                                   const struct frontier_waiting *waiting);
struct bytes frontier_code_record(uint8_t out[FRONTIER_CODE_RECORD_SIZE_MAX],
                                  const struct frontier_record *record);
struct bytes frontier_code_host(uint8_t out[FRONTIER_CODE_RECORD_SIZE_MAX], uint64_t domain,
                                struct bytes name);
struct bytes frontier_code_outgoing_key(uint8_t out[FRONTIER_CODE_OUTGOING_KEY_SIZE_MAX],
                                        const uint8_t place[ROUTE_POSITION_SIZE], struct bytes url);
struct bytes frontier_code_outgoing(uint8_t out[FRONTIER_CODE_SMALL_SIZE_MAX],
                                    enum frontier_priority priority, uint16_t depth);

/* Slices borrow from the value. */
enum err frontier_code_read_host_key(struct bytes key, char kind, uint32_t *ret_host) MUST_CHECK;
enum err frontier_code_read_url_key(struct bytes key, char kind, uint64_t *ret_fingerprint) MUST_CHECK;
enum err frontier_code_read_queue_key(struct bytes key, uint32_t *ret_host,
                                      uint64_t *ret_position) MUST_CHECK;

/* At most count_max of them. */
enum err frontier_code_read_counts(struct bytes value, uint32_t *ret_counts, size_t count_max,
                                   size_t *ret_count) MUST_CHECK;
enum err frontier_code_read_place(struct bytes value, struct frontier_position *ret_place) MUST_CHECK;
enum err frontier_code_read_meta(struct bytes value, struct frontier_meta *ret_meta) MUST_CHECK;
enum err frontier_code_read_waiting(struct bytes value, struct frontier_waiting *ret_waiting) MUST_CHECK;
enum err frontier_code_read_record(struct bytes value, struct frontier_record *ret_record) MUST_CHECK;
enum err frontier_code_read_host(struct bytes value, uint64_t *ret_domain, struct bytes *ret_name) MUST_CHECK;
enum err frontier_code_read_outgoing(struct bytes key, struct bytes value,
                                     struct frontier_outgoing *ret_link) MUST_CHECK;

#endif
