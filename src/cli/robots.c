#include "crawl/rules/robots.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "cli/commands.h"
#include "web/url/url.h"

struct robots_options {
    const char *agent;
    bool json;
};

static const struct robots_options robots_defaults = {.agent = robots_agent};

/* What one run keeps between URLs. */
struct printer {
    struct cli *cli;
    bool json;
    struct robots robots;
    struct url base; /* for arguments that are only a path */
    struct url url;
    struct buf line;
    struct json lines;
    uint64_t invalid_count;
};

static void print_verdict_json(struct json *json, struct bytes url, const struct robots_verdict *verdict) {
    char sentence[ROBOTS_SENTENCE_SIZE_MAX];
    json_open(json, NULL);
    json_bytes(json, "url", url);
    json_bool(json, "allowed", verdict->is_allowed);
    if (verdict->reason == ROBOTS_BY_RULE) {
        json_count(json, "line", verdict->line);
        json_bytes(json, "text", verdict->text);
        json_bytes(json, "agent", verdict->agent);
    }
    json_text(json, "reason", robots_explain(verdict, sentence));
    json_close(json);
}

/* Lines of the file are quoted: they may hold anything, also for a terminal. */
static void put_verdict(struct printer *printer, struct bytes url, const struct robots_verdict *verdict) {
    struct buf *line = &printer->line;
    buf_put_format(line, "%-5s  %.*s  ", verdict->is_allowed ? "allow" : "deny", BYTES_ARG(url));
    if (verdict->reason == ROBOTS_BY_RULE) {
        buf_put_format(line, "line %u: ", verdict->line);
        json_quote(line, verdict->text);
        buf_put_string(line, " for ");
        json_quote(line, verdict->agent);
    } else {
        char sentence[ROBOTS_SENTENCE_SIZE_MAX];
        buf_put_string(line, robots_explain(verdict, sentence));
    }
    buf_put_byte(line, '\n');
}

static void print_invalid(struct printer *printer, struct bytes input, const char *reason) {
    printer->invalid_count++;
    if (!printer->json) {
        json_quote(&printer->line, input);
        cli_fail(printer->cli, "%.*s: %s", BYTES_ARG(buf_bytes(&printer->line)), reason);
        buf_clear(&printer->line);
        return;
    }
    json_open(&printer->lines, NULL);
    json_bytes(&printer->lines, "url", input);
    json_text(&printer->lines, "error", reason);
    json_close(&printer->lines);
}

/* The URL without its fragment, which robots.txt never sees. */
static void print_verdict(struct printer *printer, bool is_path) {
    const struct url *url = &printer->url;
    uint32_t end = url_has_query(url) ? url->query.to : url->path.to;
    struct bytes path = bytes_slice(url_href(url), url->path.from, end);
    struct bytes shown = is_path ? path : bytes_slice(url_href(url), 0, end);
    struct robots_verdict verdict;
    robots_check(&printer->robots, path, &verdict);
    if (printer->json) {
        print_verdict_json(&printer->lines, shown, &verdict);
    } else {
        put_verdict(printer, shown, &verdict);
    }
}

static void robots_print_url(struct printer *printer, struct bytes input) {
    struct err_detail detail = {0};
    bool is_path = input.size > 0 && input.data[0] == '/';
    enum err err = url_parse(&printer->url, input, is_path ? &printer->base : NULL, &detail);
    buf_clear(&printer->line);
    if (err != ERR_OK) {
        print_invalid(printer, input, err_detail_text(&detail, err));
    } else if (!url_is_web(&printer->url)) {
        print_invalid(printer, input, "neither http nor https");
    } else {
        print_verdict(printer, is_path);
    }
    fwrite(printer->line.data, 1, printer->line.size, printer->cli->out);
}

/* As much as the parser looks at, and one byte more so that it knows that there is more. */
static int read_robots(struct cli *cli, const char *path, struct buf *text) {
    FILE *file = cli_open_input(cli, path);
    if (file == NULL) {
        return CLI_FAILED;
    }
    enum { BOM_SIZE = 3, TEXT_SIZE = ROBOTS_TEXT_SIZE_MAX + BOM_SIZE + 1 };
    int status = CLI_DONE;
    if (buf_reserve(text, TEXT_SIZE) != ERR_OK) {
        status = cli_fail(cli, "%s: %s", path, err_text(ERR_MEMORY));
    } else {
        text->size = fread(text->data, 1, TEXT_SIZE, file);
        status = ferror(file) ? cli_fail(cli, "%s: %s", path, strerror(errno)) : CLI_DONE;
    }
    cli_close_input(cli, file);
    return status;
}

static int print_all(struct printer *printer, const struct robots_options *options, struct bytes text) {
    char **arguments = printer->cli->arguments;
    enum err err = robots_parse(&printer->robots, text, bytes_of_string(options->agent));
    err = err != ERR_OK ? err : url_parse(&printer->base, BYTES("http://host/"), NULL, NULL);
    if (err != ERR_OK) {
        return cli_fail(printer->cli, "%s: %s", arguments[0], err_text(err));
    }
    for (size_t i = 1; i < printer->cli->arguments_count; i++) {
        robots_print_url(printer, bytes_of_string(arguments[i]));
    }
    return printer->invalid_count > 0 ? CLI_FAILED : CLI_DONE;
}

static int robots_run(struct cli *cli, const void *values) {
    const struct robots_options *options = values;
    struct printer printer = {.cli = cli, .json = options->json};
    robots_init(&printer.robots, ROBOTS_ALLOW_ALL);
    url_init(&printer.base);
    url_init(&printer.url);
    buf_init(&printer.line,
             (size_t)32 * URL_SIZE_MAX); /* URL and line, each byte escaped six-fold at worst */
    json_init_file(&printer.lines, cli->out);
    struct buf text;
    buf_init(&text, ROBOTS_TEXT_SIZE_MAX + 16);
    int status = read_robots(cli, cli->arguments[0], &text);
    if (status == CLI_DONE) {
        status = print_all(&printer, options, buf_bytes(&text));
    }
    buf_done(&text);
    cli_note(cli, json_done(&printer.lines));
    buf_done(&printer.line);
    url_done(&printer.url);
    url_done(&printer.base);
    robots_done(&printer.robots);
    return status;
}

static const struct option robots_options[] = {
    OPTION(TEXT, struct robots_options, agent, "agent", "NAME",
           "the crawler's product token or whole User-Agent (mnemon)"),
    OPTION(FLAG, struct robots_options, json, "json", NULL, "print one JSON object per line"),
    {0},
};

const struct command robots_command = {
    .name = "robots",
    .summary = "show what a robots.txt allows",
    .synopsis = "FILE [--agent NAME] [--json] URL…",
    .details =
        "Prints allow or deny for each URL (or path), by the rules of RFC 9309, and the line that decides: "
        "the longest matching rule, or Allow if two are equally long. FILE may be - for standard input.\n\n"
        "The exit status is 1 if any URL is invalid.",
    .options = robots_options,
    .options_size = sizeof(struct robots_options),
    .defaults = &robots_defaults,
    .arguments_min = 2,
    .arguments_max = SIZE_MAX,
    .run = robots_run,
};
