#include "store/instance/query.h"

#include "web/url/likeness.h"
#include "web/url/surt.h"
#include "web/url/url.h"

enum { KEY_SIZE_MAX = 2 * URL_SIZE_MAX };

const char *const query_matches[] = {
    [QUERY_BY_URL] = "auto", [QUERY_EXACT] = "exact",   [QUERY_PREFIX] = "prefix",
    [QUERY_HOST] = "host",   [QUERY_DOMAIN] = "domain", NULL,
};

/* ---- ranges ---- */

static void add_range(struct query *query, struct bytes from, struct bytes to) {
    ASSERT(query->ranges_count < QUERY_RANGES_MAX);
    size_t i = query->ranges_count++;
    buf_init(&query->ranges[i].from, KEY_SIZE_MAX);
    buf_init(&query->ranges[i].to, KEY_SIZE_MAX);
    buf_put(&query->ranges[i].from, from);
    buf_put(&query->ranges[i].to, to);
}

/* All SURTs that begin with the text and the letter. */
static void add_prefix(struct query *query, struct bytes text, char letter) {
    add_range(query, text, text);
    struct buf *from = &query->ranges[query->ranges_count - 1].from;
    struct buf *to = &query->ranges[query->ranges_count - 1].to;
    if (letter != 0) {
        buf_put_byte(from, (uint8_t)letter);
        buf_put_byte(to, (uint8_t)letter);
    }
    buf_put_byte(to, 0xff); /* above every SURT */
}

static void add_exact(struct query *query, struct bytes surt) {
    add_range(query, bytes_of(NULL, 0), bytes_of(NULL, 0));
    index_put_capture_prefix(&query->ranges[query->ranges_count - 1].from, surt, INT64_MIN);
    index_put_capture_prefix(&query->ranges[query->ranges_count - 1].to, surt, INT64_MAX);
}

/* Canonical forms have no slash at their end; whoever typed one means what is below it, and the page itself.
 */
static void add_url_prefix(struct query *query, struct bytes surt, struct bytes text) {
    bool had_slash = bytes_ends_with(text, BYTES("/")) && !bytes_ends_with(surt, BYTES("/"));
    if (!had_slash) {
        add_prefix(query, surt, 0);
        return;
    }
    add_exact(query, surt);
    add_prefix(query, surt, '/');
}

/* "org,example" may be followed by ")/path", ",sub)/path" and ":port)/path", in this order of bytes. */
static void add_host(struct query *query, struct bytes surt, bool with_subdomains) {
    struct bytes host = bytes_slice(surt, 0, bytes_find_byte(surt, ')'));
    add_prefix(query, host, ')');
    if (with_subdomains) {
        add_prefix(query, host, ',');
        add_prefix(query, host, ':');
    }
}

static enum query_match read_stars(struct bytes *text, enum query_match match) {
    bool has_star = bytes_ends_with(*text, BYTES("*"));
    if ((match == QUERY_BY_URL || match == QUERY_DOMAIN) && bytes_starts_with(*text, BYTES("*."))) {
        *text = bytes_skip(*text, 2);
        return QUERY_DOMAIN;
    }
    if (has_star && (match == QUERY_BY_URL || match == QUERY_PREFIX)) {
        *text = bytes_slice(*text, 0, text->size - 1);
        return QUERY_PREFIX;
    }
    return match == QUERY_BY_URL ? QUERY_EXACT : match;
}

static void add_ranges(struct query *query, struct bytes surt, struct bytes text, enum query_match match) {
    switch (match) {
    case QUERY_BY_URL:
    case QUERY_EXACT:
        add_exact(query, surt);
        return;
    case QUERY_PREFIX:
        add_url_prefix(query, surt, text);
        return;
    case QUERY_HOST:
    case QUERY_DOMAIN:
        add_host(query, surt, match == QUERY_DOMAIN);
        return;
    }
    assert_failed("every match has its ranges", __FILE__, __LINE__);
}

static enum err check_ranges(const struct query *query) {
    enum err err = ERR_OK;
    for (size_t i = 0; i < query->ranges_count && err == ERR_OK; i++) {
        err = query->ranges[i].from.err == ERR_OK ? query->ranges[i].to.err : query->ranges[i].from.err;
    }
    return err;
}

enum err query_init(struct query *query, struct bytes text, enum query_match match,
                    struct err_detail *detail) {
    *query = (struct query){.from_us = INT64_MIN, .to_us = INT64_MAX};
    buf_init(&query->text, KEY_SIZE_MAX);
    match = read_stars(&text, match);
    if (match == QUERY_PREFIX && text.size == 0) {
        add_range(query, bytes_of(NULL, 0), bytes_of(NULL, 0));
        return ERR_OK;
    }
    struct canon canon;
    struct buf surt;
    canon_init(&canon);
    buf_init(&surt, URL_SIZE_MAX + 16);
    enum err err = canon_run(&canon, text, detail);
    if (err == ERR_OK) {
        err = surt_put(&surt, &canon);
    }
    if (err == ERR_OK) {
        add_ranges(query, buf_bytes(&surt), text, match);
        err = check_ranges(query);
    }
    if (err != ERR_OK) {
        query_done(query);
    }
    buf_done(&surt);
    canon_done(&canon);
    return err;
}

static void close_merge(struct query *query) {
    if (query->merge != NULL) {
        merge_close(query->merge);
        query->merge = NULL;
    }
}

void query_done(struct query *query) {
    close_merge(query);
    for (size_t i = 0; i < query->ranges_count; i++) {
        buf_done(&query->ranges[i].from);
        buf_done(&query->ranges[i].to);
    }
    query->ranges_count = 0;
    buf_done(&query->text);
}

/* ---- the walk ---- */

void query_start(struct query *query, struct instance_session *session) {
    close_merge(query);
    query->session = session;
    query->range_index = 0;
}

/* The next capture of any range. */
static enum err query_step(struct query *query, struct capture *ret_capture) {
    while (query->range_index < query->ranges_count) {
        enum err err = ERR_OK;
        if (query->merge == NULL) {
            err = merge_open(query->session, buf_bytes(&query->ranges[query->range_index].from),
                             buf_bytes(&query->ranges[query->range_index].to), false, &query->merge, NULL);
        }
        if (err == ERR_OK) {
            err = merge_next(query->merge, ret_capture, NULL);
        }
        if (err != ERR_NOT_FOUND) {
            return err;
        }
        close_merge(query);
        query->range_index++;
    }
    return ERR_NOT_FOUND;
}

enum err query_next(struct query *query, struct capture *ret_capture) {
    struct capture capture;
    enum err err;
    while ((err = query_step(query, &capture)) == ERR_OK) {
        bool is_in_time = capture.time_us >= query->from_us && capture.time_us <= query->to_us;
        err = is_in_time ? instance_check(query->session, &capture) : ERR_NOT_FOUND;
        if (err == ERR_OK) {
            *ret_capture = capture;
        }
        if (err != ERR_NOT_FOUND) {
            return err;
        }
    }
    return err;
}

bool query_covers(const struct query *query, const struct capture *capture) {
    struct buf key;
    bool is_covered = false;
    buf_init(&key, KEY_SIZE_MAX);
    index_put_capture_prefix(&key, capture->surt, capture->time_us);
    for (size_t i = 0; i < query->ranges_count && !is_covered; i++) {
        struct bytes from = buf_bytes(&query->ranges[i].from);
        struct bytes to = buf_bytes(&query->ranges[i].to);
        is_covered = bytes_compare(buf_bytes(&key), from) >= 0 &&
                     (to.size == 0 || bytes_compare(buf_bytes(&key), to) < 0);
    }
    buf_done(&key);
    return is_covered;
}

/* ---- the closest ---- */

/* The best on one side of a time, and how near its URL is to the one that was asked for. */
struct beside {
    enum err err;
    enum likeness_degree degree;
    struct capture capture; /* its slices are in text */
    struct buf text;
};

static void keep_beside(struct beside *beside, const struct capture *capture) {
    buf_clear(&beside->text);
    buf_put(&beside->text, capture->surt);
    buf_put(&beside->text, capture->url);
    beside->err = buf_put(&beside->text, capture->mime);
    if (beside->err == ERR_OK) {
        struct bytes text = buf_bytes(&beside->text);
        size_t url_at = capture->surt.size;
        size_t mime_at = url_at + capture->url.size;
        beside->capture = *capture;
        beside->capture.surt = bytes_slice(text, 0, url_at);
        beside->capture.url = bytes_slice(text, url_at, mime_at);
        beside->capture.mime = bytes_skip(text, mime_at);
    }
}

/* From the time outwards: the first that is held of the URL, or of those most like it. */
static void find_beside(const struct query *query, struct likeness *likeness, struct bytes from,
                        struct bytes to, bool in_reverse, struct beside *beside) {
    struct merge *merge;
    beside->degree = LIKENESS_DEGREES_COUNT;
    beside->err = ERR_OK;
    buf_init(&beside->text, KEY_SIZE_MAX + INDEX_MIME_SIZE_MAX);
    enum err err = merge_open(query->session, from, to, in_reverse, &merge, NULL);
    if (err != ERR_OK) {
        beside->err = err;
        return;
    }
    struct capture capture;
    while (beside->err == ERR_OK && beside->degree != LIKENESS_SAME &&
           (err = merge_next(merge, &capture, NULL)) == ERR_OK) {
        enum likeness_degree degree = likeness_of(likeness, capture.url);
        enum err held = degree < beside->degree ? instance_check(query->session, &capture) : ERR_NOT_FOUND;
        if (held == ERR_OK) {
            beside->degree = degree;
            keep_beside(beside, &capture);
        } else if (held != ERR_NOT_FOUND) {
            beside->err = held;
        }
    }
    merge_close(merge);
    bool is_over = beside->err == ERR_OK && (err == ERR_OK || err == ERR_NOT_FOUND);
    bool is_found = beside->degree != LIKENESS_DEGREES_COUNT;
    beside->err = !is_over ? (beside->err == ERR_OK ? err : beside->err) : is_found ? ERR_OK : ERR_NOT_FOUND;
}

/* Without overflow, for any two times. */
static uint64_t distance(int64_t a, int64_t b) {
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static bool is_later_better(const struct beside *before, const struct beside *after, int64_t time_us) {
    if (before->err != ERR_OK || after->err != ERR_OK) {
        return after->err == ERR_OK;
    }
    return after->degree < before->degree ||
           (after->degree == before->degree &&
            distance(after->capture.time_us, time_us) < distance(before->capture.time_us, time_us));
}

/* Into *query, which owns the slices then. */
static enum err query_give(struct query *query, struct beside *beside, struct capture *ret_capture) {
    *ret_capture = beside->capture;
    buf_done(&query->text);
    query->text = beside->text;
    buf_init(&beside->text, KEY_SIZE_MAX);
    return ERR_OK;
}

enum err query_closest(struct query *query, struct bytes url, int64_t time_us, struct capture *ret_capture) {
    struct bytes from = buf_bytes(&query->ranges[0].from);
    struct bytes to = buf_bytes(&query->ranges[0].to);
    struct bytes surt = bytes_slice(from, 0, bytes_find_byte(from, 0));
    struct buf middle;
    struct likeness likeness;
    struct beside before;
    struct beside after;
    likeness_init(&likeness);
    enum err err = likeness_ask(&likeness, url);
    buf_init(&middle, KEY_SIZE_MAX);
    index_put_capture_prefix(&middle, surt, time_us);
    find_beside(query, &likeness, from, buf_bytes(&middle), true, &before);
    find_beside(query, &likeness, buf_bytes(&middle), to, false, &after);
    if (err == ERR_OK && before.err != ERR_OK && before.err != ERR_NOT_FOUND) {
        err = before.err;
    }
    if (err == ERR_OK && after.err != ERR_OK && after.err != ERR_NOT_FOUND) {
        err = after.err;
    }
    if (err == ERR_OK) {
        struct beside *best = is_later_better(&before, &after, time_us) ? &after : &before;
        err = best->err == ERR_OK ? query_give(query, best, ret_capture) : best->err;
    }
    buf_done(&before.text);
    buf_done(&after.text);
    buf_done(&middle);
    likeness_done(&likeness);
    return err;
}
