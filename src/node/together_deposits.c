/* Archives of other nodes as a part of what nodes do together: they are served without any network too. */
#include "node/mirror/depositing.h"
#include "node/together_state.h"

static void on_note(void *context, const char *sentence) {
    const struct together *together = context;
    if (together->config.note != NULL) {
        together->config.note(together->config.context, sentence);
    }
}

static void blame(void *context, const uint8_t publisher[PEER_KEY_SIZE], const char *sentence) {
    const struct together *together = context;
    struct peer peer = {0}; /* who he is, is known; where, need not be */
    memcpy(peer.key, publisher, PEER_KEY_SIZE);
    transport_blame(together->transport, &peer, sentence);
}

void together_beat_deposits(struct together *together) {
    struct err_detail detail = {0};
    struct depositing *depositing;
    if (together->depositing != NULL || together->is_deposit_told) {
        return;
    }
    struct depositing_config config = {
        .directory = together->config.directory,
        .instance = together->config.instance,
        .clock = together->config.clock,
        .note = on_note,
        .blame = blame,
        .context = together,
    };
    enum err err = depositing_start(&config, &depositing, &detail);
    if (err == ERR_OK) {
        together->depositing = depositing;
    } else {
        together->is_deposit_told = true;
        on_note(together, err_detail_text(&detail, err));
    }
}

void together_stop_deposits(struct together *together) {
    if (together->depositing != NULL) {
        depositing_stop(together->depositing);
        together->depositing = NULL;
    }
}

void together_put_deposit(void *context, const char *name, struct buf *out) {
    struct together *together = context;
    struct depositing *depositing = together->depositing;
    if (depositing != NULL) {
        depositing_put(depositing, name, out);
    }
}
