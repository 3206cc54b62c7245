#include "node/admin_api.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "node/crawl/job_files.h"
#include "node/group/group_driver.h"
#include "node/transport/ring_json.h"
#include "replay/admin/metrics.h"
#include "replay/site/sheet.h"

static enum err save(void *context, struct bytes url, char ret_id[ADMIN_PAGES_NAME_SIZE_MAX],
                     struct err_detail *detail) {
    const struct admin_api *work = context;
    return save_requests_begin(work->save_requests, url, ret_id, detail);
}

static enum err get_save(void *context, struct bytes id, struct arena *arena, struct save_view *ret_save,
                         struct err_detail *detail) {
    const struct admin_api *work = context;
    return save_requests_get(work->save_requests, id, arena, ret_save, detail);
}

static struct job_files_live live_jobs(const struct admin_api *work, struct arena *arena) {
    struct job_progress *jobs;
    size_t count = crawl_loop_jobs(work->crawl_loop, arena, &jobs);
    return (struct job_files_live){jobs, count};
}

static size_t list_jobs(void *context, struct arena *arena, struct job_view **ret_jobs) {
    const struct admin_api *work = context;
    struct job_files_live live = live_jobs(work, arena);
    size_t count = job_files_list(work->directory, &live, arena, ret_jobs);
    ring_services_view_jobs(work->services, arena, *ret_jobs, count);
    return count;
}

static enum err get_job(void *context, struct bytes name, struct arena *arena, struct job_view *ret_job,
                        struct err_detail *detail) {
    const struct admin_api *work = context;
    struct job_files_live live = live_jobs(work, arena);
    enum err err = job_files_get(work->directory, name, &live, arena, ret_job, detail);
    ring_services_view_jobs(work->services, arena, ret_job, err == ERR_OK ? 1 : 0);
    return err;
}

static enum err add_job(void *context, struct bytes wish, char ret_name[ADMIN_PAGES_NAME_SIZE_MAX],
                        struct err_detail *detail) {
    const struct admin_api *work = context;
    char name[JOB_NAME_SIZE_MAX];
    enum err err = job_files_add(work->directory, wish, name, detail);
    if (err == ERR_OK) {
        snprintf(ret_name, ADMIN_PAGES_NAME_SIZE_MAX, "%s", name);
        crawl_loop_look(work->crawl_loop);
    }
    return err;
}

static enum err pause_job(void *context, struct bytes name, bool is_paused, struct err_detail *detail) {
    const struct admin_api *work = context;
    enum err err = job_files_pause(work->directory, name, is_paused, detail);
    crawl_loop_look(work->crawl_loop);
    return err;
}

static enum err remove_job(void *context, struct bytes name, struct err_detail *detail) {
    const struct admin_api *work = context;
    enum err err = job_files_remove(work->directory, name, detail);
    crawl_loop_look(work->crawl_loop);
    return err;
}

static const struct node_status *status(void *context, struct arena *arena) {
    const struct admin_api *work = context;
    return monitor_status(work->monitor, arena);
}

static void put_history(void *context, struct buf *out) {
    const struct admin_api *work = context;
    monitor_put_history(work->monitor, out);
}

enum { JOBS_MEASURED_MAX = 100 };

/* Of those that are open. */
static void put_job_metrics(const struct job_progress *jobs, size_t count, struct buf *out) {
    static const struct metrics_column state_columns[] = {
        {"jobs", "Jobs of the crawl that are open, by their state."}};
    static const struct metrics_column columns[] = {
        {"job_urls_known", "URLs that the job knows on this node."},
        {"job_urls_waiting", "URLs of the job that wait to be fetched by this node."},
        {"job_documents_total", "Documents that the job has stored on this node."},
        {"job_failed_total", "URLs that the job has given up on this node."},
        {"job_received_bytes_total", "Bytes that the job has received on this node."},
    };
    struct metrics_row states[CAMPAIGN_ENDED + 1] = {{.label = NULL}};
    struct metrics_row rows[JOBS_MEASURED_MAX];
    size_t rows_count = 0;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        states[i].label = jobs_states[i];
    }
    for (size_t i = 0; i < count; i++) {
        const struct job_progress *job = &jobs[i];
        states[job->state].values[0]++;
        if (rows_count < JOBS_MEASURED_MAX && !save_requests_is_name(bytes_of_string(job->name))) {
            rows[rows_count++] =
                (struct metrics_row){.label = job->name,
                                     .values = {job->known_count, job->waiting_count, job->stored_count,
                                                job->failed_count, job->received_size}};
        }
    }
    metrics_put_rows(out, "state", state_columns, 1, states, sizeof states / sizeof *states);
    metrics_put_rows(out, "job", columns, sizeof columns / sizeof *columns, rows, rows_count);
}

static void put_metrics(void *context, struct buf *out) {
    const struct admin_api *work = context;
    struct arena arena;
    struct job_progress *jobs;
    arena_init(&arena, ADMIN_PAGES_TEXT_SIZE_MAX);
    size_t count = crawl_loop_jobs(work->crawl_loop, &arena, &jobs);
    put_job_metrics(jobs, count, out);
    arena_done(&arena);
    ring_services_put_metrics(work->services, out);
}

static void get_ring(void *context, struct arena *arena, struct ring_view *ret_ring) {
    const struct admin_api *work = context;
    *ret_ring = (struct ring_view){0};
    transport_view(work->transport, arena, ret_ring);
    ring_services_view(work->services, arena, ret_ring);
}

static void show_neighbours(void *context, struct sheet *sheet) {
    const struct admin_api *work = context;
    char text[PORT_MAPPER_TEXT_SIZE_MAX];
    if (work->port_mapper != NULL) {
        sheet_html(sheet, "<h3>Port</h3>\n<p id=port-map>");
        sheet_string(sheet, port_mapper_text(work->port_mapper, text));
        sheet_html(sheet, "\n");
    }
    transport_show(work->transport, sheet);
}

static void put_ring(void *context, struct buf *out) {
    const struct admin_api *work = context;
    struct arena arena;
    struct ring_view view;
    struct buf text;
    struct json json;
    arena_init(&arena, ADMIN_PAGES_TEXT_SIZE_MAX);
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    get_ring(context, &arena, &view);
    transport_put(work->transport, &text);
    json_begin(&json, out);
    if (text.err == ERR_OK && text.size > 0) {
        json_members(&json, buf_bytes(&text));
    }
    if (work->port_mapper != NULL) {
        port_mapper_put(work->port_mapper, &json);
    }
    ring_services_put(work->services, &view, &json);
    json_end(&json);
    out->err = text.err != ERR_OK ? text.err : out->err;
    buf_done(&text);
    arena_done(&arena);
}

static void put_crowd(void *context, struct buf *out) {
    const struct admin_api *work = context;
    ring_services_put_crowd(work->services, out);
}

static void put_mirrors(void *context, struct buf *out) {
    const struct admin_api *work = context;
    ring_services_put_mirrors(work->services, out);
}

static void show_crowd(void *context, struct arena *arena, struct sheet *sheet) {
    const struct admin_api *work = context;
    ring_services_show_crowd(work->services, arena, sheet);
}

static void show_mirrors(void *context, struct sheet *sheet) {
    const struct admin_api *work = context;
    ring_services_show_mirrors(work->services, sheet);
}

static void show_groups(void *context, struct sheet *sheet) {
    const struct admin_api *work = context;
    group_driver_show_section(ring_services_group_driver(work->services), sheet);
}

static enum err put_groups(void *context, struct bytes name, struct buf *out, struct err_detail *detail) {
    const struct admin_api *work = context;
    return group_driver_put(ring_services_group_driver(work->services), name, out, detail);
}

static enum err put_group_picture(void *context, struct bytes name, bool is_dot, struct buf *out,
                                  struct err_detail *detail) {
    const struct admin_api *work = context;
    return group_driver_put_picture(ring_services_group_driver(work->services), name, is_dot, out, detail);
}

struct lookup {
    struct transport_question question;
    struct admin_pages_find *find;
};

static void on_answer(struct transport_question *question, const struct transport_answer *answer) {
    struct lookup *lookup = question->context;
    struct admin_pages_find *find = lookup->find;
    find->err = answer->err;
    if (answer->err == ERR_OK) {
        ring_json_put_answer(question, answer, &find->text);
    } else if (answer->err == ERR_BUSY) {
        (void)err_set(&find->detail, ERR_BUSY, "this node is not in its ring yet");
    } else if (answer->err == ERR_UNREACHABLE) {
        (void)err_set(&find->detail, ERR_UNREACHABLE, "nobody of the ring could say");
    }
    free(lookup);
    find->done(find);
}

static void find(void *context, struct admin_pages_find *find) {
    const struct admin_api *work = context;
    if (find->kind == ADMIN_PAGES_FIND_CAPTURE) {
        crowd_lookups_ask(work->crowd_lookups, find);
        return;
    }
    struct lookup *lookup = calloc(1, sizeof *lookup);
    find->err = lookup != NULL
                    ? transport_key(work->transport, find->url, &lookup->question.key, &find->detail)
                    : ERR_MEMORY;
    if (find->err != ERR_OK) {
        free(lookup);
        find->done(find);
        return;
    }
    lookup->find = find;
    lookup->question.vnodes_wanted = find->vnodes_wanted;
    lookup->question.answered = on_answer;
    lookup->question.context = lookup;
    transport_ask(work->transport, &lookup->question);
}

static bool is_healthy(void *context, struct err_detail *detail) {
    const struct admin_api *work = context;
    return monitor_is_healthy(work->monitor, detail);
}

_Static_assert((int)ADMIN_PAGES_VNODES_MAX == (int)TRANSPORT_VNODES_MAX,
               "what may be asked is what can be answered");

const struct admin_pages_table admin_api_table = {
    .save = save,
    .get_save = get_save,
    .list_jobs = list_jobs,
    .get_job = get_job,
    .add_job = add_job,
    .pause_job = pause_job,
    .remove_job = remove_job,
    .status = status,
    .put_history = put_history,
    .put_metrics = put_metrics,
    .put_ring = put_ring,
    .get_ring = get_ring,
    .show_neighbours = show_neighbours,
    .put_crowd = put_crowd,
    .show_crowd = show_crowd,
    .put_mirrors = put_mirrors,
    .show_mirrors = show_mirrors,
    .show_groups = show_groups,
    .put_groups = put_groups,
    .put_group_picture = put_group_picture,
    .find = find,
    .is_healthy = is_healthy,
};
