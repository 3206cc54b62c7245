/*
 * ring-links: what it costs to tell the other nodes of a link, for a node that finds links to everywhere.
 *
 * An ideal ring; the code of a node (protocol/links/link_relay.h) sends and receives, the ring below it is a
 * sorted list. One node sends rounds of links, sixteen for each arc, and every delivery is checked: who got a
 * link must be a holder of its place, and in the end all holders must have it. The rows of the thesis follow
 * its own reckoning (4.4), with the URLs and the hops of this run.
 */
#include <stdlib.h>

#include "protocol/links/link_relay.h"
#include "sim/experiments/experiment.h"
#include "sim/experiments/urls.h"
#include "sim/world/sim.h"

enum {
    HOLDERS_COUNT = 3,
    LINKS_PER_ARC = 16,
    HOSTS_COUNT = 20000,
    WALKERS_COUNT = 16,
    SENT_COUNT = 1 << 18,
    DATAGRAM_SIZE = 60 + 28,   /* around a message: sealing, UDP and IP */
    THESIS_RPC_SIZE = 100,     /* of a lookup */
    THESIS_HEADER_SIZE = 60,   /* of a message with links */
    THESIS_LINKS_PER_NODE = 6, /* 120,000 for 20,000 */
    FINGERS_COUNT = 24,
    HOPS_SAMPLES = 2000,
    LATENCY_US = 40000,
    FIND_US = 6 * 2 * LATENCY_US, /* a lookup of six hops */
    RECORD_SIZE = 32,             /* beside its URL, in the owner's buffer */
};

enum link_state { LINK_WAITING, LINK_IN_HAND, LINK_DONE };

struct found_link {
    struct ring_id place;
    uint32_t url; /* where in the text */
    uint16_t url_size;
    uint8_t state;
    uint8_t holders; /* bits: which of the holders have it */
};

struct links_world {
    struct sim *sim;
    struct program program;
    struct vnode *places; /* by ID */
    uint32_t nodes_count;
    bool has_cache;
    struct links_code *code;
    struct sha256 sha256;
    struct urls urls;
    struct found_link *links; /* by place */
    uint32_t links_count;
    uint32_t links_max;
    uint32_t waiting_count;
    uint8_t *text;
    size_t text_size;
    uint64_t found_count;
    uint64_t found_size;
    const char *failure;
};

struct links_state {
    struct link_relay *link_relay;
    struct links_world *world;
};

/* ---- the ring ---- */

/* The position of the first place at or behind an ID. */
static uint32_t links_position_of(const struct links_world *world, struct ring_id id) {
    uint32_t low = 0;
    uint32_t high = world->nodes_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ring_id_compare(world->places[middle].id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == world->nodes_count ? 0 : low;
}

static bool is_place_of(const struct links_world *world, uint32_t position, uint32_t node) {
    struct address address = sim_address(node);
    return address_equal(&world->places[position % world->nodes_count].peer.address, &address);
}

static size_t places_from(const struct links_world *world, uint32_t position, struct vnode *out,
                          size_t places_max) {
    size_t count = places_max < world->nodes_count ? places_max : world->nodes_count;
    for (size_t i = 0; i < count; i++) {
        out[i] = world->places[(position + i) % world->nodes_count];
    }
    return count;
}

static size_t owner_after(void *context, struct ring_id id, struct vnode *out, size_t places_max) {
    const struct links_world *world = context;
    return places_from(world, links_position_of(world, ring_id_add_power(id, 0)), out, places_max);
}

static uint64_t owner_arcs(void *context) {
    const struct links_world *world = context;
    return world->nodes_count;
}

/* The paper's lookup: one candidate at a time, by fingers. */
static double mean_hops(const struct links_world *world, uint64_t seed) {
    struct prng prng;
    uint64_t hops = 0;
    uint32_t count = world->nodes_count;
    prng_init_stream(&prng, seed, 5);
    for (uint32_t i = 0; i < HOPS_SAMPLES; i++) {
        struct ring_id key = {prng_u64(&prng), prng_u64(&prng)};
        uint32_t owner = links_position_of(world, key);
        uint32_t position = (uint32_t)prng_below(&prng, count);
        while (position != owner) {
            uint32_t ahead = (owner + count - position) % count;
            uint32_t best = 1;
            for (unsigned finger = 0; finger < FINGERS_COUNT; finger++) {
                uint32_t at =
                    links_position_of(world, ring_id_add_power(world->places[position].id, 127 - finger));
                uint32_t steps = (at + count - position) % count;
                best = steps < ahead && steps > best ? steps : best;
            }
            position = (position + best) % count;
            hops++;
        }
    }
    return (double)hops / HOPS_SAMPLES;
}

/* ---- the links of the sender ---- */

static uint32_t first_behind(const struct links_world *world, struct ring_id id) {
    uint32_t low = 0;
    uint32_t high = world->links_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ring_id_compare(world->links[middle].place, id) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The next that waits in (from, to], from an index on, once round. */
static bool next_waiting(const struct links_world *world, struct ring_id from, struct ring_id to,
                         uint32_t *index) {
    for (uint32_t i = 0; i < world->links_count; i++, (*index)++) {
        const struct found_link *link = &world->links[*index % world->links_count];
        if (!ring_id_is_owned(from, link->place, to)) {
            return false;
        }
        if (link->state == LINK_WAITING) {
            return true;
        }
    }
    return false;
}

static bool owner_next(void *context, struct ring_id from, struct ring_id to, struct ring_id *ret_place) {
    const struct links_world *world = context;
    uint32_t index = first_behind(world, from);
    bool is_there = next_waiting(world, from, to, &index);
    if (is_there) {
        *ret_place = world->links[index % world->links_count].place;
    }
    return is_there;
}

/* Three of four at the depth where the crawl is; pictures and style sheets are parts of pages. */
static struct links_code_link links_link_of(const struct links_world *world, uint32_t index) {
    const struct found_link *found = &world->links[index];
    struct bytes url = bytes_of(world->text + found->url, found->url_size);
    bool is_part = bytes_ends_with(url, BYTES(".jpg")) || bytes_ends_with(url, BYTES(".png")) ||
                   bytes_find(url, BYTES(".css")) < url.size;
    return (struct links_code_link){
        .url = url,
        .depth = (uint16_t)(found->place.low % 8 == 0   ? 2
                            : found->place.low % 8 == 1 ? 4
                                                        : 3),
        .priority = is_part ? 1 : 2,
        .owner = index,
    };
}

static size_t owner_take(void *context, struct ring_id from, struct ring_id to,
                         uint8_t ret_job[LINKS_CODE_JOB_SIZE], struct links_code_link *links,
                         size_t links_max) {
    struct links_world *world = context;
    size_t count = 0;
    memset(ret_job, 7, LINKS_CODE_JOB_SIZE);
    for (uint32_t index = first_behind(world, from);
         count < links_max && next_waiting(world, from, to, &index); index++) {
        struct found_link *link = &world->links[index % world->links_count];
        link->state = LINK_IN_HAND;
        world->waiting_count--;
        links[count++] = links_link_of(world, index % world->links_count);
    }
    return count;
}

static void owner_give_back(void *context, uint64_t link, bool is_done) {
    struct links_world *world = context;
    world->links[link].state = is_done ? LINK_DONE : LINK_WAITING;
    world->waiting_count += !is_done;
}

static uint64_t owner_waiting(void *context) {
    const struct links_world *world = context;
    return world->waiting_count;
}

static const struct link_relay_owner sender_owner = {
    .next = owner_next,
    .take = owner_take,
    .give_back = owner_give_back,
    .waiting = owner_waiting,
    .after = owner_after,
    .arcs = owner_arcs,
};

static uint64_t nothing_waits(void *context) {
    (void)context;
    return 0;
}

static const struct link_relay_owner receiver_owner = {
    .next = owner_next,
    .take = owner_take,
    .give_back = owner_give_back,
    .waiting = nothing_waits,
    .after = owner_after,
    .arcs = owner_arcs,
};

static int compare_links(const void *a, const void *b) {
    return ring_id_compare(((const struct found_link *)a)->place, ((const struct found_link *)b)->place);
}

/* Equal URLs, equal places: the first is kept. */
static void merge_links(struct links_world *world) {
    uint32_t count = 0;
    qsort(world->links, world->links_count, sizeof *world->links, compare_links);
    for (uint32_t i = 0; i < world->links_count; i++) {
        if (count == 0 || !ring_id_equal(world->links[count - 1].place, world->links[i].place)) {
            world->links[count++] = world->links[i];
        }
    }
    world->links_count = count;
    world->waiting_count = count;
}

/* Until so many are there for each arc that were not sent before. */
static void find_links(struct links_world *world, const struct link_relay *link_relay, uint64_t now_us) {
    static const uint8_t job[LINKS_CODE_JOB_SIZE] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    world->links_count = 0;
    world->text_size = 0;
    world->found_count = 0;
    world->found_size = 0;
    uint32_t wanted = world->nodes_count * LINKS_PER_ARC;
    do {
        while (world->links_count < wanted + wanted / 10) {
            uint8_t *url = world->text + world->text_size;
            size_t size = urls_next(&world->urls, url);
            world->found_count++;
            world->found_size += size;
            if (link_relay_knows(link_relay, bytes_of(job, sizeof job), bytes_of(url, size), now_us)) {
                continue;
            }
            world->links[world->links_count++] = (struct found_link){
                .place = ring_id_of_key(&world->sha256, bytes_of(url, size)),
                .url = (uint32_t)world->text_size,
                .url_size = (uint16_t)size,
            };
            world->text_size += size;
        }
        merge_links(world);
    } while (world->links_count < wanted);
}

/* ---- the nodes ---- */

static enum err links_program_init(void *memory, const struct birth *birth) {
    struct links_state *state = memory;
    struct links_world *world = birth->config;
    bool is_sender = birth->index == 0;
    struct link_relay_config config = {
        .self = {.address = birth->address},
        .holders_count = HOLDERS_COUNT,
        .walkers_count = is_sender ? WALKERS_COUNT : 2,
        .links_wanted = LINKS_PER_ARC,
        .sent_count = is_sender && world->has_cache ? SENT_COUNT : 0,
        .takes_max = 8,
        .seed = birth->seed,
        .code = world->code,
        .owner = is_sender ? &sender_owner : &receiver_owner,
        .context = world,
    };
    state->world = world;
    return link_relay_new(&config, &state->link_relay);
}

static void links_program_step(void *memory, const struct event *event, struct outbox *out) {
    struct links_state *state = memory;
    link_relay_step(state->link_relay, event, out);
}

static void links_program_done(void *memory) {
    struct links_state *state = memory;
    link_relay_free(state->link_relay);
}

static void links_on_find(struct links_world *world, uint32_t node, struct bytes bytes) {
    struct vnode places[RING_LIST_MAX];
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t number = wire_read_u64(&reader);
    struct ring_id key = message_read_id(&reader);
    size_t count = places_from(world, links_position_of(world, key), places, RING_LIST_MAX);
    enum err err = sim_command_at(world->sim, node, sim_now_us(world->sim) + FIND_US, LINK_RELAY_FOUND,
                                  number, link_relay_write_found(places, count, memory));
    world->failure = err != ERR_OK ? "out of memory" : world->failure;
}

/* Is this node one of the holders, and does the sender know which? */
static void check_link(struct links_world *world, uint32_t node, const struct link_relay_take *take,
                       const struct links_code_link *link) {
    struct ring_id place = ring_id_of_key(&world->sha256, link->url);
    uint32_t position = links_position_of(world, place);
    uint32_t index = first_behind(world, (struct ring_id){place.high - (place.low == 0), place.low - 1});
    struct found_link *found = &world->links[index % world->links_count];
    if (!ring_id_equal(found->place, place)) {
        world->failure = "a link that nobody sent";
        return;
    }
    for (uint32_t i = 0; i < HOLDERS_COUNT; i++) {
        if (is_place_of(world, position + i, node)) {
            found->holders |= (uint8_t)(1 << i);
            world->failure = take->is_primary != (i == 0) ? "the wrong primary" : world->failure;
            return;
        }
    }
    world->failure = "a link for somebody else";
}

static void on_take(struct links_world *world, uint32_t node, struct bytes bytes) {
    struct link_relay_take take;
    uint8_t memory[STEP_MESSAGE_SIZE_MAX];
    link_relay_take_read(bytes, &take);
    for (size_t i = 0; i < take.links_count; i++) {
        struct links_code_link link;
        link_relay_take_next(&take, &link);
        check_link(world, node, &take, &link);
    }
    enum err err = sim_command_at(world->sim, node, sim_now_us(world->sim), LINK_RELAY_TOOK, take.number,
                                  link_relay_write_took(LINK_RELAY_TAKEN, (uint16_t)take.links_count,
                                                        (uint16_t)take.links_count, memory));
    world->failure = err != ERR_OK ? "out of memory" : world->failure;
}

static void links_on_notice(void *context, struct sim *sim, uint32_t node, uint32_t code,
                            struct bytes bytes) {
    struct links_world *world = context;
    (void)sim;
    if (code == LINK_RELAY_FIND) {
        links_on_find(world, node, bytes);
    } else if (code == LINK_RELAY_TAKE) {
        on_take(world, node, bytes);
    } else {
        world->failure = "somebody is blamed";
    }
}

static const char *on_check(void *context, const struct sim *sim, uint32_t node) {
    const struct links_world *world = context;
    (void)sim;
    (void)node;
    return world->failure;
}

/* ---- the world ---- */

static int compare_places(const void *a, const void *b) {
    return ring_id_compare(((const struct vnode *)a)->id, ((const struct vnode *)b)->id);
}

static enum err add_nodes(struct links_world *world) {
    enum err err = sim_add_all(world->sim, &world->program, world);
    for (uint32_t i = 0; i < world->nodes_count && err == ERR_OK; i++) {
        world->places[i].peer.address = sim_address(i);
        world->places[i].id = ring_id_of_node(&world->sha256, &world->places[i].peer.address, 0);
        sim_start_at(world->sim, i, 0);
    }
    qsort(world->places, world->nodes_count, sizeof *world->places, compare_places);
    return err;
}

static enum err world_init(struct links_world *world, const struct experiment_args *args, bool has_cache) {
    uint32_t nodes_count = args->nodes;
    *world = (struct links_world){.nodes_count = nodes_count, .has_cache = has_cache};
    struct link_relay_config largest = {.holders_count = HOLDERS_COUNT, .walkers_count = WALKERS_COUNT};
    struct sim_config sim = {
        .seed = args->seed, .nodes_max = nodes_count, .network = {.latency_us = LATENCY_US}};
    world->program = (struct program){
        .name = "walk",
        .state_size = sizeof(struct links_state),
        .actions_max = link_relay_actions_max(&largest),
        .memory_size = link_relay_memory_size(&largest),
        .init = links_program_init,
        .step = links_program_step,
        .done = links_program_done,
    };
    world->links_max = nodes_count * LINKS_PER_ARC * 5 / 4 + 16;
    world->sim = sim_new(&sim);
    world->places = calloc(nodes_count, sizeof *world->places);
    world->links = calloc(world->links_max, sizeof *world->links);
    world->text = malloc((size_t)world->links_max * URLS_SIZE_MAX * 2);
    world->code = links_code_new();
    if (world->sim == NULL || world->places == NULL || world->links == NULL || world->text == NULL ||
        world->code == NULL || sha256_init(&world->sha256) != ERR_OK ||
        !urls_init(&world->urls, args->seed, HOSTS_COUNT)) {
        return ERR_MEMORY;
    }
    sim_observe(world->sim,
                &(struct sim_observer){.context = world, .notice = links_on_notice, .check = on_check});
    return add_nodes(world);
}

static void world_done(struct links_world *world) {
    sim_free(world->sim);
    links_code_free(world->code);
    sha256_done(&world->sha256);
    urls_done(&world->urls);
    free(world->places);
    free(world->links);
    free(world->text);
}

/* ---- a round ---- */

struct links_result {
    uint64_t links_count; /* sent, each once */
    uint64_t found_count;
    uint64_t found_size;
    uint64_t batches_count;
    double datagram_size; /* of all to one holder: bytes of links with what is around them */
    double answers_size;
    double buffer_size;
    double round_s;
};

static const struct link_relay *sender_of(const struct links_world *world) {
    const struct links_state *state = sim_state(world->sim, 0);
    return state->link_relay;
}

static enum err run_round(struct links_world *world, struct links_result *result, struct err_detail *detail) {
    struct link_relay_counters before = *link_relay_counters(sender_of(world));
    uint64_t start_us = sim_now_us(world->sim);
    find_links(world, sender_of(world), start_us);
    enum err err = sim_command_at(world->sim, 0, start_us, LINK_RELAY_WAITING, 0, (struct bytes){NULL, 0});
    uint64_t now_us = start_us;
    do {
        now_us += SIM_SECOND_US / 10;
        err = err != ERR_OK ? err : sim_run_until(world->sim, now_us);
    } while (err == ERR_OK && !link_relay_is_idle(sender_of(world)));
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", world->failure != NULL ? world->failure : err_text(err));
    }
    uint8_t all = (1 << HOLDERS_COUNT) - 1;
    uint8_t self_position = 0;
    for (uint32_t i = 0; i < world->links_count; i++) {
        uint32_t position = links_position_of(world, world->links[i].place);
        self_position = 0;
        for (uint32_t j = 0; j < HOLDERS_COUNT; j++) {
            self_position |= (uint8_t)(is_place_of(world, position + j, 0) << j);
        }
        if (world->links[i].state != LINK_DONE || (world->links[i].holders | self_position) != all) {
            return err_set(detail, ERR_MISMATCH, "a link that did not reach all of its holders");
        }
    }
    const struct link_relay_counters *after = link_relay_counters(sender_of(world));
    double holders = (double)(after->offered_count - before.offered_count) /
                     (double)(after->links_count - before.links_count);
    double sent_count = (double)(after->sent_count - before.sent_count);
    *result = (struct links_result){
        .links_count = after->links_count - before.links_count,
        .found_count = world->found_count,
        .found_size = world->found_size,
        .batches_count = after->batches_count - before.batches_count,
        .datagram_size =
            ((double)(after->sent_size - before.sent_size) + sent_count * DATAGRAM_SIZE) / holders,
        .answers_size =
            ((double)(after->answers_size - before.answers_size) + sent_count * DATAGRAM_SIZE) / holders,
        .buffer_size = (double)world->text_size + (double)world->links_count * RECORD_SIZE,
        .round_s = (double)(sim_now_us(world->sim) - start_us) / (double)SIM_SECOND_US,
    };
    return ERR_OK;
}

/* ---- the table ---- */

static void put_thesis(struct report *report, const struct links_world *world,
                       const struct links_result *result, uint64_t seed) {
    double url_size = (double)result->found_size / (double)result->found_count;
    double hops = mean_hops(world, seed);
    report_text(report, "direct lookup (thesis)");
    REPORT_NUMBERS(report, hops * THESIS_RPC_SIZE + THESIS_HEADER_SIZE + url_size, 920, NAN, NAN, 1, NAN,
                   NAN);
    double links_count = (double)world->nodes_count * THESIS_LINKS_PER_NODE;
    report_text(report, "ring walk (thesis)");
    REPORT_NUMBERS(report, url_size + 1 + (double)THESIS_HEADER_SIZE / THESIS_LINKS_PER_NODE, 70, NAN, NAN,
                   THESIS_LINKS_PER_NODE, links_count * (url_size + RECORD_SIZE) / 1e6, NAN);
}

static void put_ours(struct report *report, const char *name, double expected,
                     const struct links_result *result) {
    double links_count = (double)result->links_count;
    report_text(report, name);
    REPORT_NUMBERS(report, result->datagram_size / links_count, expected, result->answers_size / links_count,
                   result->datagram_size / (double)result->found_count,
                   links_count / (double)result->batches_count, result->buffer_size / 1e6, result->round_s);
}

static enum err run_world(const struct experiment_args *args, bool has_cache, struct report *report,
                          struct err_detail *detail) {
    struct links_world world;
    struct links_result result = {0};
    enum err err = world_init(&world, args, has_cache);
    err = err != ERR_OK ? err : sim_run_until(world.sim, 0);
    uint32_t rounds = has_cache ? args->runs : 1; /* the last one counts, when the cache is warm */
    for (uint32_t i = 0; i < rounds && err == ERR_OK; i++) {
        err = run_round(&world, &result, detail);
    }
    if (err == ERR_OK && !has_cache) {
        put_thesis(report, &world, &result, args->seed);
        put_ours(report, "ours", 25, &result);
    } else if (err == ERR_OK) {
        put_ours(report, "ours, cache of sent links", NAN, &result);
    }
    sim_digest_into(world.sim, &report->digest);
    world_done(&world);
    return err;
}

enum err experiment_ring_links(const struct experiment_args *args, struct report *report,
                               struct err_detail *detail) {
    report_init(report, "Telling one holder of a link", "bytes");
    REPORT_COLUMNS(report, {"scheme", 0, REPORT_TEXT}, {"bytes a link sent", 1, REPORT_Y},
                   {"stated", 0, REPORT_SHOWN}, {"answers, bytes a link", 1, REPORT_SHOWN},
                   {"bytes a link found", 1, REPORT_Y}, {"links a datagram", 1, REPORT_SHOWN},
                   {"buffer (MB)", 2, REPORT_SHOWN}, {"round (s)", 1, REPORT_SHOWN});
    enum err err = run_world(args, false, report, detail);
    err = err != ERR_OK ? err : run_world(args, true, report, detail);
    return err != ERR_OK ? err : report->err;
}
