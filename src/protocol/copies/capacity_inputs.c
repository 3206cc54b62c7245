#include "protocol/copies/capacity.h"

#include "base/assert.h"

/* The bounds are far beyond what anybody plans, and keep every product a finite number. What is tiny may grow
 * when it is stored: a record has a header. */
const struct capacity_field_rule capacity_fields[CAPACITY_FIELDS_COUNT] = {
    [CAPACITY_PAGES] = {"pages", CAPACITY_COUNT, false, offsetof(struct capacity_inputs, pages_count), 1,
                        1e15},
    [CAPACITY_PAGE_SIZE] = {"page-size", CAPACITY_SIZE, false, offsetof(struct capacity_inputs, page_size), 1,
                            1e12},
    [CAPACITY_PAGE_COMPRESSED] = {"page-compressed", CAPACITY_SHARE, false,
                                  offsetof(struct capacity_inputs, page_compressed), 1e-6, 1000},
    [CAPACITY_EMBEDS] = {"embeds", CAPACITY_COUNT, false, offsetof(struct capacity_inputs, embeds_per_page),
                         0, 1e6},
    [CAPACITY_EMBED_SIZE] = {"embed-size", CAPACITY_SIZE, false, offsetof(struct capacity_inputs, embed_size),
                             1, 1e12},
    [CAPACITY_EMBED_COMPRESSED] = {"embed-compressed", CAPACITY_SHARE, false,
                                   offsetof(struct capacity_inputs, embed_compressed), 1e-6, 1000},
    [CAPACITY_PAGES_CHANGED] = {"pages-changed", CAPACITY_SHARE, false,
                                offsetof(struct capacity_inputs, pages_changed), 0, 1},
    [CAPACITY_EMBEDS_CHANGED] = {"embeds-changed", CAPACITY_SHARE, false,
                                 offsetof(struct capacity_inputs, embeds_changed), 0, 1},
    [CAPACITY_ADDED] = {"added", CAPACITY_SHARE, false, offsetof(struct capacity_inputs, added), 0, 10},
    [CAPACITY_DUPLICATES] = {"duplicates", CAPACITY_SHARE, false,
                             offsetof(struct capacity_inputs, duplicates), 0, 0.999999},
    [CAPACITY_LINKS] = {"links", CAPACITY_COUNT, false, offsetof(struct capacity_inputs, links_per_page), 0,
                        1e6},
    [CAPACITY_LINKS_NEW] = {"links-new", CAPACITY_SHARE, false, offsetof(struct capacity_inputs, links_new),
                            0, 1},
    [CAPACITY_URL_SIZE] = {"url-size", CAPACITY_SIZE, false, offsetof(struct capacity_inputs, url_size), 1,
                           65536},
    [CAPACITY_PERIOD] = {"period", CAPACITY_DAYS, false, offsetof(struct capacity_inputs, period_days), 0.01,
                         36500},
    [CAPACITY_MONTHS] = {"months", CAPACITY_COUNT, false, offsetof(struct capacity_inputs, months), 0, 1200},
    [CAPACITY_REQUEST_UP] = {"request-up", CAPACITY_SIZE, false,
                             offsetof(struct capacity_inputs, request_up_size), 0, 1e6},
    [CAPACITY_REQUEST_DOWN] = {"request-down", CAPACITY_SIZE, false,
                               offsetof(struct capacity_inputs, request_down_size), 0, 1e6},
    [CAPACITY_LINK_BYTES] = {"link-size", CAPACITY_SIZE, false, offsetof(struct capacity_inputs, link_size),
                             0.1, 65536},
    [CAPACITY_REPLICAS] = {"replicas", CAPACITY_COUNT, true, offsetof(struct capacity_inputs, copies), 1,
                           CAPACITY_COPIES_MAX},
    [CAPACITY_WITNESSES] = {"witnesses", CAPACITY_COUNT, true, offsetof(struct capacity_inputs, witnesses), 0,
                            CAPACITY_COPIES_MAX},
    [CAPACITY_NODES] = {"nodes", CAPACITY_COUNT, true, offsetof(struct capacity_inputs, nodes_count), 0,
                        CAPACITY_NODES_MAX},
    [CAPACITY_DISK] = {"disk", CAPACITY_SIZE, false, offsetof(struct capacity_inputs, disk_size), 0, 1e18},
    [CAPACITY_RESERVE] = {"reserve", CAPACITY_SHARE, false, offsetof(struct capacity_inputs, reserve), 0,
                          0.99},
    [CAPACITY_UPTIME] = {"uptime", CAPACITY_SHARE, false, offsetof(struct capacity_inputs, uptime), 0.000001,
                         1},
    [CAPACITY_LIFETIME] = {"lifetime", CAPACITY_DAYS, false, offsetof(struct capacity_inputs, lifetime_days),
                           0.01, 36500},
    [CAPACITY_REPAIR] = {"repair", CAPACITY_DAYS, false, offsetof(struct capacity_inputs, repair_days),
                         0.0001, 36500},
    [CAPACITY_LINE] = {"line", CAPACITY_RATE, false, offsetof(struct capacity_inputs, line_kbps), 0.001,
                       1e12},
    [CAPACITY_HOPS] = {"hops", CAPACITY_COUNT, false, offsetof(struct capacity_inputs, lookup_hops), 0, 1000},
    [CAPACITY_LOOKUP_SIZE] = {"lookup-size", CAPACITY_SIZE, false,
                              offsetof(struct capacity_inputs, lookup_message_size), 0, 65536},
    [CAPACITY_HEADER_SIZE] = {"header-size", CAPACITY_SIZE, false,
                              offsetof(struct capacity_inputs, message_header_size), 0, 65536},
    [CAPACITY_BATCH] = {"batch", CAPACITY_COUNT, false, offsetof(struct capacity_inputs, links_per_message),
                        1, 1e6},
    [CAPACITY_ROUNDING] = {"rounding", CAPACITY_SHARE, false, offsetof(struct capacity_inputs, rounding), 0,
                           0.1},
};

double *capacity_at(struct capacity_inputs *inputs, enum capacity_field field) {
    ASSERT(field < CAPACITY_FIELDS_COUNT);
    return (double *)((char *)inputs + capacity_fields[field].offset);
}

double capacity_value(const struct capacity_inputs *inputs, enum capacity_field field) {
    ASSERT(field < CAPACITY_FIELDS_COUNT);
    return *(const double *)((const char *)inputs + capacity_fields[field].offset);
}

/*
 * Tables 3.1 and 3.2, chapters 4.4 and 6, as printed. What the thesis rounds it rounds by no more than 3 %
 * (154 to 150 kbit/s, 49.3 to 50 TB of images).
 */
static const struct capacity_inputs thesis = {
    .pages_count = 2e9,
    .page_size = 12e3,
    .page_compressed = 0.248,
    .embeds_per_page = 0.77,
    .embed_size = 32e3,
    .embed_compressed = 0.986,
    .pages_changed = 0.05,
    .embeds_changed = 0,
    .added = 0.005,
    .duplicates = 0,
    .links_per_page = 36,
    .links_new = 0.1,
    .url_size = 59,
    .period_days = 1,
    .months = 9,
    .request_up_size = 80,
    .request_down_size = 20,
    .link_size = 59,
    .copies = 6,
    .witnesses = CAPACITY_ALL_COPIES,
    .nodes_count = 20000,
    .disk_size = 100e9,
    .reserve = 0,
    .uptime = 0.8,
    .lifetime_days = 360,
    .repair_days = 60,
    .line_kbps = 1000,
    .lookup_hops = 8,
    .lookup_message_size = 100,
    .message_header_size = 60,
    .links_per_message = 6,
    .rounding = 0.03,
};

/* Where each comes from: docs/plan.md, "Today's figures". */
static const struct capacity_inputs today = {
    .pages_count = 2.64e9,
    .page_size = 164e3,
    .page_compressed = 0.2,
    .embeds_per_page = 5,
    .embed_size = 37e3,
    .embed_compressed = 0.9,
    .pages_changed = 0.05,
    .embeds_changed = 0.001,
    .added = 0.005,
    .duplicates = 0.2,
    .links_per_page = 200,
    .links_new = 0.1,
    .url_size = 80,
    .period_days = 30,
    .months = 12,
    .request_up_size = 500,
    .request_down_size = 300,
    .link_size = CAPACITY_LINK_SIZE,
    .copies = 6,
    .witnesses = 1,
    .nodes_count = 0,
    .disk_size = 20e12,
    .reserve = 0.1,
    .uptime = 0.9,
    .lifetime_days = 730,
    .repair_days = 30,
    .line_kbps = 100e3,
    .lookup_hops = 0,
    .lookup_message_size = 100,
    .message_header_size = 60,
    .links_per_message = 10,
    .rounding = 0,
};

void capacity_preset(enum capacity_preset preset, struct capacity_inputs *ret_inputs) {
    switch (preset) {
    case CAPACITY_TODAY:
        *ret_inputs = today;
        return;
    case CAPACITY_THESIS:
        *ret_inputs = thesis;
        return;
    case CAPACITY_THESIS_LIGHT: /* chapter 6.2: pages only */
        *ret_inputs = thesis;
        ret_inputs->embeds_per_page = 0;
        ret_inputs->nodes_count = 6000;
        return;
    }
    assert_failed("every preset has its figures", __FILE__, __LINE__);
}
