#include "node/mirror/collection_places.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/whole_file.h"

enum { HEAD_SIZE = 16, RECORD_SIZE = 64, PATH_SIZE_MAX = 4096 + 16, MODE = 0600 };
static const size_t RECORDS_SIZE_MAX = (size_t)2 << 30; /* 33 million chunks: 2 TB of content */
static const size_t PATHS_SIZE_MAX = (size_t)1 << 30;
static const char magic[8] = {'m', 'n', 'p', 'l', 1, 0, 0, 0};

struct collection_places {
    const uint8_t *data;
    size_t size;
    uint64_t count;
};

/* ---- writing ---- */

struct making {
    struct buf records;
    struct buf paths;
};

static void put_record(struct making *making, const uint8_t digest[SHA256_SIZE], uint64_t size,
                       uint64_t offset, uint64_t path, size_t path_size) {
    struct wire_writer writer;
    if (buf_reserve(&making->records, RECORD_SIZE) != ERR_OK) {
        return;
    }
    wire_writer_init(&writer, making->records.data + making->records.size, RECORD_SIZE);
    wire_write_bytes(&writer, bytes_of(digest, SHA256_SIZE));
    wire_write_u64(&writer, size);
    wire_write_u64(&writer, offset);
    wire_write_u64(&writer, path);
    wire_write_u64(&writer, path_size);
    making->records.size += RECORD_SIZE;
}

static enum err put_file(struct making *making, struct manifest_reader *reader,
                         const struct manifest_entry *entry) {
    struct manifest_ref chunk;
    uint64_t path = making->paths.size;
    size_t path_size = entry->path.size;
    buf_put(&making->paths, entry->path);
    put_record(making, entry->digest, entry->size, 0, path, path_size);
    uint64_t offset = 0;
    while (manifest_has_chunks(entry)) {
        enum err err = manifest_reader_next_chunk(reader, &chunk);
        if (err != ERR_OK || chunk.size == 0) {
            return err;
        }
        put_record(making, chunk.digest, chunk.size, offset, path, path_size);
        offset += chunk.size;
    }
    return ERR_OK;
}

static enum err gather(struct making *making, struct manifest_source nodes, const struct manifest_ref *root) {
    struct manifest_reader *reader;
    struct manifest_entry entry;
    enum err err = manifest_reader_new(&reader);
    if (err != ERR_OK) {
        return err;
    }
    manifest_reader_start(reader, nodes, root);
    while ((err = manifest_reader_next(reader, &entry)) == ERR_OK && entry.kind != MANIFEST_END) {
        if (entry.kind == MANIFEST_FILE && entry.size > 0) {
            err = put_file(making, reader, &entry);
        }
        if (err != ERR_OK) {
            break;
        }
    }
    manifest_reader_free(reader);
    err = err == ERR_OK ? making->records.err : err;
    return err == ERR_OK ? making->paths.err : err;
}

static int compare_records(const void *a, const void *b) {
    return memcmp(a, b, SHA256_SIZE);
}

static bool places_put_part(FILE *file, struct bytes bytes) {
    return bytes.size == 0 || fwrite(bytes.data, bytes.size, 1, file) == 1;
}

static enum err places_write_file(const char *path, const struct making *making, struct err_detail *detail) {
    char beside[PATH_SIZE_MAX];
    uint8_t head[HEAD_SIZE];
    struct wire_writer writer;
    wire_writer_init(&writer, head, sizeof head);
    wire_write_bytes(&writer, bytes_of(magic, sizeof magic));
    wire_write_u64(&writer, making->records.size / RECORD_SIZE);
    snprintf(beside, sizeof beside, "%s.new", path);
    int number = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, MODE);
    FILE *file = number >= 0 ? fdopen(number, "w") : NULL;
    bool is_written = file != NULL && places_put_part(file, bytes_of(head, sizeof head)) &&
                      places_put_part(file, buf_bytes(&making->records)) &&
                      places_put_part(file, buf_bytes(&making->paths)) && fflush(file) == 0 &&
                      fsync(number) == 0;
    is_written = file != NULL && fclose(file) == 0 && is_written && rename(beside, path) == 0;
    return is_written ? ERR_OK : whole_file_fail(path, detail);
}

enum err collection_places_write(const char *path, struct manifest_source nodes,
                                 const struct manifest_ref *root, struct err_detail *detail) {
    struct making making;
    buf_init(&making.records, RECORDS_SIZE_MAX);
    buf_init(&making.paths, PATHS_SIZE_MAX);
    enum err err = gather(&making, nodes, root);
    if (err == ERR_OK) {
        if (making.records.size > 0) {
            qsort(making.records.data, making.records.size / RECORD_SIZE, RECORD_SIZE, compare_records);
        }
        err = places_write_file(path, &making, detail);
    } else {
        err = err_set(detail, err, "the manifest cannot be read: %s", err_text(err));
    }
    buf_done(&making.records);
    buf_done(&making.paths);
    return err;
}

/* ---- reading ---- */

static bool is_sound(const struct collection_places *places, uint64_t *ret_count) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes_of(places->data, HEAD_SIZE));
    struct bytes mark = wire_read_bytes(&reader, sizeof magic);
    uint64_t count = wire_read_u64(&reader);
    *ret_count = count;
    return bytes_equal(mark, bytes_of(magic, sizeof magic)) &&
           count <= (places->size - HEAD_SIZE) / RECORD_SIZE;
}

enum err collection_places_open(const char *path, struct collection_places **ret_places,
                                struct err_detail *detail) {
    struct stat stat;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || fstat(file, &stat) != 0) {
        enum err err = whole_file_fail(path, detail);
        if (file >= 0) {
            close(file);
        }
        return err;
    }
    struct collection_places *places = calloc(1, sizeof *places);
    void *data = places != NULL && stat.st_size >= HEAD_SIZE
                     ? mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, file, 0)
                     : MAP_FAILED;
    close(file);
    if (data == MAP_FAILED) {
        free(places);
        return err_set(detail, ERR_CORRUPT, "%.200s is damaged", path);
    }
    places->data = data;
    places->size = (size_t)stat.st_size;
    if (!is_sound(places, &places->count)) {
        collection_places_close(places);
        return err_set(detail, ERR_CORRUPT, "%.200s is damaged", path);
    }
    *ret_places = places;
    return ERR_OK;
}

void collection_places_close(struct collection_places *places) {
    if (places != NULL) {
        munmap((void *)places->data, places->size);
        free(places);
    }
}

static bool places_read_place(const struct collection_places *places, const uint8_t *record,
                              struct collection_place *ret_place) {
    struct wire_reader reader;
    uint64_t paths = HEAD_SIZE + places->count * RECORD_SIZE;
    uint64_t paths_size = places->size - paths;
    wire_reader_init(&reader, bytes_of(record, RECORD_SIZE));
    (void)wire_read_bytes(&reader, SHA256_SIZE);
    ret_place->size = wire_read_u64(&reader);
    ret_place->offset = wire_read_u64(&reader);
    uint64_t path = wire_read_u64(&reader);
    uint64_t path_size = wire_read_u64(&reader);
    if (path > paths_size || path_size > paths_size - path) {
        return false;
    }
    ret_place->path = bytes_of(places->data + paths + path, path_size);
    return path_rule_fault(ret_place->path) == NULL;
}

bool collection_places_find(const struct collection_places *places, const uint8_t digest[SHA256_SIZE],
                            struct collection_place *ret_place) {
    const uint8_t *records = places->data + HEAD_SIZE;
    uint64_t low = 0;
    uint64_t high = places->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (memcmp(records + middle * RECORD_SIZE, digest, SHA256_SIZE) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const uint8_t *record = records + low * RECORD_SIZE;
    return low < places->count && memcmp(record, digest, SHA256_SIZE) == 0 &&
           places_read_place(places, record, ret_place);
}
