/* What is damaged on this disk is found: by reading everything again, slowly, and by "mnemon store verify".
 */
#include <stdio.h>

#include "node/copies/keeping_state.h"

enum { PATH_SIZE_MAX = 4096, LIST_S = 10 /* between two looks for a list */ };
static const uint64_t SECOND_US = 1000000;

/* A capture, or a document of which any capture will do. */
static void on_damage(void *context, const struct capture *capture) {
    struct keeping *keeping = context;
    struct ringkey key;
    enum err err = ERR_OK;
    pthread_mutex_lock(&keeping->keys_lock);
    if (capture->url.size > 0) {
        key = keyset_key(keeping->keyset, capture);
    } else {
        err = keyset_find_digest(keeping->keyset, capture->signature, NULL, &key);
    }
    pthread_mutex_unlock(&keeping->keys_lock);
    if (err == ERR_OK) {
        keeping_report_damage(keeping, &key);
    } else {
        keeping_note(keeping, "a damaged document belongs to no capture of the ring: it stays damaged");
    }
}

enum err keeping_scrub_init(struct keeping *keeping, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/scrub", keeping->config.directory);
    struct scrub_config config = {
        .instance = keeping->config.instance,
        .path = path,
        .period_us = keeping->config.scrub_period_us,
        .visit = on_damage,
        .context = keeping,
        .clock = keeping->config.clock,
    };
    return scrub_open(&config, &keeping->scrub, detail);
}

static void take_list(struct keeping *keeping) {
    char path[PATH_SIZE_MAX];
    struct err_detail detail = {0};
    snprintf(path, sizeof path, "%s/ring/damaged", keeping->config.directory);
    enum err err = damage_take(path, on_damage, keeping, &detail);
    if (err != ERR_OK) {
        keeping_note(keeping, "the list of damaged captures: %s", err_detail_text(&detail, err));
    }
}

void keeping_scrub(struct keeping *keeping) {
    struct err_detail detail = {0};
    uint64_t now_us = keeping_now_us(keeping);
    if (now_us >= keeping->list_us) {
        keeping->list_us = now_us + LIST_S * SECOND_US;
        take_list(keeping);
    }
    if (now_us < keeping->scrub_us) {
        return;
    }
    uint64_t wait_us = SECOND_US;
    enum err err = scrub_run(keeping->scrub, &wait_us, &detail);
    if (err != ERR_OK) {
        keeping_note(keeping, "reading the archive again: %s", err_detail_text(&detail, err));
        wait_us = wait_us > SECOND_US * LIST_S ? wait_us : SECOND_US * LIST_S;
    }
    keeping->scrub_us = now_us + wait_us;
}
