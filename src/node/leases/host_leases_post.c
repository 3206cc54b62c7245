#include <stdlib.h>

#include "node/leases/host_leases_state.h"

/* ---- events: to the crawl's loop ---- */

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
    bool is_taken = host_leases->loop != NULL && host_leases->events_count < HOST_LEASES_EVENTS_MAX &&
                    loop_post(host_leases->loop, &event->post);
    host_leases->events_count += is_taken;
    pthread_mutex_unlock(&host_leases->lock);
    return is_taken;
}

enum err host_leases_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                            struct err_detail *detail) {
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

/* Of these, nothing reached him: there was no connection, or he took nothing. */
static bool is_undelivered(enum err err) {
    return err == ERR_REFUSED || err == ERR_UNREACHABLE || err == ERR_BUSY || err == ERR_INVALID ||
           err == ERR_UNSUPPORTED;
}

static void tell_loss(const struct host_leases_parcel *parcel, enum err err) {
    struct host_leases *host_leases = parcel->host_leases;
    struct host_leases_event *event = calloc(1, sizeof *event);
    pthread_mutex_lock(&host_leases->lock);
    host_leases->stat.lost_count++;
    pthread_mutex_unlock(&host_leases->lock);
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

/* ---- the bulk thread: parcels for whom too many questions wait already are sent later, in order ---- */

static struct host_leases_parcel **find_late(struct host_leases *host_leases, const struct peer *to) {
    struct host_leases_parcel **link = &host_leases->late;
    while (*link != NULL && memcmp((*link)->to.key, to->key, PEER_KEY_SIZE) != 0) {
        link = &(*link)->next;
    }
    return link;
}

static void on_sent(void *context, enum err err, struct bytes answer);

/* False: he has enough for now, and it stays ours. */
static bool try_parcel(struct host_leases_parcel *parcel) {
    enum err err = peer_rpc_call(parcel->host_leases->config.peer_rpc, &parcel->to, PEER_RPC_LEND,
                                 buf_bytes(&parcel->message), HOST_LEASES_TIMEOUT_MS, on_sent, parcel);
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

void host_leases_send_late(struct host_leases *host_leases) {
    pthread_mutex_lock(&host_leases->lock);
    bool has_parcels = host_leases->parcels_count > 0;
    pthread_mutex_unlock(&host_leases->lock);
    if (has_parcels) {
        enum err err = peer_rpc_post(host_leases->config.peer_rpc, send_late, host_leases);
        (void)err; /* the next tick tries again */
    }
}

void host_leases_drop_late(struct host_leases *host_leases) {
    while (host_leases->late != NULL) {
        struct host_leases_parcel *next = host_leases->late->next;
        free_parcel(host_leases->late);
        host_leases->late = next;
    }
}

/* ---- the crawl's loop ---- */

static struct host_leases_parcel *new_parcel(struct host_leases *host_leases) {
    pthread_mutex_lock(&host_leases->lock);
    bool has_room = host_leases->parcels_count < HOST_LEASES_PARCELS_MAX;
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

bool host_leases_send(struct host_leases *host_leases, const struct peer *to,
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
