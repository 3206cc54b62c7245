/*
 * The simulator measures itself: what the dials ask for against what programs and a log get to see.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/wire.h"
#include "sim/experiments/experiment.h"
#include "sim/world/sim.h"

/* ---- kernel-network: every node sends probes to random others ---- */

enum { PROBES_PER_NODE = 100, PROBE_SIZE = 16, PROBE_ARRIVED = 1 };
static const uint64_t PROBE_PERIOD_US = 20000;

struct prober {
    struct prng prng;
    uint32_t index;
    uint32_t sent_count;
    uint32_t nodes_count;
};

/* What all runs of one setting add up to. */
struct probe_sums {
    uint8_t *arrivals; /* by probe */
    uint32_t nodes_count;
    uint64_t sent_count;
    uint64_t arrived_count; /* at least once */
    uint64_t copies_count;  /* all */
    uint64_t delay_us;      /* of all copies together */
};

static enum err prober_init(void *state, const struct birth *birth) {
    const uint32_t *nodes_count = birth->config;
    struct prober *prober = state;
    *prober = (struct prober){.index = birth->index, .nodes_count = *nodes_count};
    prng_init(&prober->prng, birth->seed);
    return ERR_OK;
}

static void send_probe(struct prober *prober, uint64_t now_us, struct outbox *out) {
    uint8_t memory[PROBE_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u64(&writer, (uint64_t)prober->index * PROBES_PER_NODE + prober->sent_count++);
    wire_write_u64(&writer, now_us);
    struct address to = sim_address((uint32_t)prng_below(&prober->prng, prober->nodes_count));
    outbox_send(out, &to, bytes_of(memory, sizeof memory));
}

static void prober_step(void *state, const struct event *event, struct outbox *out) {
    struct prober *prober = state;
    if (event->kind == EVENT_MESSAGE) {
        outbox_notice(out, PROBE_ARRIVED, event->bytes);
    }
    if (event->kind == EVENT_WAKE) {
        send_probe(prober, event->now_us, out);
    }
    if (prober->sent_count < PROBES_PER_NODE) {
        /* On a grid, so that a message between two wakes does not move the next one. */
        outbox_wake_at(out, event->now_us - event->now_us % PROBE_PERIOD_US + PROBE_PERIOD_US);
    }
}

static const struct program prober_program = {
    .name = "prober",
    .state_size = sizeof(struct prober),
    .actions_max = 2,
    .memory_size = 2 * PROBE_SIZE,
    .init = prober_init,
    .step = prober_step,
};

static void on_probe(void *context, struct sim *sim, uint32_t node, uint32_t code, struct bytes bytes) {
    (void)node;
    (void)code;
    struct probe_sums *sums = context;
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    uint64_t probe = wire_read_u64(&reader);
    sums->delay_us += sim_now_us(sim) - wire_read_u64(&reader);
    sums->copies_count++;
    if (sums->arrivals[probe]++ == 0) {
        sums->arrived_count++;
    }
}

static enum err probe(uint64_t seed, const struct network_dials *dials, struct probe_sums *sums,
                      struct digest *digest) {
    struct sim *sim = sim_new(&(struct sim_config){
        .seed = seed, .nodes_max = sums->nodes_count, .network = *dials, .inbound_max = UINT32_MAX});
    if (sim == NULL) {
        return ERR_MEMORY;
    }
    size_t probes_count = (size_t)sums->nodes_count * PROBES_PER_NODE;
    sums->arrivals = calloc(probes_count, 1);
    enum err err = sums->arrivals == NULL ? ERR_MEMORY : ERR_OK;
    sim_observe(sim, &(struct sim_observer){.context = sums, .notice = on_probe});
    err = err != ERR_OK ? err : sim_add_all(sim, &prober_program, &sums->nodes_count);
    for (uint32_t i = 0; i < sums->nodes_count && err == ERR_OK; i++) {
        sim_start_at(sim, i, 0);
    }
    err = err != ERR_OK ? err : sim_run_until(sim, 60 * SIM_SECOND_US);
    sums->sent_count += probes_count;
    sim_digest_into(sim, digest);
    free(sums->arrivals);
    sums->arrivals = NULL;
    sim_free(sim);
    return err;
}

enum err experiment_kernel_network(const struct experiment_args *args, struct report *report,
                                   struct err_detail *detail) {
    static const uint32_t loss_percent[] = {0, 1, 2, 5, 10, 20, 30, 40, 50};
    report_init(report, "The virtual network: asked and measured", "measured (% of messages)");
    REPORT_COLUMNS(report, {"loss asked (%)", 1, REPORT_X}, {"loss", 2, REPORT_Y},
                   {"duplicates asked", 1, REPORT_SHOWN}, {"duplicates", 2, REPORT_Y},
                   {"latency asked (ms)", 2, REPORT_SHOWN}, {"latency (ms)", 2, REPORT_SHOWN},
                   {"probes", 0, REPORT_SHOWN});
    for (uint32_t i = 0; i < sizeof loss_percent / sizeof loss_percent[0]; i++) {
        struct network_dials dials = {
            .latency_us = 10000 * (i + 1),
            .jitter_us = 4000 * i,
            .loss_ppm = 10000 * loss_percent[i],
            .duplicate_ppm = 5000 * loss_percent[i],
        };
        struct probe_sums sums = {.nodes_count = args->nodes};
        for (uint32_t run = 0; run < args->runs; run++) {
            enum err err = probe(args->seed + run, &dials, &sums, &report->digest);
            if (err != ERR_OK) {
                return err_set(detail, err, "%s", err_text(err));
            }
        }
        REPORT_NUMBERS(report, dials.loss_ppm / 1e4,
                       report_percent(sums.sent_count - sums.arrived_count, sums.sent_count),
                       dials.duplicate_ppm / 1e4,
                       report_percent(sums.copies_count - sums.arrived_count, sums.arrived_count),
                       (dials.latency_us + dials.jitter_us / 2.0) / 1e3);
        report_number(report,
                      sums.copies_count == 0 ? 0 : (double)sums.delay_us / (double)sums.copies_count / 1e3);
        report_number(report, (double)sums.sent_count);
    }
    return report->err;
}

/* ---- kernel-disk: logs that are appended to, synced now and then, and crashed ---- */

enum { RECORD_HEADER_SIZE = 20, RECORD_BODY_SIZE_MAX = 1500, RECORDS_PER_LIFE_MAX = 40 };

/* A record is u64 SipHash of the rest | u64 number from 0 | u32 size | that many bytes. */
struct log {
    struct disk disk;
    struct prng prng;
    uint32_t handle;
    uint64_t records_count; /* appended */
    uint64_t synced_count;  /* acknowledged */
};

struct log_sums {
    uint64_t crashes_count;
    uint64_t synced_count;
    uint64_t synced_lost_count;
    uint64_t unsynced_count;
    uint64_t unsynced_lost_count;
    uint64_t torn_count; /* crashes that left bytes behind the last sound record */
};

static enum err append_record(struct log *log) {
    uint8_t memory[RECORD_HEADER_SIZE + RECORD_BODY_SIZE_MAX];
    uint32_t body_size = (uint32_t)prng_between(&log->prng, 1, RECORD_BODY_SIZE_MAX);
    struct wire_writer writer;
    wire_writer_init(&writer, memory + 8, RECORD_HEADER_SIZE - 8);
    wire_write_u64(&writer, log->records_count);
    wire_write_u32(&writer, body_size);
    prng_fill(&log->prng, memory + RECORD_HEADER_SIZE, body_size);
    struct bytes record = bytes_of(memory, RECORD_HEADER_SIZE + body_size);
    wire_writer_init(&writer, memory, 8);
    wire_write_u64(&writer, map_hash(bytes_skip(record, 8), 0));
    log->records_count++;
    return disk_append(&log->disk, log->handle, record);
}

/* Count the sound records from the start; *ret_size is where the last of them ends. */
static enum err kernel_scan(struct log *log, uint64_t *ret_count, uint64_t *ret_size) {
    uint64_t count = 0;
    uint64_t offset = 0;
    for (;;) {
        uint8_t memory[RECORD_HEADER_SIZE + RECORD_BODY_SIZE_MAX];
        size_t size;
        enum err err = disk_read(&log->disk, log->handle, offset, memory, sizeof memory, &size);
        if (err != ERR_OK) {
            return err;
        }
        struct wire_reader reader;
        wire_reader_init(&reader, bytes_of(memory, size));
        uint64_t expected = wire_read_u64(&reader);
        uint64_t number = wire_read_u64(&reader);
        uint32_t body_size = wire_read_u32(&reader);
        wire_read_bytes(&reader, body_size);
        if (reader.err != ERR_OK || number != count ||
            map_hash(bytes_slice(reader.input, 8, reader.offset), 0) != expected) {
            break;
        }
        count++;
        offset += reader.offset;
    }
    *ret_count = count;
    *ret_size = offset;
    return ERR_OK;
}

/* Append some records, sync after a few of them, and stop in the middle. */
static enum err live(struct log *log) {
    uint64_t records_count = prng_between(&log->prng, 1, RECORDS_PER_LIFE_MAX);
    for (uint64_t i = 0; i < records_count; i++) {
        enum err err = append_record(log);
        if (err == ERR_OK && prng_below(&log->prng, 8) == 0) {
            err = disk_sync(&log->disk, log->handle);
            log->synced_count = err == ERR_OK ? log->records_count : log->synced_count;
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    return disk_crash(&log->disk);
}

/* What the crash left, counted; then the torn tail is cut, as a store does at start. */
static enum err recover(struct log *log, struct log_sums *sums, struct digest *digest) {
    uint64_t file_size;
    uint64_t found_count;
    uint64_t sound_size;
    enum err err = disk_open(&log->disk, "log", 0, &log->handle);
    err = err != ERR_OK ? err : disk_size(&log->disk, log->handle, &file_size);
    err = err != ERR_OK ? err : kernel_scan(log, &found_count, &sound_size);
    err = err != ERR_OK ? err : disk_truncate(&log->disk, log->handle, sound_size);
    err = err != ERR_OK ? err : disk_sync(&log->disk, log->handle);
    if (err != ERR_OK) {
        return err;
    }
    uint64_t synced_found = found_count < log->synced_count ? found_count : log->synced_count;
    sums->crashes_count++;
    sums->synced_count += log->synced_count;
    sums->synced_lost_count += log->synced_count - synced_found;
    sums->unsynced_count += log->records_count - log->synced_count;
    sums->unsynced_lost_count += log->records_count - log->synced_count - (found_count - synced_found);
    sums->torn_count += file_size > sound_size;
    digest_u64(digest, file_size);
    digest_u64(digest, found_count);
    log->records_count = found_count;
    log->synced_count = found_count;
    return ERR_OK;
}

static enum err run_log(uint64_t seed, uint32_t lives_count, const struct disk_dials *dials,
                        struct log_sums *sums, struct digest *digest) {
    struct log log = {0};
    disk_init(&log.disk, dials, prng_mix(seed));
    prng_init(&log.prng, seed);
    enum err err = disk_open(&log.disk, "log", DISK_CREATE | DISK_EXCLUSIVE, &log.handle);
    err = err != ERR_OK ? err : disk_sync_directory(&log.disk, "");
    for (uint32_t i = 0; i < lives_count && err == ERR_OK; i++) {
        err = live(&log);
        err = err != ERR_OK ? err : recover(&log, sums, digest);
    }
    disk_done(&log.disk);
    return err;
}

enum err experiment_kernel_disk(const struct experiment_args *args, struct report *report,
                                struct err_detail *detail) {
    static const uint32_t lost_percent[] = {0, 1, 5, 10, 25, 50, 75, 100};
    report_init(report, "A log on the virtual disk after crashes", "% of its kind");
    REPORT_COLUMNS(report, {"writes lost or torn (%)", 0, REPORT_X}, {"crashes", 0, REPORT_SHOWN},
                   {"acknowledged", 0, REPORT_SHOWN}, {"acknowledged lost", 0, REPORT_Y},
                   {"unsynced", 0, REPORT_SHOWN}, {"unsynced lost (%)", 1, REPORT_Y},
                   {"torn tails (%)", 1, REPORT_Y});
    for (uint32_t i = 0; i < sizeof lost_percent / sizeof lost_percent[0]; i++) {
        uint32_t ppm = 10000 * lost_percent[i];
        struct disk_dials dials = {.write_lost_ppm = ppm / 2, .write_torn_ppm = ppm, .entry_lost_ppm = ppm};
        struct log_sums sums = {0};
        for (uint32_t disk = 0; disk < args->nodes; disk++) {
            uint64_t seed = args->seed + disk;
            enum err err = run_log(seed, args->runs, &dials, &sums, &report->digest);
            if (err != ERR_OK) {
                return err_set(detail, err, "seed %llu: %s", (unsigned long long)seed, err_text(err));
            }
            if (sums.synced_lost_count > 0) {
                return err_set(detail, ERR_MISMATCH, "seed %llu: %llu synced records were lost",
                               (unsigned long long)seed, (unsigned long long)sums.synced_lost_count);
            }
        }
        REPORT_NUMBERS(report, lost_percent[i], (double)sums.crashes_count, (double)sums.synced_count,
                       (double)sums.synced_lost_count, (double)sums.unsynced_count,
                       report_percent(sums.unsynced_lost_count, sums.unsynced_count),
                       report_percent(sums.torn_count, sums.crashes_count));
    }
    return report->err;
}
