/* Readers are led to the node that is responsible, where its operator wants that (ring.redirect). */
#include "node/ring_services_state.h"
#include "store/keyset/position.h"

enum { ASKED_MAX = 2 /* of the holders: who waits for more could have fetched it */ };

bool ring_services_lead(void *context, struct bytes surt, struct buf *out) {
    struct ring_services *ring_services = context;
    uint8_t place[RINGKEY_POSITION_SIZE];
    char text[PUBLIC_URLS_TEXT_SIZE];
    struct holders_arc arc;
    struct sha256 sha256;
    if (!ring_services->is_begun || sha256_init(&sha256) != ERR_OK) {
        return false;
    }
    pthread_mutex_lock(&ring_services->lock);
    enum position_mapping mapping = (enum position_mapping)ring_services->charter.mapping;
    pthread_mutex_unlock(&ring_services->lock);
    position_of_surt(&sha256, surt, mapping, place);
    sha256_done(&sha256);
    enum err err = holders_find(ring_services->holders, ring_id_read(place), &arc);
    if (err != ERR_OK || arc.self_rank >= 0) {
        return false; /* who is responsible leads nobody away */
    }
    for (size_t i = 0; i < arc.count && i < ASKED_MAX; i++) {
        if (public_urls_find(ring_services->public_urls, &arc.peers[i], text)) {
            buf_put_string(out, text);
            return out->err == ERR_OK;
        }
    }
    return false;
}
