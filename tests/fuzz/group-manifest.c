/*
 * Arbitrary bytes as nodes of a manifest: one after the other, each with its size in front, the last one is
 * the root; "@@" and a number stand for the digest of an earlier one. Held to: what is read can be written
 * again, and never leaves the collection.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <unistd.h>

#include "node/mirror/collection_places.h"
#include "protocol/mirror/manifest_reader.h"
#include "protocol/mirror/manifest_writer.h"

enum { NODES_MAX = 16 };

struct nodes {
    struct sha256 sha256;
    size_t count;
    struct manifest_ref refs[NODES_MAX];
    uint8_t *memory[NODES_MAX];
};

static enum err get(void *context, const struct manifest_ref *ref, uint8_t *memory) {
    const struct nodes *nodes = context;
    for (size_t i = 0; i < nodes->count; i++) {
        if (manifest_ref_equal(&nodes->refs[i], ref)) {
            memcpy(memory, nodes->memory[i], ref->size);
            return ERR_OK;
        }
    }
    return ERR_NOT_FOUND;
}

static enum err drop(void *context, const struct manifest_ref *ref, struct bytes node) {
    (void)context;
    ASSERT(ref->size == node.size && node.size <= MANIFEST_NODE_SIZE_MAX);
    return ERR_OK;
}

/* A mutation cannot guess a digest: behind "@@" it is put in place. */
static void put_digests(struct nodes *nodes, uint8_t *node, size_t size) {
    for (size_t i = 0; i + SHA256_SIZE <= size && nodes->count > 0; i++) {
        if (node[i] == '@' && node[i + 1] == '@') {
            const struct manifest_ref *ref = &nodes->refs[node[i + 2] % nodes->count];
            memcpy(node + i, ref->digest, SHA256_SIZE);
            i += SHA256_SIZE - 1;
        }
    }
}

static void add_node(struct nodes *nodes, struct bytes bytes) {
    uint8_t *memory = malloc(bytes.size + 1);
    ASSERT(memory != NULL);
    memcpy(memory, bytes.size == 0 ? (const uint8_t *)"" : bytes.data, bytes.size);
    put_digests(nodes, memory, bytes.size);
    struct manifest_ref *ref = &nodes->refs[nodes->count];
    ref->size = (uint32_t)bytes.size;
    sha256_digest(&nodes->sha256, bytes_of(memory, bytes.size), ref->digest);
    nodes->memory[nodes->count++] = memory;
}

/* A publisher notes where the chunks lie: of every file that is there, the file itself is found. */
static void check_places(struct nodes *nodes, struct manifest_reader *reader) {
    char path[] = "/tmp/mnemon-fuzz-XXXXXX";
    struct manifest_source source = {nodes, get};
    const struct manifest_ref *root = &nodes->refs[nodes->count - 1];
    struct collection_places *places = NULL;
    struct collection_place place;
    struct manifest_entry entry;
    int file = mkstemp(path);
    ASSERT(file >= 0);
    close(file);
    enum err err = collection_places_write(path, source, root, NULL);
    ASSERT(err == ERR_OK && collection_places_open(path, &places, NULL) == ERR_OK);
    manifest_reader_start(reader, source, root);
    while (manifest_reader_next(reader, &entry) == ERR_OK && entry.kind != MANIFEST_END) {
        bool is_file = entry.kind == MANIFEST_FILE && entry.size > 0;
        ASSERT(!is_file || collection_places_find(places, entry.digest, &place));
    }
    collection_places_close(places);
    unlink(path);
}

static void read_and_write(struct nodes *nodes, struct manifest_reader *reader,
                           struct manifest_writer *writer) {
    struct manifest_entry entry;
    struct manifest_ref chunk;
    struct manifest_ref root;
    struct manifest_totals totals;
    manifest_reader_start(reader, (struct manifest_source){nodes, get}, &nodes->refs[nodes->count - 1]);
    manifest_writer_start(writer, (struct manifest_sink){NULL, drop});
    for (;;) {
        if (manifest_reader_next(reader, &entry) != ERR_OK) {
            return;
        }
        if (entry.kind == MANIFEST_END) {
            break;
        }
        ASSERT(path_rule_fault(entry.path) == NULL);
        ASSERT(manifest_writer_add(writer, &entry) == ERR_OK);
        while (manifest_reader_next_chunk(reader, &chunk) == ERR_OK && chunk.size > 0) {
            ASSERT(!manifest_has_chunks(&entry) || manifest_writer_chunk(writer, &chunk) == ERR_OK);
        }
    }
    ASSERT(manifest_writer_finish(writer, &root, &totals) == ERR_OK);
    ASSERT(totals.files_count == manifest_reader_totals(reader)->files_count);
    ASSERT(totals.content_size == manifest_reader_totals(reader)->content_size);
    check_places(nodes, reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct manifest_reader *reader; /* kept: a megabyte each, which would be most of the work */
    static struct manifest_writer *writer;
    struct nodes nodes = {0};
    struct wire_reader input;
    ASSERT(reader != NULL || manifest_reader_new(&reader) == ERR_OK);
    ASSERT(writer != NULL || manifest_writer_new(&writer) == ERR_OK);
    ASSERT(sha256_init(&nodes.sha256) == ERR_OK);
    wire_reader_init(&input, bytes_of(data, size));
    while (nodes.count < NODES_MAX && wire_reader_left(&input) > 0) {
        uint64_t node_size = wire_read_u16(&input);
        size_t left = wire_reader_left(&input);
        add_node(&nodes, wire_read_bytes(&input, node_size < left ? (size_t)node_size : left));
    }
    if (nodes.count > 0) {
        read_and_write(&nodes, reader, writer);
    }
    for (size_t i = 0; i < nodes.count; i++) {
        free(nodes.memory[i]);
    }
    sha256_done(&nodes.sha256);
    return 0;
}
