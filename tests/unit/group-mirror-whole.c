/*
 * All of mirroring but disks and sockets: six replicas on a circle with a chord, lines of different speed
 * that break, three versions of a collection. Who drives a real replica does what `run_tasks` does here.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/prng.h"
#include "protocol/mirror/manifest_compare.h"
#include "protocol/mirror/manifest_writer.h"
#include "protocol/mirror/mirror.h"
#include "unit.h"

enum {
    REPLICAS_COUNT = 6,
    FILES_COUNT = 20000,
    DIRECTORIES_COUNT = 100,
    FILE_SIZE = 5000,
    CHANGED_COUNT = 200, /* files in each version */
    ITEMS_MAX = 40000,
    BATCHES_MAX = 8,
    EVENTS_MAX = 256,
    DELAY_US = 20000,
};
static const uint64_t SECOND_US = 1000000;

/* A list of what is known by its digest. */
struct items {
    size_t count;
    struct manifest_ref refs[ITEMS_MAX];
};

struct batch {
    uint64_t number; /* 0: free */
    struct items items;
};

struct replica {
    struct mirror *mirror;
    struct map has;   /* digests of nodes and chunks */
    struct map asked; /* of the version that has begun */
    bool has_manifest;
    struct items wanted;
    struct batch batches[BATCHES_MAX];
    uint64_t received_size;
    uint64_t twice_size; /* of it, what was there already */
};

struct happening {
    uint64_t at_us;
    unsigned to;
    unsigned from;
    uint64_t batch; /* 0: a statement */
    enum err err;
    size_t count; /* of the items of the batch, that came */
    struct version version;
};

struct world {
    uint64_t now_us;
    struct prng prng;
    struct arena arena;
    struct map nodes; /* digest -> struct bytes */
    struct manifest_writer *writer;
    struct manifest_reader *readers[2];
    struct replica replicas[REPLICAS_COUNT];
    struct happening events[EVENTS_MAX];
    size_t events_count;
    uint32_t broken_ppm;
};

/* ---- keys, lines, stores ---- */

static bool believe(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                    const uint8_t signature[VERSION_SIGNATURE_SIZE]) {
    (void)context;
    return key[0] == 1 && message.size > 0 && signature[0] == 1; /* signatures are tested elsewhere */
}

static void sign(const void *signer, const char *context, struct bytes message,
                 uint8_t out[VERSION_SIGNATURE_SIZE]) {
    (void)signer;
    (void)context;
    ASSERT(message.size > 0);
    memset(out, 1, VERSION_SIGNATURE_SIZE);
}

static unsigned index_of(const struct peer *peer) {
    return peer->key[0] - 1U;
}

/* 1 to 6 MB a second. */
static uint64_t rate_of(unsigned one, unsigned other) {
    return (uint64_t)(1 + (one + other) % REPLICAS_COUNT) << 20;
}

static void note(struct map *set, const struct manifest_ref *ref) {
    assert_int_equal(map_reserve(set, set->count + 1), ERR_OK);
    assert_non_null(map_put(set, bytes_of(ref->digest, SHA256_SIZE)));
}

static bool contains(const struct map *set, const struct manifest_ref *ref) {
    return map_get(set, bytes_of(ref->digest, SHA256_SIZE)) != NULL;
}

static struct bytes node_of(const struct world *world, const struct manifest_ref *ref) {
    const struct bytes *node = map_get(&world->nodes, bytes_of(ref->digest, SHA256_SIZE));
    assert_non_null(node);
    return *node;
}

static enum err get(void *context, const struct manifest_ref *ref, uint8_t *memory) {
    struct bytes node = node_of(context, ref);
    memcpy(memory, node.data, node.size);
    return ERR_OK;
}

/* ---- the publisher, replica 0 ---- */

static enum err put(void *context, const struct manifest_ref *ref, struct bytes node) {
    struct world *world = context;
    assert_int_equal(map_reserve(&world->nodes, world->nodes.count + 1), ERR_OK);
    struct bytes *place = map_put(&world->nodes, bytes_of(ref->digest, SHA256_SIZE));
    assert_non_null(place);
    *place = arena_copy(&world->arena, node);
    assert_non_null(place->data);
    note(&world->replicas[0].has, ref);
    return ERR_OK;
}

/* Of each version, other files differ from the first one. */
static void add_file(struct world *world, uint32_t i, uint64_t number) {
    char path[32];
    struct prng prng;
    int size = snprintf(path, sizeof path, "d%03u/f%05u", i / (FILES_COUNT / DIRECTORIES_COUNT), i);
    struct manifest_entry entry = {.kind = MANIFEST_FILE, .mode = 0644, .size = FILE_SIZE};
    struct manifest_ref whole = {.size = FILE_SIZE};
    bool is_changed = number > 1 && i % (FILES_COUNT / CHANGED_COUNT) == number;
    entry.path = bytes_of(path, (size_t)size);
    prng_init(&prng, is_changed ? number * FILES_COUNT + i : i);
    prng_fill(&prng, entry.digest, SHA256_SIZE);
    memcpy(whole.digest, entry.digest, SHA256_SIZE);
    note(&world->replicas[0].has, &whole);
    assert_int_equal(manifest_writer_add(world->writer, &entry), ERR_OK);
}

static void publish(struct world *world, uint64_t number) {
    struct version version = {.publisher = {1}, .name = "films", .number = number};
    manifest_writer_start(world->writer, (struct manifest_sink){world, put});
    for (uint32_t i = 0; i < FILES_COUNT; i++) {
        if (i % (FILES_COUNT / DIRECTORIES_COUNT) == 0) {
            char path[16];
            int size = snprintf(path, sizeof path, "d%03u", i / (FILES_COUNT / DIRECTORIES_COUNT));
            struct manifest_entry directory = {.kind = MANIFEST_DIRECTORY, .mode = 0755};
            directory.path = bytes_of(path, (size_t)size);
            assert_int_equal(manifest_writer_add(world->writer, &directory), ERR_OK);
        }
        add_file(world, i, number);
    }
    assert_int_equal(manifest_writer_finish(world->writer, &version.root, &version.totals), ERR_OK);
    version_sign(&version, sign, NULL);
    mirror_publish(world->replicas[0].mirror, &version, world->now_us);
}

/* ---- what is wanted ---- */

static void want(struct replica *replica, const struct manifest_ref *ref) {
    if (!contains(&replica->has, ref) && !contains(&replica->asked, ref)) {
        assert_true(replica->wanted.count < ITEMS_MAX);
        replica->wanted.refs[replica->wanted.count++] = *ref;
        note(&replica->asked, ref);
    }
}

/* Down from a node that is here: what is below it, and is not. */
static void want_below(const struct world *world, struct replica *replica, const struct manifest_ref *ref) {
    struct wire_reader reader;
    struct manifest_ref child;
    wire_reader_init(&reader, node_of(world, ref));
    if (manifest_read_header(&reader) == 0) {
        return;
    }
    while (wire_reader_left(&reader) > 0) {
        manifest_read_ref(&reader, &child);
        want(replica, &child);
        if (contains(&replica->has, &child)) {
            want_below(world, replica, &child);
        }
    }
}

static void want_content(struct world *world, struct replica *replica) {
    const struct version *held = mirror_held(replica->mirror);
    struct manifest_source source = {world, get};
    struct manifest_compare compare;
    struct manifest_change change;
    struct manifest_ref chunk;
    manifest_reader_start(world->readers[1], source, &mirror_target(replica->mirror)->root);
    if (held != NULL) {
        manifest_reader_start(world->readers[0], source, &held->root);
    }
    manifest_compare_init(&compare, held != NULL ? world->readers[0] : NULL, world->readers[1]);
    do {
        assert_int_equal(manifest_compare_next(&compare, &change, NULL), ERR_OK);
        while ((change.kind == MANIFEST_ADDED || change.kind == MANIFEST_CHANGED) &&
               manifest_reader_next_chunk(world->readers[1], &chunk) == ERR_OK && chunk.size > 0) {
            want(replica, &chunk);
        }
    } while (change.kind != MANIFEST_FINISHED);
    assert_memory_equal(manifest_reader_totals(world->readers[1]), &mirror_target(replica->mirror)->totals,
                        sizeof(struct manifest_totals));
}

static size_t items_open(const struct replica *replica) {
    size_t count = 0;
    for (size_t i = 0; i < BATCHES_MAX; i++) {
        count += replica->batches[i].number != 0 ? replica->batches[i].items.count : 0;
    }
    return count;
}

static void tell_wanted(struct world *world, struct replica *replica) {
    uint64_t size = 0;
    if (mirror_phase(replica->mirror) != MIRROR_FETCHING) {
        return;
    }
    if (!replica->has_manifest && replica->wanted.count == 0 && items_open(replica) == 0) {
        replica->has_manifest = true;
        want_content(world, replica);
    }
    for (size_t i = 0; i < replica->wanted.count; i++) {
        size += replica->wanted.refs[i].size;
    }
    mirror_set_wanted(replica->mirror, size, replica->has_manifest);
}

static void begin(struct world *world, struct replica *replica) {
    const struct manifest_ref *root = &mirror_target(replica->mirror)->root;
    map_clear(&replica->asked);
    replica->has_manifest = false;
    replica->wanted.count = 0;
    for (size_t i = 0; i < BATCHES_MAX; i++) {
        replica->batches[i].number = 0;
    }
    want(replica, root);
    if (contains(&replica->has, root)) {
        want_below(world, replica, root);
    }
}

/* ---- transfers ---- */

static struct batch *find_batch(struct replica *replica, uint64_t number) {
    for (size_t i = 0; i < BATCHES_MAX; i++) {
        if (replica->batches[i].number == number) {
            return &replica->batches[i];
        }
    }
    return NULL;
}

static struct batch *take_batch(struct replica *replica, const struct mirror_task *task) {
    struct batch *batch = find_batch(replica, 0);
    uint64_t size = 0;
    assert_non_null(batch);
    batch->number = task->batch;
    batch->items.count = 0;
    while (replica->wanted.count > 0 && (size == 0 || size + replica->wanted.refs[0].size <= task->size)) {
        batch->items.refs[batch->items.count++] = replica->wanted.refs[--replica->wanted.count];
        size += batch->items.refs[batch->items.count - 1].size;
    }
    return batch;
}

static struct happening *new_event(struct world *world, unsigned to, unsigned from, uint64_t wait_us) {
    assert_true(world->events_count < EVENTS_MAX);
    struct happening *event = &world->events[world->events_count++];
    *event = (struct happening){.at_us = world->now_us + wait_us, .to = to, .from = from};
    return event;
}

static void fetch(struct world *world, unsigned index, const struct mirror_task *task) {
    struct replica *replica = &world->replicas[index];
    unsigned from = index_of(&task->source);
    struct batch *batch = task->is_again ? find_batch(replica, task->batch) : take_batch(replica, task);
    assert_non_null(batch);
    bool is_broken = prng_chance_ppm(&world->prng, world->broken_ppm);
    size_t count = is_broken ? batch->items.count / 2 : batch->items.count;
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(contains(&world->replicas[from].has, &batch->items.refs[i]));
        size += batch->items.refs[i].size;
    }
    struct happening *event =
        new_event(world, index, from, DELAY_US + size * SECOND_US / rate_of(index, from));
    event->batch = task->batch;
    event->count = count;
    event->err = is_broken ? ERR_CLOSED : ERR_OK;
}

/* What came is kept, whatever became of the rest. */
static void receive(struct world *world, const struct happening *event) {
    struct replica *replica = &world->replicas[event->to];
    struct batch *batch = find_batch(replica, event->batch);
    uint64_t size = 0;
    for (size_t i = 0; batch != NULL && i < event->count && i < batch->items.count; i++) {
        const struct manifest_ref *ref = &batch->items.refs[i];
        size += ref->size;
        replica->twice_size += contains(&replica->has, ref) ? ref->size : 0;
        note(&replica->has, ref);
        if (!replica->has_manifest) {
            want_below(world, replica, ref);
        }
    }
    replica->received_size += size;
    if (batch != NULL && event->err == ERR_OK) {
        batch->number = 0;
    } else if (batch != NULL) {
        batch->items.count -= event->count;
        memmove(batch->items.refs, batch->items.refs + event->count,
                batch->items.count * sizeof *batch->items.refs);
    }
    const uint8_t key[PEER_KEY_SIZE] = {(uint8_t)(event->from + 1)};
    mirror_fetched(replica->mirror, event->batch, key, event->err, size, world->now_us);
    tell_wanted(world, replica);
}

/* ---- driving ---- */

static void send_held(struct world *world, unsigned from, unsigned to) {
    const struct version *held = mirror_held(world->replicas[from].mirror);
    if (held != NULL) {
        new_event(world, to, from, DELAY_US)->version = *held;
    }
}

static void run_tasks(struct world *world, unsigned index) {
    struct replica *replica = &world->replicas[index];
    struct mirror_task task;
    while (mirror_next(replica->mirror, world->now_us, &task)) {
        switch (task.kind) {
        case MIRROR_ASK:
            send_held(world, index_of(&task.source), index);
            break;
        case MIRROR_NOTIFY:
            send_held(world, index, index_of(&task.source));
            break;
        case MIRROR_BEGIN:
            begin(world, replica);
            tell_wanted(world, replica);
            break;
        case MIRROR_LOOK:
            fail_msg("nobody was said to have a part");
            break;
        case MIRROR_FETCH:
            fetch(world, index, &task);
            tell_wanted(world, replica);
            break;
        case MIRROR_CANCEL:
            break; /* what still comes of it finds no batch */
        case MIRROR_APPLY:
            mirror_applied(replica->mirror, ERR_OK, world->now_us);
            break;
        }
    }
}

static void deliver(struct world *world, size_t at) {
    struct happening event = world->events[at];
    uint8_t memory[VERSION_SIZE_MAX];
    const uint8_t key[PEER_KEY_SIZE] = {(uint8_t)(event.from + 1)};
    world->events[at] = world->events[--world->events_count];
    if (event.batch != 0) {
        receive(world, &event);
    } else {
        enum mirror_verdict verdict = mirror_hear(world->replicas[event.to].mirror, key,
                                                  version_write(&event.version, memory), world->now_us);
        assert_in_range(verdict, MIRROR_NEWER, MIRROR_BEHIND);
    }
}

static bool all_hold(const struct world *world, uint64_t number) {
    for (unsigned i = 0; i < REPLICAS_COUNT; i++) {
        const struct version *held = mirror_held(world->replicas[i].mirror);
        if (held == NULL || held->number != number) {
            return false;
        }
    }
    return true;
}

/* The next thing that happens, at its time. */
static void step(struct world *world) {
    uint64_t next_us = UINT64_MAX;
    size_t next = EVENTS_MAX;
    for (unsigned i = 0; i < REPLICAS_COUNT; i++) {
        uint64_t at_us = mirror_wake_at(world->replicas[i].mirror, world->now_us);
        assert_true(at_us > world->now_us);
        next_us = at_us < next_us ? at_us : next_us;
    }
    for (size_t i = 0; i < world->events_count; i++) {
        if (world->events[i].at_us < next_us) {
            next_us = world->events[i].at_us;
            next = i;
        }
    }
    world->now_us = next_us;
    if (next < EVENTS_MAX) {
        deliver(world, next);
    }
}

static void run_until_all_hold(struct world *world, uint64_t number) {
    for (unsigned steps = 0;; steps++) {
        assert_true(steps < 100000);
        for (unsigned i = 0; i < REPLICAS_COUNT; i++) {
            run_tasks(world, i);
        }
        if (all_hold(world, number)) {
            return;
        }
        step(world);
    }
}

/* ---- the test ---- */

static void start_replica(struct world *world, unsigned index) {
    struct replica *replica = &world->replicas[index];
    struct mirror_config config = {.publisher = {1}, .name = "films", .verify = believe, .seed = index};
    struct mirror_source sources[3] = {0};
    unsigned neighbours[3] = {(index + 1) % REPLICAS_COUNT, (index + REPLICAS_COUNT - 1) % REPLICAS_COUNT,
                              (index + REPLICAS_COUNT / 2) % REPLICAS_COUNT};
    config.is_master = index == 0;
    config.batches_max = BATCHES_MAX;
    config.gather_us = SECOND_US;
    config.batch_size_max = 4 << 20;
    map_init(&replica->has, SHA256_SIZE, 0, 2 * ITEMS_MAX, index);
    map_init(&replica->asked, SHA256_SIZE, 0, 2 * ITEMS_MAX, index);
    void *memory = malloc(mirror_size(&config));
    assert_non_null(memory);
    replica->mirror = mirror_init(memory, &config, world->now_us);
    for (unsigned i = 0; i < 3; i++) {
        sources[i].peer.address = address_ipv4(10, 0, 0, (uint8_t)neighbours[i], 7070);
        sources[i].peer.key[0] = (uint8_t)(neighbours[i] + 1);
        sources[i].delay_us = DELAY_US;
        sources[i].bandwidth = rate_of(index, neighbours[i]);
    }
    mirror_set_sources(replica->mirror, sources, index % 3 == 0 ? 3 : 2, world->now_us);
}

static struct world *make_world(void) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->now_us = 1000 * SECOND_US;
    prng_init(&world->prng, 5);
    arena_init(&world->arena, 64 << 20);
    map_init(&world->nodes, SHA256_SIZE, sizeof(struct bytes), 4096, 1);
    assert_int_equal(manifest_writer_new(&world->writer), ERR_OK);
    assert_int_equal(manifest_reader_new(&world->readers[0]), ERR_OK);
    assert_int_equal(manifest_reader_new(&world->readers[1]), ERR_OK);
    for (unsigned i = 0; i < REPLICAS_COUNT; i++) {
        start_replica(world, i);
    }
    return world;
}

static void free_world(struct world *world) {
    for (unsigned i = 0; i < REPLICAS_COUNT; i++) {
        map_done(&world->replicas[i].has);
        map_done(&world->replicas[i].asked);
        free(world->replicas[i].mirror);
    }
    manifest_writer_free(world->writer);
    manifest_reader_free(world->readers[0]);
    manifest_reader_free(world->readers[1]);
    map_done(&world->nodes);
    arena_done(&world->arena);
    free(world);
}

static void check_round(struct world *world, uint64_t size_max, uint64_t twice_max) {
    for (unsigned i = 1; i < REPLICAS_COUNT; i++) {
        struct replica *replica = &world->replicas[i];
        assert_in_range(replica->received_size, 1, size_max);
        assert_in_range(replica->twice_size, 0, twice_max);
        replica->received_size = 0;
        replica->twice_size = 0;
    }
}

static void every_byte_comes_once_and_only_what_is_new(void **state) {
    (void)state;
    struct world *world = make_world();
    uint64_t whole_size = (uint64_t)FILES_COUNT * FILE_SIZE;
    publish(world, 1);
    run_until_all_hold(world, 1);
    assert_true(world->now_us < 1060 * SECOND_US); /* two lines of 2 to 6 MB a second, one after the other */
    check_round(world, whole_size + whole_size / 20, 0); /* with the manifest */
    for (uint64_t number = 2; number <= 3; number++) {
        publish(world, number);
        run_until_all_hold(world, number);
        check_round(world, (uint64_t)2 * CHANGED_COUNT * FILE_SIZE + (2 << 20), 0);
    }
    free_world(world);
}

static void lines_that_break_cost_no_byte_twice(void **state) {
    (void)state;
    struct world *world = make_world();
    uint64_t whole_size = (uint64_t)FILES_COUNT * FILE_SIZE;
    world->broken_ppm = 300000;
    publish(world, 1);
    run_until_all_hold(world, 1);
    check_round(world, whole_size + whole_size / 20, 0);
    free_world(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_comes_once_and_only_what_is_new),
        cmocka_unit_test(lines_that_break_cost_no_byte_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
