/*
 * metrics - the numbers of a node in the text format of Prometheus, version 0.0.4: those of /api/v1/status,
 * of its ring, and what its other parts append with the functions below. docs/api.md names them all.
 *
 * Each name begins with mnemon_, which is added here; units are seconds and bytes. A name that ends in _total
 * is a counter and any other a gauge.
 */
#ifndef MNEMON_REPLAY_ADMIN_METRICS_H
#define MNEMON_REPLAY_ADMIN_METRICS_H

#include "replay/admin/node_status.h"
#include "replay/admin/ring_view.h"

void metrics_put(const struct node_status *status, struct buf *out);

/* metrics_ring.c: of a node that is in a ring, or on its way into one; nothing of any other. */
void metrics_put_ring(const struct ring_view *ring, struct buf *out);

/* ---- for other parts of the node ---- */

struct metrics_number {
    const char *name;
    const char *help; /* a sentence */
    uint64_t value;
};

void metrics_put_numbers(struct buf *out, const struct metrics_number *numbers, size_t count);

#define METRICS_PUT(out, ...)                                                  \
    metrics_put_numbers((out), (const struct metrics_number[]){__VA_ARGS__},   \
                        sizeof((const struct metrics_number[]){__VA_ARGS__}) / \
                            sizeof(struct metrics_number))

/* The same numbers of several things of a kind, each a row with a label that tells it from the others. */
enum { METRICS_COLUMNS_MAX = 12 };

struct metrics_column {
    const char *name;
    const char *help;
};

struct metrics_row {
    const char *label; /* its value: any text; two rows have different ones */
    uint64_t values[METRICS_COLUMNS_MAX];
};

/* Nothing without rows. label: its name. */
void metrics_put_rows(struct buf *out, const char *label, const struct metrics_column *columns,
                      size_t columns_count, const struct metrics_row *rows, size_t rows_count);

#endif
