/*
 * collection-files - any bytes as the files of a collection that are read when a node starts: setup.json is
 * the same after it was written again; places and the pack are opened, and what they name is bounded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"
#include "node/mirror/collection_pack.h"
#include "node/mirror/collection_places.h"
#include "node/mirror/collection_setup.h"
#include "protocol/mirror/chunker.h"

enum { FILE_SIZE_MAX = 1 << 20, TEXT_SIZE_MAX = 64 << 10, DIGEST_STEP = 4 };

/* In its place on the disk. */
static void check_setup_file(struct collection_setup *setup) {
    static const char *const directories[] = {"/nodes", "/staging", "/trees", ""};
    char directory[] = "/tmp/mnemon-fuzz-XXXXXX";
    char path[COLLECTION_SETUP_PATH_SIZE_MAX];
    static char names[COLLECTION_SETUP_NAMES_MAX][VERSION_NAME_SIZE_MAX + 1];
    struct version version = {.name = "papers", .number = 1};
    struct collection_setup again;
    bool is_made = mkdtemp(directory) != NULL;
    ASSERT(is_made && collection_setup_read(directory, "papers", &again, NULL) == ERR_NOT_FOUND);
    enum err err = collection_setup_write(directory, setup, NULL);
    ASSERT(err == ERR_OK && collection_setup_read(directory, "papers", &again, NULL) == ERR_OK);
    ASSERT(collection_setup_names(directory, names) == 1);
    ASSERT(collection_setup_any_needs_no_group(directory) == collection_setup_needs_no_group(&again));
    for (size_t i = 0; i < again.readers.count; i++) {
        ASSERT(collection_readers_have(&again.readers, setup->readers.keys[i]));
    }
    err = collection_setup_write_version(directory, "papers", "version", &version, NULL);
    ASSERT(err == ERR_OK); /* nobody has signed it */
    ASSERT(collection_setup_read_version(directory, "papers", "version", &version, NULL) == ERR_CORRUPT);
    err = collection_setup_remove(directory, "papers", NULL);
    ASSERT(err == ERR_OK && collection_setup_remove(directory, "papers", NULL) == ERR_NOT_FOUND);
    unlink(collection_setup_path(directory, "papers", "version", path));
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
        snprintf(path, sizeof path, "%s/collections/papers%s", directory, directories[i]);
        rmdir(path);
    }
    snprintf(path, sizeof path, "%s/collections", directory);
    rmdir(path);
    rmdir(directory);
}

static void check_setup(struct bytes input) {
    struct collection_setup *setup = calloc(2, sizeof *setup);
    struct buf text;
    ASSERT(setup != NULL);
    buf_init(&text, TEXT_SIZE_MAX);
    if (collection_setup_parse(input, "papers", &setup[0])) {
        enum err err = collection_setup_put(&setup[0], &text, NULL);
        bool is_read = err == ERR_OK && collection_setup_parse(buf_bytes(&text), "papers", &setup[1]);
        ASSERT(is_read && collection_readers_equal(&setup[0].readers, &setup[1].readers));
        ASSERT(strcmp(setup[0].directory, setup[1].directory) == 0);
        ASSERT(setup[0].sources_count == setup[1].sources_count);
        check_setup_file(&setup[0]);
    }
    buf_done(&text);
    free(setup);
}

/* What looks like a digest is looked up. */
static void check_places(const char *path, struct bytes input) {
    struct collection_places *places;
    struct collection_place place;
    if (collection_places_open(path, &places, NULL) != ERR_OK) {
        return;
    }
    for (size_t i = 0; i + SHA256_SIZE <= input.size; i += DIGEST_STEP) {
        if (collection_places_find(places, input.data + i, &place)) {
            ASSERT(place.path.size > 0 && place.path.size <= input.size);
        }
    }
    collection_places_close(places);
}

/* A chunk that comes behind what is there, goes, and comes again. */
static void check_adding(struct collection_pack *pack, struct bytes input, uint8_t *memory) {
    struct manifest_ref ref = {.size =
                                   (uint32_t)(input.size < CHUNKER_SIZE_MAX ? input.size : CHUNKER_SIZE_MAX)};
    struct bytes chunk = bytes_of(input.data, ref.size);
    size_t size;
    memset(ref.digest, 0xa5, sizeof ref.digest);
    if (ref.size == 0 || collection_pack_find(pack, ref.digest) != 0) {
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        enum err err = collection_pack_add(pack, &ref, chunk);
        ASSERT(err == ERR_OK && collection_pack_add(pack, &ref, chunk) == ERR_OK);
        ASSERT(collection_pack_read(pack, ref.digest, memory, &size) == ERR_OK);
        ASSERT(bytes_equal(bytes_of(memory, size), chunk));
        collection_pack_forget(pack, ref.digest);
        ASSERT(collection_pack_find(pack, ref.digest) == 0);
        collection_pack_clear(pack);
    }
}

static void check_pack(const char *path, struct bytes input) {
    struct collection_pack *pack;
    uint8_t *memory = malloc(CHUNKER_SIZE_MAX);
    size_t size;
    ASSERT(memory != NULL && collection_pack_open("/nonexistent/pack", &pack, NULL) != ERR_OK);
    if (collection_pack_open(path, &pack, NULL) == ERR_OK) {
        ASSERT(collection_pack_size(pack) <= input.size);
        for (size_t i = 0; i + SHA256_SIZE <= input.size; i += DIGEST_STEP) {
            uint32_t found = collection_pack_find(pack, input.data + i);
            bool is_read = collection_pack_read(pack, input.data + i, memory, &size) == ERR_OK;
            ASSERT(is_read == (found > 0) && (!is_read || size == found));
        }
        check_adding(pack, input, memory);
        collection_pack_close(pack);
    }
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes input = bytes_of(data, size);
    char path[] = "/tmp/mnemon-fuzz-XXXXXX";
    if (size > FILE_SIZE_MAX) {
        return 0;
    }
    if (size <= TEXT_SIZE_MAX) {
        check_setup(input);
    }
    int file = mkstemp(path);
    ASSERT(file >= 0);
    ssize_t written = write(file, data, size);
    ASSERT(written == (ssize_t)size);
    close(file);
    check_places(path, input);
    check_pack(path, input); /* last: it cuts off what is not sound */
    unlink(path);
    return 0;
}
