#include "crawl/engine/campaign.h"

#include <stdio.h>
#include <sys/random.h>

enum { TEXT_SIZE_MAX = 256 << 20 };

static enum err add_patterns(struct pattern_list *list, const struct config_list *texts,
                             struct err_detail *detail) {
    enum err err = ERR_OK;
    for (size_t i = 0; i < texts->count && err == ERR_OK; i++) {
        err = pattern_list_add(list, texts->items[i], detail);
    }
    return err;
}

static enum err add_seeds_to_scope(struct campaign *campaign) {
    struct url url;
    enum err err = ERR_OK;
    url_init(&url);
    for (size_t i = 0; i < campaign->job.seeds.count && err == ERR_OK; i++) {
        err = url_parse(&url, campaign->job.seeds.items[i], NULL, NULL);
        if (err == ERR_OK) {
            err = scope_add_seed(&campaign->scope, &url);
        }
    }
    url_done(&url);
    return err;
}

enum err campaign_open(struct campaign *campaign, const char *directory, const char *name,
                       struct err_detail *detail) {
    *campaign = (struct campaign){0};
    snprintf(campaign->name, sizeof campaign->name, "%s", name);
    snprintf(campaign->directory, sizeof campaign->directory, "%s", directory);
    arena_init(&campaign->arena, TEXT_SIZE_MAX);
    pattern_list_init(&campaign->include);
    pattern_list_init(&campaign->exclude);
    pthread_rwlock_init(&campaign->scope_lock, NULL);
    if (getrandom(&campaign->hash_seed, sizeof campaign->hash_seed, 0) != sizeof campaign->hash_seed) {
        campaign->hash_seed = (uint64_t)(uintptr_t)campaign; /* less random, but the crawl goes on */
    }
    map_init(&campaign->sitemaps, sizeof(uint64_t), 0, CAMPAIGN_SITEMAPS_MAX, campaign->hash_seed);
    enum err err = job_read(&campaign->job, directory, &campaign->arena, detail);
    if (err == ERR_OK) {
        err = add_patterns(&campaign->include, &campaign->job.include, detail);
    }
    if (err == ERR_OK) {
        err = add_patterns(&campaign->exclude, &campaign->job.exclude, detail);
    }
    struct scope_config config = {
        .type = (enum scope_type)campaign->job.scope,
        .depth_max = (uint16_t)campaign->job.depth,
        .include = &campaign->include,
        .exclude = &campaign->exclude,
        .follows_forms = campaign->job.follows_forms,
        .follows_guesses = campaign->job.follows_guesses,
        .hash_seed = campaign->hash_seed,
    };
    scope_init(&campaign->scope, &config);
    if (err == ERR_OK) {
        err = add_seeds_to_scope(campaign);
    }
    if (err != ERR_OK) {
        campaign_close(campaign);
    }
    return err;
}

void campaign_close(struct campaign *campaign) {
    if (campaign->frontier != NULL) {
        frontier_close(campaign->frontier);
    }
    scope_done(&campaign->scope);
    pattern_list_done(&campaign->include);
    pattern_list_done(&campaign->exclude);
    pthread_rwlock_destroy(&campaign->scope_lock);
    map_done(&campaign->sitemaps);
    arena_done(&campaign->arena);
}

/* When the visit that is under way now has begun. */
static int64_t visit_time(const struct campaign *campaign, int64_t now_us) {
    const struct job *job = &campaign->job;
    if (!job->is_shared || now_us < 0) {
        return now_us;
    }
    return (int64_t)((uint64_t)now_us - (uint64_t)now_us % job->period_us);
}

void campaign_start_visit(struct campaign *campaign, int64_t now_us) {
    bool is_adaptive = campaign->job.revisit == JOB_REVISIT_ADAPTIVE;
    struct frontier_stat stat;
    frontier_start_visit(campaign->frontier, visit_time(campaign, now_us), is_adaptive ? now_us : INT64_MAX);
    frontier_stat(campaign->frontier, &stat);
    campaign->visit = stat.visit;
    campaign->visit_start_us = stat.visit_start_us;
    campaign->has_recalled = false;
}

static struct frontier_link link_of(const struct url *url, uint16_t depth, enum frontier_priority priority) {
    struct bytes href = url_href_without_fragment(url);
    return (struct frontier_link){
        .url = href,
        .host = bytes_slice(href, url->host.from, url->path.from),
        .depth = depth,
        .priority = priority,
    };
}

void campaign_route(const struct campaign *campaign, struct frontier_link *link) {
    if (campaign->route != NULL) {
        link->verdict = campaign->route->ask(campaign->route->context, link->url, link->place);
        /* Others may have visited what is new to this node. */
        link->is_doubtful = campaign->has_recalled || campaign->visit > 1;
    }
}

bool campaign_wants_own(const struct campaign *campaign) {
    const struct route *route = campaign->route;
    return route != NULL && route->wants_own != NULL && route->wants_own(route->context);
}

static bool is_allowed(const struct campaign *campaign, struct bytes url) {
    const struct route *route = campaign->route;
    return route == NULL || route->allows == NULL || route->allows(route->context, url);
}

/* The seeds wait from the first visit on; later they are known like all others. */
enum err campaign_add_seeds(struct campaign *campaign) {
    struct url url;
    enum err err = ERR_OK;
    url_init(&url);
    for (size_t i = 0; i < campaign->job.seeds.count && err != ERR_MEMORY; i++) {
        err = url_parse(&url, campaign->job.seeds.items[i], NULL, NULL);
        if (err != ERR_OK) {
            continue;
        }
        struct frontier_link link = link_of(&url, 0, FRONTIER_SEED);
        if (is_allowed(campaign, link.url)) {
            campaign_route(campaign, &link);
            err = frontier_add(campaign->frontier, &link, 1, NULL);
        }
    }
    url_done(&url);
    return err == ERR_MEMORY ? err : ERR_OK;
}

enum err campaign_add_url(struct campaign *campaign, const struct url *url, enum frontier_priority priority) {
    struct frontier_link link = link_of(url, 0, priority);
    campaign_route(campaign, &link);
    link.is_outgoing = campaign->route != NULL && !frontier_knows(campaign->frontier, link.url);
    return frontier_add(campaign->frontier, &link, 1, NULL);
}

static const char run_note[] = "run"; /* "visit since": of a run that has not ended yet, and when it began */

/*
 * The newest changes of the frontier may be lost in a crash, documents never. So remember since when to look
 * for documents of this visit that it does not know.
 */
static enum err begin_run(struct campaign *campaign, uint32_t visit, int64_t now_us) {
    struct buf note;
    struct bytes since;
    struct bytes number;
    uint64_t noted_visit;
    uint64_t since_us;
    buf_init(&note, 64);
    if (frontier_get_note(campaign->frontier, run_note, &note) == ERR_OK) {
        since = buf_bytes(&note);
        if (bytes_split(&since, ' ', &number) && bytes_to_u64(number, UINT32_MAX, &noted_visit) &&
            noted_visit == visit && bytes_to_u64(since, INT64_MAX, &since_us)) {
            campaign->doubts_since_us = (int64_t)since_us;
        }
    }
    int64_t begun_us = campaign->doubts_since_us != 0 ? campaign->doubts_since_us : now_us;
    buf_clear(&note);
    buf_put_format(&note, "%u %jd", visit, (intmax_t)begun_us);
    enum err err = frontier_put_note(campaign->frontier, run_note, buf_bytes(&note));
    buf_done(&note);
    return err;
}

void campaign_end_run(struct campaign *campaign) {
    enum err err = frontier_put_note(campaign->frontier, run_note, BYTES("ended"));
    (void)err; /* then the next run looks more closely than it has to */
}

enum err campaign_open_frontier(struct campaign *campaign, const struct frontier_config *config,
                                int64_t now_us, struct err_detail *detail) {
    char directory[CAMPAIGN_PATH_SIZE_MAX + 16];
    snprintf(directory, sizeof directory, "%s/frontier", campaign->directory);
    struct frontier_config filled = *config;
    filled.directory = directory;
    filled.now_us = visit_time(campaign, now_us);
    filled.host_urls_max = (uint32_t)campaign->job.host_urls_max;
    filled.domain_urls_max = (uint32_t)campaign->job.domain_urls_max;
    enum err err = frontier_open(&filled, &campaign->frontier, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct frontier_stat stat;
    frontier_stat(campaign->frontier, &stat);
    bool is_over = stat.known_count > 0 && frontier_is_empty(campaign->frontier) &&
                   (!campaign->job.is_shared || visit_time(campaign, now_us) > stat.visit_start_us);
    campaign->visit = stat.visit;
    campaign->visit_start_us = stat.visit_start_us;
    if (is_over || stat.visit == 0) {
        campaign_start_visit(campaign, now_us);
        frontier_stat(campaign->frontier, &stat);
    }
    err = begin_run(campaign, stat.visit, now_us);
    err = err == ERR_OK ? campaign_add_seeds(campaign) : err;
    if (err != ERR_OK) {
        frontier_close(campaign->frontier);
        campaign->frontier = NULL;
        return err_set(detail, err, "%s: %s", directory, err_text(err));
    }
    return ERR_OK;
}

/* ---- what other nodes found ---- */

/* A sitemap goes out as a seed that is none: no redirect of one. */
static bool is_sitemap_of_others(uint16_t depth, enum frontier_priority priority) {
    return priority == FRONTIER_SEED && scope_depth_redirects(depth) == 0;
}

/* How a URL of that depth was found, and in a document of which depth: the last step tells. */
static enum scope_via last_step(uint16_t depth, enum frontier_priority priority, uint16_t *ret_from_depth) {
    enum { REDIRECT = 1, EMBED = 1 << 4, PAGE = 1 << 7, PAGES_END = 511 };
    if (scope_depth_redirects(depth) > 0) {
        *ret_from_depth = (uint16_t)(depth - REDIRECT);
        return SCOPE_VIA_REDIRECT;
    }
    if (scope_depth_embeds(depth) > 0 || depth == 0) {
        *ret_from_depth = depth == 0 ? 0 : (uint16_t)(depth - EMBED);
        return SCOPE_VIA_EMBED;
    }
    bool is_at_end = scope_depth_pages(depth) == PAGES_END; /* pages stick there */
    *ret_from_depth = is_at_end ? depth : (uint16_t)(depth - PAGE);
    return priority == FRONTIER_GUESS ? SCOPE_VIA_GUESS : SCOPE_VIA_PAGE;
}

enum campaign_taking campaign_take_link(struct campaign *campaign, const struct url *url, uint16_t depth,
                                        enum frontier_priority priority, struct frontier_link *ret_link) {
    struct scope_verdict verdict;
    uint16_t from_depth;
    bool is_sitemap = is_sitemap_of_others(depth, priority);
    if (!url_is_web(url) || (is_sitemap && campaign->job.skips_sitemaps) || (depth == 0 && !is_sitemap)) {
        return CAMPAIGN_REFUSED;
    }
    *ret_link = link_of(url, depth, priority);
    if (ret_link->url.size > FRONTIER_URL_SIZE_MAX) {
        return CAMPAIGN_REFUSED;
    }
    if (frontier_knows(campaign->frontier, ret_link->url)) {
        return CAMPAIGN_KNOWN;
    }
    enum scope_via via = last_step(depth, priority, &from_depth);
    if (!campaign_check(campaign, url, via, from_depth, &verdict)) {
        return CAMPAIGN_REFUSED;
    }
    campaign_route(campaign, ret_link);
    if (ret_link->verdict == ROUTE_AWAY) {
        return CAMPAIGN_AWAY;
    }
    if (is_sitemap) {
        campaign_name_sitemap(campaign, ret_link->url);
    }
    return CAMPAIGN_TAKEN;
}

bool campaign_check(struct campaign *campaign, const struct url *url, enum scope_via via, uint16_t from_depth,
                    struct scope_verdict *ret_verdict) {
    pthread_rwlock_rdlock(&campaign->scope_lock);
    bool is_in = scope_check(&campaign->scope, url, via, from_depth, ret_verdict);
    pthread_rwlock_unlock(&campaign->scope_lock);
    if (is_in && !is_allowed(campaign, url_href(url))) {
        *ret_verdict = (struct scope_verdict){.reason = SCOPE_OUT_RING, .pattern_index = PATTERN_NONE};
        return false;
    }
    return is_in;
}

void campaign_add_seed(struct campaign *campaign, struct bytes text) {
    struct url url;
    url_init(&url);
    if (url_parse(&url, text, NULL, NULL) == ERR_OK) {
        pthread_rwlock_wrlock(&campaign->scope_lock);
        /* Without memory for it the scope stays as it was: the seed's target alone is fetched. */
        enum err err = scope_add_seed(&campaign->scope, &url);
        (void)err;
        pthread_rwlock_unlock(&campaign->scope_lock);
    }
    url_done(&url);
}

void campaign_name_sitemap(struct campaign *campaign, struct bytes url) {
    uint64_t fingerprint = map_hash(url, campaign->hash_seed);
    pthread_rwlock_wrlock(&campaign->scope_lock);
    if (map_reserve(&campaign->sitemaps, campaign->sitemaps.count + 1) == ERR_OK) {
        map_put(&campaign->sitemaps, bytes_of(&fingerprint, sizeof fingerprint));
    }
    pthread_rwlock_unlock(&campaign->scope_lock);
}

bool campaign_is_seed(struct campaign *campaign, const struct frontier_url *url) {
    return url->depth == 0 && !campaign_is_sitemap(campaign, url->url);
}

bool campaign_is_sitemap(struct campaign *campaign, struct bytes url) {
    uint64_t fingerprint = map_hash(url, campaign->hash_seed);
    pthread_rwlock_rdlock(&campaign->scope_lock);
    bool is_one = map_get(&campaign->sitemaps, bytes_of(&fingerprint, sizeof fingerprint)) != NULL;
    pthread_rwlock_unlock(&campaign->scope_lock);
    return is_one;
}

int64_t campaign_look_since_us(const struct campaign *campaign) {
    int64_t start_us = campaign->visit_start_us;
    int64_t doubts_us = campaign->doubts_since_us;
    return doubts_us != 0 && doubts_us < start_us ? doubts_us : start_us;
}
