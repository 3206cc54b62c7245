/* manifest, manifest_writer, manifest_reader, manifest_compare: entries become nodes and come back; what did
 * not change is not new; what nobody may write is not read. */
#include "protocol/mirror/manifest_compare.h"

#include <stdio.h>
#include <stdlib.h>

#include "allocations.h"
#include "base/map.h"
#include "base/prng.h"
#include "protocol/mirror/manifest_writer.h"
#include "unit.h"

enum {
    NODES_MAX = 8192,
    MEMORY_SIZE = 256 << 20, /* of which only what is used is ever touched */
    FILES_IN_DIRECTORY = 1000,
    MANY_COUNT = UNIT_IS_SANITIZED ? 50000 : 1000000,
};

/* ---- a place for nodes ---- */

struct store {
    struct map nodes; /* digest -> offset */
    uint8_t *memory;
    size_t used;
    size_t new_size; /* of nodes that were not there, since it was last set to 0 */
};

struct fixture {
    struct store store;
    struct manifest_writer *writer;
    struct manifest_reader *readers[2];
};

static enum err put(void *context, const struct manifest_ref *ref, struct bytes node) {
    struct store *store = context;
    struct bytes key = bytes_of(ref->digest, SHA256_SIZE);
    assert_int_equal(ref->size, node.size);
    if (map_get(&store->nodes, key) != NULL) {
        return ERR_OK;
    }
    size_t *offset = map_put(&store->nodes, key);
    assert_non_null(offset);
    assert_true(store->used + node.size <= MEMORY_SIZE);
    *offset = store->used;
    memcpy(store->memory + store->used, node.data, node.size);
    store->used += node.size;
    store->new_size += node.size;
    return ERR_OK;
}

static enum err get(void *context, const struct manifest_ref *ref, uint8_t *memory) {
    const struct store *store = context;
    const size_t *offset = map_get(&store->nodes, bytes_of(ref->digest, SHA256_SIZE));
    if (offset == NULL) {
        return ERR_NOT_FOUND;
    }
    memcpy(memory, store->memory + *offset, ref->size);
    return ERR_OK;
}

static int setup(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    map_init(&fixture->store.nodes, SHA256_SIZE, sizeof(size_t), NODES_MAX, 1);
    assert_int_equal(map_reserve(&fixture->store.nodes, NODES_MAX), ERR_OK);
    fixture->store.memory = malloc(MEMORY_SIZE);
    assert_non_null(fixture->store.memory);
    assert_int_equal(manifest_writer_new(&fixture->writer), ERR_OK);
    assert_int_equal(manifest_reader_new(&fixture->readers[0]), ERR_OK);
    assert_int_equal(manifest_reader_new(&fixture->readers[1]), ERR_OK);
    manifest_writer_start(fixture->writer, (struct manifest_sink){&fixture->store, put});
    *state = fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    map_done(&fixture->store.nodes);
    free(fixture->store.memory);
    manifest_writer_free(fixture->writer);
    manifest_reader_free(fixture->readers[0]);
    manifest_reader_free(fixture->readers[1]);
    free(fixture);
    return 0;
}

static void start_reader(struct fixture *fixture, unsigned index, const struct manifest_ref *root) {
    manifest_reader_start(fixture->readers[index], (struct manifest_source){&fixture->store, get}, root);
}

/* ---- entries ---- */

static struct manifest_entry directory(const char *path) {
    return (struct manifest_entry){.kind = MANIFEST_DIRECTORY, .path = bytes_of_string(path), .mode = 0755};
}

static struct manifest_entry file(const char *path, uint64_t size, uint8_t content) {
    struct manifest_entry entry = {
        .kind = MANIFEST_FILE, .path = bytes_of_string(path), .mode = 0644, .size = size};
    memset(entry.digest, size == 0 ? 0 : content, SHA256_SIZE);
    return entry;
}

static struct manifest_entry link_to(const char *path, const char *target) {
    return (struct manifest_entry){.kind = MANIFEST_LINK,
                                   .path = bytes_of_string(path),
                                   .mode = 0777,
                                   .target = bytes_of_string(target)};
}

static struct manifest_ref chunk(uint32_t size, uint8_t content) {
    struct manifest_ref ref = {.size = size};
    memset(ref.digest, content, SHA256_SIZE);
    return ref;
}

static void add(struct fixture *fixture, struct manifest_entry entry) {
    assert_int_equal(manifest_writer_add(fixture->writer, &entry), ERR_OK);
}

static void add_chunk(struct fixture *fixture, struct manifest_ref ref) {
    assert_int_equal(manifest_writer_chunk(fixture->writer, &ref), ERR_OK);
}

static struct manifest_ref finish(struct fixture *fixture) {
    struct manifest_ref root;
    struct manifest_totals totals;
    assert_int_equal(manifest_writer_finish(fixture->writer, &root, &totals), ERR_OK);
    manifest_writer_start(fixture->writer, (struct manifest_sink){&fixture->store, put});
    return root;
}

/* ---- there and back ---- */

static void entries_come_back(void **state) {
    struct fixture *fixture = *state;
    struct manifest_entry entries[] = {
        directory("a"),
        file("a/empty", 0, 0),
        file("a/small", CHUNKER_WHOLE_SIZE_MAX, 1),
        link_to("a/up", "../b"),
        file("a\n", 5, 2),
        directory("b"),
        link_to("b/l", "./.././a"),
        file("b/\xff", 1, 3),
        file("ba", 7, 4),
    };
    size_t count = sizeof entries / sizeof *entries;
    struct manifest_ref root;
    struct manifest_totals totals;
    entries[1].time_us = INT64_MIN;
    entries[2].time_us = INT64_MAX;
    entries[4].time_us = -1;
    entries[5].mode = 0;
    for (size_t i = 0; i < count; i++) {
        add(fixture, entries[i]);
    }
    assert_int_equal(manifest_writer_finish(fixture->writer, &root, &totals), ERR_OK);
    assert_int_equal(totals.files_count, 5);
    assert_int_equal(totals.directories_count, 2);
    assert_int_equal(totals.links_count, 2);
    assert_int_equal(totals.content_size, CHUNKER_WHOLE_SIZE_MAX + 5 + 1 + 7);
    start_reader(fixture, 0, &root);
    for (size_t i = 0; i < count; i++) {
        struct manifest_entry entry;
        struct manifest_ref ref;
        assert_int_equal(manifest_reader_next(fixture->readers[0], &entry), ERR_OK);
        assert_int_equal(entry.kind, entries[i].kind);
        assert_bytes_equal(entry.path, entries[i].path);
        assert_bytes_equal(entry.target, entries[i].target);
        assert_true(entry.time_us == entries[i].time_us && entry.mode == entries[i].mode);
        assert_true(entry.size == entries[i].size);
        assert_memory_equal(entry.digest, entries[i].digest, SHA256_SIZE);
        assert_int_equal(manifest_reader_next_chunk(fixture->readers[0], &ref), ERR_OK);
        assert_int_equal(ref.size, entry.size); /* a small file is one chunk, all else none */
        assert_int_equal(manifest_reader_next_chunk(fixture->readers[0], &ref), ERR_OK);
        assert_int_equal(ref.size, 0);
    }
    struct manifest_entry end;
    assert_int_equal(manifest_reader_next(fixture->readers[0], &end), ERR_OK);
    assert_int_equal(end.kind, MANIFEST_END);
    assert_memory_equal(manifest_reader_totals(fixture->readers[0]), &totals, sizeof totals);
}

static void an_empty_collection_is_one(void **state) {
    struct fixture *fixture = *state;
    struct manifest_ref root = finish(fixture);
    struct manifest_entry entry;
    assert_int_equal(root.size, MANIFEST_NODE_HEADER_SIZE);
    start_reader(fixture, 0, &root);
    assert_int_equal(manifest_reader_next(fixture->readers[0], &entry), ERR_OK);
    assert_int_equal(entry.kind, MANIFEST_END);
}

/* 3 GB: its chunks alone are many nodes. */
static void a_huge_file_has_its_chunks_in_order(void **state) {
    struct fixture *fixture = *state;
    enum { COUNT = 50000, SIZE = 64 << 10 };
    struct manifest_ref ref = chunk(SIZE, 1);
    struct manifest_entry entry;
    add(fixture, file("huge", (uint64_t)COUNT * SIZE + 1, 9));
    for (uint32_t i = 0; i < COUNT; i++) {
        memcpy(ref.digest, &i, sizeof i);
        add_chunk(fixture, ref);
    }
    add_chunk(fixture, chunk(1, 2));
    add(fixture, file("next", 3, 3));
    struct manifest_ref root = finish(fixture);
    start_reader(fixture, 0, &root);
    for (unsigned pass = 0; pass < 2; pass++) { /* the second one passes over most of them */
        start_reader(fixture, 0, &root);
        assert_int_equal(manifest_reader_next(fixture->readers[0], &entry), ERR_OK);
        for (uint32_t i = 0; i < (pass == 0 ? COUNT : 10); i++) {
            assert_int_equal(manifest_reader_next_chunk(fixture->readers[0], &ref), ERR_OK);
            assert_int_equal(ref.size, SIZE);
            assert_memory_equal(ref.digest, &i, sizeof i);
        }
        assert_int_equal(manifest_reader_next(fixture->readers[0], &entry), ERR_OK);
        assert_bytes_equal(entry.path, BYTES("next"));
    }
}

/* As docs/formats/collection.md has it. */
static void bytes_are_as_drawn(void **state) {
    struct fixture *fixture = *state;
    static const uint8_t head[] = {
        1, 0,                                                         /* layout, level */
        1, 0, 1, 'a', 0xed, 3,    0, 0, 0, 0, 0, 0, 0, 0,             /* a directory, 0755 */
        2, 1, 2, '/', 'b',  0xa4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0xac, 2, /* a file of 300, 0644, its time 258 */
    };
    static const uint8_t tail[] = {
        3, 2, 1, 'c', 0xff, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'b', /* a link to b, 0777 */
    };
    uint8_t node[MANIFEST_NODE_SIZE_MAX];
    struct manifest_entry entry = file("a/b", 300, 7);
    entry.time_us = 258;
    add(fixture, directory("a"));
    add(fixture, entry);
    add(fixture, link_to("a/c", "b"));
    struct manifest_ref root = finish(fixture);
    assert_int_equal(root.size, sizeof head + SHA256_SIZE + sizeof tail);
    assert_int_equal(get(&fixture->store, &root, node), ERR_OK);
    assert_memory_equal(node, head, sizeof head);
    assert_memory_equal(node + sizeof head, entry.digest, SHA256_SIZE);
    assert_memory_equal(node + sizeof head + SHA256_SIZE, tail, sizeof tail);
}

/* ---- many ---- */

/* Directories of a thousand files each; `changed` has another content, `left_out` is not there. */
static struct manifest_ref write_many(struct fixture *fixture, uint32_t count, uint32_t changed,
                                      uint32_t left_out) {
    char path[64];
    for (uint32_t i = 0; i < count; i++) {
        if (i % FILES_IN_DIRECTORY == 0) {
            snprintf(path, sizeof path, "directory-%06u", i / FILES_IN_DIRECTORY);
            add(fixture, directory(path));
        }
        snprintf(path, sizeof path, "directory-%06u/file-%08u.html", i / FILES_IN_DIRECTORY, i);
        struct manifest_entry entry = file(path, 500 + i % 1000, 1);
        uint64_t content = prng_mix(i + (i == changed ? UINT64_C(1) << 40 : 0));
        memcpy(entry.digest, &content, sizeof content);
        entry.time_us = (int64_t)i * 1000003;
        if (i != left_out) {
            add(fixture, entry);
        }
    }
    return finish(fixture);
}

static void a_million_entries_need_no_more_memory_than_one(void **state) {
    struct fixture *fixture = *state;
    struct manifest_compare compare;
    struct manifest_change change = {0};
    size_t counts[MANIFEST_REMOVED + 1] = {0};
    size_t before = allocations_count;
    struct manifest_ref old = write_many(fixture, MANY_COUNT, UINT32_MAX, MANY_COUNT / 3);
    struct manifest_ref new = write_many(fixture, MANY_COUNT, MANY_COUNT / 2, MANY_COUNT - 1);
    start_reader(fixture, 0, &old);
    start_reader(fixture, 1, &new);
    manifest_compare_init(&compare, fixture->readers[0], fixture->readers[1]);
    do {
        assert_int_equal(manifest_compare_next(&compare, &change, NULL), ERR_OK);
        counts[change.kind]++;
    } while (change.kind != MANIFEST_FINISHED);
    assert_int_equal(allocations_count, before);
    assert_int_equal(counts[MANIFEST_ADDED], 1);
    assert_int_equal(counts[MANIFEST_REMOVED], 1);
    assert_int_equal(counts[MANIFEST_CHANGED], 1);
    assert_int_equal(counts[MANIFEST_TOUCHED], 0);
    assert_int_equal(counts[MANIFEST_SAME], MANY_COUNT - 3 + MANY_COUNT / FILES_IN_DIRECTORY);
}

static void a_small_change_makes_few_new_nodes(void **state) {
    struct fixture *fixture = *state;
    enum { COUNT = 100000 };
    struct manifest_ref root = write_many(fixture, COUNT, UINT32_MAX, UINT32_MAX);
    size_t whole = fixture->store.new_size;
    static const uint32_t places[] = {0, COUNT / 2, COUNT - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        fixture->store.new_size = 0;
        struct manifest_ref changed = write_many(fixture, COUNT, places[i], UINT32_MAX);
        assert_false(manifest_ref_equal(&root, &changed));
        assert_in_range(fixture->store.new_size, 1, whole / 10);
        fixture->store.new_size = 0;
        struct manifest_ref shorter = write_many(fixture, COUNT, UINT32_MAX, places[i]);
        assert_false(manifest_ref_equal(&root, &shorter));
        assert_in_range(fixture->store.new_size, 1, whole / 10);
    }
    fixture->store.new_size = 0;
    struct manifest_ref again = write_many(fixture, COUNT, UINT32_MAX, UINT32_MAX);
    assert_true(manifest_ref_equal(&root, &again));
    assert_int_equal(fixture->store.new_size, 0);
}

/* ---- what to do ---- */

static void comparison_tells_what_to_do(void **state) {
    struct fixture *fixture = *state;
    struct manifest_compare compare;
    struct manifest_change change;
    add(fixture, directory("d"));
    add(fixture, file("d/changed", 1, 1));
    add(fixture, file("d/gone", 1, 1));
    add(fixture, file("d/same", 1, 1));
    add(fixture, file("d/touched", 1, 1));
    add(fixture, link_to("link", "d"));
    add(fixture, directory("turns"));
    add(fixture, file("turns/inside", 1, 1));
    struct manifest_ref old = finish(fixture);
    struct manifest_entry touched = file("d/touched", 1, 1);
    touched.time_us = 5;
    add(fixture, directory("d"));
    add(fixture, file("d/came", 1, 1));
    add(fixture, file("d/changed", 1, 2));
    add(fixture, file("d/same", 1, 1));
    add(fixture, touched);
    add(fixture, link_to("link", "d/same"));
    add(fixture, file("turns", 1, 1));
    struct manifest_ref new = finish(fixture);
    static const struct {
        enum manifest_change_kind kind;
        const char *path;
    } expected[] = {
        {MANIFEST_SAME, "d"},         {MANIFEST_ADDED, "d/came"},  {MANIFEST_CHANGED, "d/changed"},
        {MANIFEST_REMOVED, "d/gone"}, {MANIFEST_SAME, "d/same"},   {MANIFEST_TOUCHED, "d/touched"},
        {MANIFEST_CHANGED, "link"},   {MANIFEST_CHANGED, "turns"}, {MANIFEST_REMOVED, "turns/inside"},
    };
    start_reader(fixture, 0, &old);
    start_reader(fixture, 1, &new);
    manifest_compare_init(&compare, fixture->readers[0], fixture->readers[1]);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(manifest_compare_next(&compare, &change, NULL), ERR_OK);
        assert_int_equal(change.kind, expected[i].kind);
        const struct manifest_entry *entry = change.after != NULL ? change.after : change.before;
        assert_bytes_equal(entry->path, bytes_of_string(expected[i].path));
    }
    assert_int_equal(manifest_compare_next(&compare, &change, NULL), ERR_OK);
    assert_int_equal(change.kind, MANIFEST_FINISHED);
    start_reader(fixture, 1, &new);
    manifest_compare_init(&compare, NULL, fixture->readers[1]); /* the first version: all is new */
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(manifest_compare_next(&compare, &change, NULL), ERR_OK);
        assert_int_equal(change.kind, MANIFEST_ADDED);
    }
    assert_int_equal(manifest_compare_next(&compare, &change, NULL), ERR_OK);
    assert_int_equal(change.kind, MANIFEST_FINISHED);
}

/* ---- what may not be ---- */

static void refuses(struct fixture *fixture, struct manifest_entry entry) {
    assert_int_equal(manifest_writer_add(fixture->writer, &entry), ERR_INVALID);
    assert_non_null(manifest_writer_fault(fixture->writer));
}

static void the_writer_refuses_and_goes_on(void **state) {
    struct fixture *fixture = *state;
    struct manifest_entry special = file("b", 1, 1);
    struct manifest_ref large = chunk(CHUNKER_SIZE_MAX, 1);
    struct manifest_ref small = chunk(100, 1);
    special.mode = 04755;
    add(fixture, file("a", 1, 1));
    refuses(fixture, file("a/b", 1, 1));
    refuses(fixture, file("../b", 1, 1));
    refuses(fixture, file("a", 1, 1));
    refuses(fixture, file("Z", 1, 1));
    refuses(fixture, link_to("b", "../x"));
    refuses(fixture, special);
    refuses(fixture, file("b", 1, 0)); /* a digest of zeros */
    assert_int_equal(manifest_writer_chunk(fixture->writer, &small), ERR_INVALID);
    add(fixture, file("b", CHUNKER_SIZE_MAX + 1, 1));
    refuses(fixture, file("c", 1, 1)); /* b has no chunks yet */
    assert_int_equal(manifest_writer_chunk(fixture->writer, &small), ERR_INVALID);
    add_chunk(fixture, large);
    assert_int_equal(manifest_writer_chunk(fixture->writer, &large), ERR_INVALID);
    struct manifest_ref root;
    struct manifest_totals totals;
    assert_int_equal(manifest_writer_finish(fixture->writer, &root, &totals), ERR_INVALID);
    add_chunk(fixture, chunk(1, 2));
    add(fixture, file("c", 1, 1));
    assert_int_equal(manifest_writer_finish(fixture->writer, &root, &totals), ERR_OK);
    assert_int_equal(totals.files_count, 3);
}

static enum err refuse_put(void *context, const struct manifest_ref *ref, struct bytes node) {
    (void)context;
    (void)ref;
    (void)node;
    return ERR_NO_SPACE;
}

static void errors_of_the_sink_are_handed_on(void **state) {
    struct fixture *fixture = *state;
    struct manifest_ref root;
    struct manifest_totals totals;
    manifest_writer_start(fixture->writer, (struct manifest_sink){NULL, refuse_put});
    add(fixture, file("a", 1, 1));
    assert_int_equal(manifest_writer_finish(fixture->writer, &root, &totals), ERR_NO_SPACE);
}

/* A node as only a malicious publisher would make it. */
static enum err read_all(struct fixture *fixture, struct bytes node) {
    struct manifest_ref root = {.size = (uint32_t)node.size};
    struct manifest_entry entry = {.kind = MANIFEST_FILE};
    struct sha256 sha256;
    enum err err = ERR_OK;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    sha256_digest(&sha256, node, root.digest);
    sha256_done(&sha256);
    assert_int_equal(put(&fixture->store, &root, node), ERR_OK);
    start_reader(fixture, 0, &root);
    while (err == ERR_OK && entry.kind != MANIFEST_END) {
        err = manifest_reader_next(fixture->readers[0], &entry);
    }
    return err;
}

static enum err read_entries(struct fixture *fixture, const struct manifest_entry *entries, size_t count,
                             const struct manifest_ref *chunks, size_t chunks_count) {
    uint8_t memory[2 * MANIFEST_RECORD_SIZE_MAX];
    struct wire_writer writer;
    struct bytes previous = BYTES("");
    wire_writer_init(&writer, memory, sizeof memory);
    manifest_write_header(&writer, 0);
    for (size_t i = 0; i < count; i++) {
        manifest_write_entry(&writer, previous, &entries[i]);
        previous = entries[i].path;
    }
    for (size_t i = 0; i < chunks_count; i++) {
        manifest_write_chunk(&writer, &chunks[i]);
    }
    assert_int_equal(writer.err, ERR_OK);
    return read_all(fixture, bytes_of(memory, writer.size));
}

static enum err read_one(struct fixture *fixture, struct manifest_entry entry) {
    return read_entries(fixture, &entry, 1, NULL, 0);
}

static enum err read_two(struct fixture *fixture, struct manifest_entry one, struct manifest_entry other) {
    struct manifest_entry entries[] = {one, other};
    return read_entries(fixture, entries, 2, NULL, 0);
}

static void the_reader_refuses_every_trick(void **state) {
    struct fixture *fixture = *state;
    struct manifest_entry special = file("a", 1, 1);
    struct manifest_entry zero = file("a", 1, 1);
    special.mode = 04755;
    zero.path = BYTES("a\0b");
    assert_int_equal(read_one(fixture, file("a", 1, 1)), ERR_OK);
    assert_int_equal(read_one(fixture, file("..", 1, 1)), ERR_INVALID);
    assert_int_equal(read_one(fixture, file("/etc/passwd", 1, 1)), ERR_INVALID);
    assert_int_equal(read_one(fixture, file("a/b", 1, 1)), ERR_INVALID);
    assert_int_equal(read_one(fixture, link_to("a", "..")), ERR_INVALID);
    assert_int_equal(read_one(fixture, link_to("a", "/etc")), ERR_INVALID);
    assert_int_equal(read_one(fixture, zero), ERR_INVALID);
    assert_int_equal(read_one(fixture, special), ERR_LIMIT);
    assert_int_equal(read_two(fixture, directory("a"), file("a/b", 1, 1)), ERR_OK);
    assert_int_equal(read_two(fixture, link_to("a", "."), file("a/b", 1, 1)), ERR_INVALID);
    assert_int_equal(read_two(fixture, file("a", 1, 1), file("a/b", 1, 1)), ERR_INVALID);
    assert_int_equal(read_two(fixture, file("b", 1, 1), file("a", 1, 1)), ERR_INVALID);
    assert_int_equal(read_two(fixture, directory("a"), directory("a/..")), ERR_INVALID);
}

static void chunks_must_be_those_of_the_file(void **state) {
    struct fixture *fixture = *state;
    struct manifest_entry large = file("a", CHUNKER_SIZE_MAX + 1, 1);
    struct manifest_entry small = file("a", 1, 1);
    struct manifest_ref good[] = {chunk(CHUNKER_SIZE_MAX, 1), chunk(1, 2)};
    struct manifest_ref long_one[] = {chunk(CHUNKER_SIZE_MAX, 1), chunk(2, 2)};
    struct manifest_ref tiny[] = {chunk(1, 1), chunk(CHUNKER_SIZE_MAX, 2)};
    assert_int_equal(read_entries(fixture, &large, 1, good, 2), ERR_OK);
    assert_int_equal(read_entries(fixture, &large, 1, good, 1), ERR_TRUNCATED);
    assert_int_equal(read_entries(fixture, &large, 1, long_one, 2), ERR_INVALID);
    assert_int_equal(read_entries(fixture, &large, 1, tiny, 2), ERR_INVALID);
    assert_int_equal(read_entries(fixture, &small, 1, good, 1), ERR_INVALID);
    assert_int_equal(read_entries(fixture, NULL, 0, good, 1), ERR_INVALID);
}

static void nodes_are_checked(void **state) {
    struct fixture *fixture = *state;
    static const uint8_t later[] = {2, 0};
    static const uint8_t high[] = {1, MANIFEST_LEVELS_MAX};
    static const uint8_t no_list[] = {1, 1};
    static const uint8_t unknown[] = {1, 0, 9};
    static const uint8_t short_one[] = {1};
    uint8_t skips[2 + 1 + SHA256_SIZE] = {1, 2};
    assert_int_equal(read_all(fixture, bytes_of(later, sizeof later)), ERR_UNSUPPORTED);
    assert_int_equal(read_all(fixture, bytes_of(high, sizeof high)), ERR_INVALID);
    assert_int_equal(read_all(fixture, bytes_of(no_list, sizeof no_list)), ERR_INVALID);
    assert_int_equal(read_all(fixture, bytes_of(unknown, sizeof unknown)), ERR_INVALID);
    assert_int_equal(read_all(fixture, bytes_of(short_one, sizeof short_one)), ERR_LIMIT);
    struct manifest_ref empty = finish(fixture); /* of level 0, listed by one of level 2 */
    skips[2] = (uint8_t)empty.size;
    memcpy(skips + 3, empty.digest, SHA256_SIZE);
    assert_int_equal(read_all(fixture, bytes_of(skips, sizeof skips)), ERR_INVALID);
}

static void every_byte_of_every_node_counts(void **state) {
    struct fixture *fixture = *state;
    struct manifest_ref root = write_many(fixture, 20000, UINT32_MAX, UINT32_MAX);
    for (size_t i = 0; i < fixture->store.used; i += 4093) {
        struct manifest_entry entry = {.kind = MANIFEST_FILE};
        enum err err = ERR_OK;
        fixture->store.memory[i] ^= 1;
        start_reader(fixture, 0, &root);
        while (err == ERR_OK && entry.kind != MANIFEST_END) {
            err = manifest_reader_next(fixture->readers[0], &entry);
        }
        assert_int_equal(err, ERR_CORRUPT);
        assert_int_equal(manifest_reader_next(fixture->readers[0], &entry), ERR_CORRUPT); /* and stays so */
        fixture->store.memory[i] ^= 1;
    }
    root.digest[0] ^= 1;
    struct manifest_entry entry;
    start_reader(fixture, 0, &root);
    assert_int_equal(manifest_reader_next(fixture->readers[0], &entry), ERR_NOT_FOUND);
}

static void without_memory_there_is_none(void **state) {
    (void)state;
    struct manifest_writer *writer = NULL;
    struct manifest_reader *reader = NULL;
    allocations_left = 0;
    enum err writer_err = manifest_writer_new(&writer);
    enum err reader_err = manifest_reader_new(&reader);
    allocations_left = SIZE_MAX;
    assert_int_equal(writer_err, ERR_MEMORY);
    assert_int_equal(reader_err, ERR_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(entries_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_are_as_drawn, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_collection_is_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_huge_file_has_its_chunks_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_million_entries_need_no_more_memory_than_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_small_change_makes_few_new_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown(comparison_tells_what_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(the_writer_refuses_and_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_of_the_sink_are_handed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(the_reader_refuses_every_trick, setup, teardown),
        cmocka_unit_test_setup_teardown(chunks_must_be_those_of_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(every_byte_of_every_node_counts, setup, teardown),
        cmocka_unit_test(without_memory_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
