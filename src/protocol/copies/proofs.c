#include "protocol/copies/proofs.h"

void proofs_init(struct proofs *proofs, uint64_t gap_us_max) {
    *proofs = (struct proofs){.gap_us_max = gap_us_max};
}

static struct proof *proofs_find(struct proofs *proofs, const struct peer *peer) {
    struct proof *oldest = &proofs->items[0];
    for (size_t i = 0; i < proofs->count; i++) {
        struct proof *proof = &proofs->items[i];
        if (memcmp(proof->key, peer->key, PEER_KEY_SIZE) == 0) {
            return proof;
        }
        oldest = proof->asked_at_us < oldest->asked_at_us ? proof : oldest;
    }
    struct proof *proof = proofs->count < PROOFS_MAX ? &proofs->items[proofs->count++] : oldest;
    *proof = (struct proof){.met_at_us = 0};
    memcpy(proof->key, peer->key, PEER_KEY_SIZE);
    return proof;
}

void proofs_note(struct proofs *proofs, const struct peer *peer, enum err err, uint64_t now_us) {
    struct proof *proof = proofs_find(proofs, peer);
    proof->asked_at_us = now_us;
    if (err != ERR_OK) {
        proof->failed_count += err == ERR_MISMATCH || err == ERR_CORRUPT;
        proof->met_at_us = 0;
        return;
    }
    bool counts = proof->met_at_us > 0 && now_us - proof->met_at_us <= proofs->gap_us_max;
    proof->proved_us += counts ? now_us - proof->met_at_us : 0;
    proof->met_at_us = now_us > 0 ? now_us : 1;
    proof->met_count++;
}
