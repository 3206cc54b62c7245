/*
 * crowd_driver_state - the state of crowd_driver.h. Private.
 *
 * One machine in several files: crowd_driver.c drives the crowd on the loop and knows contacts, distrust and
 * JSON; crowd_driver_find.c runs the searches of other threads.
 */
#ifndef MNEMON_NODE_CROWD_CROWD_DRIVER_STATE_H
#define MNEMON_NODE_CROWD_CROWD_DRIVER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/prng.h"
#include "base/retry.h"
#include "base/standing.h"
#include "node/crowd/crowd_driver.h"
#include "run/bell.h"

enum {
    CROWD_DRIVER_VIEW_SIZE = 25, /* if none is set, as the next */
    CROWD_DRIVER_FANOUT = 5,
    CROWD_DRIVER_SEARCHES_MAX = 64,
    CROWD_DRIVER_WAITING_MAX = 256,   /* threads; those of the HTTP server are fewer */
    CROWD_DRIVER_DISTRUSTED_MAX = 64, /* the oldest makes room */
    CROWD_DRIVER_DROPS_MAX = 64,
    CROWD_DRIVER_LOOKS_MAX = 64,
    CROWD_DRIVER_REPEATS_MAX = 3, /* of a search that found only what does not count */
};

/* A node that spoke to us, or that the file names. */
struct crowd_driver_contact {
    struct peer peer;
    uint64_t heard_at_us; /* 0: in an earlier life */
};

/*
 *      FREE ─ find ─> NEW ─ the loop: CROWD_FIND ─> OPEN ─ CROWD_LOST, or enough hits ─> OVER
 *      NEW, OVER: FREE when the last thread has left; OPEN: LEFT, until the loop has said CROWD_ENOUGH
 */
enum crowd_driver_search_state {
    CROWD_DRIVER_FREE,
    CROWD_DRIVER_NEW,
    CROWD_DRIVER_OPEN,
    CROWD_DRIVER_LEFT,
    CROWD_DRIVER_OVER,
};

struct crowd_driver_search {
    enum crowd_driver_search_state state;
    uint64_t number; /* of CROWD_FIND: never used twice */
    uint8_t repeats_count;
    uint8_t discounts_count; /* hits that do not count, which the crowd has to be told */
    bool is_spoiled;         /* there were such */
    uint32_t users_count;
    enum err lost; /* of one that was lost: why */
    uint64_t begun_at_us;
    uint64_t first_at_us; /* the first hit */
    size_t hits_count;
    struct crowd_driver_hit hits[CROWD_DRIVER_HITS_MAX]; /* without their findings */
    size_t wish_size;
    uint8_t wish[CROWD_WISH_SIZE_MAX];
    struct bell changed;
};

/* An answer to CROWD_ASKED that came later, from another thread. */
struct crowd_driver_looked {
    uint64_t number;
    size_t finding_size;
    uint8_t finding[CROWD_FINDING_SIZE_MAX];
};

struct crowd_driver_totals {
    uint64_t finds_count;    /* calls of crowd_driver_find() */
    uint64_t shared_count;   /* of them, that joined another's search */
    uint64_t timeouts_count; /* of them, that waited in vain */
    uint64_t refused_count;  /* of them, too many at once */
    uint64_t distrusted_count;
    uint64_t rejoins_count;
};

struct crowd_driver {
    struct crowd_driver_config config;

    /* The loop's. */
    struct crowd *crowd; /* NULL until it has begun */
    struct crowd_config crowd_config;
    struct outbox out;
    struct action *actions;
    uint8_t *memory;
    struct buf answers; /* to CROWD_ASKED, said when the step is over: number, size in two bytes, finding */
    struct prng prng;
    struct peer members[CROWD_CONTACTS_MAX]; /* some of the ring's, at random */
    size_t members_count;
    struct retry join;        /* contacts are not brought before it is due */
    size_t joined_with_count; /* neighbours, when contacts were brought last */
    bool has_wants;           /* crowd_driver_take_wants() shall look */
    uint64_t copy_at_us;
    uint64_t blame_at_us; /* not before, for what makes no sense */

    _Atomic bool is_begun;
    _Atomic bool is_stopped;

    pthread_mutex_t lock; /* of all below */
    struct crowd_driver_search searches[CROWD_DRIVER_SEARCHES_MAX];
    uint64_t numbers_count;
    uint32_t waiting_count;
    struct standing standing; /* nodes that did not give what they had offered, by key */
    struct standing_entry distrusted[CROWD_DRIVER_DISTRUSTED_MAX];
    _Atomic bool distrusts_some;               /* without the lock: else nobody need be looked for */
    struct peer drops[CROWD_DRIVER_DROPS_MAX]; /* nodes that shall leave the view */
    size_t drops_count;
    struct crowd_driver_looked *looked; /* CROWD_DRIVER_LOOKS_MAX; NULL if nothing is looked for later */
    size_t looked_count;
    struct crowd_driver_contact contacts[CROWD_DRIVER_CONTACTS_MAX];
    size_t contacts_count;
    bool contacts_changed; /* since they were written */
    uint64_t write_at_us;  /* not before */
    struct crowd_driver_totals totals;
    struct crowd_counters counters; /* copies of the loop's */
    struct crowd_neighbour neighbours[CROWD_VIEW_MAX];
    size_t neighbours_count;
};

static inline uint64_t crowd_driver_now_us(const struct crowd_driver *driver) {
    return clock_monotonic_us(driver->config.clock);
}

/* crowd_driver.c, on the loop: applies an event with the current time, and all actions that follow. */
void crowd_driver_step(struct crowd_driver *driver, struct event *event);

/* crowd_driver_find.c, on the loop: what other threads want; CROWD_FOUND and CROWD_LOST. */
void crowd_driver_done_searches(struct crowd_driver *driver);
void crowd_driver_take_wants(struct crowd_driver *driver);
void crowd_driver_call_loop(struct crowd_driver *driver); /* any thread: it shall; else with the next news */
void crowd_driver_repeat_spoiled(struct crowd_driver *driver);
void crowd_driver_on_found(struct crowd_driver *driver, struct bytes bytes);
void crowd_driver_on_lost(struct crowd_driver *driver, struct bytes bytes);

/* crowd_driver.c; the lock is held. */
bool crowd_driver_distrusts(const struct crowd_driver *driver, const struct peer *peer);

/* crowd_driver.c, the file of contacts: a damaged one counts as none. */
size_t crowd_driver_files_read(const char *directory, struct peer out[CROWD_DRIVER_CONTACTS_MAX]);
enum err crowd_driver_files_write(const char *directory, const struct peer *peers, size_t count) MUST_CHECK;

#endif
