#include "cli/commands.h"
#include "cli/data.h"
#include "cli/period.h"
#include "replay/archive/stamp.h"
#include "store/instance/absent.h"
#include "store/instance/capture_line.h"
#include "store/instance/query.h"
#include "web/url/url.h"

struct list_options {
    const char *data;
    uint32_t match;
    const char *from;
    const char *to;
    uint64_t limit;
    bool userinfo;
    bool json;
    bool local;
};

static const struct list_options list_defaults = {.limit = UINT64_MAX};

static int print_captures(struct cli *cli, const struct list_options *options, struct data *data,
                          struct query *query) {
    struct buf line;
    buf_init(&line, 2 * (size_t)CDXJ_LINE_SIZE_MAX);
    struct capture_line text;
    struct capture capture;
    enum err err = ERR_OK;
    uint64_t count = 0;
    char id[STAMP_SIZE];
    capture_line_init(&text, data->instance);
    instance_session_hide_witnesses(data->session, true);
    query_start(query, data->session);
    while (count < options->limit && !ferror(cli->out) && (err = query_next(query, &capture)) == ERR_OK) {
        if (options->userinfo && !data_has_userinfo(&capture)) {
            continue;
        }
        struct cdxj cdxj = capture_line_cdxj(&text, &capture);
        /* OutbackCDX, which such lines are fed to, refuses fields that it does not know. */
        cdxj.id = options->json ? bytes_of_string(stamp_format(stamp_of(&capture), id)) : bytes_of(NULL, 0);
        buf_clear(&line);
        err = options->json ? cdxj_put_json(&line, &cdxj) : cdxj_put(&line, &cdxj);
        if (err != ERR_OK) {
            break;
        }
        fwrite(line.data, 1, line.size, cli->out);
        count++;
    }
    buf_done(&line);
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return cli_fail(cli, "the index cannot be read: %s", err_text(err));
    }
    const struct absent *absent = data_absent(data);
    return absent->is_any ? cli_fail(cli, "these may not be all: %s did not answer", absent->text) : CLI_DONE;
}

static int list_run(struct cli *cli, const void *values) {
    const char *url = cli->arguments[0];
    const struct list_options *options = values;
    int64_t from_us;
    int64_t to_us;
    int status = period_read(cli, &list_command, options->from, options->to, &from_us, &to_us);
    if (status != CLI_DONE) {
        return status;
    }
    struct query query;
    struct err_detail detail = {0};
    enum err err = query_init(&query, bytes_of_string(url), (enum query_match)options->match, &detail);
    if (err != ERR_OK) {
        return cli_usage(cli, &list_command, "\"%s\" is not a URL: %s", url, err_detail_text(&detail, err));
    }
    query.from_us = from_us;
    query.to_us = to_us;
    struct data data;
    status = data_open(&data, cli, options->data, options->local ? DATA_READ : DATA_READ_RING);
    if (status != CLI_DONE) {
        query_done(&query);
        return status;
    }
    status = print_captures(cli, options, &data, &query);
    query_done(&query);
    data_close(&data);
    return status;
}

static const struct option list_options[] = {
    OPTION(TEXT, struct list_options, data, "data", "DIR", DATA_HELP),
    OPTION(CHOICE, struct list_options, match, "match", "HOW", "which URLs to list; auto decides by the star",
           .choices = query_matches),
    OPTION(TEXT, struct list_options, from, "from", "TIME",
           "only captures from this time on: 1 to 14 digits, such as 2026 or 20260102030405"),
    OPTION(TEXT, struct list_options, to, "to", "TIME",
           "only captures up to this time; 2026 means the end of that year"),
    OPTION(NUMBER, struct list_options, limit, "limit", "N", "print at most N captures", .max = UINT64_MAX),
    OPTION(FLAG, struct list_options, userinfo, "userinfo", NULL, DATA_USERINFO_HELP),
    OPTION(FLAG, struct list_options, local, "local", NULL, DATA_LOCAL_HELP),
    OPTION(FLAG, struct list_options, json, "json", NULL, "print one JSON object per line"),
    {0},
};

const struct command list_command = {
    .name = "list",
    .summary = "list the captures of a URL",
    .synopsis = "URL[*] [OPTION…]",
    .details =
        "Prints captures as CDXJ lines, sorted by URL and time: SURT, timestamp, and a JSON object "
        "with url, mime, status, digest, length, offset and filename. A capture whose payload is "
        "stored with an earlier one has the mime type warc/revisit.\n\n"
        "On the data directory of a node that is in a ring, the captures of the whole ring are listed, "
        "through the running node; with --local only those of this node.\n\n"
        "The exit status is 1 if a volume or a node that could hold more did not answer: what the "
        "others have is listed, and standard error names it.\n\n"
        "  mnemon list http://example.org/page      this URL\n"
        "  mnemon list 'http://example.org/dir/*'   all URLs that begin like this\n"
        "  mnemon list '*.example.org'              the host and its subdomains\n"
        "  mnemon list '*'                          everything\n"
        "  mnemon list '*' --userinfo               what has a password in its URL",
    .options = list_options,
    .options_size = sizeof(struct list_options),
    .defaults = &list_defaults,
    .arguments_min = 1,
    .arguments_max = 1,
    .run = list_run,
};
