#include "sim/experiments/group_union.h"

#include <stdlib.h>

#include "protocol/group/estimate.h"
#include "sim/experiments/group_costs.h"

enum {
    MODEM_COST_US = 60000000, /* of the cheapest path: overseas costs a third of it, a modem five times */
    DELAY_SHARE = 100,        /* of the cost: 1 ms at a site, 20 on a continent, 100 overseas */
    DELAY_US_MAX = 250000,
    CORNERS_COUNT = 2,
    STREAM_DEATHS = 1 << 30,
};
static const uint32_t NOBODY = UINT32_MAX;
static const uint64_t SECOND_US = 1000000;

struct group_place {
    uint32_t members_count;
    uint32_t corners_count; /* positions below it were looked at for corners */
    uint32_t members[GROUP_MEMBERS_MAX];
    bool has_modem[GROUP_MEMBERS_MAX];
};

/* What building needs; too large for a stack. */
struct builder {
    struct group_union *whole;
    struct group_place *groups;
    uint32_t replicas_count;
    struct costs costs;
    struct costs costs_alive;
    struct topology_work work;
    struct graph graph;
};

/* ---- which groups are neighbours ---- */

static uint32_t parent_of(uint32_t group) {
    return (group - 1) / GROUP_UNION_CHILDREN;
}

/* The one before it, if a mesh joins the two; NOBODY: it does not, or the tree has done so. */
static uint32_t sibling_of(const struct group_union_config *config, uint32_t group) {
    return config->joins == GROUP_UNION_MESH && parent_of(group) != group - 1 ? group - 1 : NOBODY;
}

static uint32_t count_pairs(const struct group_union_config *config, uint32_t groups_count) {
    uint32_t count = 0;
    for (uint32_t group = 1; group < groups_count; group++) {
        count += sibling_of(config, group) != NOBODY ? 2 : 1;
    }
    return count;
}

/* The fewest that hold all; corners are in two. */
static void count_groups(struct group_union *whole) {
    const struct group_union_config *config = &whole->config;
    do {
        whole->groups_count++;
        whole->pairs_count = count_pairs(config, whole->groups_count);
    } while (config->replicas_count + CORNERS_COUNT * whole->pairs_count >
             whole->groups_count * config->group_size);
}

/* ---- members of groups ---- */

static void measure_group(struct builder *builder, uint32_t group) {
    const struct group_union *whole = builder->whole;
    struct prng prng;
    prng_init_stream(&prng, whole->config.seed, group);
    group_costs_make(GROUP_COSTS_SITES, &prng, builder->groups[group].members_count, &builder->costs);
}

static uint32_t cheapest_of(const struct costs *costs, uint32_t position) {
    uint32_t cheapest_us = COSTS_UNKNOWN_US;
    for (uint32_t i = 0; i < costs->members_count; i++) {
        uint32_t cost_us = i == position ? COSTS_UNKNOWN_US : costs_of_edge(costs, position, i);
        cheapest_us = cost_us < cheapest_us ? cost_us : cheapest_us;
    }
    return cheapest_us;
}

static void make_groups(struct builder *builder) {
    const struct group_union *whole = builder->whole;
    uint32_t places_count = whole->config.replicas_count + CORNERS_COUNT * whole->pairs_count;
    for (uint32_t i = 0; i < whole->groups_count; i++) {
        struct group_place *group = &builder->groups[i];
        group->members_count = places_count / whole->groups_count + (i < places_count % whole->groups_count);
        measure_group(builder, i);
        for (uint32_t position = 0; position < group->members_count; position++) {
            group->members[position] = NOBODY;
            group->has_modem[position] = cheapest_of(&builder->costs, position) > MODEM_COST_US;
        }
    }
}

static void take_place(struct group_place *group, uint32_t replica) {
    while (group->has_modem[group->corners_count] || group->members[group->corners_count] != NOBODY) {
        group->corners_count++;
        ASSERT(group->corners_count < group->members_count);
    }
    group->members[group->corners_count] = replica;
}

static void add_corners(struct builder *builder, uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < CORNERS_COUNT; i++) {
        uint32_t replica = builder->replicas_count++;
        take_place(&builder->groups[a], replica);
        take_place(&builder->groups[b], replica);
        builder->whole->replicas[replica].is_corner = true;
        builder->whole->replicas[replica].is_dead =
            builder->whole->config.damage == GROUP_UNION_CORNERS && i == 0;
    }
}

static void add_members(struct builder *builder) {
    struct group_union *whole = builder->whole;
    for (uint32_t i = 1; i < whole->groups_count; i++) {
        add_corners(builder, parent_of(i), i);
        if (sibling_of(&whole->config, i) != NOBODY) {
            add_corners(builder, i - 1, i);
        }
    }
    for (uint32_t i = 0; i < whole->groups_count; i++) {
        struct group_place *group = &builder->groups[i];
        bool has_origin = false; /* of this group */
        for (uint32_t position = 0; position < group->members_count; position++) {
            if (group->members[position] != NOBODY) {
                continue;
            }
            uint32_t replica = builder->replicas_count++;
            group->members[position] = replica;
            whole->replicas[replica].has_modem = group->has_modem[position];
            if (!has_origin && !group->has_modem[position]) {
                has_origin = true;
                whole->origin = replica;
            }
        }
    }
    ASSERT(builder->replicas_count == whole->config.replicas_count);
}

static void let_die(struct group_union *whole) {
    const struct group_union_config *config = &whole->config;
    struct prng prng;
    prng_init_stream(&prng, config->seed, STREAM_DEATHS);
    if (config->damage != GROUP_UNION_DEAD) {
        return;
    }
    for (uint32_t i = 0; i < config->replicas_count; i++) {
        whole->replicas[i].is_dead = prng_chance_ppm(&prng, config->dead_ppm) && i != whole->origin;
    }
}

/* ---- links ---- */

/* Two corners of a pair may be joined in both of their groups: the first counts. */
static void add_link(struct group_union *whole, uint32_t from, uint32_t to, uint32_t cost_us) {
    struct group_union_replica *replica = &whole->replicas[from];
    for (uint32_t i = 0; i < replica->links_count; i++) {
        if (replica->links[i].to == to) {
            return;
        }
    }
    ASSERT(replica->links_count < GROUP_UNION_LINKS_MAX);
    uint64_t delay_us = cost_us / DELAY_SHARE + 1;
    replica->links[replica->links_count++] = (struct group_union_link){
        .to = to,
        .bandwidth = ESTIMATE_SIZE_REFERENCE * SECOND_US / cost_us,
        .delay_us = delay_us < DELAY_US_MAX ? delay_us : DELAY_US_MAX,
    };
}

/* The costs of some members only. */
static void select_costs(const struct costs *costs, const uint32_t *positions, uint32_t count,
                         struct costs *ret_costs) {
    costs_init(ret_costs, count);
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = 0; b < count; b++) {
            if (a != b) {
                costs_set(ret_costs, a, b, costs->us[positions[a]][positions[b]]);
            }
        }
    }
}

static void join_members(struct builder *builder, const struct group_place *group, const uint32_t *positions,
                         uint32_t count) {
    struct topology_rules rules = {.kind = builder->whole->config.kind};
    select_costs(&builder->costs, positions, count, &builder->costs_alive);
    topology_make(&rules, &builder->costs_alive, &builder->work, &builder->graph);
    for (uint32_t a = 0; a < count; a++) {
        const struct graph_set *neighbours = &builder->graph.neighbours[a];
        for (uint32_t b = graph_set_next(neighbours, 0); b < count; b = graph_set_next(neighbours, b + 1)) {
            add_link(builder->whole, group->members[positions[a]], group->members[positions[b]],
                     costs_of_edge(&builder->costs_alive, a, b));
        }
    }
}

static void join_group(struct builder *builder, uint32_t index) {
    struct group_union *whole = builder->whole;
    const struct group_place *group = &builder->groups[index];
    uint32_t positions[GROUP_MEMBERS_MAX];
    uint32_t count = 0;
    measure_group(builder, index);
    for (uint32_t i = 0; i < group->members_count; i++) {
        struct group_union_replica *replica = &whole->replicas[group->members[i]];
        uint64_t line = ESTIMATE_SIZE_REFERENCE * SECOND_US / cheapest_of(&builder->costs, i);
        replica->line = line > replica->line ? line : replica->line;
        if (!replica->is_dead || !whole->config.is_repaired) {
            positions[count++] = i;
        }
    }
    if (count > 0) {
        join_members(builder, group, positions, count);
    }
}

/* ---- life ---- */

enum err group_union_init(struct group_union *whole, const struct group_union_config *config) {
    ASSERT(config->replicas_count >= 32 && config->replicas_count <= GROUP_UNION_REPLICAS_MAX);
    ASSERT(config->group_size >= 48 && config->group_size <= GROUP_MEMBERS_MAX);
    *whole = (struct group_union){.config = *config};
    count_groups(whole);
    whole->replicas = calloc(config->replicas_count, sizeof *whole->replicas);
    whole->hops = calloc(config->replicas_count, sizeof *whole->hops);
    whole->queue = calloc(config->replicas_count, sizeof *whole->queue);
    struct builder *builder = calloc(1, sizeof *builder);
    struct group_place *groups = calloc(whole->groups_count, sizeof *groups);
    bool is_made = whole->replicas != NULL && whole->hops != NULL && whole->queue != NULL &&
                   builder != NULL && groups != NULL;
    if (is_made) {
        builder->whole = whole;
        builder->groups = groups;
        make_groups(builder);
        add_members(builder);
        let_die(whole);
        for (uint32_t i = 0; i < whole->groups_count; i++) {
            join_group(builder, i);
        }
    }
    free(groups);
    free(builder);
    return is_made ? ERR_OK : ERR_MEMORY;
}

void group_union_done(struct group_union *whole) {
    free(whole->replicas);
    free(whole->hops);
    free(whole->queue);
}

uint32_t group_union_walk(struct group_union *whole, uint32_t from) {
    uint32_t *queue = whole->queue;
    uint32_t *hops = whole->hops;
    uint32_t queue_count = 1;
    for (uint32_t i = 0; i < whole->config.replicas_count; i++) {
        hops[i] = UINT32_MAX;
    }
    queue[0] = from;
    hops[from] = 0;
    for (uint32_t head = 0; head < queue_count; head++) {
        const struct group_union_replica *replica = &whole->replicas[queue[head]];
        for (uint32_t i = 0; i < replica->links_count; i++) {
            uint32_t to = replica->links[i].to;
            if (hops[to] == UINT32_MAX && !whole->replicas[to].is_dead) {
                hops[to] = hops[queue[head]] + 1;
                queue[queue_count++] = to;
            }
        }
    }
    return hops[queue[queue_count - 1]];
}
