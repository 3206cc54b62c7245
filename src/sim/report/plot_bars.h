/*
 * plot_bars - a report whose rows have names as bars in SVG. For plot.c only.
 *
 *      Title
 *                    first y column      second y column
 *      name of row   |######## 12.5      |### 3
 *      name of row   |#### 6.2           |###### 6
 *
 * Each y column has a panel and a scale of its own, from zero to its greatest value.
 */
#ifndef MNEMON_SIM_REPORT_PLOT_BARS_H
#define MNEMON_SIM_REPORT_PLOT_BARS_H

#include "sim/report/report.h"

/* The rows are named by text_column; panels_count is the number of y columns, at least one. */
void plot_bars_write(const struct report *report, uint32_t text_column, uint32_t panels_count,
                     struct buf *out);

#endif
