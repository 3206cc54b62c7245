#include "sim/report/plot_draw.h"

enum { TICKS_COUNT = 6 };

const char *plot_colour(uint32_t series) {
    /* Okabe and Ito, and a grey. */
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#000000", "#999999"};
    return colours[series % (sizeof colours / sizeof colours[0])];
}

/* ---- SVG ---- */

void plot_begin(struct buf *out, double width, double height, double title_x, const char *title) {
    buf_put_format(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#333333\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        width, height, width, height);
    plot_text(out, title_x, 26, "font-size=\"15\" font-weight=\"bold\"", title);
}

void plot_end(struct buf *out) {
    buf_put_string(out, "</svg>\n");
}

void plot_text(struct buf *out, double x, double y, const char *attributes, const char *text) {
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

void plot_line(struct buf *out, double x1, double y1, double x2, double y2, const char *colour) {
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

double plot_axis_pixel(const struct plot_axis *axis, double value) {
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

void plot_axis_scale(struct plot_axis *axis, double least, double greatest) {
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

void plot_axis_scale_logarithmic(struct plot_axis *axis, double least, double greatest) {
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
