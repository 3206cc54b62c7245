/*
 * rewrite - anything as a document to be rewritten. The first byte chooses the format, the second the charset
 * and how the rest is cut into pieces; whatever the pieces, what comes out must be the same.
 */
#include "web/rewrite/rewrite.h"

#include "fuzz.h"

enum { TEXT_SIZE_MAX = 1 << 26 };

static enum err put(void *context, struct bytes piece) {
    return buf_put(context, piece);
}

static void run(struct rewrite *rewrite, const struct rewrite_place *place, struct bytes input,
                size_t piece_size, struct buf *out) {
    rewrite_start(rewrite, place, put, out);
    for (size_t from = 0; from < input.size; from += piece_size) {
        size_t to = input.size - from < piece_size ? input.size : from + piece_size;
        ASSERT(rewrite_feed(rewrite, bytes_slice(input, from, to)) == ERR_OK);
    }
    ASSERT(rewrite_finish(rewrite) == ERR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const types[] = {"", "text/html;charset=utf-8", "text/html;charset=shift_jis",
                                        "text/html;charset=utf-16"};
    static const enum rewrite_format formats[] = {
        REWRITE_HTML, REWRITE_CSS, REWRITE_CLASSIC_SCRIPT, REWRITE_MODULE_SCRIPT,
        REWRITE_XML,  REWRITE_HLS, REWRITE_DASH,           REWRITE_AS_IS,
    };
    if (size < 2) {
        return 0;
    }
    struct bytes input = bytes_of(data + 2, size - 2);
    struct url url;
    url_init(&url);
    ASSERT(url_parse(&url, BYTES("http://a.example/b/c?d#e"), NULL, NULL) == ERR_OK);
    struct rewrite_place place = {.prefix = BYTES("/web/"),
                                  .timestamp = BYTES("20260102030405"),
                                  .url = &url,
                                  .content_type = bytes_of_string(types[data[1] / 31 % 4]),
                                  .format = formats[data[0] % 8],
                                  .insert = data[0] % 16 < 8 ? BYTES("<script src=x></script>") : BYTES("")};
    struct rewrite *rewrite = rewrite_new();
    struct buf whole;
    struct buf pieces;
    ASSERT(rewrite != NULL);
    buf_init(&whole, TEXT_SIZE_MAX);
    buf_init(&pieces, TEXT_SIZE_MAX);
    run(rewrite, &place, input, SIZE_MAX / 2, &whole);
    run(rewrite, &place, input, 1 + data[1] % 31, &pieces);
    ASSERT(bytes_equal(buf_bytes(&whole), buf_bytes(&pieces)));
    rewrite_format_of(input, rewrite_modifier_of(bytes_slice(input, 0, input.size < 3 ? input.size : 3)),
                      input);
    buf_done(&pieces);
    buf_done(&whole);
    rewrite_free(rewrite);
    url_done(&url);
    return 0;
}
