#include "replay/admin/node_status.h"

#include <string.h>

const struct node_status_number *node_status_find(const struct node_status *status, const char *path) {
    for (size_t i = 0; i < status->numbers_count; i++) {
        if (strcmp(status->numbers[i].path, path) == 0) {
            return &status->numbers[i];
        }
    }
    return NULL;
}

const char *node_status_volume_state(const struct node_status_volume *volume) {
    enum err err = volume->volume.err;
    return err == ERR_OK ? "up" : err_is_full(err) ? "full" : "down";
}

/* ---- JSON ---- */

/* The numbers of a section; those of no section if it is empty. */
static void put_numbers(const struct node_status *status, struct bytes section, struct json *json) {
    for (size_t i = 0; i < status->numbers_count; i++) {
        const struct node_status_number *number = &status->numbers[i];
        struct bytes path = bytes_of_string(number->path);
        size_t dot = bytes_find_byte(path, '.');
        const char *name = number->path + (dot < path.size ? dot + 1 : 0);
        if (bytes_equal(bytes_slice(path, 0, dot < path.size ? dot : 0), section)) {
            json_decimal(json, name, number->value, number->decimals);
        }
    }
}

static void node_status_put_sentences(const struct node_status_sentence *sentences, size_t count,
                                      const char *about, const char *text, struct json *json) {
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL);
        json_text(json, about, sentences[i].about);
        json_text(json, text, sentences[i].text);
        json_close(json);
    }
    json_close(json);
}

static void put_crawl(const struct node_status *status, struct json *json) {
    json_text(json, "hold", status->hold);
    json_open_list(json, "waiting");
    node_status_put_sentences(status->waiting, status->waiting_count, "host", "why", json);
}

static void put_store(const struct node_status *status, struct json *json) {
    json_open_list(json, "volumes");
    for (size_t i = 0; i < status->volumes_count; i++) {
        const struct node_status_volume *item = &status->volumes[i];
        const struct instance_volume *volume = &item->volume;
        json_open(json, NULL);
        json_count(json, "number", volume->number);
        json_text(json, "place", volume->place);
        json_bool(json, "remote", volume->is_remote);
        json_bool(json, "writable", volume->is_writable);
        json_count(json, "up", volume->err == ERR_OK);
        json_text(json, "state", node_status_volume_state(item));
        json_text(json, "reason", volume->err == ERR_OK ? "" : volume->reason);
        if (item->has_stat) {
            JSON_COUNTS(json, {"captures", item->stat.captures_count}, {"bytes", item->stat.size},
                        {"segments", item->stat.segments_count});
        }
        if (item->has_disk) {
            JSON_COUNTS(json, {"free_bytes", item->free_size}, {"disk_bytes", item->disk_size});
        }
        json_close(json);
    }
    json_close(json);
}

static void node_status_put_counts(struct json *json, const char *name, const uint64_t *counts,
                                   size_t count) {
    json_open_list(json, name);
    for (size_t i = 0; i < count; i++) {
        json_count(json, NULL, counts[i]);
    }
    json_close(json);
}

static void put_http(const struct node_status *status, struct json *json) {
    json_open_list(json, "delay_bounds_seconds");
    for (size_t i = 0; i < HTTP_DELAYS_COUNT; i++) {
        json_digits(json, NULL, http_delays_us[i] / 1e6, 6);
    }
    json_close(json);
    json_open_list(json, "pages");
    for (size_t i = 0; i < status->pages_count; i++) {
        const struct node_status_page *page = &status->pages[i];
        json_open(json, NULL);
        json_bytes(json, "page", page->name);
        json_decimal(json, "seconds", (double)page->stat.delay_sum_us / 1e6, 6);
        json_count(json, "sent_bytes", page->stat.sent_size);
        node_status_put_counts(json, "answers", page->stat.statuses, HTTP_STATUSES_COUNT);
        node_status_put_counts(json, "delays", page->stat.delays, HTTP_DELAYS_COUNT + 1);
        json_close(json);
    }
    json_close(json);
}

static void put_search(const struct node_status *status, struct json *json) {
    json_bool(json, "enabled", status->has_search);
    if (status->has_search) {
        json_text(json, "error", status->search_error);
    }
}

void node_status_put(const struct node_status *status, struct buf *out) {
    static const struct {
        const char *name;
        void (*put)(const struct node_status *status, struct json *json);
    } sections[] = {{"crawl", put_crawl}, {"store", put_store}, {"http", put_http}, {"search", put_search},
                    {"process", NULL},    {"parsers", NULL},    {"rewritten", NULL}};
    struct json json;
    json_begin(&json, out);
    json_count(&json, "version", 1);
    json_text(&json, "title", status->title);
    json_time(&json, "time", status->time_us);
    put_numbers(status, BYTES(""), &json);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        json_open(&json, sections[i].name);
        put_numbers(status, bytes_of_string(sections[i].name), &json);
        if (sections[i].put != NULL) {
            sections[i].put(status, &json);
        }
        json_close(&json);
    }
    json_open_list(&json, "slow");
    node_status_put_sentences(status->slow, status->slow_count, "what", "text", &json);
    json_end(&json);
    buf_put_byte(out, '\n');
}
