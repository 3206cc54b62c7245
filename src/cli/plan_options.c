#include <string.h>

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
        return err_set(detail, ERR_INVALID, "\"%.*s\" is more than everything; write %.*s%% for a percentage",
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
        return err_set(detail, ERR_INVALID, "an archive cannot be kept on nothing");
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
    {.name = "preset",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct plan_options, preset),
     .argument = "NAME",
     .choices = plan_presets,
     .help = "where all that is not given comes from"},
    {.name = "data",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, data),
     .argument = "DIR",
     .help = "measure the archive in this data directory"},
    {.name = "measured",
     .type = OPTION_FLAG,
     .offset = offsetof(struct plan_options, measured),
     .help = "measure the archive in --data ($MNEMON_DATA, else ~/.local/share/mnemon)"},
    {.name = "pages",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_PAGES]),
     .argument = "N",
     .help = "pages (HTML) there are"},
    {.name = "page-size",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_PAGE_SIZE]),
     .argument = "SIZE",
     .help = "mean size of a page, before compression"},
    {.name = "page-compressed",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_PAGE_COMPRESSED]),
     .argument = "SHARE",
     .help = "what is left of it in the store"},
    {.name = "embeds",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_EMBEDS]),
     .argument = "N",
     .help = "other objects (images, styles, scripts) for each page, with URLs of their own; 0: only pages "
             "are archived"},
    {.name = "embed-size",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_EMBED_SIZE]),
     .argument = "SIZE",
     .help = "mean size of such an object"},
    {.name = "embed-compressed",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_EMBED_COMPRESSED]),
     .argument = "SHARE",
     .help = "what is left of it in the store"},
    {.name = "pages-changed",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_PAGES_CHANGED]),
     .argument = "SHARE",
     .help = "pages that change in a day"},
    {.name = "embeds-changed",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_EMBEDS_CHANGED]),
     .argument = "SHARE",
     .help = "other objects that change in a day"},
    {.name = "added",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_ADDED]),
     .argument = "SHARE",
     .help = "objects that are new each day, as a share of those there are"},
    {.name = "duplicates",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_DUPLICATES]),
     .argument = "SHARE",
     .help = "new contents that the archive has already from elsewhere"},
    {.name = "links",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_LINKS]),
     .argument = "N",
     .help = "links in a page"},
    {.name = "links-new",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_LINKS_NEW]),
     .argument = "SHARE",
     .help = "of a changed page's links, those that were not there before"},
    {.name = "url-size",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_URL_SIZE]),
     .argument = "SIZE",
     .help = "mean length of a URL"},
    {.name = "period",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_PERIOD]),
     .argument = "TIME",
     .help = "every URL is visited once in it"},
    {.name = "months",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_MONTHS]),
     .argument = "N",
     .help = "how long the disks shall last, in months of 30 days"},
    {.name = "request-up",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_REQUEST_UP]),
     .argument = "SIZE",
     .help = "bytes of a request"},
    {.name = "request-down",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_REQUEST_DOWN]),
     .argument = "SIZE",
     .help = "bytes of an answer without contents"},
    {.name = "link-size",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_LINK_BYTES]),
     .argument = "SIZE",
     .help = "bytes of a link between nodes, for each receiver"},
    {.name = "replicas",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_REPLICAS]),
     .argument = "N",
     .help = "copies of each object, the first included"},
    {.name = "witnesses",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_WITNESSES]),
     .argument = "N",
     .help = "copies that are fetched from the origin, while the others come from nodes; 0: all"},
    {.name = "nodes",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_NODES]),
     .argument = "N",
     .help = "nodes there are; without --disk, the disk that each needs is reckoned"},
    {.name = "disk",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_DISK]),
     .argument = "SIZE",
     .help = "what a node has room for; without --nodes, the number of nodes is reckoned"},
    {.name = "reserve",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_RESERVE]),
     .argument = "SHARE",
     .help = "of the disk that stays free"},
    {.name = "uptime",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_UPTIME]),
     .argument = "SHARE",
     .help = "of its time in the ring that a node is up"},
    {.name = "lifetime",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_LIFETIME]),
     .argument = "TIME",
     .help = "until a node leaves for good"},
    {.name = "repair",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_REPAIR]),
     .argument = "TIME",
     .help = "in which the contents of a node are copied to another"},
    {.name = "line",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_LINE]),
     .argument = "RATE",
     .help = "what a node can receive"},
    {.name = "hops",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_HOPS]),
     .argument = "N",
     .help = "of a lookup; 0: reckoned from the nodes"},
    {.name = "lookup-size",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_LOOKUP_SIZE]),
     .argument = "SIZE",
     .help = "bytes of one message of a lookup"},
    {.name = "header-size",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_HEADER_SIZE]),
     .argument = "SIZE",
     .help = "bytes of headers of one message"},
    {.name = "batch",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_BATCH]),
     .argument = "N",
     .help = "links in one message of a walk"},
    {.name = "rounding",
     .type = OPTION_TEXT,
     .offset = offsetof(struct plan_options, given[CAPACITY_ROUNDING]),
     .argument = "SHARE",
     .help = "round figures on the way by at most this, as the thesis does"},
    {.name = "quiet",
     .type = OPTION_FLAG,
     .offset = offsetof(struct plan_options, quiet),
     .help = "no line that shows how far the measuring is"},
    {.name = "json",
     .type = OPTION_FLAG,
     .offset = offsetof(struct plan_options, json),
     .help = "print one JSON object: bytes, days, kbit/s, shares from 0 to 1"},
    {0},
};
