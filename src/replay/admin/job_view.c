#include "replay/admin/job_view.h"

#include "replay/admin/ring_text.h"

enum { RING_TEXT_SIZE_MAX = 1024 };

void job_view_put_ring(const struct ring_view_job *job, uint64_t unreported_count, struct json *json) {
    struct buf text;
    buf_init(&text, RING_TEXT_SIZE_MAX);
    ring_text_put_job(job, unreported_count, &text);
    JSON_COUNTS(json, {"nodes", job->nodes_count}, {"running", job->running_count},
                {"missing", unreported_count}, {"known", job->known_count}, {"waiting", job->waiting_count},
                {"stored", job->stored_count}, {"failed", job->failed_count},
                {"received_bytes", job->received_size});
    if (text.err == ERR_OK) {
        json_bytes(json, "text", buf_bytes(&text));
    }
    buf_done(&text);
}

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
    if (job->ring != NULL) {
        json_open(json, "ring");
        job_view_put_ring(job->ring, job->ring_unreported_count, json);
        json_close(json);
    }
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
