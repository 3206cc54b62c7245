#include "cli/plan.h"

/* Where the thesis's own figures are off. */
static void note_thesis(const struct plan *plan, struct buf *out) {
    if (plan->inputs.rounding > 0) {
        buf_put_format(out,
                       "Figures are rounded on the way by at most %g %%, as the thesis rounds its own "
                       "(49.3 TB of images to 50, 1.57 TB a day to 1.6, 154 kbit/s to 150); --rounding 0 "
                       "shows what its inputs give.\n",
                       plan->inputs.rounding * 100);
    }
    buf_put_string(out, "The thesis says that six copies on nodes with 80 % uptime are unavailable 0.3 % of "
                        "the time: it is 0.0064 %. Its 99.97 % are five copies.\n");
    buf_put_string(out,
                   "Its chance of loss, (60/360)^5 = 0.013 %, is that of one repair. An object sees about "
                   "six repairs a year; the share lost in a year comes from a chain of losses and "
                   "repairs.\n");
    buf_put_string(out, "Its bandwidth for repair reserves a whole disk every 60 days for every node; nodes "
                        "that come and go cause a third of that when disks are full, less before.\n");
    if (plan->preset == CAPACITY_THESIS_LIGHT) {
        buf_put_string(out, "The thesis says that bandwidth hardly changes without images. The work does "
                            "not, but fewer nodes share it: each downloads nearly three times as much.\n");
    }
}

static void note_measure(const struct plan *plan, struct buf *out) {
    const struct plan_measure *measure = &plan->measure;
    const char *preset = plan_presets[plan->preset];
    if (measure->pages.distances_count == 0 && plan->origins[CAPACITY_PAGES_CHANGED] == PLAN_PRESET) {
        buf_put_format(
            out, "No page was captured twice: how often pages change is the figure of preset %s.\n", preset);
    }
    if (plan->origins[CAPACITY_ADDED] == PLAN_PRESET) {
        buf_put_format(out,
                       "How many objects are added each day (--added) is not measured: an archive cannot "
                       "tell what is new from what it had not found. It is the figure of preset %s.\n",
                       preset);
    }
    uint64_t sizes_count = measure->pages.sizes_count + measure->embeds.sizes_count;
    if (sizes_count < (measure->contents_count - measure->duplicates_count) / 2) {
        buf_put_format(out, "Sizes are those of a sample of %ju contents.\n", (uintmax_t)sizes_count);
    }
}

/* What will not work as it was asked for. */
static void note_warnings(const struct plan *plan, struct buf *out) {
    const struct capacity *capacity = &plan->capacity;
    const struct capacity_inputs *inputs = &plan->inputs;
    if (capacity->copies < inputs->copies) {
        buf_put_format(out, "%.0f nodes can hold %.0f copies, not %.0f.\n", capacity->nodes_count,
                       capacity->copies, inputs->copies);
    }
    if (capacity->nodes_count < capacity->nodes_needed) {
        buf_put_format(out, "The disks are too small: they are full after %.3g of %.3g months.\n",
                       capacity->months_until_full, inputs->months);
    }
    if (capacity->total.down_kbps > inputs->line_kbps) {
        buf_put_format(out,
                       "The line is too slow: a node needs %.3g times what it can receive. Give repairs "
                       "more time, or nodes smaller disks.\n",
                       capacity->total.down_kbps / inputs->line_kbps);
    }
    if (inputs->lifetime_days < capacity->lifetime_needed_days) {
        buf_put_format(out,
                       "Nodes stay too short: with repairs of %.3g days they should stay %.3g, so that "
                       "of three neighbours one is in repair at a time. The bandwidth allows for %.2g "
                       "repairs at once.\n",
                       inputs->repair_days, capacity->lifetime_needed_days,
                       capacity->lifetime_needed_days / inputs->lifetime_days);
    }
    if (capacity->unavailable > 0.01) {
        buf_put_string(out, "More than 1 % of the objects cannot be read at any time: more copies, or nodes "
                            "that are up more, would help.\n");
    }
    if (capacity->lost_in_year > 1e-4) {
        buf_put_string(out, "More than 0.01 % of the objects are lost each year: more copies, faster repairs "
                            "or nodes that stay longer would help.\n");
    }
}

void plan_put_notes(struct plan *plan) {
    struct buf *out = &plan->notes;
    note_warnings(plan, out);
    if (plan->is_measured) {
        note_measure(plan, out);
    }
    if (plan->preset == CAPACITY_TODAY) {
        buf_put_string(out, "Today's figures are assumptions, with their sources in docs/plan.md; --measured "
                            "uses those of your own archive.\n");
    } else {
        note_thesis(plan, out);
    }
}
