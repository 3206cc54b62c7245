/*
 * Damage on this node's disks. It is found by readers, by reading everything again slowly, and by "mnemon
 * store verify"; a damaged document is then fetched from another holder and stored again.
 */
#include <stdio.h>

#include "node/copies/copies_state.h"

enum {
    PATH_SIZE_MAX = 4096,
    LIST_S = 10,      /* between two looks for a list of damaged captures */
    CAPTURES_MAX = 8, /* of one document, until one brings its payload */
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

static void take_list(struct copies *copies) {
    char path[PATH_SIZE_MAX];
    struct err_detail detail = {0};
    snprintf(path, sizeof path, "%s/ring/damaged", copies->config.directory);
    enum err err = damage_take(path, on_damage, copies, &detail);
    if (err != ERR_OK) {
        copies_note(copies, "the list of damaged captures: %s", err_detail_text(&detail, err));
    }
}

void copies_scrub(struct copies *copies) {
    struct err_detail detail = {0};
    uint64_t now_us = copies_now_us(copies);
    if (now_us >= copies->list_us) {
        copies->list_us = now_us + LIST_S * SECOND_US;
        take_list(copies);
    }
    if (now_us < copies->scrub_us) {
        return;
    }
    uint64_t wait_us = SECOND_US;
    enum err err = scrub_run(copies->scrub, &wait_us, &detail);
    if (err != ERR_OK) {
        copies_note(copies, "reading the archive again: %s", err_detail_text(&detail, err));
        wait_us = wait_us > SECOND_US * LIST_S ? wait_us : SECOND_US * LIST_S;
    }
    copies->scrub_us = now_us + wait_us;
}

/* ---- repair ---- */

static size_t other_holders(struct copies *copies, const struct ringkey *key, struct peer out[HOLDERS_MAX]) {
    const struct holders_source *ring = &copies->config.ring;
    struct holders_arc arc;
    size_t count = 0;
    if (!ring->know(ring->context, ring_id_read(key->bytes), &arc)) {
        return 0;
    }
    for (size_t i = 0; i < arc.count; i++) {
        if ((int)i != arc.self_rank) {
            out[count++] = arc.peers[i];
        }
    }
    return count;
}

/* *ret_is_whole: the payload came too, which it does not with what the server called unchanged. */
static enum err repair_with(struct copies_hand *hand, const struct ringkey *key, bool *ret_is_whole,
                            bool *is_repaired, struct err_detail *detail) {
    struct copies *copies = hand->copies;
    struct peer peers[HOLDERS_MAX];
    struct captured captured;
    struct capture capture;
    bool is_repaired_now = false;
    size_t count = other_holders(copies, key, peers);
    if (count == 0) {
        return err_set(detail, ERR_NOT_FOUND, "no other node has it");
    }
    enum err err = copies_find_capture(copies, &hand->reader, key, &capture, detail);
    err = err == ERR_OK ? captures_fetch(hand->fetches, peers, count, key, true, &captured, detail) : err;
    if (err != ERR_OK) {
        return err;
    }
    struct key block = {.volume = capture.volume, .number = capture.block_number};
    memcpy(block.digest, capture.digest, sizeof block.digest);
    *ret_is_whole = !captured.document.is_body_left_out;
    err = instance_repair(hand->reader.session, &block, &captured.document, &is_repaired_now, detail);
    *is_repaired = *is_repaired || is_repaired_now;
    return err;
}

/* True: it was damaged, and is no longer. */
bool copies_repair(struct copies_hand *hand, const struct ringkey *damaged) {
    struct copies *copies = hand->copies;
    struct ringkey key = *damaged;
    struct err_detail detail = {0};
    bool is_whole = false;
    bool is_repaired = false;
    enum err err = repair_with(hand, &key, &is_whole, &is_repaired, &detail);
    struct ringkey behind;
    const struct ringkey *position = NULL;
    for (unsigned i = 0; i < CAPTURES_MAX && err == ERR_OK && !is_whole; i++) {
        pthread_mutex_lock(&copies->keys_lock);
        err = keyset_find_digest(copies->keyset, ringkey_digest(damaged), position, &key);
        pthread_mutex_unlock(&copies->keys_lock);
        behind = key;
        position = &behind;
        err = err == ERR_OK ? repair_with(hand, &key, &is_whole, &is_repaired, &detail) : err;
    }
    if (is_repaired) {
        copies_note(copies, "a damaged document was stored again from another node's copy");
    } else if (err != ERR_OK) { /* else it was repaired since */
        copies_note(copies, "a damaged document cannot be repaired now: %s", err_detail_text(&detail, err));
    }
    return is_repaired;
}
