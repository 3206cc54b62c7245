#include "store/keyset/position.h"

/* Behind the host; the size if there is none. */
static size_t host_end(struct bytes surt) {
    size_t end = bytes_find_byte(surt, ')');
    return end == surt.size ? end : end + 1;
}

/* Behind the first part of the path; the size if it may go on. */
static size_t section_end(struct bytes surt) {
    size_t end = host_end(surt) + 1; /* and its slash */
    while (end < surt.size && surt.data[end] != '/' && surt.data[end] != '?') {
        end++;
    }
    return end < surt.size ? end : surt.size;
}

static size_t mapped_size(struct bytes surt, enum position_mapping mapping) {
    switch (mapping) {
    case POSITION_BY_URL:
        return surt.size;
    case POSITION_BY_HOST:
        return host_end(surt);
    case POSITION_BY_SECTION:
        return section_end(surt);
    }
    assert_failed("every mapping has a part", __FILE__, __LINE__);
}

void position_of_surt(struct sha256 *sha256, struct bytes surt, enum position_mapping mapping,
                      uint8_t out[RINGKEY_POSITION_SIZE]) {
    uint8_t digest[SHA256_SIZE];
    sha256_digest(sha256, bytes_slice(surt, 0, mapped_size(surt, mapping)), digest);
    memcpy(out, digest, RINGKEY_POSITION_SIZE);
}

bool position_of_prefix(struct sha256 *sha256, struct bytes prefix, enum position_mapping mapping,
                        uint8_t ret_position[RINGKEY_POSITION_SIZE]) {
    size_t end = host_end(prefix);
    bool has_host = end > 0 && prefix.data[end - 1] == ')';
    bool is_one = (mapping == POSITION_BY_HOST && has_host) ||
                  (mapping == POSITION_BY_SECTION && has_host && section_end(prefix) < prefix.size);
    if (is_one) {
        position_of_surt(sha256, prefix, mapping, ret_position);
    }
    return is_one;
}

struct ringkey position_capture_key(struct sha256 *sha256, const struct capture *capture,
                                    enum position_mapping mapping) {
    uint8_t position[RINGKEY_POSITION_SIZE];
    position_of_surt(sha256, capture->surt, mapping, position);
    return ringkey_make(position, capture->time_us, capture->digest);
}
