#include "node/leases/host_leases.h"

#include <pthread.h>
#include <stdlib.h>

#include "crawl/engine/crawler.h"
#include "node/leases/host_leases_code.h"
#include "run/loop.h"
#include "run/task.h"
#include "store/keyset/position.h"
#include "web/url/canon.h"
#include "web/url/surt.h"

enum {
    PARCELS_MAX = 4096,
    EVENTS_MAX = 4096,
    WISHES_MAX = 1024,
    TIMEOUT_MS = 5000, /* of a message */
    TICK_US = 500000,
    SURT_SIZE_MAX = 1024,
    URL_TEXT_SIZE_MAX = PERMIT_HOST_SIZE_MAX + 16,
    LOOKUP_WAIT_US = 1000000, /* before a home that was not found is asked again */
};

/* A message on its way out. It belongs to the thread of peer_rpc once it was posted. */
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
    struct peer from; /* of a loss: the node it was for */
    bool is_loss;     /* a message of ours was not delivered; kind, host and number say which */
    bool is_certain;  /* of a loss: the node did not get it */
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

    /* Of the thread of peer_rpc. */
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
    struct ring_view_leases stat;
};

static uint64_t host_leases_now_us(const struct host_leases *host_leases) {
    return clock_monotonic_us(host_leases->config.clock);
}

static int64_t host_leases_wall_us(const struct host_leases *host_leases) {
    return clock_wall_us(host_leases->config.clock);
}

static void host_leases_count(struct host_leases *host_leases, uint64_t *counter) {
    pthread_mutex_lock(&host_leases->lock);
    (*counter)++;
    pthread_mutex_unlock(&host_leases->lock);
}

/* ---- the finder: looks homes up ---- */

/* What it finds, the next question for the place knows (holders.h keeps it). */
static uint64_t host_leases_find_first(void *context) {
    struct host_leases *host_leases = context;
    const struct holders_source *homes = &host_leases->config.homes;
    pthread_mutex_lock(&host_leases->lock);
    struct host_leases_wish *wish = host_leases->wishes;
    pthread_mutex_unlock(&host_leases->lock);
    if (wish == NULL) {
        return TASK_FOR_EVER_US;
    }
    struct holders_arc arc;
    enum err err = homes->find(homes->context, wish->place, &arc);
    (void)err; /* if it is still wanted, it will be wished again */
    pthread_mutex_lock(&host_leases->lock);
    host_leases->wishes = wish->next; /* only now: meanwhile nobody wishes for the same */
    host_leases->wishes_count--;
    pthread_mutex_unlock(&host_leases->lock);
    free(wish);
    return 0;
}

static void host_leases_find(struct host_leases *host_leases, struct ring_id place) {
    pthread_mutex_lock(&host_leases->lock);
    struct host_leases_wish **end = &host_leases->wishes;
    while (*end != NULL && !ring_id_equal((*end)->place, place)) {
        end = &(*end)->next;
    }
    bool is_new = *end == NULL && host_leases->wishes_count < WISHES_MAX;
    struct host_leases_wish *wish = is_new ? calloc(1, sizeof *wish) : NULL;
    if (wish != NULL) {
        wish->place = place;
        *end = wish;
        host_leases->wishes_count++;
        task_poke(&host_leases->finder);
    }
    pthread_mutex_unlock(&host_leases->lock);
}

/* ---- whose home ---- */

/* False: it has none, as it is no host. */
static bool find_place(struct host_leases *host_leases, struct bytes host, struct ring_id *ret_place) {
    struct buf text;
    uint8_t place[RINGKEY_POSITION_SIZE];
    buf_init(&text, URL_TEXT_SIZE_MAX);
    buf_put_string(&text, "http://");
    buf_put(&text, host);
    buf_put_string(&text, "/");
    buf_clear(&host_leases->surt);
    bool is_good = text.err == ERR_OK && canon_run(&host_leases->canon, buf_bytes(&text), NULL) == ERR_OK &&
                   surt_put(&host_leases->surt, &host_leases->canon) == ERR_OK;
    buf_done(&text);
    if (is_good) {
        position_of_surt(&host_leases->sha256, buf_bytes(&host_leases->surt), POSITION_BY_HOST, place);
        *ret_place = ring_id_read(place);
    }
    return is_good;
}

/* Not known, or nobody: it is looked up, and the host has to wait. */
static bool know_home(struct host_leases *host_leases, struct bytes host, struct ring_id *ret_place,
                      struct holders_arc *ret_arc) {
    const struct holders_source *homes = &host_leases->config.homes;
    if (!find_place(host_leases, host, ret_place)) {
        return false;
    }
    if (homes->know(homes->context, *ret_place, ret_arc) && ret_arc->count > 0) {
        return true;
    }
    host_leases_find(host_leases, *ret_place);
    return false;
}

static bool is_home_of(struct host_leases *host_leases, const struct peer *peer, struct bytes host) {
    struct ring_id place;
    struct holders_arc arc;
    return know_home(host_leases, host, &place, &arc) && peer_same_key(&arc.peers[0], peer);
}

/* An arc that has grown is new as a whole: what was another's is somewhere in it. */
static uint64_t arc_since_us(const struct host_leases *host_leases, const struct holders_arc *arc,
                             uint64_t now_us) {
    for (size_t i = 0; i < host_leases->arcs_count; i++) {
        const struct host_leases_arc *old = &host_leases->arcs[i];
        bool is_inside =
            ring_id_equal(old->from, arc->from) || ring_id_is_between(old->from, arc->from, old->to);
        if (ring_id_equal(old->to, arc->to) && is_inside) {
            return old->since_us;
        }
    }
    return now_us;
}

static void look_at_arcs(struct host_leases *host_leases) {
    const struct holders_source *homes = &host_leases->config.homes;
    struct holders_arc *owned = calloc(HOLDERS_ARCS_MAX, sizeof *owned); /* large for a stack */
    struct host_leases_arc arcs[HOLDERS_ARCS_MAX];
    uint64_t now_us = host_leases_now_us(host_leases);
    size_t count = owned != NULL ? homes->own(homes->context, owned) : 0;
    for (size_t i = 0; i < count; i++) {
        arcs[i] = (struct host_leases_arc){
            .from = owned[i].from,
            .to = owned[i].to,
            .since_us = arc_since_us(host_leases, &owned[i], now_us),
        };
    }
    memcpy(host_leases->arcs, arcs, count * sizeof *arcs);
    host_leases->arcs_count = count;
    free(owned);
}

static uint64_t home_since_us(const struct host_leases *host_leases, struct ring_id place) {
    for (size_t i = 0; i < host_leases->arcs_count; i++) {
        const struct host_leases_arc *arc = &host_leases->arcs[i];
        if (ring_id_is_owned(arc->from, place, arc->to)) {
            return arc->since_us;
        }
    }
    return host_leases_now_us(host_leases);
}

/* ---- events: to the crawl's loop ---- */

/* On the crawl's loop, while it is attached. */
static void host_leases_on_event(struct host_leases *host_leases, struct host_leases_event *event);

static void free_event(struct host_leases_event *event) {
    buf_done(&event->bytes);
    free(event);
}

static void host_leases_run_event(void *context) {
    struct host_leases_event *event = context;
    struct host_leases *host_leases = event->host_leases;
    pthread_mutex_lock(&host_leases->lock);
    host_leases->events_count--;
    pthread_mutex_unlock(&host_leases->lock);
    if (host_leases->crawler != NULL) {
        host_leases_on_event(host_leases, event);
    }
    free_event(event);
}

/* False: there is no room, or nobody to hear it. */
static bool push_event(struct host_leases *host_leases, struct host_leases_event *event) {
    event->host_leases = host_leases;
    event->post = (struct loop_post){.run = host_leases_run_event, .context = event};
    pthread_mutex_lock(&host_leases->lock);
    bool is_taken = host_leases->loop != NULL && host_leases->events_count < EVENTS_MAX &&
                    loop_post(host_leases->loop, &event->post);
    host_leases->events_count += is_taken;
    pthread_mutex_unlock(&host_leases->lock);
    return is_taken;
}

static enum err host_leases_answer(void *context, const struct peer *from, struct bytes question,
                                   struct buf *answer, struct err_detail *detail) {
    struct host_leases *host_leases = context;
    struct host_leases_event *event = calloc(1, sizeof *event);
    (void)answer;
    if (event == NULL) {
        return ERR_MEMORY;
    }
    event->from = *from;
    buf_init(&event->bytes, PEER_RPC_QUESTION_SIZE_MAX);
    enum err err = buf_put(&event->bytes, question);
    if (err == ERR_OK) {
        err = host_leases_read(buf_bytes(&event->bytes), host_leases_now_us(host_leases),
                               host_leases_wall_us(host_leases), &event->message, detail);
    }
    if (err == ERR_OK && !push_event(host_leases, event)) {
        err = ERR_BUSY;
    }
    if (err != ERR_OK) {
        free_event(event);
    }
    return err;
}

/* ---- parcels: to another node ---- */

static void free_parcel(struct host_leases_parcel *parcel) {
    struct host_leases *host_leases = parcel->host_leases;
    pthread_mutex_lock(&host_leases->lock);
    host_leases->parcels_count--;
    pthread_mutex_unlock(&host_leases->lock);
    buf_done(&parcel->host);
    buf_done(&parcel->message);
    free(parcel);
}

/* Nothing reached the other node: there was no connection, or it took nothing. */
static bool is_undelivered(enum err err) {
    return err == ERR_REFUSED || err == ERR_UNREACHABLE || err == ERR_BUSY || err == ERR_INVALID ||
           err == ERR_UNSUPPORTED;
}

static void tell_loss(const struct host_leases_parcel *parcel, enum err err) {
    struct host_leases *host_leases = parcel->host_leases;
    struct host_leases_event *event = calloc(1, sizeof *event);
    host_leases_count(host_leases, &host_leases->stat.lost_count);
    if (event == NULL) {
        return; /* as if it had been lost on the way */
    }
    event->from = parcel->to;
    event->is_loss = true;
    event->is_certain = is_undelivered(err);
    buf_init(&event->bytes, PERMIT_HOST_SIZE_MAX);
    buf_put(&event->bytes, buf_bytes(&parcel->host));
    event->message = (struct host_leases_message){
        .kind = parcel->kind, .host = buf_bytes(&event->bytes), .number = parcel->number};
    if (event->bytes.err != ERR_OK || !push_event(host_leases, event)) {
        free_event(event);
    }
}

/* ---- the thread of peer_rpc: parcels for a node with too many questions waiting are sent later, in order
 * ---- */

static struct host_leases_parcel **find_late(struct host_leases *host_leases, const struct peer *to) {
    struct host_leases_parcel **link = &host_leases->late;
    while (*link != NULL && memcmp((*link)->to.key, to->key, PEER_KEY_SIZE) != 0) {
        link = &(*link)->next;
    }
    return link;
}

static void on_sent(void *context, enum err err, struct bytes answer);

/* False: the node has enough for now, and the parcel stays ours. */
static bool try_parcel(struct host_leases_parcel *parcel) {
    enum err err = peer_rpc_call(parcel->host_leases->config.peer_rpc, &parcel->to, PEER_RPC_LEND,
                                 buf_bytes(&parcel->message), TIMEOUT_MS, on_sent, parcel);
    if (err == ERR_BUSY) {
        return false;
    }
    if (err != ERR_OK) {
        tell_loss(parcel, err);
        free_parcel(parcel);
    }
    return true;
}

static void on_sent(void *context, enum err err, struct bytes answer) {
    struct host_leases_parcel *parcel = context;
    (void)answer;
    struct host_leases_parcel **link = find_late(parcel->host_leases, &parcel->to);
    struct host_leases_parcel *late = *link;
    struct host_leases_parcel *next = late != NULL ? late->next : NULL;
    if (late != NULL && err == ERR_OK && try_parcel(late)) {
        *link = next;
    }
    if (err != ERR_OK) {
        tell_loss(parcel, err);
    }
    free_parcel(parcel);
}

static void send_parcel(void *context) {
    struct host_leases_parcel *parcel = context;
    struct host_leases *host_leases = parcel->host_leases;
    if (*find_late(host_leases, &parcel->to) != NULL || !try_parcel(parcel)) {
        struct host_leases_parcel **end = &host_leases->late;
        while (*end != NULL) {
            end = &(*end)->next;
        }
        *end = parcel;
    }
}

static void send_late(void *context) {
    struct host_leases *host_leases = context;
    struct host_leases_parcel **link = &host_leases->late;
    while (*link != NULL) {
        struct host_leases_parcel *next = (*link)->next;
        if (try_parcel(*link)) {
            *link = next;
        } else {
            link = &(*link)->next;
        }
    }
}

static void host_leases_send_late(struct host_leases *host_leases) {
    pthread_mutex_lock(&host_leases->lock);
    bool has_parcels = host_leases->parcels_count > 0;
    pthread_mutex_unlock(&host_leases->lock);
    if (has_parcels) {
        enum err err = peer_rpc_post(host_leases->config.peer_rpc, send_late, host_leases);
        (void)err; /* the next tick tries again */
    }
}

static void host_leases_drop_late(struct host_leases *host_leases) {
    while (host_leases->late != NULL) {
        struct host_leases_parcel *next = host_leases->late->next;
        free_parcel(host_leases->late);
        host_leases->late = next;
    }
}

/* ---- the crawl's loop ---- */

static struct host_leases_parcel *new_parcel(struct host_leases *host_leases) {
    pthread_mutex_lock(&host_leases->lock);
    bool has_room = host_leases->parcels_count < PARCELS_MAX;
    struct host_leases_parcel *parcel = has_room ? calloc(1, sizeof *parcel) : NULL;
    host_leases->parcels_count += parcel != NULL;
    pthread_mutex_unlock(&host_leases->lock);
    if (parcel != NULL) {
        parcel->host_leases = host_leases;
        buf_init(&parcel->host, PERMIT_HOST_SIZE_MAX);
        buf_init(&parcel->message, HOST_LEASES_SIZE_MAX);
    }
    return parcel;
}

static bool host_leases_send(struct host_leases *host_leases, const struct peer *to,
                             const struct host_leases_message *message) {
    struct host_leases_parcel *parcel = new_parcel(host_leases);
    if (parcel == NULL) {
        return false;
    }
    parcel->to = *to;
    parcel->kind = message->kind;
    parcel->number = message->lease.lender.number;
    enum err err = buf_put(&parcel->host, message->host);
    if (err == ERR_OK) {
        err = host_leases_write(message, host_leases_now_us(host_leases), host_leases_wall_us(host_leases),
                                &parcel->message);
    }
    if (err == ERR_OK) {
        err = peer_rpc_post(host_leases->config.peer_rpc, send_parcel, parcel);
    }
    if (err != ERR_OK) {
        free_parcel(parcel);
    }
    return err == ERR_OK;
}

/* ---- what the crawler wants ---- */

static void leases_ask(void *context, struct bytes host, bool is_https,
                       const uint8_t digest[PERMIT_DIGEST_SIZE]) {
    struct host_leases *host_leases = context;
    struct ring_id place;
    struct holders_arc arc;
    if (host_leases->crawler == NULL) {
        return;
    }
    if (!know_home(host_leases, host, &place, &arc)) {
        crawler_refuse_lease(host_leases->crawler, host, LOOKUP_WAIT_US);
        return;
    }
    if (peer_same_key(&arc.peers[0], &host_leases->config.self)) {
        struct host_lender_borrower borrower = {.peer = host_leases->config.self, .is_https = is_https};
        memcpy(borrower.digest, digest, PERMIT_DIGEST_SIZE);
        crawler_home_ask(host_leases->crawler, host, &borrower, home_since_us(host_leases, place));
        return;
    }
    struct host_leases_message message = {.kind = HOST_LEASES_BORROW, .host = host, .is_https = is_https};
    memcpy(message.digest, digest, PERMIT_DIGEST_SIZE);
    if (!host_leases_send(host_leases, &arc.peers[0], &message)) {
        crawler_refuse_lease(host_leases->crawler, host, LOOKUP_WAIT_US);
    }
}

static void leases_give_back(void *context, struct bytes host, const struct permit_lender *lender,
                             const struct pace *pace, uint32_t requests_count) {
    struct host_leases *host_leases = context;
    struct ring_id place;
    struct holders_arc arc;
    if (host_leases->crawler == NULL) {
        return;
    }
    if (peer_same_key(&lender->peer, &host_leases->config.self)) {
        crawler_home_take_back(host_leases->crawler, host, &host_leases->config.self, lender->number, pace,
                               requests_count);
        return;
    }
    struct host_leases_message message = {
        .kind = HOST_LEASES_GIVE_BACK,
        .host = host,
        .number = lender->number,
        .pace = *pace,
        .requests_count = requests_count,
    };
    host_leases_send(host_leases, &lender->peer, &message);
    /* The home may have changed: the new one learns how the host is. */
    if (requests_count > 0 && know_home(host_leases, host, &place, &arc) &&
        !peer_same_key(&arc.peers[0], &lender->peer) &&
        !peer_same_key(&arc.peers[0], &host_leases->config.self)) {
        host_leases_send(host_leases, &arc.peers[0], &message);
    }
}

/* It did not reach the borrower, and so was not used. */
static void take_back_unused(struct host_leases *host_leases, struct bytes host, const struct peer *borrower,
                             uint64_t number) {
    struct pace pace;
    pace_init(&pace);
    crawler_home_take_back(host_leases->crawler, host, borrower, number, &pace, 0);
}

static void leases_refuse(void *context, struct bytes host, const struct peer *borrower, uint64_t wait_us,
                          enum permit_reason reason) {
    struct host_leases *host_leases = context;
    if (host_leases->crawler == NULL) {
        return;
    }
    if (peer_same_key(borrower, &host_leases->config.self)) {
        crawler_refuse_lease(host_leases->crawler, host, wait_us);
        return;
    }
    struct host_leases_message message = {
        .kind = HOST_LEASES_REFUSE, .host = host, .wait_us = wait_us, .reason = reason};
    host_leases_send(host_leases, borrower, &message);
}

static void host_lender(void *context, struct bytes host, const struct peer *borrower,
                        const struct permit_lease *lease) {
    struct host_leases *host_leases = context;
    struct host_leases_message message = {.kind = HOST_LEASES_LEND, .host = host, .lease = *lease};
    if (host_leases->crawler == NULL) {
        return;
    }
    message.lease.lender.peer = host_leases->config.self;
    if (!is_home_of(host_leases, &host_leases->config.self,
                    host)) { /* not any more, while the borrower waited */
        leases_refuse(host_leases, host, borrower, LOOKUP_WAIT_US, PERMIT_NOT_HOME);
        take_back_unused(host_leases, host, borrower, lease->lender.number);
    } else if (peer_same_key(borrower, &host_leases->config.self)) {
        crawler_lend(host_leases->crawler, host, &message.lease);
    } else if (host_leases_send(host_leases, borrower, &message)) {
        host_leases_count(host_leases, &host_leases->stat.lent_count);
    } else {
        take_back_unused(host_leases, host, borrower, lease->lender.number);
    }
}

/* ---- what others say ---- */

static void on_borrow(struct host_leases *host_leases, const struct peer *from,
                      const struct host_leases_message *message) {
    struct ring_id place;
    struct holders_arc arc;
    if (!know_home(host_leases, message->host, &place, &arc) ||
        !peer_same_key(&arc.peers[0], &host_leases->config.self)) {
        leases_refuse(host_leases, message->host, from, LOOKUP_WAIT_US, PERMIT_NOT_HOME);
        return;
    }
    struct host_lender_borrower borrower = {.peer = *from, .is_https = message->is_https};
    memcpy(borrower.digest, message->digest, PERMIT_DIGEST_SIZE);
    crawler_home_ask(host_leases->crawler, message->host, &borrower, home_since_us(host_leases, place));
}

/* Only its home lends a host; else anybody could make us ask it. */
static void on_lend(struct host_leases *host_leases, const struct peer *from,
                    struct host_leases_message *message) {
    message->lease.lender.peer = *from;
    if (!is_home_of(host_leases, from, message->host)) {
        leases_give_back(host_leases, message->host, &message->lease.lender, &message->lease.pace, 0);
        return;
    }
    host_leases_count(host_leases, &host_leases->stat.borrowed_count);
    crawler_lend(host_leases->crawler, message->host, &message->lease);
}

static void on_refuse(struct host_leases *host_leases, const struct peer *from,
                      const struct host_leases_message *message) {
    struct ring_id place;
    struct holders_arc arc;
    if (!know_home(host_leases, message->host, &place, &arc) || !peer_same_key(&arc.peers[0], from)) {
        return; /* we have asked another since */
    }
    host_leases_count(host_leases, &host_leases->stat.refused_count);
    if (message->reason == PERMIT_NOT_HOME) {
        host_leases_find(host_leases, place);
    }
    crawler_refuse_lease(host_leases->crawler, message->host, message->wait_us);
}

/* A message of ours was not taken. */
static void on_loss(struct host_leases *host_leases, const struct host_leases_event *event) {
    const struct host_leases_message *message = &event->message;
    struct ring_id place;
    if (message->kind == HOST_LEASES_BORROW) {
        if (find_place(host_leases, message->host, &place)) {
            host_leases_find(host_leases, place);
        }
        crawler_refuse_lease(host_leases->crawler, message->host, LOOKUP_WAIT_US);
    } else if (message->kind == HOST_LEASES_LEND && event->is_certain) {
        take_back_unused(host_leases, message->host, &event->from, message->number);
    }
}

static void host_leases_on_event(struct host_leases *host_leases, struct host_leases_event *event) {
    struct host_leases_message *message = &event->message;
    if (event->is_loss) {
        on_loss(host_leases, event);
        return;
    }
    switch (message->kind) {
    case HOST_LEASES_BORROW:
        on_borrow(host_leases, &event->from, message);
        return;
    case HOST_LEASES_LEND:
        on_lend(host_leases, &event->from, message);
        return;
    case HOST_LEASES_REFUSE:
        on_refuse(host_leases, &event->from, message);
        return;
    case HOST_LEASES_GIVE_BACK:
        crawler_home_take_back(host_leases->crawler, message->host, &event->from, message->number,
                               &message->pace, message->requests_count);
        return;
    }
}

/* ---- its life ---- */

static void host_leases_tick(void *context) {
    look_at_arcs(context);
    host_leases_send_late(context);
}

enum err host_leases_new(const struct host_leases_config *config, struct host_leases **ret_host_leases,
                         struct err_detail *detail) {
    struct host_leases *host_leases = calloc(1, sizeof *host_leases);
    if (host_leases == NULL || sha256_init(&host_leases->sha256) != ERR_OK) {
        free(host_leases);
        return ERR_MEMORY;
    }
    host_leases->config = *config;
    host_leases->config.clock = config->clock != NULL ? config->clock : &clock_system;
    host_leases->permits = (struct permits){.ask = leases_ask,
                                            .give_back = leases_give_back,
                                            .host_lender = host_lender,
                                            .refuse = leases_refuse,
                                            .context = host_leases};
    canon_init(&host_leases->canon);
    buf_init(&host_leases->surt, SURT_SIZE_MAX);
    pthread_mutex_init(&host_leases->lock, NULL);
    if (task_start(&host_leases->finder, "lease-finder", PRIORITY_USUAL, host_leases_find_first,
                   host_leases) != ERR_OK) {
        host_leases_free(host_leases);
        return err_set(detail, ERR_SYSTEM, "no thread to find the homes of hosts");
    }
    peer_rpc_serve(config->peer_rpc, PEER_RPC_LEND, host_leases_answer, host_leases);
    *ret_host_leases = host_leases;
    return ERR_OK;
}

const struct permits *host_leases_permits(struct host_leases *host_leases) {
    return &host_leases->permits;
}

void host_leases_attach(void *context, struct loop *loop, struct crawler *crawler) {
    struct host_leases *host_leases = context;
    ASSERT(host_leases->crawler == NULL);
    host_leases->crawler = crawler;
    look_at_arcs(host_leases);
    loop_timer_init(loop, &host_leases->tick, host_leases_tick, host_leases);
    loop_timer_set(&host_leases->tick, TICK_US, TICK_US);
    pthread_mutex_lock(&host_leases->lock);
    host_leases->loop = loop;
    pthread_mutex_unlock(&host_leases->lock);
}

void host_leases_detach(void *context) {
    struct host_leases *host_leases = context;
    ASSERT(host_leases->crawler != NULL);
    host_leases->crawler = NULL;
    pthread_mutex_lock(&host_leases->lock);
    host_leases->loop = NULL;
    pthread_mutex_unlock(&host_leases->lock);
    loop_timer_stop(&host_leases->tick);
}

void host_leases_free(struct host_leases *host_leases) {
    ASSERT(host_leases->crawler == NULL && host_leases->events_count == 0);
    task_stop(&host_leases->finder);
    while (host_leases->wishes != NULL) {
        struct host_leases_wish *next = host_leases->wishes->next;
        free(host_leases->wishes);
        host_leases->wishes = next;
    }
    host_leases_drop_late(host_leases);
    ASSERT(host_leases->parcels_count == 0);
    pthread_mutex_destroy(&host_leases->lock);
    buf_done(&host_leases->surt);
    canon_done(&host_leases->canon);
    sha256_done(&host_leases->sha256);
    free(host_leases);
}

void host_leases_stat(struct host_leases *host_leases, struct ring_view_leases *ret_stat) {
    pthread_mutex_lock(&host_leases->lock);
    *ret_stat = host_leases->stat;
    pthread_mutex_unlock(&host_leases->lock);
}
