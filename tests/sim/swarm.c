#include "swarm.h"

static const char *const fault_names[SWARM_FAULTS_COUNT] = {
    "jitter",    "loss",       "duplicate",  "reorder", "corrupt",   "slow-uplink",
    "unsynced",  "slow-disk",  "late-start", "crash",   "partition", "clog",
    "disk-full", "disk-error", "rot",        "wipe",    "leave",
};

static bool is_on(const struct swarm *swarm, enum swarm_fault fault) {
    return (swarm->faults & fault) != 0;
}

/* Between 1 and max, small ones as likely as large ones: first the power of two, then within it. */
static uint64_t draw_strength(struct prng *prng, uint64_t max) {
    ASSERT(max > 0);
    unsigned bits = max == 1 ? 0 : 64 - (unsigned)__builtin_clzll(max - 1);
    uint64_t ceiling = UINT64_C(1) << prng_below(prng, bits + 1);
    return prng_between(prng, ceiling / 2 + 1, ceiling < max ? ceiling : max);
}

static uint32_t draw_ppm(struct prng *prng, uint32_t max_ppm) {
    return (uint32_t)draw_strength(prng, max_ppm);
}

/* ---- what holds for the whole run ---- */

static uint32_t draw_us(struct swarm *swarm, uint64_t periods_max) {
    uint64_t us = draw_strength(&swarm->prng, periods_max * swarm->config.period_us);
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static void set_network_dials(struct swarm *swarm) {
    struct network_dials *dials = &sim_network(swarm->sim)->dials;
    if (is_on(swarm, SWARM_JITTER)) {
        dials->jitter_us = draw_us(swarm, 1);
    }
    if (is_on(swarm, SWARM_LOSS)) {
        dials->loss_ppm = draw_ppm(&swarm->prng, 500000);
    }
    if (is_on(swarm, SWARM_DUPLICATE)) {
        dials->duplicate_ppm = draw_ppm(&swarm->prng, 500000);
    }
    if (is_on(swarm, SWARM_REORDER)) {
        dials->reorder_ppm = draw_ppm(&swarm->prng, 500000);
        dials->reorder_us = draw_us(swarm, 20);
    }
    if (is_on(swarm, SWARM_CORRUPT)) {
        dials->corrupt_ppm = draw_ppm(&swarm->prng, 200000);
    }
    if (is_on(swarm, SWARM_SLOW_UPLINK)) {
        dials->uplink_bytes_per_s = 1000 + draw_strength(&swarm->prng, 1000000);
        dials->backlog_us_max = draw_us(swarm, 20);
    }
}

static void set_disk_dials(struct swarm *swarm) {
    struct disk_dials *dials = sim_disk_dials(swarm->sim);
    if (is_on(swarm, SWARM_UNSYNCED)) {
        dials->write_lost_ppm = draw_ppm(&swarm->prng, 1000000);
        dials->write_torn_ppm = draw_ppm(&swarm->prng, 1000000);
        dials->entry_lost_ppm = draw_ppm(&swarm->prng, 1000000);
    }
    if (is_on(swarm, SWARM_SLOW_DISK)) {
        dials->latency_us = draw_us(swarm, 5);
        dials->jitter_us = draw_us(swarm, 5);
    }
}

/* ---- what strikes ---- */

static bool swarm_find_node(struct swarm *swarm, enum sim_status status, uint32_t *ret_node) {
    uint32_t nodes_count = sim_nodes_count(swarm->sim);
    uint32_t first = (uint32_t)prng_below(&swarm->prng, nodes_count);
    for (uint32_t i = 0; i < nodes_count; i++) {
        uint32_t node = (first + i) % nodes_count;
        if (sim_status(swarm->sim, node) == status) {
            *ret_node = node;
            return true;
        }
    }
    return false;
}

/* Whether one more node may go down without more than down_max being so. */
static bool may_go_down(const struct swarm *swarm) {
    uint32_t up_count = 0;
    uint32_t down_count = 0;
    for (uint32_t i = 0; i < sim_nodes_count(swarm->sim); i++) {
        up_count += sim_status(swarm->sim, i) == SIM_UP;
        down_count += sim_status(swarm->sim, i) == SIM_DOWN;
    }
    return up_count > 1 && (swarm->config.down_max == 0 || down_count < swarm->config.down_max);
}

static void strike_node(struct swarm *swarm, void (*stop)(struct sim *sim, uint32_t node)) {
    uint32_t node;
    if (!may_go_down(swarm) || !swarm_find_node(swarm, SIM_UP, &node)) {
        return;
    }
    stop(swarm->sim, node);
    uint64_t down_us = prng_exponential(&swarm->prng, 10 * swarm->config.period_us);
    sim_start_at(swarm->sim, node, sim_now_us(swarm->sim) + down_us);
}

/* A second strike heals what the first one cut. */
static void strike_partition(struct swarm *swarm) {
    struct network *network = sim_network(swarm->sim);
    if (network->is_partitioned) {
        network_heal(network);
        return;
    }
    uint32_t groups_count = (uint32_t)prng_between(&swarm->prng, 2, 4);
    for (uint32_t i = 0; i < network->nodes_count; i++) {
        network->nodes[i].group = (uint8_t)prng_below(&swarm->prng, groups_count);
    }
    bool is_one_way = prng_below(&swarm->prng, 3) == 0;
    for (uint32_t a = 0; a < groups_count; a++) {
        for (uint32_t b = a + 1; b < groups_count; b++) {
            network_block(network, a, b);
            if (!is_one_way) {
                network_block(network, b, a);
            }
        }
    }
}

static enum err strike_clog(struct swarm *swarm) {
    struct network *network = sim_network(swarm->sim);
    uint32_t nodes_count = sim_nodes_count(swarm->sim);
    uint32_t from = (uint32_t)prng_below(&swarm->prng, nodes_count);
    uint32_t to = (uint32_t)prng_below(&swarm->prng, nodes_count);
    uint64_t until_us = sim_now_us(swarm->sim) + prng_exponential(&swarm->prng, 10 * swarm->config.period_us);
    if (from == to) {
        network->nodes[from].clogged_until_us = until_us;
        return ERR_OK;
    }
    return network_clog_link(network, from, to, until_us);
}

static void strike_disk(struct swarm *swarm, enum swarm_fault fault) {
    uint32_t node = (uint32_t)prng_below(&swarm->prng, sim_nodes_count(swarm->sim));
    struct disk *disk = sim_disk_if_used(swarm->sim, node);
    if (disk == NULL) {
        return;
    }
    if (fault == SWARM_DISK_FULL) {
        disk->is_full = !disk->is_full;
    } else if (fault == SWARM_DISK_ERROR) {
        disk_fail_after(disk, prng_between(&swarm->prng, 1, 6), ERR_IO);
    } else {
        disk_rot(disk, draw_ppm(&swarm->prng, 1000000));
    }
}

static enum err strike(struct swarm *swarm, enum swarm_fault fault) {
    switch (fault) {
    case SWARM_CRASH:
        strike_node(swarm, sim_crash);
        return ERR_OK;
    case SWARM_WIPE:
        strike_node(swarm, sim_wipe);
        return ERR_OK;
    case SWARM_LEAVE:
        strike_node(swarm, sim_leave);
        return ERR_OK;
    case SWARM_PARTITION:
        strike_partition(swarm);
        return ERR_OK;
    case SWARM_CLOG:
        return strike_clog(swarm);
    default:
        strike_disk(swarm, fault);
        return ERR_OK;
    }
}

static void plan_strike(struct swarm *swarm, uint32_t index) {
    uint64_t wait_us = prng_exponential(&swarm->prng, swarm->interval_us[index]);
    swarm->strike_at_us[index] = sim_now_us(swarm->sim) + wait_us + 1;
}

/* ---- the run ---- */

static void start_nodes(struct swarm *swarm) {
    for (uint32_t i = 0; i < sim_nodes_count(swarm->sim); i++) {
        uint64_t at_us = sim_now_us(swarm->sim);
        if (is_on(swarm, SWARM_LATE_START) && prng_below(&swarm->prng, 4) == 0) {
            at_us += prng_exponential(&swarm->prng, 20 * swarm->config.period_us);
        }
        sim_start_at(swarm->sim, i, at_us);
    }
}

void swarm_init(struct swarm *swarm, const struct swarm_config *config, struct sim *sim) {
    ASSERT(config->period_us > 0 && (config->faults & ~(unsigned)SWARM_ALL) == 0);
    *swarm = (struct swarm){
        .config = *config,
        .sim = sim,
        .calm_network = sim_network(sim)->dials,
        .calm_disk = *sim_disk_dials(sim),
    };
    prng_init(&swarm->prng, config->seed);
    swarm->faults = config->faults & (unsigned)prng_u64(&swarm->prng);
    set_network_dials(swarm);
    set_disk_dials(swarm);
    for (uint32_t i = SWARM_STRIKES_FIRST; i < SWARM_FAULTS_COUNT; i++) {
        swarm->strike_at_us[i] = STEP_NEVER_US;
        swarm->interval_us[i] = config->period_us * (1 + draw_strength(&swarm->prng, 100));
        if ((swarm->faults >> i & 1) != 0) {
            plan_strike(swarm, i);
        }
    }
    start_nodes(swarm);
}

enum err swarm_run_until(struct swarm *swarm, uint64_t until_us) {
    for (;;) {
        uint32_t next = SWARM_STRIKES_FIRST;
        for (uint32_t i = next + 1; i < SWARM_FAULTS_COUNT; i++) {
            next = swarm->strike_at_us[i] < swarm->strike_at_us[next] ? i : next;
        }
        if (swarm->strike_at_us[next] > until_us) {
            return sim_run_until(swarm->sim, until_us);
        }
        enum err err = sim_run_until(swarm->sim, swarm->strike_at_us[next]);
        err = err != ERR_OK ? err : strike(swarm, (enum swarm_fault)(1u << next));
        if (err != ERR_OK) {
            return err;
        }
        swarm->struck_count[next]++;
        plan_strike(swarm, next);
    }
}

void swarm_heal(struct swarm *swarm) {
    for (uint32_t i = SWARM_STRIKES_FIRST; i < SWARM_FAULTS_COUNT; i++) {
        swarm->strike_at_us[i] = STEP_NEVER_US;
    }
    network_heal(sim_network(swarm->sim));
    sim_network(swarm->sim)->dials = swarm->calm_network;
    *sim_disk_dials(swarm->sim) = swarm->calm_disk;
    for (uint32_t i = 0; i < sim_nodes_count(swarm->sim); i++) {
        struct disk *disk = sim_disk_if_used(swarm->sim, i);
        if (disk != NULL) {
            disk->is_full = false;
            disk_fail_after(disk, 0, ERR_OK);
        }
        sim_start_at(swarm->sim, i, sim_now_us(swarm->sim));
    }
}

void swarm_describe(const struct swarm *swarm, struct buf *out) {
    buf_put_string(out, "faults:");
    for (uint32_t i = 0; i < SWARM_FAULTS_COUNT; i++) {
        if ((swarm->faults >> i & 1) == 0) {
            continue;
        }
        buf_put_format(out, " %s", fault_names[i]);
        if (i >= SWARM_STRIKES_FIRST) {
            buf_put_format(out, "=%u", (unsigned)swarm->struck_count[i]);
        }
    }
    if (swarm->faults == 0) {
        buf_put_string(out, " none");
    }
}
