#include "cli/ask.h"
#include "cli/commands.h"

enum { PATH_SIZE_MAX = 16 << 10, WORDS_SIZE_MAX = 2 << 10, DATE_DIGITS = 8 };

struct search_options {
    const char *data;
    const char *host;
    const char *from;
    const char *to;
    uint64_t limit;
    uint64_t offset;
    bool local;
    bool json;
};

/* What pages say may not steer a terminal: control characters become spaces. */
static void put_plain(struct buf *out, const char *text) {
    struct bytes rest = bytes_of_string(text);
    for (size_t i = 0; i < rest.size; i++) {
        bool is_c1 = rest.data[i] == 0xc2 && i + 1 < rest.size && rest.data[i + 1] < 0xa0;
        bool is_control = rest.data[i] < ' ' || rest.data[i] == 0x7f || is_c1;
        buf_put_byte(out, is_control ? ' ' : rest.data[i]);
        i += is_c1;
    }
}

static void put_found(struct buf *out, size_t number, const json_t *found) {
    const char *title = ask_text(found, "title");
    const char *time = ask_text(found, "timestamp");
    const char *node = ask_text(found, "node");
    buf_put_format(out, "%zu. ", number);
    put_plain(out, title[0] != '\0' ? title : ask_text(found, "url"));
    buf_put_string(out, "\n   ");
    put_plain(out, ask_text(found, "url"));
    buf_put_format(out, "\n   %.4s-%.2s-%.2s", time, strlen(time) > 4 ? time + 4 : "",
                   strlen(time) > DATE_DIGITS - 2 ? time + DATE_DIGITS - 2 : "");
    if (node[0] != '\0') {
        buf_put_string(out, ", found by ");
        put_plain(out, node);
    }
    buf_put_string(out, "\n   ");
    put_plain(out, ask_text(found, "snippet"));
    buf_put_string(out, "\n\n");
}

/* What was searched; the status says whether that is all. */
static int search_tell(struct cli *cli, const json_t *answer, bool is_quiet) {
    const json_t *ring = json_object_get(answer, "ring");
    struct buf absent;
    buf_init(&absent, PATH_SIZE_MAX);
    if (!json_is_true(json_object_get(answer, "partial"))) {
        if (!is_quiet && ring != NULL) {
            put_plain(&absent, ask_text(ring, "text"));
            buf_put_byte(&absent, '\n');
        }
        cli_write(cli, &absent);
        return CLI_DONE;
    }
    const json_t *names = json_object_get(answer, "unanswered");
    for (size_t i = 0; ring == NULL && i < json_array_size(names); i++) {
        buf_put_string(&absent, i == 0 ? "Not searched: " : ", ");
        put_plain(&absent, json_string_value(json_array_get(names, i)));
    }
    if (ring != NULL) {
        put_plain(&absent, ask_text(ring, "text"));
    }
    int status = cli_fail(cli, "these may not be all. %.*s", BYTES_ARG(buf_bytes(&absent)));
    buf_done(&absent);
    return status;
}

static int search_show(struct cli *cli, const struct search_options *options, const json_t *answer) {
    const json_t *results = json_object_get(answer, "results");
    struct buf out;
    buf_init(&out, ASK_FILE_SIZE_MAX);
    if (options->json) {
        json_dumpf(answer, cli->out, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
        fputc('\n', cli->out);
    }
    for (size_t i = 0; !options->json && i < json_array_size(results); i++) {
        put_found(&out, (size_t)options->offset + i + 1, json_array_get(results, i));
    }
    if (!options->json && json_array_size(results) == 0) {
        buf_put_string(&out, "No page that was searched has all of these words.\n");
    }
    if (!options->json && json_is_true(json_object_get(answer, "has_more"))) {
        buf_put_format(&out, "There are more: --offset %ju\n",
                       (uintmax_t)(options->offset + json_array_size(results)));
    }
    cli_write(cli, &out);
    return search_tell(cli, answer, options->json);
}

static int search_run(struct cli *cli, const void *values) {
    const struct search_options *options = values;
    struct data data;
    struct buf path;
    struct buf words;
    int status = data_find(&data, cli, options->data);
    if (status != CLI_DONE) {
        return status;
    }
    buf_init(&path, PATH_SIZE_MAX);
    buf_init(&words, WORDS_SIZE_MAX);
    for (size_t i = 0; i < cli->arguments_count; i++) {
        buf_put_string(&words, i > 0 ? " " : "");
        buf_put_string(&words, cli->arguments[i]);
    }
    buf_put_byte(&words, '\0');
    buf_put_format(&path, "/api/v1/search?limit=%ju&offset=%ju%s", (uintmax_t)options->limit,
                   (uintmax_t)options->offset, options->local ? "&scope=node" : "");
    if (words.err == ERR_OK) {
        ask_put_argument(&path, "q", (const char *)words.data);
    }
    const char *const names[] = {"host", "from", "to"};
    const char *const given[] = {options->host, options->from, options->to};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (given[i] != NULL) {
            ask_put_argument(&path, names[i], given[i]);
        }
    }
    buf_put_byte(&path, '\0');
    if (path.err != ERR_OK || words.err != ERR_OK) {
        status = cli_fail(cli, "this is too long to search for");
    } else {
        json_t *answer = ask_object(cli, &data, (const char *)path.data);
        status = answer != NULL ? search_show(cli, options, answer) : CLI_FAILED;
        json_decref(answer);
    }
    buf_done(&words);
    buf_done(&path);
    return status;
}

static const struct option search_options[] = {
    OPTION(TEXT, struct search_options, data, "data", "DIR", DATA_HELP),
    OPTION(TEXT, struct search_options, host, "host", "HOST", "only pages of this host and its subdomains"),
    OPTION(TEXT, struct search_options, from, "from", "TIME",
           "only pages archived from this time on: 2026, 2026-01-31 or 20260131120000"),
    OPTION(TEXT, struct search_options, to, "to", "TIME", "only pages archived up to this time"),
    OPTION(NUMBER, struct search_options, limit, "limit", "N", "print at most N results", .min = 1,
           .max = 100),
    OPTION(NUMBER, struct search_options, offset, "offset", "N", "pass over the first N results",
           .max = 10000),
    OPTION(FLAG, struct search_options, local, "local", NULL, DATA_LOCAL_HELP),
    OPTION(FLAG, struct search_options, json, "json", NULL,
           "print JSON, with what was searched and what was not"),
    {0},
};

static const struct search_options search_defaults = {.limit = 20};

const struct command search_command = {
    .name = "search",
    .summary = "find archived pages by their words",
    .synopsis = "[OPTION…] WORD…",
    .details =
        "Asks the node that runs on the data directory for pages in which all words occur, the best first. "
        "\"two words\" finds words side by side, -word leaves out pages with that word, word* finds words "
        "that "
        "begin so; put all of it into one argument then.\n\n"
        "A node of a ring searches the whole ring, and says whether that was possible. If a part of the ring "
        "was not searched, or not surely all of it, standard error says which and why, and the exit status "
        "is "
        "1.\n\n"
        "  mnemon search grey heron\n"
        "  mnemon search --host example.org --from 2025 '\"annual report\" -draft'",
    .options = search_options,
    .options_size = sizeof(struct search_options),
    .defaults = &search_defaults,
    .arguments_min = 1,
    .arguments_max = 64,
    .run = search_run,
};
