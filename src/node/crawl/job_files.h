/*
 * job_files - the jobs of a data directory as files: listed, added, paused, removed, with the meaning that
 * `mnemon job` gives to these words. A running crawl sees what has changed (crawl/engine/jobs.h).
 */
#ifndef MNEMON_NODE_CRAWL_JOB_FILES_H
#define MNEMON_NODE_CRAWL_JOB_FILES_H

#include "base/err.h"
#include "crawl/engine/jobs.h"
#include "replay/admin/job_view.h"

enum { JOB_FILES_MAX = 10000, JOB_FILES_SEEDS_SHOWN_MAX = 100 };

/* The names of all jobs, sorted; each is the caller's to free. How many of the JOB_FILES_MAX places are used.
 */
size_t job_files_names(const char *directory, char *names[JOB_FILES_MAX]);

/* What the crawl says of the jobs that are open. The others are as their state.json left them. */
struct job_files_live {
    const struct job_progress *jobs;
    size_t count;
};

/* All jobs that can be read, by name: how many. In the arena, and as long as live. */
size_t job_files_list(const char *directory, const struct job_files_live *live, struct arena *arena,
                      struct job_view **ret_jobs);

/* One of them. ERR_NOT_FOUND. */
enum err job_files_get(const char *directory, struct bytes name, const struct job_files_live *live,
                       struct arena *arena, struct job_view *ret_job, struct err_detail *detail) MUST_CHECK;

/*
 * wish: {"urls":["https://example.org/"], "scope":"host", "period":"6 h" …}: the keys of job.conf
 * (docs/formats/job.md), and "url" or "urls", a text of lines or an array. ERR_INVALID names the key.
 */
enum err job_files_add(const char *directory, struct bytes wish, char ret_name[JOB_NAME_SIZE_MAX],
                       struct err_detail *detail) MUST_CHECK;

enum err job_files_pause(const char *directory, struct bytes name, bool is_paused,
                         struct err_detail *detail) MUST_CHECK;

/* The crawl ends it and removes the rest. What it archived stays. */
enum err job_files_remove(const char *directory, struct bytes name, struct err_detail *detail) MUST_CHECK;

/* job_wish.c: the job that such a wish is for, texts in the arena. ERR_INVALID says which key is wrong, and
 * why.
 */
enum err job_wish_read(struct bytes wish, struct arena *arena, struct job *ret_job,
                       struct err_detail *detail) MUST_CHECK;

#endif
