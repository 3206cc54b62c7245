#include "store.h"

static void copy_directory(const char *from, const char *to) {
    char command[4 * PATH_SIZE_MAX];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", to, from, to);
    must(system(command) == 0, "cp");
}

static double rebuild_s(struct place *place) {
    place_close(place);
    must(vfs_posix_init(&place->vfs, place->root, NULL) == ERR_OK, "vfs_posix_init");
    double start_s = bench_now_s();
    place->config.is_rebuilding = true;
    must(volume_open(&place->config, &place->volume, &place->recovery, NULL) == ERR_OK, "volume_open");
    place->config.is_rebuilding = false;
    return bench_now_s() - start_s;
}

/* What a machine's crash may take from the index: half of the documents were entered after its last flush. */
static void bench_stale_index(const struct sets *sets) {
    struct place place;
    char old_index[PATH_SIZE_MAX];
    place_path(old_index, "old-index");
    place_open(&place, "recovery", PACK_ZSTD);
    struct job job = {.work = work_put,
                      .threads = 64,
                      .count = sets->originals.count / 2,
                      .place = &place,
                      .set = &sets->originals};
    job_run(&job);
    place_close(&place);
    copy_directory(place.index, old_index);
    place_open(&place, "recovery", PACK_ZSTD);
    job.stamp = 1;
    job_run(&job);
    place_close(&place);
    copy_directory(old_index, place.index);
    double start_s = bench_now_s();
    place_open(&place, "recovery", PACK_ZSTD);
    double taken_s = bench_now_s() - start_s;
    printf("open, index %ju documents behind: %.2f s (target 5 s)\n", (uintmax_t)place.recovery.records_count,
           taken_s);
    place_close(&place);
    place_remove("recovery");
}

static void bench_reindex(const struct sets *sets) {
    static const struct {
        enum pack_framing framing;
        const char *name;
    } framings[] = {{PACK_PLAIN, "plain"}, {PACK_GZIP, "gzip"}, {PACK_ZSTD, "zstd"}};
    for (size_t i = 0; i < 3; i++) {
        struct place place;
        place_open(&place, "recovery", framings[i].framing);
        struct job job = {.work = work_put,
                          .threads = 64,
                          .count = sets->originals.count,
                          .place = &place,
                          .set = &sets->originals,
                          .seconds_max = 2 * SECONDS_MAX};
        job_run(&job);
        double taken_s = rebuild_s(&place);
        struct volume_stat stat;
        volume_stat(place.volume, &stat);
        double size = (double)sets->originals.size * (double)job.done / (double)sets->originals.count;
        char what[80];
        snprintf(what, sizeof what, "reindex, %s, of what is in it%s", framings[i].name,
                 i == 0 ? " (target 300)" : "");
        bench_row(what, size / taken_s / 1e6, "MB/s", 0);
        snprintf(what, sizeof what, "reindex, %s, of the file", framings[i].name);
        bench_row(what, (double)stat.size / taken_s / 1e6, "MB/s", 0);
        place_close(&place);
        place_remove("recovery");
    }
}

void bench_recovery(const struct sets *sets) {
    printf("\nrecovery, %zu documents\n", sets->originals.count);
    bench_stale_index(sets);
    bench_reindex(sets);
}
