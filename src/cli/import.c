#include "cli/import.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/value.h"
#include "cli/commands.h"
#include "node/ring/decrees.h"
#include "node/ring/routing.h"
#include "node/transport/ring_files.h"
#include "run/pool.h"
#include "run/priority.h"
#include "web/url/url.h"

enum { REPORT_SIZE_MAX = 1024 };

struct import_options {
    const char *data;
    uint64_t jobs;
    bool ignore_digests;
    bool json;
    bool quiet;
};

static const struct import_options import_defaults = {.jobs = 2};

/* ---- what the threads tell ---- */

/* Files are written by anybody: what they make us say must not steer the terminal. */
static void hide_controls(char *text) {
    for (; *text != '\0'; text++) {
        uint8_t byte = (uint8_t)*text;
        *text = byte < ' ' || byte == 0x7f ? '?' : *text;
    }
}

__attribute__((format(printf, 4, 0))) static void
say(struct import *import, const char *path, uint64_t offset, const char *format, va_list arguments) {
    FILE *err = import->cli->err;
    char text[REPORT_SIZE_MAX];
    char place[REPORT_SIZE_MAX];
    vsnprintf(text, sizeof text, format, arguments);
    snprintf(place, sizeof place, "%s", path == NULL ? "" : path);
    hide_controls(text);
    hide_controls(place);
    pthread_mutex_lock(&import->lock);
    if (import->progress.line_is_open) {
        fputs("\r\x1b[K", err); /* the progress line is drawn again behind the message */
    }
    if (path == NULL) {
        fprintf(err, "mnemon: %s\n", text);
    } else {
        fprintf(err, "mnemon: %s, byte %ju: %s\n", place, (uintmax_t)offset, text);
    }
    fflush(err);
    pthread_mutex_unlock(&import->lock);
}

void import_say(struct import *import, const char *path, uint64_t offset, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(import, path, offset, format, arguments);
    va_end(arguments);
}

void import_report(struct import_job *job, uint64_t offset, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(job->import, offset == IMPORT_OFFSET_NONE ? NULL : job->file->path, offset, format, arguments);
    va_end(arguments);
}

void import_count(struct import_job *job, uint64_t *count) {
    pthread_mutex_lock(&job->import->lock);
    (*count)++;
    pthread_mutex_unlock(&job->import->lock);
}

void import_stop(struct import *import, enum err err) {
    pthread_mutex_lock(&import->lock);
    import->err = import->err == ERR_OK ? err : import->err;
    bell_ring(&import->queue.has_done);
    pthread_mutex_unlock(&import->lock);
}

bool import_is_stopped(struct import *import) {
    pthread_mutex_lock(&import->lock);
    bool is_stopped = import->err != ERR_OK;
    pthread_mutex_unlock(&import->lock);
    return is_stopped;
}

/* ---- a thread's own ---- */

void import_record_init(struct import_record *record, const char *directory, uint64_t size_max) {
    buf_init(&record->text, 2 * (size_t)WARC_RECORD_HEAD_SIZE_MAX);
    scratch_init(&record->block, directory, IMPORT_MEMORY_MAX, size_max);
}

void import_record_done(struct import_record *record) {
    scratch_done(&record->block);
    buf_done(&record->text);
}

static void import_job_done(struct import_job *job) {
    record_done(&job->record);
    warc_hash_done(&job->hash);
    document_hasher_done(&job->hasher);
    payload_done(&job->payload);
    warc_check_done(&job->check);
    warc_reader_done(&job->warc);
    instance_session_free(job->session);
    instance_session_free(job->record_session);
    buf_done(&job->message);
    buf_done(&job->chunks);
    buf_done(&job->to);
    buf_done(&job->from);
    buf_done(&job->surt);
    buf_done(&job->url);
    canon_done(&job->canon);
    import_record_done(&job->request);
    import_record_done(&job->capture);
}

static enum err import_job_init(struct import_job *job, struct import *import) {
    *job = (struct import_job){.import = import};
    import_record_init(&job->capture, import->data.directory, VOLUME_DOCUMENT_SIZE_MAX);
    import_record_init(&job->request, import->data.directory, IMPORT_REQUEST_SIZE_MAX);
    canon_init(&job->canon);
    buf_init(&job->surt, URL_SIZE_MAX + 16);
    buf_init(&job->url, URL_SIZE_MAX + 16);
    buf_init(&job->from, 2 * URL_SIZE_MAX);
    buf_init(&job->to, 2 * URL_SIZE_MAX);
    buf_init(&job->chunks, (size_t)VOLUME_DOCUMENT_SIZE_MAX + 64);
    buf_init(&job->message, ATTEST_MESSAGE_SIZE_MAX);
    job->session = instance_session_new(import->data.instance);
    job->record_session = instance_session_new(import->data.instance);
    enum err err = job->session == NULL || job->record_session == NULL ? ERR_MEMORY : ERR_OK;
    err = err == ERR_OK ? warc_reader_init(&job->warc, NULL) : err;
    err = err == ERR_OK ? warc_check_init(&job->check) : err;
    err = err == ERR_OK ? payload_init(&job->payload) : err;
    err = err == ERR_OK ? document_hasher_init(&job->hasher) : err;
    err = err == ERR_OK ? warc_hash_init(&job->hash) : err;
    err = err == ERR_OK ? record_init(&job->record) : err;
    if (err != ERR_OK) {
        import_job_done(job);
    }
    return err;
}

static struct import_file *take_file(struct import *import) {
    pthread_mutex_lock(&import->lock);
    bool has_more = import->err == ERR_OK && import->files_next < import->files_count;
    struct import_file *file = has_more ? &import->files[import->files_next++] : NULL;
    pthread_mutex_unlock(&import->lock);
    return file;
}

static void read_files(struct import_job *job) {
    while ((job->file = take_file(job->import)) != NULL) {
        import_read_file(job);
    }
}

static void run_job(struct import *import, void (*work)(struct import_job *job)) {
    struct import_job *job = malloc(sizeof *job);
    enum err err = job == NULL ? ERR_MEMORY : import_job_init(job, import);
    if (err == ERR_OK) {
        work(job);
        import_job_done(job);
    } else {
        import_stop(import, err);
    }
    free(job);
}

static void import_run_reader(void *context, size_t seat) {
    (void)seat;
    run_job(context, read_files);
}

static void import_run_worker(void *context, size_t seat) {
    (void)seat;
    run_job(context, import_work);
}

/* ---- the run ---- */

/* A thread each. */
static void start_threads(struct import *import, struct pool *pool, struct pool_job *jobs, size_t count,
                          void (*run)(void *context, size_t seat)) {
    enum err err = pool_start(pool, &(struct pool_config){.name = "import", .threads_max = count});
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        jobs[i] = (struct pool_job){.run = run, .context = import};
        err = pool_try(pool, &jobs[i]) ? ERR_OK : ERR_CLOSED;
    }
    if (err != ERR_OK) {
        import_stop(import, err);
    }
}

/* As many readers as there are files for, and as many workers as there are jobs. */
static void run_threads(struct import *import, size_t count) {
    struct pool readers;
    struct pool workers;
    struct pool_job jobs[2 * IMPORT_JOBS_MAX];
    if (import->files_count == 0) {
        return;
    }
    start_threads(import, &workers, jobs, count, import_run_worker);
    size_t files_count = import->files_count < count ? import->files_count : count;
    start_threads(import, &readers, jobs + count, files_count, import_run_reader);
    pool_stop(&readers);
    import_queue_close(import);
    pool_stop(&workers);
}

static int by_number(const void *a, const void *b) {
    uint64_t left;
    uint64_t right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return (left > right) - (left < right);
}

/* Everything is in the archive now that will be: look again for what revisits mean. */
static void read_deferred(struct import *import) {
    struct import_job *job = NULL;
    for (size_t i = 0; i < import->files_count; i++) {
        if (import->files[i].deferred.size == 0 || import_is_stopped(import)) {
            continue;
        }
        if (job == NULL) {
            job = malloc(sizeof *job);
            enum err err = job == NULL ? ERR_MEMORY : import_job_init(job, import);
            if (err != ERR_OK) {
                import_stop(import, err);
                free(job);
                return;
            }
        }
        struct buf *deferred = &import->files[i].deferred;
        qsort(deferred->data, deferred->size / sizeof(uint64_t), sizeof(uint64_t), by_number);
        job->is_second_pass = true;
        job->file = &import->files[i];
        import_read_file(job);
    }
    if (job != NULL) {
        import_job_done(job);
        free(job);
    }
}

static enum err init_import(struct import *import) {
    pthread_mutex_init(&import->lock, NULL);
    map_init(&import->busy, KEY_DIGEST_SIZE, 1, IMPORT_BUSY_MAX, 1);
    map_init(&import->digests, IMPORT_DIGEST_KEY_SIZE, sizeof(struct import_stated), IMPORT_DIGESTS_MAX, 1);
    enum err err = import_queue_init(&import->queue, import->data.directory);
    err = err == ERR_OK ? map_reserve(&import->busy, IMPORT_BUSY_MAX) : err;
    return err == ERR_OK ? import_list_files(import) : err;
}

static void finish_import(struct import *import) {
    import_free_files(import);
    map_done(&import->digests);
    map_done(&import->busy);
    import_queue_done(&import->queue);
    pthread_mutex_destroy(&import->lock);
}

/* ---- the summary ---- */

static void print_json(const struct import_tally *tally, struct cli *cli) {
    struct json json;
    json_begin_file(&json, cli->out);
    JSON_COUNTS(&json, {"captures", tally->captures_count}, {"duplicates", tally->duplicates_count},
                {"requests", tally->requests_count}, {"present", tally->present_count},
                {"unresolved", tally->unresolved_count}, {"damaged", tally->damaged_count},
                {"refused", tally->refused_count}, {"mismatched", tally->mismatched_count},
                {"files_failed", tally->files_failed_count});
    json_open(&json, "skipped");
    for (size_t i = 0; i < IMPORT_TYPES_COUNT; i++) {
        if (tally->skipped_counts[i] > 0) {
            json_count(&json, warc_type_name((enum warc_type)i), tally->skipped_counts[i]);
        }
    }
    cli_note(cli, json_end(&json));
}

/* Counts of nothing are left out, except that of what an import is for. */
static void import_put_count(struct buf *out, const char *what, const char *name, uint64_t count) {
    if (count > 0 || strcmp(name, "captures") == 0) {
        buf_put_format(out, "%s%-*s ", what, 20 - (int)strlen(what), name);
        value_put_count(out, count);
        buf_put_byte(out, '\n');
    }
}

static void print_text(const struct import_tally *tally, struct cli *cli) {
    struct buf out;
    buf_init(&out, 1 << 14);
    import_put_count(&out, "", "captures", tally->captures_count);
    import_put_count(&out, "", "duplicates", tally->duplicates_count);
    import_put_count(&out, "", "requests", tally->requests_count);
    import_put_count(&out, "", "already there", tally->present_count);
    import_put_count(&out, "", "unresolved", tally->unresolved_count);
    import_put_count(&out, "", "damaged", tally->damaged_count);
    import_put_count(&out, "", "refused", tally->refused_count);
    import_put_count(&out, "", "mismatched", tally->mismatched_count);
    import_put_count(&out, "", "files failed", tally->files_failed_count);
    for (size_t i = 0; i < IMPORT_TYPES_COUNT; i++) {
        import_put_count(&out, "skipped ", warc_type_name((enum warc_type)i), tally->skipped_counts[i]);
    }
    cli_write(cli, &out);
}

static int conclude(const struct import *import, bool json) {
    const struct import_tally *tally = &import->tally;
    (json ? print_json : print_text)(tally, import->cli);
    if (import->err != ERR_OK) {
        return cli_fail(
            import->cli,
            "the import stopped: %s; the captures counted so far are stored, run it again to continue",
            err_text(import->err));
    }
    bool is_whole = tally->damaged_count + tally->refused_count + tally->mismatched_count +
                        tally->unresolved_count + tally->files_failed_count ==
                    0;
    return is_whole ? CLI_DONE : CLI_FAILED;
}

/* ---- the command ---- */

static int import_all(struct import *import, const struct import_options *options) {
    enum err err = init_import(import);
    int status;
    if (err != ERR_OK) {
        status = cli_fail(import->cli, "%s", err_text(err));
    } else {
        progress_init(&import->progress, "importing", fileno(import->cli->err), options->quiet,
                      import->cli->clock);
        run_threads(import, (size_t)options->jobs);
        instance_drain(import->data.instance);
        read_deferred(import);
        instance_drain(import->data.instance); /* now all that was submitted is durable and counted */
        progress_finish(&import->progress);
        status = conclude(import, options->json);
    }
    finish_import(import);
    return status;
}

/* The key of the node in this directory, which is made if there is none yet: it may join a ring later. */
static void import_load_identity(struct import *import) {
    struct err_detail detail = {0};
    enum err err = identity_load(&import->identity, import->data.directory, &detail);
    import->has_identity = err == ERR_OK;
    if (err != ERR_OK) {
        import_say(import, NULL, IMPORT_OFFSET_NONE,
                   "what is imported is not signed, so other nodes will not take it from the crowd: %s",
                   err_detail_text(&detail, err));
    }
}

/*
 * What the other nodes of its ring would refuse is not imported: who imports may not, or nobody may. The
 * captures are looked at one by one.
 */
static int import_load_ring(struct import *import) {
    struct cli *cli = import->cli;
    struct charter *charter = malloc(sizeof *charter);
    uint8_t *memory = malloc(CHARTER_SIZE_MAX);
    struct bytes encoded;
    struct decrees *decrees = NULL;
    int status = charter != NULL && memory != NULL ? CLI_DONE : cli_fail(cli, "%s", err_text(ERR_MEMORY));
    const char *directory = import->data.directory;
    if (status == CLI_DONE && ring_files_read_charter(directory, charter, memory, &encoded, NULL) == ERR_OK) {
        import->is_in_ring = true;
        import->latest_us = clock_wall_us(cli->clock) + (int64_t)MEMBERSHIP_CLOCK_SLACK_S * 1000000;
        import->has_scope = charter->scope_count > 0;
        routing_read_scope(charter, &import->scope);
        enum import_rule rule = IMPORT_RULE_NONE;
        if (decrees_open(directory, NULL, &decrees, NULL) == ERR_OK) {
            rule = decrees_import_rule(decrees);
            decrees_free(decrees);
        }
        bool is_steward = import->has_identity && charter_is_steward(charter, import->identity.key);
        if (rule == IMPORT_RULE_NOBODY || (rule == IMPORT_RULE_STEWARDS && !is_steward)) {
            status = cli_fail(cli, "the ring \"%s\" takes imports from %s (\"mnemon ring imports\")",
                              charter->name, import_rule_name(rule));
        }
    }
    free(memory);
    free(charter);
    return status;
}

static int import_run(struct cli *cli, const void *values) {
    const struct import_options *options = values;
    struct import import = {.cli = cli, .ignores_digests = options->ignore_digests};
    int status = data_open(&import.data, cli, options->data, DATA_WRITE);
    if (status != CLI_DONE) {
        return status;
    }
    if (import.data.is_through_node) {
        priority_lower(PRIORITY_LATER); /* people read there */
    }
    import_load_identity(&import);
    status = import_load_ring(&import);
    status = status == CLI_DONE ? import_all(&import, options) : status;
    if (import.is_in_ring) {
        pattern_list_done(&import.scope);
    }
    identity_done(&import.identity);
    data_close(&import.data);
    return status;
}

static const struct option import_options[] = {
    OPTION(TEXT, struct import_options, data, "data", "DIR", DATA_HELP),
    OPTION(NUMBER, struct import_options, jobs, "jobs", "N",
           "how many threads store, and how many files are read, at once (2)", .letter = 'j', .min = 1,
           .max = IMPORT_JOBS_MAX),
    OPTION(FLAG, struct import_options, ignore_digests, "ignore-digests", NULL,
           "import files of a WACZ even if their digests differ from those in its package"),
    OPTION(FLAG, struct import_options, quiet, "quiet", NULL, "show no progress", .letter = 'q'),
    OPTION(FLAG, struct import_options, json, "json", NULL, "print the summary as one JSON object"),
    {0},
};

const struct command import_command = {
    .name = "import",
    .summary = "import WARC, ARC and WACZ files into the archive",
    .synopsis = "[OPTION…] FILE…",
    .details =
        "Every response, resource and revisit record becomes a capture, with its request if the file has "
        "one. Payloads that the archive already holds are not stored again. Files may be plain or compressed "
        "(gzip, zstd); - is standard input. From a WACZ file all WARC files are imported after their digests "
        "have been checked.\n\n"
        "An import can be repeated, and an interrupted one continues: captures that are already in the "
        "archive are skipped. Damaged records are reported and the rest of the file is imported. The exit "
        "status is then 1, and also for revisits whose original is neither in the archive nor in the files.",
    .options = import_options,
    .options_size = sizeof(struct import_options),
    .defaults = &import_defaults,
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .run = import_run,
};
