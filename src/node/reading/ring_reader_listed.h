/*
 * ring_reader_listed - the captures of other nodes that were listed last: from a number back to the capture.
 *
 * The number is a hash of the ring's key of the capture, so a capture that is listed again keeps it. Bounded
 * in count and in bytes; the oldest make room. Any thread.
 */
#ifndef MNEMON_NODE_READING_RING_READER_LISTED_H
#define MNEMON_NODE_READING_RING_READER_LISTED_H

#include <pthread.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/peer.h"
#include "base/ringkey.h"
#include "store/index/index.h"

enum { RING_READER_LISTED_MAX = 1 << 14, RING_READER_LISTED_SIZE_MAX = 16 << 20 };

/* One of them. */
struct ring_reader_capture {
    uint64_t number;
    struct ringkey key;
    struct peer from;      /* the node that listed it last */
    uint64_t listed_at_us; /* and when; 0: nobody did */
    uint8_t digest[KEY_DIGEST_SIZE];
    uint32_t length; /* of its frame there, for people */
    uint16_t status;
    uint8_t flags;
    bool is_passed_over; /* nobody gave it */
    uint32_t surt_size;
    uint8_t *surt; /* the table's */
};

struct ring_reader_listed {
    pthread_mutex_t lock;
    struct ring_reader_capture *captures; /* a circle of RING_READER_LISTED_MAX */
    size_t first;
    size_t count;
    size_t size;          /* of their SURTs */
    struct map by_number; /* index in the circle */
    struct map by_digest; /* the number of one that has it */
};

enum err ring_reader_listed_init(struct ring_reader_listed *listed, uint64_t seed) MUST_CHECK;
void ring_reader_listed_done(struct ring_reader_listed *listed);

uint64_t ring_reader_number(struct sha256 *sha256, const struct ringkey *key);

/* Remember it. */
enum err ring_reader_listed_put(struct ring_reader_listed *listed, uint64_t number, const struct ringkey *key,
                                const struct capture *capture, const struct peer *from,
                                uint64_t listed_at_us) MUST_CHECK;

/* A copy; its SURT goes to *surt, and surt in the copy is NULL. False: it is not there (any more). */
bool ring_reader_listed_find(struct ring_reader_listed *listed, uint64_t number, struct buf *surt,
                             struct ring_reader_capture *ret_capture);

/* Nobody gave it: another that has the same document leads to that when it is listed again. */
void ring_reader_listed_pass_over(struct ring_reader_listed *listed, uint64_t number);

/* The number of one with this digest. */
bool ring_reader_listed_find_digest(struct ring_reader_listed *listed, const uint8_t digest[KEY_DIGEST_SIZE],
                                    uint64_t *ret_number, uint32_t *ret_length);

#endif
