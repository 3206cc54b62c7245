#include <unistd.h>

#include "base/utc.h"
#include "cli/archive.h"
#include "crawl/engine/tally.h"
#include "crawl/rules/robots.h"
#include "crawl/rules/trap.h"
#include "net/dns.h"
#include "net/reach.h"
#include "run/loop.h"
#include "store/instance/query.h"

enum { PATH_MAX_SIZE = DATA_PATH_SIZE_MAX + 64, SENTENCE_SIZE_MAX = 4096 };

/* What is said about one URL, piece by piece. */
struct explanation {
    struct cli *cli;
    struct data *data;
    struct campaign *campaign;
    const struct archive_options *options;
    struct url url;
    struct bytes href; /* without fragment */
    bool is_fetched;   /* so far */
};

static void say(const struct explanation *explanation, const char *subject, bool is_good,
                const char *sentence) {
    fprintf(explanation->cli->out, "%-9s %-4s %s\n", subject, is_good ? "yes" : "no", sentence);
}

static bool is_seed(const struct explanation *explanation) {
    const struct config_list *seeds = &explanation->campaign->job.seeds;
    for (size_t i = 0; i < seeds->count; i++) {
        if (bytes_equal(seeds->items[i], explanation->href)) {
            return true;
        }
    }
    return false;
}

/* A URL that is no seed is taken for a page link on a seed, or for what it is in the frontier. */
static void explain_scope(struct explanation *explanation) {
    struct scope_verdict verdict;
    struct buf sentence;
    enum scope_via via = is_seed(explanation) ? SCOPE_VIA_SEED : SCOPE_VIA_PAGE;
    bool is_in = campaign_check(explanation->campaign, &explanation->url, via, 0, &verdict);
    buf_init(&sentence, SENTENCE_SIZE_MAX);
    scope_explain(&explanation->campaign->scope, &verdict, &sentence);
    say(explanation, "scope", is_in, buf_string(&sentence));
    buf_done(&sentence);
    explanation->is_fetched = explanation->is_fetched && is_in;
    if (!is_in && campaign_check(explanation->campaign, &explanation->url, SCOPE_VIA_EMBED, 0, &verdict)) {
        fprintf(explanation->cli->out, "%-9s      but it is fetched if a page in scope embeds it\n", "");
    }
}

static void explain_traps(struct explanation *explanation) {
    enum trap_reason reason =
        trap_check_url(&trap_defaults, &explanation->url, 1, clock_wall_us(explanation->cli->clock));
    say(explanation, "traps", reason == TRAP_NONE,
        reason == TRAP_NONE ? "no sign of a trap" : trap_reason_text(reason));
    explanation->is_fetched = explanation->is_fetched && reason == TRAP_NONE;
}

/* The newest robots.txt that the archive has of the URL's origin; an empty key if there is none. */
static enum err find_robots(struct explanation *explanation, struct capture *ret_capture,
                            struct query *query) {
    struct buf address;
    buf_init(&address, URL_SIZE_MAX + 16);
    url_put_origin(&explanation->url, &address);
    buf_put_string(&address, "/robots.txt");
    enum err err = query_init(query, buf_bytes(&address), QUERY_EXACT, NULL);
    if (err == ERR_OK) {
        query_start(query, explanation->data->session);
        err = query_closest(query, buf_bytes(&address), INT64_MAX, ret_capture);
        if (err != ERR_OK) {
            query_done(query);
        }
    }
    buf_done(&address);
    return err;
}

static void check_robots(struct explanation *explanation, const struct capture *capture) {
    struct key key;
    struct block block;
    struct bytes text = bytes_of(NULL, 0);
    struct robots robots;
    struct robots_verdict verdict;
    char sentence[ROBOTS_SENTENCE_SIZE_MAX];
    char time[UTC_DIGITS_SIZE];
    const char *agent = explanation->options->user_agent;
    struct instance_session *session = explanation->data->session;
    enum robots_policy policy = robots_from_status(capture->status);
    robots_init(&robots, policy == ROBOTS_OBEY ? ROBOTS_ALLOW_ALL : policy);
    if (policy == ROBOTS_OBEY && instance_locate(session, capture, &key, &block, NULL) == ERR_OK &&
        instance_get(session, &key, &text, NULL) == ERR_OK) {
        enum err err = robots_parse(&robots, text, bytes_of_string(agent != NULL ? agent : robots_agent));
        (void)err; /* without memory it allows nothing */
    }
    struct bytes path = bytes_skip(explanation->href, explanation->url.path.from);
    bool is_allowed = robots_check(&robots, path, &verdict);
    say(explanation, "robots", is_allowed, robots_explain(&verdict, sentence));
    fprintf(explanation->cli->out, "%-9s      by the robots.txt of %s, status %u\n", "",
            utc_format_digits(capture->time_us, time), capture->status);
    explanation->is_fetched = explanation->is_fetched && is_allowed;
    robots_done(&robots);
}

static void explain_robots(struct explanation *explanation) {
    struct query query;
    struct capture capture;
    if (explanation->campaign->job.ignores_robots) {
        say(explanation, "robots", true, "robots.txt is not asked for");
    } else if (find_robots(explanation, &capture, &query) == ERR_OK) {
        check_robots(explanation, &capture);
        query_done(&query);
    } else {
        say(explanation, "robots", true,
            "the archive has no robots.txt of this host yet; it is fetched first");
    }
}

/* ---- the address ---- */

struct lookup {
    struct loop *loop;
    struct dns_answer answer;
    bool is_answered;
};

static void on_name(void *context, const struct dns_answer *answer) {
    struct lookup *lookup = context;
    lookup->answer = *answer;
    lookup->is_answered = true;
    uv_stop(&lookup->loop->uv); /* it may be told by a timer, and then nothing else would end the wait */
}

/* As the crawler would look it up. */
static enum err look_up(const struct explanation *explanation, struct bytes name,
                        struct dns_answer *ret_answer) {
    struct loop loop;
    struct lookup lookup = {.loop = &loop};
    struct dns_question question = {0};
    struct dns *dns = NULL;
    enum err err = loop_init(&loop, 0);
    if (err != ERR_OK) {
        return err;
    }
    struct dns_config config = {.loop = &loop.uv,
                                .nameservers = explanation->options->nameserver,
                                .timeout_us = explanation->options->timeout_us};
    err = dns_new(&config, &dns, NULL);
    if (err == ERR_OK) {
        const struct dns_answer *known = dns_ask(dns, name, &question, on_name, &lookup);
        if (known != NULL) {
            on_name(&lookup, known);
        }
        while (!lookup.is_answered) {
            uv_run(&loop.uv, UV_RUN_ONCE);
        }
        dns_free(dns);
        *ret_answer = lookup.answer;
        err = lookup.answer.err;
    }
    loop_stop(&loop, NULL, NULL);
    return err;
}

static enum err find_addresses(const struct explanation *explanation, struct dns_answer *ret_answer) {
    const struct url *url = &explanation->url;
    if (url->host_type != URL_HOST_IPV4 && url->host_type != URL_HOST_IPV6) {
        return look_up(explanation, url_host(url), ret_answer);
    }
    *ret_answer = (struct dns_answer){.count = 1};
    return address_parse(url_host(url), 1, &ret_answer->addresses[0]) ? ERR_OK : ERR_INVALID;
}

/* A private address is refused before anything is sent; whether a public one answers, only asking it tells.
 */
static void explain_address(struct explanation *explanation) {
    struct dns_answer answer = {0};
    char text[ADDRESS_TEXT_SIZE_MAX] = "";
    char sentence[SENTENCE_SIZE_MAX];
    if (explanation->options->proxy != NULL) {
        say(explanation, "address", true, "the proxy resolves it");
        return;
    }
    enum err err = find_addresses(explanation, &answer);
    const char *refusal = NULL;
    bool is_good = false;
    for (size_t i = 0; i < answer.count && err == ERR_OK && !is_good; i++) {
        refusal = explanation->options->allow_private ? NULL : reach_refusal(&answer.addresses[i]);
        address_format(&answer.addresses[i], text);
        *strrchr(text, ':') = '\0';
        is_good = refusal == NULL;
    }
    if (err != ERR_OK) {
        snprintf(sentence, sizeof sentence, "%s",
                 err == ERR_NOT_FOUND ? "there is no host of that name" : "its name could not be resolved");
    } else if (!is_good) {
        snprintf(sentence, sizeof sentence, "%s is %s; --allow-private fetches from it", text, refusal);
    } else {
        snprintf(sentence, sizeof sentence, "%s", text);
    }
    say(explanation, "address", is_good, sentence);
    explanation->is_fetched = explanation->is_fetched && is_good;
}

static void put_entry(const struct explanation *explanation, const struct frontier_entry *entry) {
    FILE *out = explanation->cli->out;
    char time[UTC_DIGITS_SIZE];
    fprintf(out, "%-9s yes  ", "known");
    if (entry->is_waiting) {
        fprintf(out, "waiting for its turn, %u page links from a seed\n",
                scope_depth_pages(entry->url.depth));
    } else if (entry->state == FRONTIER_DONE) {
        fprintf(out, "fetched at %s, status %u; %u visits, %u changes\n",
                utc_format_digits(entry->url.history.last_time_us, time), entry->url.history.last_status,
                entry->url.history.visits_count, entry->url.history.changes_count);
    } else {
        fprintf(out, "not stored in the last visit: %s\n", tally_reason_text(entry->reason));
    }
}

static enum err explain_frontier(struct explanation *explanation, struct err_detail *detail) {
    char directory[PATH_MAX_SIZE];
    snprintf(directory, sizeof directory, "%s/frontier", explanation->campaign->directory);
    if (access(directory, F_OK) != 0) {
        say(explanation, "known", false, "this job has not run yet");
        return ERR_OK;
    }
    struct frontier_config config = {.directory = directory};
    struct frontier *frontier;
    enum err err = frontier_open(&config, &frontier, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct buf work;
    struct frontier_entry entry;
    buf_init(&work, SENTENCE_SIZE_MAX + 2 * (size_t)FRONTIER_URL_SIZE_MAX);
    if (frontier_find(frontier, explanation->href, &work, &entry) == ERR_OK) {
        put_entry(explanation, &entry);
    } else {
        say(explanation, "known", false, "no link to it has been found");
    }
    buf_done(&work);
    frontier_close(frontier);
    return ERR_OK;
}

int archive_explain(struct cli *cli, const struct archive_options *options, struct data *data,
                    struct campaign *campaign, const char *url) {
    struct explanation explanation = {
        .cli = cli,
        .data = data,
        .campaign = campaign,
        .options = options,
        .is_fetched = true,
    };
    struct err_detail detail = {0};
    url_init(&explanation.url);
    enum err err = url_parse(&explanation.url, bytes_of_string(url), NULL, &detail);
    if (err != ERR_OK) {
        struct bytes shown = url_text_without_userinfo(bytes_of_string(url));
        url_done(&explanation.url);
        return cli_fail(cli, "\"%.*s\" is not a URL: %s", BYTES_ARG(shown), err_detail_text(&detail, err));
    }
    url_remove_userinfo(&explanation.url);
    explanation.href = url_href(&explanation.url);
    if (url_has_fragment(&explanation.url)) {
        explanation.href = bytes_slice(explanation.href, 0, explanation.url.fragment.from - 1);
    }
    fprintf(cli->out, "%.*s\n", BYTES_ARG(explanation.href));
    explain_scope(&explanation);
    explain_traps(&explanation);
    explain_robots(&explanation);
    explain_address(&explanation);
    err = explain_frontier(&explanation, &detail);
    fprintf(cli->out, "%-9s %s\n", "fetched", explanation.is_fetched ? "yes, if the host answers" : "no");
    url_done(&explanation.url);
    return err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_detail_text(&detail, err));
}
