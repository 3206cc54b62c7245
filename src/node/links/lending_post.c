#include <stdlib.h>

#include "node/links/lending_state.h"

/* ---- events: to the crawl's loop ---- */

void lending_free_event(struct lending_event *event) {
    buf_done(&event->bytes);
    free(event);
}

/* False: there is no room, or nobody to hear it. */
static bool push_event(struct lending *lending, struct lending_event *event) {
    pthread_mutex_lock(&lending->lock);
    bool has_room = lending->is_attached && lending->events_count < LENDING_EVENTS_MAX;
    if (has_room) {
        event->next = NULL;
        *lending->events_end = event;
        lending->events_end = &event->next;
        lending->events_count++;
        uv_async_send(&lending->async);
    }
    pthread_mutex_unlock(&lending->lock);
    return has_room;
}

struct lending_event *lending_take_event(struct lending *lending) {
    pthread_mutex_lock(&lending->lock);
    struct lending_event *event = lending->events;
    if (event != NULL) {
        lending->events = event->next;
        lending->events_count--;
        if (lending->events == NULL) {
            lending->events_end = &lending->events;
        }
    }
    pthread_mutex_unlock(&lending->lock);
    return event;
}

enum err lending_answer(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                        struct err_detail *detail) {
    struct lending *lending = context;
    struct lending_event *event = calloc(1, sizeof *event);
    (void)answer;
    if (event == NULL) {
        return ERR_MEMORY;
    }
    event->from = *from;
    buf_init(&event->bytes, BULK_QUESTION_SIZE_MAX);
    enum err err = buf_put(&event->bytes, question);
    if (err == ERR_OK) {
        err = lending_read(buf_bytes(&event->bytes), lending_now_us(lending), lending_wall_us(lending),
                           &event->message, detail);
    }
    if (err == ERR_OK && !push_event(lending, event)) {
        err = ERR_BUSY;
    }
    if (err != ERR_OK) {
        lending_free_event(event);
    }
    return err;
}

/* ---- parcels: to another node ---- */

static void free_parcel(struct lending_parcel *parcel) {
    struct lending *lending = parcel->lending;
    pthread_mutex_lock(&lending->lock);
    lending->parcels_count--;
    pthread_mutex_unlock(&lending->lock);
    buf_done(&parcel->host);
    buf_done(&parcel->message);
    free(parcel);
}

/* Of these, nothing reached him: there was no connection, or he took nothing. */
static bool is_undelivered(enum err err) {
    return err == ERR_REFUSED || err == ERR_UNREACHABLE || err == ERR_BUSY || err == ERR_INVALID ||
           err == ERR_UNSUPPORTED;
}

static void tell_loss(const struct lending_parcel *parcel, enum err err) {
    struct lending *lending = parcel->lending;
    struct lending_event *event = calloc(1, sizeof *event);
    pthread_mutex_lock(&lending->lock);
    lending->stat.lost_count++;
    pthread_mutex_unlock(&lending->lock);
    if (event == NULL) {
        return; /* as if it had been lost on the way */
    }
    event->from = parcel->to;
    event->is_loss = true;
    event->is_certain = is_undelivered(err);
    buf_init(&event->bytes, PERMIT_HOST_SIZE_MAX);
    buf_put(&event->bytes, buf_bytes(&parcel->host));
    event->message = (struct lending_message){
        .kind = parcel->kind, .host = buf_bytes(&event->bytes), .number = parcel->number};
    if (event->bytes.err != ERR_OK || !push_event(lending, event)) {
        lending_free_event(event);
    }
}

/* ---- the bulk thread: parcels for whom too many questions wait already are sent later, in order ---- */

static struct lending_parcel **find_late(struct lending *lending, const struct peer *to) {
    struct lending_parcel **link = &lending->late;
    while (*link != NULL && memcmp((*link)->to.key, to->key, PEER_KEY_SIZE) != 0) {
        link = &(*link)->next;
    }
    return link;
}

static void on_sent(void *context, enum err err, struct bytes answer);

/* False: he has enough for now, and it stays ours. */
static bool try_parcel(struct lending_parcel *parcel) {
    enum err err = bulk_call(parcel->lending->config.bulk, &parcel->to, BULK_LEND,
                             buf_bytes(&parcel->message), LENDING_TIMEOUT_MS, on_sent, parcel);
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
    struct lending_parcel *parcel = context;
    (void)answer;
    struct lending_parcel **link = find_late(parcel->lending, &parcel->to);
    struct lending_parcel *late = *link;
    struct lending_parcel *next = late != NULL ? late->next : NULL;
    if (late != NULL && err == ERR_OK && try_parcel(late)) {
        *link = next;
    }
    if (err != ERR_OK) {
        tell_loss(parcel, err);
    }
    free_parcel(parcel);
}

static void send_parcel(void *context) {
    struct lending_parcel *parcel = context;
    struct lending *lending = parcel->lending;
    if (*find_late(lending, &parcel->to) != NULL || !try_parcel(parcel)) {
        struct lending_parcel **end = &lending->late;
        while (*end != NULL) {
            end = &(*end)->next;
        }
        *end = parcel;
    }
}

static void send_late(void *context) {
    struct lending *lending = context;
    struct lending_parcel **link = &lending->late;
    while (*link != NULL) {
        struct lending_parcel *next = (*link)->next;
        if (try_parcel(*link)) {
            *link = next;
        } else {
            link = &(*link)->next;
        }
    }
}

void lending_send_late(struct lending *lending) {
    pthread_mutex_lock(&lending->lock);
    bool has_parcels = lending->parcels_count > 0;
    pthread_mutex_unlock(&lending->lock);
    if (has_parcels) {
        enum err err = bulk_post(lending->config.bulk, send_late, lending);
        (void)err; /* the next tick tries again */
    }
}

void lending_drop_late(struct lending *lending) {
    while (lending->late != NULL) {
        struct lending_parcel *next = lending->late->next;
        free_parcel(lending->late);
        lending->late = next;
    }
}

/* ---- the crawl's loop ---- */

static struct lending_parcel *new_parcel(struct lending *lending) {
    pthread_mutex_lock(&lending->lock);
    bool has_room = lending->parcels_count < LENDING_PARCELS_MAX;
    struct lending_parcel *parcel = has_room ? calloc(1, sizeof *parcel) : NULL;
    lending->parcels_count += parcel != NULL;
    pthread_mutex_unlock(&lending->lock);
    if (parcel != NULL) {
        parcel->lending = lending;
        buf_init(&parcel->host, PERMIT_HOST_SIZE_MAX);
        buf_init(&parcel->message, LENDING_SIZE_MAX);
    }
    return parcel;
}

bool lending_send(struct lending *lending, const struct peer *to, const struct lending_message *message) {
    struct lending_parcel *parcel = new_parcel(lending);
    if (parcel == NULL) {
        return false;
    }
    parcel->to = *to;
    parcel->kind = message->kind;
    parcel->number = message->lease.lender.number;
    enum err err = buf_put(&parcel->host, message->host);
    if (err == ERR_OK) {
        err = lending_write(message, lending_now_us(lending), lending_wall_us(lending), &parcel->message);
    }
    if (err == ERR_OK) {
        err = bulk_post(lending->config.bulk, send_parcel, parcel);
    }
    if (err != ERR_OK) {
        free_parcel(parcel);
    }
    return err == ERR_OK;
}
