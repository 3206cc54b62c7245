#include "sim/experiments/copies_lines.h"

#include <stdlib.h>
#include <string.h>

enum err copies_lines_init(struct copies_lines *lines, uint32_t nodes_count) {
    *lines = (struct copies_lines){.nodes_count = nodes_count};
    lines->send_us = calloc(nodes_count, sizeof *lines->send_us);
    lines->receive_us = calloc(nodes_count, sizeof *lines->receive_us);
    return lines->send_us != NULL && lines->receive_us != NULL ? ERR_OK : ERR_MEMORY;
}

void copies_lines_done(struct copies_lines *lines) {
    free(lines->transfers);
    free(lines->send_us);
    free(lines->receive_us);
}

static uint64_t lines_later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void lines_take(struct copies_lines *lines, const struct copies_transfer *transfer) {
    uint64_t *send_us = &lines->send_us[transfer->giver];
    uint64_t *receive_us = &lines->receive_us[transfer->taker];
    *send_us = lines_later(*send_us, transfer->end_us);
    *receive_us = lines_later(*receive_us, transfer->end_us);
}

static void lines_place(struct copies_lines *lines, struct copies_transfer *transfer, uint64_t length_us,
                        uint64_t now_us) {
    uint64_t free_us = lines_later(lines->send_us[transfer->giver], lines->receive_us[transfer->taker]);
    transfer->begin_us = lines_later(free_us, now_us);
    transfer->end_us = transfer->begin_us + length_us;
    lines_take(lines, transfer);
}

enum err copies_lines_add(struct copies_lines *lines, const struct copies_transfer *transfer,
                          uint64_t length_us, uint64_t now_us, uint64_t *ret_end_us) {
    struct copies_transfer added = *transfer;
    if (lines->count == lines->max) {
        size_t max = lines->max > 0 ? 2 * lines->max : 64;
        struct copies_transfer *transfers = realloc(lines->transfers, max * sizeof *transfers);
        if (transfers == NULL) {
            return ERR_MEMORY;
        }
        lines->transfers = transfers;
        lines->max = max;
    }
    lines_place(lines, &added, length_us, now_us);
    size_t at = lines->count++;
    for (; at > 0 && lines->transfers[at - 1].begin_us > added.begin_us; at--) {
        lines->transfers[at] = lines->transfers[at - 1];
    }
    lines->transfers[at] = added;
    *ret_end_us = added.end_us;
    return ERR_OK;
}

static void lines_drop(struct copies_lines *lines, size_t index) {
    lines->count--;
    memmove(&lines->transfers[index], &lines->transfers[index + 1],
            (lines->count - index) * sizeof lines->transfers[0]);
}

void copies_lines_remove(struct copies_lines *lines, uint32_t tag) {
    for (size_t i = 0; i < lines->count; i++) {
        if (lines->transfers[i].tag == tag) {
            lines_drop(lines, i);
            return;
        }
    }
}

/* Those under way stay as they are; the others follow in their order. */
static void lines_move_up(struct copies_lines *lines, uint64_t now_us,
                          const struct copies_lines_calls *calls) {
    memset(lines->send_us, 0, lines->nodes_count * sizeof *lines->send_us);
    memset(lines->receive_us, 0, lines->nodes_count * sizeof *lines->receive_us);
    for (size_t i = 0; i < lines->count; i++) {
        struct copies_transfer *transfer = &lines->transfers[i];
        uint64_t end_us = transfer->end_us;
        if (transfer->begin_us <= now_us) {
            lines_take(lines, transfer);
        } else {
            lines_place(lines, transfer, end_us - transfer->begin_us, now_us);
            if (transfer->end_us != end_us) {
                calls->moved(calls->context, transfer);
            }
        }
    }
    for (size_t i = 1; i < lines->count; i++) { /* by begin_us again */
        struct copies_transfer moved = lines->transfers[i];
        size_t at = i;
        for (; at > 0 && lines->transfers[at - 1].begin_us > moved.begin_us; at--) {
            lines->transfers[at] = lines->transfers[at - 1];
        }
        lines->transfers[at] = moved;
    }
}

void copies_lines_cut(struct copies_lines *lines, uint32_t node, uint64_t now_us,
                      const struct copies_lines_calls *calls) {
    for (size_t i = 0; i < lines->count;) {
        struct copies_transfer transfer = lines->transfers[i];
        if (transfer.giver != node && transfer.taker != node) {
            i++;
            continue;
        }
        lines_drop(lines, i);
        calls->cut(calls->context, &transfer, now_us > transfer.begin_us ? now_us - transfer.begin_us : 0);
    }
    lines_move_up(lines, now_us, calls);
}
