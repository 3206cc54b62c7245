#include "protocol/ring/circle.h"

#include "protocol/ring/state.h"

/* An ID that is there already belongs to the node that was first: no two hold one place. */
static void insert(struct circle *circle, const struct ring_place *place) {
    unsigned at = circle->count;
    while (at > 0 && ring_id_compare(place->id, circle->places[at - 1].id) < 0) {
        at--;
    }
    if (at > 0 && ring_id_equal(place->id, circle->places[at - 1].id)) {
        return;
    }
    memmove(&circle->places[at + 1], &circle->places[at], (circle->count - at) * sizeof circle->places[0]);
    circle->places[at] = *place;
    circle->count++;
}

void circle_of(const struct ring *ring, struct circle *circle) {
    struct sha256 sha256 = ring->sha256;
    circle->count = 0;
    for (unsigned i = 0; i < ring->config.places_count; i++) {
        insert(circle, &ring->places[i].self);
    }
    for (uint32_t i = 0; i < ring->small.nodes_count; i++) {
        struct ring_place place = ring->small.nodes[i].first;
        for (unsigned j = 0; j < ring->small.nodes[i].places_count; j++) {
            place.index = (uint8_t)(ring->small.nodes[i].first.index + j);
            place.id = ring_id_of_node(&sha256, &place.peer.address, place.index);
            insert(circle, &place);
        }
    }
}

unsigned circle_at_or_after(const struct circle *circle, struct ring_id id) {
    unsigned index = 0;
    while (index < circle->count && ring_id_compare(circle->places[index].id, id) < 0) {
        index++;
    }
    return index == circle->count ? 0 : index;
}
