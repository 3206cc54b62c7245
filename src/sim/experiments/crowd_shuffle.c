#include "sim/experiments/crowd_shuffle.h"

static size_t list_addresses(const struct crowd_neighbour *neighbours, size_t count, struct address *out) {
    for (size_t i = 0; i < count; i++) {
        out[i] = neighbours[i].peer.address;
    }
    return count;
}

/* Those that may be overwritten: with rule 4, what was sent. */
static void merge(enum crowd_breakage breakage, struct view *view, const struct crowd_neighbour *received,
                  size_t received_count, const struct address *sent, size_t sent_count) {
    struct address all[CROWD_VIEW_MAX];
    if (breakage == CROWD_BREAK_RULE_4) {
        sent_count = list_addresses(view->neighbours, view->count, all);
        sent = all;
    }
    view_merge(view, received, received_count, sent, sent_count);
}

void crowd_shuffle(enum crowd_breakage breakage, struct view *view, struct view *partner,
                   const struct crowd_choice *choice) {
    struct crowd_neighbour received[CROWD_SHUFFLE_MAX + 1];
    struct address sent[CROWD_SHUFFLE_MAX + 1];
    received[0] = (struct crowd_neighbour){.peer = view->self};
    memcpy(&received[1], choice->sent, choice->sent_count * sizeof received[0]);
    size_t sent_count = list_addresses(choice->answered, choice->answered_count, sent);
    merge(breakage, partner, received, choice->sent_count + 1, sent, sent_count);

    sent[0] = partner->self.address; /* the first to be overwritten */
    sent_count = 1 + list_addresses(choice->sent, choice->sent_count, &sent[1]);
    merge(breakage, view, choice->answered, choice->answered_count, sent, sent_count);
}
