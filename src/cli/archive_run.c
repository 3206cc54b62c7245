#include <signal.h>
#include <unistd.h>

#include "base/json.h"
#include "base/value.h"
#include "cli/archive.h"
#include "cli/progress.h"
#include "crawl/engine/crawler.h"
#include "crawl/engine/jobs.h"

enum {
    LIMIT_GRACE_US = 5 * 1000 * 1000,
    SHOW_MS = 100,
    STATE_US = 3 * 1000 * 1000,
    NOTE_SIZE_MAX = 512,
    SUMMARY_SIZE_MAX = 1 << 20,
    PATH_SIZE_MAX = 4096 + 16,
};

/* One run of the command. */
struct run {
    struct cli *cli;
    const struct archive_options *options;
    const struct logins *logins;
    struct campaign *campaign;
    struct crawler *crawler;
    struct identity identity; /* of the node, in a ring: others take what it has signed for fetched */
    bool has_identity;
    struct progress progress;
    uint64_t started_us;
    struct loop loop;
    uv_timer_t show;
    uv_signal_t interrupt;
    uv_signal_t terminate;
    bool is_over;
    bool is_stopping; /* by Ctrl-C */
    bool is_told_full;
    uint64_t full_done_count; /* stored when that was told */
    uint64_t state_at_us;     /* when state.json is to be written next */
    uint64_t limited_us;      /* since when a limit is reached and transfers are waited for; 0: none is */
};

static void on_ended(void *context, struct campaign *campaign) {
    struct run *run = context;
    (void)campaign;
    run->is_over = true;
    uv_stop(&run->loop.uv);
}

/* The first time: end what is under way. The second: drop it; it is fetched again later. */
static void on_signal(uv_signal_t *signal, int number) {
    struct run *run = signal->data;
    (void)number;
    if (run->is_stopping) {
        crawler_cancel(run->crawler);
        return;
    }
    run->is_stopping = true;
    crawler_pause(run->crawler, run->campaign);
    if (run->progress.mode == PROGRESS_TERMINAL) {
        fprintf(run->cli->err, "\nstopping; Ctrl-C again stops at once\n");
    }
}

static void put_note(const struct run *run, struct buf *note) {
    struct crawler_stat stat;
    const struct tally *tally = &run->campaign->tally;
    crawler_stat(run->crawler, &stat);
    if (tally->failed_count > 0) {
        VALUE_PUT(note, "{count} failed  ", tally->failed_count);
    }
    if (stat.hold == CRAWLER_DISK_FULL) {
        buf_put_format(note, "waiting: %s  ", err_text(stat.hold_err));
    }
    if (stat.hosts_waiting_count > 0) {
        crawler_put_waiting(run->crawler, 2, note);
    }
}

/* A limit is reached: what is under way may end, but not for ever; it is fetched again later. */
static void hurry_at_limit(struct run *run) {
    uint64_t now_us = clock_monotonic_us(run->cli->clock);
    if (run->campaign->state != CAMPAIGN_LIMITED) {
        return;
    }
    if (run->limited_us == 0) {
        run->limited_us = now_us;
    } else if (now_us - run->limited_us > LIMIT_GRACE_US) {
        crawler_cancel(run->crawler);
    }
}

/* For `mnemon job list` in another terminal: a few hundred bytes that nobody waits for to reach the disk. */
static void write_state(struct run *run) {
    uint64_t now_us = clock_monotonic_us(run->cli->clock);
    if (now_us >= run->state_at_us) {
        run->state_at_us = now_us + STATE_US;
        enum err err = jobs_write_state(run->campaign);
        (void)err; /* on a full disk the crawl says so itself */
    }
}

static void on_show(uv_timer_t *timer) {
    struct run *run = timer->data;
    struct frontier_stat stat;
    struct crawler_stat crawler;
    char text[NOTE_SIZE_MAX];
    struct buf note;
    frontier_stat(run->campaign->frontier, &stat);
    crawler_stat(run->crawler, &crawler);
    buf_init(&note, sizeof text);
    put_note(run, &note);
    snprintf(text, sizeof text, "%.*s", BYTES_ARG(buf_bytes(&note)));
    buf_done(&note);
    run->progress.done_count = run->campaign->tally.done_count;
    run->progress.total_count = run->progress.done_count + stat.waiting_count;
    run->progress.bytes_count = run->campaign->tally.received_size;
    progress_update(&run->progress, text[0] != '\0' ? text : NULL);
    if (crawler.hold == CRAWLER_DISK_FULL && !run->is_told_full) {
        run->is_told_full = true;
        run->full_done_count = crawler.done_count;
        fprintf(run->cli->err,
                "\nmnemon: the archive cannot store any more: %s; waiting until there is room\n",
                err_text(crawler.hold_err));
    } else if (run->is_told_full && crawler.done_count > run->full_done_count) { /* not while it only tries */
        run->is_told_full = false;
        fprintf(run->cli->err, "\nmnemon: there is room again; continuing\n");
    }
    hurry_at_limit(run);
    write_state(run);
    if (run->is_stopping && crawler_is_idle(run->crawler, run->campaign)) {
        uv_stop(&run->loop.uv);
    }
}

static void start_handles(struct run *run) {
    uv_timer_init(&run->loop.uv, &run->show);
    uv_signal_init(&run->loop.uv, &run->interrupt);
    uv_signal_init(&run->loop.uv, &run->terminate);
    run->show.data = run->interrupt.data = run->terminate.data = run;
    uv_timer_start(&run->show, on_show, SHOW_MS, SHOW_MS);
    uv_signal_start(&run->interrupt, on_signal, SIGINT);
    uv_signal_start(&run->terminate, on_signal, SIGTERM);
}

static void close_handles(struct run *run) {
    uv_close((uv_handle_t *)&run->interrupt, NULL);
    uv_close((uv_handle_t *)&run->terminate, NULL);
}

static void put_end(const struct run *run, const struct frontier_stat *stat, struct buf *out) {
    const struct campaign *campaign = run->campaign;
    buf_put_format(out, "%s, visit %u: ", campaign->name, stat->visit);
    if (campaign->state == CAMPAIGN_ENDED) {
        buf_put_string(out, "complete, ");
    } else {
        buf_put_string(out, campaign->state == CAMPAIGN_LIMITED ? "limit reached, " : "stopped, ");
        VALUE_PUT(out, "{count} URLs wait for the same command, ", stat->waiting_count);
    }
    VALUE_PUT(out, "{count} URLs known\n", stat->known_count);
}

static void run_put_json(const struct run *run, const struct frontier_stat *stat, uint64_t elapsed_us,
                         struct buf *out) {
    static const char *const states[] = {"stopped", "stopped", "limited", "complete"};
    struct json json;
    json_begin(&json, out);
    json_text(&json, "job", run->campaign->name);
    json_text(&json, "state", states[run->campaign->state]);
    JSON_COUNTS(&json, {"visit", stat->visit}, {"known", stat->known_count},
                {"waiting", stat->waiting_count});
    json_decimal(&json, "seconds", (double)elapsed_us / 1e6, 3);
    tally_put_json(&run->campaign->tally, &json);
    json_end(&json);
    buf_put_byte(out, '\n');
}

static void print_summary(struct run *run) {
    struct frontier_stat stat;
    struct buf out;
    uint64_t elapsed_us = clock_monotonic_us(run->cli->clock) - run->started_us;
    buf_init(&out, SUMMARY_SIZE_MAX);
    frontier_stat(run->campaign->frontier, &stat);
    if (run->options->json) {
        run_put_json(run, &stat, elapsed_us, &out);
    } else {
        put_end(run, &stat, &out);
        tally_put_summary(&run->campaign->tally, elapsed_us, &out);
    }
    cli_write(run->cli, &out);
}

/* Passwords are kept by no job: whoever continues one must give them again. */
static void tell_unauthorized(const struct run *run) {
    uint64_t count = run->campaign->tally.statuses[401];
    if (count == 0) {
        return;
    }
    fprintf(run->cli->err,
            run->logins->count > 0
                ? "mnemon: %ju answers were 401: the user and password were not accepted, or are for another "
                  "scheme, host or port\n"
                : "mnemon: %ju answers were 401: the server wants a user and a password, which are not kept "
                  "from earlier runs; give them as https://USER:PASSWORD@HOST/\n",
            (uintmax_t)count);
}

/*
 * Nothing that was asked for is in the archive: a script must see that without reading the summary. A run
 * that was stopped, or had nothing to do, has not failed.
 */
static int judge(const struct run *run) {
    const struct tally *tally = &run->campaign->tally;
    const struct tally_failure *first = &tally->failures[0];
    if (run->campaign->state == CAMPAIGN_ENDED && tally->seeds_failed_count > 0 &&
        tally->seeds_done_count == 0) {
        bool is_private = first->reason == TALLY_FAILED - ERR_PERMISSION;
        return cli_fail(run->cli, "nothing could be archived: %s: %s%s%s%s%s", first->examples[0],
                        tally_reason_text(first->reason), first->why[0] != '\0' ? " (" : "", first->why,
                        first->why[0] != '\0' ? ")" : "",
                        is_private ? "; --allow-private fetches from it" : "");
    }
    if (run->options->strict && tally->failed_count > 0) {
        return cli_fail(run->cli, "%ju URLs failed", (uintmax_t)tally->failed_count);
    }
    return CLI_DONE;
}

/* Without one what is archived is unsigned, as outside of a ring: nobody vouches for it then. */
static void load_identity(struct run *run, const char *directory) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/ring/charter", directory);
    run->has_identity = access(path, F_OK) == 0 && identity_load(&run->identity, directory, NULL) == ERR_OK;
}

static enum err open_crawler(struct run *run, struct data *data, const char *scratch_directory,
                             const char *const *headers, struct err_detail *detail) {
    const struct archive_options *options = run->options;
    struct crawler_config config = {
        .loop = &run->loop,
        .instance = data->instance,
        .clock = run->cli->clock,
        .nameserver = options->nameserver,
        .transfers_max = (size_t)options->connections,
        .ended = on_ended,
        .context = run,
        .identity = run->has_identity ? &run->identity : NULL,
        .fetch =
            {
                .scratch_directory = scratch_directory,
                .user_agent = options->user_agent,
                .headers = headers,
                .logins = run->logins,
                .proxy = options->proxy,
                .allows_private = options->allow_private,
                .refuses_bad_certificates = options->refuse_bad_certificates,
                .body_size_max = options->limit_body,
                .connect_timeout_us = options->timeout_us,
                .first_byte_timeout_us = options->timeout_us,
                .stall_timeout_us = options->timeout_us,
            },
    };
    enum err err = crawler_new(&config, &run->crawler, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = crawler_add(run->crawler, run->campaign, detail);
    if (err != ERR_OK) {
        crawler_free(run->crawler);
    }
    return err;
}

/* Stopped at once or not: nothing may be under way when the frontier is closed. */
static void end_trips(struct run *run) {
    while (!crawler_is_idle(run->crawler, run->campaign)) {
        crawler_cancel(run->crawler);
        uv_run(&run->loop.uv, UV_RUN_ONCE);
    }
}

int archive_run(struct cli *cli, const struct archive_options *options, const struct logins *logins,
                struct data *data, struct campaign *campaign) {
    struct run run = {
        .cli = cli,
        .options = options,
        .logins = logins,
        .campaign = campaign,
        .started_us = clock_monotonic_us(cli->clock),
    };
    const char *headers[OPTION_LIST_COUNT_MAX + 1] = {0};
    memcpy(headers, options->headers.items, options->headers.count * sizeof *headers);
    struct err_detail detail = {0};
    int status = CLI_DONE;
    fetch_raise_descriptors_limit();
    signal(SIGPIPE, SIG_IGN);
    load_identity(&run, data->directory);
    enum err err = loop_init(&run.loop, 0);
    bool has_loop = err == ERR_OK;
    err = has_loop ? open_crawler(&run, data, data->directory, headers, &detail) : err;
    if (err == ERR_OK) {
        progress_init(&run.progress, "archiving", STDERR_FILENO, options->quiet, cli->clock);
        start_handles(&run);
        uv_run(&run.loop.uv, UV_RUN_DEFAULT);
        progress_finish(&run.progress);
        end_trips(&run);
        print_summary(&run);
        tell_unauthorized(&run);
        status = judge(&run);
        if (jobs_write_state(campaign) != ERR_OK) {
            fprintf(cli->err, "mnemon: the state of %s could not be written\n", campaign->name);
        }
        crawler_remove(run.crawler, campaign);
        crawler_free(run.crawler);
        close_handles(&run);
    }
    if (has_loop) {
        loop_stop(&run.loop, NULL, NULL);
    }
    if (run.has_identity) {
        identity_done(&run.identity);
    }
    if (err == ERR_BUSY) {
        return cli_fail(cli, "this job is running in another process: %s", campaign->name);
    }
    return err == ERR_OK ? status : cli_fail(cli, "%s", err_detail_text(&detail, err));
}
