/* Collections as a part of what nodes do together: decision 0013. */
#include "node/mirror/collection_setup.h"
#include "node/together_state.h"

static size_t neighbours(void *context, struct mirror_source out[MIRRORING_SOURCES_MAX]) {
    const struct together *together = context;
    struct grouping_neighbour found[GROUPING_NEIGHBOURS_MAX];
    size_t count = grouping_neighbours(together->grouping, found);
    count = count < MIRRORING_SOURCES_MAX ? count : MIRRORING_SOURCES_MAX;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct mirror_source){
            .peer = found[i].peer, .bandwidth = found[i].bandwidth, .delay_us = found[i].delay_us};
    }
    return count;
}

static bool is_member(void *context, const struct peer *peer) {
    const struct together *together = context;
    return ringing_admits(together->ringing, peer) || grouping_is_member(together->grouping, peer);
}

static void learned(void *context, const struct peer *peer, uint64_t size, uint64_t duration_us) {
    const struct together *together = context;
    grouping_learned(together->grouping, peer, size, duration_us);
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    const struct together *together = context;
    ringing_blame(together->ringing, peer, sentence);
}

static void on_note(void *context, const char *sentence) {
    const struct together *together = context;
    if (together->config.note != NULL) {
        together->config.note(together->config.context, sentence);
    }
}

static enum err begin(struct together *together, struct err_detail *detail) {
    struct mirroring *mirroring;
    struct mirroring_config config = {
        .directory = together->config.directory,
        .bulk = together->bulk,
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
    enum err err = mirroring_new(&config, &mirroring, detail);
    if (err == ERR_OK) {
        together->mirroring = mirroring;
        err = mirroring_start(mirroring, detail);
    }
    return err;
}

/* The socket and bulk, where neither a ring nor a group has brought them but a collection needs them. */
enum err together_prepare_mirrors(struct together *together, struct err_detail *detail) {
    if (together->is_bulk_started || !collection_setup_any_needs_no_group(together->config.directory)) {
        return ERR_OK;
    }
    enum err err = ringing_open(together->ringing, detail);
    err = err == ERR_OK ? together_make_bulk(together, detail) : err;
    return err == ERR_OK ? together_start_bulk(together, detail) : err;
}

void together_beat_mirrors(struct together *together) {
    struct err_detail detail = {0};
    if (together->mirroring != NULL || together->is_mirror_told) {
        return;
    }
    enum err err = together_prepare_mirrors(together, &detail);
    if (err == ERR_OK && together->is_bulk_started) {
        err = begin(together, &detail);
    }
    if (err != ERR_OK) {
        together->is_mirror_told = true;
        on_note(together, err_detail_text(&detail, err));
    }
}

bool together_hears(struct together *together, const struct peer *peer) {
    struct mirroring *mirroring = together->mirroring;
    return mirroring != NULL && mirroring_hears(mirroring, peer);
}

void together_stop_mirrors(struct together *together) {
    if (together->mirroring != NULL) {
        mirroring_stop(together->mirroring);
    }
}

void together_free_mirrors(struct together *together) {
    if (together->mirroring != NULL) {
        mirroring_free(together->mirroring);
    }
}

void together_put_mirrors(struct together *together, struct buf *out) {
    struct mirroring *mirroring = together->mirroring;
    if (mirroring == NULL) {
        buf_put_string(out, "{\"version\":1,\"mirrors\":[]}");
    } else {
        mirroring_put(mirroring, out);
    }
}
