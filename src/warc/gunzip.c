#include "warc/gunzip.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    ZLIB_GZIP_ONLY = 15 + 16,   /* largest window, gzip header expected */
    WHOLE_INPUT_MIN = 64 << 10, /* so much of a file is made ready before the short way is tried */
};

enum err gunzip_init(struct gunzip *gunzip) {
    *gunzip = (struct gunzip){.stream = calloc(1, sizeof *gunzip->stream)};
    if (gunzip->stream == NULL) {
        return ERR_MEMORY;
    }
    if (inflateInit2(gunzip->stream, ZLIB_GZIP_ONLY) != Z_OK) {
        free(gunzip->stream);
        gunzip->stream = NULL;
        return ERR_MEMORY;
    }
    gunzip->whole = libdeflate_alloc_decompressor();
    if (gunzip->whole == NULL) {
        gunzip_done(gunzip);
        return ERR_MEMORY;
    }
    return ERR_OK;
}

void gunzip_done(struct gunzip *gunzip) {
    if (gunzip->stream != NULL) {
        inflateEnd(gunzip->stream);
        free(gunzip->stream);
    }
    if (gunzip->whole != NULL) {
        libdeflate_free_decompressor(gunzip->whole);
    }
    *gunzip = (struct gunzip){0};
}

void gunzip_start(struct gunzip *gunzip) {
    int result = inflateReset(gunzip->stream);
    ASSERT(result == Z_OK);
    gunzip->is_fresh = true;
}

static bool decode_whole(struct gunzip *gunzip, struct window *window, uint8_t *out, size_t out_size,
                         size_t *ret_size) {
    struct bytes ready = window_ready(window);
    size_t taken;
    size_t made;
    if (libdeflate_gzip_decompress_ex(gunzip->whole, ready.data, ready.size, out, out_size, &taken, &made) !=
        LIBDEFLATE_SUCCESS) {
        return false;
    }
    window_consume(window, taken);
    *ret_size = made;
    return true;
}

/* zlib's own words name what failed: "incorrect data check", "invalid stored block lengths" … */
static enum err failed(const struct gunzip *gunzip, struct err_detail *detail) {
    const char *reason = gunzip->stream->msg != NULL ? gunzip->stream->msg : "not deflate";
    bool is_check = strstr(reason, "check") != NULL && strstr(reason, "header") == NULL;
    return err_set(detail, is_check ? ERR_CORRUPT : ERR_INVALID, "gzip: %s", reason);
}

enum err gunzip_step(struct gunzip *gunzip, struct window *window, uint8_t *out, size_t out_size,
                     size_t *ret_size, bool *ret_is_end, struct err_detail *detail) {
    enum err err = window_fill(window, gunzip->is_fresh ? WHOLE_INPUT_MIN : 1, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (gunzip->is_fresh && decode_whole(gunzip, window, out, out_size, ret_size)) {
        *ret_is_end = true;
        return ERR_OK;
    }
    gunzip->is_fresh = false;
    struct bytes ready = window_ready(window);
    if (ready.size == 0) {
        return err_set(detail, ERR_TRUNCATED, "gzip: the file ends inside a member");
    }
    z_stream *stream = gunzip->stream;
    stream->next_in = (uint8_t *)(uintptr_t)ready.data; /* zlib does not write to it */
    stream->avail_in = (uInt)ready.size;
    stream->next_out = out;
    stream->avail_out = (uInt)out_size;
    int result = inflate(stream, Z_NO_FLUSH);
    window_consume(window, ready.size - stream->avail_in);
    if (result == Z_MEM_ERROR) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return failed(gunzip, detail);
    }
    *ret_size = out_size - stream->avail_out;
    *ret_is_end = result == Z_STREAM_END;
    return ERR_OK;
}
