#include "replay/admin/job_view.h"

void job_view_put(const struct job_view *job, struct json *json) {
    json_open(json, NULL);
    json_text(json, "job", job->name);
    json_text(json, "state", job->state);
    if (job->progress.size > sizeof "{}" - 1) {
        json_members(json, job->progress);
    }
    json_open_list(json, "seeds");
    for (size_t i = 0; i < job->seeds_shown_count; i++) {
        json_bytes(json, NULL, job->seeds[i]);
    }
    json_close(json);
    json_count(json, "seeds_count", job->seeds_count);
    json_text(json, "scope", job->scope);
    json_count(json, "depth", job->depth);
    json_bool(json, "paused", job->is_paused);
    json_count(json, "period_seconds", job->period_s);
    json_close(json);
}

void save_view_put(const struct save_view *save, struct json *json) {
    json_open(json, NULL);
    json_text(json, "job_id", save->id);
    json_text(json, "status", save->status);
    json_text(json, "original_url", save->url);
    if (save->timestamp != NULL) {
        json_text(json, "timestamp", save->timestamp);
    }
    if (save->message != NULL) {
        json_text(json, "message", save->message);
    }
    JSON_COUNTS(json, {"stored", save->stored_count}, {"waiting", save->waiting_count},
                {"failed", save->failed_count});
    json_close(json);
}
