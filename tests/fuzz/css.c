/*
 * css - anything as a style sheet. The first byte chooses how the rest is cut into pieces; whatever the
 * pieces, the references must be the same, and the sources of all tokens must be the input.
 */
#include "web/html/css.h"

#include "fuzz.h"
#include "web/html/srcset.h"

enum { TEXT_SIZE_MAX = 1 << 26 };

static void tokenize(struct css *css, struct bytes input, size_t piece_size, struct buf *out) {
    struct css_token token;
    size_t offset = 0;
    css_start(css);
    for (size_t from = 0; from <= input.size; from += piece_size) {
        size_t to = input.size - from < piece_size ? input.size : from + piece_size;
        css_feed(css, bytes_slice(input, from, to));
        bool is_last = to == input.size;
        if (is_last) {
            css_end(css);
        }
        while (css_next(css, &token)) {
            ASSERT(token.offset == offset);
            ASSERT(bytes_equal(token.source, bytes_slice(input, offset, offset + token.source.size)));
            offset += token.source.size;
            if (token.kind == CSS_REFERENCE || token.kind == CSS_IMPORT) {
                ASSERT(token.source.size > 0 && token.source.size <= CSS_VALUE_SIZE_MAX);
                buf_put_format(out, "%d %d %zu ", token.kind, token.quote, offset);
                css_decode(out, token.source);
                buf_put_byte(out, '\n');
            }
        }
        if (is_last) {
            break;
        }
    }
    ASSERT(offset == input.size && css->state == CSS_AT_END);
}

/* The URLs of a srcset are slices of it, in order. */
static void check_srcset(struct bytes input) {
    struct bytes rest = input;
    struct bytes url;
    const uint8_t *last = input.data;
    while (srcset_next(&rest, &url)) {
        ASSERT(url.size > 0 && url.data >= last && url.data + url.size <= input.data + input.size);
        last = url.data + url.size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    struct bytes input = bytes_of(data + 1, size - 1);
    struct css css;
    struct buf whole;
    struct buf pieces;
    css_init(&css);
    buf_init(&whole, TEXT_SIZE_MAX);
    buf_init(&pieces, TEXT_SIZE_MAX);
    tokenize(&css, input, SIZE_MAX / 2, &whole);
    tokenize(&css, input, 1 + data[0] % 31, &pieces);
    ASSERT(bytes_equal(buf_bytes(&whole), buf_bytes(&pieces)));
    check_srcset(input);
    buf_done(&pieces);
    buf_done(&whole);
    css_done(&css);
    return 0;
}
