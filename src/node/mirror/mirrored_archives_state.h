/*
 * mirrored_archives_state - the state of mirrored_archives.h. Private.
 *
 * One machine in several files: mirrored_archives.c finds the archives, reads and writes what is known of
 * each; mirrored_archives_update.c indexes a new version and lets readers see it. The task alone changes
 * anything; what others are shown of an archive is under the lock.
 */
#ifndef MNEMON_NODE_MIRROR_MIRRORED_ARCHIVES_STATE_H
#define MNEMON_NODE_MIRROR_MIRRORED_ARCHIVES_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "node/mirror/collection_setup.h"
#include "node/mirror/mirrored_archives.h"
#include "run/task.h"

enum {
    MIRRORED_ARCHIVES_VOLUMES_MAX = 32, /* of one archive */
    MIRRORED_ARCHIVES_CACHE_SIZE = 8 << 20,
};

enum mirrored_archives_phase {
    MIRRORED_ARCHIVES_NONE, /* no archive, as far as is known */
    MIRRORED_ARCHIVES_INDEXING,
    MIRRORED_ARCHIVES_READY,
    MIRRORED_ARCHIVES_REFUSED, /* the newest version; the one before may be served */
};

/* One volume of an archive. */
struct mirrored_archives_volume {
    uint16_t name;   /* there: volumes/NAME */
    uint16_t number; /* here: INSTANCE_MIRRORED_NUMBER and up; 0: none yet */
    uint64_t mark;   /* of its index; 0: none yet */
    bool is_listed;  /* while a version is looked at */
};

/* What state.json says. */
struct mirrored_archives_file {
    uint64_t number; /* of the version that is indexed, or was being; 0: none */
    uint8_t publisher[PEER_KEY_SIZE];
    struct mirrored_archives_volume volumes[MIRRORED_ARCHIVES_VOLUMES_MAX];
    size_t volumes_count;
};

/* One collection. */
struct mirrored {
    char name[VERSION_NAME_SIZE_MAX + 1];
    struct mirrored_archives_file file;
    bool is_listed;       /* while the list is made anew */
    bool is_dropped;      /* only its files are left to be removed */
    uint64_t seen_number; /* of the version that was last looked at; 0: none */
    uint64_t retry_at_us; /* if that failed for a reason that may pass; 0: it did not */

    /* lock */
    enum mirrored_archives_phase phase;
    uint64_t number;         /* of the version that is served; 0: none */
    uint64_t captures_count; /* an estimate */
    uint64_t records_count;  /* entered for the last version */
    uint64_t took_us;
    uint64_t done_size; /* of segments, while indexing */
    uint64_t all_size;
    uint64_t damaged_count;
    char reason[ERR_TEXT_SIZE_MAX]; /* of a refusal, or the first damage */
};

struct mirrored_archives {
    struct mirrored_archives_config config;
    struct task task;
    struct mirrored *mirrored[INSTANCE_MIRRORED_MAX];
    size_t mirrored_count;
    bool is_used[INSTANCE_MIRRORED_MAX]; /* numbers that a collection of this data directory has */

    pthread_mutex_t lock;
};

/* mirrored_archives_update.c: serve this version of its tree. Errors are noted. */
void mirrored_archives_update(struct mirrored_archives *archives, struct mirrored *mirrored, uint64_t number);

/* Nobody finds it any more. Then, until it is true: its indexes are removed, when no reader has them open. */
void mirrored_archives_drop(struct mirrored_archives *archives, struct mirrored *mirrored);

bool mirrored_archives_clean(const struct mirrored_archives *archives, const struct mirrored *mirrored);

/* mirrored_archives.c. */
enum err mirrored_archives_file_write(const char *directory, const char *name,
                                      const struct mirrored_archives_file *file,
                                      struct err_detail *detail) MUST_CHECK;

/* "deposit/0-00c0ffee00c0ffee", in the directory of the collection. */
enum { MIRRORED_ARCHIVES_INDEX_NAME_SIZE = 48 };
const char *mirrored_archives_index_name(const struct mirrored_archives_volume *volume,
                                         char out[MIRRORED_ARCHIVES_INDEX_NAME_SIZE]);

/* Indexes that the file does not name. One that a reader has open stays until the next time. */
void mirrored_archives_file_clean(const char *directory, const char *name,
                                  const struct mirrored_archives_file *file);

#endif
