#include <curl/curl.h>

#include "cli/ask.h"
#include "cli/ring.h"

enum { PATH_SIZE_MAX = 8 << 10 };

static void print_places(struct cli *cli, const struct node_file *node, const json_t *answer) {
    (void)node;
    const json_t *places = json_object_get(answer, "places");
    fprintf(cli->out, "key %s, found in %jd hops\n", ask_text(answer, "key"),
            (intmax_t)json_integer_value(json_object_get(answer, "hops")));
    for (size_t i = 0; i < json_array_size(places); i++) {
        const json_t *place = json_array_get(places, i);
        fprintf(cli->out, "  %-24s %s  %s\n", ask_text(place, "address"), ask_text(place, "id"),
                i == 0 ? "owner" : "successor");
    }
}

int ring_lookup(struct cli *cli, const struct data *data, const struct ring_options *options,
                const char *url) {
    struct node_file node;
    struct buf path;
    if (node_file_read(data->directory, &node, NULL) != ERR_OK) {
        return cli_fail(cli, "no node runs on %s; start it with \"mnemon serve\"", data->directory);
    }
    char *escaped = curl_easy_escape(NULL, url, 0);
    buf_init(&path, PATH_SIZE_MAX);
    buf_put_format(&path, "/api/v1/ring/lookup?places=%ju&url=%s",
                   (uintmax_t)(options->places > 0 ? options->places : 1), escaped != NULL ? escaped : "");
    buf_put_byte(&path, '\0');
    int status = path.err == ERR_OK
                     ? ask_show(cli, data, &node, (const char *)path.data, options->json, print_places)
                     : cli_fail(cli, "the URL is too long");
    curl_free(escaped);
    buf_done(&path);
    return status;
}
