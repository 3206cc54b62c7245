#include "warc/zip_source.h"

#include <stdlib.h>
#include <zlib.h>

enum {
    IN_SIZE = 64 << 10,
    PIECE_SIZE_MAX = 1 << 30, /* zlib counts in 32 bits */
    ZLIB_RAW = -15,           /* largest window, no header */
};

static enum err zip_refuse(const struct zip_source *zip, const char *reason, struct err_detail *detail) {
    return err_set_at(detail, ERR_CORRUPT, (size_t)(zip->entry->data_offset + zip->taken), "ZIP: %.*s: %s",
                      BYTES_ARG(zip->entry->name), reason);
}

static enum err zip_read_file(struct zip_source *zip, void *out, size_t size, size_t *ret_size,
                              struct err_detail *detail) {
    uint64_t left = zip->entry->stored_size - zip->taken;
    size_t wanted = size < left ? size : (size_t)left;
    size_t got = 0;
    enum err err = source_seek(zip->file, zip->entry->data_offset + zip->taken, detail);
    if (err == ERR_OK && wanted > 0) {
        err = source_read(zip->file, out, wanted, &got, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (got == 0 && wanted > 0) {
        return zip_refuse(zip, "the file ends inside it", detail);
    }
    zip->taken += got;
    *ret_size = got;
    return ERR_OK;
}

/* Bytes on their way out. At the end, all of them must have been the right ones. */
static enum err zip_give(struct zip_source *zip, const void *out, size_t size, size_t *ret_size,
                         struct err_detail *detail) {
    if (size == 0 && zip->has_crc && zip->crc32 != zip->entry->crc32) {
        return zip_refuse(zip, "its bytes do not have the CRC-32 that the directory says", detail);
    }
    if (zip->has_crc) {
        zip->crc32 = (uint32_t)crc32_z(zip->crc32, out, size);
    }
    zip->made += size;
    *ret_size = size;
    return ERR_OK;
}

/* ---- stored ---- */

static enum err read_stored(struct source *source, void *out, size_t size, size_t *ret_size,
                            struct err_detail *detail) {
    struct zip_source *zip = (struct zip_source *)source;
    size_t got = 0;
    enum err err = zip_read_file(zip, out, size, &got, detail);
    return err == ERR_OK ? zip_give(zip, out, got, ret_size, detail) : err;
}

static enum err seek_stored(struct source *source, uint64_t offset, struct err_detail *detail) {
    (void)detail;
    struct zip_source *zip = (struct zip_source *)source;
    uint64_t to = offset < zip->entry->size ? offset : zip->entry->size;
    zip->has_crc = to == 0 || (zip->has_crc && to == zip->made);
    zip->crc32 = to == 0 ? 0 : zip->crc32;
    zip->made = to;
    zip->taken = to;
    return ERR_OK;
}

/* ---- deflated ---- */

static enum err inflate_some(struct zip_source *zip, uint8_t *out, size_t size, size_t *ret_size,
                             struct err_detail *detail) {
    z_stream *stream = zip->stream;
    stream->next_out = out;
    stream->avail_out = (uInt)size;
    while (stream->avail_out == size && !zip->is_ended) {
        if (stream->avail_in == 0) {
            size_t got = 0;
            enum err err = zip_read_file(zip, zip->in, IN_SIZE, &got, detail);
            if (err != ERR_OK) {
                return err;
            }
            stream->next_in = zip->in;
            stream->avail_in = (uInt)got;
        }
        int result = inflate(stream, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR) {
            return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
        }
        if (result == Z_BUF_ERROR && stream->avail_in == 0 && zip->taken == zip->entry->stored_size) {
            return zip_refuse(zip, "its deflate stream has no end", detail);
        }
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
            return zip_refuse(zip, stream->msg != NULL ? stream->msg : "not deflate", detail);
        }
        zip->is_ended = result == Z_STREAM_END;
    }
    *ret_size = size - stream->avail_out;
    return ERR_OK;
}

/* All of the size has come out: the stream and its stored bytes must end here too. */
static enum err end_deflated(struct zip_source *zip, struct err_detail *detail) {
    uint8_t more;
    size_t got = 0;
    enum err err = zip->is_ended ? ERR_OK : inflate_some(zip, &more, 1, &got, detail);
    if (err == ERR_OK && got > 0) {
        return zip_refuse(zip, "it unpacks to more than its size", detail);
    }
    if (err == ERR_OK && (zip->stream->avail_in > 0 || zip->taken < zip->entry->stored_size)) {
        return zip_refuse(zip, "bytes behind the end of its deflate stream", detail);
    }
    return err;
}

static enum err read_deflated(struct source *source, void *out, size_t size, size_t *ret_size,
                              struct err_detail *detail) {
    struct zip_source *zip = (struct zip_source *)source;
    uint64_t left = zip->entry->size - zip->made;
    size_t wanted = size < left ? size : (size_t)left;
    size_t got = 0;
    wanted = wanted < PIECE_SIZE_MAX ? wanted : PIECE_SIZE_MAX;
    enum err err = wanted > 0 ? inflate_some(zip, out, wanted, &got, detail) : end_deflated(zip, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (wanted > 0 && got == 0) {
        return zip_refuse(zip, "it unpacks to less than its size", detail);
    }
    return zip_give(zip, out, got, ret_size, detail);
}

/* ---- both ---- */

enum err zip_source_init(struct zip_source *zip, struct source *file, const struct zip_entry *entry) {
    ASSERT(source_can_seek(file));
    bool is_stored = entry->method == ZIP_STORED;
    *zip = (struct zip_source){
        .source = {.read = is_stored ? read_stored : read_deflated, .seek = is_stored ? seek_stored : NULL},
        .file = file,
        .entry = entry,
        .has_crc = true,
    };
    if (is_stored) {
        return ERR_OK;
    }
    zip->in = malloc(IN_SIZE);
    z_stream *stream = calloc(1, sizeof *stream);
    if (zip->in == NULL || stream == NULL || inflateInit2(stream, ZLIB_RAW) != Z_OK) {
        free(stream);
        zip_source_done(zip);
        return ERR_MEMORY;
    }
    zip->stream = stream;
    return ERR_OK;
}

void zip_source_done(struct zip_source *zip) {
    if (zip->stream != NULL) {
        inflateEnd(zip->stream);
        free(zip->stream);
    }
    free(zip->in);
    *zip = (struct zip_source){0};
}
