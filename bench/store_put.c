#include <fcntl.h>
#include <unistd.h>

#include "store.h"

enum { LARGE_COUNT = 96, LARGE_SIZE = 8 << 20, TABLE_COUNT = 3000, DETECTION_ROUNDS = 5 };

/* What storing a set in a new volume, and then all of it again, came to. */
struct outcome {
    double rate;
    double cpu_us;
    double duplicates_rate; /* of the same URLs */
    double duplicates_cpu_us;
    double others_rate; /* of other URLs */
    double others_cpu_us;
    double reopened_rate; /* of yet others, after the volume was closed and opened */
    double reopened_cpu_us;
};

static struct outcome put_fresh(const struct set *set, unsigned threads, bool is_http, bool submits) {
    struct place place;
    struct outcome outcome = {0};
    place_settle();
    place_open(&place, "fresh", PACK_ZSTD);
    struct job job = {.work = submits ? work_submit : work_put,
                      .threads = threads,
                      .count = set->count,
                      .place = &place,
                      .set = set,
                      .is_http = is_http,
                      .seconds_max = SECONDS_MAX};
    outcome.rate = job_run(&job);
    outcome.cpu_us = job.cpu_us;
    job.count = job.done;
    outcome.duplicates_rate = job_run(&job);
    outcome.duplicates_cpu_us = job.cpu_us;
    job.copy++;
    outcome.others_rate = job_run(&job);
    outcome.others_cpu_us = job.cpu_us;
    if (submits) {
        place_close(&place);
        place_open(&place, "fresh", PACK_ZSTD);
        job.copy++;
        outcome.reopened_rate = job_run(&job);
        outcome.reopened_cpu_us = job.cpu_us;
    }
    place_close(&place);
    place_remove("fresh");
    return outcome;
}

static double put_files(const struct set *set, unsigned threads, bool syncs_directory) {
    place_settle();
    struct job job = {.work = work_file_put,
                      .threads = threads,
                      .count = set->count,
                      .set = set,
                      .files = "files",
                      .syncs = true,
                      .syncs_directory = syncs_directory,
                      .seconds_max = SECONDS_MAX};
    double rate = job_run(&job);
    place_settle();
    for (size_t i = 0; i < set->count; i++) {
        char path[PATH_SIZE_MAX];
        files_path(&job, i, path);
        unlink(path);
    }
    return rate;
}

static void print_duplicates(const char *of, double rate, double cpu_us, const struct outcome *outcome) {
    char what[80];
    snprintf(what, sizeof what, "  duplicates%s vs new (target 3x)", of);
    bench_row(what, rate, "docs/s", rate / outcome->rate);
    bench_row("    processor time, new vs it", cpu_us, "us/doc", outcome->cpu_us / cpu_us);
}

static void print_outcome(const struct outcome *outcome) {
    bench_row("  processor time", outcome->cpu_us, "us/doc", 0);
    print_duplicates("", outcome->duplicates_rate, outcome->duplicates_cpu_us, outcome);
    print_duplicates(" of other URLs", outcome->others_rate, outcome->others_cpu_us, outcome);
    if (outcome->reopened_rate > 0) {
        print_duplicates(", reopened,", outcome->reopened_rate, outcome->reopened_cpu_us, outcome);
    }
}

/* Against as many writers of files, and against one, which is what the target speaks of. */
static void bench_writers(const struct set *set, unsigned threads, double *one_file_writer) {
    char what[80];
    double minimal = put_files(set, threads, false);
    double files = put_files(set, threads, true);
    *one_file_writer = threads == 1 ? files : *one_file_writer;
    struct outcome outcome = put_fresh(set, threads, false, false);
    snprintf(what, sizeof what, "files, fdatasync, %u writers", threads);
    bench_row(what, minimal, "docs/s", 0);
    snprintf(what, sizeof what, "files, fdatasync + directory, %u writers", threads);
    bench_row(what, files, "docs/s", 0);
    snprintf(what, sizeof what, "volume, %u writers, vs as many of files", threads);
    bench_row(what, outcome.rate, "docs/s", outcome.rate / files);
    bench_row("  vs one writer of files (target 8x)", outcome.rate, "docs/s",
              outcome.rate / *one_file_writer);
    print_outcome(&outcome);
}

void bench_put(const struct sets *sets) {
    static const unsigned threads[] = {1, 16, 64};
    double one_file_writer = 0;
    printf("\nstore, durable: %zu new documents of %.1f KB on average\n", sets->originals.count,
           (double)sets->originals.size / (double)sets->originals.count / 1e3);
    files_make_directories("files");
    for (size_t i = 0; i < 3; i++) {
        bench_writers(&sets->originals, threads[i], &one_file_writer);
    }
    struct outcome outcome = put_fresh(&sets->originals, 2, false, true);
    bench_row("volume, 2 threads, told by callback", outcome.rate, "docs/s", 0);
    bench_row("  vs one writer of files (target 8x)", outcome.rate, "docs/s", outcome.rate / one_file_writer);
    print_outcome(&outcome);
    outcome = put_fresh(&sets->pages, 64, false, false);
    bench_row("volume, pages only, 64 writers", outcome.rate, "docs/s", 0);
    print_outcome(&outcome);
    outcome = put_fresh(&sets->pages, 64, true, false);
    bench_row("volume, pages as HTTP responses, 64 writers", outcome.rate, "docs/s", 0);
    print_outcome(&outcome);
    bench_row("volume, 25 % duplicates, 64 writers", put_fresh(&sets->all, 64, false, false).rate, "docs/s",
              0);
}

/* The disk alone: the same bytes in calls of the same size, synced as often as a group would be. */
static double write_sequentially(const uint8_t *data) {
    char path[PATH_SIZE_MAX];
    place_path(path, "sequential");
    place_settle();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    must(fd >= 0, "open");
    double start_s = bench_now_s();
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        must(write(fd, data + i * 4096, LARGE_SIZE) == LARGE_SIZE, "write");
        must(i % 8 != 7 || fdatasync(fd) == 0, "fdatasync");
    }
    double taken_s = bench_now_s() - start_s;
    close(fd);
    unlink(path);
    return (double)LARGE_COUNT * LARGE_SIZE / taken_s / 1e6;
}

void bench_large(const struct sets *sets) {
    (void)sets;
    size_t size = LARGE_SIZE + (size_t)LARGE_COUNT * 4096;
    uint8_t *data = malloc(size);
    must(data != NULL, "malloc");
    struct prng prng;
    prng_init(&prng, SEED);
    prng_fill(&prng, data, size);
    struct set set = set_new(LARGE_COUNT);
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        set_add(&set, bytes_of(data + i * 4096, LARGE_SIZE), false);
    }
    double disk = 0;
    double volume = 0;
    for (int round = 0; round < 2; round++) {
        double disk_now = write_sequentially(data);
        double volume_now = put_fresh(&set, 8, false, false).rate * LARGE_SIZE / 1e6;
        disk = disk_now > disk ? disk_now : disk;
        volume = volume_now > volume ? volume_now : volume;
    }
    printf("\nlarge documents: %d of 8 MiB, incompressible\n", LARGE_COUNT);
    bench_row("disk, sequential, a sync every 64 MiB", disk, "MB/s", 0);
    bench_row("volume, 8 writers (target 0.5x)", volume, "MB/s", volume / disk);
    free(data);
}

static int compare_doubles(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

void bench_modes(const struct sets *sets) {
    static const char *const names[] = {"regular", "compare", "force-new"};
    struct place place;
    place_settle();
    place_open(&place, "modes", PACK_ZSTD);
    struct job job = {
        .work = work_put, .threads = 64, .count = TABLE_COUNT, .place = &place, .set = &sets->pages};
    job.count = job.count < sets->pages.count ? job.count : sets->pages.count;
    job_run(&job);
    printf("\nmodes: %zu pages each, 64 writers, documents/s at a share of duplicates of\n%-12s", job.count,
           "");
    for (unsigned share = 0; share <= 100; share += 20) {
        printf(" %8u %%", share);
    }
    printf("\n");
    for (unsigned mode = STORE_REGULAR; mode <= STORE_FORCE_NEW; mode++) {
        printf("%-12s", names[mode]);
        for (unsigned share = 0; share <= 100; share += 20) {
            job.mode = (enum store_mode)mode;
            job.duplicates_pc = share;
            job.stamp++;
            printf(" %10.0f", job_run(&job));
            fflush(stdout);
        }
        printf("\n");
    }
    /* The clock's noise is larger than the difference, so: processor time, alternating, the middle ratio. */
    double ratios[DETECTION_ROUNDS];
    double regular_us = 0;
    job.duplicates_pc = 0;
    for (size_t i = 0; i < DETECTION_ROUNDS; i++) {
        job.mode = STORE_FORCE_NEW;
        job.stamp++;
        job_run(&job);
        double force_new_us = job.cpu_us;
        job.mode = STORE_REGULAR;
        job.stamp++;
        job_run(&job);
        regular_us = job.cpu_us;
        ratios[i] = force_new_us / regular_us;
    }
    qsort(ratios, DETECTION_ROUNDS, sizeof *ratios, compare_doubles);
    bench_row("detection, force-new/regular (target 0.97x)", regular_us, "us/doc",
              ratios[DETECTION_ROUNDS / 2]);
    place_close(&place);
    place_remove("modes");
}
