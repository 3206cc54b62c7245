#include "protocol/mirror/manifest_reader.h"

#include "base/arena.h"

enum { MEMORY_SIZE_MAX = 2 << 20 };

struct level {
    struct wire_reader node; /* what is left of it */
    uint8_t memory[MANIFEST_NODE_SIZE_MAX];
};

struct manifest_reader {
    struct arena arena; /* that it lies in itself */
    struct sha256 sha256;
    struct manifest_source source;
    struct manifest_ref root;
    bool is_started; /* the root has been read */
    enum err err;
    struct manifest_totals totals;

    struct manifest_ref whole; /* the file as one chunk, not handed out yet; size 0: none */
    uint64_t chunks_left_size; /* of records that belong to the last file */

    bool is_after_directory;
    size_t path_size;      /* of the last entry */
    size_t node_path_size; /* the same; 0: none in this node yet */
    uint8_t path[PATH_RULE_SIZE_MAX];
    uint8_t previous[PATH_RULE_SIZE_MAX]; /* the last entry's, while the next one is put together in path */
    uint8_t target[PATH_RULE_SIZE_MAX];
    struct level levels[MANIFEST_LEVELS_MAX];
};

enum err manifest_reader_new(struct manifest_reader **ret_reader) {
    struct manifest_reader *reader = arena_new(sizeof *reader, MEMORY_SIZE_MAX);
    enum err err = reader == NULL ? ERR_MEMORY : sha256_init(&reader->sha256);
    if (err != ERR_OK) {
        arena_free(reader);
        return err;
    }
    *ret_reader = reader;
    return ERR_OK;
}

void manifest_reader_free(struct manifest_reader *reader) {
    if (reader != NULL) {
        sha256_done(&reader->sha256);
        arena_free(reader);
    }
}

void manifest_reader_start(struct manifest_reader *reader, struct manifest_source source,
                           const struct manifest_ref *root) {
    reader->source = source;
    reader->root = *root;
    reader->is_started = false;
    reader->err = ERR_OK;
    reader->totals = (struct manifest_totals){0};
    reader->whole.size = 0;
    reader->chunks_left_size = 0;
    reader->is_after_directory = false;
    reader->path_size = reader->node_path_size = 0;
    for (unsigned i = 0; i < MANIFEST_LEVELS_MAX; i++) {
        wire_reader_init(&reader->levels[i].node, bytes_of(NULL, 0));
    }
}

static enum err reader_fail(struct manifest_reader *reader, enum err err) {
    reader->err = reader->err == ERR_OK ? err : reader->err;
    return reader->err;
}

/* ---- nodes ---- */

/* The bytes of a node into the memory of that level, sound as far as its header goes. */
static enum err reader_load(struct manifest_reader *reader, const struct manifest_ref *ref, unsigned index,
                            unsigned *ret_level) {
    struct level *level = &reader->levels[index];
    uint8_t digest[SHA256_SIZE];
    if (ref->size < MANIFEST_NODE_HEADER_SIZE || ref->size > MANIFEST_NODE_SIZE_MAX) {
        return reader_fail(reader, ERR_LIMIT);
    }
    enum err err = reader->source.get(reader->source.context, ref, level->memory);
    if (err != ERR_OK) {
        return reader_fail(reader, err);
    }
    struct bytes node = bytes_of(level->memory, ref->size);
    sha256_digest(&reader->sha256, node, digest);
    if (memcmp(digest, ref->digest, SHA256_SIZE) != 0) {
        return reader_fail(reader, ERR_CORRUPT);
    }
    reader->totals.manifest_size += ref->size;
    wire_reader_init(&level->node, node);
    *ret_level = manifest_read_header(&level->node);
    return level->node.err == ERR_OK ? ERR_OK : reader_fail(reader, level->node.err);
}

static enum err load_root(struct manifest_reader *reader) {
    unsigned level = 0;
    enum err err = reader_load(reader, &reader->root, 0, &level);
    if (err == ERR_OK && level > 0) { /* only now its level is known */
        struct level *place = &reader->levels[level];
        memcpy(place->memory, reader->levels[0].memory, reader->root.size);
        wire_reader_init(&place->node, bytes_of(place->memory, reader->root.size));
        (void)manifest_read_header(&place->node);
        wire_reader_init(&reader->levels[0].node, bytes_of(NULL, 0));
    }
    reader->is_started = true;
    return err;
}

/* The next node of the level above, or of one still higher. */
static enum err descend(struct manifest_reader *reader, unsigned index) {
    while (index > 0) {
        struct level *level = &reader->levels[index];
        struct manifest_ref ref;
        unsigned below = 0;
        manifest_read_ref(&level->node, &ref);
        if (level->node.err != ERR_OK) {
            return reader_fail(reader, level->node.err);
        }
        enum err err = reader_load(reader, &ref, --index, &below);
        if (err == ERR_OK && below != index) {
            err = reader_fail(reader, ERR_INVALID);
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    reader->node_path_size = 0;
    return ERR_OK;
}

/* False at the end, or after an error: the next record is in the node of level 0. */
static bool find_record(struct manifest_reader *reader) {
    if (reader->err == ERR_OK && !reader->is_started && load_root(reader) != ERR_OK) {
        return false;
    }
    while (reader->err == ERR_OK && wire_reader_left(&reader->levels[0].node) == 0) {
        unsigned index = 1;
        while (index < MANIFEST_LEVELS_MAX && wire_reader_left(&reader->levels[index].node) == 0) {
            index++;
        }
        if (index == MANIFEST_LEVELS_MAX || descend(reader, index) != ERR_OK) {
            return false;
        }
    }
    return reader->err == ERR_OK;
}

/* ---- records ---- */

static enum err reader_read_record(struct manifest_reader *reader, struct manifest_record *record) {
    struct wire_reader *node = &reader->levels[0].node;
    manifest_read_record(node, reader->path, reader->node_path_size, record);
    return node->err == ERR_OK ? ERR_OK : reader_fail(reader, node->err);
}

static enum err read_chunk(struct manifest_reader *reader, struct manifest_ref *ret_chunk) {
    struct manifest_record record;
    if (!find_record(reader)) {
        return reader_fail(reader, ERR_TRUNCATED);
    }
    if (reader_read_record(reader, &record) != ERR_OK) {
        return reader->err;
    }
    if (record.entry.kind != MANIFEST_CHUNK) {
        return reader_fail(reader, ERR_INVALID);
    }
    if (manifest_chunk_fault(&record.chunk, reader->chunks_left_size) != NULL) {
        return reader_fail(reader, ERR_INVALID);
    }
    reader->chunks_left_size -= record.chunk.size;
    *ret_chunk = record.chunk;
    return ERR_OK;
}

static enum err take_entry(struct manifest_reader *reader, struct manifest_entry *entry) {
    struct bytes previous = bytes_of(reader->previous, reader->path_size);
    if (path_rule_order_fault(previous, reader->is_after_directory, entry->path) != NULL) {
        return reader_fail(reader, ERR_INVALID);
    }
    if (entry->kind == MANIFEST_LINK) { /* the node may be gone when it is looked at */
        memcpy(reader->target, entry->target.data, entry->target.size);
        entry->target.data = reader->target;
    }
    reader->path_size = reader->node_path_size = entry->path.size;
    reader->is_after_directory = entry->kind == MANIFEST_DIRECTORY;
    reader->chunks_left_size = manifest_has_chunks(entry) ? entry->size : 0;
    reader->whole.size = 0;
    if (entry->kind == MANIFEST_FILE && !manifest_has_chunks(entry)) {
        reader->whole.size = (uint32_t)entry->size;
        memcpy(reader->whole.digest, entry->digest, SHA256_SIZE);
    }
    manifest_totals_add(&reader->totals, entry);
    return ERR_OK;
}

enum err manifest_reader_next(struct manifest_reader *reader, struct manifest_entry *ret_entry) {
    struct manifest_record record;
    struct manifest_ref passed;
    while (reader->err == ERR_OK && reader->chunks_left_size > 0) {
        (void)read_chunk(reader, &passed);
    }
    if (!find_record(reader)) {
        *ret_entry = (struct manifest_entry){.kind = MANIFEST_END};
        return reader->err;
    }
    memcpy(reader->previous, reader->path, reader->path_size);
    if (reader_read_record(reader, &record) != ERR_OK) {
        return reader->err;
    }
    if (record.entry.kind == MANIFEST_CHUNK) {
        return reader_fail(reader, ERR_INVALID);
    }
    if (take_entry(reader, &record.entry) == ERR_OK) {
        *ret_entry = record.entry;
    }
    return reader->err;
}

enum err manifest_reader_next_chunk(struct manifest_reader *reader, struct manifest_ref *ret_chunk) {
    *ret_chunk = reader->whole;
    reader->whole.size = 0;
    if (reader->err == ERR_OK && reader->chunks_left_size > 0) {
        return read_chunk(reader, ret_chunk);
    }
    return reader->err;
}

const struct manifest_totals *manifest_reader_totals(const struct manifest_reader *reader) {
    return &reader->totals;
}
