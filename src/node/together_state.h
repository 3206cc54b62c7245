/* together_state - what the files of together*.c share. Private to them. */
#ifndef MNEMON_NODE_TOGETHER_STATE_H
#define MNEMON_NODE_TOGETHER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "node/captures/captures.h"
#include "node/copies/copies.h"
#include "node/crawl/crawl_loop.h"
#include "node/crowd/crowd_reader.h"
#include "node/crowd/kept.h"
#include "node/group/group_driver.h"
#include "node/leases/host_leases.h"
#include "node/links/link_sender.h"
#include "node/mirror/mirror_driver.h"
#include "node/reading/public_urls.h"
#include "node/reading/ring_reader.h"
#include "node/ring/routing.h"
#include "node/together.h"
#include "node/transport/transport.h"

struct depositing;

/* A job that the ring shares, as links on their way name it. */
struct together_job {
    char name[LINK_SENDER_JOB_NAME_SIZE_MAX];
    uint8_t id[LINKS_CODE_JOB_SIZE];
};

struct together {
    struct together_config config;
    struct transport *transport;
    struct crawl_loop *crawl_loop;
    struct access *_Atomic access; /* NULL: not opened yet */
    struct holders *holders;
    struct decrees *decrees;
    struct peer self;
    uint64_t updated_at_us; /* the ring's loop: of the holders */

    /* From the start in a ring; else from when there is a group, or a collection that needs none. */
    struct peer_rpc *_Atomic peer_rpc; /* NULL: in none */
    bool is_peer_rpc_started;          /* the starting thread's, then the beat's, as the next three */
    bool is_grouped;                   /* the groups have begun */
    bool is_group_told;                /* that they cannot */
    bool is_mirror_told;               /* that collections cannot */
    struct group_driver *group_driver;
    struct mirror_driver *_Atomic mirror_driver; /* NULL: bulk does not run yet */
    struct depositing *_Atomic depositing;       /* NULL: before the first beat */
    bool is_deposit_told;                        /* that archives of others cannot be served */

    /* From the start, in a ring. */
    bool has_ring;
    struct routing *routing;
    struct route route;
    struct host_leases *host_leases;
    struct backend *guest; /* the instance's */
    struct public_urls *public_urls;

    /* From when there is a charter. */
    _Atomic bool is_begun; /* set by the beat's thread when all of it is there */
    struct copies *copies;
    struct captures *captures;
    struct ring_reader_service *service;
    struct link_sender *link_sender;
    struct offers *offers; /* NULL: without the crowd, as the next two */
    struct crowd_driver *crowd_driver;
    struct crowd_reader *crowd_reader;
    struct kept *kept; /* NULL: only what was read is offered */

    /* The beat's. */
    bool is_told;             /* that it cannot begin */
    uint64_t generation;      /* of the holders, when the crawl last looked through its URLs */
    unsigned settling_count;  /* beats since the ring last changed */
    uint64_t seen_generation; /* of the last beat */

    pthread_mutex_t lock;
    bool has_charter;                               /* lock */
    struct charter charter;                         /* lock */
    uint8_t ring_id[RING_CHARTER_SIZE];             /* lock */
    struct together_job jobs[LINK_SENDER_JOBS_MAX]; /* lock */
    size_t jobs_count;                              /* lock */
};

/* together_crowd.c. The beat's thread, before the bulk thread starts; a failure leaves the node without. */
void together_make_crowd(struct together *together, uint8_t mapping);
void together_beat_crowd(struct together *together);
void together_stop_crowd(struct together *together);
void together_free_crowd(struct together *together);

/* The ring's loop; more than once does no harm. context: the struct together. */
void together_begin_crowd(void *context);

/* together_groups.c: as together_prepare(), where there is a group; then, the beat: looks at the files. */
enum err together_prepare_groups(struct together *together, struct err_detail *detail) MUST_CHECK;
void together_beat_groups(struct together *together);
void together_on_group(void *shared, const struct datagram_message *message);

/* together_mirror.c: as together_prepare(), where a collection comes from, or is for, somebody who is in no
 * group and no ring with us; then, the beat: begins where bulk runs; before bulk is freed. */
enum err together_prepare_mirrors(struct together *together, struct err_detail *detail) MUST_CHECK;
void together_beat_mirrors(struct together *together);
void together_stop_mirrors(struct together *together);
void together_free_mirrors(struct together *together);

/* together_deposits.c: from the first beat on; stopped after mirroring, which asks what there is to be told.
 */
void together_beat_deposits(struct together *together);
void together_stop_deposits(struct together *together);
void together_put_deposit(void *context, const char *name, struct buf *out);

/* Any thread: node/mirror/mirror_driver.h. */
bool together_hears(struct together *together, const struct peer *peer);

/* together.c: bulk is made, or started, where it was not. */
enum err together_make_peer_rpc(struct together *together, struct err_detail *detail) MUST_CHECK;
enum err together_start_peer_rpc(struct together *together, struct err_detail *detail) MUST_CHECK;

/* together_links.c: what walking asks for; context: the struct together. */
extern const struct link_sender_table together_links;

/* The jobs that are shared, as the disk has them now; new ones are walked for. By the beat. */
void together_look_at_jobs(struct together *together);

/* The route's: there are outgoing links. */
void together_on_outgoing(void *context, const char *job);

#endif
