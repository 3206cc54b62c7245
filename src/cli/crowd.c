#include "base/value.h"
#include "cli/ask.h"
#include "cli/commands.h"

enum { PATH_SIZE_MAX = 8 << 10, HOT_SHOWN_MAX = 10 };

struct crowd_options {
    const char *data;
    bool json;
    const char *at;
    uint64_t since_us;
    bool digest;
    bool words;
    const char *output;
};

enum { STATUS, LOCATE };

static const struct command_action crowd_actions[] = {
    [STATUS] =
        {
            .name = "status",
            .summary = "show the neighbours, the searches and the captures passed on",
            .details = "  mnemon crowd status --json",
        },
    [LOCATE] =
        {
            .name = "locate",
            .synopsis = "URL",
            .summary = "find a capture, fetch it, check it, and pass it on from here too",
            .details = "  mnemon crowd locate https://example.org/ --since 5m --output page.html\n"
                       "  mnemon crowd locate --words \"annual report\"",
            .needs = "name what to search for: mnemon crowd locate URL",
        },
    {0},
};

/* ---- status ---- */

/* "searches  3 begun, 2 found": the members of an object, in their order. */
static void put_members(struct buf *line, const char *title, const json_t *object) {
    const char *name;
    json_t *value;
    const char *between = "";
    buf_put_format(line, "%-10s", title);
    json_object_foreach((json_t *)object, name, value) {
        buf_put_string(line, between);
        if (strcmp(name, "size") == 0 || strcmp(name, "given_size") == 0) {
            value_put_size(line, (uint64_t)json_number_value(value));
        } else {
            buf_put_format(line, "%.0f %s", json_number_value(value), name);
        }
        between = ", ";
    }
    buf_put_byte(line, '\n');
}

static void put_hot(struct buf *line, const json_t *hot) {
    for (size_t i = 0; i < json_array_size(hot) && i < HOT_SHOWN_MAX; i++) {
        const json_t *object = json_array_get(hot, i);
        buf_put_format(line, "%-10s", i == 0 ? "hot" : "");
        ask_put(line, object, "asked for {asked:0} times, served {given:0} times, {size:size}: {url}\n");
    }
}

static void crowd_print_status(struct buf *out, const struct node_file *node, const json_t *crowd) {
    static const char *const parts[] = {"searches", "queries", "shuffles", "offers", "obtained", "messages"};
    (void)node;
    if (strcmp(ask_text(crowd, "state"), "none") == 0) {
        buf_put_string(out, "no crowd: this node is not in a ring, or crowd.enabled is \"no\"\n");
        return;
    }
    const json_t *view = json_object_get(crowd, "view");
    buf_put_format(out, "crowd     %s, %zu of %.0f neighbours (%s), takes part as %s\n",
                   ask_text(crowd, "state"), json_array_size(view), ask_number(crowd, "view_size"),
                   ask_text(crowd, "overlay"), ask_text(crowd, "part"));
    for (size_t i = 0; i < json_array_size(view); i++) {
        const json_t *neighbour = json_array_get(view, i);
        buf_put_format(out, "%-10s%-24s age %.0f\n", i == 0 ? "view" : "", ask_text(neighbour, "address"),
                       ask_number(neighbour, "age"));
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        put_members(out, parts[i], json_object_get(crowd, parts[i]));
    }
    put_hot(out, json_object_get(crowd, "hot"));
}

/* ---- locate ---- */

static void print_capture(struct buf *out, const struct node_file *node, const json_t *capture) {
    ask_put(out, capture, "{timestamp} {url}, {size:size}\nsha256     {digest}\n");
    ask_put(out, capture,
            strcmp(ask_text(capture, "source"), "own") == 0
                ? "from       this node, which had it already\n"
                : "from       {from}, {hops:0} hops away, {holders:0} holders; found in "
                  "{search_milliseconds:0} ms, fetched in {transfer_milliseconds:0} ms\n");
    if (ask_text(capture, "fetched_by")[0] != '\0') {
        ask_put(out, capture, "fetched by {fetched_by}\n");
    }
    if (ask_text(capture, "imported_by")[0] != '\0') {
        ask_put(out, capture, "imported by {imported_by}\n");
    }
    buf_put_format(out, "see        %s", node->url);
    ask_put(out, capture, "/web/{timestamp}/{url}\n");
}

static int locate(struct cli *cli, const struct data *data, const struct crowd_options *options) {
    struct buf path;
    int status;
    buf_init(&path, PATH_SIZE_MAX);
    buf_put_format(&path, "/api/v1/crowd/locate?content=%s", options->output != NULL ? "payload" : "facts");
    ask_put_argument(&path, options->digest ? "digest" : options->words ? "words" : "url", cli->arguments[0]);
    if (options->at != NULL) {
        ask_put_argument(&path, "at", options->at);
    } else if (options->since_us > 0) {
        buf_put_format(&path, "&since=%ju", (uintmax_t)(options->since_us / 1000000));
    }
    buf_put_byte(&path, '\0');
    if (path.err != ERR_OK) {
        status = cli_fail(cli, "this is too long to search for");
    } else if (options->output != NULL) {
        status = ask_save(cli, data, (const char *)path.data, options->output);
    } else {
        status = ask_show(cli, data, (const char *)path.data, options->json, print_capture);
    }
    buf_done(&path);
    return status;
}

static int crowd_run(struct cli *cli, const void *values) {
    const struct crowd_options *options = values;
    struct data data;
    if (options->digest && options->words) {
        return cli_usage(cli, &crowd_command, "use either --digest or --words");
    }
    int status = data_find(&data, cli, options->data);
    if (status != CLI_DONE) {
        return status;
    }
    return cli->action == LOCATE ? locate(cli, &data, options)
                                 : ask_show(cli, &data, "/api/v1/crowd", options->json, crowd_print_status);
}

static const struct option crowd_options[] = {
    OPTION(TEXT, struct crowd_options, data, "data", "DIR", DATA_HELP),
    OPTION(TEXT, struct crowd_options, at, "at", "TIME",
           "find the capture closest to this time, 1 to 14 digits such as 20260102030405 (the newest)",
           .of = "locate"),
    OPTION(DURATION, struct crowd_options, since_us, "since", "TIME",
           "accept only captures younger than this, such as 5m", .max = UINT64_C(1000000) * 86400 * 36600,
           .of = "locate"),
    OPTION(FLAG, struct crowd_options, digest, "digest", NULL,
           "the argument is the SHA-256 digest of the content", .of = "locate"),
    OPTION(FLAG, struct crowd_options, words, "words", NULL,
           "the arguments are words that all occur in the title", .of = "locate"),
    OPTION(TEXT, struct crowd_options, output, "output", "FILE",
           "write the content to this file; - is standard output", .of = "locate"),
    OPTION(FLAG, struct crowd_options, json, "json", NULL, "print JSON"),
    {0},
};

const struct command crowd_command = {
    .name = "crowd",
    .summary = "fetch a capture from other nodes that have read it recently",
    .synopsis = "ACTION [OPTION…] [URL]",
    .details = "Every node of a ring passes on the pages that were read through it. A page in high demand "
               "therefore comes from many nodes, not only from the few that keep it. A running node asks the "
               "crowd by itself if those few are slow or busy.\n\n"
               "  mnemon crowd locate https://example.org/ --since 5m --output page.html\n"
               "  mnemon crowd locate --words \"annual report\"",
    .options = crowd_options,
    .options_size = sizeof(struct crowd_options),
    .actions = crowd_actions,
    .run = crowd_run,
};
