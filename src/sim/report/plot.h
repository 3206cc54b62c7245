/*
 * plot - a report as a plot in SVG: lines over an x column, or bars if rows have names.
 *
 * Lines: one for each y column, and of each for every number of the series column, if there is one. Points
 * are joined in the order of the rows; a missing value breaks the line. Both axes are linear and start at
 * zero unless a value is below it; an x column may be logarithmic.
 */
#ifndef MNEMON_SIM_REPORT_PLOT_H
#define MNEMON_SIM_REPORT_PLOT_H

#include "sim/report/report.h"

/* ERR_UNSUPPORTED if the report has neither x column nor names, no y column or no row. */
enum err plot_write_svg(const struct report *report, struct buf *out) MUST_CHECK;

#endif
