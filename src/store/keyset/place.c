#include "store/keyset/place.h"

/* Behind the host; the size where there is none. */
static size_t host_end(struct bytes surt) {
    size_t end = bytes_find_byte(surt, ')');
    return end == surt.size ? end : end + 1;
}

/* Behind the first part of the path; the size where it may go on. */
static size_t section_end(struct bytes surt) {
    size_t end = host_end(surt) + 1; /* and its slash */
    while (end < surt.size && surt.data[end] != '/' && surt.data[end] != '?') {
        end++;
    }
    return end < surt.size ? end : surt.size;
}

static size_t mapped_size(struct bytes surt, enum place_mapping mapping) {
    switch (mapping) {
    case PLACE_BY_URL:
        return surt.size;
    case PLACE_BY_HOST:
        return host_end(surt);
    case PLACE_BY_SECTION:
        return section_end(surt);
    }
    assert_failed("every mapping has a part", __FILE__, __LINE__);
}

void place_of_surt(struct sha256 *sha256, struct bytes surt, enum place_mapping mapping,
                   uint8_t out[RINGKEY_PLACE_SIZE]) {
    uint8_t digest[SHA256_SIZE];
    sha256_digest(sha256, bytes_slice(surt, 0, mapped_size(surt, mapping)), digest);
    memcpy(out, digest, RINGKEY_PLACE_SIZE);
}

bool place_of_prefix(struct sha256 *sha256, struct bytes prefix, enum place_mapping mapping,
                     uint8_t ret_place[RINGKEY_PLACE_SIZE]) {
    size_t end = host_end(prefix);
    bool has_host = end > 0 && prefix.data[end - 1] == ')';
    bool is_one = (mapping == PLACE_BY_HOST && has_host) ||
                  (mapping == PLACE_BY_SECTION && has_host && section_end(prefix) < prefix.size);
    if (is_one) {
        place_of_surt(sha256, prefix, mapping, ret_place);
    }
    return is_one;
}

struct ringkey place_capture_key(struct sha256 *sha256, const struct capture *capture,
                                 enum place_mapping mapping) {
    uint8_t place[RINGKEY_PLACE_SIZE];
    place_of_surt(sha256, capture->surt, mapping, place);
    return ringkey_make(place, capture->time_us, capture->digest);
}
