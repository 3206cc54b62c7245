/*
 * source - where bytes come from: a file, memory, or whatever the owner puts behind the two functions.
 *
 * Whoever reads through a struct source borrows it. The files of the archive lie below the store's own file
 * system, so the readers of this folder never call the operating system themselves; source_file is for
 * programs that read a WARC file from somewhere else.
 */
#ifndef MNEMON_BASE_SOURCE_H
#define MNEMON_BASE_SOURCE_H

#include "base/bytes.h"
#include "base/err.h"

struct source {
    /* Read 1 to size bytes. *ret_size is 0 at the end and only there. */
    enum err (*read)(struct source *source, void *out, size_t size, size_t *ret_size,
                     struct err_detail *detail);
    /* Read from this offset next; past the end is allowed. NULL if the source only goes forward. */
    enum err (*seek)(struct source *source, uint64_t offset, struct err_detail *detail);
};

static inline enum err source_read(struct source *source, void *out, size_t size, size_t *ret_size,
                                   struct err_detail *detail) {
    return source->read(source, out, size, ret_size, detail);
}

static inline bool source_can_seek(const struct source *source) {
    return source->seek != NULL;
}

static inline enum err source_seek(struct source *source, uint64_t offset, struct err_detail *detail) {
    return source->seek(source, offset, detail);
}

/* Over a piece of memory that outlives it. */
struct source_memory {
    struct source source; /* first: the functions find the rest from here */
    struct bytes bytes;
    size_t offset;
};

void source_memory_init(struct source_memory *memory, struct bytes bytes);

/* Over a file. One that has no positions (a pipe, a terminal) cannot seek. */
struct source_file {
    struct source source; /* first */
    int descriptor;
    bool is_owned;
    uint64_t offset;
};

enum err source_file_open(struct source_file *file, const char *path, struct err_detail *detail) MUST_CHECK;

/* Over an open descriptor, which stays the caller's: standard input. Starts at its current position. */
void source_file_init(struct source_file *file, int descriptor);
void source_file_done(struct source_file *file);

/* The size that a file that can seek has now. */
enum err source_file_size(const struct source_file *file, uint64_t *ret_size,
                          struct err_detail *detail) MUST_CHECK;

#endif
