#include "node/node_file.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/utc.h"
#include "base/whole_file.h"

enum { PATH_SIZE_MAX = 4096 + 32, FILE_SIZE_MAX = 1024, MODE = 0644 };

static void node_file_path_of(const char *directory, char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/node.json", directory);
}

/* "All addresses" is none that one could go to. */
static struct address reachable(const struct address *http) {
    static const uint8_t any[16] = {0};
    struct address address = *http;
    if (address_is_ipv4(http) && memcmp(http->ip + 12, any, 4) == 0) {
        address = address_ipv4(127, 0, 0, 1, http->port);
    } else if (memcmp(http->ip, any, sizeof any) == 0) {
        address.ip[15] = 1;
    }
    return address;
}

enum err node_file_write(const char *directory, const struct address *http, int64_t now_us,
                         struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    char text[ADDRESS_TEXT_SIZE_MAX];
    struct address address = reachable(http);
    struct buf out;
    struct json json;
    buf_init(&out, FILE_SIZE_MAX);
    json_begin(&json, &out);
    json_format(&json, "url", "http://%s", address_format(&address, text));
    json_signed(&json, "pid", getpid());
    json_time(&json, "started", now_us);
    json_end(&json);
    buf_put_byte(&out, '\n');
    node_file_path_of(directory, path);
    enum err err = out.err == ERR_OK ? whole_file_replace(path, buf_bytes(&out), MODE, detail) : out.err;
    buf_done(&out);
    return err;
}

void node_file_remove(const char *directory) {
    char path[PATH_SIZE_MAX];
    node_file_path_of(directory, path);
    unlink(path);
}

enum err node_file_read(const char *directory, struct node_file *ret_file, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    node_file_path_of(directory, path);
    if (access(path, F_OK) != 0) {
        return err_set(detail, ERR_NOT_FOUND, "no node runs on %.180s", directory);
    }
    json_t *object = json_load_file(path, 0, NULL);
    const char *url = json_string_value(json_object_get(object, "url"));
    const char *started = json_string_value(json_object_get(object, "started"));
    struct node_file file = {.pid = (pid_t)json_integer_value(json_object_get(object, "pid"))};
    bool is_sound = url != NULL && started != NULL && strlen(url) < sizeof file.url &&
                    strncmp(url, "http://", 7) == 0 && file.pid > 0 &&
                    utc_parse_rfc3339(bytes_of_string(started), &file.started_us);
    if (is_sound) {
        snprintf(file.url, sizeof file.url, "%s", url);
    }
    json_decref(object);
    if (!is_sound) {
        return err_set(detail, ERR_INVALID, "%.180s says nothing sensible: remove it", path);
    }
    *ret_file = file;
    if (kill(file.pid, 0) != 0 && errno == ESRCH) {
        return err_set(detail, ERR_CLOSED, "no node runs on %.180s: the last one ended without a word",
                       directory);
    }
    return ERR_OK;
}
