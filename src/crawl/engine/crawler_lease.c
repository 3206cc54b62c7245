#include <stdlib.h>

#include "crawl/engine/crawler_state.h"

static const uint64_t ANSWER_TIMEOUT_US = UINT64_C(10) * 1000000;
static const int64_t ROBOTS_AGE_MIN_US = INT64_C(60) * 1000000;

/* ---- which leases there are ---- */

static struct host_lease *lease_of(struct host *host) {
    if (host->lease == NULL && (host->lease = calloc(1, sizeof *host->lease)) != NULL) {
        host->lease->host = host;
    }
    return host->lease;
}

static void lease_set_state(struct crawler *crawler, struct host_lease *lease, enum host_lease_state state) {
    bool was_in = lease->state != HOST_LEASE_NONE;
    bool is_in = state != HOST_LEASE_NONE;
    lease->state = state;
    if (is_in && !was_in) {
        lease->previous = NULL;
        lease->next = crawler->leases;
        if (crawler->leases != NULL) {
            crawler->leases->previous = lease;
        }
        crawler->leases = lease;
        hosts_hold(&crawler->hosts, lease->host);
    } else if (!is_in && was_in) {
        *(lease->previous != NULL ? &lease->previous->next : &crawler->leases) = lease->next;
        if (lease->next != NULL) {
            lease->next->previous = lease->previous;
        }
        hosts_rest(&crawler->hosts, lease->host);
    }
}

static bool lease_holds(const struct host *host) {
    return host->lease != NULL && host->lease->state == HOST_LEASE_HELD;
}

/* ---- does it need one? ---- */

bool crawler_needs_lease(const struct crawler *crawler, const struct host *host) {
    if (crawler->config.permits == NULL) {
        return false;
    }
    for (const struct host_lane *lane = host->lanes; lane != NULL; lane = lane->next) {
        if (lane->campaign->job.is_shared) {
            return true;
        }
    }
    return host->book != NULL; /* we lend it ourselves: a job of our own gets in line too */
}

bool crawler_has_lease(const struct crawler *crawler, const struct host *host) {
    return lease_holds(host) && host->lease->requests_left > 0 &&
           crawler_now_us(crawler) <= host->lease->until_us;
}

bool crawler_wait_for_lease(struct crawler *crawler, struct host *host, uint64_t now_us) {
    struct host_lease *lease = host->lease;
    if (lease == NULL || lease->state == HOST_LEASE_HELD || now_us >= lease->wait_us) {
        return false;
    }
    hosts_queue(&crawler->hosts, host, lease->wait_us);
    return true;
}

/* ---- asking, using, giving back ---- */

void crawler_give_lease_back(struct crawler *crawler, struct host *host) {
    const struct permits *permits = crawler->config.permits;
    struct host_lease *lease = host->lease;
    if (!lease_holds(host)) {
        return;
    }
    lease->wait_us = 0;
    struct permit_lender lender = lease->lender;
    struct pace pace = host->pace;
    uint32_t requests_count = lease->requests_count;
    lease_set_state(crawler, lease, HOST_LEASE_NONE);
    hosts_queue(&crawler->hosts, host, crawler_now_us(crawler)); /* to ask for the next one */
    permits->give_back(permits->context, host->name, &lender, &pace, requests_count);
}

void crawler_ask_lease(struct crawler *crawler, struct host *host, bool is_https) {
    const struct permits *permits = crawler->config.permits;
    uint64_t now_us = crawler_now_us(crawler);
    crawler_give_lease_back(crawler, host);
    struct host_lease *lease = lease_of(host);
    hosts_queue(&crawler->hosts, host, now_us + ANSWER_TIMEOUT_US);
    if (lease == NULL) {
        return;
    }
    lease->wait_us = now_us + ANSWER_TIMEOUT_US;
    lease_set_state(crawler, lease, HOST_LEASE_ASKED);
    permits->ask(permits->context, host->name, is_https, host->robots[is_https].digest);
}

void crawler_use_lease(struct host *host) {
    if (lease_holds(host)) {
        host->lease->requests_left -= host->lease->requests_left > 0;
        host->lease->requests_count++;
    }
}

void crawler_check_lease(struct crawler *crawler, struct host *host) {
    if (!lease_holds(host) || host->is_busy) {
        return;
    }
    const struct host_lease *lease = host->lease;
    uint64_t now_us = crawler_now_us(crawler);
    uint64_t next_us = pace_next_us(&host->pace) > now_us ? pace_next_us(&host->pace) : now_us;
    if (lease->requests_left == 0 || next_us > lease->until_us || host->lanes == NULL) {
        crawler_give_lease_back(crawler, host);
    }
}

void crawler_check_leases(struct crawler *crawler) {
    uint64_t now_us = crawler_now_us(crawler);
    bool was_pumping = crawler->is_pumping;
    struct host_lease *next;
    crawler->is_pumping = true; /* what is given back may be lent to us again: no other lease changes here */
    for (struct host_lease *lease = crawler->leases; lease != NULL; lease = next) {
        struct host *host = lease->host;
        next = lease->next;
        if (lease->state == HOST_LEASE_ASKED && (now_us >= lease->wait_us || host->lanes == NULL)) {
            lease_set_state(crawler, lease, HOST_LEASE_NONE);
            hosts_queue(&crawler->hosts, host, now_us);
        } else {
            crawler_check_lease(crawler, host);
        }
    }
    crawler->is_pumping = was_pumping;
}

/* ---- the answer ---- */

/* False: it cannot be used, since it names a text that we do not have. */
static bool lease_take_robots(struct crawler *crawler, struct host *host,
                              const struct permit_robots *robots) {
    struct host_robots *known = &host->robots[robots->is_https];
    bool is_same = memcmp(known->digest, robots->digest, PERMIT_DIGEST_SIZE) == 0; /* so where we are home */
    if (robots->policy == ROBOTS_OBEY && !robots->has_text && !is_same) {
        memset(known->digest, 0, PERMIT_DIGEST_SIZE);
        return false;
    }
    int64_t least_us = crawler_wall_us(crawler) + ROBOTS_AGE_MIN_US; /* else it would be asked for again */
    known->until_us = robots->until_us > least_us ? robots->until_us : least_us;
    known->state = HOST_ROBOTS_KNOWN;
    known->is_unreachable = robots->is_unreachable;
    known->is_barred = false;
    if (robots->is_unreachable) { /* for its home, whose reach may be another */
        crawler_bar(crawler, host, known);
    }
    if (robots->policy != ROBOTS_OBEY) {
        robots_done(&known->robots);
        robots_init(&known->robots, robots->policy);
        memset(known->digest, 0, PERMIT_DIGEST_SIZE);
    } else if (!is_same) {
        hosts_drop_text(&crawler->hosts, known);
        enum err err = crawler_read_robots(crawler, known, robots->text);
        (void)err; /* without memory it allows nothing until the next lease */
        memcpy(known->digest, robots->digest, PERMIT_DIGEST_SIZE);
        known->are_sitemaps_named = false;
    }
    return true;
}

/* Every job that has URLs of the host learns of its sitemaps, once. */
static void lease_name_sitemaps(struct crawler *crawler, struct host *host, struct host_robots *known) {
    if (known->are_sitemaps_named) {
        return;
    }
    known->are_sitemaps_named = true;
    for (struct host_lane *lane = host->lanes; lane != NULL; lane = lane->next) {
        if (crawler_name_sitemaps(crawler, lane->campaign, &known->robots) != ERR_OK) {
            known->are_sitemaps_named = false;
        }
    }
}

static void lease_keep_lease(struct crawler *crawler, struct host *host, const struct permit_lease *lease) {
    struct host_lease *kept = host->lease;
    host->pace = lease->pace;
    kept->lender = lease->lender;
    kept->until_us = lease->until_us;
    kept->requests_left = lease->requests_max;
    kept->requests_count = 0;
    kept->wait_us = 0;
    lease_set_state(crawler, kept, HOST_LEASE_HELD);
    hosts_queue(&crawler->hosts, host, pace_is_dead(&host->pace) ? 0 : pace_next_us(&host->pace));
}

void crawler_lend(struct crawler *crawler, struct bytes name, const struct permit_lease *lease) {
    const struct permits *permits = crawler->config.permits;
    struct host *host = hosts_find(&crawler->hosts, name);
    bool is_wanted =
        host != NULL && host->lanes != NULL && !host->is_busy && host->lease != NULL && !lease_holds(host);
    bool is_dead = pace_is_dead(&lease->pace); /* then there may be no robots.txt */
    if (!is_wanted || (!is_dead && !lease_take_robots(crawler, host, &lease->robots))) {
        permits->give_back(permits->context, name, &lease->lender, &lease->pace, 0);
        return;
    }
    lease_keep_lease(crawler, host, lease);
    if (!is_dead) {
        lease_name_sitemaps(crawler, host, &host->robots[lease->robots.is_https]);
    }
    crawler_pump(crawler);
}

void crawler_refuse_lease(struct crawler *crawler, struct bytes name, uint64_t wait_us) {
    struct host *host = hosts_find(&crawler->hosts, name);
    if (host == NULL || host->lease == NULL || host->lease->state != HOST_LEASE_ASKED) {
        return;
    }
    host->lease->wait_us = crawler_now_us(crawler) + wait_us;
    lease_set_state(crawler, host->lease, HOST_LEASE_NONE);
    hosts_queue(&crawler->hosts, host, host->lease->wait_us);
    crawler_pump(crawler);
}

static const uint64_t TELL_WAIT_US = UINT64_C(5) * 1000000;   /* shorter waits are not worth a message */
static const uint64_t WAIT_MAX_US = UINT64_C(300) * 1000000;  /* of one that is told */
static const uint64_t CROWD_WAIT_US = UINT64_C(10) * 1000000; /* where too many wait */

static void home_refuse(struct crawler *crawler, const struct host *host, const struct peer *borrower,
                        uint64_t wait_us, enum permit_reason reason) {
    const struct permits *permits = crawler->config.permits;
    permits->refuse(permits->context, host->name, borrower, wait_us, reason);
}

/* ---- robots.txt ---- */

/* Also one that is over or that its user has paused: others go on. Not one that is about to be closed. */
static struct campaign *home_find_shared(struct crawler *crawler) {
    struct campaign *campaign = crawler->campaigns;
    while (campaign != NULL &&
           !(campaign->job.is_shared && (campaign->state != CAMPAIGN_PAUSED || campaign->job.is_paused))) {
        campaign = campaign->next;
    }
    return campaign;
}

static bool home_parse_origin(struct crawler *crawler, const struct host *host, bool is_https) {
    struct buf text;
    buf_init(&text, PERMIT_HOST_SIZE_MAX + 16);
    buf_put_string(&text, is_https ? "https://" : "http://");
    buf_put(&text, host->name);
    buf_put_string(&text, "/");
    struct url *url = &crawler->url;
    bool is_good = text.err == ERR_OK && url_parse(url, buf_bytes(&text), NULL, NULL) == ERR_OK &&
                   bytes_equal(bytes_slice(url_href(url), url->host.from, url->path.from), host->name);
    buf_done(&text);
    return is_good;
}

/* It counts as a request of the host, and for a job of the ring. What cannot be started is tried with the
 * next tick. */
static void crawler_fetch_home_robots(struct crawler *crawler, struct host *host, bool is_https) {
    struct campaign *campaign = home_find_shared(crawler);
    uint64_t next_us;
    if (campaign == NULL || !crawler_may_start(crawler) || !home_parse_origin(crawler, host, is_https)) {
        return;
    }
    bool counts = host->has_ip;
    if (counts && !pace_address_start(&crawler->addresses, &crawler->pace, host->ip, crawler_now_us(crawler),
                                      &next_us)) {
        return;
    }
    crawler_fetch_robots(crawler, host, campaign, &crawler->url);
    if (counts && !host->is_busy) {
        pace_address_end(&crawler->addresses, host->ip);
    }
}

/* ---- lending ---- */

/* asker: the node that is told if it takes long; NULL: nobody asked just now. */
static void home_serve(struct crawler *crawler, struct host *host, const struct peer *asker) {
    const struct permits *permits = crawler->config.permits;
    struct host_lender_grant grant;
    enum host_lender_verdict verdict;
    while ((verdict = host_lender_next(&crawler->host_lender, host, &crawler->pace, crawler_now_us(crawler),
                                       crawler_wall_us(crawler), &grant)) == HOST_LENDER_GRANTED) {
        permits->host_lender(permits->context, host->name, &grant.borrower, &grant.lease);
    }
    if (verdict == HOST_LENDER_ROBOTS) {
        crawler_fetch_home_robots(crawler, host, grant.is_https);
    } else if (verdict == HOST_LENDER_LATER && asker != NULL && grant.wait_us > TELL_WAIT_US) {
        uint64_t wait_us = grant.wait_us - HOST_LENDER_AHEAD_US;
        home_refuse(crawler, host, asker, wait_us < WAIT_MAX_US ? wait_us : WAIT_MAX_US, PERMIT_PACE);
    }
}

void crawler_home_ask(struct crawler *crawler, struct bytes name, const struct host_lender_borrower *borrower,
                      uint64_t home_since_us) {
    struct host *host = hosts_get(&crawler->hosts, name);
    if (host == NULL) {
        return; /* out of memory: no answer is an answer too */
    }
    uint64_t now_us = crawler_now_us(crawler);
    if (!home_parse_origin(crawler, host, borrower->is_https) ||
        host_lender_ask(&crawler->host_lender, host, borrower, home_since_us, now_us) != ERR_OK) {
        home_refuse(crawler, host, &borrower->peer, CROWD_WAIT_US, PERMIT_CROWD);
        hosts_rest(&crawler->hosts, host);
        return;
    }
    home_serve(crawler, host, &borrower->peer);
}

void crawler_home_take_back(struct crawler *crawler, struct bytes name, const struct peer *borrower,
                            uint64_t number, const struct pace *pace, uint32_t requests_count) {
    struct host *host = hosts_get(&crawler->hosts, name);
    if (host == NULL) {
        return;
    }
    host_lender_take_back(host, borrower, number, pace, requests_count, &crawler->pace,
                          crawler_now_us(crawler));
    home_serve(crawler, host, NULL);
    hosts_rest(&crawler->hosts, host);
}

void crawler_home_serve(struct crawler *crawler, struct host *host) {
    if (host->book != NULL) {
        home_serve(crawler, host, NULL);
    }
}

void crawler_home_tick(struct crawler *crawler) {
    struct host_lender_book *next;
    uint64_t now_us = crawler_now_us(crawler);
    bool was_pumping = crawler->is_pumping;
    crawler->is_pumping = true; /* what is lent to us is used later: no other book changes here */
    for (struct host_lender_book *book = crawler->host_lender.books; book != NULL; book = next) {
        struct host *host = book->host;
        next = book->next;
        host_lender_expire(host, &crawler->pace, now_us);
        home_serve(crawler, host, NULL);
    }
    crawler->is_pumping = was_pumping;
}
