/*
 * What is damaged on the disk of this node: it is looked for, slowly and for ever, and repaired with what
 * other holders have.
 *
 *      read on ──> damaged ──> ask each other holder ──────────> repaired
 *         ^                       │ nobody gave it
 *         │                       v
 *         │        another capture with this payload, if there is one: ask each of its holders
 *         │                       │ nobody gave it
 *         │                       v
 *         └── a while later    try again in ten minutes
 *
 * It is not read on while much waits for repair.
 *
 * Readers and challenges meet damage too. A capture of which the server said that nothing had changed comes
 * without its payload, so another one with the same payload is asked for as well.
 */
#include "protocol/copies/replicator_state.h"

enum { KEYS_MAX = 8 /* of one payload, until one brings it */ };
static const uint64_t AGAIN_US = UINT64_C(600) * 1000000; /* a holder may be away */
static const uint64_t AFTER_ERROR_US = UINT64_C(10) * 1000000;

/* ---- what is damaged ---- */

static void repair_enter(struct replicator *replicator, const struct ringkey *key, uint64_t due_us) {
    if (replicator->damaged_count < REPLICATOR_DAMAGED_MAX) { /* else it is found again */
        replicator->damaged[replicator->damaged_count++] = (struct replicator_damage){*key, due_us};
    }
}

/* A reader may have met it many times. */
void replicator_report_damage(struct replicator *replicator, const struct ringkey *key) {
    const struct errand_repair *repair = &replicator->repair;
    bool is_known = repair->errand.state != ERRAND_FREE && ringkey_compare(&repair->damaged, key) == 0;
    for (size_t i = 0; i < replicator->damaged_count && !is_known; i++) {
        is_known = ringkey_compare(&replicator->damaged[i].key, key) == 0;
    }
    if (!is_known) {
        repair_enter(replicator, key, 0);
    }
}

static bool repair_take_due(struct replicator *replicator, uint64_t now_us, struct ringkey *ret_key) {
    for (size_t i = 0; i < replicator->damaged_count; i++) {
        if (replicator->damaged[i].due_us <= now_us) {
            *ret_key = replicator->damaged[i].key;
            replicator->damaged[i] = replicator->damaged[--replicator->damaged_count];
            return true;
        }
    }
    return false;
}

/* ---- repair ---- */

static void repair_choose(struct replicator *replicator, struct errand_repair *errand,
                          const struct ringkey *key) {
    const struct replicator_world *world = &replicator->world;
    errand->key = *key;
    errand->holder = 0;
    if (!world->know(world->ring, replicator_place(key), &errand->arc)) {
        errand->arc.count = 0;
    }
}

/* Which of the holders of the key is asked next? */
static bool repair_has_holder(struct errand_repair *errand) {
    if ((int)errand->holder == errand->arc.self_rank) {
        errand->holder++;
    }
    if (errand->holder >= errand->arc.count) {
        return false;
    }
    errand->errand.peer = errand->arc.peers[errand->holder];
    return true;
}

static bool repair_has_other_key(struct replicator *replicator, struct errand_repair *errand) {
    const struct replicator_world *world = &replicator->world;
    while (errand->keys_count < KEYS_MAX) {
        struct ringkey key;
        const struct ringkey *behind = errand->keys_count > 0 ? &errand->behind : NULL;
        if (world->find_same(world->disk, &errand->damaged, behind, &key) != ERR_OK) {
            return false;
        }
        errand->behind = key;
        errand->keys_count++;
        if (ringkey_compare(&key, &errand->damaged) != 0) {
            repair_choose(replicator, errand, &key);
            if (repair_has_holder(errand)) {
                return true;
            }
        }
    }
    return false;
}

static void repair_end(struct replicator *replicator, struct errand_repair *errand) {
    replicator->counts.repaired_count += errand->is_repaired;
    errand_end(&errand->errand);
}

static void repair_go_on(struct replicator *replicator, struct errand_repair *errand, uint64_t now_us) {
    if (repair_has_holder(errand) || repair_has_other_key(replicator, errand)) {
        return;
    }
    if (!errand->is_repaired) {
        repair_enter(replicator, &errand->damaged, now_us + AGAIN_US);
    }
    repair_end(replicator, errand);
}

void replicator_begin_repair(struct replicator *replicator, uint64_t now_us) {
    struct errand_repair *errand = &replicator->repair;
    struct ringkey key;
    while (errand->errand.state == ERRAND_FREE && repair_take_due(replicator, now_us, &key)) {
        *errand = (struct errand_repair){.damaged = key};
        errand_begin(&errand->errand, ERRAND_REPAIR);
        repair_choose(replicator, errand, &key);
        repair_go_on(replicator, errand, now_us);
    }
}

void replicator_repair_action(const struct errand_repair *errand, struct replicator_action *action) {
    action->kind = REPLICATOR_REPAIR;
    action->key = errand->key;
}

void replicator_repair_take(struct replicator *replicator, struct errand_repair *errand,
                            const struct replicator_event *event) {
    errand->is_repaired = errand->is_repaired || event->is_good;
    if (event->err == ERR_OK && !event->is_cut) {
        repair_end(replicator, errand); /* if it was not damaged, it has been repaired since */
        return;
    }
    /* Without its payload from one, without its payload from all. */
    errand->holder = event->err == ERR_OK ? errand->arc.count : errand->holder + 1;
    repair_go_on(replicator, errand, event->now_us);
}

/* ---- reading everything again ---- */

/* Not so much at a time that what is found would be forgotten. */
static bool repair_may_scrub(const struct replicator *replicator) {
    return replicator->scrub.errand.state == ERRAND_FREE &&
           replicator->damaged_count < REPLICATOR_DAMAGED_MAX / 2;
}

void replicator_begin_scrub(struct replicator *replicator, uint64_t now_us) {
    if (repair_may_scrub(replicator) && replicator->scrub.due_us <= now_us) {
        errand_begin(&replicator->scrub.errand, ERRAND_SCRUB);
    }
}

void replicator_scrub_take(struct replicator *replicator, const struct replicator_event *event) {
    uint64_t wait_us = event->wait_us;
    if (event->err != ERR_OK && wait_us < AFTER_ERROR_US) {
        wait_us = AFTER_ERROR_US;
    }
    errand_end(&replicator->scrub.errand);
    replicator->scrub.due_us = event->now_us + wait_us < wait_us ? UINT64_MAX : event->now_us + wait_us;
}

uint64_t replicator_repair_at(const struct replicator *replicator) {
    uint64_t at_us = repair_may_scrub(replicator) ? replicator->scrub.due_us : UINT64_MAX;
    for (size_t i = 0; i < replicator->damaged_count && replicator->repair.errand.state == ERRAND_FREE; i++) {
        uint64_t due_us = replicator->damaged[i].due_us;
        at_us = due_us < at_us ? due_us : at_us;
    }
    return at_us;
}
