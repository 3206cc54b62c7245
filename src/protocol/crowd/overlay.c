#include "protocol/crowd/overlay.h"

#include "protocol/crowd/state.h"

enum {
    SHUFFLES_PER_WAIT = 8, /* of one node that are served within shuffle_us: he begins one in it */
    SHUFFLES_BURST = 16,
    AMPLIFICATION_MAX = 3,
};

enum err overlay_init(struct crowd *crowd) {
    struct overlay *overlay = &crowd->overlay;
    const struct crowd_config *config = &crowd->config;
    if (config->kind == CROWD_PROOFS) {
        overlay->newcomers = arena_take_array(&crowd->arena, config->view_size, sizeof *overlay->newcomers);
        if (overlay->newcomers == NULL) {
            return ERR_MEMORY;
        }
    }
    if (!config->is_unlimited) {
        overlay->buckets = arena_take(&crowd->arena, sizeof *overlay->buckets);
        if (overlay->buckets == NULL) {
            return ERR_MEMORY;
        }
    }
    return ERR_OK;
}

size_t overlay_actions_max(const struct crowd_config *config) {
    return config->view_size + 4u; /* the walks of a join, its answer; a shuffle, a join of ours, alone */
}

/* ---- shuffles of ours ---- */

/*
 * Under CROWD_CYCLON a node is known by those it shuffled with lately, so who waits evenly is as well known
 * as others. With exponential waits, the paper's, the numbers spread more than twice as far (crowd-degrees).
 */
static bool waits_evenly(const struct crowd *crowd) {
    return crowd->config.kind == CROWD_CYCLON && !crowd->config.waits_exponentially;
}

static void draw_shuffle(struct crowd *crowd) {
    uint64_t mean_us = crowd->config.shuffle_us;
    uint64_t wait_us =
        waits_evenly(crowd) ? prng_spread(&crowd->prng, mean_us) : prng_exponential(&crowd->prng, mean_us);
    crowd->overlay.is_open = false;
    crowd->overlay.shuffle_at_us = crowd->now_us + wait_us;
}

void overlay_start(struct crowd *crowd) {
    draw_shuffle(crowd);
    if (waits_evenly(crowd)) { /* who started together shall not shuffle together */
        crowd->overlay.shuffle_at_us = crowd->now_us + prng_below(&crowd->prng, crowd->config.shuffle_us + 1);
    }
    crowd->overlay.alone_at_us = crowd->now_us;
}

static int choose_partner(struct crowd *crowd) {
    struct view *view = &crowd->view;
    if (crowd->config.kind == CROWD_PROOFS) {
        return (int)prng_below(&crowd->prng, view->count);
    }
    view_age(view);
    return view_oldest(view);
}

static void begin_shuffle(struct crowd *crowd) {
    struct overlay *overlay = &crowd->overlay;
    const struct view *view = &crowd->view;
    int position = choose_partner(crowd);
    uint8_t picked[CROWD_VIEW_MAX];
    size_t count = view_pick(view, &crowd->prng, position, (size_t)crowd->config.shuffle_size - 1, picked);
    struct crowd_message message;
    overlay->partner = view->neighbours[position].peer;
    overlay->sent[0] = overlay->partner.address;
    for (size_t i = 0; i < count; i++) {
        message.entries[i] = view->neighbours[picked[i]];
        overlay->sent[i + 1] = message.entries[i].peer.address;
    }
    overlay->sent_count = (uint8_t)(count + 1);
    overlay->is_open = true;
    overlay->number = prng_u64(&crowd->prng);
    overlay->silent_at_us = crowd->now_us + crowd->config.answer_us;
    message.kind = CROWD_MESSAGE_SHUFFLE;
    message.number = overlay->number;
    message.entries_count = (uint8_t)count;
    crowd->counters.shuffles_count++;
    crowd_send(crowd, &overlay->partner, &message);
}

/* Under CROWD_CYCLON the oldest is next; who is still there after a shuffle must not be it for ever. */
static void renew_partner(struct crowd *crowd) {
    int position = view_find(&crowd->view, &crowd->overlay.partner.address);
    if (position >= 0) {
        crowd->view.neighbours[position].age = 0;
    }
}

static void give_up_shuffle(struct crowd *crowd) {
    if (crowd->config.keeps_silent) {
        renew_partner(crowd);
    } else {
        crowd->counters.silent_count++;
        overlay_drop(crowd, &crowd->overlay.partner.address);
    }
    draw_shuffle(crowd);
}

void overlay_drop(struct crowd *crowd, const struct address *address) {
    int position = view_find(&crowd->view, address);
    if (position >= 0) {
        view_remove(&crowd->view, (size_t)position);
    }
}

/* ---- answers ---- */

static bool is_awaited(const struct crowd *crowd, const struct event *event,
                       const struct crowd_message *message) {
    const struct overlay *overlay = &crowd->overlay;
    return overlay->is_open && message->number == overlay->number && event_is_from(event, &overlay->partner);
}

static void on_shuffled(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    const struct overlay *overlay = &crowd->overlay;
    if (!is_awaited(crowd, event, message)) {
        crowd->counters.unasked_count++;
        return;
    }
    crowd->counters.shuffled_count++;
    view_merge(&crowd->view, message->entries, message->entries_count, overlay->sent, overlay->sent_count);
    renew_partner(crowd); /* where there was room for him, too */
    draw_shuffle(crowd);
}

static void on_busy(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    if (!is_awaited(crowd, event, message)) {
        crowd->counters.unasked_count++;
        return;
    }
    crowd->counters.rejected_count++;
    renew_partner(crowd);
    draw_shuffle(crowd);
}

/* ---- shuffles of others ---- */

static bool is_shuffle_admitted(struct crowd *crowd, const struct event *event) {
    struct overlay_buckets *buckets = crowd->overlay.buckets;
    if (buckets == NULL) {
        return true;
    }
    uint64_t hash = crowd_token(crowd, &event->from);
    bool is_admitted =
        bucket_take_one(&buckets->shuffles_full_at_us[hash % OVERLAY_BUCKETS_COUNT], crowd->now_us,
                        crowd->config.shuffle_us / SHUFFLES_PER_WAIT, SHUFFLES_BURST);
    crowd->counters.flooded_count += !is_admitted;
    return is_admitted;
}

/*
 * As many of ours as he may get: a shuffle needs no token, so the answer is at most three times as long. One
 * always fits, and he has then a place here. sent gets their addresses.
 */
static void choose_answer(struct crowd *crowd, const struct event *event, struct crowd_message *answer,
                          struct address sent[CROWD_SHUFFLE_MAX]) {
    const struct view *view = &crowd->view;
    uint8_t picked[CROWD_VIEW_MAX];
    size_t count =
        view_pick(view, &crowd->prng, view_find(view, &event->from), crowd->config.shuffle_size, picked);
    size_t size = CROWD_MESSAGE_HEADER_SIZE + 1;
    answer->entries_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct crowd_neighbour *entry = &view->neighbours[picked[i]];
        size += crowd_message_entry_size(entry);
        if (size > AMPLIFICATION_MAX * event->bytes.size) {
            return;
        }
        sent[i] = entry->peer.address;
        answer->entries[i] = *entry;
        answer->entries_count++;
    }
}

static void on_shuffle(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    struct crowd_message answer;
    answer.number = message->number;
    if (crowd->overlay.is_open || !is_shuffle_admitted(crowd, event)) {
        answer.kind = CROWD_MESSAGE_BUSY;
        crowd_answer(crowd, event, &answer);
        return;
    }
    struct crowd_neighbour received[1 + CROWD_SHUFFLE_MAX];
    received[0] = (struct crowd_neighbour){.peer = event_sender(event)};
    memcpy(received + 1, message->entries, message->entries_count * sizeof *received);
    view_add(&crowd->view, &received[0]); /* his own word: where we know another key of him, this is it now */
    struct address sent[CROWD_SHUFFLE_MAX];
    choose_answer(crowd, event, &answer, sent);
    answer.kind = CROWD_MESSAGE_SHUFFLED;
    crowd_answer(crowd, event, &answer);
    view_merge(&crowd->view, received, 1u + message->entries_count, sent, answer.entries_count);
    crowd->counters.served_count++;
}

/* ---- the whole ---- */

void overlay_receive(struct crowd *crowd, const struct event *event, const struct crowd_message *message) {
    switch ((enum crowd_message_kind)message->kind) {
    case CROWD_MESSAGE_SHUFFLE:
        on_shuffle(crowd, event, message);
        break;
    case CROWD_MESSAGE_SHUFFLED:
        on_shuffled(crowd, event, message);
        break;
    case CROWD_MESSAGE_BUSY:
        on_busy(crowd, event, message);
        break;
    default:
        overlay_join_receive(crowd, event, message);
        break;
    }
}

static void tick_shuffle(struct crowd *crowd) {
    const struct overlay *overlay = &crowd->overlay;
    if (overlay->is_open && crowd->now_us >= overlay->silent_at_us) {
        give_up_shuffle(crowd);
    } else if (!overlay->is_open && crowd->now_us >= overlay->shuffle_at_us) {
        if (crowd->view.count > 0) {
            begin_shuffle(crowd);
        } else {
            draw_shuffle(crowd);
        }
    }
    outbox_wake_at(crowd->out, overlay->is_open ? overlay->silent_at_us : overlay->shuffle_at_us);
}

static void tick_alone(struct crowd *crowd) {
    struct overlay *overlay = &crowd->overlay;
    unsigned enough = crowd->config.view_size / 4u;
    if (crowd->view.count >= (enough > 0 ? enough : 1)) {
        return;
    }
    if (crowd->now_us >= overlay->alone_at_us) {
        overlay->alone_at_us = crowd->now_us + OVERLAY_ALONE_US;
        outbox_notice(crowd->out, CROWD_ALONE, bytes_of(NULL, 0));
    }
    outbox_wake_at(crowd->out, overlay->alone_at_us);
}

void overlay_tick(struct crowd *crowd) {
    tick_shuffle(crowd);
    overlay_join_tick(crowd);
    tick_alone(crowd);
}
