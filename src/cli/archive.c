#include "cli/archive.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/value.h"
#include "base/whole_file.h"
#include "cli/commands.h"
#include "crawl/fetch/fetch.h"

enum {
    SEEDS_TEXT_SIZE_MAX = 64 << 20,
    CONNECTIONS_DEFAULT = 200,
    CONNECTIONS_MAX = 10000,
    TEXT_SIZE_MAX = 256 << 20,
};

/*
 * The cache of the index: the filters that are asked about each new document, with room for some million
 * documents. Above that each costs some microseconds more, for its filters are in the kernel's memory only. A
 * larger cache would grow for hours, mostly with filters of files that are gone.
 */
static const size_t CACHE_SIZE = 8 << 20;

static const uint64_t DELAY_MAX_US = UINT64_C(24) * 3600 * 1000000;

const struct archive_options archive_defaults = {
    .scope = SCOPE_HOST,
    .depth = JOB_DEPTH_ANY,
    .delay = "auto",
    .connections = CONNECTIONS_DEFAULT,
    .period_us = UINT64_C(24) * 3600 * 1000000,
};

/* ---- options to job ---- */

static int read_seeds_file(struct cli *cli, const char *path, struct logins *logins, struct arena *arena,
                           struct job *job) {
    FILE *file = cli_open_input(cli, path);
    if (file == NULL) {
        return CLI_FAILED;
    }
    struct buf text;
    uint8_t piece[1 << 14];
    size_t size;
    buf_init(&text, SEEDS_TEXT_SIZE_MAX);
    while ((size = fread(piece, 1, sizeof piece, file)) > 0) {
        buf_put(&text, bytes_of(piece, size));
    }
    struct err_detail detail = {0};
    enum err err = ferror(file) ? err_set(&detail, ERR_IO, "%s", strerror(errno)) : text.err;
    cli_close_input(cli, file);
    if (err == ERR_OK) {
        err = job_add_seeds_of_person(job, buf_bytes(&text), logins, arena, &detail);
    }
    buf_done(&text);
    if (err != ERR_OK && detail.line > 0) {
        return cli_fail(cli, "%s, line %u: %s", path, detail.line, detail.text);
    }
    return err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s: %s", path, err_detail_text(&detail, err));
}

static int take_patterns(struct cli *cli, const struct command *command, const struct option_list *texts,
                         const char *option, struct arena *arena, struct config_list *ret_list) {
    struct pattern_list check;
    pattern_list_init(&check);
    int status = CLI_DONE;
    ret_list->items = arena_take_array(arena, OPTION_LIST_COUNT_MAX, sizeof *ret_list->items);
    for (size_t i = 0; i < texts->count && status == CLI_DONE; i++) {
        struct err_detail detail = {0};
        struct bytes text = bytes_of_string(texts->items[i]);
        enum err err = ret_list->items != NULL ? pattern_list_add(&check, text, &detail) : ERR_MEMORY;
        if (err != ERR_OK) {
            status = cli_usage(cli, command, "--%s \"%s\": %s", option, texts->items[i],
                               err_detail_text(&detail, err));
        } else {
            ret_list->items[ret_list->count++] = text;
        }
    }
    pattern_list_done(&check);
    return status;
}

int archive_make_job(struct cli *cli, const struct command *command, const struct archive_options *options,
                     struct logins *logins, struct arena *arena, struct job *ret_job) {
    struct job job = {
        .scope = options->scope,
        .depth = options->depth,
        .ignores_robots = options->ignore_robots,
        .skips_sitemaps = options->no_sitemaps || options->scope == SCOPE_PAGE,
        .follows_forms = options->forms,
        .follows_guesses = options->guesses,
        .has_delay = strcmp(options->delay, "auto") != 0,
        .urls_max = options->limit,
        .bytes_max = options->limit_bytes,
        .time_max_us = options->limit_time_us,
        .body_size_max = options->limit_body,
        .host_urls_max = options->limit_host,
        .domain_urls_max = options->limit_domain,
        .period_us = options->period_us,
        .revisit = options->revisit,
    };
    struct err_detail detail = {0};
    if (job.has_delay && value_read_duration(bytes_of_string(options->delay), 0, DELAY_MAX_US, &job.delay_us,
                                             &detail) != ERR_OK) {
        return cli_usage(cli, command, "--delay: %s, or auto", detail.text);
    }
    int status = take_patterns(cli, command, &options->include, "include", arena, &job.include);
    if (status == CLI_DONE) {
        status = take_patterns(cli, command, &options->exclude, "exclude", arena, &job.exclude);
    }
    for (size_t i = 0; i < cli->arguments_count && status == CLI_DONE; i++) {
        struct bytes text = bytes_of_string(cli->arguments[i]);
        enum err err = job_add_seeds_of_person(&job, text, logins, arena, &detail);
        if (err != ERR_OK) {
            status = cli_usage(cli, command, "%s", err_detail_text(&detail, err));
        }
    }
    if (status == CLI_DONE && options->seeds != NULL) {
        status = read_seeds_file(cli, options->seeds, logins, arena, &job);
    }
    if (status == CLI_DONE && job.seeds.count == 0) {
        status = cli_usage(cli, command, "name at least one URL");
    }
    *ret_job = job;
    return status;
}

/* Was it added by `mnemon job add`? Then it stays what it is. */
static bool is_run_by_node(const char *directory) {
    struct arena arena;
    struct job job;
    arena_init(&arena, TEXT_SIZE_MAX);
    bool is_run = directory != NULL && job_read(&job, directory, &arena, NULL) == ERR_OK && !job.is_paused;
    arena_done(&arena);
    return is_run;
}

int archive_write_job(struct cli *cli, const char *data_directory, const struct job *job, bool is_for_node,
                      struct buf *ret_directory, char name[JOB_NAME_SIZE_MAX]) {
    struct err_detail detail = {0};
    job_name(job, name);
    buf_put_format(ret_directory, "%s/jobs", data_directory);
    const char *jobs = buf_string(ret_directory);
    enum err err = jobs == NULL ? ERR_MEMORY : whole_file_make_directory(jobs, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    buf_put_format(ret_directory, "/%s", name);
    const char *directory = buf_string(ret_directory);
    struct job written = *job;
    written.is_paused = !is_for_node && !is_run_by_node(directory);
    err = directory != NULL ? job_write(&written, directory, &detail) : ERR_MEMORY;
    return err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_detail_text(&detail, err));
}

/* ---- the command ---- */

static int run_campaign(struct cli *cli, const struct archive_options *options, const struct logins *logins,
                        struct data *data, const struct job *job) {
    char name[JOB_NAME_SIZE_MAX];
    struct buf directory;
    struct campaign campaign;
    struct err_detail detail = {0};
    buf_init(&directory, DATA_PATH_SIZE_MAX);
    int status = archive_write_job(cli, data->directory, job, false, &directory, name);
    if (status == CLI_DONE) {
        enum err err = campaign_open(&campaign, buf_string(&directory), name, &detail);
        if (err != ERR_OK) {
            status = cli_fail(cli, "%s: %s", name, err_detail_text(&detail, err));
        } else {
            campaign.job.is_paused = false;
            status = options->explain != NULL
                         ? archive_explain(cli, options, data, &campaign, options->explain)
                         : archive_run(cli, options, logins, data, &campaign);
            campaign_close(&campaign);
        }
    }
    buf_done(&directory);
    return status;
}

static int archive_main(struct cli *cli, const void *values) {
    const struct archive_options *options = values;
    struct arena arena;
    struct job job;
    struct data data;
    struct logins logins;
    logins_init(&logins);
    arena_init(&arena, TEXT_SIZE_MAX);
    int status = archive_make_job(cli, &archive_command, options, &logins, &arena, &job);
    if (status == CLI_DONE) {
        status = data_open_to_crawl(&data, cli, options->data,
                                    options->user_agent != NULL ? options->user_agent : fetch_user_agent,
                                    job.ignores_robots ? "ignore" : "classic");
        if (status == CLI_DONE) {
            instance_set_cache_size(data.instance, CACHE_SIZE);
            status = run_campaign(cli, options, &logins, &data, &job);
            data_close(&data);
        }
    }
    logins_done(&logins);
    arena_done(&arena);
    return status;
}

const struct option archive_option_table[] = {
    OPTION(TEXT, struct archive_options, data, "data", "DIR", DATA_HELP),
    OPTION(CHOICE, struct archive_options, scope, "scope", "SCOPE",
           "which links to follow: none (page), those below the URL (prefix), on its host (the default), in "
           "its registrable domain, or any; embedded objects are always fetched",
           .choices = job_scopes, .of = "add"),
    OPTION(NUMBER, struct archive_options, depth, "depth", "N",
           "follow at most N page links from a seed (up to 510); by default a page more than 500 links away "
           "counts as a trap",
           .max = SCOPE_DEPTH_MAX, .of = "add"),
    OPTION(NUMBER, struct archive_options, limit, "limit", "N",
           "stop after N URLs; the same command continues from there", .max = UINT64_MAX, .of = "add"),
    OPTION(SIZE, struct archive_options, limit_bytes, "limit-bytes", "SIZE",
           "stop when this many bytes have been received", .max = UINT64_MAX, .of = "add"),
    OPTION(DURATION, struct archive_options, limit_time_us, "limit-time", "TIME", "stop after this time",
           .max = UINT64_MAX, .of = "add"),
    OPTION(SIZE, struct archive_options, limit_body, "limit-body", "SIZE", "cut documents at this size",
           .max = UINT64_MAX, .of = "add"),
    OPTION(NUMBER, struct archive_options, limit_host, "limit-host", "N", "fetch at most N URLs of one host",
           .max = UINT32_MAX, .of = "add"),
    OPTION(NUMBER, struct archive_options, limit_domain, "limit-domain", "N",
           "fetch at most N URLs of one registrable domain", .max = UINT32_MAX, .of = "add"),
    OPTION(LIST, struct archive_options, include, "include", "PATTERN",
           "fetch only pages that match, such as 'https://example.org/a*' or 're:/20[0-9]{2}/'; may be "
           "repeated",
           .of = "add"),
    OPTION(LIST, struct archive_options, exclude, "exclude", "PATTERN",
           "fetch nothing that matches; may be repeated", .of = "add"),
    OPTION(TEXT, struct archive_options, seeds, "seeds", "FILE",
           "read more URLs from a file, one per line; - reads standard input", .of = "add"),
    OPTION(TEXT, struct archive_options, delay, "delay", "TIME",
           "pause between two requests to a host, such as \"2 s\" or 0; auto adapts to how fast the host "
           "answers",
           .of = "add"),
    OPTION(NUMBER, struct archive_options, connections, "connections", "N",
           "how many requests may be under way at once (200), at most one per host", .min = 1,
           .max = CONNECTIONS_MAX, .of = "add"),
    OPTION(
        DURATION, struct archive_options, timeout_us, "timeout", "TIME",
        "how long a host may take to connect (20 s), to answer (30 s) and to pause within an answer (30 s)",
        .min = 1000, .max = UINT64_C(3600) * 1000000, .of = "add"),
    OPTION(TEXT, struct archive_options, user_agent, "user-agent", "TEXT",
           "the User-Agent that servers see; rules of robots.txt are looked up by its first word",
           .of = "add"),
    OPTION(LIST, struct archive_options, headers, "header", "'NAME: VALUE'",
           "send this header with every request; may be repeated", .of = "add"),
    OPTION(TEXT, struct archive_options, proxy, "proxy", "URL",
           "fetch through this proxy: http://… or socks5h://…", .of = "add"),
    OPTION(FLAG, struct archive_options, allow_private, "allow-private", NULL,
           "also fetch from loopback, private and other special addresses", .of = "add"),
    OPTION(FLAG, struct archive_options, refuse_bad_certificates, "refuse-bad-certificates", NULL,
           "do not archive answers of hosts with a bad certificate", .of = "add"),
    OPTION(FLAG, struct archive_options, ignore_robots, "ignore-robots", NULL,
           "do not ask for robots.txt; only for sites of your own", .of = "add"),
    OPTION(FLAG, struct archive_options, no_sitemaps, "no-sitemaps", NULL, "do not read sitemaps",
           .of = "add"),
    OPTION(FLAG, struct archive_options, forms, "forms", NULL, "follow forms that are sent by GET",
           .of = "add"),
    OPTION(FLAG, struct archive_options, guesses, "guesses", NULL,
           "also follow strings in scripts and JSON that look like URLs, after everything else", .of = "add"),
    OPTION(CHOICE, struct archive_options, revisit, "revisit", "HOW",
           "ask for all known URLs on the next visit, or only for those that have probably changed, judging "
           "by their history",
           .choices = job_revisits, .of = "add"),
    OPTION(DURATION, struct archive_options, period_us, "period", "TIME",
           "the period of the visits (1 d): a job is due once in it, and adaptive visits count in it",
           .min = 1000000, .max = UINT64_MAX, .of = "add"),
    OPTION(TEXT, struct archive_options, nameserver, "nameserver", "ADDRESS",
           "resolve names with this server, such as 192.0.2.1:53", .of = "add"),
    OPTION(
        TEXT, struct archive_options, explain, "explain", "URL",
        "fetch nothing; explain why this URL is or is not fetched, and show what is known about it; its name "
        "is looked up, because a private address is not fetched from",
        .of = "archive"),
    OPTION(FLAG, struct archive_options, strict, "strict", NULL,
           "exit with 1 if any URL failed, not only if none of the named URLs could be archived",
           .of = "archive"),
    OPTION(FLAG, struct archive_options, quiet, "quiet", NULL, "show no progress", .letter = 'q',
           .of = "archive"),
    OPTION(FLAG, struct archive_options, json, "json", NULL,
           "print JSON: the summary, or of \"mnemon job\" the list", .of = "list"),
    OPTION(FLAG, struct archive_options, ring, "ring", NULL,
           "of \"mnemon job\": all nodes of the ring share the job", .of = "add remove"),
    {0},
};

const struct command archive_command = {
    .name = "archive",
    .summary = "archive a whole site",
    .synopsis = "URL… [OPTION…]",
    .details =
        "Fetches the URLs and all pages in scope that they link to, and stores every request and response. "
        "It is polite: it obeys robots.txt, sends a host one request at a time and pauses in between. Ctrl-C "
        "stops it cleanly; the same command then continues where it stopped. Once a site is complete, the "
        "command begins the next visit; unchanged documents are not stored again.\n\n"
        "The summary names what could not be fetched, why, and the first such URLs; a URL whose host could "
        "not "
        "be reached is remembered as that, and the calendar shows it. The exit status is 1 if none of the "
        "named URLs could be archived, and with --strict if any URL failed.\n\n"
        "A user and password in a URL (https://USER:PASSWORD@example.org/) are sent to that scheme, host and "
        "port only, and stored nowhere: give them again to continue. Other users of this computer may see "
        "the command line; --seeds - reads the URL from standard input instead. What is fetched with them "
        "is stored like every other page.\n\n"
        "  mnemon archive https://example.org/                    the whole host\n"
        "  mnemon archive https://example.org/docs/ --scope prefix\n"
        "  mnemon archive https://example.org/a.html --scope page  one page and everything it embeds\n"
        "  mnemon archive --seeds list.txt --scope page",
    .options = archive_option_table,
    .options_size = sizeof(struct archive_options),
    .defaults = &archive_defaults,
    .arguments_min = 0,
    .arguments_max = 1000,
    .run = archive_main,
};
