/*
 * archive - `mnemon archive`. One command in several files: archive.c has its options (also those of `mnemon
 * job add`) and makes the job, archive_run.c runs the crawler, archive_explain.c explains one URL.
 */
#ifndef MNEMON_CLI_ARCHIVE_H
#define MNEMON_CLI_ARCHIVE_H

#include "cli/data.h"
#include "crawl/engine/campaign.h"
#include "crawl/engine/job.h"
#include "crawl/fetch/logins.h"

struct archive_options {
    const char *data;
    uint32_t scope;
    uint64_t depth;
    uint64_t limit;
    uint64_t limit_bytes;
    uint64_t limit_time_us;
    uint64_t limit_body;
    uint64_t limit_host;
    uint64_t limit_domain;
    struct option_list include;
    struct option_list exclude;
    const char *delay; /* "auto" or a duration */
    uint64_t connections;
    uint64_t timeout_us;
    const char *user_agent;
    struct option_list headers;
    const char *proxy;
    const char *seeds;
    const char *explain;
    uint64_t period_us;
    uint32_t revisit;
    bool allow_private;
    bool refuse_bad_certificates;
    bool ignore_robots;
    bool no_sitemaps;
    bool forms;
    bool guesses;
    bool strict;
    bool quiet;
    bool json;
    bool ring; /* of "mnemon job" only */
    const char *nameserver;
};

/* What a job can be told; also for `mnemon job add`. */
extern const struct option archive_option_table[];
extern const struct archive_options archive_defaults;

/* The job that options and arguments describe; texts in the arena. Users and passwords in its URLs go to the
 * logins; without logins (NULL) such URLs are refused. CLI_DONE or the status after the error. */
int archive_make_job(struct cli *cli, const struct command *command, const struct archive_options *options,
                     struct logins *logins, struct arena *arena, struct job *ret_job);

/* DIR/jobs/NAME of the job, written there; DIR must be. is_for_node: a node runs it by itself; what was asked
 * for once it does not repeat. */
int archive_write_job(struct cli *cli, const char *data_directory, const struct job *job, bool is_for_node,
                      struct buf *ret_directory, char name[JOB_NAME_SIZE_MAX]);

/* Crawl to the end of the campaign, its limits or Ctrl-C; then the summary. Returns the exit status. */
int archive_run(struct cli *cli, const struct archive_options *options, const struct logins *logins,
                struct data *data, struct campaign *campaign);

/* Why the URL is or is not fetched. */
int archive_explain(struct cli *cli, const struct archive_options *options, struct data *data,
                    struct campaign *campaign, const char *url);

#endif
