/* Collections as a part of what nodes do together: decision 0013. */
#include "node/mirror/collection_setup.h"
#include "node/together_state.h"

static size_t neighbours(void *context, struct mirror_source out[MIRROR_DRIVER_SOURCES_MAX]) {
    const struct together *together = context;
    struct group_driver_neighbour found[GROUP_DRIVER_NEIGHBOURS_MAX];
    size_t count = group_driver_neighbours(together->group_driver, found);
    count = count < MIRROR_DRIVER_SOURCES_MAX ? count : MIRROR_DRIVER_SOURCES_MAX;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct mirror_source){
            .peer = found[i].peer, .bandwidth = found[i].bandwidth, .delay_us = found[i].delay_us};
    }
    return count;
}

static bool is_member(void *context, const struct peer *peer) {
    const struct together *together = context;
    return transport_admits(together->transport, peer) ||
           group_driver_is_member(together->group_driver, peer);
}

static void learned(void *context, const struct peer *peer, uint64_t size, uint64_t duration_us) {
    const struct together *together = context;
    group_driver_learned(together->group_driver, peer, size, duration_us);
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    const struct together *together = context;
    transport_blame(together->transport, peer, sentence);
}

static void on_note(void *context, const char *sentence) {
    const struct together *together = context;
    if (together->config.note != NULL) {
        together->config.note(together->config.context, sentence);
    }
}

static enum err begin(struct together *together, struct err_detail *detail) {
    struct mirror_driver *mirror_driver;
    struct mirror_driver_config config = {
        .directory = together->config.directory,
        .peer_rpc = together->peer_rpc,
        .self = together->self,
        .gather_us = together->config.mirrors.gather_us,
        .ask_us = together->config.mirrors.ask_us,
        .limit = together->config.mirrors.limit,
        .upload_limit = together->config.mirrors.upload_limit,
        .clock = together->config.clock,
        .is_member = is_member,
        .neighbours = neighbours,
        .learned = learned,
        .blame = blame,
        .note = on_note,
        .put_archive = together_put_deposit,
        .context = together,
    };
    enum err err = mirror_driver_new(&config, &mirror_driver, detail);
    if (err == ERR_OK) {
        together->mirror_driver = mirror_driver;
        err = mirror_driver_start(mirror_driver, detail);
    }
    return err;
}

/* The socket and bulk, where neither a ring nor a group has brought them but a collection needs them. */
enum err together_prepare_mirrors(struct together *together, struct err_detail *detail) {
    if (together->is_peer_rpc_started || !collection_setup_any_needs_no_group(together->config.directory)) {
        return ERR_OK;
    }
    enum err err = transport_open(together->transport, detail);
    err = err == ERR_OK ? together_make_peer_rpc(together, detail) : err;
    return err == ERR_OK ? together_start_peer_rpc(together, detail) : err;
}

void together_beat_mirrors(struct together *together) {
    struct err_detail detail = {0};
    if (together->mirror_driver != NULL || together->is_mirror_told) {
        return;
    }
    enum err err = together_prepare_mirrors(together, &detail);
    if (err == ERR_OK && together->is_peer_rpc_started) {
        err = begin(together, &detail);
    }
    if (err != ERR_OK) {
        together->is_mirror_told = true;
        on_note(together, err_detail_text(&detail, err));
    }
}

bool together_hears(struct together *together, const struct peer *peer) {
    struct mirror_driver *mirror_driver = together->mirror_driver;
    return mirror_driver != NULL && mirror_driver_hears(mirror_driver, peer);
}

void together_stop_mirrors(struct together *together) {
    if (together->mirror_driver != NULL) {
        mirror_driver_stop(together->mirror_driver);
    }
}

void together_free_mirrors(struct together *together) {
    if (together->mirror_driver != NULL) {
        mirror_driver_free(together->mirror_driver);
    }
}

void together_put_mirrors(struct together *together, struct buf *out) {
    struct mirror_driver *mirror_driver = together->mirror_driver;
    if (mirror_driver == NULL) {
        buf_put_string(out, "{\"version\":1,\"mirrors\":[]}");
    } else {
        mirror_driver_put(mirror_driver, out);
    }
}
