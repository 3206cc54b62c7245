#include "cli/plan.h"

/* Enough digits that nothing is lost that anybody could use; every figure is finite
 * (protocol/copies/capacity.h). */
static void put(struct buf *out, const char *name, double value) {
    buf_put_format(out, "\"%s\":%.12g,", name, value);
}

/* The comma behind the last member becomes the end of the object. */
static void close_object(struct buf *out) {
    buf_truncate(out, out->size - 1);
    buf_put_string(out, "},");
}

static void put_count(struct buf *out, const char *name, uint64_t count) {
    buf_put_format(out, "\"%s\":%ju,", name, (uintmax_t)count);
}

static void put_inputs(const struct plan *plan, struct buf *out) {
    buf_put_string(out, "\"inputs\":{");
    for (size_t i = 0; i < CAPACITY_FIELDS_COUNT; i++) {
        double value = capacity_value(&plan->inputs, (enum capacity_field)i);
        buf_put_format(out, "\"%s\":{\"value\":%.12g,\"from\":\"%s\"},", capacity_fields[i].name, value,
                       plan_origin_name(plan->origins[i]));
    }
    close_object(out);
}

static void put_kind(const struct plan_kind *kind, const char *name, struct buf *out) {
    buf_put_format(out, "\"%s\":{", name);
    put_count(out, "urls", kind->urls_count);
    put_count(out, "distances", kind->distances_count);
    put_count(out, "changes", kind->changes_count);
    put(out, "distances_days", kind->distances_days);
    put_count(out, "sizes", kind->sizes_count);
    put(out, "size", kind->sizes);
    put(out, "stored", kind->stored_sizes);
    close_object(out);
}

static void put_measured(const struct plan *plan, struct buf *out) {
    const struct plan_measure *measure = &plan->measure;
    if (!plan->is_measured) {
        buf_put_string(out, "\"measured\":null,");
        return;
    }
    buf_put_string(out, "\"measured\":{\"directory\":");
    buf_put_json(out, bytes_of_string(plan->directory));
    buf_put_byte(out, ',');
    put_count(out, "captures", measure->captures_count);
    put_count(out, "contents", measure->contents_count);
    put_count(out, "duplicates", measure->duplicates_count);
    put_count(out, "pages_read", measure->linking_count);
    put_count(out, "links", measure->links_count);
    put_kind(&measure->pages, "pages", out);
    put_kind(&measure->embeds, "embeds", out);
    close_object(out);
}

static void put_table(const struct capacity *capacity, struct buf *out) {
    static const char *const names[CAPACITY_ROWS_COUNT] = {
        [CAPACITY_SNAPSHOT_PAGES] = "snapshot_pages",
        [CAPACITY_SNAPSHOT_EMBEDS] = "snapshot_embeds",
        [CAPACITY_SNAPSHOT] = "snapshot",
        [CAPACITY_DAY_PAGES_CHANGED] = "day_pages_changed",
        [CAPACITY_DAY_PAGES_ADDED] = "day_pages_added",
        [CAPACITY_DAY_PAGES] = "day_pages",
        [CAPACITY_DAY_EMBEDS] = "day_embeds",
        [CAPACITY_DAY] = "day",
        [CAPACITY_MONTH_PAGES] = "month_pages",
        [CAPACITY_MONTH_EMBEDS] = "month_embeds",
        [CAPACITY_MONTH] = "month",
    };
    buf_put_string(out, "\"table\":{");
    for (size_t i = 0; i < CAPACITY_ROWS_COUNT; i++) {
        buf_put_format(out, "\"%s\":{", names[i]);
        put(out, "objects", capacity->rows[i].objects_count);
        put(out, "size", capacity->rows[i].size);
        put(out, "stored", capacity->rows[i].stored_size);
        close_object(out);
    }
    close_object(out);
}

static void put_storage(const struct capacity *capacity, struct buf *out) {
    buf_put_string(out, "\"storage\":{");
    put(out, "stored", capacity->stored_size);
    put(out, "replicated", capacity->replicated_size);
    put(out, "copies", capacity->copies);
    put(out, "nodes_needed", capacity->nodes_needed);
    put(out, "nodes", capacity->nodes_count);
    put(out, "disk", capacity->disk_size);
    put(out, "disk_needed", capacity->disk_needed);
    put(out, "held", capacity->held_size);
    put(out, "filled", capacity->filled_size);
    put(out, "months_until_full", capacity->months_until_full);
    close_object(out);
}

static void put_node_day(const struct capacity *capacity, struct buf *out) {
    buf_put_string(out, "\"node_day\":{");
    put(out, "urls", capacity->urls_per_node);
    put(out, "requests", capacity->requests_count);
    put(out, "downloads", capacity->downloads_size);
    put(out, "requests_up", capacity->requests_up_size);
    put(out, "requests_down", capacity->requests_down_size);
    put(out, "links", capacity->links_size);
    put(out, "copies", capacity->copies_size);
    put(out, "repair", capacity->repair_size);
    put(out, "catch_up", capacity->catch_up_size);
    close_object(out);
}

static void put_rate(struct buf *out, const char *name, struct capacity_rate rate) {
    buf_put_format(out, "\"%s\":{", name);
    put(out, "down", rate.down_kbps);
    put(out, "up", rate.up_kbps);
    close_object(out);
}

static void put_bandwidth(const struct capacity *capacity, struct buf *out) {
    buf_put_string(out, "\"bandwidth\":{");
    put_rate(out, "downloads", capacity->downloads);
    put_rate(out, "links", capacity->links);
    put_rate(out, "copying", capacity->copying);
    put_rate(out, "crawling", capacity->crawl_loop);
    put_rate(out, "repair", capacity->repair);
    put_rate(out, "total", capacity->total);
    put_rate(out, "repair_mean", capacity->repair_mean);
    put(out, "ring_down", capacity->ring_down_kbps);
    close_object(out);
}

static void put_copies(const struct capacity *capacity, struct buf *out) {
    buf_put_string(out, "\"keeping\":{");
    put(out, "unavailable", capacity->unavailable);
    put(out, "lost_in_repair", capacity->lost_in_repair);
    put(out, "time_to_loss_days", capacity->time_to_loss_days);
    put(out, "lost_in_year", capacity->lost_in_year);
    put(out, "lost_with_third", capacity->lost_with_third);
    put(out, "repair_interval_days", capacity->repair_interval_days);
    put(out, "lifetime_needed_days", capacity->lifetime_needed_days);
    put(out, "fill_days", capacity->fill_days);
    put(out, "sync_thesis", capacity->sync_thesis_size);
    put(out, "sync_thesis_directory", capacity->sync_directory_size);
    close_object(out);
}

static void put_links(const struct plan *plan, struct buf *out) {
    const struct capacity *capacity = &plan->capacity;
    buf_put_string(out, "\"links\":{");
    put(out, "hops", capacity->lookup_hops);
    put(out, "direct_lookup", capacity->link_direct_size);
    put(out, "ring_walk", capacity->link_walk_size);
    put(out, "ours", CAPACITY_LINK_SIZE);
    put(out, "used", plan->inputs.link_size);
    put(out, "gathered", capacity->walk_links_count);
    put(out, "buffer", capacity->walk_buffer_size);
    put(out, "seen_list", capacity->seen_list_size);
    close_object(out);
}

static void put_notes(const struct plan *plan, struct buf *out) {
    struct bytes rest = buf_bytes(&plan->notes);
    struct bytes note;
    bool is_first = true;
    buf_put_string(out, "\"notes\":[");
    while (bytes_split(&rest, '\n', &note)) {
        if (note.size > 0) {
            buf_put_string(out, is_first ? "" : ",");
            buf_put_json(out, note);
            is_first = false;
        }
    }
    buf_put_string(out, "]}\n");
}

void plan_put_json(const struct plan *plan, struct buf *out) {
    buf_put_format(out, "{\"preset\":\"%s\",", plan_presets[plan->preset]);
    put_inputs(plan, out);
    put_measured(plan, out);
    put_table(&plan->capacity, out);
    put_storage(&plan->capacity, out);
    put_node_day(&plan->capacity, out);
    put_bandwidth(&plan->capacity, out);
    put_copies(&plan->capacity, out);
    put_links(plan, out);
    put_notes(plan, out);
}
