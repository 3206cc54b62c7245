#include "crawl/engine/crawler_state.h"

#include <stdio.h>

#include "warc/content.h"

enum { RETRY_AFTER_S = 3600 }; /* when all tries failed */

static struct host_robots *robots_of(struct host *host, const struct url *url) {
    return &host->robots[url->scheme_type == URL_SCHEME_HTTPS ? 1 : 0];
}

enum crawler_permission crawler_ask_robots(struct crawler *crawler, struct host *host,
                                           const struct campaign *campaign, const struct url *url) {
    if (campaign->job.ignores_robots) {
        return CRAWLER_ALLOWED;
    }
    const struct host_robots *known = robots_of(host, url);
    if (known->state != HOST_ROBOTS_KNOWN || crawler_wall_us(crawler) >= known->until_us) {
        return CRAWLER_MUST_ASK;
    }
    if (known->is_barred && !crawler_bars_private(crawler, campaign)) {
        return CRAWLER_MUST_ASK;
    }
    if (known->is_unreachable) {
        return CRAWLER_NO_ROBOTS;
    }
    struct bytes path_and_query = bytes_skip(url_href_without_fragment(url), url->path.from);
    bool is_allowed = robots_check(&known->robots, path_and_query, NULL);
    return is_allowed ? CRAWLER_ALLOWED : CRAWLER_DENIED;
}

/* ---- what an answer means ---- */

enum err crawler_name_sitemaps(struct crawler *crawler, struct campaign *campaign,
                               const struct robots *robots) {
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < robots->sitemaps_count && err == ERR_OK; i++) {
        struct url *url = &crawler->url;
        if (campaign->job.skips_sitemaps || url_parse(url, robots_sitemap(robots, i), NULL, NULL) != ERR_OK ||
            !url_is_web(url)) {
            continue;
        }
        url_remove_userinfo(url);
        campaign_name_sitemap(campaign, url_href(url));
        err = campaign_add_url(campaign, url, FRONTIER_SEED);
    }
    return err;
}

/*
 * The text of the file: its body without chunks and encodings, as much of it as counts. ERR_MEMORY, ERR_IO:
 * rules may be missing that it has.
 */
static enum err decode(struct fetch_result *result, struct buf *text) {
    struct content content;
    struct sink_buf sink;
    struct bytes body;
    sink_buf_init(&sink, text);
    enum err err = content_init(&content);
    err = err == ERR_OK ? scratch_bytes(&result->body, &body) : err;
    bool is_own_trouble = err != ERR_OK;
    if (err == ERR_OK) {
        err = content_start(&content, buf_bytes(&result->head), ROBOTS_TEXT_SIZE_MAX, &sink.sink, NULL);
    }
    if (err == ERR_OK) {
        err = content_put(&content, body, NULL);
    }
    content_done(&content);
    return is_own_trouble || err == ERR_MEMORY ? err
                                               : ERR_OK; /* what could be read of a damaged one counts */
}

enum err crawler_read_robots(struct crawler *crawler, struct host_robots *known, struct bytes text) {
    const char *agent = crawler->config.fetch.user_agent;
    struct bytes name = bytes_of_string(agent != NULL ? agent : robots_agent);
    return robots_parse(&known->robots, text, name);
}

/* As the host's home in a ring: it goes with every lease, and so its sitemaps are told. */
static void robots_keep(struct crawler *crawler, struct host *host, struct host_robots *known,
                        struct bytes text) {
    struct sha256 sha256;
    uint8_t digest[SHA256_SIZE] = {0};
    bool is_kept = sha256_init(&sha256) == ERR_OK;
    if (is_kept) {
        sha256_digest(&sha256, text, digest);
        is_kept = hosts_keep_text(&crawler->hosts, known, text);
    }
    sha256_done(&sha256);
    memcpy(known->digest, digest, PERMIT_DIGEST_SIZE);
    known->are_sitemaps_named = false;
    if (!is_kept) {
        pace_wait_for_robots(&host->pace, &crawler->pace,
                             crawler_now_us(crawler)); /* it is asked for again */
    }
}

static void robots_learn(struct crawler *crawler, struct trip *trip) {
    struct host *host = trip->host;
    struct host_robots *known = &host->robots[trip->is_https];
    struct fetch_result *result = trip->result;
    unsigned status = result->err == ERR_OK ? result->status : 0;
    enum robots_policy policy = robots_from_status(status);
    int64_t now_us = crawler_wall_us(crawler);
    known->is_barred = false;
    if (result->err == ERR_PERMISSION && crawler_bars_private(crawler, trip->campaign)) {
        crawler_bar(crawler, host, known);
    }
    bool is_hopeless = result->err != ERR_OK && !result->is_worth_retry; /* no such name, a private address */
    bool is_absent = crawler_is_absent(trip);
    uint8_t tries_max = is_absent ? CRAWLER_ABSENT_TRIES_MAX : CRAWLER_TRIES_MAX;
    bool is_last_try =
        ++known->tries_count >= tries_max || pace_is_dead(&host->pace) || known->is_barred || is_hopeless;
    robots_done(&known->robots);
    robots_init(&known->robots, policy == ROBOTS_OBEY ? ROBOTS_ALLOW_NOTHING : policy);
    known->is_unreachable = false;
    memset(known->digest, 0, PERMIT_DIGEST_SIZE);
    hosts_drop_text(&crawler->hosts, known);
    if (status == 429 && !is_last_try) {
        known->state = HOST_ROBOTS_UNKNOWN; /* not now is not never: again after what Retry-After says */
        return;
    }
    if (policy == ROBOTS_ALLOW_NOTHING && !is_last_try) {
        known->state = HOST_ROBOTS_UNKNOWN; /* again, when the pace allows */
        if (!is_absent) {
            pace_wait_for_robots(&host->pace, &crawler->pace, crawler_now_us(crawler));
        }
        return;
    }
    known->state = HOST_ROBOTS_KNOWN;
    known->tries_count = 0;
    known->until_us = now_us + ROBOTS_AGE_MAX_US;
    if (policy == ROBOTS_ALLOW_NOTHING) {
        known->is_unreachable = true;
        if (status != 0) {
            snprintf(host->failure_why, sizeof host->failure_why, "status %u", status);
        }
        known->until_us = now_us + (int64_t)RETRY_AFTER_S * 1000000;
        return;
    }
    pace_got_robots(&host->pace);
    if (policy != ROBOTS_OBEY) {
        return;
    }
    struct buf text;
    buf_init(&text, ROBOTS_TEXT_SIZE_MAX);
    enum err err = decode(result, &text);
    err = err == ERR_OK ? crawler_read_robots(crawler, known, buf_bytes(&text)) : err;
    pace_set_crawl_delay(&host->pace, &crawler->pace, known->robots.crawl_delay_us);
    if (crawler->config.permits != NULL) {
        robots_keep(crawler, host, known, buf_bytes(&text));
    }
    if (err == ERR_OK && (crawler->config.permits == NULL || !trip->campaign->job.is_shared)) {
        err = crawler_name_sitemaps(crawler, trip->campaign, &known->robots);
    }
    buf_done(&text);
    if (err != ERR_OK) {
        known->state = HOST_ROBOTS_UNKNOWN; /* a lack of memory here is no rule of theirs: ask again */
        pace_wait_for_robots(&host->pace, &crawler->pace, crawler_now_us(crawler));
    }
}

/* ---- asking ---- */

static void on_fetched(void *context, struct fetch_result *result);

static bool start(struct crawler *crawler, struct trip *trip) {
    struct fetch_request request = {.url = buf_bytes(&trip->address),
                                    .bars_private = crawler_bars_private(crawler, trip->campaign)};
    if (fetch_start(crawler->fetch, &request, on_fetched, trip) != ERR_OK) {
        return false;
    }
    crawler->running_count++;
    return true;
}

/* A robots.txt may have moved, also to another host; that it is asked there does not count for its pace. */
static bool follow_redirect(struct crawler *crawler, struct trip *trip) {
    const struct fetch_result *result = trip->result;
    bool is_redirect =
        result->err == ERR_OK && result->status >= 300 && result->status < 400 && result->status != 304;
    if (!is_redirect || trip->redirects_count == ROBOTS_REDIRECTS_MAX) {
        return false;
    }
    struct http_head head;
    struct url target;
    struct bytes text = buf_bytes(&result->head);
    bool is_good = http_head_init(&head) == ERR_OK;
    url_init(&target);
    if (is_good) {
        http_head_start(&head);
        http_head_feed(&head, &text);
        struct bytes location = fields_get(&head.fields, BYTES("Location"));
        is_good = location.size > 0 &&
                  url_parse(&crawler->url, buf_bytes(&trip->address), NULL, NULL) == ERR_OK &&
                  url_parse(&target, location, &crawler->url, NULL) == ERR_OK && url_is_web(&target);
    }
    url_remove_userinfo(&target);
    struct trip *next = is_good ? crawler_take_trip(crawler, TRIP_ROBOTS, trip->host, trip->campaign) : NULL;
    if (next != NULL) {
        next->is_https = trip->is_https;
        next->redirects_count = (uint8_t)(trip->redirects_count + 1);
        buf_put(&next->address, url_href(&target));
        if (!start(crawler, next)) {
            crawler_return_trip(crawler, next);
            next = NULL;
        }
    }
    http_head_done(&head);
    url_done(&target);
    return next != NULL;
}

static void on_fetched(void *context, struct fetch_result *result) {
    struct trip *trip = context;
    struct crawler *crawler = trip->crawler;
    trip->result = result;
    crawler->running_count--;
    if (result->err == ERR_CANCELLED) {
        trip->host->robots[trip->is_https].state = HOST_ROBOTS_UNKNOWN;
        crawler_end_request(crawler, trip);
        crawler_return_trip(crawler, trip);
        return;
    }
    if (!follow_redirect(crawler, trip)) {
        struct host *host = trip->host;
        crawler_end_request(crawler, trip);
        robots_learn(crawler, trip);
        /* URLs that may not be fetched without it are given up at once; whatever is asked waits for its time.
         */
        bool is_unreachable = host->robots[trip->is_https].is_unreachable;
        hosts_queue(&crawler->hosts, host,
                    is_unreachable ? crawler_now_us(crawler) : pace_next_us(&host->pace));
        crawler_home_serve(crawler, host);
    }
    if (result->err == ERR_OK) {
        crawler_store(crawler, trip); /* what a site allowed is part of its history */
    } else {
        crawler_return_trip(crawler, trip);
    }
    crawler_pump(crawler);
}

void crawler_fetch_robots(struct crawler *crawler, struct host *host, struct campaign *campaign,
                          const struct url *url) {
    struct trip *trip = crawler_take_trip(crawler, TRIP_ROBOTS, host, campaign);
    if (trip == NULL) {
        return;
    }
    trip->is_https = url->scheme_type == URL_SCHEME_HTTPS;
    url_put_origin(url, &trip->address);
    buf_put_string(&trip->address, "/robots.txt");
    if (!start(crawler, trip)) {
        crawler_return_trip(crawler, trip);
        return;
    }
    robots_of(host, url)->state = HOST_ROBOTS_ASKED;
    hosts_set_busy(&crawler->hosts, host, true);
}
