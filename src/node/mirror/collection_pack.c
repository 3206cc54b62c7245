#include "node/mirror/collection_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/map.h"
#include "base/whole_file.h"

enum { HEAD_SIZE = 4 + SHA256_SIZE, CHUNKS_MAX = 32 << 20, MODE = 0600 };

struct collection_pack {
    int file;
    uint64_t size;
    struct map chunks; /* digest -> struct place */
};

struct place {
    uint64_t offset;
    uint32_t size;
};

static enum err pack_note(struct collection_pack *pack, const uint8_t digest[SHA256_SIZE], uint64_t offset,
                          uint32_t size) {
    enum err err = map_reserve(&pack->chunks, pack->chunks.count + 1);
    if (err == ERR_OK) {
        struct place *place = map_put(&pack->chunks, bytes_of(digest, SHA256_SIZE));
        *place = (struct place){.offset = offset, .size = size};
    }
    return err;
}

/* ---- opening ---- */

/* The chunk at the end of what is known. False: there is no further sound one. */
static bool take_next(struct collection_pack *pack, struct sha256 *sha256, uint8_t *memory,
                      enum err *ret_err) {
    uint8_t head[HEAD_SIZE];
    uint8_t digest[SHA256_SIZE];
    struct wire_reader reader;
    if (whole_file_read_at(pack->file, pack->size, head, sizeof head) != ERR_OK) {
        return false;
    }
    wire_reader_init(&reader, bytes_of(head, sizeof head));
    uint32_t size = wire_read_u32(&reader);
    if (size == 0 || size > CHUNKER_SIZE_MAX ||
        whole_file_read_at(pack->file, pack->size + HEAD_SIZE, memory, size) != ERR_OK) {
        return false;
    }
    sha256_digest(sha256, bytes_of(memory, size), digest);
    if (memcmp(digest, head + 4, SHA256_SIZE) != 0) {
        return false;
    }
    *ret_err = pack_note(pack, digest, pack->size + HEAD_SIZE, size);
    pack->size += HEAD_SIZE + (uint64_t)size;
    return *ret_err == ERR_OK;
}

static enum err pack_load(struct collection_pack *pack) {
    struct sha256 sha256;
    uint8_t *memory = malloc(CHUNKER_SIZE_MAX);
    enum err err = memory != NULL ? sha256_init(&sha256) : ERR_MEMORY;
    if (err != ERR_OK) {
        free(memory);
        return err;
    }
    while (take_next(pack, &sha256, memory, &err)) {
    }
    if (err == ERR_OK && ftruncate(pack->file, (off_t)pack->size) != 0) {
        err = err_from_errno(errno);
    }
    sha256_done(&sha256);
    free(memory);
    return err;
}

enum err collection_pack_open(const char *path, struct collection_pack **ret_pack,
                              struct err_detail *detail) {
    uint64_t seed;
    struct collection_pack *pack = calloc(1, sizeof *pack);
    if (pack == NULL) {
        return ERR_MEMORY;
    }
    randombytes_buf(&seed, sizeof seed);
    map_init(&pack->chunks, SHA256_SIZE, sizeof(struct place), CHUNKS_MAX, seed);
    pack->file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, MODE);
    enum err err = pack->file >= 0 ? pack_load(pack) : err_from_errno(errno);
    if (err != ERR_OK) {
        collection_pack_close(pack);
        return err_set(detail, err, "%.180s: %s", path, err_text(err));
    }
    *ret_pack = pack;
    return ERR_OK;
}

void collection_pack_close(struct collection_pack *pack) {
    if (pack != NULL) {
        if (pack->file >= 0) {
            close(pack->file);
        }
        map_done(&pack->chunks);
        free(pack);
    }
}

/* ---- use ---- */

static bool write_at(int file, struct bytes bytes, uint64_t offset) {
    while (bytes.size > 0) {
        ssize_t size = pwrite(file, bytes.data, bytes.size, (off_t)offset);
        if (size < 0 && errno != EINTR) {
            return false;
        }
        size_t done = size > 0 ? (size_t)size : 0;
        bytes = bytes_skip(bytes, done);
        offset += done;
    }
    return true;
}

/* Both by one call if the disk takes all of it. */
static bool write_both(int file, struct bytes head, struct bytes bytes, uint64_t offset) {
    struct iovec parts[] = {{(void *)head.data, head.size}, {(void *)bytes.data, bytes.size}};
    ssize_t size = pwritev(file, parts, 2, (off_t)offset);
    if (size < 0 && errno != EINTR) {
        return false;
    }
    size_t done = size > 0 ? (size_t)size : 0;
    size_t of_head = done < head.size ? done : head.size;
    return write_at(file, bytes_skip(head, of_head), offset + of_head) &&
           write_at(file, bytes_skip(bytes, done - of_head), offset + head.size + done - of_head);
}

enum err collection_pack_add(struct collection_pack *pack, const struct manifest_ref *ref,
                             struct bytes bytes) {
    uint8_t head[HEAD_SIZE];
    struct wire_writer writer;
    ASSERT(bytes.size == ref->size && ref->size > 0 && ref->size <= CHUNKER_SIZE_MAX);
    if (collection_pack_find(pack, ref->digest) != 0) {
        return ERR_OK;
    }
    wire_writer_init(&writer, head, sizeof head);
    wire_write_u32(&writer, ref->size);
    wire_write_bytes(&writer, bytes_of(ref->digest, SHA256_SIZE));
    if (!write_both(pack->file, bytes_of(head, sizeof head), bytes, pack->size)) {
        return err_from_errno(errno); /* the next one is written over it */
    }
    enum err err = pack_note(pack, ref->digest, pack->size + HEAD_SIZE, ref->size);
    if (err == ERR_OK) {
        pack->size += HEAD_SIZE + (uint64_t)ref->size;
    }
    return err;
}

uint32_t collection_pack_find(const struct collection_pack *pack, const uint8_t digest[SHA256_SIZE]) {
    const struct place *place = map_get(&pack->chunks, bytes_of(digest, SHA256_SIZE));
    return place != NULL ? place->size : 0;
}

enum err collection_pack_read(const struct collection_pack *pack, const uint8_t digest[SHA256_SIZE],
                              uint8_t *memory, size_t *ret_size) {
    const struct place *place = map_get(&pack->chunks, bytes_of(digest, SHA256_SIZE));
    if (place == NULL) {
        return ERR_NOT_FOUND;
    }
    *ret_size = place->size;
    bool is_read = whole_file_read_at(pack->file, place->offset, memory, place->size) == ERR_OK;
    return is_read ? ERR_OK : ERR_IO;
}

void collection_pack_forget(struct collection_pack *pack, const uint8_t digest[SHA256_SIZE]) {
    (void)map_remove(&pack->chunks, bytes_of(digest, SHA256_SIZE));
}

uint64_t collection_pack_size(const struct collection_pack *pack) {
    return pack->size;
}

void collection_pack_clear(struct collection_pack *pack) {
    map_clear(&pack->chunks);
    pack->size = 0;
    int result = ftruncate(pack->file, 0);
    (void)result;
}
