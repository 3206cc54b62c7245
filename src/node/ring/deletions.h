/*
 * deletions - captures that the ring has deleted, on this node: refused and hidden at once, then taken out.
 *
 *      decrees ── what counts ──> deletions_end()    the instance neither shows nor takes them from now on
 *                                 its thread         takes them out of the volumes, in batches; then the
 * decree is in force here DIR/ring/deletions/ID                         how far that is, and how many went:
 * written before and after
 *
 * A node that is killed in the middle begins again and finds the rest. What comes in by another way all the
 * same (a volume that was down, a segment that was put there by hand) is taken out within the hour.
 *
 * Any thread, if nothing else is said. Format of the files: docs/formats/decree.md.
 */
#ifndef MNEMON_NODE_RING_DELETIONS_H
#define MNEMON_NODE_RING_DELETIONS_H

#include "base/clock.h"
#include "base/json.h"
#include "protocol/ring/decree.h"
#include "store/instance/instance.h"

struct deletions;

struct deletions_config {
    const char *directory;                             /* of the data; outlives it */
    struct instance *instance;                         /* NULL: no archive is at hand */
    const struct clock *clock;                         /* NULL: the system's */
    void (*note)(void *context, const char *sentence); /* its thread; may be NULL, as the next */
    void (*applied)(void *context);                    /* one more is in force, or cannot be */
    void *context;
};

struct deletions *deletions_new(const struct deletions_config *config); /* NULL: out of memory */
void deletions_free(struct deletions *deletions);                       /* may be NULL */

/* A thread of its own takes captures out from now on. */
enum err deletions_start(struct deletions *deletions) MUST_CHECK;
void deletions_stop(struct deletions *deletions);

/* Without one: take out what is to go, and wait for it. The first error. */
enum err deletions_run(struct deletions *deletions, struct err_detail *detail) MUST_CHECK;

/* ---- by the thread that obeys decrees: all that count, one after the other ---- */

void deletions_begin(struct deletions *deletions);

/* ERR_INVALID, ERR_UNSUPPORTED: the text cannot be understood, and nothing of it is done. */
enum err deletions_order(struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE], uint64_t version,
                         struct bytes text, struct err_detail *detail) MUST_CHECK;

/* Those, and no others, count from now on. */
void deletions_end(struct deletions *deletions);

/* ---- any thread ---- */

/* ERR_OK: all captures that it means have gone from this node. ERR_BUSY: they are going; else why they
 * cannot. */
enum err deletions_check(struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE], uint64_t version,
                         struct err_detail *detail) MUST_CHECK;

/* Is none of them being applied? */
bool deletions_are_done(struct deletions *deletions);

/* How many captures have gone by it here. */
uint64_t deletions_removed_count(struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE]);

/* As members of an object: urls, reason, from, to, and what was done here. */
void deletions_put_json(struct deletions *deletions, const uint8_t id[DECREE_ID_SIZE], uint64_t version,
                        struct bytes text, struct json *json);

#endif
