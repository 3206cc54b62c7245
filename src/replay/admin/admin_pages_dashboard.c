#include "base/value.h"
#include "replay/admin/admin_pages_state.h"

enum { ROWS_MAX = 12, SERIES_MAX = 3 };

enum unit { UNIT_COUNT, UNIT_SIZE, UNIT_RATE, UNIT_SIZE_RATE, UNIT_MS, UNIT_PERCENT, UNIT_SECONDS };

/* As the script knows them. */
static const char *const unit_names[] = {"count",        "size",    "rate",   "size-rate",
                                         "milliseconds", "percent", "seconds"};

/* A number of /api/v1/status that the dashboard shows. */
struct row {
    const char *label;
    const char *path;
    enum unit unit;
};

/* A box: its numbers, and the series of /api/v1/history that the script draws. */
struct box {
    const char *title;
    const char *id;
    const char *series[SERIES_MAX]; /* "name unit label" */
    struct row rows[ROWS_MAX];
};

static const struct box boxes[] = {
    {.title = "Crawl",
     .id = "crawl",
     .series = {"crawl_documents_per_second rate documents stored",
                "crawl_bytes_per_second size-rate received", "crawl_urls_waiting count URLs waiting"},
     .rows = {{"Jobs running", "crawl.jobs", UNIT_COUNT},
              {"Documents stored", "crawl.documents", UNIT_COUNT},
              {"Documents per second", "crawl.documents_per_second", UNIT_RATE},
              {"Received", "crawl.received_bytes", UNIT_SIZE},
              {"Received per second", "crawl.received_bytes_per_second", UNIT_SIZE_RATE},
              {"URLs waiting", "crawl.urls_waiting", UNIT_COUNT},
              {"Requests under way", "crawl.running", UNIT_COUNT},
              {"Waiting for the disk", "crawl.storing", UNIT_COUNT},
              {"Hosts with URLs", "crawl.hosts", UNIT_COUNT},
              {"of them being waited for", "crawl.hosts_waiting", UNIT_COUNT},
              {"URLs given up", "crawl.failed", UNIT_COUNT}}},
    {.title = "Store",
     .id = "store",
     .series = {"store_documents_per_second rate committed",
                "store_sync_milliseconds milliseconds to sync the disk", "store_queue_percent percent queue"},
     .rows = {{"Captures", "store.captures", UNIT_COUNT},
              {"Size", "store.bytes", UNIT_SIZE},
              {"of it, removed", "store.dead_bytes", UNIT_SIZE},
              {"Index", "store.index_bytes", UNIT_SIZE},
              {"Commits", "store.commits", UNIT_COUNT},
              {"Time of a commit", "store.commit_milliseconds", UNIT_MS},
              {"of it, to sync the disk", "store.sync_milliseconds", UNIT_MS},
              {"Queue", "store.queue_percent", UNIT_PERCENT},
              {"Index compactions running", "store.compactions", UNIT_COUNT},
              {"Disk used", "store.used_bytes", UNIT_SIZE},
              {"Quota of disk (0: none)", "store.quota_bytes", UNIT_SIZE},
              {"Disk free", "store.free_bytes", UNIT_SIZE}}},
    {.title = "HTTP",
     .id = "http",
     .series = {"http_requests_per_second rate requests", "http_p99_milliseconds milliseconds slowest 1 %",
                "http_bytes_per_second size-rate sent"},
     .rows = {{"Requests", "http.requests", UNIT_COUNT},
              {"Requests per second", "http.requests_per_second", UNIT_RATE},
              {"Requests under way", "http.active", UNIT_COUNT},
              {"Half answered within", "http.p50_milliseconds", UNIT_MS},
              {"99 of 100 within", "http.p99_milliseconds", UNIT_MS},
              {"Sent", "http.sent_bytes", UNIT_SIZE},
              {"Received", "http.received_bytes", UNIT_SIZE},
              {"Cut off as too slow", "http.cut", UNIT_COUNT},
              {"Refused as too many (429)", "http.refused", UNIT_COUNT},
              {"Answers 5xx", "http.server_errors", UNIT_COUNT}}},
    {.title = "Search",
     .id = "search",
     .series = {"search_left count captures not yet read"},
     .rows = {{"Pages", "search.documents", UNIT_COUNT},
              {"Captures not yet read", "search.left", UNIT_COUNT},
              {"Size", "search.bytes", UNIT_SIZE}}},
    {.title = "Process",
     .id = "process",
     .series = {"process_cpu_percent percent CPU", "process_memory_bytes size memory"},
     .rows = {{"Running for", "uptime_seconds", UNIT_SECONDS},
              {"Memory", "process.memory_bytes", UNIT_SIZE},
              {"CPU", "process.cpu_percent", UNIT_PERCENT},
              {"Threads", "process.threads", UNIT_COUNT},
              {"Open files", "process.descriptors", UNIT_COUNT}}},
};

static void dashboard_put_value(struct sheet *sheet, const struct node_status *status,
                                const struct row *row) {
    const struct node_status_number *number = node_status_find(status, row->path);
    double value = number != NULL ? number->value : 0;
    uint64_t whole = (uint64_t)value;
    switch (row->unit) {
    case UNIT_COUNT:
        sheet_count(sheet, whole);
        return;
    case UNIT_SIZE:
        sheet_size(sheet, whole);
        return;
    case UNIT_RATE:
        sheet_format(sheet, "%.1f/s", value);
        return;
    case UNIT_SIZE_RATE:
        sheet_size(sheet, whole);
        sheet_html(sheet, "/s");
        return;
    case UNIT_MS:
        sheet_format(sheet, "%.1f ms", value);
        return;
    case UNIT_PERCENT:
        sheet_format(sheet, "%.0f %%", value);
        return;
    case UNIT_SECONDS:
        value_put_duration(&sheet->out, whole * 1000000);
        return;
    }
}

static void put_box(struct sheet *sheet, const struct node_status *status, const struct box *box) {
    sheet_format(sheet, "<section class=card id=\"%s\">\n<h2>%s</h2>\n", box->id, box->title);
    for (size_t i = 0; i < SERIES_MAX && box->series[i] != NULL; i++) {
        sheet_format(sheet, "<figure class=series data-series=\"%s\" hidden></figure>\n", box->series[i]);
    }
    sheet_table_begin(sheet, box->title);
    sheet_html(sheet, "<tbody>\n");
    for (const struct row *row = box->rows; row < box->rows + ROWS_MAX && row->label != NULL; row++) {
        sheet_format(sheet, "<tr><th scope=row>%s<td class=number data-path=\"%s\" data-unit=\"%s\">",
                     row->label, row->path, unit_names[row->unit]);
        dashboard_put_value(sheet, status, row);
        sheet_html(sheet, "\n");
    }
    sheet_table_end(sheet);
    sheet_html(sheet, "</section>\n");
}

static void put_slow(struct sheet *sheet, const struct node_status *status) {
    sheet_html(sheet, "<section aria-live=polite>\n<h2>What is slow, and why</h2>\n<ul id=slow>\n");
    for (size_t i = 0; i < status->slow_count; i++) {
        FILL(sheet, "<li>{string}\n", {.string = status->slow[i].text});
    }
    if (status->slow_count == 0) {
        sheet_html(sheet, "<li>Nothing is held up.\n");
    }
    sheet_html(sheet, "</ul>\n</section>\n");
}

static void dashboard_put_volumes(struct sheet *sheet, const struct node_status *status) {
    sheet_html(sheet, "<h2>Volumes</h2>\n");
    sheet_table_begin(sheet, "Volumes of this archive");
    sheet_html(sheet, "<thead><tr><th>Volume<th class=grow>Place<th>State<th class=number>Captures<th "
                      "class=number>Size<th class=number>Free\n<tbody>");
    for (size_t i = 0; i < status->volumes_count; i++) {
        const struct node_status_volume *volume = &status->volumes[i];
        bool is_up = volume->volume.err == ERR_OK;
        FILL(sheet, "<tr><td>{number}<td class=url>{string}<td>", {.number = volume->volume.number},
             {.string = volume->volume.place});
        sheet_badge(sheet, is_up ? SHEET_GOOD : SHEET_BAD, node_status_volume_state(volume));
        FILL(sheet, "{html}{string}<td class=number>{count}<td class=number>{size}<td class=number>",
             {.string = is_up ? "" : " "}, {.string = is_up ? "" : volume->volume.reason},
             {.number = volume->stat.captures_count}, {.number = volume->stat.size});
        if (volume->has_disk) {
            sheet_size(sheet, volume->free_size);
        }
        sheet_html(sheet, "\n");
    }
    sheet_table_end(sheet);
}

static void put_dashboard(struct sheet *sheet, const struct admin_pages *admin_pages,
                          const struct node_status *status, struct arena *arena) {
    sheet_script(sheet, "dashboard.js");
    put_slow(sheet, status);
    admin_pages_put_ring(sheet, admin_pages, arena);
    admin_pages->table->show_crowd(admin_pages->context, arena, sheet);
    admin_pages->table->show_groups(admin_pages->context, sheet);
    admin_pages->table->show_mirrors(admin_pages->context, sheet);
    sheet_html(sheet, "<div class=cards>\n");
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        if (status->has_search || strcmp(boxes[i].id, "search") != 0) {
            put_box(sheet, status, &boxes[i]);
        }
    }
    sheet_html(sheet, "</div>\n");
    dashboard_put_volumes(sheet, status);
    sheet_html(sheet, "<p class=quiet>For programs: <a href=\"/api/v1/status\">/api/v1/status</a>, "
                      "<a href=\"/api/v1/history\">/api/v1/history</a>, <a "
                      "href=\"/api/v1/ring\">/api/v1/ring</a>, <a href=\"/metrics\">/metrics</a>, "
                      "<a href=\"/health\">/health</a>; on the command line <code>mnemon status</code>.\n");
}

void admin_pages_dashboard(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct arena arena;
    struct sheet sheet;
    arena_init(&arena, ADMIN_PAGES_TEXT_SIZE_MAX);
    const struct node_status *status = admin_pages->table->status(admin_pages->context, &arena);
    if (status == NULL) {
        http_answer_error(request, ERR_MEMORY, NULL);
    } else {
        sheet_begin(&sheet, admin_pages_replay(request), request, "Dashboard", SHEET_DASHBOARD);
        put_dashboard(&sheet, admin_pages, status, &arena);
        sheet_answer(&sheet, STATUS_OK);
    }
    arena_done(&arena);
}
