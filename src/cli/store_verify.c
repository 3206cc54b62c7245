#include "store/verify.h"

#include <unistd.h>

#include "base/value.h"
#include "cli/data.h"
#include "cli/progress.h"
#include "cli/store.h"
#include "store/compact.h"

/* What verify tells while it runs. */
struct watch {
    struct cli *cli;
    struct progress progress;
};

static void print_damage(void *context, const char *segment, uint64_t offset, const char *reason) {
    struct watch *watch = context;
    fprintf(watch->cli->err, "%s%s, byte %ju: %s\n", watch->progress.line_is_open ? "\n" : "", segment,
            (uintmax_t)offset, reason);
    watch->progress.line_is_open = false;
}

/* In MB, so that the counts of the line stay readable. */
static void show_progress(void *context, uint64_t done_size, uint64_t total_size) {
    struct watch *watch = context;
    watch->progress.done_count = done_size >> 20;
    watch->progress.total_count = total_size >> 20;
    progress_update(&watch->progress, NULL);
}

static void print_verified(struct cli *cli, bool json, const struct verify_report *report) {
    if (json) {
        fprintf(cli->out, "{\"records\":%ju,\"size\":%ju,\"damaged\":%ju,\"lost\":%ju}\n",
                (uintmax_t)report->records_count, (uintmax_t)report->size, (uintmax_t)report->damaged_count,
                (uintmax_t)report->lost_count);
        return;
    }
    struct buf line;
    buf_init(&line, 256);
    value_put_count(&line, report->records_count);
    buf_put_string(&line, " records, ");
    value_put_size(&line, report->size);
    if (report->damaged_count + report->lost_count == 0) {
        buf_put_string(&line, ": all sound\n");
    } else {
        buf_put_format(&line, ": %ju damaged, %ju documents not readable\n", (uintmax_t)report->damaged_count,
                       (uintmax_t)report->lost_count);
    }
    fwrite(line.data, 1, line.size, cli->out);
    buf_done(&line);
}

int store_verify(struct cli *cli, const struct store_options *options, char **arguments,
                 size_t arguments_count) {
    (void)arguments;
    (void)arguments_count;
    struct data data;
    int status = data_open(&data, cli, options->data, DATA_READ);
    if (status != CLI_DONE) {
        return status;
    }
    struct watch watch = {.cli = cli};
    progress_init(&watch.progress, "verifying MB", fileno(cli->err), options->quiet, cli->clock);
    struct verify_observer observer = {.context = &watch, .damage = print_damage, .progress = show_progress};
    struct verify_report report;
    struct err_detail detail = {0};
    enum err err = verify_volume(data.instance.volume, &observer, &report, &detail);
    if (watch.progress.line_is_open) {
        fputc('\n', cli->err);
    }
    if (err != ERR_OK) {
        status = cli_fail(cli, "verify: %s", err_detail_text(&detail, err));
    } else {
        print_verified(cli, options->json, &report);
        status = report.damaged_count + report.lost_count > 0 ? CLI_FAILED : CLI_DONE;
    }
    data_close(&data);
    return status;
}

static void print_compacted(struct cli *cli, bool json, const struct compact_report *report) {
    if (json) {
        fprintf(cli->out, "{\"segments\":%u,\"dropped\":%ju,\"kept\":%ju,\"freed\":%ju}\n",
                report->segments_count, (uintmax_t)report->dropped_count, (uintmax_t)report->kept_count,
                (uintmax_t)report->freed_size);
        return;
    }
    struct buf line;
    buf_init(&line, 256);
    buf_put_format(&line, "%u segments rewritten, ", report->segments_count);
    value_put_count(&line, report->dropped_count);
    buf_put_string(&line, " records dropped, ");
    value_put_size(&line, report->freed_size);
    buf_put_string(&line, " freed\n");
    fwrite(line.data, 1, line.size, cli->out);
    buf_done(&line);
}

int store_compact(struct cli *cli, const struct store_options *options, char **arguments,
                  size_t arguments_count) {
    (void)arguments;
    (void)arguments_count;
    struct data data;
    int status = data_open(&data, cli, options->data, DATA_READ);
    if (status != CLI_DONE) {
        return status;
    }
    struct compact_report report;
    struct err_detail detail = {0};
    enum err err = compact_volume(data.instance.volume, (unsigned)options->dead, &report, &detail);
    if (err != ERR_OK) {
        status = cli_fail(cli, "compact: %s", err_detail_text(&detail, err));
    } else {
        print_compacted(cli, options->json, &report);
    }
    data_close(&data);
    return status;
}
