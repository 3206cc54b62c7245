/* Archives of other nodes as a part of what nodes do together: they are served without any network too. */
#include "node/mirror/depositing.h"
#include "node/ring_services_state.h"

static void on_note(void *context, const char *sentence) {
    const struct ring_services *ring_services = context;
    if (ring_services->config.note != NULL) {
        ring_services->config.note(ring_services->config.context, sentence);
    }
}

static void blame(void *context, const uint8_t publisher[PEER_KEY_SIZE], const char *sentence) {
    const struct ring_services *ring_services = context;
    struct peer peer = {0}; /* who he is, is known; where, need not be */
    memcpy(peer.key, publisher, PEER_KEY_SIZE);
    transport_blame(ring_services->transport, &peer, sentence);
}

void ring_services_beat_deposits(struct ring_services *ring_services) {
    struct err_detail detail = {0};
    struct depositing *depositing;
    if (ring_services->depositing != NULL || ring_services->is_deposit_told) {
        return;
    }
    struct depositing_config config = {
        .directory = ring_services->config.directory,
        .instance = ring_services->config.instance,
        .clock = ring_services->config.clock,
        .note = on_note,
        .blame = blame,
        .context = ring_services,
    };
    enum err err = depositing_start(&config, &depositing, &detail);
    if (err == ERR_OK) {
        ring_services->depositing = depositing;
    } else {
        ring_services->is_deposit_told = true;
        on_note(ring_services, err_detail_text(&detail, err));
    }
}

void ring_services_stop_deposits(struct ring_services *ring_services) {
    if (ring_services->depositing != NULL) {
        depositing_stop(ring_services->depositing);
        ring_services->depositing = NULL;
    }
}

void ring_services_put_deposit(void *context, const char *name, struct buf *out) {
    struct ring_services *ring_services = context;
    struct depositing *depositing = ring_services->depositing;
    if (depositing != NULL) {
        depositing_put(depositing, name, out);
    }
}
