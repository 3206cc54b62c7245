#include "protocol/crowd/crowd.h"

#include "base/map.h"
#include "protocol/crowd/crowd_state.h"

enum {
    BLAME_US = 1000000,
    MEMORY_SIZE_MAX = 1 << 30,
};

/* ---- life ---- */

static uint64_t crowd_or_default(uint64_t value, uint64_t otherwise) {
    return value == 0 ? otherwise : value;
}

static void fill_overlay_defaults(struct crowd_config *config) {
    config->view_size = (uint8_t)crowd_or_default(config->view_size, 25);
    config->shuffle_size = (uint8_t)crowd_or_default(config->shuffle_size, 5);
    config->shuffle_us = crowd_or_default(config->shuffle_us, 10000000);
    config->answer_us = crowd_or_default(config->answer_us, 2000000);
    config->walk_hops = (uint8_t)crowd_or_default(config->walk_hops, 2);
    if (config->shuffle_size > config->view_size) { /* what a shuffle brings must have room */
        config->shuffle_size = config->view_size;
    }
    ASSERT(config->self.address.port != 0);
    ASSERT(config->kind <= CROWD_PROOFS && config->part < CROWD_PARTS_COUNT);
    ASSERT(config->view_size <= CROWD_VIEW_MAX && config->shuffle_size <= CROWD_SHUFFLE_MAX);
    ASSERT(config->walk_hops <= CROWD_WALK_HOPS_MAX);
}

static void fill_search_defaults(struct crowd_config *config) {
    config->fanout = (uint8_t)crowd_or_default(config->fanout, 5);
    config->ttl_first = (uint8_t)crowd_or_default(config->ttl_first, 1);
    config->ttl_last = (uint8_t)crowd_or_default(config->ttl_last, 6);
    config->tries_at_last = (uint8_t)crowd_or_default(config->tries_at_last, 1);
    config->ttl_cap = (uint8_t)crowd_or_default(config->ttl_cap, 7);
    config->hop_us = crowd_or_default(config->hop_us, 300000);
    config->ack_us = crowd_or_default(config->ack_us, 500000);
    config->searches_max = (uint32_t)crowd_or_default(config->searches_max, 64);
    config->seen_max = (uint32_t)crowd_or_default(config->seen_max, 4096);
    config->waiting_max = (uint32_t)crowd_or_default(config->waiting_max, 256);
    config->peer_rate = (uint32_t)crowd_or_default(config->peer_rate, 50);
    config->total_rate = (uint32_t)crowd_or_default(config->total_rate, 500);
    config->absent_us = crowd_or_default(config->absent_us, 20000000);
    ASSERT(config->fanout <= CROWD_FANOUT_MAX);
    ASSERT(config->ttl_first <= config->ttl_last && config->ttl_last <= CROWD_TTL_CAP);
    ASSERT(config->ttl_cap <= CROWD_TTL_CAP);
}

static struct crowd_config with_defaults(const struct crowd_config *given) {
    struct crowd_config config = *given;
    fill_overlay_defaults(&config);
    fill_search_defaults(&config);
    return config;
}

static enum err crowd_init(struct crowd *crowd, const struct crowd_config *config) {
    crowd->config = *config;
    prng_init(&crowd->prng, config->seed);
    crowd->secret = prng_u64(&crowd->prng);
    view_init(&crowd->view, &config->self, config->view_size);
    overlay_init(crowd);
    locate_init(crowd);
    return crowd->arena.is_short ? ERR_MEMORY : ERR_OK;
}

enum err crowd_new(const struct crowd_config *given, struct crowd **ret_crowd) {
    struct crowd_config config = with_defaults(given);
    struct crowd *crowd = arena_new(sizeof *crowd, MEMORY_SIZE_MAX);
    enum err err = crowd == NULL ? ERR_MEMORY : crowd_init(crowd, &config);
    if (err != ERR_OK) {
        crowd_free(crowd);
        return err;
    }
    *ret_crowd = crowd;
    return ERR_OK;
}

void crowd_free(struct crowd *crowd) {
    arena_free(crowd);
}

size_t crowd_actions_max(const struct crowd_config *given) {
    struct crowd_config config = with_defaults(given);
    return 1 + overlay_actions_max(&config) + locate_actions_max(&config); /* 1: a blame */
}

size_t crowd_memory_size(const struct crowd_config *config) {
    return crowd_actions_max(config) * (size_t)STEP_MESSAGE_SIZE_MAX;
}

/* ---- for the other files ---- */

void crowd_send(struct crowd *crowd, const struct peer *to, const struct crowd_message *message) {
    outbox_send_peer(crowd->out, to, crowd_message_write(message, crowd->config.network, crowd->memory));
}

void crowd_answer(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    struct peer to = event_sender(event);
    crowd_send(crowd, &to, message);
}

uint64_t crowd_token(const struct crowd *crowd, const struct address *address) {
    uint8_t text[sizeof address->ip + 2];
    memcpy(text, address->ip, sizeof address->ip);
    text[sizeof text - 2] = (uint8_t)(address->port >> 8);
    text[sizeof text - 1] = (uint8_t)address->port;
    uint64_t hash = map_hash(bytes_of(text, sizeof text), crowd->secret);
    return hash == 0 ? 1 : hash; /* 0 stands for none */
}

/* Counted each time, said once a second at most. */
static void crowd_blame(struct crowd *crowd, const struct event *event, const char *text) {
    crowd->counters.blamed_count++;
    ASSERT(strlen(text) <= CROWD_BLAME_TEXT_SIZE_MAX);
    if (crowd->now_us < crowd->blame_at_us) {
        return;
    }
    crowd->blame_at_us = crowd->now_us + BLAME_US;
    uint8_t memory[PEER_SIZE_MAX + CROWD_BLAME_TEXT_SIZE_MAX];
    struct wire_writer writer;
    struct peer who = event_sender(event);
    wire_writer_init(&writer, memory, sizeof memory);
    peer_write(&writer, PEER_TAGGED, &who);
    wire_write_bytes(&writer, bytes_of_string(text));
    outbox_notice(crowd->out, CROWD_BLAMED, bytes_of(memory, writer.size));
}

/* ---- events ---- */

static void crowd_on_message(struct crowd *crowd, const struct event *event) {
    struct crowd_message *message = &crowd->message;
    crowd->counters.received_count++;
    if (!address_is_possible(&event->from) || address_equal(&event->from, &crowd->config.self.address)) {
        crowd->counters.malformed_count++;
        return;
    }
    switch (crowd_message_read(event->bytes, crowd->config.network, message)) {
    case CROWD_MESSAGE_MALFORMED:
        crowd->counters.malformed_count++;
        crowd_blame(crowd, event, "a malformed message");
        return;
    case CROWD_MESSAGE_FOREIGN:
        crowd->counters.foreign_count++;
        return;
    case CROWD_MESSAGE_GOOD:
        break;
    }
    if (message->kind <= CROWD_MESSAGE_WELCOME) {
        overlay_receive(crowd, event, message);
    } else {
        locate_receive(crowd, event, message);
    }
}

static void on_drop(struct crowd *crowd, struct bytes bytes) {
    struct wire_reader reader;
    struct peer peer;
    wire_reader_init(&reader, bytes);
    peer_read(&reader, PEER_TAGGED, &peer);
    ASSERT(reader.err == ERR_OK);
    overlay_drop(crowd, &peer.address);
}

static void crowd_on_command(struct crowd *crowd, const struct event *event) {
    switch ((enum crowd_command)event->code) {
    case CROWD_JOIN:
        overlay_join(crowd, event->bytes);
        break;
    case CROWD_FIND:
        locate_find(crowd, event->number, event->bytes);
        break;
    case CROWD_ENOUGH:
        locate_enough(crowd, event->number);
        break;
    case CROWD_HAVE:
        ASSERT(event->bytes.size > 0);
        locate_have(crowd, event->number, event->bytes);
        break;
    case CROWD_DISCOUNT:
        locate_discount(crowd, event->number);
        break;
    case CROWD_HAVE_NOT:
        locate_have(crowd, event->number, bytes_of(NULL, 0));
        break;
    case CROWD_DROP:
        on_drop(crowd, event->bytes);
        break;
    }
}

void crowd_step(struct crowd *crowd, const struct event *event, struct outbox *out) {
    crowd->now_us = event->now_us;
    crowd->out = out;
    switch (event->kind) {
    case EVENT_START:
        overlay_start(crowd);
        break;
    case EVENT_MESSAGE:
        crowd_on_message(crowd, event);
        break;
    case EVENT_COMMAND:
        crowd_on_command(crowd, event);
        break;
    case EVENT_WAKE:
    case EVENT_RESTORED:
    case EVENT_SAVED:
        break;
    }
    overlay_tick(crowd);
    locate_tick(crowd);
    crowd->out = NULL;
}

/* ---- for the owner ---- */

struct bytes crowd_write_contacts(const struct peer *peers, size_t peers_count, void *memory) {
    struct wire_writer writer;
    wire_writer_init(&writer, memory, STEP_MESSAGE_SIZE_MAX);
    for (size_t i = 0; i < peers_count && i < CROWD_CONTACTS_MAX; i++) {
        peer_write(&writer, PEER_TAGGED, &peers[i]);
    }
    return bytes_of(memory, writer.size);
}

const struct crowd_counters *crowd_counters(const struct crowd *crowd) {
    return &crowd->counters;
}

size_t crowd_neighbours(const struct crowd *crowd, struct crowd_neighbour out[CROWD_VIEW_MAX]) {
    memcpy(out, crowd->view.neighbours, crowd->view.count * sizeof *out);
    return crowd->view.count;
}

bool crowd_is_searching(const struct crowd *crowd, uint64_t number, uint8_t *ret_ttl) {
    return locate_is_searching(crowd, number, ret_ttl);
}

void crowd_install_for_experiment(struct crowd *crowd, const struct peer *peers, size_t peers_count) {
    crowd->view.count = 0;
    for (size_t i = 0; i < peers_count; i++) {
        struct crowd_neighbour neighbour = {.peer = peers[i]};
        view_add(&crowd->view, &neighbour);
    }
}
