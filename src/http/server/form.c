#include "http/server/form.h"

#include "web/url/percent.h"

void form_put_decoded(struct buf *out, struct bytes text) {
    struct bytes part;
    for (bool is_first = true; bytes_split(&text, '+', &part); is_first = false) {
        if (!is_first) {
            buf_put_byte(out, ' ');
        }
        percent_put_decoded(out, part);
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
