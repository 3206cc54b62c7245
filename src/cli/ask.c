#include "cli/ask.h"

#include <curl/curl.h>

#include "base/value.h"
#include "base/whole_file.h"
#include "node/admin/token.h"

enum {
    TIMEOUT_MS = 15000,
    URL_TEXT_SIZE_MAX = 16 << 10,
    ANSWER_SIZE_MAX = 16 << 20,
    NAME_SIZE_MAX = 64, /* of a member */
};

static size_t take(char *data, size_t size, size_t count, void *context) {
    struct buf *answer = context;
    return buf_put(answer, bytes_of(data, size * count)) == ERR_OK ? size * count : 0;
}

/* Reads may need the token; a user that cannot read it asks without. */
static struct curl_slist *make_headers(const struct data *data) {
    struct token token;
    char line[TOKEN_SIZE_MAX + 32];
    if (token_load(&token, data->directory, NULL) != ERR_OK) {
        return NULL;
    }
    snprintf(line, sizeof line, "Authorization: Bearer %s", token.text);
    return curl_slist_append(NULL, line);
}

/* The node's own sentence, where it has one. */
static int ask_fail(struct cli *cli, const struct node_file *node, long code, const struct buf *answer) {
    json_t *object = json_loadb((const char *)answer->data, answer->size, 0, NULL);
    const char *text = json_string_value(json_object_get(object, "text"));
    int status = text != NULL ? cli_fail(cli, "%s", text)
                              : cli_fail(cli, "the node at %s answered with status %ld", node->url, code);
    json_decref(object);
    return status;
}

static int fetch(struct cli *cli, const struct data *data, const char *path, struct node_file *node,
                 struct buf *answer) {
    char url[URL_TEXT_SIZE_MAX];
    long code = 0;
    if (node_file_read(data->directory, node, NULL) != ERR_OK) {
        return cli_fail(cli, "no node runs on %s; start it with \"mnemon serve\"", data->directory);
    }
    CURL *curl = curl_easy_init();
    if (curl == NULL) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    struct curl_slist *headers = make_headers(data);
    snprintf(url, sizeof url, "%s%s", node->url, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    if (result != CURLE_OK) {
        return cli_fail(cli, "the node at %s (process %jd) does not answer: %s", node->url,
                        (intmax_t)node->pid, curl_easy_strerror(result));
    }
    return code == 200 ? CLI_DONE : ask_fail(cli, node, code, answer);
}

/* The answer, and the object that it is; NULL after the error. */
static json_t *ask_for(struct cli *cli, const struct data *data, const char *path, struct node_file *node,
                       struct buf *answer) {
    buf_init(answer, ANSWER_SIZE_MAX);
    if (fetch(cli, data, path, node, answer) != CLI_DONE) {
        return NULL;
    }
    json_t *object = json_loadb((const char *)answer->data, answer->size, 0, NULL);
    if (!json_is_object(object)) {
        cli_fail(cli, "the server at %s is not a node of this version", node->url);
        json_decref(object);
        return NULL;
    }
    return object;
}

int ask_show(struct cli *cli, const struct data *data, const char *path, bool is_json, ask_print *print) {
    struct node_file node;
    struct buf answer;
    json_t *object = ask_for(cli, data, path, &node, &answer);
    if (object != NULL && !is_json) {
        buf_clear(&answer);
        print(&answer, &node, object);
    }
    int status = object != NULL ? CLI_DONE : CLI_FAILED;
    if (object != NULL) {
        fwrite(answer.data, 1, answer.size, cli->out);
    }
    json_decref(object);
    buf_done(&answer);
    return status;
}

json_t *ask_object(struct cli *cli, const struct data *data, const char *path) {
    struct node_file node;
    struct buf answer;
    json_t *object = ask_for(cli, data, path, &node, &answer);
    buf_done(&answer);
    return object;
}

int ask_save(struct cli *cli, const struct data *data, const char *path, const char *file) {
    struct node_file node;
    struct buf answer;
    struct err_detail detail = {0};
    buf_init(&answer, ASK_FILE_SIZE_MAX);
    int status = fetch(cli, data, path, &node, &answer);
    if (status == CLI_DONE && strcmp(file, "-") == 0) {
        fwrite(answer.data, 1, answer.size, cli->out);
    } else if (status == CLI_DONE) {
        enum err err = whole_file_replace(file, buf_bytes(&answer), 0644, &detail);
        status = err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    buf_done(&answer);
    return status;
}

void ask_put_argument(struct buf *path, const char *name, const char *value) {
    char *escaped = curl_easy_escape(NULL, value, 0);
    buf_put_format(path, "&%s=%s", name, escaped != NULL ? escaped : "");
    curl_free(escaped);
}

const char *ask_text(const json_t *object, const char *name) {
    const char *value = json_string_value(json_object_get(object, name));
    return value != NULL ? value : "";
}

double ask_number(const json_t *object, const char *name) {
    return json_number_value(json_object_get(object, name));
}

static void ask_put_member(struct buf *out, const json_t *object, struct bytes member) {
    char name[NAME_SIZE_MAX];
    size_t colon = bytes_find_byte(member, ':');
    struct bytes form = bytes_skip(member, colon < member.size ? colon + 1 : member.size);
    snprintf(name, sizeof name, "%.*s", (int)colon, (const char *)member.data);
    double number = ask_number(object, name);
    if (form.size == 0) {
        buf_put_string(out, ask_text(object, name));
    } else if (bytes_equal(form, BYTES("count"))) {
        value_put_count(out, (uint64_t)number);
    } else if (bytes_equal(form, BYTES("size"))) {
        value_put_size(out, (uint64_t)number);
    } else {
        buf_put_format(out, "%.*f", form.data[0] - '0', number);
    }
}

void ask_put(struct buf *out, const json_t *object, const char *text) {
    struct bytes rest = bytes_of_string(text);
    while (rest.size > 0) {
        size_t open = bytes_find_byte(rest, '{');
        size_t close = bytes_find_byte(rest, '}');
        buf_put(out, bytes_slice(rest, 0, open));
        if (open < rest.size) {
            ask_put_member(out, object, bytes_slice(rest, open + 1, close));
        }
        rest = bytes_skip(rest, close < rest.size ? close + 1 : rest.size);
    }
}
