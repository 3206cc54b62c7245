#include <stdio.h>

#include "base/utc.h"
#include "replay/pages/pages_parts.h"
#include "replay/survey/survey.h"

enum { HOSTS_MAX = 1000 };

static void put_total(struct buf *json, const struct survey_total *total) {
    pages_json_number(json, "captures", total->captures_count);
    pages_json_number(json, "revisits", total->revisits_count);
    pages_json_number(json, "size", total->size);
    pages_json_number(json, "saved_size", total->saved_size);
    pages_json_number(json, "stored_size", total->stored_size);
}

static void put_hosts(struct buf *json, struct archive_reader *reader, const struct survey_snapshot *snapshot,
                      size_t from) {
    size_t count = 0;
    buf_put_string(json, ",\"hosts\":[");
    for (size_t i = from; i < snapshot->hosts_count && i < from + HOSTS_MAX; i++) {
        const struct survey_host *host = snapshot->hosts[SURVEY_BY_CAPTURES][i];
        if (!pages_host_is_seen(reader, host)) {
            continue;
        }
        buf_put_string(json, count++ == 0 ? "{" : ",{");
        pages_json_text(json, "host", host->name);
        put_total(json, &host->total);
        pages_json_time(json, "first", host->first_us);
        pages_json_time(json, "last", host->last_us);
        buf_put_string(json, "}");
    }
    buf_put_string(json, "]");
}

static void put_types(struct buf *json, const struct survey_snapshot *snapshot) {
    buf_put_string(json, ",\"types\":[");
    for (size_t i = 0; i < snapshot->types_count; i++) {
        buf_put_string(json, i == 0 ? "{" : ",{");
        pages_json_text(json, "type", snapshot->types[i].name);
        put_total(json, &snapshot->types[i].total);
        buf_put_string(json, "}");
    }
    buf_put_string(json, "],\"statuses\":{");
    for (size_t i = 0; i < SURVEY_STATUSES_MAX; i++) {
        if (snapshot->statuses[i] > 0) {
            char name[8];
            snprintf(name, sizeof name, "%zu", i);
            pages_json_number(json, name, snapshot->statuses[i]);
        }
    }
    buf_put_string(json, "}");
}

static void put_months(struct buf *json, const struct survey_snapshot *snapshot) {
    buf_put_string(json, ",\"months\":[");
    for (size_t i = 0; i < snapshot->months_count; i++) {
        const struct survey_month *month = &snapshot->months[i];
        buf_put_format(json, "%s{\"month\":\"%04d-%02d\"", i == 0 ? "" : ",", month->month / 12,
                       month->month % 12 + 1);
        pages_json_number(json, "captures", month->captures_count);
        pages_json_number(json, "size", month->size);
        buf_put_string(json, "}");
    }
    buf_put_string(json, "]");
}

static void put_volumes(struct buf *json, const struct survey_snapshot *snapshot) {
    buf_put_string(json, ",\"volumes\":[");
    for (size_t i = 0; i < snapshot->volumes_count; i++) {
        const struct survey_volume *volume = &snapshot->volumes[i];
        buf_put_string(json, i == 0 ? "{" : ",{");
        pages_json_number(json, "volume", volume->number);
        pages_json_switch(json, "remote", volume->is_remote);
        pages_json_switch(json, "up", volume->is_up);
        pages_json_number(json, "segments", volume->stat.segments_count);
        pages_json_number(json, "size", volume->stat.size);
        pages_json_number(json, "dead_size", volume->stat.dead_size);
        pages_json_number(json, "index_size", volume->stat.index_size);
        buf_put_string(json, "}");
    }
    buf_put_string(json, "]");
}

void pages_holdings_json(struct http_request *request) {
    struct replay *replay = http_request_context(request);
    struct archive_reader *reader = archive_reader_begin(replay->archive);
    const struct survey_snapshot *snapshot = survey_get(replay->survey);
    if (reader == NULL || snapshot == NULL) {
        http_answer_error(request, reader == NULL ? ERR_MEMORY : ERR_BUSY, "the archive is being counted");
    } else {
        struct buf json;
        char text[UTC_RFC3339_SIZE];
        size_t from = (size_t)pages_argument_number(request, "from", SURVEY_HOSTS_MAX, 0);
        buf_init(&json, PAGES_JSON_SIZE_MAX);
        buf_put_string(&json, "{");
        pages_json_text(&json, "counted_at", bytes_of_string(utc_format_rfc3339(snapshot->made_us, text)));
        pages_json_switch(&json, "complete", snapshot->is_complete);
        pages_json_switch(&json, "partial", snapshot->is_partial);
        put_total(&json, &snapshot->total);
        if (snapshot->total.captures_count > 0) {
            pages_json_time(&json, "first", snapshot->first_us);
            pages_json_time(&json, "last", snapshot->last_us);
        }
        pages_json_number(&json, "hosts_count", snapshot->hosts_count);
        put_hosts(&json, reader, snapshot, from);
        put_types(&json, snapshot);
        put_months(&json, snapshot);
        put_volumes(&json, snapshot);
        buf_put_string(&json, "}");
        pages_answer_json(request, &json);
    }
    survey_release(snapshot);
    if (reader != NULL) {
        archive_reader_end(reader);
    }
}
