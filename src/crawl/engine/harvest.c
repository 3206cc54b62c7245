#include "crawl/engine/harvest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/sha256.h"
#include "crawl/engine/attest.h"
#include "crawl/engine/campaign.h"
#include "crawl/engine/parse_sitemap.h"
#include "crawl/engine/past.h"
#include "crawl/rules/trap.h"
#include "parse/parse_decode.h"
#include "parse/parse_links.h"
#include "parse/parse_seat.h"
#include "store/instance/merge.h"
#include "web/type/mime_type.h"
#include "web/url/url_href.h"

enum {
    LINKS_FIRST_MAX = 64,
    PAGES_MAX = 8,               /* whose links a parser is looking for, while the worker goes on */
    PAGES_HURRY = PAGES_MAX / 2, /* so many are worth waking it for */
    FOUND_KEPT_MAX = 1 << 20,    /* of memory, for the next page */
    FOUND_SIZE_MAX = 16 << 20,   /* a page of millions of links: the first ones are enough */
    OLD_LINKS_MAX = 1 << 17,     /* of the last version; a page that had more may send some again */
};

/* A response on its way through the worker. */
struct harvest_page {
    struct trip *trip;
    struct document document;
    struct document_sum sum;
    struct document_sum own_sum; /* of what arrived, whatever the document stands for */
    bool has_job;                /* its links are being looked for */
    struct parse_job job;
    struct buf params;
    struct buf found; /* what the parser has found */
    enum err err;     /* ERR_MEMORY: its links are not all known */
};

struct harvest {
    struct instance_session *session;
    const struct identity *identity; /* NULL: nothing is signed */
    struct buf attested;             /* what is signed */
    struct parse_seat seat;
    struct payload payload;
    struct sha256 sha256;
    struct past past;
    struct url base;
    struct url target;
    struct url bare;             /* harvest_without_userinfo() */
    struct trip *trip;           /* that is being read */
    struct harvest_page version; /* of a page, as the archive has it */
    struct map old_links;        /* fingerprints of those that the last version had */
    struct harvest_page pages[PAGES_MAX];
    size_t pages_first; /* of those that wait, the oldest */
    size_t pages_count;
};

/* What is done with a link that was found. */
typedef void harvest_take(struct harvest *harvest, const struct url *url, enum scope_via via);

static enum err harvest_put_found(void *context, struct bytes piece) {
    struct harvest_page *page = context;
    return buf_put(&page->found, piece);
}

struct harvest *harvest_new(const struct harvest_config *config) {
    struct harvest *harvest = calloc(1, sizeof *harvest);
    if (harvest == NULL) {
        return NULL;
    }
    harvest->session = instance_session_new(config->instance);
    harvest->identity = config->identity;
    buf_init(&harvest->attested, ATTEST_MESSAGE_SIZE_MAX);
    parse_seat_init(&harvest->seat, config->parsers, PARSE_LATER);
    harvest->seat.favourite = config->number;
    for (size_t i = 0; i < PAGES_MAX; i++) {
        buf_init(&harvest->pages[i].params, PARSE_PARAMS_SIZE_MAX);
        buf_init(&harvest->pages[i].found, FOUND_SIZE_MAX);
    }
    buf_init(&harvest->version.params, PARSE_PARAMS_SIZE_MAX);
    buf_init(&harvest->version.found, FOUND_SIZE_MAX);
    map_init(&harvest->old_links, sizeof(uint64_t), 0, OLD_LINKS_MAX, 0);
    url_init(&harvest->base);
    url_init(&harvest->target);
    url_init(&harvest->bare);
    bool is_good = past_init(&harvest->past, harvest->session) == ERR_OK;
    is_good = payload_init(&harvest->payload) == ERR_OK && is_good;
    is_good = sha256_init(&harvest->sha256) == ERR_OK && is_good;
    if (!is_good || harvest->session == NULL) {
        harvest_free(harvest);
        return NULL;
    }
    return harvest;
}

void harvest_free(struct harvest *harvest) {
    instance_session_free(harvest->session);
    parse_seat_done(&harvest->seat);
    for (size_t i = 0; i < PAGES_MAX; i++) {
        buf_done(&harvest->pages[i].params);
        buf_done(&harvest->pages[i].found);
    }
    buf_done(&harvest->version.params);
    buf_done(&harvest->version.found);
    map_done(&harvest->old_links);
    past_done(&harvest->past);
    payload_done(&harvest->payload);
    sha256_done(&harvest->sha256);
    url_done(&harvest->base);
    url_done(&harvest->target);
    url_done(&harvest->bare);
    buf_done(&harvest->attested);
    free(harvest);
}

/* There is always one: harvest_take_ready(). */
static struct harvest_page *harvest_free_page(struct harvest *harvest) {
    ASSERT(harvest->pages_count < PAGES_MAX);
    return &harvest->pages[(harvest->pages_first + harvest->pages_count) % PAGES_MAX];
}

/* ---- links ---- */

static struct frontier_link *harvest_new_link(struct trip *trip) {
    if (trip->links_count == trip->links_max) {
        size_t max = trip->links_max == 0 ? LINKS_FIRST_MAX : 2 * trip->links_max;
        struct frontier_link *links = arena_take_array(&trip->arena, max, sizeof *links);
        if (links == NULL) {
            return NULL; /* a page of millions of links: the first ones are enough */
        }
        if (trip->links_count > 0) {
            memcpy(links, trip->links, trip->links_count * sizeof *links);
        }
        trip->links = links;
        trip->links_max = max;
    }
    return &trip->links[trip->links_count];
}

static enum frontier_priority harvest_priority_of(const struct trip *trip, enum scope_via via) {
    switch (via) {
    case SCOPE_VIA_EMBED:
        return FRONTIER_EMBED;
    case SCOPE_VIA_GUESS:
        return FRONTIER_GUESS;
    case SCOPE_VIA_REDIRECT:
    case SCOPE_VIA_REFRESH:
        return trip->url->priority; /* it stands for the URL that was asked for */
    case SCOPE_VIA_SEED:
        return FRONTIER_SEED;
    default:
        return FRONTIER_PAGE;
    }
}

/* Links, redirects and sitemaps may name users and passwords, or inherit them from a <base>. NULL: no memory.
 */
static const struct url *harvest_without_userinfo(struct harvest *harvest, const struct url *url) {
    if (!url_has_userinfo(url)) {
        return url;
    }
    if (url_parse(&harvest->bare, url_href(url), NULL, NULL) != ERR_OK) {
        return NULL;
    }
    url_remove_userinfo(&harvest->bare);
    return &harvest->bare;
}

/* Is it the job's? Then it goes with the trip to the frontier, without user, password and fragment. */
static void harvest_offer(struct harvest *harvest, const struct url *url, enum scope_via via) {
    struct trip *trip = harvest->trip;
    struct campaign *campaign = trip->campaign;
    struct scope_verdict verdict;
    trip->links_found_count++;
    url = harvest_without_userinfo(harvest, url);
    if (url == NULL || !campaign_check(campaign, url, via, trip->url->depth, &verdict)) {
        trip->links_out_count++;
        return;
    }
    struct bytes href = url_href_without_fragment(url);
    struct frontier_link *link = harvest_new_link(trip);
    struct bytes copy = link != NULL ? arena_copy(&trip->arena, href) : bytes_of(NULL, 0);
    if (copy.data == NULL || href.size > FRONTIER_URL_SIZE_MAX) {
        return;
    }
    *link = (struct frontier_link){
        .url = copy,
        .host = bytes_slice(copy, url->host.from, url->path.from),
        .depth = verdict.depth,
        .priority = harvest_priority_of(trip, via),
        .is_outgoing = campaign->route != NULL,
    };
    trip->links_count++;
}

/* What a parser says are links. They are what any page might name: the scope decides. */
static void harvest_take_links(struct harvest *harvest, struct bytes found, harvest_take *take) {
    enum link_kind kind;
    struct bytes href;
    while (parse_links_read(&found, &kind, &href)) {
        if (url_parse_href(&harvest->target, href) == ERR_OK && url_is_web(&harvest->target)) {
            take(harvest, &harvest->target, (enum scope_via)kind);
        }
    }
}

static void harvest_take_entry(struct harvest *harvest, struct bytes text, bool is_sitemap,
                               harvest_take *take) {
    struct url *target = &harvest->target;
    if (url_parse(target, text, &harvest->base, NULL) != ERR_OK || !url_is_web(target)) {
        return; /* whatever it lists, the scope decides */
    }
    size_t count = harvest->trip->links_count;
    take(harvest, target, is_sitemap ? SCOPE_VIA_EMBED : SCOPE_VIA_SITEMAP);
    if (is_sitemap && harvest->trip->links_count > count) {
        struct frontier_link *link = &harvest->trip->links[count];
        campaign_name_sitemap(harvest->trip->campaign, link->url);
        if (link->is_outgoing) {
            link->priority = FRONTIER_SEED; /* tells the others what it is: campaign_take_link() */
        }
    }
}

static void harvest_take_entries(struct harvest *harvest, struct bytes found, harvest_take *take) {
    struct bytes text;
    bool is_sitemap;
    if (url_parse(&harvest->base, buf_bytes(&harvest->trip->address), NULL, NULL) != ERR_OK) {
        return;
    }
    while (parse_sitemap_read(&found, &text, &is_sitemap)) {
        harvest_take_entry(harvest, text, is_sitemap, take);
    }
}

/* Where a 3xx leads. A seed may lead out of the scope, which then grows: the loop does that. */
static void harvest_follow_redirect(struct harvest *harvest, const struct fields *fields,
                                    harvest_take *take) {
    struct trip *trip = harvest->trip;
    struct bytes location = fields_get(fields, BYTES("Location"));
    struct url *target = &harvest->target;
    if (location.size == 0 || url_parse(target, location, &harvest->base, NULL) != ERR_OK ||
        !url_is_web(target)) {
        return;
    }
    size_t count = trip->links_count;
    take(harvest, target, SCOPE_VIA_REDIRECT);
    if (trip->links_count > count && scope_depth_is_seed(trip->url->depth)) {
        trip->redirect = trip->links[count].url;
    }
}

/* What a parser is to do with a document, if anything. */
static enum err harvest_make_params(struct harvest *harvest, struct harvest_page *page, struct bytes head,
                                    const struct fields *fields) {
    struct trip *trip = page->trip;
    const struct job *job = &trip->campaign->job;
    char joined[HTTP_TYPE_SIZE_MAX];
    struct bytes content_type = http_content_type(fields, joined);
    if (!job->skips_sitemaps && campaign_is_sitemap(trip->campaign, buf_bytes(&trip->address))) {
        struct parse_decode_params params = {
            .head = head, .has_chunks = true, .size_max = HARVEST_DECODED_SIZE_MAX};
        page->job.kind = &parse_sitemap;
        return parse_decode_params(&page->params, &params);
    }
    if (links_format_of(content_type) == LINKS_NONE) {
        return ERR_NOT_FOUND;
    }
    struct parse_links_params params = {
        .head = head,
        .has_chunks = true,
        .content_type = content_type,
        .base = url_href(&harvest->base),
        .fields = fields,
        .options = {.forms = job->follows_forms, .guesses = job->follows_guesses},
        .size_max = HARVEST_DECODED_SIZE_MAX,
    };
    page->job.kind = &parse_links;
    return parse_links_params(&page->params, &params);
}

/* Begin to look for the links of a document, which is encoded as head says. */
static void harvest_begin_links(struct harvest *harvest, struct harvest_page *page, struct bytes head,
                                const struct fields *fields, struct bytes document) {
    enum err err = harvest_make_params(harvest, page, head, fields);
    if (err != ERR_OK) {
        page->err = err == ERR_MEMORY ? err : ERR_OK;
        return;
    }
    buf_clear(&page->found);
    page->job.params = buf_bytes(&page->params);
    page->job.document = document;
    page->job.out_size_max = FOUND_SIZE_MAX;
    page->job.put = harvest_put_found;
    page->job.context = page;
    page->has_job = true;
    parse_begin(&harvest->seat, &page->job);
}

/* What was found before a limit or an error is good. If nobody could look, the document has no links. */
static void harvest_end_links(struct harvest *harvest, struct harvest_page *page, harvest_take *take) {
    harvest->trip = page->trip;
    enum err err = parse_end(&harvest->seat, &page->job);
    /* A parser of another process may say what it likes: it holds nobody up with it. */
    bool is_ours = harvest->seat.parsers == NULL || page->found.err == ERR_MEMORY;
    page->err = err == ERR_MEMORY && is_ours ? err : page->err;
    struct bytes found = parse_is_lost(err) ? bytes_of(NULL, 0) : buf_bytes(&page->found);
    if (page->job.kind == &parse_sitemap) {
        harvest_take_entries(harvest, found, take);
    } else {
        harvest_take_links(harvest, found, take);
    }
    page->has_job = false;
    if (page->found.capacity > FOUND_KEPT_MAX) {
        buf_done(&page->found);
    }
}

/* ---- what it is ---- */

/* Hash the payload; the head stays parsed in harvest->payload. */
static void harvest_sum_up(struct harvest *harvest, struct bytes head, struct bytes body,
                           struct document_sum *ret_sum) {
    struct bytes pieces[2] = {head, body};
    struct bytes part;
    uint64_t size = 0;
    sha256_start(&harvest->sha256);
    payload_start(&harvest->payload, true);
    for (size_t i = 0; i < 2; i++) {
        while (payload_next(&harvest->payload, &pieces[i], &part)) {
            sha256_update(&harvest->sha256, part);
            size += part.size;
        }
    }
    if (payload_finish(&harvest->payload, &part)) {
        sha256_update(&harvest->sha256, part);
        size += part.size;
    }
    sha256_finish(&harvest->sha256, ret_sum->digest);
    ret_sum->size = size;
}

/* A validator for the next visit, in the trip's memory; one that is too long is not kept. */
static struct bytes harvest_keep_validator(struct trip *trip, const struct fields *fields,
                                           struct bytes name) {
    struct bytes value = fields_get(fields, name);
    if (value.size == 0 || value.size > FRONTIER_VALIDATOR_SIZE_MAX) {
        return bytes_of(NULL, 0);
    }
    return arena_copy(&trip->arena, value);
}

/* What the frontier is to know of an answer whose head is parsed. */
static void harvest_describe(struct harvest *harvest, int64_t time_us, uint16_t status,
                             const struct document_sum *sum) {
    struct trip *trip = harvest->trip;
    const struct fields *fields = &harvest->payload.head.fields;
    const struct frontier_url *url = trip->url;
    struct mime_type type;
    (void)http_type(fields, &type);
    snprintf(trip->mime, sizeof trip->mime, "%.*s", (int)sizeof trip->mime - 1, type.essence);
    trip->outcome = (struct frontier_outcome){
        .state = FRONTIER_DONE,
        .time_us = time_us,
        .status = status,
        .etag = harvest_keep_validator(trip, fields, BYTES("ETag")),
        .last_modified = harvest_keep_validator(trip, fields, BYTES("Last-Modified")),
        .has_digest = true,
        .is_changed =
            !url->history.has_digest || memcmp(url->history.digest, sum->digest, KEY_DIGEST_SIZE) != 0,
    };
    memcpy(trip->outcome.digest, sum->digest, KEY_DIGEST_SIZE);
}

/*
 * 304: the document of the last visit is still the right one. Where it has been removed from the archive
 * meanwhile, the answer is stored for what it is and the next visit asks without conditions.
 */
static void harvest_describe_not_modified(struct harvest *harvest, struct document *document,
                                          struct document_sum *sum) {
    struct trip *trip = harvest->trip;
    const struct frontier_url *url = trip->url;
    struct key key;
    struct block block;
    if (instance_find_digest(harvest->session, url->history.digest, 0, &key, &block, NULL) != ERR_OK) {
        trip->outcome.etag = trip->outcome.last_modified = bytes_of(NULL, 0);
        trip->outcome.has_digest = false;
        return;
    }
    memcpy(sum->digest, url->history.digest, KEY_DIGEST_SIZE);
    sum->size = block.size;
    document->is_not_modified = document->is_body_left_out = true;
    /* The request was that of the page, with the validators that the page's capture has: it says nothing. */
    document->request = bytes_of(NULL, 0);
    trip->is_not_modified = true;
    trip->outcome.is_changed = false;
    trip->outcome.status = url->history.last_status;
    if (trip->outcome.etag.size == 0) {
        trip->outcome.etag = url->history.etag;
    }
    if (trip->outcome.last_modified.size == 0) {
        trip->outcome.last_modified = url->history.last_modified;
    }
    memcpy(trip->outcome.digest, url->history.digest, KEY_DIGEST_SIZE);
}

static struct bytes harvest_truncation(enum fetch_end end) {
    static const char *const words[] = {
        [FETCH_WHOLE] = "",
        [FETCH_TOO_LONG] = "length",
        [FETCH_TOO_SLOW] = "time",
        [FETCH_DISCONNECTED] = "disconnect",
    };
    return bytes_of_string(words[end]);
}

static struct bytes harvest_tls_outcome(const struct fetch_result *result) {
    const char *const words[] = {
        [FETCH_TLS_NONE] = "", [FETCH_TLS_GOOD] = "verified", [FETCH_TLS_BAD] = result->tls_reason};
    return bytes_of_string(words[result->tls]);
}

/* ---- what the archive has ---- */

/* Nothing is stored: the trip is the loop's again. */
static void harvest_finish(struct trip *trip, enum err err) {
    trip->err = err;
    trip->done(trip);
}

static bool harvest_find_capture(struct harvest *harvest, struct trip *trip, int64_t since_us,
                                 struct capture *ret_capture, struct merge **ret_merge) {
    struct bytes url = trip->url->url;
    if (past_walk(&harvest->past, url, since_us, INT64_MAX, ret_merge) != ERR_OK) {
        return false;
    }
    bool wants_own = harvest->identity != NULL && campaign_wants_own(trip->campaign);
    while (merge_next(*ret_merge, ret_capture, NULL) == ERR_OK) {
        if (bytes_equal(ret_capture->url, url) &&
            (!wants_own || past_is_signed(&harvest->past, ret_capture, harvest->identity->key))) {
            return true;
        }
    }
    merge_close(*ret_merge);
    return false;
}

/* The links of a version that the archive has. */
static void harvest_read_version(struct harvest *harvest, struct trip *trip,
                                 const struct past_version *version, harvest_take *take) {
    if (url_parse(&harvest->base, buf_bytes(&trip->address), NULL, NULL) != ERR_OK) {
        return;
    }
    if (past_is_redirect(version->status)) {
        harvest_follow_redirect(harvest, version->fields, take);
        return;
    }
    /* Its chunks are undone already, its content encoding is not. */
    struct bytes encoding = fields_get(version->fields, BYTES("Content-Encoding"));
    struct harvest_page *page = &harvest->version;
    struct buf bare;
    buf_init(&bare, FETCH_HEAD_SIZE_MAX);
    buf_put_format(&bare, "HTTP/1.1 200 OK\r\nContent-Encoding: %.*s\r\n\r\n", BYTES_ARG(encoding));
    page->trip = trip;
    harvest_begin_links(harvest, page, buf_bytes(&bare), version->fields, version->document);
    if (page->has_job) {
        harvest_end_links(harvest, page, take);
    }
    buf_done(&bare);
}

/* ---- which links are new ---- */

/* Without memory for it, it counts as new. */
static void harvest_note_old_link(struct harvest *harvest, const struct url *url, enum scope_via via) {
    (void)via;
    url = harvest_without_userinfo(harvest, url);
    if (url != NULL && map_reserve(&harvest->old_links, harvest->old_links.count + 1) == ERR_OK) {
        uint64_t fingerprint = map_hash(url_href_without_fragment(url), harvest->trip->campaign->hash_seed);
        map_put(&harvest->old_links, bytes_of(&fingerprint, sizeof fingerprint));
    }
}

/*
 * Other nodes know the links that the last version had: its node has sent them, whichever that was. Those are
 * not sent again; the menu of a site is on every page of it (thesis, 4.7.3).
 */
static void harvest_keep_new_links(struct harvest *harvest, struct trip *trip, int64_t time_us) {
    struct past_version version;
    uint64_t seed = trip->campaign->hash_seed;
    if (trip->links_count == 0 || trip->campaign->route == NULL ||
        past_read_version(&harvest->past, trip->url->url, time_us, &version) != ERR_OK) {
        return;
    }
    map_clear(&harvest->old_links);
    harvest_read_version(harvest, trip, &version, harvest_note_old_link);
    for (size_t i = 0; i < trip->links_count; i++) {
        struct frontier_link *link = &trip->links[i];
        uint64_t fingerprint = map_hash(link->url, seed);
        bool is_old = map_get(&harvest->old_links, bytes_of(&fingerprint, sizeof fingerprint)) != NULL;
        link->is_outgoing = link->is_outgoing && !is_old;
    }
}

/*
 * A node that died may have taken links with it that it had not sent yet: those of a page that was new to it
 * in the visit before or in this one. Whoever takes the page over reads them once more. 0: there are none.
 */
static int64_t harvest_unread_since_us(const struct trip *trip, const struct past_visits *visits) {
    const struct campaign *campaign = trip->campaign;
    bool is_recent = visits->content_since_us >= campaign->visit_start_us - (int64_t)campaign->job.period_us;
    return is_recent ? visits->content_since_us : 0;
}

/*
 * A capture of this visit, as if it had been fetched just now. False if its bytes cannot be read: it is
 * fetched again then.
 */
static bool harvest_read_stored(struct harvest *harvest, struct trip *trip, const struct capture *capture) {
    struct past_visits visits;
    struct past_version version;
    struct frontier_history *history = &visits.history;
    int64_t time_us = capture->time_us;
    bool is_not_modified = capture->status == 304;
    if (past_learn(&harvest->past, trip->url->url, time_us + 1, &visits) != ERR_OK) {
        return false;
    }
    bool has_digest = trip->url->history.has_digest;
    trip->outcome = (struct frontier_outcome){
        .state = FRONTIER_DONE,
        .time_us = time_us,
        .status = history->last_status,
        .etag = arena_copy(&trip->arena, history->etag),
        .last_modified = arena_copy(&trip->arena, history->last_modified),
        .has_digest = true,
        .is_changed = !has_digest || memcmp(trip->url->history.digest, history->digest, KEY_DIGEST_SIZE) != 0,
    };
    memcpy(trip->outcome.digest, history->digest, KEY_DIGEST_SIZE);
    snprintf(trip->mime, sizeof trip->mime, "%.*s", (int)sizeof trip->mime - 1,
             (const char *)capture->mime.data);
    int64_t unread_since_us = harvest_unread_since_us(trip, &visits);
    bool has_links = history->last_status == 200 || past_is_redirect(history->last_status);
    if (has_links && (!is_not_modified || unread_since_us != 0)) {
        enum err err = past_read_version(&harvest->past, trip->url->url, time_us + 1, &version);
        if (err != ERR_OK) {
            return false;
        }
        harvest_read_version(harvest, trip, &version, harvest_offer);
        harvest_keep_new_links(harvest, trip, unread_since_us != 0 ? unread_since_us : version.time_us);
    }
    return true;
}

/*
 * What others have found out since this node was here: the next request asks by it. Not what another witness
 * found in this visit: whoever asks by its validators is no witness.
 */
static void harvest_learn(struct harvest *harvest, struct trip *trip) {
    struct past_visits visits;
    int64_t before_us = campaign_look_since_us(trip->campaign);
    if (past_learn(&harvest->past, trip->url->url, before_us, &visits) != ERR_OK ||
        visits.history.last_time_us <= trip->url->history.last_time_us) {
        return;
    }
    trip->learned = visits.history;
    trip->learned.etag = arena_copy(&trip->arena, visits.history.etag);
    trip->learned.last_modified = arena_copy(&trip->arena, visits.history.last_modified);
    trip->unread_since_us = harvest_unread_since_us(trip, &visits);
    trip->has_learned = true;
}

/* Nobody may know the links of what was not modified. */
static void harvest_read_unread(struct harvest *harvest, struct trip *trip) {
    struct past_version version;
    if (trip->url->unread_since_us != 0 && trip->is_not_modified &&
        past_read_version(&harvest->past, trip->url->url, INT64_MAX, &version) == ERR_OK) {
        harvest_read_version(harvest, trip, &version, harvest_offer);
        harvest_keep_new_links(harvest, trip, trip->url->unread_since_us);
    }
}

static void harvest_run_look(struct harvest *harvest, struct trip *trip) {
    struct capture capture;
    struct merge *merge;
    if (url_parse(&harvest->base, trip->url->url, NULL, NULL) == ERR_OK &&
        harvest_find_capture(harvest, trip, campaign_look_since_us(trip->campaign), &capture, &merge)) {
        trip->was_stored_before = harvest_read_stored(harvest, trip, &capture);
        merge_close(merge);
    }
    if (!trip->was_stored_before) {
        harvest_learn(harvest, trip);
    }
    harvest_finish(trip, ERR_OK);
}

/* ---- storing ---- */

static void harvest_on_stored(void *context, enum err err, const struct stored *stored) {
    struct trip *trip = context;
    trip->err = err;
    if (err == ERR_OK) {
        trip->stored = *stored;
    }
    trip->done(trip);
}

/* This node vouches for it. What cannot be signed is stored without; only responses are. */
static void harvest_sign(struct harvest *harvest, struct document *document) {
    if (harvest->identity != NULL && document->head.size > 0) {
        enum err err = attest_sign(harvest->identity, &harvest->sha256, &harvest->attested, document,
                                   harvest->trip->attest);
        (void)err;
    }
}

static void harvest_store(struct harvest *harvest, struct harvest_page *page) {
    struct trip *trip = page->trip;
    struct document *document = &page->document;
    harvest_sign(harvest, document);
    enum err err = instance_submit(harvest->session, document, STORE_REGULAR, INSTANCE_VOLUME_ANY,
                                   harvest_on_stored, trip, NULL);
    if (err == ERR_NOT_FOUND && document->is_not_modified) {
        /* It was removed between the two looks: the answer is stored for what it is. */
        document->is_not_modified = document->is_body_left_out = false;
        document->sum = &page->own_sum;
        harvest_sign(harvest, document);
        err = instance_submit(harvest->session, document, STORE_REGULAR, INSTANCE_VOLUME_ANY,
                              harvest_on_stored, trip, NULL);
    }
    if (err != ERR_OK) {
        harvest_finish(trip, err);
    }
}

/* Did a run that crashed store this URL, without the frontier knowing? Then this answer is not stored too. */
static bool harvest_was_stored_in_crash(struct harvest *harvest, struct trip *trip) {
    struct capture capture;
    struct merge *merge;
    int64_t since_us = trip->campaign->doubts_since_us;
    bool is_found = since_us != 0 && trip->kind == TRIP_PAGE &&
                    harvest_find_capture(harvest, trip, since_us, &capture, &merge);
    if (is_found) {
        merge_close(merge);
    }
    return is_found;
}

/* Learn what it is, and begin to look for its links. False: it is over. */
static bool harvest_begin(struct harvest *harvest, struct harvest_page *page, struct trip *trip) {
    struct fetch_result *result = trip->result;
    struct bytes address = buf_bytes(&trip->address);
    struct document *document = &page->document;
    enum err err = scratch_bytes(&result->body, &trip->body);
    if (err == ERR_OK) {
        err = url_parse(&harvest->base, address, NULL, NULL);
    }
    if (err != ERR_OK) {
        harvest_finish(trip, err);
        return false;
    }
    struct bytes head = buf_bytes(&result->head);
    harvest_sum_up(harvest, head, trip->body, &page->own_sum);
    page->trip = trip;
    page->err = ERR_OK;
    page->sum = page->own_sum;
    *document = (struct document){
        .url = address,
        .time_us = result->time_us,
        .head = head,
        .body = trip->body,
        .request = buf_bytes(&result->request),
        .ip_address = bytes_of_string(result->ip),
        .tls = harvest_tls_outcome(result),
        .truncated = harvest_truncation(result->end),
        .sum = &page->sum,
    };
    if (trip->kind != TRIP_ROBOTS) {
        const struct fields *fields = &harvest->payload.head.fields;
        harvest_describe(harvest, result->time_us, result->status, &page->sum);
        if (result->status == 304 && trip->url->history.has_digest) {
            harvest_describe_not_modified(harvest, document, &page->sum);
            harvest_read_unread(harvest, trip);
        } else if (past_is_redirect(result->status)) {
            harvest_follow_redirect(harvest, fields, harvest_offer);
        } else if (trip->outcome.is_changed) {
            harvest_begin_links(harvest, page, head, fields, trip->body);
        }
    }
    return true;
}

/* Its links are known, or will be in a moment: store it. */
static void harvest_complete(struct harvest *harvest, struct harvest_page *page) {
    struct trip *trip = page->trip;
    harvest->trip = trip;
    if (page->has_job) {
        harvest_end_links(harvest, page, harvest_offer);
    }
    if (page->err != ERR_OK) {
        harvest_finish(trip, page->err); /* it is read again: what links to nothing is not visited again */
        return;
    }
    if (harvest_was_stored_in_crash(harvest, trip)) {
        trip->was_stored_before = true;
        harvest_finish(trip, ERR_OK);
        return;
    }
    if (trip->kind == TRIP_PAGE && harvest->identity != NULL && campaign_wants_own(trip->campaign)) {
        page->document.visit =
            bytes_of_string(utc_format_rfc3339(trip->campaign->visit_start_us, trip->visit));
    }
    if (trip->kind == TRIP_PAGE && !trip->is_not_modified) {
        harvest_keep_new_links(harvest, trip, page->document.time_us);
    }
    harvest_store(harvest, page);
}

/* ---- several at a time ---- */

static struct harvest_page *harvest_oldest(struct harvest *harvest) {
    return &harvest->pages[harvest->pages_first % PAGES_MAX];
}

static void harvest_complete_oldest(struct harvest *harvest) {
    struct harvest_page *page = harvest_oldest(harvest);
    harvest_complete(harvest, page);
    harvest->pages_first++;
    harvest->pages_count--;
}

/* Take those that are ready; wait only if there is no room for another. */
static void harvest_take_ready(struct harvest *harvest) {
    while (harvest->pages_count > 0 &&
           (harvest->pages_count == PAGES_MAX || parse_is_ready(&harvest_oldest(harvest)->job))) {
        harvest_complete_oldest(harvest);
    }
}

/* With a parser at work beside it, the worker goes on with the next response: neither waits for the other. */
static void harvest_run_response(struct harvest *harvest, struct trip *trip) {
    struct harvest_page *page = harvest_free_page(harvest);
    if (!harvest_begin(harvest, page, trip)) {
        return;
    }
    if (!page->has_job || harvest->seat.parsers == NULL) {
        harvest_complete(harvest, page);
        return;
    }
    harvest->pages_count++;
    if (harvest->pages_count == PAGES_HURRY) {
        parse_hurry(&page->job);
    }
    harvest_take_ready(harvest);
}

void harvest_rest(struct harvest *harvest) {
    if (harvest->pages_count > 0) { /* the last is done when all are: one wait for all of them */
        size_t last = harvest->pages_first + harvest->pages_count - 1;
        parse_await(&harvest->pages[last % PAGES_MAX].job);
    }
    while (harvest->pages_count > 0) {
        harvest_complete_oldest(harvest);
    }
}

/* That there was no response: a resource under a URI of its own, so that nobody takes it for the page. */
static void harvest_run_failure(struct harvest *harvest, struct trip *trip) {
    struct harvest_page *page = harvest_free_page(harvest);
    page->trip = trip;
    page->own_sum = (struct document_sum){.size = trip->failure.size};
    page->document = (struct document){
        .url = buf_bytes(&trip->address),
        .time_us = trip->failed_us,
        .body = buf_bytes(&trip->failure),
        .content_type = BYTES("application/warc-fields"),
        .sum = &page->own_sum,
    };
    sha256_digest(&harvest->sha256, page->document.body, page->own_sum.digest);
    harvest_store(harvest, page);
}

/* ---- one trip ---- */

void harvest_run(struct harvest *harvest, struct trip *trip) {
    harvest->trip = trip;
    if (trip->kind == TRIP_LOOK) {
        harvest_run_look(harvest, trip);
    } else if (trip->kind == TRIP_FAILURE) {
        harvest_run_failure(harvest, trip);
    } else {
        harvest_run_response(harvest, trip);
    }
}
