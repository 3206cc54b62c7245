/*
 * Damage on this node's disks: what the machine (protocol/copies/replicator_repair.c) wants done. It is found
 * by readers, by reading everything again slowly, and by "mnemon store verify"; a damaged document is then
 * fetched from another holder and stored again.
 */
#include <stdio.h>

#include "node/copies/copies_state.h"

enum {
    PATH_SIZE_MAX = 4096,
    LIST_S = 10, /* between two looks for a list of damaged captures */
};
static const uint64_t SECOND_US = 1000000;

/* ---- finding damage ---- */

/* A capture, or a document of which any capture will do. */
static void on_damage(void *context, const struct capture *capture) {
    struct copies *copies = context;
    struct ringkey key;
    enum err err = ERR_OK;
    pthread_mutex_lock(&copies->keys_lock);
    if (capture->url.size > 0) {
        key = keyset_key(copies->keyset, capture);
    } else {
        err = keyset_find_digest(copies->keyset, capture->digest, NULL, &key);
    }
    pthread_mutex_unlock(&copies->keys_lock);
    if (err == ERR_OK) {
        copies_report_damage(copies, &key);
    } else {
        copies_note(copies, "a damaged document belongs to no capture of the ring: it stays damaged");
    }
}

enum err copies_scrub_init(struct copies *copies, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/scrub", copies->config.directory);
    struct scrub_config config = {
        .instance = copies->config.instance,
        .path = path,
        .period_us = copies->config.scrub_period_us,
        .visit = on_damage,
        .context = copies,
        .clock = copies->config.clock,
    };
    return scrub_open(&config, &copies->scrub, detail);
}

void copies_take_damaged(struct copies *copies) {
    char path[PATH_SIZE_MAX];
    struct err_detail detail = {0};
    uint64_t now_us = copies_now_us(copies);
    if (now_us < copies->list_us) {
        return;
    }
    copies->list_us = now_us + LIST_S * SECOND_US;
    snprintf(path, sizeof path, "%s/ring/damaged", copies->config.directory);
    enum err err = damage_take(path, on_damage, copies, &detail);
    if (err != ERR_OK) {
        copies_note(copies, "the list of damaged captures: %s", err_detail_text(&detail, err));
    }
}

/* One at a time: the machine waits for what came of it. */
enum err copies_scrub(struct copies *copies, uint64_t *ret_wait_us) {
    struct err_detail detail = {0};
    *ret_wait_us = SECOND_US;
    enum err err = scrub_run(copies->scrub, ret_wait_us, &detail);
    if (err != ERR_OK) {
        copies_note(copies, "reading the archive again: %s", err_detail_text(&detail, err));
    }
    return err;
}

/* ---- repair ---- */

static enum err repair_with(struct copies_hand *hand, const struct ringkey *key, const struct peer *peer,
                            bool *ret_is_repaired, bool *ret_is_cut, struct err_detail *detail) {
    struct copies *copies = hand->copies;
    struct captured captured;
    struct capture capture;
    enum err err = copies_find_capture(copies, &hand->reader, key, &capture, detail);
    err = err == ERR_OK ? captures_fetch(hand->fetches, peer, 1, key, true, &captured, detail) : err;
    if (err != ERR_OK) {
        return err;
    }
    struct key block = {.volume = capture.volume, .number = capture.block_number};
    memcpy(block.digest, capture.digest, sizeof block.digest);
    *ret_is_cut = captured.document.is_body_left_out; /* of what the server called unchanged */
    return instance_repair(hand->reader.session, &block, &captured.document, ret_is_repaired, detail);
}

enum err copies_repair(struct copies_hand *hand, const struct ringkey *key, const struct peer *peer,
                       bool *ret_is_repaired, bool *ret_is_cut) {
    struct err_detail detail = {0};
    enum err err = repair_with(hand, key, peer, ret_is_repaired, ret_is_cut, &detail);
    if (*ret_is_repaired) {
        copies_note(hand->copies, "a damaged document was stored again from another node's copy");
    } else if (err != ERR_OK) { /* else it was repaired since */
        copies_note(hand->copies, "a damaged document cannot be repaired now: %s",
                    err_detail_text(&detail, err));
    }
    return err;
}
