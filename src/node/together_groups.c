/* The groups as a part of what nodes do together: the only one that needs no ring. */
#include <stdio.h>

#include "net/datagram.h"
#include "node/together_state.h"

static enum err begin(struct together *together, struct err_detail *detail) {
    enum err err = transport_open(together->transport, detail);
    err = err == ERR_OK ? together_make_peer_rpc(together, detail) : err;
    if (err == ERR_OK) {
        err = group_driver_begin(together->group_driver, together->transport, together->peer_rpc,
                                 &together->self);
    }
    return err == ERR_OK ? together_start_peer_rpc(together, detail) : err;
}

/* A node that others cannot reach is told so at the start; later there is only the log. */
enum err together_prepare_groups(struct together *together, struct err_detail *detail) {
    bool is_needed = group_driver_beat(together->group_driver);
    enum err err = is_needed ? begin(together, detail) : ERR_OK;
    together->is_grouped = is_needed && err == ERR_OK;
    return err;
}

void together_beat_groups(struct together *together) {
    struct err_detail detail = {0};
    bool is_needed = group_driver_beat(together->group_driver);
    if (!is_needed || together->is_grouped || together->is_group_told) {
        return;
    }
    enum err err = begin(together, &detail);
    together->is_grouped = err == ERR_OK;
    together->is_group_told = err != ERR_OK;
    if (err != ERR_OK && together->config.note != NULL) {
        char sentence[ERR_TEXT_SIZE_MAX + 64];
        snprintf(sentence, sizeof sentence, "without groups until the next start: %s",
                 err_detail_text(&detail, err));
        together->config.note(together->config.context, sentence);
    }
}

void together_on_group(void *shared, const struct datagram_message *message) {
    const struct together *together = shared;
    if (message->kind == DATAGRAM_GROUP) {
        group_driver_receive(together->group_driver, message);
    }
}

struct group_driver *together_group_driver(const struct together *together) {
    return together->group_driver;
}
