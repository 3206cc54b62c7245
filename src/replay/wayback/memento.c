#include "replay/wayback/memento.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/utc.h"
#include "replay/archive/wayback_path.h"
#include "replay/cdx/cdx_output.h"
#include "replay/cdx/cdx_run.h"
#include "replay/site/origin.h"
#include "replay/site/partial.h"
#include "replay/site/trust.h"

/* A header is at most some KiB, and holds the URL up to eight times. */
enum { URL_SIZE_WITH_NEIGHBOURS_MAX = 1000, URL_SIZE_WITH_LINKS_MAX = 2000, MEMENTOS_MAX = 5 };

static void memento_put_link(struct buf *out, const struct http_request *request, const char *path,
                             struct bytes url, const char *attributes) {
    buf_put_string(out, out->size > 0 ? ", <" : "<");
    origin_put(out, request);
    buf_put_string(out, path);
    wayback_put_url(out, url);
    buf_put_string(out, attributes);
}

static void put_memento(struct buf *out, const struct http_request *request, int64_t time_us,
                        struct bytes url, const char *relation) {
    char digits[UTC_DIGITS_SIZE];
    char date[UTC_RFC1123_SIZE];
    buf_put_string(out, ", <");
    origin_put(out, request);
    buf_put_format(out, "/web/%s/", utc_format_digits(time_us, digits));
    wayback_put_url(out, url);
    buf_put_format(out, ">; rel=\"%smemento\"; datetime=\"%s\"", relation, utc_format_rfc1123(time_us, date));
}

/* Each capture once, with all that it is: "first prev". */
static void put_mementos(struct buf *out, const struct http_request *request,
                         const struct archive_neighbour *own, const struct archive_neighbours *near) {
    const struct {
        const struct archive_neighbour *it;
        const char *name;
    } all[MEMENTOS_MAX] = {{near->first.time_us == INT64_MIN ? own : &near->first, "first "},
                           {&near->previous, "prev "},
                           {own, ""},
                           {&near->next, "next "},
                           {near->last.time_us == INT64_MIN ? own : &near->last, "last "}};
    char relation[32] = "";
    for (size_t i = 0; i < MEMENTOS_MAX; i++) {
        if (all[i].it->time_us == INT64_MIN) {
            continue;
        }
        strcat(relation, all[i].name); /* all of them fit */
        size_t next = i + 1;
        while (next < MEMENTOS_MAX && all[next].it->time_us == INT64_MIN) {
            next++;
        }
        if (next == MEMENTOS_MAX || all[next].it->time_us != all[i].it->time_us) {
            put_memento(out, request, all[i].it->time_us, all[i].it->url, relation);
            relation[0] = '\0';
        }
    }
}

enum err memento_add_links(struct http_request *request, struct archive_reader *reader, struct bytes url,
                           const struct capture *capture, struct buf *work) {
    if (url.size > URL_SIZE_WITH_LINKS_MAX) {
        return ERR_OK;
    }
    buf_clear(work);
    buf_put_byte(work, '<');
    wayback_put_url(work, url);
    buf_put_string(work, ">; rel=\"original\"");
    memento_put_link(work, request, "/web/", url, ">; rel=\"timegate\"");
    memento_put_link(work, request, "/web/timemap/link/", url,
                     ">; rel=\"timemap\"; type=\"application/link-format\"");
    if (capture != NULL && url.size <= URL_SIZE_WITH_NEIGHBOURS_MAX) {
        struct archive_neighbours near;
        enum err err = archive_neighbours(reader, capture->surt, capture->time_us, &near);
        if (err != ERR_OK) {
            return err;
        }
        const struct archive_neighbour own = {.time_us = capture->time_us, .url = url};
        put_mementos(work, request, &own, &near);
    }
    if (work->err == ERR_OK) {
        http_add_header(request, "Link", buf_string(work));
    }
    return work->err;
}

void memento_add_datetime(struct http_request *request, int64_t time_us) {
    char date[UTC_RFC1123_SIZE];
    http_add_header(request, "Memento-Datetime", utc_format_rfc1123(time_us, date));
}

enum { PIECE_SIZE = 16 << 10, PENDING_SIZE_MAX = 1 << 20, SECOND_US = 1000000 };

enum timemap_format { TIMEMAP_LINK, TIMEMAP_JSON, TIMEMAP_CDX, TIMEMAP_CDXJ };

/* One that is being sent; a reader is held for it. */
struct timemap {
    struct archive_reader *reader;
    struct archive_walk *walk;
    enum timemap_format format;
    struct wayback_path path;
    struct buf origin;      /* "http://HOST" */
    struct buf uri;         /* for JSON: the one that is being written */
    struct json json;       /* in pending */
    struct cdx_query query; /* for CDXJ: the form of its lines */
    struct buf pending;     /* written, not yet sent */
    uint64_t pending_start; /* where that begins in all that is sent */
    size_t count;           /* captures so far */
    int64_t first_us;
    int64_t last_us;
    struct cdx_line line;
    struct cdx_kept kept; /* the capture that is written */
    struct capture next;  /* taken from the walk already */
    bool has_next;
    bool is_over;
    bool is_begun;  /* the head of the answer is settled */
    bool is_marked; /* there it says that this may not be all */
};

static struct {
    const char *name;
    const char *type;
} const formats[] = {
    [TIMEMAP_LINK] = {"link", "application/link-format"},
    [TIMEMAP_JSON] = {"json", "application/json"},
    [TIMEMAP_CDX] = {"cdx", "text/plain; charset=utf-8"},
    [TIMEMAP_CDXJ] = {"cdxj", "text/x-cdxj; charset=utf-8"},
};

/* ---- writing ---- */

static void put_uri(const struct timemap *timemap, struct buf *out, const char *path, struct bytes url) {
    buf_put(out, buf_bytes(&timemap->origin));
    buf_put_string(out, path);
    wayback_put_url(out, url);
}

static void put_memento_uri(const struct timemap *timemap, struct buf *out, const struct capture *capture) {
    char digits[UTC_DIGITS_SIZE];
    buf_put(out, buf_bytes(&timemap->origin));
    buf_put_format(out, "/web/%s/", utc_format_digits(capture->time_us, digits));
    wayback_put_url(out, capture->url);
}

/* From the time on, unless it is INT64_MIN. */
static void put_map_uri(const struct timemap *timemap, struct buf *out, enum timemap_format format,
                        int64_t from_us) {
    char digits[UTC_DIGITS_SIZE];
    buf_put(out, buf_bytes(&timemap->origin));
    buf_put_format(out, "/web/timemap/%s/", formats[format].name);
    if (from_us != INT64_MIN) {
        buf_put_format(out, "%s/", utc_format_digits(from_us, digits));
    }
    wayback_put_url(out, buf_bytes(&timemap->path.url));
}

/* The URI is in timemap->uri, and gone afterwards. */
static void put_uri_member(struct timemap *timemap, const char *name) {
    json_bytes(&timemap->json, name, buf_bytes(&timemap->uri));
    buf_clear(&timemap->uri);
}

static int64_t own_start(const struct timemap *timemap) {
    int64_t from_us = INT64_MIN;
    return utc_parse_digits(timemap->path.digits, false, &from_us) ? from_us : INT64_MIN;
}

static void put_start(struct timemap *timemap) {
    struct bytes url = buf_bytes(&timemap->path.url);
    if (timemap->format == TIMEMAP_LINK) {
        buf_put_byte(&timemap->pending, '<');
        wayback_put_url(&timemap->pending, url);
        buf_put_string(&timemap->pending, ">; rel=\"original\",\n<");
        put_uri(timemap, &timemap->pending, "/web/", url);
        buf_put_string(&timemap->pending, ">; rel=\"timegate\",\n");
    } else if (timemap->format == TIMEMAP_JSON) {
        json_open(&timemap->json, NULL);
        json_bytes(&timemap->json, "original_uri", url);
        json_break(&timemap->json);
        put_uri(timemap, &timemap->uri, "/web/", url);
        put_uri_member(timemap, "timegate_uri");
        json_break(&timemap->json);
        json_open(&timemap->json, "mementos");
        json_open_list(&timemap->json, "list");
    }
}

/* is_last: of all captures, not only of this page. */
static void put_capture(struct timemap *timemap, const struct capture *capture, bool is_last) {
    char date[UTC_RFC1123_SIZE];
    struct buf *out = &timemap->pending;
    bool is_first = timemap->count == 0 && timemap->path.digits.size == 0;
    int64_t second_us = capture->time_us - (capture->time_us % SECOND_US + SECOND_US) % SECOND_US;
    switch (timemap->format) {
    case TIMEMAP_LINK:
        buf_put_byte(out, '<');
        put_memento_uri(timemap, out, capture);
        buf_put_format(out, ">; rel=\"%s%smemento\"; datetime=\"%s\",\n", is_first ? "first " : "",
                       is_last ? "last " : "", utc_format_rfc1123(capture->time_us, date));
        break;
    case TIMEMAP_JSON:
        json_break(&timemap->json);
        json_open(&timemap->json, NULL);
        json_time(&timemap->json, "datetime", second_us);
        put_memento_uri(timemap, &timemap->uri, capture);
        put_uri_member(timemap, "uri");
        json_close(&timemap->json);
        break;
    case TIMEMAP_CDX:
        cdx_line_fill(&timemap->line, timemap->reader, capture, (1U << CDX_PUBLIC_COUNT) - 1);
        buf_put(out, cdx_line_value(&timemap->line, CDX_WHOLE_LINE));
        buf_put_byte(out, '\n');
        break;
    case TIMEMAP_CDXJ:
        cdx_line_fill(&timemap->line, timemap->reader, capture, cdx_output_fields(&timemap->query));
        cdx_output_line(&timemap->json, &timemap->query, &timemap->line, timemap->count);
        break;
    }
}

static void put_link_end(struct timemap *timemap, int64_t next_us) {
    char from[UTC_RFC1123_SIZE];
    char until[UTC_RFC1123_SIZE];
    struct buf *out = &timemap->pending;
    buf_put_byte(out, '<');
    put_map_uri(timemap, out, TIMEMAP_LINK, own_start(timemap));
    buf_put_format(out, ">; rel=\"self\"; type=\"%s\"; from=\"%s\"; until=\"%s\"", formats[TIMEMAP_LINK].type,
                   utc_format_rfc1123(timemap->first_us, from), utc_format_rfc1123(timemap->last_us, until));
    if (next_us != INT64_MIN) {
        buf_put_string(out, ",\n<");
        put_map_uri(timemap, out, TIMEMAP_LINK, next_us);
        buf_put_format(out, ">; rel=\"timemap\"; type=\"%s\"; from=\"%s\"", formats[TIMEMAP_LINK].type,
                       utc_format_rfc1123(next_us, from));
    }
    buf_put_byte(out, '\n');
}

static void put_json_end(struct timemap *timemap, int64_t next_us) {
    struct json *json = &timemap->json;
    json_break(json);
    json_close(json);
    json_close(json);
    json_break(json);
    put_map_uri(timemap, &timemap->uri, TIMEMAP_JSON, own_start(timemap));
    put_uri_member(timemap, "self");
    if (next_us != INT64_MIN) {
        json_break(json);
        put_map_uri(timemap, &timemap->uri, TIMEMAP_JSON, next_us);
        put_uri_member(timemap, "next");
    }
    json_break(json);
    json_open(json, "timemap_uri");
    put_map_uri(timemap, &timemap->uri, TIMEMAP_LINK, INT64_MIN);
    put_uri_member(timemap, "link_format");
    put_map_uri(timemap, &timemap->uri, TIMEMAP_JSON, INT64_MIN);
    put_uri_member(timemap, "json_format");
    put_map_uri(timemap, &timemap->uri, TIMEMAP_CDX, INT64_MIN);
    put_uri_member(timemap, "cdx_format");
    put_map_uri(timemap, &timemap->uri, TIMEMAP_CDXJ, INT64_MIN);
    put_uri_member(timemap, "cdxj_format");
    json_close(json);
    json_break(json);
    absent_put_json(archive_reader_absent(timemap->reader), json);
    json_close(json);
    buf_put_byte(&timemap->pending, '\n');
}

static void memento_put_end(struct timemap *timemap) {
    int64_t next_us = timemap->has_next ? timemap->next.time_us : INT64_MIN;
    if (timemap->format == TIMEMAP_LINK) {
        put_link_end(timemap, next_us);
    } else if (timemap->format == TIMEMAP_JSON) {
        put_json_end(timemap, next_us);
    }
    timemap->is_over = true;
}

/* ---- sending ---- */

/* A map that began as a whole one is broken off if it turns out not to be: there is no place left to say so.
 */
static enum err memento_take_next(struct timemap *timemap, struct err_detail *detail) {
    enum err err = archive_walk_next(timemap->walk, &timemap->next, detail);
    const struct absent *absent = archive_reader_absent(timemap->reader);
    timemap->has_next = err == ERR_OK;
    if (absent->is_any && timemap->is_begun && !timemap->is_marked) {
        return err_set(detail, ERR_UNREACHABLE, "%s did not answer", absent->text);
    }
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* What is known of a capture lasts until the next is taken; whether it is the last, only then. */
static enum err write_capture(struct timemap *timemap) {
    struct cdx_kept *kept = &timemap->kept;
    enum err err = cdx_kept_set(kept, &timemap->next);
    err = err == ERR_OK ? memento_take_next(timemap, NULL) : err;
    if (err == ERR_OK) {
        put_capture(timemap, &kept->capture, !timemap->has_next);
        timemap->first_us = timemap->count == 0 ? kept->capture.time_us : timemap->first_us;
        timemap->last_us = kept->capture.time_us;
        timemap->count++;
    }
    return err;
}

static enum err write_piece(struct timemap *timemap) {
    enum err err = ERR_OK;
    while (err == ERR_OK && !timemap->is_over && timemap->pending.size < PIECE_SIZE) {
        if (timemap->has_next && timemap->count < MEMENTO_PAGE_MAX) {
            err = write_capture(timemap);
        } else {
            memento_put_end(timemap);
        }
    }
    return err == ERR_OK ? timemap->pending.err : err;
}

static enum err read_timemap(void *context, uint64_t offset, void *out, size_t size, size_t *ret_size) {
    struct timemap *timemap = context;
    ASSERT(offset >= timemap->pending_start && offset - timemap->pending_start <= timemap->pending.size);
    buf_consume(&timemap->pending, (size_t)(offset - timemap->pending_start));
    timemap->pending_start = offset;
    enum err err = write_piece(timemap);
    if (err != ERR_OK) {
        return err;
    }
    *ret_size = timemap->pending.size < size ? timemap->pending.size : size;
    if (*ret_size > 0) {
        memcpy(out, timemap->pending.data, *ret_size);
    }
    return ERR_OK;
}

static void close_timemap(void *context) {
    struct timemap *timemap = context;
    if (timemap->walk != NULL) {
        archive_walk_close(timemap->walk);
    }
    archive_reader_end(timemap->reader);
    cdx_line_done(&timemap->line);
    cdx_query_done(&timemap->query);
    cdx_kept_done(&timemap->kept);
    wayback_path_done(&timemap->path);
    buf_done(&timemap->origin);
    buf_done(&timemap->uri);
    buf_done(&timemap->pending);
    free(timemap);
}

/* ---- asking ---- */

static enum err open_walk(struct timemap *timemap, struct err_detail *detail) {
    struct archive_range range = {
        .url = buf_bytes(&timemap->path.url),
        .match = QUERY_EXACT,
        .from_us = own_start(timemap),
        .to_us = INT64_MAX,
    };
    enum err err = archive_walk_open(timemap->reader, &range, &timemap->walk, detail);
    if (err == ERR_OK) {
        err = memento_take_next(timemap, detail);
    }
    if (err == ERR_OK && !timemap->has_next) {
        err = partial_missing(archive_reader_absent(timemap->reader),
                              "this archive has no capture of this URL", detail);
    }
    return err;
}

static enum err memento_prepare(struct timemap *timemap, struct replay *replay,
                                const struct http_request *request, struct err_detail *detail) {
    cdx_query_init(&timemap->query, CDX_PYWB);
    cdx_line_init(&timemap->line, archive_instance(replay->archive), false);
    cdx_kept_init(&timemap->kept);
    wayback_path_init(&timemap->path);
    buf_init(&timemap->origin, 1024);
    buf_init(&timemap->uri, PENDING_SIZE_MAX);
    buf_init(&timemap->pending, PENDING_SIZE_MAX);
    json_init(&timemap->json, &timemap->pending);
    if (timemap->format == TIMEMAP_CDXJ) {
        timemap->query.output = CDX_CDXJ;
        cdx_query_choose_shown(&timemap->query);
        cdx_output_init(&timemap->json, &timemap->pending, &timemap->query);
    }
    origin_put(&timemap->origin, request);
    enum err err = wayback_path_parse(&timemap->path, replay_target(request), detail);
    if (err == ERR_NOT_FOUND || (err == ERR_OK && timemap->path.kind != WAYBACK_CAPTURE)) {
        return err_set(detail, ERR_INVALID, "a TimeMap is of one URL");
    }
    if (err != ERR_OK) {
        return err;
    }
    timemap->reader = trust_reader_begin(replay, request);
    if (timemap->reader == NULL) {
        return ERR_MEMORY;
    }
    return archive_reader_hold(timemap->reader)
               ? open_walk(timemap, detail)
               : err_set(detail, ERR_BUSY, "too many TimeMaps are being sent");
}

static void answer_timemap(struct http_request *request) {
    struct err_detail detail = {0};
    struct timemap *timemap = calloc(1, sizeof *timemap);
    if (timemap == NULL) {
        http_answer_error(request, ERR_MEMORY, NULL);
        return;
    }
    timemap->format = (enum timemap_format)http_request_variant(request);
    enum err err = memento_prepare(timemap, http_request_context(request), request, &detail);
    if (timemap->reader != NULL) {
        partial_add_header(request, archive_reader_absent(timemap->reader));
        timemap->is_marked = archive_reader_absent(timemap->reader)->is_any;
    }
    timemap->is_begun = true;
    if (err != ERR_OK) {
        err = err == ERR_LIMIT ? ERR_INVALID : err;
        http_answer_status(request, partial_status(err), err, err_detail_text(&detail, err));
        close_timemap(timemap);
        return;
    }
    put_start(timemap);
    http_add_header(request, "Cache-Control", "no-cache");
    http_add_header(request, "X-Content-Type-Options", "nosniff");
    struct http_stream stream = {
        .size = HTTP_SIZE_UNKNOWN, .read = read_timemap, .close = close_timemap, .context = timemap};
    http_answer_stream(request, STATUS_OK, formats[timemap->format].type, &stream);
}

static void memento_refuse(struct http_request *request) {
    http_answer_error(request, ERR_INVALID, "TimeMaps are /web/timemap/link/URL, json, cdx or cdxj");
}

size_t memento_routes(struct replay *replay, struct http_route out[MEMENTO_ROUTES_MAX]) {
    static const struct http_route routes[MEMENTO_ROUTES_MAX] = {
        {.method = "GET", .path = "/web/timemap/link/*", .variant = TIMEMAP_LINK, .answer = answer_timemap},
        {.method = "GET", .path = "/web/timemap/json/*", .variant = TIMEMAP_JSON, .answer = answer_timemap},
        {.method = "GET", .path = "/web/timemap/cdx/*", .variant = TIMEMAP_CDX, .answer = answer_timemap},
        {.method = "GET", .path = "/web/timemap/cdxj/*", .variant = TIMEMAP_CDXJ, .answer = answer_timemap},
        {.method = "GET", .path = "/web/timemap/*", .answer = memento_refuse},
    };
    return replay_put_routes(replay, routes, MEMENTO_ROUTES_MAX, out);
}
