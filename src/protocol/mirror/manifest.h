/*
 * manifest - what is in a version of a collection: directories, files and links in the order of path_rule.h,
 * with the chunks of the files. Pure.
 *
 *      root node                 level 2      its digest is what the publisher signs (version.h)
 *       ├── node   ├── node      level 1      list of the nodes below: size and digest of each
 *       node node  node node     level 0      records: entries, and behind a large file its chunks
 *
 * A node is cut where its content says so, at the end of a record: a version of a million files in which one
 * has changed shares all nodes with the last one but those above that file. The manifest itself
 * is thus mirrored as files are, by what is missing.
 *
 * Here are the records and nodes as bytes; manifest_writer.h makes nodes of entries, manifest_reader.h
 * entries of nodes, manifest_compare.h tells what to do. All of them hold one node of each level and no more,
 * whatever the size of the collection. Format: docs/formats/collection.md.
 */
#ifndef MNEMON_PROTOCOL_MIRROR_MANIFEST_H
#define MNEMON_PROTOCOL_MIRROR_MANIFEST_H

#include "base/sha256.h"
#include "base/wire.h"
#include "protocol/mirror/chunker.h"
#include "protocol/mirror/path_rule.h"

enum {
    MANIFEST_LEVELS_MAX = 4, /* about 1,800 nodes in one: room for more files than there are */
    MANIFEST_NODE_SIZE_MAX = CHUNKER_SIZE_MAX,
    MANIFEST_NODE_HEADER_SIZE = 2,
    MANIFEST_RECORD_SIZE_MAX = 2 * PATH_RULE_SIZE_MAX + 128,
    MANIFEST_MODE_MAX = 0777, /* permissions only: nothing from elsewhere becomes set-uid */
};
static const uint64_t MANIFEST_FILE_SIZE_MAX = UINT64_C(1) << 50;

/* The values are in the format. */
enum manifest_kind {
    MANIFEST_END = 0, /* not in the format: there is no further entry */
    MANIFEST_DIRECTORY,
    MANIFEST_FILE,
    MANIFEST_LINK,
    MANIFEST_CHUNK, /* a record, not an entry */
};

/* Bytes that are known by their digest: a chunk of a file, or a node. */
struct manifest_ref {
    uint32_t size;
    uint8_t digest[SHA256_SIZE];
};

static inline bool manifest_ref_equal(const struct manifest_ref *a, const struct manifest_ref *b) {
    return a->size == b->size && memcmp(a->digest, b->digest, SHA256_SIZE) == 0;
}

struct manifest_entry {
    enum manifest_kind kind;
    struct bytes path;
    uint16_t mode;
    int64_t time_us;             /* of the last modification, UTC */
    uint64_t size;               /* of a file */
    uint8_t digest[SHA256_SIZE]; /* of all of it; zeros if the size is 0 */
    struct bytes target;         /* of a link */
};

struct manifest_totals {
    uint64_t directories_count;
    uint64_t files_count;
    uint64_t links_count;
    uint64_t content_size;  /* of all files */
    uint64_t manifest_size; /* of all nodes */
};

/* Files above CHUNKER_WHOLE_SIZE_MAX are followed by records of their chunks; others are one themselves. */
static inline bool manifest_has_chunks(const struct manifest_entry *entry) {
    return entry->kind == MANIFEST_FILE && entry->size > CHUNKER_WHOLE_SIZE_MAX;
}

void manifest_totals_add(struct manifest_totals *totals, const struct manifest_entry *entry);

/* Why this entry cannot be in a collection, apart from its order; NULL: it can. */
const char *manifest_entry_fault(const struct manifest_entry *entry);

/* Why this cannot be the next chunk of a file of which left_size bytes are left; NULL: it can. */
const char *manifest_chunk_fault(const struct manifest_ref *chunk, uint64_t left_size);

/* ---- records ---- */

/* previous: the path of the last entry in this node; empty: there is none. */
void manifest_write_entry(struct wire_writer *writer, struct bytes previous,
                          const struct manifest_entry *entry);
void manifest_write_chunk(struct wire_writer *writer, const struct manifest_ref *chunk);

struct manifest_record {
    struct manifest_entry entry; /* kind MANIFEST_CHUNK: only that */
    struct manifest_ref chunk;
};

/*
 * The path is put together in path, of PATH_RULE_SIZE_MAX bytes, which holds the one before it, path_size
 * long (0: none in this node). Faults, also those of manifest_entry_fault(), are in the reader.
 */
void manifest_read_record(struct wire_reader *reader, uint8_t *path, size_t path_size,
                          struct manifest_record *ret_record);

/* ---- nodes ---- */

void manifest_write_header(struct wire_writer *writer, unsigned level);

/* Level of the node. Faults are in the reader. */
unsigned manifest_read_header(struct wire_reader *reader);

/* For nodes above level 0: what they list, to their end. A replica of a manifest fetches from the root down
 * what it lacks. */
void manifest_write_ref(struct wire_writer *writer, const struct manifest_ref *ref);
void manifest_read_ref(struct wire_reader *reader, struct manifest_ref *ret_ref);

#endif
