#include "store/document/attested.h"

enum { VERSION_DIGITS_MAX = 3, VERSION_MAX = 999 };

static bool attested_is_key(struct bytes key) {
    for (size_t i = 0; i < key.size; i++) {
        bool is_digit =
            (key.data[i] >= 'a' && key.data[i] <= 'z') || (key.data[i] >= '2' && key.data[i] <= '7');
        if (!is_digit) {
            return false;
        }
    }
    return key.size == ATTESTED_KEY_SIZE;
}

/* It becomes a field of a record, and of an HTTP head. */
static bool attested_is_text(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < ' ' || text.data[i] >= 0x7f) {
            return false;
        }
    }
    return text.size > 0 && text.data[0] != ' ' && text.data[text.size - 1] != ' ';
}

/* "v3": 3. 0: it is no later version. */
static uint32_t attested_version(struct bytes word) {
    uint64_t version = 0;
    bool is_number = word.size >= 2 && word.size <= 1 + VERSION_DIGITS_MAX && word.data[0] == 'v' &&
                     word.data[1] != '0' && bytes_to_u64(bytes_skip(word, 1), VERSION_MAX, &version);
    return is_number && version > ATTESTED_VERSION_LAST ? (uint32_t)version : 0;
}

bool attested_read(struct bytes field, struct attested *ret_attested) {
    size_t space = bytes_find_byte(field, ' ');
    uint32_t later = space < field.size ? attested_version(bytes_slice(field, 0, space)) : 0;
    struct bytes rest = later > 0 ? bytes_skip(field, space + 1) : field;
    struct attested attested = {.later = later};
    size_t end = bytes_find_byte(rest, ' ');
    attested.key = bytes_slice(rest, 0, end);
    attested.text = end < rest.size ? bytes_skip(rest, end + 1) : bytes_of(NULL, 0);
    if (field.size > ATTESTED_SIZE_MAX || !attested_is_key(attested.key) ||
        !attested_is_text(attested.text)) {
        return false;
    }
    *ret_attested = attested;
    return true;
}

uint64_t attested_key_start(const struct attested *attested) {
    enum { BITS_OF_DIGIT = 5, BITS = 64 };
    uint64_t start = 0;
    for (size_t i = 0, bits = 0; bits < BITS; i++, bits += BITS_OF_DIGIT) {
        uint8_t digit = attested->key.data[i];
        uint64_t value = digit >= 'a' ? (uint64_t)(digit - 'a') : (uint64_t)(digit - '2') + 26;
        size_t room = BITS - bits;
        start = room < BITS_OF_DIGIT ? start << room | value >> (BITS_OF_DIGIT - room)
                                     : start << BITS_OF_DIGIT | value;
    }
    return start;
}
