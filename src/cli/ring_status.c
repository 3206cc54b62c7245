#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/value.h"
#include "cli/ask.h"
#include "cli/ring.h"
#include "net/identity.h"
#include "node/transport/ring_files.h"
#include "node/transport/ring_json.h"

/* ---- lookup ---- */

enum { PATH_SIZE_MAX = 8 << 10 };

/* A node of version 0.1 calls them places. */
static const json_t *vnodes_of(const json_t *answer) {
    const json_t *vnodes = json_object_get(answer, "vnodes");
    return vnodes != NULL ? vnodes : json_object_get(answer, "places");
}

static void print_vnodes(struct buf *out, const struct node_file *node, const json_t *answer) {
    (void)node;
    const json_t *vnodes = vnodes_of(answer);
    buf_put_format(out, "key %s, found in %jd hops\n", ask_text(answer, "key"),
                   (intmax_t)json_integer_value(json_object_get(answer, "hops")));
    for (size_t i = 0; i < json_array_size(vnodes); i++) {
        const json_t *vnode = json_array_get(vnodes, i);
        buf_put_format(out, "  %-24s %s  %s\n", ask_text(vnode, "address"), ask_text(vnode, "id"),
                       i == 0 ? "owner" : "successor");
    }
}

int ring_lookup(struct cli *cli, const struct data *data, const struct ring_options *options,
                const char *url) {
    struct buf path;
    buf_init(&path, PATH_SIZE_MAX);
    buf_put_format(&path, "/api/v1/ring/lookup?places=%ju",
                   (uintmax_t)(options->vnodes > 0 ? options->vnodes : 1));
    ask_put_argument(&path, "url", url);
    const char *text = buf_string(&path);
    int status = text != NULL ? ask_show(cli, data, text, options->json, print_vnodes)
                              : cli_fail(cli, "the URL is too long");
    buf_done(&path);
    return status;
}

enum { LINE_SIZE_MAX = 1 << 20, FINGERS_SHOWN_MAX = 16, NODES_SHOWN_MAX = 100 };

/* ---- of a running node: what /api/v1/ring says ---- */

/* Who acts for the ring, if not its founder alone. */
static void put_stewards(struct buf *line, const json_t *charter) {
    const json_t *stewards = json_object_get(charter, "stewards");
    const char *power;
    json_t *needed;
    bool is_first = true;
    if (ask_number(charter, "generation") == 0) {
        return;
    }
    buf_put_format(line, "stewards  %zu; must sign:", json_array_size(stewards));
    json_object_foreach(json_object_get(charter, "needed"), power, needed) {
        buf_put_format(line, "%s %s %jd", is_first ? "" : ",", power, (intmax_t)json_integer_value(needed));
        is_first = false;
    }
    buf_put_string(line, "\n");
    for (size_t i = 0; i < json_array_size(stewards); i++) {
        buf_put_format(line, "          %s\n", json_string_value(json_array_get(stewards, i)));
    }
}

static void put_charter(struct buf *line, const json_t *charter) {
    ask_put(line, charter, "ring      {name}, version {version:0}, ");
    buf_put_string(line, json_is_true(json_object_get(charter, "open")) ? "open" : "by invitation");
    ask_put(line, charter,
            "; replicas {replicas:0}, witnesses {witnesses:0}, lists of {list_size:0}, mapping by {mapping}, "
            "every ");
    value_put_duration(line, (uint64_t)(ask_number(charter, "period_seconds") * 1e6));
    const json_t *scope = json_object_get(charter, "scope");
    buf_put_string(line, json_array_size(scope) == 0 ? ", any URL\n" : ", only");
    for (size_t i = 0; i < json_array_size(scope); i++) {
        buf_put_format(line, " %s%s", json_string_value(json_array_get(scope, i)),
                       i + 1 == json_array_size(scope) ? "\n" : "");
    }
    ask_put(line, charter, "id        {id}, founder {founder}\n");
    put_stewards(line, charter);
    size_t removed = json_array_size(json_object_get(charter, "removed"));
    if (removed > 0) {
        buf_put_format(line, "removed   %zu keys\n", removed);
    }
}

static void put_vnodes(struct buf *line, const json_t *ring) {
    const json_t *vnodes = vnodes_of(ring);
    for (size_t i = 0; i < json_array_size(vnodes); i++) {
        const json_t *vnode = json_array_get(vnodes, i);
        buf_put_format(line, "vnode %-3.0f %s, %.2f %% of the keys, %s\n", ask_number(vnode, "index"),
                       ask_text(vnode, "id"), 100 * ask_number(vnode, "share"), ask_text(vnode, "health"));
    }
}

static void put_peers(struct buf *line, const json_t *ring, const char *name, const char *title,
                      size_t shown_max) {
    const json_t *peers = json_object_get(ring, name);
    size_t count = json_array_size(peers);
    if (count == 0) {
        return;
    }
    buf_put_format(line, "\n%s\n", title);
    for (size_t i = 0; i < count && i < shown_max; i++) {
        const json_t *peer = json_array_get(peers, i);
        const json_t *rtt = json_object_get(peer, "rtt_milliseconds");
        buf_put_format(line, "  %-24s %s  ", ask_text(peer, "address"), ask_text(peer, "id"));
        if (json_is_number(rtt)) {
            buf_put_format(line, "%7.2f ms", json_number_value(rtt));
        } else {
            buf_put_string(line, "         -");
        }
        buf_put_format(line, "  %s\n", ask_text(peer, "role"));
    }
    if (count > shown_max) {
        buf_put_format(line, "  and %zu more\n", count - shown_max);
    }
}

/* What each node runs and speaks. A node of version 0.2 does not say. */
static void put_nodes(struct buf *line, const json_t *ring) {
    const json_t *nodes = json_object_get(ring, "nodes");
    size_t count = json_array_size(nodes);
    if (count == 0) {
        return;
    }
    buf_put_string(line, "\nNodes:\n");
    for (size_t i = 0; i < count && i < NODES_SHOWN_MAX; i++) {
        const json_t *node = json_array_get(nodes, i);
        const char *site = ask_text(node, "site"); /* a light member stands nowhere */
        buf_put_format(line, "  %-24s %s%s%s%s\n", ask_text(node, "address"), ask_text(node, "text"),
                       site[0] != '\0' ? ", site " : "", site,
                       json_is_true(json_object_get(node, "self")) ? ", this node" : "");
    }
    if (count > NODES_SHOWN_MAX) {
        buf_put_format(line, "  and %zu more\n", count - NODES_SHOWN_MAX);
    }
}

/* What nodes say of themselves, and how far the jobs of the ring are. A node of version 0.2 has neither. */
static void put_reports(struct buf *line, const json_t *ring, const char *name, const char *member,
                        const char *title) {
    const json_t *list = json_object_get(json_object_get(ring, "reports"), name);
    size_t count = json_array_size(list);
    if (count == 0) {
        return;
    }
    buf_put_format(line, "\n%s\n", title);
    for (size_t i = 0; i < count && i < NODES_SHOWN_MAX; i++) {
        const json_t *item = json_array_get(list, i);
        buf_put_format(line, "  %-24s %s\n", ask_text(item, member), ask_text(item, "text"));
    }
    if (count > NODES_SHOWN_MAX) {
        buf_put_format(line, "  and %zu more\n", count - NODES_SHOWN_MAX);
    }
}

/* What came and was thrown away, by reason; nothing if nothing was. */
static void put_dropped(struct buf *line, const json_t *ring) {
    static const struct {
        const char *part;
        const char *name;
        const char *words;
    } rows[] = {
        {"datagrams", "malformed", "no datagrams"},
        {"datagrams", "short", "too short"},
        {"datagrams", "forged", "forged"},
        {"datagrams", "replayed", "replayed"},
        {"datagrams", "other_version", "of another version"},
        {"datagrams", "other_clock", "with a wrong time"},
        {"datagrams", "limited", "too many of one address"},
        {"datagrams", "flooding", "too many of one peer"},
        {"datagrams", "strange", "too many strangers"},
        {"members", "malformed", "no greetings"},
        {"members", "turned_away", "of no member"},
        {"counters", "malformed", "no messages"},
        {"counters", "foreign", "of other rings"},
        {"counters", "unasked", "unasked for"},
    };
    bool is_first = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double count = ask_number(json_object_get(ring, rows[i].part), rows[i].name);
        if (count > 0) {
            buf_put_format(line, "%s%.0f %s", is_first ? "dropped   " : ", ", count, rows[i].words);
            is_first = false;
        }
    }
    buf_put_string(line, is_first ? "" : "\n");
}

static void put_complaints(struct buf *line, const json_t *ring) {
    const json_t *complaints = json_object_get(ring, "complaints");
    if (json_array_size(complaints) > 0) {
        buf_put_string(line, "\nRefused and blamed:\n");
    }
    for (size_t i = 0; i < json_array_size(complaints); i++) {
        ask_put(line, json_array_get(complaints, i), "  {last}  {text}\n");
    }
}

/* What the nodes do together, a line each. */
static void put_sentences(struct buf *line, const json_t *ring) {
    json_t *sentences = json_object_get(json_object_get(ring, "services"), "sentences");
    const char *name;
    json_t *sentence;
    json_object_foreach(sentences, name, sentence) {
        const char *value = json_string_value(sentence);
        buf_put_format(line, "%-9s %s\n", name, value != NULL ? value : "");
    }
}

static void print_ring(struct buf *out, const struct node_file *node, const json_t *ring) {
    (void)node;
    const json_t *charter = json_object_get(ring, "charter");
    if (json_is_object(charter)) {
        put_charter(out, charter);
    }
    const char *address = ask_text(ring, "address");
    buf_put_format(out, "node      %s%s%s\n", address, address[0] != '\0' ? ", " : "", ask_text(ring, "key"));
    const char *second = ask_text(ring, "second_address");
    if (second[0] != '\0') {
        buf_put_format(out, "also      at %s\n", second);
    }
    const char *listening = ask_text(ring, "listening");
    if (strcmp(listening, address) != 0) {
        buf_put_format(out, "listens   at %s\n", listening);
    }
    const json_t *port_map = json_object_get(ring, "port_map");
    if (json_is_object(port_map)) {
        buf_put_format(out, "port      %s\n", ask_text(port_map, "text"));
    }
    buf_put_format(out, "state     %s\n", ask_text(ring, "text"));
    if (json_is_true(json_object_get(ring, "light"))) {
        buf_put_format(out, "knows     %.0f virtual nodes of others\n", ask_number(ring, "known"));
    } else if (json_is_array(vnodes_of(ring))) {
        buf_put_format(out, "size      about %.0f virtual nodes, %.0f known, %s\n",
                       ask_number(ring, "estimated_size"), ask_number(ring, "known"),
                       strcmp(ask_text(ring, "mode"), "small") == 0 ? "small: all nodes know each other"
                                                                    : ask_text(ring, "mode"));
    }
    put_sentences(out, ring);
    put_dropped(out, ring);
    put_vnodes(out, ring);
    put_peers(out, ring, "neighbours", "Neighbours:", SIZE_MAX);
    put_peers(out, ring, "fingers", "Fingers:", FINGERS_SHOWN_MAX);
    put_nodes(out, ring);
    put_reports(out, ring, "nodes", "address", "What they say of themselves:");
    put_reports(out, ring, "jobs", "job", "Jobs of the ring, all nodes together:");
    put_complaints(out, ring);
}

/* ---- without a node: its key, and the charter ---- */

static int show_files(struct cli *cli, const struct data *data, bool is_json) {
    struct err_detail detail = {0};
    struct identity identity;
    char key[IDENTITY_TEXT_SIZE];
    struct buf out;
    struct json json;
    struct bytes encoded;
    struct charter *charter = malloc(sizeof *charter + CHARTER_SIZE_MAX);
    if (charter == NULL) {
        return cli_fail(cli, "%s", err_text(ERR_MEMORY));
    }
    uint8_t *memory = (uint8_t *)(charter + 1);
    (void)data_make_directory(data); /* a machine that shall be invited has a key first */
    enum err err = identity_load(&identity, data->directory, &detail);
    bool has_key = err == ERR_OK;
    if (has_key) {
        identity_key_format(identity.key, key);
        identity_done(&identity);
        err = ring_files_read_charter(data->directory, charter, memory, &encoded, &detail);
    }
    if (!has_key || (err != ERR_OK && err != ERR_NOT_FOUND)) {
        free(charter);
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    buf_init(&out, LINE_SIZE_MAX);
    json_begin(&json, &out);
    json_bool(&json, "running", false);
    json_text(&json, "key", key);
    ring_json_put_charter(err == ERR_OK ? charter : NULL, &json);
    json_end(&json);
    buf_put_byte(&out, '\n');
    if (!is_json) {
        json_t *ring = json_loadb((const char *)out.data, out.size, 0, NULL);
        buf_clear(&out);
        if (err == ERR_OK) {
            put_charter(&out, json_object_get(ring, "charter"));
        } else {
            buf_put_string(&out, "ring      none; create one with \"mnemon ring create\" or join one with "
                                 "\"mnemon serve --join\"\n");
        }
        buf_put_format(&out, "node      %s, not running\n", key);
        json_decref(ring);
    }
    cli_write(cli, &out);
    free(charter);
    return CLI_FAILED;
}

int ring_status(struct cli *cli, const struct data *data, const struct ring_options *options) {
    struct node_file node;
    if (node_file_read(data->directory, &node, NULL) == ERR_OK) {
        return ask_show(cli, data, "/api/v1/ring", options->json, print_ring);
    }
    return show_files(cli, data, options->json);
}
