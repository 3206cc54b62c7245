#include "node/admin/status.h"

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

/* Too many kinds share the last one. */
static struct node_status_page *find_page(struct node_status *status, struct bytes name) {
    for (size_t i = 0; i < status->pages_count; i++) {
        if (bytes_equal(status->pages[i].name, name)) {
            return &status->pages[i];
        }
    }
    bool has_room = status->pages_count < NODE_STATUS_PAGES_MAX - 1;
    struct node_status_page *page =
        &status->pages[has_room ? status->pages_count : NODE_STATUS_PAGES_MAX - 1];
    page->name = has_room ? name : BYTES("other");
    status->pages_count = has_room ? status->pages_count + 1 : NODE_STATUS_PAGES_MAX;
    return page;
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

static void fill_pages(const struct status_facts *facts, struct node_status *status) {
    for (size_t i = 0; facts->http != NULL && i <= facts->routes_count; i++) {
        struct http_route_stat stat;
        http_server_route_stat(facts->http, i, &stat);
        struct bytes name =
            i < facts->routes_count ? status_page_of(facts->routes[i].path) : BYTES("unknown");
        add_stat(&find_page(status, name)->stat, &stat);
    }
}

/* ---- numbers ---- */

static void add_real(struct node_status *status, const char *path, double value, int decimals) {
    ASSERT(status->numbers_count < NODE_STATUS_NUMBERS_MAX);
    status->numbers[status->numbers_count++] = (struct node_status_number){path, value, decimals};
}

static void add_count(struct node_status *status, const char *path, uint64_t count) {
    add_real(status, path, (double)count, 0);
}

static void fill_crawl(const struct sample *now, const struct sample *before, struct node_status *status) {
    const struct crawler_stat *crawl = &now->crawl;
    add_count(status, "crawl.jobs", now->jobs_count);
    add_count(status, "crawl.documents", crawl->done_count);
    add_real(status, "crawl.documents_per_second",
             sample_rate(now, before, crawl->done_count, before->crawl.done_count), 2);
    add_count(status, "crawl.received_bytes", crawl->received_size);
    add_real(status, "crawl.received_bytes_per_second",
             sample_rate(now, before, crawl->received_size, before->crawl.received_size), 0);
    add_count(status, "crawl.failed", crawl->failed_count);
    add_count(status, "crawl.running", crawl->running_count);
    add_count(status, "crawl.storing", crawl->storing_count);
    add_count(status, "crawl.connections", crawl->connections_count);
    add_count(status, "crawl.hosts", crawl->hosts_count);
    add_count(status, "crawl.hosts_waiting", crawl->hosts_waiting_count);
    add_count(status, "crawl.urls_known", now->urls_known_count);
    add_count(status, "crawl.urls_waiting", now->urls_waiting_count);
}

static void fill_store(const struct sample *now, const struct sample *before, struct node_status *status) {
    const struct volume_load *load = &now->load;
    uint64_t groups_count = load->groups_count - before->load.groups_count;
    double groups = groups_count > 0 ? (double)groups_count : 1;
    add_count(status, "store.captures", now->store.captures_count);
    add_count(status, "store.documents", now->store.blocks_count);
    add_count(status, "store.bytes", now->store.size);
    add_count(status, "store.dead_bytes", now->store.dead_size);
    add_count(status, "store.index_bytes", now->store.index_size);
    add_count(status, "store.index_memory_bytes", now->index_memory_size);
    add_count(status, "store.free_bytes", now->free_size);
    add_count(status, "store.quota_bytes", now->quota_size);
    add_count(status, "store.used_bytes", now->used_size);
    add_count(status, "store.compactions", now->compactions_count);
    add_count(status, "store.commits", load->groups_count);
    add_count(status, "store.committed_documents", load->documents_count);
    add_real(status, "store.commit_seconds", (double)load->commit_us / 1e6, 6);
    add_real(status, "store.sync_seconds", (double)load->sync_us / 1e6, 6);
    add_real(status, "store.committed_documents_per_second",
             sample_rate(now, before, load->documents_count, before->load.documents_count), 2);
    add_real(status, "store.commit_milliseconds",
             (double)(load->commit_us - before->load.commit_us) / 1000 / groups, 3);
    add_real(status, "store.sync_milliseconds",
             (double)(load->sync_us - before->load.sync_us) / 1000 / groups, 3);
    add_count(status, "store.queue_documents", load->taken_count);
    add_count(status, "store.queue_documents_max", VOLUME_QUEUE_COUNT_MAX);
    add_count(status, "store.queue_bytes", load->queue_size);
    add_count(status, "store.queue_bytes_max", VOLUME_QUEUE_SIZE_MAX);
    add_count(status, "store.queue_percent", now->queue_percent);
}

static void fill_http(const struct sample *now, const struct sample *before, struct node_status *status) {
    const struct http_server_stat *http = &now->http;
    add_count(status, "http.requests", http->requests_count);
    add_real(status, "http.requests_per_second",
             sample_rate(now, before, http->requests_count, before->http.requests_count), 2);
    add_count(status, "http.active", http->active_count);
    add_count(status, "http.received_bytes", http->received_size);
    add_count(status, "http.sent_bytes", http->sent_size);
    add_real(status, "http.sent_bytes_per_second",
             sample_rate(now, before, http->sent_size, before->http.sent_size), 0);
    add_count(status, "http.cut", http->cut_count);
    add_count(status, "http.refused", now->refused_count);
    add_count(status, "http.server_errors", now->server_errors_count);
    add_real(status, "http.p50_milliseconds", sample_delay_ms(now, before, 500), 3);
    add_real(status, "http.p99_milliseconds", sample_delay_ms(now, before, 990), 3);
}

static void fill_rest(const struct sample *now, const struct sample *before, struct node_status *status) {
    add_count(status, "process.memory_bytes", now->memory_size);
    add_real(status, "process.cpu_seconds", (double)now->cpu_us / 1e6, 2);
    add_real(status, "process.cpu_percent", sample_rate(now, before, now->cpu_us, before->cpu_us) / 10000, 1);
    add_count(status, "process.threads", now->threads_count);
    add_count(status, "process.descriptors", now->descriptors_count);
    add_count(status, "process.confined_calls", now->has_confined_calls ? 1 : 0);
    add_count(status, "process.confined_files", now->confined_files);
    add_count(status, "parsers.enabled", now->has_parsers ? 1 : 0);
    add_count(status, "parsers.running", now->parsers.count);
    add_count(status, "parsers.documents", now->parsers.jobs_count);
    add_count(status, "parsers.lost", now->parsers.lost_count);
    add_count(status, "parsers.ended", now->parsers.ended_count);
    add_count(status, "parsers.late", now->parsers.late_count);
    add_count(status, "parsers.refused", now->parsers.refused_count);
    add_count(status, "rewritten.enabled", now->has_rewritten ? 1 : 0);
    add_count(status, "rewritten.documents", now->rewritten.count);
    add_count(status, "rewritten.size", now->rewritten.size);
    add_count(status, "rewritten.asked", now->rewritten.asked_count);
    add_count(status, "rewritten.found", now->rewritten.found_count);
    if (!now->has_search) {
        return;
    }
    add_count(status, "search.documents", now->search.documents_count);
    add_count(status, "search.left", now->search.left_count);
    add_count(status, "search.left_bytes", now->search.left_size);
    add_count(status, "search.bytes", now->search.size);
}

/* ---- the whole ---- */

/* "host: why; host: why": neither hosts nor reasons have a semicolon. */
static void fill_waiting(struct bytes text, struct arena *arena, struct node_status *status) {
    struct bytes rest = arena_copy(arena, text);
    struct bytes part;
    status->waiting = arena_take_array(arena, text.size / sizeof "h: w" + 1, sizeof *status->waiting);
    while (rest.size > 0 && status->waiting != NULL && bytes_split(&rest, ';', &part)) {
        part = bytes_trim(part);
        size_t colon = bytes_find(part, BYTES(": "));
        if (colon < part.size) {
            struct bytes host = arena_copy(arena, bytes_slice(part, 0, colon));
            struct bytes why = arena_copy(arena, bytes_skip(part, colon + 2));
            status->waiting[status->waiting_count++] =
                (struct node_status_sentence){(const char *)host.data, (const char *)why.data};
        }
    }
}

const struct node_status *status_fill(const struct status_facts *facts, struct arena *arena) {
    static const char *const holds[] = {"flowing", "disk-full", "disk-slow"};
    const struct sample *now = facts->why.now;
    const struct sample *before = facts->why.before;
    const struct sample_volumes *volumes = facts->why.volumes;
    struct node_status *status = arena_take(arena, sizeof *status);
    struct node_status_volume *copies = arena_take_array(arena, volumes->count, sizeof *copies);
    if (status == NULL || copies == NULL) {
        return NULL;
    }
    memcpy(copies, volumes->items, volumes->count * sizeof *copies);
    *status = (struct node_status){
        .title = facts->title,
        .time_us = now->wall_us,
        .hold = holds[now->crawl.hold],
        .volumes = copies,
        .volumes_count = volumes->count,
        .has_search = now->has_search,
        .search_error = (const char *)arena_copy(arena, bytes_of_string(now->search.error)).data,
    };
    add_real(status, "uptime_seconds", (double)(now->at_us - facts->started_us) / 1e6, 1);
    fill_crawl(now, before, status);
    fill_store(now, before, status);
    fill_http(now, before, status);
    fill_rest(now, before, status);
    fill_pages(facts, status);
    fill_waiting(facts->why.waiting, arena, status);
    status->slow_count = bottlenecks_find(&facts->why, arena, &status->slow);
    return status;
}
