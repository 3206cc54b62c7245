#include "store/kv/kv.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/whole_file.h"
#include "run/bell.h"
#include "store/kv/kv_rocksdb.h"
#include "store/kv/kv_room.h"

static const uint64_t MEND_PAUSE_US = 1000 * 1000;

enum {
    LEVELS_COUNT = 7,  /* of RocksDB, if nothing else is said */
    SETTLE_SHARE = 20, /* one file is merged into so many at most */
    REWRITE_LOWEST_LEVEL = 2,
    SPARES_MAX = 8, /* as many lookups at once gain by it */
};

struct kv {
    char *directory;
    const struct kv_options *options;

    /* Whoever uses the database enters the gate for the call. An iterator does not stay inside: it is
     * counted. */
    pthread_rwlock_t gate;
    rocksdb_t *database; /* gate; NULL: closed */
    rocksdb_column_family_handle_t *families[KV_FAMILIES_MAX];
    uint64_t mend_after_us; /* the writer's: not before this time */

    pthread_mutex_t lock;
    struct bell is_left;    /* by the last iterator */
    size_t iterators_count; /* lock */
    /* Used iterators of KV_WALK_PREFIX. They keep old files from being removed, so nobody keeps them for
     * long. */
    rocksdb_iterator_t *spares[SPARES_MAX]; /* lock */
    size_t spares_count;                    /* lock */
    uint64_t spares_sequence;               /* lock: of the database when they were made */

    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *get_options[2];  /* enum kv_get_kind */
    rocksdb_readoptions_t *walk_options[4]; /* enum kv_walk, without bounds */
    rocksdb_writeoptions_t *write_options;
    rocksdb_writebatch_t *writes; /* the writer's */
    _Atomic(enum err) write_err;  /* of the first write that failed */
};

/* ---- errors ---- */

enum err kv_err_of_message(struct bytes message) {
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
        {"Too many open files", ERR_FILES},
        {"File too large", ERR_LIMIT},
        {"Cannot allocate memory", ERR_MEMORY},
        {"Input/output error", ERR_IO},
        {"Direct I/O is not supported by the specified DB.",
         ERR_IO},                                   /* the file to try it with was not opened */
        {"No such file or directory", ERR_CORRUPT}, /* the manifest names files that are gone */
    };
    /* The kind is at its start and the system's words at its end; paths, which may hold any words, are in
     * between. */
    message = bytes_trim(message);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (bytes_ends_with(message, bytes_of_string(ends[i].end))) {
            return ends[i].err;
        }
    }
    return bytes_starts_with(message, BYTES("IO error")) ? ERR_IO : ERR_CORRUPT;
}

/* NULL: it went well. */
static enum err kv_take_message(char *take_message, struct err_detail *detail) {
    if (take_message == NULL) {
        return ERR_OK;
    }
    enum err err = kv_err_of_message(bytes_of_string(take_message));
    bool is_misnamed = err == ERR_IO && !bytes_starts_with(bytes_of_string(take_message), BYTES("IO error"));
    err_set(detail, err, "%s%s", is_misnamed ? "IO error: a file could not be opened: " : "", take_message);
    rocksdb_free(take_message);
    return err;
}

static enum err kv_closed(struct err_detail *detail) {
    return err_set(detail, ERR_IO, "the database is closed after an error");
}

/* ---- the handle ---- */

static void kv_make_options(struct kv *kv) {
    for (size_t i = 0; i < sizeof kv->get_options / sizeof *kv->get_options; i++) {
        kv->get_options[i] = rocksdb_readoptions_create();
    }
    rocksdb_readoptions_set_fill_cache(kv->get_options[KV_GET_ONCE], 0);
    for (enum kv_walk i = KV_WALK; i <= KV_WALK_PREFIX; i++) {
        kv->walk_options[i] = kv_walk_options(i);
    }
    kv->write_options = rocksdb_writeoptions_create();
}

struct kv *kv_new(const char *directory, const struct kv_options *options) {
    ASSERT(options->families_count > 0 && options->families_count <= KV_FAMILIES_MAX);
    struct kv *kv = calloc(1, sizeof *kv);
    char *copy = strdup(directory);
    if (kv == NULL || copy == NULL) {
        free(kv);
        free(copy);
        return NULL;
    }
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    /* Readers never stop; whoever closes the database must come in all the same. */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&kv->gate, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    pthread_mutex_init(&kv->lock, NULL);
    kv->directory = copy;
    kv->options = options;
    kv->cache = rocksdb_cache_create_lru(options->cache_size);
    kv->writes = rocksdb_writebatch_create();
    kv_make_options(kv);
    return kv;
}

void kv_free(struct kv *kv) {
    kv_close(kv);
    rocksdb_writeoptions_destroy(kv->write_options);
    for (size_t i = 0; i < sizeof kv->get_options / sizeof *kv->get_options; i++) {
        rocksdb_readoptions_destroy(kv->get_options[i]);
    }
    for (enum kv_walk i = KV_WALK; i <= KV_WALK_PREFIX; i++) {
        rocksdb_readoptions_destroy(kv->walk_options[i]);
    }
    rocksdb_writebatch_destroy(kv->writes);
    rocksdb_cache_destroy(kv->cache);
    pthread_mutex_destroy(&kv->lock);
    pthread_rwlock_destroy(&kv->gate);
    free(kv->directory);
    free(kv);
}

/* ---- iterators that are used again ---- */

/* With the lock. */
static void kv_drop_spares(struct kv *kv) {
    while (kv->spares_count > 0) {
        rocksdb_iter_destroy(kv->spares[--kv->spares_count]);
    }
}

static void kv_clear_spares(struct kv *kv) {
    pthread_mutex_lock(&kv->lock);
    kv_drop_spares(kv);
    pthread_mutex_unlock(&kv->lock);
}

/* One more iterator. Is there one that shows the database as it is with this sequence number? */
static rocksdb_iterator_t *kv_take_spare(struct kv *kv, uint64_t sequence) {
    rocksdb_iterator_t *iterator = NULL;
    pthread_mutex_lock(&kv->lock);
    kv->iterators_count++;
    if (sequence > 0 && kv->spares_count > 0 && kv->spares_sequence == sequence) {
        iterator = kv->spares[--kv->spares_count];
    }
    pthread_mutex_unlock(&kv->lock);
    return iterator;
}

/* With the lock. The iterator, unless it is kept. */
static rocksdb_iterator_t *kv_keep_spare(struct kv *kv, rocksdb_iterator_t *iterator, uint64_t sequence) {
    if (sequence > kv->spares_sequence) {
        kv_drop_spares(kv);
        kv->spares_sequence = sequence;
    }
    if (sequence < kv->spares_sequence || kv->spares_count == SPARES_MAX) {
        return iterator;
    }
    kv->spares[kv->spares_count++] = iterator;
    return NULL;
}

/* ---- opening and closing ---- */

/* With the gate closed behind us. */
static enum err kv_open_inside(struct kv *kv, bool is_read_only, struct err_detail *detail) {
    const struct kv_options *data = kv->options;
    int count = (int)data->families_count;
    const char *names[KV_FAMILIES_MAX];
    rocksdb_options_t *options[KV_FAMILIES_MAX];
    const rocksdb_options_t *const *families = (const rocksdb_options_t *const *)options;
    rocksdb_options_t *database = kv_database_options(data);
    char *message = NULL;
    for (int i = 0; i < count; i++) {
        names[i] = data->families[i].name;
        options[i] = kv_family_options(&data->families[i], kv->cache);
    }
    kv->database = is_read_only
                       ? rocksdb_open_for_read_only_column_families(database, kv->directory, count, names,
                                                                    families, kv->families, 0, &message)
                       : rocksdb_open_column_families(database, kv->directory, count, names, families,
                                                      kv->families, &message);
    for (int i = 0; i < count; i++) {
        rocksdb_options_destroy(options[i]); /* RocksDB has copied them */
    }
    rocksdb_options_destroy(database);
    if (message != NULL) {
        kv->database = NULL;
        return kv_take_message(message, detail);
    }
    kv_room_reserve_log(kv->directory);
    return ERR_OK;
}

static void kv_close_inside(struct kv *kv) {
    if (kv->database == NULL) {
        return;
    }
    kv_clear_spares(kv);
    for (size_t i = 0; i < kv->options->families_count; i++) {
        rocksdb_column_family_handle_destroy(kv->families[i]);
    }
    rocksdb_close(kv->database);
    kv->database = NULL;
}

enum err kv_open(struct kv *kv, struct err_detail *detail) {
    ASSERT(kv->database == NULL);
    enum err err = whole_file_make_directory(kv->directory, detail);
    if (err == ERR_OK && kv->options->asks_for_room) {
        err = kv_room_ask(kv->directory, detail);
    }
    if (err == ERR_OK && kv->options->looks_for_room) {
        err = kv_room_look(kv->directory, detail); /* RocksDB that fails half-way may end the process */
    }
    if (err != ERR_OK) {
        return err;
    }
    pthread_rwlock_wrlock(&kv->gate);
    err = kv_open_inside(kv, false, detail);
    pthread_rwlock_unlock(&kv->gate);
    if (err == ERR_OK) {
        atomic_store(&kv->write_err, ERR_OK);
    }
    return err;
}

enum err kv_open_to_read(struct kv *kv, enum err why, struct err_detail *detail) {
    ASSERT(kv->database == NULL && why != ERR_OK);
    pthread_rwlock_wrlock(&kv->gate);
    enum err err = kv_open_inside(kv, true, detail);
    pthread_rwlock_unlock(&kv->gate);
    if (err == ERR_OK) {
        kv_stop_writes(kv, why);
    }
    return err;
}

static size_t kv_iterators_count(struct kv *kv) {
    pthread_mutex_lock(&kv->lock);
    size_t count = kv->iterators_count;
    pthread_mutex_unlock(&kv->lock);
    return count;
}

/* Enter the gate when no iterator is open. */
static void kv_enter_alone(struct kv *kv) {
    for (;;) {
        pthread_rwlock_wrlock(&kv->gate);
        if (kv_iterators_count(kv) == 0) {
            return;
        }
        pthread_rwlock_unlock(&kv->gate); /* whoever has one may look something up before it ends */
        pthread_mutex_lock(&kv->lock);
        while (kv->iterators_count > 0) {
            (void)bell_await(&kv->is_left, &kv->lock, BELL_NEVER_US);
        }
        pthread_mutex_unlock(&kv->lock);
    }
}

void kv_close(struct kv *kv) {
    kv_enter_alone(kv);
    kv_close_inside(kv);
    pthread_rwlock_unlock(&kv->gate);
}

/* False if it is closed. */
static bool kv_enter(struct kv *kv) {
    pthread_rwlock_rdlock(&kv->gate);
    if (kv->database == NULL) {
        pthread_rwlock_unlock(&kv->gate);
        return false;
    }
    rocksdb_set_perf_level(rocksdb_disable); /* of this thread, whosever it is: counting costs 5 % */
    return true;
}

static void kv_leave(struct kv *kv) {
    pthread_rwlock_unlock(&kv->gate);
}

bool kv_is_open(struct kv *kv) {
    bool is_open = kv_enter(kv);
    if (is_open) {
        kv_leave(kv);
    }
    return is_open;
}

const char *kv_directory(const struct kv *kv) {
    return kv->directory;
}

enum err kv_destroy(const char *directory, struct err_detail *detail) {
    char *message = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_destroy_db(options, directory, &message);
    rocksdb_options_destroy(options);
    return kv_take_message(message, detail);
}

/* ---- after a write that failed ---- */

enum err kv_can_write(struct kv *kv, struct err_detail *detail) {
    enum err err = atomic_load(&kv->write_err);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "an earlier write failed: %s", err_text(err));
}

void kv_stop_writes(struct kv *kv, enum err err) {
    atomic_store(&kv->write_err, err);
}

enum err kv_mend(struct kv *kv, struct err_detail *detail) {
    enum err err = kv_can_write(kv, detail);
    uint64_t now_us = clock_monotonic_us(&clock_system);
    if (err == ERR_OK || now_us < kv->mend_after_us || kv_iterators_count(kv) > 0 ||
        kv_room_ask(kv->directory, NULL) != ERR_OK) {
        return err;
    }
    pthread_rwlock_wrlock(&kv->gate);
    bool is_alone = kv_iterators_count(kv) == 0;
    if (is_alone) {
        kv->mend_after_us = now_us + MEND_PAUSE_US;
        kv_close_inside(kv);
        err = kv_open_inside(kv, false, detail);
        if (err == ERR_OK) {
            atomic_store(&kv->write_err, ERR_OK);
        } else {
            enum err read_only = kv_open_inside(kv, true, NULL);
            (void)read_only; /* then it is closed */
        }
    }
    pthread_rwlock_unlock(&kv->gate);
    return err;
}

/* ---- looking up ---- */

/* The value keeps what it needs of the database, so it outlives the gate. */
static enum err kv_find(struct kv *kv, size_t family, struct bytes key, enum kv_get_kind kind,
                        struct kv_value *ret_value, struct err_detail *detail) {
    char *message = NULL;
    ASSERT(family < kv->options->families_count);
    if (!kv_enter(kv)) {
        return kv_closed(detail);
    }
    rocksdb_pinnableslice_t *slice =
        rocksdb_get_pinned_cf(kv->database, kv->get_options[kind], kv->families[family],
                              (const char *)key.data, key.size, &message);
    kv_leave(kv);
    if (message != NULL || slice == NULL) {
        return message != NULL ? kv_take_message(message, detail) : ERR_NOT_FOUND;
    }
    size_t size = 0;
    const char *data = rocksdb_pinnableslice_value(slice, &size);
    *ret_value = (struct kv_value){.bytes = bytes_of(data, size), .pin = slice};
    return ERR_OK;
}

enum err kv_get(struct kv *kv, size_t family, struct bytes key, enum kv_get_kind kind,
                struct kv_value *ret_value) {
    return kv_find(kv, family, key, kind, ret_value, NULL);
}

void kv_value_done(struct kv_value *value) {
    rocksdb_pinnableslice_destroy(value->pin);
}

enum err kv_copy(struct kv *kv, size_t family, struct bytes key, struct buf *value,
                 struct err_detail *detail) {
    struct kv_value found;
    enum err err = kv_find(kv, family, key, KV_GET, &found, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (value != NULL) {
        buf_clear(value);
        err = buf_put(value, found.bytes);
    }
    kv_value_done(&found);
    return err;
}

/* ---- walking ---- */

/* NULL: those that all share will do. An iterator that is used again must not know the bounds. */
static rocksdb_readoptions_t *kv_bounded_options(const struct kv_iterator *iterator) {
    bool has_lower = iterator->in_reverse && iterator->from.size > 0;
    if (iterator->walk == KV_WALK_PREFIX || (!has_lower && iterator->to.size == 0)) {
        return NULL;
    }
    rocksdb_readoptions_t *options = kv_walk_options(iterator->walk);
    if (has_lower) {
        rocksdb_readoptions_set_iterate_lower_bound(options, (const char *)iterator->from.data,
                                                    iterator->from.size);
    }
    if (iterator->to.size > 0) {
        rocksdb_readoptions_set_iterate_upper_bound(options, (const char *)iterator->to.data,
                                                    iterator->to.size);
    }
    return options;
}

enum err kv_iterator_init(struct kv_iterator *iterator, struct kv *kv, size_t family, enum kv_walk walk,
                          struct bytes from, struct bytes to, bool in_reverse) {
    ASSERT(family < kv->options->families_count);
    ASSERT(walk != KV_WALK_PREFIX || kv->options->families[family].prefix_size != NULL);
    if (!kv_enter(kv)) {
        return kv_closed(NULL);
    }
    *iterator =
        (struct kv_iterator){.kv = kv, .from = from, .to = to, .walk = walk, .in_reverse = in_reverse};
    if (walk == KV_WALK_PREFIX) { /* asked before the iterator is made, which may show later writes too */
        iterator->sequence = rocksdb_get_latest_sequence_number(kv->database);
    }
    iterator->options = kv_bounded_options(iterator);
    iterator->iterator = kv_take_spare(kv, iterator->sequence);
    if (iterator->iterator == NULL) {
        const rocksdb_readoptions_t *options =
            iterator->options != NULL ? iterator->options : kv->walk_options[walk];
        iterator->iterator = rocksdb_create_iterator_cf(kv->database, options, kv->families[family]);
    }
    kv_leave(kv);
    return ERR_OK;
}

void kv_iterator_done(struct kv_iterator *iterator) {
    struct kv *kv = iterator->kv;
    rocksdb_iterator_t *unused = iterator->iterator;
    bool has_failed = iterator->err != ERR_OK && iterator->err != ERR_NOT_FOUND;
    if (iterator->walk == KV_WALK_PREFIX && !has_failed) {
        pthread_mutex_lock(&kv->lock);
        unused = kv_keep_spare(kv, unused, iterator->sequence);
        pthread_mutex_unlock(&kv->lock);
    }
    if (unused != NULL) {
        rocksdb_iter_destroy(unused);
    }
    if (iterator->options != NULL) {
        rocksdb_readoptions_destroy(iterator->options);
    }
    pthread_mutex_lock(&kv->lock); /* only now: the database must not be closed before */
    kv->iterators_count--;
    if (kv->iterators_count == 0) {
        bell_ring(&kv->is_left);
    }
    pthread_mutex_unlock(&kv->lock);
}

static struct bytes kv_iterator_key(const struct kv_iterator *iterator) {
    size_t size = 0;
    const char *data = rocksdb_iter_key(iterator->iterator, &size);
    return bytes_of(data, size);
}

static void kv_iterator_start(struct kv_iterator *iterator) {
    struct bytes from = iterator->from;
    struct bytes to = iterator->to;
    if (iterator->in_reverse && to.size > 0) {
        rocksdb_iter_seek_for_prev(iterator->iterator, (const char *)to.data, to.size);
        if (rocksdb_iter_valid(iterator->iterator) && bytes_equal(kv_iterator_key(iterator), to)) {
            rocksdb_iter_prev(iterator->iterator); /* the end itself is left out */
        }
    } else if (iterator->in_reverse) {
        rocksdb_iter_seek_to_last(iterator->iterator);
    } else if (from.size > 0) {
        rocksdb_iter_seek(iterator->iterator, (const char *)from.data, from.size);
    } else {
        rocksdb_iter_seek_to_first(iterator->iterator);
    }
}

/* Only the iterators that do not know their bounds can be beyond them. */
static bool kv_iterator_is_within(const struct kv_iterator *iterator) {
    if (iterator->walk != KV_WALK_PREFIX) {
        return true;
    }
    return iterator->in_reverse ? bytes_compare(iterator->key, iterator->from) >= 0
                                : iterator->to.size == 0 || bytes_compare(iterator->key, iterator->to) < 0;
}

/* What it stands at now. */
static enum err kv_iterator_look(struct kv_iterator *iterator, struct err_detail *detail) {
    if (!rocksdb_iter_valid(iterator->iterator)) {
        char *message = NULL;
        rocksdb_iter_get_error(iterator->iterator, &message);
        return message == NULL ? ERR_NOT_FOUND : kv_take_message(message, detail);
    }
    size_t size = 0;
    iterator->key = kv_iterator_key(iterator);
    const char *value = rocksdb_iter_value(iterator->iterator, &size);
    iterator->value = bytes_of(value, size);
    return kv_iterator_is_within(iterator) ? ERR_OK : ERR_NOT_FOUND;
}

enum err kv_iterator_next(struct kv_iterator *iterator, struct err_detail *detail) {
    if (iterator->err != ERR_OK) {
        return iterator->err;
    }
    if (!iterator->has_started) {
        kv_iterator_start(iterator);
        iterator->has_started = true;
    } else if (iterator->in_reverse) {
        rocksdb_iter_prev(iterator->iterator);
    } else {
        rocksdb_iter_next(iterator->iterator);
    }
    return iterator->err = kv_iterator_look(iterator, detail);
}

enum err kv_iterator_seek(struct kv_iterator *iterator, struct bytes key, struct err_detail *detail) {
    ASSERT(!iterator->in_reverse);
    rocksdb_iter_seek(iterator->iterator, (const char *)key.data, key.size);
    iterator->has_started = true;
    return iterator->err = kv_iterator_look(iterator, detail);
}

/* ---- writing ---- */

/* Inside, if it may be written to. */
static enum err kv_enter_to_write(struct kv *kv, struct err_detail *detail) {
    enum err err = kv_can_write(kv, detail);
    if (err != ERR_OK) {
        return err;
    }
    return kv_enter(kv) ? ERR_OK : kv_closed(detail);
}

/* A message or NULL. */
static enum err kv_leave_written(struct kv *kv, char *take_message, struct err_detail *detail) {
    kv_leave(kv);
    enum err err = kv_take_message(take_message, detail);
    if (err != ERR_OK) {
        kv_stop_writes(kv, err);
    }
    return err;
}

static void kv_give(struct kv *kv, const struct kv_batch *batch, const struct kv_change *change) {
    struct bytes key = kv_batch_key(batch, change);
    struct bytes value = kv_batch_value(batch, change);
    rocksdb_column_family_handle_t *family = kv->families[change->family];
    switch ((enum kv_change_kind)change->kind) {
    case KV_CHANGE_PUT:
        rocksdb_writebatch_put_cf(kv->writes, family, (const char *)key.data, key.size,
                                  (const char *)value.data, value.size);
        break;
    case KV_CHANGE_REMOVE:
        rocksdb_writebatch_delete_cf(kv->writes, family, (const char *)key.data, key.size);
        break;
    case KV_CHANGE_REMOVE_ONCE:
        rocksdb_writebatch_singledelete_cf(kv->writes, family, (const char *)key.data, key.size);
        break;
    }
}

enum err kv_write(struct kv *kv, struct kv_batch *batch, struct err_detail *detail) {
    if (batch->err != ERR_OK) {
        return err_set(detail, batch->err, "%s", err_text(batch->err));
    }
    enum err err = kv_enter_to_write(kv, detail);
    if (err != ERR_OK) {
        return err;
    }
    char *message = NULL;
    kv_batch_sort(batch);
    for (size_t i = 0; i < batch->count; i++) {
        ASSERT(batch->changes[i].family < kv->options->families_count);
        kv_give(kv, batch, &batch->changes[i]);
    }
    rocksdb_write(kv->database, kv->write_options, kv->writes, &message);
    rocksdb_writebatch_clear(kv->writes);
    kv_clear_spares(kv);
    return kv_leave_written(kv, message, detail);
}

enum err kv_put(struct kv *kv, size_t family, struct bytes key, struct bytes value,
                struct err_detail *detail) {
    char *message = NULL;
    enum err err = kv_enter_to_write(kv, detail);
    if (err != ERR_OK) {
        return err;
    }
    rocksdb_put_cf(kv->database, kv->write_options, kv->families[family], (const char *)key.data, key.size,
                   (const char *)value.data, value.size, &message);
    kv_clear_spares(kv);
    return kv_leave_written(kv, message, detail);
}

enum err kv_sync(struct kv *kv, struct err_detail *detail) {
    char *message = NULL;
    enum err err = kv_enter_to_write(kv, detail);
    if (err != ERR_OK) {
        return err;
    }
    rocksdb_flush_wal(kv->database, 1, &message);
    return kv_leave_written(kv, message, detail);
}

enum err kv_flush(struct kv *kv, struct err_detail *detail) {
    char *message = NULL;
    enum err err = kv_enter_to_write(kv, detail);
    if (err != ERR_OK) {
        return err;
    }
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    for (size_t i = 0; i < kv->options->families_count && message == NULL; i++) {
        rocksdb_flush_cf(kv->database, options, kv->families[i], &message);
    }
    rocksdb_flushoptions_destroy(options);
    return kv_leave_written(kv, message, detail);
}

/* 0 if RocksDB does not know. Inside the gate. */
static uint64_t kv_property(const struct kv *kv, size_t family, const char *name) {
    uint64_t value = 0;
    rocksdb_property_int_cf(kv->database, kv->families[family], name, &value);
    return value;
}

static void kv_rewrite(struct kv *kv, size_t family) {
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(options, REWRITE_LOWEST_LEVEL);
    rocksdb_compact_range_cf_opt(kv->database, kv->families[family], options, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(options);
}

enum err kv_compact(struct kv *kv, struct err_detail *detail) {
    enum err err = kv_flush(kv, detail);
    if (err != ERR_OK || !kv_enter(kv)) {
        return err != ERR_OK ? err : kv_closed(detail);
    }
    for (size_t i = 0; i < kv->options->families_count; i++) {
        kv_rewrite(kv, i);
    }
    kv_leave(kv);
    return kv_flush(kv, detail); /* compaction itself reports nothing; a failed one stops all writes */
}

/* What RocksDB does not tell counts as something. */
static bool kv_has_removals(const struct kv *kv, size_t family) {
    static const char name[] = "# deletions=";
    char *text =
        rocksdb_property_value_cf(kv->database, kv->families[family], "rocksdb.aggregated-table-properties");
    const char *found = text != NULL ? strstr(text, name) : NULL;
    bool has_removals = found == NULL || strtoull(found + sizeof name - 1, NULL, 10) > 0;
    rocksdb_free(text);
    return has_removals;
}

enum err kv_forget(struct kv *kv, struct err_detail *detail) {
    enum err err = kv_flush(kv, detail);
    for (size_t i = 0; err == ERR_OK && i < kv->options->families_count; i++) {
        if (!kv_enter(kv)) {
            return kv_closed(detail);
        }
        if (kv_has_removals(kv, i)) {
            uint64_t size = kv_property(kv, i, "rocksdb.total-sst-files-size");
            err = kv_room_for(kv->directory, size, detail); /* a merge that fails stops all writes */
            if (err == ERR_OK) {
                kv_clear_spares(kv);
                kv_rewrite(kv, i);
            }
        }
        kv_leave(kv);
    }
    return err == ERR_OK ? kv_flush(kv, detail) : err;
}

/* ---- figures ---- */

struct kv_stat kv_stat(struct kv *kv) {
    struct kv_stat stat = {0};
    if (!kv_enter(kv)) {
        return stat;
    }
    stat.cache_size = rocksdb_cache_get_usage(kv->cache);
    stat.memory_size = stat.cache_size;
    for (size_t i = 0; i < kv->options->families_count; i++) {
        stat.entries_count[i] = kv_property(kv, i, "rocksdb.estimate-num-keys");
        stat.disk_size += kv_property(kv, i, "rocksdb.total-sst-files-size");
        stat.memory_size += kv_property(kv, i, "rocksdb.size-all-mem-tables");
        stat.memory_size += kv_property(kv, i, "rocksdb.estimate-table-readers-mem");
        stat.compactions_count = kv_property(kv, i, "rocksdb.num-running-compactions"); /* of all families */
    }
    kv_leave(kv);
    return stat;
}

void kv_set_cache_size(struct kv *kv, size_t size) {
    rocksdb_cache_set_capacity(kv->cache, size);
}

/* ---- at rest ---- */

static uint64_t kv_files_at_level(const struct kv *kv, size_t family, int level) {
    char name[sizeof "rocksdb.num-files-at-level" + 2];
    snprintf(name, sizeof name, "rocksdb.num-files-at-level%d", level);
    char *text = rocksdb_property_value_cf(kv->database, kv->families[family], name);
    uint64_t count = text == NULL ? 0 : strtoull(text, NULL, 10);
    rocksdb_free(text);
    return count;
}

/* What lies above the lowest level is merged into it, unless it is little and all of that were rewritten. */
static bool kv_is_worth_settling(const struct kv *kv, size_t family) {
    uint64_t above_count = 0;
    uint64_t lowest_count = 0;
    for (int i = 0; i < LEVELS_COUNT; i++) {
        uint64_t count = kv_files_at_level(kv, family, i);
        if (count > 0) {
            above_count += lowest_count;
            lowest_count = count;
        }
    }
    return above_count > 0 && above_count * SETTLE_SHARE >= lowest_count;
}

void kv_settle(struct kv *kv) {
    if (atomic_load(&kv->write_err) != ERR_OK || !kv_enter(kv)) {
        return;
    }
    kv_clear_spares(kv);
    bool is_merging = kv_property(kv, 0, "rocksdb.num-running-compactions") > 0;
    for (size_t i = 0; i < kv->options->families_count && !is_merging; i++) {
        if (kv_is_worth_settling(kv, i)) {
            char *message = NULL;
            rocksdb_suggest_compact_range_cf(kv->database, kv->families[i], NULL, 0, NULL, 0, &message);
            rocksdb_free(message); /* a suggestion that was not taken */
        }
    }
    kv_leave(kv);
}
