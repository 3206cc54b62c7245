#include "cli/store.h"

#include <string.h>

#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/data.h"
#include "cli/output.h"

static int parse_key(struct cli *cli, const char *text, struct key *ret_key) {
    if (key_parse(bytes_of_string(text), ret_key)) {
        return CLI_DONE;
    }
    return cli_usage(cli, &store_command, "\"%s\" is not a content key as \"mnemon store put\" prints them",
                     text);
}

/* ---- get ---- */

static int write_document(struct cli *cli, struct data *data, const struct key *key, const char *path) {
    struct bytes document;
    struct err_detail detail = {0};
    char text[KEY_TEXT_SIZE_MAX];
    enum err err = instance_get(data->session, key, &document, &detail);
    int status;
    struct output output;
    if (err == ERR_NOT_FOUND) {
        status = cli_fail(cli, "there is no document %s", key_format(key, text));
    } else if (err != ERR_OK) {
        status = cli_fail(cli, "%s cannot be read: %s", key_format(key, text), err_detail_text(&detail, err));
    } else if ((status = output_open(&output, cli, path)) == CLI_DONE) {
        output_write(&output, document);
        status = output_close(&output, true);
    }
    return status;
}

static int get_action(struct cli *cli, const struct store_options *options, char **arguments,
                      size_t arguments_count) {
    (void)arguments_count;
    struct key key;
    struct data data;
    int status = parse_key(cli, arguments[0], &key);
    if (status == CLI_DONE) {
        status = data_open(&data, cli, options->data, DATA_READ);
    }
    if (status != CLI_DONE) {
        return status;
    }
    status = write_document(cli, &data, &key, options->output);
    data_close(&data);
    return status;
}

/* ---- rm ---- */

static int remove_keys(struct cli *cli, struct data *data, char **texts, size_t texts_count) {
    int status = CLI_DONE;
    for (size_t i = 0; i < texts_count; i++) {
        struct key key;
        struct err_detail detail = {0};
        bool is_key = key_parse(bytes_of_string(texts[i]), &key);
        ASSERT(is_key); /* rm_action() has looked */
        enum err err = instance_remove(data->session, &key, &detail);
        if (err == ERR_NOT_FOUND) {
            status = cli_fail(cli, "there is no document %s", texts[i]);
        } else if (err != ERR_OK) {
            status = cli_fail(cli, "%s is not removed: %s", texts[i], err_detail_text(&detail, err));
        }
    }
    return status;
}

static int rm_action(struct cli *cli, const struct store_options *options, char **arguments,
                     size_t arguments_count) {
    struct key key;
    struct data data;
    int status = CLI_DONE;
    for (size_t i = 0; i < arguments_count && status == CLI_DONE; i++) {
        status = parse_key(cli, arguments[i], &key);
    }
    if (status == CLI_DONE) {
        status = data_open(&data, cli, options->data, DATA_READ);
    }
    if (status != CLI_DONE) {
        return status;
    }
    status = remove_keys(cli, &data, arguments, arguments_count);
    data_close(&data);
    return status;
}

/* ---- the command ---- */

static const struct action {
    const char *name;
    const char *synopsis; /* of its arguments */
    store_action *run;
    size_t arguments_min;
    size_t arguments_max;
} actions[] = {
    {"put", "FILE…|-", store_put, 1, SIZE_MAX}, {"get", "KEY", get_action, 1, 1},
    {"rm", "KEY…", rm_action, 1, SIZE_MAX},     {"stat", "", store_stat, 0, 0},
    {"verify", "", store_verify, 0, 0},         {"compact", "", store_compact, 0, 0},
    {"reindex", "", store_reindex, 0, 0},
};

enum { ACTIONS_COUNT = sizeof actions / sizeof *actions };

static const struct action *find_action(const char *name) {
    for (size_t i = 0; i < ACTIONS_COUNT; i++) {
        if (strcmp(actions[i].name, name) == 0) {
            return &actions[i];
        }
    }
    return NULL;
}

static int unknown_action(struct cli *cli, const char *name) {
    struct nearest nearest;
    nearest_init(&nearest, bytes_of_string(name));
    for (size_t i = 0; i < ACTIONS_COUNT; i++) {
        nearest_offer(&nearest, actions[i].name);
    }
    char hint[NEAREST_HINT_SIZE];
    return cli_usage(cli, &store_command, "there is no action \"%s\"%s", name,
                     nearest_hint(&nearest, "", hint));
}

static int store_run(struct cli *cli, const void *values, char **arguments, size_t arguments_count) {
    const struct action *action = find_action(arguments[0]);
    if (action == NULL) {
        return unknown_action(cli, arguments[0]);
    }
    size_t count = arguments_count - 1;
    if (count < action->arguments_min) {
        return cli_usage(cli, &store_command, "an argument is missing: mnemon store %s %s", action->name,
                         action->synopsis);
    }
    if (count > action->arguments_max) {
        return cli_usage(cli, &store_command, "unexpected argument \"%s\"",
                         arguments[1 + action->arguments_max]);
    }
    return action->run(cli, values, arguments + 1, count);
}

static const char *store_word(size_t index) {
    return index < ACTIONS_COUNT ? actions[index].name : NULL;
}

static const char *const modes[] = {
    [STORE_REGULAR] = "regular",
    [STORE_COMPARE] = "compare",
    [STORE_FORCE_NEW] = "force-new",
    NULL,
};

static const struct store_options store_defaults = {.dead = 20, .volume = STORE_VOLUME_ANY};

static const struct option store_options[] = {
    OPTION(TEXT, struct store_options, data, "data", "DIR", DATA_HELP),
    OPTION(CHOICE, struct store_options, mode, "mode", "MODE",
           "put: what counts as a duplicate: equal digest and size, equal bytes, or nothing",
           .choices = modes),
    OPTION(TEXT, struct store_options, url, "url", "URL", "put: store it as a capture of this URL, made now"),
    OPTION(TEXT, struct store_options, type, "type", "MIME",
           "put: the media type (application/octet-stream)"),
    OPTION(NUMBER, struct store_options, volume, "volume", "N",
           "put: the volume for a new document (chosen by its digest); a duplicate stays in its volume",
           .max = KEY_VOLUMES_MAX - 1),
    OPTION(TEXT, struct store_options, output, "output", "FILE",
           "get: write to this file instead of standard output", .letter = 'o'),
    OPTION(
        NUMBER, struct store_options, dead, "dead", "PERCENT",
        "compact: rewrite segments of which at least this percentage is dead (20); 0: all with anything dead",
        .max = 100),
    OPTION(FLAG, struct store_options, quiet, "quiet", NULL, "verify, reindex: show no progress",
           .letter = 'q'),
    OPTION(FLAG, struct store_options, json, "json", NULL, "put, stat, verify, compact, reindex: print JSON"),
    {0},
};

const struct command store_command = {
    .name = "store",
    .summary = "store, read, remove and check documents by content key",
    .synopsis = "ACTION [OPTION…] [ARGUMENT…]",
    .details = "The content store below the archive: every document is stored once and identified by the "
               "SHA-256 of its bytes.\n\n"
               "  put FILE…|-   store files, or standard input, and print a content key for each\n"
               "  get KEY       write a document to standard output\n"
               "  rm KEY…       drop one reference each; a document without references is gone\n"
               "  stat          show how many documents there are and how much disk they take\n"
               "  verify        read everything again and report damage\n"
               "  compact       free the disk space of removed documents\n"
               "  reindex       rebuild the index from the segments alone",
    .options = store_options,
    .options_size = sizeof(struct store_options),
    .defaults = &store_defaults,
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .word = store_word,
    .run = store_run,
};
