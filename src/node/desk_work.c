#include "node/desk_work.h"

#include <stdio.h>

#include "node/job_files.h"

static enum err save(void *context, struct bytes url, char ret_id[DESK_NAME_SIZE_MAX],
                     struct err_detail *detail) {
    const struct desk_work *work = context;
    return saves_begin(work->saves, url, ret_id, detail);
}

static enum err put_save(void *context, struct bytes id, struct buf *out, struct err_detail *detail) {
    const struct desk_work *work = context;
    return saves_put(work->saves, id, out, detail);
}

static void put_jobs(void *context, struct buf *out) {
    const struct desk_work *work = context;
    struct buf live;
    buf_init(&live, DESK_TEXT_SIZE_MAX);
    crawling_put_jobs(work->crawling, &live);
    job_files_put_all(work->directory, buf_bytes(&live), out);
    buf_done(&live);
}

static enum err put_job(void *context, struct bytes name, struct buf *out, struct err_detail *detail) {
    const struct desk_work *work = context;
    struct buf live;
    buf_init(&live, DESK_TEXT_SIZE_MAX);
    crawling_put_jobs(work->crawling, &live);
    enum err err = job_files_put(work->directory, name, buf_bytes(&live), out, detail);
    buf_done(&live);
    return err;
}

static enum err add_job(void *context, struct bytes wish, char ret_name[DESK_NAME_SIZE_MAX],
                        struct err_detail *detail) {
    const struct desk_work *work = context;
    char name[JOB_NAME_SIZE_MAX];
    enum err err = job_files_add(work->directory, wish, name, detail);
    if (err == ERR_OK) {
        snprintf(ret_name, DESK_NAME_SIZE_MAX, "%s", name);
        crawling_look(work->crawling);
    }
    return err;
}

static enum err pause_job(void *context, struct bytes name, bool is_paused, struct err_detail *detail) {
    const struct desk_work *work = context;
    enum err err = job_files_pause(work->directory, name, is_paused, detail);
    crawling_look(work->crawling);
    return err;
}

static enum err remove_job(void *context, struct bytes name, struct err_detail *detail) {
    const struct desk_work *work = context;
    enum err err = job_files_remove(work->directory, name, detail);
    crawling_look(work->crawling);
    return err;
}

static void put_status(void *context, struct buf *out) {
    const struct desk_work *work = context;
    pulse_put_status(work->pulse, out);
}

static void put_history(void *context, struct buf *out) {
    const struct desk_work *work = context;
    pulse_put_history(work->pulse, out);
}

static void put_ring(void *context, struct buf *out) {
    const struct desk_work *work = context;
    ringing_put(work->ringing, out);
}

static bool is_healthy(void *context, struct err_detail *detail) {
    const struct desk_work *work = context;
    return pulse_is_healthy(work->pulse, detail);
}

const struct desk_table desk_work_table = {
    .save = save,
    .put_save = put_save,
    .put_jobs = put_jobs,
    .put_job = put_job,
    .add_job = add_job,
    .pause_job = pause_job,
    .remove_job = remove_job,
    .put_status = put_status,
    .put_history = put_history,
    .put_ring = put_ring,
    .is_healthy = is_healthy,
};
