/* Archives of other nodes as a part of what nodes do together: they are served without any network too. */
#include "base/json.h"
#include "node/mirror/mirrored_archives.h"
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

void ring_services_beat_mirrored(struct ring_services *ring_services) {
    struct err_detail detail = {0};
    struct mirrored_archives *mirrored_archives;
    if (ring_services->mirrored_archives != NULL || ring_services->is_mirrored_told) {
        return;
    }
    struct mirrored_archives_config config = {
        .directory = ring_services->config.directory,
        .instance = ring_services->config.instance,
        .clock = ring_services->config.clock,
        .note = on_note,
        .blame = blame,
        .context = ring_services,
    };
    enum err err = mirrored_archives_start(&config, &mirrored_archives, &detail);
    if (err == ERR_OK) {
        ring_services->mirrored_archives = mirrored_archives;
    } else {
        ring_services->is_mirrored_told = true;
        on_note(ring_services, err_detail_text(&detail, err));
    }
}

void ring_services_stop_mirrored(struct ring_services *ring_services) {
    if (ring_services->mirrored_archives != NULL) {
        mirrored_archives_stop(ring_services->mirrored_archives);
        ring_services->mirrored_archives = NULL;
    }
}

void ring_services_put_mirrored(void *context, const char *name, struct json *json) {
    struct ring_services *ring_services = context;
    struct mirrored_archives *mirrored_archives = ring_services->mirrored_archives;
    if (mirrored_archives != NULL) {
        mirrored_archives_put(mirrored_archives, name, json);
    }
}
