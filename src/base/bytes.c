#include "base/bytes.h"

int bytes_compare(struct bytes a, struct bytes b) {
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0) {
        return order;
    }
    return (a.size > b.size) - (a.size < b.size);
}

bool bytes_equal_ignore_case(struct bytes a, struct bytes b) {
    if (a.size != b.size) {
        return false;
    }
    for (size_t i = 0; i < a.size; i++) {
        if (byte_lower(a.data[i]) != byte_lower(b.data[i])) {
            return false;
        }
    }
    return true;
}

bool bytes_starts_with(struct bytes slice, struct bytes prefix) {
    return slice.size >= prefix.size && bytes_equal(bytes_slice(slice, 0, prefix.size), prefix);
}

bool bytes_ends_with(struct bytes slice, struct bytes suffix) {
    return slice.size >= suffix.size && bytes_equal(bytes_skip(slice, slice.size - suffix.size), suffix);
}

bool bytes_starts_with_ignore_case(struct bytes slice, struct bytes prefix) {
    return slice.size >= prefix.size && bytes_equal_ignore_case(bytes_slice(slice, 0, prefix.size), prefix);
}

bool bytes_ends_with_ignore_case(struct bytes slice, struct bytes suffix) {
    return slice.size >= suffix.size &&
           bytes_equal_ignore_case(bytes_skip(slice, slice.size - suffix.size), suffix);
}

bool bytes_contain_ignore_case(struct bytes slice, struct bytes part) {
    for (size_t i = 0; i + part.size <= slice.size; i++) {
        if (bytes_starts_with_ignore_case(bytes_skip(slice, i), part)) {
            return true;
        }
    }
    return false;
}

bool bytes_is_one_of(struct bytes slice, const char *const *words) {
    for (; *words != NULL; words++) {
        if (bytes_equal_ignore_case(slice, bytes_of_string(*words))) {
            return true;
        }
    }
    return false;
}

size_t bytes_common_size(struct bytes a, struct bytes b) {
    size_t size = 0;
    while (size < a.size && size < b.size && a.data[size] == b.data[size]) {
        size++;
    }
    return size;
}

bool bytes_are_ascii(struct bytes slice) {
    for (size_t i = 0; i < slice.size; i++) {
        if (slice.data[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

size_t bytes_find_byte(struct bytes slice, uint8_t byte) {
    if (slice.size == 0) {
        return 0;
    }
    const uint8_t *found = memchr(slice.data, byte, slice.size);
    return found == NULL ? slice.size : (size_t)(found - slice.data);
}

size_t bytes_find(struct bytes slice, struct bytes needle) {
    if (needle.size == 0) {
        return 0;
    }
    for (size_t i = 0; i + needle.size <= slice.size; i++) {
        i += bytes_find_byte(bytes_skip(slice, i), needle.data[0]);
        if (i + needle.size > slice.size) {
            break;
        }
        if (memcmp(slice.data + i, needle.data, needle.size) == 0) {
            return i;
        }
    }
    return slice.size;
}

static bool bytes_are_trimmed_of(uint8_t byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

struct bytes bytes_trim(struct bytes slice) {
    size_t from = 0;
    size_t to = slice.size;
    while (from < to && bytes_are_trimmed_of(slice.data[from])) {
        from++;
    }
    while (to > from && bytes_are_trimmed_of(slice.data[to - 1])) {
        to--;
    }
    return bytes_slice(slice, from, to);
}

void bytes_skip_spaces(struct bytes *slice) {
    while (slice->size > 0 && byte_is_space(slice->data[0])) {
        *slice = bytes_skip(*slice, 1);
    }
}

bool bytes_split(struct bytes *rest, uint8_t separator, struct bytes *ret_part) {
    if (rest->data == NULL) {
        return false;
    }
    size_t end = bytes_find_byte(*rest, separator);
    *ret_part = bytes_slice(*rest, 0, end);
    *rest = end < rest->size ? bytes_skip(*rest, end + 1) : (struct bytes){NULL, 0};
    return true;
}

bool bytes_to_u64(struct bytes slice, uint64_t max, uint64_t *ret_value) {
    uint64_t value = 0;
    if (slice.size == 0) {
        return false;
    }
    for (size_t i = 0; i < slice.size; i++) {
        if (!byte_is_digit(slice.data[i])) {
            return false;
        }
        uint64_t digit = (uint64_t)(slice.data[i] - '0');
        if (digit > max || value > (max - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}
