/*
 * group_driver_state - the state of group_driver.h. Private.
 *
 * One machine in several files: group_driver.c lives, reads and writes files, and probes; group_driver_loop.c
 * steps the groups on the loop and asks contacts; group_driver_view.c shows copies of them to other threads.
 */
#ifndef MNEMON_NODE_GROUP_GROUP_DRIVER_STATE_H
#define MNEMON_NODE_GROUP_GROUP_DRIVER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/bucket.h"
#include "base/map.h"
#include "base/retry.h"
#include "node/group/group_driver.h"
#include "run/task.h"

enum {
    GROUP_DRIVER_ASKED_MAX = 16,   /* nodes of one group that wait for approval; the oldest makes room */
    GROUP_DRIVER_LEARNED_MAX = 64, /* transfers that the loop has not seen yet; more are dropped */
    GROUP_DRIVER_PROBES_MAX = 8,   /* under way at once */
    GROUP_DRIVER_MEMBERS_MAX = GROUP_DRIVER_GROUPS_MAX * GROUP_MEMBERS_MAX,
};

/* ---- between the threads ---- */

/* The beat has read a file. */
struct group_driver_news {
    struct group_driver_news *next;
    bool is_gone; /* there is no such group any more; only the name counts */
    bool has_state;
    struct group_wish wish;
    struct group_state_file state;
};

/* For the disk's task. */
struct group_driver_save {
    struct group_driver_save *next;
    char name[GROUP_FILES_NAME_SIZE_MAX];
    uint32_t life;   /* of the slot */
    bool is_removal; /* of all files of the group */
    bool has_number; /* EVENT_SAVED is wanted */
    uint64_t number;
    struct group_state_file state;
};

struct group_driver_learned {
    struct peer peer;
    uint64_t size;
    uint64_t duration_us;
};

/*
 *      FREE ─ claimed by the loop ─> OPENING ─> TIMING ─> PROBING ─ told or failed ─> FREE
 *              an empty one: the stream is there │  an empty one: the round trip
 */
enum group_driver_probe_state {
    GROUP_DRIVER_PROBE_FREE,
    GROUP_DRIVER_PROBE_OPENING,
    GROUP_DRIVER_PROBE_TIMING,
    GROUP_DRIVER_PROBE_PROBING
};

struct group_driver_probe {
    struct group_driver *driver;
    _Atomic enum group_driver_probe_state state;
    struct peer peer;
    uint32_t size;
    uint64_t asked_at_us;
    uint64_t round_trip_us;
};

/* ---- a group ---- */

struct group_driver_asked {
    struct peer peer;
    uint64_t at_us;
};

/* What other threads see. */
struct group_driver_view {
    char name[GROUP_FILES_NAME_SIZE_MAX];
    bool is_leaving;
    enum group_mode mode;
    bool is_master;
    bool is_refused;
    uint32_t term;
    uint32_t sequence;
    struct group_rules rules;
    struct group_counters counters;
    size_t neighbours_count;
    struct group_neighbour neighbours[GROUP_DRIVER_NEIGHBOURS_MAX];
    size_t asked_count;
    struct group_driver_asked asked[GROUP_DRIVER_ASKED_MAX];
};

struct group_driver_slot {
    /* The loop's. */
    bool is_used;
    uint32_t life; /* tells one user of the slot from the next */
    struct group_wish wish;
    struct group_rules rules; /* as they are known now */
    uint8_t id[GROUP_ID_SIZE];
    struct group *group; /* NULL: the contact has not said yet whose the group is */
    bool is_refused;
    bool is_removed; /* its files are being removed */
    uint64_t wake_at_us;
    struct retry ask; /* the contact, again and again until it answers; due STEP_NEVER_US: not now */
    bool is_told;     /* that the contact is not in the group itself */
    size_t asked_count;
    struct group_driver_asked asked[GROUP_DRIVER_ASKED_MAX];
    size_t approvals_count; /* GROUP_ASKED whose papers are good: said when the step is over */
    struct peer approvals[GROUP_DRIVER_ASKED_MAX];
    uint64_t copy_at_us;

    /* The lock's. */
    bool is_shown;
    struct group_driver_view view;
    struct topology *topology; /* a copy; NULL: none yet */
};

struct group_driver {
    struct group_driver_config config;
    struct transport *transport;
    struct peer_rpc *peer_rpc;
    struct peer self;
    _Atomic bool is_begun;
    _Atomic bool is_stopped;

    /* The loop's. */
    struct sha256 sha256;
    struct outbox out;
    struct action *actions;
    uint8_t *memory;
    struct group_driver_slot slots[GROUP_DRIVER_GROUPS_MAX];

    /* The beat's. */
    size_t known_count;
    struct group_wish *known;     /* GROUP_DRIVER_GROUPS_MAX */
    char told[ERR_TEXT_SIZE_MAX]; /* what is wrong with a file, said last */

    /* Of peer RPC's thread. */
    struct bucket probes_bucket; /* of those that we answer */

    struct task disk; /* writes saves */

    pthread_mutex_t lock; /* of all below */
    struct group_driver_news *news;
    struct group_driver_news **news_end;
    struct group_driver_save *saves; /* to be written */
    struct group_driver_save **saves_end;
    struct group_driver_save *saved; /* the loop has to be told */
    size_t learned_count;
    struct group_driver_learned learned[GROUP_DRIVER_LEARNED_MAX];
    struct map members; /* keys of all members of all groups */
    struct group_driver_probe probes[GROUP_DRIVER_PROBES_MAX];
};

static inline uint64_t group_driver_now_us(const struct group_driver *driver) {
    return clock_monotonic_us(driver->config.clock);
}

void group_driver_note(const struct group_driver *driver, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* group_driver_loop.c, on the loop. A step: applies an event with the current time, and all that follows. */
void group_driver_step(struct group_driver *driver, struct group_driver_slot *slot, struct event *event);
void group_driver_open_slot(struct group_driver *driver, struct group_driver_slot *slot,
                            const struct group_driver_news *news);
void group_driver_close_slot(struct group_driver *driver, struct group_driver_slot *slot);
/* NULL: no slot is used for a group of that name. */
struct group_driver_slot *group_driver_find(struct group_driver *driver, struct bytes name);
void group_driver_set_timer(struct group_driver *driver);

/* group_driver.c, on the loop: the files of a group that was left are removed. */
void group_driver_remove(struct group_driver *driver, struct group_driver_slot *slot);

/* group_driver.c: the task of the disk writes it. */
void group_driver_save(struct group_driver *driver, const struct group_driver_slot *slot,
                       const uint64_t *number, struct bytes document);

/* group_driver.c, on the loop: measures the bandwidth to a peer. */
void group_driver_probe(struct group_driver *driver, const struct peer *peer, uint32_t size);

/* group_driver_view.c, on the loop: what other threads see; at once if it matters. */
void group_driver_show(struct group_driver *driver, struct group_driver_slot *slot, bool is_now);
void group_driver_hide(struct group_driver *driver, struct group_driver_slot *slot);

#endif
