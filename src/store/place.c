#include "store/place.h"

static struct bytes mapped_part(struct bytes surt, enum place_mapping mapping) {
    if (mapping == PLACE_BY_URL) {
        return surt;
    }
    size_t end = bytes_find_byte(surt, ')');
    return end == surt.size ? surt : bytes_slice(surt, 0, end + 1);
}

void place_of_surt(struct sha256 *sha256, struct bytes surt, enum place_mapping mapping,
                   uint8_t out[RINGKEY_PLACE_SIZE]) {
    uint8_t digest[SHA256_SIZE];
    sha256_digest(sha256, mapped_part(surt, mapping), digest);
    memcpy(out, digest, RINGKEY_PLACE_SIZE);
}

struct ringkey place_capture_key(struct sha256 *sha256, const struct capture *capture,
                                 enum place_mapping mapping) {
    uint8_t place[RINGKEY_PLACE_SIZE];
    place_of_surt(sha256, capture->surt, mapping, place);
    return ringkey_make(place, capture->time_us, capture->signature);
}
