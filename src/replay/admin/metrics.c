#include "replay/admin/metrics.h"

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
    {"store.quota_bytes", "store_quota_bytes", "gauge", "Quota of disk for the local volumes; 0: none."},
    {"store.used_bytes", "store_used_bytes", "gauge", "Bytes that they take, with their indexes."},
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

static void metrics_put_head(struct buf *out, const char *name, const char *type, const char *help) {
    buf_put_format(out, "# HELP mnemon_%s %s\n# TYPE mnemon_%s %s\n", name, help, name, type);
}

/* ---- for all ---- */

static const char *metrics_type_of(const char *name) {
    return bytes_ends_with(bytes_of_string(name), BYTES("_total")) ? "counter" : "gauge";
}

void metrics_put_numbers(struct buf *out, const struct metrics_number *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        metrics_put_head(out, numbers[i].name, metrics_type_of(numbers[i].name), numbers[i].help);
        buf_put_format(out, "mnemon_%s %ju\n", numbers[i].name, (uintmax_t)numbers[i].value);
    }
}

/* In the value of a label, these three are written otherwise. */
static void metrics_put_label(struct buf *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            buf_put_string(out, "\\n");
        } else {
            buf_put_string(out, *text == '\\' || *text == '"' ? "\\" : "");
            buf_put_byte(out, (uint8_t)*text);
        }
    }
}

void metrics_put_rows(struct buf *out, const char *label, const struct metrics_column *columns,
                      size_t columns_count, const struct metrics_row *rows, size_t rows_count) {
    ASSERT(columns_count <= METRICS_COLUMNS_MAX);
    for (size_t i = 0; i < columns_count && rows_count > 0; i++) {
        metrics_put_head(out, columns[i].name, metrics_type_of(columns[i].name), columns[i].help);
        for (size_t j = 0; j < rows_count; j++) {
            buf_put_format(out, "mnemon_%s{%s=\"", columns[i].name, label);
            metrics_put_label(out, rows[j].label);
            buf_put_format(out, "\"} %ju\n", (uintmax_t)rows[j].values[i]);
        }
    }
}

/* ---- of the status ---- */

static void metrics_put_volumes(struct buf *out, const struct node_status *status) {
    static const char *const names[][2] = {
        {"volume_up", "1: the volume can be used, as far as is known."},
        {"volume_captures", "Captures of the volume, an estimate."},
        {"volume_bytes", "Bytes of its segments."},
        {"volume_free_bytes", "Bytes that are free on its disk."},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        metrics_put_head(out, names[i][0], "gauge", names[i][1]);
        for (size_t j = 0; j < status->volumes_count; j++) {
            const struct node_status_volume *volume = &status->volumes[j];
            const uint64_t values[] = {volume->volume.err == ERR_OK, volume->stat.captures_count,
                                       volume->stat.size, volume->free_size};
            const bool is_known[] = {true, volume->has_stat, volume->has_stat, volume->has_disk};
            if (is_known[i]) {
                buf_put_format(out, "mnemon_%s{volume=\"%u\"} %ju\n", names[i][0], volume->volume.number,
                               (uintmax_t)values[i]);
            }
        }
    }
}

/* Names of pages are our own words: they need no escaping. */
static void put_answers(struct buf *out, const struct node_status *status) {
    metrics_put_head(out, "http_answers_total", "counter",
                     "Answers by kind of page and hundred of the status.");
    for (size_t i = 0; i < status->pages_count; i++) {
        const struct node_status_page *page = &status->pages[i];
        for (size_t j = 0; j < HTTP_STATUSES_COUNT; j++) {
            if (page->stat.statuses[j] > 0) {
                buf_put_format(out, "mnemon_http_answers_total{page=\"%.*s\",status=\"%zuxx\"} %ju\n",
                               BYTES_ARG(page->name), j, (uintmax_t)page->stat.statuses[j]);
            }
        }
    }
}

static void put_delays(struct buf *out, const struct node_status *status) {
    static const char name[] = "mnemon_http_answer_seconds";
    metrics_put_head(out, "http_answer_seconds", "histogram",
                     "Time from the header of a request to its answer.");
    for (size_t i = 0; i < status->pages_count; i++) {
        const struct node_status_page *page = &status->pages[i];
        uint64_t sum = 0;
        for (size_t j = 0; j <= HTTP_DELAYS_COUNT; j++) {
            sum += page->stat.delays[j];
            buf_put_format(out, "%s_bucket{page=\"%.*s\",le=\"", name, BYTES_ARG(page->name));
            if (j < HTTP_DELAYS_COUNT) {
                buf_put_format(out, "%g", http_delays_us[j] / 1e6);
            } else {
                buf_put_string(out, "+Inf");
            }
            buf_put_format(out, "\"} %ju\n", (uintmax_t)sum);
        }
        buf_put_format(out, "%s_sum{page=\"%.*s\"} %.6f\n", name, BYTES_ARG(page->name),
                       (double)page->stat.delay_sum_us / 1e6);
        buf_put_format(out, "%s_count{page=\"%.*s\"} %ju\n", name, BYTES_ARG(page->name), (uintmax_t)sum);
    }
}

void metrics_put(const struct node_status *status, struct buf *out) {
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const struct node_status_number *number = node_status_find(status, metrics[i].path);
        if (number != NULL) {
            metrics_put_head(out, metrics[i].name, metrics[i].type, metrics[i].help);
            buf_put_format(out, "mnemon_%s %.*f\n", metrics[i].name, number->decimals, number->value);
        }
    }
    metrics_put_volumes(out, status);
    put_answers(out, status);
    put_delays(out, status);
}
