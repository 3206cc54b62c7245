/*
 * store - what the parts of bench-store share: documents in memory, places on disk, and many threads against
 * one clock.
 *
 *      store.c             the program
 *      store_job.c         documents, places, threads; the work on a volume
 *      store_files.c       the same work on one file per document
 *      store_put.c         storing
 *      store_get.c         retrieving and deleting
 *      store_space.c       bytes
 *      store_recovery.c    opening after a crash, reindexing
 */
#ifndef MNEMON_BENCH_STORE_H
#define MNEMON_BENCH_STORE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench.h"
#include "corpus.h"
#include "store/volume/volume.h"

enum { SEED = 1, PATH_SIZE_MAX = 512, THREADS_MAX = 256 };
static const double SECONDS_MAX = 2;

static inline void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-store: %s failed: %s\n", what, strerror(errno));
        exit(1);
    }
}

/* ---- documents in memory ---- */

struct set {
    struct bytes *bodies;
    bool *are_pages;
    size_t count;
    uint64_t size;
};

struct set set_new(size_t count);
void set_add(struct set *set, struct bytes body, bool is_page);

/* All documents; those that are new; and the pages among the new ones. They share the bodies. */
struct sets {
    struct set all;
    struct set originals;
    struct set pages;
};

struct sets sets_make(const struct corpus *corpus, size_t count);

/* ---- places on disk ---- */

/* A directory for all places, removed at the end. */
void place_make_root(void);
void place_path(char out[PATH_SIZE_MAX], const char *name);
void place_remove(const char *name);

/* Nothing that other runs left unwritten disturbs the next. */
void place_settle(void);

/* False where that is not permitted. */
bool place_drop_caches(void);

/* A volume in a directory of its own. */
struct place {
    struct vfs_posix vfs;
    char root[PATH_SIZE_MAX];
    char index[PATH_SIZE_MAX + 16];
    struct volume_config config;
    struct volume_recovery recovery;
    struct volume *volume;
};

void place_open(struct place *place, const char *name, enum pack_framing framing);
void place_close(struct place *place);

/* ---- many threads, one clock ---- */

struct job {
    /* Documents from the iterator until false; a worker sets up what is its own first. */
    void (*work)(struct job *job, unsigned thread);
    unsigned threads;
    size_t count;
    double seconds_max;
    pthread_barrier_t barrier;
    atomic_size_t next;
    atomic_size_t done;
    double until_s;
    double cpu_us; /* per document, of the last run: less noisy than the clock on a shared machine */

    struct place *place;
    const struct set *set;
    enum store_mode mode;
    uint64_t stamp;         /* 0: documents as they are */
    unsigned duplicates_pc; /* of a stamped run: so many documents stay as they are */
    struct stored *stored;  /* of each document; may be NULL */
    const char *files;      /* directory of files, instead of a place */
    bool syncs;
    bool syncs_directory;
    bool is_http;
    unsigned copy; /* another number: other URLs */
};

/* Called by a worker before its first and after its last document. */
void job_meet(struct job *job);
bool job_next(struct job *job, size_t *ret_i);

/* Documents per second. */
double job_run(struct job *job);

void work_put(struct job *job, unsigned thread);
void work_submit(struct job *job, unsigned thread);
void work_get(struct job *job, unsigned thread);
void work_remove(struct job *job, unsigned thread);

/* ---- one file per document ---- */

/* Made by the first section that needs them. */
void files_make_directories(const char *name);
size_t files_path(const struct job *job, size_t i, char path[PATH_SIZE_MAX]);

void work_file_put(struct job *job, unsigned thread);
void work_file_get(struct job *job, unsigned thread);
void work_file_remove(struct job *job, unsigned thread);

/* ---- sections ---- */

void bench_put(const struct sets *sets);
void bench_large(const struct sets *sets);
void bench_modes(const struct sets *sets);
void bench_get(const struct sets *sets);
void bench_space(const struct sets *sets);
void bench_recovery(const struct sets *sets);

#endif
