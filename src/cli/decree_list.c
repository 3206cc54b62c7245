/* The audit trail of deletions: what the node says, or, if none runs, what lies on the disk. */
#include <stdlib.h>

#include "base/utc.h"
#include "cli/ask.h"
#include "cli/decree.h"
#include "node/ring/decrees.h"
#include "node/ring/deletions.h"

enum { JSON_SIZE_MAX = 256 << 20 };

static void decree_list_print_urls(struct cli *cli, const json_t *decree) {
    const json_t *urls = json_object_get(decree, "urls");
    for (size_t i = 0; i < json_array_size(urls); i++) {
        fprintf(cli->out, "%s%s", i == 0 ? "" : "\n", json_string_value(json_array_get(urls, i)));
    }
    fputc('\n', cli->out);
}

static void decree_list_print(struct cli *cli, const json_t *decree) {
    char time[UTC_RFC3339_SIZE];
    json_int_t version = json_integer_value(json_object_get(decree, "version"));
    const char *from = ask_text(decree, "from");
    const char *finished = ask_text(decree, "finished");
    const json_t *nodes = json_object_get(decree, "nodes");
    decree_list_print_urls(cli, decree);
    fprintf(cli->out, "  captures   %s%suntil %s\n", from[0] != '\0' ? from : "", from[0] != '\0' ? " " : "",
            ask_text(decree, "to"));
    fprintf(cli->out, "  reason     %s\n", ask_text(decree, "reason"));
    fprintf(cli->out, "  decreed    %s by %s\n",
            version > 0 && version <= UTC_MAX_US ? utc_format_rfc3339(version, time)
                                                 : "at no time that exists",
            ask_text(decree, "author"));
    if (json_is_true(json_object_get(decree, "withdrawn"))) {
        fprintf(cli->out, "  here       withdrawn\n");
    } else if (finished[0] != '\0') {
        fprintf(cli->out, "  here       %jd captures removed, in force since %s\n",
                (intmax_t)json_integer_value(json_object_get(decree, "removed")), finished);
    } else {
        fprintf(cli->out, "  here       not in force: %s\n", ask_text(decree, "why_not"));
    }
    if (nodes != NULL) {
        fprintf(cli->out, "  confirmed  by %jd of %jd nodes\n",
                (intmax_t)json_integer_value(json_object_get(decree, "confirmed")),
                (intmax_t)json_integer_value(nodes));
    }
}

static int decree_list_order(const void *a, const void *b) {
    json_int_t left = json_integer_value(json_object_get(*(json_t *const *)a, "version"));
    json_int_t right = json_integer_value(json_object_get(*(json_t *const *)b, "version"));
    return left < right ? -1 : left > right;
}

/* In the order in which they were decreed. */
static int decree_list_all(struct cli *cli, const json_t *decrees, bool is_json) {
    size_t count = json_array_size(decrees);
    size_t shown = 0;
    const json_t **list = calloc(count + 1, sizeof *list);
    if (list == NULL) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *decree = json_array_get(decrees, i);
        if (strcmp(ask_text(decree, "kind"), "deletion") == 0) {
            list[shown++] = decree;
        }
    }
    qsort(list, shown, sizeof *list, decree_list_order);
    for (size_t i = 0; i < shown; i++) {
        if (is_json) {
            char *line = json_dumps(list[i], JSON_COMPACT | JSON_PRESERVE_ORDER);
            fprintf(cli->out, "%s\n", line != NULL ? line : "");
            free(line);
        } else {
            decree_list_print(cli, list[i]);
        }
    }
    if (shown == 0 && !is_json) {
        fprintf(cli->out, "nothing has been deleted from this ring\n");
    }
    free(list);
    return CLI_DONE;
}

static enum err decree_list_read(const char *directory, struct buf *out, struct err_detail *detail) {
    struct deletions *deletions = deletions_new(&(struct deletions_config){.directory = directory});
    struct decrees *decrees = NULL;
    struct json json;
    enum err err = deletions == NULL ? ERR_MEMORY : decrees_open(directory, deletions, &decrees, detail);
    if (err == ERR_OK) {
        json_begin(&json, out);
        decrees_put_json(decrees, &json);
        json_end(&json);
        err = out->err;
        decrees_free(decrees);
    }
    deletions_free(deletions);
    return err;
}

static int decree_list_alone(struct cli *cli, const struct data *data, bool is_json) {
    struct err_detail detail = {.err = ERR_OK};
    struct buf text;
    buf_init(&text, JSON_SIZE_MAX);
    enum err err = decree_list_read(data->directory, &text, &detail);
    json_t *said = err == ERR_OK ? json_loadb((const char *)text.data, text.size, 0, NULL) : NULL;
    int status = said != NULL
                     ? decree_list_all(cli, json_object_get(said, "decrees"), is_json)
                     : cli_fail(cli, "%s", err_detail_text(&detail, err != ERR_OK ? err : ERR_MEMORY));
    json_decref(said);
    buf_done(&text);
    return status;
}

int decree_list_deletions(struct cli *cli, const struct data *data, bool is_json) {
    struct node_file node;
    if (node_file_read(data->directory, &node, NULL) != ERR_OK) {
        return decree_list_alone(cli, data, is_json);
    }
    json_t *ring = ask_object(cli, data, "/api/v1/ring");
    if (ring == NULL) {
        return CLI_FAILED;
    }
    const json_t *decrees = json_object_get(json_object_get(ring, "services"), "decrees");
    int status = decree_list_all(cli, decrees, is_json);
    json_decref(ring);
    return status;
}
