#include "cli/plan.h"

#include "base/json.h"

/* Enough digits that nothing is lost that anybody could use; every figure is finite
 * (protocol/copies/capacity.h). */
static void put(struct json *json, const char *name, double value) {
    json_digits(json, name, value, 12);
}

static void put_inputs(const struct plan *plan, struct json *json) {
    json_open(json, "inputs");
    for (size_t i = 0; i < CAPACITY_FIELDS_COUNT; i++) {
        double value = capacity_value(&plan->inputs, (enum capacity_field)i);
        json_open(json, capacity_fields[i].name);
        put(json, "value", value);
        json_text(json, "from", plan_origin_name(plan->origins[i]));
        json_close(json);
    }
    json_close(json);
}

static void put_kind(const struct plan_kind *kind, const char *name, struct json *json) {
    json_open(json, name);
    json_count(json, "urls", kind->urls_count);
    json_count(json, "distances", kind->distances_count);
    json_count(json, "changes", kind->changes_count);
    put(json, "distances_days", kind->distances_days);
    json_count(json, "sizes", kind->sizes_count);
    put(json, "size", kind->sizes);
    put(json, "stored", kind->stored_sizes);
    json_close(json);
}

static void put_measured(const struct plan *plan, struct json *json) {
    const struct plan_measure *measure = &plan->measure;
    if (!plan->is_measured) {
        json_none(json, "measured");
        return;
    }
    json_open(json, "measured");
    json_text(json, "directory", plan->directory);
    json_count(json, "captures", measure->captures_count);
    json_count(json, "contents", measure->contents_count);
    json_count(json, "duplicates", measure->duplicates_count);
    json_count(json, "pages_read", measure->linking_count);
    json_count(json, "links", measure->links_count);
    json_count(json, "unchanged_visits", measure->visits_count);
    put(json, "unchanged_visits_size", measure->visits_size);
    put(json, "added_urls", measure->added_count);
    put(json, "added_days", measure->added_days);
    put_kind(&measure->pages, "pages", json);
    put_kind(&measure->embeds, "embeds", json);
    json_close(json);
}

static void put_table(const struct capacity *capacity, struct json *json) {
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
    json_open(json, "table");
    for (size_t i = 0; i < CAPACITY_ROWS_COUNT; i++) {
        json_open(json, names[i]);
        put(json, "objects", capacity->rows[i].objects_count);
        put(json, "size", capacity->rows[i].size);
        put(json, "stored", capacity->rows[i].stored_size);
        json_close(json);
    }
    json_close(json);
}

static void put_storage(const struct capacity *capacity, struct json *json) {
    json_open(json, "storage");
    put(json, "unchanged_visits_day", capacity->visits_count);
    put(json, "unchanged_visits_day_size", capacity->visits_size);
    put(json, "stored", capacity->stored_size);
    put(json, "replicated", capacity->replicated_size);
    put(json, "copies", capacity->copies);
    put(json, "nodes_needed", capacity->nodes_needed);
    put(json, "nodes", capacity->nodes_count);
    put(json, "disk", capacity->disk_size);
    put(json, "disk_needed", capacity->disk_needed);
    put(json, "held", capacity->held_size);
    put(json, "filled", capacity->filled_size);
    put(json, "months_until_full", capacity->months_until_full);
    json_close(json);
}

static void put_node_day(const struct capacity *capacity, struct json *json) {
    json_open(json, "node_day");
    put(json, "urls", capacity->urls_per_node);
    put(json, "requests", capacity->requests_count);
    put(json, "downloads", capacity->downloads_size);
    put(json, "requests_up", capacity->requests_up_size);
    put(json, "requests_down", capacity->requests_down_size);
    put(json, "links", capacity->links_size);
    put(json, "copies", capacity->copies_size);
    put(json, "repair", capacity->repair_size);
    put(json, "catch_up", capacity->catch_up_size);
    json_close(json);
}

static void json_put_rate(struct json *json, const char *name, struct capacity_rate rate) {
    json_open(json, name);
    put(json, "down", rate.down_kbps);
    put(json, "up", rate.up_kbps);
    json_close(json);
}

static void put_bandwidth(const struct capacity *capacity, struct json *json) {
    json_open(json, "bandwidth");
    json_put_rate(json, "downloads", capacity->downloads);
    json_put_rate(json, "links", capacity->links);
    json_put_rate(json, "copying", capacity->copying);
    json_put_rate(json, "crawling", capacity->crawling);
    json_put_rate(json, "repair", capacity->repair);
    json_put_rate(json, "total", capacity->total);
    json_put_rate(json, "repair_mean", capacity->repair_mean);
    put(json, "ring_down", capacity->ring_down_kbps);
    json_close(json);
}

static void put_copies(const struct capacity *capacity, struct json *json) {
    json_open(json, "keeping");
    put(json, "unavailable", capacity->unavailable);
    put(json, "lost_in_repair", capacity->lost_in_repair);
    put(json, "time_to_loss_days", capacity->time_to_loss_days);
    put(json, "lost_in_year", capacity->lost_in_year);
    put(json, "lost_with_third", capacity->lost_with_third);
    put(json, "repair_interval_days", capacity->repair_interval_days);
    put(json, "lifetime_needed_days", capacity->lifetime_needed_days);
    put(json, "fill_days", capacity->fill_days);
    put(json, "sync_thesis", capacity->sync_thesis_size);
    put(json, "sync_thesis_directory", capacity->sync_directory_size);
    json_close(json);
}

static void put_links(const struct plan *plan, struct json *json) {
    const struct capacity *capacity = &plan->capacity;
    json_open(json, "links");
    put(json, "hops", capacity->lookup_hops);
    put(json, "direct_lookup", capacity->link_direct_size);
    put(json, "ring_walk", capacity->link_walk_size);
    put(json, "ours", CAPACITY_LINK_SIZE);
    put(json, "used", plan->inputs.link_size);
    put(json, "gathered", capacity->walk_links_count);
    put(json, "buffer", capacity->walk_buffer_size);
    put(json, "seen_list", capacity->seen_list_size);
    json_close(json);
}

static void put_notes(const struct plan *plan, struct json *json) {
    struct bytes rest = buf_bytes(&plan->notes);
    struct bytes note;
    json_open_list(json, "notes");
    while (bytes_split(&rest, '\n', &note)) {
        if (note.size > 0) {
            json_bytes(json, NULL, note);
        }
    }
    json_close(json);
}

void plan_put_json(const struct plan *plan, struct buf *out) {
    struct json writer;
    struct json *json = &writer;
    json_begin(json, out);
    json_text(json, "preset", plan_presets[plan->preset]);
    put_inputs(plan, json);
    put_measured(plan, json);
    put_table(&plan->capacity, json);
    put_storage(&plan->capacity, json);
    put_node_day(&plan->capacity, json);
    put_bandwidth(&plan->capacity, json);
    put_copies(&plan->capacity, json);
    put_links(plan, json);
    put_notes(plan, json);
    json_end(json);
    buf_put_byte(out, '\n');
}
