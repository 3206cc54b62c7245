/*
 * plot - a report as a line plot in SVG: one x column, a line for each y column.
 *
 * Points are joined in the order of the rows; a missing value breaks the line. Both axes are linear and start
 * at zero unless a value is below it. The text uses the reader's own sans-serif font.
 */
#ifndef MNEMON_SIM_PLOT_H
#define MNEMON_SIM_PLOT_H

#include "sim/report.h"

/* ERR_UNSUPPORTED where the report has no x column, no y column or no row. */
enum err plot_write_svg(const struct report *report, struct buf *out) MUST_CHECK;

#endif
