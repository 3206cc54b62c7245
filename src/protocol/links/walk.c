#include "protocol/links/walk.h"

#include "base/map.h"
#include "protocol/links/walk_state.h"

enum {
    WALKERS_DEFAULT = 16,
    LINKS_WANTED_DEFAULT = 16,
    TAKES_DEFAULT = 64,
    RATE_DEFAULT = 5000,
    BURST_S = 10,
    US_PER_S = 1000000,
    TAKE_HEAD_SIZE_MAX = 128,
    TAKE_LINK_SIZE_MAX = 6, /* beside its URL */
    TAKE_SIZE_MAX = TAKE_HEAD_SIZE_MAX + LINKS_CODE_LINKS_MAX * TAKE_LINK_SIZE_MAX + LINKS_CODE_TEXT_SIZE_MAX,
    BLAME_SIZE_MAX = PEER_KEY_SIZE + 64,
    ARENA_SIZE_MAX = 1 << 28,
};

/* ---- life ---- */

static void set_defaults(struct walk_config *config) {
    config->walkers_count = config->walkers_count > 0 ? config->walkers_count : WALKERS_DEFAULT;
    config->links_max = config->links_max > 0 ? config->links_max : WALK_LINKS_MAX;
    config->links_wanted = config->links_wanted > 0 ? config->links_wanted : LINKS_WANTED_DEFAULT;
    config->takes_max = config->takes_max > 0 ? config->takes_max : TAKES_DEFAULT;
    config->rate = config->rate > 0 ? config->rate : RATE_DEFAULT;
    ASSERT(config->walkers_count <= WALK_WALKERS_MAX && config->links_max <= WALK_LINKS_MAX);
    ASSERT(config->holders_count > 0 && config->holders_count <= WALK_HOLDERS_MAX);
    ASSERT((config->sent_count & (config->sent_count - 1)) == 0 && config->sent_count % 4 == 0);
}

static bool take_memory(struct walk *walk) {
    struct walk_config *config = &walk->config;
    struct arena *arena = &walk->arena;
    walk->walkers = arena_take_array(arena, config->walkers_count, sizeof *walk->walkers);
    walk->pending = arena_take_array(arena, config->takes_max, sizeof *walk->pending);
    walk->full_at_us = arena_take_array(arena, WALK_BUCKETS_COUNT, sizeof *walk->full_at_us);
    walk->sent = (struct walk_sent){.count = config->sent_count, .seed = config->seed};
    if (config->sent_count > 0) {
        walk->sent.entries = arena_take_array(arena, config->sent_count, sizeof *walk->sent.entries);
    }
    return walk->walkers != NULL && walk->pending != NULL && walk->full_at_us != NULL &&
           (config->sent_count == 0 || walk->sent.entries != NULL);
}

enum err walk_new(const struct walk_config *config, struct walk **ret_walk) {
    struct arena arena;
    arena_init(&arena, ARENA_SIZE_MAX);
    struct walk *walk = arena_take(&arena, sizeof *walk);
    if (walk == NULL) {
        arena_done(&arena);
        return ERR_MEMORY;
    }
    walk->arena = arena;
    walk->config = *config;
    set_defaults(&walk->config);
    walk->links_mean = WALK_MEAN_FULL * WALK_MEAN_OF; /* one small datagram, and it is known */
    if (!take_memory(walk) || sha256_init(&walk->sha256) != ERR_OK) {
        arena = walk->arena;
        arena_done(&arena);
        return ERR_MEMORY;
    }
    *ret_walk = walk;
    return ERR_OK;
}

void walk_free(struct walk *walk) {
    struct arena arena = walk->arena;
    sha256_done(&walk->sha256);
    arena_done(&arena);
}

/* All walkers begin a batch, or repeat one; one message is received. */
size_t walk_actions_max(const struct walk_config *config) {
    struct walk_config full = *config;
    set_defaults(&full);
    return (size_t)full.walkers_count * (WALK_TARGETS_MAX + 1) + 4;
}

size_t walk_memory_size(const struct walk_config *config) {
    return walk_actions_max(config) * (WALK_MESSAGE_SIZE_MAX + 100) + TAKE_SIZE_MAX + BLAME_SIZE_MAX;
}

const struct walk_counters *walk_counters(const struct walk *walk) {
    return &walk->counters;
}

bool walk_knows(const struct walk *walk, struct bytes job, struct bytes url, uint64_t now_us) {
    return walk_sent_has(&walk->sent, walk_sent_hash(&walk->sent, job, url), now_us);
}

bool walk_is_idle(const struct walk *walk) {
    return !walk->is_walking;
}

size_t walk_heap_size(const struct walk *walk) {
    return walk->arena.used;
}

/* ---- who receives ---- */

static void blame(struct walk *walk, const struct event *event, const char *why) {
    uint8_t memory[BLAME_SIZE_MAX];
    struct wire_writer writer;
    struct bytes bytes;
    walk->counters.malformed_count++;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, bytes_of(event->from_key, PEER_KEY_SIZE));
    wire_write_bytes(&writer, bytes_of_string(why));
    if (wire_writer_finish(&writer, &bytes) == ERR_OK) {
        outbox_notice(walk->out, WALK_BLAMED, bytes);
    }
}

static void answer(struct walk *walk, const struct peer *to, const struct walk_pending *question,
                   enum walk_status status, uint32_t accepted_count) {
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct walk_message message = {.kind = WALK_ANSWER,
                                   .number = question->number,
                                   .status = (uint8_t)status,
                                   .accepted_count = accepted_count};
    if (question->flags & WALK_WANTS) {
        message.places_count = (uint8_t)walk->config.owner->after(walk->config.context, question->after,
                                                                  message.places, WALK_PLACES_MAX);
    }
    outbox_send_peer(walk->out, to, walk_message_write(&message, memory));
}

/* Peers that fall into one bucket share it. */
static bool is_admitted(struct walk *walk, const struct event *event, size_t links_count) {
    uint64_t hash = map_hash(bytes_of(event->from_key, PEER_KEY_SIZE), walk->config.seed) ^
                    map_hash(bytes_of(event->from.ip, sizeof event->from.ip), walk->config.seed);
    uint64_t *full_at_us = &walk->full_at_us[hash % WALK_BUCKETS_COUNT];
    uint64_t at_us = *full_at_us > walk->now_us ? *full_at_us : walk->now_us;
    if (at_us - walk->now_us > (uint64_t)BURST_S * US_PER_S) {
        return false;
    }
    *full_at_us = at_us + links_count * US_PER_S / walk->config.rate;
    return true;
}

static void tell_take(struct walk *walk, uint64_t number, const struct event *event, bool is_primary,
                      const struct links_code_batch *batch) {
    struct outbox *out = walk->out;
    struct wire_writer writer;
    struct bytes bytes;
    /* Written where it stays: it is too large for the stack. */
    wire_writer_init(&writer, out->memory + out->memory_used, out->memory_size - out->memory_used);
    wire_write_u64(&writer, number);
    wire_write_bytes(&writer, bytes_of(event->from.ip, sizeof event->from.ip));
    wire_write_u16(&writer, event->from.port);
    wire_write_bytes(&writer, bytes_of(event->from_key, PEER_KEY_SIZE));
    wire_write_bool(&writer, is_primary);
    wire_write_bytes(&writer, bytes_of(batch->job, sizeof batch->job));
    wire_write_varint(&writer, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        wire_write_u8(&writer, batch->links[i].priority);
        wire_write_u16(&writer, batch->links[i].depth);
        wire_write_string(&writer, batch->links[i].url);
    }
    enum err err = wire_writer_finish(&writer, &bytes);
    ASSERT(err == ERR_OK && out->actions_count < out->actions_max);
    out->memory_used += bytes.size;
    out->actions[out->actions_count++] =
        (struct action){.kind = ACTION_NOTICE, .code = WALK_TAKE, .bytes = bytes};
}

static struct walk_pending *find_pending(struct walk *walk, const struct peer *from, uint16_t number) {
    for (uint32_t i = 0; i < walk->config.takes_max; i++) {
        struct walk_pending *pending = &walk->pending[i];
        if (pending->is_used && pending->number == number && peer_equal(&pending->from, from)) {
            return pending;
        }
    }
    return NULL;
}

static struct walk_pending *free_pending(struct walk *walk) {
    for (uint32_t i = 0; i < walk->config.takes_max; i++) {
        if (!walk->pending[i].is_used) {
            return &walk->pending[i];
        }
    }
    return NULL;
}

static void on_offer(struct walk *walk, const struct event *event, const struct walk_message *offer) {
    struct links_code_batch batch;
    struct peer from = {.address = event->from};
    memcpy(from.key, event->from_key, PEER_KEY_SIZE);
    struct walk_pending question = {
        .is_used = true, .from = from, .number = offer->number, .flags = offer->flags, .after = offer->after};
    walk->counters.received_count++;
    if (find_pending(walk, &from, offer->number) != NULL) {
        return; /* said again, while the owner is at work */
    }
    if (!is_admitted(walk, event, 1)) {
        walk->counters.flood_count++;
        answer(walk, &from, &question, WALK_BUSY, 0);
        return;
    }
    const char *wrong = links_code_read(walk->config.code, offer->links, &batch);
    if (wrong != NULL) {
        blame(walk, event, wrong);
        answer(walk, &from, &question, WALK_REFUSED, 0);
        return;
    }
    struct walk_pending *pending = free_pending(walk);
    if (pending == NULL || !is_admitted(walk, event, batch.count)) {
        walk->counters.busy_count++;
        answer(walk, &from, &question, WALK_BUSY, 0);
        return;
    }
    question.life = pending->life + 1;
    *pending = question;
    uint64_t number = (uint64_t)question.life << 32 | (uint64_t)(pending - walk->pending);
    tell_take(walk, number, event, (offer->flags & WALK_AS_PRIMARY) != 0, &batch);
}

static void on_took(struct walk *walk, const struct event *event) {
    uint32_t index = (uint32_t)event->number;
    ASSERT(index < walk->config.takes_max && event->bytes.size == 3);
    struct walk_pending *pending = &walk->pending[index];
    if (!pending->is_used || pending->life != (uint32_t)(event->number >> 32)) {
        return;
    }
    uint32_t accepted_count = event->bytes.data[1] | (uint32_t)event->bytes.data[2] << 8;
    pending->is_used = false;
    walk->counters.accepted_count += accepted_count;
    walk->counters.busy_count += event->bytes.data[0] == WALK_BUSY;
    answer(walk, &pending->from, pending, event->bytes.data[0], accepted_count);
}

/* ---- steps ---- */

static void on_message(struct walk *walk, const struct event *event) {
    struct walk_message message;
    if (!walk_message_read(event->bytes, &walk->sha256, &message)) {
        blame(walk, event, "no message about links");
    } else if (message.kind == WALK_OFFER) {
        on_offer(walk, event, &message);
    } else {
        walk_on_answer(walk, event, &message);
    }
}

static void on_command(struct walk *walk, const struct event *event) {
    switch ((enum walk_command)event->code) {
    case WALK_WAITING:
        break;
    case WALK_FOUND:
        walk_on_found(walk, event);
        break;
    case WALK_TOOK:
        on_took(walk, event);
        break;
    }
}

void walk_step(struct walk *walk, const struct event *event, struct outbox *out) {
    walk->now_us = event->now_us;
    walk->out = out;
    if (event->kind == EVENT_MESSAGE) {
        on_message(walk, event);
    } else if (event->kind == EVENT_COMMAND) {
        on_command(walk, event);
    }
    walk_tick(walk);
    walk->out = NULL;
}

/* ---- for the owner ---- */

void walk_take_read(struct bytes notice, struct walk_take *ret_take) {
    struct wire_reader *reader = &ret_take->reader;
    *ret_take = (struct walk_take){0};
    wire_reader_init(reader, notice);
    ret_take->number = wire_read_u64(reader);
    wire_read_array(reader, ret_take->from.ip, sizeof ret_take->from.ip);
    ret_take->from.port = wire_read_u16(reader);
    wire_read_array(reader, ret_take->from_key, PEER_KEY_SIZE);
    ret_take->is_primary = wire_read_bool(reader);
    wire_read_array(reader, ret_take->job, sizeof ret_take->job);
    ret_take->links_count = wire_read_varint(reader, LINKS_CODE_LINKS_MAX);
    ASSERT(reader->err == ERR_OK);
}

void walk_take_next(struct walk_take *take, struct links_code_link *ret_link) {
    *ret_link = (struct links_code_link){0};
    ret_link->priority = wire_read_u8_max(&take->reader, LINKS_CODE_PRIORITY_MAX);
    ret_link->depth = wire_read_u16(&take->reader);
    ret_link->url = wire_read_string(&take->reader, LINKS_CODE_URL_SIZE_MAX);
    ASSERT(take->reader.err == ERR_OK);
}

struct bytes walk_write_found(const struct ring_place *places, size_t count, void *memory) {
    struct wire_writer writer;
    struct bytes bytes;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    count = count < RING_LIST_MAX ? count : RING_LIST_MAX;
    wire_write_u8(&writer, (uint8_t)count);
    for (size_t i = 0; i < count; i++) {
        message_write_place(&writer, &places[i]);
    }
    enum err err = wire_writer_finish(&writer, &bytes);
    ASSERT(err == ERR_OK);
    return bytes;
}

struct bytes walk_write_took(enum walk_status status, uint16_t accepted_count, void *memory) {
    uint8_t *bytes = memory;
    bytes[0] = (uint8_t)status;
    bytes[1] = (uint8_t)accepted_count;
    bytes[2] = (uint8_t)(accepted_count >> 8);
    return bytes_of(bytes, 3);
}
