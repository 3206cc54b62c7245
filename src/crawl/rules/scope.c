#include "crawl/rules/scope.h"

#include "base/json.h"
#include "web/html/links.h"
#include "web/url/domain.h"

_Static_assert((int)SCOPE_VIA_PAGE == LINK_PAGE && (int)SCOPE_VIA_EMBED == LINK_EMBED &&
                   (int)SCOPE_VIA_REFRESH == LINK_REFRESH && (int)SCOPE_VIA_FORM == LINK_FORM &&
                   (int)SCOPE_VIA_GUESS == LINK_GUESS,
               "a link_kind is a scope_via");

/* Each kind of place hashes apart from the others. */
enum place { PLACE_HOST, PLACE_DOMAIN, PLACE_DIRECTORY };

static uint64_t place_seed(const struct scope *scope, enum place place) {
    return scope->config.hash_seed + (uint64_t)place * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- Places ---- */

static struct bytes without_www(struct bytes host) {
    bool has_www = host.size > 4 && bytes_starts_with(host, BYTES("www."));
    return has_www ? bytes_skip(host, 4) : host;
}

/* The same hash for http and https; any other port is a host of its own. */
static uint64_t hash_host(const struct scope *scope, const struct url *url) {
    uint64_t hash = map_hash(without_www(url_host(url)), place_seed(scope, PLACE_HOST));
    return url->port == URL_PORT_NONE ? hash
                                      : hash ^ ((uint64_t)url->port + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t hash_domain(const struct scope *scope, struct bytes domain) {
    return map_hash(domain, place_seed(scope, PLACE_DOMAIN));
}

/* directory: from the first '/' up to and with its last. */
static uint64_t hash_directory(const struct scope *scope, uint64_t host, struct bytes directory) {
    return map_hash(directory, place_seed(scope, PLACE_DIRECTORY) ^ host);
}

static bool has_place(const struct scope *scope, uint64_t hash) {
    return map_get(&scope->places, bytes_of(&hash, sizeof hash)) != NULL;
}

static enum err add_place(struct scope *scope, uint64_t hash) {
    if (has_place(scope, hash)) {
        return ERR_OK;
    }
    size_t count = scope->places.count + 1;
    size_t wanted = count < 16 ? 16 : count;
    enum err err =
        count <= scope->places.entries_max ? ERR_OK : map_reserve(&scope->places, wanted + wanted / 2);
    if (err != ERR_OK) {
        return err;
    }
    *(uint8_t *)map_put(&scope->places, bytes_of(&hash, sizeof hash)) = 1;
    return ERR_OK;
}

static struct bytes directory_of(struct bytes path) {
    size_t end = path.size;
    while (end > 0 && path.data[end - 1] != '/') {
        end--;
    }
    return bytes_slice(path, 0, end);
}

void scope_init(struct scope *scope, const struct scope_config *config) {
    *scope = (struct scope){.config = *config};
    map_init(&scope->places, sizeof(uint64_t), 1, (size_t)2 * SCOPE_SEEDS_MAX, config->hash_seed);
}

void scope_done(struct scope *scope) {
    map_done(&scope->places);
}

enum err scope_add_seed(struct scope *scope, const struct url *url) {
    ASSERT(url_is_web(url));
    uint64_t host = hash_host(scope, url);
    enum err err = ERR_OK;
    if (scope->config.type == SCOPE_HOST || scope->config.type == SCOPE_DOMAIN) {
        err = add_place(scope, host);
    }
    struct bytes domain = domain_registrable(url);
    if (err == ERR_OK && scope->config.type == SCOPE_DOMAIN && domain.size > 0) {
        err = add_place(scope, hash_domain(scope, domain));
    }
    if (err == ERR_OK && scope->config.type == SCOPE_PREFIX) {
        err = add_place(scope, hash_directory(scope, host, directory_of(url_path(url))));
    }
    return err;
}

/* One lookup for each directory above the URL. */
static bool is_below_seed(const struct scope *scope, const struct url *url) {
    uint64_t host = hash_host(scope, url);
    struct bytes path = url_path(url);
    for (size_t i = 0; i < path.size; i++) {
        if (path.data[i] == '/' &&
            has_place(scope, hash_directory(scope, host, bytes_slice(path, 0, i + 1)))) {
            return true;
        }
    }
    return false;
}

/*
 * The public suffix list is asked only if a seed's domain ends the host: it takes as long as ten lookups,
 * and most links lead to a seed's own host or far away.
 */
static bool is_in_domain(const struct scope *scope, const struct url *url) {
    if (has_place(scope, hash_host(scope, url))) {
        return true;
    }
    struct bytes host = url_host(url);
    if (url->host_type != URL_HOST_DOMAIN) {
        return false;
    }
    for (size_t i = 0; i < host.size; i++) {
        bool is_label = i == 0 || host.data[i - 1] == '.';
        if (is_label && has_place(scope, hash_domain(scope, bytes_skip(host, i)))) {
            return bytes_equal(domain_registrable(url), bytes_skip(host, i));
        }
    }
    return false;
}

/* SCOPE_IN_PAGE, or why it is not. */
static enum scope_reason check_place(const struct scope *scope, const struct url *url) {
    switch (scope->config.type) {
    case SCOPE_PAGE:
        return SCOPE_OUT_PAGE;
    case SCOPE_PREFIX:
        return is_below_seed(scope, url) ? SCOPE_IN_PAGE : SCOPE_OUT_PREFIX;
    case SCOPE_HOST:
        return has_place(scope, hash_host(scope, url)) ? SCOPE_IN_PAGE : SCOPE_OUT_HOST;
    case SCOPE_DOMAIN:
        return is_in_domain(scope, url) ? SCOPE_IN_PAGE : SCOPE_OUT_DOMAIN;
    case SCOPE_ANY:
        return SCOPE_IN_PAGE;
    }
    assert_failed("every scope_type is checked", __FILE__, __LINE__);
}

/* ---- Distance ---- */

enum { PAGES_MAX = 511 };

static uint16_t join_depth(unsigned pages, unsigned embeds, unsigned redirects) {
    ASSERT(embeds <= 7 && redirects <= SCOPE_REDIRECTS_MAX);
    pages = pages < PAGES_MAX ? pages : PAGES_MAX;
    return (uint16_t)(pages << 7 | embeds << 4 | redirects);
}

static bool is_depth_limited(const struct scope *scope) {
    return scope->config.depth_max <= SCOPE_DEPTH_MAX;
}

/* A link to a page: one further from the seeds. */
static enum scope_reason step_page(const struct scope *scope, uint16_t from, uint16_t *ret_depth) {
    unsigned pages = scope_depth_pages(from) + 1;
    if (is_depth_limited(scope) && pages > scope->config.depth_max) {
        return SCOPE_OUT_DEPTH;
    }
    *ret_depth = join_depth(pages, 0, 0);
    return SCOPE_IN_PAGE;
}

static enum scope_reason step_embed(uint16_t from, uint16_t *ret_depth) {
    unsigned embeds = scope_depth_embeds(from) + 1;
    if (embeds > SCOPE_EMBEDS_MAX) {
        return SCOPE_OUT_EMBEDS;
    }
    *ret_depth = join_depth(scope_depth_pages(from), embeds, 0);
    return SCOPE_IN_EMBED;
}

static enum scope_reason step_redirect(uint16_t from, uint16_t *ret_depth) {
    unsigned redirects = scope_depth_redirects(from) + 1;
    if (redirects > SCOPE_REDIRECTS_MAX) {
        return SCOPE_OUT_REDIRECTS;
    }
    *ret_depth = join_depth(scope_depth_pages(from), scope_depth_embeds(from), redirects);
    return scope_depth_embeds(from) > 0 ? SCOPE_IN_EMBED
           : scope_depth_is_seed(from)  ? SCOPE_IN_REDIRECT
                                        : SCOPE_IN_PAGE;
}

/* ---- Links ---- */

/* Does the name end as those of images, styles, scripts, fonts and media do? */
static bool is_object_name(struct bytes path) {
    static const char *const endings[] = {
        ".jpg",  ".jpeg", ".png",   ".gif",  ".webp", ".avif", ".svg",  ".ico",  ".bmp", ".css",
        ".js",   ".mjs",  ".mp4",   ".webm", ".m4v",  ".mov",  ".mp3",  ".ogg",  ".m4a", ".wav",
        ".woff", ".ttf",  ".woff2", ".otf",  ".m3u8", ".ts",   ".json", ".wasm", ".vtt",
    };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct bytes ending = bytes_of_string(endings[i]);
        if (path.size > ending.size && bytes_ends_with_ignore_case(path, ending)) {
            return true;
        }
    }
    return false;
}

/*
 * What may be a URL is an object of the page if its name looks like one: mostly an image that a script
 * loads later. Anything else is a page, and only followed on request.
 */
static enum scope_reason step_guess(const struct scope *scope, const struct url *url, uint16_t from,
                                    uint16_t *ret_depth) {
    bool is_part =
        scope->config.follows_guesses && scope->config.type == SCOPE_PAGE; /* who asks for one page
                                                                             and guesses wants them */
    if (is_part || is_object_name(url_path(url))) {
        return step_embed(from, ret_depth);
    }
    return scope->config.follows_guesses ? step_page(scope, from, ret_depth) : SCOPE_OUT_GUESS;
}

/* How far it is, and as what it would be in. */
static enum scope_reason scope_step(const struct scope *scope, const struct url *url, enum scope_via via,
                                    uint16_t from, uint16_t *ret_depth) {
    switch (via) {
    case SCOPE_VIA_SEED:
        *ret_depth = 0;
        return SCOPE_IN_SEED;
    case SCOPE_VIA_EMBED:
        return step_embed(from, ret_depth);
    case SCOPE_VIA_REDIRECT:
    case SCOPE_VIA_REFRESH:
        return step_redirect(from, ret_depth);
    case SCOPE_VIA_GUESS:
        return step_guess(scope, url, from, ret_depth);
    case SCOPE_VIA_FORM:
        return scope->config.follows_forms ? step_page(scope, from, ret_depth) : SCOPE_OUT_FORM;
    case SCOPE_VIA_SITEMAP:
        return step_page(scope, 0, ret_depth);
    case SCOPE_VIA_PAGE:
        return step_page(scope, from, ret_depth);
    }
    assert_failed("every scope_via is checked", __FILE__, __LINE__);
}

static bool is_excluded(const struct scope *scope, struct bytes href, int *ret_index) {
    const struct pattern_list *exclude = scope->config.exclude;
    *ret_index = exclude == NULL ? PATTERN_NONE : pattern_list_find(exclude, href);
    return *ret_index != PATTERN_NONE;
}

static bool is_included(const struct scope *scope, struct bytes href) {
    const struct pattern_list *include = scope->config.include;
    return include == NULL || include->count == 0 || pattern_list_find(include, href) != PATTERN_NONE;
}

/* Place first, since it is quicker than patterns and says no to most. */
static enum scope_reason check(const struct scope *scope, const struct url *url, enum scope_via via,
                               uint16_t from, struct scope_verdict *verdict) {
    if (!url_is_web(url)) {
        return SCOPE_OUT_NOT_WEB;
    }
    enum scope_reason reason = scope_step(scope, url, via, from, &verdict->depth);
    if (reason == SCOPE_IN_PAGE) {
        reason = check_place(scope, url);
    }
    if (reason > SCOPE_IN_REDIRECT) {
        return reason;
    }
    struct bytes href = url_href_without_fragment(url);
    if (is_excluded(scope, href, &verdict->pattern_index)) {
        return SCOPE_OUT_EXCLUDED;
    }
    return reason == SCOPE_IN_PAGE && !is_included(scope, href) ? SCOPE_OUT_NOT_INCLUDED : reason;
}

bool scope_check(const struct scope *scope, const struct url *url, enum scope_via via, uint16_t from_depth,
                 struct scope_verdict *ret_verdict) {
    struct scope_verdict verdict = {.depth = 0, .pattern_index = PATTERN_NONE};
    verdict.reason = check(scope, url, via, from_depth, &verdict);
    verdict.is_in = verdict.reason <= SCOPE_IN_REDIRECT;
    verdict.depth = verdict.is_in ? verdict.depth : 0;
    *ret_verdict = verdict;
    return verdict.is_in;
}

/* ---- Words ---- */

static const char *const reasons[SCOPE_REASONS_COUNT] = {
    [SCOPE_IN_SEED] = "it is a seed",
    [SCOPE_IN_PAGE] = "it is within the scope",
    [SCOPE_IN_EMBED] = "it is part of a page within the scope",
    [SCOPE_IN_REDIRECT] = "a seed redirects to it",
    [SCOPE_OUT_NOT_WEB] = "it is neither http nor https",
    [SCOPE_OUT_PAGE] = "it is another page, and the scope is the page with its objects",
    [SCOPE_OUT_PREFIX] = "it is not below the directory of a seed",
    [SCOPE_OUT_HOST] = "it is on another host than the seeds",
    [SCOPE_OUT_DOMAIN] = "it is in another domain than the seeds",
    [SCOPE_OUT_DEPTH] = "it is more links away from the seeds than --depth allows",
    [SCOPE_OUT_EMBEDS] = "it is embedded in an object of an object of an object, and so on",
    [SCOPE_OUT_REDIRECTS] = "the chain of redirects to it is too long",
    [SCOPE_OUT_EXCLUDED] = "it matches the exclude pattern",
    [SCOPE_OUT_NOT_INCLUDED] = "it matches none of the include patterns",
    [SCOPE_OUT_FORM] = "it is the target of a form, and forms are not followed",
    [SCOPE_OUT_GUESS] = "it only looks like a URL, and guesses are not followed",
    [SCOPE_OUT_RING] = "it is outside of what the charter of the ring lets be archived",
};

void scope_explain(const struct scope *scope, const struct scope_verdict *verdict, struct buf *out) {
    buf_put_string(out, reasons[verdict->reason]);
    if (verdict->reason == SCOPE_OUT_EXCLUDED && verdict->pattern_index != PATTERN_NONE) {
        buf_put_byte(out, ' ');
        json_quote(out, pattern_list_text(scope->config.exclude, (size_t)verdict->pattern_index));
    }
}
