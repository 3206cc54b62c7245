/*
 * mirror_driver_state - the state of mirror_driver.h. Private.
 *
 * One machine in several files: mirror_driver.c lives, asks and knows the sources; mirror_driver_wanted.c
 * lists which chunks are missing and which nodes have them; mirror_driver_fetch.c fetches them;
 * mirror_driver_answer.c answers other nodes; mirror_driver_json.c describes it all.
 */
#ifndef MNEMON_NODE_MIRROR_MIRROR_DRIVER_STATE_H
#define MNEMON_NODE_MIRROR_MIRROR_DRIVER_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "node/mirror/collection.h"
#include "node/mirror/mirror_driver.h"
#include "node/mirror/mirror_driver_code.h"
#include "node/mirror/mirror_driver_rates.h"
#include "replay/site/sheet.h"
#include "run/task.h"

enum {
    MIRROR_DRIVER_WANTED_MAX = 1 << 20, /* chunks that are listed at once: 41 MB of memory */
    MIRROR_DRIVER_UNDER_WAY_MAX = 2,    /* questions of one batch, so that the line is never idle */
    MIRROR_DRIVER_BATCHES_MAX = 64,
    MIRROR_DRIVER_FOLLOWERS_MAX = 32,  /* nodes that asked for one collection; new ones replace the oldest */
    MIRROR_DRIVER_EVENTS_MAX = 4096,   /* that others can cause, waiting */
    MIRROR_DRIVER_GIVEN_MAX = 1 << 20, /* chunks of which a publisher counts how often it gave them: 50 MB */
    MIRROR_DRIVER_ASK_MS = 15000,
    MIRROR_DRIVER_CHUNKS_MS = 120000, /* one answer of 1 MiB over a modem line */
    MIRROR_DRIVER_SENTENCE_SIZE_MAX = 320,
};

enum mirror_driver_item_state {
    MIRROR_DRIVER_WANTED,
    MIRROR_DRIVER_TAKEN /* in a batch */,
    MIRROR_DRIVER_HERE
};

/* What is missing of the version on its way, and what is not. */
struct mirror_driver_wanted {
    struct collection_wants list;
    uint8_t *states; /* of each: enum mirror_driver_item_state */
    uint64_t serial; /* of the list; 0: none */
    size_t first;    /* where this node begins: each at another place, so that they have what others lack */
    size_t start;    /* from there on, those before are not wanted any more */
    uint64_t left_size; /* of those in state MIRROR_DRIVER_WANTED */

    /* mirroring->lock: which chunks of the version are here, as others are told. */
    uint8_t root[SHA256_SIZE];
    uint8_t *parts; /* a bit each; NULL: none */
    size_t parts_count;
};

/* What another has of it. */
struct mirror_driver_holder {
    uint8_t key[PEER_KEY_SIZE];
    bool is_whole;
    uint8_t *has;      /* a bit for each chunk of the version; NULL: nothing is known */
    uint8_t *withheld; /* of them, what we should ask others for; NULL: nothing */
};

/* Some of what is wanted, with a number that protocol/mirror/mirror.h knows. */
struct mirror_driver_batch {
    uint64_t number; /* 0: free */
    uint32_t *items; /* in the list */
    size_t count;
};

/* A batch, or what is missing of it, on its way from one source. */
struct mirror_driver_transfer {
    struct mirror_driver_transfer *next;
    uint64_t serial; /* its own: two sources may have one batch */
    uint64_t number;
    struct peer source;
    uint64_t list;   /* serial of the list that the items are of */
    uint32_t *items; /* a copy of the batch's, as far as they are missing */
    size_t count;
    size_t asked_count;     /* of the items, from the first on */
    size_t under_way_count; /* questions */
    size_t missing_count;   /* that the source does not have and will not get */
    size_t noted_count;     /* that the source does not have yet, or withholds */
    uint64_t size;          /* that came */
    uint64_t started_us;
    enum err err;
    bool is_needed; /* also what the source withholds */
    bool is_given_up;
};

struct mirror_driver_follower {
    struct peer peer;
    uint64_t heard_us;
};

/* A neighbour that people named: its key is found out. */
struct mirror_driver_named {
    bool is_known;
    bool is_asked;
    uint64_t ask_at_us;
    enum err err;     /* of the last question */
    struct peer peer; /* lock, for others than the thread */
};

struct mirror_driver_mirror {
    struct mirror_driver *driver;
    struct collection_setup setup;
    struct collection *collection; /* NULL: cannot be opened, or the publisher is not known yet */
    struct mirror *mirror;         /* likewise */
    bool is_listed;                /* while the list is made anew */
    bool is_told;                  /* that it cannot be opened */
    uint64_t ask_neighbours_at_us; /* while the publisher is not known */
    struct mirror_driver_named named[COLLECTION_SETUP_SOURCES_MAX];
    struct mirror_driver_follower followers[MIRROR_DRIVER_FOLLOWERS_MAX];
    size_t followers_count;
    uint64_t given_size; /* lock, as the next four: to others, by the thread of peer RPC */
    uint64_t answers_count;
    uint64_t withheld_count;
    struct map given;     /* at a publisher: digest -> how often, in this wave of questions */
    uint64_t given_at_us; /* the last time */

    /* The version on its way. */
    struct mirror_driver_wanted wanted;
    uint64_t want_at_us; /* not before: this machine has failed */
    struct mirror_driver_holder holders[MIRROR_DRIVER_SOURCES_MAX];
    size_t holders_count;
    bool are_offers_stale; /* what is wanted, or which nodes have it, has changed since they were said */
    uint64_t begun_us;
    uint8_t told_key[PEER_KEY_SIZE]; /* whose use was noted last */
    uint64_t begun_size;             /* fetched, in all, when it was begun */
    struct mirror_driver_batch batches[MIRROR_DRIVER_BATCHES_MAX];
    struct mirror_driver_transfer *transfers;
};

enum mirror_driver_event_kind {
    MIRROR_DRIVER_VERSION_ANSWER, /* of a node that was asked, or told */
    MIRROR_DRIVER_CHUNKS_ANSWER,
    MIRROR_DRIVER_PARTS_ANSWER,
    MIRROR_DRIVER_HEARD, /* a node asked us, and said what it has */
};

/* Something that happened; also a question of ours on its way. */
struct mirror_driver_event {
    struct mirror_driver_event *next;
    struct mirror_driver *driver;
    enum mirror_driver_event_kind kind;
    char name[VERSION_NAME_SIZE_MAX + 1]; /* of the collection */
    struct peer peer;
    size_t named_index; /* of a neighbour that people named; SIZE_MAX: none */
    bool is_notice;     /* the peer was told, not asked */
    uint64_t number;    /* of the version that the peer was known to have when it was asked */
    uint64_t transfer;  /* chunks: its serial, */
    size_t first;       /* and which of its items */
    uint64_t list;      /* parts: serial of the list that they are asked for */
    size_t count;
    uint32_t timeout_ms;
    struct buf question;
    struct buf answer; /* or what the peer said that it has */
    enum err err;
};

struct mirror_driver {
    struct mirror_driver_config config;
    struct task task;
    uint64_t looked_at_us;
    uint64_t described_at_us;
    uint64_t serial; /* of transfers and lists */
    struct mirror_driver_mirror
        *mirrors[COLLECTION_SETUP_NAMES_MAX]; /* changed by the task, under the lock */
    size_t mirrors_count;

    struct mirror_limit limit; /* the task's */

    pthread_mutex_t lock; /* of all below */
    struct mirror_limit upload_limit;
    struct mirror_driver_event *events; /* in order */
    struct mirror_driver_event **events_end;
    size_t heard_count; /* of the events */
    struct buf status;  /* as JSON, a moment ago */
    struct buf metrics; /* likewise */
    struct sheet rows;  /* of the table that the dashboard shows, likewise */
};

static inline bool mirror_driver_bit(const uint8_t *bits, size_t index) {
    return (bits[index / 8] >> index % 8 & 1) != 0;
}

static inline void mirror_driver_set_bit(uint8_t *bits, size_t index, bool is_set) {
    uint8_t mask = (uint8_t)(1U << index % 8);
    bits[index / 8] = (uint8_t)(is_set ? bits[index / 8] | mask : bits[index / 8] & ~mask);
}

uint64_t mirror_driver_now_us(const struct mirror_driver *driver);
void mirror_driver_note(const struct mirror_driver *driver, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* mirror_driver.c: a question on its way; its answer becomes an event. The caller fills the question and its
 * fields before. NULL: out of memory. */
struct mirror_driver_event *mirror_driver_event_new(struct mirror_driver *driver,
                                                    enum mirror_driver_event_kind kind, const char *name,
                                                    const struct peer *peer);
void mirror_driver_ask(struct mirror_driver_event *take_event);
void mirror_driver_queue(struct mirror_driver_event *take_event);

/* mirror_driver_answer.c: which nodes are at the addresses that people named? */
void mirror_driver_ask_named(struct mirror_driver_mirror *mirror);
void mirror_driver_take_named(struct mirror_driver_mirror *mirror, const struct mirror_driver_event *event,
                              enum err err, const uint8_t key[PEER_KEY_SIZE]);

/* Other nodes may read it now. */
void mirror_driver_set_readers(struct mirror_driver_mirror *mirror, const struct collection_readers *readers);

/* mirror_driver.c: what is known of the source with that key; false: it is none, and *ret_status is changed.
 */
bool mirror_driver_find_source(const struct mirror_driver_mirror *mirror, const uint8_t key[PEER_KEY_SIZE],
                               struct mirror_source_status *ret_status);

/* The same file: asks a peer for its newest version and tells it ours. */
void mirror_driver_ask_version(struct mirror_driver_mirror *mirror, const struct peer *peer,
                               size_t named_index, bool is_notice);

/* mirror_driver_answer.c */
enum err mirror_driver_answer(void *context, const struct peer *from, struct bytes question,
                              struct buf *answer, struct err_detail *detail);

/* mirror_driver_wanted.c: the list, and its items in this node's order. */
enum err mirror_driver_list(struct mirror_driver_mirror *mirror, const struct version *target,
                            struct err_detail *detail) MUST_CHECK;
size_t mirror_driver_item_at(const struct mirror_driver_wanted *wanted, size_t index); /* below list.count */
void mirror_driver_set_state(struct mirror_driver_wanted *wanted, size_t item,
                             enum mirror_driver_item_state state);
void mirror_driver_skip_taken(struct mirror_driver_wanted *wanted);
void mirror_driver_forget_list(struct mirror_driver_mirror *mirror); /* not the parts: they are here */
void mirror_driver_free_list(struct mirror_driver_mirror *mirror);

/* The same file: what others have of it. */
struct mirror_driver_holder *mirror_driver_holder(struct mirror_driver_mirror *mirror,
                                                  const uint8_t key[PEER_KEY_SIZE]);
bool mirror_driver_offers(const struct mirror_driver_mirror *mirror,
                          const struct mirror_driver_holder *holder, size_t item, bool is_needed);
void mirror_driver_note_lack(struct mirror_driver_mirror *mirror, struct mirror_driver_holder *holder,
                             size_t item, bool is_withheld);
void mirror_driver_set_offers(struct mirror_driver_mirror *mirror);
void mirror_driver_look(struct mirror_driver_mirror *mirror, const struct mirror_task *task);
void mirror_driver_take_parts(struct mirror_driver_mirror *mirror, const struct mirror_driver_event *event);

/* mirror_driver_fetch.c */
void mirror_driver_begin(struct mirror_driver_mirror *mirror, const struct mirror_task *task);
void mirror_driver_fetch(struct mirror_driver_mirror *mirror, const struct mirror_task *task);
void mirror_driver_cancel(struct mirror_driver_mirror *mirror, const struct mirror_task *task);
void mirror_driver_apply(struct mirror_driver_mirror *mirror);
void mirror_driver_take_chunks(struct mirror_driver_mirror *mirror, const struct mirror_driver_event *event);
void mirror_driver_want(struct mirror_driver_mirror *mirror); /* more, where what was wanted has come */
void mirror_driver_drop_version(struct mirror_driver_mirror *mirror); /* and all its memory */

/* mirror_driver_json.c: the thread. */
void mirror_driver_describe(struct mirror_driver *driver);

#endif
