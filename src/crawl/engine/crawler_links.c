#include "crawl/engine/crawler_state.h"

/* ---- whose a URL is ---- */

static bool is_elsewhere(void *context, struct bytes url, uint8_t ret_place[ROUTE_POSITION_SIZE]) {
    const struct campaign *campaign = context;
    const struct route *route = campaign->route;
    return route->ask(route->context, url, ret_place) != ROUTE_FETCH;
}

static void on_outgoing(void *context) {
    const struct campaign *campaign = context;
    campaign->route->outgoing(campaign->route->context, campaign->name);
}

void crawler_set_route(struct crawler *crawler, struct campaign *campaign, struct frontier_config *config) {
    campaign->route = campaign->job.is_shared ? crawler->config.route : NULL;
    if (campaign->route != NULL) {
        config->is_elsewhere = is_elsewhere;
        config->outgoing = on_outgoing;
    }
}

void crawler_tell_outgoing(struct campaign *campaign) {
    struct frontier_stat stat;
    frontier_stat(campaign->frontier, &stat);
    if (campaign->route != NULL && stat.outgoing_count > 0) {
        on_outgoing(campaign);
    }
}

/* ---- to others ---- */

/* A seed as the job has it: all nodes do. */
static bool is_plain_seed(struct campaign *campaign, const struct frontier_url *url) {
    return url->priority == FRONTIER_SEED && url->depth == 0 && !campaign_is_sitemap(campaign, url->url);
}

bool crawler_hand_on(struct campaign *campaign, struct frontier_url *url) {
    struct frontier_link link = {
        .url = url->url,
        .host = frontier_lane_host(url->lane),
        .depth = url->depth,
        .priority = url->priority,
        .verdict = ROUTE_AWAY,
    };
    if (campaign->route == NULL || !is_elsewhere(campaign, url->url, link.place)) {
        return false;
    }
    link.is_outgoing = !is_plain_seed(campaign, url);
    struct frontier_outcome outcome = {.state = FRONTIER_ELSEWHERE};
    frontier_finish(campaign->frontier, url, &outcome, &link, 1);
    return true;
}

/* ---- from others ---- */

/* A visit that was over is not: there is more to fetch. */
static void go_on(struct crawler *crawler, struct campaign *campaign) {
    if (campaign->state == CAMPAIGN_ENDED) {
        campaign->state = CAMPAIGN_RUNNING;
        campaign->is_told = false;
    }
    crawler_wake(crawler);
}

void crawler_recall(struct crawler *crawler) {
    for (struct campaign *campaign = crawler->campaigns; campaign != NULL; campaign = campaign->next) {
        if (campaign->route != NULL) {
            campaign->has_recalled = true;
            enum err err = campaign_add_seeds(campaign);
            (void)err; /* those that were ours before are known; without memory, others come with the next
                          recall */
            frontier_recall(campaign->frontier);
            go_on(crawler, campaign);
        }
    }
}

static enum campaign_taking take_link(struct crawler *crawler, struct campaign *campaign,
                                      const struct frontier_outgoing *outgoing) {
    struct url *url = &crawler->url;
    struct frontier_link link;
    size_t added_count = 0;
    if (outgoing->url.size > FRONTIER_URL_SIZE_MAX || url_parse(url, outgoing->url, NULL, NULL) != ERR_OK) {
        return CAMPAIGN_REFUSED;
    }
    url_remove_userinfo(url); /* an older node sends them */
    enum campaign_taking taking =
        campaign_take_link(campaign, url, outgoing->depth, outgoing->priority, &link);
    if (taking != CAMPAIGN_TAKEN) {
        return taking;
    }
    enum trap_reason reason =
        trap_check_url(&trap_defaults, url, scope_depth_pages(outgoing->depth), crawler_wall_us(crawler));
    if (reason != TRAP_NONE) {
        campaign->tally.traps[reason]++;
        return CAMPAIGN_REFUSED;
    }
    if (frontier_add(campaign->frontier, &link, 1, &added_count) != ERR_OK) {
        return CAMPAIGN_NOT_NOW;
    }
    return added_count > 0 ? CAMPAIGN_TAKEN : CAMPAIGN_REFUSED;
}

enum err crawler_take_links(struct crawler *crawler, struct campaign *campaign,
                            const struct frontier_outgoing *links, size_t count,
                            struct crawler_links *ret_outcome) {
    struct crawler_links outcome = {0};
    bool is_short = false; /* of memory */
    if (frontier_is_disk_behind(campaign->frontier)) {
        return ERR_BUSY;
    }
    for (size_t i = 0; i < count; i++) {
        enum campaign_taking taking = take_link(crawler, campaign, &links[i]);
        outcome.taken_count += taking == CAMPAIGN_TAKEN;
        outcome.known_count += taking == CAMPAIGN_KNOWN;
        outcome.refused_count += taking == CAMPAIGN_REFUSED;
        outcome.away_count += taking == CAMPAIGN_AWAY;
        is_short |= taking == CAMPAIGN_NOT_NOW;
    }
    if (outcome.taken_count > 0) {
        go_on(crawler, campaign);
    }
    if (is_short) {
        return ERR_BUSY; /* they come again, and those that were taken are known then */
    }
    *ret_outcome = outcome;
    return ERR_OK;
}
