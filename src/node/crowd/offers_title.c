#include "node/crowd/offers_title.h"

#include "base/map.h"
#include "base/utf8.h"
#include "http/message/http_head.h"

enum { HTML_SIZE_MAX = 256 << 10 /* so much of a page is looked at */, MASK_BITS = 64 };

static enum err feed_text(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    struct offers_title *title = (struct offers_title *)((char *)sink - offsetof(struct offers_title, sink));
    (void)detail;
    return text_feed(title->text, bytes);
}

enum err offers_title_init(struct offers_title *title) {
    *title = (struct offers_title){.sink = {.append = feed_text}};
    enum err err = content_init(&title->content);
    if (err != ERR_OK) {
        return err;
    }
    title->text = text_new();
    return title->text != NULL ? ERR_OK : ERR_MEMORY;
}

void offers_title_done(struct offers_title *title) {
    content_done(&title->content);
    text_free(title->text);
}

struct bytes offers_title_cut(struct bytes text, size_t size_max) {
    size_t size = 0;
    size_t length;
    while (size < text.size && (length = utf8_length(bytes_skip(text, size))) > 0 &&
           size + length <= size_max) {
        size += length;
    }
    return bytes_slice(text, 0, size);
}

/* What is damaged has the title of the part that can be read. */
struct bytes offers_title_find(struct offers_title *title, const struct document *document,
                               struct bytes payload) {
    struct bytes nothing = bytes_of(NULL, 0);
    if (document->head.size == 0 ||
        content_start(&title->content, document->head, HTML_SIZE_MAX, &title->sink, NULL) != ERR_OK) {
        return nothing;
    }
    char joined[HTTP_TYPE_SIZE_MAX];
    struct bytes content_type = http_content_type(&title->content.payload.head.fields, joined);
    if (!http_is_html(content_type)) {
        return nothing;
    }
    text_start(title->text, content_type);
    title->content.payload.is_chunked = false; /* of the payload, that is undone */
    if (content_put(&title->content, payload, NULL) == ERR_OK) {
        (void)!content_finish(&title->content, NULL);
    }
    if (text_finish(title->text) != ERR_OK) {
        return nothing;
    }
    return offers_title_cut(text_part(title->text, TEXT_TITLE), WISH_TITLE_SIZE_MAX);
}

/* ---- words ---- */

static bool is_of_word(uint8_t byte) {
    return byte >= 0x80 || byte_is_alnum(byte);
}

void offers_title_put_words(struct buf *out, struct bytes text) {
    bool is_in_word = false;
    for (size_t i = 0; i < text.size; i++) {
        bool is_word = is_of_word(text.data[i]);
        if (is_word != is_in_word && (is_in_word || out->size == 0)) {
            buf_put_byte(out, ' ');
        }
        if (is_word) {
            buf_put_byte(out, byte_lower(text.data[i]));
        }
        is_in_word = is_word;
    }
    if (is_in_word) {
        buf_put_byte(out, ' ');
    }
}

uint64_t offers_title_mask(struct bytes words) {
    struct bytes word;
    uint64_t mask = 0;
    while (bytes_split(&words, ' ', &word)) {
        mask |= word.size > 0 ? UINT64_C(1) << (map_hash(word, 0) % MASK_BITS) : 0;
    }
    return mask;
}

bool offers_title_has_words(struct bytes title_words, struct bytes words) {
    while (words.size > 1) {
        struct bytes rest = bytes_skip(words, 1);
        size_t end = bytes_find_byte(rest, ' ') + 2; /* with both spaces */
        ASSERT(end <= words.size);
        if (bytes_find(title_words, bytes_slice(words, 0, end)) == title_words.size) {
            return false;
        }
        words = bytes_skip(words, end - 1);
    }
    return true;
}
