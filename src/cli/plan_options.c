#include "base/value.h"
#include "cli/plan.h"

enum { SHOWN_SIZE_MAX = 40 }; /* of a wrong value, so that there is room for the reason */

static struct bytes shown(struct bytes text) {
    return bytes_slice(text, 0, text.size < SHOWN_SIZE_MAX ? text.size : SHOWN_SIZE_MAX);
}

/* ---- how values are written ---- */

struct suffix {
    const char *name;
    double factor;
};

/* Digits, perhaps a point and more digits; then one of the suffixes, which end with a NULL name. */
static bool read_number(struct bytes text, const struct suffix *suffixes, double *ret_value) {
    double value = 0;
    double unit = 1;
    bool is_behind_point = false;
    size_t digits_count = 0;
    size_t at = 0;
    for (; at < text.size; at++) {
        uint8_t byte = text.data[at];
        if (byte == '.' && !is_behind_point) {
            is_behind_point = true;
        } else if (byte_is_digit(byte)) {
            digits_count++;
            value = value * 10 + (byte - '0');
            unit *= is_behind_point ? 10 : 1;
        } else {
            break;
        }
    }
    struct bytes rest = bytes_trim(bytes_skip(text, at));
    if (digits_count == 0 || digits_count > 24) {
        return false;
    }
    for (; suffixes->name != NULL; suffixes++) {
        if (bytes_equal_ignore_case(rest, bytes_of_string(suffixes->name))) {
            *ret_value = value / unit * suffixes->factor;
            return true;
        }
    }
    return false;
}

static enum err read_with(struct bytes text, const struct suffix *suffixes, const char *examples,
                          double *ret_value, struct err_detail *detail) {
    if (!read_number(text, suffixes, ret_value)) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is not understood (%s)", BYTES_ARG(shown(text)),
                       examples);
    }
    return ERR_OK;
}

static enum err read_share(struct bytes text, double *ret_value, struct err_detail *detail) {
    static const struct suffix suffixes[] = {{"%", 0.01}, {"", 1}, {NULL, 0}};
    bool is_percent = bytes_ends_with(text, BYTES("%"));
    enum err err = read_with(text, suffixes, "5% or 0.05", ret_value, detail);
    /* "5" is meant as a percentage by nearly everybody, and would be 500 %. */
    if (err == ERR_OK && !is_percent && *ret_value > 1) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is more than the whole; write %.*s%% for a percentage",
                       BYTES_ARG(shown(text)), BYTES_ARG(shown(text)));
    }
    return err;
}

static enum err read_size(struct bytes text, double *ret_value, struct err_detail *detail) {
    uint64_t size;
    enum err err = value_read_size(text, 0, UINT64_MAX, &size, detail);
    *ret_value = err == ERR_OK ? (double)size : *ret_value;
    return err;
}

static enum err read_days(struct bytes text, double *ret_value, struct err_detail *detail) {
    static const double day_us = 86400e6;
    uint64_t duration_us;
    enum err err = value_read_duration(text, 0, UINT64_MAX, &duration_us, detail);
    *ret_value = err == ERR_OK ? (double)duration_us / day_us : *ret_value;
    return err;
}

static enum err check_range(enum capacity_field field, struct bytes text, double value,
                            struct err_detail *detail) {
    static const char *const units[] = {
        [CAPACITY_COUNT] = "",     [CAPACITY_SIZE] = " bytes",  [CAPACITY_SHARE] = " as a share",
        [CAPACITY_DAYS] = " days", [CAPACITY_RATE] = " kbit/s",
    };
    const struct capacity_field_rule *rule = &capacity_fields[field];
    if (value > rule->max) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is too large: at most %g%s", BYTES_ARG(shown(text)),
                       rule->max, units[rule->unit]);
    }
    if (value < rule->min) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is too small: at least %g%s", BYTES_ARG(shown(text)),
                       rule->min, units[rule->unit]);
    }
    /* 0 in the inputs means that they are to be found; nobody has 0 nodes. */
    if (value == 0 && (field == CAPACITY_NODES || field == CAPACITY_DISK)) {
        return err_set(detail, ERR_INVALID, "an archive needs at least some room");
    }
    if (rule->is_whole && value != (double)(uint64_t)value) {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is not a whole number", BYTES_ARG(shown(text)));
    }
    return ERR_OK;
}

enum err plan_read(enum capacity_field field, struct bytes text, double *ret_value,
                   struct err_detail *detail) {
    static const struct suffix counts[] = {{"", 1},          {"K", 1e3},       {"M", 1e6}, {"B", 1e9},
                                           {"billion", 1e9}, {"million", 1e6}, {NULL, 0}};
    static const struct suffix rates[] = {{"kbit/s", 1}, {"Mbit/s", 1e3}, {"Gbit/s", 1e6}, {NULL, 0}};
    double value = 0;
    enum err err = ERR_INVALID;
    if (text.size > 0 && text.data[0] == '-') {
        return err_set(detail, ERR_INVALID, "\"%.*s\" is negative", BYTES_ARG(shown(text)));
    }
    switch (capacity_fields[field].unit) {
    case CAPACITY_COUNT:
        err = read_with(text, counts, "12, 0.77, 5M, 2.5B", &value, detail);
        break;
    case CAPACITY_SHARE:
        err = read_share(text, &value, detail);
        break;
    case CAPACITY_RATE:
        err = read_with(text, rates, "500 kbit/s, 100 Mbit/s, 1 Gbit/s", &value, detail);
        break;
    case CAPACITY_SIZE:
        err = read_size(text, &value, detail);
        break;
    case CAPACITY_DAYS:
        err = read_days(text, &value, detail);
        break;
    }
    err = err == ERR_OK ? check_range(field, text, value, detail) : err;
    *ret_value = err == ERR_OK ? value : *ret_value;
    return err;
}

/* ---- the options ---- */

const struct option plan_options[] = {
    OPTION(CHOICE, struct plan_options, preset, "preset", "NAME",
           "the source of all figures that are not given", .choices = plan_presets),
    OPTION(TEXT, struct plan_options, data, "data", "DIR", "measure the archive in this data directory"),
    OPTION(FLAG, struct plan_options, measured, "measured", NULL,
           "measure the archive in --data ($MNEMON_DATA, else ~/.local/share/mnemon)"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_PAGES], "pages", "N", "number of pages (HTML)"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_PAGE_SIZE], "page-size", "SIZE",
           "mean size of a page before compression"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_PAGE_COMPRESSED], "page-compressed", "SHARE",
           "share of that size that remains after compression"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_EMBEDS], "embeds", "N",
           "other objects (images, styles, scripts) per page, with URLs of their own; 0: archive only pages"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_EMBED_SIZE], "embed-size", "SIZE",
           "mean size of such an object"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_EMBED_COMPRESSED], "embed-compressed", "SHARE",
           "share of that size that remains after compression"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_PAGES_CHANGED], "pages-changed", "SHARE",
           "share of the pages that change in a day"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_EMBEDS_CHANGED], "embeds-changed", "SHARE",
           "share of the other objects that change in a day"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_ADDED], "added", "SHARE",
           "new objects each day, as a share of the existing ones"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_DUPLICATES], "duplicates", "SHARE",
           "share of new contents that the archive already has from another URL"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_LINKS], "links", "N", "links on a page"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_LINKS_NEW], "links-new", "SHARE",
           "share of a changed page's links that are new"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_URL_SIZE], "url-size", "SIZE", "mean length of a URL"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_PERIOD], "period", "TIME",
           "how often every URL is visited"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_MONTHS], "months", "N",
           "how long the disks should last, in months of 30 days"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_REQUEST_UP], "request-up", "SIZE", "size of a request"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_REQUEST_DOWN], "request-down", "SIZE",
           "size of an answer without contents"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_LINK_BYTES], "link-size", "SIZE",
           "size of a link sent between nodes, for each receiver"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_VISIT_SIZE], "visit-size", "SIZE",
           "what a visit takes on disk that found nothing new, for each copy; 0: such are not kept"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_REPLICAS], "replicas", "N",
           "copies of each object, the first included"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_WITNESSES], "witnesses", "N",
           "copies that are fetched from the origin; nodes copy the others from each other; 0: all"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_NODES], "nodes", "N",
           "number of nodes; without --disk, estimate the disk that each needs"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_DISK], "disk", "SIZE",
           "room on a node; without --nodes, estimate how many nodes are needed"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_RESERVE], "reserve", "SHARE",
           "share of the disk that stays free"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_UPTIME], "uptime", "SHARE",
           "share of its time in the ring that a node is up"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_LIFETIME], "lifetime", "TIME",
           "how long a node stays before it leaves for good"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_REPAIR], "repair", "TIME",
           "how long it takes to copy the contents of a node to another"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_LINE], "line", "RATE",
           "the rate at which a node can receive"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_HOPS], "hops", "N",
           "hops of a lookup; 0: estimated from the number of nodes"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_LOOKUP_SIZE], "lookup-size", "SIZE",
           "size of one message of a lookup"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_HEADER_SIZE], "header-size", "SIZE",
           "size of the headers of one message"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_BATCH], "batch", "N",
           "links in one message that walks the ring"),
    OPTION(TEXT, struct plan_options, given[CAPACITY_ROUNDING], "rounding", "SHARE",
           "round intermediate figures by at most this share, as the thesis does"),
    OPTION(FLAG, struct plan_options, quiet, "quiet", NULL, "show no progress of measuring"),
    OPTION(FLAG, struct plan_options, json, "json", NULL,
           "print one JSON object: bytes, days, kbit/s, shares from 0 to 1"),
    {0},
};
