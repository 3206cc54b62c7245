#include "store/index/index_database.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const off_t LOG_ROOM_SIZE = 256 << 10; /* it gets errors only: some lines in a bad year */

/*
 * RocksDB hands out text only: "IO error: While appending to file: 000123.log: No space left on device". The
 * kind is at its start and the system's words at its end; paths, which may hold any words, are in between.
 */
static enum err err_of_message(struct bytes message) {
    static const struct {
        const char *end;
        enum err err;
    } ends[] = {
        {"No space left on device", ERR_NO_SPACE},
        {"Disk quota exceeded", ERR_NO_SPACE},
        {"Resource temporarily unavailable", ERR_BUSY}, /* another process has the lock */
        {"No locks available", ERR_BUSY},               /* this process has it */
        {"Not a directory", ERR_NOT_FOUND},
        {"is not a directory", ERR_NOT_FOUND},
        {"Permission denied", ERR_PERMISSION},
        {"Operation not permitted", ERR_PERMISSION},
        {"Read-only file system", ERR_PERMISSION},
        {"Too many open files", ERR_LIMIT},
        {"File too large", ERR_LIMIT},
        {"Cannot allocate memory", ERR_MEMORY},
        {"No such file or directory", ERR_CORRUPT}, /* the manifest names files that are gone */
    };
    message = bytes_trim(message);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (bytes_ends_with(message, bytes_of_string(ends[i].end))) {
            return ends[i].err;
        }
    }
    return bytes_starts_with(message, BYTES("IO error")) ? ERR_IO : ERR_CORRUPT;
}

enum err index_database_failed(char *take_message, struct err_detail *detail) {
    enum err err = err_of_message(bytes_of_string(take_message));
    err_set(detail, err, "%s", take_message);
    rocksdb_free(take_message);
    return err;
}

enum err index_database_write_failed(struct index *index, char *take_message, struct err_detail *detail) {
    enum err err = index_database_failed(take_message, detail);
    atomic_store(&index->write_err, err);
    return err;
}

enum err index_database_can_write(const struct index *index, struct err_detail *detail) {
    enum err err = atomic_load(&index->write_err);
    return err == ERR_OK ? ERR_OK
                         : err_set(detail, err, "an earlier write to the index failed: %s", err_text(err));
}

/* ---- the handle ---- */

struct index *index_database_new(const char *directory) {
    struct index *index = calloc(1, sizeof *index);
    struct index_gate *gate = calloc(1, sizeof *gate);
    char *copy = strdup(directory);
    if (index == NULL || gate == NULL || copy == NULL) {
        free(index);
        free(gate);
        free(copy);
        return NULL;
    }
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    /* Readers never stop; whoever closes the database must come in all the same. */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&gate->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    index->directory = copy;
    index->gate = gate;
    index->cache = index_options_cache_new();
    index->read_options = rocksdb_readoptions_create();
    index->walk_options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_fill_cache(index->walk_options, 0);
    index->surt_options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_prefix_same_as_start(index->surt_options, 1);
    index_spares_init(&gate->spares);
    index->write_options = rocksdb_writeoptions_create();
    return index;
}

void index_database_free(struct index *index) {
    ASSERT(index->database == NULL);
    rocksdb_writeoptions_destroy(index->write_options);
    rocksdb_readoptions_destroy(index->read_options);
    rocksdb_readoptions_destroy(index->walk_options);
    rocksdb_readoptions_destroy(index->surt_options);
    rocksdb_cache_destroy(index->cache);
    index_spares_done(&index->gate->spares);
    pthread_rwlock_destroy(&index->gate->lock);
    free(index->gate);
    free(index->directory);
    free(index);
}

enum err index_database_open(struct index *index, bool is_read_only, struct err_detail *detail) {
    struct index_options options;
    char *message = NULL;
    index_options_init(&options, index->cache);
    const rocksdb_options_t *const *families = (const rocksdb_options_t *const *)options.families;
    index->database =
        is_read_only ? rocksdb_open_for_read_only_column_families(options.database, index->directory,
                                                                  INDEX_FAMILIES_COUNT, index_family_names,
                                                                  families, index->families, 0, &message)
                     : rocksdb_open_column_families(options.database, index->directory, INDEX_FAMILIES_COUNT,
                                                    index_family_names, families, index->families, &message);
    index_options_done(&options);
    if (message != NULL) {
        return index_database_failed(message, detail);
    }
    index_database_reserve_log(index->directory);
    return ERR_OK;
}

void index_database_reserve_log(const char *directory) {
    char *path = NULL;
    int fd = asprintf(&path, "%s/LOG", directory) < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_ROOM_SIZE);
        close(fd);
    }
    free(path);
}

void index_database_close(struct index *index) {
    if (index->database == NULL) {
        return;
    }
    index_spares_clear(&index->gate->spares);
    for (int i = 0; i < INDEX_FAMILIES_COUNT; i++) {
        rocksdb_column_family_handle_destroy(index->families[i]);
    }
    rocksdb_close(index->database);
    index->database = NULL;
}

enum err index_database_enter(const struct index *index) {
    pthread_rwlock_rdlock(&index->gate->lock);
    if (index->database == NULL) {
        pthread_rwlock_unlock(&index->gate->lock);
        return ERR_IO;
    }
    return ERR_OK;
}

void index_database_leave(const struct index *index) {
    pthread_rwlock_unlock(&index->gate->lock);
}
