#include "warc/unpack.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum {
    ZLIB_GZIP_ONLY = 15 + 16,   /* largest window, gzip header expected */
    WHOLE_INPUT_MIN = 64 << 10, /* so much of a file is made ready before the short way is tried */
    FRAME_INPUT_MIN = 64 << 10, /* a frame that is wholly ready is decoded in one go, without a copy */
    MAGIC_SIZE = 4,
    START_SIZE = 4096, /* unpacked bytes by which unpack_find_member() knows a record */
};

/*
 * gzip: a member that is wholly in the window and fits the output takes libdeflate's short way, which is more
 * than twice as fast; that is nearly every record. All others stream through zlib. Header, CRC-32 and length
 * are checked in both.
 */

/* Could a member start here? Only the fixed part of its header is looked at. */
static bool gunzip_is_start(struct bytes text) {
    return text.size >= 4 && text.data[0] == 0x1f && text.data[1] == 0x8b && text.data[2] == 8 &&
           (text.data[3] & 0xe0) == 0;
}

static void gunzip_done(struct gunzip *gunzip) {
    if (gunzip->stream != NULL) {
        inflateEnd(gunzip->stream);
        free(gunzip->stream);
    }
    if (gunzip->whole != NULL) {
        libdeflate_free_decompressor(gunzip->whole);
    }
    *gunzip = (struct gunzip){0};
}

static enum err gunzip_init(struct gunzip *gunzip) {
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

static void gunzip_start(struct gunzip *gunzip) {
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
static enum err gunzip_failed(const struct gunzip *gunzip, struct err_detail *detail) {
    const char *reason = gunzip->stream->msg != NULL ? gunzip->stream->msg : "not deflate";
    bool is_check = strstr(reason, "check") != NULL && strstr(reason, "header") == NULL;
    return err_set(detail, is_check ? ERR_CORRUPT : ERR_INVALID, "gzip: %s", reason);
}

/*
 * Consume some of what is ready in the window and write some output. *ret_is_end tells that the member ended
 * with this output. ERR_INVALID and ERR_CORRUPT for damage, ERR_TRUNCATED if the file ends inside; the caller
 * adds the place to the reason.
 */
static enum err gunzip_step(struct gunzip *gunzip, struct window *window, uint8_t *out, size_t out_size,
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
        return gunzip_failed(gunzip, detail);
    }
    *ret_size = out_size - stream->avail_out;
    *ret_is_end = result == Z_STREAM_END;
    return ERR_OK;
}

/*
 * zstd: windows of more than 8 MiB are refused, so a frame cannot make us take more memory than that; the
 * output comes in pieces, whatever the frame claims. Checksums are verified.
 */

static bool unzstd_is_start(struct bytes text) {
    return bytes_starts_with(text, BYTES("\x28\xb5\x2f\xfd"));
}

/* 0x184D2A50 to 0x184D2A5F, little-endian. */
static bool unzstd_is_skippable(struct bytes text) {
    return text.size >= 4 && (text.data[0] & 0xf0) == 0x50 &&
           bytes_starts_with(bytes_skip(text, 1), BYTES("\x2a\x4d\x18"));
}

static enum err unzstd_init(struct unzstd *unzstd) {
    unzstd->context = ZSTD_createDCtx();
    if (unzstd->context == NULL) {
        return ERR_MEMORY;
    }
    size_t result = ZSTD_DCtx_setParameter(unzstd->context, ZSTD_d_windowLogMax, UNPACK_WINDOW_LOG_MAX);
    ASSERT(!ZSTD_isError(result));
    return ERR_OK;
}

static void unzstd_done(struct unzstd *unzstd) {
    ZSTD_freeDCtx(unzstd->context);
    unzstd->context = NULL;
}

static void unzstd_start(struct unzstd *unzstd, const struct zdict *dictionary) {
    size_t result = ZSTD_DCtx_reset(unzstd->context, ZSTD_reset_session_only);
    ASSERT(!ZSTD_isError(result));
    result = ZSTD_DCtx_refDDict(unzstd->context, dictionary == NULL ? NULL : dictionary->decoder);
    ASSERT(!ZSTD_isError(result));
}

static enum err unzstd_failed(size_t result, struct err_detail *detail) {
    switch (ZSTD_getErrorCode(result)) {
    case ZSTD_error_memory_allocation:
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    case ZSTD_error_frameParameter_windowTooLarge:
        return err_set(detail, ERR_LIMIT, "zstd: the frame asks for a window of more than 8 MiB");
    case ZSTD_error_dictionary_wrong:
        return err_set(detail, ERR_MISMATCH, "zstd: the frame needs another dictionary than the file has");
    case ZSTD_error_checksum_wrong:
        return err_set(detail, ERR_CORRUPT, "zstd: the checksum is wrong");
    default:
        return err_set(detail, ERR_INVALID, "zstd: %s", ZSTD_getErrorName(result));
    }
}

static enum err unzstd_step(struct unzstd *unzstd, struct window *window, uint8_t *out, size_t out_size,
                            size_t *ret_size, bool *ret_is_end, struct err_detail *detail) {
    enum err err = window_fill(window, FRAME_INPUT_MIN, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes ready = window_ready(window);
    ZSTD_inBuffer input = {ready.data, ready.size, 0};
    ZSTD_outBuffer output = {out, out_size, 0};
    size_t result = ZSTD_decompressStream(unzstd->context, &output, &input);
    window_consume(window, input.pos);
    if (ZSTD_isError(result)) {
        return unzstd_failed(result, detail);
    }
    if (result != 0 && output.pos == 0 && input.pos == ready.size && window->is_at_end) {
        return err_set(detail, ERR_TRUNCATED, "zstd: the file ends inside a frame");
    }
    *ret_size = output.pos;
    *ret_is_end = result == 0;
    return ERR_OK;
}

/*
 * Files of either, and plain ones
 */

enum err unpack_init(struct unpack *unpack, const struct unpack_options *options) {
    *unpack = (struct unpack){0};
    if (options != NULL) {
        unpack->options = *options;
    }
    return window_init(&unpack->in, UNPACK_IN_SIZE);
}

void unpack_done(struct unpack *unpack) {
    window_done(&unpack->in);
    gunzip_done(&unpack->gunzip);
    unzstd_done(&unpack->unzstd);
    zdict_done(&unpack->own_dictionary);
    free(unpack->out);
    *unpack = (struct unpack){0};
}

static void leave_member(struct unpack *unpack) {
    unpack->is_in_member = false;
    unpack->is_member_ended = false;
    unpack->is_broken = false;
    unpack->member_made = 0;
    unpack->out_from = 0;
    unpack->out_to = 0;
}

void unpack_open(struct unpack *unpack, struct source *source) {
    window_open(&unpack->in, source);
    zdict_done(&unpack->own_dictionary);
    leave_member(unpack);
    unpack->is_started = false;
    unpack->made = 0;
}

struct bytes unpack_ready(const struct unpack *unpack) {
    if (!unpack->is_started || unpack->framing == UNPACK_PLAIN) {
        return window_ready(&unpack->in);
    }
    return bytes_of(unpack->out + unpack->out_from, unpack->out_to - unpack->out_from);
}

void unpack_consume(struct unpack *unpack, size_t count) {
    if (unpack->framing == UNPACK_PLAIN) {
        window_consume(&unpack->in, count);
        return;
    }
    ASSERT(count <= unpack->out_to - unpack->out_from);
    unpack->out_from += count;
}

uint64_t unpack_offset(const struct unpack *unpack) {
    return unpack->is_in_member ? unpack->member_offset : window_offset(&unpack->in);
}

/* Damage: give the reason its place and let nothing more come out of this member. */
static enum err break_off(struct unpack *unpack, enum err err, struct err_detail *detail) {
    unpack->is_broken = true;
    if (detail != NULL) {
        detail->offset = (size_t)unpack->member_offset;
    }
    return err;
}

static enum err unpack_prepare(struct unpack *unpack) {
    if (unpack->out == NULL && (unpack->out = malloc(UNPACK_OUT_SIZE)) == NULL) {
        return ERR_MEMORY;
    }
    if (unpack->framing == UNPACK_GZIP && unpack->gunzip.stream == NULL) {
        return gunzip_init(&unpack->gunzip);
    }
    if (unpack->framing == UNPACK_ZSTD && unpack->unzstd.context == NULL) {
        return unzstd_init(&unpack->unzstd);
    }
    return ERR_OK;
}

static enum err start_file(struct unpack *unpack, struct err_detail *detail) {
    enum err err = window_fill(&unpack->in, MAGIC_SIZE, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes ready = window_ready(&unpack->in);
    if (gunzip_is_start(ready)) {
        unpack->framing = UNPACK_GZIP;
    } else if (unzstd_is_start(ready) || unzstd_is_skippable(ready)) {
        unpack->framing = UNPACK_ZSTD;
    } else {
        unpack->framing = UNPACK_PLAIN;
    }
    if (unpack->framing != UNPACK_PLAIN && (err = unpack_prepare(unpack)) != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    unpack->is_started = true;
    return ERR_OK;
}

static enum err read_dictionary(struct unpack *unpack, uint32_t size, struct err_detail *detail) {
    if (unpack->own_dictionary.decoder != NULL) {
        return err_set(detail, ERR_INVALID, "zstd: a second dictionary; a file has one, at its start");
    }
    if (size > ZDICT_SIZE_MAX) {
        return err_set(detail, ERR_LIMIT, "zstd: a dictionary of %u bytes; at most %d are allowed", size,
                       ZDICT_SIZE_MAX);
    }
    struct buf content;
    buf_init(&content, ZDICT_SIZE_MAX);
    enum err err = ERR_OK;
    while (content.size < size) {
        err = window_fill(&unpack->in, 1, detail);
        struct bytes ready = window_ready(&unpack->in);
        if (err != ERR_OK || ready.size == 0) {
            break;
        }
        ready.size = ready.size < size - content.size ? ready.size : size - content.size;
        if ((err = buf_put(&content, ready)) != ERR_OK) {
            err_set(detail, err, "%s", err_text(err));
            break;
        }
        window_consume(&unpack->in, ready.size);
    }
    if (err == ERR_OK && content.size < size) {
        err = err_set(detail, ERR_TRUNCATED, "zstd: the file ends inside the dictionary");
    }
    if (err == ERR_OK) {
        err = zdict_init_content(&unpack->own_dictionary, buf_bytes(&content), detail);
    }
    buf_done(&content);
    return err;
}

/* Pass the skippable frames in front of a frame; one of them may be the dictionary. */
static enum err pass_skippable(struct unpack *unpack, struct err_detail *detail) {
    for (;;) {
        unpack->member_offset = window_offset(&unpack->in);
        enum err err = window_fill(&unpack->in, ZDICT_FRAME_HEADER_SIZE, detail);
        if (err != ERR_OK) {
            return err;
        }
        struct bytes ready = window_ready(&unpack->in);
        if (!unzstd_is_skippable(ready)) {
            return ERR_OK;
        }
        if (ready.size < ZDICT_FRAME_HEADER_SIZE) {
            return err_set(detail, ERR_TRUNCATED, "zstd: the file ends inside a skippable frame");
        }
        const uint8_t *header = ready.data;
        uint32_t size =
            header[4] | (uint32_t)header[5] << 8 | (uint32_t)header[6] << 16 | (uint32_t)header[7] << 24;
        /* Seeking back to the start of the file leads past the dictionary again. */
        bool is_known = unpack->own_dictionary.decoder != NULL && unpack->member_offset == 0;
        bool is_dictionary = header[0] == (ZDICT_FRAME_MAGIC & 0xff) && !is_known;
        window_consume(&unpack->in, ZDICT_FRAME_HEADER_SIZE);
        bool is_whole = true;
        err = is_dictionary ? read_dictionary(unpack, size, detail)
                            : window_skip(&unpack->in, size, &is_whole, detail);
        if (err == ERR_OK && !is_whole) {
            err = err_set(detail, ERR_TRUNCATED, "zstd: the file ends inside a skippable frame");
        }
        if (err != ERR_OK) {
            return err;
        }
    }
}

static void start_decoder(struct unpack *unpack) {
    if (unpack->framing == UNPACK_GZIP) {
        gunzip_start(&unpack->gunzip);
        return;
    }
    bool has_own = unpack->own_dictionary.decoder != NULL;
    unzstd_start(&unpack->unzstd, has_own ? &unpack->own_dictionary : unpack->options.dictionary);
}

static enum err unpack_decode(struct unpack *unpack, uint8_t *out, size_t out_size, size_t *ret_size,
                              bool *ret_is_end, struct err_detail *detail) {
    if (unpack->framing == UNPACK_GZIP) {
        return gunzip_step(&unpack->gunzip, &unpack->in, out, out_size, ret_size, ret_is_end, detail);
    }
    return unzstd_step(&unpack->unzstd, &unpack->in, out, out_size, ret_size, ret_is_end, detail);
}

static bool is_member_start(const struct unpack *unpack, struct bytes ready) {
    return unpack->framing == UNPACK_GZIP ? gunzip_is_start(ready) : unzstd_is_start(ready);
}

/* *ret_is_there is false at the end of the file. */
static enum err start_member(struct unpack *unpack, bool *ret_is_there, struct err_detail *detail) {
    leave_member(unpack);
    unpack->member_offset = window_offset(&unpack->in);
    enum err err = unpack->framing == UNPACK_ZSTD ? pass_skippable(unpack, detail)
                                                  : window_fill(&unpack->in, MAGIC_SIZE, detail);
    if (err != ERR_OK) {
        return break_off(unpack, err, detail);
    }
    struct bytes ready = window_ready(&unpack->in);
    if (ready.size == 0) {
        *ret_is_there = false;
        return ERR_OK;
    }
    if (!is_member_start(unpack, ready)) {
        err = err_set(detail, ERR_INVALID, "no %s begins here",
                      unpack->framing == UNPACK_GZIP ? "gzip member" : "zstd frame");
        return break_off(unpack, err, detail);
    }
    start_decoder(unpack);
    unpack->is_in_member = true;
    *ret_is_there = true;
    return ERR_OK;
}

static enum err check_limits(const struct unpack *unpack, struct err_detail *detail) {
    const struct unpack_options *options = &unpack->options;
    if (options->unpacked_size_max > 0 && unpack->made > options->unpacked_size_max) {
        return err_set(detail, ERR_LIMIT, "the file unpacks to more than %llu bytes",
                       (unsigned long long)options->unpacked_size_max);
    }
    uint64_t stored = window_offset(&unpack->in) - unpack->member_offset;
    if (options->ratio_max > 0 && unpack->member_made > UNPACK_RATIO_GRACE &&
        unpack->member_made / options->ratio_max > stored) {
        return err_set(detail, ERR_LIMIT, "the member unpacks to more than %u times its size",
                       options->ratio_max);
    }
    return ERR_OK;
}

/* Decode behind what is ready, once. */
static enum err decode_more(struct unpack *unpack, struct err_detail *detail) {
    if (unpack->out_from == unpack->out_to) {
        unpack->out_from = 0;
        unpack->out_to = 0;
    }
    size_t size = 0;
    bool is_end = false;
    enum err err = unpack_decode(unpack, unpack->out + unpack->out_to, UNPACK_OUT_SIZE - unpack->out_to,
                                 &size, &is_end, detail);
    if (err == ERR_OK) {
        unpack->out_to += size;
        unpack->member_made += size;
        unpack->made += size;
        unpack->is_member_ended = is_end;
        err = check_limits(unpack, detail);
    }
    return err == ERR_OK ? ERR_OK : break_off(unpack, err, detail);
}

static enum err fill_plain(struct unpack *unpack, enum unpack_event *ret_event, struct err_detail *detail) {
    enum err err = window_fill(&unpack->in, 1, detail);
    if (err == ERR_OK) {
        *ret_event = window_ready(&unpack->in).size > 0 ? UNPACK_BYTES : UNPACK_END;
    }
    return err;
}

enum err unpack_fill(struct unpack *unpack, enum unpack_event *ret_event, struct err_detail *detail) {
    ASSERT(!unpack->is_broken);
    enum err err = unpack->is_started ? ERR_OK : start_file(unpack, detail);
    if (err != ERR_OK) {
        return err;
    }
    if (unpack->framing == UNPACK_PLAIN) {
        return fill_plain(unpack, ret_event, detail);
    }
    bool is_there = true;
    if (!unpack->is_in_member && (err = start_member(unpack, &is_there, detail)) != ERR_OK) {
        return err;
    }
    if (!is_there) {
        *ret_event = UNPACK_END;
        return ERR_OK;
    }
    while (unpack->out_from == unpack->out_to && !unpack->is_member_ended) {
        if ((err = decode_more(unpack, detail)) != ERR_OK) {
            return err;
        }
    }
    if (unpack->out_from < unpack->out_to) {
        *ret_event = UNPACK_BYTES;
        return ERR_OK;
    }
    leave_member(unpack);
    *ret_event = UNPACK_MEMBER_END;
    return ERR_OK;
}

enum err unpack_peek(struct unpack *unpack, size_t wanted, struct bytes *ret_bytes,
                     struct err_detail *detail) {
    ASSERT(wanted <= UNPACK_PEEK_MAX && unpack->is_started && !unpack->is_broken);
    enum err err = ERR_OK;
    if (unpack->framing == UNPACK_PLAIN) {
        err = window_fill(&unpack->in, wanted, detail);
    } else if (unpack->out_to - unpack->out_from < wanted && unpack->out_from > 0) {
        memmove(unpack->out, unpack->out + unpack->out_from, unpack->out_to - unpack->out_from);
        unpack->out_to -= unpack->out_from;
        unpack->out_from = 0;
    }
    while (err == ERR_OK && unpack->is_in_member && unpack->out_to < wanted && !unpack->is_member_ended) {
        err = decode_more(unpack, detail);
    }
    if (err == ERR_OK) {
        *ret_bytes = unpack_ready(unpack);
    }
    return err;
}

enum err unpack_skip(struct unpack *unpack, uint64_t count, uint64_t *ret_skipped,
                     struct err_detail *detail) {
    if (unpack->framing == UNPACK_PLAIN) {
        bool is_whole = false;
        enum err err = window_skip(&unpack->in, count, &is_whole, detail);
        if (err == ERR_OK) {
            *ret_skipped = is_whole || count == 0 ? count : count - 1;
        }
        return err;
    }
    uint64_t left = count;
    while (left > 0 && unpack->is_in_member) {
        size_t ready = unpack->out_to - unpack->out_from;
        size_t taken = left < ready ? (size_t)left : ready;
        unpack->out_from += taken;
        left -= taken;
        if (left == 0 || unpack->is_member_ended) {
            break;
        }
        enum err err = decode_more(unpack, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    *ret_skipped = count - left;
    return ERR_OK;
}

enum err unpack_seek(struct unpack *unpack, uint64_t offset, struct err_detail *detail) {
    enum err err = unpack->is_started ? ERR_OK : start_file(unpack, detail);
    /* The dictionary stands at the start of the file and nowhere else. */
    if (err == ERR_OK && unpack->framing == UNPACK_ZSTD && unpack->own_dictionary.decoder == NULL &&
        window_offset(&unpack->in) == 0) {
        err = pass_skippable(unpack, detail);
    }
    if (err == ERR_OK) {
        err = window_seek(&unpack->in, offset, detail);
    }
    if (err == ERR_OK) {
        leave_member(unpack);
    }
    return err;
}

/* Whether the member at the start of the window is sound and begins a record. The window stays where it is.
 */
static bool begins_record(struct unpack *unpack, bool (*is_start)(struct bytes text)) {
    uint8_t text[START_SIZE];
    size_t size = 0;
    bool is_end = false;
    uint64_t offset = window_offset(&unpack->in);
    bool is_sound = window_fill(&unpack->in, UNPACK_IN_SIZE / 2, NULL) == ERR_OK;
    start_decoder(unpack);
    while (is_sound && !is_end && size < sizeof text) {
        size_t made = 0;
        is_sound = unpack_decode(unpack, text + size, sizeof text - size, &made, &is_end, NULL) == ERR_OK;
        size += made;
    }
    /* So little output needs less input than the window holds, so going back needs no seeking. */
    return window_seek(&unpack->in, offset, NULL) == ERR_OK && size > 0 && is_start(bytes_of(text, size));
}

enum err unpack_find_member(struct unpack *unpack, uint64_t from_offset, bool (*is_start)(struct bytes text),
                            bool *ret_found, struct err_detail *detail) {
    ASSERT(unpack->is_started && unpack->framing != UNPACK_PLAIN);
    leave_member(unpack);
    enum err err = window_seek(&unpack->in, from_offset, detail);
    if (err != ERR_OK && err != ERR_UNSUPPORTED) {
        return err;
    }
    uint8_t first = unpack->framing == UNPACK_GZIP ? 0x1f : 0x28;
    for (;;) {
        if ((err = window_fill(&unpack->in, MAGIC_SIZE, detail)) != ERR_OK) {
            return err;
        }
        struct bytes ready = window_ready(&unpack->in);
        if (ready.size < MAGIC_SIZE) {
            *ret_found = false;
            return ERR_OK;
        }
        /* The last three bytes are looked at again when what follows them is there. */
        size_t last = ready.size - MAGIC_SIZE + 1;
        size_t at = bytes_find_byte(bytes_slice(ready, 0, last), first);
        window_consume(&unpack->in, at);
        if (at == last) {
            continue;
        }
        if (is_member_start(unpack, window_ready(&unpack->in)) && begins_record(unpack, is_start)) {
            *ret_found = true;
            return ERR_OK;
        }
        window_consume(&unpack->in, 1);
    }
}
