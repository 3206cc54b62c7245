#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "cli/commands.h"
#include "web/url/domain.h"
#include "web/url/surt.h"
#include "web/url/url.h"

/* ---- lines of standard input ---- */

/*
 * The next line of a file, of bounded length whatever the file holds, until the next call. LF and CRLF end a
 * line; empty lines are left out; of a longer line the first size_max bytes are given and the rest is
 * skipped. False at the end or after an error: see ferror(file).
 */
static bool next_line(FILE *file, struct buf *line) {
    int byte;
    do {
        buf_clear(line);
        while ((byte = getc_unlocked(file)) != EOF && byte != '\n') {
            buf_put_byte(line, (uint8_t)byte); /* past size_max this does nothing */
        }
        if (line->size > 0 && line->data[line->size - 1] == '\r') {
            buf_truncate(line, line->size - 1);
        }
    } while (line->size == 0 && byte != EOF);
    return line->size > 0;
}

struct url_options {
    const char *base;
    bool json;
};

/* What one run keeps between URLs, so that a million lines allocate no more than one. */
struct printer {
    struct cli *cli;
    bool json;
    const struct url *base; /* or NULL */
    struct url url;
    struct canon canon;
    struct buf line;
    struct json lines;
    uint64_t count;
    uint64_t invalid_count;
};

static const char *host_type_name(enum url_host_type type) {
    static const char *const names[] = {
        [URL_HOST_NONE] = "none", [URL_HOST_EMPTY] = "empty", [URL_HOST_DOMAIN] = "domain",
        [URL_HOST_IPV4] = "ipv4", [URL_HOST_IPV6] = "ipv6",   [URL_HOST_OPAQUE] = "opaque",
    };
    return names[type];
}

/* One part, in the form that was asked for. Parts that are absent are not printed. */
static void put_part(struct printer *printer, const char *name, struct bytes value) {
    if (printer->json) {
        json_bytes(&printer->lines, name, value);
    } else {
        buf_put_format(&printer->line, "  %-12s %.*s\n", name, BYTES_ARG(value));
    }
}

static void put_part_if(struct printer *printer, bool is_there, const char *name, struct bytes value) {
    if (is_there) {
        put_part(printer, name, value);
    }
}

static void put_start(struct printer *printer, struct bytes input, bool is_valid) {
    if (printer->json) {
        json_open(&printer->lines, NULL);
        json_bytes(&printer->lines, "input", input);
        json_bool(&printer->lines, "valid", is_valid);
    } else {
        if (printer->count > 0) {
            buf_put_byte(&printer->line, '\n');
        }
        json_quote(&printer->line, input); /* quoted: input may hold anything, also for a terminal */
        buf_put_byte(&printer->line, '\n');
    }
}

static void put_invalid(struct printer *printer, enum err err, const struct err_detail *detail) {
    const char *reason = err_detail_text(detail, err);
    if (printer->json) {
        json_text(&printer->lines, "error", err_name(err));
        json_count(&printer->lines, "offset", detail->offset);
        json_text(&printer->lines, "reason", reason);
    } else {
        buf_put_format(&printer->line, "  invalid: %s (byte %zu)\n", reason, detail->offset);
    }
}

static void put_port(struct printer *printer) {
    int32_t port = printer->url.port;
    if (port != URL_PORT_NONE && printer->json) {
        json_signed(&printer->lines, "port", port);
    } else if (port != URL_PORT_NONE) {
        buf_put_format(&printer->line, "  port         %d\n", port);
    }
}

static void put_keys(struct printer *printer) {
    struct err_detail detail = {0};
    if (canon_run(&printer->canon, url_href(&printer->url), &detail) != ERR_OK) {
        return; /* a URL that no archive has a key for, such as "javascript:" */
    }
    put_part(printer, "canonical", canon_url(&printer->canon));
    struct buf surt;
    buf_init(&surt, URL_SIZE_MAX + 16);
    if (surt_put(&surt, &printer->canon) == ERR_OK) {
        put_part(printer, "surt", buf_bytes(&surt));
    }
    buf_done(&surt);
}

static void put_valid(struct printer *printer) {
    const struct url *url = &printer->url;
    put_part(printer, "href", url_href(url));
    struct buf origin;
    buf_init(&origin, URL_SIZE_MAX + 16);
    if (url_put_origin(url, &origin) == ERR_OK) {
        put_part(printer, "origin", buf_bytes(&origin));
    }
    buf_done(&origin);
    put_part(printer, "scheme", url_scheme(url));
    put_part_if(printer, url_username(url).size > 0, "username", url_username(url));
    put_part_if(printer, url_password(url).size > 0, "password", url_password(url));
    put_part_if(printer, url->host_type != URL_HOST_NONE, "host", url_host(url));
    put_part(printer, "host_type", bytes_of_string(host_type_name(url->host_type)));
    put_part_if(printer, domain_registrable(url).size > 0, "domain", domain_registrable(url));
    put_port(printer);
    put_part(printer, "path", url_path(url));
    put_part_if(printer, url_has_query(url), "query", url_query(url));
    put_part_if(printer, url_has_fragment(url), "fragment", url_fragment(url));
    put_keys(printer);
}

static void url_print_url(struct printer *printer, struct bytes input) {
    struct err_detail detail = {0};
    enum err err = url_parse(&printer->url, input, printer->base, &detail);
    buf_clear(&printer->line);
    put_start(printer, input, err == ERR_OK);
    if (err == ERR_OK) {
        put_valid(printer);
    } else {
        put_invalid(printer, err, &detail);
        printer->invalid_count++;
    }
    if (printer->json) {
        json_close(&printer->lines);
    }
    printer->count++;
    fwrite(printer->line.data, 1, printer->line.size, printer->cli->out);
}

static int print_lines(struct printer *printer) {
    struct buf line;
    buf_init(&line, URL_SIZE_MAX + 1); /* one more, so that too long stays too long */
    while (next_line(printer->cli->in, &line)) {
        url_print_url(printer, buf_bytes(&line));
    }
    buf_done(&line);
    return ferror(printer->cli->in)
               ? cli_fail(printer->cli, "cannot read standard input: %s", strerror(errno))
               : CLI_DONE;
}

static int print_all(struct printer *printer) {
    const struct cli *cli = printer->cli;
    if (cli->arguments_count == 0) {
        int status = print_lines(printer);
        if (status != CLI_DONE) {
            return status;
        }
    }
    for (size_t i = 0; i < cli->arguments_count; i++) {
        url_print_url(printer, bytes_of_string(cli->arguments[i]));
    }
    return printer->invalid_count > 0 ? CLI_FAILED : CLI_DONE;
}

static int url_run(struct cli *cli, const void *values) {
    const struct url_options *options = values;
    struct url base;
    url_init(&base);
    struct printer printer = {.cli = cli, .json = options->json};
    url_init(&printer.url);
    canon_init(&printer.canon);
    json_init_file(&printer.lines, cli->out);
    buf_init(&printer.line, (size_t)64 * URL_SIZE_MAX); /* ten parts, each byte escaped six-fold at worst */

    int status;
    struct err_detail detail = {0};
    enum err err =
        options->base == NULL ? ERR_OK : url_parse(&base, bytes_of_string(options->base), NULL, &detail);
    if (err != ERR_OK) {
        status = cli_usage(cli, &url_command, "--base: %s (byte %zu)", err_detail_text(&detail, err),
                           detail.offset);
    } else {
        printer.base = options->base == NULL ? NULL : &base;
        status = print_all(&printer);
    }
    cli_note(cli, json_done(&printer.lines));
    buf_done(&printer.line);
    canon_done(&printer.canon);
    url_done(&printer.url);
    url_done(&base);
    return status;
}

static const struct option url_options[] = {
    OPTION(TEXT, struct url_options, base, "base", "URL", "resolve relative URLs against this one"),
    OPTION(FLAG, struct url_options, json, "json", NULL, "print one JSON object per line"),
    {0},
};

const struct command url_command = {
    .name = "url",
    .summary = "show how a URL is understood",
    .synopsis = "[--base URL] [--json] [URL…]",
    .details =
        "Prints the parts of each URL as browsers see them (WHATWG URL standard), its registrable domain, "
        "its canonical form and its SURT, the sort key of archive indexes. For invalid input it prints the "
        "reason and the byte. Without arguments, it reads one URL per line from standard input.\n\n"
        "The exit status is 1 if any URL is invalid.",
    .options = url_options,
    .options_size = sizeof(struct url_options),
    .arguments_max = SIZE_MAX,
    .run = url_run,
};
