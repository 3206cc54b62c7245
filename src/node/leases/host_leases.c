#include "node/leases/host_leases.h"

#include <stdlib.h>

#include "crawl/engine/crawler.h"
#include "node/leases/host_leases_state.h"
#include "store/keyset/position.h"
#include "web/url/surt.h"

enum { SURT_SIZE_MAX = 1024, URL_TEXT_SIZE_MAX = PERMIT_HOST_SIZE_MAX + 16 };
static const uint64_t LOOKUP_WAIT_US =
    UINT64_C(1000000); /* before a home that was not found is asked again */

uint64_t host_leases_now_us(const struct host_leases *host_leases) {
    return clock_monotonic_us(host_leases->config.clock);
}

int64_t host_leases_wall_us(const struct host_leases *host_leases) {
    return clock_wall_us(host_leases->config.clock);
}

/* ---- whose home ---- */

static bool know(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    return holders_know(context, place, ret_arc);
}

static enum err find(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    return holders_find(context, place, ret_arc);
}

static size_t own(void *context, struct holders_arc out[HOLDERS_ARCS_MAX]) {
    return holders_own(context, out);
}

struct host_leases_homes host_leases_homes_of(struct holders *holders) {
    return (struct host_leases_homes){.know = know, .find = find, .own = own, .context = holders};
}

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
    const struct host_leases_homes *homes = &host_leases->config.homes;
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
    const struct host_leases_homes *homes = &host_leases->config.homes;
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

/* ---- what the crawler wants ---- */

static void ask(void *context, struct bytes host, bool is_https, const uint8_t digest[PERMIT_DIGEST_SIZE]) {
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

static void give_back(void *context, struct bytes host, const struct permit_lender *lender,
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

/* It did not reach him, and so was not used. */
static void take_back_unused(struct host_leases *host_leases, struct bytes host, const struct peer *borrower,
                             uint64_t number) {
    struct pace pace;
    pace_init(&pace);
    crawler_home_take_back(host_leases->crawler, host, borrower, number, &pace, 0);
}

static void refuse(void *context, struct bytes host, const struct peer *borrower, uint64_t wait_us,
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

static void count(struct host_leases *host_leases, uint64_t *counter) {
    pthread_mutex_lock(&host_leases->lock);
    (*counter)++;
    pthread_mutex_unlock(&host_leases->lock);
}

static void host_lender(void *context, struct bytes host, const struct peer *borrower,
                        const struct permit_lease *lease) {
    struct host_leases *host_leases = context;
    struct host_leases_message message = {.kind = HOST_LEASES_LEND, .host = host, .lease = *lease};
    if (host_leases->crawler == NULL) {
        return;
    }
    message.lease.lender.peer = host_leases->config.self;
    if (!is_home_of(host_leases, &host_leases->config.self, host)) { /* not any more, while he waited */
        refuse(host_leases, host, borrower, LOOKUP_WAIT_US, PERMIT_NOT_HOME);
        take_back_unused(host_leases, host, borrower, lease->lender.number);
    } else if (peer_same_key(borrower, &host_leases->config.self)) {
        crawler_lend(host_leases->crawler, host, &message.lease);
    } else if (host_leases_send(host_leases, borrower, &message)) {
        count(host_leases, &host_leases->stat.lent_count);
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
        refuse(host_leases, message->host, from, LOOKUP_WAIT_US, PERMIT_NOT_HOME);
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
        give_back(host_leases, message->host, &message->lease.lender, &message->lease.pace, 0);
        return;
    }
    count(host_leases, &host_leases->stat.borrowed_count);
    crawler_lend(host_leases->crawler, message->host, &message->lease);
}

static void on_refuse(struct host_leases *host_leases, const struct peer *from,
                      const struct host_leases_message *message) {
    struct ring_id place;
    struct holders_arc arc;
    if (!know_home(host_leases, message->host, &place, &arc) || !peer_same_key(&arc.peers[0], from)) {
        return; /* we have asked another since */
    }
    count(host_leases, &host_leases->stat.refused_count);
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

void host_leases_on_event(struct host_leases *host_leases, struct host_leases_event *event) {
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
    host_leases->permits = (struct permits){.ask = ask,
                                            .give_back = give_back,
                                            .host_lender = host_lender,
                                            .refuse = refuse,
                                            .context = host_leases};
    canon_init(&host_leases->canon);
    buf_init(&host_leases->surt, SURT_SIZE_MAX);
    pthread_mutex_init(&host_leases->lock, NULL);
    if (host_leases_find_start(host_leases) != ERR_OK) {
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

void host_leases_attach(struct host_leases *host_leases, struct loop *loop, struct crawler *crawler) {
    ASSERT(host_leases->crawler == NULL);
    host_leases->crawler = crawler;
    look_at_arcs(host_leases);
    loop_timer_init(loop, &host_leases->tick, host_leases_tick, host_leases);
    loop_timer_set(&host_leases->tick, HOST_LEASES_TICK_US, HOST_LEASES_TICK_US);
    pthread_mutex_lock(&host_leases->lock);
    host_leases->loop = loop;
    pthread_mutex_unlock(&host_leases->lock);
}

void host_leases_detach(struct host_leases *host_leases) {
    ASSERT(host_leases->crawler != NULL);
    host_leases->crawler = NULL;
    pthread_mutex_lock(&host_leases->lock);
    host_leases->loop = NULL;
    pthread_mutex_unlock(&host_leases->lock);
    loop_timer_stop(&host_leases->tick);
}

void host_leases_free(struct host_leases *host_leases) {
    ASSERT(host_leases->crawler == NULL && host_leases->events_count == 0);
    host_leases_find_stop(host_leases);
    host_leases_drop_late(host_leases);
    ASSERT(host_leases->parcels_count == 0);
    pthread_mutex_destroy(&host_leases->lock);
    buf_done(&host_leases->surt);
    canon_done(&host_leases->canon);
    sha256_done(&host_leases->sha256);
    free(host_leases);
}

void host_leases_stat(struct host_leases *host_leases, struct host_leases_stat *ret_stat) {
    pthread_mutex_lock(&host_leases->lock);
    *ret_stat = host_leases->stat;
    pthread_mutex_unlock(&host_leases->lock);
}
