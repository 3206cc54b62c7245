#include "protocol/copies/comparison.h"

#include "protocol/copies/copies_code.h"

static void comparison_refuse(struct comparison *comparison, const struct ringkey *key) {
    struct reconcile_position position = reconcile_arc_position(&comparison->reconcile.arc, key);
    if (!comparison->is_refused || reconcile_position_compare(&position, &comparison->first) < 0) {
        comparison->first = position;
    }
    comparison->is_refused = true;
    comparison->is_cut = true;
}

static void comparison_on_need(void *context, const struct ringkey *key) {
    struct comparison *comparison = context;
    enum comparison_want want = (comparison->aim & COMPARISON_FETCH) != 0
                                    ? comparison->want(comparison->context, key, &comparison->peer)
                                    : COMPARISON_UNWANTED;
    if (want == COMPARISON_UNWANTED) {
        return;
    }
    comparison->need_count++;
    comparison->coming_count += want == COMPARISON_COMING;
    if (want == COMPARISON_NO_ROOM) {
        comparison_refuse(comparison, key);
    }
    comparison->is_cut = comparison->is_cut || comparison->need_count >= comparison->found_max;
}

static void comparison_on_have(void *context, const struct ringkey *key) {
    struct comparison *comparison = context;
    if ((comparison->aim & COMPARISON_GIVE) == 0) {
        return;
    }
    comparison->have_count++;
    if (comparison->haves_count < comparison->found_max) {
        comparison->haves[comparison->haves_count++] = *key;
    } else {
        comparison_refuse(comparison, key);
    }
    comparison->is_cut = comparison->is_cut || comparison->have_count >= comparison->found_max;
}

enum err comparison_begin(struct comparison *comparison, const struct ringkey_set *set, struct ring_id from,
                          struct ring_id to, const struct ringkey *rest, const struct peer *peer,
                          enum comparison_aim aim) {
    struct reconcile_report report = {comparison_on_need, comparison_on_have, comparison};
    struct reconcile_arc arc;
    *comparison = (struct comparison){
        .haves = comparison->haves,
        .found_max = comparison->found_max,
        .memory = comparison->memory,
        .message_size = comparison->message_size,
        .want = comparison->want,
        .context = comparison->context,
        .from = from,
        .to = to,
        .peer = *peer,
        .aim = aim,
    };
    ring_id_write(from, arc.from);
    ring_id_write(to, arc.to);
    reconcile_init(&comparison->reconcile, &arc, set, &report);
    if (rest != NULL) {
        reconcile_skip_to(&comparison->reconcile, rest);
    }
    return reconcile_ask(&comparison->reconcile, comparison->memory, comparison->message_size,
                         &comparison->message, NULL);
}

enum err comparison_take(struct comparison *comparison, struct bytes answer) {
    struct err_detail detail = {0};
    return reconcile_take(&comparison->reconcile, answer, comparison->memory, comparison->message_size,
                          &comparison->message, &detail);
}

size_t comparison_offer(const struct comparison *comparison, const struct ringkey **ret_keys) {
    size_t left = comparison->haves_count - comparison->offered_count;
    *ret_keys = comparison->haves + comparison->offered_count;
    return left < COPIES_KEYS_MAX ? left : COPIES_KEYS_MAX;
}

/* Until the other node has no room for more. */
void comparison_take_wishes(struct comparison *comparison, const uint8_t *wishes, size_t count) {
    const struct ringkey *keys = comparison->haves + comparison->offered_count;
    for (size_t i = 0; i < count; i++) {
        if (wishes[i] == COPIES_NOT_NOW) {
            comparison_refuse(comparison, &keys[i]);
            comparison->offered_count = comparison->haves_count;
            return;
        }
        comparison->coming_count += wishes[i] != COPIES_HAS;
    }
    comparison->offered_count += (uint32_t)count;
}

/* Where the next comparison shall begin: behind what is settled, and nothing that was refused. */
static struct ringkey comparison_rest(const struct comparison *comparison, bool is_whole) {
    const struct reconcile_position *settled = &comparison->reconcile.settled;
    bool is_refused =
        comparison->is_refused && (is_whole || reconcile_position_compare(&comparison->first, settled) < 0);
    return reconcile_position_key(is_refused ? &comparison->first : settled);
}

struct copy_plan_outcome comparison_outcome(const struct comparison *comparison, enum err err) {
    bool is_whole = comparison->message.size == 0;
    return (struct copy_plan_outcome){
        .err = err,
        .missing_here_count = comparison->need_count,
        .missing_there_count = comparison->have_count,
        .coming_count = comparison->coming_count,
        .is_capped = err == ERR_OK && (!is_whole || comparison->is_refused),
        .rest = comparison_rest(comparison, is_whole),
    };
}
