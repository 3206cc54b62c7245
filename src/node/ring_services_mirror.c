/* Collections as a part of what nodes do together: decision 0013. */
#include "node/mirror/collection_setup.h"
#include "node/ring_services_state.h"

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

static bool is_member(void *context, const struct peer *peer) {
    const struct ring_services *ring_services = context;
    return transport_admits(ring_services->transport, peer) ||
           group_driver_is_member(ring_services->group_driver, peer);
}

static void learned(void *context, const struct peer *peer, uint64_t size, uint64_t duration_us) {
    const struct ring_services *ring_services = context;
    group_driver_learned(ring_services->group_driver, peer, size, duration_us);
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    const struct ring_services *ring_services = context;
    transport_blame(ring_services->transport, peer, sentence);
}

static void on_note(void *context, const char *sentence) {
    const struct ring_services *ring_services = context;
    if (ring_services->config.note != NULL) {
        ring_services->config.note(ring_services->config.context, sentence);
    }
}

static enum err begin(struct ring_services *ring_services, struct err_detail *detail) {
    struct mirror_driver *mirror_driver;
    struct mirror_driver_config config = {
        .directory = ring_services->config.directory,
        .peer_rpc = ring_services->peer_rpc,
        .self = ring_services->self,
        .gather_us = ring_services->config.mirrors.gather_us,
        .ask_us = ring_services->config.mirrors.ask_us,
        .limit = ring_services->config.mirrors.limit,
        .upload_limit = ring_services->config.mirrors.upload_limit,
        .clock = ring_services->config.clock,
        .is_member = is_member,
        .neighbours = neighbours,
        .learned = learned,
        .blame = blame,
        .note = on_note,
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

/* The socket and bulk, where neither a ring nor a group has brought them but a collection needs them. */
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
        err = begin(ring_services, &detail);
    }
    if (err != ERR_OK) {
        ring_services->is_mirror_told = true;
        on_note(ring_services, err_detail_text(&detail, err));
    }
}

bool ring_services_hears(struct ring_services *ring_services, const struct peer *peer) {
    struct mirror_driver *mirror_driver = ring_services->mirror_driver;
    return mirror_driver != NULL && mirror_driver_hears(mirror_driver, peer);
}

void ring_services_stop_mirrors(struct ring_services *ring_services) {
    if (ring_services->mirror_driver != NULL) {
        mirror_driver_stop(ring_services->mirror_driver);
    }
}

void ring_services_free_mirrors(struct ring_services *ring_services) {
    if (ring_services->mirror_driver != NULL) {
        mirror_driver_free(ring_services->mirror_driver);
    }
}

void ring_services_put_mirrors(void *context, struct buf *out) {
    const struct ring_services *ring_services = context;
    mirror_driver_put(ring_services->mirror_driver, out);
}

size_t ring_services_list_mirrors(void *context, struct arena *arena, struct mirror_view **ret_mirrors) {
    const struct ring_services *ring_services = context;
    struct mirror_driver *mirror_driver = ring_services->mirror_driver;
    return mirror_driver != NULL ? mirror_driver_views(mirror_driver, arena, ret_mirrors) : 0;
}
