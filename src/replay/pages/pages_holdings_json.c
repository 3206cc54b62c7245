#include <stdio.h>

#include "base/json.h"
#include "base/utc.h"
#include "replay/pages/pages_parts.h"
#include "replay/survey/survey.h"

enum { HOSTS_MAX = 1000 };

static void put_total(struct json *json, const struct survey_total *total) {
    json_count(json, "captures", total->captures_count);
    json_count(json, "revisits", total->revisits_count);
    json_count(json, "size", total->size);
    json_count(json, "saved_size", total->saved_size);
    json_count(json, "stored_size", total->stored_size);
}

static void put_hosts(struct json *json, struct archive_reader *reader,
                      const struct survey_snapshot *snapshot, size_t from) {
    json_open_list(json, "hosts");
    for (size_t i = from; i < snapshot->hosts_count && i < from + HOSTS_MAX; i++) {
        const struct survey_host *host = snapshot->hosts[SURVEY_BY_CAPTURES][i];
        if (!pages_host_is_seen(reader, host)) {
            continue;
        }
        json_open(json, NULL);
        json_bytes(json, "host", host->name);
        put_total(json, &host->total);
        json_timestamp(json, "first", host->first_us);
        json_timestamp(json, "last", host->last_us);
        json_close(json);
    }
    json_close(json);
}

static void put_types(struct json *json, const struct survey_snapshot *snapshot) {
    json_open_list(json, "types");
    for (size_t i = 0; i < snapshot->types_count; i++) {
        json_open(json, NULL);
        json_bytes(json, "type", snapshot->types[i].name);
        put_total(json, &snapshot->types[i].total);
        json_close(json);
    }
    json_close(json);
    json_open(json, "statuses");
    for (size_t i = 0; i < SURVEY_STATUSES_MAX; i++) {
        if (snapshot->statuses[i] > 0) {
            char name[8];
            snprintf(name, sizeof name, "%zu", i);
            json_count(json, name, snapshot->statuses[i]);
        }
    }
    json_close(json);
}

static void put_months(struct json *json, const struct survey_snapshot *snapshot) {
    json_open_list(json, "months");
    for (size_t i = 0; i < snapshot->months_count; i++) {
        const struct survey_month *month = &snapshot->months[i];
        json_open(json, NULL);
        json_format(json, "month", "%04d-%02d", month->month / 12, month->month % 12 + 1);
        json_count(json, "captures", month->captures_count);
        json_count(json, "size", month->size);
        json_close(json);
    }
    json_close(json);
}

static void put_volumes(struct json *json, const struct survey_snapshot *snapshot) {
    json_open_list(json, "volumes");
    for (size_t i = 0; i < snapshot->volumes_count; i++) {
        const struct survey_volume *volume = &snapshot->volumes[i];
        json_open(json, NULL);
        json_count(json, "volume", volume->number);
        json_bool(json, "remote", volume->is_remote);
        json_bool(json, "up", volume->is_up);
        json_count(json, "segments", volume->stat.segments_count);
        json_count(json, "size", volume->stat.size);
        json_count(json, "dead_size", volume->stat.dead_size);
        json_count(json, "index_size", volume->stat.index_size);
        json_close(json);
    }
    json_close(json);
}

void pages_holdings_json(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct archive_reader *reader = archive_reader_begin(replay->archive);
    const struct survey_snapshot *snapshot = survey_get(replay->survey);
    if (reader == NULL || snapshot == NULL) {
        http_answer_error(request, reader == NULL ? ERR_MEMORY : ERR_BUSY, "the archive is being counted");
    } else {
        struct buf text;
        struct json json;
        size_t from = (size_t)pages_argument_number(request, "from", SURVEY_HOSTS_MAX, 0);
        buf_init(&text, PAGES_JSON_SIZE_MAX);
        json_begin(&json, &text);
        json_time(&json, "counted_at", snapshot->made_us);
        json_bool(&json, "complete", snapshot->is_complete);
        json_bool(&json, "partial", snapshot->is_partial);
        put_total(&json, &snapshot->total);
        if (snapshot->total.captures_count > 0) {
            json_timestamp(&json, "first", snapshot->first_us);
            json_timestamp(&json, "last", snapshot->last_us);
        }
        json_count(&json, "hosts_count", snapshot->hosts_count);
        put_hosts(&json, reader, snapshot, from);
        put_types(&json, snapshot);
        put_months(&json, snapshot);
        put_volumes(&json, snapshot);
        json_end(&json);
        http_answer_json(request, PAGES_OK, "no-cache", &text);
    }
    survey_release(snapshot);
    if (reader != NULL) {
        archive_reader_end(reader);
    }
}
