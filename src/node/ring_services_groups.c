/* Groups, collections and archives of other nodes: services that need no ring. */
#include <stdio.h>

#include "base/json.h"
#include "net/datagram.h"
#include "node/mirror/collection_setup.h"
#include "node/mirror/mirrored_archives.h"
#include "node/ring_services_state.h"

/* ---- groups ---- */

static enum err begin_groups(struct ring_services *ring_services, struct err_detail *detail) {
    enum err err = transport_open(ring_services->transport, detail);
    err = err == ERR_OK ? ring_services_make_peer_rpc(ring_services, detail) : err;
    if (err == ERR_OK) {
        err = group_driver_begin(ring_services->group_driver, ring_services->transport,
                                 ring_services->peer_rpc, &ring_services->self);
    }
    return err == ERR_OK ? ring_services_start_peer_rpc(ring_services, detail) : err;
}

/* A node that others cannot reach is told so at the start; later there is only the log. */
enum err ring_services_prepare_groups(struct ring_services *ring_services, struct err_detail *detail) {
    bool is_needed = group_driver_beat(ring_services->group_driver);
    enum err err = is_needed ? begin_groups(ring_services, detail) : ERR_OK;
    ring_services->is_grouped = is_needed && err == ERR_OK;
    return err;
}

void ring_services_beat_groups(struct ring_services *ring_services) {
    struct err_detail detail = {0};
    bool is_needed = group_driver_beat(ring_services->group_driver);
    if (!is_needed || ring_services->is_grouped || ring_services->is_group_told) {
        return;
    }
    enum err err = begin_groups(ring_services, &detail);
    ring_services->is_grouped = err == ERR_OK;
    ring_services->is_group_told = err != ERR_OK;
    if (err != ERR_OK) {
        char sentence[ERR_TEXT_SIZE_MAX + 64];
        snprintf(sentence, sizeof sentence, "without groups until the next start: %s",
                 err_detail_text(&detail, err));
        ring_services_note(ring_services, sentence);
    }
}

void ring_services_add_groups(struct ring_services *ring_services) {
    struct transport_tenant tenant = {.kind = DATAGRAM_GROUP,
                                      .receive = group_driver_receive,
                                      .wake = group_driver_wake,
                                      .context = ring_services->group_driver};
    transport_add(ring_services->transport, &tenant);
}

struct group_driver *ring_services_group_driver(const struct ring_services *ring_services) {
    return ring_services->group_driver;
}

/* ---- archives of other nodes, which are served without any network, too ---- */

static void blame_publisher(void *context, const uint8_t publisher[PEER_KEY_SIZE], const char *sentence) {
    const struct ring_services *ring_services = context;
    struct peer peer = {0}; /* its key is known; its address need not be */
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
        .note = ring_services_note,
        .blame = blame_publisher,
        .context = ring_services,
    };
    enum err err = mirrored_archives_start(&config, &mirrored_archives, &detail);
    if (err == ERR_OK) {
        ring_services->mirrored_archives = mirrored_archives;
    } else {
        ring_services->is_mirrored_told = true;
        ring_services_note(ring_services, err_detail_text(&detail, err));
    }
}

void ring_services_stop_mirrored(struct ring_services *ring_services) {
    if (ring_services->mirrored_archives != NULL) {
        mirrored_archives_stop(ring_services->mirrored_archives);
        ring_services->mirrored_archives = NULL;
    }
}

static void ring_services_put_mirrored(void *context, const char *name, struct json *json) {
    struct ring_services *ring_services = context;
    struct mirrored_archives *mirrored_archives = ring_services->mirrored_archives;
    if (mirrored_archives != NULL) {
        mirrored_archives_put(mirrored_archives, name, json);
    }
}

/* ---- collections: decision 0013 ---- */

static size_t neighbours(void *context, struct mirror_source out[MIRROR_DRIVER_SOURCES_MAX]) {
    const struct ring_services *ring_services = context;
    struct group_driver_neighbour found[GROUP_DRIVER_NEIGHBOURS_MAX];
    size_t count = group_driver_neighbours(ring_services->group_driver, found);
    count = count < MIRROR_DRIVER_SOURCES_MAX ? count : MIRROR_DRIVER_SOURCES_MAX;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct mirror_source){
            .peer = found[i].peer, .bandwidth = found[i].bandwidth, .delay_us = found[i].delay_us};
    }
    return count;
}

static bool groups_is_member(void *context, const struct peer *peer) {
    const struct ring_services *ring_services = context;
    return transport_admits(ring_services->transport, peer) ||
           group_driver_is_member(ring_services->group_driver, peer);
}

static void learned(void *context, const struct peer *peer, uint64_t size, uint64_t duration_us) {
    const struct ring_services *ring_services = context;
    group_driver_learned(ring_services->group_driver, peer, size, duration_us);
}

static enum err begin_mirrors(struct ring_services *ring_services, struct err_detail *detail) {
    struct mirror_driver *mirror_driver;
    struct mirror_driver_config config = {
        .directory = ring_services->config.directory,
        .peer_rpc = ring_services->peer_rpc,
        .self = ring_services->self,
        .gather_us = ring_services->config.settings->mirror_gather_us,
        .ask_us = ring_services->config.settings->mirror_period_us,
        .limit = ring_services->config.limit,
        .upload_limit = ring_services->config.upload_limit,
        .clock = ring_services->config.clock,
        .is_member = groups_is_member,
        .neighbours = neighbours,
        .learned = learned,
        .blame = ring_services_blame,
        .note = ring_services_note,
        .put_archive = ring_services_put_mirrored,
        .context = ring_services,
    };
    enum err err = mirror_driver_new(&config, &mirror_driver, detail);
    if (err == ERR_OK) {
        ring_services->mirror_driver = mirror_driver;
        err = mirror_driver_start(mirror_driver, detail);
    }
    return err;
}

/* The socket and peer_rpc, if a collection needs them and neither a ring nor a group has brought them. */
enum err ring_services_prepare_mirrors(struct ring_services *ring_services, struct err_detail *detail) {
    if (ring_services->is_peer_rpc_started ||
        !collection_setup_any_needs_no_group(ring_services->config.directory)) {
        return ERR_OK;
    }
    enum err err = transport_open(ring_services->transport, detail);
    err = err == ERR_OK ? ring_services_make_peer_rpc(ring_services, detail) : err;
    return err == ERR_OK ? ring_services_start_peer_rpc(ring_services, detail) : err;
}

void ring_services_beat_mirrors(struct ring_services *ring_services) {
    struct err_detail detail = {0};
    if (ring_services->mirror_driver != NULL || ring_services->is_mirror_told) {
        return;
    }
    enum err err = ring_services_prepare_mirrors(ring_services, &detail);
    if (err == ERR_OK && ring_services->is_peer_rpc_started) {
        err = begin_mirrors(ring_services, &detail);
    }
    if (err != ERR_OK) {
        ring_services->is_mirror_told = true;
        ring_services_note(ring_services, err_detail_text(&detail, err));
    }
}

bool ring_services_hears(struct ring_services *ring_services, const struct peer *peer) {
    struct mirror_driver *mirror_driver = ring_services->mirror_driver;
    return mirror_driver != NULL && mirror_driver_hears(mirror_driver, peer);
}

void ring_services_put_mirrors(struct ring_services *ring_services, struct buf *out) {
    mirror_driver_put(ring_services->mirror_driver, out);
}

void ring_services_show_mirrors(struct ring_services *ring_services, struct sheet *sheet) {
    if (ring_services->mirror_driver != NULL) {
        mirror_driver_show(ring_services->mirror_driver, sheet);
    }
}
