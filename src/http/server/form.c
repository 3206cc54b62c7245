#include "http/server/form.h"

#include "web/url/percent.h"

static void form_put_decoded(struct buf *out, struct bytes text) {
    while (text.size > 0) {
        size_t size = bytes_find_byte(text, '+');
        percent_put_decoded(out, bytes_slice(text, 0, size));
        if (size == text.size) {
            return;
        }
        buf_put_byte(out, ' ');
        text = bytes_skip(text, size + 1);
    }
}

bool form_get(struct bytes form, const char *name, struct buf *out) {
    struct bytes part;
    while (form.size > 0 && bytes_split(&form, '&', &part)) {
        size_t equals = bytes_find_byte(part, '=');
        if (bytes_equal(bytes_slice(part, 0, equals), bytes_of_string(name))) {
            form_put_decoded(out, equals < part.size ? bytes_skip(part, equals + 1) : bytes_of(NULL, 0));
            return true;
        }
    }
    return false;
}
