#include "cli/ring.h"

#include "cli/commands.h"
#include "cli/decree.h"
#include "node/node_file.h"
#include "node/transport/ring_files.h"
#include "node/transport/transport.h"

static const char *const actions[] = {"create", "invite", "status",   "amend",   "remove",
                                      "leave",  "lookup", "takedown", "restore", NULL};
static const char *const jobs_words[] = {"members", "founder", NULL};

static const char *ring_word(size_t index) {
    return actions[index];
}

/* Leaving and crashing are the same thing to a ring: it is enough that the node no longer comes back. */
static int leave(struct cli *cli, const struct data *data) {
    struct node_file node;
    struct err_detail detail = {0};
    if (node_file_read(data->directory, &node, NULL) == ERR_OK) {
        return cli_fail(cli, "a node runs on %s (process %jd); stop it first", data->directory,
                        (intmax_t)node.pid);
    }
    enum err err = ring_files_leave(data->directory, &detail);
    if (err != ERR_OK) {
        return cli_fail(cli, "%s", err_detail_text(&detail, err));
    }
    fprintf(cli->out, "left; what was known of the ring is kept in %s/ring/*.left\n", data->directory);
    return CLI_DONE;
}

/* An action, and how many arguments it takes. */
static int check_arguments(struct cli *cli, const char *action, size_t count) {
    size_t min = 0;
    size_t max = 0;
    if (strcmp(action, "create") == 0 || strcmp(action, "lookup") == 0 || strcmp(action, "takedown") == 0 ||
        strcmp(action, "restore") == 0) {
        min = max = 1;
    } else if (strcmp(action, "remove") == 0) {
        min = 1;
        max = SIZE_MAX;
    }
    if (count < min) {
        return cli_usage(cli, &ring_command, "%s",
                         action[0] == 'c'   ? "a ring needs a name: mnemon ring create NAME"
                         : action[2] != 'm' ? "which URL? mnemon ring lookup|takedown|restore URL"
                                            : "which key? \"mnemon ring status\" shows them");
    }
    return count <= max ? CLI_DONE : cli_usage(cli, &ring_command, "\"%s\" takes fewer arguments", action);
}

static int ring_run(struct cli *cli, const void *values, char **arguments, size_t arguments_count) {
    const struct ring_options *options = values;
    const char *action = arguments[0];
    struct data data;
    size_t index = 0;
    while (actions[index] != NULL && strcmp(actions[index], action) != 0) {
        index++;
    }
    if (actions[index] == NULL) {
        return cli_usage(cli, &ring_command,
                         "unknown action \"%s\": create, invite, status, amend, remove, leave, lookup, "
                         "takedown or restore",
                         action);
    }
    int status = check_arguments(cli, action, arguments_count - 1);
    if (status == CLI_DONE) {
        status = data_find(&data, cli, options->data);
    }
    if (status != CLI_DONE) {
        return status;
    }
    switch (index) {
    case 0:
        return ring_create(cli, &data, options, arguments[1]);
    case 1:
        return ring_invite(cli, &data, options);
    case 2:
        return ring_status(cli, &data, options);
    case 3:
        return ring_amend(cli, &data, options);
    case 4:
        return ring_remove(cli, &data, arguments + 1, arguments_count - 1);
    case 5:
        return leave(cli, &data);
    case 6:
        return ring_lookup(cli, &data, options, arguments[1]);
    case 7:
        return decree_takedown(cli, &data, arguments[1]);
    default:
        return decree_restore(cli, &data, arguments[1]);
    }
}

static const struct ring_options ring_defaults = {
    .mapping = RING_NOT_GIVEN,
    .jobs = RING_NOT_GIVEN,
    .expires_us = UINT64_MAX,
};

static const struct option ring_options[] = {
    OPTION(TEXT, struct ring_options, data, "data", "DIR", DATA_HELP),
    OPTION(NUMBER, struct ring_options, replicas, "replicas", "N",
           "create, amend: how many nodes keep a document (6)", .min = 1, .max = CHARTER_REPLICAS_MAX),
    OPTION(NUMBER, struct ring_options, witnesses, "witnesses", "N",
           "create, amend: how many of them fetch it from its origin; the others copy (1)", .min = 1,
           .max = CHARTER_REPLICAS_MAX),
    OPTION(NUMBER, struct ring_options, list_size, "list-size", "N",
           "create: how many places after its own a node watches (8); cannot be changed later", .min = 2,
           .max = CHARTER_LIST_SIZE_MAX),
    OPTION(CHOICE, struct ring_options, mapping, "mapping", "WHAT",
           "create: what decides who keeps a document: its url (the default), its host, or its section, the "
           "host and the first part of the path; cannot be changed later",
           .choices = charter_mappings),
    OPTION(DURATION, struct ring_options, period_us, "period", "TIME",
           "create, amend: how often everything is crawled (1 d)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX),
    OPTION(LIST, struct ring_options, scope, "scope", "PATTERN",
           "create, amend: archive only URLs that match, as \"mnemon archive --include\"; may be given "
           "several times; \"any\": all URLs (the default)"),
    OPTION(FLAG, struct ring_options, open, "open", NULL, "create, amend: everybody may join"),
    OPTION(FLAG, struct ring_options, invited, "invite", NULL,
           "create, amend: only who is invited may join (the default)"),
    OPTION(CHOICE, struct ring_options, jobs, "jobs", "WHOSE",
           "create, amend: who may add jobs for the ring: members (the default) or its founder only",
           .choices = jobs_words),
    OPTION(TEXT, struct ring_options, key, "for", "KEY",
           "invite: only the node with this key; \"mnemon ring status\" on its machine shows it"),
    OPTION(DURATION, struct ring_options, expires_us, "expires", "TIME",
           "invite: how long the token can be used (7 d); with --for: how long the membership lasts "
           "(for ever)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX),
    OPTION(NUMBER, struct ring_options, places, "places", "N",
           "lookup: how many places: the owner of the URL and those after it (1)", .min = 1,
           .max = TRANSPORT_VNODES_MAX),
    OPTION(FLAG, struct ring_options, json, "json", NULL, "status, lookup: as JSON"),
    {0},
};

const struct command ring_command = {
    .name = "ring",
    .summary = "found a ring of nodes, invite others, see how it is",
    .synopsis = "ACTION [OPTION…] [ARGUMENT…]",
    .details =
        "Nodes of a ring find each other and agree who is responsible for which part of the web, whatever "
        "dies. "
        "They crawl, keep and serve one archive together. What they have agreed on is the charter, "
        "which its founder signs.\n\n"
        "  create NAME   found a ring; this data directory's node is its founder\n"
        "  invite        print a token that lets a node in (founder)\n"
        "  status        the neighbours, what this node is responsible for, and how well it is kept\n"
        "  lookup URL    which node is responsible for a URL, as this node finds it\n"
        "  amend         sign a new version of the charter, which then spreads (founder)\n"
        "  takedown URL  show no capture of it on any node; URL* for all below it (founder)\n"
        "  restore URL   show them again (founder)\n"
        "  remove KEY…   refuse members, or tokens, from now on (founder)\n"
        "  leave         be a node of its own again\n\n"
        "  mnemon ring create films --open && mnemon serve --address 192.0.2.1\n"
        "  mnemon serve --address 192.0.2.2 --join 192.0.2.1",
    .options = ring_options,
    .options_size = sizeof(struct ring_options),
    .defaults = &ring_defaults,
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .word = ring_word,
    .run = ring_run,
};
