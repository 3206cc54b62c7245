/* The groups as a part of what nodes do together: the only one that needs no ring. */
#include <stdio.h>

#include "net/datagram.h"
#include "node/ring_services_state.h"

static enum err begin(struct ring_services *ring_services, struct err_detail *detail) {
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
    enum err err = is_needed ? begin(ring_services, detail) : ERR_OK;
    ring_services->is_grouped = is_needed && err == ERR_OK;
    return err;
}

void ring_services_beat_groups(struct ring_services *ring_services) {
    struct err_detail detail = {0};
    bool is_needed = group_driver_beat(ring_services->group_driver);
    if (!is_needed || ring_services->is_grouped || ring_services->is_group_told) {
        return;
    }
    enum err err = begin(ring_services, &detail);
    ring_services->is_grouped = err == ERR_OK;
    ring_services->is_group_told = err != ERR_OK;
    if (err != ERR_OK && ring_services->config.note != NULL) {
        char sentence[ERR_TEXT_SIZE_MAX + 64];
        snprintf(sentence, sizeof sentence, "without groups until the next start: %s",
                 err_detail_text(&detail, err));
        ring_services->config.note(ring_services->config.context, sentence);
    }
}

static void groups_receive(void *context, const struct datagram_message *message) {
    const struct ring_services *ring_services = context;
    group_driver_receive(ring_services->group_driver, message);
}

static void groups_wake(void *context) {
    const struct ring_services *ring_services = context;
    group_driver_wake(ring_services->group_driver);
}

void ring_services_add_groups(struct ring_services *ring_services) {
    struct transport_tenant tenant = {
        .kind = DATAGRAM_GROUP, .receive = groups_receive, .wake = groups_wake, .context = ring_services};
    transport_add(ring_services->transport, &tenant);
}

struct group_driver *ring_services_group_driver(const struct ring_services *ring_services) {
    return ring_services->group_driver;
}
