/* together_state - what the files of together*.c share. Private to them. */
#ifndef MNEMON_NODE_TOGETHER_STATE_H
#define MNEMON_NODE_TOGETHER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "node/captures.h"
#include "node/crawling.h"
#include "node/keeping.h"
#include "node/lending.h"
#include "node/ring_shelf.h"
#include "node/ringing.h"
#include "node/routing.h"
#include "node/together.h"
#include "node/walking.h"

/* A job that the ring shares, as links on their way name it. */
struct together_job {
    char name[WALKING_JOB_NAME_SIZE_MAX];
    uint8_t id[LINKS_CODE_JOB_SIZE];
};

struct together {
    struct together_config config;
    struct ringing *ringing;
    struct crawling *crawling;
    struct holders *holders;
    struct decrees *decrees;
    struct peer self;
    uint64_t updated_at_us; /* the ring's loop: of the holders */

    /* From the start, in a ring. */
    struct bulk *bulk; /* NULL: in none */
    struct routing *routing;
    struct route route;
    struct lending *lending;
    struct shelf *guest; /* the instance's */

    /* From when there is a charter. */
    _Atomic bool is_begun; /* set by the beat's thread when all of it is there */
    struct keeping *keeping;
    struct captures *captures;
    struct ring_shelf_service *service;
    struct walking *walking;

    /* The beat's. */
    bool is_told;             /* that it cannot begin */
    uint64_t generation;      /* of the holders, when the crawl last looked through its URLs */
    unsigned settling_count;  /* beats since the ring last changed */
    uint64_t seen_generation; /* of the last beat */

    pthread_mutex_t lock;
    bool has_charter;                           /* lock */
    struct charter charter;                     /* lock */
    struct together_job jobs[WALKING_JOBS_MAX]; /* lock */
    size_t jobs_count;                          /* lock */
};

/* together_links.c: what walking asks for; context: the struct together. */
extern const struct walking_table together_links;

/* The jobs that are shared, as the disk has them now; new ones are walked for. By the beat. */
void together_look_at_jobs(struct together *together);

/* The route's: there are outgoing links. */
void together_on_outgoing(void *context, const char *job);

#endif
