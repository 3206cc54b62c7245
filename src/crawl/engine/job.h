/*
 * job - what shall be archived: seeds, scope, limits and how often. One directory per job.
 *
 *      DIR/jobs/example.org-1f3a/job.conf     what this struct holds; docs/formats/job.md
 *      DIR/jobs/example.org-1f3a/seeds        one URL per line
 *      DIR/jobs/example.org-1f3a/frontier/    its URLs (frontier.h)
 *      DIR/jobs/example.org-1f3a/state.json   how far it is, for people and `mnemon job list`
 *
 * `mnemon archive` makes a job from its arguments. Its name comes from the seeds and from what decides which
 * URLs belong to it, so that the same command finds the same job again.
 */
#ifndef MNEMON_CRAWL_ENGINE_JOB_H
#define MNEMON_CRAWL_ENGINE_JOB_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/config.h"
#include "base/err.h"

struct logins;

enum {
    JOB_SEEDS_MAX = 100000,
    JOB_NAME_SIZE_MAX = 96,
    JOB_FILE_SIZE_MAX = 64 << 20, /* of job.conf, of seeds */
    JOB_DEPTH_ANY = UINT16_MAX,
};

enum job_revisit { JOB_REVISIT_ALL, JOB_REVISIT_ADAPTIVE };

/* Names of enum scope_type and enum job_revisit, ended by NULL: for options and files. */
extern const char *const job_scopes[];
extern const char *const job_revisits[];

/* Texts are the owner's; those of job_read() are in its arena. */
struct job {
    struct config_list seeds; /* absolute URLs, without users and passwords */
    uint32_t scope;           /* enum scope_type */
    uint64_t depth;           /* of page links from the seeds */
    struct config_list include;
    struct config_list exclude;
    bool ignores_robots;
    bool skips_sitemaps;
    bool follows_forms;
    bool follows_guesses;
    uint64_t delay_us; /* between two requests to a host */
    bool has_delay;    /* else it follows from how fast the host answers */
    uint64_t urls_max; /* per run; 0: no limit, as for all below */
    uint64_t bytes_max;
    uint64_t time_max_us;
    uint64_t body_size_max;
    uint64_t host_urls_max;
    uint64_t domain_urls_max;
    uint64_t period_us; /* between visits, of a node that runs the job by itself */
    uint32_t revisit;   /* enum job_revisit */
    bool is_paused;
    bool is_shared; /* by a decree of the ring (node/ring/decrees.h) */
};

/* "example.org-1f3a9c00": the first seed's host and a fingerprint of seeds, scope, depth and patterns. */
void job_name(const struct job *job, char out[JOB_NAME_SIZE_MAX]);

/* Is it a name that a job can have: 1 to 95 of a-z 0-9 . _ -, the first no dot? */
bool job_name_is_valid(struct bytes name);

/* All but the seeds. ERR_INVALID with line and column. */
enum err job_parse(struct job *job, struct bytes text, struct arena *arena,
                   struct err_detail *detail) MUST_CHECK;

/* As job_parse() reads it. */
void job_put(const struct job *job, struct buf *buf);

/*
 * Take seeds from a text of one URL per line; empty lines and those that begin with # do not count.
 * "example.org" is taken for "https://example.org/". What is no web URL is ERR_INVALID, with its line. A user
 * and password in a URL are dropped; the detail shows none.
 */
enum err job_add_seeds(struct job *job, struct bytes text, struct arena *arena,
                       struct err_detail *detail) MUST_CHECK;

/*
 * The same, of what a person gave just now. Users and passwords go to the logins. Without logins (NULL) URLs
 * that have them are refused: a job that runs later keeps none.
 */
enum err job_add_seeds_of_person(struct job *job, struct bytes text, struct logins *logins,
                                 struct arena *arena, struct err_detail *detail) MUST_CHECK;

/* From the job's directory. */
enum err job_read(struct job *job, const char *directory, struct arena *arena,
                  struct err_detail *detail) MUST_CHECK;

/* Created if it is missing, replaced at once if it is not. */
enum err job_write(const struct job *job, const char *directory, struct err_detail *detail) MUST_CHECK;

#endif
