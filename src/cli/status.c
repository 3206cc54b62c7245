#include <jansson.h>
#include <stdlib.h>

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

static const json_t *member(const json_t *status, const char *section, const char *name) {
    return json_object_get(json_object_get(status, section), name);
}

static double real(const json_t *status, const char *section, const char *name) {
    return json_number_value(member(status, section, name));
}

static void status_put_count(struct buf *line, const json_t *status, const char *section, const char *name) {
    value_put_count(line, (uint64_t)real(status, section, name));
}

static void put_size(struct buf *line, const json_t *status, const char *section, const char *name) {
    value_put_size(line, (uint64_t)real(status, section, name));
}

static void put_crawl(struct buf *line, const json_t *status) {
    buf_put_string(line, "crawl    ");
    status_put_count(line, status, "crawl", "jobs");
    buf_put_format(line, " jobs open, %.1f documents/s, ", real(status, "crawl", "documents_per_second"));
    put_size(line, status, "crawl", "received_bytes_per_second");
    buf_put_string(line, "/s; ");
    status_put_count(line, status, "crawl", "documents");
    buf_put_string(line, " stored, ");
    status_put_count(line, status, "crawl", "urls_waiting");
    buf_put_string(line, " URLs waiting, ");
    status_put_count(line, status, "crawl", "hosts_waiting");
    buf_put_string(line, " of ");
    status_put_count(line, status, "crawl", "hosts");
    buf_put_string(line, " hosts waited for\n");
}

static void put_store(struct buf *line, const json_t *status) {
    buf_put_string(line, "store    ");
    status_put_count(line, status, "store", "captures");
    buf_put_string(line, " captures, ");
    put_size(line, status, "store", "bytes");
    buf_put_format(line, "; a commit takes %.1f ms (sync %.1f ms), queue %.0f %%, ",
                   real(status, "store", "commit_milliseconds"), real(status, "store", "sync_milliseconds"),
                   real(status, "store", "queue_percent"));
    put_size(line, status, "store", "free_bytes");
    buf_put_string(line, " free\n");
}

static void put_rest(struct buf *line, const json_t *status) {
    buf_put_string(line, "http     ");
    status_put_count(line, status, "http", "requests");
    buf_put_format(line, " requests, %.1f/s, half in %.1f ms, 99 of 100 in %.1f ms\n",
                   real(status, "http", "requests_per_second"), real(status, "http", "p50_milliseconds"),
                   real(status, "http", "p99_milliseconds"));
    if (json_is_true(member(status, "search", "enabled"))) {
        buf_put_string(line, "search   ");
        status_put_count(line, status, "search", "documents");
        buf_put_string(line, " pages, ");
        status_put_count(line, status, "search", "left");
        buf_put_string(line, " captures not yet read\n");
    }
    buf_put_string(line, "process  ");
    put_size(line, status, "process", "memory_bytes");
    buf_put_format(line, ", %.0f %% of a processor\n", real(status, "process", "cpu_percent"));
}

static void put_slow(struct buf *line, const json_t *status) {
    const json_t *slow = json_object_get(status, "slow");
    buf_put_string(line,
                   json_array_size(slow) == 0 ? "\nNothing is held up.\n" : "\nWhat is slow, and why:\n");
    for (size_t i = 0; i < json_array_size(slow); i++) {
        const char *text = json_string_value(json_object_get(json_array_get(slow, i), "text"));
        buf_put_format(line, "  %s\n", text != NULL ? text : "");
    }
}

static void status_print_status(struct buf *out, const struct node_file *node, const json_t *status) {
    buf_put_format(out, "node     %s, process %jd, up ", node->url, (intmax_t)node->pid);
    value_put_duration(out, (uint64_t)(json_number_value(json_object_get(status, "uptime_seconds")) * 1e6));
    buf_put_string(out, "\n");
    put_crawl(out, status);
    put_store(out, status);
    put_rest(out, status);
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
        struct backend_stat stat;
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
        json_end(&json);
        return;
    }
    buf_init(&line, LINE_SIZE_MAX);
    buf_put_string(&line, "the archive holds ");
    value_put_count(&line, captures_count);
    buf_put_string(&line, " captures, ");
    value_put_size(&line, size);
    buf_put_string(&line, "; run \"mnemon serve\" to browse them\n");
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
