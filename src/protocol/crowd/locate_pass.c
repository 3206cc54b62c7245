#include "base/map.h"
#include "protocol/crowd/crowd_state.h"

static struct locate_search *pass_find(const struct crowd *crowd, uint64_t number) {
    for (uint32_t i = 0; crowd->locate.searches_open > 0 && i < crowd->config.searches_max; i++) {
        struct locate_search *search = &crowd->locate.searches[i];
        if (search->is_open && search->number == number) {
            return search;
        }
    }
    return NULL;
}

static void close_search(struct crowd *crowd, struct locate_search *search) {
    ASSERT(search->is_open && crowd->locate.searches_open > 0);
    search->is_open = false;
    crowd->locate.searches_open--;
}

static void say_lost(struct crowd *crowd, uint64_t number, bool is_unasked) {
    uint8_t memory[9];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u64(&writer, number);
    wire_write_bool(&writer, is_unasked);
    outbox_notice(crowd->out, CROWD_LOST, bytes_of(memory, writer.size));
    crowd->counters.lost_count++;
}

/* ---- tries ---- */

/* Nobody can tell it in advance, and so have our query taken for a repeat. */
static uint64_t new_id(struct crowd *crowd) {
    uint64_t text[2] = {++crowd->locate.ids_count, crowd->now_us};
    return map_hash(bytes_of(text, sizeof text), crowd->secret);
}

static struct crowd_message search_query(const struct crowd *crowd, const struct locate_search *search) {
    return (struct crowd_message){
        .kind = CROWD_MESSAGE_QUERY,
        .number = search->id,
        .ttl = (uint8_t)(search->ttl - 1),
        .hops = 1,
        .fanout = crowd->config.fanout,
        .contents = bytes_of(search->wish, search->wish_size),
    };
}

/* False: there is nobody to ask. */
static bool begin_try(struct crowd *crowd, struct locate_search *search) {
    search->id = new_id(crowd);
    struct locate_query *query = locate_seen_add(&crowd->locate.seen, search->id);
    query->search_number = search->number;
    query->wish_hash = search->wish_hash;
    struct crowd_message message = search_query(crowd, search);
    if (locate_flight_start(crowd, &search->flight, query, &message, NULL, crowd->config.fanout) == 0) {
        return false;
    }
    crowd->counters.tries_count++;
    search->end_at_us = crowd->now_us + search->ttl * crowd->config.hop_us;
    return true;
}

/* What nobody was asked for is not absent. */
static void lose(struct crowd *crowd, struct locate_search *search) {
    if (search->is_acknowledged) {
        locate_absent_note(crowd, search->wish_hash);
    }
    close_search(crowd, search);
    say_lost(crowd, search->number, !search->is_acknowledged);
}

static void end_try(struct crowd *crowd, struct locate_search *search) {
    if (search->holders_count > search->discounted_count) {
        close_search(crowd, search);
        return;
    }
    if (search->ttl < crowd->config.ttl_last) {
        search->ttl++;
    } else {
        search->tries_left--;
    }
    if (search->tries_left == 0 || !begin_try(crowd, search)) {
        lose(crowd, search);
    }
}

void locate_find(struct crowd *crowd, uint64_t number, struct bytes wish) {
    ASSERT(wish.size > 0 && wish.size <= CROWD_WISH_SIZE_MAX);
    ASSERT(pass_find(crowd, number) == NULL);
    struct locate *locate = &crowd->locate;
    uint64_t wish_hash = locate_wish_hash(crowd, wish);
    crowd->counters.searches_count++;
    bool is_absent = locate_absent_is(crowd, wish_hash);
    crowd->counters.absent_count += is_absent;
    if (is_absent || locate->searches_open == crowd->config.searches_max) {
        say_lost(crowd, number, true);
        return;
    }
    struct locate_search *search = locate->searches;
    while (search->is_open) {
        search++;
    }
    *search = (struct locate_search){
        .is_open = true,
        .number = number,
        .ttl = crowd->config.ttl_first,
        .tries_left = crowd->config.tries_at_last,
        .wish_hash = wish_hash,
        .wish_size = (uint16_t)wish.size,
    };
    memcpy(search->wish, wish.data, wish.size);
    locate->searches_open++;
    if (!begin_try(crowd, search)) {
        lose(crowd, search);
        return;
    }
    locate_due(crowd, crowd->now_us);
}

void locate_enough(struct crowd *crowd, uint64_t number) {
    struct locate_search *search = pass_find(crowd, number);
    if (search != NULL) {
        close_search(crowd, search);
    }
}

/* Whoever answers everything would otherwise keep every search from going further than to it. */
void locate_discount(struct crowd *crowd, uint64_t number) {
    struct locate_search *search = pass_find(crowd, number);
    if (search != NULL && search->discounted_count < search->holders_count) {
        search->discounted_count++;
    }
}

bool locate_is_searching(const struct crowd *crowd, uint64_t number, uint8_t *ret_ttl) {
    const struct locate_search *search = pass_find(crowd, number);
    if (search == NULL) {
        return false;
    }
    *ret_ttl = search->ttl;
    return true;
}

/* ---- answers ---- */

void locate_search_acknowledge(struct crowd *crowd, const struct locate_query *query, uint32_t peer_hash) {
    struct locate_search *search = pass_find(crowd, query->search_number);
    if (search != NULL) {
        search->is_acknowledged = true;
        if (search->id == query->id) {
            locate_flight_acknowledge(&search->flight, peer_hash);
        }
    }
}

static uint64_t hash_of_holder(const struct crowd *crowd, const struct peer *holder) {
    uint8_t text[sizeof holder->address.ip + 2 + PEER_KEY_SIZE];
    size_t size = sizeof holder->address.ip;
    memcpy(text, holder->address.ip, size);
    text[size++] = (uint8_t)(holder->address.port >> 8);
    text[size++] = (uint8_t)holder->address.port;
    memcpy(text + size, holder->key, PEER_KEY_SIZE);
    return map_hash(bytes_of(text, sizeof text), crowd->secret);
}

static bool is_new_holder(const struct locate_search *search, uint64_t hash) {
    for (unsigned i = 0; i < search->holders_count; i++) {
        if (search->holders[i] == hash) {
            return false;
        }
    }
    return search->holders_count < LOCATE_FOUND_MAX;
}

static void say_found(struct crowd *crowd, const struct locate_search *search,
                      const struct crowd_message *hit) {
    uint8_t memory[8 + 1 + PEER_SIZE_MAX + CROWD_FINDING_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u64(&writer, search->number);
    wire_write_u8(&writer, hit->hops);
    peer_write(&writer, PEER_TAGGED, &hit->holder);
    wire_write_bytes(&writer, hit->contents);
    ASSERT(writer.err == ERR_OK);
    outbox_notice(crowd->out, CROWD_FOUND, bytes_of(memory, writer.size));
}

void locate_search_hit(struct crowd *crowd, const struct locate_query *query,
                       const struct crowd_message *hit) {
    struct locate_search *search = pass_find(crowd, query->search_number);
    if (search == NULL) {
        crowd->counters.unasked_count++;
        return;
    }
    uint64_t hash = hash_of_holder(crowd, &hit->holder);
    bool is_self = address_equal(&hit->holder.address, &crowd->config.self.address);
    if (is_self || !is_new_holder(search, hash)) {
        return;
    }
    crowd->counters.found_count += search->holders_count == 0;
    search->holders[search->holders_count++] = hash;
    search->flight.due_us = STEP_NEVER_US; /* nobody is asked any more */
    say_found(crowd, search, hit);
}

/* ---- what is due ---- */

static void search_work(struct crowd *crowd, struct locate_search *search, unsigned *units) {
    if (crowd->now_us >= search->end_at_us || crowd->now_us >= search->flight.due_us) {
        if (*units == 0) {
            locate_due(crowd, crowd->now_us);
            return;
        }
        --*units;
        struct locate_query *query = locate_seen_find(&crowd->locate.seen, search->id);
        if (crowd->now_us >= search->end_at_us) {
            end_try(crowd, search);
        } else if (query != NULL) {
            struct crowd_message message = search_query(crowd, search);
            locate_flight_tick(crowd, &search->flight, query, &message, NULL);
        } else {
            search->flight.due_us = STEP_NEVER_US;
        }
    }
    if (search->is_open) {
        locate_due(crowd, search->end_at_us);
        locate_due(crowd, search->flight.due_us);
    }
}

void locate_search_tick(struct crowd *crowd, unsigned *units) {
    for (uint32_t i = 0; crowd->locate.searches_open > 0 && i < crowd->config.searches_max; i++) {
        if (crowd->locate.searches[i].is_open) {
            search_work(crowd, &crowd->locate.searches[i], units);
        }
    }
}

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

/* The next of those that wait: the most wanted and of them the first, or the least wanted and of them the
 * last. */
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
static bool pass_make_room(struct crowd *crowd, uint64_t wish_hash) {
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

static uint8_t pass_cut(uint8_t value, uint8_t min, uint8_t max) {
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
    task->ttl = pass_cut(message->ttl, 0, (uint8_t)(crowd->config.ttl_cap - 1));
    task->hops = pass_cut(message->hops, 1, UINT8_MAX);
    task->fanout = pass_cut(message->fanout, 1, locate_fanout_max(&crowd->config));
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
    if (crowd->locate.open_count == crowd->config.waiting_max && !pass_make_room(crowd, wish_hash)) {
        crowd->counters.crowded_out_count++;
        return;
    }
    open_task(crowd, event, message, wish_hash);
}

/* ---- sending on ---- */

static struct crowd_message task_query(const struct locate_task *task) {
    return (struct crowd_message){
        .kind = CROWD_MESSAGE_QUERY,
        .number = task->id,
        .ttl = (uint8_t)(task->ttl - 1),
        .hops = (uint8_t)(pass_cut(task->hops, 0, UINT8_MAX - 1) + 1),
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
    struct crowd_message message = task_query(task);
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
    struct crowd_message message = task_query(task);
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

/* If somebody else's query for the same is before it already, both wait for one answer. */
static void pass_ask(struct crowd *crowd, struct locate_task *task) {
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
    if (query == NULL) { /* else a repeat: what is found goes back to the node it came from first */
        query = locate_seen_add(&crowd->locate.seen, task->id);
        query->wish_hash = task->wish_hash;
        query->from = task->from;
    }
    if (crowd->config.part == CROWD_QUERY_ONLY) {
        return forward(crowd, task);
    }
    pass_ask(crowd, task);
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
static bool task_work(struct crowd *crowd, struct locate_task *task, unsigned *units) {
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
        if (!task_work(crowd, task_at(crowd, i), units)) {
            close_task(crowd, i);
        }
    }
    serve_waiting(crowd, units);
}
