#include "protocol/mirror/manifest.h"

enum { LAYOUT = 1 };

static bool is_zero(const uint8_t digest[SHA256_SIZE]) {
    static const uint8_t zeros[SHA256_SIZE];
    return memcmp(digest, zeros, SHA256_SIZE) == 0;
}

void manifest_totals_add(struct manifest_totals *totals, const struct manifest_entry *entry) {
    totals->directories_count += entry->kind == MANIFEST_DIRECTORY;
    totals->files_count += entry->kind == MANIFEST_FILE;
    totals->links_count += entry->kind == MANIFEST_LINK;
    totals->content_size += entry->kind == MANIFEST_FILE ? entry->size : 0;
}

const char *manifest_entry_fault(const struct manifest_entry *entry) {
    const char *fault = path_rule_fault(entry->path);
    if (fault == NULL && entry->mode > MANIFEST_MODE_MAX) {
        fault = "more than permissions in a mode";
    }
    if (fault != NULL) {
        return fault;
    }
    if (entry->kind == MANIFEST_LINK) {
        return path_rule_link_fault(entry->path, entry->target);
    }
    if (entry->kind == MANIFEST_FILE) {
        if (entry->size > MANIFEST_FILE_SIZE_MAX) {
            return "a file above 1 PiB";
        }
        return (entry->size == 0) == is_zero(entry->digest) ? NULL : "a digest that does not fit the size";
    }
    return entry->kind == MANIFEST_DIRECTORY ? NULL : "an entry of an unknown kind";
}

const char *manifest_chunk_fault(const struct manifest_ref *chunk, uint64_t left_size) {
    if (left_size == 0) {
        return "a chunk of no file";
    }
    if (chunk->size == 0 || chunk->size > left_size || chunk->size > CHUNKER_SIZE_MAX) {
        return "a chunk larger than it may be, or empty";
    }
    return chunk->size < CHUNKER_SIZE_MIN && chunk->size < left_size ? "a chunk below 16 KiB" : NULL;
}

/* ---- records ---- */

void manifest_write_entry(struct wire_writer *writer, struct bytes previous,
                          const struct manifest_entry *entry) {
    size_t shared = bytes_common_size(previous, entry->path);
    wire_write_u8(writer, (uint8_t)entry->kind);
    wire_write_varint(writer, shared);
    wire_write_string(writer, bytes_skip(entry->path, shared));
    wire_write_varint(writer, entry->mode);
    wire_write_u64(writer, (uint64_t)entry->time_us);
    if (entry->kind == MANIFEST_LINK) {
        wire_write_string(writer, entry->target);
    }
    if (entry->kind == MANIFEST_FILE) {
        wire_write_varint(writer, entry->size);
        if (entry->size > 0) {
            wire_write_bytes(writer, bytes_of(entry->digest, SHA256_SIZE));
        }
    }
}

void manifest_write_chunk(struct wire_writer *writer, const struct manifest_ref *chunk) {
    wire_write_u8(writer, MANIFEST_CHUNK);
    manifest_write_ref(writer, chunk);
}

/* There is one way to write a path: shared as far as possible. */
static struct bytes read_path(struct wire_reader *reader, uint8_t *path, size_t path_size) {
    size_t shared = (size_t)wire_read_varint(reader, path_size);
    struct bytes rest = wire_read_string(reader, PATH_RULE_SIZE_MAX - shared);
    if (rest.size == 0 || (shared < path_size && rest.data[0] == path[shared])) {
        wire_read_fail(reader, ERR_INVALID, "a path that shares less or more than it should");
        return bytes_of(path, 0);
    }
    memcpy(path + shared, rest.data, rest.size);
    return bytes_of(path, shared + rest.size);
}

static void manifest_read_entry(struct wire_reader *reader, uint8_t *path, size_t path_size,
                                struct manifest_entry *entry) {
    entry->path = read_path(reader, path, path_size);
    entry->mode = (uint16_t)wire_read_varint(reader, MANIFEST_MODE_MAX);
    entry->time_us = (int64_t)wire_read_u64(reader);
    if (entry->kind == MANIFEST_LINK) {
        entry->target = wire_read_string(reader, PATH_RULE_SIZE_MAX);
    }
    if (entry->kind == MANIFEST_FILE) {
        entry->size = wire_read_varint(reader, MANIFEST_FILE_SIZE_MAX);
        if (entry->size > 0) {
            wire_read_array(reader, entry->digest, SHA256_SIZE);
        }
    }
    if (reader->err == ERR_OK) {
        const char *fault = manifest_entry_fault(entry);
        wire_read_check(reader, fault == NULL, fault);
    }
}

void manifest_read_record(struct wire_reader *reader, uint8_t *path, size_t path_size,
                          struct manifest_record *ret_record) {
    memset(ret_record, 0, sizeof *ret_record);
    uint8_t kind = wire_read_u8(reader);
    ret_record->entry.kind = (enum manifest_kind)kind;
    if (kind == MANIFEST_CHUNK) {
        manifest_read_ref(reader, &ret_record->chunk);
    } else if (kind >= MANIFEST_DIRECTORY && kind <= MANIFEST_LINK) {
        manifest_read_entry(reader, path, path_size, &ret_record->entry);
    } else {
        wire_read_fail(reader, ERR_INVALID, "a record of an unknown kind");
    }
}

/* ---- nodes ---- */

void manifest_write_header(struct wire_writer *writer, unsigned level) {
    ASSERT(level < MANIFEST_LEVELS_MAX);
    wire_write_u8(writer, LAYOUT);
    wire_write_u8(writer, (uint8_t)level);
}

unsigned manifest_read_header(struct wire_reader *reader) {
    if (reader->input.size > MANIFEST_NODE_SIZE_MAX) {
        wire_read_fail(reader, ERR_LIMIT, "a node above 256 KiB");
    }
    wire_read_version(reader, LAYOUT, "a manifest of a later layout");
    unsigned level = wire_read_u8_max(reader, MANIFEST_LEVELS_MAX - 1);
    wire_read_check(reader, level == 0 || wire_reader_left(reader) > 0, "an empty list of nodes");
    return level;
}

void manifest_write_ref(struct wire_writer *writer, const struct manifest_ref *ref) {
    wire_write_varint(writer, ref->size);
    wire_write_bytes(writer, bytes_of(ref->digest, SHA256_SIZE));
}

void manifest_read_ref(struct wire_reader *reader, struct manifest_ref *ret_ref) {
    ret_ref->size = (uint32_t)wire_read_varint(reader, CHUNKER_SIZE_MAX);
    wire_read_array(reader, ret_ref->digest, SHA256_SIZE);
    wire_read_check(reader, ret_ref->size > 0, "a reference to nothing");
}
