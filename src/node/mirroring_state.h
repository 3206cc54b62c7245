/* mirroring_state - what the files of mirroring*.c share. Private to them. */
#ifndef MNEMON_NODE_MIRRORING_STATE_H
#define MNEMON_NODE_MIRRORING_STATE_H

#include <pthread.h>

#include "node/collection.h"
#include "node/mirroring.h"
#include "node/mirroring_code.h"

enum {
    MIRRORING_WANTED_MAX = 1 << 20, /* chunks that are listed at once: 36 MB of memory */
    MIRRORING_UNDER_WAY_MAX = 2,    /* questions of one batch, so that the line is never idle */
    MIRRORING_BATCHES_MAX = 64,
    MIRRORING_FOLLOWERS_MAX = 32, /* who asked, of one collection; new ones replace the oldest */
    MIRRORING_EVENTS_MAX = 4096,  /* that others can cause, waiting */
    MIRRORING_RECEIVERS_MAX = 2,  /* of one collection at once: they hand on what they get */
    MIRRORING_ASK_MS = 15000,
    MIRRORING_CHUNKS_MS = 120000, /* one answer of 1 MiB over a modem line */
    MIRRORING_SENTENCE_SIZE_MAX = 320,
};

/* Some of what is wanted, with a number that group/mirror.h knows. */
struct mirroring_batch {
    uint64_t number; /* 0: free */
    struct manifest_ref *refs;
    size_t count;
};

/* A batch, or what is missing of it, on its way from one source. */
struct mirroring_transfer {
    struct mirroring_transfer *next;
    uint64_t serial; /* its own: two sources may have one batch */
    uint64_t number;
    struct peer source;
    struct manifest_ref *refs;
    size_t count;
    size_t asked_count;     /* of the refs, from the first on */
    size_t under_way_count; /* questions */
    size_t missing_count;   /* that he does not have */
    uint64_t size;          /* that came */
    uint64_t started_us;
    enum err err;
    bool may_come; /* what is missing: he is getting it himself */
    bool is_given_up;
};

struct mirroring_follower {
    struct peer peer;
    uint64_t heard_us;
};

/* A neighbour that people named: who is there is found out. */
struct mirroring_named {
    bool is_known;
    bool is_asked;
    uint64_t ask_at_us;
    struct peer peer;
};

struct mirroring_mirror {
    struct mirroring *mirroring;
    struct collection_setup setup;
    struct collection *collection; /* NULL: cannot be opened, or the publisher is not known yet */
    struct mirror *mirror;         /* likewise */
    bool is_listed;                /* while the list is made anew */
    bool is_told;                  /* that it cannot be opened */
    struct mirroring_named named[COLLECTION_SETUP_SOURCES_MAX];
    struct mirroring_follower followers[MIRRORING_FOLLOWERS_MAX];
    size_t followers_count;
    struct mirroring_follower receivers[MIRRORING_RECEIVERS_MAX]; /* lock: who is just given chunks */
    uint64_t given_size; /* lock, as the next: to others, by the bulk thread */
    uint64_t answers_count;

    /* The version on its way. */
    struct manifest_ref *wanted; /* MIRRORING_WANTED_MAX; NULL: not needed yet */
    size_t wanted_count;
    size_t wanted_start; /* those before are in batches */
    bool is_all;         /* when these are here, all is */
    uint64_t want_at_us; /* not before: this machine has failed */
    uint64_t begun_us;
    uint8_t told_key[PEER_KEY_SIZE]; /* whose use was noted last */
    uint64_t begun_size;             /* fetched, in all, when it was begun */
    struct mirroring_batch batches[MIRRORING_BATCHES_MAX];
    struct mirroring_transfer *transfers;
};

enum mirroring_event_kind {
    MIRRORING_VERSION_ANSWER, /* of who was asked, or told */
    MIRRORING_CHUNKS_ANSWER,
    MIRRORING_HEARD, /* somebody asked us, and said what he has */
};

/* Something that happened; also a question of ours on its way. */
struct mirroring_event {
    struct mirroring_event *next;
    struct mirroring_event *next_asked; /* all questions: for the end */
    struct mirroring_event *previous_asked;
    struct mirroring *mirroring;
    enum mirroring_event_kind kind;
    char name[VERSION_NAME_SIZE_MAX + 1]; /* of the collection */
    struct peer peer;
    size_t named_index; /* of a neighbour that people named; SIZE_MAX: none */
    bool is_notice;     /* he was told, not asked */
    uint64_t number;    /* of the version that he was known to have when he was asked */
    uint64_t transfer;  /* chunks: its serial, */
    size_t first;       /* and which of its refs */
    size_t count;
    uint32_t timeout_ms;
    struct buf question;
    struct buf answer; /* or what he said that he has */
    enum err err;
};

struct mirroring {
    struct mirroring_config config;
    pthread_t thread;
    bool is_running;
    uint64_t looked_at_us;
    uint64_t described_at_us;
    uint64_t serial;                                              /* of transfers */
    struct mirroring_mirror *mirrors[COLLECTION_SETUP_NAMES_MAX]; /* changed by the thread, under the lock */
    size_t mirrors_count;

    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool is_stopped;
    struct mirroring_event *events; /* in order */
    struct mirroring_event **events_end;
    size_t heard_count;            /* of the events */
    struct mirroring_event *asked; /* all questions on their way */
    struct buf status;             /* as JSON, a moment ago */
};

uint64_t mirroring_now_us(const struct mirroring *mirroring);
void mirroring_note(const struct mirroring *mirroring, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* mirroring_ask.c: a question on its way; its answer becomes an event. question and fields are the caller's
 * to fill before. NULL: out of memory. */
struct mirroring_event *mirroring_event_new(struct mirroring *mirroring, enum mirroring_event_kind kind,
                                            const char *name, const struct peer *peer);
void mirroring_ask(struct mirroring_event *take_event);
void mirroring_event_free(struct mirroring_event *event);
void mirroring_queue(struct mirroring_event *take_event);

/* mirroring_sources.c */
void mirroring_set_sources(struct mirroring_mirror *mirror);
void mirroring_note_follower(struct mirroring_mirror *mirror, const struct peer *peer);

/* Of the version that he is known to have; 0: none, or he is no source. */
uint64_t mirroring_known_number(const struct mirroring_mirror *mirror, const uint8_t key[PEER_KEY_SIZE]);

/* mirroring_answer.c */
enum err mirroring_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                          struct err_detail *detail);

/* mirroring_fetch.c */
void mirroring_begin(struct mirroring_mirror *mirror, const struct mirror_task *task);
void mirroring_fetch(struct mirroring_mirror *mirror, const struct mirror_task *task);
void mirroring_cancel(struct mirroring_mirror *mirror, const struct mirror_task *task);
void mirroring_apply(struct mirroring_mirror *mirror);
void mirroring_take_chunks(struct mirroring_mirror *mirror, const struct mirroring_event *event);
void mirroring_want(struct mirroring_mirror *mirror);         /* more, where what was wanted has come */
void mirroring_drop_version(struct mirroring_mirror *mirror); /* and all its memory */

/* mirroring_json.c: the thread. */
void mirroring_describe(struct mirroring *mirroring);

#endif
