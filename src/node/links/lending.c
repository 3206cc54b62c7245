#include "node/links/lending.h"

#include <stdlib.h>

#include "crawl/engine/crawler.h"
#include "node/links/lending_state.h"
#include "store/keyset/place.h"
#include "web/url/surt.h"

enum { SURT_SIZE_MAX = 1024, URL_TEXT_SIZE_MAX = PERMIT_HOST_SIZE_MAX + 16 };
static const uint64_t LOOKUP_WAIT_US =
    UINT64_C(1000000); /* before a home that was not found is asked again */

uint64_t lending_now_us(const struct lending *lending) {
    return clock_monotonic_us(lending->config.clock);
}

int64_t lending_wall_us(const struct lending *lending) {
    return clock_wall_us(lending->config.clock);
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

struct lending_homes lending_homes_of(struct holders *holders) {
    return (struct lending_homes){.know = know, .find = find, .own = own, .context = holders};
}

/* False: it has none, as it is no host. */
static bool find_place(struct lending *lending, struct bytes host, struct ring_id *ret_place) {
    struct buf text;
    uint8_t place[RINGKEY_PLACE_SIZE];
    buf_init(&text, URL_TEXT_SIZE_MAX);
    buf_put_string(&text, "http://");
    buf_put(&text, host);
    buf_put_string(&text, "/");
    buf_clear(&lending->surt);
    bool is_good = text.err == ERR_OK && canon_run(&lending->canon, buf_bytes(&text), NULL) == ERR_OK &&
                   surt_put(&lending->surt, &lending->canon) == ERR_OK;
    buf_done(&text);
    if (is_good) {
        place_of_surt(&lending->sha256, buf_bytes(&lending->surt), PLACE_BY_HOST, place);
        *ret_place = ring_id_read(place);
    }
    return is_good;
}

/* Not known, or nobody: it is looked up, and the host has to wait. */
static bool know_home(struct lending *lending, struct bytes host, struct ring_id *ret_place,
                      struct holders_arc *ret_arc) {
    const struct lending_homes *homes = &lending->config.homes;
    if (!find_place(lending, host, ret_place)) {
        return false;
    }
    if (homes->know(homes->context, *ret_place, ret_arc) && ret_arc->count > 0) {
        return true;
    }
    lending_find(lending, *ret_place);
    return false;
}

static bool is_key_of(const struct peer *a, const struct peer *b) {
    return memcmp(a->key, b->key, PEER_KEY_SIZE) == 0;
}

static bool is_home_of(struct lending *lending, const struct peer *peer, struct bytes host) {
    struct ring_id place;
    struct holders_arc arc;
    return know_home(lending, host, &place, &arc) && is_key_of(&arc.peers[0], peer);
}

/* An arc that has grown is new as a whole: what was another's is somewhere in it. */
static uint64_t arc_since_us(const struct lending *lending, const struct holders_arc *arc, uint64_t now_us) {
    for (size_t i = 0; i < lending->arcs_count; i++) {
        const struct lending_arc *old = &lending->arcs[i];
        bool is_inside =
            ring_id_equal(old->from, arc->from) || ring_id_is_between(old->from, arc->from, old->to);
        if (ring_id_equal(old->to, arc->to) && is_inside) {
            return old->since_us;
        }
    }
    return now_us;
}

static void look_at_arcs(struct lending *lending) {
    const struct lending_homes *homes = &lending->config.homes;
    struct holders_arc *owned = calloc(HOLDERS_ARCS_MAX, sizeof *owned); /* large for a stack */
    struct lending_arc arcs[HOLDERS_ARCS_MAX];
    uint64_t now_us = lending_now_us(lending);
    size_t count = owned != NULL ? homes->own(homes->context, owned) : 0;
    for (size_t i = 0; i < count; i++) {
        arcs[i] = (struct lending_arc){
            .from = owned[i].from,
            .to = owned[i].to,
            .since_us = arc_since_us(lending, &owned[i], now_us),
        };
    }
    memcpy(lending->arcs, arcs, count * sizeof *arcs);
    lending->arcs_count = count;
    free(owned);
}

static uint64_t home_since_us(const struct lending *lending, struct ring_id place) {
    for (size_t i = 0; i < lending->arcs_count; i++) {
        const struct lending_arc *arc = &lending->arcs[i];
        if (ring_id_is_owned(arc->from, place, arc->to)) {
            return arc->since_us;
        }
    }
    return lending_now_us(lending);
}

/* ---- what the crawler wants ---- */

static void ask(void *context, struct bytes host, bool is_https, const uint8_t digest[PERMIT_DIGEST_SIZE]) {
    struct lending *lending = context;
    struct ring_id place;
    struct holders_arc arc;
    if (lending->crawler == NULL) {
        return;
    }
    if (!know_home(lending, host, &place, &arc)) {
        crawler_refuse_lease(lending->crawler, host, LOOKUP_WAIT_US);
        return;
    }
    if (is_key_of(&arc.peers[0], &lending->config.self)) {
        struct lend_borrower borrower = {.peer = lending->config.self, .is_https = is_https};
        memcpy(borrower.digest, digest, PERMIT_DIGEST_SIZE);
        crawler_home_ask(lending->crawler, host, &borrower, home_since_us(lending, place));
        return;
    }
    struct lending_message message = {.kind = LENDING_BORROW, .host = host, .is_https = is_https};
    memcpy(message.digest, digest, PERMIT_DIGEST_SIZE);
    if (!lending_send(lending, &arc.peers[0], &message)) {
        crawler_refuse_lease(lending->crawler, host, LOOKUP_WAIT_US);
    }
}

static void give_back(void *context, struct bytes host, const struct permit_lender *lender,
                      const struct pace *pace, uint32_t requests_count) {
    struct lending *lending = context;
    struct ring_id place;
    struct holders_arc arc;
    if (lending->crawler == NULL) {
        return;
    }
    if (is_key_of(&lender->peer, &lending->config.self)) {
        crawler_home_take_back(lending->crawler, host, &lending->config.self, lender->number, pace,
                               requests_count);
        return;
    }
    struct lending_message message = {
        .kind = LENDING_GIVE_BACK,
        .host = host,
        .number = lender->number,
        .pace = *pace,
        .requests_count = requests_count,
    };
    lending_send(lending, &lender->peer, &message);
    /* The home may have changed: the new one learns how the host is. */
    if (requests_count > 0 && know_home(lending, host, &place, &arc) &&
        !is_key_of(&arc.peers[0], &lender->peer) && !is_key_of(&arc.peers[0], &lending->config.self)) {
        lending_send(lending, &arc.peers[0], &message);
    }
}

/* It did not reach him, and so was not used. */
static void take_back_unused(struct lending *lending, struct bytes host, const struct peer *borrower,
                             uint64_t number) {
    struct pace pace;
    pace_init(&pace);
    crawler_home_take_back(lending->crawler, host, borrower, number, &pace, 0);
}

static void refuse(void *context, struct bytes host, const struct peer *borrower, uint64_t wait_us,
                   enum permit_reason reason) {
    struct lending *lending = context;
    if (lending->crawler == NULL) {
        return;
    }
    if (is_key_of(borrower, &lending->config.self)) {
        crawler_refuse_lease(lending->crawler, host, wait_us);
        return;
    }
    struct lending_message message = {
        .kind = LENDING_REFUSE, .host = host, .wait_us = wait_us, .reason = reason};
    lending_send(lending, borrower, &message);
}

static void count(struct lending *lending, uint64_t *counter) {
    pthread_mutex_lock(&lending->lock);
    (*counter)++;
    pthread_mutex_unlock(&lending->lock);
}

static void lend(void *context, struct bytes host, const struct peer *borrower,
                 const struct permit_lease *lease) {
    struct lending *lending = context;
    struct lending_message message = {.kind = LENDING_LEND, .host = host, .lease = *lease};
    if (lending->crawler == NULL) {
        return;
    }
    message.lease.lender.peer = lending->config.self;
    if (!is_home_of(lending, &lending->config.self, host)) { /* not any more, while he waited */
        refuse(lending, host, borrower, LOOKUP_WAIT_US, PERMIT_NOT_HOME);
        take_back_unused(lending, host, borrower, lease->lender.number);
    } else if (is_key_of(borrower, &lending->config.self)) {
        crawler_lend(lending->crawler, host, &message.lease);
    } else if (lending_send(lending, borrower, &message)) {
        count(lending, &lending->stat.lent_count);
    } else {
        take_back_unused(lending, host, borrower, lease->lender.number);
    }
}

/* ---- what others say ---- */

static void on_borrow(struct lending *lending, const struct peer *from,
                      const struct lending_message *message) {
    struct ring_id place;
    struct holders_arc arc;
    if (!know_home(lending, message->host, &place, &arc) ||
        !is_key_of(&arc.peers[0], &lending->config.self)) {
        refuse(lending, message->host, from, LOOKUP_WAIT_US, PERMIT_NOT_HOME);
        return;
    }
    struct lend_borrower borrower = {.peer = *from, .is_https = message->is_https};
    memcpy(borrower.digest, message->digest, PERMIT_DIGEST_SIZE);
    crawler_home_ask(lending->crawler, message->host, &borrower, home_since_us(lending, place));
}

/* Only its home lends a host; else anybody could make us ask it. */
static void on_lend(struct lending *lending, const struct peer *from, struct lending_message *message) {
    message->lease.lender.peer = *from;
    if (!is_home_of(lending, from, message->host)) {
        give_back(lending, message->host, &message->lease.lender, &message->lease.pace, 0);
        return;
    }
    count(lending, &lending->stat.borrowed_count);
    crawler_lend(lending->crawler, message->host, &message->lease);
}

static void on_refuse(struct lending *lending, const struct peer *from,
                      const struct lending_message *message) {
    struct ring_id place;
    struct holders_arc arc;
    if (!know_home(lending, message->host, &place, &arc) || !is_key_of(&arc.peers[0], from)) {
        return; /* we have asked another since */
    }
    count(lending, &lending->stat.refused_count);
    if (message->reason == PERMIT_NOT_HOME) {
        lending_find(lending, place);
    }
    crawler_refuse_lease(lending->crawler, message->host, message->wait_us);
}

/* A message of ours was not taken. */
static void on_loss(struct lending *lending, const struct lending_event *event) {
    const struct lending_message *message = &event->message;
    struct ring_id place;
    if (message->kind == LENDING_BORROW) {
        if (find_place(lending, message->host, &place)) {
            lending_find(lending, place);
        }
        crawler_refuse_lease(lending->crawler, message->host, LOOKUP_WAIT_US);
    } else if (message->kind == LENDING_LEND && event->is_certain) {
        take_back_unused(lending, message->host, &event->from, message->number);
    }
}

static void on_event(struct lending *lending, struct lending_event *event) {
    struct lending_message *message = &event->message;
    if (event->is_loss) {
        on_loss(lending, event);
        return;
    }
    switch (message->kind) {
    case LENDING_BORROW:
        on_borrow(lending, &event->from, message);
        return;
    case LENDING_LEND:
        on_lend(lending, &event->from, message);
        return;
    case LENDING_REFUSE:
        on_refuse(lending, &event->from, message);
        return;
    case LENDING_GIVE_BACK:
        crawler_home_take_back(lending->crawler, message->host, &event->from, message->number, &message->pace,
                               message->requests_count);
        return;
    }
}

static void on_async(uv_async_t *async) {
    struct lending *lending = async->data;
    struct lending_event *event;
    while (lending->crawler != NULL && (event = lending_take_event(lending)) != NULL) {
        on_event(lending, event);
        lending_free_event(event);
    }
}

/* ---- its life ---- */

static void on_tick(uv_timer_t *timer) {
    look_at_arcs(timer->data);
    lending_send_late(timer->data);
}

enum err lending_new(const struct lending_config *config, struct lending **ret_lending,
                     struct err_detail *detail) {
    struct lending *lending = calloc(1, sizeof *lending);
    if (lending == NULL || sha256_init(&lending->sha256) != ERR_OK) {
        free(lending);
        return ERR_MEMORY;
    }
    lending->config = *config;
    lending->config.clock = config->clock != NULL ? config->clock : &clock_system;
    lending->permits = (struct permits){
        .ask = ask, .give_back = give_back, .lend = lend, .refuse = refuse, .context = lending};
    lending->events_end = &lending->events;
    canon_init(&lending->canon);
    buf_init(&lending->surt, SURT_SIZE_MAX);
    pthread_mutex_init(&lending->lock, NULL);
    pthread_cond_init(&lending->has_wish, NULL);
    if (!lending_find_start(lending)) {
        lending->is_stopping = true;
        lending_free(lending);
        return err_set(detail, ERR_SYSTEM, "no thread to find the homes of hosts");
    }
    bulk_serve(config->bulk, BULK_LEND, lending_answer, lending);
    *ret_lending = lending;
    return ERR_OK;
}

const struct permits *lending_permits(struct lending *lending) {
    return &lending->permits;
}

void lending_attach(struct lending *lending, uv_loop_t *loop, struct crawler *crawler) {
    ASSERT(lending->crawler == NULL);
    uv_timer_init(loop, &lending->tick);
    lending->tick.data = lending->async.data = lending;
    lending->crawler = crawler;
    look_at_arcs(lending);
    uv_timer_start(&lending->tick, on_tick, LENDING_TICK_MS, LENDING_TICK_MS);
    pthread_mutex_lock(&lending->lock);
    int result = uv_async_init(loop, &lending->async, on_async);
    ASSERT(result == 0);
    lending->is_attached = true;
    pthread_mutex_unlock(&lending->lock);
}

void lending_detach(struct lending *lending) {
    ASSERT(lending->crawler != NULL);
    lending->crawler = NULL;
    pthread_mutex_lock(&lending->lock);
    lending->is_attached = false;
    uv_close((uv_handle_t *)&lending->async, NULL);
    pthread_mutex_unlock(&lending->lock);
    uv_close((uv_handle_t *)&lending->tick, NULL);
}

void lending_free(struct lending *lending) {
    struct lending_event *event;
    ASSERT(lending->crawler == NULL);
    if (!lending->is_stopping) {
        lending_find_stop(lending);
    }
    lending_drop_late(lending);
    ASSERT(lending->parcels_count == 0);
    while ((event = lending_take_event(lending)) != NULL) {
        lending_free_event(event);
    }
    pthread_mutex_destroy(&lending->lock);
    pthread_cond_destroy(&lending->has_wish);
    buf_done(&lending->surt);
    canon_done(&lending->canon);
    sha256_done(&lending->sha256);
    free(lending);
}

void lending_stat(struct lending *lending, struct lending_stat *ret_stat) {
    pthread_mutex_lock(&lending->lock);
    *ret_stat = lending->stat;
    pthread_mutex_unlock(&lending->lock);
}
