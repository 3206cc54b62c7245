#include "cli/decree_await.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/ask.h"
#include "node/ring/deletions.h"
#include "node/transport/ring_files.h"

enum {
    LOOK_EVERY_US = 200000,
    HERE_US = 30000000,  /* a node takes it within a second; a busy machine may need longer */
    REASON_US = 8000000, /* the same if it says why not: it has tried again then */
    THERE_US = 10000000, /* the others hear of it one after the other; the command need not wait for all */
};

/* ---- without a node ---- */

/* Of a deletion: the captures go now, not when a node runs. */
static enum err await_delete(struct decrees *decrees, struct deletions *deletions,
                             struct err_detail *detail) {
    enum err err = deletions_run(deletions, detail);
    decrees_look_again(decrees);
    decrees_beat(decrees);
    return err;
}

static enum err await_obey(const char *directory, const struct decree_sent *sent, struct deletions *deletions,
                           struct err_detail *detail) {
    struct decrees_config config = {.directory = directory, .deletions = deletions};
    struct decrees *decrees = decrees_new(&config);
    struct charter *charter = malloc(sizeof *charter);
    uint8_t *memory = malloc(CHARTER_SIZE_MAX);
    struct sha256 sha256;
    struct bytes encoded;
    uint8_t ring[CHARTER_ID_SIZE];
    enum err err = decrees == NULL || charter == NULL || memory == NULL ? ERR_MEMORY : sha256_init(&sha256);
    if (err == ERR_OK) {
        err = ring_files_read_charter(directory, charter, memory, &encoded, detail);
        if (err == ERR_OK) {
            charter_id(charter, &sha256, ring);
            decrees_set_charter(decrees, charter, ring);
            decrees_beat(decrees);
            err = deletions != NULL ? await_delete(decrees, deletions, detail) : ERR_OK;
        }
        if (err == ERR_OK) {
            bool is_in_force = decrees_are_in_force(decrees, sent->receipt.id, sent->receipt.version, detail);
            err = is_in_force ? ERR_OK : ERR_PERMISSION;
        }
        sha256_done(&sha256);
    }
    free(memory);
    free(charter);
    decrees_free(decrees);
    return err;
}

static const char *await_noun(const struct decree_sent *sent) {
    return sent->kind == DECREE_DELETION ? "deletion of" : "rule for";
}

static void await_print_removed(struct cli *cli, uint64_t count) {
    fprintf(cli->out,
            "%ju %s gone from it; \"mnemon store compact\" on each node takes the bytes off its disk\n",
            (uintmax_t)count, count == 1 ? "capture has" : "captures have");
}

static int await_alone(struct cli *cli, const struct data *data, const struct decree_sent *sent,
                       const char *url, const char *what) {
    struct err_detail detail = {.err = ERR_OK};
    struct deletions *deletions = NULL;
    struct data archive = {.instance = NULL};
    if (sent->kind == DECREE_DELETION) {
        int status = data_open(&archive, cli, data->directory, DATA_WRITE);
        if (status != CLI_DONE) {
            return cli_fail(cli, "the deletion of %s is signed, but not in force here", url);
        }
        deletions = deletions_new(
            &(struct deletions_config){.directory = data->directory, .instance = archive.instance});
    }
    bool is_ready = sent->kind != DECREE_DELETION || deletions != NULL;
    enum err err = is_ready ? await_obey(data->directory, sent, deletions, &detail) : ERR_MEMORY;
    uint64_t removed_count =
        err == ERR_OK && deletions != NULL ? deletions_removed_count(deletions, sent->receipt.id) : 0;
    deletions_free(deletions);
    if (archive.instance != NULL) {
        data_close(&archive);
    }
    if (err != ERR_OK) {
        return cli_fail(cli, "the %s %s is signed, but not in force here: %s", await_noun(sent), url,
                        err_detail_text(&detail, err));
    }
    fprintf(cli->out, "%s %s on this node\n", url, what);
    if (sent->kind == DECREE_DELETION) {
        await_print_removed(cli, removed_count);
    }
    fprintf(cli->out, "no node runs on %s: the others hear of it when \"mnemon serve\" is started\n",
            data->directory);
    return CLI_DONE;
}

/* ---- with a node ---- */

/* The decree as the node has it; NULL: it has not, or an older version. Borrowed from the answer. */
static const json_t *await_find(const json_t *ring, const struct decree_sent *sent) {
    const json_t *list = json_object_get(json_object_get(ring, "services"), "decrees");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *decree = json_array_get(list, i);
        const char *kind = ask_text(decree, "kind");
        bool is_it = bytes_equal(bytes_of_string(ask_text(decree, "name")), sent->name) &&
                     strcmp(kind, decree_kind_name(sent->kind)) == 0 &&
                     strcmp(ask_text(decree, "author"), sent->author) == 0;
        json_int_t version = json_integer_value(json_object_get(decree, "version"));
        if (is_it && version >= 0 && (uint64_t)version >= sent->receipt.version) {
            return decree;
        }
    }
    return NULL;
}

static bool await_is_in_force(const json_t *decree) {
    return json_is_true(json_object_get(decree, "in_force"));
}

static bool await_is_everywhere(const json_t *decree) {
    const json_t *nodes = json_object_get(decree, "nodes");
    return nodes != NULL && ask_number(decree, "confirmed") >= json_number_value(nodes);
}

static void await_print(struct cli *cli, const json_t *decree, const char *url, const char *what) {
    const json_t *nodes = json_object_get(decree, "nodes");
    const json_t *missing = json_object_get(decree, "unconfirmed");
    const json_t *removed = json_object_get(decree, "removed"); /* of a deletion */
    fprintf(cli->out, "%s %s on this node", url, what);
    if (nodes == NULL) {
        fprintf(cli->out, "; the node has not asked others yet: \"mnemon ring status\" says who is there\n");
        if (removed != NULL) {
            await_print_removed(cli, (uint64_t)json_integer_value(removed));
        }
        return;
    }
    fprintf(cli->out, "; %jd of %jd nodes have confirmed it\n",
            (intmax_t)json_integer_value(json_object_get(decree, "confirmed")),
            (intmax_t)json_integer_value(nodes));
    if (removed != NULL) {
        await_print_removed(cli, (uint64_t)json_integer_value(removed));
    }
    for (size_t i = 0; i < json_array_size(missing); i++) {
        const json_t *node = json_array_get(missing, i);
        fprintf(cli->out, "  not confirmed by %s  %s: %s\n", ask_text(node, "address"), ask_text(node, "key"),
                ask_text(node, "why"));
    }
}

static int await_node(struct cli *cli, const struct data *data, const struct decree_sent *sent,
                      const char *url, const char *what) {
    uint64_t begin_us = clock_monotonic_us(&clock_system);
    for (;;) {
        json_t *ring = ask_object(cli, data, "/api/v1/ring");
        if (ring == NULL) {
            return CLI_FAILED;
        }
        const json_t *decree = await_find(ring, sent);
        uint64_t waited_us = clock_monotonic_us(&clock_system) - begin_us;
        bool is_in_force = await_is_in_force(decree);
        const char *why = ask_text(decree, "why_not");
        bool is_applying =
            json_is_true(json_object_get(decree, "applying")); /* many captures take their time */
        begin_us = is_applying ? clock_monotonic_us(&clock_system) : begin_us;
        uint64_t patience_us = is_in_force ? THERE_US : why[0] != '\0' ? REASON_US : HERE_US;
        bool is_over =
            (is_in_force && await_is_everywhere(decree)) || (waited_us > patience_us && !is_applying);
        int status = CLI_DONE;
        if (is_over && is_in_force) {
            await_print(cli, decree, url, what);
        } else if (is_over) {
            status =
                cli_fail(cli, "the %s %s is signed, but not in force on this node: %s", await_noun(sent), url,
                         decree == NULL   ? "the node has not taken it; its log says why"
                         : why[0] != '\0' ? why
                                          : "it does not count, or is not obeyed yet");
        }
        json_decref(ring);
        if (is_over) {
            return status;
        }
        usleep(LOOK_EVERY_US);
    }
}

int decree_await(struct cli *cli, const struct data *data, const struct decree_sent *sent, const char *url,
                 const char *what) {
    struct node_file node;
    return node_file_read(data->directory, &node, NULL) == ERR_OK ? await_node(cli, data, sent, url, what)
                                                                  : await_alone(cli, data, sent, url, what);
}
