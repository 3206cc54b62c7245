#include "node/ring_shelf_scope.h"

/* What both bounds begin with up to the first such byte; false where they differ there, or have none. */
static bool share(struct bytes from, struct bytes to, uint8_t end, struct bytes *ret_shared) {
    size_t size = bytes_find_byte(from, end);
    if (size == from.size || to.size <= size || memcmp(from.data, to.data, size + 1) != 0) {
        return false;
    }
    *ret_shared = bytes_slice(from, 0, size + 1);
    return true;
}

bool ring_shelf_scope(struct sha256 *sha256, struct bytes from, struct bytes to, enum place_mapping mapping,
                      uint8_t ret_place[RINGKEY_PLACE_SIZE]) {
    struct bytes shared;
    if (share(from, to, 0x00, &shared)) {
        place_of_surt(sha256, bytes_slice(shared, 0, shared.size - 1), mapping, ret_place);
        return true;
    }
    if (mapping == PLACE_BY_HOST && share(from, to, ')', &shared)) {
        place_of_surt(sha256, shared, mapping, ret_place);
        return true;
    }
    return false;
}
