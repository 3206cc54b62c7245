/* What is damaged on this disk is found: by reading everything again, slowly, and by "mnemon store verify".
 */
#include <stdio.h>

#include "node/copies/copies_state.h"

enum { PATH_SIZE_MAX = 4096, LIST_S = 10 /* between two looks for a list */ };
static const uint64_t SECOND_US = 1000000;

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
