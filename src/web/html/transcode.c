#include "web/html/transcode.h"

#include <errno.h>

#include "base/utf8.h"
#include "web/url/percent.h"

enum { CHUNK_SIZE = 512, ENCODED_SIZE_MAX = 16 };

#define NO_CONVERTER ((iconv_t)-1)

void transcode_init(struct transcode *transcode) {
    *transcode =
        (struct transcode){.encoding = encoding_utf8, .decoder = NO_CONVERTER, .encoder = NO_CONVERTER};
}

static void close_converter(iconv_t *converter) {
    if (*converter != NO_CONVERTER) {
        iconv_close(*converter);
        *converter = NO_CONVERTER;
    }
}

void transcode_done(struct transcode *transcode) {
    close_converter(&transcode->decoder);
    close_converter(&transcode->encoder);
    transcode_init(transcode);
}

void transcode_start(struct transcode *transcode, const struct encoding *encoding) {
    transcode->encoding = encoding;
    transcode->left_size = 0;
    if (transcode->decoder_of == encoding && transcode->decoder != NO_CONVERTER) {
        iconv(transcode->decoder, NULL, NULL, NULL, NULL); /* back to its first state */
    }
}

static iconv_t decoder_of(struct transcode *transcode) {
    if (transcode->decoder_of != transcode->encoding) {
        close_converter(&transcode->decoder);
        transcode->decoder_of = transcode->encoding;
        if (transcode->encoding->iconv_name != NULL) {
            transcode->decoder = iconv_open("UTF-8", transcode->encoding->iconv_name);
        }
    }
    return transcode->decoder;
}

static iconv_t encoder_of(struct transcode *transcode) {
    if (transcode->encoder_of != transcode->encoding) {
        close_converter(&transcode->encoder);
        transcode->encoder_of = transcode->encoding;
        if (transcode->encoding->iconv_name != NULL) {
            transcode->encoder = iconv_open(transcode->encoding->iconv_name, "UTF-8");
        }
    }
    return transcode->encoder;
}

void transcode_load_all(void) {
    const struct encoding *encoding;
    for (size_t i = 0; (encoding = encoding_at(i)) != NULL; i++) {
        if (encoding->iconv_name != NULL) { /* never closed: the modules stay */
            (void)iconv_open("UTF-8", encoding->iconv_name);
            (void)iconv_open(encoding->iconv_name, "UTF-8");
        }
    }
}

/* For encodings of which only ASCII is known. */
static enum err put_ascii(struct buf *out, struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        buf_put(out, text.data[i] < 0x80 ? bytes_slice(text, i, i + 1) : BYTES("\xef\xbf\xbd"));
    }
    return out->err;
}

/* Append as much of *text as can be decoded; what remains is the start of a character. */
static enum err transcode_put_decoded(iconv_t decoder, struct buf *out, struct bytes *text) {
    while (text->size > 0 && out->err == ERR_OK) {
        char chunk[CHUNK_SIZE];
        char *to = chunk;
        size_t room = sizeof chunk;
        char *from =
            (char *)(uintptr_t)text->data; /* iconv does not write there, whatever its prototype says */
        size_t left = text->size;
        size_t result = iconv(decoder, &from, &left, &to, &room);
        int reason = result == (size_t)-1 ? errno : 0;
        buf_put(out, bytes_of(chunk, sizeof chunk - room));
        *text = bytes_skip(*text, text->size - left);
        if (reason == EILSEQ) {
            buf_put(out, BYTES("\xef\xbf\xbd"));
            *text = bytes_skip(*text, 1);
        } else if (reason == EINVAL) {
            break;
        }
    }
    return out->err;
}

enum err transcode_put(struct transcode *transcode, struct buf *out, struct bytes text) {
    if (transcode->encoding == encoding_utf8) {
        return buf_put(out, text);
    }
    iconv_t decoder = decoder_of(transcode);
    if (decoder == NO_CONVERTER) {
        return put_ascii(out, text);
    }
    iconv(decoder, NULL, NULL, NULL, NULL);
    transcode_put_decoded(decoder, out, &text);
    return text.size > 0 ? buf_put(out, BYTES("\xef\xbf\xbd")) : out->err;
}

/* The character that the last piece left unfinished, with as many bytes of this one as it takes. */
static void put_left(struct transcode *transcode, iconv_t decoder, struct buf *out, struct bytes *piece) {
    while (transcode->left_size > 0 && piece->size > 0) {
        transcode->left[transcode->left_size++] = piece->data[0];
        *piece = bytes_skip(*piece, 1);
        struct bytes text = bytes_of(transcode->left, transcode->left_size);
        transcode_put_decoded(decoder, out, &text);
        if (text.size == TRANSCODE_LEFT_SIZE_MAX) {
            text.size = 0; /* no character is as long */
        }
        memmove(transcode->left, text.data, text.size);
        transcode->left_size = text.size;
    }
}

enum err transcode_put_piece(struct transcode *transcode, struct buf *out, struct bytes piece, bool is_last) {
    if (transcode->encoding == encoding_utf8) {
        return buf_put(out, piece);
    }
    iconv_t decoder = decoder_of(transcode);
    if (decoder == NO_CONVERTER) {
        return put_ascii(out, piece);
    }
    put_left(transcode, decoder, out, &piece);
    transcode_put_decoded(decoder, out, &piece);
    if (piece.size > 0) {
        ASSERT(transcode->left_size == 0);
        size_t size = piece.size < TRANSCODE_LEFT_SIZE_MAX - 1 ? piece.size : TRANSCODE_LEFT_SIZE_MAX - 1;
        memcpy(transcode->left, piece.data, size);
        transcode->left_size = size;
    }
    if (is_last && transcode->left_size > 0) {
        transcode->left_size = 0;
        buf_put(out, BYTES("\xef\xbf\xbd"));
    }
    return out->err;
}

/* One character of a query in the document's encoding. */
static void put_query_character(iconv_t encoder, struct buf *out, struct bytes character) {
    char encoded[ENCODED_SIZE_MAX];
    char *to = encoded;
    size_t room = sizeof encoded;
    char *from = (char *)(uintptr_t)character.data;
    size_t left = character.size;
    iconv(encoder, NULL, NULL, NULL, NULL);
    if (iconv(encoder, &from, &left, &to, &room) != 0 || left > 0) {
        size_t length;
        buf_put_format(out, "%%26%%23%u%%3B", (unsigned)utf8_decode(character, &length));
        return;
    }
    for (size_t i = 0; i < sizeof encoded - room; i++) {
        percent_put_byte(out, (uint8_t)encoded[i]);
    }
}

enum err transcode_step(struct transcode *transcode, struct buf *out, struct bytes *piece, bool is_last) {
    size_t size = piece->size < TRANSCODE_STEP ? piece->size : TRANSCODE_STEP;
    struct bytes step = bytes_slice(*piece, 0, size);
    is_last = is_last && size == piece->size;
    *piece = bytes_skip(*piece, size);
    buf_clear(out);
    return transcode_put_piece(transcode, out, step, is_last);
}

enum err transcode_put_reference(struct transcode *transcode, struct buf *out, struct bytes reference) {
    size_t fragment = bytes_find_byte(reference, '#');
    size_t query = bytes_find_byte(bytes_slice(reference, 0, fragment), '?');
    bool is_unicode = transcode->encoding == encoding_utf8 ||
                      bytes_starts_with(bytes_of_string(transcode->encoding->name), BYTES("UTF-16"));
    iconv_t encoder = is_unicode ? NO_CONVERTER : encoder_of(transcode);
    if (encoder == NO_CONVERTER) {
        return buf_put(out, reference);
    }
    buf_put(out, bytes_slice(reference, 0, query));
    for (size_t at = query; at < fragment;) {
        struct bytes rest = bytes_slice(reference, at, fragment);
        size_t length = utf8_length(rest);
        if (length < 2) {
            buf_put_byte(out, rest.data[0]);
            length = 1;
        } else {
            put_query_character(encoder, out, bytes_slice(rest, 0, length));
        }
        at += length;
    }
    return buf_put(out, bytes_skip(reference, fragment));
}
