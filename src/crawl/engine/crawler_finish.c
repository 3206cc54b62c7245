#include "crawl/engine/crawler_state.h"
#include "crawl/rules/revisit.h"

void crawler_give_up(struct crawler *crawler, struct campaign *campaign, struct frontier_url *url,
                     enum frontier_state state, uint8_t reason) {
    struct tally *tally = &campaign->tally;
    struct frontier_outcome outcome = {
        .state = state,
        .reason = reason,
        .time_us = crawler_wall_us(crawler),
    };
    switch (state) {
    case FRONTIER_RETRY:
        tally->retried_count++;
        break;
    case FRONTIER_FAILED:
        tally->failed_count++;
        crawler->failed_count++;
        tally
            ->errors[reason > TALLY_FAILED && reason - TALLY_FAILED < TALLY_ERRORS_MAX ? reason - TALLY_FAILED
                     : reason == TALLY_TLS                                             ? -ERR_REFUSED
                                                                                       : -ERR_UNREACHABLE]++;
        break;
    case FRONTIER_CUT:
        tally->robots_denied_count++;
        break;
    case FRONTIER_AGAIN:
    case FRONTIER_ELSEWHERE:
    case FRONTIER_DONE:
        break;
    }
    frontier_finish(campaign->frontier, url, &outcome, NULL, 0);
}

/* ---- what is known of a host's traps outlives the run, with the host in a job's frontier ---- */

void crawler_keep_traps(struct host *host, struct frontier_lane *lane, uint32_t unkept_count_min) {
    struct buf state;
    if (host->trap == NULL || host->trap_unkept_count < unkept_count_min) {
        return;
    }
    buf_init(&state, FRONTIER_KEPT_SIZE_MAX);
    if (trap_host_put(host->trap, &state) == ERR_OK) {
        frontier_lane_keep(lane, buf_bytes(&state));
        host->trap_unkept_count = 0;
    }
    buf_done(&state);
}

void crawler_recall_traps(struct host *host, const struct frontier_lane *lane) {
    struct bytes state = frontier_lane_kept(lane);
    if (state.size == 0 || host->trap != NULL || host_trap(host) == NULL) {
        return; /* nothing is kept, or more is known already */
    }
    if (trap_host_read(host->trap, state) != ERR_OK) {
        trap_host_init(host->trap); /* damaged: counted anew */
    }
}

/* ---- links that lead nowhere new ---- */

/* Which of the links are worth it, and whose are they? Only those that are new are looked at. */
static void cut_traps(struct crawler *crawler, struct trip *trip) {
    struct campaign *campaign = trip->campaign;
    struct url *url = &crawler->url;
    int64_t now_us = crawler_wall_us(crawler);
    size_t kept_count = 0;
    for (size_t i = 0; i < trip->links_count; i++) {
        struct frontier_link *link = &trip->links[i];
        if (frontier_is_settled(campaign->frontier, link->url) ||
            url_parse(url, link->url, NULL, NULL) != ERR_OK) {
            continue;
        }
        unsigned pages = scope_depth_pages(link->depth);
        campaign_route(campaign, link);
        /* What is not known here comes again and again, and would be counted as often. */
        bool is_counted = link->verdict != ROUTE_AWAY && !frontier_is_full(campaign->frontier) &&
                          bytes_equal(link->host, trip->host->name);
        struct trap_host *host = is_counted ? host_trap(trip->host) : NULL;
        enum trap_reason reason = host != NULL ? trap_check(&trap_defaults, host, url, pages, now_us)
                                               : trap_check_url(&trap_defaults, url, pages, now_us);
        if (reason != TRAP_NONE) {
            campaign->tally.traps[reason]++;
            continue;
        }
        trip->host->trap_unkept_count += host != NULL ? 1 : 0;
        trip->links[kept_count++] = *link;
    }
    trip->links_count = kept_count;
    crawler_keep_traps(trip->host, trip->url->lane, CRAWLER_TRAPS_KEPT_ON_THE_WAY);
}

static void cut_soft_404(struct crawler *crawler, struct trip *trip) {
    const struct frontier_outcome *outcome = &trip->outcome;
    struct trap_host *host = host_trap(trip->host);
    if (outcome->status != 200 || trip->links_count == 0 || host == NULL || !outcome->has_digest ||
        url_parse(&crawler->url, trip->url->url, NULL, NULL) != ERR_OK) {
        return;
    }
    struct bytes digest = bytes_of(outcome->digest, KEY_DIGEST_SIZE);
    trip->host->trap_unkept_count++;
    if (trap_is_soft_404(&trap_defaults, host, &crawler->url, digest)) {
        trip->campaign->tally.traps[TRAP_SOFT_404] += trip->links_count;
        trip->links_count = 0;
    }
}

/* ---- counting ---- */

static void count(struct trip *trip) {
    struct tally *tally = &trip->campaign->tally;
    const struct fetch_result *result = trip->result;
    const struct stored *stored = &trip->stored;
    tally->done_count++;
    tally->seeds_done_count += campaign_is_seed(trip->campaign, trip->url);
    tally->patterns_limited_count =
        pattern_list_limited(&trip->campaign->include) + pattern_list_limited(&trip->campaign->exclude);
    trip->crawler->done_count++;
    tally->changed_count += trip->outcome.is_changed;
    tally->links_count += trip->links_found_count;
    tally->out_of_scope_count += trip->links_out_count;
    if (trip->was_stored_before) {
        tally->found_before_count++;
        return;
    }
    uint64_t body_size = result->body.size;
    tally->received_size += result->head.size + body_size;
    trip->crawler->received_size += result->head.size + body_size;
    tally->document_size += stored->document_size;
    tally->truncated_count += result->end != FETCH_WHOLE;
    tally->bad_tls_count += result->tls == FETCH_TLS_BAD;
    tally->statuses[result->status < TALLY_STATUSES_MAX ? result->status : 0]++;
    tally_count_type(tally, trip->mime, body_size);
    if (trip->is_not_modified) {
        tally->not_modified_count++;
        tally->saved_size += stored->document_size;
    } else if (stored->is_duplicate) {
        tally->duplicate_count++;
        tally->saved_size += stored->document_size;
    }
}

/* ---- the end of a trip ---- */

static void set_due(struct trip *trip) {
    const struct job *job = &trip->campaign->job;
    if (job->revisit != JOB_REVISIT_ADAPTIVE) {
        return;
    }
    const struct frontier_url *url = trip->url;
    struct frontier_outcome *outcome = &trip->outcome;
    struct revisit revisit = {
        .visits_count = url->history.visits_count + 1,
        .changes_count = url->history.changes_count + (url->history.visits_count > 0 && outcome->is_changed),
        .first_us = url->history.visits_count > 0 ? url->history.first_time_us : outcome->time_us,
        .previous_us = url->history.last_time_us,
        .last_us = outcome->time_us,
    };
    outcome->due_us = revisit_due_us(&revisit, job->period_us, 0);
}

static void finish_page(struct crawler *crawler, struct trip *trip) {
    struct campaign *campaign = trip->campaign;
    count(trip);
    cut_soft_404(crawler, trip);
    cut_traps(crawler, trip);
    set_due(trip);
    if (trip->redirect.size > 0 && campaign->route == NULL) { /* a shared scope is the same on all nodes */
        campaign_add_seed(campaign, trip->redirect);
    }
    frontier_finish(campaign->frontier, trip->url, &trip->outcome, trip->links, trip->links_count);
    crawler_return_trip(crawler, trip);
}

/* It was not stored before the crash, or cannot be read: fetch it like any other. */
static void finish_look(struct crawler *crawler, struct trip *trip) {
    if (trip->was_stored_before) {
        finish_page(crawler, trip);
        return;
    }
    if (trip->has_learned) {
        frontier_learn(trip->url, &trip->learned, trip->unread_since_us);
    }
    crawler_give_up(crawler, trip->campaign, trip->url, FRONTIER_AGAIN, 0);
    crawler_return_trip(crawler, trip);
}

/* Is it the archive as a whole that takes nothing for now, rather than this document that it refuses? */
static bool is_archive_down(enum err err) {
    return err_is_full(err) || err == ERR_IO || err == ERR_UNREACHABLE || err == ERR_TIMEOUT ||
           err == ERR_MEMORY || err == ERR_FILES;
}

/* What the worker found is found again next time. */
static void forget_findings(struct trip *trip) {
    arena_reset(&trip->arena);
    trip->links = NULL;
    trip->links_count = trip->links_max = 0;
    trip->links_found_count = trip->links_out_count = 0;
    trip->redirect = bytes_of(NULL, 0);
    trip->is_not_modified = trip->has_learned = false;
}

void crawler_drop_trip(struct crawler *crawler, struct trip *trip) {
    if (trip->url != NULL) {
        crawler_give_up(crawler, trip->campaign, trip->url, FRONTIER_AGAIN, 0);
    }
    crawler_return_trip(crawler, trip);
}

void crawler_finish_trip(struct crawler *crawler, struct trip *trip) {
    if (trip->err == ERR_BUSY) {
        forget_findings(trip);
        crawler_store(crawler, trip);
    } else if (is_archive_down(trip->err) && trip->campaign->state == CAMPAIGN_PAUSED) {
        forget_findings(trip);
        crawler_drop_trip(crawler, trip); /* who wants to stop does not wait for room */
    } else if (is_archive_down(trip->err)) {
        forget_findings(trip);
        crawler->disk_err = trip->err;
        trip->next = crawler->parked;
        crawler->parked = trip;
    } else if (trip->kind == TRIP_ROBOTS || trip->kind == TRIP_FAILURE) {
        crawler_return_trip(crawler, trip);
    } else if (trip->err != ERR_OK) {
        crawler_fail_url(crawler, trip->host, trip->campaign, trip->url, TALLY_NOT_STORED,
                         err_text(trip->err));
        crawler_return_trip(crawler, trip);
    } else if (trip->kind == TRIP_LOOK) {
        finish_look(crawler, trip);
    } else {
        finish_page(crawler, trip);
    }
}
