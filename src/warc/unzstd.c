#include "warc/unzstd.h"

#include <zstd.h>
#include <zstd_errors.h>

enum { INPUT_MIN = 64 << 10 }; /* a frame that is wholly ready is decoded in one go, without a copy */

enum err unzstd_init(struct unzstd *unzstd) {
    unzstd->context = ZSTD_createDCtx();
    if (unzstd->context == NULL) {
        return ERR_MEMORY;
    }
    size_t result = ZSTD_DCtx_setParameter(unzstd->context, ZSTD_d_windowLogMax, UNZSTD_WINDOW_LOG_MAX);
    ASSERT(!ZSTD_isError(result));
    return ERR_OK;
}

void unzstd_done(struct unzstd *unzstd) {
    ZSTD_freeDCtx(unzstd->context);
    unzstd->context = NULL;
}

void unzstd_start(struct unzstd *unzstd, const struct zdict *dictionary) {
    size_t result = ZSTD_DCtx_reset(unzstd->context, ZSTD_reset_session_only);
    ASSERT(!ZSTD_isError(result));
    result = ZSTD_DCtx_refDDict(unzstd->context, dictionary == NULL ? NULL : dictionary->decoder);
    ASSERT(!ZSTD_isError(result));
}

static enum err failed(size_t result, struct err_detail *detail) {
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

enum err unzstd_step(struct unzstd *unzstd, struct window *window, uint8_t *out, size_t out_size,
                     size_t *ret_size, bool *ret_is_end, struct err_detail *detail) {
    enum err err = window_fill(window, INPUT_MIN, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes ready = window_ready(window);
    ZSTD_inBuffer input = {ready.data, ready.size, 0};
    ZSTD_outBuffer output = {out, out_size, 0};
    size_t result = ZSTD_decompressStream(unzstd->context, &output, &input);
    window_consume(window, input.pos);
    if (ZSTD_isError(result)) {
        return failed(result, detail);
    }
    if (result != 0 && output.pos == 0 && input.pos == ready.size && window->is_at_end) {
        return err_set(detail, ERR_TRUNCATED, "zstd: the file ends inside a frame");
    }
    *ret_size = output.pos;
    *ret_is_end = result == 0;
    return ERR_OK;
}
