#include "sim/report/plot_bars.h"

#include <stdio.h>

#include "sim/report/plot_draw.h"

enum {
    WIDTH = 760,
    LEFT = 270,
    RIGHT = 20,
    TOP = 72,
    BOTTOM = 20,
    ROW = 26,
    BAR = 14,
    VALUE = 60, /* room for a number behind a bar */
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
    double y = TOP + (double)row * ROW;
    if (cell->is_missing) {
        return;
    }
    double width = cell->number > 0 ? cell->number * pixels_per_unit : 0;
    char label[32];
    snprintf(label, sizeof label, "%.*f", (int)report->columns[column].decimals, cell->number);
    buf_put_format(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", x, y,
                   width, BAR, colour);
    plot_text(out, x + width + 5, y + BAR - 3, "", label);
}

static void put_panel(struct buf *out, const struct report *report, uint32_t column, double x, double width,
                      const char *colour) {
    double greatest = greatest_of(report, column);
    double bottom = TOP + (double)report_rows_count(report) * ROW - (ROW - BAR) / 2.0;
    plot_text(out, x, TOP - 14, "", report->columns[column].name);
    plot_line(out, x, TOP - 6, x, bottom, "#333333");
    for (uint32_t row = 0; row < report_rows_count(report); row++) {
        put_bar(out, report, row, column, x, greatest > 0 ? (width - VALUE) / greatest : 0, colour);
    }
}

void plot_bars_write(const struct report *report, uint32_t text_column, uint32_t panels_count,
                     struct buf *out) {
    uint32_t rows_count = report_rows_count(report);
    double panel = (double)(WIDTH - LEFT - RIGHT) / panels_count;
    plot_begin(out, WIDTH, TOP + (double)rows_count * ROW + BOTTOM, 20, report->title);
    for (uint32_t row = 0; row < rows_count; row++) {
        plot_text(out, LEFT - 10, TOP + (double)row * ROW + BAR - 3, "text-anchor=\"end\"",
                  report_at(report, row, text_column)->text);
    }
    uint32_t panels_drawn = 0;
    for (uint32_t column = 0; column < report->columns_count; column++) {
        if (report->columns[column].role == REPORT_Y) {
            put_panel(out, report, column, LEFT + panel * panels_drawn, panel, plot_colour(panels_drawn));
            panels_drawn++;
        }
    }
    plot_end(out);
}
