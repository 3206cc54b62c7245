/* What people and programs see of mirroring. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "node/mirror/mirror_driver_state.h"
#include "replay/admin/metrics.h"
#include "replay/site/fill.h"

static void mirror_put_version(const char *title, const struct version *version, struct json *json) {
    if (version == NULL) {
        json_none(json, title);
        return;
    }
    json_open(json, title);
    json_count(json, "number", version->number);
    json_signed(json, "time_us", version->time_us);
    JSON_COUNTS(json, {"files", version->totals.files_count},
                {"directories", version->totals.directories_count}, {"links", version->totals.links_count},
                {"size", version->totals.content_size}, {"manifest_size", version->totals.manifest_size});
    json_close(json);
}

static void put_source(const struct mirror_source_status *status, struct json *json) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    json_open(json, NULL);
    json_text(json, "address", address_format(&status->source.peer.address, place));
    json_text(json, "key", identity_key_format(status->source.peer.key, key));
    json_count(json, "number", status->number);
    json_bool(json, "fetching", status->is_fetching);
    json_bool(json, "barred", status->is_barred);
    JSON_COUNTS(json, {"bandwidth", status->source.bandwidth}, {"delay_us", status->source.delay_us},
                {"fetched_size", status->fetched_size}, {"failed", status->failed_count});
    json_close(json);
}

static void put_progress(const struct mirror_driver_mirror *mirror, struct json *json) {
    const struct mirror_counters *counters = mirror_counters(mirror->mirror);
    uint64_t rate = 0;
    if (mirror_phase(mirror->mirror) == MIRROR_FETCHING) {
        uint64_t took_us = mirror_driver_now_us(mirror->driver) - mirror->begun_us;
        rate = (counters->fetched_size - mirror->begun_size) * 1000 / (took_us / 1000 + 1);
    }
    JSON_COUNTS(json, {"left_size", mirror->wanted.left_size}, {"rate", rate},
                {"fetched_size", counters->fetched_size}, {"batches", counters->batches_count},
                {"again", counters->again_count}, {"late", counters->late_count},
                {"needed", counters->needed_count}, {"begun", counters->begun_count},
                {"applied", counters->applied_count}, {"barred", counters->barred_count});
}

/* What became of those that people named. */
static void put_named(const struct mirror_driver_mirror *mirror, struct json *json) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    json_open_list(json, "named");
    for (size_t i = 0; i < mirror->setup.sources_count; i++) {
        const struct mirror_driver_named *named = &mirror->named[i];
        json_open(json, NULL);
        json_text(json, "address", address_format(&mirror->setup.sources[i], place));
        json_text(json, "state",
                  named->is_known                ? "known"
                  : named->err == ERR_PERMISSION ? "refuses"
                  : named->err != ERR_OK         ? "silent"
                                                 : "asked");
        json_close(json);
    }
    json_close(json);
}

static const char *role_of(const struct mirror_driver_mirror *mirror) {
    return collection_setup_publishes(&mirror->setup) ? "publisher" : "subscriber";
}

static const char *mirror_state_of(const struct mirror_driver_mirror *mirror) {
    return mirror->mirror != NULL        ? mirror_phases[mirror_phase(mirror->mirror)]
           : mirror->setup.has_publisher ? "closed"
                                         : "looking";
}

static void mirror_put_mirror(const struct mirror_driver_mirror *mirror, struct json *json) {
    const struct mirror_driver *driver = mirror->driver;
    char key[IDENTITY_TEXT_SIZE] = "";
    if (mirror->setup.has_publisher) {
        identity_key_format(mirror->setup.publisher, key);
    }
    json_open(json, NULL);
    json_text(json, "name", mirror->setup.name);
    json_text(json, "publisher", key);
    json_text(json, "role", role_of(mirror));
    json_text(json, "state", mirror_state_of(mirror));
    json_bool(json, "public", mirror->setup.readers.is_public);
    json_count(json, "readers", mirror->setup.readers.count);
    if (mirror->mirror != NULL) {
        mirror_put_version("held", mirror_held(mirror->mirror), json);
        mirror_put_version("target", mirror_target(mirror->mirror), json);
        mirror_put_version("newest", mirror_newest(mirror->mirror), json);
        put_progress(mirror, json);
    }
    JSON_COUNTS(json, {"given_size", mirror->given_size}, {"answers", mirror->answers_count},
                {"withheld", mirror->withheld_count});
    put_named(mirror, json);
    if (driver->config.put_archive != NULL) {
        driver->config.put_archive(driver->config.context, mirror->setup.name, json);
    }
    json_open_list(json, "sources");
    size_t count = mirror->mirror != NULL ? mirror_sources_count(mirror->mirror) : 0;
    for (size_t i = 0; i < count; i++) {
        struct mirror_source_status status;
        mirror_source_at(mirror->mirror, i, mirror_driver_now_us(driver), &status);
        put_source(&status, json);
    }
    json_close(json);
    json_close(json);
}

/* ---- the section of the dashboard ---- */

enum { SHOWN_SIZE_MAX = 256 };

/* The sources that give it just now, or how many could. */
static void view_sources(const struct mirror_driver_mirror *mirror, char out[SHOWN_SIZE_MAX]) {
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    size_t count = mirror->mirror != NULL ? mirror_sources_count(mirror->mirror) : 0;
    size_t size = 0;
    for (size_t i = 0; i < count && size < SHOWN_SIZE_MAX; i++) {
        char address[ADDRESS_TEXT_SIZE_MAX];
        struct mirror_source_status status;
        mirror_source_at(mirror->mirror, i, now_us, &status);
        if (status.is_fetching) {
            size += (size_t)snprintf(out + size, SHOWN_SIZE_MAX - size, "%s%s", size > 0 ? ", " : "from ",
                                     address_format(&status.source.peer.address, address));
        }
    }
    if (size == 0) {
        snprintf(out, SHOWN_SIZE_MAX, "%zu known", count);
    }
}

/* What it does, or until when it may not. */
static void view_state(const struct mirror_driver_mirror *mirror, char out[SHOWN_SIZE_MAX]) {
    const struct mirror_limit *limit = &mirror->driver->limit;
    uint64_t now_us = mirror_driver_now_us(mirror->driver);
    bool has_target = mirror->mirror != NULL && mirror_target(mirror->mirror) != NULL;
    char until[MIRROR_DRIVER_UNTIL_SIZE];
    if (!has_target || mirror_limit_rate(limit, now_us) != 0) {
        snprintf(out, SHOWN_SIZE_MAX, "%s", mirror_state_of(mirror));
    } else if (mirror_driver_rates_until(limit, now_us, until)) {
        snprintf(out, SHOWN_SIZE_MAX, "waits until %s", until);
    } else {
        snprintf(out, SHOWN_SIZE_MAX, "waits");
    }
}

static void show_number(struct sheet *rows, uint64_t number) {
    sheet_html(rows, "<td class=number>");
    if (number > 0) {
        sheet_count(rows, number);
    }
}

static void show_mirror(const struct mirror_driver_mirror *mirror, struct sheet *rows) {
    const struct version *held = mirror->mirror != NULL ? mirror_held(mirror->mirror) : NULL;
    const struct version *newest = mirror->mirror != NULL ? mirror_newest(mirror->mirror) : NULL;
    char state[SHOWN_SIZE_MAX];
    char sources[SHOWN_SIZE_MAX];
    view_state(mirror, state);
    view_sources(mirror, sources);
    FILL(rows, "<tr><td>{string}<td>{html}<td>{html}", {.string = mirror->setup.name},
         {.string = role_of(mirror)}, {.string = state});
    show_number(rows, held != NULL ? held->number : 0);
    show_number(rows, newest != NULL ? newest->number : 0);
    show_number(rows, held != NULL ? held->totals.files_count : 0);
    FILL(rows, "<td class=number>{size}<td>{string}\n",
         {.number = held != NULL ? held->totals.content_size : 0}, {.string = sources});
}

void mirror_driver_show(struct mirror_driver *driver, struct sheet *sheet) {
    pthread_mutex_lock(&driver->lock);
    if (driver->rows.out.size > 0) {
        sheet_html(sheet, "<h2 id=mirrors>Collections</h2>\n<section id=mirrors-live>\n");
        sheet_table_begin(sheet, "Collections that this node publishes or keeps a copy of");
        sheet_html(sheet,
                   "<thead><tr><th class=grow>Name<th>Part<th>State<th class=number>Version here<th "
                   "class=number>Newest<th class=number>Files<th class=number>Size<th>Sources\n<tbody>");
        buf_put(&sheet->out, buf_bytes(&driver->rows.out));
        sheet_table_end(sheet);
        sheet_html(sheet, "</section>\n");
        sheet_script(sheet, "ring.js"); /* reads the section again and again */
    }
    pthread_mutex_unlock(&driver->lock);
}

/* ---- the copy ---- */

/* The lock is held. */
static void put_all(struct mirror_driver *driver, struct json *json) {
    char key[IDENTITY_TEXT_SIZE];
    uint64_t now_us = mirror_driver_now_us(driver);
    json_open(json, NULL);
    json_count(json, "version", 1);
    json_text(json, "key", identity_key_format(driver->config.self.key, key));
    mirror_driver_rates_put(&driver->limit, now_us, json, "download");
    mirror_driver_rates_put(&driver->upload_limit, now_us, json, "upload");
    json_open_list(json, "mirrors");
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        mirror_put_mirror(driver->mirrors[i], json);
    }
    json_close(json);
    json_close(json);
}

/* The lock is held. */
static void put_metrics(const struct mirror_driver *driver, struct buf *out) {
    static const struct metrics_column columns[] = {
        {"mirror_publisher", "1: this node publishes the collection; 0: it has a copy."},
        {"mirror_version", "Version of the collection that is here; 0: none."},
        {"mirror_version_newest", "Newest version that this node knows of."},
        {"mirror_files", "Files of the version that is here."},
        {"mirror_bytes", "Bytes of these files."},
        {"mirror_left_bytes", "Bytes that are still to be fetched."},
        {"mirror_sources", "Nodes from which the collection can be fetched."},
        {"mirror_fetched_bytes_total", "Bytes that were fetched."},
        {"mirror_given_bytes_total", "Bytes that were given to other nodes."},
        {"mirror_sources_barred_total", "Nodes that were barred for what they sent."},
        {"mirror_versions_total", "Versions that were fetched whole."},
    };
    struct metrics_row *rows = calloc(driver->mirrors_count + 1, sizeof *rows);
    for (size_t i = 0; rows != NULL && i < driver->mirrors_count; i++) {
        const struct mirror_driver_mirror *mirror = driver->mirrors[i];
        struct metrics_row *row = &rows[i];
        row->label = mirror->setup.name;
        row->values[0] = collection_setup_publishes(&mirror->setup);
        row->values[8] = mirror->given_size;
        if (mirror->mirror != NULL) {
            const struct version *held = mirror_held(mirror->mirror);
            const struct version *newest = mirror_newest(mirror->mirror);
            const struct mirror_counters *counters = mirror_counters(mirror->mirror);
            row->values[1] = held != NULL ? held->number : 0;
            row->values[2] = newest != NULL ? newest->number : 0;
            row->values[3] = held != NULL ? held->totals.files_count : 0;
            row->values[4] = held != NULL ? held->totals.content_size : 0;
            row->values[5] = mirror->wanted.left_size;
            row->values[6] = mirror_sources_count(mirror->mirror);
            row->values[7] = counters->fetched_size;
            row->values[9] = counters->barred_count;
            row->values[10] = counters->applied_count;
        }
    }
    size_t count = rows != NULL ? driver->mirrors_count : 0;
    metrics_put_rows(out, "mirror", columns, sizeof columns / sizeof *columns, rows, count);
    free(rows);
}

void mirror_driver_put_metrics(struct mirror_driver *driver, struct buf *out) {
    if (driver != NULL) {
        pthread_mutex_lock(&driver->lock);
        buf_put(out, driver->metrics.err == ERR_OK ? buf_bytes(&driver->metrics) : BYTES(""));
        pthread_mutex_unlock(&driver->lock);
    }
}

void mirror_driver_describe(struct mirror_driver *driver) {
    struct json json;
    pthread_mutex_lock(&driver->lock);
    buf_clear(&driver->status);
    json_init(&json, &driver->status);
    put_all(driver, &json);
    buf_clear(&driver->metrics);
    put_metrics(driver, &driver->metrics);
    buf_clear(&driver->rows.out);
    for (size_t i = 0; i < driver->mirrors_count; i++) {
        show_mirror(driver->mirrors[i], &driver->rows);
    }
    pthread_mutex_unlock(&driver->lock);
}

void mirror_driver_put(struct mirror_driver *driver, struct buf *out) {
    struct json json;
    json_init(&json, out);
    if (driver != NULL) {
        pthread_mutex_lock(&driver->lock);
        buf_put(out, driver->status.err == ERR_OK ? buf_bytes(&driver->status) : BYTES(""));
        pthread_mutex_unlock(&driver->lock);
    }
    if (out->size == 0) {
        json_open(&json, NULL);
        json_count(&json, "version", 1);
        json_open_list(&json, "mirrors");
        json_close(&json);
        json_close(&json);
    }
}
