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

static void set_state(struct crawler *crawler, struct host_lease *lease, enum host_lease_state state) {
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

static bool holds(const struct host *host) {
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
    return holds(host) && host->lease->requests_left > 0 && crawler_now_us(crawler) <= host->lease->until_us;
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
    if (!holds(host)) {
        return;
    }
    lease->wait_us = 0;
    struct permit_lender lender = lease->lender;
    struct pace pace = host->pace;
    uint32_t requests_count = lease->requests_count;
    set_state(crawler, lease, HOST_LEASE_NONE);
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
    set_state(crawler, lease, HOST_LEASE_ASKED);
    permits->ask(permits->context, host->name, is_https, host->robots[is_https].digest);
}

void crawler_use_lease(struct host *host) {
    if (holds(host)) {
        host->lease->requests_left -= host->lease->requests_left > 0;
        host->lease->requests_count++;
    }
}

void crawler_check_lease(struct crawler *crawler, struct host *host) {
    if (!holds(host) || host->is_busy) {
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
            set_state(crawler, lease, HOST_LEASE_NONE);
            hosts_queue(&crawler->hosts, host, now_us);
        } else {
            crawler_check_lease(crawler, host);
        }
    }
    crawler->is_pumping = was_pumping;
}

/* ---- the answer ---- */

/* False: it cannot be used, since it names a text that we do not have. */
static bool take_robots(struct crawler *crawler, struct host *host, const struct permit_robots *robots) {
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
    if (robots->policy != ROBOTS_OBEY) {
        robots_done(&known->robots);
        robots_init(&known->robots, robots->policy);
        memset(known->digest, 0, PERMIT_DIGEST_SIZE);
    } else if (!is_same) {
        hosts_drop_text(&crawler->hosts, known);
        crawler_read_robots(crawler, known, robots->text);
        memcpy(known->digest, robots->digest, PERMIT_DIGEST_SIZE);
        known->are_sitemaps_named = false;
    }
    return true;
}

/* Every job that has URLs of the host learns of its sitemaps, once. */
static void name_sitemaps(struct crawler *crawler, struct host *host, struct host_robots *known) {
    if (known->are_sitemaps_named) {
        return;
    }
    known->are_sitemaps_named = true;
    for (struct host_lane *lane = host->lanes; lane != NULL; lane = lane->next) {
        crawler_name_sitemaps(crawler, lane->campaign, &known->robots);
    }
}

static void keep_lease(struct crawler *crawler, struct host *host, const struct permit_lease *lease) {
    struct host_lease *kept = host->lease;
    host->pace = lease->pace;
    kept->lender = lease->lender;
    kept->until_us = lease->until_us;
    kept->requests_left = lease->requests_max;
    kept->requests_count = 0;
    kept->wait_us = 0;
    set_state(crawler, kept, HOST_LEASE_HELD);
    hosts_queue(&crawler->hosts, host, pace_is_dead(&host->pace) ? 0 : pace_next_us(&host->pace));
}

void crawler_lend(struct crawler *crawler, struct bytes name, const struct permit_lease *lease) {
    const struct permits *permits = crawler->config.permits;
    struct host **found = map_get(&crawler->hosts.map, name);
    struct host *host = found != NULL ? *found : NULL;
    bool is_wanted =
        host != NULL && host->lanes != NULL && !host->is_busy && host->lease != NULL && !holds(host);
    bool is_dead = pace_is_dead(&lease->pace); /* then there may be no robots.txt */
    if (!is_wanted || (!is_dead && !take_robots(crawler, host, &lease->robots))) {
        permits->give_back(permits->context, name, &lease->lender, &lease->pace, 0);
        return;
    }
    keep_lease(crawler, host, lease);
    if (!is_dead) {
        name_sitemaps(crawler, host, &host->robots[lease->robots.is_https]);
    }
    crawler_pump(crawler);
}

void crawler_refuse_lease(struct crawler *crawler, struct bytes name, uint64_t wait_us) {
    struct host **found = map_get(&crawler->hosts.map, name);
    struct host *host = found != NULL ? *found : NULL;
    if (host == NULL || host->lease == NULL || host->lease->state != HOST_LEASE_ASKED) {
        return;
    }
    host->lease->wait_us = crawler_now_us(crawler) + wait_us;
    set_state(crawler, host->lease, HOST_LEASE_NONE);
    hosts_queue(&crawler->hosts, host, host->lease->wait_us);
    crawler_pump(crawler);
}
