#include "protocol/copies/keeper.h"

#include <string.h>

#include "base/assert.h"
#include "protocol/copies/keeper_state.h"

static const uint64_t SECOND_US = 1000000;
static const uint64_t SOON_US = 1000000;       /* again, however often somebody says that something changed */
static const uint64_t SILENT_US = 5 * 1000000; /* who did not answer, the first time */
static const uint64_t HEARD_US = 30 * 1000000; /* again, however often he asks us */
static const uint64_t RATE_WINDOW_US = 10 * 1000000;

enum { TURNS_MAX = 4 };
enum { LONG_PART = 8 /* of the interval: a repair that takes so long is a long one */ };
enum { LOST_MAX = 3 /* keys in a row that somebody says he has lost, after he said that he has them */ };

const char *const keeper_levels[] = {"whole", "away", "low", NULL};

static uint64_t or_default(uint64_t value, uint64_t fallback) {
    return value > 0 ? value : fallback;
}

static struct keeper_config complete(const struct keeper_config *config) {
    return (struct keeper_config){
        .copies = (uint32_t)or_default(config->copies, 6),
        .pieces_max = (uint32_t)or_default(config->pieces_max, 64),
        .claims_max = (uint32_t)or_default(config->claims_max, 512),
        .compare_interval_us = or_default(config->compare_interval_us, 300 * SECOND_US),
        .challenge_interval_us = or_default(config->challenge_interval_us, 600 * SECOND_US),
        .grace_us = or_default(config->grace_us, 3600 * SECOND_US),
        .bar_us = or_default(config->bar_us, 1800 * SECOND_US),
        .keeps_everything = config->keeps_everything,
        .seed = config->seed,
    };
}

size_t keeper_size(const struct keeper_config *config) {
    struct keeper_config full = complete(config);
    return sizeof(struct keeper) + full.pieces_max * sizeof(struct keeper_piece) +
           full.claims_max * sizeof(struct keeper_claimed);
}

struct keeper *keeper_init(void *memory, const struct keeper_config *config, uint64_t now_us) {
    struct keeper *keeper = memory;
    memset(memory, 0, keeper_size(config));
    keeper->config = complete(config);
    ASSERT(keeper->config.copies <= CHARTER_REPLICAS_MAX);
    keeper->pieces = (struct keeper_piece *)(keeper + 1);
    keeper->claims = (struct keeper_claimed *)(keeper->pieces + keeper->config.pieces_max);
    prng_init(&keeper->prng, keeper->config.seed);
    keeper->rate_since_us = now_us;
    keeper->release_us = now_us + keeper->config.grace_us; /* until then others may not have claimed yet */
    return keeper;
}

/* ---- what to do ---- */

/* Those who follow the holders only where a repair takes long. */
static bool may_work(const struct keeper_piece *piece, const struct keeper_node *node) {
    bool is_asked = piece->repairing_since_us > 0 && node->barred_until_us == 0;
    return (node->is_chosen || is_asked) && node->away_since_us == 0 && !node->is_busy;
}

/* When the node wants its next task; *ret_kind which. Of two that are due, a comparison comes first. */
static uint64_t due_of(const struct keeper *keeper, const struct keeper_piece *piece,
                       const struct keeper_node *node, enum keeper_task_kind *ret_kind) {
    if (!node->is_chosen) {
        uint64_t long_us = piece->repairing_since_us + keeper->config.compare_interval_us / LONG_PART;
        *ret_kind = KEEPER_ASK;
        return node->compare_us > long_us ? node->compare_us : long_us;
    }
    bool is_challenge = node->is_complete && node->challenge_us < node->compare_us;
    *ret_kind = is_challenge ? KEEPER_CHALLENGE : KEEPER_COMPARE;
    return is_challenge ? node->challenge_us : node->compare_us;
}

static bool next_of_members(struct keeper *keeper, uint64_t now_us, struct keeper_task *ret_task) {
    struct keeper_node *best = NULL;
    uint64_t best_us = UINT64_MAX;
    for (size_t i = 0; i < keeper->pieces_count; i++) {
        struct keeper_piece *piece = &keeper->pieces[i];
        for (size_t j = 0; j < piece->count; j++) {
            enum keeper_task_kind kind;
            uint64_t due_us = due_of(keeper, piece, &piece->nodes[j], &kind);
            if (may_work(piece, &piece->nodes[j]) && due_us <= now_us && due_us < best_us) {
                best = &piece->nodes[j];
                best_us = due_us;
                *ret_task = (struct keeper_task){.kind = kind,
                                                 .from = piece->from,
                                                 .to = piece->to,
                                                 .peer = best->peer,
                                                 .has_rest = best->pass.has_rest,
                                                 .rest = best->pass.rest};
            }
        }
    }
    if (best != NULL) {
        best->is_busy = true;
    }
    return best != NULL;
}

static bool may_release(const struct keeper *keeper) {
    return keeper->pieces_count > 0 && !keeper->config.keeps_everything;
}

static bool next_release(struct keeper *keeper, uint64_t now_us, struct keeper_task *ret_task) {
    static const struct ring_id zero;
    if (keeper->is_releasing || !may_release(keeper) || now_us < keeper->release_us) {
        return false;
    }
    struct keeper_task task = {.kind = KEEPER_RELEASE};
    if (!keeper_find_gap(keeper, keeper->release_cursor, now_us, &task.from, &task.to)) {
        keeper->release_cursor = zero;
        keeper->release_us = now_us + keeper_jitter(keeper, keeper->config.compare_interval_us);
        return false;
    }
    keeper->is_releasing = true;
    *ret_task = task;
    return true;
}

bool keeper_next(struct keeper *keeper, uint64_t now_us, struct keeper_task *ret_task) {
    keeper_refresh(keeper, now_us);
    if (keeper->turns_count < TURNS_MAX && next_of_members(keeper, now_us, ret_task)) {
        keeper->turns_count++;
        return true;
    }
    keeper->turns_count = 0; /* where members always want something, the others get their turn too */
    return keeper_next_left(keeper, now_us, ret_task) || next_release(keeper, now_us, ret_task) ||
           next_of_members(keeper, now_us, ret_task);
}

static void note_earlier(uint64_t *at_us, uint64_t other_us) {
    *at_us = other_us < *at_us ? other_us : *at_us;
}

uint64_t keeper_wake_at(struct keeper *keeper, uint64_t now_us) {
    uint64_t at_us = UINT64_MAX;
    keeper_refresh(keeper, now_us);
    for (size_t i = 0; i < keeper->pieces_count; i++) {
        for (size_t j = 0; j < keeper->pieces[i].count; j++) {
            const struct keeper_node *node = &keeper->pieces[i].nodes[j];
            enum keeper_task_kind kind;
            if (may_work(&keeper->pieces[i], node)) {
                note_earlier(&at_us, due_of(keeper, &keeper->pieces[i], node, &kind));
            }
            if (node->away_since_us > 0) {
                note_earlier(&at_us, node->away_since_us + keeper->config.grace_us);
            }
            if (node->barred_until_us > 0) {
                note_earlier(&at_us, node->barred_until_us);
            }
        }
    }
    if (may_release(keeper) && !keeper->is_releasing) {
        note_earlier(&at_us, keeper->release_us);
    }
    note_earlier(&at_us, keeper_left_at(keeper));
    return at_us;
}

/* ---- how it went ---- */

static void bar(struct keeper *keeper, struct keeper_node *node, uint64_t now_us) {
    node->barred_until_us = now_us + keeper->config.bar_us;
    node->is_complete = false;
}

static void take_silence(struct keeper *keeper, struct keeper_node *node, const struct keeper_task *task,
                         uint64_t now_us) {
    uint64_t wait_us = keeper_doubled(SILENT_US, node->silent_count, keeper->config.compare_interval_us);
    node->silent_count += node->silent_count < UINT32_MAX;
    node->silent_us = now_us;
    if (!node->is_complete) {
        keeper_pass_turn(&node->pass, &node->peer, task->from, task->to);
    }
    node->compare_us = now_us + keeper_jitter(keeper, wait_us);
    node->challenge_us = node->compare_us + 1;
}

/* What one piece learns of a node holds for all: nobody waits for the same silence thirty times. */
static void spread(struct keeper *keeper, const struct keeper_node *heard, bool is_silent) {
    for (size_t i = 0; i < keeper->pieces_count; i++) {
        for (size_t j = 0; j < keeper->pieces[i].count; j++) {
            struct keeper_node *node = &keeper->pieces[i].nodes[j];
            if (node == heard || !peer_equal(&node->peer, &heard->peer)) {
                continue;
            }
            if (is_silent && node->compare_us < heard->compare_us) {
                node->compare_us = heard->compare_us;
                node->challenge_us = heard->challenge_us;
            }
            if (!is_silent && node->silent_count > 0) {
                node->compare_us = 0;
            }
            node->silent_count = is_silent ? heard->silent_count : 0;
            node->silent_us = is_silent ? heard->silent_us : node->silent_us;
        }
    }
}

static bool is_fault(enum err err) {
    return err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT || err == ERR_MISMATCH;
}

static void take_comparison(struct keeper *keeper, struct keeper_node *node, const struct keeper_task *task,
                            const struct keeper_outcome *outcome, uint64_t now_us) {
    node->silent_count = 0;
    node->missing_here_count = node->pass.here_count + outcome->missing_here_count;
    node->missing_there_count = node->pass.there_count + outcome->missing_there_count;
    uint64_t wait_us;
    bool is_complete = keeper_pass_take(&node->pass, task, outcome, &wait_us);
    node->compared_at_us = now_us > 0 ? now_us : 1;
    if (!is_complete) {
        node->is_complete = false;
        node->compare_us = now_us + wait_us;
        return;
    }
    if (!node->is_complete) {
        node->is_complete = true;
        node->challenge_us = now_us + keeper_jitter(keeper, keeper->config.challenge_interval_us);
    }
    node->compare_us = now_us + keeper_jitter(keeper, keeper->config.compare_interval_us);
}

/* He is no holder: whatever he lacks, nothing is known of a copy. */
static void take_asked(struct keeper *keeper, struct keeper_node *node, const struct keeper_task *task,
                       const struct keeper_outcome *outcome, uint64_t now_us) {
    uint64_t wait_us;
    node->silent_count = 0;
    bool is_over = keeper_pass_take(&node->pass, task, outcome, &wait_us);
    wait_us = is_over ? keeper_jitter(keeper, keeper->config.compare_interval_us) : wait_us;
    node->compare_us =
        node->is_chosen ? now_us : now_us + wait_us; /* he may have become a holder meanwhile */
}

static void take_member_task(struct keeper *keeper, struct keeper_node *node, const struct keeper_task *task,
                             const struct keeper_outcome *outcome, uint64_t now_us) {
    bool is_challenge = task->kind == KEEPER_CHALLENGE;
    bool is_silent = false;
    bool has_lost = is_challenge && (outcome->err == ERR_CORRUPT || outcome->err == ERR_NOT_FOUND);
    node->is_busy = false;
    if (outcome->err == ERR_NO_SPACE) {
        node->is_full = true;
        node->missing_there_count = outcome->missing_there_count;
        bar(keeper, node, now_us);
    } else if (has_lost && ++node->lost_count < LOST_MAX) {
        node->is_complete = false; /* it may be new here and still on its way to him */
        node->compare_us = now_us;
    } else if (has_lost || is_fault(outcome->err)) {
        node->failed_count += is_challenge;
        node->lost_count = 0;
        node->is_false = true;
        bar(keeper, node, now_us);
    } else if (outcome->err != ERR_OK) {
        take_silence(keeper, node, task, now_us);
        is_silent = true;
    } else if (is_challenge) {
        node->silent_count = 0;
        node->lost_count = 0;
        node->challenge_us = now_us + keeper_jitter(keeper, keeper->config.challenge_interval_us);
    } else if (task->kind == KEEPER_ASK) {
        take_asked(keeper, node, task, outcome, now_us);
    } else {
        take_comparison(keeper, node, task, outcome, now_us);
    }
    spread(keeper, node, is_silent);
}

static void take_release(struct keeper *keeper, const struct keeper_task *task,
                         const struct keeper_outcome *outcome, uint64_t now_us) {
    keeper->is_releasing = false;
    if (outcome->err != ERR_OK) {
        keeper->release_us = now_us + keeper_jitter(keeper, keeper->config.compare_interval_us);
        return;
    }
    keeper->release_cursor = outcome->is_partial ? outcome->reached : task->to;
    keeper->release_us = now_us;
    if (!outcome->is_partial && ring_id_compare(task->to, (struct ring_id){UINT64_MAX, UINT64_MAX}) == 0) {
        keeper->release_cursor = (struct ring_id){0, 0};
        keeper->release_us = now_us + keeper_jitter(keeper, keeper->config.compare_interval_us);
    }
}

void keeper_done(struct keeper *keeper, const struct keeper_task *task, const struct keeper_outcome *outcome,
                 uint64_t now_us) {
    if (task->kind == KEEPER_RELEASE) {
        take_release(keeper, task, outcome, now_us);
        return;
    }
    if (task->kind == KEEPER_HAND_ON) {
        keeper_take_left(keeper, task, outcome, now_us);
        return;
    }
    struct keeper_piece *piece = keeper_find_piece(keeper, task->to);
    for (size_t i = 0; piece != NULL && i < piece->count; i++) {
        if (peer_equal(&piece->nodes[i].peer, &task->peer)) {
            bool is_same = ring_id_equal(piece->from, task->from) && ring_id_equal(piece->to, task->to);
            take_member_task(keeper, &piece->nodes[i], task, outcome, now_us);
            if (!is_same) {
                piece->nodes[i].compare_us = now_us; /* the arc has changed meanwhile */
                piece->nodes[i].is_complete = false;
                keeper_pass_restart(&piece->nodes[i].pass);
            }
            keeper_choose(keeper, piece, now_us);
            return;
        }
    }
}

void keeper_touch(struct keeper *keeper, struct ring_id place, const struct peer *peer, uint64_t now_us) {
    struct keeper_piece *piece = keeper_find_piece(keeper, place);
    for (size_t i = 0; piece != NULL && i < piece->count; i++) {
        struct keeper_node *node = &piece->nodes[i];
        if ((peer == NULL || keeper_is_same(&node->peer, peer)) && node->silent_count == 0) {
            uint64_t soon_us = node->compared_at_us + SOON_US; /* however often somebody says so */
            note_earlier(&node->compare_us, soon_us > now_us ? soon_us : now_us);
        }
    }
}

void keeper_hear(struct keeper *keeper, const struct peer *peer, uint64_t now_us) {
    for (size_t i = 0; i < keeper->pieces_count; i++) {
        for (size_t j = 0; j < keeper->pieces[i].count; j++) {
            struct keeper_node *node = &keeper->pieces[i].nodes[j];
            if (node->silent_count > 0 && keeper_is_same(&node->peer, peer)) {
                uint64_t soon_us = node->silent_us + keeper_jitter(keeper, HEARD_US);
                note_earlier(&node->compare_us, soon_us > now_us ? soon_us : now_us);
            }
        }
    }
}

void keeper_moved(struct keeper *keeper, uint64_t keys_count, uint64_t now_us) {
    keeper->rate_count += keys_count;
    uint64_t passed_us = now_us - keeper->rate_since_us;
    if (passed_us < RATE_WINDOW_US) {
        return;
    }
    if (keeper->rate_count > 0) {
        uint64_t rate = keeper->rate_count * 1000 / (passed_us / SECOND_US);
        bool is_first = keeper->keys_per_1000_s == 0;
        keeper->keys_per_1000_s = is_first ? rate : (3 * keeper->keys_per_1000_s + rate) / 4;
    }
    keeper->rate_count = 0;
    keeper->rate_since_us = now_us;
}

/* ---- status ---- */

size_t keeper_pieces_count(const struct keeper *keeper) {
    return keeper->pieces_count;
}

void keeper_piece(const struct keeper *keeper, size_t index, struct keeper_piece_status *ret_status) {
    ASSERT(index < keeper->pieces_count);
    const struct keeper_piece *piece = &keeper->pieces[index];
    struct keeper_piece_status status = {
        .from = piece->from,
        .to = piece->to,
        .copies_count = 1,
        .repairing_since_us = piece->repairing_since_us,
        .members_count = piece->count,
    };
    for (size_t i = 0; i < piece->count; i++) {
        const struct keeper_node *node = &piece->nodes[i];
        status.away_count += node->away_since_us > 0;
        status.copies_count += node->is_chosen && node->is_complete && node->away_since_us == 0;
        if (node->is_chosen && node->away_since_us == 0) {
            status.missing_count += node->missing_here_count + node->missing_there_count;
        }
    }
    uint32_t copies = keeper->config.copies;
    status.level = status.copies_count >= copies                       ? KEEPER_WHOLE
                   : status.copies_count + status.away_count >= copies ? KEEPER_AWAY
                                                                       : KEEPER_LOW;
    if (keeper->keys_per_1000_s > 0) {
        status.estimate_s =
            (status.missing_count * 1000 + keeper->keys_per_1000_s - 1) / keeper->keys_per_1000_s;
    }
    *ret_status = status;
}

void keeper_member(const struct keeper *keeper, size_t index, size_t member_index,
                   struct keeper_member_status *ret_status) {
    ASSERT(index < keeper->pieces_count && member_index < keeper->pieces[index].count);
    const struct keeper_node *node = &keeper->pieces[index].nodes[member_index];
    *ret_status = (struct keeper_member_status){
        .peer = node->peer,
        .is_away = node->away_since_us > 0,
        .is_full = node->is_full,
        .is_false = node->is_false,
        .is_spare = !node->is_chosen && node->barred_until_us == 0 && node->away_since_us == 0,
        .is_complete = node->is_complete,
        .compared_at_us = node->compared_at_us,
        .missing_here_count = node->missing_here_count,
        .missing_there_count = node->missing_there_count,
        .silent_count = node->silent_count,
        .failed_count = node->failed_count,
    };
}
