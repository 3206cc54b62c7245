/* lending_state - what the files of lending*.c share. Private to them. */
#ifndef MNEMON_NODE_LINKS_LENDING_STATE_H
#define MNEMON_NODE_LINKS_LENDING_STATE_H

#include <pthread.h>

#include "node/links/lending.h"
#include "node/links/lending_code.h"
#include "web/url/canon.h"

enum {
    LENDING_PARCELS_MAX = 4096,
    LENDING_EVENTS_MAX = 4096,
    LENDING_WISHES_MAX = 1024,
    LENDING_TIMEOUT_MS = 5000, /* of a message */
    LENDING_TICK_MS = 500,
};

/* A message on its way out. The bulk thread's, once it was posted. */
struct lending_parcel {
    struct lending_parcel *next; /* of the late ones */
    struct lending *lending;
    struct peer to;
    enum lending_kind kind;
    uint64_t number; /* of the lease */
    struct buf host;
    struct buf message;
};

/* What the crawl's loop has to hear. */
struct lending_event {
    struct lending_event *next;
    struct peer from; /* of a loss: whom it was for */
    bool is_loss;     /* a message of ours was not delivered; kind, host and number say which */
    bool is_certain;  /* of a loss: he did not get it */
    struct buf bytes; /* what the message borrows */
    struct lending_message message;
};

/* A place whose home has to be looked up. */
struct lending_wish {
    struct lending_wish *next;
    struct ring_id place;
};

/* An arc of ours, and since when. */
struct lending_arc {
    struct ring_id from;
    struct ring_id to;
    uint64_t since_us;
};

struct lending {
    struct lending_config config;
    struct permits permits;
    pthread_t finder;

    /* The bulk thread's. */
    struct lending_parcel *late; /* more than the other side takes for now; in order */

    /* The crawl's loop's. */
    struct crawler *crawler; /* NULL: detached */
    uv_timer_t tick;
    struct canon canon; /* work space */
    struct buf surt;
    struct sha256 sha256;
    struct lending_arc arcs[HOLDERS_ARCS_MAX];
    size_t arcs_count;

    pthread_mutex_t lock;
    uv_async_t async; /* lock: open while is_attached */
    bool is_attached;
    struct lending_event *events; /* lock; in order, as all below */
    struct lending_event **events_end;
    size_t events_count;
    size_t parcels_count;
    struct lending_wish *wishes;
    size_t wishes_count;
    pthread_cond_t has_wish;
    bool is_stopping;
    struct lending_stat stat;
};

uint64_t lending_now_us(const struct lending *lending);
int64_t lending_wall_us(const struct lending *lending);

/* lending_post.c */

/* The crawl's loop: send it. False: it was dropped. */
bool lending_send(struct lending *lending, const struct peer *to, const struct lending_message *message);

/* The crawl's loop: see to those that had to wait. At the end: drop them. */
void lending_send_late(struct lending *lending);
void lending_drop_late(struct lending *lending);

/* The crawl's loop: the next event, or NULL; then free it. */
struct lending_event *lending_take_event(struct lending *lending);
void lending_free_event(struct lending_event *event);

/* The service. */
enum err lending_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                        struct err_detail *detail);

/* lending_find.c */
bool lending_find_start(struct lending *lending);
void lending_find_stop(struct lending *lending);
void lending_find(struct lending *lending, struct ring_id place);

#endif
