#include "crawl/engine/crawler_state.h"

static const uint64_t TELL_WAIT_US = UINT64_C(5) * 1000000;   /* shorter waits are not worth a message */
static const uint64_t WAIT_MAX_US = UINT64_C(300) * 1000000;  /* of one that is told */
static const uint64_t CROWD_WAIT_US = UINT64_C(10) * 1000000; /* where too many wait */

static void refuse(struct crawler *crawler, const struct host *host, const struct peer *borrower,
                   uint64_t wait_us, enum permit_reason reason) {
    const struct permits *permits = crawler->config.permits;
    permits->refuse(permits->context, host->name, borrower, wait_us, reason);
}

/* ---- robots.txt ---- */

/* Also one that is over or that its user has paused: others go on. Not one that is about to be closed. */
static struct campaign *find_shared(struct crawler *crawler) {
    struct campaign *campaign = crawler->campaigns;
    while (campaign != NULL &&
           !(campaign->job.is_shared && (campaign->state != CAMPAIGN_PAUSED || campaign->job.is_paused))) {
        campaign = campaign->next;
    }
    return campaign;
}

static bool parse_origin(struct crawler *crawler, const struct host *host, bool is_https) {
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
    struct campaign *campaign = find_shared(crawler);
    uint64_t next_us;
    if (campaign == NULL || !crawler_may_start(crawler) || !parse_origin(crawler, host, is_https)) {
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

/* asker: who is told where it takes long; NULL: nobody asked just now. */
static void serve(struct crawler *crawler, struct host *host, const struct peer *asker) {
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
        refuse(crawler, host, asker, wait_us < WAIT_MAX_US ? wait_us : WAIT_MAX_US, PERMIT_PACE);
    }
}

void crawler_home_ask(struct crawler *crawler, struct bytes name, const struct host_lender_borrower *borrower,
                      uint64_t home_since_us) {
    struct host *host = hosts_get(&crawler->hosts, name);
    if (host == NULL) {
        return; /* out of memory: no answer is an answer too */
    }
    uint64_t now_us = crawler_now_us(crawler);
    if (!parse_origin(crawler, host, borrower->is_https) ||
        host_lender_ask(&crawler->host_lender, host, borrower, home_since_us, now_us) != ERR_OK) {
        refuse(crawler, host, &borrower->peer, CROWD_WAIT_US, PERMIT_CROWD);
        hosts_rest(&crawler->hosts, host);
        return;
    }
    serve(crawler, host, &borrower->peer);
}

void crawler_home_take_back(struct crawler *crawler, struct bytes name, const struct peer *borrower,
                            uint64_t number, const struct pace *pace, uint32_t requests_count) {
    struct host *host = hosts_get(&crawler->hosts, name);
    if (host == NULL) {
        return;
    }
    host_lender_take_back(host, borrower, number, pace, requests_count, &crawler->pace,
                          crawler_now_us(crawler));
    serve(crawler, host, NULL);
    hosts_rest(&crawler->hosts, host);
}

void crawler_home_serve(struct crawler *crawler, struct host *host) {
    if (host->book != NULL) {
        serve(crawler, host, NULL);
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
        serve(crawler, host, NULL);
    }
    crawler->is_pumping = was_pumping;
}
