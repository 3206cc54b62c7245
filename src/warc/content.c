#include "warc/content.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "warc/unpack.h"

enum { RAW_DEFLATE = -MAX_WBITS, GZIP_WRAPPER = 16, KEPT_SIZE_MAX = 512 << 10 };

enum err content_init(struct content *content) {
    *content = (struct content){0};
    return payload_init(&content->payload);
}

/* A window of brotli or zstd may take many MiB, as the document chose; zlib's is small. */
void content_rest(struct content *content) {
    for (size_t i = 0; i < CONTENT_CODINGS_MAX; i++) {
        struct content_stage *stage = &content->stages[i];
        if (stage->brotli != NULL) {
            BrotliDecoderDestroyInstance(stage->brotli);
            stage->brotli = NULL;
        }
        if (stage->zstd != NULL && ZSTD_sizeof_DCtx(stage->zstd) > KEPT_SIZE_MAX) {
            ZSTD_freeDCtx(stage->zstd);
            stage->zstd = NULL;
        }
    }
}

void content_done(struct content *content) {
    for (size_t i = 0; i < CONTENT_CODINGS_MAX; i++) {
        struct content_stage *stage = &content->stages[i];
        if (stage->zlib != NULL) {
            inflateEnd(stage->zlib);
            free(stage->zlib);
        }
        if (stage->brotli != NULL) {
            BrotliDecoderDestroyInstance(stage->brotli);
        }
        ZSTD_freeDCtx(stage->zstd);
        free(stage->out);
    }
    payload_done(&content->payload);
}

/* ---- which encodings there are ---- */

static bool find_coding(struct bytes name, enum content_coding *ret_coding) {
    static const struct {
        const char *name;
        enum content_coding coding;
    } codings[] = {
        {"gzip", CONTENT_GZIP}, {"x-gzip", CONTENT_GZIP}, {"deflate", CONTENT_DEFLATE},
        {"br", CONTENT_BROTLI}, {"zstd", CONTENT_ZSTD},
    };
    for (size_t i = 0; i < sizeof codings / sizeof *codings; i++) {
        if (bytes_equal_ignore_case(name, bytes_of_string(codings[i].name))) {
            *ret_coding = codings[i].coding;
            return true;
        }
    }
    return false;
}

static void start_stage(struct content_stage *stage, enum content_coding coding) {
    stage->coding = coding;
    stage->is_known = stage->is_passing = stage->has_more = false;
    stage->is_ended = stage->is_padding = false;
    stage->first_size = stage->first_left = 0;
    stage->ready = bytes_of(NULL, 0);
    stage->size = 0;
    stage->err = ERR_OK;
    if (stage->brotli != NULL) {
        BrotliDecoderDestroyInstance(stage->brotli); /* it cannot be started again */
        stage->brotli = NULL;
    }
}

/* One field may list several, in the order in which they were applied: the last one is undone first. */
static enum err add_codings(struct content *content, struct bytes value, struct err_detail *detail) {
    struct bytes name;
    while (bytes_split(&value, ',', &name)) {
        name = bytes_trim(name);
        enum content_coding coding;
        if (name.size == 0 || bytes_equal_ignore_case(name, BYTES("identity"))) {
            continue;
        }
        if (!find_coding(name, &coding)) {
            return err_set(detail, ERR_UNSUPPORTED, "unknown content encoding \"%.*s\"", BYTES_ARG(name));
        }
        if (content->stages_count == CONTENT_CODINGS_MAX) {
            return err_set(detail, ERR_LIMIT, "more than %d content encodings", CONTENT_CODINGS_MAX);
        }
        start_stage(&content->stages[content->stages_count++], coding);
    }
    return ERR_OK;
}

/* The stages were added innermost first; they run outermost first. */
static void reverse_codings(struct content *content) {
    for (size_t i = 0; i < content->stages_count / 2; i++) {
        struct content_stage *a = &content->stages[i];
        struct content_stage *b = &content->stages[content->stages_count - 1 - i];
        enum content_coding coding = a->coding;
        a->coding = b->coding;
        b->coding = coding;
    }
}

enum err content_start(struct content *content, struct bytes head, uint64_t size_max, struct sink *sink,
                       struct err_detail *detail) {
    content->stages_count = 0;
    content->sink = sink;
    content->size_max = size_max;
    content->size = 0;
    content->stored_size = 0;
    content->part = bytes_of(NULL, 0);
    content->is_ending = content->has_ended = content->is_paused = false;
    content->err = ERR_OK;
    payload_start(&content->payload, head.size > 0);
    struct bytes part;
    while (payload_next(&content->payload, &head, &part)) {
        content->err = content_put(content, part, detail);
    }
    const struct fields *fields = &content->payload.head.fields;
    const struct field *field = NULL;
    if (content->payload.head.state != HTTP_HEAD_WHOLE) {
        return content->err;
    }
    while (content->err == ERR_OK &&
           (field = fields_find(fields, BYTES("Content-Encoding"), field)) != NULL) {
        content->err = add_codings(content, field->value, detail);
    }
    reverse_codings(content);
    return content->err;
}

/* ---- undoing them ---- */

static enum err start_zlib(struct content_stage *stage, int window_bits) {
    if (stage->zlib != NULL) {
        return inflateReset2(stage->zlib, window_bits) == Z_OK ? ERR_OK : ERR_MEMORY;
    }
    stage->zlib = calloc(1, sizeof *stage->zlib);
    if (stage->zlib == NULL) {
        return ERR_MEMORY;
    }
    if (inflateInit2(stage->zlib, window_bits) != Z_OK) {
        free(stage->zlib);
        stage->zlib = NULL;
        return ERR_MEMORY;
    }
    return ERR_OK;
}

static enum err start_zstd(struct content_stage *stage) {
    if (stage->zstd == NULL) {
        stage->zstd = ZSTD_createDCtx();
    }
    if (stage->zstd == NULL) {
        return ERR_MEMORY;
    }
    ZSTD_DCtx_reset(stage->zstd, ZSTD_reset_session_only);
    size_t result = ZSTD_DCtx_setParameter(stage->zstd, ZSTD_d_windowLogMax, UNPACK_WINDOW_LOG_MAX);
    return ZSTD_isError(result) ? ERR_MEMORY : ERR_OK;
}

/* Two bytes tell gzip from what is merely called so, and zlib's header from raw deflate. */
static enum err start_decoder(struct content_stage *stage) {
    const uint8_t *first = stage->first;
    bool has_two = stage->first_size == 2;
    stage->is_known = true;
    if (stage->out == NULL && (stage->out = malloc(CONTENT_OUT_SIZE)) == NULL) {
        return ERR_MEMORY;
    }
    switch (stage->coding) {
    case CONTENT_GZIP:
        stage->is_passing = !has_two || first[0] != 0x1f || first[1] != 0x8b;
        return stage->is_passing ? ERR_OK : start_zlib(stage, MAX_WBITS + GZIP_WRAPPER);
    case CONTENT_DEFLATE: {
        bool has_header = has_two && (first[0] & 0x0f) == 8 && (first[0] << 8 | first[1]) % 31 == 0;
        return start_zlib(stage, has_header ? MAX_WBITS : RAW_DEFLATE);
    }
    case CONTENT_BROTLI:
        stage->brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
        return stage->brotli != NULL ? ERR_OK : ERR_MEMORY;
    case CONTENT_ZSTD:
        stage->is_passing = !has_two || first[0] != 0x28 || first[1] != 0xb5;
        return stage->is_passing ? ERR_OK : start_zstd(stage);
    }
    assert_failed("every encoding has a decoder", __FILE__, __LINE__);
}

/*
 * Decode some of *input into stage->out. Each returns with input used up or output made, or at the end; so
 * the loop that calls it always gets on.
 */
static enum err step_zlib(struct content_stage *stage, struct bytes *input, size_t *ret_size) {
    z_stream *zlib = stage->zlib;
    uInt available = input->size < UINT32_MAX ? (uInt)input->size : UINT32_MAX;
    zlib->next_in = (Bytef *)(uintptr_t)input->data; /* zlib does not write there */
    zlib->avail_in = available;
    zlib->next_out = stage->out;
    zlib->avail_out = CONTENT_OUT_SIZE;
    int result = inflate(zlib, Z_NO_FLUSH);
    *input = bytes_skip(*input, available - zlib->avail_in);
    *ret_size = CONTENT_OUT_SIZE - zlib->avail_out;
    stage->is_ended = result == Z_STREAM_END;
    if (stage->is_ended) {
        return ERR_OK;
    }
    return result == Z_OK || result == Z_BUF_ERROR ? ERR_OK : ERR_CORRUPT;
}

static enum err step_brotli(struct content_stage *stage, struct bytes *input, size_t *ret_size) {
    size_t available = input->size;
    const uint8_t *next = input->data;
    size_t room = CONTENT_OUT_SIZE;
    uint8_t *out = stage->out;
    BrotliDecoderResult result =
        BrotliDecoderDecompressStream(stage->brotli, &available, &next, &room, &out, NULL);
    *input = bytes_skip(*input, input->size - available);
    *ret_size = CONTENT_OUT_SIZE - room;
    stage->is_ended = result == BROTLI_DECODER_RESULT_SUCCESS;
    return result == BROTLI_DECODER_RESULT_ERROR ? ERR_CORRUPT : ERR_OK;
}

static enum err step_zstd(struct content_stage *stage, struct bytes *input, size_t *ret_size) {
    ZSTD_inBuffer in = {input->data, input->size, 0};
    ZSTD_outBuffer out = {stage->out, CONTENT_OUT_SIZE, 0};
    size_t result = ZSTD_decompressStream(stage->zstd, &out, &in);
    *input = bytes_skip(*input, in.pos);
    *ret_size = out.pos;
    stage->is_ended = result == 0;
    return ZSTD_isError(result) ? ERR_CORRUPT : ERR_OK;
}

static enum err content_step(struct content_stage *stage, struct bytes *input, size_t *ret_size) {
    switch (stage->coding) {
    case CONTENT_GZIP:
    case CONTENT_DEFLATE:
        return step_zlib(stage, input, ret_size);
    case CONTENT_BROTLI:
        return step_brotli(stage, input, ret_size);
    case CONTENT_ZSTD:
        return step_zstd(stage, input, ret_size);
    }
    assert_failed("every encoding has a decoder", __FILE__, __LINE__);
}

/*
 * Behind the end may come another gzip member or zstd frame; anything else is padding, and so is all that
 * follows it: where the pieces of the body end must not matter.
 */
static bool goes_on(struct content_stage *stage, struct bytes input) {
    if (!stage->is_ended || stage->is_padding) {
        return !stage->is_padding;
    }
    switch (stage->coding) {
    case CONTENT_GZIP:
        return input.size > 0 && input.data[0] == 0x1f && inflateReset(stage->zlib) == Z_OK;
    case CONTENT_ZSTD:
        return input.size > 0 && input.data[0] == 0x28;
    case CONTENT_DEFLATE:
    case CONTENT_BROTLI:
        return false;
    }
    assert_failed("every encoding has an end", __FILE__, __LINE__);
}

/* ---- limits ---- */

/*
 * No stage, and not only the last one, gives more than an honest document would: what lies between two
 * encodings costs as much time as what comes out in the end, and may be all that there is.
 */
static enum err content_check(struct content *content, const struct content_stage *stage,
                              struct err_detail *detail) {
    uint64_t allowed = content->size_max < UINT64_MAX - CONTENT_GRACE_SIZE
                           ? content->size_max + CONTENT_GRACE_SIZE
                           : UINT64_MAX;
    uint64_t used_size = content->stored_size - content->part.size;
    if (stage->size > CONTENT_GRACE_SIZE && stage->size / CONTENT_RATIO_MAX > used_size) {
        return err_set(detail, ERR_LIMIT, "more than %d bytes for each stored one", CONTENT_RATIO_MAX);
    }
    if (stage->size > allowed) {
        return err_set(detail, ERR_LIMIT, "more than %ju bytes between two encodings", (uintmax_t)allowed);
    }
    return ERR_OK;
}

/* ---- pulling ---- */

/*
 * What waits before stage `index`; behind the last stage, what waits for the caller. Empty: nothing can be
 * had before there is more input, or the turn is over.
 */
static struct bytes *content_ready(struct content *content, size_t index) {
    return index == 0 ? &content->part : &content->stages[index - 1].ready;
}

static enum err content_fill(struct content *content, size_t index, struct bytes *input,
                             struct err_detail *detail);

static void content_fill_part(struct content *content, struct bytes *input) {
    if (payload_next(&content->payload, input, &content->part)) {
        return;
    }
    content->part = bytes_of(NULL, 0);
    if (content->is_ending && !content->has_ended) {
        content->has_ended = true;
        if (!payload_finish(&content->payload, &content->part)) {
            content->part = bytes_of(NULL, 0);
        }
    }
}

/* Its first bytes say what the stage is to do. is_over: no more will come. */
static enum err content_begin_stage(struct content_stage *stage, struct bytes *before, bool is_over) {
    while (stage->first_size < sizeof stage->first && before->size > 0) {
        stage->first[stage->first_size++] = before->data[0];
        *before = bytes_skip(*before, 1);
    }
    if (stage->first_size == sizeof stage->first) {
        stage->first_left = stage->first_size;
        return start_decoder(stage);
    }
    if (is_over && stage->first_size > 0) { /* too short to be encoded */
        stage->is_known = stage->is_passing = true;
        stage->first_left = stage->first_size;
    }
    return ERR_OK;
}

/* The bytes that told what it is come first. */
static struct bytes content_first(const struct content_stage *stage) {
    return bytes_of(stage->first + stage->first_size - stage->first_left, stage->first_left);
}

static enum err content_decode(struct content *content, struct content_stage *stage, struct bytes *before,
                               struct err_detail *detail) {
    bool is_first = stage->first_left > 0;
    struct bytes source = is_first ? content_first(stage) : *before;
    if (!goes_on(stage, source)) {
        stage->is_padding = true;
        stage->first_left = 0;
        *before = bytes_of(NULL, 0); /* padding */
        return ERR_OK;
    }
    size_t size = 0;
    enum err err = content_step(stage, &source, &size);
    stage->has_more = size == CONTENT_OUT_SIZE && !stage->is_ended;
    stage->size += size;
    stage->ready = bytes_of(stage->out, size);
    if (is_first) {
        stage->first_left = source.size;
    } else {
        *before = source;
    }
    if (err != ERR_OK) {
        stage->err = err_set(detail, err, "the content encoding is damaged");
    }
    return content_check(content, stage, detail);
}

static void content_pass(struct content_stage *stage, struct bytes *before) {
    if (stage->first_left > 0) {
        stage->ready = content_first(stage);
        stage->first_left = 0;
    } else {
        stage->ready = *before;
        *before = bytes_of(NULL, 0);
    }
}

/* One try to have something ready behind the stage. *ret_is_dry: the stage has nothing left to work on. */
static enum err content_run_stage(struct content *content, size_t stage_index, struct bytes *input,
                                  bool *ret_is_dry, struct err_detail *detail) {
    struct content_stage *stage = &content->stages[stage_index];
    struct bytes *before = content_ready(content, stage_index);
    bool wants_input = stage->first_left == 0 && !stage->has_more;
    if (stage->err != ERR_OK) {
        return stage->err; /* all that could be decoded before the damage has been given */
    }
    if (wants_input) {
        enum err err = content_fill(content, stage_index, input, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    bool is_empty = before->size == 0;
    if (!stage->is_known) {
        bool is_over = is_empty && content->has_ended && content->steps_left > 0;
        enum err err = content_begin_stage(stage, before, is_over);
        *ret_is_dry = is_empty && !stage->is_known;
        return err;
    }
    if (wants_input && is_empty) {
        *ret_is_dry = true;
        return ERR_OK;
    }
    if (stage->is_passing) {
        content_pass(stage, before);
        return ERR_OK;
    }
    return content_decode(content, stage, before, detail);
}

/* Put something into content_ready(index), which is empty, if that can be done. */
static enum err content_fill(struct content *content, size_t index, struct bytes *input,
                             struct err_detail *detail) {
    struct bytes *ready = content_ready(content, index);
    if (ready->size > 0) {
        return ERR_OK;
    }
    if (index == 0) {
        content_fill_part(content, input);
        content->stored_size += content->part.size;
        return ERR_OK;
    }
    bool is_dry = false;
    enum err err = ERR_OK;
    while (err == ERR_OK && ready->size == 0 && !is_dry) {
        if (content->steps_left == 0) {
            return ERR_OK;
        }
        content->steps_left--;
        err = content_run_stage(content, index - 1, input, &is_dry, detail);
    }
    return err;
}

enum err content_next(struct content *content, struct bytes *input, struct bytes *ret_piece,
                      struct err_detail *detail) {
    struct bytes *ready = content_ready(content, content->stages_count);
    content->steps_left = CONTENT_STEPS_MAX;
    struct bytes piece = bytes_of(NULL, 0);
    enum err err = content->err;
    if (err == ERR_OK) {
        err = content_fill(content, content->stages_count, input, detail);
    }
    if (err == ERR_OK) {
        uint64_t room = content->size_max - content->size;
        piece = bytes_slice(*ready, 0, ready->size < room ? ready->size : (size_t)room);
        content->size += piece.size;
        *ready = bytes_skip(*ready, piece.size);
        if (ready->size > 0 && piece.size == 0) {
            err = err_set(detail, ERR_LIMIT, "the decoded document is larger than %ju bytes",
                          (uintmax_t)content->size_max);
        }
    }
    content->is_paused = err == ERR_OK && piece.size == 0 && content->steps_left == 0;
    *ret_piece = piece;
    return content->err = err;
}

void content_end(struct content *content) {
    content->is_ending = true;
}

enum err content_close(struct content *content, struct err_detail *detail) {
    for (size_t i = 0; i < content->stages_count && content->err == ERR_OK; i++) {
        const struct content_stage *stage = &content->stages[i];
        if (stage->is_known && !stage->is_passing && !stage->is_ended) {
            content->err = err_set(detail, ERR_TRUNCATED, "the content encoding has no end");
        }
    }
    content_rest(content);
    return content->err;
}

/* ---- pushing ---- */

/* All that can be had of the input, into the sink. */
static enum err content_pump(struct content *content, struct bytes *input, struct err_detail *detail) {
    struct bytes piece;
    enum err err = ERR_OK;
    do {
        err = content_next(content, input, &piece, detail);
        if (err == ERR_OK && piece.size > 0) {
            err = content->err = sink_append(content->sink, piece, detail);
        }
    } while (err == ERR_OK && (piece.size > 0 || content->is_paused));
    if (err != ERR_OK) {
        content_rest(content);
    }
    return err;
}

enum err content_put(struct content *content, struct bytes body, struct err_detail *detail) {
    return content_pump(content, &body, detail);
}

enum err content_finish(struct content *content, struct err_detail *detail) {
    struct bytes nothing = bytes_of(NULL, 0);
    content_end(content);
    enum err err = content_pump(content, &nothing, detail);
    return err == ERR_OK ? content_close(content, detail) : err;
}
