#include "sim/report/plot.h"

#include <stdio.h>

#include "sim/report/plot_bars.h"
#include "sim/report/plot_draw.h"

enum { WIDTH = 760, HEIGHT = 440, LEFT = 76, RIGHT = 200, TOP = 48, BOTTOM = 60 };

static bool is_line(const struct report_column *column) {
    return column->role == REPORT_Y || column->role == REPORT_Y_EXPECTED;
}

static bool is_x(const struct report_column *column) {
    return column->role == REPORT_X || column->role == REPORT_X_LOGARITHMIC;
}

static bool is_series(const struct report_column *column) {
    return column->role == REPORT_SERIES;
}

static bool is_name(const struct report_column *column) {
    return column->is_text;
}

/* The least and the greatest value of the columns; begun with those given. */
static void find_range(const struct report *report, bool is_meant(const struct report_column *column),
                       double *least, double *greatest) {
    for (uint32_t column = 0; column < report->columns_count; column++) {
        if (!is_meant(&report->columns[column])) {
            continue;
        }
        for (uint32_t row = 0; row < report_rows_count(report); row++) {
            const struct report_cell *cell = report_at(report, row, column);
            if (!cell->is_missing) {
                *least = cell->number < *least ? cell->number : *least;
                *greatest = cell->number > *greatest ? cell->number : *greatest;
            }
        }
    }
}

static struct plot_axis make_x_axis(const struct report *report, uint32_t x_column) {
    struct plot_axis axis = {.pixel_first = LEFT, .pixel_last = WIDTH - RIGHT};
    double greatest = 0;
    if (report->columns[x_column].role == REPORT_X_LOGARITHMIC) {
        double least = 1e300;
        find_range(report, is_x, &least, &greatest);
        plot_axis_scale_logarithmic(&axis, least, greatest);
    } else {
        double least = 0;
        find_range(report, is_x, &least, &greatest);
        plot_axis_scale(&axis, least, greatest);
    }
    return axis;
}

static struct plot_axis make_y_axis(const struct report *report) {
    struct plot_axis axis = {.pixel_first = HEIGHT - BOTTOM, .pixel_last = TOP};
    double least = 0;
    double greatest = 0;
    find_range(report, is_line, &least, &greatest);
    plot_axis_scale(&axis, least, greatest);
    return axis;
}

static void put_grid(struct buf *out, const struct plot_axis *x, const struct plot_axis *y) {
    char label[32];
    for (double value = y->min; value <= y->max + y->step / 2; value += y->step) {
        double pixel = plot_axis_pixel(y, value);
        plot_line(out, x->pixel_first, pixel, x->pixel_last, pixel, "#dddddd");
        snprintf(label, sizeof label, "%.*f", (int)y->decimals, value);
        plot_text(out, x->pixel_first - 8, pixel + 4, "text-anchor=\"end\"", label);
    }
    for (double value = x->min; plot_axis_pixel(x, value) < x->pixel_last + 1;
         value = plot_axis_next(x, value)) {
        double pixel = plot_axis_pixel(x, value);
        plot_line(out, pixel, y->pixel_first, pixel, y->pixel_first + 5, "#333333");
        snprintf(label, sizeof label, "%.*f", (int)x->decimals, value);
        plot_text(out, pixel, y->pixel_first + 20, "text-anchor=\"middle\"", label);
    }
    plot_line(out, x->pixel_first, y->pixel_first, x->pixel_last, y->pixel_first, "#333333");
    plot_line(out, x->pixel_first, y->pixel_first, x->pixel_first, y->pixel_last, "#333333");
}

/* One line of the plot. */
struct series {
    uint32_t x_column;
    uint32_t y_column;
    uint32_t series_column; /* columns_count: all rows are its points */
    double number;          /* otherwise those that have this one there */
    const char *colour;
};

static bool has_point(const struct report *report, const struct series *series, uint32_t row) {
    return !report_at(report, row, series->x_column)->is_missing &&
           !report_at(report, row, series->y_column)->is_missing;
}

static bool has_row(const struct report *report, const struct series *series, uint32_t row) {
    return series->series_column == report->columns_count ||
           report_at(report, row, series->series_column)->number == series->number;
}

static void put_series(struct buf *out, const struct report *report, const struct series *series,
                       const struct plot_axis *x, const struct plot_axis *y) {
    bool is_joined = false; /* the point before this one is there */
    bool is_dashed = report->columns[series->y_column].role == REPORT_Y_EXPECTED;
    buf_put_format(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s d=\"", series->colour,
                   is_dashed ? " stroke-dasharray=\"5 4\"" : "");
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        if (!has_row(report, series, row)) {
            continue;
        }
        bool is_there = has_point(report, series, row);
        if (is_there) {
            buf_put_format(out, "%s%.1f %.1f", is_joined ? " L" : " M",
                           plot_axis_pixel(x, report_at(report, row, series->x_column)->number),
                           plot_axis_pixel(y, report_at(report, row, series->y_column)->number));
        }
        is_joined = is_there;
    }
    buf_put_string(out, "\"/>\n");
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        if (has_row(report, series, row) && has_point(report, series, row)) {
            buf_put_format(out,
                           "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\" stroke=\"%s\" "
                           "stroke-width=\"%s\"/>\n",
                           plot_axis_pixel(x, report_at(report, row, series->x_column)->number),
                           plot_axis_pixel(y, report_at(report, row, series->y_column)->number),
                           is_dashed ? "4" : "3", is_dashed ? "#ffffff" : series->colour, series->colour,
                           is_dashed ? "2" : "0");
        }
    }
}

/* "paper", or with a series column "paper, leave (%) 10". */
static void put_legend(struct buf *out, const struct report *report, const struct series *series,
                       double legend_y) {
    char text[96];
    const char *name = report->columns[series->y_column].name;
    if (series->series_column == report->columns_count) {
        snprintf(text, sizeof text, "%s", name);
    } else {
        const struct report_column *column = &report->columns[series->series_column];
        snprintf(text, sizeof text, "%s, %s %.*f", name, column->name, (int)column->decimals, series->number);
    }
    buf_put_format(out, "<rect x=\"%d\" y=\"%.1f\" width=\"18\" height=\"3\" fill=\"%s\"/>\n",
                   WIDTH - RIGHT + 16, legend_y - 6, series->colour);
    plot_text(out, WIDTH - RIGHT + 42, legend_y, "", text);
}

/* The first row that belongs to no line of an earlier row. */
static bool begins_series(const struct report *report, const struct series *series, uint32_t row) {
    for (uint32_t before = 0; before < row; before++) {
        if (has_row(report, series, before)) {
            return false;
        }
    }
    return true;
}

/* All lines of one column; returns how many lines there are now. */
static uint32_t put_column(struct buf *out, const struct report *report, struct series series,
                           const struct plot_axis *x, const struct plot_axis *y, uint32_t series_count) {
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        series.number = series.series_column == report->columns_count
                            ? 0
                            : report_at(report, row, series.series_column)->number;
        if (begins_series(report, &series, row)) {
            series.colour = plot_colour(series_count);
            put_series(out, report, &series, x, y);
            put_legend(out, report, &series, TOP + 12 + 20.0 * series_count++);
        }
    }
    return series_count;
}

/* The first column that is meant; columns_count where there is none. */
static uint32_t find_column(const struct report *report, bool is_meant(const struct report_column *column)) {
    uint32_t column = 0;
    while (column < report->columns_count && !is_meant(&report->columns[column])) {
        column++;
    }
    return column;
}

static void put_lines(const struct report *report, uint32_t x_column, struct buf *out) {
    struct plot_axis x = make_x_axis(report, x_column);
    struct plot_axis y = make_y_axis(report);
    plot_begin(out, WIDTH, HEIGHT, LEFT, report->title);
    put_grid(out, &x, &y);
    plot_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16, "text-anchor=\"middle\"",
              report->columns[x_column].name);
    plot_text(out, 0, 0, "text-anchor=\"middle\" transform=\"translate(20 215) rotate(-90)\"",
              report->y_label);
    struct series series = {.x_column = x_column, .series_column = find_column(report, is_series)};
    uint32_t series_count = 0;
    for (uint32_t column = 0; column < report->columns_count; column++) {
        if (is_line(&report->columns[column])) {
            series.y_column = column;
            series_count = put_column(out, report, series, &x, &y, series_count);
        }
    }
    plot_end(out);
}

enum err plot_write_svg(const struct report *report, struct buf *out) {
    uint32_t x_column = find_column(report, is_x);
    uint32_t names_column = find_column(report, is_name);
    uint32_t none = report->columns_count;
    uint32_t panels_count = 0;
    for (uint32_t column = 0; column < report->columns_count; column++) {
        panels_count += report->columns[column].role == REPORT_Y;
    }
    if (panels_count == 0 || report_rows_count(report) == 0 || (x_column == none && names_column == none)) {
        return ERR_UNSUPPORTED;
    }
    if (x_column != none) {
        put_lines(report, x_column, out);
    } else {
        plot_bars_write(report, names_column, panels_count, out);
    }
    return out->err;
}
