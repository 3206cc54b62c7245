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
    fprintf(cli->out, "left the ring; its files are kept as %s/ring/*.left\n", data->directory);
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
                         action[0] == 'c'   ? "name the ring: mnemon ring create NAME"
                         : action[2] != 'm' ? "name a URL: mnemon ring lookup|takedown|restore URL"
                                            : "name a key; \"mnemon ring status\" shows them");
    }
    return count <= max ? CLI_DONE : cli_usage(cli, &ring_command, "too many arguments for \"%s\"", action);
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
           "create, amend: how many nodes keep each document (6)", .min = 1, .max = CHARTER_REPLICAS_MAX),
    OPTION(NUMBER, struct ring_options, witnesses, "witnesses", "N",
           "create, amend: how many of them fetch it from its origin (1); the others copy it", .min = 1,
           .max = CHARTER_REPLICAS_MAX),
    OPTION(NUMBER, struct ring_options, list_size, "list-size", "N",
           "create: how many positions after its own a node watches (8); cannot be changed later", .min = 2,
           .max = CHARTER_LIST_SIZE_MAX),
    OPTION(CHOICE, struct ring_options, mapping, "mapping", "WHAT",
           "create: what decides which nodes keep a document: its url (the default), its host, or its "
           "section, which is the host and the first part of the path; cannot be changed later",
           .choices = charter_mappings),
    OPTION(DURATION, struct ring_options, period_us, "period", "TIME",
           "create, amend: how often everything is crawled (1 d)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX),
    OPTION(LIST, struct ring_options, scope, "scope", "PATTERN",
           "create, amend: archive only URLs that match, as with \"mnemon archive --include\"; may be "
           "repeated; \"any\" means all URLs (the default)"),
    OPTION(FLAG, struct ring_options, open, "open", NULL, "create, amend: any node may join"),
    OPTION(FLAG, struct ring_options, invited, "invite", NULL,
           "create, amend: only invited nodes may join (the default)"),
    OPTION(CHOICE, struct ring_options, jobs, "jobs", "WHOSE",
           "create, amend: who may add jobs for the ring: all members (the default) or only its founder",
           .choices = jobs_words),
    OPTION(TEXT, struct ring_options, key, "for", "KEY",
           "invite: make a token for the node with this key only; \"mnemon ring status\" on its machine "
           "shows the key"),
    OPTION(DURATION, struct ring_options, expires_us, "expires", "TIME",
           "invite: how long the token is valid (7 d); with --for: how long the membership lasts (for ever)",
           .max = UINT64_C(1000000) * CHARTER_PERIOD_S_MAX),
    OPTION(NUMBER, struct ring_options, vnodes, "vnodes", "N",
           "lookup: how many virtual nodes to show: the owner of the URL and those after it (1)", .min = 1,
           .max = TRANSPORT_VNODES_MAX),
    OPTION(NUMBER, struct ring_options, vnodes, "places", "N", "the name of --vnodes in version 0.1",
           .min = 1, .max = TRANSPORT_VNODES_MAX),
    OPTION(FLAG, struct ring_options, json, "json", NULL, "status, lookup: print JSON"),
    {0},
};

const struct command ring_command = {
    .name = "ring",
    .summary = "create and manage a ring of nodes that share one archive",
    .synopsis = "ACTION [OPTION…] [ARGUMENT…]",
    .details =
        "The nodes of a ring find each other and divide the web among themselves, even if nodes fail. "
        "Together they crawl, keep and serve one archive. The rules of a ring are its charter, which its "
        "founder signs.\n\n"
        "  create NAME   create a ring; the node of this data directory is its founder\n"
        "  invite        print a token that lets a node in (founder)\n"
        "  status        show the neighbours, this node's share of the web, and how well it is kept\n"
        "  lookup URL    find the node that is responsible for a URL\n"
        "  amend         sign a new version of the charter, which then spreads to all nodes (founder)\n"
        "  takedown URL  hide its captures on all nodes, and say which have not confirmed it; URL* hides\n"
        "                everything below it (founder)\n"
        "  restore URL   show them again (founder)\n"
        "  remove KEY…   refuse members or tokens from now on (founder)\n"
        "  leave         leave the ring\n\n"
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
