#include "cli/import.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/value.h"
#include "cli/commands.h"
#include "url/url.h"

enum { REPORT_SIZE_MAX = 1024 };

struct import_options {
    const char *data;
    uint64_t jobs;
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

void import_report(struct import_job *job, uint64_t offset, const char *format, ...) {
    struct import *import = job->import;
    FILE *err = import->cli->err;
    char text[REPORT_SIZE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    hide_controls(text);
    pthread_mutex_lock(&import->lock);
    if (import->progress.line_is_open) {
        fputs("\r\x1b[K", err); /* the progress line is drawn again behind the message */
    }
    if (offset == IMPORT_OFFSET_NONE) {
        fprintf(err, "mnemon: %s\n", text);
    } else {
        fprintf(err, "mnemon: %s, byte %ju: %s\n", job->file->path, (uintmax_t)offset, text);
    }
    fflush(err);
    pthread_mutex_unlock(&import->lock);
}

void import_count(struct import_job *job, uint64_t *count) {
    pthread_mutex_lock(&job->import->lock);
    (*count)++;
    pthread_mutex_unlock(&job->import->lock);
}

void import_stop(struct import *import, enum err err) {
    pthread_mutex_lock(&import->lock);
    import->err = import->err == ERR_OK ? err : import->err;
    pthread_mutex_unlock(&import->lock);
}

bool import_is_stopped(struct import *import) {
    pthread_mutex_lock(&import->lock);
    bool is_stopped = import->err != ERR_OK;
    pthread_mutex_unlock(&import->lock);
    return is_stopped;
}

/* ---- a thread's own ---- */

static void init_record(struct import_record *record, size_t size_max) {
    buf_init(&record->text, 2 * (size_t)WARC_RECORD_HEAD_SIZE_MAX);
    buf_init(&record->block, size_max);
}

enum err import_job_init(struct import_job *job, struct import *import) {
    *job = (struct import_job){.import = import};
    init_record(&job->capture, VOLUME_DOCUMENT_SIZE_MAX);
    init_record(&job->request, IMPORT_REQUEST_SIZE_MAX);
    canon_init(&job->canon);
    buf_init(&job->surt, URL_SIZE_MAX + 16);
    buf_init(&job->from, 2 * URL_SIZE_MAX);
    buf_init(&job->to, 2 * URL_SIZE_MAX);
    buf_init(&job->chunks, (size_t)VOLUME_DOCUMENT_SIZE_MAX + 64);
    job->writer = volume_writer_new(import->data.instance.volume);
    job->reader = volume_reader_new(import->data.instance.volume);
    job->record_reader = volume_reader_new(import->data.instance.volume);
    enum err err =
        job->writer == NULL || job->reader == NULL || job->record_reader == NULL ? ERR_MEMORY : ERR_OK;
    err = err == ERR_OK ? warc_reader_init(&job->warc, NULL) : err;
    err = err == ERR_OK ? warc_check_init(&job->check) : err;
    err = err == ERR_OK ? payload_init(&job->payload) : err;
    err = err == ERR_OK ? sha256_init(&job->sha256) : err;
    err = err == ERR_OK ? warc_hash_init(&job->hash) : err;
    err = err == ERR_OK ? record_init(&job->record) : err;
    if (err != ERR_OK) {
        import_job_done(job);
    }
    return err;
}

void import_job_done(struct import_job *job) {
    record_done(&job->record);
    warc_hash_done(&job->hash);
    sha256_done(&job->sha256);
    payload_done(&job->payload);
    warc_check_done(&job->check);
    warc_reader_done(&job->warc);
    if (job->writer != NULL) {
        volume_writer_free(job->writer);
    }
    if (job->reader != NULL) {
        volume_reader_free(job->reader);
    }
    if (job->record_reader != NULL) {
        volume_reader_free(job->record_reader);
    }
    buf_done(&job->chunks);
    buf_done(&job->to);
    buf_done(&job->from);
    buf_done(&job->surt);
    canon_done(&job->canon);
    buf_done(&job->request.block);
    buf_done(&job->request.text);
    buf_done(&job->capture.block);
    buf_done(&job->capture.text);
}

static struct import_file *take_file(struct import *import) {
    pthread_mutex_lock(&import->lock);
    bool has_more = import->err == ERR_OK && import->files_next < import->files_count;
    struct import_file *file = has_more ? &import->files[import->files_next++] : NULL;
    pthread_mutex_unlock(&import->lock);
    return file;
}

static void *run_job(void *context) {
    struct import *import = context;
    struct import_job *job = malloc(sizeof *job);
    enum err err = job == NULL ? ERR_MEMORY : import_job_init(job, import);
    if (err != ERR_OK) {
        import_stop(import, err);
        free(job);
        return NULL;
    }
    while ((job->file = take_file(import)) != NULL) {
        import_read_file(job);
    }
    import_job_done(job);
    free(job);
    return NULL;
}

/* ---- the run ---- */

static void run_threads(struct import *import, size_t count) {
    pthread_t threads[IMPORT_JOBS_MAX];
    size_t started = 0;
    while (started < count && pthread_create(&threads[started], NULL, run_job, import) == 0) {
        started++;
    }
    if (started == 0) {
        import_stop(import, ERR_SYSTEM);
    }
    for (size_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
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
        job->is_second_pass = true;
        job->file = &import->files[i];
        import_read_file(job);
    }
    if (job != NULL) {
        import_job_done(job);
        free(job);
    }
}

static enum err init_import(struct import *import, char **paths, size_t paths_count) {
    import->files = calloc(paths_count, sizeof *import->files);
    import->files_count = import->files == NULL ? 0 : paths_count;
    for (size_t i = 0; i < import->files_count; i++) {
        import->files[i].path = paths[i];
        buf_init(&import->files[i].deferred, (size_t)1 << 30);
    }
    pthread_mutex_init(&import->lock, NULL);
    pthread_cond_init(&import->has_left, NULL);
    size_t busy_max = VOLUME_QUEUE_COUNT_MAX + IMPORT_JOBS_MAX;
    map_init(&import->busy, KEY_SIGNATURE_SIZE, 1, busy_max, 1);
    map_init(&import->digests, IMPORT_DIGEST_KEY_SIZE, KEY_SIGNATURE_SIZE, IMPORT_DIGESTS_MAX, 1);
    return import->files == NULL ? ERR_MEMORY : map_reserve(&import->busy, busy_max);
}

static void finish_import(struct import *import) {
    for (size_t i = 0; i < import->files_count; i++) {
        buf_done(&import->files[i].deferred);
    }
    free(import->files);
    map_done(&import->digests);
    map_done(&import->busy);
    pthread_cond_destroy(&import->has_left);
    pthread_mutex_destroy(&import->lock);
}

/* ---- the summary ---- */

/* Appends "name  count" or ,"name":count; in text, counts of nothing are left out. */
static void put_count(struct buf *out, bool json, const char *name, uint64_t count) {
    if (json) {
        buf_put_format(out, "%s\"%s\":%ju", out->data[out->size - 1] == '{' ? "" : ",", name,
                       (uintmax_t)count);
    } else if (count > 0) {
        buf_put_format(out, "%-20s ", name);
        value_put_count(out, count);
        buf_put_byte(out, '\n');
    }
}

static void put_skipped(struct buf *out, bool json, const uint64_t counts[IMPORT_TYPES_COUNT]) {
    if (json) {
        buf_put_string(out, ",\"skipped\":{");
    }
    for (size_t i = 0; i < IMPORT_TYPES_COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", json ? "" : "skipped ", warc_type_name((enum warc_type)i));
        if (counts[i] > 0) {
            put_count(out, json, json ? warc_type_name((enum warc_type)i) : name, counts[i]);
        }
    }
    if (json) {
        buf_put_byte(out, '}');
    }
}

static void print_summary(const struct import *import, bool json) {
    const struct import_tally *tally = &import->tally;
    struct buf out;
    buf_init(&out, 1 << 14);
    buf_put_string(&out, json ? "{" : "");
    if (json || tally->captures_count > 0) {
        put_count(&out, json, "captures", tally->captures_count);
    } else {
        buf_put_string(&out, "captures             0\n");
    }
    put_count(&out, json, "duplicates", tally->duplicates_count);
    put_count(&out, json, "requests", tally->requests_count);
    put_count(&out, json, json ? "present" : "already there", tally->present_count);
    put_count(&out, json, "unresolved", tally->unresolved_count);
    put_count(&out, json, "damaged", tally->damaged_count);
    put_count(&out, json, "refused", tally->refused_count);
    put_count(&out, json, "mismatched", tally->mismatched_count);
    put_count(&out, json, json ? "files_failed" : "files failed", tally->files_failed_count);
    put_skipped(&out, json, tally->skipped_counts);
    buf_put_string(&out, json ? "}\n" : "");
    fwrite(out.data, 1, out.size, import->cli->out);
    buf_done(&out);
}

static int conclude(const struct import *import, bool json) {
    const struct import_tally *tally = &import->tally;
    print_summary(import, json);
    if (import->err != ERR_OK) {
        return cli_fail(import->cli,
                        "the import stopped: %s; what is counted is stored, run it again to go on",
                        err_text(import->err));
    }
    bool is_whole = tally->damaged_count + tally->refused_count + tally->mismatched_count +
                        tally->unresolved_count + tally->files_failed_count ==
                    0;
    return is_whole ? CLI_DONE : CLI_FAILED;
}

/* ---- the command ---- */

static int import_all(struct import *import, const struct import_options *options, char **paths,
                      size_t paths_count) {
    enum err err = init_import(import, paths, paths_count);
    int status;
    if (err != ERR_OK) {
        status = cli_fail(import->cli, "%s", err_text(err));
    } else {
        progress_init(&import->progress, "importing", fileno(import->cli->err), options->quiet,
                      import->cli->clock);
        run_threads(import, options->jobs < paths_count ? (size_t)options->jobs : paths_count);
        volume_drain(import->data.instance.volume);
        read_deferred(import);
        volume_drain(import->data.instance.volume); /* now all that was submitted is durable and counted */
        progress_finish(&import->progress);
        status = conclude(import, options->json);
    }
    finish_import(import);
    return status;
}

static int import_run(struct cli *cli, const void *values, char **arguments, size_t arguments_count) {
    const struct import_options *options = values;
    for (size_t i = 0; i < arguments_count; i++) {
        if (bytes_ends_with(bytes_of_string(arguments[i]), BYTES(".wacz"))) {
            return cli_usage(cli, &import_command,
                             "%s: WACZ is not read yet; unzip it and import archive/*.warc.gz", arguments[i]);
        }
    }
    struct import import = {.cli = cli};
    int status = data_open(&import.data, cli, options->data, DATA_WRITE);
    if (status != CLI_DONE) {
        return status;
    }
    status = import_all(&import, options, arguments, arguments_count);
    data_close(&import.data);
    return status;
}

static const struct option import_options[] = {
    {.name = "data",
     .type = OPTION_TEXT,
     .offset = offsetof(struct import_options, data),
     .argument = "DIR",
     .help = DATA_HELP},
    {.name = "jobs",
     .letter = 'j',
     .type = OPTION_NUMBER,
     .offset = offsetof(struct import_options, jobs),
     .argument = "N",
     .min = 1,
     .max = IMPORT_JOBS_MAX,
     .help = "how many files are read at once (2)"},
    {.name = "quiet",
     .letter = 'q',
     .type = OPTION_FLAG,
     .offset = offsetof(struct import_options, quiet),
     .help = "show no progress"},
    {.name = "json",
     .type = OPTION_FLAG,
     .offset = offsetof(struct import_options, json),
     .help = "print the summary as one JSON object"},
    {0},
};

const struct command import_command = {
    .name = "import",
    .summary = "take WARC and ARC files into the archive",
    .synopsis = "[OPTION…] FILE…",
    .details =
        "Every response, resource and revisit record becomes a capture, with its request where the file has "
        "one. Payloads that the archive holds are not stored again. Files may be plain or compressed (gzip, "
        "zstd); - is standard input.\n\n"
        "An import can be repeated, and goes on where it was interrupted: captures that are there already "
        "are "
        "passed over. Damaged places are named and the rest of the file is imported; the exit status is then "
        "1, as it is for revisits whose original is neither in the archive nor in the files.",
    .options = import_options,
    .options_size = sizeof(struct import_options),
    .defaults = &import_defaults,
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .run = import_run,
};
