#include "protocol/copies/capacity.h"

#include <stdint.h>

#include "base/assert.h"

#define AT(input) offsetof(struct capacity_inputs, input)

/*
 * The bounds are far beyond what anybody plans, and keep every product a finite number. What is tiny may grow
 * when it is stored: a record has a header.
 *
 * The figures of the thesis are those of its tables 3.1 and 3.2 and chapters 4.4 and 6, as printed. What it
 * rounds it rounds by no more than 3 % (154 to 150 kbit/s, 49.3 to 50 TB of images). Where today's come from:
 * docs/plan.md, "Today's figures".
 *
 *      name, unit, whole number, input, least, greatest, thesis, today
 */
const struct capacity_field_rule capacity_fields[CAPACITY_FIELDS_COUNT] = {
    [CAPACITY_PAGES] = {"pages", CAPACITY_COUNT, false, AT(pages_count), 1, 1e15, 2e9, 2.64e9},
    [CAPACITY_PAGE_SIZE] = {"page-size", CAPACITY_SIZE, false, AT(page_size), 1, 1e12, 12e3, 164e3},
    [CAPACITY_PAGE_COMPRESSED] = {"page-compressed", CAPACITY_SHARE, false, AT(page_compressed), 1e-6, 1000,
                                  0.248, 0.2},
    [CAPACITY_EMBEDS] = {"embeds", CAPACITY_COUNT, false, AT(embeds_per_page), 0, 1e6, 0.77, 5},
    [CAPACITY_EMBED_SIZE] = {"embed-size", CAPACITY_SIZE, false, AT(embed_size), 1, 1e12, 32e3, 37e3},
    [CAPACITY_EMBED_COMPRESSED] = {"embed-compressed", CAPACITY_SHARE, false, AT(embed_compressed), 1e-6,
                                   1000, 0.986, 0.9},
    [CAPACITY_PAGES_CHANGED] = {"pages-changed", CAPACITY_SHARE, false, AT(pages_changed), 0, 1, 0.05, 0.05},
    [CAPACITY_EMBEDS_CHANGED] = {"embeds-changed", CAPACITY_SHARE, false, AT(embeds_changed), 0, 1, 0, 0.001},
    [CAPACITY_ADDED] = {"added", CAPACITY_SHARE, false, AT(added), 0, 10, 0.005, 0.005},
    [CAPACITY_DUPLICATES] = {"duplicates", CAPACITY_SHARE, false, AT(duplicates), 0, 0.999999, 0, 0.2},
    [CAPACITY_LINKS] = {"links", CAPACITY_COUNT, false, AT(links_per_page), 0, 1e6, 36, 200},
    [CAPACITY_LINKS_NEW] = {"links-new", CAPACITY_SHARE, false, AT(links_new), 0, 1, 0.1, 0.1},
    [CAPACITY_URL_SIZE] = {"url-size", CAPACITY_SIZE, false, AT(url_size), 1, 65536, 59, 80},
    [CAPACITY_PERIOD] = {"period", CAPACITY_DAYS, false, AT(period_days), 0.01, 36500, 1, 30},
    [CAPACITY_MONTHS] = {"months", CAPACITY_COUNT, false, AT(months), 0, 1200, 9, 12},
    [CAPACITY_REQUEST_UP] = {"request-up", CAPACITY_SIZE, false, AT(request_up_size), 0, 1e6, 80, 500},
    [CAPACITY_REQUEST_DOWN] = {"request-down", CAPACITY_SIZE, false, AT(request_down_size), 0, 1e6, 20, 300},
    [CAPACITY_LINK_BYTES] = {"link-size", CAPACITY_SIZE, false, AT(link_size), 0.1, 65536, 59,
                             CAPACITY_LINK_SIZE},
    [CAPACITY_REPLICAS] = {"replicas", CAPACITY_COUNT, true, AT(copies), 1, CAPACITY_COPIES_MAX, 6, 6},
    [CAPACITY_WITNESSES] = {"witnesses", CAPACITY_COUNT, true, AT(witnesses), 0, CAPACITY_COPIES_MAX,
                            CAPACITY_ALL_COPIES, 1},
    [CAPACITY_NODES] = {"nodes", CAPACITY_COUNT, true, AT(nodes_count), 0, CAPACITY_NODES_MAX, 20000, 0},
    [CAPACITY_DISK] = {"disk", CAPACITY_SIZE, false, AT(disk_size), 0, 1e18, 100e9, 20e12},
    [CAPACITY_RESERVE] = {"reserve", CAPACITY_SHARE, false, AT(reserve), 0, 0.99, 0, 0.1},
    [CAPACITY_UPTIME] = {"uptime", CAPACITY_SHARE, false, AT(uptime), 0.000001, 1, 0.8, 0.9},
    [CAPACITY_LIFETIME] = {"lifetime", CAPACITY_DAYS, false, AT(lifetime_days), 0.01, 36500, 360, 730},
    [CAPACITY_REPAIR] = {"repair", CAPACITY_DAYS, false, AT(repair_days), 0.0001, 36500, 60, 30},
    [CAPACITY_LINE] = {"line", CAPACITY_RATE, false, AT(line_kbps), 0.001, 1e12, 1000, 100e3},
    [CAPACITY_HOPS] = {"hops", CAPACITY_COUNT, false, AT(lookup_hops), 0, 1000, 8, 0},
    [CAPACITY_LOOKUP_SIZE] = {"lookup-size", CAPACITY_SIZE, false, AT(lookup_message_size), 0, 65536, 100,
                              100},
    [CAPACITY_HEADER_SIZE] = {"header-size", CAPACITY_SIZE, false, AT(message_header_size), 0, 65536, 60, 60},
    [CAPACITY_BATCH] = {"batch", CAPACITY_COUNT, false, AT(links_per_message), 1, 1e6, 6, 10},
    [CAPACITY_ROUNDING] = {"rounding", CAPACITY_SHARE, false, AT(rounding), 0, 0.1, 0.03, 0},
    [CAPACITY_VISIT_SIZE] = {"visit-size", CAPACITY_SIZE, false, AT(visit_size), 0, 1e6, 0, 250},
};

#undef AT

double *capacity_at(struct capacity_inputs *inputs, enum capacity_field field) {
    ASSERT(field < CAPACITY_FIELDS_COUNT);
    return (double *)((char *)inputs + capacity_fields[field].offset);
}

double capacity_value(const struct capacity_inputs *inputs, enum capacity_field field) {
    ASSERT(field < CAPACITY_FIELDS_COUNT);
    return *(const double *)((const char *)inputs + capacity_fields[field].offset);
}

void capacity_preset(enum capacity_preset preset, struct capacity_inputs *ret_inputs) {
    for (unsigned i = 0; i < CAPACITY_FIELDS_COUNT; i++) {
        const struct capacity_field_rule *rule = &capacity_fields[i];
        *capacity_at(ret_inputs, i) = preset == CAPACITY_TODAY ? rule->today : rule->thesis;
    }
    if (preset == CAPACITY_THESIS_LIGHT) { /* chapter 6.2: pages only */
        ret_inputs->embeds_per_page = 0;
        ret_inputs->nodes_count = 6000;
    }
}

static const double BITS = 8;
static const double DAY_S = 86400;
static const double YEAR_DAYS = 365;
static const double LN_2 = 0.69314718055994530942;

/* What a copy of it may amount to if nothing is ever lost: a double still, and not infinite. */
static const double TIME_MAX_DAYS = 1e300;

/* ---- elementary functions, without libm: folder ring/ calls nothing outside ---- */

static double capacity_least(double a, double b) {
    return a < b ? a : b;
}

static double most(double a, double b) {
    return a > b ? a : b;
}

/* value is small enough for 64 bits, and not negative. */
static double whole_above(double value) {
    double whole = (double)(uint64_t)value;
    return whole < value ? whole + 1 : whole;
}

/* log2 of a positive number: whole part by halving, each further bit by squaring. */
static double log2_of(double value) {
    ASSERT(value > 0);
    double whole = 0;
    for (; value >= 2; value /= 2) {
        whole += 1;
    }
    for (; value < 1; value *= 2) {
        whole -= 1;
    }
    double fraction = 0;
    for (double bit = 0.5; bit > 1e-16; bit /= 2) {
        value *= value;
        if (value >= 2) {
            value /= 2;
            fraction += bit;
        }
    }
    return whole + fraction;
}

double capacity_chance(double x) {
    ASSERT(x >= 0);
    if (x > 64) {
        return 1;
    }
    /* 1 - e^-x of a small part of x by its series, then doubled: 1 - (1 - f)^2 = f (2 - f). */
    unsigned doublings = 0;
    for (; x > 1e-3; x /= 2) {
        doublings++;
    }
    double chance = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4)));
    for (; doublings > 0; doublings--) {
        chance *= 2 - chance;
    }
    return chance;
}

/* To so many significant digits, halves upwards. */
static double to_digits(double value, unsigned digits) {
    double limit = 1;
    for (unsigned i = 0; i < digits; i++) {
        limit *= 10;
    }
    double unit = 1;
    for (; value / unit >= limit; unit *= 10) {
    }
    for (; value / unit < limit / 10; unit /= 10) {
    }
    return (double)(uint64_t)(value / unit + 0.5) * unit;
}

/* To the fewest digits that change it by at most a share; a share of 0: as it is. */
static double rounded(const struct capacity_inputs *inputs, double value) {
    enum { DIGITS_MAX = 12 };
    double change_max = value * inputs->rounding;
    for (unsigned digits = 1; digits <= DIGITS_MAX && change_max > 0; digits++) {
        double candidate = to_digits(value, digits);
        if (candidate - value <= change_max && value - candidate <= change_max) {
            return candidate;
        }
    }
    return value;
}

static double rate_of(double size_per_day) {
    return size_per_day * BITS / DAY_S / 1000;
}

/* ---- formulas ---- */

double capacity_all_among(double copies, double share) {
    double all = 1;
    for (double i = 0; i < copies; i++) {
        all *= share;
    }
    return all;
}

/*
 * From k copies to k - 1 takes 1 / (k f) if the next event is a loss; else it first goes up to k + 1 and
 * must come back: T(k) = 1 / (k f) + (missing r) / (k f) T(k + 1). All steps down to 0 add up.
 */
double capacity_time_to_loss_days(double copies, double lifetime_days, double repair_days) {
    double step_days = 0;
    double sum_days = 0;
    for (double k = copies; k >= 1; k--) {
        double loss_days = lifetime_days / k;
        step_days = loss_days + (copies - k) / repair_days * loss_days * step_days;
        step_days = capacity_least(step_days, TIME_MAX_DAYS);
        sum_days += step_days;
    }
    return capacity_least(sum_days, TIME_MAX_DAYS);
}

double capacity_changed_after(double changed_per_day, double days) {
    if (changed_per_day <= 0 || changed_per_day >= 1) {
        return changed_per_day <= 0 ? 0 : 1;
    }
    return days == 1 ? changed_per_day : capacity_chance(-log2_of(1 - changed_per_day) * LN_2 * days);
}

double capacity_changed_per_day(double distances_count, double changes_count, double mean_days) {
    ASSERT(distances_count > 0 && changes_count <= distances_count && mean_days > 0);
    double unchanged = (distances_count - changes_count + 0.5) / (distances_count + 0.5);
    return unchanged >= 1 ? 0 : capacity_chance(-log2_of(unchanged) * LN_2 / mean_days);
}

/* Half of the bits of the distance are set on average; the 0.86 is measured: `mnemon sim ring-lookup`. */
double capacity_lookup_hops(double nodes_count) {
    return nodes_count <= 1 ? 0 : log2_of(nodes_count) / 2 + 0.86;
}

void capacity_repair(const struct capacity_inputs *inputs, double filled_size, double held_size,
                     double new_size_per_day, struct capacity_repair *ret_repair) {
    double thesis_size = filled_size / inputs->repair_days;
    double moves_size = 2 * held_size / inputs->lifetime_days;
    double catch_up_size = (1 - inputs->uptime) * new_size_per_day;
    *ret_repair = (struct capacity_repair){
        .thesis_size = thesis_size,
        .moves_size = moves_size,
        .catch_up_size = catch_up_size,
        .share = thesis_size > 0 ? (moves_size + catch_up_size) / thesis_size : 0,
    };
}

/* ---- table 3.2 ---- */

static struct capacity_volume volume_of(const struct capacity_inputs *inputs, double count, double size,
                                        double compressed) {
    return (struct capacity_volume){
        .objects_count = count,
        .size = count * size,
        .stored_size = count * size * compressed * (1 - inputs->duplicates),
    };
}

static struct capacity_volume sum_of(struct capacity_volume a, struct capacity_volume b) {
    return (struct capacity_volume){
        .objects_count = a.objects_count + b.objects_count,
        .size = a.size + b.size,
        .stored_size = a.stored_size + b.stored_size,
    };
}

static struct capacity_volume times(struct capacity_volume volume, double factor) {
    return (struct capacity_volume){
        .objects_count = volume.objects_count * factor,
        .size = volume.size * factor,
        .stored_size = volume.stored_size * factor,
    };
}

static struct capacity_volume entered(const struct capacity_inputs *inputs, struct capacity_volume volume) {
    volume.size = rounded(inputs, volume.size);
    volume.stored_size = rounded(inputs, volume.stored_size);
    return volume;
}

static void fill_table(const struct capacity_inputs *inputs,
                       struct capacity_volume rows[CAPACITY_ROWS_COUNT]) {
    double period = inputs->period_days;
    double pages_changed = capacity_changed_after(inputs->pages_changed, period) / period;
    double embeds_changed = capacity_changed_after(inputs->embeds_changed, period) / period;
    double embeds_count = inputs->pages_count * inputs->embeds_per_page;
    struct capacity_volume pages =
        entered(inputs, volume_of(inputs, inputs->pages_count, inputs->page_size, inputs->page_compressed));
    struct capacity_volume embeds =
        entered(inputs, volume_of(inputs, embeds_count, inputs->embed_size, inputs->embed_compressed));
    struct capacity_volume changed = entered(inputs, times(pages, pages_changed));
    struct capacity_volume added = entered(inputs, times(pages, inputs->added));
    struct capacity_volume day_pages = sum_of(changed, added);
    struct capacity_volume day_embeds = entered(inputs, times(embeds, embeds_changed + inputs->added));
    rows[CAPACITY_SNAPSHOT_PAGES] = pages;
    rows[CAPACITY_SNAPSHOT_EMBEDS] = embeds;
    rows[CAPACITY_SNAPSHOT] = sum_of(pages, embeds);
    rows[CAPACITY_DAY_PAGES_CHANGED] = changed;
    rows[CAPACITY_DAY_PAGES_ADDED] = added;
    rows[CAPACITY_DAY_PAGES] = entered(inputs, day_pages);
    rows[CAPACITY_DAY_EMBEDS] = day_embeds;
    rows[CAPACITY_DAY] = entered(inputs, sum_of(day_pages, day_embeds));
    rows[CAPACITY_MONTH_PAGES] = entered(inputs, times(day_pages, CAPACITY_MONTH_DAYS));
    rows[CAPACITY_MONTH_EMBEDS] = entered(inputs, times(day_embeds, CAPACITY_MONTH_DAYS));
    rows[CAPACITY_MONTH] = sum_of(rows[CAPACITY_MONTH_PAGES], rows[CAPACITY_MONTH_EMBEDS]);
}

/* ---- from the table to the nodes ---- */

static double copies_of(const struct capacity_inputs *inputs) {
    return inputs->nodes_count > 0 ? capacity_least(inputs->copies, inputs->nodes_count) : inputs->copies;
}

static double witnesses_of(const struct capacity_inputs *inputs) {
    double copies = copies_of(inputs);
    return inputs->witnesses == CAPACITY_ALL_COPIES ? copies : capacity_least(inputs->witnesses, copies);
}

/*
 * Every visit is recorded, by each witness. The one that first finds a change stores the contents; all others
 * find what is there already.
 */
static void count_visits(const struct capacity_inputs *inputs, struct capacity *capacity) {
    const struct capacity_volume *rows = capacity->rows;
    double visits_count = rows[CAPACITY_SNAPSHOT].objects_count / inputs->period_days * witnesses_of(inputs);
    double changes_count =
        rows[CAPACITY_DAY].objects_count - inputs->added * rows[CAPACITY_SNAPSHOT].objects_count;
    capacity->visits_count = most(visits_count - most(changes_count, 0), 0);
    capacity->visits_size = capacity->visits_count * inputs->visit_size;
}

/* What a month adds, each object once. */
static double month_size_of(const struct capacity *capacity) {
    return capacity->rows[CAPACITY_MONTH].stored_size + CAPACITY_MONTH_DAYS * capacity->visits_size;
}

static void size_storage(const struct capacity_inputs *inputs, struct capacity *capacity) {
    double snapshot_size = capacity->rows[CAPACITY_SNAPSHOT].stored_size;
    double month_size = month_size_of(capacity);
    double usable = 1 - inputs->reserve;
    bool has_nodes = inputs->nodes_count > 0;
    capacity->copies = copies_of(inputs);
    capacity->stored_size = snapshot_size + inputs->months * month_size;
    capacity->replicated_size = capacity->stored_size * capacity->copies;
    /* A node holds one copy of an object at most. */
    if (inputs->disk_size > 0) {
        double needed = whole_above(capacity->replicated_size / (inputs->disk_size * usable));
        capacity->nodes_needed = most(needed, capacity->copies);
    } else {
        capacity->nodes_needed = inputs->nodes_count;
    }
    capacity->nodes_count = has_nodes ? inputs->nodes_count : capacity->nodes_needed;
    capacity->held_size = capacity->replicated_size / capacity->nodes_count;
    capacity->disk_needed = capacity->held_size / usable;
    capacity->disk_size = inputs->disk_size > 0 ? inputs->disk_size : capacity->disk_needed;
    capacity->filled_size =
        has_nodes && inputs->disk_size > 0 ? inputs->disk_size * usable : capacity->held_size;
    double room = capacity->nodes_count * capacity->disk_size * usable / capacity->copies - snapshot_size;
    double months = month_size > 0 ? room / month_size : room >= 0 ? CAPACITY_MONTHS_MAX : 0;
    capacity->months_until_full = capacity_least(most(months, 0), CAPACITY_MONTHS_MAX);
}

/* What one node does in a day. Only witnesses ask the origin and forward what they find to all holders. */
static void size_work(const struct capacity_inputs *inputs, struct capacity *capacity) {
    const struct capacity_volume *rows = capacity->rows;
    double witnesses = witnesses_of(inputs);
    double share = witnesses / capacity->nodes_count;
    double urls_count = rows[CAPACITY_SNAPSHOT].objects_count;
    double pages_linked = rows[CAPACITY_DAY_PAGES_ADDED].objects_count +
                          inputs->links_new * rows[CAPACITY_DAY_PAGES_CHANGED].objects_count;
    capacity->urls_per_node = urls_count / capacity->nodes_count;
    capacity->requests_count = urls_count / inputs->period_days * share;
    capacity->downloads_size = rows[CAPACITY_DAY].size * share;
    capacity->requests_up_size = capacity->requests_count * inputs->request_up_size;
    capacity->requests_down_size = capacity->requests_count * inputs->request_down_size;
    capacity->links_size =
        pages_linked * share * inputs->links_per_page * inputs->link_size * capacity->copies;
    capacity->copies_size = (rows[CAPACITY_DAY].stored_size * (capacity->copies - witnesses) +
                             capacity->visits_size * (capacity->copies - 1)) /
                            capacity->nodes_count;
}

static struct capacity_rate add_rates(struct capacity_rate a, struct capacity_rate b) {
    return (struct capacity_rate){a.down_kbps + b.down_kbps, a.up_kbps + b.up_kbps};
}

static struct capacity_rate rate_for(const struct capacity_inputs *inputs, double down_size, double up_size) {
    return (struct capacity_rate){
        .down_kbps = rounded(inputs, rate_of(down_size)),
        .up_kbps = rounded(inputs, rate_of(up_size)),
    };
}

static void size_bandwidth(const struct capacity_inputs *inputs, struct capacity *capacity) {
    capacity->downloads =
        rate_for(inputs, capacity->downloads_size + capacity->requests_down_size, capacity->requests_up_size);
    capacity->links = rate_for(inputs, capacity->links_size, capacity->links_size);
    capacity->copying = rate_for(inputs, capacity->copies_size, capacity->copies_size);
    capacity->crawling = add_rates(add_rates(capacity->downloads, capacity->links), capacity->copying);
    /*
     * A disk is filled from both neighbours. Of three neighbours one may be in repair at a time, and a node
     * that is replaced means two repairs, where it was and where the new one is: six in a lifetime.
     */
    capacity->repair_interval_days = inputs->lifetime_days / 6;
    capacity->lifetime_needed_days = inputs->repair_days * 6;
    double at_once = most(1, inputs->repair_days / capacity->repair_interval_days);
    double filling_size = capacity->filled_size / inputs->repair_days * at_once;
    capacity->repair.down_kbps = rounded(inputs, rate_of(filling_size));
    capacity->repair.up_kbps = capacity->repair.down_kbps / 2;
    capacity->total = add_rates(capacity->crawling, capacity->repair);
    capacity->ring_down_kbps = capacity->total.down_kbps * capacity->nodes_count;
}

static void size_copies(const struct capacity_inputs *inputs, struct capacity *capacity) {
    double copies = capacity->copies;
    capacity->unavailable = capacity_all_among(copies, 1 - inputs->uptime);
    capacity->lost_in_repair =
        capacity_all_among(copies - 1, capacity_least(1, inputs->repair_days / inputs->lifetime_days));
    capacity->time_to_loss_days =
        capacity_time_to_loss_days(copies, inputs->lifetime_days, inputs->repair_days);
    capacity->lost_in_year = capacity_chance(YEAR_DAYS / capacity->time_to_loss_days);
    capacity->lost_with_third = capacity_all_among(copies, 1.0 / 3);
    capacity->fill_days = capacity->filled_size * BITS / 1000 / inputs->line_kbps / DAY_S;
    struct capacity_repair repair;
    double day_size = capacity->rows[CAPACITY_DAY].stored_size + capacity->visits_size;
    double new_size = day_size * copies / capacity->nodes_count;
    capacity_repair(inputs, capacity->filled_size, capacity->held_size, new_size, &repair);
    capacity->repair_size = repair.moves_size;
    capacity->catch_up_size = repair.catch_up_size;
    double mean_kbps = rate_of(repair.moves_size + repair.catch_up_size);
    capacity->repair_mean = (struct capacity_rate){mean_kbps, mean_kbps};
    capacity->sync_thesis_size = (double)CAPACITY_DIRECTORIES * CAPACITY_SEEN_ENTRY_SIZE;
    capacity->sync_directory_size =
        capacity->urls_per_node * copies / CAPACITY_DIRECTORIES * CAPACITY_SYNC_ENTRY_SIZE;
}

static void size_links(const struct capacity_inputs *inputs, struct capacity *capacity) {
    capacity->lookup_hops =
        inputs->lookup_hops > 0 ? inputs->lookup_hops : capacity_lookup_hops(capacity->nodes_count);
    capacity->link_direct_size =
        capacity->lookup_hops * inputs->lookup_message_size + inputs->message_header_size + inputs->url_size;
    double url_size = inputs->url_size + CAPACITY_LINK_SEPARATOR;
    capacity->link_walk_size = url_size + inputs->message_header_size / inputs->links_per_message;
    capacity->walk_links_count = capacity->nodes_count * inputs->links_per_message;
    capacity->walk_buffer_size = capacity->walk_links_count * url_size;
    capacity->seen_list_size = capacity->rows[CAPACITY_SNAPSHOT].objects_count * CAPACITY_SEEN_ENTRY_SIZE;
}

static enum err check_inputs(const struct capacity_inputs *inputs, struct err_detail *detail) {
    for (size_t i = 0; i < CAPACITY_FIELDS_COUNT; i++) {
        const struct capacity_field_rule *rule = &capacity_fields[i];
        double value = capacity_value(inputs, (enum capacity_field)i);
        if (!(value >= rule->min && value <= rule->max)) { /* so that a NaN fails too */
            return err_set(detail, ERR_INVALID, "%s must lie between %g and %g%s", rule->name, rule->min,
                           rule->max, rule->unit == CAPACITY_SHARE ? ", as a share" : "");
        }
        if (rule->is_whole && value != (double)(uint64_t)value) {
            return err_set(detail, ERR_INVALID, "%s must be a whole number", rule->name);
        }
    }
    if (inputs->nodes_count == 0 && inputs->disk_size == 0) {
        return err_set(detail, ERR_INVALID, "either the nodes or their disks must be given");
    }
    return ERR_OK;
}

enum err capacity_compute(const struct capacity_inputs *inputs, struct capacity *ret_capacity,
                          struct err_detail *detail) {
    enum err err = check_inputs(inputs, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct capacity capacity = {0};
    fill_table(inputs, capacity.rows);
    count_visits(inputs, &capacity);
    double usable_size = inputs->disk_size * (1 - inputs->reserve);
    double month_size = month_size_of(&capacity);
    double stored_size = capacity.rows[CAPACITY_SNAPSHOT].stored_size + inputs->months * month_size;
    if (inputs->disk_size > 0 && stored_size * inputs->copies / usable_size > CAPACITY_NODES_MAX) {
        return err_set(detail, ERR_INVALID, "that would take more than %g nodes", CAPACITY_NODES_MAX);
    }
    size_storage(inputs, &capacity);
    size_work(inputs, &capacity);
    size_bandwidth(inputs, &capacity);
    size_copies(inputs, &capacity);
    size_links(inputs, &capacity);
    *ret_capacity = capacity;
    return ERR_OK;
}
