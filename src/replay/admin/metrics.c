#include "replay/admin/metrics.h"

#include "replay/admin/admin_pages_state.h"

struct metric {
    const char *path; /* in the status */
    const char *name; /* without mnemon_ */
    const char *type;
    const char *help;
};

static const struct metric metrics[] = {
    {"uptime_seconds", "uptime_seconds", "gauge", "Time since the node was started."},
    {"crawl.jobs", "crawl_jobs", "gauge", "Jobs that are open."},
    {"crawl.documents", "crawl_documents_total", "counter", "Documents that crawls have stored."},
    {"crawl.received_bytes", "crawl_received_bytes_total", "counter", "Bytes that crawls have received."},
    {"crawl.failed", "crawl_failed_total", "counter", "URLs that crawls have given up."},
    {"crawl.running", "crawl_requests_running", "gauge", "Requests of crawls under way."},
    {"crawl.storing", "crawl_documents_storing", "gauge", "Fetched documents that are not yet durable."},
    {"crawl.connections", "crawl_connections", "gauge", "Open connections of crawls."},
    {"crawl.hosts", "crawl_hosts", "gauge", "Hosts with URLs that wait."},
    {"crawl.hosts_waiting", "crawl_hosts_waiting", "gauge", "Of them, those whose pace is waited for."},
    {"crawl.urls_known", "crawl_urls_known", "gauge", "URLs that the open jobs know."},
    {"crawl.urls_waiting", "crawl_urls_waiting", "gauge", "Of them, those not yet fetched in this visit."},
    {"store.captures", "store_captures", "gauge", "Captures in the index, an estimate."},
    {"store.documents", "store_documents", "gauge", "Distinct documents in the index, an estimate."},
    {"store.commits", "store_commits_total", "counter", "Groups of documents that were made durable."},
    {"store.committed_documents", "store_committed_documents_total", "counter", "Documents in these groups."},
    {"store.commit_seconds", "store_commit_seconds_total", "counter", "Time that commits took."},
    {"store.sync_seconds", "store_sync_seconds_total", "counter", "Of it, the time for syncs of the disk."},
    {"store.queue_documents", "store_queue_documents", "gauge", "Documents on their way to a commit."},
    {"store.queue_bytes", "store_queue_bytes", "gauge", "Bytes that wait for a commit."},
    {"store.dead_bytes", "store_dead_bytes", "gauge", "Bytes that compaction would give back."},
    {"store.index_bytes", "store_index_bytes", "gauge", "Bytes of the index on disk."},
    {"store.index_memory_bytes", "store_index_memory_bytes", "gauge", "Bytes of the index in memory."},
    {"store.compactions", "store_index_compactions_running", "gauge", "Compactions of the index now."},
    {"http.requests", "http_requests_total", "counter", "HTTP requests."},
    {"http.active", "http_requests_active", "gauge", "HTTP requests under way."},
    {"http.received_bytes", "http_received_bytes_total", "counter", "Bytes of bodies of requests."},
    {"http.sent_bytes", "http_sent_bytes_total", "counter", "Bytes of bodies of answers of known size."},
    {"http.cut", "http_connections_cut_total", "counter", "Connections that were too slow."},
    {"http.refused", "http_requests_limited_total", "counter",
     "Requests refused for the rate of an address."},
    {"search.documents", "search_documents", "gauge", "Pages in the full-text index."},
    {"search.left", "search_captures_left", "gauge", "Captures that the full-text index has not yet read."},
    {"search.bytes", "search_bytes", "gauge", "Bytes of the full-text index."},
    {"process.memory_bytes", "process_resident_memory_bytes", "gauge", "Resident memory."},
    {"process.cpu_seconds", "process_cpu_seconds_total", "counter", "Processor time."},
    {"process.threads", "process_threads", "gauge", "Threads."},
    {"process.descriptors", "process_open_fds", "gauge", "Open file descriptors."},
};

static const struct metric volume_metrics[] = {
    {"up", "volume_up", "gauge", "1: the volume can be used, as far as is known."},
    {"captures", "volume_captures", "gauge", "Captures of the volume, an estimate."},
    {"bytes", "volume_bytes", "gauge", "Bytes of its segments."},
    {"free_bytes", "volume_free_bytes", "gauge", "Bytes that are free on its disk."},
};

static void put_head(struct buf *out, const char *name, const char *type, const char *help) {
    buf_put_format(out, "# HELP mnemon_%s %s\n# TYPE mnemon_%s %s\n", name, help, name, type);
}

static void put_number(struct buf *out, const json_t *value) {
    if (json_is_integer(value)) {
        buf_put_format(out, " %jd\n", (intmax_t)json_integer_value(value));
    } else {
        buf_put_format(out, " %.9g\n", json_number_value(value));
    }
}

static void put_volumes(struct buf *out, const json_t *volumes) {
    for (size_t i = 0; i < sizeof volume_metrics / sizeof *volume_metrics; i++) {
        const struct metric *metric = &volume_metrics[i];
        put_head(out, metric->name, metric->type, metric->help);
        for (size_t j = 0; j < json_array_size(volumes); j++) {
            const json_t *volume = json_array_get(volumes, j);
            const json_t *value = json_object_get(volume, metric->path);
            if (value != NULL) {
                buf_put_format(out, "mnemon_%s{volume=\"%ju\"}", metric->name,
                               (uintmax_t)admin_pages_number(volume, "number"));
                put_number(out, value);
            }
        }
    }
}

/* Paths are our own words: they need no escaping. */
static void put_answers(struct buf *out, const json_t *routes) {
    put_head(out, "http_answers_total", "counter", "Answers by kind of page and hundred of the status.");
    for (size_t i = 0; i < json_array_size(routes); i++) {
        const json_t *route = json_array_get(routes, i);
        const json_t *answers = json_object_get(route, "answers");
        for (size_t j = 0; j < json_array_size(answers); j++) {
            uint64_t count = (uint64_t)json_integer_value(json_array_get(answers, j));
            if (count > 0) {
                buf_put_format(out, "mnemon_http_answers_total{page=\"%s\",status=\"%zuxx\"} %ju\n",
                               admin_pages_string(route, "page"), j, (uintmax_t)count);
            }
        }
    }
}

static void put_delays(struct buf *out, const json_t *routes, const json_t *bounds) {
    static const char name[] = "mnemon_http_answer_seconds";
    put_head(out, "http_answer_seconds", "histogram", "Time from the header of a request to its answer.");
    for (size_t i = 0; i < json_array_size(routes); i++) {
        const json_t *route = json_array_get(routes, i);
        const json_t *delays = json_object_get(route, "delays");
        const char *page = admin_pages_string(route, "page");
        uint64_t sum = 0;
        for (size_t j = 0; j < json_array_size(delays); j++) {
            sum += (uint64_t)json_integer_value(json_array_get(delays, j));
            buf_put_format(out, "%s_bucket{page=\"%s\",le=\"", name, page);
            if (j < json_array_size(bounds)) {
                buf_put_format(out, "%g", json_number_value(json_array_get(bounds, j)));
            } else {
                buf_put_string(out, "+Inf");
            }
            buf_put_format(out, "\"} %ju\n", (uintmax_t)sum);
        }
        buf_put_format(out, "%s_sum{page=\"%s\"} %.6f\n", name, page, admin_pages_real(route, "seconds"));
        buf_put_format(out, "%s_count{page=\"%s\"} %ju\n", name, page, (uintmax_t)sum);
    }
}

enum err metrics_put(struct buf *out, struct bytes text) {
    json_t *status = json_loadb((const char *)text.data, text.size, 0, NULL);
    if (!json_is_object(status)) {
        json_decref(status);
        return ERR_INVALID;
    }
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const json_t *value = admin_pages_member(status, metrics[i].path);
        if (value != NULL) {
            put_head(out, metrics[i].name, metrics[i].type, metrics[i].help);
            buf_put_format(out, "mnemon_%s", metrics[i].name);
            put_number(out, value);
        }
    }
    put_volumes(out, admin_pages_member(status, "store.volumes"));
    put_answers(out, admin_pages_member(status, "http.pages"));
    put_delays(out, admin_pages_member(status, "http.pages"),
               admin_pages_member(status, "http.delay_bounds_seconds"));
    json_decref(status);
    return out->err;
}
