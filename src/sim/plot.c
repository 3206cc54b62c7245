#include "sim/plot.h"

#include <stdio.h>

enum { WIDTH = 760, HEIGHT = 440, LEFT = 76, RIGHT = 200, TOP = 48, BOTTOM = 60, TICKS_COUNT = 6 };

/* Okabe and Ito: told apart by colour-blind readers too. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000"};
enum { COLOURS_COUNT = sizeof colours / sizeof colours[0] };

struct axis {
    double min;
    double max;
    double step;
    unsigned decimals;  /* of the labels */
    double pixel_first; /* where min is drawn */
    double pixel_last;
};

static double to_pixel(const struct axis *axis, double value) {
    return axis->pixel_first +
           (value - axis->min) / (axis->max - axis->min) * (axis->pixel_last - axis->pixel_first);
}

/* 1, 2 or 5 times a power of ten, so that about TICKS_COUNT of them span the range. */
static void choose_step(struct axis *axis, double range) {
    double step = 1;
    while (step * TICKS_COUNT < range) {
        step *= 10;
    }
    while (step * TICKS_COUNT >= 10 * range) {
        step /= 10;
    }
    if (step * TICKS_COUNT >= 5 * range) {
        step /= 5;
    } else if (step * TICKS_COUNT >= 2 * range) {
        step /= 2;
    }
    axis->step = step;
    axis->decimals = 0;
    for (double unit = 1; unit > step * 1.001 && axis->decimals < 9; unit /= 10) {
        axis->decimals++;
    }
}

/* From zero, or below it where a value is, to the first tick that is not under any value. */
static void scale(struct axis *axis, double least, double greatest) {
    double range = greatest - least;
    choose_step(axis, range > 1e-9 ? range : 1);
    axis->min = 0;
    while (axis->min > least) {
        axis->min -= axis->step;
    }
    axis->max = axis->min + axis->step;
    while (axis->max < greatest - axis->step * 1e-6) {
        axis->max += axis->step;
    }
}

static struct axis make_axis(const struct report *report, enum report_role role, double pixel_first,
                             double pixel_last) {
    struct axis axis = {.pixel_first = pixel_first, .pixel_last = pixel_last};
    double least = 0;
    double greatest = 0;
    for (uint32_t column = 0; column < report->columns_count; column++) {
        if (report->columns[column].role != role) {
            continue;
        }
        for (uint32_t row = 0; row < report_rows_count(report); row++) {
            const struct report_cell *cell = report_at(report, row, column);
            if (!cell->is_missing) {
                least = cell->number < least ? cell->number : least;
                greatest = cell->number > greatest ? cell->number : greatest;
            }
        }
    }
    scale(&axis, least, greatest);
    return axis;
}

static void put_text(struct buf *out, double x, double y, const char *attributes, const char *text) {
    buf_put_format(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    for (; *text != '\0'; text++) {
        const char *escaped = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        if (escaped != NULL) {
            buf_put_string(out, escaped);
        } else {
            buf_put_byte(out, (uint8_t)*text);
        }
    }
    buf_put_string(out, "</text>\n");
}

static void put_line(struct buf *out, double x1, double y1, double x2, double y2, const char *colour) {
    buf_put_format(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2,
                   y2, colour);
}

static void put_grid(struct buf *out, const struct axis *x, const struct axis *y) {
    char label[32];
    for (double value = y->min; value <= y->max + y->step / 2; value += y->step) {
        double pixel = to_pixel(y, value);
        put_line(out, x->pixel_first, pixel, x->pixel_last, pixel, "#dddddd");
        snprintf(label, sizeof label, "%.*f", (int)y->decimals, value);
        put_text(out, x->pixel_first - 8, pixel + 4, "text-anchor=\"end\"", label);
    }
    for (double value = x->min; value <= x->max + x->step / 2; value += x->step) {
        double pixel = to_pixel(x, value);
        put_line(out, pixel, y->pixel_first, pixel, y->pixel_first + 5, "#333333");
        snprintf(label, sizeof label, "%.*f", (int)x->decimals, value);
        put_text(out, pixel, y->pixel_first + 20, "text-anchor=\"middle\"", label);
    }
    put_line(out, x->pixel_first, y->pixel_first, x->pixel_last, y->pixel_first, "#333333");
    put_line(out, x->pixel_first, y->pixel_first, x->pixel_first, y->pixel_last, "#333333");
}

static void put_series(struct buf *out, const struct report *report, uint32_t x_column, uint32_t y_column,
                       const struct axis *x, const struct axis *y, const char *colour) {
    bool is_joined = false; /* the point before this one is there */
    buf_put_format(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colour);
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        const struct report_cell *at = report_at(report, row, x_column);
        const struct report_cell *value = report_at(report, row, y_column);
        bool is_there = !at->is_missing && !value->is_missing;
        if (is_there) {
            buf_put_format(out, "%s%.1f %.1f", is_joined ? " L" : " M", to_pixel(x, at->number),
                           to_pixel(y, value->number));
        }
        is_joined = is_there;
    }
    buf_put_string(out, "\"/>\n");
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        const struct report_cell *at = report_at(report, row, x_column);
        const struct report_cell *value = report_at(report, row, y_column);
        if (!at->is_missing && !value->is_missing) {
            buf_put_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                           to_pixel(x, at->number), to_pixel(y, value->number), colour);
        }
    }
}

/* The first column of that role; columns_count where there is none. */
static uint32_t find_column(const struct report *report, enum report_role role) {
    uint32_t column = 0;
    while (column < report->columns_count && report->columns[column].role != role) {
        column++;
    }
    return column;
}

enum err plot_write_svg(const struct report *report, struct buf *out) {
    uint32_t x_column = find_column(report, REPORT_X);
    if (x_column == report->columns_count || find_column(report, REPORT_Y) == report->columns_count ||
        report_rows_count(report) == 0) {
        return ERR_UNSUPPORTED;
    }
    struct axis x = make_axis(report, REPORT_X, LEFT, WIDTH - RIGHT);
    struct axis y = make_axis(report, REPORT_Y, HEIGHT - BOTTOM, TOP);
    buf_put_format(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333333\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_text(out, LEFT, 26, "font-size=\"15\" font-weight=\"bold\"", report->title);
    put_grid(out, &x, &y);
    put_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16, "text-anchor=\"middle\"",
             report->columns[x_column].name);
    put_text(out, 0, 0, "text-anchor=\"middle\" transform=\"translate(20 215) rotate(-90)\"",
             report->y_label);
    uint32_t series_count = 0;
    for (uint32_t column = 0; column < report->columns_count; column++) {
        if (report->columns[column].role != REPORT_Y) {
            continue;
        }
        const char *colour = colours[series_count % COLOURS_COUNT];
        double legend_y = TOP + 12 + 20.0 * series_count++;
        put_series(out, report, x_column, column, &x, &y, colour);
        buf_put_format(out, "<rect x=\"%d\" y=\"%.1f\" width=\"18\" height=\"3\" fill=\"%s\"/>\n",
                       WIDTH - RIGHT + 16, legend_y - 6, colour);
        put_text(out, WIDTH - RIGHT + 42, legend_y, "", report->columns[column].name);
    }
    buf_put_string(out, "</svg>\n");
    return out->err;
}
