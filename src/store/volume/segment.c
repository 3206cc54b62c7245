#include "store/volume/segment.h"

#include <stdio.h>

static const char *const suffixes[] = {
    [PACK_PLAIN] = ".warc",
    [PACK_GZIP] = ".warc.gz",
    [PACK_ZSTD] = ".warc.zst",
};

const char *segment_name(uint32_t number, enum pack_framing framing, char out[SEGMENT_NAME_SIZE_MAX]) {
    uint32_t place = number / SEGMENT_GENERATIONS;
    uint32_t generation = number % SEGMENT_GENERATIONS;
    if (generation == 0) {
        snprintf(out, SEGMENT_NAME_SIZE_MAX, "%08u%s", place, suffixes[framing]);
    } else {
        snprintf(out, SEGMENT_NAME_SIZE_MAX, "%08u-%u%s", place, generation, suffixes[framing]);
    }
    return out;
}

bool segment_parse_name(const char *name, uint32_t *ret_number, enum pack_framing *ret_framing) {
    struct bytes text = bytes_of_string(name);
    size_t dot = bytes_find_byte(text, '.');
    struct bytes number = bytes_slice(text, 0, dot);
    size_t dash = bytes_find_byte(number, '-');
    uint64_t place;
    uint64_t generation = 0;
    if (!bytes_to_u64(bytes_slice(number, 0, dash), UINT32_MAX / SEGMENT_GENERATIONS, &place) || place == 0) {
        return false;
    }
    if (dash < number.size &&
        !bytes_to_u64(bytes_skip(number, dash + 1), SEGMENT_GENERATIONS - 1, &generation)) {
        return false;
    }
    for (enum pack_framing framing = PACK_PLAIN; framing <= PACK_ZSTD; framing++) {
        char written[SEGMENT_NAME_SIZE_MAX];
        uint32_t found = (uint32_t)(place * SEGMENT_GENERATIONS + generation);
        if (bytes_equal(text, bytes_of_string(segment_name(found, framing, written)))) {
            *ret_number = found; /* a number has one name: "1.warc.gz" is none */
            *ret_framing = framing;
            return true;
        }
    }
    return false;
}

static void path_of(char out[SEGMENT_PATH_SIZE_MAX], const char *directory, const char *name,
                    bool is_temporary) {
    int size = snprintf(out, SEGMENT_PATH_SIZE_MAX, "%s/%s%s", directory, name,
                        is_temporary ? SEGMENT_TEMPORARY : "");
    ASSERT(size > 0 && size < SEGMENT_PATH_SIZE_MAX);
}

static void path_of_segment(char out[SEGMENT_PATH_SIZE_MAX], const char *directory,
                            const struct segment *segment, bool is_temporary) {
    char name[SEGMENT_NAME_SIZE_MAX];
    path_of(out, directory, segment_name(segment->number, segment->framing, name), is_temporary);
}

static enum err digest_of(struct bytes dictionary, uint8_t digest[SHA256_SIZE]) {
    struct sha256 sha256;
    enum err err = sha256_init(&sha256);
    if (err == ERR_OK) {
        sha256_digest(&sha256, dictionary, digest);
        sha256_done(&sha256);
    }
    return err;
}

/* Remember the dictionary, for this segment and for those that take it over. */
static enum err set_dictionary(struct segment *segment, struct bytes dictionary, int level,
                               struct err_detail *detail) {
    buf_init(&segment->dictionary_raw, ZDICT_SIZE_MAX);
    enum err err = buf_put(&segment->dictionary_raw, dictionary);
    if (err == ERR_OK) {
        err = digest_of(dictionary, segment->dictionary_digest);
    }
    if (err == ERR_OK) {
        err = zdict_init(&segment->dictionary, dictionary, level, detail);
    }
    segment->has_dictionary = err == ERR_OK;
    if (err != ERR_OK) {
        buf_done(&segment->dictionary_raw);
    }
    return err;
}

static enum err put_dictionary(struct segment *segment, struct bytes dictionary, int level,
                               struct err_detail *detail) {
    enum err err = set_dictionary(segment, dictionary, level, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct buf frame;
    buf_init(&frame, ZDICT_SIZE_MAX + 64);
    err = zdict_put_frame(&frame, dictionary);
    if (err == ERR_OK) {
        err = vfs_write(&segment->file, 0, buf_bytes(&frame));
    }
    segment->size = frame.size;
    buf_done(&frame);
    return err;
}

enum err segment_create(struct segment *segment, struct vfs *vfs, const char *directory, uint32_t number,
                        enum pack_framing framing, struct bytes dictionary, int level,
                        struct err_detail *detail) {
    struct segment made = {.number = number, .framing = framing};
    char path[SEGMENT_PATH_SIZE_MAX];
    path_of_segment(path, directory, &made, true);
    enum err err = vfs_open(vfs, path, VFS_WRITE | VFS_CREATE | VFS_EXCLUSIVE, &made.file);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s: %s", path, err_text(err));
    }
    if (dictionary.size > 0) {
        ASSERT(framing == PACK_ZSTD);
        err = put_dictionary(&made, dictionary, level, detail);
    }
    if (err != ERR_OK) {
        enum err removed = segment_unlink(&made, directory, true);
        (void)removed; /* opening the volume removes it */
        segment_done(&made);
        return err_set(detail, err, "%s: %s", path, err_text(err));
    }
    *segment = made;
    return ERR_OK;
}

enum err segment_publish(struct segment *segment, const char *directory, struct err_detail *detail) {
    struct vfs *vfs = segment->file.vfs;
    char temporary[SEGMENT_PATH_SIZE_MAX];
    char path[SEGMENT_PATH_SIZE_MAX];
    path_of_segment(temporary, directory, segment, true);
    path_of_segment(path, directory, segment, false);
    enum err err = vfs_sync(&segment->file);
    if (err == ERR_OK) {
        err = vfs_rename(vfs, temporary, path);
    }
    if (err == ERR_OK) {
        err = vfs_sync_directory(vfs, directory);
    }
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s: %s", path, err_text(err));
}

enum err segment_unlink(const struct segment *segment, const char *directory, bool is_temporary) {
    char path[SEGMENT_PATH_SIZE_MAX];
    path_of_segment(path, directory, segment, is_temporary);
    return vfs_unlink(segment->file.vfs, path);
}

static uint32_t load_u32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static enum err unpack_dictionary(struct segment *segment, struct bytes content, int level,
                                  struct err_detail *detail) {
    struct buf dictionary;
    buf_init(&dictionary, ZDICT_SIZE_MAX);
    enum err err = zdict_unpack(content, &dictionary, detail);
    if (err == ERR_OK) {
        err = set_dictionary(segment, buf_bytes(&dictionary), level, detail);
    }
    buf_done(&dictionary);
    return err;
}

/* The dictionary in front of a zstd file, if there is one. */
static enum err read_dictionary(struct segment *segment, int level, struct err_detail *detail) {
    uint8_t header[ZDICT_FRAME_HEADER_SIZE];
    size_t got;
    enum err err = vfs_read(&segment->file, 0, header, sizeof header, &got);
    if (err != ERR_OK || got < sizeof header || load_u32(header) != ZDICT_FRAME_MAGIC) {
        return err;
    }
    uint32_t size = load_u32(header + 4);
    if (size > ZDICT_SIZE_MAX) {
        return err_set(detail, ERR_CORRUPT, "segment %u: a dictionary of %u bytes", segment->number, size);
    }
    struct buf content;
    buf_init(&content, ZDICT_SIZE_MAX + 1);
    err = buf_reserve(&content, size);
    if (err == ERR_OK) {
        err = vfs_read(&segment->file, sizeof header, content.data, size, &content.size);
    }
    if (err == ERR_OK && content.size < size) {
        err = err_set(detail, ERR_TRUNCATED, "segment %u ends in its dictionary", segment->number);
    }
    if (err == ERR_OK) {
        err = unpack_dictionary(segment, buf_bytes(&content), level, detail);
    }
    buf_done(&content);
    return err;
}

enum err segment_open(struct segment *segment, struct vfs *vfs, const char *directory, const char *name,
                      int level, unsigned flags, struct err_detail *detail) {
    struct segment made = {0};
    char path[SEGMENT_PATH_SIZE_MAX];
    path_of(path, directory, name, false);
    bool is_segment = segment_parse_name(name, &made.number, &made.framing);
    ASSERT(is_segment);
    enum err err = vfs_open(vfs, path, flags, &made.file);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s: %s", path, err_text(err));
    }
    err = vfs_size(&made.file, &made.size);
    if (err == ERR_OK && made.framing == PACK_ZSTD) {
        err = read_dictionary(&made, level, detail);
    }
    if (err != ERR_OK) {
        segment_done(&made);
        return err;
    }
    *segment = made;
    return ERR_OK;
}

void segment_done(struct segment *segment) {
    if (segment->has_dictionary) {
        zdict_done(&segment->dictionary);
        buf_done(&segment->dictionary_raw);
        segment->has_dictionary = false;
    }
    vfs_close(&segment->file);
}

enum err segment_read(const struct segment *segment, const struct location *location, struct buf *buf) {
    enum err err = buf_reserve(buf, location->length);
    if (err != ERR_OK) {
        return err;
    }
    size_t got;
    err = vfs_read(&segment->file, location->offset, buf->data + buf->size, location->length, &got);
    if (err != ERR_OK) {
        return err;
    }
    if (got < location->length) {
        return ERR_CORRUPT;
    }
    buf->size += got;
    return ERR_OK;
}

static enum err source_read_segment(struct source *source, void *out, size_t size, size_t *ret_size,
                                    struct err_detail *detail) {
    struct segment_source *from = (struct segment_source *)source;
    uint64_t left = from->offset < from->end ? from->end - from->offset : 0;
    size_t wanted = size < left ? size : (size_t)left;
    enum err err = vfs_read(&from->segment->file, from->offset, out, wanted, ret_size);
    if (err != ERR_OK) {
        return err_set_at(detail, err, from->offset, "segment %u: %s", from->segment->number, err_text(err));
    }
    from->offset += *ret_size;
    return ERR_OK;
}

static enum err source_seek_segment(struct source *source, uint64_t offset, struct err_detail *detail) {
    (void)detail;
    ((struct segment_source *)source)->offset = offset;
    return ERR_OK;
}

void segment_source_init(struct segment_source *source, const struct segment *segment, uint64_t end) {
    *source = (struct segment_source){
        .source = {.read = source_read_segment, .seek = source_seek_segment},
        .segment = segment,
        .end = end,
    };
}
