/*
 * depositing_state - what the files of depositing*.c share. Private to them.
 *
 * The thread alone changes anything; what others are shown of a deposit is under the lock.
 */
#ifndef MNEMON_NODE_MIRROR_DEPOSITING_STATE_H
#define MNEMON_NODE_MIRROR_DEPOSITING_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "node/mirror/collection_setup.h"
#include "node/mirror/depositing.h"

enum {
    DEPOSITING_VOLUMES_MAX = 32, /* of one archive */
    DEPOSITING_CACHE_SIZE = 8 << 20,
};

enum depositing_phase {
    DEPOSITING_NONE, /* no archive, as far as is known */
    DEPOSITING_INDEXING,
    DEPOSITING_READY,
    DEPOSITING_REFUSED, /* the newest version; the one before may be served */
};

extern const char *const depositing_phases[];

/* One volume of an archive. */
struct depositing_volume {
    uint16_t name;   /* there: volumes/NAME */
    uint16_t number; /* here: INSTANCE_DEPOSIT_NUMBER and up; 0: none yet */
    uint64_t mark;   /* of its index; 0: none yet */
    bool is_listed;  /* while a version is looked at */
};

/* What state.json says. */
struct depositing_file {
    uint64_t number; /* of the version that is indexed, or was being; 0: none */
    uint8_t publisher[PEER_KEY_SIZE];
    struct depositing_volume volumes[DEPOSITING_VOLUMES_MAX];
    size_t volumes_count;
};

/* One collection. */
struct deposit {
    char name[VERSION_NAME_SIZE_MAX + 1];
    struct depositing_file file;
    bool is_listed;       /* while the list is made anew */
    bool is_dropped;      /* only its files are left to be removed */
    uint64_t seen_number; /* of the version that was last looked at; 0: none */
    uint64_t retry_at_us; /* where that failed for a reason that may pass; 0: it did not */

    /* lock */
    enum depositing_phase phase;
    uint64_t number;         /* of the version that is served; 0: none */
    uint64_t captures_count; /* an estimate */
    uint64_t records_count;  /* entered for the last version */
    uint64_t took_us;
    uint64_t done_size; /* of segments, while indexing */
    uint64_t all_size;
    uint64_t damaged_count;
    char reason[ERR_TEXT_SIZE_MAX]; /* of a refusal, or the first damage */
};

struct depositing {
    struct depositing_config config;
    pthread_t thread;
    atomic_bool is_stopping;
    struct deposit *deposits[INSTANCE_DEPOSITS_MAX];
    size_t deposits_count;
    bool is_used[INSTANCE_DEPOSITS_MAX]; /* numbers that a collection of this data directory has */

    pthread_mutex_t lock;
    pthread_cond_t woken;
};

/* depositing_update.c: serve this version of its tree. Errors are noted. */
void depositing_update(struct depositing *depositing, struct deposit *deposit, uint64_t number);

/* Nobody finds it any more. Then, until it is true: its indexes are removed, when no reader has them open. */
void depositing_drop(struct depositing *depositing, struct deposit *deposit);

bool depositing_clean(const struct depositing *depositing, const struct deposit *deposit);

/* "NAME@KEY", as people subscribe to it. */
void depositing_origin(const struct deposit *deposit, char out[INSTANCE_ORIGIN_SIZE_MAX]);

/* depositing_file.c. ERR_NOT_FOUND: there is none, or none that can be used. */
enum err depositing_file_read(const char *directory, const char *name,
                              struct depositing_file *ret_file) MUST_CHECK;
enum err depositing_file_write(const char *directory, const char *name, const struct depositing_file *file,
                               struct err_detail *detail) MUST_CHECK;

/* "deposit/0-00c0ffee00c0ffee", in the directory of the collection. */
enum { DEPOSITING_INDEX_NAME_SIZE = 48 };
const char *depositing_index_name(const struct depositing_volume *volume,
                                  char out[DEPOSITING_INDEX_NAME_SIZE]);

/* Indexes that the file does not name. One that a reader has open stays until the next time. */
void depositing_file_clean(const char *directory, const char *name, const struct depositing_file *file);

#endif
