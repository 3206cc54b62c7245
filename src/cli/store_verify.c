#include "store/volume/verify.h"

#include <errno.h>
#include <unistd.h>

#include "base/json.h"
#include "base/utc.h"
#include "base/value.h"
#include "base/whole_file.h"
#include "cli/data.h"
#include "cli/progress.h"
#include "cli/store.h"
#include "cli/store_methods.h"
#include "store/instance/twins.h"
#include "store/volume/compact.h"
#include "store/volume/damage.h"

enum { LIST_MODE = 0644 };

/* ---- verify ---- */

/* What verify tells while it runs. */
struct watch {
    struct cli *cli;
    struct progress progress;
    bool has_several; /* volumes: then each damage names its own */
    uint16_t volume;
    struct verify_report sum;
    struct buf list; /* of damaged captures, for a node of a ring: store/volume/damage.h */
};

static void print_damage(void *context, const char *segment, uint64_t offset, const char *reason) {
    struct watch *watch = context;
    fputs(watch->progress.line_is_open ? "\n" : "", watch->cli->err);
    if (watch->has_several) {
        fprintf(watch->cli->err, "%u/", watch->volume);
    }
    fprintf(watch->cli->err, "%s, byte %ju: %s\n", segment, (uintmax_t)offset, reason);
    watch->progress.line_is_open = false;
}

/* A URL came from elsewhere: it must not steer the terminal. */
static void verify_print_url(FILE *file, struct bytes url) {
    for (size_t i = 0; i < url.size; i++) {
        bool is_control = url.data[i] < ' ' || url.data[i] == 0x7f;
        fputc(is_control ? '?' : url.data[i], file);
    }
    fputc('\n', file);
}

static void print_capture(void *context, const struct capture *capture) {
    struct watch *watch = context;
    struct capture told = *capture;
    char time[UTC_RFC3339_SIZE];
    told.volume = watch->volume;
    damage_put_line(&watch->list, &told);
    if (capture->url.size > 0) {
        fputs(watch->progress.line_is_open ? "\n" : "", watch->cli->err);
        fprintf(watch->cli->err, "not readable: %s ", utc_format_rfc3339(capture->time_us, time));
        verify_print_url(watch->cli->err, capture->url);
        watch->progress.line_is_open = false;
    }
}

/* In MB, so that the counts of the line stay readable. */
static void verify_show_progress(void *context, uint64_t done_size, uint64_t total_size) {
    struct watch *watch = context;
    watch->progress.done_count = done_size >> 20;
    watch->progress.total_count = total_size >> 20;
    progress_update(&watch->progress, NULL);
}

static bool is_sound(const struct verify_report *report) {
    return report->damaged_count + report->lost_count + report->captures_count == 0;
}

static void print_verified(struct cli *cli, bool json, const struct verify_report *report) {
    if (json) {
        struct json line;
        json_begin_file(&line, cli->out);
        JSON_COUNTS(&line, {"records", report->records_count}, {"size", report->size},
                    {"damaged", report->damaged_count}, {"lost", report->lost_count},
                    {"captures", report->captures_count});
        cli_note(cli, json_end(&line));
        return;
    }
    struct buf line;
    buf_init(&line, 256);
    VALUE_PUT(&line, "{count} records, {size}", report->records_count, report->size);
    if (is_sound(report)) {
        buf_put_string(&line, ": all sound\n");
    } else {
        buf_put_format(&line, ": %ju damaged, %ju documents and %ju captures not readable\n",
                       (uintmax_t)report->damaged_count, (uintmax_t)report->lost_count,
                       (uintmax_t)report->captures_count);
    }
    cli_write(cli, &line);
}

/* What is done with each local volume; it adds to its own sums. */
typedef enum err visit_volume(void *context, const struct instance_volume *volume, struct err_detail *detail);

/* One after the other. False after a failure, which has been told. */
static bool visit_volumes(struct data *data, const char *action, visit_volume *visit, void *context) {
    bool is_good = true;
    for (size_t i = 0; i < instance_volumes_count(data->instance); i++) {
        struct instance_volume volume;
        struct err_detail detail = {0};
        instance_volume(data->instance, i, &volume);
        enum err err = volume.volume != NULL ? visit(context, &volume, &detail) : ERR_OK;
        if (err != ERR_OK) {
            cli_fail(data->cli, "%s: volume %u: %s", action, volume.number, err_detail_text(&detail, err));
        }
        is_good = is_good && err == ERR_OK && (volume.volume != NULL || volume.is_remote);
    }
    return is_good;
}

static enum err verify_one(void *context, const struct instance_volume *volume, struct err_detail *detail) {
    struct watch *watch = context;
    struct verify_observer observer = {
        .context = watch, .damage = print_damage, .progress = verify_show_progress, .capture = print_capture};
    struct verify_report report = {0};
    watch->volume = volume->number;
    enum err err = verify_volume(volume->volume, &observer, &report, detail);
    if (watch->progress.line_is_open) {
        fputc('\n', watch->cli->err);
        watch->progress.line_is_open = false;
    }
    watch->sum.records_count += report.records_count;
    watch->sum.size += report.size;
    watch->sum.damaged_count += report.damaged_count;
    watch->sum.lost_count += report.lost_count;
    watch->sum.captures_count += report.captures_count;
    return err;
}

/* A node of a ring has what is listed repaired from others when it starts. In no ring there is no list. */
static bool leave_list(const struct data *data, struct watch *watch) {
    char path[DATA_PATH_SIZE_MAX + 16];
    struct err_detail detail = {0};
    snprintf(path, sizeof path, "%s/ring", data->directory);
    if (access(path, F_OK) != 0) {
        return true;
    }
    snprintf(path, sizeof path, "%s/ring/damaged", data->directory);
    if (watch->list.size == 0) {
        return unlink(path) == 0 || errno == ENOENT;
    }
    enum err err = whole_file_replace(path, buf_bytes(&watch->list), LIST_MODE, &detail);
    if (err != ERR_OK) {
        cli_fail(watch->cli, "verify: %s", err_detail_text(&detail, err));
        return false;
    }
    fprintf(watch->cli->err,
            "mnemon: the damaged captures are listed for the node, which fetches them from others\n");
    return true;
}

int store_verify(struct cli *cli, const struct store_options *options) {
    struct data data;
    int status = data_open(&data, cli, options->data, DATA_MAINTAIN);
    if (status != CLI_DONE) {
        return status;
    }
    data_tell_remote(&data);
    struct watch watch = {.cli = cli, .has_several = instance_volumes_count(data.instance) > 1};
    progress_init(&watch.progress, "verifying MB", fileno(cli->err), options->quiet, cli->clock);
    buf_init(&watch.list, DAMAGE_LIST_SIZE_MAX);
    bool is_good = visit_volumes(&data, "verify", verify_one, &watch);
    is_good = leave_list(&data, &watch) && is_good;
    print_verified(cli, options->json, &watch.sum);
    buf_done(&watch.list);
    data_close(&data);
    return is_good && is_sound(&watch.sum) ? CLI_DONE : CLI_FAILED;
}

/* ---- compact ---- */

struct compaction {
    unsigned dead_percent;
    struct compact_report sum;
    uint64_t merged_count; /* captures of documents that lay on two volumes */
};

static void print_compacted(struct cli *cli, bool json, const struct compaction *compaction) {
    const struct compact_report *report = &compaction->sum;
    if (json) {
        struct json line;
        json_begin_file(&line, cli->out);
        JSON_COUNTS(&line, {"segments", report->segments_count}, {"dropped", report->dropped_count},
                    {"kept", report->kept_count}, {"freed", report->freed_size},
                    {"merged", compaction->merged_count});
        cli_note(cli, json_end(&line));
        return;
    }
    struct buf line;
    buf_init(&line, 256);
    if (compaction->merged_count > 0) {
        VALUE_PUT(&line, "{count} captures merged with those of another volume\n", compaction->merged_count);
    }
    buf_put_format(&line, "%u segments rewritten, ", report->segments_count);
    VALUE_PUT(&line, "{count} records dropped, {size} freed\n", report->dropped_count, report->freed_size);
    cli_write(cli, &line);
}

static enum err compact_one(void *context, const struct instance_volume *volume, struct err_detail *detail) {
    struct compaction *compaction = context;
    struct compact_report report = {0};
    enum err err = compact_volume(volume->volume, compaction->dead_percent, &report, detail);
    compaction->sum.segments_count += report.segments_count;
    compaction->sum.dropped_count += report.dropped_count;
    compaction->sum.kept_count += report.kept_count;
    compaction->sum.freed_size += report.freed_size;
    return err;
}

int store_compact(struct cli *cli, const struct store_options *options) {
    struct data data;
    int status = data_open(&data, cli, options->data, DATA_MAINTAIN);
    if (status != CLI_DONE) {
        return status;
    }
    data_tell_remote(&data);
    struct compaction compaction = {.dead_percent = (unsigned)options->dead};
    struct err_detail detail = {0};
    enum err err = twins_merge(data.instance, NULL, NULL, &compaction.merged_count, &detail);
    if (err != ERR_OK) {
        cli_fail(cli, "documents that lie on two volumes cannot be merged: %s",
                 err_detail_text(&detail, err));
    }
    bool is_good = visit_volumes(&data, "compact", compact_one, &compaction) && err == ERR_OK;
    print_compacted(cli, options->json, &compaction);
    data_close(&data);
    return is_good ? CLI_DONE : CLI_FAILED;
}

/* ---- reindex ---- */

static void print_rebuilt(struct cli *cli, bool json, const struct volume_recovery *recovery,
                          uint64_t methods_count, uint64_t elapsed_us) {
    if (json) {
        struct json line;
        json_begin_file(&line, cli->out);
        JSON_COUNTS(&line, {"records", recovery->records_count}, {"damaged", recovery->damaged_count},
                    {"cut_size", recovery->cut_size}, {"methods", methods_count});
        json_decimal(&line, "seconds", (double)elapsed_us / 1e6, 3);
        cli_note(cli, json_end(&line));
        return;
    }
    struct buf out;
    buf_init(&out, 1024);
    VALUE_PUT(&out, "records      {count}\ndamaged      {count}\ncut off      {size}\n",
              recovery->records_count, recovery->damaged_count, recovery->cut_size);
    if (methods_count > 0) {
        VALUE_PUT(&out, "methods      {count}\n", methods_count);
    }
    VALUE_PUT(&out, "time         {time}\n", elapsed_us);
    cli_write(cli, &out);
}

/* Opening did it. */
int store_reindex(struct cli *cli, const struct store_options *options) {
    struct data data;
    struct volume_recovery sum = {0};
    bool is_good = true;
    uint64_t started_us = clock_monotonic_us(cli->clock);
    int status = data_rebuild(&data, cli, options->data, options->quiet);
    if (status != CLI_DONE) {
        return status;
    }
    data_tell_remote(&data);
    for (size_t i = 0; i < instance_volumes_count(data.instance); i++) {
        struct instance_volume volume;
        instance_volume(data.instance, i, &volume);
        if (volume.recovery == NULL) {
            is_good = is_good && volume.is_remote;
            continue;
        }
        sum.records_count += volume.recovery->records_count;
        sum.damaged_count += volume.recovery->damaged_count;
        sum.cut_size += volume.recovery->cut_size;
    }
    struct err_detail detail = {0};
    uint64_t methods_count = 0;
    enum err err = store_give_methods(&data, cli, options->quiet, &methods_count, &detail);
    if (err != ERR_OK) {
        cli_fail(cli, "captures of requests that are no GETs cannot be stored anew: %s; run it again",
                 err_detail_text(&detail, err));
        is_good = false;
    }
    print_rebuilt(cli, options->json, &sum, methods_count, clock_monotonic_us(cli->clock) - started_us);
    data_close(&data);
    return is_good && sum.damaged_count == 0 ? CLI_DONE : CLI_FAILED;
}
