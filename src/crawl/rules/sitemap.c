#include "crawl/rules/sitemap.h"

#include "base/utc.h"
#include "crawl/rules/sitemap_state.h"
#include "warc/unpack.h"

enum field { FIELD_NONE, FIELD_URL, FIELD_TIME, FIELD_PRIORITY, FIELD_FREQUENCY };

enum { PRIORITY_UNSTATED = 50 };

/* ---- Names ---- */

static struct bytes sitemap_local_name(struct bytes name) {
    size_t colon = bytes_find_byte(name, ':');
    return colon < name.size ? bytes_skip(name, colon + 1) : name;
}

static struct bytes sitemap_prefix_of(struct bytes name) {
    size_t colon = bytes_find_byte(name, ':');
    return bytes_slice(name, 0, colon < name.size ? colon : 0);
}

static struct bytes sitemap_element_name(const struct sitemap *sitemap) {
    return bytes_of(sitemap->name, sitemap->name_size);
}

static struct bytes sitemap_entry_name(const struct sitemap *sitemap) {
    return bytes_of(sitemap->entry_name, sitemap->entry_name_size);
}

static bool sitemap_is_entry_name(struct bytes name) {
    static const char *const names[] = {"url", "sitemap", "item", "entry"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bytes_equal(sitemap_local_name(name), bytes_of_string(names[i]))) {
            return true;
        }
    }
    return false;
}

/* In the namespace of the entry: <image:loc> is not the page's <loc>. */
static enum field sitemap_field_of(const struct sitemap *sitemap, struct bytes name) {
    static const struct {
        const char *name;
        enum field field;
    } names[] = {
        {"loc", FIELD_URL},           {"link", FIELD_URL},
        {"lastmod", FIELD_TIME},      {"pubDate", FIELD_TIME},
        {"updated", FIELD_TIME},      {"published", FIELD_TIME},
        {"priority", FIELD_PRIORITY}, {"changefreq", FIELD_FREQUENCY},
    };
    if (!bytes_equal(sitemap_prefix_of(name), sitemap_prefix_of(sitemap_entry_name(sitemap)))) {
        return FIELD_NONE;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bytes_equal(sitemap_local_name(name), bytes_of_string(names[i].name))) {
            return names[i].field;
        }
    }
    return FIELD_NONE;
}

/* ---- Values ---- */

/* "Fri, 02 Jan 2026 03:04:05 +0200", as RSS has it: HTTP's form knows only GMT. */
static bool sitemap_read_mail_date(struct bytes text, int64_t *ret_time_us) {
    if (text.size < 6 || text.size > 60) {
        return false;
    }
    struct bytes offset = bytes_skip(text, text.size - 5);
    uint64_t digits;
    bool is_signed = offset.data[0] == '+' || offset.data[0] == '-';
    if (!is_signed || !bytes_to_u64(bytes_skip(offset, 1), 2359, &digits)) {
        return false;
    }
    char copy[64];
    memcpy(copy, text.data, text.size - 5);
    memcpy(copy + text.size - 5, "GMT", 3);
    int64_t local_us;
    if (!utc_parse_http(bytes_of(copy, text.size - 2), &local_us)) {
        return false;
    }
    int64_t offset_us = ((int64_t)(digits / 100) * 60 + (int64_t)(digits % 100)) * 60 * 1000000;
    *ret_time_us = offset.data[0] == '+' ? local_us - offset_us : local_us + offset_us;
    return true;
}

static int64_t sitemap_read_time(struct bytes text) {
    int64_t time_us;
    bool is_time = utc_parse_rfc3339(text, &time_us) || utc_parse_http(text, &time_us) ||
                   sitemap_read_mail_date(text, &time_us);
    return is_time ? time_us : 0;
}

/* "0.8", "1", "1.0" */
static uint8_t sitemap_read_priority(struct bytes text) {
    bool is_number = text.size > 0 && (text.data[0] == '0' || text.data[0] == '1') &&
                     (text.size == 1 || text.data[1] == '.');
    if (!is_number) {
        return PRIORITY_UNSTATED;
    }
    unsigned percent = text.data[0] == '1' ? 100 : 0;
    for (size_t i = 2, unit = 10; i < text.size && i < 4 && byte_is_digit(text.data[i]); i++, unit /= 10) {
        percent += (unsigned)((size_t)(text.data[i] - '0') * unit);
    }
    return (uint8_t)(percent < 100 ? percent : 100);
}

static enum sitemap_frequency sitemap_read_frequency(struct bytes text) {
    static const char *const words[] = {
        [SITEMAP_ALWAYS] = "always", [SITEMAP_HOURLY] = "hourly",   [SITEMAP_DAILY] = "daily",
        [SITEMAP_WEEKLY] = "weekly", [SITEMAP_MONTHLY] = "monthly", [SITEMAP_YEARLY] = "yearly",
        [SITEMAP_NEVER] = "never",
    };
    for (unsigned i = SITEMAP_ALWAYS; i <= SITEMAP_NEVER; i++) {
        if (bytes_equal_ignore_case(text, bytes_of_string(words[i]))) {
            return (enum sitemap_frequency)i;
        }
    }
    return SITEMAP_UNSTATED;
}

static struct bytes sitemap_text_of(const struct sitemap *sitemap) {
    return bytes_trim(bytes_of(sitemap->text, sitemap->text_size));
}

/* The first URL of an entry is its own. */
static void sitemap_take_url(struct sitemap *sitemap, struct bytes url) {
    if (sitemap->entry.url.size == 0 && !sitemap->is_text_too_long && url.size > 0) {
        memcpy(sitemap->url, url.data, url.size);
        sitemap->entry.url = bytes_of(sitemap->url, url.size);
    }
}

static void sitemap_end_field(struct sitemap *sitemap) {
    struct bytes text = sitemap_text_of(sitemap);
    switch ((enum field)sitemap->field) {
    case FIELD_URL:
        sitemap_take_url(sitemap, text);
        break;
    case FIELD_TIME:
        sitemap->entry.lastmod_us = sitemap_read_time(text);
        break;
    case FIELD_PRIORITY:
        sitemap->entry.priority_percent = sitemap_read_priority(text);
        break;
    case FIELD_FREQUENCY:
        sitemap->entry.frequency = sitemap_read_frequency(text);
        break;
    case FIELD_NONE:
        break;
    }
    sitemap->field = FIELD_NONE;
    sitemap_clear_text(sitemap);
}

/* ---- Entries ---- */

static void sitemap_report(struct sitemap *sitemap) {
    if (sitemap->entry.url.size == 0) {
        sitemap->bad_count++;
    } else if (sitemap->entries_count == SITEMAP_ENTRIES_MAX) {
        sitemap->rest_count++;
    } else {
        sitemap->entries_count++;
        sitemap->found(sitemap->context, &sitemap->entry);
    }
}

static void sitemap_clear_entry(struct sitemap *sitemap) {
    sitemap->entry = (struct sitemap_entry){.priority_percent = PRIORITY_UNSTATED};
    sitemap->entry_level = 0;
}

static void sitemap_end_entry(struct sitemap *sitemap) {
    sitemap_end_field(sitemap);
    sitemap_report(sitemap);
    sitemap_clear_entry(sitemap);
}

static void sitemap_start_entry(struct sitemap *sitemap) {
    sitemap_clear_entry(sitemap);
    struct bytes name = sitemap_element_name(sitemap);
    memcpy(sitemap->entry_name, name.data, name.size);
    sitemap->entry_name_size = sitemap->name_size;
    sitemap->entry_level = sitemap->level;
    sitemap->entry.is_sitemap = bytes_equal(sitemap_local_name(name), BYTES("sitemap"));
}

void sitemap_open_element(struct sitemap *sitemap) {
    struct bytes name = sitemap_element_name(sitemap);
    bool is_open = sitemap->entry_level > 0;
    if (is_open && bytes_equal(name, sitemap_entry_name(sitemap))) {
        sitemap->level = sitemap->entry_level - 1; /* the one before was never closed */
        sitemap_end_entry(sitemap);
        is_open = false;
    }
    if (sitemap->is_other_link && sitemap->is_url_of_link) { /* <link rel="self"> */
        sitemap->entry.url = (struct bytes){NULL, 0};
    }
    sitemap->is_other_link = sitemap->is_url_of_link = false;
    if (sitemap->is_empty) {
        return;
    }
    sitemap->level++;
    if (!is_open && sitemap_is_entry_name(name)) {
        sitemap_start_entry(sitemap);
    } else if (is_open && sitemap->level == sitemap->entry_level + 1) {
        sitemap->field = (uint8_t)sitemap_field_of(sitemap, name);
        sitemap_clear_text(sitemap);
    }
}

void sitemap_close_element(struct sitemap *sitemap) {
    bool is_open = sitemap->entry_level > 0;
    if (is_open && bytes_equal(sitemap_element_name(sitemap), sitemap_entry_name(sitemap))) {
        sitemap->level = sitemap->entry_level - 1;
        sitemap_end_entry(sitemap);
        return;
    }
    if (is_open && sitemap->level == sitemap->entry_level + 1) {
        sitemap_end_field(sitemap);
    }
    if (sitemap->level > sitemap->entry_level) {
        sitemap->level--;
    }
}

/* Only Atom's <link rel="alternate" href="…"/> has something to say. */
void sitemap_take_attribute(struct sitemap *sitemap) {
    bool is_child = sitemap->entry_level > 0 && sitemap->level == sitemap->entry_level;
    if (!is_child || sitemap->is_closing ||
        sitemap_field_of(sitemap, sitemap_element_name(sitemap)) != FIELD_URL) {
        return;
    }
    struct bytes name = bytes_of(sitemap->attribute, sitemap->attribute_size);
    if (bytes_equal(name, BYTES("rel"))) {
        sitemap->is_other_link = !bytes_equal_ignore_case(sitemap_text_of(sitemap), BYTES("alternate"));
    } else if (bytes_equal(name, BYTES("href")) && sitemap->entry.url.size == 0) {
        sitemap_take_url(sitemap, sitemap_text_of(sitemap));
        sitemap->is_url_of_link = true;
    }
}

void sitemap_take_line(struct sitemap *sitemap) {
    struct bytes line = sitemap_text_of(sitemap);
    if (line.size == 0 || line.data[0] == '#') {
        return;
    }
    if (bytes_find(line, BYTES("://")) < line.size) {
        sitemap_take_url(sitemap, line);
    }
    sitemap_report(sitemap);
    sitemap_clear_entry(sitemap);
}

/* ---- The interface ---- */

void sitemap_init(struct sitemap *sitemap, sitemap_found *found, void *context) {
    *sitemap = (struct sitemap){.found = found, .context = context};
    sitemap_clear_entry(sitemap);
}

void sitemap_feed(struct sitemap *sitemap, struct bytes piece) {
    uint64_t left = SITEMAP_SIZE_MAX - sitemap->size;
    if (piece.size > left) {
        piece = bytes_slice(piece, 0, (size_t)left);
        sitemap->is_cut = true;
    }
    sitemap->size += piece.size;
    sitemap_scan(sitemap, piece);
}

void sitemap_finish(struct sitemap *sitemap) {
    if (sitemap_scan_is_line(sitemap) && !sitemap->is_cut) {
        sitemap_take_line(sitemap);
    }
    if (sitemap->entry_level > 0 && sitemap->entry.url.size > 0) {
        sitemap_end_entry(sitemap);
    }
}

static enum err sitemap_feed_all(struct sitemap *sitemap, struct unpack *unpack, struct err_detail *detail) {
    enum unpack_event event = UNPACK_BYTES;
    while (event != UNPACK_END && !sitemap->is_cut) {
        enum err err = unpack_fill(unpack, &event, detail);
        if (err != ERR_OK) {
            return err;
        }
        struct bytes ready = unpack_ready(unpack);
        if (event == UNPACK_BYTES) {
            sitemap_feed(sitemap, ready);
            unpack_consume(unpack, ready.size);
        }
    }
    return ERR_OK;
}

enum err sitemap_read(struct sitemap *sitemap, struct source *source, struct err_detail *detail) {
    struct unpack unpack;
    enum err err = unpack_init(&unpack, NULL);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    unpack_open(&unpack, source);
    err = sitemap_feed_all(sitemap, &unpack, detail);
    sitemap_finish(sitemap);
    unpack_done(&unpack);
    return err;
}
