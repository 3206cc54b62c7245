#include "protocol/links/link_relay.h"

#include "base/map.h"
#include "protocol/links/link_relay_state.h"

enum {
    TOOK_SIZE = 5, /* of LINK_RELAY_TOOK */
    BURST_S = 10,
    US_PER_S = 1000000,
    TAKE_HEAD_SIZE_MAX = 128,
    TAKE_LINK_SIZE_MAX = 6, /* beside its URL */
    TAKE_SIZE_MAX = TAKE_HEAD_SIZE_MAX + LINKS_CODE_LINKS_MAX * TAKE_LINK_SIZE_MAX + LINKS_CODE_TEXT_SIZE_MAX,
    BLAME_SIZE_MAX = PEER_KEY_SIZE + 64,
    ARENA_SIZE_MAX = 1 << 28,
};

/* ---- life ---- */

static void relay_set_defaults(struct link_relay_config *config) {
    config->walkers_count = config->walkers_count > 0 ? config->walkers_count : 16;
    config->links_max = config->links_max > 0 ? config->links_max : LINK_RELAY_LINKS_MAX;
    config->links_wanted = config->links_wanted > 0 ? config->links_wanted : 16;
    config->takes_max = config->takes_max > 0 ? config->takes_max : 64;
    config->rate = config->rate > 0 ? config->rate : 5000;
    ASSERT(config->walkers_count <= LINK_RELAY_WALKERS_MAX && config->links_max <= LINK_RELAY_LINKS_MAX);
    ASSERT(config->holders_count > 0 && config->holders_count <= LINK_RELAY_HOLDERS_MAX);
    ASSERT((config->sent_count & (config->sent_count - 1)) == 0 && config->sent_count % 4 == 0);
}

static void relay_take_memory(struct link_relay *link_relay) {
    struct link_relay_config *config = &link_relay->config;
    struct arena *arena = &link_relay->arena;
    link_relay->walkers = arena_take_array(arena, config->walkers_count, sizeof *link_relay->walkers);
    link_relay->pending = arena_take_array(arena, config->takes_max, sizeof *link_relay->pending);
    link_relay->full_at_us =
        arena_take_array(arena, LINK_RELAY_BUCKETS_COUNT, sizeof *link_relay->full_at_us);
    link_relay->sent = (struct link_relay_sent){.count = config->sent_count, .seed = config->seed};
    if (config->sent_count > 0) {
        link_relay->sent.entries =
            arena_take_array(arena, config->sent_count, sizeof *link_relay->sent.entries);
    }
}

enum err link_relay_new(const struct link_relay_config *config, struct link_relay **ret_walk) {
    struct link_relay *link_relay = arena_new(sizeof *link_relay, ARENA_SIZE_MAX);
    if (link_relay == NULL) {
        return ERR_MEMORY;
    }
    link_relay->config = *config;
    relay_set_defaults(&link_relay->config);
    link_relay->links_mean =
        LINK_RELAY_MEAN_FULL * LINK_RELAY_MEAN_OF; /* one small datagram, and it is known */
    relay_take_memory(link_relay);
    if (link_relay->arena.is_short || sha256_init(&link_relay->sha256) != ERR_OK) {
        arena_free(link_relay);
        return ERR_MEMORY;
    }
    *ret_walk = link_relay;
    return ERR_OK;
}

void link_relay_free(struct link_relay *link_relay) {
    sha256_done(&link_relay->sha256);
    arena_free(link_relay);
}

/* All walkers begin a batch, or repeat one; one message is received. */
size_t link_relay_actions_max(const struct link_relay_config *config) {
    struct link_relay_config full = *config;
    relay_set_defaults(&full);
    return (size_t)full.walkers_count * (LINK_RELAY_TARGETS_MAX + 1) + 4;
}

size_t link_relay_memory_size(const struct link_relay_config *config) {
    return link_relay_actions_max(config) * (LINK_RELAY_MESSAGE_SIZE_MAX + 100) + TAKE_SIZE_MAX +
           BLAME_SIZE_MAX;
}

const struct link_relay_counters *link_relay_counters(const struct link_relay *link_relay) {
    return &link_relay->counters;
}

bool link_relay_knows(const struct link_relay *link_relay, struct bytes job, struct bytes url,
                      uint64_t now_us) {
    return link_relay_sent_has(&link_relay->sent, link_relay_sent_hash(&link_relay->sent, job, url), now_us);
}

bool link_relay_is_idle(const struct link_relay *link_relay) {
    return !link_relay->is_walking;
}

/* ---- receiving ---- */

static void relay_blame(struct link_relay *link_relay, const struct event *event, const char *why) {
    uint8_t memory[BLAME_SIZE_MAX];
    struct wire_writer writer;
    struct bytes bytes;
    link_relay->counters.malformed_count++;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, bytes_of(event->from_key, PEER_KEY_SIZE));
    wire_write_bytes(&writer, bytes_of_string(why));
    if (wire_writer_finish(&writer, &bytes) == ERR_OK) {
        outbox_notice(link_relay->out, LINK_RELAY_BLAMED, bytes);
    }
}

static void relay_answer(struct link_relay *link_relay, const struct peer *to,
                         const struct link_relay_pending *question, enum link_relay_status status,
                         uint32_t accepted_count) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct link_relay_message message = {.kind = LINK_RELAY_ANSWER,
                                         .number = question->number,
                                         .status = (uint8_t)status,
                                         .accepted_count = accepted_count};
    if (question->flags & LINK_RELAY_WANTS) {
        message.places_count = (uint8_t)link_relay->config.owner->after(
            link_relay->config.context, question->after, message.places, LINK_RELAY_PLACES_MAX);
    }
    outbox_send_peer(link_relay->out, to, link_relay_message_write(&message, memory));
}

/* Peers that fall into one bucket share it. */
static bool is_admitted(struct link_relay *link_relay, const struct event *event, size_t links_count) {
    uint64_t hash = map_hash(bytes_of(event->from_key, PEER_KEY_SIZE), link_relay->config.seed) ^
                    map_hash(bytes_of(event->from.ip, sizeof event->from.ip), link_relay->config.seed);
    uint64_t *full_at_us = &link_relay->full_at_us[hash % LINK_RELAY_BUCKETS_COUNT];
    uint64_t at_us = *full_at_us > link_relay->now_us ? *full_at_us : link_relay->now_us;
    if (at_us - link_relay->now_us > (uint64_t)BURST_S * US_PER_S) {
        return false;
    }
    *full_at_us = at_us + links_count * US_PER_S / link_relay->config.rate;
    return true;
}

static void tell_take(struct link_relay *link_relay, uint64_t number, const struct event *event,
                      bool is_primary, const struct links_code_batch *batch) {
    struct outbox *out = link_relay->out;
    struct peer from = event_sender(event);
    struct wire_writer writer;
    /* Written where it stays: it is too large for the stack. */
    wire_writer_init(&writer, out->memory + out->memory_used, out->memory_size - out->memory_used);
    wire_write_u64(&writer, number);
    peer_write(&writer, PEER_PLAIN, &from);
    wire_write_bool(&writer, is_primary);
    wire_write_bytes(&writer, bytes_of(batch->job, sizeof batch->job));
    wire_write_varint(&writer, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        wire_write_u8(&writer, batch->links[i].priority);
        wire_write_u16(&writer, batch->links[i].depth);
        wire_write_string(&writer, batch->links[i].url);
    }
    struct bytes bytes = wire_writer_bytes(&writer);
    ASSERT(out->actions_count < out->actions_max);
    out->memory_used += bytes.size;
    out->actions[out->actions_count++] =
        (struct action){.kind = ACTION_NOTICE, .code = LINK_RELAY_TAKE, .bytes = bytes};
}

static struct link_relay_pending *find_pending(struct link_relay *link_relay, const struct peer *from,
                                               uint16_t number) {
    for (uint32_t i = 0; i < link_relay->config.takes_max; i++) {
        struct link_relay_pending *pending = &link_relay->pending[i];
        if (pending->is_used && pending->number == number && peer_equal(&pending->from, from)) {
            return pending;
        }
    }
    return NULL;
}

static struct link_relay_pending *free_pending(struct link_relay *link_relay) {
    for (uint32_t i = 0; i < link_relay->config.takes_max; i++) {
        if (!link_relay->pending[i].is_used) {
            return &link_relay->pending[i];
        }
    }
    return NULL;
}

static void on_offer(struct link_relay *link_relay, const struct event *event,
                     const struct link_relay_message *offer) {
    struct links_code_batch batch;
    struct peer from = event_sender(event);
    struct link_relay_pending question = {
        .is_used = true, .from = from, .number = offer->number, .flags = offer->flags, .after = offer->after};
    link_relay->counters.received_count++;
    if (find_pending(link_relay, &from, offer->number) != NULL) {
        return; /* said again, while the owner is at work */
    }
    if (!is_admitted(link_relay, event, 1)) {
        link_relay->counters.flood_count++;
        relay_answer(link_relay, &from, &question, LINK_RELAY_BUSY, 0);
        return;
    }
    const char *wrong = links_code_read(link_relay->config.code, offer->links, &batch);
    if (wrong != NULL) {
        relay_blame(link_relay, event, wrong);
        relay_answer(link_relay, &from, &question, LINK_RELAY_REFUSED, 0);
        return;
    }
    struct link_relay_pending *pending = free_pending(link_relay);
    if (pending == NULL || !is_admitted(link_relay, event, batch.count)) {
        link_relay->counters.busy_count++;
        relay_answer(link_relay, &from, &question, LINK_RELAY_BUSY, 0);
        return;
    }
    question.life = pending->life + 1;
    *pending = question;
    uint64_t number = (uint64_t)question.life << 32 | (uint64_t)(pending - link_relay->pending);
    tell_take(link_relay, number, event, (offer->flags & LINK_RELAY_AS_PRIMARY) != 0, &batch);
}

static void on_took(struct link_relay *link_relay, const struct event *event) {
    uint32_t index = (uint32_t)event->number;
    ASSERT(index < link_relay->config.takes_max && event->bytes.size == TOOK_SIZE);
    struct link_relay_pending *pending = &link_relay->pending[index];
    if (!pending->is_used || pending->life != (uint32_t)(event->number >> 32)) {
        return;
    }
    uint32_t accepted_count = event->bytes.data[1] | (uint32_t)event->bytes.data[2] << 8;
    pending->is_used = false;
    link_relay->counters.accepted_count += accepted_count;
    link_relay->counters.new_count += event->bytes.data[3] | (uint32_t)event->bytes.data[4] << 8;
    link_relay->counters.busy_count += event->bytes.data[0] == LINK_RELAY_BUSY;
    relay_answer(link_relay, &pending->from, pending, event->bytes.data[0], accepted_count);
}

/* ---- steps ---- */

static void relay_on_message(struct link_relay *link_relay, const struct event *event) {
    struct link_relay_message message;
    if (event->from.port == 0 || !link_relay_message_read(event->bytes, &link_relay->sha256, &message)) {
        relay_blame(link_relay, event, "no message about links");
    } else if (message.kind == LINK_RELAY_OFFER) {
        on_offer(link_relay, event, &message);
    } else {
        link_relay_on_answer(link_relay, event, &message);
    }
}

static void relay_on_command(struct link_relay *link_relay, const struct event *event) {
    switch ((enum link_relay_command)event->code) {
    case LINK_RELAY_WAITING:
        break;
    case LINK_RELAY_FOUND:
        link_relay_on_found(link_relay, event);
        break;
    case LINK_RELAY_TOOK:
        on_took(link_relay, event);
        break;
    }
}

void link_relay_step(struct link_relay *link_relay, const struct event *event, struct outbox *out) {
    link_relay->now_us = event->now_us;
    link_relay->out = out;
    if (event->kind == EVENT_MESSAGE) {
        relay_on_message(link_relay, event);
    } else if (event->kind == EVENT_COMMAND) {
        relay_on_command(link_relay, event);
    }
    link_relay_tick(link_relay);
    link_relay->out = NULL;
}

/* ---- what was sent a short while ago ---- */

enum { WAYS = 4, KEPT_S = 24 * 3600 };

uint64_t link_relay_sent_hash(const struct link_relay_sent *sent, struct bytes job, struct bytes url) {
    return map_hash(url, map_hash(job, sent->seed));
}

static struct link_relay_sent_entry *sent_set_of(const struct link_relay_sent *sent, uint64_t hash) {
    return &sent->entries[(hash >> 32 & (sent->count - 1)) / WAYS * WAYS];
}

static uint32_t seconds(uint64_t now_us) {
    return (uint32_t)(now_us / US_PER_S) + 1;
}

bool link_relay_sent_has(const struct link_relay_sent *sent, uint64_t hash, uint64_t now_us) {
    if (sent->count == 0) {
        return false;
    }
    const struct link_relay_sent_entry *set = sent_set_of(sent, hash);
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].at_s > 0 && set[i].fingerprint == (uint32_t)hash &&
            seconds(now_us) - set[i].at_s < KEPT_S) {
            return true;
        }
    }
    return false;
}

void link_relay_sent_add(struct link_relay_sent *sent, uint64_t hash, uint64_t now_us) {
    if (sent->count == 0) {
        return;
    }
    struct link_relay_sent_entry *set = sent_set_of(sent, hash);
    struct link_relay_sent_entry *oldest = set;
    for (unsigned i = 0; i < WAYS; i++) {
        oldest = set[i].at_s < oldest->at_s ? &set[i] : oldest;
        if (set[i].fingerprint == (uint32_t)hash) {
            oldest = &set[i];
            break;
        }
    }
    *oldest = (struct link_relay_sent_entry){.fingerprint = (uint32_t)hash, .at_s = seconds(now_us)};
}

/* ---- for the owner ---- */

void link_relay_take_read(struct bytes notice, struct link_relay_take *ret_take) {
    struct wire_reader *reader = &ret_take->reader;
    *ret_take = (struct link_relay_take){0};
    wire_reader_init(reader, notice);
    ret_take->number = wire_read_u64(reader);
    peer_read(reader, PEER_PLAIN, &ret_take->from);
    ret_take->is_primary = wire_read_bool(reader);
    wire_read_array(reader, ret_take->job, sizeof ret_take->job);
    ret_take->links_count = wire_read_varint(reader, LINKS_CODE_LINKS_MAX);
    ASSERT(reader->err == ERR_OK);
}

void link_relay_take_next(struct link_relay_take *take, struct links_code_link *ret_link) {
    *ret_link = (struct links_code_link){0};
    ret_link->priority = wire_read_u8_max(&take->reader, LINKS_CODE_PRIORITY_MAX);
    ret_link->depth = wire_read_u16(&take->reader);
    ret_link->url = wire_read_string(&take->reader, LINKS_CODE_URL_SIZE_MAX);
    ASSERT(take->reader.err == ERR_OK);
}

struct bytes link_relay_write_found(const struct vnode *places, size_t count, void *memory) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    count = count < RING_LIST_MAX ? count : RING_LIST_MAX;
    wire_write_u8(&writer, (uint8_t)count);
    for (size_t i = 0; i < count; i++) {
        message_write_vnode(&writer, &places[i]);
    }
    return wire_writer_bytes(&writer);
}

struct bytes link_relay_write_took(enum link_relay_status status, uint16_t accepted_count, uint16_t new_count,
                                   void *memory) {
    uint8_t *bytes = memory;
    bytes[0] = (uint8_t)status;
    bytes[1] = (uint8_t)accepted_count;
    bytes[2] = (uint8_t)(accepted_count >> 8);
    bytes[3] = (uint8_t)new_count;
    bytes[4] = (uint8_t)(new_count >> 8);
    return bytes_of(bytes, TOOK_SIZE);
}
