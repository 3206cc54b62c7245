/*
 * report - what an experiment found: a small table, with a digest of the runs behind it.
 *
 * Columns first, then cells row by row. Written as aligned text, as CSV, and (sim/report/plot.h) as a plot.
 * The first failure sticks, as in base/buf.h: fill it without checking and look at report->err at the end.
 * Titles and column names are borrowed for the report's life; texts in cells are copied.
 */
#ifndef MNEMON_SIM_REPORT_REPORT_H
#define MNEMON_SIM_REPORT_REPORT_H

#include <math.h>

#include "base/buf.h"
#include "sim/world/digest.h"

enum { REPORT_COLUMNS_MAX = 24, REPORT_CELLS_MAX = 1 << 16, REPORT_TEXT_SIZE_MAX = 40 };

enum report_role {
    REPORT_TEXT,          /* names of the rows; all other columns hold numbers */
    REPORT_SHOWN,         /* in the table only */
    REPORT_X,             /* of the plot; at most one column */
    REPORT_X_LOGARITHMIC, /* the same; all values at least 1 */
    REPORT_Y,             /* a line of the plot, or its bars if rows have names instead of an x */
    REPORT_Y_EXPECTED,    /* a dashed line: what a paper says */
    REPORT_SERIES,        /* rows with equal numbers here are a line of their own; at most one column */
};

struct report_column {
    const char *name;
    unsigned decimals; /* of numbers */
    enum report_role role;
};

struct report_cell {
    bool is_missing;
    double number;
    char text[REPORT_TEXT_SIZE_MAX];
};

struct report {
    const char *title;
    const char *y_label; /* of the plot */
    struct report_column columns[REPORT_COLUMNS_MAX];
    uint32_t columns_count;
    struct report_cell *cells; /* row by row */
    uint32_t cells_count;
    uint32_t cells_max;
    struct digest digest;
    enum err err;
};

void report_init(struct report *report, const char *title, const char *y_label);
void report_done(struct report *report);

void report_column(struct report *report, const char *name, unsigned decimals, enum report_role role);

/* Several columns at once, each as {name, decimals, role}. */
#define REPORT_COLUMNS(report, ...)                                     \
    report_columns(report, (const struct report_column[]){__VA_ARGS__}, \
                   sizeof((const struct report_column[]){__VA_ARGS__}) / sizeof(struct report_column))
void report_columns(struct report *report, const struct report_column *columns, size_t count);

/* The next cell, left to right, top to bottom. */
void report_number(struct report *report, double number);  /* NAN: "-", there is no value to show */
void report_text(struct report *report, const char *text); /* cut to fit */

/* Several numbers at once. */
#define REPORT_NUMBERS(report, ...)                       \
    report_numbers(report, (const double[]){__VA_ARGS__}, \
                   sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
void report_numbers(struct report *report, const double *numbers, size_t count);

/* 0 of nothing. */
static inline double report_percent(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

static inline uint32_t report_rows_count(const struct report *report) {
    return report->columns_count == 0 ? 0 : report->cells_count / report->columns_count;
}

const struct report_cell *report_at(const struct report *report, uint32_t row, uint32_t column);

/* A header line, the rows, and "digest: …". */
enum err report_write_text(const struct report *report, struct buf *out) MUST_CHECK;

/* RFC 4180, with a header line; a missing number is empty. */
enum err report_write_csv(const struct report *report, struct buf *out) MUST_CHECK;

/* One object: title, digest, and the rows as objects with the columns' names; a missing value is null. */
enum err report_write_json(const struct report *report, struct buf *out) MUST_CHECK;

#endif
