#include "node/admin/status.h"

#include "base/utc.h"

enum { PAGES_MAX = 32 };

struct page {
    struct bytes name;
    struct http_route_stat stat;
};

static void put_crawl(const struct status_facts *facts, struct buf *out) {
    static const char *const holds[] = {"flowing", "disk-full", "disk-slow"};
    const struct sample *now = facts->why.now;
    const struct sample *before = facts->why.before;
    const struct crawler_stat *crawl = &now->crawl;
    buf_put_format(
        out,
        "\"crawl\":{\"jobs\":%ju,\"documents\":%ju,\"documents_per_second\":%.2f,\"received_bytes\":%ju,"
        "\"received_bytes_per_second\":%.0f,\"failed\":%ju,\"running\":%ju,\"storing\":%ju,"
        "\"connections\":%ju,\"hosts\":%ju,\"hosts_waiting\":%ju,\"urls_known\":%ju,"
        "\"urls_waiting\":%ju,\"hold\":\"%s\",\"waiting\":[",
        (uintmax_t)now->jobs_count, (uintmax_t)crawl->done_count,
        sample_rate(now, before, crawl->done_count, before->crawl.done_count),
        (uintmax_t)crawl->received_size,
        sample_rate(now, before, crawl->received_size, before->crawl.received_size),
        (uintmax_t)crawl->failed_count, (uintmax_t)crawl->running_count, (uintmax_t)crawl->storing_count,
        (uintmax_t)crawl->connections_count, (uintmax_t)crawl->hosts_count,
        (uintmax_t)crawl->hosts_waiting_count, (uintmax_t)now->urls_known_count,
        (uintmax_t)now->urls_waiting_count, holds[crawl->hold]);
    struct bytes rest = facts->why.waiting;
    struct bytes part;
    const char *gap = "";
    while (rest.size > 0 && bytes_split(&rest, ';', &part)) { /* neither hosts nor reasons have one */
        part = bytes_trim(part);
        size_t colon = bytes_find(part, BYTES(": "));
        if (colon == part.size) {
            continue;
        }
        buf_put_format(out, "%s{\"host\":", gap);
        buf_put_json(out, bytes_slice(part, 0, colon));
        buf_put_string(out, ",\"why\":");
        buf_put_json(out, bytes_skip(part, colon + 2));
        buf_put_string(out, "}");
        gap = ",";
    }
    buf_put_string(out, "]},");
}

static void put_volume(const struct sample_volume *item, struct buf *out) {
    const struct instance_volume *volume = &item->volume;
    buf_put_format(out, "{\"number\":%u,\"place\":", volume->number);
    buf_put_json(out, bytes_of_string(volume->place));
    buf_put_format(out, ",\"remote\":%s,\"writable\":%s,\"up\":%d,\"state\":\"%s\",\"reason\":",
                   volume->is_remote ? "true" : "false", volume->is_writable ? "true" : "false",
                   volume->err == ERR_OK,
                   volume->err == ERR_OK         ? "up"
                   : volume->err == ERR_NO_SPACE ? "full"
                                                 : "down");
    buf_put_json(out, bytes_of_string(volume->err == ERR_OK ? "" : volume->reason));
    if (item->has_stat) {
        buf_put_format(out, ",\"captures\":%ju,\"bytes\":%ju,\"segments\":%ju",
                       (uintmax_t)item->stat.captures_count, (uintmax_t)item->stat.size,
                       (uintmax_t)item->stat.segments_count);
    }
    if (item->has_disk) {
        buf_put_format(out, ",\"free_bytes\":%ju,\"disk_bytes\":%ju", (uintmax_t)item->free_size,
                       (uintmax_t)item->disk_size);
    }
    buf_put_string(out, "}");
}

static void put_store(const struct status_facts *facts, struct buf *out) {
    const struct sample *now = facts->why.now;
    const struct sample *before = facts->why.before;
    const struct volume_load *load = &now->load;
    double groups = (double)(load->groups_count - before->load.groups_count);
    groups = groups > 0 ? groups : 1;
    buf_put_format(out,
                   "\"store\":{\"captures\":%ju,\"documents\":%ju,\"bytes\":%ju,\"dead_bytes\":%ju,"
                   "\"index_bytes\":%ju,\"index_memory_bytes\":%ju,\"free_bytes\":%ju,\"compactions\":%ju,",
                   (uintmax_t)now->store.captures_count, (uintmax_t)now->store.blocks_count,
                   (uintmax_t)now->store.size, (uintmax_t)now->store.dead_size,
                   (uintmax_t)now->store.index_size, (uintmax_t)now->index_memory_size,
                   (uintmax_t)now->free_size, (uintmax_t)now->compactions_count);
    buf_put_format(
        out,
        "\"commits\":%ju,\"committed_documents\":%ju,\"commit_seconds\":%.6f,\"sync_seconds\":%.6f,"
        "\"committed_documents_per_second\":%.2f,\"commit_milliseconds\":%.3f,"
        "\"sync_milliseconds\":%.3f,\"queue_documents\":%ju,\"queue_documents_max\":%d,"
        "\"queue_bytes\":%ju,\"queue_bytes_max\":%d,\"queue_percent\":%ju,\"volumes\":[",
        (uintmax_t)load->groups_count, (uintmax_t)load->documents_count, (double)load->commit_us / 1e6,
        (double)load->sync_us / 1e6,
        sample_rate(now, before, load->documents_count, before->load.documents_count),
        (double)(load->commit_us - before->load.commit_us) / 1000 / groups,
        (double)(load->sync_us - before->load.sync_us) / 1000 / groups, (uintmax_t)load->taken_count,
        VOLUME_QUEUE_COUNT_MAX, (uintmax_t)load->queue_size, VOLUME_QUEUE_SIZE_MAX,
        (uintmax_t)now->queue_percent);
    for (size_t i = 0; i < facts->why.volumes->count; i++) {
        buf_put_string(out, i > 0 ? "," : "");
        put_volume(&facts->why.volumes->items[i], out);
    }
    buf_put_string(out, "]},");
}

/* ---- HTTP ---- */

struct bytes status_page_of(const char *route_path) {
    struct bytes path = bytes_of_string(route_path);
    if (bytes_starts_with(path, BYTES("/api/v1/volumes"))) {
        return BYTES("volumes");
    }
    if (path.size <= 1) {
        return BYTES("start");
    }
    path = bytes_skip(path, 1);
    path = bytes_slice(path, 0, bytes_find_byte(path, '/'));
    path = bytes_slice(path, 0, bytes_find_byte(path, '*'));
    return path.size > 0 ? path : BYTES("start");
}

static struct page *find_page(struct page pages[PAGES_MAX], size_t *count, struct bytes name) {
    for (size_t i = 0; i < *count; i++) {
        if (bytes_equal(pages[i].name, name)) {
            return &pages[i];
        }
    }
    if (*count < PAGES_MAX - 1) {
        pages[*count].name = name;
        return &pages[(*count)++];
    }
    pages[PAGES_MAX - 1].name = BYTES("other");
    *count = PAGES_MAX;
    return &pages[PAGES_MAX - 1];
}

static void add_stat(struct http_route_stat *sum, const struct http_route_stat *part) {
    for (size_t i = 0; i < HTTP_STATUSES_COUNT; i++) {
        sum->statuses[i] += part->statuses[i];
    }
    for (size_t i = 0; i <= HTTP_DELAYS_COUNT; i++) {
        sum->delays[i] += part->delays[i];
    }
    sum->delay_sum_us += part->delay_sum_us;
    sum->sent_size += part->sent_size;
}

static void put_counts(struct buf *out, const char *name, const uint64_t *counts, size_t count) {
    buf_put_format(out, "\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        buf_put_format(out, "%s%ju", i > 0 ? "," : "", (uintmax_t)counts[i]);
    }
    buf_put_string(out, "]");
}

static void put_pages(const struct status_facts *facts, struct buf *out) {
    struct page pages[PAGES_MAX] = {0};
    size_t count = 0;
    for (size_t i = 0; facts->http != NULL && i <= facts->routes_count; i++) {
        struct http_route_stat stat;
        http_server_route_stat(facts->http, i, &stat);
        struct bytes name =
            i < facts->routes_count ? status_page_of(facts->routes[i].path) : BYTES("unknown");
        add_stat(&find_page(pages, &count, name)->stat, &stat);
    }
    buf_put_string(out, "\"pages\":[");
    for (size_t i = 0; i < count; i++) {
        buf_put_string(out, i > 0 ? ",{\"page\":" : "{\"page\":");
        buf_put_json(out, pages[i].name);
        buf_put_format(out, ",\"seconds\":%.6f,\"sent_bytes\":%ju,", (double)pages[i].stat.delay_sum_us / 1e6,
                       (uintmax_t)pages[i].stat.sent_size);
        put_counts(out, "answers", pages[i].stat.statuses, HTTP_STATUSES_COUNT);
        buf_put_string(out, ",");
        put_counts(out, "delays", pages[i].stat.delays, HTTP_DELAYS_COUNT + 1);
        buf_put_string(out, "}");
    }
    buf_put_string(out, "]");
}

static void put_http(const struct status_facts *facts, struct buf *out) {
    const struct sample *now = facts->why.now;
    const struct sample *before = facts->why.before;
    buf_put_format(
        out,
        "\"http\":{\"requests\":%ju,\"requests_per_second\":%.2f,\"active\":%u,\"received_bytes\":%ju,"
        "\"sent_bytes\":%ju,\"sent_bytes_per_second\":%.0f,\"cut\":%ju,\"refused\":%ju,"
        "\"server_errors\":%ju,\"p50_milliseconds\":%.3f,\"p99_milliseconds\":%.3f,"
        "\"delay_bounds_seconds\":[",
        (uintmax_t)now->http.requests_count,
        sample_rate(now, before, now->http.requests_count, before->http.requests_count),
        now->http.active_count, (uintmax_t)now->http.received_size, (uintmax_t)now->http.sent_size,
        sample_rate(now, before, now->http.sent_size, before->http.sent_size), (uintmax_t)now->http.cut_count,
        (uintmax_t)now->refused_count, (uintmax_t)now->server_errors_count, sample_delay_ms(now, before, 500),
        sample_delay_ms(now, before, 990));
    for (size_t i = 0; i < HTTP_DELAYS_COUNT; i++) {
        buf_put_format(out, "%s%g", i > 0 ? "," : "", http_delays_us[i] / 1e6);
    }
    buf_put_string(out, "],");
    put_pages(facts, out);
    buf_put_string(out, "},");
}

/* ---- the rest ---- */

static void put_search(const struct sample *now, struct buf *out) {
    if (!now->has_search) {
        buf_put_string(out, "\"search\":{\"enabled\":false},");
        return;
    }
    buf_put_format(
        out, "\"search\":{\"enabled\":true,\"documents\":%ju,\"left\":%ju,\"left_bytes\":%ju,\"bytes\":%ju,",
        (uintmax_t)now->search.documents_count, (uintmax_t)now->search.left_count,
        (uintmax_t)now->search.left_size, (uintmax_t)now->search.size);
    buf_put_string(out, "\"error\":");
    buf_put_json(out, bytes_of_string(now->search.error));
    buf_put_string(out, "},");
}

void status_put(const struct status_facts *facts, struct buf *out) {
    const struct sample *now = facts->why.now;
    const struct sample *before = facts->why.before;
    char time[UTC_RFC3339_SIZE];
    buf_put_string(out, "{\"version\":1,\"title\":");
    buf_put_json(out, bytes_of_string(facts->title));
    buf_put_format(out, ",\"time\":\"%s\",\"uptime_seconds\":%.1f,", utc_format_rfc3339(now->wall_us, time),
                   (double)(now->at_us - facts->started_us) / 1e6);
    put_crawl(facts, out);
    put_store(facts, out);
    put_http(facts, out);
    put_search(now, out);
    buf_put_format(
        out,
        "\"process\":{\"memory_bytes\":%ju,\"cpu_seconds\":%.2f,\"cpu_percent\":%.1f,\"threads\":%ju,"
        "\"descriptors\":%ju},\"slow\":",
        (uintmax_t)now->memory_size, (double)now->cpu_us / 1e6,
        sample_rate(now, before, now->cpu_us, before->cpu_us) / 10000, (uintmax_t)now->threads_count,
        (uintmax_t)now->descriptors_count);
    bottlenecks_put(&facts->why, out);
    buf_put_string(out, "}");
}
