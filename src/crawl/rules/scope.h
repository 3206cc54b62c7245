/*
 * scope - which of the links that are found belong to a job.
 *
 *      page     the seeds themselves
 *      prefix   what lies in a seed's directory or below: of https://a.org/x/y.html that is a.org/x/
 *      host     the seeds' hosts; http and https, with and without "www.", are one host, ports are not
 *      domain   the seeds' registrable domains ("example.co.uk", by the public suffix list)
 *      any      all of the web
 *
 * and with each page in scope its embedded objects, from any host: images, styles, what the styles embed,
 * frames and what is in them; where they redirect to too. A seed may redirect anywhere: its target is in, and
 * the owner makes it a seed by scope_add_seed(), so that http://example.org/ leads to all of
 * https://www.example.net/.
 *
 * Exclude patterns hold for everything. Include patterns narrow the pages (not seeds, not embedded objects):
 * a page then must match one of them too.
 *
 * How far a URL is from the seeds is one number of 16 bits, kept with it in the frontier and ordered by
 * pages first:
 *
 *      | pages: 9 bits | embeds: 3 bits | redirects: 4 bits |
 *        page links      objects within    since the last
 *        from a seed     that page         link of either kind
 *
 * so that frames in frames and chains of redirects end. Links found in embedded frames lead on as those of
 * pages do. Pages stick at their maximum.
 *
 * Cost: two or three hash lookups a link, no allocation; seeds may be many thousands. Checks are const: any
 * thread, while nobody adds.
 */
#ifndef MNEMON_CRAWL_RULES_SCOPE_H
#define MNEMON_CRAWL_RULES_SCOPE_H

#include "base/buf.h"
#include "base/map.h"
#include "crawl/rules/pattern.h"
#include "web/url/url.h"

enum scope_type { SCOPE_PAGE, SCOPE_PREFIX, SCOPE_HOST, SCOPE_DOMAIN, SCOPE_ANY };

/* How a URL was found. The first five are those of web/html/links.h, in its order. */
enum scope_via {
    SCOPE_VIA_PAGE,
    SCOPE_VIA_EMBED,
    SCOPE_VIA_REFRESH, /* counts as a redirect */
    SCOPE_VIA_FORM,
    SCOPE_VIA_GUESS,
    SCOPE_VIA_REDIRECT,
    SCOPE_VIA_SITEMAP, /* a URL listed in a sitemap: a page link of the seed */
    SCOPE_VIA_SEED,
};

enum {
    SCOPE_SEEDS_MAX = 1 << 20,
    SCOPE_EMBEDS_MAX = 5,
    SCOPE_REDIRECTS_MAX = 15,
    SCOPE_DEPTH_MAX = 510, /* largest limit of pages that can be honoured */
    SCOPE_DEPTH_ANY = UINT16_MAX,
};

struct scope_config {
    enum scope_type type;
    uint16_t depth_max; /* page links from a seed; SCOPE_DEPTH_ANY or above SCOPE_DEPTH_MAX: any */
    const struct pattern_list *include; /* borrowed; NULL or empty: all */
    const struct pattern_list *exclude; /* borrowed; NULL: none */
    bool follows_forms;
    bool follows_guesses; /* other than lazy images and the like */
    uint64_t hash_seed;   /* random: which hosts share a slot shall not be known outside */
};

struct scope {
    struct scope_config config;
    struct map places; /* u64 fingerprint of a host, of a domain, or of a host and a directory -> nothing */
};

enum scope_reason {
    SCOPE_IN_SEED,
    SCOPE_IN_PAGE,     /* within the job's scope */
    SCOPE_IN_EMBED,    /* part of a page in scope */
    SCOPE_IN_REDIRECT, /* of a seed: the owner calls scope_add_seed() */
    SCOPE_OUT_NOT_WEB, /* neither http nor https */
    SCOPE_OUT_PAGE,    /* not the page itself */
    SCOPE_OUT_PREFIX,
    SCOPE_OUT_HOST,
    SCOPE_OUT_DOMAIN,
    SCOPE_OUT_DEPTH,
    SCOPE_OUT_EMBEDS,    /* frames in frames in frames */
    SCOPE_OUT_REDIRECTS, /* too long a chain */
    SCOPE_OUT_EXCLUDED,
    SCOPE_OUT_NOT_INCLUDED,
    SCOPE_OUT_FORM,
    SCOPE_OUT_GUESS,
    SCOPE_OUT_RING, /* not what the charter of the ring lets be archived; said by campaign.h, not by scope.h
                     */
};
enum { SCOPE_REASONS_COUNT = SCOPE_OUT_RING + 1 };

struct scope_verdict {
    bool is_in;
    enum scope_reason reason;
    uint16_t depth;    /* of the URL, to be kept with it; 0 if it is out */
    int pattern_index; /* of the exclude pattern that matched, or PATTERN_NONE */
};

/* Patterns stay the caller's. */
void scope_init(struct scope *scope, const struct scope_config *config);
void scope_done(struct scope *scope);

/* A web URL. Known seeds may be added again. ERR_LIMIT, ERR_MEMORY. */
enum err scope_add_seed(struct scope *scope, const struct url *url) MUST_CHECK;

/* from_depth: of the document (or response) in which the URL was found; 0 for seeds. True: it is in. */
bool scope_check(const struct scope *scope, const struct url *url, enum scope_via via, uint16_t from_depth,
                 struct scope_verdict *ret_verdict);

/* Append a sentence without its stop: "it is on another host than the seeds". */
void scope_explain(const struct scope *scope, const struct scope_verdict *verdict, struct buf *out);

/* How the number is put together. */
static inline unsigned scope_depth_pages(uint16_t depth) {
    return depth >> 7;
}

static inline unsigned scope_depth_embeds(uint16_t depth) {
    return depth >> 4 & 7;
}

static inline unsigned scope_depth_redirects(uint16_t depth) {
    return depth & 15;
}

/* A seed, or what a seed redirected to. */
static inline bool scope_depth_is_seed(uint16_t depth) {
    return depth <= SCOPE_REDIRECTS_MAX;
}

#endif
