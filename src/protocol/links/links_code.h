/*
 * links_code - many links in few bytes: how nodes hand each other URLs. Pure.
 *
 *      job[16]  varint count            links coded by the model (links_model.c): as few bytes as can be
 *      job[16]  varint 0  varint count  links coded by the table (links_table.c): in a tenth of the time
 *
 * The links are sorted by URL; of each only what differs from the one before is coded, with its priority and
 * depth. A datagram with 10 links of 59 characters takes about 15 bytes for each, and what is around them.
 * Specification and golden vectors: docs/protocol/links.md.
 *
 * Whoever reads is bounded: in links, in bytes of one URL, in bytes of all, and in work by the size of what
 * came.
 *
 * About 7 MiB, allocated once; one thread at a time. What was read borrows its memory until the next call.
 */
#ifndef MNEMON_PROTOCOL_LINKS_LINKS_CODE_H
#define MNEMON_PROTOCOL_LINKS_LINKS_CODE_H

#include "base/bytes.h"
#include "base/err.h"

enum {
    LINKS_CODE_JOB_SIZE = 16,
    LINKS_CODE_LINKS_MAX = 1024,
    LINKS_CODE_URL_SIZE_MAX = 4096,
    LINKS_CODE_TEXT_SIZE_MAX = 64 << 10, /* of all URLs together */
    LINKS_CODE_PRIORITY_MAX = 3,
};

struct links_code;

enum links_code_way { LINKS_CODE_BY_MODEL, LINKS_CODE_BY_TABLE };

struct links_code_link {
    struct bytes url; /* bytes 0x21 to 0x7e, as a normalised URL has them; not empty */
    uint16_t depth;
    uint8_t priority;
    uint64_t owner; /* the caller's, not coded */
};

struct links_code_batch {
    uint8_t job[LINKS_CODE_JOB_SIZE];
    const struct links_code_link *links; /* by URL, none twice */
    size_t count;
};

/* NULL: out of memory. */
struct links_code *links_code_new(void);
void links_code_free(struct links_code *code);

/* May this URL be sent at all? */
bool links_code_takes(struct bytes url);

/*
 * Sorts the links and writes them. Returns how many bytes, 0 if they do not fit: then with fewer links.
 * count: 1 to LINKS_CODE_LINKS_MAX; all URLs such that links_code_takes(), none twice.
 */
size_t links_code_write(struct links_code *code, enum links_code_way way,
                        const uint8_t job[LINKS_CODE_JOB_SIZE], struct links_code_link *links, size_t count,
                        uint8_t *out, size_t size_max);

/* NULL, or what is wrong with it. */
const char *links_code_read(struct links_code *code, struct bytes bytes, struct links_code_batch *ret_batch);

#endif
