#include "warc/warc_id.h"

#include <errno.h>
#include <sys/random.h>

#include "base/hex.h"

enum { UUID_TEXT_SIZE = 36 };

static const char prefix[] = "urn:uuid:";

static void fill_from_system(void *context, void *out, size_t size) {
    (void)context;
    uint8_t *to = out;
    while (size > 0) {
        ssize_t got = getrandom(to, size, 0);
        ASSERT(got > 0 || errno == EINTR);
        if (got > 0) {
            to += got;
            size -= (size_t)got;
        }
    }
}

const struct warc_random warc_random_system = {.fill = fill_from_system};

struct warc_id warc_id_make(const struct warc_random *random) {
    struct warc_id id;
    random->fill(random->context, id.value, sizeof id.value);
    id.value[6] = (uint8_t)((id.value[6] & 0x0f) | 0x40); /* version 4 */
    id.value[8] = (uint8_t)((id.value[8] & 0x3f) | 0x80); /* variant of RFC 4122 */
    return id;
}

/* 8-4-4-4-12 digits: a dash stands before the bytes 4, 6, 8 and 10. */
static bool has_dash_before(size_t index) {
    return index == 4 || index == 6 || index == 8 || index == 10;
}

const char *warc_id_format(const struct warc_id *id, char out[WARC_ID_TEXT_SIZE]) {
    char *end = out;
    *end++ = '<';
    memcpy(end, prefix, sizeof prefix - 1);
    end += sizeof prefix - 1;
    for (size_t i = 0; i < WARC_ID_SIZE; i++) {
        if (has_dash_before(i)) {
            *end++ = '-';
        }
        hex_encode(bytes_of(&id->value[i], 1), end);
        end += 2;
    }
    *end++ = '>';
    *end = '\0';
    return out;
}

bool warc_id_parse(struct bytes text, struct warc_id *ret_id) {
    if (text.size >= 2 && text.data[0] == '<' && text.data[text.size - 1] == '>') {
        text = bytes_slice(text, 1, text.size - 1);
    }
    size_t prefix_size = sizeof prefix - 1;
    if (text.size != prefix_size + UUID_TEXT_SIZE ||
        !bytes_equal_ignore_case(bytes_slice(text, 0, prefix_size), BYTES("urn:uuid:"))) {
        return false;
    }
    struct warc_id id;
    size_t at = prefix_size;
    for (size_t i = 0; i < WARC_ID_SIZE; i++) {
        if (has_dash_before(i) && text.data[at++] != '-') {
            return false;
        }
        if (!hex_decode(bytes_slice(text, at, at + 2), &id.value[i], 1)) {
            return false;
        }
        at += 2;
    }
    *ret_id = id;
    return true;
}
