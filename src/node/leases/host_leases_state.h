/* host_leases_state - what the files of host_leases*.c share. Private to them. */
#ifndef MNEMON_NODE_LEASES_HOST_LEASES_STATE_H
#define MNEMON_NODE_LEASES_HOST_LEASES_STATE_H

#include <pthread.h>

#include "node/leases/host_leases.h"
#include "node/leases/host_leases_code.h"
#include "run/loop.h"
#include "run/task.h"
#include "web/url/canon.h"

enum {
    HOST_LEASES_PARCELS_MAX = 4096,
    HOST_LEASES_EVENTS_MAX = 4096,
    HOST_LEASES_WISHES_MAX = 1024,
    HOST_LEASES_TIMEOUT_MS = 5000, /* of a message */
    HOST_LEASES_TICK_US = 500000,
};

/* A message on its way out. The bulk thread's, once it was posted. */
struct host_leases_parcel {
    struct host_leases_parcel *next; /* of the late ones */
    struct host_leases *host_leases;
    struct peer to;
    enum host_leases_kind kind;
    uint64_t number; /* of the lease */
    struct buf host;
    struct buf message;
};

/* What the crawl's loop has to hear. */
struct host_leases_event {
    struct host_leases *host_leases;
    struct loop_post post;
    struct peer from; /* of a loss: whom it was for */
    bool is_loss;     /* a message of ours was not delivered; kind, host and number say which */
    bool is_certain;  /* of a loss: he did not get it */
    struct buf bytes; /* what the message borrows */
    struct host_leases_message message;
};

/* A place whose home has to be looked up. */
struct host_leases_wish {
    struct host_leases_wish *next;
    struct ring_id place;
};

/* An arc of ours, and since when. */
struct host_leases_arc {
    struct ring_id from;
    struct ring_id to;
    uint64_t since_us;
};

struct host_leases {
    struct host_leases_config config;
    struct permits permits;
    struct task finder;

    /* The bulk thread's. */
    struct host_leases_parcel *late; /* more than the other side takes for now; in order */

    /* The crawl's loop's. */
    struct crawler *crawler; /* NULL: detached */
    struct loop_timer tick;
    struct canon canon; /* work space */
    struct buf surt;
    struct sha256 sha256;
    struct host_leases_arc arcs[HOLDERS_ARCS_MAX];
    size_t arcs_count;

    pthread_mutex_t lock;
    struct loop *loop; /* lock, as all below; the crawl's; NULL: detached */
    size_t events_count;
    size_t parcels_count;
    struct host_leases_wish *wishes;
    size_t wishes_count;
    struct host_leases_stat stat;
};

uint64_t host_leases_now_us(const struct host_leases *host_leases);
int64_t host_leases_wall_us(const struct host_leases *host_leases);

/* host_leases_post.c */

/* The crawl's loop: send it. False: it was dropped. */
bool host_leases_send(struct host_leases *host_leases, const struct peer *to,
                      const struct host_leases_message *message);

/* The crawl's loop: see to those that had to wait. At the end: drop them. */
void host_leases_send_late(struct host_leases *host_leases);
void host_leases_drop_late(struct host_leases *host_leases);

/* host_leases.c: on the crawl's loop, while it is attached. */
void host_leases_on_event(struct host_leases *host_leases, struct host_leases_event *event);

/* The service. */
enum err host_leases_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                            struct err_detail *detail);

/* host_leases_find.c */
enum err host_leases_find_start(struct host_leases *host_leases);
void host_leases_find_stop(struct host_leases *host_leases);
void host_leases_find(struct host_leases *host_leases, struct ring_id place);

#endif
