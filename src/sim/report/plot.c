#include "sim/report/plot.h"

#include <stdio.h>

struct plot_axis {
    double min;
    double max;
    double step;        /* between two labels; on a logarithmic axis their ratio */
    unsigned decimals;  /* of the labels */
    double pixel_first; /* where min is drawn */
    double pixel_last;
    bool is_logarithmic;
};

/* The label after this one. */
static double plot_axis_next(const struct plot_axis *axis, double value) {
    return axis->is_logarithmic ? value * axis->step : value + axis->step;
}

enum { TICKS_COUNT = 6 };

/* The colour of the n-th series. Colour-blind readers tell them apart, too. */
static const char *plot_colour(uint32_t series) {
    /* Okabe and Ito, and a grey. */
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#000000", "#999999"};
    return colours[series % (sizeof colours / sizeof colours[0])];
}

/* ---- SVG ---- */

/* The attributes are those of the element; the text is escaped. */
static void plot_text(struct buf *out, double x, double y, const char *attributes, const char *text) {
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

/* The opening tag, a white ground and the title. */
static void plot_begin(struct buf *out, double width, double height, double title_x, const char *title) {
    buf_put_format(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333333\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        width, height, width, height);
    plot_text(out, title_x, 26, "font-size=\"15\" font-weight=\"bold\"", title);
}

static void plot_end(struct buf *out) {
    buf_put_string(out, "</svg>\n");
}

static void plot_line(struct buf *out, double x1, double y1, double x2, double y2, const char *colour) {
    buf_put_format(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2,
                   y2, colour);
}

/* ---- axes ---- */

/* Bit by bit, by squaring; without libm, so that a plot is the same everywhere. For values of 1 and more. */
static double log_of_two(double value) {
    double result = 0;
    for (; value >= 2; value /= 2) {
        result += 1;
    }
    for (double bit = 0.5; bit > 1e-5; bit /= 2) {
        value *= value;
        if (value >= 2) {
            value /= 2;
            result += bit;
        }
    }
    return result;
}

static double plot_axis_pixel(const struct plot_axis *axis, double value) {
    double share = axis->is_logarithmic ? log_of_two(value / axis->min) / log_of_two(axis->max / axis->min)
                                        : (value - axis->min) / (axis->max - axis->min);
    return axis->pixel_first + share * (axis->pixel_last - axis->pixel_first);
}

/* 1, 2 or 5 times a power of ten, so that about TICKS_COUNT of them span the range. */
static void choose_step(struct plot_axis *axis, double range) {
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

/* From zero, or below it if a value is, to the first tick that is not under any value. */
static void plot_axis_scale(struct plot_axis *axis, double least, double greatest) {
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

/* From a power of two to a power of two. All values must be above zero. */
static void plot_axis_scale_logarithmic(struct plot_axis *axis, double least, double greatest) {
    axis->is_logarithmic = true;
    axis->min = 1;
    while (2 * axis->min <= least) {
        axis->min *= 2;
    }
    axis->max = 2 * axis->min;
    while (axis->max < greatest) {
        axis->max *= 2;
    }
    axis->step = log_of_two(axis->max / axis->min) > TICKS_COUNT ? 4 : 2;
    axis->decimals = 0;
}

/* ---- bars ---- */

/*
 * A report whose rows have names, as bars.
 *
 *      Title
 *                    first y column      second y column
 *      name of row   |######## 12.5      |### 3
 *      name of row   |#### 6.2           |###### 6
 *
 * Each y column has a panel and a scale of its own, from zero to its greatest value.
 */

enum {
    BARS_WIDTH = 760,
    BARS_LEFT = 270,
    BARS_RIGHT = 20,
    BARS_TOP = 72,
    BARS_BOTTOM = 20,
    BARS_ROW = 26,
    BARS_THICKNESS = 14,
    BARS_VALUE = 60, /* room for a number behind a bar */
};

static double greatest_of(const struct report *report, uint32_t column) {
    double greatest = 0;
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        const struct report_cell *cell = report_at(report, row, column);
        greatest = !cell->is_missing && cell->number > greatest ? cell->number : greatest;
    }
    return greatest;
}

static void put_bar(struct buf *out, const struct report *report, uint32_t row, uint32_t column, double x,
                    double pixels_per_unit, const char *colour) {
    const struct report_cell *cell = report_at(report, row, column);
    double y = BARS_TOP + (double)row * BARS_ROW;
    if (cell->is_missing) {
        return;
    }
    double width = cell->number > 0 ? cell->number * pixels_per_unit : 0;
    char label[32];
    snprintf(label, sizeof label, "%.*f", (int)report->columns[column].decimals, cell->number);
    buf_put_format(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", x, y,
                   width, BARS_THICKNESS, colour);
    plot_text(out, x + width + 5, y + BARS_THICKNESS - 3, "", label);
}

static void put_panel(struct buf *out, const struct report *report, uint32_t column, double x, double width,
                      const char *colour) {
    double greatest = greatest_of(report, column);
    double bottom =
        BARS_TOP + (double)report_rows_count(report) * BARS_ROW - (BARS_ROW - BARS_THICKNESS) / 2.0;
    plot_text(out, x, BARS_TOP - 14, "", report->columns[column].name);
    plot_line(out, x, BARS_TOP - 6, x, bottom, "#333333");
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        put_bar(out, report, row, column, x, greatest > 0 ? (width - BARS_VALUE) / greatest : 0, colour);
    }
}

/* The rows are named by text_column; panels_count is the number of y columns, at least one. */
static void plot_bars_write(const struct report *report, uint32_t text_column, uint32_t panels_count,
                            struct buf *out) {
    uint32_t rows_count = report_rows_count(report);
    double panel = (double)(BARS_WIDTH - BARS_LEFT - BARS_RIGHT) / panels_count;
    plot_begin(out, BARS_WIDTH, BARS_TOP + (double)rows_count * BARS_ROW + BARS_BOTTOM, 20, report->title);
    for (uint32_t row = 0; row < rows_count; row++) {
        plot_text(out, BARS_LEFT - 10, BARS_TOP + (double)row * BARS_ROW + BARS_THICKNESS - 3,
                  "text-anchor=\"end\"", report_at(report, row, text_column)->text);
    }
    uint32_t panels_drawn = 0;
    for (uint32_t column = 0; column < report->columns_count; column++) {
        if (report->columns[column].role == REPORT_Y) {
            put_panel(out, report, column, BARS_LEFT + panel * panels_drawn, panel,
                      plot_colour(panels_drawn));
            panels_drawn++;
        }
    }
    plot_end(out);
}

/* ---- lines ---- */

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
    return column->role == REPORT_TEXT;
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

/* The first column that is meant; columns_count if there is none. */
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
