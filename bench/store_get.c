#include "store.h"

/* All pages in a volume, and all of them as files. */
static void fill_both(const struct set *pages, struct place *place, struct stored *stored) {
    place_open(place, "read", PACK_ZSTD);
    struct job volume = {.work = work_put,
                         .threads = 64,
                         .count = pages->count,
                         .place = place,
                         .set = pages,
                         .stored = stored};
    job_run(&volume);
    files_make_directories("files");
    struct job files = {
        .work = work_file_put, .threads = 8, .count = pages->count, .set = pages, .files = "files"};
    job_run(&files);
}

static void print_get(const struct job *job, bool is_cold, double files, double volume) {
    char what[80];
    const char *state = is_cold ? "cold" : "cached";
    const char *target = job->threads == 2 ? " (100,000/s)" : "";
    snprintf(what, sizeof what, "files, %s, %u readers", state, job->threads);
    bench_row(what, files, "docs/s", 0);
    snprintf(what, sizeof what, "volume, %s, %u readers%s", state, job->threads,
             is_cold ? " (target 1.8x)" : target);
    bench_row(what, volume, "docs/s", volume / files);
    if (!is_cold) {
        bench_row("  processor time", job->cpu_us, "us/doc", 0);
    }
}

/* Both sides; cold: with the caches of the system, and of the index, empty. */
static void get_both(struct job *job, bool is_cold) {
    struct place *place = job->place;
    if (is_cold) {
        place_close(place);
        place_drop_caches();
    }
    job->work = work_file_get;
    double files = job_run(job);
    if (is_cold) {
        place_drop_caches();
        place_open(place, "read", PACK_ZSTD);
    }
    job->work = work_get;
    print_get(job, is_cold, files, job_run(job));
}

static void retrieve(struct job *job, const struct set *pages) {
    static const unsigned threads[] = {1, 2, 8};
    job->seconds_max = 1.5;
    for (int is_cold = 0; is_cold < 2; is_cold++) {
        if (is_cold && !place_drop_caches()) {
            printf("cold: not measured, /proc/sys/vm/drop_caches cannot be written here\n");
            return;
        }
        for (size_t i = 0; i < 3; i++) {
            job->threads = threads[i];
            job->count = is_cold ? pages->count / 2 : SIZE_MAX / 2;
            get_both(job, is_cold);
        }
    }
}

static void delete_all(struct job *job, const struct set *pages) {
    size_t half = pages->count / 2;
    place_settle();
    job->work = work_file_remove;
    job->threads = 64;
    job->count = pages->count;
    job->seconds_max = SECONDS_MAX;
    double files = job_run(job);
    bench_row("delete files, directory synced, 64 threads", files, "docs/s", 0);
    job->work = work_remove;
    job->count = half;
    double volume = job_run(job);
    bench_row("delete, 64 threads (target 50,000/s)", volume, "docs/s", volume / files);
    bench_row("  processor time", job->cpu_us, "us/doc", 0);
    job->stored += half;
    job->count = pages->count - half;
    job->threads = THREADS_MAX;
    volume = job_run(job);
    bench_row("delete, 256 threads", volume, "docs/s", volume / files);
}

void bench_get(const struct sets *sets) {
    const struct set *pages = &sets->pages;
    struct place place;
    struct stored *stored = calloc(pages->count, sizeof *stored);
    must(stored != NULL, "calloc");
    fill_both(pages, &place, stored);
    printf("\nretrieve, %zu pages of %.1f KB, at random\n", pages->count,
           (double)pages->size / (double)pages->count / 1e3);
    struct job job = {.set = pages, .files = "files", .place = &place, .stored = stored};
    retrieve(&job, pages);
    delete_all(&job, pages);
    place_close(&place);
    place_remove("read");
    free(stored);
}
