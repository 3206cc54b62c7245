#include "crawl/rules/trap.h"

#include "base/map.h"
#include "base/utc.h"
#include "base/wire.h"
#include "crawl/rules/trap_shape.h"

/*
 * Where they come from: of real URLs, those above 2,000 bytes or 20 segments are rare and mostly broken; the
 * limits leave room. Calendars link two years ahead at most; a filter with a thousand combinations of five
 * arguments has shown what it has.
 */
const struct trap_config trap_defaults = {
    .url_size_max = 4096,
    .segments_max = 30,
    .repetitions_max = 2,
    .occurrences_max = 5,
    .depth_max = 500,
    .years_ahead_max = 2,
    .calendar_urls_max = 20000,
    .query_weight_max = 100000,
    .sessions_max = 3,
    .soft_404_directories = 10,
};

static const struct {
    const char *name;
    const char *text;
} reasons[TRAP_REASONS_COUNT] = {
    [TRAP_NONE] = {"none", "it is no trap"},
    [TRAP_URL_LENGTH] = {"url-length", "it is longer than URLs of pages are"},
    [TRAP_SEGMENTS] = {"segments", "its path has too many segments"},
    [TRAP_REPETITION] = {"repetition", "it repeats itself"},
    [TRAP_DEPTH] = {"depth", "it is too many links away from the seeds"},
    [TRAP_CALENDAR] = {"calendar", "it is a page of a calendar without end"},
    [TRAP_QUERY] = {"query", "there are too many combinations of arguments for its path"},
    [TRAP_SESSION] = {"session", "it is known already but for its session id"},
    [TRAP_SOFT_404] = {"soft-404", "it was found on a page that many addresses show alike"},
};

const char *trap_reason_name(enum trap_reason reason) {
    return reasons[reason].name;
}

const char *trap_reason_text(enum trap_reason reason) {
    return reasons[reason].text;
}

void trap_host_init(struct trap_host *host) {
    *host = (struct trap_host){.calendar_urls_count = 0};
}

/* 0 marks a free place, so nothing has that tag. The tables decide nothing but cuts: no secret seed needed.
 */
static uint32_t tag_of(uint64_t hash) {
    uint32_t tag = (uint32_t)(hash ^ hash >> 32);
    return tag != 0 ? tag : 1;
}

/* ---- Rules without a host ---- */

static bool is_far_ahead(const struct trap_config *config, const struct trap_date *date, int32_t this_year) {
    return date->is_date && date->year > this_year + (int32_t)config->years_ahead_max;
}

/* Weak signs do not count: there are sites about history. */
static bool is_long_ago(const struct trap_date *date) {
    return date->is_date && date->calendar == TRAP_CALENDAR_STRONG && date->year < 1970;
}

static enum trap_reason check_calendar(const struct trap_config *config, const struct trap_date *date,
                                       int64_t now_us) {
    struct utc now;
    utc_split(now_us, &now);
    bool is_cut = config->years_ahead_max > 0 && (is_far_ahead(config, date, now.year) || is_long_ago(date));
    return is_cut ? TRAP_CALENDAR : TRAP_NONE;
}

static enum trap_reason check_shape(const struct trap_config *config, const struct url *url, unsigned pages) {
    if (config->url_size_max > 0 && url_href(url).size > config->url_size_max) {
        return TRAP_URL_LENGTH;
    }
    if (config->depth_max > 0 && pages > config->depth_max) {
        return TRAP_DEPTH;
    }
    struct trap_segments segments;
    trap_segments_split(&segments, url_path(url));
    if (config->segments_max > 0 && segments.count > config->segments_max) {
        return TRAP_SEGMENTS;
    }
    if (config->repetitions_max > 0 && trap_segments_repeat(&segments, config->repetitions_max)) {
        return TRAP_REPETITION;
    }
    if (config->occurrences_max > 0 && (trap_segments_recur(&segments, config->occurrences_max) ||
                                        trap_arguments_recur(url_query(url), config->occurrences_max))) {
        return TRAP_REPETITION;
    }
    return TRAP_NONE;
}

enum trap_reason trap_check_url(const struct trap_config *config, const struct url *url, unsigned pages,
                                int64_t now_us) {
    enum trap_reason reason = check_shape(config, url, pages);
    if (reason != TRAP_NONE) {
        return reason;
    }
    struct trap_date date;
    trap_find_date(url, &date);
    return check_calendar(config, &date, now_us);
}

/* ---- Queries: space saving ---- */

/* How much one query of so many arguments counts. */
static uint32_t trap_query_weight(unsigned arguments_count) {
    static const uint32_t weights[] = {1, 1, 2, 10, 40, 100};
    unsigned last = sizeof weights / sizeof *weights - 1;
    return weights[arguments_count < last ? arguments_count : last];
}

/*
 * The path's entry; a new path takes over the lightest one and its weight, as an error that is never held
 * against it (Metwally, Agrawal, El Abbadi 2005: every path heavier than total/entries is in the table).
 */
static struct trap_path *path_entry(struct trap_host *host, uint32_t tag) {
    struct trap_path *lightest = &host->paths[0];
    for (size_t i = 0; i < TRAP_PATHS_MAX; i++) {
        if (host->paths[i].tag == tag) {
            return &host->paths[i];
        }
        if (host->paths[i].weight < lightest->weight) {
            lightest = &host->paths[i];
        }
    }
    *lightest = (struct trap_path){.tag = tag, .weight = lightest->weight, .error = lightest->weight};
    return lightest;
}

static enum trap_reason check_query(const struct trap_config *config, struct trap_host *host,
                                    const struct url *url) {
    if (config->query_weight_max == 0 || !url_has_query(url)) {
        return TRAP_NONE;
    }
    struct trap_path *path = path_entry(host, tag_of(map_hash(url_path(url), 0)));
    if (path->weight - path->error >= config->query_weight_max) {
        return TRAP_QUERY;
    }
    uint32_t weight = trap_query_weight(trap_arguments_count(url_query(url)));
    path->weight = path->weight <= UINT32_MAX - weight ? path->weight + weight : UINT32_MAX;
    return TRAP_NONE;
}

/* ---- Session ids ---- */

/* In sets of four by tag; the one with the fewest ids gives way. */
enum { SESSION_WAYS = 4 };

static struct trap_session *session_entry(struct trap_host *host, uint32_t tag) {
    struct trap_session *set = &host->sessions[tag % (TRAP_SESSIONS_MAX / SESSION_WAYS) * SESSION_WAYS];
    struct trap_session *fewest = &set[0];
    for (size_t i = 0; i < SESSION_WAYS; i++) {
        if (set[i].tag == tag) {
            return &set[i];
        }
        if (set[i].ids_count < fewest->ids_count) {
            fewest = &set[i];
        }
    }
    *fewest = (struct trap_session){.tag = tag};
    return fewest;
}

static enum trap_reason check_session(const struct trap_config *config, struct trap_host *host,
                                      const struct url *url) {
    uint64_t rest_hash;
    uint64_t id_hash;
    if (config->sessions_max == 0 || !trap_find_session(url, &rest_hash, &id_hash)) {
        return TRAP_NONE;
    }
    struct trap_session *session = session_entry(host, tag_of(rest_hash));
    if (session->last_id == tag_of(id_hash)) {
        return TRAP_NONE;
    }
    if (session->ids_count >= config->sessions_max) {
        return TRAP_SESSION;
    }
    session->last_id = tag_of(id_hash);
    session->ids_count++;
    return TRAP_NONE;
}

enum trap_reason trap_check(const struct trap_config *config, struct trap_host *host, const struct url *url,
                            unsigned pages, int64_t now_us) {
    enum trap_reason reason = check_shape(config, url, pages);
    if (reason != TRAP_NONE) {
        return reason;
    }
    struct trap_date date;
    trap_find_date(url, &date);
    reason = check_calendar(config, &date, now_us);
    if (reason != TRAP_NONE) {
        return reason;
    }
    bool is_calendar = date.is_date && date.calendar != TRAP_CALENDAR_NONE;
    if (is_calendar && config->calendar_urls_max > 0 &&
        host->calendar_urls_count >= config->calendar_urls_max) {
        return TRAP_CALENDAR;
    }
    reason = check_session(config, host, url);
    reason = reason != TRAP_NONE ? reason : check_query(config, host, url);
    host->calendar_urls_count += reason == TRAP_NONE && is_calendar ? 1 : 0;
    return reason;
}

/* ---- Identical content ---- */

/* Content that was seen in fewer directories gives way; among equals they take turns. */
static struct trap_content *content_entry(struct trap_host *host, uint32_t tag) {
    struct trap_content *rarest = NULL;
    for (size_t i = 0; i < TRAP_CONTENTS_MAX; i++) {
        struct trap_content *content = &host->contents[(host->contents_next + i) % TRAP_CONTENTS_MAX];
        if (content->tag == tag) {
            return content;
        }
        if (rarest == NULL ||
            __builtin_popcount(content->directories) < __builtin_popcount(rarest->directories)) {
            rarest = content;
        }
    }
    host->contents_next = ((uint32_t)(rarest - host->contents) + 1) % TRAP_CONTENTS_MAX;
    *rarest = (struct trap_content){.tag = tag};
    return rarest;
}

bool trap_is_soft_404(const struct trap_config *config, struct trap_host *host, const struct url *url,
                      struct bytes signature) {
    ASSERT(signature.size >= sizeof(uint64_t));
    if (config->soft_404_directories == 0) {
        return false;
    }
    uint64_t start;
    memcpy(&start, signature.data, sizeof start);
    struct bytes path = url_path(url);
    while (path.size > 0 && path.data[path.size - 1] != '/') {
        path.size--;
    }
    struct trap_content *content = content_entry(host, tag_of(start));
    content->directories |= UINT32_C(1) << map_hash(path, 0) % 32;
    return (uint32_t)__builtin_popcount(content->directories) >= config->soft_404_directories;
}

/* ---- State ---- */

enum { STATE_VERSION = 1, STATE_SIZE_MAX = TRAP_HOST_SIZE_MAX };

static void trap_host_code(struct wire_coder *coder, struct trap_host *host) {
    for (size_t i = 0; i < TRAP_PATHS_MAX; i++) {
        wire_code_u32(coder, &host->paths[i].tag);
        wire_code_u32(coder, &host->paths[i].weight);
        wire_code_u32(coder, &host->paths[i].error);
        wire_code_check(coder, host->paths[i].error <= host->paths[i].weight, "an error above its weight");
    }
    for (size_t i = 0; i < TRAP_SESSIONS_MAX; i++) {
        wire_code_u32(coder, &host->sessions[i].tag);
        wire_code_u32(coder, &host->sessions[i].last_id);
        wire_code_u32(coder, &host->sessions[i].ids_count);
    }
    for (size_t i = 0; i < TRAP_CONTENTS_MAX; i++) {
        wire_code_u32(coder, &host->contents[i].tag);
        wire_code_u32(coder, &host->contents[i].directories);
    }
    wire_code_u32(coder, &host->calendar_urls_count);
    wire_code_u32(coder, &host->contents_next);
    wire_code_check(coder, host->contents_next < TRAP_CONTENTS_MAX, "no such content");
}

enum err trap_host_put(const struct trap_host *host, struct buf *out) {
    uint8_t memory[STATE_SIZE_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_u8(&writer, STATE_VERSION);
    trap_host_code(&(struct wire_coder){.writer = &writer}, (struct trap_host *)host); /* only read */
    return buf_put(out, wire_writer_bytes(&writer));
}

enum err trap_host_read(struct trap_host *ret_host, struct bytes bytes) {
    struct trap_host host;
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    wire_read_version(&reader, STATE_VERSION, "unknown version");
    trap_host_code(&(struct wire_coder){.reader = &reader}, &host);
    if (wire_reader_finish(&reader, NULL) != ERR_OK) {
        return ERR_INVALID;
    }
    *ret_host = host;
    return ERR_OK;
}
