/*
 * Mirroring (protocol/mirror/chunker.h, group/manifest*.h), in processor time of one core.
 *
 *      cutting    random bytes, beside the SHA-256 of the same bytes, which every chunk needs anyway
 *      manifest   a million files: written, compared with a version in which one file differs, and what is
 * new then; beside it what people do instead: two lists as sha256sum writes them, compared line by line in
 * memory
 */
#include <malloc.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/prng.h"
#include "bench.h"
#include "protocol/mirror/manifest_compare.h"
#include "protocol/mirror/manifest_writer.h"

enum {
    DATA_SIZE = 128 << 20,
    FILES_COUNT = 1000000,
    FILES_IN_DIRECTORY = 1000,
    NODES_MAX = 8192,
    STORE_SIZE = 256 << 20,
    LIST_SIZE = 128 << 20,
    ROUNDS_COUNT = 3,
};

static void must(bool is_well, const char *what) {
    if (!is_well) {
        fprintf(stderr, "bench-mirror: %s failed\n", what);
        exit(1);
    }
}

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- cutting ---- */

static double measure_chunker(const uint8_t *data, size_t *ret_count) {
    struct chunker chunker;
    size_t at = 0;
    double start_s = cpu_s();
    chunker_init(&chunker);
    *ret_count = 0;
    while (at < DATA_SIZE) {
        bool is_end;
        at += chunker_take(&chunker, bytes_of(data + at, DATA_SIZE - at), &is_end);
        *ret_count += 1;
    }
    return DATA_SIZE / 1e6 / (cpu_s() - start_s);
}

static double measure_sha256(const uint8_t *data) {
    struct sha256 sha256;
    uint8_t digest[SHA256_SIZE];
    must(sha256_init(&sha256) == ERR_OK, "sha256");
    double start_s = cpu_s();
    sha256_digest(&sha256, bytes_of(data, DATA_SIZE), digest);
    double rate = DATA_SIZE / 1e6 / (cpu_s() - start_s);
    sha256_done(&sha256);
    return rate;
}

static void bench_chunker(void) {
    uint8_t *data = malloc(DATA_SIZE);
    struct prng prng;
    double best = 0;
    double best_sha256 = 0;
    size_t count = 0;
    must(data != NULL, "malloc");
    prng_init(&prng, 1);
    prng_fill(&prng, data, DATA_SIZE);
    for (unsigned round = 0; round < ROUNDS_COUNT; round++) {
        double rate = measure_sha256(data);
        best_sha256 = rate > best_sha256 ? rate : best_sha256;
        rate = measure_chunker(data, &count);
        best = rate > best ? rate : best;
    }
    bench_row("SHA-256", best_sha256, "MB/s", 0);
    bench_row("cutting into chunks", best, "MB/s", best / best_sha256);
    bench_row("mean size of a chunk", (double)DATA_SIZE / (double)count, "bytes", 0);
    free(data);
}

/* ---- nodes and lists ---- */

struct store {
    struct map nodes; /* digest -> offset */
    uint8_t *memory;
    size_t used;
};

static enum err put(void *context, const struct manifest_ref *ref, struct bytes node) {
    struct store *store = context;
    struct bytes key = bytes_of(ref->digest, SHA256_SIZE);
    if (map_get(&store->nodes, key) == NULL) {
        size_t *offset = map_put(&store->nodes, key);
        must(offset != NULL && store->used + node.size <= STORE_SIZE, "keeping a node");
        *offset = store->used;
        memcpy(store->memory + store->used, node.data, node.size);
        store->used += node.size;
    }
    return ERR_OK;
}

static enum err get(void *context, const struct manifest_ref *ref, uint8_t *memory) {
    const struct store *store = context;
    const size_t *offset = map_get(&store->nodes, bytes_of(ref->digest, SHA256_SIZE));
    must(offset != NULL, "finding a node");
    memcpy(memory, store->memory + *offset, ref->size);
    return ERR_OK;
}

/* "directory-000012/file-00012345.html" */
static struct bytes path_of(uint32_t number, bool is_directory, char path[64]) {
    int size = is_directory
                   ? snprintf(path, 64, "directory-%06u", number / FILES_IN_DIRECTORY)
                   : snprintf(path, 64, "directory-%06u/file-%08u.html", number / FILES_IN_DIRECTORY, number);
    return bytes_of(path, (size_t)size);
}

static void digest_of(uint32_t number, bool is_changed, uint8_t digest[SHA256_SIZE]) {
    struct prng prng;
    prng_init(&prng, number + (is_changed ? UINT64_C(1) << 40 : 0));
    prng_fill(&prng, digest, SHA256_SIZE);
}

static struct manifest_ref write_manifest(struct manifest_writer *writer, struct store *store,
                                          uint32_t changed) {
    struct manifest_ref root;
    struct manifest_totals totals;
    char path[64];
    manifest_writer_start(writer, (struct manifest_sink){store, put});
    for (uint32_t i = 0; i < FILES_COUNT; i++) {
        if (i % FILES_IN_DIRECTORY == 0) {
            struct manifest_entry directory = {
                .kind = MANIFEST_DIRECTORY, .path = path_of(i, true, path), .mode = 0755};
            must(manifest_writer_add(writer, &directory) == ERR_OK, "a directory");
        }
        struct manifest_entry entry = {.kind = MANIFEST_FILE, .mode = 0644, .size = 500};
        entry.path = path_of(i, false, path);
        entry.time_us = INT64_C(1800000000000000) + i;
        digest_of(i, i == changed, entry.digest);
        must(manifest_writer_add(writer, &entry) == ERR_OK, "a file");
    }
    must(manifest_writer_finish(writer, &root, &totals) == ERR_OK, "the end");
    return root;
}

static struct bytes write_list(uint32_t changed) {
    char *list = malloc(LIST_SIZE);
    size_t used = 0;
    char path[64];
    must(list != NULL, "malloc");
    for (uint32_t i = 0; i < FILES_COUNT; i++) {
        uint8_t digest[SHA256_SIZE];
        digest_of(i, i == changed, digest);
        for (size_t j = 0; j < SHA256_SIZE; j++) {
            static const char digits[] = "0123456789abcdef";
            list[used++] = digits[digest[j] >> 4];
            list[used++] = digits[digest[j] & 15];
        }
        struct bytes name = path_of(i, false, path);
        used += (size_t)snprintf(list + used, LIST_SIZE - used, "  %.*s\n", BYTES_ARG(name));
    }
    return bytes_of(list, used);
}

/* ---- comparing ---- */

static size_t compare_manifests(struct manifest_reader *readers[2], struct store *store,
                                const struct manifest_ref roots[2]) {
    struct manifest_compare compare;
    struct manifest_change change;
    size_t count = 0;
    for (unsigned i = 0; i < 2; i++) {
        manifest_reader_start(readers[i], (struct manifest_source){store, get}, &roots[i]);
    }
    manifest_compare_init(&compare, readers[0], readers[1]);
    do {
        must(manifest_compare_next(&compare, &change, NULL) == ERR_OK, "comparing");
        count += change.kind == MANIFEST_CHANGED;
    } while (change.kind != MANIFEST_FINISHED);
    return count;
}

static size_t compare_lists(struct bytes before, struct bytes after) {
    struct bytes lines[2];
    size_t count = 0;
    while (bytes_split(&before, '\n', &lines[0]) && bytes_split(&after, '\n', &lines[1])) {
        count += !bytes_equal(lines[0], lines[1]);
    }
    return count;
}

static size_t heap_size(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void bench_manifest(void) {
    struct store store = {.memory = malloc(STORE_SIZE)};
    struct manifest_writer *writer;
    struct manifest_reader *readers[2];
    struct manifest_ref roots[2];
    double best = 0;
    double best_lists = 0;
    map_init(&store.nodes, SHA256_SIZE, sizeof(size_t), NODES_MAX, 1);
    must(store.memory != NULL && map_reserve(&store.nodes, NODES_MAX) == ERR_OK, "malloc");
    size_t heap_before = heap_size();
    must(manifest_writer_new(&writer) == ERR_OK, "a writer");
    double start_s = cpu_s();
    roots[0] = write_manifest(writer, &store, FILES_COUNT);
    double writing_s = cpu_s() - start_s;
    size_t whole_size = store.used;
    roots[1] = write_manifest(writer, &store, FILES_COUNT / 2);
    must(manifest_reader_new(&readers[0]) == ERR_OK && manifest_reader_new(&readers[1]) == ERR_OK, "readers");
    size_t heap_used = heap_size() - heap_before;
    struct bytes lists[2] = {write_list(FILES_COUNT), write_list(FILES_COUNT / 2)};
    for (unsigned round = 0; round < ROUNDS_COUNT; round++) {
        start_s = cpu_s();
        must(compare_lists(lists[0], lists[1]) == 1, "one difference");
        double rate = FILES_COUNT / (cpu_s() - start_s);
        best_lists = rate > best_lists ? rate : best_lists;
        start_s = cpu_s();
        must(compare_manifests(readers, &store, roots) == 1, "one difference");
        rate = FILES_COUNT / (cpu_s() - start_s);
        best = rate > best ? rate : best;
    }
    bench_row("two lists compared", best_lists, "files/s", 0);
    bench_row("two manifests checked and compared", best, "files/s", best / best_lists);
    bench_row("a manifest written", FILES_COUNT / writing_s, "files/s", 0);
    bench_row("list of a million files", (double)lists[0].size, "bytes", 0);
    bench_row("manifest of a million files", (double)whole_size, "bytes",
              (double)whole_size / (double)lists[0].size);
    bench_row("new in it after a change of one", (double)(store.used - whole_size), "bytes", 0);
    bench_row("memory of a writer and two readers", (double)heap_used, "bytes", 0);
    free((void *)(uintptr_t)lists[0].data);
    free((void *)(uintptr_t)lists[1].data);
    manifest_reader_free(readers[0]);
    manifest_reader_free(readers[1]);
    manifest_writer_free(writer);
    map_done(&store.nodes);
    free(store.memory);
}

int main(void) {
    bench_chunker();
    bench_manifest();
    return 0;
}
