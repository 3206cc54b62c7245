#include "protocol/crowd/state.h"

enum {
    WAIT_US_MAX = 2000000, /* for its turn or for the owner: by then nobody waits for the answer any more */
    BURST_PARTS = 4,       /* so many parts of a second's queries may come at once */
};
static const uint64_t SECOND_US = 1000000;

/* ---- buckets ---- */

static bool admits_peer(struct crowd *crowd, uint32_t peer_hash) {
    uint64_t *buckets = crowd->locate.peers_full_at_us;
    uint32_t rate = crowd->config.peer_rate;
    return buckets == NULL || bucket_take_one(&buckets[peer_hash % LOCATE_BUCKETS_COUNT], crowd->now_us,
                                              SECOND_US / rate, 2 * (uint64_t)rate);
}

/* False: *ret_at_us is when the next one may be served. */
static bool admits_next(struct crowd *crowd, uint64_t *ret_at_us) {
    uint64_t *full_at_us = &crowd->locate.total_full_at_us;
    uint64_t each_us = SECOND_US / crowd->config.total_rate;
    uint64_t burst = crowd->config.total_rate / BURST_PARTS + 1;
    if (crowd->config.is_unlimited || bucket_take_one(full_at_us, crowd->now_us, each_us, burst)) {
        return true;
    }
    *ret_at_us = *full_at_us - each_us * (burst - 1);
    return false;
}

/* ---- tasks ---- */

static struct locate_task *task_at(const struct crowd *crowd, uint32_t index) {
    return &crowd->locate.tasks[crowd->locate.order[index]];
}

static void close_task(struct crowd *crowd, uint32_t index) {
    struct locate *locate = &crowd->locate;
    ASSERT(index < locate->open_count);
    uint32_t position = locate->order[index];
    locate->order[index] = locate->order[--locate->open_count];
    locate->order[locate->open_count] = position;
}

static bool is_waiting(const struct crowd *crowd, uint64_t id) {
    for (uint32_t i = 0; i < crowd->locate.open_count; i++) {
        const struct locate_task *task = task_at(crowd, i);
        if (task->id == id && task->state == LOCATE_TASK_WAITS) {
            return true;
        }
    }
    return false;
}

/* Of those that wait: the most wanted and of them the first, or the least wanted and of them the last. */
static bool choose_waiting(const struct crowd *crowd, bool is_most, uint32_t *ret_index) {
    unsigned best_senders = 0;
    uint64_t best_order = 0;
    bool is_any = false;
    for (uint32_t i = 0; i < crowd->locate.open_count; i++) {
        const struct locate_task *task = task_at(crowd, i);
        if (task->state != LOCATE_TASK_WAITS) {
            continue;
        }
        unsigned senders = locate_wanted_senders(crowd, task->wish_hash);
        bool is_more = senders > best_senders || (senders == best_senders && task->order < best_order);
        if (!is_any || is_more == is_most) {
            is_any = true;
            best_senders = senders;
            best_order = task->order;
            *ret_index = i;
        }
    }
    return is_any;
}

/* Copies that fly need no help in most cases; then what is wanted less than this. False: nothing gives way.
 */
static bool make_room(struct crowd *crowd, uint64_t wish_hash) {
    uint64_t first_order = UINT64_MAX;
    uint32_t index = 0;
    for (uint32_t i = 0; i < crowd->locate.open_count; i++) {
        const struct locate_task *task = task_at(crowd, i);
        if (task->state == LOCATE_TASK_FLIES && task->order < first_order) {
            first_order = task->order;
            index = i;
        }
    }
    if (first_order == UINT64_MAX) {
        if (!choose_waiting(crowd, false, &index) ||
            locate_wanted_senders(crowd, task_at(crowd, index)->wish_hash) >=
                locate_wanted_senders(crowd, wish_hash)) {
            return false;
        }
        crowd->counters.crowded_out_count++;
    }
    close_task(crowd, index);
    return true;
}

static uint8_t cut(uint8_t value, uint8_t min, uint8_t max) {
    return value < min ? min : value > max ? max : value;
}

static void open_task(struct crowd *crowd, const struct event *event, const struct crowd_message *message,
                      uint64_t wish_hash) {
    struct locate *locate = &crowd->locate;
    struct locate_task *task = task_at(crowd, locate->open_count++);
    ASSERT(message->contents.size <= CROWD_WISH_SIZE_MAX);
    task->state = LOCATE_TASK_WAITS;
    task->order = ++locate->order_last;
    task->arrived_us = crowd->now_us;
    task->id = message->number;
    task->wish_hash = wish_hash;
    task->from = event_sender(event);
    /* It has come one hop already, so that it goes ttl_cap hops in all, however often it was cut. */
    task->ttl = cut(message->ttl, 0, (uint8_t)(crowd->config.ttl_cap - 1));
    task->hops = cut(message->hops, 1, UINT8_MAX);
    task->fanout = cut(message->fanout, 1, locate_fanout_max(&crowd->config));
    task->wish_size = (uint16_t)message->contents.size;
    memcpy(task->wish, message->contents.data, message->contents.size);
    locate_due(crowd, crowd->now_us);
}

void locate_pass_query(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    crowd->counters.queries_count++;
    crowd_answer(crowd, event, &(struct crowd_message){.kind = CROWD_MESSAGE_ACK, .number = message->number});
    if (crowd->config.part == CROWD_MUTE) {
        return;
    }
    uint32_t peer_hash = locate_peer_hash(crowd, &event->from);
    if (!admits_peer(crowd, peer_hash)) {
        crowd->counters.limited_count++;
        return;
    }
    if (locate_seen_find(&crowd->locate.seen, message->number) != NULL ||
        is_waiting(crowd, message->number)) {
        crowd->counters.repeats_count++;
        if (!crowd->config.takes_repeats) {
            return;
        }
    }
    uint64_t wish_hash = locate_wish_hash(crowd, message->contents);
    locate_wanted_note(crowd, wish_hash, peer_hash);
    if (crowd->locate.open_count == crowd->config.waiting_max && !make_room(crowd, wish_hash)) {
        crowd->counters.crowded_out_count++;
        return;
    }
    open_task(crowd, event, message, wish_hash);
}

/* ---- sending on ---- */

static struct crowd_message query_of(const struct locate_task *task) {
    return (struct crowd_message){
        .kind = CROWD_MESSAGE_QUERY,
        .number = task->id,
        .ttl = (uint8_t)(task->ttl - 1),
        .hops = (uint8_t)(cut(task->hops, 0, UINT8_MAX - 1) + 1),
        .fanout = task->fanout,
        .contents = bytes_of(task->wish, task->wish_size),
    };
}

/* False: it is done with. */
static bool forward(struct crowd *crowd, struct locate_task *task) {
    struct locate_query *query = locate_seen_find(&crowd->locate.seen, task->id);
    if (task->ttl == 0 || query == NULL) {
        return false;
    }
    if (locate_wanted_is_fruitless(crowd, task->wish_hash)) {
        crowd->counters.fruitless_count++;
        return false;
    }
    struct crowd_message message = query_of(task);
    size_t count = crowd->config.part == CROWD_TUNNEL ? 1 : task->fanout;
    crowd->counters.forwarded_count +=
        locate_flight_start(crowd, &task->flight, query, &message, &task->from.address, count);
    task->state = LOCATE_TASK_FLIES;
    return task->flight.awaited_count > 0;
}

static bool fly(struct crowd *crowd, struct locate_task *task) {
    struct locate_query *query = locate_seen_find(&crowd->locate.seen, task->id);
    if (query == NULL) {
        return false;
    }
    struct crowd_message message = query_of(task);
    crowd->counters.forwarded_count +=
        locate_flight_tick(crowd, &task->flight, query, &message, &task->from.address);
    return task->flight.awaited_count > 0;
}

void locate_pass_acknowledge(struct crowd *crowd, uint64_t id, uint32_t peer_hash) {
    for (uint32_t i = 0; i < crowd->locate.open_count; i++) {
        struct locate_task *task = task_at(crowd, i);
        if (task->id != id || task->state != LOCATE_TASK_FLIES ||
            !locate_flight_acknowledge(&task->flight, peer_hash)) {
            continue;
        }
        if (task->flight.awaited_count == 0) {
            close_task(crowd, i);
        }
        return;
    }
}

/* ---- asking the owner ---- */

/* Where somebody else's query for the same is before him already, both wait for one answer. */
static void ask(struct crowd *crowd, struct locate_task *task) {
    struct bytes wish = bytes_of(task->wish, task->wish_size);
    task->state = LOCATE_TASK_ASKED;
    task->asked = 0;
    for (uint32_t i = 0; i < crowd->locate.open_count; i++) {
        const struct locate_task *other = task_at(crowd, i);
        if (other != task && other->state == LOCATE_TASK_ASKED && other->wish_hash == task->wish_hash &&
            bytes_equal(bytes_of(other->wish, other->wish_size), wish)) {
            task->asked = other->asked;
            return;
        }
    }
    task->asked = ++crowd->locate.asked_last;
    uint8_t memory[8 + CROWD_WISH_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u64(&writer, task->asked);
    wire_write_bytes(&writer, wish);
    ASSERT(writer.err == ERR_OK);
    outbox_notice(crowd->out, CROWD_ASKED, bytes_of(memory, writer.size));
}

/* Its turn has come. False: it is done with. */
static bool serve(struct crowd *crowd, struct locate_task *task) {
    struct locate_query *query = locate_seen_find(&crowd->locate.seen, task->id);
    if (query == NULL) { /* else a repeat: what is found goes back to whom it came from first */
        query = locate_seen_add(&crowd->locate.seen, task->id);
        query->wish_hash = task->wish_hash;
        query->from = task->from;
    }
    if (crowd->config.part == CROWD_QUERY_ONLY) {
        return forward(crowd, task);
    }
    ask(crowd, task);
    locate_due(crowd, task->arrived_us + WAIT_US_MAX);
    return true;
}

void locate_have(struct crowd *crowd, uint64_t number, struct bytes finding) {
    ASSERT(finding.size <= CROWD_FINDING_SIZE_MAX);
    for (uint32_t i = crowd->locate.open_count; i-- > 0;) {
        struct locate_task *task = task_at(crowd, i);
        if (task->state != LOCATE_TASK_ASKED || task->asked != number) {
            continue;
        }
        if (finding.size == 0) {
            task->state = LOCATE_TASK_FORWARD;
            locate_due(crowd, crowd->now_us);
            continue;
        }
        struct crowd_message hit = {
            .kind = CROWD_MESSAGE_HIT, .number = task->id, .hops = task->hops, .contents = finding};
        crowd_send(crowd, &task->from, &hit);
        crowd->counters.hits_count++;
        locate_wanted_found(crowd, task->wish_hash);
        close_task(crowd, i);
    }
}

/* ---- what is due ---- */

/* False: it is done with. */
static bool work(struct crowd *crowd, struct locate_task *task, unsigned *units) {
    bool is_sending = task->state == LOCATE_TASK_FORWARD ||
                      (task->state == LOCATE_TASK_FLIES && crowd->now_us >= task->flight.due_us);
    if (is_sending) {
        if (*units == 0) {
            locate_due(crowd, crowd->now_us);
            return true;
        }
        --*units;
        if (task->state == LOCATE_TASK_FORWARD ? !forward(crowd, task) : !fly(crowd, task)) {
            return false;
        }
    }
    if (task->state == LOCATE_TASK_FLIES) {
        locate_due(crowd, task->flight.due_us);
        return true;
    }
    if (crowd->now_us - task->arrived_us >= WAIT_US_MAX) {
        crowd->counters.crowded_out_count++;
        return false;
    }
    locate_due(crowd, task->arrived_us + WAIT_US_MAX);
    return true;
}

static void serve_waiting(struct crowd *crowd, unsigned *units) {
    uint32_t index = 0;
    uint64_t at_us;
    while (choose_waiting(crowd, true, &index)) {
        if (*units == 0) {
            locate_due(crowd, crowd->now_us);
            return;
        }
        if (!admits_next(crowd, &at_us)) {
            locate_due(crowd, at_us);
            return;
        }
        --*units;
        struct locate_task *task = task_at(crowd, index);
        if (!serve(crowd, task)) {
            close_task(crowd, index);
        } else if (task->state == LOCATE_TASK_FLIES) {
            locate_due(crowd, task->flight.due_us);
        }
    }
}

void locate_pass_tick(struct crowd *crowd, unsigned *units) {
    for (uint32_t i = crowd->locate.open_count; i-- > 0;) {
        if (!work(crowd, task_at(crowd, i), units)) {
            close_task(crowd, i);
        }
    }
    serve_waiting(crowd, units);
}
