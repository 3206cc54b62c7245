/*
 * copies_state - the driver of protocol/copies/replicator.h, in several files, which share struct copies and
 * are its only readers:
 *
 *      copies.c         begin and end, the task that runs the machine, captures by their keys
 *      copies_work.c    actions of the machine that take time: questions to other nodes, lookups, the disk
 *      copies_fetch.c   captures that are wanted here are fetched, checked and stored
 *      copies_remove.c  surplus is removed
 *      copies_repair.c  damage is found and repaired
 *      copies_answer.c  answers to the questions of other nodes
 *      copies_tally.c   how many copies there are, of how many captures
 *      copies_json.c    the state for people
 */
#ifndef MNEMON_NODE_COPIES_COPIES_STATE_H
#define MNEMON_NODE_COPIES_COPIES_STATE_H

#include <pthread.h>

#include "base/json.h"
#include "node/copies/copies.h"
#include "node/copies/copies_left.h"
#include "protocol/copies/replicator.h"
#include "run/bell.h"
#include "run/pool.h"
#include "run/task.h"
#include "store/instance/scrub.h"
#include "store/keyset/keyset.h"
#include "store/keyset/keyset_feed.h"

enum {
    COPIES_WANTED_MAX = 32768,
    COPIES_CREW_COUNT = 6, /* threads that take answers apart, or wait for the disk or the ring */
    COPIES_ASK_MS = 10000,
};

/* To find captures of this node by their keys, and to read their payloads; of one thread. */
struct copies_reader {
    struct instance_session *session;
    struct sha256 sha256;
    struct buf surt;
    struct buf url;
    struct buf bounds;
};

/* Of one thread of the crew, by its seat. */
struct copies_hand {
    struct copies *copies;
    struct captures_session *fetches;
    struct copies_reader reader;
};

/* An action of the machine that is carried out, from when it is chosen to when its result is taken. */
struct copies_work {
    struct copies *copies;
    struct copies_work *next; /* in the list of those that are done */
    struct pool_job job;
    struct replicator_action action;
    struct buf message;
    struct buf answer;
    enum err err;
    struct holders_arc arc;
    bool is_good;
    bool is_cut;
    uint64_t wait_us;
    uint64_t answered_us;
};

/* What becomes of one item of a fetch. */
struct copies_arrival {
    struct copies *copies;
    struct copies_arrival *next; /* in the list of those that the disk is done with */
    uint32_t item;
    enum err err;
    bool is_about;
    uint64_t size;
};

/* What is under way, and what came of it: filled by other threads, emptied by the task. */
struct copies_news {
    pthread_mutex_t lock; /* the last one that is taken, if there are several */
    struct copies_work *works;
    struct copies_work **works_last;
    struct copies_arrival *arrivals;
    struct copies_arrival **arrivals_last;
    size_t open_count;   /* actions, and captures that the disk has */
    struct bell is_idle; /* it is 0 */
    enum err disk_err;   /* the last one that failed there */
    uint64_t full_until_us;
};

struct copies {
    struct copies_config config;
    struct captures *captures;
    struct task task;
    struct pool crew;
    struct copies_hand hands[COPIES_CREW_COUNT];
    struct copies_news news;

    /* The machine. Its events that look at the keys are the task's alone, which also changes the keys. */
    pthread_mutex_t lock;
    struct replicator *replicator; /* lock */
    struct replicator_world world;

    struct copies_left confirming; /* lock; of captures that other nodes are to have */
    struct copies_left coming;     /* lock; of those that are on the way here */

    /* The set of keys and its feed; locked for short times, after `lock` if both are. */
    pthread_mutex_t keys_lock;
    struct keyset *keyset;
    struct keyset_feed *feed;

    struct copies_reader answering; /* of the thread of peer_rpc */

    /* The task's. */
    struct ringkey *fresh; /* new here, of the last run of the feed */
    size_t fresh_count;
    bool has_lost_fresh;             /* there were more */
    struct copies_arrival *arrivals; /* by item */
    uint32_t *durable;               /* items that are stored, and may not be in the keys yet */
    size_t durable_count;
    bool is_feed_told; /* that the feed fails */
    struct scrub *scrub;
    uint64_t list_us; /* when a list of damaged captures is looked for */
};

/* ---- copies.c: begin and end, the task, captures of this node by their keys ---- */

uint64_t copies_now_us(const struct copies *copies);
bool copies_is_stopping(struct copies *copies);
void copies_blame(struct copies *copies, const struct peer *peer, const char *sentence);
void copies_note(struct copies *copies, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Any thread, if the event is of a kind that does not look at the keys; now_us is filled in. */
void copies_step(struct copies *copies, struct replicator_event event);

/* Take in what is new in the volumes. */
void copies_feed(struct copies *copies);

/* Begin what the machine wants to be done. */
void copies_act(struct copies *copies);

enum err copies_reader_init(struct copies_reader *reader, struct instance *instance) MUST_CHECK;
void copies_reader_done(struct copies_reader *reader);

/* The capture of a key, without its media type; SURT and URL last until the next call. ERR_NOT_FOUND. */
enum err copies_find_capture(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct capture *ret_capture, struct err_detail *detail) MUST_CHECK;

/* Its payload, until the next call. */
enum err copies_read_payload(struct copies *copies, struct copies_reader *reader, const struct ringkey *key,
                             struct bytes *ret_payload, struct err_detail *detail) MUST_CHECK;

/* ---- copies_answer.c: on the thread of peer_rpc ---- */

void copies_serve(struct copies *copies);

/* ---- copies_work.c ---- */

enum err copies_crew_init(struct copies *copies) MUST_CHECK;
void copies_crew_done(struct copies *copies);

struct copies_work *copies_work_new(struct copies *copies, const struct replicator_action *action);
void copies_work_free(struct copies_work *work);
void copies_work_begin(struct copies *copies, const struct replicator_action *action);
void copies_take_works(struct copies *copies); /* the task's: what others are done with */

/* Something is under way: nobody frees the copies meanwhile. */
void copies_open(struct copies *copies);
void copies_close(struct copies *copies);

/* ---- copies_fetch.c ---- */

void copies_fetch_begin(struct copies *copies, const struct replicator_action *action);
void copies_take_arrivals(struct copies *copies);                /* the task's: what the disk is done with */
void copies_settle_durable(struct copies *copies, size_t count); /* of them, the first are in the keys */
void copies_tell_disk(struct copies *copies);                    /* for the log, if it fails */
bool copies_is_full(struct copies *copies);

/* ---- copies_remove.c ---- */

enum err copies_remove(struct copies *copies, struct copies_reader *reader,
                       const struct ringkey *key) MUST_CHECK;

/* ---- copies_repair.c ---- */

enum err copies_scrub_init(struct copies *copies, struct err_detail *detail) MUST_CHECK;
void copies_take_damaged(struct copies *copies); /* what another process has found, now and then */
enum err copies_scrub(struct copies *copies, uint64_t *ret_wait_us) MUST_CHECK;

/* The document of the capture, by the copy of the peer; as REPLICATOR_REPAIRED has it. */
enum err copies_repair(struct copies_hand *hand, const struct ringkey *key, const struct peer *peer,
                       bool *ret_is_repaired, bool *ret_is_cut) MUST_CHECK;

/* ---- copies_tally.c: any thread ---- */

struct copies_tally {
    struct copy_plan_piece_status piece; /* whole: also of what is new */
    uint64_t keys_count;
    uint64_t coming_count; /* captures that were offered to us and are not here yet */
    uint64_t
        unconfirmed_count; /* new captures, times the members that have not said yet that they have them */
    uint64_t at_least[CHARTER_REPLICAS_MAX + 1]; /* captures that have so many live copies, or more */
};

/* Note how fast captures come and are confirmed; the task's. */
void copies_tally_pace(struct copies *copies);

/* Seconds until all that is under way, in either direction, is there; 0: nothing is, or it is not known. */
uint64_t copies_tally_left_s(struct copies *copies);

/* Our arcs, in the order of copy_plan_piece(); the caller frees them. Without memory there are none. */
size_t copies_tally(struct copies *copies, struct copies_tally **ret_arcs);

#endif
