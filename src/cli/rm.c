#include <string.h>

#include "base/json.h"
#include "base/utc.h"
#include "base/value.h"
#include "cli/commands.h"
#include "cli/data.h"
#include "cli/period.h"
#include "store/instance/purge.h"
#include "web/url/url.h"

enum { MEMORY_SIZE_MAX = 4 * URL_SIZE_MAX };

struct rm_options {
    const char *data;
    const char *from;
    const char *to;
    bool userinfo;
    bool dry_run;
    bool yes;
    bool quiet;
    bool json;
};

/* One run: the captures that were meant. */
struct remover {
    struct cli *cli;
    const struct rm_options *options;
    const char *url;
    struct buf memory; /* of the keys */
    struct deletion deletions[DELETION_PARTS_MAX];
    size_t deletions_count;
};

/* A URL came from elsewhere: it must not steer the terminal. */
static void rm_print_url(FILE *file, struct bytes url) {
    for (size_t i = 0; i < url.size; i++) {
        bool is_control = url.data[i] < ' ' || url.data[i] == 0x7f;
        fputc(is_control ? '?' : url.data[i], file);
    }
    fputc('\n', file);
}

static void rm_print_capture(void *context, const struct capture *capture) {
    const struct remover *remover = context;
    FILE *out = remover->cli->out;
    char time[UTC_DIGITS_SIZE];
    utc_format_digits(capture->time_us, time);
    if (remover->options->quiet) {
        return;
    }
    if (!remover->options->json) {
        fprintf(out, "%s ", time);
        rm_print_url(out, capture->url);
        return;
    }
    struct json line;
    json_begin_file(&line, out);
    json_text(&line, "timestamp", time);
    json_bytes(&line, "url", capture->url);
    cli_note(remover->cli, json_end(&line));
}

static void rm_print_count(const struct remover *remover, uint64_t count) {
    const struct rm_options *options = remover->options;
    if (options->json) {
        struct json line;
        json_begin_file(&line, remover->cli->out);
        json_count(&line, options->dry_run ? "would_remove" : "removed", count);
        cli_note(remover->cli, json_end(&line));
        return;
    }
    struct buf out;
    buf_init(&out, 256);
    VALUE_PUT(&out, "{count} capture{s}", count);
    buf_put_string(&out, options->dry_run
                             ? " would be removed\n"
                             : " removed; \"mnemon store compact\" takes their bytes off the disk\n");
    cli_write(remover->cli, &out);
}

static int rm_purge(struct remover *remover, struct data *data, bool is_dry, bool is_told,
                    uint64_t *ret_count) {
    struct purge_config config = {
        .deletions = remover->deletions,
        .deletions_count = remover->deletions_count,
        .is_wanted = remover->options->userinfo ? data_has_userinfo : NULL,
        .is_dry = is_dry,
        .each = is_told ? rm_print_capture : NULL,
        .context = remover,
    };
    struct err_detail detail = {0};
    enum err err = purge_run(data->session, &config, ret_count, &detail);
    if (err == ERR_OK) {
        return CLI_DONE;
    }
    return is_dry ? cli_fail(remover->cli, "the captures of %s cannot be listed: %s", remover->url,
                             err_detail_text(&detail, err))
                  : cli_fail(remover->cli, "%ju captures of %s are removed, but not all: %s",
                             (uintmax_t)*ret_count, remover->url, err_detail_text(&detail, err));
}

/* A star alone is quickly typed: say first how much it means. */
static int rm_refuse_all(struct remover *remover, struct data *data) {
    uint64_t count = 0;
    int status = rm_purge(remover, data, true, false, &count);
    return status != CLI_DONE
               ? status
               : cli_fail(remover->cli, "\"*\" means all %ju captures; nothing is removed without --yes",
                          (uintmax_t)count);
}

static int rm_remove(struct remover *remover, struct data *data) {
    const struct rm_options *options = remover->options;
    uint64_t count = 0;
    if (data_is_in_ring(data) && !options->dry_run) {
        return cli_fail(remover->cli,
                        "nothing is removed: this node is a member of a ring, and the other nodes "
                        "that hold copies would bring them back; the founder deletes captures "
                        "on all nodes with \"mnemon ring delete\"");
    }
    if (strcmp(remover->url, "*") == 0 && !options->yes && !options->dry_run && !options->userinfo) {
        return rm_refuse_all(remover, data);
    }
    int status = rm_purge(remover, data, options->dry_run, true, &count);
    if (status == CLI_DONE && count == 0) {
        return cli_fail(remover->cli, "the archive in %s holds no such capture of %s", data->directory,
                        remover->url);
    }
    if (status == CLI_DONE) {
        rm_print_count(remover, count);
    }
    return status;
}

static int rm_run(struct cli *cli, const void *values) {
    struct remover remover = {.cli = cli, .options = values, .url = cli->arguments[0]};
    struct err_detail detail = {0};
    struct data data;
    int64_t from_us;
    int64_t to_us;
    int status = period_read(cli, &rm_command, remover.options->from, remover.options->to, &from_us, &to_us);
    if (status != CLI_DONE) {
        return status;
    }
    buf_init(&remover.memory, MEMORY_SIZE_MAX);
    enum err err = deletion_read_url(bytes_of_string(remover.url), &remover.memory, remover.deletions,
                                     &remover.deletions_count, &detail);
    if (err != ERR_OK) {
        buf_done(&remover.memory);
        return cli_usage(cli, &rm_command, "\"%s\" is not a URL: %s", remover.url,
                         err_detail_text(&detail, err));
    }
    for (size_t i = 0; i < remover.deletions_count; i++) {
        remover.deletions[i].from_us = from_us;
        remover.deletions[i].to_us = to_us;
    }
    status = data_open(&data, cli, remover.options->data, DATA_READ);
    if (status == CLI_DONE) {
        status = rm_remove(&remover, &data);
        data_close(&data);
    }
    buf_done(&remover.memory);
    return status;
}

static const struct option rm_options[] = {
    OPTION(TEXT, struct rm_options, data, "data", "DIR", DATA_HELP),
    OPTION(TEXT, struct rm_options, from, "from", "TIME",
           "only captures from this time on: 1 to 14 digits, such as 2026 or 20260102030405"),
    OPTION(TEXT, struct rm_options, to, "to", "TIME",
           "only captures up to this time; 2026 means the end of that year"),
    OPTION(FLAG, struct rm_options, userinfo, "userinfo", NULL, DATA_USERINFO_HELP),
    OPTION(FLAG, struct rm_options, dry_run, "dry-run", NULL,
           "print what would be removed, and remove nothing"),
    OPTION(FLAG, struct rm_options, yes, "yes", NULL, "remove everything, if URL is \"*\"", .letter = 'y'),
    OPTION(FLAG, struct rm_options, quiet, "quiet", NULL, "print how many captures, and not which",
           .letter = 'q'),
    OPTION(FLAG, struct rm_options, json, "json", NULL, "print one JSON object per line"),
    {0},
};

static const struct rm_options rm_defaults = {.data = NULL};

const struct command rm_command = {
    .name = "rm",
    .summary = "remove captures of a URL from the archive",
    .synopsis = "URL[*] [OPTION…]",
    .details =
        "Removes the captures of a URL, whatever the method of their requests was, and prints which. They "
        "are "
        "no longer listed, shown or found from then on. \"mnemon store compact\" takes their bytes off the "
        "disk; a document that captures of other URLs share stays for them.\n\n"
        "A member of a ring removes nothing by itself, since the nodes that hold copies would bring them "
        "back: there the founder deletes captures on all nodes, with \"mnemon ring delete\".\n\n"
        "  mnemon rm http://example.org/page --to 2025           this URL, until the end of 2025\n"
        "  mnemon rm 'http://example.org/dir/*' --dry-run        what would go\n"
        "  mnemon rm 'http://example.org/dir/*'                  all URLs that begin like this\n"
        "  mnemon rm '*.example.org'                             the host and its subdomains\n"
        "  mnemon rm '*' --userinfo                              what has a password in its URL",
    .options = rm_options,
    .options_size = sizeof(struct rm_options),
    .defaults = &rm_defaults,
    .arguments_min = 1,
    .arguments_max = 1,
    .run = rm_run,
};
