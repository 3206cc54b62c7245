#include "replay/wayback/memento.h"

#include "base/utc.h"
#include "replay/archive/wayback_path.h"
#include "replay/wayback/wayback_safety.h"

/* A header is at most some KiB, and holds the URL up to eight times. */
enum { URL_SIZE_WITH_NEIGHBOURS_MAX = 1000, URL_SIZE_WITH_LINKS_MAX = 2000, MEMENTOS_MAX = 5 };

void memento_put_origin(struct buf *out, const struct http_request *request) {
    bool is_secure = bytes_equal(http_request_header(request, "X-Forwarded-Proto"), BYTES("https"));
    buf_put_string(out, is_secure ? "https://" : "http://");
    buf_put(out, wayback_host(request));
}

static void put_link(struct buf *out, const struct http_request *request, const char *path, struct bytes url,
                     const char *attributes) {
    buf_put_string(out, out->size > 0 ? ", <" : "<");
    memento_put_origin(out, request);
    buf_put_string(out, path);
    wayback_put_url(out, url);
    buf_put_string(out, attributes);
}

static void put_memento(struct buf *out, const struct http_request *request, int64_t time_us,
                        struct bytes url, const char *relation) {
    char digits[UTC_DIGITS_SIZE];
    char date[UTC_RFC1123_SIZE];
    buf_put_string(out, ", <");
    memento_put_origin(out, request);
    buf_put_format(out, "/web/%s/", utc_format_digits(time_us, digits));
    wayback_put_url(out, url);
    buf_put_format(out, ">; rel=\"%smemento\"; datetime=\"%s\"", relation, utc_format_rfc1123(time_us, date));
}

/* Each capture once, with all that it is: "first prev". */
static void put_mementos(struct buf *out, const struct http_request *request, int64_t own_us,
                         struct bytes url, const struct archive_neighbours *near) {
    const struct {
        int64_t time_us;
        const char *name;
    } all[MEMENTOS_MAX] = {{near->first_us, "first "},
                           {near->previous_us, "prev "},
                           {own_us, ""},
                           {near->next_us, "next "},
                           {near->last_us, "last "}};
    char relation[32] = "";
    for (size_t i = 0; i < MEMENTOS_MAX; i++) {
        if (all[i].time_us == INT64_MIN) {
            continue;
        }
        strcat(relation, all[i].name); /* all of them fit */
        size_t next = i + 1;
        while (next < MEMENTOS_MAX && all[next].time_us == INT64_MIN) {
            next++;
        }
        if (next == MEMENTOS_MAX || all[next].time_us != all[i].time_us) {
            put_memento(out, request, all[i].time_us, url, relation);
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
    put_link(work, request, "/web/", url, ">; rel=\"timegate\"");
    put_link(work, request, "/web/timemap/link/", url,
             ">; rel=\"timemap\"; type=\"application/link-format\"");
    if (capture != NULL && url.size <= URL_SIZE_WITH_NEIGHBOURS_MAX) {
        struct archive_neighbours near;
        enum err err = archive_neighbours(reader, capture->surt, capture->time_us, &near);
        if (err != ERR_OK) {
            return err;
        }
        put_mementos(work, request, capture->time_us, url, &near);
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
