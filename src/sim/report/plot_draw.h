/*
 * plot_draw - what plots of all kinds are drawn with: texts, lines, axes, in SVG. For plot*.c only.
 *
 * The text uses the reader's own sans-serif font.
 */
#ifndef MNEMON_SIM_REPORT_PLOT_DRAW_H
#define MNEMON_SIM_REPORT_PLOT_DRAW_H

#include "sim/report/report.h"

struct plot_axis {
    double min;
    double max;
    double step;        /* between two labels; on a logarithmic axis their ratio */
    unsigned decimals;  /* of the labels */
    double pixel_first; /* where min is drawn */
    double pixel_last;
    bool is_logarithmic;
};

/* Of the n-th series. Told apart by colour-blind readers too. */
const char *plot_colour(uint32_t series);

/* The opening tag, a white ground and the title. */
void plot_begin(struct buf *out, double width, double height, double title_x, const char *title);
void plot_end(struct buf *out);

/* The attributes are those of the element; the text is escaped. */
void plot_text(struct buf *out, double x, double y, const char *attributes, const char *text);
void plot_line(struct buf *out, double x1, double y1, double x2, double y2, const char *colour);

/* From zero, or below it where a value is, to the first tick that is not under any value. */
void plot_axis_scale(struct plot_axis *axis, double least, double greatest);

/* From a power of two to a power of two. All values must be above zero. */
void plot_axis_scale_logarithmic(struct plot_axis *axis, double least, double greatest);

double plot_axis_pixel(const struct plot_axis *axis, double value);

/* The label after this one. */
static inline double plot_axis_next(const struct plot_axis *axis, double value) {
    return axis->is_logarithmic ? value * axis->step : value + axis->step;
}

#endif
