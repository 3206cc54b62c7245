/*
 * text - anything as a page whose text is wanted. The first byte chooses its type and how it is cut into
 * pieces; whatever the pieces, the text must be the same, within its bounds, valid UTF-8 and without
 * controls.
 */
#include "web/html/text.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "fuzz.h"

enum { OUT_SIZE_MAX = 1 << 20 };

static void check(struct bytes text, size_t size_max) {
    ASSERT(text.size <= size_max && utf8_is_valid(text));
    for (size_t i = 0; i < text.size; i++) {
        ASSERT(text.data[i] >= ' ' && text.data[i] != 0x7f);
        ASSERT(text.data[i] != ' ' || (i > 0 && i + 1 < text.size && text.data[i + 1] != ' '));
    }
}

static void put(struct buf *out, struct bytes text, size_t size_max) {
    check(text, size_max);
    buf_put(out, text);
    buf_put_byte(out, '\n');
}

static void read_page(struct text *text, struct bytes type, struct bytes input, size_t piece_size,
                      struct buf *out) {
    text_start(text, type);
    for (size_t from = 0; from < input.size; from += piece_size) {
        size_t to = input.size - from < piece_size ? input.size : from + piece_size;
        ASSERT(text_feed(text, bytes_slice(input, from, to)) == ERR_OK);
    }
    ASSERT(text_finish(text) == ERR_OK);
    put(out, text_part(text, TEXT_TITLE), TEXT_TITLE_SIZE_MAX);
    put(out, text_part(text, TEXT_BODY), TEXT_BODY_SIZE_MAX);
    put(out, text_part(text, TEXT_DESCRIPTION), TEXT_DESCRIPTION_SIZE_MAX);
    put(out, text_part(text, TEXT_LANGUAGE), TEXT_LANGUAGE_SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const types[] = {"text/html",
                                        "application/xhtml+xml",
                                        "text/html;charset=utf-8",
                                        "text/html;charset=shift_jis",
                                        "text/html;charset=utf-16",
                                        "",
                                        "text/html;charset=iso-2022-jp",
                                        "text/html;charset=gb18030"};
    if (size == 0) {
        return 0;
    }
    struct bytes input = bytes_of(data + 1, size - 1);
    size_t piece_size = 1 + data[0] % 31;
    struct bytes type = bytes_of_string(types[data[0] / 31 % 8]);
    struct text *text = text_new();
    struct buf whole;
    struct buf pieces;
    buf_init(&whole, OUT_SIZE_MAX);
    buf_init(&pieces, OUT_SIZE_MAX);
    ASSERT(text != NULL);
    read_page(text, type, input, input.size + 1, &whole);
    read_page(text, type, input, piece_size, &pieces);
    ASSERT(whole.err == ERR_OK && bytes_equal(buf_bytes(&whole), buf_bytes(&pieces)));
    buf_done(&whole);
    buf_done(&pieces);
    text_free(text);
    return 0;
}
