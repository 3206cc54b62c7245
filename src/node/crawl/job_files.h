/*
 * job_files - the jobs of a data directory as files: listed, added, paused, removed, with the meaning that
 * `mnemon job` gives to these words. A running crawl sees what has changed (crawl/engine/jobs.h).
 */
#ifndef MNEMON_NODE_CRAWL_JOB_FILES_H
#define MNEMON_NODE_CRAWL_JOB_FILES_H

#include "base/buf.h"
#include "base/err.h"
#include "crawl/engine/job.h"

enum { JOB_FILES_MAX = 10000, JOB_FILES_SEEDS_SHOWN_MAX = 100 };

/* The names of all jobs, sorted; each is the caller's to free. How many of the JOB_FILES_MAX places are used.
 */
size_t job_files_names(const char *directory, char *names[JOB_FILES_MAX]);

/*
 * Append {"jobs":[…]}, by name. live: what the crawl says of those that are open, as jobs_put_json(); the
 * others are as their state.json left them.
 */
void job_files_put_all(const char *directory, struct bytes live, struct buf *out);

/* One of them. ERR_NOT_FOUND. */
enum err job_files_put(const char *directory, struct bytes name, struct bytes live, struct buf *out,
                       struct err_detail *detail) MUST_CHECK;

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

#endif
