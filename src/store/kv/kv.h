/*
 * kv - a database of keys and values in a directory: families of entries, each sorted by its keys. RocksDB,
 * and nobody else in the program knows.
 *
 * How a database is set up is data: struct kv_options. What all have in common is in kv.c: one cache for
 * pages, filters and tables of contents, so that memory does not grow with the entries; recovery after a
 * crash up to the first damage, of all families alike.
 *
 * What was written survives the end of the process; what was written before kv_sync() also survives a crash
 * of the machine. After a write that failed the database takes no more (RocksDB fails an assertion of its own
 * if a log that could not be written is synced): it only reads until kv_mend(), or kv_close() and kv_open().
 *
 * Any thread may read. One thread at a time writes, opens, closes and mends. RocksDB ends the process if its
 * own allocations fail. Errors: ERR_IO for a database that is closed, ERR_NOT_FOUND, ERR_CORRUPT, and those
 * of kv_err_of_message().
 */
#ifndef MNEMON_STORE_KV_KV_H
#define MNEMON_STORE_KV_KV_H

#include "base/buf.h"
#include "store/kv/kv_batch.h"

struct kv;

enum { KV_FAMILIES_MAX = 8 };

enum kv_compression {
    KV_PLAIN,
    KV_LZ4,
    KV_LZ4_ZSTD, /* zstd on the lowest level, where nearly all entries end up */
};

/* One kind of entries, all fields fixed for as long as the files live. */
struct kv_family {
    const char *name; /* "default" for the first one */
    size_t write_buffer_size;
    size_t page_size; /* what one lookup reads */
    enum kv_compression compression;
    /* Files are merged by their number, not level by level: every entry is written again three to five times
     * on its way, not ten times and more. Lookups ask more files. */
    bool is_in_runs;
    bool has_filter;        /* by which a lookup mostly knows that a key is missing, without a read */
    bool has_memory_filter; /* also for the newest entries: if most that are looked for are missing */
    /* Not NULL: the filter knows prefixes of keys, not keys, and KV_WALK_PREFIX asks it. 0: the key has none.
     * One family at most. */
    size_t (*prefix_size)(struct bytes key);
    const char *prefix_name; /* stored in every file: another name makes its filter useless */
};

struct kv_options {
    const struct kv_family *families;
    size_t families_count;
    size_t cache_size;      /* at first */
    size_t memory_size_max; /* newest entries of all families together; 0: what the families say */
    size_t log_size_max;    /* 0: as the memory is */
    int open_files_max;
    bool asks_for_room;  /* opened only if kv_room_ask() got some */
    bool looks_for_room; /* opened for writing only if kv_room_look() finds some */
};

/* Not open yet. The options are borrowed for good. NULL: out of memory. */
struct kv *kv_new(const char *directory, const struct kv_options *options);
void kv_free(struct kv *kv); /* closes it */

/* The directory is created if it is missing; its parent must exist. ERR_BUSY: somebody has it open. */
enum err kv_open(struct kv *kv, struct err_detail *detail) MUST_CHECK;

/*
 * Open it for reading only, after kv_open() said why not for writing: the log is replayed in memory and no
 * table is written. All writes are refused with that error; kv_mend() may end it. ERR_CORRUPT: there is none.
 */
enum err kv_open_to_read(struct kv *kv, enum err why, struct err_detail *detail) MUST_CHECK;

void kv_close(struct kv *kv); /* waits until no iterator is left; nothing happens if it is closed */
bool kv_is_open(struct kv *kv);
const char *kv_directory(const struct kv *kv);

/* Remove all files of a database that is not open. ERR_OK if there is none. */
enum err kv_destroy(const char *directory, struct err_detail *detail) MUST_CHECK;

/*
 * After a write that failed: if there is room again and no iterator is open, close the database and open it.
 * Tries at most once a second; else returns the old error. If it cannot be opened for writing it is opened
 * for reading. Readers wait meanwhile. ERR_OK also if nothing is to be mended.
 */
enum err kv_mend(struct kv *kv, struct err_detail *detail) MUST_CHECK;

/* The error of the write that failed, if any. */
enum err kv_can_write(struct kv *kv, struct err_detail *detail) MUST_CHECK;

/* No more writes, as after one that failed so. */
void kv_stop_writes(struct kv *kv, enum err err);

/* ---- looking up ---- */

/* It lies where the database has it. */
struct kv_value {
    struct bytes bytes;
    void *pin; /* RocksDB's */
};

/* KV_GET_ONCE: pages that are read for it do not drive other pages out of the cache. */
enum kv_get_kind { KV_GET, KV_GET_ONCE };

/* *ret_value is to be given back by kv_value_done(), and lasts as long even if the database is closed. */
enum err kv_get(struct kv *kv, size_t family, struct bytes key, enum kv_get_kind kind,
                struct kv_value *ret_value) MUST_CHECK;
void kv_value_done(struct kv_value *value);

/* Replaces what is in the buffer. NULL: only whether it is there. */
enum err kv_copy(struct kv *kv, size_t family, struct bytes key, struct buf *value,
                 struct err_detail *detail) MUST_CHECK;

/* ---- walking ---- */

enum kv_walk {
    KV_WALK,
    KV_WALK_ONCE, /* of much that is not read again: the cache stays as it is */
    KV_WALK_ALL,  /* the same, and it reads ahead */
    /*
     * Only keys with the prefix of the one where it begins; a prefix that is missing mostly costs no read. To
     * make an iterator and to free it costs a sixth of a lookup over HTTP, so these wait for the next walk
     * until something is written.
     */
    KV_WALK_PREFIX,
};

/*
 * Entries with from <= key < to, in order or in reverse; an empty bound is none. It shows the database as it
 * was when it was made and never blocks writers, but keeps files that they have replaced: end it soon. One
 * thread. The slices are borrowed until kv_iterator_done().
 */
struct kv_iterator {
    struct bytes key; /* after ERR_OK, until the next call */
    struct bytes value;
    struct kv *kv;
    void *iterator; /* RocksDB's */
    void *options;  /* RocksDB's, if it has its own */
    struct bytes from;
    struct bytes to;
    uint64_t sequence; /* KV_WALK_PREFIX: of the database when it was made */
    enum kv_walk walk;
    bool in_reverse;
    bool has_started;
    enum err err;
};

enum err kv_iterator_init(struct kv_iterator *iterator, struct kv *kv, size_t family, enum kv_walk walk,
                          struct bytes from, struct bytes to, bool in_reverse) MUST_CHECK;
void kv_iterator_done(struct kv_iterator *iterator);

/* ERR_NOT_FOUND at the end. An error stays. */
enum err kv_iterator_next(struct kv_iterator *iterator, struct err_detail *detail) MUST_CHECK;

/* To the first entry from the key on, wherever it was. Not in reverse. */
enum err kv_iterator_seek(struct kv_iterator *iterator, struct bytes key,
                          struct err_detail *detail) MUST_CHECK;

/* ---- writing ---- */

/* All of the batch or nothing. The batch is sorted, else as before. */
enum err kv_write(struct kv *kv, struct kv_batch *batch, struct err_detail *detail) MUST_CHECK;
enum err kv_put(struct kv *kv, size_t family, struct bytes key, struct bytes value,
                struct err_detail *detail) MUST_CHECK;

/* What was written survives a crash of the machine. */
enum err kv_sync(struct kv *kv, struct err_detail *detail) MUST_CHECK;

/* The newest entries move from memory into files. */
enum err kv_flush(struct kv *kv, struct err_detail *detail) MUST_CHECK;

/* Merge all files into their smallest form. Reads and rewrites all of them; others may go on meanwhile. */
enum err kv_compact(struct kv *kv, struct err_detail *detail) MUST_CHECK;

/*
 * Take what was removed out of the files, too: until they are merged they hold it beside the note that it is
 * gone. Rewrites the families that have such notes; ERR_NO_SPACE if there is no room to do it in.
 */
enum err kv_forget(struct kv *kv, struct err_detail *detail) MUST_CHECK;

/*
 * Merge files in the background, a few at a time, so that a lookup asks fewer. For a database that nobody
 * writes to for a while. Does nothing if too little would be gained, or while a merge goes on. Any thread.
 */
void kv_settle(struct kv *kv);

/* ---- figures ---- */

struct kv_stat {
    uint64_t
        entries_count[KV_FAMILIES_MAX]; /* estimates: what was put twice counts twice until it is merged */
    uint64_t disk_size;                 /* of the sorted files, without the log of the newest entries */
    uint64_t cache_size;                /* in use */
    uint64_t memory_size;               /* cache, newest entries, tables of contents */
    uint64_t compactions_count;         /* that run now */
};

/* All 0 if it is closed. */
struct kv_stat kv_stat(struct kv *kv);

/* Set the size of the cache, in bytes. Any thread. */
void kv_set_cache_size(struct kv *kv, size_t size);

/*
 * The error that a message of RocksDB stands for, which hands out text only: "IO error: While appending to
 * file: 000123.log: No space left on device".
 */
enum err kv_err_of_message(struct bytes message);

#endif
