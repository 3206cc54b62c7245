#include "node/admin/sample.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { JOBS_SIZE_MAX = 64 << 20 };

/* ---- crawl ---- */

static void take_crawl(const struct sample_sources *sources, struct sample *sample) {
    struct arena arena;
    struct job_progress *jobs;
    arena_init(&arena, JOBS_SIZE_MAX);
    crawl_loop_stat(sources->crawl_loop, &sample->crawl);
    sample->jobs_count = crawl_loop_jobs(sources->crawl_loop, &arena, &jobs);
    for (size_t i = 0; i < sample->jobs_count; i++) {
        sample->urls_known_count += jobs[i].known_count;
        sample->urls_waiting_count += jobs[i].waiting_count;
    }
    arena_done(&arena);
}

/* ---- store ---- */

static void take_disk(struct node_status_volume *volume) {
    struct statvfs disk;
    volume->has_disk = !volume->volume.is_remote && statvfs(volume->volume.place, &disk) == 0;
    if (volume->has_disk) {
        volume->free_size = (uint64_t)disk.f_bavail * disk.f_frsize;
        volume->disk_size = (uint64_t)disk.f_blocks * disk.f_frsize;
    }
}

static void add_load(struct sample *sample, struct volume *volume) {
    struct volume_load load;
    struct index_counts counts;
    volume_load(volume, &load);
    index_counts(volume_index(volume), &counts);
    sample->load.groups_count += load.groups_count;
    sample->load.documents_count += load.documents_count;
    sample->load.commit_us += load.commit_us;
    sample->load.sync_us += load.sync_us;
    sample->load.taken_count += load.taken_count;
    sample->load.queue_size += load.queue_size;
    sample->load.err = load.err != ERR_OK ? load.err : sample->load.err;
    sample->index_memory_size += counts.memory_size;
    sample->compactions_count += counts.compactions_count;
    uint64_t by_count = load.taken_count * 100 / VOLUME_QUEUE_COUNT_MAX;
    uint64_t by_size = load.queue_size * 100 / VOLUME_QUEUE_SIZE_MAX;
    uint64_t percent = by_count > by_size ? by_count : by_size;
    sample->queue_percent = percent > sample->queue_percent ? percent : sample->queue_percent;
}

static void add_volume(struct sample *sample, const struct node_status_volume *volume) {
    if (volume->has_stat) {
        sample->store.segments_count += volume->stat.segments_count;
        sample->store.size += volume->stat.size;
        sample->store.dead_size += volume->stat.dead_size;
        sample->store.blocks_count += volume->stat.blocks_count;
        sample->store.captures_count += volume->stat.captures_count;
        sample->store.index_size += volume->stat.index_size;
        sample->used_size += volume->volume.is_remote ? 0 : volume->stat.size + volume->stat.index_size;
    }
    if (volume->has_disk && volume->free_size < sample->free_size) {
        sample->free_size = volume->free_size;
    }
    sample->writable_count += volume->volume.is_writable && volume->volume.err == ERR_OK;
    if (volume->volume.volume != NULL) {
        add_load(sample, volume->volume.volume);
    }
}

static void take_store(const struct sample_sources *sources, bool asks_remote, struct sample *sample,
                       struct sample_volumes *volumes) {
    volumes->count = instance_volumes_count(sources->instance);
    sample->free_size = UINT64_MAX;
    for (size_t i = 0; i < volumes->count; i++) {
        struct node_status_volume *volume = &volumes->items[i];
        instance_volume(sources->instance, i, &volume->volume);
        bool is_up = volume->volume.backend != NULL &&
                     (volume->volume.err == ERR_OK || err_is_full(volume->volume.err));
        if (is_up && (asks_remote || !volume->volume.is_remote)) {
            volume->has_stat = instance_stat(sources->session, i, &volume->stat, NULL) == ERR_OK;
        }
        take_disk(volume);
        add_volume(sample, volume);
    }
    sample->free_size = sample->free_size == UINT64_MAX ? 0 : sample->free_size;
    const struct quota *quota = instance_quota(sources->instance);
    sample->quota_size = quota->size_max;
    sample->used_size = quota_is_set(quota) ? quota_used(quota) : sample->used_size;
}

/* ---- HTTP ---- */

static void take_http(const struct sample_sources *sources, struct sample *sample) {
    http_server_stat(sources->http, &sample->http);
    sample->refused_count = admin_refused_count(sources->admin);
    for (size_t i = 0; i <= sources->routes_count; i++) {
        struct http_route_stat route;
        http_server_route_stat(sources->http, i, &route);
        sample->server_errors_count += route.statuses[5];
        for (size_t j = 0; j <= HTTP_DELAYS_COUNT; j++) {
            sample->delays[j] += route.delays[j];
        }
    }
}

double sample_delay_ms(const struct sample *now, const struct sample *before, unsigned per_mille) {
    uint64_t all = 0;
    for (size_t i = 0; i <= HTTP_DELAYS_COUNT; i++) {
        all += now->delays[i] - before->delays[i];
    }
    double wanted = (double)all * per_mille / 1000;
    double below = 0;
    for (size_t i = 0; i <= HTTP_DELAYS_COUNT && all > 0; i++) {
        double here = (double)(now->delays[i] - before->delays[i]);
        double from_us = i > 0 ? http_delays_us[i - 1] : 0;
        double to_us = i < HTTP_DELAYS_COUNT ? http_delays_us[i] : 2 * from_us;
        if (here > 0 && below + here >= wanted) {
            return (from_us + (to_us - from_us) * (wanted - below) / here) / 1000;
        }
        below += here;
    }
    return 0;
}

/* ---- process ---- */

/*
 * Files below /proc/self are made when they are looked for, one for each thread or descriptor, and the kernel
 * has to take them all away again when the process ends: on a busy machine that took 0.4 s. So nothing is
 * listed, if the kernel says how many there are (since 6.2).
 */
static uint64_t count_descriptors(void) {
    struct stat status;
    if (stat("/proc/self/fd", &status) == 0 && status.st_size > 0) {
        return (uint64_t)status.st_size;
    }
    DIR *directory = opendir("/proc/self/fd");
    uint64_t count = 0;
    while (directory != NULL && readdir(directory) != NULL) {
        count++;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return count > 3 ? count - 3 : 0; /* two names that are none, and the directory's own */
}

/* Fields 20 and 24 of /proc/self/stat; the second may have spaces, and is in brackets. */
static void take_size(struct sample *sample) {
    char text[1024];
    unsigned long threads_count = 0;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/stat", "re");
    size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = '\0';
    const char *behind_name = strrchr(text, ')');
    if (behind_name == NULL ||
        sscanf(behind_name + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %lu "
               "%*d %*u %*u %lu",
               &threads_count, &pages) != 2) {
        threads_count = pages = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    sample->threads_count = threads_count;
    sample->memory_size = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void take_process(struct sample *sample) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        sample->cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                         (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    take_size(sample);
    sample->descriptors_count = count_descriptors();
}

void sample_take(const struct sample_sources *sources, bool asks_remote, struct sample *ret_sample,
                 struct sample_volumes *volumes) {
    *ret_sample = (struct sample){
        .at_us = clock_monotonic_us(sources->clock),
        .wall_us = clock_wall_us(sources->clock),
        .has_search = sources->search != NULL,
        .has_confined_calls = sources->has_confined_calls,
        .confined_files = sources->confined_files,
        .has_parsers = sources->parsers != NULL,
        .has_rewritten = sources->rewritten != NULL,
    };
    take_crawl(sources, ret_sample);
    take_store(sources, asks_remote, ret_sample, volumes);
    if (sources->http != NULL) {
        take_http(sources, ret_sample);
    }
    if (sources->search != NULL) {
        search_stat(sources->search, &ret_sample->search);
    }
    if (sources->parsers != NULL) {
        parsers_stat(sources->parsers, &ret_sample->parsers);
    }
    if (sources->rewritten != NULL) {
        rewritten_stat(sources->rewritten, &ret_sample->rewritten);
    }
    take_process(ret_sample);
}

double sample_rate(const struct sample *now, const struct sample *before, uint64_t count,
                   uint64_t count_before) {
    double seconds = (double)(now->at_us - before->at_us) / 1e6;
    return seconds > 0 && count > count_before ? (double)(count - count_before) / seconds : 0;
}
