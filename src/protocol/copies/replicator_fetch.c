/*
 * What is wanted of others (protocol/copies/transfer.h), and what came of it. An answer is taken apart,
 * checked and stored by the driver; the keys say when a capture is here.
 *
 * A key does not say which URL it is of, so a node learns only from the capture itself that it is deleted. It
 * remembers the key then: as long as another node, which has not heard of the deletion, offers it or shows it
 * in comparisons, it is not fetched again. What falls out of the table is fetched once more, and refused
 * again.
 */
#include "protocol/copies/replicator_state.h"

/* ---- keys that are known for something ---- */

static uint64_t fetch_shorten(const struct ringkey *key) {
    uint64_t digest;
    uint64_t place;
    uint64_t time;
    memcpy(&digest, ringkey_digest(key), sizeof digest);
    memcpy(&place, key->bytes, sizeof place);
    memcpy(&time, key->bytes + RINGKEY_POSITION_SIZE, sizeof time);
    return (digest ^ place * UINT64_C(0x9e3779b97f4a7c15) ^ time * UINT64_C(0xc2b2ae3d27d4eb4f)) | 1;
}

static uint64_t *fetch_came_place(const struct replicator *replicator, uint64_t value) {
    return &replicator->came[value / 2 % replicator->config.came_count];
}

bool replicator_came(const struct replicator *replicator, const struct ringkey *key) {
    uint64_t value = fetch_shorten(key);
    return *fetch_came_place(replicator, value) == value;
}

/* If something else is deleted now, or is no longer, what was seen before says nothing. */
static uint64_t *fetch_deleted_place(struct replicator *replicator, uint64_t value) {
    uint64_t generation = replicator->world.deletions(replicator->world.disk);
    if (generation != replicator->deleted_generation) {
        replicator->deleted_generation = generation;
        memset(replicator->deleted, 0, replicator->config.deleted_count * sizeof replicator->deleted[0]);
    }
    return &replicator->deleted[value / 2 % replicator->config.deleted_count];
}

bool replicator_is_deleted(struct replicator *replicator, const struct ringkey *key) {
    uint64_t value = fetch_shorten(key);
    return *fetch_deleted_place(replicator, value) == value;
}

/* ---- what is wanted ---- */

bool replicator_want(struct replicator *replicator, enum transfer_order_lane lane, const struct ringkey *key,
                     const struct peer *peer) {
    return !replicator_is_deleted(replicator, key) && transfer_want(replicator->transfer, lane, key, peer);
}

size_t replicator_wanted_count(const struct replicator *replicator) {
    return transfer_status(replicator->transfer).wanted_count;
}

bool replicator_look_at_disk(struct replicator *replicator) {
    replicator->is_full = replicator->world.is_full(replicator->world.disk);
    return replicator->is_full;
}

/* ---- questions ---- */

/* Another holder of the position, which may have it by now. */
static bool fetch_find_other(const struct replicator_world *world, const struct transfer_question *question,
                             struct peer *ret_peer) {
    struct holders_arc arc;
    if (!world->know(world->ring, replicator_place(&question->keys[0]), &arc)) {
        return false;
    }
    for (size_t i = 0; i < arc.count; i++) {
        bool is_other = (int)i != arc.self_rank && !peer_equal(&arc.peers[i], &question->giver);
        if (is_other && !world->is_busy(world->line, &arc.peers[i])) {
            *ret_peer = arc.peers[i];
            return true;
        }
    }
    return false;
}

/* If the node that has it is busy giving to another one, which takes long on slow lines, other holders are
 * asked; what they lack waits for the first. */
static bool fetch_choose_giver(const struct replicator *replicator, const struct transfer_question *question,
                               struct peer *ret_peer) {
    const struct replicator_world *world = &replicator->world;
    *ret_peer = question->giver;
    if (!world->is_busy(world->line, ret_peer)) {
        return true;
    }
    return replicator->config.has_slow_lines && fetch_find_other(world, question, ret_peer);
}

static void fetch_doubt(struct replicator *replicator, const struct ringkey *key, const struct peer *giver) {
    copy_plan_doubt(replicator->copy_plan, replicator_place(key), giver);
    full_sync_doubt(&replicator->full_sync);
}

static void fetch_settle(struct replicator *replicator, uint32_t item, enum transfer_outcome outcome,
                         uint64_t now_us) {
    struct ringkey key = *transfer_key(replicator->transfer, item);
    struct peer giver = *transfer_giver(replicator->transfer, item);
    (void)transfer_settle(replicator->transfer, item, outcome, now_us);
    /* What did not come must be read from other nodes until a comparison finds it. */
    if (outcome != TRANSFER_STORED && outcome != TRANSFER_LATER && outcome != TRANSFER_TOO_LARGE) {
        fetch_doubt(replicator, &key, &giver);
    }
}

/* It is not asked. */
static void fetch_close(struct replicator *replicator, const struct transfer_question *question,
                        enum transfer_line line, enum transfer_outcome outcome, uint64_t now_us) {
    transfer_answered(replicator->transfer, question->id, line, 0, now_us);
    for (uint32_t i = 0; i < question->count; i++) {
        fetch_settle(replicator, question->items[i], outcome, now_us);
    }
}

static bool fetch_has_key(void *context, const struct ringkey *key) {
    const struct replicator_world *world = context;
    return world->find_key(world->disk, key) == ERR_OK;
}

static bool fetch_has_payload(void *context, const struct ringkey *key) {
    const struct replicator_world *world = context;
    return world->find_payload(world->disk, key) == ERR_OK;
}

/* What its primary gives is known to the primary. What came from anybody else may be unknown to it: whoever
 * gave it is relieved of it now, and may have taken us for the primary (replicator_take_fresh()). A node that
 * keeps everything asks any holder, and shows what it has in its rounds. */
static bool fetch_is_of_primary(const struct replicator *replicator, const struct ringkey *key,
                                const struct peer *giver, struct holders_arc *arc) {
    const struct replicator_world *world = &replicator->world;
    struct ring_id place = replicator_place(key);
    bool is_known = arc->count > 0 && ring_id_is_owned(arc->from, place, arc->to);
    if (!is_known && !world->know(world->ring, place, arc)) {
        arc->count = 0;
    }
    return replicator->config.keeps_everything || (arc->count > 0 && peer_same_key(&arc->peers[0], giver));
}

static void fetch_note_origin(struct replicator *replicator, const struct transfer_question *question) {
    struct holders_arc arc = {.count = 0};
    for (uint32_t i = 0; i < question->count; i++) {
        uint64_t value = fetch_shorten(&question->keys[i]);
        uint64_t *place = fetch_came_place(replicator, value);
        if (fetch_is_of_primary(replicator, &question->keys[i], &question->giver, &arc)) {
            *place = value;
        } else if (*place == value) {
            *place = 0;
        }
    }
}

bool replicator_may_take(const struct replicator *replicator) {
    const struct replicator_world *world = &replicator->world;
    return world->may_take == NULL || world->may_take(world->disk);
}

bool replicator_next_fetch(struct replicator *replicator, uint64_t now_us, struct replicator_action *action) {
    struct transfer_set set = {fetch_has_key, fetch_has_payload, &replicator->world};
    if (!replicator_may_take(replicator)) {
        return false;
    }
    bool is_full = replicator_wanted_count(replicator) > 0 && replicator_look_at_disk(replicator);
    *action = (struct replicator_action){.kind = REPLICATOR_FETCH};
    while (transfer_next(replicator->transfer, &set, now_us, &action->fetch)) {
        const struct transfer_question *question = &action->fetch;
        if (is_full) { /* what was offered stays with the others, and is read from them */
            fetch_close(replicator, question, TRANSFER_CAME, TRANSFER_FAILED, now_us);
        } else if (!fetch_choose_giver(replicator, question, &action->peer)) {
            fetch_close(replicator, question, TRANSFER_BUSY, TRANSFER_LATER, now_us);
        } else {
            fetch_note_origin(replicator, question);
            action->id = question->id;
            replicator->counts.fetches_count++;
            return true;
        }
    }
    return false;
}

void replicator_fetch_take(struct replicator *replicator, const struct replicator_event *event) {
    switch (event->kind) {
    case REPLICATOR_CLOSED:
        transfer_answered(replicator->transfer, (uint32_t)event->id, event->line, event->bytes.size,
                          event->now_us);
        break;
    case REPLICATOR_DURABLE:
        replicator->counts.fetched_count++;
        replicator->counts.fetched_about_count += event->is_about;
        replicator->counts.fetched_size += event->is_about ? 0 : event->bytes.size;
        copy_plan_moved(replicator->copy_plan, 1, event->now_us);
        break;
    case REPLICATOR_DELETED: { /* it need not come any more, from anybody */
        uint64_t value = fetch_shorten(transfer_key(replicator->transfer, event->item));
        *fetch_deleted_place(replicator, value) = value;
        fetch_settle(replicator, event->item, TRANSFER_STORED, event->now_us);
        break;
    }
    default:
        fetch_settle(replicator, event->item, event->outcome, event->now_us);
        break;
    }
}

void replicator_put_keys(struct replicator *replicator, const struct ringkey *keys, size_t count,
                         struct replicator_action *action) {
    struct wire_writer writer;
    wire_writer_init(&writer, replicator->message, WIRE_VARINT_SIZE_MAX + count * RINGKEY_SIZE);
    copies_put_keys(&writer, keys, count);
    action->question = wire_writer_bytes(&writer);
}
