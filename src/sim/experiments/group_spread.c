#include "sim/experiments/group_spread.h"

#include <stdlib.h>

#include "base/step.h"
#include "protocol/mirror/mirror.h"
#include "sim/world/queue.h"

static const uint64_t SECOND_US = 1000000;
static const uint64_t END_US = UINT64_C(28) * 24 * 3600 * 1000000;

/* What is on its way over a link to the replica that the link is of. */
struct lane {
    uint64_t batch;
    uint64_t size;
    uint64_t batch_event; /* sequence numbers in the queue; 0: none */
    uint64_t notice_event;
};

struct replica {
    struct mirror *mirror;
    struct lane *lanes; /* [link] */
    uint64_t wake_event;
    uint64_t wake_at_us;
    uint64_t held_at_us; /* UINT64_MAX: it has it not */
    uint64_t up_free_us; /* until then its line is taken */
    uint64_t down_free_us;
    uint64_t received_size;
    uint64_t sent_size;
};

struct spread {
    const struct group_union *whole;
    uint64_t now_us;
    struct queue queue;
    struct replica *replicas;
    uint64_t update_size;
    uint64_t gather_us;
    uint8_t statement_memory[VERSION_SIZE_MAX];
    struct bytes statement;
    uint32_t held_count;
    enum err err;
};

/* ---- events ---- */

enum happening { WAKE, NOTICE, BATCH };

static uint64_t spread_pack(uint32_t replica, uint32_t link, enum happening happening) {
    return (uint64_t)replica << 32 | link << 2 | happening;
}

static uint32_t replica_of(uint64_t value) {
    return (uint32_t)(value >> 32);
}

static uint32_t spread_link_of(uint64_t value) {
    return (uint32_t)value >> 2;
}

/* If the number of the event is kept that counts. */
static uint64_t *event_of(const struct spread *spread, uint64_t value) {
    struct replica *replica = &spread->replicas[replica_of(value)];
    switch ((enum happening)(value & 3)) {
    case WAKE:
        return &replica->wake_event;
    case NOTICE:
        return &replica->lanes[spread_link_of(value)].notice_event;
    case BATCH:
        break;
    }
    return &replica->lanes[spread_link_of(value)].batch_event;
}

static bool spread_counts(const void *context, const struct heap_item *item) {
    return *event_of(context, item->value) == item->tie;
}

static void spread_push(struct spread *spread, uint64_t at_us, uint64_t value) {
    enum err err = queue_push(&spread->queue, at_us, value, event_of(spread, value));
    spread->err = spread->err != ERR_OK ? spread->err : err;
}

/* ---- replicas and their links ---- */

static bool believe(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                    const uint8_t signature[VERSION_SIGNATURE_SIZE]) {
    (void)key;
    (void)context;
    (void)message;
    (void)signature;
    return true; /* nobody forges here */
}

static void spread_sign(const void *signer, const char *context, struct bytes message,
                        uint8_t out[VERSION_SIGNATURE_SIZE]) {
    (void)signer;
    (void)context;
    (void)message;
    memset(out, 1, VERSION_SIGNATURE_SIZE);
}

static struct peer spread_peer_of(uint32_t replica) {
    struct peer peer = {.address = address_ipv4(10, (uint8_t)(replica >> 16), (uint8_t)(replica >> 8),
                                                (uint8_t)replica, 7070)};
    memcpy(peer.key, &replica, sizeof replica);
    return peer;
}

static uint32_t spread_index_of(const struct peer *peer) {
    uint32_t replica;
    memcpy(&replica, peer->key, sizeof replica);
    return replica;
}

static uint32_t find_link(const struct spread *spread, uint32_t from, uint32_t to) {
    const struct group_union_replica *replica = &spread->whole->replicas[from];
    uint32_t link = 0;
    while (replica->links[link].to != to) {
        link++;
        ASSERT(link < replica->links_count);
    }
    return link;
}

/* ---- the network ---- */

static void account(struct spread *spread, uint32_t from, uint32_t to, uint64_t size) {
    spread->replicas[from].sent_size += size;
    spread->replicas[to].received_size += size;
}

/* It comes after what the line has to carry already. When it is through. */
static uint64_t occupy(uint64_t *free_us, uint64_t line, uint64_t size, uint64_t now_us) {
    *free_us = (*free_us > now_us ? *free_us : now_us) + size * SECOND_US / line;
    return *free_us;
}

static void spread_fetch(struct spread *spread, uint32_t to, const struct mirror_task *task) {
    const struct group_union_replica *places = spread->whole->replicas;
    uint32_t from = spread_index_of(&task->source);
    uint32_t index = find_link(spread, to, from);
    const struct group_union_link *link = &places[to].links[index];
    struct lane *lane = &spread->replicas[to].lanes[index];
    uint64_t now_us = spread->now_us;
    uint64_t path_us = now_us + task->size * SECOND_US / link->bandwidth;
    uint64_t up_us = occupy(&spread->replicas[from].up_free_us, places[from].line, task->size, now_us);
    uint64_t down_us = occupy(&spread->replicas[to].down_free_us, places[to].line, task->size, now_us);
    uint64_t end_us = up_us > down_us ? up_us : down_us;
    end_us = end_us > path_us ? end_us : path_us;
    lane->batch = task->batch;
    lane->size = task->size;
    spread_push(spread, end_us + link->delay_us, spread_pack(to, index, BATCH));
    account(spread, from, to, task->size);
}

static void spread_tell(struct spread *spread, uint32_t from, const struct mirror_task *task) {
    uint32_t to = spread_index_of(&task->source);
    if (spread->whole->replicas[to].is_dead) {
        mirror_told(spread->replicas[from].mirror, task->source.key, ERR_TIMEOUT, spread->now_us);
        return;
    }
    uint32_t link = find_link(spread, to, from);
    spread_push(spread, spread->now_us + spread->whole->replicas[to].links[link].delay_us,
                spread_pack(to, link, NOTICE));
    account(spread, from, to, spread->statement.size);
}

/* Answers come at once: against the ten minutes between two of them a round trip is nothing. */
static void spread_ask(struct spread *spread, uint32_t asker, const struct mirror_task *task) {
    uint32_t source = spread_index_of(&task->source);
    struct mirror *mirror = spread->replicas[asker].mirror;
    bool has_it = spread->replicas[source].held_at_us != UINT64_MAX;
    if (spread->whole->replicas[source].is_dead) {
        mirror_answered(mirror, task->source.key, ERR_TIMEOUT, spread->now_us);
    } else if (!has_it) {
        mirror_answered(mirror, task->source.key, ERR_NOT_FOUND, spread->now_us);
    } else if (spread->replicas[asker].held_at_us != UINT64_MAX) {
        mirror_answered(mirror, task->source.key, ERR_OK, spread->now_us);
    } else {
        mirror_hear(mirror, task->source.key, spread->statement, spread->now_us);
        account(spread, source, asker, spread->statement.size);
    }
}

/* ---- replicas ---- */

static void apply(struct spread *spread, uint32_t index) {
    struct replica *replica = &spread->replicas[index];
    mirror_applied(replica->mirror, ERR_OK, spread->now_us);
    replica->held_at_us = spread->now_us;
    spread->held_count++;
}

static void spread_run_task(struct spread *spread, uint32_t index, const struct mirror_task *task) {
    struct replica *replica = &spread->replicas[index];
    switch (task->kind) {
    case MIRROR_ASK:
        spread_ask(spread, index, task);
        break;
    case MIRROR_BEGIN:
        mirror_set_wanted(replica->mirror, spread->update_size, true);
        break;
    case MIRROR_LOOK: /* nobody offers a part */
        mirror_looked(replica->mirror, task->source.key, spread->now_us);
        break;
    case MIRROR_FETCH:
        spread_fetch(spread, index, task);
        break;
    case MIRROR_CANCEL:
        replica->lanes[find_link(spread, index, spread_index_of(&task->source))].batch_event = 0;
        break;
    case MIRROR_APPLY:
        apply(spread, index);
        break;
    case MIRROR_NOTIFY:
        spread_tell(spread, index, task);
        break;
    }
}

/* Whoever has it and has told everybody only asks from time to time: it is left in peace. */
static void run_replica(struct spread *spread, uint32_t index) {
    struct replica *replica = &spread->replicas[index];
    struct mirror_task task;
    while (mirror_next(replica->mirror, spread->now_us, &task)) {
        spread_run_task(spread, index, &task);
    }
    if (replica->held_at_us != UINT64_MAX) {
        replica->wake_event = 0;
        return;
    }
    uint64_t at_us = mirror_wake_at(replica->mirror, spread->now_us);
    if (at_us != STEP_NEVER_US && (at_us != replica->wake_at_us || replica->wake_event == 0)) {
        spread_push(spread, at_us, spread_pack(index, 0, WAKE));
        replica->wake_at_us = at_us;
    }
}

static void spread_happen(struct spread *spread, const struct heap_item *item) {
    uint32_t index = replica_of(item->value);
    struct replica *replica = &spread->replicas[index];
    if (!spread_counts(spread, item)) {
        return;
    }
    *event_of(spread, item->value) = 0;
    spread->now_us = item->key;
    struct lane *lane = &replica->lanes[spread_link_of(item->value)];
    struct peer source = spread_peer_of(spread->whole->replicas[index].links[spread_link_of(item->value)].to);
    switch ((enum happening)(item->value & 3)) {
    case WAKE:
        break;
    case NOTICE:
        mirror_hear(replica->mirror, source.key, spread->statement, spread->now_us);
        break;
    case BATCH:
        mirror_fetched(replica->mirror, lane->batch, source.key, ERR_OK, lane->size, spread->now_us);
        break;
    }
    run_replica(spread, index);
}

/* ---- life ---- */

static void spread_publish(struct spread *spread) {
    struct replica *origin = &spread->replicas[spread->whole->origin];
    struct version version = {.name = "everything", .number = 1};
    version.totals.content_size = spread->update_size;
    version.root.size = 1;
    version_sign(&version, spread_sign, NULL);
    spread->statement = version_write(&version, spread->statement_memory);
    mirror_publish(origin->mirror, &version, 0);
    origin->held_at_us = 0;
    spread->held_count = 1;
}

static enum err start_replica(struct spread *spread, uint32_t index) {
    const struct group_union_replica *place = &spread->whole->replicas[index];
    struct replica *replica = &spread->replicas[index];
    struct mirror_source sources[GROUP_UNION_LINKS_MAX];
    struct mirror_config config = {
        .name = "everything",
        .verify = believe,
        .is_master = index == spread->whole->origin,
        .sources_max = (uint16_t)place->links_count,
        .batches_max = (uint16_t)(2 * place->links_count), /* one of each is open, some wait */
        .gather_us = spread->gather_us,
        .seed = spread->whole->config.seed + index,
    };
    replica->held_at_us = UINT64_MAX;
    replica->lanes = calloc(place->links_count + 1, sizeof *replica->lanes);
    void *memory = malloc(mirror_size(&config));
    if (replica->lanes == NULL || memory == NULL) {
        free(memory);
        return ERR_MEMORY;
    }
    replica->mirror = mirror_init(memory, &config, 0);
    for (uint32_t i = 0; i < place->links_count; i++) {
        sources[i] = (struct mirror_source){.peer = spread_peer_of(place->links[i].to),
                                            .bandwidth = place->links[i].bandwidth,
                                            .delay_us = place->links[i].delay_us};
    }
    mirror_set_sources(replica->mirror, sources, place->links_count, 0);
    return ERR_OK;
}

/* All have asked each other before the update comes into the world. */
static enum err spread_start(struct spread *spread) {
    uint32_t count = spread->whole->config.replicas_count;
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < count && err == ERR_OK; i++) {
        err = start_replica(spread, i);
    }
    for (uint32_t i = 0; i < count && err == ERR_OK; i++) {
        if (!spread->whole->replicas[i].is_dead) {
            run_replica(spread, i);
        }
    }
    if (err == ERR_OK) {
        spread_publish(spread);
        run_replica(spread, spread->whole->origin);
    }
    return err != ERR_OK ? err : spread->err;
}

static void spread_finish(struct spread *spread) {
    for (uint32_t i = 0; spread->replicas != NULL && i < spread->whole->config.replicas_count; i++) {
        free(spread->replicas[i].mirror);
        free(spread->replicas[i].lanes);
    }
    queue_done(&spread->queue);
    free(spread->replicas);
}

/* ---- results ---- */

static int compare_times(const void *a, const void *b) {
    uint64_t one = *(const uint64_t *)a;
    uint64_t other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

static void add_replica(const struct spread *spread, uint32_t index, struct group_spread_result *result) {
    const struct replica *replica = &spread->replicas[index];
    result->received_size += replica->received_size;
    if (replica->received_size > result->received_size_max) {
        result->received_size_max = replica->received_size;
    }
    if (replica->sent_size > result->sent_size_max) {
        result->sent_size_max = replica->sent_size;
    }
    if (replica->held_at_us == UINT64_MAX) {
        return;
    }
    if (replica->held_at_us > result->all_us) {
        result->all_us = replica->held_at_us;
    }
    if (!spread->whole->replicas[index].has_modem && replica->held_at_us > result->no_modem_us) {
        result->no_modem_us = replica->held_at_us;
    }
}

static void spread_judge(const struct spread *spread, uint64_t *times_us, struct digest *digest,
                         struct group_spread_result *result) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < spread->whole->config.replicas_count; i++) {
        if (!spread->whole->replicas[i].is_dead) {
            add_replica(spread, i, result);
            times_us[count++] = spread->replicas[i].held_at_us;
            digest_u64(digest, spread->replicas[i].held_at_us);
            digest_u64(digest, spread->replicas[i].sent_size);
        }
    }
    qsort(times_us, count, sizeof *times_us, compare_times);
    result->alive_count = count;
    result->reached_count = spread->held_count;
    result->half_us = times_us[(count + 1) / 2 - 1];
    result->most_us = times_us[count - count / 100 - 1];
    result->origin_sent_size = spread->replicas[spread->whole->origin].sent_size;
}

static uint32_t count_reachable(const struct group_union *whole) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < whole->config.replicas_count; i++) {
        count += whole->hops[i] != UINT32_MAX;
    }
    return count;
}

static enum err spread_run(struct spread *spread, uint32_t reachable_count) {
    struct heap_item item;
    while (spread->held_count < reachable_count && spread->err == ERR_OK) {
        if (!queue_pop(&spread->queue, &item) || item.key > END_US) {
            return ERR_MISMATCH;
        }
        spread_happen(spread, &item);
    }
    return spread->err;
}

enum err group_spread_run(struct group_union *whole, uint64_t update_size, uint64_t gather_us,
                          struct digest *digest, struct group_spread_result *ret_result) {
    uint32_t count = whole->config.replicas_count;
    struct spread spread = {.whole = whole, .update_size = update_size, .gather_us = gather_us};
    struct group_spread_result result = {0};
    queue_init(&spread.queue, (size_t)8 * count * GROUP_UNION_LINKS_MAX, spread_counts, &spread);
    spread.replicas = calloc(count, sizeof *spread.replicas);
    uint64_t *times_us = calloc(count, sizeof *times_us);
    enum err err = ERR_MEMORY;
    if (spread.replicas != NULL && times_us != NULL) {
        group_union_walk(whole, whole->origin);
        err = spread_start(&spread);
        err = err != ERR_OK ? err : spread_run(&spread, count_reachable(whole));
    }
    if (err == ERR_OK) {
        spread_judge(&spread, times_us, digest, &result);
        *ret_result = result;
    }
    free(times_us);
    spread_finish(&spread);
    return err;
}
