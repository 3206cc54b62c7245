/* The part of ring_services.h that is full text over the ring: node/search/. */
#include <stdlib.h>

#include "node/ring_services_state.h"
#include "replay/search/search_ring.h"

static const uint64_t GRACE_US = UINT64_C(3600) * 1000000; /* as the copies have it */

void ring_services_set_search(struct ring_services *ring_services, struct search *search,
                              struct archive *archive) {
    ring_services->search = search;
    ring_services->archive = archive;
}

/* ---- of which arcs this node has everything ---- */

/* Arcs of which this node is a holder; those that follow each other are one as long as all of them are sure.
 */
struct claimed {
    struct search_code_arc *arcs;
    uint32_t count;
};

static void note_held(void *context, const struct holders_arc *arc) {
    struct claimed *held = context;
    if (arc->self_rank >= 0 && held->count < SEARCH_CODE_ARCS_MAX) {
        held->arcs[held->count++] = (struct search_code_arc){.from = arc->from, .to = arc->to};
    }
}

/* At its start and at its end: the places of one arc have the same holders. */
static bool is_sure_of(struct ring_services *ring_services, const struct search_code_arc *arc) {
    return copies_is_compared(ring_services->copies, ring_id_add_power(arc->from, 0)) &&
           copies_is_compared(ring_services->copies, arc->to);
}

static void services_claim(void *context, bool *ret_has_everything,
                           struct search_code_arc out[SEARCH_CODE_ARCS_MAX], uint32_t *ret_count) {
    struct ring_services *ring_services = context;
    struct claimed held = {.arcs = out};
    uint32_t count = 0;
    (void)holders_each(ring_services->holders, note_held, &held);
    for (uint32_t i = 0; i < held.count; i++) {
        struct search_code_arc arc = out[i];
        if (!is_sure_of(ring_services, &arc)) {
            continue;
        }
        if (count > 0 && ring_id_equal(out[count - 1].to, arc.from)) {
            out[count - 1].to = arc.to;
        } else {
            out[count++] = arc;
        }
    }
    *ret_has_everything = copies_has_everything(ring_services->copies);
    *ret_count = count;
}

/* ---- life ---- */

static size_t services_each_arc(void *context, void (*visit)(void *visitor, const struct holders_arc *arc),
                                void *visitor) {
    const struct ring_services *ring_services = context;
    return holders_each(ring_services->holders, visit, visitor);
}

static bool services_allow(void *context, struct bytes url) {
    const struct ring_services *ring_services = context;
    return routing_allows(ring_services->routing, url);
}

static size_t services_copies(void *context) {
    const struct ring_services *ring_services = context;
    return holders_copies(ring_services->holders);
}

void ring_services_beat_search(struct ring_services *ring_services) {
    struct peer *peers = calloc(RING_SEARCH_SEEN_MAX, sizeof *peers);
    if (peers != NULL) {
        size_t count = holders_all(ring_services->holders, peers, RING_SEARCH_SEEN_MAX);
        count = count < RING_SEARCH_SEEN_MAX ? count : RING_SEARCH_SEEN_MAX;
        ring_services->has_met_others = ring_services->has_met_others || count >= 2;
        if (ring_services->ring_search != NULL) {
            ring_search_see(ring_services->ring_search, peers, count);
        }
    }
    free(peers);
}

enum err ring_services_begin_search(struct ring_services *ring_services) {
    struct ring_search_config config = {
        .peer_rpc = ring_services->peer_rpc,
        .search = ring_services->search,
        .archive = ring_services->archive,
        .dialects = ring_services->config.dialects,
        .self = ring_services->self,
        .clock = ring_services->config.clock,
        .claims = services_claim,
        .each_arc = services_each_arc,
        .copies = services_copies,
        .gone_us = ring_services->config.settings->ring_grace_us > 0
                       ? ring_services->config.settings->ring_grace_us
                       : GRACE_US,
        .allows = services_allow,
        .blame = ring_services_blame,
        .context = ring_services,
    };
    if (ring_services->search == NULL) {
        return ERR_OK;
    }
    ring_services->ring_search_service = ring_search_service_new(&config);
    return ring_services->ring_search_service != NULL
               ? ring_search_start(&config, &ring_services->ring_search)
               : ERR_MEMORY;
}

void ring_services_stop_search(struct ring_services *ring_services) {
    if (ring_services->ring_search != NULL) {
        ring_search_stop(ring_services->ring_search);
    }
}

void ring_services_free_search(struct ring_services *ring_services) {
    ring_search_free(ring_services->ring_search);
    ring_search_service_free(ring_services->ring_search_service);
}

/* ---- asking ---- */

enum err ring_services_search(void *context, struct search_job *job, struct search_ring_report *report) {
    struct ring_services *ring_services = context;
    struct peer peers[2];
    if (!ring_services->has_ring) {
        return ERR_NOT_FOUND;
    }
    bool is_ready = ring_services->is_begun && ring_services->ring_search != NULL &&
                    holders_all(ring_services->holders, peers, 2) >= 2;
    if (!is_ready) {
        bool has_others = ring_services->expects_others || ring_services->has_met_others;
        return has_others ? ERR_UNREACHABLE : ERR_NOT_FOUND;
    }
    return ring_search_ask(ring_services->ring_search, job, report);
}
