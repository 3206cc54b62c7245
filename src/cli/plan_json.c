#include "cli/plan.h"

#include "base/json.h"

/* Enough digits that nothing is lost that anybody could use; every figure is finite
 * (protocol/copies/capacity.h). */
static void put(struct json *json, const char *name, double value) {
    json_digits(json, name, value, 12);
}

struct figure {
    const char *name;
    double value;
};

static void put_figures(struct json *json, const char *name, const struct figure *figures, size_t count) {
    json_open(json, name);
    for (size_t i = 0; i < count; i++) {
        put(json, figures[i].name, figures[i].value);
    }
    json_close(json);
}

#define PUT_FIGURES(json, name, ...)                                  \
    put_figures((json), (name), (const struct figure[]){__VA_ARGS__}, \
                sizeof((const struct figure[]){__VA_ARGS__}) / sizeof(struct figure))

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
    json_count(json, "read", kind->read_count);
    put(json, "received", kind->received_size);
    put(json, "decoded", kind->decoded_size);
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
    json_count(json, "witnessed", measure->witnessed_count);
    json_count(json, "witnessed_visits", measure->rounds_count);
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
        const struct capacity_volume *row = &capacity->rows[i];
        PUT_FIGURES(json, names[i], {"objects", row->objects_count}, {"size", row->size},
                    {"stored", row->stored_size});
    }
    json_close(json);
}

static void put_storage(const struct capacity *capacity, struct json *json) {
    PUT_FIGURES(json, "storage", {"unchanged_visits_day", capacity->visits_count},
                {"unchanged_visits_day_size", capacity->visits_size}, {"stored", capacity->stored_size},
                {"replicated", capacity->replicated_size}, {"copies", capacity->copies},
                {"nodes_needed", capacity->nodes_needed}, {"nodes", capacity->nodes_count},
                {"disk", capacity->disk_size}, {"disk_needed", capacity->disk_needed},
                {"held", capacity->held_size}, {"filled", capacity->filled_size},
                {"months_until_full", capacity->months_until_full});
}

static void put_node_day(const struct capacity *capacity, struct json *json) {
    PUT_FIGURES(json, "node_day", {"urls", capacity->urls_per_node}, {"requests", capacity->requests_count},
                {"downloads", capacity->downloads_size}, {"requests_up", capacity->requests_up_size},
                {"requests_down", capacity->requests_down_size}, {"links", capacity->links_size},
                {"copies", capacity->copies_size}, {"repair", capacity->repair_size},
                {"catch_up", capacity->catch_up_size});
}

static void json_put_rate(struct json *json, const char *name, struct capacity_rate rate) {
    PUT_FIGURES(json, name, {"down", rate.down_kbps}, {"up", rate.up_kbps});
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
    PUT_FIGURES(json, "keeping", {"unavailable", capacity->unavailable},
                {"lost_in_repair", capacity->lost_in_repair},
                {"time_to_loss_days", capacity->time_to_loss_days}, {"lost_in_year", capacity->lost_in_year},
                {"lost_with_third", capacity->lost_with_third},
                {"repair_interval_days", capacity->repair_interval_days},
                {"lifetime_needed_days", capacity->lifetime_needed_days}, {"fill_days", capacity->fill_days},
                {"sync_thesis", capacity->sync_thesis_size},
                {"sync_thesis_directory", capacity->sync_directory_size});
}

static void put_links(const struct plan *plan, struct json *json) {
    const struct capacity *capacity = &plan->capacity;
    PUT_FIGURES(json, "links", {"hops", capacity->lookup_hops}, {"direct_lookup", capacity->link_direct_size},
                {"ring_walk", capacity->link_walk_size}, {"ours", CAPACITY_LINK_SIZE},
                {"used", plan->inputs.link_size}, {"gathered", capacity->walk_links_count},
                {"buffer", capacity->walk_buffer_size}, {"seen_list", capacity->seen_list_size});
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
