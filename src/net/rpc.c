#include "net/rpc.h"

#include <sodium.h>
#include <stdlib.h>

#include "base/rtt.h"

enum {
    CALLS_MAX_DEFAULT = 1024,
    IN_FLIGHT_MAX_DEFAULT = 256,
    TRIES_MAX_DEFAULT = 4,
    WINDOW_UNIT = 256, /* windows are counted in parts of a question */
};

struct destination {
    struct peer peer;
    struct rtt rtt;
    uint32_t window; /* in WINDOW_UNITs */
    uint32_t in_flight_count;
    uint32_t calls_count; /* with those that wait; while there are any, the destination stays */
    uint64_t halved_at_us;
};

struct call {
    struct call *next; /* in the list of those waiting, under way, or free */
    struct call *previous;
    struct destination *destination;
    rpc_done *done;
    void *context;
    uint64_t number;
    uint64_t sent_us;
    uint64_t deadline_us;
    uint32_t tries_count;
    bool is_in_flight;
    size_t size;
    uint8_t message[DATAGRAM_PAYLOAD_SIZE_MAX];
};

struct call_list {
    struct call *first;
    struct call *last;
};

struct rpc {
    uv_timer_t timer;
    struct rpc_config config;
    struct rpc_stats stats;
    struct lru destinations; /* peer: struct destination; more places than calls, so one is always idle */
    struct map numbers;      /* number: struct call * */
    struct call *calls;
    struct call_list free;
    struct call_list waiting; /* in the order of their coming */
    struct call_list flying;
    uint32_t in_flight_count;
    uint64_t number_next;
};

/* A peer as the key of a table: a struct has gaps. */
struct place {
    uint8_t bytes[18 + PEER_KEY_SIZE];
};

static struct place place_of(const struct peer *peer) {
    struct place place;
    memcpy(place.bytes, peer->address.ip, 16);
    memcpy(place.bytes + 16, &peer->address.port, 2);
    memcpy(place.bytes + 18, peer->key, PEER_KEY_SIZE);
    return place;
}

static void list_add(struct call_list *list, struct call *call) {
    call->next = NULL;
    call->previous = list->last;
    *(list->last == NULL ? &list->first : &list->last->next) = call;
    list->last = call;
}

static void list_remove(struct call_list *list, struct call *call) {
    *(call->previous == NULL ? &list->first : &call->previous->next) = call->next;
    *(call->next == NULL ? &list->last : &call->next->previous) = call->previous;
    call->next = call->previous = NULL;
}

struct bytes rpc_write(const struct rpc_message *message, uint8_t out[DATAGRAM_PAYLOAD_SIZE_MAX]) {
    struct bytes written;
    struct wire_writer writer;
    wire_writer_init(&writer, out, DATAGRAM_PAYLOAD_SIZE_MAX);
    wire_write_bool(&writer, message->is_answer);
    wire_write_u64(&writer, message->number);
    wire_write_bytes(&writer, message->contents);
    enum err err = wire_writer_finish(&writer, &written);
    ASSERT(err == ERR_OK);
    return written;
}

bool rpc_read(struct bytes input, struct rpc_message *ret_message) {
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    ret_message->is_answer = wire_read_bool(&reader);
    ret_message->number = wire_read_u64(&reader);
    ret_message->contents = wire_read_bytes(&reader, wire_reader_left(&reader));
    return wire_reader_finish(&reader, NULL) == ERR_OK;
}

static uint64_t now_of(const struct rpc *rpc) {
    return clock_monotonic_us(rpc->config.clock);
}

static struct destination *find_destination(struct rpc *rpc, const struct peer *peer) {
    struct place place = place_of(peer);
    struct destination *destination = lru_find(&rpc->destinations, place.bytes);
    if (destination != NULL) {
        return destination;
    }
    const struct destination *out;
    while ((out = lru_next_out(&rpc->destinations)) != NULL && out->calls_count > 0) {
        struct place busy = place_of(&out->peer);
        (void)lru_find(&rpc->destinations, busy.bytes); /* it becomes the newest */
    }
    destination = lru_add(&rpc->destinations, place.bytes);
    destination->peer = *peer;
    destination->window = RPC_WINDOW_FIRST * WINDOW_UNIT;
    return destination;
}

/* The call is over, for whatever reason; its memory is free again. */
static void remove_call(struct rpc *rpc, struct call *call) {
    struct destination *destination = call->destination;
    if (call->is_in_flight) {
        destination->in_flight_count--;
        rpc->in_flight_count--;
    }
    list_remove(call->is_in_flight ? &rpc->flying : &rpc->waiting, call);
    destination->calls_count--;
    map_remove(&rpc->numbers, bytes_of(&call->number, sizeof call->number));
    list_add(&rpc->free, call);
}

static void end_call(struct rpc *rpc, struct call *call, enum err err, struct bytes answer) {
    rpc_done *done = call->done;
    void *context = call->context;
    remove_call(rpc, call);
    done(context, err, answer);
}

static void on_timer(uv_timer_t *timer);

static void set_timer(struct rpc *rpc) {
    uint64_t first_us = UINT64_MAX;
    for (const struct call *call = rpc->flying.first; call != NULL; call = call->next) {
        first_us = call->deadline_us < first_us ? call->deadline_us : first_us;
    }
    if (first_us == UINT64_MAX) {
        uv_timer_stop(&rpc->timer);
        return;
    }
    uint64_t now_us = now_of(rpc);
    uv_update_time(rpc->config.loop);
    uv_timer_start(&rpc->timer, on_timer, first_us > now_us ? (first_us - now_us) / 1000 + 1 : 0, 0);
}

/* What is dropped on the way out is repeated as what is lost on the way. */
static enum err send_call(struct rpc *rpc, struct call *call) {
    struct destination *destination = call->destination;
    call->tries_count++;
    call->sent_us = now_of(rpc);
    call->deadline_us = call->sent_us + rtt_timeout_us(&destination->rtt, call->tries_count);
    enum err err = datagram_send(rpc->config.datagram, &destination->peer, DATAGRAM_RPC,
                                 bytes_of(call->message, call->size));
    return err == ERR_INVALID ? ERR_INVALID : ERR_OK;
}

static bool has_room(const struct rpc *rpc, const struct destination *destination) {
    return rpc->in_flight_count < rpc->config.in_flight_max &&
           (destination->in_flight_count + 1) * WINDOW_UNIT <= destination->window;
}

/* The call, which waits, goes out. */
static enum err start_call(struct rpc *rpc, struct call *call) {
    list_remove(&rpc->waiting, call);
    list_add(&rpc->flying, call);
    call->is_in_flight = true;
    call->destination->in_flight_count++;
    rpc->in_flight_count++;
    return send_call(rpc, call);
}

/* Those whose turn has come. At most calls_max steps. */
static void start_waiting(struct rpc *rpc) {
    struct call *next;
    for (struct call *call = rpc->waiting.first; call != NULL; call = next) {
        next = call->next;
        if (rpc->in_flight_count >= rpc->config.in_flight_max) {
            break;
        }
        /* A key that is none was found out by the first call: nothing to tell here. */
        if (has_room(rpc, call->destination)) {
            (void)start_call(rpc, call);
        }
    }
    set_timer(rpc);
}

/* One loss in a round trip halves the window, however many were lost with it. */
static void halve_window(struct destination *destination, uint64_t now_us) {
    if (now_us < destination->halved_at_us + rtt_timeout_us(&destination->rtt, 1)) {
        return;
    }
    destination->halved_at_us = now_us;
    destination->window = destination->window / 2 > WINDOW_UNIT ? destination->window / 2 : WINDOW_UNIT;
}

static void widen_window(struct destination *destination) {
    uint32_t wider = destination->window + WINDOW_UNIT * WINDOW_UNIT / destination->window;
    destination->window = wider < RPC_WINDOW_MAX * WINDOW_UNIT ? wider : RPC_WINDOW_MAX * WINDOW_UNIT;
}

/* done() may end or begin other calls, so the walk begins anew after each. */
static struct call *find_overdue(const struct rpc *rpc, uint64_t now_us) {
    struct call *call = rpc->flying.first;
    while (call != NULL && call->deadline_us > now_us) {
        call = call->next;
    }
    return call;
}

static void on_timer(uv_timer_t *timer) {
    struct rpc *rpc = timer->data;
    uint64_t now_us = now_of(rpc);
    struct call *call;
    while ((call = find_overdue(rpc, now_us)) != NULL) {
        halve_window(call->destination, now_us);
        if (call->tries_count >= rpc->config.tries_max) {
            rpc->stats.timeouts++;
            end_call(rpc, call, ERR_TIMEOUT, bytes_of(NULL, 0));
        } else {
            rpc->stats.repeated++;
            (void)send_call(rpc, call);
        }
    }
    start_waiting(rpc);
}

static struct call *add_call(struct rpc *rpc, const struct peer *peer, struct bytes request) {
    struct call *call = rpc->free.first;
    list_remove(&rpc->free, call);
    list_add(&rpc->waiting, call);
    call->is_in_flight = false;
    call->tries_count = 0;
    call->number = rpc->number_next++;
    call->destination = find_destination(rpc, peer);
    call->destination->calls_count++;
    struct rpc_message question = {.number = call->number, .contents = request};
    call->size = rpc_write(&question, call->message).size;
    struct call **place = map_put(&rpc->numbers, bytes_of(&call->number, sizeof call->number));
    ASSERT(place != NULL);
    *place = call;
    return call;
}

enum err rpc_call(struct rpc *rpc, const struct peer *peer, struct bytes request, rpc_done *done,
                  void *context, uint64_t *ret_number) {
    ASSERT(request.size <= RPC_CONTENTS_SIZE_MAX);
    if (rpc->free.first == NULL) {
        return ERR_BUSY;
    }
    struct call *call = add_call(rpc, peer, request);
    call->done = done;
    call->context = context;
    if (has_room(rpc, call->destination)) {
        enum err err = start_call(rpc, call);
        if (err != ERR_OK) {
            remove_call(rpc, call);
            return err;
        }
        set_timer(rpc);
    }
    rpc->stats.calls++;
    *ret_number = call->number;
    return ERR_OK;
}

void rpc_cancel(struct rpc *rpc, uint64_t number) {
    struct call **call = map_get(&rpc->numbers, bytes_of(&number, sizeof number));
    if (call != NULL) {
        remove_call(rpc, *call);
        start_waiting(rpc);
    }
}

void rpc_answer(struct rpc *rpc, const struct rpc_ticket *ticket, struct bytes answer) {
    uint8_t message[DATAGRAM_PAYLOAD_SIZE_MAX];
    ASSERT(answer.size <= RPC_CONTENTS_SIZE_MAX);
    struct rpc_message content = {.is_answer = true, .number = ticket->number, .contents = answer};
    (void)datagram_send(rpc->config.datagram, &ticket->peer, DATAGRAM_RPC, rpc_write(&content, message));
}

static bool is_from(const struct call *call, const struct peer *from) {
    const struct peer *asked = &call->destination->peer;
    return address_equal(&asked->address, &from->address) &&
           (sodium_is_zero(asked->key, PEER_KEY_SIZE) || memcmp(asked->key, from->key, PEER_KEY_SIZE) == 0);
}

static void take_answer(struct rpc *rpc, const struct peer *from, uint64_t number, struct bytes answer) {
    struct call **place = map_get(&rpc->numbers, bytes_of(&number, sizeof number));
    if (place == NULL || !(*place)->is_in_flight || !is_from(*place, from)) {
        rpc->stats.late++;
        return;
    }
    struct call *call = *place;
    if (call->tries_count == 1) { /* Karn: else nobody knows which question was answered */
        rtt_sample(&call->destination->rtt, now_of(rpc) - call->sent_us);
    }
    widen_window(call->destination);
    rpc->stats.answered++;
    end_call(rpc, call, ERR_OK, answer);
    start_waiting(rpc);
}

void rpc_take(struct rpc *rpc, const struct datagram_message *message) {
    struct rpc_message content;
    if (!rpc_read(message->bytes, &content)) {
        rpc->stats.malformed++;
    } else if (content.is_answer) {
        take_answer(rpc, &message->from, content.number, content.contents);
    } else if (rpc->config.on_request != NULL) {
        struct rpc_ticket ticket = {.peer = message->from, .number = content.number};
        rpc->config.on_request(rpc->config.context, &ticket, content.contents);
    }
}

static enum err init_tables(struct rpc *rpc) {
    uint64_t seeds[2];
    randombytes_buf(seeds, sizeof seeds);
    randombytes_buf(&rpc->number_next, sizeof rpc->number_next);
    rpc->calls = calloc(rpc->config.calls_max, sizeof *rpc->calls);
    if (rpc->calls == NULL) {
        return ERR_MEMORY;
    }
    for (uint32_t i = 0; i < rpc->config.calls_max; i++) {
        list_add(&rpc->free, &rpc->calls[i]);
    }
    map_init(&rpc->numbers, sizeof(uint64_t), sizeof(struct call *), rpc->config.calls_max, seeds[0]);
    enum err err = map_reserve(&rpc->numbers, rpc->config.calls_max);
    if (err == ERR_OK) {
        err = lru_init(&rpc->destinations, sizeof(struct place), sizeof(struct destination),
                       rpc->config.calls_max + 1, seeds[1]);
    }
    if (err != ERR_OK) {
        map_done(&rpc->numbers);
        free(rpc->calls);
    }
    return err;
}

enum err rpc_new(const struct rpc_config *config, struct rpc **ret_rpc) {
    struct rpc *rpc = calloc(1, sizeof *rpc);
    if (rpc == NULL) {
        return ERR_MEMORY;
    }
    struct rpc_config *mine = &rpc->config;
    *mine = *config;
    mine->clock = mine->clock != NULL ? mine->clock : &clock_system;
    mine->calls_max = mine->calls_max > 0 ? mine->calls_max : CALLS_MAX_DEFAULT;
    mine->in_flight_max = mine->in_flight_max > 0 ? mine->in_flight_max : IN_FLIGHT_MAX_DEFAULT;
    mine->tries_max = mine->tries_max > 0 ? mine->tries_max : TRIES_MAX_DEFAULT;
    enum err err = init_tables(rpc);
    if (err != ERR_OK) {
        free(rpc);
        return err;
    }
    uv_timer_init(config->loop, &rpc->timer);
    rpc->timer.data = rpc;
    *ret_rpc = rpc;
    return ERR_OK;
}

static void on_closed(uv_handle_t *handle) {
    struct rpc *rpc = handle->data;
    lru_done(&rpc->destinations);
    map_done(&rpc->numbers);
    free(rpc->calls);
    free(rpc);
}

void rpc_free(struct rpc *rpc) {
    if (rpc == NULL) {
        return;
    }
    struct call *call;
    while ((call = rpc->flying.first != NULL ? rpc->flying.first : rpc->waiting.first) != NULL) {
        end_call(rpc, call, ERR_CANCELLED, bytes_of(NULL, 0));
    }
    uv_close((uv_handle_t *)&rpc->timer, on_closed);
}

const struct rpc_stats *rpc_stats(const struct rpc *rpc) {
    return &rpc->stats;
}
