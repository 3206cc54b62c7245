#include "warc/content.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "warc/unpack.h"

enum { RAW_DEFLATE = -MAX_WBITS, GZIP_WRAPPER = 16 };

enum err content_init(struct content *content) {
    *content = (struct content){0};
    return payload_init(&content->payload);
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
    stage->is_known = stage->is_passing = stage->is_ended = false;
    stage->first_size = 0;
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

static enum err content_push(struct content *content, size_t stage_index, struct bytes bytes,
                             struct err_detail *detail);

static enum err content_give(struct content *content, struct bytes bytes, struct err_detail *detail) {
    uint64_t room = content->size_max - content->size;
    struct bytes fits = bytes_slice(bytes, 0, bytes.size < room ? bytes.size : (size_t)room);
    content->size += fits.size;
    enum err err = fits.size > 0 ? sink_append(content->sink, fits, detail) : ERR_OK;
    if (err == ERR_OK && fits.size < bytes.size) {
        err = err_set(detail, ERR_LIMIT, "the decoded document is larger than %ju bytes",
                      (uintmax_t)content->size_max);
    }
    return err;
}

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

/* Behind the end may come another gzip member or zstd frame; anything else is padding. */
static bool goes_on(struct content_stage *stage, struct bytes input) {
    if (!stage->is_ended) {
        return true;
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

static enum err content_decode(struct content *content, size_t stage_index, struct bytes input,
                               struct err_detail *detail) {
    struct content_stage *stage = &content->stages[stage_index];
    size_t size = 0;
    do {
        if (!goes_on(stage, input)) {
            return ERR_OK;
        }
        enum err step_err = content_step(stage, &input, &size);
        enum err err =
            size > 0 ? content_push(content, stage_index + 1, bytes_of(stage->out, size), detail) : ERR_OK;
        if (err != ERR_OK) {
            return err;
        }
        if (step_err != ERR_OK) {
            return err_set(detail, step_err, "the content encoding is damaged");
        }
    } while (input.size > 0 || size == CONTENT_OUT_SIZE);
    return ERR_OK;
}

/* Into the stage of that index; behind the last one is the sink. */
static enum err content_push(struct content *content, size_t stage_index, struct bytes bytes,
                             struct err_detail *detail) {
    if (stage_index == content->stages_count) {
        return content_give(content, bytes, detail);
    }
    struct content_stage *stage = &content->stages[stage_index];
    if (!stage->is_known) {
        while (stage->first_size < sizeof stage->first && bytes.size > 0) {
            stage->first[stage->first_size++] = bytes.data[0];
            bytes = bytes_skip(bytes, 1);
        }
        if (stage->first_size < sizeof stage->first) {
            return ERR_OK;
        }
        enum err err = start_decoder(stage);
        if (err == ERR_OK) {
            err = content_push(content, stage_index, bytes_of(stage->first, stage->first_size), detail);
        }
        if (err != ERR_OK || bytes.size == 0) {
            return err;
        }
    }
    return stage->is_passing ? content_push(content, stage_index + 1, bytes, detail)
                             : content_decode(content, stage_index, bytes, detail);
}

enum err content_put(struct content *content, struct bytes body, struct err_detail *detail) {
    struct bytes part;
    while (content->err == ERR_OK && payload_next(&content->payload, &body, &part)) {
        content->err = content_push(content, 0, part, detail);
    }
    return content->err;
}

enum err content_finish(struct content *content, struct err_detail *detail) {
    struct bytes part;
    if (content->err == ERR_OK && payload_finish(&content->payload, &part)) {
        content->err = content_push(content, 0, part, detail);
    }
    for (size_t i = 0; i < content->stages_count && content->err == ERR_OK; i++) {
        struct content_stage *stage = &content->stages[i];
        if (!stage->is_known && stage->first_size > 0) {
            content->err = content_push(content, i + 1, bytes_of(stage->first, stage->first_size), detail);
        } else if (stage->is_known && !stage->is_passing && !stage->is_ended) {
            content->err = err_set(detail, ERR_TRUNCATED, "the content encoding has no end");
        }
    }
    return content->err;
}
