/*
 * decrees_state - one machine in several files, private to them:
 *
 *      decrees.c           the table: what is kept and why, for people and commands
 *      decrees_files.c     as files
 *      decrees_gossip.c    questions and answers between nodes
 *      decrees_obey.c      makes jobs and access rules of them
 */
#ifndef MNEMON_NODE_RING_DECREES_STATE_H
#define MNEMON_NODE_RING_DECREES_STATE_H

#include <pthread.h>
#include <sys/stat.h>

#include "node/ring/decrees.h"

enum { DECREES_PATH_SIZE_MAX = 4096 + 256 };

struct decrees_entry {
    uint8_t id[DECREE_ID_SIZE];
    uint8_t *encoded;
    size_t size;
    struct decree decree; /* borrows from encoded */
    bool is_on_disk;
    bool counts;
    bool relaxes_robots;  /* a job that ignores robots.txt */
    bool is_applying;     /* a deletion: its captures are being taken out */
    bool is_in_force;     /* the files say so, the node has read them, and the decree is on the disk */
    uint64_t taken_at_us; /* monotonic */
    char why_not[ERR_TEXT_SIZE_MAX];
};

/* A decree of this node's own, whose confirmations are asked for. */
struct decrees_watch {
    uint8_t id[DECREE_ID_SIZE];
    uint64_t version; /* 0: none */
};

/* Another node. */
struct decrees_node {
    struct peer peer;
    uint32_t confirmed; /* a bit for each watch */
    uint64_t ask_at_us;
    bool is_asked;
    enum err said;       /* the last time: ERR_OK if it answered */
    bool is_known;       /* to the ring now; else it is away */
    uint64_t seen_at_us; /* when it was known last */
};

struct decrees {
    struct decrees_config config;
    pthread_mutex_t lock;
    struct decrees_entry *entries; /* lock, as all below; by id */
    size_t count;
    size_t capacity;
    bool has_charter;
    bool is_judged; /* all of them, under this charter */
    struct charter charter;
    uint8_t ring[CHARTER_ID_SIZE];
    const struct identity *self; /* NULL: not known */
    uint64_t members_full_us;    /* when the allowance of members will be whole again */
    uint64_t refused_count;      /* of others: not a member, no room, too many at once */
    struct buf gone;             /* ids of files that must go */
    struct decrees_watch watches[DECREES_WATCHED_MAX];
    struct decrees_node *nodes;
    size_t nodes_count;
    bool has_nodes; /* else nobody has said who the others are since the last decree of this node */
    bool is_obeyed; /* since the last change */
    bool is_light;  /* from before the first beat */

    /* The beat's. */
    bool is_reader;        /* of a command that only looks: no file is removed */
    struct timespec seen;  /* of the directory */
    bool has_write_failed; /* the last time */
    unsigned again_beats;  /* until they are obeyed again; 0: they need not be */
    uint64_t judge_at_us;  /* memberships end */
};

/* ---- decrees.c ---- */

/* The lock is held. Where the id is, or would be. */
size_t decrees_position_of(const struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE]);
struct decrees_entry *decrees_find(struct decrees *decrees, const uint8_t id[DECREE_ID_SIZE]);

/* From the disk: kept even if it does not count now, as far as there is room. */
enum err decrees_add_file(struct decrees *decrees, struct bytes encoded,
                          struct err_detail *detail) MUST_CHECK;

uint64_t decrees_now_us(const struct decrees *decrees);
void decrees_say(const struct decrees *decrees, const char *sentence);

/* ---- decrees_files.c ---- */

/* By the thread of the beat; the lock is not held. */
void decrees_files_remove_gone(struct decrees *decrees);
void decrees_files_read(struct decrees *decrees);
void decrees_files_write(struct decrees *decrees);

/* ---- decrees_gossip.c ---- */

/* The lock is held: one of this node's own is there. */
void decrees_watch(struct decrees *decrees, const struct decrees_entry *entry);

/* The lock is held: who has confirmed it, as members of an object. Nothing if it is not watched. */
void decrees_put_confirmations(const struct decrees *decrees, const struct decrees_entry *entry,
                               struct json *json);

/* ---- decrees_obey.c ---- */

/* By the thread of the beat; the lock is not held. Write jobs and rules as the decrees say. False: the disk
 * did not take all of it, or the rules cannot be read. */
bool decrees_obey(struct decrees *decrees);

/* Only what is deleted: no file is written. */
void decrees_obey_deletions(struct decrees *decrees);

/* Does the text of a job ask to ignore robots.txt? False as well if it is none. */
bool decrees_job_relaxes_robots(struct bytes text);

#endif
