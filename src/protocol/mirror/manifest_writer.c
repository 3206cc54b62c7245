#include "protocol/mirror/manifest_writer.h"

#include "base/arena.h"

enum { MEMORY_SIZE_MAX = 2 << 20 };

struct level {
    struct chunker chunker;
    struct wire_writer node; /* the one that has begun, in memory[] */
    struct manifest_ref last;
    uint64_t nodes_count; /* that were put */
    uint8_t memory[MANIFEST_NODE_SIZE_MAX];
};

struct manifest_writer {
    struct arena arena; /* that it lies in itself */
    struct sha256 sha256;
    struct manifest_sink sink;
    enum err err; /* of the sink, or ERR_LIMIT */
    const char *fault;
    struct manifest_totals totals;
    uint64_t chunks_left_size; /* of the last file */
    bool is_after_directory;
    size_t path_size;      /* of the last entry */
    size_t node_path_size; /* the same; 0: none in this node yet */
    uint8_t path[PATH_RULE_SIZE_MAX];
    struct level levels[MANIFEST_LEVELS_MAX];
};

enum err manifest_writer_new(struct manifest_writer **ret_writer) {
    struct manifest_writer *writer = arena_new(sizeof *writer, MEMORY_SIZE_MAX);
    enum err err = writer == NULL ? ERR_MEMORY : sha256_init(&writer->sha256);
    if (err != ERR_OK) {
        arena_free(writer);
        return err;
    }
    for (unsigned i = 0; i < MANIFEST_LEVELS_MAX; i++) {
        chunker_init(&writer->levels[i].chunker);
    }
    *ret_writer = writer;
    return ERR_OK;
}

void manifest_writer_free(struct manifest_writer *writer) {
    if (writer != NULL) {
        sha256_done(&writer->sha256);
        arena_free(writer);
    }
}

static void begin_node(struct manifest_writer *writer, unsigned index) {
    struct level *level = &writer->levels[index];
    wire_writer_init(&level->node, level->memory, sizeof level->memory);
    manifest_write_header(&level->node, index);
    chunker_start(&level->chunker);
    if (index == 0) {
        writer->node_path_size = 0;
    }
}

void manifest_writer_start(struct manifest_writer *writer, struct manifest_sink sink) {
    writer->sink = sink;
    writer->err = ERR_OK;
    writer->fault = NULL;
    writer->totals = (struct manifest_totals){0};
    writer->chunks_left_size = 0;
    writer->is_after_directory = false;
    writer->path_size = 0;
    for (unsigned i = 0; i < MANIFEST_LEVELS_MAX; i++) {
        writer->levels[i].nodes_count = 0;
        begin_node(writer, i);
    }
}

static void put_item(struct manifest_writer *writer, unsigned index, struct bytes item);

/* Hand the node out and list it in the level above. */
static void put_node(struct manifest_writer *writer, unsigned index) {
    struct level *level = &writer->levels[index];
    uint8_t memory[WIRE_VARINT_SIZE_MAX + SHA256_SIZE];
    struct wire_writer item;
    struct bytes node = bytes_of(level->memory, level->node.size);
    if (writer->err != ERR_OK) {
        return;
    }
    ASSERT(level->node.err == ERR_OK);
    level->last.size = (uint32_t)node.size;
    sha256_digest(&writer->sha256, node, level->last.digest);
    writer->err = writer->sink.put(writer->sink.context, &level->last, node);
    level->nodes_count++;
    writer->totals.manifest_size += node.size;
    begin_node(writer, index);
    if (index + 1 == MANIFEST_LEVELS_MAX) {
        /* The first node of the highest level is the root, if it stays the only one. */
        writer->err = writer->err == ERR_OK && level->nodes_count > 1 ? ERR_LIMIT : writer->err;
        return;
    }
    wire_writer_init(&item, memory, sizeof memory);
    manifest_write_ref(&item, &level->last);
    put_item(writer, index + 1, bytes_of(memory, item.size));
}

/* Append the item, and end the node where the content says so: always behind a whole item. */
static void put_item(struct manifest_writer *writer, unsigned index, struct bytes item) {
    struct level *level = &writer->levels[index];
    bool is_end = false;
    ASSERT(level->node.size + item.size <= sizeof level->memory);
    wire_write_bytes(&level->node, item);
    while (item.size > 0 && !is_end) {
        item = bytes_skip(item, chunker_take(&level->chunker, item, &is_end));
    }
    if (is_end || level->node.size > MANIFEST_NODE_SIZE_MAX - MANIFEST_RECORD_SIZE_MAX) {
        put_node(writer, index);
    }
}

static enum err writer_refuse(struct manifest_writer *writer, const char *fault) {
    writer->fault = fault;
    return ERR_INVALID;
}

static const char *fault_of(const struct manifest_writer *writer, const struct manifest_entry *entry) {
    if (writer->chunks_left_size > 0) {
        return "the file before it lacks chunks";
    }
    const char *fault = manifest_entry_fault(entry);
    return fault != NULL ? fault
                         : path_rule_order_fault(bytes_of(writer->path, writer->path_size),
                                                 writer->is_after_directory, entry->path);
}

enum err manifest_writer_add(struct manifest_writer *writer, const struct manifest_entry *entry) {
    uint8_t memory[MANIFEST_RECORD_SIZE_MAX];
    struct wire_writer record;
    if (writer->err != ERR_OK) {
        return writer->err;
    }
    const char *fault = fault_of(writer, entry);
    if (fault != NULL) {
        return writer_refuse(writer, fault);
    }
    wire_writer_init(&record, memory, sizeof memory);
    manifest_write_entry(&record, bytes_of(writer->path, writer->node_path_size), entry);
    memcpy(writer->path, entry->path.data, entry->path.size);
    writer->path_size = writer->node_path_size = entry->path.size;
    writer->is_after_directory = entry->kind == MANIFEST_DIRECTORY;
    writer->chunks_left_size = manifest_has_chunks(entry) ? entry->size : 0;
    manifest_totals_add(&writer->totals, entry);
    put_item(writer, 0, wire_writer_bytes(&record));
    return writer->err;
}

enum err manifest_writer_chunk(struct manifest_writer *writer, const struct manifest_ref *chunk) {
    uint8_t memory[MANIFEST_RECORD_SIZE_MAX];
    struct wire_writer record;
    if (writer->err != ERR_OK) {
        return writer->err;
    }
    const char *fault = manifest_chunk_fault(chunk, writer->chunks_left_size);
    if (fault != NULL) {
        return writer_refuse(writer, fault);
    }
    wire_writer_init(&record, memory, sizeof memory);
    manifest_write_chunk(&record, chunk);
    writer->chunks_left_size -= chunk->size;
    put_item(writer, 0, wire_writer_bytes(&record));
    return writer->err;
}

enum err manifest_writer_finish(struct manifest_writer *writer, struct manifest_ref *ret_root,
                                struct manifest_totals *ret_totals) {
    unsigned index = 0;
    if (writer->err == ERR_OK && writer->chunks_left_size > 0) {
        return writer_refuse(writer, "the last file lacks chunks");
    }
    for (; writer->err == ERR_OK; index++) {
        struct level *level = &writer->levels[index];
        if (level->nodes_count == 0 || level->node.size > MANIFEST_NODE_HEADER_SIZE) {
            put_node(writer, index);
        }
        if (level->nodes_count == 1) {
            break; /* the only node of its level is the root */
        }
    }
    if (writer->err != ERR_OK) {
        return writer->err;
    }
    *ret_root = writer->levels[index].last;
    *ret_totals = writer->totals;
    return ERR_OK;
}

const char *manifest_writer_fault(const struct manifest_writer *writer) {
    return writer->fault;
}
