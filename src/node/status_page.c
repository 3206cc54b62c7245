#include "node/status_page.h"

#include <dirent.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/value.h"
#include "crawl/job.h"

enum { PAGE_SIZE_MAX = 4 << 20, PATH_SIZE_MAX = 4096 + JOB_NAME_SIZE_MAX + 32, STATUS_OK = 200 };

struct status_page {
    const char *directory;
    struct instance *instance;
    pthread_mutex_t lock;
    struct instance_session *session; /* lock */
};

struct status_page *status_page_new(struct instance *instance, const char *directory) {
    struct status_page *page = calloc(1, sizeof *page);
    if (page == NULL) {
        return NULL;
    }
    page->directory = directory;
    page->instance = instance;
    page->session = instance_session_new(instance);
    if (page->session == NULL) {
        free(page);
        return NULL;
    }
    pthread_mutex_init(&page->lock, NULL);
    return page;
}

void status_page_free(struct status_page *page) {
    instance_session_free(page->session);
    pthread_mutex_destroy(&page->lock);
    free(page);
}

static void put_escaped(struct buf *out, struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '<' || byte == '>' || byte == '&' || byte == '"') {
            buf_put_format(out, "&#%u;", byte);
        } else {
            buf_put_byte(out, byte);
        }
    }
}

static void put_cell(struct buf *out, uint64_t count) {
    buf_put_string(out, "<td class=n>");
    value_put_count(out, count);
}

/* ---- volumes ---- */

static void put_volume(struct status_page *page, size_t index, struct buf *out) {
    struct instance_volume volume;
    struct shelf_stat stat;
    instance_volume(page->instance, index, &volume);
    buf_put_format(out, "<tr><td>%u<td>", volume.number);
    put_escaped(out, bytes_of_string(volume.place));
    if (volume.err != ERR_OK || instance_stat(page->session, index, &stat, NULL) != ERR_OK) {
        buf_put_string(out, "<td colspan=3>is down\n");
        return;
    }
    put_cell(out, stat.blocks_count);
    put_cell(out, stat.captures_count);
    buf_put_string(out, "<td class=n>");
    value_put_size(out, stat.size);
    buf_put_string(out, "\n");
}

static void put_volumes(struct status_page *page, struct buf *out) {
    buf_put_string(
        out,
        "<h2>Volumes</h2><table><tr><th>number<th>place<th>documents, about<th>captures, about<th>size\n");
    pthread_mutex_lock(&page->lock);
    for (size_t i = 0; i < instance_volumes_count(page->instance); i++) {
        put_volume(page, i, out);
    }
    pthread_mutex_unlock(&page->lock);
    buf_put_string(out, "</table>\n");
}

/* ---- jobs ---- */

static uint64_t number_of(const json_t *state, const char *name) {
    json_int_t value = json_integer_value(json_object_get(state, name));
    return value > 0 ? (uint64_t)value : 0;
}

static void put_job(const struct status_page *page, const char *name, struct buf *out) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/jobs/%s/state.json", page->directory, name);
    json_t *state = json_load_file(path, 0, NULL);
    const char *word = json_string_value(json_object_get(state, "state"));
    buf_put_string(out, "<tr><td>");
    put_escaped(out, bytes_of_string(name));
    buf_put_string(out, "<td>");
    put_escaped(out, bytes_of_string(word != NULL ? word : "new"));
    put_cell(out, number_of(state, "visit"));
    put_cell(out, number_of(state, "known"));
    put_cell(out, number_of(state, "waiting"));
    put_cell(out, number_of(state, "stored"));
    put_cell(out, number_of(state, "failed"));
    buf_put_string(out, "<td class=n>");
    value_put_size(out, number_of(state, "received_bytes"));
    buf_put_string(out, "\n");
    json_decref(state);
}

static void put_jobs(const struct status_page *page, struct buf *out) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/jobs", page->directory);
    DIR *directory = opendir(path);
    const struct dirent *item;
    buf_put_string(
        out,
        "<h2>Jobs</"
        "h2><table><tr><th>name<th>state<th>visit<th>known<th>waiting<th>stored<th>failed<th>received\n");
    while (directory != NULL && (item = readdir(directory)) != NULL) {
        if (job_name_is_valid(bytes_of_string(item->d_name))) {
            put_job(page, item->d_name, out);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    buf_put_string(out, "</table>\n<p><code>mnemon job add https://example.org/</code> adds one.\n");
}

static void answer(struct http_request *request) {
    struct status_page *page = http_request_context(request);
    struct buf out;
    buf_init(&out, PAGE_SIZE_MAX);
    buf_put_string(&out,
                   "<!DOCTYPE html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=5>"
                   "<meta name=viewport content=\"width=device-width\"><title>mnemon</title><style>"
                   "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
                   "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;"
                   "border-bottom:1px solid #ccc}.n{text-align:right}h1{letter-spacing:.05em}</style>"
                   "<h1>mnemon</h1><p>This node archives. What it holds:\n");
    put_volumes(page, &out);
    put_jobs(page, &out);
    if (out.err != ERR_OK) {
        http_answer_error(request, out.err, "the page is too long");
    } else {
        http_add_header(request, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
        http_answer(request, STATUS_OK, "text/html; charset=utf-8", buf_bytes(&out));
    }
    buf_done(&out);
}

struct http_route status_page_route(struct status_page *page) {
    return (struct http_route){.method = "GET", .path = "/", .context = page, .answer = answer};
}
