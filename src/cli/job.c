#include "crawl/engine/job.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/value.h"
#include "base/whole_file.h"
#include "cli/archive.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/decree.h"
#include "crawl/engine/jobs.h"
#include "node/crawl/job_files.h"

enum { PATH_SIZE_MAX = DATA_PATH_SIZE_MAX + JOB_NAME_SIZE_MAX + 32, TEXT_SIZE_MAX = 256 << 20 };

/* ---- one job by its name ---- */

static int find_job(struct cli *cli, const struct data *data, const char *name, char path[PATH_SIZE_MAX]) {
    struct stat status;
    snprintf(path, PATH_SIZE_MAX, "%s/jobs/%s/job.conf", data->directory, name);
    if (!job_name_is_valid(bytes_of_string(name)) || stat(path, &status) != 0) {
        return cli_fail(cli, "there is no job \"%s\"; \"mnemon job list\" lists them", name);
    }
    snprintf(path, PATH_SIZE_MAX, "%s/jobs/%s", data->directory, name);
    return CLI_DONE;
}

static int set_paused(struct cli *cli, const char *directory, const char *name, bool is_paused) {
    struct arena arena;
    struct job job;
    struct err_detail detail = {0};
    arena_init(&arena, TEXT_SIZE_MAX);
    enum err err = job_read(&job, directory, &arena, &detail);
    if (err == ERR_OK) {
        job.is_paused = is_paused;
        err = job_write(&job, directory, &detail);
    }
    arena_done(&arena);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    fprintf(cli->out, "%s %s\n", name, is_paused ? "paused" : "continues when a node runs");
    return CLI_DONE;
}

/* Does a node or another command have it open? */
static bool is_running(const char *directory) {
    char path[PATH_SIZE_MAX + 16];
    snprintf(path, sizeof path, "%s/frontier", directory);
    if (access(path, F_OK) != 0) {
        return false;
    }
    struct frontier_config config = {.directory = path};
    struct frontier *frontier;
    enum err err = frontier_open(&config, &frontier, NULL);
    if (err == ERR_OK) {
        frontier_close(frontier);
    }
    return err == ERR_BUSY;
}

/* Without its job.conf a running node ends it and removes the rest. */
static int remove_job(struct cli *cli, const char *directory, const char *name) {
    char path[PATH_SIZE_MAX + 16];
    struct err_detail detail = {0};
    bool is_left = is_running(directory);
    snprintf(path, sizeof path, "%s/job.conf", directory);
    enum err err = whole_file_remove(path, &detail);
    err = err == ERR_OK && !is_left ? jobs_remove_directory(directory, &detail) : err;
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    fprintf(cli->out, "%s removed; what it archived stays\n", name);
    return CLI_DONE;
}

/* ---- the list ---- */

static uint64_t job_count(const json_t *state, const char *name) {
    return (uint64_t)json_integer_value(json_object_get(state, name));
}

static void print_job(struct cli *cli, const char *name, const struct job *job, const json_t *state,
                      const json_t *ring) {
    struct buf line;
    buf_init(&line, 1 << 16);
    const char *word = json_string_value(json_object_get(state, "state"));
    buf_put_format(&line, "%-32s %-9s ", name, job->is_paused ? "paused" : word != NULL ? word : "new");
    VALUE_PUT(&line, "{count} known, {count} waiting, ", job_count(state, "known"),
              job_count(state, "waiting"));
    buf_put_format(&line, "visit %ju, scope %s, ", (uintmax_t)job_count(state, "visit"),
                   job_scopes[job->scope]);
    VALUE_PUT(&line, "every {time}", job->period_us);
    buf_put_format(&line, "  %.*s%s\n", BYTES_ARG(job->seeds.items[0]), job->seeds.count > 1 ? " …" : "");
    if (ring != NULL) {
        buf_put_format(&line, "%-32s whole ring: %s\n", "", ask_text(ring, "text"));
    }
    cli_write(cli, &line);
}

static void print_json(struct cli *cli, const char *name, const struct job *job, json_t *state,
                       const json_t *ring) {
    struct json json;
    json_object_del(state, "job");
    char *text = json_dumps(state, JSON_COMPACT); /* as it was written */
    json_begin_file(&json, cli->out);
    json_text(&json, "job", name);
    if (text != NULL && json_object_size(state) > 0) {
        json_members(&json, bytes_of_string(text));
    }
    json_open_list(&json, "seeds");
    for (size_t i = 0; i < job->seeds.count; i++) {
        json_bytes(&json, NULL, job->seeds.items[i]);
    }
    json_close(&json);
    json_text(&json, "scope", job_scopes[job->scope]);
    json_bool(&json, "paused", job->is_paused);
    json_count(&json, "period_seconds", job->period_us / 1000000);
    char *ring_text = ring != NULL ? json_dumps(ring, JSON_COMPACT) : NULL;
    if (ring_text != NULL) {
        json_open(&json, "ring");
        json_members(&json, bytes_of_string(ring_text));
        json_close(&json);
    }
    cli_note(cli, json_end(&json));
    free(ring_text);
    free(text);
}

/* What all nodes of the ring together say of it; nothing if it is not shared, or no node runs here. */
static const json_t *ring_of_job(const json_t *answer, const char *name) {
    const json_t *jobs = json_object_get(answer, "jobs");
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        if (strcmp(ask_text(job, "job"), name) == 0) {
            return json_object_get(job, "ring");
        }
    }
    return NULL;
}

static json_t *ask_for_jobs(struct cli *cli, const struct data *data) {
    struct node_file node;
    return node_file_read(data->directory, &node, NULL) == ERR_OK ? ask_object(cli, data, "/api/v1/jobs")
                                                                  : NULL;
}

/* All of them, if none is named. */
static bool is_listed(const struct cli *cli, const char *name) {
    bool is_named = cli->arguments_count == 0;
    for (size_t i = 0; i < cli->arguments_count && !is_named; i++) {
        is_named = strcmp(cli->arguments[i], name) == 0;
    }
    return is_named;
}

static int list_jobs(struct cli *cli, const struct data *data, bool is_json) {
    char **names = calloc(JOB_FILES_MAX, sizeof *names);
    char directory[PATH_SIZE_MAX];
    if (names == NULL) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    int status = CLI_DONE;
    for (size_t i = 0; i < cli->arguments_count; i++) {
        status = find_job(cli, data, cli->arguments[i], directory) == CLI_DONE ? status : CLI_FAILED;
    }
    snprintf(directory, sizeof directory, "%s/jobs", data->directory);
    size_t count = job_files_names(data->directory, names);
    json_t *answer = count > 0 ? ask_for_jobs(cli, data) : NULL;
    for (size_t i = 0; i < count; free(names[i++])) {
        if (!is_listed(cli, names[i])) {
            continue;
        }
        char path[PATH_SIZE_MAX + JOB_NAME_SIZE_MAX + 16];
        struct arena arena;
        struct job job;
        struct err_detail detail = {0};
        arena_init(&arena, TEXT_SIZE_MAX);
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        if (job_read(&job, path, &arena, &detail) != ERR_OK) {
            fprintf(cli->err, "mnemon: %s: %s\n", names[i], detail.text);
        } else {
            snprintf(path, sizeof path, "%s/%s/state.json", directory, names[i]);
            json_t *state = json_load_file(path, 0, NULL);
            if (is_json) {
                print_json(cli, names[i], &job, state, ring_of_job(answer, names[i]));
            } else {
                print_job(cli, names[i], &job, state, ring_of_job(answer, names[i]));
            }
            json_decref(state);
        }
        arena_done(&arena);
    }
    json_decref(answer);
    free(names);
    return status;
}

/* ---- the command ---- */

enum { ADD, LIST, PAUSE, RESUME, REMOVE };

#define NAME_JOB "name a job; \"mnemon job list\" lists them"

static const struct command_action job_actions[] = {
    [ADD] =
        {
            .name = "add",
            .synopsis = "[URL…]",
            .summary = "archive a site again and again",
            .details = "With --ring all nodes of the ring share the job: one of them fetches each URL and "
                       "several keep it.\n\n"
                       "  mnemon job add https://example.org/ --scope host --period '6 h'",
        },
    [LIST] =
        {
            .name = "list",
            .synopsis = "[NAME…]",
            .summary = "list the jobs, how many URLs each knows and how many of them wait: on this node, "
                       "and, of jobs that the ring shares, on all nodes together",
            .details = "  mnemon job list --json",
        },
    [PAUSE] =
        {
            .name = "pause",
            .synopsis = "NAME…",
            .summary = "let jobs rest until \"resume\"",
            .details = "  mnemon job pause example.org-1f3a9c00",
            .needs = NAME_JOB,
        },
    [RESUME] =
        {
            .name = "resume",
            .synopsis = "NAME…",
            .summary = "go on with jobs that were paused, or that \"mnemon archive\" left",
            .details = "  mnemon job resume example.org-1f3a9c00",
            .needs = NAME_JOB,
        },
    [REMOVE] =
        {
            .name = "remove",
            .synopsis = "NAME…",
            .summary = "forget jobs; what they archived stays",
            .details = "  mnemon job remove example.org-1f3a9c00",
            .needs = NAME_JOB,
        },
    {0},
};

static int add_job(struct cli *cli, const struct data *data, const struct archive_options *options) {
    struct arena arena;
    struct job job;
    struct buf directory;
    char name[JOB_NAME_SIZE_MAX];
    arena_init(&arena, TEXT_SIZE_MAX);
    buf_init(&directory, DATA_PATH_SIZE_MAX);
    int status = archive_make_job(cli, &job_command, options, NULL, &arena, &job);
    if (status == CLI_DONE && options->ring) {
        status = decree_add_job(cli, data, &job);
    } else if (status == CLI_DONE && (status = data_make_directory(data)) == CLI_DONE) {
        status = archive_write_job(cli, data->directory, &job, true, &directory, name);
        if (status == CLI_DONE) {
            fprintf(cli->out, "%s added; \"mnemon serve\" runs it\n", name);
        }
    }
    buf_done(&directory);
    arena_done(&arena);
    return status;
}

static int job_run(struct cli *cli, const void *values) {
    const struct archive_options *options = values;
    struct data data;
    char directory[PATH_SIZE_MAX];
    int status = data_find(&data, cli, options->data);
    if (status != CLI_DONE) {
        return status;
    }
    if (cli->action == ADD) {
        return add_job(cli, &data, options);
    }
    if (cli->action == LIST) {
        return list_jobs(cli, &data, options->json);
    }
    bool is_removal = cli->action == REMOVE;
    for (size_t i = 0; i < cli->arguments_count && status == CLI_DONE; i++) {
        const char *name = cli->arguments[i];
        if (options->ring) {
            status = decree_remove_job(cli, &data, name);
            continue;
        }
        status = find_job(cli, &data, name, directory);
        if (status == CLI_DONE) {
            status = is_removal ? remove_job(cli, directory, name)
                                : set_paused(cli, directory, name, cli->action == PAUSE);
        }
    }
    return status;
}

const struct command job_command = {
    .name = "job",
    .summary = "manage the sites that a node archives again and again",
    .synopsis = "ACTION [OPTION…] [ARGUMENT…]",
    .details =
        "A job is a site to archive again and again: in each period (--period, one day by default) all of "
        "its known URLs are due. \"mnemon serve\" runs the jobs of its data directory and notices changes "
        "within a second. Sites that \"mnemon archive\" has crawled are listed here too, as paused; "
        "\"resume\" makes a node archive them again.\n\n"
        "  mnemon job add https://example.org/ --scope host --period '6 h'\n"
        "  mnemon job list\n"
        "  mnemon job pause example.org-1f3a9c00\n\n"
        "With --ring all nodes of the ring share the job: one of them fetches each URL and several keep it.",
    .options = archive_option_table,
    .options_size = sizeof(struct archive_options),
    .defaults = &archive_defaults,
    .actions = job_actions,
    .run = job_run,
};
