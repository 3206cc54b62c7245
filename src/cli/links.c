#include "web/html/links.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "cli/commands.h"

enum { PIECE_SIZE = 1 << 16 };

struct links_command_options {
    const char *base;
    const char *type;
    bool json;
    bool forms;
    bool guesses;
};

struct printer {
    FILE *out;
    bool json;
    struct buf line;
};

static void links_put_json(struct printer *printer, const struct link *link) {
    struct json json;
    json_begin(&json, &printer->line);
    json_text(&json, "kind", link_kind_name(link->kind));
    json_text(&json, "element", link->element);
    json_text(&json, "attribute", link->attribute);
    json_count(&json, "offset", link->offset);
    json_bytes(&json, "url", link->href);
    json_end(&json);
    buf_put_byte(&printer->line, '\n');
}

/* Columns that the eye finds, separated by at least one space, so that other programs find them too. */
static void links_put_text(struct printer *printer, const struct link *link) {
    const char *element = link->element[0] == '\0' ? "-" : link->element;
    buf_put_format(&printer->line, "%-7s %-10s %-10s ", link_kind_name(link->kind), element, link->attribute);
    buf_put(&printer->line, link->href);
    buf_put_byte(&printer->line, '\n');
}

static void print_link(void *context, const struct link *link) {
    struct printer *printer = context;
    buf_clear(&printer->line);
    if (printer->json) {
        links_put_json(printer, link);
    } else {
        links_put_text(printer, link);
    }
    fwrite(printer->line.data, 1, printer->line.size, printer->out);
}

/* What servers would say of a file of this name; empty, for a look at its first bytes, where nothing is
 * known. */
static const char *type_of_name(const char *name) {
    static const struct {
        const char *extension;
        const char *type;
    } types[] = {
        {".html", "text/html"},
        {".htm", "text/html"},
        {".xhtml", "application/xhtml+xml"},
        {".css", "text/css"},
        {".svg", "image/svg+xml"},
        {".xml", "application/xml"},
        {".rss", "application/rss+xml"},
        {".atom", "application/atom+xml"},
        {".js", "text/javascript"},
        {".mjs", "text/javascript"},
        {".json", "application/json"},
        {".webmanifest", "application/manifest+json"},
        {".m3u8", "application/vnd.apple.mpegurl"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (bytes_ends_with(bytes_of_string(name), bytes_of_string(types[i].extension))) {
            return types[i].type;
        }
    }
    return "";
}

static int feed_file(const struct cli *cli, struct links *links, FILE *file, const char *name) {
    uint8_t piece[PIECE_SIZE];
    size_t size;
    enum err err = ERR_OK;
    while (err == ERR_OK && (size = fread(piece, 1, sizeof piece, file)) > 0) {
        err = links_feed(links, bytes_of(piece, size));
    }
    if (ferror(file)) {
        return cli_fail(cli, "cannot read %s: %s", name, strerror(errno));
    }
    err = err == ERR_OK ? links_finish(links) : err;
    if (err != ERR_OK) {
        return cli_fail(cli, "%s: %s", name, err_text(err));
    }
    if (links_taken_for(links) == LINKS_NONE) {
        return cli_fail(
            cli, "%s: links are not looked for in this kind of document; name another with --type", name);
    }
    return CLI_DONE;
}

static int print_links(struct cli *cli, const struct links_command_options *options, const struct url *base,
                       const char *path) {
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? cli->in : fopen(path, "rb");
    if (file == NULL) {
        return cli_fail(cli, "cannot open %s: %s", path, strerror(errno));
    }
    struct links *links = links_new();
    int status;
    if (links == NULL) {
        status = cli_fail(cli, "%s", err_text(ERR_MEMORY));
    } else {
        struct printer printer = {.out = cli->out, .json = options->json};
        buf_init(&printer.line, (size_t)8 * URL_SIZE_MAX);
        struct links_options wanted = {.forms = options->forms, .guesses = options->guesses};
        const char *type = options->type != NULL ? options->type : is_stdin ? "" : type_of_name(path);
        links_start(links, bytes_of_string(type), base, &wanted, print_link, &printer);
        status = feed_file(cli, links, file, is_stdin ? "standard input" : path);
        buf_done(&printer.line);
    }
    links_free(links);
    cli_close_input(cli, file);
    return status;
}

static int links_run(struct cli *cli, const void *values) {
    const struct links_command_options *options = values;
    if (options->base == NULL) {
        return cli_usage(cli, &links_command, "--base is missing: the URL that the document is from");
    }
    struct url base;
    url_init(&base);
    struct err_detail detail = {0};
    enum err err = url_parse(&base, bytes_of_string(options->base), NULL, &detail);
    int status;
    if (err != ERR_OK) {
        status = cli_usage(cli, &links_command, "--base: %s (byte %zu)", err_detail_text(&detail, err),
                           detail.offset);
    } else {
        status = print_links(cli, options, &base, cli->arguments[0]);
    }
    url_done(&base);
    return status;
}

static const struct option links_command_options[] = {
    OPTION(TEXT, struct links_command_options, base, "base", "URL",
           "the URL of the document; its links are resolved against it"),
    OPTION(TEXT, struct links_command_options, type, "type", "MIME",
           "the type of the document, as in a Content-Type header: \"text/html; charset=utf-8\"; by default "
           "the name of the file and its first bytes decide"),
    OPTION(FLAG, struct links_command_options, json, "json", NULL, "print one JSON object per line"),
    OPTION(FLAG, struct links_command_options, guesses, "guesses", NULL,
           "also print strings in scripts and JSON that look like URLs"),
    OPTION(FLAG, struct links_command_options, forms, "forms", NULL,
           "also print where forms with the method GET lead"),
    {0},
};

const struct command links_command = {
    .name = "links",
    .summary = "show the links of a page",
    .synopsis = "--base URL [--type MIME] [--guesses] [--forms] [--json] FILE",
    .details = "Prints the links that the crawler would follow: the kind of link (page, embed, refresh, "
               "form, guess), the element and the attribute in which it was found, and the URL, resolved and "
               "normalised. It understands HTML, XHTML, SVG, RSS, Atom, CSS, web manifests, JSON, scripts "
               "and HLS playlists. FILE may be \"-\" for standard input.\n\n"
               "Each URL is printed once per kind. URLs that are not http or https are left out.",
    .options = links_command_options,
    .options_size = sizeof(struct links_command_options),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = links_run,
};
