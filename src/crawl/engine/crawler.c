#include "crawl/engine/crawler.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "crawl/engine/crawler_state.h"
#include "http/message/http_head.h"

enum {
    TRANSFERS_DEFAULT = 200,
    WORKERS_MAX = 16,
    TICK_MS = 500,
    ADDRESS_RETRY_US = 20 * 1000, /* until another transfer to that IP address may have ended */
    SHORTAGE_RETRY_US = 1000 * 1000,
    LONG_WAIT_US = 10 * 1000 * 1000,
    BARRED_US = 600 * 1000 * 1000,
    TURNS_IN_A_ROW_MAX = 256, /* of one host without a request, before others get theirs */
};

static const uint64_t MEMORY_DEFAULT = UINT64_C(64) << 20;

uint64_t crawler_now_us(const struct crawler *crawler) {
    return clock_monotonic_us(crawler->config.clock);
}

int64_t crawler_wall_us(const struct crawler *crawler) {
    return clock_wall_us(crawler->config.clock);
}

/* ---- trips ---- */

struct trip *crawler_take_trip(struct crawler *crawler, enum trip_kind kind, struct host *host,
                               struct campaign *campaign) {
    struct trip *trip = crawler->free_trips;
    if (trip != NULL) {
        crawler->free_trips = trip->next;
    } else if ((trip = trip_new()) == NULL) {
        return NULL;
    }
    trip->next = NULL;
    trip->crawler = crawler;
    trip->kind = kind;
    trip->host = host;
    trip->campaign = campaign;
    campaign->trips_count++;
    return trip;
}

void crawler_return_trip(struct crawler *crawler, struct trip *trip) {
    trip->campaign->trips_count--;
    trip_clear(trip);
    trip->next = crawler->free_trips;
    crawler->free_trips = trip;
}

void crawler_store(struct crawler *crawler, struct trip *trip) {
    crawler->storing_count++;
    if (trip->result != NULL && scratch_is_in_memory(&trip->result->body)) {
        crawler->storing_size += trip->result->body.size;
    }
    workers_give(crawler->workers, trip);
}

/* ---- requests ---- */

bool crawler_bars_private(const struct crawler *crawler, const struct campaign *campaign) {
    return campaign->job.is_shared ? !crawler->config.allows_private_shared
                                   : !crawler->config.fetch.allows_private;
}

void crawler_bar(struct crawler *crawler, struct host *host, struct host_robots *known) {
    if (crawler->config.allows_private_shared != crawler->config.fetch.allows_private) {
        host->barred_us = crawler_now_us(crawler) + BARRED_US;
        if (known != NULL) {
            known->is_barred = true;
        }
    }
}

static bool crawler_is_barred(const struct crawler *crawler, const struct host *host) {
    return crawler_now_us(crawler) < host->barred_us;
}

static bool is_refusal(uint16_t status) {
    return status == 429 || status == 503;
}

void crawler_end_request(struct crawler *crawler, const struct trip *trip) {
    struct host *host = trip->host;
    const struct fetch_result *result = trip->result;
    hosts_set_busy(&crawler->hosts, host, false);
    if (host->has_ip) {
        pace_address_end(&crawler->addresses, host->ip);
    }
    host->has_ip = false;
    if (result->err == ERR_CANCELLED) {
        return;
    }
    crawler_note_failure(host, result);
    struct address address;
    if (address_parse(bytes_of_string(result->ip), 1, &address)) {
        memcpy(host->ip, address.ip, sizeof host->ip);
        host->has_ip = true;
    }
    if (result->err == ERR_PERMISSION && crawler_bars_private(crawler, trip->campaign)) {
        crawler_bar(crawler, host, NULL);
        if (crawler_is_barred(crawler, host)) { /* it was not asked: that says nothing about it */
            hosts_queue(&crawler->hosts, host, crawler_now_us(crawler));
            crawler_check_lease(crawler, host);
            return;
        }
    }
    bool was_asked =
        result->err != ERR_PERMISSION && (result->err != ERR_NOT_FOUND || result->is_worth_retry);
    if (!was_asked) { /* nothing was sent: there is nobody to be patient with */
        hosts_queue(&crawler->hosts, host, crawler_now_us(crawler));
        crawler_check_lease(crawler, host);
        return;
    }
    host->has_answered[trip->is_https] = host->has_answered[trip->is_https] || result->err == ERR_OK;
    struct pace_answer answer = {
        .status = result->err == ERR_OK ? result->status : 0,
        .is_absent = crawler_is_absent(trip),
        .duration_us = result->first_byte_us,
    };
    struct http_head head;
    bool has_head = is_refusal(answer.status) && http_head_init(&head) == ERR_OK;
    if (has_head) {
        struct bytes text = buf_bytes(&result->head);
        http_head_start(&head);
        http_head_feed(&head, &text);
        answer.retry_after = fields_get(&head.fields, BYTES("Retry-After"));
    }
    pace_finish(&host->pace, &crawler->pace, &answer, crawler_now_us(crawler), crawler_wall_us(crawler));
    if (has_head) {
        http_head_done(&head);
    }
    hosts_queue(&crawler->hosts, host, pace_next_us(&host->pace));
    crawler_check_lease(crawler, host);
    if (pace_next_us(&host->pace) > crawler_now_us(crawler) + LONG_WAIT_US) {
        for (struct host_lane *lane = host->lanes; lane != NULL; lane = lane->next) {
            frontier_lane_rest(lane->lane); /* other hosts may use its place meanwhile */
        }
    }
}

/* No response: try again later, or never. */
static void crawler_fail(struct crawler *crawler, struct trip *trip) {
    const struct fetch_result *result = trip->result;
    struct frontier_url *url = trip->url;
    struct campaign *campaign = trip->campaign;
    enum frontier_state state = FRONTIER_FAILED;
    if (result->err == ERR_CANCELLED) {
        state = FRONTIER_AGAIN;
    } else if (result->is_worth_retry &&
               url->tries + 1 < (crawler_is_absent(trip) ? CRAWLER_ABSENT_TRIES_MAX : CRAWLER_TRIES_MAX)) {
        state = FRONTIER_RETRY;
    }
    if (state == FRONTIER_FAILED) {
        crawler_fail_url(crawler, trip->host, campaign, url, trip->host->failure_reason,
                         trip->host->failure_why);
    } else {
        crawler_give_up(crawler, campaign, url, state, trip->host->failure_reason);
    }
    crawler_return_trip(crawler, trip);
}

static void on_fetched(void *context, struct fetch_result *result) {
    struct trip *trip = context;
    struct crawler *crawler = trip->crawler;
    trip->result = result;
    crawler->running_count--;
    crawler_end_request(crawler, trip);
    if (result->err != ERR_OK) {
        crawler_fail(crawler, trip);
    } else if (is_refusal(result->status) && trip->url->tries + 1 < CRAWLER_REFUSALS_MAX) {
        crawler_give_up(crawler, trip->campaign, trip->url, FRONTIER_RETRY, 0);
        crawler_return_trip(crawler, trip);
    } else {
        crawler_store(crawler, trip);
    }
    crawler_pump(crawler);
}

static bool start_fetch(struct crawler *crawler, struct host *host, struct campaign *campaign,
                        struct frontier_url *url) {
    struct trip *trip = crawler_take_trip(crawler, TRIP_PAGE, host, campaign);
    if (trip == NULL) {
        return false;
    }
    trip->url = url;
    trip->is_https = crawler->url.scheme_type == URL_SCHEME_HTTPS;
    buf_put(&trip->address, url->url);
    bool has_earlier = url->history.has_digest && url->history.last_status == 200;
    struct fetch_request request = {
        .url = url->url,
        .if_none_match = has_earlier ? url->history.etag : bytes_of(NULL, 0),
        .if_modified_since = has_earlier ? url->history.last_modified : bytes_of(NULL, 0),
        .bars_private = crawler_bars_private(crawler, campaign),
    };
    if (fetch_start(crawler->fetch, &request, on_fetched, trip) != ERR_OK) {
        crawler_return_trip(crawler, trip);
        return false;
    }
    crawler->running_count++;
    campaign->fetches_count++;
    crawler_use_lease(host);
    hosts_set_busy(&crawler->hosts, host, true);
    return true;
}

static bool start_look(struct crawler *crawler, struct host *host, struct campaign *campaign,
                       struct frontier_url *url) {
    struct trip *trip = crawler_take_trip(crawler, TRIP_LOOK, host, campaign);
    if (trip == NULL) {
        return false;
    }
    trip->url = url;
    buf_put(&trip->address, url->url);
    crawler_store(crawler, trip);
    return true;
}

/* ---- whose turn it is ---- */

/* A URL of one of the host's jobs, which take turns. */
static struct frontier_url *take_url(struct host *host, struct campaign **ret_campaign) {
    size_t lanes_count = 0;
    for (struct host_lane *lane = host->lanes; lane != NULL; lane = lane->next) {
        lanes_count++;
    }
    for (size_t i = 0; i < lanes_count; i++) {
        struct host_lane *lane = host->lanes;
        if (lane->next != NULL) {
            struct host_lane **end = &lane->next;
            host->lanes = lane->next;
            while (*end != NULL) {
                end = &(*end)->next;
            }
            *end = lane;
            lane->next = NULL;
        }
        if (lane->campaign->state != CAMPAIGN_RUNNING) {
            continue;
        }
        struct frontier_url *url = frontier_take(lane->lane);
        if (url != NULL) {
            *ret_campaign = lane->campaign;
            return url;
        }
    }
    return NULL;
}

/* Has this address had enough for now? Then the host waits. */
static bool wait_for_address(struct crawler *crawler, struct host *host, uint64_t now_us) {
    uint64_t next_us;
    if (!host->has_ip ||
        pace_address_start(&crawler->addresses, &crawler->pace, host->ip, now_us, &next_us)) {
        return false;
    }
    hosts_queue(&crawler->hosts, host, next_us == UINT64_MAX ? now_us + ADDRESS_RETRY_US : next_us);
    return true;
}

/* What became of one turn of a host. */
enum turn {
    TURN_EMPTY,   /* it has no URL in memory; ready() queues it again */
    TURN_REQUEST, /* it is busy now, and is queued when that ends */
    TURN_FREE,    /* no request was made: it may have another turn at once */
    TURN_SHORT,   /* something is short; it is queued for later */
};

/* Robots first. */
static enum turn fetch(struct crawler *crawler, struct host *host, struct campaign *campaign,
                       struct frontier_url *url) {
    enum crawler_permission permission = crawler_ask_robots(crawler, host, campaign, &crawler->url);
    bool may_go = permission == CRAWLER_ALLOWED && crawler_has_lease(crawler, host);
    bool would_go = permission == CRAWLER_ALLOWED || permission == CRAWLER_MUST_ASK;
    bool is_own_matter = crawler_is_barred(crawler, host) && !crawler_bars_private(crawler, campaign);
    if (would_go && !may_go && !is_own_matter && crawler_needs_lease(crawler, host)) {
        crawler_give_up(crawler, campaign, url, FRONTIER_AGAIN, 0);
        crawler_ask_lease(crawler, host, crawler->url.scheme_type == URL_SCHEME_HTTPS);
        return TURN_SHORT;
    }
    if (would_go && pace_next_us(&host->pace) > crawler_now_us(crawler)) {
        crawler_give_up(crawler, campaign, url, FRONTIER_AGAIN, 0); /* it had this turn for other URLs */
        hosts_queue(&crawler->hosts, host, pace_next_us(&host->pace));
        return TURN_SHORT;
    }
    switch (permission) {
    case CRAWLER_DENIED:
        crawler_fail_url(crawler, host, campaign, url, TALLY_ROBOTS, NULL);
        return TURN_FREE;
    case CRAWLER_NO_ROBOTS:
        crawler_fail_url(crawler, host, campaign, url,
                         host->failure_reason != TALLY_NONE ? host->failure_reason : TALLY_NO_ROBOTS,
                         host->failure_why);
        return TURN_FREE;
    case CRAWLER_MUST_ASK:
        crawler_fetch_robots(crawler, host, campaign, &crawler->url);
        crawler_give_up(crawler, campaign, url, FRONTIER_AGAIN, 0);
        break;
    case CRAWLER_ALLOWED:
        if (!start_fetch(crawler, host, campaign, url)) {
            crawler_give_up(crawler, campaign, url, FRONTIER_AGAIN, 0);
        }
        break;
    }
    if (host->is_busy) {
        return TURN_REQUEST;
    }
    hosts_queue(&crawler->hosts, host, crawler_now_us(crawler) + SHORTAGE_RETRY_US);
    return TURN_SHORT;
}

/* One URL of the host: cut, looked up or fetched. */
static enum turn take_turn(struct crawler *crawler, struct host *host) {
    struct campaign *campaign = NULL;
    struct frontier_url *url = take_url(host, &campaign);
    if (url == NULL) {
        return TURN_EMPTY;
    }
    /* Frontiers of older versions have URLs with passwords: such are neither fetched nor handed on. */
    if (url_parse(&crawler->url, url->url, NULL, NULL) != ERR_OK || url_has_userinfo(&crawler->url)) {
        crawler_fail_url(crawler, host, campaign, url, (uint8_t)(TALLY_FAILED - ERR_INVALID),
                         "no URL to fetch");
        return TURN_FREE;
    }
    if (crawler_hand_on(campaign, url)) {
        return TURN_FREE;
    }
    if (pace_is_dead(&host->pace)) {
        crawler_fail_url(crawler, host, campaign, url, TALLY_HOST_DEAD, host->failure_why);
        return TURN_FREE;
    }
    if (crawler_is_barred(crawler, host) && crawler_bars_private(crawler, campaign)) {
        crawler_fail_url(crawler, host, campaign, url, (uint8_t)(TALLY_FAILED - ERR_PERMISSION), NULL);
        return TURN_FREE;
    }
    if (url->is_doubtful) {
        url->is_doubtful = false;
        if (start_look(crawler, host, campaign, url)) {
            return TURN_FREE;
        }
    }
    return fetch(crawler, host, campaign, url);
}

static bool is_disk_behind(const struct crawler *crawler) {
    for (const struct campaign *campaign = crawler->campaigns; campaign != NULL; campaign = campaign->next) {
        if (frontier_is_behind(campaign->frontier)) {
            return true;
        }
    }
    return crawler->storing_count >= CRAWLER_STORING_MAX ||
           crawler->storing_size >= crawler->config.memory_max;
}

bool crawler_may_start(const struct crawler *crawler) {
    return crawler->running_count < crawler->config.transfers_max && crawler->parked == NULL &&
           !is_disk_behind(crawler);
}

/* Limits of the run. */
static void check_limits(struct crawler *crawler, struct campaign *campaign) {
    const struct job *job = &campaign->job;
    uint64_t elapsed_us = crawler_now_us(crawler) - campaign->started_us;
    bool is_reached = (job->urls_max > 0 && campaign->fetches_count >= job->urls_max) ||
                      (job->bytes_max > 0 && campaign->tally.received_size >= job->bytes_max) ||
                      (job->time_max_us > 0 && elapsed_us >= job->time_max_us);
    if (is_reached && campaign->state == CAMPAIGN_RUNNING) {
        campaign->state = CAMPAIGN_LIMITED;
    }
}

/* Is a campaign at its end? Its owner is told once. */
static void check_ends(struct crawler *crawler) {
    struct campaign *next;
    for (struct campaign *campaign = crawler->campaigns; campaign != NULL; campaign = next) {
        next = campaign->next;
        bool is_over = campaign->state == CAMPAIGN_RUNNING && campaign->trips_count == 0 &&
                       frontier_is_empty(campaign->frontier);
        bool is_limited = campaign->state == CAMPAIGN_LIMITED && campaign->trips_count == 0;
        if (is_over) {
            campaign->state = CAMPAIGN_ENDED;
        }
        if ((is_over || is_limited) && !campaign->is_told) {
            campaign->is_told = true;
            crawler->config.ended(crawler->config.context, campaign);
        }
    }
}

static void crawler_on_timer(uv_timer_t *timer) {
    crawler_pump(timer->data);
}

void crawler_pump(struct crawler *crawler) {
    if (crawler->is_pumping) {
        return;
    }
    crawler->is_pumping = true;
    uint64_t now_us = crawler_now_us(crawler);
    uint64_t next_us = UINT64_MAX;
    struct host *host;
    for (struct campaign *campaign = crawler->campaigns; campaign != NULL; campaign = campaign->next) {
        check_limits(crawler, campaign);
    }
    while (crawler_may_start(crawler) && (host = hosts_next(&crawler->hosts, now_us, &next_us)) != NULL) {
        if (host->is_busy || crawler_wait_for_lease(crawler, host, now_us) ||
            wait_for_address(crawler, host, now_us)) {
            continue;
        }
        enum turn turn = TURN_FREE;
        for (size_t i = 0; i < TURNS_IN_A_ROW_MAX && turn == TURN_FREE && crawler_may_start(crawler); i++) {
            turn = take_turn(crawler, host);
        }
        if (turn != TURN_REQUEST && host->has_ip) {
            pace_address_end(&crawler->addresses, host->ip);
        }
        if (turn == TURN_FREE) {
            hosts_queue(&crawler->hosts, host, now_us);
        } else if (turn == TURN_EMPTY) {
            crawler_give_lease_back(crawler, host);
        }
    }
    if (next_us != UINT64_MAX) {
        uint64_t wait_ms = next_us > now_us ? (next_us - now_us + 999) / 1000 : 0;
        uv_timer_start(&crawler->timer, crawler_on_timer, wait_ms, 0);
    }
    check_ends(crawler);
    crawler->is_pumping = false;
}

/* ---- what the frontier tells ---- */

static void on_ready(void *context, struct frontier_lane *lane) {
    struct campaign *campaign = context;
    struct crawler *crawler = campaign->crawler;
    struct host_lane *owner = frontier_lane_owner(lane);
    struct host *host = owner != NULL ? owner->host : hosts_get(&crawler->hosts, frontier_lane_host(lane));
    if (host == NULL || (owner == NULL && hosts_add_lane(&crawler->hosts, host, campaign, lane) != ERR_OK)) {
        frontier_lane_refuse(lane); /* out of memory */
        return;
    }
    if (owner == NULL) {
        crawler_recall_traps(host, lane);
    }
    uint64_t at_us = pace_is_dead(&host->pace) ? 0 : pace_next_us(&host->pace);
    hosts_queue(&crawler->hosts, host, at_us);
}

static void on_gone(void *context, struct frontier_lane *lane) {
    struct campaign *campaign = context;
    struct host_lane *owner = frontier_lane_owner(lane);
    if (owner != NULL) {
        crawler_keep_traps(owner->host, lane, CRAWLER_TRAPS_KEPT_AT_END);
        frontier_lane_set_owner(lane, NULL);
        hosts_remove_lane(&campaign->crawler->hosts, owner);
    }
}

void crawler_wake(void *context) {
    struct crawler *crawler = context;
    (void)loop_post(crawler->config.loop, &crawler->wake);
}

static void wake_frontier(void *context) {
    struct campaign *campaign = context;
    crawler_wake(campaign->crawler);
}

/* ---- back from the workers ---- */

static void crawler_on_wake(void *context) {
    struct crawler *crawler = context;
    struct trip *trip = workers_take(crawler->workers);
    while (trip != NULL) {
        struct trip *next = trip->next;
        crawler->storing_count--;
        if (trip->result != NULL && scratch_is_in_memory(&trip->result->body)) {
            crawler->storing_size -= trip->result->body.size;
        }
        crawler_finish_trip(crawler, trip);
        trip = next;
    }
    for (struct campaign *campaign = crawler->campaigns; campaign != NULL; campaign = campaign->next) {
        frontier_poll(campaign->frontier);
    }
    crawler_pump(crawler);
}

/* Documents that the archive did not take are tried again, since disks are emptied some day. */
static void on_tick(uv_timer_t *timer) {
    struct crawler *crawler = timer->data;
    struct trip *trip = crawler->parked;
    crawler->parked = NULL;
    while (trip != NULL) {
        struct trip *next = trip->next;
        crawler_store(crawler, trip);
        trip = next;
    }
    crawler_check_leases(crawler);
    crawler_home_tick(crawler);
    crawler_pump(crawler);
}

/* ---- its own life ---- */

static void set_defaults(struct crawler_config *config) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = processors > 0 ? (size_t)processors : 1;
    config->clock = config->clock != NULL ? config->clock : &clock_system;
    config->transfers_max = config->transfers_max > 0 ? config->transfers_max : TRANSFERS_DEFAULT;
    config->memory_max = config->memory_max > 0 ? config->memory_max : MEMORY_DEFAULT;
    if (config->workers_count == 0) {
        config->workers_count = count < WORKERS_MAX ? count : WORKERS_MAX;
    }
}

static enum err open_parts(struct crawler *crawler, struct err_detail *detail) {
    struct crawler_config *config = &crawler->config;
    struct dns_config dns_config = {
        .loop = &config->loop->uv,
        .nameservers = config->nameserver,
        .timeout_us = config->fetch.connect_timeout_us,
    };
    enum err err = dns_new(&dns_config, &crawler->dns, detail);
    if (err == ERR_OK) {
        config->fetch.loop = &config->loop->uv;
        config->fetch.dns = crawler->dns;
        config->fetch.transfers_max = config->transfers_max;
        struct fetch_config fetch = config->fetch;
        fetch.allows_private |= config->allows_private_shared; /* each request says whether it may */
        err = fetch_new(&fetch, &crawler->fetch, detail);
    }
    if (err == ERR_OK) {
        err = pace_addresses_init(&crawler->addresses, (uint64_t)crawler_wall_us(crawler));
    }
    if (err == ERR_OK) {
        struct workers_config workers_config = {
            .instance = config->instance,
            .identity = config->identity,
            .parsers = config->parsers,
            .threads_count = config->workers_count,
            .gives_way = config->gives_way,
            .wake = crawler_wake,
            .context = crawler,
        };
        err = workers_new(&workers_config, &crawler->workers);
    }
    return err;
}

static void start_handles(struct crawler *crawler) {
    uv_loop_t *loop = &crawler->config.loop->uv;
    crawler->wake = (struct loop_post){.run = crawler_on_wake, .context = crawler};
    uv_timer_init(loop, &crawler->timer);
    uv_timer_init(loop, &crawler->tick);
    crawler->timer.data = crawler->tick.data = crawler;
    crawler->handles_count = 2;
    uv_timer_start(&crawler->tick, on_tick, TICK_MS, TICK_MS);
}

enum err crawler_new(const struct crawler_config *config, struct crawler **ret_crawler,
                     struct err_detail *detail) {
    struct crawler *crawler = calloc(1, sizeof *crawler);
    if (crawler == NULL) {
        return ERR_MEMORY;
    }
    crawler->config = *config;
    set_defaults(&crawler->config);
    crawler->pace = pace_defaults;
    url_init(&crawler->url);
    hosts_init(&crawler->hosts, (uint64_t)crawler_wall_us(crawler));
    host_lender_init(&crawler->host_lender, &crawler->hosts, (uint64_t)crawler_wall_us(crawler));
    start_handles(crawler);
    enum err err = open_parts(crawler, detail);
    if (err != ERR_OK) {
        crawler_free(crawler);
        return err;
    }
    *ret_crawler = crawler;
    return ERR_OK;
}

static void crawler_on_closed(uv_handle_t *handle) {
    struct crawler *crawler = handle->data;
    if (--crawler->handles_count == 0) {
        free(crawler);
    }
}

void crawler_free(struct crawler *crawler) {
    ASSERT(crawler->campaigns == NULL);
    if (crawler->workers != NULL) {
        workers_free(crawler->workers);
    }
    fetch_free(crawler->fetch);
    dns_free(crawler->dns);
    while (crawler->free_trips != NULL) {
        struct trip *trip = crawler->free_trips;
        crawler->free_trips = trip->next;
        trip_free(trip);
    }
    pace_addresses_done(&crawler->addresses);
    host_lender_done(&crawler->host_lender);
    hosts_done(&crawler->hosts);
    url_done(&crawler->url);
    loop_drop(crawler->config.loop, &crawler->wake);
    uv_close((uv_handle_t *)&crawler->timer, crawler_on_closed);
    uv_close((uv_handle_t *)&crawler->tick, crawler_on_closed);
}

/* ---- campaigns ---- */

/* The engine is shared: the most patient of the jobs decides. */
static void choose_pace(struct crawler *crawler) {
    crawler->pace.has_delay = false;
    crawler->pace.delay_us = 0;
    for (const struct campaign *campaign = crawler->campaigns; campaign != NULL; campaign = campaign->next) {
        const struct job *job = &campaign->job;
        bool is_first = campaign == crawler->campaigns;
        crawler->pace.has_delay = job->has_delay && (is_first || crawler->pace.has_delay);
        if (job->delay_us > crawler->pace.delay_us) {
            crawler->pace.delay_us = job->delay_us;
        }
    }
}

enum err crawler_add(struct crawler *crawler, struct campaign *campaign, struct err_detail *detail) {
    struct frontier_config config = {
        .wake = wake_frontier,
        .ready = on_ready,
        .gone = on_gone,
        .seen_size_max = crawler->config.frontier_memory_max,
        .context = campaign,
    };
    crawler_set_route(crawler, campaign, &config);
    campaign->crawler = crawler;
    campaign->started_us = crawler_now_us(crawler);
    campaign->state = campaign->job.is_paused ? CAMPAIGN_PAUSED : CAMPAIGN_RUNNING;
    enum err err = campaign_open_frontier(campaign, &config, crawler_wall_us(crawler), detail);
    if (err != ERR_OK) {
        return err;
    }
    campaign->next = crawler->campaigns;
    crawler->campaigns = campaign;
    choose_pace(crawler);
    crawler_tell_outgoing(campaign);
    crawler_wake(crawler); /* what opening has to tell is told from the loop */
    return ERR_OK;
}

/* Hosts that did not answer get another chance. */
static void revive_hosts(struct crawler *crawler) {
    size_t cursor = 0;
    for (struct host *host; (host = hosts_each(&crawler->hosts, &cursor)) != NULL;) {
        if (pace_is_dead(&host->pace)) {
            pace_init(&host->pace);
        }
    }
}

void crawler_start_visit(struct crawler *crawler, struct campaign *campaign) {
    revive_hosts(crawler);
    campaign->tally = (struct tally){0};
    campaign->doubts_since_us = 0; /* they were about the last visit */
    campaign_start_visit(campaign, crawler_wall_us(crawler));
    crawler_resume(crawler, campaign);
}

void crawler_pause(struct crawler *crawler, struct campaign *campaign) {
    (void)crawler;
    campaign->state = CAMPAIGN_PAUSED;
}

void crawler_resume(struct crawler *crawler, struct campaign *campaign) {
    size_t cursor = 0;
    campaign->state = CAMPAIGN_RUNNING;
    campaign->is_told = false;
    campaign->started_us = crawler_now_us(crawler);
    campaign->fetches_count = 0;
    for (struct host *host; (host = hosts_each(&crawler->hosts, &cursor)) != NULL;) {
        uint64_t at_us = pace_is_dead(&host->pace) ? 0 : pace_next_us(&host->pace);
        hosts_queue(&crawler->hosts, host, at_us); /* those without lanes stay where they are */
    }
    crawler_wake(crawler);
}

bool crawler_is_idle(const struct crawler *crawler, const struct campaign *campaign) {
    (void)crawler;
    return campaign->trips_count == 0;
}

static void keep_traps(struct crawler *crawler, const struct campaign *campaign) {
    size_t cursor = 0;
    for (struct host *host; (host = hosts_each(&crawler->hosts, &cursor)) != NULL;) {
        for (struct host_lane *lane = host->lanes; lane != NULL; lane = lane->next) {
            if (lane->campaign == campaign) {
                crawler_keep_traps(host, lane->lane, CRAWLER_TRAPS_KEPT_AT_END);
            }
        }
    }
}

void crawler_remove(struct crawler *crawler, struct campaign *campaign) {
    ASSERT(crawler_is_idle(crawler, campaign));
    struct campaign **link = &crawler->campaigns;
    while (*link != campaign) {
        link = &(*link)->next;
    }
    *link = campaign->next;
    keep_traps(crawler, campaign);
    hosts_remove_campaign(&crawler->hosts, campaign);
    crawler_check_leases(crawler);
    campaign_end_run(campaign);
    frontier_close(campaign->frontier);
    campaign->frontier = NULL;
    choose_pace(crawler);
}

void crawler_cancel(struct crawler *crawler) {
    fetch_cancel(crawler->fetch);
    struct trip *trip = crawler->parked;
    crawler->parked = NULL;
    while (trip != NULL) {
        struct trip *next = trip->next;
        crawler_drop_trip(crawler, trip);
        trip = next;
    }
}

/* ---- looking at it ---- */

void crawler_stat(const struct crawler *crawler, struct crawler_stat *ret_stat) {
    struct fetch_stat fetch_stat_now;
    fetch_stat(crawler->fetch, &fetch_stat_now);
    uint64_t now_us = crawler_now_us(crawler);
    *ret_stat = (struct crawler_stat){
        .running_count = crawler->running_count,
        .storing_count = crawler->storing_count,
        .connections_count = fetch_stat_now.connections_count,
        .done_count = crawler->done_count,
        .received_size = crawler->received_size,
        .failed_count = crawler->failed_count,
        .hold_err = crawler->parked != NULL ? crawler->disk_err : ERR_OK,
        .hold = crawler->parked != NULL   ? CRAWLER_DISK_FULL
                : is_disk_behind(crawler) ? CRAWLER_DISK_SLOW
                                          : CRAWLER_FLOWING,
    };
    size_t cursor = 0;
    for (const struct host *host; (host = hosts_each(&crawler->hosts, &cursor)) != NULL;) {
        ret_stat->hosts_count += host->lanes != NULL;
        ret_stat->hosts_waiting_count += host->lanes != NULL && !host->is_busy && host->at_us > now_us;
    }
}

/* People read a clock on their wall. */
static int64_t local_time_us(int64_t wall_us) {
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm local;
    return localtime_r(&seconds, &local) != NULL ? wall_us + (int64_t)local.tm_gmtoff * 1000000 : wall_us;
}

void crawler_put_waiting(const struct crawler *crawler, size_t hosts_max, struct buf *out) {
    const struct host *longest[8] = {NULL};
    size_t count = 0;
    size_t cursor = 0;
    uint64_t now_us = crawler_now_us(crawler);
    int64_t local_us = local_time_us(crawler_wall_us(crawler));
    ASSERT(hosts_max > 0);
    hosts_max = hosts_max < 8 ? hosts_max : 8;
    for (const struct host *host; (host = hosts_each(&crawler->hosts, &cursor)) != NULL;) {
        bool waits = host->lanes != NULL && !host->is_busy && pace_next_us(&host->pace) > now_us;
        if (!waits || (count == hosts_max && longest[count - 1]->pace.next_us >= host->pace.next_us)) {
            continue;
        }
        size_t at = count < hosts_max ? count++ : count - 1;
        while (at > 0 && longest[at - 1]->pace.next_us < host->pace.next_us) {
            longest[at] = longest[at - 1];
            at--;
        }
        longest[at] = host;
    }
    for (size_t i = 0; i < count; i++) {
        buf_put_string(out, i > 0 ? "; " : "");
        buf_put(out, longest[i]->name);
        buf_put_string(out, ": ");
        crawler_put_why(longest[i], now_us, local_us, out);
    }
}
