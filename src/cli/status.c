#include "base/json.h"
#include "base/value.h"
#include "cli/ask.h"
#include "cli/commands.h"

enum { LINE_SIZE_MAX = 1 << 16 };

struct status_options {
    const char *data;
    bool json;
};

/* ---- for people ---- */

static void put_sections(struct buf *out, const json_t *status) {
    const json_t *search = json_object_get(status, "search");
    ask_put(
        out, json_object_get(status, "crawl"),
        "crawl    {jobs:count} jobs open, {documents_per_second:1} documents/s, "
        "{received_bytes_per_second:size}/s; {documents:count} stored, {urls_waiting:count} URLs waiting, "
        "{hosts_waiting:count} of {hosts:count} hosts waited for\n");
    ask_put(out, json_object_get(status, "store"),
            "store    {captures:count} captures, {bytes:size}; a commit takes {commit_milliseconds:1} ms "
            "(sync {sync_milliseconds:1} ms), queue {queue_percent:0} %, {free_bytes:size} free\n");
    const json_t *store = json_object_get(status, "store");
    if (ask_number(store, "quota_bytes") > 0) {
        ask_put(out, store, "disk     {used_bytes:size} of a quota of {quota_bytes:size} used\n");
    }
    ask_put(out, json_object_get(status, "http"),
            "http     {requests:count} requests, {requests_per_second:1}/s, half in {p50_milliseconds:1} ms, "
            "99 of 100 in {p99_milliseconds:1} ms\n");
    if (json_is_true(json_object_get(search, "enabled"))) {
        ask_put(out, search, "search   {documents:count} pages, {left:count} captures not yet read\n");
    }
    ask_put(out, json_object_get(status, "process"),
            "process  {memory_bytes:size}, {cpu_percent:0} % of a processor\n");
    const json_t *parsers = json_object_get(status, "parsers");
    if (ask_number(parsers, "enabled") > 0) {
        ask_put(
            out, parsers,
            "parsers  {running:count} run, {documents:count} documents; {lost:count} not parsed because a "
            "parser ended\n");
    } else {
        buf_put_string(out, "parsers  none: foreign content is parsed in the process of the node\n");
    }
}

static void put_slow(struct buf *line, const json_t *status) {
    const json_t *slow = json_object_get(status, "slow");
    buf_put_string(line,
                   json_array_size(slow) == 0 ? "\nNothing is held up.\n" : "\nWhat is slow, and why:\n");
    for (size_t i = 0; i < json_array_size(slow); i++) {
        ask_put(line, json_array_get(slow, i), "  {text}\n");
    }
}

static void status_print_status(struct buf *out, const struct node_file *node, const json_t *status) {
    buf_put_format(out, "node     %s, process %jd, ", node->url, (intmax_t)node->pid);
    VALUE_PUT(out, "up {time}\n", (uint64_t)(ask_number(status, "uptime_seconds") * 1e6));
    put_sections(out, status);
    put_slow(out, status);
}

/* ---- without a node ---- */

static void show_archive(struct cli *cli, const struct status_options *options) {
    struct data data;
    uint64_t captures_count = 0;
    uint64_t size = 0;
    struct buf line;
    if (data_open(&data, cli, options->data, DATA_READ) != CLI_DONE) {
        return;
    }
    for (size_t i = 0; i < instance_volumes_count(data.instance); i++) {
        struct volume_stat stat;
        if (instance_stat(data.session, i, &stat, NULL) == ERR_OK) {
            captures_count += stat.captures_count;
            size += stat.size;
        }
    }
    data_close(&data);
    if (options->json) {
        struct json json;
        json_begin_file(&json, cli->out);
        json_bool(&json, "running", false);
        JSON_COUNTS(&json, {"captures", captures_count}, {"bytes", size});
        cli_note(cli, json_end(&json));
        return;
    }
    buf_init(&line, LINE_SIZE_MAX);
    VALUE_PUT(&line, "the archive holds {count} captures, {size}; run \"mnemon serve\" to browse them\n",
              captures_count, size);
    cli_write(cli, &line);
}

static int status_run(struct cli *cli, const void *values) {
    const struct status_options *options = values;
    struct data data;
    struct node_file node;
    struct err_detail detail = {0};
    int status = data_find(&data, cli, options->data);
    if (status != CLI_DONE) {
        return status;
    }
    enum err err = node_file_read(data.directory, &node, &detail);
    if (err == ERR_OK) {
        return ask_show(cli, &data, "/api/v1/status", options->json, status_print_status);
    }
    cli_fail(cli, "%s", err_detail_text(&detail, err));
    show_archive(cli, options);
    return CLI_FAILED;
}

static const struct option status_options[] = {
    OPTION(TEXT, struct status_options, data, "data", "DIR", DATA_HELP),
    OPTION(FLAG, struct status_options, json, "json", NULL,
           "print JSON, with everything that the dashboard shows"),
    {0},
};

const struct command status_command = {
    .name = "status",
    .summary = "show what a running node is doing, what is slow and why",
    .synopsis = "[OPTION…]",
    .details =
        "Asks the node that runs on the data directory. Rates are those of the last ten seconds.\n\n"
        "If no node is running, it says so and shows what the archive holds; the exit status is then 1.",
    .options = status_options,
    .options_size = sizeof(struct status_options),
    .run = status_run,
};
