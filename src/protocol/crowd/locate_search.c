#include "base/map.h"
#include "protocol/crowd/state.h"

static struct locate_search *find(const struct crowd *crowd, uint64_t number) {
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

static struct crowd_message query_of(const struct crowd *crowd, const struct locate_search *search) {
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
    struct crowd_message message = query_of(crowd, search);
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
    ASSERT(find(crowd, number) == NULL);
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
    struct locate_search *search = find(crowd, number);
    if (search != NULL) {
        close_search(crowd, search);
    }
}

/* Whoever answers everything would otherwise keep every search from going further than to him. */
void locate_discount(struct crowd *crowd, uint64_t number) {
    struct locate_search *search = find(crowd, number);
    if (search != NULL && search->discounted_count < search->holders_count) {
        search->discounted_count++;
    }
}

bool locate_is_searching(const struct crowd *crowd, uint64_t number, uint8_t *ret_ttl) {
    const struct locate_search *search = find(crowd, number);
    if (search == NULL) {
        return false;
    }
    *ret_ttl = search->ttl;
    return true;
}

/* ---- answers ---- */

void locate_search_acknowledge(struct crowd *crowd, const struct locate_query *query, uint32_t peer_hash) {
    struct locate_search *search = find(crowd, query->search_number);
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
    struct locate_search *search = find(crowd, query->search_number);
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

static void work(struct crowd *crowd, struct locate_search *search, unsigned *units) {
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
            struct crowd_message message = query_of(crowd, search);
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
            work(crowd, &crowd->locate.searches[i], units);
        }
    }
}
