/*
 * Which members this node counts (protocol/copies/probation.h), in DIR/ring/probation: written when another
 * one is met or counts, at most every minute, else every ten minutes, and when the node stops. Without it, or
 * if it is damaged, everybody who is met in the first minutes counts, as for a node that is new itself.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/whole_file.h"
#include "node/copies/copies_state.h"

enum { PROBATION_PATH_SIZE_MAX = 4096 };
static const uint64_t SECOND_US = 1000000;
static const uint64_t CHANGED_S = 60;
static const uint64_t RARE_S = 600;

struct probation_config copies_probation_config(const struct copies *copies) {
    int64_t wall_us = clock_wall_us(copies->config.clock);
    uint64_t now_s = wall_us > 0 ? (uint64_t)wall_us / SECOND_US : 0;
    uint64_t created_s = copies->config.ring_created_s;
    return (struct probation_config){
        .period_us = copies->config.probation_us,
        .ring_created_s = created_s,
        .ring_age_us = now_s > created_s ? (now_s - created_s) * SECOND_US : 0,
    };
}

static void probation_path(const struct copies *copies, char out[PROBATION_PATH_SIZE_MAX]) {
    snprintf(out, PROBATION_PATH_SIZE_MAX, "%s/ring/probation", copies->config.directory);
}

void copies_probation_read(struct copies *copies) {
    char path[PROBATION_PATH_SIZE_MAX];
    struct buf file;
    struct err_detail detail = {0};
    copies->probation_us = copies_now_us(copies);
    if (copies->config.probation_us == 0) {
        return;
    }
    probation_path(copies, path);
    buf_init(&file, PROBATION_SIZE_MAX);
    enum err err = whole_file_read(path, &file, &detail);
    pthread_mutex_lock(&copies->lock);
    struct probation *probation = replicator_probation(copies->replicator);
    err = err == ERR_OK ? probation_read(probation, buf_bytes(&file), &detail) : err;
    copies->probation_generation = probation->generation;
    pthread_mutex_unlock(&copies->lock);
    buf_done(&file);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        copies_note(copies, "ring/probation is not used, whoever is in the ring now counts: %s",
                    err_detail_text(&detail, err));
    }
}

/* False: it need not be written now, or there is no memory. */
static bool probation_take(struct copies *copies, uint64_t now_us, bool is_last, uint8_t **ret_memory,
                           struct bytes *ret_bytes) {
    uint64_t passed_us = now_us - copies->probation_us;
    bool is_due = is_last || passed_us >= RARE_S * SECOND_US;
    pthread_mutex_lock(&copies->lock);
    const struct probation *probation = replicator_probation(copies->replicator);
    is_due = is_due ||
             (passed_us >= CHANGED_S * SECOND_US && probation->generation != copies->probation_generation);
    *ret_memory = is_due ? malloc(PROBATION_SIZE_MAX) : NULL;
    if (*ret_memory != NULL) {
        *ret_bytes = probation_write(probation, now_us, *ret_memory);
        copies->probation_generation = probation->generation;
        copies->probation_us = now_us;
    }
    pthread_mutex_unlock(&copies->lock);
    return *ret_memory != NULL;
}

void copies_probation_write(struct copies *copies, bool is_last) {
    char path[PROBATION_PATH_SIZE_MAX];
    struct err_detail detail = {0};
    struct bytes bytes;
    uint8_t *memory;
    bool was_read = copies->probation_us > 0; /* else this would put nothing in its place */
    if (copies->config.probation_us == 0 || !was_read ||
        !probation_take(copies, copies_now_us(copies), is_last, &memory, &bytes)) {
        return;
    }
    probation_path(copies, path);
    enum err err = whole_file_replace(path, bytes, 0600, &detail);
    if (err != ERR_OK) {
        copies_note(copies, "%s", err_detail_text(&detail, err));
    }
    free(memory);
}
