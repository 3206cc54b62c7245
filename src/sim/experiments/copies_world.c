#include "sim/experiments/copies_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "protocol/copies/reconcile_message.h"
#include "sim/experiments/copies_world_state.h"

enum {
    EVENT_SHIFT = 32,
    NO_MESSAGE = UINT32_MAX,
    MESSAGES_MAX = 1 << 22,
    BUSY_US = 200000,
    TURN_US = 1000,
    SCRUB_COUNT = 64
};

/* What is at an entry of the queue. Codes of the experiment follow. */
enum world_event { WORLD_WAKE, WORLD_ARRIVAL, WORLD_CODES };

/* A question on its way, its answer on the way back, or the end of waiting for one. */
struct copies_message {
    bool is_back;
    uint32_t from; /* the node that asks */
    uint32_t to;
    uint32_t from_life;
    uint32_t to_life;
    uint32_t next_free;
    struct replicator_action action;
    enum err err;
    struct holders_arc arc;
    uint8_t *data; /* of question or answer */
    size_t size;
    uint32_t given_count; /* of a fetch: so many came, the rest later */
    uint64_t sequence;    /* of the entry in the queue that counts; an earlier one was moved */
};

/* ---- events ---- */

static bool world_counts(const void *context, const struct heap_item *item) {
    const struct copies_world *world = context;
    uint32_t index = (uint32_t)item->value;
    switch ((enum world_event)(item->value >> EVENT_SHIFT)) {
    case WORLD_WAKE:
        return world->nodes[index].wake_sequence == item->tie;
    case WORLD_ARRIVAL:
        return world->messages[index].sequence == item->tie;
    case WORLD_CODES:
        break;
    }
    return true;
}

static uint64_t world_push(struct copies_world *world, uint64_t at_us, uint32_t event, uint32_t index) {
    uint64_t sequence = 0;
    enum err err = queue_push(&world->queue, at_us, (uint64_t)event << EVENT_SHIFT | index, &sequence);
    world->err = world->err != ERR_OK ? world->err : err;
    return sequence;
}

void copies_world_at(struct copies_world *world, uint64_t at_us, uint32_t code, uint32_t index) {
    (void)world_push(world, at_us, WORLD_CODES + code, index);
}

static void world_push_arrival(struct copies_world *world, uint64_t at_us, uint32_t index) {
    world->messages[index].sequence = world_push(world, at_us, WORLD_ARRIVAL, index);
}

static uint32_t world_take_message(struct copies_world *world) {
    uint32_t index = world->free_message;
    if (index != NO_MESSAGE) {
        world->free_message = world->messages[index].next_free;
        return index;
    }
    if (world->messages_count == world->messages_max) {
        uint32_t more = world->messages_max > 0 ? 2 * world->messages_max : 256;
        struct copies_message *messages = realloc(world->messages, more * sizeof *messages);
        if (messages == NULL || more > MESSAGES_MAX) {
            world->err = ERR_MEMORY;
            return NO_MESSAGE;
        }
        world->messages = messages;
        world->messages_max = more;
    }
    return world->messages_count++;
}

static void world_free_message(struct copies_world *world, uint32_t index) {
    free(world->messages[index].data);
    world->messages[index].data = NULL;
    world->messages[index].next_free = world->free_message;
    world->free_message = index;
}

static void world_set_bytes(struct copies_world *world, struct copies_message *message, struct bytes bytes) {
    free(message->data);
    message->data = bytes.size > 0 ? malloc(bytes.size) : NULL;
    message->size = message->data != NULL ? bytes.size : 0;
    world->err = message->size == bytes.size ? world->err : ERR_MEMORY;
    if (message->size > 0) {
        memcpy(message->data, bytes.data, bytes.size);
    }
}

/* ---- its disk and its lines ---- */

static enum err disk_find_key(void *context, const struct ringkey *key) {
    const struct copies_world_node *node = context;
    uint32_t capture;
    bool is_here = copies_archive_has(&node->world->archive, key, &capture) && node->disk.has[capture];
    return is_here ? ERR_OK : ERR_NOT_FOUND;
}

/* No two have the same. */
static enum err disk_find_same(void *context, const struct ringkey *key, const struct ringkey *behind,
                               struct ringkey *ret_key) {
    enum err err = behind == NULL ? disk_find_key(context, key) : ERR_NOT_FOUND;
    if (err == ERR_OK) {
        *ret_key = *key;
    }
    return err;
}

static enum err disk_read(void *context, const struct ringkey *key) {
    const struct copies_world_node *node = context;
    enum err err = disk_find_key(context, key);
    return err == ERR_OK && node->rotten[copies_archive_find(&node->world->archive, key)] ? ERR_CORRUPT : err;
}

static uint64_t disk_count(void *context) {
    const struct copies_world_node *node = context;
    return node->disk.count;
}

static bool disk_is_full(void *context) {
    const struct copies_world_node *node = context;
    return node->held_max > 0 && node->disk.count >= node->held_max;
}

static uint64_t disk_deletions(void *context) {
    (void)context;
    return 0;
}

static bool line_is_busy(void *context, const struct peer *peer) {
    const struct copies_world_node *node = context;
    return node->world->now_us < node->busy_us[copies_world_index_of(peer)];
}

static struct replicator_world world_of(struct copies_world_node *node) {
    struct replicator_world world = {
        .keys = copies_disk_set(&node->disk),
        .find_key = disk_find_key,
        .find_payload = disk_find_key,
        .find_same = disk_find_same,
        .count = disk_count,
        .is_full = disk_is_full,
        .deletions = disk_deletions,
        .disk = node,
        .is_busy = line_is_busy,
        .line = node,
    };
    copies_world_put_view(node, &world);
    return world;
}

/* ---- a node's turn ---- */

static void node_step(struct copies_world_node *node, struct replicator_event event) {
    event.now_us = node->world->now_us;
    node->world->steps_count++;
    replicator_step(node->replicator, &event);
}

static bool node_reaches(const struct copies_world *world, uint32_t from, uint32_t to) {
    const struct copies_world_node *node = &world->nodes[to];
    bool is_silent = world->now_us >= node->silent_from_us && world->now_us < node->silent_to_us;
    return node->is_up && world->nodes[from].group == node->group && !is_silent;
}

/* A question, a lookup or a fetch leaves. A node that does not answer is waited for. */
static void node_send(struct copies_world_node *node, const struct replicator_action *action) {
    struct copies_world *world = node->world;
    bool is_lookup = action->kind == REPLICATOR_LOOK_UP;
    uint32_t to = is_lookup ? node->index : copies_world_index_of(&action->peer);
    bool is_lost = !is_lookup && prng_chance_ppm(&world->prng, world->config.loss_ppm);
    bool is_reached = is_lookup || (!is_lost && node_reaches(world, node->index, to) &&
                                    peer_key_equal(world->nodes[to].peer.key, action->peer.key));
    uint32_t index = world_take_message(world);
    if (index == NO_MESSAGE) {
        return;
    }
    struct copies_message *message = &world->messages[index];
    *message = (struct copies_message){
        .from = node->index,
        .to = to,
        .from_life = node->life,
        .to_life = world->nodes[to].life,
        .action = *action,
        .is_back = !is_reached || is_lookup,
        .err = is_reached ? ERR_OK : ERR_TIMEOUT,
    };
    world->questions_count += !is_lookup;
    if (is_lookup) {
        (void)copies_world_know(node, action->place, &message->arc);
        world_push_arrival(world, world->now_us + 2 * world->config.delay_us, index);
        return;
    }
    world_set_bytes(world, message, action->question);
    world_push_arrival(
        world, world->now_us + (is_reached ? world->config.delay_us : world->config.timeout_us), index);
}

static enum err node_remove(struct copies_world_node *node, const struct ringkey *key) {
    struct copies_world *world = node->world;
    uint32_t capture;
    if (!copies_archive_has(&world->archive, key, &capture) || !node->disk.has[capture]) {
        return ERR_NOT_FOUND;
    }
    if (world->config.keeps != NULL && world->config.keeps(world->config.context, node->index)) {
        return ERR_EXISTS;
    }
    copies_disk_remove(&node->disk, capture);
    if (world->config.removed != NULL) {
        world->config.removed(world->config.context, node->index, capture);
    }
    return ERR_OK;
}

/* The payload of a capture is its key. */
static void node_read(struct copies_world_node *node, const struct replicator_action *action) {
    enum err err = disk_read(node, &action->key);
    node_step(node, (struct replicator_event){.kind = REPLICATOR_READ,
                                              .id = action->id,
                                              .err = err,
                                              .bytes = bytes_of(action->key.bytes, RINGKEY_SIZE)});
}

static void node_scrub(struct copies_world_node *node, const struct replicator_action *action) {
    const struct copies_world *world = node->world;
    uint64_t wait_us = world->config.scrub_us > 0 ? world->config.scrub_us : UINT64_MAX;
    for (uint32_t i = 0; i < SCRUB_COUNT && world->config.scrub_us > 0; i++) {
        uint32_t capture = node->scrub_at++ % world->archive.count;
        if (node->disk.has[capture] && node->rotten[capture]) {
            node_step(node, (struct replicator_event){.kind = REPLICATOR_DAMAGED,
                                                      .keys = &world->archive.keys[capture],
                                                      .keys_count = 1});
        }
    }
    node_step(node,
              (struct replicator_event){.kind = REPLICATOR_SCRUBBED, .id = action->id, .wait_us = wait_us});
}

/* What was asked of another holder has come, or has not. */
static void node_repair(struct copies_world_node *node, const struct copies_message *message) {
    uint32_t capture = copies_archive_find(&node->world->archive, &message->action.key);
    bool is_good = message->err == ERR_OK && node->rotten[capture];
    if (is_good) {
        node->rotten[capture] = 0;
    }
    node_step(node, (struct replicator_event){.kind = REPLICATOR_REPAIRED,
                                              .id = message->action.id,
                                              .err = message->err,
                                              .is_good = is_good});
}

static void node_act(struct copies_world_node *node, const struct replicator_action *action) {
    switch (action->kind) {
    case REPLICATOR_ASK:
    case REPLICATOR_LOOK_UP:
    case REPLICATOR_FETCH:
    case REPLICATOR_REPAIR:
        node_send(node, action);
        break;
    case REPLICATOR_READ_PAYLOAD:
        node_read(node, action);
        break;
    case REPLICATOR_REMOVE:
        node_step(node, (struct replicator_event){.kind = REPLICATOR_REMOVED,
                                                  .id = action->id,
                                                  .err = node_remove(node, &action->key)});
        break;
    case REPLICATOR_SCRUB:
        node_scrub(node, action);
        break;
    case REPLICATOR_BLAME:
        break;
    }
}

static void node_turn(struct copies_world_node *node) {
    struct copies_world *world = node->world;
    struct replicator_action action;
    if (!node->is_up || node->is_idle) {
        return;
    }
    while (world->err == ERR_OK && replicator_next(node->replicator, world->now_us, &action)) {
        node_act(node, &action);
    }
    uint64_t at_us = replicator_wake_at(node->replicator, world->now_us);
    at_us = at_us > world->now_us + TURN_US ? at_us : world->now_us + TURN_US;
    if (at_us == UINT64_MAX) {
        node->wake_sequence = 0;
    } else if (node->wake_sequence == 0 || node->wake_at_us != at_us) {
        node->wake_at_us = at_us;
        node->wake_sequence = world_push(world, at_us, WORLD_WAKE, node->index);
    }
}

/* ---- answers ---- */

static enum err answer_keys(struct copies_world_node *node, const struct peer *from, bool is_offer,
                            struct bytes question, struct wire_writer *out) {
    struct copies_keys keys;
    uint8_t values[COPIES_KEYS_MAX] = {0};
    struct replicator_world world = world_of(node);
    enum err err = copies_read_keys(question, &keys, NULL);
    if (err != ERR_OK) {
        return err;
    }
    if (is_offer && keys.count > 0 && disk_is_full(node)) {
        replicator_refuse_offer(node->replicator, from, &keys);
        return ERR_NO_SPACE;
    }
    for (size_t i = 0; i < keys.count; i++) {
        struct ringkey key = copies_keys_at(&keys, i);
        values[i] = disk_find_key(node, &key) == ERR_OK;
        err = is_offer ? replicator_judge(&world, &key, &values[i]) : err;
    }
    if (is_offer) {
        replicator_hear_offer(node->replicator, from, &keys, values, node->world->now_us);
    }
    copies_put_bits(out, values, keys.count, is_offer ? 2 : 1);
    return err;
}

static enum err answer_comparison(struct copies_world_node *node, const struct peer *from,
                                  struct bytes question, struct bytes *ret_answer) {
    struct ringkey_set set = copies_disk_set(&node->disk);
    struct ring_id arc_from;
    struct ring_id arc_to;
    bool is_equal;
    const char *sentence;
    enum err err =
        replicator_answer_comparison(&set, question, node->world->memory, RECONCILE_MESSAGE_SIZE_MAX,
                                     &arc_from, &arc_to, &is_equal, ret_answer, &sentence, NULL);
    if (err == ERR_OK) {
        replicator_hear_comparison(node->replicator, from, arc_from, arc_to, is_equal, node->world->now_us);
    }
    return err;
}

static enum err answer_challenge(struct copies_world_node *node, struct bytes question,
                                 struct wire_writer *out) {
    struct copies_challenge challenge;
    struct sha256 sha256;
    uint8_t proof[COPIES_PROOF_SIZE];
    enum err err = copies_read_challenge(question, &challenge, NULL);
    err = err == ERR_OK ? disk_read(node, &challenge.key) : err;
    err = err == ERR_OK ? sha256_init(&sha256) : err;
    if (err == ERR_OK) {
        copies_prove(&sha256, &challenge, bytes_of(challenge.key.bytes, RINGKEY_SIZE), proof);
        wire_write_bytes(out, bytes_of(proof, sizeof proof));
    }
    return err;
}

static enum err node_answer(struct copies_world_node *node, const struct copies_message *message,
                            struct bytes *ret_answer) {
    const struct peer *from = &node->world->nodes[message->from].peer;
    struct bytes question = bytes_of(message->data, message->size);
    struct wire_writer writer;
    enum err err = ERR_OK;
    wire_writer_init(&writer, node->world->memory, RECONCILE_MESSAGE_SIZE_MAX);
    switch (message->action.service) {
    case REPLICATOR_COMPARE:
        return answer_comparison(node, from, question, ret_answer);
    case REPLICATOR_OFFER:
    case REPLICATOR_CONFIRM:
        err = answer_keys(node, from, message->action.service == REPLICATOR_OFFER, question, &writer);
        break;
    case REPLICATOR_PROVE:
        err = answer_challenge(node, question, &writer);
        break;
    case REPLICATOR_FOLLOW:
        err = replicator_hear_follower(node->replicator, from, node->world->now_us) ? ERR_OK : ERR_BUSY;
        break;
    case REPLICATOR_SERVICES_COUNT:
        break;
    }
    *ret_answer = wire_writer_bytes(&writer);
    return err;
}

/* ---- captures on the lines ---- */

/* When the answer arrives: one capture after the other, on the line of either side. */
static uint64_t node_give(struct copies_world_node *giver, struct copies_message *message) {
    struct copies_world *world = giver->world;
    struct copies_world_node *taker = &world->nodes[message->from];
    const struct transfer_question *fetch = &message->action.fetch;
    if (!replicator_may_copy(giver->replicator, &taker->peer, world->now_us)) {
        message->err = ERR_BUSY;
        return world->now_us + world->config.delay_us;
    }
    uint32_t count_max = fetch->size_max / (world->config.capture_size + 1);
    count_max = count_max > 0 ? count_max : 1;
    message->given_count = fetch->count < count_max ? fetch->count : count_max;
    struct copies_transfer transfer = {
        .tag = (uint32_t)(message - world->messages), .giver = giver->index, .taker = taker->index};
    uint64_t length_us = message->given_count * world->config.capture_us;
    for (uint32_t i = 0; world->config.keeps_parts && i < message->given_count; i++) {
        uint32_t capture;
        bool is_known = copies_archive_has(&world->archive, &fetch->keys[i], &capture);
        length_us -= is_known ? taker->parts_us[capture] : 0;
    }
    uint64_t end_us = world->now_us;
    enum err err = copies_lines_add(&world->lines, &transfer, length_us, world->now_us, &end_us);
    world->err = world->err != ERR_OK ? world->err : err;
    return end_us + world->config.delay_us;
}

static void node_store(struct copies_world_node *node, uint32_t capture) {
    struct copies_world *world = node->world;
    copies_disk_add(&node->disk, capture);
    node->rotten[capture] = 0;
    if (world->config.keeps_parts) {
        node->parts_us[capture] = 0;
    }
    if (world->config.stored != NULL) {
        world->config.stored(world->config.context, node->index, capture);
    }
}

static enum transfer_outcome node_take_capture(struct copies_world_node *node,
                                               const struct copies_world_node *giver,
                                               const struct ringkey *key) {
    uint32_t capture;
    if (!copies_archive_has(&node->world->archive, key, &capture) || !giver->disk.has[capture]) {
        return TRANSFER_ABSENT;
    }
    if (giver->rotten[capture]) {
        return TRANSFER_NOT_GIVEN;
    }
    if (disk_is_full(node)) {
        return TRANSFER_FAILED;
    }
    if (!node->disk.has[capture]) {
        node_store(node, capture);
        node_step(node, (struct replicator_event){.kind = REPLICATOR_DURABLE,
                                                  .bytes = {.size = node->world->config.capture_size}});
        node_step(node, (struct replicator_event){.kind = REPLICATOR_FRESH, .keys = key, .keys_count = 1});
    }
    return TRANSFER_STORED;
}

static void node_take_captures(struct copies_world_node *node, const struct copies_message *message) {
    const struct transfer_question *fetch = &message->action.fetch;
    const struct copies_world_node *giver = &node->world->nodes[message->to];
    bool is_of_another = !peer_equal(&message->action.peer, &fetch->giver);
    bool is_busy = message->err == ERR_BUSY || is_of_another;
    if (message->err == ERR_BUSY) {
        node->busy_us[message->to] = node->world->now_us + BUSY_US;
    }
    node_step(node, (struct replicator_event){
                        .kind = REPLICATOR_CLOSED,
                        .id = message->action.id,
                        .line = is_busy                  ? TRANSFER_BUSY
                                : message->err != ERR_OK ? TRANSFER_SILENT
                                                         : TRANSFER_CAME,
                        .bytes = {.size = (size_t)message->given_count * node->world->config.capture_size}});
    for (uint32_t i = 0; i < fetch->count; i++) {
        enum transfer_outcome outcome = is_busy ? TRANSFER_LATER : TRANSFER_NOT_GIVEN;
        if (message->err == ERR_OK) {
            outcome =
                i < message->given_count ? node_take_capture(node, giver, &fetch->keys[i]) : TRANSFER_LATER;
            outcome = outcome == TRANSFER_ABSENT && is_of_another ? TRANSFER_LATER : outcome;
        }
        node_step(node, (struct replicator_event){
                            .kind = REPLICATOR_SETTLED, .item = fetch->items[i], .outcome = outcome});
    }
}

/* ---- arrivals ---- */

static void world_take_question(struct copies_world *world, uint32_t index) {
    struct copies_message *message = &world->messages[index];
    struct copies_world_node *node = &world->nodes[message->to];
    uint64_t at_us = world->now_us + world->config.delay_us;
    struct bytes answer = {0};
    message->is_back = true;
    if (!node_reaches(world, message->from, message->to) || node->life != message->to_life) {
        message->err = ERR_TIMEOUT;
        at_us = world->now_us + world->config.timeout_us;
    } else if (message->action.kind == REPLICATOR_FETCH) {
        at_us = node_give(node, message);
    } else if (message->action.kind == REPLICATOR_REPAIR) {
        message->err = disk_read(node, &message->action.key);
    } else {
        message->err = node_answer(node, message, &answer);
    }
    world_set_bytes(world, message, message->err == ERR_OK ? answer : bytes_of(NULL, 0));
    world_push_arrival(world, at_us, index);
    node_turn(node);
}

static void world_take_answer(struct copies_world *world, uint32_t index) {
    struct copies_message message = world->messages[index];
    struct copies_world_node *node = &world->nodes[message.from];
    bool is_cut_off =
        message.action.kind == REPLICATOR_FETCH &&
        (world->nodes[message.to].life != message.to_life || world->nodes[message.to].group != node->group);
    message.err = message.err == ERR_OK && is_cut_off ? ERR_CLOSED : message.err;
    copies_lines_remove(&world->lines, index);
    if (node->is_up && node->life == message.from_life) {
        if (message.action.kind == REPLICATOR_FETCH) {
            node_take_captures(node, &message);
        } else if (message.action.kind == REPLICATOR_REPAIR) {
            node_repair(node, &message);
        } else {
            bool is_lookup = message.action.kind == REPLICATOR_LOOK_UP;
            node_step(node,
                      (struct replicator_event){.kind = is_lookup ? REPLICATOR_FOUND : REPLICATOR_ANSWERED,
                                                .id = message.action.id,
                                                .err = message.err,
                                                .bytes = bytes_of(message.data, message.size),
                                                .arc = &message.arc});
        }
        world_free_message(world, index);
        node_turn(node);
    } else {
        world_free_message(world, index);
    }
}

static void world_happen(struct copies_world *world, uint32_t event, uint32_t index) {
    if (event == WORLD_WAKE) {
        world->nodes[index].wake_sequence = 0;
        node_turn(&world->nodes[index]);
    } else if (event == WORLD_ARRIVAL && world->messages[index].is_back) {
        world_take_answer(world, index);
    } else if (event == WORLD_ARRIVAL) {
        world_take_question(world, index);
    } else {
        world->config.happen(world->config.context, event - WORLD_CODES, index);
    }
}

enum err copies_world_run(struct copies_world *world, uint64_t until_us, bool (*is_over)(const void *context),
                          const void *context) {
    struct heap_item item;
    const struct heap_item *next = queue_peek(&world->queue);
    while (world->err == ERR_OK && next != NULL && next->key <= until_us &&
           (is_over == NULL || !is_over(context)) && queue_pop(&world->queue, &item)) {
        if (world_counts(world, &item)) {
            world->now_us = item.key;
            world_happen(world, (uint32_t)(item.value >> EVENT_SHIFT), (uint32_t)item.value);
        }
        next = queue_peek(&world->queue);
    }
    return world->err;
}

/* ---- nodes ---- */

void copies_world_rise(struct copies_world *world, uint32_t node) {
    struct copies_world_node *riser = &world->nodes[node];
    struct replicator_config machine = world->config.machine;
    struct replicator_world around = world_of(riser);
    machine.seed = prng_u64(&world->prng);
    prng_fill(&world->prng, machine.secret, sizeof machine.secret);
    riser->is_up = true;
    riser->life++;
    memset(riser->busy_us, 0, world->config.nodes_count * sizeof *riser->busy_us);
    riser->replicator = replicator_init(riser->replicator, &machine, &around, world->now_us);
    node_step(riser, (struct replicator_event){.kind = REPLICATOR_FED, .is_good = true});
    riser->wake_at_us = world->now_us;
    riser->wake_sequence = world_push(world, world->now_us, WORLD_WAKE, node);
}

/* One capture after the other came until now. */
static void world_keep_parts(struct copies_world *world, const struct copies_message *message,
                             uint64_t done_us) {
    struct copies_world_node *taker = &world->nodes[message->from];
    for (uint32_t i = 0; i < message->given_count && done_us > 0; i++) {
        uint32_t capture;
        if (copies_archive_has(&world->archive, &message->action.fetch.keys[i], &capture)) {
            uint64_t left_us = world->config.capture_us - taker->parts_us[capture];
            uint64_t part_us = done_us < left_us ? done_us : left_us;
            taker->parts_us[capture] += part_us;
            done_us -= part_us;
        }
    }
}

/* Its taker learns of it as of any silence. If the taker is the one that fell, nobody waits. */
static void world_cut_transfer(void *context, const struct copies_transfer *transfer, uint64_t done_us) {
    struct copies_world *world = context;
    if (world->config.keeps_parts) {
        world_keep_parts(world, &world->messages[transfer->tag], done_us);
    }
    world->messages[transfer->tag].err = ERR_CLOSED;
    world_push_arrival(world, world->now_us + world->config.timeout_us, transfer->tag);
}

static void world_move_transfer(void *context, const struct copies_transfer *transfer) {
    struct copies_world *world = context;
    world_push_arrival(world, transfer->end_us + world->config.delay_us, transfer->tag);
}

void copies_world_fall(struct copies_world *world, uint32_t node) {
    struct copies_lines_calls calls = {world_cut_transfer, world_move_transfer, world};
    world->nodes[node].is_up = false;
    world->nodes[node].life++;
    world->nodes[node].wake_sequence = 0;
    copies_lines_cut(&world->lines, node, world->now_us, &calls);
}

static void world_sort(struct copies_world *world) {
    for (uint32_t i = 1; i < world->config.nodes_count; i++) {
        uint32_t moved = world->order[i];
        uint32_t at = i;
        while (at > 0 &&
               ring_id_compare(world->nodes[world->order[at - 1]].place, world->nodes[moved].place) > 0) {
            world->order[at] = world->order[at - 1];
            at--;
        }
        world->order[at] = moved;
    }
}

static void world_name(struct copies_world *world, uint32_t node) {
    struct copies_world_node *named = &world->nodes[node];
    named->place = (struct ring_id){prng_u64(&world->prng), prng_u64(&world->prng)};
    named->peer.address = address_ipv4(10, (uint8_t)(node >> 16), (uint8_t)(node >> 8), (uint8_t)node, 7070);
    prng_fill(&world->prng, named->peer.key, PEER_KEY_SIZE);
}

void copies_world_replace(struct copies_world *world, uint32_t node) {
    ASSERT(!world->nodes[node].is_up);
    world_name(world, node);
    world_sort(world);
}

void copies_world_wipe(struct copies_world *world, uint32_t node) {
    if (world->config.keeps_parts) {
        memset(world->nodes[node].parts_us, 0, world->archive.count * sizeof(uint64_t));
    }
    for (uint32_t i = 0; i < world->archive.count; i++) {
        if (world->nodes[node].disk.has[i]) {
            copies_disk_remove(&world->nodes[node].disk, i);
            if (world->config.removed != NULL) {
                world->config.removed(world->config.context, node, i);
            }
        }
    }
}

void copies_world_see(struct copies_world *world, uint32_t viewer, uint32_t node, bool is_seen) {
    world->nodes[viewer].sees[node] = is_seen;
}

void copies_world_look(struct copies_world *world, uint32_t viewer) {
    world->nodes[viewer].generation++;
    node_turn(&world->nodes[viewer]);
}

void copies_world_plant(struct copies_world *world, uint32_t node, uint32_t capture) {
    if (!world->nodes[node].disk.has[capture]) {
        node_store(&world->nodes[node], capture);
    }
}

void copies_world_rot(struct copies_world *world, uint32_t node, uint32_t capture) {
    ASSERT(world->nodes[node].disk.has[capture]);
    world->nodes[node].rotten[capture] = 1;
}

void copies_world_put(struct copies_world *world, uint32_t node, uint32_t capture) {
    copies_world_plant(world, node, capture);
    node_step(&world->nodes[node], (struct replicator_event){.kind = REPLICATOR_FRESH,
                                                             .keys = &world->archive.keys[capture],
                                                             .keys_count = 1});
    node_turn(&world->nodes[node]);
}

/* ---- the beginning ---- */

static enum err world_make_node(struct copies_world *world, uint32_t index) {
    struct copies_world_node *node = &world->nodes[index];
    node->world = world;
    node->index = index;
    node->replicator = malloc(replicator_size(&world->config.machine));
    node->sees = calloc(world->config.nodes_count, 1);
    node->parts_us = calloc(world->config.keeps_parts ? world->config.captures_count : 1, sizeof(uint64_t));
    node->busy_us = calloc(world->config.nodes_count, sizeof *node->busy_us);
    enum err err = copies_disk_init(&node->disk, &world->archive);
    node->rotten = calloc(world->archive.count, 1);
    bool has_memory = node->replicator != NULL && node->sees != NULL && node->parts_us != NULL &&
                      node->busy_us != NULL && node->rotten != NULL;
    world_name(world, index);
    world->order[index] = index;
    return has_memory ? err : ERR_MEMORY;
}

enum err copies_world_init(struct copies_world *world, const struct copies_world_config *config) {
    ASSERT(config->nodes_count < 1 << 24 && config->copies <= CHARTER_REPLICAS_MAX);
    *world = (struct copies_world){.config = *config, .free_message = NO_MESSAGE};
    prng_init_stream(&world->prng, config->seed, 29);
    queue_init(&world->queue, (size_t)MESSAGES_MAX, world_counts, world);
    world->nodes = calloc(config->nodes_count, sizeof *world->nodes);
    world->order = calloc(config->nodes_count, sizeof *world->order);
    world->row = calloc(config->nodes_count, sizeof *world->row);
    world->row_sites = calloc(config->nodes_count, sizeof *world->row_sites);
    world->memory = malloc(RECONCILE_MESSAGE_SIZE_MAX);
    world->err = copies_archive_init(&world->archive, config->captures_count, &world->prng);
    enum err err = copies_lines_init(&world->lines, config->nodes_count);
    world->err = world->err != ERR_OK ? world->err : err;
    if (world->nodes == NULL || world->order == NULL || world->row == NULL || world->row_sites == NULL ||
        world->memory == NULL) {
        world->err = ERR_MEMORY;
    }
    for (uint32_t i = 0; i < config->nodes_count && world->err == ERR_OK; i++) {
        world->err = world_make_node(world, i);
    }
    if (world->err == ERR_OK) {
        world_sort(world);
    }
    return world->err;
}

void copies_world_done(struct copies_world *world) {
    for (uint32_t i = 0; world->nodes != NULL && i < world->config.nodes_count; i++) {
        copies_disk_done(&world->nodes[i].disk);
        free(world->nodes[i].replicator);
        free(world->nodes[i].sees);
        free(world->nodes[i].parts_us);
        free(world->nodes[i].busy_us);
        free(world->nodes[i].rotten);
    }
    for (uint32_t i = 0; i < world->messages_count; i++) {
        free(world->messages[i].data);
    }
    queue_done(&world->queue);
    copies_lines_done(&world->lines);
    copies_archive_done(&world->archive);
    free(world->messages);
    free(world->nodes);
    free(world->order);
    free(world->row);
    free(world->row_sites);
    free(world->memory);
}

void copies_world_digest(const struct copies_world *world, struct digest *digest) {
    digest_u64(digest, world->steps_count);
    digest_u64(digest, world->questions_count);
    digest_u64(digest, world->now_us);
    digest_u64(digest, world->queue.sequence_last);
    for (uint32_t i = 0; i < world->config.nodes_count; i++) {
        digest_u64(digest, world->nodes[i].disk.count);
    }
}
