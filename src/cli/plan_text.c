#include "base/value.h"
#include "cli/plan.h"

/* ---- notes ---- */

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
                       "How many objects are added each day (--added) is not measured: that takes more than "
                       "one round of visits. It is the figure of preset %s.\n",
                       preset);
    } else if (plan->origins[CAPACITY_ADDED] == PLAN_MEASURED) {
        buf_put_string(out, "What is counted as added (--added) was new to this archive; some of it may have "
                            "been there before.\n");
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

enum { LABEL_WIDTH = 36, PAGE_WIDTH = 80, CELL_SIZE_MAX = 48 };

static const double YEAR_DAYS = 365;

/* ---- figures for people, into a cell ---- */

struct cell {
    char text[CELL_SIZE_MAX];
};

/* In the largest unit of which there is at least one; each is 1000 of the one before. */
static struct cell in_units(double value, const char *const *units) {
    struct cell cell;
    for (; value >= 999.95 && units[1] != NULL; units++) {
        value /= 1000;
    }
    snprintf(cell.text, sizeof cell.text, "%.4g%s%s", value, units[0][0] == '\0' ? "" : " ", units[0]);
    return cell;
}

static struct cell size_cell(double size) {
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB", NULL};
    return in_units(size, units);
}

static struct cell rate_cell(double kbps) {
    static const char *const units[] = {"kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s", NULL};
    return in_units(kbps, units);
}

/* Whole numbers that are read one by one: 12,810 nodes. Above some trillions nobody does. */
static struct cell count_cell(double count) {
    struct cell cell;
    if (count >= 1e15 || (count < 100 && count != (double)(uint64_t)count)) {
        snprintf(cell.text, sizeof cell.text, "%.3g", count);
        return cell;
    }
    struct buf text;
    buf_init(&text, CELL_SIZE_MAX);
    value_put_count(&text, (uint64_t)(count + 0.5));
    snprintf(cell.text, sizeof cell.text, "%.*s", BYTES_ARG(buf_bytes(&text)));
    buf_done(&text);
    return cell;
}

/* Those whose size alone matters: 3.54 billion objects. */
static struct cell objects_cell(double count) {
    static const char *const units[] = {"million", "billion", "trillion", "quadrillion", NULL};
    return count < 1e6 ? count_cell(count) : in_units(count / 1e6, units);
}

static struct cell share_cell(double share) {
    struct cell cell;
    snprintf(cell.text, sizeof cell.text, share < 10 ? "%.3g %%" : "%.0f %%", share * 100);
    return cell;
}

static struct cell days_cell(double days) {
    struct cell cell;
    if (days < 2) {
        snprintf(cell.text, sizeof cell.text, "%.3g hours", days * 24);
    } else if (days < 1000) {
        snprintf(cell.text, sizeof cell.text, "%.3g days", days);
    } else {
        struct cell years = count_cell(days / YEAR_DAYS);
        snprintf(cell.text, sizeof cell.text, "%.32s years", years.text);
    }
    return cell;
}

static struct cell months_cell(double months) {
    struct cell cell;
    if (months >= CAPACITY_MONTHS_MAX) {
        snprintf(cell.text, sizeof cell.text, "in no foreseeable time");
    } else {
        snprintf(cell.text, sizeof cell.text, "%.3g months", months);
    }
    return cell;
}

static struct cell value_cell(enum capacity_unit unit, double value) {
    switch (unit) {
    case CAPACITY_COUNT:
        return count_cell(value);
    case CAPACITY_SIZE:
        return size_cell(value);
    case CAPACITY_SHARE:
        return share_cell(value);
    case CAPACITY_DAYS:
        return days_cell(value);
    case CAPACITY_RATE:
        return rate_cell(value);
    }
    assert_failed("every unit has its cell", __FILE__, __LINE__);
}

static void text_put_line(struct buf *out, const char *label, struct cell cell) {
    buf_put_format(out, "  %-*s %s\n", LABEL_WIDTH, label, cell.text);
}

/* ---- sections ---- */

static void put_input(const struct plan *plan, enum capacity_field field, struct buf *out) {
    static const char marks[] = {' ', '+', '*', '?'};
    double value = capacity_value(&plan->inputs, field);
    struct cell cell = value_cell(capacity_fields[field].unit, value);
    enum plan_origin origin = plan->origins[field];
    const char *zero = field == CAPACITY_WITNESSES ? "all" : field == CAPACITY_HOPS ? "reckoned" : NULL;
    buf_put_format(out, "  %-17s%c%-17s", capacity_fields[field].name, marks[origin],
                   origin == PLAN_OPEN          ? "asked for"
                   : zero != NULL && value == 0 ? zero
                                                : cell.text);
}

static void put_inputs(const struct plan *plan, struct buf *out) {
    size_t rows_count = (CAPACITY_FIELDS_COUNT + 1) / 2;
    buf_put_format(out, "Assumptions (preset %s; * given, + measured, ? asked for)\n",
                   plan_presets[plan->preset]);
    for (size_t i = 0; i < rows_count; i++) {
        put_input(plan, (enum capacity_field)i, out);
        if (i + rows_count < CAPACITY_FIELDS_COUNT) {
            put_input(plan, (enum capacity_field)(i + rows_count), out);
        }
        while (out->size > 0 && out->data[out->size - 1] == ' ') {
            buf_truncate(out, out->size - 1);
        }
        buf_put_byte(out, '\n');
    }
}

static void put_measured(const struct plan *plan, struct buf *out) {
    const struct plan_measure *measure = &plan->measure;
    double urls_count = (double)(measure->pages.urls_count + measure->embeds.urls_count);
    double distances_count = (double)(measure->pages.distances_count + measure->embeds.distances_count);
    double changes_count = (double)(measure->pages.changes_count + measure->embeds.changes_count);
    buf_put_format(out, "\nMeasured in %s\n", plan->directory);
    text_put_line(out, "URLs with contents", count_cell(urls_count));
    text_put_line(out, "captures of them", count_cell((double)measure->captures_count));
    text_put_line(out, "captures per URL", count_cell((double)measure->captures_count / urls_count));
    if (distances_count > 0) {
        text_put_line(out, "unchanged since the one before", share_cell(1 - changes_count / distances_count));
    }
    if (measure->rounds_count > 0) {
        text_put_line(out, "captures of a visit, by witnesses",
                      count_cell((double)measure->witnessed_count / (double)measure->rounds_count));
    }
    text_put_line(out, "contents it had from other URLs",
                  share_cell((double)measure->duplicates_count / (double)measure->contents_count));
}

/* A row of the thesis's table; measured or not, its figure is a share, a size or a number. */
struct mit_row {
    const char *label;
    enum capacity_field field;
    const char *thesis;
};

/* Table 3.1 of the thesis, "data obtained in the MIT experiment", beside the same of this archive. */
static void put_mit_table(const struct plan *plan, struct buf *out) {
    static const struct mit_row rows[] = {
        {"size of a page", CAPACITY_PAGE_SIZE, "12 KB"},
        {"size of another object", CAPACITY_EMBED_SIZE, "32 KB"},
        {"pages that change in a day", CAPACITY_PAGES_CHANGED, "1 %"},
        {"other objects that change in a day", CAPACITY_EMBEDS_CHANGED, "< 0.01 %"},
        {"new objects in a day", CAPACITY_ADDED, "0.5 %"},
        {"pages, compressed", CAPACITY_PAGE_COMPRESSED, "24.8 %"},
        {"other objects, compressed", CAPACITY_EMBED_COMPRESSED, "98.6 %"},
        {"links on a page", CAPACITY_LINKS, "36"},
        {"length of a URL", CAPACITY_URL_SIZE, "59 bytes"},
    };
    const struct plan_measure *measure = &plan->measure;
    double urls_count = (double)(measure->pages.urls_count + measure->embeds.urls_count);
    buf_put_format(out, "\n%-*s %14s %14s\n", LABEL_WIDTH + 2, "Table 3.1 of the thesis", "here", "MIT");
    buf_put_format(out, "  %-*s %14s %14s\n", LABEL_WIDTH, "URLs", count_cell(urls_count).text, "1,399,701");
    buf_put_format(out, "  %-*s %14s %14s\n", LABEL_WIDTH, "of them no pages (MIT: images)",
                   share_cell((double)measure->embeds.urls_count / urls_count).text, "43.5 %");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum capacity_field field = rows[i].field;
        struct cell cell = value_cell(capacity_fields[field].unit, capacity_value(&plan->inputs, field));
        bool is_measured = plan->origins[field] == PLAN_MEASURED;
        buf_put_format(out, "  %-*s %14s %14s\n", LABEL_WIDTH, rows[i].label,
                       is_measured ? cell.text : "not measured", rows[i].thesis);
    }
}

static void put_table(const struct capacity *capacity, struct buf *out) {
    static const char *const names[CAPACITY_ROWS_COUNT] = {
        [CAPACITY_SNAPSHOT_PAGES] = "snapshot, pages",
        [CAPACITY_SNAPSHOT_EMBEDS] = "snapshot, other objects",
        [CAPACITY_SNAPSHOT] = "snapshot",
        [CAPACITY_DAY_PAGES_CHANGED] = "a day, pages changed",
        [CAPACITY_DAY_PAGES_ADDED] = "a day, pages added",
        [CAPACITY_DAY_PAGES] = "a day, pages",
        [CAPACITY_DAY_EMBEDS] = "a day, other objects",
        [CAPACITY_DAY] = "a day",
        [CAPACITY_MONTH_PAGES] = "a month, pages",
        [CAPACITY_MONTH_EMBEDS] = "a month, other objects",
        [CAPACITY_MONTH] = "a month",
    };
    buf_put_format(out, "\n%-26s %16s %14s %14s\n", "What there is to archive", "objects", "size", "stored");
    for (size_t i = 0; i < CAPACITY_ROWS_COUNT; i++) {
        const struct capacity_volume *row = &capacity->rows[i];
        buf_put_format(out, "  %-24s %16s %14s %14s\n", names[i], objects_cell(row->objects_count).text,
                       size_cell(row->size).text, size_cell(row->stored_size).text);
    }
}

static void put_storage(const struct plan *plan, struct buf *out) {
    const struct capacity *capacity = &plan->capacity;
    buf_put_format(out, "\nStorage after %s months\n", count_cell(plan->inputs.months).text);
    text_put_line(out, "each object once", size_cell(capacity->stored_size));
    double days = plan->inputs.months * CAPACITY_MONTH_DAYS;
    text_put_line(out, "of it, unchanged visits", size_cell(capacity->visits_size * days));
    text_put_line(out, "with all copies", size_cell(capacity->replicated_size));
    if (plan->origins[CAPACITY_DISK] == PLAN_OPEN) {
        text_put_line(out, "nodes", count_cell(capacity->nodes_count));
        text_put_line(out, "disk that each node needs", size_cell(capacity->disk_needed));
        return;
    }
    text_put_line(out, "disk of a node", size_cell(capacity->disk_size));
    text_put_line(out, "nodes needed", count_cell(capacity->nodes_needed));
    if (plan->origins[CAPACITY_NODES] != PLAN_OPEN) {
        text_put_line(out, "nodes there are", count_cell(capacity->nodes_count));
        text_put_line(out, "of the disk, each needs", size_cell(capacity->disk_needed));
        text_put_line(out, "full after", months_cell(capacity->months_until_full));
    }
}

static void put_node_day(const struct capacity *capacity, struct buf *out) {
    buf_put_string(out, "\nEach node in a day\n");
    text_put_line(out, "URLs it is responsible for", count_cell(capacity->urls_per_node));
    text_put_line(out, "requests to web servers", count_cell(capacity->requests_count));
    text_put_line(out, "contents downloaded", size_cell(capacity->downloads_size));
    text_put_line(out, "links to other nodes", size_cell(capacity->links_size));
    text_put_line(out, "contents from other nodes", size_cell(capacity->copies_size));
    text_put_line(out, "repair, on average", size_cell(capacity->repair_size + capacity->catch_up_size));
}

static void text_put_rate(struct buf *out, const char *label, struct capacity_rate rate) {
    buf_put_format(out, "  %-*s %14s %14s\n", LABEL_WIDTH, label, rate_cell(rate.down_kbps).text,
                   rate_cell(rate.up_kbps).text);
}

static void put_bandwidth(const struct capacity *capacity, struct buf *out) {
    buf_put_format(out, "\n%-*s %14s %14s\n", LABEL_WIDTH + 2, "Bandwidth of a node", "down", "up");
    text_put_rate(out, "downloads", capacity->downloads);
    text_put_rate(out, "links", capacity->links);
    text_put_rate(out, "copies of new contents", capacity->copying);
    text_put_rate(out, "crawling: the above", capacity->crawling);
    text_put_rate(out, "filling a node, or a neighbour", capacity->repair);
    text_put_rate(out, "crawling, and filling", capacity->total);
    text_put_rate(out, "repair, on average", capacity->repair_mean);
    buf_put_format(out, "  %-*s %14s\n", LABEL_WIDTH, "whole ring", rate_cell(capacity->ring_down_kbps).text);
}

static void put_copies(const struct capacity *capacity, struct buf *out) {
    buf_put_format(out, "\nKeeping %s copies\n", count_cell(capacity->copies).text);
    text_put_line(out, "an object cannot be read", share_cell(capacity->unavailable));
    text_put_line(out, "objects lost in a year", share_cell(capacity->lost_in_year));
    text_put_line(out, "mean time until one is lost", days_cell(capacity->time_to_loss_days));
    text_put_line(out, "all others gone before a repair", share_cell(capacity->lost_in_repair));
    text_put_line(out, "lost if a third of the nodes goes", share_cell(capacity->lost_with_third));
    text_put_line(out, "filling a node over the whole line", days_cell(capacity->fill_days));
    text_put_line(out, "a node takes part in a repair every", days_cell(capacity->repair_interval_days));
}

static void put_links(const struct plan *plan, struct buf *out) {
    const struct capacity *capacity = &plan->capacity;
    buf_put_string(out, "\nBytes of a link to one receiver\n");
    text_put_line(out, "a lookup and a message for each", count_cell(capacity->link_direct_size));
    text_put_line(out, "batches that walk the ring", count_cell(capacity->link_walk_size));
    text_put_line(out, "the same, compressed (mnemon)", count_cell(CAPACITY_LINK_SIZE));
    text_put_line(out, "assumed above", count_cell(plan->inputs.link_size));
    text_put_line(out, "links gathered for a walk", count_cell(capacity->walk_links_count));
    text_put_line(out, "memory for them", size_cell(capacity->walk_buffer_size));
}

/* Words with line breaks, the first line behind a dash. */
static void put_note(struct bytes note, struct buf *out) {
    struct bytes word;
    size_t column = 0;
    while (bytes_split(&note, ' ', &word)) {
        if (column == 0 || column + 1 + word.size > PAGE_WIDTH) {
            buf_put_string(out, column == 0 ? "  -" : "\n   ");
            column = 3;
        }
        buf_put_byte(out, ' ');
        buf_put(out, word);
        column += 1 + word.size;
    }
    buf_put_byte(out, '\n');
}

void plan_put_text(const struct plan *plan, struct buf *out) {
    put_inputs(plan, out);
    if (plan->is_measured) {
        put_measured(plan, out);
        put_mit_table(plan, out);
    }
    put_table(&plan->capacity, out);
    put_storage(plan, out);
    put_node_day(&plan->capacity, out);
    put_bandwidth(&plan->capacity, out);
    put_copies(&plan->capacity, out);
    put_links(plan, out);
    struct bytes rest = buf_bytes(&plan->notes);
    struct bytes note;
    buf_put_string(out, rest.size > 0 ? "\nNotes\n" : "");
    while (bytes_split(&rest, '\n', &note)) {
        if (note.size > 0) {
            put_note(note, out);
        }
    }
}
